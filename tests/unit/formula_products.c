/* Products with formulas inside: which plans they share, what is freed, what happens where memory runs out, and in threads. */
#include <pthread.h>

#include "fake_program.h"

enum { M = 4, N = 6, K = 2 };

static float a[M * K], b[K * N], d[2 * M * N], bias[N], other[M * N], rows[M];
static gemmepi_operand operands[3];
static void *pointers[3] = {bias, other, rows};

static gemmepi_matmul_desc formula_product(const char *formula) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(operands, 0, sizeof operands);
    operands[0].name = "bias", operands[0].kind = GEMMEPI_PER_COLUMN;
    operands[1].name = "r", operands[1].kind = GEMMEPI_FULL;
    operands[2].name = "s", operands[2].kind = GEMMEPI_PER_ROW, operands[2].output = 1;
    desc.m = M, desc.n = N, desc.k = K;
    desc.formula = formula;
    desc.operands = operands;
    desc.operand_count = 3;
    return desc;
}

static gemmepi_matmul_args formula_args(void) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = a, args.b = b, args.d = d;
    args.operands = pointers;
    return args;
}

static const char formula[] = "d = silu(v + bias) + r; s = row_sum(d)";

static gemmepi_config host_config(void) {
    gemmepi_config config = fake_config();
    config.device = GEMMEPI_DEVICE_HOST;
    return config;
}

static int formulas_of(const gemmepi_context *context) {
    const gpi__kept_formula *kept = context->formulas;
    int count = 0;
    for (; kept; kept = kept->next)
        count++;
    return count;
}

typedef struct plan_list {
    const void *plans[64];
    int count;
} plan_list;

static void list_plan(void *user, gpi__map_entry *entry) {
    plan_list *list = (plan_list *)user;
    int i = 0;
    while (i < list->count && list->plans[i] != entry->value)
        i++;
    if (i == list->count && i < 64)
        list->plans[list->count++] = entry->value;
}

/* Those that one-shot calls keep, each once: by what it is of, and by each text. */
static int plans_of(gemmepi_context *context) {
    plan_list list;
    list.count = 0;
    gpi__map_each(&context->plans, list_plan, &list);
    return list.count;
}

static gemmepi_status call(gemmepi_context *context, const gemmepi_matmul_desc *desc) {
    gemmepi_matmul_args args = formula_args();
    return gemmepi_matmul(context, desc, &args, NULL);
}

