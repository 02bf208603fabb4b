/* Text to graph: statements, and what all of them must have done. The first mistake ends it. */
#ifndef GEMMEPI_FORMULA_PARSE_H
#define GEMMEPI_FORMULA_PARSE_H

#include "expression.h"

/* An output: the number of the operand, or the last, D. */
typedef struct gpi__assignment {
    size_t at, length;
    int output; /* -1: a name of the formula's own */
} gpi__assignment;

static int gpi__check_new_name(gpi__parser *p, const gpi__assignment *target) {
    const gpi__formula_desc *desc = p->graph->desc;
    const char *name = p->text + target->at;
    int i, length = (int)(target->length > 60 ? 60 : target->length);
    if (gpi__is_reserved(name, target->length))
        return gpi__refuse(p, target->at, "%.*s is a name of the language: choose another", length, name);
    if (!desc->without_value && gpi__is_name(name, target->length, gpi__value_name(desc)))
        return gpi__refuse(p, target->at, "%.*s is the value and cannot be assigned", length, name);
    for (i = 0; i < p->local_count; i++)
        if ((size_t)p->locals[i].length == target->length &&
            memcmp(p->locals[i].name, name, target->length) == 0)
            return gpi__refuse(p, target->at, "%.*s has a value already; a name is given one once", length,
                               name);
    if ((length > 2 && memcmp(name, "d_", 2) == 0) || (length > 3 && memcmp(name, "dy_", 3) == 0))
        return gpi__refuse(p, target->at, "%.*s: names that begin with d_ or dy_ are for operands only",
                           length, name);
    return 0;
}

static int gpi__parse_target(gpi__parser *p, gpi__assignment *target) {
    const gpi__formula_desc *desc = p->graph->desc;
    const char *name;
    int i;
    gpi__skip_blanks(p);
    target->at = p->token;
    name = p->text + target->at;
    target->length = gpi__name_length(name);
    target->output = -1;
    if (target->length == 0)
        return gpi__refuse_token(p, "a statement: name = expression");
    p->at += target->length;
    if (!desc->without_result && gpi__is_name(name, target->length, gpi__result_name(desc)))
        target->output = GPI__RESULT;
    for (i = 0; i < desc->operand_count; i++)
        if (gpi__is_name(name, target->length, desc->operands[i].name))
            target->output = i;
    if (target->output < 0)
        return gpi__check_new_name(p, target);
    if (target->output < GPI__RESULT && desc->is_of_operand)
        return gpi__refuse(p, target->at, "%s is an operand, and the formula of an operand assigns none",
                           desc->operands[target->output].name);
    if (target->output < GPI__RESULT && !desc->operands[target->output].output)
        return gpi__refuse(p, target->at, "%s is an input; to assign it set desc.operands[%d].output to 1",
                           desc->operands[target->output].name, target->output);
    if (p->graph->assigned[target->output].node >= 0)
        return gpi__refuse(p, target->at, "%.*s has a value already; a name is given one once",
                           (int)target->length, name);
    return 0;
}

