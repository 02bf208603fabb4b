/* What an epilogue is made of, which compositions have a meaning, and how they are called. */
#ifndef GEMMEPI_PROBLEM_EPILOGUE_H
#define GEMMEPI_PROBLEM_EPILOGUE_H

#include "../base/status.h"
#include "../base/text.h"

typedef struct gemmepi__name_row {
    uint32_t value;
    const char *name;
} gemmepi__name_row;

static const gemmepi__name_row gemmepi__activations[] = {
    {GEMMEPI_NONE, "NONE"},
    {GEMMEPI_RELU, "RELU"},
    {GEMMEPI_GELU_TANH, "GELU_TANH"},
    {GEMMEPI_GELU_ERF, "GELU_ERF"},
    {GEMMEPI_SILU, "SILU"},
    {GEMMEPI_SIGMOID, "SIGMOID"},
    {GEMMEPI_TANH, "TANH"},
    {GEMMEPI_LEAKY_RELU, "LEAKY_RELU"},
    {GEMMEPI_ELU, "ELU"},
    {GEMMEPI_SQUARED_RELU, "SQUARED_RELU"},
    {GEMMEPI_QUICK_GELU, "QUICK_GELU"},
    {GEMMEPI_SOFTPLUS, "SOFTPLUS"},
    {GEMMEPI_HARDSWISH, "HARDSWISH"},
    {GEMMEPI_MISH, "MISH"},
};

static const gemmepi__name_row gemmepi__epilogue_flags[] = {
    {GEMMEPI_BIAS, "BIAS"},         {GEMMEPI_AUX, "AUX"},
    {GEMMEPI_BACKWARD, "BACKWARD"}, {GEMMEPI_RESIDUAL, "RESIDUAL"},
    {GEMMEPI_BGRAD, "BGRAD"},       {GEMMEPI_BGRAD_A, "BGRAD_A"},
    {GEMMEPI_BGRAD_B, "BGRAD_B"},   {GEMMEPI_BGRAD_ACCUMULATE, "BGRAD_ACCUMULATE"},
    {GEMMEPI_GATED, "GATED"},       {GEMMEPI_GATE_FIRST, "GATE_FIRST"},
    {GEMMEPI_UPSTREAM, "UPSTREAM"},
};

#define GEMMEPI__ANY_BGRAD (GEMMEPI_BGRAD | GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B)

static uint32_t gemmepi__activation(gemmepi_epilogue epilogue) {
    return epilogue & GEMMEPI_ACTIVATION_MASK;
}

/* RELU saves one bit an element, every other activation, and a gate, the pre-activation itself. */
static int gemmepi__aux_is_mask(gemmepi_epilogue epilogue) {
    return gemmepi__activation(epilogue) == GEMMEPI_RELU && (epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD)) &&
           !(epilogue & (GEMMEPI_GATED | GEMMEPI_UPSTREAM));
}

/* With GATED: whether the product's columns are two halves, of which one column is made or two gradients; else they are the
   upstream gradient. */
static int gemmepi__halves_come_in(gemmepi_epilogue epilogue) {
    return !(epilogue & GEMMEPI_BACKWARD) || (epilogue & GEMMEPI_UPSTREAM);
}

/* The columns of D, the residual and BGRAD's bias_grad, where the product has n; -1 where n must be even and is not. */
static int64_t gemmepi__result_columns(gemmepi_epilogue epilogue, int64_t n) {
    if (!(epilogue & GEMMEPI_GATED))
        return n;
    if (gemmepi__halves_come_in(epilogue) && n % 2)
        return -1;
    return !(epilogue & GEMMEPI_BACKWARD) ? n / 2 : epilogue & GEMMEPI_UPSTREAM ? n : 2 * n;
}

/* The columns of aux. */
static int64_t gemmepi__aux_columns(gemmepi_epilogue epilogue, int64_t n) {
    if (!(epilogue & GEMMEPI_GATED) || !(epilogue & GEMMEPI_BACKWARD))
        return n;
    return epilogue & GEMMEPI_UPSTREAM ? n / 2 : 2 * n;
}

