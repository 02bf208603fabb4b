/* The text of a formula that has been parsed: with the user's names, or so that formulas of one code have one text. */
#ifndef GEMMEPI_FORMULA_KEY_H
#define GEMMEPI_FORMULA_KEY_H

#include "formula.h"
#include "print.h"

static void gemmepi__start_printer(gemmepi__printer *p, gemmepi__text *out, const gemmepi__formula *formula) {
    int i;
    memset(p, 0, sizeof *p);
    p->out = out;
    p->nodes = formula->nodes;
    p->count = formula->node_count;
    p->mode = formula->mode;
    p->group = formula->group;
    p->between = "; ";
    p->value = formula->names + formula->value_name;
    for (i = 0; i <= GEMMEPI__RESULT; i++)
        if (i < formula->operand_count || i == GEMMEPI__RESULT)
            p->names[i] = formula->names + formula->operands[i].name;
}

static void gemmepi__list_outputs(gemmepi__printer *p, const gemmepi__formula *formula) {
    int i, o;
    for (i = -1; i < formula->operand_count; i++) {
        o = i < 0 ? (int)GEMMEPI__RESULT : i;
        if (formula->operands[o].output && formula->operands[o].used)
            gemmepi__add_output(p, "", p->names[o], formula->operands[o].node,
                                formula->operands[o].reduction);
    }
}

/* The formula with the names of its operands. */
static void gemmepi__print_formula(gemmepi__text *out, const gemmepi__formula *formula) {
    gemmepi__printer p;
    gemmepi__start_printer(&p, out, formula);
    p.exchanged = formula->exchanged;
    gemmepi__list_outputs(&p, formula);
    gemmepi__print_statements(&p);
}

/* The formula and all that code depends on beside it, whatever names and blanks the user took: equal texts have equal code. Operands
   are a0, a1 and so on by their place. */
static void gemmepi__print_key(gemmepi__text *out, const gemmepi__formula *formula) {
    gemmepi__printer p;
    char names[GEMMEPI__FORMULA_OPERANDS][16];
    int i;
    gemmepi__start_printer(&p, out, formula);
    gemmepi__append(out, "%s, d %s, n %d:", gemmepi__dtype((gemmepi_dtype)formula->accumulator)->name,
                    gemmepi__dtype((gemmepi_dtype)formula->d)->name, (int)formula->n_width);
    if (formula->exchanged && formula->uses_uniform)
        gemmepi__append(out, " exchanged,");
    p.value = "v";
    p.names[GEMMEPI__RESULT] = "d";
    for (i = 0; i < formula->operand_count; i++) {
        const gemmepi__formula_operand *operand = &formula->operands[i];
        snprintf(names[i], sizeof names[i], "a%d", i);
        p.names[i] = names[i];
        if (operand->used)
            gemmepi__append(out, " %s %s%s%s %d %d %d;", names[i], operand->output ? "out " : "",
                            operand->accumulate ? "+= " : "", gemmepi__kind_names[operand->kind],
                            operand->width, operand->dtype, operand->periods);
    }
    gemmepi__append(out, " ");
    gemmepi__list_outputs(&p, formula);
    gemmepi__print_statements(&p);
}

#endif
