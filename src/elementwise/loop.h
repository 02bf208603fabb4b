/* The launch that makes all outputs that are no sums: over dense tensors in one line, or over tiles of any strides. */
#ifndef GEMMEPI_ELEMENTWISE_LOOP_H
#define GEMMEPI_ELEMENTWISE_LOOP_H

#include "../device/launch.h"
#include "../kernels/params.h"
#include "../problem/nest.h"

#define GEMMEPI__ELEMENT_THREADS 256 /* of all element-wise kernels */
#define GEMMEPI__VECTOR_BYTES    16  /* one access to memory */
#define GEMMEPI__VECTOR_MOST     8   /* elements */

#define GEMMEPI__LOOP_AT_ONCE 2 /* accesses of a thread to a dense tensor; on an H200 4 and 8 are slower */

/* How a tensor goes through a tile: as in elementwise.cu. */
enum { GEMMEPI__ALONG_VECTORS, GEMMEPI__REPEATED, GEMMEPI__ALONG_I, GEMMEPI__ALONG_J, GEMMEPI__COLUMNS };

typedef struct gemmepi__loop {
    gemmepi__launch launch; /* no function: there is nothing to launch */
    gemmepi__nest nest;
    int is_contiguous;
    int tile_i, tile_j;
    gemmepi__contiguous_params contiguous;
    gemmepi__strided_params strided;
} gemmepi__loop;

/* >>what all element-wise kernels are told */

static int gemmepi__size_of(int dtype) {
    return (int)gemmepi__dtype((gemmepi_dtype)dtype)->size;
}

static int gemmepi__largest_size(const gemmepi__nest *nest, uint32_t tensors) {
    int largest = 1, t;
    for (t = 0; t < GEMMEPI__TENSORS; t++)
        if ((nest->used & tensors) >> t & 1)
            largest = gemmepi__size_of(nest->dtype[t]) > largest ? gemmepi__size_of(nest->dtype[t]) : largest;
    return largest;
}

/* Elements of one access, the same for all tensors of a launch. */
static int gemmepi__vector_of(int largest_size) {
    int vector = GEMMEPI__VECTOR_BYTES / largest_size;
    return vector < GEMMEPI__VECTOR_MOST ? vector : GEMMEPI__VECTOR_MOST;
}

/* The short forms of the activations are for results of 16 bits. */
static int gemmepi__task_is_exact(const gemmepi__task *task) {
    int t;
    for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS; t++)
        if (task->operands[t].dtype == GEMMEPI_F32 || task->operands[t].dtype == GEMMEPI_F64)
            return 1;
    return 0;
}

/* type_of_output: what operations.cuh takes an output for, 0 for its own. */
static void gemmepi__append_operation(gemmepi__text *text, const gemmepi__task *task, int operation,
                                      const gemmepi__nest *nest, int accumulator, int cast,
                                      int type_of_output) {
    static const char *const names[GEMMEPI__PARAMS_TENSORS] = {"A", "B", "W", "DY", "Y", "DA", "DB", "DW"};
    int t;
    gemmepi__append(text, "#define GEMMEPI_OPERATION %d\n", operation);
    gemmepi__append(text, "#define GEMMEPI_ACTIVATION %d\n", (int)task->activation);
    gemmepi__append(text, "#define GEMMEPI_EXACT %d\n", gemmepi__task_is_exact(task));
    gemmepi__append(text, "#define GEMMEPI_USED 0x%x\n", (unsigned)nest->used);
    gemmepi__append(text, "#define GEMMEPI_ACC %s\n", gemmepi__dtype((gemmepi_dtype)accumulator)->name);
    gemmepi__append(text, "#define GEMMEPI_CAST %d\n", cast);
    for (t = 0; t < GEMMEPI__PARAMS_TENSORS; t++) {
        int dtype = gemmepi__nest_has(nest, t) ? nest->dtype[t] : GEMMEPI_F32;
        if (t >= GEMMEPI__OUT_Y && type_of_output)
            dtype = type_of_output;
        gemmepi__append(text, "#define GEMMEPI_%s_TYPE %s\n", names[t],
                        gemmepi__dtype((gemmepi_dtype)dtype)->name);
    }
}

/* "gemmepi_elementwise_silu_backward_bf16". An operation that is an activation is called by that. */
static void gemmepi__name_operation(const gemmepi__task *task, int operation, const char *stem, int from,
                                    int to, gemmepi__launch *launch) {
    const char *name = gemmepi__operation(operation)->name;
    const char *activation = gemmepi__activation_name((gemmepi_epilogue)task->activation);
    const char *type = gemmepi__dtype((gemmepi_dtype)from)->name;
    if (strncmp(name, "ACTIVATION", 10) == 0)
        gemmepi__name_kernel(launch, "%s_%s%s_%s", stem, activation, name + 10, type);
    else if (task->activation)
        gemmepi__name_kernel(launch, "%s_%s_%s_%s", stem, activation, name, type);
    else if (from != to)
        gemmepi__name_kernel(launch, "%s_%s_%s_to_%s", stem, name, type,
                             gemmepi__dtype((gemmepi_dtype)to)->name);
    else
        gemmepi__name_kernel(launch, "%s_%s_%s", stem, name, type);
}

