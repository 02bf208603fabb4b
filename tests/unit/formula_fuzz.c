/* formula_fuzz [count] [first seed]: texts made of the grammar, texts that were good and are spoiled, and those of the corpus
   tests/unit/formula_corpus.txt, with operands that are good or garbage. Each is refused with a sentence or accepted; then everything
   behind the parser runs on it: the canonical text reads back to itself, the host evaluates, the code is written, and the gradient,
   where there is one, is accepted again. A failure prints its seed: `formula_fuzz 1 SEED` repeats it. */
#include "formula_cases.h"

static uint64_t first = 1, count_of_cases = 30000;
static unsigned long long seed_here;
static long accepted, refused, derived;

/* >>random numbers: Knuth's MMIX generator */

static uint64_t state;
static uint64_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 31;
}
static int below(int n) {
    return (int)(next() % (uint64_t)n);
}
static int one_in(int n) {
    return below(n) == 0;
}

/* >>texts */

static char text[8192];

static void add(const char *more) {
    if (strlen(text) + strlen(more) + 1 < sizeof text)
        strcat(text, more);
}

static const char *const atoms[] = {
    "v",    "r",    "u",    "b", "p", "s",  "k", "label", "row",  "column", "0.5", "2", "1e-3", "x0", "x1",
    "item", "rows", "3.25", "h", "w", "-1", "0", "bh",    "seed", "depth",  "v",   "v", "r",    "d",  "o"};
static const char *const functions[] = {
    "abs",         "exp",        "exp2",         "expm1",    "log",    "log2",      "log1p",      "sqrt",
    "rsqrt",       "sin",        "cos",          "tanh",     "erf",    "floor",     "round",      "isnan",
    "rounded",     "silu",       "relu",         "gelu_erf", "d_silu", "elu",       "leaky_relu", "hardswish",
    "mish",        "left",       "right",        "even",     "odd",    "gelu_tanh", "softplus",   "sigmoid",
    "hardsigmoid", "quick_gelu", "squared_relu", "d_relu"};
static const char *const pairs[] = {"min",        "max", "pow",  "mod",    "pair",
                                    "interleave", "elu", "left", "uniform"};
static const char *const operators[] = {" + ",  " - ",  " * ",  " / ",  " < ", " <= ", " > ", " >= ",
                                        " == ", " != ", " && ", " || ", " + ", " * ",  " * "};

static void add_expression(int depth) {
    int kind = depth <= 0 ? 0 : below(9);
    if (kind <= 1) {
        add(atoms[below((int)GEMMEPI__COUNT(atoms))]);
    } else if (kind <= 5) {
        int parentheses = one_in(2);
        add(parentheses ? "(" : "");
        add_expression(depth - 1);
        add(operators[below((int)GEMMEPI__COUNT(operators))]);
        add_expression(depth - 1);
        add(parentheses ? ")" : "");
    } else if (kind == 6) {
        add(functions[below((int)GEMMEPI__COUNT(functions))]);
        add("(");
        add_expression(depth - 1);
        add(")");
    } else if (kind == 7) {
        add(pairs[below((int)GEMMEPI__COUNT(pairs))]);
        add("(");
        add_expression(depth - 1);
        add(", ");
        add_expression(depth - 1);
        add(")");
    } else {
        add(one_in(3) ? "-" : "");
        add("(");
        add_expression(depth - 1);
        add(" ? ");
        add_expression(depth - 1);
        add(" : ");
        add_expression(depth - 1);
        add(")");
    }
}

/* A name whose first statement begins the text. Most of those that nothing reads, which are refused, are left out. */
static void leave_out_unread(const char *name) {
    char *end = strchr(text, ';');
    if (strncmp(text, name, 2) == 0 && !strstr(end, name) && !one_in(16))
        memmove(text, end + 2, strlen(end + 2) + 1);
}

static void make_text(void) {
    static const char *const outputs[] = {
        "d = ",          "o = ",         "oh = ", "rs = row_sum(", "rt = row_logsumexp(", "cs = column_sum(",
        "al = all_sum(", "rt = row_max("};
    int i, statements = 1 + below(4), seen = 0;
    text[0] = 0;
    if (one_in(3))
        add("x0 = "), add_expression(3), add("; ");
    if (one_in(4))
        add("x1 = "), add_expression(2), add(";\n");
    for (i = 0; i < statements; i++) {
        int output = below((int)GEMMEPI__COUNT(outputs));
        if (seen >> output & 1)
            continue;
        seen |= 1 << output;
        add(outputs[output]);
        add_expression(1 + below(5));
        add(strchr(outputs[output], '(') ? "); " : "; ");
    }
    leave_out_unread("x0");
    leave_out_unread("x1");
}

