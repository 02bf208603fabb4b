/* The rules for the operands of a formula, before its text is looked at. */
#ifndef GEMMEPI_FORMULA_OPERANDS_H
#define GEMMEPI_FORMULA_OPERANDS_H

#include "simplify.h"

static int gpi__is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Of the name at the beginning of text; 0: there is none. */
static size_t gpi__name_length(const char *text) {
    size_t length = 0;
    if (gpi__is_letter(text[0]))
        while (gpi__is_letter(text[length]) || gpi__is_digit(text[length]))
            length++;
    return length;
}

/* Whether a name of that length, which need not end there, is this one. */
static int gpi__is_name(const char *at, size_t length, const char *name) {
    return strlen(name) == length && memcmp(at, name, length) == 0;
}

static char gpi__small_letter(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* What formulas call the activation of a row: its name in small letters. */
static const char *gpi__small_name(int row, char name[16]) {
    const char *from = gpi__activations[row].name;
    size_t i;
    for (i = 0; from[i] && i < 15; i++)
        name[i] = gpi__small_letter(from[i]);
    name[i] = 0;
    return name;
}

/* The row of an activation by that name, -1: none. NONE has no name here. */
static int gpi__activation_called(const char *at, size_t length) {
    char name[16];
    int i;
    for (i = 1; i < (int)GPI__COUNT(gpi__activations); i++)
        if (gpi__is_name(at, length, gpi__small_name(i, name)))
            return i;
    return -1;
}

static int gpi__reduction_called(const char *at, size_t length) {
    size_t i;
    for (i = 1; i < GPI__COUNT(gpi__reductions); i++)
        if (gpi__is_name(at, length, gpi__reductions[i].name))
            return (int)i;
    return 0;
}

static int gpi__index_called(const char *at, size_t length) {
    int i;
    for (i = 0; i < GPI__INDICES; i++)
        if (gpi__is_name(at, length, gpi__index_names[i]))
            return i;
    return -1;
}

/* Whether an op has one name, that of its row. */
static int gpi__is_plain_function(int op) {
    return gpi__operation_of(op)->precedence == 9 && op < GPI__OP_ACTIVATE;
}

/* A function that is no activation; -1: none. Of parts *row is that of gpi__part_names. */
static int gpi__function_called(const char *at, size_t length, int *row) {
    int op;
    for (op = GPI__LEAVES; op < GPI__OPS; op++)
        if (gpi__is_plain_function(op) && gpi__is_name(at, length, gpi__operation_of(op)->name))
            return op;
    for (*row = 0; *row < (int)GPI__COUNT(gpi__part_names); ++*row)
        if (gpi__is_name(at, length, gpi__part_names[*row].name))
            return gpi__part_names[*row].op;
    return -1;
}

/* Whether a name stands for something of the language. */
static int gpi__is_reserved(const char *at, size_t length) {
    int row;
    return gpi__function_called(at, length, &row) >= 0 || gpi__activation_called(at, length) >= 0 ||
           (length > 2 && memcmp(at, "d_", 2) == 0 && gpi__activation_called(at + 2, length - 2) >= 0) ||
           gpi__reduction_called(at, length) || gpi__index_called(at, length) >= 0;
}

static const char *gpi__value_name(const gpi__formula_desc *desc) {
    return desc->value ? desc->value : "v";
}

static const char *gpi__result_name(const gpi__formula_desc *desc) {
    return desc->result ? desc->result : "d";
}

/* Whether the formula is given a name, by what field. */
static const char *gpi__who_is_called(const gpi__formula_desc *desc, const char *name, int before) {
    int i;
    if (!desc->without_value && strcmp(name, gpi__value_name(desc)) == 0)
        return "the value";
    if (!desc->without_result && strcmp(name, gpi__result_name(desc)) == 0)
        return "the result";
    for (i = 0; i < before; i++)
        if (strcmp(name, desc->operands[i].name) == 0)
            return "an operand before it";
    return NULL;
}

static gemmepi_status gpi__check_given_name(const char *field, int index, const char *name) {
    char where[64];
    size_t length = name ? gpi__name_length(name) : 0;
    snprintf(where, sizeof where, index < 0 ? "desc.%s" : "desc.%s[%d].name", field, index);
    GPI__INVALID_IF(!name || length == 0 || name[length],
                    "%s is %s%.80s%s; a name is of letters, digits and _, and begins with no digit", where,
                    name ? "\"" : "", name ? name : "NULL", name ? "\"" : "");
    GPI__INVALID_IF(length > GPI__FORMULA_NAME, "%s has %d characters; at most %d are accepted", where,
                    (int)length, GPI__FORMULA_NAME);
    GPI__INVALID_IF(gpi__is_reserved(name, length), "%s is %s, a name of the language: choose another", where,
                    name);
    return GEMMEPI_OK;
}

/* The dtypes of which an operand may be, as bits. */
static unsigned gpi__types_of_operand(const gpi__formula_desc *desc, const gemmepi_operand *operand) {
    unsigned whole = operand->output ? 0 : 1u << GEMMEPI_I32 | 1u << GEMMEPI_I64;
    if (operand->kind == GEMMEPI_NUMBER)
        return 1u << GEMMEPI_F64;
    if (desc->accumulator == GEMMEPI_I32)
        return whole | 1u << GEMMEPI_I32;
    if (operand->output)
        whole = 1u << GEMMEPI_I32; /* of row_argmax */
    if (desc->accumulator == GEMMEPI_F64)
        return whole | 1u << GEMMEPI_F64;
    if (!operand->output)
        whole |= 1u << GEMMEPI_E8M0;
    if (!operand->output && operand->kind >= GEMMEPI_FULL)
        whole |= 1u << GEMMEPI_I4 | 1u << GEMMEPI_U4 | 1u << GEMMEPI_E2M1;
    return whole | 1u << GEMMEPI_F32 | 1u << GEMMEPI_F16 | 1u << GEMMEPI_BF16 | 1u << GEMMEPI_E4M3 |
           1u << GEMMEPI_E5M2 | 1u << GEMMEPI_I8;
}

static gemmepi_status gpi__check_type_of_operand(const gpi__formula_desc *desc, int i) {
    const gemmepi_operand *operand = &desc->operands[i];
    unsigned accepted = gpi__types_of_operand(desc, operand);
    char names[96];
    gpi__text text = gpi__text_in(names, sizeof names);
    int dtype;
    GPI__UNSUPPORTED_IF(gpi__is_left_out((int)operand->dtype),
                        "desc.operands[%d].%sdtype (of %s) is " GPI__WITHOUT_FP8, i,
                        operand->tensor ? "tensor." : "", operand->name, gpi__dtype(operand->dtype)->name);
    if (operand->dtype == GEMMEPI_DTYPE_DEFAULT ||
        (gpi__dtype_is_known(operand->dtype) && accepted >> operand->dtype & 1))
        return GEMMEPI_OK;
    for (dtype = 1; dtype < (int)GPI__COUNT(gpi__dtypes); dtype++)
        if (accepted >> dtype & 1 && !gpi__is_left_out(dtype))
            gpi__append(&text, "%s%s", text.length ? ", " : "", gpi__type(dtype));
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                     "desc.operands[%d].%sdtype (of %s) is %s (%d); accepted here: %s%s", i,
                     operand->tensor ? "tensor." : "", operand->name, gpi__dtype_name(operand->dtype),
                     (int)operand->dtype, names, gpi__where_it_goes((int)operand->dtype));
}

