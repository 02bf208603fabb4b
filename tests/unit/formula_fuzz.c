/* formula_fuzz [count] [first seed]: texts made of the grammar, texts that were good and are spoiled, and those of the corpus
   tests/unit/formula_corpus.txt, with operands that are good or garbage. Each is refused with a sentence or accepted; then everything
   behind the parser runs on it: the canonical text reads back to itself, the host evaluates, the code is written, and the gradient,
   where there is one, is accepted again, and is the same as a graph. A failure prints its seed: `formula_fuzz 1 SEED` repeats it. With GEMMEPI_LIBFUZZER it is a
   fuzzer for libFuzzer (tests/fuzz.sh). */
#include "formula_texts.h"

static uint64_t first = 1, count_of_cases = 30000;
static unsigned long long seed_here;
static long accepted, refused, derived, compared;

/* >>what is behind the parser */

static void check_text_and_code(const gpi__formula *f, const gpi__formula_desc *desc) {
    static char once[1 << 18], again[1 << 18], key[1 << 18], code[1 << 20];
    gpi__text out = gpi__text_in(once, sizeof once), back = gpi__text_in(again, sizeof again);
    gpi__text to_key = gpi__text_in(key, sizeof key), to_code = gpi__text_in(code, sizeof code);
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__formula_desc other = *desc;
    gpi__formula *g;
    gpi__print_formula(&out, f);
    gpi__print_key(&to_key, f);
    gpi__emit_formula(&to_code, f);
    CHECK(!gpi__text_is_cut(&out) && !gpi__text_is_cut(&to_key) && !gpi__text_is_cut(&to_code),
          "seed %llu: cut", seed_here);
    if (out.length > GPI__FORMULA_CHARACTERS)
        return;
    other.text = once;
    CHECK(gpi__parse_formula(&allocator, &other, &g) == GEMMEPI_OK, "seed %llu: %s\n%s\n%s", seed_here, text,
          once, gemmepi_last_error());
    if (!g)
        return;
    gpi__print_formula(&back, g);
    CHECK(strcmp(once, again) == 0, "seed %llu: %s\n%s\n%s", seed_here, text, once, again);
    freed(g);
}

static void check_evaluation(const gpi__formula *f) {
    static data d;
    int i;
    if (!f->node_count || (f->group && f->group > COLUMNS) || COLUMNS % f->parts || f->parts > MOST_PARTS)
        return;
    fill_randomly(f, &d);
    for (i = 0; i < MOST; i++) {
        d.value.at[i].bound = one_in(2) ? 0 : 1e-3;
        if (one_in(9))
            d.value.at[i].value = one_in(2) ? HUGE_VAL : one_in(2) ? 0 : one_in(2) ? NAN : 1e38;
    }
    run_formula(f, &d);
    for (i = 0; i < MOST; i++)
        CHECK(d.operands[GPI__RESULT].at[i].bound >= 0, "seed %llu: %s: a bound of %g", seed_here, text,
              d.operands[GPI__RESULT].at[i].bound);
}

/* f is of the text, which does not say how many parts there are where it does not divide columns: g has as many as its formula. */
static int are_equal(gpi__formula *f, const gpi__formula *g, const char *gradient) {
    if (!strstr(gradient, "part"))
        f->parts = g->parts;
    return f->size == g->size && memcmp(f, g, offsetof(gpi__formula, nodes)) == 0 &&
           memcmp(f->nodes, g->nodes, (size_t)f->node_count * sizeof *f->nodes) == 0;
}

/* The gradient as a graph is what is parsed of its text: of a formula that assigns d alone, with v, dy and d_r behind its operands. */
static void check_graph(const gemmepi_derive_desc *derive, const char *gradient, gemmepi_width width_of_dy) {
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__formula_desc desc;
    gpi__derivation *d = NULL;
    gpi__formula *f, *g = NULL;
    int16_t outputs[2], upstreams[GPI__RESULT + 1] = {0};
    int i, count = derive->operand_count;
    for (i = 0; i < count; i++)
        if (derive->operands[i].output || count + 3 > GPI__FORMULA_OPERANDS)
            return;
    memset(operands, 0, sizeof operands);
    memcpy(operands, derive->operands, (size_t)count * sizeof operands[0]);
    for (i = 0; i < count; i++) /* as r is */
        if (strcmp(operands[i].name, "r") == 0)
            operands[count + 2].kind = operands[i].kind == GEMMEPI_NUMBER ? GEMMEPI_SCALAR : operands[i].kind,
                             operands[count + 2].width = operands[i].width;
    operands[count].name = "v", operands[count + 1].name = "dy", operands[count + 2].name = "d_r";
    operands[count].kind = operands[count + 1].kind = GEMMEPI_FULL;
    operands[count + 1].width = width_of_dy;
    operands[count + 2].output = 1;
    outputs[0] = GPI__RESULT, outputs[1] = (int16_t)(count + 2);
    upstreams[GPI__RESULT] = (int16_t)(count + 1);
    desc = desc_of(gradient, operands, count + 2 + (strchr(derive->wrt, 'r') != NULL), GEMMEPI_F32,
                   GEMMEPI_BF16);
    desc.without_value = 1;
    desc.result = "d_v";
    CHECK(gpi__parse_formula(&allocator, &desc, &f) == GEMMEPI_OK &&
              !gpi__derivation_of(&allocator, derive, &d) &&
              !gpi__copy_gradient(d, &desc, count, upstreams, outputs) &&
              !gpi__formula_of(&allocator, &d->gradient, &g) && are_equal(f, g, gradient),
          "seed %llu: %s\n%s\n%s", seed_here, text, gradient, gemmepi_last_error());
    compared++;
    gpi__delete(&allocator, d);
    freed(f), freed(g);
}

