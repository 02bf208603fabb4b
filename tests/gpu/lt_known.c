/* Sums by every division of k that cuBLASLt has, of ones and zeros, which every type holds and adds up exactly: each product is exact,
   or its algorithm is refused as known to be wrong. config.resolve_symbol puts a function behind the heuristic that divides k as a test
   says, and one before the library's version that hides it, so that the table is empty: then what is refused is run all the same, and
   counted where it is wrong. */
#if !defined(_WIN32)
#define _GNU_SOURCE /* dladdr */
#endif
#include "gemmepi.h"
#include "test.h"

#include <stdlib.h>

#if defined(_WIN32)
int main(void) {
    printf("skip lt_known: not tested on Windows\n0 passed, 0 failed, 1 skipped\n");
    return 0;
}
#else
#include <dlfcn.h>

/* >>a heuristic that divides k */

typedef int (*heuristic_function)(gpi__lt_handle, gpi__lt_matmul_desc *, gpi__lt_layout *, gpi__lt_layout *,
                                  gpi__lt_layout *, gpi__lt_layout *, gpi__lt_preference *, int,
                                  gpi__lt_heuristic *, int *);
typedef int (*set_function)(gpi__lt_algo *, int, const void *, size_t);
typedef int (*check_function)(gpi__lt_handle, gpi__lt_matmul_desc *, gpi__lt_layout *, gpi__lt_layout *,
                              gpi__lt_layout *, gpi__lt_layout *, const gpi__lt_algo *, gpi__lt_heuristic *);
typedef size_t (*version_function)(void);

static heuristic_function real_heuristic;
static set_function set_attribute;
static check_function check_algorithm;
static version_function real_version;
static int parts, nth; /* how k is to be divided, by which of the answers */
static int hides_version;

static size_t hidden_version(void) {
    return hides_version ? 130899 : real_version();
}

/* The nth answer alone, with k in `parts`, where the library says that it can. */
static int dividing_heuristic(gpi__lt_handle handle, gpi__lt_matmul_desc *desc, gpi__lt_layout *a,
                              gpi__lt_layout *b, gpi__lt_layout *c, gpi__lt_layout *d,
                              gpi__lt_preference *preference, int requested, gpi__lt_heuristic *results,
                              int *returned) {
    int32_t split = parts;
    uint32_t scheme = GPI__CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    gpi__lt_heuristic checked;
    int result = real_heuristic(handle, desc, a, b, c, d, preference, requested, results, returned);
    if (result)
        return result;
    if (nth >= *returned) {
        *returned = 0;
        return GPI__CUBLAS_STATUS_NOT_SUPPORTED;
    }
    results[0] = results[nth];
    *returned = 1;
    memset(&checked, 0, sizeof checked);
    if (set_attribute(&results[0].algo, GPI__CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split, sizeof split) ||
        set_attribute(&results[0].algo, GPI__CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme) ||
        check_algorithm(handle, desc, a, b, c, d, &results[0].algo, &checked)) {
        *returned = 0;
        return GPI__CUBLAS_STATUS_NOT_SUPPORTED;
    }
    results[0].workspace_size = checked.workspace_size;
    return 0;
}

