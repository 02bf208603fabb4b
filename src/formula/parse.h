/* Text to graph. The first mistake ends it, with a sentence that tells where. */
#ifndef GEMMEPI_FORMULA_PARSE_H
#define GEMMEPI_FORMULA_PARSE_H

#include "operands.h"

typedef struct gemmepi__local {
    const char *name;
    int16_t length, node, is_read;
} gemmepi__local;

typedef struct gemmepi__parser {
    gemmepi__graph *graph;
    const char *text;
    size_t at, token; /* where the next character is, and where the last token began */
    int depth;
    int is_of_widths;    /* the mistake is one that may be none for an n of the other width */
    const int16_t *rule; /* of a derivative's rule: the nodes of x, y, z, r and g; else NULL */
    int local_count;
    gemmepi__local locals[GEMMEPI__FORMULA_CHARACTERS / 4];
} gemmepi__parser;

enum { GEMMEPI__PLACE_TEXT = 64 };

/* "desc.formula, line 2, column 17"; at -1: "desc.formula". */
static const char *gemmepi__name_place(const char *text, int at, char place[GEMMEPI__PLACE_TEXT]) {
    char line[24] = "";
    int i, start = 0, lines = 1;
    for (i = 0; i < at; i++)
        if (text[i] == '\n')
            lines++, start = i + 1;
    if (lines > 1)
        snprintf(line, sizeof line, "line %d, ", lines);
    if (at < 0)
        snprintf(place, GEMMEPI__PLACE_TEXT, "desc.formula");
    else
        snprintf(place, GEMMEPI__PLACE_TEXT, "desc.formula, %scolumn %d", line, at - start + 1);
    return place;
}

/* Notes "desc.formula, column 17: " and the rest; -1. */
GEMMEPI__PRINTF(3, 4)
static int gemmepi__refuse(const gemmepi__parser *p, size_t at, const char *format, ...) {
    char what[512], place[GEMMEPI__PLACE_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    (void)gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s: %s", gemmepi__name_place(p->text, (int)at, place),
                        what);
    return -1;
}

/* >>tokens */

