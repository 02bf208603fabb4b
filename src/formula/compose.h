/* Formulas that say what an epilogue says: an activation or a gate of v and a bias, what is saved of it, a residual, or the gradient as
   gemmepi_derive() writes it. What each looks like is parsed of its text, and compared node by node. */
#ifndef GEMMEPI_FORMULA_COMPOSE_H
#define GEMMEPI_FORMULA_COMPOSE_H

#include "derive.h"
#include "formula.h"

/* What an epilogue has beside D. */
enum { GPI__IN_AUX, GPI__IN_RESIDUAL, GPI__IN_BIAS, GPI__IN_BIAS_GRAD, GPI__SLOTS };

/* An epilogue and its parameter, with the number of the formula's operand in each slot, -1: none. */
typedef struct gpi__composition {
    uint64_t epilogue;
    double parameter;
    int slots[GPI__SLOTS];
} gpi__composition;

/* >>the formula's operands by what they may be in an epilogue */

typedef struct gpi__cast_of_operands {
    int slots[GPI__SLOTS];  /* but for what is read of matrices: in AUX what is saved */
    int matrices[2], count; /* that are read */
} gpi__cast_of_operands;

static int gpi__cast_output(const gpi__formula *f, int i, gpi__cast_of_operands *cast) {
    const gpi__formula_operand *o = &f->operands[i];
    int *place = o->kind == GEMMEPI_FULL && !o->reduction ? &cast->slots[GPI__IN_AUX]
                 : o->kind == GEMMEPI_PER_COLUMN && gpi__reductions[o->reduction].op == GPI__REDUCE_SUM &&
                         o->node == f->operands[GPI__RESULT].node
                     ? &cast->slots[GPI__IN_BIAS_GRAD]
                     : NULL;
    if (!place || *place >= 0)
        return 0;
    *place = i;
    return 1;
}

/* Whether each operand may be one of an epilogue's. */
static int gpi__cast_operands(const gpi__formula *f, gpi__cast_of_operands *cast) {
    int i, fits = f->reads_value && f->operands[GPI__RESULT].used;
    memset(cast, -1, sizeof *cast);
    cast->count = 0;
    for (i = 0; i < f->operand_count && fits; i++) {
        const gpi__formula_operand *o = &f->operands[i];
        if (!o->used)
            continue;
        if (o->output) {
            fits = gpi__cast_output(f, i, cast);
        } else if (o->kind == GEMMEPI_PER_COLUMN && !o->periods && cast->slots[GPI__IN_BIAS] < 0) {
            cast->slots[GPI__IN_BIAS] = i;
        } else {
            fits = o->kind == GEMMEPI_FULL && !o->periods && cast->count < 2;
            if (fits)
                cast->matrices[cast->count++] = i;
        }
    }
    return fits;
}

/* >>forms: the texts of epilogues, with an activation of what stands in the middle */

typedef struct gpi__composed_form {
    const char *before, *argument, *behind;
    uint64_t flags;
} gpi__composed_form;

static const gpi__composed_form gpi__composed_forms[] = {
    {"d = ", "v", "", 0},
    {"d = left(v) * ", "right(v)", "", GEMMEPI_GATED},
    {"d = ", "left(v)", " * right(v)", GEMMEPI_GATED | GEMMEPI_GATE_FIRST},
};

static void gpi__write_form(gpi__text *text, const gpi__composed_form *form, uint32_t activation,
                            double parameter) {
    char name[16], number[GPI__NUMBER_SIZE];
    int row = 0;
    while ((uint32_t)gpi__activations[row].code != activation)
        row++;
    gpi__append(text, "%s", form->before);
    if (activation == GEMMEPI_NONE)
        gpi__append(text, "%s", form->argument);
    else
        gpi__append(text, "%s(%s", gpi__small_name(row, name), form->argument);
    if (gpi__activations[row].parameter != 0) {
        gpi__print_number(number, parameter);
        gpi__append(text, ", %s", number);
    }
    gpi__append(text, "%s%s", activation == GEMMEPI_NONE ? "" : ")", form->behind);
}

