/* formula [COUNT [SEED]]: element-wise formulas against plain loops in double, a function for each formula, over random layouts: axes in any
   order in memory, backwards, spaced out, broadcast. Gradients by gemmepi_derive against central differences. COUNT: layouts of each. */
#include <math.h>

#include "../products/problem.h"

enum { MOST_TABLES = 12, AXES = 4, ARENA = 1 << 22, SENTINEL = 0xa5 };

static test_device *here;
static int asked_count = 4;
static uint64_t asked_seed = 1;

/* >>tensors */

/* dims: of the axes [item, item, row, column]: '*' as the operation, '1' one, '.' missing, 'p' the period, 'b' so many blocks, whose
   extents BLOCKED ones have as periods */
typedef struct spec {
    const char *name;
    gemmepi_operand_kind kind;
    const char *dims;
    char
        reduce; /* of outputs: 'f' a FULL one, or 's'um, 'm'ax, the smallest ('n'), 'l'ogsumexp, 'a'rgmax; 0: an input */
    gemmepi_dtype dtype;
    gemmepi_width width;
    int row_period, column_period, accumulate, scaled;
} spec;

typedef struct table {
    spec s;
    gemmepi_dtype dtype;
    int rank;
    int64_t shape[AXES], stride[AXES], extent[AXES], step[AXES]; /* of the rank's axes, and of all four */
    size_t base, first; /* bytes in the arena: of the pointer, and of element 0 */
    double number;
    float scale;
} table;

typedef struct world {
    const char *formula;
    int64_t shape[AXES]; /* of what is n wide */
    int wide;            /* columns of a reduction's argument */
    table t[MOST_TABLES];
    int count, has_y; /* y is t[count] */
    gemmepi_dtype dtype;
    unsigned char memory[ARENA], before[ARENA], touched[ARENA];
    size_t used;
    rng random;
} world;

typedef double oracle_of(world *w, const char *name, const int64_t *at);

typedef struct formula_case {
    const char *formula;
    oracle_of *oracle;
    char y; /* 'n', 'h', 'd': as wide as that; '-': there is none */
    int multiple, rank_of_y, wide;
    unsigned is_for; /* bit 1 << dtype of what has no dtype of its own; 0: F32, BF16 and F64 */
    gemmepi_dtype dtype_of_y;
    spec specs[MOST_TABLES];
} formula_case;

static world w0;

static const char *name_of(gemmepi_dtype dtype) {
    static const char *const names[] = {"", "F32", "F64", "F16", "BF16", "E4M3", "E5M2", "I8", "I32", "I64"};
    return names[dtype];
}

static size_t size_of(gemmepi_dtype dtype) {
    return gemmepi_dtype_size(dtype);
}

static double take_number(gemmepi_dtype dtype, const unsigned char *from) {
    int64_t whole;
    if (dtype != GEMMEPI_I64)
        return oracle_decode(dtype, from);
    memcpy(&whole, from, 8);
    return (double)whole;
}

static void put_number(gemmepi_dtype dtype, unsigned char *to, double x) {
    int64_t whole = (int64_t)x;
    if (dtype == GEMMEPI_I64)
        memcpy(to, &whole, 8);
    else
        oracle_encode(dtype, to, x);
}

static table *table_called(world *w, const char *name) {
    int i;
    for (i = 0; i <= w->count; i++)
        if ((i < w->count || w->has_y) && strcmp(w->t[i].s.name, name) == 0)
            return &w->t[i];
    printf("no %s\n", name);
    exit(2);
}

static size_t place_in(const table *t, const int64_t *at) {
    int64_t place = 0, index;
    int d;
    for (d = 0; d < AXES; d++) {
        int64_t block = d == 2 ? t->s.row_period : t->s.column_period;
        if (t->s.kind == GEMMEPI_BLOCKED && d >= 2) {
            place += at[d] / block * t->step[d];
            continue;
        }
        index = d == 2 && t->s.row_period      ? at[d] % t->s.row_period
                : d == 3 && t->s.column_period ? at[d] % t->s.column_period
                                               : at[d];
        place += index * t->step[d];
    }
    return (size_t)((int64_t)t->first + place * (int64_t)size_of(t->dtype));
}

/* What an input is at an index. */
static double in_at(world *w, const char *name, const int64_t *at) {
    const table *t = table_called(w, name);
    double x = t->s.kind == GEMMEPI_NUMBER ? t->number : take_number(t->dtype, w->before + place_in(t, at));
    return t->s.scaled ? x * t->scale : x;
}

static double column_at(world *w, const char *name, const int64_t *at, int64_t column) {
    int64_t moved[AXES];
    memcpy(moved, at, sizeof moved);
    moved[3] = column;
    return in_at(w, name, moved);
}

/* Of how many parts the columns are: the last number of the text's first part(x, i, n). */
static int parts_of(const char *formula) {
    const char *part = strstr(formula, "part(");
    return part ? atoi(strchr(strchr(part, ',') + 1, ',') + 1) : 2;
}

static int64_t width_of(const world *w, gemmepi_width width) {
    return width == GEMMEPI_WIDTH_HALF     ? w->shape[3] / parts_of(w->formula)
           : width == GEMMEPI_WIDTH_DOUBLE ? w->shape[3] * parts_of(w->formula)
                                           : w->shape[3];
}

/* The elements that each axis of one tensor leaves free behind it. */
static const char *gaps_of;
static int64_t gaps[AXES];

static int64_t blocks_along(const world *w, const table *t, int d) {
    int64_t block = d == 2 ? t->s.row_period : t->s.column_period;
    int64_t extent = d == 2 ? w->shape[2] : width_of(w, t->s.width);
    return (extent + block - 1) / block;
}

/* Axes in any order in memory, the innermost spaced out or not, some backwards. plain: dense. */
static void lay_out(world *w, table *t, int plain) {
    int order[AXES], i, d, first = 0;
    int64_t next, low = 0, high = 0;
    t->rank = 0;
    for (d = 0; d < AXES; d++) {
        t->extent[d] = t->s.dims[d] == '*'   ? d == 3 ? width_of(w, t->s.width) : w->shape[d]
                         : t->s.dims[d] == 'p' ? d == 2 ? t->s.row_period : t->s.column_period
                       : t->s.dims[d] == 'b' ? blocks_along(w, t, d)
                                             : 1;
        t->step[d] = 0;
        if (t->s.dims[d] == '.') {
            first = d + 1;
            continue;
        }
        t->shape[t->rank++] = t->extent[d];
    }
    for (i = 0; i < t->rank; i++)
        order[i] = i;
    for (i = t->rank - 1; i > 0 && !plain && rng_one_in(&w->random, 2); i--) {
        int j = rng_below(&w->random, i + 1), kept = order[i];
        order[i] = order[j], order[j] = kept;
    }
    /* a reduction's items lie as in a dense tensor, behind or before the rest */
    if (t->s.reduce && t->s.reduce != 'f')
        for (i = 0; i < t->rank; i++)
            order[i] = i;
    next = plain || !rng_one_in(&w->random, 3) ? 1 : 2;
    for (i = t->rank - 1; i >= 0; i--) {
        int64_t n = t->shape[order[i]],
                gap = plain || (t->s.reduce && t->s.reduce != 'f') ? 0 : rng_below(&w->random, 4) / 3;
        int back = !plain && rng_one_in(&w->random, 4) && !(t->s.reduce && t->s.reduce != 'f');
        t->stride[order[i]] = back ? -next : next;
        if (n > 0)
            *(back ? &low : &high) += (n - 1) * next;
        next *= n ? n : 1;
        next += gaps_of && strcmp(gaps_of, t->s.name) == 0 ? gaps[order[i]] : gap;
    }
    for (i = 0; i < t->rank; i++)
        t->step[first + i] = t->shape[i] == 1 ? 0 : t->stride[i];
    t->base = (w->used + 255) / 256 * 256;
    if (!plain && rng_one_in(&w->random, 3))
        t->base += size_of(t->dtype);
    t->first = t->base + (size_t)low * size_of(t->dtype);
    w->used = t->first + (size_t)(high + 1) * size_of(t->dtype) + 16;
    if (w->used > ARENA) {
        printf("the arena is too small\n");
        exit(2);
    }
}

