/* The launches that make one output that is a sum over axes. */
#ifndef GEMMEPI_ELEMENTWISE_SUM_H
#define GEMMEPI_ELEMENTWISE_SUM_H

#include "loop.h"

#define GPI__SUM_AT_ONCE 4 /* sum.cu: rows or vectors that a thread has under way; with 8 it is slower */
#define GPI__SUM_WAVES   8 /* blocks for each multiprocessor, where there is enough to add up */
#define GPI__SUM_LANES \
    32 /* threads of a block along the sums that are made, where the innermost axis is kept */

/* A sum goes through one launch, or two with partial sums in workspace between them. */
typedef struct gpi__sum_step {
    gpi__launch launch;
    gpi__nest nest;
    int output;  /* the tensor that is made */
    int is_kept; /* the innermost axis is one of the sums', not of what is added up */
    gpi__sum_params params;
} gpi__sum_step;

typedef struct gpi__axis_sum {
    gpi__sum_step first, second; /* second: no function where the first one ends in the output */
    size_t partial_bytes;
} gpi__axis_sum;

/* The kept or the summed axes of a nest, in its order. */
static void gpi__convert_axes(const gpi__nest *nest, int summed, gpi__axes *axes) {
    int d, t;
    for (d = 0; d < nest->rank; d++) {
        if (nest->summed[d] != summed)
            continue;
        axes->extent[axes->rank] = nest->extent[d];
        for (t = 0; t < GPI__PARAMS_TENSORS; t++)
            axes->stride[t][axes->rank] = nest->stride[t][d];
        axes->rank++;
    }
}

/* Whether all inputs can be read in vectors along the innermost axis. */
static int gpi__sums_vectors(const gpi__task *task, const gpi__nest *nest, int vector) {
    int t;
    for (t = 0; t < GPI__OUT_Y; t++)
        if (gpi__nest_has(nest, t) && nest->stride[t][0] != 0 &&
            !gpi__vectors_are_aligned(task, nest, t, 0, vector))
            return 0;
    return vector > 1;
}

static unsigned gpi__power_of_two(int64_t at_least, unsigned most) {
    unsigned power = 1;
    while (power < most && power < at_least)
        power *= 2;
    return power;
}

/* Threads that add up `lines` of one sum: part of a warp with eight lines each, or whole warps with 32. */
static unsigned gpi__lanes_of_line(int64_t lines) {
    if (lines <= 32 * 32)
        return gpi__power_of_two(gpi__divide_up(lines, 8), 32);
    return gpi__power_of_two(gpi__divide_up(lines, 32), GPI__ELEMENT_THREADS);
}

/* How the launch goes about it: blocks for the sums times `parts` of what is added up. */
static gemmepi_status gpi__divide_sum(gpi__sum_step *step, int wide, int64_t blocks_wanted, int64_t *parts) {
    gpi__sum_params *params = &step->params;
    int64_t innermost = gpi__divide_up(step->nest.extent[0], wide), lines, least, blocks;
    params->kept_count = gpi__nest_count(&step->nest, 0);
    params->summed_count = gpi__nest_count(&step->nest, 1);
    if (step->is_kept) {
        lines = gpi__times(params->kept_count / step->nest.extent[0], innermost);
        step->launch.threads_x = gpi__power_of_two(lines, GPI__SUM_LANES);
        step->launch.threads_y = GPI__ELEMENT_THREADS / step->launch.threads_x;
        blocks = gpi__divide_up(lines, step->launch.threads_x);
        least = 16 * (int64_t)step->launch.threads_y;
    } else {
        params->summed_count =
            step->nest.extent[0] ? gpi__times(params->summed_count / step->nest.extent[0], innermost) : 0;
        step->launch.threads_x = gpi__lanes_of_line(params->summed_count);
        step->launch.threads_y = GPI__ELEMENT_THREADS / step->launch.threads_x;
        blocks = gpi__divide_up(params->kept_count, step->launch.threads_y);
        least = 16 * (int64_t)step->launch.threads_x;
    }
    *parts = gpi__divide_up(blocks_wanted, blocks);
    if (*parts > gpi__divide_up(params->summed_count, least))
        *parts = gpi__divide_up(params->summed_count, least);
    if (*parts < 1)
        *parts = 1;
    params->part_count = gpi__divide_up(params->summed_count, *parts);
    if (params->part_count)
        *parts = gpi__divide_up(params->summed_count, params->part_count);
    params->kept_blocks = (unsigned)blocks;
    blocks = blocks > INT_MAX ? -1 : gpi__offset(blocks, *parts, 0);
    GPI__UNSUPPORTED_IF(blocks <= 0 || blocks > INT_MAX, "a sum has more tiles than a grid has blocks");
    step->launch.blocks = (unsigned)blocks;
    return GEMMEPI_OK;
}

