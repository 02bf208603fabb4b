/* Which formulas a kernel that has an epilogue (kernels/epilogue_inside.cuh) accepts inside, and the problem as such a kernel sees it. Of the
   caller's formula three inputs may come where an epilogue has bias, aux and residual, whose ways of getting there are short, and an
   output leave where it has AUX. */
#ifndef GEMMEPI_PRODUCT_PARTS_INSIDE_RULES_H
#define GEMMEPI_PRODUCT_PARTS_INSIDE_RULES_H

#include "../../problem/epilogue_graph.h"
#include "../../problem/scales.h"
#include "../../elementwise/formula_pass.h"

/* An epilogue and its parameter, with the number of the formula's operand in each slot, -1: none. */
typedef struct gpi__composition {
    uint64_t epilogue;
    double parameter;
    int slots[GPI__SLOTS];
} gpi__composition;

/* >>what is inside */

/* Members of v and of D in a unit, and whether the epilogue has halves for them. */
static int gpi__members_of_v(const gpi__formula *f) {
    return gpi__members(f, f->n_width);
}

/* Whether an epilogue stands for the two members that D has that may read aux; BACKWARD alone must, UPSTREAM need not. */
static int gpi__wants_aux(const gpi__formula *f) {
    return f->operands[GPI__RESULT].members > 1;
}

static int gpi__must_have_aux(const gpi__formula *f) {
    return gpi__wants_aux(f) && gpi__members_of_v(f) == 1;
}

static int gpi__has_small_indices(const gpi__problem *problem) {
    return problem->m <= INT_MAX && problem->n <= INT_MAX / 2 && problem->k <= INT_MAX &&
           problem->batch <= INT_MAX;
}

static int gpi__is_interleaved(const gpi__formula *f) {
    return f->has_halves && f->mode == GPI__EVEN_ODD;
}

/* Halves of groups, of which a kernel's tiles are made: columns of either half, 0 where halves are of the whole. Every second column
   comes to a kernel and goes from it as such of 32 do. */
static int64_t gpi__half_group_of(const gpi__problem *problem) {
    const gpi__formula *f = problem->formula->placed.formula;
    int64_t units = problem->n / gpi__members_of_v(f);
    if (gpi__is_interleaved(f))
        return 32;
    return f->has_halves && f->group && f->group / 2 != units ? f->group / 2 : 0;
}

/* What may come as a matrix or a vector of an epilogue does: the operand's element is one of these, and it is all of one piece. */
static int gpi__fits_slot(const gpi__problem *problem, int i, int operand, int members) {
    const gpi__formula_operand *o = &problem->formula->placed.formula->operands[i];
    const gpi__placed_operand *place = &problem->formula->placed.operands[i];
    return o->used & GPI__BY_PLACE && o->members == members && !place->scale && !place->amax && !o->periods &&
           o->kind == (operand == GPI__BIAS ? GEMMEPI_PER_COLUMN : GEMMEPI_FULL) &&
           gpi__side_types(problem, operand) >> o->dtype & 1;
}

/* The first input that fits and is not `but`. */
static int gpi__find_for_slot(const gpi__problem *problem, int operand, int members, int but) {
    const gpi__formula *f = problem->formula->placed.formula;
    int i;
    for (i = 0; i < f->operand_count; i++)
        if (i != but && !f->operands[i].output && gpi__fits_slot(problem, i, operand, members))
            return i;
    return -1;
}

/* The first output that may leave as AUX does, in as many halves as v has. */
static int gpi__find_written(const gpi__problem *problem) {
    const gpi__formula *f = problem->formula->placed.formula;
    int i;
    for (i = 0; i < f->operand_count && !gpi__wants_aux(f) && !problem->found_scale; i++)
        if (f->operands[i].output && gpi__fits_slot(problem, i, GPI__AUX, gpi__members_of_v(f)))
            return i;
    return -1;
}