/* Whether an output of this kind, width and type takes the expression. */
static int gpi__check_assignment(gpi__parser *p, const gpi__assignment *target, int node, int reduction,
                                 int64_t group) {
    const gpi__graph *graph = p->graph;
    int exchanged = graph->desc->exchanged;
    const gemmepi_operand *o;
    const gpi__reduction *of = &gpi__reductions[reduction];
    int width = graph->nodes[node].width, wanted;
    char room[2][16];
    if (target->output == GPI__RESULT)
        return reduction ? gpi__refuse(p, target->at,
                                       "%s is a matrix and cannot be a reduction; assign that "
                                       "to an output operand",
                                       gpi__result_name(graph->desc))
                         : 0;
    o = &graph->desc->operands[target->output];
    if (o->kind != of->kind) /* both as the caller has them */
        return gpi__refuse(p, target->at, "%s is %s, and what it is assigned is %s%s; %s outputs accept %s",
                           o->name, gpi__kind_names[o->kind],
                           reduction ? gpi__reduction_name(reduction, exchanged && group) : "no reduction",
                           !reduction ? ""
                           : group    ? " of groups, which is for others"
                                      : ", which is for others",
                           gpi__kind_names[o->kind],
                           o->kind == GEMMEPI_FULL ? "what is no reduction"
                           : o->kind == GEMMEPI_BLOCKED
                               ? "row_sum(x, w) and so on, in column-major order column_sum(x, w)"
                           : o->kind == GEMMEPI_PER_ROW    ? "row_sum and so on"
                           : o->kind == GEMMEPI_PER_COLUMN ? "column_sum and so on"
                                                           : "all_sum and all_max");
    if (group && (o->block_rows != (exchanged ? group : 1) || o->block_columns != (exchanged ? 1 : group)))
        return gpi__refuse(
            p, target->at,
            "%s has blocks of %lld x %lld, and what it is assigned is of groups of %lld: set block_%s to "
            "that and block_%s to 1",
            o->name, (long long)o->block_rows, (long long)o->block_columns, (long long)group,
            exchanged ? "rows" : "columns", exchanged ? "columns" : "rows");
    wanted = gpi__width_of(graph, o->kind, o->width);
    if (wanted < 0)
        return gpi__refuse_third_width(p, target->at, o);
    if (width && wanted && width != wanted) {
        p->is_of_widths = 1;
        return gpi__refuse(p, target->at, "%s is %s columns wide, but what it is assigned is %s", o->name,
                           gpi__width_in_words(graph, wanted, room[0]),
                           gpi__width_in_words(graph, width, room[1]));
    }
    if (o->accumulate && (!reduction || of->op != GPI__REDUCE_SUM))
        return gpi__refuse(p, target->at, "%s accumulates, which only sums do", o->name);
    if (graph->desc->accumulator != GEMMEPI_I32 && o->dtype != GEMMEPI_DTYPE_DEFAULT &&
        (o->dtype == GEMMEPI_I32) != (of->op == GPI__REDUCE_ARGMAX))
        return gpi__refuse(p, target->at,
                           "%s is in %s; row_argmax and column_argmax, and nothing else, are in I32", o->name,
                           gpi__dtype(o->dtype)->name);
    return 0;
}

/* What row_sum makes a mean of: x through the number of columns that it is wide, where columns counts in the wider of two. */
static int gpi__through_columns(gpi__parser *p, size_t at, int x) {
    const gpi__graph *graph = p->graph;
    int width = graph->nodes[x].width ? (int)graph->nodes[x].width : graph->n_width;
    int16_t args[5] = {-1, -1, -1, -1, -1};
    args[0] = (int16_t)x;
    args[1] =
        (int16_t)gpi__number(p->graph, width == GPI__NARROW && !graph->desc->exchanged ? graph->parts : 1);
    return args[1] < 0 ? gpi__refuse_room(p, at)
                       : gpi__write_out(p, "x * (y / columns)", (int)at, "row_mean", args);
}

static const gpi__reduction *gpi__reduction_of(const gpi__graph *graph, int output) {
    return &gpi__reductions[graph->assigned[output].reduction];
}

/* What an operand's dtype 0 stands for. */
static gemmepi_dtype gpi__dtype_of_operand(const gpi__graph *graph, int i) {
    const gemmepi_operand *operand = &graph->desc->operands[i];
    const gpi__formula_desc *desc = graph->desc;
    if (operand->dtype)
        return operand->dtype;
    if (operand->kind == GEMMEPI_NUMBER)
        return GEMMEPI_F64;
    if (graph->assigned[i].reduction)
        return gpi__reduction_of(graph, i)->op == GPI__REDUCE_ARGMAX ? GEMMEPI_I32
               : desc->accumulator == GEMMEPI_F64                    ? GEMMEPI_F64
                                                                     : GEMMEPI_F32;
    return gpi__is_fp8((int)desc->d) ? GEMMEPI_BF16 : desc->d;
}

/* Whether what stands at `at`, a reduction or stochastic, is assigned to an output; its name is taken. */
static int gpi__begin_whole(gpi__parser *p, const gpi__assignment *target, size_t at, size_t length) {
    if (target->output < 0)
        return gpi__refuse(p, at, "%.*s is assigned to outputs only; %.*s is none", (int)length, p->text + at,
                           (int)(target->length > 60 ? 60 : target->length), p->text + target->at);
    p->at += length;
    return gpi__want(p, "(", "the '(' behind the name of a function");
}

