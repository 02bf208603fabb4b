/* The formula inside a kernel that has an epilogue, the caller's or that of flags: what the kernel's text has of it, and what it is given. */
#ifndef GEMMEPI_PRODUCT_PARTS_INSIDE_H
#define GEMMEPI_PRODUCT_PARTS_INSIDE_H

#include "inside_rules.h"

#include "../../device/launch.h"
#include "../../kernels/params.h"
#include "../../problem/arguments.h"

/* What the plan of a problem with a formula has. */
typedef struct gpi__formula_step {
    int is_composed; /* the plan of v is that of an epilogue, which the formula says; nothing is behind it */
    int is_inside;   /* the plan of v has the formula in its kernel; there is no pass */
    gpi__composition said;  /* then: the epilogue, of a formula inside that in whose places operands are */
    const char *not_inside; /* else: why */
    gpi__formula_pass pass;
    size_t product_bytes; /* of v in workspace; 0: there is none */
} gpi__formula_step;

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
