/* Products by their names, as draw_name() writes them and users give them: "8192x512x77 NT BF16 SILU|BIAS a+3". */
#ifndef GEMMEPI_BENCH_NAMED_H
#define GEMMEPI_BENCH_NAMED_H

#include "draw.h"

enum { NAMED_MOST = 200, NAMED_SEED = -2 /* in CSVs, where drawn rows have theirs */ };

/* Whether the text is the word at *at, which ends at a blank, at the end or at one of ends; *at is behind it then. */
static int named_word(const char **at, const char *word, const char *ends) {
    size_t length = strlen(word);
    char end = (*at)[strncmp(*at, word, length) == 0 ? length : 0];
    if (strncmp(*at, word, length) != 0 || (end && end != ' ' && !strchr(ends, end)))
        return 0;
    *at += length;
    return 1;
}

static int named_dtype(const char **at, gemmepi_dtype *dtype) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F32};
    int i;
    for (i = 0; i < COUNT(dtypes); i++)
        if (named_word(at, draw_dtype_name(dtypes[i]), "-")) {
            *dtype = dtypes[i];
            return 1;
        }
    return 0;
}

/* The activation or the flag of a name; 0: there is none of this name. */
static gemmepi_epilogue named_part(const char **at) {
    int i;
    for (i = 0; i < DRAW_ACTIVATIONS; i++)
        if (named_word(at, draw_activations[i].name, "|"))
            return draw_activations[i].code;
    for (i = 0; i < COUNT(draw_flags); i++)
        if (named_word(at, draw_flags[i].name, "|"))
            return draw_flags[i].flag;
    return 0;
}

static int named_epilogue(const char **at, gemmepi_epilogue *epilogue) {
    *epilogue = 0;
    if (named_word(at, "NONE", ""))
        return 1;
    do {
        gemmepi_epilogue part = named_part(at);
        if (!part || *epilogue & part)
            return 0;
        *epilogue |= part;
    } while (*(*at) == '|' && (*at)++);
    return 1;
}

/* " a+3 d+8" and so on, to the end. The lines are dense before. */
static int named_pads(const char *at, draw_problem *p) {
    int64_t *lines[] = {&p->a_ld, &p->b_ld, &p->d_ld, &p->aux_ld, &p->residual_ld};
    char name[16];
    int pad, length, i;
    while (sscanf(at, " %15[a-z]+%d%n", name, &pad, &length) == 2 && pad > 0) {
        for (i = 0; i < COUNT(lines) && strcmp(name, draw_line_names[i]) != 0; i++) {
        }
        if (i == COUNT(lines) || !*lines[i])
            return 0;
        *lines[i] += pad;
        at += length;
    }
    return !at[strspn(at, " ")];
}

static void named_dense_lines(draw_problem *p) {
    p->a_ld = draw_a_columns(p), p->b_ld = draw_b_columns(p), p->d_ld = draw_d_columns(p);
    p->aux_ld = draw_aux_columns(p), p->residual_ld = draw_d_columns(p);
    draw_settle_lines(p);
}

/* Returns 0 where the text is no name of a product of BF16 or F16 within the bounds of drawn ones. */
static int named_problem(const char *at, draw_problem *p) {
    int m, n, k, length = 0;
    char a[2], b[2];
    memset(p, 0, sizeof *p);
    if (sscanf(at, " %dx%dx%d %1[NT]%1[NT] %n", &m, &n, &k, a, b, &length) != 5 || m < 1 || n < 1 || k < 1)
        return 0;
    at += length;
    p->m = m, p->n = n, p->k = k;
    p->a_transposed = a[0] == 'T', p->b_transposed = b[0] == 'T';
    if (!named_dtype(&at, &p->dtype) || p->dtype == GEMMEPI_F32)
        return 0;
    p->d_dtype = p->dtype;
    if (at[0] == '-' && at[1] == '>' && (at += 2, !named_dtype(&at, &p->d_dtype)))
        return 0;
    at += strspn(at, " ");
    if (!named_epilogue(&at, &p->epilogue))
        return 0;
    at += strspn(at, " ");
    p->accumulates = named_word(&at, "D+=", "");
    named_dense_lines(p);
    return named_pads(at, p) && draw_operations(p) <= DRAW_MOST_OPERATIONS &&
           draw_bytes(p) <= DRAW_MOST_BYTES;
}

#endif
