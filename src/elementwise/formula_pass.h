/* A formula over a finished product, or over any matrix, or over no v at all: kernels/formula_pass.cu, and formula_reduce.cu behind it
   where the formula has reductions. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_PASS_H
#define GEMMEPI_ELEMENTWISE_FORMULA_PASS_H

#include "../device/launch.h"
#include "../device/memory.h"
#include "../formula/emit.h"
#include "../formula/placed.h"
#include "../kernels/params.h"

#define GEMMEPI__FORMULA_THREADS    256 /* formula_pass.cu, formula_reduce.cu */
#define GEMMEPI__FORMULA_FEW_STEPS  4   /* rows that a thread takes */
#define GEMMEPI__FORMULA_MOST_STEPS 16  /* with reductions over rows, so that fewer states are left */

/* Where v comes from. In elements of its type. */
typedef struct gemmepi__formula_source {
    int dtype; /* of v in memory; 0: it is 0 (k is 0), or not read */
    int64_t ld, batch_stride;
    int parts;    /* in which it lies, to be added up; 0 is 1 */
    int64_t part; /* from one to the next, of an item */
    int applied;  /* alpha, beta and C are applied already */
    int c;        /* C's dtype; 0: there is none */
    int64_t c_ld, c_stride;
    int c_scale; /* 1: C has a scale */
    int64_t c_scale_stride;
    int scale_a, scale_b; /* modes of scales that v is yet to be multiplied by: NONE, TENSOR or OUTER */
    int64_t scale_a_stride, scale_b_stride;
    int invariant;     /* rows' bits must not depend on how many there are: BATCH_INVARIANT */
    int64_t alignment; /* bytes: of all pointers to matrices and to what is PER_COLUMN */
} gemmepi__formula_source;

/* What a run of it is given. */
typedef struct gemmepi__formula_run {
    const void *value, *c;
    double alpha, beta;
    const double *device_alpha, *device_beta; /* instead, where not NULL */
    int uses_c;
    void *const *operands;      /* by place, D at RESULT; of a NUMBER: to a double on the host */
    const float *const *scales; /* by place, or NULL */
    void *const *amax;          /* by place, or NULL; set to 0 here */
    const float *scale_a, *scale_b, *scale_c;
    void *states; /* workspace of pass.state_bytes */
} gemmepi__formula_run;

enum { GEMMEPI__ROLE_NONE, GEMMEPI__ROLE_NUMBER, GEMMEPI__ROLE_POINTER, GEMMEPI__ROLE_REDUCTION };

typedef struct gemmepi__formula_pass {
    gemmepi__launch launch, finish;               /* either may be nothing */
    gemmepi__formula_pass_params params;          /* all but pointers and scalars */
    gemmepi__formula_reduce_params reduce_params; /* likewise */
    gemmepi__formula_strides strides;             /* where is_strided */
    int is_strided;
    int used_count;
    uint8_t used[GEMMEPI__FORMULA_PLACES]; /* places that have pointers or numbers, each once */
    uint8_t roles[GEMMEPI__FORMULA_PLACES], scaled[GEMMEPI__FORMULA_PLACES];
    uint8_t amax[GEMMEPI__FORMULA_PLACES]; /* bytes; 0: none */
    size_t state_offsets[GEMMEPI__FORMULA_PLACES];
    size_t state_bytes;   /* of workspace */
    int runs_of, aligned; /* for explain: units that a thread takes at once */
    double bytes;         /* moved */
} gemmepi__formula_pass;

/* >>extents */

/* Columns of the wider of a formula's widths, and units of a row. */
static int64_t gemmepi__formula_columns(const gemmepi__placed_formula *placed) {
    return placed->formula->has_halves && placed->formula->n_width == GEMMEPI__NARROW ? 2 * placed->columns
                                                                                      : placed->columns;
}

static int64_t gemmepi__formula_units(const gemmepi__placed_formula *placed) {
    int64_t columns = gemmepi__formula_columns(placed);
    return placed->formula->has_halves ? columns / 2 : columns;
}

