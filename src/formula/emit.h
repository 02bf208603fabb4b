/* A formula as C++ for kernels (and, in tests, for a host's compiler): one unit's outputs from one unit's inputs.

   The text has no function for values that do not change along rows or columns: it is inlined where it is called, has no branch, loop or
   store and calls nothing that has an effect, so that a compiler computes what is the same for all columns of a thread once. */
#ifndef GEMMEPI_FORMULA_EMIT_H
#define GEMMEPI_FORMULA_EMIT_H

#include "../numbers/convert.h"
#include "formula.h"

/* What a kernel of a product does besides, and where v, a sum of products, meets a bias. */
typedef struct gpi__emitted_beside {
    int of_product; /* 1: v's error hides that of a shorter form */
    int biased;     /* the node that is v and the bias; -1: none */
    int added; /* the bias, which the kernel adds, so that the node is `in.v`; -1: activations add it as they multiply */
    int written; /* the output that is `in.v`, which the kernel stores by itself; -1: none */
    int summed;  /* the reduction of D, which the kernel has; -1: none */
} gpi__emitted_beside;
static const gpi__emitted_beside gpi__nothing_beside = {0, -1, -1, -1, -1};

typedef struct gpi__emitter {
    gpi__text *out;
    const gpi__formula *formula;
    const gpi__emitted_beside *beside;
    int apart;    /* v and its bias are two arguments, not their sum */
    int is_whole; /* results in I32 */
} gpi__emitter;

/* What an argument is wanted as: GEMMEPI_T, a condition, as it is, or as an index that compares as it does. */
enum { GPI__AS_NUMBER, GPI__AS_TRUTH, GPI__AS_READ, GPI__AS_INDEX };

static void gpi__emit_number(const gpi__emitter *e, double number, int as) {
    char text[GPI__NUMBER_SIZE];
    if (as == GPI__AS_READ) { /* beside whole numbers */
        gpi__append(e->out, "%lldLL", (long long)number);
        return;
    }
    if (e->is_whole)
        number = number > 2147483647.0 ? number - 4294967296.0 : number;
    else if (e->formula->accumulator == GEMMEPI_F32)
        number = (double)(float)number;
    gpi__print_number(text, number);
    gpi__append(e->out, "GEMMEPI_T(%s%s)%s", text, strcmp(text, "-0") == 0 ? "." : "",
                as == GPI__AS_TRUTH ? " != 0" : ""); /* the whole number -0 is 0 */
}

static void gpi__emit_leaf(const gpi__emitter *e, const gpi__node *node, int member) {
    if (gpi__members(e->formula, node->width) == 1)
        member = 0;
    if (node->op == GPI__OP_VALUE)
        gpi__append(e->out, "in.v[%d]", member);
    else if (node->op == GPI__OP_OPERAND)
        gpi__append(e->out, "in.a%d[%d]", node->place, member);
    else if (node->place == GPI__INDEX_COLUMN)
        gpi__append(e->out, "in.column[%d]", member);
    else
        gpi__append(e->out, "in.%s", gpi__index_names[node->place]);
}

/* A node's value in its own type. */
static void gpi__emit_value(const gpi__emitter *e, int number, int member) {
    const gpi__node *node = &e->formula->nodes[number];
    if (number == e->beside->biased && e->beside->added < 0) {
        gpi__append(e->out, e->apart ? "" : "(");
        gpi__emit_value(e, node->args[0], member);
        gpi__append(e->out, e->apart ? ", " : " + ");
        gpi__emit_value(e, node->args[1], member);
        gpi__append(e->out, e->apart ? "" : ")");
    } else if (number == e->beside->biased)
        gpi__emit_value(e, node->args[0], member);
    else if (node->op < GPI__LEAVES)
        gpi__emit_leaf(e, node, member);
    else if (node->op == GPI__OP_PART)
        gpi__emit_value(e, node->args[0], node->place);
    else if (gpi__members(e->formula, node->width) > 1)
        gpi__append(e->out, "t%d_%d", number, member);
    else
        gpi__append(e->out, "t%d", number);
}

