/* What is known to be wrong with cuBLASLt keeps products from it, by version and chip, on the fake GPU of fake_cuda.h. Versions and
   conditions are those of NVIDIA's release notes, written down here a second time. With --print it prints the table as docs/routes.md
   has it. */
#include "fake_program.h"

enum { BY_LT = 1u << GEMMEPI_ROUTE_LT, BY_SPLIT = 1u << GEMMEPI_ROUTE_SPLIT };
static uint32_t routes = BY_LT; /* that may run a product */

static gpi__lt_algorithm algorithm_of(int id, int stages, int split) {
    gpi__lt_algorithm algorithm;
    memset(&algorithm, 0, sizeof algorithm);
    algorithm.id = id, algorithm.stages = stages, algorithm.split = split;
    return algorithm;
}

static gemmepi_matmul_desc sized(gemmepi_dtype dtype, int64_t m, int64_t n, int64_t k) {
    gemmepi_matmul_desc desc = product(dtype, GEMMEPI_NONE);
    desc.m = m, desc.n = n, desc.k = k;
    desc.a.transposed = 1; /* then k may be odd and lines are aligned all the same */
    return desc;
}

/* Whether the route, with cuBLASLt in a version on a chip, runs the product: by its first algorithm, which is this one. */
static int is_run(int version, int arch, gpi__lt_algorithm first, const gemmepi_matmul_desc *desc) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_plan *plan = NULL;
    gemmepi_status status;
    config.routes = routes;
    gpu.other_cublaslt = version, gpu.other_arch = arch;
    gpu.algorithms[0] = first;
    context = open_fake(&config);
    status = gemmepi_plan_matmul(context, desc, &plan);
    CHECK(status == GEMMEPI_OK || status == GEMMEPI_UNSUPPORTED, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    gpu.other_cublaslt = gpu.other_arch = 0;
    memset(gpu.algorithms, 0, sizeof gpu.algorithms);
    nothing_is_left();
    return status == GEMMEPI_OK;
}

static void expect(const char *source, int is_wrong, int version, int arch, gpi__lt_algorithm first,
                   const gemmepi_matmul_desc *desc) {
    int runs = is_run(version, arch, first, desc);
    if (is_wrong)
        CHECK(!runs && sentence_has("known to be wrong here") && sentence_has(source),
              "%s: version %d runs it on compute capability %d, or says: %s", source, version, arch,
              gemmepi_last_error());
    else
        CHECK(runs, "%s: version %d on compute capability %d: %s", source, version, arch,
              gemmepi_last_error());
}

/* >>of an algorithm */

enum { STAGES_32 = 34, STAGES_64 = 35, STAGES_128 = 36, STAGES_NEW = 99 };

/* With stages of 64 elements the last k % 64 terms are lost where (k / 64) % split is 0 and the split is above k % 64. */
static void a_split_that_loses_the_end_of_k_is_left_out(void) {
    static const struct {
        int k, split, loses;
    } cases[] = {{11528, 2, 0},  {11528, 9, 1}, {11528, 10, 1}, {11528, 12, 1}, {11528, 16, 0},
                 {11528, 20, 1}, {129, 2, 1},   {128, 2, 0},    {130, 2, 0},    {65, 1, 0},
                 {193, 3, 1},    {194, 3, 1},   {195, 3, 0},    {196, 3, 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc = sized(GEMMEPI_BF16, 64, 64, cases[i].k);
        expect("6580689", cases[i].loses, 130100, 90, algorithm_of(66, STAGES_64, cases[i].split), &desc);
    }
}

static void other_versions_chips_and_algorithms_keep_the_split(void) {
    static const struct {
        int version, arch, id, loses;
    } cases[] = {{120602, 90, 66, 0},  {120603, 90, 66, 1},  {120805, 90, 66, 1}, {130700, 90, 66, 1},
                 {130800, 90, 66, 0},  {131000, 90, 66, 0},  {130100, 89, 66, 0}, {130100, 100, 66, 1},
                 {130100, 110, 66, 1}, {130100, 120, 66, 0}, {130100, 90, 21, 0}};
    gemmepi_matmul_desc desc = sized(GEMMEPI_F16, 64, 64, 129);
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++)
        expect("6580689", cases[i].loses, cases[i].version, cases[i].arch,
               algorithm_of(cases[i].id, STAGES_64, 2), &desc);
}

