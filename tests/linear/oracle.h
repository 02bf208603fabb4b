/* What a layer must give and how far from it an answer may be, worked out in double from the operands as stored, by loops over
   every index. It shares no line with src/; formats, activations and derivatives are those of ../products/oracle.h.

   P is op(A) op(B) + bias, or what args.preact holds. Its error is E, or 0:

       E = (4 + K/8) u_acc S, S the sum of the magnitudes of the K terms; 2^-9 S more for TF32, 2^-13 S for each of 64 of K where sums may be in F16, and where a and b are
           fp8 2^-10 S more for each 32 of k, of 128 at most (of all with FAST_ACCUMULATION)
       G = dY act'(P) may be off by
           |dY| (the largest change of act' within +-(E + 2 u_acc |P|)) + 5 u_acc |dY| (|t1| + |t2|)
           (and (1 + |P|) |dY| smallest subnormals of the accumulator, where a factor of act' is one)
           t1 + t2 = act' being the terms in the manual's table; one rounding more for a gate's value, which itself
           is off by E; and where it is stored (all but dbias) by its rounding to g_dtype
       dA, dB, dbias, sums of K terms (K counts the items that are summed), may be off by
           sum of |other factor| (error of G) + E of the sum + 4 u_acc |old| + u |result| + the smallest subnormal
       Y may be off by max(change of act, 1.13 E) + 4 u_acc |act| + u |Y| + the smallest subnormal

   Where everything is a small whole number (WHOLE), results of NONE and RELU are the rounded reference itself. Sums over
   nothing are 0. A result of 8 bits must be what one of the numbers within its bound rounds to. */
#ifndef GEMMEPI_TESTS_LINEAR_ORACLE_H
#define GEMMEPI_TESTS_LINEAR_ORACLE_H

#include "../products/problem.h"

/* What lies in memory. A matrix's gradient and scale have places of the same order. */
enum {
    L_A,
    L_B,
    L_BIAS,
    L_Y,
    L_PREACT,
    L_DY,
    L_DA,
    L_DB,
    L_DBIAS,
    L_SCALE_A,
    L_SCALE_B,
    L_SCALE_Y,
    L_SCALE_PREACT,
    L_SCALE_DY,
    L_COUNT
};

static const char *const layer_names[] = {"a",       "b",       "bias",         "y",       "preact",
                                          "dy",      "da",      "db",           "dbias",   "scale_a",
                                          "scale_b", "scale_y", "scale_preact", "scale_dy"};

typedef enum values {
    ANY,      /* normal, P of about unit size                                  */
    NO_SIGNS, /* their magnitudes: nothing cancels                             */
    WHOLE     /* small whole numbers, scales 1/2, 1, 2: sums are exact         */
} values;

typedef struct layer {
    uint64_t seed; /* of the values, and of everything if random */
    gemmepi_linear_desc desc;
    values values;
    const double *given[L_COUNT]; /* in place of values, dense, item after item of rows */
    int shift[L_COUNT];           /* elements from a multiple of 256 bytes to the first one */
    int bare;    /* pointers that the direction does not need are NULL; 2: and those to no element */
    int promise; /* desc.alignment is what the pointers have */
    int by_plan, own_workspace;
    const char *formula; /* what desc.activation and the gate say as text, which the layer is given instead */
    int may_be_unsupported; /* scales of items that a gradient sums over may be refused */
} layer;

/* >>what a layer has */

static unsigned layer_activation(const layer *l) {
    return (unsigned)(l->desc.activation & GEMMEPI_ACTIVATION_MASK);
}

static int64_t layer_batch(const layer *l) {
    return l->desc.batch ? l->desc.batch : 1;
}

static int layer_is_gated(const layer *l) {
    return (l->desc.activation & GEMMEPI_GATED) != 0;
}

static int layer_has(const layer *l, uint64_t flags) {
    return (l->desc.flags & flags) != 0;
}

static int layer_has_mask(const layer *l) {
    return layer_activation(l) == GEMMEPI_RELU && !layer_is_gated(l) && l->formula == NULL;
}

