/* Layers whose formula assigns reductions, as a loss does: their gradients, by blocks of rows where there is no d, against plain loops in
   double with all logits in memory. See ../products/problem.h for the devices. */
#include "../products/problem.h"

static test_device *here;

/* >>a layer of a head: words' scores of tokens, X [m, k] W [k, n] */

enum { MOST_MEMORY = 24 };

/* What a case is. Zeros: row-major, recomputed, F64, the loss of dy_lse and dy_hit for each row. */
typedef struct head {
    int m, n, k, seed;
    gemmepi_dtype dtype; /* of X, W and P; sums are F64 in F64, else F32 */
    int column_major, x_transposed, w_transposed, has_bias, saved, accumulate, padded;
    int rich; /* z = v * t + u + r * f in the place of v, with gradients of t, u, r and f; 2: f is BLOCKED, of one element, without; 3: with */
    int upstream; /* 1: dy_lse is a NUMBER, and dy_hit a SCALAR; 2: dy_hit is not listed */
    int has_d;    /* d = v * v, and ss = row_sum(d) */
    size_t limit;
    int before;  /* 1: X comes out of SILU, 2: out of RELU, whose backward goes with this one */
    int forward; /* backward runs it */
} head;

/* A tensor as it is stored, and in double as plain loops say. */
typedef struct piece {
    int lines, length, ld;
    gemmepi_dtype dtype;
    double *values; /* [lines, length] */
    void *device;
    char *before; /* what the memory had */
    size_t bytes;
} piece;

static piece pieces[MOST_MEMORY];
static int piece_count;
static rng drawn;

static double value_in(gemmepi_dtype dtype, const char *at) {
    double wide;
    float single;
    uint32_t bits = 0;
    uint16_t half;
    int64_t whole;
    switch (dtype) {
    case GEMMEPI_F64:
        memcpy(&wide, at, 8);
        return wide;
    case GEMMEPI_I64:
        memcpy(&whole, at, 8);
        return (double)whole;
    case GEMMEPI_BF16:
        memcpy(&half, at, 2);
        bits = (uint32_t)half << 16;
        memcpy(&single, &bits, 4);
        return (double)single;
    default:
        memcpy(&single, at, 4);
        return (double)single;
    }
}

/* Of a value that the type holds. */
static void put_in(gemmepi_dtype dtype, char *at, double value) {
    float single = (float)value;
    int64_t whole = (int64_t)value;
    uint32_t bits;
    uint16_t half;
    memcpy(&bits, &single, 4);
    half = (uint16_t)(bits >> 16);
    memcpy(at,
           dtype == GEMMEPI_F64    ? (void *)&value
           : dtype == GEMMEPI_I64  ? (void *)&whole
           : dtype == GEMMEPI_BF16 ? (void *)&half
                                   : (void *)&single,
           gemmepi_dtype_size(dtype));
}

static char *place_in(const piece *t, char *memory, int line, int i) {
    return memory + ((size_t)line * (size_t)t->ld + (size_t)i) * gemmepi_dtype_size(t->dtype);
}

