/* Texts of formulas for fuzzers: made of the grammar, those of the corpus tests/unit/formula_corpus.txt, and good ones that are spoiled. */
#ifndef GEMMEPI_TESTS_FORMULA_TEXTS_H
#define GEMMEPI_TESTS_FORMULA_TEXTS_H

#include "draw.h"
#include "formula_cases.h"

static char text[8192];

static void add(const char *more) {
    if (strlen(text) + strlen(more) + 1 < sizeof text)
        strcat(text, more);
}

static const char *const atoms[] = {
    "v",   "r",    "u",     "b",  "p",  "s",    "k",    "label", "row",       "pi",         "inf",  "column",
    "0.5", "2",    "1e-3",  "x0", "x1", "item", "rows", "3.25",  "h",         "w",          "-1",   "0",
    "bh",  "seed", "depth", "v",  "v",  "r",    "d",    "o",     "cw[label]", "lg[column]", "cw[2]"};
static const char *const functions[] = {
    "abs",         "exp",        "exp2",         "expm1",    "log",    "log2",      "log1p",      "sqrt",
    "rsqrt",       "sin",        "cos",          "tanh",     "erf",    "floor",     "round",      "isnan",
    "rounded",     "silu",       "relu",         "gelu_erf", "d_silu", "elu",       "leaky_relu", "hardswish",
    "mish",        "left",       "right",        "even",     "odd",    "gelu_tanh", "softplus",   "sigmoid",
    "hardsigmoid", "quick_gelu", "squared_relu", "d_relu",   "atan",   "sinh",      "erfc",       "ceil",
    "trunc",       "cosh",       "tan",          "isinf"};
static const char *const pairs[] = {"min",        "max", "pow",  "mod",     "pair",
                                    "interleave", "elu", "left", "uniform", "logaddexp"};
static const char *const operators[] = {" + ",  " - ",  " * ",  " / ",  " < ", " <= ", " > ", " >= ",
                                        " == ", " != ", " && ", " || ", " + ", " * ",  " * "};

static void add_expression(int depth);

/* part(x, i, n), or as many parts; most have three. */
static void add_parts(int depth) {
    char counts[32];
    int parts = one_in(4) ? 2 + below(3) : 3, i;
    if (one_in(2)) {
        add("part(");
        add_expression(depth - 1);
        snprintf(counts, sizeof counts, ", %d, %d)", below(parts), parts);
        add(counts);
        return;
    }
    for (i = 0; i < parts; i++) {
        add(i ? ", " : "parts(");
        add_expression(i ? depth - 2 : depth - 1);
    }
    add(")");
}

static void add_expression(int depth) {
    int kind = depth <= 0 ? 0 : below(9);
    if (kind <= 1) {
        add(atoms[below((int)GPI__COUNT(atoms))]);
    } else if (kind <= 5) {
        int parentheses = one_in(2);
        add(parentheses ? "(" : "");
        add_expression(depth - 1);
        add(operators[below((int)GPI__COUNT(operators))]);
        add_expression(depth - 1);
        add(parentheses ? ")" : "");
    } else if (kind == 6) {
        add(functions[below((int)GPI__COUNT(functions))]);
        add("(");
        add_expression(depth - 1);
        add(")");
    } else if (kind == 7) {
        add(pairs[below((int)GPI__COUNT(pairs))]);
        add("(");
        add_expression(depth - 1);
        add(", ");
        add_expression(depth - 1);
        add(")");
    } else if (one_in(8)) {
        add_parts(depth);
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
    static const char *const outputs[] = {"d = ",
                                          "o = ",
                                          "oh = ",
                                          "rs = row_sum(",
                                          "rt = row_logsumexp(",
                                          "cs = column_sum(",
                                          "al = all_sum(",
                                          "rt = row_max(",
                                          "rt = row_min(",
                                          "d = stochastic("};
    int i, statements = 1 + below(4), seen = 0;
    text[0] = 0;
    if (one_in(3))
        add("x0 = "), add_expression(3), add("; ");
    if (one_in(4))
        add("x1 = "), add_expression(2), add(";\n");
    for (i = 0; i < statements; i++) {
        int output = below((int)GPI__COUNT(outputs));
        if (seen >> output & 1)
            continue;
        seen |= 1 << output;
        add(outputs[output]);
        add_expression(1 + below(5));
        add(strstr(outputs[output], "stochastic") ? ", seed); "
            : strchr(outputs[output], '(')        ? "); "
                                                  : "; ");
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
    while (file && fgets(line, sizeof line, file) && corpus_count < (int)GPI__COUNT(corpus)) {
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
    int turns = 1 + below(4);
    while (turns-- > 0 && text[0]) {
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

#endif
