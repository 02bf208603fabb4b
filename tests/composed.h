/* Epilogues said as formulas: of a desc and the arguments of a run with an epilogue those with a formula that says the same. */
#ifndef GEMMEPI_TESTS_COMPOSED_H
#define GEMMEPI_TESTS_COMPOSED_H

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "activations.h"

/* The operands in the order bias, aux, residual, bias_grad, those that the epilogue has. */
typedef struct composed {
    gemmepi_matmul_desc desc;
    gemmepi_operand operands[4];
    int tensors[4]; /* which of the four each is */
    char text[1024], gradient[512];
} composed;

/* What points into a composed stays there. */
typedef struct composed_args {
    gemmepi_matmul_args args;
    void *pointers[4], *amax[4];
    const float *scales[4];
} composed_args;

/* What the texts have the other way round: bits. */
enum { COMPOSED_BIAS_FIRST = 1, COMPOSED_RESIDUAL_FIRST = 2, COMPOSED_FACTORS_TURNED = 4 };
static unsigned composed_order;

static int composed_has(gemmepi_epilogue e, gemmepi_epilogue flags) {
    return (e & flags) != 0;
}

static gemmepi_epilogue composed_activation(gemmepi_epilogue e) {
    return e & GEMMEPI_ACTIVATION_MASK;
}

/* What a dtype of 0 is beside d in an epilogue, where formulas have other rules. */
static gemmepi_dtype composed_dtype(const gemmepi_matmul_desc *of, gemmepi_dtype given, int is_aux,
                                    int is_vector) {
    int is_fp8 = of->a.dtype == GEMMEPI_E4M3 || of->a.dtype == GEMMEPI_E5M2;
    gemmepi_dtype d = of->d.dtype ? of->d.dtype
                      : is_fp8 && !of->d.scale.mode && !(of->flags & (GEMMEPI_FIND_SCALE_D | GEMMEPI_AMAX_D))
                          ? GEMMEPI_BF16
                      : of->a.dtype ? of->a.dtype
                                    : GEMMEPI_F32;
    if (given)
        return given;
    if ((d == GEMMEPI_E4M3 || d == GEMMEPI_E5M2) && !is_aux)
        return GEMMEPI_BF16;
    return d == GEMMEPI_I8 && is_vector ? GEMMEPI_F32 : d;
}

/* A formula's operands have amax in 8 bits alone. */
static int composed_has_amax(const gemmepi_matmul_desc *desc) {
    gemmepi_dtype aux = composed_dtype(desc, desc->aux.dtype, 1, 0);
    return !(desc->flags & GEMMEPI_AMAX_AUX) || aux == GEMMEPI_E4M3 || aux == GEMMEPI_E5M2 ||
           aux == GEMMEPI_I8;
}

/* Whether a formula may say the epilogue: it has no masks of bits and no sums of operands, and the gradient of nothing is no gradient. A
   product of halves is one whichever comes first. */
static int composed_is_said(const gemmepi_matmul_desc *desc) {
    gemmepi_epilogue e = desc->epilogue, activation = composed_activation(e);
    int reads_or_writes_mask = activation == GEMMEPI_RELU &&
                               !composed_has(e, GEMMEPI_GATED | GEMMEPI_UPSTREAM) &&
                               composed_has(e, GEMMEPI_AUX | GEMMEPI_BACKWARD);
    return !reads_or_writes_mask && composed_has_amax(desc) &&
           !composed_has(e, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) &&
           !(activation == GEMMEPI_NONE && composed_has(e, GEMMEPI_BACKWARD) &&
             !composed_has(e, GEMMEPI_GATED)) &&
           !(activation == GEMMEPI_NONE && composed_has(e, GEMMEPI_GATE_FIRST)) &&
           !(desc->flags & GEMMEPI_ACCUMULATE) && !desc->aux.scale.batch_stride &&
           !desc->residual.scale.batch_stride;
}

/* >>text */

static void composed_name(gemmepi_epilogue activation, char name[20]) {
#define COMPOSED_NAME(name, parameter, slope, traits) #name,
    static const char *const names[] = {ACTIVATION_LIST(COMPOSED_NAME)};
#undef COMPOSED_NAME
    static const gemmepi_epilogue codes[] = {
#define COMPOSED_CODE(name, parameter, slope, traits) GEMMEPI_##name,
        ACTIVATION_LIST(COMPOSED_CODE)
#undef COMPOSED_CODE
    };
    size_t i = 0, j;
    while (codes[i] != activation)
        i++;
    for (j = 0; names[i][j]; j++)
        name[j] = (char)tolower((unsigned char)names[i][j]);
    name[j] = 0;
    if (activation == GEMMEPI_NONE)
        name[0] = 0; /* what stands in brackets */
}

/* "x * y", or the other way round; without y x alone. */
static void composed_join(char *text, size_t size, const char *x, const char *sign, const char *y,
                          int turned) {
    if (*y)
        snprintf(text, size, "%s%s%s", turned ? y : x, sign, turned ? x : y);
    else
        snprintf(text, size, "%s", x);
}