static char *corpus[4096];
static int corpus_count;

static void read_corpus(void) {
    static const char *const paths[] = {"tests/unit/formula_corpus.txt", "../tests/unit/formula_corpus.txt"};
    char line[8192];
    FILE *file = fopen(paths[0], "r");
    if (!file)
        file = fopen(paths[1], "r");
    while (file && fgets(line, sizeof line, file) && corpus_count < (int)GEMMEPI__COUNT(corpus)) {
        line[strcspn(line, "\n")] = 0;
        corpus[corpus_count] = (char *)malloc(strlen(line) + 1);
        strcpy(corpus[corpus_count++], line);
    }
    if (file)
        fclose(file);
}

/* Characters exchanged, left out or doubled, or a piece of another text put in. */
static void spoil_text(void) {
    static const char signs[] = "+-*/<>=!&|?:;,()=.09vdr \n_e\"\\\x7f\xc3";
    int times = 1 + below(4);
    while (times-- > 0 && text[0]) {
        size_t at = (size_t)below((int)strlen(text)), length = strlen(text);
        switch (below(4)) {
        case 0:
            text[at] = signs[below((int)sizeof signs - 1)];
            break;
        case 1:
            memmove(text + at, text + at + 1, length - at);
            break;
        case 2:
            if (length + 64 < sizeof text) {
                size_t piece = (size_t)below(40) < length - at ? (size_t)below(40) : length - at;
                piece = piece > length - at ? length - at : piece;
                memmove(text + at + piece, text + at, length - at + 1);
            }
            break;
        default:
            if (corpus_count && one_in(3)) {
                const char *other = corpus[below(corpus_count)];
                snprintf(text + at, sizeof text - at, "%s", other + below((int)strlen(other) + 1));
            } else {
                text[at] = (char)below(256);
            }
        }
    }
}

/* >>what is behind the parser */

static void check_text_and_code(const gemmepi__formula *f, const gemmepi__formula_desc *desc) {
    static char once[1 << 18], again[1 << 18], key[1 << 18], code[1 << 20];
    gemmepi__text out = gemmepi__text_in(once, sizeof once), back = gemmepi__text_in(again, sizeof again);
    gemmepi__text to_key = gemmepi__text_in(key, sizeof key), to_code = gemmepi__text_in(code, sizeof code);
    gemmepi_allocator allocator = gemmepi__default_allocator();
    gemmepi__formula_desc other = *desc;
    gemmepi__formula *g;
    gemmepi__print_formula(&out, f);
    gemmepi__print_key(&to_key, f);
    gemmepi__emit_formula(&to_code, f);
    CHECK(!gemmepi__text_is_cut(&out) && !gemmepi__text_is_cut(&to_key) && !gemmepi__text_is_cut(&to_code),
          "seed %llu: cut", seed_here);
    if (out.length > GEMMEPI__FORMULA_CHARACTERS)
        return;
    other.text = once;
    CHECK(gemmepi__parse_formula(&allocator, &other, &g) == GEMMEPI_OK, "seed %llu: %s\n%s\n%s", seed_here,
          text, once, gemmepi_last_error());
    if (!g)
        return;
    gemmepi__print_formula(&back, g);
    CHECK(strcmp(once, again) == 0, "seed %llu: %s\n%s\n%s", seed_here, text, once, again);
    freed(g);
}

static void check_evaluation(const gemmepi__formula *f) {
    static data d;
    int i;
    if (!f->node_count || (f->group && f->group > COLUMNS))
        return;
    fill_randomly(f, &d);
    for (i = 0; i < MOST; i++) {
        d.value.at[i].bound = one_in(2) ? 0 : 1e-3;
        if (one_in(9))
            d.value.at[i].value = one_in(2) ? HUGE_VAL : one_in(2) ? 0 : one_in(2) ? NAN : 1e38;
    }
    run_formula(f, &d);
    for (i = 0; i < MOST; i++)
        CHECK(d.operands[GEMMEPI__RESULT].at[i].bound >= 0, "seed %llu: %s: a bound of %g", seed_here, text,
              d.operands[GEMMEPI__RESULT].at[i].bound);
}