static void *sibling(void *function, const char *name) {
    Dl_info info;
    void *library = dladdr(function, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    return library ? dlsym(library, name) : NULL;
}

static void *resolve(void *user, const char *library, const char *symbol, void *found) {
    heuristic_function heuristic = dividing_heuristic;
    version_function version = hidden_version;
    void *other;
    (void)user;
    if (!found || strcmp(library, "cublasLt") != 0)
        return found;
    if (strcmp(symbol, "cublasLtGetVersion") == 0) {
        memcpy(&real_version, &found, sizeof found);
        memcpy(&found, &version, sizeof found);
    } else if (strcmp(symbol, "cublasLtMatmulAlgoGetHeuristic") == 0) {
        memcpy(&real_heuristic, &found, sizeof found);
        other = sibling(found, "cublasLtMatmulAlgoConfigSetAttribute");
        memcpy(&set_attribute, &other, sizeof other);
        other = sibling(found, "cublasLtMatmulAlgoCheck");
        memcpy(&check_algorithm, &other, sizeof other);
        memcpy(&found, &heuristic, sizeof found);
    }
    return found;
}

/* >>ones and zeros */

enum { M = 64, N = 128, MOST_K = 11536, MOST_SUM = 200 };

/* 1 at some hundred places of k and at its end, by rows of A; whole columns of B are 0. */
static int is_one_in_a(int row, int p, int k) {
    return k - p <= 4 || (p * 7 + row * 13) % (k / 64 + 1) == 0;
}
static int is_one_in_b(int p, int column) {
    return (p + column) % 3 != 0;
}

static void put_one(unsigned char *to, gemmepi_dtype dtype) {
    static const float one = 1;
    static const unsigned short f16 = 0x3c00, bf16 = 0x3f80;
    if (dtype == GEMMEPI_F32)
        memcpy(to, &one, 4);
    else if (dtype == GEMMEPI_E4M3)
        *to = 0x38;
    else
        memcpy(to, dtype == GEMMEPI_F16 ? &f16 : &bf16, 2);
}

typedef struct typed {
    gemmepi_dtype dtype;
    size_t size;
    int a_transposed, b_transposed, step_of_k;
} typed;

/* Any k, but for fp8, which cuBLASLt takes along k and in multiples of 16 alone. */
static const typed types[] = {{GEMMEPI_BF16, 2, 1, 0, 1},
                              {GEMMEPI_F16, 2, 1, 0, 1},
                              {GEMMEPI_F32, 4, 1, 0, 1},
                              {GEMMEPI_E4M3, 1, 0, 1, 16}};

static const int depths[] = {11528, 11521, 8200, 4129, 2192, 1153, 577, 193, 129};

static unsigned char a_bytes[M * MOST_K * 4], b_bytes[MOST_K * N * 4];
static float want[M * N], got[M * N];

static void fill(const typed *type, int k) {
    int i, j, p;
    memset(a_bytes, 0, sizeof a_bytes);
    memset(b_bytes, 0, sizeof b_bytes);
    memset(want, 0, sizeof want);
    for (p = 0; p < k; p++) {
        for (i = 0; i < M; i++)
            if (is_one_in_a(i, p, k))
                put_one(a_bytes + type->size * (size_t)(type->a_transposed ? p * M + i : i * k + p),
                        type->dtype);
        for (j = 0; j < N; j++)
            if (is_one_in_b(p, j))
                put_one(b_bytes + type->size * (size_t)(type->b_transposed ? j * k + p : p * N + j),
                        type->dtype);
        for (i = 0; i < M; i++)
            for (j = 0; j < N && is_one_in_a(i, p, k); j++)
                want[i * N + j] += is_one_in_b(p, j) ? 1.f : 0.f;
    }
}

/* >>a product by a division of k */

typedef struct side {
    gemmepi_context *context;
    void *a, *b, *d;
} side;

static side told, untold; /* with the table, and with a version that it does not know */
static int ran, exact, refused, refused_and_wrong;

static gemmepi_matmul_desc desc_of(const typed *type, int k) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = M, desc.n = N, desc.k = k;
    desc.a.dtype = type->dtype;
    desc.a.transposed = type->a_transposed, desc.b.transposed = type->b_transposed;
    desc.d.dtype = GEMMEPI_F32;
    if (type->dtype == GEMMEPI_F32)
        desc.compute = GEMMEPI_COMPUTE_TF32;
    return desc;
}

/* UNSUPPORTED where this division is not offered, or refused. Else how many elements are wrong. */
static gemmepi_status run(side *on, const gemmepi_matmul_desc *desc, int *wrong) {
    gemmepi_matmul_args args;
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_plan_matmul(on->context, desc, &plan);
    int i;
    if (status)
        return status;
    memset(&args, 0, sizeof args);
    args.a = on->a, args.b = on->b, args.d = on->d;
    memset(got, 0xff, sizeof got);
    status = gemmepi_upload(on->context, on->d, got, sizeof got, NULL);
    if (!status)
        status = gemmepi_plan_prepare(plan, NULL);
    if (!status)
        status = gemmepi_run_matmul(plan, &args, NULL);
    if (!status)
        status = gemmepi_download(on->context, got, on->d, sizeof got, NULL);
    for (i = *wrong = 0; i < M * N && !status; i++)
        *wrong += got[i] != want[i];
    gemmepi_plan_destroy(plan);
    return status;
}

static void divide(const gemmepi_matmul_desc *desc, const char *name) {
    int wrong = 0, is_known;
    gemmepi_status status;
    hides_version = 0;
    status = run(&told, desc, &wrong);
    is_known = status == GEMMEPI_UNSUPPORTED && strstr(gemmepi_last_error(), "known to be wrong") != NULL;
    CHECK(status == GEMMEPI_OK || status == GEMMEPI_UNSUPPORTED, "%s: %s", name, gemmepi_last_error());
    if (status == GEMMEPI_OK) {
        ran++;
        exact += wrong == 0;
        CHECK(wrong == 0, "%s, k %lld, answer %d in %d parts: %d of %d wrong, the first %g for %g", name,
              (long long)desc->k, nth, parts, wrong, M * N, (double)got[0], (double)want[0]);
    }
    if (!is_known)
        return;
    refused++;
    hides_version = 1;
    status = run(&untold, desc, &wrong);
    CHECK(status == GEMMEPI_OK, "%s, k %lld, answer %d in %d parts, without the table: %s", name,
          (long long)desc->k, nth, parts, gemmepi_last_error());
    refused_and_wrong += !status && wrong > 0;
}

