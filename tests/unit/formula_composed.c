/* Formulas that say what an epilogue says: of every epilogue that one can say the problem is made of the formula, byte by byte, and what
   looks alike and is not stays a formula. */
#include <ctype.h>

#include "fake_program.h"

enum { M = 48, N = 56, K = 32, OPERANDS = 5 };

/* An epilogue, and the formula that says it. */
typedef struct pair {
    gemmepi_matmul_desc composition, formula;
    gemmepi_operand operands[OPERANDS];
    char text[1024], gradient[512];
} pair;

static const char *const names[] = {"bias", "aux", "r", "grad"};

/* "v", "z" for what is before the activation, "d" for what is stored; the columns of all but the bias follow from the widths. */
static void name_operands(pair *p) {
    gemmepi_epilogue e = p->composition.epilogue;
    int by_rows = p->composition.order == GEMMEPI_ROW_MAJOR;
    int gradient_of_gate = (e & GEMMEPI_GATED) && (e & GEMMEPI_BACKWARD) && !(e & GEMMEPI_UPSTREAM);
    gemmepi_width d = gradient_of_gate                                   ? GEMMEPI_WIDTH_DOUBLE
                      : (e & GEMMEPI_GATED) && !(e & GEMMEPI_BACKWARD) ? GEMMEPI_WIDTH_HALF
                                                                       : GEMMEPI_WIDTH_N;
    gemmepi_operand *o = p->operands;
    int i;
    for (i = 0; i < 4; i++)
        o[i].name = names[i];
    o[0].kind = o[3].kind = by_rows ? GEMMEPI_PER_COLUMN : GEMMEPI_PER_ROW;
    o[1].kind = o[2].kind = GEMMEPI_FULL;
    o[1].width = gradient_of_gate ? GEMMEPI_WIDTH_DOUBLE
                 : (e & GEMMEPI_UPSTREAM) && (e & GEMMEPI_GATED) ? GEMMEPI_WIDTH_HALF
                                                                 : GEMMEPI_WIDTH_N;
    o[1].output = (e & GEMMEPI_AUX) != 0;
    o[2].width = d;
    o[3].width = d;
    o[3].output = 1;
    o[0].dtype = p->composition.bias.dtype, o[0].batch_stride = p->composition.bias.batch_stride;
    o[1].dtype = p->composition.aux.dtype, o[1].batch_stride = p->composition.aux.batch_stride;
    o[2].dtype = p->composition.residual.dtype, o[2].batch_stride = p->composition.residual.batch_stride;
    o[1].ld = p->composition.aux.ld, o[2].ld = p->composition.residual.ld;
    o[1].scale.mode = p->composition.aux.scale.mode, o[2].scale.mode = p->composition.residual.scale.mode;
    o[1].amax = (p->composition.flags & GEMMEPI_AMAX_AUX) != 0;
    o[3].dtype = p->composition.bias_grad.dtype, o[3].batch_stride = p->composition.bias_grad.batch_stride;
    o[3].accumulate = (e & GEMMEPI_ACCUMULATE_BIAS_GRAD) != 0;
}

static void write_forward(const pair *p, const char *v, char *text, size_t size) {
    gemmepi_epilogue e = p->composition.epilogue;
    const char *name = gemmepi__activation_name(e);
    char activation[40], parameter[40] = "";
    size_t i;
    for (i = 0; name[i]; i++)
        activation[i] = (char)tolower(name[i]);
    activation[i] = 0;
    if (p->composition.has_parameter)
        snprintf(parameter, sizeof parameter, ", %.17g", p->composition.activation_parameter);
    if (gemmepi__activation(e) == GEMMEPI_NONE)
        activation[0] = 0;
    if (!(e & GEMMEPI_GATED))
        snprintf(text, size, "%s(%s%s)", activation, v, parameter);
    else
        snprintf(text, size, e & GEMMEPI_GATE_FIRST ? "%s(left(%s)%s) * right(%s)" : "%s(right(%s)%s) * left(%s)", activation,
                 v, parameter, v);
}