enum { GPI__FORM_TEXT = 512 };

/* The gradient of a form as a formula of the upstream, in which operand 0 is the pre-activation. */
static gemmepi_status gpi__gradient_of_form(const gemmepi_allocator *allocator, const char *forward,
                                            int is_gated, gpi__formula_desc *desc, gpi__formula **result) {
    int16_t upstreams[GPI__RESULT + 1];
    gemmepi_derive_desc of;
    gemmepi_operand saved;
    gpi__derivation *derivation;
    gemmepi_status status;
    memset(&of, 0, sizeof of);
    memset(&saved, 0, sizeof saved);
    of.formula = forward;
    of.wrt = saved.name = "v";
    saved.kind = GEMMEPI_FULL;
    saved.width = is_gated ? GEMMEPI_WIDTH_DOUBLE : GEMMEPI_WIDTH_N;
    desc->operands = &saved;
    desc->operand_count = 1;
    upstreams[GPI__RESULT] = -1;
    status = gpi__derivation_of(allocator, &of, &derivation);
    if (status)
        return status;
    status = gpi__copy_gradient(derivation, desc, 0, upstreams, NULL);
    if (!status)
        status = gpi__formula_of(allocator, &derivation->gradient, result);
    gpi__delete(allocator, derivation);
    return status;
}

/* The formula of a form, or its gradient, to be given to gpi__delete. */
static gemmepi_status gpi__formula_of_form(const gemmepi_allocator *allocator, const gpi__composed_form *form,
                                           const gpi__composition *composition, gpi__formula **result) {
    char forward[GPI__FORM_TEXT];
    gpi__text text = gpi__text_in(forward, sizeof forward);
    gpi__formula_desc desc;
    memset(&desc, 0, sizeof desc);
    gpi__write_form(&text, form, gpi__activation(composition->epilogue), composition->parameter);
    desc.text = forward;
    desc.accumulator = desc.d = GEMMEPI_F32;
    desc.of_any_type = 1;
    return composition->epilogue & GEMMEPI_BACKWARD
               ? gpi__gradient_of_form(allocator, forward, (form->flags & GEMMEPI_GATED) != 0, &desc, result)
               : gpi__parse_formula(allocator, &desc, result);
}

/* >>comparing */

typedef struct gpi__comparison {
    const gpi__formula *form, *formula;
    const gpi__composition *composition;
} gpi__comparison;

static int gpi__reads_operand(const gpi__formula *f, int node, int operand) {
    return operand >= 0 && f->nodes[node].op == GPI__OP_OPERAND && f->nodes[node].place == operand;
}

/* Which argument of a sum an operand is, or -1. */
static int gpi__is_added(const gpi__formula *f, int node, int operand) {
    const gpi__node *n = &f->nodes[node];
    if (n->op != GPI__OP_ADD)
        return -1;
    return gpi__reads_operand(f, n->args[1], operand)   ? 1
           : gpi__reads_operand(f, n->args[0], operand) ? 0
                                                        : -1;
}

/* Whether a node is v, or with a bias their sum. */
static int gpi__is_product(const gpi__formula *f, const gpi__composition *composition, int node) {
    int added;
    if (composition->slots[GPI__IN_BIAS] >= 0) {
        added = gpi__is_added(f, node, composition->slots[GPI__IN_BIAS]);
        if (added < 0)
            return 0;
        node = f->nodes[node].args[1 - added];
    }
    return f->nodes[node].op == GPI__OP_VALUE;
}

/* What a leaf of the form stands for: the product, or of a gradient the matrix beside it. */
static int gpi__stands_for(const gpi__comparison *c, const gpi__node *leaf, int node) {
    uint64_t epilogue = c->composition->epilogue;
    int is_preact = !(epilogue & GEMMEPI_BACKWARD) || leaf->op == GPI__OP_OPERAND;
    int is_read = (epilogue & GEMMEPI_UPSTREAM) ? !is_preact : (epilogue & GEMMEPI_BACKWARD) && is_preact;
    return is_read ? gpi__reads_operand(c->formula, node, c->composition->slots[GPI__IN_AUX])
                   : gpi__is_product(c->formula, c->composition, node);
}

