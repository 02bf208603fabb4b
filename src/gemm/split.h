/* The route split: a cuBLASLt product, then what cuBLASLt's epilogue cannot do, in one pass of ours, and sums.

   The product takes cuBLASLt's whole epilogue where only sums of an operand are left to do. Else it is bare, in the
   accumulator's type: into D itself where D has that type and the pass reads nothing that may be D, else into
   workspace. So the result is rounded once. */
#ifndef GEMMEPI_GEMM_SPLIT_H
#define GEMMEPI_GEMM_SPLIT_H

#include "../device/kernel.h"
#include "../kernels/params.h"
#include "lt.h"

#define GEMMEPI__PASS_THREADS     256 /* pass.cu */
#define GEMMEPI__RUN              8   /* types.cuh: columns of one thread */
#define GEMMEPI__SUM_COLUMNS      32  /* reduce.cu */
#define GEMMEPI__SUM_ROWS         8
#define GEMMEPI__SUM_LINE_THREADS 128

typedef struct gemmepi__launch {
    gemmepi__cu_function function; /* NULL: nothing to launch */
    unsigned blocks, threads_x, threads_y;
} gemmepi__launch;

/* A sum is one launch, or two with partial sums in workspace between them. */
typedef struct gemmepi__sums {
    gemmepi__launch first, second;
    gemmepi__reduce_params first_params, second_params;
    int operand;          /* summed: A or B, or AUX for the pass's partial sums */
    size_t partial_bytes; /* between the two */
} gemmepi__sums;

typedef struct gemmepi__split {
    int has_product;     /* 0: k is 0 */
    int bare;            /* the product leaves the epilogue to the pass */
    int to_workspace;    /* the bare product goes to workspace, else to D */
    int product_takes_c; /* beta C is added by the product, else by the pass */
    gemmepi__lt_product product;
    gemmepi__launch pass;
    gemmepi__pass_params pass_params; /* all but pointers and scalars */
    gemmepi__sums sums;
    size_t product_bytes, pass_partial_bytes;
} gemmepi__split;

/* >>prologues: the defines that make a kernel of a file in kernels/ */

static const char *gemmepi__type_name(const gemmepi__problem *problem, int operand) {
    int dtype = problem->views[operand].dtype;
    return gemmepi__dtype((gemmepi_dtype)(dtype ? dtype : problem->accumulator))->name;
}

/* The bits of the epilogue that the pass knows; sums of operands are launches of their own. */
#define GEMMEPI__PASS_EPILOGUE                                                                    \
    (GEMMEPI_ACTIVATION_MASK | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL | \
     GEMMEPI_BGRAD)

static void gemmepi__pass_prologue(const gemmepi__problem *problem, int aligned, char *data, size_t size) {
    gemmepi__text text = gemmepi__text_in(data, size);
    gemmepi__append(&text, "#define GEMMEPI_EPILOGUE 0x%x\n",
                    (unsigned)(problem->epilogue & GEMMEPI__PASS_EPILOGUE));
    gemmepi__append(&text, "#define GEMMEPI_ACC %s\n",
                    gemmepi__dtype((gemmepi_dtype)problem->accumulator)->name);
    gemmepi__append(&text, "#define GEMMEPI_C_TYPE %s\n", gemmepi__type_name(problem, GEMMEPI__C));
    gemmepi__append(&text, "#define GEMMEPI_D_TYPE %s\n", gemmepi__type_name(problem, GEMMEPI__D));
    gemmepi__append(&text, "#define GEMMEPI_BIAS_TYPE %s\n", gemmepi__type_name(problem, GEMMEPI__BIAS));
    gemmepi__append(&text, "#define GEMMEPI_AUX_TYPE %s\n", gemmepi__type_name(problem, GEMMEPI__AUX));
    gemmepi__append(&text, "#define GEMMEPI_RESIDUAL_TYPE %s\n",
                    gemmepi__type_name(problem, GEMMEPI__RESIDUAL));
    gemmepi__append(&text, "#define GEMMEPI_ALIGNED %d\n", aligned);
    gemmepi__append(&text, "#define GEMMEPI_HAS_PRODUCT %d\n", problem->k != 0);
    /* sums keep what D's rounding would hide */
    gemmepi__append(&text, "#define GEMMEPI_EXACT %d\n",
                    problem->views[GEMMEPI__D].bits != 16 || gemmepi__has(problem, GEMMEPI_BGRAD));
}

