/* Which route and which kernel take a product, and what a plan says of those that do not: on the fake GPU of fake_cuda.h. */
#include "fake_program.h"

/* >>routes */

static void routes_that_are_none_of_products_are_refused(void) {
    gemmepi_config config = fake_config();
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_context *context = NULL;
    gemmepi_plan *plan = NULL;
    config.routes = 1u << GEMMEPI_ROUTE_SUM;
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("config.routes is 0x80"),
          "%s", gemmepi_last_error());
    config.routes = 1u << GEMMEPI_ROUTE_LT; /* has no SILU */
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_UNSUPPORTED &&
              sentence_has("fused: config.routes leaves it out") &&
              sentence_has("split: config.routes leaves it out") &&
              sentence_has("plain: config.routes leaves it out"),
          "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* A library that is not there leaves the routes that do without it. */
static void a_missing_library_leaves_the_other_routes(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_plan *plan = NULL;
    desc.epilogue = GEMMEPI_RELU; /* lt has it, too */
    gpu.missing = "nvrtc";
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK && route_of(plan) == GEMMEPI_ROUTE_LT,
          "without NVRTC: %s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
    config = config_with_all_routes();
    gpu.missing = "cublasLt";
    context = open_fake(&config);
    desc.epilogue = GEMMEPI_NONE; /* lt would be taken */
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK && route_of(plan) == GEMMEPI_ROUTE_FUSED,
          "without cuBLASLt: %s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Types and epilogues that cuBLASLt is for, on a chip with the kernels of the route fused and on one without. */
static void without_cublaslt_every_product_has_a_route(void) {
    static const gemmepi_dtype dtypes[][3] = {
        {GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64},    {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32},
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16}, {GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F32},
        {GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_BF16}, {GEMMEPI_E5M2, GEMMEPI_E4M3, GEMMEPI_E4M3},
        {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I32},      {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I8},
        {GEMMEPI_BF16, GEMMEPI_I8, GEMMEPI_BF16}};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE,
                                                 GEMMEPI_RELU | GEMMEPI_BIAS,
                                                 GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX,
                                                 GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                                                 GEMMEPI_NONE | GEMMEPI_BGRAD_B,
                                                 GEMMEPI_SILU | GEMMEPI_GATED,
                                                 GEMMEPI_RESIDUAL};
    int arch;
    size_t t, e, layout;
    for (arch = 75; arch <= 90; arch += 15) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context;
        gpu.missing = "cublasLt";
        gpu.other_arch = arch;
        warnings = 0;
        config.log = count_warnings;
        context = open_fake(&config);
        for (t = 0; t < GPI__COUNT(dtypes); t++)
            for (e = 0; e < GPI__COUNT(epilogues); e++)
                for (layout = 0; layout < 8; layout++) {
                    gemmepi_matmul_desc desc = product(dtypes[t][0], epilogues[e]);
                    gemmepi_plan *plan = NULL;
                    gemmepi_epilogue_needs needs;
                    gpu.archs_told = 0;
                    desc.b.dtype = dtypes[t][1], desc.d.dtype = dtypes[t][2];
                    desc.a.transposed = layout & 1, desc.b.transposed = layout >> 1 & 1;
                    desc.m = desc.n = layout & 4 ? 1022 : 1024;
                    if (gemmepi_epilogue_info(&desc, &needs) != GEMMEPI_OK)
                        continue; /* has no meaning */
                    CHECK(
                        gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK &&
                            (route_of(plan) == GEMMEPI_ROUTE_PLAIN || route_of(plan) == GEMMEPI_ROUTE_FUSED),
                        "dtypes %d, epilogue %d, layout %d: %s", (int)t, (int)e, (int)layout,
                        gemmepi_last_error());
                    gemmepi_plan_destroy(plan);
                }
        CHECK(warnings > 0, "the log does not say that routes are slow for want of cuBLASLt");
        gemmepi_destroy(context);
        gpu.other_arch = 0;
        nothing_is_left();
    }
}

