/* Gradients of formulas: against central differences, and as text. */
#include "formula_cases.h"
#include "draw.h"

/* >>against differences: L is the sum of all outputs' elements, each times a random upstream */

typedef struct gradient_case {
    gemmepi_operand operands[GPI__FORMULA_OPERANDS], derived[80];
    int count, derived_count;
    char wrt[256], saved[256];
    char text[40000];
    gpi__formula *forward, *backward;
    data values, upstream, out;
} gradient_case;

static gradient_case c;

static gemmepi_derive_desc derive_desc(const char *text) {
    gemmepi_derive_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.formula = text;
    desc.operands = c.operands;
    desc.operand_count = c.count;
    desc.wrt = c.wrt;
    desc.saved = c.saved;
    return desc;
}

/* Of all inputs that are numbers. The results of logsumexp may be read, too. */
static const char *saved_instead; /* of v; NULL: v is saved */

static void list_names(const char *text) {
    char by_index[64];
    int i;
    strcpy(c.wrt, has_word(text, "v") ? "v" : "");
    strcpy(c.saved, saved_instead ? saved_instead : "v");
    c.count = operands_of(text, c.operands);
    for (i = 0; i < c.count; i++) {
        int lse = c.operands[i].output && strstr(text, "logsumexp") != NULL &&
                  (c.operands[i].kind == GEMMEPI_PER_ROW || c.operands[i].kind == GEMMEPI_PER_COLUMN);
        snprintf(by_index, sizeof by_index, "%s[", c.operands[i].name);
        if (c.operands[i].dtype == GEMMEPI_DTYPE_DEFAULT && !c.operands[i].output &&
            !strstr(text, by_index)) {
            strcat(c.wrt, c.wrt[0] ? ", " : "");
            strcat(c.wrt, c.operands[i].name);
        }
        if (!c.operands[i].output || lse) {
            strcat(c.saved, ",");
            strcat(c.saved, c.operands[i].name);
        }
    }
}

static double loss(const gpi__formula *f, const data *at) {
    static data d;
    long double sum = 0;
    int o, i;
    d = *at;
    run_formula(f, &d);
    for (o = 0; o <= GPI__RESULT; o++)
        for (i = 0; f->operands[o].output && f->operands[o].used &&
                    i < elements_of(f->operands[o].kind, f->parts, f->operands[o].width);
             i++)
            sum += (long double)d.operands[o].at[i].value * c.upstream.operands[o].at[i].value;
    return (double)sum;
}

static int forward_operand(const char *name) {
    int i;
    for (i = 0; i < c.count; i++)
        if (strcmp(c.operands[i].name, name) == 0)
            return i;
    return -1;
}

/* The table of the forward formula that a derived input is: of the value, an operand, D or an upstream. */
static const table *table_of(const char *name) {
    int i = forward_operand(name);
    if (i >= 0)
        return &c.values.operands[i];
    if (strcmp(name, "dy") == 0)
        return &c.upstream.operands[GPI__RESULT];
    if (strncmp(name, "dy_", 3) == 0)
        return &c.upstream.operands[forward_operand(name + 3)];
    return strcmp(name, "d") == 0 ? &c.values.operands[GPI__RESULT] : &c.values.value;
}

static int prepare(const char *text) {
    gemmepi_derive_desc desc;
    gpi__formula_desc f, g;
    gemmepi_allocator allocator = gpi__default_allocator();
    int i;
    list_names(text);
    desc = derive_desc(text);
    CHECK(gemmepi_derive(&desc, c.text, sizeof c.text) == strlen(c.text), "%s: %s", text,
          gemmepi_last_error());
    c.derived_count = gemmepi_derive_operands(&desc, c.derived, 80);
    CHECK(c.derived_count > 0, "%s: %s", text, gemmepi_last_error());
    f = desc_of(text, c.operands, c.count, GEMMEPI_F64, GEMMEPI_F64);
    g = desc_of(c.text, c.derived, c.derived_count, GEMMEPI_F64, GEMMEPI_F64);
    g.without_value = g.without_result = 1;
    for (i = 0; i < c.derived_count; i++) /* the F64 that both are run in */
        if (c.derived[i].dtype == GEMMEPI_F32)
            c.derived[i].dtype = GEMMEPI_F64;
    c.backward = NULL;
    CHECK(gpi__parse_formula(&allocator, &f, &c.forward) == GEMMEPI_OK, "%s: %s", text, gemmepi_last_error());
    CHECK(gpi__parse_formula(&allocator, &g, &c.backward) == GEMMEPI_OK, "%s\n%s\n%s", text, c.text,
          gemmepi_last_error());
    return c.forward && c.backward;
}

/* d NAME against the difference at each of its elements. */
static void check_one_gradient(const char *text, int derived) {
    const char *name = c.derived[derived].name + 2;
    int i = forward_operand(name), at, kind, width;
    table *moved = i < 0 ? &c.values.value : &c.values.operands[i];
    const double h = 1e-5;
    kind = i < 0 ? (int)GEMMEPI_FULL : (int)c.operands[i].kind;
    width = i < 0 ? (int)GEMMEPI_WIDTH_N : (int)c.operands[i].width;
    for (at = 0; at < elements_of(kind, c.forward->parts, width); at++) {
        double x = moved->at[at].value, above, below, got = c.out.operands[derived].at[at].value, want;
        moved->at[at].value = x + h;
        above = loss(c.forward, &c.values);
        moved->at[at].value = x - h;
        below = loss(c.forward, &c.values);
        moved->at[at].value = x;
        want = (above - below) / (2 * h);
        CHECK(fabs(got - want) <= 2e-6 * (1 + fabs(want)), "%s\n%s\n%s at %d: %.9g, not %.9g", text, c.text,
              c.derived[derived].name, at, got, want);
    }
}

