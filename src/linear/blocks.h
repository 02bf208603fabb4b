/* Backward by blocks of rows, of a layer whose formula assigns no d: each block is a backward of a layer with fewer rows, and has G in the same
   workspace. The first block writes what is a sum over rows, the others add to it. */
#ifndef GEMMEPI_LINEAR_BLOCKS_H
#define GEMMEPI_LINEAR_BLOCKS_H

#include "plan.h"

enum {
    GPI__LEAST_BLOCK = 128
}; /* rows of all blocks but the last are a multiple: so each begins as aligned as the first */

/* Whether rows may be counted from any row on. */
static int gpi__is_divisible(const gpi__layer_task *task) {
    const gpi__placed_formula *placed = &task->formulas[GPI__OF_FIRST].formula->placed;
    const uint32_t rows = 1u << GPI__INDEX_ROW | 1u << GPI__INDEX_ROWS;
    int i;
    for (i = 0; i < task->operand_count; i++)
        if (placed->formula->operands[i].used && placed->operands[i].row_period)
            return 0;
    if (gpi__makes_factors(task) || task->added_count) /* whose operands have rows, too */
        return 0;
    return task->batch <= 1 && !(placed->formula->indices & rows) &&
           task->views[GPI__L_A].scale <= GEMMEPI_SCALE_TENSOR;
}

/* >>building */

/* What a plan of blocks is made of. */
typedef struct gpi__blocks_wish {
    gemmepi_context *context;
    const gemmepi_linear_desc *desc; /* of all rows */
    size_t alignment;
    const gpi__layer_task *task; /* of all rows */
} gpi__blocks_wish;

/* The block's part of the layer before. */
static void gpi__point_to_before(const gpi__blocks_wish *wish, int64_t rows, gemmepi_linear_desc *before,
                                 gemmepi_linear_desc *block) {
    if (!block->before)
        return;
    *before = *block->before;
    *(wish->task->exchanged ? &before->n : &before->m) = rows;
    block->before = before;
}

/* The layer of a block. What is a sum over rows is added up behind the first block. operands: for as long as the desc. */
static gemmepi_linear_desc gpi__block_desc(const gpi__blocks_wish *wish, int64_t rows, int adds,
                                           gemmepi_operand operands[GPI__LAYER_OPERANDS]) {
    gemmepi_linear_desc block = *wish->desc;
    int exchanged = wish->task->exchanged, i;
    uint64_t sums = exchanged ? GEMMEPI_LINEAR_DA : GEMMEPI_LINEAR_DB;
    *(exchanged ? &block.n : &block.m) = rows;
    (exchanged ? &block.b : &block.a)->ld = wish->task->views[GPI__L_A].ld;
    (exchanged ? &block.db : &block.da)->ld = wish->task->views[GPI__L_DA].ld;
    if (block.alignment > GPI__LEAST_BLOCK)
        block.alignment = GPI__LEAST_BLOCK;
    if (block.operand_count)
        memcpy(operands, block.operands, (size_t)block.operand_count * sizeof *operands);
    block.operands = operands;
    if (!adds)
        return block;
    if (block.flags & sums)
        block.flags |= exchanged ? GEMMEPI_ACCUMULATE_DA : GEMMEPI_ACCUMULATE_DB;
    if (block.flags & GEMMEPI_LINEAR_DBIAS)
        block.flags |= GEMMEPI_ACCUMULATE_DBIAS;
    for (i = 0; i < block.operand_count; i++)
        if (gpi__layers_role(&operands[i]) == GPI__IS_GRADIENT &&
            (operands[i].kind == GEMMEPI_SCALAR ||
             operands[i].kind == (exchanged ? GEMMEPI_PER_ROW : GEMMEPI_PER_COLUMN)))
            operands[i].accumulate = 1;
    return block;
}

/* The forward of a block, whose P is where G will be, if both are of one type. */
static gemmepi_status gpi__build_ahead(const gpi__blocks_wish *wish, const gemmepi_linear_desc *desc,
                                       gpi__linear_plan *block) {
    const gpi__view *p = &block->task.views[GPI__L_PREACT];
    gemmepi_plan *plan = NULL;
    gemmepi_linear_desc forward;
    gpi__layer_task task;
    gpi__layer_problems problems;
    gemmepi_status status = gpi__layer_with_forward(desc, &forward);
    if (status)
        return status;
    status = gpi__convert_layer(wish->context, &forward, 0, wish->alignment, &task, &problems);
    if (!status)
        status = gpi__build_steps(wish->context, &task, &problems, &plan);
    gpi__drop_layers_formulas(wish->context, &problems);
    block->ahead = (gpi__linear_plan *)plan;
    block->p_bytes = gpi__round_up((size_t)gpi__times(p->lines, p->ld) * (size_t)(p->bits / 8), 256);
    if (p->dtype == block->task.g_dtype)
        block->temporary_bytes[0] = 0;
    return status;
}