/* Where the next token begins, over blanks and comments; of a comment that has no end where that begins. */
static size_t gemmepi__next_token(const char *text, size_t at) {
    const char *end;
    for (;;) {
        while (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r')
            at++;
        if (text[at] != '/' || (text[at + 1] != '/' && text[at + 1] != '*'))
            return at;
        if (text[at + 1] == '/') {
            while (text[at] && text[at] != '\n')
                at++;
        } else {
            end = strstr(text + at + 2, "*/");
            if (!end)
                return at;
            at = (size_t)(end - text) + 2;
        }
    }
}

/* To the next token, whose place is noted. 0: a comment has no end. */
static int gemmepi__skip_blanks(gemmepi__parser *p) {
    p->at = p->token = gemmepi__next_token(p->text, p->at);
    return p->text[p->at] != '/' || p->text[p->at + 1] != '*';
}

/* Takes this sign if it is the next token. */
static int gemmepi__take(gemmepi__parser *p, const char *sign) {
    size_t length = strlen(sign);
    if (!gemmepi__skip_blanks(p) || strncmp(p->text + p->at, sign, length) != 0)
        return 0;
    p->at += length;
    return 1;
}

/* What stands there, for a sentence. */
static const char *gemmepi__found(const gemmepi__parser *p, char *room, size_t size) {
    const char *at = p->text + p->token;
    size_t length = gemmepi__name_length(at);
    unsigned char c = (unsigned char)*at;
    if (length == 0)
        length = gemmepi__number_length(at);
    if (c == 0)
        snprintf(room, size, "the end");
    else if (length)
        snprintf(room, size, "%.*s", (int)(length > 60 ? 60 : length), at);
    else if (c < 32 || c > 126)
        snprintf(room, size, "the byte 0x%02x", c);
    else
        snprintf(room, size, "'%c'", c);
    return room;
}

static int gemmepi__refuse_token(gemmepi__parser *p, const char *wanted) {
    char room[72];
    if (!gemmepi__skip_blanks(p))
        return gemmepi__refuse(p, p->token, "a comment begins that has no end: */ is missing");
    return gemmepi__refuse(p, p->token, "%s is not expected here, but %s",
                           gemmepi__found(p, room, sizeof room), wanted);
}

static int gemmepi__want(gemmepi__parser *p, const char *sign, const char *wanted) {
    return gemmepi__take(p, sign) ? 0 : gemmepi__refuse_token(p, wanted);
}

/* >>nodes, with what is refused of them */

/* What is made now stands there, if it is not of a rule. */
static void gemmepi__note_place(gemmepi__parser *p, size_t at) {
    p->graph->at = (int16_t)(p->rule ? -1 : (int)at);
}

static const char *gemmepi__width_in_words(const gemmepi__graph *graph, int width) {
    if (width == graph->n_width)
        return "n";
    return width == GEMMEPI__WIDE ? "2 n" : "n / 2";
}

static int gemmepi__refuse_room(const gemmepi__parser *p, size_t at) {
    return gemmepi__refuse(p, at, "the formula has more than %d operations", GEMMEPI__FORMULA_NODES);
}

static int gemmepi__refuse_widths(gemmepi__parser *p, size_t at, const gemmepi__node *node,
                                  const char *name) {
    const gemmepi__graph *graph = p->graph;
    const char *width[3];
    int i, count = 0;
    p->is_of_widths = 1;
    if (node->op == GEMMEPI__OP_FIRST || node->op == GEMMEPI__OP_SECOND)
        return gemmepi__refuse(p, at,
                               "%s takes a half of what is %s columns wide already; halves are not nested",
                               name, gemmepi__width_in_words(graph, GEMMEPI__NARROW));
    if (node->op == GEMMEPI__OP_BOTH)
        return gemmepi__refuse(p, at, "%s takes two halves; what is %s columns wide is none", name,
                               gemmepi__width_in_words(graph, GEMMEPI__WIDE));
    for (i = 0; i < 3; i++)
        if (node->args[i] >= 0 && graph->nodes[node->args[i]].width)
            width[count++] = gemmepi__width_in_words(graph, graph->nodes[node->args[i]].width);
    return gemmepi__refuse(
        p, at,
        "%s takes what is equally wide; one is %s columns wide, another %s (left, right, even and "
        "odd are halves)",
        name, width[0], width[1] != width[0] ? width[1] : width[2]);
}

/* In I32 formulas. */
static int gemmepi__goes_with_whole(const gemmepi__node *node) {
    if (node->op == GEMMEPI__OP_ACTIVATE)
        return gemmepi__activations[node->place].traits & GEMMEPI__OF_INTEGERS;
    return gemmepi__operation_of(node->op)->traits & GEMMEPI__WHOLE_TOO;
}

/* An operation by the sign or name that stands at `at`; -1 with the sentence. */
static int gemmepi__apply(gemmepi__parser *p, size_t at, const char *name, gemmepi__node *node) {
    int made;
    if (p->graph->desc->accumulator == GEMMEPI_I32 && !gemmepi__goes_with_whole(node))
        return gemmepi__refuse(p, at,
                               "%s does not go with results in I32; accepted are + - * min max relu, "
                               "comparisons and ?:",
                               name);
    gemmepi__note_place(p, at);
    made = gemmepi__finish(p->graph, node);
    if (made == -2)
        return gemmepi__refuse_widths(p, at, node, name);
    return made >= 0 ? made : gemmepi__refuse_room(p, at);
}

static int gemmepi__leaf(gemmepi__parser *p, size_t at, int op, int place, int type, int width) {
    gemmepi__node node = gemmepi__node_of(op, -1, -1, -1);
    int made;
    node.place = (int16_t)place;
    node.type = (uint8_t)type;
    node.width = (uint8_t)width;
    gemmepi__note_place(p, at);
    made = gemmepi__intern(p->graph, &node);
    return made >= 0 ? made : gemmepi__refuse_room(p, at);
}

/* Of operands; -1: wider than WIDE or narrower than NARROW. */
static int gemmepi__width_of(const gemmepi__graph *graph, gemmepi_operand_kind kind, gemmepi_width width) {
    int shift = width == GEMMEPI_WIDTH_HALF ? -1 : width == GEMMEPI_WIDTH_DOUBLE ? 1 : 0;
    if (kind != GEMMEPI_FULL && kind != (graph->desc->exchanged ? GEMMEPI_PER_ROW : GEMMEPI_PER_COLUMN))
        return GEMMEPI__ANY;
    shift += graph->n_width;
    return shift == GEMMEPI__NARROW || shift == GEMMEPI__WIDE ? shift : -1;
}

static int gemmepi__refuse_third_width(gemmepi__parser *p, size_t at, const gemmepi_operand *operand) {
    p->is_of_widths = 1;
    return gemmepi__refuse(p, at, "%s is %s columns wide, a third width beside %s; a formula has two at most",
                           operand->name, operand->width == GEMMEPI_WIDTH_HALF ? "n / 2" : "2 n",
                           p->graph->n_width == GEMMEPI__WIDE ? "n and its halves" : "n and 2 n");
}

static int gemmepi__read_operand(gemmepi__parser *p, size_t at, int i) {
    gemmepi__graph *graph = p->graph;
    const gemmepi_operand *operand = &graph->desc->operands[i];
    int width = gemmepi__width_of(graph, operand->kind, operand->width);
    int is_whole = operand->dtype == GEMMEPI_I64 || operand->dtype == GEMMEPI_I32 ||
                   (graph->desc->accumulator == GEMMEPI_I32 && operand->kind != GEMMEPI_NUMBER);
    if (operand->output) {
        if (graph->assigned[i].node < 0)
            return gemmepi__refuse(p, at, "%s is an output and has no value yet; assign it first",
                                   operand->name);
        if (graph->assigned[i].reduction)
            return gemmepi__refuse(
                p, at,
                "%s is a reduction, which no later statement can read: a second formula can, by an operand",
                operand->name);
        return graph->assigned[i].node;
    }
    if (width < 0)
        return gemmepi__refuse_third_width(p, at, operand);
    return gemmepi__leaf(p, at, GEMMEPI__OP_OPERAND, i, is_whole ? GEMMEPI__OF_WHOLE : GEMMEPI__OF_NUMBERS,
                         width);
}

/* What a name stands for; -1 with the sentence. */
static int gemmepi__read_name(gemmepi__parser *p, size_t at, const char *name, size_t length) {
    const gemmepi__formula_desc *desc = p->graph->desc;
    const char *letter;
    int i, result = GEMMEPI__RESULT;
    if (p->rule && length == 1 && (letter = strchr("xyzrg", name[0])) != NULL)
        return p->rule[letter - "xyzrg"];
    for (i = p->local_count - 1; i >= 0; i--)
        if ((size_t)p->locals[i].length == length && memcmp(p->locals[i].name, name, length) == 0) {
            p->locals[i].is_read = 1;
            return p->locals[i].node;
        }
    if (!desc->without_value && gemmepi__is_name(name, length, gemmepi__value_name(desc)))
        return gemmepi__leaf(p, at, GEMMEPI__OP_VALUE, 0, GEMMEPI__OF_NUMBERS, p->graph->n_width);
    if (!desc->without_result && gemmepi__is_name(name, length, gemmepi__result_name(desc)))
        return p->graph->assigned[result].node >= 0
                   ? p->graph->assigned[result].node
                   : gemmepi__refuse(p, at, "%s has no value yet; assign it first",
                                     gemmepi__result_name(desc));
    for (i = 0; i < desc->operand_count; i++)
        if (gemmepi__is_name(name, length, desc->operands[i].name))
            return gemmepi__read_operand(p, at, i);
    i = gemmepi__index_called(name, length);
    if (i >= 0 && desc->exchanged)
        i = gemmepi__index_across(i);
    if (i >= 0)
        return gemmepi__leaf(p, at, GEMMEPI__OP_INDEX, i, GEMMEPI__OF_WHOLE,
                             i == GEMMEPI__INDEX_COLUMN ? GEMMEPI__WIDE : GEMMEPI__ANY);
    if (gemmepi__is_reserved(name, length))
        return gemmepi__refuse(p, at, "%.*s is a function: its arguments follow in parentheses", (int)length,
                               name);
    return gemmepi__refuse(p, at,
                           "%.*s is not known here: no operand has that name, and no statement before "
                           "this one assigns it",
                           (int)(length > 60 ? 60 : length), name);
}

/* >>expressions */

static int gemmepi__expression(gemmepi__parser *p, int precedence);

static int gemmepi__deeper(gemmepi__parser *p) {
    if (++p->depth <= GEMMEPI__FORMULA_DEPTH)
        return 0;
    return gemmepi__refuse(p, p->token, "more than %d expressions lie within one another; name some of them",
                           GEMMEPI__FORMULA_DEPTH);
}

/* A function, where it stands and its arguments: up to four, of which the fourth is refused by the count. */
typedef struct gemmepi__call {
    size_t at, places[4];
    char name[24];
    int op, mode, row, count;
    int16_t args[4];
} gemmepi__call;

/* '(' has been taken. */
static int gemmepi__parse_arguments(gemmepi__parser *p, gemmepi__call *call) {
    int node;
    if (gemmepi__take(p, ")"))
        return 0;
    for (;;) {
        gemmepi__skip_blanks(p);
        if (call->count < 4)
            call->places[call->count] = p->token;
        node = gemmepi__expression(p, 1);
        if (node < 0)
            return -1;
        if (call->count < 4)
            call->args[call->count] = (int16_t)node;
        call->count++;
        if (gemmepi__take(p, ")"))
            return 0;
        if (gemmepi__want(p, ",", "a comma or the ')' of the function's arguments") < 0)
            return -1;
    }
}

static int gemmepi__refuse_count(const gemmepi__parser *p, const gemmepi__call *call, int least, int most) {
    static const char *const takes[] = {"no value", "one value", "two values", "three values"};
    static const char *const is_given[] = {"none is", "one is", "two are", "three are", "more are"};
    const char *given = is_given[call->count > 4 ? 4 : call->count];
    if (least == most)
        return gemmepi__refuse(p, call->at, "%s takes %s, %s given", call->name, takes[most], given);
    return gemmepi__refuse(p, call->at, "%s takes %s, or %s with its parameter; %s given", call->name,
                           takes[least], takes[most], given);
}

/* A group's width, the last argument of left, right and pair. */
static int gemmepi__take_group(gemmepi__parser *p, size_t at, int node, double *group) {
    double w = node >= 0 && gemmepi__is_number(p->graph, node) ? p->graph->nodes[node].number : 0;
    if (!(w >= 2 && w <= 1073741824 && floor(w / 2) * 2 == w))
        return gemmepi__refuse(p, at, "a group's width is an even number from 2 to 2^30");
    *group = w;
    return 0;
}

static int gemmepi__set_mode(gemmepi__parser *p, size_t at, int mode, double group) {
    gemmepi__graph *graph = p->graph;
    if (graph->mode && (graph->mode != mode || (double)graph->group != group))
        return gemmepi__refuse(p, at, "halves of two kinds are in one formula: %s%s before, others here",
                               graph->mode == GEMMEPI__EVEN_ODD ? "even and odd" : "left and right",
                               graph->group ? " of groups" : "");
    graph->mode = mode;
    graph->group = (int64_t)group;
    return 0;
}

static int gemmepi__call_of_halves(gemmepi__parser *p, const gemmepi__call *call) {
    gemmepi__node node;
    double group = 0;
    int wanted = call->op == GEMMEPI__OP_BOTH ? 2 : 1;
    if (call->count == wanted + 1 && call->mode == GEMMEPI__LEFT_RIGHT) {
        if (gemmepi__take_group(p, call->places[wanted], call->args[wanted], &group) < 0)
            return -1;
    } else if (call->count != wanted) {
        return gemmepi__refuse_count(p, call, wanted, wanted);
    }
    if (gemmepi__set_mode(p, call->at, call->mode, group) < 0)
        return -1;
    node = gemmepi__node_of(call->op, call->args[0], wanted == 2 ? call->args[1] : -1, -1);
    return gemmepi__apply(p, call->at, call->name, &node);
}

static int gemmepi__call_of_activation(gemmepi__parser *p, const gemmepi__call *call) {
    gemmepi__node node = gemmepi__node_of(call->op, call->args[0], call->args[1], -1);
    double parameter = gemmepi__activations[call->row].parameter;
    int most = parameter != 0 ? 2 : 1;
    if (call->count < 1 || call->count > most)
        return gemmepi__refuse_count(p, call, 1, most);
    node.place = (int16_t)call->row;
    if (call->count < most)
        node.args[1] = (int16_t)gemmepi__number(p->graph, parameter);
    if (call->count < most && node.args[1] < 0)
        return gemmepi__refuse_room(p, call->at);
    return gemmepi__apply(p, call->at, call->name, &node);
}

static int gemmepi__check_uniform(gemmepi__parser *p, const gemmepi__call *call) {
    const gemmepi__node *seed = &p->graph->nodes[call->args[0]], *i = &p->graph->nodes[call->args[1]];
    const gemmepi_operand *operands = p->graph->desc->operands;
    int is_good = i->op == GEMMEPI__OP_NUMBER && i->number >= 0 && i->number <= 4294967295.0 &&
                  floor(i->number) == i->number;
    if (seed->op != GEMMEPI__OP_OPERAND || operands[seed->place].kind != GEMMEPI_SCALAR ||
        operands[seed->place].dtype != GEMMEPI_I64)
        return gemmepi__refuse(p, call->places[0],
                               "the seed of uniform is an operand of the kind SCALAR in I64");
    if (i->op == GEMMEPI__OP_OPERAND)
        is_good = i->type == GEMMEPI__OF_WHOLE && operands[i->place].kind == GEMMEPI_SCALAR;
    return is_good ? 0
                   : gemmepi__refuse(
                         p, call->places[1],
                         "the second value of uniform is a whole number from 0 to 2^32 - 1 or an operand of "
                         "the kind SCALAR in I32 or I64");
}

/* What function has that name, which is one. */
static void gemmepi__start_call(gemmepi__call *call, const char *text, size_t at, size_t length) {
    size_t kept = length < sizeof call->name ? length : sizeof call->name - 1;
    memset(call, 0, sizeof *call);
    call->at = at;
    memcpy(call->name, text + at, kept);
    memset(call->args, -1, sizeof call->args); /* none */
    call->op = gemmepi__function_called(text + at, length, &call->mode);
    call->row = gemmepi__activation_called(text + at, length);
    if (call->row >= 0) {
        call->op = GEMMEPI__OP_ACTIVATE;
    } else if (call->op < 0) {
        call->op = GEMMEPI__OP_DERIVE;
        call->row = gemmepi__activation_called(text + at + 2, length - 2);
    }
}

/* A function whose '(' has been taken. */
static int gemmepi__function(gemmepi__parser *p, size_t at, size_t length) {
    const gemmepi__operation_of_formula *row;
    gemmepi__call call;
    gemmepi__node node;
    gemmepi__start_call(&call, p->text, at, length);
    if (gemmepi__parse_arguments(p, &call) < 0)
        return -1;
    if (call.row >= 0)
        return gemmepi__call_of_activation(p, &call);
    if (call.op >= GEMMEPI__OP_FIRST)
        return gemmepi__call_of_halves(p, &call);
    row = gemmepi__operation_of(call.op);
    if (call.count < row->least || call.count > row->most)
        return gemmepi__refuse_count(p, &call, row->least, row->most);
    if (call.op == GEMMEPI__OP_UNIFORM && gemmepi__check_uniform(p, &call) < 0)
        return -1;
    node = gemmepi__node_of(call.op, call.args[0], call.args[1], call.args[2]);
    return gemmepi__apply(p, at, call.name, &node);
}

#define GEMMEPI__ROUNDS_TO_INFINITY \
    3.4028235677973366e38 /* in F32: its largest number and half of the last bit */

/* Whether the digits of a number are all 0. */
static int gemmepi__is_written_as_0(const char *text, size_t length) {
    size_t i;
    for (i = 0; i < length && text[i] != 'e' && text[i] != 'E'; i++)
        if (text[i] > '0' && text[i] <= '9')
            return 0;
    return 1;
}

/* Whether a number of the text is one in the type of the accumulator: it does not become infinite, nor 0, nor in F32 a subnormal number that
   has lost digits. */
static int gemmepi__check_literal(const gemmepi__parser *p, size_t at, double number, size_t length) {
    int is_f32 = p->graph->desc->accumulator != GEMMEPI_F64 && !p->graph->desc->of_any_type;
    if (!(number <= DBL_MAX) || (is_f32 && number >= GEMMEPI__ROUNDS_TO_INFINITY))
        return gemmepi__refuse(p, at, "the number is out of range; the largest %s is %s",
                               number > DBL_MAX ? "F64" : "F32",
                               number > DBL_MAX ? "1.7976931348623157e308" : "3.4028234663852886e38");
    if (number > 0 ? !is_f32 || (float)number >= FLT_MIN || gemmepi__f32_holds(number)
                   : gemmepi__is_written_as_0(p->text + at, length))
        return 0;
    return gemmepi__refuse(p, at, "the number is out of range; the smallest %s",
                           is_f32 ? "F32 with all its digits is 1.1754943508222875e-38"
                                  : "F64 is 4.9406564584124654e-324");
}

static int gemmepi__literal(gemmepi__parser *p, size_t length) {
    gemmepi_dtype accumulator = p->graph->desc->accumulator;
    size_t at = p->at;
    double number;
    int node;
    if (length >= 1000)
        return gemmepi__refuse(p, at, "the number has %d characters; at most 999 are accepted", (int)length);
    number = gemmepi__number_of(p->text + at, length);
    p->at += length;
    if (gemmepi__is_letter(p->text[p->at]) || p->text[p->at] == '.')
        return gemmepi__refuse(
            p, at, "the number ends in what is none; accepted are digits, a point and an exponent");
    if (accumulator == GEMMEPI_I32 && !(number <= 2147483648.0 && floor(number) == number))
        return gemmepi__refuse(p, at, "with results in I32 numbers are whole and at most 2147483648");
    if (gemmepi__check_literal(p, at, number, length) < 0)
        return -1;
    node = gemmepi__number(p->graph, number);
    return node >= 0 ? node : gemmepi__refuse_room(p, at);
}

/* A number, a name, a function or parentheses. */
static int gemmepi__primary(gemmepi__parser *p) {
    size_t at, length;
    int node;
    if (gemmepi__take(p, "(")) {
        node = gemmepi__expression(p, 1);
        return node < 0 || gemmepi__want(p, ")", "a ')' or an operator") < 0 ? -1 : node;
    }
    at = p->token;
    length = gemmepi__number_length(p->text + at);
    if (length)
        return gemmepi__literal(p, length);
    length = gemmepi__name_length(p->text + at);
    if (length == 0)
        return gemmepi__refuse_token(p, "a number, a name, a function or '('");
    if (gemmepi__reduction_called(p->text + at, length))
        return gemmepi__refuse(p, at, "%.*s is the whole right side of a statement that assigns an output",
                               (int)length, p->text + at);
    p->at += length;
    if (!gemmepi__take(p, "("))
        return gemmepi__read_name(p, at, p->text + at, length);
    if (!gemmepi__is_reserved(p->text + at, length) || gemmepi__index_called(p->text + at, length) >= 0)
        return gemmepi__refuse(p, at, "%.*s is not the name of a function", (int)(length > 60 ? 60 : length),
                               p->text + at);
    return gemmepi__function(p, at, length);
}

static int gemmepi__unary(gemmepi__parser *p) {
    gemmepi__node node;
    size_t at;
    int x, is_not = gemmepi__take(p, "!");
    if (is_not && p->text[p->at] == '=')
        p->at--, is_not = 0;
    if (!is_not && !gemmepi__take(p, "-"))
        return gemmepi__primary(p);
    at = p->token;
    if (gemmepi__deeper(p) < 0)
        return -1;
    x = gemmepi__unary(p);
    p->depth--;
    node = gemmepi__node_of(is_not ? GEMMEPI__OP_NOT : GEMMEPI__OP_NEG, x, -1, -1);
    return x < 0 ? -1 : gemmepi__apply(p, at, is_not ? "!" : "-", &node);
}

/* The operator of two values that stands next, of at least this precedence; -1: none does. */
static int gemmepi__next_operator(gemmepi__parser *p, int precedence) {
    static const uint8_t longest_first[] = {
        GEMMEPI__OP_OR, GEMMEPI__OP_AND, GEMMEPI__OP_EQ,  GEMMEPI__OP_NE,  GEMMEPI__OP_LE,  GEMMEPI__OP_GE,
        GEMMEPI__OP_LT, GEMMEPI__OP_GT,  GEMMEPI__OP_ADD, GEMMEPI__OP_SUB, GEMMEPI__OP_MUL, GEMMEPI__OP_DIV};
    size_t i;
    for (i = 0; i < sizeof longest_first; i++) {
        const gemmepi__operation_of_formula *row = gemmepi__operation_of(longest_first[i]);
        if (gemmepi__take(p, row->name)) {
            if (row->precedence >= precedence)
                return longest_first[i];
            p->at = p->token;
            return -1;
        }
    }
    return -1;
}

/* c ? a : b, of which c has been read and '?' taken */
static int gemmepi__selection(gemmepi__parser *p, size_t at, int c) {
    gemmepi__node node;
    int a, b;
    a = gemmepi__expression(p, 1);
    if (a < 0 || gemmepi__want(p, ":", "the ':' of c ? a : b") < 0)
        return -1;
    b = gemmepi__expression(p, 1);
    node = gemmepi__node_of(GEMMEPI__OP_SELECT, c, a, b);
    return b < 0 ? -1 : gemmepi__apply(p, at, "?:", &node);
}

static int gemmepi__expression(gemmepi__parser *p, int precedence) {
    gemmepi__node node;
    int x, y, op;
    size_t at;
    gemmepi__skip_blanks(p);
    if (precedence == 1 && gemmepi__deeper(p) < 0) /* operators nest eight deep at most */
        return -1;
    x = gemmepi__unary(p);
    while (x >= 0 && (op = gemmepi__next_operator(p, precedence)) >= 0) {
        at = p->token;
        y = gemmepi__expression(p, gemmepi__operation_of(op)->precedence + 1);
        if (y < 0)
            return -1;
        node = gemmepi__node_of(op, x, y, -1);
        x = gemmepi__apply(p, at, gemmepi__operation_of(op)->name, &node);
    }
    if (x >= 0 && precedence == 1 && gemmepi__take(p, "?"))
        x = gemmepi__selection(p, p->token, x);
    p->depth -= precedence == 1;
    return x;
}

/* >>statements */

/* An output: the number of the operand, or the last, D. */
typedef struct gemmepi__assignment {
    size_t at, length;
    int output; /* -1: a name of the formula's own */
} gemmepi__assignment;

static int gemmepi__check_new_name(gemmepi__parser *p, const gemmepi__assignment *target) {
    const gemmepi__formula_desc *desc = p->graph->desc;
    const char *name = p->text + target->at;
    int i, length = (int)(target->length > 60 ? 60 : target->length);
    if (gemmepi__is_reserved(name, target->length))
        return gemmepi__refuse(p, target->at, "%.*s is a name of the language: take another", length, name);
    if (!desc->without_value && gemmepi__is_name(name, target->length, gemmepi__value_name(desc)))
        return gemmepi__refuse(p, target->at, "%.*s is the value and cannot be assigned", length, name);
    for (i = 0; i < p->local_count; i++)
        if ((size_t)p->locals[i].length == target->length &&
            memcmp(p->locals[i].name, name, target->length) == 0)
            return gemmepi__refuse(p, target->at, "%.*s has a value already; a name is given one once",
                                   length, name);
    if ((length > 2 && memcmp(name, "d_", 2) == 0) || (length > 3 && memcmp(name, "dy_", 3) == 0))
        return gemmepi__refuse(p, target->at, "%.*s: names that begin with d_ or dy_ are for operands alone",
                               length, name);
    return 0;
}

static int gemmepi__parse_target(gemmepi__parser *p, gemmepi__assignment *target) {
    const gemmepi__formula_desc *desc = p->graph->desc;
    const char *name;
    int i;
    gemmepi__skip_blanks(p);
    target->at = p->token;
    name = p->text + target->at;
    target->length = gemmepi__name_length(name);
    target->output = -1;
    if (target->length == 0)
        return gemmepi__refuse_token(p, "a statement: name = expression");
    p->at += target->length;
    if (!desc->without_result && gemmepi__is_name(name, target->length, gemmepi__result_name(desc)))
        target->output = GEMMEPI__RESULT;
    for (i = 0; i < desc->operand_count; i++)
        if (gemmepi__is_name(name, target->length, desc->operands[i].name))
            target->output = i;
    if (target->output < 0)
        return gemmepi__check_new_name(p, target);
    if (target->output < GEMMEPI__RESULT && !desc->operands[target->output].output)
        return gemmepi__refuse(p, target->at,
                               "%s is an input; to assign it set desc.operands[%d].output to 1",
                               desc->operands[target->output].name, target->output);
    if (p->graph->assigned[target->output].node >= 0)
        return gemmepi__refuse(p, target->at, "%.*s has a value already; a name is given one once",
                               (int)target->length, name);
    return 0;
}

/* Whether an output of this kind, width and type takes the expression. */
static int gemmepi__check_assignment(gemmepi__parser *p, const gemmepi__assignment *target, int node,
                                     int reduction) {
    const gemmepi__graph *graph = p->graph;
    const gemmepi_operand *o;
    const gemmepi__reduction *of = &gemmepi__reductions[reduction];
    int width = graph->nodes[node].width, wanted;
    if (target->output == GEMMEPI__RESULT)
        return reduction ? gemmepi__refuse(p, target->at,
                                           "%s is a matrix and cannot be a reduction; assign that "
                                           "to an output operand",
                                           gemmepi__result_name(graph->desc))
                         : 0;
    o = &graph->desc->operands[target->output];
    if (o->kind != of->kind) /* both as the caller has them */
        return gemmepi__refuse(p, target->at, "%s is %s, and what it is assigned is %s%s; %s outputs take %s",
                               o->name, gemmepi__kind_names[o->kind], reduction ? of->name : "no reduction",
                               reduction ? ", which is for others" : "", gemmepi__kind_names[o->kind],
                               o->kind == GEMMEPI_FULL         ? "what is no reduction"
                               : o->kind == GEMMEPI_PER_ROW    ? "row_sum and so on"
                               : o->kind == GEMMEPI_PER_COLUMN ? "column_sum and so on"
                                                               : "all_sum and all_max");
    wanted = gemmepi__width_of(graph, o->kind, o->width);
    if (wanted < 0)
        return gemmepi__refuse_third_width(p, target->at, o);
    if (width && wanted && width != wanted) {
        p->is_of_widths = 1;
        return gemmepi__refuse(p, target->at, "%s is %s columns wide, but what it is assigned is %s", o->name,
                               gemmepi__width_in_words(graph, wanted), gemmepi__width_in_words(graph, width));
    }
    if (o->accumulate && (!reduction || of->op != GEMMEPI__REDUCE_SUM))
        return gemmepi__refuse(p, target->at, "%s accumulates, which sums alone do", o->name);
    if (graph->desc->accumulator != GEMMEPI_I32 && o->dtype != GEMMEPI_DTYPE_DEFAULT &&
        (o->dtype == GEMMEPI_I32) != (of->op == GEMMEPI__REDUCE_ARGMAX))
        return gemmepi__refuse(p, target->at,
                               "%s is in %s; row_argmax and column_argmax, and nothing else, are in I32",
                               o->name, gemmepi__dtype(o->dtype)->name);
    return 0;
}

/* reduction ( expression ), the whole right side */
static int gemmepi__right_side(gemmepi__parser *p, const gemmepi__assignment *target, int *reduction) {
    size_t at, length;
    int node;
    gemmepi__skip_blanks(p);
    at = p->token;
    length = gemmepi__name_length(p->text + at);
    *reduction = gemmepi__reduction_called(p->text + at, length);
    if (!*reduction)
        return gemmepi__expression(p, 1);
    if (p->graph->desc->accumulator == GEMMEPI_I32)
        return gemmepi__refuse(p, at, "there are no reductions with results in I32");
    if (target->output < 0)
        return gemmepi__refuse(p, at, "%.*s is assigned to outputs alone; %.*s is none", (int)length,
                               p->text + at, (int)(target->length > 60 ? 60 : target->length),
                               p->text + target->at);
    p->at += length;
    if (gemmepi__want(p, "(", "the '(' of a reduction") < 0)
        return -1;
    node = gemmepi__expression(p, 1);
    if (node < 0 || gemmepi__want(p, ")", "the ')' of the reduction, which takes one value") < 0)
        return -1;
    if (!gemmepi__take(p, ";") && p->text[p->token])
        return gemmepi__refuse(p, p->token, "a reduction is the whole right side of its statement");
    p->at = p->token;
    return node;
}

static int gemmepi__statement(gemmepi__parser *p) {
    gemmepi__assignment target;
    gemmepi__local *local;
    int node, reduction;
    if (gemmepi__parse_target(p, &target) < 0 ||
        gemmepi__want(p, "=", "the '=' of a statement: name = expression") < 0)
        return -1;
    node = gemmepi__right_side(p, &target, &reduction);
    if (node < 0)
        return -1;
    if (target.output < 0) {
        local = &p->locals[p->local_count++];
        local->name = p->text + target.at;
        local->length = (int16_t)target.length;
        local->node = (int16_t)node;
        local->is_read = 0;
        if (p->graph->names[node] < 0)
            p->graph->names[node] = (int)target.at;
        return 0;
    }
    if (gemmepi__check_assignment(p, &target, node, reduction) < 0)
        return -1;
    p->graph->assigned[target.output].node = (int16_t)node;
    p->graph->assigned[target.output].at = (int16_t)target.at;
    p->graph->assigned[target.output].reduction =
        (int16_t)(p->graph->desc->exchanged ? gemmepi__reduction_across(reduction) : reduction);
    return 0;
}

/* How many letters are to be changed, put in or left out to make one name of another. */
static int gemmepi__distance_of_names(const char *x, size_t length, const char *y) {
    uint8_t row[GEMMEPI__FORMULA_NAME + 1];
    size_t i, j, other = strlen(y);
    int before, least;
    for (j = 0; j <= other; j++)
        row[j] = (uint8_t)j;
    for (i = 0; i < length; i++) {
        before = row[0];
        row[0] = (uint8_t)(i + 1);
        for (j = 0; j < other; j++) {
            least = before + (x[i] != y[j]);
            before = row[j + 1];
            least = least < before + 1 ? least : before + 1;
            row[j + 1] = (uint8_t)(least < row[j] + 1 ? least : row[j] + 1);
        }
    }
    return row[other];
}

/* The name of an operand or of D that is nearest to this one, at most two letters and half of them away, or NULL. */
static const char *gemmepi__nearest_name(const gemmepi__formula_desc *desc, const char *name, size_t length) {
    const char *nearest = NULL, *other;
    int i, distance, least = 3;
    for (i = -desc->operand_count; i <= -desc->without_result && length <= GEMMEPI__FORMULA_NAME; i++) {
        other = i < 0 ? desc->operands[-1 - i].name : gemmepi__result_name(desc);
        distance = gemmepi__distance_of_names(name, length, other);
        if (distance < least && 2 * (size_t)distance <= (strlen(other) > length ? strlen(other) : length)) {
            nearest = other;
            least = distance;
        }
    }
    return nearest;
}

static int gemmepi__check_all_read(const gemmepi__parser *p) {
    int i;
    for (i = 0; i < p->local_count; i++) {
        const gemmepi__local *local = &p->locals[i];
        const char *nearest;
        if (local->is_read)
            continue;
        nearest = gemmepi__nearest_name(p->graph->desc, local->name, (size_t)local->length);
        return gemmepi__refuse(p, (size_t)(local->name - p->text),
                               "%.*s is assigned, but nothing reads it; %s%s%s",
                               local->length > 60 ? 60 : local->length, local->name,
                               nearest ? "did you mean " : "leave it out, or list it among desc.operands",
                               nearest ? nearest : "", nearest ? "?" : " as an output");
    }
    return 0;
}

static int gemmepi__check_all_assigned(const gemmepi__parser *p) {
    const gemmepi__formula_desc *desc = p->graph->desc;
    int i, any = p->graph->assigned[GEMMEPI__RESULT].node >= 0;
    for (i = 0; i < desc->operand_count; i++) {
        any = any || desc->operands[i].output;
        if (desc->operands[i].output && p->graph->assigned[i].node < 0)
            return gemmepi__refuse(p, p->at, "the formula ends, and %s, an output, has not been assigned",
                                   desc->operands[i].name);
    }
    if (any)
        return 0;
    return gemmepi__refuse(p, p->at, "the formula ends and has assigned no output%s%s",
                           desc->without_result ? "" : ": neither an operand nor ",
                           desc->without_result ? "" : gemmepi__result_name(desc));
}

static int gemmepi__parse_statements(gemmepi__parser *p) {
    for (;;) {
        if (!gemmepi__skip_blanks(p))
            return gemmepi__refuse_token(p, "");
        if (!p->text[p->at])
            return gemmepi__check_all_read(p) < 0 ? -1 : gemmepi__check_all_assigned(p);
        if (gemmepi__statement(p) < 0)
            return -1;
        if (!gemmepi__take(p, ";") && p->text[p->token])
            return gemmepi__refuse_token(p, "an operator or the ';' between statements");
    }
}

static const gemmepi__reduction *gemmepi__reduction_of(const gemmepi__graph *graph, int output) {
    return &gemmepi__reductions[graph->assigned[output].reduction];
}

/* What an operand's dtype 0 stands for. */
static gemmepi_dtype gemmepi__dtype_of_operand(const gemmepi__graph *graph, int i) {
    const gemmepi_operand *operand = &graph->desc->operands[i];
    const gemmepi__formula_desc *desc = graph->desc;
    if (operand->dtype)
        return operand->dtype;
    if (operand->kind == GEMMEPI_NUMBER)
        return GEMMEPI_F64;
    if (graph->assigned[i].reduction)
        return gemmepi__reduction_of(graph, i)->op == GEMMEPI__REDUCE_ARGMAX ? GEMMEPI_I32
               : desc->accumulator == GEMMEPI_F64                            ? GEMMEPI_F64
                                                                             : GEMMEPI_F32;
    return gemmepi__is_fp8((int)desc->d) ? GEMMEPI_BF16 : desc->d;
}

static void gemmepi__start_parser(gemmepi__parser *p, gemmepi__graph *graph, const char *text) {
    p->graph = graph;
    p->text = text;
    p->at = p->token = 0;
    p->depth = p->is_of_widths = p->local_count = 0;
    p->rule = NULL;
}

/* The graph of desc.text, the whole. n is as wide as what is widest, or, where that comes to a mistake of widths, half of it. */
static gemmepi_status gemmepi__parse(gemmepi__parser *p, gemmepi__graph *graph,
                                     const gemmepi__formula_desc *desc) {
    static const int widths[] = {GEMMEPI__WIDE, GEMMEPI__NARROW, GEMMEPI__WIDE};
    gemmepi_status status = gemmepi__check_formula_desc(desc);
    size_t reached[3];
    int turn;
    if (status)
        return status;
    if (strlen(desc->text) > GEMMEPI__FORMULA_CHARACTERS)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.formula has %llu characters; at most %d are accepted",
                             (gemmepi__ull)strlen(desc->text), GEMMEPI__FORMULA_CHARACTERS);
    for (turn = 0; turn < 3; turn++) {
        gemmepi__clear_graph(graph, desc, widths[turn]);
        gemmepi__start_parser(p, graph, desc->text);
        if (gemmepi__parse_statements(p) == 0)
            return GEMMEPI_OK;
        reached[turn] = p->at;
        if ((turn == 0 && !p->is_of_widths) || (turn == 1 && reached[1] > reached[0]))
            break;
    }
    return GEMMEPI_INVALID_ARGUMENT;
}

#endif
