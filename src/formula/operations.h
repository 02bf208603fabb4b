/* What formulas are made of: a row for each operator, function and reduction. */
#ifndef GEMMEPI_FORMULA_OPERATIONS_H
#define GEMMEPI_FORMULA_OPERATIONS_H

#include "../numbers/activation.h"

#ifdef GEMMEPI_NO_HOST
#define GPI__ON_HOST(function) NULL
#else
#define GPI__ON_HOST(function) function
#endif

/* X(name, as text, arguments at least and at most, precedence (9: a function), traits, the host's function of one number, what kernels
   compute of x, y and z, errors in units in the last place of F32 and F64 (CUDA's documentation; 0.5: rounded once, 0: exact),
   cycles as gpi__inside_cycles() counts them, derivatives with respect to x, y and z, as formulas of these, the result r and the
   upstream g). Functions of a host's function are monotone. */
/* clang-format off */
#define GPI__FORMULA_OPERATIONS(X)                                                                                         \
    X(SELECT,  "?:",      3, 3, 1, GPI__WHOLE_TOO, NULL, "x ? y : z", 0, 0, 2, "0", "x ? g : 0", "x ? 0 : g")              \
    X(OR,      "||",      2, 2, 2, GPI__WHOLE_TOO | GPI__IS_TRUTH, NULL, "x || y", 0, 0, 2, "0", "0", NULL)            \
    X(AND,     "&&",      2, 2, 3, GPI__WHOLE_TOO | GPI__IS_TRUTH, NULL, "x && y", 0, 0, 2, "0", "0", NULL)            \
    X(EQ,      "==",      2, 2, 4, GPI__COMPARES, NULL, "x == y", 0, 0, 2, "0", "0", NULL)                                 \
    X(NE,      "!=",      2, 2, 4, GPI__COMPARES, NULL, "x != y", 0, 0, 2, "0", "0", NULL)                                 \
    X(LT,      "<",       2, 2, 5, GPI__COMPARES, NULL, "x < y", 0, 0, 2, "0", "0", NULL)                                  \
    X(LE,      "<=",      2, 2, 5, GPI__COMPARES, NULL, "x <= y", 0, 0, 2, "0", "0", NULL)                                 \
    X(GT,      ">",       2, 2, 5, GPI__COMPARES, NULL, "x > y", 0, 0, 2, "0", "0", NULL)                                  \
    X(GE,      ">=",      2, 2, 5, GPI__COMPARES, NULL, "x >= y", 0, 0, 2, "0", "0", NULL)                                 \
    X(ADD,     "+",       2, 2, 6, GPI__WHOLE_TOO, NULL, "x + y", 0.5, 0.5, 2, "g", "g", NULL)                             \
    X(SUB,     "-",       2, 2, 6, GPI__WHOLE_TOO, NULL, "x - y", 0.5, 0.5, 2, "g", "-g", NULL)                            \
    X(MUL,     "*",       2, 2, 7, GPI__WHOLE_TOO, NULL, "x * y", 0.5, 0.5, 2, "g * y", "g * x", NULL)                     \
    X(DIV,     "/",       2, 2, 7, 0, NULL, "x / y", 0.5, 0.5, 20, "g / y", "-(g * r / y)", NULL)                              \
    X(NEG,     "-",       1, 1, 8, GPI__WHOLE_TOO, NULL, "-x", 0, 0, 2, "-g", NULL, NULL)                                  \
    X(NOT,     "!",       1, 1, 8, GPI__WHOLE_TOO | GPI__IS_TRUTH, NULL, "!x", 0, 0, 2, "0", NULL, NULL)               \
    X(ABS,     "abs",     1, 1, 9, 0, NULL, "fabs(x)", 0, 0, 2, "g * sign(x)", NULL, NULL)                      \
    X(SIGN,    "sign",    1, 1, 9, 0, gpi__sign, "x > 0 ? 1 : x < 0 ? -1 : x", 0, 0, 4, "0", NULL, NULL)                       \
    X(MIN,     "min",     2, 2, 9, GPI__WHOLE_TOO, NULL, "formula_min(x, y)", 0, 0, 2,                                     \
      "x < y ? g : x == y ? 0.5 * g : 0", "y < x ? g : x == y ? 0.5 * g : 0", NULL)                                            \
    X(MAX,     "max",     2, 2, 9, GPI__WHOLE_TOO, NULL, "formula_max(x, y)", 0, 0, 2,                                     \
      "x > y ? g : x == y ? 0.5 * g : 0", "y > x ? g : x == y ? 0.5 * g : 0", NULL)                                            \
    X(CLAMP,   "clamp",   3, 3, 9, 0, NULL, "formula_min(formula_max(x, y), z)", 0, 0, 4, "x >= y && x <= z ? g : 0",          \
      "x < y && y <= z ? g : 0", "x > z || y > z ? g : 0")                                                                     \
    X(EXP,     "exp",     1, 1, 9, 0, exp, "exp(x)", 2, 1, 14, "g * r", NULL, NULL)                                            \
    X(EXP2,    "exp2",    1, 1, 9, 0, exp2, "exp2(x)", 2, 1, 12, "g * r * 0.69314718055994531", NULL, NULL)                    \
    X(EXPM1,   "expm1",   1, 1, 9, 0, expm1, "expm1(x)", 1, 1, 24, "g * exp(x)", NULL, NULL)                                   \
    X(LOG,     "log",     1, 1, 9, 0, log, "log(x)", 1, 1, 22, "g / x", NULL, NULL)                                            \
    X(LOG2,    "log2",    1, 1, 9, 0, log2, "log2(x)", 1, 1, 20, "g * 1.4426950408889634 / x", NULL, NULL)                     \
    X(LOG1P,   "log1p",   1, 1, 9, 0, log1p, "log1p(x)", 1, 1, 26, "g / (1 + x)", NULL, NULL)                                  \
    X(POW,     "pow",     2, 2, 9, 0, NULL, "pow(x, y)", 9, 2, 90, "y == 0 ? 0 : g * y * pow(x, y - 1)",                       \
      "x == 0 && y >= 0 ? 0 : g * r * log(x)", NULL)                                                                           \
    X(SQRT,    "sqrt",    1, 1, 9, 0, sqrt, "sqrt(x)", 0.5, 0.5, 18, "0.5 * g / r", NULL, NULL)                                \
    X(RSQRT,   "rsqrt",   1, 1, 9, 0, gpi__rsqrt, "rsqrt(x)", 2, 1, 16, "-0.5 * g * r / x", NULL, NULL)                    \
    X(SIN,     "sin",     1, 1, 9, GPI__WAVES, sin, "formula_sin(x, in.is_near, out.is_far)", 2, 2, 44, "g * cos(x)", NULL, NULL)                  \
    X(COS,     "cos",     1, 1, 9, GPI__WAVES, cos, "formula_cos(x, in.is_near, out.is_far)", 2, 2, 44, "-(g * sin(x))", NULL, NULL)               \
    X(ATAN,    "atan",    1, 1, 9, 0, atan, "atan(x)", 2, 2, 40, "g / (1 + x * x)", NULL, NULL)                                \
    X(SINH,    "sinh",    1, 1, 9, 0, sinh, "sinh(x)", 3, 2, 40, "g * cosh(x)", NULL, NULL)                                    \
    X(ERFC,    "erfc",    1, 1, 9, 0, erfc, "erfc(x)", 4, 5, 50, "-1.1283791670955126 * g * exp(-(x * x))", NULL, NULL)        \
    X(ERF,     "erf",     1, 1, 9, 0, erf, "erf(x)", 2, 2, 30, "g * 1.1283791670955126 * exp(-(x * x))", NULL, NULL)           \
    X(FLOOR,   "floor",   1, 1, 9, GPI__HAS_0, floor, "floor(x)", 0, 0, 8, "0", NULL, NULL)                                \
    X(ROUND,   "round",   1, 1, 9, GPI__HAS_0, rint, "rint(x)", 0, 0, 8, "0", NULL, NULL)                                  \
    X(MOD,     "mod",     2, 2, 9, 0, NULL, "fmod(x, y)", 0, 0, 60, "g", "g * (r - x) / y", NULL)                              \
    X(FMA,     "fma",     3, 3, 9, 0, NULL, "fma(x, y, z)", 0.5, 0.5, 2, "g * y", "g * x", "g")                                \
    X(ISNAN,   "isnan",   1, 1, 9, GPI__IS_TRUTH, NULL, "x != x", 0, 0, 2, "0", NULL, NULL)                                \
    X(ROUNDED, "rounded", 1, 1, 9, 0, NULL, "formula_rounded(x, in.scale_d)", 0, 0, 4, "g", NULL, NULL)                                    \
    X(UNIFORM, "uniform", 2, 2, 9, GPI__HAS_0, NULL, NULL, 0, 0, 20, "0", "0", NULL)                                       \
    X(STOCHASTIC, "stochastic", 2, 3, 9, 0, NULL, NULL, 0, 0, 36, "g", "0", "0") /* node.place: the output's dtype */         \
    X(LOOK_UP, "[]",      1, 1, 9, GPI__WHOLE_TOO, NULL, NULL, 0, 0, 10, "0", NULL, NULL) /* node.place: the table */         \
    X(ACTIVATE, "",       1, 2, 9, 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL)                               \
    X(DERIVE,  "d_",      1, 2, 9, 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL)                                 \
    X(GATE,    "",        2, 2, 9, 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL) /* x times the activation of y; node.number: its parameter, in kernels `in.parameter` */ \
    X(GRADIENT, "",       2, 3, 9, 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL) /* x, times the derivative at y, times z */ \
    X(PART,    "part",    1, 3, 9, GPI__WHOLE_TOO, NULL, "x", 0, 0, 0, NULL, NULL, NULL)                                   \
    X(JOIN,    "parts",   2, 2, 9, GPI__WHOLE_TOO, NULL, "x", 0, 0, 0, NULL, NULL, NULL)
