/* Grouped products against oracle.h, a position at a time: rows of groups, and k in groups; gathered, scattered, weighted. What they refuse, and what
   only the device can see. On the host, and on a GPU by every route that takes them. */
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

enum { G_A, G_B, G_C, G_D, G_AUX, G_RESIDUAL, G_BIAS, G_SUMS, G_SCALE_A, G_SCALE_B, G_TENSORS };

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
            want = answers_make(&o);
            free(want.bias_grad), want.bias_grad = NULL;
            oracle_product(&o, &want);
            wrong |= compare(d, 0, row, 1, want.d, c->weighted ? r->weights[row] : 1, "d", c);
            if (c->epilogue & GEMMEPI_AUX && !wrong)
                wrong |= compare(aux, 0, row, 1, want.aux, 1, "aux", c);
            answers_free(&want);
            written[row] = 1;
        }
    for (i = 0; i < d->rows && !wrong && !(c->flags & GEMMEPI_ACCUMULATE); i++)
        if (!written[i])
            CHECK(is_poison(d, i), "%s on %s: row %d of no group was written", c->name, here->name, i);
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
    CHECK(gemmepi_plan_grouped(here->context, &r.desc, &plan) == GEMMEPI_OK, "%s on %s: %s", c->name,
          here->name, gemmepi_last_error());
    if (plan) {
        char text[4096];
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(!wants_fused || !here->has_fused || says_route(plan, "fused"), "%s on %s: %s", c->name,
              here->name, text);
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

/* >>cases */

#define BF16   GEMMEPI_BF16
#define F16    GEMMEPI_F16
#define F32    GEMMEPI_F32
#define E4M3   GEMMEPI_E4M3
#define NO     GEMMEPI_SCALE_NONE
#define TENSOR GEMMEPI_SCALE_TENSOR
#define OUTER  GEMMEPI_SCALE_OUTER
#define VECTOR GEMMEPI_SCALE_VECTOR_128
#define BLOCK  GEMMEPI_SCALE_BLOCK_128

static void run_cases(const grouped_case *cases, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        run_case(&cases[i], 100 + i);
}
#define RUN_CASES(cases) run_cases(cases, sizeof(cases) / sizeof *(cases))

/* clang-format off */

static void rows_of_groups_are_products_by_their_own_weights(void) {
    static const grouped_case cases[] = {
        {"bf16, even", BF16, BF16, GEMMEPI_NONE, 0, 4, 256, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 0},
        {"bf16, weights [n, k], random", BF16, BF16, GEMMEPI_NONE, 0, 9, 500, 136, 200, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"f16 to f32, one group has all", F16, F32, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 5, 300, 96, 264, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, NO, NO, 1},
        {"nothing in any group", BF16, BF16, GEMMEPI_NONE, 0, 5, 300, 96, 264, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 3},
        {"one group", BF16, BF16, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, 0, 1, 131, 72, 72, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 0},
        {"4096 groups", BF16, BF16, GEMMEPI_NONE, 0, 4096, 700, 64, 8, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 4},
        {"64 groups", BF16, BF16, GEMMEPI_NONE, 0, 64, 640, 64, 64, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    };
    wants_fused = here->context != NULL && strstr(here->name, "without") == NULL;
    RUN_CASES(cases);
}

static void every_kind_of_epilogue_goes_with_groups_of_rows(void) {
    static const grouped_case cases[] = {
        {"swiglu", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 6, 400, 128, 256, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"swiglu with bias and aux", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX, 0, 6, 400, 128, 272, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"gradient of swiglu", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD, 0, 6, 400, 128, 136, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"gradient of gelu", BF16, BF16, GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD, 0, 6, 400, 128, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"relu with its mask", BF16, BF16, GEMMEPI_RELU | GEMMEPI_AUX, 0, 6, 400, 128, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"gradient of relu", BF16, BF16, GEMMEPI_RELU | GEMMEPI_BACKWARD, 0, 6, 400, 128, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"residual", F16, F16, GEMMEPI_TANH | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 0, 6, 400, 72, 200, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"alpha and C", BF16, BF16, GEMMEPI_NONE, 0, 6, 400, 72, 200, 0, 0, 1, 0, 0, 0, 0, 0, 2, .5, NO, NO, 2},
        {"added to D", BF16, F32, GEMMEPI_NONE, GEMMEPI_ACCUMULATE, 6, 400, 72, 200, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    };
    wants_fused = strstr(here->name, "without") == NULL;
    RUN_CASES(cases);
}

static void rows_are_gathered_scattered_and_weighted(void) {
    static const grouped_case cases[] = {
        {"gathered", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 6, 400, 128, 256, 0, 0, 1, 50, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"scattered", BF16, BF16, GEMMEPI_NONE, 0, 6, 400, 128, 256, 0, 0, 1, 0, 0, 410, 0, 0, 0, 0, NO, NO, 2},
        {"scattered with weights", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 128, 72, 0, 0, 0, 0, 0, 410, 1, 0, 0, 0, NO, NO, 2},
        {"gathered, scattered, all beside", BF16, BF16, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL, 0, 6, 400, 128, 72, 0, 0, 0, 70, 0, 410, 0, 8, 0, 0, NO, NO, 0},
        {"scattered gradient", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BACKWARD, 0, 6, 400, 128, 72, 0, 0, 0, 0, 0, 410, 1, 0, 0, 0, NO, NO, 0},
        {"weights alone", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 6, 400, 128, 72, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, NO, NO, 2},
    };
    wants_fused = strstr(here->name, "without") == NULL;
    RUN_CASES(cases);
}

static void what_no_fast_kernel_takes_runs_all_the_same(void) {
    static const grouped_case cases[] = {
        {"odd sizes", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 6, 300, 37, 53, 0, 0, 1, 0, 0, 0, 0, 3, 0, 0, NO, NO, 2},
        {"odd gates", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, 0, 6, 300, 37, 54, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, NO, NO, 2},
        {"odd gates, weights [n, k], gathered", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 6, 300, 37, 142, 0, 0, 1, 40, 0, 310, 1, 3, 0, 0, NO, NO, 2},
        {"f32", F32, F32, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 0, 6, 300, 64, 64, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"f64", GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_NONE, 0, 6, 200, 30, 33, 0, 0, 1, 20, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"i8", GEMMEPI_I8, GEMMEPI_I32, GEMMEPI_RELU, 0, 6, 200, 30, 33, 0, 0, 1, 20, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"fp8 with scales of rows", E4M3, BF16, GEMMEPI_SILU, 0, 6, 300, 256, 64, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
        {"fp8 with scales along k and by blocks", E4M3, BF16, GEMMEPI_NONE, 0, 6, 300, 300, 150, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"fp8 likewise, gathered, a gate", E4M3, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 6, 300, 300, 150, 0, 0, 1, 77, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"fp8 rows, gathered and scattered", E4M3, BF16, GEMMEPI_NONE, 0, 6, 300, 128, 150, 0, 0, 0, 77, 0, 310, 0, 0, 0, 0, OUTER, VECTOR, 2},
        {"fp8, both by blocks", E4M3, F32, GEMMEPI_NONE, 0, 6, 300, 260, 150, 0, 0, 1, 200, 0, 0, 0, 0, 0, 0, BLOCK, BLOCK, 2},
        {"k 0", BF16, BF16, GEMMEPI_NONE | GEMMEPI_BIAS, 0, 6, 300, 0, 40, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    };
    wants_fused = 0;
    RUN_CASES(cases);
}

static void fp8_rows_of_groups_are_products_by_the_fast_kernel(void) {
    static const grouped_case cases[] = {
        {"one scale for all", E4M3, BF16, GEMMEPI_NONE, 0, 6, 400, 272, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, TENSOR, TENSOR, 2},
        {"1 x 128 by 128 x 128", E4M3, BF16, GEMMEPI_NONE, 0, 6, 500, 400, 272, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"likewise, one group has all", E4M3, BF16, GEMMEPI_NONE, 0, 6, 500, 272, 264, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 1},
        {"likewise, even", E4M3, F32, GEMMEPI_BIAS, 0, 3, 600, 128, 256, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 0},
        {"likewise, nothing in any group", E4M3, BF16, GEMMEPI_NONE, 0, 6, 500, 256, 264, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 3},
        {"likewise, a gate, gathered", E4M3, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 6, 400, 384, 256, 0, 0, 1, 77, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"likewise, scattered with weights", E4M3, BF16, GEMMEPI_NONE, 0, 6, 400, 256, 136, 0, 0, 1, 0, 0, 410, 1, 0, 0, 0, VECTOR, BLOCK, 2},
        {"1 x 128 both, alpha and C", E4M3, BF16, GEMMEPI_NONE, 0, 6, 400, 256, 136, 0, 0, 1, 0, 0, 0, 0, 0, 2, .5, VECTOR, VECTOR, 2},
        {"blocks both, gathered", E4M3, BF16, GEMMEPI_NONE, 0, 6, 400, 272, 136, 0, 0, 1, 300, 0, 0, 0, 0, 0, 0, BLOCK, BLOCK, 2},
        {"rows and columns, a bias and gelu, gathered and scattered", E4M3, BF16, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, 0, 6, 400, 144, 264, 0, 0, 1, 77, 0, 410, 0, 0, 0, 0, OUTER, OUTER, 2},
        {"rows and columns, fast sums, gathered", E4M3, BF16, GEMMEPI_SILU, GEMMEPI_FAST_ACCUMULATION, 6, 400, 144, 264, 0, 0, 1, 77, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
        {"fast sums, a gate with aux", E4M3, BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, GEMMEPI_FAST_ACCUMULATION, 6, 400, 144, 272, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
        {"e5m2, gradient of silu", GEMMEPI_E5M2, BF16, GEMMEPI_SILU | GEMMEPI_BACKWARD, 0, 6, 400, 256, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"64 groups", E4M3, BF16, GEMMEPI_NONE, 0, 64, 640, 128, 64, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
    };
    wants_fused = strstr(here->name, "without") == NULL;
    RUN_CASES(cases);
}

static void groups_of_k_are_products_by_the_fast_kernel(void) {
    static const grouped_case cases[] = {
        {"bf16 to f32", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"bf16, large", BF16, BF16, GEMMEPI_NONE, 0, 5, 640, 264, 392, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"gathered both", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 72, 136, 1, 1, 0, 90, 80, 0, 0, 8, 0, 0, NO, NO, 2},
        {"added to D", BF16, F32, GEMMEPI_NONE, GEMMEPI_ACCUMULATE, 6, 400, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"sums of b", BF16, F32, GEMMEPI_BGRAD_B, 0, 6, 400, 72, 136, 1, 1, 0, 0, 80, 0, 0, 0, 0, 0, NO, NO, 2},
        {"sums of a, added", BF16, F32, GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD, GEMMEPI_ACCUMULATE, 6, 600, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 1},
        {"all empty, with a bias", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 6, 400, 40, 40, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 3},
        {"300 groups", BF16, F32, GEMMEPI_NONE, 0, 300, 400, 8, 8, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 4},
        {"one group has all", F16, F16, GEMMEPI_NONE, 0, 6, 400, 40, 40, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 1},
    };
    wants_fused = strstr(here->name, "without") == NULL;
    RUN_CASES(cases);
}

static void groups_of_k_are_products_of_their_own(void) {
    static const grouped_case cases[] = {
        {"bf16", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"bf16, even", BF16, BF16, GEMMEPI_NONE, 0, 4, 512, 128, 128, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 0},
        {"added to D", BF16, F32, GEMMEPI_NONE, GEMMEPI_ACCUMULATE, 6, 400, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"one group has all", F16, F16, GEMMEPI_NONE, 0, 6, 400, 40, 40, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 1},
        {"all empty, with a bias", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 6, 400, 40, 40, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 3},
        {"odd, gathered both", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 37, 53, 1, 1, 0, 90, 80, 0, 0, 3, 0, 0, NO, NO, 2},
        {"a along k, b along k", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 37, 53, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"gates and aux", BF16, F32, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, 0, 3, 200, 37, 54, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"odd sums", F16, F32, GEMMEPI_BGRAD_A, 0, 6, 400, 37, 53, 1, 1, 0, 90, 0, 0, 0, 3, 0, 0, NO, NO, 2},
        {"sums beside an empty d", BF16, F32, GEMMEPI_BGRAD_A, 0, 6, 400, 40, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"fp8 sums with scales of rows", E4M3, F32, GEMMEPI_BGRAD_B, 0, 6, 400, 37, 53, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
        {"fp8 with scales of rows", E4M3, F32, GEMMEPI_NONE, 0, 6, 400, 37, 53, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
    };
    wants_fused = 0;
    RUN_CASES(cases);
}

/* clang-format on */

/* >>bad input */

static gemmepi_grouped_desc small_desc(void) {
    gemmepi_grouped_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.product.m = 32, desc.product.n = 16, desc.product.k = 16;
    desc.product.a.dtype = BF16;
    desc.groups = 4;
    return desc;
}

static void check_refused(const gemmepi_grouped_desc *desc, const char *says) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_plan_grouped(here->context, desc, &plan);
    CHECK(status != GEMMEPI_OK && strstr(gemmepi_last_error(), says) && !plan,
          "'%s' should be said, and is: %s", says, status ? gemmepi_last_error() : "nothing");
    gemmepi_plan_destroy(plan);
}

static void descs_without_a_meaning_are_refused_in_words(void) {
#define REFUSED(change, says)                         \
    do {                                              \
        gemmepi_grouped_desc desc = small_desc();     \
        gemmepi_matmul_desc *product = &desc.product; \
        (void)product;                                \
        change;                                       \
        check_refused(&desc, says);                   \
    } while (0)
    REFUSED(desc.groups = 0, "desc.groups is 0");
    REFUSED(desc.groups = 4097, "desc.groups is 4097");
    REFUSED(desc.grouping = (gemmepi_grouping)2, "desc.grouping is 2");
    REFUSED(product->batch = 2, "desc.product.batch is 2");
    REFUSED(product->order = GEMMEPI_COLUMN_MAJOR, "row-major");
    REFUSED(product->formula = "d = v", "formula");
    REFUSED(product->epilogue = GEMMEPI_BGRAD, "BGRAD");
    REFUSED(product->epilogue = GEMMEPI_BGRAD_B, "BGRAD");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, product->epilogue = GEMMEPI_BGRAD_A), "stored [k, m]");
    REFUSED(product->flags = GEMMEPI_BATCH_INVARIANT, "BATCH_INVARIANT");
    REFUSED(product->flags = GEMMEPI_FIND_SCALE_D, "FIND_SCALE_D");
    REFUSED(desc.gather_a = -1, "desc.gather_a is -1");
    REFUSED(desc.gather_b = 8, "desc.gather_b is 8 with GROUPS_OF_ROWS");
    REFUSED((desc.gather_a = 8, product->a.transposed = 1), "desc.product.a.transposed is 1");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, desc.gather_a = 8), "desc.product.a.transposed is 0");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, desc.scatter_d = 8), "desc.scatter_d is not 0");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, desc.weighted = 1), "desc.weighted is not 0");
    REFUSED(desc.weighted = 2, "desc.weighted is 2");
    REFUSED(product->d.batch_stride = 512, "desc.product.d has a batch_stride");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, product->b.batch_stride = 512),
            "desc.product.b has a batch_stride");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, product->a.dtype = E4M3,
             product->a.scale.mode = GEMMEPI_SCALE_VECTOR_128),
            "desc.product.a.scale.mode is 3 with GROUPS_OF_K");
    REFUSED(product->m = (int64_t)1 << 30, "desc.product.m is 1073741824");
}

