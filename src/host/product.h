/* The whole product in plain C: a tile of the result at a time, everything in double, rounded once. */
#ifndef GEMMEPI_HOST_PRODUCT_H
#define GEMMEPI_HOST_PRODUCT_H

#include "../problem/arguments.h"
#include "../numbers/convert.h"

/* A tile of 32 x 32 results over 64 steps of k keeps all blocks (48 KB of doubles) near the first-level cache
   and off the heap. */
#define GEMMEPI__HOST_TILE  32
#define GEMMEPI__HOST_DEPTH 64

typedef struct gemmepi__host_tile {
    double v[2][GEMMEPI__HOST_TILE][GEMMEPI__HOST_TILE]; /* of both halves with GATED, else the first */
    double a[GEMMEPI__HOST_TILE][GEMMEPI__HOST_DEPTH];
    double b[GEMMEPI__HOST_DEPTH][GEMMEPI__HOST_TILE];
    double amax_d, amax_aux; /* of all tiles so far */
} gemmepi__host_tile;

/* `count` elements of a row of one item, from (row, column) on; of A and B row is the outer index, A's row or B's column, and
   column is k. */
typedef struct gemmepi__host_place {
    int64_t item, row, column, count;
} gemmepi__host_place;

/* The same columns of half 0 or 1. */
static gemmepi__host_place gemmepi__host_in_half(const gemmepi__problem *problem, gemmepi__host_place at,
                                                 int half) {
    at.column += half * gemmepi__half_columns(problem);
    return at;
}

static int64_t gemmepi__smaller(int64_t x, int64_t y) {
    return x < y ? x : y;
}

/* The element (row, column) of op() of item `item`. */
static int64_t gemmepi__index_of(const gemmepi__view *view, int64_t item, int64_t row, int64_t column) {
    return item * view->batch_stride + (view->transposed ? column * view->ld + row : row * view->ld + column);
}

