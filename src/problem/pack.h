/* gemmepi_pack: numbers of the host in fewer bits, with the scales that are given or found. */
#ifndef GEMMEPI_PROBLEM_PACK_H
#define GEMMEPI_PROBLEM_PACK_H

#include "../numbers/convert.h"
#include "matrices.h"

#ifndef GEMMEPI_NO_FORMULA
#define GPI__PACK_SOURCES                                                                                  \
    (1u << GEMMEPI_F32 | 1u << GEMMEPI_F64 | 1u << GEMMEPI_F16 | 1u << GEMMEPI_BF16 | 1u << GEMMEPI_E4M3 | \
     1u << GEMMEPI_E5M2 | 1u << GEMMEPI_I8 | 1u << GEMMEPI_I32)
#define GPI__PACK_RESULTS                                                                               \
    (1u << GEMMEPI_I4 | 1u << GEMMEPI_U4 | 1u << GEMMEPI_E2M1 | 1u << GEMMEPI_E8M0 | 1u << GEMMEPI_I8 | \
     1u << GEMMEPI_E4M3 | 1u << GEMMEPI_E5M2 | 1u << GEMMEPI_F16 | 1u << GEMMEPI_BF16)
#define GPI__PACK_SCALES \
    (1u << GEMMEPI_F32 | 1u << GEMMEPI_F16 | 1u << GEMMEPI_BF16 | 1u << GEMMEPI_E4M3 | 1u << GEMMEPI_E8M0)
#define GPI__PACK_ZEROS (1u << GEMMEPI_F32 | 1u << GEMMEPI_F16 | 1u << GEMMEPI_BF16 | 1u << GEMMEPI_I8)

/* The desc with its defaults filled in. */
typedef struct gpi__packing {
    const gemmepi_pack_desc *desc;
    int from, to, scale, zero;                                /* dtypes */
    int64_t source_ld, ld, block_rows, block_columns, blocks; /* blocks: of a row of them */
    double divisor;
} gpi__packing;

/* A line of elements of the host that a call reads or writes. */
typedef struct gpi__pack_memory {
    const char *name;
    const void *pointer;
    int dtype;
    int64_t bytes;
} gpi__pack_memory;

/* >>the desc */

static int gpi__or_else(gemmepi_dtype dtype, int otherwise) {
    return dtype ? (int)dtype : otherwise;
}

static gemmepi_status gpi__check_pack_dtype(const char *field, int dtype, uint32_t types) {
    char accepted[128];
    gpi__text text = gpi__text_in(accepted, sizeof accepted);
    GPI__UNSUPPORTED_IF(gpi__is_left_out(dtype), "desc.%s is " GPI__WITHOUT_FP8, field, gpi__type(dtype));
    if (gpi__dtype_is_known((gemmepi_dtype)dtype) && types >> dtype & 1)
        return GEMMEPI_OK;
    gpi__append_types(&text, types);
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s is %s (%d); accepted here: %s", field,
                     gpi__dtype_name((gemmepi_dtype)dtype), dtype, accepted);
}

/* Extents, and what is counted in elements. */
static gemmepi_status gpi__check_pack_extents(const gpi__packing *p) {
    const gemmepi_pack_desc *desc = p->desc;
    gemmepi_status status = gpi__check_size("rows", desc->rows);
    if (!status)
        status = gpi__check_size("columns", desc->columns);
    if (status)
        return status;
    GPI__INVALID_IF(desc->block_rows < 0 || desc->block_columns < 0,
                    "desc.%s is %lld; accepted are 0, for all, and what shares a scale",
                    desc->block_rows < 0 ? "block_rows" : "block_columns",
                    (long long)(desc->block_rows < 0 ? desc->block_rows : desc->block_columns));
    GPI__INVALID_IF(p->source_ld < desc->columns || p->ld < desc->columns,
                    "desc.%s is %lld; a row has %lld elements, so accepted are 0 and at least that",
                    p->source_ld < desc->columns ? "source_ld" : "ld",
                    (long long)(p->source_ld < desc->columns ? p->source_ld : p->ld),
                    (long long)desc->columns);
    GPI__INVALID_IF(gpi__offset(desc->rows, p->source_ld, 0) < 0 || gpi__offset(desc->rows, p->ld, 0) < 0,
                    "desc.rows is %lld, with rows of that ld more than 2^56 elements", (long long)desc->rows);
    GPI__INVALID_IF(gpi__is_packed(p->to) && (desc->columns % 2 || p->ld % 2),
                    "desc.%s is %lld; of %s a byte has two elements, so accepted are even numbers",
                    desc->columns % 2 ? "columns" : "ld",
                    (long long)(desc->columns % 2 ? desc->columns : p->ld), gpi__type(p->to));
    return GEMMEPI_OK;
}

