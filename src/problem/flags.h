/* Every flag of the interface: what it is called, and which fields take it. No two share a bit. */
#ifndef GEMMEPI_PROBLEM_FLAGS_H
#define GEMMEPI_PROBLEM_FLAGS_H

#include "../base/status.h"
#include "../base/text.h"
#include "../numbers/activation.h"

/* The fields that hold flags. */
enum {
    GEMMEPI__OF_EPILOGUE = 1,          /* gemmepi_matmul_desc.epilogue */
    GEMMEPI__OF_PRODUCT = 2,           /* gemmepi_matmul_desc.flags */
    GEMMEPI__OF_ELEMENTWISE = 4,       /* gemmepi_elementwise_desc.flags */
    GEMMEPI__OF_GATE = 8,              /* gemmepi_elementwise_desc.activation */
    GEMMEPI__OF_LAYER = 16,            /* gemmepi_linear_desc.flags */
    GEMMEPI__OF_LAYERS_ACTIVATION = 32 /* gemmepi_linear_desc.activation */
};

typedef struct gemmepi__flag_row {
    uint64_t flag;
    const char *name;
    int fields;
} gemmepi__flag_row;

static const gemmepi__flag_row gemmepi__flags[] = {
    {GEMMEPI_BIAS, "BIAS", GEMMEPI__OF_EPILOGUE},
    {GEMMEPI_AUX, "AUX", GEMMEPI__OF_EPILOGUE},
    {GEMMEPI_BACKWARD, "BACKWARD", GEMMEPI__OF_EPILOGUE},
    {GEMMEPI_RESIDUAL, "RESIDUAL", GEMMEPI__OF_EPILOGUE},
    {GEMMEPI_BGRAD, "BGRAD", GEMMEPI__OF_EPILOGUE},
    {GEMMEPI_BGRAD_A, "BGRAD_A", GEMMEPI__OF_EPILOGUE},
    {GEMMEPI_BGRAD_B, "BGRAD_B", GEMMEPI__OF_EPILOGUE},
    {GEMMEPI_ACCUMULATE_BIAS_GRAD, "ACCUMULATE_BIAS_GRAD", GEMMEPI__OF_EPILOGUE},
    {GEMMEPI_GATED, "GATED", GEMMEPI__OF_EPILOGUE | GEMMEPI__OF_LAYERS_ACTIVATION},
    {GEMMEPI_GATE_FIRST, "GATE_FIRST",
     GEMMEPI__OF_EPILOGUE | GEMMEPI__OF_GATE | GEMMEPI__OF_LAYERS_ACTIVATION},
    {GEMMEPI_UPSTREAM, "UPSTREAM", GEMMEPI__OF_EPILOGUE},
    {GEMMEPI_RELAXED, "RELAXED", GEMMEPI__OF_PRODUCT | GEMMEPI__OF_LAYER},
    {GEMMEPI_DEVICE_SCALARS, "DEVICE_SCALARS", GEMMEPI__OF_PRODUCT},
    {GEMMEPI_FAST_ACCUMULATION, "FAST_ACCUMULATION", GEMMEPI__OF_PRODUCT | GEMMEPI__OF_LAYER},
    {GEMMEPI_AMAX_D, "AMAX_D", GEMMEPI__OF_PRODUCT},
    {GEMMEPI_AMAX_AUX, "AMAX_AUX", GEMMEPI__OF_PRODUCT},
    {GEMMEPI_ACCUMULATE, "ACCUMULATE", GEMMEPI__OF_PRODUCT | GEMMEPI__OF_ELEMENTWISE},
    {GEMMEPI_BATCH_INVARIANT, "BATCH_INVARIANT", GEMMEPI__OF_PRODUCT | GEMMEPI__OF_LAYER},
    {GEMMEPI_FIND_SCALE_D, "FIND_SCALE_D", GEMMEPI__OF_PRODUCT | GEMMEPI__OF_LAYER},
    {GEMMEPI_POWER_OF_TWO_SCALE, "POWER_OF_TWO_SCALE", GEMMEPI__OF_PRODUCT | GEMMEPI__OF_LAYER},
    {GEMMEPI_CAST_SCALE, "CAST_SCALE", GEMMEPI__OF_ELEMENTWISE},
    {GEMMEPI_CAST_Y_SCALE, "CAST_Y_SCALE", GEMMEPI__OF_ELEMENTWISE},
    {GEMMEPI_CAST_AMAX, "CAST_AMAX", GEMMEPI__OF_ELEMENTWISE},
    {GEMMEPI_CAST_K_IS_ROWS, "CAST_K_IS_ROWS", GEMMEPI__OF_ELEMENTWISE},
    {GEMMEPI_LINEAR_BIAS, "LINEAR_BIAS", GEMMEPI__OF_LAYER},
    {GEMMEPI_LINEAR_SAVED, "LINEAR_SAVED", GEMMEPI__OF_LAYER},
    {GEMMEPI_LINEAR_RECOMPUTE, "LINEAR_RECOMPUTE", GEMMEPI__OF_LAYER},
    {GEMMEPI_LINEAR_DA, "LINEAR_DA", GEMMEPI__OF_LAYER},
    {GEMMEPI_LINEAR_DB, "LINEAR_DB", GEMMEPI__OF_LAYER},
    {GEMMEPI_LINEAR_DBIAS, "LINEAR_DBIAS", GEMMEPI__OF_LAYER},
    {GEMMEPI_ACCUMULATE_DA, "ACCUMULATE_DA", GEMMEPI__OF_LAYER},
    {GEMMEPI_ACCUMULATE_DB, "ACCUMULATE_DB", GEMMEPI__OF_LAYER},
    {GEMMEPI_ACCUMULATE_DBIAS, "ACCUMULATE_DBIAS", GEMMEPI__OF_LAYER},
};

