/* The bench that races products, drawn ones and those of models, without a GPU: what they are, that its own kernels compile, and what
   its report, its chart and its progress say. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#define GEMMEPI_IMPLEMENTATION

#include "bench/famous.h"
#include "bench/lt.h"
#include "bench/named.h"
#include "bench/nvrtc.h"
#include "bench/ratios.h"
#include "bench/tensors.h"
#include "bench/triton.h"

#include "test.h"

static bench machine;

/* >>drawing */

static draw_problem drawn(uint64_t seed, int row) {
    draw_problem p;
    int attempt = 0;
    CHECK(draw(seed, row, &attempt, &p), "row %d", row);
    return p;
}

/* The name says everything of a problem but a mask's lines. */
static int are_same(const draw_problem *a, const draw_problem *b) {
    char names[2][DRAW_NAME];
    draw_name(a, names[0]);
    draw_name(b, names[1]);
    return strcmp(names[0], names[1]) == 0 && a->aux_ld == b->aux_ld;
}

static void a_row_is_the_same_whatever_was_drawn_before(void) {
    draw_problem first = drawn(5, 7), other = drawn(5, 8), of_other_seed = drawn(6, 7), again;
    again = drawn(5, 7);
    CHECK(are_same(&first, &again), "row 7 differs");
    CHECK(!are_same(&first, &other), "rows 7 and 8 are alike");
    CHECK(!are_same(&first, &of_other_seed), "seeds 5 and 6 are alike");
}

/* Shares of 1,000, which lie within three or four standard deviations. */
static void what_is_drawn_is_what_was_asked_for(void) {
    int large = 0, odd = 0, f32 = 0, transposed[4] = {0}, i;
    for (i = 0; i < 1000; i++) {
        draw_problem p = drawn(1, i);
        CHECK(draw_operations(&p) <= DRAW_MOST_OPERATIONS && draw_bytes(&p) <= DRAW_MOST_BYTES, "row %d", i);
        large += p.m >= 64 && p.n >= 64 && p.k >= 64;
        odd += p.m % 2 || p.n % 2 || p.k % 2;
        f32 += p.d_dtype == GEMMEPI_F32;
        transposed[2 * p.a_transposed + p.b_transposed]++;
    }
    CHECK(large > 500 && large < 700, "%d have all extents from 64 on", large);
    CHECK(odd > 600 && odd < 850, "%d have an odd extent", odd);
    CHECK(f32 > 20 && f32 < 80, "%d have a D of F32", f32);
    for (i = 0; i < 4; i++)
        CHECK(transposed[i] > 180 && transposed[i] < 320, "layout %d: %d", i, transposed[i]);
}

static void every_family_and_activation_is_drawn(void) {
    gemmepi_epilogue flags = 0;
    int seen[DRAW_ACTIVATIONS] = {0}, i, a;
    for (i = 0; i < 1000; i++) {
        draw_problem p = drawn(2, i);
        flags |= p.epilogue & ~GEMMEPI_ACTIVATION_MASK;
        for (a = 0; a < DRAW_ACTIVATIONS; a++)
            seen[a] += draw_activation_of(p.epilogue) == draw_activations[a].code;
    }
    CHECK(flags == (GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD |
                    GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B | GEMMEPI_GATED | GEMMEPI_GATE_FIRST),
          "flags 0x%llx", (unsigned long long)flags);
    for (a = 0; a < DRAW_ACTIVATIONS; a++)
        CHECK(seen[a], "%s is never drawn", draw_activations[a].name);
}

/* >>products by name */

static void a_name_is_read_back_as_the_product_it_was_made_of(void) {
    int i;
    for (i = 0; i < 1000; i++) {
        draw_problem p = drawn(9, i), again;
        char name[DRAW_NAME];
        draw_name(&p, name);
        if (draw_aux_is_mask(&p)) /* whose padded lines a name leaves out */
            draw_settle_lines(&p);
        CHECK(named_problem(name, &again), "%s is refused", name);
        CHECK(memcmp(&p, &again, sizeof p) == 0, "%s is another product", name);
    }
}

