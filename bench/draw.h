/* Products drawn at random: what a seed and a row's number make, always the same, on any machine and without a GPU, and
   how such a product is called. */
#ifndef GEMMEPI_BENCH_DRAW_H
#define GEMMEPI_BENCH_DRAW_H

#include "bench.h"

enum {
    DRAW_MOST = 16384,      /* the largest extent */
    DRAW_LEAST_LARGE = 64,  /* half of the products have all extents from here on */
    DRAW_MOST_PAD = 64,     /* elements after a line */
    DRAW_MASK_LINE = 128,   /* bits that a line of RELU's mask is a multiple of */
    DRAW_MOST_TRIES = 1000, /* for one product */
    DRAW_NAME = 160
};

#define DRAW_MOST_OPERATIONS 4.5e12
#define DRAW_MOST_BYTES      ((size_t)4 << 30) /* of one set of tensors */

/* A product: row-major, alpha 1. D is of dtype; F32 where it accumulates a product that has no bias, too. */
typedef struct draw_problem {
    int64_t m, n, k;
    gemmepi_dtype dtype, d_dtype;
    int a_transposed, b_transposed;
    int64_t a_ld, b_ld, d_ld, aux_ld, residual_ld; /* the last two 0 where there is none; a mask's in bits */
    gemmepi_epilogue epilogue;
    int accumulates; /* D += */
} draw_problem;

/* >>activations */

/* The library's table, but NONE; the first four are drawn as often as all together. */
static const gpi__activation_row *const draw_activations = gpi__activations + 1;
enum { DRAW_ACTIVATIONS = COUNT(gpi__activations) - 1, DRAW_POPULAR = 4 };

static gemmepi_epilogue draw_activation_of(gemmepi_epilogue epilogue) {
    return epilogue & GEMMEPI_ACTIVATION_MASK;
}

/* NULL for none. */
static const char *draw_activation_name(gemmepi_epilogue epilogue) {
    return draw_activation_of(epilogue) == GEMMEPI_NONE ? NULL : gpi__activation_name(epilogue);
}

/* >>families of epilogues */

typedef struct draw_family {
    int weight;             /* of DRAW_WEIGHTS */
    gemmepi_epilogue flags; /* always there */
    gemmepi_epilogue maybe; /* each by the toss of a coin */
    int activation;         /* 0: none, 1: one, 2: maybe one */
    int accumulates;
} draw_family;

enum { DRAW_WEIGHTS = 25 };

static const draw_family draw_families[] = {
    {2, GEMMEPI_NONE, 0, 0, 0},
    {2, GEMMEPI_BIAS, 0, 0, 0},
    {2, GEMMEPI_NONE, 0, 1, 0},
    {3, GEMMEPI_BIAS, 0, 1, 0},
    {2, GEMMEPI_AUX, GEMMEPI_BIAS, 1, 0},
    {2, GEMMEPI_BACKWARD, 0, 1, 0},
    {2, GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 0, 1, 0},
    {1, GEMMEPI_GATED, GEMMEPI_BIAS, 1, 0},
    {1, GEMMEPI_GATED | GEMMEPI_AUX, GEMMEPI_BIAS, 1, 0},
    {1, GEMMEPI_GATED | GEMMEPI_BACKWARD, GEMMEPI_BGRAD, 1, 0},
    {2, GEMMEPI_RESIDUAL, GEMMEPI_BIAS, 2, 0},
    {1, GEMMEPI_BGRAD_A, 0, 0, 0},
    {1, GEMMEPI_BGRAD_B, 0, 0, 0},
    {1, GEMMEPI_NONE, GEMMEPI_BGRAD_B, 0, 1},
    {1, GEMMEPI_NONE, GEMMEPI_BGRAD_A, 0, 1},
    {1, GEMMEPI_BIAS, 0, 0, 1},
};

/* >>what follows from a problem */

/* RELU saves one bit an element. */
static int draw_aux_is_mask(const draw_problem *p) {
    return p->epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD) && !(p->epilogue & GEMMEPI_GATED) &&
           draw_activation_of(p->epilogue) == GEMMEPI_RELU;
}

