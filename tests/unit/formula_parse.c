/* Formulas as text: what is accepted, what it means, and every refusal with its place. */
#include "formula_cases.h"

#include <locale.h>

/* >>meaning, by the text that the library writes */

static const char *key_of(const char *text) {
    static char keys[4][16384];
    static int turn;
    char *key = keys[turn++ % 4];
    gpi__formula *f = parsed(text, GEMMEPI_F32, GEMMEPI_BF16);
    gpi__text out = gpi__text_in(key, sizeof keys[0]);
    CHECK(f != NULL, "%s: %s", text, gemmepi_last_error());
    if (f) {
        gpi__print_key(&out, f);
        CHECK(!gpi__text_is_cut(&out), "%s", text);
    }
    freed(f);
    return key;
}

#define SAME(first, second) \
    CHECK(strcmp(key_of(first), key_of(second)) == 0, "%s\n%s", key_of(first), key_of(second))
#define NOT_SAME(first, second) \
    CHECK(strcmp(key_of(first), key_of(second)) != 0, "both are %s", key_of(first))

static void precedence_is_that_of_c(void) {
    SAME("d = v - r - u", "d = (v - r) - u");
    NOT_SAME("d = v - r - u", "d = v - (r - u)");
    SAME("d = v / r * u", "d = (v / r) * u");
    SAME("d = v + r * u", "d = v + (r * u)");
    SAME("d = -v * r", "d = (-v) * r");
    SAME("d = - - v", "d = -(-v)");
    SAME("d = v < r == u < r", "d = (v < r) == (u < r)");
    SAME("d = v || r && u", "d = v || (r && u)");
    SAME("d = v == r && u", "d = (v == r) && u");
    SAME("d = v ? r : u ? v : r", "d = v ? r : (u ? v : r)");
    SAME("d = v ? r ? u : v : r", "d = v ? (r ? u : v) : r");
    SAME("d = v > r ? r + 1 : u + 2", "d = (v > r) ? (r + 1) : (u + 2)");
    SAME("d = !v == r", "d = (!v) == r");
    SAME("d = v >= r", "d = (v)>=(r)");
    SAME("d = v != r", "d = v!=r");
    NOT_SAME("d = v <= r", "d = v < r");
}

static void blanks_comments_and_names_mean_nothing(void) {
    SAME("d=v+r*0.5", " /* of * all */ d =\n v // the value\n + r\t* 0.5 ; // ; ");
    SAME("t = v + r; d = t * t", "another = v + r; d = another * another;");
    SAME("t = v + r; d = t * t", "d = (v + r) * (v + r)");
    SAME("x = v; y = x + x; d = y", "d = v + v");
    SAME("d = relu(leaky_relu(v))", "d = relu(leaky_relu(v, 0.01))");
    NOT_SAME("d = leaky_relu(v)", "d = leaky_relu(v, 0.02)");
}

static void numbers_are_read_as_they_are_written(void) {
    SAME("d = v * 0.1", "d = v * 1e-1");
    SAME("d = v * .5", "d = v * 5.e-1");
    SAME("d = v * 1E+2", "d = v * 100");
    NOT_SAME("d = v * 0.1", "d = v * 0.10000000000000002");
    CHECK(strstr(key_of("d = v * 0.1"), "v * 0.1;") || strstr(key_of("d = v * 0.1"), "v * 0.1"), "%s",
          key_of("d = v * 0.1"));
}

static void numbers_are_folded_where_that_is_exact(void) {
    SAME("d = v * (2 * 3 - 0.5)", "d = v * 5.5");
    SAME("d = v * -(3)", "d = v * -3");
    SAME("d = v * (1 / 4)", "d = v * 0.25");
    NOT_SAME("d = v * (1 / 3)", "d = v * 0.3333333333333333");
    NOT_SAME("d = v * (0.1 + 0.2)", "d = v * 0.30000000000000004");
    NOT_SAME("d = v + (16777216 + 1)", "d = v + 16777217"); /* F32 does not hold it */
    NOT_SAME("d = v * 1", "d = v");
    SAME("d = 2 > 1 ? v : r", "d = v");
    SAME("d = v + (1 < 2 && 3 != 3)", "d = v + 0");
}

static void operands_names_are_no_part_of_the_key(void) {
    static gemmepi_operand operands[2], others[2];
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__formula_desc desc = desc_of("d = silu(v + bias) * up", operands, 2, GEMMEPI_F32, GEMMEPI_BF16);
    gpi__formula_desc other = desc_of("y = silu(acc + v) * d", others, 2, GEMMEPI_F32, GEMMEPI_BF16);
    gpi__formula *f, *g;
    char first[1024], second[1024];
    gpi__text one = gpi__text_in(first, sizeof first), two = gpi__text_in(second, sizeof second);
    operands[0].name = "bias", operands[0].kind = GEMMEPI_PER_COLUMN;
    operands[1].name = "up", operands[1].kind = GEMMEPI_FULL;
    memcpy(others, operands, sizeof others);
    others[0].name = "v", others[1].name = "d";
    other.value = "acc", other.result = "y";
    CHECK(gpi__parse_formula(&allocator, &desc, &f) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpi__parse_formula(&allocator, &other, &g) == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (!f || !g)
        return;
    gpi__print_key(&one, f);
    gpi__print_key(&two, g);
    CHECK(strcmp(first, second) == 0, "%s\n%s", first, second);
    freed(g);
    others[0].kind = GEMMEPI_PER_ROW;
    CHECK(gpi__parse_formula(&allocator, &other, &g) == GEMMEPI_OK, "%s", gemmepi_last_error());
    two = gpi__text_in(second, sizeof second);
    gpi__print_key(&two, g);
    CHECK(strcmp(first, second) != 0, "kinds are no part of %s", first);
    freed(g);
    others[0].kind = GEMMEPI_PER_COLUMN, others[0].dtype = GEMMEPI_F32;
    CHECK(gpi__parse_formula(&allocator, &other, &g) == GEMMEPI_OK, "%s", gemmepi_last_error());
    two = gpi__text_in(second, sizeof second);
    gpi__print_key(&two, g);
    CHECK(strcmp(first, second) != 0, "dtypes are no part of %s", first);
    freed(f);
    freed(g);
}

static void every_formula_reads_back_as_what_it_was(void) {
    char text[16384];
    size_t i, count = GPI__COUNT(smooth_formulas);
    for (i = 0; i < count + GPI__COUNT(other_formulas); i++) {
        const char *of = i < count ? smooth_formulas[i] : other_formulas[i - count];
        gpi__formula *f = parsed(of, GEMMEPI_F32, GEMMEPI_BF16);
        gpi__text out = gpi__text_in(text, sizeof text);
        CHECK(f != NULL, "%s: %s", of, gemmepi_last_error());
        if (!f)
            continue;
        gpi__print_formula(&out, f);
        SAME(of, text);
        freed(f);
    }
}

static void different_formulas_have_different_keys(void) {
    size_t i, j, count = GPI__COUNT(smooth_formulas);
    for (i = 0; i < count; i++)
        for (j = 0; j < i; j++)
            NOT_SAME(smooth_formulas[i], smooth_formulas[j]);
}

static void depth_is_broken_by_names_and_reads_back(void) {
    char text[4096] = "a0 = exp(v);", more[64], back[16384];
    gpi__text out = gpi__text_in(back, sizeof back);
    gpi__formula *f;
    int i;
    for (i = 1; i <= 150; i++) {
        snprintf(more, sizeof more, "a%d = exp(a%d);", i, i - 1);
        strcat(text, more);
    }
    strcat(text, "d = a150");
    f = parsed(text, GEMMEPI_F32, GEMMEPI_BF16);
    CHECK(f != NULL, "%s", gemmepi_last_error());
    if (!f)
        return;
    gpi__print_formula(&out, f);
    SAME(text, back);
    freed(f);
}

static void check_printed_numbers(void) {
    static const double numbers[] = {0.1,      1 / 3.0, 5e-324, 1.7976931348623157e308, 123456789.123456789,
                                     1e22,     1e23,    2.5e-8, 3.4028234663852886e38,  9007199254740993.0,
                                     0.0078125};
    char here[GPI__NUMBER_SIZE];
    size_t i;
    for (i = 0; i < GPI__COUNT(numbers); i++) {
        gpi__print_number(here, numbers[i]);
        CHECK(gpi__number_of(here, strlen(here)) == numbers[i], "%s", here);
        CHECK(gpi__number_length(here) == strlen(here), "%s", here);
    }
    gpi__print_number(here, 0.5);
    CHECK(strcmp(here, "0.5") == 0, "%s", here);
    gpi__print_number(here, -30);
    CHECK(strcmp(here, "-30") == 0, "%s", here);
    gpi__print_number(here, 100000);
    CHECK(strcmp(here, "100000") == 0, "%s", here);
    CHECK(gpi__number_of("2.75e1 and more", 6) == 27.5, "2.75e1");
    CHECK(strstr(key_of("d = v * 0.125 + 2.5"), "v * 0.125 + 2.5") != NULL, "%s",
          key_of("d = v * 0.125 + 2.5"));
}

static void numbers_print_in_as_many_digits_as_read_back(void) {
    check_printed_numbers();
}

static void numbers_print_alike_in_locales_with_another_point(void) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ps_AF.UTF-8",
                                        "fa_IR.UTF-8", "de_DE",      "German"};
    char half[16];
    size_t i;
    int tried = 0;
    for (i = 0; i < GPI__COUNT(names); i++)
        if (setlocale(LC_ALL, names[i])) {
            snprintf(half, sizeof half, "%.1f", 0.5);
            tried += strcmp(half, "0.5") != 0;
            check_printed_numbers();
        }
    setlocale(LC_ALL, "C");
    if (!tried)
        SKIP("there is no locale whose numbers have another point");
}