static int layer_needs_p(const layer *l) {
    return layer_activation(l) != GEMMEPI_NONE || layer_is_gated(l);
}

/* In column-major order A is what B is in row-major order: what all items may share, and whose columns (then rows)
   have a bias. */
static int layer_weight(const layer *l) {
    return l->desc.order == GEMMEPI_ROW_MAJOR ? L_B : L_A;
}

static int layer_gradient(int t) {
    return t == L_A ? L_DA : L_DB;
}

static int64_t layer_bias_length(const layer *l) {
    return l->desc.order == GEMMEPI_ROW_MAJOR ? l->desc.n : l->desc.m;
}

static gemmepi_dtype not_fp8(gemmepi_dtype dtype) {
    return oracle_is_fp8(dtype) ? GEMMEPI_BF16 : dtype;
}

static gemmepi_dtype layer_dtype(const layer *l, int t) {
    const gemmepi_linear_desc *d = &l->desc;
    switch (t) {
    case L_A:
        return dtype_or(d->a.dtype, GEMMEPI_F32);
    case L_B:
        return dtype_or(d->b.dtype, layer_dtype(l, L_A));
    case L_Y:
        return dtype_or(d->y.dtype, not_fp8(layer_dtype(l, L_A)));
    case L_PREACT:
        return layer_has_mask(l) ? GEMMEPI_DTYPE_DEFAULT : dtype_or(d->preact.dtype, layer_dtype(l, L_Y));
    case L_DY:
        return dtype_or(d->dy.dtype, layer_dtype(l, L_Y));
    case L_DA:
        return dtype_or(d->da.dtype, not_fp8(layer_dtype(l, L_A)));
    case L_DB:
        return dtype_or(d->db.dtype, not_fp8(layer_dtype(l, L_B)));
    case L_BIAS:
        return dtype_or(d->bias.dtype,
                        layer_dtype(l, L_Y) == GEMMEPI_I8 ? GEMMEPI_F32 : not_fp8(layer_dtype(l, L_Y)));
    case L_DBIAS:
        return dtype_or(d->dbias.dtype, layer_dtype(l, L_BIAS));
    default:
        return GEMMEPI_F32;
    }
}

/* Where a and b differ, the one of them that holds both, or F32 where neither does. */
static gemmepi_dtype layer_g(const layer *l) {
    gemmepi_dtype a = layer_dtype(l, L_A), b = layer_dtype(l, L_B);
    if (l->desc.g_dtype != GEMMEPI_DTYPE_DEFAULT)
        return l->desc.g_dtype;
    if (oracle_is_fp8(a))
        return not_fp8(b);
    return oracle_is_fp8(b) || a == b ? a : GEMMEPI_F32;
}

static gemmepi_dtype layer_accumulator(const layer *l) {
    return layer_dtype(l, L_A) == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
}

static double layer_u(const layer *l) {
    return oracle_roundoff(layer_accumulator(l));
}

static int64_t layer_halved(const layer *l, int64_t extent, gemmepi_order order) {
    return layer_is_gated(l) && l->desc.order == order ? extent / 2 : extent;
}

static int64_t layer_rows(const layer *l, int t) {
    switch (t) {
    case L_B:
    case L_DB:
        return l->desc.k;
    case L_Y:
    case L_DY:
        return layer_halved(l, l->desc.m, GEMMEPI_COLUMN_MAJOR);
    default:
        return l->desc.m;
    }
}

static int64_t layer_columns(const layer *l, int t) {
    switch (t) {
    case L_A:
    case L_DA:
        return l->desc.k;
    case L_Y:
    case L_DY:
        return layer_halved(l, l->desc.n, GEMMEPI_ROW_MAJOR);
    default:
        return l->desc.n;
    }
}