/* >>the tests */

static int open_side(side *s, int hides) {
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE(getenv("GEMMEPI_TEST_DEVICE") ? atoi(getenv("GEMMEPI_TEST_DEVICE")) : 0);
    config.routes = 1u << GEMMEPI_ROUTE_LT;
    config.resolve_symbol = resolve;
    hides_version = hides;
    return gemmepi_create(&config, &s->context) == GEMMEPI_OK &&
           gemmepi_alloc(s->context, sizeof a_bytes, &s->a) == GEMMEPI_OK &&
           gemmepi_alloc(s->context, sizeof b_bytes, &s->b) == GEMMEPI_OK &&
           gemmepi_alloc(s->context, sizeof got, &s->d) == GEMMEPI_OK;
}

static void close_side(side *s) {
    CHECK(gemmepi_free(s->context, s->a) == GEMMEPI_OK && gemmepi_free(s->context, s->b) == GEMMEPI_OK &&
              gemmepi_free(s->context, s->d) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    gemmepi_destroy(s->context);
}

static void upload(side *to) {
    CHECK(gemmepi_upload(to->context, to->a, a_bytes, sizeof a_bytes, NULL) == GEMMEPI_OK &&
              gemmepi_upload(to->context, to->b, b_bytes, sizeof b_bytes, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

static void every_division_of_k_is_exact_or_known_to_be_wrong(void) {
    static const char *const names[] = {"BF16", "F16", "TF32", "E4M3"};
    size_t t, d;
    for (t = 0; t < sizeof types / sizeof *types; t++)
        for (d = 0; d < sizeof depths / sizeof *depths; d++) {
            gemmepi_matmul_desc desc =
                desc_of(&types[t], depths[d] / types[t].step_of_k * types[t].step_of_k);
            fill(&types[t], (int)desc.k);
            upload(&told), upload(&untold);
            for (parts = 1; parts <= 24; parts += parts < 12 ? 1 : 4)
                for (nth = 0; nth < 4; nth++)
                    divide(&desc, names[t]);
        }
    CHECK(ran > 0, "nothing ran");
    printf("cuBLASLt %d: %d products by %d divisions were exact; %d were refused, %d of which are wrong\n",
           (int)real_version(), exact, ran, refused, refused_and_wrong);
}

/* Versions that break a capture are not asked in one: whether there is one is asked of the driver, by way of the legacy stream. */
static void a_capture_of_a_blocking_stream_is_seen_and_goes_on(void) {
    const gpi__driver *driver = &told.context->driver;
    gpi__problem problem = {0};
    gpi__lt_question question = gpi__lt_question_of(told.context, &problem, GPI__LT_WHOLE);
    gpi__cu_stream stream;
    gpi__cu_graph graph = NULL;
    gpi__entry entry;
    int flags, mode, is_seen;
    CHECK(gpi__enter(told.context, &entry) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (flags = GPI__CU_STREAM_DEFAULT; flags <= GPI__CU_STREAM_NON_BLOCKING; flags++)
        for (mode = 0; mode <= GPI__CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
            CHECK(driver->stream_create(&stream, (unsigned)flags) == 0, "no stream");
            CHECK(!gpi__lt_is_captured(&question), "a capture is seen before it begins");
            CHECK(driver->stream_begin_capture(stream, mode) == 0, "no capture");
            is_seen = gpi__lt_is_captured(&question);
            CHECK(is_seen == (flags == GPI__CU_STREAM_DEFAULT), "flags %d, mode %d: seen %d", flags, mode,
                  is_seen);
            CHECK(driver->stream_end_capture(stream, &graph) == 0,
                  "flags %d, mode %d: the capture is spoiled", flags, mode);
            if (graph)
                driver->graph_destroy(graph);
            driver->stream_destroy(stream);
        }
    gpi__leave(told.context, &entry);
}

int main(void) {
    const char *device = getenv("GEMMEPI_TEST_DEVICE");
    if ((device && strcmp(device, "host") == 0) || !open_side(&told, 0) || !open_side(&untold, 1)) {
        printf("skip lt_known: there is no GPU\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    RUN(a_capture_of_a_blocking_stream_is_seen_and_goes_on);
    RUN(every_division_of_k_is_exact_or_known_to_be_wrong);
    close_side(&told);
    close_side(&untold);
    return test_finish();
}
#endif
