/* recorded [--write | TEXT]: what is chosen for some hundred problems, held against tests/unit/recorded.txt: launches with their grids,
   workspace, what is compiled in, and the sums of all estimates. On the fake GPU of fake_cuda.h.

   No other oracle says what a fitted model estimates or how a launch is divided up: this one says that it is as it was when it was last
   looked at. A change that is meant to choose otherwise is looked at line by line, measured, and written down anew by --write; TEXT shows
   the lines that begin with it, as they are now. */
#include "fake_operations.h"
#include "formula_cases.h"

#define RECORD "tests/unit/recorded.txt"

/* >>a line: what was seen, as text */

static char line_data[1 << 14];
static gpi__text line;
static uint64_t compiled; /* a hash of the definitions of all sources */

/* The parameters of kernels, by the first words of their names. */
static const struct {
    const char *entry;
    size_t size;
} parameters[] = {{"gemmepi_pass", sizeof(gpi__pass_params)},
                  {"gemmepi_plain", sizeof(gpi__plain_params)},
                  {"gemmepi_small", sizeof(gpi__plain_params)},
                  {"gemmepi_outer", sizeof(gpi__plain_params)},
                  {"gemmepi_sm80", sizeof(gpi__sm80_params)},
                  {"gemmepi_sm90", sizeof(gpi__sm90_params)},
                  {"gemmepi_weights", sizeof(gpi__plain_params)},
                  {"gemmepi_sum_columns", sizeof(gpi__reduce_params)},
                  {"gemmepi_sum_rows", sizeof(gpi__reduce_params)},
                  {"gemmepi_sum_groups", sizeof(gpi__reduce_params)},
                  {"gemmepi_sum_kept", sizeof(gpi__sum_params)},
                  {"gemmepi_sum_along", sizeof(gpi__sum_params)},
                  {"gemmepi_scaled", sizeof(gpi__scaled_params)},
                  {"gemmepi_strided", sizeof(gpi__strided_params)},
                  {"gemmepi_elementwise", sizeof(gpi__contiguous_params)},
                  {"gemmepi_convert", sizeof(gpi__convert_params)},
                  {"gemmepi_pack", sizeof(gpi__convert_params)},
                  {"gemmepi_transpose", sizeof(gpi__convert_params)},
                  {"gemmepi_groups", sizeof(gpi__groups_params)},
                  {"gemmepi_gather", sizeof(gpi__gather_params)},
                  {"gemmepi_maps", sizeof(gpi__maps_params)},
                  {"gemmepi_scale_of_history", sizeof(gpi__history_params)},
                  {"gemmepi_find_scales", sizeof(gpi__scaled_params)},
                  {"gemmepi_formula_pass", sizeof(gpi__formula_pass_params)},
                  {"gemmepi_formula_reduce", sizeof(gpi__formula_reduce_params)}};

/* Whether it is an address of this process, which is another each time: those of tensors and workspace are not. */
static int is_of_process(uint64_t word) {
    return word >= (uint64_t)0x54 << 40 && word < (uint64_t)0x80 << 40;
}

static void append_parameters(const fake_launch *launch) {
    const unsigned char *at = (const unsigned char *)launch->params;
    uint64_t hash = GPI__HASH_START, word;
    size_t i = 0, size;
    while (i < GPI__COUNT(parameters) &&
           strncmp(launch->entry, parameters[i].entry, strlen(parameters[i].entry)) != 0)
        i++;
    CHECK(i < GPI__COUNT(parameters), "what has %s for parameters?", launch->entry);
    size = i < GPI__COUNT(parameters) ? parameters[i].size : 0;
    for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = gpi__hash_word(hash, is_of_process(word) ? 1 : word);
    }
    gpi__append(&line, " given %08x", (unsigned)(hash >> 32));
}

static void see_launch(const fake_launch *launch) {
    gpi__append(&line, " | %s %u x %u", launch->entry, launch->grid, launch->block_x);
    if (launch->block_y != 1)
        gpi__append(&line, " x %u", launch->block_y);
    if (launch->shared)
        gpi__append(&line, ", %u bytes", launch->shared);
    append_parameters(launch);
}

static uint64_t hash_address(uint64_t hash, const void *pointer) {
    return gpi__hash_word(hash, is_of_process((uintptr_t)pointer) ? 1 : (uintptr_t)pointer);
}

static void see_product(const fake_product *product) {
    uint64_t hash = product->described;
    int i;
    for (i = 0; i < 4; i++)
        hash = hash_address(gpi__hash_word(hash, product->layouts[i]), product->pointers[i]);
    hash = gpi__hash_word(hash_address(hash, product->workspace), product->workspace_size);
    gpi__append(&line, " | cuBLASLt %g %g given %08x", (double)product->alpha, (double)product->beta,
                (unsigned)hash);
}

static void see_clearing(const void *to, unsigned char value, size_t size) {
    gpi__append(&line, " | %d to %llu bytes at %08x", value, (gpi__ull)size,
                (unsigned)(hash_address(GPI__HASH_START, to) >> 32));
}

/* The lines with which a source begins: all that is compiled in but for the kernel's name. */
static void see_source(const char *file, const char *source) {
    (void)file;
    while (strncmp(source, "#define ", 8) == 0) {
        const char *end = strchr(source, '\n');
        size_t length = end ? (size_t)(end - source) : strlen(source);
        if (strncmp(source, "#define gemmepi_", 16) != 0)
            compiled = gpi__hash_word(compiled, gpi__hash(source, length));
        source += length + (end != NULL);
    }
}

static unsigned open_routes; /* config.routes; 0: all */

static gemmepi_context *open_recorded(int arch) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    config.routes = open_routes;
    config.allocator.alloc = NULL, config.allocator.free = NULL;
    gpu.other_arch = arch;
    context = open_fake(&config);
    gpu.is_untouched = 1;
    gpu.watch = see_launch, gpu.reads = see_source, gpu.multiplies = see_product, gpu.clears = see_clearing;
    line = gpi__text_in(line_data, sizeof line_data);
    compiled = 0;
    return context;
}

/* >>lines against the record */

static char *record; /* the file */
static FILE *written;
static const char *shown;
static int lines, differ;

/* What the record has for the words with which a line begins, up to ':'; NULL: nothing. */
static const char *recorded_line(const char *now, size_t *length) {
    size_t words = (size_t)(strchr(now, ':') - now) + 1;
    const char *at = record;
    while (at && strncmp(at, now, words) != 0)
        at = (at = strchr(at, '\n')) != NULL && at[1] ? at + 1 : NULL;
    *length = at ? strcspn(at, "\n") : 0;
    return at;
}

static void compare_line(void) {
    const char *was;
    size_t length;
    lines++;
    CHECK(!gpi__text_is_cut(&line), "a line is too long");
    if (shown && strncmp(line_data, shown, strlen(shown)) == 0)
        printf("%s\n", line_data);
    if (written)
        fprintf(written, "%s\n", line_data);
    if (written || shown)
        return;
    was = recorded_line(line_data, &length);
    if (was && strlen(line_data) == length && strncmp(was, line_data, length) == 0)
        return;
    differ++;
    CHECK(0, "another choice than is recorded:\n    is  %s\n    was %.*s", line_data, was ? (int)length : 4,
          was ? was : "none");
}

static void close_recorded(gemmepi_context *context) {
    gpu.watch = NULL, gpu.reads = NULL, gpu.multiplies = NULL, gpu.clears = NULL;
    gemmepi_destroy(context);
    gpu.other_arch = 0;
}

static void end_line(gemmepi_context *context) {
    gpi__append(&line, " | compiled %016llx", (gpi__ull)compiled);
    close_recorded(context);
    compare_line();
}

static void append_plan(const gemmepi_plan *plan) {
    gemmepi_plan_details details;
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpi__append(&line, " %s, %d launches, workspace %llu, tile %d x %d", details.route_name, details.launches,
                (gpi__ull)details.workspace_size, details.tile_m, details.tile_n);
}

/* The sum of the estimates of every way to run a product, and how many there are. */
static void append_ways(const gemmepi_context *context, const gemmepi_matmul_desc *desc) {
    static gpi__ways ways;
    gpi__candidates candidates;
    gpi__problem problem;
    double sum = 0, ranks = 0;
    int i;
    if (desc->formula || gpi__normalise(desc, 16, &problem) || gpi__is_empty(&problem))
        return;
    gpi__enumerate_ways(context, &problem, &ways);
    for (i = 0; i < ways.count; i++)
        sum += ways.list[i].microseconds;
    memset(&candidates, 0, sizeof candidates);
    gpi__enumerate(context, &problem, gpi__may_have_unit_alpha(&problem), &candidates);
    for (i = 0; i < candidates.count; i++)
        ranks +=
            candidates.list[i].refusal || candidates.list[i].rank >= GPI__NEVER ? 0 : candidates.list[i].rank;
    gpi__append(&line, " | %d ways of %.6g us, %d candidates of %.6g", ways.count, sum, candidates.count,
                ranks);
}

/* >>numbers that are drawn: Knuth's MMIX generator */

static uint64_t state;

static int below(int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static void *place(int i) {
    return (void *)(uintptr_t)((uint64_t)(i + 1) << 40);
}

static int any_extent(void) {
    static const int extents[] = {1, 3, 8, 16, 40, 64, 130, 256, 500, 1024, 2048, 4096, 4100, 7168, 16384};
    return extents[below((int)GPI__COUNT(extents))];
}

/* >>products */

typedef struct drawn_type {
    const char *name;
    gemmepi_dtype a, b, d;
    gemmepi_compute compute;
} drawn_type;

static const drawn_type types[] = {
    {"bf16", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"f16 to f32", GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT},
    {"bf16 again", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"f32", GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT},
    {"tf32", GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_TF32},
    {"e4m3", GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"weights in i8", GEMMEPI_BF16, GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"i8", GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I32, GEMMEPI_COMPUTE_DEFAULT},
    {"f64", GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_COMPUTE_DEFAULT},
    {"bf16 by f32", GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT}};

static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE,
                                             GEMMEPI_SILU | GEMMEPI_BIAS,
                                             GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX,
                                             GEMMEPI_GELU_TANH | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
                                             GEMMEPI_GELU_ERF | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
                                             GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS,
                                             GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX,
                                             GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                                             GEMMEPI_RELU | GEMMEPI_BACKWARD,
                                             GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                                             GEMMEPI_TANH | GEMMEPI_GATED | GEMMEPI_BACKWARD |
                                                 GEMMEPI_UPSTREAM | GEMMEPI_BIAS,
                                             GEMMEPI_BGRAD_A,
                                             GEMMEPI_BGRAD_B,
                                             GEMMEPI_BIAS};

