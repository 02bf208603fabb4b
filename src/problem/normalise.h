/* A desc becomes a problem: defaults, every rule, column-major folded. */
#ifndef GEMMEPI_PROBLEM_NORMALISE_H
#define GEMMEPI_PROBLEM_NORMALISE_H

#include "made.h"
#include "rules.h"

struct gpi__graph; /* there is none without formulas */

/* >>formulas */

/* What D cannot have where the formula does not assign it. */
static gemmepi_status gpi__check_without_d(const gpi__problem *problem, const gemmepi_matmul_desc *desc) {
    const char *what = desc->flags & GEMMEPI_AMAX_D         ? "flags has AMAX_D"
                       : desc->flags & GEMMEPI_FIND_SCALE_D ? "flags has FIND_SCALE_D"
                       : desc->d.scale.mode                 ? "d.scale.mode is given"
                       : desc->d.ld                         ? "d.ld is given"
                       : desc->d.batch_stride               ? "d.batch_stride is given"
                                                            : NULL;
    GPI__INVALID_IF(gpi__lacks_d(problem) && what, "desc.%s, but the formula does not assign %s", what,
                    desc->formula_result ? desc->formula_result : "d");
    return GEMMEPI_OK;
}

/* The formula, of its graph or for the types that the problem has, and the columns of D along the bias. */
static gemmepi_status gpi__convert_formula(gpi__problem *problem, const gemmepi_matmul_desc *desc,
                                           const gemmepi_allocator *allocator, const struct gpi__graph *graph,
                                           int64_t *result) {
    int by_rows = desc->order == GEMMEPI_ROW_MAJOR;
    gemmepi_dtype d = gpi__dtype_of_d(desc);
    gemmepi_status status;
    if (!desc->formula)
        return GEMMEPI_OK;
    GPI__UNSUPPORTED_IF(!GPI__HAS_FORMULAS, GPI__NO_FORMULAS);
    status = gpi__check_side_dtype(problem, GPI__D, d);
    if (!status)
        status = gpi__make_formula(allocator, desc, graph, problem->accumulator, d, &problem->formula);
    if (!status)
        status = gpi__check_formula_extents(problem->formula->placed.formula, desc->formula,
                                            by_rows ? desc->m : desc->n, by_rows ? desc->n : desc->m,
                                            problem->batch);
    if (!status)
        *result = gpi__d_columns(problem->formula, *result);
    return status;
}

/* Scales that are found of what the formula makes are not there while it is computed. */
static gemmepi_status gpi__check_rounded(const gpi__problem *problem, const char *text) {
    const gpi__formula *formula = problem->formula->placed.formula;
    char place[GPI__PLACE_TEXT];
    GPI__INVALID_IF(
        formula->rounds && problem->found_scale > GEMMEPI_SCALE_TENSOR,
        "%s: rounded is the value that d stores, but desc.flags has FIND_SCALE_D, which finds d's scales after "
        "the formula: compute it from d afterwards, or use one scale (desc.d.scale.mode TENSOR)",
        gpi__name_place(text, formula->places.rounded, place));
    return GEMMEPI_OK;
}

/* Its operands, once the row-major problem is there. */
static gemmepi_status gpi__finish_formula(gpi__problem *problem, const gemmepi_matmul_desc *desc) {
    int64_t extents[5];
    gemmepi_status status;
    if (!GPI__FORMULA(problem))
        return GEMMEPI_OK;
    extents[0] = problem->grouping.scattered ? problem->grouping.scattered : problem->m;
    extents[1] = problem->n, extents[2] = problem->k, extents[3] = problem->batch;
    extents[4] = gpi__items_of_d(problem);
    status = gpi__check_without_d(problem, desc);
    if (!status)
        status = gpi__check_rounded(problem, desc->formula);
    if (!status)
        status = gpi__place_formula(problem->formula, desc, extents, &problem->views[GPI__D]);
    problem->formula->placed.operands[GPI__RESULT].scale_stride = problem->views[GPI__SCALE_D].batch_stride;
    problem->formula->placed.operands[GPI__RESULT].amax = problem->views[GPI__AMAX_D].dtype != 0;
    if (problem->found_scale >
        GEMMEPI_SCALE_TENSOR) /* D is stored in F32, and its scales are found of that */
        problem->formula->owned->operands[GPI__RESULT].dtype = GEMMEPI_F32;
    return status;
}

/* >>desc to problem */

/* Column-major is the same memory read as the transposed row-major product, D^T = op(B)^T op(A)^T: the operands
   exchange, every view stays as it lies. */
