/* A formula that says an epilogue is run as that, by its routes, cuBLASLt's own among them: the problem with the epilogue in the formula's
   place. Gates' gradients, which are faster as formulas, stay such, and where the two would differ all do. */
#ifndef GEMMEPI_PRODUCT_PARTS_COMPOSED_H
#define GEMMEPI_PRODUCT_PARTS_COMPOSED_H

#include "found_scale.h"
#include "inside.h"

/* >>what a formula says. Where a function finds what it looks for, it notes what that is of an epilogue. */

/* The matrix that a node reads, or -1. */
static int gpi__matrix_of(const gpi__formula *f, int node) {
    const gpi__node *n = &f->nodes[node];
    return n->op == GPI__OP_OPERAND && f->operands[n->place].kind == GEMMEPI_FULL ? n->place : -1;
}

/* Whether a node is v, or with a bias their sum. */
static int gpi__is_product(const gpi__formula *f, const gpi__composition *said, int node) {
    const gpi__node *n = &f->nodes[node];
    int bias = said->slots[GPI__IN_BIAS], turn;
    for (turn = 0; turn < 2 && bias >= 0 && n->op == GPI__OP_ADD; turn++) {
        const gpi__node *x = &f->nodes[n->args[turn]], *y = &f->nodes[n->args[1 - turn]];
        if (x->op == GPI__OP_VALUE && y->op == GPI__OP_OPERAND && y->place == bias)
            return 1;
    }
    return bias < 0 && n->op == GPI__OP_VALUE;
}

/* An activation, or its derivative: returns what it is of, or -1 where its parameter is no number. */
static int gpi__note_activation(const gpi__formula *f, gpi__composition *said, const gpi__node *n) {
    const gpi__node *second = n->args[1] >= 0 ? &f->nodes[n->args[1]] : NULL;
    said->epilogue |= (uint64_t)gpi__activations[n->place].code;
    if (second && second->op != GPI__OP_NUMBER)
        return -1;
    if (second)
        said->parameter = second->number;
    return n->args[0];
}

/* The same of any node: where it is none, it is NONE's. max(x, 0) is RELU, of NaN, too. */
static int gpi__find_activation(const gpi__formula *f, gpi__composition *said, int node) {
    const gpi__node *n = &f->nodes[node], *second = n->args[1] >= 0 ? &f->nodes[n->args[1]] : NULL;
    if (n->op == GPI__OP_ACTIVATE)
        return gpi__note_activation(f, said, n);
    if (n->op != GPI__OP_MAX || second->op != GPI__OP_NUMBER || second->number != 0)
        return node;
    said->epilogue |= GEMMEPI_RELU;
    return n->args[0];
}

static int gpi__is_activation(const gpi__formula *f, gpi__composition *said, int node) {
    node = gpi__find_activation(f, said, node);
    return !f->has_halves && node >= 0 && gpi__is_product(f, said, node);
}

/* Whether these are a half of the product and an activation of the other. */
static int gpi__is_gate(const gpi__formula *f, gpi__composition *said, int value, int gate) {
    const gpi__node *x = &f->nodes[value], *y;
    gate = gpi__find_activation(f, said, gate);
    y = gate < 0 ? x : &f->nodes[gate];
    if (x->op != GPI__OP_PART || y->op != GPI__OP_PART || x->place == y->place ||
        f->mode != GPI__LEFT_RIGHT || f->parts != 2 || f->operands[GPI__RESULT].members != 1)
        return 0;
    said->epilogue |= GEMMEPI_GATED;
    if (x->place && gpi__activation(said->epilogue) != GEMMEPI_NONE)
        said->epilogue |= GEMMEPI_GATE_FIRST;
    return gpi__is_product(f, said, x->args[0]) && gpi__is_product(f, said, y->args[0]);
}