static void a_problem_that_no_route_runs_is_refused_with_the_reasons_of_both(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc descs[2];
    int i;
    descs[0] = lt_product(), descs[1] = split_product();
    gpu.heuristic_answers = 0;
    for (i = 0; i < 2; i++) {
        gemmepi_plan *plan = NULL;
        descs[i].m = descs[i].n = (int64_t)1 << 24; /* 2^36 tiles */
        CHECK(gemmepi_plan_matmul(context, &descs[i], &plan) == GEMMEPI_UNSUPPORTED && !plan, "%s",
              gemmepi_last_error());
        CHECK(sentence_has("lt: ") && sentence_has("split: ") && sentence_has("plain: "), "%s",
              gemmepi_last_error());
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_problem_that_cublaslt_has_no_algorithm_for_is_plain(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    int i;
    for (i = 0; i < 4; i++) {
        gemmepi_matmul_desc desc = i % 2 ? split_product() : lt_product();
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_plan *plan = NULL;
        gpu.heuristic_answers = i >= 2;
        if (i >= 2)
            break_function("cublasLtMatmulAlgoGetHeuristic", GPI__CUBLAS_STATUS_NOT_SUPPORTED);
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK && plan, "%s", gemmepi_last_error());
        CHECK(route_of(plan) == GEMMEPI_ROUTE_PLAIN, "route %d", (int)route_of(plan));
        CHECK(explain_has(plan, "route plain") && explain_has(plan, "not lt: ") &&
                  explain_has(plan, "not split: cuBLASLt 130100 has no algorithm"),
              "explain does not tell why");
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_plan_destroy(plan);
    }
    CHECK(gpu.lt_calls == 0 && gpu.launches == 2 * 1 + 2 * 2, "%ld calls, %ld launches", gpu.lt_calls,
          gpu.launches);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* There is no product, but sums over no rows, or of an operand that is there: whatever routes are allowed. */
/* Names of cublasLt.h of CUDA 13: its rows are our columns. */
static void tiles_of_cublaslt_are_those_of_its_header(void) {
    static const int tiles[][3] = {
        {1, 8, 8},       {22, 64, 512},  {23, 128, 256},  {35, 256, 32},   {36, 8, 128},    {71, 32, 192},
        {115, 56, 768},  {116, 64, 192}, {185, 144, 192}, {232, 256, 192}, {255, 352, 64},  {279, 504, 64},
        {280, 520, 64},  {311, 768, 64}, {312, 64, 16},   {393, 128, 8},   {439, 128, 448}, {448, 192, 8},
        {513, 256, 256}, {630, 768, 80}, {0, 0, 0},       {-1, 0, 0},      {631, 0, 0},     {1 << 30, 0, 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(tiles); i++) {
        int tile_m = -1, tile_n = -1;
        gpi__lt_tile(tiles[i][0], &tile_m, &tile_n);
        CHECK(tile_n == tiles[i][1] && tile_m == tiles[i][2], "%d: %d x %d", tiles[i][0], tile_n, tile_m);
    }
}

/* It may store D as C lies: then it is asked for neither. */
static void cublaslt_has_no_c_whose_lines_begin_at_multiples_of_more_elements_than_those_of_d(void) {
    enum { WIDE = 1024 };
    static const struct {
        int64_t c_ld, d_ld;
        int items, is_taken;
    } rows[] = {{0, 0, 1, 1},           {WIDE + 9, WIDE, 1, 1},     {WIDE + 8, WIDE + 16, 1, 1},
                {WIDE, WIDE + 9, 1, 0}, {WIDE + 8, WIDE + 6, 1, 0}, {WIDE, WIDE, 2, 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        planned p = planned_begin(90, 1 << GEMMEPI_ROUTE_LT | 1 << GEMMEPI_ROUTE_SPLIT);
        double one = 1;
        p.desc.epilogue = GEMMEPI_NONE, p.desc.n = WIDE;
        p.desc.a.dtype = GEMMEPI_F32;
        p.desc.c.ld = rows[i].c_ld, p.desc.d.ld = rows[i].d_ld, p.desc.batch = rows[i].items;
        p.desc.c.batch_stride = rows[i].items > 1 ? 1 << 22 : 0;
        p.desc.d.batch_stride = rows[i].items > 1 ? (1 << 22) + 1 : 0;
        p.args.c = p.args.d, p.args.beta = &one;
        if (planned_plan(&p)) {
            const gpi__split *split = (const gpi__split *)matmul_of(p.plan)->built;
            CHECK(
                (p.details.route == GEMMEPI_ROUTE_LT) == rows[i].is_taken &&
                    explain_has(p.plan, "not lt: lines or items of d begin at multiples of fewer elements") !=
                        rows[i].is_taken,
                "%d: %s", (int)i, p.details.route_name);
            CHECK(rows[i].is_taken || !split->product_adds_c, "%d: the product takes c", (int)i);
        }
        planned_end(&p);
    }
}

/* An fp8 D beside a C of 16 bits, which nobody gave: both begin at multiples of 8 elements. */
/* That rules are asked about, without a library. */
static gemmepi_context hopper;

static void a_c_of_another_dtype_is_held_to_elements(void) {
    gemmepi_matmul_desc desc;
    gpi__problem problem;
    gpi__lt_question question;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.k = 64, desc.n = 1048;
    desc.a.dtype = desc.b.dtype = desc.d.dtype = GEMMEPI_E4M3;
    CHECK(gpi__normalise(&desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
    question = gpi__lt_question_of(&hopper, &problem, GPI__LT_WHOLE);
    CHECK(problem.views[GPI__C].bits == 16 && problem.views[GPI__D].bits == 8 &&
              !gpi__lt_stores_as_c(&question),
          "C lies better than D");
}

static void an_empty_product_leaves_its_sums(void) {
    static const struct {
        gemmepi_epilogue epilogue;
        int64_t m, n;
        int batch, launches;
    } cases[] = {{GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 0, 1024, 1, 1},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 0, 1024, 3, 1},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 2048, 0, 1, 0},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 0, 1024, 0, 1},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD, 0, 1024, 1, 0},
                 {GEMMEPI_BGRAD_A, 2048, 0, 1, 1},
                 {GEMMEPI_BGRAD_A, 2048, 0, 3, 2},
                 {GEMMEPI_BGRAD_B, 0, 1024, 1, 1},
                 {GEMMEPI_BGRAD_B, 2048, 0, 1, 0}};
    int i, lt_only;
    for (i = 0; i < (int)GPI__COUNT(cases); i++)
        for (lt_only = 0; lt_only < 2; lt_only++) {
            planned p = planned_begin(0, lt_only ? 1u << GEMMEPI_ROUTE_LT : 0);
            int writes = cases[i].launches != 0;
            gemmepi_status without;
            p.desc.epilogue = cases[i].epilogue;
            p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.batch = cases[i].batch;
            p.args.bias = NULL;
            if (cases[i].epilogue & GEMMEPI_BACKWARD)
                p.args.aux = (void *)(uintptr_t)0x50000000;
            if (planned_plan(&p)) {
                CHECK(p.details.route == GEMMEPI_ROUTE_EMPTY && p.details.launches == cases[i].launches,
                      "%d: route %d, %d launches", i, (int)p.details.route, p.details.launches);
                CHECK(writes ? is_kernel(&p.details, cases[i].epilogue & GEMMEPI_BGRAD
                                                         ? "gemmepi_formula_reduce_"
                                                         : "gemmepi_sum_")
                             : !p.details.kernel[0],
                      "%d: kernel %s", i, p.details.kernel);
                CHECK(explain_has(p.plan, "sums of bias_grad are written") == writes, "%d: explained wrong",
                      i);
                without = gemmepi_run_matmul(p.plan, &p.args, NULL);
                CHECK(without == (writes ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK), "%d: %d without bias_grad",
                      i, (int)without);
                p.args.bias_grad = (void *)(uintptr_t)0x30000000;
                planned_run(&p);
            }
            CHECK(gpu.launches == cases[i].launches, "%d: %ld launches", i, gpu.launches);
            planned_end(&p);
        }
}

/* Beside fp8 operands cuBLASLt stores aux in BF16 unless it is told, also where D is fp8. */
static void the_type_of_aux_is_told_where_it_is_not_cublaslt_s_own(void) {
    static const struct {
        gemmepi_dtype a, d;
        int told;
    } cases[] = {{GEMMEPI_E4M3, GEMMEPI_E4M3, GPI__CUDA_R_8F_E4M3},
                 {GEMMEPI_E4M3, GEMMEPI_BF16, GPI__CUDA_R_16BF},
                 {GEMMEPI_BF16, GEMMEPI_BF16, -1}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(0, 1u << GEMMEPI_ROUTE_LT);
        gpu.algorithms[0].id = 66;
        gpu.lt_aux_type = -1;
        p.desc = product(cases[i].a, GEMMEPI_GELU_TANH | GEMMEPI_AUX);
        p.desc.b.transposed = 1, p.desc.d.dtype = cases[i].d;
        if (planned_plan(&p))
            CHECK(gpu.lt_aux_type == cases[i].told, "%d: type %d", (int)i, gpu.lt_aux_type);
        gpu.algorithms[0].id = 0;
        planned_end(&p);
    }
}

/* cuBLASLt that knows of both rounds the product before it adds D. */
static void what_is_added_to_d_is_not_told_that_beta_is_1(void) {
    static const struct {
        double alpha, beta;
        int in_place, is_hidden, is_split;
        gemmepi_dtype dtype;
        uint64_t flags;
        gemmepi_epilogue epilogue;
    } rows[] = {
        {1, 1, 1, 1, 0, GEMMEPI_BF16, 0, GEMMEPI_NONE},
        {1, 1, 0, 0, 0, GEMMEPI_BF16, 0, GEMMEPI_NONE},
        {1, 2, 1, 0, 0, GEMMEPI_F16, 0, GEMMEPI_NONE},
        {2, 1, 1, 0, 1, GEMMEPI_F16, 0, GEMMEPI_NONE},
        {1, 1, 1, 0, 0, GEMMEPI_F32, 0, GEMMEPI_NONE},
        {2, 1, 0, 0, 0, GEMMEPI_F16, 0, GEMMEPI_NONE},
        {2, 1, 1, 0, 0, GEMMEPI_F16, GEMMEPI_RELAXED, GEMMEPI_NONE},
        {1, 1, 1, 1, 0, GEMMEPI_BF16, 0, GEMMEPI_RELU | GEMMEPI_BACKWARD},
        {1, 2, 1, 0, 0, GEMMEPI_BF16, 0, GEMMEPI_RELU | GEMMEPI_BACKWARD},
        {1, 1, 1, 0, 0, GEMMEPI_BF16, 0, GEMMEPI_RELU},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        static const double one = 1;
        gemmepi_config config = fake_config();
        gemmepi_context *context;
        gemmepi_matmul_desc desc = product(rows[i].dtype, rows[i].epilogue);
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_plan *plan = NULL;
        config.log = keep_log;
        context = open_fake(&config);
        desc.flags = rows[i].flags;
        args.c = rows[i].in_place ? args.d : memory[7];
        args.alpha = &rows[i].alpha;
        args.beta = &rows[i].beta;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", (int)i, gemmepi_last_error());
        CHECK(gpu.last_alpha && (gpu.last_beta == gpu.last_alpha + 1) == rows[i].is_hidden,
              "%d: scalars at %p and %p", (int)i, (const void *)gpu.last_alpha, (const void *)gpu.last_beta);
        CHECK(!rows[i].is_hidden || (gpu.last_alpha[0] == 1 && gpu.last_alpha[1] == 1), "%d: %g %g", (int)i,
              (double)gpu.last_alpha[0], (double)gpu.last_alpha[1]);
        CHECK((gpu.launches == 1) == rows[i].is_split, "%d: %ld passes", (int)i, gpu.launches);
        CHECK(explain_has(plan, "route lt"), "%d: the plan changed its route", (int)i);
        CHECK((strstr(logged, "with such an alpha it rounds") != NULL) == rows[i].is_split,
              "%d: the log has: %s", (int)i, logged);
        args.c = args.d;
        args.alpha = args.beta = &one; /* other runs of the plan go on as before */
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK &&
                  gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK,
              "%d: %s", (int)i, gemmepi_last_error());
        CHECK(gpu.launches == rows[i].is_split, "%d: %ld passes", (int)i, gpu.launches);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* Sums of an operand are launched behind a product that has the rest of the epilogue. With another alpha it has none, and a pass adds D. */
static void what_is_added_to_d_beside_sums_of_an_operand_is_rounded_once(void) {
    static const struct {
        double alpha;
        int in_place, is_bare;
    } rows[] = {{1, 1, 0}, {2, 1, 1}, {2, 0, 0}};
    static const double one = 1;
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context;
        gemmepi_matmul_desc desc = product(GEMMEPI_F16, GEMMEPI_BGRAD_A);
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_plan *plan;
        long without;
        config.log = keep_log;
        context = open_fake(&config);
        desc.bias_grad.dtype = GEMMEPI_F32; /* cuBLASLt has sums of d's type */
        args.bias_grad = memory[5];
        plan = plan_on(context, &desc, GEMMEPI_ROUTE_SPLIT);
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        without = gpu.launches;
        args.c = rows[i].in_place ? args.d : memory[7];
        args.alpha = &rows[i].alpha, args.beta = &one;
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gpu.products == 2 && gpu.launches == 2 * without + rows[i].is_bare,
              "%d: %ld launches, %ld before", (int)i, gpu.launches, without);
        CHECK((strstr(logged, "with such an alpha it rounds") != NULL) == rows[i].is_bare,
              "%d: the log has: %s", (int)i, logged);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* A context whose two ones are not there sends D = A B + D to the route split. */
static void a_context_without_its_ones_works(void) {
    static const char *const functions[] = {"cuMemAlloc_v2", "cuStreamCreate", "cuMemcpyHtoDAsync_v2",
                                            "cuStreamSynchronize"};
    static const double one = 1;
    size_t i;
    for (i = 0; i < GPI__COUNT(functions); i++) {
        gemmepi_config config = fake_config();
        gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_NONE);
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_context *context;
        config.device = GEMMEPI_DEVICE(0);
        config.log = keep_log;
        break_function(functions[i], GPI__CUDA_ERROR_OUT_OF_MEMORY);
        context = open_fake(&config);
        CHECK(strstr(logged, "uses the route split"), "%s: the log has: %s", functions[i], logged);
        gpu.fails = NULL;
        args.c = args.d;
        args.beta = &one;
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s: %s", functions[i],
              gemmepi_last_error());
        CHECK(strstr(logged, "without scalars on the device"), "%s: the log has: %s", functions[i], logged);
        CHECK(gpu.products == 1 && gpu.launches == 1, "%s: %ld products, %ld passes", functions[i],
              gpu.products, gpu.launches);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* >>kernels of the route fused */

static void what_fused_does_not_take_says_why(void) {
    static const char *const rules[] = {
        "not fused: a and b are not both BF16, both F16, both F32 or both of fp8",
        "not fused: k is 0",
        "gemmepi_pack: a to workspace, lines of whole 16 bytes",
        "gemmepi_pack: b to workspace",
        "not fused: config.routes leaves it out",
        "fused by gemmepi_sm90: TMA reads the second half of b",
        "fused by gemmepi_sm90: TMA reads a and b at multiples"};
    int i;
    for (i = 0; i < (int)GPI__COUNT(rules); i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context;
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_plan *plan = NULL;
        if (i == 4)
            config.routes = NOT_FUSED;
        if (i == 5)
            desc.epilogue |= GEMMEPI_GATED, desc.n = 1016; /* halves of 508 columns */
        if (i == 5)
            config.routes = 1u << GEMMEPI_ROUTE_FUSED;
        if (i == 6)
            desc.batch = 2, desc.a.batch_stride = (int64_t)1 << 39, desc.d.batch_stride = desc.m * desc.n;
        context = open_fake(&config);
        if (i == 0)
            desc.b.dtype = GEMMEPI_F16;
        else if (i == 1)
            desc.k = 0;
        else if (i == 2)
            desc.a.ld = desc.k + 1;
        else if (i == 3)
            desc.alignment = 8;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(explain_has(plan, rules[i]), "%d: another rule", i);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void a_gate_whose_second_half_begins_between_units_has_b_transposed(void) {
    static const double two = 2;
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    config.routes = 1u << GEMMEPI_ROUTE_FUSED;
    context = open_fake(&config);
    desc.epilogue |= GEMMEPI_GATED, desc.n = 1016; /* at a multiple of 8 bytes, where TMA reads nothing */
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == GEMMEPI_ROUTE_FUSED &&
              is_kernel(&details, "gemmepi_sm90_") && details.launches == 2,
          "%s by %s, %d launches", details.route_name, details.kernel, details.launches);
    CHECK(explain_has(plan, "gemmepi_transpose: b to workspace"), "explain does not tell of the copy");
    CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.launches == 2 && gpu.overlapping == 2, "%ld of %ld launches overlap", gpu.overlapping,
          gpu.launches);
    args.alpha = &two;
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.launches == 4, "%ld launches", gpu.launches);
    gemmepi_plan_destroy(plan);
    desc.b.transposed = 1, desc.b.ld = 0; /* [n, k]: each half is lines of its own */
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.launches == 1, "%d launches",
          details.launches);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void what_tma_does_not_take_is_copied_by_threads(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    config.routes = 1u << GEMMEPI_ROUTE_FUSED;
    context = open_fake(&config);
    desc.epilogue |= GEMMEPI_GATED, desc.n = 1016; /* so little that no copy pays */
    desc.m = 64, desc.k = 64;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == GEMMEPI_ROUTE_FUSED &&
              is_kernel(&details, "gemmepi_sm80_") && details.launches == 1,
          "%s by %s", details.route_name, details.kernel);
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.launches == 1 && gpu.overlapping == 1, "%ld of %ld launches overlap", gpu.overlapping,
          gpu.launches);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_short_k_has_a_kernel_of_its_own_where_results_are_few(void) {
    static const struct {
        int64_t m, n, k;
        const char *kernel;
    } rows[] = {{500, 40, 1, "gemmepi_outer_"},
                {500, 40, 4, "gemmepi_outer_"},
                {8, 2000, 2, "gemmepi_outer_"},
                {4096, 4096, 8, "gemmepi_sm90_"},
                {500, 40, 64, "gemmepi_sm"}};
    gemmepi_config config = config_with_all_routes();
    size_t i;
    config.routes = 1u << GEMMEPI_ROUTE_FUSED;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_plan_details details;
        gemmepi_plan *plan = NULL;
        gemmepi_context *context = open_fake(&config);
        desc.m = rows[i].m, desc.n = rows[i].n, desc.k = rows[i].k;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && is_kernel(&details, rows[i].kernel),
              "%d: %s", (int)i, details.kernel);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void a_chip_that_is_not_known_is_counted_as_the_nearest_older_one(void) {
    static const struct {
        int arch;
        const char *says;
    } rows[] = {
        {82, "for compute capability 8.0 (nine tenths of what NVIDIA's paper on A100 says), the nearest"},
        {90, "for compute capability 9.0 (measured on an H200):"},
        {99, "for compute capability 9.0 (measured on an H200), the nearest that is known:"},
        {123, "for compute capability 12.1 (a guess, as 12.0), the nearest that is known:"}};
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        planned p = planned_begin(rows[i].arch, 0);
        if (planned_plan(&p))
            CHECK(explain_has(p.plan, rows[i].says), "%d: another chip", rows[i].arch);
        planned_end(&p);
    }
}

