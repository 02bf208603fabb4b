/* What a name that a formula may not have was perhaps meant to be: the nearest that there is, or what other languages' is called here. */
#ifndef GEMMEPI_FORMULA_HINTS_H
#define GEMMEPI_FORMULA_HINTS_H

#include "operands.h"

/* Other languages' names. */
static const struct {
    const char *theirs, *ours;
} gpi__other_names[] = {
    {"gelu", "gelu_tanh or gelu_erf"},
    {"swish", "silu"},
    {"logistic", "sigmoid"},
    {"hswish", "hardswish"},
    {"hsigmoid", "hardsigmoid"},
    {"relu6", "min(relu(x), 6)"},
    {"ln", "log"},
    {"power", "pow"},
    {"sqr", "x * x"},
    {"square", "x * x"},
    {"fabs", "abs"},
    {"fmax", "max"},
    {"fmin", "min"},
    {"fmod", "mod"},
    {"rint", "round"},
    {"clip", "clamp"},
    {"if", "c ? x : y"},
    {"where", "c ? x : y"},
    {"select", "c ? x : y"},
    {"rand", "uniform(seed, i)"},
    {"stochastic_rounding", "stochastic(x, seed)"},
    {"random", "uniform(seed, i)"},
    {"log10", "0.43429448190325182 * log(x)"},
    {"cbrt", "pow(x, 1 / 3) of x >= 0"},
    {"isfinite", "abs(x) < inf"},
    {"arctan", "atan"},
    {"asin", "atan(x * rsqrt(1 - x * x))"},
    {"logsigmoid", "-softplus(-x)"},
    {"chunk", "part(x, i, n)"},
    {"split", "part(x, i, n)"},
    {"concat", "parts(a, b)"},
    {"cat", "parts(a, b)"},
    {"row_argmin", "row_argmax of -x"},
    {"column_argmin", "column_argmax of -x"},
    {"glu", "left(x) * sigmoid(right(x))"},
    {"swiglu", "silu(left(x)) * right(x)"},
    {"geglu", "gelu_tanh(left(x)) * right(x)"},
    {"dropout", "uniform(seed, i) < p ? 0 : x / (1 - p)"},
    {"softmax", "exp(x - lse), where lse is row_logsumexp(x)"},
    {"column_mean", "column_sum of x / rows"},
    {"colsum", "column_sum"},
    {"mean", "row_mean(x) or column_sum(x / rows)"},
    {"sum", "row_sum, column_sum or all_sum"},
    {"amax", "row_max, column_max or all_max"},
    {"amin", "row_min or column_min"},
    {"all_min", "all_max of -x, with the other sign"},
    {"argmin", "row_argmax or column_argmax of -x"},
    {"argmax", "row_argmax or column_argmax"},
    {"logsumexp", "row_logsumexp or column_logsumexp"},
};

/* How many letters are to be changed, put in or left out to make one name of another; small and large letters are the same. */
static int gpi__distance_of_names(const char *x, size_t length, const char *y) {
    uint8_t row[GPI__FORMULA_NAME + 1];
    size_t i, j, other = strlen(y);
    int before, least;
    for (j = 0; j <= other; j++)
        row[j] = (uint8_t)j;
    for (i = 0; i < length; i++) {
        before = row[0];
        row[0] = (uint8_t)(i + 1);
        for (j = 0; j < other; j++) {
            least = before + (gpi__small_letter(x[i]) != gpi__small_letter(y[j]));
            before = row[j + 1];
            least = least < before + 1 ? least : before + 1;
            row[j + 1] = (uint8_t)(least < row[j] + 1 ? least : row[j] + 1);
        }
    }
    return row[other];
}

typedef struct gpi__nearest {
    const char *name; /* what is looked for */
    size_t length;
    const char *found; /* at most two letters and half of them away, or NULL */
    int distance;      /* of found */
} gpi__nearest;

static gpi__nearest gpi__nearest_to(const char *name, size_t length) {
    gpi__nearest nearest;
    nearest.name = name;
    nearest.length = length;
    nearest.found = NULL;
    nearest.distance = 3;
    return nearest;
}

/* Whether the name is nearer than all before it. */
static int gpi__is_nearer(gpi__nearest *nearest, const char *name) {
    size_t other = strlen(name), longer = other > nearest->length ? other : nearest->length;
    int distance;
    if (longer > GPI__FORMULA_NAME)
        return 0;
    distance = gpi__distance_of_names(nearest->name, nearest->length, name);
    if (distance >= nearest->distance || 2 * (size_t)distance > longer)
        return 0;
    nearest->distance = distance;
    nearest->found = name;
    return 1;
}

/* Of what may be read: an operand, the value or an index; or of what may be assigned: an operand or D. */
static const char *gpi__nearest_name(const gpi__formula_desc *desc, const char *name, size_t length,
                                     int is_assigned) {
    gpi__nearest nearest = gpi__nearest_to(name, length);
    int i;
    for (i = 0; i < desc->operand_count; i++)
        (void)gpi__is_nearer(&nearest, desc->operands[i].name);
    if (is_assigned ? !desc->without_result : !desc->without_value)
        (void)gpi__is_nearer(&nearest, is_assigned ? gpi__result_name(desc) : gpi__value_name(desc));
    for (i = 0; i < GPI__INDICES && !is_assigned; i++)
        (void)gpi__is_nearer(&nearest, gpi__index_names[i]);
    return nearest.found;
}

/* Of functions. room: where a name may be kept. */
static const char *gpi__nearest_function(const char *name, size_t length, char room[16]) {
    gpi__nearest nearest = gpi__nearest_to(name, length);
    char small[16];
    size_t i;
    int op;
    for (i = 0; i < GPI__COUNT(gpi__other_names); i++)
        if (gpi__is_name(name, length, gpi__other_names[i].theirs))
            return gpi__other_names[i].ours;
    for (op = GPI__LEAVES; op < GPI__OPS; op++)
        if (gpi__is_plain_function(op))
            (void)gpi__is_nearer(&nearest, gpi__operation_of(op)->name);
    for (i = 0; i < GPI__COUNT(gpi__part_names); i++)
        (void)gpi__is_nearer(&nearest, gpi__part_names[i].name);
    for (i = 0; i < GPI__COUNT(gpi__written_functions); i++)
        if (gpi__written_functions[i].count)
            (void)gpi__is_nearer(&nearest, gpi__written_functions[i].name);
    for (i = 1; i < GPI__COUNT(gpi__reductions); i++)
        (void)gpi__is_nearer(&nearest, gpi__reductions[i].name);
    for (i = 1; i < GPI__COUNT(gpi__activations); i++)
        if (gpi__is_nearer(&nearest, gpi__small_name((int)i, small))) {
            memcpy(room, small, sizeof small);
            nearest.found = room;
        }
    return nearest.found;
}

#endif
