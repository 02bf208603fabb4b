/* Explanations of plans: empty ones, those with plans inside, and those of programs and configs that leave routes out, on the fake GPU of
   fake_cuda.h. Each is told whole: the route that gemmepi_plan_info has, and a reason for each route that was not taken. */
#include "explained.h"

/* >>the case that was found */

static void a_formula_without_a_product_inside_a_found_scale_is_explained(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc;
    gemmepi_plan *plan = NULL;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.n = 3;
    desc.d.dtype = GEMMEPI_E4M3;
    desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
    desc.amax_history = 4;
    desc.flags = GEMMEPI_FIND_SCALE_D;
    desc.formula = "d = silu(v + 1)";
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    check_explained(plan, "k 0");
    CHECK(explain_has(plan, "the scale of the amax of 4 earlier runs"), "no word of the scale");
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>routes that are told */

/* The launch behind cuBLASLt's product makes it SPLIT, for info as for explain. */
static void scales_found_behind_cublaslts_product_are_the_route_split(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_NONE);
    gemmepi_plan *plan = NULL;
    config.routes = 1u << GEMMEPI_ROUTE_LT;
    context = open_fake(&config);
    desc.n = 136;               /* more than a vector */
    desc.c.dtype = GEMMEPI_F32; /* as what is in workspace */
    desc.d.dtype = GEMMEPI_E4M3;
    desc.d.scale.mode = GEMMEPI_SCALE_OUTER;
    desc.flags = GEMMEPI_FIND_SCALE_D;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(route_of(plan) == GEMMEPI_ROUTE_SPLIT, "route %d", (int)route_of(plan));
    check_explained(plan, "OUTER behind lt");
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* The pass finds scales of vectors; those of rows are made of an amax, which a launch finds ahead of it. */
static void scales_found_of_what_a_formula_makes_are_explained(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_NONE);
    gemmepi_plan_details details[3];
    gemmepi_plan *plan = NULL;
    int finds;
    desc.m = 64, desc.n = 48, desc.k = 300, desc.b.dtype = GEMMEPI_E4M3, desc.b.transposed = 1;
    desc.d.dtype = GEMMEPI_BF16, desc.a.formula = "2 * a", desc.a.compute_dtype = GEMMEPI_E4M3;
    for (finds = 0; finds < 3; finds++) {
        desc.flags = finds ? GEMMEPI_FIND_SCALE_A : 0;
        desc.a.scale.mode = finds == 2   ? GEMMEPI_SCALE_VECTOR_128
                            : finds == 1 ? GEMMEPI_SCALE_OUTER
                                         : GEMMEPI_SCALE_NONE;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK &&
                  gemmepi_plan_info(plan, &details[finds]) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        check_explained(plan, "scales of a");
        CHECK(explain_has(plan, "a in E4M3 and its scales, into workspace") == (finds > 0) &&
                  explain_has(plan, "amax of which scales are made") == (finds == 1) &&
                  explain_has(plan, "E4M3, a scale for each 128 of k, found") == (finds == 2),
              "finds %d", finds);
        gemmepi_plan_destroy(plan);
    }
    /* zeros are a launch, too */
    CHECK(details[1].launches == details[0].launches + 2 && details[2].launches == details[0].launches,
          "%d and %d launches, next to %d", details[1].launches, details[2].launches, details[0].launches);
    CHECK(details[1].workspace_size == details[0].workspace_size + 2 * 64 * 4 &&
              details[2].workspace_size == details[0].workspace_size + 3 * 64 * 4,
          "%d and %d bytes, next to %d", (int)details[1].workspace_size, (int)details[2].workspace_size,
          (int)details[0].workspace_size);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* cuBLASLt refuses the product that the launch is around: PLAIN stands in for it. */
static void scales_found_around_a_product_that_is_refused_are_of_the_route_that_stands_in(void) {
    static const char *const formulas[] = {NULL, "d = silu(v + 1)"};
    static const gemmepi_scale_mode modes[] = {GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_OUTER};
    int i;
    for (i = 0; i < 4; i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context;
        gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_NONE);
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_plan *plan = NULL;
        config.routes = NOT_FUSED;
        context = open_fake(&config);
        desc.d.dtype = GEMMEPI_E4M3;
        desc.d.scale.mode = modes[i % 2];
        desc.amax_history = i % 2 ? 0 : 4;
        desc.flags = GEMMEPI_FIND_SCALE_D;
        desc.formula = formulas[i / 2];
        args.found_scale_d = (float *)(void *)memory[6];
        args.amax_history = i % 2 ? NULL : (float *)(void *)memory[7];
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(route_of(plan) == GEMMEPI_ROUTE_SPLIT, "%d: route %d", i, (int)route_of(plan));
        gpu.refusals = -1;
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK &&
                  gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK,
              "%d: %s", i, gemmepi_last_error());
        CHECK(route_of(plan) == GEMMEPI_ROUTE_PLAIN, "%d: route %d", i, (int)route_of(plan));
        check_explained(plan, "refused");
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* >>answers and bundles */

static void plans_of_answers_are_explained(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_NONE);
    gemmepi_any_desc problem;
    gemmepi_tune_options options;
    gemmepi_plan *plan = NULL;
    int i;
    memset(&problem, 0, sizeof problem);
    memset(&options, 0, sizeof options);
    options.threads = 1;
    problem.matmul = &desc;
    desc.n = 512;
    gpu.launch_time = 5, gpu.product_time = 50;
    for (i = 0; i < 4; i++) {
        desc.formula = i % 2 ? "d = even(v) * odd(v)" : NULL;
        desc.d.dtype = i / 2 ? GEMMEPI_E4M3 : GEMMEPI_BF16;
        desc.d.scale.mode = i / 2 ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
        desc.amax_history = i / 2 ? 3 : 0;
        desc.flags = i / 2 ? GEMMEPI_FIND_SCALE_D : 0;
        CHECK(gemmepi_tune(context, &problem, 1, &options, NULL, NULL) == GEMMEPI_OK, "%d: %s", i,
              gemmepi_last_error());
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        check_explained(plan, "tuned");
        CHECK(explain_has(plan, "tuned: it took"), "%d: not tuned", i);
        gemmepi_plan_destroy(plan);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* The bundle has the kernels of one problem, and there is no NVRTC for those of others. */
static void plans_of_bundles_are_explained(void) {
    static unsigned char bundle[1 << 20];
    size_t size = 0;
    int i;
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_plan *plan = NULL;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    CHECK(gemmepi_bundle_write(context, bundle, sizeof bundle, &size) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    gemmepi_destroy(context);
    config = config_with_all_routes();
    gpu.missing = "nvrtc";
    context = open_fake(&config);
    CHECK(gemmepi_bundle_read(context, bundle, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < 3; i++) {
        desc = fused_product();
        desc.m += i % 2, desc.alignment = i == 2 ? 2 : 0;
        if (i)
            desc.epilogue = GEMMEPI_BIAS;
        if (gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK)
            check_explained(plan, "bundled");
        else
            CHECK(sentence_has("plain: "), "%s", gemmepi_last_error());
        gemmepi_plan_destroy(plan);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>kernels that are told */

static char entries[16][96]; /* of the last run's launches */
static int entry_count;

static void note_entry(const fake_launch *launch) {
    if (entry_count < 16)
        snprintf(entries[entry_count++], sizeof entries[0], "%s", launch->entry);
}

static int times_in(const char *text, const char *word) {
    int count = 0;
    while ((text = strstr(text, word)) != NULL)
        count++, text++;
    return count;
}

static void check_kernels_are_told(const gemmepi_plan *plan, const gemmepi_matmul_desc *desc) {
    static char text[16384];
    gemmepi_matmul_args args = args_for(desc);
    int i, j;
    gemmepi_plan_explain(plan, text, sizeof text);
    if (desc->epilogue & GEMMEPI_BGRAD_A)
        args.bias_grad = memory[7];
    entry_count = 0, gpu.watch = note_entry;
    CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK &&
              gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    gpu.watch = NULL;
    for (i = 0; i < entry_count; i++) {
        int launched = 0;
        for (j = 0; j < entry_count; j++)
            launched += strcmp(entries[i], entries[j]) == 0;
        if (strncmp(entries[i], "gemmepi_sum_", 12) == 0)
            CHECK(strstr(text, "bias_grad: "), "no word of %s:\n%s", entries[i], text);
        else
            CHECK(times_in(text, entries[i]) >= launched, "%d times %s:\n%s", launched, entries[i], text);
    }
}

static void each_kernel_is_told_as_often_as_a_run_launches_it(void) {
    static const gemmepi_dtype pairs[][2] = {{GEMMEPI_BF16, GEMMEPI_BF16}, {GEMMEPI_BF16, GEMMEPI_F16},
                                             {GEMMEPI_F32, GEMMEPI_BF16},  {GEMMEPI_F16, GEMMEPI_F32},
                                             {GEMMEPI_E4M3, GEMMEPI_BF16}, {GEMMEPI_F64, GEMMEPI_F32}};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_SILU | GEMMEPI_BIAS, GEMMEPI_BGRAD_A,
                                                 GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD};
    static const gemmepi_route routes[] = {GEMMEPI_ROUTE_SPLIT, GEMMEPI_ROUTE_PLAIN};
    size_t p, e, r;
    int planned = 0, launches = 0;
    for (p = 0; p < GPI__COUNT(pairs); p++)
        for (e = 0; e < GPI__COUNT(epilogues); e++)
            for (r = 0; r < GPI__COUNT(routes); r++) {
                gemmepi_config config = fake_config();
                gemmepi_context *context;
                gemmepi_matmul_desc desc = product(pairs[p][0], epilogues[e]);
                gemmepi_plan *plan = NULL;
                config.routes = 1u << routes[r];
                context = open_fake(&config);
                gpu.is_untouched = 1;
                desc.b.dtype = pairs[p][1],
                desc.d.dtype = pairs[p][0] == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
                if (gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK) {
                    check_kernels_are_told(plan, &desc);
                    planned++, launches += entry_count;
                }
                gemmepi_plan_destroy(plan);
                gemmepi_destroy(context);
                nothing_is_left();
            }
    CHECK(planned >= 24 && launches >= planned, "%d plans of %d launches", planned, launches);
}

int main(void) {
    keep_libraries_open();
    RUN(a_formula_without_a_product_inside_a_found_scale_is_explained);
    RUN(scales_found_of_what_a_formula_makes_are_explained);
    RUN(scales_found_behind_cublaslts_product_are_the_route_split);
    RUN(scales_found_around_a_product_that_is_refused_are_of_the_route_that_stands_in);
    RUN(each_kernel_is_told_as_often_as_a_run_launches_it);
    RUN(plans_of_answers_are_explained);
    RUN(plans_of_bundles_are_explained);
    RUN(plans_of_every_size_and_route_are_explained);
    return test_finish();
}
