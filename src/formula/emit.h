/* A formula as C++ for kernels (and, in tests, for a host's compiler): one unit's outputs from one unit's inputs.

   The text has no function for values that do not change along rows or columns: it is inlined where it is called, has no branch, loop or
   store and calls nothing that has an effect, so that a compiler computes what is the same for all columns of a thread once. */
#ifndef GEMMEPI_FORMULA_EMIT_H
#define GEMMEPI_FORMULA_EMIT_H

#include "formula.h"

typedef struct gemmepi__emitter {
    gemmepi__text *out;
    const gemmepi__formula *formula;
    int is_whole; /* results in I32 */
} gemmepi__emitter;

/* What an argument is wanted as: GEMMEPI_T, a condition, as it is, or as an index that compares as it does. */
enum { GEMMEPI__AS_NUMBER, GEMMEPI__AS_TRUTH, GEMMEPI__AS_READ, GEMMEPI__AS_INDEX };

static void gemmepi__emit_number(const gemmepi__emitter *e, double number, int as) {
    char text[GEMMEPI__NUMBER_SIZE];
    if (as == GEMMEPI__AS_READ) { /* beside whole numbers */
        gemmepi__append(e->out, "%lldLL", (long long)number);
        return;
    }
    if (e->is_whole)
        number = number > 2147483647.0 ? number - 4294967296.0 : number;
    else if (e->formula->accumulator == GEMMEPI_F32)
        number = (double)(float)number;
    gemmepi__print_number(text, number);
    gemmepi__append(e->out, "GEMMEPI_T(%s%s)%s", text, strcmp(text, "-0") == 0 ? "." : "",
                    as == GEMMEPI__AS_TRUTH ? " != 0" : ""); /* the whole number -0 is 0 */
}

static void gemmepi__emit_leaf(const gemmepi__emitter *e, const gemmepi__node *node, int member) {
    if (gemmepi__members(e->formula, node->width) == 1)
        member = 0;
    if (node->op == GEMMEPI__OP_VALUE)
        gemmepi__append(e->out, "in.v[%d]", member);
    else if (node->op == GEMMEPI__OP_OPERAND)
        gemmepi__append(e->out, "in.a%d[%d]", node->place, member);
    else if (node->place == GEMMEPI__INDEX_COLUMN)
        gemmepi__append(e->out, "in.column[%d]", member);
    else
        gemmepi__append(e->out, "in.%s", gemmepi__index_names[node->place]);
}

/* A node's value in its own type. */
static void gemmepi__emit_value(const gemmepi__emitter *e, int number, int member) {
    const gemmepi__node *node = &e->formula->nodes[number];
    if (node->op < GEMMEPI__LEAVES)
        gemmepi__emit_leaf(e, node, member);
    else if (node->op == GEMMEPI__OP_FIRST || node->op == GEMMEPI__OP_SECOND)
        gemmepi__emit_value(e, node->args[0], node->op == GEMMEPI__OP_SECOND);
    else if (gemmepi__members(e->formula, node->width) == 2)
        gemmepi__append(e->out, "t%d_%d", number, member);
    else
        gemmepi__append(e->out, "t%d", number);
}

static void gemmepi__emit_argument(const gemmepi__emitter *e, int number, int member, int as) {
    const gemmepi__node *node = &e->formula->nodes[number];
    const char *before = "", *behind = "";
    if (node->op == GEMMEPI__OP_NUMBER) {
        gemmepi__append(e->out, "(");
        gemmepi__emit_number(e, node->number, as);
        gemmepi__append(e->out, ")");
        return;
    }
    if (as == GEMMEPI__AS_NUMBER && node->type != GEMMEPI__OF_NUMBERS)
        before = "GEMMEPI_T(", behind = ")";
    if (as == GEMMEPI__AS_TRUTH && node->type != GEMMEPI__OF_TRUTH)
        before = "(", behind = " != 0)";
    if (as == GEMMEPI__AS_INDEX)
        before = "formula_index<GEMMEPI_INDEX>(", behind = ")";
    gemmepi__append(e->out, "%s", before);
    gemmepi__emit_value(e, number, member);
    gemmepi__append(e->out, "%s", behind);
}

