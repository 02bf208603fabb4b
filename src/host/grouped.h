/* Grouped products in plain C: a product of each group, or of each row where rows come from or go to anywhere. */
#ifndef GEMMEPI_HOST_GROUPED_H
#define GEMMEPI_HOST_GROUPED_H

#include "../problem/grouped.h"
#include "formula.h"
#include "product.h"

/* The product of one group alone, of so many positions. */
static gpi__problem gpi__problem_of_group(const gpi__problem *problem, int64_t positions) {
    gpi__problem one = *problem;
    one.batch = 1;
    memset(&one.grouping, 0, sizeof one.grouping);
    *(problem->grouping.is_of_k ? &one.k : &one.m) = positions;
    return one;
}

/* >>what the device would check */

static gemmepi_status gpi__host_check_ends(const gpi__problem *problem, const int32_t *ends) {
    gpi__fault fault;
    int32_t before = 0, most = (int32_t)gpi__positions(problem);
    for (fault.at = 0; fault.at < problem->grouping.groups; fault.at++, before = fault.value) {
        fault.value = ends[fault.at];
        fault.beside = fault.value < before ? before : most;
        if (fault.value < before || fault.value > most)
            return gpi__refuse_list(GPI__FAULT_ENDS, fault.at, fault.value, fault.beside);
    }
    return GEMMEPI_OK;
}

/* Whether no two positions have the same row of D, a bit for each row. The device does not ask. */
static gemmepi_status gpi__host_check_apart(const int32_t *rows, int32_t positions, int64_t most,
                                            const gemmepi_allocator *allocator) {
    unsigned char *had = (unsigned char *)gpi__new(allocator, (size_t)(most / 8 + 1));
    int32_t i = 0, before = 0;
    if (!had)
        return GEMMEPI_OUT_OF_MEMORY;
    for (; i < positions && !(had[rows[i] / 8] >> rows[i] % 8 & 1); i++)
        had[rows[i] / 8] |= (unsigned char)(1 << rows[i] % 8);
    gpi__delete(allocator, had);
    if (i == positions)
        return GEMMEPI_OK;
    while (rows[before] != rows[i])
        before++;
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "args.index_d[%d] of a grouped product is %d, as index_d[%d] is; each position has its own row of d",
        (int)i, (int)rows[i], (int)before);
}

static gemmepi_status gpi__host_check_lists(const gpi__problem *problem, const gpi__group_lists *lists,
                                            const gemmepi_allocator *allocator) {
    const int32_t *ends = lists->lists[GPI__FAULT_ENDS];
    gemmepi_status status = gpi__host_check_ends(problem, ends);
    gpi__fault fault;
    int which;
    for (which = GPI__FAULT_A; which <= GPI__FAULT_D && !status; which++)
        for (fault.at = 0; lists->lists[which] && fault.at < ends[problem->grouping.groups - 1]; fault.at++) {
            fault.value = lists->lists[which][fault.at];
            fault.beside = (int)lists->limits[which];
            if (fault.value < 0 || fault.value >= fault.beside)
                return gpi__refuse_list(which, fault.at, fault.value, fault.beside);
        }
    if (status || !lists->lists[GPI__FAULT_D])
        return status;
    return gpi__host_check_apart(lists->lists[GPI__FAULT_D], ends[problem->grouping.groups - 1],
                                 lists->limits[GPI__FAULT_D], allocator);
}

/* >>pointers of a group */

static void gpi__advance(gpi__arguments *arguments, const gpi__problem *problem, int operand,
                         int64_t elements) {
    const gpi__view *view = &problem->views[operand];
    if (view->dtype && arguments->pointers[operand])
        arguments->pointers[operand] = (char *)arguments->pointers[operand] + elements * view->bits / 8;
}

/* From the first item's to those of group `group`. */
static gpi__arguments gpi__arguments_of_group(const gpi__problem *problem, const gpi__arguments *arguments,
                                              int group) {
    gpi__arguments own = *arguments;
    int operand;
    for (operand = 0; operand < GPI__AMAX_D; operand++)
        gpi__advance(&own, problem, operand, group * problem->views[operand].batch_stride);
    return own;
}