static void check_gradient(const gpi__formula_desc *desc) {
    static char gradient[8192];
    static gemmepi_operand operands[80];
    gemmepi_allocator allocator = gpi__default_allocator();
    gemmepi_derive_desc derive;
    gpi__formula_desc back;
    gpi__formula *g;
    int i;
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
    if (back.operand_count > GPI__FORMULA_OPERANDS)
        return;
    derived++;
    CHECK(gpi__parse_formula(&allocator, &back, &g) == GEMMEPI_OK, "seed %llu: %s\n%s\n%s", seed_here, text,
          gradient, gemmepi_last_error());
    if (g)
        check_evaluation(g);
    freed(g);
    for (i = 0; i < back.operand_count && strcmp(operands[i].name, "dy") != 0; i++)
        ;
    if (!derive.saved)
        check_graph(&derive, gradient, i < back.operand_count ? operands[i].width : GEMMEPI_WIDTH_N);
}

/* Good ones, now and then with a field of garbage, but for the pointers at both ends. */
static int choose_operands(gemmepi_operand operands[GPI__FORMULA_OPERANDS]) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_I8};
    int i, count = operands_of(text, operands);
    for (i = 0; i < count; i++)
        if (one_in(2) && operands[i].dtype == GEMMEPI_DTYPE_DEFAULT && operands[i].kind != GEMMEPI_NUMBER)
            operands[i].dtype = dtypes[below((int)GPI__COUNT(dtypes))];
    if (count && one_in(12)) {
        unsigned char *bytes = (unsigned char *)&operands[below(count)] + sizeof(char *);
        bytes[below((int)(offsetof(gemmepi_operand, tensor) - sizeof(char *)))] ^=
            (unsigned char)(1 << below(8));
    }
    return count;
}

/* The text that is there, with operands that are drawn. */
static void check_text(void) {
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__formula_desc desc;
    gpi__formula *f;
    gemmepi_status status;
    desc = desc_of(text, operands, choose_operands(operands), GEMMEPI_F32, GEMMEPI_BF16);
    if (one_in(16))
        desc.accumulator = desc.d = GEMMEPI_I32;
    (void)gpi__fail(GEMMEPI_OK, "%s", "");
    status = gpi__parse_formula(&allocator, &desc, &f);
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

#ifdef GEMMEPI_LIBFUZZER
/* Eight bytes choose the operands, the rest is the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t choices = size < 8 ? size : 8, length = size - choices;
    length = length < sizeof text ? length : sizeof text - 1;
    memcpy(text, data + choices, length);
    text[length] = 0;
    draw_from_bytes(data, choices);
    check_text();
    if (test_failures_here)
        abort();
    return 0;
}
#else
static void one_case(uint64_t seed) {
    draw_from_seed(seed);
    seed_here = seed;
    if (seed <= (uint64_t)corpus_count)
        snprintf(text, sizeof text, "%s", corpus[seed - 1]);
    else if (one_in(4) && corpus_count)
        snprintf(text, sizeof text, "%s", corpus[below(corpus_count)]);
    else
        make_text();
    if (seed > (uint64_t)corpus_count && one_in(3))
        spoil_text();
    check_text();
}

static void every_text_is_refused_in_words_or_goes_all_the_way(void) {
    uint64_t seed;
    read_corpus();
    CHECK(corpus_count > 50, "the corpus has %d texts", corpus_count);
    for (seed = first; seed < first + count_of_cases; seed++)
        one_case(seed);
    if (count_of_cases > 1000)
        CHECK(accepted > (long)count_of_cases / 20 && refused > (long)count_of_cases / 20 &&
                  derived > (long)count_of_cases / 40 && compared > (long)count_of_cases / 80,
              "%ld accepted, %ld refused, %ld derived, %ld compared", accepted, refused, derived, compared);
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
#endif