/* The columns of D and of the residual. */
static int64_t draw_d_columns(const draw_problem *p) {
    if (!(p->epilogue & GEMMEPI_GATED))
        return p->n;
    return p->epilogue & GEMMEPI_BACKWARD ? 2 * p->n : p->n / 2;
}

/* 0: there is no aux. */
static int64_t draw_aux_columns(const draw_problem *p) {
    if (!(p->epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD)))
        return 0;
    return p->epilogue & GEMMEPI_GATED && p->epilogue & GEMMEPI_BACKWARD ? 2 * p->n : p->n;
}

/* Lines of a and b as stored, and the columns of one. */
static int64_t draw_a_lines(const draw_problem *p) {
    return p->a_transposed ? p->k : p->m;
}
static int64_t draw_a_columns(const draw_problem *p) {
    return p->a_transposed ? p->m : p->k;
}
static int64_t draw_b_lines(const draw_problem *p) {
    return p->b_transposed ? p->n : p->k;
}
static int64_t draw_b_columns(const draw_problem *p) {
    return p->b_transposed ? p->k : p->n;
}

/* Elements of bias_grad; 0: there is none. */
static int64_t draw_bias_grad_length(const draw_problem *p) {
    return p->epilogue & GEMMEPI_BGRAD_A   ? p->m
           : p->epilogue & GEMMEPI_BGRAD_B ? p->n
           : p->epilogue & GEMMEPI_BGRAD   ? draw_d_columns(p)
                                           : 0;
}

/* Bytes of all tensors together, without what aligns them. */
static size_t draw_bytes(const draw_problem *p) {
    size_t d = gemmepi_dtype_size(p->d_dtype);
    size_t aux = draw_aux_is_mask(p) ? (size_t)(p->m * p->aux_ld) / 8 : 2 * (size_t)(p->m * p->aux_ld);
    return 2 * (size_t)(draw_a_lines(p) * p->a_ld + draw_b_lines(p) * p->b_ld + p->n) + aux +
           d * (size_t)(p->m * (p->d_ld + p->residual_ld) + draw_bias_grad_length(p));
}

static double draw_operations(const draw_problem *p) {
    return 2.0 * (double)p->m * (double)p->n * (double)p->k;
}

/* What gemmepi is asked for. */
static gemmepi_matmul_desc draw_desc(const draw_problem *p) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = p->m, desc.n = p->n, desc.k = p->k;
    desc.epilogue = p->epilogue;
    desc.flags = p->accumulates ? GEMMEPI_ACCUMULATE : 0;
    desc.a.dtype = p->dtype, desc.a.transposed = p->a_transposed, desc.a.ld = p->a_ld;
    desc.b.dtype = p->dtype, desc.b.transposed = p->b_transposed, desc.b.ld = p->b_ld;
    desc.d.dtype = p->d_dtype, desc.d.ld = p->d_ld;
    if (p->aux_ld)
        desc.aux.ld = p->aux_ld;
    if (p->residual_ld)
        desc.residual.dtype = p->d_dtype, desc.residual.ld = p->residual_ld;
    return desc;
}

/* >>drawing */

/* The states of two rows, or of two tries of one, have nothing to do with each other. */
static uint64_t draw_state(uint64_t seed, int row, int attempt) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u;
    int i;
    state ^= (uint64_t)row << 32 ^ (uint64_t)(unsigned)attempt << 8;
    for (i = 0; i < 3; i++)
        state ^= (uint64_t)(bench_uniform(&state) * 9007199254740992.0) << 11;
    return state;
}

/* 0 up to count - 1 */
static int draw_below(uint64_t *state, int count) {
    return (int)(bench_uniform(state) * count);
}

/* One in count is 1. */
static int draw_one_in(uint64_t *state, int count) {
    return draw_below(state, count) == 0;
}

