/* Products with formulas, on the host and on a GPU, against plain loops in double: a function for each formula. Each is run row-major and
   column-major (the transposed problem on the same memory, which must come out the same to the byte), dense and spaced out, of several
   sizes. */
#include <math.h>

#include "grid.h"

/* >>memory of the host, as runs take it: on a GPU copied there and back */

enum { MOST_MOVED = 48, ARENA = 1 << 24 };

static struct {
    void *host;
    char *device;
    size_t bytes;
} moved[MOST_MOVED];
static int moved_count;
static size_t moved_bytes;

/* What stands for memory of the host in a run. */
static void *there(const void *host, size_t bytes) {
    void *memory;
    int i;
    memcpy(&memory, &host, sizeof memory);
    if (here->is_host || !host || !bytes)
        return memory;
    for (i = 0; i < moved_count; i++)
        if (moved[i].host == memory)
            return moved[i].device;
    CHECK(moved_count < MOST_MOVED && moved_bytes + bytes + 256 < ARENA &&
              test_device_reserve(here, &here->arena, &here->arena_size, ARENA),
          "too much memory for a run");
    moved[moved_count].host = memory;
    moved[moved_count].device = (char *)here->arena + moved_bytes;
    moved[moved_count].bytes = bytes;
    moved_bytes += (bytes + 511) / 256 * 256;
    CHECK(gemmepi_upload(here->context, moved[moved_count].device, host, bytes, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    return moved[moved_count++].device;
}

/* Ends a run, for which it returns the status. */
static gemmepi_status back(gemmepi_status status) {
    int i;
    for (i = 0; i < moved_count && !status; i++)
        CHECK(gemmepi_download(here->context, moved[i].host, moved[i].device, moved[i].bytes, NULL) ==
                  GEMMEPI_OK,
              "%s", gemmepi_last_error());
    moved_count = 0;
    moved_bytes = 0;
    return status;
}

/* >>tensors: what the words of a case say of operands, stored and as numbers */

enum { MOST_OPERANDS = 10, SENTINEL = 0xa5 };

typedef struct table {
    gemmepi_operand o; /* of the row-major problem */
    char name[32];
    int rows, columns, items; /* one where it does not change */
    int parts;                /* of what is wider, 2 of halves */
    int64_t ld, stride;
    unsigned char *memory, *before;
    size_t bytes;
    double *expected; /* [items, rows, columns] */
    float scale, amax;
    double number, largest;
} table;

typedef struct world {
    const char *formula;
    int m, n, k, batch, item, has_c, has_d, exchanged;
    gemmepi_dtype dtype;
    table a, b, c, d, operands[MOST_OPERANDS];
    int count;
    double *v; /* [batch, m, n] */
    double alpha, beta;
    float scales_c[3]; /* of its items */
    rng random;
    unsigned flags;
} world;

typedef struct formula_case {
    const char *formula, *operands;
    char d; /* as wide as n, half of it, 2 n, a third or 3 n: 'n', 'h', 'd', 't', 'T'; '-': not there */
    int is_of_floats; /* operands name types that do not go with F64 */
    int multiple;     /* of n */
    void (*oracle)(world *w);
} formula_case;

static size_t size_of(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_I64 ? 8 : gemmepi_dtype_size(dtype);
}

static int64_t place_in(const table *t, int item, int i, int j) {
    return (t->items > 1 ? item * t->stride : 0) + (i % t->rows) * t->ld + j % t->columns;
}

static double number_at(const table *t, int item, int i, int j) {
    const unsigned char *at = t->memory + (size_t)place_in(t, item, i, j) * size_of(t->o.dtype);
    int64_t whole;
    double x;
    if (t->o.kind == GEMMEPI_NUMBER)
        return t->number;
    if (t->o.dtype == GEMMEPI_I64) {
        memcpy(&whole, at, sizeof whole);
        return (double)whole;
    }
    x = oracle_decode(t->o.dtype, at);
    return t->o.scale.mode ? x * t->scale : x;
}

static double as_stored(gemmepi_dtype dtype, double x) {
    unsigned char bytes[8];
    oracle_encode(dtype, bytes, x);
    return oracle_decode(dtype, bytes);
}

static double random_in(rng *r) {
    return (rng_below(r, 257) - 128) / 64.0;
}

static void fill_tensor(world *w, table *t) {
    int item, i, j;
    memset(t->memory, SENTINEL, t->bytes);
    for (item = 0; item < t->items; item++)
        for (i = 0; i < t->rows; i++)
            for (j = 0; j < t->columns; j++) {
                unsigned char *at = t->memory + (size_t)place_in(t, item, i, j) * size_of(t->o.dtype);
                int64_t whole = rng_below(&w->random, 6);
                if (t->o.dtype == GEMMEPI_I64)
                    memcpy(at, &whole, sizeof whole);
                else
                    oracle_encode(t->o.dtype, at,
                                  t->o.dtype == GEMMEPI_I32 ? (double)whole : random_in(&w->random));
            }
}

/* Rows, columns and memory, with gaps where spaced. */
static void make_tensor(world *w, table *t, int rows, int columns, int items, int spaced) {
    t->rows = rows;
    t->columns = columns;
    t->items = items;
    t->ld = columns + (spaced && rows > 1 ? 3 : 0);
    t->stride = t->ld * rows + (spaced ? 5 : 0);
    t->bytes = (size_t)(t->stride * items + t->ld) * 8;
    t->memory = (unsigned char *)malloc(t->bytes);
    t->before = (unsigned char *)malloc(t->bytes);
    t->expected = (double *)calloc((size_t)(items * rows * columns + 1), sizeof(double));
    fill_tensor(w, t);
}

static void free_tensor(table *t) {
    free(t->memory);
    free(t->before);
    free(t->expected);
}

/* ":half" and so on */
static void read_word(table *t, const char *word, int *is_shared) {
    static const struct {
        const char *name;
        int dtype;
    } types[] = {{"f32", GEMMEPI_F32},   {"f16", GEMMEPI_F16}, {"bf16", GEMMEPI_BF16}, {"e4m3", GEMMEPI_E4M3},
                 {"e5m2", GEMMEPI_E5M2}, {"i8", GEMMEPI_I8},   {"i32", GEMMEPI_I32},   {"i64", GEMMEPI_I64}};
    static const char *const kinds[] = {"", "number", "scalar", "row", "column", "full", "blocked"};
    size_t i;
    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(word, types[i].name) == 0)
            t->o.dtype = (gemmepi_dtype)types[i].dtype;
    for (i = 1; i < 7; i++)
        if (strcmp(word, kinds[i]) == 0)
            t->o.kind = (gemmepi_operand_kind)i;
    t->o.width = strcmp(word, "half") == 0     ? GEMMEPI_WIDTH_HALF
                 : strcmp(word, "double") == 0 ? GEMMEPI_WIDTH_DOUBLE
                                               : t->o.width;
    t->o.output |= strcmp(word, "out") == 0;
    t->o.accumulate |= strcmp(word, "add") == 0;
    t->o.amax |= strcmp(word, "amax") == 0;
    *is_shared |= strcmp(word, "shared") == 0;
    if (strcmp(word, "scaled") == 0)
        t->o.scale.mode = GEMMEPI_SCALE_TENSOR;
    if (strncmp(word, "of=", 3) == 0)
        t->parts = atoi(word + 3);
    if (strncmp(word, "rows=", 5) == 0)
        t->o.row_period = atoi(word + 5);
    if (strncmp(word, "columns=", 8) == 0)
        t->o.column_period = atoi(word + 8);
    if (strncmp(word, "blocks=", 7) == 0)
        t->o.block_rows = atoi(word + 7), t->o.block_columns = atoi(strchr(word, 'x') + 1);
}

/* Whether the formula has it as a reduction's or an argmax's result. */
static gemmepi_dtype default_dtype(const world *w, const table *t) {
    char assigned[48];
    const char *at;
    snprintf(assigned, sizeof assigned, "%s = ", t->name);
    at = strstr(w->formula, assigned);
    if (!t->o.output || t->o.kind == GEMMEPI_FULL || !at)
        return gemmepi_dtype_size(w->d.o.dtype) == 1 && w->d.o.dtype != GEMMEPI_I8 ? GEMMEPI_BF16
                                                                                   : w->d.o.dtype;
    if (strstr(at, "argmax") == at + strlen(assigned) + 4 ||
        strstr(at, "argmax") == at + strlen(assigned) + 7)
        return GEMMEPI_I32;
    return w->dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
}

/* "name:kind:word name:kind ..." */
static void make_operands(world *w, const char *words, int spaced) {
    char copy[512], *at = copy, *word;
    snprintf(copy, sizeof copy, "%s", words);
    while (*at) {
        table *t = &w->operands[w->count++];
        char *end = strchr(at, ' ');
        int shared = 0, columns, rows, parts;
        if (end)
            *end = 0;
        word = strchr(at, ':');
        *word++ = 0;
        snprintf(t->name, sizeof t->name, "%.31s", at);
        while (word) {
            char *next = strchr(word, ':');
            if (next)
                *next++ = 0;
            read_word(t, word, &shared);
            word = next;
        }
        t->o.name = t->name;
        parts = t->parts ? t->parts : 2;
        columns = t->o.width == GEMMEPI_WIDTH_HALF     ? w->n / parts
                  : t->o.width == GEMMEPI_WIDTH_DOUBLE ? parts * w->n
                                                       : w->n;
        columns = t->o.kind >= GEMMEPI_PER_COLUMN ? columns : 1;
        rows = t->o.kind >= GEMMEPI_FULL || t->o.kind == GEMMEPI_PER_ROW ? w->m : 1;
        if (t->o.kind == GEMMEPI_BLOCKED) {
            rows = (rows + (int)t->o.block_rows - 1) / (int)t->o.block_rows;
            columns = (columns + (int)t->o.block_columns - 1) / (int)t->o.block_columns;
        }
        rows = t->o.row_period ? (int)t->o.row_period : rows;
        columns = t->o.column_period ? (int)t->o.column_period : columns;
        if (!t->o.dtype) {
            t->o.dtype = default_dtype(w, t);
            make_tensor(w, t, rows, columns, shared ? 1 : w->batch, spaced);
        } else {
            make_tensor(w, t, rows, columns, shared ? 1 : w->batch, spaced);
        }
        if (t->o.kind == GEMMEPI_PER_ROW) /* one line in memory */
            t->ld = 1, t->stride = rows + (spaced ? 2 : 0), fill_tensor(w, t);
        t->scale = 0.5f;
        t->number = 1.25;
        t->largest = 0;
        at = end ? end + 1 : at + strlen(at);
        if (!end)
            break;
    }
}

/* >>what oracles read and say */

static table *find(world *w, const char *name) {
    int i;
    for (i = 0; i < w->count; i++)
        if (strcmp(w->operands[i].name, name) == 0)
            return &w->operands[i];
    return &w->d;
}

static double V(const world *w, int i, int j) {
    return w->v[((size_t)w->item * (size_t)w->m + (size_t)i) * (size_t)w->n + (size_t)j];
}

static double in(world *w, const char *name, int i, int j) {
    const table *t = find(w, name);
    if (t->o.kind == GEMMEPI_BLOCKED)
        return number_at(t, w->item, i / (int)t->o.block_rows, j / (int)t->o.block_columns);
    return number_at(t, w->item, t->rows == 1 ? 0 : i, t->columns == 1 ? 0 : j);
}

static double *wanted(world *w, const char *name, int i, int j) {
    table *t = find(w, name);
    int item = t->items == 1 ? 0 : w->item;
    if (t->o.kind == GEMMEPI_BLOCKED)
        i /= (int)t->o.block_rows, j /= (int)t->o.block_columns;
    return &t->expected[(item * t->rows + (t->rows == 1 ? 0 : i)) * t->columns + (t->columns == 1 ? 0 : j)];
}

static void out(world *w, const char *name, int i, int j, double x) {
    *wanted(w, name, i, j) = x;
}

static void add(world *w, const char *name, int i, int j, double x) {
    *wanted(w, name, i, j) += x;
}

#define ITEMS   for (w->item = 0; w->item < w->batch; w->item++)
#define ROWS    for (i = 0; i < w->m; i++)
#define COLUMNS for (j = 0; j < w->n; j++)
#define EACH  \
    int i, j; \
    ITEMS ROWS COLUMNS
#define HALVES              \
    int i, j, h = w->n / 2; \
    ITEMS ROWS for (j = 0; j < h; j++)

static double sigmoid_of(double x) {
    return 1 / (1 + exp(-x));
}
static double silu_of(double x) {
    return x * sigmoid_of(x);
}
static double gelu_of(double x) {
    return 0.5 * x * (1 + erf(x * sqrt(0.5)));
}

/* >>formulas: their loops */

static void block(world *w) {
    EACH {
        double d = silu_of(V(w, i, j) + in(w, "bias", i, j)) * in(w, "up", i, j) + in(w, "residual", i, j);
        out(w, "d", i, j, d), add(w, "ss", i, j, d * d);
    }
}
static void swiglu(world *w) {
    HALVES out(w, "d", i, j, V(w, i, j) * silu_of(V(w, i, j + h)));
}
static void swiglu_backward(world *w) {
    EACH {
        double a = in(w, "p", i, j), b = in(w, "p", i, j + w->n), s = sigmoid_of(b);
        out(w, "d", i, j, V(w, i, j) * silu_of(b));
        out(w, "d", i, j + w->n, V(w, i, j) * a * (s * (1 + b * (1 - s))));
    }
}
static void rope(world *w) { /* heads of 8 columns */
    HALVES {
        int head = j / 4 * 8, at = j % 4;
        double x = V(w, i, head + at), y = V(w, i, head + 4 + at), c = in(w, "c", i, j), s = in(w, "s", i, j);
        out(w, "d", i, head + at, x * c - y * s), out(w, "d", i, head + 4 + at, y * c + x * s);
    }
}
static void rope_of_pairs(world *w) {
    HALVES {
        double x = V(w, i, 2 * j), y = V(w, i, 2 * j + 1), c = in(w, "c", i, j), s = in(w, "s", i, j);
        (void)h;
        out(w, "d", i, 2 * j, x * c - y * s), out(w, "d", i, 2 * j + 1, y * c + x * s);
    }
}
static void rope_from_position(world *w) {
    HALVES {
        double t = i * exp2(-0.5 * j), x = V(w, i, j), y = V(w, i, j + h);
        out(w, "d", i, j, x * cos(t) - y * sin(t)), out(w, "d", i, j + h, y * cos(t) + x * sin(t));
    }
}

static void dropout(world *w) { /* p is 1.25 / 5 */
    EACH {
        int column = w->exchanged ? i : j, row = w->exchanged ? j : i; /* as the caller counts */
        double u = philox_uniform((uint64_t)in(w, "seed", 0, 0), (uint32_t)column / 4, (uint32_t)row,
                                  (uint32_t)w->item, 7, column % 4);
        out(w, "d", i, j, (u >= 0.25 ? V(w, i, j) / 0.75 : 0) + in(w, "residual", i, j));
    }
}

static void rounded_by_chance(world *w) {
    EACH {
        int column = w->exchanged ? i : j, row = w->exchanged ? j : i; /* as the caller counts */
        uint64_t seed = (uint64_t)in(w, "seed", 0, 0);
        uint32_t c = (uint32_t)column / 4, r = (uint32_t)row, item = (uint32_t)w->item;
        double x = V(w, i, j);
        out(w, "d", i, j,
            oracle_by_chance(w->dtype, x, philox_uniform(seed, c, r, item, 0xffffffffu, column % 4)));
        out(w, "o", i, j,
            oracle_by_chance(GEMMEPI_BF16, 3 * x, philox_uniform(seed, c, r, item, 7, column % 4)));
        out(w, "h", i, j, oracle_by_chance(GEMMEPI_F16, -x, philox_uniform(seed, c, r, item, 0, column % 4)));
        add(w, "ss", i, j, x);
    }
}
static void half_by_chance(world *w) {
    HALVES {
        int column = w->exchanged ? i : j, row = w->exchanged ? j : i;
        double u = philox_uniform((uint64_t)in(w, "seed", 0, 0), (uint32_t)column / 4, (uint32_t)row,
                                  (uint32_t)w->item, 0xffffffffu, column % 4);
        out(w, "d", i, j, oracle_by_chance(w->dtype, V(w, i, j) - V(w, i, j + h), u));
    }
}
static void layer_scale(world *w) {
    EACH out(w, "d", i, j, in(w, "residual", i, j) + in(w, "gamma", i, j) * V(w, i, j));
}
static void soft_cap(world *w) {
    EACH out(w, "d", i, j, 1.25 * tanh(V(w, i, j) / 1.25));
}
static void squared_relu_gate(world *w) {
    HALVES {
        double x = V(w, i, j) > 0 ? V(w, i, j) : 0;
        out(w, "d", i, j, x * x * V(w, i, j + h));
    }
}
static void swish(world *w) {
    EACH out(w, "d", i, j, V(w, i, j) * sigmoid_of(in(w, "beta", i, j) * V(w, i, j)));
}
static void gelu_kept(world *w) {
    EACH {
        double x = V(w, i, j) + in(w, "bias", i, j);
        out(w, "pre", i, j, x), out(w, "d", i, j, gelu_of(x));
    }
}
static double lse_of_row(world *w, int i) {
    double most = -HUGE_VAL, sum = 0;
    int j;
    COLUMNS most = V(w, i, j) > most ? V(w, i, j) : most;
    COLUMNS sum += exp(V(w, i, j) - most);
    return most + log(sum);
}
static void cross_entropy(world *w) {
    EACH {
        out(w, "lse", i, 0, lse_of_row(w, i));
        add(w, "hit", i, 0, j == in(w, "label", i, 0) ? V(w, i, j) : 0);
    }
}
static void cross_entropy_backward(world *w) {
    EACH out(w, "d", i, j, exp(V(w, i, j) - in(w, "lse", i, 0)) - (j == in(w, "label", i, 0)));
}
static double squared_distance(world *w, int i, int j) {
    return in(w, "xx", i, j) + in(w, "yy", i, j) - 2 * V(w, i, j);
}
static void distances(world *w) {
    EACH {
        out(w, "d", i, j, squared_distance(w, i, j));
        if (j == 0 || -squared_distance(w, i, j) > *wanted(w, "nearest", i, 0))
            out(w, "nearest", i, 0, -squared_distance(w, i, j));
    }
}
static void rbf(world *w) {
    EACH {
        double x = squared_distance(w, i, j);
        out(w, "d", i, j, exp(-1.25 * (x > 0 ? x : 0)));
    }
}
static void cosine(world *w) {
    EACH out(w, "d", i, j, V(w, i, j) / sqrt((3 + in(w, "xx", i, j)) * (3 + in(w, "yy", i, j))));
}
static void focal(world *w) {
    EACH {
        double p = sigmoid_of(V(w, i, j)), q = in(w, "target", i, j) > 2 ? p : 1 - p;
        add(w, "loss", 0, 0, -(1 - q) * (1 - q) * log(q));
    }
}
static void argmax(world *w) {
    int i, j;
    ITEMS ROWS {
        int best = 0;
        COLUMNS best = V(w, i, j) > V(w, i, best) ? j : best;
        out(w, "best", i, 0, best), out(w, "top", i, 0, V(w, i, best));
    }
}
static void smallest(world *w) {
    EACH {
        double x = V(w, i, j), y = x - in(w, "r", i, j);
        if (j == 0 || x < *wanted(w, "low", i, 0))
            out(w, "low", i, 0, x);
        if (i == 0 || y < *wanted(w, "least", 0, j))
            out(w, "least", 0, j, y);
        out(w, "d", i, j, x);
    }
}
static void argmax_by_equality(world *w) {
    EACH {
        add(w, "place", i, 0, V(w, i, j) == in(w, "top", i, 0) ? j : 0);
        out(w, "d", i, j, V(w, i, j) >= in(w, "top", i, 0));
    }
}
static void norm(world *w) {
    EACH out(w, "d", i, j, V(w, i, j) * in(w, "rstd", i, j) * in(w, "gain", i, j));
}
static void columns(world *w) {
    int i, j;
    ITEMS COLUMNS {
        int best = 0;
        double sum = 0;
        ROWS best = V(w, i, j) > V(w, best, j) ? i : best;
        ROWS sum += exp(V(w, i, j) - V(w, best, j));
        out(w, "lse", 0, j, V(w, best, j) + log(sum));
        out(w, "best", 0, j, best);
        ROWS add(w, "s", 0, j, V(w, i, j) * in(w, "p", i, j));
    }
}
static void all(world *w) {
    int first = 1;
    EACH {
        add(w, "sum", 0, 0, V(w, i, j));
        if (first || V(w, i, j) > *wanted(w, "most", 0, 0))
            out(w, "most", 0, 0, V(w, i, j));
        first = 0;
        add(w, "each", 0, j, V(w, i, j));
    }
}
static void siren(world *w) {
    EACH out(w, "d", i, j, sin(30 * (V(w, i, j) + in(w, "bias", i, j))));
}
static void alibi(world *w) {
    EACH out(w, "d", i, j, j > i ? -30 : V(w, i, j) * 0.125 - in(w, "slope", 0, 0) * (i - j));
}
static void huber(world *w) {
    EACH {
        double e = V(w, i, j) - in(w, "target", i, j), a = fabs(e);
        add(w, "loss", i, 0, a < 1 ? 0.5 * e * e : a - 0.5);
        out(w, "d", i, j, e < -1 ? -1 : e > 1 ? 1 : e);
    }
}
static void accumulated(world *w) {
    int i, j;
    for (j = 0; j < w->n; j++)
        out(w, "db", 0, j, in(w, "db", 0, j));
    ITEMS ROWS COLUMNS add(w, "db", 0, j, V(w, i, j));
    ITEMS ROWS COLUMNS out(w, "d", i, j, V(w, i, j) + in(w, "h", i, j / 2));
}
static void quantised(world *w) {
    EACH {
        double x = V(w, i, j) * in(w, "q", i, j);
        out(w, "d", i, j, x), out(w, "e", i, j, 3 * x), out(w, "g", i, j, -x);
    }
}
static void groups(world *w) {
    HALVES {
        int g = j / 3 * 6 + j % 3;
        (void)h;
        out(w, "d", i, j, V(w, i, g) * V(w, i, g + 3) + in(w, "f", i, j) + g + 3 - w->n);
        add(w, "cs", 0, j, V(w, i, g)), add(w, "rs", i, 0, V(w, i, g) * V(w, i, g + 3));
    }
}
static void wide_groups(world *w) {
    HALVES {
        int at = j / 40 * 80 + j % 40, best = (int)*wanted(w, "rs", i, 0);
        (void)h;
        out(w, "d", i, j, V(w, i, at) - V(w, i, at + 40) * in(w, "g", i, j));
        out(w, "rs", i, 0, V(w, i, at) > V(w, i, best / 40 * 80 + best % 40) ? j : best);
    }
}
static void rope_of_wide_heads(world *w) {
    HALVES {
        int at = j / 32 * 64 + j % 32;
        double x = V(w, i, at) + in(w, "bias", 0, at), y = V(w, i, at + 32) + in(w, "bias", 0, at + 32);
        double c = in(w, "c", i, j), s = in(w, "s", i, j);
        (void)h;
        out(w, "d", i, at, x * c - y * s), out(w, "d", i, at + 32, y * c + x * s);
    }
}
static void two_widths(world *w) {
    EACH {
        double a = in(w, "p", i, 2 * j), b = in(w, "p", i, 2 * j + 1);
        out(w, "d", i, j, V(w, i, j) * a + b);
        add(w, "cs", 0, 2 * j, a * a), add(w, "cs", 0, 2 * j + 1, b * b);
    }
}
static void whole_numbers(world *w) {
    EACH out(w, "d", i, j, w->m + 2 * w->n + 3 * w->k + 4 * w->item + (i * 100 + j) / 128.0 + 0 * V(w, i, j));
}
static void blocks(world *w) {
    EACH out(w, "d", i, j,
             V(w, i, j) * in(w, "s", i, j) - in(w, "t", i, j) * in(w, "u", i, j) +
                 (in(w, "label", i, j) == j ? 1 : in(w, "one", i, j)));
}
static void blocks_of_halves(world *w) {
    HALVES out(w, "d", i, j,
               V(w, i, j) * in(w, "s", i, j) + V(w, i, j + h) * in(w, "s", i, j + h) * in(w, "g", i, j));
}
static void blocks_of_pairs(world *w) {
    HALVES out(w, "d", i, j,
               V(w, i, 2 * j) * in(w, "s", i, 2 * j) + V(w, i, 2 * j + 1) * in(w, "s", i, 2 * j + 1));
}
static void wide_blocks(world *w) {
    EACH {
        int half = w->n;
        out(w, "d", i, j, V(w, i, j) * in(w, "s", i, j));
        out(w, "d", i, j + half, in(w, "s", i, j + half) - in(w, "g", i, j));
    }
}
static void large_blocks(world *w) {
    EACH {
        double d = V(w, i, j) * in(w, "s", i, j) + in(w, "r", i, j);
        out(w, "d", i, j, d), add(w, "ss", i, j, d);
    }
}
/* The largest so far of those of a group whose first column is that. */
static void raise(world *w, const char *name, int i, int j, int first, double x) {
    if (j == first || x > *wanted(w, name, i, j))
        out(w, name, i, j, x);
}
static void sums_of_groups(world *w) {
    EACH {
        double v = V(w, i, j);
        out(w, "d", i, j, v);
        if (j % 8 == 0)
            out(w, "ss", i, j, in(w, "ss", i, j)); /* which is accumulated */
        add(w, "ss", i, j, v * v), add(w, "mean", i, j, v / 8);
        raise(w, "top", i, j, j / 16 * 16, v), raise(w, "low", i, j, j / 16 * 16, -v);
    }
    ITEMS ROWS for (j = 0; j < w->n; j += 16) * wanted(w, "low", i, j) *= -1;
}
static void groups_of_half(world *w) {
    HALVES {
        double d = V(w, i, j) * V(w, i, j + h);
        out(w, "d", i, j, d), raise(w, "most", i, j, j / 24 * 24, fabs(d));
        add(w, "s", i, j, V(w, i, j)), add(w, "s", i, j + h, V(w, i, j + h)),
            add(w, "t", i, j, in(w, "r", i, j));
    }
}
static void groups_of_heads(world *w) { /* of 160 columns */
    HALVES {
        int head = j / 80 * 160, at = j % 80;
        double x = V(w, i, head + at), y = V(w, i, head + 80 + at);
        out(w, "d", i, j, x - y), add(w, "s", i, j, x * y);
        add(w, "t", i, head + at, x), add(w, "t", i, head + 80 + at, y);
    }
}
static void only_operands(world *w) {
    EACH out(w, "d", i, j, in(w, "x", i, j) > 0 ? in(w, "x", i, j) : 0.5);
}

#define THIRDS              \
    int i, j, t = w->n / 3; \
    ITEMS ROWS for (j = 0; j < t; j++)
static void gru(world *w) { /* gates z and r, and what is new */
    THIRDS {
        double z = sigmoid_of(V(w, i, j)), r = sigmoid_of(V(w, i, j + t)), h = in(w, "h", i, j);
        out(w, "d", i, j, z * h + (1 - z) * tanh(V(w, i, j + 2 * t) + r * in(w, "u", i, j)));
    }
}
static void
min_gru_backward(world *w) { /* of z * h + (1 - z) * x by v, which is z, nothing and x, and by h */
    EACH {
        double p = in(w, "p", i, j), x = in(w, "p", i, j + 2 * w->n), z = sigmoid_of(p), dy = V(w, i, j);
        out(w, "d", i, j, dy * (in(w, "h", i, j) - x) * z * (1 - z));
        add(w, "db", 0, j, dy * (in(w, "h", i, j) - x) * z * (1 - z));
        out(w, "d", i, j + w->n, 0), out(w, "d", i, j + 2 * w->n, dy * (1 - z));
        out(w, "dh", i, j, dy * z), add(w, "dg", 0, j, dy * z), add(w, "db", 0, j + 2 * w->n, dy * (1 - z));
    }
}
static void qkv(world *w) {
    THIRDS {
        out(w, "q", i, j, 0.125 * V(w, i, j)), out(w, "key", i, j, V(w, i, j + t) + in(w, "bias", i, j + t));
        out(w, "d", i, j, V(w, i, j + 2 * t) * (j + 2 * t) + w->n);
    }
}
static void quarters(world *w) {
    int i, j, q = w->n / 4;
    ITEMS ROWS {
        int best = 0;
        for (j = 0; j < q; j++) {
            best = V(w, i, j + 3 * q) > V(w, i, best + 3 * q) ? j : best;
            add(w, "cs", 0, j, V(w, i, j) * V(w, i, j + q));
            add(w, "al", 0, 0, V(w, i, j + 2 * q)), add(w, "sum", i, 0, V(w, i, j + 2 * q));
        }
        for (j = 0; j < w->n; j++)
            add(w, "each", 0, j, V(w, i, j) * V(w, i, j));
        out(w, "best", i, 0, best);
    }
}
static void many_parts(world *w) {
    int i, j, p = w->n / 16;
    ITEMS ROWS for (j = 0; j < p; j++) out(w, "last", i, j, V(w, i, j + 15 * p) - V(w, i, j));
}

/* Of one line, or of a row: 0 where there is no such element. */
static double indexed(world *w, const char *name, int i, double index) {
    const table *t = find(w, name);
    int is_row = t->o.kind == GEMMEPI_PER_ROW;
    if (index < 0 || index >= (is_row ? t->rows : t->columns))
        return 0;
    return number_at(t, w->item, is_row ? (int)index : t->rows == 1 ? 0 : i, is_row ? 0 : (int)index);
}
static void by_index(world *w) {
    EACH out(w, "d", i, j,
             V(w, i, j) * indexed(w, "w", i, in(w, "label", i, j)) +
                 indexed(w, "codes", i, in(w, "q", i, j)) - indexed(w, "t", i, j) * indexed(w, "u", i, 2) +
                 indexed(w, "t", i, -1));
}
static void halves_by_index(world *w) {
    HALVES out(w, "d", i, j,
               V(w, i, j) * indexed(w, "t", i, j) + V(w, i, j + h) * indexed(w, "t", i, j + h) +
                   indexed(w, "u", i, i) * in(w, "u", i, 0));
}
static void rows_by_index(world *w) {
    EACH {
        out(w, "d", i, j, V(w, i, j) - indexed(w, "logits", i, i) * indexed(w, "p", i, j));
        add(w, "hit", i, j, indexed(w, "logits", i, in(w, "label", i, j)) + V(w, i, j));
    }
}

static const formula_case cases[] = {
    {"d = v * w[label] + codes[q] - t[column] * u[2] + t[-1]",
     "w:column:columns=5:shared label:row:i64 codes:column:columns=16:i8:scaled q:full:i32 t:row u:row:rows=3",
     'n', 1, 1, by_index},
    {"d = left(v) * t[left(column)] + right(v) * t[right(column)] + u[row] * u", "t:column u:row", 'h', 0, 2,
     halves_by_index},
    {"hit = row_sum(logits[label] + v); d = v - logits[row] * p[column]",
     "logits:full label:row:i64 hit:row:out p:full:rows=2:columns=11", 'n', 0, 1, rows_by_index},
    {"z = sigmoid(part(v, 0, 3)); d = z * h + (1 - z) * tanh(part(v, 2, 3) + sigmoid(part(v, 1, 3)) * u)",
     "h:full:half:of=3 u:column:half:of=3:shared", 't', 0, 3, gru},
    {"z = sigmoid(part(p, 0, 3)); dh = v * z; d = parts(v * (h - part(p, 2, 3)) * z * (1 - z), 0, v * (1 - z)); dg = "
     "column_sum(dh); db = column_sum(d)",
     "p:full:double:of=3 h:full dh:full:out dg:column:out:shared db:column:double:of=3:out:shared", 'T', 0, 1,
     min_gru_backward},
    {"q = 0.125 * part(v, 0, 3); key = part(v + bias, 1, 3); d = part(v, 2, 3) * part(column, 2, 3) + columns",
     "q:full:half:of=3:out key:full:half:of=3:out bias:column:shared", 't', 0, 3, qkv},
    {"cs = column_sum(part(v, 0, 4) * part(v, 1, 4)); sum = row_sum(part(v, 2, 4)); best = row_argmax(part(v, 3, "
     "4)); al = all_sum(part(v, 2, 4)); each = column_sum(v * v)",
     "cs:column:half:of=4:out:shared sum:row:out best:row:out al:scalar:out:shared each:column:out:shared",
     '-', 0, 4, quarters},
    {"last = part(v, 15, 16) - part(v, 0, 16)", "last:full:half:of=16:out", '-', 0, 16, many_parts},
    {"d = silu(v + bias) * up + residual; ss = row_sum(d * d)",
     "bias:column:shared up:full residual:full ss:row:out", 'n', 0, 1, block},
    {"d = left(v) * silu(right(v))", "", 'h', 0, 2, swiglu},
    {"d = pair(v * silu(right(p)), v * left(p) * d_silu(right(p)))", "p:full:double", 'd', 0, 1,
     swiglu_backward},
    {"x = left(v, 8); y = right(v, 8); d = pair(x * c - y * s, y * c + x * s, 8)",
     "c:full:half:rows=3:columns=4:shared s:full:half:rows=3:columns=4:shared", 'n', 0, 8, rope},
    {"d = interleave(even(v) * c - odd(v) * s, odd(v) * c + even(v) * s)", "c:full:half s:full:half:rows=2",
     'n', 0, 2, rope_of_pairs},
    {"t = row * exp2(-0.5 * left(column)); c = cos(t); s = sin(t); d = pair(left(v) * c - right(v) * s, right(v) * c + "
     "left(v) * s)",
     "", 'n', 0, 2, rope_from_position},
    {"keep = uniform(seed, 7) >= p / 5; d = (keep ? v / (1 - p / 5) : 0) + residual",
     "seed:scalar:i64:shared p:number residual:full", 'n', 0, 1, dropout},
    {"d = stochastic(v, seed); o = stochastic(3 * v, seed, 7); h = stochastic(-v, seed, 0); ss = row_sum(d)",
     "seed:scalar:i64:shared o:full:bf16:out h:full:f16:out ss:row:out", 'n', 1, 1, rounded_by_chance},
    {"d = stochastic(left(v) - right(v), seed)", "seed:scalar:i64:shared", 'h', 0, 2, half_by_chance},
    {"d = residual + gamma * v", "residual:full gamma:column:shared", 'n', 0, 1, layer_scale},
    {"d = cap * tanh(v / cap)", "cap:number", 'n', 0, 1, soft_cap},
    {"d = squared_relu(left(v)) * right(v)", "", 'h', 0, 2, squared_relu_gate},
    {"d = v * sigmoid(beta * v)", "beta:scalar", 'n', 0, 1, swish},
    {"pre = v + bias; d = gelu_erf(pre)", "bias:column pre:full:out", 'n', 0, 1, gelu_kept},
    {"lse = row_logsumexp(v); hit = row_sum(column == label ? v : 0)",
     "label:row:i64 lse:row:out hit:row:out", '-', 0, 1, cross_entropy},
    {"d = exp(v - lse) - (column == label)", "label:row:i32 lse:row", 'n', 0, 1, cross_entropy_backward},
    {"d = xx + yy - 2 * v; nearest = row_max(-d)", "xx:row yy:column nearest:row:out", 'n', 0, 1, distances},
    {"d = exp(-g * max(xx + yy - 2 * v, 0))", "xx:row yy:column g:number", 'n', 0, 1, rbf},
    {"d = v * rsqrt((3 + xx) * (3 + yy))", "xx:row:shared yy:column", 'n', 0, 1, cosine},
    {"p = sigmoid(v); q = target > 2 ? p : 1 - p; loss = all_sum(-pow(1 - q, 2) * log(q))",
     "target:full:i64 loss:scalar:out:shared", '-', 0, 1, focal},
    {"low = row_min(v); least = column_min(v - r); d = v", "low:row:out least:column:out r:row", 'n', 0, 1,
     smallest},
    {"best = row_argmax(v); top = row_max(v)", "best:row:out top:row:out", '-', 0, 1, argmax},
    {"place = row_sum(v == top ? column : 0); d = v >= top", "top:row place:row:out", 'n', 0, 1,
     argmax_by_equality},
    {"d = v * rstd * gain", "rstd:row gain:column", 'n', 0, 1, norm},
    {"lse = column_logsumexp(v); best = column_argmax(v); s = column_sum(v * p)",
     "lse:column:out best:column:out s:column:out p:row", '-', 0, 1, columns},
    {"sum = all_sum(v); most = all_max(v); each = column_sum(v)",
     "sum:scalar:out:shared most:scalar:out:shared each:column:out:shared", '-', 0, 1, all},
    {"d = sin(30 * (v + bias))", "bias:column", 'n', 0, 1, siren},
    {"d = column > row ? -30 : v * 0.125 - slope * (row - column)", "slope:scalar", 'n', 0, 1, alibi},
    {"e = v - target; a = abs(e); loss = row_sum(a < 1 ? 0.5 * e * e : a - 0.5); d = clamp(e, -1, 1)",
     "target:full loss:row:out", 'n', 0, 1, huber},
    {"db = column_sum(v); d = v + interleave(h, h)", "db:column:out:add:shared h:full:half", 'n', 0, 2,
     accumulated},
    {"x = v * q; d = x; e = 3 * x; g = -x",
     "q:full:e4m3:scaled e:full:i8:out:scaled:amax g:full:e5m2:out:amax", 'n', 1, 1, quantised},
    {"d = left(v, 6) * right(v, 6) + f + right(column, 6) - columns; cs = column_sum(left(v, 6)); rs = "
     "row_sum(left(v, 6) * right(v, 6))",
     "f:full:half cs:column:half:out:shared rs:row:out", 'h', 0, 6, groups},
    {"d = left(v, 80) - right(v, 80) * g; rs = row_argmax(left(v, 80))", "g:column:half rs:row:out", 'h', 0,
     80, wide_groups},
    {"z = v + bias; x = left(z, 64); y = right(z, 64); d = pair(x * c - y * s, y * c + x * s, 64)",
     "bias:column c:full:half s:full:half", 'n', 0, 128, rope_of_wide_heads},
    {"d = v * even(p) + odd(p); cs = column_sum(p * p)", "p:full:double cs:column:double:out:shared", 'n', 0,
     1, two_widths},
    {"d = rows + 2 * columns + 3 * depth + 4 * item + (row * 100 + column) / 128 + 0 * v", "", 'n', 0, 1,
     whole_numbers},
    {"d = v * s - t * u + (column == label ? 1 : one)",
     "s:blocked:blocks=1x32 t:blocked:blocks=3x5:f16 u:blocked:blocks=16x1:shared label:blocked:blocks=2x8:i64 "
     "one:blocked:blocks=1x1",
     'n', 1, 1, blocks},
    {"d = left(v * s) + right(v * s) * g", "s:blocked:blocks=4x8 g:blocked:half:blocks=1x3", 'h', 0, 2,
     blocks_of_halves},
    {"d = left(v * s) + right(v * s) * g", "s:blocked:blocks=1x32 g:blocked:half:blocks=128x128", 'h', 0, 2,
     blocks_of_halves},
    {"d = even(v * s) + odd(v * s)", "s:blocked:blocks=2x64", 'h', 0, 2, blocks_of_pairs},
    {"d = even(v * s) + odd(v * s)", "s:blocked:blocks=1x4", 'h', 0, 2, blocks_of_pairs},
    {"d = pair(v * left(s), right(s) - g)", "s:blocked:double:blocks=1x64 g:blocked:blocks=2x32", 'd', 0, 1,
     wide_blocks},
    {"d = v * s + r; ss = row_sum(d)",
     "s:blocked:blocks=128x128:e4m3:scaled:shared r:blocked:blocks=7x64 ss:row:out", 'n', 1, 1, large_blocks},
    {"d = v; ss = row_sum(v * v, 8); mean = row_sum(v / 8, 8); top = row_max(v, 16); low = row_min(v, 16)",
     "ss:blocked:blocks=1x8:out:add mean:blocked:blocks=1x8:out top:blocked:blocks=1x16:out low:blocked:blocks=1x16:out",
     'n', 0, 16, sums_of_groups},
    {"d = left(v) * right(v); most = row_max(abs(left(v) * right(v)), 24); s = row_sum(v, 24); t = row_sum(r, 8)",
     "most:blocked:half:blocks=1x24:out s:blocked:blocks=1x24:out t:blocked:half:blocks=1x8:out r:row", 'h',
     0, 48, groups_of_half},
    {"x = left(v, 160); y = right(v, 160); d = x - y; s = row_sum(x * y, 40); t = row_sum(v, 80)",
     "s:blocked:half:blocks=1x40:out t:blocked:blocks=1x80:out", 'h', 0, 160, groups_of_heads},
    {"d = x > 0 ? x : 0.5", "x:full", 'n', 0, 1, only_operands},
};

/* >>running them */

/* alpha A B + beta C in double, plainly. */
static void work_out_v(world *w) {
    int item, i, j, s;
    w->v = (double *)malloc(sizeof(double) * (size_t)(w->batch * w->m * w->n + 1));
    for (item = 0; item < w->batch; item++)
        for (i = 0; i < w->m; i++)
            for (j = 0; j < w->n; j++) {
                double sum = 0;
                for (s = 0; s < w->k; s++)
                    sum += number_at(&w->a, item, i, s) * number_at(&w->b, item, s, j);
                w->v[(item * w->m + i) * w->n + j] =
                    w->alpha * sum + (w->has_c ? w->beta * number_at(&w->c, item, i, j) *
                                                     (w->c.o.scale.mode ? w->scales_c[item] : 1)
                                               : 0);
            }
}

/* Each name of rows the name of columns and the other way round. */
static void exchange_words(const char *text, char *to) {
    size_t length;
    for (; *text; text += length) {
        for (length = 0; text[length] >= 'a' && text[length] <= 'z';)
            length++;
        if (length == 3 && strncmp(text, "row", 3) == 0)
            to += sprintf(to, "column");
        else if (length == 4 && strncmp(text, "rows", 4) == 0)
            to += sprintf(to, "columns");
        else if (length == 6 && strncmp(text, "column", 6) == 0)
            to += sprintf(to, "row");
        else if (length == 7 && strncmp(text, "columns", 7) == 0)
            to += sprintf(to, "rows");
        else {
            length += length == 0;
            memcpy(to, text, length);
            to += length;
        }
    }
    *to = 0;
}

static void exchange_kind(gemmepi_operand *o) {
    int64_t period = o->row_period, block_rows = o->block_rows;
    o->kind = o->kind == GEMMEPI_PER_ROW      ? GEMMEPI_PER_COLUMN
              : o->kind == GEMMEPI_PER_COLUMN ? GEMMEPI_PER_ROW
                                              : o->kind;
    o->row_period = o->column_period;
    o->column_period = period;
    o->block_rows = o->block_columns;
    o->block_columns = block_rows;
}

static gemmepi_matrix matrix_of(const table *t) {
    gemmepi_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    matrix.dtype = t->o.dtype;
    matrix.ld = t->ld;
    matrix.batch_stride = t->items > 1 ? t->stride : 0;
    matrix.scale = t->o.scale;
    return matrix;
}

static int plans_inside, plans_by_pass; /* on a GPU */

static void count_plan(const gemmepi_plan *plan) {
    gemmepi_plan_details details;
    char text[4000];
    gemmepi_plan_explain(plan, text, sizeof text);
    CHECK(!strstr(text, "could not be built"), "%s", text);
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    *(strstr(details.kernel, "_formula") && !strstr(details.kernel, "formula_pass") ? &plans_inside
                                                                                    : &plans_by_pass) += 1;
}

/* Runs the world's problem, in one call or by a plan that knows as much of pointers as `spaced` says. */
static gemmepi_status run_world(world *w, int column_major, int by_plan, int spaced) {
    gemmepi_matmul_desc desc = {0};
    gemmepi_matmul_args args = {0};
    gemmepi_operand operands[MOST_OPERANDS];
    void *pointers[MOST_OPERANDS] = {0}, *amax[MOST_OPERANDS] = {0};
    const float *scales[MOST_OPERANDS] = {0};
    gemmepi_plan *plan;
    gemmepi_status status;
    char text[1024];
    int i;
    desc.m = column_major ? w->n : w->m;
    desc.n = column_major ? w->m : w->n;
    desc.k = w->k;
    desc.batch = w->batch;
    desc.alignment = spaced ? 1 : 16;
    desc.flags = w->flags;
    desc.order = column_major ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc.a = matrix_of(column_major ? &w->b : &w->a);
    desc.b = matrix_of(column_major ? &w->a : &w->b);
    if (w->has_c)
        desc.c = matrix_of(&w->c);
    if (w->has_d)
        desc.d = matrix_of(&w->d);
    desc.d.dtype = w->d.o.dtype;
    exchange_words(w->formula, text);
    desc.formula = column_major ? text : w->formula;
    for (i = 0; i < w->count; i++) {
        table *t = &w->operands[i];
        operands[i] = t->o;
        operands[i].ld = t->o.kind >= GEMMEPI_FULL ? t->ld : 0;
        operands[i].batch_stride = t->items > 1 && t->o.kind != GEMMEPI_NUMBER ? t->stride : 0;
        if (t->o.kind == GEMMEPI_NUMBER)
            operands[i].dtype = GEMMEPI_DTYPE_DEFAULT;
        if (column_major)
            exchange_kind(&operands[i]);
        pointers[i] = t->o.kind == GEMMEPI_NUMBER ? (void *)&t->number : there(t->memory, t->bytes);
        scales[i] = t->o.scale.mode ? (float *)there(&t->scale, sizeof t->scale) : NULL;
        amax[i] = t->o.amax ? there(&t->amax, sizeof t->amax) : NULL;
    }
    desc.operands = w->count ? operands : NULL;
    desc.operand_count = w->count;
    args.a = column_major ? there(w->b.memory, w->b.bytes) : there(w->a.memory, w->a.bytes);
    args.b = column_major ? there(w->a.memory, w->a.bytes) : there(w->b.memory, w->b.bytes);
    args.d = w->has_d ? there(w->d.memory, w->d.bytes) : NULL;
    args.operands = w->count ? pointers : NULL;
    args.operand_scales = w->count ? scales : NULL;
    args.operand_amax = w->count ? amax : NULL;
    args.alpha = &w->alpha;
    args.c = w->has_c ? there(w->c.memory, w->c.bytes) : NULL;
    args.beta = w->has_c ? &w->beta : NULL;
    args.scale_c = w->has_c && w->c.o.scale.mode ? (float *)there(w->scales_c, sizeof w->scales_c) : NULL;
    if (!by_plan)
        return back(gemmepi_matmul(here->context, &desc, &args, NULL));
    status = gemmepi_plan_matmul(here->context, &desc, &plan);
    if (status)
        return back(status);
    count_plan(plan);
    status = gemmepi_plan_prepare(plan, NULL);
    status = back(status ? status : gemmepi_run_matmul(plan, &args, NULL));
    gemmepi_plan_destroy(plan);
    return status;
}

/* How far a result may be off before it is rounded: v is exact in F32, from which a GPU goes on; short forms of activations are for
   results of 16 bits. */
static double slack_of(const world *w, double x) {
    double unit = here->is_host || w->dtype == GEMMEPI_F64 ? 1e-11 : w->dtype == GEMMEPI_F32 ? 1e-5 : 1e-3;
    return unit * (1 + fabs(x)) * (strstr(w->formula, "sin(30") && !here->is_host ? 10 : 1);
}

/* Holds an output to what was expected, and, with that taken back, what lies between its elements to what was there. */
static void check_output(world *w, table *t) {
    int item, i, j;
    double largest = 0;
    size_t size = size_of(t->o.dtype);
    for (item = 0; item < t->items; item++)
        for (i = 0; i < t->rows; i++)
            for (j = 0; j < t->columns; j++) {
                size_t at = (size_t)place_in(t, item, i, j) * size;
                double exact = t->expected[(item * t->rows + i) * t->columns + j];
                double x = t->o.scale.mode ? exact * t->scale : exact, slack = slack_of(w, x);
                double got = oracle_decode(t->o.dtype, t->memory + at);
                double low = as_stored(t->o.dtype, x - slack), high = as_stored(t->o.dtype, x + slack);
                CHECK((got >= low && got <= high) || (got != got && x != x),
                      "%s: %s[%d][%d][%d] is %.17g, expected %.17g (%d x %d x %d)", w->formula, t->o.name,
                      item, i, j, got, x, w->m, w->n, w->batch);
                largest = fabs(exact) > largest ? fabs(exact) : largest;
                memcpy(t->memory + at, t->before + at, size);
            }
    CHECK(memcmp(t->before, t->memory, t->bytes) == 0, "%s: bytes beside %s were written", w->formula,
          t->o.name);
    if (t->o.amax)
        CHECK(fabs(t->amax - largest) <= 1e-6 * largest, "%s: amax of %s is %g, not %g", w->formula,
              t->o.name, t->amax, largest);
}

static void start_world(world *w, const formula_case *c, int m, int n, int batch, gemmepi_dtype dtype,
                        int spaced) {
    int columns = c->d == 'h' ? n / 2 : c->d == 'd' ? 2 * n : c->d == 't' ? n / 3 : c->d == 'T' ? 3 * n : n;
    memset(w, 0, sizeof *w);
    w->formula = c->formula;
    w->random = rng_seeded((uint64_t)(m * 1000 + n));
    w->m = m, w->n = n, w->k = 5, w->batch = batch;
    w->has_d = c->d != '-';
    w->dtype = dtype;
    w->alpha = 0.25, w->beta = -0.5;
    w->has_c = batch > 1;
    w->a.o.dtype = w->b.o.dtype = w->c.o.dtype = w->d.o.dtype = dtype;
    if (dtype == GEMMEPI_BF16)
        w->c.o.dtype = GEMMEPI_E4M3, w->c.o.scale.mode = GEMMEPI_SCALE_TENSOR, w->c.o.scale.batch_stride = 1,
        w->c.scale = 1;
    w->scales_c[0] = 0.5, w->scales_c[1] = 2, w->scales_c[2] = 0.25;
    w->a.o.name = "a", w->b.o.name = "b", w->d.o.name = "d";
    make_tensor(w, &w->a, m, w->k, batch, spaced);
    make_tensor(w, &w->b, w->k, n, batch, spaced);
    make_tensor(w, &w->d, m, columns, batch, spaced);
    make_operands(w, c->operands, spaced);
    make_tensor(w, &w->c, m, n, batch, spaced);
    work_out_v(w);
}

static void end_world(world *w) {
    int i;
    free_tensor(&w->a);
    free_tensor(&w->b);
    free_tensor(&w->c);
    free_tensor(&w->d);
    for (i = 0; i < w->count; i++)
        free_tensor(&w->operands[i]);
    free(w->v);
}

static void keep_before(world *w) {
    int i;
    memcpy(w->d.before, w->d.memory, w->d.bytes);
    for (i = 0; i < w->count; i++)
        memcpy(w->operands[i].before, w->operands[i].memory, w->operands[i].bytes);
}

static void check_world(world *w) {
    int i;
    if (w->has_d)
        check_output(w, &w->d);
    for (i = 0; i < w->count; i++)
        if (w->operands[i].o.output)
            check_output(w, &w->operands[i]);
        else
            CHECK(memcmp(w->operands[i].before, w->operands[i].memory, w->operands[i].bytes) == 0,
                  "%s: the input %s was written", w->formula, w->operands[i].o.name);
}

static void forget_expected(world *w) {
    int i;
    for (i = 0; i <= w->count; i++) {
        table *t = i < w->count ? &w->operands[i] : &w->d;
        memset(t->expected, 0, sizeof(double) * (size_t)(t->items * t->rows * t->columns));
        t->amax = 0;
    }
}

static void run_case(const formula_case *c, int m, int n, int batch, gemmepi_dtype dtype, int spaced) {
    world w;
    unsigned char *outputs[MOST_OPERANDS + 1] = {0};
    int turn, i, same = strstr(c->formula, "seed") == NULL; /* whose numbers are of other places then */
    start_world(&w, c, m, n, batch, dtype, spaced);
    keep_before(&w);
    for (turn = 0; turn < 2; turn++) {
        memcpy(w.d.memory, w.d.before, w.d.bytes);
        for (i = 0; i < w.count; i++)
            memcpy(w.operands[i].memory, w.operands[i].before, w.operands[i].bytes);
        w.exchanged = turn;
        forget_expected(&w);
        c->oracle(&w); /* before anything is accumulated */
        CHECK(run_world(&w, turn && !strstr(c->formula, "logits["), turn, spaced) == GEMMEPI_OK, "%s: %s",
              c->formula, gemmepi_last_error());
        if (turn == 0)
            for (i = 0; i <= w.count; i++) {
                table *t = i < w.count ? &w.operands[i] : &w.d;
                outputs[i] = (unsigned char *)malloc(t->bytes);
                memcpy(outputs[i], t->memory, t->bytes);
            }
        for (i = 0; i <= w.count && turn && same; i++) {
            table *t = i < w.count ? &w.operands[i] : &w.d;
            CHECK(memcmp(outputs[i], t->memory, t->bytes) == 0, "%s: column-major has other bytes in %s",
                  c->formula, t->o.name);
        }
        check_world(&w);
    }
    for (i = 0; i <= w.count; i++)
        free(outputs[i]);
    end_world(&w);
}

static int in_steps(int n, int multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

enum { SLICES = 8 };
static size_t slice; /* one of so many of the cases, by itself: a GPU compiles kernels for each */

static void formulas_give_what_plain_loops_give(void) {
    static const int sizes[][3] = {{1, 1, 1}, {5, 7, 1}, {3, 16, 2}, {37, 48, 3}, {33, 72, 1}, {7, 150, 2}};
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_F64, GEMMEPI_F16};
    size_t c, s;
    for (c = slice; c < sizeof cases / sizeof cases[0]; c += SLICES)
        for (s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            gemmepi_dtype dtype = dtypes[s % 4];
            /* on a GPU, which compiles a kernel or two for each, one size of every formula and a share of the others */
            if (!here->is_host && s != c % 6 && !test_takes(random_hash(c * 16 + s)))
                continue;
            if (dtype == GEMMEPI_F64 &&
                (cases[c].is_of_floats || (strstr(cases[c].formula, "pow(") &&
                                           strstr(here->name, "emulated")))) /* it knows no calls */
                dtype = GEMMEPI_F32;
            run_case(&cases[c], sizes[s][0], in_steps(sizes[s][1], cases[c].multiple), sizes[s][2], dtype,
                     s & 1);
        }
}

/* >>small products written out: D [3, 4] = A [3, 2] B [2, 4], and whatever else */

enum { M = 3, N = 4, K = 2 };

typedef struct small {
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_operand operands[MOST_OPERANDS];
    void *pointers[MOST_OPERANDS];
    size_t sizes[MOST_OPERANDS];
    size_t scales; /* of D, in bytes */
    double a[M * K], b[K * N], d[2 * M * N], v[M * N];
} small;

static void start_small(small *s, const char *formula, gemmepi_dtype dtype) {
    int i, j;
    memset(s, 0, sizeof *s);
    for (i = 0; i < M * K; i++)
        oracle_encode(dtype, (char *)s->a + (size_t)i * gemmepi_dtype_size(dtype), i - 2);
    for (i = 0; i < K * N; i++)
        oracle_encode(dtype, (char *)s->b + (size_t)i * gemmepi_dtype_size(dtype), 3 - i);
    for (i = 0; i < M; i++)
        for (j = 0; j < N; j++)
            s->v[i * N + j] = (2 * i - 2) * (3 - j) + (2 * i - 1) * (-1 - j);
    s->desc.m = M, s->desc.n = N, s->desc.k = K;
    s->scales = sizeof(float);
    s->desc.a.dtype = dtype;
    s->desc.formula = formula;
    s->desc.operands = s->operands;
    s->args.a = s->a, s->args.b = s->b, s->args.d = s->d;
    s->args.operands = s->pointers;
}

#define add_operand(s, name, kind, array) add_sized_operand(s, name, kind, array, sizeof(array))

static gemmepi_operand *add_sized_operand(small *s, const char *name, gemmepi_operand_kind kind,
                                          void *pointer, size_t size) {
    gemmepi_operand *operand = &s->operands[s->desc.operand_count];
    operand->name = name;
    operand->kind = kind;
    s->sizes[s->desc.operand_count] = size;
    s->pointers[s->desc.operand_count++] = pointer;
    return operand;
}

static gemmepi_status run_small(small *s) {
    gemmepi_matmul_args args = s->args;
    void *pointers[MOST_OPERANDS];
    int i, on_device = (s->desc.flags & GEMMEPI_DEVICE_SCALARS) != 0;
    if (!s->desc.operand_count)
        s->desc.operands = NULL;
    for (i = 0; i < s->desc.operand_count; i++)
        pointers[i] =
            s->operands[i].kind == GEMMEPI_NUMBER ? s->pointers[i] : there(s->pointers[i], s->sizes[i]);
    args.operands = s->desc.operand_count ? pointers : NULL;
    args.a = there(args.a, sizeof s->a);
    args.b = there(args.b, sizeof s->b);
    args.d = there(args.d, sizeof s->d);
    args.c = there(args.c, sizeof(double[M * N]));
    if (on_device) {
        args.alpha = there(args.alpha, sizeof(double));
        args.beta = there(args.beta, sizeof(double));
    }
    args.scale_d = (const float *)there(args.scale_d, s->scales);
    args.found_scale_d = (float *)there(args.found_scale_d, sizeof(float));
    args.amax_history = (float *)there(args.amax_history, sizeof(float[2]));
    args.amax_d = there(args.amax_d, sizeof(float));
    return back(gemmepi_matmul(here->context, &s->desc, &args, NULL));
}

#define RUNS(s) CHECK(run_small(s) == GEMMEPI_OK, "%s", gemmepi_last_error())

static void c_and_scalars_are_part_of_v(void) {
    small s;
    double c[M * N], alpha = 0.5, beta = -2;
    int i, turn;
    for (turn = 0; turn < 2; turn++) {
        start_small(&s, "d = v * v + 1", GEMMEPI_F64);
        for (i = 0; i < M * N; i++)
            c[i] = i;
        s.desc.flags = turn ? GEMMEPI_DEVICE_SCALARS : 0;
        s.args.alpha = &alpha, s.args.beta = &beta, s.args.c = c;
        RUNS(&s);
        for (i = 0; i < M * N; i++) {
            double v = 0.5 * s.v[i] - 2 * i;
            CHECK(s.d[i] == v * v + 1, "%d: %g", i, s.d[i]);
        }
    }
}

static void c_lies_dense_where_d_is_of_another_width(void) {
    small s;
    double c[M * N], beta = 1;
    int i, j;
    start_small(&s, "d = left(v) - right(v)", GEMMEPI_F64);
    for (i = 0; i < M * N; i++)
        c[i] = i * i;
    s.args.beta = &beta, s.args.c = c;
    RUNS(&s);
    for (i = 0; i < M; i++)
        for (j = 0; j < 2; j++)
            CHECK(s.d[2 * i + j] == s.v[4 * i + j] + c[4 * i + j] - s.v[4 * i + j + 2] - c[4 * i + j + 2],
                  "%d", i);
}

static void d_has_scale_and_amax_as_ever(void) {
    small s;
    float scale = 0.25f, amax = 0, r[M * N];
    double largest = 0;
    int i;
    start_small(&s, "d = v * 3; r = rounded(d)", GEMMEPI_F32);
    s.desc.d.dtype = GEMMEPI_E4M3;
    s.desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
    s.desc.flags = GEMMEPI_AMAX_D;
    s.args.scale_d = &scale, s.args.amax_d = &amax;
    add_operand(&s, "r", GEMMEPI_FULL, r)->output = 1;
    s.operands[0].dtype = GEMMEPI_F32;
    RUNS(&s);
    for (i = 0; i < M * N; i++) {
        unsigned char bits;
        oracle_encode(GEMMEPI_E4M3, &bits, 3 * s.v[i] * 0.25);
        CHECK(((unsigned char *)s.d)[i] == bits, "%d", i);
        CHECK((double)r[i] == as_stored(GEMMEPI_E4M3, 3 * s.v[i] * 0.25) / 0.25, "%d: %g", i, (double)r[i]);
        largest = fabs(3 * s.v[i]) > largest ? fabs(3 * s.v[i]) : largest;
    }
    CHECK((double)amax == largest, "%g", (double)amax);
}

/* r and ss of `count` matrices as D stands for them, with such scales. */
static void check_rounded(const small *s, const float *scales, int count, const float *r, const float *ss) {
    gemmepi_dtype dtype = s->desc.d.dtype;
    int i, item;
    double sum = 0;
    for (item = 0; item < count; item++)
        for (i = 0; i < M * N; i++) {
            double scale = scales ? (double)scales[item] : 1, scaled = (double)(float)(300 * s->v[i] * scale);
            double stored = oracle_decode(dtype, (const char *)s->d +
                                                     (size_t)(item * M * N + i) * gemmepi_dtype_size(dtype));
            double want = stored / scale, got = (double)r[item * M * N + i];
            sum = i % N ? sum + want * want : want * want;
            CHECK(stored == as_stored(dtype, scaled), "%d: %g of %g", i, stored, scaled);
            CHECK(fabs(got - want) <= 0x1p-23 * fabs(want), "%d, %d of %g: %.9g, not %.9g", dtype, i, scale,
                  got, want);
            got = (double)ss[item * M + i / N];
            CHECK(i % N < N - 1 || fabs(got - sum) <= 1e-6 * sum, "row %d: %.9g, not %.9g", i / N, got, sum);
        }
}

static void start_rounded(small *s, gemmepi_dtype dtype, const float *scales, float *r, float *ss) {
    start_small(s, "d = 300 * v; r = rounded(d); ss = row_sum(rounded(300 * v) * rounded(d))", GEMMEPI_F32);
    memcpy((float *)s->a + M * K, s->a, sizeof(float[M * K])); /* the second matrix of a batch */
    s->desc.d.dtype = dtype;
    s->desc.d.scale.mode = scales ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
    s->args.scale_d = scales;
    add_sized_operand(s, "r", GEMMEPI_FULL, r, sizeof(float[2 * M * N]))->output = 1;
    add_sized_operand(s, "ss", GEMMEPI_PER_ROW, ss, sizeof(float[2 * M]))->output = 1;
    s->operands[0].dtype = s->operands[1].dtype = GEMMEPI_F32;
}

/* Of 300 times v, up to some thousands, E4M3 holds none without a scale. */
static void rounded_is_what_d_stands_for(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_F16, GEMMEPI_BF16};
    static float scales[][2] = {{0.25f, 0.015625f}, {0.1f, 0.0123f}, {3, 1e-30f}};
    small s;
    float r[2 * M * N], ss[2 * M];
    size_t i, t;
    for (t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++)
        for (i = 0; i < sizeof scales / sizeof scales[0]; i++) {
            const float *scale = gemmepi_dtype_size(dtypes[t]) == 1 ? scales[i] : NULL;
            start_rounded(&s, dtypes[t], scale, r, ss);
            RUNS(&s);
            check_rounded(&s, scale, 1, r, ss);
            s.desc.batch = 2;
            s.desc.a.batch_stride = M * K, s.desc.d.batch_stride = M * N;
            s.desc.d.scale.batch_stride = scale != NULL, s.scales = sizeof(float[2]);
            s.operands[0].batch_stride = M * N, s.operands[1].batch_stride = M;
            RUNS(&s);
            check_rounded(&s, scale, 2, r, ss);
        }
}

