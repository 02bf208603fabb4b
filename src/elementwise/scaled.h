/* Casts with a scale or amax for each row, 128 steps of k or block, those whose scale is made of their amax, and those to both layouts. */
#ifndef GEMMEPI_ELEMENTWISE_SCALED_H
#define GEMMEPI_ELEMENTWISE_SCALED_H

#include "loop.h"
#include "scaled_rows.h"

#define GPI__SCALED_TILE 128 /* scaled.cu: along its fast axis */

/* Where a kernel has its scale from: as in scaled.cu. */
enum { GPI__AS_IT_IS, GPI__GIVEN, GPI__FROM_TILE, GPI__FROM_AMAX };

typedef struct gpi__scaled_step {
    gpi__launch
        amax; /* of whole tensors and rows whose scale is made of it: a launch of its own, before the cast */
    gpi__launch cast; /* no function: there is nothing to launch */
    gpi__scaled_params params;
    size_t amax_bytes;    /* zeroed before the first launch; 0: each number is written by one block */
    size_t partial_bytes; /* of workspace, where args have no amax */
    int64_t offset_a, offset_y, offset_turned;
    int is_two;
    int tile_slow;
    int row_threads; /* of a row, where rows stay in registers; 0: tiles */
    int is_tensor;   /* scaled_tensor.cu has it */
} gpi__scaled_step;

static int gpi__turns(const gpi__task *task) {
    return gpi__task_has(task, GPI__OUT_Y_TRANSPOSED);
}

/* Whether a task goes this way. */
static int gpi__is_scaled(const gpi__task *task) {
    return GPI__HAS_FP8 && (task->scale_mode > GEMMEPI_SCALE_TENSOR || (task->flags & GEMMEPI_CAST_Y_SCALE) ||
                            gpi__turns(task));
}

/* Whether y_transposed has scales of its own. */
static int gpi__turned_has_scales(const gpi__task *task) {
    return gpi__turns(task) && task->scale_mode > GEMMEPI_SCALE_TENSOR;
}

/* The scales, or amax, of a task: how many numbers of memory they reach over. turned: those of y_transposed. */
static int64_t gpi__scale_count(const gpi__task *task, int turned) {
    int k_is_rows = ((task->flags & GEMMEPI_CAST_K_IS_ROWS) != 0) != turned, d;
    int64_t last = task->rank ? task->shape[task->rank - 1] : 1,
            other = task->rank > 1 ? task->shape[task->rank - 2] : 1;
    int64_t rows = k_is_rows ? last : other,
            steps = gpi__divide_up(k_is_rows ? other : last, GPI__SCALED_TILE);
    int64_t count =
        task->scale_mode == GEMMEPI_SCALE_OUTER        ? rows
        : task->scale_mode == GEMMEPI_SCALE_VECTOR_128 ? gpi__times(rows, steps)
        : task->scale_mode == GEMMEPI_SCALE_BLOCK_128
            ? gpi__times(gpi__divide_up(rows, GPI__SCALED_TILE), gpi__times(gpi__divide_up(steps, 4), 4))
            : 1;
    for (d = 0; d < task->rank - 2 && task->scale_mode > GEMMEPI_SCALE_TENSOR; d++)
        count = gpi__times(count, task->shape[d]);
    return count;
}

static size_t gpi__amax_size(const gpi__task *task) {
    return task->operands[GPI__IN_A].dtype == GEMMEPI_F64 ? sizeof(double) : sizeof(float);
}

/* Axis `fast` of the last two (0: the last) first, then the other, then the rest from the last on. */
static void gpi__convert_scaled_axes(const gpi__task *task, int fast, gpi__scaled_params *params) {
    int d;
    params->rank = task->rank > 2 ? task->rank : 2;
    for (d = 0; d < params->rank; d++) {
        int axis = task->rank - 1 - (d < 2 ? d ^ fast : d);
        params->extent[d] = axis < 0 ? 1 : task->shape[axis];
        params->stride_a[d] = axis < 0 ? 0 : task->operands[GPI__IN_A].stride[axis];
        params->stride_y[d] = axis < 0 ? 0 : task->operands[GPI__OUT_Y].stride[axis];
        params->stride_turned[d] = axis < 0 ? 0 : task->operands[GPI__OUT_Y_TRANSPOSED].stride[axis];
    }
}

