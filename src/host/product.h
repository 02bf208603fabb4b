/* The whole product in plain C: a tile of the result at a time, everything in double, rounded once. */
#ifndef GEMMEPI_HOST_PRODUCT_H
#define GEMMEPI_HOST_PRODUCT_H

#include "../problem/arguments.h"
#include "activation.h"
#include "convert.h"

/* A tile of 32 x 32 results over 64 steps of k keeps all three blocks (40 KB of doubles) near the first-level cache
   and off the heap. */
#define GEMMEPI__HOST_TILE  32
#define GEMMEPI__HOST_DEPTH 64

typedef struct gemmepi__host_tile {
    double v[GEMMEPI__HOST_TILE][GEMMEPI__HOST_TILE];
    double a[GEMMEPI__HOST_TILE][GEMMEPI__HOST_DEPTH];
    double b[GEMMEPI__HOST_DEPTH][GEMMEPI__HOST_TILE];
} gemmepi__host_tile;

static int64_t gemmepi__smaller(int64_t x, int64_t y) {
    return x < y ? x : y;
}

/* The element (row, column) of op() of item `item`. */
static int64_t gemmepi__index_of(const gemmepi__view *view, int64_t item, int64_t row, int64_t column) {
    return item * view->batch_stride + (view->transposed ? column * view->ld + row : row * view->ld + column);
}

/* tile->v = op(A)[rows from i, :] op(B)[:, columns from j] of one item */
static void gemmepi__host_multiply(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                   gemmepi__host_tile *tile, int64_t item, int64_t i, int64_t rows, int64_t j,
                                   int64_t columns) {
    const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
    int64_t k, r, c, s;
    memset(tile->v, 0, sizeof tile->v);
    memset(tile->b, 0, sizeof tile->b);
    for (k = 0; k < problem->k; k += GEMMEPI__HOST_DEPTH) {
        int64_t depth = gemmepi__smaller(problem->k - k, GEMMEPI__HOST_DEPTH);
        for (r = 0; r < rows; r++)
            gemmepi__load_run(a->dtype, arguments->pointers[GEMMEPI__A], gemmepi__index_of(a, item, i + r, k),
                              a->transposed ? a->ld : 1, depth, tile->a[r]);
        for (s = 0; s < depth; s++)
            gemmepi__load_run(b->dtype, arguments->pointers[GEMMEPI__B], gemmepi__index_of(b, item, k + s, j),
                              b->transposed ? b->ld : 1, columns, tile->b[s]);
        for (r = 0; r < rows; r++)
            for (s = 0; s < depth; s++)
                for (c = 0; c < GEMMEPI__HOST_TILE; c++)
                    tile->v[r][c] += tile->a[r][s] * tile->b[s][c];
    }
}

static void gemmepi__host_store_mask(const gemmepi__view *aux, unsigned char *mask, int64_t item, int64_t i,
                                     int64_t j, int64_t columns, const double *v) {
    int64_t c;
    for (c = 0; c < columns; c++) {
        int64_t bit = gemmepi__index_of(aux, item, i, j + c);
        unsigned char *byte = &mask[bit / 8], one = (unsigned char)(1u << (bit % 8));
        *byte = (unsigned char)(v[c] > 0 ? *byte | one : *byte & ~one);
    }
}

/* v *= act'(aux) for a run of one row */
static void gemmepi__host_backward(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                   int64_t item, int64_t i, int64_t j, int64_t columns, double *v) {
    const gemmepi__view *aux = &problem->views[GEMMEPI__AUX];
    uint32_t activation = gemmepi__activation(problem->epilogue);
    const unsigned char *mask = (const unsigned char *)arguments->pointers[GEMMEPI__AUX];
    double saved[GEMMEPI__HOST_TILE];
    int64_t c;
    if (aux->bits == 1) {
        for (c = 0; c < columns; c++) {
            int64_t bit = gemmepi__index_of(aux, item, i, j + c);
            v[c] = mask[bit / 8] >> (bit % 8) & 1 ? v[c] : 0;
        }
        return;
    }
    gemmepi__load_run(aux->dtype, mask, gemmepi__index_of(aux, item, i, j), 1, columns, saved);
    for (c = 0; c < columns; c++)
        v[c] *= gemmepi__derivative(activation, saved[c]);
}

