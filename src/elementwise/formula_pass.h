/* A formula over tensors, of which v is one if it is read: kernels/formula_pass.cu, and formula_reduce.cu behind it where the formula has
   reductions. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_PASS_H
#define GEMMEPI_ELEMENTWISE_FORMULA_PASS_H

#include "../device/memory.h"
#include "formula_prologue.h"

static void gpi__place_operand(const gpi__placed_formula *placed, int i, gpi__formula_pass *pass) {
    const gpi__formula_operand *o = &placed->formula->operands[i];
    const gpi__placed_operand *from = &placed->operands[i];
    gpi__formula_place *to = &pass->params.places[i];
    if (!o->used)
        return;
    pass->used[pass->used_count++] = (uint8_t)i;
    pass->roles[i] = (uint8_t)(o->kind == GEMMEPI_NUMBER ? GPI__ROLE_NUMBER
                               : gpi__is_reduced(o)      ? GPI__ROLE_REDUCTION
                                                         : GPI__ROLE_POINTER);
    pass->scaled[i] = from->scale != 0;
    if (from->amax)
        pass->amax[i] = placed->formula->accumulator == GEMMEPI_F64 ? 8 : 4;
    to->ld = gpi__step_of_rows(placed, i);
    to->stride = gpi__innermost_step(placed, i);
    to->row_period = from->row_period;
    to->column_period = o->used & GPI__BY_INDEX ? gpi__table_length(placed, i) : from->column_period;
    to->scale_stride = from->scale_stride;
}

static void gpi__place_source(const gpi__placed_formula *placed, const gpi__formula_source *source,
                              gpi__formula_pass_params *params) {
    int i;
    for (i = 0; i < 2; i++) {
        gpi__formula_place *place = &params->places[GPI__FORMULA_VALUE + i];
        place->ld = source->matrices[i].ld;
        place->stride = source->matrices[i].batch_stride;
        place->scale_stride = source->matrices[i].scale_stride;
    }
    params->rows = placed->rows;
    params->units = gpi__formula_units(placed);
    params->columns = gpi__formula_columns(placed);
    params->depth = placed->depth;
}

/* Tiles of rows and columns. Threads take more rows as long as every multiprocessor still has four blocks, or a grid too many. */
static gemmepi_status gpi__shape_formula_pass(const gemmepi_context *context,
                                              const gpi__placed_formula *placed, gpi__formula_pass *pass) {
    unsigned threads_x = gpi__threads_along_columns(placed), threads_y = GPI__FORMULA_THREADS / threads_x;
    int64_t column_tiles = gpi__divide_up(pass->params.units, (int64_t)threads_x * pass->runs_of);
    int64_t row_tiles, tiles, steps;
    int64_t most = gpi__has_reductions(placed->formula, GPI__OVER_ROWS) ? GPI__FORMULA_MOST_STEPS
                                                                        : GPI__FORMULA_FEW_STEPS;
    for (steps = 1;; steps *= 2) {
        row_tiles = gpi__divide_up(placed->rows, threads_y * steps);
        tiles = gpi__times(gpi__times(column_tiles, row_tiles), placed->items);
        if (tiles <= INT_MAX && (steps >= most || tiles < 8 * (int64_t)context->multiprocessors))
            break;
        GPI__UNSUPPORTED_IF(steps > INT_MAX / 4, "the result has more tiles than a grid has blocks");
    }
    pass->params.row_steps = (int)steps;
    pass->params.row_tiles = (unsigned)row_tiles;
    pass->params.column_tiles = (unsigned)column_tiles;
    pass->launch.blocks = (unsigned)tiles;
    pass->launch.threads_x = threads_x;
    pass->launch.threads_y = threads_y;
    return GEMMEPI_OK;
}

/* The states that what computes the formula leaves of an item. */
typedef struct gpi__state_counts {
    int64_t of_row, lines,
        of_line;  /* lines: of some rows each, of each column a state; of all of them so many */
    int64_t span; /* columns side by side of which a state may be */
} gpi__state_counts;

/* The columns of a state of groups: as many as divide groups and spans, a power of two. */
static int64_t gpi__state_of_group(const gpi__formula_operand *operand, int64_t span) {
    int64_t columns = operand->group & -(int64_t)operand->group;
    return columns < span ? columns : span;
}

/* Columns of what a reduction is of. */
static int64_t gpi__reduced_columns(const gpi__placed_formula *placed, const gpi__formula_operand *operand) {
    return gpi__formula_units(placed) * operand->members;
}