static void composed_forward(const gemmepi_matmul_desc *desc, const char *v, char *text, size_t size) {
    gemmepi_epilogue e = desc->epilogue;
    char name[20], parameter[40] = "", gate[140], value[60] = "";
    int first = composed_has(e, GEMMEPI_GATE_FIRST), gated = composed_has(e, GEMMEPI_GATED);
    composed_name(composed_activation(e), name);
    if (desc->has_parameter)
        snprintf(parameter, sizeof parameter, ", %.17g", desc->activation_parameter);
    snprintf(gate, sizeof gate, "%s(%s(%s)%s)", name, !gated ? "" : first ? "left" : "right", v, parameter);
    if (gated)
        snprintf(value, sizeof value, "%s(%s)", first ? "right" : "left", v);
    composed_join(text, size, gate, " * ", value, composed_order & COMPOSED_FACTORS_TURNED);
}

/* Of "g = x * y", one product, the other way round. */
static void composed_turn_factors(char *text) {
    char *times = strstr(text, " * "), x[256], y[256];
    if (!(composed_order & COMPOSED_FACTORS_TURNED) || !times || strpbrk(text, ";?") ||
        strchr(times + 2, '*'))
        return;
    snprintf(x, sizeof x, "%.*s", (int)(times - text - 4), text + 4);
    snprintf(y, sizeof y, "%s", times + 3);
    composed_join(text + 4, 500, x, " * ", y, 1);
}

/* The gradient of the forward text, called g, with what the pre-activation and the upstream are to be called. 0: the test is wrong. */
static int composed_gradient(composed *c, const gemmepi_matmul_desc *of, const char *saved,
                             const char *upstream) {
    gemmepi_derive_desc desc;
    char forward[300], derived[512];
    size_t at = 0, from;
    memset(&desc, 0, sizeof desc);
    snprintf(forward, sizeof forward, "d = ");
    composed_forward(of, "V", forward + 4, sizeof forward - 4);
    desc.formula = forward, desc.wrt = "V", desc.value = "V";
    if (!gemmepi_derive(&desc, derived, sizeof derived))
        return 0;
    for (from = 0; derived[from] && at + 10 < sizeof c->gradient; from++) {
        const char *other = strncmp(derived + from, "d_V", 3) == 0  ? "g"
                            : strncmp(derived + from, "dy", 2) == 0 ? upstream
                            : derived[from] == 'V'                  ? saved
                                                                    : NULL;
        if (other) {
            at += (size_t)snprintf(c->gradient + at, 10, "%s", other);
            from += derived[from] == 'V' ? 0 : derived[from + 1] == '_' ? 2 : 1;
        } else {
            c->gradient[at++] = derived[from];
        }
    }
    c->gradient[at] = 0;
    composed_turn_factors(c->gradient);
    return 1;
}

static int composed_write(composed *c, const gemmepi_matmul_desc *of) {
    gemmepi_epilogue e = of->epilogue;
    int upstream = composed_has(e, GEMMEPI_UPSTREAM);
    char forward[300], sum[60] = "", z[20], d[340];
    if (composed_has(e, GEMMEPI_BACKWARD) &&
        !composed_gradient(c, of, upstream ? "z" : "aux", upstream ? "aux" : "z"))
        return 0;
    composed_forward(of, "z", forward, sizeof forward);
    if (composed_has(e, GEMMEPI_BGRAD))
        snprintf(sum, sizeof sum, "; grad = %s_sum(d)", of->order == GEMMEPI_COLUMN_MAJOR ? "row" : "column");
    composed_join(z, sizeof z, "v", " + ", composed_has(e, GEMMEPI_BIAS) ? "bias" : "",
                  composed_order & COMPOSED_BIAS_FIRST);
    composed_join(d, sizeof d, composed_has(e, GEMMEPI_BACKWARD) ? "g" : forward, " + ",
                  composed_has(e, GEMMEPI_RESIDUAL) ? "r" : "", composed_order & COMPOSED_RESIDUAL_FIRST);
    snprintf(c->text, sizeof c->text, "z = %s; %s%s%sd = %s%s", z,
             composed_has(e, GEMMEPI_AUX) ? "aux = z; " : "",
             composed_has(e, GEMMEPI_BACKWARD) ? c->gradient : "",
             composed_has(e, GEMMEPI_BACKWARD) ? "; " : "", d, sum);
    return 1;
}

/* >>operands */

static gemmepi_operand composed_matrix(const char *name, const gemmepi_matrix *matrix, gemmepi_width width) {
    gemmepi_operand o;
    memset(&o, 0, sizeof o);
    o.name = name;
    o.kind = GEMMEPI_FULL;
    o.width = width;
    o.dtype = matrix->dtype;
    o.ld = matrix->ld;
    o.batch_stride = matrix->batch_stride;
    o.scale = matrix->scale;
    return o;
}