static void stages_count_in_elements_and_unknown_ones_as_the_smallest(void) {
    gemmepi_matmul_desc tf32 = sized(GEMMEPI_F32, 64, 64, 65),
                        fp8 = sized(GEMMEPI_E4M3, 64, 64, 17 * 128 + 16);
    gemmepi_matmul_desc halves = sized(GEMMEPI_BF16, 64, 64, 81);
    tf32.compute = GEMMEPI_COMPUTE_TF32;
    fp8.a.transposed = 0, fp8.b.transposed = 1, fp8.d.dtype = GEMMEPI_BF16;
    expect("6580689", 1, 130100, 90, algorithm_of(66, STAGES_32, 2), &tf32); /* 32 of 65 */
    expect("6580689", 0, 130100, 90, algorithm_of(66, STAGES_64, 2), &tf32);
    expect("6580689", 1, 130100, 90, algorithm_of(66, STAGES_128, 17), &fp8);   /* 128 of 2192 */
    expect("6580689", 0, 130100, 90, algorithm_of(66, STAGES_128, 16), &fp8);   /* 137 */
    expect("6580689", 1, 130100, 90, algorithm_of(66, STAGES_NEW, 2), &halves); /* 40 of 81 */
    halves.k = 83;                                                              /* 41 */
    expect("6580689", 0, 130100, 90, algorithm_of(66, STAGES_NEW, 2), &halves);
}

/* Fixed in CUDA 13.2, which has 13.3.0, and in the patch releases of March 2026. */
static void lines_of_2_31_bytes_are_kept_from_algorithm_66(void) {
    static const struct {
        int version, is_wrong;
    } cases[] = {{120602, 0}, {120603, 1}, {120804, 1}, {120805, 0}, {120901, 1}, {120902, 0}, {120903, 0},
                 {130002, 1}, {130100, 1}, {130101, 0}, {130200, 1}, {130201, 1}, {130202, 0}, {130300, 0}};
    gemmepi_matmul_desc desc = sized(GEMMEPI_BF16, 64, 64, 128);
    size_t i;
    desc.b.ld = (int64_t)1 << 30; /* of 2 bytes */
    for (i = 0; i < GPI__COUNT(cases); i++)
        expect("CUB-9572", cases[i].is_wrong, cases[i].version, 90, algorithm_of(66, STAGES_64, 1), &desc);
    expect("CUB-9572", 0, 130100, 90, algorithm_of(21, STAGES_64, 1), &desc);
    desc.b.ld = ((int64_t)1 << 30) - 8;
    expect("CUB-9572", 0, 130100, 90, algorithm_of(66, STAGES_64, 1), &desc);
    desc.b.ld = 0, desc.d.ld = (int64_t)1 << 30;
    expect("CUB-9572", 1, 130100, 90, algorithm_of(66, STAGES_64, 1), &desc);
}

static void matrices_of_2_31_elements_are_kept_from_algorithm_68(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_F32, GEMMEPI_NONE);
    desc.m = 134217728, desc.n = 1, desc.k = 2, desc.a.ld = 16;
    expect("raft 3097", 1, 130600, 90, algorithm_of(68, 0, 1), &desc);
    expect("raft 3097", 0, 130601, 90, algorithm_of(68, 0, 1), &desc);
    expect("raft 3097", 0, 130600, 90, algorithm_of(21, 0, 1), &desc);
    desc.m--;
    expect("raft 3097", 0, 130600, 90, algorithm_of(68, 0, 1), &desc);
}

static void bare_products_are_asked_about_too(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_SILU);
    desc.a.transposed = 1, desc.k = 129;
    routes = BY_SPLIT;
    expect("6580689", 1, 130100, 90, algorithm_of(66, STAGES_64, 2), &desc);
    expect("6580689", 0, 130100, 90, algorithm_of(66, STAGES_64, 4), &desc);
    routes = BY_LT;
}

