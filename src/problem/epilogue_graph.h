/* What an epilogue of flags is short for: a formula, made node by node, whose operands are the product's tensors. */
#ifndef GEMMEPI_PROBLEM_EPILOGUE_GRAPH_H
#define GEMMEPI_PROBLEM_EPILOGUE_GRAPH_H

#include "problem.h"

/* It points into itself, so that it stays where it is. */
typedef struct gpi__flags_formula {
    gpi__placed_formula placed;
    gpi__formula formula;
    gpi__node nodes[16];
} gpi__flags_formula;

/* >>operands */

static void gpi__place_operand_of_flags(const gpi__problem *problem, gpi__flags_formula *to, int i) {
    static const uint8_t kinds[] = {GEMMEPI_FULL, GEMMEPI_FULL, GEMMEPI_PER_COLUMN, GEMMEPI_PER_COLUMN,
                                    GEMMEPI_PER_ROW};
    int operand = i == GPI__RESULT      ? (int)GPI__D
                  : i == GPI__IN_FACTOR ? (int)GPI__ROW_FACTOR
                                        : GPI__OPERAND_OF_SLOT(i);
    const gpi__view *view = &problem->views[operand];
    gpi__formula_operand *o = &to->formula.operands[i];
    gpi__placed_operand *at = &to->placed.operands[i];
    o->kind = i == GPI__RESULT ? (uint8_t)GEMMEPI_FULL : kinds[i];
    o->dtype = (uint8_t)(view->bits == 1 ? GPI__BIT_OF_MASK : view->dtype);
    o->members = gpi__has_columns(o->kind) && view->length > gpi__half_columns(problem) ? 2 : 1;
    at->ld = view->ld;
    at->batch_stride = view->batch_stride;
    at->amax = i == GPI__IN_AUX ? problem->views[GPI__AMAX_AUX].dtype : 0;
    at->scale = view->scale != 0;
    if (view->scale)
        at->scale_stride = problem->views[GPI__SCALE_OF(operand)].batch_stride;
}

static void gpi__assign_operand_of_flags(gpi__flags_formula *to, int i, int node) {
    gpi__formula_operand *o = &to->formula.operands[i];
    o->output = o->used = 1;
    o->node = (int16_t)node;
}

/* >>nodes */

static int gpi__put_leaf(gpi__flags_formula *to, int op, int place, int width) {
    gpi__node *node = &to->nodes[to->formula.node_count];
    *node = gpi__node_of(op, -1, -1, -1);
    node->place = (int16_t)place;
    node->width = (uint8_t)width;
    return to->formula.node_count++;
}

/* As wide as x, but for PART and JOIN. place: the part, or the activation's row, whose parameter the node has. */
static int gpi__put(gpi__flags_formula *to, int op, int place, int x, int y, int z) {
    int width = op == GPI__OP_PART   ? (int)GPI__NARROW
                : op == GPI__OP_JOIN ? (int)GPI__WIDE
                                     : to->nodes[x].width;
    int made = gpi__put_leaf(to, op, place, width);
    to->nodes[made].args[0] = (int16_t)x;
    to->nodes[made].args[1] = (int16_t)y;
    to->nodes[made].args[2] = (int16_t)z;
    return made;
}

static int gpi__put_operand(gpi__flags_formula *to, int i) {
    gpi__formula_operand *o = &to->formula.operands[i];
    int is_narrow = to->formula.has_halves && o->members == 1, made;
    o->used = GPI__BY_PLACE;
    made = gpi__put_leaf(to, GPI__OP_OPERAND, i,
                         !gpi__has_columns(o->kind) ? GPI__ANY
                         : is_narrow                ? GPI__NARROW
                                                    : GPI__WIDE);
    to->nodes[made].type = o->dtype == GEMMEPI_I32 ? GPI__OF_WHOLE : GPI__OF_NUMBERS;
    return made;
}

/* Of an activation: op of x, y and z. */
static int gpi__put_activation(const gpi__problem *problem, gpi__flags_formula *to, int op, int x, int y,
                               int z) {
    int made = gpi__put(to, op, (int)(gpi__activation_of(problem->epilogue) - gpi__activations), x, y, z);
    to->nodes[made].number = problem->parameter;
    return made;
}

/* The result of the product with its bias. With BACKWARD that and aux are dY and the pre-activation, or the other way round; RELU's mask, 0 or
   1, is as good as any pre-activation. Of results in I32 a gate is modulo 2^32. */