/* What fewer have. */
static void vary_product(gemmepi_matmul_desc *desc) {
    switch (below(9)) {
    case 0:
        if (!desc->a.transposed && !desc->b.transposed &&
            !(desc->epilogue & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B)))
            desc->order = GEMMEPI_COLUMN_MAJOR, desc->a.ld = desc->d.ld = 0;
        break;
    case 1:
        desc->flags = GEMMEPI_DEVICE_SCALARS;
        break;
    case 2:
        if (gpi__activation(desc->epilogue) == GEMMEPI_NONE && !(desc->epilogue & GEMMEPI_GATED))
            desc->flags = GEMMEPI_ACCUMULATE;
        break;
    case 3:
        if (desc->d.dtype == GEMMEPI_BF16)
            desc->d.dtype = GEMMEPI_E4M3, desc->d.scale.mode = GEMMEPI_SCALE_TENSOR,
            desc->flags = GEMMEPI_AMAX_D;
        break;
    case 4:
        if (desc->epilogue & (GEMMEPI_BGRAD | GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
            desc->epilogue |= GEMMEPI_ACCUMULATE_BIAS_GRAD, desc->bias_grad.dtype = GEMMEPI_F32;
        break;
    case 5:
        if (desc->d.dtype == GEMMEPI_BF16)
            desc->bias.dtype = desc->residual.dtype = desc->c.dtype = GEMMEPI_F32;
        break;
    case 6:
        if (!(desc->epilogue & ~(gemmepi_epilogue)GEMMEPI_BIAS))
            desc->epilogue |= GEMMEPI_LEAKY_RELU, desc->has_parameter = 1, desc->activation_parameter = 0.125;
        break;
    case 7:
        desc->k = 0, desc->a.ld = desc->a.batch_stride = 0;
        break;
    default:
        break;
    }
}

static gemmepi_matmul_desc any_product(const drawn_type **type) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    *type = &types[below((int)GPI__COUNT(types))];
    desc.m = any_extent(), desc.n = any_extent(), desc.k = any_extent();
    desc.batch = below(4) ? 1 : 3;
    desc.a.dtype = (*type)->a, desc.b.dtype = (*type)->b, desc.d.dtype = (*type)->d,
    desc.compute = (*type)->compute;
    desc.a.transposed = below(4) == 0, desc.b.transposed = below(2);
    desc.epilogue = below(3) ? epilogues[below((int)GPI__COUNT(epilogues))] : GEMMEPI_NONE;
    if (desc.epilogue & GEMMEPI_GATED)
        desc.n += desc.n % 2;
    if (below(6) == 0)
        desc.d.ld = 2 * desc.n + below(9);
    if (below(6) == 0)
        desc.a.ld = (desc.a.transposed ? desc.m : desc.k) + below(9);
    if (desc.batch > 1) {
        desc.a.batch_stride = desc.m * desc.k * 2, desc.d.batch_stride = 2 * desc.m * (2 * desc.n + 9);
        desc.b.batch_stride = below(2) ? desc.n * desc.k : 0;
        desc.aux.batch_stride = desc.residual.batch_stride = 2 * desc.m * ((desc.n + 127) / 128 * 128);
    }
    if ((*type)->a == GEMMEPI_E4M3 && below(2))
        desc.a.scale.mode = (gemmepi_scale_mode)(1 + below(3)),
        desc.b.scale.mode = (gemmepi_scale_mode)(1 + below(4));
    if ((*type)->a == GEMMEPI_E4M3 && below(3) == 0)
        desc.flags |= GEMMEPI_FAST_ACCUMULATION;
    if ((*type)->b == GEMMEPI_I8 && (*type)->a == GEMMEPI_BF16)
        desc.b.scale.mode = GEMMEPI_SCALE_OUTER, desc.m = 1 + desc.m % 64;
    if ((*type)->d == GEMMEPI_BF16 && below(8) == 0)
        desc.d.dtype = GEMMEPI_E4M3, desc.d.scale.mode = (gemmepi_scale_mode)(1 + below(3)),
        desc.flags |= GEMMEPI_FIND_SCALE_D,
        desc.amax_history = desc.d.scale.mode == GEMMEPI_SCALE_TENSOR ? 16 : 0;
    if (below(10) == 0)
        desc.flags |= GEMMEPI_BATCH_INVARIANT;
    if (below(10) == 0)
        desc.flags |= GEMMEPI_RELAXED;
    if (!desc.flags)
        vary_product(&desc);
    return desc;
}

static void point_product(const gemmepi_matmul_desc *desc, gemmepi_matmul_args *args) {
    gemmepi_epilogue_needs needs;
    memset(args, 0, sizeof *args);
    CHECK(gemmepi_epilogue_info(desc, &needs) == GEMMEPI_OK, "%s", gemmepi_last_error());
    args->a = place(0), args->b = place(1), args->d = place(2);
    args->bias = needs.reads_bias ? place(3) : NULL;
    args->aux = needs.reads_aux || needs.writes_aux ? place(4) : NULL;
    args->residual = needs.reads_residual ? place(5) : NULL;
    args->bias_grad = needs.writes_bias_grad ? place(6) : NULL;
    args->scale_a = desc->a.scale.mode ? (float *)place(7) : NULL;
    args->scale_b = desc->b.scale.mode ? (float *)place(8) : NULL;
    args->found_scale_d = desc->flags & GEMMEPI_FIND_SCALE_D ? (float *)place(9) : NULL;
    args->amax_history = desc->amax_history ? (float *)place(10) : NULL;
    args->scale_d = desc->d.scale.mode && !args->found_scale_d ? (float *)place(13) : NULL;
    args->amax_d = desc->flags & GEMMEPI_AMAX_D ? place(14) : NULL;
    if (desc->flags & GEMMEPI_DEVICE_SCALARS)
        args->alpha = place(15), args->beta = place(16), args->c = place(17);
    args->workspace = place(11), args->workspace_size = (size_t)1 << 40;
}

/* Once more, with alpha and C. */
static void run_with_c(gemmepi_plan *plan, const gemmepi_matmul_desc *desc, gemmepi_matmul_args args) {
    static const double two = 2, three = 3;
    gemmepi_status status;
    args.alpha = &two;
    if (!(desc->flags & GEMMEPI_ACCUMULATE))
        args.beta = &three, args.c = place(17);
    gpi__append(&line, " | with C");
    status = gemmepi_run_matmul(plan, &args, NULL);
    if (status)
        gpi__append(&line, " %s", gemmepi_status_name(status));
}

static void record_product(int arch, const char *name, const gemmepi_matmul_desc *desc,
                           const gemmepi_matmul_args *args) {
    gemmepi_context *context = open_recorded(arch);
    gemmepi_plan *plan = NULL;
    gpi__append(&line, "%s:", name);
    if (gemmepi_plan_matmul(context, desc, &plan) == GEMMEPI_OK) {
        append_plan(plan);
        append_ways(context, desc);
        CHECK(gemmepi_run_matmul(plan, args, NULL) == GEMMEPI_OK, "%s: %s", name, gemmepi_last_error());
        if (below(3) == 0 && !args->alpha)
            run_with_c(plan, desc, *args);
    } else {
        CHECK(sentence_has("no route"), "%s: %s", name, gemmepi_last_error());
        gpi__append(&line, " no route");
    }
    gemmepi_plan_destroy(plan);
    end_line(context);
}

static const int archs[] = {90, 90, 80, 90, 89, 75, 100, 120, 90, 86};

static void products_are_planned_as_recorded(void) {
    int i;
    state = 1;
    for (i = 0; i < 340; i++) {
        int arch = archs[i % (int)GPI__COUNT(archs)];
        const drawn_type *type;
        gemmepi_matmul_desc desc = any_product(&type);
        gemmepi_matmul_args args;
        gemmepi_epilogue_needs needs;
        char name[160];
        if (gemmepi_epilogue_info(&desc, &needs) != GEMMEPI_OK)
            continue; /* drawn things do not go together */
        point_product(&desc, &args);
        snprintf(name, sizeof name, "product %d on %d, %s, %dx%dx%d batch %d epilogue 0x%llx", i, arch,
                 type->name, (int)desc.m, (int)desc.n, (int)desc.k, (int)desc.batch, (gpi__ull)desc.epilogue);
        record_product(arch, name, &desc, &args);
    }
}

/* >>sizes at which choices change: found by halving, so that a bound that is off by one shows */

enum { EDGE_DOUBLINGS = 21, MOST_EDGES = 64 };

/* A family of problems of which one size grows: what is chosen for it, as a hash, which says nothing of how many blocks there are. */
typedef uint64_t (*chooser)(gemmepi_context *context, int family, int64_t size);

static uint64_t kinds; /* of what was launched: kernels, and a block's threads and memory */

static void see_kind(const fake_launch *launch) {
    kinds = gpi__hash_word(gpi__hash_word(kinds, launch->block_x), launch->shared);
    kinds = gpi__hash_word(kinds, gpi__hash(launch->entry, strlen(launch->entry)));
}

static uint64_t kind_of_plan(const gemmepi_plan *plan) {
    gemmepi_plan_details details;
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    kinds = gpi__hash(details.kernel, strlen(details.kernel));
    kinds = gpi__hash_word(kinds, (uint64_t)details.route << 32 | (uint64_t)(unsigned)details.launches);
    kinds = gpi__hash_word(kinds, (uint64_t)details.tile_m << 32 | (uint64_t)(unsigned)details.tile_n);
    return gpi__hash_word(kinds, details.workspace_size != 0);
}

/* The sizes in units, from the second of its kind on, of which the unit before has another choice: between neighbours of 1, 2, 4 and
   so on. */
