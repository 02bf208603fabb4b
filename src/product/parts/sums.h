/* What is behind a kernel with an epilogue: the end of its reductions, bias_grad's or a formula's, whose states the kernel leaves in workspace;
   or the sums of an operand for bias_grad. And those of a network's blocks. */
#ifndef GEMMEPI_PRODUCT_PARTS_SUMS_H
#define GEMMEPI_PRODUCT_PARTS_SUMS_H

#include "inside.h"
#include "../../elementwise/formula_launch.h"

#define GPI__SUM_THREADS     128 /* reduce.cu: of a block that sums rows, */
#define GPI__SUM_LEAST_LANES 4   /* of which so many share one */
#define GPI__SUM_COLUMNS     32  /* of another block, each of some threads: */
#define GPI__SUM_FEW_LANES   8
#define GPI__SUM_MANY_LANES  16 /* a multiprocessor has three such blocks, */
#define GPI__SUM_MOST_LANES  32 /* or one */

/* A sum of an operand is one launch, or two with partial sums in workspace between them; or the second alone, where a product's kernel
   leaves them, or none. */
typedef struct gpi__sums {
    gpi__launch first, second;
    gpi__reduce_params first_params, second_params;
    int operand;           /* A or B */
    int is_grouped;        /* of each group's part of k */
    gpi__formula_pass end; /* of an epilogue's reductions: its last launch alone */
    size_t bytes;          /* of workspace: between the two, or of states */
} gpi__sums;

/* What one launch of reduce.cu adds up, and into what. */
typedef struct gpi__addends {
    int of_rows; /* sums of rows, else of columns */
    int64_t items;
    int dtype, scale, out_dtype, accumulate;
    int grouped, gathered; /* an item is a group's part of the rows, whose next one an index says */
    int of_network;        /* F32 that a network's blocks leave */
} gpi__addends;

/* Threads that share a sum: of a column more where it has many terms, so that few rounds of loads follow each other, of a row a quarter as many as it
   has elements, 128 at most. */
static int gpi__sum_lanes(const gemmepi_context *context, const gpi__addends *x,
                          const gpi__reduce_params *params) {
    int64_t tiles = gpi__divide_up(params->results, GPI__SUM_COLUMNS), terms = params->part_terms;
    int lanes = GPI__SUM_LEAST_LANES;
    if (!x->of_rows && !x->grouped && terms < 128)
        return GPI__SUM_FEW_LANES;
    if (!x->of_rows)
        return gpi__times(gpi__times(tiles, params->parts), x->items) <= context->multiprocessors
                   ? GPI__SUM_MOST_LANES
                   : GPI__SUM_MANY_LANES;
    while (lanes < GPI__SUM_THREADS && 4 * (int64_t)lanes < terms)
        lanes *= 2;
    return lanes;
}

static void gpi__reduce_prologue(const gpi__addends *x, int lanes, char *data, size_t size) {
    gpi__text text = gpi__text_in(data, size);
    gpi__append(&text, "#define GEMMEPI_X_TYPE %s\n", gpi__type(x->dtype));
    gpi__append(&text, "#define GEMMEPI_X_SCALE %d\n", x->scale);
    gpi__append(&text, "#define GEMMEPI_OUT_TYPE %s\n", gpi__type(x->out_dtype));
    gpi__append(&text, "#define GEMMEPI_ACCUMULATE %d\n#define GEMMEPI_LANES %d\n", x->accumulate, lanes);
    gpi__append(&text, "#define GEMMEPI_OF_ROWS %d\n", x->of_rows);
    gpi__append(&text, "#define GEMMEPI_GROUPED %d\n#define GEMMEPI_GATHERED %d\n", x->grouped, x->gathered);
    gpi__append(&text, "#define GEMMEPI_OF_NETWORK %d\n", x->of_network);
}

/* One launch of reduce.cu: items * parts lines of sums. */
static gemmepi_status gpi__build_sum(gemmepi_context *context, const gpi__addends *x,
                                     const gpi__reduce_params *params, gpi__launch *launch) {
    int lanes = gpi__sum_lanes(context, x, params);
    int threads = x->of_rows ? GPI__SUM_THREADS : GPI__SUM_COLUMNS * lanes;
    int64_t tiles = gpi__divide_up(params->results, threads / lanes);
    int64_t blocks = gpi__offset(gpi__offset(tiles, params->parts, 0), x->items, 0);
    char prologue[512];
    GPI__UNSUPPORTED_IF(blocks <= 0 || blocks > INT_MAX, "bias_grad has more tiles than a grid has blocks");
    launch->blocks = (unsigned)blocks;
    launch->threads_x = (unsigned)threads;
    launch->threads_y = 1;
    gpi__reduce_prologue(x, lanes, prologue, sizeof prologue);
    gpi__name_kernel(launch, "gemmepi_sum_%s_%s_to_%s",
                     x->grouped   ? "groups"
                     : x->of_rows ? "rows"
                                  : "columns",
                     gpi__type(x->dtype), gpi__type(x->out_dtype));
    return gpi__get_waiting_kernel(context, "reduce.cu", prologue, "gemmepi_reduce", launch);
}