static void gpi__fold_column_major(gpi__problem *problem) {
    gpi__view *views = problem->views, a = views[GPI__A], scale_a = views[GPI__SCALE_A];
    int64_t m = problem->m;
    views[GPI__A] = views[GPI__B];
    views[GPI__B] = a;
    views[GPI__SCALE_A] = views[GPI__SCALE_B];
    views[GPI__SCALE_B] = scale_a;
    problem->m = problem->n;
    problem->n = m;
    problem->exchanged = 1;
    problem->epilogue = gpi__callers_epilogue(problem->epilogue, 1); /* the way back is the same */
}

/* C as desc has it, with what it leaves to D. Its type does not count: naming the default changes nothing. */
static gemmepi_status gpi__convert_c(gpi__problem *problem, const gemmepi_matmul_desc *desc, int is_as_d) {
    gemmepi_matrix c = desc->c;
    gemmepi_dtype d = (gemmepi_dtype)problem->views[GPI__D].dtype;
    const int64_t extents[2] = {desc->m, desc->n};
    int is_open = !c.ld && !c.batch_stride;
    if (is_open && is_as_d) {
        c.ld = problem->views[GPI__D].ld;
        c.batch_stride = problem->views[GPI__D].batch_stride;
    } else if (is_open) {
        c.batch_stride = desc->m <= 0 || desc->n <= GPI__MAX_ELEMENTS / desc->m ? desc->m * desc->n : 0;
    }
    return gpi__convert_matrix(problem, GPI__C, &c,
                               desc->flags & GEMMEPI_ACCUMULATE ? d : gpi__default_dtype(GPI__C, d), extents,
                               desc->order);
}

/* All but what says nothing about others. along: the extents along the bias of the product; result: and of D. */
static gemmepi_status gpi__convert_tensors(gpi__problem *problem, const gemmepi_matmul_desc *desc,
                                           const gemmepi_allocator *allocator, const struct gpi__graph *graph,
                                           int64_t along, int64_t result) {
    gemmepi_matrix d = desc->d;
    gemmepi_status status = gpi__convert_operands(problem, desc);
    if (!status)
        status = gpi__check_range_of_parameter(problem->parameter, problem->accumulator);
    if (!status)
        status = gpi__convert_formula(problem, desc, allocator, graph, &result);
    if (!status && gpi__lacks_d(problem) && !d.batch_stride) /* as far as D says how others lie: dense */
        d.batch_stride = desc->m <= 0 || desc->n <= GPI__MAX_ELEMENTS / desc->m ? desc->m * desc->n : 0;
    if (!status)
        status = gpi__convert_beside(problem, GPI__D, desc, &d, gpi__dtype_of_d(desc), result);
    if (!status && desc->flags & GEMMEPI_FIND_SCALE_D && !gpi__lacks_d(problem)) {
        d.scale.mode = gpi__found_mode(desc, &problem->views[GPI__D], d.scale.mode);
        status = gpi__convert_found_scale(problem, &d.scale, desc->amax_history);
    }
    if (!status)
        status = gpi__convert_c(problem, desc, result == along);
    if (!status)
        status = gpi__convert_epilogue(problem, desc, along);
    if (!status)
        status = gpi__check_outputs(problem);
    if (status)
        return status;
    if (desc->order == GEMMEPI_COLUMN_MAJOR)
        gpi__fold_column_major(problem);
    return gpi__finish_formula(problem, desc);
}

/* The same, of operands that formulas make. */
static gemmepi_status gpi__convert_made(gpi__problem *problem, const gemmepi_matmul_desc *desc,
                                        const gemmepi_allocator *allocator, const struct gpi__graph *graph,
                                        int64_t along, int64_t result) {
    gpi__desc_of_made own;
    gemmepi_status status;
    GPI__UNSUPPORTED_IF(!GPI__HAS_FORMULAS, GPI__NO_FORMULAS);
    GPI__UNSUPPORTED_IF(problem->grouping.is_of_k,
                        "desc.%s.formula is given; of grouped products those with groups of rows have one",
                        desc->a.formula ? "a" : "b");
    status = gpi__make_operands(allocator, desc, problem, &own);
    if (!status)
        status = gpi__convert_tensors(problem, &own.desc, allocator, graph, along, result);
    return status ? status : gpi__put_stored(desc, problem, &own);
}

/* desc -> problem, or the sentence that says what is wrong with it. alignment is that of all matrices and vectors. A formula is made in
   memory of the allocator, to be given to gpi__free_formulas; graph: what desc.formula has become already, or NULL. grouping: what the batch is,
   or NULL. */