/* Elements of one access, the same for all inputs. */
static int gpi__vector_of_sum(const gpi__nest *nest) {
    return gpi__vector_of(gpi__largest_size(nest, GPI__INPUTS));
}

/* step->nest and output are set. blocks_wanted 0: no partial sums. */
static gemmepi_status gpi__shape_sum(const gpi__task *task, int64_t blocks_wanted, gpi__sum_step *step,
                                     int64_t *parts) {
    int vector = gpi__vector_of_sum(&step->nest);
    step->is_kept = !step->nest.summed[0];
    gpi__convert_axes(&step->nest, 0, &step->params.kept);
    gpi__convert_axes(&step->nest, 1, &step->params.summed);
    return gpi__divide_sum(step, gpi__sums_vectors(task, &step->nest, vector) ? vector : 1, blocks_wanted,
                           parts);
}

/* Once it has its shape. operation: the task's, or that of partial sums. ends: in the output. */
static void gpi__append_sum(gpi__text *defines, const gpi__task *task, int operation,
                            const gpi__sum_step *step, int ends) {
    const gpi__nest *nest = &step->nest;
    int repeats = 0, of = 0, t;
    for (t = GPI__OUT_Y - 1; t >= 0; t--) {
        if (!gpi__nest_has(nest, t))
            continue;
        of = nest->dtype[t];
        if (nest->stride[t][0] == 0)
            repeats |= 1 << t;
    }
    gpi__append_operation(defines, task, operation, nest,
                          gpi__largest_size(nest, GPI__INPUTS) == 8 ? GEMMEPI_F64 : GEMMEPI_F32, of);
    gpi__append(defines, "#define GEMMEPI_OUTPUT %d\n", step->output);
    gpi__append(defines, "#define GEMMEPI_OUT_TYPE %s\n", gpi__type(nest->dtype[step->output]));
    gpi__append(defines, "#define GEMMEPI_ACCUMULATE %d\n", ends && (task->flags & GEMMEPI_ACCUMULATE) != 0);
    gpi__append(defines, "#define GEMMEPI_VECTORS %d\n",
                gpi__sums_vectors(task, nest, gpi__vector_of_sum(nest)));
    gpi__append(defines, "#define GEMMEPI_REPEATS 0x%x\n", (unsigned)repeats);
    gpi__append(defines, "#define GEMMEPI_AT_ONCE %d\n", GPI__SUM_AT_ONCE);
    gpi__append(defines, "#define GEMMEPI_KEPT %d\n", step->is_kept);
    gpi__append(defines, "#define GEMMEPI_ONE_AXIS %d\n", step->params.summed.rank <= 1);
}

