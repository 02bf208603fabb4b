/* Element-wise operations in plain C: a run of units at a time, everything in double, rounded once. */
#ifndef GEMMEPI_HOST_ELEMENTWISE_H
#define GEMMEPI_HOST_ELEMENTWISE_H

#include "../problem/operation_graph.h"
#include "../formula/evaluate.h"
#include "product.h"

#include <float.h>

/* >>the loops of a nest */

typedef struct gpi__loops {
    const gpi__task *task;
    void *const *pointers;
    gpi__nest nest;
    int64_t index[GPI__MAX_RANK]; /* where in the nest the next run begins */
    gpi__operation_formula operation;
    gpi__run run;
    gpi__cells values[GPI__OPERATION_NODE_COUNT];
} gpi__loops;

static void *gpi__loops_base(const gpi__loops *loops, int t) {
    return (char *)loops->pointers[loops->nest.pointer[t]] + loops->nest.offset[t];
}

/* The element of tensor t at the index. */
static int64_t gpi__loops_first(const gpi__loops *loops, int t) {
    int64_t first = 0;
    int d;
    for (d = 0; d < loops->nest.rank; d++)
        first += loops->index[d] * loops->nest.stride[t][d];
    return first;
}

/* To the next index of the kept or of the summed axes outside of the innermost; 0 after the last, and at the first again. */
static int gpi__loops_next(gpi__loops *loops, int summed) {
    int d;
    for (d = 1; d < loops->nest.rank; d++) {
        if (loops->nest.summed[d] != summed)
            continue;
        if (++loops->index[d] < loops->nest.extent[d])
            return 1;
        loops->index[d] = 0;
    }
    return 0;
}

/* All outputs for `count` indices along the innermost axis. */
static void gpi__loops_compute(gpi__loops *loops, int64_t count) {
    const gpi__nest *nest = &loops->nest;
    int t;
    for (t = 0; t < GPI__OUT_Y; t++)
        if (gpi__nest_has(nest, t))
            gpi__load_run(nest->dtype[t], gpi__loops_base(loops, t), gpi__loops_first(loops, t),
                          nest->stride[t][0], count, loops->values[loops->operation.numbers[t] - 1].numbers);
    loops->run.count = (int)count;
    gpi__evaluate(&loops->run);
    loops->run.has_constants = 1; /* the first run is the longest */
}

static const double *gpi__loops_output(const gpi__loops *loops, int t) {
    return gpi__output_values(&loops->run, t, 0, NULL);
}

/* The outputs that are no sums. */
static void gpi__host_map(gpi__loops *loops) {
    const gpi__nest *nest = &loops->nest;
    int64_t *i = &loops->index[0];
    int t;
    do {
        for (*i = 0; *i < nest->extent[0]; *i += GPI__UNITS) {
            int64_t count = gpi__smaller(nest->extent[0] - *i, GPI__UNITS);
            gpi__loops_compute(loops, count);
            for (t = GPI__OUT_Y; t < GPI__TENSORS; t++)
                if (gpi__nest_has(nest, t))
                    gpi__store_strided(nest->dtype[t], gpi__loops_base(loops, t), gpi__loops_first(loops, t),
                                       nest->stride[t][0], count, gpi__loops_output(loops, t));
        }
    } while (gpi__loops_next(loops, 0));
}

/* >>sums */

/* Adds `count` terms to as many sums, or, where the innermost axis is summed, its line to one. */
static void gpi__host_add(gpi__loops *loops, int t, int64_t count, gpi__sum *sums) {
    const double *values = gpi__loops_output(loops, t);
    int is_line = loops->nest.summed[0];
    int64_t *at = &loops->index[0], first = *at, end = is_line ? loops->nest.extent[0] : first + count, i;
    for (; *at < end; *at += GPI__UNITS) {
        count = gpi__smaller(end - *at, GPI__UNITS);
        gpi__loops_compute(loops, count);
        for (i = 0; i < count; i++)
            gpi__add_to(&sums[is_line ? 0 : i], values[i]);
    }
    *at = first;
}

