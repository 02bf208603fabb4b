/* What the tests on the fake GPU share: small products, a plan on a chip, folders, and what a plan or the log says. */
#ifndef GEMMEPI_TESTS_FAKE_PROGRAM_H
#define GEMMEPI_TESTS_FAKE_PROGRAM_H

#include "fake_cuda.h"

/* >>products */

enum { EDGE = 64, DEPTH = 1024 }; /* m and n, and k: enough for cuBLASLt to be estimated as the fastest */

static gemmepi_matmul_desc product(gemmepi_dtype dtype, gemmepi_epilogue epilogue) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.n = EDGE, desc.k = DEPTH;
    desc.batch = 1;
    desc.a.dtype = dtype;
    desc.epilogue = epilogue;
    return desc;
}

/* cuBLASLt has the one; the other takes a product and two kernels, the third a kernel alone. */
static gemmepi_matmul_desc lt_product(void) {
    return product(GEMMEPI_F32, GEMMEPI_BIAS);
}
static gemmepi_matmul_desc split_product(void) {
    return product(GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
}
static gemmepi_matmul_desc pass_alone(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_F32, GEMMEPI_TANH | GEMMEPI_BIAS);
    desc.k = 0;
    return desc;
}

/* cuBLASLt has it, and a product of its own needs more workspace: 64 x 64 sums in F32. */
static gemmepi_matmul_desc refusable_product(void) {
    return product(GEMMEPI_BF16, GEMMEPI_RELU);
}
enum { LT_WORKSPACE = 4096, SPLIT_WORKSPACE = LT_WORKSPACE + 4 * EDGE * EDGE };

static double memory[8][EDGE * DEPTH]; /* stands for tensors on the device, larger than any of them */

/* Whether the kernel that was compiled last has this definition, such as "GEMMEPI_TAILS 1", ahead of its source. */
static int is_defined(const char *definition) {
    char line[100];
    snprintf(line, sizeof line, "#define %s\n", definition);
    return strstr(gpu.last_source, line) != NULL;
}

static gemmepi_matmul_args args_for(const gemmepi_matmul_desc *desc) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = desc->k ? memory[0] : NULL;
    args.b = desc->k ? memory[1] : NULL;
    args.d = memory[2];
    args.bias = desc->epilogue & GEMMEPI_BIAS ? memory[3] : NULL;
    args.aux = desc->epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD) ? memory[4] : NULL;
    args.bias_grad = desc->epilogue & GEMMEPI_BGRAD ? memory[5] : NULL;
    args.amax_d = desc->flags & GEMMEPI_AMAX_D ? memory[6] : NULL;
    return args;
}

static gemmepi_matmul_desc fused_product(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BIAS);
    desc.m = 2048, desc.n = 1024, desc.k = 512;
    return desc;
}

/* Nothing is read or written there. */
static gemmepi_matmul_args fused_args(void) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = (const void *)(uintptr_t)0x10000000;
    args.b = (const void *)(uintptr_t)0x20000000;
    args.bias = (const void *)(uintptr_t)0x30000000;
    args.d = (void *)(uintptr_t)0x40000000;
    return args;
}

/* >>plans */

/* What is inside a product's plan. */
static const gpi__matmul_plan *matmul_of(const gemmepi_plan *plan) {
    return (const gpi__matmul_plan *)plan;
}

static int explain_has(const gemmepi_plan *plan, const char *what) {
    static char text[4096];
    gemmepi_plan_explain(plan, text, sizeof text);
    return strstr(text, what) != NULL;
}

static int is_kernel(const gemmepi_plan_details *details, const char *stem) {
    return strncmp(details->kernel, stem, strlen(stem)) == 0;
}

static gemmepi_route route_of(const gemmepi_plan *plan) {
    gemmepi_plan_details details;
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return details.route;
}

static gemmepi_plan *plan_on(gemmepi_context *context, const gemmepi_matmul_desc *desc, gemmepi_route route) {
    gemmepi_plan *plan = NULL;
    CHECK(gemmepi_plan_matmul(context, desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(route_of(plan) == route, "route %d", (int)route_of(plan));
    CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return plan;
}

/* A context on a chip, a product and its plan. */
typedef struct planned {
    gemmepi_context *context;
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_plan *plan;
    gemmepi_plan_details details;
} planned;

/* arch 0: DEVICE_ARCH. routes: of the config */
static planned planned_begin(int arch, uint32_t routes) {
    planned p;
    gemmepi_config config = config_with_all_routes();
    memset(&p, 0, sizeof p);
    gpu.other_arch = arch;
    gpu.launches = gpu.overlapping = 0;
    if (routes)
        config.routes = routes;
    p.context = open_fake(&config);
    p.desc = fused_product();
    p.args = fused_args();
    return p;
}

static int planned_plan(planned *p) {
    int made = gemmepi_plan_matmul(p->context, &p->desc, &p->plan) == GEMMEPI_OK &&
               gemmepi_plan_info(p->plan, &p->details) == GEMMEPI_OK;
    CHECK(made, "%s", gemmepi_last_error());
    return made;
}

static void planned_run(planned *p) {
    CHECK(gemmepi_plan_prepare(p->plan, NULL) == GEMMEPI_OK &&
              gemmepi_run_matmul(p->plan, &p->args, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

static void planned_end(planned *p) {
    gemmepi_plan_destroy(p->plan);
    gemmepi_destroy(p->context);
    gpu.other_arch = 0;
    nothing_is_left();
}

/* >>the log */

static long warnings;

static void count_warnings(void *user, gemmepi_log_level level, const char *message) {
    (void)user, (void)message;
    if (level == GEMMEPI_LOG_WARNING)
        count(&warnings, 1);
}

static int lines_of(const char *start) {
    const char *line = logged;
    int lines = 0;
    while (line && *line) {
        lines += strncmp(line, start, strlen(start)) == 0;
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return lines;
}

/* >>files and libraries */

static char folder[600];

static void empty_folder(void) {
    char entry[GPI__ENTRY_SIZE] = "", path[1000];
    while (gpi__next_entry(folder, "", entry)) {
        snprintf(path, sizeof path, "%s/%s", folder, entry);
        remove(path); /* . and .. stay */
    }
    rmdir(folder);
}

static const char *new_folder(void) {
    static int number;
    const char *temporary = getenv("TMPDIR");
    if (!temporary)
        temporary = getenv("TEMP");
    snprintf(folder, sizeof folder, "%.400s/gemmepi-faults-%ld-%d", temporary ? temporary : "/tmp",
             (long)getpid(), number++);
    empty_folder();
    return folder;
}

/* Where this machine has the real libraries the loader opens them, to hand what they export to the resolver; kept open,
   each of the many contexts here finds them open. */
static void keep_libraries_open(void) {
    static gpi__log nobody;
    static gpi__nvrtc nvrtc;
    static gpi__cublaslt lt;
    gpi__loader loader;
    memset(&loader, 0, sizeof loader);
    loader.log = &nobody;
    gpi__load_nvrtc(&loader, &nvrtc);
    gpi__load_cublaslt(&loader, &lt);
}

/* In microseconds, of the route's best candidate; 0 where it is not known. */
static double estimate_of(const gpi__candidates *candidates, gemmepi_route route) {
    return gpi__least_of_routes(candidates, 1u << route)->microseconds;
}

#endif