static void gemmepi__reduce_prologue(int x, int out, int accumulate, char *data, size_t size) {
    gemmepi__text text = gemmepi__text_in(data, size);
    gemmepi__append(&text, "#define GEMMEPI_X_TYPE %s\n", gemmepi__dtype((gemmepi_dtype)x)->name);
    gemmepi__append(&text, "#define GEMMEPI_OUT_TYPE %s\n", gemmepi__dtype((gemmepi_dtype)out)->name);
    gemmepi__append(&text, "#define GEMMEPI_ACCUMULATE %d\n", accumulate);
}

/* >>building the pass */

static int64_t gemmepi__divide_up(int64_t x, int64_t y) {
    return x / y + (x % y != 0);
}

static size_t gemmepi__round_up(size_t x, size_t unit) {
    return (x + unit - 1) / unit * unit;
}

/* Whether runs of eight of every tensor may be read 16 bytes at a time (a run of bf16 is 16 bytes, of f32 32). */
static int gemmepi__is_aligned(const gemmepi__problem *problem, const gemmepi__view *product) {
    int operand;
    int64_t product_line = product->ld * product->bits / 8,
            product_item = product->batch_stride * product->bits / 8;
    if (problem->alignment < 16 || product_line % 16 || (problem->batch > 1 && product_item % 16))
        return 0;
    for (operand = GEMMEPI__C; operand <= GEMMEPI__BIAS; operand++) {
        const gemmepi__view *view = &problem->views[operand];
        int64_t line = view->ld * view->bits / 8, item = view->batch_stride * view->bits / 8;
        if (view->dtype && view->bits != 1 &&
            ((view->lines > 1 && line % 16) || (problem->batch > 1 && item % 16)))
            return 0;
    }
    return 1;
}

static gemmepi__kernel_matrix gemmepi__kernel_matrix_of(const gemmepi__view *view) {
    gemmepi__kernel_matrix matrix;
    matrix.data = NULL;
    matrix.ld = view->ld;
    matrix.stride = view->batch_stride;
    return matrix;
}

/* Four rows a thread hide the latency of one another's loads; a thread takes fewer where blocks would be fewer than two
   for each multiprocessor, and more where they would pass the grid's limit. */