static void the_next_algorithm_is_taken_and_explain_tells(void) {
    planned p = planned_begin(0, BY_LT);
    gpu.heuristic_answers = 2;
    gpu.algorithms[0] = algorithm_of(66, STAGES_64, 2), gpu.algorithms[1] = algorithm_of(66, STAGES_64, 4);
    p.desc = sized(GEMMEPI_BF16, 64, 64, 129);
    if (planned_plan(&p))
        CHECK(strstr(p.details.kernel, "split-k 4") && explain_has(p.plan, "known to be wrong here: split-k"),
              "%s", p.details.kernel);
    gpu.heuristic_answers = 1;
    memset(gpu.algorithms, 0, sizeof gpu.algorithms);
    planned_end(&p);
}

/* >>of runs */

/* Its scale of C may be 0 in any run, which the host does not see. */
static void fp8_runs_with_c_take_another_route(void) {
    static const struct {
        int version, hangs;
    } cases[] = {{130100, 1}, {120805, 0}, {130101, 0}, {130300, 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(0, BY_LT | 1u << GEMMEPI_ROUTE_PLAIN);
        double beta = 1;
        gpu.other_cublaslt = cases[i].version;
        gpu.algorithms[0] = algorithm_of(66, STAGES_128, 1);
        p.desc = sized(GEMMEPI_E4M3, 64, 64, 128);
        p.desc.a.transposed = 0, p.desc.b.transposed = 1;
        p.desc.c.dtype = p.desc.d.dtype = GEMMEPI_E4M3;
        p.desc.d.scale.mode = p.desc.c.scale.mode = GEMMEPI_SCALE_TENSOR;
        p.args.bias = NULL;
        p.args.scale_d = p.args.scale_c = (const float *)memory[0];
        if (planned_plan(&p)) {
            CHECK(p.details.route == GEMMEPI_ROUTE_LT, "route %s", p.details.route_name);
            CHECK(explain_has(p.plan, "runs with beta other than 0 use another plan") == cases[i].hangs,
                  "version %d", cases[i].version);
            planned_run(&p);
            CHECK(gpu.products == 1, "%ld products without C", gpu.products);
            p.args.beta = &beta, p.args.c = p.args.d;
            planned_run(&p);
            CHECK(gpu.products == 2 - cases[i].hangs, "version %d: %ld products", cases[i].version,
                  gpu.products);
        }
        planned_end(&p);
        gpu.other_cublaslt = 0;
        gpu.products = 0;
        memset(gpu.algorithms, 0, sizeof gpu.algorithms);
    }
}

/* >>of products, whatever the algorithm */

static void vectors_with_bias_are_kept_from_old_versions(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_F32, GEMMEPI_BIAS);
    gpi__lt_algorithm any = algorithm_of(0, 0, 0);
    expect("5104822", 0, 120803, 90, any, &desc);
    desc.m = 1;
    expect("5104822", 1, 120803, 90, any, &desc);
    expect("5104822", 0, 120804, 90, any, &desc);
    desc.m = 64, desc.n = 1;
    expect("5104822", 1, 120000, 80, any, &desc);
    desc.epilogue = GEMMEPI_NONE;
    expect("5104822", 0, 120803, 90, any, &desc);
}

static void vectors_of_matrices_beyond_2_31_elements_are_kept_from_old_versions(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_F32, GEMMEPI_NONE);
    gpi__lt_algorithm any = algorithm_of(0, 0, 0);
    desc.m = 1, desc.n = 1 << 16, desc.k = 1 << 15;
    expect("5113092", 1, 120803, 90, any, &desc);
    expect("5113092", 0, 120804, 90, any, &desc);
    desc.n = (1 << 16) - 1;
    expect("5113092", 0, 120803, 90, any, &desc);
}