static int gemmepi__first_dtype(const gemmepi__nest *nest) {
    int t = 0;
    while (t < GEMMEPI__OUT_Y && !gemmepi__nest_has(nest, t))
        t++;
    return nest->dtype[t];
}

/* Whether every vector of a tensor, `vector` elements along an axis, begins at a multiple of its size. */
static int gemmepi__vectors_are_aligned(const gemmepi__task *task, const gemmepi__nest *nest, int t, int axis,
                                        int vector) {
    int64_t size = gemmepi__size_of(nest->dtype[t]), bytes = size * vector;
    int d;
    if (axis >= nest->rank || nest->stride[t][axis] != 1 || task->alignment % bytes ||
        nest->offset[t] % bytes)
        return 0;
    for (d = 0; d < nest->rank; d++)
        if (d != axis && nest->stride[t][d] * size % bytes)
            return 0;
    return 1;
}

static void gemmepi__fill_pointers(const gemmepi__nest *nest, void *const *pointers, void **data) {
    int t;
    for (t = 0; t < GEMMEPI__PARAMS_TENSORS; t++)
        if (gemmepi__nest_has(nest, t))
            data[t] = (void *)((uintptr_t)pointers[nest->pointer[t]] + (uintptr_t)nest->offset[t]);
}

/* >>dense tensors in one line */

static int gemmepi__is_contiguous(const gemmepi__task *task, const gemmepi__nest *nest, int vector) {
    int t;
    for (t = 0; t < GEMMEPI__TENSORS && nest->rank == 1; t++)
        if (gemmepi__nest_has(nest, t) && !gemmepi__vectors_are_aligned(task, nest, t, 0, vector) &&
            (t >= GEMMEPI__OUT_Y || nest->stride[t][0] != 0))
            return 0;
    return nest->rank == 1;
}

static int gemmepi__count_inputs(const gemmepi__nest *nest) {
    int inputs = 0, t;
    for (t = 0; t < GEMMEPI__OUT_Y; t++)
        inputs += gemmepi__nest_has(nest, t);
    return inputs;
}

static int64_t gemmepi__describe_contiguous(gemmepi__loop *loop, int vector, gemmepi__text *defines) {
    const gemmepi__nest *nest = &loop->nest;
    int repeats = 0, t;
    for (t = 0; t < GEMMEPI__OUT_Y; t++)
        if (gemmepi__nest_has(nest, t) && nest->stride[t][0] == 0)
            repeats |= 1 << t;
    loop->is_contiguous = 1;
    loop->contiguous.count = nest->extent[0];
    gemmepi__append(defines, "#define GEMMEPI_REPEATS 0x%x\n", (unsigned)repeats);
    gemmepi__append(defines, "#define GEMMEPI_AT_ONCE %d\n", GEMMEPI__LOOP_AT_ONCE);
    gemmepi__append(defines,
                    "#define GEMMEPI_TILE 0\n#define GEMMEPI_PER_THREAD 0\n#define GEMMEPI_MODES 0\n");
    return gemmepi__divide_up(nest->extent[0],
                              (int64_t)GEMMEPI__ELEMENT_THREADS * vector * GEMMEPI__LOOP_AT_ONCE);
}

/* >>tiles */

static int64_t gemmepi__magnitude(int64_t x) {
    return x < 0 ? -x : x;
}

/* The axis along which a tensor's elements lie closest. */
static int gemmepi__fast_axis(const gemmepi__nest *nest, int t) {
    int fast = 0, d;
    for (d = 1; d < nest->rank; d++) {
        int64_t stride = gemmepi__magnitude(nest->stride[t][d]),
                least = gemmepi__magnitude(nest->stride[t][fast]);
        if (stride && (!least || stride < least))
            fast = d;
    }
    return fast;
}

/* The second axis of the tiles where some tensor is transposed: the one along which that lies closest. 0: none is. */
static int gemmepi__transposed_axis(const gemmepi__nest *nest) {
    int t;
    for (t = 0; t < GEMMEPI__TENSORS; t++)
        if (gemmepi__nest_has(nest, t) && nest->stride[t][0] != 0 && gemmepi__fast_axis(nest, t))
            return gemmepi__fast_axis(nest, t);
    return 0;
}

