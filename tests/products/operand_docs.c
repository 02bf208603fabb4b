/* Every formula of docs/operands.md is run, on the host and, if there is one, on the GPU that GEMMEPI_TEST_DEVICE numbers, in both orders,
   transposed and not, and its product is that of plain loops in double. */
#include <ctype.h>
#include <math.h>

#include "problem.h"

enum { M = 6, N = 10, K = 400, MOST = 6, SPACE = 2 * K * N };

static test_device *here;
static rng randoms;
static int lines_are_rows; /* of what is stored, as it is run now */

/* >>tensors: numbers by row and column, and their bytes as they are stored */

typedef struct listed {
    char name[16];
    gemmepi_operand_kind kind; /* FULL: a or b */
    gemmepi_dtype dtype;
    int rows, columns, block_rows;
    double values[SPACE];
    void *device;
} listed;

static int bits_of(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_I4 || dtype == GEMMEPI_U4 || dtype == GEMMEPI_E2M1
               ? 4
               : 8 * (int)gemmepi_dtype_size(dtype);
}

/* Writes element `at` with a random number, and returns that. */
static double draw(gemmepi_dtype dtype, unsigned char *bytes, int at) {
    static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    int code = rng_below(&randoms, 16), size = bits_of(dtype) / 8;
    int64_t seed = 0x123456789abcdef;
    double x = (rng_below(&randoms, 1025) - 512) / 256.0;
    if (size == 0) {
        bytes[at / 2] = (unsigned char)(bytes[at / 2] | code << 4 * (at % 2));
        return dtype == GEMMEPI_U4   ? code
               : dtype == GEMMEPI_I4 ? (code < 8 ? code : code - 16)
                                     : (code < 8 ? e2m1[code] : -e2m1[code - 8]);
    }
    if (dtype == GEMMEPI_E8M0) {
        bytes[at] = (unsigned char)(124 + code % 6);
        return ldexp(1, code % 6 - 3);
    }
    if (dtype == GEMMEPI_I64) {
        memcpy(bytes, &seed, sizeof seed);
        return 0; /* the loops have it from elsewhere */
    }
    oracle_encode(dtype, bytes + at * size, dtype == GEMMEPI_I8 ? code : x);
    return oracle_decode(dtype, bytes + at * size);
}

static void fill_listed(listed *t, int by_rows) {
    static unsigned char bytes[SPACE * 8];
    int row, column, count = t->rows * t->columns, size = (count * bits_of(t->dtype) + 7) / 8;
    memset(bytes, 0, sizeof bytes);
    for (row = 0; row < t->rows; row++)
        for (column = 0; column < t->columns; column++)
            t->values[row * t->columns + column] =
                draw(t->dtype, bytes, by_rows ? row * t->columns + column : column * t->rows + row);
    CHECK(gemmepi_alloc(here->context, (size_t)size, &t->device) == GEMMEPI_OK &&
              gemmepi_upload(here->context, t->device, bytes, (size_t)size, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

/* >>rows of the page */

typedef struct page_row {
    char formula[128];
    char letter;             /* of the matrix that it makes */
    int rows, columns;       /* of what it makes */
    int by_rows, by_columns; /* how much wider the stored one is */
    listed stored, operands[MOST], other;
    int count;
    double number; /* of NUMBERs */
} page_row;

/* "m", "2k" or "k/128": how many, and of how many each. */
static int read_extent(const char *text, int *times, int *block) {
    const char *letter = text + strspn(text, "0123456789 ");
    int extent = *letter == 'm' ? M : *letter == 'n' ? N : *letter == 'k' ? K : !*letter;
    *times = isdigit((unsigned char)*text) ? atoi(text) : 1;
    *block = letter[0] && letter[1] == '/' ? atoi(letter + 2) : 1;
    return (extent * *times + *block - 1) / *block;
}

static gemmepi_dtype read_dtype(const char *text) {
    static const struct {
        const char *name;
        gemmepi_dtype dtype;
    } names[] = {{"F32", GEMMEPI_F32},   {"F16", GEMMEPI_F16},  {"BF16", GEMMEPI_BF16}, {"I8", GEMMEPI_I8},
                 {"E4M3", GEMMEPI_E4M3}, {"I64", GEMMEPI_I64},  {"I4", GEMMEPI_I4},     {"U4", GEMMEPI_U4},
                 {"E2M1", GEMMEPI_E2M1}, {"E8M0", GEMMEPI_E8M0}};
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i].name) == 0)
            return names[i].dtype;
    return GEMMEPI_DTYPE_DEFAULT;
}

