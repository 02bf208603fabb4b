/* What a derivation is asked for: a formula, and names. */
#ifndef GEMMEPI_FORMULA_DERIVATION_H
#define GEMMEPI_FORMULA_DERIVATION_H

#include "print.h"

enum { GPI__OF_VALUE = GPI__RESULT + 1, GPI__DERIVED_NAMES = 4 * GPI__FORMULA_OPERANDS };

/* What the gradient of a BLOCKED operand is: sums of its blocks or, to be added up by who asks, those of each row of them, or each element's. */
enum { GPI__BY_BLOCKS, GPI__BY_ROWS, GPI__BY_ELEMENTS };

/* What has come together for a node: an expression as wide as what reads the node, which `width` tells where the expression itself does
   not change along columns. node -1: nothing yet. */
typedef struct gpi__adjoint {
    int16_t node, width;
} gpi__adjoint;

typedef struct gpi__derivation {
    gpi__formula_desc desc;
    gemmepi_operand operands[GPI__FORMULA_OPERANDS]; /* the caller's, with their tensors' dtypes */
    gpi__graph graph, gradient; /* the gradient by itself, once gpi__copy_gradient() has made it */
    gpi__parser parser;
    gpi__printer printer;
    int given; /* nodes of the formula itself */
    int wrt_count;
    int16_t wrt[GPI__FORMULA_OPERANDS + 1]; /* operands, or OF_VALUE */
    uint8_t readable[GPI__OF_VALUE + 1];    /* by desc.saved */
    uint8_t silent[GPI__RESULT + 1];        /* outputs without an upstream, by desc.upstream */
    uint8_t sums[GPI__FORMULA_OPERANDS];    /* BY_BLOCKS, BY_ROWS or BY_ELEMENTS */
    uint8_t depends[GPI__GRAPH_NODES];      /* on what is in wrt */
    gpi__adjoint adjoints[GPI__GRAPH_NODES];
    int ties_to_first;
    int has_0; /* bits: 1 floor, 2 round, 4 comparisons, 8 uniform */
} gpi__derivation;

static int gpi__width_of_output(const gpi__derivation *d, int output) {
    int width;
    if (output != GPI__RESULT)
        return gpi__width_of(&d->graph, d->desc.operands[output].kind, d->desc.operands[output].width);
    width = (int)d->graph.nodes[d->graph.assigned[output].node].width;
    return width ? width : d->graph.n_width;
}

/* >>what is asked for */

static const char *gpi__name_in(const gpi__derivation *d, int which) {
    if (which == GPI__OF_VALUE)
        return gpi__value_name(&d->desc);
    return which == GPI__RESULT ? gpi__result_name(&d->desc) : d->desc.operands[which].name;
}

/* Whether a BLOCKED operand's gradient is a sum that a formula says: of groups of columns that lie side by side. */
static int gpi__has_sums_of_blocks(const gemmepi_operand *o, int exchanged) {
    return (exchanged ? o->block_columns : o->block_rows) == 1 && gpi__group_of(o, exchanged) % 8 == 0;
}