/* How much of the tiles lies within the tensors along one axis, in 1/1024, and along both. */
#define GEMMEPI__FULL_USE ((int64_t)1 << 20)

static int64_t gemmepi__use_along(int64_t extent, int64_t tile) {
    int64_t tiles = gemmepi__divide_up(extent, tile);
    return extent >= tile << 10 ? 1024 : extent * 1024 / (tiles * tile);
}

static int64_t gemmepi__use_of(const gemmepi__nest *nest, int elements, int tile, int axis) {
    if (tile > elements)
        return 0;
    return gemmepi__use_along(nest->extent[0], tile) *
           gemmepi__use_along(axis ? nest->extent[axis] : 1, elements / tile);
}

static int64_t gemmepi__best_use(const gemmepi__nest *nest, int elements, int first, int last) {
    int64_t best = 0, use;
    int axis, tile;
    for (axis = first; axis <= last; axis++)
        for (tile = 8; tile <= 4096; tile *= 2) {
            use = gemmepi__use_of(nest, elements, tile, axis);
            best = use > best ? use : best;
        }
    return best;
}

/* A tile has `elements`. Wide ones are best for rows and square ones for transposes, as long as they are filled; the first of
   the list that comes within a tenth of the best is taken. The second axis is that of a transpose, unless it fills less than
   a quarter of any tile. Returns the use of the tiles, of 2^20. */
static int64_t gemmepi__choose_tile(gemmepi__loop *loop, int elements, int *second_axis) {
    static const int wide[] = {256, 512, 1024, 128, 64, 2048, 4096, 32, 16, 8},
                     square[] = {64, 32, 128, 16, 256, 8, 512, 1024, 2048, 4096};
    const gemmepi__nest *nest = &loop->nest;
    int transposed = gemmepi__transposed_axis(nest), axis, i;
    int first = transposed ? transposed : nest->rank > 1, last = transposed ? transposed : nest->rank - 1;
    const int *tiles = transposed ? square : wide;
    int64_t best = gemmepi__best_use(nest, elements, first, last), use;
    if (transposed && best < GEMMEPI__FULL_USE / 4) {
        first = 1;
        last = nest->rank - 1;
        best = gemmepi__best_use(nest, elements, first, last);
    }
    for (axis = first; axis <= last; axis++)
        for (i = 0; i < (int)GEMMEPI__COUNT(wide); i++) {
            use = gemmepi__use_of(nest, elements, tiles[i], axis);
            if (use < best - best / 10)
                continue;
            loop->tile_i = tiles[i];
            loop->tile_j = elements / tiles[i];
            *second_axis = axis;
            return use;
        }
    return 0; /* not reached: the best is among them */
}

static int gemmepi__mode_of(const gemmepi__task *task, const gemmepi__loop *loop, int t, int vector) {
    const gemmepi__nest *nest = &loop->nest;
    int64_t i = gemmepi__magnitude(nest->stride[t][0]),
            j = nest->rank > 1 ? gemmepi__magnitude(nest->stride[t][1]) : 0;
    if (gemmepi__vectors_are_aligned(task, nest, t, 0, vector))
        return GEMMEPI__ALONG_VECTORS;
    if (i == 0 && t < GEMMEPI__OUT_Y)
        return GEMMEPI__REPEATED;
    if (loop->tile_j >= vector && gemmepi__vectors_are_aligned(task, nest, t, 1, vector))
        return GEMMEPI__COLUMNS;
    return j && j < i ? GEMMEPI__ALONG_J : GEMMEPI__ALONG_I;
}

