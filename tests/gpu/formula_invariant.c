/* formula_invariant [small]: BATCH_INVARIANT with formulas, inside kernels, as epilogues and behind their v: rows of D have the bits that they
   have among all rows, however few are multiplied and wherever they stand, and wherever tensors lie. small: for the emulator and the host.
   On the host and, if there is one, on the GPU that GEMMEPI_TEST_DEVICE numbers. */
#include "../products/problem.h"

static test_device *here;

static const char *const formulas[] = {
    "d = silu(v + bias) * r + q",    "d = silu(v + bias) + r",
    "d = v * q; s = row_sum(d * d)", "d = left(v, 64) * silu(right(v, 64))",
    "d = even(v) + odd(v) * q",      "d = gelu_erf(v)",
    "d = exp(v / 16) + r",           "d = sin(16384 * v) * cos(v) + r", /* of which some are far in a run */
    "d = v * d_silu(q) + silu(q)"};
enum { OPERANDS = 4, MOST_ROWS = 2048 };

static int all_rows = MOST_ROWS;
static int64_t n = 1024, k = 512;

/* Tensors of all rows on the device, one behind the other, of which a run has a window. */
typedef struct tensors {
    char *block, *a, *b, *bias, *r, *q, *s, *d;
} tensors;

/* Columns of D. */
static int64_t width_of(const char *formula) {
    return strncmp(formula, "d = left", 8) == 0 || strncmp(formula, "d = even", 8) == 0 ? n / 2 : n;
}

static void fill_with(char *to, gemmepi_dtype dtype, int64_t count, uint64_t seed) {
    char *host = (char *)malloc((size_t)count * 4);
    rng random = rng_seeded(seed);
    int64_t i;
    for (i = 0; i < count; i++)
        oracle_encode(dtype, host + (size_t)i * gemmepi_dtype_size(dtype),
                      (rng_below(&random, 2001) - 1000) / 777.0);
    CHECK(gemmepi_upload(here->context, to, host, (size_t)count * gemmepi_dtype_size(dtype), NULL) ==
              GEMMEPI_OK,
          "%s", gemmepi_last_error());
    free(host);
}

/* The next of them: so many elements behind a multiple of 256 bytes. */
static char *place(char **block, size_t bytes, int offset, size_t element) {
    char *begin = *block + (size_t)offset * element;
    *block += (bytes + (size_t)offset * element + 255) / 256 * 256;
    return begin;
}

static tensors make_tensors(int offset) {
    size_t rows = (size_t)all_rows, of_a = rows * (size_t)k * 2, of_b = (size_t)(n * k) * 2,
           of_d = rows * (size_t)n * 2;
    tensors t;
    char *block;
    CHECK(gemmepi_alloc(here->context, of_a + of_b + 2 * of_d + 8 * rows + 2 * (size_t)n + 8192,
                        (void **)&t.block) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    block = t.block;
    t.a = place(&block, of_a, offset, 2), t.b = place(&block, of_b, offset, 2);
    t.r = place(&block, of_d, offset, 2), t.d = place(&block, of_d, offset, 2);
    t.q = place(&block, 4 * rows, offset, 4), t.s = place(&block, 4 * rows, offset, 4);
    t.bias = place(&block, 2 * (size_t)n, offset, 2);
    fill_with(t.a, GEMMEPI_BF16, all_rows * k, 1), fill_with(t.b, GEMMEPI_BF16, n * k, 2),
        fill_with(t.r, GEMMEPI_BF16, all_rows * n, 3);
    fill_with(t.q, GEMMEPI_F32, all_rows, 4), fill_with(t.bias, GEMMEPI_BF16, n, 5);
    return t;
}

static void fill_operands(const char *formula, const tensors *t, int64_t first,
                          gemmepi_operand operands[OPERANDS], void *pointers[OPERANDS]) {
    memset(operands, 0, OPERANDS * sizeof *operands);
    operands[0].name = "bias", operands[0].kind = GEMMEPI_PER_COLUMN;
    operands[1].name = "r", operands[1].kind = GEMMEPI_FULL;
    operands[2].name = "q", operands[2].kind = GEMMEPI_PER_ROW, operands[2].dtype = GEMMEPI_F32;
    operands[3].name = "s", operands[3].kind = GEMMEPI_PER_ROW, operands[3].output = 1;
    pointers[0] = strstr(formula, "bias") ? t->bias : NULL;
    pointers[1] = strstr(formula, "r)") || strstr(formula, "* r") || strstr(formula, "+ r")
                      ? t->r + first * n * 2
                      : NULL;
    pointers[2] = strchr(formula, 'q') ? t->q + first * 4 : NULL;
    pointers[3] = t->s;
}

/* By a plan for pointers of such alignment or, where that is 0, a call. */
static void run_formula(const gemmepi_matmul_desc *given, const gemmepi_matmul_args *args, size_t alignment,
                        char kernel[96]) {
    gemmepi_matmul_desc desc = *given;
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    desc.alignment = alignment;
    snprintf(kernel, 96, "a call");
    if (!alignment) {
        CHECK(gemmepi_matmul(here->context, &desc, args, NULL) == GEMMEPI_OK, "%s: %s", desc.formula,
              gemmepi_last_error());
        return;
    }
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK &&
              gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK &&
              gemmepi_run_matmul(plan, args, NULL) == GEMMEPI_OK &&
              gemmepi_plan_info(plan, &details) == GEMMEPI_OK,
          "%s: %s", desc.formula, gemmepi_last_error());
    if (plan)
        snprintf(kernel, 96, "%s", details.kernel);
    gemmepi_plan_destroy(plan);
}