/* Asks for the gradient of an operand or of the value. */
static gemmepi_status gpi__ask_for_gradient(gpi__derivation *d, int which) {
    const gemmepi_operand *o;
    int i;
    for (i = 0; i < d->wrt_count; i++)
        GPI__INVALID_IF(d->wrt[i] == which, "desc.wrt names %s twice", gpi__name_in(d, which));
    d->wrt[d->wrt_count++] = (int16_t)which;
    if (which == GPI__OF_VALUE)
        return GEMMEPI_OK;
    GPI__INVALID_IF(which == GPI__RESULT || d->desc.operands[which].output,
                    "desc.wrt names %s, an output; accepted are inputs and the value",
                    gpi__name_in(d, which));
    o = &d->desc.operands[which];
    GPI__INVALID_IF(o->dtype == GEMMEPI_I32 || o->dtype == GEMMEPI_I64,
                    "desc.wrt names %s, whose whole numbers have no gradient", o->name);
    GPI__INVALID_IF(
        gpi__is_only_read((int)o->dtype),
        "desc.wrt names %s, in %s, a type without a gradient: leave it out; the gradient of others may "
        "read it, where desc.saved names it",
        o->name, gpi__dtype(o->dtype)->name);
    GPI__INVALID_IF(o->row_period || o->column_period,
                    "desc.wrt names %s, an input with periods, for whose gradient there is no reduction",
                    o->name);
    GPI__INVALID_IF(
        o->kind == GEMMEPI_BLOCKED && !d->sums[which] && !gpi__has_sums_of_blocks(o, d->desc.exchanged),
        "desc.wrt names %s, a BLOCKED input with blocks of %lld x %lld; there are sums of blocks of one row and a "
        "multiple of 8 columns: list it %s",
        o->name, (long long)o->block_rows, (long long)o->block_columns,
        o->block_columns % 8
            ? "as FULL here, whose gradient is that of each element, and add up its blocks"
            : "with block_rows 1 here, whose gradient is that of each row of its blocks, and "
              "add up as many rows");
    GPI__INVALID_IF(gpi__width_of(&d->graph, o->kind, o->width) < 0,
                    d->graph.n_width == GPI__WIDE
                        ? "desc.wrt names %s, which is %d n columns wide and not read; the formula has "
                          "only n and n / %d columns"
                        : "desc.wrt names %s, which is n / %d columns wide and not read; the formula has "
                          "only n and %d n columns",
                    o->name, d->graph.parts, d->graph.parts);
    return GEMMEPI_OK;
}

/* Names that get d_ or dy_ before them. is_layers: operands with such names are gradients and upstreams, and dy is Y's. */
static gemmepi_status gpi__check_names_for_gradient(const gpi__formula_desc *desc, int is_layers) {
    int i;
    for (i = -2; i < desc->operand_count; i++) {
        const char *name = i == -2   ? gpi__result_name(desc)
                           : i == -1 ? gpi__value_name(desc)
                                     : desc->operands[i].name;
        GPI__INVALID_IF(
            is_layers && (strcmp(name, "dy") == 0 ||
                          (i < 0 && (strncmp(name, "d_", 2) == 0 || strncmp(name, "dy_", 3) == 0))),
            "an operand is called %s; dy and names that begin with d_ or dy_ are for its gradient's operands",
            name);
        GPI__INVALID_IF(
            strlen(name) > GPI__FORMULA_NAME - 3,
            "%s has %d characters; where a gradient has d_ or dy_ before it at most %d are accepted", name,
            (int)strlen(name), (int)GPI__FORMULA_NAME - 3);
    }
    return GEMMEPI_OK;
}

#ifndef GEMMEPI_NO_FORMULA
static const char *gpi__behind_blanks(const char *at) {
    while (*at == ' ')
        at++;
    return at;
}

/* The next name of a list from *at on, which moves behind it; 0: there is none, -1: an unknown or empty one, with the sentence. */
static int gpi__next_name(const gpi__derivation *d, const char *list, const char *field, const char **at,
                          int *which) {
    int is_first = *at == list, is_apart = 1;  /* by a comma or blanks */
    int of_result = strcmp(field, "wrt") != 0; /* there is no gradient of it */
    size_t length;
    *at = gpi__behind_blanks(*at);
    if (!**at)
        return 0;
    if (!is_first && **at == ',')
        *at = gpi__behind_blanks(*at + 1);
    else
        is_apart = is_first || (*at)[-1] == ' ';
    if (!**at || **at == ',') {
        (void)gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s has a comma without a name %s it, at character %d",
                        field, **at ? "before" : "behind", (int)(*at - list) + (**at ? 1 : 0));
        return -1;
    }
    length = is_apart ? gpi__name_length(*at) : 0;
    for (*which = 0; *which <= GPI__OF_VALUE && length; ++*which)
        if ((*which < d->desc.operand_count || *which >= GPI__RESULT) &&
            gpi__is_name(*at, length, gpi__name_in(d, *which))) {
            *at += length;
            return 1;
        }
    (void)gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                    "desc.%s has \"%.60s\"; accepted are names of operands%s %s%s%s, separated by commas",
                    field, *at, of_result ? "," : " and", gpi__value_name(&d->desc), of_result ? " and " : "",
                    of_result ? gpi__result_name(&d->desc) : "");
    return -1;
}

