/* What the pass of a formula is made of, and how its kernel takes matrices: extents, strides, alignment. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_SHAPE_H
#define GEMMEPI_ELEMENTWISE_FORMULA_SHAPE_H

#include "../device/launch.h"
#include "../formula/placed.h"
#include "../kernels/params.h"

#define GPI__FORMULA_THREADS     256  /* formula_pass.cu, formula_reduce.cu */
#define GPI__REDUCE_MOST_THREADS 1024 /* formula_reduce.cu */
#define GPI__FORMULA_FEW_STEPS   4    /* rows that a thread takes */
#define GPI__FORMULA_MOST_STEPS  16   /* with reductions over rows, so that fewer states are left */

/* In elements. */
typedef struct gpi__formula_matrix {
    int dtype; /* 0: there is none */
    int scale; /* the mode: NONE, TENSOR or, of its rows, which v alone may have, OUTER */
    int64_t ld, batch_stride, scale_stride;
} gpi__formula_matrix;

/* What a formula has beside its operands. */
typedef struct gpi__formula_source {
    gpi__formula_matrix matrices[2]; /* v, and C, of which beta times as much is added to v */
    int invariant;                   /* rows' bits must not depend on how many there are: BATCH_INVARIANT */
    int64_t alignment;               /* bytes: of all pointers to matrices and to what is PER_COLUMN */
    int found; /* E4M3 or E5M2: D is stored so, by scales that are found. 0: it is stored as the formula says */
    int found_mode;  /* OUTER, one for each row, or VECTOR_128, one for each row and 128 columns */
    int found_power; /* 1: they are powers of two */
    int64_t found_stride;
} gpi__formula_source;

/* What a run of it is given. */
typedef struct gpi__formula_run {
    void *const *operands;      /* by place, D at RESULT; of a NUMBER: to a double on the host */
    const float *const *scales; /* by place, or NULL */
    void *const *
        amax; /* by place, or NULL; set to 0 here; D's also where the pass has a finder, a number for each scale */
    void *matrices[2]; /* v and C */
    const float *matrix_scales[2];
    double beta;
    const double *device_beta; /* instead, where not NULL */
    int uses_c;
    void *states; /* workspace of pass.state_bytes */
} gpi__formula_run;

/* How a kernel finds D's scales: as formula_pass.cu has it. */
enum { GPI__FIND_AT_ONCE = 1, GPI__FIND_AMAX, GPI__FIND_BY_AMAX };

enum { GPI__ROLE_NONE, GPI__ROLE_NUMBER, GPI__ROLE_POINTER, GPI__ROLE_REDUCTION };

typedef struct gpi__formula_pass {
    gpi__launch launch, finish;      /* either may be nothing */
    gpi__launch finder;              /* ahead of them: the amax of which D's scales are made; or nothing */
    size_t finder_bytes;             /* of these */
    gpi__formula_pass_params params; /* all but pointers and scalars */
    gpi__formula_reduce_params reduce_params; /* likewise */
    gpi__formula_strides strides;             /* where is_strided */
    int is_strided;
    int used_count;
    uint8_t used[GPI__FORMULA_PLACES]; /* places that have pointers or numbers, each once */
    uint8_t roles[GPI__FORMULA_PLACES], scaled[GPI__FORMULA_PLACES];
    uint8_t amax[GPI__FORMULA_PLACES]; /* bytes; 0: none */
    size_t state_offsets[GPI__FORMULA_PLACES];
    size_t state_bytes;   /* of workspace */
    int runs_of, aligned; /* for explain: units that a thread takes at once */
    double bytes;         /* moved */
} gpi__formula_pass;

/* >>extents */

/* Columns of the wider of a formula's widths, and units of a row. */
static int64_t gpi__formula_columns(const gpi__placed_formula *placed) {
    const gpi__formula *f = placed->formula;
    return f->n_width == GPI__NARROW ? gpi__members(f, GPI__WIDE) * placed->columns : placed->columns;
}

static int64_t gpi__formula_units(const gpi__placed_formula *placed) {
    return gpi__formula_columns(placed) / gpi__members(placed->formula, GPI__WIDE);
}

static int gpi__is_reduced(const gpi__formula_operand *operand) {
    return operand->output && operand->used && operand->reduction;
}