static char said[1024];

/* A run of a small product with these lists: its status, or that of the call that waits for it, and what that said. */
static gemmepi_status run_lists(const int32_t *ends, const int32_t *index_a, const int32_t *index_d,
                                int *was_written) {
    static uint16_t d[40 * 16], values[32 * 16 * 4];
    gemmepi_grouped_desc desc = small_desc();
    gemmepi_grouped_args args;
    void *memory[6];
    gemmepi_status status;
    int i;
    memset(d, 0xff, sizeof d);
    memset(&args, 0, sizeof args);
    desc.gather_a = index_a ? 20 : 0, desc.scatter_d = index_d ? 40 : 0;
    memory[0] = send(values, sizeof values), memory[1] = send(values, sizeof values),
    memory[2] = send(d, sizeof d);
    memory[3] = send(ends, 16), memory[4] = send(index_a ? index_a : ends, index_a ? 128 : 16);
    memory[5] = send(index_d ? index_d : ends, index_d ? 128 : 16);
    args.product.a = memory[0], args.product.b = memory[1], args.product.d = memory[2];
    args.ends = (const int32_t *)memory[3];
    args.index_a = index_a ? (const int32_t *)memory[4] : NULL,
    args.index_d = index_d ? (const int32_t *)memory[5] : NULL;
    status = gemmepi_grouped(here->context, &desc, &args, here->stream);
    if (!status)
        status = gemmepi_synchronize(here->context, here->stream);
    snprintf(said, sizeof said, "%s", status ? gemmepi_last_error() : "nothing");
    CHECK(gemmepi_synchronize(here->context, here->stream) == GEMMEPI_OK, "it is said once: %s",
          gemmepi_last_error());
    {
        static uint16_t now[40 * 16];
        CHECK(gemmepi_download(here->context, now, memory[2], sizeof now, here->stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        *was_written = memcmp(now, d, sizeof d) != 0;
    }
    for (i = 0; i < 6; i++)
        gemmepi_free(here->context, memory[i]);
    return status;
}

static void wrong_ends_and_indices_write_nothing_and_are_told(void) {
    static const int32_t good[4] = {8, 8, 20, 32}, falling[4] = {8, 7, 20, 32}, beyond[4] = {8, 8, 20, 33},
                         below[4] = {-1, 8, 20, 32};
    int32_t a[32], d[32];
    int i, written;
    for (i = 0; i < 32; i++)
        a[i] = i % 20, d[i] = i;
    CHECK(run_lists(good, a, d, &written) == GEMMEPI_OK && written, "%s", gemmepi_last_error());
#define TOLD(says, ends, index_a, index_d)                                                       \
    CHECK(run_lists(ends, index_a, index_d, &written) == GEMMEPI_INVALID_ARGUMENT && !written && \
              strstr(said, says),                                                                \
          "'%s' should be said, and nothing be written: %s", says, said)
    TOLD("args.ends[1] of a grouped product is 7, but 8 comes before it", falling, NULL, NULL);
    TOLD("args.ends[3] of a grouped product is 33, but there are 32", beyond, NULL, NULL);
    TOLD("args.ends[0] of a grouped product is -1, but 0 comes before it", below, NULL, NULL);
    a[5] = 20;
    TOLD("args.index_a[5] of a grouped product is 20; accepted are 0 to 19", good, a, d);
    a[5] = -1;
    TOLD("args.index_a[5] of a grouped product is -1", good, a, NULL);
    a[5] = 5, d[31] = 40;
    TOLD("args.index_d[31] of a grouped product is 40; accepted are 0 to 39", good, a, d);
    CHECK(run_lists(good, a, NULL, &written) == GEMMEPI_OK && written, "after what was wrong: %s",
          gemmepi_last_error());
}

static void a_run_wants_its_own_plan_lists_and_workspace(void) {
    gemmepi_grouped_desc desc = small_desc();
    gemmepi_grouped_args args;
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    static const int32_t ends[4] = {8, 8, 20, 32};
    static const uint16_t values[32 * 16 * 4];
    uint16_t d[32 * 16];
    void *memory[5];
    gemmepi_stream stream = NULL; /* a new one, for which no workspace was reserved */
    int i;
    CHECK(gemmepi_stream_create(here->context, &stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    memset(&args, 0, sizeof args);
    CHECK(gemmepi_plan_grouped(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (!plan)
        return;
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.kind == GEMMEPI_PLAN_GROUPED &&
              details.deterministic,
          "kind %d", (int)details.kind);
    memory[0] = send(values, sizeof values), memory[1] = send(values, sizeof values);
    memory[2] = send(values, sizeof d), memory[3] = send(ends, sizeof ends);
    CHECK(gemmepi_alloc(here->context, details.workspace_size + 256, &memory[4]) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    args.product.a = memory[0], args.product.b = memory[1], args.product.d = memory[2];
#define RUN_REFUSED(says)                                                                               \
    CHECK(gemmepi_run_grouped(plan, &args, stream) != GEMMEPI_OK && strstr(gemmepi_last_error(), says), \
          "'%s' should be said, and is: %s", says, gemmepi_last_error())
    RUN_REFUSED("args.ends is NULL");
    args.ends = (const int32_t *)((char *)memory[3] + 2);
    RUN_REFUSED("args.ends is");
    args.ends = (const int32_t *)memory[2];
    RUN_REFUSED("overlaps args.ends");
    args.ends = (const int32_t *)memory[3], args.index_a = args.ends;
    RUN_REFUSED("args.index_a is given, but desc.gather_a is 0");
    args.index_a = NULL, args.weights = (const float *)memory[3];
    RUN_REFUSED("args.weights is given, but desc.weighted is 0");
    args.weights = NULL;
    if (!here->is_host) {
        RUN_REFUSED("args.workspace is NULL");
        args.product.workspace = memory[4], args.product.workspace_size = details.workspace_size - 1;
        RUN_REFUSED("args.workspace_size is");
    }
    args.product.workspace = memory[4], args.product.workspace_size = details.workspace_size + 256;
    CHECK(gemmepi_run_grouped(plan, &args, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_matmul(plan, &args.product, stream) != GEMMEPI_OK &&
              strstr(gemmepi_last_error(), "gemmepi_plan_grouped"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_synchronize(here->context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    CHECK(gemmepi_stream_destroy(here->context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < 5; i++)
        gemmepi_free(here->context, memory[i]);
}

int main(void) {
    test_device devices[TEST_MOST_DEVICES];
    int count = test_devices_open_with_routes(devices), i;
    if (count == 0)
        return 1;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(rows_of_groups_are_products_by_their_own_weights);
        RUN(every_kind_of_epilogue_goes_with_groups_of_rows);
        RUN(rows_are_gathered_scattered_and_weighted);
        RUN(what_no_fast_kernel_takes_runs_all_the_same);
        RUN(fp8_rows_of_groups_are_products_by_the_fast_kernel);
        RUN(groups_of_k_are_products_by_the_fast_kernel);
        RUN(groups_of_k_are_products_of_their_own);
        RUN(descs_without_a_meaning_are_refused_in_words);
        RUN(wrong_ends_and_indices_write_nothing_and_are_told);
        RUN(a_run_wants_its_own_plan_lists_and_workspace);
        test_device_close(here);
    }
    return test_finish();
}
