/* Every formula of docs/formulas.md is run on the host, and what it writes is all of its outputs. */
#include <math.h>

#include "../test.h"
#include "gemmepi.h"

enum { M = 5, N = 128, K = 3, MOST = 8, SPACE = M * 2 * N };

static gemmepi_context *host;
static float a[M * K], b[K * N];
static unsigned char memory[MOST + 1][SPACE * 8];
static double number = 0.75;

/* "-> loss [m, n/2] I64" of a row's third column, or "p" */
static int read_operand(const char *text, gemmepi_operand *operand, char name[32]) {
    char shape[32] = "", dtype[8] = "";
    memset(operand, 0, sizeof *operand);
    if (strncmp(text, "-> ", 3) == 0)
        operand->output = 1, text += 3;
    if (sscanf(text, "%31[a-z0-9_] [%31[^]]] %7[A-Z0-9]", name, shape, dtype) < 2 && !strstr(text, "[]"))
        shape[0] = 0;
    if (strstr(text, "[]"))
        sscanf(text, "%31[a-z0-9_] [] %7[A-Z0-9]", name, dtype);
    operand->name = name;
    operand->kind = strstr(text, "[]")             ? GEMMEPI_SCALAR
                    : shape[0] == 0                ? GEMMEPI_NUMBER
                    : strncmp(shape, "m,", 2) == 0 ? GEMMEPI_FULL
                    : shape[0] == 'm'              ? GEMMEPI_PER_ROW
                                                   : GEMMEPI_PER_COLUMN;
    if (strstr(shape, ", n/128")) {
        operand->kind = GEMMEPI_BLOCKED;
        operand->block_rows = shape[1] == '/' ? atoi(shape + 2) : 1;
        operand->block_columns = 128;
    }
    operand->width = operand->block_columns ? GEMMEPI_WIDTH_N
                     : strstr(shape, "n/")  ? GEMMEPI_WIDTH_HALF
                     : strstr(shape, "2n")  ? GEMMEPI_WIDTH_DOUBLE
                                            : GEMMEPI_WIDTH_N;
    if (shape[0] && strspn(shape, "0123456789") == strlen(shape)) /* a table that is read by index */
        operand->column_period = atoi(shape);
    operand->dtype = strcmp(dtype, "I64") == 0    ? GEMMEPI_I64
                     : strcmp(dtype, "I32") == 0  ? GEMMEPI_I32
                     : strcmp(dtype, "E4M3") == 0 ? GEMMEPI_E4M3
                                                  : GEMMEPI_DTYPE_DEFAULT;
    return dtype[0] == 0 || operand->dtype;
}

static void fill(unsigned char *to, gemmepi_dtype dtype, int is_output) {
    int i;
    if (is_output)
        memset(to, 0xff, SPACE * 8);
    for (i = 0; i < SPACE && !is_output; i++)
        if (dtype == GEMMEPI_I64)
            ((int64_t *)(void *)to)[i] = i % 2;
        else if (dtype == GEMMEPI_I32)
            ((int32_t *)(void *)to)[i] = i % 2;
        else
            ((float *)(void *)to)[i] = 0.5f + (float)(i % 7) / 8;
}

/* Bytes 0xff are no number in F32, which no formula of the page gives, and no place in I32. */
static int is_written(const unsigned char *from, int elements, int bytes) {
    int i, j;
    for (i = 0; i < elements; i++) {
        for (j = 0; j < bytes && from[i * bytes + j] == 0xff;)
            j++;
        if (j == bytes)
            return 0;
    }
    return 1;
}

static int parts, n; /* of the formula at hand */

static int elements_of(const gemmepi_operand *o) {
    int columns = o->width == GEMMEPI_WIDTH_HALF     ? n / parts
                  : o->width == GEMMEPI_WIDTH_DOUBLE ? parts * n
                                                     : n;
    return o->kind == GEMMEPI_FULL         ? M * columns
           : o->kind == GEMMEPI_PER_COLUMN ? columns
           : o->kind == GEMMEPI_PER_ROW    ? M
                                           : 1;
}

static void run_row(const char *formula, char *operands) {
    gemmepi_operand list[MOST];
    char names[MOST][32];
    void *pointers[MOST];
    gemmepi_matmul_desc desc = {0};
    gemmepi_matmul_args args = {0};
    const char *d = strstr(formula, "d = ");
    char *at;
    int i, is_part = (strstr(formula, "right(v)") && !strstr(formula, "pair(")) || strstr(formula, ", 3)"),
           has_d = d == formula || strstr(formula, "; d = ") != NULL;
    for (at = strtok(operands, "`"); at && desc.operand_count < MOST; at = strtok(NULL, "`")) {
        if (strspn(at, " ") == strlen(at) || strspn(at, " |\n") == strlen(at))
            continue;
        i = desc.operand_count++;
        CHECK(read_operand(at, &list[i], names[i]), "%s: \"%s\" is no operand", formula, at);
        pointers[i] = list[i].kind == GEMMEPI_NUMBER ? (void *)&number : (void *)memory[i];
        fill(memory[i], list[i].dtype, list[i].output);
    }
    fill(memory[MOST], GEMMEPI_F32, 1);
    parts = strstr(formula, ", 3)") ? 3 : 2, n = N / parts * parts;
    desc.m = M, desc.n = n, desc.k = K;
    desc.formula = formula;
    desc.operands = list;
    args.a = a, args.b = b, args.operands = pointers;
    args.d = has_d ? memory[MOST] : NULL;
    CHECK(gemmepi_matmul(host, &desc, &args, NULL) == GEMMEPI_OK, "%s: %s", formula, gemmepi_last_error());
    if (has_d)
        CHECK(is_written(memory[MOST], is_part ? M * n / parts : M * n, 4), "%s: d", formula);
    for (i = 0; i < desc.operand_count; i++)
        if (list[i].output)
            CHECK(is_written(memory[i], elements_of(&list[i]), list[i].dtype == GEMMEPI_E4M3 ? 1 : 4),
                  "%s: %s", formula, list[i].name);
}

static void every_formula_of_the_page_runs(void) {
    FILE *file = fopen("docs/formulas.md", "r");
    char line[1024];
    int rows = 0, i;
    if (!file)
        SKIP("there is no docs/formulas.md here");
    for (i = 0; i < M * K; i++)
        a[i] = (float)(i % 5) / 4 - 0.5f;
    for (i = 0; i < K * N; i++)
        b[i] = (float)(i % 11) / 8 - 0.5f;
    while (fgets(line, sizeof line, file)) {
        char *first = strstr(line, "| `"), *end;
        if (line[0] != '|' || !first || !(end = strstr(first + 3, "` |")))
            continue;
        *end = 0;
        if (!strstr(first + 3, " = ")) /* a table of something else */
            continue;
        rows++;
        run_row(first + 3, end + 3);
    }
    fclose(file);
    CHECK(rows >= 20, "%d formulas", rows);
}

int main(void) {
    gemmepi_config config = {0};
    config.device = GEMMEPI_DEVICE_HOST;
    if (gemmepi_create(&config, &host) != GEMMEPI_OK) {
        printf("the host does not open: %s\n", gemmepi_last_error());
        return 1;
    }
    RUN(every_formula_of_the_page_runs);
    gemmepi_destroy(host);
    return test_finish();
}
