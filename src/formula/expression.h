/* Expressions of a text become nodes. */
#ifndef GEMMEPI_FORMULA_EXPRESSION_H
#define GEMMEPI_FORMULA_EXPRESSION_H

#include "nodes.h"

static int gpi__expression(gpi__parser *p, int precedence);

/* What the text of a written function, which is called at that place, makes of its arguments. */
static int gpi__write_out(gpi__parser *p, const char *of, int place, const char *name, const int16_t *args) {
    const char *text = p->text, *whole = p->whole;
    const int16_t *rule = p->rule;
    size_t at = p->at;
    int node;
    if (!whole)
        p->whole = text, p->call = rule ? -1 : place, p->called = name;
    p->text = of, p->at = 0, p->rule = args;
    node = gpi__expression(p, 1);
    p->text = text, p->whole = whole, p->rule = rule, p->at = p->token = at;
    return node;
}

static int gpi__deeper(gpi__parser *p) {
    if (++p->depth <= GPI__FORMULA_DEPTH)
        return 0;
    return gpi__refuse(p, p->token, "more than %d expressions are nested; name some of them",
                       GPI__FORMULA_DEPTH);
}

/* A function, where it stands and its arguments, of which more than have room are refused by the count. */
typedef struct gpi__call {
    size_t at, places[GPI__MOST_PARTS];
    char name[24];
    int op, part, row, count; /* part: the row of gpi__part_names; row: the activation's, or -1 */
    int16_t args[GPI__MOST_PARTS];
} gpi__call;

static int gpi__refuse_counts(const gpi__parser *p, const gpi__call *call, int argument) {
    return gpi__refuse(p, call->places[argument],
                       argument == 1 ? "the i of part(x, i, n) is a whole number in the text, from 0 to n - 1"
                                     : "the n of part(x, i, n) is a whole number in the text, from 2 to %d",
                       GPI__MOST_PARTS);
}

/* i or n of part(x, i, n). */
static int gpi__parse_count(gpi__parser *p, const gpi__call *call) {
    size_t length = gpi__number_length(p->text + p->token);
    double number = length && length < 1000 ? gpi__number_of(p->text + p->token, length) : -1;
    p->at += length;
    return number >= 0 && number <= (int)GPI__MOST_PARTS && floor(number) == number
               ? (int)number
               : gpi__refuse_counts(p, call, call->count);
}

/* '(' has been taken. */
static int gpi__parse_arguments(gpi__parser *p, gpi__call *call) {
    int has_counts = call->op == GPI__OP_PART && call->part == GPI__PART_CALL;
    int node;
    if (gpi__accept(p, ")"))
        return 0;
    for (;;) {
        gpi__skip_blanks(p);
        if (call->count < GPI__MOST_PARTS)
            call->places[call->count] = p->token;
        node = has_counts && (call->count == 1 || call->count == 2) ? gpi__parse_count(p, call)
                                                                    : gpi__expression(p, 1);
        if (node < 0)
            return -1;
        if (call->count < GPI__MOST_PARTS)
            call->args[call->count] = (int16_t)node;
        call->count++;
        if (gpi__accept(p, ")"))
            return 0;
        if (gpi__want(p, ",", "a comma or the ')' of the function's arguments") < 0)
            return -1;
    }
}

static int gpi__refuse_count(const gpi__parser *p, const gpi__call *call, int least, int most) {
    static const char *const takes[] = {"no value", "one value", "two values", "three values"};
    static const char *const is_given[] = {"none is", "one is", "two are", "three are", "more are"};
    const char *given = is_given[call->count > 4 ? 4 : call->count];
    if (least == most)
        return gpi__refuse(p, call->at, "%s needs %s, %s given", call->name, takes[most], given);
    return gpi__refuse(p, call->at, "%s needs %s, or %s with its parameter; %s given", call->name,
                       takes[least], takes[most], given);
}

/* A group's width, the last argument of left, right and pair. */
static int gpi__parse_group(gpi__parser *p, size_t at, int node, double *group) {
    double w = node >= 0 && gpi__is_number(p->graph, node) ? p->graph->nodes[node].number : 0;
    if (!(w >= 2 && w <= 1073741824 && floor(w / 2) * 2 == w))
        return gpi__refuse(p, at, "a group's width is an even number from 2 to 2^30");
    *group = w;
    return 0;
}