/* The numbers of a type that is whole: from least to most. */
static int gpi__is_whole_type(int dtype, double *least, double *most) {
    *most = dtype == GEMMEPI_I4 ? 7 : dtype == GEMMEPI_U4 ? 15 : 127;
    *least = dtype == GEMMEPI_U4 ? 0 : -*most - 1;
    return dtype == GEMMEPI_I4 || dtype == GEMMEPI_U4 || dtype == GEMMEPI_I8;
}

static gemmepi_status gpi__check_pack_scales(const gpi__packing *p) {
    const gemmepi_pack_desc *desc = p->desc;
    double least, most;
    GPI__INVALID_IF(
        !p->scale || !p->zero,
        "desc.%s_dtype is 0: say the type here, and in the operand that reads it, whose 0 is d's type",
        p->scale ? "zero" : "scale");
    GPI__INVALID_IF(desc->find != 0 && desc->find != 1, "desc.find is %d; accepted are 0 and 1%s", desc->find,
                    GPI__UNINITIALISED);
    GPI__INVALID_IF(desc->find && !desc->scale,
                    "desc.find is 1, but desc.scale, where the scales go, is NULL");
    GPI__INVALID_IF(
        desc->find && p->to == GEMMEPI_E8M0,
        "desc.find is 1, but desc.dtype is E8M0, whose numbers are scales themselves: leave it 0");
    GPI__INVALID_IF(desc->zero && !gpi__is_whole_type(p->to, &least, &most),
                    "desc.zero is given, but desc.dtype is %s; zeros go with I4, U4 and I8",
                    gpi__type(p->to));
    GPI__INVALID_IF(!(p->divisor > 0) || p->divisor > DBL_MAX,
                    "desc.divisor is %g; accepted are 0, for 1, and numbers above 0", desc->divisor);
    return GEMMEPI_OK;
}

/* >>memory */

static int64_t gpi__count_of_blocks(int64_t extent, int64_t block) {
    return extent > 0 ? (extent - 1) / block + 1 : 0;
}

static int gpi__list_pack_memory(const gpi__packing *p, gpi__pack_memory list[4]) {
    const gemmepi_pack_desc *desc = p->desc;
    int64_t lines = gpi__count_of_blocks(desc->rows, p->block_rows);
    int64_t elements = desc->columns ? (desc->rows - 1) * p->source_ld + desc->columns : 0,
            packed = desc->columns ? (desc->rows - 1) * p->ld + desc->columns : 0;
    int i, count = 2;
    memset(list, 0, 4 * sizeof *list);
    list[0].name = "source", list[0].pointer = desc->source, list[0].dtype = p->from;
    list[1].name = "packed", list[1].pointer = desc->packed, list[1].dtype = p->to;
    list[0].bytes = elements, list[1].bytes = packed;
    for (i = 0; i < 2; i++)
        if (i ? desc->zero : desc->scale) {
            list[count].name = i ? "zero" : "scale";
            list[count].pointer = i ? desc->zero : desc->scale;
            list[count].dtype = i ? p->zero : p->scale;
            list[count++].bytes = lines * p->blocks;
        }
    for (i = 0; i < count; i++)
        list[i].bytes = desc->rows ? gpi__bytes_for_bits(list[i].bytes * gpi__bits_of(list[i].dtype)) : 0;
    return count;
}

