/* Formulas that say what an epilogue says: of every epilogue but gates' gradients that one can say the problem is made of the formula, byte
   by byte, and what looks alike and is not stays a formula, as gates' gradients do. */
#include "fake_program.h"

#include "composed.h"

enum { M = 48, N = 56, K = 32, OPERANDS = 5 };

static gemmepi_context *host;

/* Whether the formula becomes a composition, and which. */
static int composes(const gemmepi_matmul_desc *desc, gpi__composition *said, gpi__problem *composed) {
    gpi__problem problem;
    int is;
    gemmepi_status status = gpi__convert_problem(host, desc, 16, &problem);
    CHECK(status == GEMMEPI_OK, "%s: %s", desc->formula, gemmepi_last_error());
    if (status)
        return 0;
    is = gpi__find_composition(&problem, said, composed);
    gpi__drop_formulas(host, &problem);
    return is;
}

static int compared, others, edited;

/* Whether the epilogue stays a formula: a gate's gradient, and those that are selections. */
static int stays_a_formula(gemmepi_epilogue epilogue) {
    gemmepi_epilogue activation = epilogue & GEMMEPI_ACTIVATION_MASK;
    return (epilogue & GEMMEPI_BACKWARD) &&
           ((epilogue & GEMMEPI_GATED) || activation == GEMMEPI_RELU || activation == GEMMEPI_SQUARED_RELU ||
            activation == GEMMEPI_HARDSIGMOID);
}

/* Whether a formula's activation is short where the epilogue's is exact, in a kernel that formulas go into. */
static int stays_short(const gpi__problem *p) {
    uint32_t activation = gpi__activation(p->epilogue);
    return activation != GEMMEPI_NONE && activation != GEMMEPI_RELU && p->views[GPI__D].bits <= 16 &&
           p->views[GPI__A].bits > 8 && !(p->epilogue & GEMMEPI_BGRAD) && gpi__wants_exact(p);
}

/* One of these edits at a time, of a text that says an epilogue: none is another way to say it. */
static void what_is_edited_says_it_no_more(composed *c, const gpi__problem *wanted, unsigned which) {
    static const char *const edits[][2] = {
        {"z = v", "z = 3 * v"},
        {"z = bias", "z = bias + bias"},
        {" + bias;", " + bias + bias;"},
        {"aux = z;", "aux = 3 * z;"},
        {" + r", " + r + r"},
        {"; d = r", "; d = 3 * r"},
        {"(z)", "(3 * z)"},
        {"aux)", "3 * aux)"},
        {"0.3", "0.4"},
        {"right(z)", "left(z)"},
        {"left(z)", "right(z)"},
        {"_sum(d)", "_sum(3 * d)"},
        {"; d = ", "; d = 3 * "},
        {" + ", " - "},
    };
    const char *const *edit = edits[which % (sizeof edits / sizeof *edits)];
    char *at = strstr(c->text, edit[0]), rest[1024];
    gpi__problem composed_problem;
    gpi__composition said;
    if (!at)
        return;
    snprintf(rest, sizeof rest, "%s", at + strlen(edit[0]));
    snprintf(at, sizeof c->text - (size_t)(at - c->text), "%s%s", edit[1], rest);
    edited++;
    CHECK(!composes(&c->desc, &said, &composed_problem) ||
              memcmp(wanted, &composed_problem, sizeof *wanted) != 0,
          "%s says what it said", c->text);
}

