/* The route plain: one kernel of ours for any types, layout, alignment and scales, with the epilogue in it, and sums. It
   takes whatever the other routes do not, and small products where its estimate is the least. A tile of the product has not both halves
   of GATED, nor 128 columns of a row, whose scale is found: there the kernel leaves the bare product in workspace, for the pass. */
#ifndef GEMMEPI_PRODUCT_ROUTES_PLAIN_H
#define GEMMEPI_PRODUCT_ROUTES_PLAIN_H

#include "../matmul_plan.h"
#include "../parts/pass.h"

#define GPI__PLAIN_TILE    64 /* gemm_plain.cu: rows and columns of a block's tile */
#define GPI__PLAIN_THREADS 128

typedef struct gpi__plain {
    gpi__launch launch;
    gpi__plain_params params; /* all but pointers and scalars */
    gpi__pass pass;           /* of GATED, and where scales are found */
    gpi__sums sums;
    size_t partial_bytes, product_bytes;
} gpi__plain;

/* Whether a tile lacks what the epilogue needs of a row: the other half, or the rest of 128 columns. */
static int gpi__plain_has_pass(const gpi__problem *problem) {
    return gpi__has(problem, GEMMEPI_GATED) || problem->found_scale;
}

/* After how many steps of k the sums are scaled and added up in the accumulator; 0: at the end. I8 sums of more than 2^16
   terms could pass 2^31. */
static int gpi__plain_chunk(const gpi__problem *problem) {
    if (gpi__scale_varies_along_k(problem, GPI__A) || gpi__scale_varies_along_k(problem, GPI__B))
        return 128;
    return problem->common == GEMMEPI_I8 && problem->accumulator == GEMMEPI_F32 && problem->k > 65536 ? 65536
                                                                                                      : 0;
}

/* Whether a group's part of the operand begins within its lines, or its second half between runs. */
static int gpi__begins_anywhere(const gpi__problem *problem, int operand) {
    int along_k = (problem->views[operand].transposed != 0) == (operand == GPI__B);
    if (!problem->grouping.groups)
        return 0;
    if (operand == GPI__B && !along_k && gpi__halves_in(problem) > 1 && gpi__half_columns(problem) % GPI__RUN)
        return 1;
    return problem->grouping.is_of_k ? along_k : operand == GPI__A && !along_k;
}

static void gpi__append_operand_defines(gpi__text *text, const gpi__problem *problem, int operand) {
    const gpi__view *view = &problem->views[operand];
    char letter = operand == GPI__A ? 'A' : 'B';
    gpi__append(text, "#define GEMMEPI_%c_TYPE %s\n", letter, gpi__dtype((gemmepi_dtype)view->dtype)->name);
    gpi__append(text, "#define GEMMEPI_%c_TRANSPOSED %d\n", letter, (int)view->transposed);
    gpi__append(text, "#define GEMMEPI_%c_ALIGNED %d\n", letter,
                gpi__runs_are_aligned(problem, view) && !gpi__begins_anywhere(problem, operand));
}

/* The modes of the scales of A that the epilogue multiplies by, and of those of a grouped product's rows. */
static int gpi__plain_scale_a(const gpi__problem *problem, int is_of_rows) {
    int mode = problem->views[GPI__A].scale;
    int of_rows = problem->grouping.groups && mode != GEMMEPI_SCALE_TENSOR;
    return is_of_rows == of_rows ? mode : 0;
}

