/* The launch that makes all outputs that are no sums: over dense tensors in one line, or over tiles of any strides. */
#ifndef GEMMEPI_ELEMENTWISE_LOOP_H
#define GEMMEPI_ELEMENTWISE_LOOP_H

#include "../device/launch.h"
#include "../kernels/params.h"
#include "../formula/emit.h"
#include "../problem/operation_graph.h"

#define GPI__ELEMENT_THREADS 256 /* of all element-wise kernels */
#define GPI__VECTOR_BYTES    16  /* one access to memory */
#define GPI__VECTOR_MOST     8   /* elements */

#define GPI__OPERATION_TEXT 4096 /* characters of a prologue; the longest has about half */

#define GPI__LOOP_AT_ONCE 2 /* accesses of a thread to a dense tensor; on an H200 4 and 8 are slower */

/* How a tensor goes through a tile: as in elementwise.cu. */
enum { GPI__ALONG_VECTORS, GPI__REPEATED, GPI__ALONG_I, GPI__ALONG_J, GPI__COLUMNS };

typedef struct gpi__loop {
    gpi__launch launch; /* no function: there is nothing to launch */
    gpi__nest nest;
    int is_contiguous;
    int tile_i, tile_j;
    gpi__contiguous_params contiguous;
    gpi__strided_params strided;
} gpi__loop;

/* >>what all element-wise kernels are told */

static int gpi__size_of(int dtype) {
    return (int)gpi__dtype((gemmepi_dtype)dtype)->size;
}

static int gpi__largest_size(const gpi__nest *nest, uint32_t tensors) {
    int largest = 1, t;
    for (t = 0; t < GPI__TENSORS; t++)
        if ((nest->used & tensors) >> t & 1)
            largest = gpi__size_of(nest->dtype[t]) > largest ? gpi__size_of(nest->dtype[t]) : largest;
    return largest;
}

/* Elements of one access, the same for all tensors of a launch. */
static int gpi__vector_of(int largest_size) {
    int vector = GPI__VECTOR_BYTES / largest_size;
    return vector < GPI__VECTOR_MOST ? vector : GPI__VECTOR_MOST;
}

/* The short forms of the activations are for results of 16 bits. */
static int gpi__task_is_exact(const gpi__task *task) {
    int t;
    for (t = GPI__OUT_Y; t < GPI__TENSORS; t++)
        if (task->operands[t].dtype == GEMMEPI_F32 || task->operands[t].dtype == GEMMEPI_F64)
            return 1;
    return 0;
}

/* What operations.cuh reads, and the function of one index. operation: the task's, or that of partial sums. type_of_output: what it has an output
   for, 0 for its own. */
static void gpi__append_operation(gpi__text *text, const gpi__task *task, int operation,
                                  const gpi__nest *nest, int accumulator, int type_of_output) {
    gpi__operation_formula of;
    int t;
    gpi__formula_of_operation(task, operation, nest, &of);
    of.formula.accumulator = accumulator;
    of.formula.is_short = !gpi__task_is_exact(task);
    for (t = GPI__OUT_Y; t < GPI__TENSORS && type_of_output; t++)
        of.formula.operands[t].dtype = (uint8_t)type_of_output;
    gpi__append(
        text,
        "#define GEMMEPI_T %s\n#define GEMMEPI_EXACT %d\n#define GEMMEPI_AMAX %d\n#include \"types.cuh\"\n#include \"activation.cuh\"\n",
        gpi__type(accumulator), !of.formula.is_short, (task->flags & GEMMEPI_CAST_AMAX) != 0);
    gpi__emit_formula(text, &of.formula);
}

/* "gemmepi_elementwise_silu_backward_bf16". An operation that is an activation is called by that. */
static void gpi__name_operation(const gpi__task *task, int operation, const char *stem, int from, int to,
                                gpi__launch *launch) {
    const char *name = gpi__operation(operation)->name;
    const char *activation = gpi__activation_name((gemmepi_epilogue)task->activation);
    const char *type = gpi__type(from);
    if (strncmp(name, "ACTIVATION", 10) == 0)
        gpi__name_kernel(launch, "%s_%s%s_%s", stem, activation, name + 10, type);
    else if (task->activation)
        gpi__name_kernel(launch, "%s_%s_%s_%s", stem, activation, name, type);
    else if (from != to)
        gpi__name_kernel(launch, "%s_%s_%s_to_%s", stem, name, type, gpi__type(to));
    else
        gpi__name_kernel(launch, "%s_%s_%s", stem, name, type);
}

