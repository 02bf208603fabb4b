/* scaled_formats [sizes [shape [cases]]]: products of MXFP8, MXFP4 and NVFP4 as their files store them, by texts, against plain loops. On
   compute capability 12.0 and 12.1 tensor cores multiply by the scales, in each shape of the kernel, k whole and in parts, which a plan is
   made to take here; elsewhere passes make the operands. Half of the products are of small whole numbers, to the bit. Needs a GPU, the
   first or that which GEMMEPI_TEST_DEVICE numbers. With the number of a shape: of that alone; with one of cases: as many, not the same of
   each shape. */
#include "candidate.h"

enum { MMA_SHAPES = GPI__COUNT(gpi__sm80_shapes), SHAPES = 2 * MMA_SHAPES, PARTS = 3, OPERANDS = 5 };

static test_device device;
static int sizes = 2, only = -1, cases_taken = 0, shape_here;

/* What a kernel is compiled for. */
typedef struct format {
    gemmepi_dtype a, b, scale;
    const char *of_a, *of_b; /* texts; s is the scale of the whole of b */
    const char *result;      /* D's formula, or NULL */
    int with_alpha;
    int unit; /* bytes at whose multiples lines of scales begin */
} format;

static const format formats[] = {
    {GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_E8M0, "a * p", "b * q", NULL, 0, 4},
    {GEMMEPI_E2M1, GEMMEPI_E2M1, GEMMEPI_E4M3, "a * p", "b * q * s", NULL, 0, 16},
    {GEMMEPI_E2M1, GEMMEPI_E2M1, GEMMEPI_E8M0, "p * a", "q * b", NULL, 1, 8},
    {GEMMEPI_E5M2, GEMMEPI_E4M3, GEMMEPI_E8M0, "a * p", "s * b * q", "d = relu(v) + bias", 0, 4},
    {GEMMEPI_E2M1, GEMMEPI_E2M1, GEMMEPI_E4M3, "a * p", "b * (s * q)", "d = left(v) * right(v)", 0, 4},
    {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_E8M0, "a * p", "b * q", NULL, 0, 16},
    {GEMMEPI_E2M1, GEMMEPI_E2M1, GEMMEPI_E8M0, "a * p", "b * q", "d = left(v) * right(v)", 0, 4},
    {GEMMEPI_E5M2, GEMMEPI_E5M2, GEMMEPI_E8M0, "a * p", "b * q", "d = left(v) * right(v)", 0, 4},
};
enum { FORMATS = GPI__COUNT(formats) };

/* Lines of numbers, and their bytes on the device. */
typedef struct lines {
    gemmepi_dtype dtype;
    int64_t lines, length, ld, stride;
    double *values;
    char *device;
} lines;

typedef struct product {
    const format *of;
    int64_t m, n, k, batch;
    int is_exact;
    lines a, b, p, q, s, bias, d;
    gemmepi_operand operands[OPERANDS];
    void *pointers[OPERANDS];
} product;

/* >>drawing */

static int block_of(gemmepi_dtype scale) {
    return scale == GEMMEPI_E4M3 ? 16 : 32;
}

/* The code of an element or scale, and its number. Exact ones are -3 to 3, and 1, 2 or, of E4M3, -1. */
static unsigned draw_code(gemmepi_dtype dtype, int is_scale, int is_exact, rng *r, double *value) {
    static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    static const unsigned whole[4] = {0, 2, 4, 5};
    unsigned code = (unsigned)rng_below(r, 256);
    double x = rng_below(r, 7) - 3;
    unsigned char bytes[8]; /* as many as the widest type that the oracle encodes has */
    if (dtype == GEMMEPI_E2M1) {
        code = is_exact ? whole[rng_below(r, 4)] | (code & 8) : code & 15;
        *value = (code & 8 ? -1 : 1) * e2m1[code & 7];
        return code;
    }
    if (dtype == GEMMEPI_E8M0) {
        code = is_exact ? 127 + code % 2 : 120 + code % 14;
        *value = ldexp(1, (int)code - 127);
        return code;
    }
    if (is_scale)
        x = is_exact ? (double[]){1, 2, -1}[code % 3]
                     : ldexp(1 + code % 8 / 8.0, (int)code / 32 - 6) * (code % 5 ? 1 : -1);
    else if (!is_exact)
        x = (code % 2 ? 1 : -1) * ldexp(1 + code % 16 / 16.0, (int)code / 32 - 4);
    oracle_encode(dtype, bytes, x);
    *value = oracle_decode(dtype, bytes);
    return bytes[0];
}