static void what_is_no_name_of_a_product_is_refused(void) {
    static const char *const texts[] = {"",
                                        "64x64",
                                        "64x64x64",
                                        "64x64x64 NN",
                                        "64x64x64 NN BF16",
                                        "64x64x64 XN BF16 NONE",
                                        "0x64x64 NN BF16 NONE",
                                        "64x64x64 NN F32 NONE",
                                        "64x64x64 NN BF16-> NONE",
                                        "64x64x64 NN BF16 GELU",
                                        "64x64x64 NN BF16 BIAS|",
                                        "64x64x64 NN BF16 BIAS|BIAS",
                                        "64x64x64 NN BF16 NONE b",
                                        "64x64x64 NN BF16 NONE b+0",
                                        "64x64x64 NN BF16 NONE c+1",
                                        "64x64x64 NN BF16 NONE residual+1",
                                        "64x64x64 NN BF16 NONE +=",
                                        "99999x99999x99999 NN BF16 NONE"};
    draw_problem p;
    int i;
    for (i = 0; i < COUNT(texts); i++)
        CHECK(!named_problem(texts[i], &p), "'%s' is accepted", texts[i]);
}

/* >>products of models */

static void products_of_models_have_names_of_their_own(void) {
    char name[FAMOUS_NAME], other[FAMOUS_NAME];
    draw_problem p;
    int row, i;
    for (row = 0; famous_name(row, name, sizeof name); row++)
        for (i = 0; i < row; i++)
            CHECK(famous_name(i, other, sizeof other) && strcmp(name, other) != 0, "%d and %d: %s", i, row,
                  name);
    CHECK(row > 100, "%d rows", row);
    CHECK(!famous_problem(row, &p) && !famous_problem(-1, &p), "there are more");
}