static int gemmepi__is_reduced(const gemmepi__formula_operand *operand) {
    return operand->output && operand->used && operand->reduction;
}

static gemmepi__reduction_op gemmepi__op_of(const gemmepi__formula_operand *operand) {
    return gemmepi__reductions[operand->reduction].op;
}

/* Bytes of a state, as formula_reduce.cuh has it. */
static size_t gemmepi__state_size(const gemmepi__formula *formula, const gemmepi__formula_operand *operand) {
    size_t number = formula->accumulator == GEMMEPI_F64 ? 8 : 4;
    switch (gemmepi__op_of(operand)) {
    case GEMMEPI__REDUCE_SUM:
        return 8;
    case GEMMEPI__REDUCE_LOGSUMEXP:
        return 2 * number;
    case GEMMEPI__REDUCE_ARGMAX:
        return number + 8;
    default:
        return number;
    }
}

/* >>any strides */

static int gemmepi__is_stepped(const gemmepi__placed_formula *placed, int i) {
    const gemmepi__formula_operand *o = &placed->formula->operands[i];
    return placed->strides && o->used && o->kind >= GEMMEPI_PER_COLUMN && !gemmepi__is_reduced(o) &&
           placed->strides->operands[i].column != 1;
}

/* Bits of the places whose columns are not side by side. */
static uint64_t gemmepi__stepped_places(const gemmepi__placed_formula *placed) {
    uint64_t stepped = 0;
    int i;
    for (i = 0; i <= GEMMEPI__RESULT; i++)
        stepped |= (uint64_t)gemmepi__is_stepped(placed, i) << i;
    return stepped;
}

/* Whether the kernel for rows of ld and items of one stride does not do. */
static int gemmepi__is_strided(const gemmepi__placed_formula *placed) {
    return placed->strides && (placed->strides->axes > 1 || gemmepi__stepped_places(placed));
}

/* From one row of an operand to the next, as the kernel has it. */
static int64_t gemmepi__step_of_rows(const gemmepi__placed_formula *placed, int i) {
    int kind = placed->formula->operands[i].kind;
    if (placed->strides)
        return placed->strides->operands[i].row;
    return kind == GEMMEPI_FULL ? placed->operands[i].ld : kind == GEMMEPI_PER_ROW;
}

/* Steps of all axes of items or-ed: a multiple of a power of two where all of them are. */
static int64_t gemmepi__any_step_of_items(const gemmepi__placed_formula *placed, int i) {
    int64_t steps = 0;
    int d;
    if (!placed->strides)
        return placed->operands[i].batch_stride;
    for (d = 0; d < (int)placed->strides->axes; d++)
        steps |= placed->strides->operands[i].items[d];
    return steps;
}

static int64_t gemmepi__innermost_step(const gemmepi__placed_formula *placed, int i) {
    if (!placed->strides)
        return placed->operands[i].batch_stride;
    return placed->strides->axes ? placed->strides->operands[i].items[placed->strides->axes - 1] : 0;
}

static gemmepi_status gemmepi__take_formula_strides(const gemmepi__placed_formula *placed,
                                                    gemmepi__formula_pass *pass) {
    const gemmepi__any_strides *from = placed->strides;
    int axes = from ? (int)from->axes : 0, i, d;
    pass->is_strided = gemmepi__is_strided(placed);
    if (!pass->is_strided)
        return GEMMEPI_OK;
    if (axes > GEMMEPI__FORMULA_OUTER_AXES + 1)
        return gemmepi__fail(
            GEMMEPI_UNSUPPORTED,
            "of the axes before the last two %d do not merge with others; formulas on a GPU take up to %d "
            "of those: make the tensors dense, or of fewer axes",
            axes, GEMMEPI__FORMULA_OUTER_AXES + 1);
    for (d = 0; d < GEMMEPI__FORMULA_OUTER_AXES; d++)
        pass->strides.extents[d] = d < axes ? from->extents[axes - 1 - d] : 1;
    for (i = 0; i <= GEMMEPI__RESULT; i++) {
        pass->strides.steps[i].column = from->operands[i].column;
        for (d = 1; d < axes; d++)
            pass->strides.steps[i].items[d - 1] = from->operands[i].items[axes - 1 - d];
    }
    return GEMMEPI_OK;
}