static int next_index(const int64_t *shape, int64_t *at) {
    int d;
    for (d = AXES - 1; d >= 0; d--) {
        if (++at[d] < shape[d])
            return 1;
        at[d] = 0;
    }
    return 0;
}

static int is_empty(const int64_t *shape) {
    return !(shape[0] && shape[1] && shape[2] && shape[3]);
}

static double random_number(world *w, const table *t) {
    if (t->dtype == GEMMEPI_I64 || t->dtype == GEMMEPI_I32)
        return rng_below(&w->random, 9);
    if (t->dtype == GEMMEPI_I8)
        return rng_below(&w->random, 41) - 20;
    return (rng_below(&w->random, 513) - 256) / 128.0;
}

static void fill_table(world *w, const table *t) {
    int64_t at[AXES] = {0};
    table bare = *t;
    bare.s.row_period = bare.s.column_period = bare.s.kind == GEMMEPI_BLOCKED; /* each element is its own */
    if (!is_empty(t->extent) && t->s.kind != GEMMEPI_NUMBER && (!t->s.reduce || t->s.accumulate))
        do {
            put_number(t->dtype, w->memory + place_in(&bare, at), random_number(w, t));
        } while (next_index(t->extent, at));
}

static void set_up(world *w, const formula_case *c, const int64_t *shape, gemmepi_dtype dtype, int plain) {
    spec y = {"d", GEMMEPI_FULL, "****", 'f', (gemmepi_dtype)0, GEMMEPI_WIDTH_N, 0, 0, 0, 0};
    char dims[AXES + 1] = "****";
    int i;
    w->formula = c->formula, w->dtype = dtype, w->used = 0, w->has_y = c->y != '-';
    memcpy(w->shape, shape, sizeof w->shape);
    w->wide = (int)(c->wide ? c->wide * shape[3] / 2 : shape[3]);
    for (w->count = 0; c->specs[w->count].name; w->count++)
        w->t[w->count].s = c->specs[w->count];
    y.dtype = c->dtype_of_y;
    y.width = c->y == 'h' ? GEMMEPI_WIDTH_HALF : c->y == 'd' ? GEMMEPI_WIDTH_DOUBLE : GEMMEPI_WIDTH_N;
    for (i = 0; i < AXES - (c->rank_of_y ? c->rank_of_y : AXES); i++)
        dims[i] = '.';
    y.dims = dims;
    w->t[w->count].s = y;
    memset(w->memory, SENTINEL, sizeof w->memory);
    for (i = 0; i < w->count + w->has_y; i++) {
        table *t = &w->t[i];
        t->dtype = t->s.dtype ? t->s.dtype
                   : t->s.reduce && t->s.reduce != 'f' && dtype != GEMMEPI_F64
                       ? t->s.reduce == 'a' ? GEMMEPI_I32 : GEMMEPI_F32
                   : t->s.reduce == 'a' ? GEMMEPI_I32
                                        : dtype;
        t->number = 0.375, t->scale = 0.5f;
        if (t->s.kind == GEMMEPI_NUMBER)
            continue;
        lay_out(w, t, plain);
        fill_table(w, t);
    }
    w->t[w->count].s.dims = "****";
    memcpy(w->before, w->memory, sizeof w->before);
}

/* >>runs */

typedef struct bound_call {
    gemmepi_elementwise_desc desc;
    gemmepi_elementwise_args args;
    gemmepi_operand operands[MOST_TABLES];
    gemmepi_tensor tensors[MOST_TABLES];
    void *pointers[MOST_TABLES];
    const float *scales[MOST_TABLES];
    void *amax[MOST_TABLES];
} bound_call;

/* Scales lie at the arena's end, amax behind them. */
enum { SCALES_AT = ARENA - 256, AMAX_AT = ARENA - 128 };

static void bind(world *w, bound_call *b, unsigned char *arena, int with_data) {
    int i;
    memset(b, 0, sizeof *b);
    for (i = 0; i < w->count + w->has_y; i++) {
        table *t = &w->t[i];
        gemmepi_tensor *g = &b->tensors[i];
        gemmepi_operand *o = &b->operands[i];
        void *data = arena + t->base;
        g->data = with_data ? data : NULL;
        g->dtype = t->dtype, g->rank = t->rank, g->shape = t->shape, g->stride = t->stride;
        g->offset = t->first - t->base;
        o->name = t->s.name, o->kind = t->s.kind, o->width = t->s.width, o->output = t->s.reduce != 0;
        o->accumulate = t->s.accumulate;
        *(o->kind == GEMMEPI_BLOCKED ? &o->block_rows : &o->row_period) = t->s.row_period;
        *(o->kind == GEMMEPI_BLOCKED ? &o->block_columns : &o->column_period) = t->s.column_period;
        o->tensor = t->s.kind == GEMMEPI_NUMBER ? NULL : g;
        o->scale.mode = t->s.scaled ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
        o->amax = t->s.scaled && t->s.reduce;
        b->pointers[i] = t->s.kind == GEMMEPI_NUMBER ? (void *)&t->number : with_data ? NULL : data;
        b->scales[i] = t->s.scaled ? (const float *)(void *)(arena + SCALES_AT) + i : NULL;
        b->amax[i] = o->amax ? (void *)(arena + AMAX_AT + 4 * i) : NULL;
        put_number(GEMMEPI_F32, w->memory + SCALES_AT + 4 * i, t->scale);
    }
    b->desc.formula = w->formula, b->desc.operands = b->operands, b->desc.operand_count = w->count;
    b->desc.y = w->has_y ? &b->tensors[w->count] : NULL;
    b->args.y = w->has_y ? b->pointers[w->count] : NULL;
    b->args.operands = b->pointers, b->args.operand_scales = b->scales, b->args.operand_amax = b->amax;
}

static size_t alignment_of(const bound_call *b, int count) {
    uintptr_t bits = 16 | (uintptr_t)b->args.y;
    int i;
    for (i = 0; i < count; i++)
        if (b->operands[i].tensor)
            bits |= (uintptr_t)b->pointers[i];
    return (size_t)(bits & (~bits + 1));
}

/* At once with the tensors' own data, or by a plan. */
static gemmepi_status run_world(world *w, int by_plan) {
    bound_call b;
    gemmepi_plan *plan = NULL;
    gemmepi_status status;
    char said[4096];
    if (!test_device_reserve(here, &here->arena, &here->arena_size, ARENA))
        return GEMMEPI_OUT_OF_MEMORY;
    bind(w, &b, (unsigned char *)here->arena, !by_plan);
    memcpy(w->before, w->memory, sizeof w->before);
    status = gemmepi_upload(here->context, here->arena, w->memory, ARENA, here->stream);
    if (!status && !by_plan)
        status = gemmepi_elementwise(here->context, &b.desc, &b.args, here->stream);
    if (!status && by_plan) {
        b.desc.alignment = alignment_of(&b, w->count);
        status = gemmepi_plan_elementwise(here->context, &b.desc, &plan);
        if (!status)
            status = gemmepi_plan_prepare(plan, here->stream);
        if (!status)
            status = gemmepi_run_elementwise(plan, &b.args, here->stream);
        if (plan)
            CHECK(gemmepi_plan_explain(plan, said, sizeof said) > 0 && strstr(said, "a formula over"), "%s",
                  said);
        gemmepi_plan_destroy(plan);
    }
    return status ? status : gemmepi_download(here->context, w->memory, here->arena, ARENA, here->stream);
}

/* >>what is expected */

typedef struct wanted {
    double value, size;
    int64_t place, count;
} wanted;