static void gpi__emit_argument(const gpi__emitter *e, int number, int member, int as) {
    const gpi__node *node = &e->formula->nodes[number];
    const char *before = "", *behind = "";
    if (node->op == GPI__OP_NUMBER) {
        gpi__append(e->out, "(");
        gpi__emit_number(e, node->number, as);
        gpi__append(e->out, ")");
        return;
    }
    if (as == GPI__AS_NUMBER && node->type != GPI__OF_NUMBERS)
        before = "GEMMEPI_T(", behind = ")";
    if (as == GPI__AS_TRUTH && node->type != GPI__OF_TRUTH)
        before = "(", behind = " != 0)";
    if (as == GPI__AS_INDEX)
        before = "formula_index<GEMMEPI_INDEX>(", behind = ")";
    gpi__append(e->out, "%s", before);
    gpi__emit_value(e, number, member);
    gpi__append(e->out, "%s", behind);
}

/* row, column or item, but no extent, which may be the largest index. */
static int gpi__is_position(const gpi__node *node) {
    return node->op == GPI__OP_INDEX && node->place <= GPI__INDEX_ITEM;
}

/* What an operation wants of one of its arguments. */
static int gpi__wanted_as(const gpi__emitter *e, const gpi__node *node, int argument) {
    if (gpi__is_condition(node, argument))
        return GPI__AS_TRUTH;
    if (gpi__is_exact_comparison(e->formula, node))
        return gpi__is_position(&e->formula->nodes[node->args[1 - argument]]) &&
                       e->formula->nodes[node->args[argument]].op == GPI__OP_OPERAND
                   ? GPI__AS_INDEX
                   : GPI__AS_READ;
    return GPI__AS_NUMBER;
}

/* In I32 + - and * are of numbers without a sign, and so modulo 2^32. */
static const char *gpi__device_text(const gpi__emitter *e, int op) {
    if (e->is_whole)
        switch (op) {
        case GPI__OP_ADD:
            return "(int)((u32)x + (u32)y)";
        case GPI__OP_SUB:
            return "(int)((u32)x - (u32)y)";
        case GPI__OP_MUL:
            return "(int)((u32)x * (u32)y)";
        case GPI__OP_NEG:
            return "(int)(0u - (u32)x)";
        }
    return gpi__operation_of(op)->device;
}

/* The text of a row with its arguments in place of x, y and z where these stand alone. */
static void gpi__emit_template(const gpi__emitter *e, const gpi__node *node, int member, const char *text) {
    size_t length;
    int argument;
    for (; *text; text += length) {
        length = gpi__name_length(text);
        if (length == 0) {
            length = 1;
            gpi__append(e->out, "%c", *text);
            continue;
        }
        argument = length == 1 && *text >= 'x' && *text <= 'z' ? *text - 'x' : -1;
        if (argument >= 0)
            gpi__emit_argument(e, node->args[argument], member, gpi__wanted_as(e, node, argument));
        else
            gpi__append(e->out, "%.*s", (int)length, text);
    }
}

/* Whether it is v, or v and something that is not FULL, as a bias: v is a sum of products, whose error hides that of a shorter form. is_long:
   v, or v and what is PER_COLUMN, which counts in its error as an epilogue's bias does. */
static int gpi__is_sum_of_products(const gpi__formula *f, int number, int is_long) {
    const gpi__node *node = &f->nodes[number];
    int i;
    if (node->op == GPI__OP_PART)
        return gpi__is_sum_of_products(f, node->args[0], is_long);
    for (i = 0; i < 2 && node->op == GPI__OP_ADD; i++) {
        const gpi__node *added = &f->nodes[node->args[i]];
        int kind = added->op == GPI__OP_NUMBER    ? GEMMEPI_NUMBER
                   : added->op == GPI__OP_OPERAND ? (int)f->operands[added->place].kind
                                                  : GEMMEPI_FULL;
        if ((is_long ? kind == GEMMEPI_PER_COLUMN : kind < GEMMEPI_FULL) &&
            gpi__is_sum_of_products(f, node->args[1 - i], is_long))
            return 1;
    }
    return node->op == GPI__OP_VALUE;
}