/* row, column or item, but no extent, which may be the largest index. */
static int gemmepi__is_position(const gemmepi__node *node) {
    return node->op == GEMMEPI__OP_INDEX && node->place <= GEMMEPI__INDEX_ITEM;
}

/* What an operation wants of one of its arguments. */
static int gemmepi__wanted_as(const gemmepi__emitter *e, const gemmepi__node *node, int argument) {
    if (node->op == GEMMEPI__OP_OR || node->op == GEMMEPI__OP_AND || node->op == GEMMEPI__OP_NOT ||
        (node->op == GEMMEPI__OP_SELECT && argument == 0))
        return GEMMEPI__AS_TRUTH;
    if (gemmepi__is_exact_comparison(e->formula, node))
        return gemmepi__is_position(&e->formula->nodes[node->args[1 - argument]]) &&
                       e->formula->nodes[node->args[argument]].op == GEMMEPI__OP_OPERAND
                   ? GEMMEPI__AS_INDEX
                   : GEMMEPI__AS_READ;
    return GEMMEPI__AS_NUMBER;
}

/* In I32 + - and * are of numbers without a sign, and so modulo 2^32. */
static const char *gemmepi__device_text(const gemmepi__emitter *e, int op) {
    if (e->is_whole)
        switch (op) {
        case GEMMEPI__OP_ADD:
            return "(int)((u32)x + (u32)y)";
        case GEMMEPI__OP_SUB:
            return "(int)((u32)x - (u32)y)";
        case GEMMEPI__OP_MUL:
            return "(int)((u32)x * (u32)y)";
        case GEMMEPI__OP_NEG:
            return "(int)(0u - (u32)x)";
        }
    return gemmepi__operation_of(op)->device;
}

/* The text of a row with its arguments in place of x, y and z where these stand alone. */
static void gemmepi__emit_template(const gemmepi__emitter *e, const gemmepi__node *node, int member,
                                   const char *text) {
    size_t length;
    int argument;
    for (; *text; text += length) {
        length = gemmepi__name_length(text);
        if (length == 0) {
            length = 1;
            gemmepi__append(e->out, "%c", *text);
            continue;
        }
        argument = length == 1 && *text >= 'x' && *text <= 'z' ? *text - 'x' : -1;
        if (argument >= 0)
            gemmepi__emit_argument(e, node->args[argument], member, gemmepi__wanted_as(e, node, argument));
        else
            gemmepi__append(e->out, "%.*s", (int)length, text);
    }
}

/* Whether it is v, or v and something that is not FULL, as a bias: v is a sum of products, whose error hides that of a shorter form. */
static int gemmepi__is_sum_of_products(const gemmepi__formula *f, int number) {
    const gemmepi__node *node = &f->nodes[number];
    int i;
    if (node->op == GEMMEPI__OP_FIRST || node->op == GEMMEPI__OP_SECOND)
        return gemmepi__is_sum_of_products(f, node->args[0]);
    for (i = 0; i < 2 && node->op == GEMMEPI__OP_ADD; i++) {
        const gemmepi__node *added = &f->nodes[node->args[i]];
        if ((added->op == GEMMEPI__OP_NUMBER ||
             (added->op == GEMMEPI__OP_OPERAND && f->operands[added->place].kind != GEMMEPI_FULL)) &&
            gemmepi__is_sum_of_products(f, node->args[1 - i]))
            return 1;
    }
    return node->op == GEMMEPI__OP_VALUE;
}