/* `count` sums of output t, side by side on the innermost axis where that is kept, else one. */
static void gpi__host_sum_run(gpi__loops *loops, int t, int64_t count) {
    const gpi__nest *nest = &loops->nest;
    void *base = gpi__loops_base(loops, t);
    int64_t first = gpi__loops_first(loops, t), step = nest->stride[t][0], i;
    int accumulates = (loops->task->flags & GEMMEPI_ACCUMULATE) != 0;
    int is_empty = gpi__nest_count(nest, 1) == 0;
    gpi__sum sums[GPI__UNITS] = {{0, 0}};
    double values[GPI__UNITS] = {0};
    if (is_empty && accumulates)
        return;
    if (!is_empty)
        do {
            gpi__host_add(loops, t, count, sums);
        } while (gpi__loops_next(loops, 1));
    if (accumulates)
        gpi__load_run(nest->dtype[t], base, first, step, count, values);
    for (i = 0; i < count; i++) {
        gpi__add_to(&sums[i], values[i]);
        values[i] = gpi__total_of(&sums[i]);
    }
    gpi__store_strided(nest->dtype[t], base, first, step, count, values);
}

static void gpi__host_sum(gpi__loops *loops, int t) {
    const gpi__nest *nest = &loops->nest;
    int64_t length = nest->summed[0] ? 1 : nest->extent[0], i;
    do {
        for (i = 0; i < length; i += GPI__UNITS) {
            loops->index[0] = i;
            gpi__host_sum_run(loops, t, gpi__smaller(length - i, GPI__UNITS));
        }
        loops->index[0] = 0;
    } while (gpi__loops_next(loops, 0));
}

/* >>casts with scales */

/* The elements that share one number, and where that is. Axes are the task's, with as many before them as make two. */
typedef struct gpi__scaled {
    const gpi__task *task;
    void *const *pointers;
    const float *scale;
    float *y_scale;
    void *amax;
    int output;       /* y, or y_transposed, whose matrices have the axes exchanged */
    int rank, k, row; /* the two axes of the matrices */
    int64_t extent[GPI__MAX_RANK], a_stride[GPI__MAX_RANK], y_stride[GPI__MAX_RANK];
    int64_t begin[GPI__MAX_RANK], end[GPI__MAX_RANK];
    int64_t number;
} gpi__scaled;

static int64_t gpi__steps_of_128(int64_t extent) {
    return (extent + 127) / 128;
}

static void gpi__convert_scaled(const gpi__task *task, int output, gpi__scaled *scaled) {
    int missing = task->rank < 2 ? 2 - task->rank : 0,
        k_is_rows = ((task->flags & GEMMEPI_CAST_K_IS_ROWS) != 0) != (output != GPI__OUT_Y), d;
    memset(scaled, 0, sizeof *scaled);
    scaled->task = task;
    scaled->output = output;
    scaled->rank = task->rank + missing;
    scaled->k = scaled->rank - 1 - k_is_rows;
    scaled->row = scaled->rank - 2 + k_is_rows;
    for (d = 0; d < scaled->rank; d++) {
        scaled->extent[d] = d < missing ? 1 : task->shape[d - missing];
        scaled->a_stride[d] = d < missing ? 0 : task->operands[GPI__IN_A].stride[d - missing];
        scaled->y_stride[d] = d < missing ? 0 : task->operands[output].stride[d - missing];
        scaled->end[d] = scaled->extent[d];
    }
}

/* The next index of the elements that share a number, of all axes but k; 0 after the last. */
static int gpi__scaled_next(const gpi__scaled *scaled, int64_t *index) {
    int d;
    for (d = scaled->rank - 1; d >= 0; d--) {
        if (d == scaled->k)
            continue;
        if (++index[d] < scaled->end[d])
            return 1;
        index[d] = scaled->begin[d];
    }
    return 0;
}

/* A run along k of a or y: where it begins. */
static int64_t gpi__scaled_first(const gpi__scaled *scaled, const int64_t *stride, const int64_t *index) {
    int64_t first = 0;
    int d;
    for (d = 0; d < scaled->rank; d++)
        first += index[d] * stride[d];
    return first;
}

static void *gpi__scaled_base(const gpi__scaled *scaled, int t) {
    return (char *)scaled->pointers[t] + scaled->task->operands[t].offset;
}