/* Formulas as people write them, and their gradients as people may read them. */
static const struct {
    const char *text, *wrt, *saved, *gradient;
} known_formulas[] = {
    {"d = silu(v + b) * u", "v, b, u", NULL,
     "t1 = v + b;\n"
     "d_u = dy * silu(t1);\n"
     "d_v = dy * u * d_silu(t1);\n"
     "d_b = column_sum(d_v)"},
    {"d = left(v) * silu(right(v))", "v", NULL,
     "t1 = right(v);\n"
     "d_v = pair(dy * silu(t1), dy * left(v) * d_silu(t1))"},
    {"d = squared_relu(left(v)) * right(v)", "v", NULL,
     "t1 = left(v);\n"
     "d_v = pair(t1 > 0 || isnan(t1) ? dy * right(v) * d_squared_relu(t1) : 0, dy * squared_relu(t1))"},
    {"d = v * sigmoid(s * v)", "v, s", NULL,
     "t1 = s * v;\n"
     "t2 = dy * v * d_sigmoid(t1);\n"
     "d_v = dy * sigmoid(t1) + t2 * s;\n"
     "d_s = all_sum(t2 * v)"},
    {"d = silu(v + b) * u + r; rs = row_sum(d * d)", "v, b, u, r", NULL,
     "t1 = v + b;\n"
     "t2 = silu(t1);\n"
     "d_r = dy + 2 * dy_rs * (t2 * u + r);\n"
     "d_u = d_r * t2;\n"
     "d_v = d_r * u * d_silu(t1);\n"
     "d_b = column_sum(d_v)"},
    {"d = v * p * b", "v, p, b", NULL,
     "t1 = dy * b;\n"
     "d_v = t1 * p;\n"
     "d_p = row_sum(t1 * v);\n"
     "d_b = column_sum(dy * (v * p))"},
    {"d = r + b * v", "v, r, b", NULL,
     "d_v = dy * b;\n"
     "d_r = dy;\n"
     "d_b = column_sum(dy * v)"},
    {"x = left(v, 64); y = right(v, 64); d = pair(x * h - y * bh, y * h + x * bh, 64)", "v", NULL,
     "t1 = left(dy, 64);\n"
     "t2 = right(dy, 64);\n"
     "d_v = pair(t2 * bh + t1 * h, t2 * h - t1 * bh, 64)"},
    {"x = even(v); y = odd(v); d = interleave(x * h - y * bh, y * h + x * bh)", "v", NULL,
     "t1 = even(dy);\n"
     "t2 = odd(dy);\n"
     "d_v = interleave(t2 * bh + t1 * h, t2 * h - t1 * bh)"},
    {"z = sigmoid(part(v, 0, 3)); d = z * h + (1 - z) * tanh(part(v, 2, 3))", "v, h", NULL,
     "t1 = part(v, 0, 3);\n"
     "z = sigmoid(t1);\n"
     "t2 = part(v, 2, 3);\n"
     "d_h = dy * z;\n"
     "d_v = parts(dy * (h - tanh(t2)) * d_sigmoid(t1), 0, dy * (1 - z) * d_tanh(t2))"},
    {"d = part(v, 2, 4) * h", "v", NULL, "d_v = parts(0, 0, dy * h, 0)"},
    {"d = part(v, 0, 3) + h", "h, v", NULL, "d_v = parts(dy, 0, 0);\nd_h = dy"},
    {"d = parts(v, v * r, s)", "v", NULL, "d_v = part(dy, 0, 3) + part(dy, 1, 3) * r"},
    {"d = (uniform(seed, 0) >= k ? v / (1 - k) : 0) + r", "v, r", NULL,
     "/* derivatives that are 0: uniform */\n"
     "d_v = uniform(seed, 0) >= k ? dy / (1 - k) : 0;\n"
     "d_r = dy"},
    {"d = k * tanh(v / k)", "v", NULL, "d_v = dy * d_tanh(v / k)"},
    {"d = column > row ? -1e30 : v * k - s * (row - column)", "v, s", NULL,
     "t1 = column > row;\n"
     "d_v = t1 ? 0 : dy * k;\n"
     "d_s = all_sum(t1 ? 0 : -(dy * (row - column)))"},
    {"rs = row_logsumexp(v); rt = row_sum(column == label ? v : 0)", "v", "v, rs, label",
     "d_v = dy_rs * exp(v - rs) + (column == label ? dy_rt : 0)"},
    {"p1 = sigmoid(v); q = u == 1 ? p1 : 1 - p1; al = all_sum(-pow(1 - q, 2) * log(q))", "v", NULL,
     "p1 = sigmoid(v);\n"
     "t1 = u == 1;\n"
     "q = t1 ? p1 : 1 - p1;\n"
     "t2 = 1 - q;\n"
     "t3 = dy_al * pow(t2, 2) / q;\n"
     "t4 = 2 * dy_al * log(q) * t2;\n"
     "d_v = (t1 ? t4 - t3 : t3 - t4) * d_sigmoid(v)"},
    {"e = v - u; a = abs(e); rs = row_sum(a < 1 ? 0.5 * e * e : a - 0.5)", "v", NULL,
     "/* derivatives that are 0: comparisons */\n"
     "d_v = dy_rs * clamp(v - u, -1, 1)"},
    {"e = v - u; a = abs(e); al = all_sum(a > 2 ? 2 * a - 2 : 0.5 * e * e)", "v", NULL,
     "/* derivatives that are 0: comparisons */\n"
     "d_v = dy_al * clamp(v - u, -2, 2)"},
    {"e = v - u; a = abs(e); d = r * (a <= k ? 0.5 * e * e : k * (a - 0.5 * k))", "v", NULL,
     "/* derivatives that are 0: comparisons */\n"
     "e = v - u;\n"
     "d_v = dy * r * (abs(e) <= k ? e : k * sign(e))"},
    {"d = abs(v - u)", "v, u", NULL, "d_v = dy * sign(v - u);\nd_u = -d_v"},
    {"d = max(v, 0) - v * u + log1p(exp(-abs(v)))", "v", NULL, "d_v = dy * (sigmoid(v) - u)"},
    {"d = log(1 + exp(-abs(v))) - v * u + max(0, v)", "v", NULL, "d_v = dy * (sigmoid(v) - u)"},
    {"rs = row_sum(p * (relu(v) - v * u + log1p(exp(-abs(v)))))", "v", NULL,
     "d_v = dy_rs * p * (sigmoid(v) - u)"},
    {"d = max(v, 0.5) + log1p(exp(-abs(v)))", "v", NULL,
     "d_v = (v > 0.5 ? dy : v == 0.5 ? 0.5 * dy : 0) - dy * sigmoid(-abs(v)) * sign(v)"},
    {"d = (v > 0 ? v : b * v) + log1p(exp(-abs(v)))", "v", NULL,
     "/* derivatives that are 0: comparisons */\n"
     "d_v = dy * sigmoid(v) + (v > 0 ? 0 : dy * b)"},
    {"d = min(max(v, 0), 6)", "v", NULL, "d_v = v >= 0 && v <= 6 ? dy : 0"},
    {"d = max(-0.5, min(1, v * r))", "v", NULL, "t1 = v * r;\nd_v = t1 >= -0.5 && t1 <= 1 ? dy * r : 0"},
    {"d = v * min(max(v + 3, 0), 6)", "v", NULL,
     "t1 = v + 3;\n"
     "d_v = dy * min(max(t1, 0), 6) + (t1 >= 0 && t1 <= 6 ? dy * v : 0)"},
    {"e = v - u; al = all_sum(e * e)", "v", NULL, "d_v = 2 * dy_al * (v - u)"},
    {"d = p + b - 2 * v", "v, p, b", NULL,
     "d_v = -2 * dy;\n"
     "d_p = row_sum(dy);\n"
     "d_b = column_sum(dy)"},
    {"d = exp(-k * max(p + b - 2 * v, 0))", "v, k", NULL,
     "t1 = p + b - 2 * v;\n"
     "t2 = max(t1, 0);\n"
     "t3 = dy * exp(-k * t2);\n"
     "t4 = t3 * k;\n"
     "d_v = -2 * (t1 > 0 ? -t4 : t1 == 0 ? -0.5 * t4 : 0);\n"
     "d_k = all_sum(-(t3 * t2))"},
    {"d = v * rsqrt(p * b)", "v, p, b", NULL,
     "t1 = p * b;\n"
     "t2 = rsqrt(t1);\n"
     "d_v = dy * t2;\n"
     "t3 = -0.5 * dy * v * t2 / t1;\n"
     "d_p = row_sum(t3 * b);\n"
     "d_b = column_sum(t3 * p)"},
    {"d = sin(30 * (v + b))", "v, b", NULL,
     "d_v = 30 * dy * cos(30 * (v + b));\n"
     "d_b = column_sum(d_v)"},
    {"cs = column_sum(v * v) ; d = v", "v", NULL, "d_v = dy + 2 * dy_cs * v"},
    {"d = v * 0.5 * (1 + erf(v * 0.70710678))", "v", NULL,
     "t1 = v * 0.70710678;\n"
     "d_v = 0.7978845594639898 * dy * (v * 0.5) * exp(-(t1 * t1)) + 0.5 * dy * (1 + erf(t1))"},
    {"d = 0.5 * v * (1 + tanh(0.7978845608 * (v + 0.044715 * v * v * v)))", "v", NULL,
     "t1 = 0.044715 * v * v;\n"
     "t2 = 0.7978845608 * (v + t1 * v);\n"
     "t3 = dy * v * d_tanh(t2);\n"
     "d_v = 0.3989422804 * (t3 + t3 * t1) + 0.035677408136172 * t3 * v * v + 0.5 * dy * (1 + tanh(t2))"},
    {"d = log(1 + exp(v))", "v", NULL, "d_v = dy * sigmoid(v)"},
    {"d = v / (1 + abs(v))", "v", NULL,
     "t1 = 1 + abs(v);\n"
     "d_v = dy / t1 - dy * (v / t1) / t1 * sign(v)"},
    {"d = v / sqrt(1 + s * v * v)", "v, s", NULL,
     "t1 = s * v;\n"
     "t2 = sqrt(1 + t1 * v);\n"
     "t3 = -0.5 * dy * (v / t2) / t2 / t2;\n"
     "d_v = dy / t2 + 2 * t3 * t1;\n"
     "d_s = all_sum(t3 * v * v)"},
    {"d = max(v, 0) + min(b * (exp(v) - 1), 0)", "v, b", NULL,
     "t1 = exp(v);\n"
     "t2 = t1 - 1;\n"
     "t3 = b * t2;\n"
     "t4 = 0.5 * dy;\n"
     "t5 = t3 < 0 ? dy : t3 == 0 ? t4 : 0;\n"
     "d_v = t5 * b * t1 + (v > 0 ? dy : v == 0 ? t4 : 0);\n"
     "d_b = column_sum(t5 * t2)"},
    {"d = clamp(v / 6 + 0.5, 0, 1) * v", "v", NULL,
     "t1 = v / 6 + 0.5;\n"
     "d_v = dy * clamp(t1, 0, 1) + (t1 >= 0 && t1 <= 1 ? dy * v / 6 : 0)"},
    {"d = v > 0 ? v : b * v", "v, b", NULL,
     "/* derivatives that are 0: comparisons */\n"
     "t1 = v > 0;\n"
     "d_v = t1 ? dy : dy * b;\n"
     "d_b = column_sum(t1 ? 0 : dy * v)"},
    {"g = min(left(v), 7); u1 = clamp(right(v), -7, 7); d = g * sigmoid(1.702 * g) * (u1 + 1)", "v", NULL,
     "t1 = left(v);\n"
     "g = min(t1, 7);\n"
     "t2 = right(v);\n"
     "t3 = 1.702 * g;\n"
     "t4 = sigmoid(t3);\n"
     "t5 = dy * (clamp(t2, -7, 7) + 1);\n"
     "t6 = t5 * t4 + 1.702 * t5 * g * d_sigmoid(t3);\n"
     "d_v = pair(t1 < 7 ? t6 : t1 == 7 ? 0.5 * t6 : 0, t2 >= -7 && t2 <= 7 ? dy * (g * t4) : 0)"},
    {"z = sigmoid(v + b); d = z * r + (1 - z) * u", "v, b, r, u", NULL,
     "t1 = v + b;\n"
     "z = sigmoid(t1);\n"
     "d_u = dy * (1 - z);\n"
     "d_r = dy * z;\n"
     "d_v = dy * (r - u) * d_sigmoid(t1);\n"
     "d_b = column_sum(d_v)"},
    {"d = (v - p) * s * b + r", "v, p, s, b, r", NULL,
     "t1 = v - p;\n"
     "t2 = dy * b;\n"
     "d_v = t2 * s;\n"
     "d_p = row_sum(-d_v);\n"
     "d_s = all_sum(t2 * t1);\n"
     "d_b = column_sum(dy * (t1 * s));\n"
     "d_r = dy"},
    {"d = v * v * v", "v", NULL, "d_v = 3 * dy * (v * v)"},
    {"d = r * v + u * v - b * v", "v", NULL, "d_v = dy * (u - b + r)"},
    {"d = -log(sigmoid(v)) * p", "v, p", NULL,
     "t1 = sigmoid(v);\n"
     "d_v = -(dy * p / t1 * d_sigmoid(v));\n"
     "d_p = row_sum(-(dy * log(t1)))"},
    {"d = 1 / (1 + exp(-v))", "v", NULL,
     "t1 = -v;\n"
     "d_v = dy * (1 / (1 + exp(t1))) * sigmoid(t1)"},
    {"d = 2 * (3 * v) - v * 0.5 + v", "v", NULL, "d_v = 6.5 * dy"},
    {"d = cos(v) * cos(v)", "v", NULL, "d_v = -2 * dy * cos(v) * sin(v)"},
};

static int gradients;

static void check_formula(const char *text) {
    int turn, o, at;
    if (prepare(text)) {
        for (turn = 0; turn < 2; turn++) {
            fill_randomly(c.forward, &c.values);
            fill_randomly(c.forward, &c.upstream);
            for (at = 0; at < MOST; at++) /* fill_randomly knows of no D */
                c.upstream.operands[GPI__RESULT].at[at].value = random_number();
            for (o = 0; o < c.count; o++)
                for (at = 0; at < MOST; at++) {
                    c.values.operands[o].at[at].value *= 1 + 1e-3 * random_number(); /* off what jumps */
                    c.values.value.at[at].value *= 1 + 1e-4 * random_number();
                }
            run_formula(c.forward, &c.values);
            memset(&c.out, 0, sizeof c.out);
            c.out.item = c.values.item;
            for (o = 0; o < c.derived_count; o++)
                if (!c.derived[o].output)
                    c.out.operands[o] = *table_of(c.derived[o].name);
            run_formula(c.backward, &c.out);
            for (o = 0; o < c.derived_count; o++)
                if (c.derived[o].output) {
                    check_one_gradient(text, o);
                    gradients++;
                }
        }
        freed(c.forward);
        freed(c.backward);
    }
}

static void gradients_are_what_differences_say(void) {
    size_t i;
    for (i = 0; i < GPI__COUNT(smooth_formulas); i++)
        check_formula(smooth_formulas[i]);
    for (i = 0; i < GPI__COUNT(known_formulas); i++)
        if (!strstr(known_formulas[i].text, "64") && !strstr(known_formulas[i].text, "1e30") &&
            !strstr(known_formulas[i].text, "sqrt")) /* too wide, too large, and of numbers below 0 */
            check_formula(known_formulas[i].text);
    CHECK(gradients > 300, "%d gradients were looked at", gradients);
}

/* Appends a smooth expression of at most a few units, as wide as v, or half as wide. Halves are left and right ones, even and odd
   ones, or thirds. */
static void draw_smooth(char *text, int is_half, int depth, int way) {
    static const char *const wide[] = {"v", "v", "r", "u", "b", "p", "s", "x0", "x0"};
    static const char *const half[] = {"h", "h", "bh", "p", "s"};
    static const char *const before[] = {"tanh(", "sin(", "sigmoid(", "-(", "cos(", "(0.5 * "};
    static const char *const between[] = {" + ", " - ", " * "};
    static const char *const one_of_two[3][2] = {{"left(", "right("}, {"even(", "odd("}, {"part(", "part("}};
    static const char *const joined[] = {"pair(", "interleave(", "parts("};
    int kind = depth ? below(8) : below(2), i, parts = way == 2 ? 3 : 2;
    if (kind == 0 || (kind == 1 && !is_half)) {
        strcat(text, is_half ? half[below(5)] : wide[below(9)]);
    } else if (kind <= 2 && (is_half || depth)) {
        strcat(text, is_half ? one_of_two[way][below(2)] : joined[way]);
        for (i = 0; i < (is_half ? 1 : parts); i++) {
            strcat(text, i ? ", " : "");
            draw_smooth(text, !is_half, depth ? depth - 1 : 0, way);
        }
        strcat(text, !is_half || way < 2 ? ")" : below(3) ? ", 1, 3)" : below(2) ? ", 0, 3)" : ", 2, 3)");
    } else if (kind == 3) {
        strcat(text, before[below(6)]);
        draw_smooth(text, is_half, depth - 1, way);
        strcat(text, ")");
    } else {
        strcat(text, "(");
        draw_smooth(text, is_half, depth - 1, way);
        strcat(text, between[below(3)]);
        draw_smooth(text, is_half, depth - 1, way);
        strcat(text, ")");
    }
}

/* Values of either width that are read more than once, whole and as halves: what their gradients add up. */
static void gradients_of_drawn_formulas_of_two_widths_are_what_differences_say(void) {
    static char text[1 << 14];
    int i, derived = 0;
    draw_from_seed(7);
    for (i = 0; i < 60; i++) {
        int way = below(3);
        gemmepi_derive_desc desc;
        do {
            strcpy(text, "x0 = tanh(v * r); d = ");
            draw_smooth(text, below(2), 3, way);
            strcat(text, i % 2 ? "; al = all_sum(x0 * s + r * p)" : "");
        } while (strlen(text) > 400 || !strstr(text + 2, "x0"));
        list_names(text);
        desc = derive_desc(text);
        if (gemmepi_derive(&desc, NULL, 0) == 0)
            continue; /* a gradient's width would not be said */
        check_formula(text);
        derived++;
    }
    CHECK(derived >= 30, "%d of %d were derived", derived, i);
}

/* >>as text */