/* Whether a run of `vector` elements along the fast axis begins at a multiple of its size. */
static int gpi__scaled_is_aligned(const gpi__task *task, const gpi__scaled_params *params, int tensor,
                                  int vector) {
    const gpi__operand *operand = &task->operands[tensor];
    const long long *stride = tensor == GPI__IN_A ? params->stride_a : params->stride_y;
    int64_t size = gpi__size_of(operand->dtype), bytes = size * vector;
    int d;
    if (stride[0] != 1 || task->alignment % bytes || operand->offset % bytes)
        return 0;
    for (d = 1; d < params->rank; d++)
        if (stride[d] * size % bytes)
            return 0;
    return 1;
}

/* Whether y_transposed takes words of four elements along the slow axis. */
static int gpi__turned_is_aligned(const gpi__task *task, const gpi__scaled_params *params) {
    int d;
    if (params->stride_turned[1] != 1 || task->alignment % 4 ||
        task->operands[GPI__OUT_Y_TRANSPOSED].offset % 4)
        return 0;
    for (d = 0; d < params->rank; d++)
        if (d != 1 && params->stride_turned[d] % 4)
            return 0;
    return 1;
}

/* How one launch goes about it: the defines of scaled.cu. */
typedef struct gpi__scaled_way {
    int k_is_fast, vectors, scale, amax, stores;
    int turns; /* 1: y_transposed is stored, too, 2: by words */
    int slow;  /* a tile's extent along the other axis */
} gpi__scaled_way;

static void gpi__append_scaled_types(gpi__text *text, const gpi__task *task) {
    gpi__append(text, "#define GEMMEPI_A_TYPE %s\n", gpi__type(task->operands[GPI__IN_A].dtype));
    gpi__append(text, "#define GEMMEPI_Y_TYPE %s\n", gpi__type(task->operands[GPI__OUT_Y].dtype));
    gpi__append(text, "#define GEMMEPI_ACC %s\n", gpi__type(task->accumulator));
}

static void gpi__append_scaled(gpi__text *text, const gpi__task *task, const gpi__scaled_way *way) {
    gpi__append_scaled_types(text, task);
    gpi__append(text, "#define GEMMEPI_MODE %d\n", (int)task->scale_mode);
    gpi__append(text, "#define GEMMEPI_K_FAST %d\n", way->k_is_fast);
    gpi__append(text, "#define GEMMEPI_VECTORS %d\n", way->vectors);
    gpi__append(text, "#define GEMMEPI_SCALE %d\n", way->scale);
    gpi__append(text, "#define GEMMEPI_AMAX %d\n", way->amax);
    gpi__append(text, "#define GEMMEPI_STORES %d\n", way->stores);
    gpi__append(text, "#define GEMMEPI_SLOW %d\n#define GEMMEPI_TURNS %d\n", way->slow, way->turns);
}

static gemmepi_status gpi__build_scaled_launch(gemmepi_context *context, const gpi__task *task,
                                               const gpi__scaled_way *way, gpi__launch *launch) {
    char prologue[512];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gpi__append_scaled(&text, task, way);
    launch->threads_x = (unsigned)(4 * way->slow);
    launch->threads_y = 1;
    gpi__name_operation(task, task->operation, way->stores ? "gemmepi_scaled" : "gemmepi_scaled_amax",
                        task->operands[GPI__IN_A].dtype, task->operands[GPI__OUT_Y].dtype, launch);
    return gpi__get_kernel(context, "scaled.cu", prologue, "gemmepi_scaled", launch);
}

/* Elements of a vector, of the wider of a's and y's types. */
static int gpi__scaled_vector(const gpi__task *task) {
    int size_a = gpi__size_of(task->operands[GPI__IN_A].dtype),
        size_y = gpi__size_of(task->operands[GPI__OUT_Y].dtype);
    return gpi__vector_of(size_a > size_y ? size_a : size_y);
}

