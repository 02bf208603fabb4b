/* BATCH_INVARIANT: what may change the bits of a row is the same at every m and wherever tensors lie. On the fake GPU of fake_cuda.h. */
#include "fake_program.h"

/* >>products */

typedef struct types {
    gemmepi_dtype a, b, d;
    gemmepi_compute compute;
    int is_fused; /* 2: where both lie along k */
} types;
static const types all_types[] = {
    {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, 0, 1},
    {GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F16, 0, 1},
    {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_F32, 0, 1},
    {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, 0, 1},
    {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_TF32, 1},
    {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_COMPUTE_TF32, 1},
    {GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64, 0, 0},
    {GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_BF16, 0, 2},
    {GEMMEPI_E5M2, GEMMEPI_E4M3, GEMMEPI_F32, 0, 2},
    {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_BF16, 0, 0},
    {GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F32, 0, 0},
};

static const gemmepi_epilogue epilogues[] = {
    GEMMEPI_NONE,
    GEMMEPI_BIAS,
    GEMMEPI_RELU | GEMMEPI_BIAS,
    GEMMEPI_GELU_ERF | GEMMEPI_BIAS,
    GEMMEPI_SILU | GEMMEPI_BIAS,
    GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX,
    GEMMEPI_RELU | GEMMEPI_AUX,
    GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
    GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS,
    GEMMEPI_MISH | GEMMEPI_GATED | GEMMEPI_AUX,
    GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD,
    GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
    GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
    GEMMEPI_BGRAD,
    GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD,
    GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS,
    GEMMEPI_BGRAD_A,
    GEMMEPI_BIAS | GEMMEPI_BGRAD_B,
};

static gemmepi_matmul_desc desc_of(const types *of, gemmepi_epilogue epilogue, int layout, int64_t n,
                                   int64_t k) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.n = n, desc.k = k;
    desc.a.dtype = of->a, desc.b.dtype = of->b, desc.d.dtype = of->d;
    desc.compute = of->compute;
    desc.a.transposed = layout & 1, desc.b.transposed = layout >> 1;
    desc.epilogue = epilogue;
    desc.flags = GEMMEPI_BATCH_INVARIANT;
    return desc;
}

static int is_fused(const types *of, const gemmepi_matmul_desc *desc) {
    return of->is_fused == 2 ? desc->b.transposed && !desc->a.transposed : of->is_fused;
}

/* From one row to more than any band, wave or part has. */
static int64_t next_m(int64_t m) {
    return m < 10 ? m + 1 : m < 70 ? m + 9 : m + m / 2;
}
enum { MOST_ROWS = 300000 };

/* >>what a kernel computes, as far as defines tell */

/* Those that say where numbers lie, how many are under way and who moves them; all others count. */
static int only_moves(const char *line) {
    static const char *const names[] = {
        "TILE_M",   "TILE_N", "STAGES",  "PING_PONG",  "CLUSTER_M", "CLUSTER_N", "BUFFERS",
        "STAGED",   "LOADED", "COPIED",  "TAILS",      "SHARED",    "SUMMED",    "SUMS_TYPE",
        "SUMS_ADD", "WHOLE",  "ALIGNED", "A_ALIGNED",  "B_ALIGNED", "WARPS_M",   "WARPS_N",
        "BLOCKS",   "A_UNIT", "B_UNIT",  "MASK_WORDS", "BOX_GROUPS"};
    size_t i;
    for (i = 0; i < GPI__COUNT(names); i++) {
        size_t length = strlen(names[i]);
        if (strncmp(line, names[i], length) == 0 && line[length] == ' ')
            return 1;
    }
    return 0;
}

static void keep_what_counts(const char *prologue, char *kept) {
    const char *line = prologue, *start = "#define GEMMEPI_";
    *kept = 0;
    for (; *line; line = strchr(line, '\n') + 1)
        if (!only_moves(line + strlen(start)))
            strncat(kept, line, (size_t)(strchr(line, '\n') + 1 - line));
}

static const gpi__sm90_shape *shape_for_hopper(const gpi__problem *problem, int shape) {
    return gpi__is_fp8_product(problem) ? &gpi__sm90_fp8_shapes[shape] : &gpi__sm90_shapes[shape];
}

static void sm90_counts(const gpi__problem *problem, int shape, int unit_alpha, char *kept) {
    char prologue[4096];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gpi__sm90 sm90;
    memset(&sm90, 0, sizeof sm90);
    gpi__cut_up(problem, shape_for_hopper(problem, shape), unit_alpha, &sm90);
    gpi__append_sm90_defines(&text, problem, &sm90);
    keep_what_counts(prologue, kept);
}