static gemmepi_status gpi__parse_lists(gpi__derivation *d, const gemmepi_derive_desc *desc) {
    const char *at = desc->wrt ? desc->wrt : "", *list = at;
    gemmepi_status status;
    int which, i, more;
    while ((more = gpi__next_name(d, list, "wrt", &at, &which)) > 0) {
        status = gpi__ask_for_gradient(d, which);
        if (status)
            return status;
    }
    if (more < 0)
        return GEMMEPI_INVALID_ARGUMENT;
    GPI__INVALID_IF(d->wrt_count == 0, "desc.wrt is %s; it names what gradients are wanted of",
                    desc->wrt ? "empty" : "NULL");
    for (i = 0; i < d->desc.operand_count; i++) /* a number lies on the host and costs nothing */
        d->readable[i] =
            desc->operands[i].kind == GEMMEPI_NUMBER || (!desc->saved && !desc->operands[i].output);
    d->readable[GPI__OF_VALUE] = !desc->saved;
    list = at = desc->saved ? desc->saved : "";
    while ((more = gpi__next_name(d, list, "saved", &at, &which)) > 0)
        d->readable[which] = 1;
    return more < 0 ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK;
}

static gemmepi_status gpi__parse_upstreams(gpi__derivation *d, const char *list) {
    const char *at = list;
    int which, more, count = 0;
    if (!list)
        return GEMMEPI_OK;
    memset(d->silent, 1, sizeof d->silent);
    for (; (more = gpi__next_name(d, list, "upstream", &at, &which)) > 0; count++) {
        GPI__INVALID_IF(
            which == GPI__OF_VALUE || d->graph.assigned[which].node < 0,
            "desc.upstream names %s, which desc.formula does not assign; accepted are its outputs",
            gpi__name_in(d, which));
        d->silent[which] = 0;
    }
    if (more < 0 || count)
        return more < 0 ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK;
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                     "desc.upstream is empty; it names the outputs that have an upstream, or is NULL");
}

/* Whether the gradient calls something by that name: d_NAME, dy or dy_NAME. */
static int gpi__gives_name(const gpi__derivation *d, const char *name) {
    char given[GPI__FORMULA_NAME + 4];
    int i, which;
    for (i = 0; i <= GPI__RESULT + d->wrt_count; i++) {
        which = i <= GPI__RESULT ? i : d->wrt[i - GPI__RESULT - 1];
        if (i <= GPI__RESULT && (d->graph.assigned[i].node < 0 || d->silent[i]))
            continue;
        snprintf(given, sizeof given, "%s%s",
                 i < GPI__RESULT   ? "dy_"
                 : i > GPI__RESULT ? "d_"
                                   : "dy",
                 i == GPI__RESULT ? "" : gpi__name_in(d, which));
        if (strcmp(name, given) == 0)
            return 1;
    }
    return 0;
}

/* What may be read needs a name that the gradient does not give. */
static gemmepi_status gpi__check_given_names(const gpi__derivation *d) {
    int i;
    for (i = 0; i <= GPI__OF_VALUE; i++)
        GPI__INVALID_IF(
            (i == GPI__OF_VALUE ? !d->desc.without_value : i < d->desc.operand_count && d->readable[i]) &&
                gpi__gives_name(d, gpi__name_in(d, i)),
            "desc.formula reads %s, a name that its gradient gives; choose another", gpi__name_in(d, i));
    return GEMMEPI_OK;
}

