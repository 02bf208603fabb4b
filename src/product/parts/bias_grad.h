/* Sums for bias_grad: of partial sums that an epilogue left, or of an operand. */
#ifndef GEMMEPI_PRODUCT_PARTS_BIAS_GRAD_H
#define GEMMEPI_PRODUCT_PARTS_BIAS_GRAD_H

#include "../../kernels/params.h"
#include "../../problem/arguments.h"
#include "../../device/launch.h"

#define GPI__SUM_COLUMNS      32 /* reduce.cu */
#define GPI__SUM_ROWS         8 /* of a block's threads, or MANY, so that few rounds of loads follow each other */
#define GPI__SUM_MANY_ROWS    32
#define GPI__SUM_LINE_THREADS 128
#define GPI__SUM_LEAST_LANES  4 /* of these, that share a line */

/* A sum is one launch, or two with partial sums in workspace between them; or the second alone, where a product's kernel
   leaves them, or none. */
typedef struct gpi__sums {
    gpi__launch first, second;
    gpi__reduce_params first_params, second_params;
    int operand;          /* summed: A or B, or AUX for an epilogue's partial sums */
    size_t partial_bytes; /* between the two */
} gpi__sums;

/* What one launch of reduce.cu adds up, and into what. */
typedef struct gpi__addends {
    int along_rows; /* sums of rows, else of columns */
    int64_t items;
    int dtype, scale, out_dtype, accumulate;
} gpi__addends;

/* Threads that share a line of so many elements: a quarter as many, 128 at most: a line of up to 1024 takes one round of loads. */
static int gpi__sum_lanes(int64_t elements) {
    int lanes = GPI__SUM_LEAST_LANES;
    while (lanes < GPI__SUM_LINE_THREADS && 4 * (int64_t)lanes < elements)
        lanes *= 2;
    return lanes;
}

/* lanes: that share a row; rows: of threads, for sums of columns */
static void gpi__reduce_prologue(const gpi__addends *x, int lanes, int rows, char *data, size_t size) {
    gpi__text text = gpi__text_in(data, size);
    gpi__append(&text, "#define GEMMEPI_X_TYPE %s\n", gpi__type(x->dtype));
    gpi__append(&text, "#define GEMMEPI_X_SCALE %d\n", x->scale);
    gpi__append(&text, "#define GEMMEPI_OUT_TYPE %s\n", gpi__type(x->out_dtype));
    gpi__append(&text, "#define GEMMEPI_ACCUMULATE %d\n#define GEMMEPI_LANES %d\n", x->accumulate, lanes);
    gpi__append(&text, "#define GEMMEPI_ROWS %d\n", rows);
}

/* One launch of reduce.cu: items * parts sums. */
static gemmepi_status gpi__build_sum(gemmepi_context *context, const gpi__addends *x,
                                     const gpi__reduce_params *params, gpi__launch *launch) {
    int lanes = x->along_rows ? gpi__sum_lanes(params->columns) : GPI__SUM_LINE_THREADS;
    int64_t tiles = x->along_rows ? gpi__divide_up(params->rows, GPI__SUM_LINE_THREADS / lanes)
                                  : gpi__divide_up(params->columns, GPI__SUM_COLUMNS);
    int64_t blocks = gpi__offset(gpi__offset(tiles, params->parts, 0), x->items, 0);
    int rows = params->part_rows >= 4 * GPI__SUM_MANY_ROWS ? GPI__SUM_MANY_ROWS : GPI__SUM_ROWS;
    char prologue[512];
    GPI__UNSUPPORTED_IF(blocks <= 0 || blocks > INT_MAX, "bias_grad has more tiles than a grid has blocks");
    launch->blocks = (unsigned)blocks;
    launch->threads_x = x->along_rows ? (unsigned)lanes : GPI__SUM_COLUMNS;
    launch->threads_y = x->along_rows ? GPI__SUM_LINE_THREADS / (unsigned)lanes : (unsigned)rows;
    gpi__reduce_prologue(x, lanes, rows, prologue, sizeof prologue);
    gpi__name_kernel(launch, "gemmepi_sum_%s_%s_to_%s", x->along_rows ? "rows" : "columns",
                     gpi__type(x->dtype), gpi__type(x->out_dtype));
    return gpi__get_waiting_kernel(context, "reduce.cu", prologue,
                                   x->along_rows ? "gemmepi_sum_rows" : "gemmepi_sum_columns", launch);
}

/* Adds up `lines` lines of sums in F64 for each of `results` lines of bias_grad. */
static gemmepi_status gpi__build_sum_of_lines(gemmepi_context *context, const gpi__problem *problem,
                                              int64_t results, int64_t lines, gpi__sums *sums) {
    const gpi__view *out = &problem->views[GPI__BIAS_GRAD];
    gpi__reduce_params *second = &sums->second_params;
    int64_t stride = gpi__offset(lines, out->length, 0), count = gpi__offset(results, stride, 0);
    gpi__addends x = {0, results, GEMMEPI_F64, 0, out->dtype, 0};
    GPI__UNSUPPORTED_IF(count < 0, "bias_grad has more than 2^56 partial sums");
    x.accumulate = gpi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD);
    sums->partial_bytes = gpi__bytes_for(count, sizeof(double));
    second->x.ld = out->length;
    second->x.stride = stride;
    second->rows = second->part_rows = lines;
    second->columns = out->length;
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

/* Divides the rows of an item so that there are some four blocks for each multiprocessor, of at least 512 rows
   each: fewer are not worth the second launch. */