static void gather(wanted *e, char reduce, double x, int64_t place) {
    if (reduce == 's') {
        e->value += x, e->size += fabs(x);
    } else if (e->count == 0) {
        e->value = x, e->place = place, e->size = 1;
    } else if (reduce == 'l') {
        double most = x > e->value ? x : e->value;
        e->size = e->size * exp(e->value - most) + exp(x - most), e->value = most;
    } else if ((reduce == 'n' ? x < e->value : x > e->value) || (x != x && e->value == e->value)) {
        e->value = x, e->place = place;
    }
    e->count++;
}

static void finish(const table *t, wanted *e, double there) {
    char reduce = t->s.reduce;
    if (reduce == 's' && t->s.accumulate)
        e->value += there, e->size += fabs(there);
    if (e->count == 0 && reduce == 'n')
        e->value = HUGE_VAL;
    else if (e->count == 0 && reduce != 's' && reduce != 'a')
        e->value = -INFINITY;
    else if (reduce == 'l' && isfinite(e->value))
        e->value += log(e->size);
    if (reduce == 'a')
        e->value = e->count ? (double)e->place : 0;
    if (reduce != 's')
        e->size = fabs(e->value);
}

static double roundoff_of(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_F32    ? ldexp(1, -24)
           : dtype == GEMMEPI_F64  ? ldexp(1, -53)
           : dtype == GEMMEPI_F16  ? ldexp(1, -11)
           : dtype == GEMMEPI_BF16 ? ldexp(1, -8)
           : dtype == GEMMEPI_E4M3 ? ldexp(1, -4)
           : dtype == GEMMEPI_E5M2 ? ldexp(1, -3)
                                   : 0;
}

static int is_near(const world *w, const table *t, double got, const wanted *e) {
    double value = t->s.scaled ? e->value * t->scale : e->value;
    double computed = w->dtype == GEMMEPI_F64 ? 1e-13 : size_of(t->dtype) <= 2 ? 1e-3 : 8e-6;
    double bound = 1.01 * roundoff_of(t->dtype) * fabs(value) + computed * (1 + e->size);
    if (t->s.reduce == 'a' || t->dtype == GEMMEPI_I32)
        return got == value;
    if (t->dtype == GEMMEPI_I8)
        return fabs(got - (value > 127 ? 127 : value < -128 ? -128 : value)) <= 0.501;
    return value != value ? got != got : got == value || fabs(got - value) <= bound;
}

static void mark(world *w, const table *t, const int64_t *at) {
    memset(w->touched + place_in(t, at), 1, size_of(t->dtype));
}

/* The index of the result that an index of the operation goes into. */
static void result_index(const table *t, const int64_t *at, int64_t *to) {
    int d;
    for (d = 0; d < AXES; d++)
        to[d] = t->extent[d] == 1 ? 0 : at[d];
    if (t->s.kind == GEMMEPI_BLOCKED)
        to[2] /= t->s.row_period, to[3] /= t->s.column_period;
}

/* As it is stored: an element of its own at each index. */
static table without_blocks(const table *t) {
    table bare = *t;
    if (t->s.kind == GEMMEPI_BLOCKED)
        bare.s.row_period = bare.s.column_period = 1;
    return bare;
}

static void check_output(world *w, const formula_case *c, const table *t) {
    int64_t at[AXES] = {0}, point[AXES], all[AXES], where[AXES];
    table bare = without_blocks(t);
    int wrong = 0;
    double amax = 0;
    if (is_empty(t->extent))
        return;
    do {
        wanted e = {0, 0, 0, 0};
        double got = take_number(t->dtype, w->memory + place_in(&bare, at));
        if (t->s.reduce == 'f') {
            e.value = c->oracle(w, t->s.name, at);
            e.size = fabs(e.value);
        } else {
            memcpy(all, w->shape, sizeof all);
            all[3] = w->wide;
            memset(point, 0, sizeof point);
            if (!is_empty(all))
                do {
                    result_index(t, point, where);
                    if (memcmp(where, at, sizeof where) == 0)
                        gather(&e, t->s.reduce, c->oracle(w, t->s.name, point),
                               t->s.kind == GEMMEPI_PER_ROW ? point[3] : point[2]);
                } while (next_index(all, point));
            finish(t, &e, take_number(t->dtype, w->before + place_in(&bare, at)));
        }
        if (!is_near(w, t, got, &e) && !wrong++)
            CHECK(0, "%s over [%d, %d, %d, %d] in %s: %s[%d, %d, %d, %d] is %.17g, not %.17g", w->formula,
                  (int)w->shape[0], (int)w->shape[1], (int)w->shape[2], (int)w->shape[3], name_of(w->dtype),
                  t->s.name, (int)at[0], (int)at[1], (int)at[2], (int)at[3], got,
                  t->s.scaled ? e.value * t->scale : e.value);
        amax = fabs(e.value) > amax ? fabs(e.value) : amax;
        mark(w, &bare, at);
    } while (next_index(t->extent, at));
    if (t->s.scaled) {
        int i = (int)(t - w->t);
        double got = take_number(GEMMEPI_F32, w->memory + AMAX_AT + 4 * i);
        CHECK(fabs(got - amax) <= 1e-5 * (1 + amax), "%s: amax of %s is %g, not %g", w->formula, t->s.name,
              got, amax);
        memset(w->touched + AMAX_AT + 4 * i, 1, 4);
    }
}

static void check_world(world *w, const formula_case *c, int by_plan) {
    gemmepi_status status = run_world(w, by_plan);
    size_t i;
    int o, wrong = 0;
    CHECK(status == GEMMEPI_OK, "%s: %s", w->formula, gemmepi_last_error());
    if (status)
        return;
    memset(w->touched, 0, sizeof w->touched);
    for (o = 0; o < w->count + w->has_y; o++)
        if (w->t[o].s.reduce)
            check_output(w, c, &w->t[o]);
    for (i = 0; i < ARENA; i++)
        wrong += !w->touched[i] && w->memory[i] != w->before[i];
    CHECK(wrong == 0, "%s: %d bytes beside the outputs changed", w->formula, wrong);
}

/* >>formulas */

static double sigmoid_of(double x) {
    return 1 / (1 + exp(-x));
}

static double gate(world *w, const char *name, const int64_t *at) {
    double v = in_at(w, "x", at) + in_at(w, "bias", at);
    (void)name;
    return v * sigmoid_of(v) * in_at(w, "up", at);
}
static double norm(world *w, const char *name, const int64_t *at) {
    double d = in_at(w, "x", at) * in_at(w, "rstd", at) * in_at(w, "gain", at);
    return strcmp(name, "ss") == 0 ? d * d : d;
}
static double outer(world *w, const char *name, const int64_t *at) {
    (void)name;
    return in_at(w, "x", at) - in_at(w, "z", at) * in_at(w, "p", at);
}
static double swiglu(world *w, const char *name, const int64_t *at) {
    double g = column_at(w, "x", at, at[3] + w->shape[3] / 2);
    (void)name;
    return column_at(w, "x", at, at[3]) * g * sigmoid_of(g);
}
static double swiglu_gradient(world *w, const char *name, const int64_t *at) {
    int64_t n = w->shape[3], j = at[3] % n;
    double up = column_at(w, "dy", at, j), v = column_at(w, "x", at, j), g = column_at(w, "x", at, j + n),
           s = sigmoid_of(g);
    (void)name;
    return at[3] < n ? up * g * s : up * v * (s + g * s * (1 - s));
}
static double rope(world *w, const char *name, const int64_t *at) {
    int64_t head = at[3] / 4, in = at[3] % 4, half = in / 2, j = head * 2 + in % 2;
    double x = column_at(w, "x", at, head * 4 + in % 2), y = column_at(w, "x", at, head * 4 + 2 + in % 2);
    double c = column_at(w, "c", at, j), s = column_at(w, "s", at, j);
    (void)name;
    return half ? y * c + x * s : x * c - y * s;
}
static double min_gru(world *w, const char *name, const int64_t *at) {
    int64_t third = w->shape[3] / 3;
    double z = sigmoid_of(column_at(w, "x", at, at[3] + third));
    (void)name;
    return z * column_at(w, "h", at, at[3]) + (1 - z) * column_at(w, "x", at, at[3] + 2 * third);
}
static double fourths(world *w, const char *name, const int64_t *at) {
    int64_t n = w->shape[3], j = at[3] % n;
    double x = column_at(w, "x", at, j), y = column_at(w, "y3", at, j + 3 * n);
    (void)name;
    return at[3] < n ? y : at[3] < 2 * n ? x * y : at[3] < 3 * n ? 7 : x;
}
static double pairs(world *w, const char *name, const int64_t *at) {
    double x = column_at(w, "x", at, at[3] / 2 * 2), y = column_at(w, "x", at, at[3] / 2 * 2 + 1);
    (void)name;
    return at[3] % 2 ? x : -y;
}
static double plain_x(world *w, const char *name, const int64_t *at) {
    (void)name;
    return in_at(w, "x", at);
}
static double squares(world *w, const char *name, const int64_t *at) {
    double x = in_at(w, "x", at);
    return strcmp(name, "most") == 0 ? fabs(x) : x * x;
}
static double of_labels(world *w, const char *name, const int64_t *at) {
    double x = in_at(w, "x", at);
    return strcmp(name, "lse") == 0 ? x : at[3] == (int64_t)in_at(w, "label", at) ? x : 0;
}
static double places(world *w, const char *name, const int64_t *at) {
    (void)name;
    return (at[3] > at[2] ? -1000 : in_at(w, "x", at) - 0.5 * (double)(at[2] - at[3])) +
           (double)(100 * (at[0] * w->shape[1] + at[1]) + w->shape[2] + 10 * w->shape[3]);
}
static double by_tables(world *w, const char *name, const int64_t *at) {
    (void)name;
    return in_at(w, "x", at) + in_at(w, "tab", at);
}