/* Of the amax of a run before; those that are found of this D are not there. */
static void rounded_has_the_scale_of_earlier_runs(void) {
    static const int modes[] = {GEMMEPI_SCALE_OUTER, GEMMEPI_SCALE_VECTOR_128};
    small s;
    float r[2 * M * N], ss[2 * M], history[2] = {2240, 0}, found = 0, reciprocal; /* 5 times 448 */
    size_t i;
    start_rounded(&s, GEMMEPI_E4M3, NULL, r, ss);
    s.desc.flags = GEMMEPI_FIND_SCALE_D;
    s.desc.d.scale.mode = GEMMEPI_SCALE_TENSOR, s.desc.amax_history = 2;
    s.args.found_scale_d = &found, s.args.amax_history = history;
    RUNS(&s);
    CHECK(found == 5, "%g", (double)found);
    reciprocal = 1 / found;
    check_rounded(&s, &reciprocal, 1, r, ss);
    for (i = 0; i < 2; i++) {
        s.desc.d.scale.mode = (gemmepi_scale_mode)modes[i], s.desc.amax_history = 0;
        s.args.amax_history = NULL;
        CHECK(
            run_small(&s) == GEMMEPI_INVALID_ARGUMENT &&
                strstr(
                    gemmepi_last_error(),
                    "desc.formula, column 18: rounded is the value that d stores, but desc.flags has FIND_SCALE_D"),
            "%s", gemmepi_last_error());
    }
}