/* The number by which element (outer, k) of A or B is multiplied; outer is A's row or B's column. */
static double gemmepi__scale_at(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                int operand, int64_t item, int64_t outer, int64_t k) {
    const gemmepi__view *scale = &problem->views[GEMMEPI__SCALE_OF(operand)];
    const float *numbers = (const float *)arguments->pointers[GEMMEPI__SCALE_OF(operand)];
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
static void gemmepi__host_load_factor(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                      int operand, gemmepi__host_place at, int summed, double *out) {
    const gemmepi__view *view = &problem->views[operand];
    int is_a = operand == GEMMEPI__A, along_k = is_a || summed;
    int64_t outer = at.row, k = at.column, c;
    int64_t first = gemmepi__index_of(view, at.item, is_a ? outer : k, is_a ? k : outer);
    int contiguous = (is_a == (view->transposed == 0)) == along_k;
    gemmepi__load_run(view->dtype, arguments->pointers[operand], first, contiguous ? 1 : view->ld, at.count,
                      out);
    for (c = 0; c < at.count && view->scale > (summed ? GEMMEPI_SCALE_NONE : GEMMEPI_SCALE_OUTER); c++)
        out[c] *= gemmepi__scale_at(problem, arguments, operand, at.item, along_k ? outer : outer + c,
                                    along_k ? k + c : k);
}

/* v += a b, over `steps` steps of k. The sums are a variable of its own, which a compiler sees to overlap with neither. */
static void gemmepi__host_add_steps(const double *a, double (*b)[GEMMEPI__HOST_TILE], int64_t steps,
                                    double *v) {
    double sums[GEMMEPI__HOST_TILE];
    int64_t s;
    int c;
    memcpy(sums, v, sizeof sums);
    for (s = 0; s < steps; s++)
        for (c = 0; c < GEMMEPI__HOST_TILE; c++)
            sums[c] += a[s] * b[s][c];
    memcpy(v, sums, sizeof sums);
}

/* v = op(A)[`rows` rows, :] op(B)[:, columns] */
static void gemmepi__host_multiply(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                   gemmepi__host_tile *tile, gemmepi__host_place at, int64_t rows,
                                   double v[][GEMMEPI__HOST_TILE]) {
    gemmepi__host_place a = at, b = at;
    int64_t k, r, s;
    memset(v, 0, sizeof tile->v[0]);
    memset(tile->b, 0, sizeof tile->b);
    b.row = at.column;
    for (k = 0; k < problem->k; k += GEMMEPI__HOST_DEPTH) {
        a.column = k;
        a.count = gemmepi__smaller(problem->k - k, GEMMEPI__HOST_DEPTH);
        for (r = 0; r < rows; r++) {
            a.row = at.row + r;
            gemmepi__host_load_factor(problem, arguments, GEMMEPI__A, a, 0, tile->a[r]);
        }
        for (s = 0; s < a.count; s++) {
            b.column = k + s;
            gemmepi__host_load_factor(problem, arguments, GEMMEPI__B, b, 0, tile->b[s]);
        }
        for (r = 0; r < rows; r++)
            gemmepi__host_add_steps(tile->a[r], tile->b, a.count, v[r]);
    }
}

/* The scale of C, D, AUX or the residual. */
static double gemmepi__host_scale(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                  int operand, int64_t item) {
    return problem->views[operand].scale ? gemmepi__scale_at(problem, arguments, operand, item, 0, 0) : 1;
}

/* Of a matrix or vector, scaled. */
static void gemmepi__host_load(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                               int operand, gemmepi__host_place at, double *out) {
    const gemmepi__view *view = &problem->views[operand];
    int64_t c;
    gemmepi__load_run(view->dtype, arguments->pointers[operand],
                      gemmepi__index_of(view, at.item, at.row, at.column), 1, at.count, out);
    if (operand <= GEMMEPI__RESIDUAL && view->scale)
        for (c = 0; c < at.count; c++)
            out[c] *= gemmepi__host_scale(problem, arguments, operand, at.item);
}

static void gemmepi__host_store(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                int operand, gemmepi__host_place at, const double *v) {
    const gemmepi__view *view = &problem->views[operand];
    double scale = gemmepi__host_scale(problem, arguments, operand, at.item), scaled[GEMMEPI__HOST_TILE];
    int64_t c;
    for (c = 0; c < at.count; c++)
        scaled[c] = v[c] * scale;
    gemmepi__store_run(view->dtype, arguments->pointers[operand],
                       gemmepi__index_of(view, at.item, at.row, at.column), at.count,
                       view->scale ? scaled : v);
}

/* The largest |v| so far; NaN stays. */
static void gemmepi__host_amax(double *amax, int64_t columns, const double *v) {
    int64_t c;
    for (c = 0; c < columns; c++)
        if (*amax == *amax && !(fabs(v[c]) <= *amax))
            *amax = fabs(v[c]);
}

static void gemmepi__host_store_mask(const gemmepi__view *aux, unsigned char *mask, gemmepi__host_place at,
                                     const double *v) {
    int64_t c;
    for (c = 0; c < at.count; c++) {
        int64_t bit = gemmepi__index_of(aux, at.item, at.row, at.column + c);
        unsigned char *byte = &mask[bit / 8], one = (unsigned char)(1u << (bit % 8));
        *byte = (unsigned char)(v[c] > 0 ? *byte | one : *byte & ~one);
    }
}

/* The mask's bits as 1 and 0. */
static void gemmepi__host_load_mask(const gemmepi__view *aux, const unsigned char *mask,
                                    gemmepi__host_place at, double *out) {
    int64_t c;
    for (c = 0; c < at.count; c++) {
        int64_t bit = gemmepi__index_of(aux, at.item, at.row, at.column + c);
        out[c] = mask[bit / 8] >> (bit % 8) & 1;
    }
}

/* The upstream gradient and the pre-activation, of which one is v and the other aux, into the gradient of a run of one row:
   with GATED of the same columns of both halves. */
static void gemmepi__host_backward(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                   gemmepi__host_place at, double *first, double *second) {
    uint32_t activation = gemmepi__activation(problem->epilogue);
    int gated = gemmepi__has(problem, GEMMEPI_GATED), upstream = gemmepi__has(problem, GEMMEPI_UPSTREAM);
    int gate_first = gemmepi__has(problem, GEMMEPI_GATE_FIRST);
    double aux[2][GEMMEPI__HOST_TILE] = {{0}};
    int64_t c;
    if (problem->views[GEMMEPI__AUX].bits == 1)
        gemmepi__host_load_mask(&problem->views[GEMMEPI__AUX],
                                (const unsigned char *)arguments->pointers[GEMMEPI__AUX], at,
                                aux[0]); /* 1 is as good as any pre-activation above 0 */
    else
        gemmepi__host_load(problem, arguments, GEMMEPI__AUX, at, aux[0]);
    if (gated && !upstream)
        gemmepi__host_load(problem, arguments, GEMMEPI__AUX, gemmepi__host_in_half(problem, at, 1), aux[1]);
    for (c = 0; c < at.count; c++) {
        double dy = upstream ? aux[0][c] : first[c];
        double p = upstream ? first[c] : aux[0][c], q = upstream && gated ? second[c] : aux[1][c];
        double value = gate_first ? q : p, gate = gate_first ? p : q;
        double *to_value = gate_first ? second : first, *to_gate = gate_first ? first : second;
        if (gated) {
            to_value[c] = gemmepi__times_activation(activation, problem->parameter, dy, gate);
            to_gate[c] = gemmepi__gate_gradient(activation, problem->parameter, dy, value, gate);
        } else {
            first[c] = gemmepi__times_derivative(activation, problem->parameter, dy, p);
        }
    }
}

/* v = factor v, and v = v + other, modulo 2^32 where the result is I32 */
static void gemmepi__host_multiply_by(const gemmepi__problem *problem, double factor, int64_t columns,
                                      double *v) {
    int64_t c;
    for (c = 0; c < columns; c++)
        v[c] = problem->accumulator == GEMMEPI_I32
                   ? (double)gemmepi__signed((uint32_t)gemmepi__wrap(v[c]) * (uint32_t)gemmepi__wrap(factor))
                   : v[c] * factor;
}

static void gemmepi__host_add(const gemmepi__problem *problem, const double *other, int64_t columns,
                              double *v) {
    int64_t c;
    for (c = 0; c < columns; c++)
        v[c] = problem->accumulator == GEMMEPI_I32 ? (double)gemmepi__wrap(v[c] + other[c]) : v[c] + other[c];
}

/* The scales of A and B that are factors of the whole sum: so sums of I8 stay exact up to here. */
static void gemmepi__host_scale_sums(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                     gemmepi__host_place at, double *v) {
    int scale_a = problem->views[GEMMEPI__A].scale, scale_b = problem->views[GEMMEPI__B].scale;
    int64_t c;
    for (c = 0; c < at.count; c++) {
        if (scale_a == GEMMEPI_SCALE_TENSOR || scale_a == GEMMEPI_SCALE_OUTER)
            v[c] *= gemmepi__scale_at(problem, arguments, GEMMEPI__A, at.item, at.row, 0);
        if (scale_b == GEMMEPI_SCALE_TENSOR || scale_b == GEMMEPI_SCALE_OUTER)
            v[c] *= gemmepi__scale_at(problem, arguments, GEMMEPI__B, at.item, at.column + c, 0);
    }
}

/* v up to the activation: from the bare sums, factors, C, bias, and what AUX keeps of it. */
static void gemmepi__host_finish_product(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                         gemmepi__host_tile *tile, gemmepi__host_place at, double *v) {
    double other[GEMMEPI__HOST_TILE];
    gemmepi__host_scale_sums(problem, arguments, at, v);
    gemmepi__host_multiply_by(problem, arguments->alpha, at.count, v);
    if (arguments->uses_c && arguments->beta != 0) {
        gemmepi__host_load(problem, arguments, GEMMEPI__C, at, other);
        gemmepi__host_multiply_by(problem, arguments->beta, at.count, other);
        gemmepi__host_add(problem, other, at.count, v);
    }
    if (gemmepi__has(problem, GEMMEPI_BIAS)) {
        gemmepi__host_place bias = at;
        bias.row = 0;
        gemmepi__host_load(problem, arguments, GEMMEPI__BIAS, bias, other);
        gemmepi__host_add(problem, other, at.count, v);
    }
    if (!gemmepi__has(problem, GEMMEPI_AUX))
        return;
    gemmepi__host_amax(&tile->amax_aux, at.count, v);
    if (problem->views[GEMMEPI__AUX].bits == 1)
        gemmepi__host_store_mask(&problem->views[GEMMEPI__AUX],
                                 (unsigned char *)arguments->pointers[GEMMEPI__AUX], at, v);
    else
        gemmepi__host_store(problem, arguments, GEMMEPI__AUX, at, v);
}

/* The activation of a run, with GATED of a value's and a gate's, which leaves the result in the first. */
static void gemmepi__host_forward(const gemmepi__problem *problem, int64_t columns, double *first,
                                  double *second) {
    uint32_t activation = gemmepi__activation(problem->epilogue);
    int gate_first = gemmepi__has(problem, GEMMEPI_GATE_FIRST);
    int64_t c;
    for (c = 0; c < columns; c++) {
        double value = gate_first ? second[c] : first[c], gate = gate_first ? first[c] : second[c];
        if (!gemmepi__has(problem, GEMMEPI_GATED)) {
            first[c] = gemmepi__activate(activation, problem->parameter, first[c]);
        } else if (problem->accumulator == GEMMEPI_I32) {
            gemmepi__host_multiply_by(problem, gemmepi__activate(activation, 0, gate), 1, &value);
            first[c] = value;
        } else {
            first[c] = gemmepi__times_activation(activation, problem->parameter, value, gate);
        }
    }
}

/* The whole epilogue on a run of one row, with GATED on the same columns of both halves: the bare sums go in and what
   D stores comes out. */
static void gemmepi__host_epilogue(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                   gemmepi__host_tile *tile, gemmepi__host_place at, double *const v[2]) {
    double other[GEMMEPI__HOST_TILE];
    int half;
    for (half = 0; half < gemmepi__halves_in(problem); half++)
        gemmepi__host_finish_product(problem, arguments, tile, gemmepi__host_in_half(problem, at, half),
                                     v[half]);
    if (gemmepi__has(problem, GEMMEPI_BACKWARD))
        gemmepi__host_backward(problem, arguments, at, v[0], v[1]);
    else
        gemmepi__host_forward(problem, at.count, v[0], v[1]);
    for (half = 0; half < gemmepi__halves_out(problem); half++) {
        if (gemmepi__has_operand(problem, GEMMEPI__ROW_FACTOR)) {
            gemmepi__host_place factor = at; /* [m], one for the row */
            factor.row = 0, factor.column = at.row, factor.count = 1;
            gemmepi__host_load(problem, arguments, GEMMEPI__ROW_FACTOR, factor, other);
            gemmepi__host_multiply_by(problem, other[0], at.count, v[half]);
        }
        if (gemmepi__has(problem, GEMMEPI_RESIDUAL)) {
            gemmepi__host_load(problem, arguments, GEMMEPI__RESIDUAL,
                               gemmepi__host_in_half(problem, at, half), other);
            gemmepi__host_add(problem, other, at.count, v[half]);
        }
        gemmepi__host_amax(&tile->amax_d, at.count, v[half]);
    }
}

/* A sum with what rounding took from it (Neumaier), so that it is right to a unit however many terms it has. */
typedef struct gemmepi__sum {
    double total, lost;
} gemmepi__sum;

static void gemmepi__add_to(gemmepi__sum *sum, double term) {
    double total = sum->total + term;
    int larger = (sum->total < 0 ? -sum->total : sum->total) >= (term < 0 ? -term : term);
    if (total - total == 0) /* else infinite or NaN, and nothing to be saved */
        sum->lost += larger ? (sum->total - total) + term : (term - total) + sum->total;
    sum->total = total;
}

/* bias_grad (+)= sums, which start anew */
static void gemmepi__host_store_sums(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                     gemmepi__host_place at, gemmepi__sum *sums) {
    const gemmepi__view *view = &problem->views[GEMMEPI__BIAS_GRAD];
    void *bias_grad = arguments->pointers[GEMMEPI__BIAS_GRAD];
    double values[GEMMEPI__HOST_TILE] = {0};
    int64_t first = gemmepi__index_of(view, at.item, 0, at.column), c;
    if (gemmepi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD))
        gemmepi__load_run(view->dtype, bias_grad, first, 1, at.count, values);
    for (c = 0; c < at.count; c++) {
        gemmepi__add_to(&sums[c], values[c]);
        values[c] = sums[c].total - sums[c].total == 0 ? sums[c].total + sums[c].lost : sums[c].total;
    }
    gemmepi__store_run(view->dtype, bias_grad, first, at.count, values);
    memset(sums, 0, (size_t)at.count * sizeof *sums);
}

