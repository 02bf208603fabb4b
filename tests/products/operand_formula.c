/* operand_formula [COUNT [SEED]], without them 400, 16 on a GPU: products whose a, b or both are made by formulas, drawn: sizes, orders, transposed or not, batches, strides,
   types, results with and without a formula. All numbers are small and whole, and scales are 2, or powers of two that are found of what is
   made in fp8, so that every result is exact but those of two in fp8 on a GPU.
   Then what is refused, and in what words. On the host and, if there is one, on the GPU that GEMMEPI_TEST_DEVICE numbers. */
#include "problem.h"

static test_device *here;
static int draws; /* 0: as many as suit the device */
static uint64_t first_seed = 1;

/* >>what is drawn */

enum { SIDES = 2, PER_SIDE = 6, OPERANDS = SIDES * PER_SIDE + 1, BIAS = OPERANDS - 1, MOST_BATCH = 3 };
enum { OF_ROW, OF_COLUMN, OF_BOTH, SCALAR, NUMBER, OF_BLOCK };

/* $ is the side's letter. The stored matrix is times as wide as what is made, along its contiguous axis, through the divisor. */
typedef struct making {
    const char *text;
    int times, divisor;
    unsigned operands; /* bits: which of the six it reads */
} making;

static const making makings[] = {
    {"$ * r$ * c$", 1, 1, 1u << OF_ROW | 1u << OF_COLUMN},
    {"t = $ + f$; t * t", 1, 1, 1u << OF_BOTH},
    {"left($) * right($);", 2, 1, 0},
    {"even($) - odd($) /* of pairs */", 2, 1, 0},
    {"pair($, -$)", 1, 2, 0},
    {"column < 3 && row > 1 ? 2 * $ : $ + row", 1, 1, 0},
    {"$ * s$ + n$", 1, 1, 1u << SCALAR | 1u << NUMBER},
    {"part($, 2, 3) + part($, 0, 3) * r$", 3, 1, 1u << OF_ROW},
    {"$ > 0 ? c$ : $ + item", 1, 1, 1u << OF_COLUMN},
    {"left($) * c$ + right($) * f$ * r$", 2, 1, 1u << OF_COLUMN | 1u << OF_BOTH | 1u << OF_ROW},
    {"($ - 1) * g$", 1, 1, 1u << OF_BLOCK},
    {"pair($, 2 * $) + f$ * r$ - c$", 1, 2, 1u << OF_COLUMN | 1u << OF_BOTH | 1u << OF_ROW},
    {"$ + depth", 1, 1, 0},
};
enum { MAKINGS = sizeof makings / sizeof *makings, PLAIN = -1 };

/* A tensor on the host: doubles and what is uploaded of them. */
typedef struct drawn {
    gemmepi_dtype dtype;
    int64_t lines, length, ld, stride, count;
    double *values;
    char *device;
} drawn;

typedef struct side {
    int making; /* a row of makings, or PLAIN */
    int transposed;
    int64_t rows, columns; /* of op() */
    int lines_are_rows;
    gemmepi_dtype compute;
    gemmepi_scale_mode found; /* of what is made, in fp8 */
    double *multiplied;       /* op(), an item after another */
    char text[80];
    drawn stored, operands[PER_SIDE];
    int64_t block[2];
    float scale; /* 0: there is none */
    float *device_scale;
} side;

typedef struct draw {
    int64_t m, n, k, batch;
    gemmepi_order order;
    int has_formula;
    side sides[SIDES];
    drawn bias, d;
    gemmepi_operand operands[OPERANDS];
    void *pointers[OPERANDS];
    char names[OPERANDS][4];
    double number[SIDES];
} draw;

static double small_number(rng *random) {
    return rng_below(random, 7) - 3;
}

static int is_packed(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_I4 || dtype == GEMMEPI_E2M1;
}

static int packed_code(gemmepi_dtype dtype, int value) {
    static const int e2m1[] = {0, 2, 4, 5}; /* of 0 to 3 */
    return dtype == GEMMEPI_I4 ? value & 15 : value < 0 ? 8 | e2m1[-value] : e2m1[value];
}