/* And whether the statement ends behind its ')'. */
static int gpi__end_whole(gpi__parser *p, size_t at, size_t length) {
    if (!gpi__accept(p, ";") && p->text[p->token])
        return gpi__refuse(p, p->token, "%.*s is the whole right side of its statement", (int)length,
                           p->text + at);
    p->at = p->token;
    return 0;
}

/* stochastic(x, seed) or stochastic(x, seed, i), the whole right side: x itself where the output's type is F32 or F64. */
static int gpi__stochastic(gpi__parser *p, const gpi__assignment *target, size_t at, size_t length) {
    int output = target->output;
    gemmepi_dtype dtype;
    gpi__call call;
    gpi__node node;
    gpi__start_call(&call, p->text, at, length);
    if (gpi__begin_whole(p, target, at, length) < 0 || gpi__parse_arguments(p, &call) < 0)
        return -1;
    if (call.count < 2 || call.count > 3)
        return gpi__refuse_count(p, &call, 2, 3);
    if (call.count == 2 && (call.args[2] = (int16_t)gpi__number(p->graph, GPI__STOCHASTIC_STREAM)) < 0)
        return gpi__refuse_room(p, at);
    if (gpi__check_draw(p, &call, 1) < 0 || gpi__end_whole(p, at, length) < 0)
        return -1;
    dtype = output == GPI__RESULT ? p->graph->desc->d : gpi__dtype_of_operand(p->graph, output);
    if (dtype == GEMMEPI_F32 || dtype == GEMMEPI_F64)
        return call.args[0];
    if (dtype != GEMMEPI_F16 && dtype != GEMMEPI_BF16)
        return gpi__refuse(p, at, "stochastic rounds to F16 and BF16; %.*s is in %s", (int)target->length,
                           p->text + target->at, gpi__dtype(dtype)->name);
    node = gpi__node_of(GPI__OP_STOCHASTIC, call.args[0], call.args[1], call.args[2]);
    node.place = (int16_t)dtype;
    return gpi__apply(p, at, call.name, &node);
}

/* The w of row_sum(x, w), whose ',' has been read; reduction becomes that of groups. -1: it is refused. */
static int64_t gpi__parse_reduced_group(gpi__parser *p, size_t at, size_t length, int *reduction) {
    int exchanged = p->graph->desc->exchanged;
    int of_groups = gpi__reduction_to(*reduction, GEMMEPI_BLOCKED);
    size_t digits;
    double w;
    if (gpi__reductions[*reduction].kind != (exchanged ? GEMMEPI_PER_COLUMN : GEMMEPI_PER_ROW) || !of_groups)
        return gpi__refuse(p, at, "%.*s has one value; groups of columns that lie side by side are for %s",
                           (int)length, p->text + at,
                           exchanged ? "column_sum, column_max and column_min in column-major order"
                                     : "row_sum, row_mean, row_max and row_min");
    *reduction = of_groups;
    gpi__skip_blanks(p);
    digits = gpi__number_length(p->text + p->token);
    w = digits && digits < 1000 ? gpi__number_of(p->text + p->token, digits) : 0;
    if (!(w >= 8 && w <= 1073741824 && floor(w / 8) * 8 == w))
        return gpi__refuse(p, p->token,
                           "the w of %.*s(x, w) is a number in the text, a multiple of 8 up to 2^30",
                           (int)length, p->text + at);
    p->at += digits;
    return (int64_t)w;
}

/* What row_sum of groups of so many makes a mean of. */
static int gpi__through_group(gpi__parser *p, size_t at, int x, int64_t group) {
    gpi__node node = gpi__node_of(GPI__OP_DIV, x, gpi__number(p->graph, (double)group), -1);
    return node.args[1] < 0 ? gpi__refuse_room(p, at) : gpi__apply(p, at, "row_mean", &node);
}