/* Lines of values, or of what outputs have before. */
static piece *make(gemmepi_dtype dtype, int lines, int length, int padded, const double *values,
                   double before) {
    piece *t = &pieces[piece_count++];
    int line, i;
    t->lines = lines, t->length = length, t->ld = length + (lines > 1 ? padded : 0), t->dtype = dtype;
    t->bytes = gemmepi_dtype_size(dtype) * (size_t)(lines * t->ld + 1);
    t->before = (char *)malloc(t->bytes);
    for (i = 0; i < lines * t->ld + 1; i++)
        put_in(dtype, t->before + (size_t)i * gemmepi_dtype_size(dtype), before);
    for (line = 0; line < lines && values; line++)
        for (i = 0; i < length; i++)
            put_in(dtype, place_in(t, t->before, line, i), values[line * length + i]);
    CHECK(gemmepi_alloc(here->context, t->bytes, &t->device) == GEMMEPI_OK &&
              gemmepi_upload(here->context, t->device, t->before, t->bytes, here->stream) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    return t;
}

static void free_all(void) {
    while (piece_count > 0) {
        piece *t = &pieces[--piece_count];
        CHECK(gemmepi_free(here->context, t->device) == GEMMEPI_OK, "%s", gemmepi_last_error());
        free(t->before);
    }
}

/* Whether the memory has what was wanted, and what it had between the lines. by: of the largest. */
static void holds(const piece *t, const double *want, double added, double by, const char *what) {
    char *now = (char *)malloc(t->bytes);
    size_t size = gemmepi_dtype_size(t->dtype);
    double largest = 0;
    int line, i;
    CHECK(gemmepi_download(here->context, now, t->device, t->bytes, here->stream) == GEMMEPI_OK &&
              gemmepi_synchronize(here->context, here->stream) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (i = 0; i < t->lines * t->length; i++)
        largest = fabs(want[i]) > largest ? fabs(want[i]) : largest;
    for (line = 0; line < t->lines; line++)
        for (i = 0; i < t->ld; i++) {
            const char *at = place_in(t, now, line, i);
            double got = value_in(t->dtype, at),
                   wanted = i < t->length ? want[line * t->length + i] + added : 0;
            if (i >= t->length)
                CHECK(memcmp(at, place_in(t, t->before, line, i), size) == 0, "%s: between lines", what);
            else
                CHECK(fabs(got - wanted) <= by * (largest + fabs(added)), "%s (%d, %d): %.9g, not %.9g", what,
                      line, i, got, wanted);
        }
    free(now);
}

/* >>plain loops */

enum {
    X,
    W,
    B,
    T,
    U,
    R,
    F,
    P_LSE,
    P_HIT,
    LABEL,
    LSE,
    HIT,
    DX,
    DW,
    DB,
    DT,
    DU,
    DR,
    DF,
    V,
    Y,
    DY,
    G,
    Q,
    PARTS
};

static double *part[PARTS];

static double *doubles(int count) {
    return (double *)calloc((size_t)(count + 1), sizeof(double));
}

/* Multiples of 1/64, which every type holds. */
static void draw(double *to, int count, int most, double unit) {
    int i;
    for (i = 0; i < count; i++)
        to[i] = (rng_below(&drawn, 2 * most + 1) - most) * unit;
}

static void draw_inputs(const head *h) {
    int m = h->m, n = h->n, i;
    const int sizes[PARTS] = {m * h->k, h->k * n, n, 1, n, m, m * n, m,     m,     m,     m,     m,
                              m * h->k, h->k * n, n, 1, n, m, m * n, m * n, m * n, m * n, m * n, m * h->k};
    drawn = rng_seeded((uint64_t)h->seed);
    for (i = 0; i < PARTS; i++)
        part[i] = doubles(sizes[i]);
    draw(part[X], m * h->k, 32, 1.0 / 64);
    draw(part[W], h->k * n, 64, 1.0 / 64);
    draw(part[B], n, 32, 1.0 / 64);
    draw(part[U], n, 32, 1.0 / 64);
    draw(part[R], m, 32, 1.0 / 64);
    draw(part[F], m * n, 32, 1.0 / 64);
    draw(part[DY], m * n, 32, 1.0 / 64);
    draw(part[Q], m * h->k, 32, 1.0 / 16);
    part[T][0] = 1.25;
    for (i = 0; i < m; i++) {
        int weight = rng_below(&drawn, 4); /* 0: the token does not count */
        part[P_LSE][i] = h->upstream == 1 ? 0.5 : weight / 8.0;
        part[P_HIT][i] = h->upstream == 2 ? 0 : h->upstream == 1 ? -0.75 : -weight / 8.0;
        part[LABEL][i] = rng_below(&drawn, n);
    }
}

/* z, and z's and v's place in the loss. */
static void find_g(const head *h) {
    int m = h->m, n = h->n, i, j, s;
    double *z = doubles(m * n);
    for (i = 0; i < m; i++) {
        double most = -INFINITY, sum = 0;
        for (j = 0; j < n; j++) {
            double v = h->has_bias ? part[B][j] : 0;
            for (s = 0; s < h->k; s++)
                v += part[X][i * h->k + s] * part[W][s * n + j];
            part[V][i * n + j] = v;
            z[i * n + j] = h->rich ? v * part[T][0] + part[U][j] + part[R][i] * part[F][i * n + j] : v;
            most = z[i * n + j] > most ? z[i * n + j] : most;
        }
        for (j = 0; j < n; j++)
            sum += exp(z[i * n + j] - most);
        part[LSE][i] = most + log(sum);
        part[HIT][i] = z[i * n + (int)part[LABEL][i]];
        for (j = 0; j < n; j++) {
            double v = part[V][i * n + j], g;
            part[Y][i * n + j] = v * v;
            g = part[P_LSE][i] * exp(z[i * n + j] - part[LSE][i]) +
                (j == (int)part[LABEL][i] ? part[P_HIT][i] : 0);
            part[G][i * n + j] = h->has_d ? 2 * v * (part[DY][i * n + j] + part[P_LSE][i]) : g;
        }
        if (h->has_d)
            for (part[LSE][i] = 0, j = 0; j < n; j++)
                part[LSE][i] += part[Y][i * n + j];
    }
    free(z);
}

static void find_gradients(const head *h) {
    int m = h->m, n = h->n, i, j, s;
    find_g(h);
    for (i = 0; i < m; i++)
        for (j = 0; j < n; j++) {
            double g = part[G][i * n + j];
            part[DT][0] += g * part[V][i * n + j];
            part[DU][j] += g;
            part[DR][i] += g * part[F][i * n + j];
            part[DF][i * n + j] = g * part[R][i];
            g *= h->rich ? part[T][0] : 1;
            part[DB][j] += g;
            for (s = 0; s < h->k; s++) {
                part[DX][i * h->k + s] += g * part[W][s * n + j];
                part[DW][s * n + j] += g * part[X][i * h->k + s];
            }
        }
}

/* dX goes through the activation of the layer before. */
static void go_through_before(const head *h) {
    int i;
    for (i = 0; i < h->m * h->k; i++) {
        double p = part[Q][i], s = 1 / (1 + exp(-p));
        part[DX][i] *= h->before == 1 ? s * (1 + p * (1 - s)) : p > 0;
    }
}

/* >>the layer */

enum { MOST_LISTED = 16 };

static gemmepi_linear_desc desc;
static gemmepi_linear_args args;
static gemmepi_operand listed[MOST_LISTED];
static void *pointers[MOST_LISTED];
static const double number = 0.5;

static void list(const char *name, gemmepi_operand_kind kind, int output, const piece *t) {
    gemmepi_operand *o = &listed[desc.operand_count];
    memset(o, 0, sizeof *o);
    o->name = name, o->kind = kind, o->output = output;
    o->dtype = t ? t->dtype : GEMMEPI_DTYPE_DEFAULT;
    o->ld = kind >= GEMMEPI_FULL ? t->ld : 0;
    pointers[desc.operand_count++] = t ? t->device : gemmepi_number(&number);
}

/* A matrix as it is mathematically, stored or turned. */
static piece *make_matrix(gemmepi_dtype dtype, const double *values, int lines, int length, int turned,
                          int padded, double before) {
    double *other = doubles(lines * length);
    piece *t;
    int i, j;
    for (i = 0; i < lines && values; i++)
        for (j = 0; j < length; j++)
            other[turned ? j * lines + i : i * length + j] = values[i * length + j];
    t = make(dtype, turned ? length : lines, turned ? lines : length, padded, values ? other : NULL, before);
    free(other);
    return t;
}

static void matrix_holds(const piece *t, const double *want, int turned, double added, double by,
                         const char *what) {
    double *other = doubles(t->lines * t->length);
    int i, j, lines = turned ? t->length : t->lines, length = turned ? t->lines : t->length;
    for (i = 0; i < lines; i++)
        for (j = 0; j < length; j++)
            other[turned ? j * lines + i : i * length + j] = want[i * length + j];
    holds(t, other, added, by, what);
    free(other);
}

/* What a case has in memory, by its name in plain loops. */
static piece *at[PARTS];
static piece *preact, *p_before;
static gemmepi_linear_desc desc_before;
static gemmepi_linear_args args_before;

/* RELU's bits, 128 for each row: of fewer than 53 columns. */
static piece *make_mask(const head *h) {
    double *words = doubles(2 * h->m);
    piece *t;
    int i, s;
    for (i = 0; i < h->m; i++)
        for (s = 0; s < h->k; s++)
            words[2 * i] += part[Q][i * h->k + s] > 0 ? ldexp(1, s) : 0;
    t = make(GEMMEPI_I64, h->m, 2, 0, words, 0);
    free(words);
    return t;
}

static void make_tensors(const head *h) {
    gemmepi_dtype narrow = h->dtype ? h->dtype : GEMMEPI_F64,
                  wide = narrow == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    double before = h->accumulate ? 0.25 : NAN;
    int m = h->m, n = h->n, k = h->k, p = h->padded, i;
    const struct {
        int which, length;
        double before;
    } vectors[] = {{B, n, 0},       {T, 1, 0},       {U, n, 0},       {R, m, 0},
                   {P_LSE, m, 0},   {P_HIT, m, 0},   {LSE, m, NAN},   {HIT, m, NAN},
                   {DB, n, before}, {DT, 1, before}, {DU, n, before}, {DR, m, NAN}};
    at[X] = make_matrix(narrow, part[X], m, k, h->x_transposed, p, 0);
    at[W] = make_matrix(narrow, part[W], k, n, h->w_transposed, p, 0);
    at[DX] = make_matrix(wide, NULL, m, k, h->x_transposed, p, before);
    at[DW] = make_matrix(wide, NULL, k, n, h->w_transposed, p, before);
    for (i = 0; i < (int)(sizeof vectors / sizeof vectors[0]); i++)
        at[vectors[i].which] =
            make(wide, 1, vectors[i].length, 0,
                 vectors[i].before == 0 && vectors[i].which < LSE ? part[vectors[i].which] : NULL,
                 vectors[i].before);
    at[F] = make(wide, m, n, p, part[F], 0);
    at[DF] = make(wide, m, n, p, NULL, NAN);
    at[LABEL] = make(GEMMEPI_I64, 1, m, 0, part[LABEL], 0);
    at[Y] = make(wide, m, n, p, NULL, NAN);
    at[DY] = make(wide, m, n, p, part[DY], 0);
    preact = make(wide, m, n, p, NULL, NAN);
    p_before = h->before == 2 ? make_mask(h) : make(wide, m, k, p, part[Q], 0);
}

static gemmepi_matrix stored(const piece *t, int transposed) {
    gemmepi_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    matrix.dtype = t->dtype, matrix.ld = t->ld, matrix.transposed = transposed;
    return matrix;
}

static void list_operands(const head *h) {
    gemmepi_operand_kind row = h->column_major ? GEMMEPI_PER_COLUMN : GEMMEPI_PER_ROW;
    gemmepi_operand_kind column = h->column_major ? GEMMEPI_PER_ROW : GEMMEPI_PER_COLUMN;
    int f;
    if (h->has_d) {
        list("ss", row, 1, at[LSE]);
        list("dy_ss", row, 0, at[P_LSE]);
        return;
    }
    if (h->upstream == 1) /* ahead of the output */
        list("dy_lse", GEMMEPI_NUMBER, 0, NULL);
    list("lse", row, 1, at[LSE]);
    list("label", row, 0, at[LABEL]);
    list("hit", row, 1, at[HIT]);
    if (h->upstream == 1)
        list("dy_hit", GEMMEPI_SCALAR, 0, at[P_HIT]);
    if (h->upstream != 1)
        list("dy_lse", row, 0, at[P_LSE]);
    if (h->upstream == 0)
        list("dy_hit", row, 0, at[P_HIT]);
    if (!h->rich)
        return;
    list("t", GEMMEPI_SCALAR, 0, at[T]), list("d_t", GEMMEPI_SCALAR, 1, at[DT]);
    list("u", column, 0, at[U]), list("d_u", column, 1, at[DU]);
    list("r", row, 0, at[R]), list("d_r", row, 1, at[DR]);
    listed[desc.operand_count - 5].accumulate = listed[desc.operand_count - 3].accumulate = h->accumulate;
    f = desc.operand_count;
    list("f", h->rich > 1 ? GEMMEPI_BLOCKED : GEMMEPI_FULL, 0, at[F]);
    if (h->rich != 2)
        list("d_f", listed[f].kind, 1, at[DF]);
    for (; h->rich > 1 && f < desc.operand_count; f++)
        listed[f].block_rows = listed[f].block_columns = 1;
}

static const char *formula_of(const head *h) {
    if (h->has_d)
        return h->column_major ? "d = v * v; ss = column_sum(d)" : "d = v * v; ss = row_sum(d)";
    if (h->rich)
        return h->column_major
                   ? "z = v * t + u + r * f; lse = column_logsumexp(z); hit = column_sum(row == label ? z : 0)"
                   : "z = v * t + u + r * f; lse = row_logsumexp(z); hit = row_sum(column == label ? z : 0)";
    return h->column_major ? "lse = column_logsumexp(v); hit = column_sum(row == label ? v : 0)"
                           : "lse = row_logsumexp(v); hit = row_sum(column == label ? v : 0)";
}

static void describe_before(const head *h) {
    memset(&desc_before, 0, sizeof desc_before);
    memset(&args_before, 0, sizeof args_before);
    desc_before.m = desc.m, desc_before.n = desc.n, desc_before.k = 1, desc_before.order = desc.order;
    *(h->column_major ? &desc_before.m : &desc_before.n) = h->k;
    desc_before.activation = h->before == 1 ? GEMMEPI_SILU : GEMMEPI_RELU;
    desc_before.flags = GEMMEPI_LINEAR_SAVED;
    desc_before.a.dtype = at[X]->dtype;
    desc_before.preact.ld = h->before == 1 ? p_before->ld : 128;
    desc_before.preact.dtype = h->before == 1 ? p_before->dtype : GEMMEPI_DTYPE_DEFAULT;
    args_before.preact = p_before->device;
    desc.before = &desc_before, args.before = &args_before;
}

static void describe(const head *h) {
    int across = h->column_major;
    gemmepi_matrix x = stored(at[X], h->x_transposed), w = stored(at[W], h->w_transposed);
    gemmepi_matrix dx = stored(at[DX], h->x_transposed), dw = stored(at[DW], h->w_transposed);
    if (!h->padded)
        x.ld = w.ld = dx.ld = dw.ld = 0;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.m = across ? h->n : h->m, desc.n = across ? h->m : h->n, desc.k = h->k;
    desc.order = across ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc.a = across ? w : x, desc.b = across ? x : w, desc.da = across ? dw : dx, desc.db = across ? dx : dw;
    desc.flags = GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS;
    desc.flags |= h->forward ? GEMMEPI_LINEAR_FORWARD
                  : h->saved ? GEMMEPI_LINEAR_SAVED
                             : GEMMEPI_LINEAR_RECOMPUTE;
    desc.flags |= h->has_bias ? GEMMEPI_LINEAR_BIAS : 0;
    if (h->accumulate)
        desc.flags |= GEMMEPI_ACCUMULATE_DA | GEMMEPI_ACCUMULATE_DB | GEMMEPI_ACCUMULATE_DBIAS;
    desc.bias.dtype = desc.dbias.dtype = at[B]->dtype;
    desc.formula = formula_of(h), desc.operands = listed;
    desc.workspace_limit = h->limit;
    list_operands(h);
    args.a = across ? at[W]->device : at[X]->device, args.b = across ? at[X]->device : at[W]->device;
    args.da = across ? at[DW]->device : at[DX]->device, args.db = across ? at[DX]->device : at[DW]->device;
    args.bias = h->has_bias ? at[B]->device : NULL, args.dbias = at[DB]->device;
    args.operands = pointers;
    desc.alignment = 8; /* malloc may give no more */
    if (h->saved && !h->forward)
        desc.preact = stored(preact, 0), args.preact = preact->device;
    if (h->forward)
        desc.preact.dtype = preact->dtype;
    if (h->before)
        describe_before(h);
    if (h->has_d)
        desc.y = stored(at[Y], 0), desc.dy = stored(at[DY], 0), args.y = at[Y]->device,
        args.dy = at[DY]->device;
}

static void check_results(const head *h) {
    double by = at[X]->dtype == GEMMEPI_F64 ? 1e-12 : at[X]->dtype == GEMMEPI_F32 ? 1e-5 : 8e-3;
    double added = h->accumulate ? 0.25 : 0;
    holds(at[LSE], part[LSE], 0, by, "lse");
    if (!h->has_d)
        holds(at[HIT], part[HIT], 0, by, "hit");
    else
        holds(at[Y], part[Y], 0, by, "y");
    matrix_holds(at[DX], part[DX], h->x_transposed, added, by, "dx");
    matrix_holds(at[DW], part[DW], h->w_transposed, added, by, "dw");
    holds(at[DB], part[DB], added, by, "dbias");
    if (!h->rich)
        return;
    holds(at[DT], part[DT], added, by * 4, "d_t");
    holds(at[DU], part[DU], added, by, "d_u");
    holds(at[DR], part[DR], 0, by, "d_r");
    if (h->rich != 2)
        holds(at[DF], part[DF], 0, by, "d_f");
}

static void start(const head *h) {
    draw_inputs(h);
    find_gradients(h);
    if (h->before)
        go_through_before(h);
    make_tensors(h);
    describe(h);
}

static void finish(void) {
    int i;
    free_all();
    for (i = 0; i < PARTS; i++)
        free(part[i]);
}

/* What so many rows of G are. */
static size_t limit_of_rows(int rows, int n, size_t size) {
    return (size_t)rows * (size_t)((n + 7) / 8 * 8) * size + 512;
}

/* On a GPU products need workspace, too: the limit is as much above the least one as the case says. */
static void allow_for_products(const head *h) {
    size_t wide = h->dtype == GEMMEPI_BF16  ? 2
                  : h->dtype == GEMMEPI_F32 ? 4
                                            : 8,
           of_rows = limit_of_rows(128, h->n, wide);
    unsigned long long least = 0;
    gemmepi_plan *plan;
    const char *needs;
    if (!h->limit || here->is_host)
        return;
    desc.workspace_limit = 1;
    CHECK(gemmepi_plan_linear_backward(here->context, &desc, &plan) == GEMMEPI_INVALID_ARGUMENT &&
              (needs = strstr(gemmepi_last_error(), "needs ")) != NULL &&
              sscanf(needs, "needs %llu", &least) == 1,
          "%s", gemmepi_last_error());
    desc.workspace_limit = (size_t)least + (h->limit > of_rows ? h->limit - of_rows : 0);
}

static void check_as_it_is(const head *h) {
    start(h);
    allow_for_products(h);
    if (!h->forward)
        CHECK(gemmepi_linear(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
    CHECK(gemmepi_linear_backward(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    check_results(h);
    CHECK(!test_failures_here,
          "m %d n %d k %d, dtype %d, column-major %d, transposed %d %d, saved %d, rich %d, limit %d", h->m,
          h->n, h->k, (int)h->dtype, h->column_major, h->x_transposed, h->w_transposed, h->saved, h->rich,
          (int)h->limit);
    finish();
}

/* Forward and then backward, and backward that runs forward. */
static void check(const head *h) {
    head both = *h;
    check_as_it_is(h);
    both.forward = 1;
    if (!h->has_d)
        check_as_it_is(&both);
}

/* >>tests */

static void gradients_by_blocks_are_those_of_all_logits(void) {
    static const int sizes[][3] = {{300, 33, 5}, {256, 40, 8}, {129, 17, 3},
                                   {1, 50, 7},   {500, 9, 16}, {128, 1, 1}};
    int s, form, rows;
    for (s = 0; s < (int)(sizeof sizes / sizeof sizes[0]); s++)
        for (form = 0; form < 16; form++)
            for (rows = 0; rows < 3; rows++) {
                head h = {sizes[s][0], sizes[s][1], sizes[s][2], 0, GEMMEPI_F64, 0, 0, 0, 0,
                          0,           0,           0,           0, 0,           0, 0, 0, 0};
                int key[2] = {s, form};
                if (!test_takes(test_key(key, 2)))
                    continue;
                h.seed = s, h.column_major = form & 1, h.x_transposed = form >> 1 & 1,
                h.w_transposed = form >> 2 & 1;
                h.padded = (form + s) & 1, h.has_bias = form >> 3, h.saved = (s + form) % 3 == 0;
                h.accumulate = (s + form / 2) % 2, h.rich = (s + form) % 4 == 1;
                h.limit = rows ? limit_of_rows(rows == 1 ? 128 : 256, h.n, 8) : 0;
                check(&h);
            }
}

static void gradients_of_operands_add_up_over_blocks(void) {
    int form;
    for (form = 0; form < 8; form++) {
        head h = {300, 34, 6, 7, GEMMEPI_F64, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0};
        h.column_major = form & 1, h.saved = form >> 1 & 1, h.accumulate = form >> 2;
        h.limit = limit_of_rows(128, h.n, 8);
        check(&h);
    }
}

static void blocks_of_one_row_go_with_blocks_of_rows(void) {
    int form;
    for (form = 0; form < 2; form++) {
        head h = {300, 34, 6, 7, GEMMEPI_F64, 0, 0, 0, 1, 0, 0, 1, 2, 0, 0, 0, 0, 0};
        h.column_major = form;
        h.limit = limit_of_rows(128, h.n, 8);
        check(&h);
    }
}

/* Their gradients have terms of all rows in workspace. */
static void blocks_with_gradients_are_of_all_rows(void) {
    int form;
    for (form = 0; form < 2; form++) {
        head h = {300, 34, 6, 7, GEMMEPI_F64, 0, 0, 0, 1, 0, 0, 1, 3, 0, 0, 0, 0, 0};
        h.column_major = form;
        check(&h);
    }
}

static void what_comes_in_is_a_number_or_nothing(void) {
    int upstream, order;
    for (upstream = 1; upstream < 3; upstream++)
        for (order = 0; order < 2; order++) {
            head h = {200, 19, 5, 3, GEMMEPI_F64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
            h.upstream = upstream, h.column_major = order;
            h.limit = limit_of_rows(128, h.n, 8);
            check(&h);
        }
}

static void dx_goes_through_the_layer_before(void) {
    int form;
    for (form = 0; form < 8; form++) {
        head h = {300, 34, 6, 7, GEMMEPI_F64, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
        h.column_major = form & 1, h.saved = form >> 1 & 1, h.before = 1 + (form >> 2);
        h.limit = limit_of_rows(128, h.n, 8);
        check(&h);
    }
}

/* Two layers whose gradients are one formula. */
static void what_backward_writes_of_forward_is_its_own(void) {
    head h = {200, 19, 5, 3, GEMMEPI_F64, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1};
    int i;
    start(&h);
    desc.formula = "lse = row_logsumexp(v); hit = row_sum(2 * (column == label ? v : 0))";
    CHECK(gemmepi_linear_backward(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    for (i = 0; i < h.m; i++)
        part[HIT][i] *= 2;
    holds(at[HIT], part[HIT], 0, 1e-12, "hit");
    desc.formula = formula_of(&h);
    CHECK(gemmepi_linear_backward(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    for (i = 0; i < h.m; i++)
        part[HIT][i] /= 2;
    holds(at[HIT], part[HIT], 0, 1e-12, "hit");
    finish();
}

static void outputs_stand_beside_d(void) {
    int form;
    for (form = 0; form < 4; form++) {
        head h = {37, 21, 9, 5, GEMMEPI_F64, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0};
        h.column_major = form & 1, h.saved = form >> 1;
        check(&h);
    }
}

static void narrow_types_are_near_what_loops_give(void) {
    int form;
    for (form = 0; form < 4; form++) {
        head h = {1000, 264, 64, 11, GEMMEPI_BF16, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
        h.dtype = form & 1 ? GEMMEPI_BF16 : GEMMEPI_F32;
        h.n -= form >> 1;
        h.limit = limit_of_rows(384, h.n, form & 1 ? 2 : 4);
        check(&h);
    }
}

/* The numbers of blocks, and that they keep to the limit. */
static void a_plan_keeps_to_the_limit_and_says_its_blocks(void) {
    head h = {1000, 264, 64, 11, GEMMEPI_BF16, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    char text[16384];
    h.limit = limit_of_rows(384, h.n, 2);
    start(&h);
    allow_for_products(&h);
    CHECK(gemmepi_plan_linear_backward(here->context, &desc, &plan) == GEMMEPI_OK &&
              gemmepi_plan_info(plan, &details) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    CHECK(details.workspace_size <= desc.workspace_limit, "%d", (int)details.workspace_size);
    gemmepi_plan_explain(plan, text, sizeof text);
    CHECK(strstr(text, "by blocks of ") && strstr(text, "the first block, "), "%s", text);
    if (here->is_host)
        CHECK(strstr(text, "by blocks of 384 rows") && strstr(text, "the last block, 232 rows"), "%s", text);
    gemmepi_plan_destroy(plan);
    finish();
}

static void is_refused(int backward, const char *words) {
    gemmepi_status status = backward ? gemmepi_linear_backward(here->context, &desc, &args, here->stream)
                                     : gemmepi_linear(here->context, &desc, &args, here->stream);
    CHECK(status == GEMMEPI_INVALID_ARGUMENT && strstr(gemmepi_last_error(), words) != NULL, "%s: %s, not %s",
          gemmepi_status_name(status), gemmepi_last_error(), words);
    describe(&(head){200, 19, 5, 3, GEMMEPI_F64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

static void a_limit_that_is_too_small_says_what_it_needs(void) {
    head h = {200, 19, 5, 3, GEMMEPI_F64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    if (!here->is_host)
        SKIP("on a GPU products need workspace, too");
    start(&h);
    desc.workspace_limit = 24575,
    is_refused(1, "desc.workspace_limit is 24575 bytes (0 stands for 256 MiB), but backward "
                  "needs 24576 for 128 rows, its smallest block: allow as many");
    desc.workspace_limit = 24576;
    CHECK(gemmepi_linear_backward(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    desc.workspace_limit = 24576,
    desc.formula = "lse = row_logsumexp(row < 150 ? v : 0); hit = row_sum(label * v)";
    is_refused(1, "needs 38400 for 200 rows, which cannot be divided into blocks");
    desc.flags ^= GEMMEPI_LINEAR_FORWARD | GEMMEPI_LINEAR_RECOMPUTE,
        desc.operand_count = 4; /* without dy_hit */
    desc.workspace_limit = 24576,
    desc.formula = "lse = row_logsumexp(v); hit = row_sum(row < 150 ? label * v : 0)";
    is_refused(1, "needs 38400 for 200 rows, which cannot be divided into blocks");
    desc.formula = "lse = row_logsumexp(row < 150 ? v : 0); hit = row_sum(label * v)";
    CHECK(gemmepi_linear_backward(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    finish();
}

static void blocks_with_gradients_are_not_divided(void) {
    head h = {300, 34, 6, 7, GEMMEPI_F64, 0, 0, 0, 1, 0, 0, 1, 3, 0, 0, 0, 0, 0};
    start(&h);
    desc.workspace_limit = limit_of_rows(128, h.n, 8);
    is_refused(1, "for 300 rows, which cannot be divided into blocks");
    finish();
}

static void what_does_not_go_together_is_refused(void) {
    head h = {200, 19, 5, 3, GEMMEPI_F64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    int b;
    start(&h); /* operands: lse, label, hit, dy_lse, dy_hit */
    for (b = 0; b < 2; b++) {
        listed[3].name = "dy_less",
        is_refused(b, "desc.operands[3] is called dy_less, but there is no output operand less");
        listed[3].output = 1,
        is_refused(b, "desc.operands[3].output (of dy_lse) is 1; names that begin with dy_");
        listed[3].name = "dy_label", is_refused(b, "there is no output operand label");
        desc.formula = "lse = row_logsumexp(v * dy_lse); hit = row_sum(label * v)";
        is_refused(
            b, "desc.formula has dy_lse, an operand that backward reads by itself: leave it out of the text");
        listed[0].amax = 1,
        is_refused(b, "desc.operands[0].amax (of lse) is 1; outputs of a layer's formula have none");
        desc.formula = "hit = row_sum(label * v)", is_refused(b, "lse, an output, has not been assigned");
        desc.formula = "d = v; lse = row_logsumexp(v); hit = row_sum(label * v)",
        desc.workspace_limit = 1 << 20;
        is_refused(b,
                   "desc.workspace_limit is 1048576; it goes with a formula that does not assign the result");
        desc.formula = NULL, desc.operands = NULL, desc.operand_count = 0, desc.workspace_limit = 1;
        desc.flags &= ~GEMMEPI_LINEAR_RECOMPUTE;
        is_refused(b, "desc.workspace_limit is 1; it goes with a formula");
    }
    desc.flags |= GEMMEPI_LINEAR_FORWARD;
    is_refused(
        1,
        "desc.flags has LINEAR_FORWARD and LINEAR_RECOMPUTE; P is in workspace then: leave out one of them");
    desc.flags ^= GEMMEPI_LINEAR_FORWARD | GEMMEPI_LINEAR_RECOMPUTE, args.preact = preact->device;
    is_refused(1, "args.preact is given");
    desc.flags ^= GEMMEPI_LINEAR_FORWARD | GEMMEPI_LINEAR_RECOMPUTE, pointers[2] = NULL;
    is_refused(1, "args.operands[2] (of hit) is NULL; this backward needs it");
    desc.flags ^= GEMMEPI_LINEAR_FORWARD | GEMMEPI_LINEAR_RECOMPUTE, pointers[2] = args.da;
    is_refused(1, "overlap");
    desc.flags ^= GEMMEPI_LINEAR_FORWARD | GEMMEPI_LINEAR_RECOMPUTE,
        desc.formula = "d = v; lse = row_logsumexp(v); hit = row_sum(label * v)";
    is_refused(1, "desc.flags has LINEAR_FORWARD; it goes with a formula that does not assign the result");
    args.y = at[Y]->device, is_refused(0, "args.y is given");
    args.dy = at[DY]->device, is_refused(1, "args.dy is given");
    listed[3].kind = GEMMEPI_PER_COLUMN,
    is_refused(1, "desc.operands[3].kind (of dy_lse) is PER_COLUMN; it is that of lse, PER_ROW");
    pointers[3] = NULL, is_refused(1, "args.operands[3] (of dy_lse) is NULL; this backward needs it");
    listed[2].accumulate = 1; /* hit: forward adds to it, and backward lets it be */
    CHECK(gemmepi_linear_backward(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    describe(&h);
    pointers[0] = NULL, is_refused(1, "args.operands[0] (of lse) is NULL; this backward needs it");
    desc.operand_count = 3, is_refused(1, "desc.formula does not assign d, and no operand is called dy_NAME");
    desc.formula = "lse = row_max(v); hit = row_sum(label * v)";
    is_refused(1, "row_max, which lse is assigned, has no derivative");
    finish();
}

static int runs_formulas(void) {
    gemmepi_operand lse;
    gemmepi_matmul_desc probe;
    gemmepi_plan *plan = NULL;
    int runs;
    memset(&lse, 0, sizeof lse);
    memset(&probe, 0, sizeof probe);
    lse.name = "lse", lse.kind = GEMMEPI_PER_ROW, lse.output = 1;
    probe.m = probe.n = probe.k = 8;
    probe.formula = "lse = row_logsumexp(v)", probe.operands = &lse, probe.operand_count = 1;
    runs = gemmepi_plan_matmul(here->context, &probe, &plan) == GEMMEPI_OK;
    gemmepi_plan_destroy(plan);
    return runs;
}

static void run_all(void) {
    RUN(gradients_by_blocks_are_those_of_all_logits);
    RUN(gradients_of_operands_add_up_over_blocks);
    RUN(blocks_of_one_row_go_with_blocks_of_rows);
    RUN(blocks_with_gradients_are_of_all_rows);
    RUN(what_comes_in_is_a_number_or_nothing);
    RUN(dx_goes_through_the_layer_before);
    RUN(what_backward_writes_of_forward_is_its_own);
    RUN(outputs_stand_beside_d);
    RUN(narrow_types_are_near_what_loops_give);
    RUN(a_plan_keeps_to_the_limit_and_says_its_blocks);
    RUN(a_limit_that_is_too_small_says_what_it_needs);
    RUN(blocks_with_gradients_are_not_divided);
    RUN(what_does_not_go_together_is_refused);
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        if (runs_formulas())
            run_all();
        else
            printf("skip it runs no formulas\n");
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
