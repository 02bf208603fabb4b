/* Formulas that say what an epilogue says: an activation or a gate of v and a bias, what is saved of it, a residual, or the gradient as
   gemmepi_derive() writes it. What each looks like is parsed of its text, and compared node by node. */
#ifndef GEMMEPI_FORMULA_COMPOSE_H
#define GEMMEPI_FORMULA_COMPOSE_H

#include "derive.h"
#include "formula.h"

/* An epilogue and its parameter, with the formula's operands by their number, -1: none. */
typedef struct gemmepi__composition {
    uint64_t epilogue;
    double parameter;
    int bias, aux, residual, bias_grad;
} gemmepi__composition;

/* >>the formula's operands by what they may be in an epilogue */

typedef struct gemmepi__cast_of_operands {
    int bias, saved, bias_grad; /* -1: none; saved: what AUX writes */
    int matrices[2], count;     /* that are read */
} gemmepi__cast_of_operands;

static int gemmepi__cast_output(const gemmepi__formula *f, int i, gemmepi__cast_of_operands *cast) {
    const gemmepi__formula_operand *o = &f->operands[i];
    int *place = o->kind == GEMMEPI_FULL && !o->reduction ? &cast->saved
                 : o->kind == GEMMEPI_PER_COLUMN &&
                         gemmepi__reductions[o->reduction].op == GEMMEPI__REDUCE_SUM &&
                         o->node == f->operands[GEMMEPI__RESULT].node
                     ? &cast->bias_grad
                     : NULL;
    if (!place || *place >= 0)
        return 0;
    *place = i;
    return 1;
}

/* Whether each operand may be one of an epilogue's. */
static int gemmepi__cast_operands(const gemmepi__formula *f, gemmepi__cast_of_operands *cast) {
    int i, fits = f->reads_value && f->operands[GEMMEPI__RESULT].used;
    memset(cast, -1, sizeof *cast);
    cast->count = 0;
    for (i = 0; i < f->operand_count && fits; i++) {
        const gemmepi__formula_operand *o = &f->operands[i];
        if (!o->used)
            continue;
        if (o->output) {
            fits = gemmepi__cast_output(f, i, cast);
        } else if (o->kind == GEMMEPI_PER_COLUMN && !o->periods && cast->bias < 0) {
            cast->bias = i;
        } else {
            fits = o->kind == GEMMEPI_FULL && !o->periods && cast->count < 2;
            if (fits)
                cast->matrices[cast->count++] = i;
        }
    }
    return fits;
}

/* >>forms: the texts of epilogues, with an activation of what stands in the middle */

typedef struct gemmepi__composed_form {
    const char *before, *argument, *behind;
    uint64_t flags;
} gemmepi__composed_form;

static const gemmepi__composed_form gemmepi__composed_forms[] = {
    {"d = ", "v", "", 0},
    {"d = left(v) * ", "right(v)", "", GEMMEPI_GATED},
    {"d = ", "left(v)", " * right(v)", GEMMEPI_GATED | GEMMEPI_GATE_FIRST},
};

static void gemmepi__write_form(gemmepi__text *text, const gemmepi__composed_form *form, uint32_t activation,
                                double parameter) {
    char name[16], number[GEMMEPI__NUMBER_SIZE];
    int row = 0;
    while ((uint32_t)gemmepi__activations[row].code != activation)
        row++;
    gemmepi__append(text, "%s", form->before);
    if (activation == GEMMEPI_NONE)
        gemmepi__append(text, "%s", form->argument);
    else
        gemmepi__append(text, "%s(%s", gemmepi__small_name(row, name), form->argument);
    if (gemmepi__activations[row].parameter != 0) {
        gemmepi__print_number(number, parameter);
        gemmepi__append(text, ", %s", number);
    }
    gemmepi__append(text, "%s%s", activation == GEMMEPI_NONE ? "" : ")", form->behind);
}

