/* A kernel of our own for a product, with what is behind it: a pass over what it leaves in workspace, and sums. */
#ifndef GEMMEPI_PRODUCT_PARTS_PRODUCT_KERNEL_H
#define GEMMEPI_PRODUCT_PARTS_PRODUCT_KERNEL_H

#include "pass.h"

typedef struct gpi__product_kernel {
    gpi__launch launch;
    int tile_m, tile_n;
    int unit_alpha;
    size_t product_bytes; /* of the product, or of the sums of k's parts; 0: no pass is behind it */
    gpi__pass pass;
    gpi__sums sums;
    int sums_operand; /* the kernel itself sums an operand for bias_grad */
} gpi__product_kernel;

/* One that has a block for each tile, or several. */
typedef struct gpi__tiled_kernel {
    gpi__product_kernel kernel;
    gpi__plain_params params; /* all but pointers and scalars */
} gpi__tiled_kernel;

/* >>building */

/* Of a built that is all 0. */
static void gpi__start_kernel(int tile_m, int tile_n, int unit_alpha, gpi__product_kernel *kernel) {
    kernel->tile_m = tile_m;
    kernel->tile_n = tile_n;
    kernel->unit_alpha = unit_alpha;
}

/* Blocks for tiles of the product, `columns` of them side by side. GEMMEPI_UNSUPPORTED with the sentence where there are too many. */
static gemmepi_status gpi__fill_tiles(const gpi__problem *problem, int64_t tiles, int64_t columns,
                                      int threads, gpi__product_kernel *kernel, gpi__plain_params *params) {
    GPI__UNSUPPORTED_IF(tiles <= 0 || tiles > INT_MAX, "the result has more tiles than a grid has blocks");
    kernel->launch.blocks = (unsigned)tiles;
    kernel->launch.threads_x = (unsigned)threads;
    kernel->launch.threads_y = 1;
    gpi__fill_epilogue(problem, &params->epilogue, params->places);
    params->epilogue.row_tiles = (unsigned)gpi__divide_up(problem->m, kernel->tile_m);
    params->epilogue.column_tiles = (unsigned)columns;
    params->a = gpi__kernel_matrix_of(&problem->views[GPI__A]);
    params->b = gpi__kernel_matrix_of(&problem->views[GPI__B]);
    params->k = problem->k;
    return GEMMEPI_OK;
}

/* Likewise, of tiles of both halves where it has them, divided among `parts` blocks each. */
static gemmepi_status gpi__lay_out_tiles(const gpi__problem *problem, int threads, int parts,
                                         gpi__product_kernel *kernel, gpi__plain_params *params) {
    int64_t columns = gpi__divide_up(problem->n, kernel->tile_n);
    int64_t tiles = gpi__offset(columns, gpi__divide_up(problem->m, kernel->tile_m), 0);
    tiles = gpi__offset(gpi__offset(tiles, problem->batch, 0), parts, 0);
    return gpi__fill_tiles(problem, tiles, columns, threads, kernel, params);
}

/* What is behind kernel and pass. */
static gemmepi_status gpi__build_behind_kernel(gemmepi_context *context, const gpi__problem *problem,
                                               unsigned row_tiles, gpi__product_kernel *kernel) {
    if (kernel->product_bytes)
        row_tiles = kernel->pass.params.epilogue.row_tiles;
    return kernel->sums_operand ? GEMMEPI_OK : gpi__build_sums(context, problem, row_tiles, &kernel->sums);
}

/* The pass over such a product, or over so many parts of its sums. */
static gemmepi_status gpi__build_pass_behind(gemmepi_context *context, const gpi__problem *problem,
                                             const gpi__view *product, int parts,
                                             gpi__product_kernel *kernel) {
    int64_t elements = gpi__offset(gpi__times(problem->batch, parts), product->batch_stride, 0);
    GPI__UNSUPPORTED_IF(elements < 0, "the product has more than 2^56 elements");
    kernel->product_bytes = gpi__bytes_for(elements, (size_t)(product->bits / 8));
    return gpi__build_pass(context, problem, product, parts, kernel->unit_alpha, &kernel->pass);
}

/* Product, and what sums want. */
static size_t gpi__kernel_workspace(const gpi__product_kernel *kernel) {
    return gpi__round_up(kernel->product_bytes, 256) + kernel->sums.bytes;
}

/* >>running */

/* Kernel and all that is behind it. The primary context is current. */
static gemmepi_status gpi__run_product_kernel(const gemmepi_context *context,
                                              const gpi__product_kernel *kernel, void *params,
                                              const gpi__arguments *arguments, char *workspace,
                                              gemmepi_stream stream) {
    char *states = gpi__past(workspace, kernel->product_bytes);
    gemmepi_status status = gpi__launch_kernel(context, &kernel->launch, params, "the product", stream);
    if (!status && kernel->product_bytes)
        status = gpi__run_pass(context, &kernel->pass, &kernel->sums, arguments, workspace, states, stream);
    return status ? status : gpi__run_sums(context, &kernel->sums, arguments, states, stream);
}

static gemmepi_status gpi__run_tiles(const gemmepi_context *context, const gpi__problem *problem,
                                     const void *built, const gpi__arguments *arguments, char *workspace,
                                     gemmepi_stream stream) {
    const gpi__tiled_kernel *tiles = (const gpi__tiled_kernel *)built;
    gpi__plain_params params = tiles->params;
    int is_bare = tiles->kernel.product_bytes != 0;
    gemmepi_status status = gpi__clear_amax(context, problem, arguments, stream);
    if (problem->grouping.groups)
        params.groups = arguments->groups;
    gpi__point_epilogue(arguments, tiles->kernel.unit_alpha || is_bare, &params.epilogue, params.places);
    gpi__point_states(&tiles->kernel.sums, workspace, params.places);
    params.a.data = arguments->pointers[GPI__A];
    params.b.data = arguments->pointers[GPI__B];
    if (tiles->kernel.sums_operand)
        params.epilogue.sums = arguments->pointers[GPI__BIAS_GRAD];
    if (is_bare) {
        params.epilogue.d.data = workspace;
        params.epilogue.device_alpha = params.epilogue.device_beta = NULL;
    }
    return status ? status
                  : gpi__run_product_kernel(context, &tiles->kernel, &params, arguments, workspace, stream);
}

/* >>in words */

static void gpi__describe_product_kernel(const gpi__problem *problem, const gpi__product_kernel *kernel,
                                         gemmepi_plan_details *details) {
    memcpy(details->kernel, kernel->launch.name, sizeof details->kernel);
    details->tile_m = kernel->tile_m;
    details->tile_n = kernel->tile_n;
    details->launches = 1 + (kernel->pass.launch.function != NULL) + gpi__amax_count(problem) +
                        gpi__sums_launches(&kernel->sums);
}

/* before: what the pass does before the epilogue */
static void gpi__explain_behind_kernel(gpi__text *text, const gpi__product_kernel *kernel,
                                       const char *before) {
    gpi__explain_pass(text, &kernel->pass.launch, before);
    gpi__explain_sums(text, &kernel->sums);
}

#endif
