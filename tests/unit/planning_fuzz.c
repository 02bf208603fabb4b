/* planning_fuzz [count] [first seed]: random products, grouped products, layers and element-wise operations, with epilogues and with
   formulas, planned, explained, precompiled and run, on the fake GPU of fake_cuda.h and on the host. Extents and strides are up to 2^62
   (on the host as many as its memory has), and some fields are garbage. Each is refused with a sentence or accepted, in bounded time, no
   launch is larger than a grid, and a caller who does what the sentences say of args can run the plan, in the workspace that it tells.
   On the GPU memory is addresses alone: nothing is there, and nothing may be touched.
   A failure prints its seed: `planning_fuzz 1 SEED` repeats it. With GEMMEPI_LIBFUZZER it is a fuzzer for libFuzzer (tests/fuzz.sh). */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "fake_cuda.h"

#include "draw_descs.h"

#include <sys/mman.h>
#include <time.h>

#ifndef MOST_MILLISECONDS
#define MOST_MILLISECONDS 100 /* of a case: planning, preparing and running; compiling is not counted */
#endif

static uint64_t first = 1, count_of_cases = 15000;
static unsigned long long seed_here;
static long planned[KINDS], ran[KINDS], refused[KINDS];

static void check_status(gemmepi_status status, const char *what) {
    CHECK(strcmp(gemmepi_status_name(status), "unknown status") != 0, "seed %llu: %s is %d", seed_here, what,
          (int)status);
    CHECK(status == GEMMEPI_OK || gemmepi_last_error()[0] != 0, "seed %llu: %s has no sentence", seed_here,
          what);
    CHECK(!status || !strstr(gemmepi_last_error(), "(null)"), "seed %llu: %s: %s", seed_here, what,
          gemmepi_last_error());
    CHECK(status != GEMMEPI_CUDA_ERROR && status != GEMMEPI_CUBLAS_ERROR && status != GEMMEPI_COMPILE_ERROR,
          "seed %llu: %s: %s", seed_here, what, gemmepi_last_error());
    (void)gpi__fail(GEMMEPI_OK, "%s", "");
}

/* >>contexts: made when they are drawn, and kept for some cases */

static const int archs[] = {90, 80, 75, 100, 89};
static const unsigned routes[] = {0, NOT_FUSED, 1u << GEMMEPI_ROUTE_PLAIN, 1u << GEMMEPI_ROUTE_FUSED,
                                  1u << GEMMEPI_ROUTE_LT};
enum { ARCHS = (int)GPI__COUNT(archs), CHOICES_OF_ROUTES = (int)GPI__COUNT(routes) };

static gemmepi_context *contexts[ARCHS][CHOICES_OF_ROUTES], *host;
static int are_open;

static void close_all(void) {
    int a, r;
    for (a = 0; a < ARCHS; a++)
        for (r = 0; r < CHOICES_OF_ROUTES; r++)
            gemmepi_destroy(contexts[a][r]);
    gemmepi_destroy(host);
    memset(contexts, 0, sizeof contexts);
    host = NULL;
    if (are_open)
        CHECK(gpu.wrong_context == 0 && gpu.device_blocks == 0, "%ld blocks are left", gpu.device_blocks);
    are_open = 0;
}

static gemmepi_context *open_one(gemmepi_context **place, int device, int arch, unsigned taken) {
    static gemmepi_config config;
    if (!are_open)
        config = fake_config();
    are_open = 1;
    config.allocator.alloc = NULL, config.allocator.free = NULL;
    config.device = device;
    config.routes = taken;
    config.check = arch == 89;
    gpu.other_arch = arch;
    gpu.largest_block = 1 << 24;
    gpu.is_untouched = 1;
    if (!*place)
        *place = open_fake(&config);
    return *place;
}

static gemmepi_context *any_context(int on_host) {
    int a = below(ARCHS), r = below(CHOICES_OF_ROUTES);
    return on_host ? open_one(&host, GEMMEPI_DEVICE_HOST, 0, 0)
                   : open_one(&contexts[a][r], GEMMEPI_DEVICE(0), archs[a], routes[r]);
}

/* >>pointers */

#define SLOT_BYTES ((size_t)1 << 28)
enum { SLOTS = 32 + 3 * MOST_DRAWN_OPERANDS, PATTERN = 4096 };