static void fill_tensor(drawn *t, rng *random, int64_t batch) {
    int64_t i;
    char *bytes;
    size_t size = gemmepi_dtype_size(t->dtype);
    t->count = (batch - 1) * t->stride + (t->lines - 1) * t->ld + t->length;
    t->values = (double *)malloc((size_t)t->count * sizeof(double));
    bytes = (char *)calloc(1, (size_t)t->count * size);
    for (i = 0; i < t->count; i++) {
        t->values[i] = small_number(random);
        if (is_packed(t->dtype)) /* the first of two in the low half */
            bytes[i / 2] = (char)(bytes[i / 2] | packed_code(t->dtype, (int)t->values[i]) << 4 * (i % 2));
        else
            oracle_encode(t->dtype, bytes + (size_t)i * size, t->values[i]);
    }
    CHECK(gemmepi_alloc(here->context, (size_t)t->count * size + 16, (void **)&t->device) == GEMMEPI_OK &&
              gemmepi_upload(here->context, t->device, bytes, (size_t)t->count * size, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    free(bytes);
}

static drawn drawn_tensor(rng *random, gemmepi_dtype dtype, int64_t lines, int64_t length, int64_t batch,
                          int shares) {
    drawn t;
    memset(&t, 0, sizeof t);
    t.dtype = dtype, t.lines = lines, t.length = length;
    t.ld = length + (rng_one_in(random, 2) ? rng_below(random, 9) : 0);
    t.ld += is_packed(dtype) ? t.ld % 2 : 0;
    t.stride = batch > 1 && !shares ? lines * t.ld + (is_packed(dtype) ? 2 : 1) * rng_below(random, 5) : 0;
    fill_tensor(&t, random, batch);
    return t;
}

static void draw_text(side *s, char letter) {
    const char *from = makings[s->making].text;
    char *to = s->text;
    for (; *from; from++)
        *to++ = *from == '$' ? letter : *from;
    *to = 0;
}

/* Operands of one side, each of which may lie in other types and have items. */
static void draw_operands(draw *w, int which, rng *random) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_I8};
    static const gemmepi_operand_kind kinds[] = {GEMMEPI_PER_ROW, GEMMEPI_PER_COLUMN, GEMMEPI_FULL,
                                                 GEMMEPI_SCALAR,  GEMMEPI_NUMBER,     GEMMEPI_BLOCKED};
    side *s = &w->sides[which];
    int i;
    s->block[0] = 1 + rng_below(random, 8), s->block[1] = 1 + rng_below(random, 8);
    for (i = 0; i < PER_SIDE; i++) {
        int at = which * PER_SIDE + i, has_lines = i == OF_BOTH || i == OF_BLOCK;
        gemmepi_operand *o = &w->operands[at];
        drawn *t = &s->operands[i];
        int64_t rows = i == OF_BLOCK ? (s->rows - 1) / s->block[0] + 1 : s->rows;
        int64_t columns = i == OF_BLOCK ? (s->columns - 1) / s->block[1] + 1 : s->columns;
        int64_t lines = !has_lines ? 1 : s->lines_are_rows ? rows : columns;
        int64_t length = has_lines        ? (s->lines_are_rows ? columns : rows)
                         : i == OF_ROW    ? rows
                         : i == OF_COLUMN ? columns
                                          : 1;
        snprintf(w->names[at], sizeof w->names[at], "%c%c", "rcfsng"[i], "ab"[which]);
        o->name = w->names[at], o->kind = kinds[i];
        if (i == NUMBER) {
            w->number[which] = small_number(random);
            w->pointers[at] = gemmepi_number(&w->number[which]);
            continue;
        }
        if (s->making == PLAIN || !(makings[s->making].operands >> i & 1)) { /* nobody reads it */
            o->dtype = GEMMEPI_F32;
            o->block_rows = o->block_columns = i == OF_BLOCK;
            continue;
        }
        *t = drawn_tensor(random,
                          i == OF_BLOCK && length % 2 == 0 && rng_one_in(random, 2)
                              ? GEMMEPI_I4
                              : dtypes[rng_below(random, 4)],
                          lines, length, w->batch, rng_one_in(random, 2));
        o->dtype = t->dtype, o->batch_stride = t->stride, o->ld = has_lines ? t->ld : 0;
        if (i == OF_BLOCK)
            o->block_rows = s->block[0], o->block_columns = s->block[1];
        w->pointers[at] = t->device;
    }
}