/* Log-uniform. A third is made odd, and of the others the large ones are multiples of 8, as programs have both. */
static int64_t draw_extent(uint64_t *state, int least) {
    double low = log(least), high = log(DRAW_MOST);
    int64_t extent = (int64_t)floor(exp(low + (high - low) * bench_uniform(state)) + 0.5);
    if (draw_one_in(state, 3))
        extent |= 1;
    else if (extent >= DRAW_LEAST_LARGE)
        extent = (extent + 4) / 8 * 8;
    return extent > DRAW_MOST ? DRAW_MOST - 1 : extent;
}

/* Every fourth tensor's lines are padded, to a multiple of 8 elements more or to any number. */
static int64_t draw_line(uint64_t *state, int64_t columns) {
    int padded = draw_one_in(state, 4), odd = draw_one_in(state, 2);
    int pad = odd ? 1 + 2 * draw_below(state, 8) : 8 * (1 + draw_below(state, DRAW_MOST_PAD / 8));
    return padded ? columns + pad : columns;
}

static gemmepi_epilogue draw_epilogue(uint64_t *state, const draw_family *family) {
    gemmepi_epilogue epilogue = family->flags, flag;
    int has_activation = family->activation == 1 || (family->activation == 2 && draw_one_in(state, 2));
    int count = draw_one_in(state, 2) ? DRAW_POPULAR : DRAW_ACTIVATIONS;
    for (flag = 1; flag <= family->maybe; flag <<= 1)
        if (family->maybe & flag && draw_one_in(state, 2))
            epilogue |= flag;
    if (has_activation)
        epilogue |= draw_activations[draw_below(state, count)].code;
    if (epilogue & GEMMEPI_GATED && draw_one_in(state, 4))
        epilogue |= GEMMEPI_GATE_FIRST;
    return epilogue;
}

static const draw_family *draw_a_family(uint64_t *state) {
    int left = draw_below(state, DRAW_WEIGHTS), i = 0;
    while (left >= draw_families[i].weight)
        left -= draw_families[i++].weight;
    return draw_families + i;
}

/* Of aux and the residual: none where there is no such tensor, a mask's in bits. */
static void draw_settle_lines(draw_problem *p) {
    int64_t aux = draw_aux_columns(p);
    if (!aux)
        p->aux_ld = 0;
    else if (draw_aux_is_mask(p))
        p->aux_ld = (aux + DRAW_MASK_LINE - 1) / DRAW_MASK_LINE * DRAW_MASK_LINE;
    if (!(p->epilogue & GEMMEPI_RESIDUAL))
        p->residual_ld = 0;
}

static void draw_lines(uint64_t *state, draw_problem *p) {
    p->a_ld = draw_line(state, draw_a_columns(p));
    p->b_ld = draw_line(state, draw_b_columns(p));
    p->d_ld = draw_line(state, draw_d_columns(p));
    p->aux_ld = draw_line(state, draw_aux_columns(p));
    p->residual_ld = draw_line(state, draw_d_columns(p));
    draw_settle_lines(p);
}

static draw_problem draw_once(uint64_t seed, int row, int attempt) {
    uint64_t state = draw_state(seed, row, attempt);
    const draw_family *family = draw_a_family(&state);
    draw_problem p;
    int least = draw_one_in(&state, 2) ? DRAW_LEAST_LARGE : 1;
    memset(&p, 0, sizeof p);
    p.m = draw_extent(&state, least);
    p.n = draw_extent(&state, least);
    p.k = draw_extent(&state, least);
    p.a_transposed = draw_one_in(&state, 2);
    p.b_transposed = draw_one_in(&state, 2);
    p.dtype = draw_one_in(&state, 3) ? GEMMEPI_F16 : GEMMEPI_BF16;
    p.accumulates = family->accumulates;
    p.epilogue = draw_epilogue(&state, family);
    p.d_dtype =
        p.accumulates && !(p.epilogue & GEMMEPI_BIAS) && draw_one_in(&state, 2) ? GEMMEPI_F32 : p.dtype;
    if (p.epilogue & GEMMEPI_GATED && !(p.epilogue & GEMMEPI_BACKWARD))
        p.n += p.n % 2; /* two halves */
    draw_lines(&state, &p);
    return p;
}