/* As it lies: a gradient as its operand is stored, whatever its own `transposed` says. */
static gemmepi_matrix layer_matrix(const layer *l, int t) {
    const gemmepi_linear_desc *d = &l->desc;
    const gemmepi_matrix none = {GEMMEPI_DTYPE_DEFAULT, 0, 0, 0, {GEMMEPI_SCALE_NONE, 0}, NULL,
                                 GEMMEPI_DTYPE_DEFAULT};
    gemmepi_matrix gradient;
    switch (t) {
    case L_A:
        return d->a;
    case L_B:
        return d->b;
    case L_Y:
        return d->y;
    case L_PREACT:
        return d->preact;
    case L_DY:
        return d->dy;
    case L_DA:
        gradient = d->da;
        gradient.transposed = d->a.transposed;
        return gradient;
    case L_DB:
        gradient = d->db;
        gradient.transposed = d->b.transposed;
        return gradient;
    default:
        return none;
    }
}

static int layer_scaled(int scale) {
    static const int of[] = {L_A, L_B, L_Y, L_PREACT, L_DY};
    return of[scale - L_SCALE_A];
}

static scales layer_scales(const layer *l, int t) {
    return oracle_scales(layer_matrix(l, t).scale, t == L_B ? l->desc.n : l->desc.m, l->desc.k);
}

/* Whether there is such a thing, in one direction or the other. */
static int layer_uses(const layer *l, int t) {
    switch (t) {
    case L_BIAS:
        return layer_has(l, GEMMEPI_LINEAR_BIAS);
    case L_PREACT:
        return layer_has(l, GEMMEPI_LINEAR_SAVED);
    case L_DA:
        return layer_has(l, GEMMEPI_LINEAR_DA);
    case L_DB:
        return layer_has(l, GEMMEPI_LINEAR_DB);
    case L_DBIAS:
        return layer_has(l, GEMMEPI_LINEAR_DBIAS);
    default:
        return t < L_SCALE_A ||
               (layer_uses(l, layer_scaled(t)) && layer_matrix(l, layer_scaled(t)).scale.mode != 0);
    }
}

/* What the direction takes a pointer to. */
static int layer_needs(const layer *l, int t, int backward) {
    int recompute = layer_has(l, GEMMEPI_LINEAR_RECOMPUTE);
    if (t >= L_SCALE_A)
        return layer_needs(l, layer_scaled(t), backward);
    if (!backward)
        return t <= L_PREACT;
    switch (t) {
    case L_A:
        return recompute || layer_has(l, GEMMEPI_LINEAR_DB);
    case L_B:
        return recompute || layer_has(l, GEMMEPI_LINEAR_DA);
    case L_BIAS:
        return recompute;
    case L_PREACT:
        return layer_has(l, GEMMEPI_LINEAR_SAVED);
    default:
        return t != L_Y;
    }
}

static int layer_reads(const layer *l, int t, int backward) {
    switch (t) {
    case L_DA:
        return backward && layer_has(l, GEMMEPI_ACCUMULATE_DA);
    case L_DB:
        return backward && layer_has(l, GEMMEPI_ACCUMULATE_DB);
    case L_DBIAS:
        return backward && layer_has(l, GEMMEPI_ACCUMULATE_DBIAS);
    case L_Y:
        return 0;
    case L_PREACT:
        return backward;
    default:
        return layer_needs(l, t, backward);
    }
}

/* >>where it lies */

typedef struct region {
    view at;
    int64_t items, rows, columns;
} region;

/* Elements of one line as stored, and the number of lines. */
static int layer_is_by_rows(const layer *l, int t) {
    return (l->desc.order == GEMMEPI_ROW_MAJOR) != (layer_matrix(l, t).transposed != 0);
}

static int64_t layer_line(const layer *l, int t) {
    return layer_is_by_rows(l, t) ? layer_columns(l, t) : layer_rows(l, t);
}

static int64_t layer_lines(const layer *l, int t) {
    return layer_is_by_rows(l, t) ? layer_rows(l, t) : layer_columns(l, t);
}