/* Results of groups of columns: lines of them. */
static void gpi__lay_out_groups(const gpi__placed_formula *placed, int i, int64_t state,
                                gpi__formula_reduction *reduction) {
    const gpi__formula_operand *o = &placed->formula->operands[i];
    int64_t columns = gpi__reduced_columns(placed, o);
    reduction->of_line = (unsigned)(columns / o->group);
    reduction->out_line = gpi__step_of_rows(placed, i);
    reduction->count = gpi__times(placed->rows, reduction->of_line);
    reduction->lines = reduction->result_step = o->group / state;
    reduction->group_step = gpi__times(placed->rows, columns / state);
}

/* Where the states of a reduction lie, and what is made of them. */
static void gpi__lay_out_reduction(const gpi__placed_formula *placed, int i, const gpi__state_counts *states,
                                   gpi__formula_reduction *reduction) {
    const gpi__formula_operand *o = &placed->formula->operands[i];
    int64_t items = placed->items;
    int shared = !gpi__has_rows(o->kind) && placed->operands[i].batch_stride == 0;
    reduction->groups = shared ? items > 0 : items;
    reduction->out_stride = placed->operands[i].batch_stride;
    reduction->is_along_lines = o->kind != GEMMEPI_PER_COLUMN;
    reduction->result_step = reduction->line_step = reduction->out_step = 1;
    if (placed->strides && o->kind != GEMMEPI_SCALAR)
        reduction->out_step = o->kind == GEMMEPI_PER_ROW ? placed->strides->operands[i].row
                                                         : placed->strides->operands[i].column;
    if (o->kind == GEMMEPI_BLOCKED) {
        gpi__lay_out_groups(placed, i, gpi__state_of_group(o, states->span), reduction);
        return;
    }
    if (o->kind == GEMMEPI_PER_ROW) {
        reduction->count = placed->rows;
        reduction->lines = reduction->result_step = states->of_row;
        reduction->group_step = gpi__times(placed->rows, states->of_row);
        return;
    }
    reduction->count = 1;
    reduction->lines = gpi__times(states->lines, shared ? items : 1);
    if (o->kind == GEMMEPI_PER_COLUMN)
        reduction->count = reduction->line_step = gpi__formula_units(placed) * o->members;
    else
        reduction->lines = gpi__times(reduction->lines, states->of_line);
    reduction->group_step = gpi__times(reduction->lines, reduction->line_step);
}

/* Whether a result has too few threads: one for each four of its states, whose loads are under way at once. Beyond a warp one for each 16 where
   states lie side by side, 256 at most; where results do, one for each eight, while a warp reads whole sectors of eight results. */
static int gpi__wants_more_lanes(const gpi__formula_reduction *reduction, unsigned threads) {
    int64_t lanes = reduction->lanes;
    if (lanes < 32)
        return 4 * lanes < reduction->lines;
    if (reduction->is_along_lines)
        return 16 * lanes < reduction->lines && lanes < GPI__FORMULA_THREADS;
    return 8 * lanes < reduction->lines && lanes < threads / 8;
}

static gemmepi_status gpi__share_out_reduction(unsigned threads, gpi__formula_reduction *reduction,
                                               int64_t *blocks) {
    int64_t results = gpi__times(reduction->groups, reduction->count), mine;
    reduction->lanes = 1;
    while (gpi__wants_more_lanes(reduction, threads))
        reduction->lanes *= 2;
    mine = gpi__divide_up(results, threads / (int64_t)reduction->lanes);
    GPI__UNSUPPORTED_IF(*blocks + mine > INT_MAX, "reductions have more results than a grid has blocks for");
    reduction->first_block = (unsigned)*blocks;
    reduction->blocks = (unsigned)mine;
    *blocks += mine;
    return GEMMEPI_OK;
}

/* Where the kernel leaves the states of groups: of a row so many, of column_period columns each. */
static void gpi__place_states_of_groups(const gpi__placed_formula *placed, int i, int64_t span,
                                        gpi__formula_place *place) {
    const gpi__formula_operand *o = &placed->formula->operands[i];
    place->column_period = gpi__state_of_group(o, span);
    place->ld = gpi__reduced_columns(placed, o) / place->column_period;
}

/* Of the launch that joins states: many where a column has more lines than a block of few loads at once; states of F64 take the registers of
   so many. */
static unsigned gpi__reduce_threads(const gpi__placed_formula *placed, const gpi__formula_pass *pass) {
    int i;
    for (i = 0; i < GPI__RESULT && placed->formula->accumulator != GEMMEPI_F64; i++)
        if (pass->roles[i] == GPI__ROLE_REDUCTION && !pass->reduce_params.reductions[i].is_along_lines &&
            pass->reduce_params.reductions[i].lines > GPI__FORMULA_THREADS)
            return GPI__REDUCE_MOST_THREADS;
    return GPI__FORMULA_THREADS;
}

