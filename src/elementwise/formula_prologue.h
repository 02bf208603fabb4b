/* The CUDA text ahead of a formula's kernels. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_PROLOGUE_H
#define GEMMEPI_ELEMENTWISE_FORMULA_PROLOGUE_H

#include "../formula/emit.h"
#include "formula_shape.h"

static const char *gemmepi__formula_type(int dtype, int otherwise) {
    return gemmepi__dtype((gemmepi_dtype)(dtype ? dtype : otherwise))->name;
}

/* Bits of the places that have a scale or an amax. */
static void gemmepi__append_masks(gemmepi__text *text, const gemmepi__placed_formula *placed) {
    uint64_t scaled = 0, amax = 0;
    int i;
    for (i = 0; i <= GEMMEPI__RESULT; i++) {
        scaled |= (uint64_t)(placed->operands[i].scale && placed->formula->operands[i].used) << i;
        amax |= (uint64_t)(placed->operands[i].amax && placed->formula->operands[i].used) << i;
    }
    gemmepi__append(text, "#define GEMMEPI_SCALED 0x%llxull\n#define GEMMEPI_AMAX 0x%llxull\n",
                    (unsigned long long)scaled, (unsigned long long)amax);
}

static void gemmepi__append_source_defines(gemmepi__text *text, const gemmepi__formula *formula,
                                           const gemmepi__formula_source *source) {
    int reads = formula->reads_value;
    gemmepi__append(text, "#define GEMMEPI_VALUE_TYPE %s\n#define GEMMEPI_HAS_VALUE %d\n",
                    gemmepi__formula_type(source->dtype, formula->accumulator), reads && source->dtype != 0);
    gemmepi__append(text, "#define GEMMEPI_PARTS %d\n#define GEMMEPI_APPLIED %d\n",
                    reads && source->parts > 1 ? source->parts : 1, !reads || source->applied);
    gemmepi__append(text, "#define GEMMEPI_C_TYPE %s\n#define GEMMEPI_SCALE_C %d\n",
                    gemmepi__formula_type(source->c, formula->accumulator), source->c_scale != 0);
    gemmepi__append(text, "#define GEMMEPI_SCALE_A %d\n#define GEMMEPI_SCALE_B %d\n", source->scale_a,
                    source->scale_b);
}

/* All that stands before formula_pass.cu. */
static void gemmepi__formula_pass_prologue(gemmepi__text *text, const gemmepi__placed_formula *placed,
                                           const gemmepi__formula_source *source) {
    const gemmepi__formula *f = placed->formula;
    int run = gemmepi__formula_run_length(f);
    int64_t columns = gemmepi__formula_columns(placed);
    int is_small =
        placed->rows <= INT_MAX && columns <= INT_MAX && placed->depth <= INT_MAX && placed->items <= INT_MAX;
    gemmepi__append(text, "#define GEMMEPI_T %s\n#define GEMMEPI_INDEX %s\n#define GEMMEPI_EXACT %d\n",
                    gemmepi__formula_type(f->accumulator, 0), is_small ? "int" : "long long", !f->is_short);
    gemmepi__append(text, "#define GEMMEPI_UNITS %d\n#define GEMMEPI_ALIGNED %d\n", run,
                    gemmepi__formula_is_aligned(placed, source, run));
    gemmepi__append(text, "#define GEMMEPI_RESULT_TYPE %s\n",
                    gemmepi__formula_type(f->operands[GEMMEPI__RESULT].dtype, f->accumulator));
    if (source->invariant)
        gemmepi__append(text, GEMMEPI__AS_WRITTEN);
    gemmepi__append_source_defines(text, f, source);
    gemmepi__append(
        text, "#define GEMMEPI_STRIDED %d\n#define GEMMEPI_ITEM_AXES %d\n#define GEMMEPI_STEPPED 0x%llxull\n",
        gemmepi__is_strided(placed),
        placed->strides && placed->strides->axes > 1 ? (int)placed->strides->axes : 1,
        (unsigned long long)gemmepi__stepped_places(placed));
    gemmepi__append_masks(text, placed);
    gemmepi__append(text,
                    "#include \"formula.cuh\"\n#include \"activation.cuh\"\n"
                    "__device__ inline GEMMEPI_T formula_rounded(GEMMEPI_T x, GEMMEPI_T scale) {\n"
                    "    return to_acc<GEMMEPI_T>(from_acc<%s>(x * scale)) / scale;\n}\n",
                    gemmepi__formula_type(f->d, f->accumulator));
    gemmepi__emit_formula(text, f);
}

/* All that stands before formula_reduce.cu: of formulas with the same reductions it is the same. */
static void gemmepi__formula_reduce_prologue(gemmepi__text *text, const gemmepi__placed_formula *placed) {
    const gemmepi__formula *f = placed->formula;
    uint64_t scaled = 0, amax = 0;
    int i;
    gemmepi__append(text, "#define GEMMEPI_T %s\n#define FORMULA_OUTPUTS(X)",
                    gemmepi__formula_type(f->accumulator, 0));
    for (i = 0; i < f->operand_count; i++) {
        const gemmepi__formula_operand *o = &f->operands[i];
        if (!gemmepi__is_reduced(o))
            continue;
        gemmepi__append(text, " X(%d, a%d, %s, %d, %s, %s, %d)", i, i, gemmepi__kind_names[o->kind],
                        o->members, gemmepi__formula_type(o->dtype, 0),
                        gemmepi__reductions[o->reduction].name, o->accumulate);
        scaled |= (uint64_t)(placed->operands[i].scale != 0) << i;
        amax |= (uint64_t)(placed->operands[i].amax != 0) << i;
    }
    gemmepi__append(text, "\n#define GEMMEPI_SCALED 0x%llxull\n#define GEMMEPI_AMAX 0x%llxull\n",
                    (unsigned long long)scaled, (unsigned long long)amax);
}

#endif