/* By index: along columns, or along rows; 0 where there is no such element. */
static double indexed(world *w, const char *name, const int64_t *at, int axis, int64_t index) {
    const table *t = table_called(w, name);
    int64_t moved[AXES];
    memcpy(moved, at, sizeof moved);
    moved[axis] = index;
    if (index < 0 || index >= (t->s.dims[axis] == 'p' ? t->extent[axis] : w->shape[axis]))
        return 0;
    return in_at(w, name, moved);
}
static double by_index(world *w, const char *name, const int64_t *at) {
    int64_t label = (int64_t)in_at(w, "label", at), q = (int64_t)in_at(w, "q", at);
    double x = in_at(w, "x", at);
    if (strcmp(name, "o") == 0)
        return indexed(w, "r", at, 2, q) + indexed(w, "r", at, 2, at[3]) + indexed(w, "p", at, 2, 1);
    return x * indexed(w, "w", at, 3, label) + indexed(w, "codes", at, 3, q) - indexed(w, "t", at, 3, at[2]) +
           x * indexed(w, "t", at, 3, label) + indexed(w, "u", at, 3, at[3]);
}

static double by_index_alone(world *w, const char *name, const int64_t *at) {
    int64_t q = (int64_t)in_at(w, "q", at);
    (void)name;
    return in_at(w, "x", at) * indexed(w, "r", at, 2, q) + indexed(w, "u", at, 3, q);
}

static double by_periods(world *w, const char *name, const int64_t *at) {
    (void)name;
    return in_at(w, "x", at) + in_at(w, "t", at) * in_at(w, "u", at) - in_at(w, "q", at);
}
static double dropout(world *w, const char *name, const int64_t *at) {
    double u = philox_uniform((uint64_t)in_at(w, "seed", at), (uint32_t)at[3] / 4, (uint32_t)at[2],
                              (uint32_t)(at[0] * w->shape[1] + at[1]), 7, (int)(at[3] % 4));
    (void)name;
    return u >= 0.25 ? in_at(w, "x", at) / 0.75 : 0;
}
/* 1.25 x as one of its neighbours in y's type: the one of larger magnitude where its share and u come to 1. */
static double by_chance(world *w, const char *name, const int64_t *at) {
    double u = philox_uniform((uint64_t)in_at(w, "seed", at), (uint32_t)at[3] / 4, (uint32_t)at[2],
                              (uint32_t)(at[0] * w->shape[1] + at[1]), 7, (int)(at[3] % 4));
    return oracle_by_chance(table_called(w, name)->dtype, 1.25 * in_at(w, "x", at), u);
}
static double small_copy(world *w, const char *name, const int64_t *at) {
    (void)name;
    return 2 * in_at(w, "x", at) + in_at(w, "z", at);
}
static double whole(world *w, const char *name, const int64_t *at) {
    (void)name;
    return in_at(w, "x", at) + 3 * in_at(w, "z", at) - (double)at[3];
}
static double by_blocks(world *w, const char *name, const int64_t *at) {
    double d = in_at(w, "x", at) * in_at(w, "s", at) - in_at(w, "t", at);
    return strcmp(name, "o") == 0 ? d * in_at(w, "u", at) : d;
}
static double by_groups(world *w, const char *name, const int64_t *at) {
    double x = in_at(w, "x", at);
    return strcmp(name, "ss") == 0 ? x * x : strcmp(name, "mean") == 0 ? x / 8 : x;
}
static double groups_of_half(world *w, const char *name, const int64_t *at) {
    double x = column_at(w, "x", at, at[3]);
    return strcmp(name, "s") == 0 ? x : x * column_at(w, "x", at, at[3] + w->shape[3] / 2);
}
static double blocks_of_halves(world *w, const char *name, const int64_t *at) {
    int64_t half = at[3] + w->shape[3] / 2;
    (void)name;
    return column_at(w, "x", at, at[3]) * column_at(w, "s", at, at[3]) +
           column_at(w, "x", at, half) * column_at(w, "s", at, half) * in_at(w, "h", at);
}
static double of_halves(world *w, const char *name, const int64_t *at) {
    double x = in_at(w, "x", at);
    return strcmp(name, "s") == 0
               ? x
               : column_at(w, "x", at, at[3]) - column_at(w, "x", at, at[3] + w->shape[3] / 2);
}

#define F_(name, dims) \
    { name, GEMMEPI_FULL, dims, 0, (gemmepi_dtype)0, GEMMEPI_WIDTH_N, 0, 0, 0, 0 }
#define IN(name, kind, dims) \
    { name, kind, dims, 0, (gemmepi_dtype)0, GEMMEPI_WIDTH_N, 0, 0, 0, 0 }
#define TYPED(name, kind, dims, dtype) \
    { name, kind, dims, 0, dtype, GEMMEPI_WIDTH_N, 0, 0, 0, 0 }
#define WIDE(name, kind, dims, width) \
    { name, kind, dims, 0, (gemmepi_dtype)0, width, 0, 0, 0, 0 }
#define PERIODIC(name, kind, dims, p, q) \
    { name, kind, dims, 0, (gemmepi_dtype)0, GEMMEPI_WIDTH_N, p, q, 0, 0 }
#define BLOCKS(name, dims, rows, columns) \
    { name, GEMMEPI_BLOCKED, dims, 0, (gemmepi_dtype)0, GEMMEPI_WIDTH_N, rows, columns, 0, 0 }
#define GROUPS(name, columns, reduce) \
    { name, GEMMEPI_BLOCKED, "**bb", reduce, (gemmepi_dtype)0, GEMMEPI_WIDTH_N, 1, columns, 0, 0 }
#define OUT(name, kind, dims, reduce) \
    { name, kind, dims, reduce, (gemmepi_dtype)0, GEMMEPI_WIDTH_N, 0, 0, 0, 0 }
#define ADDED(name, kind, dims) \
    { name, kind, dims, 's', (gemmepi_dtype)0, GEMMEPI_WIDTH_N, 0, 0, 1, 0 }
#define FLOATS (1u << GEMMEPI_F32 | 1u << GEMMEPI_F16 | 1u << GEMMEPI_BF16)