/* The epilogue that a kernel with the formula inside has: it says which operands come and go as those of an epilogue do. */
static gpi__composition gpi__slots_of(const gpi__problem *problem) {
    const gpi__formula *f = problem->formula->placed.formula;
    int v = gpi__members_of_v(f), d = f->operands[GPI__RESULT].members, written = gpi__find_written(problem);
    int saved = gpi__wants_aux(f) && v == 1 ? 2 : 1, aux = -1;
    gpi__composition said = {0, 0, {-1, -1, -1, -1}};
    int *slots = said.slots;
    if (gpi__wants_aux(f))
        aux = gpi__find_for_slot(problem, GPI__AUX, saved, -1);
    slots[GPI__IN_BIAS] = gpi__find_for_slot(problem, GPI__BIAS, v, -1);
    slots[GPI__IN_RESIDUAL] = gpi__find_for_slot(problem, GPI__RESIDUAL, d, aux);
    if (v == 1 && d == 1 && slots[GPI__IN_RESIDUAL] >= 0) /* a second matrix */
        aux = gpi__find_for_slot(problem, GPI__AUX, 1, slots[GPI__IN_RESIDUAL]);
    slots[GPI__IN_AUX] = written >= 0 ? written : aux;
    said.epilogue = (gpi__members_of_v(f) > 1 || gpi__wants_aux(f) ? GEMMEPI_GATED : 0) |
                    (gpi__wants_aux(f) && !gpi__must_have_aux(f) ? GEMMEPI_UPSTREAM : 0) |
                    (slots[GPI__IN_BIAS] >= 0 ? GEMMEPI_BIAS : 0) |
                    (slots[GPI__IN_RESIDUAL] >= 0 ? GEMMEPI_RESIDUAL : 0) |
                    (written >= 0 ? GEMMEPI_AUX
                     : aux >= 0   ? GEMMEPI_BACKWARD
                                  : 0);
    return said;
}

/* Reductions along rows: of each row a kernel leaves a state of so many columns (of either half), for a launch behind it to join. They are
   those of a box of every kernel. */
static int gpi__state_columns(const gpi__problem *problem) {
    return problem->views[GPI__D].bits == 32 ||
                   (GPI__FORMULA(problem) && problem->formula->placed.formula->has_halves)
               ? 32
               : 64;
}

static int gpi__reduces_inside(const gpi__problem *problem) {
    return gpi__has_reductions(problem->formula->placed.formula, GPI__OF_ANY_SORT);
}

/* Whether the 32 columns that a row's lanes have lie in one period or block, and indices are of 32 bits. Any column is read by index. */
static int gpi__repeats_inside(const gpi__problem *problem, int i) {
    const gpi__formula_operand *o = &problem->formula->placed.formula->operands[i];
    const gpi__placed_operand *place = &problem->formula->placed.operands[i];
    int64_t units = problem->n / gpi__members_of_v(problem->formula->placed.formula);
    int by_index = o->used == GPI__BY_INDEX;
    if (!o->periods || (by_index && o->kind != GEMMEPI_FULL))
        return 1;
    if (!gpi__has_small_indices(problem) || place->row_period > INT_MAX || place->column_period > INT_MAX)
        return 0;
    return by_index ||
           (place->column_period % 32 == 0 && (!place->column_period || o->members == 1 ||
                                               (gpi__is_interleaved(problem->formula->placed.formula)
                                                    ? place->column_period % 64 == 0
                                                    : gpi__half_group_of(problem) || units % 32 == 0)));
}

/* Reductions of columns and of all that a kernel adds up column by column: sums and largest numbers. */
static int gpi__adds_up_columns(const gpi__formula_operand *o) {
    return gpi__is_reduced(o) && !gpi__has_rows(o->kind) &&
           (gpi__op_of(o) == GPI__REDUCE_SUM || gpi__op_of(o) == GPI__REDUCE_MAX);
}

/* Their lines, of each member one, for which a kernel has registers and memory. */
#define GPI__MOST_COLUMN_LINES 4
static int gpi__column_lines_inside(const gpi__problem *problem) {
    const gpi__formula *f = problem->formula->placed.formula;
    int i, lines = 0;
    for (i = 0; i < f->operand_count; i++)
        lines += gpi__adds_up_columns(&f->operands[i]) ? f->operands[i].members : 0;
    return lines;
}

