/* formula_inside [shape [formulas [first]]]: formulas inside the kernels of the route fused, in each shape, which a plan is made to take here,
   against the same products on the host. Needs a GPU of compute capability 9.0 (or the emulator): the first, or that which
   GEMMEPI_TEST_DEVICE numbers. With the number of a shape: that one alone; formulas: how many each shape takes, not the same of each, or
   from the first on whose number is given. */
#include "candidate.h"

static test_device device, host;
static int only = -1, each = 3, first = -1;

/* >>shapes of all engines */

enum {
    SM90_CUTS = GPI__COUNT(gpi__sm90_shapes),
    SM80_CUTS = GPI__COUNT(gpi__sm80_shapes),
    SMALL_CUTS = GPI__COUNT(gpi__small_shapes),
    FIRST_PARTS =
        SM90_CUTS + SM80_CUTS, /* of the second engine, with k in parts: a pass has the formula then */
    FIRST_SMALL = FIRST_PARTS + 1,
    FIRST_FP8 = FIRST_SMALL + SMALL_CUTS,
    CUTS = FIRST_FP8 + GPI__COUNT(gpi__sm90_fp8_shapes)
};

static gpi__candidate candidate_of(int cut) {
    gpi__candidate candidate;
    if (cut >= FIRST_FP8)
        return candidate_by(&gpi__sm90_fp8_engine, cut - FIRST_FP8, 0);
    if (cut >= FIRST_SMALL)
        return candidate_by(&gpi__small_engine, cut - FIRST_SMALL, 0);
    if (cut < SM90_CUTS)
        return candidate_by(&gpi__sm90_engine, cut, 0);
    candidate = candidate_by(&gpi__sm80_engine, cut < FIRST_PARTS ? cut - SM90_CUTS : 0, 0);
    candidate.parts = cut < FIRST_PARTS ? 1 : 3;
    return candidate;
}

static int takes(const gpi__candidate *candidate, const gpi__problem *problem) {
    const gpi__engine *engine = gpi__engines[candidate->engine];
    return !gpi__engines_rule(device.context, problem) && !engine->rule(device.context, problem) &&
           engine->estimate(device.context, problem, candidate) < GPI__NEVER;
}

static int has_f16_sums(const gpi__candidate *candidate) {
    return gpi__engines[candidate->engine] == &gpi__sm80_engine &&
           gpi__has_f16_sums(&gpi__sm80_shapes[candidate->shape]);
}

/* >>cases: operands as "name:kind:word" */

typedef struct formula_case {
    const char *formula, *operands;
    gemmepi_dtype d;
    double slack; /* relative, of what has not been rounded */
} formula_case;