static int on_host;
static unsigned char used_slots[SLOTS]; /* 3: it has a list */

/* What is at the beginning of a part that has not been written. */
static const char *pattern_of(int i) {
    static char patterns[SLOTS][PATTERN], is_made[SLOTS];
    size_t k;
    for (k = 0; !is_made[i] && k < PATTERN; k++)
        patterns[i][k] = (char)(k * 37 + k / 251 + (size_t)i);
    is_made[i] = 1;
    return patterns[i];
}

/* The middle of a part of the host's memory, whose pages are there once they are touched. */
static char *slot(int i) {
    static char *all;
    char *here;
    if (!all) {
        void *mapped = mmap(NULL, SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            printf("the system gives no memory\n");
            exit(1);
        }
        all = (char *)mapped;
    }
    here = all + (size_t)i * SLOT_BYTES + SLOT_BYTES / 2;
    if (!used_slots[i])
        memcpy(here, pattern_of(i), PATTERN);
    used_slots[i] |= 1;
    return here;
}

/* Whether no byte at the beginning of what is in use has been written, but for lists. */
static int slots_are_as_they_were(void) {
    int i, as_they_were = 1;
    for (i = 0; i < SLOTS; i++)
        as_they_were = as_they_were && (used_slots[i] != 1 || memcmp(slot(i), pattern_of(i), PATTERN) == 0);
    return as_they_were;
}

static void drop_slots(void) {
    int i;
    for (i = 0; i < SLOTS; i++)
        if (used_slots[i])
            madvise(slot(i) - SLOT_BYTES / 2, SLOT_BYTES, MADV_DONTNEED);
    memset(used_slots, 0, sizeof used_slots);
}

/* Tensors far apart, now and then on top of each other, or where nothing may begin. */
static char *address(int i) {
    uint64_t at = ((uint64_t)1 << 48) + ((uint64_t)(i % 31) << 59) + ((uint64_t)(i / 31) << 50);
    if (on_host)
        return slot(one_in(16) ? below(SLOTS) : i) + (one_in(16) ? below(256) : 0);
    if (one_in(12))
        at = ((uint64_t)1 << 48) + ((uint64_t)below(2) << 59) + 256 * next() % ((uint64_t)1 << below(58));
    return (char *)(uintptr_t)(one_in(30) ? next() : at);
}

static union {
    gemmepi_matmul_args product;
    gemmepi_grouped_args grouped;
    gemmepi_linear_args layer, layers[2]; /* the second is of the layer before */
    gemmepi_elementwise_args operation;
    gemmepi_network_args network;
} args;

/* What args.network points to. */
static struct {
    void *of_layers[4][MOST_DRAWN_LAYERS];
    void *const *operands[MOST_DRAWN_LAYERS];
} of_network;

static void *operand_pointers[MOST_DRAWN_OPERANDS], *operand_amax[MOST_DRAWN_OPERANDS];
static const float *operand_scales[MOST_DRAWN_OPERANDS];
static double numbers[2];

typedef struct field {
    const char *name;
    size_t place;
} field;

