/* Networks by layers on the fake GPU of fake_cuda.h: what is launched, where, and what is left when something fails. Their types, but in one test,
   are those that no kernel of networks has. */
#include "fake_program.h"

enum { LAYERS = 3 };

/* 300 rows, 40 to 64 to 64 to 8 in strict F32. */
typedef struct program {
    gemmepi_network_layer layers[LAYERS];
    gemmepi_operand beta;
    gemmepi_network_desc desc;
    gemmepi_network_args args;
    const void *w[LAYERS], *bias[LAYERS];
    void *dw[LAYERS], *dbias[LAYERS], *operands[1];
    void *const *lists[LAYERS];
} program;

/* Addresses far from each other: nothing is read or written there. */
static char *far_at(int i) {
    return (char *)((uintptr_t)1 << 40) + ((uintptr_t)i << 30);
}

static void make_program(program *p, uint64_t flags, const char *formula) {
    int i;
    memset(p, 0, sizeof *p);
    p->layers[0].width = p->layers[1].width = 64, p->layers[2].width = 8;
    p->layers[0].activation = GEMMEPI_SILU, p->layers[1].activation = formula ? 0 : GEMMEPI_RELU;
    p->layers[1].formula = formula;
    if (formula && strstr(formula, "beta")) {
        p->beta.name = "beta", p->beta.kind = GEMMEPI_PER_COLUMN, p->beta.dtype = GEMMEPI_F32;
        p->layers[1].operands = &p->beta, p->layers[1].operand_count = 1;
        p->operands[0] = far_at(30), p->lists[1] = p->operands, p->args.operands = p->lists;
    }
    p->desc.rows = 300, p->desc.input = 40, p->desc.layers = p->layers, p->desc.layer_count = LAYERS;
    p->desc.flags = GEMMEPI_NETWORK_BIAS | GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_DW | flags;
    for (i = 0; i < LAYERS; i++) {
        p->w[i] = far_at(i), p->bias[i] = far_at(4 + i), p->dw[i] = far_at(8 + i),
        p->dbias[i] = far_at(12 + i);
    }
    p->args.x = far_at(20), p->args.y = far_at(21), p->args.dy = far_at(22), p->args.dx = far_at(23);
    p->args.w = p->w, p->args.bias = p->bias, p->args.dw = p->dw, p->args.dbias = p->dbias;
    if (flags & GEMMEPI_NETWORK_SAVED)
        p->args.saved = far_at(24), p->args.saved_size = (size_t)1 << 24;
}

static gemmepi_status plan_program(gemmepi_context *context, const program *p, int backward,
                                   gemmepi_plan **plan) {
    return backward ? gemmepi_plan_network_backward(context, &p->desc, plan)
                    : gemmepi_plan_network(context, &p->desc, plan);
}

static gemmepi_status run_program(const gemmepi_plan *plan, const program *p, int backward) {
    return backward ? gemmepi_run_network_backward(plan, &p->args, NULL)
                    : gemmepi_run_network(plan, &p->args, NULL);
}

static gemmepi_status call_program(gemmepi_context *context, const program *p, int backward) {
    return backward ? gemmepi_network_backward(context, &p->desc, &p->args, NULL)
                    : gemmepi_network(context, &p->desc, &p->args, NULL);
}

/* Forward and backward, with and without SAVED, by name and by formula. */
static const struct {
    uint64_t flags;
    const char *formula;
} forms[] = {{0, NULL},
             {GEMMEPI_NETWORK_SAVED, NULL},
             {0, "d = v * sigmoid(beta * v)"},
             {GEMMEPI_NETWORK_SAVED, "d = v * sigmoid(beta * v)"},
             {GEMMEPI_ACCUMULATE_DW | GEMMEPI_BATCH_INVARIANT, "d = sin(v)"}};
enum { FORMS = 2 * (int)(sizeof forms / sizeof *forms) };

