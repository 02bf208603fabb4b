/* Plans made while a stream is captured, with every cuBLASLt that is found on this machine: those of toolkits, of python3's nvidia wheels
   and of the folders that GEMMEPI_TEST_CUBLASLT lists, separated by ':'. Each is loaded in a process of its own, and for the first time
   while the stream is captured. What a graph replays is held against the host. On the GPU that GEMMEPI_TEST_DEVICE numbers, if there
   is one. */
#if !defined(_WIN32)
#define _XOPEN_SOURCE 700 /* glob, popen, realpath */
#endif
#include "test.h"

#if defined(_WIN32)
int main(void) {
    printf("skip capture: not tested on Windows\n0 passed, 0 failed, 1 skipped\n");
    return 0;
}
#else

#include "driver.h"

#include <glob.h>
#include <limits.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

enum { M = 96, N = 80, K = 512, BATCH = 2, PIECE = BATCH * M * K * 8, NO_GPU = 77, TOO_NEW = 78 };

/* >>libraries */

enum { LIBRARIES = 32 };

typedef struct library {
    char file[PATH_MAX], folder[PATH_MAX];
    int version; /* 130100 for 13.1.0 */
} library;

static library libraries[LIBRARIES];
static int library_count;

static void note_file(const char *file) {
    library *next = &libraries[library_count];
    int i;
    if (library_count == LIBRARIES || !realpath(file, next->file))
        return;
    for (i = 0; i < library_count; i++)
        if (strcmp(libraries[i].file, next->file) == 0)
            return;
    snprintf(next->folder, sizeof next->folder, "%.*s", (int)(strrchr(file, '/') - file), file);
    library_count++;
}

static void note_pattern(const char *folder) {
    char pattern[PATH_MAX];
    glob_t found;
    size_t i;
    snprintf(pattern, sizeof pattern, "%s/libcublasLt.so.1[0-9]", folder);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (i = 0; i < found.gl_pathc; i++)
            note_file(found.gl_pathv[i]);
        globfree(&found);
    }
}

static void note_wheels(void) {
    FILE *folders = popen("python3 -c 'import sys\nfor p in sys.path: print(p)' 2>/dev/null", "r");
    char line[PATH_MAX], pattern[PATH_MAX + 16];
    while (folders && fgets(line, sizeof line, folders)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] != '/')
            continue;
        snprintf(pattern, sizeof pattern, "%s/nvidia/*/lib", line);
        note_pattern(pattern);
        snprintf(pattern, sizeof pattern, "%s/torch/lib", line);
        note_pattern(pattern);
    }
    if (folders)
        pclose(folders);
}

static void find_libraries(void) {
    static const char *const toolkits[] = {"/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib",
                                           "/opt/cuda/lib64", "/usr/lib/*-linux-gnu"};
    const char *listed = getenv("GEMMEPI_TEST_CUBLASLT"), *cuda = getenv("CUDA_PATH");
    char folder[PATH_MAX];
    size_t i;
    for (; listed && *listed; listed += strcspn(listed, ":"), listed += *listed == ':') {
        snprintf(folder, sizeof folder, "%.*s", (int)strcspn(listed, ":"), listed);
        note_pattern(folder);
    }
    if (cuda) {
        snprintf(folder, sizeof folder, "%s/lib64", cuda);
        note_pattern(folder);
    }
    for (i = 0; i < sizeof toolkits / sizeof *toolkits; i++)
        note_pattern(toolkits[i]);
    note_wheels();
}

/* What a library says its version is, asked in another process; 0: it cannot be loaded. */
static int version_of(const char *file) {
    int ends[2], version = 0;
    pid_t child;
    if (pipe(ends))
        return 0;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        void *opened = dlopen(file, RTLD_NOW), *symbol = opened ? dlsym(opened, "cublasLtGetVersion") : NULL;
        size_t (*get_version)(void) = NULL;
        memcpy((void *)&get_version, &symbol, sizeof symbol);
        version = get_version ? (int)get_version() : 0;
        _exit(write(ends[1], &version, sizeof version) != (ssize_t)sizeof version);
    }
    close(ends[1]);
    if (read(ends[0], &version, sizeof version) != (ssize_t)sizeof version)
        version = 0;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return version;
}

/* >>numbers: -1, -1/2, 0, 1/2 and 1, which every type holds */

