/* Grouped products in plain C: a product of each group, or of each row where rows come from or go to anywhere. */
#ifndef GEMMEPI_HOST_GROUPED_H
#define GEMMEPI_HOST_GROUPED_H

#include "../problem/grouped.h"
#ifndef GEMMEPI_NO_FORMULA
#include "formula.h"
#endif
#include "product.h"

/* The product of one group alone, of so many positions. */
static gemmepi__problem gemmepi__problem_of_group(const gemmepi__problem *problem, int64_t positions) {
    gemmepi__problem one = *problem;
    one.batch = 1;
    memset(&one.grouping, 0, sizeof one.grouping);
    *(problem->grouping.is_of_k ? &one.k : &one.m) = positions;
    return one;
}

/* >>what the device would check */

static gemmepi_status gemmepi__host_check_ends(const gemmepi__problem *problem, const int32_t *ends) {
    gemmepi__fault fault;
    int32_t before = 0, most = (int32_t)gemmepi__positions(problem);
    for (fault.at = 0; fault.at < problem->grouping.groups; fault.at++, before = fault.value) {
        fault.value = ends[fault.at];
        fault.beside = fault.value < before ? before : most;
        if (fault.value < before || fault.value > most)
            return gemmepi__refuse_list(GEMMEPI__FAULT_ENDS, fault.at, fault.value, fault.beside);
    }
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__host_check_lists(const gemmepi__problem *problem,
                                                const gemmepi__group_lists *lists) {
    const int32_t *ends = lists->lists[GEMMEPI__FAULT_ENDS];
    gemmepi_status status = gemmepi__host_check_ends(problem, ends);
    gemmepi__fault fault;
    int which;
    for (which = GEMMEPI__FAULT_A; which <= GEMMEPI__FAULT_D && !status; which++)
        for (fault.at = 0; lists->lists[which] && fault.at < ends[problem->grouping.groups - 1]; fault.at++) {
            fault.value = lists->lists[which][fault.at];
            fault.beside = (int)lists->limits[which];
            if (fault.value < 0 || fault.value >= fault.beside)
                return gemmepi__refuse_list(which, fault.at, fault.value, fault.beside);
        }
    return status;
}

/* >>pointers of a group */

static void gemmepi__advance(gemmepi__arguments *arguments, const gemmepi__problem *problem, int operand,
                             int64_t elements) {
    const gemmepi__view *view = &problem->views[operand];
    if (view->dtype && arguments->pointers[operand])
        arguments->pointers[operand] = (char *)arguments->pointers[operand] + elements * view->bits / 8;
}

/* From the first item's to those of group `group`. */
static gemmepi__arguments gemmepi__arguments_of_group(const gemmepi__problem *problem,
                                                      const gemmepi__arguments *arguments, int group) {
    gemmepi__arguments own = *arguments;
    int operand;
    for (operand = 0; operand < GEMMEPI__AMAX_D; operand++)
        gemmepi__advance(&own, problem, operand, group * problem->views[operand].batch_stride);
    return own;
}

/* From the first row of op(A), with its scales, to another. */
static void gemmepi__to_row_of_a(const gemmepi__problem *problem, gemmepi__arguments *arguments,
                                 int64_t row) {
    const gemmepi__view *a = &problem->views[GEMMEPI__A], *scale = &problem->views[GEMMEPI__SCALE_A];
    gemmepi__advance(arguments, problem, GEMMEPI__A, a->transposed ? row : row * a->ld);
    if (a->scale == GEMMEPI_SCALE_OUTER || a->scale == GEMMEPI_SCALE_VECTOR_128)
        gemmepi__advance(arguments, problem, GEMMEPI__SCALE_A, row);
    if (a->scale == GEMMEPI_SCALE_BLOCK_128)
        gemmepi__advance(arguments, problem, GEMMEPI__SCALE_A, row / 128 * scale->ld);
}

/* Likewise of D and what lies as it does. */
static void gemmepi__to_row_of_d(const gemmepi__problem *problem, gemmepi__arguments *arguments,
                                 int64_t row) {
    static const int as_d[] = {GEMMEPI__C, GEMMEPI__D, GEMMEPI__AUX, GEMMEPI__RESIDUAL};
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(as_d); i++)
        gemmepi__advance(arguments, problem, as_d[i], row * problem->views[as_d[i]].ld);
    gemmepi__advance(arguments, problem, GEMMEPI__ROW_FACTOR, row);
}

