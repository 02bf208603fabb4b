/* The text of B that engines/weights.h computes in registers, on the way from its few bits to the multiplication: what it may read, and
   its code. B is stored along k, so that its formula is one of rows of n, columns of k. */
#ifndef GEMMEPI_PRODUCT_ENGINES_WEIGHTS_MADE_H
#define GEMMEPI_PRODUCT_ENGINES_WEIGHTS_MADE_H

#include "../parts/inside.h"

/* >>its operands */

/* Of k, that have an element in common: 0 where all have. */
static int64_t gpi__made_rows(const gpi__placed_formula *placed, int i) {
    const gpi__placed_operand *place = &placed->operands[i];
    if (placed->formula->operands[i].kind != GEMMEPI_BLOCKED)
        return 0;
    return place->column_period < placed->columns ? place->column_period : 1 << 30; /* more than k may be */
}

static int gpi__is_copied(const gpi__formula_operand *o) {
    return o->used == GPI__BY_PLACE && o->kind >= GEMMEPI_PER_ROW;
}

/* The least of all, each of which is a multiple of it. */
static int64_t gpi__made_group(const gpi__kept_formula *made) {
    int64_t rows, group = 0;
    int i;
    for (i = 0; i < made->placed.formula->operand_count; i++) {
        rows = gpi__made_rows(&made->placed, i);
        if (gpi__is_copied(&made->placed.formula->operands[i]) && rows && (!group || rows < group))
            group = rows;
    }
    return group >= 1 << 30 ? 0 : group;
}

/* Bytes of a stage that has so many of k and columns. */
static unsigned gpi__made_bytes(const gpi__kept_formula *made, int step, int columns) {
    const gpi__placed_formula *placed = &made->placed;
    unsigned bytes = 0;
    int i;
    for (i = 0; i < placed->formula->operand_count; i++) {
        const gpi__formula_operand *o = &placed->formula->operands[i];
        int64_t rows = gpi__made_rows(placed, i), groups = rows && rows < step ? step / rows : 1;
        unsigned own = (unsigned)(groups * made->views[i].bits / 8);
        if (gpi__is_copied(o))
            bytes += (unsigned)columns * (rows && own < 4 ? 4 : own);
    }
    return (bytes + 1023) / 1024 * 1024;
}

/* >>what may go there */

/* Whether words of 32 bits have whole lines of it. alignment: what is promised of its pointer */
static int gpi__made_in_words(const gpi__kept_formula *made, int i, int alignment) {
    const gpi__view *view = &made->views[i];
    int64_t line = made->placed.formula->operands[i].kind == GEMMEPI_BLOCKED ? view->ld : view->length;
    return ((view->batch_stride | line) * view->bits % 32 | alignment % 4) == 0;
}

/* After how many elements a table repeats: those that there are, as a kernel is compiled for it. 0: it is another operand. */
static int64_t gpi__table_period(const gpi__placed_formula *placed, int i) {
    const gpi__placed_operand *at = &placed->operands[i];
    int kind = placed->formula->operands[i].kind;
    return kind == GEMMEPI_PER_ROW ? at->row_period : kind == GEMMEPI_PER_COLUMN ? at->column_period : 0;
}

static const char *gpi__made_operand_rule(const gpi__kept_formula *made, int i, int alignment) {
    const gpi__placed_formula *placed = &made->placed;
    const gpi__formula_operand *o = &placed->formula->operands[i];
    int64_t rows = gpi__made_rows(placed, i);
    if (!o->used || o->kind == GEMMEPI_NUMBER)
        return NULL;
    if (o->used != GPI__BY_PLACE && (o->used != GPI__BY_INDEX || gpi__table_period(placed, i) < 1))
        return "a table of b's formula is PER_ROW or PER_COLUMN and repeats, as book[b] of 16 does, and is read by index alone";
    if (o->dtype == GEMMEPI_I32 || o->dtype == GEMMEPI_I64 || (gpi__is_packed(o->dtype) && !rows) ||
        placed->operands[i].scale)
        return "the operands of b's formula are no I32 or I64, of 4 bits BLOCKED, and have no scale";
    if (o->used == GPI__BY_INDEX)
        return NULL;
    if (o->kind == GEMMEPI_PER_COLUMN || o->kind == GEMMEPI_FULL ||
        (o->kind == GEMMEPI_PER_ROW && placed->operands[i].row_period))
        return "an operand of b's formula changes with each k, or repeats";
    if (rows && (rows < 16 || (rows & (rows - 1) && rows % 1024)))
        return "blocks of b's formula have 16, 32, 64 ... or a multiple of 1024 of k";
    if (gpi__is_copied(o) && !gpi__made_in_words(made, i, alignment))
        return "it copies the operands of b's formula at multiples of 4 bytes only: their pointers, lines and items";
    return NULL;
}