static const formula_case cases[] = {
    {"d = x * s - t; o = d * u",
     by_blocks,
     'n',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), BLOCKS("s", "**bb", 1, 8), BLOCKS("t", "*1bb", 3, 2), BLOCKS("u", "..bb", 4, 1),
      OUT("o", GEMMEPI_FULL, "****", 'f')}},
    {"d = x * s - t; o = d * u",
     by_blocks,
     'n',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), BLOCKS("s", "**1b", 128, 16), BLOCKS("t", "***b", 1, 4), BLOCKS("u", "**b1", 2, 1000),
      OUT("o", GEMMEPI_FULL, "****", 'f')}},
    {"d = x * s - t; o = d * u",
     by_blocks,
     'n',
     1,
     0,
     0,
     FLOATS,
     (gemmepi_dtype)0,
     {F_("x", "****"),
      {"s", GEMMEPI_BLOCKED, "**bb", 0, GEMMEPI_E4M3, GEMMEPI_WIDTH_N, 2, 8, 0, 1},
      {"t", GEMMEPI_BLOCKED, "**bb", 0, GEMMEPI_I8, GEMMEPI_WIDTH_N, 1, 32, 0, 0},
      {"u", GEMMEPI_BLOCKED, "***b", 0, GEMMEPI_F32, GEMMEPI_WIDTH_N, 1, 1, 0, 0},
      OUT("o", GEMMEPI_FULL, "****", 'f')}},
    {"d = left(x) * left(s) + right(x * s) * h",
     blocks_of_halves,
     'h',
     2,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"),
      BLOCKS("s", "**bb", 1, 8),
      {"h", GEMMEPI_BLOCKED, "**bb", 0, (gemmepi_dtype)0, GEMMEPI_WIDTH_HALF, 2, 3, 0, 0}}},
    {"d = silu(x + bias) * up",
     gate,
     'n',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), IN("bias", GEMMEPI_PER_COLUMN, "...*"), F_("up", "****")}},
    {"d = x * rstd * gain; ss = row_sum(d * d)",
     norm,
     'n',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), IN("rstd", GEMMEPI_PER_ROW, "***1"), IN("gain", GEMMEPI_PER_COLUMN, "..1*"),
      OUT("ss", GEMMEPI_PER_ROW, "***1", 's')}},
    {"d = x - z * p",
     outer,
     'n',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "*1*1"), F_("z", "1*1*"), IN("p", GEMMEPI_NUMBER, "....")}},
    {"d = x - z * p",
     outer,
     'n',
     1,
     1,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "...*"), F_("z", "...1"), IN("p", GEMMEPI_SCALAR, "....")}},
    {"d = left(x) * silu(right(x))", swiglu, 'h', 2, 0, 0, 0, (gemmepi_dtype)0, {F_("x", "****")}},
    {"d = pair(dy * silu(right(x)), dy * left(x) * d_silu(right(x)))",
     swiglu_gradient,
     'd',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("dy", "****"), WIDE("x", GEMMEPI_FULL, "****", GEMMEPI_WIDTH_DOUBLE)}},
    {"a = left(x, 4); b = right(x, 4); d = pair(a * c - b * s, b * c + a * s, 4)",
     rope,
     'n',
     4,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), WIDE("c", GEMMEPI_FULL, "..**", GEMMEPI_WIDTH_HALF),
      WIDE("s", GEMMEPI_FULL, "..**", GEMMEPI_WIDTH_HALF)}},
    {"z = sigmoid(part(x, 1, 3)); d = z * h + (1 - z) * part(x, 2, 3)",
     min_gru,
     'h',
     3,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), WIDE("h", GEMMEPI_FULL, "..**", GEMMEPI_WIDTH_HALF)}},
    {"d = parts(part(y3, 3, 4), x * part(y3, 3, 4), 7, x)",
     fourths,
     'd',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), WIDE("y3", GEMMEPI_FULL, "****", GEMMEPI_WIDTH_DOUBLE)}},
    {"d = interleave(-odd(x), even(x))", pairs, 'n', 2, 0, 0, 0, (gemmepi_dtype)0, {F_("x", "****")}},
    {"s = column_sum(x); m = column_max(x); l = column_logsumexp(x); t = all_sum(x); n = column_min(x)",
     plain_x,
     '-',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), OUT("s", GEMMEPI_PER_COLUMN, "...*", 's'), OUT("m", GEMMEPI_PER_COLUMN, "111*", 'm'),
      OUT("l", GEMMEPI_PER_COLUMN, "..1*", 'l'), OUT("t", GEMMEPI_SCALAR, "....", 's'),
      OUT("n", GEMMEPI_PER_COLUMN, "111*", 'n')}},
    {"s = column_sum(x); a = column_argmax(x); m = all_max(x); t = all_sum(x); d = x",
     plain_x,
     'n',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), OUT("s", GEMMEPI_PER_COLUMN, "**1*", 's'), OUT("a", GEMMEPI_PER_COLUMN, "**1*", 'a'),
      OUT("m", GEMMEPI_SCALAR, "**11", 'm'), OUT("t", GEMMEPI_SCALAR, "**11", 's')}},
    {"a = row_argmax(x); m = row_max(x); l = row_logsumexp(x); s = row_sum(x); n = row_min(x)",
     plain_x,
     '-',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), OUT("a", GEMMEPI_PER_ROW, "***1", 'a'), OUT("m", GEMMEPI_PER_ROW, "***1", 'm'),
      OUT("l", GEMMEPI_PER_ROW, "***1", 'l'), ADDED("s", GEMMEPI_PER_ROW, "***1"),
      OUT("n", GEMMEPI_PER_ROW, "***1", 'n')}},
    {"total = all_sum(x * x); most = all_max(abs(x)); sums = column_sum(x * x)",
     squares,
     '-',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), ADDED("total", GEMMEPI_SCALAR, "1111"), OUT("most", GEMMEPI_SCALAR, "....", 'm'),
      ADDED("sums", GEMMEPI_PER_COLUMN, "...*")}},
    {"s = column_sum(x * x); t = column_sum(x * x); u = column_logsumexp(x * x); v = column_sum(x * x)",
     squares,
     '-',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), OUT("s", GEMMEPI_PER_COLUMN, "**1*", 's'), ADDED("t", GEMMEPI_PER_COLUMN, "...*"),
      OUT("u", GEMMEPI_PER_COLUMN, "...*", 'l'), OUT("v", GEMMEPI_PER_COLUMN, "..1*", 's')}},
    {"lse = row_logsumexp(x); hit = row_sum(column == label ? x : 0)",
     of_labels,
     '-',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), TYPED("label", GEMMEPI_PER_ROW, "***1", GEMMEPI_I64),
      OUT("lse", GEMMEPI_PER_ROW, "***1", 'l'), OUT("hit", GEMMEPI_PER_ROW, "***1", 's')}},
    {"d = (column > row ? -1000 : x - 0.5 * (row - column)) + 100 * item + rows + 10 * columns + depth",
     places,
     'n',
     1,
     0,
     0,
     1u << GEMMEPI_F32 | 1u << GEMMEPI_F64,
     (gemmepi_dtype)0,
     {F_("x", "****")}},
    {"d = x + tab",
     by_tables,
     'n',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), PERIODIC("tab", GEMMEPI_PER_COLUMN, "**1p", 0, 4)}},
    {"d = x * w[label] + codes[q] - t[row] + x * t[label] + u[column]; o = r[q] + r[column] + p[1]",
     by_index,
     'n',
     1,
     0,
     0,
     FLOATS,
     (gemmepi_dtype)0,
     {F_("x", "****"),
      PERIODIC("w", GEMMEPI_PER_COLUMN, "...p", 0, 5),
      TYPED("label", GEMMEPI_PER_ROW, "***1", GEMMEPI_I64),
      {"codes", GEMMEPI_PER_COLUMN, ".*1p", 0, GEMMEPI_I8, GEMMEPI_WIDTH_N, 0, 16, 0, 1},
      TYPED("q", GEMMEPI_FULL, ".***", GEMMEPI_I32),
      F_("t", "****"),
      IN("u", GEMMEPI_PER_COLUMN, "..1*"),
      IN("r", GEMMEPI_PER_ROW, "..*1"),
      PERIODIC("p", GEMMEPI_PER_ROW, "**p1", 2, 0),
      OUT("o", GEMMEPI_FULL, "****", 'f')}},
    {"d = x * r[q] + u[q]",
     by_index_alone,
     'n',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), IN("r", GEMMEPI_PER_ROW, "***1"), IN("u", GEMMEPI_PER_COLUMN, "..1*"),
      TYPED("q", GEMMEPI_FULL, "****", GEMMEPI_I32)}},
    {"d = x + t * u - q",
     by_periods,
     'n',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), PERIODIC("t", GEMMEPI_FULL, "..p*", 3, 0),
      PERIODIC("u", GEMMEPI_PER_COLUMN, "**1p", 0, 4), PERIODIC("q", GEMMEPI_PER_ROW, ".*p1", 8, 0)}},
    {"d = uniform(seed, 7) >= 0.25 ? x / 0.75 : 0",
     dropout,
     'n',
     1,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), TYPED("seed", GEMMEPI_SCALAR, "....", GEMMEPI_I64)}},
    {"d = stochastic(1.25 * x, seed, 7); o = stochastic(1.25 * x, seed, 7)",
     by_chance,
     'n',
     1,
     0,
     0,
     FLOATS,
     (gemmepi_dtype)0,
     {F_("x", "****"),
      TYPED("seed", GEMMEPI_SCALAR, "....", GEMMEPI_I64),
      {"o", GEMMEPI_FULL, "****", 'f', GEMMEPI_BF16, GEMMEPI_WIDTH_N, 0, 0, 0, 0}}},
    {"d = 2 * x + z; small = d; o = d",
     small_copy,
     'n',
     1,
     0,
     0,
     FLOATS,
     (gemmepi_dtype)0,
     {F_("x", "****"),
      {"z", GEMMEPI_FULL, "****", 0, GEMMEPI_E5M2, GEMMEPI_WIDTH_N, 0, 0, 0, 1},
      {"small", GEMMEPI_FULL, "****", 'f', GEMMEPI_E4M3, GEMMEPI_WIDTH_N, 0, 0, 0, 1},
      {"o", GEMMEPI_FULL, "****", 'f', GEMMEPI_F32, GEMMEPI_WIDTH_N, 0, 0, 0, 0}}},
    {"d = 2 * x + z",
     small_copy,
     'n',
     1,
     0,
     0,
     1u << GEMMEPI_BF16,
     GEMMEPI_I8,
     {F_("x", "****"), F_("z", "...*")}},
    {"d = x + 3 * z - column",
     whole,
     'n',
     1,
     0,
     0,
     1u << GEMMEPI_I32,
     GEMMEPI_I32,
     {F_("x", "****"), IN("z", GEMMEPI_PER_ROW, "***1")}},
    {"d = left(x) - right(x); s = row_sum(x)",
     of_halves,
     'h',
     2,
     0,
     2,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), OUT("s", GEMMEPI_PER_ROW, "***1", 's')}},
    {"d = x; ss = row_sum(x * x, 8); mean = row_mean(x, 8); top = row_max(x, 16); low = row_min(x, 16)",
     by_groups,
     'n',
     16,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), GROUPS("ss", 8, 's'), GROUPS("mean", 8, 's'), GROUPS("top", 16, 'm'),
      GROUPS("low", 16, 'n')}},
    {"s = row_sum(x, 48)",
     by_groups,
     '-',
     48,
     0,
     0,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"), {"s", GEMMEPI_BLOCKED, "**bb", 's', (gemmepi_dtype)0, GEMMEPI_WIDTH_N, 1, 48, 1, 0}}},
    {"t = row_max(left(x) * right(x), 24)",
     groups_of_half,
     '-',
     48,
     0,
     1,
     0,
     (gemmepi_dtype)0,
     {F_("x", "****"),
      {"t", GEMMEPI_BLOCKED, "**bb", 'm', (gemmepi_dtype)0, GEMMEPI_WIDTH_HALF, 1, 24, 0, 0}}}};