/* reduction ( expression ) or reduction ( expression , w ), the whole right side. group: w, 0: there is none. */
static int gpi__right_side(gpi__parser *p, const gpi__assignment *target, int *reduction, int64_t *group) {
    size_t at, length;
    int node, is_mean;
    *group = 0;
    gpi__skip_blanks(p);
    at = p->token;
    length = gpi__name_length(p->text + at);
    is_mean = gpi__is_mean(p->text + at, length);
    *reduction = is_mean ? gpi__reduction_called("row_sum", 7) : gpi__reduction_called(p->text + at, length);
    if (gpi__is_name(p->text + at, length, "stochastic"))
        return gpi__stochastic(p, target, at, length);
    if (!*reduction)
        return gpi__expression(p, 1);
    if (p->graph->desc->accumulator == GEMMEPI_I32)
        return gpi__refuse(p, at, "there are no reductions with results in I32");
    if (gpi__begin_whole(p, target, at, length) < 0)
        return -1;
    node = gpi__expression(p, 1);
    if (node >= 0 && gpi__accept(p, ","))
        *group = gpi__parse_reduced_group(p, at, length, reduction);
    if (node < 0 || *group < 0 ||
        gpi__want(p, ")",
                  *group ? "the ')' of the reduction" : "the ')' of the reduction, or a comma and w") < 0 ||
        gpi__end_whole(p, at, length) < 0)
        return -1;
    return !is_mean ? node
           : *group ? gpi__through_group(p, at, node, *group)
                    : gpi__through_columns(p, at, node);
}

/* Whether the expression begins here that ends the text of an operand. */
static int gpi__is_last_expression(const gpi__parser *p) {
    size_t length = gpi__name_length(p->text + p->at), at = gpi__next_token(p->text, p->at + length);
    return p->graph->desc->is_of_operand && (!length || p->text[at] != '=' || p->text[at + 1] == '=');
}

/* The expression, with which the text ends. */
static int gpi__end_with_expression(gpi__parser *p) {
    gpi__assignment target = {p->at, 0, GPI__RESULT};
    int64_t group;
    int reduction, node = gpi__right_side(p, &target, &reduction, &group);
    if (node < 0)
        return -1;
    if (reduction)
        return gpi__refuse(p, target.at, "the formula of an operand has no reductions");
    (void)gpi__accept(p, ";");
    if (!gpi__skip_blanks(p) || p->text[p->at])
        return gpi__refuse_token(
            p, "an operator or the end: the formula of an operand ends with its expression");
    p->graph->assigned[GPI__RESULT].node = (int16_t)node;
    p->graph->assigned[GPI__RESULT].at = (int16_t)target.at;
    return 0;
}

static int gpi__statement(gpi__parser *p) {
    gpi__assignment target;
    gpi__local *local;
    int64_t group;
    int node, reduction;
    if (gpi__is_last_expression(p))
        return gpi__end_with_expression(p);
    if (gpi__parse_target(p, &target) < 0 ||
        gpi__want(p, "=", "the '=' of a statement: name = expression") < 0)
        return -1;
    node = gpi__right_side(p, &target, &reduction, &group);
    if (node < 0)
        return -1;
    if (target.output < 0) {
        if (p->local_count == (int)GPI__COUNT(p->locals))
            return gpi__refuse(p, target.at, "the formula gives more than %d names", p->local_count);
        local = &p->locals[p->local_count++];
        local->name = p->text + target.at;
        local->length = (int16_t)target.length;
        local->node = (int16_t)node;
        local->is_read = 0;
        if (p->graph->names[node] < 0)
            p->graph->names[node] = (int)target.at;
        return 0;
    }
    if (gpi__check_assignment(p, &target, node, reduction, group) < 0)
        return -1;
    p->graph->assigned[target.output].node = (int16_t)node;
    p->graph->assigned[target.output].at = (int16_t)target.at;
    p->graph->assigned[target.output].reduction =
        (int16_t)(p->graph->desc->exchanged ? gpi__reduction_across(reduction) : reduction);
    return 0;
}