static void put(void *to, gemmepi_dtype dtype, size_t i, int halves) {
    static const unsigned short f16[] = {0, 0x3800, 0x3c00}, bf16[] = {0, 0x3f00, 0x3f80},
                                e4m3[] = {0, 0x30, 0x38};
    int size = abs(halves), negative = halves < 0;
    switch (dtype) {
    case GEMMEPI_F64:
        ((double *)to)[i] = halves / 2.;
        break;
    case GEMMEPI_F16:
        ((unsigned short *)to)[i] = (unsigned short)(f16[size] | (negative ? 0x8000 : 0));
        break;
    case GEMMEPI_BF16:
        ((unsigned short *)to)[i] = (unsigned short)(bf16[size] | (negative ? 0x8000 : 0));
        break;
    case GEMMEPI_E4M3:
        ((unsigned char *)to)[i] = (unsigned char)(e4m3[size] | (negative ? 0x80 : 0));
        break;
    case GEMMEPI_I8:
        ((signed char *)to)[i] = (signed char)halves;
        break;
    case GEMMEPI_I32:
        ((int32_t *)to)[i] = halves;
        break;
    default:
        ((float *)to)[i] = (float)halves / 2;
    }
}

static double half_precision(unsigned code) {
    int exponent = (int)(code >> 10 & 31), mantissa = (int)(code & 1023);
    double size = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return code & 0x8000 ? -size : size;
}

static double get(const void *from, gemmepi_dtype dtype, size_t i) {
    uint32_t bits;
    float x;
    switch (dtype) {
    case GEMMEPI_F64:
        return ((const double *)from)[i];
    case GEMMEPI_F16:
        return half_precision(((const unsigned short *)from)[i]);
    case GEMMEPI_BF16:
        bits = (uint32_t)((const unsigned short *)from)[i] << 16;
        memcpy(&x, &bits, sizeof x);
        return (double)x;
    case GEMMEPI_I32:
        return ((const int32_t *)from)[i];
    default:
        return (double)((const float *)from)[i];
    }
}

/* >>cases */

typedef struct routed {
    gemmepi_route route;
    gemmepi_dtype dtype, d;
    gemmepi_epilogue epilogue;
    int order, transposed_a, transposed_b, batch;
} routed;

static const routed cases[] = {
    {GEMMEPI_ROUTE_LT, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_NONE, 0, 0, 0, 1},
    {GEMMEPI_ROUTE_LT, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_RELU | GEMMEPI_BIAS, 1, 1, 0, 1},
    {GEMMEPI_ROUTE_LT, GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_NONE, 0, 1, 1, BATCH},
    {GEMMEPI_ROUTE_LT, GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_NONE, 0, 0, 1, 1},
    {GEMMEPI_ROUTE_LT, GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_RELU | GEMMEPI_BIAS, 0, 0, 1, 1},
    {GEMMEPI_ROUTE_LT, GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_NONE, 0, 0, 1, 1},
    {GEMMEPI_ROUTE_SPLIT, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 0, 0,
     0, 1},
    {GEMMEPI_ROUTE_SPLIT, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 0, 0, 1, BATCH},
    {GEMMEPI_ROUTE_SPLIT, GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 1, 0, 1},
    {GEMMEPI_ROUTE_SPLIT, GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_TANH | GEMMEPI_BIAS, 1, 0, 0, 1},
    {GEMMEPI_ROUTE_SPLIT, GEMMEPI_I8, GEMMEPI_I32, GEMMEPI_RELU | GEMMEPI_BIAS, 0, 1, 0, 1},
    {GEMMEPI_ROUTE_SPLIT, GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_AUX, 0, 0, 1, 1}};

enum { CASES = (int)(sizeof cases / sizeof *cases), FIRST_FP8 = 89 };

static gemmepi_matmul_desc desc_of(const routed *c) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = M, desc.n = N, desc.k = K, desc.batch = c->batch;
    desc.order = (gemmepi_order)c->order;
    desc.epilogue = c->epilogue;
    desc.a.dtype = desc.b.dtype = c->dtype;
    desc.d.dtype = c->d;
    desc.a.transposed = c->transposed_a, desc.b.transposed = c->transposed_b;
    desc.a.batch_stride = c->batch > 1 ? M * K : 0, desc.b.batch_stride = c->batch > 1 ? N * K : 0;
    desc.d.batch_stride = c->batch > 1 ? M * N : 0;
    return desc;
}

/* Where operands lie: a piece of memory each. */
enum { A, B, D, AUX, BIAS, BIAS_GRAD, PIECES };

static gemmepi_matmul_args args_of(const routed *c, char *memory) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = memory + A * PIECE, args.b = memory + B * PIECE, args.d = memory + D * PIECE;
    if (c->epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD))
        args.aux = memory + AUX * PIECE;
    if (c->epilogue & GEMMEPI_BIAS)
        args.bias = memory + BIAS * PIECE;
    if (c->epilogue & GEMMEPI_BGRAD)
        args.bias_grad = memory + BIAS_GRAD * PIECE;
    return args;
}

