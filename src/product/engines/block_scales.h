/* Products of scaled formats, MXFP8, MXFP4 and NVFP4, as tensor cores of sm_120a multiply them: A and B in fp8 or E2M1, stored along k, with
   texts that are their elements times scales of blocks of k and, if there is one, a scale of the whole. What is stored is multiplied
   then (kernels/sm80/block_scales.cuh), and nothing is made of it. */
#ifndef GEMMEPI_PRODUCT_ENGINES_BLOCK_SCALES_H
#define GEMMEPI_PRODUCT_ENGINES_BLOCK_SCALES_H

#include "sm90.h"

/* Of a text, which operand is what; -1: none is. */
typedef struct gpi__block_scales {
    int blocks; /* the scales of blocks */
    int whole;  /* that of the whole */
    int is_other;
} gpi__block_scales;

/* Adds what the node multiplies. */
static void gpi__scan_factors(const gpi__placed_formula *placed, int number, int *values,
                              gpi__block_scales *scales) {
    const gpi__node *node = &placed->formula->nodes[number];
    const gpi__formula_operand *o = &placed->formula->operands[node->op == GPI__OP_OPERAND ? node->place : 0];
    int *to = o->kind == GEMMEPI_BLOCKED ? &scales->blocks : &scales->whole;
    if (node->op == GPI__OP_MUL) {
        gpi__scan_factors(placed, node->args[0], values, scales);
        gpi__scan_factors(placed, node->args[1], values, scales);
    } else if (node->op == GPI__OP_VALUE) {
        ++*values;
    } else if (node->op == GPI__OP_OPERAND && *to < 0 && o->used == GPI__BY_PLACE &&
               !placed->operands[node->place].scale &&
               (o->kind == GEMMEPI_BLOCKED || (o->kind == GEMMEPI_SCALAR && o->dtype == GEMMEPI_F32))) {
        *to = node->place;
    } else {
        scales->is_other = 1;
    }
}

static gpi__block_scales gpi__block_scales_of(const gpi__problem *problem, int i) {
    const gpi__placed_formula *placed = &problem->made[i].formula->placed;
    gpi__block_scales scales = {-1, -1, 0};
    int values = 0;
    gpi__scan_factors(placed, placed->formula->operands[GPI__RESULT].node, &values, &scales);
    scales.is_other = scales.is_other || values != 1 || scales.blocks < 0;
    return scales;
}

/* The dtype of the scales of blocks. */
static int gpi__block_scales_dtype(const gpi__problem *problem, int i) {
    return problem->made[i].formula->placed.formula->operands[gpi__block_scales_of(problem, i).blocks].dtype;
}

/* Of k, that have a scale. */
static int gpi__block_of_scales(const gpi__problem *problem, int i) {
    return gpi__block_scales_dtype(problem, i) == GEMMEPI_E4M3 ? 16 : 32;
}

/* Bytes of scales beside 128 bytes of a line; 0: the product has none. */
static int gpi__block_scales_bytes(const gpi__problem *problem) {
    return gpi__is_scaled_product(problem)
               ? 128 * 8 / problem->views[GPI__A].bits / gpi__block_of_scales(problem, GPI__A)
               : 0;
}

static const gpi__view *gpi__block_scales_view(const gpi__problem *problem, int i) {
    return &problem->made[i].formula->views[gpi__block_scales_of(problem, i).blocks];
}

/* Bytes at whose multiples the lines of scales begin, of A and B, up to those of a stage. */
static int gpi__block_scales_unit(const gpi__problem *problem) {
    int64_t all = problem->alignment;
    int unit = gpi__block_scales_bytes(problem), i;
    for (i = GPI__A; i <= GPI__B; i++) {
        const gpi__view *view = gpi__block_scales_view(problem, i);
        all |= (view->lines > 1 ? view->ld : 0) | (problem->batch > 1 ? view->batch_stride : 0);
    }
    while (all % unit)
        unit /= 2;
    return unit;
}

/* >>what may go there */

static const char *gpi__scaled_operand_rule(const gpi__problem *problem, int i) {
    const gpi__placed_formula *placed = &problem->made[i].formula->placed;
    gpi__block_scales scales = gpi__block_scales_of(problem, i);
    const gpi__placed_operand *place;
    int is_e4m3;
    if (scales.is_other || problem->made[i].view.dtype != GEMMEPI_BF16)
        return "a's or b's formula is not its elements times scales of blocks and one in F32, for BF16";
    if (scales.whole >= 0 && problem->views[i].scale)
        return "a or b has a scale of the whole beside that of its formula";
    place = &placed->operands[scales.blocks];
    is_e4m3 = placed->formula->operands[scales.blocks].dtype == GEMMEPI_E4M3;
    if (place->row_period > 1 || place->column_period != gpi__block_of_scales(problem, i) ||
        (is_e4m3 ? problem->views[i].dtype != GEMMEPI_E2M1
                 : placed->formula->operands[scales.blocks].dtype != GEMMEPI_E8M0))
        return "tensor cores have scales in E8M0 of 32 of k, and in E4M3 of 16 of E2M1";
    return NULL;
}

