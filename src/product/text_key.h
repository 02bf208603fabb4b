/* What a one-shot call with a formula is made of, as bytes: the plan that it took the last time is found by them, and no text is parsed.
   The plan is kept by its problem, too, for calls whose texts differ and mean the same. */
#ifndef GEMMEPI_PRODUCT_TEXT_KEY_H
#define GEMMEPI_PRODUCT_TEXT_KEY_H

#include "../device/kept.h"
#include "../problem/problem.h"

#ifndef GEMMEPI_NO_FORMULA
enum { GPI__TEXT_KEY_SIZE = 4096 }; /* longer ones are parsed each time */

/* What such keys begin with, as no other does: of products, of layers forward and backward, and of grouped products. */
enum {
    GPI__PRODUCT_BY_TEXT = -4,
    GPI__LAYER_BY_TEXT = -5,
    GPI__BACKWARD_BY_TEXT = -6,
    GPI__GROUPED_BY_TEXT = -7
};

typedef struct gpi__text_key {
    size_t size; /* 0: there is none */
    unsigned char bytes[GPI__TEXT_KEY_SIZE];
} gpi__text_key;

/* The fields that descs with a formula end in. */
typedef struct gpi__written_formula {
    const char *text, *value, *result;
    const gemmepi_operand *operands;
    int operand_count;
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

/* desc: its bytes ahead of the formula, which have no pointer; where padding differs nothing is found. tag: which call. Of what is
   wrong in a formula there may be a key, but never a plan. */
static void gpi__make_text_key(gpi__text_key *key, int64_t tag, size_t alignment, const void *desc,
                               size_t ahead, const gpi__written_formula *formula) {
    int has_operands = formula->operand_count == 0 || (formula->operands && formula->operand_count > 0 &&
                                                       formula->operand_count <= GPI__FORMULA_OPERANDS);
    int fits = has_operands, i;
    key->size = 0;
    fits = fits && gpi__add_to_key(key, &tag, sizeof tag) &&
           gpi__add_to_key(key, &alignment, sizeof alignment) && gpi__add_to_key(key, desc, ahead) &&
           gpi__add_text_to_key(key, formula->text) && gpi__add_text_to_key(key, formula->value) &&
           gpi__add_text_to_key(key, formula->result);
    for (i = 0; fits && i < formula->operand_count; i++)
        fits = gpi__add_operand_to_key(key, &formula->operands[i]);
    if (!fits)
        key->size = 0;
}

/* Of a desc of either type. */
#define GPI__MAKE_TEXT_KEY(key, tag, alignment, desc, type)                                 \
    do {                                                                                    \
        gpi__written_formula written;                                                       \
        written.text = (desc)->formula, written.value = (desc)->formula_value,              \
        written.result = (desc)->formula_result;                                            \
        written.operands = (desc)->operands, written.operand_count = (desc)->operand_count; \
        gpi__make_text_key(key, tag, alignment, desc, offsetof(type, formula), &written);   \
    } while (0)

/* The plan with a reference for the caller to release, or NULL. */
static gemmepi_plan *gpi__find_by_text(gemmepi_context *context, const gpi__text_key *key) {
    return key->size ? gpi__find_kept(context, key->bytes, key->size) : NULL;
}

/* Keeps a plan that the caller has a reference of, which stays the caller's. */
static void gpi__keep_by_text(gemmepi_context *context, const gpi__text_key *key, gemmepi_plan *plan) {
    if (!key->size)
        return;
    gpi__add(&plan->references, 1);
    gpi__release_plan(gpi__keep(context, key->bytes, key->size, plan));
}
#endif

#endif
