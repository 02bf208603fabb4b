/* Grouped products: desc to a problem whose batch is the groups, and the pointers of a run.

   Of what a group has of its own (B and bias of rows, D and what lies as it of k) items have a stride; all else is one matrix, whose stride is 0. */
#ifndef GEMMEPI_PROBLEM_GROUPED_H
#define GEMMEPI_PROBLEM_GROUPED_H

#include "../base/fault.h"
#include "convert_arguments.h"
#include "normalise.h"

/* >>sentences in the caller's words */

/* What a grouped desc or its args have themselves: all else is in product. */
static int gpi__is_own_of_groups(const char *field) {
    static const char *const own[] = {"product",  "groups",  "grouping", "gather_a", "gather_b", "scatter_d",
                                      "weighted", "weights", "ends",     "index_a",  "index_b",  "index_d"};
    size_t i, length;
    for (i = 0; i < GPI__COUNT(own); i++) {
        length = strlen(own[i]);
        if (strncmp(field, own[i], length) == 0 && !gpi__is_word(field[length]))
            return 1;
    }
    return 0;
}

/* The checks of a product say desc.n for what a grouped desc has as desc.product.n. */
static gemmepi_status gpi__in_groups_words(gemmepi_status status) {
    char renamed[GPI__ERROR_TEXT_SIZE];
    gpi__text text = gpi__text_in(renamed, sizeof renamed);
    const char *at = gpi__error_text;
    if (!status)
        return status;
    while (*at) {
        int is_field = strncmp(at, "desc.", 5) == 0 || strncmp(at, "args.", 5) == 0;
        int is_products = is_field && !gpi__is_own_of_groups(at + 5);
        gpi__append(&text, "%.*s%s", is_field ? 5 : 1, at, is_products ? "product." : "");
        at += is_field ? 5 : 1;
    }
    return gpi__fail(status, "%s", renamed);
}

/* >>desc to problem */