/* Limits of the CUDA C++ Programming Guide, in KiB: of a block, of a multiprocessor, and what the system keeps of each block. */
static void explain_says_how_much_shared_memory_a_chip_has_and_how_many_blocks_that_holds(void) {
    static const struct {
        int arch, of_block, of_multiprocessor, kept;
    } rows[] = {{75, 64, 64, 0},  {80, 163, 164, 1}, {86, 99, 100, 1},
                {89, 99, 100, 1}, {90, 227, 228, 1}, {120, 99, 100, 1}};
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        planned p = planned_begin(rows[i].arch, 1u << GEMMEPI_ROUTE_FUSED);
        static char text[8192];
        const char *at;
        unsigned asked = 0, most = 0, room = 0;
        int major = 0, minor = 0;
        p.desc.a.dtype = GEMMEPI_F16;
        if (planned_plan(&p)) {
            gemmepi_plan_explain(p.plan, text, sizeof text);
            at = strstr(text, " bytes of shared memory");
            while (at && at > text && at[-1] != '\n')
                at--;
            CHECK(
                at &&
                    sscanf(
                        at,
                        " %u bytes of shared memory a block, of %u on compute capability %d.%d: room for %u",
                        &asked, &most, &major, &minor, &room) == 5,
                "%d: %s", rows[i].arch, text);
            CHECK(most == 1024u * (unsigned)rows[i].of_block && 10 * major + minor == rows[i].arch &&
                      asked <= most &&
                      room == 1024u * (unsigned)rows[i].of_multiprocessor /
                                  (asked + 1024u * (unsigned)rows[i].kept),
                  "%d: %u of %u, room for %u", rows[i].arch, asked, most, room);
        }
        planned_end(&p);
    }
}

/* Where that is faster, and only where it is asked for; with BATCH_INVARIANT for all m. */
static void sums_are_in_f16_where_chips_gain_by_it(void) {
    static const struct {
        int arch, gains;
    } chips[] = {{75, 1}, {80, 0}, {86, 1}, {87, 0}, {89, 1}, {90, 0}, {100, 0}, {120, 1}, {121, 1}};
    static const int64_t ms[] = {1, 70, 4096};
    size_t i, j;
    for (i = 0; i < GPI__COUNT(chips); i++)
        for (j = 0; j < 3 * GPI__COUNT(ms); j++) {
            planned p = planned_begin(chips[i].arch, 1u << GEMMEPI_ROUTE_FUSED);
            int is_invariant = j / 3 == 1, is_asked = j / 3 < 2;
            p.desc.m = ms[j % 3], p.desc.n = 4096, p.desc.k = j % 2 ? 16384 : 16383;
            p.desc.a.dtype = p.desc.b.dtype = GEMMEPI_F16;
            p.desc.compute = is_asked ? GEMMEPI_COMPUTE_F16 : GEMMEPI_COMPUTE_DEFAULT;
            p.desc.flags = is_invariant ? GEMMEPI_BATCH_INVARIANT : 0;
            if (planned_plan(&p)) {
                int is_sm80 = is_kernel(&p.details, "gemmepi_sm80_");
                CHECK(p.details.compute == (is_asked ? GEMMEPI_COMPUTE_F16 : GEMMEPI_COMPUTE_F32) &&
                          p.details.accumulator == GEMMEPI_F32,
                      "%d: compute %d", chips[i].arch, (int)p.details.compute);
                CHECK(is_sm80 || (p.desc.m == 1 && !is_invariant) || chips[i].arch == 90, "%d: %s",
                      chips[i].arch, p.details.kernel);
                CHECK(explain_has(p.plan, "sums of each 64 of k in F16 go to sums in F32") ==
                              (is_sm80 && is_asked && chips[i].gains) &&
                          (p.details.launches > 1 ||
                           is_defined("GEMMEPI_F16_SUMS 1") == (is_sm80 && is_asked && chips[i].gains)),
                      "%d, m %d, %s", chips[i].arch, (int)p.desc.m, p.details.kernel);
                CHECK(explain_has(p.plan, "COMPUTE_F16: sums in F16 where") == is_asked &&
                          explain_has(p.plan, "of k 16384 that bound says little") == (is_asked && j % 2),
                      "%d: explained otherwise", chips[i].arch);
            }
            planned_end(&p);
        }
}

static void chips_from_7_5_on_have_the_kernel_for_mma_sync(void) {
    static const struct {
        int arch;
        gemmepi_dtype dtype;
        gemmepi_compute compute;
        const char *says; /* NULL: it runs the product */
    } rows[] = {{75, GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT, NULL},
                {75, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT,
                 "not fused: its kernel multiplies BF16 and TF32 on compute capability 8.0 and later"},
                {75, GEMMEPI_F32, GEMMEPI_COMPUTE_TF32,
                 "not fused: its kernel multiplies BF16 and TF32 on compute capability 8.0 and later"},
                {80, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, NULL},
                {86, GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT, NULL},
                {89, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, NULL},
                {100, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, NULL},
                {120, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, NULL}};
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        planned p = planned_begin(rows[i].arch, 0);
        int is_made;
        p.desc.a.dtype = p.desc.b.dtype = rows[i].dtype, p.desc.compute = rows[i].compute;
        is_made = planned_plan(&p);
        CHECK(rows[i].says || is_kernel(&p.details, "gemmepi_sm80_"), "%d: %s by %s", (int)i,
              p.details.route_name, p.details.kernel);
        CHECK(!rows[i].says == (p.details.route == GEMMEPI_ROUTE_FUSED) &&
                  explain_has(p.plan, rows[i].says ? rows[i].says
                                                   : "fused by gemmepi_sm90: its kernel is for compute"),
              "%d: another explanation", (int)i);
        CHECK(rows[i].says || explain_has(p.plan, ", 2 stages") == (rows[i].arch == 75),
              "%d: all that is fetched ahead comes through registers on 7.5 alone", (int)i);
        if (!rows[i].says && is_made)
            planned_run(&p);
        CHECK(rows[i].says || (gpu.launches == 1 && gpu.overlapping == (rows[i].arch > 90)),
              "%d: %ld launches, of which %ld overlap", (int)i, gpu.launches, gpu.overlapping);
        planned_end(&p);
    }
}

/* Strict F32 gates on 7.5 may have no shape that fits: that is said in words, not as a time. */
static void a_kernel_without_an_estimate_is_told_without_a_time(void) {
    planned p = planned_begin(75, 0);
    static char text[16384];
    p.desc.a.dtype = p.desc.b.dtype = GEMMEPI_F32;
    p.desc.epilogue = GEMMEPI_SILU | GEMMEPI_GATED;
    planned_plan(&p);
    gemmepi_plan_explain(p.plan, text, sizeof text);
    CHECK(strstr(text, "fused by gemmepi_sm80: no shape has an estimate\n"), "%s", text);
    gemmepi_plan_destroy(p.plan);
    p.desc.flags = GEMMEPI_BATCH_INVARIANT;
    planned_plan(&p);
    gemmepi_plan_explain(p.plan, text, sizeof text);
    CHECK(strstr(text, "no shape of its kernel has an estimate; without it:\n    plain: "), "%s", text);
    planned_end(&p);
}