static const int64_t shapes[][AXES] = {{2, 3, 5, 8},   {1, 1, 19, 40}, {3, 1, 7, 4},  {1, 4, 1, 12},
                                       {2, 2, 33, 72}, {1, 1, 1, 520}, {1, 5, 66, 4}, {2, 1, 3, 136},
                                       {1, 1, 5, 9},   {2, 2, 3, 17},  {1, 1, 1, 1}};

static int takes(const formula_case *c, gemmepi_dtype dtype, const int64_t *shape) {
    unsigned is_for = c->is_for ? c->is_for : 1u << GEMMEPI_F32 | 1u << GEMMEPI_BF16 | 1u << GEMMEPI_F64;
    return is_for >> dtype & 1 && shape[3] % c->multiple == 0;
}

static int64_t flat_shape[AXES];

/* The shape as the case has it: of a y of rank 1 there are columns alone. */
static const int64_t *shape_of(const formula_case *c, const int64_t *shape) {
    int d;
    memcpy(flat_shape, shape, sizeof flat_shape);
    for (d = 0; d < AXES - (c->rank_of_y ? c->rank_of_y : AXES); d++)
        flat_shape[d] = 1;
    return flat_shape;
}

static void run_cases(int plain) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F64, GEMMEPI_I32};
    size_t i, t;
    int turn, key[2];
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        for (t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
            key[0] = (int)i, key[1] = (int)t;
            w0.random = rng_seeded(asked_seed * 7919 + i * 101 + t * 13 + (unsigned)plain);
            if (!takes(&cases[i], dtypes[t], shapes[0]) || !test_takes(test_key(key, 2)))
                continue;
            for (turn = 0; turn < asked_count; turn++) {
                const int64_t *shape = shapes[rng_below(&w0.random, (int)(sizeof shapes / sizeof *shapes))];
                if (!takes(&cases[i], dtypes[t], shape))
                    shape = shapes[0];
                set_up(&w0, &cases[i], shape_of(&cases[i], shape), dtypes[t], plain);
                check_world(&w0, &cases[i], turn % 2);
            }
        }
}

static void formulas_over_dense_tensors_are_right(void) {
    run_cases(1);
}
static void formulas_over_any_strides_are_right(void) {
    run_cases(0);
}

/* >>what is rare */

static void extents_of_0_give_sums_of_nothing(void) {
    static const int64_t empty[][AXES] = {
        {2, 3, 0, 8}, {2, 3, 5, 0}, {0, 3, 5, 8}, {2, 0, 5, 8}, {0, 1, 0, 4}};
    size_t i, j;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        for (j = 0; j < sizeof empty / sizeof *empty; j++)
            if (takes(&cases[i], GEMMEPI_F32, empty[j]) && cases[i].rank_of_y == 0 &&
                !strstr(cases[i].formula, "- z * p")) { /* which would be broadcast */
                w0.random = rng_seeded(i * 31 + j);
                set_up(&w0, &cases[i], empty[j], GEMMEPI_F32, 1);
                check_world(&w0, &cases[i], (int)(j % 2));
            }
}

/* The case at its first formula with these words. */
static const formula_case *case_with(const char *words) {
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strstr(cases[i].formula, words))
            return &cases[i];
    printf("no case %s\n", words);
    exit(2);
}

static void set_element(world *w, const char *name, int64_t i0, int64_t i1, int64_t r, int64_t c, double x) {
    int64_t at[AXES];
    table *t = table_called(w, name);
    at[0] = i0, at[1] = i1, at[2] = r, at[3] = c;
    put_number(t->dtype, w->memory + place_in(t, at), x);
}

