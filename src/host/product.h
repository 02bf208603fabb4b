/* The whole product in plain C: a tile of the result at a time, everything in double, rounded once. */
#ifndef GEMMEPI_HOST_PRODUCT_H
#define GEMMEPI_HOST_PRODUCT_H

#include "../problem/arguments.h"
#include "../numbers/convert.h"

/* A tile of 32 x 32 results over 64 steps of k keeps all blocks (48 KB of doubles) near the first-level cache
   and off the heap. */
#define GPI__HOST_TILE  32
#define GPI__HOST_DEPTH 64

typedef struct gpi__host_tile {
    double v[2][GPI__HOST_TILE][GPI__HOST_TILE]; /* of both halves with GATED, else the first */
    double a[GPI__HOST_TILE][GPI__HOST_DEPTH];
    double b[GPI__HOST_DEPTH][GPI__HOST_TILE];
    double amax_d, amax_aux; /* of all tiles so far */
} gpi__host_tile;

/* `count` elements of a row of one item, from (row, column) on; of A and B row is the outer index, A's row or B's column, and
   column is k. */
typedef struct gpi__host_place {
    int64_t item, row, column, count;
} gpi__host_place;

/* The same columns of half 0 or 1. */
static gpi__host_place gpi__host_in_half(const gpi__problem *problem, gpi__host_place at, int half) {
    at.column += half * gpi__half_columns(problem);
    return at;
}

static int64_t gpi__smaller(int64_t x, int64_t y) {
    return x < y ? x : y;
}

/* The element (row, column) of op() of item `item`. */
static int64_t gpi__index_of(const gpi__view *view, int64_t item, int64_t row, int64_t column) {
    return item * view->batch_stride + (view->transposed ? column * view->ld + row : row * view->ld + column);
}

/* The number by which element (outer, k) of A or B is multiplied; outer is A's row or B's column. */
static double gpi__scale_at(const gpi__problem *problem, const gpi__arguments *arguments, int operand,
                            int64_t item, int64_t outer, int64_t k) {
    const gpi__view *scale = &problem->views[GPI__SCALE_OF(operand)];
    const float *numbers = (const float *)arguments->pointers[GPI__SCALE_OF(operand)];
    int64_t at = item * scale->batch_stride;
    switch (problem->views[operand].scale) {
    case GEMMEPI_SCALE_OUTER:
        return (double)numbers[at + outer];
    case GEMMEPI_SCALE_VECTOR_128:
        return (double)numbers[at + k / 128 * scale->ld + outer];
    case GEMMEPI_SCALE_BLOCK_128:
        return (double)numbers[at + outer / 128 * scale->ld + k / 128];
    default:
        return (double)numbers[at];
    }
}

/* Elements of A or B. summed: along k, times all scales. Else for the product: A along k and B along its columns, times the scales
   that change along k. */
static void gpi__host_load_factor(const gpi__problem *problem, const gpi__arguments *arguments, int operand,
                                  gpi__host_place at, int summed, double *out) {
    const gpi__view *view = &problem->views[operand];
    int is_a = operand == GPI__A, along_k = is_a || summed;
    int64_t outer = at.row, k = at.column, c;
    int64_t first = gpi__index_of(view, at.item, is_a ? outer : k, is_a ? k : outer);
    int contiguous = (is_a == (view->transposed == 0)) == along_k;
    gpi__load_run(view->dtype, arguments->pointers[operand], first, contiguous ? 1 : view->ld, at.count, out);
    for (c = 0; c < at.count && view->scale > (summed ? GEMMEPI_SCALE_NONE : GEMMEPI_SCALE_OUTER); c++)
        out[c] *= gpi__scale_at(problem, arguments, operand, at.item, along_k ? outer : outer + c,
                                along_k ? k + c : k);
}

/* v += a b, over `steps` steps of k. The sums are a variable of its own, which a compiler sees to overlap with neither. */
static void gpi__host_add_steps(const double *a, double (*b)[GPI__HOST_TILE], int64_t steps, double *v) {
    double sums[GPI__HOST_TILE];
    int64_t s;
    int c;
    memcpy(sums, v, sizeof sums);
    for (s = 0; s < steps; s++)
        for (c = 0; c < GPI__HOST_TILE; c++)
            sums[c] += a[s] * b[s][c];
    memcpy(v, sums, sizeof sums);
}