static const char *gpi__made_rule(const gpi__kept_formula *made, int alignment) {
    const gpi__formula *f = made->placed.formula;
    const char *rule = NULL;
    int i, used = 0;
    if (f->accumulator != GEMMEPI_F32 || f->uses_uniform || f->indices || f->rounds || f->has_halves ||
        gpi__may_be_far(f) || !f->reads_value)
        return "b's formula has indices, random numbers, parts, sines or rounded()";
    for (i = 0; i < f->node_count; i++)
        if (gpi__is_of_activation(f->nodes[i].op))
            return "b's formula has an activation";
    for (i = 0; i < f->operand_count && !rule; i++) {
        used += f->operands[i].used != 0;
        rule = gpi__made_operand_rule(made, i, alignment);
    }
    return !rule && used > GPI__MADE_PLACES ? "b's formula reads more than four operands" : rule;
}

/* >>its form: b * scale or (b - zero) * scale, each of which is a node that does not read b; -1: 1 or 0 */

typedef struct gpi__made_form {
    int form, zero, minus, scale; /* form: 0 where it is another. minus: zero is added */
} gpi__made_form;

static int gpi__is_made_leaf(const gpi__formula *f, int number) {
    return f->nodes[number].op == GPI__OP_NUMBER || f->nodes[number].op == GPI__OP_OPERAND;
}

/* Of what is scaled. */
static int gpi__find_zero(const gpi__formula *f, int number, gpi__made_form *form) {
    const gpi__node *node = &f->nodes[number];
    int swapped;
    if (node->op == GPI__OP_VALUE) {
        form->form = 1;
        return 1;
    }
    if (node->op != GPI__OP_ADD && node->op != GPI__OP_SUB)
        return 0;
    swapped = node->op == GPI__OP_ADD && f->nodes[node->args[1]].op == GPI__OP_VALUE;
    if (f->nodes[node->args[swapped]].op != GPI__OP_VALUE || !gpi__is_made_leaf(f, node->args[1 - swapped]))
        return 0;
    form->form = 2;
    form->zero = node->args[1 - swapped];
    form->minus = node->op == GPI__OP_ADD;
    return 1;
}

static gpi__made_form gpi__made_form_of(const gpi__formula *f) {
    static const gpi__made_form other = {0, -1, 0, -1};
    gpi__made_form form = other;
    int root = f->operands[GPI__RESULT].node, i;
    const gpi__node *node = &f->nodes[root];
    if (gpi__find_zero(f, root, &form))
        return form;
    for (i = 0; i < 2 && node->op == GPI__OP_MUL; i++)
        if (gpi__is_made_leaf(f, node->args[i]) && gpi__find_zero(f, node->args[1 - i], &form)) {
            form.scale = node->args[i];
            return form;
        }
    return other;
}

/* Whether each value of an operand is one of 16 bits, too. */
static int gpi__fits(const gpi__formula *f, int scale, int input) {
    int dtype;
    if (scale < 0)
        return 1;
    if (f->nodes[scale].op != GPI__OP_OPERAND || f->operands[f->nodes[scale].place].kind == GEMMEPI_NUMBER)
        return 0;
    dtype = f->operands[f->nodes[scale].place].dtype;
    return dtype == input || dtype == GEMMEPI_I8 || gpi__is_e4m3_or_e5m2(dtype) ||
           (dtype == GEMMEPI_E8M0 && input == GEMMEPI_BF16);
}

/* >>its code */

/* The number of an operand in the kernel: copied ones stand first. */
static int gpi__made_number(const gpi__formula *f, int operand) {
    int i, number = 0;
    for (i = 0; i < f->operand_count; i++)
        number += f->operands[i].used &&
                  (gpi__is_copied(&f->operands[i]) > gpi__is_copied(&f->operands[operand]) ||
                   (gpi__is_copied(&f->operands[i]) == gpi__is_copied(&f->operands[operand]) && i < operand));
    return number;
}

/* Which of the lists in the kernel has it. */
static int gpi__made_list(const gpi__formula_operand *o) {
    return gpi__is_copied(o) ? 0 : o->used == GPI__BY_INDEX ? 2 : 1;
}