/* >>how a kernel takes it */

/* Units that a thread takes at once: eight, or four where a unit has much of its own, for which there are registers. */
static int gemmepi__formula_run_length(const gemmepi__formula *formula) {
    int i, numbers = formula->reads_value ? 1 : 0;
    if (formula->accumulator == GEMMEPI_F64 || formula->node_count > 96)
        return 4;
    for (i = 0; i <= GEMMEPI__RESULT; i++)
        if (formula->operands[i].used && formula->operands[i].kind >= GEMMEPI_PER_COLUMN)
            numbers += gemmepi__is_reduced(&formula->operands[i]) ? 3 : 1;
    return numbers * (formula->has_halves ? 2 : 1) <= 8 ? 8 : 4;
}

static int gemmepi__formula_line_is_aligned(const gemmepi__formula_source *source, int dtype, int run,
                                            const gemmepi__kernel_matrix *line) {
    int64_t size = (int64_t)gemmepi__dtype((gemmepi_dtype)dtype)->size,
            unit = size * run < 16 ? size * run : 16;
    return source->alignment % unit == 0 && line->ld * size % unit == 0 && line->stride * size % unit == 0;
}

/* Whether members of a unit begin at whole runs. */
static int gemmepi__members_are_aligned(const gemmepi__placed_formula *placed, int run) {
    const gemmepi__formula *f = placed->formula;
    if (!f->has_halves || f->mode == GEMMEPI__EVEN_ODD)
        return 1;
    return (f->group ? f->group / 2 : gemmepi__formula_units(placed)) % run == 0;
}

/* Whether all runs that exist whole may be moved whole. */
static int gemmepi__formula_is_aligned(const gemmepi__placed_formula *placed,
                                       const gemmepi__formula_source *source, int run) {
    const gemmepi__formula *f = placed->formula;
    int64_t several = placed->items > 1;
    gemmepi__kernel_matrix line;
    int i;
    line.data = NULL;
    if (!gemmepi__members_are_aligned(placed, run))
        return 0;
    for (i = 0; i <= GEMMEPI__RESULT; i++) {
        const gemmepi__placed_operand *operand = &placed->operands[i];
        if (!f->operands[i].used || f->operands[i].kind < GEMMEPI_PER_COLUMN ||
            gemmepi__is_reduced(&f->operands[i]) || gemmepi__is_stepped(placed, i))
            continue;
        line.ld =
            f->operands[i].kind == GEMMEPI_FULL && placed->rows > 1 ? gemmepi__step_of_rows(placed, i) : 0;
        line.stride = several * gemmepi__any_step_of_items(placed, i);
        if (operand->column_period % run ||
            !gemmepi__formula_line_is_aligned(source, f->operands[i].dtype, run, &line))
            return 0;
    }
    line.ld = placed->rows > 1 ? source->ld : 0;
    line.stride = several * source->batch_stride;
    if (f->reads_value && source->dtype &&
        (!gemmepi__formula_line_is_aligned(source, source->dtype, run, &line) ||
         (source->parts > 1 && source->part % run)))
        return 0;
    line.ld = placed->rows > 1 ? source->c_ld : 0;
    line.stride = several * source->c_stride;
    return !f->reads_value || !source->c || source->applied ||
           gemmepi__formula_line_is_aligned(source, source->c, run, &line);
}

/* >>text */

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

/* >>building */