/* Rows of D's memory, and the kernel, of m rows from `first` on; to be freed. */
static char *run_rows(const char *formula, const tensors *t, int64_t first, int64_t m, size_t alignment,
                      char kernel[96]) {
    gemmepi_operand operands[OPERANDS];
    void *pointers[OPERANDS];
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    size_t bytes = (size_t)(m * width_of(formula)) * 2;
    char *rows = (char *)calloc(1, bytes);
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
    fill_operands(formula, t, first, operands, pointers);
    desc.m = m, desc.n = n, desc.k = k, desc.a.dtype = GEMMEPI_BF16, desc.flags = GEMMEPI_BATCH_INVARIANT;
    desc.formula = formula, desc.operands = operands, desc.operand_count = strstr(formula, "s = ") ? 4 : 3;
    args.a = t->a + first * k * 2, args.b = t->b, args.d = t->d, args.operands = pointers;
    run_formula(&desc, &args, alignment, kernel);
    CHECK(gemmepi_download(here->context, rows, t->d, bytes, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return rows;
}

/* Of m rows, against those of all. */
static void rows_are_as_among_all(const char *formula, const tensors *t, int64_t m, size_t alignment,
                                  const char *all, const char *of_all) {
    int64_t first = m * 37 % (all_rows - m + 1) / 8 * 8, width = width_of(formula);
    char name[96], *some = run_rows(formula, t, first, m, alignment, name);
    CHECK(memcmp(all + first * width * 2, some, (size_t)(m * width) * 2) == 0,
          "%s: %d rows from %d by %s, alignment %d, are not those of all by %s", formula, (int)m, (int)first,
          name, (int)alignment, of_all);
    free(some);
}

static void rows_have_the_same_bits_at_every_m_and_wherever_tensors_lie(void) {
    static const int some_rows[] = {1, 2, 7, 64, 65, 300}, offsets[] = {1, 2, 3, 4, 7, 8, 13, 16};
    tensors t = make_tensors(0);
    char of_all[96];
    size_t f, i, o;
    for (f = 0; f < sizeof formulas / sizeof *formulas; f++) {
        char *all = run_rows(formulas[f], &t, 0, all_rows, 16, of_all);
        for (i = 0; i < sizeof some_rows / sizeof *some_rows && some_rows[i] < all_rows; i++)
            rows_are_as_among_all(formulas[f], &t, some_rows[i], 16, all, of_all);
        for (o = 0; o < sizeof offsets / sizeof *offsets; o++) {
            tensors elsewhere = make_tensors(offsets[o]);
            rows_are_as_among_all(formulas[f], &elsewhere, 7, 2, all, of_all);
            rows_are_as_among_all(formulas[f], &elsewhere, 65, 0, all, of_all);
            gemmepi_free(here->context, elsewhere.block);
        }
        free(all);
    }
    gemmepi_free(here->context, t.block);
}

int main(int argc, char **argv) {
    test_device devices[2];
    int opened = test_devices_open(devices), i;
    for (i = 0; i < opened; i++) {
        here = devices + i;
        all_rows = MOST_ROWS, n = 1024, k = 512;
        if (here->is_host || (argc > 1 && strcmp(argv[1], "small") == 0))
            all_rows = 160, n = 128, k = 64;
        printf("on %s:\n", here->name);
        RUN(rows_have_the_same_bits_at_every_m_and_wherever_tensors_lie);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