static void gpi__append_made_operands(gpi__text *text, const gpi__kept_formula *made) {
    static const char *const lists[] = {"COPIED", "HELD", "TABLES"};
    const gpi__formula *f = made->placed.formula;
    int number, i, list, count = 0;
    for (i = 0; i < f->operand_count; i++)
        count += f->operands[i].used != 0;
    gpi__append(text, "#define MADE_COUNT %d\n#define MADE_GROUP %lld\n", count ? count : 1,
                (long long)gpi__made_group(made));
    for (list = 0; list < 3; list++) {
        gpi__append(text, "#define MADE_%s(X)", lists[list]);
        for (number = 0; number < count; number++)
            for (i = 0; i < f->operand_count; i++) {
                const gpi__formula_operand *o = &f->operands[i];
                int64_t rows = gpi__made_rows(&made->placed, i),
                        columns = made->placed.operands[i].row_period;
                if (!o->used || gpi__made_list(o) != list || gpi__made_number(f, i) != number)
                    continue;
                gpi__append(text, " X(%d, %s", number,
                            o->kind == GEMMEPI_NUMBER ? "Number" : gpi__type(o->dtype));
                if (list == 0)
                    gpi__append(text, ", %lld, %lld, %d", (long long)rows, (long long)(columns ? columns : 1),
                                rows != 0);
                gpi__append(text, ")");
            }
        gpi__append(text, "\n");
    }
}

static void gpi__append_made_leaf(gpi__text *text, const gpi__formula *f, const char *name,
                                  const char *before, int number) {
    char digits[GPI__NUMBER_SIZE];
    if (number < 0)
        return;
    gpi__append(text, "#define MADE_%s(o) (%s", name, before);
    if (f->nodes[number].op == GPI__OP_NUMBER) {
        gpi__print_number(digits, (double)(float)f->nodes[number].number);
        gpi__append(text, "float(%s))\n", digits);
    } else {
        gpi__append(text, "o[%d])\n", gpi__made_number(f, f->nodes[number].place));
    }
}

/* Defines and code; kernels/made.cuh says what they are. */
static void gpi__append_made(gpi__text *text, const gpi__kept_formula *made, int stored, int input) {
    const gpi__formula *f = made->placed.formula;
    gpi__made_form form = gpi__made_form_of(f);
    gpi__emitter e = gpi__emitter_of(text, f, &gpi__nothing_beside);
    int i;
    gpi__append(text, "#define GEMMEPI_MADE 1\n#define GEMMEPI_STORED %s\n", gpi__type(stored));
    gpi__append_made_operands(text, made);
    gpi__append(text, "#define MADE_FORM %d\n#define MADE_FITS %d\n", form.form,
                gpi__fits(f, form.scale, input));
    gpi__append_made_leaf(text, f, "ZERO", form.minus ? "-" : "", form.zero);
    gpi__append_made_leaf(text, f, "SCALE", "", form.scale);
    gpi__append(
        text,
        "#include \"types.cuh\"\n#define GEMMEPI_T float\n#define GEMMEPI_INDEX int\n#include \"formula.cuh\"\n"
        "namespace made {\n");
    gpi__emit_function(&e);
    gpi__append(
        text,
        "}\n#undef GEMMEPI_T\n#undef GEMMEPI_INDEX\n"
        "__device__ inline float made_of(float b, const float (&o)[MADE_COUNT], const void *const (&tables)[MADE_COUNT]) {\n"
        "    made::Formula_in in;\n    made::Formula_out out;\n    (void)o, (void)tables;\n    in.v[0] = b;\n");
    for (i = 0; i < f->operand_count; i++)
        if (f->operands[i].used == GPI__BY_INDEX)
            gpi__append(text, "    in.b%d = {(const %s *)tables[%d], %lld, 1, 1};\n", i,
                        gpi__type(f->operands[i].dtype), gpi__made_number(f, i),
                        (long long)gpi__table_period(&made->placed, i));
        else if (f->operands[i].used)
            gpi__append(text, "    in.a%d[0] = o[%d];\n", i, gpi__made_number(f, i));
    gpi__append(text, "    made::formula(in, out);\n    return out.d[0];\n}\n");
}

/* >>its places */

static void gpi__fill_made(const gpi__kept_formula *made, gpi__formula_place *places) {
    const gpi__placed_formula *placed = &made->placed;
    int i;
    for (i = 0; i < placed->formula->operand_count; i++)
        if (placed->formula->operands[i].used) {
            gpi__formula_place *place = &places[gpi__made_number(placed->formula, i)];
            place->ld = placed->operands[i].ld;
            place->stride = placed->operands[i].batch_stride;
        }
}

/* pointers and numbers: by operand of the formula */
static void gpi__point_made(const gpi__kept_formula *made, void *const *pointers, const double *numbers,
                            gpi__formula_place *places) {
    const gpi__formula *f = made->placed.formula;
    int i;
    for (i = 0; i < f->operand_count; i++) {
        if (!f->operands[i].used)
            continue;
        if (f->operands[i].kind == GEMMEPI_NUMBER)
            places[gpi__made_number(f, i)].number = numbers[i];
        else
            places[gpi__made_number(f, i)].data = pointers[i];
    }
}

#endif
