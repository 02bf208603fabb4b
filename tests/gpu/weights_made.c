/* weights_made [sizes [shape [cases]]]: weights of 4 and 8 bits of which a formula makes 16, in registers, in each shape of the kernels for
   them, which a plan is made to take here, at random sizes against plain loops. Needs a GPU of compute capability 8.0 or later whose
   blocks may have 128 KiB of shared memory, the first or that which GEMMEPI_TEST_DEVICE numbers. With the number of a shape: of that
   alone; with one of cases: as many, not the same of each shape. */
#include "candidate.h"

enum { SHAPES = GPI__COUNT(gpi__weights_shapes), LARGEST_K = 1400, MOST_OPERANDS = 6 };

static test_device device;
static int sizes = 2, only = -1, cases_taken = 0;

/* What a kernel is compiled for. */
typedef struct making {
    gemmepi_dtype stored, a;
    const char *text;
    gemmepi_dtype zero, scale;
    int group;          /* of k; 0: all */
    int columns;        /* of a block */
    int zeros_are_odd;  /* halves of whole numbers, which 16 bits have not room for beside a mark */
    const char *result; /* D's formula, or NULL */
    int with_alpha;
    int ends_infinite; /* the scale of each third column's last group */
} making;

static const making makings[] = {
    {GEMMEPI_U4, GEMMEPI_F16, "(b - zero) * scale", GEMMEPI_F16, GEMMEPI_F16, 128, 1, 0, NULL, 0, 0},
    {GEMMEPI_I4, GEMMEPI_BF16, "b * scale", GEMMEPI_F16, GEMMEPI_BF16, 32, 1, 0, NULL, 0, 0},
    {GEMMEPI_U4, GEMMEPI_BF16, "(b - zero) * scale", GEMMEPI_F32, GEMMEPI_F32, 64, 1, 1, NULL, 1, 0},
    {GEMMEPI_U4, GEMMEPI_BF16, "(b - zero) * scale", GEMMEPI_I8, GEMMEPI_F16, 128, 1, 0, NULL, 0, 0},
    {GEMMEPI_U4, GEMMEPI_BF16, "(b - zero) * scale", GEMMEPI_U4, GEMMEPI_F16, 128, 1, 0, NULL, 0, 0},
    {GEMMEPI_I4, GEMMEPI_F16, "(b + zero) * scale", GEMMEPI_I4, GEMMEPI_F32, 32, 2, 0, NULL, 0, 0},
    {GEMMEPI_U4, GEMMEPI_BF16, "scale * (b - 8)", GEMMEPI_F16, GEMMEPI_F16, 256, 1, 0, NULL, 0, 0},
    {GEMMEPI_E2M1, GEMMEPI_BF16, "b * scale", GEMMEPI_F16, GEMMEPI_E8M0, 32, 1, 0, NULL, 0, 0},
    {GEMMEPI_E2M1, GEMMEPI_F16, "b * scale * number", GEMMEPI_F16, GEMMEPI_E4M3, 16, 1, 0, NULL, 0, 0},
    {GEMMEPI_E2M1, GEMMEPI_F16, "(b + zero) * scale", GEMMEPI_I8, GEMMEPI_F16, 64, 1, 0,
     "d = left(v) * right(v)", 0, 0},
    {GEMMEPI_I8, GEMMEPI_BF16, "b * scale", GEMMEPI_F16, GEMMEPI_F32, 0, 1, 0, NULL, 0, 0},
    {GEMMEPI_U4, GEMMEPI_BF16, "book[b] * scale", GEMMEPI_F16, GEMMEPI_F32, 64, 1, 0, NULL, 0, 0},
    {GEMMEPI_I8, GEMMEPI_F16, "(b - zero) / scale", GEMMEPI_BF16, GEMMEPI_BF16, 128, 2, 0, "d = v * 2 + bias",
     1, 0},
    {GEMMEPI_E4M3, GEMMEPI_F16, "b * scale", GEMMEPI_F16, GEMMEPI_F32, 128, 128, 0, NULL, 0, 0},
    {GEMMEPI_E5M2, GEMMEPI_BF16, "b * scale", GEMMEPI_F16, GEMMEPI_BF16, 16, 1, 0, NULL, 0, 0},
    {GEMMEPI_I4, GEMMEPI_F16, "max(b - zero, -3) * scale + one", GEMMEPI_F16, GEMMEPI_F32, 1024, 1, 1, NULL,
     0, 0},
    {GEMMEPI_I4, GEMMEPI_F16, "b", GEMMEPI_F16, GEMMEPI_F32, 128, 1, 0, "d = relu(v) + bias", 0, 0},
};
enum { MAKINGS = GPI__COUNT(makings) };