/* Blocks of a grouped product, whose tiles have both halves of a gate. */
static gemmepi_status gpi__lay_out_group_tiles(const gpi__problem *problem, gpi__plain *plain) {
    int64_t rows = gpi__divide_up(problem->m, GPI__PLAIN_TILE), parts, columns, tiles;
    int width = GPI__PLAIN_TILE / gpi__halves_in(problem);
    columns = gpi__divide_up(gpi__half_columns(problem), width);
    parts = gpi__most_parts(problem, GPI__PLAIN_TILE);
    tiles = gpi__offset(gpi__offset(parts, columns, 0), problem->grouping.is_of_k ? rows : 1, 0);
    if (tiles <= 0 || tiles > INT_MAX)
        return gpi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
    plain->launch.blocks = (unsigned)tiles;
    plain->launch.threads_x = GPI__PLAIN_THREADS;
    plain->launch.threads_y = 1;
    gpi__fill_epilogue(problem, &plain->params.epilogue, plain->params.places);
    plain->params.epilogue.row_tiles = (unsigned)rows;
    plain->params.epilogue.column_tiles = (unsigned)columns;
    plain->params.a = gpi__kernel_matrix_of(&problem->views[GPI__A]);
    plain->params.b = gpi__kernel_matrix_of(&problem->views[GPI__B]);
    plain->params.k = problem->k;
    return GEMMEPI_OK;
}

static void gpi__append_plain_defines(gpi__text *text, const gpi__problem *problem) {
    gpi__append_epilogue_defines(text, problem, gpi__epilogue_is_aligned(problem),
                                 gpi__plain_scale_a(problem, 0), problem->views[GPI__B].scale);
    gpi__append_grouping(text, problem);
    if (problem->grouping.groups)
        gpi__append(text, "#define GEMMEPI_ROW_SCALE_A %d\n", gpi__plain_scale_a(problem, 1));
    gpi__append_operand_defines(text, problem, GPI__A);
    gpi__append_operand_defines(text, problem, GPI__B);
    gpi__append(text, "#define GEMMEPI_COMPUTE_TYPE %s\n", gpi__dtype((gemmepi_dtype)problem->common)->name);
    gpi__append(text, "#define GEMMEPI_CHUNK %d\n", gpi__plain_chunk(problem));
}

/* The kernel itself. */
static gemmepi_status gpi__build_plain_kernel(gemmepi_context *context, const gpi__problem *problem,
                                              gpi__plain *plain) {
    char prologue[1536], words[160];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gemmepi_status status = problem->grouping.groups
                                ? gpi__lay_out_group_tiles(problem, plain)
                                : gpi__lay_out_tiles(problem, GPI__PLAIN_TILE, GPI__PLAIN_TILE,
                                                     GPI__PLAIN_THREADS, &plain->launch, &plain->params);
    if (status)
        return status;
    plain->partial_bytes = gpi__line_bytes(problem, plain->params.epilogue.row_tiles);
    gpi__append_plain_defines(&text, problem);
    gpi__name_kernel(&plain->launch, "gemmepi_plain_%s_%s%s%s",
                     gpi__dtype((gemmepi_dtype)problem->views[GPI__A].dtype)->name,
                     gpi__dtype((gemmepi_dtype)problem->views[GPI__B].dtype)->name,
                     gpi__name_of_grouping(problem),
                     gpi__name_of_epilogue(problem, problem->views[GPI__A].dtype, words));
    if (GPI__FORMULA(problem))
        return gpi__get_kernel_inside(context, problem, "gemm_plain.cu", prologue, "gemmepi_plain",
                                      gpi__get_kernel, &plain->launch);
    return gpi__get_kernel(context, "gemm_plain.cu", prologue, "gemmepi_plain", &plain->launch);
}

/* Product and pass. The kernel has multiplied all scales of A and B in. */
static gemmepi_status gpi__build_plain_and_pass(gemmepi_context *context, const gpi__problem *problem,
                                                gpi__plain *plain) {
    gpi__problem bare = gpi__bare_problem(problem), rest = *problem;
    const gpi__view *product = &bare.views[GPI__D];
    gemmepi_status status = gpi__build_plain_kernel(context, &bare, plain);
    int64_t elements = gpi__offset(problem->batch, product->batch_stride, 0);
    if (!status && elements < 0)
        status = gpi__fail(GEMMEPI_UNSUPPORTED, "the product has more than 2^56 elements");
    if (status)
        return status;
    plain->product_bytes = gpi__bytes_for(elements, (size_t)(product->bits / 8));
    rest.views[GPI__A].scale = rest.views[GPI__B].scale = 0;
    status = gpi__build_pass(context, &rest, product, 1, 0, &plain->pass);
    plain->partial_bytes = plain->pass.partial_bytes;
    return status;
}