static void sm80_counts(const gpi__problem *problem, int shape, int unit_alpha, char *kept) {
    char prologue[4096];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gpi__sm80_cut cut;
    gpi__sm80 sm80;
    cut.shape = &gpi__sm80_shapes[shape], cut.parts = 1;
    memset(&sm80, 0, sizeof sm80);
    gpi__cut_up_sm80(problem, &cut, unit_alpha, 90, &sm80);
    gpi__append_sm80_defines(&text, problem, &sm80);
    keep_what_counts(prologue, kept);
}

static void plain_counts(const gpi__problem *problem, char *kept) {
    char prologue[4096];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gpi__problem bare = gpi__bare_problem(problem);
    gpi__append_plain_defines(&text, gpi__plain_has_pass(problem) ? &bare : problem);
    keep_what_counts(prologue, kept);
}

/* >>the choice */

/* What the first of several problems is run by, which the others are held against. */
static gpi__candidate first_choice;
static char first_counts[4096];

static void counts_as_the_first(const gpi__problem *problem, const gpi__candidate *least, int shape,
                                const char *counts, int is_first) {
    if (is_first)
        snprintf(first_counts, sizeof first_counts, "%s", counts);
    CHECK(strcmp(counts, first_counts) == 0, "m %lld, engine %d, shape %d:\n%s, not\n%s",
          (long long)problem->m, least->engine, shape, counts, first_counts);
}

/* In every shape that the engine may take, as in the first one of the first problem. */
static void all_shapes_count_the_same(const gpi__problem *problem, const gpi__candidate *least,
                                      int is_first) {
    const gpi__engine *engine = gpi__engines[least->engine];
    int is_sm90 = engine == &gpi__sm90_engine || engine == &gpi__sm90_fp8_engine;
    int shape, shapes = engine->shapes;
    char counts[4096];
    CHECK(is_sm90 || engine == &gpi__sm80_engine, "engine %d", least->engine);
    for (shape = 0; shape < shapes; shape++) {
        if (shape &&
            !(is_sm90 ? gpi__shape_accepts(problem, shape_for_hopper(problem, shape), least->unit_alpha)
                      : gpi__sm80_shape_accepts(problem, &gpi__sm80_shapes[shape], 90)))
            continue;
        (is_sm90 ? sm90_counts : sm80_counts)(problem, shape, least->unit_alpha, counts);
        counts_as_the_first(problem, least, shape, counts, is_first && shape == 0);
        CHECK(!is_sm90 || shape_for_hopper(problem, shape)->parts == 1, "shape %d divides k", shape);
    }
}

/* Operands that the kernel for Hopper does not take as they lie are copied, byte by byte, and no others. */
static void copies_are_what_tma_wants(const gpi__problem *problem, const gpi__candidate *least) {
    int is_sm80 = gpi__engines[least->engine] == &gpi__sm80_engine, operand;
    for (operand = GPI__A; operand <= GPI__B; operand++) {
        const gpi__view *view = &problem->views[operand];
        int copies = !is_sm80 && !gpi__tma_accepts(problem, view, view->bits);
        CHECK(least->copies[operand] == (copies ? GPI__IN_UNITS : GPI__AS_IT_LIES),
              "operand %d is copied so: %d", operand, least->copies[operand]);
    }
}

