/* A grouped product on a device against oracle.h, a position at a time: rows of groups, and k in groups. For gpu/grouped_shapes.c as well. */
#ifndef TEST_GROUPED_CASE_H
#define TEST_GROUPED_CASE_H

#include "problem.h"

enum { MOST_GROUPS = 4096, MOST_POSITIONS = 700 };

/* >>a case */

typedef struct grouped_case {
    const char *name;
    gemmepi_dtype operands, result;
    gemmepi_epilogue epilogue;
    uint64_t flags;
    int groups, positions, other, n; /* other: k of groups of rows, m of groups of k */
    int of_k, a_transposed, b_transposed;
    int gather_a, gather_b, scatter_d, weighted, pad;
    double alpha, beta;
    gemmepi_scale_mode scale_a, scale_b;
    int sizes; /* 0 even, 1 one group has all, 2 random with empty ones, 3 none has any, 4 few have one */
} grouped_case;

enum { G_A, G_B, G_C, G_D, G_AUX, G_RESIDUAL, G_BIAS, G_SUMS, G_SCALE_A, G_SCALE_B, G_FOUND, G_TENSORS };

typedef struct grouped_tensor {
    view at; /* of all items; data NULL: there is none */
    int64_t items, rows, columns;
    size_t bytes;
    void *device;
} grouped_tensor;

typedef struct grouped_run {
    gemmepi_grouped_desc desc;
    gemmepi_grouped_args args;
    grouped_tensor tensors[G_TENSORS];
    int32_t ends[MOST_GROUPS], index_a[MOST_POSITIONS], index_b[MOST_POSITIONS], index_d[MOST_POSITIONS];
    float weights[2 * MOST_POSITIONS];
    void *lists[5];
    double alpha, beta;
    unsigned char *old_sums; /* bias_grad before the run */
} grouped_run;

#define BF16     GEMMEPI_BF16
#define F16      GEMMEPI_F16
#define F32      GEMMEPI_F32
#define F32_SUMS GEMMEPI_F32

static test_device *here;

/* >>making it */

static void make_ends(const grouped_case *c, grouped_run *r, rng *random) {
    int e, left = c->positions;
    for (e = 0; e < c->groups; e++) {
        int count = c->sizes == 0   ? c->positions / c->groups
                    : c->sizes == 1 ? (e == c->groups / 2 ? c->positions : 0)
                    : c->sizes == 4 ? rng_one_in(random, 7)
                    : c->sizes == 3 || rng_one_in(random, 3)
                        ? 0
                        : rng_below(random, 2 * c->positions / c->groups + 1);
        count = count < left ? count : left;
        left -= count;
        r->ends[e] = (e ? r->ends[e - 1] : 0) + count;
    }
}

static void make_tensor(grouped_tensor *t, gemmepi_dtype dtype, int transposed, int64_t items, int64_t rows,
                        int64_t columns, int pad, rng *random, int is_output) {
    int64_t length = transposed ? rows : columns, lines = transposed ? columns : rows, ld = length + pad, i;
    int is_mask = dtype == GEMMEPI_DTYPE_DEFAULT;
    if (is_mask)
        ld = (ld + 127) / 128 * 128;
    t->at = oracle_view(dtype, GEMMEPI_ROW_MAJOR, transposed, ld, lines * ld);
    t->items = items, t->rows = rows, t->columns = columns;
    t->bytes = (size_t)(items * lines * ld) * (is_mask ? 1 : oracle_format(dtype).size) / (is_mask ? 8 : 1);
    t->at.data = (unsigned char *)malloc(t->bytes + 1);
    memset(t->at.data, 0xff, t->bytes + 1); /* NaN, in every type but I8 */
    for (i = 0; i < items * rows * columns && !is_output; i++)
        view_set(&t->at, i / (rows * columns), i / columns % rows, i % columns,
                 (rng_below(random, 17) - 8) / 4.0);
}