/* One that is made of what is as wide as its formula says, or is multiplied as it is. */
static void draw_side(draw *w, int which, gemmepi_matrix *matrix, rng *random) {
    static const gemmepi_dtype stored[] = {GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_I8,
                                           GEMMEPI_E4M3, GEMMEPI_I4,  GEMMEPI_E2M1};
    static const gemmepi_dtype computed[] = {GEMMEPI_DTYPE_DEFAULT, GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F32};
    side *s = &w->sides[which];
    int64_t lines, length;
    gemmepi_dtype dtype;
    s->making = rng_one_in(random, 4) ? PLAIN : rng_below(random, MAKINGS);
    s->transposed = rng_one_in(random, 2);
    s->rows = which ? w->k : w->m, s->columns = which ? w->n : w->k;
    s->lines_are_rows = (w->order == GEMMEPI_ROW_MAJOR) != s->transposed;
    lines = s->lines_are_rows ? s->rows : s->columns, length = s->lines_are_rows ? s->columns : s->rows;
    if (s->making != PLAIN && length % makings[s->making].divisor)
        s->making = 0;
    if (s->making != PLAIN)
        length = length * makings[s->making].times / makings[s->making].divisor;
    dtype = stored[rng_below(random, s->making == PLAIN ? 3 : 7)];
    if (is_packed(dtype) && length % 2)
        dtype = GEMMEPI_BF16;
    s->stored = drawn_tensor(random, dtype, lines, length, w->batch, rng_one_in(random, 3));
    matrix->dtype = s->stored.dtype, matrix->transposed = s->transposed;
    matrix->ld = s->stored.ld, matrix->batch_stride = s->stored.stride;
    draw_operands(w, which, random);
    if (s->making == PLAIN)
        return;
    draw_text(s, "ab"[which]);
    matrix->formula = s->text;
    s->compute = matrix->compute_dtype = computed[rng_below(random, 4)];
    if (s->lines_are_rows != which && rng_one_in(random, 2)) { /* along k */
        s->compute = matrix->compute_dtype = rng_one_in(random, 2) ? GEMMEPI_E4M3 : GEMMEPI_E5M2;
        s->found = matrix->scale.mode =
            rng_one_in(random, 2) ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_VECTOR_128;
        return;
    }
    if (gemmepi_dtype_size(dtype) == 1 && !is_packed(dtype) && rng_one_in(random, 2)) {
        s->scale = 2, matrix->scale.mode = GEMMEPI_SCALE_TENSOR;
        CHECK(gemmepi_alloc(here->context, 4, (void **)&s->device_scale) == GEMMEPI_OK &&
                  gemmepi_upload(here->context, s->device_scale, &s->scale, 4, NULL) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
    }
}

/* >>what is expected */

static double element_of(const drawn *t, int64_t item, int64_t line, int64_t at) {
    return t->values[item * t->stride + line * t->ld + at];
}

static double operand_of(const side *s, int i, int64_t item, int64_t row, int64_t column) {
    const drawn *t = &s->operands[i];
    if (i == OF_BLOCK)
        row /= s->block[0], column /= s->block[1];
    if (i == OF_BOTH || i == OF_BLOCK)
        return element_of(t, item, s->lines_are_rows ? row : column, s->lines_are_rows ? column : row);
    return element_of(t, item, 0, i == OF_ROW ? row : i == OF_COLUMN ? column : 0);
}

/* op(A)'s or op(B)'s element as its formula makes it. */
static double made_element(const draw *w, const side *s, int64_t item, int64_t row, int64_t column) {
    int64_t line = s->lines_are_rows ? row : column, at = s->lines_are_rows ? column : row;
    int64_t length = s->lines_are_rows ? s->columns : s->rows;
    double factor = s->scale ? s->scale : 1, x, y;
#define STORED(place) (factor * element_of(&s->stored, item, line, place))
    switch (s->making) {
    case PLAIN:
        return element_of(&s->stored, item, line, at);
    case 0:
        return STORED(at) * operand_of(s, OF_ROW, item, row, column) *
               operand_of(s, OF_COLUMN, item, row, column);
    case 1:
        x = STORED(at) + operand_of(s, OF_BOTH, item, row, column);
        return x * x;
    case 2:
        return STORED(at) * STORED(at + length);
    case 3:
        return STORED(2 * at) - STORED(2 * at + 1);
    case 4:
        y = STORED(at % (length / 2));
        return at < length / 2 ? y : -y;
    case 5:
        return column < 3 && row > 1 ? 2 * STORED(at) : STORED(at) + (double)row;
    case 6:
        return STORED(at) * operand_of(s, SCALAR, item, row, column) + w->number[s == &w->sides[1]];
    case 7:
        return STORED(at + 2 * length) + STORED(at) * operand_of(s, OF_ROW, item, row, column);
    case 9:
        return STORED(at) * operand_of(s, OF_COLUMN, item, row, column) +
               STORED(at + length) * operand_of(s, OF_BOTH, item, row, column) *
                   operand_of(s, OF_ROW, item, row, column);
    case 10:
        return (STORED(at) - 1) * operand_of(s, OF_BLOCK, item, row, column);
    case 11:
        return STORED(at % (length / 2)) * (at < length / 2 ? 1 : 2) +
               operand_of(s, OF_BOTH, item, row, column) * operand_of(s, OF_ROW, item, row, column) -
               operand_of(s, OF_COLUMN, item, row, column);
    case 12:
        return STORED(at) + (double)w->k;
    default:
        return STORED(at) > 0 ? operand_of(s, OF_COLUMN, item, row, column) : STORED(at) + (double)item;
    }
#undef STORED
}

/* Rounds numbers of which a scale is found, the least power of two that is not less than their amax over the largest number. */
static void scale_span(gemmepi_dtype dtype, double *at, int64_t stride, int64_t count) {
    double amax = 0, scale = ldexp(1, -126);
    int64_t i;
    for (i = 0; i < count; i++)
        amax = fmax(amax, fabs(at[i * stride]));
    while (scale < amax / (dtype == GEMMEPI_E4M3 ? 448 : 57344))
        scale *= 2;
    for (i = 0; i < count && amax; i++)
        at[i * stride] = scale * oracle_round(dtype, at[i * stride] / scale);
}

static void make_side(const draw *w, int which) {
    side *s = (side *)&w->sides[which];
    int64_t along = which ? s->columns : 1, across = which ? 1 : s->columns, item, row, column, i, k;
    double *to = s->multiplied =
        (double *)malloc((size_t)(w->batch * s->rows * s->columns) * sizeof *s->multiplied);
    for (item = 0; item < w->batch; item++, to += s->rows * s->columns) {
        for (row = 0; row < s->rows; row++)
            for (column = 0; column < s->columns; column++)
                to[row * s->columns + column] = made_element(w, s, item, row, column);
        for (i = 0; s->found && i < (which ? s->columns : s->rows); i++)
            for (k = 0; k < w->k; k += s->found == GEMMEPI_SCALE_OUTER ? w->k : 128)
                scale_span(s->compute, to + i * across + k * along, along,
                           s->found == GEMMEPI_SCALE_OUTER || w->k - k < 128 ? w->k - k : 128);
    }
}

static double expected_element(const draw *w, int64_t item, int64_t row, int64_t column, double *terms) {
    const double *a = w->sides[0].multiplied + (item * w->m + row) * w->k;
    const double *b = w->sides[1].multiplied + item * w->k * w->n + column;
    double sum = 0;
    int64_t i;
    for (*terms = 0, i = 0; i < w->k; i++)
        sum += a[i] * b[i * w->n], *terms += 2 * fabs(a[i] * b[i * w->n]);
    return w->has_formula ? sum * 2 + element_of(&w->bias, 0, 0, column) : sum;
}

/* >>runs */

static void free_tensor(drawn *t) {
    free(t->values);
    gemmepi_free(here->context, t->device);
}

static void free_draw(draw *w) {
    int which, i;
    for (which = 0; which < SIDES; which++) {
        free_tensor(&w->sides[which].stored);
        free(w->sides[which].multiplied);
        gemmepi_free(here->context, w->sides[which].device_scale);
        for (i = 0; i < PER_SIDE; i++)
            free_tensor(&w->sides[which].operands[i]);
    }
    free_tensor(&w->bias), free_tensor(&w->d);
}

static void compare(const draw *w, uint64_t seed, int planned) {
    int by_rows = w->order == GEMMEPI_ROW_MAJOR;
    float *got = (float *)malloc((size_t)w->d.count * sizeof *got);
    int64_t item, row, column, wrong = 0;
    int is_cut = !here->is_host && w->sides[0].found && w->sides[1].found; /* as tensor cores add up fp8 */
    double want, terms;
    CHECK(gemmepi_download(here->context, got, w->d.device, (size_t)w->d.count * sizeof *got, NULL) ==
              GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (item = 0; item < w->batch; item++)
        for (row = 0; row < w->m; row++)
            for (column = 0; column < w->n; column++) {
                float have =
                    got[item * w->d.stride + (by_rows ? row * w->d.ld + column : column * w->d.ld + row)];
                want = expected_element(w, item, row, column, &terms);
                if (!(fabs(have - want) <= (is_cut ? ldexp(terms, -9) : 0)) && wrong++ == 0)
                    printf("  item %d, row %d, column %d: %g, expected %g\n", (int)item, (int)row,
                           (int)column, have, want);
            }
    CHECK(
        !wrong,
        "seed %d, %s: %d of %d elements are wrong; m %d, n %d, k %d, batch %d, order %d, a%s %s, b%s %s, types %d, %d to %d, %d, found %d, %d",
        (int)seed, planned ? "a plan" : "a call", (int)wrong, (int)(w->batch * w->m * w->n), (int)w->m,
        (int)w->n, (int)w->k, (int)w->batch, (int)w->order, w->sides[0].transposed ? " transposed" : "",
        w->sides[0].text, w->sides[1].transposed ? " transposed" : "", w->sides[1].text,
        (int)w->sides[0].stored.dtype, (int)w->sides[1].stored.dtype, (int)w->sides[0].compute,
        (int)w->sides[1].compute, (int)w->sides[0].found, (int)w->sides[1].found);
    free(got);
}

static void one_draw(uint64_t seed) {
    rng random = rng_seeded(seed);
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_plan *plan = NULL;
    draw w;
    memset(&w, 0, sizeof w), memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
    w.m = 1 + rng_below(&random, 70), w.n = 1 + rng_below(&random, 70);
    w.k = 1 + rng_below(&random, rng_one_in(&random, 8) ? 250 : 40);
    w.batch = rng_one_in(&random, 3) ? 1 + rng_below(&random, MOST_BATCH) : 1;
    w.order = rng_one_in(&random, 2) ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    w.has_formula = rng_one_in(&random, 3);
    draw_side(&w, 0, &desc.a, &random), draw_side(&w, 1, &desc.b, &random);
    make_side(&w, 0), make_side(&w, 1);
    desc.flags = (w.sides[0].found ? GEMMEPI_FIND_SCALE_A | GEMMEPI_POWER_OF_TWO_SCALE : 0) |
                 (w.sides[1].found ? GEMMEPI_FIND_SCALE_B | GEMMEPI_POWER_OF_TWO_SCALE : 0);
    w.bias = drawn_tensor(&random, GEMMEPI_F32, 1, w.n, 1, 1);
    w.d = drawn_tensor(&random, GEMMEPI_F32, w.order == GEMMEPI_ROW_MAJOR ? w.m : w.n,
                       w.order == GEMMEPI_ROW_MAJOR ? w.n : w.m, w.batch, 0);
    w.operands[BIAS].name = "bias", w.operands[BIAS].kind = GEMMEPI_PER_COLUMN,
    w.operands[BIAS].dtype = GEMMEPI_F32;
    w.pointers[BIAS] = w.has_formula ? w.bias.device : NULL;
    desc.m = w.m, desc.n = w.n, desc.k = w.k, desc.batch = w.batch, desc.order = w.order;
    desc.d.dtype = GEMMEPI_F32, desc.d.ld = w.d.ld, desc.d.batch_stride = w.d.stride;
    if (w.has_formula)
        desc.formula = "d = 2 * v + bias";
    if (w.has_formula || desc.a.formula || desc.b.formula) {
        desc.operands = w.operands, desc.operand_count = OPERANDS;
        args.operands = w.pointers;
    }
    args.a = w.sides[0].stored.device, args.b = w.sides[1].stored.device, args.d = w.d.device;
    args.scale_a = w.sides[0].device_scale, args.scale_b = w.sides[1].device_scale;
    CHECK(gemmepi_matmul(here->context, &desc, &args, NULL) == GEMMEPI_OK, "seed %d: %s", (int)seed,
          gemmepi_last_error());
    compare(&w, seed, 0);
    desc.alignment = 1;
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK &&
              gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK &&
              gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK,
          "seed %d: %s", (int)seed, gemmepi_last_error());
    compare(&w, seed, 1);
    gemmepi_plan_destroy(plan);
    free_draw(&w);
}

static void products_of_made_operands_are_exactly_those_of_their_formulas(void) {
    int i;
    int count = draws ? draws : here->is_host ? 400 : 16;
    for (i = 0; i < count; i++)
        one_draw(first_seed + (uint64_t)i);
}

static void numbers_and_scalars_are_read_by_all_formulas_of_a_product(void) {
    static const float a[] = {1, 2, 3, 4}, b[] = {1, -1, 2, 3}, s = 4;
    static const double p = 2; /* (p a + s) (b - p) + p, and s times that */
    gemmepi_operand operands[2];
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    float d[4] = {0}, *device;
    void *pointers[2];
    int i, j, l;
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args), memset(operands, 0, sizeof operands);
    operands[0].name = "p", operands[0].kind = GEMMEPI_NUMBER;
    operands[1].name = "s", operands[1].kind = GEMMEPI_SCALAR, operands[1].dtype = GEMMEPI_F32;
    desc.m = desc.n = desc.k = 2, desc.operands = operands, desc.operand_count = 2;
    desc.a.formula = "p * a + s", desc.b.formula = "b - p", desc.formula = "d = s * (v + p)";
    CHECK(gemmepi_alloc(here->context, 64, (void **)&device) == GEMMEPI_OK &&
              gemmepi_upload(here->context, device, a, sizeof a, NULL) == GEMMEPI_OK &&
              gemmepi_upload(here->context, device + 4, b, sizeof b, NULL) == GEMMEPI_OK &&
              gemmepi_upload(here->context, device + 12, &s, sizeof s, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    args.a = device, args.b = device + 4, args.d = device + 8, args.operands = pointers;
    pointers[0] = gemmepi_number(&p), pointers[1] = device + 12;
    CHECK(gemmepi_matmul(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, d, device + 8, sizeof d, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (i = 0; i < 2; i++)
        for (j = 0; j < 2; j++) {
            double v = 0;
            for (l = 0; l < 2; l++)
                v += (p * a[2 * i + l] + s) * (b[2 * l + j] - p);
            CHECK(d[2 * i + j] == s * (v + p), "%d, %d: %g, expected %g", i, j, d[2 * i + j], s * (v + p));
        }
    gemmepi_free(here->context, device);
}

/* A width is along the axis that is contiguous where the operand's own text stands: a's and the result's columns, b's rows. */
static void operands_are_wide_along_the_axis_of_the_text_that_reads_them(void) {
    static const float numbers[6][4] = {{1, 2, 3, 4},  {5, 6, 7, 8},               /* a [2, 2 * 2] */
                                        {2, -1, 3, 1},                             /* b stored [1, 2 * 2] */
                                        {1, 2, 3, 4},  {5, 6, 7, 8}, {-2, 9}};     /* g, h and w */
    static const float want[] = {-2 * (9 * 13 + 16 * 7), -2 * (21 * 13 + 32 * 7)}; /* of k 0 and 1 */
    gemmepi_operand operands[3];
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    float d[2] = {0}, *device;
    void *pointers[3];
    int i;
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args), memset(operands, 0, sizeof operands);
    operands[0].name = "g", operands[0].kind = operands[2].kind = GEMMEPI_PER_COLUMN;
    operands[1].name = "h", operands[1].kind = GEMMEPI_PER_ROW, operands[2].name = "w";
    for (i = 0; i < 3; i++)
        operands[i].width = GEMMEPI_WIDTH_DOUBLE, operands[i].dtype = GEMMEPI_F32;
    desc.m = 2, desc.n = 1, desc.k = 2, desc.operands = operands, desc.operand_count = 3;
    desc.a.formula = "right(a) * right(g)";
    desc.b.formula = "left(b) * right(b) + right(h)", desc.b.transposed = 1, desc.formula = "d = v * left(w)";
    CHECK(gemmepi_alloc(here->context, sizeof numbers + sizeof d, (void **)&device) == GEMMEPI_OK &&
              gemmepi_upload(here->context, device, numbers, sizeof numbers, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    args.a = device, args.b = device + 8, args.d = device + 24, args.operands = pointers;
    for (i = 0; i < 3; i++)
        pointers[i] = device + 12 + 4 * i;
    CHECK(gemmepi_matmul(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, d, device + 24, sizeof d, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    CHECK(d[0] == want[0] && d[1] == want[1], "%g %g, expected %g %g", d[0], d[1], want[0], want[1]);
    gemmepi_free(here->context, device);
}

/* >>with outputs, in F64 */

static void texts_of_operands_go_with_outputs_in_f64(void) {
    double a[6] = {1, -2, 3, 4, 5, -6}, b[6] = {2, 1, 0, -1, 3, 2}, s = 3, n = 5, y[4], sums[2], want, sum;
    gemmepi_operand operands[3];
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    void *pointers[3], *at[5];
    const double *from[5];
    int i, j, k;
    from[0] = a, from[1] = b, from[2] = &s, from[3] = y, from[4] = sums;
    memset(operands, 0, sizeof operands), memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
    for (i = 0; i < 5; i++)
        CHECK(
            gemmepi_alloc(here->context, 48, &at[i]) == GEMMEPI_OK &&
                (i > 2 || gemmepi_upload(here->context, at[i], from[i], i < 2 ? 48 : 8, NULL) == GEMMEPI_OK),
            "%s", gemmepi_last_error());
    operands[0].name = "s", operands[0].kind = GEMMEPI_SCALAR, operands[0].dtype = GEMMEPI_F64;
    operands[1].name = "n", operands[1].kind = GEMMEPI_NUMBER;
    operands[2].name = "sums", operands[2].kind = GEMMEPI_PER_ROW, operands[2].dtype = GEMMEPI_F64;
    operands[2].output = 1;
    pointers[0] = at[2], pointers[1] = gemmepi_number(&n), pointers[2] = at[4];
    desc.m = 2, desc.n = 2, desc.k = 3, desc.a.dtype = GEMMEPI_F64;
    desc.a.formula = "a * s + n", desc.b.formula = "b * n - s",
    desc.formula = "d = v * s + n; sums = row_sum(d)";
    desc.operands = operands, desc.operand_count = 3;
    args.a = at[0], args.b = at[1], args.d = at[3], args.operands = pointers;
    CHECK(gemmepi_matmul(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, y, at[3], sizeof y, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, sums, at[4], sizeof sums, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (i = 0; i < 2; i++) {
        for (sum = 0, j = 0; j < 2; j++) {
            for (want = 0, k = 0; k < 3; k++)
                want += (a[3 * i + k] * s + n) * (b[2 * k + j] * n - s);
            want = want * s + n, sum += want;
            CHECK(y[2 * i + j] == want, "%g, not %g", y[2 * i + j], want);
        }
        CHECK(sums[i] == sum, "%g, not %g", sums[i], sum);
    }
    for (i = 0; i < 5; i++)
        gemmepi_free(here->context, at[i]);
}

/* >>groups */

enum { G_ROWS = 40, G_N = 24, G_K = 32, G_GROUPS = 5, G_STORED = 50 };
static const int32_t group_ends[G_GROUPS] = {0, 7, 7, 30, 38};

/* The row of a that is multiplied where rows are gathered. */
static int gathered_row(int row) {
    return (row * 7 + 3) % G_STORED;
}

/* Weights of each group in 4 bits or I8, by scales of 8 of k and a shift of each column; `wide`: b is two halves, and a, whose rows are gathered, too,
   with a factor of each that is stored. */
static void groups_have_weights_that_their_formula_makes(void) {
    int transposed, wide, i, j, l, g;
    for (transposed = 0; transposed < 2; transposed++)
        for (wide = 0; wide < 2; wide++) {
            int length = (transposed ? G_K : G_N) * (1 + wide), lines = transposed ? G_N : G_K;
            rng random = rng_seeded(77 + (uint64_t)(2 * transposed + wide));
            drawn a = drawn_tensor(&random, GEMMEPI_BF16, wide ? G_STORED : G_ROWS, G_K * (1 + wide), 1, 1);
            drawn factor = drawn_tensor(&random, GEMMEPI_F32, 1, G_STORED, 1, 1);
            drawn b = drawn_tensor(&random, wide ? GEMMEPI_I8 : GEMMEPI_I4, lines, length, G_GROUPS, 0);
            drawn scale = drawn_tensor(&random, GEMMEPI_F32, transposed ? G_N : G_K / 8,
                                       transposed ? G_K / 8 : G_N, G_GROUPS, 0);
            drawn shift = drawn_tensor(&random, GEMMEPI_BF16, 1, G_N, 1, 1),
                  d = drawn_tensor(&random, GEMMEPI_F32, G_ROWS, G_N, 1, 1);
            gemmepi_operand operands[3];
            gemmepi_grouped_desc desc;
            gemmepi_grouped_args args;
            int32_t *ends, *index, rows[G_ROWS];
            void *pointers[3];
            float *got = (float *)malloc((size_t)d.count * sizeof *got);
            memset(operands, 0, sizeof operands), memset(&desc, 0, sizeof desc),
                memset(&args, 0, sizeof args);
            operands[0].name = "scale", operands[0].kind = GEMMEPI_BLOCKED, operands[0].dtype = GEMMEPI_F32,
            operands[0].ld = scale.ld;
            operands[0].block_rows = 8, operands[0].block_columns = 1,
            operands[0].batch_stride = scale.stride;
            operands[1].name = "shift", operands[1].kind = GEMMEPI_PER_COLUMN,
            operands[1].dtype = GEMMEPI_BF16;
            desc.groups = G_GROUPS, desc.product.m = G_ROWS, desc.product.n = G_N, desc.product.k = G_K;
            desc.product.a.dtype = GEMMEPI_BF16, desc.product.a.ld = a.ld, desc.product.d.dtype = GEMMEPI_F32,
            desc.product.d.ld = d.ld;
            desc.product.b.dtype = b.dtype, desc.product.b.transposed = transposed, desc.product.b.ld = b.ld,
            desc.product.b.batch_stride = b.stride;
            desc.product.b.formula = wide ? "left(b) * right(b) * scale + shift" : "b * scale + shift";
            operands[2].name = "ra", operands[2].kind = GEMMEPI_PER_ROW, operands[2].dtype = GEMMEPI_F32;
            desc.product.a.formula = wide ? "left(a) + ra * right(a)" : NULL;
            desc.gather_a = wide ? G_STORED : 0;
            desc.product.operands = operands, desc.product.operand_count = 2 + wide;
            for (i = 0; i < G_ROWS; i++)
                rows[i] = gathered_row(i);
            CHECK(gemmepi_alloc_from(here->context, rows, sizeof rows, (void **)&index) == GEMMEPI_OK &&
                      gemmepi_alloc(here->context, sizeof group_ends, (void **)&ends) == GEMMEPI_OK &&
                      gemmepi_upload(here->context, ends, group_ends, sizeof group_ends, NULL) == GEMMEPI_OK,
                  "%s", gemmepi_last_error());
            pointers[0] = scale.device, pointers[1] = shift.device, pointers[2] = factor.device;
            args.index_a = wide ? index : NULL;
            args.product.a = a.device, args.product.b = b.device, args.product.d = d.device,
            args.product.operands = pointers, args.ends = ends;
            CHECK(gemmepi_grouped(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
                      gemmepi_download(here->context, got, d.device, (size_t)d.count * sizeof *got, NULL) ==
                          GEMMEPI_OK,
                  "%s", gemmepi_last_error());
            for (g = 0, i = 0; i < group_ends[G_GROUPS - 1]; i++) {
                while (i >= group_ends[g])
                    g++;
                for (j = 0; j < G_N; j++) {
                    double sum = 0, y;
                    int row = gathered_row(i);
                    for (l = 0; l < G_K; l++) {
                        int64_t line = transposed ? j : l, at = transposed ? l : j;
                        double x = element_of(&b, g, line, at) *
                                   (wide ? element_of(&b, g, line, at + length / 2) : 1);
                        y = wide ? element_of(&a, 0, row, l) +
                                       element_of(&factor, 0, 0, row) * element_of(&a, 0, row, G_K + l)
                                 : element_of(&a, 0, i, l);
                        sum +=
                            y * (x * element_of(&scale, g, transposed ? j : l / 8, transposed ? l / 8 : j) +
                                 element_of(&shift, 0, 0, j));
                    }
                    CHECK((double)got[i * d.ld + j] == sum,
                          "transposed %d, wide %d, row %d, column %d: %g, expected %g", transposed, wide, i,
                          j, (double)got[i * d.ld + j], sum);
                }
            }
            free(got), gemmepi_free(here->context, ends), gemmepi_free(here->context, index);
            free_tensor(&factor);
            free_tensor(&a), free_tensor(&b), free_tensor(&scale), free_tensor(&shift), free_tensor(&d);
        }
}

/* What is made has more rows than positions, of which there is one. */
static void one_position_gathers_any_row_that_is_made(void) {
    static const float a[3 * 2] = {1, 2, 3, 4, 5, 6}, b[2 * 2] = {1, 0, 0, 1};
    static const int32_t end = 1, row = 2;
    gemmepi_grouped_desc desc;
    gemmepi_grouped_args args;
    void *at[5];
    float d[2] = {0};
    int i;
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
    CHECK(gemmepi_alloc_from(here->context, a, sizeof a, &at[0]) == GEMMEPI_OK &&
              gemmepi_alloc_from(here->context, b, sizeof b, &at[1]) == GEMMEPI_OK &&
              gemmepi_alloc_from(here->context, &end, sizeof end, &at[2]) == GEMMEPI_OK &&
              gemmepi_alloc_from(here->context, &row, sizeof row, &at[3]) == GEMMEPI_OK &&
              gemmepi_alloc(here->context, sizeof d, &at[4]) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    desc.product.m = 1, desc.product.n = desc.product.k = 2, desc.groups = 1, desc.gather_a = 3;
    desc.product.a.formula = "2 * a";
    args.product.a = at[0], args.product.b = at[1], args.product.d = at[4];
    args.ends = (const int32_t *)at[2], args.index_a = (const int32_t *)at[3];
    CHECK(gemmepi_grouped(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, d, at[4], sizeof d, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    CHECK(d[0] == 10 && d[1] == 12, "%g %g, expected 10 12", d[0], d[1]);
    for (i = 0; i < 5; i++)
        gemmepi_free(here->context, at[i]);
}

static void texts_that_groups_do_not_have_are_refused_in_words(void) {
    static const struct {
        const char *a, *says;
        int of_k, stride;
    } rows[] = {
        {"a * item", "desc.product.a.formula: it reads item, or an operand with a batch_stride", 0, 0},
        {"a * s", "it reads item, or an operand with a batch_stride, but a is one matrix", 0, 1},
        {"a * s", "desc.product.a.formula is given; of grouped products those with groups of rows", 1, 0}};
    size_t i;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        gemmepi_operand s;
        gemmepi_grouped_desc desc;
        gemmepi_plan *plan = NULL;
        memset(&s, 0, sizeof s), memset(&desc, 0, sizeof desc);
        s.name = "s", s.kind = GEMMEPI_SCALAR, s.batch_stride = rows[i].stride;
        desc.groups = 2, desc.grouping = rows[i].of_k ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
        desc.product.m = desc.product.n = desc.product.k = 8, desc.product.a.formula = rows[i].a;
        desc.product.operands = &s, desc.product.operand_count = 1;
        CHECK(gemmepi_plan_grouped(here->context, &desc, &plan) && strstr(gemmepi_last_error(), rows[i].says),
              "%s\n   and not: %s", plan ? "OK" : gemmepi_last_error(), rows[i].says);
        gemmepi_plan_destroy(plan);
    }
}

/* >>what is refused */

typedef struct refusal {
    const char *a, *b, *result, *says;
} refusal;

static void refused(const refusal *r, void (*change)(gemmepi_matmul_desc *)) {
    gemmepi_operand operands[3];
    gemmepi_matmul_desc desc;
    gemmepi_plan *plan = NULL;
    gemmepi_status status;
    memset(&desc, 0, sizeof desc), memset(operands, 0, sizeof operands);
    operands[0].name = "x", operands[0].kind = GEMMEPI_PER_ROW, operands[0].dtype = GEMMEPI_F32;
    operands[1].name = "c", operands[1].kind = GEMMEPI_PER_COLUMN, operands[1].dtype = GEMMEPI_F32;
    operands[2].name = "y", operands[2].kind = GEMMEPI_FULL, operands[2].dtype = GEMMEPI_F32,
    operands[2].output = 1;
    desc.m = 4, desc.n = 5, desc.k = 6, desc.operands = operands, desc.operand_count = r->result ? 3 : 2;
    desc.a.formula = r->a, desc.b.formula = r->b, desc.formula = r->result;
    if (change)
        change(&desc);
    status = gemmepi_plan_matmul(here->context, &desc, &plan);
    CHECK(status == GEMMEPI_INVALID_ARGUMENT && strstr(gemmepi_last_error(), r->says),
          "%d: %s\n   and not: %s", (int)status, gemmepi_last_error(), r->says);
    gemmepi_plan_destroy(plan);
}

static void texts_that_make_no_operand_are_refused_in_words(void) {
    static const refusal refusals[] = {
        {"a * v", NULL, NULL, "v is not known here"},
        {NULL, "w * 2", NULL,
         "desc.b.formula, column 1: w is not known here: no operand has that name, and no statement before this one "
         "assigns it; what is stored is called b"},
        {"a = 2", NULL, NULL, "a is the value and cannot be assigned"},
        {"t = a", NULL, NULL, "t is assigned, but nothing reads it"},
        {"t = a;", NULL, NULL, "t is assigned, but nothing reads it"},
        {"", NULL, NULL, "ends without an expression"},
        {"a; a", NULL, NULL, "ends with its expression"},
        {"row_sum(a)", NULL, NULL, "has no reductions"},
        {"x", NULL, NULL, "does not read a"},
        {NULL, "a * 2", NULL, "desc.b.formula, column 1"},
        {"a * y", NULL, "d = v; y = v", "desc.a.formula: it reads y, an output"},
        {"y = a; a", NULL, "d = v; y = v", "is an operand"},
        {"a * x", "b * x", NULL, "desc.operands[0] (x) is read by two formulas"},
        {"a * x", NULL, "d = v * x; y = v", "desc.operands[0] (x) is read by two formulas"},
        {"left(a * c)", NULL, NULL, "wide"},
        {"parts(a, a, a, a)", NULL, NULL, "not a multiple"},
    };
    size_t i;
    for (i = 0; i < sizeof refusals / sizeof *refusals; i++)
        refused(&refusals[i], NULL);
}

static void with_formula_of_c(gemmepi_matmul_desc *desc) {
    desc->c.formula = "c";
}
static void with_type_alone(gemmepi_matmul_desc *desc) {
    desc->b.compute_dtype = GEMMEPI_F16;
}
static void with_i32(gemmepi_matmul_desc *desc) {
    desc->a.compute_dtype = GEMMEPI_I32;
}
static void with_f64(gemmepi_matmul_desc *desc) {
    desc->a.compute_dtype = GEMMEPI_F64;
}
static void with_short_ld(gemmepi_matmul_desc *desc) {
    desc->a.ld = 5;
}
static void with_odd_lines(gemmepi_matmul_desc *desc) {
    desc->a.dtype = GEMMEPI_I4, desc->k = 7;
}
static void with_odd_ld(gemmepi_matmul_desc *desc) {
    desc->a.dtype = GEMMEPI_U4, desc->a.ld = 9;
}
static void with_4_bits_alone(gemmepi_matmul_desc *desc) {
    desc->b.dtype = GEMMEPI_E2M1;
}
static void with_wide_rows(gemmepi_matmul_desc *desc) {
    static gemmepi_operand wide;
    wide = desc->operands[0], wide.width = GEMMEPI_WIDTH_DOUBLE;
    desc->operands = &wide, desc->operand_count = 1;
}
static void with_scales_of_rows(gemmepi_matmul_desc *desc) {
    desc->a.dtype = GEMMEPI_E4M3, desc->a.scale.mode = GEMMEPI_SCALE_OUTER;
}

static void with_found(gemmepi_matmul_desc *desc) {
    desc->flags = GEMMEPI_FIND_SCALE_A, desc->a.scale.mode = GEMMEPI_SCALE_OUTER;
    desc->a.compute_dtype = GEMMEPI_E4M3;
}
static void with_found_of_stored(gemmepi_matmul_desc *desc) {
    with_found(desc), desc->flags |= GEMMEPI_FIND_SCALE_B;
}
static void with_found_in_one(gemmepi_matmul_desc *desc) {
    with_found(desc), desc->a.scale.mode = GEMMEPI_SCALE_TENSOR;
}
static void with_found_in_items(gemmepi_matmul_desc *desc) {
    with_found(desc), desc->a.scale.batch_stride = 4;
}
static void with_found_in_16_bits(gemmepi_matmul_desc *desc) {
    with_found(desc), desc->a.compute_dtype = GEMMEPI_BF16;
}
static void with_found_across(gemmepi_matmul_desc *desc) {
    with_found(desc), desc->a.transposed = 1;
}
static void with_found_across_columns(gemmepi_matmul_desc *desc) {
    with_found(desc), desc->order = GEMMEPI_COLUMN_MAJOR;
}

static void fields_that_do_not_go_with_formulas_of_operands_are_refused(void) {
    static const refusal of_a = {"a * x", NULL, NULL, NULL};
    static const struct {
        void (*change)(gemmepi_matmul_desc *);
        const char *says;
    } changes[] = {
        {with_formula_of_c, "desc.c.formula is given"},
        {with_type_alone, "desc.b.compute_dtype is 3, but desc.b.formula is NULL"},
        {with_i32, "desc.a.compute_dtype is I32"},
        {with_f64, "F64 goes only with F64"},
        {with_short_ld, "desc.a.ld is 5"},
        {with_odd_lines, "a line as stored has 7"},
        {with_odd_ld, "desc.a.ld is 9; of U4 a byte has two elements"},
        {with_4_bits_alone, "desc.b.dtype is E2M1"},
        {with_wide_rows, "desc.operands[0].width (of x) is 2; accepted are 0 (n) and, of PER_COLUMN"},
        {with_scales_of_rows, "desc.a.scale.mode is OUTER"},
        {with_found_of_stored, "desc.flags has FIND_SCALE_B, but desc.b.formula is NULL"},
        {with_found_in_one, "FIND_SCALE_A, and desc.a.scale.mode is TENSOR (1); scales of what a formula"},
        {with_found_in_items, "desc.a.scale.batch_stride is 4 with FIND_SCALE_A"},
        {with_found_in_16_bits, "a is multiplied in BF16; accepted for desc.a.compute_dtype are E4M3"},
        {with_found_across, "desc.a.transposed is 1; scales are found along k"},
        {with_found_across_columns, "desc.a.transposed is 0; scales are found along k"}};
    size_t i;
    for (i = 0; i < sizeof changes / sizeof *changes; i++) {
        refusal r = of_a;
        r.says = changes[i].says;
        refused(&r, changes[i].change);
    }
}

int main(int argc, char **argv) {
    test_device devices[2];
    int opened = test_devices_open(devices), i;
    draws = argc > 1 ? atoi(argv[1]) : draws;
    first_seed = argc > 2 ? (uint64_t)atoi(argv[2]) : first_seed;
    for (i = 0; i < opened; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(products_of_made_operands_are_exactly_those_of_their_formulas);
        RUN(numbers_and_scalars_are_read_by_all_formulas_of_a_product);
        RUN(operands_are_wide_along_the_axis_of_the_text_that_reads_them);
        RUN(texts_of_operands_go_with_outputs_in_f64);
        RUN(groups_have_weights_that_their_formula_makes);
        RUN(one_position_gathers_any_row_that_is_made);
        RUN(texts_that_groups_do_not_have_are_refused_in_words);
        RUN(texts_that_make_no_operand_are_refused_in_words);
        RUN(fields_that_do_not_go_with_formulas_of_operands_are_refused);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