/* Whether a formula has reductions: GPI__ALONG_ROWS, of each row or of groups in it, OVER_ROWS, of columns or of all, or either. */
enum { GPI__ALONG_ROWS = 1, GPI__OVER_ROWS = 2, GPI__OF_ANY_SORT = 3 };
static int gpi__has_reductions(const gpi__formula *formula, int sorts) {
    int i, has = 0;
    for (i = 0; i < formula->operand_count; i++)
        if (gpi__is_reduced(&formula->operands[i]))
            has |= gpi__has_rows(formula->operands[i].kind) ? GPI__ALONG_ROWS : GPI__OVER_ROWS;
    return (has & sorts) != 0;
}

static gpi__reduction_op gpi__op_of(const gpi__formula_operand *operand) {
    return gpi__reductions[operand->reduction].op;
}

/* Bytes of a state, as formula_reduce.cuh has it; left: by the epilogue of a product. */
static size_t gpi__state_size(const gpi__formula *formula, const gpi__formula_operand *operand, int left) {
    size_t number = formula->accumulator == GEMMEPI_F64 ? 8 : 4;
    switch (gpi__op_of(operand)) {
    case GPI__REDUCE_SUM:
        return left ? number : 8;
    case GPI__REDUCE_LOGSUMEXP:
        return 2 * number;
    case GPI__REDUCE_ARGMAX:
        return number + 8;
    default:
        return number;
    }
}

/* >>any strides */

static int gpi__is_stepped(const gpi__placed_formula *placed, int i) {
    const gpi__formula_operand *o = &placed->formula->operands[i];
    return placed->strides && o->used && o->kind >= GEMMEPI_PER_COLUMN && !gpi__is_reduced(o) &&
           placed->strides->operands[i].column != 1;
}

/* Bits of the places whose columns are not side by side. */
static uint64_t gpi__stepped_places(const gpi__placed_formula *placed) {
    uint64_t stepped = 0;
    int i;
    for (i = 0; i <= GPI__RESULT; i++)
        stepped |= (uint64_t)gpi__is_stepped(placed, i) << i;
    return stepped;
}

/* Whether the kernel for rows of ld and items of one stride does not do. */
static int gpi__is_strided(const gpi__placed_formula *placed) {
    return placed->strides && (placed->strides->axes > 1 || gpi__stepped_places(placed));
}

/* From one row of an operand to the next, as the kernel has it. */
static int64_t gpi__step_of_rows(const gpi__placed_formula *placed, int i) {
    int kind = placed->formula->operands[i].kind;
    if (placed->strides)
        return placed->strides->operands[i].row;
    return kind >= GEMMEPI_FULL ? placed->operands[i].ld : kind == GEMMEPI_PER_ROW;
}

/* Steps of all axes of items or-ed: a multiple of a power of two where all of them are. */
static int64_t gpi__any_step_of_items(const gpi__placed_formula *placed, int i) {
    int64_t steps = 0;
    int d;
    if (!placed->strides)
        return placed->operands[i].batch_stride;
    for (d = 0; d < (int)placed->strides->axes; d++)
        steps |= placed->strides->operands[i].items[d];
    return steps;
}

static int64_t gpi__innermost_step(const gpi__placed_formula *placed, int i) {
    if (!placed->strides)
        return placed->operands[i].batch_stride;
    return placed->strides->axes ? placed->strides->operands[i].items[placed->strides->axes - 1] : 0;
}

static gemmepi_status gpi__convert_formula_strides(const gpi__placed_formula *placed,
                                                   gpi__formula_pass *pass) {
    const gpi__any_strides *from = placed->strides;
    int axes = from ? (int)from->axes : 0, i, d;
    pass->is_strided = gpi__is_strided(placed);
    if (!pass->is_strided)
        return GEMMEPI_OK;
    GPI__UNSUPPORTED_IF(
        axes > GPI__FORMULA_OUTER_AXES + 1,
        "of the axes before the last two %d do not merge with others; formulas on a GPU accept up to %d "
        "of those: make the tensors dense, or of fewer axes",
        axes, GPI__FORMULA_OUTER_AXES + 1);
    for (d = 0; d < GPI__FORMULA_OUTER_AXES; d++)
        pass->strides.extents[d] = d < axes ? from->extents[axes - 1 - d] : 1;
    for (i = 0; i <= GPI__RESULT; i++) {
        pass->strides.steps[i].column = from->operands[i].column;
        for (d = 1; d < axes; d++)
            pass->strides.steps[i].items[d - 1] = from->operands[i].items[axes - 1 - d];
    }
    return GEMMEPI_OK;
}

/* >>how a kernel takes it */