/* The epilogue of numerics on a run of one row: v goes in as the bare sums and comes out as what D stores. */
static void gemmepi__host_epilogue(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                   int64_t item, int64_t i, int64_t j, int64_t columns, double *v) {
    const gemmepi__view *views = problem->views;
    void *const *pointers = arguments->pointers;
    double other[GEMMEPI__HOST_TILE];
    int64_t c;
    for (c = 0; c < columns; c++)
        v[c] *= arguments->alpha;
    if (arguments->uses_c && arguments->beta != 0) {
        gemmepi__load_run(views[GEMMEPI__C].dtype, pointers[GEMMEPI__C],
                          gemmepi__index_of(&views[GEMMEPI__C], item, i, j), 1, columns, other);
        for (c = 0; c < columns; c++)
            v[c] += arguments->beta * other[c];
    }
    if (gemmepi__has(problem, GEMMEPI_BIAS)) {
        gemmepi__load_run(views[GEMMEPI__BIAS].dtype, pointers[GEMMEPI__BIAS],
                          gemmepi__index_of(&views[GEMMEPI__BIAS], item, 0, j), 1, columns, other);
        for (c = 0; c < columns; c++)
            v[c] += other[c];
    }
    if (gemmepi__has(problem, GEMMEPI_AUX)) {
        if (views[GEMMEPI__AUX].bits == 1)
            gemmepi__host_store_mask(&views[GEMMEPI__AUX], (unsigned char *)pointers[GEMMEPI__AUX], item, i,
                                     j, columns, v);
        else
            gemmepi__store_run(views[GEMMEPI__AUX].dtype, pointers[GEMMEPI__AUX],
                               gemmepi__index_of(&views[GEMMEPI__AUX], item, i, j), columns, v);
    }
    if (gemmepi__has(problem, GEMMEPI_BACKWARD))
        gemmepi__host_backward(problem, arguments, item, i, j, columns, v);
    else
        for (c = 0; c < columns; c++)
            v[c] = gemmepi__activate(gemmepi__activation(problem->epilogue), v[c]);
    if (gemmepi__has(problem, GEMMEPI_RESIDUAL)) {
        gemmepi__load_run(views[GEMMEPI__RESIDUAL].dtype, pointers[GEMMEPI__RESIDUAL],
                          gemmepi__index_of(&views[GEMMEPI__RESIDUAL], item, i, j), 1, columns, other);
        for (c = 0; c < columns; c++)
            v[c] += other[c];
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

/* bias_grad[first ...] of one item (+)= sums, which start anew */
static void gemmepi__host_store_sums(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                     int64_t item, int64_t first, int64_t count, gemmepi__sum *sums) {
    const gemmepi__view *view = &problem->views[GEMMEPI__BIAS_GRAD];
    void *bias_grad = arguments->pointers[GEMMEPI__BIAS_GRAD];
    double values[GEMMEPI__HOST_TILE] = {0};
    int64_t at = gemmepi__index_of(view, item, 0, first), c;
    if (gemmepi__has(problem, GEMMEPI_BGRAD_ACCUMULATE))
        gemmepi__load_run(view->dtype, bias_grad, at, 1, count, values);
    for (c = 0; c < count; c++) {
        gemmepi__add_to(&sums[c], values[c]);
        values[c] = sums[c].total - sums[c].total == 0 ? sums[c].total + sums[c].lost : sums[c].total;
    }
    gemmepi__store_run(view->dtype, bias_grad, at, count, values);
    memset(sums, 0, (size_t)count * sizeof *sums);
}

/* A tile of D; its columns are added to sums where the epilogue wants them, else sums is NULL. */
static void gemmepi__host_tile_row(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                   gemmepi__host_tile *tile, int64_t item, int64_t i, int64_t j,
                                   int64_t columns, gemmepi__sum *sums) {
    const gemmepi__view *d = &problem->views[GEMMEPI__D];
    int64_t rows = gemmepi__smaller(problem->m - i, GEMMEPI__HOST_TILE), r, c;
    gemmepi__host_multiply(problem, arguments, tile, item, i, rows, j, columns);
    for (r = 0; r < rows; r++) {
        gemmepi__host_epilogue(problem, arguments, item, i + r, j, columns, tile->v[r]);
        for (c = 0; c < columns && sums; c++)
            gemmepi__add_to(&sums[c], tile->v[r][c]);
        gemmepi__store_run(d->dtype, arguments->pointers[GEMMEPI__D], gemmepi__index_of(d, item, i + r, j),
                           columns, tile->v[r]);
    }
}

/* sum += the sum over k of row i of op(A) or column i of op(B) */
static void gemmepi__host_sum_line(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                   int operand, int64_t item, int64_t i, gemmepi__sum *sum) {
    const gemmepi__view *view = &problem->views[operand];
    int along = (operand == GEMMEPI__A) != (view->transposed != 0); /* k runs along the lines as stored */
    double values[GEMMEPI__HOST_DEPTH];
    int64_t k, s, depth;
    for (k = 0; k < problem->k; k += GEMMEPI__HOST_DEPTH) {
        int64_t first =
            operand == GEMMEPI__A ? gemmepi__index_of(view, item, i, k) : gemmepi__index_of(view, item, k, i);
        depth = gemmepi__smaller(problem->k - k, GEMMEPI__HOST_DEPTH);
        gemmepi__load_run(view->dtype, arguments->pointers[operand], first, along ? 1 : view->ld, depth,
                          values);
        for (s = 0; s < depth; s++)
            gemmepi__add_to(sum, values[s]);
    }
}

/* bias_grad (+)= sums over k of op(A)'s rows or op(B)'s columns */
static void gemmepi__host_sum_operand(const gemmepi__problem *problem, const gemmepi__arguments *arguments) {
    int operand = gemmepi__has(problem, GEMMEPI_BGRAD_A) ? GEMMEPI__A : GEMMEPI__B;
    int shared = problem->views[GEMMEPI__BIAS_GRAD].batch_stride == 0;
    int64_t length = problem->views[GEMMEPI__BIAS_GRAD].length, i, item;
    gemmepi__sum sum = {0, 0};
    for (i = 0; i < length; i++) {
        for (item = 0; item < problem->batch; item++) {
            gemmepi__host_sum_line(problem, arguments, operand, item, i, &sum);
            if (!shared || item + 1 == problem->batch)
                gemmepi__host_store_sums(problem, arguments, item, i, 1, &sum);
        }
    }
}

static void gemmepi__host_product(const gemmepi__problem *problem, const gemmepi__arguments *arguments) {
    int wants_sums = gemmepi__has(problem, GEMMEPI_BGRAD);
    int shared = problem->views[GEMMEPI__BIAS_GRAD].batch_stride == 0;
    gemmepi__sum sums[GEMMEPI__HOST_TILE];
    gemmepi__host_tile tile;
    int64_t i, j, item;
    memset(sums, 0, sizeof sums);
    for (j = 0; j < problem->n; j += GEMMEPI__HOST_TILE) {
        int64_t columns = gemmepi__smaller(problem->n - j, GEMMEPI__HOST_TILE);
        for (item = 0; item < problem->batch; item++) {
            for (i = 0; i < problem->m; i += GEMMEPI__HOST_TILE)
                gemmepi__host_tile_row(problem, arguments, &tile, item, i, j, columns,
                                       wants_sums ? sums : NULL);
            if (wants_sums && (!shared || item + 1 == problem->batch))
                gemmepi__host_store_sums(problem, arguments, item, j, columns, sums);
        }
    }
    if (gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        gemmepi__host_sum_operand(problem, arguments);
}

#endif