static const formula_case cases[] = {
    {"d = silu(v + bias) * up + residual", "bias:column up:full residual:full", GEMMEPI_BF16, 1e-3},
    {"d = v * rstd * gain + 1 / depth", "rstd:row:f32 gain:column:f32", GEMMEPI_BF16, 1e-6},
    {"d = left(v) * silu(right(v))", "", GEMMEPI_BF16, 1e-3},
    {"d = cap * tanh(v / cap)", "cap:number", GEMMEPI_F32, 1e-5},
    {"x = v + bias; d = left(x) * silu(right(x)) + r", "bias:column r:full:half", GEMMEPI_F32, 1e-5},
    {"d = pair(v * silu(right(p)), v * left(p) * d_silu(right(p)))", "p:full:double", GEMMEPI_BF16, 1e-3},
    {"d = pair(dy * silu(right(v)), dy * left(v) * d_silu(right(v)))", "dy:full:half", GEMMEPI_BF16, 1e-3},
    {"x = left(v, 64); y = right(v, 64); d = pair(x * c - y * s, y * c + x * s, 64)",
     "c:full:half s:full:half", GEMMEPI_BF16, 1e-5},
    {"pre = v + bias; d = gelu_erf(pre)", "bias:column pre:full:f32:out", GEMMEPI_BF16, 1e-3},
    {"d = (uniform(seed, 7) >= 0.25 ? v / 0.75 : 0) + residual", "seed:scalar:i64 residual:full:f32",
     GEMMEPI_F32, 1e-6},
    {"d = column > row ? -30 : v * 0.125 - slope * (row - column) / columns + item", "slope:scalar:f32",
     GEMMEPI_F32, 1e-6},
    {"x = v + bias; d = left(x, 128) * silu(right(x, 128)) + r", "bias:column r:full:half", GEMMEPI_BF16,
     1e-3},
    {"d = pair(left(v) * 2, right(v) * 3)", "", GEMMEPI_BF16, 1e-6},
    {"d = exp((v - lse) / 16) - (column == label)", "lse:row:f32 label:row:i64", GEMMEPI_BF16, 1e-3},
    {"d = sin(30 * (v + bias))", "bias:column:f32", GEMMEPI_F32, 1e-4},
    {"d = x * v + y * w + z; o = x - y", "x:full:f32 y:full w:full:e4m3 z:full:f16 o:full:f32:out",
     GEMMEPI_F32, 1e-5},
    {"d = pair(v * silu(right(p, 64)), v * left(p, 64) * d_silu(right(p, 64)), 64)", "p:full:double",
     GEMMEPI_BF16, 1e-3},
    {"o = 2 * v - left(column, 256); d = v * left(x, 256) + o", "x:full:double o:full:f32:out", GEMMEPI_F32,
     1e-5},
    {"x = left(v); y = right(v); d = pair(x * c - y * s, y * c + x * s)", "c:full:half s:full:half",
     GEMMEPI_BF16, 1e-5},
    {"lse = row_logsumexp(v); hit = row_sum(column == label ? v : 0)",
     "label:row:i64 lse:row:f32:out hit:row:f32:out", GEMMEPI_BF16, 1e-5},
    {"x = left(v, 128); y = right(v, 128); d = pair(x * c - y * s, y * c + x * s, 128)",
     "c:full:half:f32 s:full:half:f32", GEMMEPI_F32, 1e-5},
    {"x = v + bias; d = pair(left(x, 64), right(x, 64) * rstd, 64) + r; o = x - d",
     "bias:column rstd:row:f32 r:full o:full:f32:out", GEMMEPI_BF16, 1e-5},
    {"d = silu(v + bias) * up; ss = row_sum(d * d); top = row_max(d)",
     "bias:column up:full ss:row:f32:out top:row:f32:out", GEMMEPI_BF16, 1e-3},
    {"best = row_argmax(v); d = v", "best:row:i32:out", GEMMEPI_F32, 1e-6},
    {"d = left(v, 384) * right(v, 384) + left(column, 384); best = row_argmax(v); s = row_sum(left(v, 384))",
     "best:row:i32:out s:row:f32:out", GEMMEPI_F32, 1e-5},
    {"d = left(v) * right(v); s = row_sum(left(v) + right(v)); t = row_logsumexp(right(v))",
     "s:row:f32:out t:row:f32:out", GEMMEPI_BF16, 1e-5},
    {"x = v + bias; d = left(x, 64) * silu(right(x, 64)) + r", "bias:column r:full:half", GEMMEPI_E4M3, 1e-3},
    {"x = left(v, 128); y = right(v, 128); d = pair(x * c - y * s, y * c + x * s, 128)",
     "c:full:half s:full:half", GEMMEPI_E4M3, 1e-5},
    {"d = silu(v + bias) * up", "bias:column up:full", GEMMEPI_E4M3, 1e-3},
    {"d = uniform(seed, 1) < 0.5 ? v * uniform(seed, 2) : v + uniform(seed, 3)", "seed:scalar:i64",
     GEMMEPI_BF16, 1e-6},
    {"d = left(v) * left(uniform(seed, 2)) + right(v) * (right(uniform(seed, 2)) - 0.5)", "seed:scalar:i64",
     GEMMEPI_F32, 1e-5},
    {"d = left(v, 64) * left(uniform(seed, i), 64) - right(v, 64) * right(uniform(seed, i), 64)",
     "seed:scalar:i64 i:scalar:i32", GEMMEPI_BF16, 1e-5},
    {"x = left(v, 64); y = right(v, 64); d = pair(x * c - y * s, y * c + x * s, 64)",
     "c:full:half:repeats s:full:half:repeats:f32", GEMMEPI_BF16, 1e-5},
    {"d = silu(v + bias) * w[label] + codes[q]",
     "bias:column w:column:f32:repeats:shared label:row:i64 codes:column:e4m3:repeats q:full:i32",
     GEMMEPI_BF16, 1e-3},
    {"o = v * t[label] + r[column]; d = o + t[row] * c[3]; s = row_sum(d)",
     "t:full:repeats label:row:i64 r:row:f32 c:column o:full:out s:row:f32:out", GEMMEPI_F32, 1e-4},
    {"x = left(v, 128); y = right(v, 128); d = pair(x * c[left(column, 128)] - y, x + y * c[q], 128)",
     "c:column:repeats q:full:half:i32", GEMMEPI_BF16, 1e-5},
    {"d = v * r + c + t", "r:row:f32:repeats c:column:repeats t:full:repeats", GEMMEPI_BF16, 1e-5},
    {"d = 40 * v + bias; r = rounded(d); ss = row_sum(rounded(40 * v) * rounded(d))",
     "bias:column r:full:f32:out ss:row:f32:out", GEMMEPI_E4M3, 0.13}, /* a step more or less */
    {"d = even(v) * silu(odd(v)); pre = v", "pre:full:out", GEMMEPI_BF16, 1e-3},
    {"d = interleave(v * silu(odd(p)), v * even(p) * d_silu(odd(p))); y = even(p) * silu(odd(p))",
     "p:full:double y:full:out", GEMMEPI_BF16, 1e-3},
    {"x = v + bias; d = even(x) * silu(odd(x)) + r; pre = x", "bias:column r:full:half pre:full:f32:out",
     GEMMEPI_F32, 1e-5},
    {"x = even(v); y = odd(v); d = interleave(x * c - y * s, y * c + x * s)", "c:full:half s:full:half:f32",
     GEMMEPI_BF16, 1e-5},
    {"d = interleave(dy * silu(odd(v)), dy * even(v) * d_silu(odd(v)))", "dy:full:half", GEMMEPI_F32, 1e-5},
    {"d = even(v) * odd(t) + odd(column)", "t:full", GEMMEPI_F32, 1e-5},
    {"d = even(v) * odd(v) + g", "g:column:half", GEMMEPI_E4M3, 1e-3},
    {"d = interleave(v * odd(p) + 1, v - even(p) * 3) + r", "p:full:double r:full:double", GEMMEPI_F32, 1e-5},
    {"d = interleave(v * odd(p), v - even(p))", "p:full:double", GEMMEPI_E4M3, 1e-3},
    {"x = even(v); y = odd(v); d = interleave(x * even(t) - y * odd(t), x + y)", "t:full", GEMMEPI_E4M3,
     1e-3},
    {"r = rounded(left(v)); d = left(v) * rounded(right(v))", "r:full:half:f32:out", GEMMEPI_BF16, 1e-2},
    {"d = v * d_gelu_tanh(p); y = gelu_tanh(p); db = column_sum(d)", "p:full y:full:out db:column:f32:out",
     GEMMEPI_BF16, 1e-3},
    {"s = column_sum(v); ss = column_sum(v * v); top = column_max(v)",
     "s:column:f32:out:shared ss:column:f32:out top:column:f32:out:shared", GEMMEPI_BF16, 1e-5},
    {"d = v + bias; all = all_sum(d * d); most = all_max(d); r = row_sum(d)",
     "bias:column all:scalar:f32:out most:scalar:f32:out r:row:f32:out", GEMMEPI_F32, 1e-5},
    {"d = v + bias; low = row_min(d * d - 3); least = column_min(d); top = row_max(d)",
     "bias:column low:row:f32:out least:column:f32:out top:row:f32:out", GEMMEPI_BF16, 1e-5},
    {"d = left(v) * silu(right(v)); db = column_sum(v); all = all_sum(v)",
     "db:column:f32:out all:scalar:f32:out", GEMMEPI_BF16, 1e-3},
    {"x = left(v, 64); y = right(v, 64); d = x * y; db = column_sum(v); top = column_max(d)",
     "db:column:f32:out top:column:half:f32:out", GEMMEPI_F32, 1e-5},
    {"d = pair(v * silu(right(p)), v * left(p) * d_silu(right(p))); g = column_sum(d)",
     "p:full:double g:column:double:f32:out", GEMMEPI_BF16, 1e-3},
    {"d = sin(1048576 * v) * cos(v + bias)", "bias:column:f32", GEMMEPI_F32,
     1e-5}, /* far and near in a run */
    {"x = v + bias; d = left(x) * silu(right(x)) + r; pre = x", "bias:column r:full:half pre:full:out",
     GEMMEPI_BF16, 1e-3},
    {"x = v + bias; d = left(x, 64) * silu(right(x, 64)); pre = x", "bias:column pre:full:out", GEMMEPI_BF16,
     1e-3},
    {"x = left(v, 64); y = right(v, 64); d = x * y; pre = v", "pre:full:f32:out", GEMMEPI_F32, 1e-5},
    {"d = v * d_gelu_tanh(p); y = gelu_tanh(p); z = p + v", "p:full y:full:out z:full:out", GEMMEPI_E4M3,
     1e-3},
    {"d = atan(v) * erfc(bias) + sinh(bias) + logaddexp(v, cosh(bias)) + ceil(bias) + (bias < inf)",
     "bias:column:f32", GEMMEPI_F32, 1e-4},
    {"d = v * s + t * up", "s:blocks=1x32:f32 t:blocks=128x128:e4m3 up:full", GEMMEPI_BF16, 1e-5},
    {"d = v * s - t * bias; o = v * u",
     "s:blocks=3x1 t:blocks=64x96:f16:shared u:blocks=1x1:f32 o:full:out bias:column", GEMMEPI_F32, 1e-5},
    {"x = v * s; d = left(x, 64) * silu(right(x, 64)) * h", "s:blocks=1x32 h:half:blocks=2x64:f32",
     GEMMEPI_BF16, 1e-3},
    {"d = even(v * s) + odd(v) * odd(s) * h", "s:blocks=7x64:f32 h:half:blocks=1x32", GEMMEPI_F32, 1e-5},
    {"d = v * s + (column == q); r = row_sum(d)", "s:blocks=1x32:e4m3 q:blocks=5x32:i64 r:row:f32:out",
     GEMMEPI_BF16, 1e-4},
    {"d = v + bias; h = row_sum(d * d, 64)", "bias:column h:blocks=1x64:f32:out", GEMMEPI_BF16, 1e-4},
    {"m = row_max(abs(v), 128); low = row_min(v * s, 64); d = v",
     "s:row:f32 m:blocks=1x128:f32:out low:blocks=1x64:f32:out", GEMMEPI_F32, 1e-5},
    {"d = left(v, 128) * right(v, 128); h = row_max(left(v, 128) - 3, 64); r = row_sum(d)",
     "h:half:blocks=1x64:f32:out r:row:f32:out", GEMMEPI_BF16, 1e-3},
    {"most = row_max(v - bias, 128)", "bias:column most:blocks=1x128:f32:out", GEMMEPI_BF16, 1e-5},
    {"d = stochastic(v + residual, seed)", "seed:scalar:i64 residual:full", GEMMEPI_BF16, 1e-9},
    {"d = stochastic(v * 0.75, seed, i); o = stochastic(v + bias, seed, 3)",
     "seed:scalar:i64 i:scalar:i32 bias:column o:full:f16:out", GEMMEPI_BF16, 1e-9},
    {"d = stochastic(left(v) - right(v), seed)", "seed:scalar:i64", GEMMEPI_BF16, 1e-9},
    {"d = stochastic(left(v, 64) + right(v, 64) / 8, seed)", "seed:scalar:i64", GEMMEPI_BF16, 1e-9},
    {"d = v * s + e * up - r * t", "s:blocks=1x32:e8m0 e:column:e8m0 up:full:e8m0 r:row:e8m0 t:scalar:e8m0",
     GEMMEPI_F32, 1e-5},
};