static int64_t layer_ld(const layer *l, int t) {
    int64_t line = layer_line(l, t), ld = layer_matrix(l, t).ld;
    if (ld)
        return ld;
    return t == L_PREACT && layer_has_mask(l) ? (line + 127) / 128 * 128 : line;
}

static region layer_region_of_vector(const layer *l, int t) {
    gemmepi_vector vector = t == L_BIAS ? l->desc.bias : l->desc.dbias;
    region r;
    memset(&r, 0, sizeof r);
    r.at.dtype = layer_dtype(l, t);
    r.at.row = r.at.column = 1;
    r.at.item = vector.batch_stride;
    r.items = vector.batch_stride ? layer_batch(l) : 1;
    r.rows = 1;
    r.columns = layer_bias_length(l);
    return r;
}

static region layer_region_of_scales(const layer *l, int t) {
    gemmepi_scale scale = layer_matrix(l, layer_scaled(t)).scale;
    scales s = layer_scales(l, layer_scaled(t));
    region r;
    r.at = s.at;
    r.items = scale.batch_stride ? layer_batch(l) : 1;
    r.rows = s.rows;
    r.columns = s.columns;
    return r;
}

static region layer_region(const layer *l, int t) {
    gemmepi_matrix matrix = layer_matrix(l, t);
    region r;
    if (t == L_BIAS || t == L_DBIAS)
        return layer_region_of_vector(l, t);
    if (t >= L_SCALE_A)
        return layer_region_of_scales(l, t);
    r.at =
        oracle_view(layer_dtype(l, t), l->desc.order, matrix.transposed, layer_ld(l, t), matrix.batch_stride);
    r.items = matrix.batch_stride ? layer_batch(l) : 1;
    r.rows = layer_rows(l, t);
    r.columns = layer_columns(l, t);
    return r;
}

static size_t region_bytes(const region *r) {
    size_t size = oracle_format(r->at.dtype).size;
    int64_t last;
    if (r->items == 0 || r->rows == 0 || r->columns == 0)
        return 0;
    last = view_index(&r->at, r->items - 1, r->rows - 1, r->columns - 1);
    return size ? (size_t)(last + 1) * size : (size_t)(last / 8 + 1);
}

/* >>P */

/* A number and how far off it may be; exact if it may not. */
typedef struct inexact {
    double value, error;
    int exact;
} inexact;

/* Operands of all items, times their scales; P and G of all items. */
typedef struct workings {
    double *a, *b;
    inexact *p;
    inexact *g, *stored; /* before it is rounded to g_dtype, and after */
} workings;

static double *layer_unpack(const layer *l, const region r[L_COUNT], int t) {
    int64_t rows = layer_rows(l, t), columns = layer_columns(l, t), item, i, j;
    double *all = (double *)malloc(sizeof *all * (size_t)(layer_batch(l) * rows * columns + 1)), *to = all;
    scales s = layer_scales(l, t);
    s.at.data = r[t == L_A ? L_SCALE_A : L_SCALE_B].at.data;
    for (item = 0; item < layer_batch(l); item++)
        for (i = 0; i < rows; i++)
            for (j = 0; j < columns; j++)
                *to++ = view_get(&r[t].at, item, i, j) *
                        oracle_scale(&s, item, t == L_A ? i : j, t == L_A ? j : i);
    return all;
}

/* A matrix with at most one scale an item. */
static double layer_read(const layer *l, const region r[L_COUNT], int t, int64_t item, int64_t i, int64_t j) {
    int scale = t == L_DY ? L_SCALE_DY : L_SCALE_PREACT;
    double x = view_get(&r[t].at, item, i, j);
    return layer_uses(l, scale) ? x * view_get(&r[scale].at, item, 0, 0) : x;
}

static double layer_sum_error(const layer *l, int64_t terms, double magnitude) {
    double more = l->desc.compute == GEMMEPI_COMPUTE_TF32  ? ldexp(1, -9)
                  : l->desc.compute == GEMMEPI_COMPUTE_F16 ? ldexp(fmin((double)terms, 64), -13)
                                                           : 0;
    return ((4 + (double)terms / 8) * layer_u(l) + more) * magnitude;
}