/* What a field of an operand must not be, and what is accepted. */
typedef struct gpi__field_rule {
    int is_broken;
    const char *field;
    int64_t value;
    const char *accepted;
} gpi__field_rule;

static gemmepi_status gpi__check_fields_of_operand(const gpi__formula_desc *desc, int i) {
    const gemmepi_operand *o = &desc->operands[i];
    int has_rows = o->kind == GEMMEPI_PER_ROW || o->kind == GEMMEPI_FULL,
        takes_scale = gpi__is_scaled_dtype((int)o->dtype);
    int has_columns = o->kind == GEMMEPI_PER_COLUMN || o->kind == GEMMEPI_FULL,
        is_number = o->kind == GEMMEPI_NUMBER;
    int is_blocked = o->kind == GEMMEPI_BLOCKED;
    gpi__field_rule rules[11];
    size_t r = 0;
#define GPI__RULE(broken, name, words)                                                        \
    rules[r].is_broken = (broken), rules[r].field = #name, rules[r].value = (int64_t)o->name, \
    rules[r].accepted = words, r++
    GPI__RULE(o->kind < GEMMEPI_NUMBER || o->kind > GEMMEPI_BLOCKED, kind,
              "accepted are 1 (GEMMEPI_NUMBER) to 6 (GEMMEPI_BLOCKED)");
    GPI__RULE(o->width < GEMMEPI_WIDTH_N || o->width > GEMMEPI_WIDTH_DOUBLE ||
                  (o->width && !gpi__has_width((int)o->kind, desc->exchanged)),
              width,
              desc->exchanged
                  ? "accepted are 0 (m) and, of PER_ROW, FULL and BLOCKED, 1 (m / 2) and 2 (2 m)"
                  : "accepted are 0 (n) and, of PER_COLUMN, FULL and BLOCKED, 1 (n / 2) and 2 (2 n)");
    GPI__RULE(o->output != 0 && (o->output != 1 || is_number), output,
              "accepted are 0 and 1, for a NUMBER only 0");
    GPI__RULE(o->accumulate != 0 && (o->accumulate != 1 || !o->output), accumulate,
              "accepted are 0 and, of outputs, 1");
    GPI__RULE(o->ld < 0 || (o->ld && o->kind < GEMMEPI_FULL), ld,
              "accepted are 0 and, of FULL and BLOCKED, the elements between two rows");
    GPI__RULE(o->batch_stride < 0 || (o->batch_stride && is_number), batch_stride,
              "it must not be negative, and of a NUMBER 0");
    GPI__RULE(o->row_period < 0 || (o->row_period && (o->output || !has_rows)), row_period,
              "accepted are 0 and, of inputs PER_ROW and FULL, a number of rows");
    GPI__RULE(o->column_period < 0 || (o->column_period && (o->output || !has_columns)), column_period,
              "accepted are 0 and, of inputs PER_COLUMN and FULL, a number of columns");
    GPI__RULE(is_blocked ? o->block_rows < 1 : o->block_rows != 0, block_rows,
              "accepted are, of BLOCKED, the rows of a block, 1 or more, and of other kinds 0");
    GPI__RULE(is_blocked ? o->block_columns < 1 : o->block_columns != 0, block_columns,
              "accepted are, of BLOCKED, the columns of a block, 1 or more, and of other kinds 0");
    GPI__RULE(o->amax != 0 && (o->amax != 1 || !o->output || !takes_scale), amax,
              "accepted are 0 and, of outputs in E4M3, E5M2 and I8, 1");
#undef GPI__RULE
    for (r = 0; r < GPI__COUNT(rules); r++)
        GPI__INVALID_IF(rules[r].is_broken, "desc.operands[%d].%s (of %s) is %lld; %s", i, rules[r].field,
                        o->name, (long long)rules[r].value, rules[r].accepted);
    GPI__INVALID_IF(o->accumulate && o->scale.mode,
                    "desc.operands[%d].scale.mode (of %s) is %s (%d), but it accumulates; what is read and "
                    "written has no one scale",
                    i, o->name, gpi__scale_mode_name(o->scale.mode), (int)o->scale.mode);
    GPI__INVALID_IF(o->scale.batch_stride,
                    "desc.operands[%d].scale.batch_stride (of %s) is %lld; operands of formulas have "
                    "one scale for the whole batch: leave it 0",
                    i, o->name, (long long)o->scale.batch_stride);
    GPI__INVALID_IF(
        o->scale.mode != GEMMEPI_SCALE_NONE && !(o->scale.mode == GEMMEPI_SCALE_TENSOR && takes_scale),
        "desc.operands[%d].scale.mode (of %s) is %s (%d); accepted are 0 and, of E4M3, E5M2 and I8, "
        "GEMMEPI_SCALE_TENSOR (1)",
        i, o->name, gpi__scale_mode_name(o->scale.mode), (int)o->scale.mode);
    return GEMMEPI_OK;
}