/* What the CUDA C++ Programming Guide has, compute capabilities: bytes of shared memory that a block may have. */
static unsigned room_of(int arch) {
    switch (arch) {
    case 75:
        return 64 << 10;
    case 80:
    case 87:
        return 163 << 10;
    case 86:
    case 88:
    case 89:
    case 120:
    case 121:
        return 99 << 10;
    }
    return 227 << 10;
}

/* Every shape in parts or not that an engine has an estimate for, as it builds it. */
static long build_every_candidate(planned *p) {
    const gpi__matmul_plan *plan = matmul_of(p->plan);
    gemmepi_context *context = plan->base.context;
    gpi__candidate candidate;
    long built_count = 0;
    memset(&candidate, 0, sizeof candidate);
    candidate.route = GEMMEPI_ROUTE_FUSED;
    for (; candidate.engine < (int)GPI__COUNT(gpi__engines); candidate.engine++) {
        const gpi__engine *engine = gpi__engines[candidate.engine];
        if (engine->rule(context, &plan->problem))
            continue;
        for (candidate.shape = 0; candidate.shape < engine->shapes; candidate.shape++)
            for (candidate.parts = 1; candidate.parts <= 2; candidate.parts++) {
                static gpi__fused fused;
                gemmepi_status status;
                if (engine->estimate(context, &plan->problem, &candidate) >= GPI__NEVER)
                    continue;
                context->only_workspace = 1;
                status = gpi__build_fused(context, &plan->problem, &candidate, &fused);
                context->only_workspace = 0;
                if (status == GEMMEPI_UNSUPPORTED)
                    continue;
                CHECK(status == GEMMEPI_OK && fused.built.kernel.launch.shared <= room_of(context->arch),
                      "%d, %s, shape %d: %u bytes of shared memory", context->arch, engine->name,
                      candidate.shape, fused.built.kernel.launch.shared);
                built_count++;
            }
    }
    return built_count;
}

static void a_candidates_shared_memory_fits_its_chip(void) {
    static const struct {
        gemmepi_dtype a, b, d;
        gemmepi_epilogue epilogue;
    } products[] = {{GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_GATED},
                    {GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_BGRAD},
                    {GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_RELU | GEMMEPI_AUX},
                    {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_NONE},
                    {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_BF16, GEMMEPI_NONE},
                    {GEMMEPI_BF16, GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_NONE}};
    static const int64_t extents[][3] = {{1024, 1024, 1024}, {16, 512, 4096}, {4096, 4096, 16}};
    size_t chip, i, e;
    for (chip = 0; chip < GPI__COUNT(gpi__chips); chip++) {
        long count = 0;
        for (i = 0; i < GPI__COUNT(products); i++)
            for (e = 0; e < GPI__COUNT(extents); e++) {
                planned p = planned_begin(gpi__chips[chip].arch, 0);
                p.desc = product(products[i].a, products[i].epilogue);
                p.desc.b.dtype = products[i].b, p.desc.d.dtype = products[i].d;
                p.desc.b.transposed = 1;
                p.desc.m = extents[e][0], p.desc.n = extents[e][1], p.desc.k = extents[e][2];
                if (planned_plan(&p))
                    count += build_every_candidate(&p);
                planned_end(&p);
            }
        CHECK(count >= 30, "%d: %ld candidates", gpi__chips[chip].arch, count);
    }
}

/* Weights of 4 bits by text: few rows read them as they are stored, many are a product of what a pass makes. */
static void weights_of_4_bits_are_made_in_registers_where_that_is_less(void) {
    static const struct {
        int64_t m;
        int stored_along_k, flags, arch, group;
        int is_made;
        gemmepi_dtype scale; /* 0: BF16 */
    } cases[] = {{1, 1, 0, 90, 128, 1, GEMMEPI_DTYPE_DEFAULT},
                 {128, 1, 0, 90, 32, 1, GEMMEPI_DTYPE_DEFAULT},
                 {256, 1, 0, 90, 128, 1, GEMMEPI_I8},
                 {16384, 1, 0, 90, 128, 0, GEMMEPI_DTYPE_DEFAULT},
                 {1, 1, 0, 80, 128, 1, GEMMEPI_DTYPE_DEFAULT},
                 {1, 1, 0, 89, 128, 0, GEMMEPI_DTYPE_DEFAULT},
                 {1, 0, 0, 90, 128, 0, GEMMEPI_DTYPE_DEFAULT},
                 {1, 1, 0, 90, 24, 0, GEMMEPI_DTYPE_DEFAULT},
                 {1, 1, 1, 90, 128, 0, GEMMEPI_DTYPE_DEFAULT},
                 {1, 1, 0, 90, 128, 1, GEMMEPI_U4},
                 {1, 1, 0, 90, 128, 0, GEMMEPI_I32}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(cases[i].arch, 0);
        gemmepi_operand scale;
        void *pointers[1] = {(void *)(uintptr_t)0x70000000};
        memset(&scale, 0, sizeof scale);
        scale.name = "scale", scale.kind = GEMMEPI_BLOCKED;
        scale.dtype = cases[i].scale ? cases[i].scale : GEMMEPI_BF16;
        scale.block_rows = cases[i].group, scale.block_columns = 1;
        p.desc.m = cases[i].m, p.desc.n = 8192, p.desc.k = 4096;
        p.desc.a.dtype = GEMMEPI_BF16, p.desc.b.dtype = GEMMEPI_I4;
        p.desc.b.transposed = cases[i].stored_along_k;
        p.desc.b.formula = "b * scale", p.desc.operands = &scale, p.desc.operand_count = 1;
        p.desc.flags = cases[i].flags ? GEMMEPI_BATCH_INVARIANT : 0;
        p.desc.epilogue = GEMMEPI_SILU;
        p.args.bias = NULL, p.args.operands = pointers;
        if (planned_plan(&p)) {
            CHECK(is_kernel(&p.details, "gemmepi_weights_bf16_i4_made_") == cases[i].is_made, "%d: %s by %s",
                  (int)i, p.details.route_name, p.details.kernel);
            CHECK((p.details.workspace_size == 0) >= cases[i].is_made, "%d: workspace", (int)i);
            planned_run(&p);
            CHECK(gpu.launches == p.details.launches, "%d: %ld launches", (int)i, gpu.launches);
        }
        planned_end(&p);
    }
}

/* Two blocks of weights of 4 bits on a multiprocessor leave a thread three registers for scales and zeros. */
static void two_blocks_make_weights_where_registers_are_left(void) {
    static const struct {
        gemmepi_dtype a, stored, scale, zero;
        int group, are_two;
    } cases[] = {{GEMMEPI_BF16, GEMMEPI_U4, GEMMEPI_F16, GEMMEPI_I8, 128, 1},
                 {GEMMEPI_BF16, GEMMEPI_U4, GEMMEPI_F16, GEMMEPI_F16, 128, 0},
                 {GEMMEPI_F16, GEMMEPI_U4, GEMMEPI_F16, GEMMEPI_F16, 128, 1},
                 {GEMMEPI_BF16, GEMMEPI_U4, GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, 128, 1},
                 {GEMMEPI_BF16, GEMMEPI_U4, GEMMEPI_F32, GEMMEPI_I8, 128, 0},
                 {GEMMEPI_BF16, GEMMEPI_I4, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, 64, 0},
                 {GEMMEPI_BF16, GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, 128, 0}};
    static const gpi__weights_shape two_blocks = {8, 32, 1, 1, 2, 0};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(90, 0);
        gemmepi_operand operands[2];
        int j;
        memset(operands, 0, sizeof operands);
        operands[0].name = "scale", operands[1].name = "zero";
        operands[0].dtype = cases[i].scale, operands[1].dtype = cases[i].zero;
        for (j = 0; j < 2; j++) {
            operands[j].kind = GEMMEPI_BLOCKED;
            operands[j].block_rows = cases[i].group, operands[j].block_columns = 1;
        }
        p.desc.m = 1, p.desc.n = 8192, p.desc.k = 4096, p.desc.b.transposed = 1;
        p.desc.a.dtype = cases[i].a, p.desc.b.dtype = cases[i].stored;
        p.desc.b.formula = cases[i].zero ? "(b - zero) * scale" : "b * scale";
        p.desc.operands = operands, p.desc.operand_count = cases[i].zero ? 2 : 1;
        if (planned_plan(&p)) {
            gpi__problem problem =
                gpi__problem_in_registers(p.context, gpi__asked((gpi__matmul_plan *)p.plan));
            CHECK(gpi__weights_shape_accepts(&problem, &two_blocks, 90) == cases[i].are_two, "%d", (int)i);
        }
        planned_end(&p);
    }
}