static const char *gradient_of(const char *text, const char *value, const char *wrt, const char *saved) {
    static char gradient[40000];
    gemmepi_derive_desc desc;
    c.count = operands_of(text, c.operands);
    desc = derive_desc(text);
    desc.value = value;
    desc.wrt = wrt;
    desc.saved = saved;
    if (gemmepi_derive(&desc, gradient, sizeof gradient) == 0)
        snprintf(gradient, sizeof gradient, "%s", gemmepi_last_error());
    return gradient;
}

#define DERIVES(text, wrt, saved, expected)                                 \
    CHECK(strcmp(gradient_of(text, NULL, wrt, saved), expected) == 0, "%s", \
          gradient_of(text, NULL, wrt, saved))

static void what_is_read_by_index_is_a_factor_but_has_no_gradient(void) {
    DERIVES("d = v * cw[label] + r", "v, r", NULL, "d_v = dy * cw[label];\nd_r = dy");
    DERIVES("d = silu(v) * lg[column]", "v", NULL, "d_v = dy * lg[column] * d_silu(v)");
    DERIVES("d = v * cw[3] * p", "p", "v, cw", "d_p = row_sum(dy * (v * cw[3]))");
    DERIVES("d = v * cw[label]; o = cw[column] < 3 ? r : v", "r", NULL, "d_r = cw[column] < 3 ? dy_o : 0");
    DERIVES("d = v * cw[label]", "v", "v, label",
            "the gradient reads cw, which desc.saved does not name, nor can it be computed again");
    DERIVES("d = v * cw[label]", "v", "v, cw",
            "the gradient reads label, which desc.saved does not name, nor can it be computed again");
    DERIVES(
        "d = v + r * cw[label]", "v, cw", NULL,
        "desc.formula, column 13: cw is read by index; its gradient is a sum over equal indices, for which "
        "there is no reduction");
    DERIVES(
        "d = v; o = lg[1]", "lg", NULL,
        "desc.formula, column 12: lg is read by index; its gradient is a sum over equal indices, for which "
        "there is no reduction");
}

static void gradients_are_short_and_read_like_the_formula(void) {
    DERIVES("d = v + b", "v, b", NULL, "d_v = dy;\nd_b = column_sum(dy)");
    DERIVES("d = silu(v)", "v", NULL, "d_v = dy * d_silu(v)");
    DERIVES("d = v * p + r", "v,p,r", NULL, "d_v = dy * p;\nd_p = row_sum(dy * v);\nd_r = dy");
    DERIVES("d = v - r * s", "v r s", NULL, "d_r = -(dy * s);\nd_v = dy;\nd_s = all_sum(-(dy * r))");
    DERIVES("d = left(v) * silu(right(v))", "v", NULL,
            "t1 = right(v);\nd_v = pair(dy * silu(t1), dy * left(v) * d_silu(t1))");
    DERIVES("d = left(v, 64) + right(v, 64)", "v", NULL, "d_v = pair(dy, dy, 64)");
    DERIVES("d = even(v) * odd(v)", "v", NULL, "d_v = interleave(dy * odd(v), dy * even(v))");
    DERIVES("d = pair(v, r)", "v,r", NULL, "d_v = left(dy);\nd_r = right(dy)");
    DERIVES("d = relu(v)", "v", NULL, "d_v = v > 0 ? dy : 0");
    DERIVES("d = v * 2 + r * 0 + 1 * u", "u", NULL, "d_u = dy");
    DERIVES("d = - -v", "v", NULL, "d_v = dy");
    DERIVES("d = v", "r", NULL,
            "desc.wrt has \"r\"; accepted are names of operands and v, separated by commas");
    DERIVES("d = v; o = r", "r", NULL, "d_r = dy_o");
    DERIVES("rs = row_sum(v * r)", "v", NULL, "d_v = dy_rs * r");
    DERIVES("rs = row_logsumexp(v)", "v", "v,rs", "d_v = dy_rs * exp(v - rs)");
    DERIVES("d = (v > 0 ? v : 0) + (v > 0 ? 0 : r * v)", "v", NULL,
            "/* derivatives that are 0: comparisons */\nd_v = v > 0 ? dy : dy * r");
    DERIVES("x = v + b; d = x * x", "v", NULL, "d_v = 2 * dy * (v + b)");
    DERIVES("h_1 = v + b; d = exp(h_1) * silu(h_1)", "v", NULL,
            "h_1 = v + b;\nt1 = exp(h_1);\nd_v = dy * t1 * d_silu(h_1) + dy * silu(h_1) * t1");
    DERIVES("d = s * v", "v,k", NULL,
            "desc.wrt has \"k\"; accepted are names of operands and v, separated by commas");
    DERIVES("d = k * v", "k", NULL, "d_k = all_sum(dy * v)");
    CHECK(strcmp(gradient_of("d = acc * r", "acc", "acc,r", NULL), "d_acc = dy * r;\nd_r = dy * acc") == 0,
          "%s", gradient_of("d = acc * r", "acc", "acc,r", NULL));
}

static void gradients_that_people_want_are_simplified(void) {
    size_t i;
    for (i = 0; i < GPI__COUNT(known_formulas); i++)
        CHECK(
            strcmp(gradient_of(known_formulas[i].text, NULL, known_formulas[i].wrt, known_formulas[i].saved),
                   known_formulas[i].gradient) == 0,
            "%s\n%s", known_formulas[i].text,
            gradient_of(known_formulas[i].text, NULL, known_formulas[i].wrt, known_formulas[i].saved));
}

/* Of numbers, terms that are alike, factors in common, and what cancels. */
static void numbers_come_first_and_terms_together(void) {
    DERIVES("d = v * 3 * 5", "v", NULL, "d_v = 15 * dy");
    DERIVES("d = v + v + v", "v", NULL, "d_v = 3 * dy");
    DERIVES("d = v - v", "v", NULL, "d_v = 0");
    DERIVES("d = 30 * v + 999000 * v", "v", NULL, "d_v = 999030 * dy");
    DERIVES("d = 1e6 * v", "v", NULL, "d_v = 1e+06 * dy");
    DERIVES("d = 2 * v - 0.5 * v - v", "v", NULL, "d_v = 0.5 * dy");
    DERIVES("d = r * v * u + u * v * r", "v", NULL, "d_v = 2 * dy * r * u");
    DERIVES("d = r * v - u * v", "v", NULL, "d_v = dy * (r - u)");
    DERIVES("d = -(v * 0.1)", "v", NULL, "d_v = -0.1 * dy");
    DERIVES("d = r - 3 * v * v", "v", NULL, "d_v = -6 * dy * v");
    DERIVES("d = pow(v, 2) + pow(v, 1)", "v", NULL, "d_v = dy + 2 * dy * v");
    DERIVES("d = r * log(v * r)", "v", NULL, "d_v = dy * r / (v * r) * r");
    DERIVES("d = r * exp(v / r)", "v", NULL, "d_v = dy * exp(v / r)");
    DERIVES("d = 1e30 * (1e30 * v)", "v", NULL, "d_v = 1e+30 * (1e+30 * dy)"); /* out of F32's range */
}

static void gradients_by_saved_results_are_what_differences_say(void) {
    saved_instead = "d";
    check_formula("d = tanh(v)");
    check_formula("d = sigmoid(v)");
    check_formula("d = relu(v)");
    saved_instead = "o";
    check_formula("o = tanh(v + b); d = o * r + sigmoid(r)");
    saved_instead = NULL;
}

static void what_is_saved_is_read_and_the_rest_computed_anew(void) {
    DERIVES("d = tanh(v)", "v", "d", "d_v = dy * (1 - d * d)");
    DERIVES("d = sigmoid(v)", "v", "d", "d_v = dy * d * (1 - d)");
    DERIVES("d = relu(v + b)", "v, b", "d", "d_v = d > 0 ? dy : 0;\nd_b = column_sum(d_v)");
    DERIVES("d = tanh(v)", "v", "v, d", "d_v = dy * (1 - d * d)");
    DERIVES("d = tanh(v)", "v", "v", "d_v = dy * d_tanh(v)");
    DERIVES("o = sigmoid(v); d = o * r", "v, r", "v, r, o",
            "d_r = dy * o;\nd_v = (dy_o + dy * r) * o * (1 - o)");
    DERIVES("d = silu(v)", "v", "d",
            "the gradient reads v, which desc.saved does not name, nor can it be computed again");
    DERIVES("o = v + b; d = gelu_erf(o)", "v", "o", "d_v = dy_o + dy * d_gelu_erf(o)");
    DERIVES("o = v + b; d = gelu_erf(o)", "v", "v,b", "d_v = dy_o + dy * d_gelu_erf(v + b)");
    DERIVES("d = exp(v)", "v", "d", "d_v = dy * d");
    DERIVES("d = exp(v)", "v", "v", "d_v = dy * exp(v)");
    DERIVES("d = exp(v)", "v", "v,d", "d_v = dy * d");
    DERIVES("o = v; d = silu(v)", "v", "o", "d_v = dy_o + dy * d_silu(o)");
    DERIVES("d = k * silu(v)", "v", "v", "d_v = dy * k * d_silu(v)");
    DERIVES("d = v * r", "v", "r", "d_v = dy * r");
}

static void a_gradient_that_lacks_what_it_reads_is_refused(void) {
    DERIVES("d = v * r", "v", "v",
            "the gradient reads r, which desc.saved does not name, nor can it be computed again");
    DERIVES("d = silu(v)", "v", "",
            "the gradient reads v, which desc.saved does not name, nor can it be computed again");
    DERIVES(
        "rs = row_logsumexp(v)", "v", "v",
        "desc.formula, column 1: the gradient of row_logsumexp reads its result rs, which desc.saved does not name");
    DERIVES("rs = row_max(v)", "v", NULL,
            "desc.formula, column 1: row_max, which rs is assigned, has no derivative");
    DERIVES("cs = column_min(v)", "v", NULL,
            "desc.formula, column 1: column_min, which cs is assigned, has no derivative");
    DERIVES("al = all_max(v)", "v", NULL,
            "desc.formula, column 1: all_max, which al is assigned, has no derivative");
    DERIVES("rs = row_max(r); d = v", "v", NULL, "d_v = dy"); /* v has no part in it */
    DERIVES("d = v * label", "label", NULL, "desc.wrt names label, whose whole numbers have no gradient");
    DERIVES("d = v; o = r", "o", NULL, "desc.wrt names o, an output; accepted are inputs and the value");
    DERIVES("d = v", "d", NULL, "desc.wrt names d, an output; accepted are inputs and the value");
    DERIVES("d = v", "v,v", NULL, "desc.wrt names v twice");
    DERIVES("d = v", "v,", NULL, "desc.wrt has a comma without a name behind it, at character 2");
    DERIVES("d = v", "v , ", NULL, "desc.wrt has a comma without a name behind it, at character 4");
    DERIVES("d = v", ",v", NULL, "desc.wrt has a comma without a name before it, at character 1");
    DERIVES("d = v * r", "v,,r", NULL, "desc.wrt has a comma without a name before it, at character 3");
    DERIVES("d = v * r", "r", "v,", "desc.saved has a comma without a name behind it, at character 2");
    DERIVES("d = v", "", NULL, "desc.wrt is empty; it names what gradients are wanted of");
    DERIVES("d = v", NULL, NULL, "desc.wrt is NULL; it names what gradients are wanted of");
    DERIVES("d = v", "v", "v, x",
            "desc.saved has \"x\"; accepted are names of operands, v and d, separated by commas");
    DERIVES("d = v +", "v", NULL,
            "desc.formula, column 8: the end is not expected here, but a number, a name, a function or '('");
    DERIVES(
        "d = part(v, 0, 3) + h", "h", NULL,
        "the gradient does not divide columns, and so does not say that they are in 3 parts: name what the "
        "formula divides in desc.wrt, too");
    DERIVES("d = left(v) * p; rs = row_sum(left(r) + p)", "p", NULL, "d_p = row_sum(dy_rs + dy * left(v))");
    DERIVES(
        "d = left(v); rs = row_sum(left(r) + p)", "p", NULL,
        "the gradient of p is a sum over columns of what does not change along them, in a formula with halves, and "
        "cannot be said in one formula");
}