/* The gradient of the forward text, with what it is to call the pre-activation and the upstream; it is called g. */
static void write_gradient(pair *p, const char *saved, const char *upstream) {
    gemmepi_derive_desc desc;
    char forward[600], text[512];
    size_t at = 0, from;
    memset(&desc, 0, sizeof desc);
    write_forward(p, "V", text, 200);
    snprintf(forward, sizeof forward, "d = %s", text);
    desc.formula = forward, desc.wrt = "V", desc.value = "V";
    CHECK(gemmepi_derive(&desc, text, sizeof text) > 0, "%s", gemmepi_last_error());
    for (from = 0; text[from] && at + 10 < sizeof p->gradient; from++) {
        const char *other = strncmp(text + from, "d_V", 3) == 0  ? "g"
                            : strncmp(text + from, "dy", 2) == 0 ? upstream
                            : text[from] == 'V'                  ? saved
                                                                 : NULL;
        if (other) {
            at += (size_t)snprintf(p->gradient + at, 10, "%s", other);
            from += text[from] == 'V' ? 0 : text[from + 1] == '_' ? 2 : 1;
        } else {
            p->gradient[at++] = text[from];
        }
    }
    p->gradient[at] = 0;
}

/* "z = v + bias; d = ...", after composition is filled in */
static void write_pair(pair *p) {
    gemmepi_epilogue e = p->composition.epilogue;
    char forward[200];
    const char *residual = e & GEMMEPI_RESIDUAL ? " + r" : "";
    gemmepi__text text = gemmepi__text_in(p->text, sizeof p->text);
    if (e & GEMMEPI_BIAS)
        gemmepi__append(&text, "z = v + bias; ");
    else
        gemmepi__append(&text, "z = v; ");
    if (e & GEMMEPI_AUX)
        gemmepi__append(&text, "aux = z; ");
    if (e & GEMMEPI_BACKWARD) {
        write_gradient(p, e & GEMMEPI_UPSTREAM ? "z" : "aux", e & GEMMEPI_UPSTREAM ? "aux" : "z");
        gemmepi__append(&text, "%s; d = g%s", p->gradient, residual);
    } else {
        write_forward(p, "z", forward, sizeof forward);
        gemmepi__append(&text, "d = %s%s", forward, residual);
    }
    if (e & GEMMEPI_BGRAD)
        gemmepi__append(&text, "; grad = %s_sum(d)", p->composition.order == GEMMEPI_ROW_MAJOR ? "column" : "row");
    p->formula = p->composition;
    p->formula.epilogue = 0;
    p->formula.has_parameter = 0, p->formula.activation_parameter = 0;
    memset(&p->formula.aux, 0, sizeof p->formula.aux);
    memset(&p->formula.residual, 0, sizeof p->formula.residual);
    memset(&p->formula.bias, 0, sizeof p->formula.bias);
    memset(&p->formula.bias_grad, 0, sizeof p->formula.bias_grad);
    p->formula.flags &= ~GEMMEPI_AMAX_AUX;
    name_operands(p);
    p->formula.formula = p->text;
    p->formula.operands = p->operands;
    p->formula.operand_count = e & GEMMEPI_BGRAD ? 4 : 3;
}

/* Unused operands of a composition are none of its formula: those that are left are moved up. */
static void drop_unused(pair *p) {
    gemmepi_epilogue e = p->composition.epilogue;
    const int used[] = {(e & GEMMEPI_BIAS) != 0, (e & (GEMMEPI_AUX | GEMMEPI_BACKWARD)) != 0,
                        (e & GEMMEPI_RESIDUAL) != 0, (e & GEMMEPI_BGRAD) != 0};
    int i, count = 0;
    for (i = 0; i < 4; i++)
        if (used[i])
            p->operands[count++] = p->operands[i];
    p->formula.operand_count = count;
}

static gemmepi_context *host;

/* Whether the formula becomes a composition, and which. */
static int composes(const gemmepi_matmul_desc *desc, gemmepi__composition *said, gemmepi__problem *composed) {
    gemmepi__problem problem;
    int is = 0;
    gemmepi_status status = gemmepi__take_problem(host, desc, 16, &problem);
    CHECK(status == GEMMEPI_OK, "%s: %s", desc->formula, gemmepi_last_error());
    if (status)
        return 0;
    status = gemmepi__take_composition(host, &problem, said, composed, &is);
    CHECK(status == GEMMEPI_OK, "%s: %s", desc->formula, gemmepi_last_error());
    gemmepi__drop_formula(host, &problem);
    return is;
}

static int compared;

/* No formula says an activation's mask; that of nothing has no gradient; a product of halves is one whichever comes first. */
static int no_formula_says(gemmepi_epilogue e) {
    int is_none = gemmepi__activation(e) == GEMMEPI_NONE;
    return gemmepi__aux_is_mask(e) || (is_none && (e & GEMMEPI_BACKWARD) && !(e & GEMMEPI_GATED)) ||
           (is_none && (e & GEMMEPI_GATE_FIRST));
}