static void gemmepi__emit_activation(const gemmepi__emitter *e, const gemmepi__node *node, int member) {
    gemmepi__append(e->out, "%s(%s, ",
                    node->op == GEMMEPI__OP_DERIVE                           ? "FORMULA_DERIVE"
                    : gemmepi__is_sum_of_products(e->formula, node->args[0]) ? "FORMULA_ACTIVATE_SUM"
                                                                             : "FORMULA_ACTIVATE",
                    gemmepi__activations[node->place].name);
    gemmepi__emit_argument(e, node->args[0], member, GEMMEPI__AS_NUMBER);
    gemmepi__append(e->out, ", ");
    if (node->args[1] >= 0)
        gemmepi__emit_argument(e, node->args[1], member, GEMMEPI__AS_NUMBER);
    else
        gemmepi__append(e->out, "GEMMEPI_T(0)");
    gemmepi__append(e->out, ")");
}

/* Seed and i of uniform(). */
static void gemmepi__emit_stream(const gemmepi__emitter *e, const gemmepi__node *node) {
    const gemmepi__node *i = &e->formula->nodes[node->args[1]];
    gemmepi__emit_value(e, node->args[0], 0);
    gemmepi__append(e->out, ", ");
    if (i->op == GEMMEPI__OP_NUMBER)
        gemmepi__emit_number(e, i->number, GEMMEPI__AS_READ);
    else
        gemmepi__emit_value(e, node->args[1], 0);
}

static void gemmepi__emit_uniform(const gemmepi__emitter *e, int number, int member) {
    gemmepi__append(e->out, "GEMMEPI_T(FORMULA_RANDOM(u%d, %d, ", number, member);
    gemmepi__emit_stream(e, &e->formula->nodes[number]);
    gemmepi__append(e->out,
                    e->formula->exchanged ? ", in.row, in.column[%d], in.item))" /* the caller's */
                                          : ", in.column[%d], in.row, in.item))",
                    member);
}

static void gemmepi__emit_quotient(const gemmepi__emitter *e, const gemmepi__node *node, int member) {
    gemmepi__emit_argument(e, node->args[0], member, GEMMEPI__AS_NUMBER);
    gemmepi__append(e->out, " * ");
    gemmepi__emit_number(e, 1 / e->formula->nodes[node->args[1]].number, GEMMEPI__AS_NUMBER);
}

static void gemmepi__emit_operation(const gemmepi__emitter *e, int number, int member) {
    const gemmepi__node *node = &e->formula->nodes[number];
    if (gemmepi__divides_by_number(e->formula, node))
        gemmepi__emit_quotient(e, node, member);
    else if (node->op == GEMMEPI__OP_ACTIVATE || node->op == GEMMEPI__OP_DERIVE)
        gemmepi__emit_activation(e, node, member);
    else if (node->op == GEMMEPI__OP_UNIFORM)
        gemmepi__emit_uniform(e, number, member);
    else if (node->op == GEMMEPI__OP_BOTH)
        gemmepi__emit_argument(e, node->args[member], 0, GEMMEPI__AS_NUMBER);
    else
        gemmepi__emit_template(e, node, member, gemmepi__device_text(e, node->op));
}

static void gemmepi__emit_node(const gemmepi__emitter *e, int number) {
    const gemmepi__node *node = &e->formula->nodes[number];
    int member, members = gemmepi__members(e->formula, node->width);
    if (node->op < GEMMEPI__LEAVES || node->op == GEMMEPI__OP_FIRST || node->op == GEMMEPI__OP_SECOND)
        return;
    for (member = 0; member < members; member++) {
        gemmepi__append(e->out, "    const %s ", node->type == GEMMEPI__OF_TRUTH ? "bool" : "GEMMEPI_T");
        gemmepi__emit_value(e, number, member);
        gemmepi__append(e->out, " = ");
        gemmepi__emit_operation(e, number, member);
        gemmepi__append(e->out, ";\n");
    }
}

/* >>what surrounds it */

static void gemmepi__emit_uniforms(const gemmepi__emitter *e) {
    int i;
    gemmepi__append(e->out, "#define FORMULA_UNIFORMS(X)");
    for (i = 0; i < e->formula->node_count; i++) {
        const gemmepi__node *node = &e->formula->nodes[i];
        if (node->op != GEMMEPI__OP_UNIFORM)
            continue;
        gemmepi__append(e->out, " X(u%d, %d, ", i, gemmepi__members(e->formula, node->width));
        gemmepi__emit_stream(e, node);
        gemmepi__append(e->out, ")");
    }
    gemmepi__append(e->out, "\n");
}