static void whole_numbers_are_exact(void) {
    signed char a[sizeof(double[M * K])], b[sizeof(double[K * N])]; /* as many bytes as doubles have */
    int32_t d[4 * M * N], bias[N] = {1, -2147483647, 3, 4};
    double two = 2;
    small s;
    int i, j;
    start_small(&s, "d = max(v + bias, -5) * k - (v > 0 ? v : bias)", GEMMEPI_F32);
    for (i = 0; i < M * K; i++)
        a[i] = (signed char)(i - 2);
    for (i = 0; i < K * N; i++)
        b[i] = (signed char)(3 - i);
    s.desc.a.dtype = GEMMEPI_I8, s.desc.d.dtype = GEMMEPI_I32;
    s.args.a = a, s.args.b = b, s.args.d = d;
    add_operand(&s, "bias", GEMMEPI_PER_COLUMN, bias);
    add_sized_operand(&s, "k", GEMMEPI_NUMBER, &two, sizeof two);
    RUNS(&s);
    for (i = 0; i < M; i++)
        for (j = 0; j < N; j++) {
            int32_t v = (int32_t)s.v[4 * i + j], t = (int32_t)((uint32_t)v + (uint32_t)bias[j]);
            uint32_t x = (uint32_t)(t > -5 ? t : -5) * 2u - (uint32_t)(v > 0 ? v : bias[j]);
            CHECK((uint32_t)d[4 * i + j] == x, "%d %d: %d", i, j, (int)d[4 * i + j]);
        }
    two = 2.5;
    CHECK(run_small(&s) == GEMMEPI_INVALID_ARGUMENT && strstr(gemmepi_last_error(), "(of k) is 2.5"), "%s",
          gemmepi_last_error());
}