#define OF(type, name) \
    { #name, offsetof(type, name) }
#define OF_PRODUCT(name) \
    { #name, offsetof(gemmepi_grouped_args, product.name) }
/* gemmepi_grouped_args begins with product */
static const field fields_of_products[] = {OF_PRODUCT(a),
                                           OF_PRODUCT(b),
                                           OF_PRODUCT(c),
                                           OF_PRODUCT(d),
                                           OF_PRODUCT(bias),
                                           OF_PRODUCT(aux),
                                           OF_PRODUCT(bias_grad),
                                           OF_PRODUCT(residual),
                                           OF_PRODUCT(scale_a),
                                           OF_PRODUCT(scale_b),
                                           OF_PRODUCT(scale_c),
                                           OF_PRODUCT(scale_d),
                                           OF_PRODUCT(scale_aux),
                                           OF_PRODUCT(scale_residual),
                                           OF_PRODUCT(amax_d),
                                           OF_PRODUCT(amax_aux),
                                           OF_PRODUCT(found_scale_d),
                                           OF_PRODUCT(amax_history),
                                           OF_PRODUCT(alpha),
                                           OF_PRODUCT(beta),
                                           OF_PRODUCT(operands),
                                           OF_PRODUCT(operand_scales),
                                           OF_PRODUCT(operand_amax),
                                           OF(gemmepi_grouped_args, ends),
                                           OF(gemmepi_grouped_args, index_a),
                                           OF(gemmepi_grouped_args, index_b),
                                           OF(gemmepi_grouped_args, index_d),
                                           OF(gemmepi_grouped_args, weights),
                                           {NULL, 0}};
#define OF_LAYER(name) OF(gemmepi_linear_args, name)
#define OF_LAYER_BEFORE(name) \
    { "before->" #name, sizeof(gemmepi_linear_args) + offsetof(gemmepi_linear_args, name) }
static const field fields_of_layers[] = {OF_LAYER(a),
                                         OF_LAYER(b),
                                         OF_LAYER(bias),
                                         OF_LAYER(y),
                                         OF_LAYER(preact),
                                         OF_LAYER(dy),
                                         OF_LAYER(da),
                                         OF_LAYER(db),
                                         OF_LAYER(dbias),
                                         OF_LAYER(scale_a),
                                         OF_LAYER(scale_b),
                                         OF_LAYER(scale_y),
                                         OF_LAYER(scale_preact),
                                         OF_LAYER(scale_dy),
                                         OF_LAYER(found_scale_y),
                                         OF_LAYER(amax_history),
                                         OF_LAYER(operands),
                                         OF_LAYER(operand_scales),
                                         OF_LAYER(residual),
                                         OF_LAYER(scale_residual),
                                         OF_LAYER(before),
                                         OF_LAYER_BEFORE(preact),
                                         OF_LAYER_BEFORE(scale_preact),
                                         {NULL, 0}};
#define OF_OPERATION(name) OF(gemmepi_elementwise_args, name)
static const field fields_of_operations[] = {OF_OPERATION(a),
                                             OF_OPERATION(b),
                                             OF_OPERATION(w),
                                             OF_OPERATION(dy),
                                             OF_OPERATION(y),
                                             OF_OPERATION(da),
                                             OF_OPERATION(db),
                                             OF_OPERATION(dw),
                                             OF_OPERATION(scale),
                                             OF_OPERATION(y_scale),
                                             OF_OPERATION(amax),
                                             OF_OPERATION(y_transposed),
                                             OF_OPERATION(y_transposed_scale),
                                             OF_OPERATION(operands),
                                             OF_OPERATION(operand_scales),
                                             OF_OPERATION(operand_amax),
                                             {NULL, 0}};

#define OF_NETWORK(name) OF(gemmepi_network_args, name)
/* arrays first, as of_network has them */
static const field fields_of_networks[] = {
    OF_NETWORK(w),  OF_NETWORK(bias), OF_NETWORK(dw),    OF_NETWORK(dbias),    OF_NETWORK(x), OF_NETWORK(y),
    OF_NETWORK(dy), OF_NETWORK(dx),   OF_NETWORK(saved), OF_NETWORK(operands), {NULL, 0}};

static const field *fields_here(void) {
    return drawn.kind >= NETWORK                             ? fields_of_networks
           : drawn.kind == OPERATION                         ? fields_of_operations
           : drawn.kind == FORWARD || drawn.kind == BACKWARD ? fields_of_layers
                                                             : fields_of_products;
}

/* Running sums of groups and rows that are there, most times. */
static void write_list(char *at, int is_ends) {
    int32_t value = 0;
    int i = (int)((size_t)(at - slot(0)) / SLOT_BYTES);
    used_slots[i] = 3;
    for (i = 0; i < 256; i++) {
        value = is_ends ? value + below(3) : below(12);
        memcpy(at + 4 * i, &value, sizeof value);
    }
}

/* Addresses for all layers, and the operands of the first. */
static void *array_for(int number) {
    int i;
    for (i = 0; i < MOST_DRAWN_LAYERS && number < 4; i++)
        of_network.of_layers[number][i] = address(10 + number * MOST_DRAWN_LAYERS + i);
    for (i = 0; i < drawn.operand_count && number >= 4; i++)
        operand_pointers[i] =
            drawn.operands[i].kind == GEMMEPI_NUMBER ? (void *)&numbers[0] : address(90 + i);
    of_network.operands[0] = operand_pointers;
    return number < 4 ? (void *)of_network.of_layers[number] : (void *)of_network.operands;
}

static void *pointer_for(const char *name, int number) {
    int is_scalar = strcmp(name, "alpha") == 0 || strcmp(name, "beta") == 0;
    char *at;
    if (drawn.kind >= NETWORK && (number < 4 || name[0] == 'o'))
        return array_for(number);
    if (strcmp(name, "operands") == 0)
        return operand_pointers;
    if (strcmp(name, "operand_scales") == 0)
        return (void *)operand_scales;
    if (strcmp(name, "operand_amax") == 0)
        return operand_amax;
    if (strcmp(name, "before") == 0)
        return &args.layers[1];
    if (is_scalar && !(drawn.desc.product.flags & GEMMEPI_DEVICE_SCALARS))
        return &numbers[name[0] == 'b'];
    at = address(one_in(9) ? 3 + (drawn.kind == OPERATION) : number); /* d, or y */
    if (on_host && (strcmp(name, "ends") == 0 || strncmp(name, "index", 5) == 0))
        write_list(at, name[0] == 'e');
    return at;
}

/* Puts the pointer there, or takes it away: args.NAME, or element `index` of args.NAME. */
static int set_argument(const char *name, int index, int is_given) {
    const field *f = fields_here();
    void *pointer = NULL;
    for (; f->name && strcmp(f->name, name) != 0; f++)
        continue;
    if (!f->name || index >= MOST_DRAWN_OPERANDS || (drawn.kind >= NETWORK && index >= 0))
        return 0;
    if (is_given || index >= 0)
        pointer = pointer_for(name, (int)(f - fields_here()));
    memcpy((char *)&args + f->place, &pointer, sizeof pointer);
    if (index < 0)
        return 1;
    pointer = !is_given                                                        ? NULL
              : name[7] == 's' && drawn.operands[index].kind == GEMMEPI_NUMBER ? (void *)&numbers[0]
                                                                               : address(30 + index);
    if (strcmp(name, "operand_scales") == 0)
        operand_scales[index] = (const float *)pointer;
    else
        (strcmp(name, "operands") == 0 ? operand_pointers : operand_amax)[index] = pointer;
    return 1;
}

/* Does what a sentence says of args, if it is that a pointer is missing or one too many. */
static int heed(const char *sentence) {
    char name[40];
    int index = -1, length = 0;
    if (strncmp(sentence, "args.", 5) != 0)
        return 0;
    sentence += strncmp(sentence, "args.product.", 13) == 0 ? 13 : 5;
    if (sscanf(sentence, "%39[a-z_>-]%n", name, &length) != 1)
        return 0;
    sentence += length;
    if (sscanf(sentence, "[%d]", &index) == 1)
        sentence = strchr(sentence, ']') + 1;
    if (strncmp(sentence, " (of ", 5) == 0)
        sentence = strchr(sentence, ')') + 1;
    if (strncmp(sentence, " is NULL", 8) == 0)
        return set_argument(name, index, 1);
    return strncmp(sentence, " is given", 9) == 0 && set_argument(name, index, 0);
}

/* >>calls of each kind */

static gemmepi_status plan_drawn(gemmepi_context *context, gemmepi_plan **plan) {
    switch (drawn.kind) {
    case PRODUCT:
        return gemmepi_plan_matmul(context, &drawn.desc.product, plan);
    case GROUPED:
        return gemmepi_plan_grouped(context, &drawn.desc.grouped, plan);
    case FORWARD:
        return gemmepi_plan_linear(context, &drawn.desc.layer, plan);
    case BACKWARD:
        return gemmepi_plan_linear_backward(context, &drawn.desc.layer, plan);
    case NETWORK:
        return gemmepi_plan_network(context, &drawn.desc.network, plan);
    case NETWORK_BACKWARD:
        return gemmepi_plan_network_backward(context, &drawn.desc.network, plan);
    default:
        return gemmepi_plan_elementwise(context, &drawn.desc.operation, plan);
    }
}

static gemmepi_status run_drawn(const gemmepi_plan *plan) {
    switch (drawn.kind) {
    case PRODUCT:
        return gemmepi_run_matmul(plan, &args.product, NULL);
    case GROUPED:
        return gemmepi_run_grouped(plan, &args.grouped, NULL);
    case FORWARD:
        return gemmepi_run_linear(plan, &args.layer, NULL);
    case BACKWARD:
        return gemmepi_run_linear_backward(plan, &args.layer, NULL);
    case NETWORK:
        return gemmepi_run_network(plan, &args.network, NULL);
    case NETWORK_BACKWARD:
        return gemmepi_run_network_backward(plan, &args.network, NULL);
    default:
        return gemmepi_run_elementwise(plan, &args.operation, NULL);
    }
}

/* The same by the tensors' own pointers. */
static gemmepi_status call_short(gemmepi_context *context) {
    const gemmepi_elementwise_desc *d = &drawn.desc.operation;
    int i;
    for (i = 0; i < drawn.tensor_count; i++)
        drawn.tensors[i].data = address(i);
    switch (d->operation) {
    case GEMMEPI_OP_ACTIVATION:
        return gemmepi_activation(context, d->activation, numbers[0], d->a, d->y, NULL);
    case GEMMEPI_OP_ACTIVATION_BACKWARD:
        return gemmepi_activation_backward(context, d->activation, numbers[0], d->a, d->dy, d->da, NULL);
    case GEMMEPI_OP_GATED:
        return gemmepi_gated(context, d->activation, d->axis, d->a, d->b, d->y, NULL);
    case GEMMEPI_OP_LERP:
        return gemmepi_lerp(context, d->a, d->b, d->w, numbers[0], d->y, NULL);
    case GEMMEPI_OP_BIAS_GRAD:
        return gemmepi_bias_grad(context, d->a, d->axis, one_in(2), d->y, NULL);
    case GEMMEPI_OP_CAST:
        return gemmepi_cast(context, d->a, d->y, NULL);
    default:
        return gemmepi_elementwise(context, d, NULL, NULL);
    }
}

static gemmepi_status call_drawn(gemmepi_context *context) {
    switch (drawn.kind) {
    case PRODUCT:
        return gemmepi_matmul(context, &drawn.desc.product, &args.product, NULL);
    case GROUPED:
        return gemmepi_grouped(context, &drawn.desc.grouped, &args.grouped, NULL);
    case FORWARD:
        return gemmepi_linear(context, &drawn.desc.layer, &args.layer, NULL);
    case BACKWARD:
        return gemmepi_linear_backward(context, &drawn.desc.layer, &args.layer, NULL);
    case NETWORK:
        return gemmepi_network(context, &drawn.desc.network, &args.network, NULL);
    case NETWORK_BACKWARD:
        return gemmepi_network_backward(context, &drawn.desc.network, &args.network, NULL);
    default:
        return gemmepi_elementwise(context, &drawn.desc.operation, &args.operation, NULL);
    }
}

static gemmepi_any_desc any_drawn(void) {
    gemmepi_any_desc any;
    memset(&any, 0, sizeof any);
    any.matmul = drawn.kind == PRODUCT ? &drawn.desc.product : NULL;
    any.grouped = drawn.kind == GROUPED ? &drawn.desc.grouped : NULL;
    any.linear = drawn.kind == FORWARD ? &drawn.desc.layer : NULL;
    any.linear_backward = drawn.kind == BACKWARD ? &drawn.desc.layer : NULL;
    any.elementwise = drawn.kind == OPERATION ? &drawn.desc.operation : NULL;
    any.network = drawn.kind == NETWORK ? &drawn.desc.network : NULL;
    any.network_backward = drawn.kind == NETWORK_BACKWARD ? &drawn.desc.network : NULL;
    return any;
}

static gemmepi_status precompile_drawn(gemmepi_context *context) {
    gemmepi_any_desc any = any_drawn();
    return gemmepi_precompile(context, &any, 1, 1, NULL, NULL);
}

/* In so little time that the first way alone is built. Tensors are in memory that is there. */
static void tune_drawn(gemmepi_context *context) {
    gemmepi_any_desc any = any_drawn();
    gemmepi_tune_options options;
    gemmepi_status status;
    memset(&options, 0, sizeof options);
    options.milliseconds = 1e-6, options.memory = (size_t)1 << below(30), options.threads = 1;
    options.mode = (gemmepi_tune_mode)below(3), options.again = below(2);
    gpu.launch_time = 5, gpu.product_time = 7;
    gpu.is_untouched = 0;
    status = gemmepi_tune(context, &any, 1, &options, NULL, NULL);
    gpu.is_untouched = 1;
    check_status(status, "tuning");
    CHECK(gpu.graphs == 0 && gpu.events == 0 && gpu.streams == 0,
          "seed %llu: %ld graphs, %ld events, %ld streams", seed_here, gpu.graphs, gpu.events, gpu.streams);
}

static void give_workspace(void *workspace, size_t size) {
    if (drawn.kind == PRODUCT || drawn.kind == GROUPED)
        args.product.workspace = workspace, args.product.workspace_size = size;
    else if (drawn.kind == OPERATION)
        args.operation.workspace = workspace, args.operation.workspace_size = size;
    else if (drawn.kind >= NETWORK)
        args.network.workspace = workspace, args.network.workspace_size = size;
    else
        args.layer.workspace = workspace, args.layer.workspace_size = size;
}

/* >>what holds of each */

static void check_explained(const gemmepi_plan *plan, gemmepi_plan_details *details) {
    static char explanation[1 << 16], beginning[64];
    size_t length = gemmepi_plan_explain(plan, explanation, sizeof explanation);
    CHECK(gemmepi_plan_info(plan, details) == GEMMEPI_OK, "seed %llu: %s", seed_here, gemmepi_last_error());
    CHECK(length > 0 && length < sizeof explanation && strlen(explanation) == length, "seed %llu: %lu bytes",
          seed_here, (unsigned long)length);
    CHECK(!strstr(explanation, "(null)"), "seed %llu: %s", seed_here, explanation);
    CHECK(gemmepi_plan_explain(plan, beginning, sizeof beginning) == length &&
              strlen(beginning) < sizeof beginning && strncmp(explanation, beginning, strlen(beginning)) == 0,
          "seed %llu: %s", seed_here, beginning);
}

static long work_done(void) {
    return gpu.launches + gpu.products + gpu.memsets + gpu.copies;
}

/* Whether all of it is in the host's memory. Of what is spoiled only that is known which a product's plan says. */
static int fits_host(const gemmepi_plan *plan) {
    const gpi__problem *problem = &((const gpi__matmul_plan *)plan)->problem;
    int operand;
    if (!drawn.is_spoiled)
        return 1;
    if (drawn.kind != PRODUCT || problem->formula)
        return 0;
    for (operand = 0; operand < GPI__OPERANDS; operand++)
        if (problem->views[operand].bytes > (int64_t)SLOT_BYTES / 2)
            return 0;
    return times(times(problem->m, problem->n), times(problem->k + 1, problem->batch)) < 1 << 22;
}

static gemmepi_status run_heeding(const gemmepi_plan *plan) {
    gemmepi_status status;
    int turns;
    for (turns = 0; turns < 100; turns++) {
        long before = work_done();
        status = run_drawn(plan);
        if (!status)
            return status;
        CHECK(work_done() == before || gpu.refusals, "seed %llu: refused, and %ld calls were made: %s",
              seed_here, work_done() - before, gemmepi_last_error());
        CHECK(!on_host || slots_are_as_they_were(), "seed %llu: refused, and written: %s", seed_here,
              gemmepi_last_error());
        if (status != GEMMEPI_INVALID_ARGUMENT || !heed(gemmepi_last_error()))
            return status;
    }
    CHECK(turns < 100, "seed %llu: there is no end of refusals: %s", seed_here, gemmepi_last_error());
    return status;
}

/* A byte less than the plan tells is refused, what it tells is enough, and is all that is taken. */
static void check_workspace(const gemmepi_plan *plan, size_t size) {
    char *workspace = (char *)(uintptr_t)((uint64_t)1 << 38);
    long before = work_done(), products = gpu.products, allocations_before = gpu.device_allocations;
    gemmepi_status status;
    if (size == 0 || size > (size_t)1 << 37)
        return;
    give_workspace(workspace, size - 1);
    status = run_drawn(plan);
    CHECK(status == GEMMEPI_BUFFER_TOO_SMALL && work_done() == before,
          "seed %llu: with %lu bytes less than %lu: %s, %s", seed_here, 1ul, (unsigned long)size,
          gemmepi_status_name(status), gemmepi_last_error());
    give_workspace(workspace, size);
    status = run_drawn(plan);
    CHECK(status == GEMMEPI_OK || sentence_has(" overlaps "), "seed %llu: with its workspace: %s", seed_here,
          gemmepi_last_error());
    CHECK(gpu.device_allocations == allocations_before, "seed %llu: a run allocates", seed_here);
    CHECK(gpu.products == products || !gpu.last_workspace_size ||
              ((char *)gpu.last_workspace >= workspace &&
               (char *)gpu.last_workspace + gpu.last_workspace_size <= workspace + size),
          "seed %llu: cuBLASLt has %lu bytes of workspace beyond the plan's %lu", seed_here,
          (unsigned long)gpu.last_workspace_size, (unsigned long)size);
    give_workspace((char *)((uintptr_t)address(below(SLOTS)) & ~(uintptr_t)255),
                   size); /* over a tensor, maybe */
    before = work_done();
    status = run_drawn(plan);
    CHECK(!status || work_done() == before, "seed %llu: refused, and %ld calls were made: %s", seed_here,
          work_done() - before, gemmepi_last_error());
    give_workspace(NULL, 0);
}

static void run_plan(gemmepi_context *context, const gemmepi_plan *plan, size_t workspace) {
    static const double scalars[] = {1, 0, -0.5, 3};
    const field *f;
    gemmepi_status status;
    memset(&args, 0, sizeof args);
    memset(operand_pointers, 0, sizeof operand_pointers);
    memset(operand_scales, 0, sizeof operand_scales);
    memset(operand_amax, 0, sizeof operand_amax);
    numbers[0] = scalars[below(4)], numbers[1] = scalars[below(4)];
    if (drawn.kind <= GROUPED && one_in(3))
        set_argument("alpha", -1, 1);
    if (drawn.kind <= GROUPED && one_in(3))
        set_argument("beta", -1, 1);
    if (drawn.kind == OPERATION && one_in(3))
        args.operation.weight = one_in(2) ? 0.25 : numbers[1];
    if (drawn.kind >= NETWORK)
        args.network.saved_size = (size_t)-1;
    if (one_in(6)) /* all that there is */
        for (f = fields_here(); f->name; f++)
            set_argument(f->name, -1, 1);
    status = gemmepi_plan_prepare(plan, NULL);
    check_status(status, "preparing");
    status = run_heeding(plan);
    if (!status) {
        ran[drawn.kind]++;
        if (!on_host && !gpu.refusals)
            check_workspace(plan, workspace);
    }
    check_status(status, "running");
    if (one_in(4))
        check_status(call_drawn(context), "calling");
    if (drawn.kind == OPERATION && one_in(4))
        check_status(call_short(context), "calling with pointers in tensors");
    if (!on_host && one_in(40))
        tune_drawn(context);
}

static void one_case(void) {
    gemmepi_context *context;
    gemmepi_plan_details details;
    gemmepi_plan *plan = (gemmepi_plan *)&details; /* garbage */
    gemmepi_status status;
    on_host = draw_is_modest = one_in(4);
    context = any_context(on_host);
    gpu.archs_told = gpu.compilations = 0;
    gpu.heuristic_answers = one_in(12) ? 0 : 1;
    gpu.refusals = one_in(12) ? -1 : 0; /* cuBLASLt refuses in runs what its heuristic has answered */
    draw_desc(draw_kind());
    (void)gpi__fail(GEMMEPI_OK, "%s", "");
    status = plan_drawn(context, &plan);
    CHECK(!status == (plan != NULL), "seed %llu: status %s, and the plan is %p", seed_here,
          gemmepi_status_name(status), (void *)plan);
    check_status(status, "planning");
    if (one_in(8)) {
        gemmepi_status ahead = precompile_drawn(context);
        CHECK(!ahead == !status, "seed %llu: planning is %s, precompiling %s", seed_here,
              gemmepi_status_name(status), gemmepi_status_name(ahead));
        check_status(ahead, "precompiling");
    }
    if (drawn.kind == PRODUCT) {
        gemmepi_epilogue_needs needs;
        check_status(gemmepi_epilogue_info(&drawn.desc.product, &needs), "asking of the epilogue");
    }
    if (status) {
        refused[drawn.kind]++;
        return;
    }
    planned[drawn.kind]++;
    check_explained(plan, &details);
    if (!on_host || fits_host(plan))
        run_plan(context, plan, details.workspace_size);
    check_explained(plan, &details);
    gemmepi_plan_destroy(plan);
    if (on_host)
        drop_slots();
}

#ifdef GEMMEPI_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static long cases;
    if (!corpus_count)
        read_corpus();
    draw_from_bytes(data, size);
    one_case();
    if (++cases % 500 == 0)
        close_all();
    if (test_failures_here)
        abort();
    return 0;
}
#else
static double milliseconds(void) {
    return 1e3 * (double)clock() / CLOCKS_PER_SEC;
}

/* Compiling is a fake, but its key is computed: a few milliseconds for each kernel. */
static void timed_case(void) {
    double began = milliseconds(), took;
    one_case();
    took = milliseconds() - began;
    CHECK(on_host /* which computes */ || took < MOST_MILLISECONDS + 80 * (double)(gpu.compilations),
          "seed %llu took %.0f ms", seed_here, took);
}

static void run_seed(const unsigned char *bytes, size_t size) {
    draw_from_bytes(bytes, size);
    seed_here = 0;
    timed_case();
    close_all();
}

static void what_found_something_is_found_no_more(void) {
    int count;
    read_corpus();
    count = run_seeds("tests/unit/planning_fuzz_seeds.txt", run_seed);
    CHECK(count > 10, "there are %d seeds", count);
}

static void descs_of_every_kind_are_refused_in_words_or_run(void) {
    int i;
    if (!corpus_count)
        read_corpus();
    for (seed_here = first; seed_here < first + count_of_cases; seed_here++) {
        draw_from_seed(seed_here);
        timed_case();
        if (seed_here % 500 == 0)
            close_all();
    }
    close_all();
    for (i = 0; i < KINDS && count_of_cases >= 1000; i++)
        CHECK(planned[i] > (long)count_of_cases / 200 && ran[i] > (long)count_of_cases / 200 &&
                  refused[i] > (long)count_of_cases / 200,
              "kind %d: only %ld planned, %ld ran, %ld refused", i, planned[i], ran[i], refused[i]);
}

/* Its tiles times its items are 2^64. */
static void sums_of_more_tiles_than_a_number_has_are_refused_or_planned(void) {
    gemmepi_context *context = open_one(&contexts[0][0], GEMMEPI_DEVICE(0), archs[0], routes[0]);
    gemmepi_matmul_desc desc;
    gemmepi_plan *plan = NULL;
    memset(&desc, 0, sizeof desc);
    desc.n = (int64_t)1 << 45;
    desc.batch = 1 << 24;
    desc.epilogue = GEMMEPI_BGRAD_B;
    check_status(gemmepi_plan_matmul(context, &desc, &plan), "planning");
    gemmepi_plan_destroy(plan);
    close_all();
}

/* Lines of 2 bytes, 12 and 8 bytes apart: they meet, or never do, and 2^32 of them are not walked. */
static void whether_2_to_32_lines_overlap_takes_no_time(void) {
    gemmepi_context *context = open_one(&contexts[0][2], GEMMEPI_DEVICE(0), archs[0], routes[2]);
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_plan *plan = NULL;
    double began;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.m = (int64_t)1 << 32;
    desc.n = desc.k = desc.batch = 1;
    desc.alignment = 2;
    desc.a.dtype = GEMMEPI_BF16;
    desc.epilogue = GEMMEPI_RESIDUAL;
    desc.d.ld = 6;
    desc.residual.ld = 4;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    args.a = (char *)(uintptr_t)((uint64_t)1 << 50);
    args.b = (char *)(uintptr_t)((uint64_t)1 << 51);
    args.d = (char *)(uintptr_t)((uint64_t)1 << 40);
    args.residual = (char *)args.d + 2;
    began = milliseconds();
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    args.residual = (char *)args.d + 4 * ((int64_t)1 << 31);
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_INVALID_ARGUMENT && sentence_has("overlaps"), "%s",
          gemmepi_last_error());
    CHECK(milliseconds() - began < 10, "%.0f ms", milliseconds() - began);
    gemmepi_plan_destroy(plan);
    close_all();
}

int main(int argc, char **argv) {
    if (argc > 1)
        count_of_cases = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first = strtoull(argv[2], NULL, 10);
    RUN(sums_of_more_tiles_than_a_number_has_are_refused_or_planned);
    RUN(whether_2_to_32_lines_overlap_takes_no_time);
    if (argc < 3)
        RUN(what_found_something_is_found_no_more);
    RUN(descs_of_every_kind_are_refused_in_words_or_run);
    return test_finish();
}
#endif