static gemmepi_status gpi__build_block(const gpi__blocks_wish *wish, int64_t rows, int adds,
                                       gpi__linear_plan **block) {
    gemmepi_operand operands[GPI__LAYER_OPERANDS];
    gemmepi_linear_desc desc = gpi__block_desc(wish, rows, adds, operands), before;
    gemmepi_plan *plan = NULL;
    gpi__layer_task task;
    gpi__layer_problems problems;
    gemmepi_status status;
    gpi__point_to_before(wish, rows, &before, &desc);
    status = gpi__convert_layer(wish->context, &desc, 1, wish->alignment, &task, &problems);
    if (!status)
        status = gpi__build_steps(wish->context, &task, &problems, &plan);
    gpi__drop_layers_formulas(wish->context, &problems);
    *block = (gpi__linear_plan *)plan;
    return status || !wish->task->outputs ? status : gpi__build_ahead(wish, &desc, *block);
}

/* As many blocks as are needed with at most so many rows, of equal size but for the last. */
static int64_t gpi__even_rows(int64_t all, int64_t most) {
    int64_t rows =
        gpi__divide_up(gpi__divide_up(all, gpi__divide_up(all, most)), GPI__LEAST_BLOCK) * GPI__LEAST_BLOCK;
    return rows < all ? rows : all;
}

/* Rows of a block, by what share of a size is to be had. */
static int64_t gpi__share_of_rows(int64_t all, int64_t rows, double share) {
    double most = (double)rows * share / (double)GPI__LEAST_BLOCK;
    int64_t units = most >= (double)rows ? rows : most < 1 ? 1 : (int64_t)most;
    return all > 0 ? gpi__even_rows(all, units * GPI__LEAST_BLOCK) : 0;
}

static gemmepi_status gpi__refuse_limit(const gpi__layer_task *task, int64_t rows, int is_whole,
                                        size_t needed) {
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "desc.workspace_limit is %lld bytes (0 stands for 256 MiB), but backward needs %llu for %lld rows, %s: "
        "allow as many",
        (long long)task->workspace_limit, (gpi__ull)needed, (long long)rows,
        is_whole ? "which cannot be divided into blocks" : "its smallest block");
}

/* Whether forward's rows, too, may be counted from any row on. */
static gemmepi_status gpi__is_forward_divisible(const gpi__blocks_wish *wish, int *is_whole) {
    gpi__layer_task task;
    gpi__layer_problems problems;
    gemmepi_status status =
        gpi__convert_layer(wish->context, wish->desc, 0, wish->alignment, &task, &problems);
    if (!status)
        *is_whole = !gpi__is_divisible(&task);
    gpi__drop_layers_formulas(wish->context, &problems);
    return status;
}

/* The first block, with as many rows as there is workspace for. */
static gemmepi_status gpi__build_first_block(const gpi__blocks_wish *wish, gpi__linear_plan *layer) {
    const gpi__layer_task *task = wish->task;
    double limit = (double)task->workspace_limit;
    double of_row = (double)gpi__padded(task->n) * (double)gemmepi_dtype_size((gemmepi_dtype)task->g_dtype);
    int64_t rows = task->m;
    gpi__linear_plan **first = &layer->blocks[GPI__FIRST_BLOCK];
    gemmepi_status status;
    size_t needed;
    int is_whole = !gpi__is_divisible(task);
    if (task->outputs && !is_whole) {
        status = gpi__is_forward_divisible(wish, &is_whole);
        if (status)
            return status;
    }
    if (!is_whole && of_row * (double)rows > limit)
        rows = gpi__share_of_rows(task->m, rows, limit / (of_row * (double)rows));
    for (;;) {
        layer->block_rows = rows;
        status = gpi__build_block(wish, rows, 0, first);
        if (status)
            return status;
        needed = wish->context->is_host ? gpi__all_temporaries(*first) : gpi__layer_workspace(*first);
        if ((double)needed <= limit)
            return GEMMEPI_OK;
        if (is_whole || rows <= GPI__LEAST_BLOCK)
            return gpi__refuse_limit(task, rows, is_whole, needed);
        gpi__release_plan(&(*first)->base);
        *first = NULL;
        rows = gpi__share_of_rows(task->m, rows - 1, limit / (double)needed);
    }
}

static gemmepi_status gpi__build_blocks(const gpi__blocks_wish *wish, const gpi__layer_problems *problems,
                                        gemmepi_plan **result) {
    gpi__linear_plan *layer = gpi__new_layer(wish->context, wish->task, problems);
    int64_t all = wish->task->m, rows, last;
    gemmepi_status status;
    if (!layer)
        return GEMMEPI_OUT_OF_MEMORY;
    status = gpi__build_first_block(wish, layer);
    rows = layer->block_rows;
    last = rows ? all % rows : 0;
    if (!status && all - last > rows)
        status = gpi__build_block(wish, rows, 1, &layer->blocks[GPI__NEXT_BLOCK]);
    if (!status && last)
        status = gpi__build_block(wish, last, 1, &layer->blocks[GPI__LAST_BLOCK]);
    return gpi__finish_layer(layer, status, result);
}

#endif