static int gpi__check_all_read(const gpi__parser *p) {
    int i;
    for (i = 0; i < p->local_count; i++) {
        const gpi__local *local = &p->locals[i];
        const char *nearest;
        if (local->is_read)
            continue;
        nearest = gpi__nearest_name(p->graph->desc, local->name, (size_t)local->length, 1);
        return gpi__refuse(p, (size_t)(local->name - p->text),
                           "%.*s is assigned, but nothing reads it; %s%s%s",
                           local->length > 60 ? 60 : local->length, local->name,
                           nearest ? "did you mean " : "leave it out, or list it among desc.operands",
                           nearest ? nearest : "", nearest ? "?" : " as an output");
    }
    return 0;
}

static int gpi__check_all_assigned(const gpi__parser *p) {
    const gpi__formula_desc *desc = p->graph->desc;
    int i, any = p->graph->assigned[GPI__RESULT].node >= 0;
    for (i = 0; i < desc->operand_count; i++) {
        any = any || desc->operands[i].output;
        if (desc->operands[i].output && p->graph->assigned[i].node < 0)
            return gpi__refuse(p, p->at, "the formula ends, and %s, an output, has not been assigned",
                               desc->operands[i].name);
    }
    if (any)
        return 0;
    if (desc->is_of_operand)
        return gpi__refuse(p, p->at, "the formula ends without an expression, which would be the operand");
    return gpi__refuse(p, p->at, "the formula ends and has assigned no output%s%s",
                       desc->without_result ? "" : ": neither an operand nor ",
                       desc->without_result ? "" : gpi__result_name(desc));
}

static int gpi__parse_statements(gpi__parser *p) {
    for (;;) {
        if (!gpi__skip_blanks(p))
            return gpi__refuse_token(p, "");
        if (!p->text[p->at])
            return gpi__check_all_read(p) < 0 ? -1 : gpi__check_all_assigned(p);
        if (gpi__statement(p) < 0)
            return -1;
        if (!gpi__accept(p, ";") && p->text[p->token])
            return gpi__refuse_token(p, "an operator or the ';' between statements");
    }
}

static void gpi__start_parser(gpi__parser *p, gpi__graph *graph, const char *text) {
    p->graph = graph;
    p->text = text;
    p->at = p->token = 0;
    p->depth = p->is_of_widths = p->local_count = 0;
    p->rule = NULL;
    p->whole = NULL;
}

/* More of a gradient, which has what begins with d_ among its outputs. */
static int gpi__most_characters(const gpi__formula_desc *desc) {
    int i, derived = strncmp(gpi__result_name(desc), "d_", 2) == 0;
    for (i = 0; i < desc->operand_count; i++)
        derived = derived || (desc->operands[i].output && strncmp(desc->operands[i].name, "d_", 2) == 0);
    return derived ? GPI__GRADIENT_CHARACTERS : GPI__FORMULA_CHARACTERS;
}

/* The graph of desc.text, the whole. n is as wide as what is widest, or, where that comes to a mistake of widths, a part of it. What counts
   the parts before they have been named is parsed again. */
static gemmepi_status gpi__parse(gpi__parser *p, gpi__graph *graph, const gpi__formula_desc *desc) {
    static const int widths[] = {GPI__WIDE, GPI__NARROW, GPI__WIDE};
    gemmepi_status status = gpi__check_formula_desc(desc);
    size_t reached[3];
    int turn, parts = 2;
    if (status)
        return status;
    GPI__INVALID_IF(strlen(desc->text) > (size_t)gpi__most_characters(desc),
                    "desc.formula has %llu characters; at most %d are accepted", (gpi__ull)strlen(desc->text),
                    gpi__most_characters(desc));
    for (turn = 0; turn < 3; turn++) {
        gpi__clear_graph(graph, desc, widths[turn]);
        graph->parts = parts;
        gpi__make_product(graph);
        gpi__start_parser(p, graph, desc->text);
        if (gpi__parse_statements(p) == 0) {
            if (graph->parts == parts)
                return GEMMEPI_OK;
            parts = graph->parts, turn = -1;
            continue;
        }
        reached[turn] = p->at;
        if ((turn == 0 && !p->is_of_widths) || (turn == 1 && reached[1] > reached[0]))
            break;
    }
    return GEMMEPI_INVALID_ARGUMENT;
}

