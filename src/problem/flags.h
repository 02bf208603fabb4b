/* Every flag of the interface: what it is called, and which fields take it. No two share a bit. */
#ifndef GEMMEPI_PROBLEM_FLAGS_H
#define GEMMEPI_PROBLEM_FLAGS_H

#include "../base/status.h"
#include "../base/text.h"
#include "../numbers/activation.h"

/* The fields that hold flags. */
enum {
    GPI__OF_EPILOGUE = 1,           /* gemmepi_matmul_desc.epilogue */
    GPI__OF_PRODUCT = 2,            /* gemmepi_matmul_desc.flags */
    GPI__OF_ELEMENTWISE = 4,        /* gemmepi_elementwise_desc.flags */
    GPI__OF_GATE = 8,               /* gemmepi_elementwise_desc.activation */
    GPI__OF_LAYER = 16,             /* gemmepi_linear_desc.flags */
    GPI__OF_LAYERS_ACTIVATION = 32, /* gemmepi_linear_desc.activation */
    GPI__OF_NETWORK = 64            /* gemmepi_network_desc.flags */
};

typedef struct gpi__flag_row {
    uint64_t flag;
    const char *name;
    int fields;
} gpi__flag_row;

static const gpi__flag_row gpi__flags[] = {
    {GEMMEPI_BIAS, "BIAS", GPI__OF_EPILOGUE},
    {GEMMEPI_AUX, "AUX", GPI__OF_EPILOGUE},
    {GEMMEPI_BACKWARD, "BACKWARD", GPI__OF_EPILOGUE},
    {GEMMEPI_RESIDUAL, "RESIDUAL", GPI__OF_EPILOGUE},
    {GEMMEPI_BGRAD, "BGRAD", GPI__OF_EPILOGUE},
    {GEMMEPI_BGRAD_A, "BGRAD_A", GPI__OF_EPILOGUE},
    {GEMMEPI_BGRAD_B, "BGRAD_B", GPI__OF_EPILOGUE},
    {GEMMEPI_ACCUMULATE_BIAS_GRAD, "ACCUMULATE_BIAS_GRAD", GPI__OF_EPILOGUE},
    {GEMMEPI_GATED, "GATED", GPI__OF_EPILOGUE | GPI__OF_LAYERS_ACTIVATION},
    {GEMMEPI_GATE_FIRST, "GATE_FIRST", GPI__OF_EPILOGUE | GPI__OF_GATE | GPI__OF_LAYERS_ACTIVATION},
    {GEMMEPI_UPSTREAM, "UPSTREAM", GPI__OF_EPILOGUE},
    {GEMMEPI_RELAXED, "RELAXED", GPI__OF_PRODUCT | GPI__OF_LAYER | GPI__OF_NETWORK},
    {GEMMEPI_DEVICE_SCALARS, "DEVICE_SCALARS", GPI__OF_PRODUCT},
    {GEMMEPI_FAST_ACCUMULATION, "FAST_ACCUMULATION", GPI__OF_PRODUCT | GPI__OF_LAYER},
    {GEMMEPI_AMAX_D, "AMAX_D", GPI__OF_PRODUCT},
    {GEMMEPI_AMAX_AUX, "AMAX_AUX", GPI__OF_PRODUCT},
    {GEMMEPI_ACCUMULATE, "ACCUMULATE", GPI__OF_PRODUCT | GPI__OF_ELEMENTWISE},
    {GEMMEPI_BATCH_INVARIANT, "BATCH_INVARIANT", GPI__OF_PRODUCT | GPI__OF_LAYER | GPI__OF_NETWORK},
    {GEMMEPI_FIND_SCALE_D, "FIND_SCALE_D", GPI__OF_PRODUCT | GPI__OF_LAYER},
    {GEMMEPI_FIND_SCALE_A, "FIND_SCALE_A", GPI__OF_PRODUCT},
    {GEMMEPI_FIND_SCALE_B, "FIND_SCALE_B", GPI__OF_PRODUCT},
    {GEMMEPI_POWER_OF_TWO_SCALE, "POWER_OF_TWO_SCALE", GPI__OF_PRODUCT | GPI__OF_LAYER},
    {GEMMEPI_CAST_SCALE, "CAST_SCALE", GPI__OF_ELEMENTWISE},
    {GEMMEPI_CAST_Y_SCALE, "CAST_Y_SCALE", GPI__OF_ELEMENTWISE},
    {GEMMEPI_CAST_AMAX, "CAST_AMAX", GPI__OF_ELEMENTWISE},
    {GEMMEPI_CAST_K_IS_ROWS, "CAST_K_IS_ROWS", GPI__OF_ELEMENTWISE},
    {GEMMEPI_LINEAR_BIAS, "LINEAR_BIAS", GPI__OF_LAYER},
    {GEMMEPI_LINEAR_SAVED, "LINEAR_SAVED", GPI__OF_LAYER},
    {GEMMEPI_LINEAR_RECOMPUTE, "LINEAR_RECOMPUTE", GPI__OF_LAYER},
    {GEMMEPI_LINEAR_DA, "LINEAR_DA", GPI__OF_LAYER},
    {GEMMEPI_LINEAR_DB, "LINEAR_DB", GPI__OF_LAYER},
    {GEMMEPI_LINEAR_DBIAS, "LINEAR_DBIAS", GPI__OF_LAYER},
    {GEMMEPI_ACCUMULATE_DA, "ACCUMULATE_DA", GPI__OF_LAYER},
    {GEMMEPI_ACCUMULATE_DB, "ACCUMULATE_DB", GPI__OF_LAYER},
    {GEMMEPI_ACCUMULATE_DBIAS, "ACCUMULATE_DBIAS", GPI__OF_LAYER},
    {GEMMEPI_LINEAR_RESIDUAL, "LINEAR_RESIDUAL", GPI__OF_LAYER},
    {GEMMEPI_LINEAR_DY_IS_G, "LINEAR_DY_IS_G", GPI__OF_LAYER},
    {GEMMEPI_LINEAR_FORWARD, "LINEAR_FORWARD", GPI__OF_LAYER},
    {GEMMEPI_NETWORK_BIAS, "NETWORK_BIAS", GPI__OF_NETWORK},
    {GEMMEPI_NETWORK_TRANSPOSED, "NETWORK_TRANSPOSED", GPI__OF_NETWORK},
    {GEMMEPI_NETWORK_SAVED, "NETWORK_SAVED", GPI__OF_NETWORK},
    {GEMMEPI_NETWORK_DX, "NETWORK_DX", GPI__OF_NETWORK},
    {GEMMEPI_NETWORK_DW, "NETWORK_DW", GPI__OF_NETWORK},
    {GEMMEPI_ACCUMULATE_DX, "ACCUMULATE_DX", GPI__OF_NETWORK},
    {GEMMEPI_ACCUMULATE_DW, "ACCUMULATE_DW", GPI__OF_NETWORK},
};

