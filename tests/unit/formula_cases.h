/* What the tests of formulas share: operands by name, formulas that are run on small matrices a unit at a time, and a list of formulas
   that has every operator and function. */
#ifndef GEMMEPI_TESTS_FORMULA_CASES_H
#define GEMMEPI_TESTS_FORMULA_CASES_H

#include "formula/derived_operands.h"
#include "formula/emit.h"
#include "../formula_bounds.h"
#include "formula/key.h"
#include "test.h"

/* >>operands: a formula has those whose names are in its text */

static const gemmepi_operand all_operands[] = {
    {"r",
     GEMMEPI_FULL,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"u",
     GEMMEPI_FULL,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"h",
     GEMMEPI_FULL,
     GEMMEPI_WIDTH_HALF,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"w",
     GEMMEPI_FULL,
     GEMMEPI_WIDTH_DOUBLE,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"b",
     GEMMEPI_PER_COLUMN,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"bh",
     GEMMEPI_PER_COLUMN,
     GEMMEPI_WIDTH_HALF,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"p",
     GEMMEPI_PER_ROW,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"s",
     GEMMEPI_SCALAR,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"k",
     GEMMEPI_NUMBER,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"label",
     GEMMEPI_PER_ROW,
     GEMMEPI_WIDTH_N,
     GEMMEPI_I64,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"cw",
     GEMMEPI_PER_COLUMN,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"rw",
     GEMMEPI_PER_ROW,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"lg",
     GEMMEPI_FULL,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"seed",
     GEMMEPI_SCALAR,
     GEMMEPI_WIDTH_N,
     GEMMEPI_I64,
     0,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"o",
     GEMMEPI_FULL,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"oh",
     GEMMEPI_FULL,
     GEMMEPI_WIDTH_HALF,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"rs",
     GEMMEPI_PER_ROW,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"rt",
     GEMMEPI_PER_ROW,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"cs",
     GEMMEPI_PER_COLUMN,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"al",
     GEMMEPI_SCALAR,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     0,
     0},
    {"g8",
     GEMMEPI_BLOCKED,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     1,
     8},
    {"g16",
     GEMMEPI_BLOCKED,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     1,
     16},
    {"gh",
     GEMMEPI_BLOCKED,
     GEMMEPI_WIDTH_HALF,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     1,
     8},
    {"g96",
     GEMMEPI_BLOCKED,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     1,
     96},
    {"g1024",
     GEMMEPI_BLOCKED,
     GEMMEPI_WIDTH_N,
     GEMMEPI_DTYPE_DEFAULT,
     1,
     0,
     0,
     0,
     0,
     0,
     {GEMMEPI_SCALE_NONE, 0},
     0,
     NULL,
     1,
     1024},
};

/* Whether a word stands in the text. */
static int has_word(const char *text, const char *word) {
    size_t length = strlen(word);
    const char *at;
    for (at = text; (at = strstr(at, word)) != NULL; at++)
        if ((at == text || (!gpi__is_letter(at[-1]) && !gpi__is_digit(at[-1]))) &&
            !gpi__is_letter(at[length]) && !gpi__is_digit(at[length]))
            return 1;
    return 0;
}

static int operands_of(const char *text, gemmepi_operand operands[GPI__FORMULA_OPERANDS]) {
    size_t i;
    int count = 0;
    for (i = 0; i < GPI__COUNT(all_operands); i++)
        if (has_word(text, all_operands[i].name))
            operands[count++] = all_operands[i];
    return count;
}

/* >>parsing */

static gpi__formula_desc desc_of(const char *text, const gemmepi_operand *operands, int count,
                                 gemmepi_dtype accumulator, gemmepi_dtype d) {
    gpi__formula_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.text = text;
    desc.operands = operands;
    desc.operand_count = count;
    desc.accumulator = accumulator;
    desc.d = d;
    return desc;
}

/* NULL where it is refused. */
static gpi__formula *parsed(const char *text, gemmepi_dtype accumulator, gemmepi_dtype d) {
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__formula_desc desc = desc_of(text, operands, operands_of(text, operands), accumulator, d);
    gpi__formula *formula;
    return gpi__parse_formula(&allocator, &desc, &formula) == GEMMEPI_OK ? formula : NULL;
}

