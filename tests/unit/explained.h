/* What a whole explanation of a product's plan has, and many plans that are explained: of every route, of empty products, with plans inside
   others. Also for programs that leave kernels out. */
#ifndef GEMMEPI_TESTS_EXPLAINED_H
#define GEMMEPI_TESTS_EXPLAINED_H

#include "fake_program.h"

static long explained;

/* The text has the route that info has, each sentence ends, and each route that was not taken has one reason at most. */
static void check_explained(const gemmepi_plan *plan, const char *what) {
    static const char *const names[] = {"fused", "lt", "split", "plain", "host"};
    static char text[16384];
    gemmepi_plan_details details;
    char line[100];
    size_t i, length = gemmepi_plan_explain(plan, text, sizeof text);
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s: %s", what, gemmepi_last_error());
    CHECK(length > 0 && length < sizeof text && text[length - 1] == '\n', "%s: %s", what, text);
    CHECK(!strstr(text, "(null)") && !strstr(text, ": \n"), "%s: %s", what, text);
    snprintf(line, sizeof line, "\nroute %s, workspace %llu bytes\n", details.route_name,
             (unsigned long long)details.workspace_size);
    CHECK(strstr(text, line), "%s: info has %s explain\n%s", what, line, text);
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *said;
        snprintf(line, sizeof line, "  not %s: ", names[i]);
        said = strstr(text, line);
        CHECK(!said || !strstr(said + 1, line), "%s: said twice: %s", what, text);
        CHECK(!said || strcmp(names[i], details.route_name) != 0 || strstr(text, "by the route"),
              "%s: its own route: %s", what, text);
    }
    explained++;
}

/* >>many plans */

static gemmepi_operand explained_operands[3];

static const char *const explained_formulas[] = {NULL,
                                                 "d = silu(v + 1)",
                                                 "d = silu(v + b)",
                                                 "d = relu(v)",
                                                 "d = r",
                                                 "d = left(v) * silu(right(v))",
                                                 "d = even(v) * odd(v)",
                                                 "d = parts(v, 2 * v, -v)",
                                                 "d = v; s = row_sum(d)",
                                                 "d = r + b; s = row_max(r)"};

static gemmepi_matmul_desc explained_product(const char *formula, int found, gemmepi_dtype dtype) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(explained_operands, 0, sizeof explained_operands);
    explained_operands[0].name = "b", explained_operands[0].kind = GEMMEPI_PER_COLUMN;
    explained_operands[1].name = "r", explained_operands[1].kind = GEMMEPI_FULL;
    explained_operands[2].name = "s", explained_operands[2].kind = GEMMEPI_PER_ROW;
    explained_operands[2].output = 1;
    desc.formula = formula;
    if (formula) {
        desc.operands = explained_operands;
        desc.operand_count = strstr(formula, "s = ") ? 3 : 2;
    } else {
        desc.epilogue = GEMMEPI_SILU;
    }
    desc.a.dtype = dtype;
    if (!found)
        return desc;
    desc.d.dtype = GEMMEPI_E4M3;
    desc.d.scale.mode = (gemmepi_scale_mode)found;
    desc.amax_history = found == GEMMEPI_SCALE_TENSOR ? 4 : 0;
    desc.flags = GEMMEPI_FIND_SCALE_D;
    return desc;
}

/* By what routes are left, found scales, formulas and sizes, of which each extent is 0 once. */
static void explain_on(gemmepi_context *context) {
    static const int64_t sizes[][3] = {{0, 4, 8}, {4, 0, 8}, {4, 6, 0}, {3, 10, 7}, {256, 256, 512}};
    static const gemmepi_dtype dtypes[] = {GEMMEPI_BF16, GEMMEPI_F32};
    int f, found, s, turn = 0;
    for (f = 0; f < (int)GPI__COUNT(explained_formulas); f++)
        for (found = 0; found <= (int)GEMMEPI_SCALE_VECTOR_128; found++)
            for (s = 0; s < (int)GPI__COUNT(sizes); s++, turn++) {
                gemmepi_matmul_desc desc = explained_product(explained_formulas[f], found, dtypes[turn % 2]);
                gemmepi_plan *plan = NULL;
                char what[200];
                desc.m = sizes[s][0], desc.n = sizes[s][1], desc.k = sizes[s][2];
                desc.order = turn % 3 ? GEMMEPI_ROW_MAJOR : GEMMEPI_COLUMN_MAJOR;
                if (turn % 5 == 0)
                    desc.flags |= GEMMEPI_BATCH_INVARIANT;
                if (desc.order && explained_formulas[f])
                    explained_operands[0].kind = GEMMEPI_PER_ROW,
                    explained_operands[2].kind = GEMMEPI_PER_COLUMN;
                snprintf(what, sizeof what, "%s, found %d, %d x %d x %d, routes %x",
                         desc.formula ? desc.formula : "SILU", found, (int)desc.m, (int)desc.n, (int)desc.k,
                         context->routes);
                if (gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK)
                    check_explained(plan, what);
                else
                    CHECK(gemmepi_last_error()[0] && !sentence_has("(null)") && !sentence_has(": ."),
                          "%s: %s", what, gemmepi_last_error());
                gemmepi_plan_destroy(plan);
            }
}

static void plans_of_every_size_and_route_are_explained(void) {
    static const int archs[] = {90, 80, 75};
    static const unsigned routes[] = {0,
                                      1u << GEMMEPI_ROUTE_LT,
                                      1u << GEMMEPI_ROUTE_SPLIT,
                                      1u << GEMMEPI_ROUTE_PLAIN,
                                      1u << GEMMEPI_ROUTE_FUSED,
                                      1u << GEMMEPI_ROUTE_FUSED | 1u << GEMMEPI_ROUTE_PLAIN};
    int a, r;
    explained = 0;
    for (a = 0; a < (int)GPI__COUNT(archs); a++)
        for (r = 0; r < (int)GPI__COUNT(routes); r++) {
            gemmepi_config config = config_with_all_routes();
            gemmepi_context *context;
            config.device = GEMMEPI_DEVICE(0);
            config.routes = routes[r];
            gpu.other_arch = archs[a];
            context = open_fake(&config);
            explain_on(context);
            gemmepi_destroy(context);
            nothing_is_left();
        }
    CHECK(explained > 600, "only %ld plans", explained);
}

#endif