static gemmepi_status gemmepi__shape_pass(const gemmepi_context *context, const gemmepi__problem *problem,
                                          gemmepi__split *split) {
    int64_t chunks = gemmepi__divide_up(problem->n, GEMMEPI__RUN), column_tiles, row_tiles, tiles;
    unsigned threads_x = 1, threads_y;
    int steps = 4;
    while (threads_x < 32 && (int64_t)threads_x < chunks)
        threads_x *= 2;
    threads_y = GEMMEPI__PASS_THREADS / threads_x;
    column_tiles = gemmepi__divide_up(chunks, (int64_t)threads_x);
    while (steps > 1 &&
           column_tiles * problem->batch * gemmepi__divide_up(problem->m, (int64_t)threads_y * steps) <
               2 * (int64_t)context->multiprocessors)
        steps /= 2;
    for (;; steps *= 2) {
        row_tiles = gemmepi__divide_up(problem->m, (int64_t)threads_y * steps);
        tiles = gemmepi__offset(gemmepi__offset(column_tiles, row_tiles, 0), problem->batch, 0);
        if (tiles > 0 && tiles <= INT_MAX)
            break;
        if (steps > INT_MAX / 4)
            return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
    }
    split->pass_params.row_steps = steps;
    split->pass_params.row_tiles = (unsigned)row_tiles;
    split->pass_params.column_tiles = (unsigned)column_tiles;
    split->pass.blocks = (unsigned)tiles;
    split->pass.threads_x = threads_x;
    split->pass.threads_y = threads_y;
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__build_pass(gemmepi_context *context, const gemmepi__problem *problem,
                                          const gemmepi__view *product, gemmepi__split *split) {
    gemmepi__pass_params *params = &split->pass_params;
    const gemmepi__view *views = problem->views;
    char prologue[1024];
    gemmepi_status status = gemmepi__shape_pass(context, problem, split);
    if (status)
        return status;
    params->product = gemmepi__kernel_matrix_of(product);
    params->c = gemmepi__kernel_matrix_of(&views[GEMMEPI__C]);
    params->d = gemmepi__kernel_matrix_of(&views[GEMMEPI__D]);
    params->bias = gemmepi__kernel_matrix_of(&views[GEMMEPI__BIAS]);
    params->aux = gemmepi__kernel_matrix_of(&views[GEMMEPI__AUX]);
    params->residual = gemmepi__kernel_matrix_of(&views[GEMMEPI__RESIDUAL]);
    params->m = problem->m;
    params->n = problem->n;
    if (gemmepi__has(problem, GEMMEPI_BGRAD))
        split->pass_partial_bytes = (size_t)(problem->batch * (int64_t)params->row_tiles * problem->n) *
                                    gemmepi__dtype((gemmepi_dtype)problem->accumulator)->size;
    gemmepi__pass_prologue(problem, gemmepi__is_aligned(problem, product), prologue, sizeof prologue);
    return gemmepi__get_kernel(context, "pass.cu", prologue, "gemmepi_pass", &split->pass.function);
}

/* >>building the sums */

/* One launch of reduce.cu: items * parts sums of x's columns, or of its rows. */
static gemmepi_status gemmepi__build_sum(gemmepi_context *context, int along_rows, int64_t items, int x_dtype,
                                         int out_dtype, int accumulate, const gemmepi__reduce_params *params,
                                         gemmepi__launch *launch) {
    int64_t tiles = along_rows ? params->rows : gemmepi__divide_up(params->columns, GEMMEPI__SUM_COLUMNS);
    int64_t blocks = gemmepi__offset(gemmepi__offset(tiles, params->parts, 0), items, 0);
    char prologue[512];
    if (blocks <= 0 || blocks > INT_MAX)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "bias_grad has more tiles than a grid has blocks");
    launch->blocks = (unsigned)blocks;
    launch->threads_x = along_rows ? GEMMEPI__SUM_LINE_THREADS : GEMMEPI__SUM_COLUMNS;
    launch->threads_y = along_rows ? 1 : GEMMEPI__SUM_ROWS;
    gemmepi__reduce_prologue(x_dtype, out_dtype, accumulate, prologue, sizeof prologue);
    return gemmepi__get_kernel(context, "reduce.cu", prologue,
                               along_rows ? "gemmepi_sum_rows" : "gemmepi_sum_columns", &launch->function);
}

/* Sums `items` matrices of first_params into `groups` rows of bias_grad (as many, or one). Directly where each sum is one
   block's; else by way of partial sums in F64, of which a second launch adds up `lines` for each group. */