/* "b [k, n] U4" */
static int read_stored(const char *text, int is_transposed, page_row *r) {
    char first[8], second[8], dtype[8] = "F32";
    int block;
    if (sscanf(text, "%c [%7[^,], %7[^]]] %7s", &r->letter, is_transposed ? second : first,
               is_transposed ? first : second, dtype) < 3)
        return 0;
    r->stored.kind = GEMMEPI_FULL, r->stored.dtype = read_dtype(dtype);
    r->stored.rows = read_extent(first, &r->by_rows, &block);
    r->stored.columns = read_extent(second, &r->by_columns, &block);
    r->rows = r->stored.rows / r->by_rows, r->columns = r->stored.columns / r->by_columns;
    return r->stored.dtype && r->rows == (r->letter == 'a' ? M : K) &&
           r->columns == (r->letter == 'a' ? K : N);
}

/* "rstd [m]", "zero [k/128, n] I8", "s [] F32", "p" */
static int read_operand(const char *text, const page_row *r, listed *t) {
    char shape[16] = "", dtype[8] = "F32", *comma;
    const char *open = strchr(text, '['), *close = strchr(text, ']');
    int times, block = 1;
    sscanf(text, "%15[a-z0-9_]", t->name);
    if (open && close && close > open)
        snprintf(shape, sizeof shape, "%.*s", (int)(close - open - 1), open + 1),
            sscanf(close + 1, " %7s", dtype);
    t->dtype = read_dtype(dtype), t->rows = t->columns = t->block_rows = 1;
    comma = strchr(shape, ',');
    if (!open)
        t->kind = GEMMEPI_NUMBER;
    else if (!shape[0])
        t->kind = GEMMEPI_SCALAR;
    else if (comma) {
        t->kind = GEMMEPI_BLOCKED;
        t->rows = read_extent(shape, &times, &t->block_rows);
        t->columns = read_extent(comma + 2, &times, &block);
        if (t->rows != (r->rows - 1) / t->block_rows + 1 || t->columns != r->columns)
            return 0;
    } else if (shape[0] == (r->letter == 'a' ? 'm' : 'k'))
        t->kind = GEMMEPI_PER_ROW, t->rows = read_extent(shape, &times, &block);
    else
        t->kind = GEMMEPI_PER_COLUMN, t->columns = read_extent(shape, &times, &block);
    return t->dtype != GEMMEPI_DTYPE_DEFAULT && t->rows > 0 && t->columns > 0 && block == 1;
}

/* >>plain loops */

/* Of the stored matrix, `part` rows or columns of what is made further on. */
static double stored(const page_row *r, int part, int row, int column) {
    row += part * (r->by_rows > 1 ? r->rows : 0), column += part * (r->by_columns > 1 ? r->columns : 0);
    return r->stored.values[row * r->stored.columns + column];
}

static double of(const page_row *r, const char *name, int row, int column) {
    int i;
    for (i = 0; i < r->count; i++) {
        const listed *t = &r->operands[i];
        if (strcmp(t->name, name) != 0)
            continue;
        if (t->kind == GEMMEPI_NUMBER)
            return r->number;
        row /= t->block_rows;
        return t->values[(t->rows > 1 ? row : 0) * t->columns + (t->columns > 1 ? column : 0)];
    }
    CHECK(0, "%s reads %s, which the page does not list", r->formula, name);
    return 0;
}

#define LOOP(name) static double name(const page_row *r, int i, int j)
#define S          stored(r, 0, i, j)
#define OF(name)   of(r, name, i, j)