/* What the tensor cores lose of products of two fp8 operands. */
static double layer_fp8_error(const layer *l, double magnitude) {
    double k = (double)l->desc.k;
    if (!oracle_is_fp8(layer_dtype(l, L_A)) || !oracle_is_fp8(layer_dtype(l, L_B)))
        return 0;
    return ldexp(ceil((l->desc.flags & GEMMEPI_FAST_ACCUMULATION ? k : fmin(k, 128)) / 32), -10) * magnitude;
}

/* Whole numbers, and halves and quarters by their scales, are exact below this. */
static double layer_exact_limit(const layer *l, int of_fp8) {
    return of_fp8 && oracle_is_fp8(layer_dtype(l, L_A)) && oracle_is_fp8(layer_dtype(l, L_B)) ? ldexp(1, 10)
                                                                                              : ldexp(1, 20);
}

static inexact layer_product(const layer *l, const region r[L_COUNT], const workings *w, int64_t item,
                             int64_t i, int64_t j) {
    int64_t k = l->desc.k, step;
    const double *a = w->a + (item * l->desc.m + i) * k, *b = w->b + item * k * l->desc.n + j;
    double bias = 0, magnitude = 0;
    wide sum = 0;
    inexact p;
    for (step = 0; step < k; step++) {
        sum += (wide)a[step] * b[step * l->desc.n];
        magnitude += fabs(a[step] * b[step * l->desc.n]);
    }
    if (layer_has(l, GEMMEPI_LINEAR_BIAS))
        bias = view_get(&r[L_BIAS].at, item, 0, l->desc.order == GEMMEPI_ROW_MAJOR ? j : i);
    magnitude += fabs(bias);
    p.value = (double)(sum + bias);
    p.error = layer_sum_error(l, k, magnitude) + layer_fp8_error(l, magnitude);
    p.exact = l->values == WHOLE && magnitude < layer_exact_limit(l, 1);
    return p;
}

static inexact *layer_p(const layer *l, const region r[L_COUNT], const workings *w, int given) {
    int64_t item, i, j;
    inexact *all = (inexact *)malloc(sizeof *all * (size_t)(layer_batch(l) * l->desc.m * l->desc.n + 1)),
            *to = all;
    for (item = 0; item < layer_batch(l); item++)
        for (i = 0; i < l->desc.m; i++)
            for (j = 0; j < l->desc.n; j++, to++) {
                if (!given) {
                    *to = layer_product(l, r, w, item, i, j);
                    continue;
                }
                to->value = layer_read(l, r, L_PREACT, item, i, j);
                to->error = 0;
                to->exact = 1;
            }
    return all;
}

/* The index of the value, and of the gate, that dY's and Y's element (i, j) goes with. */
static int64_t layer_half(const layer *l, int64_t item, int64_t i, int64_t j, int gate) {
    int second = gate != ((l->desc.activation & GEMMEPI_GATE_FIRST) != 0);
    if (second && l->desc.order == GEMMEPI_ROW_MAJOR)
        j += l->desc.n / 2;
    if (second && l->desc.order == GEMMEPI_COLUMN_MAJOR)
        i += l->desc.m / 2;
    return (item * l->desc.m + i) * l->desc.n + j;
}

/* >>activations of what is inexact */

static double layer_parameter(const layer *l) {
    return oracle_given_parameter(layer_activation(l), l->desc.has_parameter, l->desc.activation_parameter);
}

static double layer_act(const layer *l, double x, int derivative) {
    double parameter = layer_parameter(l), magnitude;
    return derivative ? oracle_derivative(layer_activation(l), parameter, x, &magnitude)
                      : oracle_activation(layer_activation(l), parameter, x);
}

static double layer_terms(const layer *l, double x) {
    double parameter = layer_parameter(l), magnitude;
    oracle_derivative(layer_activation(l), parameter, x, &magnitude);
    return magnitude;
}

