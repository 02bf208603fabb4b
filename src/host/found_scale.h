/* FIND_SCALE_D on the host, and the scales of A or B that a formula makes: D in F32, then its scales, or the scale of earlier runs' amax, then D. */
#ifndef GEMMEPI_HOST_FOUND_SCALE_H
#define GEMMEPI_HOST_FOUND_SCALE_H

#include "../problem/grouped.h"
#include "product.h"

/* A or B that a formula makes, as a D whose scales are found. */
static gpi__problem gpi__problem_of_found(const gpi__problem *problem, int i) {
    const gpi__made *made = &problem->made[i];
    gpi__problem of;
    memset(&of, 0, sizeof of);
    of.batch = made->formula->placed.items;
    of.flags = problem->flags;
    of.found_scale = made->view.scale;
    of.views[GPI__D] = made->view;
    of.views[GPI__D].transposed = 0;
    of.views[GPI__FOUND_SCALE_D] = made->scale;
    return of;
}

/* The amax over the largest number of D's type, as kernels/found_scale.cuh has it. */
static float gpi__host_found_scale(const gpi__problem *problem, double amax) {
    double scale = amax / (problem->views[GPI__D].dtype == GEMMEPI_E5M2 ? 57344.0 : 448.0), power = 1;
    if (amax == 0 || !(amax <= FLT_MAX))
        return 1;
    scale = scale < FLT_MIN ? (double)FLT_MIN : (double)(float)scale;
    if (!(problem->flags & GEMMEPI_POWER_OF_TWO_SCALE))
        return (float)scale;
    while (power < scale)
        power *= 2;
    while (power / 2 >= scale)
        power /= 2;
    return (float)power;
}

/* Of `count` columns of a line of x, which lies as D does. */
static void gpi__host_quantise(const gpi__problem *problem, const gpi__arguments *arguments, const float *x,
                               gpi__host_place at) {
    const gpi__view *d = &problem->views[GPI__D], *found = &problem->views[GPI__FOUND_SCALE_D];
    float *scales = (float *)arguments->pointers[GPI__FOUND_SCALE_D], scale;
    int64_t first = gpi__index_of(d, at.item, at.row, at.column), i;
    double amax = 0, values[128];
    for (i = 0; i < at.count; i++)
        if (amax == amax && !(fabs((double)x[first + i]) <= amax))
            amax = fabs((double)x[first + i]);
    scale = gpi__host_found_scale(problem, amax);
    scales[at.item * found->batch_stride + at.column / 128 * found->ld + at.row] = scale;
    for (; at.count > 0; at.count -= i, first += i) {
        for (i = 0; i < gpi__smaller(at.count, 128); i++)
            values[i] = (double)x[first + i] / (double)scale;
        gpi__store_run(d->dtype, arguments->pointers[GPI__D], first, i, values);
    }
}

static void gpi__host_find_scales_of_row(const gpi__problem *problem, const gpi__arguments *arguments,
                                         const float *x, int64_t item, int64_t row) {
    const gpi__view *d = &problem->views[GPI__D];
    int64_t step = problem->found_scale == GEMMEPI_SCALE_OUTER ? d->length : 128;
    gpi__host_place at;
    at.item = item;
    at.row = row;
    for (at.column = 0; at.column < d->length; at.column += step) {
        at.count = gpi__smaller(d->length - at.column, step);
        gpi__host_quantise(problem, arguments, x, at);
    }
}

/* lists: of a grouped product, of whose D these are the rows that positions have, else NULL. */
static void gpi__host_find_scales(const gpi__problem *problem, const gpi__arguments *arguments,
                                  const gpi__group_lists *lists, const float *x) {
    const int32_t *rows = lists ? lists->lists[GPI__FAULT_D] : NULL;
    int64_t item, row;
    for (row = 0; lists && row < lists->lists[GPI__FAULT_ENDS][problem->grouping.groups - 1]; row++)
        gpi__host_find_scales_of_row(problem, arguments, x, 0, rows ? rows[row] : row);
    if (lists)
        return;
    for (item = 0; item < problem->batch; item++)
        for (row = 0; row < problem->views[GPI__D].lines; row++)
            gpi__host_find_scales_of_row(problem, arguments, x, item, row);
}

/* The scale of the amax of earlier runs, which all move one place on. Returns its reciprocal, by which D is multiplied. */
static float gpi__host_scale_of_history(const gpi__problem *problem, const gpi__arguments *arguments) {
    float *history = (float *)arguments->pointers[GPI__AMAX_HISTORY];
    float *scale = (float *)arguments->pointers[GPI__FOUND_SCALE_D];
    float amax = 0;
    int i;
    for (i = 0; i < problem->amax_history; i++)
        if ((float)fabs((double)history[i]) > amax && (float)fabs((double)history[i]) <= FLT_MAX)
            amax = (float)fabs((double)history[i]);
    for (i = problem->amax_history - 1; i > 0; i--)
        history[i] = (float)fabs((double)history[i - 1]);
    history[0] = 0;
    *scale = gpi__host_found_scale(problem, (double)amax);
    return 1 / *scale;
}

#endif
