/* A product as every route sees it: row-major, defaults filled in, every rule checked. */
#ifndef GEMMEPI_PROBLEM_PROBLEM_H
#define GEMMEPI_PROBLEM_PROBLEM_H

#include "../kernels/params.h"
#include "../base/memory.h"
#include "../numbers/dtype.h"
#include "epilogue.h"
#include "formula.h"
#include "view.h"

/* The tensors of a product, a row each: what it is called in args and desc, and the flags of an epilogue that want it. Their numbers,
   names and places in args follow, and so does all that goes over a problem's operands: presence, alignment, overlap, keys of plans. */
/* clang-format off */
#define GPI__OPERAND_ROWS(X)                            \
    X(A, a, "")                                             \
    X(B, b, "")                                             \
    X(C, c, "")                                             \
    X(D, d, "")                                             \
    X(AUX, aux, "AUX or BACKWARD")                          \
    X(RESIDUAL, residual, "RESIDUAL")                       \
    X(BIAS, bias, "BIAS")                                   \
    X(BIAS_GRAD, bias_grad, "BGRAD, BGRAD_A or BGRAD_B")    \
    X(SCALE_A, scale_a, "")                                 \
    X(SCALE_B, scale_b, "")                                 \
    X(SCALE_C, scale_c, "")                                 \
    X(SCALE_D, scale_d, "")                                 \
    X(SCALE_AUX, scale_aux, "AUX or BACKWARD")              \
    X(SCALE_RESIDUAL, scale_residual, "RESIDUAL")           \
    X(AMAX_D, amax_d, "")                                   \
    X(AMAX_AUX, amax_aux, "")                               \
    X(FOUND_SCALE_D, found_scale_d, "")                     \
    X(AMAX_HISTORY, amax_history, "")
/* clang-format on */

/* The numbers of all operands. args has no row_factor: D = row_factor[row] * (all that comes before the residual) + residual, of F32. */
#define GPI__OPERAND_NUMBER(NAME, name, rest) GPI__##NAME,
enum { GPI__OPERAND_ROWS(GPI__OPERAND_NUMBER) GPI__ROW_FACTOR, GPI__OPERANDS };

/* Of a problem's flags, not a caller's: D is not stored, bias_grad is what is wanted. */
#define GPI__ONLY_SUMS 0x80000000u
/* Likewise: D is v, in workspace, and a formula follows. */
#define GPI__MAKES_V 0x100000000ull
/* Likewise: amax_d is 0 before the run, and goes to a scale's history, so that it may come of short forms of activations. */
#define GPI__AMAX_TO_HISTORY 0x400000000ull
/* Likewise: the formula is inside the kernel, whose epilogue says where operands are (product/parts/inside.h). */
#define GPI__IS_INSIDE 0x200000000ull

#define GPI__SCALE_OF(matrix) (GPI__SCALE_A + (matrix)) /* of A to RESIDUAL, which stand in the same order */

#define GPI__OPERAND_NAME(NAME, name, rest) #name,
static const char *const gpi__operand_names[GPI__OPERANDS] = {
    GPI__OPERAND_ROWS(GPI__OPERAND_NAME) "row_factor"};

/* Of a grouped product, whose groups are the items of its batch: see problem/grouped.h. */
typedef struct gpi__grouping {
    int32_t groups;          /* 0: it is none */
    int32_t is_of_k;         /* groups are of k, else of rows */
    int32_t gathered;        /* whose rows an index says: bits 1 A, 2 B */
    int32_t scattered;       /* the rows that D has, where an index says which; else 0 */
    int32_t scales_gathered; /* A's rows lie side by side, but its scales do not */
    int32_t rows_a;          /* that A has, where an index says which; else 0 */
} gpi__grouping;

/* A or B that a formula makes of what is stored (problem/made.h). */
typedef struct gpi__made {
    struct gpi__kept_formula *formula; /* whose value is what is stored; NULL: what is stored is multiplied */
    gpi__view view;                    /* what is multiplied, in workspace */
    gpi__view scale; /* and its scales, that are found, as view.scale says; dtype 0: none are */
} gpi__made;