/* From the first row of op(A), with its scales, to another. */
static void gpi__to_row_of_a(const gpi__problem *problem, gpi__arguments *arguments, int64_t row) {
    const gpi__view *a = &problem->views[GPI__A], *scale = &problem->views[GPI__SCALE_A];
    gpi__advance(arguments, problem, GPI__A, a->transposed ? row : row * a->ld);
    if (a->scale == GEMMEPI_SCALE_OUTER || a->scale == GEMMEPI_SCALE_VECTOR_128)
        gpi__advance(arguments, problem, GPI__SCALE_A, row);
    if (a->scale == GEMMEPI_SCALE_BLOCK_128)
        gpi__advance(arguments, problem, GPI__SCALE_A, row / 128 * scale->ld);
}

/* Likewise of D and what lies as it does. */
static void gpi__to_row_of_d(const gpi__problem *problem, gpi__arguments *arguments, int64_t row) {
    static const int as_d[] = {GPI__C, GPI__D, GPI__AUX, GPI__RESIDUAL};
    size_t i;
    for (i = 0; i < GPI__COUNT(as_d); i++)
        gpi__advance(arguments, problem, as_d[i], row * problem->views[as_d[i]].ld);
    gpi__advance(arguments, problem, GPI__ROW_FACTOR, row);
}

/* >>groups */

typedef struct gpi__host_groups {
    const gpi__problem *problem;
    const gpi__arguments *arguments;
    const gpi__group_lists *lists;
    const gemmepi_allocator *allocator;
    double amax[2]; /* of all groups' D and AUX: a product leaves that of its own */
} gpi__host_groups;