static gemmepi_status gpi__plain_build(gpi__matmul_plan *plan, const gpi__candidate *candidate) {
    gemmepi_context *context = plan->base.context;
    const gpi__problem *problem = &plan->problem;
    gpi__plain *plain = (gpi__plain *)plan->built;
    gemmepi_status status;
    (void)candidate;
    memset(plain, 0, sizeof *plain);
    status = gpi__plain_has_pass(problem) ? gpi__build_plain_and_pass(context, problem, plain)
                                          : gpi__build_plain_kernel(context, problem, plain);
    if (!status && gpi__has(problem, GPI__ANY_BGRAD))
        status = gpi__build_sums(context, problem,
                                 plain->pass.launch.function ? plain->pass.params.epilogue.row_tiles
                                                             : plain->params.epilogue.row_tiles,
                                 &plain->sums);
    plan->workspace_size = gpi__round_up(plain->product_bytes, 256) +
                           gpi__round_up(plain->partial_bytes, 256) + plain->sums.partial_bytes;
    return status;
}

static gemmepi_status gpi__run_plain(const gemmepi_context *context, const gpi__problem *problem,
                                     const gpi__plain *plain, const gpi__arguments *arguments,
                                     char *workspace, gemmepi_stream stream) {
    gpi__plain_params params = plain->params;
    char *partials = gpi__past(workspace, plain->product_bytes);
    char *between = gpi__past(partials, plain->partial_bytes);
    int has_pass = plain->pass.launch.function != NULL;
    gemmepi_status status = gpi__clear_amax(context, problem, arguments, stream);
    if (problem->grouping.groups)
        params.groups = arguments->groups;
    gpi__point_epilogue(arguments, has_pass, partials, &params.epilogue, params.places);
    params.a.data = arguments->pointers[GPI__A];
    params.b.data = arguments->pointers[GPI__B];
    if (has_pass) { /* a bare product, into workspace */
        params.epilogue.d.data = workspace;
        params.epilogue.device_alpha = params.epilogue.device_beta = NULL;
    }
    if (!status)
        status = gpi__launch_kernel(context, &plain->launch, &params, "the product", stream);
    if (!status && has_pass)
        status = gpi__run_pass(context, &plain->pass, arguments, workspace, partials, stream);
    if (!status)
        status = gpi__run_sums(context, &plain->sums, arguments, partials, between, stream);
    return status;
}

static gemmepi_status gpi__plain_run(const gpi__matmul_plan *plan, const gpi__arguments *arguments,
                                     char *workspace, gemmepi_stream stream) {
    return gpi__run_plain(plan->base.context, &plan->problem, (const gpi__plain *)plan->built, arguments,
                          workspace, stream);
}

/* >>in words */

static void gpi__plain_describe(const gpi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gpi__plain *plain = (const gpi__plain *)plan->built;
    memcpy(details->kernel, plain->launch.name, sizeof details->kernel);
    details->tile_m = details->tile_n = GPI__PLAIN_TILE;
    details->launches = 1 + (plain->pass.launch.function != NULL) + gpi__amax_count(&plan->problem) +
                        gpi__sums_launches(&plain->sums);
}

static void gpi__plain_explain(const gpi__matmul_plan *plan, const char *kernel, gpi__text *text) {
    const gpi__plain *plain = (const gpi__plain *)plan->built;
    const gpi__launch *launch = &plain->launch, *pass = &plain->pass.launch;
    gpi__append(text, "  %s: product%s, %u blocks of %u threads\n", kernel,
                pass->function ? ", into workspace" : " and epilogue", launch->blocks, launch->threads_x);
    gpi__explain_pass(text, pass, "");
    gpi__explain_sums(text, &plain->sums);
}

#endif