enum { CASES = sizeof cases / sizeof cases[0], MOST = 6 };

/* A tensor on the host, twice where it is written, and where it is on the device. */
typedef struct table {
    gemmepi_operand o;
    char name[16];
    int64_t lines, length, ld, stride;
    int items, is_shared; /* shared: one for all of the batch */
    size_t bytes;
    unsigned char *on_host, *from_gpu;
    char *there;
} table;

typedef struct world {
    const formula_case *c;
    int64_t m, n, k;
    int batch, gap, unit; /* lines are longer by gap, and a multiple of unit */
    table a, b, d, c_matrix, scale, amax, operands[MOST]; /* scale and amax: of a D in E4M3 */
    int count, b_rows;                                    /* b_rows: b is transposed */
    int adds_c;                                           /* v is 3/4 of the product, less 2 C */
    uint64_t flags;
    int is_fp8; /* 2: with FAST_ACCUMULATION */
    double number;
    rng random;
} world;

/* Columns of a group, of which halves are; 1: none. */
static int group_of(const formula_case *c) {
    const char *at = strstr(c->formula, "left(");
    int group = 1;
    if (at && sscanf(at, "left(%*[a-z], %d", &group) == 1)
        return group;
    return strstr(c->formula, ", 128)")  ? 128
           : strstr(c->formula, ", 64)") ? 64
                                         : 1; /* those that are reduced */
}

