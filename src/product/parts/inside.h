/* The formula inside a kernel that has an epilogue (kernels/epilogue_inside.cuh), the caller's or that of flags: which of the caller's it
   takes, the problem as such a kernel sees it, and what it is given. Of the caller's three inputs may come where an epilogue has bias, aux and residual, whose ways of getting there are short, and an output
   leave where it has AUX. */
#ifndef GEMMEPI_PRODUCT_PARTS_INSIDE_H
#define GEMMEPI_PRODUCT_PARTS_INSIDE_H

#include "../../device/launch.h"
#include "../../kernels/params.h"
#include "../../problem/arguments.h"
#include "../../problem/epilogue_graph.h"
#include "../../elementwise/formula_pass.h"
#include "../../problem/scales.h"

/* An epilogue and its parameter, with the number of the formula's operand in each slot, -1: none. */
typedef struct gpi__composition {
    uint64_t epilogue;
    double parameter;
    int slots[GPI__SLOTS];
} gpi__composition;

/* What the plan of a problem with a formula has. */
typedef struct gpi__formula_step {
    int is_composed; /* the plan of v is that of an epilogue, which the formula says; nothing is behind it */
    int is_inside;   /* the plan of v has the formula in its kernel; there is no pass */
    gpi__composition said;  /* then: the epilogue, of a formula inside that in whose places operands are */
    const char *not_inside; /* else: why */
    gpi__formula_pass pass;
    size_t product_bytes; /* of v in workspace; 0: there is none */
} gpi__formula_step;

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

/* >>text */

/* Instructions of a reduction for an element. */
static int gpi__reduction_instructions(const gpi__formula_operand *o) {
    return gpi__op_of(o) == GPI__REDUCE_LOGSUMEXP ? 6 : gpi__op_of(o) == GPI__REDUCE_ARGMAX ? 5 : 1;
}

/* Instructions for an element of v, about: as many as cycles, but of exact activations twice as many. */
static double gpi__inside_instructions(const gpi__problem *problem) {
    const gpi__formula *f = problem->formula->placed.formula;
    double count = 0;
    int i;
    for (i = 0; i < f->node_count; i++)
        count += gpi__node_cycles(f, &f->nodes[i]) *
                 (!f->is_short && gpi__is_of_activation(f->nodes[i].op) ? 2 : 1);
    count /= gpi__members_of_v(f);
    for (i = 0; i < f->operand_count; i++)
        if (gpi__is_reduced(&f->operands[i]))
            count += gpi__reduction_instructions(&f->operands[i]);
    return count;
}

/* A thread of the kernel for Hopper has 128 elements of a tile, 64 in the boxes of the same columns, 32 in a box, and an H100's cache of
   instructions some 2,000: of those beyond it a warp issues one in two to three cycles. So many an element leave room for the rest. */
#define GPI__UNROLLED_INSTRUCTIONS 8
#define GPI__ROLLED_INSTRUCTIONS   30

/* Whether ptxas would lack registers without: of long formulas, such with matrices straight from memory, and of two halves two of 32 bits
   beside a residual, or a bias and such a matrix, or any beside an output, and of groups those of 32 bits, and lines of sums of columns. */
static int gpi__lacks_registers_inside(const gpi__problem *problem) {
    const gpi__formula *f = problem->formula->placed.formula;
    gpi__composition said = gpi__slots_of(problem);
    int wide = gpi__wants_aux(f) && !gpi__must_have_aux(f) && problem->views[GPI__D].bits == 32;
    int i, direct = 0;
    for (i = 0; i < f->operand_count; i++)
        direct += gpi__is_direct(problem, &said, i);
    return f->node_count > 24 || gpi__column_lines_inside(problem) > 1 || direct > 1 ||
           (direct && f->operand_count > 3) ||
           (wide && (said.slots[GPI__IN_RESIDUAL] >= 0 || (direct && said.slots[GPI__IN_BIAS] >= 0))) ||
           (said.epilogue & GEMMEPI_AUX && gpi__members_of_v(f) > 1) ||
           (problem->grouping.groups && problem->views[GPI__D].bits == 32);
}

/* Whether the kernel for Hopper has the formula's instructions once, not once for each box: 1 of columns, 2 of columns and rows. Reductions
   beside D take registers, as sums of columns do. */
static int gpi__rolls_inside(const gpi__problem *problem) {
    double instructions = gpi__inside_instructions(problem);
    if (instructions > GPI__ROLLED_INSTRUCTIONS)
        return 2;
    return instructions > GPI__UNROLLED_INSTRUCTIONS || gpi__lacks_registers_inside(problem) ||
           (gpi__reduces_inside(problem) && gpi__stores_d(problem->formula)) ||
           gpi__column_lines_inside(problem);
}