static void compare(const gemmepi_matmul_desc *desc) {
    static unsigned count;
    gpi__problem wanted, composed_problem;
    gpi__composition said;
    composed c;
    composed_order = count / 3 % 8;
    count++;
    if (gpi__normalise(desc, 16, &wanted) || !composed_say(&c, desc))
        return; /* an epilogue without a meaning, or of masks */
    if (stays_a_formula(desc->epilogue)) {
        CHECK(!composes(&c.desc, &said, &composed_problem), "%s is run as an epilogue", c.text);
        others++;
        return;
    }
    if (stays_short(&wanted)) {
        CHECK(!composes(&c.desc, &said, &composed_problem), "%s has an exact activation", c.text);
        return;
    }
    compared++;
    if (!composes(&c.desc, &said, &composed_problem)) {
        CHECK(0, "%s stays a formula", c.text);
        return;
    }
    CHECK(memcmp(&wanted, &composed_problem, sizeof wanted) == 0,
          "%s is another problem: epilogue 0x%llx for 0x%llx", c.text, (gpi__ull)composed_problem.epilogue,
          (gpi__ull)wanted.epilogue);
    what_is_edited_says_it_no_more(&c, &wanted, count);
}

/* >>what tensors are */

/* 0: as d. */
typedef struct kind {
    gemmepi_dtype a, d, bias, aux, residual, bias_grad;
    int scaled; /* aux, residual and d, of 8 bits */
} kind;

static const kind kinds[] = {
    {GEMMEPI_BF16, GEMMEPI_BF16, 0, 0, 0, GEMMEPI_BF16, 0},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_BF16, GEMMEPI_F16, 0},
    {GEMMEPI_F32, GEMMEPI_F32, 0, 0, 0, 0, 0},
    {GEMMEPI_E4M3, GEMMEPI_E4M3, 0, GEMMEPI_E5M2, GEMMEPI_E4M3, GEMMEPI_F32, 1},
    {GEMMEPI_F64, GEMMEPI_F64, 0, 0, 0, 0, 0},
    {GEMMEPI_I8, GEMMEPI_I32, 0, 0, 0, 0, 0},
    {GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_I8, 0, GEMMEPI_F32, 0},
};

static void fill_in(gemmepi_matmul_desc *desc, const kind *of, gemmepi_epilogue epilogue, gemmepi_order order,
                    int batch) {
    memset(desc, 0, sizeof *desc);
    desc->m = M, desc->n = N, desc->k = K, desc->batch = batch;
    desc->order = order;
    desc->epilogue = epilogue;
    desc->a.dtype = of->a, desc->d.dtype = of->d;
    if (batch > 1)
        desc->a.batch_stride = M * K, desc->b.batch_stride = K * N, desc->d.batch_stride = 2 * M * N;
    if (of->scaled)
        desc->d.scale.mode = GEMMEPI_SCALE_TENSOR, desc->flags |= GEMMEPI_AMAX_D;
    if (epilogue & GEMMEPI_BIAS)
        desc->bias.dtype = of->bias, desc->bias.batch_stride = batch > 1 ? N : 0;
    if (epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD)) {
        desc->aux.dtype = of->aux, desc->aux.ld = 2 * N + 8;
        desc->aux.batch_stride = batch > 1 ? (2 * N + 8) * N : 0;
        if (of->scaled)
            desc->aux.scale.mode = GEMMEPI_SCALE_TENSOR;
        if (of->scaled && epilogue & GEMMEPI_AUX)
            desc->flags |= GEMMEPI_AMAX_AUX;
    }
    if (epilogue & GEMMEPI_RESIDUAL) {
        desc->residual.dtype = of->residual, desc->residual.ld = 2 * N; /* not as aux lies */
        desc->residual.batch_stride = batch > 1 && order == GEMMEPI_ROW_MAJOR ? 2 * N * M : 0;
        if (of->scaled)
            desc->residual.scale.mode = GEMMEPI_SCALE_TENSOR;
    }
    if (epilogue & GEMMEPI_BGRAD)
        desc->bias_grad.dtype = of->bias_grad ? of->bias_grad : of->d,
        desc->bias_grad.batch_stride = batch > 1 && batch % 2 ? 2 * N : 0;
}

static const gemmepi_epilogue bits[] = {GEMMEPI_BIAS,  GEMMEPI_AUX,        GEMMEPI_RESIDUAL,
                                        GEMMEPI_BGRAD, GEMMEPI_BACKWARD,   GEMMEPI_UPSTREAM,
                                        GEMMEPI_GATED, GEMMEPI_GATE_FIRST, GEMMEPI_ACCUMULATE_BIAS_GRAD};