/* Which argument an activation is of. */
static int gpi__activated(const gpi__node *node) {
    return node->op == GPI__OP_GATE || node->op == GPI__OP_GRADIENT;
}

/* Whether an activation is of such a sum, and of a gate the value, too: results of another may be right below 2^-126. */
static int gpi__activates_sum(const gpi__formula *f, const gpi__node *node, int is_long) {
    return (node->op == GPI__OP_ACTIVATE || node->op == GPI__OP_GATE) &&
           gpi__is_sum_of_products(f, node->args[0], is_long) &&
           gpi__is_sum_of_products(f, node->args[gpi__activated(node)], is_long);
}

/* Whether it has activations with a form of long sums, and all are of such. */
static int gpi__takes_long_sums(const gpi__formula *f) {
    int i, takes = 0;
    for (i = 0; i < f->node_count; i++)
        if ((f->nodes[i].op == GPI__OP_ACTIVATE || f->nodes[i].op == GPI__OP_GATE) &&
            gpi__activations[f->nodes[i].place].traits & GPI__HAS_FORM_OF_LONG_SUMS)
            takes |= gpi__activates_sum(f, &f->nodes[i], 1) ? 1 : 2;
    return takes == 1;
}

/* Whether an activation's derivative is made, too, of the same number. */
static int gpi__is_derived_beside(const gpi__formula *f, const gpi__node *node) {
    int i;
    for (i = 0; i < f->node_count; i++) {
        const gpi__node *other = &f->nodes[i];
        if (other->op == GPI__OP_DERIVE && other->place == node->place && other->args[0] == node->args[0] &&
            other->args[1] == node->args[1])
            return 1;
    }
    return 0;
}

/* >>v and its bias, in kernels that have both before the formula */

/* How often a node is an argument or an output. */
static int gpi__times_read(const gpi__formula *f, int number) {
    int i, a, times = 0;
    for (i = 0; i < f->node_count; i++)
        for (a = 0; a < 3; a++)
            times += f->nodes[i].args[a] == number;
    for (i = 0; i <= GPI__RESULT; i++)
        times += f->operands[i].output && f->operands[i].used && f->operands[i].node == number;
    return times;
}

/* The sum of v and that operand, in this order, which nothing else reads, or -1. */
static int gpi__biased_sum(const gpi__formula *f, int bias) {
    int i;
    for (i = 0; i < f->node_count && bias >= 0; i++) {
        const gpi__node *n = &f->nodes[i];
        if (n->op == GPI__OP_ADD && f->nodes[n->args[0]].op == GPI__OP_VALUE &&
            f->nodes[n->args[1]].op == GPI__OP_OPERAND && f->nodes[n->args[1]].place == bias &&
            gpi__times_read(f, n->args[0]) == 1 && gpi__times_read(f, n->args[1]) == 1)
            return i;
    }
    return -1;
}

static int gpi__is_of_sum(const gpi__formula *f, int number, int sum) {
    return number == sum || (f->nodes[number].op == GPI__OP_PART && f->nodes[number].args[0] == sum);
}

