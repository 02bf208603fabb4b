/* packed_operands [CASE]: formulas that read operands in I4, U4, E2M1 and E8M0, in products and over tensors, against plain loops with tables of
   codes that are written here. All numbers are such that each result is exact. On the host and, where there is one, a GPU. */
#include "problem.h"

enum { K = 5, BATCH = 2, MOST = 1 << 14, POISON = 0xa5 };

static test_device *here;
static rng randoms;
static int only = -1;

/* >>the types, by hand */

static const double i4[16] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
static const double u4[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const double e2m1[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

static double of_code(gemmepi_dtype dtype, unsigned code) {
    return dtype == GEMMEPI_I4     ? i4[code & 15]
           : dtype == GEMMEPI_U4   ? u4[code & 15]
           : dtype == GEMMEPI_E2M1 ? e2m1[code & 15]
                                   : ldexp(1, (int)code - 127);
}

/* An element, by how many elements it is from the first. */
static double element_in(const unsigned char *bytes, gemmepi_dtype dtype, int64_t at) {
    if (dtype == GEMMEPI_E8M0)
        return of_code(dtype, bytes[at]);
    return of_code(dtype, at % 2 ? bytes[at / 2] / 16u : bytes[at / 2] % 16u);
}

/* >>memory */

static unsigned char w_bytes[MOST], s_bytes[MOST];
static float a_numbers[MOST], b_numbers[MOST], d_numbers[MOST], wanted[MOST];
static int32_t labels[MOST];
static void *blocks[8];
static int block_count;

static void *sent(const void *from, size_t bytes) {
    void *block = NULL;
    CHECK(block_count < 8 && gemmepi_alloc(here->context, bytes, &block) == GEMMEPI_OK &&
              gemmepi_upload(here->context, block, from, bytes, here->stream) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    blocks[block_count++] = block;
    return block;
}

static void free_blocks(void) {
    while (block_count > 0)
        gemmepi_free(here->context, blocks[--block_count]);
}

static void fill_all(gemmepi_dtype dtype) {
    int i;
    for (i = 0; i < MOST; i++) {
        w_bytes[i] =
            (unsigned char)(dtype == GEMMEPI_E8M0 ? 124 + rng_below(&randoms, 6) : rng_below(&randoms, 256));
        s_bytes[i] = (unsigned char)(124 + rng_below(&randoms, 6));
        a_numbers[i] = (float)rng_below(&randoms, 7) - 3;
        b_numbers[i] = (float)rng_below(&randoms, 7) - 3;
        labels[i] = (int32_t)rng_below(&randoms, 20) - 2;
    }
    memset(d_numbers, POISON, sizeof d_numbers);
    memcpy(wanted, d_numbers, sizeof d_numbers);
}

static void check_result(const char *what, gemmepi_status status, const void *d) {
    int i;
    if (!status)
        status = gemmepi_download(here->context, d_numbers, d, sizeof d_numbers, here->stream);
    CHECK(status == GEMMEPI_OK, "%s: %s", what, gemmepi_last_error());
    for (i = 0; i < MOST && !status; i++)
        if (memcmp(&d_numbers[i], &wanted[i], sizeof(float))) {
            CHECK(0, "on %s: %s: element %d is %g, not %g", here->name, what, i, (double)d_numbers[i],
                  (double)wanted[i]);
            return;
        }
}

/* >>products */

enum {
    PLAIN,
    SCALED_ROWS,
    SCALED_COLUMNS,
    SCALED,
    HALVES,
    EVERY_SECOND,
    PERIODS,
    TABLE,
    PAIR,
    BLOCKS,
    FORMS
};
static const char *const texts[FORMS] = {"d = v + w",
                                         "d = v + w * s",
                                         "d = v + w * s",
                                         "d = v + w * s",
                                         "d = v + left(w) - 2 * right(w)",
                                         "d = v + even(w) - 2 * odd(w)",
                                         "d = v + w",
                                         "d = v + w[label]",
                                         "d = pair(v + w, 2 * v)",
                                         "d = v + w * s"};

typedef struct product_case {
    gemmepi_dtype dtype;
    int form, exchanged, m, n, pad;
} product_case;

/* Of w, in the row-major problem's order: its columns, its periods, and where its items and lines begin. */
typedef struct packed_matrix {
    int64_t columns, row_period, column_period, ld, stride;
} packed_matrix;

static packed_matrix matrix_of(const product_case *c, int n) {
    packed_matrix w;
    w.columns = c->form == HALVES || c->form == EVERY_SECOND ? 2 * n : n;
    w.row_period = c->form == PERIODS ? 3 : 0;
    w.column_period = c->form == PERIODS ? 6 : c->form == TABLE ? 16 : 0;
    w.ld = (w.column_period ? w.column_period : w.columns) + c->pad;
    w.stride = 20 * w.ld;
    return w;
}

static double w_at(const product_case *c, const packed_matrix *w, int item, int64_t row, int64_t column) {
    row = w->row_period ? row % w->row_period : row;
    column = w->column_period ? column % w->column_period : column;
    return element_in(w_bytes, c->dtype, item * w->stride + row * w->ld + column);
}

static double expected_of(const product_case *c, const packed_matrix *w, int item, int row, int column, int n,
                          double v) {
    int label = labels[row];
    switch (c->form) {
    case SCALED_ROWS:
        return v + w_at(c, w, item, row, column) * element_in(s_bytes, GEMMEPI_E8M0, row);
    case SCALED_COLUMNS:
        return v + w_at(c, w, item, row, column) * element_in(s_bytes, GEMMEPI_E8M0, column);
    case SCALED:
        return v + w_at(c, w, item, row, column) * element_in(s_bytes, GEMMEPI_E8M0, 0);
    case BLOCKS:
        return v + w_at(c, w, item, row, column) *
                       element_in(s_bytes, GEMMEPI_E8M0, row / 2 * ((n + 3) / 4) + column / 4);
    case HALVES:
        return v + w_at(c, w, item, row, column) - 2 * w_at(c, w, item, row, n + column);
    case EVERY_SECOND:
        return v + w_at(c, w, item, row, 2 * column) - 2 * w_at(c, w, item, row, 2 * column + 1);
    case TABLE:
        return v + (label < 0 || label >= 16 ? 0 : w_at(c, w, item, row, label));
    default:
        return v + w_at(c, w, item, row, column);
    }
}

/* The row-major problem [m, n]; the caller of column-major order has it transposed on the same memory. */
static void expect_product(const product_case *c, int m, int n, int64_t ld_d) {
    packed_matrix w = matrix_of(c, n);
    int item, i, j, l;
    for (item = 0; item < BATCH; item++)
        for (i = 0; i < m; i++)
            for (j = 0; j < n; j++) {
                float *d = &wanted[item * 4000 + i * ld_d + j];
                double v = 0;
                for (l = 0; l < K; l++)
                    v += (double)a_numbers[i * K + l] * (double)b_numbers[l * n + j];
                d[0] = (float)expected_of(c, &w, item, i, j, n, v);
                if (c->form == PAIR)
                    d[n] = (float)(2 * v);
            }
}

static void describe(const product_case *c, gemmepi_matmul_desc *desc, gemmepi_operand operands[3],
                     int64_t ld_d) {
    packed_matrix w = matrix_of(c, c->n);
    int rows = c->form == SCALED_ROWS, columns = c->form == SCALED_COLUMNS;
    memset(desc, 0, sizeof *desc);
    memset(operands, 0, 3 * sizeof *operands);
    operands[0].name = "w", operands[0].kind = GEMMEPI_FULL, operands[0].dtype = c->dtype;
    operands[0].ld = w.ld, operands[0].batch_stride = w.stride;
    operands[0].width = c->form == HALVES || c->form == EVERY_SECOND ? GEMMEPI_WIDTH_DOUBLE : GEMMEPI_WIDTH_N;
    operands[0].row_period = c->exchanged ? w.column_period : w.row_period;
    operands[0].column_period = c->exchanged ? w.row_period : w.column_period;
    operands[1].name = "s", operands[1].dtype = GEMMEPI_E8M0;
    operands[1].kind =
        rows || columns ? (rows == !c->exchanged ? GEMMEPI_PER_ROW : GEMMEPI_PER_COLUMN) : GEMMEPI_SCALAR;
    if (c->form == BLOCKS)
        operands[1].kind = GEMMEPI_BLOCKED, operands[1].block_rows = c->exchanged ? 4 : 2,
        operands[1].block_columns = c->exchanged ? 2 : 4;
    if (c->form == TABLE)
        operands[1].name = "label", operands[1].kind = GEMMEPI_PER_ROW, operands[1].dtype = GEMMEPI_I32;
    desc->m = c->exchanged ? c->n : c->m, desc->n = c->exchanged ? c->m : c->n, desc->k = K;
    desc->batch = BATCH;
    desc->order = c->exchanged ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc->d.ld = ld_d, desc->d.batch_stride = 4000;
    desc->formula = texts[c->form];
    desc->operands = operands;
    desc->operand_count = strstr(texts[c->form], "s") || c->form == TABLE ? 2 : 1;
}

static void run_product(const product_case *c) {
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_operand operands[3];
    void *pointers[2];
    const void *a, *b;
    int64_t ld_d = (c->form == PAIR ? 2 : 1) * c->n + 3;
    char what[160];
    snprintf(what, sizeof what, "type %d, %s, %d x %d, pad %d%s", (int)c->dtype, texts[c->form], c->m, c->n,
             c->pad, c->exchanged ? ", column-major" : "");
    fill_all(c->dtype);
    expect_product(c, c->m, c->n, ld_d);
    describe(c, &desc, operands, ld_d);
    memset(&args, 0, sizeof args);
    a = sent(a_numbers, sizeof a_numbers), b = sent(b_numbers, sizeof b_numbers);
    args.a = c->exchanged ? b : a, args.b = c->exchanged ? a : b;
    args.d = sent(d_numbers, sizeof d_numbers);
    pointers[0] = sent(w_bytes, sizeof w_bytes);
    pointers[1] = c->form == TABLE ? sent(labels, sizeof labels) : sent(s_bytes, sizeof s_bytes);
    args.operands = pointers;
    check_result(what, gemmepi_matmul(here->context, &desc, &args, here->stream), args.d);
    free_blocks();
}

static void products_read_operands_of_4_bits(void) {
    static const gemmepi_dtype types[] = {GEMMEPI_I4, GEMMEPI_U4, GEMMEPI_E2M1, GEMMEPI_E8M0};
    static const int sizes[][3] = {{6, 22, 2}, {5, 32, 8}, {1, 2, 0}, {7, 8, 0}, {3, 6, 4}};
    int which = 0, form, type, size, exchanged;
    for (form = 0; form < FORMS; form++)
        for (type = 0; type < 4; type++)
            for (exchanged = 0; exchanged < 2; exchanged++)
                for (size = 0; size < 5; size++, which++) {
                    product_case c;
                    c.dtype = types[type], c.form = form, c.exchanged = exchanged;
                    c.m = sizes[size][0], c.n = sizes[size][1], c.pad = sizes[size][2];
                    if (exchanged && form == TABLE)
                        continue; /* refused */
                    if (here->is_host || only < 0 ? here->is_host || (which + form) % 4 == 0 : which == only)
                        run_product(&c);
                }
}

/* >>tensors */

enum { DENSE, BESIDE_TURNED, WIDE, REPEATED, BACKWARDS, SHORT_PERIOD, OF_BLOCKS, LAYOUTS };
static const char *const tensor_texts[LAYOUTS] = {
    "d = w * s + x", "d = w * s + x", "d = left(w) * s + right(w)", "d = w * s + x", "d = w * s + (x + row)",
    "d = w * s + x", "d = w * s + x"};

/* Of OF_BLOCKS: columns of a block of two rows. */
static int block_of(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_U4 ? 7 : 1;
}

/* y, x and w of [2, ROWS, COLUMNS], s [2, ROWS, 1]; x's and y's elements are where at() says. */
enum { ROWS = 5, COLUMNS = 14 };

static int64_t at_x(int layout, int item, int row, int column) {
    return layout == BESIDE_TURNED ? (item * COLUMNS + column) * ROWS + row
                                   : (item * ROWS + row) * COLUMNS + column;
}

static double w_of_tensor(int layout, gemmepi_dtype dtype, int item, int row, int column) {
    int64_t at = layout == WIDE           ? (item * ROWS + row) * (2 * COLUMNS + 2) + column
                 : layout == REPEATED     ? item * COLUMNS + column
                 : layout == BACKWARDS    ? (item * ROWS + (ROWS - 1 - row)) * COLUMNS + column
                 : layout == SHORT_PERIOD ? (item * ROWS + row) * 4 + column % 4
                 : layout == OF_BLOCKS
                     ? (item * 3 + row / 2) * COLUMNS / block_of(dtype) + column / block_of(dtype)
                     : (item * ROWS + row) * COLUMNS + column;
    return element_in(w_bytes, dtype, at);
}

static void expect_tensors(int layout, gemmepi_dtype dtype) {
    int item, row, column;
    for (item = 0; item < 2; item++)
        for (row = 0; row < ROWS; row++)
            for (column = 0; column < COLUMNS; column++) {
                int64_t at = at_x(layout, item, row, column);
                double w = w_of_tensor(layout, dtype, item, row, column),
                       s = element_in(s_bytes, GEMMEPI_E8M0, item * ROWS + row),
                       x = (double)a_numbers[at] + (layout == BACKWARDS ? row : 0);
                if (layout == WIDE)
                    x = w_of_tensor(layout, dtype, item, row, column + COLUMNS);
                wanted[at] = (float)(w * s + x);
            }
}

static void run_tensors(int layout, gemmepi_dtype dtype) {
    static int64_t shape[3] = {2, ROWS, COLUMNS}, wide[3] = {2, ROWS, 2 * COLUMNS},
                   repeated[3] = {2, 1, COLUMNS}, of_rows[3] = {2, ROWS, 1}, period[3] = {2, ROWS, 4};
    static int64_t turned[3] = {ROWS * COLUMNS, 1, ROWS},
                   gaps[3] = {ROWS * (2 * COLUMNS + 2), 2 * COLUMNS + 2, 1},
                   backwards[3] = {ROWS * COLUMNS, -COLUMNS, 1};
    int64_t blocked[3] = {2, 3, COLUMNS / block_of(dtype)};
    gemmepi_tensor y, x, w, s;
    gemmepi_operand operands[3];
    gemmepi_elementwise_desc desc;
    char what[80];
    snprintf(what, sizeof what, "tensors, type %d, layout %d", (int)dtype, layout);
    fill_all(dtype);
    expect_tensors(layout, dtype);
    memset(&y, 0, sizeof y), memset(&desc, 0, sizeof desc), memset(operands, 0, sizeof operands);
    y.rank = 3, y.shape = shape, y.stride = layout == BESIDE_TURNED ? turned : NULL;
    x = w = s = y;
    y.data = sent(d_numbers, sizeof d_numbers), x.data = sent(a_numbers, sizeof a_numbers);
    w.data = sent(w_bytes, sizeof w_bytes), s.data = sent(s_bytes, sizeof s_bytes);
    w.dtype = dtype, s.dtype = GEMMEPI_E8M0, s.shape = of_rows, w.stride = s.stride = NULL;
    w.shape = layout == WIDE ? wide : layout == REPEATED ? repeated : layout == SHORT_PERIOD ? period : shape;
    if (layout == WIDE)
        w.stride = gaps, operands[0].width = GEMMEPI_WIDTH_DOUBLE;
    if (layout == BACKWARDS)
        w.stride = backwards, w.offset = (ROWS - 1) * COLUMNS * (dtype == GEMMEPI_E8M0 ? 2 : 1) / 2;
    operands[0].name = "w", operands[0].kind = GEMMEPI_FULL, operands[0].tensor = &w;
    operands[0].column_period = layout == SHORT_PERIOD ? 4 : 0;
    if (layout == OF_BLOCKS)
        w.shape = blocked, operands[0].kind = GEMMEPI_BLOCKED, operands[0].block_rows = 2,
        operands[0].block_columns = block_of(dtype);
    operands[1].name = "s", operands[1].kind = GEMMEPI_PER_ROW, operands[1].tensor = &s;
    operands[2].name = "x", operands[2].kind = GEMMEPI_FULL, operands[2].tensor = &x;
    desc.y = &y, desc.formula = tensor_texts[layout], desc.operands = operands;
    desc.operand_count = layout == WIDE ? 2 : 3;
    check_result(what, gemmepi_elementwise(here->context, &desc, NULL, here->stream), y.data);
    free_blocks();
}

static void tensors_of_4_bits_are_read(void) {
    static const gemmepi_dtype types[] = {GEMMEPI_I4, GEMMEPI_U4, GEMMEPI_E2M1, GEMMEPI_E8M0};
    int layout, type;
    for (layout = 0; layout < LAYOUTS; layout++)
        for (type = 0; type < 4; type++)
            if (here->is_host || (layout + type) % 2 == 0)
                run_tensors(layout, types[type]);
}

/* >>what is stored as b, and made by its formula */

enum { DEPTH = 8, WIDE_AS = 6 };

/* d[j] is the sum of (b[k, j] - 8) s[k / group, j], or with a plus. b is stored [n, k], as gemmepi_pack has it. */
static void run_stored(int group, int adds) {
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_operand s;
    void *pointers[1];
    int j, k, groups = (DEPTH + group - 1) / group;
    char what[80];
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args), memset(&s, 0, sizeof s);
    for (j = 0; j < WIDE_AS; j++)
        for (wanted[j] = 0, k = 0; k < DEPTH; k++) {
            double b = element_in(w_bytes, GEMMEPI_U4, j * DEPTH + k) - 8,
                   scale = element_in(s_bytes, GEMMEPI_E8M0, j * groups + k / group);
            wanted[j] += (float)(adds ? b + scale : b * scale) * a_numbers[k];
        }
    snprintf(what, sizeof what, "stored in U4, groups of %d, %s", group, adds ? "+" : "*");
    s.name = "s", s.kind = GEMMEPI_BLOCKED, s.dtype = GEMMEPI_E8M0, s.block_rows = group, s.block_columns = 1;
    desc.m = 1, desc.n = WIDE_AS, desc.k = DEPTH;
    desc.b.dtype = GEMMEPI_U4, desc.b.transposed = 1, desc.b.formula = adds ? "b - 8 + s" : "(b - 8) * s";
    desc.operands = &s, desc.operand_count = 1;
    args.a = sent(a_numbers, sizeof a_numbers), args.b = sent(w_bytes, sizeof w_bytes);
    args.d = sent(d_numbers, sizeof d_numbers);
    pointers[0] = sent(s_bytes, sizeof s_bytes), args.operands = pointers;
    check_result(what, gemmepi_matmul(here->context, &desc, &args, here->stream), args.d);
    free_blocks();
    memset(d_numbers, POISON, sizeof d_numbers);
}

/* Calls whose operands' formulas differ alone have plans of their own. */
static void groups_of_any_size_are_those_of_the_call(void) {
    int group, adds;
    fill_all(GEMMEPI_U4);
    for (adds = 0; adds < 2; adds++)
        for (group = 1; group <= DEPTH; group++)
            run_stored(group, adds);
}

/* >>layers: of an operand in 4 bits and of its numbers in F32 they give the same bytes; without d backward goes by blocks of 128 rows */

enum { TOKENS = 300, WIDTH = 6, INPUTS = 4 };

static float dense[TOKENS * WIDTH], found[2][8][TOKENS * WIDTH];

static gemmepi_matrix plain_matrix(int64_t ld) {
    gemmepi_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    matrix.ld = ld;
    return matrix;
}

/* Forward and backward into `found`, w in the dtype. */
static gemmepi_status run_layer(int is_loss, gemmepi_dtype dtype, float results[8][TOKENS * WIDTH]) {
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    gemmepi_operand operands[4];
    void *pointers[4], *outputs[8];
    size_t bytes = sizeof dense;
    gemmepi_status status;
    int i;
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args), memset(operands, 0, sizeof operands);
    for (i = 0; i < 5; i++)
        CHECK(gemmepi_alloc(here->context, bytes, &outputs[i]) == GEMMEPI_OK &&
                  gemmepi_upload(here->context, outputs[i], d_numbers, bytes, here->stream) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
    desc.m = TOKENS, desc.n = WIDTH, desc.k = INPUTS, desc.workspace_limit = is_loss ? 20000 : 0;
    desc.b = desc.db = plain_matrix(0);
    desc.flags = GEMMEPI_LINEAR_RECOMPUTE | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB;
    desc.formula = is_loss ? "l = row_sum(v * v * w)" : "d = v * v * w";
    operands[0].name = "w", operands[0].kind = GEMMEPI_FULL, operands[0].dtype = dtype;
    operands[1].name = "l", operands[1].kind = GEMMEPI_PER_ROW, operands[1].output = 1;
    operands[2].name = "dy_l", operands[2].kind = GEMMEPI_PER_ROW, operands[2].dtype = GEMMEPI_F32;
    desc.operands = operands, desc.operand_count = is_loss ? 3 : 1;
    args.a = sent(a_numbers, sizeof a_numbers), args.b = sent(b_numbers, sizeof b_numbers);
    pointers[0] = dtype == GEMMEPI_F32 ? sent(dense, bytes) : sent(w_bytes, sizeof w_bytes);
    pointers[1] = outputs[0], pointers[2] = sent(b_numbers, sizeof b_numbers);
    args.operands = pointers;
    args.y = is_loss ? NULL : outputs[1], args.dy = is_loss ? NULL : pointers[2];
    args.da = outputs[2], args.db = outputs[3];
    status = gemmepi_linear(here->context, &desc, &args, here->stream);
    if (!status)
        status = gemmepi_linear_backward(here->context, &desc, &args, here->stream);
    for (i = 0; i < 5; i++) {
        if (!status)
            status = gemmepi_download(here->context, results[i], outputs[i], bytes, here->stream);
        gemmepi_free(here->context, outputs[i]);
    }
    free_blocks();
    return status;
}

static void layers_read_operands_of_4_bits(void) {
    static const gemmepi_dtype types[] = {GEMMEPI_I4, GEMMEPI_U4, GEMMEPI_E2M1, GEMMEPI_E8M0};
    int type, is_loss, i;
    for (type = 0; type < 4; type++)
        for (is_loss = 0; is_loss < 2; is_loss++) {
            fill_all(types[type]);
            for (i = 0; i < TOKENS * WIDTH; i++)
                dense[i] = (float)element_in(w_bytes, types[type], i);
            CHECK(run_layer(is_loss, GEMMEPI_F32, found[0]) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(run_layer(is_loss, types[type], found[1]) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(memcmp(found[0], found[1], sizeof found[0]) == 0, "on %s: type %d, %s", here->name,
                  (int)types[type], is_loss ? "a loss" : "d");
            CHECK(memcmp(found[0][2], found[0][4], sizeof found[0][2]) != 0, "nothing is written");
        }
}

int main(int argc, char **argv) {
    test_device devices[TEST_MOST_DEVICES];
    int count = test_devices_open(devices), i;
    if (count == 0)
        return 1;
    if (argc > 1)
        only = atoi(argv[1]);
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        randoms = rng_seeded(4);
        RUN(products_read_operands_of_4_bits);
        RUN(tensors_of_4_bits_are_read);
        RUN(groups_of_any_size_are_those_of_the_call);
        RUN(layers_read_operands_of_4_bits);
        test_device_close(here);
    }
    return test_finish();
}