/* Inputs of the case's types, and something that no result is where results go. */
static void fill(const routed *c, char *memory) {
    unsigned state = 12345;
    size_t i;
    memset(memory, 0x7b, (size_t)PIECES * PIECE);
    for (i = 0; i < (size_t)BATCH * M * K; i++) {
        state = state * 1664525u + 1013904223u;
        put(memory + A * PIECE, c->dtype, i, (int)(state >> 8) % 5 - 2);
        put(memory + B * PIECE, c->dtype, i, (int)(state >> 16) % 5 - 2);
        if (i < M * N && c->epilogue & GEMMEPI_BACKWARD)
            put(memory + AUX * PIECE, c->d, i, (int)(state >> 12) % 5 - 2);
        if (i < M + N)
            put(memory + BIAS * PIECE, c->d, i, (int)(state >> 20) % 5 - 2);
    }
}

/* Of numbers up to `most`, whose sums are of `terms` such: roundings of the stored type, and of F32's sums. */
static double error_of(gemmepi_dtype dtype, double value, double terms) {
    double stored = dtype == GEMMEPI_F64   ? 1e-15
                    : dtype == GEMMEPI_F32 ? 1e-6
                    : dtype == GEMMEPI_I32 ? 0
                    : dtype == GEMMEPI_F16 ? ldexp(1, -10)
                                           : ldexp(1, -7);
    double sums = dtype == GEMMEPI_F64 ? 1e-15 : dtype == GEMMEPI_I32 ? 0 : 1e-6;
    return stored * fabs(value) + sums * terms;
}

static void compare(const routed *c, int piece, size_t count, const char *what, const char *device,
                    const char *host) {
    size_t i;
    for (i = 0; i < count; i++) {
        double ours = get(device + piece * PIECE, c->d, i), right = get(host + piece * PIECE, c->d, i);
        CHECK(fabs(ours - right) <= error_of(c->d, right, K), "case %d: %s[%lu] is %g, on the host %g",
              (int)(c - cases), what, (unsigned long)i, ours, right);
    }
}

/* The case on the host: what was filled in, and its results. */
static void run_on_host(gemmepi_context *host, const routed *c, char *memory) {
    gemmepi_matmul_desc desc = desc_of(c);
    gemmepi_matmul_args args = args_of(c, memory);
    CHECK(gemmepi_matmul(host, &desc, &args, NULL) == GEMMEPI_OK, "case %d: %s", (int)(c - cases),
          gemmepi_last_error());
}

/* Plans, and runs with workspace that is allocated then, between the capture's beginning and its end. */
static void *captured(gemmepi_context *context, const routed *c, char *memory, gemmepi_stream stream,
                      void **workspace) {
    gemmepi_matmul_desc desc = desc_of(c);
    gemmepi_matmul_args args = args_of(c, memory);
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    void *graph = NULL;
    int number = (int)(c - cases);
    CHECK(cuda.begin_capture(stream, CAPTURE_GLOBAL) == 0, "case %d: capture does not begin", number);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "case %d: %s", number,
          gemmepi_last_error());
    if (plan) {
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == c->route,
              "case %d: the route %s", number, details.route_name);
        args.workspace_size = details.workspace_size;
        if (details.workspace_size)
            CHECK(gemmepi_alloc(context, details.workspace_size, workspace) == GEMMEPI_OK, "case %d: %s",
                  number, gemmepi_last_error());
        args.workspace = *workspace;
        CHECK(gemmepi_run_matmul(plan, &args, stream) == GEMMEPI_OK, "case %d: %s", number,
              gemmepi_last_error());
    }
    CHECK(cuda.end_capture(stream, &graph) == 0 && graph, "case %d: the capture was spoiled", number);
    gemmepi_plan_destroy(plan); /* the graph outlives it */
    return graph;
}

static void replay(void *graph, gemmepi_stream stream, int number) {
    void *executable = NULL;
    CHECK(cuda.instantiate(&executable, graph, 0) == 0, "case %d: the graph cannot be instantiated", number);
    CHECK(executable && cuda.launch(executable, stream) == 0, "case %d: the graph cannot be launched",
          number);
    if (executable)
        cuda.destroy_executable(executable);
    cuda.destroy_graph(graph);
}