static void make_case(const grouped_case *c, grouped_run *r, uint64_t seed) {
    rng random = rng_seeded(seed);
    gemmepi_matmul_desc *d = &r->desc.product;
    int64_t m = c->of_k ? c->other : c->positions, k = c->of_k ? c->positions : c->other,
            items = c->of_k ? c->groups : 1;
    int64_t columns = oracle_result_extent(c->epilogue, c->n), rows_d = c->scatter_d ? c->scatter_d : m, i;
    int has_aux = (c->epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD)) != 0;
    gemmepi_dtype vectors = oracle_is_narrow(c->result) ? GEMMEPI_BF16 : c->result;
    memset(r, 0, sizeof *r);
    make_ends(c, r, &random);
    d->m = m, d->n = c->n, d->k = k, d->epilogue = c->epilogue, d->flags = c->flags;
    d->a.dtype = c->operands, d->d.dtype = c->result;
    d->a.transposed = c->a_transposed, d->b.transposed = c->b_transposed;
    r->desc.groups = c->groups, r->desc.grouping = c->of_k ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
    r->desc.gather_a = c->gather_a, r->desc.gather_b = c->gather_b, r->desc.scatter_d = c->scatter_d;
    r->desc.weighted = c->weighted;
    make_tensor(&r->tensors[G_A], c->operands, c->a_transposed, 1, c->gather_a && !c->of_k ? c->gather_a : m,
                c->gather_a && c->of_k ? c->gather_a : k, c->pad, &random, 0);
    make_tensor(&r->tensors[G_B], c->operands, c->b_transposed, c->of_k ? 1 : c->groups,
                c->gather_b ? c->gather_b : k, c->n, c->pad, &random, 0);
    make_tensor(&r->tensors[G_D], c->result, 0, items, rows_d, columns, c->pad, &random, 1);
    if (c->flags & GEMMEPI_ACCUMULATE)
        for (i = 0; i < items * rows_d * columns; i++)
            view_set(&r->tensors[G_D].at, i / (rows_d * columns), i / columns % rows_d, i % columns,
                     rng_below(&random, 9) - 4);
    if (c->beta != 0)
        make_tensor(&r->tensors[G_C], vectors, 0, items, rows_d, c->n, c->pad, &random, 0);
    if (has_aux)
        make_tensor(&r->tensors[G_AUX], oracle_has_mask(c->epilogue) ? GEMMEPI_DTYPE_DEFAULT : vectors, 0,
                    items, rows_d, oracle_aux_extent(c->epilogue, c->n), c->pad, &random,
                    (c->epilogue & GEMMEPI_AUX) != 0);
    if (c->epilogue & GEMMEPI_RESIDUAL)
        make_tensor(&r->tensors[G_RESIDUAL], vectors, 0, items, rows_d, columns, c->pad, &random, 0);
    if (c->epilogue & GEMMEPI_BIAS)
        make_tensor(&r->tensors[G_BIAS], vectors, 0, c->groups, 1, c->n, 0, &random, 0);
    if (c->epilogue & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        make_tensor(&r->tensors[G_SUMS], F32_SUMS, 0, c->groups, 1, c->epilogue & GEMMEPI_BGRAD_A ? m : c->n,
                    0, &random, !(c->epilogue & GEMMEPI_ACCUMULATE_BIAS_GRAD));
    if (c->flags & GEMMEPI_FIND_SCALE_D) {
        make_tensor(&r->tensors[G_FOUND], GEMMEPI_F32, 0, 1, (columns + 127) / 128, rows_d, 0, &random, 1);
        d->d.scale.mode = GEMMEPI_SCALE_VECTOR_128;
    }
    d->bias_grad.dtype = r->tensors[G_SUMS].at.dtype;
    d->a.ld = r->tensors[G_A].at.row == 1 ? r->tensors[G_A].at.column : r->tensors[G_A].at.row;
    d->b.ld = c->b_transposed ? r->tensors[G_B].at.column : r->tensors[G_B].at.row;
    d->d.ld = r->tensors[G_D].at.row;
    d->c.ld = r->tensors[G_C].at.row, d->aux.ld = r->tensors[G_AUX].at.row,
    d->residual.ld = r->tensors[G_RESIDUAL].at.row;
    d->c.dtype = c->beta != 0 ? vectors : GEMMEPI_DTYPE_DEFAULT;
    d->aux.dtype = r->tensors[G_AUX].at.dtype, d->residual.dtype = r->tensors[G_RESIDUAL].at.dtype;
    d->bias.dtype = r->tensors[G_BIAS].at.dtype;
    for (i = 0; i < c->positions; i++) {
        r->index_a[i] = c->gather_a ? rng_below(&random, c->gather_a) : (int32_t)i;
        r->index_b[i] = c->gather_b ? rng_below(&random, c->gather_b) : (int32_t)i;
        r->index_d[i] =
            c->scatter_d ? (int32_t)((i * 7 + 3) % c->scatter_d) : (int32_t)i; /* 7 divides none of them */
    }
    for (i = 0; i < rows_d; i++)
        r->weights[i] = (float)(rng_below(&random, 9) - 4) / 4;
    r->alpha = c->alpha != 0 ? c->alpha : 1, r->beta = c->flags & GEMMEPI_ACCUMULATE ? 1 : c->beta;
}