static int gpi__first_dtype(const gpi__nest *nest) {
    int t = 0;
    while (t < GPI__OUT_Y && !gpi__nest_has(nest, t))
        t++;
    return nest->dtype[t];
}

/* Whether every vector of a tensor, `vector` elements along an axis, begins at a multiple of its size. */
static int gpi__vectors_are_aligned(const gpi__task *task, const gpi__nest *nest, int t, int axis,
                                    int vector) {
    int64_t size = gpi__size_of(nest->dtype[t]), bytes = size * vector;
    int d;
    if (axis >= nest->rank || nest->stride[t][axis] != 1 || task->alignment % bytes ||
        nest->offset[t] % bytes)
        return 0;
    for (d = 0; d < nest->rank; d++)
        if (d != axis && nest->stride[t][d] * size % bytes)
            return 0;
    return 1;
}

static void gpi__fill_pointers(const gpi__nest *nest, void *const *pointers, void **data) {
    int t;
    for (t = 0; t < GPI__PARAMS_TENSORS; t++)
        if (gpi__nest_has(nest, t))
            data[t] = (void *)((uintptr_t)pointers[nest->pointer[t]] + (uintptr_t)nest->offset[t]);
}

/* >>dense tensors in one line */

static int gpi__is_contiguous(const gpi__task *task, const gpi__nest *nest, int vector) {
    int t;
    for (t = 0; t < GPI__TENSORS && nest->rank == 1; t++)
        if (gpi__nest_has(nest, t) && !gpi__vectors_are_aligned(task, nest, t, 0, vector) &&
            (t >= GPI__OUT_Y || nest->stride[t][0] != 0))
            return 0;
    return nest->rank == 1;
}

static int gpi__count_inputs(const gpi__nest *nest) {
    int inputs = 0, t;
    for (t = 0; t < GPI__OUT_Y; t++)
        inputs += gpi__nest_has(nest, t);
    return inputs;
}

static int64_t gpi__describe_contiguous(gpi__loop *loop, int vector, gpi__text *defines) {
    const gpi__nest *nest = &loop->nest;
    int repeats = 0, t;
    for (t = 0; t < GPI__OUT_Y; t++)
        if (gpi__nest_has(nest, t) && nest->stride[t][0] == 0)
            repeats |= 1 << t;
    loop->is_contiguous = 1;
    loop->contiguous.count = nest->extent[0];
    gpi__append(defines, "#define GEMMEPI_REPEATS 0x%x\n", (unsigned)repeats);
    gpi__append(defines, "#define GEMMEPI_AT_ONCE %d\n", GPI__LOOP_AT_ONCE);
    gpi__append(defines, "#define GEMMEPI_TILE 0\n#define GEMMEPI_PER_THREAD 0\n#define GEMMEPI_MODES 0\n");
    return gpi__divide_up(nest->extent[0], (int64_t)GPI__ELEMENT_THREADS * vector * GPI__LOOP_AT_ONCE);
}

/* >>tiles */

static int64_t gpi__magnitude(int64_t x) {
    return x < 0 ? -x : x;
}

/* The axis along which a tensor's elements lie closest. */
static int gpi__fast_axis(const gpi__nest *nest, int t) {
    int fast = 0, d;
    for (d = 1; d < nest->rank; d++) {
        int64_t stride = gpi__magnitude(nest->stride[t][d]), least = gpi__magnitude(nest->stride[t][fast]);
        if (stride && (!least || stride < least))
            fast = d;
    }
    return fast;
}

/* The second axis of the tiles where some tensor is transposed: the one along which that lies closest. 0: none is. */
static int gpi__transposed_axis(const gpi__nest *nest) {
    int t;
    for (t = 0; t < GPI__TENSORS; t++)
        if (gpi__nest_has(nest, t) && nest->stride[t][0] != 0 && gpi__fast_axis(nest, t))
            return gpi__fast_axis(nest, t);
    return 0;
}

/* How much of the tiles lies within the tensors along one axis, in 1/1024, and along both. */
#define GPI__FULL_USE ((int64_t)1 << 20)

