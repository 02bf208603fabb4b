/* The CUDA text ahead of a formula's kernels. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_PROLOGUE_H
#define GEMMEPI_ELEMENTWISE_FORMULA_PROLOGUE_H

#include "../formula/emit.h"
#include "formula_shape.h"

static const char *gpi__formula_type(int dtype, int otherwise) {
    return gpi__type(dtype ? dtype : otherwise);
}

/* Bits of the places that have a scale or an amax. */
static void gpi__append_masks(gpi__text *text, const gpi__placed_formula *placed,
                              const gpi__formula_source *source) {
    uint64_t scaled = 0, amax = 0;
    int i;
    for (i = 0; i < 2; i++)
        scaled |= (uint64_t)(source->matrices[i].scale != 0) << (GPI__FORMULA_VALUE + i);
    for (i = 0; i <= GPI__RESULT; i++) {
        scaled |= (uint64_t)(placed->operands[i].scale && placed->formula->operands[i].used) << i;
        amax |= (uint64_t)(placed->operands[i].amax && placed->formula->operands[i].used) << i;
    }
    gpi__append(text, "#define GEMMEPI_SCALED 0x%llxull\n#define GEMMEPI_AMAX 0x%llxull\n",
                (unsigned long long)scaled, (unsigned long long)amax);
}

/* All that stands before formula_pass.cu. finding: how it finds D's scales, or 0 */
static void gpi__formula_pass_prologue(gpi__text *text, const gpi__placed_formula *placed,
                                       const gpi__formula_source *source, int finding) {
    const gpi__formula *f = placed->formula;
    int run = gpi__formula_run_length(f);
    int64_t columns = gpi__formula_columns(placed);
    int is_small =
        placed->rows <= INT_MAX && columns <= INT_MAX && placed->depth <= INT_MAX && placed->items <= INT_MAX;
    gpi__append(text, "#define GEMMEPI_T %s\n#define GEMMEPI_INDEX %s\n#define GEMMEPI_EXACT %d\n",
                gpi__formula_type(f->accumulator, 0), is_small ? "int" : "long long", !f->is_short);
    gpi__append(text, "#define GEMMEPI_UNITS %d\n#define GEMMEPI_ALIGNED %d\n", run,
                gpi__formula_is_aligned(placed, source, run));
    gpi__append(text, "#define GEMMEPI_ABREAST %u\n", gpi__threads_abreast(placed, source));
    gpi__append(text, "#define GEMMEPI_RESULT_TYPE %s\n",
                gpi__formula_type(finding ? source->found : f->operands[GPI__RESULT].dtype, f->accumulator));
    if (finding)
        gpi__append(
            text,
            "#define GEMMEPI_FOUND %d\n#define GEMMEPI_FOUND_MODE %d\n#define GEMMEPI_POWER_OF_TWO %d\n"
            "#include \"found_scale.cuh\"\n",
            finding, source->found_mode, source->found_power);
    if (source->invariant)
        gpi__append(text, GPI__AS_WRITTEN);
    gpi__append(text, "#define GEMMEPI_VALUE_TYPE %s\n#define GEMMEPI_VALUE_SCALE %d\n",
                gpi__formula_type(source->matrices[0].dtype, f->accumulator), source->matrices[0].scale);
    gpi__append(text, "#define GEMMEPI_C_TYPE %s\n#define GEMMEPI_ADDS_C %d\n",
                gpi__formula_type(source->matrices[1].dtype, f->accumulator), source->matrices[1].dtype != 0);
    gpi__append(
        text, "#define GEMMEPI_STRIDED %d\n#define GEMMEPI_ITEM_AXES %d\n#define GEMMEPI_STEPPED 0x%llxull\n",
        gpi__is_strided(placed),
        placed->strides && placed->strides->axes > 1 ? (int)placed->strides->axes : 1,
        (unsigned long long)gpi__stepped_places(placed));
    gpi__append_masks(text, placed, source);
    gpi__append(text,
                "#include \"formula.cuh\"\n#include \"activation.cuh\"\n"
                "__device__ inline GEMMEPI_T formula_rounded(GEMMEPI_T x, GEMMEPI_T scale) {\n"
                "    return to_acc<GEMMEPI_T>(from_acc<%s>(x * scale)) / scale;\n}\n",
                gpi__formula_type(f->d, f->accumulator));
    if (f->uses_uniform)
        gpi__append(text,
                    "#define FORMULA_RANDOM(name, member, seed, i, column, row, item) in.name[member]\n");
    gpi__emit_formula(text, f);
}

/* All that stands before formula_reduce.cu: of formulas with the same reductions it is the same. left: an epilogue left the states */
static void gpi__formula_reduce_prologue(gpi__text *text, const gpi__placed_formula *placed, int left,
                                         unsigned threads) {
    const gpi__formula *f = placed->formula;
    uint64_t scaled = 0, amax = 0;
    int i;
    gpi__append(text, "#define GEMMEPI_T %s\n#define GEMMEPI_THREADS %u\n%s#define FORMULA_OUTPUTS(X)",
                gpi__formula_type(f->accumulator, 0), threads, left ? "#define GEMMEPI_LEFT 1\n" : "");
    for (i = 0; i < f->operand_count; i++) {
        const gpi__formula_operand *o = &f->operands[i];
        if (!gpi__is_reduced(o))
            continue;
        gpi__append(text, " X(%d, a%d, %s, %d, %s, %s, %d)", i, i, gpi__kind_names[o->kind], o->members,
                    gpi__formula_type(o->dtype, 0), gpi__reductions[o->reduction].name, o->accumulate);
        scaled |= (uint64_t)(placed->operands[i].scale != 0) << i;
        amax |= (uint64_t)(placed->operands[i].amax != 0) << i;
    }
    gpi__append(text, "\n#define GEMMEPI_SCALED 0x%llxull\n#define GEMMEPI_AMAX 0x%llxull\n",
                (unsigned long long)scaled, (unsigned long long)amax);
}

#endif