static int gpi__set_mode(gpi__parser *p, size_t at, int mode, int parts, double group) {
    gpi__graph *graph = p->graph;
    char room[16];
    snprintf(room, sizeof room, "%d parts", graph->parts);
    if (graph->mode && (graph->mode != mode || graph->parts != parts || (double)graph->group != group))
        return gpi__refuse(p, at,
                           "columns are divided in two ways in one formula: %s%s before, otherwise here",
                           graph->mode == GPI__EVEN_ODD ? "even and odd"
                           : graph->parts == 2          ? "left and right"
                                                        : room,
                           graph->group ? " of groups" : "");
    graph->mode = mode;
    graph->parts = parts;
    graph->group = (int64_t)group;
    return 0;
}

/* Fills in how many parts there are, which one is meant, and how wide a group is. */
static int gpi__read_parts(gpi__parser *p, const gpi__call *call, int *parts, int *part, double *group) {
    int wanted = call->op == GPI__OP_JOIN ? 2 : 1, is_part = call->part == GPI__PART_CALL;
    *parts = 2, *part = gpi__part_names[call->part].part, *group = 0;
    if (call->part == GPI__PARTS_CALL) {
        *parts = call->count;
        return call->count >= 2 && call->count <= GPI__MOST_PARTS
                   ? 0
                   : gpi__refuse(p, call->at, "parts needs 2 to %d values, of each part one; %d are given",
                                 GPI__MOST_PARTS, call->count);
    }
    if (is_part && call->count == 3) {
        *part = call->args[1], *parts = call->args[2];
        return *parts < 2        ? gpi__refuse_counts(p, call, 2)
               : *part >= *parts ? gpi__refuse_counts(p, call, 1)
                                 : 0;
    }
    if (!is_part && call->count == wanted + 1 && gpi__part_names[call->part].mode == GPI__LEFT_RIGHT)
        return gpi__parse_group(p, call->places[wanted], call->args[wanted], group);
    wanted = is_part ? 3 : wanted;
    return call->count == wanted ? 0 : gpi__refuse_count(p, call, wanted, wanted);
}

/* A part of x, or all parts joined, from the last on. */
static int gpi__call_of_parts(gpi__parser *p, const gpi__call *call) {
    int joins = call->op == GPI__OP_JOIN, parts, part, made;
    double group;
    gpi__node node;
    if (gpi__read_parts(p, call, &parts, &part, &group) < 0 ||
        gpi__set_mode(p, call->at, gpi__part_names[call->part].mode, parts, group) < 0)
        return -1;
    part = joins ? parts - 2 : part;
    made = call->args[joins ? parts - 1 : 0];
    do {
        node = gpi__node_of(call->op, joins ? call->args[part] : made, joins ? made : -1, -1);
        node.place = (int16_t)part;
        made = gpi__apply(p, call->at, call->name, &node);
    } while (joins && made >= 0 && --part >= 0);
    return made;
}

static int gpi__call_of_activation(gpi__parser *p, const gpi__call *call) {
    gpi__node node = gpi__node_of(call->op, call->args[0], call->args[1], -1);
    double parameter = gpi__activations[call->row].parameter;
    int most = parameter != 0 ? 2 : 1;
    if (call->count < 1 || call->count > most)
        return gpi__refuse_count(p, call, 1, most);
    node.place = (int16_t)call->row;
    if (call->count < most)
        node.args[1] = (int16_t)gpi__number(p->graph, parameter);
    if (call->count < most && node.args[1] < 0)
        return gpi__refuse_room(p, call->at);
    return gpi__apply(p, call->at, call->name, &node);
}

/* Seed and i, which are the arguments from `at` on. */
static int gpi__check_draw(gpi__parser *p, const gpi__call *call, int at) {
    const gpi__node *seed = &p->graph->nodes[call->args[at]], *i = &p->graph->nodes[call->args[at + 1]];
    const gemmepi_operand *operands = p->graph->desc->operands;
    int is_good = i->op == GPI__OP_NUMBER && i->number >= 0 && i->number <= 4294967295.0 &&
                  floor(i->number) == i->number;
    if (seed->op != GPI__OP_OPERAND || operands[seed->place].kind != GEMMEPI_SCALAR ||
        operands[seed->place].dtype != GEMMEPI_I64)
        return gpi__refuse(p, call->places[at], "the seed of %s is an operand of the kind SCALAR in I64",
                           call->name);
    if (i->op == GPI__OP_OPERAND)
        is_good = i->type == GPI__OF_WHOLE && operands[i->place].kind == GEMMEPI_SCALAR;
    return is_good ? 0
                   : gpi__refuse(
                         p, call->places[at + 1],
                         "the %s value of %s is a whole number from 0 to 2^32 - 1 or an operand of the kind "
                         "SCALAR in I32 or I64",
                         at ? "third" : "second", call->name);
}

