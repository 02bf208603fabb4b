/* What an epilogue is made of, which compositions have a meaning, and how they are called. */
#ifndef GEMMEPI_PROBLEM_EPILOGUE_H
#define GEMMEPI_PROBLEM_EPILOGUE_H

#include "flags.h"

/* What an epilogue has beside D, in the order of the product's operands from AUX on. Its formula has the same, and behind them the factor of
   rows. */
enum { GPI__IN_AUX, GPI__IN_RESIDUAL, GPI__IN_BIAS, GPI__IN_BIAS_GRAD, GPI__SLOTS };
#define GPI__IN_FACTOR             GPI__SLOTS
#define GPI__OPERAND_OF_SLOT(slot) (GPI__AUX + (slot))

#define GPI__ANY_BGRAD (GEMMEPI_BGRAD | GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B)

/* RELU saves one bit an element, every other activation, and a gate, the pre-activation itself. */
static int gpi__aux_is_mask(gemmepi_epilogue epilogue) {
    return (epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD)) &&
           !(epilogue & (GEMMEPI_GATED | GEMMEPI_UPSTREAM)) && gpi__activation_has(epilogue, GPI__SAVES_MASK);
}

/* With GATED: whether the product's columns are two halves, of which one column is made or two gradients; else they are the
   upstream gradient. */
static int gpi__halves_come_in(gemmepi_epilogue epilogue) {
    return !(epilogue & GEMMEPI_BACKWARD) || (epilogue & GEMMEPI_UPSTREAM);
}

/* The columns of D, the residual and BGRAD's bias_grad, where the product has n; -1 where n must be even and is not. */
static int64_t gpi__result_columns(gemmepi_epilogue epilogue, int64_t n) {
    if (!(epilogue & GEMMEPI_GATED))
        return n;
    if (gpi__halves_come_in(epilogue) && n % 2)
        return -1;
    return !(epilogue & GEMMEPI_BACKWARD) ? n / 2 : epilogue & GEMMEPI_UPSTREAM ? n : 2 * n;
}

/* The columns of aux. */
static int64_t gpi__aux_columns(gemmepi_epilogue epilogue, int64_t n) {
    if (!(epilogue & GEMMEPI_GATED) || !(epilogue & GEMMEPI_BACKWARD))
        return n;
    return epilogue & GEMMEPI_UPSTREAM ? n / 2 : 2 * n;
}

/* "GELU_TANH|BIAS|AUX" */
static void gpi__append_epilogue(gpi__text *text, gemmepi_epilogue epilogue) {
    const char *name = gpi__activation_name(epilogue);
    if (name)
        gpi__append(text, "%s", name);
    else
        gpi__append(text, "activation 0x%x", (unsigned)gpi__activation(epilogue));
    gpi__append_flags(text, epilogue & ~GEMMEPI_ACTIVATION_MASK);
}

/* "_GELU_TANH_BIAS_AUX" for a kernel's name; nothing where there is no epilogue */
static void gpi__append_epilogue_words(gpi__text *text, gemmepi_epilogue epilogue) {
    size_t i;
    if (gpi__activation(epilogue) != GEMMEPI_NONE)
        gpi__append(text, "_%s", gpi__activation_name(epilogue));
    for (i = 0; i < GPI__COUNT(gpi__flags); i++)
        if (epilogue & gpi__flags[i].flag)
            gpi__append(text, "_%s", gpi__flags[i].name);
}

/* The epilogue as the caller wrote it: in a column-major problem the operands are exchanged, and with them their sums. */
static gemmepi_epilogue gpi__callers_epilogue(gemmepi_epilogue epilogue, int exchanged) {
    uint64_t sums = epilogue & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B);
    return exchanged && sums ? epilogue ^ (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) : epilogue;
}

/* A composition is refused when it has all of `all`, none of `none` and, where `any` is given, at least two or more
   bits of `any`. */
typedef struct gpi__epilogue_rule {
    uint64_t all, none, two_of;
    gemmepi_status status;
    const char *sentence;
} gpi__epilogue_rule;

static const gpi__epilogue_rule gpi__epilogue_rules[] = {
    {0, 0, GPI__ANY_BGRAD, GEMMEPI_INVALID_ARGUMENT, "only one of BGRAD, BGRAD_A and BGRAD_B goes at a time"},
    {GEMMEPI_AUX | GEMMEPI_BACKWARD, 0, 0, GEMMEPI_INVALID_ARGUMENT,
     "AUX does not go with BACKWARD, which reads aux already"},
    {GEMMEPI_ACCUMULATE_BIAS_GRAD, GPI__ANY_BGRAD, 0, GEMMEPI_INVALID_ARGUMENT,
     "ACCUMULATE_BIAS_GRAD goes with BGRAD, BGRAD_A or BGRAD_B"},
    {GEMMEPI_GATE_FIRST, GEMMEPI_GATED, 0, GEMMEPI_INVALID_ARGUMENT, "GATE_FIRST goes with GATED"},
    {GEMMEPI_UPSTREAM, GEMMEPI_BACKWARD, 0, GEMMEPI_INVALID_ARGUMENT, "UPSTREAM goes with BACKWARD"},
};