/* Why no kernel that has an epilogue takes an operand, or NULL. */
static const char *gpi__operand_is_not_inside(const gpi__problem *problem, int i) {
    const gpi__formula_operand *o = &problem->formula->placed.formula->operands[i];
    const gpi__placed_operand *place = &problem->formula->placed.operands[i];
    if (!o->used)
        return NULL;
    if (o->output && o->group)
        return o->members == 1 && o->group % gpi__state_columns(problem) == 0
                   ? NULL
                   : "its reduction is of groups of columns that are no multiple of the 64 (of F32 or beside halves 32) whose "
                     "states a kernel leaves, or of two halves, which the pass takes";
    if (o->output && o->reduction)
        return o->kind == GEMMEPI_PER_ROW || gpi__adds_up_columns(o)
                   ? NULL
                   : "its logsumexp or argmax is of columns as D is stored, which the pass takes";
    if (o->output && (o->kind != GEMMEPI_FULL || place->scale || place->amax))
        return "an output besides D that is not FULL, or has a scale or amax, is left to the pass";
    if (gpi__is_packed(o->dtype))
        return "an operand of 4 bits is read by the pass";
    if (!gpi__repeats_inside(problem, i) && o->kind == GEMMEPI_BLOCKED)
        return "its BLOCKED operand has blocks of neither one column nor a multiple of 32, as D is stored, which the pass "
               "reads";
    if (!gpi__repeats_inside(problem, i))
        return "a table that repeats after so many columns, or in so many, is read by the pass";
    return NULL;
}

/* depth comes as a NUMBER behind the operands. */
static int gpi__reads_depth(const gpi__formula *f) {
    return f->indices >> GPI__INDEX_DEPTH & 1;
}

/* Why no kernel that has an epilogue takes the formula, or NULL. */
static const char *gpi__not_inside(const gpi__problem *problem) {
    const gpi__formula *f = problem->formula->placed.formula;
    const char *reason = NULL;
    int i;
    if (f->operand_count + gpi__reads_depth(f) > GPI__INSIDE_PLACES)
        return "it has more than 12 operands, of which depth is one";
    if (f->has_halves && f->parts > 2)
        return "its columns are in more than two parts, which the pass takes";
    if (!f->reads_value || !(gpi__stores_d(problem->formula) || gpi__reduces_inside(problem)))
        return "it does not read v, or stores neither D nor reductions";
    if (gpi__half_group_of(problem) % 64 && gpi__half_group_of(problem) != 32)
        return "its groups are of neither 64 columns nor a multiple of 128, of which a kernel's tiles are made";
    if (gpi__is_interleaved(f) && (gpi__reduces_inside(problem) || f->uses_uniform))
        return "its halves are every second column, of which registers are too few for reductions and random numbers";
    if (gpi__column_lines_inside(problem) > GPI__MOST_COLUMN_LINES)
        return "it has more than 4 reductions of columns or of all, where two halves are counted twice";
    for (i = 0; i < f->operand_count && !reason; i++)
        reason = gpi__operand_is_not_inside(problem, i);
    if (!reason && gpi__must_have_aux(f) && gpi__slots_of(problem).slots[GPI__IN_AUX] < 0)
        reason = "D is twice as wide as what is computed of v, and no operand is FULL and as wide as that";
    return reason;
}

#define GPI__SHORT_WAVE 14 /* cycles of sin and cos of 16 bits */

/* Cycles of a node of the formula, of a warpgroup for an element in each of its threads, roughly. */
static double gpi__node_cycles(const gpi__formula *f, const gpi__node *node) {
    if (gpi__is_of_activation(node->op))
        return gpi__activations[node->place].cycles;
    if (gpi__divides_by_number(f, node))
        return gpi__operation_of(GPI__OP_MUL)->cycles;
    if (f->is_short && (node->op == GPI__OP_SIN || node->op == GPI__OP_COS))
        return GPI__SHORT_WAVE;
    return node->op >= GPI__LEAVES ? gpi__operation_of(node->op)->cycles : 0;
}

