/* Layers in E4M3 whose formula has bends (abs, hardsigmoid), with P saved: gradients are those at P as it is stored, to the rounding of G.
   From those at the exact P they are as far as a derivative moves, or jumps, where P is rounded. Against plain loops in double, on the
   host and on a GPU if there is one. */
#include "../products/problem.h"

static test_device *here;

static const char formula[] =
    "t = tanh(s == 7 ? gelu_erf(v) : v) - x; d = softplus(c1) * (silu(fma(s1, c, t)) - "
    "(abs(x) + hardsigmoid(v)))";

enum { BATCH = 2, MOST_M = 350, MOST_N = 320, MOST_K = 5, CELLS = BATCH * MOST_M * MOST_N };
enum { A, B, Y, PREACT, DY, DA, DB, X, D_X, S1, D_S1, S, C, C1, TENSORS }; /* operands from X on */

typedef struct layer_case {
    int m, n, k, column_major;
    gemmepi_dtype preact; /* in E4M3: with a scale */
    double s;
} layer_case;

/* Of each item, and how far apart: numbers and the bytes of them. */
typedef struct held {
    gemmepi_dtype dtype;
    int count, shared;
    double at[CELLS];
    unsigned char bytes[CELLS * 4];
    void *there;
} held;
static held tensors[TENSORS];
static double lowest[CELLS], highest[CELLS]; /* that an element of G may be as it is stored, in BF16 */
static int at_jumps;                         /* elements of P that are 3 or -3 */

/* About normal, between -4 and 4. */
static double about_normal(rng *random) {
    double sum = 0;
    int i;
    for (i = 0; i < 4; i++)
        sum += (rng_below(random, 2001) - 1000) / 1000.0;
    return sum;
}