static void gemmepi__place_operand(const gemmepi__placed_formula *placed, int i,
                                   gemmepi__formula_pass *pass) {
    const gemmepi__formula_operand *o = &placed->formula->operands[i];
    const gemmepi__placed_operand *from = &placed->operands[i];
    gemmepi__formula_place *to = &pass->params.places[i];
    if (!o->used)
        return;
    pass->used[pass->used_count++] = (uint8_t)i;
    pass->roles[i] = (uint8_t)(o->kind == GEMMEPI_NUMBER ? GEMMEPI__ROLE_NUMBER
                               : gemmepi__is_reduced(o)  ? GEMMEPI__ROLE_REDUCTION
                                                         : GEMMEPI__ROLE_POINTER);
    pass->scaled[i] = from->scale != 0;
    if (from->amax)
        pass->amax[i] = placed->formula->accumulator == GEMMEPI_F64 ? 8 : 4;
    to->ld = gemmepi__step_of_rows(placed, i);
    to->stride = gemmepi__innermost_step(placed, i);
    to->row_period = from->row_period;
    to->column_period = from->column_period;
    to->scale_stride = from->scale_stride;
}

static void gemmepi__place_source(const gemmepi__placed_formula *placed,
                                  const gemmepi__formula_source *source,
                                  gemmepi__formula_pass_params *params) {
    params->value.ld = source->ld;
    params->value.stride = source->batch_stride;
    params->part = source->part;
    params->c.ld = source->c_ld;
    params->c.stride = source->c_stride;
    params->scale_a.stride = source->scale_a_stride;
    params->scale_b.stride = source->scale_b_stride;
    params->scale_c.stride = source->c_scale_stride;
    params->rows = placed->rows;
    params->units = gemmepi__formula_units(placed);
    params->columns = gemmepi__formula_columns(placed);
    params->depth = placed->depth;
}

static int gemmepi__has_reductions(const gemmepi__formula *formula) {
    int i;
    for (i = 0; i < formula->operand_count; i++)
        if (gemmepi__is_reduced(&formula->operands[i]))
            return 1;
    return 0;
}

/* Threads along columns: a warp at most, but where there are few rows and nothing is reduced, so that none is idle. */
static unsigned gemmepi__most_threads_along_columns(const gemmepi__placed_formula *placed) {
    unsigned most = 32;
    while (!gemmepi__has_reductions(placed->formula) && most < GEMMEPI__FORMULA_THREADS &&
           GEMMEPI__FORMULA_THREADS / (int64_t)most > placed->rows)
        most *= 2;
    return most;
}

static int gemmepi__reduces_rows(const gemmepi__formula *formula) {
    int i;
    for (i = 0; i < formula->operand_count; i++)
        if (gemmepi__is_reduced(&formula->operands[i]) && formula->operands[i].kind != GEMMEPI_PER_ROW)
            return 1;
    return 0;
}

/* Tiles of rows and columns. Threads take more rows as long as every multiprocessor still has four blocks, or a grid too many. */
static gemmepi_status gemmepi__shape_formula_pass(const gemmepi_context *context,
                                                  const gemmepi__placed_formula *placed, int run,
                                                  gemmepi__formula_pass *pass) {
    int64_t chunks = gemmepi__divide_up(pass->params.units, run), column_tiles, row_tiles, tiles;
    int64_t most =
        gemmepi__reduces_rows(placed->formula) ? GEMMEPI__FORMULA_MOST_STEPS : GEMMEPI__FORMULA_FEW_STEPS;
    unsigned threads_x = 1, threads_y, most_x = gemmepi__most_threads_along_columns(placed);
    int64_t steps;
    while (threads_x < most_x && (int64_t)threads_x < chunks)
        threads_x *= 2;
    threads_y = GEMMEPI__FORMULA_THREADS / threads_x;
    column_tiles = gemmepi__divide_up(chunks, (int64_t)threads_x);
    for (steps = 1;; steps *= 2) {
        row_tiles = gemmepi__divide_up(placed->rows, threads_y * steps);
        tiles = gemmepi__times(gemmepi__times(column_tiles, row_tiles), placed->items);
        if (tiles <= INT_MAX && (steps >= most || tiles < 8 * (int64_t)context->multiprocessors))
            break;
        if (steps > INT_MAX / 4)
            return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
    }
    pass->params.row_steps = (int)steps;
    pass->params.row_tiles = (unsigned)row_tiles;
    pass->params.column_tiles = (unsigned)column_tiles;
    pass->launch.blocks = (unsigned)tiles;
    pass->launch.threads_x = threads_x;
    pass->launch.threads_y = threads_y;
    return GEMMEPI_OK;
}