static int gpi__put_result(const gpi__problem *problem, gpi__flags_formula *to, int product) {
    int backward = gpi__has(problem, GEMMEPI_BACKWARD), upstream = gpi__has(problem, GEMMEPI_UPSTREAM);
    int aux = backward ? gpi__put_operand(to, GPI__IN_AUX) : -1, dy = upstream ? aux : product;
    int p = backward && !upstream ? aux : product, swaps = gpi__has(problem, GEMMEPI_GATE_FIRST);
    int value, gate, of_value, of_gate;
    if (!gpi__has(problem, GEMMEPI_GATED) && backward)
        return gpi__put_activation(problem, to, GPI__OP_GRADIENT, dy, p, -1);
    if (!gpi__has(problem, GEMMEPI_GATED))
        return gpi__activation(problem->epilogue) == GEMMEPI_NONE
                   ? p
                   : gpi__put_activation(problem, to, GPI__OP_ACTIVATE, p, -1, -1);
    value = gpi__put(to, GPI__OP_PART, swaps, p, -1, -1);
    gate = gpi__put(to, GPI__OP_PART, !swaps, p, -1, -1);
    if (!backward && problem->accumulator == GEMMEPI_I32)
        return gpi__put(to, GPI__OP_MUL, 0, value,
                        gpi__put_activation(problem, to, GPI__OP_ACTIVATE, gate, -1, -1), -1);
    of_value = gpi__put_activation(problem, to, GPI__OP_GATE, backward ? dy : value, gate, -1);
    if (!backward)
        return of_value;
    of_gate = gpi__put_activation(problem, to, GPI__OP_GRADIENT, dy, gate, value);
    return gpi__put(to, GPI__OP_JOIN, 0, swaps ? of_gate : of_value, swaps ? of_value : of_gate, -1);
}

static void gpi__put_epilogue(const gpi__problem *problem, gpi__flags_formula *to) {
    gpi__formula_operand *bias_grad = &to->formula.operands[GPI__IN_BIAS_GRAD];
    int d = gpi__put_leaf(to, GPI__OP_VALUE, 0, to->formula.n_width);
    if (gpi__has(problem, GEMMEPI_BIAS))
        d = gpi__put(to, GPI__OP_ADD, 0, d, gpi__put_operand(to, GPI__IN_BIAS), -1);
    if (gpi__has(problem, GEMMEPI_AUX))
        gpi__assign_operand_of_flags(to, GPI__IN_AUX, d);
    d = gpi__put_result(problem, to, d);
    if (gpi__has_operand(problem, GPI__ROW_FACTOR))
        d = gpi__put(to, GPI__OP_MUL, 0, d, gpi__put_operand(to, GPI__IN_FACTOR), -1);
    if (gpi__has(problem, GEMMEPI_RESIDUAL))
        d = gpi__put(to, GPI__OP_ADD, 0, d, gpi__put_operand(to, GPI__IN_RESIDUAL), -1);
    if (!(problem->flags & GPI__ONLY_SUMS))
        gpi__assign_operand_of_flags(to, GPI__RESULT, d);
    if (!gpi__has(problem, GEMMEPI_BGRAD))
        return;
    gpi__assign_operand_of_flags(to, GPI__IN_BIAS_GRAD, d);
    bias_grad->reduction = (uint8_t)gpi__reduction_called("column_sum", 10);
    bias_grad->accumulate = (uint8_t)gpi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD);
}

/* Of a problem without a formula; v is the product times alpha and all scales, plus beta C. BGRAD_A and BGRAD_B are no part of it. */
static void gpi__formula_of_flags(const gpi__problem *problem, gpi__flags_formula *to) {
    gpi__formula *f = &to->formula;
    int i;
    memset(to, 0, sizeof *to);
    f->nodes = to->nodes;
    f->accumulator = problem->accumulator;
    f->parts = 2;
    f->operand_count = GPI__SLOTS + 1;
    f->d = problem->views[GPI__D].dtype;
    f->has_halves = gpi__has(problem, GEMMEPI_GATED);
    f->mode = f->has_halves ? GPI__LEFT_RIGHT : GPI__NO_HALVES;
    f->n_width = f->has_halves && gpi__halves_in(problem) == 1 ? GPI__NARROW : GPI__WIDE;
    f->reads_value = 1;
    to->placed.formula = f;
    to->placed.rows = problem->m;
    to->placed.columns = problem->n;
    to->placed.items = problem->batch;
    for (i = 0; i <= GPI__IN_FACTOR; i++)
        gpi__place_operand_of_flags(problem, to, i);
    gpi__place_operand_of_flags(problem, to, GPI__RESULT);
    gpi__put_epilogue(problem, to);
}

#endif