/* MXFP8, MXFP4 and NVFP4 on both sides, and what is not quite so: passes make it. */
static void scaled_formats_are_multiplied_as_they_are_stored(void) {
    static const struct {
        int arch, stored, scale, block, k, stored_along_k, flags;
        const char *of_b;
        int compute;
        int is_scaled;
    } cases[] = {{120, GEMMEPI_E4M3, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * q", 0, 1},
                 {121, GEMMEPI_E5M2, GEMMEPI_E8M0, 32, 4096, 1, 0, "q * b * s", GEMMEPI_BF16, 1},
                 {120, GEMMEPI_E2M1, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * q", 0, 1},
                 {120, GEMMEPI_E2M1, GEMMEPI_E4M3, 16, 4096, 1, 0, "b * q * s", 0, 1},
                 {120, GEMMEPI_E2M1, GEMMEPI_E4M3, 16, 4000, 1, 0, "b * q * s", 0, 0},
                 {120, GEMMEPI_E2M1, GEMMEPI_E4M3, 32, 4096, 1, 0, "b * q", 0, 0},
                 {120, GEMMEPI_E2M1, GEMMEPI_E8M0, 16, 4096, 1, 0, "b * q", 0, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_E4M3, 16, 4096, 1, 0, "b * q", 0, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_E8M0, 64, 4096, 1, 0, "b * q", 0, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_BF16, 32, 4096, 1, 0, "b * q", 0, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * q + s", 0, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * q * q", 0, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * q * b", 0, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * q * 2", 0, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * s", 0, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * q", GEMMEPI_F16, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_E8M0, 32, 4096, 0, 0, "b * q", 0, 0},
                 {120, GEMMEPI_E4M3, GEMMEPI_E8M0, 32, 4096, 1, 1, "b * q", 0, 0},
                 {89, GEMMEPI_E4M3, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * q", 0, 0},
                 {90, GEMMEPI_E2M1, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * q", 0, 0},
                 {103, GEMMEPI_E2M1, GEMMEPI_E8M0, 32, 4096, 1, 0, "b * q", 0, 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(cases[i].arch, 0);
        gemmepi_operand operands[3];
        void *pointers[3] = {(void *)(uintptr_t)0x70000000, (void *)(uintptr_t)0x71000000,
                             (void *)(uintptr_t)0x72000000};
        memset(operands, 0, sizeof operands);
        operands[0].name = "p", operands[1].name = "q", operands[2].name = "s";
        operands[0].kind = operands[1].kind = GEMMEPI_BLOCKED, operands[2].kind = GEMMEPI_SCALAR;
        operands[0].dtype = operands[1].dtype = (gemmepi_dtype)cases[i].scale,
        operands[2].dtype = GEMMEPI_F32;
        operands[0].block_columns = operands[1].block_rows = cases[i].block;
        operands[0].block_rows = operands[1].block_columns = 1;
        p.desc.m = p.desc.n = 4096, p.desc.k = cases[i].k;
        p.desc.a.dtype = p.desc.b.dtype = (gemmepi_dtype)cases[i].stored;
        p.desc.a.formula = "a * p", p.desc.b.formula = cases[i].of_b;
        p.desc.a.compute_dtype = p.desc.b.compute_dtype = (gemmepi_dtype)cases[i].compute;
        p.desc.b.transposed = cases[i].stored_along_k;
        p.desc.operands = operands, p.desc.operand_count = 3;
        p.desc.flags = cases[i].flags ? GEMMEPI_BATCH_INVARIANT : 0;
        p.desc.epilogue = GEMMEPI_SILU;
        p.args.bias = NULL, p.args.operands = pointers;
        if (planned_plan(&p)) {
            CHECK((strstr(p.details.kernel, "_scaled_") != NULL) == cases[i].is_scaled &&
                      explain_has(p.plan, "tensor cores multiply a and b as they are stored, each") ==
                          cases[i].is_scaled,
                  "%d: %s by %s", (int)i, p.details.route_name, p.details.kernel);
            CHECK((p.details.launches == 1) == cases[i].is_scaled, "%d: %d launches", (int)i,
                  (int)p.details.launches);
            planned_run(&p);
            CHECK(gpu.launches == p.details.launches, "%d: %ld launches", (int)i, gpu.launches);
        }
        planned_end(&p);
    }
}

/* What lies otherwise, and where m may not decide, has other routes. */
static void weights_of_8_bits_have_a_kernel_of_their_own(void) {
    static const struct {
        int64_t m, n, k;
        gemmepi_scale_mode scale;
        int stored_along_k, flags, arch;
        const char *kernel; /* how its name begins; NULL: another */
    } cases[] = {
        {1, 4096, 4096, GEMMEPI_SCALE_OUTER, 1, 0, 90, "gemmepi_weights_bf16_i8_8x32_silu"},
        {8, 14336, 4096, GEMMEPI_SCALE_VECTOR_128, 1, 0, 90, "gemmepi_weights_bf16_i8_vector_128_8x128_silu"},
        {64, 4096, 4096, GEMMEPI_SCALE_OUTER, 1, 0, 90, "gemmepi_weights_bf16_i8_wgmma_64x64_parts_silu"},
        {64, 6144, 4096, GEMMEPI_SCALE_OUTER, 1, 0, 90, "gemmepi_weights_bf16_i8_wgmma_64x64_silu"},
        {48, 11008, 3328, GEMMEPI_SCALE_OUTER, 1, 0, 90, "gemmepi_weights_bf16_i8_wgmma_64x128_silu"},
        {32, 4096, 14336, GEMMEPI_SCALE_OUTER, 1, 0, 90, "gemmepi_weights_bf16_i8_32x64_parts_silu"},
        {32, 1024, 28672, GEMMEPI_SCALE_OUTER, 1, 0, 90, "gemmepi_weights_bf16_i8_wgmma_32x64_parts_silu"},
        {17, 4096, 4096, GEMMEPI_SCALE_NONE, 1, 0, 80, "gemmepi_weights_bf16_i8_16x"},
        {64, 4096, 4096, GEMMEPI_SCALE_OUTER, 1, 0, 80, "gemmepi_weights_bf16_i8_32x64_silu"},
        {64, 4096, 4096, GEMMEPI_SCALE_OUTER, 1, 0, 100, "gemmepi_weights_bf16_i8_32x64_silu"},
        {1, 4096, 4096, GEMMEPI_SCALE_OUTER, 0, 0, 90, NULL},
        {1, 4096, 4100, GEMMEPI_SCALE_OUTER, 1, 0, 90, NULL},
        {1, 4096, 4096, GEMMEPI_SCALE_OUTER, 1, 0, 89, NULL},
        {1, 4096, 4096, GEMMEPI_SCALE_OUTER, 1, 1, 90, NULL},
        {300, 4096, 4096, GEMMEPI_SCALE_VECTOR_128, 1, 0, 90, "gemmepi_weights_bf16_i8_vector_128_wgmma_64x"},
        {128, 14336, 4096, GEMMEPI_SCALE_OUTER, 1, 0, 90, "gemmepi_weights_bf16_i8_wgmma_128x128_silu"},
        {4096, 4096, 4096, GEMMEPI_SCALE_OUTER, 1, 0, 90, "gemmepi_weights_bf16_i8_wgmma_256x128_silu"},
        {4096, 4096, 4096, GEMMEPI_SCALE_VECTOR_128, 0, 0, 90, NULL}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(cases[i].arch, 0);
        p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.k = cases[i].k;
        p.desc.a.dtype = GEMMEPI_BF16, p.desc.b.dtype = GEMMEPI_I8;
        p.desc.b.transposed = cases[i].stored_along_k;
        p.desc.b.scale.mode = cases[i].scale;
        p.desc.flags = cases[i].flags ? GEMMEPI_BATCH_INVARIANT : 0;
        p.desc.epilogue = GEMMEPI_SILU;
        p.args.bias = NULL;
        p.args.scale_b = cases[i].scale ? (const float *)(uintptr_t)0x60000000 : NULL;
        if (planned_plan(&p)) {
            CHECK(cases[i].kernel ? is_kernel(&p.details, cases[i].kernel)
                                  : !is_kernel(&p.details, "gemmepi_weights_"),
                  "%d: %s by %s", (int)i, p.details.route_name, p.details.kernel);
            planned_run(&p);
            CHECK(gpu.launches == p.details.launches || !cases[i].kernel, "%d: %ld launches", (int)i,
                  gpu.launches);
        }
        planned_end(&p);
    }
}

/* Those that wait for their result do not, nor do many rows. */
static void products_that_wait_for_their_operands_go_to_the_kernel_for_hopper(void) {
    static const struct {
        int64_t m, n, k, batch;
        gemmepi_route route;
    } cases[] = {{1, 6144, 4096, 1, GEMMEPI_ROUTE_FUSED},
                 {16, 6144, 4096, 1, GEMMEPI_ROUTE_FUSED},
                 {1024, 64, 1024, 192, GEMMEPI_ROUTE_FUSED},
                 {1024, 1024, 64, 192, GEMMEPI_ROUTE_LT},
                 {16384, 50304, 768, 1, GEMMEPI_ROUTE_LT}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        planned p = planned_begin(90, 0);
        p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.k = cases[i].k, p.desc.batch = cases[i].batch;
        p.desc.a.batch_stride = cases[i].m * cases[i].k, p.desc.b.batch_stride = cases[i].k * cases[i].n;
        p.desc.d.batch_stride = cases[i].m * cases[i].n;
        p.desc.b.transposed = 1;
        p.desc.epilogue = GEMMEPI_NONE;
        p.args.bias = NULL;
        if (planned_plan(&p))
            CHECK(p.details.route == cases[i].route, "%d: %s", (int)i, p.details.route_name);
        planned_end(&p);
    }
}

static void small_products_have_a_kernel_of_their_own(void) {
    static const gemmepi_epilogue gate = GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD;
    static const struct {
        int64_t m, n, k;
        gemmepi_epilogue epilogue;
        const char *kernel;      /* NULL: another */
        const char *in_clusters; /* the one on Hopper and later, which have clusters; NULL: the same */
    } cases[] = {
        {1, 821, 360, gate, "gemmepi_small_bf16_1x8_silu_backward_gated", NULL},
        {37, 50, 23, GEMMEPI_SILU, "gemmepi_small_bf16_1x8_silu", NULL},
        {1, 768, 3072, GEMMEPI_SILU, "gemmepi_small_bf16_1x8_silu", "gemmepi_small_bf16_1x8_parts_silu"},
        {4096, 4096, 4096, GEMMEPI_SILU, NULL, NULL},
        {64, 4096, 4096, GEMMEPI_SILU, NULL, NULL}};
    static const int archs[] = {80, 90, 100};
    size_t i, arch;
    for (i = 0; i < GPI__COUNT(cases); i++)
        for (arch = 0; arch < GPI__COUNT(archs); arch++) {
            planned p = planned_begin(archs[arch], 0);
            const char *kernel =
                archs[arch] >= 90 && cases[i].in_clusters ? cases[i].in_clusters : cases[i].kernel;
            p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.k = cases[i].k;
            p.desc.epilogue = cases[i].epilogue;
            p.args.bias = NULL;
            if (cases[i].epilogue & GEMMEPI_BACKWARD)
                p.args.aux = (void *)(uintptr_t)0x50000000;
            if (planned_plan(&p)) {
                CHECK(kernel ? is_kernel(&p.details, kernel) : !is_kernel(&p.details, "gemmepi_small_"),
                      "%d on %d: %s by %s", (int)i, archs[arch], p.details.route_name, p.details.kernel);
                CHECK(kernel || explain_has(p.plan, "gemmepi_small: it is for products of 16 rows"),
                      "%d on %d: another explanation", (int)i, archs[arch]);
                planned_run(&p);
                CHECK(gpu.launches == p.details.launches, "%d: %ld launches", (int)i, gpu.launches);
            }
            planned_end(&p);
        }
}

static void operands_of_odd_lines_are_packed_first(void) {
    planned p = planned_begin(0, 0);
    p.desc.a.ld = p.desc.k + 1;
    if (planned_plan(&p)) {
        CHECK(p.details.route == GEMMEPI_ROUTE_FUSED && is_kernel(&p.details, "gemmepi_sm90_") &&
                  p.details.launches == 2 && p.details.workspace_size == (size_t)(2 * p.desc.m * p.desc.k),
              "%s by %s, %d launches", p.details.route_name, p.details.kernel, p.details.launches);
        CHECK(explain_has(p.plan, "gemmepi_pack: a to workspace") && !explain_has(p.plan, "gemmepi_pack: b"),
              "another explanation");
        planned_run(&p);
    }
    CHECK(gpu.launches == 2 && gpu.overlapping == 2, "%ld of %ld launches overlap", gpu.overlapping,
          gpu.launches);
    planned_end(&p);
}

/* Items that overlap have few bytes, and would have many once they are packed. */
static void operands_that_packing_would_make_16_times_as_large_are_not_packed(void) {
    static const int64_t batches[] = {16, 18};
    int i;
    for (i = 0; i < 2; i++) {
        planned p = planned_begin(0, 1u << GEMMEPI_ROUTE_FUSED);
        p.desc.batch = batches[i];
        p.desc.a.batch_stride = 1;
        p.desc.d.batch_stride = p.desc.m * p.desc.n;
        if (planned_plan(&p))
            CHECK((p.details.launches == 2) == (i == 0), "%d items: %s, %d launches", (int)batches[i],
                  p.details.kernel, p.details.launches);
        planned_end(&p);
    }
}

/* Strict F32 by the second kernel, TF32 by that for Hopper, for which operands lie along k: what does not is transposed first, or
   packed, where that is less. */
static void f32_has_both_kernels(void) {
    static const struct {
        gemmepi_compute compute;
        int m, transposed, odd; /* bits: A, B */
        const char *kernel, *first, *second;
    } cases[] = {
        {GEMMEPI_COMPUTE_F32, 4096, 0, 0, "gemmepi_sm80_", NULL, NULL},
        {GEMMEPI_COMPUTE_F32, 4096, 0, 1, "gemmepi_sm80_", "gemmepi_convert_f32_to_f32: a", NULL},
        {GEMMEPI_COMPUTE_F32, 64, 0, 1, "gemmepi_sm80_", NULL, NULL},
        {GEMMEPI_COMPUTE_TF32, 4096, 2, 0, "gemmepi_sm90_", NULL, NULL},
        {GEMMEPI_COMPUTE_TF32, 4096, 2, 1, "gemmepi_sm90_", "gemmepi_convert_f32_to_f32: a", NULL},
        {GEMMEPI_COMPUTE_TF32, 4096, 0, 0, "gemmepi_sm90_", "gemmepi_transpose: b", NULL},
        {GEMMEPI_COMPUTE_TF32, 4096, 1, 0, "gemmepi_sm90_", "gemmepi_transpose: a", "gemmepi_transpose: b"},
        {GEMMEPI_COMPUTE_TF32, 4096, 0, 3, "gemmepi_sm90_", "gemmepi_convert_f32_to_f32: a",
         "gemmepi_transpose: b"},
        {GEMMEPI_COMPUTE_TF32, 64, 0, 0, "gemmepi_sm80_", NULL, NULL},
    };
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        int copies = (cases[i].first != NULL) + (cases[i].second != NULL);
        planned p = planned_begin(0, 1u << GEMMEPI_ROUTE_FUSED);
        p.desc.a.dtype = GEMMEPI_F32, p.desc.compute = cases[i].compute;
        p.desc.m = cases[i].m, p.desc.n = p.desc.k = 4096;
        p.desc.a.transposed = cases[i].transposed & 1, p.desc.b.transposed = cases[i].transposed >> 1;
        p.desc.a.ld = (p.desc.a.transposed ? p.desc.m : p.desc.k) + (cases[i].odd & 1);
        p.desc.b.ld = (p.desc.b.transposed ? p.desc.k : p.desc.n) + (cases[i].odd >> 1);
        if (planned_plan(&p)) {
            CHECK(is_kernel(&p.details, cases[i].kernel) && p.details.compute == cases[i].compute,
                  "%d: %s by %s", i, p.details.route_name, p.details.kernel);
            CHECK(p.details.launches - explain_has(p.plan, ": the sum of k's parts") == 1 + copies,
                  "%d: %d launches", i, p.details.launches);
            CHECK((!cases[i].first || explain_has(p.plan, cases[i].first)) &&
                      (!cases[i].second || explain_has(p.plan, cases[i].second)),
                  "%d: another explanation", i);
            planned_run(&p);
            CHECK(gpu.launches == p.details.launches, "%d: %ld launches", i, gpu.launches);
        }
        planned_end(&p);
    }
}

/* Where rules of cuBLASLt's begin and end, a step to either side. */
static void rules_of_cublaslt_hold_from_the_borders_that_are_told(void) {
    static const struct {
        gemmepi_dtype a, d, bias;
        gemmepi_epilogue epilogue;
        int64_t m, n, k;
        const char *rule; /* NULL: it goes there */
    } cases[] = {
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_TANH, 256, 256, 511,
         "the bound for k below 512"},
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_TANH, 256, 256, 512, NULL},
        {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_TANH, 256, 256, 4096,
         "off by up to 5.3e-6"},
        {GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_TANH, 256, 256, 4096, "3e-10 in F64"},
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_RELU | GEMMEPI_BACKWARD, 1024, 8192, 256,
         NULL},
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_RELU | GEMMEPI_BACKWARD, 1025, 8192, 256,
         "from 2^23 elements on"},
        {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_RELU | GEMMEPI_BACKWARD, 1025, 8192, 256,
         NULL},
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_RELU | GEMMEPI_AUX, 256, 256, 256,
         "for v >= 0"},
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_BIAS, 256, 256, 256, "bias and d differ in dtype"},
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_BIAS, 256, 256, 256, NULL},
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU, 256, 256, 256, "no such epilogue"},
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_NONE, 256, 256, 0, "k is 0"},
        {GEMMEPI_I8, GEMMEPI_I32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_NONE, 256, 256, 256, "not modulo 2^32"},
        {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_NONE, 256, 256, 256,
         "past a 16-bit d of F32"},
        {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
         256, 256, 256, "already rounded to D's type"},
        {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
         256, 256, 256, NULL},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc;
        gpi__problem problem;
        const char *rule;
        memset(&desc, 0, sizeof desc);
        desc.m = cases[i].m, desc.n = cases[i].n, desc.k = cases[i].k;
        desc.a.dtype = cases[i].a, desc.d.dtype = cases[i].d, desc.bias.dtype = cases[i].bias;
        desc.epilogue = cases[i].epilogue;
        CHECK(gpi__normalise(&desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
        rule = gpi__lt_rule(&hopper, &problem);
        CHECK(rule && cases[i].rule ? strstr(rule, cases[i].rule) != NULL : !rule && !cases[i].rule, "%d: %s",
              (int)i, rule ? rule : "it goes there");
    }
}