/* What a kernel must know, for #if and as lists for macros:

       FORMULA_MEMBERS   columns of a unit, of what is wide; what is narrow has one then
       FORMULA_HALVES    1: column j of the left half (of each group) and of the right one; 2: an even and an odd column
       FORMULA_GROUP     columns of a group; 0: the whole
       FORMULA_VALUE     members of v, 0: it is not read. FORMULA_RESULT: of D, 0: it is not stored
       FORMULA_INDICES   bits: 1 row, 2 column, 4 item, 8 rows, 16 columns, 32 depth
       FORMULA_ROUNDS    1: an `in` has scale_d, that of D, 1 where it has none
       FORMULA_EXCHANGED 1: the caller's rows are the columns here
       FORMULA_UNIFORMS(X) X(name, members, seed, i): of each uniform(), of an `in`
       FORMULA_INPUTS(X) X(place, name, kind, members, type, periods), periods: 1 of rows, 2 of columns
       FORMULA_OUTPUTS(X) X(place, name, kind, members, type, reduction or none, whether it accumulates); all members go into a reduction */
static void gemmepi__emit_table(const gemmepi__emitter *e) {
    const gemmepi__formula *f = e->formula;
    int i, pass, value = f->n_width == GEMMEPI__WIDE && f->has_halves ? 2 : 1;
    gemmepi__append(e->out,
                    "#define FORMULA_MEMBERS %d\n#define FORMULA_HALVES %d\n#define FORMULA_GROUP %lld\n"
                    "#define FORMULA_VALUE %d\n#define FORMULA_RESULT %d\n#define FORMULA_INDICES 0x%x\n"
                    "#define FORMULA_EXCHANGED %d\n#define FORMULA_EXACT %d\n#define FORMULA_ROUNDS %d\n",
                    f->has_halves ? 2 : 1, (int)f->mode, (long long)f->group, f->reads_value ? value : 0,
                    f->operands[GEMMEPI__RESULT].used ? f->operands[GEMMEPI__RESULT].members : 0,
                    (unsigned)f->indices, (int)f->exchanged, !f->is_short, (int)f->rounds);
    gemmepi__emit_uniforms(e);
    for (pass = 0; pass < 2; pass++) {
        gemmepi__append(e->out, pass ? "#define FORMULA_OUTPUTS(X)" : "#define FORMULA_INPUTS(X)");
        for (i = 0; i < f->operand_count; i++) {
            const gemmepi__formula_operand *o = &f->operands[i];
            if (!o->used || o->output != pass)
                continue;
            gemmepi__append(e->out, " X(%d, a%d, %s, %d, %s, ", i, i, gemmepi__kind_names[o->kind],
                            o->members, gemmepi__dtype((gemmepi_dtype)o->dtype)->name);
            if (pass)
                gemmepi__append(e->out, "%s, %d)",
                                o->reduction ? gemmepi__reductions[o->reduction].name : "none",
                                o->accumulate);
            else
                gemmepi__append(e->out, "%d)", o->periods);
        }
        gemmepi__append(e->out, "\n");
    }
}

/* Where FORMULA_RANDOM is defined beforehand, an `in` has the numbers. */
static void gemmepi__emit_random_inputs(const gemmepi__emitter *e) {
    const gemmepi__formula *f = e->formula;
    int i;
    if (!f->uses_uniform)
        return;
    gemmepi__append(e->out, "#ifdef FORMULA_RANDOM\n");
    for (i = 0; i < f->node_count; i++)
        if (f->nodes[i].op == GEMMEPI__OP_UNIFORM)
            gemmepi__append(e->out, "    float u%d[%d];\n", i, gemmepi__members(f, f->nodes[i].width));
    gemmepi__append(e->out, "#else\n#define FORMULA_RANDOM(name, member, seed, i, column, row, item) "
                            "formula_uniform(seed, i, column, row, item)\n#endif\n");
}