static gemmepi_status gpi__lay_out_reductions(const gpi__placed_formula *placed,
                                              const gpi__state_counts *states, gpi__formula_pass *pass) {
    gemmepi_status status = GEMMEPI_OK;
    int64_t blocks = 0, count;
    int i;
    for (i = 0; i < placed->formula->operand_count; i++) {
        gpi__formula_reduction *reduction = &pass->reduce_params.reductions[i];
        size_t bytes;
        if (pass->roles[i] != GPI__ROLE_REDUCTION)
            continue;
        gpi__lay_out_reduction(placed, i, states, reduction);
        if (placed->formula->operands[i].group)
            gpi__place_states_of_groups(placed, i, states->span, &pass->params.places[i]);
        count = gpi__times(reduction->groups, reduction->group_step);
        bytes = gpi__bytes_for(
            count, gpi__state_size(placed->formula, &placed->formula->operands[i], !pass->launch.blocks));
        pass->state_offsets[i] = pass->state_bytes;
        pass->state_bytes += gpi__round_up(bytes, 256);
    }
    pass->finish.threads_x = gpi__reduce_threads(placed, pass);
    for (i = 0; i < placed->formula->operand_count && !status; i++)
        if (pass->roles[i] == GPI__ROLE_REDUCTION)
            status =
                gpi__share_out_reduction(pass->finish.threads_x, &pass->reduce_params.reductions[i], &blocks);
    pass->finish.blocks = (unsigned)blocks;
    pass->finish.threads_y = 1;
    return status;
}

/* Its bytes in memory, each read or written once. */
static double gpi__formula_operand_bytes(const gpi__placed_formula *placed, int i) {
    const gpi__formula *f = placed->formula;
    const gpi__formula_operand *o = &f->operands[i];
    const gpi__placed_operand *at = &placed->operands[i];
    double rows = (double)gpi__extent_of_operand(o->kind, placed->rows, at->row_period);
    double columns = o->used & GPI__BY_INDEX ? (double)gpi__table_length(placed, i)
                                             : (double)gpi__formula_units(placed) * o->members;
    double count = o->kind >= GEMMEPI_FULL         ? rows * columns
                   : o->kind == GEMMEPI_PER_ROW    ? rows
                   : o->kind == GEMMEPI_PER_COLUMN ? columns
                                                   : 1;
    if (!o->used || o->kind == GEMMEPI_NUMBER)
        return 0;
    if (at->column_period && o->kind == GEMMEPI_FULL)
        count = rows * (double)at->column_period;
    if (gpi__is_in_blocks(o, at))
        count /= (double)at->column_period;
    return count * gpi__bits_of(o->dtype) / 8 * (at->batch_stride ? (double)placed->items : 1) *
           (o->accumulate ? 2 : 1);
}

static double gpi__formula_bytes(const gpi__placed_formula *placed, const gpi__formula_source *source) {
    double v = (double)placed->rows * (double)placed->columns * (double)placed->items, bytes = 0;
    int i;
    for (i = 0; i <= GPI__RESULT; i++)
        bytes += gpi__formula_operand_bytes(placed, i);
    for (i = 0; i < 2; i++)
        bytes += v * gpi__bits_of(source->matrices[i].dtype) / 8;
    return bytes;
}

/* The kernel of a long prologue, in a text that grows. Those are told from each other by a digest of 64 bits. */
static gemmepi_status gpi__get_printed_kernel(gemmepi_context *context, const char *file, const char *entry,
                                              const gpi__text *prologue, gpi__launch *launch) {
    if (!prologue->data)
        return GEMMEPI_OUT_OF_MEMORY;
    gpi__name_kernel(launch, "%s_%016llx", entry,
                     (unsigned long long)gpi__hash(prologue->data, prologue->length));
    return gpi__get_waiting_kernel(context, file, prologue->data, entry, launch);
}

