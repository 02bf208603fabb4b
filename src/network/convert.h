/* desc to task: what a network's desc says by itself; its layers are checked as layers. */
#ifndef GEMMEPI_NETWORK_CONVERT_H
#define GEMMEPI_NETWORK_CONVERT_H

#include "layers.h"

#define GPI__MAX_WIDTH ((int64_t)1 << 20)

/* >>sentences */

/* Puts a sentence about a layer in the words of the network. */
static gemmepi_status gpi__in_networks_words(gemmepi_status status, int i) {
    static const char *const of_layer[] = {"formula",       "operands",      "activation",
                                           "operand_count", "has_parameter", "activation_parameter",
                                           "width"};
    char fields[GPI__COUNT(of_layer)][56];
    gpi__renaming names[] = {{"desc.formula", NULL},
                             {"desc.operands", NULL},
                             {"desc.activation", NULL},
                             {"desc.operand_count", NULL},
                             {"desc.has_parameter", NULL},
                             {"desc.activation_parameter", NULL},
                             {"desc.n", NULL},
                             {"desc.k", "desc.input"},
                             {"desc.m", "desc.rows"},
                             {"desc.a.formula", "desc.input_formula"},
                             {"desc.a.ld", "desc.x_ld"},
                             {"desc.a.dtype", "desc.x_dtype"},
                             {"desc.b.dtype", "desc.dtype"},
                             {"desc.y.ld", "desc.y_ld"},
                             {"desc.y", "y"},
                             {"desc.dy", "dy"},
                             {"desc.da", "dx"},
                             {"desc.b", "w"}};
    size_t j;
    if (!status)
        return status;
    for (j = 0; j < GPI__COUNT(of_layer); j++) {
        snprintf(fields[j], sizeof fields[j], "desc.layers[%d].%s", i, of_layer[j]);
        names[j].to = fields[j];
    }
    gpi__rename_error(names, GPI__COUNT(names));
    return status;
}

/* >>what desc says by itself */