/* clang-format on */

enum {
    GPI__WHOLE_TOO = 1, /* goes with results in I32 */
    GPI__IS_TRUTH = 2,  /* the result is 0 or 1 */
    GPI__COMPARES = 7,  /* so is it, and jumps where x is y */
    GPI__WAVES = 8,     /* not monotone, of slope 1 at most */
    GPI__HAS_0 = 16     /* the derivative is 0, which a comment says */
};

/* The leaves of a graph come first. */
#define GPI__OP_NAME(name, text, least, most, precedence, traits, host, device, f32, f64, cycles, dx, dy, \
                     dz)                                                                                  \
    GPI__OP_##name,
typedef enum gpi__op {
    GPI__OP_NUMBER,   /* node.number */
    GPI__OP_VALUE,    /* v */
    GPI__OP_OPERAND,  /* node.place */
    GPI__OP_INDEX,    /* row and so on: node.place */
    GPI__OP_UPSTREAM, /* dy of the output node.place, of gradients that are being made */
    GPI__LEAVES,
    GPI__BEFORE_OPERATIONS = GPI__LEAVES - 1,
    GPI__FORMULA_OPERATIONS(GPI__OP_NAME) GPI__OPS
} gpi__op;
#undef GPI__OP_NAME

typedef struct gpi__operation_of_formula {
    const char *name;
    int least, most, precedence, traits;
    double (*host)(double x);
    const char *device;
    double ulps_f32, ulps_f64;
    int cycles;
    const char *derivatives[3];
} gpi__operation_of_formula;