/* v = op(A)[`rows` rows, :] op(B)[:, columns] */
static void gpi__host_multiply(const gpi__problem *problem, const gpi__arguments *arguments,
                               gpi__host_tile *tile, gpi__host_place at, int64_t rows,
                               double v[][GPI__HOST_TILE]) {
    gpi__host_place a = at, b = at;
    int64_t k, r, s;
    memset(v, 0, sizeof tile->v[0]);
    memset(tile->b, 0, sizeof tile->b);
    b.row = at.column;
    for (k = 0; k < problem->k; k += GPI__HOST_DEPTH) {
        a.column = k;
        a.count = gpi__smaller(problem->k - k, GPI__HOST_DEPTH);
        for (r = 0; r < rows; r++) {
            a.row = at.row + r;
            gpi__host_load_factor(problem, arguments, GPI__A, a, 0, tile->a[r]);
        }
        for (s = 0; s < a.count; s++) {
            b.column = k + s;
            gpi__host_load_factor(problem, arguments, GPI__B, b, 0, tile->b[s]);
        }
        for (r = 0; r < rows; r++)
            gpi__host_add_steps(tile->a[r], tile->b, a.count, v[r]);
    }
}

/* The scale of C, D, AUX or the residual. */
static double gpi__host_scale(const gpi__problem *problem, const gpi__arguments *arguments, int operand,
                              int64_t item) {
    return problem->views[operand].scale ? gpi__scale_at(problem, arguments, operand, item, 0, 0) : 1;
}

/* Of a matrix or vector, scaled. */
static void gpi__host_load(const gpi__problem *problem, const gpi__arguments *arguments, int operand,
                           gpi__host_place at, double *out) {
    const gpi__view *view = &problem->views[operand];
    int64_t c;
    gpi__load_run(view->dtype, arguments->pointers[operand], gpi__index_of(view, at.item, at.row, at.column),
                  1, at.count, out);
    if (operand <= GPI__RESIDUAL && view->scale)
        for (c = 0; c < at.count; c++)
            out[c] *= gpi__host_scale(problem, arguments, operand, at.item);
}

static void gpi__host_store(const gpi__problem *problem, const gpi__arguments *arguments, int operand,
                            gpi__host_place at, const double *v) {
    const gpi__view *view = &problem->views[operand];
    double scale = gpi__host_scale(problem, arguments, operand, at.item), scaled[GPI__HOST_TILE];
    int64_t c;
    for (c = 0; c < at.count; c++)
        scaled[c] = v[c] * scale;
    gpi__store_run(view->dtype, arguments->pointers[operand], gpi__index_of(view, at.item, at.row, at.column),
                   at.count, view->scale ? scaled : v);
}

/* The largest |v| so far; NaN stays. */
static void gpi__host_amax(double *amax, int64_t columns, const double *v) {
    int64_t c;
    for (c = 0; c < columns; c++)
        if (*amax == *amax && !(fabs(v[c]) <= *amax))
            *amax = fabs(v[c]);
}

static void gpi__host_store_mask(const gpi__view *aux, unsigned char *mask, gpi__host_place at,
                                 const double *v) {
    int64_t c;
    for (c = 0; c < at.count; c++) {
        int64_t bit = gpi__index_of(aux, at.item, at.row, at.column + c);
        unsigned char *byte = &mask[bit / 8], one = (unsigned char)(1u << (bit % 8));
        *byte = (unsigned char)(v[c] > 0 ? *byte | one : *byte & ~one);
    }
}

/* The mask's bits as 1 and 0. */
static void gpi__host_load_mask(const gpi__view *aux, const unsigned char *mask, gpi__host_place at,
                                double *out) {
    int64_t c;
    for (c = 0; c < at.count; c++) {
        int64_t bit = gpi__index_of(aux, at.item, at.row, at.column + c);
        out[c] = mask[bit / 8] >> (bit % 8) & 1;
    }
}

/* The upstream gradient and the pre-activation, of which one is v and the other aux, into the gradient of a run of one row:
   with GATED of the same columns of both halves. */
