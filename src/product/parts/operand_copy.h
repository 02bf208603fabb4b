/* Operands copied: converted without loss to a type that cuBLASLt multiplies in every layout, or packed or
   transposed for our kernels. */
#ifndef GEMMEPI_PRODUCT_PARTS_OPERAND_COPY_H
#define GEMMEPI_PRODUCT_PARTS_OPERAND_COPY_H

#include "pass.h"

#define GPI__CONVERT_THREADS 256 /* convert.cu, pack.cu, transpose.cu */
#define GPI__TRANSPOSE_TILE  64

typedef struct gpi__convert {
    gpi__launch launch; /* no function: the operand stays as it is */
    gpi__convert_params params;
    size_t bytes; /* of the converted operand, in workspace */
} gpi__convert;

/* Lines of elements of a byte are rounded up to 16 bytes. */
static int64_t gpi__converted_ld(const gpi__view *view) {
    int run = view->bits == 8 ? 2 * GPI__RUN : GPI__RUN;
    return gpi__divide_up(view->length, run) * run;
}

/* The operand as it will lie in workspace: dense, its lines rounded up to runs of eight, or 16 bytes. Where its items overlap it may have
   more bytes than can be counted: INT64_MAX. */
static gpi__view gpi__converted_view(const gpi__view *view, int64_t batch, int dtype) {
    gpi__view converted = *view;
    int64_t items = view->batch_stride ? batch : 1;
    converted.dtype = dtype;
    converted.bits = (int32_t)(8 * gpi__dtype((gemmepi_dtype)dtype)->size);
    converted.alignment = 256;
    converted.scale = 0;
    converted.ld = gpi__converted_ld(&converted);
    converted.batch_stride = view->batch_stride ? gpi__times(converted.ld, view->lines) : 0;
    converted.bytes = gpi__offset(items, gpi__offset(view->lines, converted.ld, 0), 0);
    converted.bytes = converted.bytes < 0 ? INT64_MAX : converted.bytes * converted.bits / 8;
    return converted;
}

/* Likewise, with lines along the other axis. */
static gpi__view gpi__transposed_view(const gpi__view *view, int64_t batch) {
    gpi__view turned = *view;
    turned.lines = view->length;
    turned.length = view->lines;
    turned.transposed = !view->transposed;
    return gpi__converted_view(&turned, batch, view->dtype);
}

/* The copy of an operand as `view`; its kernel has so many blocks. */
static gemmepi_status gpi__lay_out_copy(const gpi__problem *problem, int operand, const gpi__view *view,
                                        int64_t blocks, gpi__convert *convert) {
    const gpi__view *from = &problem->views[operand];
    int64_t size = view->bits / 8;
    GPI__UNSUPPORTED_IF(view->bytes / size / 16 >
                                from->bytes +
                                    4096 && /* items overlap: they would be written out one by one */
                            !(gpi__is_invariant(problem) && view->bytes < INT64_MAX),
                        "an operand's items overlap, and converted they would be far larger");
    convert->bytes = gpi__bytes_for(view->bytes, 1);
    convert->params.x = gpi__kernel_matrix_of(from);
    convert->params.out = gpi__kernel_matrix_of(view);
    convert->params.rows = from->lines;
    convert->params.columns = from->length;
    convert->params.items = from->batch_stride ? problem->batch : 1;
    GPI__UNSUPPORTED_IF(blocks < 0 || blocks > INT_MAX, "an operand has more tiles than a grid has blocks");
    convert->launch.blocks = (unsigned)blocks;
    convert->launch.threads_x = GPI__CONVERT_THREADS;
    convert->launch.threads_y = 1;
    return GEMMEPI_OK;
}

/* By kernels of which a thread copies a run. */
static gemmepi_status gpi__lay_out_convert(const gpi__problem *problem, int operand, int dtype,
                                           gpi__view *view, gpi__convert *convert) {
    *view = gpi__converted_view(&problem->views[operand], problem->batch, dtype);
    return gpi__lay_out_copy(problem, operand, view,
                             gpi__divide_up(view->bytes / (view->bits / 8) / GPI__RUN, GPI__CONVERT_THREADS),
                             convert);
}