/* >>the text of an operand */

/* Widths count from what is made, and the parser's from the value: as of a formula whose D is this wide. One that there is not stays the
   same as D's, and *other is set. */
static void gpi__count_from_value(gemmepi_operand *operand, int exchanged, int made, int *other) {
    int along = exchanged ? GEMMEPI_PER_ROW : GEMMEPI_PER_COLUMN, given = (int)operand->width;
    if (made == GEMMEPI_WIDTH_N || ((int)operand->kind != along && operand->kind < GEMMEPI_FULL))
        return;
    *other |= given == made;
    operand->width = given == GEMMEPI_WIDTH_N ? (gemmepi_width)made : GEMMEPI_WIDTH_N;
}

/* Whether it reads the operand node.place, by place or by index. */
static int gpi__is_of_operand(const gpi__node *node) {
    return node->op == GPI__OP_OPERAND || node->op == GPI__OP_LOOK_UP;
}

static gemmepi_width gpi__public_width(int n_width, int width) {
    return !width || width == n_width ? GEMMEPI_WIDTH_N
           : width > n_width          ? GEMMEPI_WIDTH_DOUBLE
                                      : GEMMEPI_WIDTH_HALF;
}

/* 1 for each node that an output needs. */
static void gpi__mark_live(const gpi__graph *graph, uint8_t *live) {
    int i, a;
    memset(live, 0, GPI__GRAPH_NODES);
    for (i = 0; i <= GPI__RESULT; i++)
        if (graph->assigned[i].node >= 0)
            live[graph->assigned[i].node] = 1;
    for (i = graph->count - 1; i >= 0; i--)
        for (a = 0; a < 3 && live[i]; a++)
            if (graph->nodes[i].args[a] >= 0)
                live[graph->nodes[i].args[a]] = 1;
}

/* Whether what the outputs need reads an operand of another width. */
static int gpi__reads_other(const gpi__graph *graph, const int other[GPI__FORMULA_OPERANDS]) {
    uint8_t live[GPI__GRAPH_NODES];
    int i;
    gpi__mark_live(graph, live);
    for (i = 0; i < graph->count; i++)
        if (live[i] && gpi__is_of_operand(&graph->nodes[i]) && other[graph->nodes[i].place])
            return 1;
    return 0;
}

/* Parses the text of an operand, where the widths of its operands count from what is made. What is stored is as wide, or wider, or narrower:
   the first of these that the text can be is meant, and by it desc's operands, which are these unless they are refused, have their widths. */
static gemmepi_status gpi__parse_text_of_operand(gpi__parser *p, gpi__graph *graph,
                                                 const gpi__formula_desc *desc, gemmepi_operand *operands) {
    gemmepi_width given[GPI__FORMULA_OPERANDS];
    char first[GPI__ERROR_TEXT_SIZE] = "";
    gemmepi_status status = GEMMEPI_OK;
    int i, made, count = desc->operands == operands ? desc->operand_count : 0;
    for (i = 0; i < count; i++)
        given[i] = operands[i].width;
    for (made = GEMMEPI_WIDTH_N; made <= GEMMEPI_WIDTH_DOUBLE; made++) {
        int other[GPI__FORMULA_OPERANDS] = {0};
        for (i = 0; i < count; i++) {
            operands[i].width = given[i];
            gpi__count_from_value(&operands[i], desc->exchanged, made, &other[i]);
        }
        status = gpi__parse(p, graph, desc);
        if (!status &&
            (int)gpi__public_width(graph->n_width, graph->nodes[graph->assigned[GPI__RESULT].node].width) ==
                made &&
            !gpi__reads_other(graph, other))
            return GEMMEPI_OK;
        if (status && !first[0])
            memcpy(first, gpi__error_text, sizeof first);
        if (status && !p->is_of_widths)
            break;
    }
    return gpi__fail(status ? status : GEMMEPI_INVALID_ARGUMENT, "%s",
                     first[0] ? first
                              : "desc.formula reads an operand of another width than that of what is stored "
                                "and of what it makes");
}

#endif