/* For those that share a number y = factor a / divisor, one of which is 1, or, if not stores, nothing. Returns the largest |a|; NaN stays. */
static double gpi__scaled_walk(const gpi__scaled *scaled, int stores, double factor, double divisor) {
    int64_t index[GPI__MAX_RANK], *i = &index[scaled->k], j;
    double values[GPI__UNITS], amax = 0;
    memcpy(index, scaled->begin, sizeof index);
    do {
        for (*i = scaled->begin[scaled->k]; *i < scaled->end[scaled->k]; *i += GPI__UNITS) {
            int64_t count = gpi__smaller(scaled->end[scaled->k] - *i, GPI__UNITS);
            gpi__load_run(scaled->task->operands[GPI__IN_A].dtype, gpi__scaled_base(scaled, GPI__IN_A),
                          gpi__scaled_first(scaled, scaled->a_stride, index), scaled->a_stride[scaled->k],
                          count, values);
            gpi__host_amax(&amax, count, values);
            for (j = 0; j < count; j++)
                values[j] = values[j] * factor / divisor;
            if (stores)
                gpi__store_strided(scaled->task->operands[scaled->output].dtype,
                                   gpi__scaled_base(scaled, scaled->output),
                                   gpi__scaled_first(scaled, scaled->y_stride, index),
                                   scaled->y_stride[scaled->k], count, values);
        }
    } while (gpi__scaled_next(scaled, index));
    return amax;
}

/* The scale that takes the largest number to the type's largest. */
static float gpi__scale_for(int dtype, double amax) {
    const gpi__float_format *format = gpi__format_of(dtype);
    double scale = amax / gpi__decode(format, format->largest);
    if (!(amax > 0 && amax - amax == 0))
        return 1;
    return scale < FLT_MIN ? FLT_MIN : scale > FLT_MAX ? FLT_MAX : (float)scale;
}

/* The elements that share a number: all that is made of them. */
static void gpi__scaled_run(const gpi__scaled *scaled) {
    const gpi__task *task = scaled->task;
    int amax_dtype = task->operands[GPI__IN_A].dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    double factor = 1, divisor = 1, amax;
    if (task->flags & (GEMMEPI_CAST_AMAX | GEMMEPI_CAST_Y_SCALE)) {
        amax = gpi__scaled_walk(scaled, 0, 1, 1);
        if (scaled->amax)
            gpi__store_run(amax_dtype, scaled->amax, scaled->number, 1, &amax);
        if (task->flags & GEMMEPI_CAST_Y_SCALE) {
            scaled->y_scale[scaled->number] = gpi__scale_for(task->operands[GPI__OUT_Y].dtype, amax);
            divisor = (double)scaled->y_scale[scaled->number];
        }
    }
    if (task->flags & GEMMEPI_CAST_SCALE)
        factor = (double)scaled->scale[scaled->number];
    (void)gpi__scaled_walk(scaled, 1, factor, divisor);
}

/* One matrix, the numbers of which begin at `first`; returns where those of the next do. */
static int64_t gpi__scaled_matrix(gpi__scaled *scaled, int64_t first) {
    int mode = scaled->task->scale_mode, row = scaled->row, k = scaled->k;
    int64_t rows = scaled->extent[row], steps = gpi__steps_of_128(scaled->extent[k]);
    int64_t line = mode == GEMMEPI_SCALE_VECTOR_128 ? rows : (steps + 3) / 4 * 4;
    int64_t high = mode == GEMMEPI_SCALE_BLOCK_128 ? 128 : 1,
            wide = mode == GEMMEPI_SCALE_OUTER ? scaled->extent[k] : 128, i, j;
    for (i = 0; i < rows; i += high) {
        for (j = 0; j < scaled->extent[k]; j += wide) {
            scaled->begin[row] = i;
            scaled->end[row] = gpi__smaller(i + high, rows);
            scaled->begin[k] = j;
            scaled->end[k] = gpi__smaller(j + wide, scaled->extent[k]);
            scaled->number = first + (mode == GEMMEPI_SCALE_OUTER        ? i
                                      : mode == GEMMEPI_SCALE_VECTOR_128 ? j / 128 * line + i
                                                                         : i / 128 * line + j / 128);
            gpi__scaled_run(scaled);
        }
    }
    return first + (mode == GEMMEPI_SCALE_OUTER        ? rows
                    : mode == GEMMEPI_SCALE_VECTOR_128 ? steps * line
                                                       : gpi__steps_of_128(rows) * line);
}