/* Whether all that reads the sum are activations that add v and its bias, or values of their gates. */
static int gpi__joins_bias(const gpi__formula *f, int sum) {
    int i, activations = 0, read = 0;
    for (i = 0; i < f->node_count; i++) {
        const gpi__node *node = &f->nodes[i];
        read += node->op == GPI__OP_PART && node->args[0] == sum;
        if (!gpi__is_of_activation(node->op) || !gpi__is_of_sum(f, node->args[gpi__activated(node)], sum))
            continue;
        if (!(gpi__activations[node->place].traits & GPI__JOINS_BIAS) || gpi__is_derived_beside(f, node) ||
            !gpi__activates_sum(f, node, 0))
            return 0;
        activations++;
        read += node->args[gpi__activated(node)] == sum;
    }
    return f->is_short && f->accumulator == GEMMEPI_F32 && activations && read == gpi__times_read(f, sum);
}

/* bias, written: the operands that a kernel has in those places, or -1; may_join: 0 where registers are too few. */
static gpi__emitted_beside gpi__beside_product(const gpi__formula *f, int bias, int written, int may_join) {
    gpi__emitted_beside beside = {1, -1, -1, -1, -1};
    beside.biased = gpi__biased_sum(f, bias);
    if (beside.biased >= 0 && !(may_join && gpi__joins_bias(f, beside.biased)))
        beside.added = bias;
    if (written >= 0 && (f->nodes[f->operands[written].node].op == GPI__OP_VALUE ||
                         f->operands[written].node == beside.biased)) /* which nobody joins then */
        beside.written = written;
    return beside;
}

/* >>activations */

/* Bits of FORMULA_WAVES. A gate's gradient of two factors is far where these leave the range together. */
enum { GPI__HAS_WAVES = 1, GPI__HAS_GATE_GRADIENTS = 2 };

static int gpi__may_be_far(const gpi__formula *f) {
    int i, reasons = 0;
    for (i = 0; i < f->node_count; i++) {
        int op = f->nodes[i].op;
        if (op == GPI__OP_SIN || op == GPI__OP_COS)
            reasons |= GPI__HAS_WAVES;
        if (op == GPI__OP_GRADIENT && f->nodes[i].args[2] >= 0)
            reasons |= GPI__HAS_GATE_GRADIENTS;
    }
    return reasons;
}

/* Whether it has an activation whose parameter is no argument, and so the caller's: that of an `in`. */
static int gpi__has_parameter(const gpi__formula *f) {
    int i;
    for (i = 0; i < f->node_count; i++) {
        const gpi__node *node = &f->nodes[i];
        int is_given = (node->op == GPI__OP_ACTIVATE || node->op == GPI__OP_DERIVE) && node->args[1] >= 0;
        if (gpi__is_of_activation(node->op) && !is_given && gpi__activations[node->place].parameter != 0)
            return 1;
    }
    return 0;
}

/* Its function in activation.cuh. joins: it is of v and its bias, each an argument. */
static const char *gpi__function_of_activation(const gpi__emitter *e, const gpi__node *node, int joins) {
    int is_sum = e->beside->of_product && gpi__activates_sum(e->formula, node, 0);
    if (node->op == GPI__OP_GRADIENT && node->args[2] >= 0)
        return "near_gate_gradient";
    if (node->op == GPI__OP_GRADIENT || node->op == GPI__OP_DERIVE)
        return "times_derivative";
    if (node->op == GPI__OP_GATE)
        return joins ? "gate_of_biased_sum" : is_sum ? "gate_of_sum" : "times_activation";
    return gpi__is_derived_beside(e->formula, node) ? "activate_beside_derivative"
           : joins                                  ? "activate_biased_sum"
           : is_sum                                 ? "activate_sum"
                                                    : "activate";
}

