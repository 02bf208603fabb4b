/* The engine for Hopper: product and epilogue of 16-bit or TF32 operands in one kernel (sm90_fp8.h has that of fp8). It sums operands for
   bias_grad as they pass; of results it leaves a line of sums for each tile's rows, and where a batch shares the sums of an operand one
   for each item, which another launch adds up. */
#ifndef GEMMEPI_PRODUCT_ENGINES_SM90_H
#define GEMMEPI_PRODUCT_ENGINES_SM90_H

#include "sm90_model.h"

/* >>building */

typedef struct gpi__map_shape {
    uint32_t rank;
    uint64_t extents[4], strides[3]; /* strides in elements, of all but the first axis */
    uint32_t box[4];
} gpi__map_shape;

/* Of 4 bits a byte is an element of the map. */
static int gpi__map_type(const gpi__view *view) {
    return view->dtype == GEMMEPI_F32    ? GPI__CU_TENSOR_MAP_DATA_TYPE_FLOAT32
           : view->dtype == GEMMEPI_F16  ? GPI__CU_TENSOR_MAP_DATA_TYPE_FLOAT16
           : view->dtype == GEMMEPI_BF16 ? GPI__CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                         : GPI__CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

/* How units of 16 bytes are turned in a box of so many bytes a line. */
static int gpi__map_swizzle(int bytes) {
    return bytes == 32   ? GPI__CU_TENSOR_MAP_SWIZZLE_32B
           : bytes == 64 ? GPI__CU_TENSOR_MAP_SWIZZLE_64B
                         : GPI__CU_TENSOR_MAP_SWIZZLE_128B;
}

/* promotion: what of DRAM comes to L2 at once where a part of it is read */
static int gpi__encode_map(const gpi__driver *driver, const gpi__view *view, const gpi__map_shape *shape,
                           int promotion, gpi__tensor_map *map) {
    static const uint32_t ones[4] = {1, 1, 1, 1};
    uint64_t strides[3], space[2 * sizeof(gpi__cu_tensor_map) / sizeof(uint64_t)];
    gpi__cu_tensor_map *aligned =
        (gpi__cu_tensor_map *)(((uintptr_t)space + 63) & ~(uintptr_t)63); /* as the driver wants it */
    int bytes = (int)shape->box[0] * (view->bits < 8 ? 1 : view->bits / 8), result;
    unsigned axis;
    for (axis = 0; axis + 1 < shape->rank; axis++)
        strides[axis] = shape->strides[axis] * (uint64_t)view->bits / 8;
    result = driver->tensor_map_encode_tiled(
        aligned, gpi__map_type(view), shape->rank, (void *)(uintptr_t)256, shape->extents, strides,
        shape->box, ones, GPI__CU_TENSOR_MAP_INTERLEAVE_NONE, gpi__map_swizzle(bytes), promotion,
        GPI__CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (!result)
        memcpy(map, aligned, sizeof *map);
    return result;
}

/* From one line to the next: a single line's ld may be anything. */
static uint64_t gpi__map_line(const gpi__view *view) {
    int64_t unit = view->bits < 16 ? 128 / view->bits : 8; /* whole units of 16 bytes */
    return (uint64_t)(view->lines > 1 ? view->ld : gpi__divide_up(view->length, unit) * unit);
}

/* How much of DRAM comes to L2 at once where a part of it is read. Lines that do not begin at multiples of 256 bytes would have more of
   their neighbours brought than they need: measured on an H200, loads from L2 take up to 1.18 of the time then. */
static int gpi__operand_promotion(const gpi__view *view) {
    return view->lines > 1 && view->ld * view->bits / 8 % 256 ? GPI__CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                                                              : GPI__CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
}

/* An operand, as boxes of so many bytes along its lines and `lines` lines. One item serves the whole batch where it has no stride. */
static int gpi__map_boxes(const gpi__driver *driver, const gpi__problem *problem, const gpi__view *view,
                          int bytes, int lines, gpi__tensor_map *map) {
    int has_items = problem->batch > 1 && view->batch_stride != 0, of_map = view->bits < 8 ? 8 : view->bits;
    gpi__map_shape shape = {3, {0, 0, 1, 0}, {0, 0, 0}, {0, 0, 1, 0}};
    shape.extents[0] = (uint64_t)(view->length * view->bits / of_map);
    shape.extents[1] = (uint64_t)view->lines;
    shape.strides[0] = gpi__map_line(view);
    shape.strides[1] = shape.strides[0]; /* of an axis of one */
    if (has_items) {
        shape.extents[2] = (uint64_t)problem->batch;
        shape.strides[1] = (uint64_t)view->batch_stride;
    }
    shape.box[0] = (uint32_t)(bytes * 8 / of_map);
    shape.box[1] = (uint32_t)lines;
    return gpi__encode_map(driver, view, &shape, gpi__operand_promotion(view), map);
}

/* A result: columns, rows, halves, items. Halves are an axis, so that one does not write into the other's columns; those of groups are
   of whole boxes. */
static int gpi__map_result(const gpi__driver *driver, const gpi__problem *problem, const gpi__view *view,
                           int halves, int promotion, gpi__tensor_map *map) {
    gpi__map_shape shape = {4, {0, 0, 0, 0}, {0, 0, 0}, {0, GPI__SM90_BOX_M, 1, 1}};
    int together = gpi__half_group(problem) ? halves : 1, apart = halves / together;
    uint64_t line = gpi__map_line(view);
    shape.box[0] = (uint32_t)(GPI__SM90_LINE * 8 / view->bits);
    shape.extents[0] = (uint64_t)(gpi__half_columns(problem) * together);
    shape.extents[1] = (uint64_t)problem->m;
    shape.extents[2] = (uint64_t)apart;
    shape.extents[3] = (uint64_t)(gpi__has_groups_of_rows(problem) ? 1 : problem->batch);
    shape.strides[0] = line;
    shape.strides[1] = apart > 1 ? shape.extents[0] : line;
    shape.strides[2] = shape.extents[3] > 1 ? (uint64_t)view->batch_stride : line;
    return gpi__encode_map(driver, view, &shape, promotion, map);
}

/* The kernel's tensor maps: where in its parameters, and of which operand. */
static const struct {
    size_t place;
    int operand;
} gpi__sm90_maps[] = {{offsetof(gpi__sm90_params, a), GPI__A},
                      {offsetof(gpi__sm90_params, b), GPI__B},
                      {offsetof(gpi__sm90_params, a_tail), GPI__A},
                      {offsetof(gpi__sm90_params, b_tail), GPI__B},
                      {offsetof(gpi__sm90_params, d), GPI__D},
                      {offsetof(gpi__sm90_params, aux), GPI__AUX},
                      {offsetof(gpi__sm90_params, residual), GPI__RESIDUAL}};

/* The nth map, or NULL where this kernel does not read it. */
static gpi__tensor_map *gpi__sm90_map(const gpi__sm90 *sm90, size_t nth, gpi__sm90_params *params) {
    int moved = sm90->staged - sm90->copied;
    const int is_read[] = {
        1, 1, sm90->last_a, sm90->last_b, moved & 1, moved & 2 || sm90->loaded & 1, sm90->loaded & 2};
    return is_read[nth] ? (gpi__tensor_map *)(void *)((char *)params + gpi__sm90_maps[nth].place) : NULL;
}

/* Aux and a residual are read once, 128 bytes of a row at a time. To bring the 256 around them to L2 at once, as of operands, takes
   up to 1.6 percent more where k is 768, on an H200; where aux is written it saves up to 2. */
static gemmepi_status gpi__make_maps(const gpi__driver *driver, const gpi__problem *problem,
                                     gpi__sm90 *sm90) {
    const int written = GPI__CU_TENSOR_MAP_L2_PROMOTION_L2_256B, read = GPI__CU_TENSOR_MAP_L2_PROMOTION_NONE;
    const int lines[] = {gpi__a_box(problem, &sm90->shape), gpi__b_box(problem, &sm90->shape), sm90->last_a,
                         sm90->last_b};
    size_t i;
    int result = 0;
    for (i = 0; i < GPI__COUNT(gpi__sm90_maps) && !result; i++) {
        gpi__tensor_map *map = gpi__sm90_map(sm90, i, &sm90->params);
        int operand = gpi__sm90_maps[i].operand, is_aux = operand == GPI__AUX;
        const gpi__view *view = &problem->views[operand];
        if (map && operand <= GPI__B)
            result = gpi__map_boxes(driver, problem, view, GPI__SM90_LINE, lines[i], map);
        else if (map)
            result = gpi__map_result(
                driver, problem, view, is_aux ? gpi__halves_aside(problem) : gpi__halves_out(problem),
                operand == GPI__RESIDUAL || (is_aux && sm90->loaded & 1) ? read : written, map);
    }
    return result ? gpi__cuda_failed(driver, result, "cuTensorMapEncodeTiled") : GEMMEPI_OK;
}

static void gpi__append_sm90_defines(gpi__text *text, const gpi__problem *problem, const gpi__sm90 *sm90) {
    const gpi__sm90_shape *shape = &sm90->shape;
    gpi__append_epilogue_defines(text, problem, gpi__epilogue_is_aligned(problem),
                                 problem->views[GPI__A].scale, problem->views[GPI__B].scale);
    gpi__append(text, "#define GEMMEPI_TILE_M %d\n#define GEMMEPI_TILE_N %d\n", shape->tile_m, shape->tile_n);
    gpi__append(text, "#define GEMMEPI_STAGES %d\n#define GEMMEPI_PING_PONG %d\n", sm90->stages,
                shape->ping_pong);
    gpi__append(text, "#define GEMMEPI_CLUSTER_M %d\n#define GEMMEPI_CLUSTER_N %d\n", shape->cluster_m,
                shape->cluster_n);
    gpi__append(text, "#define GEMMEPI_PARTS %d\n#define GEMMEPI_BUFFERS %d\n", shape->parts, sm90->buffers);
    gpi__append(text, "#define GEMMEPI_STAGED %d\n#define GEMMEPI_LOADED %d\n", sm90->staged, sm90->loaded);
    gpi__append(text, "#define GEMMEPI_COPIED %d\n", sm90->copied);
    gpi__append(text, "#define GEMMEPI_BOX_GROUPS %d\n#define GEMMEPI_TAILS %d\n",
                gpi__box_bits(problem) == 32 ? 1 : 2, sm90->tails);
    gpi__append(text, "#define GEMMEPI_UNIT_ALPHA %d\n#define GEMMEPI_SHARED %u\n", sm90->kernel.unit_alpha,
                gpi__sm90_shared(problem, sm90));
    gpi__append(text, "#define GEMMEPI_A_ROWS %d\n#define GEMMEPI_B_ROWS %d\n",
                !problem->views[GPI__A].transposed, (int)problem->views[GPI__B].transposed);
    if (sm90->summed)
        gpi__append(text,
                    "#define GEMMEPI_SUMMED %d\n#define GEMMEPI_SUMS_TYPE %s\n"
                    "#define GEMMEPI_SUMS_ADD %d\n",
                    sm90->summed, gpi__sums_items(problem) ? "F64" : gpi__type_name(problem, GPI__BIAS_GRAD),
                    gpi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD) && !gpi__sums_items(problem));
    gpi__append(text, "#define GEMMEPI_WHOLE %d\n", gpi__half_columns(problem) % GPI__RUN == 0);
    gpi__append_grouping(text, problem);
    gpi__append_operands(text, problem);
    if (gpi__promotes(problem))
        gpi__append(text, "#define GEMMEPI_PROMOTES 1\n#define GEMMEPI_UNIFORM %d\n",
                    gpi__scales_are_uniform(problem));
}

static gemmepi_status gpi__get_sm90_kernel(gemmepi_context *context, const gpi__problem *problem,
                                           gpi__sm90 *sm90) {
    int dtype = problem->views[GPI__A].dtype, of_b = problem->views[GPI__B].dtype;
    char prologue[2048], words[160];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gpi__append_sm90_defines(&text, problem, sm90);
    gpi__name_kernel(&sm90->kernel.launch, "gemmepi_sm90_%s%s%s_%dx%d%s%s%s",
                     dtype == GEMMEPI_F32 ? "TF32" : gpi__type(dtype), of_b == dtype ? "" : "_",
                     of_b == dtype ? "" : gpi__type(of_b), sm90->shape.tile_m, sm90->shape.tile_n,
                     sm90->shape.parts > 1 ? "_parts" : "", gpi__name_of_grouping(problem),
                     gpi__name_of_epilogue(problem, dtype, words));
    return gpi__get_product_kernel(context, problem, "gemm_sm90.cu", prologue, "gemmepi_fused",
                                   &sm90->kernel.launch);
}

static gemmepi_status gpi__lay_out_grid(const gemmepi_context *context, const gpi__problem *problem,
                                        gpi__sm90 *sm90) {
    const gpi__sm90_shape *shape = &sm90->shape;
    gpi__sm90_params *params = &sm90->params;
    int64_t cluster = gpi__cluster_blocks(shape), rows, columns;
    int64_t tiles = gpi__sm90_tiles(problem, shape, &rows, &columns), most;
    GPI__UNSUPPORTED_IF(tiles <= 0 || tiles > INT_MAX / cluster,
                        "the result has more tiles than a grid has blocks");
    most = shape->parts > 1 ? tiles /* those of parts do not stay */
                            : gpi__resident_blocks(context, (int)cluster) / cluster;
    params->tiles = (unsigned)tiles;
    params->cluster_rows = (unsigned)rows;
    params->cluster_columns = (unsigned)columns;
    params->band = gpi__sm90_band(context, shape, rows);
    params->k = (int)problem->k;
    params->a_items = problem->batch > 1 && problem->views[GPI__A].batch_stride != 0;
    params->b_items = problem->batch > 1 && problem->views[GPI__B].batch_stride != 0;
    sm90->kernel.launch.blocks = (unsigned)((most < tiles ? most : tiles) * cluster);
    sm90->kernel.launch.threads_x = GPI__SM90_THREADS;
    sm90->kernel.launch.threads_y = 1;
    sm90->kernel.launch.shared = gpi__sm90_shared(problem, sm90);
    return GEMMEPI_OK;
}

/* What is left of sums when the kernel has run. */
static gemmepi_status gpi__finish_sums(gemmepi_context *context, const gpi__problem *problem,
                                       gpi__sm90 *sm90) {
    const gpi__view *out = &problem->views[GPI__BIAS_GRAD];
    if (!sm90->summed)
        return gpi__build_sums(context, problem, sm90->params.epilogue.row_tiles, &sm90->kernel.sums);
    sm90->params.sum_tiles = (int)gpi__tiles_across(problem, &sm90->shape);
    sm90->params.sums_stride = gpi__sums_items(problem) ? out->length : out->batch_stride;
    if (!gpi__sums_items(problem))
        return GEMMEPI_OK;
    return gpi__build_sum_of_lines(context, problem, 1, problem->batch, &sm90->kernel.sums);
}

static gemmepi_status gpi__sm90_build(gemmepi_context *context, const gpi__problem *problem,
                                      const gpi__candidate *candidate, void *built) {
    const gpi__sm90_shape *shape = &gpi__shapes_for(problem)[candidate->shape];
    gpi__sm90 *sm90 = (gpi__sm90 *)built;
    gemmepi_status status;
    memset(sm90, 0, sizeof *sm90);
    gpi__cut_up(problem, shape, candidate->unit_alpha, sm90);
    gpi__fill_epilogue(problem, &sm90->params.epilogue, sm90->params.places);
    sm90->params.epilogue.row_tiles =
        (unsigned)gpi__divide_up(problem->m, sm90->shape.ping_pong ? shape->tile_m : shape->tile_m / 2);
    status = gpi__lay_out_grid(context, problem, sm90);
    if (!status)
        status = gpi__make_maps(&context->driver, problem, sm90);
    if (!status)
        status = gpi__get_sm90_kernel(context, problem, sm90);
    return status ? status : gpi__finish_sums(context, problem, sm90);
}

/* >>running */

static int gpi__point_map(const gpi__driver *driver, gpi__tensor_map *map, void *pointer) {
    return driver->tensor_map_replace_address((gpi__cu_tensor_map *)(void *)map, pointer);
}

/* The primary context is current. */
static gemmepi_status gpi__sm90_run(const gemmepi_context *context, const gpi__problem *problem,
                                    const void *built, const gpi__arguments *arguments, char *workspace,
                                    gemmepi_stream stream) {
    const gpi__sm90 *sm90 = (const gpi__sm90 *)built;
    const gpi__driver *driver = &context->driver;
    void *const *pointers = arguments->pointers;
    uint64_t space[(sizeof(gpi__sm90_params) + 128) / sizeof(uint64_t)];
    gpi__sm90_params *params = (gpi__sm90_params *)(((uintptr_t)space + 63) & ~(uintptr_t)63);
    gemmepi_status status = gpi__clear_amax(context, problem, arguments, stream);
    int result = 0;
    size_t i;
    if (status)
        return status;
    memcpy(params, &sm90->params, sizeof *params);
    gpi__point_epilogue(arguments, sm90->kernel.unit_alpha, &params->epilogue, params->places);
    gpi__point_states(&sm90->kernel.sums, workspace, params->places);
    if (problem->grouping.groups)
        params->groups = arguments->groups;
    if (sm90->summed)
        params->sums = sm90->kernel.sums.second.function ? (void *)workspace : pointers[GPI__BIAS_GRAD];
    for (i = 0; i < GPI__COUNT(gpi__sm90_maps) && !result; i++) {
        gpi__tensor_map *map = gpi__sm90_map(sm90, i, params);
        if (map)
            result = gpi__point_map(driver, map, pointers[gpi__sm90_maps[i].operand]);
    }
    if (result)
        return gpi__cuda_failed(driver, result, "cuTensorMapReplaceAddress");
    return gpi__run_product_kernel(context, &sm90->kernel, params, arguments, workspace, stream);
}

/* >>in words */

static void gpi__sm90_explain(const gpi__problem *problem, const void *built, gpi__text *text) {
    const gpi__sm90 *sm90 = (const gpi__sm90 *)built;
    const gpi__sm90_shape *shape = &sm90->shape;
    gpi__append(text, "  %s: product and epilogue, %u blocks, tiles of %d x %d%s, %d stages, ",
                sm90->kernel.launch.name, sm90->kernel.launch.blocks, shape->tile_m, shape->tile_n,
                shape->ping_pong ? " by two warpgroups in turns" : "", sm90->stages);
    if (shape->parts > 1)
        gpi__append(text, "each by %d blocks that divide k\n", shape->parts);
    else
        gpi__append(text, "clusters of %d x %d\n", shape->cluster_m, shape->cluster_n);
    if (sm90->summed) /* whose first launch there is not */
        gpi__append(text, "  bias_grad: sums of %s as its tiles pass%s\n",
                    gpi__argument_name(problem, sm90->summed == 1 ? GPI__A : GPI__B),
                    sm90->kernel.sums.second.function ? ", of its items by 1 more launch" : "");
    gpi__explain_behind_kernel(text, &sm90->kernel, "");
}

/* >>the engine */

GPI__ENGINE(sm90, GPI__HAS_SM90, 1, gpi__tma_rule, gpi__tma_varies, sm90, gpi__sm90_explain, gpi__sm90_run);

#endif