static void defects_of_geforce_are_of_geforce(void) {
    gemmepi_matmul_desc vector = product(GEMMEPI_F32, GEMMEPI_NONE),
                        shared = product(GEMMEPI_BF16, GEMMEPI_NONE);
    gpi__lt_algorithm any = algorithm_of(0, 0, 0);
    vector.m = 1, vector.n = 3145681, vector.k = 8;
    expect("CUB-10445", 1, 130600, 120, any, &vector);
    expect("CUB-10445", 0, 130601, 120, any, &vector);
    expect("CUB-10445", 0, 130600, 90, any, &vector);
    vector.n--;
    expect("CUB-10445", 0, 130600, 121, any, &vector);
    shared.batch = 2;
    shared.a.batch_stride = shared.b.batch_stride = EDGE * DEPTH, shared.d.batch_stride = EDGE * EDGE;
    expect("6040940", 0, 130600, 121, any, &shared);
    shared.b.batch_stride = 0; /* one for all */
    expect("6040940", 1, 130600, 121, any, &shared);
    expect("6040940", 1, 130100, 120, any, &shared);
    expect("6040940", 0, 130601, 121, any, &shared);
    expect("6040940", 0, 130600, 100, any, &shared);
}

static void i8_into_i32_is_kept_from_13_0_0(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_I8, GEMMEPI_NONE);
    gpi__lt_algorithm any = algorithm_of(0, 0, 0);
    desc.d.dtype = GEMMEPI_I32;
    routes = BY_SPLIT;
    expect("CUB-8874", 1, 130000, 90, any, &desc);
    expect("CUB-8874", 0, 130002, 90, any, &desc);
    expect("CUB-8874", 0, 120900, 90, any, &desc);
    routes = BY_LT;
}

static void fp8_with_another_type_of_bias_is_kept_from_old_versions(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_E4M3, GEMMEPI_BIAS);
    gpi__lt_algorithm accurate = algorithm_of(66, STAGES_128, 1);
    desc.b.transposed = 1, desc.d.dtype = GEMMEPI_BF16;
    expect("4750343", 0, 120602, 90, accurate, &desc);
    desc.bias.dtype = GEMMEPI_F32;
    expect("4750343", 1, 120602, 90, accurate, &desc);
    expect("4750343", 0, 120603, 90, accurate, &desc);
}

static void epilogues_that_are_known_to_be_wrong_are_kept_from_lt(void) {
    static const struct {
        const char *source;
        int version, is_wrong;
        gemmepi_epilogue epilogue;
        gemmepi_dtype a, d;
        int64_t k, batch;
    } cases[] = {
        {"CUDA 12.4", 130100, 1, GEMMEPI_BGRAD_B, GEMMEPI_F32, GEMMEPI_F32, 1, 1},
        {"CUDA 12.4", 130100, 0, GEMMEPI_BGRAD_B, GEMMEPI_F32, GEMMEPI_F32, 2, 1},
        {"CUDA 12.4", 130100, 1, GEMMEPI_RELU | GEMMEPI_BACKWARD, GEMMEPI_F32, GEMMEPI_F32, 1, 1},
        {"CUDA 12.3", 120303, 1, GEMMEPI_GELU_TANH, GEMMEPI_E4M3, GEMMEPI_BF16, 1024, 1},
        {"CUDA 12.3", 120304, 0, GEMMEPI_GELU_TANH, GEMMEPI_E4M3, GEMMEPI_BF16, 1024, 1},
        {"CUDA 12.2", 120205, 1, GEMMEPI_RELU | GEMMEPI_BIAS, GEMMEPI_BF16, GEMMEPI_BF16, 1024, 2},
        {"CUDA 12.2", 120205, 0, GEMMEPI_RELU | GEMMEPI_BIAS, GEMMEPI_BF16, GEMMEPI_BF16, 1024, 1},
        {"CUDA 12.2", 120300, 0, GEMMEPI_RELU | GEMMEPI_BIAS, GEMMEPI_BF16, GEMMEPI_BF16, 1024, 2},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc = product(cases[i].a, cases[i].epilogue);
        desc.d.dtype = cases[i].d, desc.k = cases[i].k, desc.batch = cases[i].batch;
        desc.a.batch_stride = desc.b.batch_stride = EDGE * DEPTH, desc.d.batch_stride = EDGE * EDGE;
        desc.b.transposed = cases[i].a == GEMMEPI_E4M3;
        desc.bias.batch_stride = cases[i].batch > 1 ? EDGE : 0;
        expect(cases[i].source, cases[i].is_wrong, cases[i].version, 90, algorithm_of(66, STAGES_64, 1),
               &desc);
    }
}