/* act or act' of p; its error is the largest change nearby and, of act' the roundings of its terms. */
static inexact layer_apply(const layer *l, const inexact *p, int derivative) {
    static const double nearby[] = {-1, -0.5, 0.5, 1};
    double reach = p->error + 2 * layer_u(l) * fabs(p->value);
    inexact y;
    int i;
    y.value = layer_act(l, p->value, derivative);
    y.exact = p->exact && layer_activation(l) <= GEMMEPI_RELU;
    y.error = 0;
    for (i = 0; i < 4; i++)
        y.error = fmax(y.error, fabs(layer_act(l, p->value + nearby[i] * reach, derivative) - y.value));
    y.error += 4 * layer_u(l) * (derivative ? layer_terms(l, p->value) : fabs(y.value));
    if (layer_activation(l) >
        GEMMEPI_RELU) /* x phi(x) and its like, of a phi(x) below the accumulator's range */
        y.error += (1 + fabs(p->value)) * ldexp(1, oracle_format(layer_accumulator(l)).lowest);
    return y;
}

/* of two that are inexact, rounded once */
static inexact layer_times(const layer *l, inexact x, inexact y) {
    inexact z;
    z.value = x.value * y.value;
    z.error = fabs(x.value) * y.error + x.error * (fabs(y.value) + y.error) + layer_u(l) * fabs(z.value);
    z.exact = x.exact && y.exact;
    return z;
}

/* >>Y */

static expected layer_expected(const layer *l, gemmepi_dtype dtype, inexact x, double scale) {
    expected e;
    int shorter = layer_activation(l) > GEMMEPI_RELU;
    e.value = x.value * scale;
    e.bound = x.error * fabs(scale);
    if (x.exact) {
        e.value = oracle_round(dtype, e.value);
        e.bound = 0;
    } else if (oracle_is_narrow(dtype)) {
        e.bound += (layer_u(l) + (shorter ? ldexp(1, -12) : 0)) * fabs(e.value);
    } else {
        e.bound += oracle_roundoff(dtype) * fabs(e.value) + ldexp(1, oracle_format(dtype).lowest);
    }
    return e;
}

static inexact layer_y(const layer *l, const workings *w, int64_t item, int64_t i, int64_t j) {
    inexact value, gate, y;
    if (layer_is_gated(l)) {
        value = w->p[layer_half(l, item, i, j, 0)];
        gate = w->p[layer_half(l, item, i, j, 1)];
        y = layer_apply(l, &gate, 0);
        y.error = fmax(y.error, 1.13 * gate.error);
        return layer_times(l, value, y);
    }
    value = w->p[(item * l->desc.m + i) * l->desc.n + j];
    y = layer_apply(l, &value, 0);
    y.error = fmax(y.error, 1.13 * value.error);
    return y;
}

static expected *layer_expected_y(const layer *l, const region r[L_COUNT], const workings *w) {
    int64_t rows = layer_rows(l, L_Y), columns = layer_columns(l, L_Y), item, i, j;
    expected *all = (expected *)malloc(sizeof *all * (size_t)(layer_batch(l) * rows * columns + 1)),
             *to = all;
    for (item = 0; item < layer_batch(l); item++)
        for (i = 0; i < rows; i++)
            for (j = 0; j < columns; j++)
                *to++ = layer_expected(l, layer_dtype(l, L_Y), layer_y(l, w, item, i, j),
                                       layer_uses(l, L_SCALE_Y) ? view_get(&r[L_SCALE_Y].at, item, 0, 0) : 1);
    return all;
}

static expected *layer_expected_p(const layer *l, const region r[L_COUNT], const workings *w) {
    int64_t of_item = l->desc.m * l->desc.n, all_of_it = layer_batch(l) * of_item, i;
    expected *all = (expected *)malloc(sizeof *all * (size_t)(all_of_it + 1));
    for (i = 0; i < all_of_it; i++) {
        double scale = layer_uses(l, L_SCALE_PREACT) ? view_get(&r[L_SCALE_PREACT].at, i / of_item, 0, 0) : 1;
        if (layer_has_mask(l)) {
            all[i].value = w->p[i].value;
            all[i].bound = w->p[i].exact ? 0 : w->p[i].error;
        } else {
            layer none = *l;
            none.desc.activation = GEMMEPI_NONE;
            all[i] = layer_expected(&none, layer_dtype(l, L_PREACT), w->p[i], scale);
        }
    }
    return all;
}