static gemmepi_status gpi__normalise_in(const gemmepi_allocator *allocator, const gemmepi_matmul_desc *desc,
                                        const struct gpi__graph *graph, const gpi__grouping *grouping,
                                        size_t alignment, gpi__problem *problem) {
    gemmepi_status status;
    int64_t along, result;
    memset(problem, 0, sizeof *problem);
    GPI__INVALID_IF(!desc, "desc is NULL");
    status = gpi__check_scalars_of_desc(desc);
    if (status)
        return status;
    if (grouping)
        problem->grouping = *grouping;
    problem->m = desc->m;
    problem->n = desc->n;
    problem->k = desc->k;
    problem->batch = desc->batch ? desc->batch : 1;
    problem->epilogue = desc->epilogue;
    problem->parameter =
        desc->has_parameter ? desc->activation_parameter : gpi__default_parameter(desc->epilogue);
    problem->flags = desc->flags;
    problem->alignment = (int32_t)(desc->alignment ? desc->alignment : alignment);
    along = desc->order == GEMMEPI_ROW_MAJOR ? desc->n : desc->m;
    result = gpi__result_columns(desc->epilogue, along);
    GPI__INVALID_IF(result < 0, "desc.%s is %lld; with GATED it counts both halves and must be even",
                    desc->order == GEMMEPI_ROW_MAJOR ? "n" : "m", (long long)along);
    status = desc->a.formula || desc->b.formula
                 ? gpi__convert_made(problem, desc, allocator, graph, along, result)
                 : gpi__convert_tensors(problem, desc, allocator, graph, along, result);
    if (status)
        gpi__free_formulas(problem, allocator);
    else
        gpi__list_operands(problem);
    return status;
}

#ifndef GEMMEPI_NO_LINEAR
/* The same of a desc that has no formula. */
static gemmepi_status gpi__normalise(const gemmepi_matmul_desc *desc, size_t alignment,
                                     gpi__problem *problem) {
    return gpi__normalise_in(NULL, desc, NULL, NULL, alignment, problem);
}
#endif

static void gpi__fill_needs(const gpi__problem *problem, gemmepi_epilogue_needs *needs) {
    const gpi__view *views = problem->views;
    memset(needs, 0, sizeof *needs);
    needs->reads_bias = views[GPI__BIAS].dtype != 0;
    needs->reads_aux = gpi__has(problem, GEMMEPI_BACKWARD);
    needs->reads_residual = views[GPI__RESIDUAL].dtype != 0;
    needs->writes_aux = gpi__has(problem, GEMMEPI_AUX);
    needs->writes_bias_grad = views[GPI__BIAS_GRAD].dtype != 0;
    needs->accumulates_bias_grad = gpi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD);
    needs->aux_is_mask = views[GPI__AUX].bits == 1;
    needs->bias_dtype = (gemmepi_dtype)views[GPI__BIAS].dtype;
    needs->aux_dtype = needs->aux_is_mask ? GEMMEPI_DTYPE_DEFAULT : (gemmepi_dtype)views[GPI__AUX].dtype;
    needs->residual_dtype = (gemmepi_dtype)views[GPI__RESIDUAL].dtype;
    needs->bias_grad_dtype = (gemmepi_dtype)views[GPI__BIAS_GRAD].dtype;
    needs->bias_length = views[GPI__BIAS].length;
    needs->bias_grad_length = views[GPI__BIAS_GRAD].length;
    needs->aux_ld = views[GPI__AUX].ld;
    needs->bias_bytes = (size_t)views[GPI__BIAS].bytes;
    needs->aux_bytes = (size_t)views[GPI__AUX].bytes;
    needs->residual_bytes = (size_t)views[GPI__RESIDUAL].bytes;
    needs->bias_grad_bytes = (size_t)views[GPI__BIAS_GRAD].bytes;
    needs->scale_a_bytes = (size_t)views[problem->exchanged ? GPI__SCALE_B : GPI__SCALE_A].bytes;
    needs->scale_b_bytes = (size_t)views[problem->exchanged ? GPI__SCALE_A : GPI__SCALE_B].bytes;
    needs->found_scale_d_bytes = (size_t)views[GPI__FOUND_SCALE_D].bytes;
}

GEMMEPI_API gemmepi_status gemmepi_epilogue_info(const gemmepi_matmul_desc *desc,
                                                 gemmepi_epilogue_needs *needs) {
    gemmepi_allocator allocator;
    gpi__problem problem;
    gemmepi_status status;
    GPI__INVALID_IF(!needs, "needs is NULL");
    memset(needs, 0, sizeof *needs);
    allocator = gpi__default_allocator();
    status = gpi__normalise_in(&allocator, desc, NULL, NULL, GPI__DEFAULT_ALIGNMENT, &problem);
    if (!status)
        gpi__fill_needs(&problem, needs);
    if (!status)
        gpi__free_formulas(&problem, &allocator);
    return status;
}

#endif
