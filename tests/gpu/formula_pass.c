/* formula_pass [COUNT [SEED]]: the pass of formulas by itself, inside the library: formulas of tests/unit/formula_cases.h and
   some more with operands, types, sizes and layouts drawn at random, against the host's evaluation of every unit, with reductions by
   plain loops. COUNT: of formulas, 0 all. On the GPU that GEMMEPI_TEST_DEVICE numbers, if there is one, or the emulator. */
#include "../unit/formula_cases.h"
#include "device/create.h"
#include "device/memory.h"
#include "elementwise/formula_launch.h"

static gemmepi_context *gpu;
static int asked_count;
static uint64_t asked_seed = 1;

/* >>random choices */

static uint64_t drawn_state;

static int below(int n) {
    drawn_state = drawn_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((drawn_state >> 33) % (uint64_t)n);
}

static int one_in(int n) {
    return below(n) == 0;
}

/* >>tensors: all of a case in one block, poisoned, what is read filled */

enum { VALUE = GPI__RESULT + 1, MATRIX_C, SCALE_OF_VALUE, SCALE_OF_C, SCALARS, SCALES, AMAXES, TENSORS };

typedef struct tensor {
    size_t at;
    int dtype, is_output;
    int64_t lines, length, ld, stride,
        items; /* of an item: lines * length elements, ld apart; stride between items */
} tensor;

typedef struct layout_case {
    const char *text;
    gpi__formula *formula;
    gpi__placed_formula placed;
    gpi__formula_source source;
    tensor tensors[TENSORS];
    double numbers[GPI__FORMULA_OPERANDS];
    double beta;
    int has_c, on_device, specials;
    size_t size;
} layout_case;

static size_t bytes_of(int dtype, int64_t elements) {
    return ((size_t)elements * (size_t)gpi__bits_of(dtype) + 7) / 8;
}

static int64_t end_of(const tensor *t) {
    return (t->items - 1) * t->stride + (t->lines - 1) * t->ld + t->length;
}

static void lay_out_tensor(layout_case *c, int which, int dtype, int64_t lines, int64_t length, int64_t ld,
                           int64_t stride) {
    tensor *t = &c->tensors[which];
    t->dtype = dtype;
    t->lines = lines, t->length = length;
    t->ld = ld, t->stride = stride;
    t->items = stride ? c->placed.items : 1;
    t->at = c->size;
    if (lines > 0 && length > 0 && t->items > 0)
        c->size += (bytes_of(dtype, end_of(t)) + 2 * 256) / 256 * 256;
}

static double element(const tensor *t, const char *block, int64_t item, int64_t line, int64_t column) {
    double x;
    gpi__load_run(t->dtype, block + t->at, item * t->stride + line * t->ld + column, 1, 1, &x);
    return x;
}

static int64_t whole_element(const tensor *t, const char *block, int64_t item, int64_t line, int64_t column) {
    int64_t i = item * t->stride + line * t->ld + column;
    return t->dtype == GEMMEPI_I64 ? ((const int64_t *)(const void *)(block + t->at))[i]
                                   : ((const int32_t *)(const void *)(block + t->at))[i];
}

static int is_whole(int dtype) {
    return dtype == GEMMEPI_I32 || dtype == GEMMEPI_I64;
}

static void fill_element(const layout_case *c, const tensor *t, char *block, int64_t i) {
    double x = random_number();
    int64_t whole = c->formula->accumulator == GEMMEPI_I32 ? (int64_t)random_state >> 20
                                                           : (int64_t)(random_state >> 40) % 23;
    if (t->dtype == GEMMEPI_I64) {
        ((int64_t *)(void *)(block + t->at))[i] = whole;
    } else if (t->dtype == GEMMEPI_I32) {
        ((int32_t *)(void *)(block + t->at))[i] = (int32_t)whole;
    } else {
        if (t->dtype == GEMMEPI_I8)
            x *= 20;
        if (t->dtype == GEMMEPI_I4 || t->dtype == GEMMEPI_U4)
            x *= 4;
        if (t->dtype == GEMMEPI_E8M0)
            x = fabs(x) + 0.25;
        if (c->specials && one_in(97))
            x = one_in(2) ? NAN : one_in(2) ? HUGE_VAL : -HUGE_VAL;
        gpi__store_run(t->dtype, block + t->at, i, 1, &x);
    }
}

static void fill_block(const layout_case *c, char *block) {
    int which;
    int64_t i;
    random_state = drawn_state;
    memset(block, 0xa5, c->size);
    for (which = 0; which < SCALE_OF_VALUE; which++) {
        const tensor *t = &c->tensors[which];
        int accumulates = which < GPI__RESULT && c->formula->operands[which].accumulate;
        for (i = 0;
             t->length > 0 && t->lines > 0 && t->items > 0 && (!t->is_output || accumulates) && i < end_of(t);
             i++)
            fill_element(c, t, block, i);
    }
    for (; which <= SCALE_OF_C; which++)
        for (i = 0; c->tensors[which].length && i < end_of(&c->tensors[which]); i++)
            ((float *)(void *)(block + c->tensors[which].at))[i] = (float)ldexp(1, (int)(i % 3) - 1);
    ((double *)(void *)(block + c->tensors[SCALARS].at))[0] = c->beta;
    for (i = 0; i <= GPI__RESULT; i++)
        ((float *)(void *)(block + c->tensors[SCALES].at))[i] = i % 2 ? 0.5f : 4;
}

/* >>cases */