/* The parameter is an argument of activations and derivatives alone. */
static void gpi__emit_activation(const gpi__emitter *e, const gpi__node *node, int member) {
    int of_one = node->op == GPI__OP_ACTIVATE || node->op == GPI__OP_DERIVE, a;
    int joins = e->beside->added < 0 &&
                gpi__is_of_sum(e->formula, node->args[gpi__activated(node)], e->beside->biased);
    gpi__emitter apart = *e;
    apart.apart = joins;
    gpi__append(e->out, "%s<%s>(%s", gpi__function_of_activation(e, node, joins),
                gpi__activations[node->place].name, node->op == GPI__OP_DERIVE ? "GEMMEPI_T(1), " : "");
    for (a = 0; a < (of_one ? 1 : 3) && node->args[a] >= 0; a++) {
        gpi__emit_argument(a == gpi__activated(node) ? &apart : e, node->args[a], member, GPI__AS_NUMBER);
        gpi__append(e->out, ", ");
    }
    if (of_one && node->args[1] >= 0)
        gpi__emit_argument(e, node->args[1], member, GPI__AS_NUMBER);
    else
        gpi__append(e->out, gpi__activations[node->place].parameter != 0 ? "in.parameter" : "GEMMEPI_T(0)");
    gpi__append(e->out,
                node->op == GPI__OP_GRADIENT && node->args[2] >= 0 ? ", in.is_near, out.is_far)" : ")");
}

/* Seed and i of uniform() and stochastic(). */
static void gpi__emit_stream(const gpi__emitter *e, const gpi__node *node) {
    int at = gpi__seed_argument(node->op);
    const gpi__node *i = &e->formula->nodes[node->args[at + 1]];
    gpi__emit_value(e, node->args[at], 0);
    gpi__append(e->out, ", ");
    if (i->op == GPI__OP_NUMBER)
        gpi__emit_number(e, i->number, GPI__AS_READ);
    else
        gpi__emit_value(e, node->args[at + 1], 0);
}

static void gpi__emit_draw(const gpi__emitter *e, int number, int member) {
    const gpi__node *node = &e->formula->nodes[number];
    gpi__append(e->out, "GEMMEPI_T(");
    if (node->op == GPI__OP_STOCHASTIC) {
        gpi__append(e->out, "formula_stochastic<%d>(", 23 - gpi__format_of(node->place)->mantissa_bits);
        gpi__emit_argument(e, node->args[0], member, GPI__AS_NUMBER);
        gpi__append(e->out, ", ");
    }
    gpi__append(e->out, "FORMULA_RANDOM(u%d, %d, ", number, member);
    gpi__emit_stream(e, node);
    gpi__append(e->out,
                e->formula->exchanged ? ", in.row, in.column[%d], in.item)%s)" /* the caller's */
                                      : ", in.column[%d], in.row, in.item)%s)",
                member, node->op == GPI__OP_STOCHASTIC ? ")" : "");
}

static void gpi__emit_quotient(const gpi__emitter *e, const gpi__node *node, int member) {
    gpi__emit_argument(e, node->args[0], member, GPI__AS_NUMBER);
    gpi__append(e->out, " * ");
    gpi__emit_number(e, 1 / e->formula->nodes[node->args[1]].number, GPI__AS_NUMBER);
}

static void gpi__emit_look_up(const gpi__emitter *e, const gpi__node *node, int member) {
    const gpi__node *nodes = e->formula->nodes, *index = &nodes[node->args[0]];
    int is_number; /* of 8 bits or 4 */
    if (index->op == GPI__OP_PART)
        index = &nodes[index->args[0]];
    is_number = !e->is_whole && index->op != GPI__OP_NUMBER && index->type == GPI__OF_NUMBERS;
    gpi__append(e->out, is_number ? "in.b%d[int(" : "in.b%d[", node->place);
    gpi__emit_argument(e, node->args[0], member, GPI__AS_READ);
    gpi__append(e->out, is_number ? ")]" : "]");
}

static void gpi__emit_operation(const gpi__emitter *e, int number, int member) {
    const gpi__node *node = &e->formula->nodes[number];
    if (gpi__divides_by_number(e->formula, node))
        gpi__emit_quotient(e, node, member);
    else if (gpi__is_of_activation(node->op))
        gpi__emit_activation(e, node, member);
    else if (gpi__seed_argument(node->op) >= 0)
        gpi__emit_draw(e, number, member);
    else if (node->op == GPI__OP_LOOK_UP)
        gpi__emit_look_up(e, node, member);
    else if (node->op == GPI__OP_JOIN)
        gpi__emit_argument(e, gpi__joined_part(e->formula->nodes, number, member), 0, GPI__AS_NUMBER);
    else
        gpi__emit_template(e, node, member, gpi__device_text(e, node->op));
}

