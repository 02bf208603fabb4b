/* The route plain: one kernel of ours for any types, layout, alignment and scales, with the epilogue in it, and sums. It
   takes whatever the other routes do not, and small products where its estimate is the least. A tile of the product has not both halves
   of GATED, nor 128 columns of a row, whose scale is found: there the kernel leaves the bare product in workspace, for the pass. */
#ifndef GEMMEPI_PRODUCT_ROUTES_PLAIN_H
#define GEMMEPI_PRODUCT_ROUTES_PLAIN_H

#include "../matmul_plan.h"
#include "../parts/product_kernel.h"

#define GPI__PLAIN_TILE    64 /* gemm_plain.cu: rows and columns of a block's tile */
#define GPI__PLAIN_THREADS 128

typedef gpi__tiled_kernel gpi__plain;

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
    gpi__append(text, "#define GEMMEPI_%c_TYPE %s\n", letter, gpi__type(view->dtype));
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
    return gpi__fill_tiles(problem, tiles, columns, GPI__PLAIN_THREADS, &plain->kernel, &plain->params);
}

static void gpi__append_plain_defines(gpi__text *text, const gpi__problem *problem) {
    gpi__append_epilogue_defines(text, problem, gpi__epilogue_is_aligned(problem),
                                 gpi__plain_scale_a(problem, 0), problem->views[GPI__B].scale);
    gpi__append_grouping(text, problem);
    if (problem->grouping.groups)
        gpi__append(text, "#define GEMMEPI_ROW_SCALE_A %d\n", gpi__plain_scale_a(problem, 1));
    gpi__append_operand_defines(text, problem, GPI__A);
    gpi__append_operand_defines(text, problem, GPI__B);
    gpi__append(text, "#define GEMMEPI_COMPUTE_TYPE %s\n", gpi__type(problem->common));
    gpi__append(text, "#define GEMMEPI_CHUNK %d\n", gpi__plain_chunk(problem));
}

/* The kernel itself. */
static gemmepi_status gpi__build_plain_kernel(gemmepi_context *context, const gpi__problem *problem,
                                              gpi__plain *plain) {
    char prologue[2048], words[160];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gemmepi_status status;
    gpi__start_kernel(GPI__PLAIN_TILE, GPI__PLAIN_TILE, 0, &plain->kernel);
    status = problem->grouping.groups
                 ? gpi__lay_out_group_tiles(problem, plain)
                 : gpi__lay_out_tiles(problem, GPI__PLAIN_THREADS, 1, &plain->kernel, &plain->params);
    if (status)
        return status;
    gpi__append_plain_defines(&text, problem);
    gpi__name_kernel(&plain->kernel.launch, "gemmepi_plain_%s_%s%s%s",
                     gpi__type(problem->views[GPI__A].dtype), gpi__type(problem->views[GPI__B].dtype),
                     gpi__name_of_grouping(problem),
                     gpi__name_of_epilogue(problem, problem->views[GPI__A].dtype, words));
    status = gpi__get_product_kernel(context, problem, "gemm_plain.cu", prologue, "gemmepi_plain",
                                     &plain->kernel.launch);
    plain->kernel.launch.overlaps = 0; /* it does not wait */
    return status;
}

/* Product and pass. The kernel has multiplied all scales of A and B in. */
static gemmepi_status gpi__build_plain_and_pass(gemmepi_context *context, const gpi__problem *problem,
                                                gpi__plain *plain) {
    gpi__problem bare = gpi__bare_problem(problem), rest = *problem;
    gemmepi_status status = gpi__build_plain_kernel(context, &bare, plain);
    rest.views[GPI__A].scale = rest.views[GPI__B].scale = 0;
    return status ? status : gpi__build_pass_behind(context, &rest, &bare.views[GPI__D], 1, &plain->kernel);
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
    if (!status)
        status = gpi__build_behind_kernel(context, problem, plain->params.epilogue.row_tiles, &plain->kernel);
    plan->workspace_size = gpi__kernel_workspace(&plain->kernel);
    return status;
}

static gemmepi_status gpi__plain_run(const gpi__matmul_plan *plan, const gpi__arguments *arguments,
                                     char *workspace, gemmepi_stream stream) {
    return gpi__run_tiles(plan->base.context, &plan->problem, plan->built, arguments, workspace, stream);
}

/* >>in words */

static void gpi__plain_describe(const gpi__matmul_plan *plan, gemmepi_plan_details *details) {
    gpi__describe_product_kernel(&plan->problem, (const gpi__product_kernel *)plan->built, details);
}

static void gpi__plain_explain(const gpi__matmul_plan *plan, const char *kernel, gpi__text *text) {
    const gpi__product_kernel *built = (const gpi__product_kernel *)plan->built;
    gpi__append(text, "  %s: product%s, %u blocks of %u threads\n", kernel,
                built->product_bytes ? ", into workspace" : " and epilogue", built->launch.blocks,
                built->launch.threads_x);
    gpi__explain_behind_kernel(text, built, "");
}

#endif