static gemmepi_scale scale_of(gemmepi_scale_mode mode) {
    gemmepi_scale scale;
    memset(&scale, 0, sizeof scale);
    scale.mode = mode;
    return scale;
}

/* Scales of a for the rows that it has, and for each group's b. */
static void make_scales(const grouped_case *c, grouped_run *r, scales *of_a, scales *of_b) {
    int64_t rows_a = r->tensors[G_A].rows, k = r->desc.product.k;
    rng random = rng_seeded(7);
    *of_a = oracle_scales(scale_of(c->scale_a), rows_a, k);
    *of_b = oracle_scales(scale_of(c->scale_b), c->n, k);
    r->desc.product.a.scale.mode = c->scale_a, r->desc.product.b.scale.mode = c->scale_b;
    if (c->scale_a) {
        make_tensor(&r->tensors[G_SCALE_A], GEMMEPI_F32, 0, 1, of_a->rows,
                    of_a->at.row > 1 ? of_a->at.row : of_a->columns, 0, &random, 0);
        of_a->at.data = r->tensors[G_SCALE_A].at.data;
    }
    if (c->scale_b) {
        int64_t line = of_b->at.row > 1 ? of_b->at.row : of_b->columns;
        make_tensor(&r->tensors[G_SCALE_B], GEMMEPI_F32, 0, c->of_k ? 1 : c->groups, of_b->rows, line, 0,
                    &random, 0);
        of_b->at.data = r->tensors[G_SCALE_B].at.data;
        of_b->at.item = c->of_k ? 0 : of_b->rows * line;
    }
}