/* Of a desc, by the first of several or as that is. */
static void is_run_as_the_first(const gemmepi_context *context, const types *of,
                                const gemmepi_matmul_desc *desc, int unit_alpha, int is_first) {
    gemmepi_route route = is_fused(of, desc) ? GEMMEPI_ROUTE_FUSED : GEMMEPI_ROUTE_PLAIN;
    gpi__problem problem, packed;
    gpi__candidates candidates;
    const gpi__candidate *least;
    char counts[4096];
    int i, open = 0;
    CHECK(gpi__normalise(desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpi__enumerate(context, &problem, unit_alpha, &candidates);
    for (i = 0; i < candidates.count; i++)
        open += !candidates.list[i].refusal;
    least = gpi__least(&candidates);
    CHECK(open == 1 && least && least->route == route, "%d candidates at m %lld, route %d", open,
          (long long)desc->m, least ? (int)least->route : -1);
    if (open != 1 || !least || least->route != route)
        return;
    if (is_first)
        first_choice = *least;
    CHECK(least->engine == first_choice.engine && least->parts <= 1, "m %lld: engine %d, not %d, %d parts",
          (long long)desc->m, least->engine, first_choice.engine, least->parts);
    if (route == GEMMEPI_ROUTE_PLAIN) {
        plain_counts(&problem, counts);
        counts_as_the_first(&problem, least, 0, counts, is_first);
        return;
    }
    copies_are_what_tma_wants(&problem, least);
    gpi__pack_views(&problem, least->copies, &packed);
    all_shapes_count_the_same(&packed, least, is_first);
}

/* >>at all m */

static void one_choice_for_all_m(const gemmepi_context *context, const types *of, gemmepi_matmul_desc desc,
                                 int unit_alpha) {
    for (desc.m = 1; desc.m < MOST_ROWS; desc.m = next_m(desc.m))
        is_run_as_the_first(context, of, &desc, unit_alpha, desc.m == 1);
}

static void for_each_product(const types *of) {
    static const int64_t sizes[][2] = {{4096, 512}, {256, 8192}, {50, 72}, {264, 1001}, {24, 24}};
    static gemmepi_context h100;
    size_t e, s;
    int layout, unit_alpha;
    h100.arch = 90, h100.multiprocessors = 132;
    for (e = 0; e < GPI__COUNT(epilogues); e++)
        for (s = 0; s < GPI__COUNT(sizes); s++)
            for (layout = 0; layout < 4; layout++)
                for (unit_alpha = 0; unit_alpha < 2; unit_alpha++) {
                    const int key[] = {(int)(of - all_types), (int)e, (int)s, layout, unit_alpha};
                    if (test_takes(test_key(key, GPI__COUNT(key))))
                        one_choice_for_all_m(&h100, of,
                                             desc_of(of, epilogues[e], layout, sizes[s][0], sizes[s][1]),
                                             unit_alpha);
                }
}

static void the_choice_does_not_depend_on_m(void) {
    size_t t;
    for (t = 0; t < GPI__COUNT(all_types); t++)
        for_each_product(&all_types[t]);
}

/* >>wherever tensors lie */

/* Elements of a line as it is stored, and lines, of the matrix in so many rows and columns. */
static void place(gemmepi_matrix *matrix, int64_t rows, int64_t columns, int padding, int between, int unit) {
    int64_t length = matrix->transposed ? rows : columns, lines = matrix->transposed ? columns : rows;
    matrix->ld = (length + padding + unit - 1) / unit * unit;
    matrix->batch_stride = (matrix->ld * lines + between + unit - 1) / unit * unit;
}

/* Lines and items of all matrices so many elements further apart than they must be; those of RELU's mask are whole units. */
static void place_all(gemmepi_matmul_desc *desc, int padding, int between) {
    int64_t d = gpi__result_columns(desc->epilogue, desc->n), aux = gpi__aux_columns(desc->epilogue, desc->n);
    int has_aux = (desc->epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD)) != 0;
    place(&desc->a, desc->m, desc->k, padding, between, 1),
        place(&desc->b, desc->k, desc->n, padding, between, 1);
    place(&desc->d, desc->m, d, padding, between, 1);
    if (has_aux)
        place(&desc->aux, desc->m, aux, padding, between, gpi__aux_is_mask(desc->epilogue) ? 128 : 1);
    if (desc->epilogue & GEMMEPI_RESIDUAL)
        place(&desc->residual, desc->m, d, padding, between, 1);
    desc->bias.batch_stride = desc->epilogue & GEMMEPI_BIAS ? desc->n + between : 0;
}

static void one_choice_wherever_it_lies(const gemmepi_context *context, const types *of,
                                        gemmepi_matmul_desc desc, int unit_alpha) {
    static const int places[][2] = {{0, 0}, {1, 0}, {2, 8}, {4, 3}, {8, 0}, {16, 1}}; /* padding, between */
    size_t i;
    desc.batch = 3;
    for (i = 0; i < GPI__COUNT(places); i++)
        for (desc.alignment = 16; desc.alignment; desc.alignment /= 4) {
            place_all(&desc, places[i][0], places[i][1]);
            is_run_as_the_first(context, of, &desc, unit_alpha, i == 0 && desc.alignment == 16);
        }
}

static void the_choice_does_not_depend_on_where_tensors_lie(void) {
    static const int64_t sizes[][3] = {{1, 256, 512}, {300, 50, 72}, {3, 264, 1001}, {128, 24, 24}};
    static gemmepi_context h100;
    size_t t, e, s;
    int layout;
    h100.arch = 90, h100.multiprocessors = 132;
    for (t = 0; t < GPI__COUNT(all_types); t++)
        for (e = 0; e < GPI__COUNT(epilogues); e++)
            for (s = 0; s < GPI__COUNT(sizes); s++)
                for (layout = 0; layout < 4; layout++) {
                    const int key[] = {(int)t, (int)e, (int)s, layout};
                    gemmepi_matmul_desc desc =
                        desc_of(&all_types[t], epilogues[e], layout, sizes[s][1], sizes[s][2]);
                    desc.m = sizes[s][0];
                    if (test_takes(test_key(key, GPI__COUNT(key))))
                        one_choice_wherever_it_lies(&h100, &all_types[t], desc, (int)(e + s) % 2);
                }
}

/* The parts of k, the near derivative of a box and joined products and sums are left out, all in words that the compiler sees. */
static void kernels_are_told(void) {
    static const struct {
        gemmepi_dtype dtype;
        gemmepi_compute compute;
        int a_transposed;
        const char *kernel;
    } cases[] = {{GEMMEPI_BF16, 0, 0, "gemmepi_sm90_bf16"},
                 {GEMMEPI_BF16, 0, 1, "gemmepi_sm80_bf16"},
                 {GEMMEPI_F32, 0, 0, "gemmepi_sm80_f32"},
                 {GEMMEPI_F32, GEMMEPI_COMPUTE_TF32, 0, "gemmepi_sm80_tf32"},
                 {GEMMEPI_F64, 0, 0, "gemmepi_plain_f64"}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(0, 0);
        long before = gpu.as_written;
        p.desc.a.dtype = cases[i].dtype, p.desc.compute = cases[i].compute;
        p.desc.a.transposed = cases[i].a_transposed;
        p.desc.m = 3, p.desc.flags = GEMMEPI_BATCH_INVARIANT;
        if (planned_plan(&p)) {
            CHECK(is_kernel(&p.details, cases[i].kernel), "%d by %s", (int)i, p.details.kernel);
            CHECK(is_defined("GEMMEPI_INVARIANT 1") && gpu.as_written == before + 1, "%d: compiled otherwise",
                  (int)i);
            CHECK(explain_has(p.plan, ", batch-invariant") &&
                      explain_has(p.plan, "BATCH_INVARIANT: a row has the same bits at any m") &&
                      explain_has(p.plan, "not lt: BATCH_INVARIANT: cuBLASLt's algorithm"),
                  "%d: not explained", (int)i);
            CHECK(cases[i].dtype == GEMMEPI_F64 ? explain_has(p.plan, "without it split would be tried first")
                                                : explain_has(p.plan, "us by estimate; without it:"),
                  "%d: no cost", (int)i);
            planned_run(&p);
        }
        planned_end(&p);
    }
}

/* >>layers */

static int count_in(const char *text, const char *what) {
    int count = 0;
    while ((text = strstr(text, what)) != NULL)
        count++, text++;
    return count;
}

/* Forward is one product; backward has the flag in those of G and dA, as dB is a sum over m. */
static void layers_hand_it_to_the_products_of_their_rows(void) {
    const uint64_t gradients = GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB;
    static const struct {
        uint64_t flags;
        int backward, products;
    } cases[] = {
        {GEMMEPI_LINEAR_SAVED, 0, 1},
        {GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB, 1, 1},
        {GEMMEPI_LINEAR_RECOMPUTE | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_ACCUMULATE_DA, 1, 2},
        {GEMMEPI_LINEAR_RECOMPUTE | GEMMEPI_LINEAR_DB, 1, 1}};
    static char text[16384];
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_linear_desc desc;
        gemmepi_plan *plan = NULL;
        memset(&desc, 0, sizeof desc);
        desc.m = 300, desc.n = 512, desc.k = 256, desc.a.dtype = GEMMEPI_BF16, desc.b.transposed = 1;
        desc.activation = GEMMEPI_SILU;
        desc.flags =
            (cases[i].backward ? cases[i].flags : cases[i].flags & ~gradients) | GEMMEPI_BATCH_INVARIANT;
        CHECK((cases[i].backward ? gemmepi_plan_linear_backward(context, &desc, &plan)
                                 : gemmepi_plan_linear(context, &desc, &plan)) == GEMMEPI_OK,
              "%d: %s", (int)i, gemmepi_last_error());
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(count_in(text, ", batch-invariant") == cases[i].products, "%d: %s", (int)i, text);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void layers_take_the_same_kernels_wherever_tensors_lie(void) {
    static char text[16384];
    int alignment, backward, ld;
    for (alignment = 16; alignment; alignment /= 8)
        for (backward = 0; backward < 2; backward++)
            for (ld = 256; ld <= 259; ld += 3) {
                gemmepi_config config = config_with_all_routes();
                gemmepi_context *context = open_fake(&config);
                gemmepi_linear_desc desc;
                gemmepi_plan *plan = NULL;
                memset(&desc, 0, sizeof desc);
                desc.m = 300, desc.n = 512, desc.k = 256, desc.a.dtype = GEMMEPI_BF16, desc.b.transposed = 1;
                desc.a.ld = desc.b.ld = ld, desc.alignment = (size_t)alignment;
                desc.activation = GEMMEPI_SILU;
                desc.flags =
                    GEMMEPI_BATCH_INVARIANT | GEMMEPI_LINEAR_RECOMPUTE | (backward ? GEMMEPI_LINEAR_DA : 0);
                CHECK((backward ? gemmepi_plan_linear_backward(context, &desc, &plan)
                                : gemmepi_plan_linear(context, &desc, &plan)) == GEMMEPI_OK,
                      "%s", gemmepi_last_error());
                gemmepi_plan_explain(plan, text, sizeof text);
                CHECK(count_in(text, "\n  gemmepi_sm90_bf16_") == 1 + backward, "alignment %d, ld %d: %s",
                      alignment, ld, text);
                gemmepi_plan_destroy(plan);
                gemmepi_destroy(context);
                nothing_is_left();
            }
}

/* >>formulas */

static void formulas_go_to_the_same_kernel_wherever_tensors_lie(void) {
    static const char *const formulas[] = {"d = silu(v + bias) * q + r", "d = silu(v + bias) + r",
                                           "d = v * q; s = row_sum(d * d)",
                                           "d = left(v, 64) * silu(right(v, 64))", "d = exp(v / 16) + r"};
    gemmepi_operand operands[4];
    size_t f;
    int alignment, ld;
    memset(operands, 0, sizeof operands);
    operands[0].name = "bias", operands[0].kind = GEMMEPI_PER_COLUMN;
    operands[1].name = "r", operands[1].kind = GEMMEPI_FULL;
    operands[2].name = "q", operands[2].kind = GEMMEPI_PER_ROW;
    operands[3].name = "s", operands[3].kind = GEMMEPI_PER_ROW, operands[3].output = 1;
    for (f = 0; f < GPI__COUNT(formulas); f++)
        for (alignment = 16; alignment; alignment /= 8)
            for (ld = 1024; ld <= 1025; ld++) {
                planned p = planned_begin(90, 0);
                p.desc.n = 1024, p.desc.a.ld = p.desc.k + ld - 1024, p.desc.b.ld = ld;
                operands[1].ld = ld;
                p.desc.epilogue = 0, p.desc.alignment = (size_t)alignment;
                p.desc.flags = GEMMEPI_BATCH_INVARIANT;
                p.desc.formula = formulas[f], p.desc.operands = operands;
                p.desc.operand_count = strstr(formulas[f], "s = ") ? 4 : 3;
                if (planned_plan(&p))
                    CHECK(is_kernel(&p.details, "gemmepi_sm90_bf16_") &&
                              (explain_has(p.plan, "inside the kernel") ||
                               explain_has(p.plan, "the formula is ")),
                          "%s, alignment %d, ld %d: by %s", formulas[f], alignment, ld, p.details.kernel);
                planned_end(&p);
            }
}

/* >>what is refused */

static void routes_that_are_left_out_are_missed_in_words(void) {
    static const struct {
        gemmepi_dtype dtype;
        gemmepi_route allowed;
        const char *missing, *other;
    } cases[] = {
        {GEMMEPI_BF16, GEMMEPI_ROUTE_PLAIN, "fused: config.routes leaves it out",
         "plain: BATCH_INVARIANT: the route fused runs such a product at any m"},
        {GEMMEPI_BF16, GEMMEPI_ROUTE_LT, "fused: config.routes leaves it out", "lt: BATCH_INVARIANT: "},
        {GEMMEPI_F64, GEMMEPI_ROUTE_SPLIT, "plain: config.routes leaves it out", "split: BATCH_INVARIANT: "}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(0, 1u << cases[i].allowed);
        p.desc.a.dtype = cases[i].dtype, p.desc.flags = GEMMEPI_BATCH_INVARIANT;
        CHECK(gemmepi_plan_matmul(p.context, &p.desc, &p.plan) == GEMMEPI_UNSUPPORTED &&
                  sentence_has(cases[i].missing) && sentence_has(cases[i].other),
              "%d: %s", (int)i, gemmepi_last_error());
        planned_end(&p);
    }
}

/* Beyond the kernels' extents another one would take over, so nothing does. */
static void an_m_that_fused_does_not_take_is_refused(void) {
    planned p = planned_begin(0, 0);
    p.desc.m = (int64_t)1 << 31, p.desc.n = p.desc.k = 8, p.desc.flags = GEMMEPI_BATCH_INVARIANT;
    CHECK(gemmepi_plan_matmul(p.context, &p.desc, &p.plan) == GEMMEPI_UNSUPPORTED &&
              sentence_has("fused: m, n or k is 2^30 or more"),
          "%s", gemmepi_last_error());
    planned_end(&p);
}

/* A plan and a call for each alignment, by one kernel; an operand is copied where it begins anywhere, or its lines do. */
static void pointers_of_any_alignment_go_to_the_same_kernel(void) {
    static const struct {
        int offset; /* bytes, of each pointer */
        int ld;     /* of A; 0: dense */
        int copies;
    } cases[] = {{0, 0, 0}, {2, 0, 2}, {8, 0, 2}, {0, 520, 0}, {2, 520, 2}, {0, 515, 1}, {6, 515, 2}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(90, 0);
        long launches;
        p.desc = fused_product();
        p.args = fused_args();
        p.desc.a.ld = cases[i].ld;
        p.desc.flags = GEMMEPI_BATCH_INVARIANT;
        p.args.a = (const char *)p.args.a + cases[i].offset;
        p.args.b = (const char *)p.args.b + cases[i].offset;
        p.args.d = (char *)p.args.d + cases[i].offset;
        p.args.bias = (const char *)p.args.bias + cases[i].offset;
        launches = gpu.launches;
        CHECK(gemmepi_matmul(p.context, &p.desc, &p.args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gpu.launches - launches == 1 + cases[i].copies, "%d: %ld launches", (int)i,
              gpu.launches - launches);
        p.desc.alignment = 2;
        if (planned_plan(&p)) {
            CHECK(is_kernel(&p.details, "gemmepi_sm90_bf16_"), "%d by %s", (int)i, p.details.kernel);
            CHECK(p.details.launches == 3 && explain_has(p.plan, "gemmepi_pack: b to workspace"),
                  "%d: %d launches", (int)i, p.details.launches);
            launches = gpu.launches;
            CHECK(gemmepi_plan_prepare(p.plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(gpu.launches - launches == 1 + (cases[i].ld || cases[i].offset) + (cases[i].offset != 0),
                  "%d: %ld launches of a plan", (int)i, gpu.launches - launches);
        }
        planned_end(&p);
    }
}

/* What copies make of items that overlap is larger than they are, and yet m decides nothing. */
static void items_that_overlap_are_copied(void) {
    int m;
    for (m = 1; m <= 4096; m *= 64) {
        planned p = planned_begin(90, 0);
        p.desc.m = m, p.desc.n = 64, p.desc.k = 64, p.desc.batch = 1000;
        p.desc.a.batch_stride = 1, p.desc.d.batch_stride = m * 64;
        p.desc.flags = GEMMEPI_BATCH_INVARIANT;
        if (planned_plan(&p))
            CHECK(is_kernel(&p.details, "gemmepi_sm90_") && p.details.launches == 2, "m %d by %s", m,
                  p.details.kernel);
        planned_end(&p);
    }
}

int main(void) {
    keep_libraries_open();
    RUN(the_choice_does_not_depend_on_m);
    RUN(the_choice_does_not_depend_on_where_tensors_lie);
    RUN(kernels_are_told);
    RUN(layers_hand_it_to_the_products_of_their_rows);
    RUN(layers_take_the_same_kernels_wherever_tensors_lie);
    RUN(formulas_go_to_the_same_kernel_wherever_tensors_lie);
    RUN(routes_that_are_left_out_are_missed_in_words);
    RUN(an_m_that_fused_does_not_take_is_refused);
    RUN(pointers_of_any_alignment_go_to_the_same_kernel);
    RUN(items_that_overlap_are_copied);
    return test_finish();
}