static void freed(gpi__formula *formula) {
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__delete(&allocator, formula);
}

/* >>running: matrices of so many rows and columns, tables for each operand and, last, D */

enum { ROWS = 3, COLUMNS = 12, MOST_PARTS = 4, MOST = ROWS * COLUMNS * MOST_PARTS };

typedef struct table {
    estimate at[MOST];
    int64_t whole[MOST];
} table;

typedef struct data {
    table value, operands[GPI__FORMULA_OPERANDS + 1];
    int64_t item;
} data;

/* How many columns an operand has where n is COLUMNS. */
static int columns_of(int parts, int width) {
    return width == GEMMEPI_WIDTH_HALF     ? COLUMNS / parts
           : width == GEMMEPI_WIDTH_DOUBLE ? COLUMNS * parts
                                           : COLUMNS;
}

static int elements_of(int kind, int parts, int width) {
    return kind == GEMMEPI_FULL         ? ROWS * columns_of(parts, width)
           : kind == GEMMEPI_PER_COLUMN ? columns_of(parts, width)
           : kind == GEMMEPI_PER_ROW    ? ROWS
                                        : 1;
}

static int place_of(int kind, int parts, int width, int row, int column) {
    return kind == GEMMEPI_FULL         ? row * columns_of(parts, width) + column
           : kind == GEMMEPI_PER_COLUMN ? column
           : kind == GEMMEPI_PER_ROW    ? row
                                        : 0;
}

/* The columns of a unit's members, in the wider of a formula's widths. */
static int column_of_member(const gpi__formula *f, int unit, int member) {
    int wide = f->n_width == GPI__WIDE ? COLUMNS : f->parts * COLUMNS, w = f->group ? (int)f->group : wide;
    int half = w / f->parts;
    if (!f->has_halves)
        return unit;
    if (f->mode == GPI__EVEN_ODD)
        return 2 * unit + member;
    return unit / half * w + unit % half + member * half;
}

static int units_of(const gpi__formula *f) {
    return f->has_halves && f->n_width == GPI__WIDE ? COLUMNS / f->parts : COLUMNS;
}

/* Where the member of an operand lies: a half's column is the unit itself. */
static int place_of_member(const gpi__formula *f, int o, int row, int unit, int member) {
    const gpi__formula_operand *operand = &f->operands[o];
    return place_of(operand->kind, f->parts, operand->width, row,
                    operand->members > 1 ? column_of_member(f, unit, member) : unit);
}

/* What a unit's row reads by index, of the tables that were filled in last. */
static struct {
    const gpi__formula *formula;
    const data *from;
    int row;
} looked_up;
static estimate look_up(const void *tables, int o, int64_t index) {
    const gpi__formula_operand *operand = &looked_up.formula->operands[o];
    int at = operand->kind == GEMMEPI_FULL ? looked_up.row * COLUMNS : 0;
    if (tables != &looked_up || index < 0 || index >= (operand->kind == GEMMEPI_PER_ROW ? ROWS : COLUMNS))
        return estimated(0, 0);
    return looked_up.formula->accumulator == GEMMEPI_I32
               ? estimated((double)looked_up.from->operands[o].whole[at + index], 0)
               : looked_up.from->operands[o].at[at + index];
}