/* What function has that name, which is one. */
static void gpi__start_call(gpi__call *call, const char *text, size_t at, size_t length) {
    size_t kept = length < sizeof call->name ? length : sizeof call->name - 1;
    memset(call, 0, sizeof *call);
    call->at = at;
    memcpy(call->name, text + at, kept);
    memset(call->args, -1, sizeof call->args); /* none */
    call->op = gpi__function_called(text + at, length, &call->part);
    call->row = gpi__activation_called(text + at, length);
    if (call->row >= 0) {
        call->op = GPI__OP_ACTIVATE;
    } else if (call->op < 0) {
        call->op = GPI__OP_DERIVE;
        call->row = gpi__activation_called(text + at + 2, length - 2);
    }
}

/* A function whose '(' has been taken. */
static int gpi__function(gpi__parser *p, size_t at, size_t length) {
    const gpi__operation_of_formula *row;
    gpi__call call;
    gpi__node node;
    int count, written = gpi__written_called(p->text + at, length);
    gpi__start_call(&call, p->text, at, length);
    if (gpi__parse_arguments(p, &call) < 0)
        return -1;
    if (written >= 0) {
        count = gpi__written_functions[written].count;
        return call.count == count
                   ? gpi__write_out(p, gpi__written_functions[written].text, (int)at, call.name, call.args)
                   : gpi__refuse_count(p, &call, count, count);
    }
    if (call.row >= 0)
        return gpi__call_of_activation(p, &call);
    if (call.op >= GPI__OP_PART)
        return gpi__call_of_parts(p, &call);
    row = gpi__operation_of(call.op);
    if (call.count < row->least || call.count > row->most)
        return gpi__refuse_count(p, &call, row->least, row->most);
    if (call.op == GPI__OP_UNIFORM && gpi__check_draw(p, &call, 0) < 0)
        return -1;
    node = gpi__node_of(call.op, call.args[0], call.args[1], call.args[2]);
    return gpi__apply(p, at, call.name, &node);
}

/* Why an operand is not read by index, in words; NULL: it may be. */
static const char *gpi__no_table(const gpi__formula_desc *desc, const gemmepi_operand *operand) {
    if (operand->output || operand->kind < GEMMEPI_PER_ROW || operand->kind > GEMMEPI_FULL)
        return "only inputs of the kinds PER_ROW, PER_COLUMN and FULL are read by index";
    if (operand->kind == GEMMEPI_FULL && desc->exchanged)
        return "where rows are contiguous only inputs of the kinds PER_ROW and PER_COLUMN are read by index";
    if (operand->width)
        return "what is read by index has as many elements as its period says, or n: leave its width 0";
    if (operand->dtype == GEMMEPI_I64 || (operand->dtype == GEMMEPI_I32 && desc->accumulator != GEMMEPI_I32))
        return "an operand in I64, or in I32 without results in I32, is no table but an index";
    return NULL;
}

/* Whether it is read in I8, I4 or U4 as it is stored: a whole number, though not compared as one. */
static int gpi__is_read_whole(const gpi__graph *graph, const gpi__node *node) {
    const gemmepi_operand *operand;
    gemmepi_dtype dtype = graph->desc->stored;
    if (node->op == GPI__OP_PART)
        node = &graph->nodes[node->args[0]];
    if (node->op == GPI__OP_OPERAND) {
        operand = &graph->desc->operands[node->place];
        dtype = operand->scale.mode ? GEMMEPI_DTYPE_DEFAULT : operand->dtype;
    } else if (node->op != GPI__OP_VALUE) {
        return 0;
    }
    return dtype == GEMMEPI_I8 || dtype == GEMMEPI_I4 || dtype == GEMMEPI_U4;
}