static void gpi__choose_parts(const gemmepi_context *context, int64_t items, gpi__reduce_params *params) {
    int64_t tiles = gpi__divide_up(params->columns, GPI__SUM_COLUMNS);
    int64_t there = gpi__times(tiles, items);
    int64_t wanted = gpi__divide_up(4 * (int64_t)context->multiprocessors, there ? there : 1);
    int64_t most = gpi__divide_up(params->rows, 64 * GPI__SUM_ROWS);
    params->parts = wanted < most ? wanted : most;
    if (params->parts < 1)
        params->parts = 1;
    params->part_rows = gpi__divide_up(params->rows, params->parts);
}

static gpi__kernel_matrix gpi__kernel_matrix_of(const gpi__view *view) {
    gpi__kernel_matrix matrix;
    matrix.data = NULL;
    matrix.ld = view->ld;
    matrix.stride = view->batch_stride;
    return matrix;
}

/* row_tiles: of the epilogue that leaves [batch][row_tiles] lines of sums, where BGRAD is asked for */
static gemmepi_status gpi__build_sums(gemmepi_context *context, const gpi__problem *problem,
                                      int64_t row_tiles, gpi__sums *sums) {
    gpi__reduce_params *params = &sums->first_params;
    int shared = problem->views[GPI__BIAS_GRAD].batch_stride == 0;
    int64_t results = shared ? 1 : problem->batch;
    gpi__addends x = {0, results, problem->accumulator, 0, 0, 0};
    const gpi__view *view;
    params->parts = 1;
    if (gpi__has(problem, GEMMEPI_BGRAD)) {
        sums->operand = GPI__AUX;
        params->rows = gpi__times(row_tiles, shared ? problem->batch : 1);
        params->columns = params->x.ld = problem->views[GPI__BIAS_GRAD].length;
        params->x.stride = gpi__times(params->rows, params->columns);
        gpi__choose_parts(context, results, params);
        return gpi__build_sums_of(context, problem, x, results, sums);
    }
    sums->operand = gpi__has(problem, GEMMEPI_BGRAD_A) ? GPI__A : GPI__B;
    view = &problem->views[sums->operand];
    x.along_rows = (sums->operand == GPI__A) != (view->transposed != 0);
    x.items = problem->batch;
    x.dtype = view->dtype;
    x.scale = view->scale;
    params->x = gpi__kernel_matrix_of(view);
    params->scale.stride = problem->views[GPI__SCALE_OF(sums->operand)].batch_stride;
    params->rows = view->lines;
    params->columns = view->length;
    if (!x.along_rows)
        gpi__choose_parts(context, problem->batch, params);
    return gpi__build_sums_of(context, problem, x, results, sums);
}

/* Of BGRAD's lines of sums in the accumulator's type, row_tiles for each item. */
static size_t gpi__line_bytes(const gpi__problem *problem, unsigned row_tiles) {
    if (!gpi__has(problem, GEMMEPI_BGRAD))
        return 0;
    return gpi__bytes_for(
        gpi__times(gpi__times(problem->batch, row_tiles), problem->views[GPI__BIAS_GRAD].length),
        gpi__dtype((gemmepi_dtype)problem->accumulator)->size);
}

/* Returns what it takes to read an operand once more for its sums. */
static double gpi__operand_sum_microseconds(const gpi__problem *problem) {
    int operand = gpi__has(problem, GEMMEPI_BGRAD_A) ? GPI__A : GPI__B;
    const gpi__view *view = &problem->views[operand];
    if (!gpi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        return 0;
    return (double)view->lines * (double)view->length * (double)problem->batch * view->bits / 8 /
           GPI__SUM_RATE;
}

static double gpi__sums_microseconds(const gpi__problem *problem) {
    return gpi__has(problem, GPI__ANY_BGRAD) ? GPI__ANOTHER_LAUNCH + gpi__operand_sum_microseconds(problem)
                                             : 0;
}

/* left: the partial sums of an epilogue; between: workspace of sums->partial_bytes */
static gemmepi_status gpi__run_sums(const gemmepi_context *context, const gpi__sums *sums,
                                    const gpi__arguments *arguments, void *left, void *between,
                                    gemmepi_stream stream) {
    static const char what[] = "the sums of bias_grad";
    gpi__reduce_params params = sums->first_params;
    void *bias_grad = arguments->pointers[GPI__BIAS_GRAD];
    gemmepi_status status = GEMMEPI_OK;
    params.x.data = left;
    if (sums->operand != GPI__AUX) {
        params.x.data = arguments->pointers[sums->operand];
        params.scale.data = (const float *)arguments->pointers[GPI__SCALE_OF(sums->operand)];
    }
    params.out = sums->second.function ? between : bias_grad;
    if (sums->first.function)
        status = gpi__launch_kernel(context, &sums->first, &params, what, stream);
    if (status || !sums->second.function)
        return status;
    params = sums->second_params;
    params.x.data = between;
    params.out = bias_grad;
    return gpi__launch_kernel(context, &sums->second, &params, what, stream);
}

static int gpi__sums_launches(const gpi__sums *sums) {
    return (sums->first.function != NULL) + (sums->second.function != NULL);
}

/* >>in words */

static void gpi__explain_sums(gpi__text *text, const gpi__sums *sums) {
    if (sums->first.function)
        gpi__append(text, "  bias_grad: %d more launch%s, sums in a fixed order\n",
                    sums->second.function ? 2 : 1, sums->second.function ? "es" : "");
}

#endif