/* Widths that a gradient's text cannot say. */
static void a_gradient_whose_columns_would_be_others_is_refused(void) {
    gemmepi_operand operand;
    gemmepi_derive_desc desc;
    memset(&operand, 0, sizeof operand);
    memset(&desc, 0, sizeof desc);
    DERIVES(
        "al = all_sum(s + 0.5 * h)", "s", NULL,
        "the gradient of s is a sum over columns of what does not change along them, in a formula with halves, and "
        "cannot be said in one formula");
    operand.name = "wide", operand.kind = GEMMEPI_FULL, operand.width = GEMMEPI_WIDTH_DOUBLE,
    operand.output = 1;
    desc.operands = &operand, desc.operand_count = 1, desc.wrt = "v";
    desc.formula = "wide = pair(v, 1); d = v";
    CHECK(gemmepi_derive(&desc, NULL, 0) > 0, "%s", gemmepi_last_error());
    desc.formula = "wide = pair(1, 2); d = v / columns";
    CHECK(gemmepi_derive(&desc, NULL, 0) == 0 && strstr(gemmepi_last_error(), "the gradient counts columns"),
          "%s", gemmepi_last_error());
    desc.formula = "wide = pair(v, 1); d = v / columns"; /* the upstream of wide says how wide it is */
    CHECK(gemmepi_derive(&desc, NULL, 0) > 0, "%s", gemmepi_last_error());
}

/* Of 2 n columns that the formula sums, where nothing in the gradient's text says that they are more than n. */
static void a_gradient_whose_sums_would_be_over_fewer_columns_is_refused(void) {
    gemmepi_operand operands[4];
    gemmepi_derive_desc desc;
    char text[256];
    memset(operands, 0, sizeof operands);
    memset(&desc, 0, sizeof desc);
    operands[0].name = "x", operands[0].kind = GEMMEPI_PER_ROW;
    operands[1].name = "y", operands[1].kind = GEMMEPI_PER_ROW;
    operands[2].name = "rs", operands[2].kind = GEMMEPI_PER_ROW, operands[2].output = 1;
    operands[3].name = "wide", operands[3].kind = GEMMEPI_FULL, operands[3].width = GEMMEPI_WIDTH_DOUBLE;
    operands[3].output = 1;
    desc.operands = operands, desc.operand_count = 4;
    desc.formula = "wide = pair(v, v); rs = row_sum(tanh(pair(x, y)))", desc.wrt = "x";
    CHECK(gemmepi_derive(&desc, NULL, 0) == 0 && strstr(gemmepi_last_error(), "the gradient counts columns"),
          "%s", gemmepi_last_error());
    desc.wrt = "x, v"; /* d_v is n columns wide, and made of halves */
    CHECK(gemmepi_derive(&desc, text, sizeof text) > 0, "%s", gemmepi_last_error());
    CHECK(strcmp(text,
                 "d_v = left(dy_wide) + right(dy_wide);\nd_x = row_sum(left(dy_rs * d_tanh(pair(x, y))))") ==
              0,
          "%s", text);
    desc.formula = "wide = pair(x, 1) * pair(v, v); rs = row_sum(v)", desc.wrt = "x";
    CHECK(gemmepi_derive(&desc, NULL, 0) > 0, "%s", gemmepi_last_error()); /* dy_wide says it */
}

/* Of formulas of 2 n columns: what is read that is so wide (w, and d, which is saved), or an output that would be half as wide. */
static void a_gradient_whose_text_says_how_wide_it_is_is_taken(void) {
    static const struct {
        const char *formula, *wrt, *gradient; /* "": it is refused */
    } cases[] = {
        {"o = left(column) * v; al = all_sum(s * column); d = v", "s", ""},
        {"o = v; al = all_sum(w * s); d = v", "s", "d_s = all_sum(dy_al * w)"},
        {"o = left(column) * v; d = exp(column * 1.5); al = all_sum(d * s)", "s", "d_s = all_sum(dy_al * d)"},
        {"o = left(w); d = left(w); al = all_sum(left(column) * v)", "v", "d_v = dy_al * left(column)"},
    };
    gemmepi_operand operands[4];
    gemmepi_derive_desc desc;
    char text[256];
    size_t i;
    memset(operands, 0, sizeof operands);
    operands[0].name = "s", operands[0].kind = GEMMEPI_SCALAR;
    operands[1].name = "w", operands[1].kind = GEMMEPI_FULL, operands[1].width = GEMMEPI_WIDTH_DOUBLE;
    operands[2].name = "o", operands[2].kind = GEMMEPI_FULL, operands[2].output = 1;
    operands[3].name = "al", operands[3].kind = GEMMEPI_SCALAR, operands[3].output = 1;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        memset(&desc, 0, sizeof desc);
        desc.operands = operands, desc.operand_count = 4;
        desc.formula = cases[i].formula, desc.wrt = cases[i].wrt, desc.saved = "s, w, d";
        text[0] = 0;
        (void)gemmepi_derive(&desc, text, sizeof text);
        CHECK(strcmp(text, cases[i].gradient) == 0 &&
                  (text[0] || strstr(gemmepi_last_error(), "the gradient counts columns")),
              "%s: %s (%s)", cases[i].formula, text, gemmepi_last_error());
    }
}

static void operands_and_names_that_no_formula_has_are_refused(void) {
    gemmepi_operand operand;
    gemmepi_derive_desc desc;
    memset(&operand, 0, sizeof operand);
    memset(&desc, 0, sizeof desc);
    operand.name = "wide", operand.kind = GEMMEPI_FULL, operand.width = GEMMEPI_WIDTH_DOUBLE;
    desc.operands = &operand, desc.operand_count = 1, desc.wrt = "wide", desc.formula = "d = v";
    CHECK(gemmepi_derive(&desc, NULL, 0) == 0 &&
              strcmp(gemmepi_last_error(),
                     "desc.wrt names wide, which is 2 n columns wide and not read; the formula "
                     "has only n and n / 2 columns") == 0,
          "%s", gemmepi_last_error());
    desc.value = "d", desc.wrt = "d";
    CHECK(gemmepi_derive(&desc, NULL, 0) == 0 &&
              strcmp(gemmepi_last_error(),
                     "desc.value is d, as the result is called; give it another name") == 0,
          "%s", gemmepi_last_error());
    desc.value = "7";
    CHECK(gemmepi_derive(&desc, NULL, 0) == 0 && strstr(gemmepi_last_error(), "desc.value is \"7\""), "%s",
          gemmepi_last_error());
}

static void what_is_saved_and_has_no_columns_is_computed_anew(void) {
    DERIVES("d = 0.5 + s; oh = d * h", "h", "s,h,d", "d_h = dy_oh * (0.5 + s)");
}

static void numbers_of_f64_have_gradients(void) {
    DERIVES("d = min(v, 1e300)", "v", NULL, "d_v = v < 1e+300 ? dy : v == 1e+300 ? 0.5 * dy : 0");
}

static void derivatives_that_are_0_are_told(void) {
    DERIVES("d = sign(v) * v", "v", NULL, "/* derivatives that are 0: comparisons */\nd_v = dy * sign(v)");
    DERIVES("d = d_relu(v) * v", "v", NULL,
            "/* derivatives that are 0: comparisons */\nd_v = dy * d_relu(v)");
    DERIVES("d = floor(v) + v", "v", NULL, "/* derivatives that are 0: floor */\nd_v = dy");
    DERIVES("d = round(v)", "v", NULL, "/* derivatives that are 0: round */\nd_v = 0");
    DERIVES("d = v > 0 ? v : r", "v", NULL,
            "/* derivatives that are 0: comparisons */\nd_v = v > 0 ? dy : 0");
    DERIVES("d = uniform(seed, 0) < 0.5 ? v : 0", "v", NULL,
            "/* derivatives that are 0: uniform */\nd_v = uniform(seed, 0) < 0.5 ? dy : 0");
}

static void what_is_rounded_by_chance_has_the_gradient_of_what_was_not(void) {
    gemmepi_operand operands[2];
    gemmepi_derive_desc desc;
    char text[256];
    memset(operands, 0, sizeof operands);
    memset(&desc, 0, sizeof desc);
    operands[0].name = "seed", operands[0].kind = GEMMEPI_SCALAR, operands[0].dtype = GEMMEPI_I64;
    operands[1].name = "o", operands[1].kind = GEMMEPI_FULL, operands[1].dtype = GEMMEPI_BF16,
    operands[1].output = 1;
    desc.operands = operands, desc.operand_count = 2, desc.wrt = "v";
    desc.formula = "o = stochastic(silu(v), seed); d = o * v";
    CHECK(gemmepi_derive(&desc, text, sizeof text) &&
              strcmp(text, "d_v = dy * silu(v) + (dy * v + dy_o) * d_silu(v)") == 0,
          "%s %s", text, gemmepi_last_error());
    desc.formula = "o = stochastic(tanh(v), seed)", desc.saved = "o", desc.upstream = "o";
    CHECK(gemmepi_derive(&desc, text, sizeof text) && strcmp(text, "d_v = dy_o * (1 - o * o)") == 0, "%s %s",
          text, gemmepi_last_error());
    DERIVES("d = stochastic(silu(v) * r, seed)", "v, r", NULL,
            "d_r = dy * silu(v);\nd_v = dy * r * d_silu(v)");
}

/* The gradient's value at one unit, v and r given, dy 1. */
static double slope(const char *text, double v, double r) {
    gpi__formula *f;
    gpi__formula_desc desc;
    gemmepi_allocator allocator = gpi__default_allocator();
    bounded_unit unit;
    estimate here[128];
    double out;
    int i;
    if (!prepare(text))
        return NAN;
    desc = desc_of(gradient_of(text, NULL, "v", NULL), c.derived, 0, GEMMEPI_F64, GEMMEPI_F64);
    {
        gemmepi_derive_desc d = derive_desc(text);
        d.wrt = "v", d.saved = NULL;
        desc.operand_count = gemmepi_derive_operands(&d, c.derived, 80);
    }
    desc.without_value = desc.without_result = 1;
    freed(c.forward), freed(c.backward);
    if (gpi__parse_formula(&allocator, &desc, &f))
        return NAN;
    memset(&unit, 0, sizeof unit);
    for (i = 0; i < desc.operand_count; i++)
        unit.operands[i][0].value = strcmp(c.derived[i].name, "v") == 0   ? v
                                    : strcmp(c.derived[i].name, "r") == 0 ? r
                                                                          : 1;
    evaluate_bounded(f, &unit, here);
    for (i = 0; i < desc.operand_count && !c.derived[i].output; i++)
        ;
    out = bounded_output(f, here, i, 0).value;
    freed(f);
    return out;
}

static void ties_and_bends_have_the_slopes_that_are_told(void) {
    CHECK(slope("d = min(v, r)", 1, 1) == 0.5 && slope("d = max(v, r)", 1, 1) == 0.5, "ties share");
    CHECK(slope("d = min(v, r)", 1, 2) == 1 && slope("d = min(v, r)", 2, 1) == 0, "the lesser has it");
    CHECK(slope("d = clamp(v, -1, 1) + 0 * r", 1, 0) == 1 && slope("d = clamp(v, -1, 1) + 0 * r", -1, 0) == 1,
          "clamp passes at its bounds");
    CHECK(slope("d = clamp(v, -1, 1) + 0 * r", 1.5, 0) == 0, "and nothing beyond");
    CHECK(slope("d = min(max(v, 0), 6) + 0 * r", 0, 0) == 1 &&
              slope("d = max(min(v, 6), 0) + 0 * r", 6, 0) == 1,
          "so does what is a clamp");
    CHECK(slope("d = min(max(v, 6), 0) + 0 * r", 6, 0) == 0 &&
              slope("d = max(min(v, 0), 6) + 0 * r", 0, 0) == 0,
          "bounds that have no number between them are none");
    CHECK(slope("d = max(v, 0) + log1p(exp(-abs(v))) + 0 * r", 0, 0) == 0.5, "a sum that has no bend");
    CHECK(slope("d = abs(v) + 0 * r", 0, 0) == 0 && slope("d = abs(v) + 0 * r", -2, 0) == -1, "abs");
    CHECK(slope("d = pow(v, 2) + 0 * r", 0, 0) == 0 && slope("d = pow(v, 1) + 0 * r", 0, 0) == 1, "pow at 0");
    CHECK(slope("d = v > 0 ? v : log(v) * r", 2, NAN) == 1, "NaN of what is not taken");
    CHECK(slope("x = log(v); d = (v > 0 ? x * r : 0) + (v > 1 ? x : v)", 0, 1) == 1,
          "of what two do not take");
    CHECK(slope("d = relu(v) + 0 * r", -1, 0) == 0, "relu");
    CHECK(slope("d = v > 0 ? min(log(v), 1) + 0 * r : 0", 0, 0) == 0, "min of what is not taken");
    CHECK(slope("d = v > 0 ? abs(log(v)) + 0 * r : 0", 0, 0) == 0, "abs of it");
    CHECK(slope("d = v > 0 ? max(log(v), -5) + 0 * r : v", 0, 0) == 1, "max of it");
    CHECK(slope("t = log(v); d = (v > 0 ? (v > 1 ? t : 2 * t) : 0) + 0 * r", 0, 0) == 0, "a choice of it");
    CHECK(slope("t = log(v); d = (v > 0 ? t : 0) + (v > 1 ? t : 1) + (v > 2 ? t : 2) + (v > 3 ? t : 3) + "
                "(v > 4 ? t : 4) + (v > 5 ? t : 5) + (v > 6 ? t : 6) + (v > 7 ? t : 7) + (v > 8 ? t : 8) + "
                "(v > 9 ? t : 9) + (v > 10 ? t : 10) + 0 * r",
                0, 0) == 0,
          "of what eleven do not take");
}