/* Of one row: items take the place of rows. */
static void tables_of_items_are_each_items_own(void) {
    static const int64_t of_one_row[][AXES] = {{3, 1, 1, 8}, {1, 4, 1, 12}, {2, 3, 1, 4}};
    const formula_case *c = case_with("x + tab");
    int i;
    for (i = 0; i < 6; i++) {
        w0.random = rng_seeded((uint64_t)i);
        set_up(&w0, c, of_one_row[i / 2], GEMMEPI_F32, i % 2);
        check_world(&w0, c, i % 2);
    }
}

static void check_with_gaps(const formula_case *c, const char *name) {
    int by_plan;
    gaps_of = name;
    for (by_plan = 0; by_plan < 2; by_plan++) {
        w0.random = rng_seeded((uint64_t)by_plan);
        set_up(&w0, c, shapes[0], GEMMEPI_F32, 1);
        check_world(&w0, c, by_plan);
    }
    gaps_of = NULL;
}

/* Items of the table begin where the rows of one would end, but rows and items are not one axis of it. */
static void rows_with_a_period_begin_anew_in_each_item(void) {
    static const formula_case c = {"d = x + tab",
                                   by_tables,
                                   'n',
                                   1,
                                   0,
                                   0,
                                   0,
                                   (gemmepi_dtype)0,
                                   {F_("x", "****"), PERIODIC("tab", GEMMEPI_FULL, "**p*", 3, 0)}};
    gaps[2] = 8 * (5 - 3);
    check_with_gaps(&c, "tab");
    gaps[2] = 0;
}

/* Rows and items, which lie as one axis, stay two. */
static void tables_along_rows_that_are_read_by_index_are_each_items_own(void) {
    check_with_gaps(case_with("x * r[q]"), "");
}

/* Neither rows and items nor the two axes of items are one, but columns are side by side. */
static void items_of_two_axes_may_lie_apart(void) {
    gaps[1] = 24, gaps[2] = 16;
    check_with_gaps(case_with("silu(x + bias)"), "up");
    gaps[1] = gaps[2] = 0;
}

static void nan_goes_through_arithmetic_and_reductions(void) {
    const formula_case *c = case_with("row_argmax");
    w0.random = rng_seeded(3);
    set_up(&w0, c, shapes[0], GEMMEPI_F32, 1);
    set_element(&w0, "x", 1, 2, 3, 4, NAN);
    set_element(&w0, "x", 0, 0, 0, 0, NAN);
    set_element(&w0, "x", 0, 1, 0, 7, INFINITY);
    check_world(&w0, c, 0);
    c = case_with("silu(x + bias)");
    set_up(&w0, c, shapes[0], GEMMEPI_BF16, 1);
    set_element(&w0, "x", 1, 2, 3, 4, NAN);
    set_element(&w0, "up", 0, 2, 3, 4, INFINITY);
    check_world(&w0, c, 0);
}

/* y in the place of x: its table becomes x's. */
static void y_may_be_an_input(void) {
    const formula_case *c = case_with("silu(x + bias)");
    int plain;
    for (plain = 0; plain < 2; plain++) {
        spec y;
        w0.random = rng_seeded(5);
        set_up(&w0, c, shapes[4], GEMMEPI_F32, plain);
        y = w0.t[w0.count].s;
        w0.t[w0.count] = *table_called(&w0, "x");
        w0.t[w0.count].s = y;
        check_world(&w0, c, plain);
        c = case_with("rstd");
        set_up(&w0, c, shapes[4], GEMMEPI_BF16, plain);
        w0.t[w0.count] = *table_called(&w0, "x");
        w0.t[w0.count].s = y;
        check_world(&w0, c, plain);
        c = case_with("silu(x + bias)");
    }
}

/* Five axes of items that nothing merges, and more where the host runs. */
static void items_may_have_many_axes(void) {
    int64_t shape[8] = {2, 1, 3, 2, 2, 2, 3, 4}, stride[8], dense[8], at[8] = {0};
    float x[576], y[576], s[48], total[48] = {0};
    gemmepi_tensor from = {0}, to = {0}, sums = {0};
    gemmepi_operand operands[2];
    gemmepi_elementwise_desc desc = {0};
    void *device[3];
    int64_t next = 1, sums_shape[8], step;
    int i, d;
    static const int order[8] = {6, 2, 7, 0, 5, 3, 1, 4};
    for (d = 0; d < 8; d++)
        stride[order[d]] = next, next *= shape[order[d]];
    for (d = 7, next = 1; d >= 0; d--)
        dense[d] = next, next *= shape[d];
    for (i = 0; i < 576; i++)
        x[i] = (float)(i % 91) / 8, y[i] = -1;
    memset(operands, 0, sizeof operands);
    for (i = 0; i < 3; i++)
        if (gemmepi_alloc(here->context, sizeof x, &device[i]))
            SKIP("no memory");
    CHECK(!gemmepi_upload(here->context, device[0], x, sizeof x, NULL), "%s", gemmepi_last_error());
    memcpy(sums_shape, shape, sizeof shape);
    sums_shape[6] = sums_shape[7] = 1;
    from.data = device[0], to.data = device[1], sums.data = device[2];
    from.rank = to.rank = sums.rank = 8;
    from.shape = to.shape = shape, sums.shape = sums_shape;
    from.stride = stride;
    operands[0].name = "x", operands[0].kind = GEMMEPI_FULL, operands[0].tensor = &from;
    operands[1].name = "s", operands[1].kind = GEMMEPI_SCALAR, operands[1].tensor = &sums,
    operands[1].output = 1;
    desc.formula = "d = x + 1000 * item + row; s = all_sum(x)";
    desc.operands = operands, desc.operand_count = 2, desc.y = &to;
    CHECK(!gemmepi_elementwise(here->context, &desc, NULL, NULL), "%s", gemmepi_last_error());
    CHECK(!gemmepi_download(here->context, y, device[1], sizeof y, NULL), "%s", gemmepi_last_error());
    CHECK(!gemmepi_download(here->context, s, device[2], sizeof s, NULL), "%s", gemmepi_last_error());
    for (i = 0; i < 576; i++) {
        float wanted;
        for (d = 0, step = 0; d < 8; d++)
            at[d] = i / dense[d] % shape[d], step += at[d] * stride[d];
        total[i / 12] += x[step];
        wanted = x[step] + 1000.0f * (float)(i / 12) + (float)at[6];
        CHECK(y[i] == wanted, "y[%d] is %g, not %g", i, (double)y[i], (double)wanted);
    }
    for (i = 0; i < 48; i++)
        CHECK(fabsf(s[i] - total[i]) < 1e-3, "s[%d] is %g, not %g", i, (double)s[i], (double)total[i]);
    for (i = 0; i < 3; i++)
        gemmepi_free(here->context, device[i]);
}

static void equal_calls_give_equal_bits_and_names_may_differ(void) {
    const formula_case *c = case_with("ss = row_sum");
    static unsigned char first[ARENA];
    int turn;
    for (turn = 0; turn < 2; turn++) {
        w0.random = rng_seeded(11);
        set_up(&w0, c, shapes[4], GEMMEPI_BF16, 0);
        if (turn)
            w0.formula = "q = gain; d = x * rstd * q; ss = row_sum(d * d)";
        CHECK(!run_world(&w0, turn), "%s", gemmepi_last_error());
        if (!turn)
            memcpy(first, w0.memory, sizeof first);
    }
    CHECK(memcmp(first, w0.memory, sizeof first) == 0, "the bits differ");
}

/* >>gradients: F64, of a loss that is the sum of d times random weights */

enum { G_ROWS = 5, G_COLUMNS = 6, G_FULL = G_ROWS * G_COLUMNS };

typedef struct gradient_case {
    const char *formula, *wrt;
    gemmepi_width y;
} gradient_case;

static int elements_of(const gemmepi_operand *o) {
    int columns = o->width == GEMMEPI_WIDTH_HALF     ? G_COLUMNS / 2
                  : o->width == GEMMEPI_WIDTH_DOUBLE ? 2 * G_COLUMNS
                                                     : G_COLUMNS;
    return o->kind == GEMMEPI_FULL         ? G_ROWS * columns
           : o->kind == GEMMEPI_PER_ROW    ? G_ROWS
           : o->kind == GEMMEPI_PER_COLUMN ? columns
                                           : 1;
}

