/* A formula that says an epilogue is run as that, by its routes, cuBLASLt's own among them: the problem with the epilogue in the formula's
   place. Gates' gradients, which are faster as formulas, stay such, and where the two would differ all do. */
#ifndef GEMMEPI_PRODUCT_PARTS_COMPOSED_H
#define GEMMEPI_PRODUCT_PARTS_COMPOSED_H

#include "found_scale.h"
#include "inside.h"

/* >>what a formula says: an epilogue whose graph it has */

/* What it could be short for: its activation is the one that is there last, each operand is in the first slot for such. Returns how many
   epilogues that leaves: of two matrices either may be aux, and aux or the product the upstream gradient, of two halves either the gate. */
static int gpi__see_composition(const gpi__formula *f, gpi__composition *seen) {
    static const gpi__composition none = {0, 0, {-1, -1, -1, -1}};
    uint64_t flags[GPI__SLOTS] = {0, GEMMEPI_RESIDUAL, GEMMEPI_BIAS, GEMMEPI_BGRAD};
    const gpi__node *n;
    const gpi__formula_operand *o;
    int derives = 0;
    *seen = none;
    for (n = f->nodes; n < f->nodes + f->node_count; n++) {
        if (n->op == GPI__OP_MAX)
            seen->epilogue = GEMMEPI_RELU;
        if (n->op != GPI__OP_DERIVE && n->op != GPI__OP_ACTIVATE)
            continue;
        derives |= n->op == GPI__OP_DERIVE;
        seen->epilogue = gpi__activations[n->place].code;
        seen->parameter = n->args[1] >= 0 ? f->nodes[n->args[1]].number : 0;
    }
    seen->epilogue |= f->has_halves ? GEMMEPI_GATED : 0;
    flags[GPI__IN_AUX] = derives ? GEMMEPI_BACKWARD : GEMMEPI_AUX;
    for (o = f->operands; o < f->operands + f->operand_count; o++) {
        int is_aux = o->output || (derives && seen->slots[GPI__IN_AUX] < 0);
        int slot = o->reduction              ? GPI__IN_BIAS_GRAD
                   : o->kind != GEMMEPI_FULL ? GPI__IN_BIAS
                   : is_aux                  ? GPI__IN_AUX
                                             : GPI__IN_RESIDUAL;
        if (o->used && seen->slots[slot] >= 0)
            return 0;
        if (o->used)
            seen->slots[slot] = (int)(o - f->operands), seen->epilogue |= flags[slot];
    }
    if (!f->operands[GPI__RESULT].used || f->parts > 2 || (derives && f->has_halves))
        return 0;
    return derives ? 4 : f->has_halves ? 2 : 1;
}

typedef struct gpi__comparison {
    const gpi__formula *formula, *flags; /* the caller's, and what flags are short for */
    const int *slots;                    /* the caller's operand in each of theirs */
} gpi__comparison;

static int gpi__is_same(const gpi__comparison *c, int node, int as);

static int gpi__is_said_number(const gpi__comparison *c, int node, double number) {
    return c->formula->nodes[node].op == GPI__OP_NUMBER && c->formula->nodes[node].number == number;
}

/* Whether a node is the activation, or its derivative, that a node of flags is or has for its second factor. */
static int gpi__is_activation(const gpi__comparison *c, int node, const gpi__node *as) {
    const gpi__node *n = &c->formula->nodes[node];
    int is_derivative = as->op == GPI__OP_GRADIENT, of = as->args[as->op != GPI__OP_ACTIVATE], zero;
    gemmepi_epilogue code = gpi__activations[as->place].code;
    if (code == GEMMEPI_NONE && !is_derivative)
        return gpi__is_same(c, node, of);
    if (code == GEMMEPI_RELU && !is_derivative && n->op == GPI__OP_MAX) { /* of NaN, too */
        zero = gpi__is_said_number(c, n->args[1], 0);
        return gpi__is_said_number(c, n->args[zero], 0) && gpi__is_same(c, n->args[!zero], of);
    }
    return n->op == (is_derivative ? GPI__OP_DERIVE : GPI__OP_ACTIVATE) && n->place == as->place &&
           (n->args[1] < 0 || gpi__is_said_number(c, n->args[1], as->number)) &&
           gpi__is_same(c, n->args[0], of);
}