/* Adds up `lines` lines of sums in F64 for each of `results` lines of bias_grad. */
static gemmepi_status gpi__build_sum_of_lines(gemmepi_context *context, const gpi__problem *problem,
                                              int64_t results, int64_t lines, gpi__sums *sums) {
    const gpi__view *out = &problem->views[GPI__BIAS_GRAD];
    gpi__reduce_params *second = &sums->second_params;
    int64_t stride = gpi__offset(lines, out->length, 0), count = gpi__offset(results, stride, 0);
    gpi__addends x = {0, results, GEMMEPI_F64, 0, out->dtype, 0, 0, 0, 0};
    GPI__UNSUPPORTED_IF(count < 0, "bias_grad has more than 2^56 partial sums");
    x.accumulate = gpi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD);
    sums->bytes = gpi__bytes_for(count, sizeof(double));
    second->x.ld = out->length;
    second->x.stride = stride;
    second->terms = second->part_terms = lines;
    second->results = out->length;
    second->parts = 1;
    second->out_stride = out->batch_stride;
    return gpi__build_sum(context, &x, second, &sums->second);
}

/* Sums x's items of first_params into `results` lines of bias_grad (as many, or one). Directly where each sum is one block's; else
   by way of partial sums in F64, of which a second launch adds up some lines for each result. */
static gemmepi_status gpi__build_sums_of(gemmepi_context *context, const gpi__problem *problem,
                                         gpi__addends x, int64_t results, gpi__sums *sums) {
    const gpi__view *out = &problem->views[GPI__BIAS_GRAD];
    gpi__reduce_params *first = &sums->first_params;
    int64_t lines = gpi__times(x.items / results, first->parts);
    gemmepi_status status;
    x.out_dtype = lines == 1 ? out->dtype : GEMMEPI_F64;
    x.accumulate = lines == 1 && gpi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD);
    first->out_stride = lines == 1 ? out->batch_stride : out->length;
    status = gpi__build_sum(context, &x, first, &sums->first);
    return status || lines == 1 ? status : gpi__build_sum_of_lines(context, problem, results, lines, sums);
}

/* Divides the terms of an item so that there are some four blocks for each multiprocessor, of at least 512 terms
   each: fewer are not worth the second launch. */
static void gpi__choose_parts(const gemmepi_context *context, int64_t items, gpi__reduce_params *params) {
    int64_t tiles = gpi__divide_up(params->results, GPI__SUM_COLUMNS);
    int64_t there = gpi__times(tiles, items);
    int64_t wanted = gpi__divide_up(4 * (int64_t)context->multiprocessors, there ? there : 1);
    int64_t most = gpi__divide_up(params->terms, 64 * GPI__SUM_FEW_LANES);
    params->parts = wanted < most ? wanted : most;
    if (params->parts < 1)
        params->parts = 1;
    params->part_terms = gpi__divide_up(params->terms, params->parts);
}

static gpi__kernel_matrix gpi__kernel_matrix_of(const gpi__view *view) {
    gpi__kernel_matrix matrix;
    matrix.data = NULL;
    matrix.ld = view->ld;
    matrix.stride = view->batch_stride;
    return matrix;
}

/* An operand: each item along k. */
static void gpi__sum_operand(const gpi__problem *problem, gpi__addends *x, gpi__sums *sums) {
    int operand = gpi__summed_operand(problem);
    const gpi__view *view = &problem->views[operand];
    sums->operand = operand;
    sums->is_grouped = x->grouped = problem->grouping.groups > 0;
    x->gathered = problem->grouping.gathered >> operand & 1;
    x->of_rows = (operand == GPI__A) != (view->transposed != 0);
    x->items = problem->batch;
    x->dtype = view->dtype;
    x->scale = view->scale;
    sums->first_params.x = gpi__kernel_matrix_of(view);
    sums->first_params.scale.stride = problem->views[GPI__SCALE_OF(operand)].batch_stride;
    sums->first_params.terms = problem->k;
}

static gemmepi_status gpi__build_operand_sums(gemmepi_context *context, const gpi__problem *problem,
                                              gpi__sums *sums) {
    gpi__reduce_params *params = &sums->first_params;
    int64_t results = problem->views[GPI__BIAS_GRAD].batch_stride == 0 ? 1 : problem->batch;
    gpi__addends x;
    memset(&x, 0, sizeof x);
    gpi__sum_operand(problem, &x, sums);
    params->results = problem->views[GPI__BIAS_GRAD].length;
    params->parts = 1;
    params->part_terms = params->terms;
    if (!x.of_rows && !x.grouped)
        gpi__choose_parts(context, x.items, params);
    return gpi__build_sums_of(context, problem, x, results, sums);
}