/* To a type that holds all of its values. *view is that of the converted operand. */
static gemmepi_status gpi__build_convert(gemmepi_context *context, const gpi__problem *problem, int operand,
                                         int dtype, gpi__view *view, gpi__convert *convert) {
    const gpi__view *from = &problem->views[operand];
    gemmepi_status status = gpi__lay_out_convert(problem, operand, dtype, view, convert);
    char prologue[256];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    if (status)
        return status;
    gpi__append(&text, "#define GEMMEPI_X_TYPE %s\n", gpi__type(from->dtype));
    gpi__append(&text, "#define GEMMEPI_OUT_TYPE %s\n", gpi__type(view->dtype));
    gpi__append(&text, "#define GEMMEPI_ALIGNED %d\n", gpi__runs_are_aligned(problem, from));
    gpi__name_kernel(&convert->launch, "gemmepi_convert_%s_to_%s", gpi__type(from->dtype),
                     gpi__type(view->dtype));
    return gpi__get_waiting_kernel(context, "convert.cu", prologue, "gemmepi_convert", &convert->launch);
}

static void gpi__pack_prologue(char *data, size_t size) {
    gpi__text text = gpi__text_in(data, size);
    gpi__append(&text, "#define GEMMEPI_THREADS %d\n", GPI__CONVERT_THREADS);
}

/* As it is, but for where its lines begin. */
static gemmepi_status gpi__build_pack(gemmepi_context *context, const gpi__problem *problem, int operand,
                                      gpi__convert *pack) {
    char prologue[64];
    gpi__view view;
    gemmepi_status status;
    if (problem->views[operand].bits != 16) /* words are loaded one by one as fast as they can be */
        return gpi__build_convert(context, problem, operand, problem->views[operand].dtype, &view, pack);
    status = gpi__lay_out_convert(problem, operand, problem->views[operand].dtype, &view, pack);
    gpi__pack_prologue(prologue, sizeof prologue);
    return status ? status
                  : gpi__get_waiting_kernel(context, "pack.cu", prologue, "gemmepi_pack", &pack->launch);
}

/* Lines and elements of a line that a block copies. */
static int gpi__transpose_tile(int bits) {
    return bits == 8 ? 2 * GPI__TRANSPOSE_TILE : GPI__TRANSPOSE_TILE;
}

/* aligned: lines begin at multiples of 4 bytes */
static void gpi__transpose_prologue(int bits, int aligned, char *data, size_t size) {
    gpi__text text = gpi__text_in(data, size);
    gpi__append(&text, "#define GEMMEPI_TILE %d\n#define GEMMEPI_THREADS %d\n", gpi__transpose_tile(bits),
                GPI__CONVERT_THREADS);
    gpi__append(&text, "#define GEMMEPI_ELEMENT %d\n#define GEMMEPI_ALIGNED %d\n", bits / 8, aligned);
}

/* With lines along the other axis. */
static gemmepi_status gpi__build_transpose(gemmepi_context *context, const gpi__problem *problem, int operand,
                                           gpi__convert *pack) {
    const gpi__view *from = &problem->views[operand];
    gpi__view view = gpi__transposed_view(from, problem->batch);
    int tile = gpi__transpose_tile(from->bits);
    int64_t blocks = gpi__offset(gpi__divide_up(from->lines, tile), gpi__divide_up(from->length, tile), 0);
    char prologue[160];
    gemmepi_status status;
    if (blocks >= 0 && from->batch_stride)
        blocks = gpi__offset(blocks, problem->batch, 0);
    status = gpi__lay_out_copy(problem, operand, &view, blocks, pack);
    gpi__transpose_prologue(from->bits, gpi__unit_of(problem, from, 0) >= 4, prologue, sizeof prologue);
    return status ? status
                  : gpi__get_waiting_kernel(context, "transpose.cu", prologue, "gemmepi_transpose",
                                            &pack->launch);
}

static gemmepi_status gpi__run_convert(const gemmepi_context *context, const gpi__convert *convert,
                                       void *from, void *to, gemmepi_stream stream) {
    gpi__convert_params params = convert->params;
    params.x.data = from;
    params.out.data = to;
    return gpi__launch_kernel(context, &convert->launch, &params, "a copy of an operand", stream);
}

#endif