/* Some of those whose D is in F32: k lies along lines of both operands then. */
static int is_tf32(const world *w) {
    return w->b_rows && w->c->d == GEMMEPI_F32 && !w->is_fp8;
}

static int has_d(const formula_case *c) {
    return strncmp(c->formula, "d = ", 4) == 0 || strstr(c->formula, "; d = ") != NULL;
}

static size_t size_of(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_I64 ? 8 : gemmepi_dtype_size(dtype);
}

static double as_read(const table *t, const unsigned char *from, int64_t i) {
    return oracle_decode(t->o.dtype, from + (size_t)i * size_of(t->o.dtype));
}

/* Eighths between -1 and 1, whose products' sums are exact in F32; outputs are poisoned. */
static void make_table(world *w, table *t, int64_t lines, int64_t length) {
    int64_t i;
    t->lines = lines, t->length = length;
    t->ld = (length + (lines > 1 ? w->gap : 0) + w->unit - 1) / w->unit * w->unit;
    t->stride = lines * t->ld;
    t->items = t->o.kind == GEMMEPI_SCALAR || t->is_shared ? 1 : w->batch;
    t->bytes = (size_t)(t->stride * t->items) * size_of(t->o.dtype);
    t->on_host = (unsigned char *)malloc(t->bytes + 16);
    t->from_gpu = (unsigned char *)malloc(t->bytes + 16);
    memset(t->on_host, 0xa5, t->bytes);
    for (i = 0; i < t->stride * t->items && !t->o.output; i++) {
        int64_t whole = rng_below(&w->random, 100);
        if (t->o.dtype == GEMMEPI_I64)
            memcpy(t->on_host + i * 8, &whole, 8);
        else if (t->o.dtype == GEMMEPI_E8M0)
            t->on_host[i] = (unsigned char)(125 + rng_below(&w->random, 4));
        else
            oracle_encode(t->o.dtype, t->on_host + (size_t)i * size_of(t->o.dtype),
                          (rng_below(&w->random, 17) - 8) / 8.0);
    }
    CHECK(gemmepi_alloc(device.context, t->bytes + 16, (void **)&t->there) == GEMMEPI_OK &&
              gemmepi_upload(device.context, t->there, t->on_host, t->bytes, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

static void drop_table(table *t) {
    gemmepi_free(device.context, t->there);
    free(t->on_host);
    free(t->from_gpu);
}

static int has_word(const char *words, const char *word) {
    const char *at = strstr(words, word);
    return at && (at[strlen(word)] == ':' || at[strlen(word)] == 0);
}

/* Of an operand that is BLOCKED, "3x32"; else NULL. */
static const char *blocks_at(const char *operand) {
    const char *at = strstr(operand, ":blocks="), *end = strchr(operand, ' ');
    return at && (!end || at < end) ? at + strlen(":blocks=") : NULL;
}

static void make_operands(world *w) {
    char copy[160], *at = copy, *next;
    snprintf(copy, sizeof copy, "%s", w->c->operands);
    for (; *at; at = next) {
        table *t = &w->operands[w->count++];
        char *end = strchr(at, ' ');
        int64_t n;
        next = end ? end + 1 : at + strlen(at);
        if (end)
            *end = 0;
        snprintf(t->name, sizeof t->name, "%.*s", (int)(strchr(at, ':') - at), at);
        t->o.name = t->name;
        t->o.kind = has_word(at, ":number")   ? GEMMEPI_NUMBER
                    : has_word(at, ":scalar") ? GEMMEPI_SCALAR
                    : has_word(at, ":row")    ? GEMMEPI_PER_ROW
                    : has_word(at, ":column") ? GEMMEPI_PER_COLUMN
                    : blocks_at(at)           ? GEMMEPI_BLOCKED
                                              : GEMMEPI_FULL;
        t->o.width = has_word(at, ":half")     ? GEMMEPI_WIDTH_HALF
                     : has_word(at, ":double") ? GEMMEPI_WIDTH_DOUBLE
                                               : GEMMEPI_WIDTH_N;
        t->o.dtype = has_word(at, ":f32")    ? GEMMEPI_F32
                     : has_word(at, ":f16")  ? GEMMEPI_F16
                     : has_word(at, ":e4m3") ? GEMMEPI_E4M3
                     : has_word(at, ":e8m0") ? GEMMEPI_E8M0
                     : has_word(at, ":i32")  ? GEMMEPI_I32
                     : has_word(at, ":i64")  ? GEMMEPI_I64
                                             : GEMMEPI_BF16;
        t->o.output = has_word(at, ":out");
        t->is_shared = has_word(at, ":shared");
        t->o.row_period = has_word(at, ":repeats") && t->o.kind != GEMMEPI_PER_COLUMN ? 5 : 0;
        t->o.column_period = has_word(at, ":repeats") && t->o.kind != GEMMEPI_PER_ROW ? 32 : 0;
        n = t->o.width == GEMMEPI_WIDTH_HALF     ? w->n / 2
            : t->o.width == GEMMEPI_WIDTH_DOUBLE ? 2 * w->n
                                                 : w->n;
        if (t->o.kind == GEMMEPI_BLOCKED) {
            const char *blocks = blocks_at(at);
            t->o.block_rows = atoi(blocks), t->o.block_columns = atoi(strchr(blocks, 'x') + 1);
        }
        if (t->o.kind == GEMMEPI_NUMBER)
            t->o.dtype = GEMMEPI_DTYPE_DEFAULT;
        else if (t->o.kind == GEMMEPI_BLOCKED)
            make_table(w, t, (w->m + t->o.block_rows - 1) / t->o.block_rows,
                       (n + t->o.block_columns - 1) / t->o.block_columns);
        else
            make_table(w, t,
                       t->o.kind != GEMMEPI_FULL ? 1
                       : t->o.row_period         ? t->o.row_period
                                                 : w->m,
                       t->o.kind == GEMMEPI_SCALAR    ? 1
                       : t->o.kind == GEMMEPI_PER_ROW ? t->o.row_period ? t->o.row_period : w->m
                       : t->o.column_period           ? t->o.column_period
                                                      : n);
    }
}

/* The scale of D, 1/2, and where its largest number goes. */
static void make_numbers(world *w) {
    static const float half = 0.5f;
    w->scale.o.kind = w->amax.o.kind = GEMMEPI_SCALAR;
    w->scale.o.dtype = w->amax.o.dtype = GEMMEPI_F32;
    w->amax.o.output = 1;
    snprintf(w->amax.name, sizeof w->amax.name, "amax");
    make_table(w, &w->scale, 1, 1);
    make_table(w, &w->amax, 1, 1);
    memcpy(w->scale.on_host, &half, sizeof half);
    CHECK(gemmepi_upload(device.context, w->scale.there, &half, sizeof half, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}

static void make_world(world *w, const formula_case *c, int64_t m, int64_t n, int64_t k, int odd, int b_rows,
                       int is_fp8) {
    int group = group_of(c);
    int halves = strstr(c->formula, "d = left(") || strstr(c->formula, "d = even(") ||
                 strstr(c->formula, "d = stochastic(left("),
        doubles = strstr(c->operands, ":double") != NULL;
    memset(w, 0, sizeof *w);
    w->c = c;
    w->random = rng_seeded((uint64_t)(m * 7 + n));
    if (group > 1)
        n = n <= 2 * group ? 2 * group : (n + group - 1) / group * group;
    if (group > 1 && doubles)
        n /= 2;
    w->m = m, w->n = n, w->k = k, w->batch = 2, w->b_rows = b_rows, w->gap = odd ? 1 : 8, w->unit = 1;
    w->number = 3;
    w->is_fp8 = is_fp8;
    w->a.o.dtype = w->b.o.dtype = is_tf32(w) ? GEMMEPI_F32 : odd ? GEMMEPI_F16 : GEMMEPI_BF16;
    if (is_fp8) {
        w->a.o.dtype = GEMMEPI_E4M3;
        w->b.o.dtype = odd ? GEMMEPI_E5M2 : GEMMEPI_E4M3;
    }
    w->a.o.kind = w->b.o.kind = w->d.o.kind = w->c_matrix.o.kind = GEMMEPI_FULL;
    w->d.o.dtype = c->d;
    w->c_matrix.o.dtype = GEMMEPI_BF16;
    w->d.o.output = 1;
    snprintf(w->d.name, sizeof w->d.name, "d");
    make_operands(w);
    make_table(w, &w->d, m,
               halves                                                                          ? n / 2
               : doubles && (strstr(c->formula, "pair(") || strstr(c->formula, "interleave(")) ? 2 * n
                                                                                               : n);
    w->unit = is_fp8 ? 16 : 8; /* TMA wants it */
    make_table(w, &w->a, m, k);
    make_table(w, &w->b, b_rows ? n : k, b_rows ? k : n);
    make_table(w, &w->c_matrix, m, n);
    make_numbers(w);
}

static gemmepi_matrix matrix_of(const table *t) {
    gemmepi_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    matrix.dtype = t->o.dtype;
    matrix.ld = t->ld;
    matrix.batch_stride = t->stride;
    return matrix;
}

static const double factors[2] = {0.75, -2};

/* The world's call, for the host or the GPU; pointers holds MOST. */
static void describe(world *w, int on_gpu, gemmepi_operand *operands, void **pointers,
                     gemmepi_matmul_desc *desc, gemmepi_matmul_args *args) {
    int i;
    memset(desc, 0, sizeof *desc);
    memset(args, 0, sizeof *args);
    desc->m = w->m, desc->n = w->n, desc->k = w->k, desc->batch = w->batch;
    desc->a = matrix_of(&w->a), desc->b = matrix_of(&w->b);
    desc->b.transposed = w->b_rows;
    if (is_tf32(w))
        desc->compute = GEMMEPI_COMPUTE_TF32;
    if (w->is_fp8 == 2)
        desc->flags = GEMMEPI_FAST_ACCUMULATION;
    if (has_d(w->c))
        desc->d = matrix_of(&w->d);
    desc->flags = w->flags;
    if (w->c->d == GEMMEPI_E4M3) {
        desc->d.scale.mode = GEMMEPI_SCALE_TENSOR;
        desc->flags |= GEMMEPI_AMAX_D;
        args->scale_d = (const float *)(const void *)(on_gpu ? w->scale.there : (char *)w->scale.on_host);
        args->amax_d = on_gpu ? w->amax.there : (char *)w->amax.on_host;
    }
    if (w->adds_c) {
        desc->c = matrix_of(&w->c_matrix);
        args->c = on_gpu ? w->c_matrix.there : (char *)w->c_matrix.on_host;
        args->alpha = &factors[0], args->beta = &factors[1];
    }
    desc->formula = w->c->formula;
    for (i = 0; i < w->count; i++) {
        table *t = &w->operands[i];
        operands[i] = t->o;
        operands[i].ld = t->o.kind >= GEMMEPI_FULL ? t->ld : 0;
        operands[i].batch_stride = t->o.kind >= GEMMEPI_PER_ROW && !t->is_shared ? t->stride : 0;
        pointers[i] = t->o.kind == GEMMEPI_NUMBER ? (void *)&w->number
                      : on_gpu                    ? t->there
                                                  : (char *)t->on_host;
    }
    desc->operands = w->count ? operands : NULL;
    desc->operand_count = w->count;
    args->operands = w->count ? pointers : NULL;
    args->a = on_gpu ? w->a.there : (char *)w->a.on_host;
    args->b = on_gpu ? w->b.there : (char *)w->b.on_host;
    args->d = !has_d(w->c) ? NULL : on_gpu ? w->d.there : (char *)w->d.on_host;
}

static void check_table(const world *w, table *t, const char *kernel) {
    /* two roundings, of E4M3 in its subnormal numbers, too; by chance the same one */
    double unit = t->o.dtype == GEMMEPI_F32 || strstr(w->c->formula, "stochastic") ? 0
                  : t->o.dtype == GEMMEPI_E4M3                                     ? 0.125
                                                                                   : 0.0078125;
    double least = t->o.dtype == GEMMEPI_E4M3 ? 0.00390625 : 0;
    int64_t item, line, i;
    int wrong = 0;
    CHECK(gemmepi_download(device.context, t->from_gpu, t->there, t->bytes, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    for (item = 0; item < t->items; item++)
        for (line = 0; line < t->lines; line++)
            for (i = 0; i < t->ld && wrong < 3; i++) {
                int64_t at = item * t->stride + line * t->ld + i;
                double x = as_read(t, t->on_host, at), y = as_read(t, t->from_gpu, at);
                int is_right =
                    i >= t->length
                        ? memcmp(t->on_host + (size_t)at * size_of(t->o.dtype),
                                 t->from_gpu + (size_t)at * size_of(t->o.dtype), size_of(t->o.dtype)) == 0
                        : fabs(x - y) <= w->c->slack * (1 + fabs(x)) + unit * fabs(x) + least;
                wrong += !is_right;
                CHECK(is_right, "%s by %s: %s[%d][%d][%d] is %g, on the host %g (%d x %d x %d)",
                      w->c->formula, kernel, t->name, (int)item, (int)line, (int)i, y, x, (int)w->m,
                      (int)w->n, (int)w->k);
            }
}

/* >>plans of one shape */

static int runs;

/* With the formula inside; NULL: the shape does not take the product. */
static gemmepi_plan *plan_as(const gemmepi_matmul_desc *desc, const gpi__candidate *candidate) {
    gpi__problem problem = problem_of(device.context, desc), inside;
    gemmepi_plan *plan = NULL;
    CHECK(!gpi__not_inside(&problem), "%s: %s", desc->formula, gpi__not_inside(&problem));
    inside = gpi__problem_inside(&problem);
    if (takes(candidate, &inside))
        plan = plan_by(device.context, &problem, candidate, 0);
    gpi__drop_formulas(device.context, &problem);
    return plan;
}

static void drop_world(world *w) {
    int i;
    drop_table(&w->a), drop_table(&w->b), drop_table(&w->d);
    drop_table(&w->c_matrix), drop_table(&w->scale), drop_table(&w->amax);
    for (i = 0; i < w->count; i++)
        if (w->operands[i].o.kind != GEMMEPI_NUMBER)
            drop_table(&w->operands[i]);
}

/* odd: with odd strides, in F16, by a kernel for alpha 1 and no C; else by one that has both, where adds_c says so. */
static void run_case(const formula_case *c, int cut, int64_t m, int64_t n, int odd, int adds_c,
                     uint64_t flags) {
    gpi__candidate candidate = candidate_of(cut);
    gemmepi_operand operands[MOST];
    void *pointers[MOST];
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_plan *plan;
    gemmepi_plan_details details;
    world w;
    int i, is_fp8 = cut >= FIRST_FP8, has_long_k = candidate.parts > 1 || cut < SM90_CUTS || is_fp8;
    make_world(&w, c, m, n, has_long_k ? 1088 : 160, odd, is_fp8 || ((cut ^ odd) & 1),
               is_fp8 && gpi__sm90_fp8_shapes[candidate.shape].ping_pong ? 2 : is_fp8);
    candidate.unit_alpha = odd, candidate.is_inside = 1;
    w.adds_c = adds_c, w.flags = flags;
    describe(&w, 1, operands, pointers, &desc, &args);
    if (has_f16_sums(&candidate) && desc.a.dtype == GEMMEPI_F16)
        desc.compute = GEMMEPI_COMPUTE_F16; /* exact: multiples of 1/64, few of which are above 32 */
    plan = plan_as(&desc, &candidate);
    if (plan) {
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK &&
                  gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s by %s: %s", c->formula, details.kernel,
              gemmepi_last_error());
        describe(&w, 0, operands, pointers, &desc, &args);
        CHECK(gemmepi_matmul(host.context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        check_table(&w, &w.d, details.kernel);
        if (c->d == GEMMEPI_E4M3)
            check_table(&w, &w.amax, details.kernel);
        for (i = 0; i < w.count; i++)
            if (w.operands[i].o.output)
                check_table(&w, &w.operands[i], details.kernel);
        runs++;
    }
    drop_plan(plan);
    drop_world(&w);
}

static int cut;

static void formulas_inside_give_what_the_host_gives(void) {
    int i, taken = 0, before = runs;
    if (!device.context)
        SKIP("there is no GPU of compute capability 9.0");
    for (i = 0; taken < each && i < CASES; i++) { /* some shapes take few */
        const formula_case *c = &cases[((first < 0 ? cut * 5 : first) + i) % CASES];
        int is_small = cut >= FIRST_SMALL && cut < FIRST_FP8, runs_before = runs;
        run_case(c, cut, is_small ? 13 : 150, is_small ? 48 : 272, 0, i % 2,
                 i % 3 == 1 ? GEMMEPI_BATCH_INVARIANT : 0);
        run_case(c, cut, is_small ? 5 : 70, is_small ? 26 : 154, 1, 0, 0);
        if (strstr(c->formula, "column_"))
            run_case(c, cut, 1, 66, 1, 0, 0);
        taken += runs > runs_before;
    }
    if (runs == before)
        SKIP("the shape takes none of the products");
}

int main(int argc, char **argv) {
    const char *name = getenv("GEMMEPI_TEST_DEVICE");
    int number = name ? atoi(name) : 0;
    if (argc > 1)
        only = atoi(argv[1]);
    if (argc > 2)
        each = atoi(argv[2]);
    if (argc > 3)
        first = atoi(argv[3]);
    if (only < -1 || only >= CUTS || each < 1) {
        printf("accepted are shapes 0 to %d, and a number of formulas\n", CUTS - 1);
        return 2;
    }
    if (name && strcmp(name, "host") == 0)
        number = -1;
    if (number >= 0 && test_device_open(&device, GEMMEPI_DEVICE(number), 0) && !device.has_fused)
        test_device_close(&device), device.context = NULL;
    CHECK(test_device_open(&host, GEMMEPI_DEVICE_HOST, 0), "%s", gemmepi_last_error());
    for (cut = only < 0 ? 0 : only; cut < (only < 0 ? (int)CUTS : only + 1); cut++) {
        static char name[64];
        if (!device.context && cut > 0)
            break; /* that there is none is said once */
        snprintf(name, sizeof name, "formulas_inside_give_what_the_host_gives_shape_%d", cut);
        test_run(name, formulas_inside_give_what_the_host_gives);
    }
    test_device_close(&host);
    if (device.context)
        test_device_close(&device);
    if (device.context && !runs) {
        printf("no shape took any of the products\n");
        return test_finish(), 1;
    }
    return test_finish();
}