/* Whether a node is one of flags, but for the order of terms and factors. */
static int gpi__is_same(const gpi__comparison *c, int node, int as) {
    const gpi__node *n = &c->formula->nodes[node], *of = &c->flags->nodes[as];
    int activates = of->op == GPI__OP_GATE || of->op == GPI__OP_GRADIENT, turn;
    if (of->op == GPI__OP_ACTIVATE)
        return gpi__is_activation(c, node, of);
    if (n->op != (activates ? (int)GPI__OP_MUL : of->op))
        return 0;
    if (of->args[1] < 0)
        return n->place == (of->op == GPI__OP_OPERAND ? c->slots[of->place] : of->place) &&
               (of->args[0] < 0 || gpi__is_same(c, n->args[0], of->args[0]));
    for (turn = 0; turn < 2; turn++)
        if (gpi__is_same(c, n->args[turn], of->args[0]) &&
            (activates ? gpi__is_activation(c, n->args[!turn], of)
                       : gpi__is_same(c, n->args[!turn], of->args[1])))
            return 1;
    return 0;
}

/* Whether an operand is that of flags, an output with what it is assigned. */
static int gpi__is_same_operand(const gpi__comparison *c, int i, int as) {
    const gpi__formula_operand *o = &c->formula->operands[i], *of = &c->flags->operands[as];
    return o->kind == of->kind && o->members == of->members && o->periods == of->periods &&
           !o->output == !of->output && o->reduction == of->reduction &&
           (!o->output || gpi__is_same(c, o->node, of->node));
}

/* Whether the formula says what the problem does, whose operands it has in these slots. */
static int gpi__says_composition(const gpi__formula *f, const int *slots, const gpi__problem *composed) {
    gpi__flags_formula flags;
    gpi__comparison c;
    int s, is;
    gpi__formula_of_flags(composed, &flags);
    c.formula = f, c.flags = &flags.formula, c.slots = slots;
    is = gpi__is_same_operand(&c, GPI__RESULT, GPI__RESULT);
    for (s = 0; s < GPI__SLOTS; s++)
        is = is && (slots[s] < 0 || gpi__is_same_operand(&c, slots[s], s));
    return is;
}

/* >>whether it may be run so */

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

/* Whether what the formula says may be run as an epilogue: RELU's aux is a mask of bits, and BGRAD goes with BACKWARD or without activation. */
static int gpi__may_be_composed(const gpi__problem *problem, const gpi__problem *composed,
                                const gpi__composition *said) {
    const gpi__formula_operand *operands = problem->formula->placed.formula->operands;
    int s, is = !gpi__aux_is_mask(said->epilogue) && !gpi__finds_around(composed) &&
                !gpi__is_shorter_inside(problem, composed) && !gpi__may_store_over_residual(composed);
    if (gpi__has(composed, GEMMEPI_BGRAD))
        is = is && problem->accumulator != GEMMEPI_I32 &&
             (gpi__has(composed, GEMMEPI_BACKWARD) || gpi__activation(said->epilogue) == GEMMEPI_NONE);
    for (s = 0; s < GPI__SLOTS; s++)
        is = is && (said->slots[s] < 0 ||
                    gpi__side_types(problem, GPI__OPERAND_OF_SLOT(s)) >> operands[said->slots[s]].dtype & 1);
    return is;
}

/* Whether the formula says what an epilogue says, and may be run as that: then said and composed are filled in. */
static int gpi__find_composition(const gpi__problem *problem, gpi__composition *said,
                                 gpi__problem *composed) {
    const gpi__formula *f = problem->formula->placed.formula;
    gpi__composition seen;
    int turn, turns = gpi__half_group_of(problem) ? 0 : gpi__see_composition(f, &seen);
    for (turn = 0; turn < turns; turn++) {
        *said = seen;
        if (turn % 2)
            said->epilogue |= f->has_halves ? GEMMEPI_GATE_FIRST : GEMMEPI_UPSTREAM;
        if (turn / 2)
            said->slots[GPI__IN_AUX] = seen.slots[GPI__IN_RESIDUAL],
            said->slots[GPI__IN_RESIDUAL] = seen.slots[GPI__IN_AUX];
        *composed = gpi__composed_problem(problem, said);
        if (gpi__says_composition(f, said->slots, composed))
            return gpi__may_be_composed(problem, composed, said);
    }
    return 0;
}

#endif