static const char *gradient_with_ties(const char *text, int ties_to_first) {
    static char gradient[1024];
    gemmepi_derive_desc desc;
    c.count = operands_of(text, c.operands);
    desc = derive_desc(text);
    desc.wrt = has_word(text, "r") ? "v, r" : "v", desc.saved = NULL, desc.ties_to_first = ties_to_first;
    if (gemmepi_derive(&desc, gradient, sizeof gradient) == 0)
        snprintf(gradient, sizeof gradient, "%s", gemmepi_last_error());
    return gradient;
}

static void of_ties_the_first_has_the_gradient_where_that_is_asked_for(void) {
    static const struct {
        const char *text, *gradient;
    } cases[] = {
        {"d = max(v, 0)", "d_v = v >= 0 ? dy : 0"},
        {"d = max(0, v)", "d_v = v > 0 ? dy : 0"},
        {"d = min(v, r)", "d_v = v <= r ? dy : 0;\nd_r = r < v ? dy : 0"},
        {"d = max(v, r)", "d_v = v >= r ? dy : 0;\nd_r = r > v ? dy : 0"},
        {"d = min(max(v, 0), 6)", "d_v = v >= 0 && v <= 6 ? dy : 0"},
        {"d = max(v, 0) - v * u + log1p(exp(-abs(v)))", "d_v = dy * (sigmoid(v) - u)"},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++)
        CHECK(strcmp(gradient_with_ties(cases[i].text, 1), cases[i].gradient) == 0, "%s: %s", cases[i].text,
              gradient_with_ties(cases[i].text, 1));
    CHECK(strcmp(gradient_with_ties("d = max(v, 0)", 2), "desc.ties_to_first is 2; accepted are 0 and 1") ==
              0,
          "%s", gradient_with_ties("d = max(v, 0)", 2));
    CHECK(strcmp(gradient_with_ties("d = max(v, 0)", 0), "d_v = v > 0 ? dy : v == 0 ? 0.5 * dy : 0") == 0,
          "%s", gradient_with_ties("d = max(v, 0)", 0));
}

/* A half that is not read has the gradient 0, also where its logarithm would be NaN. */
static void the_gradient_of_what_is_not_taken_stays_0_in_halves(void) {
    DERIVES("d = left(log(v))", "v", NULL, "d_v = pair(dy / left(v), 0)");
    DERIVES("d = right(log(v))", "v", NULL, "d_v = pair(0, dy / right(v))");
    DERIVES("d = odd(log(v))", "v", NULL, "d_v = interleave(0, dy / odd(v))");
    DERIVES("l = log(v); d = left(v) > 0 ? left(l) * right(l) : 1", "v", NULL,
            "/* derivatives that are 0: comparisons */\n"
            "l = log(v);\n"
            "t1 = left(v);\n"
            "t2 = t1 > 0;\n"
            "d_v = pair(t2 ? dy * right(l) / t1 : 0, t2 ? dy * left(l) / right(v) : 0)");
    DERIVES("d = r > 0 ? pair(log(h), h) : 0", "h", NULL,
            "t1 = r > 0;\n"
            "d_h = (right(t1) ? right(dy) : 0) + (left(t1) ? left(dy) / h : 0)");
    DERIVES("d = r > 0 ? interleave(h, log(h)) : 0", "h", NULL,
            "t1 = r > 0;\n"
            "d_h = (even(t1) ? even(dy) : 0) + (odd(t1) ? odd(dy) / h : 0)");
    DERIVES("d = r > 0 ? -pair(log(h), 1) : 0", "h", NULL, "d_h = left(r > 0) ? left(-dy) / h : 0");
    DERIVES("d = (r > 0 ? pair(log(h), h) : 0) + (u > 0 ? pair(log(h), 1) : 0)", "h", NULL,
            "t1 = r > 0;\n"
            "t2 = left(dy);\n"
            "t3 = (left(u > 0) ? t2 : 0) + (left(t1) ? t2 : 0);\n"
            "d_h = (right(t1) ? right(dy) : 0) + (t3 != 0 ? t3 / h : 0)");
    DERIVES("x = pair(log(h), 1); d = (r > 0 ? x : 0) - (u > 0 ? x * v : 0)", "h", NULL,
            "t1 = (left(u > 0) ? left(-(dy * v)) : 0) + (left(r > 0) ? left(dy) : 0);\n"
            "d_h = t1 != 0 ? t1 / h : 0");
    DERIVES("l = log(v); d = left(v) > 0 ? -left(l) : right(l)", "v", NULL,
            "/* derivatives that are 0: comparisons */\n"
            "t1 = left(v);\n"
            "t2 = t1 > 0;\n"
            "d_v = pair(t2 ? -(dy / t1) : 0, t2 ? 0 : dy / right(v))");
}

static const char *gradient_by(const char *text, const char *upstream) {
    static char gradient[1024];
    gemmepi_derive_desc desc;
    c.count = operands_of(text, c.operands);
    desc = derive_desc(text);
    desc.wrt = "v", desc.saved = NULL, desc.upstream = upstream;
    if (gemmepi_derive(&desc, gradient, sizeof gradient) == 0)
        snprintf(gradient, sizeof gradient, "%s", gemmepi_last_error());
    return gradient;
}

#define DERIVES_BY(text, upstream, expected) \
    CHECK(strcmp(gradient_by(text, upstream), expected) == 0, "%s", gradient_by(text, upstream))

/* A copy for later and a statistic have no upstream, and what has no derivative may then be among them. */
static void nothing_comes_in_from_outputs_that_upstream_does_not_name(void) {
    gemmepi_derive_desc desc;
    int i, count;
    DERIVES_BY("d = silu(v); o = d", NULL, "d_v = (dy_o + dy) * d_silu(v)");
    DERIVES_BY("d = silu(v); o = d", "d", "d_v = dy * d_silu(v)");
    DERIVES_BY("d = silu(v); o = d", "o", "d_v = dy_o * d_silu(v)");
    DERIVES_BY("d = silu(v); o = d", "o, d", "d_v = (dy_o + dy) * d_silu(v)");
    DERIVES_BY("d = 2 * v; rs = row_max(d); rt = row_sum(v)", "d rt", "d_v = dy_rt + 2 * dy");
    DERIVES_BY("d = 2 * v; o = r", "o", "d_v = 0");
    DERIVES_BY("d = v; o = r", "",
               "desc.upstream is empty; it names the outputs that have an upstream, or is NULL");
    DERIVES_BY("d = v; o = r", "d,", "desc.upstream has a comma without a name behind it, at character 2");
    DERIVES_BY("d = v; o = r", "rs",
               "desc.upstream has \"rs\"; accepted are names of operands, v and d, separated by commas");
    DERIVES_BY("d = v; o = r", "d, r",
               "desc.upstream names r, which desc.formula does not assign; accepted are its outputs");
    DERIVES_BY("o = v", "d",
               "desc.upstream names d, which desc.formula does not assign; accepted are its outputs");
    DERIVES_BY("o = v", "v",
               "desc.upstream names v, which desc.formula does not assign; accepted are its outputs");
    c.count = operands_of("d = silu(v); o = d", c.operands);
    desc = derive_desc("d = silu(v); o = d");
    desc.wrt = "v", desc.saved = NULL, desc.upstream = "d";
    count = gemmepi_derive_operands(&desc, c.derived, 80);
    CHECK(count == 3, "%d: %s", count, gemmepi_last_error());
    for (i = 0; i < count; i++)
        CHECK(strcmp(c.derived[i].name, "dy_o") != 0, "dy_o is listed");
}

static void a_formula_without_operands_has_a_gradient(void) {
    char text[64];
    gemmepi_derive_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.formula = "d = sin(v)", desc.wrt = "v";
    CHECK(gemmepi_derive(&desc, text, sizeof text) && strcmp(text, "d_v = dy * cos(v)") == 0, "%s", text);
    desc.wrt = "d";
    CHECK(!gemmepi_derive(&desc, text, sizeof text) &&
              strstr(gemmepi_last_error(), "desc.wrt names d, an output"),
          "%s", gemmepi_last_error());
}

/* What is simplified, and what is not: numbers are joined where F32 has what comes out, and a choice outside a product is one of all of it. */
static void gradients_are_as_short_as_their_values_allow(void) {
    DERIVES("d = 1e-30 * (v * 1e-30)", "v", NULL, "d_v = 1e-30 * (1e-30 * dy)");
    DERIVES("d = 3 * (v * 4)", "v", NULL, "d_v = 12 * dy");
    DERIVES("d = v / 1", "v", NULL, "d_v = dy");
    DERIVES("d = v / 0", "v", NULL, "d_v = dy / 0");
    DERIVES("d = v / r / 1", "v", NULL, "d_v = dy / r");
    DERIVES("d = r * (v / r)", "v", NULL, "d_v = dy");
    DERIVES("d = 3 * (v / 3)", "v", NULL,
            "d_v = 3 * dy / 3"); /* numbers that are written are not taken away */
    DERIVES("d = v * 1 + 0 * v - 0", "v", NULL, "d_v = dy");
    DERIVES("d = 0 / v", "v", NULL, "d_v = -(dy * (0 / v) / v)");
    DERIVES(
        "d = ((v > 0 ? v : 0) - r) * ((v > 0 ? v : 0) - r)", "v", NULL,
        "/* derivatives that are 0: comparisons */\nt1 = v > 0;\nd_v = t1 ? 2 * dy * ((t1 ? v : 0) - r) : 0");
    DERIVES(
        "d = (v > 0 ? v * v : 0) + (r > 0 ? v * r : 0)", "v", NULL,
        "/* derivatives that are 0: comparisons */\nd_v = (r > 0 ? dy * r : 0) + (v > 0 ? 2 * dy * v : 0)");
    DERIVES(
        "q = pair(left(v) * left(r), right(v) + 1); d = left(q) * tanh(right(q))", "v", NULL,
        "t1 = left(r);\nq = pair(left(v) * t1, right(v) + 1);\nt2 = right(q);\nd_v = pair(dy * tanh(t2) * t1, dy * left(q) * d_tanh(t2))");
}

static void an_input_with_either_period_has_no_gradient(void) {
    int which;
    for (which = 0; which < 2; which++) {
        gemmepi_derive_desc desc;
        c.count = operands_of("d = v * r", c.operands);
        *(which ? &c.operands[0].column_period : &c.operands[0].row_period) = 4;
        desc = derive_desc("d = v * r");
        desc.wrt = "r", desc.saved = NULL;
        CHECK(gemmepi_derive(&desc, c.text, sizeof c.text) == 0 && strstr(gemmepi_last_error(), "periods"),
              "%s", gemmepi_last_error());
    }
}