/* From so many rows on the errors of short forms are lost in a sum over them, if the rows differ: for |v| < 5 they are some 5
   units of F32 in the square mean, and one in the mean (of SOFTPLUS two around -3), where a sum's bound has room for 4. */
#define GPI__SHORT_SUM_ROWS 64

/* Whether short forms of the activation would be seen: in results of more than 16 bits, in amax, and in sums of few values (where m may
   not decide, in all sums). What a residual leaves where it cancels the activation has their error, too, which the bound says: on an H100
   exact ones took SILU with a residual 1.48 of the time at 8192 x 3072 x 768. */
static int gpi__wants_exact(const gpi__problem *problem) {
    if (GPI__FORMULA(problem))
        return !problem->formula->placed.formula->is_short;
    return problem->views[GPI__D].bits > 16 ||
           (gpi__has_operand(problem, GPI__AMAX_D) && !(problem->flags & GPI__AMAX_TO_HISTORY)) ||
           (gpi__has(problem, GEMMEPI_BGRAD) &&
            (problem->m < GPI__SHORT_SUM_ROWS || gpi__is_invariant(problem)));
}

/* What a kernel computes, and in which of an epilogue's places it has the operands, -1: in none. */
typedef struct gpi__inside {
    const gpi__formula *formula;
    int slots[GPI__SLOTS + 1]; /* of inputs, the last of the rows' factors */
    int written;               /* the output that leaves as AUX does */
    gpi__emitted_beside beside;
    gpi__flags_formula of_flags;
} gpi__inside;

/* That of flags: of D, even where sums of it are all that is wanted. */
static void gpi__look_inside_flags(const gpi__problem *problem, gpi__inside *inside) {
    gpi__formula *f = &inside->of_flags.formula;
    int s;
    gpi__formula_of_flags(problem, &inside->of_flags);
    inside->formula = f;
    f->is_short = !gpi__wants_exact(problem);
    if (gpi__has(problem, GEMMEPI_BGRAD))
        gpi__assign_operand_of_flags(&inside->of_flags, GPI__RESULT, f->operands[GPI__IN_BIAS_GRAD].node);
    if (f->operands[GPI__IN_AUX].dtype == GPI__BIT_OF_MASK)
        f->operands[GPI__IN_AUX].dtype = (uint8_t)problem->accumulator; /* of numbers 0 and 1 */
    for (s = 0; s <= GPI__SLOTS; s++)
        inside->slots[s] = f->operands[s].used && !f->operands[s].output ? s : -1;
    inside->written = gpi__has(problem, GEMMEPI_AUX) ? (int)GPI__IN_AUX : -1;
}

static void gpi__look_inside_formula(const gpi__problem *problem, gpi__inside *inside) {
    gpi__composition said = gpi__slots_of(problem);
    inside->formula = problem->formula->placed.formula;
    memcpy(inside->slots, said.slots, sizeof said.slots);
    inside->slots[GPI__IN_FACTOR] = inside->written = -1;
    if (said.epilogue & GEMMEPI_AUX) {
        inside->written = said.slots[GPI__IN_AUX];
        inside->slots[GPI__IN_AUX] = -1;
    }
}

/* The first reduction of columns or of all that is of D, or -1. */
static int gpi__summed_result(const gpi__formula *f) {
    int i;
    for (i = 0; i < f->operand_count; i++)
        if (f->operands[GPI__RESULT].used && gpi__adds_up_columns(&f->operands[i]) &&
            f->operands[i].node == f->operands[GPI__RESULT].node &&
            !gpi__reductions[f->operands[i].reduction].of_negatives)
            return i;
    return -1;
}

/* It points into itself. */
static void gpi__look_inside(const gpi__problem *problem, gpi__inside *inside) {
    if (GPI__FORMULA(problem))
        gpi__look_inside_formula(problem, inside);
    else
        gpi__look_inside_flags(problem, inside);
    inside->beside = gpi__beside_product(inside->formula, inside->slots[GPI__IN_BIAS], inside->written,
                                         !(problem->found_scale && inside->formula->has_halves));
    inside->beside.summed = gpi__summed_result(inside->formula);
}