/* What a layer has instead of a flag of products. */
static const struct {
    uint64_t flag, instead;
} gpi__layers_flags[] = {
    {GEMMEPI_BIAS, GEMMEPI_LINEAR_BIAS},         {GEMMEPI_AUX, GEMMEPI_LINEAR_SAVED},
    {GEMMEPI_RESIDUAL, GEMMEPI_LINEAR_RESIDUAL}, {GEMMEPI_BGRAD, GEMMEPI_LINEAR_DBIAS},
    {GEMMEPI_ACCUMULATE, GEMMEPI_ACCUMULATE_DB}, {GEMMEPI_ACCUMULATE_BIAS_GRAD, GEMMEPI_ACCUMULATE_DBIAS}};

/* For values that nobody writes on purpose. */
#define GPI__UNINITIALISED " (did you leave desc uninitialised? = {0})"

/* By bit of the fields above. */
static const struct {
    const char *desc, *name;
} gpi__fields[] = {{"gemmepi_matmul_desc", "epilogue"},   {"gemmepi_matmul_desc", "flags"},
                   {"gemmepi_elementwise_desc", "flags"}, {"gemmepi_elementwise_desc", "activation"},
                   {"gemmepi_linear_desc", "flags"},      {"gemmepi_linear_desc", "activation"},
                   {"gemmepi_network_desc", "flags"}};