static gemmepi_operand *block_r(int64_t rows, int64_t columns) {
    gemmepi_operand *r = &c.operands[0];
    r->kind = GEMMEPI_BLOCKED, r->block_rows = rows, r->block_columns = columns;
    return r;
}

static void gradients_of_blocks_are_sums_of_groups(void) {
    static const struct {
        const char *formula, *wrt, *gradient;
    } cases[] = {
        {"d = v * r", "v", "d_v = dy * r"},
        {"d = v * r", "r", "d_r = row_sum(dy * v, 128)"},
        {"d = silu(v * r) + r", "v, r", "/* with t1 = v * r */"},
        {"d = left(v * r)", "r", "d_r = row_sum(pair(dy * left(v), 0), 128)"},
    };
    gemmepi_derive_desc desc;
    gemmepi_operand listed[8];
    size_t i;
    int j, count, found;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        c.count = operands_of("d = v * r", c.operands);
        block_r(1, 128);
        desc = derive_desc(cases[i].formula);
        desc.wrt = cases[i].wrt, desc.saved = NULL;
        CHECK(gemmepi_derive(&desc, c.text, sizeof c.text) > 0, "%s", gemmepi_last_error());
        CHECK(cases[i].gradient[0] == '/' ? strstr(c.text, ", 128)") != NULL
                                          : strcmp(c.text, cases[i].gradient) == 0,
              "%s", c.text);
        count = gemmepi_derive_operands(&desc, listed, 8);
        for (j = found = 0; j < count; j++)
            found += listed[j].kind == GEMMEPI_BLOCKED && listed[j].block_rows == 1 &&
                     listed[j].block_columns == 128;
        CHECK(found == 1 + (i == 2), "%s: %d of %d", cases[i].formula, found, count);
    }
}

static void a_reduction_of_groups_has_an_upstream_of_blocks(void) {
    gemmepi_derive_desc desc;
    gemmepi_operand listed[8];
    int i, count, found = 0;
    c.count = operands_of("d = v * r", c.operands);
    block_r(1, 16)->output = 1;
    desc = derive_desc("d = v; r = row_sum(v * v, 16)");
    desc.wrt = "v", desc.saved = NULL;
    CHECK(gemmepi_derive(&desc, c.text, sizeof c.text) > 0 && strcmp(c.text, "d_v = dy + 2 * dy_r * v") == 0,
          "%s: %s", c.text, gemmepi_last_error());
    count = gemmepi_derive_operands(&desc, listed, 8);
    for (i = 0; i < count; i++)
        found += strcmp(listed[i].name, "dy_r") == 0 && listed[i].kind == GEMMEPI_BLOCKED &&
                 listed[i].block_rows == 1 && listed[i].block_columns == 16 && !listed[i].output;
    CHECK(found == 1, "%d of %d", found, count);
    desc.formula = "d = v; r = row_max(v, 16)";
    CHECK(gemmepi_derive(&desc, c.text, sizeof c.text) == 0 &&
              strstr(gemmepi_last_error(), "row_max, which r is assigned, has no derivative"),
          "%s", gemmepi_last_error());
}

static void blocks_of_several_rows_have_no_gradient_in_one_text(void) {
    static const int blocks[][2] = {{2, 128}, {1, 12}, {128, 128}, {8, 1}};
    gemmepi_derive_desc desc;
    size_t i;
    for (i = 0; i < GPI__COUNT(blocks); i++) {
        c.count = operands_of("d = v * r", c.operands);
        block_r(blocks[i][0], blocks[i][1]);
        desc = derive_desc("d = v * r");
        desc.wrt = "r", desc.saved = NULL;
        CHECK(gemmepi_derive(&desc, c.text, sizeof c.text) == 0 &&
                  strstr(gemmepi_last_error(), "desc.wrt names r, a BLOCKED input with blocks of") &&
                  strstr(gemmepi_last_error(),
                         blocks[i][1] % 8 ? "list it as FULL here" : "list it with block_rows 1 here"),
              "%s", gemmepi_last_error());
        block_r(0, 0)->kind = GEMMEPI_FULL;
        CHECK(gemmepi_derive(&desc, c.text, sizeof c.text) && strstr(c.text, "d_r = dy * v"), "%s", c.text);
        block_r(1, 128);
        CHECK(gemmepi_derive(&desc, c.text, sizeof c.text) && strstr(c.text, "d_r = row_sum(dy * v, 128)"),
              "%s", c.text);
    }
}

static void a_name_leaves_room_for_what_a_gradient_puts_before_it(void) {
    char name[80], text[100];
    int length, is_derived;
    for (length = GPI__FORMULA_NAME - 5; length <= GPI__FORMULA_NAME; length++) {
        gemmepi_derive_desc desc;
        gemmepi_operand operand;
        memset(&operand, 0, sizeof operand);
        memset(name, 'x', sizeof name), name[length] = 0;
        operand.name = name, operand.kind = GEMMEPI_FULL;
        snprintf(text, sizeof text, "d = v * %s", name);
        memset(&desc, 0, sizeof desc);
        desc.formula = text, desc.operands = &operand, desc.operand_count = 1, desc.wrt = "v";
        is_derived = gemmepi_derive(&desc, c.text, sizeof c.text) != 0;
        CHECK(is_derived == (length + 3 <= GPI__FORMULA_NAME), "%d characters: %s", length,
              gemmepi_last_error());
    }
}

/* A result that is read becomes an input, whose amax and sums are no longer asked for; numbers on the host say nothing of a type. */
static void an_operand_that_a_gradient_reads_is_an_input(void) {
    gemmepi_operand operands[3];
    gemmepi_derive_desc desc;
    gemmepi_tensor tensor;
    int count, i, seen = 0;
    memset(&tensor, 0, sizeof tensor);
    tensor.dtype = GEMMEPI_F16;
    memset(operands, 0, sizeof operands);
    operands[0].name = "o", operands[0].kind = GEMMEPI_FULL, operands[0].output = 1, operands[0].amax = 1;
    operands[0].accumulate = 0, operands[0].dtype = GEMMEPI_E4M3,
    operands[0].scale.mode = GEMMEPI_SCALE_TENSOR;
    operands[1].name = "k", operands[1].kind = GEMMEPI_NUMBER, operands[1].dtype = GEMMEPI_F64;
    operands[2].name = "r", operands[2].kind = GEMMEPI_FULL, operands[2].dtype = GEMMEPI_F16;
    memset(&desc, 0, sizeof desc);
    desc.formula = "o = exp(v); d = o * k * r", desc.operands = operands, desc.operand_count = 3;
    desc.wrt = "v, r, k", desc.saved = "o, r, k";
    count = gemmepi_derive_operands(&desc, c.derived, 80);
    CHECK(count > 0, "%s", gemmepi_last_error());
    for (i = 0; i < count; i++) {
        const gemmepi_operand *o = &c.derived[i];
        seen +=
            strcmp(o->name, "o") == 0 && !o->output && !o->amax && !o->accumulate && o->dtype == GEMMEPI_E4M3;
        seen += 10 * (strcmp(o->name, "d_r") == 0 && o->output && o->kind == GEMMEPI_FULL &&
                      o->dtype == GEMMEPI_F16);
        seen += 100 * (strcmp(o->name, "d_k") == 0 && o->output && o->kind == GEMMEPI_SCALAR && !o->dtype);
    }
    CHECK(seen == 111, "%d of them", seen);
    for (i = GEMMEPI_I4; i <= GEMMEPI_E8M0; i++) { /* what is only read has no gradient, but others read it */
        operands[2].dtype = (gemmepi_dtype)i, desc.wrt = "v, r";
        CHECK(gemmepi_derive_operands(&desc, c.derived, 80) == 0 &&
                  strstr(gemmepi_last_error(), "desc.wrt names r, in ") &&
                  strstr(gemmepi_last_error(), "a type without a gradient"),
              "of type %d: %s", i, gemmepi_last_error());
        desc.wrt = "v";
        CHECK(gemmepi_derive_operands(&desc, c.derived, 80) > 0, "of type %d: %s", i, gemmepi_last_error());
    }
    desc.wrt = "v, r, k";
    operands[2].tensor = &tensor, operands[2].dtype = GEMMEPI_DTYPE_DEFAULT;
    count = gemmepi_derive_operands(&desc, c.derived, 80);
    for (i = 0; i < count; i++)
        CHECK(strcmp(c.derived[i].name, "d_r") != 0 || !c.derived[i].dtype, "of a tensor: type %d",
              (int)c.derived[i].dtype);
    CHECK(count > 0, "%s", gemmepi_last_error());
}

/* A formula in which each line has two choices of the line before. Its gradient is there, or too long. */
static void check_chain(const char *around, int count) {
    char text[8192];
    int i, length = snprintf(text, sizeof text, "a0 = log(v)");
    gemmepi_derive_desc desc;
    for (i = 1; i <= count; i++)
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "; a%d = %s((v > %d ? a%d : 0) + (v > %d ? a%d : 0))", i, around, i, i - 1, i + 1,
                           i - 1);
    snprintf(text + length, sizeof text - (size_t)length, "; d = a%d", count);
    memset(&desc, 0, sizeof desc);
    desc.formula = text, desc.wrt = "v";
    CHECK(gemmepi_derive(&desc, NULL, 0) > 0 ||
              strstr(gemmepi_last_error(), "has more than 1024 operations") != NULL,
          "%d: %s", count, gemmepi_last_error());
}

/* They would take minutes if the sums were gone through once for each way to what they share: 2 to the power of the lines. */
static void chains_of_choices_are_derived_at_once(void) {
    int count;
    for (count = 4; count <= 60; count += 8) {
        check_chain("", count);
        check_chain("log", count);
    }
}

/* >>operands and lengths */

static void operands_of_a_gradient_are_listed(void) {
    static const struct {
        const char *name;
        int kind, width, output, dtype;
    } want[] = {
        {"v", GEMMEPI_FULL, 0, 0, 0},
        {"dy", GEMMEPI_FULL, GEMMEPI_WIDTH_HALF, 0, 0},
        {"bh", GEMMEPI_PER_COLUMN, GEMMEPI_WIDTH_HALF, 0, 0},
        {"rs", GEMMEPI_PER_ROW, 0, 0, GEMMEPI_F32},
        {"dy_rs", GEMMEPI_PER_ROW, 0, 0, 0},
        {"d_v", GEMMEPI_FULL, 0, 1, 0},
        {"d_bh", GEMMEPI_PER_COLUMN, GEMMEPI_WIDTH_HALF, 1, 0},
        {"d_s", GEMMEPI_SCALAR, 0, 1, 0},
    };
    const char *text = "d = left(v) * bh * s; rs = row_logsumexp(v)";
    gemmepi_derive_desc desc;
    int i, count;
    c.count = operands_of(text, c.operands);
    desc = derive_desc(text);
    desc.wrt = "v, bh, s", desc.saved = "v, bh, rs, s";
    count = gemmepi_derive_operands(&desc, c.derived, 80);
    CHECK(count == 9, "%d: %s", count, gemmepi_last_error());
    for (i = 0; i < (int)GPI__COUNT(want); i++) {
        int at = 0;
        while (at < count && strcmp(c.derived[at].name, want[i].name) != 0)
            at++;
        CHECK(at < count && (int)c.derived[at].kind == want[i].kind &&
                  (int)c.derived[at].width == want[i].width && c.derived[at].output == want[i].output &&
                  (int)c.derived[at].dtype == want[i].dtype,
              "%s", want[i].name);
    }
    CHECK(gemmepi_derive_operands(&desc, NULL, 0) == 9, "the count alone");
    memset(&c.derived[2], 0x55, sizeof c.derived[2]);
    CHECK(gemmepi_derive_operands(&desc, c.derived, 2) == 9 && ((unsigned char *)&c.derived[2])[0] == 0x55,
          "no more");
    desc.wrt = "q";
    CHECK(gemmepi_derive_operands(&desc, c.derived, 80) == 0, "an error");
    CHECK(gemmepi_derive_operands(NULL, c.derived, 80) == 0 && strstr(gemmepi_last_error(), "desc is NULL"),
          "NULL");
}

