/* formula_invariant [small]: BATCH_INVARIANT with formulas, inside kernels, as epilogues and behind their v: rows of D have the bits that they
   have among all rows, however few are multiplied and wherever they stand. small: for the emulator and the host. On the host and, if there
   is one, on the GPU that GEMMEPI_TEST_DEVICE numbers. */
#include "../products/problem.h"

static test_device *here;

static const char *const formulas[] = {"d = silu(v + bias) * r + q",
                                       "d = silu(v + bias) + r",
                                       "d = v * q; s = row_sum(d * d)",
                                       "d = left(v, 64) * silu(right(v, 64))",
                                       "d = even(v) + odd(v) * q",
                                       "d = gelu_erf(v)",
                                       "d = exp(v / 16) + r"};
enum { OPERANDS = 4, MOST_ROWS = 2048 };

static int all_rows = MOST_ROWS;
static int64_t n = 1024, k = 512;

/* Tensors of all rows on the device, one behind the other, of which a run has a window. */
typedef struct tensors {
    char *block, *a, *b, *bias, *r, *q, *s, *d;
} tensors;

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

static tensors make_tensors(void) {
    size_t rows = (size_t)all_rows, of_a = rows * (size_t)k * 2, of_b = (size_t)(n * k) * 2,
           of_d = rows * (size_t)n * 2;
    tensors t;
    CHECK(gemmepi_alloc(here->context, of_a + of_b + 2 * of_d + 8 * rows + 2 * (size_t)n + 4096,
                        (void **)&t.block) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    t.a = t.block, t.b = t.a + of_a, t.r = t.b + of_b, t.d = t.r + of_d;
    t.q = t.d + of_d, t.s = t.q + 4 * rows, t.bias = t.s + 4 * rows;
    fill_with(t.a, GEMMEPI_BF16, all_rows * k, 1), fill_with(t.b, GEMMEPI_BF16, n * k, 2),
        fill_with(t.r, GEMMEPI_BF16, all_rows * n, 3);
    fill_with(t.q, GEMMEPI_F32, all_rows, 4), fill_with(t.bias, GEMMEPI_BF16, n, 5);
    return t;
}

/* Rows of D's memory, and the kernel, of m rows from `first` on; to be freed. */
static char *run_rows(const char *formula, const tensors *t, int64_t first, int64_t m, int64_t width,
                      char kernel[96]) {
    gemmepi_operand operands[OPERANDS];
    void *pointers[OPERANDS];
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    size_t bytes = (size_t)(m * width) * 2;
    char *rows = (char *)calloc(1, bytes);
    memset(operands, 0, sizeof operands), memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
    operands[0].name = "bias", operands[0].kind = GEMMEPI_PER_COLUMN;
    operands[1].name = "r", operands[1].kind = GEMMEPI_FULL;
    operands[2].name = "q", operands[2].kind = GEMMEPI_PER_ROW, operands[2].dtype = GEMMEPI_F32;
    operands[3].name = "s", operands[3].kind = GEMMEPI_PER_ROW, operands[3].output = 1;
    desc.m = m, desc.n = n, desc.k = k, desc.a.dtype = GEMMEPI_BF16, desc.flags = GEMMEPI_BATCH_INVARIANT;
    desc.formula = formula, desc.operands = operands, desc.operand_count = strstr(formula, "s = ") ? 4 : 3;
    pointers[0] = strstr(formula, "bias") ? t->bias : NULL;
    pointers[1] = strstr(formula, "r)") || strstr(formula, "* r") || strstr(formula, "+ r")
                      ? t->r + first * n * 2
                      : NULL;
    pointers[2] = strchr(formula, 'q') ? t->q + first * 4 : NULL;
    pointers[3] = t->s;
    args.a = t->a + first * k * 2, args.b = t->b, args.d = t->d, args.operands = pointers;
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK &&
              gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK &&
              gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK &&
              gemmepi_plan_info(plan, &details) == GEMMEPI_OK &&
              gemmepi_download(here->context, rows, t->d, bytes, NULL) == GEMMEPI_OK,
          "%s: %s", formula, gemmepi_last_error());
    snprintf(kernel, 96, "%s", plan ? details.kernel : "none");
    gemmepi_plan_destroy(plan);
    return rows;
}

static void rows_have_the_same_bits_at_every_m(void) {
    static const int some_rows[] = {1, 2, 7, 64, 65, 300};
    tensors t = make_tensors();
    char name[96], of_all[96];
    size_t f, i;
    for (f = 0; f < sizeof formulas / sizeof *formulas; f++) {
        int64_t width =
            strncmp(formulas[f], "d = left", 8) == 0 || strncmp(formulas[f], "d = even", 8) == 0 ? n / 2 : n;
        char *all = run_rows(formulas[f], &t, 0, all_rows, width, of_all), *some;
        for (i = 0; i < sizeof some_rows / sizeof *some_rows && some_rows[i] < all_rows; i++) {
            int64_t m = some_rows[i], first = m * 37 % (all_rows - m + 1) / 8 * 8;
            some = run_rows(formulas[f], &t, first, m, width, name);
            CHECK(memcmp(all + first * width * 2, some, (size_t)(m * width) * 2) == 0,
                  "%s: %d rows from %d by %s are not those of all by %s", formulas[f], (int)m, (int)first,
                  name, of_all);
            free(some);
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
        RUN(rows_have_the_same_bits_at_every_m);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