/* >>refusals */

typedef struct refusal {
    const char *text;
    int column;        /* 0: the sentence names none */
    const char *words; /* that it has */
} refusal;

static void check_refusal(const refusal *r, gemmepi_dtype accumulator) {
    char place[32];
    gpi__formula *f = parsed(r->text, accumulator, accumulator);
    snprintf(place, sizeof place, "column %d: ", r->column);
    CHECK(f == NULL, "accepted: %s", r->text);
    if (!f) {
        CHECK(strstr(gemmepi_last_error(), r->words) != NULL, "%s\n    %s", r->text, gemmepi_last_error());
        CHECK(!r->column || strstr(gemmepi_last_error(), place) != NULL, "%s, column %d\n    %s", r->text,
              r->column, gemmepi_last_error());
    }
    freed(f);
}

static void mistakes_of_syntax_are_refused_with_their_place(void) {
    static const refusal refusals[] = {
        {"", 1, "has assigned no output"},
        {"   ;;", 4, "';' is not expected here, but a statement: name = expression"},
        {";d = v", 1, "';' is not expected here, but a statement"},
        {"d = v;;", 7, "';' is not expected here, but a statement"},
        {"x = v; ;d = x", 8, "';' is not expected here, but a statement"},
        {"d = v; /* ; */ ;", 16, "';' is not expected here, but a statement"},
        {"d", 2, "the end is not expected here, but the '='"},
        {"d v", 3, "v is not expected here, but the '='"},
        {"d = ", 5, "the end is not expected here, but a number, a name, a function or '('"},
        {"d == v", 4, "'=' is not expected"},
        {"d = v +", 8, "the end is not expected"},
        {"d = v v", 7, "v is not expected here, but an operator or the ';'"},
        {"d = (v", 7, "the end is not expected here, but a ')'"},
        {"d = v)", 6, "')' is not expected here"},
        {"d = v $ r", 7, "'$' is not expected"},
        {"d = v \x01", 7, "the byte 0x01"},
        {"d = v & r", 7, "'&' is not expected"},
        {"d = v ? r", 10, "the ':' of c ? a : b"},
        {"d = v ? r ; u", 11, "the ':' of c ? a : b"},
        {"d = * v", 5, "'*' is not expected"},
        {"d = +v", 5, "'+' is not expected"},
        {"/* no end", 1, "a comment begins that has no end"},
        {"d = != v", 5, "'!' is not expected here"},
        {"d = v /* no end", 7, "a comment begins that has no end"},
        {"= v", 1, "a statement: name = expression"},
        {"3 = v", 1, "3 is not expected here, but a statement"},
        {"d = 1.2.3", 5, "the number ends in what is none"},
        {"d = 12a", 5, "the number ends in what is none"},
        {"d = 0x10", 5, "the number ends in what is none"},
        {"d = 1e999", 5, "out of range"},
        {"d = v * 4e38", 9, "out of range; the largest F32 is 3.4028234663852886e38"},
        {"d = v / 1e-46", 9, "out of range; the smallest F32 with all its digits is 1.1754943508222875e-38"},
        {"d = 1 * 0.0e1 + v * 1e-40", 21, "out of range; the smallest F32"},
        {"d = v + 1e-999", 9, "out of range; the smallest F32"},
        {"d = v + 1e-45", 9, "out of range; the smallest F32"},
        {"d = v * 3.4028236e38", 9, "out of range; the largest F32 is 3.4028234663852886e38"},
        {"d = exp(v", 10, "a comma or the ')'"},
        {"d = exp(v,)", 11, "')' is not expected"},
        {"d = exp", 5, "exp is a function: its arguments follow"},
        {"d = silu", 5, "silu is a function"},
        {"d = r(v)", 5, "r is not the name of a function"},
        {"d = row(v)", 5, "row is not the name of a function"},
        {"d = none(v)", 5, "none is not the name of a function"},
        {"d = 0 < v < 2", 11, "comparisons do not chain: write a < b && b < c"},
        {"d = v == r == 2 ? v : r", 12, "comparisons do not chain: write a == b && b == c"},
        {"d = r + v >= r > 2 + v", 16, "comparisons do not chain"},
        {"\n\n d = exp(", 10, "the end is not expected"},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(refusals); i++)
        check_refusal(&refusals[i], GEMMEPI_F32);
    (void)parsed("\n\n d = exp(", GEMMEPI_F32, GEMMEPI_F32);
    CHECK(strstr(gemmepi_last_error(), "line 3, column 10") != NULL, "%s", gemmepi_last_error());
}

static void comparisons_of_what_was_compared_are_accepted_in_parentheses(void) {
    static const char *const texts[] = {"d = (0 < v) < 2", "d = 0 < (v < 2)", "d = 0 < v == r < 2",
                                        "d = 0 < v && v < 2", "d = (v == r) == (r != 2)"};
    size_t i;
    for (i = 0; i < GPI__COUNT(texts); i++) {
        gpi__formula *f = parsed(texts[i], GEMMEPI_F32, GEMMEPI_F32);
        CHECK(f != NULL, "%s: %s", texts[i], gemmepi_last_error());
        freed(f);
    }
}

static void wrong_counts_and_names_are_refused_with_their_place(void) {
    static const refusal refusals[] = {
        {"x = 1; d = exp(x, r)", 12, "exp needs one value, two are given"},
        {"d =  v + silu(r, 2)", 10, "silu needs one value, two are given"},
        {"d = exp()", 5, "exp needs one value, none is given"},
        {"d = min(v)", 5, "min needs two values, one is given"},
        {"d = clamp(v, 1)", 5, "clamp needs three values, two are given"},
        {"d = fma(v, 1, 2, 3, 4)", 5, "fma needs three values, more are given"},
        {"d = elu(v, 1, 2)", 5, "elu needs one value, or two values with its parameter; three are given"},
        {"d = v + ceil(v, 1)", 9, "ceil needs one value, two are given"},
        {"d = logaddexp(v)", 5, "logaddexp needs two values, one is given"},
        {"d = v + logaddexp(v, left(v))", 9, "logaddexp needs equal widths"},
        {"d = v + tan", 9, "tan is a function: its arguments follow"},
        {"d = inf(v)", 5, "inf is not the name of a function"},
        {"d = v - row_mean(v)", 9, "row_mean is the whole right side of a statement"},
        {"d = v; cs = row_mean(v)", 8, "cs is PER_COLUMN"},
        {"d = left()", 5, "left needs one value, none is given"},
        {"d = even(v, 4)", 5, "even needs one value, two are given"},
        {"d = part(v, 0)", 5, "part needs three values, two are given"},
        {"d = part(v, 0, 3, 4)", 5, "part needs three values, more are given"},
        {"d = part(v, 3, 3)", 13, "the i of part(x, i, n) is a whole number in the text, from 0 to n - 1"},
        {"d = part(v, -1, 3)", 13, "the i of part(x, i, n) is a whole number in the text, from 0 to n - 1"},
        {"d = part(v, 0.5, 3)", 13, "the i of part(x, i, n) is a whole number in the text, from 0 to n - 1"},
        {"d = part(v, r, 3)", 13, "the i of part(x, i, n) is a whole number in the text, from 0 to n - 1"},
        {"d = part(v, 0, 1)", 16, "the n of part(x, i, n) is a whole number in the text, from 2 to 16"},
        {"d = part(v, 0, 17)", 16, "the n of part(x, i, n) is a whole number in the text, from 2 to 16"},
        {"d = part(v, 0, s)", 16, "the n of part(x, i, n) is a whole number in the text, from 2 to 16"},
        {"d = parts(v)", 5, "parts needs 2 to 16 values, of each part one; 1 are given"},
        {"d = parts(s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s)", 5, "17 are given"},
        {"d = left(v, 3)", 13, "a group's width is an even number"},
        {"d = left(v, r)", 13, "a group's width is an even number"},
        {"d = left(v, 0)", 13, "a group's width is an even number"},
        {"d = nobody", 5, "nobody is not known here"},
        {"d = x; x = v", 5, "x is not known here"},
        {"x = d; d = v", 5, "d has no value yet"},
        {"d = o; o = v", 5, "o is an output and has no value yet"},
        {"d = v; d = r", 8, "d has a value already"},
        {"x = v; x = r; d = x", 8, "x has a value already"},
        {"o = v; d = v; o = r", 15, "o has a value already"},
        {"v = 3; d = v", 1, "v is the value and cannot be assigned"},
        {"r = 3; d = r", 1, "r is an input; to assign it set desc.operands[0].output"},
        {"exp = 3; d = v", 1, "exp is a name of the language"},
        {"silu = 3; d = v", 1, "silu is a name of the language"},
        {"d_silu = 3; d = v", 1, "d_silu is a name of the language"},
        {"row_sum = 3; d = v", 1, "row_sum is a name of the language"},
        {"column = 3; d = v", 1, "column is a name of the language"},
        {"d_x = 3; d = v", 1, "names that begin with d_ or dy_ are for operands only"},
        {"dy_x = 3; d = v", 1, "names that begin with d_ or dy_ are for operands only"},
        {"x = v", 1, "x is assigned, but nothing reads it; "},
        {"", 1, "has assigned no output: neither an operand nor d"},
        {"d = v; x = rs", 12, "rs is an output and has no value yet"},
        {"d = v + uniform(s, 0)", 17, "the seed of uniform is an operand of the kind SCALAR in I64"},
        {"d = uniform(3, 0)", 13, "the seed of uniform"},
        {"d = uniform(seed, 0.5)", 19, "a whole number from 0 to 2^32 - 1"},
        {"d = uniform(seed, 4294967296)", 19, "a whole number from 0 to 2^32 - 1"},
        {"d = uniform(seed, label)", 19, "or an operand of the kind SCALAR"},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(refusals); i++)
        check_refusal(&refusals[i], GEMMEPI_F32);
}