/* Axes, tiles and what kind of launches there will be; *first is that of amax, where there are two. */
static gemmepi_status gpi__describe_scaled(const gpi__task *task, gpi__scaled_step *step,
                                           gpi__scaled_way *first, gpi__scaled_way *second) {
    gpi__scaled_params *params = &step->params;
    int size_a = gpi__size_of(task->operands[GPI__IN_A].dtype),
        size_y = gpi__size_of(task->operands[GPI__OUT_Y].dtype);
    int largest = size_a > size_y ? size_a : size_y, vector = gpi__scaled_vector(task), fast, d;
    int is_whole = task->scale_mode <= GEMMEPI_SCALE_OUTER,
        makes_scale = (task->flags & GEMMEPI_CAST_Y_SCALE) != 0;
    int64_t blocks = 1;
    gpi__convert_scaled_axes(task, 0, params);
    fast = params->stride_y[1] && gpi__magnitude(params->stride_y[1]) < gpi__magnitude(params->stride_y[0]);
    gpi__convert_scaled_axes(task, fast, params);
    first->k_is_fast = fast == ((task->flags & GEMMEPI_CAST_K_IS_ROWS) != 0);
    first->slow = gpi__turns(task) || task->scale_mode == GEMMEPI_SCALE_BLOCK_128 ||
                          (task->scale_mode == GEMMEPI_SCALE_VECTOR_128 && !first->k_is_fast)
                      ? GPI__SCALED_TILE
                      : GPI__SCALED_TILE / 2;
    step->tile_slow = first->slow;
    for (d = 0; d < params->rank && blocks > 0; d++) {
        int64_t tile = d == 0 ? GPI__SCALED_TILE : first->slow;
        int64_t tiles = d < 2 ? gpi__divide_up(params->extent[d], tile) : params->extent[d];
        if (d < 2)
            params->tiles[d] = (unsigned)tiles;
        blocks = gpi__offset(blocks, tiles, 0);
    }
    GPI__UNSUPPORTED_IF(blocks <= 0 || blocks > INT_MAX,
                        "the tensors have more tiles than a grid has blocks");
    step->amax.blocks = step->cast.blocks = (unsigned)blocks;
    step->offset_a = task->operands[GPI__IN_A].offset;
    step->offset_y = task->operands[GPI__OUT_Y].offset;
    step->offset_turned = task->operands[GPI__OUT_Y_TRANSPOSED].offset;
    step->is_two = makes_scale && is_whole;
    if (is_whole && (task->flags & (GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX)))
        step->amax_bytes = gpi__bytes_for(gpi__scale_count(task, 0), gpi__amax_size(task));
    if (step->is_two && !(task->flags & GEMMEPI_CAST_AMAX))
        step->partial_bytes = step->amax_bytes;
    first->vectors = largest < 8 && gpi__scaled_is_aligned(task, params, GPI__IN_A, vector) &&
                     gpi__scaled_is_aligned(task, params, GPI__OUT_Y, vector);
    first->scale = GPI__AS_IT_IS;
    first->amax = 1;
    first->stores = first->turns = 0;
    *second = *first;
    second->scale = step->is_two                         ? GPI__FROM_AMAX
                    : makes_scale                        ? GPI__FROM_TILE
                    : (task->flags & GEMMEPI_CAST_SCALE) ? GPI__GIVEN
                                                         : GPI__AS_IT_IS;
    second->amax = (task->flags & GEMMEPI_CAST_AMAX) && !step->is_two;
    second->stores = 1;
    second->turns = gpi__turns(task) ? 1 + gpi__turned_is_aligned(task, params) : 0;
    return GEMMEPI_OK;
}

/* >>whole tensors whose scale is made of their amax, by two launches of one kernel: scaled_tensor.cu */

#define GPI__TENSOR_THREADS 1024 /* of a multiprocessor, in blocks that have a tile each */

/* On an H100 in graphs it takes 0.71 of the time of the others for 4 million elements of BF16, 0.87 for 16 million, as long for 64, and 1.03
   for 224. */
#define GPI__TENSOR_MOST_TILES 16384

enum { GPI__FINDS_AMAX, GPI__STORES }; /* a launch's phase: as in scaled_tensor.cu */

/* Whether a task's scale is made so. way: of its cast, by tiles */
static int gpi__is_of_tensor(const gpi__task *task, const gpi__scaled_step *step, const gpi__scaled_way *way,
                             int vector) {
    return step->is_two && task->scale_mode == GEMMEPI_SCALE_TENSOR && way->vectors &&
           step->params.extent[0] % vector == 0 &&
           (gpi__turns(task) || step->cast.blocks <= GPI__TENSOR_MOST_TILES);
}