static void gpi__host_backward(const gpi__problem *problem, const gpi__arguments *arguments,
                               gpi__host_place at, double *first, double *second) {
    uint32_t activation = gpi__activation(problem->epilogue);
    int gated = gpi__has(problem, GEMMEPI_GATED), upstream = gpi__has(problem, GEMMEPI_UPSTREAM);
    int gate_first = gpi__has(problem, GEMMEPI_GATE_FIRST);
    double aux[2][GPI__HOST_TILE] = {{0}};
    int64_t c;
    if (problem->views[GPI__AUX].bits == 1)
        gpi__host_load_mask(&problem->views[GPI__AUX], (const unsigned char *)arguments->pointers[GPI__AUX],
                            at, aux[0]); /* 1 is as good as any pre-activation above 0 */
    else
        gpi__host_load(problem, arguments, GPI__AUX, at, aux[0]);
    if (gated && !upstream)
        gpi__host_load(problem, arguments, GPI__AUX, gpi__host_in_half(problem, at, 1), aux[1]);
    for (c = 0; c < at.count; c++) {
        double dy = upstream ? aux[0][c] : first[c];
        double p = upstream ? first[c] : aux[0][c], q = upstream && gated ? second[c] : aux[1][c];
        double value = gate_first ? q : p, gate = gate_first ? p : q;
        double *to_value = gate_first ? second : first, *to_gate = gate_first ? first : second;
        if (gated) {
            to_value[c] = gpi__times_activation(activation, problem->parameter, dy, gate);
            to_gate[c] = gpi__gate_gradient(activation, problem->parameter, dy, value, gate);
        } else {
            first[c] = gpi__times_derivative(activation, problem->parameter, dy, p);
        }
    }
}

/* v = factor v, and v = v + other, modulo 2^32 where the result is I32 */
static void gpi__host_multiply_by(const gpi__problem *problem, double factor, int64_t columns, double *v) {
    int64_t c;
    for (c = 0; c < columns; c++)
        v[c] = problem->accumulator == GEMMEPI_I32
                   ? (double)gpi__signed((uint32_t)gpi__wrap(v[c]) * (uint32_t)gpi__wrap(factor))
                   : v[c] * factor;
}

static void gpi__host_add(const gpi__problem *problem, const double *other, int64_t columns, double *v) {
    int64_t c;
    for (c = 0; c < columns; c++)
        v[c] = problem->accumulator == GEMMEPI_I32 ? (double)gpi__wrap(v[c] + other[c]) : v[c] + other[c];
}

/* The scales of A and B that are factors of the whole sum: so sums of I8 stay exact up to here. */
static void gpi__host_scale_sums(const gpi__problem *problem, const gpi__arguments *arguments,
                                 gpi__host_place at, double *v) {
    int scale_a = problem->views[GPI__A].scale, scale_b = problem->views[GPI__B].scale;
    int64_t c;
    for (c = 0; c < at.count; c++) {
        if (scale_a == GEMMEPI_SCALE_TENSOR || scale_a == GEMMEPI_SCALE_OUTER)
            v[c] *= gpi__scale_at(problem, arguments, GPI__A, at.item, at.row, 0);
        if (scale_b == GEMMEPI_SCALE_TENSOR || scale_b == GEMMEPI_SCALE_OUTER)
            v[c] *= gpi__scale_at(problem, arguments, GPI__B, at.item, at.column + c, 0);
    }
}

/* v up to the activation: from the bare sums, factors, C, bias, and what AUX keeps of it. */
static void gpi__host_finish_product(const gpi__problem *problem, const gpi__arguments *arguments,
                                     gpi__host_tile *tile, gpi__host_place at, double *v) {
    double other[GPI__HOST_TILE];
    gpi__host_scale_sums(problem, arguments, at, v);
    gpi__host_multiply_by(problem, arguments->alpha, at.count, v);
    if (arguments->uses_c && arguments->beta != 0) {
        gpi__host_load(problem, arguments, GPI__C, at, other);
        gpi__host_multiply_by(problem, arguments->beta, at.count, other);
        gpi__host_add(problem, other, at.count, v);
    }
    if (gpi__has(problem, GEMMEPI_BIAS)) {
        gpi__host_place bias = at;
        bias.row = 0;
        gpi__host_load(problem, arguments, GPI__BIAS, bias, other);
        gpi__host_add(problem, other, at.count, v);
    }
    if (!gpi__has(problem, GEMMEPI_AUX))
        return;
    gpi__host_amax(&tile->amax_aux, at.count, v);
    if (problem->views[GPI__AUX].bits == 1)
        gpi__host_store_mask(&problem->views[GPI__AUX], (unsigned char *)arguments->pointers[GPI__AUX], at,
                             v);
    else
        gpi__host_store(problem, arguments, GPI__AUX, at, v);
}