static int gpi__has_operand_called(const gemmepi_derive_desc *desc, const char *name) {
    int i;
    for (i = 0; desc->operands && i < desc->operand_count && i < GPI__FORMULA_OPERANDS; i++)
        if (desc->operands[i].name && strcmp(desc->operands[i].name, name) == 0)
            return 1;
    return 0;
}

/* Where count or pointer are bad nothing is taken, which parsing refuses. */
static void gpi__list_operands_to_derive(gpi__derivation *d, const gemmepi_derive_desc *desc) {
    int i;
    for (i = 0; desc->operands && i < desc->operand_count && desc->operand_count <= GPI__FORMULA_OPERANDS;
         i++) {
        gemmepi_operand *operand = &d->operands[i];
        *operand = desc->operands[i];
        if (operand->tensor && !operand->dtype)
            operand->dtype = operand->tensor->dtype ? operand->tensor->dtype : GEMMEPI_F32;
        d->desc.operands = d->operands;
    }
}

/* Whether a text ends with an expression, as what makes an operand does. */
static int gpi__ends_with_expression(const char *text) {
    size_t at = gpi__next_token(text, 0), length, next;
    int ends = 0;
    while (text[at]) {
        length = gpi__name_length(text + at);
        next = gpi__next_token(text, at + length);
        ends = !length || text[next] != '=' || text[next + 1] == '=';
        while (text[at] && text[at] != ';')
            at = gpi__next_token(text, at + 1);
        if (text[at])
            at = gpi__next_token(text, at + 1);
    }
    return ends;
}

static gemmepi_status gpi__start_derivation(gpi__derivation *d, const gemmepi_derive_desc *desc) {
    gemmepi_status status;
    int i;
    d->desc.text = desc->formula;
    d->desc.operands = desc->operands;
    d->desc.operand_count = desc->operand_count;
    d->desc.value = desc->value;
    d->desc.value_field = "value";
    d->ties_to_first = desc->ties_to_first;
    GPI__INVALID_IF(d->ties_to_first & ~1, "desc.ties_to_first is %d; accepted are 0 and 1",
                    d->ties_to_first);
    d->desc.without_value = !desc->value && gpi__has_operand_called(desc, "v"); /* as of a gradient's text */
    d->desc.without_result = gpi__has_operand_called(desc, "d");
    d->desc.is_of_operand = desc->formula && desc->value &&
                            (strcmp(desc->value, "a") == 0 || strcmp(desc->value, "b") == 0) &&
                            gpi__ends_with_expression(desc->formula);
    d->desc.without_result = d->desc.without_result || d->desc.is_of_operand;
    if (d->desc.is_of_operand)
        d->desc.stored = GEMMEPI_U4; /* nobody says in what it is stored, and it may be an index */
    d->desc.accumulator = GEMMEPI_F32;
    gpi__list_operands_to_derive(d, desc);
    for (i = 0; desc->operands && i < desc->operand_count && i < GPI__FORMULA_OPERANDS; i++)
        if (d->operands[i].dtype == GEMMEPI_F64 && desc->operands[i].kind != GEMMEPI_NUMBER)
            d->desc.accumulator = GEMMEPI_F64;
    d->desc.d = d->desc.accumulator;
    d->desc.of_any_type = 1;
    status = d->desc.is_of_operand ? gpi__parse_text_of_operand(&d->parser, &d->graph, &d->desc, d->operands)
                                   : gpi__parse(&d->parser, &d->graph, &d->desc);
    if (!status)
        status = gpi__check_names_for_gradient(&d->desc, 0);
    if (!status)
        status = gpi__parse_lists(d, desc);
    if (!status)
        status = gpi__parse_upstreams(d, desc->upstream);
    return status ? status : gpi__check_given_names(d);
}
#endif

#endif