/* Where a finished product lies, if it is not to be made. */
typedef struct gemmepi__host_given {
    const gemmepi__view *view;
    const void *data;
} gemmepi__host_given;

/* A tile of D from `at` on, with GATED the same columns of both halves; they are added to sums where the epilogue wants them. */
static void gemmepi__host_tile_of(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                  const gemmepi__host_given *given, gemmepi__host_tile *tile,
                                  gemmepi__host_place at, gemmepi__sum sums[2][GEMMEPI__HOST_TILE]) {
    int64_t rows = gemmepi__smaller(problem->m - at.row, GEMMEPI__HOST_TILE), r, c;
    int half;
    for (half = 0; half < gemmepi__halves_in(problem); half++) {
        gemmepi__host_place from = gemmepi__host_in_half(problem, at, half);
        if (!given)
            gemmepi__host_multiply(problem, arguments, tile, from, rows, tile->v[half]);
        for (r = 0; given && r < rows; r++)
            gemmepi__load_run(given->view->dtype, given->data,
                              gemmepi__index_of(given->view, from.item, from.row + r, from.column), 1,
                              from.count, tile->v[half][r]);
    }
    for (r = 0; r < rows; r++, at.row++) {
        double *v[2];
        v[0] = tile->v[0][r];
        v[1] = tile->v[1][r];
        gemmepi__host_epilogue(problem, arguments, tile, at, v);
        for (half = 0; half < gemmepi__halves_out(problem); half++) {
            for (c = 0; c < at.count && gemmepi__has(problem, GEMMEPI_BGRAD); c++)
                gemmepi__add_to(&sums[half][c], v[half][c]);
            if (!(problem->flags & GEMMEPI__ONLY_SUMS))
                gemmepi__host_store(problem, arguments, GEMMEPI__D, gemmepi__host_in_half(problem, at, half),
                                    v[half]);
        }
    }
}