/* The activation of a run, with GATED of a value's and a gate's, which leaves the result in the first. */
static void gpi__host_forward(const gpi__problem *problem, int64_t columns, double *first, double *second) {
    uint32_t activation = gpi__activation(problem->epilogue);
    int gate_first = gpi__has(problem, GEMMEPI_GATE_FIRST);
    int64_t c;
    for (c = 0; c < columns; c++) {
        double value = gate_first ? second[c] : first[c], gate = gate_first ? first[c] : second[c];
        if (!gpi__has(problem, GEMMEPI_GATED)) {
            first[c] = gpi__activate(activation, problem->parameter, first[c]);
        } else if (problem->accumulator == GEMMEPI_I32) {
            gpi__host_multiply_by(problem, gpi__activate(activation, 0, gate), 1, &value);
            first[c] = value;
        } else {
            first[c] = gpi__times_activation(activation, problem->parameter, value, gate);
        }
    }
}

/* The whole epilogue on a run of one row, with GATED on the same columns of both halves: the bare sums go in and what
   D stores comes out. */
static void gpi__host_epilogue(const gpi__problem *problem, const gpi__arguments *arguments,
                               gpi__host_tile *tile, gpi__host_place at, double *const v[2]) {
    double other[GPI__HOST_TILE];
    int half;
    for (half = 0; half < gpi__halves_in(problem); half++)
        gpi__host_finish_product(problem, arguments, tile, gpi__host_in_half(problem, at, half), v[half]);
    if (gpi__has(problem, GEMMEPI_BACKWARD))
        gpi__host_backward(problem, arguments, at, v[0], v[1]);
    else
        gpi__host_forward(problem, at.count, v[0], v[1]);
    for (half = 0; half < gpi__halves_out(problem); half++) {
        if (gpi__has_operand(problem, GPI__ROW_FACTOR)) {
            gpi__host_place factor = at; /* [m], one for the row */
            factor.row = 0, factor.column = at.row, factor.count = 1;
            gpi__host_load(problem, arguments, GPI__ROW_FACTOR, factor, other);
            gpi__host_multiply_by(problem, other[0], at.count, v[half]);
        }
        if (gpi__has(problem, GEMMEPI_RESIDUAL)) {
            gpi__host_load(problem, arguments, GPI__RESIDUAL, gpi__host_in_half(problem, at, half), other);
            gpi__host_add(problem, other, at.count, v[half]);
        }
        gpi__host_amax(&tile->amax_d, at.count, v[half]);
    }
}

/* A sum with what rounding took from it (Neumaier), so that it is right to a unit however many terms it has. */
typedef struct gpi__sum {
    double total, lost;
} gpi__sum;

static void gpi__add_to(gpi__sum *sum, double term) {
    double total = sum->total + term;
    int larger = (sum->total < 0 ? -sum->total : sum->total) >= (term < 0 ? -term : term);
    if (total - total == 0) /* else infinite or NaN, and nothing to be saved */
        sum->lost += larger ? (sum->total - total) + term : (term - total) + sum->total;
    sum->total = total;
}

static double gpi__total_of(const gpi__sum *sum) {
    return sum->total - sum->total == 0 ? sum->total + sum->lost : sum->total;
}

/* bias_grad (+)= sums, which start anew */
static void gpi__host_store_sums(const gpi__problem *problem, const gpi__arguments *arguments,
                                 gpi__host_place at, gpi__sum *sums) {
    const gpi__view *view = &problem->views[GPI__BIAS_GRAD];
    void *bias_grad = arguments->pointers[GPI__BIAS_GRAD];
    double values[GPI__HOST_TILE] = {0};
    int64_t first = gpi__index_of(view, at.item, 0, at.column), c;
    if (gpi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD))
        gpi__load_run(view->dtype, bias_grad, first, 1, at.count, values);
    for (c = 0; c < at.count; c++) {
        gpi__add_to(&sums[c], values[c]);
        values[c] = gpi__total_of(&sums[c]);
    }
    gpi__store_run(view->dtype, bias_grad, first, at.count, values);
    memset(sums, 0, (size_t)at.count * sizeof *sums);
}

/* Where a finished product lies, if it is not to be made. */
typedef struct gpi__host_given {
    const gpi__view *view;
    const void *data;
} gpi__host_given;