static int gpi__has_two(uint64_t bits) {
    return (bits & (bits - 1)) != 0;
}

/* cuBLASLt's numbers, of which none is an epilogue here. */
static const struct {
    gemmepi_epilogue number;
    const char *name;
} gpi__cublaslt_numbers[] = {{1, "DEFAULT"},    {2, "RELU"},          {130, "RELU_AUX"},
                             {4, "BIAS"},       {6, "RELU_BIAS"},     {134, "RELU_AUX_BIAS"},
                             {136, "DRELU"},    {152, "DRELU_BGRAD"}, {32, "GELU"},
                             {160, "GELU_AUX"}, {36, "GELU_BIAS"},    {164, "GELU_AUX_BIAS"},
                             {192, "DGELU"},    {208, "DGELU_BGRAD"}, {256, "BGRADA"},
                             {512, "BGRADB"}};

/* The bits that cuBLASLt's numbers use. */
#define GPI__CUBLASLT_BITS 0x3ffull

/* Whether the low byte is an activation's code. field: "epilogue" or "activation". */
static gemmepi_status gpi__check_activation(const char *field, gemmepi_epilogue epilogue) {
    int is_epilogue = strcmp(field, "epilogue") == 0;
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__cublaslt_numbers); i++) {
        const char *name = gpi__cublaslt_numbers[i].name;
        unsigned number = (unsigned)gpi__cublaslt_numbers[i].number;
        if ((epilogue & GPI__CUBLASLT_BITS) != number)
            continue;
        GPI__INVALID_IF(is_epilogue,
                        "desc.epilogue is 0x%llx, and %u is CUBLASLT_EPILOGUE_%s, which is called "
                        "GEMMEPI_EPILOGUE_%s here",
                        (gpi__ull)epilogue, number, name, name);
        return gpi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.activation is 0x%llx, and %u is CUBLASLT_EPILOGUE_%s; give only an activation, "
            "GEMMEPI_NONE, GEMMEPI_RELU and so on (a layer has LINEAR_BIAS and LINEAR_SAVED in "
            "desc.flags for the rest)",
            (gpi__ull)epilogue, number, name);
    }
    GPI__INVALID_IF(!gpi__activation_name(epilogue),
                    "desc.%s is 0x%llx, whose 0x%x is the code of no activation: give one of GEMMEPI_NONE, "
                    "GEMMEPI_RELU and so on, never two or-ed%s",
                    field, (gpi__ull)epilogue, (unsigned)gpi__activation(epilogue), GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

/* In words, which only a refusal needs: one-shot calls come by here. */
static gemmepi_status gpi__refuse_epilogue(gemmepi_epilogue epilogue, gemmepi_status status,
                                           const char *sentence) {
    char name[256];
    gpi__text text = gpi__text_in(name, sizeof name);
    gpi__append_epilogue(&text, epilogue);
    return gpi__fail(status, "desc.epilogue is %s: %s", name, sentence);
}

static gemmepi_status gpi__check_epilogue(gemmepi_epilogue epilogue) {
    gemmepi_status status = gpi__check_activation("epilogue", epilogue);
    size_t i;
    if (!status)
        status = gpi__check_flags_of(GPI__OF_EPILOGUE, epilogue, GEMMEPI_ACTIVATION_MASK);
    if (status)
        return status;
    for (i = 0; i < GPI__COUNT(gpi__epilogue_rules); i++) {
        const gpi__epilogue_rule *rule = &gpi__epilogue_rules[i];
        if ((epilogue & rule->all) == rule->all && !(epilogue & rule->none) &&
            (!rule->two_of || gpi__has_two(epilogue & rule->two_of)))
            return gpi__refuse_epilogue(epilogue, rule->status, rule->sentence);
    }
    if ((epilogue & GEMMEPI_BGRAD) && !(epilogue & GEMMEPI_BACKWARD) &&
        gpi__activation(epilogue) != GEMMEPI_NONE)
        return gpi__refuse_epilogue(epilogue, GEMMEPI_INVALID_ARGUMENT,
                                    "BGRAD goes with BACKWARD or with the activation NONE");
    return GEMMEPI_OK;
}

#endif