static const making endings[] = {
    {GEMMEPI_U4, GEMMEPI_F16, "(b - zero) * scale", GEMMEPI_F16, GEMMEPI_F16, 128, 1, 0, NULL, 0, 1},
    {GEMMEPI_I8, GEMMEPI_BF16, "b * scale", GEMMEPI_F16, GEMMEPI_F32, 64, 1, 0, NULL, 0, 1},
    {GEMMEPI_E2M1, GEMMEPI_BF16, "b * scale", GEMMEPI_F16, GEMMEPI_BF16, 32, 1, 0, NULL, 0, 1},
    {GEMMEPI_U4, GEMMEPI_BF16, "(b - zero) * scale", GEMMEPI_F32, GEMMEPI_F32, 64, 1, 1, NULL, 0, 1},
};

/* A stored_tensor of so many lines: numbers, and bytes on the device. */
typedef struct stored_tensor {
    gemmepi_dtype dtype;
    int64_t lines, length, ld, stride, items;
    double *values;
    char *device;
} stored_tensor;

typedef struct drawn {
    const making *of;
    int64_t m, n, k, batch;
    stored_tensor a, b, zero, scale, bias, one, book, d;
    double number;
    gemmepi_operand operands[MOST_OPERANDS];
    void *pointers[MOST_OPERANDS];
} drawn;

/* >>drawing */

static int is_packed(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_I4 || dtype == GEMMEPI_U4 || dtype == GEMMEPI_E2M1;
}

static double value_of_code(gemmepi_dtype dtype, int code) {
    static const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return dtype == GEMMEPI_E2M1             ? (code & 8 ? -e2m1[code & 7] : e2m1[code & 7])
           : dtype == GEMMEPI_I4 && code > 7 ? code - 16
                                             : code;
}