/* desc.operands and desc.operand_count of any desc: at most `most` of them. */
static gemmepi_status gpi__check_operand_list(const gemmepi_operand *operands, int count, int most) {
    GPI__INVALID_IF(count < 0 || count > most, "desc.operand_count is %d; accepted are 0 to %d", count, most);
    GPI__INVALID_IF(count && !operands, "desc.operands is NULL, but desc.operand_count is %d", count);
    return GEMMEPI_OK;
}

/* All that can be said without the text. */
static gemmepi_status gpi__check_formula_desc(const gpi__formula_desc *desc) {
    gemmepi_status status =
        gpi__check_operand_list(desc->operands, desc->operand_count, GPI__FORMULA_OPERANDS);
    const char *who, *value_field = desc->value_field ? desc->value_field : "formula_value";
    int i;
    GPI__INVALID_IF(!desc->text, "desc.formula is NULL");
    if (!status && !desc->without_value)
        status = gpi__check_given_name(value_field, -1, gpi__value_name(desc));
    if (!status && !desc->without_result)
        status = gpi__check_given_name("formula_result", -1, gpi__result_name(desc));
    if (!status && !desc->without_value && !desc->without_result &&
        strcmp(gpi__value_name(desc), gpi__result_name(desc)) == 0)
        status = desc->result
                     ? gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s and desc.formula_result are both %s",
                                 value_field, gpi__value_name(desc))
                     : gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "desc.%s is d, as the result is called; give it another name", value_field);
    for (i = 0; i < desc->operand_count && !status; i++) {
        status = gpi__check_given_name("operands", i, desc->operands[i].name);
        who = status ? NULL : gpi__who_is_called(desc, desc->operands[i].name, i);
        if (who)
            status = gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.operands[%d].name is %s, as %s is called", i,
                               desc->operands[i].name, who);
        if (!status)
            status = gpi__check_fields_of_operand(desc, i);
        if (!status)
            status = gpi__check_type_of_operand(desc, i);
    }
    return status;
}

#endif