/* The number of blocks, or -1. */
static int64_t gemmepi__describe_tiles(const gemmepi__task *task, gemmepi__loop *loop, int vector,
                                       gemmepi__text *defines) {
    gemmepi__nest *nest = &loop->nest;
    gemmepi__strided_params *params = &loop->strided;
    /* the more tensors, the fewer elements fit registers */
    int inputs = gemmepi__count_inputs(nest), second = 0, t, d;
    int per_thread = vector * (inputs == 4 ? 1 : inputs > 1 || vector == 8 ? 2 : 4);
    unsigned modes = 0;
    int64_t blocks, tiles_i, tiles_j;
    for (;
         gemmepi__choose_tile(loop, GEMMEPI__ELEMENT_THREADS * per_thread, &second) < GEMMEPI__FULL_USE / 2 &&
         per_thread > vector;)
        per_thread /= 2; /* small matrices leave large tiles empty */
    if (second > 1)
        gemmepi__swap_axes(nest, 1, second);
    for (t = 0; t < GEMMEPI__PARAMS_TENSORS; t++) {
        if (gemmepi__nest_has(nest, t))
            modes |= (unsigned)gemmepi__mode_of(task, loop, t, vector) << 4 * t;
        for (d = 0; d < nest->rank; d++)
            params->stride[t][d] = nest->stride[t][d];
    }
    params->rank = nest->rank > 2 ? nest->rank : 2;
    params->extent_i = nest->extent[0];
    params->extent_j = nest->rank > 1 ? nest->extent[1] : 1;
    tiles_i = gemmepi__divide_up(params->extent_i, loop->tile_i);
    tiles_j = gemmepi__divide_up(params->extent_j, loop->tile_j);
    blocks = gemmepi__offset(tiles_i, tiles_j, 0);
    for (d = 2; d < nest->rank && blocks > 0; d++) {
        params->extent[d] = (unsigned)nest->extent[d];
        blocks = gemmepi__offset(blocks, nest->extent[d], 0);
    }
    params->tiles_i = (unsigned)tiles_i;
    params->tiles_j = (unsigned)tiles_j;
    gemmepi__append(defines, "#define GEMMEPI_TILE %d\n", loop->tile_i);
    gemmepi__append(defines, "#define GEMMEPI_PER_THREAD %d\n", per_thread);
    gemmepi__append(defines, "#define GEMMEPI_MODES 0x%xu\n", modes);
    gemmepi__append(defines, "#define GEMMEPI_REPEATS 0\n#define GEMMEPI_AT_ONCE 1\n");
    return blocks;
}

/* >>building and running */

/* Of CAST's single scale and amax; those of rows and blocks are scaled.h's. */
static int gemmepi__loop_cast(const gemmepi__task *task) {
    return (task->flags & GEMMEPI_CAST_SCALE ? 1 : 0) | (task->flags & GEMMEPI_CAST_AMAX ? 2 : 0);
}

/* What is launched, but for the kernel: blocks, parameters and the prologue. */
static gemmepi_status gemmepi__describe_loop(const gemmepi__task *task, uint32_t outputs, gemmepi__loop *loop,
                                             gemmepi__text *defines) {
    int64_t blocks;
    int vector;
    gemmepi__take_nest(task, outputs, &loop->nest);
    vector = gemmepi__vector_of(gemmepi__largest_size(&loop->nest, ~0u));
    gemmepi__append_operation(defines, task, task->operation, &loop->nest, task->accumulator,
                              gemmepi__loop_cast(task), 0);
    if (gemmepi__is_contiguous(task, &loop->nest, vector))
        blocks = gemmepi__describe_contiguous(loop, vector, defines);
    else
        blocks = gemmepi__describe_tiles(task, loop, vector, defines);
    if (blocks <= 0 || blocks > INT_MAX)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the tensors have more tiles than a grid has blocks");
    loop->launch.blocks = (unsigned)blocks;
    loop->launch.threads_x = GEMMEPI__ELEMENT_THREADS;
    loop->launch.threads_y = 1;
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__build_loop(gemmepi_context *context, const gemmepi__task *task,
                                          uint32_t outputs, gemmepi__loop *loop) {
    char prologue[1024];
    gemmepi__text defines = gemmepi__text_in(prologue, sizeof prologue);
    gemmepi_status status = gemmepi__describe_loop(task, outputs, loop, &defines);
    if (status)
        return status;
    gemmepi__name_operation(task, task->operation,
                            loop->is_contiguous ? "gemmepi_elementwise" : "gemmepi_strided",
                            gemmepi__first_dtype(&loop->nest),
                            task->operation == GEMMEPI_OP_CAST ? loop->nest.dtype[GEMMEPI__OUT_Y]
                                                               : gemmepi__first_dtype(&loop->nest),
                            &loop->launch);
    return gemmepi__get_kernel(context, "elementwise.cu", prologue,
                               loop->is_contiguous ? "gemmepi_contiguous" : "gemmepi_strided", &loop->launch);
}

static gemmepi_status gemmepi__run_loop(const gemmepi_context *context, const gemmepi__loop *loop,
                                        const gemmepi__operation_params *operation, void *const *pointers,
                                        gemmepi_stream stream) {
    static const char what[] = "an element-wise operation";
    gemmepi__contiguous_params contiguous;
    gemmepi__strided_params strided;
    if (loop->is_contiguous) {
        contiguous = loop->contiguous;
        contiguous.operation = *operation;
        gemmepi__fill_pointers(&loop->nest, pointers, contiguous.data);
        return gemmepi__launch_kernel(context, &loop->launch, &contiguous, what, stream);
    }
    strided = loop->strided;
    strided.operation = *operation;
    gemmepi__fill_pointers(&loop->nest, pointers, strided.data);
    return gemmepi__launch_kernel(context, &loop->launch, &strided, what, stream);
}

#endif