static size_t gpi__field_index(int field) {
    size_t i = 0;
    while (!(field >> i & 1))
        i++;
    return i;
}

/* All flags of a field. */
static uint64_t gpi__flags_of(int field) {
    uint64_t flags = 0;
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__flags); i++)
        if (gpi__flags[i].fields & field)
            flags |= gpi__flags[i].flag;
    return flags;
}

/* "BIAS" of the lowest flag that is set, or NULL. */
static const gpi__flag_row *gpi__flag(uint64_t flags) {
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__flags); i++)
        if (flags & gpi__flags[i].flag)
            return &gpi__flags[i];
    return NULL;
}

/* "BIAS|AUX" */
static void gpi__append_flags(gpi__text *text, uint64_t flags) {
    size_t i;
    const char *between = text->length ? "|" : "";
    for (i = 0; i < GPI__COUNT(gpi__flags); i++)
        if (flags & gpi__flags[i].flag) {
            gpi__append(text, "%s%s", between, gpi__flags[i].name);
            flags &= ~gpi__flags[i].flag;
            between = "|";
        }
    if (flags)
        gpi__append(text, "%s0x%llx", between, (gpi__ull)flags);
}

/* Refuses a flag in a field that does not take it, and names the field that does. */
static gemmepi_status gpi__refuse_flag(int field, const gpi__flag_row *row) {
    size_t here = gpi__field_index(field), there = gpi__field_index(row->fields), i;
    int is_layers = field & (GPI__OF_LAYER | GPI__OF_LAYERS_ACTIVATION);
    for (i = 0; i < GPI__COUNT(gpi__fields); i++)
        if (row->fields >> i & 1 && strcmp(gpi__fields[i].desc, gpi__fields[here].desc) == 0)
            there = i;
    GPI__INVALID_IF(strcmp(gpi__fields[there].desc, gpi__fields[here].desc) == 0,
                    "desc.%s has %s, which belongs in desc.%s", gpi__fields[here].name, row->name,
                    gpi__fields[there].name);
    for (i = 0; is_layers && i < GPI__COUNT(gpi__layers_flags); i++)
        GPI__INVALID_IF(row->flag == gpi__layers_flags[i].flag,
                        "desc.%s has %s, a flag of products: a layer has %s, in desc.flags",
                        gpi__fields[here].name, row->name, gpi__flag(gpi__layers_flags[i].instead)->name);
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s has %s, which belongs in %s.%s",
                     gpi__fields[here].name, row->name, gpi__fields[there].desc, gpi__fields[there].name);
}

/* Whether a field has but its own flags, and, where `others` says so, further bits that are checked elsewhere. */
static gemmepi_status gpi__check_flags_of(int field, uint64_t flags, uint64_t others) {
    uint64_t wrong = flags & ~(gpi__flags_of(field) | others);
    const gpi__flag_row *row = gpi__flag(wrong);
    const char *name = gpi__fields[gpi__field_index(field)].name;
    if (!wrong)
        return GEMMEPI_OK;
    GPI__INVALID_IF(
        field == GPI__OF_GATE && wrong == GEMMEPI_GATED,
        "desc.activation has GATED, which belongs in gemmepi_matmul_desc.epilogue; an element-wise "
        "gate is the operation GEMMEPI_OP_GATED");
    if (row && !(wrong & 0xff))
        return gpi__refuse_flag(field, row);
    GPI__INVALID_IF(strcmp(name, "flags") == 0 && wrong & GEMMEPI_ACTIVATION_MASK &&
                        gpi__activation_name(flags),
                    "desc.flags has the activation %s, which belongs in desc.%s", gpi__activation_name(flags),
                    field == GPI__OF_PRODUCT ? "epilogue" : "activation");
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s is 0x%llx; the bits 0x%llx are none of its flags%s",
                     name, (gpi__ull)flags, (gpi__ull)wrong, GPI__UNINITIALISED);
}

#endif