/* To the next matrix; 0 after the last. */
static int gpi__scaled_next_matrix(gpi__scaled *scaled) {
    int d;
    for (d = scaled->rank - 3; d >= 0; d--) {
        scaled->begin[d] = scaled->end[d] < scaled->extent[d] ? scaled->end[d] : 0;
        scaled->end[d] = scaled->begin[d] + 1;
        if (scaled->begin[d])
            return 1;
    }
    return 0;
}

static void gpi__host_cast_scaled(gpi__scaled *scaled) {
    int64_t first = 0;
    int d;
    if (scaled->task->scale_mode == GEMMEPI_SCALE_TENSOR) {
        gpi__scaled_run(scaled);
        return;
    }
    for (d = 0; d < scaled->rank - 2; d++)
        scaled->end[d] = 1;
    do {
        first = gpi__scaled_matrix(scaled, first);
    } while (gpi__scaled_next_matrix(scaled));
}

/* >>the whole task */

static void gpi__set_number(gpi__loops *loops, int row, double number) {
    if (loops->operation.numbers[row])
        loops->values[loops->operation.numbers[row] - 1].numbers[0] = number;
}

static void gpi__convert_loops(const gpi__task *task, void *const pointers[GPI__TENSORS], double weight,
                               uint32_t outputs, gpi__loops *loops) {
    memset(loops, 0, offsetof(gpi__loops, values));
    loops->task = task;
    loops->pointers = pointers;
    gpi__convert_nest(task, outputs, &loops->nest);
    gpi__formula_of_operation(task, task->operation, &loops->nest, &loops->operation);
    loops->run.formula = &loops->operation.formula;
    loops->run.values = loops->values;
    gpi__set_number(loops, GPI__NODE_WEIGHT, weight);
    gpi__set_number(loops, GPI__NODE_WITHOUT_WEIGHT, 1 - weight);
}

/* A cast with scales or to both layouts: y_transposed is another cast of the same numbers, with what it has of scales. */
static void gpi__host_casts(const gpi__task *task, void *const pointers[GPI__TENSORS],
                            const gemmepi_elementwise_args *args) {
    gpi__scaled scaled;
    gpi__convert_scaled(task, GPI__OUT_Y, &scaled);
    scaled.pointers = pointers;
    scaled.scale = args->scale;
    scaled.y_scale = args->y_scale;
    scaled.amax = args->amax;
    gpi__host_cast_scaled(&scaled);
    if (!gpi__task_has(task, GPI__OUT_Y_TRANSPOSED))
        return;
    gpi__convert_scaled(task, GPI__OUT_Y_TRANSPOSED, &scaled);
    scaled.pointers = pointers;
    scaled.scale = args->scale;
    scaled.y_scale = args->y_transposed_scale ? args->y_transposed_scale : args->y_scale;
    gpi__host_cast_scaled(&scaled);
}

/* Runs a task whose outputs are not empty. pointers[t]: the pointer that goes with tensor t (NULL where there is none); two
   halves go by the pointer of operand.pointer. Sums come first, since the other outputs may be in place with an input. */
static void gpi__host_elementwise(const gpi__task *task, void *const pointers[GPI__TENSORS],
                                  const gemmepi_elementwise_args *args) {
    uint32_t others = 0;
    gpi__loops loops;
    int t;
    if (task->scale_mode) {
        gpi__host_casts(task, pointers, args);
        return;
    }
    for (t = GPI__OUT_Y; t < GPI__TENSORS; t++) {
        const gpi__operand *operand = &task->operands[t];
        if (!gpi__task_has(task, t) || gpi__operand_is_empty(task, operand))
            continue;
        if (!operand->is_sum) {
            others |= GPI__BIT(t);
            continue;
        }
        gpi__convert_loops(task, pointers, args->weight, GPI__BIT(t), &loops);
        gpi__host_sum(&loops, t);
    }
    if (others) {
        gpi__convert_loops(task, pointers, args->weight, others, &loops);
        gpi__host_map(&loops);
    }
}

#endif
