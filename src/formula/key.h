/* The text of a formula that has been parsed: with the user's names, or so that formulas of one code have one text. */
#ifndef GEMMEPI_FORMULA_KEY_H
#define GEMMEPI_FORMULA_KEY_H

#include "formula.h"
#include "print.h"

static void gpi__start_printer(gpi__printer *p, gpi__text *out, const gpi__formula *formula) {
    int i;
    memset(p, 0, sizeof *p);
    p->out = out;
    p->nodes = formula->nodes;
    p->count = formula->node_count;
    p->mode = formula->mode;
    p->parts = formula->parts;
    p->group = formula->group;
    p->between = "; ";
    p->value = formula->names + formula->value_name;
    for (i = 0; i <= GPI__RESULT; i++)
        if (i < formula->operand_count || i == GPI__RESULT)
            p->names[i] = formula->names + formula->operands[i].name;
}

static void gpi__list_outputs(gpi__printer *p, const gpi__formula *formula) {
    int i, o;
    for (i = -1; i < formula->operand_count; i++) {
        o = i < 0 ? (int)GPI__RESULT : i;
        if (formula->operands[o].output && formula->operands[o].used)
            gpi__add_output(p, "", p->names[o], formula->operands[o].node, formula->operands[o].reduction,
                            formula->operands[o].group);
    }
}

/* The formula with the names of its operands. */
static void gpi__print_formula(gpi__text *out, const gpi__formula *formula) {
    gpi__printer p;
    gpi__start_printer(&p, out, formula);
    p.exchanged = formula->exchanged;
    gpi__list_outputs(&p, formula);
    gpi__print_statements(&p);
}

/* The formula and all that code depends on beside it, whatever names and blanks the user took: equal texts have equal code. Operands
   are a0, a1 and so on by their place. */
static void gpi__print_key(gpi__text *out, const gpi__formula *formula) {
    gpi__printer p;
    char names[GPI__FORMULA_OPERANDS][16];
    int i;
    gpi__start_printer(&p, out, formula);
    gpi__append(out, "%s, d %s, n %d:", gpi__type(formula->accumulator), gpi__type(formula->d),
                (int)formula->n_width);
    if (formula->parts != 2)
        gpi__append(out, " parts %d,", (int)formula->parts);
    if (formula->exchanged && formula->uses_uniform)
        gpi__append(out, " exchanged,");
    p.value = "v";
    p.names[GPI__RESULT] = "d";
    for (i = 0; i < formula->operand_count; i++) {
        const gpi__formula_operand *operand = &formula->operands[i];
        snprintf(names[i], sizeof names[i], "a%d", i);
        p.names[i] = names[i];
        if (operand->used)
            gpi__append(out, " %s %s%s%s %d %d %d;", names[i], operand->output ? "out " : "",
                        operand->accumulate ? "+= " : "", gpi__kind_names[operand->kind], operand->width,
                        operand->dtype, operand->periods);
    }
    gpi__append(out, " ");
    gpi__list_outputs(&p, formula);
    gpi__print_statements(&p);
}

#endif