/* Whether these are the upstream gradient and a derivative, of which one reads the product and the other a matrix. */
static int gpi__is_gradient(const gpi__formula *f, gpi__composition *said, int upstream, int derivative) {
    int of, aux;
    if (f->nodes[derivative].op != GPI__OP_DERIVE || f->has_halves || said->slots[GPI__IN_AUX] >= 0)
        return 0;
    of = gpi__note_activation(f, said, &f->nodes[derivative]);
    aux = gpi__matrix_of(f, upstream);
    said->epilogue |= aux >= 0 ? GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM : GEMMEPI_BACKWARD;
    if (of >= 0 && aux < 0) {
        aux = gpi__matrix_of(f, of);
        of = upstream;
    }
    said->slots[GPI__IN_AUX] = aux;
    return aux >= 0 && of >= 0 && gpi__is_product(f, said, of);
}

/* Where an epilogue has an output or a vector, by which it is told; GPI__SLOTS: nowhere. A matrix that is read may be aux or residual. */
static int gpi__slot_of(const gpi__formula *f, const gpi__formula_operand *o) {
    int is_column = o->kind == GEMMEPI_PER_COLUMN;
    if (!o->output)
        return is_column && !o->periods ? GPI__IN_BIAS : GPI__SLOTS;
    if (!o->reduction)
        return GPI__IN_AUX;
    return is_column && gpi__reductions[o->reduction].op == GPI__REDUCE_SUM &&
                   o->node == f->operands[GPI__RESULT].node
               ? GPI__IN_BIAS_GRAD
               : GPI__SLOTS;
}

/* Finds the outputs and the bias; returns how many matrices are read, or -1 where something has no place in an epilogue. */
static int gpi__cast_operands(const gpi__formula *f, gpi__composition *said) {
    static const uint64_t flags[GPI__SLOTS] = {GEMMEPI_AUX, 0, GEMMEPI_BIAS, GEMMEPI_BGRAD};
    int i, slot, matrices = 0;
    for (i = 0; i < f->operand_count; i++) {
        const gpi__formula_operand *o = &f->operands[i];
        if (!o->used)
            continue;
        if (!o->output && o->kind == GEMMEPI_FULL && !o->periods) {
            matrices++;
            continue;
        }
        slot = gpi__slot_of(f, o);
        if (slot == GPI__SLOTS || said->slots[slot] >= 0)
            return -1;
        said->slots[slot] = i;
        said->epilogue |= flags[slot];
    }
    return matrices;
}

/* Whether D is an activation, a gate or a gradient, plus the residual, and what is saved the product. */
static int gpi__says_composition(const gpi__formula *f, gpi__composition *said) {
    static const gpi__composition none = {0, 0, {-1, -1, -1, -1}};
    int d = f->operands[GPI__RESULT].node, matrices, turn, is;
    const gpi__node *n;
    gpi__composition start = none;
    if (!f->reads_value || !f->operands[GPI__RESULT].used)
        return 0;
    matrices = gpi__cast_operands(f, &start);
    for (turn = 0, n = &f->nodes[d]; turn < 2 && n->op == GPI__OP_ADD && start.slots[GPI__IN_RESIDUAL] < 0;
         turn++)
        if (gpi__matrix_of(f, n->args[turn]) >= 0) {
            start.slots[GPI__IN_RESIDUAL] = gpi__matrix_of(f, n->args[turn]);
            start.epilogue |= GEMMEPI_RESIDUAL;
            d = n->args[1 - turn];
        }
    n = &f->nodes[d];
    *said = start;
    is = gpi__is_activation(f, said, d);
    for (turn = 0; turn < 4 && !is && n->op == GPI__OP_MUL; turn++) {
        *said = start;
        is = (turn < 2 ? gpi__is_gate : gpi__is_gradient)(f, said, n->args[turn % 2], n->args[1 - turn % 2]);
    }
    return is &&
           matrices == (said->slots[GPI__IN_RESIDUAL] >= 0) + ((said->epilogue & GEMMEPI_BACKWARD) != 0) &&
           (start.slots[GPI__IN_AUX] < 0 ||
            gpi__is_product(f, said, f->operands[start.slots[GPI__IN_AUX]].node));
}

/* >>whether it may be run so */

/* Types and what lies with them: whether what the formula has in a slot may be the epilogue's tensor. */
static int gpi__may_be_operand(const gpi__problem *problem, int operand, int i) {
    const gpi__placed_formula *placed = &problem->formula->placed;
    return i < 0 || (gpi__side_types(problem, operand) >> placed->formula->operands[i].dtype & 1 &&
                     (operand < GPI__BIAS || (!placed->operands[i].scale && !placed->operands[i].amax)));
}