/* >>of captures */

static void a_library_that_breaks_captures_is_not_asked_in_one(void) {
    static const struct {
        int version, breaks;
    } cases[] = {{130500, 0}, {130501, 1}, {130600, 1}, {130601, 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(0, BY_LT | 1u << GEMMEPI_ROUTE_PLAIN);
        long asked = gpu.heuristics;
        gpu.other_cublaslt = cases[i].version;
        gpu.is_capturing = 1;
        p.desc = sized(GEMMEPI_F64, 64, 64, 128);
        if (planned_plan(&p)) {
            CHECK((p.details.route == GEMMEPI_ROUTE_PLAIN) == cases[i].breaks, "version %d: route %s",
                  cases[i].version, p.details.route_name);
            CHECK((gpu.heuristics == asked) == cases[i].breaks, "version %d was asked", cases[i].version);
            CHECK(explain_has(p.plan, "6288786") == cases[i].breaks, "version %d", cases[i].version);
        }
        gpu.is_capturing = 0;
        gpu.other_cublaslt = 0;
        planned_end(&p);
    }
}

/* >>of opening */

static void what_cannot_be_seen_is_warned_of_once(void) {
    static const struct {
        int version, arch, lines;
        const char *source;
    } cases[] = {{130100, 100, 1, "5807900"},           {130300, 100, 0, "5807900"},
                 {130101, 110, 0, "5807900"},           {130100, 90, 0, "5807900"},
                 {120803, 100, 1, "5124406"},           {120804, 100, 0, "5124406"},
                 {130201, 121, 1, "5846563"},           {130300, 121, 0, "5846563"},
                 {120404, 90, 1, "CUDA 12.4 Update 1"}, {120405, 90, 0, "CUDA 12.4 Update 1"}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc = product(GEMMEPI_F32, GEMMEPI_NONE);
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context;
        gemmepi_plan *plan = NULL;
        const char *line;
        int lines = 0, times;
        config.routes = BY_LT;
        config.log = keep_log;
        gpu.other_cublaslt = cases[i].version, gpu.other_arch = cases[i].arch;
        context = open_fake(&config);
        for (times = 0; times < 2; times++) {
            CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
            gemmepi_plan_destroy(plan);
        }
        for (line = logged; (line = strstr(line, cases[i].source)) != NULL; line++)
            lines++;
        CHECK(lines == cases[i].lines, "version %d, compute capability %d, %s: %d lines of %s",
              cases[i].version, cases[i].arch, cases[i].source, lines, logged);
        gemmepi_destroy(context);
        gpu.other_cublaslt = gpu.other_arch = 0;
        nothing_is_left();
    }
}

/* >>the document */

static int has_dot_x(int arch) {
    return arch % 10 == 9 && arch > 90;
}

static void append_chips(gpi__text *text, int first, int last) {
    if (!first && last == INT_MAX)
        gpi__append(text, "all");
    else if (last == INT_MAX)
        gpi__append(text, "%d.%d and later", first / 10, first % 10);
    else if (first == last)
        gpi__append(text, "%d.%d", first / 10, first % 10);
    else if (has_dot_x(last))
        gpi__append(text, "%d.%d to %d.x", first / 10, first % 10, last / 10);
    else
        gpi__append(text, "%d.%d, %d.%d", first / 10, first % 10, last / 10, last % 10);
}

static void append_version(gpi__text *text, const char *before, int version) {
    if (version > 0 && version < INT_MAX)
        gpi__append(text, "%s%d.%d.%d", before, version / 10000, version / 100 % 100, version % 100);
}

/* What follows of a row, as docs/routes.md has it. */
static const char *what_follows(const gpi__lt_row *row) {
    switch (row->asked) {
    case GPI__LT_ASKED_OPENING:
        return "the log warns";
    case GPI__LT_ASKED_EPILOGUE:
        return "another route";
    case GPI__LT_ASKED_BOUNDS:
        return "another route, but with RELAXED";
    case GPI__LT_ASKED_C:
        return "another route, or a product without C";
    case GPI__LT_ASKED_READS:
        return "an estimate that is longer";
    case GPI__LT_ASKED_TILES:
        return "an algorithm with smaller tiles";
    case GPI__LT_ASKED_IN_PLACE:
        return "scalars on the device, else another route";
    case GPI__LT_ASKED_SEEN:
        return "cuBLASLt without a check";
    case GPI__LT_ASKED_RUN:
        return "another route for runs with beta C";
    default:
        return row->asked == GPI__LT_ASKED_UNSEEN
                   ? "another algorithm, else another route, but with config.check"
               : row->algorithm ? "another algorithm, else another route"
                                : "another route";
    }
}

/* A row of the table, as docs/routes.md has it. */
static void append_row(gpi__text *text, const gpi__lt_row *row) {
    gpi__append(text, "| %s | ", row->sentence);
    append_version(text, "from ", row->from);
    append_version(text, row->from ? ", before " : "before ", row->before);
    gpi__append(text, "%s%s | ", !row->from && row->before == INT_MAX ? "all" : "",
                row->patched ? " (patched)" : "");
    append_chips(text, row->first_arch, row->last_arch);
    if (row->algorithm)
        gpi__append(text, ", algorithm%s %d", row->algorithm < 0 ? "s but" : "", abs(row->algorithm));
    gpi__append(text, " | %s | %s |\n", what_follows(row), row->source);
}

static void docs_routes_has_the_table(void) {
    static char page[1 << 16], row[1024];
    FILE *file = fopen("docs/routes.md", "rb");
    size_t size = file ? fread(page, 1, sizeof page - 1, file) : 0, i;
    page[size] = 0;
    if (file)
        fclose(file);
    for (i = 0; i < GPI__COUNT(gpi__lt_rows); i++) {
        gpi__text text = gpi__text_in(row, sizeof row);
        append_row(&text, &gpi__lt_rows[i]);
        CHECK(strstr(page, row), "docs/routes.md lacks: %s", row);
    }
}

static int print_table(void) {
    static char row[1024];
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__lt_rows); i++) {
        gpi__text text = gpi__text_in(row, sizeof row);
        append_row(&text, &gpi__lt_rows[i]);
        printf("%s", row);
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--print") == 0)
        return print_table();
    plug_in();
    RUN(a_split_that_loses_the_end_of_k_is_left_out);
    RUN(other_versions_chips_and_algorithms_keep_the_split);
    RUN(stages_count_in_elements_and_unknown_ones_as_the_smallest);
    RUN(lines_of_2_31_bytes_are_kept_from_algorithm_66);
    RUN(matrices_of_2_31_elements_are_kept_from_algorithm_68);
    RUN(bare_products_are_asked_about_too);
    RUN(the_next_algorithm_is_taken_and_explain_tells);
    RUN(fp8_runs_with_c_take_another_route);
    RUN(vectors_with_bias_are_kept_from_old_versions);
    RUN(vectors_of_matrices_beyond_2_31_elements_are_kept_from_old_versions);
    RUN(defects_of_geforce_are_of_geforce);
    RUN(i8_into_i32_is_kept_from_13_0_0);
    RUN(fp8_with_another_type_of_bias_is_kept_from_old_versions);
    RUN(epilogues_that_are_known_to_be_wrong_are_kept_from_lt);
    RUN(a_library_that_breaks_captures_is_not_asked_in_one);
    RUN(what_cannot_be_seen_is_warned_of_once);
    RUN(docs_routes_has_the_table);
    return test_finish();
}