/* A parameter of its own for every second of those that have one. */
static void give_parameter(gemmepi_matmul_desc *desc, unsigned set) {
    if (gpi__default_parameter(desc->epilogue) != 0 && set % 2)
        desc->has_parameter = 1, desc->activation_parameter = 0.3;
}

static void what_an_epilogue_says_becomes_its_problem(void) {
    size_t k, a, b;
    unsigned set;
    for (k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (a = 0; a < GPI__COUNT(gpi__activations); a++)
            for (set = 0; set < 1u << sizeof bits / sizeof *bits; set++) {
                gemmepi_epilogue epilogue = gpi__activations[a].code;
                gemmepi_matmul_desc desc;
                for (b = 0; b < sizeof bits / sizeof *bits; b++)
                    epilogue |= set >> b & 1 ? bits[b] : 0;
                fill_in(&desc, &kinds[k], epilogue, set / 3 % 2 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR,
                        1 + (int)(set + a) % 3);
                give_parameter(&desc, set / 5);
                compare(&desc);
            }
    composed_order = 0;
    CHECK(compared > 2000 && others > 1000 && edited > 500,
          "%d are run as an epilogue, %d are not, nor are %d that were edited", compared, others, edited);
}

static void a_row_alone_is_planned_as_it_is_among_others(void) {
    gemmepi_matmul_desc desc;
    fill_in(&desc, &kinds[0], GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, GEMMEPI_ROW_MAJOR, 1);
    desc.m = 1;
    desc.flags = GEMMEPI_BATCH_INVARIANT;
    desc.d.ld = desc.residual.ld = N + 1;
    compare(&desc);
}

/* >>what looks alike */

/* Operands by letters: b a bias, q one by rows, r s matrices, z one that is stored, h a half, w of both halves, t a table, k a scalar, g sums
   of columns, o sums of rows. */
static void list_letters(const char *letters, gemmepi_operand *operands) {
    static const char all[] = "bqrszhwtkgoyf";
    static const char *const own[] = {"b", "q", "r", "s", "z", "h", "w", "t", "k", "g", "o", "y", "f"};
    int i;
    for (i = 0; letters[i]; i++) {
        char letter = letters[i];
        memset(&operands[i], 0, sizeof operands[i]);
        operands[i].name = own[strchr(all, letter) - all];
        operands[i].kind = strchr("bgf", letter)  ? GEMMEPI_PER_COLUMN
                           : strchr("qo", letter) ? GEMMEPI_PER_ROW
                           : letter == 'k'        ? GEMMEPI_SCALAR
                                                  : GEMMEPI_FULL;
        operands[i].output = strchr("zgoyf", letter) != NULL;
        operands[i].width = letter == 'h'   ? GEMMEPI_WIDTH_HALF
                            : letter == 'w' ? GEMMEPI_WIDTH_DOUBLE
                                            : GEMMEPI_WIDTH_N;
        operands[i].column_period = letter == 't' ? 8 : 0;
    }
}

typedef struct said_case {
    const char *formula, *letters;
    gemmepi_epilogue says; /* ANY_FORMULA: no epilogue */
} said_case;

#define ANY_FORMULA (~(gemmepi_epilogue)0)

static const said_case said_cases[] = {
    /* written otherwise, and with what nothing needs */
    {"d = max(v, 0)", "", GEMMEPI_RELU},
    {"d = r + max(0, b + v)", "br", GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL},
    {"d = max(0, left(v)) * right(v)", "", GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST},
    {"x = b + v; d = max(x, 0) + r", "br", GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL},
    {"d = r + silu(b + v)", "rbs", GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL},
    {"d = leaky_relu(v)", "", GEMMEPI_LEAKY_RELU},
    {"d = silu(right(v + b)) * left(v + b); z = v + b", "bz",
     GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX},
    {"d = right(v) * left(v)", "", GEMMEPI_GATED},
    {"d = d_gelu_tanh(r) * v", "r", GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD},
    {"d = d_gelu_tanh(r) * v + s", "sr", GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL},
    {"d = r * d_silu(b + v)", "rb", GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS},
    {"d = r + s * d_silu(v)", "rs", GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_RESIDUAL},
    {"d = leaky_relu(left(v), 0.5) * right(v)", "", GEMMEPI_LEAKY_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST},
    {"d = v; g = column_sum(d)", "g", GEMMEPI_BGRAD},
    {"d = b + v + r", "rb", GEMMEPI_RESIDUAL | GEMMEPI_BIAS},
    {"z = v; d = v", "z", GEMMEPI_AUX},
    {"d = left(v) * silu(right(v)) + h", "h", GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_RESIDUAL},
    {"unused = v * r; d = 1 > 0 ? relu(v) : unused", "r", GEMMEPI_RELU},
    {"d = v * d_silu(r); g = column_sum(d)", "rg", GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD},
    /* like an epilogue, and none */
    {"d = v > 0 ? r : 0", "r", ANY_FORMULA},
    {"d = v + r + b", "rb", ANY_FORMULA}, /* in another order */
    {"d = r", "r", ANY_FORMULA},
    {"d = v + v", "", ANY_FORMULA},
    {"d = v * d_silu(v)", "", ANY_FORMULA},
    {"d = r * d_silu(r) + v", "r", ANY_FORMULA},
    {"d = r * d_silu(s) + v", "rs", ANY_FORMULA},
    {"z = v; d = r * d_silu(v)", "zr", ANY_FORMULA},
    {"d = silu(left(v)) * silu(right(v))", "", ANY_FORMULA},
    {"d = left(v) * right(v + b)", "b", ANY_FORMULA},
    {"d = left(v) * right(v) * h", "h", ANY_FORMULA},
    {"d = leaky_relu(left(v), k) * right(v)", "k", ANY_FORMULA},
    {"d = v * d_leaky_relu(r, k)", "rk", ANY_FORMULA},
    {"d = relu(v + q)", "q", ANY_FORMULA},
    {"d = relu(v) + q", "q", ANY_FORMULA},
    {"d = relu(v) + b", "b", ANY_FORMULA},
    {"d = relu(v + b) + b", "b", ANY_FORMULA},
    {"d = relu(v - b)", "b", ANY_FORMULA},
    {"d = relu(v + k)", "k", ANY_FORMULA},
    {"d = relu(v + r)", "r", ANY_FORMULA},
    {"d = relu(v) - r", "r", ANY_FORMULA},
    {"d = relu(v) * r", "r", ANY_FORMULA},
    {"d = relu(v) + r + s", "rs", ANY_FORMULA},
    {"d = relu(v) + t", "t", ANY_FORMULA},
    {"z = relu(v); d = z", "z", ANY_FORMULA},
    {"z = v; d = silu(v + b)", "zb", ANY_FORMULA},
    {"z = v + b; d = relu(z)", "zb", ANY_FORMULA},      /* the mask */
    {"z = v + b; d = silu(z) + r", "zbr", ANY_FORMULA}, /* r may lie where z does */
    {"z = v + b", "zb", ANY_FORMULA},
    {"d = max(v, 1)", "", ANY_FORMULA},
    {"d = min(v, 0)", "", ANY_FORMULA},
    {"d = v > 0 ? v : 0", "", ANY_FORMULA}, /* 0 of NaN */
    {"d = silu(silu(v))", "", ANY_FORMULA},
    {"d = silu(2 * v)", "", ANY_FORMULA},
    {"d = rounded(v)", "", ANY_FORMULA},
    {"d = leaky_relu(v, k)", "k", ANY_FORMULA},
    {"d = left(v) * silu(left(v))", "", ANY_FORMULA},
    {"d = silu(left(v)) * silu(right(v))", "", ANY_FORMULA},
    {"d = left(v) + silu(right(v))", "", ANY_FORMULA},
    {"d = even(v) * silu(odd(v))", "", ANY_FORMULA},
    {"d = left(v, 64) * silu(right(v, 64))", "", ANY_FORMULA},
    {"d = left(v) * silu(right(v) + h)", "h", ANY_FORMULA},
    {"d = v * d_silu(v)", "", ANY_FORMULA},
    {"d = v * d_silu(r + b)", "rb", ANY_FORMULA},
    {"d = v * d_relu(r)", "r", ANY_FORMULA},
    {"d = r > 0 ? v : 0", "r", ANY_FORMULA}, /* of the mask alone */
    {"d = pair(v * left(w) * d_silu(right(w)), v * silu(right(w)))", "w", ANY_FORMULA},
    {"d = pair(v * silu(left(w)), v * left(w) * d_silu(right(w)))", "w", ANY_FORMULA},
    {"d = pair(v * silu(right(w)), v * d_silu(right(w)))", "w", ANY_FORMULA},
    {"d = part(v, 0, 4) * silu(part(v, 1, 4))", "", ANY_FORMULA},
    {"d = v; o = row_sum(d)", "o", ANY_FORMULA},
    {"d = v; g = column_sum(d * d)", "g", ANY_FORMULA},
    {"d = v; g = column_max(d)", "g", ANY_FORMULA},
    {"d = silu(v); g = column_sum(d)", "g", ANY_FORMULA}, /* BGRAD is of gradients */
    {"d = v * row", "", ANY_FORMULA},
    {"z = v + b; y = v + b; d = silu(v + b)", "zyb", ANY_FORMULA},
    {"d = v * d_silu(r); g = column_sum(d); f = column_sum(d)", "rgf", ANY_FORMULA},
    {"d = v > 1 ? r : 0", "r", ANY_FORMULA},
    {"d = v > 0 ? r : 1", "r", ANY_FORMULA},
    {"d = leaky_relu(v, v)", "", ANY_FORMULA},
    {"d = leaky_relu(v, 0.25) + leaky_relu(v, 0.5)", "", ANY_FORMULA},
    {"d = max(0.5, v)", "", ANY_FORMULA},
};

static gemmepi_matmul_desc said_product(const said_case *c, gemmepi_operand *operands) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    list_letters(c->letters, operands);
    desc.m = 192, desc.n = 256, desc.k = 64;
    desc.a.dtype = GEMMEPI_BF16;
    desc.formula = c->formula;
    desc.operands = operands, desc.operand_count = (int)strlen(c->letters);
    return desc;
}