static void what_is_read_by_index_and_by_what_is_refused_with_its_place(void) {
    static const char wholly[] =
        "an index is a whole number: an operand in I32, I64 or, without a scale, I8, I4 or U4, row, column or item, an "
        "extent, or a number in the text";
    static const refusal refusals[] = {
        {"d = cw[v]", 8, wholly},
        {"d = cw[ label + 1]", 9, wholly},
        {"d = cw[2.5]", 8, wholly},
        {"d = cw[1e30]", 8, wholly},
        {"d = cw[p]", 8, wholly},
        {"d = cw[v > 0]", 8, wholly},
        {"d = cw[cw[label]]", 8, wholly},
        {"d = v[label]", 5, "v[...]: only operands are read by index"},
        {"x = r; d = x[label]", 12, "x[...]: only operands are read by index"},
        {"d = v; o = d[label]", 12, "d[...]: only operands are read by index"},
        {"d = column[label]", 5, "column[...]: only operands are read by index"},
        {"d = pi[3]", 5, "pi[...]: only operands are read by index"},
        {"d = what[3]", 5, "what is not known here"},
        {"d = silu[3]", 5, "silu is a function: its arguments follow in parentheses"},
        {"d = s[label]", 5,
         "s[...]: only inputs of the kinds PER_ROW, PER_COLUMN and FULL are read by index"},
        {"d = k[label]", 5, "only inputs of the kinds PER_ROW, PER_COLUMN and FULL"},
        {"o = v; d = o[label]", 12, "only inputs of the kinds PER_ROW, PER_COLUMN and FULL"},
        {"d = h[label]", 5,
         "h[...]: what is read by index has as many elements as its period says, or n: leave its width 0"},
        {"d = label[3]", 5, "an operand in I64, or in I32 without results in I32, is no table but an index"},
        {"d = cw[]", 8, "']' is not expected here"},
        {"d = cw[label", 13, "the end is not expected here, but an operator or the ']' behind an index"},
        {"d = cw[label, 2]", 13, "',' is not expected here, but an operator or the ']' behind an index"},
        {"d = (cw)[label]", 9, "'[' is not expected here"},
        {"d = left(v) * cw[column]", 13, "needs equal widths"},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(refusals); i++)
        check_refusal(&refusals[i], GEMMEPI_F32);
}

/* A text of b, whose value is stored in a type: book[b], and of its parts. */
static void what_is_stored_in_whole_numbers_of_8_bits_or_4_is_an_index(void) {
    static const struct {
        const char *text;
        gemmepi_dtype stored, code;
        int scaled, accepted;
    } cases[] = {{"book[b]", GEMMEPI_U4, GEMMEPI_F32, 0, 1},
                 {"book[b]", GEMMEPI_I4, GEMMEPI_F32, 0, 1},
                 {"book[even(b)] + book[odd(b)]", GEMMEPI_I8, GEMMEPI_F32, 0, 1},
                 {"b * book[code]", GEMMEPI_F16, GEMMEPI_I8, 0, 1},
                 {"b * book[code]", GEMMEPI_F16, GEMMEPI_U4, 0, 1},
                 {"b * book[code]", GEMMEPI_F16, GEMMEPI_I8, 1, 0},
                 {"b * book[code]", GEMMEPI_U4, GEMMEPI_F16, 0, 0},
                 {"book[b]", GEMMEPI_E2M1, GEMMEPI_U4, 0, 0},
                 {"book[b]", GEMMEPI_DTYPE_DEFAULT, GEMMEPI_U4, 0, 0},
                 {"book[b + 1]", GEMMEPI_U4, GEMMEPI_U4, 0, 0},
                 {"book[-b]", GEMMEPI_I8, GEMMEPI_U4, 0, 0}};
    gemmepi_allocator allocator = gpi__default_allocator();
    gemmepi_operand operands[2];
    gpi__formula_desc from;
    size_t i;
    memset(operands, 0, sizeof operands), memset(&from, 0, sizeof from);
    operands[0].name = "book", operands[0].kind = GEMMEPI_PER_COLUMN, operands[0].column_period = 16;
    operands[1].name = "code", operands[1].kind = GEMMEPI_FULL;
    from.operands = operands, from.operand_count = 2, from.value = "b", from.result = "op(B)";
    from.without_result = from.is_of_operand = 1, from.accumulator = GEMMEPI_F32, from.d = GEMMEPI_BF16;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gpi__formula *formula = NULL;
        gemmepi_status status;
        from.text = cases[i].text, from.stored = cases[i].stored, operands[1].dtype = cases[i].code;
        operands[1].scale.mode = cases[i].scaled ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
        status = gpi__parse_formula(&allocator, &from, &formula);
        CHECK(status == (cases[i].accepted ? GEMMEPI_OK : GEMMEPI_INVALID_ARGUMENT), "%s: %s", cases[i].text,
              gemmepi_last_error());
        gpi__delete(&allocator, formula);
    }
}

static void in_column_major_order_vectors_alone_are_read_by_index(void) {
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_allocator allocator = gpi__default_allocator();
    const char *text = "d = v * cw[column]";
    gpi__formula_desc desc = desc_of(text, operands, operands_of(text, operands), GEMMEPI_F32, GEMMEPI_F32);
    gpi__formula *f;
    desc.exchanged = 1;
    CHECK(gpi__parse_formula(&allocator, &desc, &f) == GEMMEPI_OK && f->operands[0].kind == GEMMEPI_PER_ROW &&
              f->operands[0].used == GPI__BY_INDEX,
          "%s", gemmepi_last_error());
    freed(f);
    operands[0].kind = GEMMEPI_FULL;
    CHECK(gpi__parse_formula(&allocator, &desc, &f) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(),
                     "desc.formula, column 9: cw[...]: where rows are contiguous only inputs "
                     "of the kinds PER_ROW and PER_COLUMN are read by index"),
          "%s", gemmepi_last_error());
}