/* Tensors that are one line each are a matrix of lines as long as a tile, if their length allows it: so all tiles are full. */
static int gpi__flatten_scaled(gpi__scaled_params *params) {
    int64_t count = 1;
    int d;
    for (d = 0; d < params->rank; d++) {
        if (params->extent[d] != 1 && (params->stride_a[d] != count || params->stride_y[d] != count))
            return 0;
        count *= params->extent[d];
    }
    if (count % GPI__SCALED_TILE)
        return 0;
    params->rank = 2;
    params->extent[0] = params->stride_a[1] = params->stride_y[1] = GPI__SCALED_TILE;
    params->extent[1] = count / GPI__SCALED_TILE;
    return 1;
}

static void gpi__append_tensor_defines(gpi__text *text, const gpi__task *task, int turns, int has_items,
                                       int is_flat) {
    gpi__append_scaled_types(text, task);
    gpi__append(text, "#define GEMMEPI_AMAX %d\n", (task->flags & GEMMEPI_CAST_AMAX) != 0);
    gpi__append(text, "#define GEMMEPI_SLOW %d\n#define GEMMEPI_VECTORS 1\n#define GEMMEPI_TURNS %d\n",
                turns ? GPI__SCALED_TILE : GPI__SCALED_TILE / 2, turns);
    gpi__append(text, "#define GEMMEPI_ITEMS %d\n#define GEMMEPI_FLAT %d\n", has_items, is_flat);
}

/* In the place of the others. */
static gemmepi_status gpi__build_scaled_tensor(gemmepi_context *context, const gpi__task *task, int turns,
                                               gpi__scaled_step *step) {
    gpi__scaled_params *params = &step->params;
    char prologue[512];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    int slow = turns ? GPI__SCALED_TILE : GPI__SCALED_TILE / 2;
    int64_t tiles = 1, most = (int64_t)context->multiprocessors * (GPI__TENSOR_THREADS / (4 * slow));
    int d, is_flat = !turns && gpi__flatten_scaled(params);
    for (d = 0; d < params->rank; d++) {
        int64_t along =
            d < 2 ? gpi__divide_up(params->extent[d], d ? slow : GPI__SCALED_TILE) : params->extent[d];
        if (d < 2)
            params->tiles[d] = (unsigned)along;
        tiles *= along; /* no more than when they were counted before */
    }
    params->tile_count = (unsigned)tiles;
    step->is_tensor = 1;
    step->is_two = 0;
    step->tile_slow = slow;
    step->amax_bytes = 0;
    step->cast.blocks = (unsigned)(tiles < most ? tiles : most);
    step->cast.threads_x = (unsigned)(4 * slow);
    step->cast.threads_y = 1;
    step->partial_bytes = step->cast.blocks * gpi__amax_size(task);
    gpi__append_tensor_defines(&text, task, turns, params->rank > 2, is_flat);
    gpi__name_operation(task, task->operation, "gemmepi_scaled_tensor", task->operands[GPI__IN_A].dtype,
                        task->operands[GPI__OUT_Y].dtype, &step->cast);
    return gpi__get_waiting_kernel(context, "scaled_tensor.cu", prologue, "gemmepi_scaled_tensor",
                                   &step->cast);
}

/* >>rows, of which each is in registers between its amax and what is stored: scaled_rows.cu */

/* Whether a task's scales are made so. way: of its cast, by tiles */
static int gpi__is_of_rows(const gpi__task *task, const gpi__scaled_step *step, const gpi__scaled_way *way,
                           int vector) {
    const gpi__scaled_params *params = &step->params;
    int64_t lines = 1;
    int d;
    for (d = 1; d < params->rank; d++)
        lines = gpi__times(lines, params->extent[d]);
    return step->is_two && task->scale_mode == GEMMEPI_SCALE_OUTER && way->k_is_fast && way->vectors &&
           gpi__divide_up(params->extent[0], vector) <= GPI__ROW_MOST_THREADS * GPI__ROW_MOST_VECTORS &&
           lines > 0 && lines <= INT_MAX / 2;
}

static void gpi__append_row_defines(gpi__text *text, const gpi__task *task, const gpi__row_way *way) {
    gpi__append_scaled_types(text, task);
    gpi__append(text, "#define GEMMEPI_AMAX %d\n", (task->flags & GEMMEPI_CAST_AMAX) != 0);
    gpi__append_row_way(text, way);
}