/* 0.1 of the text and 0.1 of the caller are one number, though F32 does not have it. */
static void numbers_are_of_the_type_that_sums_are_in(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F32, GEMMEPI_F64};
    double tenth = 0.1;
    int t, i;
    for (t = 0; t < 2; t++) {
        small s;
        start_small(&s, "d = k == 0.1 ? 1 : 2", dtypes[t]);
        add_sized_operand(&s, "k", GEMMEPI_NUMBER, &tenth, sizeof tenth);
        RUNS(&s);
        for (i = 0; i < M * N; i++)
            CHECK((t ? s.d[i] : (double)((float *)s.d)[i]) == 1, "%d: %d", t, i);
    }
}

static void reductions_take_nan_infinity_and_ties_as_said(void) {
    const double n = nan(""), p = HUGE_VAL;
    double x[M * N], rows[4][M], of_columns[3][N];
    int32_t best[M];
    int i;
    double first[M * N] = {1, n, 3, n, -p, -p, -p, -p, 2, p, 5, p};
    memcpy(x, first, sizeof x);
    memset(rows, 0, sizeof rows);
    {
        small s;
        start_small(
            &s,
            "r0 = row_sum(x); r1 = row_max(x); r2 = row_logsumexp(x); b = row_argmax(x); c0 = column_sum(x); "
            "c1 = column_max(x); r3 = row_min(x); c2 = column_min(x)",
            GEMMEPI_F64);
        s.args.d = NULL;
        add_operand(&s, "x", GEMMEPI_FULL, x);
        add_operand(&s, "r0", GEMMEPI_PER_ROW, rows[0])->output = 1;
        add_operand(&s, "r1", GEMMEPI_PER_ROW, rows[1])->output = 1;
        add_operand(&s, "r2", GEMMEPI_PER_ROW, rows[2])->output = 1;
        add_operand(&s, "b", GEMMEPI_PER_ROW, best)->output = 1;
        add_operand(&s, "c0", GEMMEPI_PER_COLUMN, of_columns[0])->output = 1;
        add_operand(&s, "c1", GEMMEPI_PER_COLUMN, of_columns[1])->output = 1;
        add_operand(&s, "r3", GEMMEPI_PER_ROW, rows[3])->output = 1;
        add_operand(&s, "c2", GEMMEPI_PER_COLUMN, of_columns[2])->output = 1;
        RUNS(&s);
    }
    CHECK(rows[3][1] == -p && rows[3][2] == 2 && of_columns[2][0] == -p && isnan(of_columns[2][1]) &&
              of_columns[2][2] == -p,
          "%g %g %g", rows[3][1], rows[3][2], of_columns[2][2]);
    for (i = 0; i < 4; i++)
        CHECK(isnan(rows[i][0]), "reduction %d: %g", i, rows[i][0]);
    CHECK(best[0] == 1 && best[1] == 0 && best[2] == 1, "%d %d %d", (int)best[0], (int)best[1], (int)best[2]);
    CHECK(rows[0][1] == -p && rows[1][1] == -p && rows[2][1] == -p, "%g %g %g", rows[0][1], rows[1][1],
          rows[2][1]);
    CHECK(rows[0][2] == p && rows[1][2] == p && rows[2][2] == p, "%g %g %g", rows[0][2], rows[1][2],
          rows[2][2]);
    CHECK(of_columns[0][0] == -p && of_columns[1][0] == 2 && isnan(of_columns[1][1]) && of_columns[1][2] == 5,
          "%g %g", of_columns[0][0], of_columns[1][0]);
}