static void results_that_are_read_become_inputs(void) {
    const char *text = "d = exp(left(v)); oh = h";
    gemmepi_derive_desc desc;
    int i, count;
    c.count = operands_of(text, c.operands);
    c.operands[0].dtype = GEMMEPI_F64;
    desc = derive_desc(text);
    desc.wrt = "v", desc.saved = "d, h";
    count = gemmepi_derive_operands(&desc, c.derived, 80);
    for (i = 0; i < count && strcmp(c.derived[i].name, "d") != 0; i++)
        ;
    CHECK(i < count && c.derived[i].kind == GEMMEPI_FULL && c.derived[i].width == GEMMEPI_WIDTH_HALF &&
              !c.derived[i].output,
          "%d of %d: %s", i, count, gemmepi_last_error());
    c.operands[0].row_period = 4;
    desc.wrt = "h", desc.saved = NULL;
    CHECK(gemmepi_derive(&desc, NULL, 0) == 0 &&
              strstr(gemmepi_last_error(), "desc.wrt names h, an input with periods"),
          "%s", gemmepi_last_error());
}

static void derive_writes_as_snprintf_does(void) {
    const char *text = "d = silu(v)", *whole = "d_v = dy * d_silu(v)";
    gemmepi_derive_desc desc;
    char room[64];
    size_t size;
    c.count = 0;
    desc = derive_desc(text);
    desc.wrt = "v", desc.saved = NULL;
    CHECK(gemmepi_derive(&desc, NULL, 0) == strlen(whole), "the length alone");
    for (size = 0; size < sizeof room; size++) {
        memset(room, '#', sizeof room);
        CHECK(gemmepi_derive(&desc, room, size) == strlen(whole), "%d", (int)size);
        CHECK(size == 0 || (strncmp(room, whole, size - 1) == 0 && strlen(room) < size), "%d: %s", (int)size,
              room);
        CHECK(size == sizeof room || room[size] == '#', "%d is written", (int)size);
    }
    CHECK(gemmepi_derive(NULL, room, sizeof room) == 0, "NULL");
}

/* Nobody writes it, so it may have more characters than a formula, and is taken as one; operations are as many. */
static void a_gradient_may_have_more_characters_than_a_formula(void) {
    static char text[4096], longest[40000], again[16];
    int i, good = 0, too_many = 0;
    longest[0] = 0;
    for (i = 1; i < 320; i += 3) {
        const char *said;
        int k;
        strcpy(text, "d = v");
        for (k = 0; k < i; k++)
            strcat(text, i % 2 ? "*sin(v*r)" : "*v");
        said = gradient_of(text, NULL, "v", NULL);
        good += strstr(said, "d_v = ") != NULL;
        too_many += strstr(said, "has more than 1024 operations") != NULL;
        if (strstr(said, "d_v = ") && strlen(said) > strlen(longest))
            strcpy(longest, said);
    }
    CHECK(good > 80 && too_many > 5 && good + too_many == 107, "%d good, %d of too many", good, too_many);
    CHECK(strlen(longest) > 6000, "the longest has %d characters", (int)strlen(longest));
    {
        gemmepi_operand operands[4];
        gemmepi_derive_desc desc;
        memset(operands, 0, sizeof operands);
        memset(&desc, 0, sizeof desc);
        operands[0].name = "v", operands[1].name = "dy", operands[2].name = "d_v", operands[3].name = "r";
        for (i = 0; i < 4; i++)
            operands[i].kind = GEMMEPI_FULL;
        operands[2].output = 1;
        desc.formula = longest, desc.operands = operands, desc.operand_count = 4, desc.wrt = "dy";
        CHECK(gemmepi_derive(&desc, again, sizeof again) > 0, "%s", gemmepi_last_error());
        operands[2].name = "o"; /* what a user writes */
        CHECK(gemmepi_derive(&desc, again, sizeof again) == 0 &&
                  strstr(gemmepi_last_error(), "characters; at most 4096 are accepted"),
              "%s", gemmepi_last_error());
    }
}

/* More names than a text of a user has room for. */
static void a_gradient_with_too_many_names_is_refused(void) {
    static char text[20000];
    gemmepi_operand operand;
    gemmepi_derive_desc desc;
    int i, length = snprintf(text, sizeof text, "a0 = v");
    for (i = 1; i < 1100; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ";a%d=a%d", i, i - 1);
    snprintf(text + length, sizeof text - (size_t)length, ";d_x=a%d", i - 1);
    memset(&operand, 0, sizeof operand);
    memset(&desc, 0, sizeof desc);
    operand.name = "d_x", operand.kind = GEMMEPI_FULL, operand.output = 1;
    desc.formula = text, desc.operands = &operand, desc.operand_count = 1, desc.wrt = "v";
    CHECK(gemmepi_derive(&desc, NULL, 0) == 0 &&
              strstr(gemmepi_last_error(), "the formula gives more than 1024 names"),
          "%s", gemmepi_last_error());
}

/* Each level adds as many operations, not as many as all before it. */
static void chains_of_powers_grow_by_a_level(void) {
    static char text[1024];
    int k, i, before = 0, length;
    for (k = 1; k < 12; k++) {
        strcpy(text, "x0 = exp(v)");
        for (i = 1; i <= k; i++)
            sprintf(text + strlen(text), "; x%d = pow(x%d, x%d)", i, i - 1, i - 1);
        sprintf(text + strlen(text), "; d = x%d", k);
        length = (int)strlen(gradient_of(text, NULL, "v", NULL));
        CHECK(strstr(gradient_of(text, NULL, "v", NULL), "d_v = ") && (k == 1 || length - before < 200),
              "%d powers: %d characters more: %s", k, length - before, gradient_of(text, NULL, "v", NULL));
        before = length;
    }
    check_formula("x0 = exp(0.2 * v); x1 = pow(x0, x0); x2 = pow(x1, x1); d = r * pow(x2, x2)");
}

static void a_name_that_the_gradient_gives_is_refused_where_it_may_be_read(void) {
    gemmepi_operand operand;
    gemmepi_derive_desc desc;
    static const struct {
        const char *name, *upstream, *said; /* "": it is derived */
    } cases[] = {
        {"dy", NULL, "desc.formula reads dy, a name that its gradient gives; choose another"},
        {"d_v", NULL, "desc.formula reads d_v, a name that its gradient gives; choose another"},
        {"d_x", NULL, ""},
        {"dy_x", NULL, ""},
        {"v", NULL, "desc.wrt names v twice"},
    };
    size_t i;
    memset(&operand, 0, sizeof operand);
    memset(&desc, 0, sizeof desc);
    operand.kind = GEMMEPI_FULL;
    desc.operands = &operand, desc.operand_count = 1;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        char text[32];
        snprintf(text, sizeof text, "d = v * %s", cases[i].name);
        operand.name = cases[i].name, desc.formula = text;
        desc.wrt = strcmp(cases[i].name, "v") == 0 ? "v, v" : "v";
        CHECK((gemmepi_derive(&desc, NULL, 0) ? !cases[i].said[0]
                                              : strcmp(gemmepi_last_error(), cases[i].said) == 0),
              "%s: %s", text, gemmepi_last_error());
    }
    desc.wrt = "v";
    operand.name = "a_name_of_58_characters_that_is_too_long_with_d_before_it_xx", desc.formula = "d = v";
    CHECK(gemmepi_derive(&desc, NULL, 0) == 0 && strstr(gemmepi_last_error(), "at most 57 are accepted"),
          "%s", gemmepi_last_error());
    operand.name = "t1", desc.formula = "dy = v * t1; t__2 = exp(dy); d = t__2 * t__2 * dy";
    CHECK(gemmepi_derive(&desc, NULL, 0) > 0, "%s", gemmepi_last_error());
    {
        char text[512];
        gemmepi_derive(&desc, text, sizeof text);
        CHECK(!strstr(text, "t1 =") && !strstr(text, "dy =") && strstr(text, "t_1 = v * t1"), "%s", text);
    }
}

/* >>gradients of gradients */

static void second_derivatives_of_activations_are_what_differences_say(void) {
    char name[16], text[128];
    int i, before = gradients, has_parameter;
    for (i = 1; i < (int)GPI__COUNT(gpi__activations); i++) {
        gpi__small_name(i, name);
        has_parameter = gpi__activations[i].parameter != 0;
        snprintf(text, sizeof text, "d = r * d_%s(2.5 * v%s)", name, has_parameter ? ", s" : "");
        check_formula(text);
        snprintf(text, sizeof text, "d = d_%s(v) * d_%s(u) * p", name, name);
        check_formula(text);
    }
    CHECK(gradients - before > 70, "%d gradients were looked at", gradients - before);
}

/* The formula of one gradient at one row and column, dy being 0.75, and L what it writes to d_v. */
static double first_gradient(const char *text, const gemmepi_operand *operands, int count, const char *wanted,
                             double v, double r) {
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__formula_desc desc = desc_of(text, operands, count, GEMMEPI_F64, GEMMEPI_F64);
    gpi__formula *f;
    bounded_unit unit;
    static estimate here[GPI__GRAPH_NODES * 2];
    double out = NAN;
    int i;
    desc.without_value = desc.without_result = 1;
    if (gpi__parse_formula(&allocator, &desc, &f))
        return NAN;
    memset(&unit, 0, sizeof unit);
    for (i = 0; i < count; i++)
        unit.operands[i][0].value = strcmp(operands[i].name, "v") == 0    ? v
                                    : strcmp(operands[i].name, "r") == 0  ? r
                                    : strcmp(operands[i].name, "dy") == 0 ? 0.75
                                                                          : 1;
    evaluate_bounded(f, &unit, here);
    for (i = 0; i < count; i++)
        if (operands[i].output && strcmp(operands[i].name, wanted) == 0)
            out = bounded_output(f, here, i, 0).value;
    freed(f);
    return out;
}

/* Of the text that derive wrote, with the operands that it listed: v is one of them. */
static void check_twice(const char *text) {
    static char once[8192], twice[8192];
    gemmepi_operand first[8], second[16];
    gemmepi_derive_desc desc;
    const double points[] = {-3.6, -2.1, -0.7, 0.4, 1.9, 3.3}, h = 1e-5;
    double got, want;
    int counts[2], i;
    c.count = operands_of(text, c.operands);
    desc = derive_desc(text);
    desc.wrt = "v", desc.saved = NULL;
    counts[0] = gemmepi_derive(&desc, once, sizeof once) ? gemmepi_derive_operands(&desc, first, 8) : 0;
    if (counts[0] && !has_word(once, "dy"))
        return; /* it is 0 */
    memset(&desc, 0, sizeof desc);
    desc.formula = once, desc.operands = first, desc.operand_count = counts[0], desc.wrt = "v, dy";
    counts[1] = counts[0] && gemmepi_derive(&desc, twice, sizeof twice)
                    ? gemmepi_derive_operands(&desc, second, 16)
                    : 0;
    CHECK(counts[1] > 0, "%s\n%s\n%s", text, once, gemmepi_last_error());
    for (i = 0; i < (int)GPI__COUNT(points) && counts[1]; i++) {
        got = first_gradient(twice, second, counts[1], "d_v", points[i], 0.5);
        want = (first_gradient(once, first, counts[0], "d_v", points[i] + h, 0.5) -
                first_gradient(once, first, counts[0], "d_v", points[i] - h, 0.5)) /
               (2 * h);
        CHECK(fabs(got - want) <= 1e-7 * (1 + fabs(want)), "%s\n%s\n%g: %.9g, not %.9g", once, twice,
              points[i], got, want);
        got = first_gradient(twice, second, counts[1], "d_dy", points[i], 0.5) * 0.75;
        want = first_gradient(once, first, counts[0], "d_v", points[i], 0.5);
        CHECK(fabs(got - want) <= 1e-12 * (1 + fabs(want)), "%s\n%s\n%g: d_dy %.9g, not %.9g", once, twice,
              points[i], got, want);
    }
}

static void gradients_of_gradients_are_what_differences_say(void) {
    char name[16], text[128];
    int i;
    for (i = 1; i < (int)GPI__COUNT(gpi__activations); i++) {
        snprintf(text, sizeof text, "d = %s(v) * r", gpi__small_name(i, name));
        check_twice(text);
    }
    check_twice("d = exp(r * v) * v");
    check_twice("x = v * r; d = x * x * sin(x)");
    check_twice("d = pow(v, 3) + log(20 + v)");
    check_twice("d = max(v, r) * v");
}