static void upload(lines *t, const char *bytes, size_t size) {
    CHECK(gemmepi_alloc(device.context, size + 16, (void **)&t->device) == GEMMEPI_OK &&
              gemmepi_upload(device.context, t->device, bytes, size, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

/* unit: elements at whose multiples lines begin */
static lines draw_lines(gemmepi_dtype dtype, int64_t count, int64_t length, int64_t unit, int64_t items,
                        int is_scale, int is_exact, rng *r) {
    lines t;
    int64_t i, all;
    char *bytes;
    memset(&t, 0, sizeof t);
    t.dtype = dtype, t.lines = count, t.length = length;
    t.ld = (length + unit - 1) / unit * unit + unit * rng_below(r, 3);
    t.stride = items > 1 ? count * t.ld + unit * rng_below(r, 2) : 0;
    all = (items - 1) * t.stride + count * t.ld;
    t.values = (double *)malloc((size_t)all * sizeof(double));
    bytes = (char *)calloc(1, (size_t)all);
    for (i = 0; i < all; i++) {
        unsigned code = draw_code(dtype, is_scale, is_exact, r, &t.values[i]);
        if (dtype == GEMMEPI_E2M1)
            bytes[i / 2] = (char)(bytes[i / 2] | code << 4 * (i % 2));
        else
            bytes[i] = (char)code;
    }
    upload(&t, bytes, (size_t)all);
    free(bytes);
    return t;
}

static lines lines_of_f32(int64_t count, int64_t length, int64_t items, double least, int steps, rng *r) {
    lines t;
    int64_t i, all = items * count * length;
    float *numbers = (float *)malloc((size_t)all * sizeof *numbers);
    memset(&t, 0, sizeof t);
    t.dtype = GEMMEPI_F32, t.lines = count, t.length = t.ld = length,
    t.stride = items > 1 ? count * length : 0;
    t.values = (double *)malloc((size_t)all * sizeof(double));
    for (i = 0; i < all; i++)
        numbers[i] = (float)(t.values[i] = least + rng_below(r, steps) * 0.5);
    upload(&t, (const char *)numbers, (size_t)all * sizeof *numbers);
    free(numbers);
    return t;
}

static void free_lines(lines *t) {
    free(t->values);
    gemmepi_free(device.context, t->device);
}

static void add_operand(product *x, int i, const char *name, gemmepi_operand_kind kind, const lines *t,
                        int of_b) {
    gemmepi_operand *o = &x->operands[i];
    o->name = name, o->kind = kind, o->dtype = t->dtype, o->batch_stride = t->stride;
    if (kind == GEMMEPI_BLOCKED) {
        o->ld = t->ld;
        o->block_rows = of_b ? block_of(x->of->scale) : 1;
        o->block_columns = of_b ? 1 : block_of(x->of->scale);
    }
    x->pointers[i] = t->device;
}

static product draw(const format *of, const gpi__sm80_shape *shape, int parts, uint64_t seed) {
    rng r = rng_seeded(seed);
    product x;
    int64_t blocks;
    int packed = of->a == GEMMEPI_E2M1;
    memset(&x, 0, sizeof x);
    x.of = of;
    x.is_exact = rng_one_in(&r, 2);
    x.m = 1 + rng_below(&r, 2 * shape->tile_m);
    x.n = 2 + 2 * rng_below(&r, shape->tile_n);
    x.k = packed ? 2 + 2 * rng_below(&r, 500) : 1 + rng_below(&r, 700);
    x.k += parts > 1 ? 512 * parts : 0;
    x.batch = rng_one_in(&r, 3) ? 2 : 1;
    blocks = (x.k + block_of(of->scale) - 1) / block_of(of->scale);
    x.a = draw_lines(of->a, x.m, x.k, packed ? 32 : 16, x.batch, 0, x.is_exact, &r);
    x.b = draw_lines(of->b, x.n, x.k, packed ? 32 : 16, rng_one_in(&r, 2) ? x.batch : 1, 0, x.is_exact, &r);
    x.p = draw_lines(of->scale, x.m, blocks, of->unit, x.batch, 1, x.is_exact, &r);
    x.q = draw_lines(of->scale, x.n, blocks, of->unit, rng_one_in(&r, 2) ? x.batch : 1, 1, x.is_exact, &r);
    x.s = lines_of_f32(1, 1, 1, 0.5, 1, &r);
    x.bias = lines_of_f32(1, x.n, 1, -3, 12, &r);
    x.d = lines_of_f32(x.m, x.n, x.batch, 7, 1, &r);
    add_operand(&x, 0, "p", GEMMEPI_BLOCKED, &x.p, 0);
    add_operand(&x, 1, "q", GEMMEPI_BLOCKED, &x.q, 1);
    add_operand(&x, 2, "s", GEMMEPI_SCALAR, &x.s, 1);
    add_operand(&x, 3, "bias", GEMMEPI_PER_COLUMN, &x.bias, 1);
    return x;
}

static void free_product(product *x) {
    free_lines(&x->a), free_lines(&x->b), free_lines(&x->p), free_lines(&x->q);
    free_lines(&x->s), free_lines(&x->bias), free_lines(&x->d);
}

static void describe(const product *x, gemmepi_matmul_desc *desc) {
    memset(desc, 0, sizeof *desc);
    desc->m = x->m, desc->n = x->n, desc->k = x->k, desc->batch = x->batch;
    desc->a.dtype = x->a.dtype, desc->a.ld = x->a.ld, desc->a.batch_stride = x->a.stride;
    desc->a.formula = x->of->of_a;
    desc->b.dtype = x->b.dtype, desc->b.ld = x->b.ld, desc->b.batch_stride = x->b.stride;
    desc->b.formula = x->of->of_b, desc->b.transposed = 1;
    desc->d.dtype = GEMMEPI_F32, desc->d.ld = x->d.ld, desc->d.batch_stride = x->d.stride;
    desc->operands = x->operands, desc->operand_count = 4;
    desc->formula = x->of->result;
}

/* >>what is expected */

static double made(const lines *t, const lines *scales, int64_t item, int64_t line, int64_t k) {
    return t->values[item * t->stride + line * t->ld + k] *
           scales->values[item * scales->stride + line * scales->ld + k / block_of(scales->dtype)];
}

/* What fp8's sums may lose, as docs/numerics.md has it, and where a pass rounds what s makes a third of. */
static double value(const product *x, int64_t item, int64_t row, int64_t column, double *bound) {
    double sum = 0, size = 0, s = strchr(x->of->of_b, 's') ? x->s.values[0] : 1, each;
    int64_t k;
    for (k = 0; k < x->k; k++) {
        each = made(&x->a, &x->p, item, row, k) * made(&x->b, &x->q, item, column, k) * s;
        sum += each, size += fabs(each);
    }
    *bound = x->is_exact ? 0 : size * (0.004 + (double)x->k * 1e-8);
    return sum * (x->of->with_alpha ? 1.5 : 1);
}

static double wanted(const product *x, int64_t item, int64_t row, int64_t column, double *bound) {
    double v = value(x, item, row, column, bound), other, other_bound;
    if (!x->of->result)
        return v;
    if (strstr(x->of->result, "bias"))
        return fmax(v, 0) + x->bias.values[column];
    other = value(x, item, row, column + x->n / 2, &other_bound);
    *bound = fabs(v) * other_bound + fabs(other) * *bound + *bound * other_bound + fabs(v * other) * 1e-6;
    return v * other;
}

static int run_and_compare(product *x, const gemmepi_plan *plan) {
    gemmepi_matmul_args args;
    double alpha = 1.5, bound;
    int64_t item, row, column, wrong = 0,
                               columns = x->of->result && strstr(x->of->result, "left") ? x->n / 2 : x->n;
    size_t bytes = (size_t)(x->batch * x->m * x->n) * sizeof(float);
    float *got = (float *)malloc(bytes);
    memset(&args, 0, sizeof args);
    args.a = x->a.device, args.b = x->b.device, args.d = x->d.device, args.operands = x->pointers;
    args.alpha = x->of->with_alpha ? &alpha : NULL;
    CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK &&
              gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK &&
              gemmepi_download(device.context, got, x->d.device, bytes, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (item = 0; item < x->batch; item++)
        for (row = 0; row < x->m; row += 1 + x->m / 13)
            for (column = 0; column < x->n; column += column < columns ? 1 + columns / 70 : 1) {
                float have = got[(item * x->m + row) * x->n + column];
                double want = column < columns ? wanted(x, item, row, column, &bound) : 7;
                if (column >= columns)
                    bound = 0;
                if (!(fabs(have - want) <= bound) && wrong++ == 0)
                    printf("  item %d, row %d, column %d: %g, expected %g, bound %g\n", (int)item, (int)row,
                           (int)column, have, want, bound);
            }
    free(got);
    return (int)wrong;
}

/* >>plans */

static int has_kernel(void) {
    return gpi__chip_has(device.context->arch, GPI__MMA_SCALED);
}

/* By the shape; NULL: it does not take the product. */
static gemmepi_plan *plan_as(const gemmepi_matmul_desc *desc, int shape, int unit_alpha) {
    gpi__candidate candidate = candidate_by(&gpi__sm80_engine, shape % MMA_SHAPES, unit_alpha);
    gemmepi_plan *plan = NULL;
    gpi__problem problem, inside;
    const char *rule;
    if (!has_kernel()) {
        CHECK(gemmepi_plan_matmul(device.context, desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        return plan;
    }
    problem = inside = problem_of(device.context, desc);
    rule = gpi__scaled_rule(device.context, &problem);
    CHECK(!rule && !gpi__sm80_rule(device.context, &problem), "%s",
          rule ? rule : "the kernel does not take it");
    candidate.is_inside = desc->formula != NULL;
    candidate.parts = shape < MMA_SHAPES ? 1 : PARTS;
    if (desc->formula)
        inside.epilogue |= strstr(desc->formula, "left") ? GEMMEPI_GATED : 0;
    if (gpi__sm80_shape_accepts(&inside, &gpi__sm80_shapes[candidate.shape], device.context->arch) &&
        (candidate.parts == 1 || !desc->formula))
        plan = plan_by(device.context, &problem, &candidate, 0);
    gpi__drop_formulas(device.context, &problem);
    return plan;
}

static void the_shape_multiplies_by_scales(void) {
    int least = sizes * (cases_taken ? cases_taken : 1), i, c, size, runs = 0;
    int parts = shape_here < MMA_SHAPES ? 1 : PARTS;
    const gpi__sm80_shape *shape = &gpi__sm80_shapes[shape_here % MMA_SHAPES];
    for (i = 0; i < FORMATS && (!cases_taken || runs < least); i++)
        for (c = (i + shape_here * cases_taken) % FORMATS, size = 0; size < sizes; size++) {
            product x = draw(&formats[c], shape, parts, (uint64_t)(1000 * shape_here + 50 * c + size));
            gemmepi_matmul_desc desc;
            gemmepi_plan *plan;
            describe(&x, &desc);
            plan = plan_as(&desc, shape_here, !formats[c].with_alpha);
            if (plan) {
                int wrong = run_and_compare(&x, plan);
                CHECK(
                    !wrong,
                    "shape %d, case %d (%s, %s), size %d: %d are wrong; m %d, n %d, k %d, batch %d, exact %d",
                    shape_here, c, formats[c].of_a, formats[c].of_b, size, wrong, (int)x.m, (int)x.n,
                    (int)x.k, (int)x.batch, x.is_exact);
                runs++;
            }
            if (has_kernel())
                drop_plan(plan);
            else
                gemmepi_plan_destroy(plan);
            free_product(&x);
        }
    CHECK(runs > 0 || !(shape->kinds & GPI__OF_FP8), "shape %d: %d runs", shape_here, runs);
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
        printf("skip scaled_formats: there is no GPU\n");
        test_skipped++;
        return test_finish();
    }
    for (shape_here = 0; shape_here < (has_kernel() ? SHAPES : 1); shape_here++)
        if (only < 0 || only == shape_here || !has_kernel())
            RUN(the_shape_multiplies_by_scales);
    test_device_close(&device);
    return test_finish();
}