/* Units that a thread takes at once: eight, or four where a unit has much of its own, for which there are registers. */
static int gpi__formula_run_length(const gpi__formula *formula) {
    int i, numbers = formula->reads_value ? 1 : 0;
    if (formula->accumulator == GEMMEPI_F64 || formula->node_count > 96)
        return 4;
    for (i = 0; i <= GPI__RESULT; i++)
        if (formula->operands[i].used && formula->operands[i].kind >= GEMMEPI_PER_COLUMN)
            numbers += gpi__is_reduced(&formula->operands[i]) ? 3 : 1;
    return numbers * gpi__members(formula, GPI__WIDE) <= 8 ? 8 : 4;
}

static int gpi__formula_line_is_aligned(const gpi__formula_source *source, int dtype, int run,
                                        const gpi__kernel_matrix *line) {
    int64_t bits = gpi__bits_of(dtype), unit = bits * run < 128 ? bits * run / 8 : 16;
    return source->alignment % unit == 0 && line->ld * bits / 8 % unit == 0 &&
           line->stride * bits / 8 % unit == 0;
}

/* Whether members of a unit begin at whole runs. */
static int gpi__members_are_aligned(const gpi__placed_formula *placed, int run) {
    const gpi__formula *f = placed->formula;
    if (!f->has_halves || f->mode == GPI__EVEN_ODD)
        return 1;
    return (f->group ? f->group / 2 : gpi__formula_units(placed)) % run == 0;
}

/* Whether all runs that exist whole may be moved whole. */
static int gpi__formula_is_aligned(const gpi__placed_formula *placed, const gpi__formula_source *source,
                                   int run) {
    const gpi__formula *f = placed->formula;
    int64_t several = placed->items > 1;
    gpi__kernel_matrix line;
    int i;
    line.data = NULL;
    if (!gpi__members_are_aligned(placed, run))
        return 0;
    for (i = 0; i <= GPI__RESULT; i++) {
        const gpi__placed_operand *operand = &placed->operands[i];
        if (!(f->operands[i].used & GPI__BY_PLACE) || f->operands[i].kind < GEMMEPI_PER_COLUMN ||
            gpi__is_reduced(&f->operands[i]) || gpi__is_stepped(placed, i) ||
            gpi__is_in_blocks(&f->operands[i], operand))
            continue;
        line.ld = f->operands[i].kind >= GEMMEPI_FULL && placed->rows > 1 ? gpi__step_of_rows(placed, i) : 0;
        line.stride = several * gpi__any_step_of_items(placed, i);
        if (operand->column_period % run ||
            !gpi__formula_line_is_aligned(source, f->operands[i].dtype, run, &line))
            return 0;
    }
    for (i = 0; i < 2; i++) {
        line.ld = placed->rows > 1 ? source->matrices[i].ld : 0;
        line.stride = several * source->matrices[i].batch_stride;
        if (source->matrices[i].dtype &&
            !gpi__formula_line_is_aligned(source, source->matrices[i].dtype, run, &line))
            return 0;
    }
    return 1;
}

/* Threads along columns: a warp at most, but where there are few rows and nothing is reduced, so that none is idle. */
static unsigned gpi__threads_along_columns(const gpi__placed_formula *placed) {
    int64_t runs = gpi__divide_up(gpi__formula_units(placed), gpi__formula_run_length(placed->formula));
    unsigned most = 32, threads = 1;
    while (!gpi__has_reductions(placed->formula, GPI__OF_ANY_SORT) && most < GPI__FORMULA_THREADS &&
           GPI__FORMULA_THREADS / (int64_t)most > placed->rows)
        most *= 2;
    while (threads < most && (int64_t)threads < runs)
        threads *= 2;
    return threads;
}

/* Where lines are not aligned, threads along columns have their first units side by side, then their second ones, and so on. Returns how many
   threads. 1: the units of each thread are side by side, as where something is made of whole runs, or where a row's bits would depend on
   where it is. */
static unsigned gpi__threads_abreast(const gpi__placed_formula *placed, const gpi__formula_source *source) {
    const gpi__formula *f = placed->formula;
    int i;
    if (source->found || f->uses_uniform ||
        gpi__formula_is_aligned(placed, source, gpi__formula_run_length(f)) ||
        (source->invariant && gpi__has_reductions(f, GPI__ALONG_ROWS)))
        return 1;
    for (i = 0; i <= GPI__RESULT; i++)
        if (f->operands[i].used && f->operands[i].kind == GEMMEPI_BLOCKED)
            return 1;
    return gpi__threads_along_columns(placed);
}

#endif