/* Why tensor cores do not multiply what is stored by its scales, or NULL. problem: one of gpi__is_scaled_product */
static const char *gpi__scaled_rule(const gemmepi_context *context, const gpi__problem *problem) {
    const char *rule;
    if (!gpi__chip_has(context->arch, GPI__MMA_SCALED))
        return "tensor cores multiply scaled formats on compute capability 12.0 and 12.1";
    if (problem->views[GPI__A].transposed || !problem->views[GPI__B].transposed)
        return "mma.sync reads scaled formats only where the elements along k are contiguous";
    rule = gpi__scaled_operand_rule(problem, GPI__A);
    if (!rule)
        rule = gpi__scaled_operand_rule(problem, GPI__B);
    if (rule)
        return rule;
    if ((problem->views[GPI__A].bits != problem->views[GPI__B].bits) ||
        gpi__block_scales_dtype(problem, GPI__A) != gpi__block_scales_dtype(problem, GPI__B))
        return "mma.sync multiplies fp8 with fp8 and E2M1 with E2M1, with scales in the same type";
    if (gpi__block_scales_unit(problem) < 4)
        return "it copies scales at multiples of 4 bytes: pointers, lines and items";
    if (gpi__is_invariant(problem))
        return "with BATCH_INVARIANT its kernel is not for scaled formats";
    return gpi__extents_rule(problem);
}

/* >>its kernel */

/* The problem as the kernel has it: the scale of the whole is one of the tensor's. */
static gpi__problem gpi__with_whole_scales(const gpi__problem *problem) {
    gpi__problem own = *problem;
    int i;
    for (i = GPI__A; i <= GPI__B && gpi__is_scaled_product(problem); i++) {
        int whole = gpi__block_scales_of(problem, i).whole;
        if (whole < 0)
            continue;
        own.views[i].scale = GEMMEPI_SCALE_TENSOR;
        own.views[GPI__SCALE_OF(i)] = problem->made[i].formula->views[whole];
    }
    gpi__list_operands(&own);
    return own;
}

static void gpi__append_block_scales(gpi__text *text, const gpi__problem *problem) {
    if (gpi__is_scaled_product(problem))
        gpi__append(text, GPI__BLOCK_SCALES " %d\n" GPI__BLOCK_SCALES "_UNIT %d\n",
                    gpi__block_scales_bytes(problem), gpi__block_scales_unit(problem));
}

/* A matrix of two elements a byte, counted in bytes. */
static gpi__kernel_matrix gpi__matrix_in_bytes(const gpi__view *view) {
    gpi__kernel_matrix matrix = gpi__kernel_matrix_of(view);
    if (view->bits == 4)
        matrix.ld /= 2, matrix.stride /= 2;
    return matrix;
}

static void gpi__lay_out_block_scales(const gpi__problem *problem, gpi__block_scales scales[2],
                                      gpi__sm80_params *params) {
    int i;
    if (!gpi__is_scaled_product(problem))
        return;
    for (i = GPI__A; i <= GPI__B; i++)
        scales[i] = gpi__block_scales_of(problem, i);
    params->scales_a = gpi__kernel_matrix_of(gpi__block_scales_view(problem, GPI__A));
    params->scales_b = gpi__kernel_matrix_of(gpi__block_scales_view(problem, GPI__B));
}

/* Points to the scales of a run: own are its arguments, where those of the whole go, too. */
static void gpi__point_block_scales(const gpi__block_scales scales[2], gpi__arguments *own,
                                    gpi__sm80_params *params) {
    int i;
    for (i = GPI__A; i <= GPI__B; i++) {
        (i == GPI__A ? &params->scales_a : &params->scales_b)->data = own->operands[scales[i].blocks];
        if (scales[i].whole >= 0)
            own->pointers[GPI__SCALE_OF(i)] = own->operands[scales[i].whole];
    }
}

static void gpi__explain_block_scales(const gpi__problem *problem, gpi__text *text) {
    if (gpi__is_scaled_product(problem))
        gpi__append(text,
                    "  tensor cores multiply a and b as they are stored, each %d of k by scales in %s: what "
                    "the formulas say is not rounded\n",
                    gpi__block_of_scales(problem, GPI__A),
                    gpi__type(gpi__block_scales_dtype(problem, GPI__A)));
}

#endif