/* The gradient's text, in which v is the saved pre-activation and dy the product. */
static gemmepi_status gemmepi__write_gradient_of_form(const gemmepi_allocator *allocator, const char *forward,
                                                      gemmepi__text *text) {
    gemmepi_derive_desc desc;
    gemmepi__derivation *derivation;
    gemmepi_status status;
    memset(&desc, 0, sizeof desc);
    desc.formula = forward;
    desc.wrt = "v";
    status = gemmepi__derivation_of(allocator, &desc, NULL, 0, &derivation);
    if (status)
        return status;
    gemmepi__print_gradient(derivation, text);
    gemmepi__delete(allocator, derivation);
    return GEMMEPI_OK;
}

enum { GEMMEPI__FORM_TEXT = 512 };

/* The formula of a form, to be given to gemmepi__delete. Of a gradient the value is the upstream, operand 0 the pre-activation. */
static gemmepi_status gemmepi__formula_of_form(const gemmepi_allocator *allocator,
                                               const gemmepi__composed_form *form,
                                               const gemmepi__composition *composition,
                                               gemmepi__formula **result) {
    int derives = (composition->epilogue & GEMMEPI_BACKWARD) != 0;
    char forward[GEMMEPI__FORM_TEXT], gradient[GEMMEPI__FORM_TEXT];
    gemmepi__text text = gemmepi__text_in(forward, sizeof forward);
    gemmepi__formula_desc desc;
    gemmepi_operand saved;
    gemmepi_status status = GEMMEPI_OK;
    memset(&desc, 0, sizeof desc);
    memset(&saved, 0, sizeof saved);
    gemmepi__write_form(&text, form, gemmepi__activation(composition->epilogue), composition->parameter);
    desc.text = forward;
    desc.accumulator = desc.d = GEMMEPI_F32;
    if (derives) {
        text = gemmepi__text_in(gradient, sizeof gradient);
        status = gemmepi__write_gradient_of_form(allocator, forward, &text);
        saved.name = "v";
        saved.kind = GEMMEPI_FULL;
        saved.width = form->flags & GEMMEPI_GATED ? GEMMEPI_WIDTH_DOUBLE : GEMMEPI_WIDTH_N;
        desc.operands = &saved;
        desc.operand_count = 1;
        desc.value = "dy";
        desc.result = "d_v";
        desc.text = gradient;
    }
    desc.of_any_type = 1;
    return status ? status : gemmepi__parse_formula(allocator, &desc, result);
}

/* >>comparing */

typedef struct gemmepi__comparison {
    const gemmepi__formula *form, *formula;
    const gemmepi__composition *composition;
} gemmepi__comparison;

static int gemmepi__reads_operand(const gemmepi__formula *f, int node, int operand) {
    return operand >= 0 && f->nodes[node].op == GEMMEPI__OP_OPERAND && f->nodes[node].place == operand;
}

/* Which argument of a sum an operand is, or -1. */
static int gemmepi__is_added(const gemmepi__formula *f, int node, int operand) {
    const gemmepi__node *n = &f->nodes[node];
    if (n->op != GEMMEPI__OP_ADD)
        return -1;
    return gemmepi__reads_operand(f, n->args[1], operand)   ? 1
           : gemmepi__reads_operand(f, n->args[0], operand) ? 0
                                                            : -1;
}

/* Whether a node is v, or with a bias their sum. */
static int gemmepi__is_product(const gemmepi__formula *f, const gemmepi__composition *composition, int node) {
    int added;
    if (composition->bias >= 0) {
        added = gemmepi__is_added(f, node, composition->bias);
        if (added < 0)
            return 0;
        node = f->nodes[node].args[1 - added];
    }
    return f->nodes[node].op == GEMMEPI__OP_VALUE;
}

/* What a leaf of the form stands for: the product, or of a gradient the matrix beside it. */
static int gemmepi__stands_for(const gemmepi__comparison *c, const gemmepi__node *leaf, int node) {
    uint64_t epilogue = c->composition->epilogue;
    int is_preact = !(epilogue & GEMMEPI_BACKWARD) || leaf->op == GEMMEPI__OP_OPERAND;
    int is_read = (epilogue & GEMMEPI_UPSTREAM) ? !is_preact : (epilogue & GEMMEPI_BACKWARD) && is_preact;
    return is_read ? gemmepi__reads_operand(c->formula, node, c->composition->aux)
                   : gemmepi__is_product(c->formula, c->composition, node);
}

