/* Ships kernels with a program, so that its users need neither NVRTC nor cuBLASLt and wait for no compiler.

       ship make FILE    by who ships it: compiles what the program needs, and writes a bundle to FILE
       ship run FILE     by the user: runs with only the kernels of FILE, as where only the driver is installed

   Without a GPU `make` says that there is nothing to compile for, and `run` uses the host, which needs no kernels. A bundle is code
   that runs on the GPU: a program loads only bundles of its maker. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { M = 64, N = 256, K = 128 };

typedef struct operands {
    float a[M][K], b[K][N], bias[N], d[M][N];
} operands;

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK) {
        fprintf(stderr, "ship: %s: %s\n", gemmepi_status_name(status), gemmepi_last_error());
        exit(1);
    }
}

static double milliseconds(void) {
#ifdef _WIN32
    return 1e3 * clock() / CLOCKS_PER_SEC; /* not the processor's time there */
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
#endif
}

/* config.resolve_symbol: NVRTC and cuBLASLt are not there. */
static void *driver_alone(void *user, const char *library, const char *symbol, void *found) {
    (void)user, (void)symbol;
    return strcmp(library, "cuda") == 0 ? found : NULL;
}

/* Routes without cuBLASLt, for both commands: other routes have other kernels. */
static const unsigned routes = 1u << GEMMEPI_ROUTE_FUSED | 1u << GEMMEPI_ROUTE_PLAIN;

/* All that the program runs: D = silu(A B + bias). */
static const gemmepi_matmul_desc product = {.m = M, .n = N, .k = K, .epilogue = GEMMEPI_SILU | GEMMEPI_BIAS};

static int make(const char *path) {
    gemmepi_config config = {.routes = routes};
    gemmepi_any_desc problem = {.matmul = &product};
    gemmepi_context *context;
    check(gemmepi_create(&config, &context));
    check(gemmepi_precompile(context, &problem, 1, 0, NULL, NULL));
    gemmepi_status status = gemmepi_bundle_save(context, path);
    if (status == GEMMEPI_OK)
        printf("wrote %s\n", path);
    else
        printf("no bundle: %s\n", gemmepi_last_error());
    gemmepi_destroy(context);
    return status != GEMMEPI_OK;
}

static void compute(gemmepi_context *context, operands *host) {
    void *memory;
    check(gemmepi_alloc_from(context, host, sizeof *host, &memory));
    operands *device = memory;
    gemmepi_matmul_args args = {.a = device->a, .b = device->b, .bias = device->bias, .d = device->d};
    check(gemmepi_matmul(context, &product, &args, NULL));
    check(gemmepi_download(context, host->d, device->d, sizeof host->d, NULL));
    check(gemmepi_free(context, memory));
}

/* The largest difference of D from sums in double. */
static double largest_error(const operands *x) {
    double largest = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double v = x->bias[j];
            for (int k = 0; k < K; k++)
                v += (double)x->a[i][k] * x->b[k][j];
            largest = fmax(largest, fabs(x->d[i][j] - v / (1 + exp(-v))));
        }
    return largest;
}

static int run(const char *path, operands *x) {
    gemmepi_config config = {.routes = routes, .cache_path = "", .resolve_symbol = driver_alone};
    gemmepi_context *context;
    gemmepi_context_details details;
    double start = milliseconds();
    check(gemmepi_create(&config, &context));
    double created = milliseconds();
    check(gemmepi_context_info(context, &details));
    if (details.is_host)
        printf("no GPU is used, and the host needs no kernels: %s\n", details.fallback_reason);
    else
        check(gemmepi_bundle_load(context, path));
    double loaded = milliseconds();
    compute(context, x);
    double done = milliseconds();
    check(gemmepi_context_info(context, &details));
    printf("computed by: %s, off by at most %.1e\n", details.name, largest_error(x));
    printf("driver and context %.1f ms, bundle %.1f ms, first result %.1f ms\n", created - start,
           loaded - created, done - loaded);
    printf("kernels: %d from the bundle, %d compiled\n", (int)details.kernels_from_bundle,
           (int)details.kernels_compiled);
    gemmepi_destroy(context);
    return largest_error(x) > 1e-3 || details.kernels_compiled != 0;
}

int main(int argc, char **argv) {
    static operands x;
    for (int k = 0; k < K; k++) {
        for (int i = 0; i < M; i++)
            x.a[i][k] = (float)((i * 7 + k * 3) % 11 - 5) / 8;
        for (int j = 0; j < N; j++)
            x.b[k][j] = (float)((k * 5 + j * 2) % 13 - 6) / 64, x.bias[j] = (float)(j % 9 - 4) / 4;
    }
    if (argc == 3 && strcmp(argv[1], "make") == 0)
        return make(argv[2]);
    if (argc == 3 && strcmp(argv[1], "run") == 0)
        return run(argv[2], &x);
    fprintf(stderr, "ship make FILE, then ship run FILE\n");
    return 2;
}