/* >>G */

/* 2^-12: see layer_expected. Sums of G before it is stored have no such room. */
static void layer_put_g(const layer *l, workings *w, int64_t at, inexact g) {
    gemmepi_dtype dtype = layer_g(l);
    int shorter = layer_activation(l) > GEMMEPI_RELU && oracle_is_narrow(dtype);
    w->g[at] = w->stored[at] = g;
    w->stored[at].exact = g.exact && oracle_round(dtype, g.value) == g.value;
    w->stored[at].error +=
        (oracle_roundoff(dtype) + (shorter ? ldexp(1, -12) : 0)) * (fabs(g.value) + g.error) +
        ldexp(1, oracle_format(dtype).lowest) / 2;
}

/* RELU selects. */
static inexact layer_select(const inexact *p, inexact x) {
    double off = fabs(p->value) <= p->error && !p->exact ? fabs(x.value) : 0;
    if (!(p->value > 0))
        x.value = x.error = 0;
    x.error += off;
    x.exact = x.exact && p->exact;
    return x;
}

static inexact layer_times_derivative(const layer *l, const inexact *p, inexact x) {
    if (layer_activation(l) == GEMMEPI_RELU)
        return layer_select(p, x);
    return layer_activation(l) == GEMMEPI_NONE ? x : layer_times(l, x, layer_apply(l, p, 1));
}

static void layer_gate(const layer *l, workings *w, inexact dy, int64_t item, int64_t i, int64_t j) {
    int64_t value = layer_half(l, item, i, j, 0), gate = layer_half(l, item, i, j, 1);
    layer_put_g(l, w, value, layer_times(l, dy, layer_apply(l, &w->p[gate], 0)));
    layer_put_g(l, w, gate, layer_times_derivative(l, &w->p[gate], layer_times(l, dy, w->p[value])));
}

static void layer_make_g(const layer *l, const region r[L_COUNT], workings *w) {
    int64_t rows = layer_rows(l, L_DY), columns = layer_columns(l, L_DY), item, i, j;
    size_t size = sizeof(inexact) * (size_t)(layer_batch(l) * l->desc.m * l->desc.n + 1);
    w->g = (inexact *)malloc(size);
    w->stored = (inexact *)malloc(size);
    for (item = 0; item < layer_batch(l); item++)
        for (i = 0; i < rows; i++)
            for (j = 0; j < columns; j++) {
                int64_t at = (item * rows + i) * columns + j;
                inexact dy = {0, 0, 1};
                dy.exact = l->values == WHOLE;
                dy.value = layer_read(l, r, L_DY, item, i, j);
                if (layer_is_gated(l))
                    layer_gate(l, w, dy, item, i, j);
                else
                    layer_put_g(l, w, at, layer_needs_p(l) ? layer_times_derivative(l, &w->p[at], dy) : dy);
            }
}

/* >>sums */

typedef struct sum {
    wide value;
    double magnitude, error;
    int64_t terms;
    int exact;
} sum;

static void sum_add(sum *s, double factor, const inexact *g) {
    s->value += (wide)factor * g->value;
    s->magnitude += fabs(factor) * (fabs(g->value) + g->error);
    s->error += fabs(factor) * g->error;
    s->exact = s->exact && g->exact;
    s->terms++;
}