static gemmepi_status gpi__build_sum_step(gemmepi_context *context, const gpi__task *task, int operation,
                                          gpi__sum_step *step, int ends) {
    char prologue[GPI__OPERATION_TEXT];
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    gpi__append_sum(&defines, task, operation, step, ends);
    gpi__name_operation(task, operation, step->is_kept ? "gemmepi_sum_kept" : "gemmepi_sum_along",
                        gpi__first_dtype(&step->nest), step->nest.dtype[step->output], &step->launch);
    return gpi__get_kernel(context, "sum.cu", prologue,
                           step->is_kept ? "gemmepi_sum_kept" : "gemmepi_sum_along", &step->launch);
}

/* Partial sums [parts][sums] in F64 into the output: its axes again, and one of the parts. */
static void gpi__nest_of_partials(const gpi__sum_step *first, int64_t parts, gpi__sum_step *second) {
    const gpi__nest *from = &first->nest;
    gpi__nest *nest = &second->nest;
    int64_t dense = 1;
    int d;
    second->output = GPI__OUT_Y;
    nest->used = GPI__BIT_A | GPI__BIT_Y;
    nest->dtype[GPI__IN_A] = GEMMEPI_F64;
    nest->dtype[GPI__OUT_Y] = from->dtype[first->output];
    nest->pointer[GPI__IN_A] = GPI__IN_A;
    nest->pointer[GPI__OUT_Y] = GPI__OUT_Y;
    for (d = 0; d < from->rank; d++) {
        if (from->summed[d])
            continue;
        nest->extent[nest->rank] = from->extent[d];
        nest->stride[GPI__IN_A][nest->rank] = dense;
        nest->stride[GPI__OUT_Y][nest->rank++] = from->stride[first->output][d];
        dense *= from->extent[d];
    }
    nest->extent[nest->rank] = parts;
    nest->summed[nest->rank] = 1;
    nest->stride[GPI__IN_A][nest->rank++] = dense;
    gpi__simplify_nest(nest, 1);
}

static gemmepi_status gpi__build_axis_sum(gemmepi_context *context, const gpi__task *task, int output,
                                          gpi__axis_sum *sum) {
    int64_t wanted = (int64_t)GPI__SUM_WAVES * context->multiprocessors, parts = 1, unused;
    gemmepi_status status;
    gpi__convert_nest(task, GPI__BIT(output), &sum->first.nest);
    sum->first.output = output;
    status = gpi__shape_sum(task, wanted, &sum->first, &parts);
    if (!status && parts > 1) {
        gpi__nest_of_partials(&sum->first, parts, &sum->second);
        sum->first.nest.dtype[output] = GEMMEPI_F64;
        sum->partial_bytes = gpi__bytes_for(gpi__times(parts, sum->first.params.kept_count), sizeof(double));
        status = gpi__shape_sum(task, 0, &sum->second, &unused);
        if (!status)
            status = gpi__build_sum_step(context, task, GEMMEPI_OP_BIAS_GRAD, &sum->second, 1);
    }
    return status ? status : gpi__build_sum_step(context, task, task->operation, &sum->first, parts == 1);
}

/* partials: workspace of partial_bytes */
static gemmepi_status gpi__run_axis_sum(const gemmepi_context *context, const gpi__axis_sum *sum,
                                        const gpi__operation_params *operation, void *const *pointers,
                                        void *partials, gemmepi_stream stream) {
    static const char what[] = "a sum over axes";
    gpi__sum_params params = sum->first.params;
    void *out = (char *)pointers[sum->first.nest.pointer[sum->first.output]] +
                sum->first.nest.offset[sum->first.output];
    gemmepi_status status;
    params.operation = *operation;
    gpi__fill_pointers(&sum->first.nest, pointers, params.data);
    params.data[sum->first.output] = sum->second.launch.function ? partials : out;
    status = gpi__launch_kernel(context, &sum->first.launch, &params, what, stream);
    if (status || !sum->second.launch.function)
        return status;
    params = sum->second.params;
    params.operation = *operation;
    params.data[GPI__IN_A] = partials;
    params.data[GPI__OUT_Y] = out;
    return gpi__launch_kernel(context, &sum->second.launch, &params, what, stream);
}

#endif