static void what_looks_alike_stays_a_formula(void) {
    size_t i;
    for (i = 0; i < sizeof said_cases / sizeof *said_cases; i++) {
        gemmepi_operand operands[OPERANDS];
        gemmepi_matmul_desc desc = said_product(&said_cases[i], operands);
        gpi__problem composed;
        gpi__composition said;
        int is = composes(&desc, &said, &composed);
        CHECK(is == (said_cases[i].says != ANY_FORMULA), "%s %s", desc.formula,
              is ? "does not" : "stays a formula");
        CHECK(!is || said.epilogue == said_cases[i].says, "%s is 0x%llx", desc.formula,
              (gpi__ull)said.epilogue);
    }
}

/* The activation is short in a formula where it is in an epilogue; where it is in the formula alone that stays one. */
static void activations_are_as_short_as_formulas_allow(void) {
    static const said_case gradient = {"d = v * d_silu(r); g = column_sum(d)", "rg", 0};
    gemmepi_operand operands[OPERANDS];
    gpi__problem composed_problem;
    gpi__composition said;
    gemmepi_matmul_desc desc = said_product(&gradient, operands);
    CHECK(composes(&desc, &said, &composed_problem) && !gpi__wants_exact(&composed_problem),
          "a sum over 192 rows");
    desc.m = 30;
    CHECK(composes(&desc, &said, &composed_problem) && gpi__wants_exact(&composed_problem),
          "a sum over 30 rows");
    desc.operand_count = 1;
    desc.formula = "d = tanh(v) + r";
    CHECK(composes(&desc, &said, &composed_problem) && !gpi__wants_exact(&composed_problem),
          "TANH in 16 bits");
    desc.d.dtype = GEMMEPI_F32;
    CHECK(composes(&desc, &said, &composed_problem) && gpi__wants_exact(&composed_problem), "TANH in F32");
    desc.d.dtype = GEMMEPI_E4M3, desc.d.scale.mode = GEMMEPI_SCALE_TENSOR, desc.flags = GEMMEPI_AMAX_D;
    desc.formula = "d = silu(v)";
    CHECK(!composes(&desc, &said, &composed_problem), "amax of SILU");
    desc.a.dtype = GEMMEPI_E4M3; /* which no kernel with a formula takes */
    CHECK(composes(&desc, &said, &composed_problem), "amax of SILU of a product in fp8");
}