/* sum += the sum over k of row `outer` of op(A) or column `outer` of op(B) */
static void gemmepi__host_sum_line(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                   int operand, int64_t item, int64_t outer, gemmepi__sum *sum) {
    double values[GEMMEPI__HOST_DEPTH];
    gemmepi__host_place at;
    int64_t s;
    at.item = item;
    at.row = outer;
    for (at.column = 0; at.column < problem->k; at.column += GEMMEPI__HOST_DEPTH) {
        at.count = gemmepi__smaller(problem->k - at.column, GEMMEPI__HOST_DEPTH);
        gemmepi__host_load_factor(problem, arguments, operand, at, 1, values);
        for (s = 0; s < at.count; s++)
            gemmepi__add_to(sum, values[s]);
    }
}

/* bias_grad (+)= sums over k of op(A)'s rows or op(B)'s columns */
static void gemmepi__host_sum_operand(const gemmepi__problem *problem, const gemmepi__arguments *arguments) {
    int operand = gemmepi__has(problem, GEMMEPI_BGRAD_A) ? GEMMEPI__A : GEMMEPI__B;
    int shared = problem->views[GEMMEPI__BIAS_GRAD].batch_stride == 0;
    int64_t length = problem->views[GEMMEPI__BIAS_GRAD].length;
    gemmepi__host_place at;
    gemmepi__sum sum = {0, 0};
    at.row = 0;
    at.count = 1;
    for (at.column = 0; at.column < length; at.column++)
        for (at.item = 0; at.item < problem->batch; at.item++) {
            gemmepi__host_sum_line(problem, arguments, operand, at.item, at.column, &sum);
            if (!shared || at.item + 1 == problem->batch)
                gemmepi__host_store_sums(problem, arguments, at, &sum);
        }
}