/* Where the states of a reduction lie, and what is made of them. */
static void gemmepi__lay_out_reduction(const gemmepi__placed_formula *placed, int i,
                                       const gemmepi__formula_pass_params *params,
                                       gemmepi__formula_reduction *reduction) {
    const gemmepi__formula_operand *o = &placed->formula->operands[i];
    int64_t row_tiles = params->row_tiles, column_tiles = params->column_tiles, items = placed->items;
    int shared = o->kind != GEMMEPI_PER_ROW && placed->operands[i].batch_stride == 0;
    reduction->groups = shared ? items > 0 : items;
    reduction->out_stride = placed->operands[i].batch_stride;
    reduction->is_along_lines = o->kind != GEMMEPI_PER_COLUMN;
    reduction->result_step = reduction->line_step = reduction->out_step = 1;
    if (placed->strides && o->kind != GEMMEPI_SCALAR)
        reduction->out_step = o->kind == GEMMEPI_PER_ROW ? placed->strides->operands[i].row
                                                         : placed->strides->operands[i].column;
    if (o->kind == GEMMEPI_PER_ROW) {
        reduction->count = placed->rows;
        reduction->lines = reduction->result_step = column_tiles;
        reduction->group_step = gemmepi__times(placed->rows, column_tiles);
        return;
    }
    reduction->count = 1;
    reduction->lines = gemmepi__times(row_tiles, shared ? items : 1);
    if (o->kind == GEMMEPI_PER_COLUMN)
        reduction->count = reduction->line_step = params->units * o->members;
    else
        reduction->lines = gemmepi__times(reduction->lines, column_tiles);
    reduction->group_step = gemmepi__times(reduction->lines, reduction->line_step);
}

/* Threads of a result: where its states lie side by side one for each 16, a block's at most; where results do one for each four, 16 at
   most, so that a warp reads whole sectors. */
static gemmepi_status gemmepi__share_out_reduction(gemmepi__formula_reduction *reduction, int64_t *blocks) {
    unsigned most = reduction->is_along_lines ? GEMMEPI__FORMULA_THREADS : 16;
    int64_t each = reduction->is_along_lines ? 16 : 4;
    int64_t results = gemmepi__times(reduction->groups, reduction->count), mine;
    reduction->lanes = 1;
    while (reduction->lanes < most && each * (int64_t)reduction->lanes < reduction->lines)
        reduction->lanes *= 2;
    mine = gemmepi__divide_up(results, GEMMEPI__FORMULA_THREADS / (int64_t)reduction->lanes);
    if (*blocks + mine > INT_MAX)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "reductions have more results than a grid has blocks for");
    reduction->first_block = (unsigned)*blocks;
    reduction->blocks = (unsigned)mine;
    *blocks += mine;
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__lay_out_reductions(const gemmepi__placed_formula *placed,
                                                  gemmepi__formula_pass *pass) {
    int64_t blocks = 0, count;
    int i;
    for (i = 0; i < placed->formula->operand_count; i++) {
        gemmepi__formula_reduction *reduction = &pass->reduce_params.reductions[i];
        gemmepi_status status;
        size_t bytes;
        if (pass->roles[i] != GEMMEPI__ROLE_REDUCTION)
            continue;
        gemmepi__lay_out_reduction(placed, i, &pass->params, reduction);
        status = gemmepi__share_out_reduction(reduction, &blocks);
        if (status)
            return status;
        count = gemmepi__times(reduction->groups, reduction->group_step);
        bytes =
            gemmepi__bytes_for(count, gemmepi__state_size(placed->formula, &placed->formula->operands[i]));
        pass->state_offsets[i] = pass->state_bytes;
        pass->state_bytes += gemmepi__round_up(bytes, 256);
    }
    pass->finish.blocks = (unsigned)blocks;
    pass->finish.threads_x = GEMMEPI__FORMULA_THREADS;
    pass->finish.threads_y = 1;
    return GEMMEPI_OK;
}