/* Types and scales that a formula's operands may have, and an epilogue's may not. */
static void operands_of_other_types_stay_with_formulas(void) {
    static const said_case bias = {"d = silu(v + b)", "b", 0}, residual = {"d = silu(v) + r", "r", 0},
                           saved = {"z = v; d = silu(z)", "z", 0};
    gemmepi_operand operands[OPERANDS];
    gpi__problem composed;
    gpi__composition said;
    gemmepi_matmul_desc desc = said_product(&bias, operands);
    operands[0].dtype = GEMMEPI_E4M3;
    CHECK(!composes(&desc, &said, &composed), "a bias in E4M3");
    operands[0].dtype = GEMMEPI_I32;
    CHECK(!composes(&desc, &said, &composed), "a bias in I32");
    operands[0].dtype = GEMMEPI_F32;
    CHECK(composes(&desc, &said, &composed), "a bias in F32");
    operands[0].row_period = 0, operands[0].column_period = 16;
    CHECK(!composes(&desc, &said, &composed), "a bias that repeats");
    desc = said_product(&residual, operands);
    operands[0].dtype = GEMMEPI_I64;
    CHECK(!composes(&desc, &said, &composed), "a residual in I64");
    operands[0].dtype = GEMMEPI_E5M2, operands[0].scale.mode = GEMMEPI_SCALE_TENSOR;
    CHECK(composes(&desc, &said, &composed) && composed.views[GPI__SCALE_RESIDUAL].dtype == GEMMEPI_F32,
          "a residual in E5M2");
    desc = said_product(&saved, operands);
    operands[0].dtype = GEMMEPI_E4M3, operands[0].amax = 1;
    CHECK(composes(&desc, &said, &composed) && composed.views[GPI__AMAX_AUX].dtype == GEMMEPI_F32,
          "what is saved, with amax");
}