/* >>groups */

/* The largest |v| of all groups: a product leaves that of its own. */
typedef struct gemmepi__host_largest {
    double most[2]; /* of D and AUX */
} gemmepi__host_largest;

/* The rows of a formula that a group has. */
static gemmepi_status gemmepi__host_rows_of(const gemmepi__problem *problem,
                                            const gemmepi__arguments *arguments,
                                            const gemmepi_allocator *allocator) {
#ifndef GEMMEPI_NO_FORMULA
    if (problem->formula) {
        gemmepi__placed_formula placed = problem->formula->placed;
        placed.rows = problem->m;
        placed.items = 1;
        return gemmepi__host_formula_over(problem, &placed, arguments, allocator);
    }
#endif
    (void)allocator;
    gemmepi__host_product(problem, arguments, NULL);
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__host_product_of(const gemmepi__problem *problem, gemmepi__arguments *arguments,
                                               const gemmepi_allocator *allocator,
                                               gemmepi__host_largest *amax) {
    gemmepi_status status;
    double found[2] = {0, 0};
    int i;
    for (i = 0; i < 2; i++)
        arguments->pointers[GEMMEPI__AMAX_D + i] = &found[i];
    {
        gemmepi__problem own = *problem; /* its amax in F64, so that nothing is rounded twice */
        for (i = 0; i < 2; i++)
            if (own.views[GEMMEPI__AMAX_D + i].dtype)
                own.views[GEMMEPI__AMAX_D + i].dtype = GEMMEPI_F64;
        status = gemmepi__host_rows_of(&own, arguments, allocator);
    }
    for (i = 0; i < 2; i++)
        gemmepi__host_amax(&amax->most[i], 1, &found[i]);
    return status;
}

#ifndef GEMMEPI_NO_FORMULA
/* A formula's operands of a group, those that have rows from row `first` on. */
static void gemmepi__operands_of_group(const gemmepi__problem *problem, gemmepi__arguments *arguments,
                                       int group, int64_t first, void **operands) {
    const gemmepi__placed_formula *placed = &problem->formula->placed;
    int i;
    for (i = 0; i < placed->formula->operand_count; i++) {
        int kind = placed->formula->operands[i].kind;
        int64_t rows = kind == GEMMEPI_FULL      ? first * placed->operands[i].ld
                       : kind == GEMMEPI_PER_ROW ? first
                                                 : 0;
        operands[i] = arguments->operands[i];
        if (operands[i] && kind != GEMMEPI_NUMBER)
            operands[i] = (char *)operands[i] + (rows + group * placed->operands[i].batch_stride) *
                                                    problem->formula->views[i].bits / 8;
    }
    arguments->operands = operands;
}
#endif

static gemmepi_status gemmepi__host_group_of_rows(const gemmepi__problem *problem,
                                                  const gemmepi__arguments *arguments,
                                                  const gemmepi__group_lists *lists, int group, int64_t first,
                                                  int64_t end, const gemmepi_allocator *allocator,
                                                  gemmepi__host_largest *amax) {
    const int32_t *from = lists->lists[GEMMEPI__FAULT_A], *to = lists->lists[GEMMEPI__FAULT_D];
    int alone = from || to || problem->views[GEMMEPI__A].scale == GEMMEPI_SCALE_BLOCK_128;
    gemmepi__problem one = gemmepi__problem_of_group(problem, alone ? 1 : end - first);
    gemmepi_status status = GEMMEPI_OK;
    for (; first < end && !status; first += one.m) {
        gemmepi__arguments own = gemmepi__arguments_of_group(problem, arguments, group);
#ifndef GEMMEPI_NO_FORMULA
        void *operands[GEMMEPI__FORMULA_OPERANDS];
        if (problem->formula)
            gemmepi__operands_of_group(problem, &own, group, first, operands);
#endif
        gemmepi__to_row_of_a(problem, &own, from ? from[first] : first);
        gemmepi__to_row_of_d(problem, &own, to ? to[first] : first);
        status = gemmepi__host_product_of(&one, &own, allocator, amax);
    }
    return status;
}

/* Rows of A or B that an index says, side by side. */
static void gemmepi__host_gather(const gemmepi__view *view, const void *from, const int32_t *index,
                                 int64_t rows, char *to) {
    size_t size = (size_t)(view->bits / 8), line = (size_t)view->length * size;
    int64_t i;
    for (i = 0; i < rows; i++)
        memcpy(to + (size_t)i * line, (const char *)from + (size_t)index[i] * (size_t)view->ld * size, line);
}

/* The part of k of one operand: where it lies, or gathered to memory that is the caller's to free. */
static gemmepi_status gemmepi__host_part_of_k(gemmepi__problem *one, gemmepi__arguments *own, int operand,
                                              const int32_t *index, int64_t first,
                                              const gemmepi_allocator *allocator, char **copy) {
    gemmepi__view *view = &one->views[operand];
    int along_k = (view->transposed != 0) == (operand == GEMMEPI__B);
    *copy = NULL;
    if (!index) {
        gemmepi__advance(own, one, operand, along_k ? first : first * view->ld);
        return GEMMEPI_OK;
    }
    *copy = (char *)gemmepi__new(allocator, (size_t)(one->k * view->length * view->bits / 8) + 1);
    if (!*copy)
        return GEMMEPI_OUT_OF_MEMORY;
    gemmepi__host_gather(view, own->pointers[operand], index + first, one->k, *copy);
    own->pointers[operand] = *copy;
    view->ld = view->length;
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__host_group_of_k(const gemmepi__problem *problem,
                                               const gemmepi__arguments *arguments,
                                               const gemmepi__group_lists *lists, int group, int64_t first,
                                               int64_t end, const gemmepi_allocator *allocator,
                                               gemmepi__host_largest *amax) {
    gemmepi__problem one = gemmepi__problem_of_group(problem, end - first);
    gemmepi__arguments own = gemmepi__arguments_of_group(problem, arguments, group);
    char *copies[2] = {NULL, NULL};
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < 2 && !status; i++)
        status = gemmepi__host_part_of_k(&one, &own, i, lists->lists[GEMMEPI__FAULT_A + i], first, allocator,
                                         &copies[i]);
    if (!status)
        status = gemmepi__host_product_of(&one, &own, allocator, amax);
    for (i = 0; i < 2; i++)
        gemmepi__delete(allocator, copies[i]);
    return status;
}

static gemmepi_status gemmepi__host_grouped(const gemmepi__problem *problem,
                                            const gemmepi__arguments *arguments,
                                            const gemmepi__group_lists *lists,
                                            const gemmepi_allocator *allocator) {
    gemmepi_status status = gemmepi__host_check_lists(problem, lists);
    gemmepi__host_largest amax = {{0, 0}};
    int64_t first = 0;
    int group;
    for (group = 0; group < problem->grouping.groups && !status; group++) {
        int64_t end = lists->lists[GEMMEPI__FAULT_ENDS][group];
        if (problem->grouping.is_of_k)
            status = gemmepi__host_group_of_k(problem, arguments, lists, group, first, end, allocator, &amax);
        else
            status =
                gemmepi__host_group_of_rows(problem, arguments, lists, group, first, end, allocator, &amax);
        first = end;
    }
    if (status || gemmepi__is_empty(problem))
        return status;
    gemmepi__host_store_amax(problem, arguments, GEMMEPI__AMAX_D, amax.most[0]);
    gemmepi__host_store_amax(problem, arguments, GEMMEPI__AMAX_AUX, amax.most[1]);
    return GEMMEPI_OK;
}

#endif