static void products_of_models_are_planned(void) {
    gemmepi_context *host = NULL;
    gemmepi_config config;
    draw_problem p;
    int row;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    CHECK(gemmepi_create(&config, &host) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (row = 0; famous_problem(row, &p); row++) {
        gemmepi_matmul_desc desc = draw_desc(&p);
        gemmepi_plan *plan = NULL;
        CHECK(gemmepi_plan_matmul(host, &desc, &plan) == GEMMEPI_OK, "row %d: %s", row, gemmepi_last_error());
        gemmepi_plan_destroy(plan);
    }
    gemmepi_destroy(host);
}

/* From one use of a weight to the next twice the L2 of an H100 is read. */
static void weights_of_models_are_cold(void) {
    const size_t l2 = (size_t)50 << 20;
    draw_problem p;
    tensors t;
    int row;
    for (row = 0; famous_problem(row, &p); row++) {
        tensors_lay_out(&t, &p);
        CHECK(t.set * (size_t)t.sets >= 2 * l2, "row %d", row);
        CHECK(draw_bytes(&p) <= DRAW_MOST_BYTES, "row %d: %g GiB", row, (double)draw_bytes(&p) / 0x1p30);
    }
}

/* What a row is found by, and what it must be. */
static const struct {
    const char *name, *product;
} known[] = {
    {"llama forward gate_up 8192", "8192x28672x4096 NT BF16 SILU|AUX|GATED|GATE_FIRST"},
    {"llama prompt gate_up 2048", "2048x28672x4096 NT BF16 SILU|GATED|GATE_FIRST"},
    {"llama dX down 8192", "8192x14336x4096 NN BF16 SILU|BACKWARD|GATED|GATE_FIRST"},
    {"llama dW F32 down 8192", "4096x14336x8192 TN BF16->F32 NONE D+="},
    {"qwen decode qkv 1", "1x1152x896 NT BF16 BIAS"},
    {"gpt2 forward up 16384", "16384x3072x768 NT BF16 GELU_TANH|BIAS|AUX"},
    {"gpt2 dX down 16384", "16384x3072x768 NN BF16 GELU_TANH|BACKWARD"},
    {"gpt2 dW down 16384", "768x3072x16384 TN BF16 BGRAD_A D+="},
    {"gpt2 dX vocabulary 16384", "16384x768x50304 NN BF16 NONE"},
};

static void products_of_models_are_those_of_their_layers(void) {
    char name[FAMOUS_NAME], product[DRAW_NAME];
    draw_problem p;
    int row, i;
    for (i = 0; i < COUNT(known); i++) {
        for (row = 0; famous_name(row, name, sizeof name) && strcmp(name, known[i].name) != 0; row++) {
        }
        CHECK(famous_problem(row, &p), "%s is not there", known[i].name);
        draw_name(&p, product);
        CHECK(strcmp(product, known[i].product) == 0, "%s is %s", known[i].name, product);
    }
}

/* >>what is left out for --ampere */

static int fake_algorithm(const uint64_t *algorithm, int attribute, void *value, size_t size,
                          size_t *written) {
    const int id = (int)algorithm[0];
    if (attribute != LT_ALGORITHM_ID || size != sizeof id || id < 0)
        return LT_INVALID_VALUE;
    memcpy(value, &id, sizeof id);
    *written = sizeof id;
    return 0;
}

static void answers_of_hoppers_algorithm_are_left_out(void) {
    static const int ids[] = {66, 21, -1, 66, 31, 6, 67};
    lt_answer answers[COUNT(ids)];
    lt l;
    int i, kept;
    memset(&l, 0, sizeof l);
    memset(answers, 0, sizeof answers);
    l.algorithm_get = fake_algorithm;
    for (i = 0; i < COUNT(ids); i++)
        answers[i].algorithm[0] = (uint64_t)ids[i];
    kept = lt_leave_out_hopper(&l, answers, COUNT(ids), 3);
    CHECK(kept == 3 && answers[0].algorithm[0] == 21 && answers[1].algorithm[0] == 31 &&
              answers[2].algorithm[0] == 6,
          "%d are kept", kept);
    kept = lt_leave_out_hopper(&l, answers, 0, 3);
    CHECK(kept == 0, "%d of none", kept);
}

/* Algorithms 66, 6 and 21, of which 6 has tiles 1, 15, 20 and 25 and stages 7 and 9, and 21 names neither. Word 1 is what is set, a
   digit in base 100 for each attribute. */
static int fake_ids(void *handle, int compute, int scale_type, int a, int b, int c, int d, int requested,
                    int *ids, int *returned) {
    ids[0] = 66, ids[1] = 6, ids[2] = 21;
    *returned = requested < 3 ? requested : 3;
    return handle || compute != LT_COMPUTE_32F || scale_type != LT_REAL_32F || a != LT_REAL_16BF || a != b ||
           c != LT_REAL_32F || c != d;
}

static int fake_of_id(void *handle, int compute, int scale_type, int a, int b, int c, int d, int id,
                      uint64_t *algorithm) {
    (void)handle, (void)compute, (void)scale_type, (void)a, (void)b, (void)c, (void)d;
    memset(algorithm, 0, 8 * sizeof *algorithm);
    algorithm[0] = (uint64_t)id;
    return 0;
}

static int fake_has(const uint64_t *algorithm, int attribute, void *value, size_t size, size_t *written) {
    static const int tiles[] = {1, 15, 20, 25}, stages[] = {7, 9};
    const int *list = attribute == LT_HAS_TILES ? tiles : stages;
    const size_t bytes = algorithm[0] == 21 ? 0 : attribute == LT_HAS_TILES ? sizeof tiles : sizeof stages;
    *written = bytes;
    if (size && size != bytes)
        return LT_INVALID_VALUE;
    if (size)
        memcpy(value, list, bytes);
    return 0;
}

static int fake_set(uint64_t *algorithm, int attribute, const void *value, size_t size) {
    uint64_t place = 1;
    int to, i;
    memcpy(&to, value, size);
    for (i = 0; i < attribute; i++)
        place *= 100;
    algorithm[1] += place * ((uint64_t)to - algorithm[1] / place % 100);
    return 0;
}

/* Tile 15 fills the GPU twice, tile 20 a third of it, and what 21 has does not run. */
static int fake_check(void *handle, void *desc, void *a, void *b, void *c, void *d, const uint64_t *algorithm,
                      lt_answer *answer) {
    (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d;
    answer->waves = algorithm[1] / 100 % 100 == 15 ? 2 : 0.3f;
    return algorithm[0] == 21 ? LT_NOT_SUPPORTED : 0;
}

static void algorithms_are_listed_by_their_numbers(void) {
    static const uint64_t known[] = {7000000001500, 7000100001500, 9000000001500, 9000100001500,
                                     7000000002000, 7000002022000, 7000002042000, 9000000002000};
    lt_answer answers[20];
    lt_product product;
    lt_form form;
    lt l;
    int i, count;
    memset(&l, 0, sizeof l), memset(&product, 0, sizeof product), memset(&form, 0, sizeof form);
    l.algorithm_ids = fake_ids, l.algorithm_of_id = fake_of_id, l.algorithm_has = fake_has;
    l.algorithm_set = fake_set, l.algorithm_check = fake_check;
    form.type = LT_REAL_16BF, form.d_is_f32 = 1;
    count = lt_list_others(&l, &product, &form, answers, COUNT(answers));
    CHECK(count == 10, "%d are listed", count);
    for (i = 0; i < COUNT(known) && i < count; i++)
        CHECK(answers[i].algorithm[0] == 6 && answers[i].algorithm[1] == known[i],
              "the %d-th of %llu is %llu", i, (unsigned long long)answers[i].algorithm[0],
              (unsigned long long)answers[i].algorithm[1]);
    CHECK(lt_list_others(&l, &product, &form, answers, 3) == 3, "more than three");
}

/* >>the bench's kernels */

static void compile(const nvrtc *n, const char *source, int arch, const char *name) {
    char *cubin = NULL;
    CHECK(nvrtc_compile(&machine, n, source, arch, &cubin), "%s, sm_%d: %s", name, arch, machine.fault);
    free(cubin);
}

static void the_passes_of_drawn_products_compile(void) {
    static pass_text text;
    nvrtc n;
    int i;
    memset(&n, 0, sizeof n);
    if (!nvrtc_open(&machine, &n))
        SKIP("there is no NVRTC");
    compile(&n, race_source, 90, "the spacer");
    for (i = 0; i < 80; i++) {
        draw_problem p = drawn(3, i);
        pass_shape shape = pass_shape_of(&p);
        char name[DRAW_NAME];
        draw_name(&p, name);
        CHECK(pass_write(&text, &p, &shape), "%s: the source is too long", name);
        if (text.length)
            compile(&n, text.text, i % 2 ? 80 : 90, name);
    }
}

/* >>Triton's kernels */

static int fake_open(void **module, const char *path) {
    *module = (void *)(uintptr_t)strlen(path);
    return 0;
}

static int fake_entry(void **function, void *module, const char *name) {
    *function = module;
    return strcmp(name, "product") != 0;
}

static int fake_shared(void *function, int attribute, int value) {
    return !function || attribute != 8 || value != 49152;
}

static int fake_error(int error, const char **name) {
    (void)error, (void)name;
    return 0;
}

/* Of a list with two kernels for one product, one for another whose name begins alike, and what Python says. */
static void a_products_kernels_are_those_listed_for_its_name(void) {
    static char text[] = "a warning\n64x8x64 NN F16 BIAS\tone\tproduct\t128\t49152\t7\n"
                         "64x8x64 NN F16 BIAS a+3\tother\tproduct\t64\t49152\t5\n"
                         "64x8x64 NN F16 BIAS\tthird\tproduct\t256\t49152\t9\n";
    triton_list list = {NULL, text, sizeof text - 1};
    triton_kernels kernels;
    draw_problem p;
    bench b;
    memset(&b, 0, sizeof b), memset(&kernels, 0, sizeof kernels);
    b.driver.module_open = fake_open, b.driver.module_function = fake_entry;
    b.driver.function_set = fake_shared, b.driver.error_name = fake_error;
    CHECK(named_problem("64x8x64 NN F16 BIAS", &p) && triton_open(&b, &list, &p, &kernels), "%s", b.fault);
    CHECK(kernels.count == 2 && kernels.all[0].module == (void *)3 && kernels.all[1].module == (void *)5,
          "%d kernels", kernels.count);
    CHECK(kernels.all[0].threads == 128 && kernels.all[1].threads == 256 && kernels.all[1].blocks == 9,
          "%u and %u threads", kernels.all[0].threads, kernels.all[1].threads);
    CHECK(named_problem("64x8x64 NN F16 NONE", &p), "no name");
    kernels.count = 0;
    CHECK(triton_open(&b, &list, &p, &kernels) && kernels.count == 0, "%d of none", kernels.count);
    CHECK(strcmp(triton_last_line(text), "64x8x64 NN F16 BIAS\tthird\tproduct\t256\t49152\t9") == 0, "%s",
          text);
}

/* >>the report */

static outcome taken(int row, int mode, gemmepi_epilogue epilogue, double ours, double again, double cublaslt,
                     double pass, double bare) {
    outcome o;
    int s;
    memset(&o, 0, sizeof o);
    o.seed = 1, o.row = row, o.mode = mode;
    snprintf(o.name, sizeof o.name, "a name");
    o.problem.m = o.problem.n = o.problem.k = o.problem.a_ld = o.problem.b_ld = o.problem.d_ld = 64;
    o.problem.dtype = o.problem.d_dtype = GEMMEPI_BF16;
    o.problem.epilogue = epilogue;
    snprintf(o.route, sizeof o.route, "fused");
    snprintf(o.check, sizeof o.check, "ok");
    snprintf(o.card, sizeof o.card, "a card, with a comma");
    o.times[RACE_OURS].middle = ours, o.times[RACE_AGAIN].middle = again;
    o.times[RACE_CUBLASLT].middle = cublaslt, o.times[RACE_PASS].middle = pass;
    o.times[RACE_BARE].middle = bare;
    for (s = 0; s < RACE_SERIES; s++)
        o.times[s].low = o.times[s].high = o.times[s].middle;
    return o;
}

/* Through a file and back. */
static void write_and_read(const outcome *all, int count, outcomes *list) {
    static char heading[OUTCOME_LINE];
    const char *temporary = getenv("TMPDIR");
    char path[600];
    FILE *file;
    int i;
    snprintf(path, sizeof path, "%.400s/gemmepi-bench-%ld.csv", temporary ? temporary : "/tmp",
             (long)getpid());
    file = fopen(path, "w");
    memset(list, 0, sizeof *list);
    CHECK(file != NULL, "no temporary file");
    if (!file)
        return;
    outcome_heading(heading, sizeof heading);
    fprintf(file, "%s\n# a remark\n", heading);
    for (i = 0; i < count; i++)
        outcome_write(file, &all[i]);
    fclose(file);
    CHECK(outcomes_read(list, path), "the file is not read");
    remove(path);
}

static void a_line_says_all_by_itself(void) {
    outcome o = taken(3, RACE_BURST, 0, 1.25, 1.5, 0, 0, 2);
    outcomes list;
    o.problem = drawn(4, 2);
    write_and_read(&o, 1, &list);
    CHECK(list.count == 1 && list.all[0].row == 3 && list.all[0].mode == RACE_BURST, "%d lines", list.count);
    if (list.count == 1) {
        CHECK(are_same(&list.all[0].problem, &o.problem), "the problem is another");
        CHECK(strcmp(list.all[0].card, "a card  with a comma") == 0, "%s", list.all[0].card);
        CHECK(strcmp(list.all[0].name, "a name") == 0, "%s", list.all[0].name);
        CHECK(list.all[0].times[RACE_AGAIN].middle == 1.5 && list.all[0].times[RACE_CUBLASLT].middle == 0,
              "other times");
    }
    outcomes_close(&list);
}

/* Ratios in graph: 2 (Triton's is the fastest), 0.5, 1.1 (cuBLASLt is the faster), 1 (NONE: the bare product counts), so that the mean is the fourth root of
   1.1. Row 2's noise of 10 % hides that it is above 1.02. An earlier line of row 0 does not count. */
static void the_report_is_what_was_computed_by_hand(void) {
    outcome all[6];
    outcomes list;
    outcome_summary graph, spaced;
    double noises[8];
    all[0] = taken(0, RACE_GRAPH, GEMMEPI_SILU, 90, 90, 0, 1, 1);
    all[1] = taken(0, RACE_GRAPH, GEMMEPI_SILU, 8, 8, 0, 5, 3);
    all[1].times[RACE_TRITON].middle = 4;
    all[2] = taken(1, RACE_GRAPH, GEMMEPI_BIAS, 2, 2, 5, 4, 3);
    all[3] = taken(2, RACE_GRAPH, GEMMEPI_RELU, 11, 12.1, 10, 12, 9);
    all[4] = taken(3, RACE_GRAPH, GEMMEPI_NONE, 7, 7, 0, 0, 7);
    all[4].times[RACE_TRITON].middle = 8;
    all[5] = taken(0, RACE_SPACED, GEMMEPI_SILU, 6, 6, 0, 4, 3);
    write_and_read(all, 6, &list);
    graph = outcomes_summarise(&list, RACE_GRAPH, noises);
    spaced = outcomes_summarise(&list, RACE_SPACED, noises);
    CHECK(list.count == 5 && graph.count == 4, "%d lines, %d in graph", list.count, graph.count);
    CHECK(fabs(graph.mean - pow(1.1, 0.25)) < 1e-9, "the mean is %g", graph.mean);
    CHECK(graph.above[0] == 2 && graph.beyond[0] == 1, "above 1.02: %d, %d", graph.above[0], graph.beyond[0]);
    CHECK(graph.above[1] == 1 && graph.beyond[1] == 1, "above 1.15: %d, %d", graph.above[1], graph.beyond[1]);
    CHECK(graph.above[2] == 2 && graph.beyond[2] == 1, "above 1.05: %d, %d", graph.above[2], graph.beyond[2]);
    CHECK(spaced.count == 1 && fabs(spaced.mean - 1.5) < 1e-9, "spaced: %d, %g", spaced.count, spaced.mean);
    CHECK(graph.triton == 2 && graph.best[RACE_TRITON] == 1 && graph.best[RACE_BARE] == 1,
          "Triton's: %d, the best of %d", graph.triton, graph.best[RACE_TRITON]);
    CHECK(graph.failed == 0, "%d failed", graph.failed);
    outcomes_close(&list);
}

static void a_line_of_something_else_is_refused(void) {
    char line[] = "1,2,nothing";
    outcome o;
    CHECK(!outcome_read(line, &o), "it was read");
}

/* >>the chart */

/* Past a tag's name and its attributes, each in single quotes; NULL where it is none. */
static const char *past_tag(const char *at, int *closes_itself) {
    for (*closes_itself = 0; *at && *at != '>' && *at != '<'; at++) {
        if (*at == '\'')
            at = strchr(at + 1, '\'');
        if (!at)
            return NULL;
        *closes_itself = at[0] == '/' && at[1] == '>';
    }
    return *at == '>' ? at + 1 : NULL;
}

/* Whether each element is closed by its own name, in one root, and no ampersand begins anything but &amp; &lt; or &gt;. */
static int is_xml(const char *at) {
    char open[8][16];
    int depth = 0, roots = 0, closes_itself, length;
    for (; *at; at++) {
        if (*at == '&' && strncmp(at, "&amp;", 5) != 0 && strncmp(at, "&lt;", 4) != 0 &&
            strncmp(at, "&gt;", 4) != 0)
            return 0;
        if (*at != '<')
            continue;
        length = (int)strcspn(at + 1 + (at[1] == '/'), " />");
        if (at[1] == '/') {
            if (!depth-- || (int)strlen(open[depth]) != length ||
                strncmp(open[depth], at + 2, (size_t)length) != 0)
                return 0;
        } else {
            roots += depth == 0;
            if (depth == COUNT(open))
                return 0;
            snprintf(open[depth++], sizeof open[0], "%.*s", length, at + 1);
        }
        at = past_tag(at + 1, &closes_itself);
        if (!at--)
            return 0;
        depth -= closes_itself;
    }
    return depth == 0 && roots == 1;
}

/* The heights of a mode's steps into y, at most `most`; their number. */
static int steps_of(const char *svg, const char *mode, double *y, int most) {
    char begin[64];
    const char *at;
    int count = 0, length = 0;
    snprintf(begin, sizeof begin, "<path class='mode %s' d='M", mode);
    at = strstr(svg, begin);
    if (!at)
        return 0;
    at = strchr(at + strlen(begin), ' '); /* behind M's x */
    while (at && count < most && sscanf(at + 1, "%lf%*[H]%*f%n", &y[count], &length) == 1) {
        count++;
        at += 1 + length;
        at = *at == 'V' ? at : NULL;
    }
    return count;
}

/* The chart of outcomes as text, the caller's to free. */
static char *drawn_chart(const outcome *all, int count) {
    enum { MOST = 1 << 16 };
    char *text = calloc(1, MOST);
    FILE *file = tmpfile();
    outcomes list;
    write_and_read(all, count, &list);
    CHECK(text && file && ratios_draw(&list, file), "nothing is drawn");
    if (text && file) {
        rewind(file);
        CHECK(fread(text, 1, MOST - 1, file) < MOST - 1, "the chart is longer than it should be");
    }
    if (file)
        fclose(file);
    outcomes_close(&list);
    return text;
}

/* Ratios in graph are 2, 0.5 and 1, in burst 1.5; what there is no opponent for is left out. */
static void the_chart_has_a_step_for_each_ratio_the_least_first(void) {
    outcome all[5];
    double y[8];
    char *svg;
    all[0] = taken(0, RACE_GRAPH, GEMMEPI_SILU, 8, 8, 0, 4, 3);
    all[1] = taken(1, RACE_GRAPH, GEMMEPI_SILU, 2, 2, 0, 4, 3);
    all[2] = taken(2, RACE_GRAPH, GEMMEPI_SILU, 4, 4, 0, 4, 3);
    all[3] = taken(3, RACE_GRAPH, GEMMEPI_SILU, 4, 4, 0, 0, 3);
    all[4] = taken(0, RACE_BURST, GEMMEPI_SILU, 6, 6, 0, 4, 3);
    svg = drawn_chart(all, 5);
    CHECK(steps_of(svg, "graph", y, 8) == 3, "%d steps", steps_of(svg, "graph", y, 8));
    CHECK(y[0] > y[1] && y[1] > y[2], "%g, %g, %g", y[0], y[1], y[2]);
    CHECK(fabs((y[0] - y[1]) - (y[1] - y[2])) < 0.25, "0.5 to 1 is not 1 to 2: %g, %g, %g", y[0], y[1], y[2]);
    CHECK(steps_of(svg, "burst", y, 8) == 1 && steps_of(svg, "spaced", y, 8) == 0, "other modes");
    CHECK(strstr(svg, "graph: geometric mean 1.000, above 1.02: 1 of 3, above 1.15: 1<") != NULL,
          "the legend");
    CHECK(strstr(svg, "seed 1, 3 products") != NULL, "the title");
    free(svg);
}

/* The same product in the same mode: each has its line, and neither takes the other's place. */
static void tuned_products_have_a_line_of_their_own(void) {
    outcome all[3];
    double y[8];
    char *svg;
    all[0] = taken(0, RACE_GRAPH, GEMMEPI_SILU, 8, 8, 0, 4, 3);
    all[1] = taken(1, RACE_GRAPH, GEMMEPI_SILU, 8, 8, 0, 4, 3);
    all[2] = taken(0, RACE_GRAPH, GEMMEPI_SILU, 4, 4, 0, 4, 3);
    all[2].tuned = 1;
    svg = drawn_chart(all, 3);
    CHECK(steps_of(svg, "graph", y, 8) == 2, "%d steps", steps_of(svg, "graph", y, 8));
    CHECK(steps_of(svg, "graph tuned", y, 8) == 1, "%d steps", steps_of(svg, "graph tuned", y, 8));
    CHECK(strstr(svg, "graph: geometric mean 2.000, above 1.02: 2 of 2, above 1.15: 2<") != NULL, "untuned");
    CHECK(strstr(svg, "graph, tuned: geometric mean 1.000, above 1.02: 0 of 1, above 1.15: 0<") != NULL,
          "tuned");
    free(svg);
}

static void the_chart_is_well_formed_whatever_the_card_is_called(void) {
    outcome o = taken(0, RACE_SPACED, GEMMEPI_SILU, 1, 1, 0, 400, 3);
    char *svg;
    o.seed = FAMOUS_SEED;
    snprintf(o.card, sizeof o.card, "<A & B>");
    svg = drawn_chart(&o, 1);
    CHECK(is_xml(svg), "%s", svg);
    CHECK(strstr(svg, "&lt;A &amp; B&gt;, products of well-known models, 1 products") != NULL, "the title");
    CHECK(!is_xml("<a><b></a></b>") && !is_xml("<a>&</a>") && !is_xml("<a/><b/>") && is_xml("<a x='>'/>"),
          "is_xml is wrong");
    free(svg);
}

/* >>progress */

static void progress_tells_the_time_that_is_left(void) {
    char text[PROGRESS_TEXT];
    progress p;
    memset(&p, 0, sizeof p);
    p.what = "rows", p.total = 60;
    progress_bar(&p, 5, "first", text, sizeof text);
    CHECK(strcmp(text, "[....................] 0/60 rows  first") == 0, "%s", text);
    p.done = 15;
    progress_bar(&p, 61, "a product", text, sizeof text);
    CHECK(strcmp(text, "[#####...............] 15/60 rows, 3:03 left  a product") == 0, "%s", text);
    progress_line(&p, 1800, text, sizeof text);
    CHECK(strcmp(text, "25 %: 15 of 60 rows, 30:00, 1:30:00 left") == 0, "%s", text);
}

int main(void) {
    RUN(a_row_is_the_same_whatever_was_drawn_before);
    RUN(what_is_drawn_is_what_was_asked_for);
    RUN(every_family_and_activation_is_drawn);
    RUN(a_name_is_read_back_as_the_product_it_was_made_of);
    RUN(what_is_no_name_of_a_product_is_refused);
    RUN(products_of_models_have_names_of_their_own);
    RUN(products_of_models_are_planned);
    RUN(weights_of_models_are_cold);
    RUN(products_of_models_are_those_of_their_layers);
    RUN(answers_of_hoppers_algorithm_are_left_out);
    RUN(algorithms_are_listed_by_their_numbers);
    RUN(a_products_kernels_are_those_listed_for_its_name);
    RUN(the_passes_of_drawn_products_compile);
    RUN(a_line_says_all_by_itself);
    RUN(the_report_is_what_was_computed_by_hand);
    RUN(a_line_of_something_else_is_refused);
    RUN(the_chart_has_a_step_for_each_ratio_the_least_first);
    RUN(tuned_products_have_a_line_of_their_own);
    RUN(the_chart_is_well_formed_whatever_the_card_is_called);
    RUN(progress_tells_the_time_that_is_left);
    return test_finish();
}