/* Numbers between least and most, or codes where both are 0; what lies beside is anything. */
static int ends_infinite; /* what is drawn: in each third line */
static stored_tensor tensor_of(gemmepi_dtype dtype, int64_t lines, int64_t length, int64_t unit,
                               int64_t items, rng *r, double least, double most, double step) {
    stored_tensor t;
    int64_t i, count;
    size_t size = is_packed(dtype) || dtype == GEMMEPI_E8M0 ? 1 : gemmepi_dtype_size(dtype);
    char *bytes;
    memset(&t, 0, sizeof t);
    t.dtype = dtype, t.lines = lines, t.length = length, t.items = items;
    t.ld = (length + unit - 1) / unit * unit + unit * rng_below(r, 3);
    t.stride = items > 1 ? t.ld * lines + unit * rng_below(r, 2) : 0;
    count = t.stride * (items - 1) + t.ld * lines;
    t.values = (double *)malloc((size_t)count * sizeof(double));
    bytes = (char *)calloc((size_t)count, size);
    for (i = 0; i < count; i++) {
        double x = least + step * rng_below(r, (int)((most - least) / step) + 1);
        int code = rng_below(r, 16);
        if (ends_infinite && i / t.ld % 3 == 0 && i % t.ld == length - 1)
            x = INFINITY;
        if (is_packed(dtype)) {
            bytes[i / 2] = (char)(bytes[i / 2] | code << 4 * (i % 2));
            t.values[i] = value_of_code(dtype, code);
        } else if (dtype == GEMMEPI_E8M0) {
            bytes[i] = (char)(124 + code % 6);
            t.values[i] = ldexp(1, code % 6 - 3);
        } else {
            t.values[i] = oracle_round(dtype, x);
            oracle_encode(dtype, bytes + (size_t)i * size, x);
        }
    }
    CHECK(gemmepi_alloc(device.context, (size_t)count * size + 16, (void **)&t.device) == GEMMEPI_OK &&
              gemmepi_upload(device.context, t.device, bytes, (size_t)count * size, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    free(bytes);
    return t;
}

static void free_tensor(stored_tensor *t) {
    free(t->values);
    gemmepi_free(device.context, t->device);
}

static double at(const stored_tensor *t, int64_t item, int64_t line, int64_t i) {
    return t->values[item * t->stride + line * t->ld + i];
}

static void add_operand(drawn *w, int i, const char *name, gemmepi_operand_kind kind,
                        const stored_tensor *t) {
    gemmepi_operand *o = &w->operands[i];
    if (!strstr(w->of->text, name) && !(w->of->result && strstr(w->of->result, name)))
        kind = GEMMEPI_SCALAR; /* nobody reads it */
    o->name = name, o->kind = kind, o->dtype = t->dtype, o->batch_stride = t->stride;
    o->ld = kind == GEMMEPI_BLOCKED ? t->ld : 0;
    if (kind == GEMMEPI_BLOCKED)
        o->block_rows = w->of->group, o->block_columns = w->of->columns;
    w->pointers[i] = t->device;
}

static drawn draw(const making *of, const gpi__weights_shape *shape, uint64_t seed) {
    rng r = rng_seeded(seed);
    drawn w;
    int64_t lines, length;
    memset(&w, 0, sizeof w);
    w.of = of;
    w.m = 1 + rng_below(&r, rng_one_in(&r, 3) ? 2 * shape->tile_m + 3 : shape->tile_m);
    w.n = 4 + 4 * rng_below(&r, 70);
    w.k = (is_packed(of->stored) ? 2 : 1) * (1 + rng_below(&r, LARGEST_K / 2));
    w.k += shape->parts > 1 ? 1024 * shape->parts : 0;
    w.batch = rng_one_in(&r, 4) ? 2 : 1;
    if (of->ends_infinite)
        w.k = w.k / of->group * of->group + 2;
    if (is_packed(of->zero) && (w.k + of->group - 1) / of->group % 2)
        w.k += of->group; /* lines of bytes */
    lines = (w.n + of->columns - 1) / of->columns,
    length = of->group ? (w.k + of->group - 1) / of->group : w.n;
    lines = of->group ? lines : 1;
    w.a = tensor_of(of->a, w.m, w.k, 8, w.batch, &r, of->ends_infinite ? 0.125 : -1, 1, 1.0 / 64);
    w.b = tensor_of(of->stored, w.n, w.k, is_packed(of->stored) ? 32 : 16, rng_one_in(&r, 2) ? w.batch : 1,
                    &r, -100, 100, 1);
    ends_infinite = of->ends_infinite;
    w.scale = tensor_of(of->scale, lines, length, 4, rng_one_in(&r, 2) ? w.batch : 1, &r, 0.5, 2, 1.0 / 1024);
    ends_infinite = 0;
    w.zero = tensor_of(of->zero, lines, length, 8, 1, &r, 0, 15, of->zeros_are_odd ? 1.0 / 32 : 1);
    w.bias = tensor_of(GEMMEPI_F32, 1, w.n, 4, 1, &r, -4, 4, 0.25);
    w.one = tensor_of(GEMMEPI_F32, 1, 1, 1, 1, &r, -1, 1, 0.25);
    w.d = tensor_of(GEMMEPI_F32, w.m, w.n, 4, w.batch, &r, 7, 7, 1);
    w.book = tensor_of(GEMMEPI_F32, 1, 16, 16, rng_one_in(&r, 2) ? w.batch : 1, &r, -1, 1, 1.0 / 64);
    w.number = 0.375;
    add_operand(&w, 0, "zero", of->group ? GEMMEPI_BLOCKED : GEMMEPI_PER_COLUMN, &w.zero);
    add_operand(&w, 1, "scale", of->group ? GEMMEPI_BLOCKED : GEMMEPI_PER_COLUMN, &w.scale);
    add_operand(&w, 2, "bias", GEMMEPI_PER_COLUMN, &w.bias);
    add_operand(&w, 3, "one", GEMMEPI_SCALAR, &w.one);
    w.operands[4].name = "number", w.operands[4].kind = GEMMEPI_NUMBER;
    add_operand(&w, 5, "book", GEMMEPI_PER_COLUMN, &w.book);
    w.operands[5].column_period = w.operands[5].kind == GEMMEPI_PER_COLUMN ? 16 : 0;
    return w;
}

static void free_drawn(drawn *w) {
    free_tensor(&w->a), free_tensor(&w->b), free_tensor(&w->zero), free_tensor(&w->scale);
    free_tensor(&w->bias), free_tensor(&w->one), free_tensor(&w->book), free_tensor(&w->d);
}

/* >>what is expected */

static double made(const drawn *w, int64_t item, int64_t column, int64_t k) {
    const making *of = w->of;
    int64_t line = of->group ? column / of->columns : 0, place = of->group ? k / of->group : column;
    double b = at(&w->b, item, column, k), zero = at(&w->zero, item, line, place);
    double scale = at(&w->scale, item, line, place), x = b;
    if (strcmp(of->text, "(b - zero) * scale") == 0)
        x = (b - zero) * scale;
    else if (strcmp(of->text, "b * scale") == 0)
        x = b * scale;
    else if (strcmp(of->text, "scale * (b - 8)") == 0)
        x = scale * (b - 8);
    else if (strcmp(of->text, "book[b] * scale") == 0)
        x = at(&w->book, item, 0, (int64_t)b) * scale;
    else if (strcmp(of->text, "b * scale * number") == 0)
        x = b * scale * w->number;
    else if (strcmp(of->text, "(b + zero) * scale") == 0)
        x = (b + zero) * scale;
    else if (strcmp(of->text, "(b - zero) / scale") == 0)
        x = (b - zero) / scale;
    else if (strcmp(of->text, "b") != 0)
        x = fmax(b - zero, -3) * scale + at(&w->one, 0, 0, 0);
    return oracle_round(of->a, x);
}

/* v and what it may be off: sums in F32, and a number of 16 bits that was rounded twice. A product of whole numbers and a scale of 11 bits
   is exact in F32, and rounded once. */
static double value(const drawn *w, int64_t item, int64_t row, int64_t column, double *bound) {
    double sum = 0, size = 0, x;
    int64_t k;
    for (k = 0; k < w->k; k++) {
        x = at(&w->a, item, row, k) * made(w, item, column, k);
        sum += x, size += fabs(x);
    }
    x = !strchr(w->of->text, '/') && !strstr(w->of->text, "one") ? 0
        : w->of->a == GEMMEPI_BF16                               ? 0.008
                                                                 : 0.001;
    *bound = size * (1e-5 + x / (double)(w->k < 16 ? 1 : w->k / 16)) + 1e-6;
    return sum * (w->of->with_alpha ? 1.5 : 1);
}

static int64_t d_columns(const drawn *w) {
    return w->of->result && strstr(w->of->result, "left") ? w->n / 2 : w->n;
}

static double expected_of(const drawn *w, int64_t item, int64_t row, int64_t column, double *bound) {
    const char *result = w->of->result;
    double v = value(w, item, row, column, bound), other, other_bound;
    if (!result)
        return v;
    if (strstr(result, "bias")) {
        *bound *= 2;
        return (strstr(result, "relu") ? fmax(v, 0) : v * 2) + at(&w->bias, 0, 0, column);
    }
    other = value(w, item, row, column + w->n / 2, &other_bound);
    *bound = fabs(v) * other_bound + fabs(other) * *bound + *bound * other_bound;
    return v * other;
}

/* >>plans of one shape */

static void describe(const drawn *w, gemmepi_matmul_desc *desc) {
    memset(desc, 0, sizeof *desc);
    desc->m = w->m, desc->n = w->n, desc->k = w->k, desc->batch = w->batch;
    desc->a.dtype = w->a.dtype, desc->a.ld = w->a.ld, desc->a.batch_stride = w->a.stride;
    desc->b.dtype = w->b.dtype, desc->b.ld = w->b.ld, desc->b.batch_stride = w->b.stride;
    desc->b.transposed = 1, desc->b.formula = w->of->text;
    desc->d.dtype = GEMMEPI_F32, desc->d.ld = w->d.ld, desc->d.batch_stride = w->d.stride;
    desc->operands = w->operands, desc->operand_count = MOST_OPERANDS;
    desc->formula = w->of->result;
}

/* NULL: the shape does not take the problem. */
static gemmepi_plan *plan_as(const gemmepi_matmul_desc *desc, int shape, int unit_alpha) {
    gpi__candidate candidate = candidate_by(&gpi__weights_engine, shape, unit_alpha);
    gpi__problem problem = problem_of(device.context, desc),
                 inside = gpi__problem_in_registers(device.context, &problem);
    gemmepi_plan *plan = NULL;
    candidate.is_inside = desc->formula != NULL;
    CHECK(!gpi__weights_rule(device.context, &inside), "%s", gpi__weights_rule(device.context, &inside));
    if (desc->formula)
        inside.epilogue |= strstr(desc->formula, "left") ? GEMMEPI_GATED : 0;
    if (gpi__weights_shape_accepts(&inside, &gpi__weights_shapes[shape], device.context->arch))
        plan = plan_by(device.context, &problem, &candidate, 0);
    gpi__drop_formulas(device.context, &problem);
    return plan;
}

static int infinite; /* how many numbers were to be */

/* What D's memory, sevens before, has after a run. */
static float *numbers_of(drawn *w, const gemmepi_plan *plan) {
    gemmepi_matmul_args args;
    double alpha = 1.5;
    int64_t i, count = w->d.stride * (w->batch - 1) + w->d.ld * w->d.lines;
    float *got = (float *)malloc((size_t)count * sizeof *got);
    for (i = 0; i < count; i++)
        got[i] = 7;
    memset(&args, 0, sizeof args);
    args.a = w->a.device, args.b = w->b.device, args.d = w->d.device, args.operands = w->pointers;
    w->pointers[4] = gemmepi_number(&w->number);
    if (w->of->with_alpha)
        args.alpha = &alpha;
    CHECK(gemmepi_upload(device.context, w->d.device, got, (size_t)count * sizeof *got, NULL) == GEMMEPI_OK &&
              gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK &&
              gemmepi_download(device.context, got, w->d.device, (size_t)count * sizeof *got, NULL) ==
                  GEMMEPI_OK,
          "%s", gemmepi_last_error());
    return got;
}

static int64_t run_and_compare(drawn *w, const gemmepi_plan *plan, int64_t *checked) {
    int64_t item, row, column, wrong = 0, columns = d_columns(w);
    float *got = numbers_of(w, plan);
    for (item = 0; item < w->batch; item++)
        for (row = 0; row < w->m; row += 1 + w->m / 9)
            for (column = 0; column < w->d.ld; column += column < columns ? 1 + columns / 90 : 1) {
                float have = got[item * w->d.stride + row * w->d.ld + column];
                double bound = 0, want = column < columns ? expected_of(w, item, row, column, &bound) : 7;
                ++*checked;
                infinite += isinf(want) != 0;
                if (!(isfinite(want) ? fabs(have - want) <= bound
                      : isnan(want)  ? isnan(have)
                                     : have == want) &&
                    wrong++ == 0)
                    printf("  item %d, row %d, column %d: %g, expected %g, bound %g\n", (int)item, (int)row,
                           (int)column, have, want, bound);
            }
    free(got);
    return wrong;
}

static int shape_here;

/* Of a row, by plans of the first `rows` rows and of all; those of all each time. */
static int64_t count_other_bits(drawn *w, const gemmepi_plan *plan, const gemmepi_plan *of_first,
                                int64_t rows) {
    float *got = numbers_of(w, plan), *again = numbers_of(w, plan), *first = numbers_of(w, of_first);
    int64_t item, row, others = 0;
    size_t size = (size_t)d_columns(w) * sizeof *got;
    for (item = 0; item < w->batch; item++)
        for (row = 0; row < w->m; row++) {
            int64_t at = item * w->d.stride + row * w->d.ld;
            others += memcmp(got + at, again + at, size) != 0;
            others += row < rows && memcmp(got + at, first + at, size) != 0;
        }
    free(got), free(again), free(first);
    return others;
}

/* Also where two blocks run on a multiprocessor, and where another number of rows is in the last tile. */
static void bits_are_the_same_each_time_and_at_any_number_of_rows(void) {
    int i, runs = 0;
    for (i = 0; i < MAKINGS && !runs; i++) {
        const making *of = &makings[(i + shape_here) % MAKINGS];
        drawn w;
        gemmepi_matmul_desc desc;
        gemmepi_plan *plan, *of_first;
        w = draw(of, &gpi__weights_shapes[shape_here], (uint64_t)(90000 + 50 * shape_here + i));
        describe(&w, &desc);
        plan = plan_as(&desc, shape_here, !of->with_alpha);
        desc.m = (w.m + 1) / 2;
        of_first = plan_as(&desc, shape_here, !of->with_alpha);
        runs = plan && of_first;
        if (runs) {
            int64_t others = count_other_bits(&w, plan, of_first, desc.m);
            CHECK(others == 0, "shape %d (%s): %d rows of %d have other bits", shape_here, of->text,
                  (int)others, (int)w.m);
        }
        drop_plan(plan), drop_plan(of_first);
        free_drawn(&w);
    }
    CHECK(runs, "shape %d takes none", shape_here);
}

/* Whether the shape takes it. */
static int run_case(const making *of, uint64_t seed) {
    drawn w = draw(of, &gpi__weights_shapes[shape_here], seed);
    gemmepi_matmul_desc desc;
    gemmepi_plan *plan;
    int runs;
    describe(&w, &desc);
    plan = plan_as(&desc, shape_here, !of->with_alpha);
    runs = plan != NULL;
    if (plan) {
        int64_t checked = 0, wrong = run_and_compare(&w, plan, &checked);
        CHECK(!wrong, "shape %d, seed %d (%s): %d of %d are wrong; m %d, n %d, k %d, batch %d", shape_here,
              (int)seed, of->text, (int)wrong, (int)checked, (int)w.m, (int)w.n, (int)w.k, (int)w.batch);
    }
    drop_plan(plan);
    free_drawn(&w);
    return runs;
}

static void the_shape_makes_what_the_text_says(void) {
    int least = sizes * (cases_taken ? cases_taken : 1), i, c, size, runs = 0;
    for (i = 0; i < MAKINGS && (!cases_taken || runs < least); i++)
        for (c = (i + shape_here * cases_taken) % MAKINGS, size = 0; size < sizes; size++)
            runs += run_case(&makings[c], (uint64_t)(1000 * shape_here + 50 * c + size));
    CHECK(runs >= least / 2, "shape %d: %d runs", shape_here, runs);
}

/* Beyond k a stage has zeros, and infinity times zero is no number. */
static void an_infinite_scale_of_the_last_group_is_of_that_alone(void) {
    int i, runs = 0;
    infinite = 0;
    for (i = 0; i < (int)GPI__COUNT(endings) && runs < sizes; i++)
        runs += run_case(&endings[(i + shape_here) % GPI__COUNT(endings)],
                         (uint64_t)(60000 + 50 * shape_here + i));
    CHECK(runs > 0 && infinite > 0, "shape %d: %d runs, %d numbers are infinite", shape_here, runs, infinite);
}

int main(int argc, char **argv) {
    const char *name = getenv("GEMMEPI_TEST_DEVICE");
    int is_number = name && name[0] >= '0' && name[0] <= '9';
    if (argc > 1)
        sizes = atoi(argv[1]);
    if (argc > 2)
        only = atoi(argv[2]) % SHAPES;
    if (argc > 3)
        cases_taken = atoi(argv[3]);
    if ((name && !is_number) || !test_device_open(&device, GEMMEPI_DEVICE(is_number ? atoi(name) : 0), 0)) {
        printf("skip weights_made: there is no GPU\n");
        test_skipped++;
        return test_finish();
    }
    if (device.context->arch < 80 ||
        gpi__chip_of(device.context->arch)->most_shared < GPI__WEIGHTS_MOST_SHARED) {
        printf("skip weights_made: the GPU is not one that has the kernel\n");
        test_device_close(&device);
        test_skipped++;
        return test_finish();
    }
    for (shape_here = 0; shape_here < SHAPES; shape_here++)
        if (only < 0 || only == shape_here) {
            RUN(the_shape_makes_what_the_text_says);
            RUN(bits_are_the_same_each_time_and_at_any_number_of_rows);
            RUN(an_infinite_scale_of_the_last_group_is_of_that_alone);
        }
    test_device_close(&device);
    return test_finish();
}