/* Its bytes in memory, each read or written once. */
static double gemmepi__formula_operand_bytes(const gemmepi__placed_formula *placed, int i) {
    const gemmepi__formula *f = placed->formula;
    const gemmepi__formula_operand *o = &f->operands[i];
    const gemmepi__placed_operand *at = &placed->operands[i];
    double rows = (double)(at->row_period ? at->row_period : placed->rows);
    double columns = (double)gemmepi__formula_units(placed) * o->members;
    double count = o->kind == GEMMEPI_FULL         ? rows * columns
                   : o->kind == GEMMEPI_PER_ROW    ? rows
                   : o->kind == GEMMEPI_PER_COLUMN ? columns
                                                   : 1;
    if (!o->used || o->kind == GEMMEPI_NUMBER)
        return 0;
    if (at->column_period && o->kind == GEMMEPI_FULL)
        count = rows * (double)at->column_period;
    return count * (double)gemmepi__dtype((gemmepi_dtype)o->dtype)->size *
           (at->batch_stride ? (double)placed->items : 1) * (o->accumulate ? 2 : 1);
}

static double gemmepi__formula_bytes(const gemmepi__placed_formula *placed,
                                     const gemmepi__formula_source *source) {
    const gemmepi__formula *f = placed->formula;
    double v = (double)placed->rows * (double)placed->columns * (double)placed->items, bytes = 0;
    int i;
    for (i = 0; i <= GEMMEPI__RESULT; i++)
        bytes += gemmepi__formula_operand_bytes(placed, i);
    if (f->reads_value)
        bytes += v * (double)gemmepi__dtype((gemmepi_dtype)source->dtype)->size *
                 (source->parts > 1 ? source->parts : 1);
    if (f->reads_value && !source->applied)
        bytes += v * (double)gemmepi__dtype((gemmepi_dtype)source->c)->size;
    return bytes;
}

/* Long prologues and names are told from each other by a digest of 64 bits. */
static gemmepi_status gemmepi__get_formula_kernel(gemmepi_context *context, const char *file,
                                                  const char *entry, const gemmepi__text *prologue,
                                                  gemmepi__launch *launch) {
    gemmepi__name_kernel(launch, "%s_%016llx", entry,
                         (unsigned long long)gemmepi__hash(prologue->data, prologue->length));
    return gemmepi__get_waiting_kernel(context, file, prologue->data, entry, launch);
}

/* Both prologues, from the allocator, one at a time. */
static gemmepi_status gemmepi__get_formula_kernels(gemmepi_context *context,
                                                   const gemmepi__placed_formula *placed,
                                                   const gemmepi__formula_source *source,
                                                   gemmepi__formula_pass *pass) {
    gemmepi__text counted = gemmepi__text_in(NULL, 0), text;
    gemmepi_status status = GEMMEPI_OK;
    char *data;
    gemmepi__formula_pass_prologue(&counted, placed, source);
    gemmepi__formula_reduce_prologue(&counted, placed);
    data = (char *)gemmepi__new(&context->allocator, counted.length + 1);
    if (!data)
        return GEMMEPI_OUT_OF_MEMORY;
    if (pass->launch.blocks) {
        text = gemmepi__text_in(data, counted.length + 1);
        gemmepi__formula_pass_prologue(&text, placed, source);
        status = gemmepi__get_formula_kernel(context, "formula_pass.cu", "gemmepi_formula_pass", &text,
                                             &pass->launch);
    }
    if (!status && pass->finish.blocks) {
        text = gemmepi__text_in(data, counted.length + 1);
        gemmepi__formula_reduce_prologue(&text, placed);
        status = gemmepi__get_formula_kernel(context, "formula_reduce.cu", "gemmepi_formula_reduce", &text,
                                             &pass->finish);
    }
    gemmepi__delete(&context->allocator, data);
    return status;
}