static gemmepi_status gpi__check_grouping(const gemmepi_grouped_desc *desc) {
    const gemmepi_matmul_desc *product = &desc->product;
    int rows_are_vectors = product->d.scale.mode == GEMMEPI_SCALE_OUTER &&
                           gpi__result_columns(product->epilogue, product->n) <= 128;
    GPI__INVALID_IF(desc->groups < 1 || desc->groups > GPI__MOST_GROUPS,
                    "desc.groups is %d; accepted are 1 to %d%s", desc->groups, GPI__MOST_GROUPS,
                    desc->groups ? GPI__UNINITIALISED : "");
    GPI__INVALID_IF(
        (unsigned)desc->grouping > GEMMEPI_GROUPS_OF_K,
        "desc.grouping is %d; accepted are GEMMEPI_GROUPS_OF_ROWS (0) and GEMMEPI_GROUPS_OF_K (1)%s",
        (int)desc->grouping, GPI__UNINITIALISED);
    GPI__INVALID_IF(product->batch != 0 && product->batch != 1,
                    "desc.product.batch is %lld; a grouped product's is 0 or 1: groups says how many",
                    (long long)product->batch);
    GPI__UNSUPPORTED_IF(product->order != GEMMEPI_ROW_MAJOR,
                        "desc.product.order is %s (%d); grouped products are row-major (0): a matrix stored "
                        "column by column is a row-major one that is transposed",
                        product->order == GEMMEPI_COLUMN_MAJOR ? "COLUMN_MAJOR" : "no gemmepi_order",
                        (int)product->order);
    GPI__UNSUPPORTED_IF(
        product->formula && (desc->grouping == GEMMEPI_GROUPS_OF_K || desc->weighted),
        "desc.product.formula is given with %s; a formula goes with GROUPS_OF_ROWS, and has weights of rows "
        "as an operand PER_ROW",
        desc->grouping == GEMMEPI_GROUPS_OF_K ? "GROUPS_OF_K" : "weighted");
    GPI__UNSUPPORTED_IF(product->epilogue & GEMMEPI_BGRAD ||
                            (desc->grouping == GEMMEPI_GROUPS_OF_ROWS &&
                             product->epilogue & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B)),
                        "desc.product.epilogue has a BGRAD; of grouped products those of GROUPS_OF_K have "
                        "BGRAD_A and BGRAD_B, for each group its own");
    GPI__UNSUPPORTED_IF((product->epilogue & GEMMEPI_BGRAD_A && !product->a.transposed) ||
                            (product->epilogue & GEMMEPI_BGRAD_B && product->b.transposed),
                        "desc.product.epilogue has BGRAD_%s with a %s that is stored along k; of groups "
                        "those are summed that are stored [k, %s]",
                        product->epilogue & GEMMEPI_BGRAD_A ? "A" : "B",
                        product->epilogue & GEMMEPI_BGRAD_A ? "a" : "b",
                        product->epilogue & GEMMEPI_BGRAD_A ? "m" : "n");
    GPI__UNSUPPORTED_IF(product->flags & GEMMEPI_BATCH_INVARIANT,
                        "desc.product.flags has BATCH_INVARIANT, which grouped products do not have");
    GPI__UNSUPPORTED_IF(product->flags & GEMMEPI_FIND_SCALE_D &&
                            (desc->grouping == GEMMEPI_GROUPS_OF_K ||
                             (product->d.scale.mode != GEMMEPI_SCALE_VECTOR_128 && !rows_are_vectors)),
                        "desc.product.flags has FIND_SCALE_D with desc.product.d.scale.mode %s (%d) and "
                        "GROUPS_OF_%s; of grouped products scales are found with VECTOR_128 (3) or, of at "
                        "most 128 columns, OUTER (2), and GROUPS_OF_ROWS",
                        gpi__scale_mode_name(product->d.scale.mode), (int)product->d.scale.mode,
                        desc->grouping == GEMMEPI_GROUPS_OF_K ? "K" : "ROWS");
    GPI__UNSUPPORTED_IF(product->flags & GEMMEPI_FIND_SCALE_D && product->formula,
                        "desc.product.flags has FIND_SCALE_D, and desc.product.formula is given; scales of "
                        "grouped products are found only after an epilogue");
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_positions(const char *name, int64_t size) {
    GPI__INVALID_IF(size < 0 || size >= (int64_t)1 << 30,
                    "desc.%s is %lld; of a grouped product accepted are 0 to 2^30 - 1%s", name,
                    (long long)size, GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

/* What gathers and scatters ask of the rest. */
static gemmepi_status gpi__check_indices(const gemmepi_grouped_desc *desc) {
    int of_k = desc->grouping == GEMMEPI_GROUPS_OF_K;
    gemmepi_status status = gpi__check_positions("gather_a", desc->gather_a);
    if (!status)
        status = gpi__check_positions("gather_b", desc->gather_b);
    if (!status)
        status = gpi__check_positions("scatter_d", desc->scatter_d);
    if (!status)
        status = of_k ? gpi__check_positions("product.k", desc->product.k)
                      : gpi__check_positions("product.m", desc->product.m);
    if (status)
        return status;
    GPI__INVALID_IF(desc->weighted != 0 && desc->weighted != 1, "desc.weighted is %d; accepted are 0 and 1%s",
                    desc->weighted, GPI__UNINITIALISED);
    GPI__INVALID_IF(of_k && (desc->scatter_d || desc->weighted),
                    "desc.%s is not 0 with GROUPS_OF_K; rows of D are scattered and weighted with "
                    "GROUPS_OF_ROWS",
                    desc->scatter_d ? "scatter_d" : "weighted");
    GPI__INVALID_IF(!of_k && desc->gather_b,
                    "desc.gather_b is %lld with GROUPS_OF_ROWS; b is gathered with GROUPS_OF_K",
                    (long long)desc->gather_b);
    GPI__INVALID_IF(desc->gather_a && desc->product.a.transposed != of_k,
                    "desc.product.a.transposed is %d with gather_a, which gathers rows as a is stored; "
                    "accepted is %d with GROUPS_OF_%s",
                    desc->product.a.transposed, of_k, of_k ? "K" : "ROWS");
    GPI__INVALID_IF(desc->gather_b && desc->product.b.transposed,
                    "desc.product.b.transposed is %d with gather_b, which gathers rows as b is stored; "
                    "accepted is 0",
                    desc->product.b.transposed);
    return GEMMEPI_OK;
}

/* Scales that change along k would be those of several groups. */
static gemmepi_status gpi__check_scales_of_groups(const gemmepi_grouped_desc *desc) {
    const gemmepi_scale *scales[2];
    int i;
    scales[0] = &desc->product.a.scale, scales[1] = &desc->product.b.scale;
    for (i = 0; i < 2 && desc->grouping == GEMMEPI_GROUPS_OF_K; i++)
        GPI__UNSUPPORTED_IF(scales[i]->mode == GEMMEPI_SCALE_VECTOR_128 ||
                                scales[i]->mode == GEMMEPI_SCALE_BLOCK_128,
                            "desc.product.%s.scale.mode is %s (%d) with GROUPS_OF_K; groups do not end where "
                            "128 steps of k do: accepted are NONE, TENSOR and OUTER",
                            i ? "b" : "a", gpi__scale_mode_name(scales[i]->mode), (int)scales[i]->mode);
    return GEMMEPI_OK;
}

/* The matrices that a group has of its own, bit by operand. */
static uint32_t gpi__own_of_group(int of_k) {
    return of_k ? 1u << GPI__C | 1u << GPI__D | 1u << GPI__AUX | 1u << GPI__RESIDUAL : 1u << GPI__B;
}

/* The stride of items that lie one after another, in elements; 0 where there are too many, which the view's check says. */
static int64_t gpi__dense_stride(int64_t lines, int64_t length, int64_t ld, int is_mask) {
    int64_t stride;
    if (ld <= 0)
        ld = is_mask ? (length + 127) / 128 * 128 : length;
    stride = gpi__offset(lines, ld, 0);
    return stride < 0 ? 0 : stride;
}

typedef struct gpi__desc_matrix {
    int operand;
    gemmepi_matrix *matrix;
    int64_t lines, length;
} gpi__desc_matrix;

/* Strides as the problem needs them: of what groups have of their own the caller's, or one after another. */
static gemmepi_status gpi__set_strides(const gemmepi_grouped_desc *desc, gemmepi_matmul_desc *product) {
    int of_k = desc->grouping == GEMMEPI_GROUPS_OF_K;
    uint32_t own = gpi__own_of_group(of_k);
    int64_t n = product->n, columns = gpi__result_columns(product->epilogue, n);
    const gpi__desc_matrix matrices[] = {
        {GPI__A, &product->a, 0, 0},
        {GPI__B, &product->b, product->b.transposed ? n : product->k, product->b.transposed ? product->k : n},
        {GPI__C, &product->c, product->m, n},
        {GPI__D, &product->d, product->m, columns < 0 ? 0 : columns},
        {GPI__AUX, &product->aux, product->m, gpi__aux_columns(product->epilogue, n)},
        {GPI__RESIDUAL, &product->residual, product->m, columns < 0 ? 0 : columns}};
    size_t i;
    for (i = 0; i < GPI__COUNT(matrices); i++) {
        const gpi__desc_matrix *row = &matrices[i];
        const char *name = gpi__operand_names[row->operand];
        int is_own = own >> row->operand & 1;
        GPI__INVALID_IF(!is_own && (row->matrix->batch_stride || row->matrix->scale.batch_stride),
                        "desc.product.%s has a batch_stride, but it is one matrix for all groups with "
                        "GROUPS_OF_%s: leave it 0",
                        name, of_k ? "K" : "ROWS");
        if (product->formula && (row->operand == GPI__AUX || row->operand == GPI__RESIDUAL))
            continue; /* it has operands instead */
        if (row->operand == GPI__C && !row->matrix->ld)
            continue; /* as D */
        if (row->matrix->formula)
            continue; /* what it is made of says how much is stored */
        if (!row->matrix->batch_stride && is_own)
            row->matrix->batch_stride =
                gpi__dense_stride(row->lines, row->length, row->matrix->ld,
                                  row->operand == GPI__AUX && gpi__aux_is_mask(product->epilogue));
    }
    if (product->bias.batch_stride == 0 && !product->formula)
        product->bias.batch_stride = n < 0 ? 0 : n;
    if (product->bias_grad.batch_stride == 0 && product->epilogue & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        product->bias_grad.batch_stride = product->epilogue & GEMMEPI_BGRAD_A ? product->m : product->n;
    return GEMMEPI_OK;
}

/* A c without ld has the layout of a d that is as wide. */
static int64_t gpi__given_ld(const gemmepi_matmul_desc *product, const gpi__view *views, int operand) {
    int c_is_as_d = !product->c.ld && views[GPI__C].length == views[GPI__D].length;
    switch (operand) {
    case GPI__A:
        return product->a.ld;
    case GPI__B:
        return product->b.ld;
    case GPI__AUX:
        return product->aux.ld;
    case GPI__RESIDUAL:
        return product->residual.ld;
    case GPI__C:
        return c_is_as_d ? product->d.ld : product->c.ld;
    default:
        return product->d.ld;
    }
}

/* Of one matrix for all groups, which has so many lines, or if that is 0 those that it has. The ld is the caller's again: normalised, that
   of a single line is its length. */
static gemmepi_status gpi__make_one(const gemmepi_grouped_desc *desc, gpi__problem *problem, int operand,
                                    int64_t lines) {
    gpi__view *view = &problem->views[operand];
    if (!view->dtype)
        return GEMMEPI_OK;
    if (lines > 0) {
        view->lines = lines;
        view->ld = gpi__given_ld(&desc->product, problem->views, operand);
    }
    view->batch_stride = 0;
    return gpi__check_view(view, gpi__operand_names[operand], 1);
}

/* Of the scales of b, or with groups of k of c, d, aux and residual, that the caller left to lie one after another: blocks' lines are whole
   also where there is one. */
static void gpi__spread_scales(gpi__problem *problem) {
    uint32_t own = gpi__own_of_group(problem->grouping.is_of_k);
    int operand;
    for (operand = GPI__A; operand <= GPI__RESIDUAL; operand++) {
        gpi__view *scale = &problem->views[GPI__SCALE_OF(operand)];
        int is_block = problem->views[operand].scale == GEMMEPI_SCALE_BLOCK_128;
        if (!scale->dtype || !(own >> operand & 1) || scale->batch_stride || problem->batch <= 1)
            continue;
        scale->batch_stride = scale->lines * (is_block ? (scale->length + 3) / 4 * 4 : scale->ld);
        scale->bytes += (problem->batch - 1) * scale->batch_stride * 4;
    }
}

static gemmepi_status gpi__make_weights(gpi__problem *problem, int64_t rows) {
    gpi__view *view = &problem->views[GPI__ROW_FACTOR];
    GPI__INVALID_IF(problem->accumulator == GEMMEPI_I32,
                    "desc.weighted is 1 with a result in I32; weights are F32");
    view->dtype = GEMMEPI_F32;
    view->bits = 32;
    view->alignment = 4;
    view->lines = 1;
    view->length = rows;
    view->ld = 0;
    view->batch_stride = 0;
    return gpi__check_view(view, "weights", 1);
}

/* The rows that D, and what lies as it does, has. */
static int64_t gpi__rows_of_d(const gpi__problem *problem) {
    return problem->views[GPI__D].lines;
}

/* How many positions there are at most. */
static int64_t gpi__positions(const gpi__problem *problem) {
    return problem->grouping.is_of_k ? problem->k : problem->m;
}

/* The scales that are found for D: a line of all its rows for each 128 of its columns. */
static gemmepi_status gpi__unite_found_scales(gpi__problem *problem) {
    gpi__view *found = &problem->views[GPI__FOUND_SCALE_D];
    if (!found->dtype)
        return GEMMEPI_OK;
    found->length = found->ld = gpi__rows_of_d(problem);
    found->batch_stride = 0;
    return gpi__check_view(found, "d.scale", 1);
}

/* What a text makes of a: of all rows that are stored, once. */
static gemmepi_status gpi__unite_made(gpi__problem *problem) {
    gpi__view *view = &problem->made[GPI__A].view, *scale = &problem->made[GPI__A].scale;
    gemmepi_status status;
    if (problem->grouping.rows_a) /* of one row the ld was forgotten */
        view->lines = problem->grouping.rows_a, view->ld = gpi__ld_of_made(view->length);
    if (problem->grouping.rows_a && scale->dtype)
        scale->length = scale->ld = problem->grouping.rows_a;
    status = gpi__check_view(view, "a", 1);
    return status || !scale->dtype ? status : gpi__check_view(scale, "a.scale", 1);
}

static gemmepi_status gpi__unite_views(const gemmepi_grouped_desc *desc, gpi__problem *problem) {
    static const int of_rows[] = {GPI__D, GPI__C, GPI__AUX, GPI__RESIDUAL};
    int of_k = problem->grouping.is_of_k;
    gemmepi_status status = gpi__make_one(desc, problem, GPI__A, desc->gather_a);
    size_t i;
    if (!status && problem->made[GPI__A].formula)
        status = gpi__unite_made(problem);
    if (!status && of_k)
        status = gpi__make_one(desc, problem, GPI__B, desc->gather_b);
    for (i = 0; i < GPI__COUNT(of_rows) && !of_k && !status; i++)
        status = gpi__make_one(desc, problem, of_rows[i], desc->scatter_d);
    if (!status)
        status = gpi__unite_found_scales(problem);
    if (!status && desc->weighted)
        status = gpi__make_weights(problem, gpi__rows_of_d(problem));
    return status;
}

/* Scales of a by rows, or of b with groups of k, count the rows that are stored: a gathered a's take its own. */
static void gpi__count_scales(const gemmepi_grouped_desc *desc, gemmepi_matmul_desc *product) {
    if (desc->gather_a && desc->grouping == GEMMEPI_GROUPS_OF_ROWS)
        product->m = desc->gather_a;
}

/* The scales of a gathered a, which has rows of its own. */
static gemmepi_status gpi__convert_gathered_scale(const gemmepi_grouped_desc *desc, gpi__problem *problem) {
    gemmepi_matmul_desc own = desc->product;
    gpi__view *scale = &problem->views[GPI__SCALE_A];
    gpi__count_scales(desc, &own);
    if (!scale->dtype || own.m == desc->product.m)
        return GEMMEPI_OK;
    memset(scale, 0, sizeof *scale);
    problem->views[GPI__A].scale = 0;
    return gpi__convert_scale(problem, GPI__A, &own.a.scale, own.m, own.k);
}

static gemmepi_status gpi__check_operand_of_groups(const gpi__formula_operand *o,
                                                   const gemmepi_operand *operand, int i) {
    int has_rows = gpi__has_rows(o->kind);
    GPI__UNSUPPORTED_IF(
        o->reduction,
        "desc.product.operands[%d] (%s) is a reduction; next to d a grouped product writes FULL "
        "outputs: reduce one of those afterwards",
        i, operand->name);
    GPI__UNSUPPORTED_IF(
        operand->amax,
        "desc.product.operands[%d] (%s) has an amax; of a grouped product's outputs only d has", i,
        operand->name);
    GPI__INVALID_IF(has_rows && (operand->batch_stride || operand->row_period),
                    "desc.product.operands[%d] (%s) has a %s, but it is one for the rows of all "
                    "groups: leave it 0",
                    i, operand->name, operand->batch_stride ? "batch_stride" : "row_period");
    GPI__UNSUPPORTED_IF(
        operand->block_rows > 1,
        "desc.product.operands[%d].block_rows (of %s) is %lld; the rows of groups have blocks of one "
        "row: set it to 1",
        i, operand->name, (long long)operand->block_rows);
    return GEMMEPI_OK;
}

/* What a formula may have of groups: of operands those of columns or of one number may be a group's own. */
static gemmepi_status gpi__check_formula_of_groups(const gemmepi_grouped_desc *desc,
                                                   const gpi__problem *problem) {
    const gpi__formula *f = problem->formula->placed.formula;
    gemmepi_status status = GEMMEPI_OK;
    static const uint8_t lacking[] = {GPI__INDEX_ROW, GPI__INDEX_ITEM, GPI__INDEX_ROWS};
    char place[GPI__PLACE_TEXT];
    int i;
    for (i = 0; i < 3; i++)
        GPI__UNSUPPORTED_IF(
            f->indices >> lacking[i] & 1,
            "%s: row, item, rows, uniform and stochastic are not what the positions of a grouped product have",
            gpi__name_place(desc->product.formula,
                            f->places.indices[lacking[i]] >= 0 ? f->places.indices[lacking[i]]
                                                               : f->places.uniform,
                            place));
    GPI__UNSUPPORTED_IF(gpi__lacks_d(problem),
                        "desc.product.formula does not assign %s; that of a grouped product does",
                        desc->product.formula_result ? desc->product.formula_result : "d");
    for (i = 0; i < f->operand_count && !status; i++)
        status = gpi__check_operand_of_groups(&f->operands[i], &desc->product.operands[i], i);
    return status;
}

static gemmepi_status gpi__convert_grouped_desc(const gemmepi_allocator *allocator,
                                                const gemmepi_grouped_desc *desc, size_t alignment,
                                                gpi__problem *problem) {
    gemmepi_matmul_desc product = desc->product;
    gpi__grouping grouping;
    gemmepi_status status = gpi__check_extents(&product);
    if (!status)
        status = gpi__check_grouping(desc);
    if (!status)
        status = gpi__check_indices(desc);
    if (!status)
        status = gpi__check_scales_of_groups(desc);
    if (!status)
        status = gpi__check_epilogue(product.epilogue);
    if (!status)
        status = gpi__set_strides(desc, &product);
    memset(&grouping, 0, sizeof grouping);
    grouping.groups = desc->groups;
    grouping.is_of_k = desc->grouping == GEMMEPI_GROUPS_OF_K;
    grouping.gathered = (desc->gather_a > 0) | (desc->gather_b > 0) << 1;
    grouping.scattered = (int32_t)desc->scatter_d;
    grouping.rows_a = (int32_t)desc->gather_a;
    product.batch = desc->groups;
    if (!status)
        status = gpi__normalise_in(allocator, &product, NULL, &grouping, alignment, problem);
    if (status)
        return status;
    status = gpi__unite_views(desc, problem);
    if (!status)
        status = gpi__convert_gathered_scale(desc, problem);
    gpi__spread_scales(problem);
    gpi__list_operands(problem);
    if (!status && GPI__FORMULA(problem))
        status = gpi__check_formula_of_groups(desc, problem);
    if (status)
        gpi__free_formulas(problem, allocator);
    return status;
}

static gemmepi_status gpi__convert_grouped(const gemmepi_allocator *allocator,
                                           const gemmepi_grouped_desc *desc, size_t alignment,
                                           gpi__problem *problem) {
    GPI__INVALID_IF(!desc, "desc is NULL");
    return gpi__in_groups_words(gpi__convert_grouped_desc(allocator, desc, alignment, problem));
}

/* >>arguments */

/* What a run reads beside operands; NULL: it has none. */
typedef struct gpi__group_lists {
    const int32_t *lists[GPI__FAULTS]; /* in the order of names */
    int64_t limits[GPI__FAULTS];       /* what an index is less than; of ends the most */
} gpi__group_lists;

static void gpi__limit_group_lists(const gpi__problem *problem, int64_t limits[GPI__FAULTS]) {
    limits[GPI__FAULT_ENDS] = gpi__positions(problem);
    limits[GPI__FAULT_A] = problem->views[GPI__A].lines;
    limits[GPI__FAULT_B] = problem->views[GPI__B].lines;
    limits[GPI__FAULT_D] = gpi__rows_of_d(problem);
}

static gemmepi_status gpi__list_group_lists(const gpi__problem *problem, const gpi__group_lists *lists,
                                            gpi__regions *regions) {
    static const char *const fields[] = {"", "gather_a", "gather_b", "scatter_d"};
    const gpi__grouping *grouping = &problem->grouping;
    int i;
    for (i = 0; i < GPI__FAULTS; i++) {
        const int32_t *list = lists->lists[i];
        const char *name = gpi__names_of_lists[i];
        int64_t length = i ? gpi__positions(problem) : grouping->groups;
        int is_wanted = i == GPI__FAULT_ENDS || (i == GPI__FAULT_A && (grouping->gathered & 1)) ||
                        (i == GPI__FAULT_B && (grouping->gathered & 2)) ||
                        (i == GPI__FAULT_D && grouping->scattered);
        GPI__INVALID_IF(!list && is_wanted && length, "args.%s is NULL; a grouped product%s%s needs it", name,
                        i ? " with " : "", fields[i]);
        GPI__INVALID_IF(list && !is_wanted, "args.%s is given, but desc.%s is 0", name, fields[i]);
        GPI__REFUSE_IF((uintptr_t)list % 4, GEMMEPI_MISALIGNED,
                       "args.%s is %p; it must be a multiple of 4 bytes", name, (const void *)list);
        if (list)
            gpi__add_region(regions, GPI__OF_LISTS, i, 0, list, 4 * length)->note = "";
    }
    return GEMMEPI_OK;
}

/* args -> arguments, lists and regions, likewise. */
static gemmepi_status gpi__convert_grouped_arguments(const gpi__problem *problem,
                                                     const gemmepi_grouped_args *args,
                                                     gpi__arguments *arguments, gpi__group_lists *lists,
                                                     gpi__regions *regions) {
    int weighted = gpi__has_operand(problem, GPI__ROW_FACTOR);
    gemmepi_status status;
    GPI__INVALID_IF(weighted != (args->weights != NULL) && (args->weights || gpi__rows_of_d(problem)),
                    "args.weights is %s, but desc.weighted is %d", args->weights ? "given" : "NULL",
                    weighted);
    status = gpi__convert_arguments(problem, &args->product, args->weights, arguments, regions);
    if (status)
        return status;
    memset(lists, 0, sizeof *lists);
    lists->lists[GPI__FAULT_ENDS] = args->ends;
    lists->lists[GPI__FAULT_A] = args->index_a;
    lists->lists[GPI__FAULT_B] = args->index_b;
    lists->lists[GPI__FAULT_D] = args->index_d;
    gpi__limit_group_lists(problem, lists->limits);
    return gpi__list_group_lists(problem, lists, regions);
}

#endif
