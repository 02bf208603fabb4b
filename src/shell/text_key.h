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

/* tag: which call, as no other key begins with. A desc of `size` bytes with its formula at `written`: what is ahead of that, and behind it,
   has no pointer to what matters; where padding differs nothing is found. Of what is wrong in a formula there may be a key, but never a plan. */
static void gpi__make_text_key(gpi__text_key *key, int64_t tag, size_t alignment, const void *desc,
                               size_t written, size_t size) {
    const char *bytes = (const char *)desc;
    gpi__written_formula formula;
    size_t end = written + sizeof formula;
    int fits, i;
    memcpy(&formula, bytes + written, sizeof formula);
    fits = formula.operand_count == 0 ||
           (formula.operands && formula.operand_count > 0 && formula.operand_count <= GPI__FORMULA_OPERANDS);
    key->size = 0;
    fits = fits && gpi__add_to_key(key, &tag, sizeof tag) &&
           gpi__add_to_key(key, &alignment, sizeof alignment) && gpi__add_to_key(key, bytes, written) &&
           gpi__add_to_key(key, bytes + end, size - end) && gpi__add_text_to_key(key, formula.text) &&
           gpi__add_text_to_key(key, formula.value) && gpi__add_text_to_key(key, formula.result);
    for (i = 0; fits && i < formula.operand_count; i++)
        fits = gpi__add_operand_to_key(key, &formula.operands[i]);
    if (!fits)
        key->size = 0;
}

#endif