static gemmepi_status gemmepi__build_sums_of(gemmepi_context *context, const gemmepi__problem *problem,
                                             int along_rows, int x_dtype, int64_t items, int64_t groups,
                                             gemmepi__sums *sums) {
    const gemmepi__view *out = &problem->views[GEMMEPI__BIAS_GRAD];
    gemmepi__reduce_params *first = &sums->first_params, *second = &sums->second_params;
    int accumulate = gemmepi__has(problem, GEMMEPI_BGRAD_ACCUMULATE);
    int64_t lines = items / groups * first->parts;
    gemmepi_status status;
    first->out_stride = out->batch_stride;
    if (lines == 1)
        return gemmepi__build_sum(context, along_rows, items, x_dtype, out->dtype, accumulate, first,
                                  &sums->first);
    first->out_stride = out->length;
    sums->partial_bytes = (size_t)(groups * lines * out->length) * sizeof(double);
    second->x.ld = out->length;
    second->x.stride = lines * out->length;
    second->rows = second->part_rows = lines;
    second->columns = out->length;
    second->parts = 1;
    second->out_stride = out->batch_stride;
    status = gemmepi__build_sum(context, along_rows, items, x_dtype, GEMMEPI_F64, 0, first, &sums->first);
    if (!status)
        status = gemmepi__build_sum(context, 0, groups, GEMMEPI_F64, out->dtype, accumulate, second,
                                    &sums->second);
    return status;
}

/* Divides the rows of an item so that there are some four blocks for each multiprocessor, of at least 64 rows a thread:
   fewer are not worth the second launch. */
static void gemmepi__choose_parts(const gemmepi_context *context, int64_t items,
                                  gemmepi__reduce_params *params) {
    int64_t tiles = gemmepi__divide_up(params->columns, GEMMEPI__SUM_COLUMNS);
    int64_t wanted = gemmepi__divide_up(4 * (int64_t)context->multiprocessors, tiles * items);
    int64_t most = gemmepi__divide_up(params->rows, 64 * GEMMEPI__SUM_ROWS);
    params->parts = wanted < most ? wanted : most;
    if (params->parts < 1)
        params->parts = 1;
    params->part_rows = gemmepi__divide_up(params->rows, params->parts);
}

static gemmepi_status gemmepi__build_sums(gemmepi_context *context, const gemmepi__problem *problem,
                                          gemmepi__split *split) {
    gemmepi__sums *sums = &split->sums;
    gemmepi__reduce_params *params = &sums->first_params;
    int shared = problem->views[GEMMEPI__BIAS_GRAD].batch_stride == 0;
    int64_t groups = shared ? 1 : problem->batch;
    const gemmepi__view *view;
    int along_rows;
    params->parts = 1;
    if (gemmepi__has(problem, GEMMEPI_BGRAD)) { /* the pass left [batch][row_tiles][n] */
        sums->operand = GEMMEPI__AUX;
        params->rows = (int64_t)split->pass_params.row_tiles * (shared ? problem->batch : 1);
        params->columns = problem->n;
        params->x.ld = problem->n;
        params->x.stride = params->rows * problem->n;
        gemmepi__choose_parts(context, groups, params);
        return gemmepi__build_sums_of(context, problem, 0, problem->accumulator, groups, groups, sums);
    }
    sums->operand = gemmepi__has(problem, GEMMEPI_BGRAD_A) ? GEMMEPI__A : GEMMEPI__B;
    view = &problem->views[sums->operand];
    along_rows = (sums->operand == GEMMEPI__A) != (view->transposed != 0);
    params->x = gemmepi__kernel_matrix_of(view);
    params->rows = view->lines;
    params->columns = view->length;
    if (!along_rows)
        gemmepi__choose_parts(context, problem->batch, params);
    return gemmepi__build_sums_of(context, problem, along_rows, view->dtype, problem->batch, groups, sums);
}

/* >>building the whole */