/* Zeroed before it is filled, so that its bytes tell problems apart. */
typedef struct gpi__problem {
    int64_t m, n, k, batch;
    double parameter; /* of the activation */
    uint64_t epilogue;
    uint64_t flags;
    int32_t compute;            /* never DEFAULT */
    int32_t accumulator;        /* F32, F64 or I32 */
    int32_t common;             /* the type that holds both operands' values */
    int32_t exchanged;          /* column-major: a here is the caller's b and the other way round */
    int32_t alignment;          /* bytes, promised for every pointer of a matrix or vector */
    uint32_t used;              /* bit i: the problem has operand i */
    int32_t count;              /* of the operands that it has */
    int8_t list[GPI__OPERANDS]; /* which they are, the outputs first */
    int32_t outputs;            /* how many of them are written */
    int32_t found_scale;        /* the gemmepi_scale_mode of the scales that are found for D; 0: none are */
    int32_t amax_history;       /* with TENSOR: of how many runs there is amax */
    gpi__grouping grouping;
    struct gpi__kept_formula *formula; /* in the epilogue's place; NULL: none */
    gpi__view views[GPI__OPERANDS];
    gpi__made made[2]; /* of A and B, whose views are what is stored then */
} gpi__problem;

static int gpi__has_groups_of_rows(const gpi__problem *problem) {
    return problem->grouping.groups && !problem->grouping.is_of_k;
}

/* Items of D and of what has its rows: groups of rows share one. */
static int64_t gpi__items_of_d(const gpi__problem *problem) {
    return gpi__has_groups_of_rows(problem) ? 1 : problem->batch;
}

static int gpi__has(const gpi__problem *problem, uint64_t flags) {
    return (problem->epilogue & flags) != 0;
}

/* With GATED: how many halves the product's columns are. */
static int gpi__halves_in(const gpi__problem *problem) {
    return gpi__has(problem, GEMMEPI_GATED) && gpi__halves_come_in(problem->epilogue) ? 2 : 1;
}

/* With GATED: how many halves the result's columns are. */
static int gpi__halves_out(const gpi__problem *problem) {
    return gpi__has(problem, GEMMEPI_GATED) && gpi__has(problem, GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM) ? 2 : 1;
}

/* How many columns each half of the product has. */
static int64_t gpi__half_columns(const gpi__problem *problem) {
    return problem->n / gpi__halves_in(problem);
}

/* Whether scales are found for D, which is of fp8. */
static int gpi__finds_scales(const gpi__problem *problem) {
    return GPI__HAS_FP8 && problem->found_scale;
}

/* Whether both operands are of fp8: what tensor cores multiply then has a wider bound, see the manual. */
static int gpi__is_fp8_product(const gpi__problem *problem) {
    return gpi__is_fp8(problem->views[GPI__A].dtype) && gpi__is_fp8(problem->views[GPI__B].dtype);
}

static int gpi__is_i8_product(const gpi__problem *problem) {
    return problem->views[GPI__A].dtype == GEMMEPI_I8 && problem->views[GPI__B].dtype == GEMMEPI_I8;
}

/* Whether formulas make both operands of fp8 or E2M1: engines/block_scales.h is for these. */
static int gpi__is_scaled_product(const gpi__problem *problem) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    return GPI__FORMULA(&problem->made[GPI__A]) && GPI__FORMULA(&problem->made[GPI__B]) &&
           (gpi__is_fp8(a->dtype) || a->dtype == GEMMEPI_E2M1) &&
           (gpi__is_fp8(b->dtype) || b->dtype == GEMMEPI_E2M1);
}

/* Whether both are of 8 bits, which tensor cores multiply as they are, at twice the rate of 16, or scaled. */
static int gpi__is_byte_product(const gpi__problem *problem) {
    return gpi__is_fp8_product(problem) || gpi__is_i8_product(problem) || gpi__is_scaled_product(problem);
}

/* Whether B is weights in I8, or of so few bits that a formula makes 16 of, beside an A of 16 bits: engines/weights.h is for these, and no
   other engine. */
static int gpi__is_of_weights(const gpi__problem *problem) {
    const gpi__view *b = &problem->views[GPI__B];
    int a = problem->views[GPI__A].dtype, is_made = GPI__FORMULA(&problem->made[GPI__B]) && b->bits <= 8;
    return (b->dtype == GEMMEPI_I8 || is_made) && (a == GEMMEPI_BF16 || a == GEMMEPI_F16);
}