static void fill_unit(const gpi__formula *f, const data *from, int row, int unit, bounded_unit *to) {
    int o, member, two = f->has_halves && f->n_width == GPI__WIDE;
    memset(to, 0, sizeof *to);
    looked_up.formula = f, looked_up.from = from, looked_up.row = row;
    to->look_up = look_up, to->tables = &looked_up;
    to->indices[GPI__INDEX_ROW] = row;
    to->indices[GPI__INDEX_ITEM] = from->item;
    to->indices[GPI__INDEX_ROWS] = ROWS;
    to->indices[GPI__INDEX_COLUMNS] =
        f->has_halves && f->n_width == GPI__NARROW ? f->parts * COLUMNS : COLUMNS;
    to->indices[GPI__INDEX_DEPTH] = 77;
    for (member = 0; member < gpi__members(f, GPI__WIDE); member++) {
        to->column[member] = column_of_member(f, unit, member);
        to->value[member] = from->value.at[row * COLUMNS + (two ? column_of_member(f, unit, member) : unit)];
        for (o = 0; o < f->operand_count; o++)
            if (!f->operands[o].output && member < f->operands[o].members) {
                int at = place_of_member(f, o, row, unit, member);
                to->operands[o][member] = from->operands[o].at[at];
                to->whole[o][member] = from->operands[o].whole[at];
            }
    }
}

/* What an output takes of its numbers, by the name of the reduction: a gpi__reduction_op, or the smallest. */
enum { SMALLEST = 99 };
static int reduces_by(const gpi__formula *f, int o) {
    const gpi__reduction *reduction = &gpi__reductions[f->operands[o].reduction];
    return strstr(reduction->name, "_min") ? (int)SMALLEST : (int)reduction->op;
}

/* The sums of exponentials are kept by their logarithms. */
static void reduce(int op, estimate *to, estimate x, int64_t column, int is_first, int64_t *whole) {
    if (op == GPI__REDUCE_SUM) {
        to->value = is_first ? x.value : to->value + x.value;
        to->bound = is_first ? x.bound : to->bound + x.bound;
    } else if (op == GPI__REDUCE_LOGSUMEXP) {
        to->value = is_first ? x.value
                             : (double)(fmaxl(to->value, x.value) +
                                        log1pl(expl(-fabsl((long double)to->value - x.value))));
        to->bound = is_first ? x.bound : to->bound + x.bound;
    } else if (is_first || (op == SMALLEST ? x.value < to->value : x.value > to->value) ||
               (x.value != x.value && to->value == to->value)) {
        *to = x;
        *whole = column;
    }
}

/* All outputs of the formula, each in its table, D in the last. */
static void run_formula(const gpi__formula *f, data *d) {
    estimate *values = (estimate *)malloc(sizeof *values * (size_t)(f->parts * (f->node_count + 1)));
    bounded_unit unit;
    int row, u, o, member, at, seen[GPI__FORMULA_OPERANDS + 1][MOST];
    memset(seen, 0, sizeof seen);
    for (row = 0; row < ROWS; row++)
        for (u = 0; u < units_of(f); u++) {
            fill_unit(f, d, row, u, &unit);
            evaluate_bounded(f, &unit, values);
            for (o = 0; o <= GPI__RESULT; o++)
                for (member = 0;
                     f->operands[o].output && f->operands[o].used && member < f->operands[o].members;
                     member++) {
                    at = place_of_member(f, o, row, u, member);
                    reduce(reduces_by(f, o), &d->operands[o].at[at], bounded_output(f, values, o, member),
                           f->operands[o].members > 1 ? column_of_member(f, u, member) : u, !seen[o][at]++,
                           &d->operands[o].whole[at]);
                }
        }
    free(values);
}

/* >>random numbers, of Knuth's MMIX generator */

static uint64_t random_state = 1;
static double
random_number(void) { /* in -2 to 2, not 0, a multiple of 2^-10: F32 and BF16's products hold it */
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 52 == 2048 ? 1 : (double)(random_state >> 52) - 2048) / 1024;
}

static void fill_randomly(const gpi__formula *f, data *d) {
    int o, i;
    memset(d, 0, sizeof *d);
    d->item = 2;
    for (i = 0; i < MOST; i++)
        d->value.at[i].value = random_number();
    for (o = 0; o < f->operand_count; o++)
        for (i = 0; i < MOST; i++) {
            d->operands[o].at[i].value = random_number();
            d->operands[o].whole[i] = (int64_t)(random_state >> 40) % (COLUMNS + 2);
        }
}

/* >>formulas */