LOOP(rms_norm) {
    return S * OF("rstd") * OF("gain");
}
LOOP(rms_norm_by_sums) {
    return S / sqrt(OF("ss") / K + OF("eps")) * OF("gain");
}
LOOP(layer_norm) {
    return (S - OF("mean")) * OF("rstd") * OF("gain") + OF("shift");
}
LOOP(swiglu) {
    return S / (1 + exp(-S)) * stored(r, 1, i, j);
}
LOOP(gelu) {
    double x = S + OF("bias");
    return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
LOOP(dropout) {
    double u = philox_uniform(0x123456789abcdef, (uint32_t)j / 4, (uint32_t)i, 0, 0, j % 4);
    return u < OF("p") ? 0 : S / (1 - OF("p"));
}
LOOP(with_zeros) {
    return (S - OF("zero")) * OF("scale");
}
LOOP(with_zero_8) {
    return (S - 8) * OF("scale");
}
LOOP(scaled) {
    return S * OF("scale");
}
LOOP(scaled_twice) {
    return S * OF("scale") * OF("s");
}
LOOP(by_book) {
    return of(r, "book", 0, (int)S) * OF("scale");
}
LOOP(by_book_of_pairs) { /* each element is where its neighbour would be */
    int code = (int)(lines_are_rows ? stored(r, 0, i, j ^ 1) : stored(r, 0, i ^ 1, j));
    return of(r, "book", 0, code) * OF("scale");
}

typedef double (*loop)(const page_row *, int, int);

static struct {
    const char *formula;
    loop makes;
    int is_seen;
} loops[] = {
    {"a * rstd * gain", rms_norm, 0},
    {"a * rsqrt(ss / columns + eps) * gain", rms_norm_by_sums, 0},
    {"(a - mean) * rstd * gain + shift", layer_norm, 0},
    {"silu(left(a)) * right(a)", swiglu, 0},
    {"gelu_tanh(a + bias)", gelu, 0},
    {"uniform(seed, 0) < p ? 0 : a / (1 - p)", dropout, 0},
    {"(b - zero) * scale", with_zeros, 0},
    {"(b - 8) * scale", with_zero_8, 0},
    {"b * scale", scaled, 0},
    {"book[b] * scale", by_book, 0},
    {"interleave(book[odd(b)], book[even(b)]) * scale", by_book_of_pairs, 0},
    {"b * scale * s", scaled_twice, 0},
};
enum { LOOPS = sizeof loops / sizeof *loops };

static loop loop_of(const char *formula) {
    int i;
    for (i = 0; i < LOOPS; i++)
        if (strcmp(loops[i].formula, formula) == 0) {
            loops[i].is_seen = 1;
            return loops[i].makes;
        }
    return NULL;
}

/* >>runs */

/* narrow: the other operand is in BF16, and so is what is multiplied, as the page has it by default; else all is in F32. */
typedef struct layout {
    int is_narrow, transposed;
    gemmepi_order order;
} layout;

static void check_product(const page_row *r, loop makes, const float *d, layout way) {
    double unit = way.is_narrow ? ldexp(1, -7) : ldexp(1, -18);
    int i, j, l, wrong = 0;
    for (i = 0; i < M; i++)
        for (j = 0; j < N; j++) {
            double sum = 0, magnitude = 1, got = d[way.order == GEMMEPI_ROW_MAJOR ? i * N + j : j * M + i];
            for (l = 0; l < K; l++) {
                double made = r->letter == 'a' ? makes(r, i, l) : makes(r, l, j);
                double x =
                    made * (r->letter == 'a' ? r->other.values[l * N + j] : r->other.values[i * K + l]);
                sum += x, magnitude += fabs(x);
            }
            wrong += !(fabs(got - sum) <= unit * magnitude);
            CHECK(fabs(got - sum) <= unit * magnitude,
                  "%s: %s, order %d, transposed %d, narrow %d: [%d, %d] is %g, and by plain loops %g",
                  here->name, r->formula, (int)way.order, way.transposed, way.is_narrow, i, j, got, sum);
        }
}

static void list_operands(page_row *r, gemmepi_operand list[MOST], void *pointers[MOST]) {
    int i;
    memset(list, 0, MOST * sizeof *list);
    for (i = 0; i < r->count; i++) {
        listed *t = &r->operands[i];
        list[i].name = t->name, list[i].kind = t->kind, pointers[i] = gemmepi_number(&r->number);
        if (t->kind == GEMMEPI_NUMBER)
            continue;
        fill_listed(t, lines_are_rows);
        list[i].dtype = t->dtype, pointers[i] = t->device;
        if (t->kind == GEMMEPI_BLOCKED)
            list[i].block_rows = t->block_rows, list[i].block_columns = 1;
        if (t->kind == GEMMEPI_PER_COLUMN && t->columns != r->columns) /* a table */
            list[i].column_period = t->columns;
    }
}

static void run_row(page_row *r, loop makes, layout way) {
    int i;
    float d[M * N];
    void *device_d;
    gemmepi_operand list[MOST];
    void *pointers[MOST];
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_matrix *made, *other;
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args), memset(d, 0xff, sizeof d);
    lines_are_rows = (way.order == GEMMEPI_ROW_MAJOR) != way.transposed;
    if (lines_are_rows ? r->by_rows > 1 : r->by_columns > 1)
        return; /* what is stored is wider along the contiguous axis */
    made = r->letter == 'a' ? &desc.a : &desc.b, other = r->letter == 'a' ? &desc.b : &desc.a;
    r->other.kind = GEMMEPI_FULL, r->other.dtype = way.is_narrow ? GEMMEPI_BF16 : GEMMEPI_F32;
    r->other.rows = r->letter == 'a' ? K : M, r->other.columns = r->letter == 'a' ? N : K;
    r->number = 0.25;
    list_operands(r, list, pointers);
    fill_listed(&r->stored, lines_are_rows), fill_listed(&r->other, way.order == GEMMEPI_ROW_MAJOR);
    desc.m = M, desc.n = N, desc.k = K, desc.order = way.order;
    desc.operands = list, desc.operand_count = r->count;
    made->dtype = r->stored.dtype, made->formula = r->formula, made->transposed = way.transposed;
    made->compute_dtype = way.is_narrow ? GEMMEPI_DTYPE_DEFAULT : GEMMEPI_F32;
    other->dtype = r->other.dtype, desc.d.dtype = GEMMEPI_F32;
    desc.compute = way.is_narrow ? GEMMEPI_COMPUTE_DEFAULT : GEMMEPI_COMPUTE_F32;
    args.a = r->letter == 'a' ? r->stored.device : r->other.device;
    args.b = r->letter == 'a' ? r->other.device : r->stored.device;
    args.operands = pointers;
    CHECK(gemmepi_alloc_from(here->context, d, sizeof d, &device_d) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    args.d = device_d;
    CHECK(gemmepi_matmul(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, d, device_d, sizeof d, NULL) == GEMMEPI_OK,
          "%s: %s", r->formula, gemmepi_last_error());
    check_product(r, makes, d, way);
    gemmepi_free(here->context, device_d);
    gemmepi_free(here->context, r->stored.device), gemmepi_free(here->context, r->other.device);
    for (i = 0; i < r->count; i++)
        gemmepi_free(here->context, r->operands[i].device);
}

/* Copies the text in the next ` ` of the cell, and returns what follows; NULL: there is none. */
static const char *next_code(const char *at, char *to, size_t size) {
    const char *open = strchr(at, '`'), *close = open ? strchr(open + 1, '`') : NULL;
    if (!close)
        return NULL;
    snprintf(to, size, "%.*s", (int)(close - open - 1), open + 1);
    return close + 1;
}

/* Whether a GPU, where each is compiled, runs it too: two of the eight for a row, all of them among four rows. */
static int is_for_gpu(layout way, int row) {
    return way.transposed == row % 2 && way.is_narrow == ((way.order == GEMMEPI_ROW_MAJOR) != row / 2 % 2);
}

static void run_line(const char *line, int is_transposed, int number) {
    static page_row row;
    char text[128];
    const char *at = next_code(line, text, sizeof text);
    loop makes;
    int ways;
    memset(&row, 0, sizeof row);
    CHECK(read_stored(text, is_transposed, &row), "\"%s\" is no matrix", text);
    at = next_code(at, row.formula, sizeof row.formula);
    while (at && row.count < MOST && (at = next_code(at, text, sizeof text)) != NULL)
        CHECK(read_operand(text, &row, &row.operands[row.count++]), "%s: \"%s\" is no operand", row.formula,
              text);
    makes = loop_of(row.formula);
    CHECK(makes != NULL, "%s has no plain loops in this test", row.formula);
    for (ways = 0; makes && ways < 8; ways++) {
        layout way;
        way.is_narrow = ways & 1, way.transposed = ways >> 1 & 1;
        way.order = ways >> 2 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
        if (here->is_host || is_for_gpu(way, number))
            run_row(&row, makes, way);
    }
}

static void every_text_of_the_page_makes_what_plain_loops_make(void) {
    FILE *file = fopen("docs/operands.md", "r");
    char line[1024];
    int rows = 0, i;
    if (!file)
        SKIP("there is no docs/operands.md here");
    while (fgets(line, sizeof line, file))
        if (line[0] == '|' && strstr(line, "| `"))
            run_line(strstr(line, "| `"), strstr(line, ".transposed`") != NULL, rows++);
    fclose(file);
    CHECK(rows >= 17, "%d texts", rows);
    for (i = 0; i < LOOPS; i++)
        CHECK(loops[i].is_seen, "%s is not in docs/operands.md", loops[i].formula);
}

int main(void) {
    test_device devices[TEST_MOST_DEVICES];
    int count = test_devices_open(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        randoms = rng_seeded(7);
        RUN(every_text_of_the_page_makes_what_plain_loops_make);
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