/* table[index], of which the name has been read and '[' taken. */
static int gpi__look_up(gpi__parser *p, size_t at, size_t length) {
    const gpi__formula_desc *desc = p->graph->desc;
    const char *name = p->text + at, *why = "only operands are read by index";
    gpi__node node;
    size_t where;
    int i = 0, index;
    while (i < desc->operand_count && !gpi__is_name(name, length, desc->operands[i].name))
        i++;
    if (i == desc->operand_count && gpi__read_name(p, at, name, length) == -1)
        return -1;
    if (i < desc->operand_count)
        why = gpi__no_table(desc, &desc->operands[i]);
    if (why)
        return gpi__refuse(p, at, "%.*s[...]: %s", (int)(length > 60 ? 60 : length), name, why);
    gpi__skip_blanks(p);
    where = p->token;
    index = gpi__expression(p, 1);
    if (index < 0 || gpi__want(p, "]", "an operator or the ']' behind an index") < 0)
        return -1;
    if (!gpi__is_whole_node(&p->graph->nodes[index], (int)desc->accumulator) &&
        !gpi__is_read_whole(p->graph, &p->graph->nodes[index]))
        return gpi__refuse(
            p, where,
            "an index is a whole number: an operand in I32, I64 or, without a scale, I8, I4 or "
            "U4, row, column or item, an extent, or a number in the text");
    node = gpi__node_of(GPI__OP_LOOK_UP, index, -1, -1);
    node.place = (int16_t)i;
    return gpi__apply(p, at, desc->operands[i].name, &node);
}

#define GPI__ROUNDS_TO_INFINITY \
    3.4028235677973366e38 /* in F32: its largest number and half of the last bit */

/* Whether the digits of a number are all 0. */
static int gpi__is_written_as_0(const char *text, size_t length) {
    size_t i;
    for (i = 0; i < length && text[i] != 'e' && text[i] != 'E'; i++)
        if (text[i] > '0' && text[i] <= '9')
            return 0;
    return 1;
}

/* Whether a number of the text is one in the type of the accumulator: it does not become infinite, nor 0, nor in F32 a subnormal number that
   has lost digits. */
static int gpi__check_literal(const gpi__parser *p, size_t at, double number, size_t length) {
    int is_f32 = p->graph->desc->accumulator != GEMMEPI_F64 && !p->graph->desc->of_any_type;
    if (!(number <= DBL_MAX) || (is_f32 && number >= GPI__ROUNDS_TO_INFINITY))
        return gpi__refuse(p, at, "the number is out of range; the largest %s is %s",
                           number > DBL_MAX ? "F64" : "F32",
                           number > DBL_MAX ? "1.7976931348623157e308" : "3.4028234663852886e38");
    if (number > 0 ? !is_f32 || (float)number >= FLT_MIN || gpi__f32_holds(number)
                   : gpi__is_written_as_0(p->text + at, length))
        return 0;
    return gpi__refuse(p, at, "the number is out of range; the smallest %s",
                       is_f32 ? "F32 with all its digits is 1.1754943508222875e-38"
                              : "F64 is 4.9406564584124654e-324");
}

static int gpi__literal(gpi__parser *p, size_t length) {
    gemmepi_dtype accumulator = p->graph->desc->accumulator;
    size_t at = p->at;
    double number;
    int node;
    if (length >= 1000)
        return gpi__refuse(p, at, "the number has %d characters; at most 999 are accepted", (int)length);
    number = gpi__number_of(p->text + at, length);
    p->at += length;
    if (gpi__is_letter(p->text[p->at]) || p->text[p->at] == '.')
        return gpi__refuse(p, at,
                           "the number ends in what is none; accepted are digits, a point and an exponent");
    if (accumulator == GEMMEPI_I32 && !(number <= 2147483648.0 && floor(number) == number))
        return gpi__refuse(p, at, "with results in I32 numbers are whole and at most 2147483648");
    if (gpi__check_literal(p, at, number, length) < 0)
        return -1;
    node = gpi__number(p->graph, number);
    return node >= 0 ? node : gpi__refuse_room(p, at);
}

/* A number, a name, a function or parentheses. */
static int gpi__primary(gpi__parser *p) {
    const char *nearest;
    char room[16];
    size_t at, length;
    int node;
    if (gpi__accept(p, "(")) {
        node = gpi__expression(p, 1);
        return node < 0 || gpi__want(p, ")", "a ')' or an operator") < 0 ? -1 : node;
    }
    at = p->token;
    length = gpi__number_length(p->text + at);
    if (length)
        return gpi__literal(p, length);
    length = gpi__name_length(p->text + at);
    if (length == 0)
        return gpi__refuse_token(p, "a number, a name, a function or '('");
    if (gpi__reduction_called(p->text + at, length) || gpi__is_mean(p->text + at, length) ||
        gpi__is_name(p->text + at, length, "stochastic"))
        return gpi__refuse(p, at, "%.*s is the whole right side of a statement that assigns an output",
                           (int)length, p->text + at);
    p->at += length;
    if (gpi__accept(p, "["))
        return gpi__look_up(p, at, length);
    if (!gpi__accept(p, "(")) {
        node = gpi__read_name(p, at, p->text + at, length);
        if (node >= -1)
            return node;
        node = -2 - node;
        return gpi__write_out(p, gpi__written_functions[node].text, (int)at,
                              gpi__written_functions[node].name, p->rule);
    }
    node = gpi__written_called(p->text + at, length);
    if (node >= 0 && gpi__written_functions[node].count)
        return gpi__function(p, at, length);
    if (gpi__is_reserved(p->text + at, length) && gpi__index_called(p->text + at, length) < 0)
        return gpi__function(p, at, length);
    nearest = gpi__nearest_function(p->text + at, length, room);
    return gpi__refuse(p, at, "%.*s is not the name of a function%s%s%s", (int)(length > 60 ? 60 : length),
                       p->text + at, nearest ? "; did you mean " : "", nearest ? nearest : "",
                       nearest ? "?" : "");
}

