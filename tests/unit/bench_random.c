/* The bench that draws products, without a GPU: what it draws, that its own kernels compile, and what its report says. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#define GEMMEPI_IMPLEMENTATION

#include "bench/nvrtc.h"
#include "bench/outcome.h"

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
    int seen[COUNT(draw_activations)] = {0}, i, a;
    for (i = 0; i < 1000; i++) {
        draw_problem p = drawn(2, i);
        flags |= p.epilogue & ~GEMMEPI_ACTIVATION_MASK;
        for (a = 0; a < COUNT(draw_activations); a++)
            seen[a] += draw_activation_of(p.epilogue) == draw_activations[a].code;
    }
    CHECK(flags == (GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD |
                    GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B | GEMMEPI_GATED | GEMMEPI_GATE_FIRST),
          "flags 0x%llx", (unsigned long long)flags);
    for (a = 0; a < COUNT(draw_activations); a++)
        CHECK(seen[a], "%s is never drawn", draw_activations[a].name);
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

/* >>the report */

static outcome taken(int row, int mode, gemmepi_epilogue epilogue, double ours, double again, double cublaslt,
                     double pass, double bare) {
    outcome o;
    int s;
    memset(&o, 0, sizeof o);
    o.seed = 1, o.row = row, o.mode = mode;
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
        CHECK(list.all[0].times[RACE_AGAIN].middle == 1.5 && list.all[0].times[RACE_CUBLASLT].middle == 0,
              "other times");
    }
    outcomes_close(&list);
}

/* Ratios in graph: 2, 0.5, 1.1 (cuBLASLt is the faster), 1 (NONE: the bare product counts), so that the mean is the fourth root of
   1.1. Row 2's noise of 10 % hides that it is above 1.02. An earlier line of row 0 does not count. */
static void the_report_is_what_was_computed_by_hand(void) {
    outcome all[6];
    outcomes list;
    outcome_summary graph, spaced;
    double noises[8];
    all[0] = taken(0, RACE_GRAPH, GEMMEPI_SILU, 90, 90, 0, 1, 1);
    all[1] = taken(0, RACE_GRAPH, GEMMEPI_SILU, 8, 8, 0, 4, 3);
    all[2] = taken(1, RACE_GRAPH, GEMMEPI_BIAS, 2, 2, 5, 4, 3);
    all[3] = taken(2, RACE_GRAPH, GEMMEPI_RELU, 11, 12.1, 10, 12, 9);
    all[4] = taken(3, RACE_GRAPH, GEMMEPI_NONE, 7, 7, 0, 0, 7);
    all[5] = taken(0, RACE_SPACED, GEMMEPI_SILU, 6, 6, 0, 4, 3);
    write_and_read(all, 6, &list);
    graph = outcomes_summarise(&list, RACE_GRAPH, noises);
    spaced = outcomes_summarise(&list, RACE_SPACED, noises);
    CHECK(list.count == 5 && graph.count == 4, "%d lines, %d in graph", list.count, graph.count);
    CHECK(fabs(graph.mean - pow(1.1, 0.25)) < 1e-9, "the mean is %g", graph.mean);
    CHECK(graph.above[0] == 2 && graph.beyond[0] == 1, "above 1.02: %d, %d", graph.above[0], graph.beyond[0]);
    CHECK(graph.above[1] == 1 && graph.beyond[1] == 1, "above 1.15: %d, %d", graph.above[1], graph.beyond[1]);
    CHECK(spaced.count == 1 && fabs(spaced.mean - 1.5) < 1e-9, "spaced: %d, %g", spaced.count, spaced.mean);
    CHECK(graph.failed == 0, "%d failed", graph.failed);
    outcomes_close(&list);
}

static void a_line_of_something_else_is_refused(void) {
    char line[] = "1,2,nothing";
    outcome o;
    CHECK(!outcome_read(line, &o), "it was read");
}

int main(void) {
    RUN(a_row_is_the_same_whatever_was_drawn_before);
    RUN(what_is_drawn_is_what_was_asked_for);
    RUN(every_family_and_activation_is_drawn);
    RUN(the_passes_of_drawn_products_compile);
    RUN(a_line_says_all_by_itself);
    RUN(the_report_is_what_was_computed_by_hand);
    RUN(a_line_of_something_else_is_refused);
    return test_finish();
}