/* Where the bare product goes, and whether it takes beta C. alone: it must not. */
static gemmepi__view gemmepi__product_view(const gemmepi__problem *problem, int alone,
                                           gemmepi__split *split) {
    gemmepi__view view = problem->views[GEMMEPI__D];
    int reads_aside = gemmepi__has(problem, GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL);
    alone = alone || (problem->flags & GEMMEPI_DEVICE_SCALARS);
    split->product_takes_c =
        problem->views[GEMMEPI__C].dtype == problem->accumulator && !alone && problem->k != 0;
    split->to_workspace = view.dtype != problem->accumulator || reads_aside || alone;
    if (!split->to_workspace)
        return view;
    view.dtype = problem->accumulator;
    view.bits = problem->accumulator == GEMMEPI_F64 ? 64 : 32;
    /* runs of eight then start at multiples of 16 bytes; narrow results would grow too much */
    view.ld = problem->n < 8 ? problem->n : (problem->n + 7) / 8 * 8;
    view.batch_stride = problem->m * view.ld;
    return view;
}

/* The problem without the sums of an operand. */
static gemmepi__problem gemmepi__without_sums(const gemmepi__problem *problem) {
    gemmepi__problem rest = *problem;
    if (gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B)) {
        rest.epilogue &= ~(GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B | GEMMEPI_BGRAD_ACCUMULATE);
        memset(&rest.views[GEMMEPI__BIAS_GRAD], 0, sizeof rest.views[GEMMEPI__BIAS_GRAD]);
    }
    return rest;
}

static size_t gemmepi__split_workspace(const gemmepi__split *split) {
    return gemmepi__round_up(split->product_bytes, 256) + gemmepi__round_up(split->pass_partial_bytes, 256) +
           gemmepi__round_up(split->sums.partial_bytes, 256) + split->product.workspace_size;
}

/* The product without its epilogue. Where cuBLASLt's algorithms are not to be trusted with alpha and beta, the pass takes
   both. */
static gemmepi_status gemmepi__build_bare(gemmepi_context *context, const gemmepi__problem *problem,
                                          gemmepi__view *view, gemmepi__split *split) {
    gemmepi_status status = GEMMEPI_OK;
    int alone;
    for (alone = 0; alone < 2; alone++) {
        *view = gemmepi__product_view(problem, alone, split);
        if (!split->has_product)
            return GEMMEPI_OK;
        if (split->to_workspace)
            split->product_bytes = (size_t)(problem->batch * view->batch_stride) * (size_t)(view->bits / 8);
        status = gemmepi__lt_build(
            context, problem, split->product_takes_c ? GEMMEPI__LT_BARE : GEMMEPI__LT_BARE_ALPHA_1,
            split->product_takes_c ? &problem->views[GEMMEPI__C] : view, view, &split->product);
        if (status != GEMMEPI_UNSUPPORTED || !split->product_takes_c)
            break;
    }
    return status;
}

/* cuBLASLt is open unless k is 0. GEMMEPI_UNSUPPORTED with the sentence where the route cannot take the problem. */
static gemmepi_status gemmepi__split_build(gemmepi_context *context, const gemmepi__problem *problem,
                                           gemmepi__split *split) {
    gemmepi__problem rest = gemmepi__without_sums(problem);
    gemmepi__view view;
    gemmepi_status status = GEMMEPI_OK;
    memset(split, 0, sizeof *split);
    split->has_product = problem->k != 0;
    split->bare = gemmepi__lt_rule(&rest) != NULL;
    if (!split->bare) {
        status = gemmepi__lt_build(context, &rest, GEMMEPI__LT_WHOLE, &rest.views[GEMMEPI__C],
                                   &rest.views[GEMMEPI__D], &split->product);
        split->product_takes_c = 1;
        if (status == GEMMEPI_UNSUPPORTED)
            split->bare = 1;
    }
    if (split->bare) {
        status = gemmepi__build_bare(context, problem, &view, split);
        if (!status)
            status = gemmepi__build_pass(context, problem, &view, split);
    }
    if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
        status = gemmepi__build_sums(context, problem, split);
    return status;
}

static int gemmepi__split_launches(const gemmepi__split *split) {
    return split->has_product + (split->pass.function != NULL) + (split->sums.first.function != NULL) +
           (split->sums.second.function != NULL);
}

/* >>running */