static void names_of_other_languages_are_refused_with_those_of_this_one(void) {
    static const refusal refusals[] = {
        {"d = gelu(v)", 5, "gelu is not the name of a function; did you mean gelu_tanh or gelu_erf?"},
        {"d = swish(v)", 5, "did you mean silu?"},
        {"d = sum(v)", 5, "did you mean row_sum, column_sum or all_sum?"},
        {"rs = rowsum(v)", 6, "did you mean row_sum?"},
        {"rs = rowmin(v)", 6, "did you mean row_min?"},
        {"rs = row_argmin(v)", 6, "did you mean row_argmax of -x?"},
        {"d = cat(v, v)", 5, "did you mean parts(a, b)?"},
        {"d = mean(v)", 5, "did you mean row_mean(x) or column_sum(x / rows)?"},
        {"d = where(v > 0, v, 0)", 5, "did you mean c ? x : y?"},
        {"d = log10(v)", 5, "did you mean 0.43429448190325182 * log(x)?"},
        {"d = swiglu(v)", 5, "did you mean silu(left(x)) * right(x)?"},
        {"d = sigmiod(v)", 5, "did you mean sigmoid?"},
        {"d = EXP(v)", 5, "did you mean exp?"},
        {"d = unheard_of(v)", 5, "unheard_of is not the name of a function"},
        {"D = v", 1, "D is assigned, but nothing reads it; did you mean d?"},
        {"d = V", 5, "this one assigns it; did you mean v?"},
        {"d = v + colum", 9, "this one assigns it; did you mean column?"},
        {"d = v + labels + label", 9, "this one assigns it; did you mean label?"},
        {"d = v ^ 2", 7,
         "'^' is not expected here, but an operator or the ';' between statements; a power is pow(x, y)"},
        {"d = v ** 2", 8, "; a power is pow(x, y)"},
        {"d += v", 3, "; to add to d write d = c + v with an input c"},
        {"d *= v", 3, "; to add to d write d = c + v with an input c"},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(refusals); i++)
        check_refusal(&refusals[i], GEMMEPI_F32);
    (void)parsed("d = unheard_of(v)", GEMMEPI_F32, GEMMEPI_F32);
    CHECK(!strstr(gemmepi_last_error(), "did you mean"), "%s", gemmepi_last_error());
    (void)parsed("d = v * * 2", GEMMEPI_F32, GEMMEPI_F32);
    CHECK(!strstr(gemmepi_last_error(), "pow"), "%s", gemmepi_last_error());
}

/* Of the table, names that are one and texts of x that are whole; others are words. */
static void what_is_meant_by_names_of_other_languages_is_accepted(void) {
    size_t i;
    int names = 0, texts = 0;
    for (i = 0; i < GPI__COUNT(gpi__other_names); i++) {
        const char *ours = gpi__other_names[i].ours;
        char text[128];
        gpi__formula *f;
        CHECK(!gpi__is_reserved(gpi__other_names[i].theirs, strlen(gpi__other_names[i].theirs)),
              "%s is a name of the language", gpi__other_names[i].theirs);
        if (gpi__name_length(ours) == strlen(ours)) {
            CHECK(gpi__is_reserved(ours, strlen(ours)), "%s is no name of the language", ours);
            names++;
        } else if (strchr(ours, 'x') && !strchr(ours, ',') && !strstr(ours, " of ") &&
                   !strstr(ours, " or ") && !strstr(ours, "c ?") && !strstr(ours, "seed")) {
            snprintf(text, sizeof text, "x = v; d = %s", ours);
            f = parsed(text, GEMMEPI_F32, GEMMEPI_F32);
            CHECK(f != NULL, "%s: %s", text, gemmepi_last_error());
            freed(f);
            texts++;
        }
    }
    CHECK(names > 10 && texts > 7, "%d names, %d texts", names, texts);
}

static void a_name_that_nothing_reads_is_refused_with_what_it_may_stand_for(void) {
    static const refusal refusals[] = {
        {"dd = v", 1, "dd is assigned, but nothing reads it; did you mean d?"},
        {"d = v; label1 = p * label", 8, "label1 is assigned, but nothing reads it; did you mean label?"},
        {"d = v;\n sede = p + s + seed", 2, "sede is assigned, but nothing reads it; did you mean seed?"},
        {"d = v; t = r", 8,
         "t is assigned, but nothing reads it; leave it out, or list it among desc.operands"},
        {"t = r; d = v", 1, "t is assigned, but nothing reads it; leave it out"},
        {"x = v; y = x * x; z = y; d = r", 19, "z is assigned, but nothing reads it"},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(refusals); i++)
        check_refusal(&refusals[i], GEMMEPI_F32);
    SAME("x = v; y = 0 * x; d = 2 > 1 ? r : y", "d = r"); /* it is read where it has no effect */
}

static void names_that_are_short_for_a_text_may_be_defined(void) {
    SAME("pi = v + r; tan = pi * 2; d = pi * tan(tan)", "x = v + r; y = x * 2; d = x * (sin(y) / cos(y))");
    SAME("pi = v; d = pi", "d = v");
    SAME("x = r; d = ceil(x - v)", "d = -floor(-(r - v))");
    SAME("d = ceil(trunc(v))", "x = v < 0 ? -floor(-v) : floor(v); d = -floor(-x)");
}

static void numbers_of_f64_have_its_range(void) {
    static const refusal refusals[] = {
        {"d = v / 1e-400", 9, "out of range; the smallest F64 is 4.9406564584124654e-324"},
        {"d = v * 1e309", 9, "out of range; the largest F64"},
    };
    static const char *const taken[] = {"d = v / 1e-46", "d = v / 1e-310", "d = v + 5e-324", "d = v * 1e39",
                                        "d = v + 0.0e-999"};
    size_t i;
    for (i = 0; i < GPI__COUNT(refusals); i++)
        check_refusal(&refusals[i], GEMMEPI_F64);
    for (i = 0; i < GPI__COUNT(taken); i++) {
        gpi__formula *f = parsed(taken[i], GEMMEPI_F64, GEMMEPI_F64);
        CHECK(f != NULL, "%s: %s", taken[i], gemmepi_last_error());
        freed(f);
    }
}

static void small_numbers_that_f32_holds_are_accepted(void) {
    static const char *const taken[] = {"d = v + 1.401298464324817e-45",
                                        "d = v * 1.1754943508222875e-38",
                                        "d = v + 1.1754943508222874e-38",
                                        "d = v + 0.000e-50",
                                        "d = v * 2e-38",
                                        "d = v * 5.877471754111438e-39"};
    size_t i;
    for (i = 0; i < GPI__COUNT(taken); i++) {
        gpi__formula *f = parsed(taken[i], GEMMEPI_F32, GEMMEPI_F32);
        CHECK(f != NULL, "%s: %s", taken[i], gemmepi_last_error());
        freed(f);
    }
}

static void outputs_and_reductions_are_refused_where_they_do_not_fit(void) {
    static const refusal refusals[] = {
        {"d = v; rs = v", 8, "rs is PER_ROW, and what it is assigned is no reduction"},
        {"cs = row_sum(v)", 1, "cs is PER_COLUMN, and what it is assigned is row_sum, which is for others"},
        {"o = all_sum(v)", 1, "o is FULL"},
        {"al = row_max(v)", 1, "al is SCALAR"},
        {"d = row_sum(v)", 1, "d is a matrix and cannot be a reduction"},
        {"x = row_sum(v); d = x", 5, "row_sum is assigned to outputs only; x is none"},
        {"rs = row_sum(v) * 2", 17, "row_sum is the whole right side of its statement"},
        {"rs = 2 * row_sum(v)", 10, "row_sum is the whole right side"},
        {"rs = row_sum(v, r)", 17,
         "the w of row_sum(x, w) is a number in the text, a multiple of 8 up to 2^30"},
        {"rs = row_sum(v, 12)", 17, "a multiple of 8"},
        {"rs = row_mean(v, 0)", 18, "the w of row_mean(x, w) is a number in the text"},
        {"rs = row_sum(v, 4294967296)", 17, "up to 2^30"},
        {"rs = row_sum(v, 8 + 8)", 19, "the ')' of the reduction"},
        {"rs = row_sum(v, 8)", 1,
         "rs is PER_ROW, and what it is assigned is row_sum of groups, which is for others"},
        {"rs = row_logsumexp(v, 8)", 6,
         "row_logsumexp has one value; groups of columns that lie side by side are for"},
        {"rs = row_argmax(v, 8)", 6, "row_argmax has one value"},
        {"cs = column_sum(v, 8)", 6, "are for row_sum, row_mean, row_max and row_min"},
        {"al = all_sum(v, 8)", 6, "all_sum has one value"},
        {"d = v; rs = row_sum(v v)", 23, "the ')' of the reduction, or a comma and w"},
        {"rs = row_sum", 13, "the '(' behind the name of a function"},
        {"rs = row_sum(v); d = rs", 22, "rs is a reduction, which no later statement can read"},
        {"o = v; d = left(r); rs = row_sum(o + h)", 36, "one is n columns wide, another n / 2"},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(refusals); i++)
        check_refusal(&refusals[i], GEMMEPI_F32);
}

