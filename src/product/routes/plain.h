/* The route plain: one kernel of ours for any types, layout, alignment and scales, with the epilogue in it, and sums. It
   takes whatever the other routes do not, and small products where its estimate is the least. A tile of the product has not both halves
   of GATED, nor 128 columns of a row, whose scale is found: there the kernel leaves the bare product in workspace, for the pass. */
#ifndef GEMMEPI_PRODUCT_ROUTES_PLAIN_H
#define GEMMEPI_PRODUCT_ROUTES_PLAIN_H

#include "../matmul_plan.h"
#include "../parts/pass.h"

#define GEMMEPI__PLAIN_TILE    64 /* gemm_plain.cu: rows and columns of a block's tile */
#define GEMMEPI__PLAIN_THREADS 128

typedef struct gemmepi__plain {
    gemmepi__launch launch;
    gemmepi__plain_params params; /* all but pointers and scalars */
    gemmepi__pass pass;           /* of GATED, and where scales are found */
    gemmepi__sums sums;
    size_t partial_bytes, product_bytes;
} gemmepi__plain;

/* Whether a tile lacks what the epilogue needs of a row: the other half, or the rest of 128 columns. */
static int gemmepi__plain_has_pass(const gemmepi__problem *problem) {
    return gemmepi__has(problem, GEMMEPI_GATED) || problem->found_scale;
}

/* After how many steps of k the sums are scaled and added up in the accumulator; 0: at the end. I8 sums of more than 2^16
   terms could pass 2^31. */
static int gemmepi__plain_chunk(const gemmepi__problem *problem) {
    if (gemmepi__scale_varies_along_k(problem, GEMMEPI__A) ||
        gemmepi__scale_varies_along_k(problem, GEMMEPI__B))
        return 128;
    return problem->common == GEMMEPI_I8 && problem->accumulator == GEMMEPI_F32 && problem->k > 65536 ? 65536
                                                                                                      : 0;
}

/* Whether a group's part of the operand begins within its lines, or its second half between runs. */
static int gemmepi__begins_anywhere(const gemmepi__problem *problem, int operand) {
    int along_k = (problem->views[operand].transposed != 0) == (operand == GEMMEPI__B);
    if (!problem->grouping.groups)
        return 0;
    if (operand == GEMMEPI__B && !along_k && gemmepi__halves_in(problem) > 1 &&
        gemmepi__half_columns(problem) % GEMMEPI__RUN)
        return 1;
    return problem->grouping.is_of_k ? along_k : operand == GEMMEPI__A && !along_k;
}

static void gemmepi__append_operand_defines(gemmepi__text *text, const gemmepi__problem *problem,
                                            int operand) {
    const gemmepi__view *view = &problem->views[operand];
    char letter = operand == GEMMEPI__A ? 'A' : 'B';
    gemmepi__append(text, "#define GEMMEPI_%c_TYPE %s\n", letter,
                    gemmepi__dtype((gemmepi_dtype)view->dtype)->name);
    gemmepi__append(text, "#define GEMMEPI_%c_TRANSPOSED %d\n", letter, (int)view->transposed);
    gemmepi__append(text, "#define GEMMEPI_%c_ALIGNED %d\n", letter,
                    gemmepi__runs_are_aligned(problem, view) && !gemmepi__begins_anywhere(problem, operand));
}

/* The modes of the scales of A that the epilogue multiplies by, and of those of a grouped product's rows. */
static int gemmepi__plain_scale_a(const gemmepi__problem *problem, int is_of_rows) {
    int mode = problem->views[GEMMEPI__A].scale;
    int of_rows = problem->grouping.groups && mode != GEMMEPI_SCALE_TENSOR;
    return is_of_rows == of_rows ? mode : 0;
}