/* Of a problem with a formula, and of what that says. */
static gpi__problem gpi__composed_problem(const gpi__problem *problem, const gpi__composition *said) {
    const gpi__placed_formula *placed = &problem->formula->placed;
    gpi__problem composed = gpi__problem_with_slots(problem, said);
    int aux = said->slots[GPI__IN_AUX], bias_grad = said->slots[GPI__IN_BIAS_GRAD];
    if (bias_grad >= 0 && placed->formula->operands[bias_grad].accumulate)
        composed.epilogue |= GEMMEPI_ACCUMULATE_BIAS_GRAD;
    if (gpi__has(&composed, GEMMEPI_AUX) && placed->operands[aux].amax) {
        composed.flags |= GEMMEPI_AMAX_AUX;
        (void)gpi__convert_amax(&composed, GEMMEPI_AMAX_AUX, GPI__AMAX_AUX, GPI__AUX);
    }
    composed.formula = NULL;
    gpi__list_operands(&composed);
    return composed;
}

/* Whether aux is stored where a run may have the residual, which a formula reads first and an epilogue afterwards. */
static int gpi__may_store_over_residual(const gpi__problem *composed) {
    return gpi__has(composed, GEMMEPI_AUX) && gpi__has(composed, GEMMEPI_RESIDUAL) &&
           gpi__same_layout(composed, &composed->views[GPI__AUX], &composed->views[GPI__RESIDUAL]);
}

/* Whether the epilogue's activation is exact where the formula's is short, which inside a kernel takes less: of 16 bits operands go into one,
   and a sum of columns does not, as a formula's. */
static int gpi__is_shorter_inside(const gpi__problem *problem, const gpi__problem *composed) {
    int has_forms = gpi__activation(composed->epilogue) != GEMMEPI_NONE &&
                    gpi__activation(composed->epilogue) != GEMMEPI_RELU;
    return has_forms && problem->formula->placed.formula->is_short && gpi__wants_exact(composed) &&
           problem->views[GPI__A].bits > 8 && problem->views[GPI__B].bits > 8 &&
           !gpi__has(composed, GEMMEPI_BGRAD);
}

/* Why what the formula says is yet no composition, or NULL. */
static const char *gpi__not_composed(const gpi__problem *problem, const gpi__problem *composed,
                                     const gpi__composition *said) {
    int s;
    for (s = 0; s < GPI__SLOTS; s++)
        if (!gpi__may_be_operand(problem, GPI__OPERAND_OF_SLOT(s), said->slots[s]))
            return "an operand has a type, a scale or an amax that epilogues do not have";
    if (gpi__aux_is_mask(said->epilogue))
        return "RELU's aux is a mask of bits";
    if (gpi__has(composed, GEMMEPI_BGRAD) && !gpi__has(composed, GEMMEPI_BACKWARD) &&
        gpi__activation(said->epilogue) != GEMMEPI_NONE)
        return "BGRAD goes with BACKWARD or with the activation NONE";
    if (problem->accumulator == GEMMEPI_I32 && (!gpi__activation_has(said->epilogue, GPI__OF_INTEGERS) ||
                                                gpi__has(composed, GEMMEPI_BACKWARD | GEMMEPI_BGRAD)))
        return "its epilogue has no meaning in I32";
    if (gpi__is_shorter_inside(problem, composed))
        return "its activation is short, that of the epilogue exact";
    if (gpi__may_store_over_residual(composed))
        return "what is saved may be where the residual is, which an epilogue reads later";
    return NULL;
}

/* Whether the formula says what an epilogue says, and may be run as that: then said and composed are filled in. */
static int gpi__find_composition(const gpi__problem *problem, gpi__composition *said,
                                 gpi__problem *composed) {
    if (gpi__half_group_of(problem) || !gpi__says_composition(problem->formula->placed.formula, said))
        return 0;
    *composed = gpi__composed_problem(problem, said);
    return !gpi__finds_around(composed) && !gpi__not_composed(problem, composed, said);
}

#endif