/* One prologue at a time. */
static gemmepi_status gpi__get_formula_kernels(gemmepi_context *context, const gpi__placed_formula *placed,
                                               const gpi__formula_source *source, gpi__formula_pass *pass) {
    gpi__text text = gpi__growing_text(&context->allocator);
    gemmepi_status status = GEMMEPI_OK;
    if (pass->launch.blocks) {
        gpi__formula_pass_prologue(&text, placed, source,
                                   !source->found        ? 0
                                   : pass->finder.blocks ? GPI__FIND_BY_AMAX
                                                         : GPI__FIND_AT_ONCE);
        status =
            gpi__get_printed_kernel(context, "formula_pass.cu", "gemmepi_formula_pass", &text, &pass->launch);
    }
    if (!status && pass->finder.blocks) {
        text.length = 0;
        gpi__formula_pass_prologue(&text, placed, source, GPI__FIND_AMAX);
        status =
            gpi__get_printed_kernel(context, "formula_pass.cu", "gemmepi_formula_pass", &text, &pass->finder);
    }
    if (!status && pass->finish.blocks) {
        text.length = 0;
        gpi__formula_reduce_prologue(&text, placed, !pass->launch.blocks, pass->finish.threads_x);
        status = gpi__get_printed_kernel(context, "formula_reduce.cu", "gemmepi_formula_reduce", &text,
                                         &pass->finish);
    }
    gpi__delete(&context->allocator, text.data);
    return status;
}

/* Where D's scales are found: in a launch of their own, but of 128 columns that lanes side by side have. */
static void gpi__lay_out_found(const gpi__placed_formula *placed, const gpi__formula_source *source,
                               gpi__formula_pass *pass) {
    int64_t vectors =
        gpi__divide_up(gpi__reduced_columns(placed, &placed->formula->operands[GPI__RESULT]), 128);
    int is_vector = source->found_mode == GEMMEPI_SCALE_VECTOR_128;
    pass->scaled[GPI__RESULT] = 1;
    pass->params.places[GPI__RESULT].scale_stride = source->found_stride;
    if (is_vector && placed->formula->operands[GPI__RESULT].members == 1)
        return;
    pass->finder = pass->launch;
    pass->finder_bytes = gpi__bytes_for(
        gpi__times(gpi__times(placed->rows, placed->items), is_vector ? vectors : 1), sizeof(float));
}

/* Nothing of placed and source is kept. Under the build lock, as all that finds kernels. */
static gemmepi_status gpi__build_formula_pass(gemmepi_context *context, const gpi__placed_formula *placed,
                                              const gpi__formula_source *source, gpi__formula_pass *pass) {
    gpi__state_counts states;
    gemmepi_status status;
    int i;
    memset(pass, 0, sizeof *pass);
    for (i = 0; i <= GPI__RESULT; i++)
        gpi__place_operand(placed, i, pass);
    gpi__place_source(placed, source, &pass->params);
    pass->runs_of = gpi__formula_run_length(placed->formula);
    pass->aligned = gpi__formula_is_aligned(placed, source, pass->runs_of);
    pass->bytes = gpi__formula_bytes(placed, source);
    status = gpi__convert_formula_strides(placed, pass);
    if (!status)
        status = gpi__shape_formula_pass(context, placed, pass);
    states.of_row = states.of_line = pass->params.column_tiles;
    states.lines = pass->params.row_tiles;
    states.span = (int64_t)pass->launch.threads_x * pass->runs_of;
    if (source->found)
        gpi__lay_out_found(placed, source, pass);
    if (!status)
        status = gpi__lay_out_reductions(placed, &states, pass);
    return status ? status : gpi__get_formula_kernels(context, placed, source, pass);
}

/* The end of reductions alone, whose states something else leaves. */
static gemmepi_status gpi__build_reductions(gemmepi_context *context, const gpi__placed_formula *placed,
                                            const gpi__state_counts *states, gpi__formula_pass *pass) {
    gemmepi_status status;
    int i;
    memset(pass, 0, sizeof *pass);
    for (i = 0; i <= GPI__RESULT; i++)
        if (gpi__is_reduced(&placed->formula->operands[i]))
            gpi__place_operand(placed, i, pass);
    status = gpi__lay_out_reductions(placed, states, pass);
    return status ? status : gpi__get_formula_kernels(context, placed, NULL, pass);
}

/* Microseconds. */
static double gpi__formula_pass_microseconds(const gemmepi_context *context,
                                             const gpi__placed_formula *placed,
                                             const gpi__formula_source *source) {
    double bytes = gpi__formula_bytes(placed, source);
    int launches = 1 + gpi__has_reductions(placed->formula, GPI__OF_ANY_SORT);
    if (!gpi__formula_is_aligned(placed, source, gpi__formula_run_length(placed->formula)))
        bytes *= gpi__threads_abreast(placed, source) > 1 ? 1.3 : 2.5; /* of 16 bits, on an H200 */
    return launches * GPI__ANOTHER_LAUNCH + bytes / gpi__memory_rate(context);
}

#endif