static int type_of_input(int accumulator) {
    static const int types[] = {GEMMEPI_F32,  GEMMEPI_F16,  GEMMEPI_BF16, GEMMEPI_BF16,
                                GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    return accumulator == GEMMEPI_F32   ? types[below(7)]
           : accumulator == GEMMEPI_F64 ? GEMMEPI_F64
                                        : GEMMEPI_I32;
}

/* Those of 4 bits among them: of v, and of what is FULL. */
static int type_of_matrix(int accumulator) {
    static const int types[] = {GEMMEPI_I4, GEMMEPI_U4, GEMMEPI_E2M1, GEMMEPI_E8M0};
    return accumulator == GEMMEPI_F32 && one_in(3) ? types[below(4)] : type_of_input(accumulator);
}

static int has_4_bits(const layout_case *c) {
    int i;
    for (i = 0; i < c->formula->operand_count; i++)
        if (c->formula->operands[i].used && gpi__is_packed(c->formula->operands[i].dtype))
            return 1;
    return 0;
}

static int is_read_by_index(const char *text, const char *name) {
    char with[80];
    snprintf(with, sizeof with, "%s[", name);
    return strstr(text, with) != NULL;
}

static void draw_operands(const char *text, gemmepi_operand *operands, int count, gemmepi_dtype accumulator) {
    gemmepi_dtype first_dtype = accumulator; /* r's, if there is one: o may lie in its place */
    int i;
    for (i = 0; i < count; i++) {
        gemmepi_operand *o = &operands[i];
        int is_argmax = o->output && strstr(text, "row_argmax") && strcmp(o->name, "rt") == 0, is_sum;
        char sum[80];
        if (o->kind == GEMMEPI_NUMBER || is_whole(o->dtype))
            continue;
        o->dtype = is_argmax                                    ? GEMMEPI_I32
                   : strcmp(o->name, "o") == 0                  ? first_dtype
                   : i && !o->output && o->kind == GEMMEPI_FULL ? (gemmepi_dtype)type_of_matrix(accumulator)
                                                                : (gemmepi_dtype)type_of_input(accumulator);
        first_dtype = i == 0 ? o->dtype : first_dtype;
        snprintf(sum, sizeof sum, "%s = %s_sum(", o->name,
                 gpi__has_rows(o->kind)          ? "row"
                 : o->kind == GEMMEPI_PER_COLUMN ? "column"
                                                 : "all");
        is_sum = o->output && strstr(text, sum) != NULL;
        o->accumulate = is_sum && one_in(3);
        if (gpi__is_scaled_dtype(o->dtype)) {
            o->scale.mode = one_in(2) ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
            o->amax = o->output && one_in(2);
        }
        if (!o->output && (o->kind == GEMMEPI_PER_ROW || o->kind == GEMMEPI_FULL))
            o->row_period = one_in(5) ? 3 : 0;
        if (!o->output && (o->kind == GEMMEPI_PER_COLUMN || o->kind == GEMMEPI_FULL))
            o->column_period = one_in(5) ? one_in(2) ? 8 : gpi__is_packed(o->dtype) ? 6 : 5 : 0;
        if (!o->output && o->kind == GEMMEPI_FULL && !gpi__is_packed(o->dtype) &&
            !is_read_by_index(text, o->name) && one_in(3)) {
            static const int rows[] = {1, 1, 2, 128}, columns[] = {1, 4, 5, 8, 16, 24, 128};
            o->kind = GEMMEPI_BLOCKED;
            o->row_period = o->column_period = 0;
            o->block_rows = rows[below(4)], o->block_columns = columns[below(7)];
        }
    }
}

/* Strides as large as they must be, or some more; 0 where a batch may share. */
static int64_t draw_stride(const layout_case *c, int64_t least, int may_share, int pad) {
    return may_share && one_in(3)              ? 0
           : c->placed.items == 1 && one_in(2) ? 0
                                               : (least + pad - 1) / pad * pad + (one_in(2) ? pad : 0);
}

static void place_operand(layout_case *c, int i, const gemmepi_operand *operand, int pad) {
    const gpi__formula_operand *o = &c->formula->operands[i];
    gpi__placed_operand *at = &c->placed.operands[i];
    int64_t lines = o->kind >= GEMMEPI_FULL ? c->placed.rows : 1, length;
    int shares = !o->output || (o->reduction && !gpi__has_rows(o->kind));
    if (!o->used || o->kind == GEMMEPI_NUMBER)
        return;
    if (operand) {
        at->row_period = operand->row_period, at->column_period = operand->column_period;
        if (o->kind == GEMMEPI_BLOCKED) {
            at->row_period = operand->block_rows > 1 ? operand->block_rows : 0;
            at->column_period = operand->block_columns > 1 ? operand->block_columns : 0;
        }
        at->scale = operand->scale.mode != 0, at->amax = operand->amax;
    }
    length = o->kind == GEMMEPI_PER_ROW  ? at->row_period ? at->row_period : c->placed.rows
             : o->kind == GEMMEPI_SCALAR ? 1
             : at->column_period && o->kind != GEMMEPI_BLOCKED ? at->column_period
             : o->width == GEMMEPI_WIDTH_HALF                  ? c->placed.columns / c->formula->parts
             : o->width == GEMMEPI_WIDTH_DOUBLE                ? c->placed.columns * c->formula->parts
                                                               : c->placed.columns;
    if (o->kind == GEMMEPI_FULL && at->row_period)
        lines = at->row_period;
    if (o->kind == GEMMEPI_BLOCKED) {
        lines = at->row_period ? (lines + at->row_period - 1) / at->row_period : lines;
        length = at->column_period ? (length + at->column_period - 1) / at->column_period : length;
    }
    if (o->kind >= GEMMEPI_FULL)
        at->ld = (length + pad - 1) / pad * pad + (one_in(2) ? pad : 0);
    at->batch_stride = draw_stride(c, lines * (at->ld ? at->ld : length), shares, pad);
    lay_out_tensor(c, i, o->dtype, lines, length, at->ld, at->batch_stride);
    c->tensors[i].is_output = o->output;
}

static void place_source(layout_case *c, int pad) {
    gpi__formula_matrix *v = &c->source.matrices[0], *of_c = &c->source.matrices[1];
    const gpi__placed_formula *p = &c->placed;
    int acc = c->formula->accumulator;
    c->source.alignment = 256;
    if (!c->formula->reads_value)
        return;
    v->dtype = acc == GEMMEPI_F32 && one_in(3) ? type_of_matrix(acc) : acc;
    if (gpi__is_packed(v->dtype) && p->columns % 2)
        v->dtype = acc;
    v->ld = (p->columns + pad - 1) / pad * pad;
    v->batch_stride = p->rows * v->ld;
    lay_out_tensor(c, VALUE, v->dtype, p->rows, p->columns, v->ld, v->batch_stride);
    if (one_in(4)) {
        of_c->dtype = type_of_input(acc);
        of_c->ld = v->ld + pad, of_c->batch_stride = one_in(3) ? 0 : p->rows * of_c->ld;
        of_c->scale = gpi__is_scaled_dtype(of_c->dtype) && one_in(2);
        lay_out_tensor(c, MATRIX_C, of_c->dtype, p->rows, p->columns, of_c->ld, of_c->batch_stride);
    }
    c->has_c = of_c->dtype != 0;
    if (acc == GEMMEPI_F32) {
        v->scale = below(3);
        v->scale_stride = v->scale == GEMMEPI_SCALE_OUTER ? p->rows : 1;
        of_c->scale_stride = 1;
    }
    lay_out_tensor(c, SCALE_OF_VALUE, GEMMEPI_F32, 1, p->rows + 1, 0, v->scale_stride);
    lay_out_tensor(c, SCALE_OF_C, GEMMEPI_F32, 1, 1, 0, of_c->scale_stride);
}

static int place_called(const layout_case *c, const char *name) {
    int i;
    for (i = 0; i < c->formula->operand_count; i++)
        if (strcmp(c->formula->names + c->formula->operands[i].name, name) == 0)
            return i;
    return -1;
}

static int in_place, of_4_bits, v_of_4_bits; /* cases */

/* o in the place of r, where the formula has both. */
static void put_in_place(layout_case *c) {
    int r = place_called(c, "r"), o = place_called(c, "o");
    if (r < 0 || o < 0 || c->formula->operands[r].dtype != c->formula->operands[o].dtype ||
        c->formula->operands[r].periods || (c->placed.operands[r].batch_stride == 0 && c->placed.items > 1))
        return;
    c->placed.operands[o].ld = c->placed.operands[r].ld;
    c->placed.operands[o].batch_stride = c->placed.operands[r].batch_stride;
    c->tensors[o] = c->tensors[r];
    c->tensors[o].is_output = 1;
    in_place++;
}

/* What the columns are a multiple of, so that groups that are reduced are whole in each part. */
static int64_t step_of_columns(const gpi__formula *f) {
    int64_t step = f->has_halves && f->group ? f->group : 1;
    int i;
    for (i = 0; i < f->operand_count; i++) {
        int64_t group = (int64_t)f->operands[i].group * (f->has_halves ? f->parts : 1), next = step;
        while (group && next % group)
            next += step;
        step = next;
    }
    return step;
}

/* 0: the formula does not go with the choice. */
static int draw_case(layout_case *c, const char *text, gemmepi_dtype accumulator, int is_empty) {
    static const int results[] = {GEMMEPI_BF16, GEMMEPI_F32,  GEMMEPI_F16, GEMMEPI_BF16,
                                  GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    static const int row_counts[] = {1, 5, 19, 70, 150}, column_counts[] = {8, 24, 64, 264, 520};
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_allocator allocator = gpi__default_allocator();
    int count = operands_of(text, operands), i, pad = one_in(2) ? 16 : 1;
    gemmepi_dtype d = accumulator == GEMMEPI_F32 ? (gemmepi_dtype)results[below(7)] : accumulator;
    gpi__formula_desc desc = desc_of(text, operands, count, accumulator, d);
    memset(c, 0, sizeof *c);
    c->text = text;
    draw_operands(text, operands, count, accumulator);
    if (gpi__parse_formula(&allocator, &desc, &c->formula) != GEMMEPI_OK)
        return 0;
    c->placed.formula = c->formula;
    c->placed.rows = row_counts[below(5)];
    c->placed.columns = column_counts[below(5)];
    if (one_in(3)) /* a tail: halves are even, of groups of 4 too */
        c->placed.columns += c->formula->has_halves ? 4 : 1 + below(7);
    if (c->formula->has_halves && c->formula->parts > 2) /* even ones that do not begin at whole runs */
        c->placed.columns = c->placed.columns / (2 * c->formula->parts) * (2 * c->formula->parts);
    if (has_4_bits(c)) {
        c->placed.columns += c->placed.columns % 2;
        pad = pad == 1 ? 2 : pad;
    }
    if (step_of_columns(c->formula) > 1)
        c->placed.columns = (c->placed.columns + step_of_columns(c->formula) - 1) /
                            step_of_columns(c->formula) * step_of_columns(c->formula);
    c->placed.depth = 77;
    c->placed.items = 1 + below(3);
    if (is_empty == 1)
        c->placed.rows = 0;
    if (is_empty == 2)
        c->placed.columns = 0;
    c->specials = accumulator != GEMMEPI_I32 && one_in(5);
    c->beta = one_in(4) ? 0 : -2;
    c->on_device = one_in(2);
    for (i = 0; i <= GPI__RESULT; i++)
        if (i < count || i == GPI__RESULT)
            place_operand(c, i, i < count ? &operands[i] : NULL, pad);
    put_in_place(c);
    for (i = 0; i < count; i++)
        c->numbers[i] = 0.625;
    if (c->formula->operands[GPI__RESULT].used && accumulator == GEMMEPI_F32) {
        c->placed.operands[GPI__RESULT].amax = one_in(3);
        c->placed.operands[GPI__RESULT].scale = gpi__is_scaled_dtype(d) && one_in(2);
    }
    place_source(c, pad);
    of_4_bits += has_4_bits(c);
    v_of_4_bits += gpi__is_packed(c->source.matrices[0].dtype);
    lay_out_tensor(c, SCALARS, GEMMEPI_F64, 1, 1, 0, 0);
    lay_out_tensor(c, SCALES, GEMMEPI_F32, 1, GPI__RESULT + 1, 0, 0);
    lay_out_tensor(c, AMAXES, GEMMEPI_F64, 1, GPI__RESULT + 1, 0, 0);
    c->tensors[AMAXES].is_output = 1;
    return 1;
}

/* >>a run */

static gemmepi_status run_case(const layout_case *c, const char *from, char *to, int rows_at_once) {
    gpi__formula_pass pass;
    gpi__formula_run run;
    gpi__entry entry;
    void *operands[GPI__RESULT + 1], *amax[GPI__RESULT + 1], *block = NULL, *states = NULL;
    const float *scales[GPI__RESULT + 1];
    char *device, said[1024];
    gpi__text text = gpi__text_in(said, sizeof said);
    gemmepi_status status;
    int i, multiprocessors = gpu->multiprocessors;
    status = gpi__enter_relaxed(gpu, &entry);
    if (status)
        return status;
    if (rows_at_once)
        gpu->multiprocessors = 1;
    gpi__lock(&gpu->build_lock);
    status = gpi__build_formula_pass(gpu, &c->placed, &c->source, &pass);
    gpi__unlock(&gpu->build_lock);
    gpu->multiprocessors = multiprocessors;
    gpi__leave_relaxed(gpu, &entry);
    if (!status)
        status = gemmepi_alloc(gpu, c->size, &block);
    if (!status && pass.state_bytes)
        status = gemmepi_alloc(gpu, pass.state_bytes, &states);
    if (!status)
        status = gemmepi_upload(gpu, block, from, c->size, NULL);
    if (status)
        return status;
    gpi__explain_formula_pass(&text, &pass, "");
    CHECK((strstr(said, "formula") || !(pass.launch.blocks + pass.finish.blocks)) &&
              gpi__formula_pass_microseconds(gpu, &c->placed, &c->source) > 0,
          "%s", said);
    device = (char *)block;
    memset(&run, 0, sizeof run);
    for (i = 0; i <= GPI__RESULT; i++) {
        operands[i] = c->formula->operands[i].kind == GEMMEPI_NUMBER ? (void *)(uintptr_t)&c->numbers[i]
                                                                     : device + c->tensors[i].at;
        scales[i] = (const float *)(const void *)(device + c->tensors[SCALES].at) + i;
        amax[i] = device + c->tensors[AMAXES].at + (size_t)i * 8;
    }
    run.matrices[0] = device + c->tensors[VALUE].at;
    run.matrices[1] = device + c->tensors[MATRIX_C].at;
    run.beta = c->on_device ? NAN : c->beta;
    if (c->on_device)
        run.device_beta = (const double *)(const void *)(device + c->tensors[SCALARS].at);
    run.uses_c = c->has_c;
    run.operands = operands, run.scales = scales, run.amax = amax;
    run.matrix_scales[0] = (const float *)(const void *)(device + c->tensors[SCALE_OF_VALUE].at);
    run.matrix_scales[1] = (const float *)(const void *)(device + c->tensors[SCALE_OF_C].at);
    run.states = states;
    status = gpi__enter(gpu, &entry);
    if (!status) {
        status = gpi__run_formula_pass(gpu, &pass, &run, NULL);
        gpi__leave(gpu, &entry);
    }
    if (!status)
        status = gemmepi_download(gpu, to, block, c->size, NULL);
    gemmepi_free(gpu, block), gemmepi_free(gpu, states);
    return status;
}

/* >>what is expected */

static int64_t wide_columns(const layout_case *c) {
    return c->formula->n_width == GPI__NARROW ? gpi__members(c->formula, GPI__WIDE) * c->placed.columns
                                              : c->placed.columns;
}

static int64_t unit_count(const layout_case *c) {
    return wide_columns(c) / gpi__members(c->formula, GPI__WIDE);
}

static int64_t member_column(const layout_case *c, int64_t unit, int member, int members) {
    const gpi__formula *f = c->formula;
    int64_t w = f->group ? f->group : wide_columns(c), part = w / f->parts;
    if (members == 1)
        return unit;
    return f->mode == GPI__EVEN_ODD ? 2 * unit + member : unit / part * w + unit % part + member * part;
}

static double scale_at(const layout_case *c, const char *block, int which, const gpi__formula_matrix *of,
                       int64_t item, int64_t row) {
    const float *scales = (const float *)(const void *)(block + c->tensors[which].at);
    return of->scale ? scales[item * of->scale_stride + (of->scale == GEMMEPI_SCALE_OUTER ? row : 0)] : 1;
}

static double operand_scale(const layout_case *c, const char *block, int i) {
    return c->placed.operands[i].scale ? ((const float *)(const void *)(block + c->tensors[SCALES].at))[i]
                                       : 1;
}

static estimate value_at(const layout_case *c, const char *block, int64_t item, int64_t row, int64_t column) {
    const gpi__formula_matrix *v = &c->source.matrices[0], *of_c = &c->source.matrices[1];
    double unit = c->formula->accumulator == GEMMEPI_F64 ? DBL_EPSILON : FLT_EPSILON;
    double x = element(&c->tensors[VALUE], block, item, row, column) *
               scale_at(c, block, SCALE_OF_VALUE, v, item, row);
    double more = 0, size;
    if (c->has_c && c->beta != 0)
        more = element(&c->tensors[MATRIX_C], block, of_c->batch_stride ? item : 0, row, column) * c->beta *
               scale_at(c, block, SCALE_OF_C, of_c, item, row);
    if (c->formula->accumulator == GEMMEPI_I32)
        return estimated(gpi__wrap(x + more), 0);
    size = fabs(x) + fabs(more);
    return estimated(x + more,
                     c->has_c && size <= DBL_MAX ? 2 * unit * size + (unit > 1e-10 ? 1e-38 : 0) : 0);
}

/* What a unit reads by index. */
static struct {
    const layout_case *c;
    const char *block;
    int64_t item, row;
} read_from;
static estimate look_up_there(const void *tables, int o, int64_t index) {
    const layout_case *c = read_from.c;
    const gpi__placed_operand *at = &c->placed.operands[o];
    const tensor *t = &c->tensors[o];
    int64_t item = at->batch_stride ? read_from.item : 0;
    int64_t row = at->row_period ? read_from.row % at->row_period : read_from.row;
    row = c->formula->operands[o].kind == GEMMEPI_FULL ? row : 0;
    if (tables != &read_from || index < 0 || index >= t->length)
        return estimated(0, 0);
    return estimated(is_whole(t->dtype) ? (double)whole_element(t, read_from.block, item, row, index)
                                        : element(t, read_from.block, item, row, index) *
                                              operand_scale(c, read_from.block, o),
                     0);
}

static void fill_unit_of(const layout_case *c, const char *block, int64_t item, int64_t row, int64_t u,
                         bounded_unit *to) {
    const gpi__formula *f = c->formula;
    int o, m, of_v = gpi__members(f, f->n_width), all = gpi__members(f, GPI__WIDE);
    memset(to, 0, sizeof *to);
    read_from.c = c, read_from.block = block, read_from.item = item, read_from.row = row;
    to->look_up = look_up_there, to->tables = &read_from;
    to->scales_d = c->placed.operands[GPI__RESULT].scale;
    to->scale_d = operand_scale(c, block, GPI__RESULT);
    to->indices[GPI__INDEX_ROW] = row;
    to->indices[GPI__INDEX_ITEM] = item;
    to->indices[GPI__INDEX_ROWS] = c->placed.rows;
    to->indices[GPI__INDEX_COLUMNS] = wide_columns(c);
    to->indices[GPI__INDEX_DEPTH] = c->placed.depth;
    for (m = 0; m < all; m++) {
        to->column[m] = member_column(c, u, m, all);
        if (f->reads_value && m < of_v)
            to->value[m] = value_at(c, block, item, row, member_column(c, u, m, of_v));
        for (o = 0; o < f->operand_count; o++) {
            const gpi__formula_operand *operand = &f->operands[o];
            const gpi__placed_operand *at = &c->placed.operands[o];
            int64_t line = operand->kind >= GEMMEPI_FULL ? row : 0,
                    column = member_column(c, u, m, operand->members);
            if (operand->output || !(operand->used & GPI__BY_PLACE) || m >= operand->members)
                continue;
            if (operand->kind == GEMMEPI_NUMBER) {
                to->operands[o][m].value = c->numbers[o];
                continue;
            }
            column = operand->kind == GEMMEPI_PER_ROW   ? row
                     : operand->kind == GEMMEPI_SCALAR  ? 0
                     : operand->kind == GEMMEPI_BLOCKED ? column / (at->column_period ? at->column_period : 1)
                     : at->column_period                ? column % at->column_period
                                                        : column;
            if (operand->kind == GEMMEPI_PER_ROW && at->row_period)
                column %= at->row_period;
            if (at->row_period)
                line = operand->kind == GEMMEPI_BLOCKED ? line / at->row_period : line % at->row_period;
            if (is_whole(operand->dtype))
                to->whole[o][m] =
                    whole_element(&c->tensors[o], block, at->batch_stride ? item : 0, line, column);
            else
                to->operands[o][m].value =
                    element(&c->tensors[o], block, at->batch_stride ? item : 0, line, column) *
                    operand_scale(c, block, o);
        }
    }
}

/* What an output is to be: an interval of its value before it is stored. */
typedef struct gathered {
    double value, bound, size, sum; /* sum: of exponentials, from the value on */
    int64_t column;                 /* of argmax */
    int count, is_doubtful;
} gathered;

static void gather(gathered *to, int op, estimate x, int64_t column) {
    double more;
    if (x.bound > DBL_MAX || x.bound != x.bound)
        to->is_doubtful = 1;
    if (op == GPI__REDUCE_SUM) {
        to->value += x.value, to->size += fabs(x.value), to->bound += x.bound;
    } else if (op == GPI__REDUCE_LOGSUMEXP) {
        more = x.value > to->value || x.value != x.value ? x.value : to->value;
        if (to->count == 0)
            to->value = x.value, to->sum = 1;
        else if (x.value == to->value && fabs(x.value) > DBL_MAX)
            to->sum += x.value > 0;
        else
            to->sum = to->sum * exp(to->value - more) + exp(x.value - more),
            to->value = to->value != to->value ? to->value : more;
        to->bound = x.bound > to->bound ? x.bound : to->bound;
    } else if (op == SMALLEST) {
        to->bound = x.bound > to->bound ? x.bound : to->bound;
        if (to->count == 0 || x.value < to->value || x.value != x.value)
            to->value = to->count && to->value != to->value ? to->value : x.value;
    } else {
        to->bound = x.bound > to->bound ? x.bound : to->bound;
        if (to->count == 0 || x.value > to->value || (x.value != x.value && to->value == to->value))
            if (!(to->count && to->value != to->value))
                to->value = x.value, to->column = column;
        if ((x.value == to->value || (x.value != x.value && to->value != to->value)) && column < to->column)
            to->column = column;
    }
    to->count++;
}

static int within_stored(int dtype, double got, double value, double bound, double scale) {
    double low = gpi__as_stored(dtype, (value - bound) * scale),
           high = gpi__as_stored(dtype, (value + bound) * scale);
    if (value != value)
        return dtype == GEMMEPI_I8 ? got == 0 : got != got;
    if (fabs(value) > DBL_MAX)
        low = high = gpi__as_stored(dtype, value * scale);
    return got >= low && got <= high;
}

static long compared, doubtful;

/* An element of a tensor, or nothing where any number may be there. */
static void check_stored(const layout_case *c, int o, double got, double value, double bound, double scale,
                         const char *where) {
    if (bound > DBL_MAX || bound != bound) {
        doubtful++;
        return;
    }
    compared++;
    CHECK(within_stored(c->tensors[o].dtype, got, value, bound, scale),
          "%s: %s %s is %.17g, not %.17g +- %.3g (times %g)", c->text,
          c->formula->names + c->formula->operands[o].name, where, got, value, bound, scale);
}

static void check_amax(const layout_case *c, const char *got, int o, const gathered *all) {
    const char *at = got + c->tensors[AMAXES].at + (size_t)o * 8;
    float amax;
    if (!c->placed.operands[o].amax || all->is_doubtful || c->formula->accumulator == GEMMEPI_F64)
        return;
    memcpy(&amax, at, sizeof amax);
    CHECK(all->value != all->value
              ? amax != amax
              : fabs(amax - all->value) <= all->bound + FLT_EPSILON * all->value || amax == all->value,
          "%s: amax of %s is %.9g, not %.9g", c->text, c->formula->names + c->formula->operands[o].name, amax,
          all->value);
}

static void finish_gathered(const layout_case *c, int op, gathered *g) {
    double unit = c->formula->accumulator == GEMMEPI_F64 ? DBL_EPSILON : FLT_EPSILON;
    if (op == GPI__REDUCE_SUM) {
        g->bound += (c->formula->accumulator == GEMMEPI_F64 ? 64 : 4) * unit * g->size;
    } else if (op == GPI__REDUCE_LOGSUMEXP) {
        if (g->count == 0)
            g->value = -HUGE_VAL;
        else if (fabs(g->value) <= DBL_MAX)
            g->value += log(g->sum);
        g->bound += 32 * unit + unit * (fabs(g->value) <= DBL_MAX ? fabs(g->value) : 0);
    } else if (g->count == 0) {
        g->value = op == GPI__REDUCE_ARGMAX ? 0 : op == SMALLEST ? HUGE_VAL : -HUGE_VAL;
    }
    if (g->is_doubtful)
        g->bound = HUGE_VAL;
}

/* All reductions and D's and others' elements, into `all`: of each output as many as it has elements, items one behind the other. */
static void expect(const layout_case *c, const char *block, gathered **all, gathered *amax) {
    const gpi__formula *f = c->formula;
    estimate *values = (estimate *)malloc(sizeof *values * (size_t)(f->parts * (f->node_count + 1))), x;
    bounded_unit unit;
    int64_t item, row, u, at;
    int o, m;
    for (item = 0; item < c->placed.items; item++)
        for (row = 0; row < c->placed.rows; row++)
            for (u = 0; u < unit_count(c); u++) {
                fill_unit_of(c, block, item, row, u, &unit);
                evaluate_bounded(f, &unit, values);
                for (o = 0; o <= GPI__RESULT; o++)
                    for (m = 0; all[o] && m < f->operands[o].members; m++) {
                        const tensor *t = &c->tensors[o];
                        int64_t column = member_column(c, u, m, f->operands[o].members),
                                which = t->items > 1 ? item : 0;
                        at = f->operands[o].kind == GEMMEPI_FULL
                                 ? (which * t->lines + row) * t->length + column
                             : f->operands[o].kind == GEMMEPI_BLOCKED
                                 ? (which * t->lines + row) * t->length + column / f->operands[o].group
                             : f->operands[o].kind == GEMMEPI_PER_ROW    ? which * t->length + row
                             : f->operands[o].kind == GEMMEPI_PER_COLUMN ? which * t->length + column
                                                                         : which;
                        x = bounded_output(f, values, o, m);
                        gather(&all[o][at], reduces_by(f, o), x, column);
                        if (!f->operands[o].reduction)
                            x.value = fabs(x.value), gather(&amax[o], GPI__REDUCE_MAX, x, 0);
                    }
            }
    free(values);
}

static void check_output(const layout_case *c, const char *before, const char *got, int o, gathered *all,
                         gathered *amax) {
    const tensor *t = &c->tensors[o];
    const gpi__formula_operand *operand = &c->formula->operands[o];
    int64_t item, line, column;
    double old, read;
    char where[64];
    int op = reduces_by(c->formula, o);
    for (item = 0; item < t->items; item++)
        for (line = 0; line < t->lines; line++)
            for (column = 0; column < t->length; column++) {
                gathered *g = all + (item * t->lines + line) * t->length + column;
                if (operand->reduction)
                    finish_gathered(c, op, g);
                old = operand->accumulate ? element(t, before, item, line, column) : 0;
                read = element(t, got, item, line, column);
                snprintf(where, sizeof where, "[%d, %d, %d]", (int)item, (int)line, (int)column);
                if (op == GPI__REDUCE_ARGMAX) {
                    CHECK(g->bound > 0 ? read >= 0 && read < 2 * (double)c->placed.columns
                                       : read == (double)(g->count ? g->column : 0),
                          "%s: argmax %s is %g, not %d", c->text, where, read, (int)g->column);
                    continue;
                }
                check_stored(c, o, read, g->value + old, g->bound + 1e-15 * fabs(old),
                             operand_scale(c, before, o), where);
                if (operand->reduction) {
                    estimate x = estimated(fabs(g->value + old), g->bound);
                    gather(amax, GPI__REDUCE_MAX, x, 0);
                }
            }
    check_amax(c, got, o, amax);
}

/* Whatever is no element of an output is as it was. */
static void check_rest(const layout_case *c, const char *before, const char *got) {
    char *may_differ = (char *)calloc(1, c->size ? c->size : 1);
    int64_t item, line;
    size_t i;
    int o, wrong = 0;
    for (o = 0; o < TENSORS; o++) {
        const tensor *t = &c->tensors[o];
        for (item = 0; t->is_output && t->length > 0 && item < t->items; item++)
            for (line = 0; line < t->lines; line++)
                memset(may_differ + t->at + bytes_of(t->dtype, item * t->stride + line * t->ld), 1,
                       bytes_of(t->dtype, t->length));
    }
    for (i = 0; i < c->size; i++)
        wrong += !may_differ[i] && before[i] != got[i];
    CHECK(wrong == 0, "%s: %d bytes beside the outputs changed", c->text, wrong);
    free(may_differ);
}

static void check_case(const layout_case *c, int rows_at_once) {
    char *blocks = (char *)malloc(3 * c->size);
    char *before = blocks, *first = blocks + c->size, *second = blocks + 2 * c->size;
    gathered *all[GPI__RESULT + 1], amax[GPI__RESULT + 1];
    gemmepi_status status;
    int o;
    fill_block(c, before);
    memset(amax, 0, sizeof amax);
    for (o = 0; o <= GPI__RESULT; o++) {
        const tensor *t = &c->tensors[o];
        size_t count = t->length > 0 && t->lines > 0 ? (size_t)(t->items * t->lines * t->length) : 0;
        all[o] = t->is_output ? (gathered *)calloc(count ? count : 1, sizeof **all) : NULL;
    }
    status = run_case(c, before, first, rows_at_once);
    CHECK(status == GEMMEPI_OK, "%s: %s", c->text, gemmepi_last_error());
    if (!status) {
        status = run_case(c, before, second, rows_at_once);
        CHECK(status == GEMMEPI_OK && memcmp(first, second, c->size) == 0, "%s: another run has other bits",
              c->text);
        expect(c, before, all, amax);
        for (o = 0; o <= GPI__RESULT; o++)
            if (all[o])
                check_output(c, before, first, o, all[o], &amax[o]);
        check_rest(c, before, first);
    }
    for (o = 0; o <= GPI__RESULT; o++)
        free(all[o]);
    free(blocks);
}

/* >>lists */

static const char *const more_formulas[] = {
    "d = v * p * b",
    "d = silu(v + b) * u + r; rs = row_sum(d * d)",
    "rs = row_logsumexp(v); rt = row_sum(column == label ? v : 0)",
    "rt = row_argmax(v); rs = row_max(v)",
    "rt = row_argmax(pair(left(v), right(r))); d = left(v)",
    "d = pair(left(v, 4) * left(b, 4) - right(v, 4) * right(b, 4), right(v, 4) * left(b, 4) + left(v, 4) * right(b, 4), 4)",
    "d = interleave(even(v) * h - odd(v) * bh, odd(v) * h + even(v) * bh)",
    "z = sigmoid(part(v, 0, 3)); d = z * h + (1 - z) * tanh(part(v, 2, 3) + sigmoid(part(v, 1, 3)) * bh)",
    "z = part(w, 1, 4); d = parts(v * z, r - v, 0, z * part(column, 3, 4)); cs = column_sum(v * z); rs = row_max(w * w)",
    "oh = part(v, 15, 16) + part(v, 0, 16); rt = row_argmax(part(v + b, 3, 16)); d = oh * oh",
    "d = r + (uniform(seed, 0) >= 0.25 ? (v + b) / 0.75 : 0)",
    "cs = column_sum(v); al = all_sum(v * v); rs = row_sum(v); d = v",
    "cs = column_max(v); al = all_max(abs(v))",
    "cs = column_min(v * p); rs = row_min(abs(v) - 3); d = v",
    "cs = column_logsumexp(v); rs = row_logsumexp(left(v) - right(v)); d = left(v)",
    "d = v * 600; o = rounded(d) + rounded(v * r); rs = row_sum(rounded(d) * p)",
    "g8 = row_sum(v * v, 8); g16 = row_max(v, 16)",
    "d = v; g8 = row_mean(r * v, 8); g16 = row_min(v + b, 16); rs = row_sum(d)",
    "d = left(v) * right(v); g8 = row_sum(v, 8)",
    "d = left(v, 32) - right(v, 32); g16 = row_max(v * v, 16); gh = row_sum(left(v, 32), 8)",
    "g96 = row_sum(v, 96); d = v",
    "g1024 = row_max(v, 1024); d = v + b",
    "d = r * u + b",
    "d = v * cw[label] + lg[label] * b; rs = row_sum(d * rw[column])",
    "d = silu(left(v)) * cw[left(column)] + rw[2] * h; o = lg[row] - cw[label] * cw",
    "d = stochastic(v + b, seed); o = stochastic(r * u, seed, 4)",
    "d = stochastic(left(v) - right(r), seed); rs = row_sum(d)",
    "o = r * u + b",
    "o = r + v; d = o * b; rs = row_sum(o)",
};

static const char *const whole_formulas[] = {
    "d = v + r * u - 3",
    "d = v > r ? max(v, u) : min(r, -u)",
    "d = v * column + row - item * columns",
    "d = left(v) * right(r) - left(column)",
    "d = parts(v, part(w, 0, 3) - r, 3)",
    "d = v * cw[label] + lg[r] - rw[row] * lg[min(v, 3) - 1]",
    "o = v; d = relu(v) + (v == label)",
};

static int cases_run, is_emulated;

/* What a large argument takes lies in local memory, of which the emulator knows nothing. */
static int is_beyond_emulation(const char *text) {
    return is_emulated && (strstr(text, "sin(") || strstr(text, "cos("));
}

enum { SLICES = 8 };
static int slice; /* one of so many of the formulas, by itself: a GPU compiles a kernel for each */

static void run_list(const char *const *formulas, int count, gemmepi_dtype accumulator, int is_empty) {
    int i, step = asked_count > 0 && count > asked_count ? count / asked_count : 1;
    static layout_case c;
    for (i = (int)(asked_seed % (uint64_t)step) + step * slice; i < count; i += step * SLICES) {
        int turn, drawn = 0;
        if (is_beyond_emulation(formulas[i]))
            continue;
        for (turn = 0; turn < 9 && !drawn; turn++) {
            drawn_state = asked_seed * 0x9e3779b97f4a7c15u + (uint64_t)(i * 64 + turn) * 0xd1342543de82ef95u +
                          (uint64_t)accumulator * 977;
            below(2);
            drawn = draw_case(&c, formulas[i], accumulator, is_empty);
        }
        CHECK(drawn, "%s: %s", formulas[i], gemmepi_last_error());
        if (!drawn)
            continue;
        check_case(&c, one_in(2));
        cases_run++;
        freed(c.formula);
    }
}

#define LIST(formulas) formulas, (int)GPI__COUNT(formulas)

static void formulas_that_users_write_hold_in_f32(void) {
    run_list(LIST(more_formulas), GEMMEPI_F32, 0);
}
static void every_operation_holds_in_f32(void) {
    run_list(LIST(smooth_formulas), GEMMEPI_F32, 0);
    run_list(LIST(other_formulas), GEMMEPI_F32, 0);
}
static void formulas_hold_in_f64(void) {
    run_list(LIST(more_formulas), GEMMEPI_F64, 0);
}
static void formulas_hold_in_whole_numbers(void) {
    run_list(LIST(whole_formulas), GEMMEPI_I32, 0);
}
static void reductions_over_nothing_are_0_or_below_all(void) {
    run_list(LIST(more_formulas), GEMMEPI_F32, 1);
    run_list(LIST(more_formulas), GEMMEPI_F32, 2);
}

int main(int argc, char **argv) {
    const char *name = getenv("GEMMEPI_TEST_DEVICE");
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE(name ? atoi(name) : 0);
    asked_count = argc > 1 ? atoi(argv[1]) : 0;
    asked_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if ((name && strcmp(name, "host") == 0) || gemmepi_create(&config, &gpu) != GEMMEPI_OK) {
        printf("skip formulas on a GPU: %s\n0 passed, 0 failed, 1 skipped\n",
               gpu || (name && strcmp(name, "host") == 0) ? "the host is asked for" : gemmepi_last_error());
        return 0;
    }
    is_emulated = getenv("EMULATOR_ARCH") != NULL;
    for (slice = 0; slice < SLICES; slice++) {
        RUN(formulas_that_users_write_hold_in_f32);
        RUN(every_operation_holds_in_f32);
        RUN(formulas_hold_in_f64);
        RUN(formulas_hold_in_whole_numbers);
        RUN(reductions_over_nothing_are_0_or_below_all);
    }
    printf(
        "   %d cases, %d in place, %d with operands of 4 bits, %d whose v is, %ld elements compared, %ld may be anything\n",
        cases_run, in_place, of_4_bits, v_of_4_bits, compared, doubtful);
    gemmepi_destroy(gpu);
    return test_finish();
}