static void record_edges(const char *name, int arch, chooser choose, int family, int64_t unit) {
    gemmepi_context *context = open_recorded(arch);
    int doubling, count = 0;
    uint64_t before;
    gpu.watch = see_kind, gpu.clears = NULL;
    gpi__append(&line, "edges of %s on %d, in units of %d:", name, arch, (int)unit);
    before = choose(context, family, unit);
    for (doubling = 0; doubling < EDGE_DOUBLINGS && count < MOST_EDGES; doubling++) {
        int64_t low = (int64_t)1 << doubling, high = 2 * low;
        uint64_t after = choose(context, family, high * unit);
        while (before != after && high - low > 1) {
            int64_t middle = low + (high - low) / 2;
            if (choose(context, family, middle * unit) == before)
                low = middle;
            else
                high = middle;
        }
        if (before != after)
            gpi__append(&line, " %lld", (long long)high), count++;
        before = after;
    }
    close_recorded(context);
    compare_line();
}

static const struct {
    int type, epilogue, axis; /* axis: m, n, k, batch */
} product_families[] = {{0, 0, 0},  {0, 0, 1},  {0, 0, 2},  {0, 1, 0}, {0, 2, 1},  {0, 3, 0},  {0, 4, 2},
                        {0, 5, 0},  {0, 7, 0},  {0, 7, 2},  {0, 8, 1}, {0, 9, 0},  {0, 11, 2}, {0, 12, 0},
                        {0, 13, 3}, {1, 0, 0},  {1, 13, 2}, {3, 0, 0}, {3, 1, 2},  {4, 0, 1},  {4, 7, 0},
                        {5, 0, 0},  {5, 13, 2}, {5, 1, 1},  {6, 0, 0}, {6, 13, 1}, {6, 0, 2},  {7, 0, 0},
                        {7, 0, 2},  {8, 0, 0},  {9, 1, 2},  {9, 0, 0}};

static uint64_t chosen_for_product(gemmepi_context *context, int family, int64_t size) {
    const drawn_type *type = &types[product_families[family].type];
    gemmepi_matmul_desc desc;
    gemmepi_plan *plan = NULL;
    uint64_t hash;
    int axis = product_families[family].axis;
    memset(&desc, 0, sizeof desc);
    desc.m = axis == 0 ? size : axis == 3 ? 48 : 512, desc.n = axis == 1 ? size : 1024;
    desc.k = axis == 2 ? size : 1024, desc.batch = axis == 3 ? size : 1;
    desc.a.dtype = type->a, desc.b.dtype = type->b, desc.d.dtype = type->d, desc.compute = type->compute;
    desc.b.transposed = type->a == GEMMEPI_E4M3 || type->a == GEMMEPI_I8;
    desc.epilogue = epilogues[product_families[family].epilogue];
    if (type->b == GEMMEPI_I8 && type->a == GEMMEPI_BF16)
        desc.b.scale.mode = GEMMEPI_SCALE_OUTER, desc.m = axis == 0 ? size : 24;
    if (gemmepi_plan_matmul(context, &desc, &plan) != GEMMEPI_OK)
        return 0;
    hash = kind_of_plan(plan);
    gemmepi_plan_destroy(plan);
    return hash;
}

static void sizes_at_which_products_change_are_as_recorded(void) {
    static const char axes[] = "mnkb";
    int i;
    for (i = 0; i < (int)GPI__COUNT(product_families); i++) {
        char name[80];
        int axis = product_families[i].axis;
        snprintf(name, sizeof name, "%c of %s with 0x%llx", axes[axis], types[product_families[i].type].name,
                 (gpi__ull)epilogues[product_families[i].epilogue]);
        record_edges(name, i % 4 == 3 ? 80 : 90, chosen_for_product, i, axis == 1 || axis == 2 ? 16 : 1);
    }
}

/* >>rare products, some in a line */

static int at_a_border(void) {
    static const int extents[] = {1,    2,    4,    7,     8,     15,    16,     24,     31,    32,
                                  33,   48,   63,   64,    65,    80,    96,     127,    128,   129,
                                  160,  192,  255,  256,   257,   320,   384,    511,    512,   513,
                                  640,  768,  1023, 1024,  1025,  1536,  2047,   2048,   2049,  4095,
                                  4096, 4097, 8192, 16384, 32768, 65536, 131071, 131072, 262144};
    return extents[below((int)GPI__COUNT(extents))];
}

static int is_lean; /* the product drawn has one thing or another that others have not, and little else */

/* Dense, or with a few elements between lines. */
static int64_t any_ld(int64_t dense) {
    static const int more[] = {1, 2, 4, 8, 16, 64};
    return below(is_lean ? 16 : 4) ? 0 : dense + more[below(6)];
}

static gemmepi_dtype any_dtype(gemmepi_dtype usual) {
    static const gemmepi_dtype all[] = {GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_E5M2};
    return below(is_lean ? 24 : 6) ? usual : all[below(5)];
}

static gemmepi_epilogue rare_epilogue(void) {
    static const gemmepi_epilogue activations[] = {GEMMEPI_NONE,      GEMMEPI_NONE, GEMMEPI_RELU,
                                                   GEMMEPI_GELU_TANH, GEMMEPI_SILU, GEMMEPI_GELU_ERF,
                                                   GEMMEPI_SIGMOID};
    gemmepi_epilogue epilogue = activations[below(7)];
    int kind = below(8);
    epilogue |= below(2) ? GEMMEPI_BIAS : 0;
    if (kind < 2)
        epilogue |= GEMMEPI_BACKWARD | (below(2) ? GEMMEPI_BGRAD : 0) | (below(4) ? 0 : GEMMEPI_UPSTREAM);
    else if (kind < 4)
        epilogue |= GEMMEPI_AUX;
    else if (kind == 4)
        epilogue |= below(2) ? GEMMEPI_BGRAD_A : GEMMEPI_BGRAD_B;
    return epilogue | (below(4) ? 0 : GEMMEPI_RESIDUAL) | (below(4) ? 0 : GEMMEPI_GATED);
}

static void rare_matrix(gemmepi_matrix *matrix, int64_t lines, int64_t length, int64_t batch) {
    matrix->ld = any_ld(length);
    matrix->batch_stride =
        batch > 1 ? lines * (matrix->ld ? matrix->ld : length) + 8 * below(2) + (below(8) == 0) : 0;
}

static gemmepi_scale_mode scale_of_one(gemmepi_dtype dtype) {
    return gpi__is_fp8(dtype) && below(2) ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
}

