#!/bin/sh
# What is generated of formulas, their code for kernels and their gradients, is the same text however a compiler optimises the library,
# fused multiply-adds included: kernels are kept by it. Called by tests/run.sh in the repository's root.
. tests/compile/lines.sh
FOLDER=build/tests/unit
: "${CC:=cc}"

mkdir -p $FOLDER
cat >$FOLDER/formula_text.c <<'END'
#include "unit/formula_cases.h"

static char text[1 << 16];

static void print_code(const char *formula, gemmepi_dtype accumulator, int is_short) {
    gpi__formula *f = parsed(formula, accumulator, accumulator);
    gpi__text code = gpi__text_in(text, sizeof text);
    if (!f)
        return;
    f->is_short = is_short;
    gpi__emit_formula(&code, f);
    printf("/* %s */\n%s", formula, text);
    freed(f);
}

static void print_gradient(const char *formula) {
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_derive_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.formula = formula, desc.operands = operands, desc.operand_count = operands_of(formula, operands);
    if (gemmepi_derive(&desc, text, sizeof text))
        printf("%s\n", text);
}

int main(void) {
    size_t i;
    for (i = 0; i < GPI__COUNT(smooth_formulas) + GPI__COUNT(other_formulas); i++) {
        int is_smooth = i < GPI__COUNT(smooth_formulas);
        const char *formula = is_smooth ? smooth_formulas[i] : other_formulas[i - GPI__COUNT(smooth_formulas)];
        print_code(formula, GEMMEPI_F32, 0);
        print_code(formula, GEMMEPI_F32, 1);
        print_code(formula, GEMMEPI_F64, 0);
        if (is_smooth)
            print_gradient(formula);
    }
    return 0;
}
END

# made NAME OPTIONS...: the text that a library compiled so generates
made() {
    name=$1
    shift
    "$CC" -std=c99 -w "$@" -Isrc -Itests $FOLDER/formula_text.c -o $FOLDER/formula_text -lm -ldl -lpthread &&
        $FOLDER/formula_text >$FOLDER/formula_text_"$name".txt
}

# fused multiply-adds need a processor that has them, and a compiler that is told so
fused='-O3 -march=native -ffp-contract=fast'
printf 'int main(void) { return 0; }\n' >$FOLDER/empty.c
# shellcheck disable=SC2086
"$CC" $fused $FOLDER/empty.c -o $FOLDER/empty 2>/dev/null || fused=-O3
attempt formula_text_is_generated made plain -O0
# shellcheck disable=SC2086
attempt formula_text_is_generated_with_fused_multiply_adds made fused $fused
lines=$(wc -l <$FOLDER/formula_text_plain.txt)
attempt formula_text_has_code_and_gradients test "$lines" -gt 5000
attempt formula_text_does_not_depend_on_optimisation cmp $FOLDER/formula_text_plain.txt $FOLDER/formula_text_fused.txt
finish