static void plan_and_replay(gemmepi_context *context, gemmepi_context *host, const routed *c,
                            gemmepi_stream stream) {
    size_t size = (size_t)PIECES * PIECE;
    char *right = (char *)malloc(size), *back = (char *)malloc(size);
    void *block = NULL, *workspace = NULL, *graph;
    int columns = c->epilogue & GEMMEPI_GATED ? N / 2 : N;
    fill(c, right);
    CHECK(gemmepi_alloc(context, size, &block) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_upload(context, block, right, size, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    run_on_host(host, c, right);
    graph = captured(context, c, (char *)block, stream, &workspace);
    if (graph)
        replay(graph, stream, (int)(c - cases));
    CHECK(gemmepi_download(context, back, block, size, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    compare(c, D, (size_t)(c->batch * M * columns), "D", back, right);
    if (c->epilogue & GEMMEPI_AUX)
        compare(c, AUX, (size_t)(c->batch * M * N), "aux", back, right);
    if (c->epilogue & GEMMEPI_BGRAD)
        compare(c, BIAS_GRAD, N, "bias_grad", back, right);
    CHECK(gemmepi_free(context, block) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(!workspace || gemmepi_free(context, workspace) == GEMMEPI_OK, "%s", gemmepi_last_error());
    free(right);
    free(back);
}

/* >>a process for each library */

static const library *tried; /* of the running test */

static gemmepi_context *context_with(gemmepi_route route) {
    gemmepi_context *context = NULL;
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE(device_number());
    config.library_path = tried->folder;
    config.routes = 1u << route;
    return gemmepi_create(&config, &context) == GEMMEPI_OK ? context : NULL;
}

/* Every case of a route, in a context whose libraries nothing has loaded before its first plan. */
static int run_route(gemmepi_context *host, gemmepi_route route) {
    gemmepi_context *context = context_with(route);
    gemmepi_context_details details;
    gemmepi_stream stream = NULL;
    int i;
    if (!context || !make_current())
        return NO_GPU;
    CHECK(gemmepi_context_info(context, &details) == GEMMEPI_OK && details.cublaslt_version == 0,
          "cuBLASLt was loaded before the first plan");
    if (details.driver_version / 1000 < tried->version / 10000)
        return TOO_NEW;
    CHECK(gemmepi_stream_create(context, &stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < CASES; i++)
        if (cases[i].route == route &&
            (cases[i].dtype != GEMMEPI_E4M3 || details.compute_capability >= FIRST_FP8))
            plan_and_replay(context, host, &cases[i], stream);
    CHECK(gemmepi_context_info(context, &details) == GEMMEPI_OK && details.cublaslt_version == tried->version,
          "cuBLASLt %d was taken", details.cublaslt_version);
    CHECK(gemmepi_stream_destroy(context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    return 0;
}

/* 0, 1 where a check failed, or why the library is not tried */
static int be_a_child(void) {
    gemmepi_context *host = NULL;
    gemmepi_config config;
    int status;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    CHECK(gemmepi_create(&config, &host) == GEMMEPI_OK, "%s", gemmepi_last_error());
    status = run_route(host, GEMMEPI_ROUTE_LT);
    if (!status)
        status = run_route(host, GEMMEPI_ROUTE_SPLIT);
    gemmepi_destroy(host);
    return status ? status : test_failures_here != 0;
}

static void products_are_planned_while_a_stream_is_captured(void) {
    int status = 0;
    pid_t child;
    if (!tried->version)
        SKIP("it cannot be loaded");
    fflush(stdout);
    child = fork();
    if (child == 0) {
        status = be_a_child();
        fflush(stdout);
        _exit(status);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "no process");
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_GPU)
        SKIP("there is no GPU");
    if (WIFEXITED(status) && WEXITSTATUS(status) == TOO_NEW)
        SKIP("the driver is of an older CUDA");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "with %s: status %d", tried->file, status);
}

int main(void) {
    const char *device = getenv("GEMMEPI_TEST_DEVICE");
    char name[100];
    int i;
    if (device && strcmp(device, "host") == 0) {
        printf("skip capture: there is no GPU\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    find_libraries();
    for (i = 0; i < library_count; i++) {
        tried = &libraries[i];
        libraries[i].version = version_of(tried->file);
        snprintf(name, sizeof name, "with_cublaslt_%d.%d.%d_products_are_planned_while_a_stream_is_captured",
                 tried->version / 10000, tried->version % 10000 / 100, tried->version % 100);
        test_run(name, products_are_planned_while_a_stream_is_captured);
    }
    if (!library_count) {
        printf("skip capture: there is no cuBLASLt\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    return test_finish();
}
#endif
