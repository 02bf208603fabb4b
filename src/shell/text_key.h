/* What a one-shot call with a formula is made of, as bytes: the plan that it took the last time is found by them, and no text is parsed.
   The plan is kept by its problem, too, for calls whose texts differ and mean the same. */
#ifndef GEMMEPI_SHELL_TEXT_KEY_H
#define GEMMEPI_SHELL_TEXT_KEY_H

#include "../problem/problem.h"

enum { GPI__TEXT_KEY_SIZE = 4096 }; /* longer ones are parsed each time */

typedef struct gpi__text_key {
    size_t size; /* 0: there is none */
    unsigned char bytes[GPI__TEXT_KEY_SIZE];
} gpi__text_key;

/* Where a desc has its texts: offsets. */
typedef struct gpi__text_places {
    size_t formula,
        size; /* of its formula, and what tells those with one apart; size 0: no text is looked for */
    size_t of_operands[2]; /* of what makes A and B; 0: nothing does */
    /* Instead: adds a desc with its texts; 0: it has no key */
    int (*add)(gpi__text_key *key, const void *desc);
} gpi__text_places;

/* The fields that descs of products and layers with a formula have, one after another. */
typedef struct gpi__written_formula {
    const char *text;
    const gemmepi_operand *operands;
    int operand_count;
    const char *value, *result;
} gpi__written_formula;

/* 0: there is no room. */
static int gpi__add_to_key(gpi__text_key *key, const void *bytes, size_t size) {
    if (size > sizeof key->bytes - key->size)
        return 0;
    memcpy(key->bytes + key->size, bytes, size);
    key->size += size;
    return 1;
}

/* NULL is another text than "". */
static int gpi__add_text_to_key(gpi__text_key *key, const char *text) {
    char is_there = text != NULL;
    return gpi__add_to_key(key, &is_there, 1) && (!text || gpi__add_to_key(key, text, strlen(text) + 1));
}

static int gpi__add_operand_to_key(gpi__text_key *key, const gemmepi_operand *operand) {
    gemmepi_operand bare = *operand;
    bare.name = NULL;
    return operand->name && !operand->tensor && gpi__add_to_key(key, &bare, sizeof bare) &&
           gpi__add_text_to_key(key, operand->name);
}

static const char *gpi__text_at(const void *desc, size_t place) {
    const char *text = NULL;
    if (place)
        memcpy(&text, (const char *)desc + place, sizeof text);
    return text;
}

static int gpi__has_text(const void *desc, const gpi__text_places *places) {
    return places->size &&
           (gpi__text_at(desc, places->formula) || gpi__text_at(desc, places->of_operands[0]) ||
            gpi__text_at(desc, places->of_operands[1]));
}

/* The texts of operands, in place of the pointers to them, which are among the bytes ahead of the formula; these begin at `begin`. */
static int gpi__add_operand_texts_to_key(gpi__text_key *key, size_t begin, const void *desc,
                                         const gpi__text_places *places) {
    int i, fits = 1;
    for (i = 0; i < 2 && places->of_operands[i] && fits; i++) {
        memset(key->bytes + begin + places->of_operands[i], 0, sizeof(char *));
        fits = gpi__add_text_to_key(key, gpi__text_at(desc, places->of_operands[i]));
    }
    return fits;
}

/* Of desc what is ahead of its formula, and behind it, has no pointer to what matters but the texts of operands; where padding differs nothing
   is found. */
static int gpi__add_desc_to_key(gpi__text_key *key, const void *desc, const gpi__text_places *places) {
    const char *bytes = (const char *)desc;
    size_t written = places->formula, begin = key->size;
    gpi__written_formula formula;
    size_t end = written + sizeof formula;
    int fits, i;
    memcpy(&formula, bytes + written, sizeof formula);
    fits = formula.operand_count == 0 ||
           (formula.operands && formula.operand_count > 0 && formula.operand_count <= GPI__FORMULA_OPERANDS);
    fits = fits && gpi__add_to_key(key, bytes, written) &&
           gpi__add_operand_texts_to_key(key, begin, desc, places) &&
           gpi__add_to_key(key, bytes + end, places->size - end) && gpi__add_text_to_key(key, formula.text) &&
           gpi__add_text_to_key(key, formula.value) && gpi__add_text_to_key(key, formula.result);
    for (i = 0; fits && i < formula.operand_count; i++)
        fits = gpi__add_operand_to_key(key, &formula.operands[i]);
    return fits;
}

/* tag: which call, as no other key begins with. Of what is wrong in a formula there may be a key, but never a plan. */
static void gpi__make_text_key(gpi__text_key *key, int64_t tag, size_t alignment, const void *desc,
                               const gpi__text_places *places) {
    key->size = 0;
    if (!desc || !(places->add || gpi__has_text(desc, places)))
        return;
    if (!gpi__add_to_key(key, &tag, sizeof tag) || !gpi__add_to_key(key, &alignment, sizeof alignment) ||
        !(places->add ? places->add(key, desc) : gpi__add_desc_to_key(key, desc, places)))
        key->size = 0;
}

#endif