/* The rows of a formula that a group has. */
static gemmepi_status gpi__host_rows_of(const gpi__problem *problem, const gpi__arguments *arguments,
                                        const gemmepi_allocator *allocator) {
    if (GPI__FORMULA(problem)) {
        gpi__placed_formula placed = problem->formula->placed;
        placed.rows = problem->m;
        placed.items = 1;
        return gpi__host_formula_over(problem, &placed, arguments, NULL, allocator);
    }
    gpi__host_flags(problem, arguments, NULL);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__host_product_of(gpi__host_groups *groups, const gpi__problem *problem,
                                           gpi__arguments *arguments) {
    gemmepi_status status;
    double found[2] = {0, 0};
    int i;
    for (i = 0; i < 2; i++)
        arguments->pointers[GPI__AMAX_D + i] = &found[i];
    {
        gpi__problem own = *problem; /* its amax in F64, so that nothing is rounded twice */
        for (i = 0; i < 2; i++)
            if (own.views[GPI__AMAX_D + i].dtype)
                own.views[GPI__AMAX_D + i].dtype = GEMMEPI_F64;
        status = gpi__host_rows_of(&own, arguments, groups->allocator);
    }
    for (i = 0; i < 2; i++)
        gpi__host_amax(&groups->amax[i], 1, &found[i]);
    return status;
}

/* A formula's operands of a group, those that have rows from row `first` of D on. */
static void gpi__operands_of_group(const gpi__problem *problem, gpi__arguments *arguments, int group,
                                   int64_t first, void **operands) {
    const gpi__placed_formula *placed = &problem->formula->placed;
    int i;
    for (i = 0; i < placed->formula->operand_count; i++) {
        int kind = placed->formula->operands[i].kind;
        int64_t rows = kind >= GEMMEPI_FULL      ? first * placed->operands[i].ld
                       : kind == GEMMEPI_PER_ROW ? first
                                                 : 0;
        operands[i] = arguments->operands[i];
        if (operands[i] && kind != GEMMEPI_NUMBER)
            operands[i] = (char *)operands[i] + (rows + group * placed->operands[i].batch_stride) *
                                                    problem->formula->views[i].bits / 8;
    }
    arguments->operands = operands;
}

static gemmepi_status gpi__host_group_of_rows(gpi__host_groups *groups, int group, int64_t first,
                                              int64_t end) {
    const gpi__problem *problem = groups->problem;
    const int32_t *from = groups->lists->lists[GPI__FAULT_A], *to = groups->lists->lists[GPI__FAULT_D];
    int row_by_row = from || to || problem->views[GPI__A].scale == GEMMEPI_SCALE_BLOCK_128;
    gpi__problem one = gpi__problem_of_group(problem, row_by_row ? 1 : end - first);
    gemmepi_status status = GEMMEPI_OK;
    for (; first < end && !status; first += one.m) {
        gpi__arguments own = gpi__arguments_of_group(problem, groups->arguments, group);
        void *operands[GPI__FORMULA_OPERANDS];
        if (GPI__FORMULA(problem))
            gpi__operands_of_group(problem, &own, group, to ? to[first] : first, operands);
        gpi__to_row_of_a(problem, &own, from ? from[first] : first);
        gpi__to_row_of_d(problem, &own, to ? to[first] : first);
        status = gpi__host_product_of(groups, &one, &own);
    }
    return status;
}

/* Rows of A or B that an index says, next to each other. */
static void gpi__host_gather(const gpi__view *view, const void *from, const int32_t *index, int64_t rows,
                             char *to) {
    size_t size = (size_t)(view->bits / 8), line = (size_t)view->length * size;
    int64_t i;
    for (i = 0; i < rows; i++)
        memcpy(to + (size_t)i * line, (const char *)from + (size_t)index[i] * (size_t)view->ld * size, line);
}

/* The part of k of one operand: where it is, or gathered to memory that is the caller's to free. */
static gemmepi_status gpi__host_part_of_k(const gpi__host_groups *groups, gpi__problem *one,
                                          gpi__arguments *own, int operand, int64_t first, char **copy) {
    const int32_t *index = groups->lists->lists[GPI__FAULT_A + operand];
    gpi__view *view = &one->views[operand];
    int along_k = (view->transposed != 0) == (operand == GPI__B);
    *copy = NULL;
    if (!index) {
        gpi__advance(own, one, operand, along_k ? first : first * view->ld);
        return GEMMEPI_OK;
    }
    *copy = (char *)gpi__new(groups->allocator, (size_t)(one->k * view->length * view->bits / 8) + 1);
    if (!*copy)
        return GEMMEPI_OUT_OF_MEMORY;
    gpi__host_gather(view, own->pointers[operand], index + first, one->k, *copy);
    own->pointers[operand] = *copy;
    view->ld = view->length;
    return GEMMEPI_OK;
}

static gemmepi_status gpi__host_group_of_k(gpi__host_groups *groups, int group, int64_t first, int64_t end) {
    gpi__problem one = gpi__problem_of_group(groups->problem, end - first);
    gpi__arguments own = gpi__arguments_of_group(groups->problem, groups->arguments, group);
    char *copies[2] = {NULL, NULL};
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < 2 && !status; i++)
        status = gpi__host_part_of_k(groups, &one, &own, i, first, &copies[i]);
    if (!status)
        status = gpi__host_product_of(groups, &one, &own);
    for (i = 0; i < 2; i++)
        gpi__delete(groups->allocator, copies[i]);
    return status;
}

static gemmepi_status gpi__host_grouped(const gpi__problem *problem, const gpi__arguments *arguments,
                                        const gpi__group_lists *lists, const gemmepi_allocator *allocator) {
    gemmepi_status status = gpi__host_check_lists(problem, lists, allocator);
    gpi__host_groups groups = {problem, arguments, lists, allocator, {0, 0}};
    int64_t first = 0;
    int group;
    for (group = 0; group < problem->grouping.groups && !status; group++) {
        int64_t end = lists->lists[GPI__FAULT_ENDS][group];
        if (problem->grouping.is_of_k)
            status = gpi__host_group_of_k(&groups, group, first, end);
        else
            status = gpi__host_group_of_rows(&groups, group, first, end);
        first = end;
    }
    if (status || gpi__is_empty(problem))
        return status;
    gpi__host_store_amax(problem, arguments, GPI__AMAX_D, groups.amax[0]);
    gpi__host_store_amax(problem, arguments, GPI__AMAX_AUX, groups.amax[1]);
    return GEMMEPI_OK;
}

#endif