static void gemmepi__emit_inputs(const gemmepi__emitter *e) {
    const gemmepi__formula *f = e->formula;
    const char *type;
    int i;
    gemmepi__append(e->out, "struct Formula_in {\n");
    if (f->reads_value)
        gemmepi__append(e->out, "    GEMMEPI_T v[%d];\n",
                        f->n_width == GEMMEPI__WIDE && f->has_halves ? 2 : 1);
    for (i = 0; i < f->operand_count; i++) {
        type = f->operands[i].dtype == GEMMEPI_I32   ? "int"
               : f->operands[i].dtype == GEMMEPI_I64 ? "long long"
                                                     : "GEMMEPI_T";
        if (f->operands[i].used && !f->operands[i].output)
            gemmepi__append(e->out, "    %s a%d[%d];\n", type, i, f->operands[i].members);
    }
    for (i = 0; i < GEMMEPI__INDICES; i++)
        if (f->indices >> i & 1)
            gemmepi__append(e->out, "    GEMMEPI_INDEX %s%s;\n", gemmepi__index_names[i],
                            i != GEMMEPI__INDEX_COLUMN ? ""
                            : f->has_halves            ? "[2]"
                                                       : "[1]");
    if (f->rounds)
        gemmepi__append(e->out, "    GEMMEPI_T scale_d;\n");
    gemmepi__emit_random_inputs(e);
    gemmepi__append(e->out, "};\n");
}

static void gemmepi__emit_outputs(const gemmepi__emitter *e, int assigns) {
    const gemmepi__formula *f = e->formula;
    int i, member;
    for (i = 0; i <= GEMMEPI__RESULT; i++) {
        const gemmepi__formula_operand *o = &f->operands[i];
        char name[16] = "d";
        if (!o->output || !o->used)
            continue;
        if (i < GEMMEPI__RESULT)
            snprintf(name, sizeof name, "a%d", i);
        if (!assigns)
            gemmepi__append(e->out, "    GEMMEPI_T %s[%d];\n", name, o->members);
        for (member = 0; assigns && member < o->members; member++) {
            gemmepi__append(e->out, "    out.%s[%d] = ", name, member);
            gemmepi__emit_argument(e, o->node, member, GEMMEPI__AS_NUMBER);
            gemmepi__append(e->out, ";\n");
        }
    }
}

/* The code. What is before it: GEMMEPI_T (float, double or int), GEMMEPI_INDEX (an integer type that holds the extents), formula.cuh,
   activation.cuh compiled for FORMULA_EXACT, and, where the formula has rounded(), formula_rounded(x, scale), which is what D stands for once it has stored x times the scale. FORMULA_ACTIVATE and FORMULA_DERIVE
   may be defined otherwise. Appends to out, which counts on where there is no room. */
static void gemmepi__emit_formula(gemmepi__text *out, const gemmepi__formula *formula) {
    gemmepi__emitter e;
    int i;
    e.out = out;
    e.formula = formula;
    e.is_whole = formula->accumulator == GEMMEPI_I32;
    gemmepi__emit_table(&e);
    gemmepi__append(out,
                    "#ifndef FORMULA_ACTIVATE\n"
                    "#define FORMULA_ACTIVATE(name, x, p) activate<name>(x, p)\n"
                    "#define FORMULA_DERIVE(name, x, p) times_derivative<name>(GEMMEPI_T(1), x, p)\n#endif\n"
                    "#ifndef FORMULA_ACTIVATE_SUM\n#define FORMULA_ACTIVATE_SUM FORMULA_ACTIVATE\n#endif\n");
    gemmepi__emit_inputs(&e);
    gemmepi__append(out, "struct Formula_out {\n");
    gemmepi__emit_outputs(&e, 0);
    gemmepi__append(
        out,
        "};\n__device__ static __forceinline__ void formula(const Formula_in &in, Formula_out &out) {\n");
    for (i = 0; i < formula->node_count; i++)
        gemmepi__emit_node(&e, i);
    gemmepi__emit_outputs(&e, 1);
    gemmepi__append(out, "}\n");
}

#endif
