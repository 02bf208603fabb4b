/* The whole product in plain C: a tile of the result at a time, everything in double, rounded once. */
#ifndef GEMMEPI_HOST_PRODUCT_H
#define GEMMEPI_HOST_PRODUCT_H

#include "../formula/evaluate.h"
#include "../problem/arguments.h"

/* A tile of 32 x 32 results over 64 steps of k keeps all blocks (48 KB of doubles) near the first-level cache
   and off the heap. */
#define GPI__HOST_TILE  32
#define GPI__HOST_DEPTH 64

typedef struct gpi__host_tile {
    double a[GPI__HOST_TILE][GPI__HOST_DEPTH];
    double b[GPI__HOST_DEPTH][GPI__HOST_TILE];
} gpi__host_tile;

/* `count` elements of a row of one item, from (row, column) on; of A and B row is the outer index, A's row or B's column, and
   column is k. */
typedef struct gpi__host_place {
    int64_t item, row, column, count;
} gpi__host_place;

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
    memset(v, 0, sizeof(double[GPI__HOST_TILE][GPI__HOST_TILE]));
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

/* The number by which a row or column of the sums, or an element of C or D, is multiplied. */
static double gpi__host_scale(const gpi__problem *problem, const gpi__arguments *arguments, int operand,
                              int64_t item, int64_t outer) {
    int mode = problem->views[operand].scale;
    return mode == GEMMEPI_SCALE_TENSOR || mode == GEMMEPI_SCALE_OUTER
               ? gpi__scale_at(problem, arguments, operand, item, outer, 0)
               : 1;
}

static void gpi__store_strided(int dtype, void *base, int64_t first, int64_t step, int64_t count,
                               const double *values) {
    int64_t i;
    if (step == 1)
        gpi__store_run(dtype, base, first, count, values);
    else
        for (i = 0; i < count; i++)
            gpi__store_run(dtype, base, first + i * step, 1, &values[i]);
}

/* The largest |v| so far; NaN stays. */
static void gpi__host_amax(double *amax, int64_t columns, const double *v) {
    int64_t c;
    for (c = 0; c < columns; c++)
        if (*amax == *amax && !(fabs(v[c]) <= *amax))
            *amax = fabs(v[c]);
}

/* From the bare sums, of I8 exact up to here, to v: with the scales that are factors of the whole sum, alpha and C, modulo 2^32 where the result
   is in I32. */
static void gpi__host_finish_product(const gpi__problem *problem, const gpi__arguments *arguments,
                                     gpi__host_place at, double *v) {
    const gpi__view *view = &problem->views[GPI__C];
    double beta = arguments->uses_c ? arguments->beta : 0, other[GPI__HOST_TILE] = {0};
    double scale = gpi__host_scale(problem, arguments, GPI__A, at.item, at.row);
    double scale_c = beta != 0 ? gpi__host_scale(problem, arguments, GPI__C, at.item, 0) : 1;
    int64_t i;
    if (beta != 0)
        gpi__load_run(view->dtype, arguments->pointers[GPI__C],
                      gpi__index_of(view, at.item, at.row, at.column), 1, at.count, other);
    for (i = 0; i < at.count; i++) {
        v[i] = v[i] * scale * gpi__host_scale(problem, arguments, GPI__B, at.item, at.column + i);
        if (problem->accumulator == GEMMEPI_I32)
            v[i] = gpi__evaluate_whole(GPI__OP_ADD, gpi__evaluate_whole(GPI__OP_MUL, v[i], arguments->alpha),
                                       gpi__evaluate_whole(GPI__OP_MUL, other[i], beta));
        else
            v[i] = beta != 0 ? v[i] * arguments->alpha + other[i] * scale_c * beta : v[i] * arguments->alpha;
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
    int operand = gpi__summed_operand(problem);
    const gpi__view *view = &problem->views[GPI__BIAS_GRAD];
    void *to = arguments->pointers[GPI__BIAS_GRAD];
    gpi__sum sum = {0, 0};
    int64_t i, item;
    double value;
    for (i = 0; i < view->length; i++)
        for (item = 0; item < problem->batch; item++) {
            gpi__host_sum_line(problem, arguments, operand, item, i, &sum);
            if (!view->batch_stride && item + 1 < problem->batch)
                continue;
            if (gpi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD)) {
                gpi__load_run(view->dtype, to, item * view->batch_stride + i, 1, 1, &value);
                gpi__add_to(&sum, value);
            }
            value = gpi__total_of(&sum);
            gpi__store_run(view->dtype, to, item * view->batch_stride + i, 1, &value);
            memset(&sum, 0, sizeof sum);
        }
}

static void gpi__host_store_amax(const gpi__problem *problem, const gpi__arguments *arguments, int operand,
                                 double amax) {
    if (gpi__has_operand(problem, operand))
        gpi__store_run(problem->views[operand].dtype, arguments->pointers[operand], 0, 1, &amax);
}

#endif