static void rounding_by_chance_is_the_whole_right_side_of_an_output(void) {
    static const refusal refusals[] = {
        {"d = 2 * stochastic(v, seed)", 9, "stochastic is the whole right side of a statement that assigns"},
        {"d = stochastic(v, seed) + 1", 25, "stochastic is the whole right side of its statement"},
        {"x = stochastic(v, seed); d = x", 5, "stochastic is assigned to outputs only; x is none"},
        {"rs = row_sum(stochastic(v, seed))", 14, "stochastic is the whole right side of a statement"},
        {"rs = stochastic(v, seed)", 1, "rs is PER_ROW, and what it is assigned is no reduction"},
        {"d = stochastic", 15, "the '(' behind the name of a function"},
        {"d = stochastic(v)", 5, "stochastic needs two values, or three"},
        {"d = stochastic(v, seed, 1, 2)", 5, "stochastic needs two values, or three"},
        {"d = stochastic(v, 3)", 19, "the seed of stochastic is an operand of the kind SCALAR in I64"},
        {"d = stochastic(v, seed, 0.5)", 25, "the third value of stochastic is a whole number from 0 to"},
        {"d = stochastic(v, seed, label)", 25, "or an operand of the kind SCALAR in I32 or I64"},
        {"stochastic = v; d = v", 1, "stochastic is a name of the language"},
        {"d = stochastic_rounding(v)", 5, "did you mean stochastic(x, seed)?"},
    };
    static const gemmepi_dtype others[] = {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    size_t i;
    for (i = 0; i < GPI__COUNT(refusals); i++)
        check_refusal(&refusals[i], GEMMEPI_F32);
    for (i = 0; i < GPI__COUNT(others); i++)
        CHECK(!parsed("d = stochastic(v, seed)", GEMMEPI_F32, others[i]) &&
                  strstr(gemmepi_last_error(), "column 5: stochastic rounds to F16 and BF16; d is in ") !=
                      NULL,
              "%s", gemmepi_last_error());
    CHECK(!parsed("d = stochastic(v, seed)", GEMMEPI_I32, GEMMEPI_I32) &&
              strstr(gemmepi_last_error(), "d is in I32") != NULL,
          "%s", gemmepi_last_error());
}

/* The formula as explain prints it, of a D in that type. */
static const char *printed(const char *text, gemmepi_dtype d) {
    static char room[2][512];
    static int which;
    gpi__text out = gpi__text_in(room[which = !which], sizeof room[0]);
    gpi__formula *f = parsed(text, GEMMEPI_F32, d);
    CHECK(f != NULL, "%s: %s", text, gemmepi_last_error());
    if (f)
        gpi__print_formula(&out, f);
    freed(f);
    return room[which];
}

static void rounding_by_chance_is_for_extents_below_2_to_the_32(void) {
    static const char text[] = "d = stochastic(v, seed)";
    gpi__formula *f = parsed(text, GEMMEPI_F32, GEMMEPI_F16);
    CHECK(f && gpi__check_formula_extents(f, text, 3, 4294967295, 1) == GEMMEPI_OK &&
              gpi__check_formula_extents(f, text, 3, 4294967296, 1) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "column 5: random numbers are for extents below 2^32") != NULL,
          "%s", gemmepi_last_error());
    freed(f);
}

static void what_is_rounded_by_chance_is_read_without_it_and_f32_rounds_nothing(void) {
    static const struct {
        const char *text, *in_bf16, *in_f32;
    } cases[] = {
        {"d = stochastic(v + r, seed)", "d = stochastic(v + r, seed)", "d = v + r"},
        {"d = stochastic(v, seed, 4294967295)", "d = stochastic(v, seed)", "d = v"},
        {"d = stochastic(v, seed, 2); o = d", "d = stochastic(v, seed, 2); o = v", "d = v; o = v"},
        {"d = stochastic(v * r, seed); rs = row_sum(d)",
         "t1 = v * r; d = stochastic(t1, seed); rs = row_sum(t1)", "d = v * r; rs = row_sum(d)"},
        {"d = stochastic(v, seed); o = stochastic(d, seed)",
         "d = stochastic(v, seed); o = stochastic(v, seed)", "d = v; o = v"},
        {"o = stochastic(v, seed); d = 2 * o", "d = 2 * v; o = stochastic(v, seed)", "d = 2 * v; o = v"},
        {"d = stochastic(p, seed)", "d = stochastic(p, seed)", "d = p"},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        CHECK(strcmp(printed(cases[i].text, GEMMEPI_BF16), cases[i].in_bf16) == 0, "%s",
              printed(cases[i].text, GEMMEPI_BF16));
        CHECK(strcmp(printed(cases[i].text, GEMMEPI_F32), cases[i].in_f32) == 0, "%s",
              printed(cases[i].text, GEMMEPI_F32));
    }
}

static void widths_that_do_not_fit_are_refused(void) {
    static const refusal refusals[] = {
        {"d = v + left(v)", 7, "one is n columns wide, another n / 2"},
        {"d = v * h", 7, "one is n columns wide, another n / 2"},
        {"d = left(left(v))", 5, "halves and parts are not nested"},
        {"d = left(h)", 5, "left divides what is only n / 2 columns wide"},
        {"d = pair(left(v), r)", 5, "pair joins halves; what is n columns wide is none"},
        {"d = pair(pair(v, r), u)", 5, "pair joins halves; what is 2 n columns wide is none"},
        {"d = left(v) + even(v)", 15, "divided in two ways in one formula: left and right before"},
        {"d = left(v) + left(v, 4)", 15, "divided in two ways"},
        {"d = left(v, 8) + right(v, 4)", 18, "divided in two ways in one formula: left and right of groups"},
        {"d = part(v, 0, 3) + left(v)", 21,
         "divided in two ways in one formula: 3 parts before, otherwise here"},
        {"d = left(v) + part(v, 0, 3)", 15, "left and right before, otherwise here"},
        {"d = part(v, 0, 3) + part(v, 0, 4)", 21, "3 parts before"},
        {"d = parts(h, h, h) + part(v, 0, 2)", 22, "3 parts before"},
        {"d = v + part(v, 0, 3)", 7, "one is n columns wide, another n / 3"},
        {"d = part(part(v, 0, 3), 0, 3)", 5, "part divides what is only n / 3 columns wide"},
        {"d = parts(part(v, 0, 3), r, h)", 5, "parts joins parts; what is n columns wide is none"},
        {"d = parts(h, h, v); o = v", 5, "parts joins parts; what is n columns wide is none"},
        {"d = part(v, 0, 3); o = w", 24, "w is 3 n columns wide, a third width next to n and n / 3"},
        {"d = parts(v, r, u); oh = h", 26, "h is n / 3 columns wide, a third width next to n and 3 n"},
        {"d = part(v, 0, 3); o = d", 20, "o is n columns wide, but what it is assigned is n / 3"},
        {"d = left(v) * column", 13, "needs equal widths"},
        {"d = left(v) * uniform(seed, 0)", 13, "needs equal widths"},
        {"d = left(v); o = w", 18, "w is 2 n columns wide, a third width"},
        {"d = pair(v, r); oh = h", 22, "h is n / 2 columns wide, a third width"},
        {"d = v; oh = v", 8, "oh is n / 2 columns wide, but what it is assigned is n"},
        {"d = left(v); o = left(v)", 14, "o is n columns wide, but what it is assigned is n / 2"},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(refusals); i++)
        check_refusal(&refusals[i], GEMMEPI_F32);
}

static void whole_results_take_what_whole_numbers_have(void) {
    static const refusal refusals[] = {
        {"d = v / 2", 7, "/ does not go with results in I32"},
        {"d = exp(v)", 5, "exp does not go with results in I32"},
        {"d = silu(v)", 5, "silu does not go with results in I32"},
        {"d = v * 0.5", 9, "numbers are whole"},
        {"d = v + 2147483649", 9, "numbers are whole and at most 2147483648"},
        {"d = v; rs = row_sum(v)", 13, "there are no reductions with results in I32"},
    };
    size_t i;
    gpi__formula *f = parsed("d = v > 0 ? max(v * 3, r) - min(-v, label) : relu(u) + (v == label)",
                             GEMMEPI_I32, GEMMEPI_I32);
    CHECK(f != NULL, "%s", gemmepi_last_error());
    freed(f);
    for (i = 0; i < GPI__COUNT(refusals); i++)
        check_refusal(&refusals[i], GEMMEPI_I32);
}

/* >>limits */

static void repeated(char *text, const char *begin, const char *middle, int times, const char *end) {
    strcpy(text, begin);
    while (times-- > 0)
        strcat(text, middle);
    strcat(text, end);
}