/* Smooth enough for differences, where numbers are in -2 to 2. */
static const char *const smooth_formulas[] = {
    "d = v",
    "d = left(v) * s; oh = s * s",
    "d = left(v) * p; oh = p * p",
    "d = v + r",
    "d = v - r * u",
    "d = -v * (r - u)",
    "d = (v + b) * p + s * k",
    "d = v / (3 + r)",
    "d = v / (3 + r) / (3 + u)",
    "d = r * r * r * v",
    "d = fma(v, r, u) * fma(2, v, b)",
    "d = exp(v) * r",
    "d = exp2(v) + exp2(r * 0.5)",
    "d = expm1(v * r)",
    "d = log(3 + v) * log2(3 + r)",
    "d = log1p(v * v)",
    "d = pow(3 + v, r)",
    "d = pow(v, 2) + pow(r, 3)",
    "d = sqrt(3 + v) * rsqrt(3 + r)",
    "d = sin(v) * cos(r)",
    "d = tanh(v) * erf(r)",
    "d = sigmoid(v) * silu(r)",
    "d = gelu_tanh(v) - gelu_erf(r)",
    "d = elu(v) + elu(r, s)",
    "d = leaky_relu(v, s) * leaky_relu(r)",
    "d = softplus(v) * mish(r)",
    "d = quick_gelu(v) * squared_relu(r) + relu(u)",
    "d = hardswish(v) + hardsigmoid(r)",
    "d = abs(v) * abs(r)",
    "d = sign(v) * r + sign(u) * v",
    "d = min(v, r) * max(v, u)",
    "d = clamp(v, -1, 1) + clamp(r, u, u + 1)",
    "d = v > 0 ? v * r : u",
    "d = v > r && r > u || !(v > u) ? v * v : r",
    "d = (v > 0) * r + (r > 0) * v",
    "d = floor(v) * r + round(r) * v",
    "d = mod(v, 0.7) * r + mod(r, 3 + u)",
    "d = isnan(v) ? r : v * u",
    "d = rounded(v * r)",
    "d = v * column + r * row / rows",
    "d = column == label ? v : r * v",
    "d = uniform(seed, 0) >= 0.25 ? v * r / 0.75 : 0",
    "x = v + b; y = silu(x); d = y * y + x",
    "d = silu(v + b) * u + r; rs = row_sum(d * d)",
    "o = v + b; d = gelu_erf(o) * p",
    "rs = row_sum(v * p); cs = column_sum(v * b); al = all_sum(v * s)",
    "rs = row_logsumexp(v * p + b); rt = row_sum(column == label ? v : 0)",
    "cs = column_logsumexp(v * r); d = v * s",
    "d = left(v) * silu(right(v))",
    "d = left(v) * silu(right(v)) + h * bh",
    "d = even(v) * sigmoid(odd(v)) + even(b) * p",
    "d = pair(left(v) * h - right(v), right(v) * h + left(v))",
    "d = interleave(even(v) * h, odd(v) - even(v) * odd(r))",
    "d = left(v, 4) * right(v, 4) * bh",
    "d = pair(left(v, 4) * cos(left(column, 4)) - right(v, 4) * s, right(v, 4) * h + left(v, 4), 4)",
    "d = pair(v * silu(right(w)), v * left(w) * tanh(right(w)) + 0 * s)",
    "d = v * left(w) + right(w) * b; o = v * p",
    "rs = row_sum(w * p); rt = row_logsumexp(w)",
    "rs = row_sum(h * h)",
    "o = v * p; d = left(v) * p",
    "d = left(v) * p; rs = row_sum(v + p)",
    "rs = row_sum(left(p) * left(v)); d = v * left(s)",
    "d = v ? r * v : u",
    "x = -v; d = x * r - x * u - (v > 0 ? x : 0)",
    "x = v > 0 ? r : u; d = -x * b - x / (3 + r)",
    "d = row ? v * v : r",
    "d = left(column) == 3 ? left(v) : right(v) * h",
    "d = (r - 0) * -v - -(u / -1) * v",
    "x = -(v / (r + 4)); d = x * x * x",
    "d = left(v) * p; o = v * p; oh = h * s; rs = row_sum(left(v) * h)",
    "d = pair(left(v), s) + pair(p, right(v)) * r; al = all_sum(left(r) * bh)",
    "rs = row_sum(p * v + p); al = all_sum(s)",
    "d = s * p * exp(k) + b; cs = column_sum(p * b)",
    "d = sinh(v) + cosh(r) * tan(0.25 * u)",
    "d = atan(v) * erfc(r)",
    "d = logaddexp(v, r * u) + logaddexp(v, v)",
    "d = ceil(v) * r + trunc(r) * v + pi * v",
    "d = isinf(v) || r < inf ? v * r : u",
    "rs = row_mean(v * p); d = left(v)",
    "d = sigmoid(part(v, 1, 3)) * h + (1 - sigmoid(part(v, 1, 3))) * tanh(part(v, 2, 3) + part(v, 0, 3) * bh)",
    "d = parts(v * part(w, 2, 3), r * v, sigmoid(v) * part(w, 0, 3) * s)",
    "d = parts(part(v, 1, 4) * h, s, part(v, 0, 4) * part(r, 3, 4), 2) * v; oh = h * part(v, 2, 4)",
    "d = part(v, 0, 3) * part(b, 1, 3) * part(column, 2, 3); cs = column_sum(v * p); al = all_sum(h * part(u, 0, 3))",
    "rs = row_mean(h); d = part(v, 0, 3) * h; rt = row_logsumexp(part(v, 1, 3))",
    "d = part(v, 1, 2) * left(r)",
    "d = v * part(w, 3, 4) + s; o = v * part(w, 0, 4); rs = row_sum(w * p)",
    "d = part(column, 1, 3) == 5 ? part(v, 0, 3) : part(v, 2, 3) * h",
    "d = v > 0 ? parts(0, h, 0) * v : parts(h, 0, s)",
    "d = left(v) * p; rs = row_mean(left(v) * h)",
    "d = v * cw[label] + r * lg[column]",
    "x = cw[label]; d = exp(x * v) + x * x * u; cs = column_sum(v * lg[label])",
    "d = left(v) * cw[left(column)] + cw[seed] * h - rw[row] * lg[right(column)]",
    "rs = row_sum(v * cw[3] + cw[12] * p + cw[-1] * p + rw[columns])",
};