/* Of the caller's formula: the operands that have no slot, and what it takes of a kernel. */
static void gpi__append_formula_defines(gpi__text *text, const gpi__problem *problem) {
    const gpi__formula *f = problem->formula->placed.formula;
    unsigned scaled = 0;
    int i;
    for (i = 0; i < f->operand_count; i++)
        scaled |= (unsigned)(problem->formula->placed.operands[i].scale && f->operands[i].used) << i;
    gpi__append(text, "#define GEMMEPI_OF_FLAGS 0\n#define GEMMEPI_INSIDE_SCALED 0x%x\n", scaled);
    gpi__append(text, "#define GEMMEPI_FORMULA_ROLLS %d\n#define GEMMEPI_FORMULA_LACKS %d\n",
                gpi__rolls_inside(problem), gpi__lacks_registers_inside(problem));
    gpi__append(text, "#define GEMMEPI_INSIDE_REDUCES %d\n", gpi__has_reductions(f, GPI__ALONG_ROWS));
    gpi__append(text, "#define GEMMEPI_INSIDE_WHOLE %d\n#define GEMMEPI_STATE_COLUMNS %d\n",
                gpi__half_columns(problem) % gpi__state_columns(problem) == 0, gpi__state_columns(problem));
    if (gpi__reads_depth(f))
        gpi__append(text, "#define GEMMEPI_IN_DEPTH %d\n", (int)f->operand_count);
    if (gpi__half_group_of(problem))
        gpi__append(text, "#define GEMMEPI_HALF_GROUP %lld\n", (long long)gpi__half_group_of(problem));
    if (gpi__is_interleaved(f))
        gpi__append(text, "#define GEMMEPI_INTERLEAVED 1\n");
}

/* What an epilogue's defines have besides. */
static void gpi__append_inside_defines(gpi__text *text, const gpi__problem *problem,
                                       const gpi__inside *inside) {
    const int *slots = inside->slots;
    gpi__append(text, "#define GEMMEPI_IN_BIAS %d\n#define GEMMEPI_IN_AUX %d\n", slots[GPI__IN_BIAS],
                slots[GPI__IN_AUX]);
    gpi__append(text, "#define GEMMEPI_IN_RESIDUAL %d\n#define GEMMEPI_IN_FACTOR %d\n",
                slots[GPI__IN_RESIDUAL], slots[GPI__IN_FACTOR]);
    gpi__append(text,
                "#define GEMMEPI_WRITTEN %d\n#define GEMMEPI_WRITES_VALUE %d\n#define GEMMEPI_ADDS_BIAS %d\n",
                inside->written, inside->beside.written >= 0, inside->beside.added >= 0);
    if (GPI__FORMULA(problem) || gpi__has(problem, GEMMEPI_BGRAD))
        gpi__append(text, "#define GEMMEPI_HAS_PLACES 1\n");
    if (GPI__FORMULA(problem))
        gpi__append_formula_defines(text, problem);
}

/* The formula's code, behind the defines. */
static void gpi__append_inside_code(gpi__text *text, const gpi__problem *problem) {
    gpi__inside inside;
    const gpi__formula *f;
    gpi__look_inside(problem, &inside);
    f = inside.formula;
    gpi__append(text, "#define GEMMEPI_T %s\n#define GEMMEPI_INDEX %s\n", gpi__type(f->accumulator),
                !f->indices || gpi__has_small_indices(problem) ? "int" : "long long");
    gpi__append(text, "#include \"formula.cuh\"\n#include \"activation.cuh\"\n"
                      "#define FORMULA_RANDOM(name, member, seed, i, column, row, item) in.name[member]\n");
    if (f->rounds)
        gpi__append(text,
                    "__device__ inline GEMMEPI_T formula_rounded(GEMMEPI_T x, GEMMEPI_T scale) {\n"
                    "    return to_acc<GEMMEPI_T>(from_acc<%s>(x * scale)) / scale;\n}\n",
                    gpi__type(f->d));
    gpi__emit_formula_of_product(text, f, &inside.beside);
}

/* The kernel of a product or a pass, by its prologue, behind which stands the code of its formula. */
static gemmepi_status gpi__get_product_kernel(gemmepi_context *context, const gpi__problem *problem,
                                              const char *file, const char *prologue, const char *entry,
                                              gpi__launch *launch) {
    gpi__text text;
    gemmepi_status status;
    if (context->only_workspace)
        return GEMMEPI_OK;
    text = gpi__growing_text(&context->allocator);
    gpi__append(&text, "%s", prologue);
    gpi__append_inside_code(&text, problem);
    status =
        text.data ? gpi__get_waiting_kernel(context, file, text.data, entry, launch) : GEMMEPI_OUT_OF_MEMORY;
    gpi__delete(&context->allocator, text.data);
    return status;
}

/* >>operands */