static int gpi__is_invariant(const gpi__problem *problem) {
    return (problem->flags & GEMMEPI_BATCH_INVARIANT) != 0;
}

static int64_t gpi__callers_m(const gpi__problem *problem) {
    return problem->exchanged ? problem->n : problem->m;
}

static int64_t gpi__callers_n(const gpi__problem *problem) {
    return problem->exchanged ? problem->m : problem->n;
}

static int gpi__has_operand(const gpi__problem *problem, int operand) {
    return problem->views[operand].dtype != 0;
}

/* I8 operands multiply into exact I32 sums, whatever they become afterwards. */
static int gpi__product_dtype(const gpi__problem *problem) {
    return problem->common == GEMMEPI_I8 ? (int)GEMMEPI_I32 : (int)problem->accumulator;
}

/* Whether the scale of A or B changes along k, so that no factor after the sum can stand for it. */
static int gpi__scale_varies_along_k(const gpi__problem *problem, int operand) {
    return problem->views[operand].scale >= GEMMEPI_SCALE_VECTOR_128;
}

/* The operand that BGRAD_A or BGRAD_B sums for bias_grad, or -1. */
static int gpi__summed_operand(const gpi__problem *problem) {
    return gpi__has(problem, GEMMEPI_BGRAD_A)   ? (int)GPI__A
           : gpi__has(problem, GEMMEPI_BGRAD_B) ? (int)GPI__B
                                                : -1;
}

/* The problem without those sums. */
static gpi__problem gpi__without_sums(const gpi__problem *problem) {
    gpi__problem rest = *problem;
    if (gpi__summed_operand(problem) >= 0) {
        rest.epilogue &= ~(GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD);
        memset(&rest.views[GPI__BIAS_GRAD], 0, sizeof rest.views[GPI__BIAS_GRAD]);
    }
    return rest;
}

/* Whether D has no element. */
static int gpi__is_empty(const gpi__problem *problem) {
    return problem->m == 0 || problem->n == 0;
}

/* Whether nothing has an element that a run would write: an empty D may still have sums over no rows, or of an operand. */
static int gpi__writes_nothing(const gpi__problem *problem) {
    if (!gpi__is_empty(problem) || problem->views[GPI__BIAS_GRAD].bytes)
        return 0;
    if (GPI__FORMULA(problem))
        return !gpi__reduces_nothing(problem->formula);
    return 1;
}

/* Whether D is not stored, for the formula assigns others alone. */
static int gpi__lacks_d(const gpi__problem *problem) {
    return GPI__FORMULA(problem) && !gpi__stores_d(problem->formula);
}

/* The types that a tensor beside a and b may have: bit 1 << dtype. */
#define GPI__MATRIX_TYPES                                                                                   \
    (1u << GEMMEPI_F32 | 1u << GEMMEPI_F16 | 1u << GEMMEPI_BF16 | 1u << GEMMEPI_E4M3 | 1u << GEMMEPI_E5M2 | \
     1u << GEMMEPI_I8)
#define GPI__VECTOR_TYPES (1u << GEMMEPI_F32 | 1u << GEMMEPI_F16 | 1u << GEMMEPI_BF16)

static uint32_t gpi__side_types(const gpi__problem *problem, int operand) {
    if (problem->accumulator != GEMMEPI_F32)
        return 1u << problem->accumulator;
    return operand >= GPI__BIAS ? GPI__VECTOR_TYPES : GPI__MATRIX_TYPES;
}

/* >>where its operands lie */

/* The alignment that a pointer of the view has: the promise, and the element in any case. */
static int32_t gpi__alignment_for(const gpi__problem *problem, const gpi__view *view) {
    int32_t element = view->bits > 8 ? view->bits / 8 : 1;
    return problem->alignment > element ? problem->alignment : element;
}

/* Bytes at whose multiples all that a copy of 16 begins with lies: 16, 8, 4 or, of 16-bit elements, 2. `further`: bytes between
   such beginnings within a line. */
static int gpi__unit_of(const gpi__problem *problem, const gpi__view *view, int64_t further) {
    int64_t of = view->alignment | further;
    int unit = 16;
    if (view->lines > 1)
        of |= view->ld * view->bits / 8;
    if (problem->batch > 1)
        of |= view->batch_stride * view->bits / 8;
    while (of % unit)
        unit /= 2;
    return unit;
}