static gemmepi_matmul_desc rare_product(void) {
    static const gemmepi_dtype factors[][2] = {
        {GEMMEPI_BF16, GEMMEPI_BF16}, {GEMMEPI_F16, GEMMEPI_F16},   {GEMMEPI_F32, GEMMEPI_F32},
        {GEMMEPI_E4M3, GEMMEPI_E4M3}, {GEMMEPI_E5M2, GEMMEPI_E4M3}, {GEMMEPI_BF16, GEMMEPI_I8},
        {GEMMEPI_I8, GEMMEPI_I8},     {GEMMEPI_F64, GEMMEPI_F64},   {GEMMEPI_BF16, GEMMEPI_BF16}};
    static const gemmepi_dtype results[] = {GEMMEPI_BF16, GEMMEPI_F16,  GEMMEPI_F32,
                                            GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16,
                                            GEMMEPI_I32,  GEMMEPI_F64,  GEMMEPI_F32};
    static const int alignments[] = {0, 0, 0, 16, 8, 4, 2};
    int type = below(9), rarely;
    gemmepi_matmul_desc desc;
    is_lean = below(2), rarely = is_lean ? 6 : 1;
    memset(&desc, 0, sizeof desc);
    desc.m = at_a_border(), desc.n = at_a_border(), desc.k = at_a_border();
    desc.batch = below(3) ? 1 : 1 + below(4);
    desc.a.dtype = factors[type][0], desc.b.dtype = factors[type][1];
    desc.d.dtype = type < 6 ? any_dtype(results[type]) : results[type];
    desc.compute = type == 2 && below(2) ? GEMMEPI_COMPUTE_TF32 : GEMMEPI_COMPUTE_DEFAULT;
    desc.a.transposed = below(3) == 0, desc.b.transposed = below(2);
    desc.epilogue = rare_epilogue();
    desc.n += desc.epilogue & GEMMEPI_GATED ? desc.n % 2 : 0;
    rare_matrix(&desc.a, desc.m + desc.k, desc.a.transposed ? desc.m : desc.k, desc.batch);
    rare_matrix(&desc.b, desc.n + desc.k, desc.b.transposed ? desc.k : desc.n, desc.batch);
    rare_matrix(&desc.d, desc.m, 2 * desc.n, desc.batch);
    if (desc.epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD))
        rare_matrix(&desc.aux, desc.m, 2 * desc.n, desc.batch),
            desc.aux.dtype = any_dtype(GEMMEPI_DTYPE_DEFAULT);
    if (gpi__activation(desc.epilogue) == GEMMEPI_RELU &&
        !(desc.epilogue & (GEMMEPI_GATED | GEMMEPI_UPSTREAM)))
        desc.aux.dtype = GEMMEPI_DTYPE_DEFAULT, desc.aux.ld = 0,
        desc.aux.batch_stride = desc.aux.batch_stride ? desc.m * ((desc.n + 127) / 128 * 128) : 0;
    if (desc.epilogue & GEMMEPI_RESIDUAL)
        rare_matrix(&desc.residual, desc.m, 2 * desc.n, desc.batch),
            desc.residual.dtype = any_dtype(GEMMEPI_DTYPE_DEFAULT);
    if (below(5) == 0)
        rare_matrix(&desc.c, desc.m, 2 * desc.n, desc.batch), desc.c.dtype = any_dtype(GEMMEPI_DTYPE_DEFAULT);
    if (desc.epilogue & GEMMEPI_BIAS && below(4) == 0)
        desc.bias.dtype = GEMMEPI_F32;
    if (desc.epilogue & (GEMMEPI_BGRAD | GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        desc.bias_grad.dtype = below(2) ? GEMMEPI_F32 : GEMMEPI_DTYPE_DEFAULT,
        desc.bias_grad.batch_stride = below(2) && desc.batch > 1 ? 4 * (desc.n + desc.m) : 0;
    if (gpi__is_fp8(desc.a.dtype) && below(4))
        desc.a.scale.mode = (gemmepi_scale_mode)below(5), desc.b.scale.mode = (gemmepi_scale_mode)below(5);
    if (desc.a.scale.mode > GEMMEPI_SCALE_TENSOR && desc.batch > 1 && below(2))
        desc.a.scale.batch_stride = 1 << 22;
    desc.c.scale.mode = scale_of_one(desc.c.dtype), desc.aux.scale.mode = scale_of_one(desc.aux.dtype);
    desc.residual.scale.mode = scale_of_one(desc.residual.dtype);
    if (desc.b.dtype == GEMMEPI_I8 && desc.a.dtype == GEMMEPI_BF16)
        desc.b.scale.mode = below(2) ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_VECTOR_128;
    if (gpi__is_fp8(desc.d.dtype))
        desc.d.scale.mode = (gemmepi_scale_mode)(below(3) ? GEMMEPI_SCALE_TENSOR : 2 + below(2));
    if (desc.d.scale.mode && below(3) == 0)
        desc.flags |= GEMMEPI_FIND_SCALE_D | (below(2) ? GEMMEPI_POWER_OF_TWO_SCALE : 0),
            desc.amax_history = desc.d.scale.mode == GEMMEPI_SCALE_TENSOR ? 16 : 0;
    desc.flags |=
        (below(4 * rarely) ? 0 : GEMMEPI_RELAXED) | (below(8 * rarely) ? 0 : GEMMEPI_BATCH_INVARIANT) |
        (below(8 * rarely) ? 0 : GEMMEPI_FAST_ACCUMULATION) | (below(8 * rarely) ? 0 : GEMMEPI_AMAX_D) |
        (below(12 * rarely) ? 0 : GEMMEPI_AMAX_AUX) | (below(12 * rarely) ? 0 : GEMMEPI_DEVICE_SCALARS);
    desc.alignment = is_lean ? 0 : (size_t)alignments[below(7)];
    return desc;
}

/* What keeps each candidate from it, and how good the others are. */
static void append_refusals(const gemmepi_context *context, const gpi__problem *problem) {
    gpi__candidates candidates;
    int unit_alpha, i;
    for (unit_alpha = 0; unit_alpha < 2; unit_alpha++) {
        if (unit_alpha && !gpi__may_have_unit_alpha(problem))
            continue;
        memset(&candidates, 0, sizeof candidates);
        gpi__enumerate(context, problem, unit_alpha, &candidates);
        for (i = 0; i < candidates.count; i++)
            gpi__append(&line, " %.4g%s", candidates.list[i].refusal ? 0 : candidates.list[i].rank,
                        candidates.list[i].refusal ? candidates.list[i].refusal : "");
    }
}

enum { IN_A_LINE = 20 };

/* Routes that a context has: as rules of speed leave some products to a few alone. */
static unsigned rare_routes(void) {
    static const unsigned without[] = {0,
                                       0,
                                       0,
                                       1u << GEMMEPI_ROUTE_FUSED,
                                       1u << GEMMEPI_ROUTE_FUSED,
                                       1u << GEMMEPI_ROUTE_FUSED | 1u << GEMMEPI_ROUTE_LT,
                                       1u << GEMMEPI_ROUTE_FUSED | 1u << GEMMEPI_ROUTE_LT |
                                           1u << GEMMEPI_ROUTE_SPLIT};
    unsigned out = without[below(7)];
    return out ? (1u << GEMMEPI_ROUTE_FUSED | 1u << GEMMEPI_ROUTE_LT | 1u << GEMMEPI_ROUTE_SPLIT |
                  1u << GEMMEPI_ROUTE_PLAIN) &
                     ~out
               : 0;
}

/* The hash of what one rare product comes to; 0: it is refused. */
static uint64_t one_rare_product(int number, const char *prefix) {
    int arch = archs[number % (int)GPI__COUNT(archs)];
    gemmepi_matmul_desc desc = rare_product();
    gemmepi_context *context;
    gemmepi_matmul_args args;
    gpi__problem problem;
    gemmepi_plan *plan = NULL;
    uint64_t hash;
    static const double two = 2;
    if (gpi__normalise(&desc, 16, &problem) != GEMMEPI_OK || gpi__is_empty(&problem))
        return 0;
    open_routes = rare_routes();
    context = open_recorded(arch);
    open_routes = 0;
    append_refusals(context, &problem);
    point_product(&desc, &args);
    args.amax_aux = desc.flags & GEMMEPI_AMAX_AUX ? place(18) : NULL;
    args.scale_aux = desc.aux.scale.mode ? (float *)place(19) : NULL;
    args.scale_residual = desc.residual.scale.mode ? (float *)place(20) : NULL;
    if (desc.c.dtype || below(6) == 0)
        args.alpha = args.alpha ? args.alpha : &two, args.beta = args.beta ? args.beta : &two,
        args.c = place(17), args.scale_c = desc.c.scale.mode ? (float *)place(21) : NULL;
    if (gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK) {
        append_plan(plan);
        if (gemmepi_run_matmul(plan, &args, NULL) != GEMMEPI_OK)
            gpi__append(&line, " %s", gemmepi_last_error());
    }
    gemmepi_plan_destroy(plan);
    hash = gpi__hash_word(gpi__hash(line_data, strlen(line_data)), compiled);
    if (shown && strncmp(prefix, shown, strlen(shown)) == 0)
        printf("%s %d: on %d, %dx%dx%d epilogue 0x%llx:%s\n", prefix, number, arch, (int)desc.m, (int)desc.n,
               (int)desc.k, (gpi__ull)desc.epilogue, line_data);
    close_recorded(context);
    return hash;
}

/* Lines of so many cases each. */
static void record_rare(const char *what, uint64_t (*one)(int number, const char *prefix), int count) {
    int i, j;
    for (i = 0; i < count; i++) {
        char name[32];
        uint64_t sum = GPI__HASH_START, hash;
        int accepted = 0;
        snprintf(name, sizeof name, "%s %d:", what, i);
        for (j = 0; j < IN_A_LINE; j++)
            if ((hash = one(i * IN_A_LINE + j, name)) != 0)
                sum = gpi__hash_word(sum, hash), accepted++;
        line = gpi__text_in(line_data, sizeof line_data);
        gpi__append(&line, "%s %d of %d accepted, %016llx", name, accepted, (int)IN_A_LINE, (gpi__ull)sum);
        compare_line();
    }
}

static void rare_products_are_planned_as_recorded(void) {
    state = 6;
    record_rare("rare", one_rare_product, 300);
}

static void clear_items(gemmepi_matrix *matrix) {
    matrix->batch_stride = matrix->scale.batch_stride = 0;
}

static gemmepi_grouped_desc rare_groups(void) {
    gemmepi_grouped_desc desc;
    gemmepi_matmul_desc *product = &desc.product;
    memset(&desc, 0, sizeof desc);
    *product = rare_product();
    product->batch = 0;
    clear_items(&product->a), clear_items(&product->b), clear_items(&product->c), clear_items(&product->d);
    clear_items(&product->aux), clear_items(&product->residual);
    product->bias.batch_stride = product->bias_grad.batch_stride = 0;
    product->m = product->m > 1 << 15 ? 1 << 15 : product->m,
    product->k = product->k > 1 << 15 ? 1 << 15 : product->k;
    desc.groups = below(3) ? 1 << below(8) : 1 + below(300);
    desc.grouping = below(3) ? GEMMEPI_GROUPS_OF_ROWS : GEMMEPI_GROUPS_OF_K;
    if (below(4))
        product->a.ld = product->b.ld = 0, product->a.transposed = desc.grouping == GEMMEPI_GROUPS_OF_K;
    desc.gather_a = below(3) ? 0 : 1000 + 8 * below(3);
    desc.gather_b = desc.grouping == GEMMEPI_GROUPS_OF_K && below(3) == 0 ? 1000 : 0;
    if (desc.grouping == GEMMEPI_GROUPS_OF_ROWS)
        desc.scatter_d = below(3) ? 0 : 70000, desc.weighted = below(4) == 0;
    else if (below(2))
        product->epilogue &= GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B, memset(&product->aux, 0, sizeof product->aux),
            memset(&product->residual, 0, sizeof product->residual),
            product->bias.dtype = GEMMEPI_DTYPE_DEFAULT;
    return desc;
}

static uint64_t one_rare_grouped(int number, const char *prefix) {
    gemmepi_grouped_desc desc = rare_groups();
    gemmepi_context *context = open_recorded(number % 4 ? 90 : archs[number % (int)GPI__COUNT(archs)]);
    gemmepi_grouped_args args;
    gemmepi_epilogue_needs needs;
    gemmepi_plan *plan = NULL;
    uint64_t hash = 0;
    memset(&args, 0, sizeof args);
    if (gemmepi_epilogue_info(&desc.product, &needs) == GEMMEPI_OK &&
        gemmepi_plan_grouped(context, &desc, &plan) == GEMMEPI_OK) {
        append_plan(plan);
        point_product(&desc.product, &args.product);
        args.product.amax_aux = desc.product.flags & GEMMEPI_AMAX_AUX ? place(18) : NULL;
        args.product.scale_aux = desc.product.aux.scale.mode ? (float *)place(19) : NULL;
        args.product.scale_residual = desc.product.residual.scale.mode ? (float *)place(20) : NULL;
        args.ends = (const int32_t *)place(22);
        args.index_a = desc.gather_a ? (const int32_t *)place(23) : NULL;
        args.index_b = desc.gather_b ? (const int32_t *)place(24) : NULL;
        args.index_d = desc.scatter_d ? (const int32_t *)place(25) : NULL;
        args.weights = desc.weighted ? (const float *)place(26) : NULL;
        if (gemmepi_run_grouped(plan, &args, NULL) != GEMMEPI_OK)
            gpi__append(&line, " %s", gemmepi_last_error());
        hash = gpi__hash_word(gpi__hash(line_data, strlen(line_data)), compiled);
    }
    if (shown && strncmp(prefix, shown, strlen(shown)) == 0)
        printf("%s %d: %d groups of %s, %dx%dx%d epilogue 0x%llx:%s\n", prefix, number, desc.groups,
               desc.grouping == GEMMEPI_GROUPS_OF_K ? "k" : "rows", (int)desc.product.m, (int)desc.product.n,
               (int)desc.product.k, (gpi__ull)desc.product.epilogue, hash ? line_data : gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    close_recorded(context);
    return hash;
}

static void rare_groups_are_planned_as_recorded(void) {
    state = 7;
    record_rare("rare groups", one_rare_grouped, 60);
}

/* >>rare products with formulas: those of the corpus, and what epilogues say as formulas */

static char *corpus_texts[512];
static int corpus_count;

static void read_corpus(void) {
    FILE *file = fopen("tests/unit/formula_corpus.txt", "r");
    char text[8192];
    while (file && fgets(text, sizeof text, file) && corpus_count < (int)GPI__COUNT(corpus_texts)) {
        text[strcspn(text, "\n")] = 0;
        corpus_texts[corpus_count] = (char *)malloc(strlen(text) + 1);
        strcpy(corpus_texts[corpus_count++], text);
    }
    if (file)
        fclose(file);
}

static const char *rare_text(void) {
    static const char *const composed[] = {"d = silu(v + b) + r",
                                           "d = relu(v)",
                                           "d = gelu_tanh(v + b)",
                                           "d = left(v) * silu(right(v)) + h",
                                           "o = v + b; d = silu(v + b)",
                                           "d = v * d_silu(r)",
                                           "d = v * d_gelu_erf(r) + u",
                                           "d = v * d_silu(r); cs = column_sum(d)",
                                           "d = v + b + r",
                                           "d = leaky_relu(v, 0.25)",
                                           "d = v + r; rs = row_logsumexp(v)",
                                           "d = silu(v); rt = row_max(v); rs = row_sum(v * v)"};
    return below(3) ? corpus_texts[below(corpus_count)] : composed[below((int)GPI__COUNT(composed))];
}

static void rare_operand(gemmepi_operand *o, const gemmepi_matmul_desc *desc) {
    int64_t columns = o->width == GEMMEPI_WIDTH_DOUBLE ? 2 * desc->n
                      : o->width == GEMMEPI_WIDTH_HALF ? desc->n / 2
                                                       : desc->n;
    int is_number = o->dtype == GEMMEPI_I32 || o->dtype == GEMMEPI_I64 || o->kind == GEMMEPI_NUMBER;
    if (o->kind == GEMMEPI_FULL && !is_number) {
        o->dtype = any_dtype(o->dtype);
        o->scale.mode = scale_of_one(o->dtype);
        o->amax = o->output && gpi__is_fp8(o->dtype) && below(2);
        o->ld = any_ld(columns);
        o->column_period = !o->output && !o->ld && below(10) == 0 ? 8 : 0;
        o->row_period = !o->output && below(10) == 0 ? 3 : 0;
    } else if (!is_number && !o->output) {
        o->dtype = below(4) ? o->dtype : GEMMEPI_F32;
    }
    if (o->output && o->kind != GEMMEPI_FULL && below(4) == 0)
        o->accumulate = 1;
    if (desc->batch > 1 && o->kind != GEMMEPI_NUMBER && (o->output || below(2)))
        o->batch_stride = o->kind == GEMMEPI_FULL         ? desc->m * (o->ld ? o->ld : columns)
                          : o->kind == GEMMEPI_PER_ROW    ? desc->m
                          : o->kind == GEMMEPI_PER_COLUMN ? columns
                                                          : 1;
}

static gemmepi_matmul_desc rare_formula_product(const char *text, gemmepi_operand *operands) {
    static const gemmepi_dtype factors[][2] = {{GEMMEPI_BF16, GEMMEPI_BF16}, {GEMMEPI_F16, GEMMEPI_F16},
                                               {GEMMEPI_F32, GEMMEPI_F32},   {GEMMEPI_E4M3, GEMMEPI_E4M3},
                                               {GEMMEPI_BF16, GEMMEPI_I8},   {GEMMEPI_F64, GEMMEPI_F64},
                                               {GEMMEPI_BF16, GEMMEPI_BF16}};
    int type = below(7), i;
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    is_lean = below(2);
    desc.m = at_a_border(), desc.n = at_a_border(), desc.k = at_a_border();
    desc.m = desc.m > 1 << 15 ? 1 << 15 : desc.m;
    desc.n = below(2) ? (desc.n > 1 << 14 ? 1 << 14 : (desc.n + 127) / 128 * 128) : desc.n + desc.n % 2;
    desc.batch = below(3) ? 1 : 2;
    desc.a.dtype = factors[type][0], desc.b.dtype = factors[type][1];
    desc.d.dtype = type == 5 ? GEMMEPI_F64 : any_dtype(type == 2 ? GEMMEPI_F32 : GEMMEPI_BF16);
    desc.compute = type == 2 && below(2) ? GEMMEPI_COMPUTE_TF32 : GEMMEPI_COMPUTE_DEFAULT;
    desc.b.transposed = below(2), desc.order = below(8) ? GEMMEPI_ROW_MAJOR : GEMMEPI_COLUMN_MAJOR;
    if (desc.batch > 1)
        desc.a.batch_stride = desc.m * desc.k, desc.d.batch_stride = 2 * desc.m * desc.n;
    if (type == 3 && below(2))
        desc.a.scale.mode = (gemmepi_scale_mode)below(5), desc.b.scale.mode = (gemmepi_scale_mode)below(5);
    if (type == 4)
        desc.b.scale.mode = GEMMEPI_SCALE_OUTER;
    desc.d.scale.mode = scale_of_one(desc.d.dtype);
    desc.flags = (below(8) ? 0 : GEMMEPI_RELAXED) | (below(10) ? 0 : GEMMEPI_AMAX_D) |
                 (below(16) ? 0 : GEMMEPI_DEVICE_SCALARS);
    desc.formula = text;
    desc.operands = operands, desc.operand_count = operands_of(text, operands);
    for (i = 0; i < desc.operand_count; i++)
        rare_operand(&operands[i], &desc);
    return desc;
}

static uint64_t one_rare_formula(int number, const char *prefix) {
    static void *pointers[GPI__FORMULA_OPERANDS], *amax[GPI__FORMULA_OPERANDS];
    static const float *scales[GPI__FORMULA_OPERANDS];
    static const double two = 2;
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    const char *text = rare_text();
    gemmepi_matmul_desc desc = rare_formula_product(text, operands);
    gemmepi_context *context;
    gemmepi_matmul_args args;
    gemmepi_plan *plan = NULL;
    uint64_t hash = 0;
    int i;
    desc.alignment = number % 3 ? 0 : (size_t)1 << number % 5;
    open_routes = rare_routes();
    context = open_recorded(archs[number % (int)GPI__COUNT(archs)]);
    open_routes = 0;
    memset(&args, 0, sizeof args);
    args.a = place(0), args.b = place(1), args.d = place(2);
    args.scale_a = desc.a.scale.mode ? (float *)place(7) : NULL,
    args.scale_b = desc.b.scale.mode ? (float *)place(8) : NULL;
    args.scale_d = desc.d.scale.mode ? (float *)place(13) : NULL,
    args.amax_d = desc.flags & GEMMEPI_AMAX_D ? place(14) : NULL;
    if (below(4) == 0)
        args.beta = desc.flags & GEMMEPI_DEVICE_SCALARS ? (const double *)place(16) : &two,
        args.c = place(17);
    for (i = 0; i < desc.operand_count; i++) {
        pointers[i] = place(30 + i);
        if (operands[i].kind == GEMMEPI_NUMBER)
            memcpy(&pointers[i], &(const double *const){&two}, sizeof pointers[i]);
        scales[i] = operands[i].scale.mode ? (const float *)place(60 + i) : NULL;
        amax[i] = operands[i].amax ? place(90 + i) : NULL;
    }
    args.operands = pointers, args.operand_scales = scales, args.operand_amax = amax;
    args.workspace = place(11), args.workspace_size = (size_t)1 << 40;
    if (gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK) {
        append_plan(plan);
        if (gemmepi_run_matmul(plan, &args, NULL) != GEMMEPI_OK &&
            strstr(gemmepi_last_error(), "args.d is given"))
            args.d = NULL, args.c = NULL, args.beta = NULL, (void)gemmepi_run_matmul(plan, &args, NULL);
        hash = gpi__hash_word(gpi__hash(line_data, strlen(line_data)), compiled);
    }
    if (shown && strncmp(prefix, shown, strlen(shown)) == 0)
        printf("%s %d: %s, %dx%dx%d:%s\n", prefix, number, text, (int)desc.m, (int)desc.n, (int)desc.k,
               hash ? line_data : gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    close_recorded(context);
    return hash;
}

static void rare_formulas_are_planned_as_recorded(void) {
    state = 9;
    record_rare("rare formulas", one_rare_formula, 120);
    while (corpus_count)
        free(corpus_texts[--corpus_count]);
}

/* >>texts of formulas */

static uint64_t hash_of(const char *text) {
    return gpi__hash(text, strlen(text));
}

/* The kernels' code of a formula, for each accumulator and order. */
static void append_code(const char *text) {
    static const struct {
        gemmepi_dtype accumulator, d;
        int exchanged;
    } kinds[] = {{GEMMEPI_F32, GEMMEPI_F32, 0},
                 {GEMMEPI_F32, GEMMEPI_BF16, 0},
                 {GEMMEPI_F32, GEMMEPI_F32, 1},
                 {GEMMEPI_F64, GEMMEPI_F64, 0},
                 {GEMMEPI_I32, GEMMEPI_I32, 0}};
    static char code[1 << 16];
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_allocator allocator = gpi__default_allocator();
    size_t i;
    for (i = 0; i < GPI__COUNT(kinds); i++) {
        gpi__text out = gpi__text_in(code, sizeof code);
        gpi__formula_desc desc =
            desc_of(text, operands, operands_of(text, operands), kinds[i].accumulator, kinds[i].d);
        gpi__formula *f;
        desc.exchanged = kinds[i].exchanged;
        if (gpi__parse_formula(&allocator, &desc, &f) == GEMMEPI_OK) {
            gpi__emit_formula(&out, f);
            gpi__append(&line, " %d of %08x", (int)out.length, (unsigned)hash_of(code));
            freed(f);
        } else {
            gpi__append(&line, " refused");
        }
    }
}

/* The gradient of all that it reads, and the operands that the gradient has. */
static void append_gradient(const char *text) {
    static char gradient[1 << 14], names[400];
    static gemmepi_operand derived[80];
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_derive_desc desc;
    int i, count, with_saved;
    memset(&desc, 0, sizeof desc);
    desc.formula = text;
    desc.operands = operands, desc.operand_count = operands_of(text, operands);
    strcpy(names, has_word(text, "v") ? "v" : "");
    for (i = 0; i < desc.operand_count; i++)
        if (operands[i].dtype == GEMMEPI_DTYPE_DEFAULT && !operands[i].output)
            strcat(strcat(names, names[0] ? "," : ""), operands[i].name);
    desc.wrt = names;
    for (with_saved = 0; with_saved < 2; with_saved++) {
        desc.saved = with_saved ? names : NULL;
        gpi__append(&line, " |");
        if (!gemmepi_derive(&desc, gradient, sizeof gradient)) {
            gpi__append(&line, " refused");
            continue;
        }
        count = gemmepi_derive_operands(&desc, derived, 80);
        gpi__append(&line, " %d of %08x:", (int)strlen(gradient), (unsigned)hash_of(gradient));
        for (i = 0; i < count; i++)
            gpi__append(&line, " %s.%d.%d.%d%d%d", derived[i].name, derived[i].kind, derived[i].dtype,
                        derived[i].output, derived[i].accumulate, derived[i].amax);
    }
}

/* Of the corpus of formula_fuzz.c. */
static void formulas_are_written_as_recorded(void) {
    FILE *file = fopen("tests/unit/formula_corpus.txt", "r");
    static char text[8192];
    int i;
    CHECK(file != NULL, "there is no corpus");
    for (i = 0; file && fgets(text, sizeof text, file); i++) {
        text[strcspn(text, "\n")] = 0;
        line = gpi__text_in(line_data, sizeof line_data);
        gpi__append(&line, "text %d, %08x:", i, (unsigned)hash_of(text));
        append_code(text);
        append_gradient(text);
        compare_line();
    }
    if (file)
        fclose(file);
}

/* >>formulas */

static void formulas_are_planned_as_recorded(void) {
    static const char *const formulas[] = {"d = silu(v) * x + c",
                                           "d = v * x; s = row_sum(d)",
                                           "d = left(v) * sigmoid(right(v)) * 1.5",
                                           "d = pow(max(v, 0), 1.5) + log(1 + exp(x))",
                                           "d = v + c; s = row_logsumexp(v)",
                                           "d = uniform(seed, 3) < 0.5 ? v : x * row",
                                           "d = clamp(v, -c, c) / sqrt(1 + x * x)",
                                           "d = erf(v) * cos(x) + column",
                                           "d = left(v, 64) * tanh(right(v, 64)) * p",
                                           "d = v + x * p; g = column_sum(v * x)",
                                           "d = mod(floor(v), 3) + (x > c ? p : item)"};
    static void *pointers[6];
    static const float *scales[6];
    static void *amax[6];
    static const double number = 0.5;
    gemmepi_operand operands[6];
    int i;
    state = 2;
    memset(operands, 0, sizeof operands);
    operands[0].name = "x", operands[0].kind = GEMMEPI_FULL;
    operands[1].name = "c", operands[1].kind = GEMMEPI_PER_COLUMN;
    operands[2].name = "s", operands[2].kind = GEMMEPI_PER_ROW, operands[2].output = 1,
    operands[2].dtype = GEMMEPI_F32;
    operands[3].name = "seed", operands[3].kind = GEMMEPI_SCALAR, operands[3].dtype = GEMMEPI_I64;
    operands[4].name = "p", operands[4].kind = GEMMEPI_NUMBER;
    operands[5].name = "g", operands[5].kind = GEMMEPI_PER_COLUMN, operands[5].dtype = GEMMEPI_F32;
    for (i = 0; i < 6; i++)
        pointers[i] = place(20 + i);
    memcpy(&pointers[4], &(const double *const){&number}, sizeof pointers[4]);
    for (i = 0; i < 130; i++) {
        int arch = archs[i % (int)GPI__COUNT(archs)];
        gemmepi_matmul_desc desc;
        gemmepi_matmul_args args;
        char name[160];
        memset(&desc, 0, sizeof desc);
        desc.m = any_extent(), desc.n = any_extent() * 2, desc.k = any_extent();
        desc.a.dtype = below(4) ? GEMMEPI_BF16 : GEMMEPI_F32, desc.b.transposed = below(2);
        desc.formula = formulas[i % 11], desc.operands = operands;
        desc.operand_count = 6;
        desc.n = strstr(desc.formula, "64") ? 64 * (1 + below(30)) : desc.n;
        operands[2].output = strstr(desc.formula, "s = ") != NULL;
        operands[5].output = strstr(desc.formula, "g = ") != NULL,
        operands[5].accumulate = operands[5].output && below(2);
        operands[0].dtype = below(3) ? GEMMEPI_DTYPE_DEFAULT : GEMMEPI_E4M3;
        operands[0].scale.mode = operands[0].dtype ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
        operands[0].row_period = below(5) ? 0 : 5, operands[0].column_period = below(5) ? 0 : 24;
        operands[0].ld = below(5) || operands[0].column_period ? 0 : 4 * desc.n;
        operands[1].dtype = below(2) ? GEMMEPI_DTYPE_DEFAULT : GEMMEPI_F32;
        if (below(4) == 0) {
            desc.batch = 3, desc.a.batch_stride = desc.m * desc.k, desc.d.batch_stride = desc.m * desc.n;
            operands[2].batch_stride = desc.m, operands[5].batch_stride = below(2) ? desc.n : 0;
        }
        operands[0].batch_stride = desc.batch && below(2) ? 5 * desc.m * desc.n : 0;
        operands[1].batch_stride = desc.batch && below(2) ? desc.n : 0;
        if (!desc.batch)
            operands[2].batch_stride = operands[5].batch_stride = 0;
        if (below(5) == 0)
            desc.d.dtype = GEMMEPI_E4M3, desc.d.scale.mode = GEMMEPI_SCALE_TENSOR,
            desc.flags = GEMMEPI_AMAX_D;
        memset(&args, 0, sizeof args);
        args.a = place(0), args.b = place(1), args.d = place(2), args.operands = pointers;
        scales[0] = operands[0].scale.mode ? (float *)place(30) : NULL;
        args.operand_scales = scales, args.operand_amax = amax;
        args.scale_d = desc.d.scale.mode ? (float *)place(31) : NULL,
        args.amax_d = desc.flags ? place(32) : NULL;
        args.workspace = place(11), args.workspace_size = (size_t)1 << 40;
        snprintf(name, sizeof name, "formula %d on %d, %dx%dx%d, dtype %d", i, arch, (int)desc.m, (int)desc.n,
                 (int)desc.k, (int)desc.a.dtype);
        record_product(arch, name, &desc, &args);
    }
}

/* >>groups */

static void grouped_products_are_planned_as_recorded(void) {
    int i;
    state = 3;
    for (i = 0; i < 130; i++) {
        int arch = i % 4 ? 90 : 80, of_k = below(i < 60 ? 3 : 2) == 0, is_fp8 = below(3) == 0;
        gemmepi_context *context = open_recorded(arch);
        gemmepi_grouped_desc desc;
        gemmepi_grouped_args args;
        gemmepi_plan *plan = NULL;
        memset(&desc, 0, sizeof desc);
        memset(&args, 0, sizeof args);
        desc.groups = 1 << below(8), desc.grouping = of_k ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
        desc.product.m = any_extent() * 4, desc.product.n = any_extent() * 2, desc.product.k = any_extent();
        desc.product.a.dtype = is_fp8 ? GEMMEPI_E4M3 : GEMMEPI_BF16,
        desc.product.d.dtype = of_k ? GEMMEPI_F32 : GEMMEPI_BF16;
        desc.product.a.transposed = of_k && !is_fp8, desc.product.b.transposed = !of_k || is_fp8;
        desc.gather_a = below(3) == 0 && desc.product.a.transposed == of_k ? 1000 : 0;
        desc.scatter_d = !of_k && below(3) == 0 ? 70000 : 0;
        if (!of_k && below(2))
            desc.product.epilogue = GEMMEPI_SILU | GEMMEPI_GATED;
        if (of_k && desc.product.a.transposed && below(2))
            desc.product.epilogue = GEMMEPI_BGRAD_A;
        if (is_fp8 && !of_k)
            desc.product.a.scale.mode = GEMMEPI_SCALE_VECTOR_128,
            desc.product.b.scale.mode = GEMMEPI_SCALE_BLOCK_128;
        args.product.a = place(0), args.product.b = place(1), args.product.d = place(2);
        args.product.bias_grad = desc.product.epilogue & GEMMEPI_BGRAD_A ? place(6) : NULL;
        args.product.scale_a = desc.product.a.scale.mode ? (float *)place(7) : NULL;
        args.product.scale_b = desc.product.b.scale.mode ? (float *)place(8) : NULL;
        args.product.workspace = place(11), args.product.workspace_size = (size_t)1 << 40;
        args.ends = (const int32_t *)place(12),
        args.index_a = desc.gather_a ? (const int32_t *)place(13) : NULL;
        args.index_d = desc.scatter_d ? (const int32_t *)place(14) : NULL;
        gpi__append(&line, "grouped %d on %d, %d groups of %s, %dx%dx%d, epilogue 0x%llx:", i, arch,
                    desc.groups, of_k ? "k" : "rows", (int)desc.product.m, (int)desc.product.n,
                    (int)desc.product.k, (gpi__ull)desc.product.epilogue);
        CHECK(gemmepi_plan_grouped(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        if (plan) {
            append_plan(plan);
            CHECK(gemmepi_run_grouped(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        }
        gemmepi_plan_destroy(plan);
        end_line(context);
    }
}

/* >>layers */

/* A factor's scale, and where those of its items are. */
static void scale_factor(gemmepi_matrix *matrix, int has_items, int64_t outer) {
    matrix->scale.mode = (gemmepi_scale_mode)below(5);
    if (matrix->scale.mode && has_items && below(4))
        matrix->scale.batch_stride = matrix->scale.mode != GEMMEPI_SCALE_TENSOR ? 1 << 20
                                     : below(3)                                 ? 1 + 6 * below(2)
                                                                                : outer;
}

/* Layers of the kinds that are drawn at first, and of orders, batches, scales and gradients of every kind. */
static void vary_layer(gemmepi_linear_desc *desc, gemmepi_linear_args *args) {
    int gated = (desc->activation & GEMMEPI_GATED) != 0, is_fp8 = below(2), shares_b, shares_a;
    if (!gated && below(2))
        desc->activation = below(2) ? GEMMEPI_RELU : GEMMEPI_LEAKY_RELU;
    if (desc->activation == GEMMEPI_LEAKY_RELU && below(2))
        desc->has_parameter = 1, desc->activation_parameter = 0.5;
    desc->batch = below(2) ? 3 : 0;
    desc->alignment = below(4) ? 0 : 4;
    desc->order = desc->batch || below(3) ? GEMMEPI_ROW_MAJOR : GEMMEPI_COLUMN_MAJOR;
    desc->m = (desc->m + 15) / 16 * 16, desc->n = (desc->n + 15) / 16 * 16,
    desc->k = (desc->k + 15) / 16 * 16;
    if (!gated && below(3) == 0)
        desc->activation = GEMMEPI_NONE, desc->has_parameter = 0, desc->activation_parameter = 0,
        desc->flags &= ~(GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_RECOMPUTE);
    if (below(3) == 0 && desc->flags & (GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB))
        desc->flags &= ~GEMMEPI_LINEAR_DBIAS;
    desc->flags |= below(4) ? 0 : GEMMEPI_BATCH_INVARIANT;
    if (!(desc->flags & GEMMEPI_BATCH_INVARIANT))
        desc->a.transposed = below(3) == 0, desc->b.transposed = below(3) == 0;
    shares_b = below(2), shares_a = !shares_b && below(3) == 0;
    if (desc->batch) {
        desc->a.batch_stride = shares_a ? 0 : desc->m * desc->k + 16 * below(2);
        desc->da.batch_stride = shares_a && below(2) ? 0 : desc->m * desc->k;
        desc->b.batch_stride = desc->db.batch_stride = shares_b ? 0 : desc->n * desc->k;
        desc->bias.batch_stride = desc->dbias.batch_stride = shares_b ? 0 : desc->n;
        desc->y.batch_stride = desc->preact.batch_stride = desc->m * desc->n;
        desc->dy.batch_stride = below(4) ? desc->m * desc->n : 0;
    } else {
        desc->a.batch_stride = desc->y.batch_stride = desc->preact.batch_stride = desc->dy.batch_stride =
            desc->da.batch_stride = 0;
    }
    if (desc->activation == GEMMEPI_RELU)
        memset(&desc->preact, 0, sizeof desc->preact),
            desc->preact.batch_stride = desc->batch ? desc->m * ((desc->n + 127) / 128 * 128) : 0;
    if (below(4) == 0)
        desc->dy.dtype = GEMMEPI_E4M3, desc->dy.scale.mode = GEMMEPI_SCALE_TENSOR;
    if (is_fp8) {
        desc->a.dtype = GEMMEPI_E4M3;
        scale_factor(&desc->a, desc->batch && !shares_a, desc->m);
        scale_factor(&desc->b, desc->batch && !shares_b, desc->n);
    }
    args->scale_a = desc->a.scale.mode ? (float *)place(20) : NULL;
    args->scale_b = desc->b.scale.mode ? (float *)place(21) : NULL;
    args->scale_dy = desc->dy.scale.mode ? (float *)place(22) : NULL;
    args->bias = desc->flags & GEMMEPI_LINEAR_BIAS ? place(3) : NULL;
    args->preact = desc->flags & GEMMEPI_LINEAR_SAVED ? place(4) : NULL;
    args->dbias = desc->flags & GEMMEPI_LINEAR_DBIAS ? place(8) : NULL;
}

/* Forward a residual, backward a layer before it, and now and then G for dY. */
static void chain_layer(gemmepi_linear_desc *desc, gemmepi_linear_args *args, gemmepi_linear_desc *before,
                        gemmepi_linear_args *of_before) {
    static const gemmepi_epilogue activations[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_GELU_TANH,
                                                   GEMMEPI_SILU | GEMMEPI_GATED};
    int by_columns = desc->order == GEMMEPI_COLUMN_MAJOR;
    gemmepi_matrix *a = by_columns ? &desc->b : &desc->a, *da = by_columns ? &desc->db : &desc->da;
    int64_t width;
    memset(before, 0, sizeof *before), memset(of_before, 0, sizeof *of_before);
    before->activation = activations[below(4)];
    before->flags = before->activation ? GEMMEPI_LINEAR_SAVED : 0;
    width = before->activation & GEMMEPI_GATED ? 2 * desc->k : desc->k;
    before->order = desc->order, before->a.dtype = desc->a.dtype;
    before->m = by_columns ? width : desc->m, before->n = by_columns ? desc->n : width;
    before->batch = desc->batch && !a->batch_stride && !da->batch_stride ? 0 : desc->batch;
    a->transposed = 0;
    if (before->batch)
        da->batch_stride = before->m * before->n,
        before->preact.batch_stride = desc->m * ((width + 127) / 128 * 128);
    desc->flags |= GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_RESIDUAL;
    desc->flags |= below(3) ? 0 : GEMMEPI_LINEAR_DY_IS_G;
    desc->residual.batch_stride = desc->y.batch_stride;
    if (desc->flags & GEMMEPI_LINEAR_DY_IS_G && desc->dy.batch_stride)
        desc->dy.batch_stride = desc->m * desc->n;
    desc->before = before;
    of_before->preact = before->activation ? place(9) : NULL;
    args->before = of_before;
    args->residual = place(10), args->da = place(6), args->db = place(7);
}

static void layers_are_planned_as_recorded(void) {
    int i;
    state = 4;
    for (i = 0; i < 240; i++) {
        int arch = archs[i % (int)GPI__COUNT(archs)], backward = i % 3 != 0, gated = below(3) == 0;
        gemmepi_context *context = open_recorded(arch);
        gemmepi_linear_desc desc, before;
        gemmepi_linear_args args, of_before;
        gemmepi_plan *plan = NULL;
        memset(&desc, 0, sizeof desc);
        memset(&args, 0, sizeof args);
        desc.m = any_extent(), desc.n = any_extent() * 2, desc.k = any_extent();
        desc.a.dtype = below(3) ? GEMMEPI_BF16 : GEMMEPI_F32;
        desc.activation = (below(2) ? GEMMEPI_SILU : GEMMEPI_GELU_TANH) | (gated ? GEMMEPI_GATED : 0);
        desc.flags = GEMMEPI_LINEAR_BIAS | (below(2) ? GEMMEPI_LINEAR_SAVED : GEMMEPI_LINEAR_RECOMPUTE);
        desc.flags |=
            (below(4) ? GEMMEPI_LINEAR_DA : 0) | (below(4) ? GEMMEPI_LINEAR_DB : 0) | GEMMEPI_LINEAR_DBIAS;
        if (below(4) == 0)
            desc.batch = 3, desc.a.batch_stride = desc.m * desc.k,
            desc.y.batch_stride = desc.dy.batch_stride = desc.m * desc.n,
            desc.preact.batch_stride = desc.m * desc.n, desc.da.batch_stride = desc.m * desc.k;
        args.a = place(0), args.b = place(1), args.y = place(2), args.bias = place(3);
        args.preact = desc.flags & GEMMEPI_LINEAR_SAVED ? place(4) : NULL, args.dy = place(5);
        args.da = desc.flags & GEMMEPI_LINEAR_DA ? place(6) : NULL,
        args.db = desc.flags & GEMMEPI_LINEAR_DB ? place(7) : NULL;
        args.dbias = place(8);
        args.workspace = place(11), args.workspace_size = (size_t)1 << 40;
        if (i >= 60)
            vary_layer(&desc, &args);
        if (i >= 180)
            chain_layer(&desc, &args, &before, &of_before);
        gpi__append(&line, "layer %d on %d, %s, %dx%dx%d, flags 0x%llx, activation 0x%llx:", i, arch,
                    backward ? "backward" : "forward", (int)desc.m, (int)desc.n, (int)desc.k,
                    (gpi__ull)desc.flags, (gpi__ull)desc.activation);
        CHECK((backward ? gemmepi_plan_linear_backward : gemmepi_plan_linear)(context, &desc, &plan) ==
                  GEMMEPI_OK,
              "%d: %s", i, gemmepi_last_error());
        if (plan) {
            append_plan(plan);
            CHECK((backward ? gemmepi_run_linear_backward : gemmepi_run_linear)(plan, &args, NULL) ==
                      GEMMEPI_OK,
                  "%d: %s", i, gemmepi_last_error());
        }
        gemmepi_plan_destroy(plan);
        end_line(context);
    }
}

/* >>element-wise operations, in shapes that are drawn */

static void shape_call(element_call *c) {
    int64_t rows = any_extent() * (below(3) ? 1 : 16), columns = any_extent() * 2, t;
    int turns = below(3) == 0, odd = below(3) == 0,
        is_cast = c->desc.flags & GEMMEPI_CAST_Y_SCALE && !c->desc.formula;
    for (t = 0; t < ELEMENT_TENSORS; t++) {
        gemmepi_tensor *tensor = &c->t[t];
        int64_t *shape = c->shape[t];
        if (!tensor->data)
            continue;
        tensor->data = place(t);
        if (tensor->rank == 1) {
            shape[0] = columns;
            continue;
        }
        if (t == TURNED) {
            shape[0] = columns, shape[1] = rows;
            continue;
        }
        shape[0] = shape[0] == 1 ? 1 : rows, shape[1] = shape[1] == 1 ? 1 : columns;
        c->stride[t][0] = turns && t != Y ? 1 : shape[1] + (odd ? 3 : 0),
        c->stride[t][1] = turns && t != Y ? rows : 1;
        tensor->stride = c->stride[t];
    }
    c->desc.alignment = odd ? 2 : below(4) ? 16 : 4;
    if (is_cast && below(2))
        c->desc.flags |= GEMMEPI_CAST_AMAX, c->args.amax = number_memory[2];
    if (is_cast && c->desc.scale_mode > GEMMEPI_SCALE_TENSOR && below(2))
        c->desc.flags |= GEMMEPI_CAST_K_IS_ROWS;
    if (c->t[A].dtype == GEMMEPI_F32 && !c->desc.formula && below(2)) /* all that are F32 */
        for (t = 0; t < ELEMENT_TENSORS; t++)
            c->t[t].dtype = c->t[t].dtype == GEMMEPI_F32 ? GEMMEPI_BF16 : c->t[t].dtype;
}

static void point_call(element_call *c) {
    int o;
    if (!c->desc.formula) {
        c->args.a = c->t[A].data, c->args.b = c->t[B].data, c->args.w = c->t[W].data,
        c->args.dy = c->t[DY].data;
        c->args.da = c->t[DA].data, c->args.db = c->t[DB].data, c->args.dw = c->t[DW].data;
        c->args.y_transposed = c->t[TURNED].data;
    }
    c->args.y = c->t[Y].data;
    for (o = 0; o < c->desc.operand_count; o++)
        c->pointers[o] = c->operands[o].tensor->data;
    c->args.scale = c->args.scale ? (float *)place(20) : NULL,
    c->args.y_scale = c->args.y_scale ? (float *)place(21) : NULL;
    c->args.amax = c->args.amax ? place(22) : NULL;
    c->args.y_transposed_scale = c->args.y_transposed_scale ? (float *)place(23) : NULL;
    c->scales[1] = c->scales[1] ? (float *)place(24) : NULL, c->amax[1] = c->amax[1] ? place(25) : NULL;
    c->args.workspace = place(11), c->args.workspace_size = (size_t)1 << 40;
}

static void elementwise_operations_are_planned_as_recorded(void) {
    static element_call c;
    int i;
    state = 5;
    for (i = 0; i < 9 * ELEMENT_CALLS; i++) {
        const char *name = element_calls[i % ELEMENT_CALLS].name;
        int arch = archs[i % (int)GPI__COUNT(archs)];
        gemmepi_context *context = open_recorded(arch);
        gemmepi_plan *plan = NULL;
        element_calls[i % ELEMENT_CALLS].make(&c);
        if (strcmp(name, "split") != 0)
            shape_call(&c);
        point_call(&c);
        gpi__append(&line, "operation %d on %d, %s, %dx%d:", i, arch, name, (int)c.shape[A][0],
                    (int)c.shape[A][1]);
        if (gemmepi_plan_elementwise(context, &c.desc, &plan) == GEMMEPI_OK) {
            gemmepi_status status;
            append_plan(plan);
            status = gemmepi_run_elementwise(plan, &c.args, NULL);
            CHECK(status == GEMMEPI_OK, "%d %s: %s", i, name, gemmepi_last_error());
        } else {
            CHECK(0, "%d %s: %s", i, name, gemmepi_last_error());
        }
        gemmepi_plan_destroy(plan);
        end_line(context);
    }
}

static uint64_t chosen_for_operation(gemmepi_context *context, int family, int64_t size) {
    static element_call c;
    gemmepi_plan *plan = NULL;
    int along_columns = family >= ELEMENT_CALLS, t;
    int64_t rows = along_columns ? 64 : size, columns = along_columns ? size : 1024;
    uint64_t hash;
    element_calls[family % ELEMENT_CALLS].make(&c);
    for (t = 0; t < ELEMENT_TENSORS; t++) {
        int64_t *shape = c.shape[t];
        if (!c.t[t].data)
            continue;
        c.t[t].data = place(t);
        if (c.t[t].rank == 1) {
            shape[0] = columns;
            continue;
        }
        shape[0] = shape[0] == 1 ? 1 : t == TURNED ? columns : rows;
        shape[1] = shape[1] == 1 ? 1 : t == TURNED ? rows : columns;
        c.t[t].stride = NULL;
    }
    c.desc.alignment = 16;
    point_call(&c);
    if (gemmepi_plan_elementwise(context, &c.desc, &plan) != GEMMEPI_OK)
        return 0;
    hash = kind_of_plan(plan);
    if (gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_OK)
        hash = kinds;
    gemmepi_plan_destroy(plan);
    return hash;
}

/* Rows of 1024 columns, and columns of 64 rows. */
static void sizes_at_which_operations_change_are_as_recorded(void) {
    int i;
    for (i = 0; i < 2 * ELEMENT_CALLS; i++) {
        const char *call = element_calls[i % ELEMENT_CALLS].name;
        char name[80];
        snprintf(name, sizeof name, "%s of %s", i < ELEMENT_CALLS ? "rows" : "columns", call);
        if (strcmp(call, "split") != 0)
            record_edges(name, 90, chosen_for_operation, i, i < ELEMENT_CALLS ? 1 : 16);
    }
}

/* Rows, columns and strides of a kind for each tensor: dense, of longer lines, turned, backwards, or (of inputs) the same for all. */
static void lay_out_rarely(element_call *c, int64_t rows, int64_t columns) {
    int t, is_lean_call = below(2);
    for (t = 0; t < ELEMENT_TENSORS; t++) {
        gemmepi_tensor *tensor = &c->t[t];
        int64_t *shape = c->shape[t], *stride = c->stride[t];
        int is_output = t == Y || t >= DA, kind = below(is_lean_call ? 20 : 6);
        if (!tensor->data)
            continue;
        tensor->data = (char *)place(t) + ((int64_t)1 << 32);
        tensor->offset =
            below(is_lean_call ? 12 : 3)
                ? 0
                : (size_t)(16 >> below(5)) * gemmepi_dtype_size(tensor->dtype ? tensor->dtype : GEMMEPI_F32);
        if (tensor->rank == 1) {
            shape[0] = columns;
            continue;
        }
        shape[0] = shape[0] == 1 ? 1 : t == TURNED ? columns : rows;
        shape[1] = shape[1] == 1 ? 1 : t == TURNED ? rows : columns;
        stride[0] = shape[1], stride[1] = 1;
        if (kind == 1)
            stride[0] = below(2) ? stride[0] + 1 + below(16) : (stride[0] + 31) / 16 * 16;
        if (kind == 2)
            stride[0] = 1, stride[1] = shape[0] + 4 * below(3);
        if (kind == 3)
            stride[0] = -stride[0];
        if (kind == 4)
            stride[1] = -1;
        if (kind == 5 && !is_output)
            stride[below(2)] = 0;
        tensor->stride = stride;
    }
}

static void vary_call(element_call *c) {
    static const gemmepi_dtype wider[] = {GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_F64};
    int is_cast = c->desc.operation == GEMMEPI_OP_CAST && !c->desc.formula, t;
    gemmepi_dtype dtype = wider[below(4)];
    if (is_cast && c->desc.flags && below(2))
        c->desc.flags |= GEMMEPI_CAST_AMAX, c->args.amax = number_memory[2];
    if (is_cast && c->desc.scale_mode > GEMMEPI_SCALE_TENSOR && below(2))
        c->desc.flags |= GEMMEPI_CAST_K_IS_ROWS;
    if (!is_cast && below(4) == 0)
        c->desc.flags |= GEMMEPI_ACCUMULATE;
    if (c->desc.operation == GEMMEPI_OP_BIAS_GRAD)
        c->desc.axis = below(3) ? c->desc.axis : 0;
    for (t = 0; t < ELEMENT_TENSORS && below(2); t++)
        c->t[t].dtype = c->t[t].dtype == GEMMEPI_F32 ? dtype : c->t[t].dtype;
    c->desc.alignment = below(2) ? 0 : (size_t)4 << below(3);
}

static uint64_t one_rare_operation(int number, const char *prefix) {
    static element_call c;
    int which = number % ELEMENT_CALLS;
    gemmepi_context *context = open_recorded(archs[number % (int)GPI__COUNT(archs)]);
    gemmepi_plan *plan = NULL;
    int64_t rows = at_a_border(), columns = at_a_border();
    uint64_t hash = 0;
    element_calls[which].make(&c);
    vary_call(&c);
    lay_out_rarely(&c, rows > 1 << 16 ? 1 << 16 : rows, columns > 1 << 14 ? 1 << 14 : columns);
    point_call(&c);
    if (gemmepi_plan_elementwise(context, &c.desc, &plan) == GEMMEPI_OK) {
        append_plan(plan);
        if (gemmepi_run_elementwise(plan, &c.args, NULL) != GEMMEPI_OK)
            gpi__append(&line, " %s", gemmepi_last_error());
        hash = gpi__hash_word(gpi__hash(line_data, strlen(line_data)), compiled);
    }
    if (shown && strncmp(prefix, shown, strlen(shown)) == 0)
        printf("%s %d: %s, %dx%d:%s\n", prefix, number, element_calls[which].name, (int)c.shape[A][0],
               (int)c.shape[A][1], hash ? line_data : gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    close_recorded(context);
    return hash;
}

static void rare_operations_are_planned_as_recorded(void) {
    state = 8;
    record_rare("rare operations", one_rare_operation, 100);
}

/* >>the file */

static void read_record(void) {
    FILE *file = fopen(RECORD, "rb");
    size_t size;
    record = (char *)calloc(1, 1 << 20);
    size = file ? fread(record, 1, (1 << 20) - 1, file) : 0;
    if (file)
        fclose(file);
    if (!size)
        printf("%s is not there, or empty\n", RECORD);
}

static void the_record_has_no_other_lines(void) {
    const char *at = record;
    int count = 0;
    for (; at && *at; at++)
        count += *at == '\n';
    CHECK(written || shown || count == lines, "%d lines for %d", count, lines);
    if (differ)
        printf(
            "%d choices are others. Where that is meant: look at each, measure, and write them down by %s\n",
            differ, "`build/tests/unit/recorded --write`");
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--write") == 0)
        written = fopen(RECORD, "wb");
    else
        shown = argc > 1 ? argv[1] : NULL;
    if (!written)
        read_record();
    RUN(products_are_planned_as_recorded);
    RUN(sizes_at_which_products_change_are_as_recorded);
    RUN(rare_products_are_planned_as_recorded);
    RUN(rare_groups_are_planned_as_recorded);
    read_corpus();
    RUN(rare_formulas_are_planned_as_recorded);
    RUN(formulas_are_written_as_recorded);
    RUN(formulas_are_planned_as_recorded);
    RUN(grouped_products_are_planned_as_recorded);
    RUN(layers_are_planned_as_recorded);
    RUN(elementwise_operations_are_planned_as_recorded);
    RUN(sizes_at_which_operations_change_are_as_recorded);
    RUN(rare_operations_are_planned_as_recorded);
    RUN(the_record_has_no_other_lines);
    if (written)
        fclose(written);
    free(record);
    return test_finish();
}