/* The end of reductions: states are joined in a fixed order. */
static gemmepi_status gpi__build_end(gemmepi_context *context, const gpi__problem *problem, int64_t lines,
                                     gpi__sums *sums) {
    gpi__state_counts states = gpi__states_inside(problem, lines);
    gpi__flags_formula of_flags;
    gemmepi_status status;
    if (!GPI__FORMULA(problem))
        gpi__formula_of_flags(problem, &of_flags);
    status = gpi__build_reductions(
        context, GPI__FORMULA(problem) ? &problem->formula->placed : &of_flags.placed, &states, &sums->end);
    sums->bytes = sums->end.state_bytes;
    return status;
}

/* lines: of some rows each, that the epilogue leaves of an item. Nothing where nothing is to be summed. */
static gemmepi_status gpi__build_sums(gemmepi_context *context, const gpi__problem *problem, int64_t lines,
                                      gpi__sums *sums) {
    if (gpi__summed_operand(problem) >= 0)
        return gpi__build_operand_sums(context, problem, sums);
    return gpi__has(problem, GEMMEPI_BGRAD) || gpi__leaves_states(problem)
               ? gpi__build_end(context, problem, lines, sums)
               : GEMMEPI_OK;
}

/* Returns what it takes to read an operand once more for its sums. */
static double gpi__operand_sum_microseconds(const gpi__problem *problem) {
    int operand = gpi__summed_operand(problem);
    const gpi__view *view;
    if (operand < 0)
        return 0;
    view = &problem->views[operand];
    return (double)view->lines * (double)view->length * (double)problem->batch * view->bits / 8 /
           GPI__SUM_RATE;
}

static double gpi__sums_microseconds(const gpi__problem *problem) {
    return gpi__has(problem, GPI__ANY_BGRAD) ? GPI__ANOTHER_LAUNCH + gpi__operand_sum_microseconds(problem)
                                             : 0;
}

/* Has the kernel leave its states in workspace. */
static void gpi__point_states(const gpi__sums *sums, char *workspace, gpi__formula_place *places) {
    int u;
    for (u = 0; u < sums->end.used_count; u++)
        places[sums->end.used[u]].data = gpi__states_of(&sums->end, workspace, sums->end.used[u]);
}

/* Operands of flags are the product's, one after another. */
static gemmepi_status gpi__run_end(const gemmepi_context *context, const gpi__sums *sums,
                                   const gpi__arguments *arguments, void *workspace, gemmepi_stream stream) {
    gpi__formula_run run;
    memset(&run, 0, sizeof run);
    run.operands = &arguments->pointers[GPI__AUX];
    if (arguments->inside) {
        run.operands = arguments->operands;
        run.scales = arguments->operand_scales;
        run.amax = arguments->operand_amax;
    }
    run.states = workspace;
    return gpi__run_formula_pass(context, &sums->end, &run, stream);
}

/* workspace: of sums->bytes */
static gemmepi_status gpi__run_sums(const gemmepi_context *context, const gpi__sums *sums,
                                    const gpi__arguments *arguments, void *workspace, gemmepi_stream stream) {
    static const char what[] = "the sums of bias_grad";
    gpi__reduce_params params = sums->first_params;
    void *bias_grad = arguments->pointers[GPI__BIAS_GRAD];
    gemmepi_status status = GEMMEPI_OK;
    if (sums->end.used_count)
        return gpi__run_end(context, sums, arguments, workspace, stream);
    params.x.data = arguments->pointers[sums->operand];
    params.scale.data = (const float *)arguments->pointers[GPI__SCALE_OF(sums->operand)];
    if (sums->is_grouped) {
        params.groups = arguments->groups;
        if (sums->operand == GPI__B)
            params.groups.index_a = params.groups.index_b;
    }
    params.out = sums->second.function ? workspace : bias_grad;
    if (sums->first.function)
        status = gpi__launch_kernel(context, &sums->first, &params, what, stream);
    if (status || !sums->second.function)
        return status;
    params = sums->second_params;
    params.x.data = workspace;
    params.out = bias_grad;
    return gpi__launch_kernel(context, &sums->second, &params, what, stream);
}

static int gpi__sums_launches(const gpi__sums *sums) {
    return (sums->first.function != NULL) + (sums->second.function != NULL) +
           gpi__formula_launches(&sums->end);
}

/* >>in words */

/* Of the first launch. */
static const char *gpi__name_of_sums(const gpi__sums *sums) {
    return (sums->end.finish.function ? &sums->end.finish : &sums->first)->name;
}

static void gpi__explain_sums(gpi__text *text, const gpi__sums *sums) {
    if (sums->first.function)
        gpi__append(text, "  bias_grad: %d more launch%s, sums in a fixed order\n",
                    sums->second.function ? 2 : 1, sums->second.function ? "es" : "");
    gpi__explain_formula_pass(text, &sums->end, "");
}

#endif