static void what_is_not_taken_has_no_effect(void) {
    small s;
    double x[M * N];
    int i;
    start_small(&s, "d = isnan(x) ? 7 : max(x, 0)", GEMMEPI_F64);
    for (i = 0; i < M * N; i++)
        x[i] = i % 2 ? nan("") : i - 5;
    add_operand(&s, "x", GEMMEPI_FULL, x);
    RUNS(&s);
    for (i = 0; i < M * N; i++)
        CHECK(s.d[i] == (i % 2 ? 7 : i > 5 ? i - 5 : 0), "%d: %g", i, s.d[i]);
}

/* Outputs of a product that has no element, of no rows, no columns or both. */
static void over_nothing_reductions_are_0_and_infinities(void) {
    int turn, i;
    for (turn = 0; turn < 4; turn++) {
        small s;
        double rows[4][M], of_columns[3][N], of_all[2] = {5, 5};
        int m = turn & 1 ? 0 : M, n = turn & 2 ? 0 : N;
        for (i = 0; i < M; i++)
            rows[0][i] = rows[1][i] = rows[2][i] = rows[3][i] = 5;
        for (i = 0; i < N; i++)
            of_columns[0][i] = of_columns[1][i] = of_columns[2][i] = 5;
        start_small(
            &s,
            "d = left(v); r0 = row_sum(v); r1 = row_max(v); r2 = row_logsumexp(v); c0 = column_sum(v); c1 = "
            "column_max(v); a0 = all_sum(v); a1 = all_max(v); r3 = row_min(v); c2 = column_min(v)",
            GEMMEPI_F64);
        s.desc.m = m, s.desc.n = n;
        add_operand(&s, "r0", GEMMEPI_PER_ROW, rows[0])->output = 1;
        add_operand(&s, "r1", GEMMEPI_PER_ROW, rows[1])->output = 1;
        add_operand(&s, "r2", GEMMEPI_PER_ROW, rows[2])->output = 1;
        add_operand(&s, "c0", GEMMEPI_PER_COLUMN, of_columns[0])->output = 1;
        add_operand(&s, "c1", GEMMEPI_PER_COLUMN, of_columns[1])->output = 1;
        add_sized_operand(&s, "a0", GEMMEPI_SCALAR, &of_all[0], 8)->output = 1;
        add_sized_operand(&s, "a1", GEMMEPI_SCALAR, &of_all[1], 8)->output = 1;
        add_operand(&s, "r3", GEMMEPI_PER_ROW, rows[3])->output = 1;
        add_operand(&s, "c2", GEMMEPI_PER_COLUMN, of_columns[2])->output = 1;
        RUNS(&s);
        if (turn == 0)
            continue;
        CHECK(rows[0][0] == (n == 0 && m ? 0 : 5) && rows[1][M - 1] == (n == 0 && m ? -HUGE_VAL : 5) &&
                  rows[2][1] == (n == 0 && m ? -HUGE_VAL : 5),
              "turn %d: %g %g %g", turn, rows[0][0], rows[1][M - 1], rows[2][1]);
        CHECK(of_columns[0][0] == (m == 0 && n ? 0 : 5) &&
                  of_columns[1][N - 1] == (m == 0 && n ? -HUGE_VAL : 5),
              "turn %d: %g %g", turn, of_columns[0][0], of_columns[1][N - 1]);
        CHECK(rows[3][0] == (n == 0 && m ? HUGE_VAL : 5) && of_columns[2][0] == (m == 0 && n ? HUGE_VAL : 5),
              "turn %d: %g %g", turn, rows[3][0], of_columns[2][0]);
        CHECK(of_all[0] == 0 && of_all[1] == -HUGE_VAL, "turn %d: %g %g", turn, of_all[0], of_all[1]);
    }
}