/* max(x, 0) is RELU, of NaN, too. */
static int gpi__is_max_with_0(const gpi__formula *f, const gpi__node *node) {
    const gpi__node *zero = node->op == GPI__OP_MAX ? &f->nodes[node->args[1]] : NULL;
    return zero && zero->op == GPI__OP_NUMBER && zero->number == 0;
}

/* Whether the formula's node computes what the form's does. The two arguments of a sum or product may change places, which changes no bit. */
static int gpi__says_the_same(const gpi__comparison *c, int of_form, int of_formula) {
    const gpi__node *x = &c->form->nodes[of_form], *y = &c->formula->nodes[of_formula];
    int swaps = x->op == GPI__OP_ADD || x->op == GPI__OP_MUL, turn, a, same;
    if (x->op == GPI__OP_VALUE || x->op == GPI__OP_OPERAND)
        return gpi__stands_for(c, x, of_formula);
    if (x->op == GPI__OP_ACTIVATE && gpi__activations[x->place].code == GEMMEPI_RELU &&
        gpi__is_max_with_0(c->formula, y))
        return gpi__says_the_same(c, x->args[0], y->args[0]);
    if (x->op != y->op || x->place != y->place || memcmp(&x->number, &y->number, sizeof x->number) != 0)
        return 0;
    for (turn = 0; turn <= swaps; turn++) {
        for (a = 0, same = 1; a < 3 && same; a++) {
            int other = y->args[turn && a < 2 ? 1 - a : a];
            same = x->args[a] < 0 || other < 0 ? x->args[a] < 0 && other < 0
                                               : gpi__says_the_same(c, x->args[a], other);
        }
        if (same)
            return 1;
    }
    return 0;
}

/* Whether D is the form, plus the residual, and what is saved the product. */
static int gpi__says_composition(const gpi__comparison *c, int saved) {
    const gpi__formula *f = c->formula;
    int d = f->operands[GPI__RESULT].node, residual = c->composition->slots[GPI__IN_RESIDUAL], added;
    if (saved >= 0 && !gpi__is_product(f, c->composition, f->operands[saved].node))
        return 0;
    if (residual >= 0) {
        added = gpi__is_added(f, d, residual);
        if (added < 0)
            return 0;
        d = f->nodes[d].args[1 - added];
    }
    return gpi__says_the_same(c, c->form->operands[GPI__RESULT].node, d);
}

/* >>which may be said */

/* The activation that a formula without any says in other words: RELU by max or, in a gradient, by a selection. */
static uint64_t gpi__activation_in_words(const gpi__formula *f) {
    int i;
    for (i = 0; i < f->node_count; i++)
        if (gpi__is_max_with_0(f, &f->nodes[i]) || f->nodes[i].op == GPI__OP_SELECT)
            return GEMMEPI_RELU;
    return GEMMEPI_NONE;
}

/* The activation that the formula has, and its parameter; 0: the parameter is no number. */
static int gpi__find_activation(const gpi__formula *f, gpi__composition *composition) {
    const gpi__node *node, *parameter;
    int i = 0;
    while (i < f->node_count && f->nodes[i].op != GPI__OP_ACTIVATE && f->nodes[i].op != GPI__OP_DERIVE)
        i++;
    composition->parameter = 0;
    if (i == f->node_count) {
        composition->epilogue |= gpi__activation_in_words(f);
        return 1;
    }
    node = &f->nodes[i];
    composition->epilogue |= (uint64_t)gpi__activations[node->place].code;
    if (node->args[1] < 0)
        return 1;
    parameter = &f->nodes[node->args[1]];
    composition->parameter = parameter->number;
    return parameter->op == GPI__OP_NUMBER;
}