/* "GELU_TANH|BIAS|AUX" */
static void gemmepi__append_epilogue(gemmepi__text *text, gemmepi_epilogue epilogue) {
    uint32_t known = GEMMEPI_ACTIVATION_MASK;
    size_t i;
    if (gemmepi__activation(epilogue) < GEMMEPI__COUNT(gemmepi__activations))
        gemmepi__append(text, "%s", gemmepi__activations[gemmepi__activation(epilogue)].name);
    else
        gemmepi__append(text, "activation %u", (unsigned)gemmepi__activation(epilogue));
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__epilogue_flags); i++) {
        known |= gemmepi__epilogue_flags[i].value;
        if (epilogue & gemmepi__epilogue_flags[i].value)
            gemmepi__append(text, "|%s", gemmepi__epilogue_flags[i].name);
    }
    if (epilogue & ~known)
        gemmepi__append(text, "|0x%x", (unsigned)(epilogue & ~known));
}

/* The epilogue as the caller wrote it: in a column-major problem the operands are exchanged, and with them their sums. */
static gemmepi_epilogue gemmepi__callers_epilogue(gemmepi_epilogue epilogue, int exchanged) {
    uint32_t sums = epilogue & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B);
    return exchanged && sums ? epilogue ^ (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) : epilogue;
}

/* The parameter of an activation that has one and was given none; 0 for the others. */
static double gemmepi__default_parameter(gemmepi_epilogue epilogue) {
    return gemmepi__activation(epilogue) == GEMMEPI_LEAKY_RELU ? 0.01
           : gemmepi__activation(epilogue) == GEMMEPI_ELU      ? 1
                                                               : 0;
}

/* A composition is refused when it has all of `all`, none of `none` and, where `any` is given, at least two or more
   bits of `any`. */
typedef struct gemmepi__epilogue_rule {
    uint32_t all, none, two_of;
    gemmepi_status status;
    const char *sentence;
} gemmepi__epilogue_rule;

static const gemmepi__epilogue_rule gemmepi__epilogue_rules[] = {
    {0, 0, GEMMEPI__ANY_BGRAD, GEMMEPI_INVALID_ARGUMENT,
     "only one of BGRAD, BGRAD_A and BGRAD_B goes at a time"},
    {GEMMEPI_AUX | GEMMEPI_BACKWARD, 0, 0, GEMMEPI_INVALID_ARGUMENT,
     "AUX does not go with BACKWARD, which reads aux already"},
    {GEMMEPI_BGRAD_ACCUMULATE, GEMMEPI__ANY_BGRAD, 0, GEMMEPI_INVALID_ARGUMENT,
     "BGRAD_ACCUMULATE goes with BGRAD, BGRAD_A or BGRAD_B"},
    {GEMMEPI_GATE_FIRST, GEMMEPI_GATED, 0, GEMMEPI_INVALID_ARGUMENT, "GATE_FIRST goes with GATED"},
    {GEMMEPI_UPSTREAM, GEMMEPI_BACKWARD, 0, GEMMEPI_INVALID_ARGUMENT, "UPSTREAM goes with BACKWARD"},
};

static int gemmepi__has_two(uint32_t bits) {
    return (bits & (bits - 1)) != 0;
}

static gemmepi_status gemmepi__check_epilogue(gemmepi_epilogue epilogue) {
    char name[256];
    gemmepi__text text = gemmepi__text_in(name, sizeof name);
    uint32_t known = GEMMEPI_ACTIVATION_MASK;
    size_t i;
    gemmepi__append_epilogue(&text, epilogue);
    if (gemmepi__activation(epilogue) >= GEMMEPI__COUNT(gemmepi__activations))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.epilogue is 0x%x: its activation is %u, accepted are 0 (NONE) to %u (MISH)",
            (unsigned)epilogue, (unsigned)gemmepi__activation(epilogue),
            (unsigned)GEMMEPI__COUNT(gemmepi__activations) - 1);
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__epilogue_flags); i++)
        known |= gemmepi__epilogue_flags[i].value;
    if (epilogue & ~known)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.epilogue is 0x%x: the bits 0x%x have no meaning",
                             (unsigned)epilogue, (unsigned)(epilogue & ~known));
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__epilogue_rules); i++) {
        const gemmepi__epilogue_rule *rule = &gemmepi__epilogue_rules[i];
        if ((epilogue & rule->all) == rule->all && !(epilogue & rule->none) &&
            (!rule->two_of || gemmepi__has_two(epilogue & rule->two_of)))
            return gemmepi__fail(rule->status, "desc.epilogue is %s: %s", name, rule->sentence);
    }
    if ((epilogue & GEMMEPI_BGRAD) && !(epilogue & GEMMEPI_BACKWARD) &&
        gemmepi__activation(epilogue) != GEMMEPI_NONE)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.epilogue is %s: BGRAD goes with BACKWARD or with the activation NONE",
                             name);
    return GEMMEPI_OK;
}

#endif