/* A dense F64 tensor of an operand. */
static void shape_operand(const gemmepi_operand *o, gemmepi_tensor *t, int64_t shape[2], void *data) {
    memset(t, 0, sizeof *t);
    shape[0] = o->kind == GEMMEPI_FULL || o->kind == GEMMEPI_PER_ROW ? G_ROWS : 1;
    shape[1] = elements_of(o) / shape[0];
    t->dtype = GEMMEPI_F64, t->rank = 2, t->shape = shape, t->data = data;
}

static double *room; /* on the device: 16 tensors of 2 G_FULL numbers */
enum { EACH_ROOM = 2 * G_FULL };

static gemmepi_status run_f64(const char *formula, const char *result, gemmepi_operand *operands, int count,
                              const gemmepi_operand *y, int y_room) {
    gemmepi_tensor tensors[16], to;
    int64_t shapes_of[16][2], y_shape[2];
    gemmepi_elementwise_desc desc = {0};
    int i;
    for (i = 0; i < count; i++) {
        shape_operand(&operands[i], &tensors[i], shapes_of[i], room + EACH_ROOM * operands[i].ld);
        operands[i].tensor = &tensors[i];
        operands[i].ld = 0;
    }
    desc.formula = formula, desc.formula_result = result;
    desc.operands = operands, desc.operand_count = count;
    if (y) {
        shape_operand(y, &to, y_shape, room + EACH_ROOM * y_room);
        desc.y = &to;
    }
    return gemmepi_elementwise(here->context, &desc, NULL, here->stream);
}

static void upload_room(int i, const double *x) {
    CHECK(!gemmepi_upload(here->context, room + EACH_ROOM * i, x, EACH_ROOM * sizeof *x, here->stream), "%s",
          gemmepi_last_error());
}

static void download_room(int i, double *x) {
    CHECK(!gemmepi_download(here->context, x, room + EACH_ROOM * i, EACH_ROOM * sizeof *x, here->stream),
          "%s", gemmepi_last_error());
}

/* The inputs x, z, bias, row and one lie in rooms 0 to 4, y in 5, dy in 6, gradients from 7 on. */
static int operands_of_gradient(gemmepi_operand *o) {
    static const char *const names[] = {"x", "z", "bias", "scale", "one"};
    static const gemmepi_operand_kind kinds[] = {GEMMEPI_FULL, GEMMEPI_FULL, GEMMEPI_PER_COLUMN,
                                                 GEMMEPI_PER_ROW, GEMMEPI_SCALAR};
    int i;
    memset(o, 0, 16 * sizeof *o);
    for (i = 0; i < 5; i++)
        o[i].name = names[i], o[i].kind = kinds[i], o[i].ld = i;
    return 5;
}

static double loss_of(const gradient_case *g, double values[5][EACH_ROOM], const double *weights) {
    gemmepi_operand operands[16], y = {0};
    double d[EACH_ROOM], loss = 0;
    int count = operands_of_gradient(operands), i;
    y.kind = GEMMEPI_FULL, y.width = g->y;
    for (i = 0; i < 5; i++)
        upload_room(i, values[i]);
    CHECK(!run_f64(g->formula, NULL, operands, count, &y, 5), "%s", gemmepi_last_error());
    download_room(5, d);
    for (i = 0; i < elements_of(&y); i++)
        loss += d[i] * weights[i];
    return loss;
}

static int room_of(const char *name, int gradients) {
    static const char *const names[] = {"x", "z", "bias", "scale", "one", "d", "dy"};
    int i;
    for (i = 0; i < 7; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return 7 + gradients;
}

static void check_gradient(const gradient_case *g, double values[5][EACH_ROOM], const double *weights) {
    gemmepi_operand operands[16], derived[16];
    gemmepi_derive_desc desc = {0};
    char text[4097];
    double got[EACH_ROOM];
    int count = operands_of_gradient(operands), gradients = 0, rooms[16], i, j, of;
    for (i = 0; i < count; i++)
        operands[i].ld = 0;
    desc.formula = g->formula, desc.operands = operands, desc.operand_count = count, desc.wrt = g->wrt;
    CHECK(gemmepi_derive(&desc, text, sizeof text) > 0, "%s", gemmepi_last_error());
    count = gemmepi_derive_operands(&desc, derived, 16);
    for (i = 0; i < count; i++) {
        rooms[i] = room_of(derived[i].name, gradients);
        gradients += derived[i].output;
        derived[i].ld = rooms[i];
        derived[i].dtype = GEMMEPI_DTYPE_DEFAULT;
    }
    for (i = 0; i < 5; i++)
        upload_room(i, values[i]);
    upload_room(6, weights);
    CHECK(count > 0 && !run_f64(text, "d", derived, count, NULL, 0), "%s: %s", text, gemmepi_last_error());
    for (i = 0; i < count; i++) {
        if (!derived[i].output)
            continue;
        download_room(rooms[i], got);
        of = room_of(derived[i].name + 2, 0);
        for (j = 0; j < elements_of(&derived[i]); j++) {
            double kept = values[of][j], step = 1e-5, up, down;
            values[of][j] = kept + step, up = loss_of(g, values, weights);
            values[of][j] = kept - step, down = loss_of(g, values, weights);
            values[of][j] = kept;
            CHECK(fabs(got[j] - (up - down) / (2 * step)) < 1e-6 * (1 + fabs(got[j])),
                  "%s: %s[%d] is %.12g, not %.12g", text, derived[i].name, j, got[j],
                  (up - down) / (2 * step));
        }
    }
}

static void gradients_are_what_central_differences_give(void) {
    static const gradient_case gradients[] = {
        {"d = silu(x + bias) * z * scale + one", "x, z, bias, scale, one", GEMMEPI_WIDTH_N},
        {"d = left(x) * gelu_erf(right(x) * one)", "x, one", GEMMEPI_WIDTH_HALF},
        {"d = exp(x - scale) / (1 + z * z) * tanh(bias)", "x, z, bias, scale", GEMMEPI_WIDTH_N},
    };
    double values[5][EACH_ROOM], weights[EACH_ROOM];
    rng r = rng_seeded(77);
    void *block = NULL;
    size_t i, j;
    CHECK(!gemmepi_alloc(here->context, 16 * EACH_ROOM * sizeof(double), &block), "%s", gemmepi_last_error());
    room = (double *)block;
    for (i = 0; i < 5; i++)
        for (j = 0; j < EACH_ROOM; j++)
            values[i][j] = (rng_below(&r, 257) - 128) / 96.0;
    for (j = 0; j < EACH_ROOM; j++)
        weights[j] = (rng_below(&r, 257) - 128) / 96.0;
    for (i = 0; i < sizeof gradients / sizeof *gradients; i++) {
        int key = (int)i;
        if (test_takes(test_key(&key, 1)))
            check_gradient(&gradients[i], values, weights);
    }
    gemmepi_free(here->context, block);
}

int main(int argc, char **argv) {
    test_device devices[2];
    int opened = test_devices_open(devices), i;
    asked_count = argc > 1 ? atoi(argv[1]) : 4;
    asked_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (i = 0; i < opened; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(formulas_over_dense_tensors_are_right);
        RUN(formulas_over_any_strides_are_right);
        RUN(extents_of_0_give_sums_of_nothing);
        RUN(tables_of_items_are_each_items_own);
        RUN(rows_with_a_period_begin_anew_in_each_item);
        RUN(tables_along_rows_that_are_read_by_index_are_each_items_own);
        RUN(items_of_two_axes_may_lie_apart);
        RUN(nan_goes_through_arithmetic_and_reductions);
        RUN(y_may_be_an_input);
        RUN(items_may_have_many_axes);
        RUN(equal_calls_give_equal_bits_and_names_may_differ);
        RUN(gradients_are_what_central_differences_give);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