#ifndef GEMMEPI_NO_HOST
static double gpi__sign(double x) {
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static double gpi__rsqrt(double x) {
    return 1 / sqrt(x);
}
#endif

#define GPI__OP_ROW(name, text, least, most, precedence, traits, host, device, f32, f64, cycles, dx, dy, dz) \
    {text, least, most, precedence, traits, GPI__ON_HOST(host), device, f32, f64, cycles, {dx, dy, dz}},
static const gpi__operation_of_formula gpi__formula_operations[] = {GPI__FORMULA_OPERATIONS(GPI__OP_ROW)};
#undef GPI__OP_ROW

/* The i of stochastic() that has none: 0 and so on are left to uniform(). */
#define GPI__STOCHASTIC_STREAM 4294967295.0

/* Whether it draws random numbers: the argument that is its seed, before i; -1: no. */
static int gpi__seed_argument(int op) {
    return op == GPI__OP_UNIFORM ? 0 : op == GPI__OP_STOCHASTIC ? 1 : -1;
}

/* Whether it is made with an activation or its derivative: node.place says which. */
static int gpi__is_of_activation(int op) {
    return op >= GPI__OP_ACTIVATE && op <= GPI__OP_GRADIENT;
}

/* Of an op that is no leaf. */
static const gpi__operation_of_formula *gpi__operation_of(int op) {
    return &gpi__formula_operations[op - GPI__LEAVES];
}

/* Which columns belong together in a formula with halves, or with more parts. */
enum { GPI__NO_HALVES, GPI__LEFT_RIGHT, GPI__EVEN_ODD };

/* What functions that divide columns, and join what is divided, are called: the first three rows of a mode those of two parts. */
static const struct {
    const char *name;
    uint8_t op, mode, part;
} gpi__part_names[] = {
    {"left", GPI__OP_PART, GPI__LEFT_RIGHT, 0}, {"right", GPI__OP_PART, GPI__LEFT_RIGHT, 1},
    {"pair", GPI__OP_JOIN, GPI__LEFT_RIGHT, 0}, {"even", GPI__OP_PART, GPI__EVEN_ODD, 0},
    {"odd", GPI__OP_PART, GPI__EVEN_ODD, 1},    {"interleave", GPI__OP_JOIN, GPI__EVEN_ODD, 0},
    {"part", GPI__OP_PART, GPI__LEFT_RIGHT, 0}, {"parts", GPI__OP_JOIN, GPI__LEFT_RIGHT, 0},
};
enum { GPI__PART_CALL = 6, GPI__PARTS_CALL }; /* the rows of those that say how many parts there are */

/* Functions that are short for a text of others, of x and y. Operands may have their names. */
static const struct {
    const char *name;
    int count;
    const char *text;
} gpi__written_functions[] = {
    {"ceil", 1, "-floor(-x)"},
    {"trunc", 1, "x < 0 ? -floor(-x) : floor(x)"},
    {"isinf", 1, "abs(x) == 1 / 0"},
    {"cosh", 1, "exp(0.5 * x) * (0.5 * exp(0.5 * x)) + exp(-0.5 * x) * (0.5 * exp(-0.5 * x))"},
    {"tan", 1, "sin(x) / cos(x)"},
    {"logaddexp", 2, "x == y ? 0.5 * x + 0.5 * y + 0.69314718055994531 : max(x, y) + softplus(-abs(x - y))"},
    {"pi", 0, "3.1415926535897932"},
    {"inf", 0, "1 / 0"},
};

/* row and so on, in the order of node.place */
enum {
    GPI__INDEX_ROW,
    GPI__INDEX_COLUMN,
    GPI__INDEX_ITEM,
    GPI__INDEX_ROWS,
    GPI__INDEX_COLUMNS,
    GPI__INDEX_DEPTH,
    GPI__INDICES
};
static const char *const gpi__index_names[GPI__INDICES] = {"row",  "column",  "item",
                                                           "rows", "columns", "depth"};

/* Over what a reduction goes is the kind of the output that takes it. */
typedef enum gpi__reduction_op {
    GPI__REDUCE_SUM,
    GPI__REDUCE_MAX,
    GPI__REDUCE_LOGSUMEXP,
    GPI__REDUCE_ARGMAX
} gpi__reduction_op;

typedef struct gpi__reduction {
    const char *name;
    gemmepi_operand_kind kind;
    gpi__reduction_op op;
    int of_negatives; /* 1: of -x, and what comes of it is negated: the smallest number */
} gpi__reduction;

/* The first stands for none. */
static const gpi__reduction gpi__reductions[] = {
    {"", GEMMEPI_FULL, GPI__REDUCE_SUM, 0},
    {"row_sum", GEMMEPI_PER_ROW, GPI__REDUCE_SUM, 0},
    {"row_max", GEMMEPI_PER_ROW, GPI__REDUCE_MAX, 0},
    {"row_logsumexp", GEMMEPI_PER_ROW, GPI__REDUCE_LOGSUMEXP, 0},
    {"row_argmax", GEMMEPI_PER_ROW, GPI__REDUCE_ARGMAX, 0},
    {"column_sum", GEMMEPI_PER_COLUMN, GPI__REDUCE_SUM, 0},
    {"column_max", GEMMEPI_PER_COLUMN, GPI__REDUCE_MAX, 0},
    {"column_logsumexp", GEMMEPI_PER_COLUMN, GPI__REDUCE_LOGSUMEXP, 0},
    {"all_sum", GEMMEPI_SCALAR, GPI__REDUCE_SUM, 0},
    {"all_max", GEMMEPI_SCALAR, GPI__REDUCE_MAX, 0},
    {"column_argmax", GEMMEPI_PER_COLUMN, GPI__REDUCE_ARGMAX, 0},
    {"row_min", GEMMEPI_PER_ROW, GPI__REDUCE_MAX, 1},
    {"column_min", GEMMEPI_PER_COLUMN, GPI__REDUCE_MAX, 1},
    {"row_sum", GEMMEPI_BLOCKED, GPI__REDUCE_SUM, 0}, /* of groups of columns: row_sum(x, w) */
    {"row_max", GEMMEPI_BLOCKED, GPI__REDUCE_MAX, 0},
    {"row_min", GEMMEPI_BLOCKED, GPI__REDUCE_MAX, 1},
};

/* >>column-major order: the row-major problem that it is folded into has rows for columns. Each is its own way back. */

static int gpi__kind_across(int kind) {
    return kind == GEMMEPI_PER_ROW      ? (int)GEMMEPI_PER_COLUMN
           : kind == GEMMEPI_PER_COLUMN ? (int)GEMMEPI_PER_ROW
                                        : kind;
}

/* The reduction to another kind that does the same; 0: there is none. */
static int gpi__reduction_to(int reduction, int kind) {
    const gpi__reduction *of = &gpi__reductions[reduction];
    int i = (int)GPI__COUNT(gpi__reductions) - 1;
    while (i && (gpi__reductions[i].op != of->op || gpi__reductions[i].of_negatives != of->of_negatives ||
                 (int)gpi__reductions[i].kind != kind))
        i--;
    return i;
}

static int gpi__reduction_across(int reduction) {
    return reduction ? gpi__reduction_to(reduction, gpi__kind_across((int)gpi__reductions[reduction].kind))
                     : 0;
}

/* A reduction's name as the caller writes it. Groups of columns are of those that lie side by side. */
static const char *gpi__reduction_name(int reduction, int exchanged) {
    if (gpi__reductions[reduction].kind == GEMMEPI_BLOCKED)
        reduction = gpi__reduction_to(reduction, GEMMEPI_PER_ROW);
    return gpi__reductions[exchanged ? gpi__reduction_across(reduction) : reduction].name;
}

static int gpi__index_across(int index) {
    static const uint8_t across[GPI__INDICES] = {GPI__INDEX_COLUMN,  GPI__INDEX_ROW,  GPI__INDEX_ITEM,
                                                 GPI__INDEX_COLUMNS, GPI__INDEX_ROWS, GPI__INDEX_DEPTH};
    return across[index];
}

/* by gemmepi_operand_kind */
static const char *const gpi__kind_names[] = {"",           "NUMBER", "SCALAR", "PER_ROW",
                                              "PER_COLUMN", "FULL",   "BLOCKED"};

/* Whether elements of a kind differ by rows or by columns. */
static int gpi__has_rows(int kind) {
    return kind == GEMMEPI_PER_ROW || kind >= GEMMEPI_FULL;
}

static int gpi__has_columns(int kind) {
    return kind >= GEMMEPI_PER_COLUMN;
}

/* The columns, as they lie side by side, of a BLOCKED operand's blocks. */
static int64_t gpi__group_of(const gemmepi_operand *operand, int exchanged) {
    return exchanged ? operand->block_rows : operand->block_columns;
}

/* Whether a kind, the caller's, has the axis that widths are of. */
static int gpi__has_width(int kind, int exchanged) {
    return exchanged ? gpi__has_rows(kind) : gpi__has_columns(kind);
}

#endif