static void gpi__emit_node(const gpi__emitter *e, int number) {
    const gpi__node *node = &e->formula->nodes[number];
    int member, members = gpi__members(e->formula, node->width);
    if (number == e->beside->biased || node->op < GPI__LEAVES || node->op == GPI__OP_PART ||
        (node->op == GPI__OP_JOIN && node->place))
        return; /* the rest of a list is read by its head alone */
    for (member = 0; member < members; member++) {
        gpi__append(e->out, "    const %s ", node->type == GPI__OF_TRUTH ? "bool" : "GEMMEPI_T");
        gpi__emit_value(e, number, member);
        gpi__append(e->out, " = ");
        gpi__emit_operation(e, number, member);
        gpi__append(e->out, ";\n");
    }
}

/* >>what surrounds it */

static void gpi__emit_uniforms(const gpi__emitter *e) {
    int i;
    gpi__append(e->out, "#define FORMULA_UNIFORMS(X)");
    for (i = 0; i < e->formula->node_count; i++) {
        const gpi__node *node = &e->formula->nodes[i];
        if (gpi__seed_argument(node->op) < 0)
            continue;
        gpi__append(e->out, " X(u%d, %d, ", i, gpi__members(e->formula, node->width));
        gpi__emit_stream(e, node);
        gpi__append(e->out, ")");
    }
    gpi__append(e->out, "\n");
}

static void gpi__emit_tables(const gpi__emitter *e) {
    int i;
    gpi__append(e->out, "#define FORMULA_TABLES(X)");
    for (i = 0; i < e->formula->operand_count; i++) {
        const gpi__formula_operand *o = &e->formula->operands[i];
        if (o->used & GPI__BY_INDEX)
            gpi__append(e->out, " X(%d, b%d, %s, %s, %d)", i, i, gpi__kind_names[o->kind],
                        gpi__type(o->dtype), o->periods);
    }
    gpi__append(e->out, "\n");
}

/* What a kernel must know, for #if and as lists for macros:

       FORMULA_MEMBERS   columns of a unit, of what is wide; what is narrow has one then
       FORMULA_HALVES    1: column j of the left half (of each group) and of the right one, or of each part; 2: an even and an odd column
       FORMULA_GROUP     columns of a group; 0: the whole
       FORMULA_VALUE     members of v, 0: it is not read. FORMULA_RESULT: of D, 0: it is not stored
       FORMULA_INDICES   bits: 1 row, 2 column, 4 item, 8 rows, 16 columns, 32 depth
       FORMULA_ROUNDS    1: an `in` has scale_d, that of D, 1 where it has none
       FORMULA_WAVES     bits: 1 sines or cosines, 2 gates' gradients; an `in` has is_near, an `out` is_far (kernels/trig.cuh)
       FORMULA_PARAMETER 1: an `in` has the parameter of an activation whose parameter is no argument
       FORMULA_EXCHANGED 1: the caller's rows are the columns here
       FORMULA_UNIFORMS(X) X(name, members, seed, i): of each uniform() and stochastic(), of an `in`
       FORMULA_INPUTS(X) X(place, name, kind, members, type, periods), periods: 1 of rows, 2 of columns, 4 RUNS_IN_BLOCKS
       FORMULA_TABLES(X) X(place, name, kind, type, periods): of inputs that are read by index, a Table of an `in`
       FORMULA_OUTPUTS(X) X(place, name, kind, members, type, reduction or none, whether it accumulates); all members go into a reduction
       FORMULA_SUMS_OF_D(X) likewise, of products: of what is D and no output of its own */