/* old: NULL, or what is added to */
static expected sum_end(const layer *l, const sum *s, int t, const double *old, int is_product) {
    gemmepi_dtype dtype = layer_dtype(l, t);
    double value = (double)(s->value + (old != NULL ? *old : 0)), size = old != NULL ? fabs(*old) : 0;
    layer strict = *l;
    expected e;
    if (!is_product)
        strict.desc.compute = GEMMEPI_COMPUTE_DEFAULT;
    if (s->terms == 0 || (s->exact && l->values == WHOLE && s->magnitude + size < layer_exact_limit(l, 0))) {
        e.value = oracle_round(dtype, value);
        e.bound = 0;
        return e;
    }
    e.value = value;
    e.bound = s->error + layer_sum_error(&strict, s->terms, s->magnitude) + 4 * layer_u(l) * size +
              oracle_roundoff(dtype) * fabs(value) + ldexp(1, oracle_format(dtype).lowest);
    return e;
}

/* Element (i, j) of t from one item of the batch. */
static void sum_item(const layer *l, const workings *w, sum *s, int t, int64_t item, int64_t i, int64_t j) {
    int64_t m = l->desc.m, n = l->desc.n, k = l->desc.k, x;
    const inexact *g = (t == L_DBIAS ? w->g : w->stored) + item * m * n;
    if (t == L_DA)
        for (x = 0; x < n; x++)
            sum_add(s, w->b[(item * k + j) * n + x], g + i * n + x);
    else if (t == L_DB)
        for (x = 0; x < m; x++)
            sum_add(s, w->a[(item * m + x) * k + i], g + x * n + j);
    else if (l->desc.order == GEMMEPI_ROW_MAJOR)
        for (x = 0; x < m; x++)
            sum_add(s, 1, g + x * n + j);
    else
        for (x = 0; x < n; x++)
            sum_add(s, 1, g + j * n + x);
}

static expected *layer_expected_sums(const layer *l, const region r[L_COUNT], const workings *w, int t) {
    const region *to = &r[t];
    int64_t place, i, j, item;
    expected *all = (expected *)malloc(sizeof *all * (size_t)(to->items * to->rows * to->columns + 1));
    expected *next = all;
    for (place = 0; place < to->items; place++)
        for (i = 0; i < to->rows; i++)
            for (j = 0; j < to->columns; j++) {
                sum s = {0, 0, 0, 0, 1};
                double old = layer_reads(l, t, 1) ? view_get(&to->at, place, i, j) : 0;
                for (item = 0; item < layer_batch(l); item++)
                    if (to->at.item == 0 || item == place)
                        sum_item(l, w, &s, t, item, i, j);
                *next++ = sum_end(l, &s, t, layer_reads(l, t, 1) ? &old : NULL, t != L_DBIAS);
            }
    return all;
}

/* >>all of it */

/* In the order of items, rows and columns; NULL: not written by this direction. */
typedef struct answers_of_layer {
    expected *of[L_COUNT];
} answers_of_layer;

static answers_of_layer layer_answers(const layer *l, const region r[L_COUNT], int backward) {
    workings w = {NULL, NULL, NULL, NULL, NULL};
    answers_of_layer x;
    int t, given = backward && layer_has(l, GEMMEPI_LINEAR_SAVED);
    memset(&x, 0, sizeof x);
    if (layer_needs(l, L_A, backward))
        w.a = layer_unpack(l, r, L_A);
    if (layer_needs(l, L_B, backward))
        w.b = layer_unpack(l, r, L_B);
    if (!backward || layer_needs_p(l))
        w.p = layer_p(l, r, &w, given);
    if (backward)
        layer_make_g(l, r, &w);
    else
        x.of[L_Y] = layer_expected_y(l, r, &w);
    if (!backward && layer_uses(l, L_PREACT))
        x.of[L_PREACT] = layer_expected_p(l, r, &w);
    for (t = L_DA; t <= L_DBIAS && backward; t++)
        if (layer_uses(l, t))
            x.of[t] = layer_expected_sums(l, r, &w, t);
    free(w.a);
    free(w.b);
    free(w.p);
    free(w.g);
    free(w.stored);
    return x;
}

static void answers_of_layer_free(answers_of_layer *x) {
    int t;
    for (t = 0; t < L_COUNT; t++)
        free(x->of[t]);
}

#endif
