/* One product with its epilogue, D = gelu(A B + bias), on the GPU if there is one, else on the host. */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <stdio.h>
#include <stdlib.h>

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK) {
        fprintf(stderr, "%s: %s\n", gemmepi_status_name(status), gemmepi_last_error());
        exit(1);
    }
}

typedef struct operands {
    float a[2][3], b[3][2], bias[2], d[2][2]; /* row-major, as C stores them */
} operands;

int main(void) {
    operands host = {{{1, 2, -1}, {3, -2, 4}}, {{.5f, -.3f}, {.1f, .7f}, {-.2f, .4f}}, {-.1f, .2f}, {{0}}};
    gemmepi_context *context;
    gemmepi_context_details details;
    check(gemmepi_create(NULL, &context));
    check(gemmepi_context_info(context, &details));
    if (details.fallback_reason[0])
        fprintf(stderr, "no GPU is used: %s\n", details.fallback_reason);

    void *memory;
    check(gemmepi_alloc_from(context, &host, sizeof host, &memory));
    operands *device = memory; /* an address on the device: to point into, not to read from here */

    gemmepi_matmul_desc desc = {.m = 2, .n = 2, .k = 3};
    desc.epilogue = GEMMEPI_GELU_TANH | GEMMEPI_BIAS;
    gemmepi_matmul_args args = {.a = device->a, .b = device->b, .bias = device->bias, .d = device->d};
    check(gemmepi_matmul(context, &desc, &args, NULL));

    check(gemmepi_download(context, host.d, device->d, sizeof host.d, NULL));
    printf("gelu(A B + bias) = [%.4f %.4f; %.4f %.4f]\ncomputed by: %s\n", host.d[0][0], host.d[0][1],
           host.d[1][0], host.d[1][1], details.name);
    check(gemmepi_free(context, memory));
    gemmepi_destroy(context);
    return 0;
}