/* Whether an epilogue of those flags is as wide as the formula: how many halves v and D are. */
static int gpi__is_so_wide(const gpi__formula *f, uint64_t flags) {
    int v = gpi__members(f, f->n_width), d = f->operands[GPI__RESULT].members;
    if (!(flags & GEMMEPI_GATED))
        return !f->has_halves;
    return f->has_halves && f->mode == GPI__LEFT_RIGHT && f->parts == 2 &&
           v == (flags & GEMMEPI_BACKWARD && !(flags & GEMMEPI_UPSTREAM) ? 1 : 2) &&
           d == (flags & GEMMEPI_BACKWARD ? 2 : 1);
}

/* What is read beside a bias: aux, where the epilogue reads one, and a residual. turn 1: the other way round. 0: too few or too many. */
static int gpi__cast_matrices(const gpi__cast_of_operands *cast, int turn, gpi__composition *composition) {
    static const uint64_t flags[] = {GEMMEPI_AUX, GEMMEPI_RESIDUAL, GEMMEPI_BIAS, GEMMEPI_BGRAD};
    int reads_aux = (composition->epilogue & GEMMEPI_BACKWARD) != 0, s;
    if (cast->count < reads_aux || cast->count > reads_aux + 1 || turn >= cast->count + !cast->count ||
        (reads_aux && cast->slots[GPI__IN_AUX] >= 0))
        return 0;
    memcpy(composition->slots, cast->slots, sizeof composition->slots);
    if (cast->count > reads_aux)
        composition->slots[GPI__IN_RESIDUAL] = cast->matrices[reads_aux ? 1 - turn : 0];
    for (s = 0; s < GPI__SLOTS; s++)
        composition->epilogue |= composition->slots[s] >= 0 ? flags[s] : 0;
    if (reads_aux)
        composition->slots[GPI__IN_AUX] = cast->matrices[turn];
    return 1;
}

/* Tries a form in a direction: *says is 1 where the formula says it. The status is OK unless memory has run out. */
static gemmepi_status gpi__try_form(const gemmepi_allocator *allocator, const gpi__formula *f,
                                    const gpi__cast_of_operands *cast, const gpi__composed_form *form,
                                    uint64_t direction, gpi__composition *composition, int *says) {
    gpi__comparison comparison;
    gpi__formula *of_form;
    gemmepi_status status;
    int turn;
    composition->epilogue = form->flags | direction;
    if (!gpi__is_so_wide(f, composition->epilogue) || !gpi__find_activation(f, composition))
        return GEMMEPI_OK;
    if (direction && composition->epilogue == direction)
        return GEMMEPI_OK; /* the gradient of nothing */
    status = gpi__formula_of_form(allocator, form, composition, &of_form);
    if (status)
        return status;
    comparison.form = of_form;
    comparison.formula = f;
    comparison.composition = composition;
    for (turn = 0; turn < 2 && !*says; turn++)
        *says = gpi__cast_matrices(cast, turn, composition) &&
                gpi__says_composition(&comparison, cast->slots[GPI__IN_AUX]);
    gpi__delete(allocator, of_form);
    return GEMMEPI_OK;
}

/* Whether the formula says what an epilogue says, and which. Halves, if it has any, are of the whole. The status is OK unless memory has
   run out. */
static gemmepi_status gpi__compose(const gemmepi_allocator *allocator, const gpi__formula *formula,
                                   gpi__composition *composition, int *says) {
    static const uint64_t directions[] = {0, GEMMEPI_BACKWARD, GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM};
    gpi__cast_of_operands cast;
    gemmepi_status status = GEMMEPI_OK;
    size_t direction, form;
    *says = 0;
    if (!gpi__cast_operands(formula, &cast))
        return GEMMEPI_OK;
    for (direction = 0; direction < GPI__COUNT(directions); direction++)
        for (form = 0; form < GPI__COUNT(gpi__composed_forms) && !status && !*says; form++)
            status = gpi__try_form(allocator, formula, &cast, &gpi__composed_forms[form],
                                   directions[direction], composition, says);
    return status;
}

#endif