/* Blocks of a grouped product, whose tiles have both halves of a gate. */
static gemmepi_status gemmepi__lay_out_group_tiles(const gemmepi__problem *problem, gemmepi__plain *plain) {
    int64_t rows = gemmepi__divide_up(problem->m, GEMMEPI__PLAIN_TILE), parts, columns, tiles;
    int width = GEMMEPI__PLAIN_TILE / gemmepi__halves_in(problem);
    columns = gemmepi__divide_up(gemmepi__half_columns(problem), width);
    parts = gemmepi__most_parts(problem, GEMMEPI__PLAIN_TILE);
    tiles = gemmepi__offset(gemmepi__offset(parts, columns, 0), problem->grouping.is_of_k ? rows : 1, 0);
    if (tiles <= 0 || tiles > INT_MAX)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
    plain->launch.blocks = (unsigned)tiles;
    plain->launch.threads_x = GEMMEPI__PLAIN_THREADS;
    plain->launch.threads_y = 1;
    gemmepi__fill_epilogue(problem, &plain->params.epilogue, plain->params.extras, plain->params.places);
    plain->params.epilogue.row_tiles = (unsigned)rows;
    plain->params.epilogue.column_tiles = (unsigned)columns;
    plain->params.a = gemmepi__kernel_matrix_of(&problem->views[GEMMEPI__A]);
    plain->params.b = gemmepi__kernel_matrix_of(&problem->views[GEMMEPI__B]);
    plain->params.k = problem->k;
    return GEMMEPI_OK;
}

static void gemmepi__append_plain_defines(gemmepi__text *text, const gemmepi__problem *problem) {
    gemmepi__append_epilogue_defines(text, problem, gemmepi__epilogue_is_aligned(problem),
                                     gemmepi__plain_scale_a(problem, 0), problem->views[GEMMEPI__B].scale);
    gemmepi__append_grouping(text, problem);
    if (problem->grouping.groups)
        gemmepi__append(text, "#define GEMMEPI_ROW_SCALE_A %d\n", gemmepi__plain_scale_a(problem, 1));
    gemmepi__append_operand_defines(text, problem, GEMMEPI__A);
    gemmepi__append_operand_defines(text, problem, GEMMEPI__B);
    gemmepi__append(text, "#define GEMMEPI_COMPUTE_TYPE %s\n",
                    gemmepi__dtype((gemmepi_dtype)problem->common)->name);
    gemmepi__append(text, "#define GEMMEPI_CHUNK %d\n", gemmepi__plain_chunk(problem));
}

/* The kernel itself. */
static gemmepi_status gemmepi__build_plain_kernel(gemmepi_context *context, const gemmepi__problem *problem,
                                                  gemmepi__plain *plain) {
    char prologue[1536], words[160];
    gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
    gemmepi_status status =
        problem->grouping.groups
            ? gemmepi__lay_out_group_tiles(problem, plain)
            : gemmepi__lay_out_tiles(problem, GEMMEPI__PLAIN_TILE, GEMMEPI__PLAIN_TILE,
                                     GEMMEPI__PLAIN_THREADS, &plain->launch, &plain->params);
    if (status)
        return status;
    plain->partial_bytes = gemmepi__line_bytes(problem, plain->params.epilogue.row_tiles);
    gemmepi__append_plain_defines(&text, problem);
    gemmepi__name_kernel(&plain->launch, "gemmepi_plain_%s_%s%s%s",
                         gemmepi__dtype((gemmepi_dtype)problem->views[GEMMEPI__A].dtype)->name,
                         gemmepi__dtype((gemmepi_dtype)problem->views[GEMMEPI__B].dtype)->name,
                         gemmepi__name_of_grouping(problem),
                         gemmepi__name_of_epilogue(problem, problem->views[GEMMEPI__A].dtype, words));
#ifndef GEMMEPI_NO_FORMULA
    if (problem->formula)
        return gemmepi__get_kernel_inside(context, problem, "gemm_plain.cu", prologue, "gemmepi_plain",
                                          gemmepi__get_kernel, &plain->launch);
#endif
    return gemmepi__get_kernel(context, "gemm_plain.cu", prologue, "gemmepi_plain", &plain->launch);
}

/* Product and pass. The kernel has multiplied all scales of A and B in. */
static gemmepi_status gemmepi__build_plain_and_pass(gemmepi_context *context, const gemmepi__problem *problem,
                                                    gemmepi__plain *plain) {
    gemmepi__problem bare = gemmepi__bare_problem(problem), rest = *problem;
    const gemmepi__view *product = &bare.views[GEMMEPI__D];
    gemmepi_status status = gemmepi__build_plain_kernel(context, &bare, plain);
    int64_t elements = gemmepi__offset(problem->batch, product->batch_stride, 0);
    if (!status && elements < 0)
        status = gemmepi__fail(GEMMEPI_UNSUPPORTED, "the product has more than 2^56 elements");
    if (status)
        return status;
    plain->product_bytes = gemmepi__bytes_for(elements, (size_t)(product->bits / 8));
    rest.views[GEMMEPI__A].scale = rest.views[GEMMEPI__B].scale = 0;
    status = gemmepi__build_pass(context, &rest, product, 1, 0, &plain->pass);
    plain->partial_bytes = plain->pass.partial_bytes;
    return status;
}