/* What is written is apart from all else. */
static gemmepi_status gpi__check_pack_memory(const gpi__packing *p) {
    gpi__pack_memory list[4];
    int count = gpi__list_pack_memory(p, list), i, j;
    for (i = 0; i < count; i++) {
        size_t size = gpi__dtype((gemmepi_dtype)list[i].dtype)->size;
        GPI__INVALID_IF(list[i].bytes && !list[i].pointer, "desc.%s is NULL", list[i].name);
        GPI__REFUSE_IF((uintptr_t)list[i].pointer % size, GEMMEPI_MISALIGNED,
                       "desc.%s is %p; it must be a multiple of %d bytes (the size of an element)",
                       list[i].name, list[i].pointer, (int)size);
        for (j = 0; j < i; j++) {
            uintptr_t first = (uintptr_t)list[i].pointer, second = (uintptr_t)list[j].pointer;
            int written = i == 1 || j == 1 || p->desc->find;
            GPI__INVALID_IF(written && first < second + (uintptr_t)list[j].bytes &&
                                second < first + (uintptr_t)list[i].bytes,
                            "desc.%s (%p, %lld bytes) overlaps desc.%s (%p, %lld bytes)", list[i].name,
                            list[i].pointer, (long long)list[i].bytes, list[j].name, list[j].pointer,
                            (long long)list[j].bytes);
        }
    }
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_pack(const gemmepi_pack_desc *desc, gpi__packing *p) {
    gemmepi_status status;
    GPI__INVALID_IF(!desc, "desc is NULL");
    p->desc = desc;
    p->from = gpi__or_else(desc->source_dtype, GEMMEPI_F32);
    p->to = (int)desc->dtype;
    p->scale = desc->scale ? (int)desc->scale_dtype : GEMMEPI_F32;
    p->zero = desc->zero ? (int)desc->zero_dtype : GEMMEPI_F32;
    p->source_ld = desc->source_ld ? desc->source_ld : desc->columns;
    p->ld = desc->ld ? desc->ld : desc->columns;
    p->block_rows = desc->block_rows && desc->block_rows < desc->rows ? desc->block_rows : desc->rows;
    p->block_columns =
        desc->block_columns && desc->block_columns < desc->columns ? desc->block_columns : desc->columns;
    p->divisor = desc->divisor < 0 || desc->divisor > 0 || desc->divisor != desc->divisor ? desc->divisor : 1;
    status = gpi__check_pack_dtype("source_dtype", p->from, GPI__PACK_SOURCES);
    if (!status)
        status = gpi__check_pack_dtype("dtype", p->to, GPI__PACK_RESULTS);
    if (!status && p->scale)
        status = gpi__check_pack_dtype("scale_dtype", p->scale, GPI__PACK_SCALES);
    if (!status && p->zero)
        status = gpi__check_pack_dtype("zero_dtype", p->zero, GPI__PACK_ZEROS);
    if (!status)
        status = gpi__check_pack_extents(p);
    if (!status)
        status = gpi__check_pack_scales(p);
    p->blocks = gpi__count_of_blocks(desc->columns, p->block_columns);
    return status ? status : gpi__check_pack_memory(p);
}

/* >>scales */

/* The rows and columns that have one scale. */
typedef struct gpi__pack_block {
    int64_t row, end, column, last, at; /* at: of the scale */
} gpi__pack_block;

#define GPI__PACK_RUN 256 /* numbers at once */

/* Returns how many numbers of a row of the block there are from a column on, and reads them. */
static int64_t gpi__load_to_pack(const gpi__packing *p, const gpi__pack_block *block, int64_t row,
                                 int64_t column, double values[GPI__PACK_RUN]) {
    int64_t count = block->last - column, i;
    count = count < GPI__PACK_RUN ? count : GPI__PACK_RUN;
    gpi__load_run(p->from, p->desc->source, row * p->source_ld + column, 1, count, values);
    for (i = 0; i < count; i++)
        values[i] /= p->divisor;
    return count;
}

/* What the numbers of a block reach to, and 0. */
typedef struct gpi__pack_range {
    double least, most;
    int is_finite;
} gpi__pack_range;

static gpi__pack_range gpi__pack_range_of(const gpi__packing *p, const gpi__pack_block *block) {
    gpi__pack_range range = {0, 0, 1};
    double values[GPI__PACK_RUN];
    int64_t row, column, count, i;
    for (row = block->row; row < block->end; row++)
        for (column = block->column; column < block->last; column += count) {
            count = gpi__load_to_pack(p, block, row, column, values);
            for (i = 0; i < count; i++) {
                range.is_finite &= values[i] - values[i] == 0;
                range.least = values[i] < range.least ? values[i] : range.least;
                range.most = values[i] > range.most ? values[i] : range.most;
            }
        }
    return range;
}

/* The largest number of a type. */
static double gpi__largest_of(int dtype) {
    double least, most;
    const gpi__float_format *format = gpi__format_of(dtype);
    if (gpi__is_whole_type(dtype, &least, &most))
        return most;
    return dtype == GEMMEPI_E2M1 ? 6 : gpi__decode(format, format->largest - (uint32_t)format->special);
}

/* Stores a scale: rounded up where it is a power of two, else to the nearest, but never to 0 or infinity. */
static void gpi__store_pack_scale(const gpi__packing *p, int64_t at, double scale) {
    double least = p->scale == GEMMEPI_F16    ? ldexp(1.0, -24)
                   : p->scale == GEMMEPI_E4M3 ? ldexp(1.0, -9)
                                              : ldexp(1.0, -126);
    double most = p->scale == GEMMEPI_F32    ? (double)FLT_MAX
                  : p->scale == GEMMEPI_E8M0 ? ldexp(1.0, 127)
                                             : gpi__largest_of(p->scale);
    int exponent;
    scale = scale < least ? least : scale > most ? most : scale;
    if (p->scale == GEMMEPI_E8M0 && frexp(scale, &exponent) > 0.5)
        scale = ldexp(1.0, exponent);
    gpi__store_run(p->scale, p->desc->scale, at, 1, &scale);
}

/* The scale and the zero of a block, of its numbers. */
static void gpi__find_pack_scale(const gpi__packing *p, const gpi__pack_block *block) {
    gpi__pack_range range = gpi__pack_range_of(p, block);
    double least, most, size, zero;
    int has_zero = gpi__is_whole_type(p->to, &least, &most) && p->desc->zero;
    if (has_zero)
        size = (range.most - range.least) / (most - least);
    else
        size = (range.most > -range.least ? range.most : -range.least) / gpi__largest_of(p->to);
    gpi__store_pack_scale(p, block->at, range.is_finite && size > 0 ? size : 1);
    if (!has_zero)
        return;
    gpi__load_run(p->scale, p->desc->scale, block->at, 1, 1, &size);
    zero = range.is_finite ? rint(least - range.least / size) : 0;
    zero = zero > most ? most : zero;
    gpi__store_run(p->zero, p->desc->zero, block->at, 1, &zero);
}

/* >>packing */

static void gpi__pack(const gpi__packing *p, const gpi__pack_block *block) {
    double values[GPI__PACK_RUN], scale = 1, zero = 0;
    int64_t row, column, count, i;
    if (p->desc->find)
        gpi__find_pack_scale(p, block);
    if (p->desc->scale)
        gpi__load_run(p->scale, p->desc->scale, block->at, 1, 1, &scale);
    if (p->desc->zero)
        gpi__load_run(p->zero, p->desc->zero, block->at, 1, 1, &zero);
    for (row = block->row; row < block->end; row++)
        for (column = block->column; column < block->last; column += count) {
            count = gpi__load_to_pack(p, block, row, column, values);
            for (i = 0; i < count; i++)
                values[i] = values[i] / scale + zero;
            gpi__store_run(p->to, p->desc->packed, row * p->ld + column, count, values);
        }
}

GEMMEPI_API gemmepi_status gemmepi_pack(const gemmepi_pack_desc *desc) {
    gpi__packing p;
    gpi__pack_block block;
    gemmepi_status status = gpi__check_pack(desc, &p);
    if (status)
        return status;
    block.at = 0;
    for (block.row = 0; block.row < desc->rows && desc->columns; block.row = block.end) {
        block.end = desc->rows - block.row < p.block_rows ? desc->rows : block.row + p.block_rows;
        for (block.column = 0; block.column < desc->columns; block.column = block.last, block.at++) {
            block.last = desc->columns - block.column < p.block_columns ? desc->columns
                                                                        : block.column + p.block_columns;
            gpi__pack(&p, &block);
        }
    }
    return GEMMEPI_OK;
}
#endif

#endif