static void a_network_runs_in_the_callers_workspace_from_its_exact_size_on(void) {
    int i;
    for (i = 0; i < FORMS; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_plan_details details;
        gemmepi_plan *plan = NULL;
        program p;
        long before;
        make_program(&p, forms[i / 2].flags, forms[i / 2].formula);
        gpu.is_untouched = 1;
        CHECK(plan_program(context, &p, i & 1, &plan) == GEMMEPI_OK &&
                  gemmepi_plan_info(plan, &details) == GEMMEPI_OK,
              "%d: %s", i, gemmepi_last_error());
        CHECK(details.route == GEMMEPI_ROUTE_LINEAR && details.deterministic && details.bit_stable &&
                  details.accumulator == GEMMEPI_F32 && details.kernel[0],
              "%d: route %s", i, details.route_name);
        CHECK((details.saved_size > 0) == ((forms[i / 2].flags & GEMMEPI_NETWORK_SAVED) != 0),
              "%d: %llu bytes saved", i, (unsigned long long)details.saved_size);
        before = gpu.device_allocations;
        p.args.workspace = far_at(40), p.args.workspace_size = details.workspace_size - 1;
        if (details.workspace_size > 0)
            CHECK(run_program(plan, &p, i & 1) == GEMMEPI_BUFFER_TOO_SMALL &&
                      sentence_has("args.workspace_size"),
                  "%d: %s", i, gemmepi_last_error());
        p.args.workspace = NULL, p.args.workspace_size = 0;
        if (details.workspace_size > 0)
            CHECK(run_program(plan, &p, i & 1) == GEMMEPI_BUFFER_TOO_SMALL &&
                      sentence_has("gemmepi_plan_prepare"),
                  "%d: %s", i, gemmepi_last_error());
        CHECK(gpu.products == 0 && gpu.launches == 0, "%d: something was launched", i);
        p.args.workspace = far_at(40), p.args.workspace_size = details.workspace_size;
        CHECK(run_program(plan, &p, i & 1) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(gpu.device_allocations == before, "%d: %ld blocks", i, gpu.device_allocations - before);
        CHECK(gpu.launches + gpu.products <= details.launches, "%d: %ld and %ld launches, not %d", i,
              gpu.launches, gpu.products, details.launches);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* Between two layers nothing but the second one's product is launched, so that the derivative is in it. */
static void backward_is_two_products_for_each_layer(void) {
    static const char *const formulas[] = {NULL, "d = sin(v)"};
    int i;
    for (i = 0; i < 2; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_plan *plan = NULL;
        static char text[65536];
        program p;
        make_program(&p, GEMMEPI_NETWORK_SAVED, formulas[i]);
        CHECK(plan_program(context, &p, 1, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(strstr(text, "backward of a network of 300 rows, widths 40 64 64 8, F32") &&
                  strstr(text, i ? "dA through the formula of the layer before"
                                 : "dA through activation RELU of the layer before") &&
                  strstr(text, "dA through activation SILU of the layer before") && strstr(text, "dY is G"),
              "%s", text);
        CHECK(!strstr(text, "one pass over dY and P"), "%s", text);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void calls_find_the_plan_of_the_last_one(void) {
    int i, again;
    for (i = 0; i < FORMS; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        program p;
        long compiled = 0, allocated = 0;
        size_t plans = 0;
        for (again = 0; again < 2; again++) {
            program other; /* the same at another address */
            make_program(&p, forms[i / 2].flags, forms[i / 2].formula);
            make_program(&other, forms[i / 2].flags, forms[i / 2].formula);
            CHECK(call_program(context, again ? &other : &p, i & 1) == GEMMEPI_OK, "%d: %s", i,
                  gemmepi_last_error());
            CHECK(!again || (gpu.compilations == compiled && context->plans.count == plans &&
                             allocations == allocated),
                  "%d: it was planned again", i);
            compiled = gpu.compilations, plans = context->plans.count, allocated = allocations;
        }
        p.layers[1].width = 32;
        CHECK(call_program(context, &p, i & 1) == GEMMEPI_OK && context->plans.count > plans, "%d: %s", i,
              gemmepi_last_error());
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* A product of a layer takes another route in the middle of the run, and reserves workspace for that: not the network's own. */
static void products_that_cublaslt_refuses_take_another_route(void) {
    int i, run;
    for (i = 0; i < FORMS - 2; i++) { /* without BATCH_INVARIANT, which cuBLASLt has not */
        gemmepi_config config = fake_config();
        gemmepi_context *context;
        gemmepi_plan *plan = NULL;
        program p;
        config.routes = 1u << GEMMEPI_ROUTE_LT | 1u << GEMMEPI_ROUTE_SPLIT | 1u << GEMMEPI_ROUTE_PLAIN;
        context = open_fake(&config);
        make_program(&p, forms[i / 2].flags, forms[i / 2].formula);
        CHECK(plan_program(context, &p, i & 1, &plan) == GEMMEPI_OK && !gemmepi_plan_prepare(plan, NULL),
              "%d: %s", i, gemmepi_last_error());
        gpu.refusals = -1;
        for (run = 0; run < 2; run++)
            CHECK(run_program(plan, &p, i & 1) == GEMMEPI_OK, "%d, run %d: %s", i, run, gemmepi_last_error());
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void networks_are_compiled_ahead(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_any_desc problems[2];
    program p;
    long compiled;
    int backward;
    memset(problems, 0, sizeof problems);
    make_program(&p, 0, forms[2].formula);
    problems[0].network = problems[1].network_backward = &p.desc;
    CHECK(gemmepi_precompile(context, problems, 2, 1, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    compiled = gpu.compilations;
    for (backward = 0; backward < 2; backward++)
        CHECK(call_program(context, &p, backward) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(compiled > 3 && gpu.compilations == compiled, "%ld kernels, and %ld", compiled, gpu.compilations);
    problems[0].matmul = (const gemmepi_matmul_desc *)(const void *)&p;
    CHECK(gemmepi_precompile(context, problems, 1, 1, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("2 of matmul") && sentence_has("network"),
          "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static gemmepi_status whole_program(const gemmepi_config *config, int backward) {
    gemmepi_context *context = NULL;
    program p;
    gemmepi_status status = gemmepi_create(config, &context);
    make_program(&p, 0, forms[2].formula);
    if (config->device == GEMMEPI_DEVICE_HOST) { /* there nothing is to be read or written */
        p.desc.rows = 0, p.desc.flags &= ~GEMMEPI_NETWORK_DW;
        p.args.dw = p.args.dbias = NULL;
    }
    if (!status)
        status = call_program(context, &p, backward);
    gemmepi_destroy(context);
    return status;
}

/* On the host: the same call but for a text, or for how an operand is stored. */
static void calls_that_differ_in_a_text_have_plans_of_their_own(void) {
    static const struct {
        const char *formula, *input_formula;
        gemmepi_operand_kind kind;
        float y;
    } cases[] = {{"d = v + 1", NULL, GEMMEPI_FULL, 2},    {"d = v + 2", NULL, GEMMEPI_FULL, 3},
                 {"d = v + 2", "a * 3", GEMMEPI_FULL, 5}, {"d = v + 2", "a * 4", GEMMEPI_FULL, 6},
                 {"d = v * n", NULL, GEMMEPI_NUMBER, 7},  {"d = v * n", NULL, GEMMEPI_SCALAR, 9}};
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    size_t i;
    config.device = GEMMEPI_DEVICE_HOST;
    context = open_fake(&config);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const float one = 1;
        float y = 0, stored = 9;
        const double number = 7;
        const void *w = &one;
        void *operand = cases[i].kind == GEMMEPI_NUMBER ? gemmepi_number(&number) : &stored;
        void *const *list = &operand;
        gemmepi_network_layer layer = {0};
        gemmepi_network_desc desc = {0};
        gemmepi_network_args args = {0};
        gemmepi_operand n;
        memset(&n, 0, sizeof n);
        n.name = "n", n.kind = cases[i].kind;
        layer.width = 1, layer.formula = cases[i].formula;
        if (n.kind != GEMMEPI_FULL)
            layer.operands = &n, layer.operand_count = 1, args.operands = &list;
        desc.rows = desc.input = 1, desc.layers = &layer, desc.layer_count = 1, desc.alignment = 4;
        desc.input_formula = cases[i].input_formula;
        args.x = &one, args.w = &w, args.y = &y;
        CHECK(gemmepi_network(context, &desc, &args, NULL) == GEMMEPI_OK, "%d: %s", (int)i,
              gemmepi_last_error());
        CHECK(y == cases[i].y, "%d: %g", (int)i, (double)y);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Formulas, plans and memory are given back, whatever fails. */
static void host_memory_may_run_out_anywhere(void) {
    static const int devices[] = {GEMMEPI_DEVICE(0), GEMMEPI_DEVICE_HOST};
    int i;
    for (i = 0; i < 4; i++) {
        long k, total, refused = 0;
        gemmepi_config config = fake_config();
        config.device = devices[i / 2];
        CHECK(whole_program(&config, i & 1) == GEMMEPI_OK, "%s", gemmepi_last_error());
        total = allocations;
        for (k = 1; k <= total; k++) {
            gemmepi_status status;
            fake_config();
            fails_at = k;
            status = whole_program(&config, i & 1);
            CHECK(status == GEMMEPI_OUT_OF_MEMORY || status == GEMMEPI_OK,
                  "allocation %ld of %ld gives %s: %s", k, total, gemmepi_status_name(status),
                  gemmepi_last_error());
            refused += status != GEMMEPI_OK;
            nothing_is_left();
        }
        CHECK(refused > 10, "only %ld of %ld allocations matter", refused, total);
    }
}

/* A network of 16 bits, of the program's shape where a field is 0, and what explain says of it. */
typedef struct told {
    const char *says;
    int backward, arch;
    gemmepi_dtype dtype;
    int64_t rows, input, width; /* width: of all layers */
    uint64_t flags;
    const char *formula, *input_formula; /* formula: of the second layer */
    int beta;                            /* of it, as the list below */
} told;
enum { PERIODS = 1, BLOCKS, GRADIENT };

static const char in_kernel[] = "all layers in one kernel";
static const told tellings[] = {
    {in_kernel, 0, 0, GEMMEPI_F16, 0, 0, 0, 0, NULL, NULL, 0},
    {in_kernel, 1, 0, GEMMEPI_BF16, 1, 0, 0, GEMMEPI_ACCUMULATE_DW, "d = v * sigmoid(beta * v)", NULL, 0},
    {in_kernel, 0, 0, GEMMEPI_F16, 0, 128, 128, GEMMEPI_ACCUMULATE_DX, NULL, NULL, 0},
    {in_kernel, 0, 75, GEMMEPI_F16, 0, 0, 0, 0, NULL, NULL, 0},
    {in_kernel, 0, 0, GEMMEPI_F16, 0, 0, 0, 0, "d = v * beta", NULL, GRADIENT},
    /* the kernel's tiles count rows beyond the last one, too */
    {in_kernel, 0, 0, GEMMEPI_F16, ((int64_t)1 << 31) - 1025, 0, 0, 0, NULL, NULL, 0},
    {"it has more than 2^31 - 1025 rows", 0, 0, GEMMEPI_F16, ((int64_t)1 << 31) - 1024, 0, 0, 0, NULL, NULL,
     0},
    {"it has more than 2^31 - 1025 rows", 0, 0, GEMMEPI_F16, ((int64_t)1 << 31) - 1, 0, 0, 0, NULL, NULL, 0},
    {"BATCH_INVARIANT: a row has the same bits", 0, 0, GEMMEPI_F32, 0, 0, 0, GEMMEPI_BATCH_INVARIANT, NULL,
     NULL, 0},
    {"there are no rows", 0, 0, GEMMEPI_F16, -1, 0, 0, 0, NULL, NULL, 0},
    {"the kernel is for F16, BF16 and F32 with COMPUTE_TF32", 0, 0, GEMMEPI_F32, 0, 0, 0, 0, NULL, NULL, 0},
    {"the chip has no mma.sync for its type", 0, 75, GEMMEPI_BF16, 0, 0, 0, 0, NULL, NULL, 0},
    {"a layer, or its input, is wider than 128", 0, 0, GEMMEPI_F16, 0, 0, 129, 0, NULL, NULL, 0},
    {"a layer, or its input, is wider than 128", 0, 0, GEMMEPI_F16, 0, 129, 0, 0, NULL, NULL, 0},
    {"a layer, or its input, is wider than 128", 1, 0, GEMMEPI_BF16, 0, 0, 2000, 0, NULL, NULL, 0},
    {"it has NETWORK_SAVED", 0, 0, GEMMEPI_F16, 0, 0, 0, GEMMEPI_NETWORK_SAVED, NULL, NULL, 0},
    {"it has ACCUMULATE_DX", 1, 0, GEMMEPI_F16, 0, 0, 0, GEMMEPI_ACCUMULATE_DX, NULL, NULL, 0},
    {"its weights, or backward they and a tile's rows of every layer, are more than a block's shared memory",
     1, 0, GEMMEPI_F16, 0, 128, 128, 0, NULL, NULL, 0},
    {"the sums of dw are more than a block has registers for", 1, 0, GEMMEPI_F16, 0, 96, 96, 0, NULL, NULL,
     0},
    {"x is made by a formula", 0, 0, GEMMEPI_F16, 0, 0, 0, 0, NULL, "sin(a)", 0},
    {"gradients of operands are asked for", 1, 0, GEMMEPI_F16, 0, 0, 0, 0, "d = v * beta", NULL, GRADIENT},
    {"a formula reads by index", 0, 0, GEMMEPI_F16, 0, 0, 0, 0, "d = v * beta[row]", NULL, 0},
    {"a formula has halves", 0, 0, GEMMEPI_F16, 0, 0, 0, 0, "d = pair(right(v), left(v))", NULL, 0},
    {"a formula's operand is BLOCKED", 0, 0, GEMMEPI_F16, 0, 0, 0, 0, "d = v * beta", NULL, PERIODS},
    {"a formula's operand is BLOCKED", 1, 0, GEMMEPI_F16, 0, 0, 0, 0, "d = v * beta", NULL, BLOCKS}};

static void make_told(program *p, gemmepi_operand operands[2], const told *t) {
    int i;
    make_program(p, t->flags, t->formula);
    p->desc.dtype = t->dtype, p->desc.input_formula = t->input_formula;
    p->desc.rows = t->rows < 0 ? 0 : t->rows ? t->rows : p->desc.rows;
    p->desc.input = t->input ? t->input : p->desc.input;
    for (i = 0; i < LAYERS && t->width; i++)
        p->layers[i].width = t->width;
    operands[0] = operands[1] = p->beta;
    operands[0].column_period = t->beta == PERIODS ? 16 : 0;
    if (t->beta == BLOCKS)
        operands[0].kind = GEMMEPI_BLOCKED, operands[0].block_rows = 1, operands[0].block_columns = 32;
    operands[1].name = "d_beta", operands[1].output = 1;
    if (p->beta.name)
        p->layers[1].operands = operands, p->layers[1].operand_count = 1 + (t->beta == GRADIENT);
}

static void what_runs_in_the_kernel_and_why_all_else_does_not_is_told(void) {
    size_t i;
    for (i = 0; i < sizeof tellings / sizeof tellings[0]; i++) {
        static char text[1 << 16];
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context;
        gemmepi_operand operands[2];
        gemmepi_plan *plan = NULL;
        program p;
        gpu.other_arch = tellings[i].arch;
        context = open_fake(&config);
        make_told(&p, operands, &tellings[i]);
        CHECK(plan_program(context, &p, tellings[i].backward, &plan) == GEMMEPI_OK, "%d: %s", (int)i,
              gemmepi_last_error());
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(strstr(text, tellings[i].says) &&
                  (strstr(text, "a layer at a time, as ") != NULL) == (tellings[i].says != in_kernel),
              "%d, %s: %s", (int)i, tellings[i].says, text);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        gpu.other_arch = 0;
        nothing_is_left();
    }
}

/* A layer with so many NUMBERs, which its text adds up. */
static void add_numbers(gemmepi_network_layer *layer, gemmepi_operand *operands, char *text, int count) {
    static const char names[13][2] = {"b", "c", "f", "g", "h", "k", "l", "m", "n", "p", "q", "r", "s"};
    int i;
    memset(operands, 0, (size_t)count * sizeof *operands);
    strcpy(text, "d = v");
    for (i = 0; i < count; i++) {
        operands[i].name = names[i], operands[i].kind = GEMMEPI_NUMBER;
        strcat(strcat(text, " + "), names[i]);
    }
    layer->activation = 0, layer->formula = text, layer->operands = operands, layer->operand_count = count;
}

static void the_kernel_has_room_for_24_operands(void) {
    int more;
    for (more = 0; more < 2; more++) {
        static char text[1 << 16], texts[2][96];
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        gemmepi_operand operands[2][13];
        gemmepi_plan *plan = NULL;
        program p;
        make_program(&p, 0, NULL);
        p.desc.dtype = GEMMEPI_F16;
        add_numbers(&p.layers[0], operands[0], texts[0], 12);
        add_numbers(&p.layers[2], operands[1], texts[1], 12 + more);
        CHECK(plan_program(context, &p, 0, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(strstr(text, more ? "as its formulas have more than 24 operands together" : in_kernel), "%s",
              text);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* Backward has instructions of its own for each layer. */
static void long_functions_of_backward_go_by_two_values(void) {
    static const struct {
        int64_t width; /* of hidden layers */
        const char *formula;
        int backward;
        int by_two;
    } cases[] = {{64, "d = sin(v)", 1, 0},
                 {64, "d = v * erf(v)", 1, 0},
                 {64, "d = sin(v) * atan(v) * sinh(v)", 0, 0},
                 {64, "d = sin(v) * atan(v) * sinh(v)", 1, 1},
                 {64, "d = log1p(exp(v)) * atan(v)", 1, 1},
                 {32, "d = sin(v) * atan(v) * sinh(v)", 1, 0}};
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    size_t i;
    int j;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static char text[1 << 16];
        gemmepi_plan *plan = NULL;
        program p;
        make_program(&p, 0, NULL);
        p.desc.dtype = GEMMEPI_F16, p.desc.rows = 4096,
        p.layers[0].width = p.layers[1].width = cases[i].width;
        for (j = 0; j < LAYERS; j++)
            p.layers[j].activation = 0, p.layers[j].formula = cases[i].formula;
        CHECK(plan_program(context, &p, cases[i].backward, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(strstr(text, "all layers in one kernel") &&
                  !strstr(text, "formulas for two values at a time") == !cases[i].by_two,
              "%s: %s", cases[i].formula, text);
        gemmepi_plan_destroy(plan);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* By wgmma: a warp has 16 rows of a tile, and functions, or layers of several widths, leave registers for fewer warps, or one block. */
static void functions_and_widths_decide_how_many_warps_hopper_has(void) {
    static const struct {
        int64_t input, width;
        gemmepi_epilogue activation;
        const char *formula;
        const char *says;
    } cases[] = {{128, 128, GEMMEPI_RELU, NULL, " 132 blocks of 256 rows"},
                 {100, 128, GEMMEPI_RELU, NULL, " 132 blocks of 256 rows"},
                 {128, 128, GEMMEPI_SILU, NULL, " 132 blocks of 256 rows"},
                 {100, 128, GEMMEPI_SILU, NULL, " 132 blocks of 192 rows"},
                 {128, 128, GEMMEPI_SILU, "d = sin(v)", " 132 blocks of 192 rows"},
                 {65, 64, GEMMEPI_SILU, NULL, " 132 blocks of 192 rows"},
                 {64, 64, GEMMEPI_SILU, NULL, " 132 blocks of 320 rows"},
                 {64, 64, GEMMEPI_RELU, NULL, " 264 blocks of 192 rows"}};
    size_t i;
    int j;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static char text[1 << 16];
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_plan *plan = NULL;
        program p;
        make_program(&p, 0, cases[i].formula);
        p.desc.dtype = GEMMEPI_BF16, p.desc.rows = 1 << 20, p.desc.input = cases[i].input;
        for (j = 0; j < LAYERS; j++) {
            p.layers[j].width = cases[i].width;
            p.layers[j].activation = p.layers[j].formula ? GEMMEPI_NONE : cases[i].activation;
        }
        CHECK(plan_program(context, &p, 0, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(strstr(text, cases[i].says) != NULL, "%d: %s", (int)i, text);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* In F32, but not strictly, and forward. */
static void f32_runs_in_the_kernel_as_tf32(void) {
    static const struct {
        gemmepi_compute compute;
        int64_t width;
        int backward, arch;
        const char *says;
    } cases[] = {{GEMMEPI_COMPUTE_TF32, 64, 0, 0, in_kernel},
                 {GEMMEPI_COMPUTE_TF32, 96, 0, 80, in_kernel},
                 {GEMMEPI_COMPUTE_TF32, 97, 0, 0, "as a layer, or its input, is wider than 96, in F32"},
                 {GEMMEPI_COMPUTE_TF32, 96, 0, 86,
                  "are more than a block's shared memory"}, /* 15 + 36 + 36 KB and more */
                 {GEMMEPI_COMPUTE_TF32, 64, 1, 0, "as the kernel's backward is for F16 and BF16"},
                 {GEMMEPI_COMPUTE_TF32, 64, 0, 75, "as the chip has no mma.sync for its type"},
                 {GEMMEPI_COMPUTE_F32, 64, 0, 0, "as the kernel is for F16, BF16 and F32 with COMPUTE_TF32"}};
    size_t i;
    int j;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static char text[1 << 16];
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context;
        gemmepi_plan_details details;
        gemmepi_plan *plan = NULL;
        program p;
        gpu.other_arch = cases[i].arch;
        context = open_fake(&config);
        make_program(&p, 0, NULL);
        p.desc.dtype = GEMMEPI_F32, p.desc.compute = cases[i].compute;
        for (j = 0; j < LAYERS; j++)
            p.layers[j].width = cases[i].width;
        CHECK(plan_program(context, &p, cases[i].backward, &plan) == GEMMEPI_OK &&
                  gemmepi_plan_info(plan, &details) == GEMMEPI_OK,
              "%d: %s", (int)i, gemmepi_last_error());
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(strstr(text, cases[i].says) && details.compute == cases[i].compute, "%d: %s", (int)i, text);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        gpu.other_arch = 0;
        nothing_is_left();
    }
}

int main(void) {
    keep_libraries_open();
    RUN(f32_runs_in_the_kernel_as_tf32);
    RUN(long_functions_of_backward_go_by_two_values);
    RUN(functions_and_widths_decide_how_many_warps_hopper_has);
    RUN(a_network_runs_in_the_callers_workspace_from_its_exact_size_on);
    RUN(backward_is_two_products_for_each_layer);
    RUN(calls_find_the_plan_of_the_last_one);
    RUN(calls_that_differ_in_a_text_have_plans_of_their_own);
    RUN(products_that_cublaslt_refuses_take_another_route);
    RUN(networks_are_compiled_ahead);
    RUN(what_runs_in_the_kernel_and_why_all_else_does_not_is_told);
    RUN(the_kernel_has_room_for_24_operands);
    RUN(host_memory_may_run_out_anywhere);
    return test_finish();
}