/* Of what differences cannot see, but the host and kernels compute. */
static const char *const other_formulas[] = {
    "d = d_relu(v) * d_gelu_tanh(r) + d_gelu_erf(u)",
    "d = d_silu(v) + d_sigmoid(r) * d_tanh(u)",
    "d = d_leaky_relu(v, s) + d_elu(r) + d_elu(u, p)",
    "d = d_squared_relu(v) * d_quick_gelu(r) + d_softplus(u)",
    "d = d_hardswish(v) + d_mish(r) * d_hardsigmoid(u)",
    "d = pair(v * silu(right(w)), v * left(w) * d_silu(right(w)))",
    "d = v < r; o = (v <= r) + (v >= u) * 2 + (r != u)",
    "d = column < label + 1 ? item : depth; o = label == 3 || column >= 2.5",
    "d = uniform(seed, 7); o = uniform(seed, 4294967295)",
    "d = left(uniform(seed, 1)) * h; o = column / columns",
    "d = -0.1 + 1e-3 * v - 3.5e7 / (r + 9)",
    "rs = row_max(v * r); cs = column_max(v); al = all_max(v - u)",
    "rs = row_min(v * r); cs = column_min(v); rt = row_argmax(-v)",
    "d = tanh(v * 30) * exp(-v * 20) + log(exp(r * 10))",
    "d = v; o = d; rs = row_sum(d)",
    "d = uniform(seed, seed)",
    "d = stochastic(v, seed); o = stochastic(v * r, seed, 3)",
    "d = stochastic(v * r + u, seed); rs = row_sum(d * d)",
    "d = stochastic(left(v) * h, seed); o = stochastic(d_silu(v), seed)",
    "d = stochastic(pair(left(v), h), seed); oh = stochastic(p * left(u), seed, 1)",
    "d = 1 / -0 < 0 ? v : 7; o = v * -0",
};

#endif