static void equal_formulas_are_one_and_take_one_plan(void) {
    gemmepi_config config = host_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = formula_product(formula);
    gemmepi_plan *first, *second;
    CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(formulas_of(context) == 1 && plans_of(context) == 1, "%d", formulas_of(context));
    desc.formula = "  d=silu( v+bias )+r ;s = row_sum(d);";
    CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(formulas_of(context) == 1 && plans_of(context) == 1, "%d", formulas_of(context));
    CHECK(gemmepi_plan_matmul(context, &desc, &first) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_matmul(context, &desc, &second) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(formulas_of(context) == 1 && context->formulas->references == 3, "%ld",
          context->formulas->references);
    gemmepi_plan_destroy(first);
    gemmepi_plan_destroy(second);
    CHECK(context->formulas->references == 1, "%ld", context->formulas->references);
    operands[1].ld = N + 1; /* lies otherwise */
    desc.m = 3;
    CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
    operands[1].ld = N;
    CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
    operands[0].name = "c";
    desc.formula = "d = silu(v + c) + r; s = row_sum(d)";
    CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(formulas_of(context) == 4 && plans_of(context) == 4, "%d", formulas_of(context));
    gemmepi_destroy(context);
    nothing_is_left();
}

static void formulas_go_with_the_last_plan_that_has_them(void) {
    gemmepi_config config = host_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = formula_product("d = v * v + 0 * bias * r; s = row_sum(v)");
    gemmepi_plan *plans[8];
    int i;
    for (i = 0; i < 8; i++) {
        desc.k = 1 + i / 2;
        desc.a.ld = 9;
        CHECK(gemmepi_plan_matmul(context, &desc, &plans[i]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    }
    CHECK(formulas_of(context) == 4, "%d", formulas_of(context));
    for (i = 0; i < 8; i++) {
        CHECK(formulas_of(context) == (i < 4 ? 4 : 8 - i), "%d", formulas_of(context));
        gemmepi_plan_destroy(plans[i < 4 ? 2 * i : 2 * i - 7]);
    }
    CHECK(formulas_of(context) == 0, "%d", formulas_of(context));
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>on a GPU */

static gemmepi_config gpu_config(unsigned routes) {
    gemmepi_config config = fake_config();
    config.device = GEMMEPI_DEVICE(0);
    config.routes = routes;
    config.log = keep_log;
    return config;
}

static void a_gpu_makes_v_by_a_plan_of_its_own_and_passes_over_it(void) {
    gemmepi_config config = gpu_config(1u << GEMMEPI_ROUTE_SPLIT);
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = formula_product(formula);
    gemmepi_matmul_args args = formula_args();
    gemmepi_plan_details details;
    gemmepi_plan *plan = plan_on(context, &desc, GEMMEPI_ROUTE_SPLIT);
    const gpi__matmul_plan *v = matmul_of(plan);
    CHECK(v && v->route->id == GEMMEPI_ROUTE_LT && v->problem.views[GPI__D].dtype == GEMMEPI_F32 &&
              !v->problem.formula,
          "v is made otherwise");
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.launches == 3 &&
              details.workspace_size >= (size_t)(M * 8 * 4) + v->workspace_size,
          "%d launches, %d bytes", details.launches, (int)details.workspace_size);
    CHECK(explain_has(plan, "  v, into workspace in F32, by the route lt:\n") &&
              explain_has(plan, "gemmepi_formula_pass_") && explain_has(plan, "gemmepi_formula_reduce_") &&
              explain_has(plan, "d = silu(v + bias) + r; s = row_sum(d)\n") &&
              explain_has(plan, "not lt: cuBLASLt runs no formulas"),
          "explain does not tell");
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK && gpu.products == 1 && gpu.launches == 2,
          "%ld products, %ld launches: %s", gpu.products, gpu.launches, gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* By the estimates for a whole GPU. */
static void large_products_have_their_formulas_inside(void) {
    static const struct {
        const char *formula;
        gemmepi_route route;
    } cases[] = {{"d = silu(v + bias) + r", GEMMEPI_ROUTE_FUSED},
                 {"d = silu(v + bias) + r; s = row_sum(d)", GEMMEPI_ROUTE_FUSED},
                 {"s = row_logsumexp(v)", GEMMEPI_ROUTE_FUSED},
                 {"d = silu(v + bias) * r; g = column_sum(d)", GEMMEPI_ROUTE_FUSED},
                 {"g = column_max(v)", GEMMEPI_ROUTE_FUSED},
                 {"d = v * r; g = column_logsumexp(v)", GEMMEPI_ROUTE_SPLIT},
                 {"d = left(v) * silu(right(v))", GEMMEPI_ROUTE_FUSED},
                 {"d = even(v) * silu(odd(v))", GEMMEPI_ROUTE_FUSED},
                 {"x = even(v); y = odd(v); d = interleave(x - y, x + y)", GEMMEPI_ROUTE_FUSED},
                 {"d = even(v) * odd(v); s = row_sum(v)", GEMMEPI_ROUTE_SPLIT},
                 {"d = even(v) * odd(uniform(bias, 2))", GEMMEPI_ROUTE_SPLIT},
                 {"d = left(v, 64) * silu(right(v, 64))", GEMMEPI_ROUTE_FUSED},
                 {"x = left(v, 384); y = right(v, 384); d = pair(x - y, x + y, 384)", GEMMEPI_ROUTE_FUSED},
                 {"d = pair(left(v, 3072) * 2, right(v, 3072), 3072)", GEMMEPI_ROUTE_FUSED},
                 {"d = left(v, 192) * silu(right(v, 192))", GEMMEPI_ROUTE_SPLIT},
                 {"d = left(v, 32) * silu(right(v, 32))", GEMMEPI_ROUTE_SPLIT},
                 {"d = silu(v) * bias[row] + r[column]", GEMMEPI_ROUTE_FUSED},
                 {"d = part(v, 0, 2) * silu(part(v, 1, 2))", GEMMEPI_ROUTE_FUSED},
                 {"d = part(v, 0, 3) * silu(part(v, 1, 3))", GEMMEPI_ROUTE_SPLIT},
                 {"d = parts(v, v * v, silu(v))", GEMMEPI_ROUTE_SPLIT}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_config config = gpu_config(0);
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = formula_product(cases[i].formula);
        gemmepi_plan_details details;
        gemmepi_plan *plan;
        context->multiprocessors = 132;
        desc.operand_count = strstr(cases[i].formula, "s = ") || strstr(cases[i].formula, "g = ") ? 3 : 2;
        if (strstr(cases[i].formula, "g = "))
            operands[2].name = "g", operands[2].kind = GEMMEPI_PER_COLUMN;
        if (strstr(cases[i].formula, "uniform"))
            operands[0].kind = GEMMEPI_SCALAR, operands[0].dtype = GEMMEPI_I64;
        desc.m = 8192, desc.n = 3072, desc.k = 768;
        desc.a.dtype = GEMMEPI_BF16;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == cases[i].route, "%s: %s",
              cases[i].formula, details.route_name);
        CHECK(cases[i].route == GEMMEPI_ROUTE_FUSED || explain_has(plan, "not inside a kernel: its "),
              "%s: explain does not say why", cases[i].formula);
        CHECK((details.workspace_size < 8192 * 3072) == (cases[i].route == GEMMEPI_ROUTE_FUSED),
              "%s: %lu bytes", cases[i].formula, (unsigned long)details.workspace_size);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void blocks_of_one_column_or_whole_32_are_inside(void) {
    static const int columns[] = {1, 32, 128, 4096, 16, 5};
    int i;
    for (i = 0; i < 6; i++) {
        gemmepi_config config = gpu_config(0);
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = formula_product("d = silu(v + bias) * r");
        gemmepi_plan_details details;
        gemmepi_plan *plan;
        context->multiprocessors = 132;
        operands[1].kind = GEMMEPI_BLOCKED, operands[1].ld = 0;
        operands[1].block_rows = i % 2 ? 1 : 128, operands[1].block_columns = columns[i];
        desc.operand_count = 2;
        desc.m = 8192, desc.n = 3072, desc.k = 768;
        desc.a.dtype = GEMMEPI_BF16;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK &&
                  details.route == (i < 4 ? GEMMEPI_ROUTE_FUSED : GEMMEPI_ROUTE_SPLIT),
              "blocks of %d columns: %s", columns[i], details.route_name);
        CHECK(i < 4 || explain_has(plan, "not inside a kernel: its BLOCKED operand has blocks of neither"),
              "%d", columns[i]);
        CHECK(!explain_has(plan, "(not aligned)"), "%d: single elements are read, wherever they are",
              columns[i]);
        CHECK(i || explain_has(plan, "r         BF16, BLOCKED of 128 x 1, 64 x 3072 stored"), "explain");
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void reductions_of_groups_of_whole_states_are_inside(void) {
    gemmepi_config config = gpu_config(0);
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = formula_product("d = silu(v + bias) * r; s = row_max(abs(d), 128)");
    gemmepi_plan_details details;
    gemmepi_plan *plan;
    context->multiprocessors = 132;
    operands[2].kind = GEMMEPI_BLOCKED, operands[2].block_rows = 1, operands[2].block_columns = 128;
    desc.m = 8192, desc.n = 3072, desc.k = 768;
    desc.a.dtype = GEMMEPI_BF16;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == GEMMEPI_ROUTE_FUSED &&
              explain_has(plan, "s = row_max(abs(d), 128)"),
          "%s", details.route_name);
    gemmepi_plan_destroy(plan);
    desc.formula = "d = silu(v + bias) * r; s = row_max(abs(d), 96)", operands[2].block_columns = 96;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(explain_has(
              plan,
              "not inside a kernel: its reduction is of groups of columns that are no multiple of the 64"),
          "explain does not say it");
    gemmepi_plan_destroy(plan);
    desc.formula = "d = silu(v + bias) * r; s = row_max(abs(d), 128)", operands[2].block_columns = 128;
    desc.n = 3000;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "s is reduced by groups of 128, and n is 3000"),
          "%s", gemmepi_last_error());
    desc.n = 3200,
    desc.formula = "d = left(v) * right(v) + 0 * bias * r; s = row_max(v, 128)"; /* 12.5 in a half */
    operands[0].width = GEMMEPI_WIDTH_HALF, operands[1].width = GEMMEPI_WIDTH_HALF;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "of each part where x has several, must be a multiple"),
          "%s", gemmepi_last_error());
    desc.n = 3072, desc.formula = "d = silu(even(v) + odd(v)) + 0 * bias * r; s = row_max(v, 128)";
    operands[0].width = GEMMEPI_WIDTH_HALF, operands[1].width = GEMMEPI_WIDTH_HALF;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "of even and odd columns joined there are no groups"),
          "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Instructions for an element: 2 of a sum or a product, 1 of most reductions, 5 of argmax, 6 of logsumexp. Up to 8 are there for each box. */
static void a_kernel_has_the_instructions_of_a_long_formula_once(void) {
    static const struct {
        const char *formula;
        int rolls;
    } cases[] = {{"s = row_sum(v * v * v + v)", 0},
                 {"s = row_sum(v * v * v * v + v)", 1},
                 {"s = row_logsumexp(v * v)", 0},
                 {"s = row_logsumexp(v * v + v)", 1},
                 {"s = row_argmax(v * v)", 0},
                 {"s = row_argmax(v * v + v)", 1},
                 {"s = row_logsumexp(sin(v) + v * v)", 2}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_config config = gpu_config(1u << GEMMEPI_ROUTE_FUSED);
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = formula_product(cases[i].formula);
        gemmepi_plan *plan = NULL;
        operands[2].dtype = strstr(cases[i].formula, "argmax") ? GEMMEPI_I32 : GEMMEPI_F32;
        desc.m = 8192, desc.n = 3072, desc.k = 768;
        desc.a.dtype = GEMMEPI_BF16;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(plan && gpi__rolls_inside(&matmul_of(plan)->problem) == cases[i].rolls, "%s", cases[i].formula);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* As AUX does, if it has as many columns as v, and what goes there is of D's width; a second matrix that is read has the place else. */
static void a_matrix_that_is_written_beside_d_leaves_by_tma(void) {
    static const struct {
        const char *formula;
        gemmepi_dtype d;
        int staged, read, loaded; /* bits 1 D, 2 the output; 1 in aux's place, 2 in the residual's; by TMA */
    } cases[] = {{"d = v * r; s = v + r", GEMMEPI_BF16, 3, 2, 2},
                 {"d = v * r", GEMMEPI_BF16, 1, 2, 2},
                 {"d = v * r + q", GEMMEPI_BF16, 1, 3, 3},
                 {"d = v * r + q; s = v", GEMMEPI_BF16, 3, 2, 2},
                 {"s = v + r; d = v", GEMMEPI_F32, 1, 2, 2},
                 {"s = v; d = left(v) * right(v)", GEMMEPI_BF16, 3, 0, 0},
                 {"s = left(v); d = left(v) * right(v)", GEMMEPI_BF16, 1, 0, 0},
                 {"s = v; d = left(v, 64) * right(v, 64)", GEMMEPI_BF16, 3, 0, 0},
                 {"s = v; d = pair(left(v), right(v))", GEMMEPI_BF16, 1, 0, 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_config config = gpu_config(1u << GEMMEPI_ROUTE_FUSED);
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = formula_product(cases[i].formula);
        gemmepi_plan *plan = NULL;
        const gpi__sm90 *built;
        int reads;
        operands[0].name = "q", operands[0].kind = GEMMEPI_FULL;
        operands[2].kind = GEMMEPI_FULL, operands[2].dtype = GEMMEPI_BF16;
        operands[2].width = strstr(cases[i].formula, "s = left") ? GEMMEPI_WIDTH_HALF : GEMMEPI_WIDTH_N;
        desc.operand_count = strstr(cases[i].formula, "s = ") ? 3 : 2;
        desc.m = 8192, desc.n = 3072, desc.k = 768;
        desc.a.dtype = GEMMEPI_BF16, desc.d.dtype = cases[i].d;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        built = plan ? &((const gpi__fused *)matmul_of(plan)->built)->built.sm90 : NULL;
        reads = (gpi__has(&matmul_of(plan)->problem, GEMMEPI_BACKWARD) ? 1 : 0) |
                (gpi__has(&matmul_of(plan)->problem, GEMMEPI_RESIDUAL) ? 2 : 0);
        CHECK(built && built->staged == cases[i].staged && reads == cases[i].read &&
                  built->loaded == cases[i].loaded,
              "%s: staged %d, read %d, loaded %d", cases[i].formula, built ? built->staged : -1, reads,
              built ? built->loaded : -1);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void without_v_there_is_no_product(void) {
    gemmepi_config config = gpu_config(0);
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = formula_product("d = 2 * r + bias; s = row_sum(r)");
    CHECK(call(context, &desc) == GEMMEPI_OK && gpu.products == 0 && gpu.launches == 2,
          "%ld products, %ld launches: %s", gpu.products, gpu.launches, gemmepi_last_error());
    desc.n = 0;
    CHECK(call(context, &desc) == GEMMEPI_OK && gpu.products == 0 && gpu.launches == 3, "%ld launches: %s",
          gpu.launches, gemmepi_last_error());
    desc.m = 0;
    CHECK(call(context, &desc) == GEMMEPI_OK && gpu.launches == 3, "%ld launches: %s", gpu.launches,
          gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_refused_product_takes_another_route_within_its_formula(void) {
    gemmepi_config config = gpu_config(1u << GEMMEPI_ROUTE_SPLIT | 1u << GEMMEPI_ROUTE_PLAIN);
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_NONE);
    gemmepi_matmul_args args = args_for(&desc);
    gemmepi_plan *plan;
    desc.formula = "d = v * v";
    plan = plan_on(context, &desc, GEMMEPI_ROUTE_SPLIT);
    gpu.refusals = 9;
    gpu.refusal = GPI__CUBLAS_STATUS_NOT_SUPPORTED;
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK && gpu.products == 0, "%s",
          gemmepi_last_error());
    CHECK(strstr(logged, "uses another route") && explain_has(plan, "by the route plain"), "the log has: %s",
          logged);
    CHECK(route_of(plan) == GEMMEPI_ROUTE_PLAIN && explain_has(plan, "\nroute plain"), "route %d is told",
          (int)route_of(plan));
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void routes_that_are_left_out_make_no_v(void) {
    static const struct {
        unsigned routes;
        gemmepi_route told, of_v;
    } rows_of[] = {
        {1u << GEMMEPI_ROUTE_PLAIN, GEMMEPI_ROUTE_PLAIN, GEMMEPI_ROUTE_PLAIN},
        {1u << GEMMEPI_ROUTE_PLAIN | 1u << GEMMEPI_ROUTE_FUSED, GEMMEPI_ROUTE_FUSED, GEMMEPI_ROUTE_FUSED},
        {1u << GEMMEPI_ROUTE_SPLIT, GEMMEPI_ROUTE_SPLIT, GEMMEPI_ROUTE_LT}};
    size_t i;
    for (i = 0; i < GPI__COUNT(rows_of); i++) {
        gemmepi_config config = gpu_config(rows_of[i].routes);
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = formula_product(formula);
        gemmepi_plan *plan = plan_on(context, &desc, rows_of[i].told);
        CHECK(matmul_of(plan)->route->id == rows_of[i].of_v, "row %d: v by %d", (int)i,
              (int)matmul_of(plan)->route->id);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
    for (i = 0; i < 2; i++) {
        gemmepi_config config = gpu_config(1u << (i ? GEMMEPI_ROUTE_FUSED : GEMMEPI_ROUTE_LT));
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = formula_product(formula);
        if (i) /* the formula is inside */
            CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
        else
            CHECK(call(context, &desc) == GEMMEPI_UNSUPPORTED && sentence_has("config.routes leaves it out"),
                  "%s", gemmepi_last_error());
        if (i) { /* but not one with three parts */
            desc = formula_product("d = part(v, 0, 3)");
            desc.n = 96, desc.operands = NULL, desc.operand_count = 0;
            CHECK(call(context, &desc) == GEMMEPI_UNSUPPORTED &&
                      sentence_has("fused: v is made for a formula, which only split and plain do"),
                  "%s", gemmepi_last_error());
        }
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void operands_are_held_to_workspace_and_device(void) {
    gemmepi_config config = gpu_config(0);
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = formula_product(formula);
    gemmepi_matmul_args args = formula_args();
    gemmepi_plan_details details;
    gemmepi_plan *plan;
    void *own[3];
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    args.workspace = (void *)(((uintptr_t)memory[7] + 255) & ~(uintptr_t)255);
    args.workspace_size = details.workspace_size;
    memcpy(own, pointers, sizeof own);
    args.operands = own;
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    own[1] = args.workspace;
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("overlaps args.operands[1] (of r)"),
          "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    desc.formula = "d = v +";
    CHECK(call(context, &desc) == GEMMEPI_INVALID_ARGUMENT, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>layers */

static float preact[M * N], db[K * N], d_bias[N];
static gemmepi_operand layer_operands[3];
static void *layer_pointers[3] = {bias, d_bias, other};

static gemmepi_linear_desc formula_layer(uint64_t keeps) {
    gemmepi_linear_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(layer_operands, 0, sizeof layer_operands);
    layer_operands[0].name = "bias", layer_operands[0].kind = GEMMEPI_PER_COLUMN;
    layer_operands[1].name = "d_bias", layer_operands[1].kind = GEMMEPI_PER_COLUMN,
    layer_operands[1].output = 1;
    layer_operands[2].name = "r", layer_operands[2].kind = GEMMEPI_FULL;
    desc.m = M, desc.n = N, desc.k = K;
    desc.formula = "d = silu(v + bias) * r";
    desc.operands = layer_operands, desc.operand_count = 3;
    desc.flags = GEMMEPI_LINEAR_DB | keeps;
    return desc;
}

static gemmepi_linear_args layer_args(uint64_t keeps) {
    gemmepi_linear_args args;
    memset(&args, 0, sizeof args);
    args.a = a, args.b = b, args.y = d, args.dy = other, args.db = db;
    args.preact = keeps & GEMMEPI_LINEAR_SAVED ? preact : NULL;
    args.operands = layer_pointers;
    return args;
}

static gemmepi_status both_directions(gemmepi_context *context, uint64_t keeps) {
    gemmepi_linear_desc desc = formula_layer(keeps);
    gemmepi_linear_args args = layer_args(keeps);
    gemmepi_status status = gemmepi_linear(context, &desc, &args, NULL);
    return status ? status : gemmepi_linear_backward(context, &desc, &args, NULL);
}

static void layers_find_the_plans_of_their_formulas(void) {
    gemmepi_config config = host_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_linear_desc desc = formula_layer(GEMMEPI_LINEAR_RECOMPUTE);
    gemmepi_plan *plan;
    int i;
    for (i = 0; i < 3; i++)
        CHECK(both_directions(context, GEMMEPI_LINEAR_RECOMPUTE) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(plans_of(context) == 2 && formulas_of(context) == 2, "%d plans, %d formulas", plans_of(context),
          formulas_of(context));
    CHECK(both_directions(context, GEMMEPI_LINEAR_SAVED) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(plans_of(context) == 4 && formulas_of(context) == 4, "%d plans, %d formulas", plans_of(context),
          formulas_of(context));
    gpi__forget_all_kept(context);
    CHECK(formulas_of(context) == 0, "%d formulas", formulas_of(context));
    CHECK(gemmepi_plan_linear_backward(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(formulas_of(context) == 1, "%d formulas", formulas_of(context));
    gemmepi_plan_destroy(plan);
    CHECK(formulas_of(context) == 0, "%d formulas", formulas_of(context));
    gemmepi_destroy(context);
    nothing_is_left();
}

static void what_was_called_before_is_found_by_its_text(void) {
    gemmepi_config config = gpu_config(0);
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = formula_product(formula);
    long before;
    int turn;
    for (turn = 0; turn < 2; turn++) {
        before = allocations;
        CHECK(call(context, &desc) == GEMMEPI_OK &&
                  both_directions(context, GEMMEPI_LINEAR_RECOMPUTE) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        CHECK((allocations == before) == turn, "%ld blocks of memory in turn %d", allocations - before, turn);
    }
    desc.formula = "d = silu(v + bias) + r;s = row_sum(d)"; /* which is another text and the same formula */
    CHECK(call(context, &desc) == GEMMEPI_OK && plans_of(context) == 3, "%d plans", plans_of(context));
    operands[1].batch_stride = 1000; /* without a meaning, for there is one item */
    CHECK(call(context, &desc) == GEMMEPI_OK && plans_of(context) == 3, "%d plans", plans_of(context));
    desc.m = M - 1;
    operands[1].ld = N + 1;
    CHECK(call(context, &desc) == GEMMEPI_OK && plans_of(context) == 4, "%d plans", plans_of(context));
    operands[1].name = "q";
    CHECK(call(context, &desc) == GEMMEPI_INVALID_ARGUMENT && sentence_has("r"), "%s", gemmepi_last_error());
    operands[1].name = NULL;
    CHECK(call(context, &desc) == GEMMEPI_INVALID_ARGUMENT, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>memory */

static gemmepi_status program_of_layers(const gemmepi_config *config) {
    gemmepi_context *context = NULL;
    gemmepi_status status = gemmepi_create(config, &context);
    if (!status)
        status = both_directions(context, GEMMEPI_LINEAR_RECOMPUTE);
    if (!status)
        status = both_directions(context, GEMMEPI_LINEAR_SAVED);
    gemmepi_destroy(context);
    return status;
}

static gemmepi_status program_with(const gemmepi_config *config, const char *text, int operand_count) {
    gemmepi_matmul_desc desc = formula_product(text);
    gemmepi_matmul_args args = formula_args();
    gemmepi_context *context = NULL;
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_create(config, &context);
    int i;
    desc.operand_count = operand_count;
    for (i = 0; i < 2 && !status; i++)
        status = gemmepi_matmul(context, &desc, &args, NULL);
    if (!status)
        status = gemmepi_plan_matmul(context, &desc, &plan);
    if (!status)
        status = gemmepi_run_matmul(plan, &args, NULL);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    return status;
}

static gemmepi_status whole_program(const gemmepi_config *config) {
    return program_with(config, formula, 3);
}

/* Which is run as an epilogue on a GPU. */
static gemmepi_status program_of_epilogue(const gemmepi_config *config) {
    return program_with(config, "d = silu(v + bias) + r", 2);
}

static gemmepi_config config_of(int on_gpu) {
    return on_gpu ? gpu_config(0) : host_config();
}

static void runs_out_of_memory(gemmepi_status (*program)(const gemmepi_config *config), int on_gpu) {
    gemmepi_config config = config_of(on_gpu);
    long k, total, refused = 0;
    CHECK(program(&config) == GEMMEPI_OK, "%s", gemmepi_last_error());
    total = allocations;
    for (k = 1; k <= total; k++) {
        gemmepi_status status;
        config = config_of(on_gpu);
        fails_at = k;
        status = program(&config);
        CHECK(status == GEMMEPI_OUT_OF_MEMORY || status == GEMMEPI_OK, "allocation %ld of %ld gives %s: %s",
              k, total, gemmepi_status_name(status), gemmepi_last_error());
        CHECK(status == GEMMEPI_OK || sentence_has("memory"), "%s", gemmepi_last_error());
        refused += status != GEMMEPI_OK;
        nothing_is_left();
    }
    CHECK(refused >= 10, "only %ld of %ld allocations matter", refused, total);
}

static void a_program_may_run_out_of_memory_anywhere(void) {
    runs_out_of_memory(whole_program, 0);
    runs_out_of_memory(whole_program, 1);
    runs_out_of_memory(program_of_epilogue, 1);
    runs_out_of_memory(program_of_layers, 0);
    runs_out_of_memory(program_of_layers, 1);
}

/* >>threads */

enum { THREADS = 4, CALLS = 60 };

static gemmepi_context *shared;
static long failures;

static void *call_and_plan(void *user) {
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args = formula_args();
    gemmepi_operand own[3];
    float own_d[M * N], own_rows[M];
    void *own_pointers[3];
    int i;
    (void)user;
    own_pointers[0] = bias, own_pointers[1] = other, own_pointers[2] = own_rows;
    args.d = own_d, args.operands = own_pointers;
    memcpy(own, operands, sizeof own);
    for (i = 0; i < CALLS; i++) {
        gemmepi_plan *plan;
        memset(&desc, 0, sizeof desc);
        desc.m = 1 + i % M, desc.n = N, desc.k = K;
        desc.formula = formula;
        desc.operands = own, desc.operand_count = 3;
        if (i % 2) {
            if (gemmepi_matmul(shared, &desc, &args, NULL))
                count(&failures, 1);
        } else if (gemmepi_plan_matmul(shared, &desc, &plan)) {
            count(&failures, 1);
        } else {
            if (gemmepi_run_matmul(plan, &args, NULL))
                count(&failures, 1);
            gemmepi_plan_destroy(plan);
        }
    }
    return NULL;
}

static void threads_share_formulas(void) {
    gemmepi_config config = host_config();
    pthread_t threads[THREADS];
    int i;
    formula_product(formula);
    shared = open_fake(&config);
    failures = 0;
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, call_and_plan, NULL) == 0, "no thread");
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(failures == 0, "%ld calls failed", failures);
    CHECK(formulas_of(shared) == 2, "%d", formulas_of(shared)); /* of m 2 and 4, which one-shot calls keep */
    gemmepi_destroy(shared);
    nothing_is_left();
}

int main(void) {
    keep_libraries_open();
    RUN(equal_formulas_are_one_and_take_one_plan);
    RUN(formulas_go_with_the_last_plan_that_has_them);
    RUN(a_gpu_makes_v_by_a_plan_of_its_own_and_passes_over_it);
    RUN(large_products_have_their_formulas_inside);
    RUN(blocks_of_one_column_or_whole_32_are_inside);
    RUN(reductions_of_groups_of_whole_states_are_inside);
    RUN(a_kernel_has_the_instructions_of_a_long_formula_once);
    RUN(a_matrix_that_is_written_beside_d_leaves_by_tma);
    RUN(without_v_there_is_no_product);
    RUN(a_refused_product_takes_another_route_within_its_formula);
    RUN(routes_that_are_left_out_make_no_v);
    RUN(operands_are_held_to_workspace_and_device);
    RUN(layers_find_the_plans_of_their_formulas);
    RUN(what_was_called_before_is_found_by_its_text);
    RUN(a_program_may_run_out_of_memory_anywhere);
    RUN(threads_share_formulas);
    return test_finish();
}