/* A tile of D from `at` on, with GATED the same columns of both halves; they are added to sums where the epilogue wants them. */
static void gpi__host_tile_of(const gpi__problem *problem, const gpi__arguments *arguments,
                              const gpi__host_given *given, gpi__host_tile *tile, gpi__host_place at,
                              gpi__sum sums[2][GPI__HOST_TILE]) {
    int64_t rows = gpi__smaller(problem->m - at.row, GPI__HOST_TILE), r, c;
    int half;
    for (half = 0; half < gpi__halves_in(problem); half++) {
        gpi__host_place from = gpi__host_in_half(problem, at, half);
        if (!given)
            gpi__host_multiply(problem, arguments, tile, from, rows, tile->v[half]);
        for (r = 0; given && r < rows; r++)
            gpi__load_run(given->view->dtype, given->data,
                          gpi__index_of(given->view, from.item, from.row + r, from.column), 1, from.count,
                          tile->v[half][r]);
    }
    for (r = 0; r < rows; r++, at.row++) {
        double *v[2];
        v[0] = tile->v[0][r];
        v[1] = tile->v[1][r];
        gpi__host_epilogue(problem, arguments, tile, at, v);
        for (half = 0; half < gpi__halves_out(problem); half++) {
            for (c = 0; c < at.count && gpi__has(problem, GEMMEPI_BGRAD); c++)
                gpi__add_to(&sums[half][c], v[half][c]);
            if (!(problem->flags & GPI__ONLY_SUMS))
                gpi__host_store(problem, arguments, GPI__D, gpi__host_in_half(problem, at, half), v[half]);
        }
    }
}

/* sum += the sum over k of row `outer` of op(A) or column `outer` of op(B) */
static void gpi__host_sum_line(const gpi__problem *problem, const gpi__arguments *arguments, int operand,
                               int64_t item, int64_t outer, gpi__sum *sum) {
    double values[GPI__HOST_DEPTH];
    gpi__host_place at;
    int64_t s;
    at.item = item;
    at.row = outer;
    for (at.column = 0; at.column < problem->k; at.column += GPI__HOST_DEPTH) {
        at.count = gpi__smaller(problem->k - at.column, GPI__HOST_DEPTH);
        gpi__host_load_factor(problem, arguments, operand, at, 1, values);
        for (s = 0; s < at.count; s++)
            gpi__add_to(sum, values[s]);
    }
}

/* bias_grad (+)= sums over k of op(A)'s rows or op(B)'s columns */
static void gpi__host_sum_operand(const gpi__problem *problem, const gpi__arguments *arguments) {
    int operand = gpi__has(problem, GEMMEPI_BGRAD_A) ? GPI__A : GPI__B;
    int shared = problem->views[GPI__BIAS_GRAD].batch_stride == 0;
    int64_t length = problem->views[GPI__BIAS_GRAD].length;
    gpi__host_place at;
    gpi__sum sum = {0, 0};
    at.row = 0;
    at.count = 1;
    for (at.column = 0; at.column < length; at.column++)
        for (at.item = 0; at.item < problem->batch; at.item++) {
            gpi__host_sum_line(problem, arguments, operand, at.item, at.column, &sum);
            if (!shared || at.item + 1 == problem->batch)
                gpi__host_store_sums(problem, arguments, at, &sum);
        }
}

static void gpi__host_store_amax(const gpi__problem *problem, const gpi__arguments *arguments, int operand,
                                 double amax) {
    if (gpi__has_operand(problem, operand))
        gpi__store_run(problem->views[operand].dtype, arguments->pointers[operand], 0, 1, &amax);
}

/* The product, or the epilogue over one that is given. */
static void gpi__host_product(const gpi__problem *problem, const gpi__arguments *arguments,
                              const gpi__host_given *given) {
    int shared = problem->views[GPI__BIAS_GRAD].batch_stride == 0, half;
    int64_t half_columns = gpi__half_columns(problem);
    gpi__sum sums[2][GPI__HOST_TILE];
    gpi__host_place at;
    gpi__host_tile tile;
    memset(sums, 0, sizeof sums);
    tile.amax_d = tile.amax_aux = 0;
    for (at.column = 0; at.column < half_columns; at.column += GPI__HOST_TILE) {
        at.count = gpi__smaller(half_columns - at.column, GPI__HOST_TILE);
        for (at.item = 0; at.item < problem->batch; at.item++) {
            for (at.row = 0; at.row < problem->m; at.row += GPI__HOST_TILE)
                gpi__host_tile_of(problem, arguments, given, &tile, at, sums);
            if (!gpi__has(problem, GEMMEPI_BGRAD) || (shared && at.item + 1 < problem->batch))
                continue;
            for (half = 0; half < gpi__halves_out(problem); half++)
                gpi__host_store_sums(problem, arguments, gpi__host_in_half(problem, at, half), sums[half]);
        }
    }
    if (!gpi__is_empty(problem)) {
        gpi__host_store_amax(problem, arguments, GPI__AMAX_D, tile.amax_d);
        gpi__host_store_amax(problem, arguments, GPI__AMAX_AUX, tile.amax_aux);
    }
    if (gpi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        gpi__host_sum_operand(problem, arguments);
}

#endif