static void check_gradient(const gemmepi__formula_desc *desc) {
    static char gradient[8192];
    static gemmepi_operand operands[80];
    gemmepi_allocator allocator = gemmepi__default_allocator();
    gemmepi_derive_desc derive;
    gemmepi__formula_desc back;
    gemmepi__formula *g;
    memset(&derive, 0, sizeof derive);
    derive.formula = desc->text, derive.operands = desc->operands, derive.operand_count = desc->operand_count;
    derive.wrt = has_word(desc->text, "r") && one_in(2) ? "v, r" : "v";
    derive.saved = one_in(3) && has_word(desc->text, "o") ? "v, o, d" : NULL;
    if (gemmepi_derive(&derive, gradient, sizeof gradient) == 0) {
        CHECK(gemmepi_last_error()[0] != 0, "seed %llu: no sentence", seed_here);
        return;
    }
    back = desc_of(gradient, operands, gemmepi_derive_operands(&derive, operands, 80), GEMMEPI_F32,
                   GEMMEPI_BF16);
    back.without_value = back.without_result = 1;
    if (back.operand_count > GEMMEPI__FORMULA_OPERANDS)
        return;
    derived++;
    CHECK(gemmepi__parse_formula(&allocator, &back, &g) == GEMMEPI_OK, "seed %llu: %s\n%s\n%s", seed_here,
          text, gradient, gemmepi_last_error());
    if (g)
        check_evaluation(g);
    freed(g);
}

/* Good ones, now and then with a field of garbage, but for the pointers at both ends. */
static int choose_operands(gemmepi_operand operands[GEMMEPI__FORMULA_OPERANDS]) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_I8};
    int i, count = operands_of(text, operands);
    for (i = 0; i < count; i++)
        if (one_in(2) && operands[i].dtype == GEMMEPI_DTYPE_DEFAULT && operands[i].kind != GEMMEPI_NUMBER)
            operands[i].dtype = dtypes[below((int)GEMMEPI__COUNT(dtypes))];
    if (count && one_in(12)) {
        unsigned char *bytes = (unsigned char *)&operands[below(count)] + sizeof(char *);
        bytes[below((int)(offsetof(gemmepi_operand, tensor) - sizeof(char *)))] ^=
            (unsigned char)(1 << below(8));
    }
    return count;
}

static void one_case(uint64_t seed) {
    gemmepi_operand operands[GEMMEPI__FORMULA_OPERANDS];
    gemmepi_allocator allocator = gemmepi__default_allocator();
    gemmepi__formula_desc desc;
    gemmepi__formula *f;
    gemmepi_status status;
    state = seed * 0x9e3779b97f4a7c15u;
    seed_here = seed;
    (void)next();
    if (seed <= (uint64_t)corpus_count)
        snprintf(text, sizeof text, "%s", corpus[seed - 1]);
    else if (one_in(4) && corpus_count)
        snprintf(text, sizeof text, "%s", corpus[below(corpus_count)]);
    else
        make_text();
    if (seed > (uint64_t)corpus_count && one_in(3))
        spoil_text();
    desc = desc_of(text, operands, choose_operands(operands), GEMMEPI_F32, GEMMEPI_BF16);
    if (one_in(16))
        desc.accumulator = desc.d = GEMMEPI_I32;
    (void)gemmepi__fail(GEMMEPI_OK, "%s", "");
    status = gemmepi__parse_formula(&allocator, &desc, &f);
    CHECK(status == GEMMEPI_OK
              ? f != NULL
              : status == GEMMEPI_INVALID_ARGUMENT && !f && strstr(gemmepi_last_error(), "desc."),
          "seed %llu: %s: %d, %s", seed_here, text, (int)status, gemmepi_last_error());
    if (!f) {
        refused++;
        return;
    }
    accepted++;
    check_text_and_code(f, &desc);
    check_evaluation(f);
    if (desc.accumulator == GEMMEPI_F32)
        check_gradient(&desc);
    freed(f);
}

static void every_text_is_refused_in_words_or_goes_all_the_way(void) {
    uint64_t seed;
    read_corpus();
    CHECK(corpus_count > 50, "the corpus has %d texts", corpus_count);
    for (seed = first; seed < first + count_of_cases; seed++)
        one_case(seed);
    if (count_of_cases > 1000)
        CHECK(accepted > (long)count_of_cases / 20 && refused > (long)count_of_cases / 20 &&
                  derived > (long)count_of_cases / 40,
              "%ld accepted, %ld refused, %ld derived", accepted, refused, derived);
    while (corpus_count > 0)
        free(corpus[--corpus_count]);
}

int main(int argc, char **argv) {
    if (argc > 1)
        count_of_cases = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first = strtoull(argv[2], NULL, 10);
    RUN(every_text_is_refused_in_words_or_goes_all_the_way);
    return test_finish();
}