static gemmepi_status gemmepi__launch_kernel(const gemmepi_context *context, const gemmepi__launch *launch,
                                             void *params, const char *what, gemmepi_stream stream) {
    void *list[1];
    int result;
    list[0] = params;
    result = context->driver.launch_kernel(launch->function, launch->blocks, 1, 1, launch->threads_x,
                                           launch->threads_y, 1, 0, stream, list, NULL);
    return result ? gemmepi__cuda_failed(&context->driver, result, what) : GEMMEPI_OK;
}

static gemmepi_status gemmepi__run_pass(const gemmepi_context *context, const gemmepi__split *split,
                                        const gemmepi__arguments *arguments, void *product, void *partials,
                                        gemmepi_stream stream) {
    gemmepi__pass_params params = split->pass_params;
    params.product.data = product;
    params.c.data = arguments->pointers[GEMMEPI__C];
    params.d.data = arguments->pointers[GEMMEPI__D];
    params.bias.data = arguments->pointers[GEMMEPI__BIAS];
    params.aux.data = arguments->pointers[GEMMEPI__AUX];
    params.residual.data = arguments->pointers[GEMMEPI__RESIDUAL];
    params.partials = partials;
    params.alpha = split->product_takes_c ? 1 : arguments->alpha;
    params.beta = split->product_takes_c ? 0 : arguments->beta;
    params.uses_c = arguments->uses_c && !split->product_takes_c;
    memcpy(&params.device_alpha, &arguments->device_alpha, sizeof(void *));
    memcpy(&params.device_beta, &arguments->device_beta, sizeof(void *));
    return gemmepi__launch_kernel(context, &split->pass, &params, "launching gemmepi_pass", stream);
}

static gemmepi_status gemmepi__run_sums(const gemmepi_context *context, const gemmepi__sums *sums, void *x,
                                        void *bias_grad, void *partials, gemmepi_stream stream) {
    gemmepi__reduce_params params = sums->first_params;
    int two = sums->second.function != NULL;
    gemmepi_status status;
    params.x.data = x;
    params.out = two ? partials : bias_grad;
    status =
        gemmepi__launch_kernel(context, &sums->first, &params, "launching the sums of bias_grad", stream);
    if (status || !two)
        return status;
    params = sums->second_params;
    params.x.data = partials;
    params.out = bias_grad;
    return gemmepi__launch_kernel(context, &sums->second, &params, "launching the sums of bias_grad", stream);
}

/* The primary context is current; workspace has gemmepi__split_workspace bytes. */
static gemmepi_status gemmepi__split_run(const gemmepi_context *context, const gemmepi__split *split,
                                         const gemmepi__arguments *arguments, char *workspace,
                                         gemmepi_stream stream) {
    char *pass_partials = workspace + gemmepi__round_up(split->product_bytes, 256);
    char *sum_partials = pass_partials + gemmepi__round_up(split->pass_partial_bytes, 256);
    char *lt_workspace = sum_partials + gemmepi__round_up(split->sums.partial_bytes, 256);
    void *product = split->to_workspace ? (void *)workspace : arguments->pointers[GEMMEPI__D];
    gemmepi_status status = GEMMEPI_OK;
    if (split->has_product)
        status = gemmepi__lt_run(context, &split->product, arguments,
                                 split->product_takes_c ? arguments->alpha : 1,
                                 split->product_takes_c ? arguments->beta : 0,
                                 arguments->pointers[GEMMEPI__C], product, lt_workspace, stream);
    if (!status && split->pass.function)
        status = gemmepi__run_pass(context, split, arguments, product, pass_partials, stream);
    if (!status && split->sums.first.function)
        status =
            gemmepi__run_sums(context, &split->sums,
                              split->sums.operand == GEMMEPI__AUX ? (void *)pass_partials
                                                                  : arguments->pointers[split->sums.operand],
                              arguments->pointers[GEMMEPI__BIAS_GRAD], sum_partials, stream);
    return status;
}

#endif