static void gradients_of_gradients_of_drawn_formulas_are_what_differences_say(void) {
    static char text[1 << 14];
    int i;
    draw_from_seed(11);
    for (i = 0; i < 40; i++) {
        do {
            strcpy(text, "x0 = tanh(v * r); d = ");
            draw_smooth(text, 0, 3, 0);
        } while (strlen(text) > 300 || !strstr(text + 2, "x0") || strstr(text, "pair(") ||
                 strstr(text, "left(") || strstr(text, "right("));
        check_twice(text);
    }
}

/* An operand called d is what a gradient reads of D. */
static void an_operand_called_d_or_v_is_one(void) {
    gemmepi_operand operands[3];
    gemmepi_derive_desc desc;
    char text[64];
    memset(operands, 0, sizeof operands);
    memset(&desc, 0, sizeof desc);
    operands[0].name = "v", operands[1].name = "d", operands[2].name = "o";
    operands[0].kind = operands[1].kind = operands[2].kind = GEMMEPI_FULL;
    operands[2].output = 1;
    desc.formula = "o = v * d", desc.operands = operands, desc.operand_count = 3, desc.wrt = "d, v";
    CHECK(gemmepi_derive(&desc, text, sizeof text) && strcmp(text, "d_v = dy_o * d;\nd_d = dy_o * v") == 0,
          "%s", gemmepi_last_error());
    desc.value = "v";
    CHECK(!gemmepi_derive(&desc, text, sizeof text) &&
              strstr(gemmepi_last_error(), "is v, as the value is called"),
          "%s", gemmepi_last_error());
}

/* Lists of lists: each names what the one before has, and new names. */
/* Texts of operands, and the same as formulas of results. */
static const struct {
    const char *text, *value, *same, *wrt;
} texts_of_operands[] = {
    {"a * p * b", "a", "d = a * p * b", "a, p, b"},
    {"t = a + r; /* d = 2; */ t * t;", "a", "t = a + r; d = t * t", "a, r"},
    {"silu(left(a)) * right(a) // a gate", "a", "d = silu(left(a)) * right(a)", "a"},
    {"(b - r) * p", "b", "d = (b - r) * p", "b, r, p"},
    {"a == p ? a : b", "a", "d = a == p ? a : b", "a, b"},
    {"pair(a, -a) * p", "a", "d = pair(a, -a) * p", "p, a"},
};

static void the_text_of_an_operand_is_derived_as_the_formula_that_assigns_it(void) {
    char text[2][1024];
    int i;
    for (i = 0; i < (int)GPI__COUNT(texts_of_operands); i++) {
        gemmepi_derive_desc desc;
        gemmepi_operand without_b[GPI__FORMULA_OPERANDS];
        int o, kept = 0;
        c.count = operands_of(texts_of_operands[i].same, c.operands);
        for (o = 0; o < c.count; o++)
            if (strcmp(c.operands[o].name, "d") != 0 &&
                strcmp(c.operands[o].name, texts_of_operands[i].value) != 0)
                without_b[kept++] = c.operands[o];
        desc = derive_desc(texts_of_operands[i].text);
        desc.operands = without_b, desc.operand_count = kept;
        desc.value = texts_of_operands[i].value, desc.wrt = texts_of_operands[i].wrt, desc.saved = NULL;
        CHECK(gemmepi_derive(&desc, text[0], sizeof text[0]) > 0, "%s: %s", desc.formula,
              gemmepi_last_error());
        desc.formula = texts_of_operands[i].same;
        CHECK(gemmepi_derive(&desc, text[1], sizeof text[1]) > 0, "%s: %s", desc.formula,
              gemmepi_last_error());
        CHECK(strcmp(text[0], text[1]) == 0, "%s\nis not\n%s", text[0], text[1]);
    }
}

static void operands_of_an_operands_text_have_the_widths_of_what_it_makes(void) {
    static const struct {
        const char *name;
        int width;
    } want[] = {
        {"a", GEMMEPI_WIDTH_DOUBLE}, {"dy", 0}, {"gain", 0}, {"d_a", GEMMEPI_WIDTH_DOUBLE}, {"d_gain", 0}};
    gemmepi_operand gain, listed[8];
    gemmepi_derive_desc desc;
    int i, count;
    memset(&gain, 0, sizeof gain), memset(&desc, 0, sizeof desc);
    gain.name = "gain", gain.kind = GEMMEPI_PER_COLUMN; /* [k], where a is [m, 2 k] */
    desc.formula = "silu(left(a)) * right(a) * gain", desc.value = "a", desc.wrt = "a, gain";
    desc.operands = &gain, desc.operand_count = 1;
    count = gemmepi_derive_operands(&desc, listed, 8);
    CHECK(count == 5, "%d: %s", count, gemmepi_last_error());
    for (i = 0; i < count && i < 5; i++)
        CHECK(strcmp(listed[i].name, want[i].name) == 0 && (int)listed[i].width == want[i].width, "%s, %d",
              listed[i].name, (int)listed[i].width);
}

/* Which is an index itself, where nobody says its type. */
static void a_text_that_looks_up_its_own_element_has_the_gradients_of_what_is_beside(void) {
    gemmepi_operand operands[2];
    gemmepi_derive_desc desc;
    char text[128];
    memset(operands, 0, sizeof operands), memset(&desc, 0, sizeof desc);
    operands[0].name = "book", operands[0].kind = GEMMEPI_PER_COLUMN, operands[0].column_period = 16;
    operands[1].name = "scale", operands[1].kind = GEMMEPI_PER_COLUMN;
    desc.formula = "book[b] * scale", desc.value = "b", desc.wrt = "scale";
    desc.operands = operands, desc.operand_count = 2;
    CHECK(gemmepi_derive(&desc, text, sizeof text) > 0 &&
              strcmp(text, "d_scale = column_sum(dy * book[b])") == 0,
          "%s: %s", text, gemmepi_last_error());
    desc.wrt = "b";
    CHECK(!gemmepi_derive(&desc, text, sizeof text) && strstr(gemmepi_last_error(), "is read by index"), "%s",
          gemmepi_last_error());
}

static void only_a_and_b_are_made_by_an_expression(void) {
    gemmepi_derive_desc desc;
    char text[256];
    memset(&desc, 0, sizeof desc);
    desc.formula = "v * v", desc.wrt = "v";
    CHECK(gemmepi_derive(&desc, text, sizeof text) == 0, "%s", text);
    desc.formula = "c * c", desc.value = desc.wrt = "c";
    CHECK(gemmepi_derive(&desc, text, sizeof text) == 0, "%s", text);
    desc.formula = "d = a * a", desc.value = desc.wrt = "a";
    CHECK(gemmepi_derive(&desc, text, sizeof text) > 0 && strcmp(text, "d_a = 2 * dy * a") == 0, "%s", text);
}

static void names_of_a_list_stay_where_the_next_list_reads_them(void) {
    static char texts[2][1024];
    gemmepi_operand lists[2][16];
    gemmepi_derive_desc desc;
    int turn, i, counts[2], lengths[40];
    for (turn = 0; turn < 40; turn++) {
        char formula[64], name[16];
        gemmepi_operand operand;
        memset(&operand, 0, sizeof operand);
        snprintf(name, sizeof name, "x%d", turn);
        snprintf(formula, sizeof formula, "o%d = silu(v) * %s", turn % 3, name);
        operand.name = name, operand.kind = GEMMEPI_FULL;
        {
            gemmepi_operand two[2];
            char out[8];
            snprintf(out, sizeof out, "o%d", turn % 3);
            two[0] = two[1] = operand;
            two[1].name = out, two[1].output = 1;
            memset(&desc, 0, sizeof desc);
            desc.formula = formula, desc.operands = two, desc.operand_count = 2, desc.wrt = "v";
            CHECK(gemmepi_derive(&desc, texts[0], sizeof texts[0]) > 0, "%s", gemmepi_last_error());
            counts[0] = gemmepi_derive_operands(&desc, lists[0], 16);
            memset(&desc, 0, sizeof desc);
            desc.formula = texts[0], desc.operands = lists[0], desc.operand_count = counts[0];
            desc.wrt = name, desc.upstream = "d_v";
            CHECK(gemmepi_derive_operands(&desc, NULL, 0) > 0, "%s", gemmepi_last_error());
            counts[1] = gemmepi_derive_operands(&desc, lists[1], 16);
            lengths[turn] = (int)gemmepi_derive(&desc, texts[1], sizeof texts[1]);
        }
        CHECK(counts[0] == 4 && counts[1] == 4 && lengths[turn] > 0, "%d, %d: %s", counts[0], counts[1],
              gemmepi_last_error());
        for (i = 0; i < counts[1] && i < 16; i++)
            CHECK(strstr(texts[1], lists[1][i].name) != NULL, "%s: %s", texts[1], lists[1][i].name);
    }
}

int main(void) {
    RUN(gradients_are_what_differences_say);
    RUN(gradients_of_drawn_formulas_of_two_widths_are_what_differences_say);
    RUN(a_formula_without_operands_has_a_gradient);
    RUN(nothing_comes_in_from_outputs_that_upstream_does_not_name);
    RUN(what_is_read_by_index_is_a_factor_but_has_no_gradient);
    RUN(gradients_are_short_and_read_like_the_formula);
    RUN(gradients_that_people_want_are_simplified);
    RUN(numbers_come_first_and_terms_together);
    RUN(what_is_saved_is_read_and_the_rest_computed_anew);
    RUN(a_gradient_that_lacks_what_it_reads_is_refused);
    RUN(a_gradient_whose_columns_would_be_others_is_refused);
    RUN(a_gradient_whose_sums_would_be_over_fewer_columns_is_refused);
    RUN(a_gradient_whose_text_says_how_wide_it_is_is_taken);
    RUN(operands_and_names_that_no_formula_has_are_refused);
    RUN(what_is_saved_and_has_no_columns_is_computed_anew);
    RUN(numbers_of_f64_have_gradients);
    RUN(derivatives_that_are_0_are_told);
    RUN(what_is_rounded_by_chance_has_the_gradient_of_what_was_not);
    RUN(ties_and_bends_have_the_slopes_that_are_told);
    RUN(of_ties_the_first_has_the_gradient_where_that_is_asked_for);
    RUN(the_gradient_of_what_is_not_taken_stays_0_in_halves);
    RUN(gradients_are_as_short_as_their_values_allow);
    RUN(an_input_with_either_period_has_no_gradient);
    RUN(gradients_of_blocks_are_sums_of_groups);
    RUN(a_reduction_of_groups_has_an_upstream_of_blocks);
    RUN(blocks_of_several_rows_have_no_gradient_in_one_text);
    RUN(a_name_leaves_room_for_what_a_gradient_puts_before_it);
    RUN(an_operand_that_a_gradient_reads_is_an_input);
    RUN(chains_of_choices_are_derived_at_once);
    RUN(operands_of_a_gradient_are_listed);
    RUN(results_that_are_read_become_inputs);
    RUN(derive_writes_as_snprintf_does);
    RUN(a_gradient_may_have_more_characters_than_a_formula);
    RUN(a_gradient_with_too_many_names_is_refused);
    RUN(chains_of_powers_grow_by_a_level);
    RUN(gradients_by_saved_results_are_what_differences_say);
    RUN(a_name_that_the_gradient_gives_is_refused_where_it_may_be_read);
    RUN(second_derivatives_of_activations_are_what_differences_say);
    RUN(gradients_of_gradients_are_what_differences_say);
    RUN(gradients_of_gradients_of_drawn_formulas_are_what_differences_say);
    RUN(an_operand_called_d_or_v_is_one);
    RUN(the_text_of_an_operand_is_derived_as_the_formula_that_assigns_it);
    RUN(operands_of_an_operands_text_have_the_widths_of_what_it_makes);
    RUN(a_text_that_looks_up_its_own_element_has_the_gradients_of_what_is_beside);
    RUN(only_a_and_b_are_made_by_an_expression);
    RUN(names_of_a_list_stay_where_the_next_list_reads_them);
    return test_finish();
}