/* What a layer has instead of a flag of products. */
static const struct {
    uint64_t flag, instead;
} gemmepi__layers_flags[] = {{GEMMEPI_BIAS, GEMMEPI_LINEAR_BIAS},
                             {GEMMEPI_AUX, GEMMEPI_LINEAR_SAVED},
                             {GEMMEPI_BGRAD, GEMMEPI_LINEAR_DBIAS},
                             {GEMMEPI_ACCUMULATE, GEMMEPI_ACCUMULATE_DB},
                             {GEMMEPI_ACCUMULATE_BIAS_GRAD, GEMMEPI_ACCUMULATE_DBIAS}};

/* For values that nobody writes on purpose. */
#define GEMMEPI__UNINITIALISED " (did you leave desc uninitialised? = {0})"

/* By bit of the fields above. */
static const struct {
    const char *desc, *name;
} gemmepi__fields[] = {{"gemmepi_matmul_desc", "epilogue"},   {"gemmepi_matmul_desc", "flags"},
                       {"gemmepi_elementwise_desc", "flags"}, {"gemmepi_elementwise_desc", "activation"},
                       {"gemmepi_linear_desc", "flags"},      {"gemmepi_linear_desc", "activation"}};

static size_t gemmepi__field_index(int field) {
    size_t i = 0;
    while (!(field >> i & 1))
        i++;
    return i;
}

/* All flags of a field. */
static uint64_t gemmepi__flags_of(int field) {
    uint64_t flags = 0;
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__flags); i++)
        if (gemmepi__flags[i].fields & field)
            flags |= gemmepi__flags[i].flag;
    return flags;
}

/* "BIAS" of the lowest flag that is set, or NULL. */
static const gemmepi__flag_row *gemmepi__flag(uint64_t flags) {
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__flags); i++)
        if (flags & gemmepi__flags[i].flag)
            return &gemmepi__flags[i];
    return NULL;
}

/* "BIAS|AUX" */
static void gemmepi__append_flags(gemmepi__text *text, uint64_t flags) {
    size_t i;
    const char *between = text->length ? "|" : "";
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__flags); i++)
        if (flags & gemmepi__flags[i].flag) {
            gemmepi__append(text, "%s%s", between, gemmepi__flags[i].name);
            flags &= ~gemmepi__flags[i].flag;
            between = "|";
        }
    if (flags)
        gemmepi__append(text, "%s0x%llx", between, (gemmepi__ull)flags);
}

/* Refuses a flag in a field that does not take it, and names the field that does. */
static gemmepi_status gemmepi__refuse_flag(int field, const gemmepi__flag_row *row) {
    size_t here = gemmepi__field_index(field), there = gemmepi__field_index(row->fields), i;
    int is_layers = field & (GEMMEPI__OF_LAYER | GEMMEPI__OF_LAYERS_ACTIVATION);
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__fields); i++)
        if (row->fields >> i & 1 && strcmp(gemmepi__fields[i].desc, gemmepi__fields[here].desc) == 0)
            there = i;
    if (strcmp(gemmepi__fields[there].desc, gemmepi__fields[here].desc) == 0)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s has %s, which belongs in desc.%s",
                             gemmepi__fields[here].name, row->name, gemmepi__fields[there].name);
    for (i = 0; is_layers && i < GEMMEPI__COUNT(gemmepi__layers_flags); i++)
        if (row->flag == gemmepi__layers_flags[i].flag)
            return gemmepi__fail(
                GEMMEPI_INVALID_ARGUMENT, "desc.%s has %s, a flag of products: a layer has %s, in desc.flags",
                gemmepi__fields[here].name, row->name, gemmepi__flag(gemmepi__layers_flags[i].instead)->name);
    return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s has %s, which belongs in %s.%s",
                         gemmepi__fields[here].name, row->name, gemmepi__fields[there].desc,
                         gemmepi__fields[there].name);
}

/* Whether a field has but its own flags, and, where `others` says so, further bits that are checked elsewhere. */
static gemmepi_status gemmepi__check_flags_of(int field, uint64_t flags, uint64_t others) {
    uint64_t wrong = flags & ~(gemmepi__flags_of(field) | others);
    const gemmepi__flag_row *row = gemmepi__flag(wrong);
    const char *name = gemmepi__fields[gemmepi__field_index(field)].name;
    if (!wrong)
        return GEMMEPI_OK;
    if (field == GEMMEPI__OF_GATE && wrong == GEMMEPI_GATED)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.activation has GATED, which belongs in gemmepi_matmul_desc.epilogue; an element-wise "
            "gate is the operation GEMMEPI_OP_GATED");
    if (row && !(wrong & 0xff))
        return gemmepi__refuse_flag(field, row);
    if (strcmp(name, "flags") == 0 && wrong & GEMMEPI_ACTIVATION_MASK && gemmepi__activation_name(flags))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT, "desc.flags has the activation %s, which belongs in desc.%s",
            gemmepi__activation_name(flags), field == GEMMEPI__OF_PRODUCT ? "epilogue" : "activation");
    return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "desc.%s is 0x%llx; the bits 0x%llx are none of its flags%s", name,
                         (gemmepi__ull)flags, (gemmepi__ull)wrong, GEMMEPI__UNINITIALISED);
}

#endif