/* Whether an operand is a matrix that comes straight from memory, or goes there. */
static int gpi__is_direct(const gpi__problem *problem, const gpi__composition *said, int i) {
    const gpi__formula_operand *o = &problem->formula->placed.formula->operands[i];
    return o->used & GPI__BY_PLACE && o->kind >= GEMMEPI_FULL &&
           !gpi__is_in_blocks(o, &problem->formula->placed.operands[i]) && i != said->slots[GPI__IN_AUX] &&
           i != said->slots[GPI__IN_RESIDUAL];
}

/* Likewise of the formula: of the operations, and of operands that come from memory. */
static double gpi__inside_cycles(const gpi__problem *problem) {
    const gpi__formula *f = problem->formula->placed.formula;
    gpi__composition said = gpi__slots_of(problem);
    double cycles = 0;
    int i;
    for (i = 0; i < f->node_count; i++)
        cycles += gpi__node_cycles(f, &f->nodes[i]);
    for (i = 0; i < f->operand_count; i++)
        if (gpi__is_reduced(
                &f->operands[i])) /* fewer than they take: on an H100 wide tiles gain more, 1.07 for 1.41 */
            cycles += gpi__op_of(&f->operands[i]) == GPI__REDUCE_LOGSUMEXP ? 2 : 1;
        else if (gpi__is_direct(problem, &said, i))
            cycles += 10 * f->operands[i].members;
    return cycles;
}

/* >>the problem as a kernel sees it */

/* The operand where the epilogue has it, with its scale: one number for all items. */
static void gpi__fill_slot(gpi__problem *problem, int operand, int i) {
    gpi__view *view = &problem->views[operand];
    if (i < 0)
        return;
    *view = problem->formula->views[i];
    view->alignment = gpi__alignment_for(problem, view);
    if (!problem->formula->placed.operands[i].scale)
        return;
    view->scale = GEMMEPI_SCALE_TENSOR;
    view = &problem->views[GPI__SCALE_OF(operand)];
    view->lines = view->length = view->ld = 1;
    (void)gpi__convert_scale_numbers(problem, GPI__SCALE_OF(operand), GEMMEPI_F32,
                                     4); /* nothing that is checked is given */
}

/* The problem with an epilogue that has the formula's operands; the list is not yet theirs. */
static gpi__problem gpi__problem_with_slots(const gpi__problem *problem, const gpi__composition *said) {
    gpi__problem with = *problem;
    int s;
    with.epilogue = said->epilogue;
    with.parameter = said->parameter;
    for (s = 0; s < GPI__SLOTS; s++)
        gpi__fill_slot(&with, GPI__OPERAND_OF_SLOT(s), said->slots[s]);
    return with;
}

/* Of a problem whose formula gpi__not_inside lets pass. Its epilogue says where operands are; what is computed is the formula. */
static gpi__problem gpi__problem_inside(const gpi__problem *problem) {
    gpi__composition said = gpi__slots_of(problem);
    gpi__problem inside = gpi__problem_with_slots(problem, &said);
    inside.flags |= GPI__IS_INSIDE | (gpi__stores_d(problem->formula) ? 0 : GPI__ONLY_SUMS);
    gpi__list_operands(&inside);
    return inside;
}

/* Whether runs of eight of all operands that have no slot begin at whole units. */
static int gpi__inside_is_aligned(const gpi__problem *problem,
                                  int (*is_aligned)(const gpi__problem *problem, const gpi__view *view)) {
    const gpi__formula *f = problem->formula->placed.formula;
    int i;
    for (i = 0; i < f->operand_count; i++) {
        gpi__view view = problem->formula->views[i];
        view.alignment = problem->alignment;
        if (f->operands[i].used & GPI__BY_PLACE && f->operands[i].kind >= GEMMEPI_PER_COLUMN &&
            !gpi__is_in_blocks(&f->operands[i], &problem->formula->placed.operands[i]) &&
            !gpi__is_reduced(&f->operands[i]) && !is_aligned(problem, &view))
            return 0;
    }
    return !f->has_halves || gpi__half_columns(problem) % 8 == 0;
}

#endif