/* random NULL: what is written, poisoned. */
static void make(int which, gemmepi_dtype dtype, int count, int shared, rng *random) {
    held *t = &tensors[which];
    int i, all = count * (shared ? 1 : BATCH);
    t->dtype = dtype, t->count = count, t->shared = shared;
    for (i = 0; i < all; i++)
        oracle_encode(dtype, t->bytes + (size_t)i * gemmepi_dtype_size(dtype),
                      random ? about_normal(random) : -77);
    CHECK(gemmepi_alloc(here->context, (size_t)all * 4 + 16, &t->there) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}

static void move(int which, int is_back) {
    held *t = &tensors[which];
    int i, all = t->count * (t->shared ? 1 : BATCH);
    size_t size = gemmepi_dtype_size(t->dtype);
    gemmepi_status status =
        is_back ? gemmepi_download(here->context, t->bytes, t->there, (size_t)all * size, here->stream)
                : gemmepi_upload(here->context, t->there, t->bytes, (size_t)all * size, here->stream);
    CHECK(status == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < all; i++)
        t->at[i] = oracle_decode(t->dtype, t->bytes + (size_t)i * size);
}

static void make_tensors(const layer_case *c, uint64_t seed) {
    rng random = rng_seeded(seed);
    int t;
    make(A, GEMMEPI_E4M3, c->m * c->k, 0, &random), make(B, GEMMEPI_E4M3, c->k * c->n, 0, &random);
    make(Y, GEMMEPI_BF16, c->m * c->n, 0, NULL), make(PREACT, c->preact, c->m * c->n, 0, NULL);
    make(DY, GEMMEPI_BF16, c->m * c->n, 0, &random);
    make(DA, GEMMEPI_F32, c->m * c->k, 0, NULL), make(DB, GEMMEPI_F32, c->k * c->n, 0, NULL);
    make(X, GEMMEPI_BF16, c->m * c->n, 0, &random), make(D_X, GEMMEPI_BF16, c->m * c->n, 0, NULL);
    make(S1, GEMMEPI_F32, 1, 1, &random), make(D_S1, GEMMEPI_F32, 1, 1, NULL);
    make(S, GEMMEPI_F32, 1, 1, &random);
    oracle_encode(GEMMEPI_F32, tensors[S].bytes, c->s);
    make(C, GEMMEPI_BF16, c->n, 0, &random), make(C1, GEMMEPI_BF16, c->n, 1, &random);
    for (t = 0; t < TENSORS; t++)
        move(t, 0);
}

/* Where an element of [rows, columns] lies. */
static int place_of(const layer_case *c, int item, int rows, int columns, int row, int column) {
    return (item * rows * columns) + (c->column_major ? row + column * rows : row * columns + column);
}

static gemmepi_status run_layer(const layer_case *c, float *scales) {
    static const char *const names[] = {"x", "d_x", "s1", "d_s1", "s", "c", "c1"};
    static const gemmepi_operand_kind kinds[] = {GEMMEPI_FULL,      GEMMEPI_FULL,   GEMMEPI_SCALAR,
                                                 GEMMEPI_SCALAR,    GEMMEPI_SCALAR, GEMMEPI_PER_COLUMN,
                                                 GEMMEPI_PER_COLUMN};
    gemmepi_operand operands[TENSORS - X];
    void *pointers[TENSORS - X];
    gemmepi_linear_desc desc = {0};
    gemmepi_linear_args args = {0};
    gemmepi_status status;
    int i;
    memset(operands, 0, sizeof operands);
    for (i = 0; i < TENSORS - X; i++) {
        operands[i].name = names[i], operands[i].kind = kinds[i], operands[i].dtype = tensors[X + i].dtype;
        operands[i].output = X + i == D_X || X + i == D_S1;
        operands[i].batch_stride = tensors[X + i].shared ? 0 : tensors[X + i].count;
        pointers[i] = tensors[X + i].there;
    }
    desc.m = c->m, desc.n = c->n, desc.k = c->k, desc.batch = BATCH;
    desc.order = c->column_major ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc.flags = GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB;
    desc.a.dtype = GEMMEPI_E4M3, desc.da.dtype = desc.db.dtype = GEMMEPI_F32;
    desc.a.batch_stride = desc.da.batch_stride = c->m * c->k;
    desc.b.batch_stride = desc.db.batch_stride = c->k * c->n;
    desc.y.batch_stride = desc.dy.batch_stride = desc.preact.batch_stride = c->m * c->n;
    desc.preact.dtype = c->preact;
    desc.preact.scale.mode = c->preact == GEMMEPI_E4M3 ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
    desc.formula = formula, desc.operands = operands, desc.operand_count = TENSORS - X;
    args.a = tensors[A].there, args.b = tensors[B].there, args.y = tensors[Y].there;
    args.preact = tensors[PREACT].there, args.dy = tensors[DY].there;
    args.da = tensors[DA].there, args.db = tensors[DB].there, args.operands = pointers;
    args.scale_preact = c->preact == GEMMEPI_E4M3 ? scales : NULL;
    status = gemmepi_linear(here->context, &desc, &args, here->stream);
    args.scale_preact = args.scale_preact ? scales + 1 : NULL;
    return status ? status : gemmepi_linear_backward(here->context, &desc, &args, here->stream);
}

static double slope(unsigned activation, double x) {
    double magnitude;
    return oracle_derivative(activation, 0, x, &magnitude);
}

/* What an output may be off by its own rounding, in units of the stored type. */
static void is_near(double got, double want, double bound, const char *name, int i) {
    CHECK(fabs(got - want) <= bound, "%s[%d] is %.9g, not %.9g +- %.3g", name, i, got, want, bound);
}

/* What an element's gradients are made of. */
typedef struct point {
    double x, s, s1, c, outer; /* outer: dY times softplus(c1) */
} point;

static point point_of(const layer_case *c, int item, int row, int column) {
    int at = place_of(c, item, c->m, c->n, row, column);
    point e;
    e.x = tensors[X].at[at], e.s = tensors[S].at[0], e.s1 = tensors[S1].at[0];
    e.c = tensors[C].at[item * c->n + column];
    e.outer = tensors[DY].at[at] * oracle_activation(GEMMEPI_SOFTPLUS, 0, tensors[C1].at[column]);
    return e;
}

/* silu's derivative in the formula, at v, and G without that of hardsigmoid, which jumps. */
static double of_silu(const point *e, double v, double *smooth) {
    double z = e->s == 7 ? oracle_activation(GEMMEPI_GELU_ERF, 0, v) : v;
    double of_u = slope(GEMMEPI_SILU, e->s1 * e->c + tanh(z) - e->x);
    *smooth = e->outer * of_u * slope(GEMMEPI_TANH, z) * (e->s == 7 ? slope(GEMMEPI_GELU_ERF, v) : 1);
    return of_u;
}

/* At P as it is stored: d_x, terms of d_s1, and G, which where it is all but a tie may be rounded either way. */
static void take_stored_p(const layer_case *c, int item, double back, double *s1_sum, double *s1_terms) {
    int row, column;
    for (column = 0; column < c->n; column++)
        for (row = 0; row < c->m; row++) {
            int at = place_of(c, item, c->m, c->n, row, column);
            point e = point_of(c, item, row, column);
            double v = tensors[PREACT].at[at] * back, g, of_u = of_silu(&e, v, &g), off, d_x;
            d_x = e.outer * (-of_u - (e.x > 0 ? 1 : e.x < 0 ? -1 : 0));
            is_near(tensors[D_X].at[at], d_x, 0x1p-8 * fabs(d_x) + 1e-4 * fabs(e.outer), "d_x", at);
            *s1_sum += e.outer * of_u * e.c, *s1_terms += fabs(e.outer * of_u * e.c);
            g -= v > -3 && v < 3 ? e.outer / 6 : 0;
            off = 1e-5 * fabs(g) + 2e-5;
            lowest[at] = oracle_round(GEMMEPI_BF16, g - off),
            highest[at] = oracle_round(GEMMEPI_BF16, g + off);
            at_jumps += fabs(v) == 3;
        }
}

/* About the exact P, within what preact rounds off it: what is smooth moves, what jumps may be on either side. */
static void take_exact_p(const layer_case *c, int item) {
    double unit = c->preact == GEMMEPI_E4M3 ? 0x1p-4 : c->preact == GEMMEPI_BF16 ? 0x1p-8 : 0x1p-23;
    int row, column, i;
    for (column = 0; column < c->n; column++)
        for (row = 0; row < c->m; row++) {
            int at = place_of(c, item, c->m, c->n, row, column);
            point e = point_of(c, item, row, column);
            double p = 0, off, g, moved, most = 0, jump;
            for (i = 0; i < c->k; i++)
                p += tensors[A].at[place_of(c, item, c->m, c->k, row, i)] *
                     tensors[B].at[place_of(c, item, c->k, c->n, i, column)];
            off = unit * fabs(p) + 0x1p-9;
            (void)of_silu(&e, p, &g);
            for (i = -4; i <= 4; i++) {
                (void)of_silu(&e, p + off * i / 4, &moved);
                most = fmax(most, 1.05 * fabs(moved - g));
            }
            jump = fabs(fabs(p) - 3) <= off ? fabs(e.outer) / 6 : 0;
            g -= fabs(p) < 3 ? e.outer / 6 : 0;
            most += jump + 0x1p-8 * (fabs(g) + most + jump) + 2e-5;
            lowest[at] = g - most, highest[at] = g + most;
        }
}

/* dA or dB, whose elements are sums of those of G. */
static void check_product(const layer_case *c, int item, int which) {
    int of_a = which == DA, rows = of_a ? c->m : c->k, columns = of_a ? c->k : c->n,
        terms = of_a ? c->n : c->m;
    int row, column, i;
    for (row = 0; row < rows; row++)
        for (column = 0; column < columns; column++) {
            int at = place_of(c, item, rows, columns, row, column);
            double sum = 0, bound = 1e-6;
            for (i = 0; i < terms; i++) {
                double factor = of_a ? tensors[B].at[place_of(c, item, c->k, c->n, column, i)]
                                     : tensors[A].at[place_of(c, item, c->m, c->k, i, row)];
                int of_g =
                    of_a ? place_of(c, item, c->m, c->n, row, i) : place_of(c, item, c->m, c->n, i, column);
                double low = lowest[of_g], high = highest[of_g];
                sum += factor * (low + high) / 2;
                bound += fabs(factor) * ((high - low) / 2 + 1e-6 * (fabs(low) + fabs(high)));
            }
            is_near(tensors[which].at[at], sum, bound, of_a ? "da" : "db", at);
        }
}

static void check_layer(const layer_case *c, uint64_t seed) {
    float numbers[2] = {1 / 1.5f, 1.5f}; /* 2 times 1.5 is at the jump */
    double back = c->preact == GEMMEPI_E4M3 ? (double)numbers[1] : 1, sum = 0, terms = 0;
    void *scales = NULL;
    int t, item;
    make_tensors(c, seed);
    CHECK(gemmepi_alloc(here->context, sizeof numbers, &scales) == GEMMEPI_OK &&
              gemmepi_upload(here->context, scales, numbers, sizeof numbers, here->stream) == GEMMEPI_OK &&
              run_layer(c, (float *)scales) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (t = 0; t < TENSORS; t++)
        move(t, 1);
    for (item = 0; item < BATCH; item++) {
        take_stored_p(c, item, back, &sum, &terms);
        check_product(c, item, DA), check_product(c, item, DB);
        take_exact_p(c, item);
        check_product(c, item, DA), check_product(c, item, DB);
    }
    is_near(tensors[D_S1].at[0], sum, 1e-5 * terms, "d_s1", 0);
    gemmepi_free(here->context, scales);
    for (t = 0; t < TENSORS; t++)
        gemmepi_free(here->context, tensors[t].there);
}

/* Sizes odd and even, of whole tiles or none; s is 7 or not. */
static void gradients_are_those_at_the_saved_product_and_near_the_exact_ones(void) {
    static const layer_case cases[] = {{35, 32, 5, 1, GEMMEPI_BF16, 7},  {35, 32, 5, 0, GEMMEPI_E4M3, 7},
                                       {64, 40, 16, 1, GEMMEPI_E4M3, 3}, {33, 17, 5, 1, GEMMEPI_F32, 7},
                                       {33, 17, 6, 0, GEMMEPI_BF16, -2}, {350, 320, 5, 1, GEMMEPI_BF16, 7},
                                       {350, 320, 5, 1, GEMMEPI_E4M3, 1}};
    int i, seed, count = (int)(sizeof cases / sizeof cases[0]);
    for (i = 0; i < count; i++) {
        if (!test_takes(test_key(&i, 1)))
            continue;
        for (seed = 1; seed <= (cases[i].m > 100 ? 1 : 3); seed++)
            check_layer(&cases[i], (uint64_t)(100 * i + seed));
    }
    CHECK(at_jumps > 0, "no element of P is 3 or -3");
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(gradients_are_those_at_the_saved_product_and_near_the_exact_ones);
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