static gemmepi_operand composed_vector(const char *name, const gemmepi_matmul_desc *of,
                                       const gemmepi_vector *vector, gemmepi_width width) {
    gemmepi_operand o;
    memset(&o, 0, sizeof o);
    o.name = name;
    o.kind = of->order == GEMMEPI_COLUMN_MAJOR ? GEMMEPI_PER_ROW : GEMMEPI_PER_COLUMN;
    o.width = o.kind == GEMMEPI_PER_COLUMN || width != GEMMEPI_WIDTH_N ? width : GEMMEPI_WIDTH_N;
    o.dtype = vector->dtype;
    o.batch_stride = vector->batch_stride;
    return o;
}

static void composed_list(composed *c, const gemmepi_matmul_desc *of) {
    gemmepi_epilogue e = of->epilogue;
    int gated = composed_has(e, GEMMEPI_GATED), backward = composed_has(e, GEMMEPI_BACKWARD),
        upstream = composed_has(e, GEMMEPI_UPSTREAM), tensor;
    gemmepi_width d = gated && !backward               ? GEMMEPI_WIDTH_HALF
                      : gated && backward && !upstream ? GEMMEPI_WIDTH_DOUBLE
                                                       : GEMMEPI_WIDTH_N;
    gemmepi_width aux = gated && upstream   ? GEMMEPI_WIDTH_HALF
                        : gated && backward ? GEMMEPI_WIDTH_DOUBLE
                                            : GEMMEPI_WIDTH_N;
    const gemmepi_epilogue wants[4] = {GEMMEPI_BIAS, GEMMEPI_AUX | GEMMEPI_BACKWARD, GEMMEPI_RESIDUAL,
                                       GEMMEPI_BGRAD};
    gemmepi_operand all[4];
    all[0] = composed_vector("bias", of, &of->bias, GEMMEPI_WIDTH_N);
    all[1] = composed_matrix("aux", &of->aux, aux);
    all[1].output = composed_has(e, GEMMEPI_AUX);
    all[1].amax = (of->flags & GEMMEPI_AMAX_AUX) != 0;
    all[2] = composed_matrix("r", &of->residual, d);
    all[3] = composed_vector("grad", of, &of->bias_grad, d);
    all[3].output = 1;
    all[3].accumulate = composed_has(e, GEMMEPI_ACCUMULATE_BIAS_GRAD);
    for (tensor = 0; tensor < 4; tensor++) {
        if (!composed_has(e, wants[tensor]))
            continue;
        all[tensor].dtype = composed_dtype(of, all[tensor].dtype, tensor == 1, tensor % 3 == 0);
        c->tensors[c->desc.operand_count] = tensor;
        c->operands[c->desc.operand_count++] = all[tensor];
    }
}

/* 0: no formula says it (or the test is wrong). c stays where it is, for the desc points into it. */
static int composed_say(composed *c, const gemmepi_matmul_desc *of) {
    memset(c, 0, sizeof *c);
    if (!composed_is_said(of) || !composed_write(c, of))
        return 0;
    c->desc = *of;
    c->desc.epilogue = 0;
    c->desc.has_parameter = 0, c->desc.activation_parameter = 0;
    memset(&c->desc.aux, 0, sizeof c->desc.aux);
    memset(&c->desc.residual, 0, sizeof c->desc.residual);
    memset(&c->desc.bias, 0, sizeof c->desc.bias);
    memset(&c->desc.bias_grad, 0, sizeof c->desc.bias_grad);
    c->desc.flags &= ~GEMMEPI_AMAX_AUX;
    c->desc.formula = c->text;
    composed_list(c, of);
    c->desc.operands = c->desc.operand_count ? c->operands : NULL;
    return 1;
}

/* >>a run */

static void composed_point(composed_args *to, const composed *c, const gemmepi_matmul_args *of) {
    const void *all[4];
    int i;
    memset(to, 0, sizeof *to);
    all[0] = of->bias, all[1] = of->aux, all[2] = of->residual, all[3] = of->bias_grad;
    to->args = *of;
    to->args.bias = NULL, to->args.aux = NULL, to->args.residual = NULL, to->args.bias_grad = NULL;
    to->args.scale_aux = NULL, to->args.scale_residual = NULL, to->args.amax_aux = NULL;
    for (i = 0; i < c->desc.operand_count; i++) {
        memcpy(&to->pointers[i], &all[c->tensors[i]], sizeof(void *));
        to->scales[i] = c->tensors[i] == 1 ? of->scale_aux : c->tensors[i] == 2 ? of->scale_residual : NULL;
        to->amax[i] = c->tensors[i] == 1 ? of->amax_aux : NULL;
    }
    to->args.operands = c->desc.operand_count ? to->pointers : NULL;
    to->args.operand_scales = c->desc.operand_count ? to->scales : NULL;
    to->args.operand_amax = c->desc.operand_count ? to->amax : NULL;
}

#endif