static void compare(pair *p) {
    gemmepi__problem wanted, composed;
    gemmepi__composition said;
    if (no_formula_says(p->composition.epilogue) || gemmepi__normalise(&p->composition, 16, &wanted))
        return; /* or an epilogue without a meaning */
    write_pair(p);
    drop_unused(p);
    compared++;
    if (!composes(&p->formula, &said, &composed)) {
        CHECK(0, "%s stays a formula", p->text);
        return;
    }
    CHECK(memcmp(&wanted, &composed, sizeof wanted) == 0, "%s is another problem: epilogue 0x%llx for 0x%llx", p->text,
          (gemmepi__ull)composed.epilogue, (gemmepi__ull)wanted.epilogue);
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

static void fill_in(pair *p, const kind *of, gemmepi_epilogue epilogue, gemmepi_order order, int batch) {
    gemmepi_matmul_desc *desc = &p->composition;
    memset(p, 0, sizeof *p);
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
        desc->bias_grad.dtype = of->bias_grad ? of->bias_grad : of->d, desc->bias_grad.batch_stride = batch > 1 && batch % 2 ? 2 * N : 0;
}

static const gemmepi_epilogue bits[] = {GEMMEPI_BIAS,     GEMMEPI_AUX,      GEMMEPI_RESIDUAL, GEMMEPI_BGRAD,
                                        GEMMEPI_BACKWARD, GEMMEPI_UPSTREAM, GEMMEPI_GATED,    GEMMEPI_GATE_FIRST,
                                        GEMMEPI_ACCUMULATE_BIAS_GRAD};

/* A parameter of its own for every second of those that have one. */
static void give_parameter(pair *p, unsigned set) {
    if (gemmepi__default_parameter(p->composition.epilogue) != 0 && set % 2)
        p->composition.has_parameter = 1, p->composition.activation_parameter = 0.3;
}

static void what_an_epilogue_says_becomes_its_problem(void) {
    size_t k, a, b;
    unsigned set;
    for (k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (a = 0; a < GEMMEPI__COUNT(gemmepi__activations); a++)
            for (set = 0; set < 1u << sizeof bits / sizeof *bits; set++) {
                gemmepi_epilogue epilogue = gemmepi__activations[a].code;
                pair p;
                for (b = 0; b < sizeof bits / sizeof *bits; b++)
                    epilogue |= set >> b & 1 ? bits[b] : 0;
                fill_in(&p, &kinds[k], epilogue, set / 3 % 2 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR,
                        1 + (int)(set + a) % 3);
                give_parameter(&p, set / 5);
                compare(&p);
            }
    CHECK(compared > 4000, "%d", compared);
}


/* >>what looks alike */

/* Operands by letters: b a bias, q one by rows, r s matrices, z one that is stored, h a half, w of both halves, t a table, k a scalar, g sums
   of columns, o sums of rows. */
static void list_letters(const char *letters, gemmepi_operand *operands) {
    static const char all[] = "bqrszhwtkgo";
    static const char *const own[] = {"b", "q", "r", "s", "z", "h", "w", "t", "k", "g", "o"};
    int i;
    for (i = 0; letters[i]; i++) {
        char letter = letters[i];
        memset(&operands[i], 0, sizeof operands[i]);
        operands[i].name = own[strchr(all, letter) - all];
        operands[i].kind = strchr("bg", letter)   ? GEMMEPI_PER_COLUMN
                           : strchr("qo", letter) ? GEMMEPI_PER_ROW
                           : letter == 'k'        ? GEMMEPI_SCALAR
                                                  : GEMMEPI_FULL;
        operands[i].output = strchr("zgo", letter) != NULL;
        operands[i].width = letter == 'h' ? GEMMEPI_WIDTH_HALF : letter == 'w' ? GEMMEPI_WIDTH_DOUBLE : GEMMEPI_WIDTH_N;
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
    {"x = b + v; d = max(x, 0) + r", "br", GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL},
    {"d = r + silu(b + v)", "rbs", GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL},
    {"d = leaky_relu(v)", "", GEMMEPI_LEAKY_RELU},
    {"d = silu(right(v + b)) * left(v + b); z = v + b", "bz",
     GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX},
    {"d = right(v) * left(v)", "", GEMMEPI_GATED},
    {"d = d_gelu_tanh(r) * v", "r", GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD},
    {"d = d_gelu_tanh(r) * v + s", "sr", GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL},
    {"d = v > 0 ? r : 0", "r", GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM},
    {"d = left(v) * silu(right(v)) + h", "h", GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_RESIDUAL},
    {"unused = v * r; d = relu(v)", "r", GEMMEPI_RELU},
    /* like an epilogue, and none */
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
    {"z = v + b; d = relu(z)", "zb", ANY_FORMULA},             /* the mask */
    {"z = v + b; d = silu(z) + r", "zbr", ANY_FORMULA},        /* r may lie where z does */
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
    {"d = v; o = row_sum(d)", "o", ANY_FORMULA},
    {"d = v; g = column_sum(d * d)", "g", ANY_FORMULA},
    {"d = v; g = column_max(d)", "g", ANY_FORMULA},
    {"d = silu(v); g = column_sum(d)", "g", ANY_FORMULA},
    {"d = v * d_silu(r); g = column_sum(d)", "rg", ANY_FORMULA}, /* exact there, as an epilogue's is not */
    {"d = v * row", "", ANY_FORMULA},
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
        gemmepi__problem composed;
        gemmepi__composition said;
        int is = composes(&desc, &said, &composed);
        CHECK(is == (said_cases[i].says != ANY_FORMULA), "%s %s", desc.formula, is ? "does not" : "stays a formula");
        CHECK(!is || said.epilogue == said_cases[i].says, "%s is 0x%llx", desc.formula, (gemmepi__ull)said.epilogue);
    }
}

/* Types and scales that a formula's operands may have, and an epilogue's may not. */
static void operands_of_other_types_stay_with_formulas(void) {
    static const said_case bias = {"d = silu(v + b)", "b", 0}, residual = {"d = silu(v) + r", "r", 0},
                           saved = {"z = v; d = silu(z)", "z", 0};
    gemmepi_operand operands[OPERANDS];
    gemmepi__problem composed;
    gemmepi__composition said;
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
    CHECK(composes(&desc, &said, &composed) && composed.views[GEMMEPI__SCALE_RESIDUAL].dtype == GEMMEPI_F32, "a residual in E5M2");
    desc = said_product(&saved, operands);
    operands[0].dtype = GEMMEPI_E4M3, operands[0].amax = 1;
    CHECK(composes(&desc, &said, &composed) && composed.views[GEMMEPI__AMAX_AUX].dtype == GEMMEPI_F32, "what is saved, with amax");
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
    GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD,
    GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM,
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

static void compare_plans(pair *p, int arch, unsigned routes) {
    static char sources[2][4096];
    gemmepi_config config = config_with_all_routes();
    gemmepi_plan_details details[2];
    gemmepi_plan *plans[2];
    int i;
    config.routes = routes;
    config.device = GEMMEPI_DEVICE(0);
    gpu.other_arch = arch;
    for (i = 0; i < 2; i++) { /* each compiles its own */
        gemmepi_context *context = open_fake(&config);
        context->multiprocessors = 132;
        plans[i] = plan_for(context, i ? &p->formula : &p->composition, sources[i]);
        CHECK(plans[i] && gemmepi_plan_info(plans[i], &details[i]) == GEMMEPI_OK, "%s", gemmepi_last_error());
        if (i && plans[i])
            CHECK(explain_has(plans[i], "  the formula is ") && !explain_has(plans[i], "inside a kernel"),
                  "%s: explain does not tell", p->text);
        gemmepi_plan_destroy(plans[i]);
        gemmepi_destroy(context);
        nothing_is_left();
    }
    CHECK(strcmp(sources[0], sources[1]) == 0 && strcmp(details[0].kernel, details[1].kernel) == 0, "%s: kernel %s for %s",
          p->text, details[1].kernel, details[0].kernel);
    CHECK(details[0].route == details[1].route && details[0].launches == details[1].launches &&
              details[0].workspace_size == details[1].workspace_size,
          "%s: route %s for %s, %d launches for %d, %lu bytes for %lu", p->text, details[1].route_name,
          details[0].route_name, details[1].launches, details[0].launches, (unsigned long)details[1].workspace_size,
          (unsigned long)details[0].workspace_size);
    gpu.other_arch = 0;
}

/* In BF16, and of a size for which engines are estimated, or for which cuBLASLt is. */
static void plans_are_those_of_the_epilogue(void) {
    static const unsigned routes[] = {0, NOT_FUSED, 1u << GEMMEPI_ROUTE_PLAIN};
    size_t e, r;
    for (e = 0; e < sizeof planned_epilogues / sizeof *planned_epilogues; e++)
        for (r = 0; r < 3; r++) {
            pair p;
            fill_in(&p, &kinds[0], planned_epilogues[e], r == 1 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR, 1);
            p.composition.m = 2048, p.composition.n = 1024, p.composition.k = 512;
            p.composition.aux.ld = p.composition.residual.ld = 0;
            write_pair(&p);
            drop_unused(&p);
            compare_plans(&p, e % 3 == 2 ? 80 : 90, routes[r]);
        }
}

/* The table of pointers that a route is given. */
static void point_both(const pair *p, gemmepi__arguments both[2]) {
    static const float scale[2] = {1, 1};
    static float amax;
    gemmepi_epilogue e = p->composition.epilogue;
    gemmepi_matmul_args args[2];
    gemmepi__problem problem, composed;
    gemmepi__composition said;
    const float *scales[OPERANDS];
    void *pointers[OPERANDS], *amaxes[OPERANDS];
    int i, is = 0;
    memset(args, 0, sizeof args);
    memset(pointers, 0, sizeof pointers), memset(scales, 0, sizeof scales), memset(amaxes, 0, sizeof amaxes);
    for (i = 0; i < 2; i++)
        args[i] = args_for(&p->composition), args[i].bias = args[i].aux = args[i].bias_grad = NULL;
    args[0].bias = e & GEMMEPI_BIAS ? memory[3] : NULL;
    args[0].aux = e & (GEMMEPI_AUX | GEMMEPI_BACKWARD) ? memory[4] : NULL;
    args[0].residual = e & GEMMEPI_RESIDUAL ? memory[5] : NULL;
    args[0].bias_grad = e & GEMMEPI_BGRAD ? memory[7] : NULL;
    for (i = 0; i < p->formula.operand_count; i++) {
        const char *name = p->operands[i].name;
        pointers[i] = *name == 'b' ? memory[3] : *name == 'a' ? memory[4] : *name == 'r' ? memory[5] : memory[7];
        if (p->operands[i].scale.mode)
            scales[i] = scale + (*name == 'r');
        if (p->operands[i].amax)
            amaxes[i] = &amax;
        if (p->operands[i].scale.mode && *name == 'a')
            args[0].scale_aux = scales[i];
        else if (p->operands[i].scale.mode)
            args[0].scale_residual = scales[i];
        if (p->operands[i].amax)
            args[0].amax_aux = amaxes[i];
    }
    args[0].scale_d = args[1].scale_d = p->composition.d.scale.mode ? scale : NULL;
    args[1].operands = pointers, args[1].operand_scales = scales, args[1].operand_amax = amaxes;
    CHECK(gemmepi__normalise(&p->composition, 16, &problem) == GEMMEPI_OK &&
              gemmepi__take_arguments(&problem, &args[0], &both[0]) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    CHECK(gemmepi__take_problem(host, &p->formula, 16, &problem) == GEMMEPI_OK &&
              gemmepi__take_arguments(&problem, &args[1], &both[1]) == GEMMEPI_OK &&
              gemmepi__take_formula_arguments(&problem, &args[1], &both[1]) == GEMMEPI_OK &&
              gemmepi__take_composition(host, &problem, &said, &composed, &is) == GEMMEPI_OK && is,
          "%s: %s", p->text, gemmepi_last_error());
    if (is)
        gemmepi__point_composed(&said, &both[1]);
    gemmepi__drop_formula(host, &problem);
}

static void runs_are_given_what_those_of_the_epilogue_are(void) {
    size_t e, k;
    for (e = 0; e < sizeof planned_epilogues / sizeof *planned_epilogues; e++)
        for (k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            gemmepi__problem problem;
            gemmepi__arguments both[2];
            pair p;
            fill_in(&p, &kinds[k], planned_epilogues[e], k % 2 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR, 1);
            if (gemmepi__normalise(&p.composition, 16, &problem))
                continue;
            write_pair(&p);
            drop_unused(&p);
            point_both(&p, both);
            CHECK(memcmp(both[0].pointers, both[1].pointers, sizeof both[0].pointers) == 0, "%s", p.text);
        }
}

int main(void) {
    gemmepi_config config = fake_config();
    config.device = GEMMEPI_DEVICE_HOST;
    host = open_fake(&config);
    RUN(what_an_epilogue_says_becomes_its_problem);
    RUN(what_looks_alike_stays_a_formula);
    RUN(operands_of_other_types_stay_with_formulas);
    RUN(runs_are_given_what_those_of_the_epilogue_are);
    gemmepi_destroy(host);
    nothing_is_left();
    RUN(plans_are_those_of_the_epilogue);
    return test_finish();
}