static gemmepi_status gpi__check_networks_extents(const gemmepi_network_desc *desc) {
    int i;
    GPI__INVALID_IF(desc->layer_count < 1 || desc->layer_count > GPI__NETWORK_LAYERS,
                    "desc.layer_count is %d; accepted are 1 to %d%s", desc->layer_count, GPI__NETWORK_LAYERS,
                    desc->layer_count ? GPI__UNINITIALISED : "");
    GPI__INVALID_IF(!desc->layers, "desc.layers is NULL, but desc.layer_count is %d", desc->layer_count);
    GPI__INVALID_IF(desc->rows < 0 || desc->rows > INT32_MAX,
                    "desc.rows is %lld; accepted are 0 to 2^31 - 1: run more rows as several calls%s",
                    (long long)desc->rows, desc->rows < 0 ? GPI__UNINITIALISED : "");
    GPI__INVALID_IF(desc->input < 1 || desc->input > GPI__MAX_WIDTH,
                    "desc.input is %lld; accepted are 1 to 2^20", (long long)desc->input);
    for (i = 0; i < desc->layer_count; i++)
        GPI__INVALID_IF(desc->layers[i].width < 1 || desc->layers[i].width > GPI__MAX_WIDTH,
                        "desc.layers[%d].width is %lld; accepted are 1 to 2^20", i,
                        (long long)desc->layers[i].width);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_networks_dtype(const char *name, gemmepi_dtype dtype, uint32_t accepted,
                                                const char *words) {
    GPI__INVALID_IF((unsigned)dtype >= 32 || !(accepted >> dtype & 1),
                    "desc.%s is %d (%s); accepted %s in a network%s", name, (int)dtype,
                    gpi__dtype_name(dtype), words, gpi__dtype_is_known(dtype) ? "" : GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

/* With the defaults filled in. */
static gemmepi_status gpi__check_networks_dtypes(const gemmepi_network_desc *desc) {
    int is_f64 = desc->dtype == GEMMEPI_F64;
    uint32_t beside = is_f64 ? 1u << GEMMEPI_F64 : GPI__VECTOR_TYPES;
    const char *words = is_f64 ? "is F64, as desc.dtype is," : "are F32, F16 and BF16";
    gemmepi_status status = gpi__check_networks_dtype(
        "dtype", desc->dtype, GPI__VECTOR_TYPES | 1u << GEMMEPI_F64, "are F32, F16, BF16 and F64");
    if (!status)
        status = gpi__check_networks_dtype("bias_dtype", desc->bias_dtype, beside, words);
    if (!status)
        status = gpi__check_networks_dtype("gradient_dtype", desc->gradient_dtype, beside, words);
    GPI__INVALID_IF(!status && desc->x_dtype != desc->dtype && !desc->input_formula,
                    "desc.x_dtype is %s, but desc.dtype is %s and there is no input_formula: then x has that "
                    "type, and x_dtype is 0",
                    gpi__dtype_name(desc->x_dtype), gpi__dtype_name(desc->dtype));
    return status;
}

static gemmepi_status gpi__check_networks_flags(const gemmepi_network_desc *desc, int backward) {
    gemmepi_status status = gpi__check_flags_of(GPI__OF_NETWORK, desc->flags, 0);
    int last = desc->layer_count - 1;
    if (status || !backward)
        return status;
    GPI__INVALID_IF(!(desc->flags & (GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_DW)) &&
                        gpi__lowest_layer(desc) == last && !gpi__asks_layer_for_gradients(desc, last),
                    "desc.flags asks for no output; at least one of NETWORK_DX and NETWORK_DW, or an operand "
                    "d_NAME");
    GPI__INVALID_IF(desc->flags & GEMMEPI_ACCUMULATE_DX && !(desc->flags & GEMMEPI_NETWORK_DX),
                    "desc.flags has ACCUMULATE_DX without NETWORK_DX");
    GPI__INVALID_IF(desc->flags & GEMMEPI_ACCUMULATE_DW && !(desc->flags & GEMMEPI_NETWORK_DW),
                    "desc.flags has ACCUMULATE_DW without NETWORK_DW");
    return GEMMEPI_OK;
}

/* Operands of a layer: inputs and their gradients, without scales. */
static gemmepi_status gpi__check_networks_operands(const gemmepi_network_desc *desc, int layer) {
    const gemmepi_network_layer *of = &desc->layers[layer];
    int i;
    for (i = 0; i < of->operand_count; i++) {
        const gemmepi_operand *operand = &of->operands[i];
        int role = gpi__layers_role(operand);
        GPI__INVALID_IF(role == GPI__IS_OUTPUT || role == GPI__IS_UPSTREAM,
                        "desc.layers[%d].operands[%d] (of %s) is %s; a network's formula assigns its result "
                        "alone: reductions and other outputs belong to gemmepi_linear",
                        layer, i, operand->name ? operand->name : "NULL",
                        role == GPI__IS_OUTPUT ? "an output" : "the gradient of an output");
        GPI__INVALID_IF(
            operand->scale.mode,
            "desc.layers[%d].operands[%d].scale.mode (of %s) is %d; operands of a network have no "
            "scale: multiply by a SCALAR in the text",
            layer, i, operand->name ? operand->name : "NULL", (int)operand->scale.mode);
    }
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_networks_layers(const gemmepi_network_desc *desc) {
    int i, operands = 0;
    gemmepi_status status = GEMMEPI_OK;
    for (i = 0; i < desc->layer_count && !status; i++) {
        const gemmepi_network_layer *of = &desc->layers[i];
        GPI__INVALID_IF(!of->formula && of->operand_count && !(i == 0 && desc->input_formula),
                        "desc.layers[%d].operand_count is %d, but its formula is NULL%s", i,
                        of->operand_count, GPI__UNINITIALISED);
        GPI__INVALID_IF(of->operand_count < 0 || of->operand_count > GPI__LAYER_OPERANDS ||
                            (of->operand_count && !of->operands),
                        "desc.layers[%d].operand%s", i,
                        of->operand_count < 0 || of->operand_count > GPI__LAYER_OPERANDS
                            ? "_count is not 0 to 28"
                            : "s is NULL, but operand_count is not 0");
        GPI__UNSUPPORTED_IF(of->activation & GEMMEPI_GATED,
                            "desc.layers[%d].activation has GATED, which halves the width: layers of a "
                            "network keep theirs (gemmepi_linear has gates)",
                            i);
        operands += of->operand_count;
        status = gpi__check_networks_operands(desc, i);
    }
    GPI__UNSUPPORTED_IF(!status && operands > GPI__NETWORK_OPERANDS,
                        "desc.layers have %d operands together; accepted are %d", operands,
                        GPI__NETWORK_OPERANDS);
    return status;
}

/* In the order of their need: what is said later may be counted on. */
static gemmepi_status gpi__check_network_desc(const gemmepi_network_desc *given, int backward,
                                              gemmepi_network_desc *desc) {
    gemmepi_status status;
    GPI__INVALID_IF(!given, "desc is NULL");
    *desc = *given;
    desc->dtype = desc->dtype ? desc->dtype : GEMMEPI_F32;
    desc->bias_dtype = desc->bias_dtype ? desc->bias_dtype : desc->dtype;
    desc->gradient_dtype = desc->gradient_dtype ? desc->gradient_dtype : desc->dtype;
    desc->x_dtype = desc->x_dtype ? desc->x_dtype : desc->dtype;
    desc->alignment = desc->alignment ? desc->alignment : GPI__DEFAULT_ALIGNMENT;
    status = gpi__check_networks_extents(desc);
    if (!status)
        status = gpi__check_networks_dtypes(desc);
    if (!status)
        status = gpi__check_networks_layers(desc);
    return status ? status : gpi__check_networks_flags(desc, backward);
}

/* >>layers */

/* The result is as wide as v. */
static gemmepi_status gpi__check_networks_width(const gpi__kept_formula *kept, int i, int64_t width) {
    const gpi__formula *formula = kept->placed.formula;
    int64_t columns = gpi__columns_of_width(formula, width, formula->operands[GPI__RESULT].width);
    GPI__UNSUPPORTED_IF(columns != width,
                        "desc.layers[%d].formula makes %lld columns, but desc.layers[%d].width is %lld: "
                        "a layer of a network keeps its width",
                        i, (long long)columns, i, (long long)width);
    return GEMMEPI_OK;
}

/* One direction of a layer, checked as a layer's: its formula, and the first layer's input's. The views of forward's ends are the network's. */
static gemmepi_status gpi__convert_networks_layer(gemmepi_context *context, const gemmepi_network_desc *desc,
                                                  int i, int backward, gpi__network_task *task) {
    gpi__network_layer *to = &task->layers[i];
    gemmepi_linear_desc layer = gpi__bare_layer(desc, i);
    gpi__layer_task made;
    gpi__layer_problems problems;
    const gpi__problem *problem = &problems.of[GPI__OF_FIRST];
    gemmepi_status status;
    if (i + 1 < desc->layer_count) /* so that a formula's width is asked about below */
        layer.y.ld = 0;
    if (backward) {
        layer.flags |= gpi__keeps_p(desc, i) ? GEMMEPI_LINEAR_RECOMPUTE : 0;
        layer.flags |= i == 0 && desc->input_formula ? GEMMEPI_LINEAR_DB : GEMMEPI_LINEAR_DA;
    }
    status = gpi__convert_layer(context, &layer, backward, desc->alignment, &made, &problems);
    if (status)
        return gpi__in_networks_words(status, i);
    *(backward ? &to->gradient : &to->formula) = GPI__FORMULA(problem);
    memcpy(to->beside[backward], made.formulas[GPI__OF_FIRST].beside, sizeof to->beside[backward]);
    if (backward) {
        gpi__drop_one(context, GPI__FORMULA(&problem->made[0]));
        return GEMMEPI_OK;
    }
    to->made = GPI__FORMULA(&problem->made[0]);
    to->parameter = made.parameter;
    if (i == 0)
        task->x = made.views[GPI__L_A];
    if (i + 1 == desc->layer_count)
        task->y = made.views[GPI__L_Y];
    return to->formula ? gpi__check_networks_width(to->formula, i, to->width) : GEMMEPI_OK;
}

static void gpi__start_network_task(const gemmepi_network_desc *desc, int backward, gpi__network_task *task) {
    int i;
    task->tag = backward ? GPI__NETWORK_BACKWARD : GPI__NETWORK_FORWARD;
    task->rows = desc->rows;
    task->flags = desc->flags;
    if (!backward)
        task->flags &=
            ~(GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_DW | GEMMEPI_ACCUMULATE_DX | GEMMEPI_ACCUMULATE_DW);
    task->layer_count = desc->layer_count;
    task->dtype = (int32_t)desc->dtype;
    task->x_dtype = (int32_t)desc->x_dtype;
    task->bias_dtype = (int32_t)desc->bias_dtype;
    task->gradient_dtype = (int32_t)desc->gradient_dtype;
    task->compute = (int32_t)desc->compute;
    task->alignment = (int32_t)desc->alignment;
    for (i = 0; i < desc->layer_count; i++) {
        gpi__network_layer *to = &task->layers[i];
        to->inputs = gpi__inputs_of(desc, i);
        to->width = desc->layers[i].width;
        to->activation = desc->layers[i].activation;
        to->operand_count = desc->layers[i].operand_count;
        to->asks_gradients = gpi__asks_layer_for_gradients(desc, i);
        memset(to->beside, -1, sizeof to->beside);
    }
}

/* given -> desc with its defaults, and task, or the sentence that says what is wrong. After success the task's formulas are the caller's, for
   gpi__drop_networks_formulas. */
static gemmepi_status gpi__convert_network(gemmepi_context *context, const gemmepi_network_desc *given,
                                           int backward, gemmepi_network_desc *desc,
                                           gpi__network_task *task) {
    gemmepi_status status;
    int i;
    memset(task, 0, sizeof *task);
    status = gpi__check_network_desc(given, backward, desc);
    if (status)
        return status;
    gpi__start_network_task(desc, backward, task);
    for (i = 0; i < desc->layer_count && !status; i++) {
        status = gpi__convert_networks_layer(context, desc, i, 0, task);
        if (!status && backward)
            status = gpi__convert_networks_layer(context, desc, i, 1, task);
    }
    if (status)
        gpi__drop_networks_formulas(context, task);
    return status;
}

#endif
