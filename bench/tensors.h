/* The tensors of a drawn product: as many sets as lie beyond what a cache holds, random normal numbers in what is read. */
#ifndef GEMMEPI_BENCH_TENSORS_H
#define GEMMEPI_BENCH_TENSORS_H

#include "draw.h"

/* AUX is read with BACKWARD, else written; D is read too where it accumulates. */
enum { OF_A, OF_B, OF_BIAS, OF_RESIDUAL, OF_AUX, OF_D, OF_BIAS_GRAD, OF_COUNT };

enum {
    TENSORS_MIB = 150, /* of all sets together at least: three times the L2 of an H100 */
    TENSORS_MOST_SETS = 128,
    TENSORS_BLOCK = 8 * 131071, /* normals, eight times a prime: no two lines of a matrix are alike */
    TENSORS_SHIFT = 1 << 14     /* bytes of the block between the first of two sets */
};

typedef struct tensors {
    size_t sizes[OF_COUNT], places[OF_COUNT]; /* bytes; from the start of a set */
    size_t set;
    int sets;
    char *memory;
} tensors;

/* Normal numbers on the device, made when first asked for, by dtype. They outlive a product. */
typedef struct tensors_blocks {
    char *normals[BENCH_DTYPES];
} tensors_blocks;

static char *tensors_at(const tensors *t, int set, int which) {
    return t->memory + t->set * (size_t)set + t->places[which];
}

static void tensors_lay_out(tensors *t, const draw_problem *p) {
    size_t d = gemmepi_dtype_size(p->d_dtype), sets;
    int i;
    memset(t, 0, sizeof *t);
    t->sizes[OF_A] = 2 * (size_t)(draw_a_lines(p) * p->a_ld);
    t->sizes[OF_B] = 2 * (size_t)(draw_b_lines(p) * p->b_ld);
    t->sizes[OF_BIAS] = p->epilogue & GEMMEPI_BIAS ? d * (size_t)p->n : 0;
    t->sizes[OF_RESIDUAL] = d * (size_t)(p->m * p->residual_ld);
    t->sizes[OF_AUX] = draw_aux_is_mask(p) ? (size_t)(p->m * p->aux_ld) / 8 : 2 * (size_t)(p->m * p->aux_ld);
    t->sizes[OF_D] = d * (size_t)(p->m * p->d_ld);
    t->sizes[OF_BIAS_GRAD] = d * (size_t)draw_bias_grad_length(p);
    for (i = 0; i < OF_COUNT; i++) {
        t->places[i] = t->set;
        t->set += (t->sizes[i] + 255) / 256 * 256;
    }
    sets = ((size_t)TENSORS_MIB << 20) / t->set + 1;
    t->sets = sets < 2 ? 2 : sets > TENSORS_MOST_SETS ? TENSORS_MOST_SETS : (int)sets;
}

static int tensors_block(bench *b, tensors_blocks *blocks, gemmepi_dtype dtype, char **block) {
    if (!blocks->normals[dtype] && !bench_make_block(b, dtype, 0, TENSORS_BLOCK, 1, &blocks->normals[dtype]))
        return 0;
    *block = blocks->normals[dtype];
    return 1;
}

static void tensors_close_blocks(bench *b, tensors_blocks *blocks) {
    int i;
    for (i = 0; i < BENCH_DTYPES; i++)
        if (blocks->normals[i] && gemmepi_free(b->context, blocks->normals[i]) != GEMMEPI_OK)
            break;
    memset(blocks, 0, sizeof *blocks);
}

/* One tensor in each set, of a block of TENSORS_BLOCK numbers; `turn` tells tensors of a set apart. */
static int tensors_spread(bench *b, const tensors *t, int which, gemmepi_dtype dtype, const char *block,
                          int turn) {
    size_t bytes = (size_t)TENSORS_BLOCK * gemmepi_dtype_size(dtype);
    int set;
    for (set = 0; t->sizes[which] && set < t->sets; set++) {
        size_t shift = ((size_t)(set + 1) * (size_t)(turn + 1) * TENSORS_SHIFT) % bytes;
        if (!bench_spread(b, tensors_at(t, set, which), t->sizes[which], block, bytes, shift))
            return 0;
    }
    return 1;
}

static int tensors_fill(bench *b, tensors_blocks *blocks, const tensors *t, int which, gemmepi_dtype dtype) {
    char *block;
    return !t->sizes[which] ||
           (tensors_block(b, blocks, dtype, &block) && tensors_spread(b, t, which, dtype, block, which));
}

/* Times 1 / sqrt(k), so that sums are normal as well, of other numbers than the rest. */
static int tensors_fill_b(bench *b, const tensors *t, const draw_problem *p) {
    char *block = NULL;
    int filled = bench_make_block(b, p->dtype, BENCH_BLOCK - TENSORS_BLOCK, TENSORS_BLOCK,
                                  1 / sqrt((double)p->k), &block) &&
                 tensors_spread(b, t, OF_B, p->dtype, block, OF_B);
    return bench_ok(b, gemmepi_free(b->context, block)) && filled;
}

/* All that is read. The bits of a mask are those of normal numbers: any. */
static int tensors_fill_inputs(bench *b, tensors_blocks *blocks, const tensors *t, const draw_problem *p) {
    return tensors_fill(b, blocks, t, OF_A, p->dtype) && tensors_fill_b(b, t, p) &&
           tensors_fill(b, blocks, t, OF_BIAS, p->d_dtype) &&
           tensors_fill(b, blocks, t, OF_RESIDUAL, p->d_dtype) &&
           (!(p->epilogue & GEMMEPI_BACKWARD) || tensors_fill(b, blocks, t, OF_AUX, p->dtype)) &&
           (!p->accumulates || tensors_fill(b, blocks, t, OF_D, p->d_dtype));
}

/* The outputs of one set become 0xff, a NaN that no run makes; a D that accumulates becomes what it was at first. */
static int tensors_wipe(bench *b, tensors_blocks *blocks, const tensors *t, const draw_problem *p, int set) {
    int writes_aux = p->epilogue & GEMMEPI_AUX ? 1 : 0;
    return (p->accumulates ? tensors_fill(b, blocks, t, OF_D, p->d_dtype)
                           : bench_set_bytes(b, tensors_at(t, set, OF_D), 0xff, t->sizes[OF_D])) &&
           (!writes_aux || bench_set_bytes(b, tensors_at(t, set, OF_AUX), 0xff, t->sizes[OF_AUX])) &&
           (!t->sizes[OF_BIAS_GRAD] ||
            bench_set_bytes(b, tensors_at(t, set, OF_BIAS_GRAD), 0xff, t->sizes[OF_BIAS_GRAD]));
}

#endif