static int gpi__unary(gpi__parser *p) {
    gpi__node node;
    size_t at;
    int x, is_not = gpi__accept(p, "!");
    if (is_not && p->text[p->at] == '=')
        p->at--, is_not = 0;
    if (!is_not && !gpi__accept(p, "-"))
        return gpi__primary(p);
    at = p->token;
    if (gpi__deeper(p) < 0)
        return -1;
    x = gpi__unary(p);
    p->depth--;
    node = gpi__node_of(is_not ? GPI__OP_NOT : GPI__OP_NEG, x, -1, -1);
    return x < 0 ? -1 : gpi__apply(p, at, is_not ? "!" : "-", &node);
}

/* The operator of two values that stands next, of at least this precedence; -1: none does. */
static int gpi__next_operator(gpi__parser *p, int precedence) {
    static const uint8_t longest_first[] = {GPI__OP_OR,  GPI__OP_AND, GPI__OP_EQ,  GPI__OP_NE,
                                            GPI__OP_LE,  GPI__OP_GE,  GPI__OP_LT,  GPI__OP_GT,
                                            GPI__OP_ADD, GPI__OP_SUB, GPI__OP_MUL, GPI__OP_DIV};
    size_t i;
    for (i = 0; i < sizeof longest_first; i++) {
        const gpi__operation_of_formula *row = gpi__operation_of(longest_first[i]);
        if (gpi__accept(p, row->name)) {
            if (row->precedence >= precedence)
                return longest_first[i];
            p->at = p->token;
            return -1;
        }
    }
    return -1;
}

/* c ? a : b, of which c has been read and '?' taken */
static int gpi__selection(gpi__parser *p, size_t at, int c) {
    gpi__node node;
    int a, b;
    a = gpi__expression(p, 1);
    if (a < 0 || gpi__want(p, ":", "the ':' of c ? a : b") < 0)
        return -1;
    b = gpi__expression(p, 1);
    node = gpi__node_of(GPI__OP_SELECT, c, a, b);
    return b < 0 ? -1 : gpi__apply(p, at, "?:", &node);
}

/* a < b < c: not a is below b and b below c, as one reads it, but 0 or 1 is compared with c. */
static int gpi__refuse_chain(const gpi__parser *p, int op) {
    const char *name = gpi__operation_of(op)->name;
    return gpi__refuse(p, p->token,
                       "comparisons do not chain: write a %s b && b %s c, or put one of them in parentheses",
                       name, name);
}

static int gpi__expression(gpi__parser *p, int precedence) {
    gpi__node node;
    int x, y, op, before = -1;
    size_t at;
    gpi__skip_blanks(p);
    if (precedence == 1 && gpi__deeper(p) < 0) /* operators nest eight deep at most */
        return -1;
    x = gpi__unary(p);
    while (x >= 0 && (op = gpi__next_operator(p, precedence)) >= 0) {
        at = p->token;
        if (before >= 0 && gpi__operation_of(op)->traits == GPI__COMPARES &&
            gpi__operation_of(op)->precedence == gpi__operation_of(before)->precedence)
            return gpi__refuse_chain(p, op);
        before = op;
        y = gpi__expression(p, gpi__operation_of(op)->precedence + 1);
        if (y < 0)
            return -1;
        node = gpi__node_of(op, x, y, -1);
        x = gpi__apply(p, at, gpi__operation_of(op)->name, &node);
    }
    if (x >= 0 && precedence == 1 && gpi__accept(p, "?"))
        x = gpi__selection(p, p->token, x);
    p->depth -= precedence == 1;
    return x;
}

#endif
