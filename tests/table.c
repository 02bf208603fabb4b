/* Prints the README's table: which route each epilogue takes for each type, as the plans of this machine answer. */
#include "gemmepi.h"

#include <stdio.h>
#include <string.h>

typedef struct row {
    const char *name;
    gemmepi_epilogue epilogue;
} row;

/* clang-format off */
#define ROW(name) {#name, GEMMEPI_EPILOGUE_##name}
#define BEYOND(act)                                                                                       \
    {#act ", \\|BIAS", GEMMEPI_##act | GEMMEPI_BIAS},                                                     \
    {#act "\\|AUX, \\|BIAS", GEMMEPI_##act | GEMMEPI_AUX | GEMMEPI_BIAS},                                 \
    {#act "\\|BACKWARD, \\|BGRAD", GEMMEPI_##act | GEMMEPI_BACKWARD | GEMMEPI_BGRAD}
/* clang-format on */

static const row rows[] = {
    ROW(DEFAULT),   ROW(BIAS),        ROW(RELU),
    ROW(RELU_BIAS), ROW(RELU_AUX),    ROW(RELU_AUX_BIAS),
    ROW(DRELU),     ROW(DRELU_BGRAD), ROW(GELU),
    ROW(GELU_BIAS), ROW(GELU_AUX),    ROW(GELU_AUX_BIAS),
    ROW(DGELU),     ROW(DGELU_BGRAD), ROW(BGRADA),
    ROW(BGRADB),    BEYOND(SILU),     BEYOND(SIGMOID),
    BEYOND(TANH),   BEYOND(GELU_ERF), {"any of them \\|RESIDUAL", GEMMEPI_RESIDUAL},
};

typedef struct column {
    const char *name;
    gemmepi_dtype dtype;
    gemmepi_compute compute;
} column;

static const column columns[] = {
    {"F64", GEMMEPI_F64, GEMMEPI_COMPUTE_DEFAULT},   {"F32", GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT},
    {"TF32", GEMMEPI_F32, GEMMEPI_COMPUTE_TF32},     {"F16", GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT},
    {"BF16", GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* "lt", "split", "host", or NULL: refused */
static const char *route_of(gemmepi_context *context, const row *r, const column *c, uint32_t flags,
                            int transposed_b) {
    gemmepi_matmul_desc desc;
    gemmepi_plan_details details;
    gemmepi_plan *plan;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.n = desc.k = 1024;
    desc.batch = 1;
    desc.a.dtype = c->dtype;
    desc.b.transposed = transposed_b;
    desc.compute = c->compute;
    desc.epilogue = r->epilogue;
    desc.flags = flags;
    if (gemmepi_plan_matmul(context, &desc, &plan) != GEMMEPI_OK) {
        fprintf(stderr, "%s %s: %s\n", r->name, c->name, gemmepi_last_error());
        return NULL;
    }
    gemmepi_plan_info(plan, &details);
    gemmepi_plan_destroy(plan);
    return details.route_name;
}

int main(void) {
    gemmepi_context *context;
    gemmepi_context_details details;
    size_t i, j;
    int refused = 0;
    if (gemmepi_create(NULL, &context) != GEMMEPI_OK) {
        fprintf(stderr, "%s\n", gemmepi_last_error());
        return 1;
    }
    gemmepi_context_info(context, &details);
    printf("| epilogue (1024 x 1024 x 1024, %s) |", details.name);
    for (j = 0; j < COUNT(columns); j++)
        printf(" %s |", columns[j].name);
    printf("\n|---|");
    for (j = 0; j < COUNT(columns); j++)
        printf("---|");
    printf("\n");
    for (i = 0; i < COUNT(rows); i++) {
        printf("| %s |", rows[i].name);
        for (j = 0; j < COUNT(columns); j++) {
            const char *strict = route_of(context, &rows[i], &columns[j], 0, 0);
            const char *relaxed = route_of(context, &rows[i], &columns[j], GEMMEPI_RELAXED, 0);
            const char *transposed = route_of(context, &rows[i], &columns[j], 0, 1);
            refused += !strict || !relaxed || !transposed;
            if (!strict || !relaxed || !transposed)
                printf(" refused |");
            else if (strcmp(strict, relaxed) != 0)
                printf(" %s (relaxed: %s) |", strict, relaxed);
            else if (strcmp(strict, transposed) != 0)
                printf(" %s (B transposed: %s) |", strict, transposed);
            else
                printf(" %s |", strict);
        }
        printf("\n");
    }
    gemmepi_destroy(context);
    return refused != 0;
}