/* Of vectors the epilogue finds them where it stores D, of rows a launch around the product does, which has its formula, too. */
static void scales_that_a_launch_finds_stay_with_formulas(void) {
    static const said_case silu = {"d = silu(v) + r", "r", 0};
    gemmepi_operand operands[OPERANDS];
    gpi__problem composed;
    gpi__composition said;
    gemmepi_matmul_desc desc = said_product(&silu, operands);
    desc.flags = GEMMEPI_FIND_SCALE_D;
    desc.d.dtype = GEMMEPI_E4M3, desc.d.scale.mode = GEMMEPI_SCALE_VECTOR_128;
    CHECK(composes(&desc, &said, &composed), "of vectors");
    desc.d.scale.mode = GEMMEPI_SCALE_OUTER;
    CHECK(!composes(&desc, &said, &composed), "of rows");
}

/* >>on a GPU */

/* Epilogues with all kinds of operands, of which cuBLASLt has some. */
static const gemmepi_epilogue planned_epilogues[] = {
    GEMMEPI_NONE,
    GEMMEPI_BIAS,
    GEMMEPI_RELU | GEMMEPI_BIAS,
    GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX,
    GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
    GEMMEPI_LEAKY_RELU | GEMMEPI_RESIDUAL,
    GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS,
    GEMMEPI_GELU_ERF | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_AUX,
    GEMMEPI_SILU | GEMMEPI_BACKWARD,
    GEMMEPI_TANH | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS,
    GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
    GEMMEPI_BGRAD,
};