static void *send(const void *from, size_t bytes) {
    void *to = NULL;
    CHECK(gemmepi_alloc(here->context, bytes + 16, &to) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(bytes == 0 || gemmepi_upload(here->context, to, from, bytes, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    return to;
}

static void send_all(const grouped_case *c, grouped_run *r) {
    gemmepi_matmul_args *a = &r->args.product;
    int t;
    for (t = 0; t < G_TENSORS; t++)
        r->tensors[t].device =
            r->tensors[t].at.data ? send(r->tensors[t].at.data, r->tensors[t].bytes) : NULL;
    r->lists[0] = send(r->ends, (size_t)c->groups * 4);
    r->lists[1] = send(r->index_a, (size_t)c->positions * 4);
    r->lists[2] = send(r->index_b, (size_t)c->positions * 4);
    r->lists[3] = send(r->index_d, (size_t)c->positions * 4);
    r->lists[4] = send(r->weights, sizeof r->weights);
    a->a = r->tensors[G_A].device, a->b = r->tensors[G_B].device, a->d = r->tensors[G_D].device;
    a->c = r->tensors[G_C].device, a->aux = r->tensors[G_AUX].device,
    a->residual = r->tensors[G_RESIDUAL].device;
    a->bias = r->tensors[G_BIAS].device;
    a->bias_grad = r->tensors[G_SUMS].device;
    a->scale_a = (const float *)r->tensors[G_SCALE_A].device,
    a->scale_b = (const float *)r->tensors[G_SCALE_B].device;
    a->found_scale_d = (float *)r->tensors[G_FOUND].device;
    a->alpha = c->alpha != 0 ? &r->alpha : NULL, a->beta = c->beta != 0 ? &r->beta : NULL;
    r->args.ends = (const int32_t *)r->lists[0];
    r->args.index_a = c->gather_a ? (const int32_t *)r->lists[1] : NULL;
    r->args.index_b = c->gather_b ? (const int32_t *)r->lists[2] : NULL;
    r->args.index_d = c->scatter_d ? (const int32_t *)r->lists[3] : NULL;
    r->args.weights = c->weighted ? (const float *)r->lists[4] : NULL;
}

static void free_all(grouped_run *r) {
    int t;
    for (t = 0; t < G_TENSORS; t++) {
        free(r->tensors[t].at.data);
        gemmepi_free(here->context, r->tensors[t].device);
    }
    for (t = 0; t < 5; t++)
        gemmepi_free(here->context, r->lists[t]);
}

/* >>what it must give */

/* Row `row` of a view alone. */
static view row_of(const grouped_tensor *t, int64_t item, int64_t row) {
    view v = t->at;
    int64_t index = v.data ? view_index(&v, item, row, 0) : 0;
    v.data = v.data ? v.data + (v.dtype ? index * (int64_t)oracle_format(v.dtype).size : index / 8) : NULL;
    v.item = 0;
    return v;
}

static void oracle_of_case(const grouped_case *c, const grouped_run *r, oracle_problem *o) {
    memset(o, 0, sizeof *o);
    o->m = c->of_k ? c->other : 1, o->n = c->n, o->k = r->desc.product.k, o->batch = 1;
    o->activation = (unsigned)(c->epilogue & GEMMEPI_ACTIVATION_MASK);
    o->flags = c->epilogue & ~(gemmepi_epilogue)GEMMEPI_ACTIVATION_MASK;
    o->alpha = r->alpha, o->beta = r->beta;
    o->scale_c = o->scale_d = o->scale_aux = o->scale_residual =
        oracle_scales(scale_of(GEMMEPI_SCALE_NONE), 1, 1);
}

/* The number of the first that is wrong, of the results of a row or a matrix; 0: none. */
static int compare(const grouped_tensor *got, int64_t item, int64_t row, int64_t rows, const expected *want,
                   double weight, const char *what, const grouped_case *c) {
    int64_t i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < got->columns; j++, want++) {
            expected weighted = *want;
            double value = view_get(&got->at, item, row + i, j);
            if (weight != 1) {
                weighted.value *= weight;
                weighted.bound = fabs(weight) * want->bound +
                                 fabs(weighted.value) * (oracle_roundoff(got->at.dtype) + 0x1p-22) + 0x1p-126;
            }
            if (got->at.dtype == GEMMEPI_DTYPE_DEFAULT
                    ? fabs(want->value) > want->bound && (value != 0) != (want->value > 0)
                    : excess(got->at.dtype, value, weighted) > 0) {
                CHECK(0, "%s on %s: %s[%d][%d, %d] is %g and should be %g +- %g", c->name, here->name, what,
                      (int)item, (int)(row + i), (int)j, value, weighted.value, weighted.bound);
                return 1;
            }
        }
    return 0;
}

static int is_poison(const grouped_tensor *t, int64_t row) {
    int64_t j;
    for (j = 0; j < t->columns; j++) {
        double value = view_get(&t->at, 0, row, j);
        if (t->at.dtype == GEMMEPI_I8 || t->at.dtype == GEMMEPI_I32 ? value != -1
            : t->at.dtype == GEMMEPI_DTYPE_DEFAULT                  ? value != 1
                                                                    : value == value)
            return 0;
    }
    return 1;
}

/* FIND_SCALE_D: each 128 columns of a row have the scale that makes the largest of them E4M3's largest number, and with it are what they should
   be. */
static int compare_found(const grouped_run *r, int64_t row, const expected *want, double weight,
                         const grouped_case *c) {
    const grouped_tensor *d = &r->tensors[G_D], *found = &r->tensors[G_FOUND];
    int64_t j, first, end;
    for (first = 0; first < d->columns; first = end) {
        double most = 0, bound = 0, scale = view_get(&found->at, 0, first / 128, row);
        end = first + 128 < d->columns ? first + 128 : d->columns;
        for (j = first; j < end; j++) {
            double value = fabs(want[j].value * weight);
            most = value > most ? value : most;
            bound = want[j].bound * fabs(weight) > bound ? want[j].bound * fabs(weight) : bound;
        }
        bound += most * 0x1p-20;
        if (most <= bound ? !(scale > 0) : !(fabs(scale * 448 - most) <= bound)) {
            CHECK(0, "%s on %s: the scale of row %d, columns from %d, is %g and should be %g +- %g", c->name,
                  here->name, (int)row, (int)first, scale, most / 448, bound / 448);
            return 1;
        }
        for (j = first; j < end; j++) {
            double value = want[j].value * weight, got = view_get(&d->at, 0, row, j) * scale;
            if (!(fabs(got - value) <= bound + fabs(value) * 0x1.08p-4 + scale * 0x1p-10)) {
                CHECK(0, "%s on %s: d[%d, %d] is %g with its scale and should be %g", c->name, here->name,
                      (int)row, (int)j, got, value);
                return 1;
            }
        }
    }
    return 0;
}

/* copies: outputs as they were before, as the residual or C may be D */
static void check_rows(const grouped_case *c, grouped_run *r, const grouped_tensor *before, scales of_a,
                       scales of_b) {
    grouped_tensor *d = &r->tensors[G_D], *aux = &r->tensors[G_AUX];
    char *written = (char *)calloc((size_t)d->rows + 1, 1);
    oracle_problem o;
    int e, first = 0, wrong = 0, i;
    for (e = 0; e < c->groups && !wrong; first = r->ends[e++])
        for (i = first; i < r->ends[e] && !wrong; i++) {
            int64_t row_a = r->index_a[i], row = r->index_d[i];
            answers want;
            oracle_of_case(c, r, &o);
            o.a = row_of(&r->tensors[G_A], 0, 0);
            o.a = r->tensors[G_A].at;
            o.a.data += view_index(&o.a, 0, row_a, 0) * (int64_t)oracle_format(o.a.dtype).size;
            o.b = row_of(&r->tensors[G_B], e, 0);
            o.d = row_of(before, 0, row);
            o.c = c->flags & GEMMEPI_ACCUMULATE ? row_of(before, 0, row) : row_of(&r->tensors[G_C], 0, row);
            o.aux = row_of(aux, 0, row), o.residual = row_of(&r->tensors[G_RESIDUAL], 0, row);
            o.bias = row_of(&r->tensors[G_BIAS], e, 0);
            o.scale_a = of_a, o.scale_b = of_b;
            if (c->scale_a == GEMMEPI_SCALE_OUTER || c->scale_a == GEMMEPI_SCALE_VECTOR_128)
                o.scale_a.at.data += 4 * row_a;
            if (c->scale_a == GEMMEPI_SCALE_BLOCK_128)
                o.scale_a.at.data += 4 * (row_a / 128) * of_a.at.row;
            if (c->scale_b)
                o.scale_b.at.data += 4 * e * of_b.at.item;
            o.scale_a.at.item = o.scale_b.at.item = 0;
            if (c->flags & GEMMEPI_FIND_SCALE_D)
                o.d.dtype = GEMMEPI_F32;
            want = answers_make(&o);
            free(want.bias_grad), want.bias_grad = NULL;
            oracle_product(&o, &want);
            wrong |= c->flags & GEMMEPI_FIND_SCALE_D
                         ? compare_found(r, row, want.d, c->weighted ? r->weights[row] : 1, c)
                         : compare(d, 0, row, 1, want.d, c->weighted ? r->weights[row] : 1, "d", c);
            if (c->epilogue & GEMMEPI_AUX && !wrong)
                wrong |= compare(aux, 0, row, 1, want.aux, 1, "aux", c);
            answers_free(&want);
            written[row] = 1;
        }
    for (i = 0; i < d->rows && !wrong && !(c->flags & GEMMEPI_ACCUMULATE); i++)
        if (!written[i]) {
            double scale = c->flags & GEMMEPI_FIND_SCALE_D ? view_get(&r->tensors[G_FOUND].at, 0, 0, i) : NAN;
            CHECK(is_poison(d, i) && scale != scale, "%s on %s: row %d of no group was written", c->name,
                  here->name, i);
        }
    free(written);
}

/* Columns or rows that positions read, side by side. */
static view gathered(const grouped_tensor *t, const int32_t *index, int first, int count, int along_rows,
                     unsigned char **memory) {
    size_t size = oracle_format(t->at.dtype).size;
    int64_t lines = along_rows ? t->columns : t->rows, i, j;
    view v = {NULL, t->at.dtype, along_rows ? lines : 1, along_rows ? 1 : lines, 0};
    *memory = v.data = (unsigned char *)malloc((size_t)(lines * count) * size + 1);
    for (i = 0; i < count; i++)
        for (j = 0; j < lines; j++)
            view_set(&v, 0, along_rows ? i : j, along_rows ? j : i,
                     along_rows ? view_get(&t->at, 0, index[first + i], j)
                                : view_get(&t->at, 0, j, index[first + i]));
    return v;
}

static void check_k(const grouped_case *c, grouped_run *r, const grouped_tensor *before, scales of_a,
                    scales of_b) {
    int e, first = 0, wrong = 0;
    for (e = 0; e < c->groups && !wrong; first = r->ends[e++]) {
        unsigned char *memory[2];
        oracle_problem o;
        answers want;
        oracle_of_case(c, r, &o);
        o.k = r->ends[e] - first;
        o.a = gathered(&r->tensors[G_A], r->index_a, first, (int)o.k, 0, &memory[0]);
        o.b = gathered(&r->tensors[G_B], r->index_b, first, (int)o.k, 1, &memory[1]);
        o.d = row_of(before, e, 0);
        o.c = c->flags & GEMMEPI_ACCUMULATE ? row_of(before, e, 0) : row_of(&r->tensors[G_C], e, 0);
        o.aux = row_of(&r->tensors[G_AUX], e, 0), o.residual = row_of(&r->tensors[G_RESIDUAL], e, 0);
        o.bias = row_of(&r->tensors[G_BIAS], e, 0);
        o.bias.row = 0;
        o.scale_a = of_a, o.scale_b = of_b;
        o.bias_grad = row_of(&r->tensors[G_SUMS], e, 0);
        if (o.bias_grad.data)
            o.bias_grad.data = r->old_sums + (o.bias_grad.data - r->tensors[G_SUMS].at.data);
        o.bias_grad.row = c->epilogue & GEMMEPI_BGRAD_A ? 1 : 0; /* of shape [m, 1] or [1, n] */
        want = answers_make(&o);
        if (!o.bias_grad.data)
            free(want.bias_grad), want.bias_grad = NULL;
        oracle_product(&o, &want);
        if (o.bias_grad.data)
            wrong |= compare(&r->tensors[G_SUMS], e, 0, 1, want.bias_grad, 1, "bias_grad", c);
        wrong |= compare(&r->tensors[G_D], e, 0, c->other, want.d, 1, "d", c);
        if (c->epilogue & GEMMEPI_AUX && !wrong)
            wrong |= compare(&r->tensors[G_AUX], e, 0, c->other, want.aux, 1, "aux", c);
        answers_free(&want);
        free(memory[0]), free(memory[1]);
    }
}

static int says_route(const gemmepi_plan *plan, const char *route) {
    gemmepi_plan_details details;
    return gemmepi_plan_info(plan, &details) == GEMMEPI_OK && strcmp(details.route_name, route) == 0;
}

static int wants_fused; /* of a GPU that has it: cases must be there */
/* If there is one, it makes the plan, or leaves NULL where nothing is to run. */
static gemmepi_status (*make_plan)(const gemmepi_grouped_desc *desc, int has_scalars, gemmepi_plan **plan);

static gemmepi_status plan_groups(const gemmepi_grouped_desc *desc, const gemmepi_grouped_args *args,
                                  gemmepi_plan **plan) {
    const gemmepi_matmul_args *product = &args->product;
    return make_plan ? make_plan(desc, product->alpha || product->c, plan)
                     : gemmepi_plan_grouped(here->context, desc, plan);
}

static void run_case(const grouped_case *c, uint64_t seed) {
    static grouped_run r; /* large */
    grouped_tensor before;
    scales of_a, of_b;
    gemmepi_plan *plan = NULL;
    make_case(c, &r, seed);
    make_scales(c, &r, &of_a, &of_b);
    send_all(c, &r);
    before = r.tensors[G_D];
    before.at.data = (unsigned char *)malloc(before.bytes + 1);
    memcpy(before.at.data, r.tensors[G_D].at.data, before.bytes);
    r.old_sums = (unsigned char *)calloc(r.tensors[G_SUMS].bytes + 1, 1);
    if (r.tensors[G_SUMS].bytes)
        memcpy(r.old_sums, r.tensors[G_SUMS].at.data, r.tensors[G_SUMS].bytes);
    CHECK(plan_groups(&r.desc, &r.args, &plan) == GEMMEPI_OK, "%s on %s: %s", c->name, here->name,
          gemmepi_last_error());
    if (plan) {
        char text[4096];
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(!wants_fused || !here->has_fused || says_route(plan, "fused"), "%s on %s: %s", c->name,
              here->name, text);
    }
    if (plan) {
        CHECK(gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_run_grouped(plan, &r.args, here->stream) == GEMMEPI_OK, "%s on %s: %s", c->name,
              here->name, gemmepi_last_error());
        gemmepi_plan_destroy(plan);
        CHECK(gemmepi_download(here->context, r.tensors[G_D].at.data, r.tensors[G_D].device,
                               r.tensors[G_D].bytes, here->stream) == GEMMEPI_OK,
              "%s on %s: %s", c->name, here->name, gemmepi_last_error());
        if (c->epilogue & GEMMEPI_AUX)
            CHECK(gemmepi_download(here->context, r.tensors[G_AUX].at.data, r.tensors[G_AUX].device,
                                   r.tensors[G_AUX].bytes, here->stream) == GEMMEPI_OK,
                  "%s", gemmepi_last_error());
        if (c->flags & GEMMEPI_FIND_SCALE_D)
            CHECK(gemmepi_download(here->context, r.tensors[G_FOUND].at.data, r.tensors[G_FOUND].device,
                                   r.tensors[G_FOUND].bytes, here->stream) == GEMMEPI_OK,
                  "%s", gemmepi_last_error());
        if (r.tensors[G_SUMS].bytes)
            CHECK(gemmepi_download(here->context, r.tensors[G_SUMS].at.data, r.tensors[G_SUMS].device,
                                   r.tensors[G_SUMS].bytes, here->stream) == GEMMEPI_OK,
                  "%s", gemmepi_last_error());
        if (c->of_k)
            check_k(c, &r, &before, of_a, of_b);
        else
            check_rows(c, &r, &before, of_a, of_b);
    }
    free(before.at.data);
    free(r.old_sums);
    free_all(&r);
}

#endif