static void gemmepi__host_store_amax(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                     int operand, double amax) {
    if (gemmepi__has_operand(problem, operand))
        gemmepi__store_run(problem->views[operand].dtype, arguments->pointers[operand], 0, 1, &amax);
}

/* The product, or the epilogue over one that is given. */
static void gemmepi__host_product(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                  const gemmepi__host_given *given) {
    int shared = problem->views[GEMMEPI__BIAS_GRAD].batch_stride == 0, half;
    int64_t half_columns = gemmepi__half_columns(problem);
    gemmepi__sum sums[2][GEMMEPI__HOST_TILE];
    gemmepi__host_place at;
    gemmepi__host_tile tile;
    memset(sums, 0, sizeof sums);
    tile.amax_d = tile.amax_aux = 0;
    for (at.column = 0; at.column < half_columns; at.column += GEMMEPI__HOST_TILE) {
        at.count = gemmepi__smaller(half_columns - at.column, GEMMEPI__HOST_TILE);
        for (at.item = 0; at.item < problem->batch; at.item++) {
            for (at.row = 0; at.row < problem->m; at.row += GEMMEPI__HOST_TILE)
                gemmepi__host_tile_of(problem, arguments, given, &tile, at, sums);
            if (!gemmepi__has(problem, GEMMEPI_BGRAD) || (shared && at.item + 1 < problem->batch))
                continue;
            for (half = 0; half < gemmepi__halves_out(problem); half++)
                gemmepi__host_store_sums(problem, arguments, gemmepi__host_in_half(problem, at, half),
                                         sums[half]);
        }
    }
    if (!gemmepi__is_empty(problem)) {
        gemmepi__host_store_amax(problem, arguments, GEMMEPI__AMAX_D, tile.amax_d);
        gemmepi__host_store_amax(problem, arguments, GEMMEPI__AMAX_AUX, tile.amax_aux);
    }
    if (gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        gemmepi__host_sum_operand(problem, arguments);
}

#endif