/* max(x, 0) is RELU, of NaN, too. */
static int gemmepi__is_max_with_0(const gemmepi__formula *f, const gemmepi__node *node) {
    const gemmepi__node *zero = node->op == GEMMEPI__OP_MAX ? &f->nodes[node->args[1]] : NULL;
    return zero && zero->op == GEMMEPI__OP_NUMBER && zero->number == 0;
}

/* Whether the formula's node computes what the form's does. The two arguments of a sum or product may change places, which changes no bit. */
static int gemmepi__says_the_same(const gemmepi__comparison *c, int of_form, int of_formula) {
    const gemmepi__node *x = &c->form->nodes[of_form], *y = &c->formula->nodes[of_formula];
    int swaps = x->op == GEMMEPI__OP_ADD || x->op == GEMMEPI__OP_MUL, turn, a, same;
    if (x->op == GEMMEPI__OP_VALUE || x->op == GEMMEPI__OP_OPERAND)
        return gemmepi__stands_for(c, x, of_formula);
    if (x->op == GEMMEPI__OP_ACTIVATE && gemmepi__activations[x->place].code == GEMMEPI_RELU &&
        gemmepi__is_max_with_0(c->formula, y))
        return gemmepi__says_the_same(c, x->args[0], y->args[0]);
    if (x->op != y->op || x->place != y->place || memcmp(&x->number, &y->number, sizeof x->number) != 0)
        return 0;
    for (turn = 0; turn <= swaps; turn++) {
        for (a = 0, same = 1; a < 3 && same; a++) {
            int other = y->args[turn && a < 2 ? 1 - a : a];
            same = x->args[a] < 0 || other < 0 ? x->args[a] < 0 && other < 0
                                               : gemmepi__says_the_same(c, x->args[a], other);
        }
        if (same)
            return 1;
    }
    return 0;
}

/* Whether D is the form, plus the residual, and what is saved the product. */
static int gemmepi__says_composition(const gemmepi__comparison *c, const gemmepi__cast_of_operands *cast) {
    const gemmepi__formula *f = c->formula;
    int d = f->operands[GEMMEPI__RESULT].node, added;
    if (cast->saved >= 0 && !gemmepi__is_product(f, c->composition, f->operands[cast->saved].node))
        return 0;
    if (c->composition->residual >= 0) {
        added = gemmepi__is_added(f, d, c->composition->residual);
        if (added < 0)
            return 0;
        d = f->nodes[d].args[1 - added];
    }
    return gemmepi__says_the_same(c, c->form->operands[GEMMEPI__RESULT].node, d);
}

/* >>which may be said */

/* The activation that a formula without any says in other words: RELU by max or, in a gradient, by a selection. */
static uint64_t gemmepi__activation_in_words(const gemmepi__formula *f) {
    int i;
    for (i = 0; i < f->node_count; i++)
        if (gemmepi__is_max_with_0(f, &f->nodes[i]) || f->nodes[i].op == GEMMEPI__OP_SELECT)
            return GEMMEPI_RELU;
    return GEMMEPI_NONE;
}

/* The activation that the formula has, and its parameter; 0: the parameter is no number. */
static int gemmepi__take_activation(const gemmepi__formula *f, gemmepi__composition *composition) {
    const gemmepi__node *node, *parameter;
    int i = 0;
    while (i < f->node_count && f->nodes[i].op != GEMMEPI__OP_ACTIVATE &&
           f->nodes[i].op != GEMMEPI__OP_DERIVE)
        i++;
    composition->parameter = 0;
    if (i == f->node_count) {
        composition->epilogue |= gemmepi__activation_in_words(f);
        return 1;
    }
    node = &f->nodes[i];
    composition->epilogue |= (uint64_t)gemmepi__activations[node->place].code;
    if (node->args[1] < 0)
        return 1;
    parameter = &f->nodes[node->args[1]];
    composition->parameter = parameter->number;
    return parameter->op == GEMMEPI__OP_NUMBER;
}