static gemmepi_status gemmepi__plain_build(gemmepi__matmul_plan *plan, const gemmepi__candidate *candidate) {
    gemmepi_context *context = plan->base.context;
    const gemmepi__problem *problem = &plan->problem;
    gemmepi__plain *plain = (gemmepi__plain *)plan->built;
    gemmepi_status status;
    (void)candidate;
    memset(plain, 0, sizeof *plain);
    status = gemmepi__plain_has_pass(problem) ? gemmepi__build_plain_and_pass(context, problem, plain)
                                              : gemmepi__build_plain_kernel(context, problem, plain);
    if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
        status = gemmepi__build_sums(context, problem,
                                     plain->pass.launch.function ? plain->pass.params.epilogue.row_tiles
                                                                 : plain->params.epilogue.row_tiles,
                                     &plain->sums);
    plan->workspace_size = gemmepi__round_up(plain->product_bytes, 256) +
                           gemmepi__round_up(plain->partial_bytes, 256) + plain->sums.partial_bytes;
    return status;
}

static gemmepi_status gemmepi__run_plain(const gemmepi_context *context, const gemmepi__problem *problem,
                                         const gemmepi__plain *plain, const gemmepi__arguments *arguments,
                                         char *workspace, gemmepi_stream stream) {
    gemmepi__plain_params params = plain->params;
    char *partials = gemmepi__past(workspace, plain->product_bytes);
    char *between = gemmepi__past(partials, plain->partial_bytes);
    int has_pass = plain->pass.launch.function != NULL;
    gemmepi_status status = gemmepi__clear_amax(context, problem, arguments, stream);
    if (problem->grouping.groups)
        params.groups = arguments->groups;
    gemmepi__point_epilogue(arguments, has_pass, partials, &params.epilogue, params.extras, params.places);
    params.a.data = arguments->pointers[GEMMEPI__A];
    params.b.data = arguments->pointers[GEMMEPI__B];
    if (has_pass) { /* a bare product, into workspace */
        params.epilogue.d.data = workspace;
        params.epilogue.device_alpha = params.epilogue.device_beta = NULL;
    }
    if (!status)
        status = gemmepi__launch_kernel(context, &plain->launch, &params, "the product", stream);
    if (!status && has_pass)
        status = gemmepi__run_pass(context, &plain->pass, arguments, workspace, partials, stream);
    if (!status)
        status = gemmepi__run_sums(context, &plain->sums, arguments, partials, between, stream);
    return status;
}

static gemmepi_status gemmepi__plain_run(const gemmepi__matmul_plan *plan,
                                         const gemmepi__arguments *arguments, char *workspace,
                                         gemmepi_stream stream) {
    return gemmepi__run_plain(plan->base.context, &plan->problem, (const gemmepi__plain *)plan->built,
                              arguments, workspace, stream);
}

/* >>in words */

static void gemmepi__plain_describe(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gemmepi__plain *plain = (const gemmepi__plain *)plan->built;
    memcpy(details->kernel, plain->launch.name, sizeof details->kernel);
    details->tile_m = details->tile_n = GEMMEPI__PLAIN_TILE;
    details->launches = 1 + (plain->pass.launch.function != NULL) + gemmepi__amax_count(&plan->problem) +
                        gemmepi__sums_launches(&plain->sums);
}

static void gemmepi__plain_explain(const gemmepi__matmul_plan *plan, const char *kernel,
                                   gemmepi__text *text) {
    const gemmepi__plain *plain = (const gemmepi__plain *)plan->built;
    const gemmepi__launch *launch = &plain->launch, *pass = &plain->pass.launch;
    gemmepi__append(text, "  %s: product%s, %u blocks of %u threads\n", kernel,
                    pass->function ? ", into workspace" : " and epilogue", launch->blocks, launch->threads_x);
    gemmepi__explain_pass(text, pass, "");
    gemmepi__explain_sums(text, &plain->sums);
}

#endif
