/* What the host does in rare cases, by public calls. */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.in.h"

#include "test.h"

#include <math.h>

static gemmepi_context *host;

static void open_host(void) {
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    CHECK(gemmepi_create(&config, &host) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void close_host(void) {
    gemmepi_destroy(host);
    host = NULL;
}

static gemmepi_matmul_desc product(gemmepi_dtype dtype, int64_t m, int64_t n, int64_t k,
                                   gemmepi_epilogue epilogue) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = m, desc.n = n, desc.k = k, desc.batch = 1;
    desc.a.dtype = dtype;
    desc.alignment = 4;
    desc.epilogue = epilogue;
    return desc;
}

/* >>what is left open in a desc */

/* Of k = 0 and beta 1: C is the pre-activation, whose halves change places as dY is 1. Its lines are D's, padding included. */
static void c_lies_as_d_does_where_a_gates_gradient_has_its_shape(void) {
    enum { ROWS = 3, COLUMNS = 4, LD = 7 };
    float c[ROWS * LD], d[ROWS * LD], dy[ROWS * COLUMNS / 2];
    double one = 1;
    int order, i, j;
    open_host();
    for (order = 0; order < 2; order++) {
        gemmepi_matmul_desc desc =
            product(GEMMEPI_F32, ROWS, COLUMNS, 0,
                    GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM);
        gemmepi_matmul_args args;
        memset(&args, 0, sizeof args);
        if (order) { /* the same memory, its axes exchanged */
            desc.order = GEMMEPI_COLUMN_MAJOR;
            desc.m = COLUMNS, desc.n = ROWS;
        }
        desc.d.ld = LD;
        for (i = 0; i < ROWS * LD; i++) {
            c[i] = i % LD < COLUMNS ? (float)i + 1 : NAN;
            d[i] = -1;
        }
        for (i = 0; i < ROWS * COLUMNS / 2; i++)
            dy[i] = 1;
        args.c = c, args.d = d, args.aux = dy, args.beta = &one;
        CHECK(gemmepi_matmul(host, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        for (i = 0; i < ROWS; i++)
            for (j = 0; j < LD; j++) {
                float expected = j < COLUMNS ? c[i * LD + (j + COLUMNS / 2) % COLUMNS] : -1;
                CHECK(d[i * LD + j] == expected, "order %d: [%d, %d] is %g, not %g", order, i, j,
                      (double)d[i * LD + j], (double)expected);
            }
    }
    close_host();
}

int main(void) {
    RUN(c_lies_as_d_does_where_a_gates_gradient_has_its_shape);
    return test_finish();
}