/* Nothing of placed and source is kept. Under the build lock, as all that finds kernels. */
static gemmepi_status gemmepi__build_formula_pass(gemmepi_context *context,
                                                  const gemmepi__placed_formula *placed,
                                                  const gemmepi__formula_source *source,
                                                  gemmepi__formula_pass *pass) {
    gemmepi_status status;
    int i;
    memset(pass, 0, sizeof *pass);
    for (i = 0; i <= GEMMEPI__RESULT; i++)
        gemmepi__place_operand(placed, i, pass);
    gemmepi__place_source(placed, source, &pass->params);
    pass->runs_of = gemmepi__formula_run_length(placed->formula);
    pass->aligned = gemmepi__formula_is_aligned(placed, source, pass->runs_of);
    pass->bytes = gemmepi__formula_bytes(placed, source);
    status = gemmepi__take_formula_strides(placed, pass);
    if (!status)
        status = gemmepi__shape_formula_pass(context, placed, pass->runs_of, pass);
    if (!status)
        status = gemmepi__lay_out_reductions(placed, pass);
    return status ? status : gemmepi__get_formula_kernels(context, placed, source, pass);
}

/* The end of reductions over rows alone, whose states something else leaves: so many of each row. */
static gemmepi_status gemmepi__build_reductions(gemmepi_context *context,
                                                const gemmepi__placed_formula *placed,
                                                const gemmepi__formula_source *source, unsigned states,
                                                gemmepi__formula_pass *pass) {
    gemmepi_status status;
    int i;
    memset(pass, 0, sizeof *pass);
    for (i = 0; i <= GEMMEPI__RESULT; i++)
        if (gemmepi__is_reduced(&placed->formula->operands[i]))
            gemmepi__place_operand(placed, i, pass);
    gemmepi__place_source(placed, source, &pass->params);
    pass->params.row_tiles = 1;
    pass->params.column_tiles = states;
    status = gemmepi__lay_out_reductions(placed, pass);
    return status ? status : gemmepi__get_formula_kernels(context, placed, source, pass);
}

/* Microseconds. */
static double gemmepi__formula_pass_microseconds(const gemmepi_context *context,
                                                 const gemmepi__placed_formula *placed,
                                                 const gemmepi__formula_source *source) {
    double bytes = gemmepi__formula_bytes(placed, source), launches = GEMMEPI__ANOTHER_LAUNCH;
    int i, run = gemmepi__formula_run_length(placed->formula);
    for (i = 0; i < placed->formula->operand_count; i++)
        if (gemmepi__is_reduced(&placed->formula->operands[i]))
            launches = GEMMEPI__ANOTHER_LAUNCH + GEMMEPI__SUM_LAUNCH;
    if (!gemmepi__formula_is_aligned(placed, source, run))
        bytes *= 1.8; /* as the pass of compositions */
    return launches + bytes / gemmepi__memory_rate(context);
}

/* >>running */

static void *gemmepi__given(void *const *list, int i) {
    return list ? list[i] : NULL;
}

static gemmepi_status gemmepi__clear_formula_amax(const gemmepi_context *context,
                                                  const gemmepi__formula_pass *pass,
                                                  const gemmepi__formula_run *run, gemmepi_stream stream) {
    int u, result = 0;
    for (u = 0; u < pass->used_count && !result; u++) {
        int i = pass->used[u];
        if (pass->amax[i])
            result = context->driver.memset_d8_async((gemmepi__cu_deviceptr)(uintptr_t)run->amax[i], 0,
                                                     pass->amax[i], (gemmepi__cu_stream)stream);
    }
    return result ? gemmepi__cuda_failed(&context->driver, result, "clearing amax") : GEMMEPI_OK;
}

/* Returns the states of a place; NULL where there are none, as of reductions over nothing. */
static void *gemmepi__states_of(const gemmepi__formula_pass *pass, char *states, int i) {
    return states ? states + pass->state_offsets[i] : NULL;
}