static void without_k_v_is_0(void) {
    small s;
    int i;
    start_small(&s, "d = v + column", GEMMEPI_F64);
    s.desc.k = 0;
    s.args.a = s.args.b = NULL;
    RUNS(&s);
    for (i = 0; i < M * N; i++)
        CHECK(s.d[i] == i % N, "%d: %g", i, s.d[i]);
}

static void outputs_may_be_inputs_that_lie_alike(void) {
    small s;
    double kept[M * N], other[M * N];
    int i;
    start_small(&s, "d = v + r; o = q * r", GEMMEPI_F64);
    for (i = 0; i < M * N; i++)
        s.d[i] = kept[i] = i * 0.5, other[i] = i;
    add_operand(&s, "r", GEMMEPI_FULL, s.d);
    add_operand(&s, "q", GEMMEPI_FULL, other);
    add_operand(&s, "o", GEMMEPI_FULL, other)->output = 1;
    RUNS(&s);
    for (i = 0; i < M * N; i++)
        CHECK(s.d[i] == s.v[i] + kept[i] && other[i] == i * kept[i], "%d: %g %g", i, s.d[i], other[i]);
}

static void equal_formulas_take_one_plan_and_others_their_own(void) {
    small s;
    double rows[M];
    char text[4000];
    gemmepi_plan *plan;
    int i;
    for (i = 0; i < 3; i++) { /* again, spaced otherwise, and of another n */
        start_small(&s, i == 1 ? "d=v+r ;  rs = row_sum(d) /* the same */" : "d = v + r; rs = row_sum(d)",
                    GEMMEPI_F64);
        add_operand(&s, "r", GEMMEPI_PER_COLUMN, s.a);
        add_operand(&s, "rs", GEMMEPI_PER_ROW, rows)->output = 1;
        s.desc.n = i == 2 ? 3 : N;
        s.desc.b.ld = N;
        s.desc.d.ld = N;
        RUNS(&s);
        CHECK(fabs(rows[1] - (s.v[4] + s.v[5] + s.v[6] + (i == 2 ? 0 : s.v[7]) - 2 + (i == 2 ? -1 : 0))) <
                  1e-12,
              "%g", rows[1]);
    }
    CHECK(gemmepi_plan_matmul(here->context, &s.desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_explain(plan, text, sizeof text) < sizeof text &&
              strstr(text, "d = v + r; rs = row_sum(d)") != NULL &&
              strstr(text, "rs        F64, PER_ROW") != NULL,
          "%s", text);
    gemmepi_plan_destroy(plan);
}

static void random_numbers_count_rows_and_columns_in_either_order(void) {
    small s;
    int64_t seed = -1234567890123;
    int i, j;
    start_small(&s, "d = uniform(seed, 3) + 0 * v", GEMMEPI_F64);
    s.desc.order = GEMMEPI_COLUMN_MAJOR;
    add_sized_operand(&s, "seed", GEMMEPI_SCALAR, &seed, sizeof seed)->dtype = GEMMEPI_I64;
    RUNS(&s);
    for (i = 0; i < M; i++)
        for (j = 0; j < N; j++)
            CHECK(s.d[j * M + i] == philox_uniform((uint64_t)seed, (uint32_t)j / 4, (uint32_t)i, 0, 3, j % 4),
                  "%d %d", i, j);
}

static void explain_has_the_formula_as_the_caller_counts(void) {
    small s;
    gemmepi_plan *plan;
    char text[4000];
    start_small(&s, "d = left(v) * left(row) + columns; t = column_sum(v + bias)", GEMMEPI_F64);
    s.desc.m = 4, s.desc.n = 3, s.desc.order = GEMMEPI_COLUMN_MAJOR;
    add_sized_operand(&s, "t", GEMMEPI_PER_COLUMN, NULL, 0)->output = 1;
    add_sized_operand(&s, "bias", GEMMEPI_PER_ROW, NULL, 0);
    CHECK(gemmepi_plan_matmul(here->context, &s.desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_explain(plan, text, sizeof text);
    CHECK(strstr(text, "d = left(v) * left(row) + columns; t = column_sum(v + bias)\n") &&
              strstr(text, "bias      F64, PER_ROW, 1 x 4 stored") &&
              strstr(text, "t         F64, PER_COLUMN, 1 x 3"),
          "%s", text);
    gemmepi_plan_destroy(plan);
}

static void the_needs_of_a_formula_are_none(void) {
    small s;
    gemmepi_epilogue_needs needs;
    start_small(&s, "d = v + 1", GEMMEPI_F64);
    CHECK(gemmepi_epilogue_info(&s.desc, &needs) == GEMMEPI_OK && !needs.reads_bias && !needs.writes_aux,
          "%s", gemmepi_last_error());
    s.desc.formula = "d = v +";
    CHECK(gemmepi_epilogue_info(&s.desc, &needs) == GEMMEPI_INVALID_ARGUMENT, "%s", gemmepi_last_error());
}

/* >>gradients: the derived text as the formula of the product that makes dy, against central differences of forward runs */

typedef struct layer {
    const char *formula, *wrt;
    gemmepi_operand operands[4]; /* inputs, F64 */
    int count, columns;          /* of D */
    double value[2 * M * N], inputs[4][2 * M * N], dy[2 * M * N];
} layer;

static double unit_matrix[2 * N * 2 * N];

static const double *unit_of(int n) {
    int i;
    memset(unit_matrix, 0, sizeof unit_matrix);
    for (i = 0; i < n; i++)
        unit_matrix[i * n + i] = 1;
    return unit_matrix;
}

/* The sum of dy D. */
static double loss_of(layer *l) {
    gemmepi_matmul_desc desc = {0};
    gemmepi_matmul_args args = {0};
    void *pointers[4];
    double d[2 * M * N], sum = 0;
    int i;
    desc.m = M, desc.n = N, desc.k = N, desc.a.dtype = GEMMEPI_F64;
    desc.formula = l->formula;
    desc.operands = l->operands;
    desc.operand_count = l->count;
    for (i = 0; i < l->count; i++)
        pointers[i] = there(l->inputs[i], sizeof l->inputs[i]);
    args.a = there(l->value, sizeof l->value), args.b = there(unit_of(N), sizeof unit_matrix);
    args.d = there(d, sizeof d), args.operands = pointers;
    CHECK(back(gemmepi_matmul(here->context, &desc, &args, NULL)) == GEMMEPI_OK, "%s: %s", l->formula,
          gemmepi_last_error());
    for (i = 0; i < M * l->columns; i++)
        sum += l->dy[i] * d[i];
    return sum;
}

static void check_gradient(layer *l, const char *name, const double *gradient, double *input, int length) {
    int i;
    for (i = 0; i < length; i++) {
        double kept = input[i], step = 1e-5, up, down;
        input[i] = kept + step, up = loss_of(l);
        input[i] = kept - step, down = loss_of(l);
        input[i] = kept;
        CHECK(fabs((up - down) / (2 * step) - gradient[i]) < 1e-7 * (1 + fabs(gradient[i])),
              "%s: d_%s[%d] is %.12g, by differences %.12g", l->formula, name, i, gradient[i],
              (up - down) / (2 * step));
    }
}

static int length_of(const gemmepi_operand *o) {
    return o->kind == GEMMEPI_FULL         ? M * N
           : o->kind == GEMMEPI_PER_ROW    ? M
           : o->kind == GEMMEPI_PER_COLUMN ? N
                                           : 1;
}

static void run_gradient(layer *l) {
    gemmepi_derive_desc derive = {0};
    gemmepi_operand derived[16], taken[16];
    gemmepi_matmul_desc desc = {0};
    gemmepi_matmul_args args = {0};
    void *pointers[16];
    static double gradients[4][2 * M * N], of_value[2 * M * N];
    char text[2048];
    int i, j, count;
    derive.formula = l->formula, derive.operands = l->operands, derive.operand_count = l->count,
    derive.wrt = l->wrt;
    CHECK(gemmepi_derive(&derive, text, sizeof text) != 0, "%s", gemmepi_last_error());
    count = gemmepi_derive_operands(&derive, derived, 16);
    desc.m = M, desc.n = l->columns, desc.k = l->columns, desc.a.dtype = GEMMEPI_F64;
    desc.formula = text;
    desc.formula_value = "dy", desc.formula_result = "d_v";
    desc.operands = taken;
    for (i = 0; i < count; i++) {
        void *pointer = strcmp(derived[i].name, "v") == 0 ? (void *)l->value : NULL;
        if (strcmp(derived[i].name, "dy") == 0 || strcmp(derived[i].name, "d_v") == 0)
            continue;
        for (j = 0; j < l->count; j++)
            if (strcmp(derived[i].name + (derived[i].output ? 2 : 0), l->operands[j].name) == 0)
                pointer = derived[i].output ? gradients[j] : l->inputs[j];
        taken[desc.operand_count] = derived[i];
        taken[desc.operand_count].dtype = GEMMEPI_F64;
        if (l->columns < N && derived[i].kind >= GEMMEPI_PER_COLUMN) /* n is D's here */
            taken[desc.operand_count].width =
                derived[i].width == GEMMEPI_WIDTH_HALF ? GEMMEPI_WIDTH_N : GEMMEPI_WIDTH_DOUBLE;
        pointers[desc.operand_count++] = there(pointer, sizeof l->inputs[0]);
    }
    args.a = there(l->dy, sizeof l->dy), args.b = there(unit_of(l->columns), sizeof unit_matrix);
    args.d = there(of_value, sizeof of_value), args.operands = pointers;
    CHECK(back(gemmepi_matmul(here->context, &desc, &args, NULL)) == GEMMEPI_OK, "%s: %s", text,
          gemmepi_last_error());
    check_gradient(l, "v", of_value, l->value, M * N);
    for (j = 0; j < l->count; j++)
        if (strstr(l->wrt, l->operands[j].name))
            check_gradient(l, l->operands[j].name, gradients[j], l->inputs[j], length_of(&l->operands[j]));
}

static void derived_formulas_are_gradients(void) {
    static const struct {
        const char *formula, *wrt;
        int columns, count;
        struct {
            const char *name;
            gemmepi_operand_kind kind;
        } inputs[4];
    } layers[] = {
        {"d = silu(v + bias) * up + residual",
         "v, bias, up",
         N,
         3,
         {{"bias", GEMMEPI_PER_COLUMN}, {"up", GEMMEPI_FULL}, {"residual", GEMMEPI_FULL}}},
        {"d = left(v) * silu(right(v))", "v", N / 2, 0, {{NULL, GEMMEPI_FULL}}},
        {"d = v * rstd * gain",
         "v, rstd, gain",
         N,
         2,
         {{"rstd", GEMMEPI_PER_ROW}, {"gain", GEMMEPI_PER_COLUMN}}},
        {"d = v * sigmoid(beta * v)", "v, beta", N, 1, {{"beta", GEMMEPI_SCALAR}}},
    };
    rng r = rng_seeded(5);
    size_t c;
    int i, j;
    for (c = 0; c < sizeof layers / sizeof layers[0]; c++) {
        layer l;
        memset(&l, 0, sizeof l);
        l.formula = layers[c].formula, l.wrt = layers[c].wrt, l.columns = layers[c].columns,
        l.count = layers[c].count;
        for (i = 0; i < l.count; i++) {
            l.operands[i].name = layers[c].inputs[i].name;
            l.operands[i].kind = layers[c].inputs[i].kind;
        }
        for (j = 0; j < M * N; j++) {
            l.value[j] = random_in(&r), l.dy[j] = random_in(&r);
            for (i = 0; i < l.count; i++)
                l.inputs[i][j] = random_in(&r);
        }
        run_gradient(&l);
    }
}

static void run_slices(void) {
    for (slice = 0; slice < SLICES; slice++)
        RUN(formulas_give_what_plain_loops_give);
}

static void run_all(void) {
    run_slices();
    RUN(c_and_scalars_are_part_of_v);
    RUN(c_lies_dense_where_d_is_of_another_width);
    RUN(d_has_scale_and_amax_as_ever);
    RUN(rounded_is_what_d_stands_for);
    RUN(rounded_has_the_scale_of_earlier_runs);
    RUN(whole_numbers_are_exact);
    RUN(numbers_are_of_the_type_that_sums_are_in);
    RUN(reductions_take_nan_infinity_and_ties_as_said);
    RUN(what_is_not_taken_has_no_effect);
    RUN(over_nothing_reductions_are_0_and_infinities);
    RUN(without_k_v_is_0);
    RUN(outputs_may_be_inputs_that_lie_alike);
    RUN(equal_formulas_take_one_plan_and_others_their_own);
    RUN(random_numbers_count_rows_and_columns_in_either_order);
    RUN(explain_has_the_formula_as_the_caller_counts);
    RUN(the_needs_of_a_formula_are_none);
    RUN(derived_formulas_are_gradients);
}

/* The grid again on a GPU whose routes are fewer: without fused, and by fused wherever it can be. */
int main(void) {
    test_device devices[TEST_MOST_DEVICES];
    int count = test_devices_open_with_routes(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        plans_inside = plans_by_pass = 0;
        if (strstr(here->name, "fused"))
            run_slices();
        else
            run_all();
        if (!here->is_host)
            printf("   %d plans have the formula inside a kernel, %d pass over v\n", plans_inside,
                   plans_by_pass);
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