static void gpi__emit_table(const gpi__emitter *e) {
    const gpi__formula *f = e->formula;
    int i, pass;
    gpi__append(e->out,
                "#define FORMULA_MEMBERS %d\n#define FORMULA_HALVES %d\n#define FORMULA_GROUP %lld\n"
                "#define FORMULA_VALUE %d\n#define FORMULA_RESULT %d\n#define FORMULA_INDICES 0x%x\n"
                "#define FORMULA_EXCHANGED %d\n#define FORMULA_EXACT %d\n#define FORMULA_ROUNDS %d\n"
                "#define FORMULA_WAVES %d\n#define FORMULA_PARAMETER %d\n",
                gpi__members(f, GPI__WIDE), (int)f->mode, (long long)f->group,
                f->reads_value ? gpi__members(f, f->n_width) : 0,
                f->operands[GPI__RESULT].used ? f->operands[GPI__RESULT].members : 0, (unsigned)f->indices,
                (int)f->exchanged, !f->is_short, (int)f->rounds, gpi__may_be_far(f), gpi__has_parameter(f));
    gpi__emit_uniforms(e);
    gpi__emit_tables(e);
    for (pass = 0; pass < 2 + e->beside->of_product; pass++) {
        static const char *const lists[] = {"INPUTS", "OUTPUTS", "SUMS_OF_D"};
        gpi__append(e->out, "#define FORMULA_%s(X)", lists[pass]);
        for (i = 0; i < f->operand_count; i++) {
            const gpi__formula_operand *o = &f->operands[i];
            if (!(o->used & GPI__BY_PLACE) || o->output != (pass > 0) || i == e->beside->added ||
                i == e->beside->written || (i == e->beside->summed) != (pass == 2))
                continue;
            gpi__append(e->out, " X(%d, a%d, %s, %d, %s, ", i, i, gpi__kind_names[o->kind], o->members,
                        gpi__type(o->dtype));
            if (pass)
                gpi__append(e->out, "%s, %d)", o->reduction ? gpi__reductions[o->reduction].name : "none",
                            o->accumulate);
            else
                gpi__append(e->out, "%d)", o->periods);
        }
        gpi__append(e->out, "\n");
    }
}

/* Where FORMULA_RANDOM is defined beforehand, an `in` has the numbers. */
static void gpi__emit_random_inputs(const gpi__emitter *e) {
    const gpi__formula *f = e->formula;
    int i;
    if (!f->uses_uniform)
        return;
    gpi__append(e->out, "#ifdef FORMULA_RANDOM\n");
    for (i = 0; i < f->node_count; i++)
        if (gpi__seed_argument(f->nodes[i].op) >= 0)
            gpi__append(e->out, "    float u%d[%d];\n", i, gpi__members(f, f->nodes[i].width));
    gpi__append(e->out, "#else\n#define FORMULA_RANDOM(name, member, seed, i, column, row, item) "
                        "formula_uniform(seed, i, column, row, item)\n#endif\n");
}

static void gpi__emit_inputs(const gpi__emitter *e) {
    const gpi__formula *f = e->formula;
    const char *type;
    int i;
    gpi__append(e->out, "struct Formula_in {\n");
    if (f->reads_value)
        gpi__append(e->out, "    GEMMEPI_T v[%d];\n", gpi__members(f, f->n_width));
    for (i = 0; i < f->operand_count; i++) {
        type = f->operands[i].dtype == GEMMEPI_I32   ? "int"
               : f->operands[i].dtype == GEMMEPI_I64 ? "long long"
                                                     : "GEMMEPI_T";
        if (f->operands[i].used & GPI__BY_PLACE && !f->operands[i].output && i != e->beside->added)
            gpi__append(e->out, "    %s a%d[%d];\n", type, i, f->operands[i].members);
        if (f->operands[i].used & GPI__BY_INDEX)
            gpi__append(e->out, "    Table<%s> b%d;\n", gpi__type(f->operands[i].dtype), i);
    }
    for (i = 0; i < GPI__INDICES; i++)
        if (f->indices >> i & 1)
            gpi__append(e->out,
                        i == GPI__INDEX_COLUMN ? "    GEMMEPI_INDEX %s[%d];\n" : "    GEMMEPI_INDEX %s;\n",
                        gpi__index_names[i], gpi__members(f, GPI__WIDE));
    if (f->rounds)
        gpi__append(e->out, "    GEMMEPI_T scale_d;\n");
    if (gpi__may_be_far(f))
        gpi__append(e->out, "    bool is_near;\n");
    if (gpi__has_parameter(f))
        gpi__append(e->out, "    GEMMEPI_T parameter;\n");
    gpi__emit_random_inputs(e);
    gpi__append(e->out, "};\n");
}