/* The problem of a row: the first that is within the bounds and has a meaning, from attempt *attempt on, which is where the
   search for another goes on. Returns 0 where there is none. */
static int draw(uint64_t seed, int row, int *attempt, draw_problem *p) {
    gemmepi_epilogue_needs needs;
    while (*attempt < DRAW_MOST_TRIES) {
        gemmepi_matmul_desc desc;
        *p = draw_once(seed, row, (*attempt)++);
        desc = draw_desc(p);
        if (draw_operations(p) <= DRAW_MOST_OPERATIONS && draw_bytes(p) <= DRAW_MOST_BYTES &&
            gemmepi_epilogue_info(&desc, &needs) == GEMMEPI_OK)
            return 1;
    }
    return 0;
}

/* >>names */

static const char *draw_dtype_name(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_F32 ? "F32" : dtype == GEMMEPI_F16 ? "F16" : "BF16";
}

/* Adds to a text of DRAW_NAME bytes. */
static void draw_append(char *text, const char *format, ...) {
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, DRAW_NAME - length, format, arguments);
    va_end(arguments);
}

static const struct {
    gemmepi_epilogue flag;
    const char *name;
} draw_flags[] = {
    {GEMMEPI_BIAS, "BIAS"},         {GEMMEPI_AUX, "AUX"},     {GEMMEPI_BACKWARD, "BACKWARD"},
    {GEMMEPI_RESIDUAL, "RESIDUAL"}, {GEMMEPI_BGRAD, "BGRAD"}, {GEMMEPI_BGRAD_A, "BGRAD_A"},
    {GEMMEPI_BGRAD_B, "BGRAD_B"},   {GEMMEPI_GATED, "GATED"}, {GEMMEPI_GATE_FIRST, "GATE_FIRST"},
};

/* "SILU|BIAS|AUX", "NONE" */
static void draw_append_epilogue(char *text, const draw_problem *p) {
    const char *activation = draw_activation_name(p->epilogue), *between = activation ? "|" : "";
    int i;
    if (activation || !p->epilogue)
        draw_append(text, "%s", activation ? activation : "NONE");
    for (i = 0; i < COUNT(draw_flags); i++)
        if (p->epilogue & draw_flags[i].flag) {
            draw_append(text, "%s%s", between, draw_flags[i].name);
            between = "|";
        }
}

/* Of the tensors that may have padded lines, in the order of names. */
static const char *const draw_line_names[] = {"a", "b", "d", "aux", "residual"};

/* "8192x512x77 NT BF16 SILU|BIAS a+3": N and T of A and B; lines that are longer than the matrix by so much. No commas. */
static void draw_name(const draw_problem *p, char *text) {
    int64_t lines[] = {p->a_ld, p->b_ld, p->d_ld, p->aux_ld, p->residual_ld};
    int64_t columns[] = {draw_a_columns(p), draw_b_columns(p), draw_d_columns(p), draw_aux_columns(p),
                         draw_d_columns(p)};
    int i;
    text[0] = 0;
    draw_append(text, "%dx%dx%d %c%c %s", (int)p->m, (int)p->n, (int)p->k, p->a_transposed ? 'T' : 'N',
                p->b_transposed ? 'T' : 'N', draw_dtype_name(p->dtype));
    if (p->d_dtype != p->dtype)
        draw_append(text, "->%s", draw_dtype_name(p->d_dtype));
    draw_append(text, " ");
    draw_append_epilogue(text, p);
    draw_append(text, p->accumulates ? " D+=" : "");
    for (i = 0; i < COUNT(draw_line_names); i++)
        if (lines[i] > columns[i] && !(i == 3 && draw_aux_is_mask(p)))
            draw_append(text, " %s+%d", draw_line_names[i], (int)(lines[i] - columns[i]));
}

#endif