static void limits_are_as_they_are_told(void) {
    static char text[16384];
    refusal r = {text, 0, ""};
    int i;
    gpi__formula *f;
    repeated(text, "d = ", "(", 63, "v");
    repeated(text + strlen(text), "", ")", 63, "");
    f = parsed(text, GEMMEPI_F32, GEMMEPI_F32);
    CHECK(f != NULL, "%s", gemmepi_last_error());
    freed(f);
    repeated(text, "d = ", "(", 64, "v");
    r.words = "more than 64 expressions are nested", r.column = 69;
    check_refusal(&r, GEMMEPI_F32);
    repeated(text, "d = ", "-", 64, "v");
    r.column = 68;
    check_refusal(&r, GEMMEPI_F32);
    repeated(text, "d = v", "+v", 1024, "");
    f = parsed(text, GEMMEPI_F32, GEMMEPI_F32);
    CHECK(f != NULL, "%s", gemmepi_last_error());
    freed(f);
    repeated(text, "d = v", "+v", 1025, "");
    r.words = "more than 1024 operations", r.column = 4 + 2 * 1025;
    check_refusal(&r, GEMMEPI_F32);
    repeated(text, "d = v", " ", 4091, "");
    f = parsed(text, GEMMEPI_F32, GEMMEPI_F32);
    CHECK(f != NULL, "%s", gemmepi_last_error());
    freed(f);
    repeated(text, "d = v", " ", 4092, "");
    r.words = "has 4097 characters; at most 4096", r.column = 0;
    check_refusal(&r, GEMMEPI_F32);
    strcpy(text, "d=v");
    for (i = 0; i < 1020; i++) /* of the numbers as many as operations let in */
        sprintf(text + strlen(text), "+%d", i);
    f = parsed(text, GEMMEPI_F32, GEMMEPI_F32);
    CHECK(f != NULL, "%s", gemmepi_last_error());
    freed(f);
    repeated(text, "d = ", "1", 1000, "");
    r.words = "the number has 1000 characters", r.column = 5;
    check_refusal(&r, GEMMEPI_F32);
}

/* >>descs */

static gemmepi_operand one_operand;
static gpi__formula_desc one_desc;

static void good_desc(void) {
    memset(&one_operand, 0, sizeof one_operand);
    one_operand.name = "r";
    one_operand.kind = GEMMEPI_FULL;
    one_desc = desc_of("d = v + r", &one_operand, 1, GEMMEPI_F32, GEMMEPI_BF16);
}