static void gpi__emit_outputs(const gpi__emitter *e, int assigns) {
    const gpi__formula *f = e->formula;
    int i, member;
    for (i = gpi__next_place(f, -1); i <= GPI__RESULT; i = gpi__next_place(f, i)) {
        const gpi__formula_operand *o = &f->operands[i];
        char name[16] = "d";
        if (!o->output || !o->used || i == e->beside->written || i == e->beside->summed)
            continue;
        if (i < GPI__RESULT)
            snprintf(name, sizeof name, "a%d", i);
        if (!assigns)
            gpi__append(e->out, "    GEMMEPI_T %s[%d];\n", name, o->members);
        for (member = 0; assigns && member < o->members; member++) {
            gpi__append(e->out, "    out.%s[%d] = %s", name, member,
                        gpi__reductions[o->reduction].of_negatives ? "-" : "");
            gpi__emit_argument(e, o->node, member, GPI__AS_NUMBER);
            gpi__append(e->out, ";\n");
        }
    }
}

/* A unit's outputs from its inputs: two structs and a function. */
static void gpi__emit_function(const gpi__emitter *e) {
    int i, may_be_far = gpi__may_be_far(e->formula);
    gpi__emit_inputs(e);
    gpi__append(e->out, "struct Formula_out {\n");
    gpi__emit_outputs(e, 0);
    gpi__append(
        e->out,
        "%s};\n__device__ static __forceinline__ void formula(const Formula_in &in, Formula_out &out) {\n%s",
        may_be_far ? "    bool is_far;\n" : "", may_be_far ? "    out.is_far = false;\n" : "");
    for (i = 0; i < e->formula->node_count; i++)
        gpi__emit_node(e, i);
    gpi__emit_outputs(e, 1);
    gpi__append(e->out, "}\n");
}

static gpi__emitter gpi__emitter_of(gpi__text *out, const gpi__formula *formula,
                                    const gpi__emitted_beside *beside) {
    gpi__emitter e;
    e.out = out;
    e.formula = formula;
    e.beside = beside;
    e.apart = 0;
    e.is_whole = formula->accumulator == GEMMEPI_I32;
    return e;
}

/* The code for a kernel of a product. What is before it: GEMMEPI_T (float, double or int), GEMMEPI_INDEX (an integer type that holds the
   extents), formula.cuh, activation.cuh compiled for FORMULA_EXACT, and, where the formula has rounded(), formula_rounded(x, scale), which is
   what D stands for once it has stored x times the scale. Appends to out, which counts on where there is no room. */
static void gpi__emit_formula_of_product(gpi__text *out, const gpi__formula *formula,
                                         const gpi__emitted_beside *beside) {
    gpi__emitter e = gpi__emitter_of(out, formula, beside);
    gpi__emit_table(&e);
    gpi__emit_function(&e);
}

/* For any other kernel. */
static void gpi__emit_formula(gpi__text *out, const gpi__formula *formula) {
    gpi__emit_formula_of_product(out, formula, &gpi__nothing_beside);
}

#endif
