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

/* Whether the formula becomes a composition, whose problem is in *composed. */
static int composes(const gemmepi_matmul_desc *desc, gemmepi__problem *composed) {
    gemmepi__composition said;
    gemmepi__problem problem;
    int is;
    gemmepi_status status = gemmepi__take_problem(host, desc, 16, &problem);
    CHECK(status == GEMMEPI_OK, "%s: %s", desc->formula, gemmepi_last_error());
    if (status)
        return 0;
    is = gemmepi__is_composed(host, &problem, &said, composed);
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
    if (no_formula_says(p->composition.epilogue) || gemmepi__normalise(&p->composition, 16, &wanted))
        return; /* or an epilogue without a meaning */
    write_pair(p);
    drop_unused(p);
    compared++;
    if (!composes(&p->formula, &composed)) {
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

int main(void) {
    gemmepi_config config = fake_config();
    config.device = GEMMEPI_DEVICE_HOST;
    host = open_fake(&config);
    RUN(what_an_epilogue_says_becomes_its_problem);
    gemmepi_destroy(host);
    nothing_is_left();
    return test_finish();
}