#define GPI__DEFAULT_ALIGNMENT 16

/* >>the list of its operands */

/* Of an operand that the problem has: whether no pointer of args is it. D's one scale and its amax are the library's own where it finds
   the one from the other. */
static int gpi__is_no_argument(const gpi__problem *problem, int operand) {
    if (operand == GPI__D)
        return gpi__lacks_d(problem);
    return problem->found_scale == GEMMEPI_SCALE_TENSOR &&
           (operand == GPI__SCALE_D || operand == GPI__AMAX_D);
}

static void gpi__list_operands(gpi__problem *problem) {
    int operand, written;
    problem->used = 0;
    problem->count = problem->outputs = 0;
    for (written = 1; written >= 0; written--)
        for (operand = 0; operand < GPI__OPERANDS; operand++)
            if (gpi__has_operand(problem, operand) && problem->views[operand].written == written &&
                !gpi__is_no_argument(problem, operand)) {
                problem->used |= 1u << operand;
                problem->list[problem->count++] = (int8_t)operand;
                problem->outputs += written;
            }
}

/* >>operands that are made */

static int gpi__makes_operands(const gpi__problem *problem) {
    return GPI__HAS_FORMULAS && (problem->made[0].formula || problem->made[1].formula);
}

/* From the caller's order to that of the row-major problem. */
static void gpi__exchange_made(gpi__problem *problem) {
    gpi__made a = problem->made[GPI__A];
    problem->made[GPI__A] = problem->made[GPI__B];
    problem->made[GPI__B] = a;
}

/* Whether A and B are read: a formula that reads no v has no use for them. */
static int gpi__reads_operands(const gpi__problem *problem) {
    return !GPI__FORMULA(problem) || problem->formula->placed.formula->reads_value;
}

/* The product that is left once one of its operands is made, if it is. */
static void gpi__replace_made(gpi__problem *problem, int i) {
    if (!problem->made[i].formula)
        return;
    problem->views[i] = problem->made[i].view;
    problem->views[GPI__SCALE_OF(i)] = problem->made[i].scale;
    if (!problem->found_scale)
        problem->flags &= ~GEMMEPI_POWER_OF_TWO_SCALE;
    memset(&problem->made[i], 0, sizeof problem->made[0]);
    gpi__list_operands(problem);
}

/* And once both are. */
static gpi__problem gpi__problem_of_made(const gpi__problem *problem) {
    gpi__problem own = *problem;
    gpi__replace_made(&own, GPI__A);
    gpi__replace_made(&own, GPI__B);
    return own;
}

/* The formulas that a problem may have: D's, A's and B's. NULL: it has none. */
enum { GPI__FORMULAS = 3 };

static struct gpi__kept_formula **gpi__formula_slot(gpi__problem *problem, int i) {
    return i == 0 ? &problem->formula : &problem->made[i - 1].formula;
}

static struct gpi__kept_formula *gpi__nth_formula(const gpi__problem *problem, int i) {
    return i == 0 ? GPI__FORMULA(problem) : GPI__FORMULA(&problem->made[i - 1]);
}

static void gpi__free_formulas(gpi__problem *problem, const gemmepi_allocator *allocator) {
    int i;
    for (i = 0; i < GPI__FORMULAS; i++) {
        gpi__delete_formula(allocator, *gpi__formula_slot(problem, i));
        *gpi__formula_slot(problem, i) = NULL;
    }
}

/* How many operands desc has for them. */
static int gpi__operands_of_formulas(const gpi__problem *problem) {
    int f, count = 0;
    for (f = 0; f < GPI__FORMULAS; f++)
        if (gpi__nth_formula(problem, f))
            count = (int)gpi__nth_formula(problem, f)->placed.formula->operand_count;
    return count;
}

/* The formula that operand i of desc belongs to: the first that reads or assigns it. NULL: none does. */
static const gpi__kept_formula *gpi__formula_with(const gpi__problem *problem, int i) {
    int f;
    for (f = 0; f < GPI__FORMULAS; f++) {
        const gpi__kept_formula *kept = gpi__nth_formula(problem, f);
        if (kept && kept->placed.formula->operands[i].used)
            return kept;
    }
    return NULL;
}

#endif