/* A plan, and the source that it had compiled. */
static gemmepi_plan *plan_for(gemmepi_context *context, const gemmepi_matmul_desc *desc, char source[4096]) {
    gemmepi_plan *plan = NULL;
    gpu.last_source[0] = 0;
    CHECK(gemmepi_plan_matmul(context, desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    memcpy(source, gpu.last_source, 4096);
    return plan;
}

static void compare_plans(const composed *c, const gemmepi_matmul_desc *of, int arch, unsigned routes) {
    static char sources[2][4096];
    gemmepi_config config = config_with_all_routes();
    gemmepi_plan_details details[2];
    gemmepi_plan *plan;
    int i;
    config.routes = routes;
    config.device = GEMMEPI_DEVICE(0);
    gpu.other_arch = arch;
    memset(details, 0, sizeof details);
    for (i = 0; i < 2; i++) { /* each compiles its own */
        gemmepi_context *context = open_fake(&config);
        context->multiprocessors = 132;
        plan = plan_for(context, i ? &c->desc : of, sources[i]);
        CHECK(plan && gemmepi_plan_info(plan, &details[i]) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(!i || !plan ||
                  (explain_has(plan, "  the formula is ") && !explain_has(plan, "inside a kernel")),
              "%s: explain does not tell", c->text);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
    CHECK(strcmp(sources[0], sources[1]) == 0 && strcmp(details[0].kernel, details[1].kernel) == 0,
          "%s: kernel %s for %s", c->text, details[1].kernel, details[0].kernel);
    CHECK(details[0].route == details[1].route && details[0].launches == details[1].launches &&
              details[0].workspace_size == details[1].workspace_size,
          "%s: route %s for %s, %d launches for %d, %lu bytes for %lu", c->text, details[1].route_name,
          details[0].route_name, details[1].launches, details[0].launches,
          (unsigned long)details[1].workspace_size, (unsigned long)details[0].workspace_size);
    gpu.other_arch = 0;
}

/* In BF16, by what is chosen, by cuBLASLt and a pass, and by the route plain, there also with scales that are found for vectors of D. */
static void plans_are_those_of_the_epilogue(void) {
    static const unsigned routes[] = {0, NOT_FUSED, 1u << GEMMEPI_ROUTE_PLAIN, 1u << GEMMEPI_ROUTE_PLAIN};
    size_t e, r;
    for (e = 0; e < sizeof planned_epilogues / sizeof *planned_epilogues; e++)
        for (r = 0; r < 4; r++) {
            gemmepi_matmul_desc desc;
            composed c;
            fill_in(&desc, &kinds[0], planned_epilogues[e], r == 1 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR,
                    1);
            desc.m = 2048, desc.n = 1024, desc.k = 512;
            desc.aux.ld = desc.residual.ld = 0;
            if (r == 3)
                desc.d.dtype = GEMMEPI_E4M3, desc.d.scale.mode = GEMMEPI_SCALE_VECTOR_128,
                desc.flags |= GEMMEPI_FIND_SCALE_D;
            CHECK(composed_say(&c, &desc), "no formula");
            compare_plans(&c, &desc, e % 3 == 2 ? 80 : 90, routes[r]);
        }
}

/* The tables of pointers that a route is given: of the epilogue, and of the formula that says it. */
static void point_both(const composed *c, const gemmepi_matmul_desc *of, gpi__arguments both[2]) {
    static const float scale[3] = {1, 1, 1};
    static float amax[2];
    gemmepi_matmul_args args = args_for(of);
    gpi__problem problem, composed_problem;
    gpi__composition said;
    composed_args formula;
    gpi__regions regions;
    args.residual = of->epilogue & GEMMEPI_RESIDUAL ? memory[7] : NULL;
    args.scale_d = of->d.scale.mode ? scale : NULL;
    args.scale_aux = of->aux.scale.mode ? scale + 1 : NULL;
    args.scale_residual = of->residual.scale.mode ? scale + 2 : NULL;
    args.amax_d = of->flags & GEMMEPI_AMAX_D ? amax : NULL;
    args.amax_aux = of->flags & GEMMEPI_AMAX_AUX ? amax + 1 : NULL;
    composed_point(&formula, c, &args);
    CHECK(gpi__normalise(of, 16, &problem) == GEMMEPI_OK &&
              gpi__convert_arguments(&problem, &args, NULL, &both[0], &regions) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    CHECK(gpi__convert_problem(host, &c->desc, 16, &problem) == GEMMEPI_OK &&
              gpi__convert_arguments(&problem, &formula.args, NULL, &both[1], &regions) == GEMMEPI_OK &&
              gpi__find_composition(&problem, &said, &composed_problem),
          "%s: %s", c->text, gemmepi_last_error());
    gpi__point_slots(&said, &both[1]);
    gpi__drop_formulas(host, &problem);
}

static void runs_are_given_what_those_of_the_epilogue_are(void) {
    size_t e, k;
    int runs = 0;
    for (e = 0; e < sizeof planned_epilogues / sizeof *planned_epilogues; e++)
        for (k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            gemmepi_matmul_desc desc;
            gpi__problem problem;
            gpi__arguments both[2];
            composed c;
            fill_in(&desc, &kinds[k], planned_epilogues[e], k % 2 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR,
                    1);
            if (gpi__normalise(&desc, 16, &problem) || !composed_say(&c, &desc))
                continue;
            point_both(&c, &desc, both);
            CHECK(memcmp(both[0].pointers, both[1].pointers, sizeof both[0].pointers) == 0, "%s", c.text);
            runs++;
        }
    CHECK(runs > 60, "%d", runs);
}

static void a_refused_epilogue_takes_another_route(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = refusable_product();
    gemmepi_matmul_args args = args_for(&desc);
    composed_args formula;
    composed c;
    gemmepi_plan *plan;
    CHECK(composed_say(&c, &desc), "no formula");
    composed_point(&formula, &c, &args);
    plan = plan_on(context, &c.desc, GEMMEPI_ROUTE_LT);
    gpu.refusals = 1;
    gpu.refusal = GPI__CUBLAS_STATUS_NOT_SUPPORTED;
    CHECK(gemmepi_run_matmul(plan, &formula.args, NULL) == GEMMEPI_OK && gpu.products == 1 &&
              gpu.launches == 1,
          "%ld products, %ld launches: %s", gpu.products, gpu.launches, gemmepi_last_error());
    CHECK(route_of(plan) == GEMMEPI_ROUTE_SPLIT && explain_has(plan, "\nroute split") &&
              explain_has(plan, "  not lt: "),
          "route %d is told", (int)route_of(plan));
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

int main(void) {
    gemmepi_config config = fake_config();
    config.device = GEMMEPI_DEVICE_HOST;
    host = open_fake(&config);
    RUN(what_an_epilogue_says_becomes_its_problem);
    RUN(a_row_alone_is_planned_as_it_is_among_others);
    RUN(what_looks_alike_stays_a_formula);
    RUN(activations_are_as_short_as_formulas_allow);
    RUN(operands_of_other_types_stay_with_formulas);
    RUN(scales_that_a_launch_finds_stay_with_formulas);
    RUN(runs_are_given_what_those_of_the_epilogue_are);
    gemmepi_destroy(host);
    nothing_is_left();
    RUN(plans_are_those_of_the_epilogue);
    RUN(a_refused_epilogue_takes_another_route);
    return test_finish();
}