static void an_aux_of_cublaslt_s_has_lines_and_items_of_whole_eights(void) {
    static const struct {
        int64_t ld, stride;
        int goes;
    } cases[] = {{256, 65536, 1}, {264, 67584, 1}, {260, 67584, 0}, {256, 65540, 0}, {256, 65544, 1}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc;
        gpi__problem problem;
        memset(&desc, 0, sizeof desc);
        desc.m = desc.n = 256, desc.k = 1024, desc.batch = 2;
        desc.a.dtype = GEMMEPI_BF16, desc.epilogue = GEMMEPI_GELU_TANH | GEMMEPI_AUX;
        desc.d.batch_stride = 65536, desc.aux.ld = cases[i].ld, desc.aux.batch_stride = cases[i].stride;
        CHECK(gpi__normalise(&desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK((gpi__lt_rule(&hopper, &problem) == NULL) == cases[i].goes, "%d: %s", (int)i,
              gpi__lt_rule(&hopper, &problem) ? gpi__lt_rule(&hopper, &problem) : "it goes there");
    }
}

static void sums_of_more_than_131071_products_of_i8_are_not_cublaslt_s(void) {
    static const int64_t extents[] = {131068, 131072, 131076};
    int i, is_whole;
    for (i = 0; i < 3; i++)
        for (is_whole = 0; is_whole < 2; is_whole++) {
            gemmepi_matmul_desc desc;
            gpi__problem problem;
            memset(&desc, 0, sizeof desc);
            desc.m = 64, desc.n = 64, desc.k = extents[i];
            desc.a.dtype = GEMMEPI_I8, desc.d.dtype = is_whole ? GEMMEPI_I32 : GEMMEPI_F32;
            CHECK(gpi__normalise(&desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK((gpi__bare_rule(&problem) != NULL) == (i > 0 && !is_whole), "k %d, whole %d: %s",
                  (int)extents[i], is_whole,
                  gpi__bare_rule(&problem) ? gpi__bare_rule(&problem) : "it goes there");
        }
}

/* FAST_ACCUMULATION is a permission. */
static void cublaslt_is_asked_again_without_fast_accumulation(void) {
    int refuses;
    for (refuses = 0; refuses < 2; refuses++) {
        planned p = planned_begin(90, 1u << GEMMEPI_ROUTE_LT);
        gpu.refuses_fast = refuses;
        p.desc.a.dtype = GEMMEPI_E4M3, p.desc.d.dtype = GEMMEPI_BF16, p.desc.b.transposed = 1;
        p.desc.epilogue = GEMMEPI_NONE, p.desc.flags = GEMMEPI_FAST_ACCUMULATION;
        if (planned_plan(&p))
            CHECK(gpu.heuristics == 1 + refuses, "%ld questions", gpu.heuristics);
        planned_end(&p);
    }
}

static void a_product_without_k_needs_no_cublaslt(void) {
    int k;
    for (k = 0; k <= 64; k += 64) {
        planned p = planned_begin(90, 1u << GEMMEPI_ROUTE_SPLIT);
        gemmepi_plan *plan = NULL;
        gemmepi_status status;
        gpu.missing = "cublasLt";
        p.desc.k = k;
        status = gemmepi_plan_matmul(p.context, &p.desc, &plan);
        CHECK(status == (k ? GEMMEPI_LIBRARY_NOT_FOUND : GEMMEPI_OK), "k %d: %s", k, gemmepi_last_error());
        gemmepi_plan_destroy(plan);
        gpu.missing = NULL;
        planned_end(&p);
    }
}

/* Scales that are found, of a large product: in the kernel or the pass, or by a launch around one whose D is in F32. */
static void scales_are_found_inside_or_by_one_launch_more(void) {
    static const struct {
        int arch, mode, n; /* a negative mode: that of weights in I8 */
        gemmepi_epilogue epilogue;
        int route, launches;
        const char *says;
    } cases[] = {
        {90, 3, 4096, GEMMEPI_SILU | GEMMEPI_GATED, GEMMEPI_ROUTE_FUSED, 1,
         "_to_e4m3_silu_gated_found_scales: product"},
        {90, 3, 4096, GEMMEPI_SILU, GEMMEPI_ROUTE_FUSED, 1, "_to_e4m3_silu_found_scales: product"},
        {90, 3, 4096, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD, GEMMEPI_ROUTE_SPLIT, 2,
         "not fused: only its kernel for Hopper finds scales"},
        {80, 3, 4096, GEMMEPI_SILU, GEMMEPI_ROUTE_SPLIT, 2, "fused: only its kernel for Hopper finds scales"},
        {90, 2, 4096, GEMMEPI_SILU, GEMMEPI_ROUTE_FUSED, 2, "gemmepi_find_scales_e4m3: d and its scales"},
        {90, 2, 128, GEMMEPI_SILU, GEMMEPI_ROUTE_FUSED, 1, "_to_e4m3_silu_found_scales: product"},
        {90, 2, 56, GEMMEPI_SILU, GEMMEPI_ROUTE_FUSED, 1, "_to_e4m3_silu_found_scales: product"},
        {90, 2, 136, GEMMEPI_SILU, GEMMEPI_ROUTE_FUSED, 2, "gemmepi_find_scales_e4m3: d and its scales"},
        {90, 1, 4096, GEMMEPI_SILU, GEMMEPI_ROUTE_FUSED, 2,
         "gemmepi_scale_of_history_e4m3: the scale of the amax of 9"},
        {90, -3, 4096, GEMMEPI_SILU, GEMMEPI_ROUTE_FUSED, 2, "gemmepi_weights_bf16_i8_"},
        {90, -2, 128, GEMMEPI_SILU, GEMMEPI_ROUTE_FUSED, 2, "gemmepi_weights_bf16_i8_"},
    };
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        planned p = planned_begin(cases[i].arch, 0);
        p.desc.m = cases[i].n < 4096 ? 65536 : 4096, p.desc.n = cases[i].n, p.desc.k = 4096;
        if (cases[i].mode < 0)
            p.desc.m = 16, p.desc.b.dtype = GEMMEPI_I8, p.desc.b.transposed = 1;
        p.desc.a.dtype = GEMMEPI_BF16, p.desc.d.dtype = GEMMEPI_E4M3;
        p.desc.epilogue = cases[i].epilogue, p.desc.flags = GEMMEPI_FIND_SCALE_D;
        p.desc.d.scale.mode = (gemmepi_scale_mode)abs(cases[i].mode);
        p.desc.amax_history = cases[i].mode == 1 ? 9 : 0;
        if (planned_plan(&p))
            CHECK((int)p.details.route == cases[i].route && p.details.launches == cases[i].launches &&
                      explain_has(p.plan, cases[i].says),
                  "%d: %s in %d launches", i, p.details.route_name, p.details.launches);
        CHECK((p.details.workspace_size >= (size_t)(p.desc.m * p.desc.n * 4)) ==
                  (p.details.launches == 2 && cases[i].mode != 1),
              "%d: %ld bytes of workspace", i, (long)p.details.workspace_size);
        planned_end(&p);
    }
}

/* Registers: beside aux or a residual both warpgroups share a tile, of 128 columns, also where alpha is 1 and there is no C. */
static void scales_are_found_in_smaller_tiles_beside_aux_or_a_residual(void) {
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_SILU, GEMMEPI_SILU | GEMMEPI_AUX,
                                                 GEMMEPI_SILU | GEMMEPI_BACKWARD,
                                                 GEMMEPI_SILU | GEMMEPI_RESIDUAL};
    int i, is_wide;
    for (i = 0; i < 8; i++) {
        planned p = planned_begin(90, 1u << GEMMEPI_ROUTE_FUSED);
        is_wide = i % 2;
        p.desc.m = 65536, p.desc.n = is_wide ? 4096 : 128, p.desc.k = is_wide ? 16384 : 256;
        p.desc.epilogue = epilogues[i / 2], p.desc.flags = GEMMEPI_FIND_SCALE_D;
        p.desc.d.dtype = GEMMEPI_E4M3, p.desc.d.scale.mode = GEMMEPI_SCALE_VECTOR_128;
        if (planned_plan(&p))
            CHECK(is_defined("GEMMEPI_PING_PONG 1") == (i == 0) && is_defined("GEMMEPI_UNIT_ALPHA 1") &&
                      (p.details.tile_n == 256) == (i == 1),
                  "%d: a tile has %d columns", i, p.details.tile_n);
        planned_end(&p);
    }
}

/* What explain says of sums of fp8, and of tiles of the kernel for it. */
static void fp8_says_where_its_sums_go(void) {
    static const struct {
        int mode_a, mode_b;
        uint64_t flags;
        const char *says, *says_not;
    } cases[] = {{1, 1, 0, "sums of each 128 of k go to sums in F32\n", "times the scales"},
                 {3, 4, 0, "sums of each 128 of k go to sums in F32, times the scales that vary along k\n",
                  "not said"},
                 {2, 2, 0, "sums of each 128 of k go to sums in F32\n", "times the scales"},
                 {2, 4, GEMMEPI_FAST_ACCUMULATION, ", times the scales that vary along k\n", "not said"},
                 {1, 1, GEMMEPI_FAST_ACCUMULATION, "gemmepi_sm90_e4m3", "sums of each 128"}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        planned p = planned_begin(90, 0);
        char tile[60];
        p.desc.m = p.desc.n = 2048, p.desc.k = 1024;
        p.desc.a.dtype = GEMMEPI_E4M3, p.desc.d.dtype = GEMMEPI_BF16, p.desc.b.transposed = 1;
        p.desc.a.scale.mode = (gemmepi_scale_mode)cases[i].mode_a;
        p.desc.b.scale.mode = (gemmepi_scale_mode)cases[i].mode_b;
        p.desc.flags = cases[i].flags;
        if (planned_plan(&p)) {
            CHECK(p.details.route == GEMMEPI_ROUTE_FUSED && explain_has(p.plan, cases[i].says) &&
                      !explain_has(p.plan, cases[i].says_not),
                  "%d: %s", i, p.details.kernel);
            snprintf(tile, sizeof tile, "_%dx%d", p.details.tile_m, p.details.tile_n);
            CHECK(p.details.tile_m >= 64 && strstr(p.details.kernel, tile), "%d: %s has tiles of %d x %d", i,
                  p.details.kernel, p.details.tile_m, p.details.tile_n);
        }
        planned_end(&p);
    }
}

/* Chips without wgmma or tensor memory. */
static void fp8_has_the_kernel_for_mma_sync_but_where_the_chip_has_another(void) {
    static const struct {
        int arch, a_transposed;
        uint64_t flags;
        const char *kernel; /* NULL: another */
        const char *says;
    } cases[] = {{89, 0, 0, "gemmepi_sm80_e4m3_", "sums of each 128 of k go to sums in F32\n"},
                 {120, 0, 0, "gemmepi_sm80_e4m3_", "sums of each 128 of k go to sums in F32\n"},
                 {121, 0, 0, "gemmepi_sm80_e4m3_", "sums of each 128 of k go to sums in F32\n"},
                 {89, 1, 0, "gemmepi_sm80_e4m3_", "gemmepi_transpose"},
                 {89, 0, GEMMEPI_BATCH_INVARIANT, NULL,
                  "not fused: with BATCH_INVARIANT its kernel for fp8 is for compute capability 9.0"},
                 {90, 0, 0, "gemmepi_sm90_e4m3_",
                  "fused by gemmepi_sm80: it multiplies fp8 on compute capability 7.5 to 8.9, 12.0"},
                 {75, 0, 0, "gemmepi_sm80_e4m3_", "a and b become F16 in registers"},
                 {86, 0, 0, "gemmepi_sm80_e4m3_", "a and b become F16 in registers"},
                 {86, 1, 0, "gemmepi_sm80_e4m3_", "gemmepi_transpose"},
                 {100, 0, 0, NULL,
                  "not fused: its kernels for fp8 are for compute capability 7.5 to 9.0, 12.0 and 12.1"}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        planned p = planned_begin(cases[i].arch, 0);
        p.desc.m = p.desc.n = 2048, p.desc.k = 1024;
        p.desc.a.dtype = GEMMEPI_E4M3, p.desc.d.dtype = GEMMEPI_BF16, p.desc.b.transposed = 1;
        p.desc.a.transposed = cases[i].a_transposed;
        p.desc.flags = cases[i].flags;
        if (planned_plan(&p))
            CHECK((cases[i].kernel ? is_kernel(&p.details, cases[i].kernel)
                                   : p.details.route != GEMMEPI_ROUTE_FUSED) &&
                      explain_has(p.plan, cases[i].says),
                  "%d: %s by %s", i, p.details.route_name, p.details.kernel);
        planned_end(&p);
    }
}

static void i8_has_the_kernel_for_mma_sync_but_on_hopper(void) {
    static const struct {
        int arch, d, scale, a_transposed;
        int64_t k;
        uint64_t flags;
        const char *kernel; /* NULL: another */
        const char *says;
    } cases[] = {
        {75, GEMMEPI_BF16, GEMMEPI_SCALE_OUTER, 0, 1024, 0, "gemmepi_sm80_i8_", ", 2 stages"},
        {80, GEMMEPI_BF16, GEMMEPI_SCALE_OUTER, 0, 1024, 0, "gemmepi_sm80_i8_", "product and epilogue"},
        {86, GEMMEPI_I8, GEMMEPI_SCALE_TENSOR, 1, 1024, 0, "gemmepi_sm80_i8_", "gemmepi_transpose"},
        {120, GEMMEPI_F32, GEMMEPI_SCALE_NONE, 0, 131071, 0, "gemmepi_sm80_i8_", "product and epilogue"},
        {120, GEMMEPI_F32, GEMMEPI_SCALE_NONE, 0, 131072, 0, NULL,
         "not fused: sums of more than 131071 products of I8 may pass I32"},
        {86, GEMMEPI_I32, GEMMEPI_SCALE_NONE, 0, 1024, 0, NULL,
         "not fused: its kernel for I8 has results of F32 sums, and d is I32"},
        {86, GEMMEPI_BF16, GEMMEPI_SCALE_BLOCK_128, 0, 1024, 0, NULL,
         "not fused: its kernel for I8 has no scales that vary along k"},
        {86, GEMMEPI_BF16, GEMMEPI_SCALE_OUTER, 0, 1024, GEMMEPI_BATCH_INVARIANT, NULL,
         "not fused: with BATCH_INVARIANT its kernel is not for I8"},
        {90, GEMMEPI_BF16, GEMMEPI_SCALE_OUTER, 0, 1024, 0, NULL, "not fused: a and b are not both BF16"}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        planned p = planned_begin(cases[i].arch, 0);
        p.desc.m = p.desc.n = 512, p.desc.k = cases[i].k;
        p.desc.epilogue = cases[i].d == GEMMEPI_I32 ? GEMMEPI_RELU : GEMMEPI_GELU_TANH | GEMMEPI_BIAS;
        p.desc.a.dtype = GEMMEPI_I8, p.desc.d.dtype = (gemmepi_dtype)cases[i].d, p.desc.b.transposed = 1;
        p.desc.a.scale.mode = p.desc.b.scale.mode = (gemmepi_scale_mode)cases[i].scale;
        p.desc.a.transposed = cases[i].a_transposed;
        p.desc.flags = cases[i].flags;
        if (planned_plan(&p))
            CHECK((cases[i].kernel ? is_kernel(&p.details, cases[i].kernel)
                                   : p.details.route != GEMMEPI_ROUTE_FUSED) &&
                      explain_has(p.plan, cases[i].says),
                  "%d: %s by %s", i, p.details.route_name, p.details.kernel);
        planned_end(&p);
    }
}

static void kernels_whose_bits_depend_on_m_are_left_out_and_say_why(void) {
    static const struct {
        gemmepi_dtype b;
        int m, scale;
        const char *says;
    } cases[] = {{GEMMEPI_I8, 8, GEMMEPI_SCALE_OUTER,
                  "BATCH_INVARIANT: its shapes divide k among more warps or fewer"},
                 {GEMMEPI_BF16, 1, 0, "BATCH_INVARIANT: its shapes divide k among more threads or fewer"}};
    int i, invariant;
    for (i = 0; i < (int)GPI__COUNT(cases); i++)
        for (invariant = 0; invariant < 2; invariant++) {
            planned p = planned_begin(90, 0);
            gpi__problem problem;
            const gpi__engine *engine = i ? &gpi__small_engine : &gpi__weights_engine;
            p.desc.m = cases[i].m, p.desc.n = 4096, p.desc.k = 4096;
            p.desc.a.dtype = GEMMEPI_BF16, p.desc.b.dtype = cases[i].b, p.desc.b.transposed = 1;
            p.desc.b.scale.mode = (gemmepi_scale_mode)cases[i].scale;
            p.desc.flags = invariant ? GEMMEPI_BATCH_INVARIANT : 0;
            if (planned_plan(&p)) {
                CHECK(gpi__normalise(&p.desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
                CHECK(i || is_kernel(&p.details, "gemmepi_weights") == !invariant, "%s", p.details.kernel);
                CHECK(!engine->rule(p.context, &problem) &&
                          strcmp(engine->varies(&problem), cases[i].says) == 0,
                      "%d: %s", i, engine->varies(&problem));
            }
            planned_end(&p);
        }
}

/* Each shape but the first, at as many multiprocessors as its clusters have blocks, and at one less. */
static void a_slice_of_a_gpu_has_the_shapes_whose_clusters_fit(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_BF16, GEMMEPI_E4M3};
    static const gpi__engine *const engines[] = {&gpi__sm90_engine, &gpi__sm90_fp8_engine};
    int i, looked_at = 0;
    for (i = 0; i < 2; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context;
        gemmepi_matmul_desc desc;
        gpi__candidate candidate;
        gpi__problem problem;
        gpu.other_arch = 90;
        context = open_fake(&config);
        memset(&desc, 0, sizeof desc);
        memset(&candidate, 0, sizeof candidate);
        desc.m = desc.n = desc.k = 4096, desc.b.transposed = 1;
        desc.a.dtype = dtypes[i], desc.d.dtype = GEMMEPI_BF16;
        CHECK(gpi__normalise(&desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
        candidate.parts = 1, candidate.unit_alpha = 1;
        for (candidate.shape = 1; candidate.shape < engines[i]->shapes; candidate.shape++) {
            const gpi__sm90_shape *shape = &gpi__shapes_for(&problem)[candidate.shape];
            int blocks = shape->cluster_m * shape->cluster_n * shape->parts;
            double fits, is_larger;
            context->multiprocessors = 132;
            if (engines[i]->estimate(context, &problem, &candidate) >= GPI__NEVER)
                continue; /* it is for other scales */
            context->multiprocessors = blocks;
            fits = engines[i]->estimate(context, &problem, &candidate);
            context->multiprocessors = blocks - 1;
            is_larger = blocks > 1 ? engines[i]->estimate(context, &problem, &candidate) : GPI__NEVER;
            CHECK(fits < GPI__NEVER && is_larger >= GPI__NEVER,
                  "%s, shape %d of %d blocks: %g us, %g with one less", i ? "e4m3" : "bf16", candidate.shape,
                  blocks, fits, is_larger);
            looked_at += blocks > 1;
        }
        gemmepi_destroy(context);
        nothing_is_left();
        gpu.other_arch = 0;
    }
    CHECK(looked_at > 8, "%d shapes have clusters", looked_at);
}

int main(void) {
    hopper.arch = 90;
    keep_libraries_open();
    RUN(routes_that_are_none_of_products_are_refused);
    RUN(a_missing_library_leaves_the_other_routes);
    RUN(without_cublaslt_every_product_has_a_route);
    RUN(a_problem_that_no_route_runs_is_refused_with_the_reasons_of_both);
    RUN(a_problem_that_cublaslt_has_no_algorithm_for_is_plain);
    RUN(tiles_of_cublaslt_are_those_of_its_header);
    RUN(cublaslt_has_no_c_whose_lines_begin_at_multiples_of_more_elements_than_those_of_d);
    RUN(a_c_of_another_dtype_is_held_to_elements);
    RUN(an_empty_product_leaves_its_sums);
    RUN(the_type_of_aux_is_told_where_it_is_not_cublaslt_s_own);
    RUN(what_is_added_to_d_is_not_told_that_beta_is_1);
    RUN(what_is_added_to_d_beside_sums_of_an_operand_is_rounded_once);
    RUN(a_context_without_its_ones_works);
    RUN(what_fused_does_not_take_says_why);
    RUN(a_gate_whose_second_half_begins_between_units_has_b_transposed);
    RUN(what_tma_does_not_take_is_copied_by_threads);
    RUN(a_short_k_has_a_kernel_of_its_own_where_results_are_few);
    RUN(a_chip_that_is_not_known_is_counted_as_the_nearest_older_one);
    RUN(explain_says_how_much_shared_memory_a_chip_has_and_how_many_blocks_that_holds);
    RUN(sums_are_in_f16_where_chips_gain_by_it);
    RUN(chips_from_7_5_on_have_the_kernel_for_mma_sync);
    RUN(a_kernel_without_an_estimate_is_told_without_a_time);
    RUN(a_candidates_shared_memory_fits_its_chip);
    RUN(weights_of_8_bits_have_a_kernel_of_their_own);
    RUN(weights_of_4_bits_are_made_in_registers_where_that_is_less);
    RUN(two_blocks_make_weights_where_registers_are_left);
    RUN(scaled_formats_are_multiplied_as_they_are_stored);
    RUN(products_that_wait_for_their_operands_go_to_the_kernel_for_hopper);
    RUN(small_products_have_a_kernel_of_their_own);
    RUN(operands_of_odd_lines_are_packed_first);
    RUN(operands_that_packing_would_make_16_times_as_large_are_not_packed);
    RUN(f32_has_both_kernels);
    RUN(rules_of_cublaslt_hold_from_the_borders_that_are_told);
    RUN(an_aux_of_cublaslt_s_has_lines_and_items_of_whole_eights);
    RUN(sums_of_more_than_131071_products_of_i8_are_not_cublaslt_s);
    RUN(cublaslt_is_asked_again_without_fast_accumulation);
    RUN(a_product_without_k_needs_no_cublaslt);
    RUN(scales_are_found_inside_or_by_one_launch_more);
    RUN(scales_are_found_in_smaller_tiles_beside_aux_or_a_residual);
    RUN(fp8_says_where_its_sums_go);
    RUN(fp8_has_the_kernel_for_mma_sync_but_where_the_chip_has_another);
    RUN(i8_has_the_kernel_for_mma_sync_but_on_hopper);
    RUN(kernels_whose_bits_depend_on_m_are_left_out_and_say_why);
    RUN(a_slice_of_a_gpu_has_the_shapes_whose_clusters_fit);
    return test_finish();
}
