/* What an element-wise operation computes of some outputs: a formula, made of nodes of gpi__operation_nodes. */
#ifndef GEMMEPI_PROBLEM_OPERATION_GRAPH_H
#define GEMMEPI_PROBLEM_OPERATION_GRAPH_H

#include "nest.h"

/* It points into itself, so that it stays where it is. Operands are tensors, as these are numbered, and behind them the numbers of a run. */
typedef struct gpi__operation_formula {
    gpi__formula formula;
    gpi__node nodes[GPI__OPERATION_NODE_COUNT];
    /* Of each row of gpi__operation_nodes the number of its node, from 1; 0: the row is not needed. */
    int8_t numbers[GPI__OPERATION_NODE_COUNT];
} gpi__operation_formula;

enum { GPI__OPERAND_WEIGHT = GPI__TENSORS, GPI__OPERAND_REST, GPI__OPERAND_SCALE, GPI__OPERATION_OPERANDS };

static int gpi__operand_of_node(int row) {
    return row < GPI__NODE_WEIGHT ? row : (int)GPI__OPERAND_WEIGHT + row - GPI__NODE_WEIGHT;
}

/* A weight that is no tensor is a number of the run, and 1 minus it another, which is so rounded once. */
static int gpi__row_in_task(const gpi__task *task, int row) {
    if (gpi__task_has(task, GPI__IN_W))
        return row;
    return row == GPI__NODE_W      ? (int)GPI__NODE_WEIGHT
           : row == GPI__NODE_REST ? (int)GPI__NODE_WITHOUT_WEIGHT
                                   : row;
}

/* Returns the number of a row's node, which is put behind its arguments. */
static int gpi__put_operation_node(const gpi__task *task, gpi__operation_formula *to, int row) {
    const gpi__operation_node *from;
    gpi__node node = gpi__node_of(GPI__OP_NUMBER, -1, -1, -1);
    int a;
    row = gpi__row_in_task(task, row);
    from = &gpi__operation_nodes[row];
    if (to->numbers[row])
        return to->numbers[row] - 1;
    node.op = (uint8_t)from->op;
    node.number = from->number;
    node.width = (uint8_t)(row < GPI__NODE_WEIGHT ? GPI__WIDE : GPI__ANY);
    for (a = 0; a < 3; a++)
        if (from->args[a] != GPI__NODE_NONE) {
            node.args[a] = (int16_t)gpi__put_operation_node(task, to, from->args[a]);
            if (to->nodes[node.args[a]].width != GPI__ANY)
                node.width = GPI__WIDE;
        }
    if (from->op == GPI__OP_LT)
        node.type = GPI__OF_TRUTH;
    if (from->op == GPI__OP_OPERAND) {
        node.place = (int16_t)gpi__operand_of_node(row);
        to->formula.operands[node.place].used = GPI__BY_PLACE;
    }
    if (gpi__is_of_activation(from->op)) {
        node.place = (int16_t)(gpi__activation_of((gemmepi_epilogue)task->activation) - gpi__activations);
        node.number = task->parameter;
    }
    to->nodes[to->formula.node_count] = node;
    to->numbers[row] = (int8_t)++to->formula.node_count;
    return to->numbers[row] - 1;
}

/* Of the outputs that the nest has. operation: the task's, or that of partial sums. */
static void gpi__formula_of_operation(const gpi__task *task, int operation, const gpi__nest *nest,
                                      gpi__operation_formula *to) {
    gpi__formula *f = &to->formula;
    int t, row;
    memset(to, 0, sizeof *to);
    f->nodes = to->nodes;
    f->accumulator = task->accumulator;
    f->parts = 1;
    f->n_width = GPI__WIDE;
    f->operand_count = GPI__OPERATION_OPERANDS;
    for (t = 0; t < GPI__OPERATION_OPERANDS; t++) {
        f->operands[t].kind = (uint8_t)(t < GPI__TENSORS          ? GEMMEPI_FULL
                                        : t == GPI__OPERAND_SCALE ? GEMMEPI_SCALAR
                                                                  : GEMMEPI_NUMBER);
        f->operands[t].dtype = (uint8_t)(t < GPI__TENSORS ? nest->dtype[t] : f->accumulator);
        f->operands[t].members = 1;
    }
    for (t = GPI__OUT_Y; t < GPI__TENSORS; t++)
        if (gpi__nest_has(nest, t)) {
            row = gpi__operation(operation)->made[t - GPI__OUT_Y];
            if (operation == GEMMEPI_OP_CAST && task->flags & GEMMEPI_CAST_SCALE)
                row = GPI__NODE_SCALED;
            f->operands[t].output = f->operands[t].used = 1;
            f->operands[t].node = (int16_t)gpi__put_operation_node(task, to, row);
        }
}

#endif