static void gemmepi__point_operand(const gemmepi__formula_run *run, const gemmepi__formula_pass *pass, int i,
                                   gemmepi__formula_place *place) {
    if (pass->roles[i] == GEMMEPI__ROLE_NUMBER)
        place->number = *(const double *)run->operands[i];
    else if (pass->roles[i] == GEMMEPI__ROLE_POINTER)
        place->data = run->operands[i];
    else if (pass->roles[i] == GEMMEPI__ROLE_REDUCTION)
        place->data = gemmepi__states_of(pass, (char *)run->states, i);
    place->scale = pass->scaled[i] ? run->scales[i] : NULL;
    place->amax = pass->amax[i] ? gemmepi__given(run->amax, i) : NULL;
}

static void gemmepi__point_source(const gemmepi__formula_run *run, gemmepi__formula_pass_params *params) {
    memcpy(&params->value.data, &run->value, sizeof(void *));
    memcpy(&params->c.data, &run->c, sizeof(void *));
    params->scale_a.data = run->scale_a;
    params->scale_b.data = run->scale_b;
    params->scale_c.data = run->scale_c;
    params->device_alpha = run->device_alpha;
    params->device_beta = run->device_beta;
    params->alpha = run->alpha;
    params->beta = run->beta;
    params->uses_c = run->uses_c;
}

static gemmepi_status gemmepi__launch_formula_pass(const gemmepi_context *context,
                                                   const gemmepi__formula_pass *pass,
                                                   const gemmepi__formula_run *run, gemmepi_stream stream) {
    gemmepi__strided_formula_params strided;
    int u;
    strided.pass = pass->params;
    gemmepi__point_source(run, &strided.pass);
    for (u = 0; u < pass->used_count; u++)
        gemmepi__point_operand(run, pass, pass->used[u], &strided.pass.places[pass->used[u]]);
    if (pass->is_strided)
        strided.strides = pass->strides;
    return gemmepi__launch_kernel(context, &pass->launch,
                                  pass->is_strided ? (void *)&strided : (void *)&strided.pass, "the formula",
                                  stream);
}

static gemmepi_status gemmepi__launch_reductions(const gemmepi_context *context,
                                                 const gemmepi__formula_pass *pass,
                                                 const gemmepi__formula_run *run, gemmepi_stream stream) {
    gemmepi__formula_reduce_params params = pass->reduce_params;
    gemmepi__formula_place place;
    int u;
    for (u = 0; u < pass->used_count; u++) {
        int i = pass->used[u];
        if (pass->roles[i] != GEMMEPI__ROLE_REDUCTION)
            continue;
        gemmepi__point_operand(run, pass, i, &place);
        params.reductions[i].states = place.data;
        params.reductions[i].out = run->operands[i];
        params.reductions[i].scale = place.scale;
        params.reductions[i].amax = place.amax;
    }
    return gemmepi__launch_kernel(context, &pass->finish, &params, "a formula's reductions", stream);
}

static gemmepi_status gemmepi__run_formula_pass(const gemmepi_context *context,
                                                const gemmepi__formula_pass *pass,
                                                const gemmepi__formula_run *run, gemmepi_stream stream) {
    gemmepi_status status = gemmepi__clear_formula_amax(context, pass, run, stream);
    if (!status && pass->launch.function)
        status = gemmepi__launch_formula_pass(context, pass, run, stream);
    if (!status && pass->finish.function)
        status = gemmepi__launch_reductions(context, pass, run, stream);
    return status;
}

/* >>in words */

/* before: what it does before the formula */
static void gemmepi__explain_formula_pass(gemmepi__text *text, const gemmepi__formula_pass *pass,
                                          const char *before) {
    if (pass->launch.function)
        gemmepi__append(text, "  %s: %sthe formula, %u blocks of %u x %u threads, %d columns%s at once%s\n",
                        pass->launch.name, before, pass->launch.blocks, pass->launch.threads_x,
                        pass->launch.threads_y, pass->runs_of, pass->aligned ? "" : " (not aligned)",
                        pass->is_strided ? ", by strides" : "");
    if (pass->finish.function)
        gemmepi__append(text, "  %s: reductions in a fixed order, %u blocks, %.0f bytes of states\n",
                        pass->finish.name, pass->finish.blocks, (double)pass->state_bytes);
}

#endif