#define REFUSED(words, ...)                                                                                \
    do {                                                                                                   \
        gemmepi_allocator allocator = gpi__default_allocator();                                            \
        gpi__formula *refused;                                                                             \
        good_desc();                                                                                       \
        __VA_ARGS__;                                                                                       \
        CHECK(gpi__parse_formula(&allocator, &one_desc, &refused) == GEMMEPI_INVALID_ARGUMENT, "%s",       \
              #__VA_ARGS__);                                                                               \
        CHECK(refused == NULL && strstr(gemmepi_last_error(), words) != NULL, "%s", gemmepi_last_error()); \
    } while (0)

static void make_blocked(int64_t rows, int64_t columns) {
    one_operand.kind = GEMMEPI_BLOCKED;
    one_operand.block_rows = rows, one_operand.block_columns = columns;
}

static void descs_that_do_not_hold_are_refused(void) {
    static gemmepi_operand many[40];
    gemmepi_operand two[2];
    REFUSED("desc.formula is NULL", one_desc.text = NULL);
    REFUSED("desc.operands is NULL, but desc.operand_count is 1", one_desc.operands = NULL);
    REFUSED("desc.operand_count is 33; accepted are 0 to 32", one_desc.operands = many,
            one_desc.operand_count = 33);
    REFUSED("desc.operand_count is -1", one_desc.operand_count = -1);
    REFUSED("desc.operands[0].name is NULL", one_operand.name = NULL);
    REFUSED("desc.operands[0].name is \"\"", one_operand.name = "");
    REFUSED("desc.operands[0].name is \"2r\"", one_operand.name = "2r");
    REFUSED("a name is of letters, digits and _", one_operand.name = "r-r");
    REFUSED("desc.operands[0].name is exp, a name of the language", one_operand.name = "exp");
    REFUSED("desc.operands[0].name is d_silu, a name of the language", one_operand.name = "d_silu");
    REFUSED("is rows, a name of the language", one_operand.name = "rows");
    REFUSED("has 61 characters; at most 60",
            one_operand.name = "a234567890123456789012345678901234567890123456789012345678901");
    REFUSED("desc.operands[0].name is v, as the value is called", one_operand.name = "v");
    REFUSED("desc.operands[0].name is d, as the result is called", one_operand.name = "d");
    REFUSED("desc.operands[0].name is y, as the result is called", one_operand.name = "y",
            one_desc.result = "y");
    REFUSED("desc.operands[1].name is r, as an operand before it is called", two[0] = two[1] = one_operand,
            one_desc.operands = two, one_desc.operand_count = 2);
    REFUSED("desc.formula_value is \"3\"", one_desc.value = "3");
    REFUSED("desc.formula_result is tanh, a name of the language", one_desc.result = "tanh");
    REFUSED("desc.formula_value and desc.formula_result are both y", one_desc.value = one_desc.result = "y");
    REFUSED("desc.operands[0].kind (of r) is 0; accepted are 1 (GEMMEPI_NUMBER)",
            one_operand.kind = (gemmepi_operand_kind)0);
    REFUSED("kind (of r) is 7; accepted are 1 (GEMMEPI_NUMBER) to 6 (GEMMEPI_BLOCKED)",
            one_operand.kind = (gemmepi_operand_kind)7);
    REFUSED("width (of r) is 3; accepted are 0", one_operand.width = (gemmepi_width)3);
    REFUSED("width (of r) is 1; accepted are 0 (n) and, of PER_COLUMN, FULL and BLOCKED",
            one_operand.width = GEMMEPI_WIDTH_HALF, one_operand.kind = GEMMEPI_PER_ROW);
    REFUSED(
        "dtype (of r) is F64 (2); accepted here: F32, F16, BF16, E4M3, E5M2, I8, I32, I64, I4, U4, E2M1, E8M0",
        one_operand.dtype = GEMMEPI_F64);
    REFUSED("dtype (of r) is no gemmepi_dtype (99)", one_operand.dtype = (gemmepi_dtype)99);
    REFUSED("dtype (of r) is F32 (1); accepted here: F64, I32, I64", one_operand.dtype = GEMMEPI_F32,
            one_desc.accumulator = one_desc.d = GEMMEPI_F64);
    REFUSED("dtype (of r) is I64 (9)", one_operand.dtype = GEMMEPI_I64, one_operand.output = 1);
    REFUSED(
        "dtype (of r) is I4 (10); accepted here: F32, F16, BF16, E4M3, E5M2, I8, I32, I64, E8M0; types of 4 bits are for "
        "operands of the kinds FULL and BLOCKED that a formula reads",
        one_operand.dtype = GEMMEPI_I4, one_operand.kind = GEMMEPI_PER_ROW);
    REFUSED("dtype (of r) is E2M1 (12); accepted here: F32, F16, BF16, E4M3, E5M2, I8, I32; types of 4 bits",
            one_operand.dtype = GEMMEPI_E2M1, one_operand.output = 1);
    REFUSED("dtype (of r) is E8M0 (13); accepted here: F64, I32, I64", one_operand.dtype = GEMMEPI_E8M0,
            one_desc.accumulator = one_desc.d = GEMMEPI_F64);
    REFUSED("dtype (of r) is BF16 (4); accepted here: I32, I64", one_operand.dtype = GEMMEPI_BF16,
            one_desc.accumulator = one_desc.d = GEMMEPI_I32);
    REFUSED("output (of r) is 2", one_operand.output = 2);
    REFUSED("output (of r) is 1; accepted are 0 and 1, for a NUMBER only 0", one_operand.output = 1,
            one_operand.kind = GEMMEPI_NUMBER);
    REFUSED("accumulate (of r) is 1; accepted are 0 and, of outputs, 1", one_operand.accumulate = 1);
    REFUSED("ld (of r) is -1; accepted are 0 and, of FULL and BLOCKED", one_operand.ld = -1);
    REFUSED("ld (of r) is 8; accepted are 0", one_operand.ld = 8, one_operand.kind = GEMMEPI_PER_ROW);
    REFUSED("batch_stride (of r) is -8", one_operand.batch_stride = -8);
    REFUSED("row_period (of r) is 4", one_operand.row_period = 4, one_operand.kind = GEMMEPI_PER_COLUMN);
    REFUSED("column_period (of r) is 4", one_operand.column_period = 4, one_operand.kind = GEMMEPI_SCALAR);
    REFUSED("row_period (of r) is -4", one_operand.row_period = -4);
    REFUSED("block_rows (of r) is 0; accepted are, of BLOCKED, the rows of a block, 1 or more",
            make_blocked(0, 4));
    REFUSED("block_columns (of r) is -2; accepted are, of BLOCKED, the columns of a block, 1 or more",
            make_blocked(1, -2));
    REFUSED(
        "block_rows (of r) is 1; accepted are, of BLOCKED, the rows of a block, 1 or more, and of other kinds 0",
        one_operand.block_rows = 1);
    REFUSED("block_columns (of r) is 128", one_operand.block_columns = 128,
            one_operand.kind = GEMMEPI_PER_COLUMN);
    REFUSED("row_period (of r) is 4; accepted are 0 and, of inputs PER_ROW and FULL", make_blocked(1, 4),
            one_operand.row_period = 4);
    REFUSED("column_period (of r) is 4", make_blocked(1, 4), one_operand.column_period = 4);
    REFUSED(
        "r is BLOCKED, and what it is assigned is no reduction; BLOCKED outputs accept row_sum(x, w) and so on",
        make_blocked(1, 8), one_operand.output = 1, one_desc.text = "r = v");
    REFUSED("r is BLOCKED, and what it is assigned is row_sum, which is for others", make_blocked(1, 8),
            one_operand.output = 1, one_desc.text = "r = row_sum(v)");
    REFUSED(
        "r has blocks of 1 x 8, and what it is assigned is of groups of 16: set block_columns to that and block_rows to 1",
        make_blocked(1, 8), one_operand.output = 1, one_desc.text = "r = row_sum(v, 16)");
    REFUSED("r has blocks of 2 x 8", make_blocked(2, 8), one_operand.output = 1,
            one_desc.text = "r = row_sum(v, 8)");
    REFUSED(
        "r has blocks of 1 x 8, and what it is assigned is of groups of 8: set block_rows to that and block_columns to 1",
        make_blocked(1, 8), one_operand.output = 1, one_desc.exchanged = 1,
        one_desc.text = "r = column_sum(v, 8)");
    REFUSED(
        "row_sum has one value; groups of columns that lie side by side are for column_sum, column_max and column_min in",
        make_blocked(1, 8), one_operand.output = 1, one_desc.exchanged = 1,
        one_desc.text = "r = row_sum(v, 8)");
    REFUSED("r accumulates, which only sums do", make_blocked(1, 8),
            one_operand.output = one_operand.accumulate = 1, one_desc.text = "r = row_max(v, 8)");
    REFUSED("only inputs of the kinds PER_ROW, PER_COLUMN and FULL are read by index", make_blocked(1, 4),
            one_desc.text = "d = v * r[row]");
    REFUSED("scale.mode (of r) is TENSOR (1)", one_operand.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED("scale.mode (of r) is OUTER (2)", one_operand.scale.mode = GEMMEPI_SCALE_OUTER,
            one_operand.dtype = GEMMEPI_E4M3);
    REFUSED("amax (of r) is 1", one_operand.amax = 1, one_operand.dtype = GEMMEPI_E4M3);
    REFUSED("and r, an output, has not been assigned", one_operand.output = 1, one_desc.text = "d = v");
    REFUSED("r accumulates, which only sums do", one_operand.output = one_operand.accumulate = 1,
            one_operand.kind = GEMMEPI_PER_ROW, one_desc.text = "d = v; r = row_max(v)");
    REFUSED("r accumulates, which only sums do", one_operand.output = one_operand.accumulate = 1,
            one_desc.text = "d = v; r = v");
    REFUSED("r is in F32; row_argmax and column_argmax, and nothing else, are in I32", one_operand.output = 1,
            one_operand.kind = GEMMEPI_PER_ROW, one_operand.dtype = GEMMEPI_F32,
            one_desc.text = "r = row_argmax(v)");
    REFUSED("r is in I32; row_argmax and column_argmax, and nothing else, are in I32", one_operand.output = 1,
            one_operand.kind = GEMMEPI_PER_ROW, one_operand.dtype = GEMMEPI_I32,
            one_desc.text = "r = row_sum(v)");
    REFUSED("v is not known here", one_desc.without_value = 1);
    REFUSED("d is not known here", one_desc.without_result = 1, one_operand.output = 1,
            one_desc.text = "r = d");
    REFUSED("has assigned no output", one_desc.without_result = 1, one_desc.text = "");
}

/* >>what is kept */

static void a_name_may_have_60_characters(void) {
    static const char name[] = "a23456789012345678901234567890123456789012345678901234567890";
    char text[100];
    gemmepi_allocator allocator = gpi__default_allocator();
    gemmepi_operand operand;
    gpi__formula_desc desc;
    gpi__formula *formula;
    memset(&operand, 0, sizeof operand);
    operand.name = name, operand.kind = GEMMEPI_FULL;
    snprintf(text, sizeof text, "d = v + %s", name);
    desc = desc_of(text, &operand, 1, GEMMEPI_F32, GEMMEPI_F32);
    CHECK(gpi__parse_formula(&allocator, &desc, &formula) == GEMMEPI_OK, "%s", gemmepi_last_error());
    freed(formula);
}

static void defaults_of_types_are_as_they_are_told(void) {
    gemmepi_operand o[4];
    gpi__formula_desc desc;
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__formula *f;
    memset(o, 0, sizeof o);
    o[0].name = "r", o[0].kind = GEMMEPI_FULL;
    o[1].name = "am", o[1].kind = GEMMEPI_PER_ROW, o[1].output = 1;
    o[2].name = "lse", o[2].kind = GEMMEPI_PER_ROW, o[2].output = 1;
    o[3].name = "k", o[3].kind = GEMMEPI_NUMBER;
    desc =
        desc_of("d = v + r * k; am = row_argmax(v); lse = row_logsumexp(v)", o, 4, GEMMEPI_F32, GEMMEPI_E4M3);
    CHECK(gpi__parse_formula(&allocator, &desc, &f) == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (!f)
        return;
    CHECK(f->operands[0].dtype == GEMMEPI_BF16 && f->operands[1].dtype == GEMMEPI_I32 &&
              f->operands[2].dtype == GEMMEPI_F32 && f->operands[3].dtype == GEMMEPI_F64 &&
              f->operands[GPI__RESULT].dtype == GEMMEPI_E4M3,
          "%d %d %d %d", f->operands[0].dtype, f->operands[1].dtype, f->operands[2].dtype,
          f->operands[3].dtype);
    CHECK(strcmp(f->names + f->operands[2].name, "lse") == 0 && strcmp(f->names + f->value_name, "v") == 0,
          "names");
    CHECK(strcmp(gpi__reductions[f->operands[2].reduction].name, "row_logsumexp") == 0, "reduction");
    freed(f);
}

static void short_forms_are_for_what_is_stored_in_16_bits(void) {
    static const struct {
        const char *text;
        gemmepi_dtype d;
        int is_short;
    } cases[] = {
        {"d = silu(v)", GEMMEPI_BF16, 1},
        {"d = silu(v)", GEMMEPI_E4M3, 1},
        {"d = silu(v)", GEMMEPI_F32, 0},
        {"d = silu(v); rs = row_sum(d * d)", GEMMEPI_BF16, 0},
        {"d = silu(v); rs = row_sum(v)", GEMMEPI_BF16, 1},
        {"d = v; rs = row_sum(cos(v))", GEMMEPI_BF16, 0},
        {"d = v + d_gelu_erf(r); o = r", GEMMEPI_F16, 1},
        {"d = stochastic(silu(v), seed); cs = column_sum(d)", GEMMEPI_BF16, 1},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gpi__formula *f = parsed(cases[i].text, GEMMEPI_F32, cases[i].d);
        CHECK(f && f->is_short == cases[i].is_short, "%s", cases[i].text);
        freed(f);
    }
}

static void the_width_of_d_is_that_of_what_it_is_assigned(void) {
    static const struct {
        const char *text;
        int width, value, d, mode, group;
    } cases[] = {
        {"d = v", GEMMEPI_WIDTH_N, 1, 1, GPI__NO_HALVES, 0},
        {"d = 3", GEMMEPI_WIDTH_N, 0, 1, GPI__NO_HALVES, 0},
        {"d = left(v) * right(v)", GEMMEPI_WIDTH_HALF, 2, 1, GPI__LEFT_RIGHT, 0},
        {"d = even(v) * odd(v)", GEMMEPI_WIDTH_HALF, 2, 1, GPI__EVEN_ODD, 0},
        {"d = pair(v, v * r)", GEMMEPI_WIDTH_DOUBLE, 1, 2, GPI__LEFT_RIGHT, 0},
        {"d = v * left(w, 4)", GEMMEPI_WIDTH_N, 1, 1, GPI__LEFT_RIGHT, 4},
        {"d = w", GEMMEPI_WIDTH_DOUBLE, 0, 2, GPI__LEFT_RIGHT, 0},
        {"d = v; rs = row_sum(w)", GEMMEPI_WIDTH_N, 1, 1, GPI__LEFT_RIGHT, 0},
        {"d = pair(left(v), h)", GEMMEPI_WIDTH_N, 2, 2, GPI__LEFT_RIGHT, 0},
        {"d = 5; oh = left(v)", GEMMEPI_WIDTH_N, 2, 2, GPI__LEFT_RIGHT, 0},
        {"d = part(v, 2, 3)", GEMMEPI_WIDTH_HALF, 3, 1, GPI__LEFT_RIGHT, 0},
        {"d = parts(v, r, v, r)", GEMMEPI_WIDTH_DOUBLE, 1, 4, GPI__LEFT_RIGHT, 0},
        {"d = parts(h, part(v, 0, 3), 2)", GEMMEPI_WIDTH_N, 3, 3, GPI__LEFT_RIGHT, 0},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gpi__formula *f = parsed(cases[i].text, GEMMEPI_F32, GEMMEPI_F32);
        CHECK(f != NULL, "%s: %s", cases[i].text, gemmepi_last_error());
        if (!f)
            continue;
        CHECK(f->operands[GPI__RESULT].width == cases[i].width &&
                  f->operands[GPI__RESULT].members == cases[i].d && f->mode == cases[i].mode &&
                  f->group == cases[i].group && (!cases[i].value) == !f->reads_value &&
                  (!f->reads_value || gpi__members(f, f->n_width) == cases[i].value),
              "%s: width %d, members %d", cases[i].text, f->operands[GPI__RESULT].width,
              f->operands[GPI__RESULT].members);
        freed(f);
    }
}

/* Extents of a formula: 0 accepted, else the column and words of the sentence. */
typedef struct extents {
    const char *text;
    int64_t m, n, items;
    int column;
    const char *words;
} extents;

static void extents_must_be_what_halves_and_random_numbers_want(void) {
    static const extents cases[] = {
        {"d = left(v)", 3, 8, 1, 0, ""},
        {"d = v * 0 + left(w)", 3, 7, 1, 0, ""},
        {"d = left(v)", 3, 7, 1, 5, "n is 7, and the formula has halves: it must be even"},
        {"d = r;\noh = 3 * left(v)", 3, 7, 1, 10, "n is 7, and the formula has halves"},
        {"d = p * h", 3, 7, 1, 9, "n is 7, and the formula has halves"},
        {"d = v; oh = p", 3, 7, 1, 8, "n is 7, and the formula has halves"},
        {"d = part(v, 0, 3)", 3, 9, 1, 0, ""},
        {"d = parts(v, v, r)", 3, 7, 1, 0, ""},
        {"d = h * part(v, 0, 3)", 3, 8, 1, 9,
         "n is 8, and the formula has 3 parts: it must be a multiple of 3"},
        {"d = part(v, 1, 3)", 3, INT64_MAX - INT64_MAX % 3, 1, 0, ""},
        {"d = parts(v, v, r)", 3, INT64_MAX / 2, 1, 5, "the formula is 3 n columns wide"},
        {"d = left(v, 64)", 3, 128, 1, 0, ""},
        {"d = left(v, 64)", 3, 96, 1, 5, "halves are of groups of 64, and the formula is 96 columns wide"},
        {"x = left(1, 6); d = x * right(v, 6)", 3, 8, 1, 25, "halves are of groups of 6, and"},
        {"d = pair(v, v)", 3, 7, 1, 0, ""},
        {"d = 2 * pair(v, v)", 3, INT64_MAX / 2, 1, 0, ""},
        {"d = 2 * pair(v, v)", 3, INT64_MAX / 2 + 1, 1, 9, "and the formula is 2 n columns wide"},
        {"d = 2 * pair(v, v, 6)", 3, 9, 1, 0, ""},
        {"d = 2 * pair(v, v, 6)", 3, 10, 1, 9,
         "halves are of groups of 6, and the formula is 20 columns wide"},
        {"d = uniform(seed, 0)", 4294967295, 4294967295, 4294967295, 0, ""},
        {"d = uniform(seed, 0)", 4294967296, 7, 1, 5, "random numbers are for extents below 2^32"},
        {"d = uniform(seed, 0)", 3, 4294967296, 1, 5, "random numbers are for extents below 2^32"},
        {"d = uniform(seed, 0) * pair(v, v)", 3, 2147483647, 1, 0, ""},
        {"d = uniform(seed, 0) * pair(v, v)", 3, 2147483648, 1, 5,
         "random numbers are for extents below 2^32"},
        {"d = v * uniform(seed, 0)", 3, 7, 4294967296, 9, "random numbers are for extents below 2^32"},
    };
    char place[32];
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        const extents *c = &cases[i];
        gpi__formula *f = parsed(c->text, GEMMEPI_F32, GEMMEPI_F32);
        gemmepi_status status;
        CHECK(f != NULL, "%s: %s", c->text, gemmepi_last_error());
        if (!f)
            continue;
        status = gpi__check_formula_extents(f, c->text, c->m, c->n, c->items);
        snprintf(place, sizeof place, "column %d: ", c->column);
        CHECK(status == (c->column ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK), "%s, %lld", c->text,
              (long long)c->n);
        CHECK(!c->column || (strstr(gemmepi_last_error(), place) && strstr(gemmepi_last_error(), c->words)),
              "%s, column %d: %s", c->text, c->column, gemmepi_last_error());
        freed(f);
    }
}

/* >>memory */

static int allocations_left;
static int blocks;
static void *limited_alloc(void *user, size_t size) {
    (void)user;
    if (allocations_left-- <= 0)
        return NULL;
    blocks++;
    return malloc(size);
}
static void limited_free(void *user, void *pointer) {
    (void)user;
    blocks -= pointer != NULL;
    free(pointer);
}

static void memory_that_runs_out_is_told_and_given_back(void) {
    gemmepi_allocator allocator;
    gpi__formula *f;
    int n;
    allocator.alloc = limited_alloc, allocator.free = limited_free, allocator.user = NULL;
    good_desc();
    for (n = 0; n < 3; n++) {
        allocations_left = n;
        CHECK(gpi__parse_formula(&allocator, &one_desc, &f) == (n < 2 ? GEMMEPI_OUT_OF_MEMORY : GEMMEPI_OK),
              "%d", n);
        CHECK((f != NULL) == (n == 2) && blocks == (n == 2), "%d blocks are left of %d", blocks, n);
        gpi__delete(&allocator, f);
    }
    one_desc.text = "d = v +";
    allocations_left = 9;
    CHECK(gpi__parse_formula(&allocator, &one_desc, &f) == GEMMEPI_INVALID_ARGUMENT && blocks == 0, "%d",
          blocks);
}

int main(void) {
    RUN(precedence_is_that_of_c);
    RUN(blanks_comments_and_names_mean_nothing);
    RUN(numbers_are_read_as_they_are_written);
    RUN(numbers_are_folded_where_that_is_exact);
    RUN(operands_names_are_no_part_of_the_key);
    RUN(every_formula_reads_back_as_what_it_was);
    RUN(different_formulas_have_different_keys);
    RUN(depth_is_broken_by_names_and_reads_back);
    RUN(numbers_print_in_as_many_digits_as_read_back);
    RUN(numbers_print_alike_in_locales_with_another_point);
    RUN(mistakes_of_syntax_are_refused_with_their_place);
    RUN(comparisons_of_what_was_compared_are_accepted_in_parentheses);
    RUN(wrong_counts_and_names_are_refused_with_their_place);
    RUN(what_is_read_by_index_and_by_what_is_refused_with_its_place);
    RUN(what_is_stored_in_whole_numbers_of_8_bits_or_4_is_an_index);
    RUN(in_column_major_order_vectors_alone_are_read_by_index);
    RUN(names_of_other_languages_are_refused_with_those_of_this_one);
    RUN(what_is_meant_by_names_of_other_languages_is_accepted);
    RUN(a_name_that_nothing_reads_is_refused_with_what_it_may_stand_for);
    RUN(names_that_are_short_for_a_text_may_be_defined);
    RUN(numbers_of_f64_have_its_range);
    RUN(small_numbers_that_f32_holds_are_accepted);
    RUN(outputs_and_reductions_are_refused_where_they_do_not_fit);
    RUN(rounding_by_chance_is_the_whole_right_side_of_an_output);
    RUN(rounding_by_chance_is_for_extents_below_2_to_the_32);
    RUN(what_is_rounded_by_chance_is_read_without_it_and_f32_rounds_nothing);
    RUN(widths_that_do_not_fit_are_refused);
    RUN(whole_results_take_what_whole_numbers_have);
    RUN(limits_are_as_they_are_told);
    RUN(descs_that_do_not_hold_are_refused);
    RUN(a_name_may_have_60_characters);
    RUN(defaults_of_types_are_as_they_are_told);
    RUN(short_forms_are_for_what_is_stored_in_16_bits);
    RUN(the_width_of_d_is_that_of_what_it_is_assigned);
    RUN(extents_must_be_what_halves_and_random_numbers_want);
    RUN(memory_that_runs_out_is_told_and_given_back);
    return test_finish();
}