/* The states that a kernel leaves of so many lines of some rows each: of all of a line one for each 32 columns. */
static gpi__state_counts gpi__states_inside(const gpi__problem *problem, int64_t lines) {
    gpi__state_counts states;
    states.span = gpi__state_columns(problem);
    states.of_row = gpi__divide_up(gpi__half_columns(problem), states.span);
    states.lines = lines;
    states.of_line = gpi__divide_up(gpi__half_columns(problem), 32);
    return states;
}

/* Where a reduction's states are: from a row to the next, or from one line of some rows. */
static void gpi__place_states(const gpi__problem *problem, const gpi__formula_operand *o,
                              gpi__formula_place *place) {
    gpi__state_counts states = gpi__states_inside(problem, 0);
    if (!gpi__is_reduced(o))
        return;
    place->ld = gpi__has_rows(o->kind)          ? states.of_row
                : o->kind == GEMMEPI_PER_COLUMN ? gpi__half_columns(problem) * o->members
                                                : states.of_line;
    place->stride = gpi__times(problem->m, place->ld);
}

/* All but pointers and numbers. */
static void gpi__fill_places(const gpi__problem *problem, gpi__formula_place *places) {
    const gpi__placed_formula *placed = &problem->formula->placed;
    int i;
    for (i = 0; i < placed->formula->operand_count; i++) {
        if (placed->formula->operands[i].kind >= GEMMEPI_FULL)
            places[i].ld = placed->operands[i].ld;
        places[i].stride = placed->operands[i].batch_stride;
        places[i].row_period = placed->operands[i].row_period;
        places[i].column_period = placed->formula->operands[i].used & GPI__BY_INDEX
                                      ? gpi__table_length(placed, i)
                                      : placed->operands[i].column_period;
        gpi__place_states(problem, &placed->formula->operands[i], &places[i]);
    }
    if (gpi__reads_depth(placed->formula))
        places[i].number = (double)placed->depth;
}

static void gpi__point_places(const gpi__arguments *arguments, gpi__formula_place *places) {
    const gpi__placed_formula *placed = &arguments->inside->placed;
    int i;
    for (i = 0; i < placed->formula->operand_count; i++) {
        if (!placed->formula->operands[i].used)
            continue;
        if (placed->formula->operands[i].kind == GEMMEPI_NUMBER)
            places[i].number = arguments->numbers[i];
        else
            places[i].data = arguments->operands[i];
        if (placed->operands[i].scale)
            places[i].scale = arguments->operand_scales[i];
    }
}

/* A run's arguments as a problem with such an epilogue has them. */
static void gpi__point_slots(const gpi__composition *said, gpi__arguments *arguments) {
    int s;
    for (s = 0; s < GPI__SLOTS; s++) {
        int i = said->slots[s], operand = GPI__OPERAND_OF_SLOT(s);
        if (i < 0)
            continue;
        arguments->pointers[operand] = arguments->operands[i];
        if (operand <= GPI__RESIDUAL && arguments->operand_scales)
            memcpy(&arguments->pointers[GPI__SCALE_OF(operand)], &arguments->operand_scales[i],
                   sizeof(void *));
        if (operand == GPI__AUX && arguments->operand_amax)
            arguments->pointers[GPI__AMAX_AUX] = arguments->operand_amax[i];
    }
}

/* Whether a kernel with a formula inside leaves states of reductions, which takes lanes that have a row's columns side by side. */
static int gpi__leaves_states(const gpi__problem *problem) {
    return GPI__FORMULA(problem) && gpi__reduces_inside(problem);
}

/* Whether a kernel whose warps have so many columns side by side has the whole of each state. */
static int gpi__has_whole_states(const gpi__problem *problem, int columns) {
    return !GPI__FORMULA(problem) ||
           !gpi__has_reductions(problem->formula->placed.formula, GPI__ALONG_ROWS) ||
           columns % gpi__state_columns(problem) == 0;
}

/* Lines of sums over rows that an epilogue leaves: BGRAD's of each half of D, or a formula's. */
static int gpi__column_lines(const gpi__problem *problem) {
    if (GPI__FORMULA(problem))
        return gpi__column_lines_inside(problem);
    return problem->epilogue & GEMMEPI_BGRAD ? gpi__halves_out(problem) : 0;
}

/* Of a formula inside a kernel: columns of either half of a group, 0 where halves are of the whole. */
static int64_t gpi__half_group(const gpi__problem *problem) {
    return GPI__FORMULA(problem) ? gpi__half_group_of(problem) : 0;
}

/* Why a kernel that has halves of the whole alone does not take the problem, or NULL. */
static const char *gpi__half_group_rule(const gpi__problem *problem) {
    return gpi__half_group(problem) ? "its kernel has no halves of groups of columns or of every second one"
                                    : NULL;
}

#endif