static int64_t gpi__use_along(int64_t extent, int64_t tile) {
    int64_t tiles = gpi__divide_up(extent, tile);
    return extent >= tile << 10 ? 1024 : extent * 1024 / (tiles * tile);
}

static int64_t gpi__use_of(const gpi__nest *nest, int elements, int tile, int axis) {
    if (tile > elements)
        return 0;
    return gpi__use_along(nest->extent[0], tile) *
           gpi__use_along(axis ? nest->extent[axis] : 1, elements / tile);
}

static int64_t gpi__best_use(const gpi__nest *nest, int elements, int first, int last) {
    int64_t best = 0, use;
    int axis, tile;
    for (axis = first; axis <= last; axis++)
        for (tile = 8; tile <= 4096; tile *= 2) {
            use = gpi__use_of(nest, elements, tile, axis);
            best = use > best ? use : best;
        }
    return best;
}

/* A tile has `elements`. Wide ones are best for rows and square ones for transposes, as long as they are filled; the first of
   the list that comes within a tenth of the best is taken. The second axis is that of a transpose, unless it fills less than
   a quarter of any tile. Returns the use of the tiles, of 2^20. */
static int64_t gpi__choose_tile(gpi__loop *loop, int elements, int *second_axis) {
    static const int wide[] = {256, 512, 1024, 128, 64, 2048, 4096, 32, 16, 8},
                     square[] = {64, 32, 128, 16, 256, 8, 512, 1024, 2048, 4096};
    const gpi__nest *nest = &loop->nest;
    int transposed = gpi__transposed_axis(nest), axis, i;
    int first = transposed ? transposed : nest->rank > 1, last = transposed ? transposed : nest->rank - 1;
    const int *tiles = transposed ? square : wide;
    int64_t best = gpi__best_use(nest, elements, first, last), use;
    if (transposed && best < GPI__FULL_USE / 4) {
        first = 1;
        last = nest->rank - 1;
        best = gpi__best_use(nest, elements, first, last);
    }
    for (axis = first; axis <= last; axis++)
        for (i = 0; i < (int)GPI__COUNT(wide); i++) {
            use = gpi__use_of(nest, elements, tiles[i], axis);
            if (use < best - best / 10)
                continue;
            loop->tile_i = tiles[i];
            loop->tile_j = elements / tiles[i];
            *second_axis = axis;
            return use;
        }
    return 0; /* not reached: the best is among them */
}

static int gpi__mode_of(const gpi__task *task, const gpi__loop *loop, int t, int vector) {
    const gpi__nest *nest = &loop->nest;
    int64_t i = gpi__magnitude(nest->stride[t][0]),
            j = nest->rank > 1 ? gpi__magnitude(nest->stride[t][1]) : 0;
    if (gpi__vectors_are_aligned(task, nest, t, 0, vector))
        return GPI__ALONG_VECTORS;
    if (i == 0 && t < GPI__OUT_Y)
        return GPI__REPEATED;
    if (loop->tile_j >= vector && gpi__vectors_are_aligned(task, nest, t, 1, vector))
        return GPI__COLUMNS;
    return j && j < i ? GPI__ALONG_J : GPI__ALONG_I;
}