/* In the place of the two launches. */
static gemmepi_status gpi__build_scaled_rows(gemmepi_context *context, const gpi__task *task, int vector,
                                             gpi__scaled_step *step) {
    gpi__row_way way = gpi__row_way_for(gpi__divide_up(step->params.extent[0], vector), vector);
    char prologue[512];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    int64_t lines = 1;
    int d;
    for (d = 1; d < step->params.rank; d++)
        lines *= step->params.extent[d];
    step->amax_bytes = step->partial_bytes = 0;
    step->is_two = 0;
    gpi__share_out_rows(lines, &way, &step->cast);
    step->tile_slow = (int)step->cast.threads_x / way.group;
    step->row_threads = way.group;
    way.rank = step->params.rank;
    gpi__append_row_defines(&text, task, &way);
    gpi__name_operation(task, task->operation, "gemmepi_scaled_rows", task->operands[GPI__IN_A].dtype,
                        task->operands[GPI__OUT_Y].dtype, &step->cast);
    return gpi__get_kernel(context, "scaled_rows.cu", prologue, "gemmepi_scaled_rows", &step->cast);
}

static gemmepi_status gpi__build_scaled(gemmepi_context *context, const gpi__task *task,
                                        gpi__scaled_step *step) {
    gpi__scaled_way first, second;
    gemmepi_status status = gpi__describe_scaled(task, step, &first, &second);
    int vector = gpi__scaled_vector(task);
    if (!status && gpi__is_of_rows(task, step, &first, vector))
        return gpi__build_scaled_rows(context, task, vector, step);
    if (!status && gpi__is_of_tensor(task, step, &first, vector))
        return gpi__build_scaled_tensor(context, task, second.turns, step);
    if (!status && step->is_two)
        status = gpi__build_scaled_launch(context, task, &first, &step->amax);
    return status ? status : gpi__build_scaled_launch(context, task, &second, &step->cast);
}

/* Sets the numbers that launches take the largest of to 0. */
static gemmepi_status gpi__clear_numbers(const gemmepi_context *context, void *amax, size_t bytes,
                                         gemmepi_stream stream) {
    int result = context->driver.memset_d8_async((gpi__cu_deviceptr)(uintptr_t)amax, 0, bytes, stream);
    return result ? gpi__cuda_failed(&context->driver, result, "clearing amax") : GEMMEPI_OK;
}

/* Two launches of one kernel, the second of which may begin before the first has ended. */
static gemmepi_status gpi__run_scaled_tensor(const gemmepi_context *context, const gpi__scaled_step *cast,
                                             gpi__scaled_params *params, void *workspace,
                                             gemmepi_stream stream) {
    gemmepi_status status;
    params->partials = workspace;
    params->phase = GPI__FINDS_AMAX;
    status = gpi__launch_kernel(context, &cast->cast, params, "amax of a cast", stream);
    params->phase = GPI__STORES;
    return status
               ? status
               : gpi__launch_kernel(context, &cast->cast, params, "a cast with a scale of its amax", stream);
}

static gemmepi_status gpi__run_scaled(const gemmepi_context *context, const gpi__scaled_step *cast,
                                      const gemmepi_elementwise_args *args, void *const *pointers,
                                      void *workspace, gemmepi_stream stream) {
    static const char what[] = "a cast with scales";
    gpi__scaled_params params = cast->params;
    gemmepi_status status = GEMMEPI_OK;
    params.a = (char *)pointers[GPI__IN_A] + cast->offset_a;
    params.y = (char *)pointers[GPI__OUT_Y] + cast->offset_y;
    if (pointers[GPI__OUT_Y_TRANSPOSED])
        params.turned = (char *)pointers[GPI__OUT_Y_TRANSPOSED] + cast->offset_turned;
    params.scale = args->scale;
    params.y_scale = args->y_scale;
    params.turned_scale = args->y_transposed_scale;
    params.amax = args->amax;
    if (cast->is_tensor)
        return gpi__run_scaled_tensor(context, cast, &params, workspace, stream);
    params.amax = cast->partial_bytes ? workspace : args->amax;
    if (cast->amax_bytes)
        status = gpi__clear_numbers(context, params.amax, cast->amax_bytes, stream);
    if (!status && cast->amax.function)
        status = gpi__launch_kernel(context, &cast->amax, &params, what, stream);
    return status ? status : gpi__launch_kernel(context, &cast->cast, &params, what, stream);
}

#endif