/* Whether an epilogue of those flags is as wide as the formula: how many halves v and D are. */
static int gemmepi__is_so_wide(const gemmepi__formula *f, uint64_t flags) {
    int v = f->has_halves && f->n_width == GEMMEPI__WIDE ? 2 : 1, d = f->operands[GEMMEPI__RESULT].members;
    if (!(flags & GEMMEPI_GATED))
        return !f->has_halves;
    return f->has_halves && f->mode == GEMMEPI__LEFT_RIGHT &&
           v == (flags & GEMMEPI_BACKWARD && !(flags & GEMMEPI_UPSTREAM) ? 1 : 2) &&
           d == (flags & GEMMEPI_BACKWARD ? 2 : 1);
}

/* What is read beside a bias: aux, where the epilogue reads one, and a residual. turn 1: the other way round. 0: too few or too many. */
static int gemmepi__cast_matrices(const gemmepi__cast_of_operands *cast, int turn,
                                  gemmepi__composition *composition) {
    int reads_aux = (composition->epilogue & GEMMEPI_BACKWARD) != 0;
    composition->bias = cast->bias;
    composition->bias_grad = cast->bias_grad;
    composition->aux = reads_aux ? cast->matrices[turn] : cast->saved;
    composition->residual = cast->count == reads_aux + 1 ? cast->matrices[reads_aux ? 1 - turn : 0] : -1;
    if (cast->bias >= 0)
        composition->epilogue |= GEMMEPI_BIAS;
    if (cast->saved >= 0)
        composition->epilogue |= GEMMEPI_AUX;
    if (cast->bias_grad >= 0)
        composition->epilogue |= GEMMEPI_BGRAD;
    if (composition->residual >= 0)
        composition->epilogue |= GEMMEPI_RESIDUAL;
    return cast->count >= reads_aux && cast->count <= reads_aux + 1 && turn < cast->count + !cast->count &&
           !(reads_aux && cast->saved >= 0);
}

/* Tries a form in a direction: *says is 1 where the formula says it. The status is OK unless memory has run out. */
static gemmepi_status gemmepi__try_form(const gemmepi_allocator *allocator, const gemmepi__formula *f,
                                        const gemmepi__cast_of_operands *cast,
                                        const gemmepi__composed_form *form, uint64_t direction,
                                        gemmepi__composition *composition, int *says) {
    gemmepi__comparison comparison;
    gemmepi__formula *of_form;
    gemmepi_status status;
    int turn;
    composition->epilogue = form->flags | direction;
    if (!gemmepi__is_so_wide(f, composition->epilogue) || !gemmepi__take_activation(f, composition))
        return GEMMEPI_OK;
    if (direction && composition->epilogue == direction)
        return GEMMEPI_OK; /* the gradient of nothing */
    status = gemmepi__formula_of_form(allocator, form, composition, &of_form);
    if (status)
        return status;
    comparison.form = of_form;
    comparison.formula = f;
    comparison.composition = composition;
    for (turn = 0; turn < 2 && !*says; turn++)
        *says =
            gemmepi__cast_matrices(cast, turn, composition) && gemmepi__says_composition(&comparison, cast);
    gemmepi__delete(allocator, of_form);
    return GEMMEPI_OK;
}

/* Whether the formula says what an epilogue says, and which. Halves, if it has any, are of the whole. The status is OK unless memory has
   run out. */
static gemmepi_status gemmepi__compose(const gemmepi_allocator *allocator, const gemmepi__formula *formula,
                                       gemmepi__composition *composition, int *says) {
    static const uint64_t directions[] = {0, GEMMEPI_BACKWARD, GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM};
    gemmepi__cast_of_operands cast;
    gemmepi_status status = GEMMEPI_OK;
    size_t direction, form;
    *says = 0;
    if (!gemmepi__cast_operands(formula, &cast))
        return GEMMEPI_OK;
    for (direction = 0; direction < GEMMEPI__COUNT(directions); direction++)
        for (form = 0; form < GEMMEPI__COUNT(gemmepi__composed_forms) && !status && !*says; form++)
            status = gemmepi__try_form(allocator, formula, &cast, &gemmepi__composed_forms[form],
                                       directions[direction], composition, says);
    return status;
}

#endif