/* The number of blocks, or -1. */
static int64_t gpi__describe_tiles(const gpi__task *task, gpi__loop *loop, int vector, gpi__text *defines) {
    gpi__nest *nest = &loop->nest;
    gpi__tensor_axes axes = gpi__axes_of_nest(nest, 0);
    gpi__strided_params *params = &loop->strided;
    /* the more tensors, the fewer elements fit registers */
    int inputs = gpi__count_inputs(nest), second = 0, t, d;
    int per_thread = vector * (inputs == 4 ? 1 : inputs > 1 || vector == 8 ? 2 : 4);
    unsigned modes = 0;
    int64_t blocks, tiles_i, tiles_j;
    for (; gpi__choose_tile(loop, GPI__ELEMENT_THREADS * per_thread, &second) < GPI__FULL_USE / 2 &&
           per_thread > vector;)
        per_thread /= 2; /* small matrices leave large tiles empty */
    if (second > 1)
        gpi__swap_axes(&axes, 1, second);
    for (t = 0; t < GPI__PARAMS_TENSORS; t++) {
        if (gpi__nest_has(nest, t))
            modes |= (unsigned)gpi__mode_of(task, loop, t, vector) << 4 * t;
        for (d = 0; d < nest->rank; d++)
            params->stride[t][d] = nest->stride[t][d];
    }
    params->rank = nest->rank > 2 ? nest->rank : 2;
    params->extent_i = nest->extent[0];
    params->extent_j = nest->rank > 1 ? nest->extent[1] : 1;
    tiles_i = gpi__divide_up(params->extent_i, loop->tile_i);
    tiles_j = gpi__divide_up(params->extent_j, loop->tile_j);
    blocks = gpi__offset(tiles_i, tiles_j, 0);
    for (d = 2; d < nest->rank && blocks > 0; d++) {
        params->extent[d] = (unsigned)nest->extent[d];
        blocks = gpi__offset(blocks, nest->extent[d], 0);
    }
    params->tiles_i = (unsigned)tiles_i;
    params->tiles_j = (unsigned)tiles_j;
    gpi__append(defines, "#define GEMMEPI_TILE %d\n", loop->tile_i);
    gpi__append(defines, "#define GEMMEPI_PER_THREAD %d\n", per_thread);
    gpi__append(defines, "#define GEMMEPI_MODES 0x%xu\n", modes);
    gpi__append(defines, "#define GEMMEPI_REPEATS 0\n#define GEMMEPI_AT_ONCE 1\n");
    return blocks;
}

/* >>building and running */

/* What is launched, but for the kernel: blocks, parameters and the prologue. */
static gemmepi_status gpi__describe_loop(const gpi__task *task, uint32_t outputs, gpi__loop *loop,
                                         gpi__text *defines) {
    int64_t blocks;
    int vector;
    gpi__convert_nest(task, outputs, &loop->nest);
    vector = gpi__vector_of(gpi__largest_size(&loop->nest, ~0u));
    gpi__append_operation(defines, task, task->operation, &loop->nest, task->accumulator, 0);
    if (gpi__is_contiguous(task, &loop->nest, vector))
        blocks = gpi__describe_contiguous(loop, vector, defines);
    else
        blocks = gpi__describe_tiles(task, loop, vector, defines);
    GPI__UNSUPPORTED_IF(blocks <= 0 || blocks > INT_MAX,
                        "the tensors have more tiles than a grid has blocks");
    loop->launch.blocks = (unsigned)blocks;
    loop->launch.threads_x = GPI__ELEMENT_THREADS;
    loop->launch.threads_y = 1;
    return GEMMEPI_OK;
}

static gemmepi_status gpi__build_loop(gemmepi_context *context, const gpi__task *task, uint32_t outputs,
                                      gpi__loop *loop) {
    char prologue[GPI__OPERATION_TEXT];
    gpi__text defines = gpi__text_in(prologue, sizeof prologue);
    gemmepi_status status = gpi__describe_loop(task, outputs, loop, &defines);
    if (status)
        return status;
    gpi__name_operation(
        task, task->operation, loop->is_contiguous ? "gemmepi_elementwise" : "gemmepi_strided",
        gpi__first_dtype(&loop->nest),
        task->operation == GEMMEPI_OP_CAST ? loop->nest.dtype[GPI__OUT_Y] : gpi__first_dtype(&loop->nest),
        &loop->launch);
    return gpi__get_kernel(context, "elementwise.cu", prologue,
                           loop->is_contiguous ? "gemmepi_contiguous" : "gemmepi_strided", &loop->launch);
}

static gemmepi_status gpi__run_loop(const gemmepi_context *context, const gpi__loop *loop,
                                    const gpi__operation_params *operation, void *const *pointers,
                                    gemmepi_stream stream) {
    static const char what[] = "an element-wise operation";
    gpi__contiguous_params contiguous;
    gpi__strided_params strided;
    if (loop->is_contiguous) {
        contiguous = loop->contiguous;
        contiguous.operation = *operation;
        gpi__fill_pointers(&loop->nest, pointers, contiguous.data);
        return gpi__launch_kernel(context, &loop->launch, &contiguous, what, stream);
    }
    strided = loop->strided;
    strided.operation = *operation;
    gpi__fill_pointers(&loop->nest, pointers, strided.data);
    return gpi__launch_kernel(context, &loop->launch, &strided, what, stream);
}

#endif
