/* Products, systematically: every activation with every set of flags, in every dtype, layout and class of size (on a GPU some of
   them), and what the manual states by name. Runs on the devices that GEMMEPI_TEST_DEVICE names; see
   problem.h. */
#include "problem.h"

static test_device *here;

/* One choice of dtypes. */
typedef struct types {
    const char *name;
    gemmepi_dtype operands, results, vectors; /* a, b; c, d, aux, residual; bias, bias_grad */
    gemmepi_compute compute;
    gemmepi_dtype second, others; /* b, if not as a; c, aux and residual, if not as d */
} types;

static const types f64 = {"f64",
                          GEMMEPI_F64,
                          GEMMEPI_F64,
                          GEMMEPI_F64,
                          GEMMEPI_COMPUTE_DEFAULT,
                          GEMMEPI_DTYPE_DEFAULT,
                          GEMMEPI_DTYPE_DEFAULT};
static const types f32 = {"f32",
                          GEMMEPI_F32,
                          GEMMEPI_F32,
                          GEMMEPI_F32,
                          GEMMEPI_COMPUTE_F32,
                          GEMMEPI_DTYPE_DEFAULT,
                          GEMMEPI_DTYPE_DEFAULT};
static const types tf32 = {"tf32",
                           GEMMEPI_F32,
                           GEMMEPI_F32,
                           GEMMEPI_F32,
                           GEMMEPI_COMPUTE_TF32,
                           GEMMEPI_DTYPE_DEFAULT,
                           GEMMEPI_DTYPE_DEFAULT};
static const types f16 = {"f16",
                          GEMMEPI_F16,
                          GEMMEPI_F16,
                          GEMMEPI_F16,
                          GEMMEPI_COMPUTE_DEFAULT,
                          GEMMEPI_DTYPE_DEFAULT,
                          GEMMEPI_DTYPE_DEFAULT};
static const types bf16 = {"bf16",
                           GEMMEPI_BF16,
                           GEMMEPI_BF16,
                           GEMMEPI_BF16,
                           GEMMEPI_COMPUTE_DEFAULT,
                           GEMMEPI_DTYPE_DEFAULT,
                           GEMMEPI_DTYPE_DEFAULT};
static const types bf16_to_f32 = {"bf16 to f32",        GEMMEPI_BF16,        GEMMEPI_F32,
                                  GEMMEPI_F32,          GEMMEPI_COMPUTE_F32, GEMMEPI_DTYPE_DEFAULT,
                                  GEMMEPI_DTYPE_DEFAULT};
static const types f16_with_f32_vectors = {"f16, f32 vectors",   GEMMEPI_F16,         GEMMEPI_F16,
                                           GEMMEPI_F32,          GEMMEPI_COMPUTE_F32, GEMMEPI_DTYPE_DEFAULT,
                                           GEMMEPI_DTYPE_DEFAULT};

static const types e4m3_to_f32 = {
    "e4m3 to f32",           GEMMEPI_E4M3,          GEMMEPI_F32,          GEMMEPI_F32,
    GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_DTYPE_DEFAULT};
static const types e4m3_to_f16 = {
    "e4m3 to f16",           GEMMEPI_E4M3,          GEMMEPI_F16,          GEMMEPI_F16,
    GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_DTYPE_DEFAULT};
static const types e4m3_to_bf16 = {
    "e4m3 to bf16",          GEMMEPI_E4M3,          GEMMEPI_BF16,         GEMMEPI_BF16,
    GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_DTYPE_DEFAULT};
static const types e4m3 = {"e4m3 with bf16",        GEMMEPI_E4M3,          GEMMEPI_E4M3, GEMMEPI_BF16,
                           GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_BF16};
static const types e4m3_alone = {
    "e4m3 alone",          GEMMEPI_E4M3,         GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT,
    GEMMEPI_DTYPE_DEFAULT, GEMMEPI_DTYPE_DEFAULT};
static const types e4m3_e5m2 = {"e4m3 by e5m2 to bf16",  GEMMEPI_E4M3, GEMMEPI_BF16,         GEMMEPI_F32,
                                GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_E5M2, GEMMEPI_DTYPE_DEFAULT};
static const types e5m2_e4m3 = {"e5m2 by e4m3 to f16",   GEMMEPI_E5M2, GEMMEPI_F16,          GEMMEPI_F16,
                                GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_E4M3, GEMMEPI_DTYPE_DEFAULT};
static const types e5m2_to_f32 = {
    "e5m2 to f32",           GEMMEPI_E5M2,          GEMMEPI_F32,          GEMMEPI_BF16,
    GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_DTYPE_DEFAULT};
static const types e5m2_e4m3_to_e5m2 = {
    "e5m2 by e4m3 to e5m2",  GEMMEPI_E5M2, GEMMEPI_E5M2,         GEMMEPI_F16,
    GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_E4M3, GEMMEPI_DTYPE_DEFAULT};
static const types e4m3_to_e5m2 = {"e4m3 to e5m2 with f16", GEMMEPI_E4M3,          GEMMEPI_E5M2, GEMMEPI_F16,
                                   GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_F16};
static const types i8 = {"i8",
                         GEMMEPI_I8,
                         GEMMEPI_I8,
                         GEMMEPI_F32,
                         GEMMEPI_COMPUTE_DEFAULT,
                         GEMMEPI_DTYPE_DEFAULT,
                         GEMMEPI_DTYPE_DEFAULT};
static const types i8_to_f16 = {
    "i8 to f16",           GEMMEPI_I8,           GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT,
    GEMMEPI_DTYPE_DEFAULT, GEMMEPI_DTYPE_DEFAULT};
static const types i8_to_bf16 = {"i8 to bf16",         GEMMEPI_I8,          GEMMEPI_BF16,
                                 GEMMEPI_BF16,         GEMMEPI_COMPUTE_I32, GEMMEPI_DTYPE_DEFAULT,
                                 GEMMEPI_DTYPE_DEFAULT};
static const types i8_to_f32 = {"i8 to f32 with i8", GEMMEPI_I8,          GEMMEPI_F32,
                                GEMMEPI_F32,         GEMMEPI_COMPUTE_F32, GEMMEPI_DTYPE_DEFAULT,
                                GEMMEPI_I8};
static const types i8_bf16 = {
    "i8 by bf16", GEMMEPI_I8,           GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT,
    GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT};
static const types bf16_e4m3 = {"bf16 by e4m3",          GEMMEPI_BF16, GEMMEPI_BF16,         GEMMEPI_F32,
                                GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_E4M3, GEMMEPI_DTYPE_DEFAULT};
static const types f16_bf16 = {"f16 by bf16 to f32",    GEMMEPI_F16,  GEMMEPI_F32,          GEMMEPI_F32,
                               GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT};
static const types f16_bf16_tf32 = {"f16 by bf16, tf32",  GEMMEPI_F16,  GEMMEPI_BF16,         GEMMEPI_BF16,
                                    GEMMEPI_COMPUTE_TF32, GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT};
static const types f32_f16 = {"f32 by f16",        GEMMEPI_F32, GEMMEPI_F32,          GEMMEPI_F16,
                              GEMMEPI_COMPUTE_F32, GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT};
static const types bf16_f32_tf32 = {"bf16 by f32, tf32",  GEMMEPI_BF16, GEMMEPI_F32,          GEMMEPI_BF16,
                                    GEMMEPI_COMPUTE_TF32, GEMMEPI_F32,  GEMMEPI_DTYPE_DEFAULT};
static const types e5m2_f16 = {"e5m2 by f16 to e5m2",   GEMMEPI_E5M2, GEMMEPI_E5M2,         GEMMEPI_F16,
                               GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_F16,  GEMMEPI_DTYPE_DEFAULT};
static const types i8_e4m3 = {"i8 by e4m3 to f16",     GEMMEPI_I8,   GEMMEPI_F16,          GEMMEPI_F32,
                              GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_E4M3, GEMMEPI_DTYPE_DEFAULT};
static const types f32_i8 = {"f32 by i8 to i8",   GEMMEPI_F32, GEMMEPI_I8,           GEMMEPI_F32,
                             GEMMEPI_COMPUTE_F32, GEMMEPI_I8,  GEMMEPI_DTYPE_DEFAULT};
static const types bf16_to_e4m3 = {"bf16 to e4m3",          GEMMEPI_BF16,          GEMMEPI_E4M3, GEMMEPI_BF16,
                                   GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_BF16};
static const types f16_to_i8 = {
    "f16 to i8",           GEMMEPI_F16, GEMMEPI_I8, GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT,
    GEMMEPI_DTYPE_DEFAULT, GEMMEPI_F16};
static const types f32_to_e5m2 = {
    "f32 to e5m2",           GEMMEPI_F32,           GEMMEPI_E5M2,         GEMMEPI_F32,
    GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_DTYPE_DEFAULT};
static const types f32_to_e4m3 = {"f32 to e4m3",        GEMMEPI_F32,         GEMMEPI_E4M3,
                                  GEMMEPI_F32,          GEMMEPI_COMPUTE_F32, GEMMEPI_DTYPE_DEFAULT,
                                  GEMMEPI_DTYPE_DEFAULT};
static const types i8_to_i32 = {
    "i8 to i32",           GEMMEPI_I8,           GEMMEPI_I32, GEMMEPI_I32, GEMMEPI_COMPUTE_DEFAULT,
    GEMMEPI_DTYPE_DEFAULT, GEMMEPI_DTYPE_DEFAULT};

static const types *const all_types[] = {&f64, &f32, &tf32, &f16, &bf16, &bf16_to_f32, &f16_with_f32_vectors};
static const types *const plain_types[] = {&f64, &f32, &f16, &bf16};
/* Of 8 bits somewhere, or mixed; without I32 results. */
static const types *const new_types[] = {
    &e4m3_to_f32, &e4m3_to_f16,   &e4m3_to_bf16,      &e4m3,         &e4m3_alone, &e4m3_e5m2,
    &e5m2_e4m3,   &e5m2_to_f32,   &e5m2_e4m3_to_e5m2, &e4m3_to_e5m2, &i8,         &i8_to_f16,
    &i8_to_bf16,  &i8_to_f32,     &i8_bf16,           &bf16_e4m3,    &f16_bf16,   &f16_bf16_tf32,
    &f32_f16,     &bf16_f32_tf32, &e5m2_f16,          &i8_e4m3,      &f32_i8,     &bf16_to_e4m3,
    &f16_to_i8,   &f32_to_e5m2,   &f32_to_e4m3};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static problem typed(const types *t, int64_t m, int64_t n, int64_t k, gemmepi_epilogue epilogue) {
    problem p = problem_plain(t->operands, m, n, k, epilogue);
    p.desc.compute = t->compute;
    p.desc.b.dtype = t->second;
    p.desc.d.dtype = t->results;
    p.desc.c.dtype = p.desc.aux.dtype = p.desc.residual.dtype = t->others ? t->others : t->results;
    if (problem_has_mask(&p)) /* of bits: it has no dtype */
        p.desc.aux.dtype = GEMMEPI_DTYPE_DEFAULT;
    p.desc.bias.dtype = p.desc.bias_grad.dtype = t->vectors;
    return p;
}

static void lay_out(problem *p, int layout) {
    p->desc.order = layout & 1 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    p->desc.a.transposed = layout >> 1 & 1;
    p->desc.b.transposed = layout >> 2 & 1;
    problem_make_even(p);
}

#define LAYOUTS 8

/* Every matrix that may have a scale gets one; a and b of these modes. */
static void add_scales(problem *p, gemmepi_scale_mode a, gemmepi_scale_mode b) {
    int t;
    for (t = T_SCALE_A; t <= T_SCALE_RESIDUAL; t++)
        if (problem_may_scale(p, tensor_of_scale(t)))
            problem_matrix(p, t)->scale.mode = t == T_SCALE_A ? a : t == T_SCALE_B ? b : GEMMEPI_SCALE_TENSOR;
}

static void holds(const problem *p) {
    CHECK(problem_holds(here, p), "see above");
}

/* Runs p, holds it against the oracle and returns tensor t as the device left it, to be freed. */
/* Of a test that compares answers: whether it is to look at this epilogue. */
static int takes(const types *t, gemmepi_epilogue epilogue) {
    problem p = typed(t, 1, 1, 1, epilogue);
    return test_takes(problem_key(&p));
}

static double *answer(const problem *p, int t) {
    run r;
    double *values;
    CHECK(problem_holds_run(here, p, NULL, &r), "see above");
    values = run_values(&r, t);
    run_free(&r);
    return values;
}

/* >>the grid */

static const gemmepi_epilogue flag_sets[] = {
    0,
    GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
    GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
    GEMMEPI_BACKWARD | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
    GEMMEPI_BGRAD | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
    GEMMEPI_BGRAD_A | GEMMEPI_BIAS,
    GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD | GEMMEPI_AUX,
};

static int has_a_meaning(gemmepi_epilogue activation, gemmepi_epilogue flags) {
    return activation == GEMMEPI_NONE || !(flags & GEMMEPI_BGRAD) || (flags & GEMMEPI_BACKWARD);
}

/* m, n, k: one element, odd, multiples of 8, tall, wide, one row, one column, one term, many terms */
static const int64_t grid_sizes[][3] = {{1, 1, 1},   {37, 29, 31}, {64, 48, 32}, {620, 3, 9},  {2, 700, 17},
                                        {1, 57, 75}, {61, 1, 75},  {33, 40, 1},  {9, 10, 2049}};

static problem grid_problem(const types *t, gemmepi_epilogue epilogue, const int64_t *size, int variant) {
    problem p = typed(t, size[0], size[1], size[2], epilogue);
    lay_out(&p, variant % LAYOUTS);
    p.seed = (uint64_t)variant + 1;
    p.fill = (fill)(variant / 2 % 4);
    p.desc.batch = 1 + variant / 3 % 2;
    p.by_plan = variant % 2;
    if (variant % 3 != 0 || p.desc.batch > 1)
        problem_space_out(&p, variant % 4 * 3);
    if (variant % 4 == 1)
        p.desc.bias_grad.batch_stride = 0;
    if (variant % 3 == 1)
        problem_scale(&p, p.fill == INTEGERS ? 2 : 0.7, p.fill == INTEGERS ? -1 : 1.7);
    return p;
}

/* Each activation, or each of a list of types, is a test of its own, so that those of a GPU, which compile some hundred kernels,
   run side by side. */
static int grid_activation, grid_types;

static void run_each(const char *name, const char *of, int *at, int count, void (*test)(void)) {
    for (*at = 0; *at < count; (*at)++) {
        static char named[96];
        /* of a share on a GPU one in four, and others of another grid: a test's first key is taken always */
        if (!here->is_host && test_share() > 1 && (*at + (int)strlen(name)) % 4 != 0)
            continue;
        snprintf(named, sizeof named, "%s_%s_%d", name, of, *at);
        test_run(named, test);
    }
}
#define RUN_GRID(function)      run_each(#function, "activation", &grid_activation, ACTIVATION_COUNT, function)
#define RUN_TYPES(function, of) run_each(#function, "types", &grid_types, COUNT(of), function)

/* All sizes, and all layouts of one, of a grid's activation with these flags. */
static void hold_sizes(const types *t, gemmepi_epilogue flags, int *variant) {
    gemmepi_epilogue epilogue = activation_codes[grid_activation] | flags;
    int size, layout;
    for (size = 0; size < COUNT(grid_sizes); size++)
        for (layout = 0; layout < (size == 1 ? LAYOUTS : 1); layout++) {
            problem p = grid_problem(t, epilogue, grid_sizes[size], (*variant)++);
            holds(&p);
        }
}

static void grid(const types *t) {
    int flags, variant = 41 * grid_activation;
    for (flags = 0; flags < COUNT(flag_sets); flags++)
        /* some of the sets: each is a kernel to compile */
        if (has_a_meaning(activation_codes[grid_activation], flag_sets[flags]) &&
            !(t == &bf16_to_f32 && flags % 2 == 0) &&
            (grid_activation <= 6 || flags % 3 == grid_activation % 3))
            hold_sizes(t, flag_sets[flags], &variant);
}

/* Gates, and upstream gradients. */
static const gemmepi_epilogue gate_flag_sets[] = {
    GEMMEPI_GATED,
    GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
    GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
    GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS | GEMMEPI_BGRAD,
    GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS | GEMMEPI_BGRAD,
    GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BACKWARD | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD |
        GEMMEPI_ACCUMULATE_BIAS_GRAD,
    GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_RESIDUAL |
        GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
    GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_A,
    GEMMEPI_GATED | GEMMEPI_BGRAD | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
    GEMMEPI_GATED | GEMMEPI_BGRAD_A | GEMMEPI_BIAS,
    GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD | GEMMEPI_AUX,
    GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD_B,
};

static void gate_grid(const types *t, int number) {
    int flags, variant = 41 * grid_activation;
    for (flags = 0; flags < COUNT(gate_flag_sets); flags++)
        if (has_a_meaning(activation_codes[grid_activation], gate_flag_sets[flags]) &&
            (here->is_host || (grid_activation + flags + number) % 4 == 0)) /* some, likewise */
            hold_sizes(t, gate_flag_sets[flags], &variant);
}

static void gates_and_upstream_gradients_are_within_the_bound(void) {
    int t;
    for (t = 0; t < COUNT(all_types); t++)
        gate_grid(all_types[t], t);
}

static void f64_products_are_within_the_bound(void) {
    grid(&f64);
}

static void f32_products_are_within_the_bound(void) {
    grid(&f32);
}

static void tf32_products_are_within_the_bound(void) {
    grid(&tf32);
}

static void f16_products_are_within_the_bound(void) {
    grid(&f16);
}

static void bf16_products_are_within_the_bound(void) {
    grid(&bf16);
}

static void bf16_products_with_f32_results_are_within_the_bound(void) {
    grid(&bf16_to_f32);
}

static void long_sums_are_within_the_bound(void) {
    int t, kind;
    for (t = 0; t < COUNT(all_types); t++)
        for (kind = 0; kind < 4; kind++) {
            problem deep = typed(all_types[t], 3, 5, 16384, GEMMEPI_BIAS);
            problem tall = typed(all_types[t], 4099, 3, 2, GEMMEPI_BGRAD);
            problem many = typed(all_types[t], 1, 8, 2, GEMMEPI_BGRAD); /* summed over a large batch */
            many.desc.batch = 5000;
            many.desc.a.batch_stride = 2;
            many.desc.d.batch_stride = 8;
            deep.fill = tall.fill = many.fill = (fill)kind;
            holds(&deep);
            holds(&tall);
            holds(&many);
        }
}

static void long_sums_of_8_bits_are_within_the_bound(void) {
    static const types *const kinds[] = {&e4m3_to_f32, &e5m2_to_f32, &e4m3_to_bf16,
                                         &i8_to_f32,   &bf16_e4m3,   &f32_f16};
    int t, kind, fast;
    for (t = 0; t < COUNT(kinds); t++)
        for (kind = 0; kind < 4; kind++)
            for (fast = 0; fast < (t < 3 ? 2 : 1); fast++) {
                problem p = typed(kinds[t], 16, 16, 16384, GEMMEPI_BIAS);
                lay_out(&p, 4);
                p.fill = (fill)kind;
                p.desc.flags = fast ? GEMMEPI_FAST_ACCUMULATION : 0;
                holds(&p);
            }
}

/* >>8 bits and mixed types */

static const gemmepi_epilogue new_epilogues[] = {
    GEMMEPI_EPILOGUE_DEFAULT,
    GEMMEPI_EPILOGUE_RELU,
    GEMMEPI_EPILOGUE_RELU_AUX,
    GEMMEPI_EPILOGUE_BIAS,
    GEMMEPI_EPILOGUE_RELU_BIAS,
    GEMMEPI_EPILOGUE_RELU_AUX_BIAS,
    GEMMEPI_EPILOGUE_DRELU,
    GEMMEPI_EPILOGUE_DRELU_BGRAD,
    GEMMEPI_EPILOGUE_GELU,
    GEMMEPI_EPILOGUE_GELU_AUX,
    GEMMEPI_EPILOGUE_GELU_BIAS,
    GEMMEPI_EPILOGUE_GELU_AUX_BIAS,
    GEMMEPI_EPILOGUE_DGELU,
    GEMMEPI_EPILOGUE_DGELU_BGRAD,
    GEMMEPI_EPILOGUE_BGRADA,
    GEMMEPI_EPILOGUE_BGRADB,
    GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
    GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
    GEMMEPI_GELU_ERF | GEMMEPI_AUX | GEMMEPI_BGRAD_B,
    GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL,
    GEMMEPI_SIGMOID | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
    GEMMEPI_TANH | GEMMEPI_BACKWARD,
    GEMMEPI_NONE | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_BGRAD,
    GEMMEPI_RELU | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD,
};

/* Each of these is a kernel to compile: scales, amax, C and alignment go with the types and the epilogue. */
typedef struct new_choice {
    const types *types;
    gemmepi_epilogue epilogue;
    int layout, scaled, amax, uses_c;
} new_choice;

static problem new_problem(const new_choice *c, const int64_t *size, int variant) {
    problem p = typed(c->types, size[0], size[1], size[2], c->epilogue);
    int a = variant % 5 == 1 ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_TENSOR;
    lay_out(&p, c->layout);
    p.seed = (uint64_t)variant + 1;
    p.fill = (fill)(variant % 4);
    p.by_plan = variant / 2 % 2;
    p.desc.batch = 1 + variant / 3 % 2 * 2;
    p.has_alpha = variant % 3 != 0;
    p.alpha = !p.has_alpha ? 1 : p.fill == INTEGERS ? 2 : 0.7;
    p.has_beta = c->uses_c;
    p.beta = !p.has_beta ? 0 : p.fill == INTEGERS ? -1 : 1.3;
    if (c->scaled)
        add_scales(&p, (gemmepi_scale_mode)a, (gemmepi_scale_mode)a);
    if (c->amax)
        p.desc.flags |= GEMMEPI_AMAX_D;
    if (c->amax && problem_has(&p, GEMMEPI_AUX) && !problem_has_mask(&p))
        p.desc.flags |= GEMMEPI_AMAX_AUX;
    if (p.desc.batch > 1) {
        problem_space_out(&p, variant % 2 * 16);
        problem_space_out_scales(&p, variant % 2 * 4);
        p.desc.bias_grad.batch_stride = variant % 4 == 1 ? 0 : p.desc.bias_grad.batch_stride;
    }
    random_small_alpha(&p);
    return p;
}

static const int64_t aligned_sizes[][3] = {{32, 48, 64},
                                           {16, 16, 16},
                                           {144, 32, 128},
                                           {16, 272, 320},
                                           {64, 64, 32}},
                     odd_sizes[][3] = {{37, 29, 31}, {1, 57, 75}, {130, 3, 9},
                                       {9, 10, 300}, {61, 1, 1},  {2, 200, 17}};

static void new_choice_holds(const new_choice *c, int odd, int *variant) {
    int size;
    for (size = 0; size < (odd ? COUNT(odd_sizes) : COUNT(aligned_sizes)); size++) {
        problem p = new_problem(c, odd ? odd_sizes[size] : aligned_sizes[size], (*variant)++);
        holds(&p);
    }
}

/* Each type with some of the epilogues, each epilogue with some of the types, layouts in turn. */
static void new_grid(int odd) {
    int step = odd ? 12 : 8, t, i, variant = 0;
    for (t = 0; t < COUNT(new_types); t++)
        for (i = 0; i < COUNT(new_epilogues) / step; i++) {
            new_choice c = {new_types[t], GEMMEPI_NONE, 0, 0, 0, 0};
            int e = (t * 5 + odd * 4) % step + i * step;
            c.epilogue = new_epilogues[e];
            c.layout = (t + i * 3 + odd) % LAYOUTS;
            c.scaled = i != odd;
            c.amax = (t + e) % 3 == 0;
            c.uses_c = (t + i) % 3 == 1;
            new_choice_holds(&c, odd, &variant);
        }
}

static void mixed_and_8_bit_types_hold_at_multiples_of_16(void) {
    new_grid(0);
}

static void mixed_and_8_bit_types_hold_at_other_sizes(void) {
    new_grid(1);
}

/* op(A) as stored, op(B) transposed, row-major: what cuBLASLt takes of these. */
static void every_epilogue_holds_for_8_bits(void) {
    static const types *const kinds[] = {&e4m3_to_bf16, &e4m3, &i8};
    int t, e, variant = 0;
    for (t = 0; t < COUNT(kinds); t++)
        for (e = 0; e < COUNT(new_epilogues); e++) {
            new_choice c = {kinds[t], new_epilogues[e], 4, (t + e) % 2, 0, 0};
            new_choice_holds(&c, 0, &variant);
        }
}

static const gemmepi_epilogue new_gates[] = {
    GEMMEPI_SILU | GEMMEPI_GATED,
    GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
    GEMMEPI_GELU_TANH | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
    GEMMEPI_GELU_ERF | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS | GEMMEPI_BGRAD,
    GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL,
    GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD,
    GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_BGRAD_A,
    GEMMEPI_SIGMOID | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
    GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_BGRAD | GEMMEPI_BIAS,
    GEMMEPI_SIGMOID | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM |
        GEMMEPI_BGRAD_B,
};

static void gates_hold_for_8_bits_and_mixed_types(void) {
    int t, i, odd, variant = 0;
    for (t = 0; t < COUNT(new_types); t++)
        for (i = 0; i < (here->is_host ? COUNT(new_gates) : 2); i++)
            for (odd = 0; odd < 2; odd++) {
                new_choice c = {new_types[t], GEMMEPI_NONE, 0, 0, 0, 0};
                c.epilogue = new_gates[(t * 3 + i * 5) % COUNT(new_gates)];
                c.layout = odd ? (t + i * 3) % LAYOUTS : 4;
                c.scaled = (t + i) % 3 != 0;
                c.amax = (t + i) % 2;
                c.uses_c = (t + i) % 4 == 1;
                new_choice_holds(&c, odd, &variant);
            }
}

static void small_integers_are_exact_for_8_bits_and_mixed_types(void) {
    static const types *const kinds[] = {&e4m3_to_f32, &e4m3,     &e5m2_e4m3, &i8,          &i8_to_bf16,
                                         &i8_e4m3,     &f16_bf16, &f32_i8,    &bf16_to_e4m3};
    int t, way;
    for (t = 0; t < COUNT(kinds); t++)
        for (way = 0; way < 8; way++) {
            problem p = typed(kinds[t], 32, 48, 64, way & 1 ? GEMMEPI_RELU | GEMMEPI_BIAS : GEMMEPI_BGRAD);
            lay_out(&p, 4);
            p.fill = INTEGERS;
            p.seed = (uint64_t)(way + 8 * t);
            p.desc.flags = way & 1 ? 0 : GEMMEPI_AMAX_D;
            if (t % 2)
                add_scales(&p, GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_TENSOR);
            holds(&p);
        }
}

/* >>scales */

/* Dense rows are multiples of 16 bytes, so that one kernel takes every k. */
static problem scale_problem(const types *t, int64_t k, int a, int b) {
    problem p = typed(t, 144, 272, k, GEMMEPI_NONE);
    lay_out(&p, 4);
    p.desc.a.ld = p.desc.b.ld = (k + 15) / 16 * 16;
    add_scales(&p, (gemmepi_scale_mode)a, (gemmepi_scale_mode)b);
    return p;
}

static void every_pair_of_scale_modes_holds(void) {
    static const int64_t sums[] = {128, 300, 1024};
    int a, b, k;
    for (a = 0; a <= (int)GEMMEPI_SCALE_BLOCK_128; a++)
        for (b = 0; b <= (int)GEMMEPI_SCALE_BLOCK_128; b++)
            for (k = 0; k < COUNT(sums); k++) {
                problem p = scale_problem(&e4m3_to_bf16, sums[k], a, b);
                p.fill = (a + b + k) % 3 ? NORMAL : INTEGERS;
                p.desc.d.dtype = GEMMEPI_F32; /* shows what bf16 would hide */
                p.desc.flags = k == 1 ? GEMMEPI_FAST_ACCUMULATION : 0;
                holds(&p);
            }
}

/* Half of them column-major, where rows of op(A) are those of the caller's all the same. */
static void scale_modes_hold_for_other_operands(void) {
    static const types *const kinds[] = {&e4m3_e5m2, &i8_to_f32, &i8_e4m3, &bf16_e4m3, &f32_i8, &e4m3_alone};
    static const int modes[][2] = {{2, 2}, {3, 4}, {4, 3}, {1, 3}, {4, 2}};
    int t, i, kind;
    for (t = 0; t < COUNT(kinds); t++)
        for (i = 0; i < COUNT(modes); i++)
            for (kind = 0; kind < 2; kind++) {
                problem p = typed(kinds[t], 139, 150, 290, GEMMEPI_NONE);
                lay_out(&p, (t + i * 3) % LAYOUTS);
                add_scales(&p, (gemmepi_scale_mode)modes[i][0], (gemmepi_scale_mode)modes[i][1]);
                p.fill = kind ? INTEGERS : NORMAL;
                holds(&p);
            }
}

/* Scales of columns of op(B) are those of both halves; in column-major order those of rows of op(A). */
static void scale_modes_hold_for_gates(void) {
    static const types *const kinds[] = {&e4m3_to_f32, &e4m3_alone, &i8_to_f32, &i8_e4m3};
    static const int modes[][2] = {{2, 2}, {3, 4}, {4, 3}, {1, 2}};
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_SILU | GEMMEPI_GATED, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM, GEMMEPI_NONE | GEMMEPI_GATED};
    int t, i, e;
    for (t = 0; t < COUNT(kinds); t++)
        for (i = 0; i < COUNT(modes); i++)
            for (e = 0; e < COUNT(epilogues); e++) {
                problem p = typed(kinds[t], 139, 150, 290, epilogues[e]);
                lay_out(&p, (t + i * 3 + e) % LAYOUTS);
                add_scales(&p, (gemmepi_scale_mode)modes[i][0], (gemmepi_scale_mode)modes[i][1]);
                p.fill = e == 3 ? INTEGERS : NORMAL;
                holds(&p);
            }
}

static void sums_of_operands_are_of_scaled_values(void) {
    int mode, way;
    for (mode = 0; mode <= (int)GEMMEPI_SCALE_BLOCK_128; mode++)
        for (way = 0; way < 8; way++) {
            problem p = typed(way & 4 ? &i8_to_f16 : &e4m3_to_f32, 139, 150, 290,
                              way & 1 ? GEMMEPI_BGRAD_A : GEMMEPI_BGRAD_B);
            lay_out(&p, way >> 1 & 1 ? 3 : 4);
            p.desc.batch = 2;
            problem_space_out(&p, 0);
            add_scales(&p, (gemmepi_scale_mode)mode, (gemmepi_scale_mode)mode);
            problem_space_out_scales(&p, 0);
            p.fill = way & 2 ? INTEGERS : NORMAL;
            holds(&p);
        }
}

static void each_item_of_a_batch_has_its_own_scales_or_all_share_them(void) {
    static const int modes[][2] = {{1, 1}, {2, 2}, {3, 4}, {4, 3}, {3, 3}};
    int i, way;
    for (i = 0; i < COUNT(modes); i++)
        for (way = 0; way < 8; way++) {
            problem p = typed(&e4m3_alone, 144, 176, 288, GEMMEPI_NONE | GEMMEPI_AUX | GEMMEPI_RESIDUAL);
            lay_out(&p, 4);
            p.desc.batch = 3;
            problem_space_out(&p, 16);
            problem_scale(&p, 0.7, 0.5);
            add_scales(&p, (gemmepi_scale_mode)modes[i][0], (gemmepi_scale_mode)modes[i][1]);
            problem_space_out_scales(&p, way & 1 ? 4 : 0);
            if (way & 2)
                p.desc.a.scale.batch_stride = p.desc.d.scale.batch_stride = p.desc.c.scale.batch_stride = 0;
            if (way & 4)
                p.desc.b.scale.batch_stride = p.desc.aux.scale.batch_stride =
                    p.desc.residual.scale.batch_stride = 0;
            holds(&p);
        }
}

/* 129 rows and columns have two lines of blocks, the second of one row, and 257 of k three numbers: those of the next item
   follow. */
static void a_row_beyond_whole_blocks_has_scales_of_its_own_in_each_item(void) {
    static const int modes[][2] = {{4, 4}, {4, 3}, {3, 4}};
    int i, way;
    for (i = 0; i < COUNT(modes); i++)
        for (way = 0; way < 4; way++) {
            problem p = typed(way & 1 ? &i8_to_f32 : &e4m3_to_f32, way & 2 ? 129 : 257, 129,
                              way & 2 ? 257 : 129, way & 2 ? GEMMEPI_BGRAD_A : GEMMEPI_NONE);
            lay_out(&p, i + 4 * (way & 1));
            p.desc.batch = 3;
            problem_space_out(&p, 0);
            add_scales(&p, (gemmepi_scale_mode)modes[i][0], (gemmepi_scale_mode)modes[i][1]);
            problem_space_out_scales(&p, 0);
            p.fill = way & 1 ? INTEGERS : NORMAL;
            holds(&p);
        }
}

static void c_d_aux_and_residual_have_scales(void) {
    static const types *const kinds[] = {&e4m3_alone, &i8, &f32_to_e5m2};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE | GEMMEPI_AUX | GEMMEPI_RESIDUAL | GEMMEPI_BIAS,
                                                 GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL};
    int t, e, which, kind;
    for (t = 0; t < COUNT(kinds); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (which = 0; which < 5; which++) /* one of them, or all */
                for (kind = 0; kind < 4; kind++) {
                    problem p = typed(kinds[t], 48, 32, 64, epilogues[e]);
                    lay_out(&p, 4);
                    p.fill = (fill)kind;
                    problem_scale(&p, kind == 3 || t != 1 ? 1 : 1.0 / 1024, 0.5);
                    if (which == 0 || which == 4)
                        p.desc.c.scale.mode = GEMMEPI_SCALE_TENSOR;
                    if (which == 1 || which == 4)
                        p.desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
                    if (which == 2 || which == 4)
                        p.desc.aux.scale.mode = GEMMEPI_SCALE_TENSOR;
                    if (which == 3 || which == 4)
                        p.desc.residual.scale.mode = GEMMEPI_SCALE_TENSOR;
                    holds(&p);
                }
}

static void an_aux_of_8_bits_feeds_backward_by_its_scale(void) {
    static const double there[] = {8}, back[] = {0.125};
    static const gemmepi_epilogue activations[] = {GEMMEPI_SILU, GEMMEPI_GELU_TANH};
    int i;
    for (i = 0; i < COUNT(activations); i++) {
        problem forward = typed(&e4m3_alone, 32, 48, 16, activations[i] | GEMMEPI_AUX);
        problem backward = typed(&e4m3_alone, 32, 48, 64, activations[i] | GEMMEPI_BACKWARD);
        run saved, used;
        lay_out(&forward, 4);
        lay_out(&backward, 4);
        forward.desc.aux.scale.mode = backward.desc.aux.scale.mode = GEMMEPI_SCALE_TENSOR;
        forward.given[T_SCALE_AUX] = there;
        backward.given[T_SCALE_AUX] = back;
        CHECK(problem_holds_run(here, &forward, NULL, &saved), "see above");
        run_make(&used, &backward);
        memcpy(used.before + used.tensors[T_AUX].offset, saved.after + saved.tensors[T_AUX].offset,
               used.tensors[T_AUX].bytes);
        CHECK(run_execute(&used, &backward, here, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(run_compare(&used, &backward, here), "see above");
        run_free(&saved);
        run_free(&used);
    }
}

/* >>amax */

static double one_answer(const problem *p, int t) {
    double *values = answer(p, t), value = values[0];
    free(values);
    return value;
}

/* Three items of two rows, times 1 and -1/2; one of the rows is given. */
static void check_amax(const types *t, gemmepi_epilogue epilogue, double given, double want_d,
                       double want_aux) {
    double a[6] = {1, -5, 0, 0, -0.5, 3};
    static const double b[] = {1, -0.5}, scale[] = {16};
    problem p = typed(t, 2, 2, 1, epilogue | GEMMEPI_AUX);
    double got;
    a[2] = given;
    p.desc.batch = 3;
    problem_space_out(&p, 2);
    p.desc.b.batch_stride = 0;
    p.desc.flags = GEMMEPI_AMAX_D | (problem_has_mask(&p) ? 0 : GEMMEPI_AMAX_AUX);
    p.given[T_A] = a;
    p.given[T_B] = b;
    p.given[T_SCALE_D] = p.given[T_SCALE_AUX] = scale;
    add_scales(&p, GEMMEPI_SCALE_NONE, GEMMEPI_SCALE_NONE);
    got = one_answer(&p, T_AMAX_D);
    CHECK(isnan(want_d) ? isnan(got) != 0 : got == want_d, "%s: amax of d is %g, not %g", t->name, got,
          want_d);
    if (problem_has_mask(&p))
        return;
    got = one_answer(&p, T_AMAX_AUX);
    CHECK(isnan(want_aux) ? isnan(got) != 0 : got == want_aux, "%s: amax of aux is %g, not %g", t->name, got,
          want_aux);
}

static void amax_is_the_largest_magnitude_before_scaling_and_rounding(void) {
    static const types *const kinds[] = {&f64,         &f32,       &bf16,       &f32_to_e4m3,
                                         &f32_to_e5m2, &f16_to_i8, &e5m2_to_f32};
    int t;
    for (t = 0; t < COUNT(kinds); t++) {
        check_amax(kinds[t], GEMMEPI_NONE, 2, 5, 5);
        check_amax(kinds[t], GEMMEPI_RELU, 2, 3, 0);
        check_amax(kinds[t], GEMMEPI_RELU, -7, 3.5, 0);
        check_amax(kinds[t], GEMMEPI_NONE, 1024, 1024, 1024);
        check_amax(kinds[t], GEMMEPI_NONE, NAN, NAN, NAN);
        check_amax(kinds[t], GEMMEPI_RELU, NAN, NAN, 0);
        check_amax(kinds[t], GEMMEPI_NONE, -INFINITY, INFINITY, INFINITY);
        check_amax(kinds[t], GEMMEPI_RELU, -INFINITY, INFINITY, 0);
    }
}

static void a_nan_anywhere_is_the_amax(void) {
    enum { ROWS = 300, TERMS = 20 };
    static const types *const kinds[] = {&f64, &bf16, &e4m3};
    static const int rows[] = {0, 17, 140, ROWS - 1};
    double a[ROWS * TERMS];
    int t, i, row;
    for (i = 0; i < ROWS * TERMS; i++)
        a[i] = random_normal((uint64_t)i);
    for (t = 0; t < COUNT(kinds); t++)
        for (row = 0; row < COUNT(rows); row++) {
            problem p = typed(kinds[t], ROWS, 270, TERMS, GEMMEPI_TANH | GEMMEPI_AUX | GEMMEPI_RESIDUAL);
            p.desc.flags = GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX;
            add_scales(&p, GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_TENSOR);
            a[rows[row] * TERMS + 3] = NAN;
            p.given[T_A] = a;
            holds(&p);
            a[rows[row] * TERMS + 3] = 1;
        }
}

static void amax_holds_over_many_tiles_and_items(void) {
    static const types *const kinds[] = {&f64, &bf16, &e4m3, &i8};
    int t, layout;
    for (t = 0; t < COUNT(kinds); t++)
        for (layout = 0; layout < 6; layout++) {
            problem p = typed(kinds[t], 300, 270, 20, GEMMEPI_TANH | GEMMEPI_AUX | GEMMEPI_RESIDUAL);
            lay_out(&p, layout % 2);
            p.seed = (uint64_t)layout;
            p.desc.batch = 1 + layout / 2;
            problem_space_out(&p, 2);
            p.desc.flags = GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX;
            add_scales(&p, GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_TENSOR);
            holds(&p);
        }
}

static void amax_is_of_both_halves_before_the_gate_and_of_its_result(void) {
    static const types *const kinds[] = {&f64, &bf16, &e4m3, &i8};
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_TANH | GEMMEPI_GATED | GEMMEPI_BACKWARD,
        GEMMEPI_TANH | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM,
        GEMMEPI_TANH | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM};
    int t, e, layout;
    for (t = 0; t < COUNT(kinds); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (layout = 0; layout < 2; layout++) {
                problem p = typed(kinds[t], 150, 134, 20, epilogues[e]);
                lay_out(&p, layout);
                p.desc.batch = 2;
                problem_space_out(&p, 2);
                p.desc.flags = GEMMEPI_AMAX_D | (problem_has(&p, GEMMEPI_AUX) ? GEMMEPI_AMAX_AUX : 0);
                add_scales(&p, GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_TENSOR);
                holds(&p);
            }
}

/* >>codes of 8 bits */

typedef struct stored_case {
    double x;
    int e4m3, e5m2, i8; /* codes; of +x and -x the signs differ, in I8 the value does */
} stored_case;

/* ties go to even; what is too large, and infinity, becomes the largest */
static const stored_case stored_cases[] = {
    {0, 0x00, 0x00, 0},          {0.5, 0x30, 0x38, 0},
    {1, 0x38, 0x3c, 1},          {1.5, 0x3c, 0x3e, 2},
    {2.5, 0x42, 0x41, 2},        {1.0625, 0x38, 0x3c, 1},   /* half way in E4M3 */
    {1.1875, 0x3a, 0x3d, 1},                                /* half way in E4M3 */
    {1.125, 0x39, 0x3c, 1},                                 /* half way in E5M2 */
    {1.375, 0x3b, 0x3e, 1},                                 /* half way in E5M2 */
    {0x1p-9, 0x01, 0x18, 0},                                /* the smallest of E4M3 */
    {0x1p-10, 0x00, 0x14, 0},                               /* half of it */
    {0x1.8p-9, 0x02, 0x1a, 0},   {0x1.cp-7, 0x07, 0x23, 0}, /* the largest subnormal of E4M3 */
    {0x1p-6, 0x08, 0x24, 0},     {0x1p-16, 0x00, 0x01, 0},  /* the smallest of E5M2 */
    {0x1p-17, 0x00, 0x00, 0},    {0x1.8p-16, 0x00, 0x02, 0},
    {126.5, 0x70, 0x58, 126},    {127, 0x70, 0x58, 127},
    {127.5, 0x70, 0x58, 127},    {128, 0x70, 0x58, 127},
    {300, 0x79, 0x5d, 127},      {432, 0x7e, 0x5f, 127}, /* half way in E4M3 */
    {448, 0x7e, 0x5f, 127},      {463, 0x7e, 0x5f, 127},
    {464, 0x7e, 0x5f, 127}, /* half way to 480, whose code is NaN's */
    {465, 0x7e, 0x5f, 127},      {480, 0x7e, 0x60, 127},
    {1000, 0x7e, 0x64, 127},     {57344, 0x7e, 0x7b, 127},
    {61439, 0x7e, 0x7b, 127},    {61440, 0x7e, 0x7b, 127}, /* half way to infinity */
    {65536, 0x7e, 0x7b, 127},    {1e30, 0x7e, 0x7b, 127},
    {INFINITY, 0x7e, 0x7b, 127},
};
#define STORED_CASES COUNT(stored_cases)

static int stored_code(const stored_case *c, gemmepi_dtype dtype, int negative) {
    int value;
    if (dtype != GEMMEPI_I8)
        return (dtype == GEMMEPI_E4M3 ? c->e4m3 : c->e5m2) | negative << 7;
    value = c->i8 == 127 && negative && c->x > 127.5 ? 128 : c->i8; /* -127.5 is a tie, and even below */
    value = c->x == 127.5 && negative ? 128 : value;
    return (negative ? -value : value) & 255;
}

static void stores_of_8_bits_round_to_even_and_saturate(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    static const double signs[] = {1, -1}, scale[] = {0.25};
    double x[STORED_CASES];
    int t, i, j, scaled;
    for (t = 0; t < COUNT(dtypes); t++)
        for (scaled = 0; scaled < 2; scaled++) {
            problem p = problem_plain(GEMMEPI_F32, STORED_CASES, 2, 1, GEMMEPI_NONE | GEMMEPI_AUX);
            run r;
            p.desc.d.dtype = dtypes[t];
            p.desc.aux.dtype = dtypes[(t + 1) % 3];
            p.desc.d.scale.mode = scaled ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
            for (i = 0; i < STORED_CASES; i++)
                x[i] = stored_cases[i].x * (scaled ? 4 : 1);
            p.given[T_A] = x;
            p.given[T_B] = signs;
            p.given[T_SCALE_D] = scale;
            CHECK(problem_holds_run(here, &p, NULL, &r), "see above");
            for (i = 0; i < STORED_CASES; i++)
                for (j = 0; j < 2; j++) {
                    int got = r.after[r.tensors[T_D].offset + (size_t)(2 * i + j)];
                    int want = stored_code(stored_cases + i, dtypes[t], j);
                    CHECK(got == want || (want == 0x80 && got == 0 && dtypes[t] != GEMMEPI_I8),
                          "%g stored as %s is %02x, not %02x", x[i] * signs[j], oracle_format(dtypes[t]).name,
                          (unsigned)got, (unsigned)want);
                }
            run_free(&r);
        }
}

static void nan_stays_nan_in_8_bits_and_is_zero_in_i8(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    static const double nan[] = {NAN}, one[] = {1};
    gemmepi_epilogue activation;
    int t;
    for (t = 0; t < COUNT(dtypes); t++)
        for (activation = GEMMEPI_NONE; activation <= GEMMEPI_RELU;
             activation = activation_after(activation)) {
            problem p = problem_plain(GEMMEPI_F32, 1, 1, 1, activation);
            double d;
            p.desc.d.dtype = dtypes[t];
            p.given[T_A] = nan;
            p.given[T_B] = one;
            d = one_answer(&p, T_D);
            CHECK(dtypes[t] == GEMMEPI_I8 ? d == 0 : isnan(d) != 0, "%s: %g", oracle_format(dtypes[t]).name,
                  d);
        }
}

/* Each of the 256 codes as an operand, as C and as residual; d is F32, or as the operand. */
static void every_code_of_8_bits_is_read(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    static const int from[] = {T_A, T_C, T_RESIDUAL};
    int t, i, f, narrow;
    for (t = 0; t < COUNT(dtypes); t++)
        for (narrow = 0; narrow < 2; narrow++)
            for (f = 0; f < COUNT(from); f++) {
                problem p = problem_plain(dtypes[t], 256, 1, 1, GEMMEPI_RESIDUAL);
                run r;
                p.desc.d.dtype = narrow ? dtypes[t] : GEMMEPI_F32;
                p.desc.c.dtype = p.desc.residual.dtype = dtypes[t];
                problem_scale(&p, 1, 1);
                p.fill = INTEGERS;
                run_make(&r, &p);
                for (i = 0; i < 256; i++)
                    r.before[r.tensors[from[f]].offset + (size_t)i] = (unsigned char)i;
                CHECK(run_execute(&r, &p, here, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
                CHECK(run_compare(&r, &p, here), "see above");
                run_free(&r);
            }
}

/* A sum that the result's type would round away before the bias, which leaves 1 of it. */
static void the_bias_is_added_before_rounding(void) {
    static const types *const kinds[] = {&f16, &bf16, &e4m3_to_bf16, &e4m3, &i8_to_bf16, &i8, &bf16_to_e4m3};
    static const double large[] = {2048, 256, 256, 16, 256, 256, 16};
    double a[16 * 16], b[16 * 16], bias[16], *d;
    int t, i;
    for (t = 0; t < COUNT(kinds); t++) {
        problem p = typed(kinds[t], 16, 16, 16, GEMMEPI_BIAS);
        lay_out(&p, 4);
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        for (i = 0; i < 16; i++) {
            a[16 * i] = b[i] = sqrt(large[t]);
            if (large[t] > 256) {
                a[16 * i] = 64;
                b[i] = 32;
            }
            a[16 * i + 1] = b[16 + i] = 1;
            bias[i] = -large[t];
        }
        p.given[T_A] = a;
        p.given[T_B] = b;
        p.given[T_BIAS] = bias;
        p.fill = INTEGERS;
        d = answer(&p, T_D);
        for (i = 0; i < 256; i++)
            CHECK(d[i] == 1, "%s: %g", kinds[t]->name, d[i]);
        free(d);
    }
}

/* >>whole numbers */

static void i32_results_are_exact(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE,
        GEMMEPI_BIAS,
        GEMMEPI_RELU,
        GEMMEPI_RELU | GEMMEPI_AUX,
        GEMMEPI_BGRAD_A,
        GEMMEPI_BGRAD_B,
        GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_NONE | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
        GEMMEPI_NONE | GEMMEPI_GATED,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BIAS};
    int e, size, way, variant = 0;
    for (e = 0; e < COUNT(epilogues); e++)
        for (way = 0; way < 2; way++)
            for (size = 0; size < (way ? COUNT(odd_sizes) : COUNT(aligned_sizes)); size++, variant++) {
                const int64_t *s = way ? odd_sizes[size] : aligned_sizes[size];
                problem p = typed(&i8_to_i32, s[0], s[1], s[2], epilogues[e]);
                lay_out(&p, way ? (e + e / LAYOUTS) % LAYOUTS : 4);
                p.seed = (uint64_t)variant;
                p.by_plan = variant % 2;
                p.desc.batch = 1 + variant / 2 % 2;
                if (p.desc.batch > 1)
                    problem_space_out(&p, way * 3);
                if (e % 2)
                    problem_scale(&p, 3, -70001);
                holds(&p);
            }
}

/* C, the bias and the residual are any of 32 bits, so most of the sums above wrap too. */
static void i32_results_with_alpha_and_beta_wrap_around(void) {
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_BIAS | GEMMEPI_AUX, GEMMEPI_RELU,
                                                 GEMMEPI_BGRAD_A, GEMMEPI_BGRAD_B};
    static double old[64 * 64];
    int e, i;
    for (i = 0; i < COUNT(old); i++)
        old[i] = (i % 2 ? -1 : 1) * (2147483647 - 1000003.0 * (i % 2000));
    for (e = 0; e < COUNT(epilogues); e++) {
        problem p = typed(&i8_to_i32, 64, 64, 64, epilogues[e]);
        problem_scale(&p, -3, -702);
        p.given[T_C] = old;
        holds(&p);
        problem_scale(&p, 1, 1);
        holds(&p);
    }
}

static void i32_results_wrap_around(void) {
    enum { LONG = 140000 };
    static const double old[] = {2147483647, -2147483647};
    double *all = malloc(sizeof *all * 2 * LONG), *d;
    int i;
    problem p = typed(&i8_to_i32, 2, 2, LONG, GEMMEPI_RELU | GEMMEPI_AUX);
    problem sums = typed(&i8_to_i32, 2, 2, LONG, GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD);
    for (i = 0; i < 2 * LONG; i++)
        all[i] = 127;
    p.given[T_A] = p.given[T_B] = sums.given[T_A] = sums.given[T_B] = all;
    sums.given[T_BIAS_GRAD] = old;
    d = answer(&p, T_D);
    CHECK(d[0] == 0, "RELU of what wrapped below zero: %g", d[0]);
    free(d);
    d = answer(&sums, T_D);
    CHECK(d[3] == LONG * 16129.0 - 4294967296.0, "%.17g", d[3]);
    free(d);
    d = answer(&sums, T_BIAS_GRAD);
    CHECK(d[0] == 2147483647 + LONG * 127.0 - 4294967296.0 && d[1] == -2147483647 + LONG * 127.0,
          "%.17g %.17g", d[0], d[1]);
    free(d);
    free(all);
}

static void long_sums_of_i8_are_exact(void) {
    enum { LONG = 140000 };
    static const types *const kinds[] = {&i8_to_f32, &i8_to_f16, &i8};
    double *a = malloc(sizeof *a * 2 * LONG), *b = malloc(sizeof *b * 2 * LONG), *d;
    int t, i, way;
    for (i = 0; i < 2 * LONG; i++) {
        a[i] = 127;
        b[i] = i % 2 ? -128 : 127;
    }
    for (t = 0; t < COUNT(kinds); t++)
        for (way = 0; way < 2; way++) { /* b[l][0] is 127, b[l][1] -128; or both in turn along k */
            problem p = typed(kinds[t], 2, 2, LONG, GEMMEPI_NONE);
            float first = (float)(127.0 * 127 * LONG), second = (float)(-127.0 * 128 * LONG),
                  both = (float)(-127.0 * LONG / 2);
            p.given[T_A] = a;
            p.given[T_B] = b;
            p.desc.b.transposed = way;
            if (way) /* items of op(B) are given: turn them */
                for (i = 0; i < LONG; i++)
                    b[2 * i] = b[2 * i + 1] = i % 2 ? -128 : 127;
            d = answer(&p, T_D);
            CHECK(t > 0 || (d[0] == (double)(way ? both : first) && d[1] == (double)(way ? both : second)),
                  "%.17g %.17g", d[0], d[1]);
            free(d);
            for (i = 0; i < 2 * LONG; i++)
                b[i] = i % 2 ? -128 : 127;
        }
    free(a);
    free(b);
}

static void scalars_on_the_device_are_rounded_for_i32(void) {
    static const double scalars[][2] = {{2.4, -1.6}, {-0.7, 3}, {1e6, 0.9}, {2147483647, -2147483648.0}};
    int i, c;
    for (i = 0; i < COUNT(scalars); i++)
        for (c = 0; c < 2; c++) {
            problem p = typed(&i8_to_i32, 19, 32, 16, GEMMEPI_BIAS);
            problem_scale(&p, scalars[i][0], scalars[i][1]);
            p.has_beta = c;
            p.beta = c ? p.beta : 0;
            p.desc.flags = GEMMEPI_DEVICE_SCALARS;
            holds(&p);
        }
}

/* >>exactness */

static void small_integers_are_exact(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_NONE | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_RELU | GEMMEPI_BGRAD_A,
        GEMMEPI_NONE | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD,
    };
    int t, e, layout;
    for (t = 0; t < COUNT(all_types); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (layout = 0; layout < LAYOUTS; layout++) {
                problem p = typed(all_types[t], 21, 35, 3 + 9 * layout, epilogues[e]);
                lay_out(&p, layout);
                p.fill = INTEGERS;
                p.seed = (uint64_t)layout;
                problem_scale(&p, layout % 3 ? 1 : -1, layout % 2 ? 2 : 0);
                holds(&p);
            }
}

/* Where C is D and beta is 1 too: a sum that is rounded before D is added to it shows in large sums. */
static void what_is_added_to_is_rounded_once(void) {
    static const types *const narrow[] = {&bf16, &f16, &e4m3_to_bf16};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_BIAS, GEMMEPI_RELU | GEMMEPI_BIAS,
                                                 GEMMEPI_NONE | GEMMEPI_BGRAD_B};
    int t, e, way;
    for (t = 0; t < COUNT(narrow); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (way = 0; way < 16; way++) {
                problem p = typed(narrow[t], 64, way & 4 ? 56 : 256, way & 4 ? 2328 : 1024, epilogues[e]);
                p.fill = INTEGERS;
                p.seed = (uint64_t)way;
                p.desc.a.transposed = way & 1;
                p.desc.b.transposed = way >> 1 & 1;
                p.in_place[T_C] = 1;
                problem_scale(&p, way & 8 ? 2 : 1, 1);
                holds(&p);
            }
}

/* D += A B, with a bias and sums of an operand or without, from a plan and in one call, alpha on the host and on the device. */
static void accumulation_adds_to_what_d_holds(void) {
    static const types *const kinds[] = {&f64, &f32, &tf32, &f16, &bf16, &bf16_to_f32, &e4m3_to_bf16, &i8};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_BIAS, GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
                                                 GEMMEPI_BGRAD_A, GEMMEPI_BGRAD_B};
    int t, e, way;
    for (t = 0; t < COUNT(kinds); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (way = 0; way < 8; way++) {
                problem p = typed(kinds[t], way & 4 ? 61 : 64, 48, 72, epilogues[e]);
                if (!here->is_host && (t + e + way) % 3 != 0)
                    continue; /* each is a kernel to compile */
                p.fill = INTEGERS;
                p.desc.order = way & 1 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
                p.desc.flags = GEMMEPI_ACCUMULATE | (way & 4 ? GEMMEPI_DEVICE_SCALARS : 0);
                p.desc.batch = way & 1 ? 3 : 0; /* 0 means 1 */
                if (way & 1)
                    problem_space_out(&p, way & 2 ? 3 : 0);
                memset(&p.desc.c, 0, sizeof p.desc.c);
                p.by_plan = way >> 1 & 1;
                p.in_place[T_C] = 1;
                problem_scale(&p, way & 2 ? 2 : 1, 1);
                holds(&p);
            }
}

static void a_batch_left_zero_is_one_product(void) {
    int by_plan;
    for (by_plan = 0; by_plan < 2; by_plan++) {
        problem p = typed(&f32, 20, 33, 9, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX);
        p.desc.batch = 0;
        p.by_plan = by_plan;
        holds(&p);
    }
}

static const types *const integer_types[] = {
    &f64,         &f32,  &tf32,      &f16, &bf16,       &bf16_to_f32, &f16_with_f32_vectors,
    &e4m3_to_f32, &e4m3, &e5m2_e4m3, &i8,  &i8_to_bf16, &f16_to_i8};

static void small_integers_make_exact_gates(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BIAS | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM |
            GEMMEPI_BIAS | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_NONE | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_RESIDUAL,
    };
    int e, layout;
    for (e = 0; e < COUNT(epilogues); e++)
        for (layout = 0; layout < LAYOUTS; layout++) {
            problem p = typed(integer_types[grid_types], 21, 35, 3 + 5 * layout, epilogues[e]);
            lay_out(&p, layout);
            p.fill = INTEGERS;
            p.seed = (uint64_t)layout;
            p.desc.batch = 1 + layout / 4;
            problem_space_out(&p, layout % 3);
            problem_scale(&p, layout % 3 ? 1 : -1, layout % 2 ? 2 : 0);
            if (grid_types % 2)
                add_scales(&p, GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_TENSOR);
            holds(&p);
        }
}

static void strict_f32_keeps_the_bits_that_tf32_drops(void) {
    int layout;
    for (layout = 0; layout < LAYOUTS; layout++) {
        problem p = typed(&f32, 40, 24, 64, GEMMEPI_RELU | GEMMEPI_BIAS);
        lay_out(&p, layout);
        p.fill = TWELVE_BITS;
        p.desc.compute = layout % 2 ? GEMMEPI_COMPUTE_F32 : GEMMEPI_COMPUTE_DEFAULT;
        holds(&p);
    }
}

/* >>typical errors */

/* [m, n] of op(A) op(B) with an f32 result: from the GPU itself, on the host summed in f32 here. */
static double *plain_product(const problem *p) {
    problem plain = *p;
    run r;
    float sum;
    double *values, *a, *b;
    int64_t i, j, l;
    plain.desc.epilogue = GEMMEPI_NONE;
    plain.desc.d.dtype = plain.desc.c.dtype = GEMMEPI_F32;
    if (!here->is_host)
        return answer(&plain, T_D);
    CHECK(problem_holds_run(here, &plain, NULL, &r), "see above");
    values = run_values(&r, T_D);
    a = run_values(&r, T_A);
    b = run_values(&r, T_B);
    for (i = 0; i < p->desc.m; i++)
        for (j = 0; j < p->desc.n; j++) {
            for (sum = 0, l = 0; l < p->desc.k; l++)
                sum += (float)(a[i * p->desc.k + l] * b[l * p->desc.n + j]);
            values[i * p->desc.n + j] = (double)sum;
        }
    free(a);
    free(b);
    run_free(&r);
    return values;
}

/* Root-mean-square errors of p's answer, and of the plain product with the epilogue in double, rounded
   once. */
static void typical_errors(const problem *p, double *ours, double *plain) {
    int64_t i, j, index = 0, of_d = 0;
    double *once = plain_product(p);
    element *v = malloc(sizeof *v * (size_t)(p->desc.m * p->desc.n));
    answers want;
    oracle_problem o;
    run r;
    CHECK(problem_holds_run(here, p, NULL, &r), "see above");
    o = run_oracle(&r, p);
    want = answers_make(&o);
    oracle_product(&o, &want);
    for (i = 0; i < p->desc.m; i++)
        for (j = 0; j < p->desc.n; j++, index++) {
            memset(v + index, 0, sizeof *v);
            v[index].v = once[index] + (problem_has(p, GEMMEPI_BIAS) ? view_get(&o.bias, 0, i, j) : 0);
        }
    for (*ours = *plain = 0, i = 0; i < oracle_rows(&o); i++)
        for (j = 0; j < oracle_columns(&o); j++, of_d++) {
            view d = run_result(&r, T_D);
            double rounded = oracle_round(d.dtype, oracle_result(&o, v, 0, i, j).result);
            *ours += pow(view_get(&d, 0, i, j) - want.d[of_d].value, 2);
            *plain += pow(rounded - want.d[of_d].value, 2);
        }
    *ours = sqrt(*ours / (double)of_d);
    *plain = sqrt(*plain / (double)of_d);
    free(once);
    free(v);
    answers_free(&want);
    run_free(&r);
}

static void typical_errors_are_those_of_rounding_once(void) {
    static const types *const kinds[] = {&f32, &f16, &bf16, &e4m3_to_bf16};
    gemmepi_epilogue activation;
    int t, backward;
    double ours, plain;
    for (t = 0; t < COUNT(kinds); t++)
        for (activation = GEMMEPI_NONE; activation <= GEMMEPI_MISH; activation = activation_after(activation))
            for (backward = 0; backward < 2; backward++) {
                problem p =
                    typed(kinds[t], 88, 96, 256, activation | (backward ? GEMMEPI_BACKWARD : GEMMEPI_BIAS));
                if (!takes(kinds[t], p.desc.epilogue))
                    continue;
                typical_errors(&p, &ours, &plain);
                CHECK(ours <= 1.5 * plain, "%s on %s: %s: rms error %g, rounding once %g", kinds[t]->name,
                      here->name, problem_line(&p).text, ours, plain);
            }
}

static void typical_errors_of_gates_are_those_of_rounding_once(void) {
    static const types *const kinds[] = {&f32, &f16, &bf16, &e4m3_to_bf16};
    static const gemmepi_epilogue flags[] = {GEMMEPI_GATED | GEMMEPI_BIAS, GEMMEPI_GATED | GEMMEPI_BACKWARD,
                                             GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM |
                                                 GEMMEPI_BIAS,
                                             GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS};
    gemmepi_epilogue activation;
    int t, e;
    double ours, plain;
    for (t = 0; t < COUNT(kinds); t++)
        for (activation = GEMMEPI_NONE; activation <= GEMMEPI_MISH; activation = activation_after(activation))
            for (e = 0; e < COUNT(flags); e++) {
                problem p = typed(kinds[t], 88, 96, 256, activation | flags[e]);
                if (!takes(kinds[t], activation | flags[e]) ||
                    (!here->is_host && ((int)activation + e) % 4 != 0))
                    continue;
                typical_errors(&p, &ours, &plain);
                CHECK(ours <= 1.5 * plain, "%s on %s: %s: rms error %g, rounding once %g", kinds[t]->name,
                      here->name, problem_line(&p).text, ours, plain);
            }
}

/* >>special values */

static const double specials[] = {80,   -80,  1e-7, -1e-7, 0,  -0.0, INFINITY, -INFINITY, NAN,   -5.54,
                                  5.54, -2.7, 2.7,  1,     -1, 20,   -20,      0.75,      -0.75, -12};
#define SPECIALS COUNT(specials)

/* Operands that hold infinity and NaN. */
static const types *const special_types[] = {
    &f64,         &f32,         &tf32,      &f16,        &bf16, &bf16_to_f32, &f16_with_f32_vectors,
    &f32_to_e4m3, &f32_to_e5m2, &f16_to_i8, &e5m2_to_f32};

static void special_values_pass_through_every_activation(void) {
    static const double factors[] = {1, -1, 0.5};
    gemmepi_epilogue activation;
    int t;
    for (t = 0; t < COUNT(special_types); t++)
        for (activation = GEMMEPI_NONE; activation <= GEMMEPI_MISH;
             activation = activation_after(activation)) {
            problem p = typed(special_types[t], SPECIALS, 3, 1, activation | GEMMEPI_AUX);
            p.given[T_A] = specials;
            p.given[T_B] = factors;
            holds(&p);
        }
}

static void special_values_pass_through_every_derivative(void) {
    static const double factors[] = {1, -2, 0.25};
    double ones[SPECIALS], aux[3 * SPECIALS];
    gemmepi_epilogue activation;
    int t, i;
    for (i = 0; i < SPECIALS; i++) {
        ones[i] = 1;
        aux[3 * i] = specials[i];
        aux[3 * i + 1] = -specials[i];
        aux[3 * i + 2] = specials[i] / 4;
    }
    for (t = 0; t < COUNT(special_types); t++)
        for (activation = GEMMEPI_GELU_TANH; activation <= GEMMEPI_MISH;
             activation = activation_after(activation)) {
            problem p = typed(special_types[t], SPECIALS, 3, 1, activation | GEMMEPI_BACKWARD);
            p.given[T_A] = ones;
            p.given[T_B] = factors;
            p.given[T_AUX] = aux;
            holds(&p);
        }
}

/* The manual, of element-wise operations: out = f(x (1 + d)) (1 + e), |d| <= 2u, |e| <= 4u, or within 4u of the largest
   term. */
static expected elementwise(gemmepi_dtype dtype, gemmepi_epilogue epilogue, double x) {
    unsigned activation = epilogue & GEMMEPI_ACTIVATION_MASK;
    double u = oracle_roundoff(dtype), parameter = oracle_parameter(activation, 0), at[3], f[3], terms = 0,
           bend;
    expected want;
    int i;
    at[0] = x;
    at[1] = x * (1 + 2 * u);
    at[2] = x * (1 - 2 * u);
    for (i = 2; i >= 0; i--)
        f[i] = epilogue & GEMMEPI_BACKWARD ? oracle_derivative(activation, parameter, at[i], &terms)
                                           : oracle_activation(activation, parameter, at[i]);
    bend = fmax(fabs(f[1] - f[0]), fabs(f[2] - f[0]));
    want.value = f[0];
    want.bound = fmax(bend * (1 + 4 * u) + 4 * u * fabs(f[0]), 2 * u * (terms + fabs(f[0])));
    want.bound += ldexp(1, oracle_format(dtype).lowest);
    return want;
}

/* v is x itself here, so that E does not cover what is lost in the tail of an activation: a sum of one term, or of many of
   which the others are 0. Of these forward GELU_ERF ends its tail sooner. */
static void tails_keep_their_relative_precision(void) {
    enum { POINTS = 161, MANY = 768 };
    static double x[POINTS], a[POINTS * MANY], b[MANY] = {1};
    gemmepi_epilogue activation;
    int t, i, backward, k;
    for (t = 0; t < COUNT(plain_types); t++)
        for (activation = GEMMEPI_GELU_TANH; activation <= GEMMEPI_MISH;
             activation = activation_after(activation))
            for (backward = 0; backward < 2; backward++)
                for (k = 1; k <= MANY; k += MANY - 1) {
                    gemmepi_dtype dtype = plain_types[t]->results;
                    int ends = activation == GEMMEPI_GELU_ERF && !backward && k > 1 &&
                               oracle_format(dtype).size == 2;
                    problem p = typed(plain_types[t], POINTS, 1, k,
                                      activation | (backward ? GEMMEPI_BACKWARD : GEMMEPI_NONE));
                    double *y;
                    if (!takes(plain_types[t], p.desc.epilogue))
                        continue;
                    for (i = 0; i < POINTS; i++) {
                        x[i] = oracle_round(dtype, (i - POINTS / 2) * 0.17 + 0.01);
                        a[i * k] = backward ? 1 : x[i];
                    }
                    p.given[T_A] = a;
                    p.given[T_B] = b;
                    p.given[T_AUX] = x;
                    y = answer(&p, T_D);
                    for (i = 0; i < POINTS; i++) {
                        expected want = elementwise(dtype, p.desc.epilogue, x[i]);
                        CHECK(fabs(x[i]) < 3 || (ends && x[i] < -5.4) || oracle_accepts(dtype, y[i], want),
                              "%s, %s%s of %.9g, k %d: got %.9g, want %.9g +- %.3g", plain_types[t]->name,
                              activation_name(activation), backward ? "'" : "", x[i], k, y[i], want.value,
                              want.bound);
                        a[i * k] = 0;
                    }
                    free(y);
                }
}

static void relu_backward_selects_so_that_infinity_times_zero_does_not_arise(void) {
    static const double a[] = {INFINITY, -INFINITY, NAN, 3}, b[] = {1, 1}, bits[] = {0, 1, 0, 1, 0, 1, 0, 1};
    int t, i;
    for (t = 0; t < COUNT(special_types); t++) {
        problem p = typed(special_types[t], 4, 2, 1, GEMMEPI_RELU | GEMMEPI_BACKWARD);
        double *d;
        p.given[T_A] = a;
        p.given[T_B] = b;
        p.given[T_AUX] = bits;
        d = answer(&p, T_D);
        for (i = 0; i < 4; i++)
            CHECK(d[2 * i] == 0, "row %d of %s with a clear bit: %g", i, special_types[t]->name, d[2 * i]);
        free(d);
    }
}

/* v is exactly C, given in F32 or F64, of which every value there is fits. */
static problem given_problem(const types *t, int64_t m, int64_t n, gemmepi_epilogue epilogue,
                             const double *v) {
    problem p = typed(t, m, n, 0, epilogue);
    problem_scale(&p, 1, 1);
    p.desc.c.dtype = p.desc.aux.dtype = t == &f64 ? GEMMEPI_F64 : GEMMEPI_F32;
    p.given[T_C] = v;
    return p;
}

/* Every special value with every special gate, and upstream gradients one after the other. */
static void special_values_pass_through_every_gate(void) {
    static const double gradients[] = {1, -2, 0.25, 0, INFINITY, NAN};
    static double pairs[2 * SPECIALS * SPECIALS], same[SPECIALS * SPECIALS];
    int t, i, j, g, i_gate;
    for (i = 0; i < SPECIALS; i++)
        for (j = 0; j < SPECIALS; j++) {
            pairs[2 * SPECIALS * i + j] = specials[i];
            pairs[2 * SPECIALS * i + SPECIALS + j] = specials[j];
        }
    for (t = 0; t < COUNT(special_types); t++)
        for (i_gate = 0; i_gate < ACTIVATION_COUNT; i_gate++) {
            gemmepi_epilogue gate = activation_codes[i_gate] | GEMMEPI_GATED;
            problem p = given_problem(special_types[t], SPECIALS, 2 * SPECIALS, gate | GEMMEPI_AUX, pairs);
            if (!here->is_host && (i_gate + t) % 3 != 0)
                continue; /* each is a kernel to compile */
            holds(&p);
            for (g = 0; g < COUNT(gradients); g++) {
                for (i = 0; i < SPECIALS * SPECIALS; i++)
                    same[i] = gradients[g];
                p = given_problem(special_types[t], SPECIALS, SPECIALS, gate | GEMMEPI_BACKWARD, same);
                p.given[T_AUX] = pairs;
                holds(&p);
                p = given_problem(special_types[t], SPECIALS, 2 * SPECIALS,
                                  gate | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM, pairs);
                p.given[T_AUX] = same;
                holds(&p);
                p = given_problem(special_types[t], SPECIALS, SPECIALS,
                                  (gate & GEMMEPI_ACTIVATION_MASK) | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM,
                                  pairs + SPECIALS); /* the first row's gates, and half of the second's */
                p.given[T_AUX] = same;
                holds(&p);
            }
        }
}

/* A gate of RELU that is not above zero gives 0 as its gradient, whatever the value and the upstream gradient. */
static void a_gate_of_relu_selects_so_that_infinity_times_zero_does_not_arise(void) {
    static const double v[] = {INFINITY, -INFINITY, NAN, 3}, upstream[] = {INFINITY, NAN, -INFINITY, 2},
                        saved[] = {1, -1, INFINITY, -0.0, NAN, -2, INFINITY, NAN};
    int t, i;
    for (t = 0; t < COUNT(special_types); t++) {
        problem p = given_problem(special_types[t], 4, 1, GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BACKWARD, v);
        double *d;
        p.given[T_AUX] = saved;
        d = answer(&p, T_D);
        for (i = 0; i < 4; i++)
            CHECK(d[2 * i + 1] == 0, "row %d of %s: d gate is %g", i, special_types[t]->name, d[2 * i + 1]);
        free(d);
        p = given_problem(special_types[t], 4, 2,
                          GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM, saved);
        p.given[T_AUX] = upstream;
        d = answer(&p, T_D);
        for (i = 0; i < 4; i++)
            CHECK(d[2 * i + 1] == 0, "row %d of %s, from upstream: d gate is %g", i, special_types[t]->name,
                  d[2 * i + 1]);
        free(d);
        p = given_problem(special_types[t], 4, 2, GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM, saved);
        p.given[T_AUX] = saved;
        d = answer(&p, T_D);
        CHECK(d[1] == 0 && d[3] == 0 && d[4] == 0 && d[5] == 0 && d[7] == 0, "%s: %g %g %g %g %g",
              special_types[t]->name, d[1], d[3], d[4], d[5], d[7]);
        free(d);
    }
}

/* The value and the upstream gradient are 1 here: what is left are act and act' of the gate. */
static void gates_keep_their_relative_precision_in_the_tails(void) {
    enum { POINTS = 161 };
    double pairs[2 * POINTS], one[POINTS], *forward, *saved, *anew;
    gemmepi_epilogue activation;
    int t, i;
    for (t = 0; t < COUNT(plain_types); t++)
        for (activation = GEMMEPI_GELU_TANH; activation <= GEMMEPI_MISH;
             activation = activation_after(activation)) {
            gemmepi_dtype dtype = plain_types[t]->results;
            gemmepi_epilogue gate = activation | GEMMEPI_GATED, back = gate | GEMMEPI_BACKWARD;
            problem p;
            if (!takes(plain_types[t], gate))
                continue;
            for (i = 0; i < POINTS; i++) {
                pairs[2 * i] = one[i] = 1;
                pairs[2 * i + 1] = oracle_round(dtype, (i - POINTS / 2) * 0.17 + 0.01);
            }
            p = given_problem(plain_types[t], POINTS, 2, gate, pairs);
            forward = answer(&p, T_D);
            p = given_problem(plain_types[t], POINTS, 1, back, one);
            p.given[T_AUX] = pairs;
            saved = answer(&p, T_D);
            p = given_problem(plain_types[t], POINTS, 2, back | GEMMEPI_UPSTREAM, pairs);
            p.given[T_AUX] = one;
            anew = answer(&p, T_D);
            for (i = 0; i < POINTS; i++) {
                double x = pairs[2 * i + 1];
                expected act = elementwise(dtype, activation, x);
                expected slope = elementwise(dtype, activation | GEMMEPI_BACKWARD, x);
                CHECK(fabs(x) < 3 || (oracle_accepts(dtype, forward[i], act) &&
                                      oracle_accepts(dtype, saved[2 * i], act) &&
                                      oracle_accepts(dtype, anew[2 * i], act)),
                      "%s, %s of %.9g: got %.9g, %.9g and %.9g, want %.9g +- %.3g", plain_types[t]->name,
                      activation_name(activation), x, forward[i], saved[2 * i], anew[2 * i], act.value,
                      act.bound);
                CHECK(fabs(x) < 3 || (oracle_accepts(dtype, saved[2 * i + 1], slope) &&
                                      oracle_accepts(dtype, anew[2 * i + 1], slope)),
                      "%s, %s' of %.9g: got %.9g and %.9g, want %.9g +- %.3g", plain_types[t]->name,
                      activation_name(activation), x, saved[2 * i + 1], anew[2 * i + 1], slope.value,
                      slope.bound);
            }
            free(forward);
            free(saved);
            free(anew);
        }
}

/* x -> act(x), or act'(x) with BACKWARD, for 17 points from -4 to 4 with -2.7 among them */
static double *curve(const types *t, gemmepi_epilogue epilogue, const double *x, const double *ones) {
    problem p = typed(t, 17, 1, 1, epilogue);
    p.given[T_A] = epilogue & GEMMEPI_BACKWARD ? ones : x;
    p.given[T_B] = ones;
    p.given[T_AUX] = x;
    return answer(&p, T_D);
}

static void the_two_gelus_are_told_apart(void) {
    static const gemmepi_epilogue flags[] = {0, GEMMEPI_BACKWARD};
    static const types *const fine[] = {&f64, &f32, &f16}; /* bf16 rounds to more than they are apart */
    static const double apart[] = {4.7e-4, 8.7e-4};
    double x[17], ones[17], most;
    int t, f, i;
    for (i = 0; i < 17; i++) {
        x[i] = i == 3 ? -2.7 : -4 + i * 0.5;
        ones[i] = 1;
    }
    for (t = 0; t < COUNT(fine); t++)
        for (f = 0; f < 2; f++) {
            double *with_tanh = curve(fine[t], GEMMEPI_GELU_TANH | flags[f], x, ones);
            double *with_erf = curve(fine[t], GEMMEPI_GELU_ERF | flags[f], x, ones);
            for (most = 0, i = 0; i < 17; i++)
                if (fabs(with_tanh[i] - with_erf[i]) > most && x[i] < 0)
                    most = fabs(with_tanh[i] - with_erf[i]);
            CHECK(most > 0.8 * apart[f] && most < 1.2 * apart[f], "%s: %s at most %g apart", fine[t]->name,
                  f ? "derivatives" : "values", most);
            free(with_tanh);
            free(with_erf);
        }
}

/* >>worked cases */

/* Equal to the 12 digits that are shown. */
static int as_shown(double got, double shown) {
    double unit = pow(10, floor(log10(fabs(shown))) - 11);
    return fabs(got - shown) <= 0.501 * unit;
}

static void check_shown(const types *t, const char *what, const double *got, const double *shown, int count) {
    int i;
    for (i = 0; i < count && t == &f64; i++)
        CHECK(as_shown(got[i], shown[i]), "%s[%d]: got %.13g, worked %.12g", what, i, got[i], shown[i]);
}

typedef struct forward_case {
    gemmepi_epilogue activation;
    double y[4];
} forward_case;

static const forward_case forward_cases[] = {
    {GEMMEPI_GELU_TANH, {.630431691436, .73422848871, .262161169427, -.154285990175}},
    {GEMMEPI_GELU_ERF, {.630515681133, .734345887188, .262168696644, -.154268769363}},
    {GEMMEPI_SILU, {.551979584902, .639854552363, .239475064045, -.188770334399}},
    {GEMMEPI_SIGMOID, {.689974481128, .710949502625, .598687660112, .377540668798}},
    {GEMMEPI_TANH, {.664036770268, .716297870199, .379948962255, -.46211715726}},
};

static void worked_forward_cases_come_out(void) {
    static const double a[] = {1, 2, -1, 3, -2, 4}, b[] = {.5, -.3, .1, .7, -.2, .4}, bias[] = {-.1, .2};
    static const double preactivation[] = {.8, .9, .4, -.5};
    int t, i, layout;
    for (t = 0; t < COUNT(all_types); t++)
        for (i = 0; i < COUNT(forward_cases); i++)
            for (layout = 0; layout < LAYOUTS; layout += 2) { /* row-major, where bias is [n] */
                problem p =
                    typed(all_types[t], 2, 2, 3, forward_cases[i].activation | GEMMEPI_BIAS | GEMMEPI_AUX);
                double *y, *aux;
                if (!takes(all_types[t], p.desc.epilogue))
                    continue;
                lay_out(&p, layout);
                p.given[T_A] = a;
                p.given[T_B] = b;
                p.given[T_BIAS] = bias;
                y = answer(&p, T_D);
                aux = answer(&p, T_AUX);
                check_shown(all_types[t], "Y", y, forward_cases[i].y, 4);
                check_shown(all_types[t], "aux", aux, preactivation, 4);
                free(y);
                free(aux);
            }
}

/* The same pre-activation as value and gate: row by row .8 act(.9) and .4 act(-.5), the gate first .9 act(.8) and
   -.5 act(.4). In column-major order the halves are the rows: .8 act(.4) and .9 act(-.5), or .4 act(.8) and
   -.5 act(.9). */
static void worked_gates_come_out(void) {
    static const double a[] = {1, 2, -1, 3, -2, 4}, b[] = {.5, -.3, .1, .7, -.2, .4}, bias[] = {-.1, .2};
    static const double v[] = {.8, .9, .4, -.5};
    static const int value[2][2][2] = {{{0, 2}, {1, 3}}, {{0, 1}, {2, 3}}},
                     gate[2][2][2] = {{{1, 3}, {0, 2}}, {{2, 3}, {0, 1}}};
    const types *t = all_types[grid_types];
    int i, layout, first, j;
    for (i = 0; i < COUNT(forward_cases); i++)
        for (layout = 0; layout < LAYOUTS; layout++)
            for (first = 0; first < 2; first++) {
                int columns = layout % 2;
                problem p = typed(t, 2, 2, 3,
                                  forward_cases[i].activation | GEMMEPI_GATED | GEMMEPI_AUX |
                                      (first ? GEMMEPI_GATE_FIRST : 0) | (columns ? 0 : GEMMEPI_BIAS));
                double *y, *aux, shifted[4];
                if (!takes(t, forward_cases[i].activation | GEMMEPI_GATED))
                    continue;
                lay_out(&p, layout);
                p.given[T_A] = a;
                p.given[T_B] = b;
                p.given[T_BIAS] = bias;
                for (j = 0; j < 4; j++) /* there a bias would run along the rows: C has it */
                    shifted[j] = bias[j % 2];
                if (columns) {
                    problem_scale(&p, 1, 1);
                    p.desc.c.dtype = t->vectors;
                    p.given[T_C] = shifted;
                }
                y = answer(&p, T_D);
                aux = answer(&p, T_AUX);
                check_shown(t, "aux", aux, v, 4);
                for (j = 0; j < 2 && t == &f64; j++) {
                    double want = v[value[columns][first][j]] * forward_cases[i].y[gate[columns][first][j]];
                    CHECK(fabs(y[j] - want) < 1e-12, "%s, layout %d, y[%d] is %.13g, not %.13g",
                          activation_name(forward_cases[i].activation), layout, j, y[j], want);
                }
                free(y);
                free(aux);
            }
}

typedef struct backward_case {
    gemmepi_epilogue activation;
    double da[4], db[4], dbias[2];
} backward_case;

static const backward_case backward_cases[] = {
    {GEMMEPI_NONE, {.8, .6, .8, .6}, {4, 4, 6, 6}, {2, 2}},
    {GEMMEPI_RELU, {.8, .6, .8, .6}, {4, 4, 6, 6}, {2, 2}},
    {GEMMEPI_GELU_TANH,
     {.700922115255, .707910696853, .852176749455, .590443762808},
     {4.04327383935, 4.11938481316, 5.87922875355, 6.23645617185},
     {1.83595491421, 2.11707135869}},
    {GEMMEPI_GELU_ERF,
     {.700759274048, .707489801465, .852424833075, .590627587708},
     {4.0442417682, 4.11970963058, 5.88054086881, 6.23649148663},
     {1.83629910062, 2.11678185605}},
    {GEMMEPI_SILU,
     {.644159356587, .682517152299, .797080228287, .648455700079},
     {3.51688092961, 4.25653192214, 5.12102791303, 6.38708556602},
     {1.60414698342, 2.13055364389}},
    {GEMMEPI_SIGMOID,
     {.161410879935, .0669781917073, .10074841225, -.00225555217613},
     {.806567950333, .201240471732, 1.23839614157, .355391126953},
     {.431828191238, .154150655221}},
    {GEMMEPI_TANH,
     {.495071442103, -.00400678673925, .180333265503, -.0342107142957},
     {1.99274091031, .132335944864, 3.26707918829, .25978784024},
     {1.27433827799, .127451895377}},
};

/* [a b; c d] transposed */
static const double *turned(const double *x, double *to) {
    to[0] = x[0];
    to[1] = x[2];
    to[2] = x[1];
    to[3] = x[3];
    return to;
}

/* A 2 x 2 x 2 product of given operands. */
static problem worked_product(const types *t, gemmepi_epilogue epilogue, const double *a, const double *b) {
    problem p = typed(t, 2, 2, 2, epilogue);
    p.given[T_A] = a;
    p.given[T_B] = b;
    return p;
}

static void worked_backward_case(const types *t, const backward_case *c) {
    static const double a[] = {1, 2, 3, 4}, b[] = {.5, .3, -.1, .7}, one[] = {1, 0, 0, 1},
                        dy[] = {1, 1, 1, 1};
    gemmepi_epilogue back = c->activation ? c->activation | GEMMEPI_BACKWARD | GEMMEPI_BGRAD : GEMMEPI_BGRAD;
    double turned_a[4], turned_b[4], *aux, *g, *dbias, *da, *db;
    problem p = worked_product(t, c->activation | GEMMEPI_AUX, a, b);
    aux = answer(&p, T_AUX);
    p = worked_product(t, back, one, dy);
    p.given[T_AUX] = aux;
    g = answer(&p, T_D);
    dbias = answer(&p, T_BIAS_GRAD);
    p = worked_product(t, GEMMEPI_NONE, g, turned(b, turned_b));
    p.desc.b.transposed = 1;
    da = answer(&p, T_D);
    p = worked_product(t, GEMMEPI_NONE, turned(a, turned_a), g);
    p.desc.a.transposed = 1;
    db = answer(&p, T_D);
    check_shown(t, "dA", da, c->da, 4);
    check_shown(t, "dB", db, c->db, 4);
    check_shown(t, "dbias", dbias, c->dbias, 2);
    free(aux);
    free(g);
    free(dbias);
    free(da);
    free(db);
}

static void worked_backward_cases_come_out(void) {
    int t, i;
    for (t = 0; t < COUNT(plain_types); t++)
        for (i = 0; i < COUNT(backward_cases); i++)
            if (takes(plain_types[t], backward_cases[i].activation | GEMMEPI_BACKWARD))
                worked_backward_case(plain_types[t], backward_cases + i);
}

static void worked_batched_gradients_come_out(void) {
    /* op(A) = A^T [3, 2] of each item, [3, 4] of both */
    static const double own[] = {1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12},
                        both[] = {1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12};
    static const double dy[] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const double own_want[] = {5, 7, 9, 17, 19, 21}, shared_want[] = {22, 26, 30};
    int t, i;
    for (t = 0; t < COUNT(plain_types); t++) {
        problem per_item = typed(plain_types[t], 3, 2, 2, GEMMEPI_NONE);
        problem shared = typed(plain_types[t], 3, 2, 4, GEMMEPI_NONE);
        double *db;
        per_item.desc.batch = 2;
        per_item.desc.a.transposed = shared.desc.a.transposed = 1;
        problem_space_out(&per_item, 0);
        per_item.given[T_A] = own;
        shared.given[T_A] = both;
        per_item.given[T_B] = shared.given[T_B] = dy;
        db = answer(&per_item, T_D);
        for (i = 0; i < 12; i++)
            CHECK(db[i] == own_want[i / 2], "dB[%d] is %g", i, db[i]);
        free(db);
        db = answer(&shared, T_D);
        for (i = 0; i < 6; i++)
            CHECK(db[i] == shared_want[i / 2], "shared dB[%d] is %g", i, db[i]);
        free(db);
    }
}

/* >>gradients against central differences */

enum { X_ROWS = 4, X_COLUMNS = 5, HIDDEN = 6, OUT = 3 };

/* loss = sum R (act(X W + bias) V), or with a gate of the halves in place of act: a hidden layer, and what its gradients
   are made of */
typedef struct network {
    gemmepi_epilogue activation; /* and GATED and GATE_FIRST */
    double x[X_ROWS * X_COLUMNS], w[X_COLUMNS * HIDDEN], bias[HIDDEN], v[HIDDEN * OUT], r[X_ROWS * OUT];
} network;

static void network_fill(double *values, int count, uint64_t salt) {
    int i;
    for (i = 0; i < count; i++)
        values[i] = random_normal(random_hash(salt * 1000 + (uint64_t)i));
}

static problem network_layer(const network *net, gemmepi_epilogue more) {
    problem p = typed(&f64, X_ROWS, HIDDEN, X_COLUMNS, net->activation | GEMMEPI_BIAS | more);
    p.given[T_A] = net->x;
    p.given[T_B] = net->w;
    p.given[T_BIAS] = net->bias;
    return p;
}

/* The columns that are multiplied by V: HIDDEN of them, or half. */
static int network_width(const network *net) {
    return net->activation & GEMMEPI_GATED ? HIDDEN / 2 : HIDDEN;
}

static double network_loss(const network *net) {
    problem layer = network_layer(net, 0), last = typed(&f64, X_ROWS, OUT, network_width(net), GEMMEPI_NONE);
    double *hidden = answer(&layer, T_D), *out, loss = 0;
    int i;
    last.given[T_A] = hidden;
    last.given[T_B] = net->v;
    out = answer(&last, T_D);
    for (i = 0; i < X_ROWS * OUT; i++)
        loss += net->r[i] * out[i];
    free(hidden);
    free(out);
    return loss;
}

static void check_gradient(network *net, double *parameters, const double *gradient, int count,
                           const char *name) {
    const double step = 1e-5;
    int i;
    for (i = 0; i < count; i += 2) {
        double kept = parameters[i], above, below, difference;
        parameters[i] = kept + step;
        above = network_loss(net);
        parameters[i] = kept - step;
        below = network_loss(net);
        parameters[i] = kept;
        difference = (above - below) / (2 * step);
        CHECK(fabs(difference - gradient[i]) <= 1e-8 * (1 + fabs(gradient[i])),
              "activation 0x%llx, %s[%d]: gradient %.12g, difference %.12g",
              (unsigned long long)net->activation, name, i, gradient[i], difference);
    }
}

static void turn(double *to, const double *from, int rows, int columns) {
    int i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

/* d loss / d (X W + bias) and its column sums, from the pre-activation saved or computed anew. */
static double *network_gradient(const network *net, int upstream, double **dbias) {
    double turned_v[OUT * HIDDEN], *aux;
    int width = network_width(net);
    problem back, forward = network_layer(net, GEMMEPI_AUX);
    double *g;
    turn(turned_v, net->v, width, OUT);
    back = typed(&f64, X_ROWS, width, OUT,
                 upstream ? GEMMEPI_NONE : net->activation | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
    back.desc.b.transposed = 1;
    back.given[T_A] = net->r;
    back.given[T_B] = turned_v;
    if (upstream) {
        aux = answer(&back, T_D);
        back = network_layer(net, GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD);
    } else {
        aux = answer(&forward, T_AUX);
    }
    back.given[T_AUX] = aux;
    g = answer(&back, T_D);
    *dbias = answer(&back, T_BIAS_GRAD);
    free(aux);
    return g;
}

static void check_network(gemmepi_epilogue activation, int upstream) {
    double turned_w[HIDDEN * X_COLUMNS], turned_x[X_COLUMNS * X_ROWS];
    double *g, *dbias, *x_gradient, *w_gradient;
    problem dx, dw;
    network net;
    net.activation = activation;
    network_fill(net.x, COUNT(net.x), 1);
    network_fill(net.w, COUNT(net.w), 2);
    network_fill(net.bias, COUNT(net.bias), 3);
    network_fill(net.v, COUNT(net.v), 4);
    network_fill(net.r, COUNT(net.r), 5);
    turn(turned_w, net.w, X_COLUMNS, HIDDEN);
    turn(turned_x, net.x, X_ROWS, X_COLUMNS);
    g = network_gradient(&net, upstream, &dbias);
    dx = typed(&f64, X_ROWS, X_COLUMNS, HIDDEN, GEMMEPI_NONE);
    dx.given[T_A] = g;
    dx.given[T_B] = turned_w;
    x_gradient = answer(&dx, T_D);
    dw = typed(&f64, X_COLUMNS, HIDDEN, X_ROWS, GEMMEPI_NONE);
    dw.given[T_A] = turned_x;
    dw.given[T_B] = g;
    w_gradient = answer(&dw, T_D);
    check_gradient(&net, net.bias, dbias, COUNT(net.bias), "bias");
    check_gradient(&net, net.x, x_gradient, COUNT(net.x), "x");
    check_gradient(&net, net.w, w_gradient, COUNT(net.w), "w");
    free(g);
    free(dbias);
    free(x_gradient);
    free(w_gradient);
}

static void gradients_equal_central_differences(void) {
    gemmepi_epilogue activation;
    for (activation = GEMMEPI_RELU; activation <= GEMMEPI_MISH; activation = activation_after(activation)) {
        if (!takes(&f64, activation))
            continue;
        check_network(activation, 0);
        check_network(activation, 1);
    }
}

static void gradients_of_gates_equal_central_differences(void) {
    gemmepi_epilogue activation;
    int upstream;
    for (activation = GEMMEPI_NONE; activation <= GEMMEPI_MISH; activation = activation_after(activation))
        for (upstream = 0; upstream < 2; upstream++) {
            if (!takes(&f64, activation | GEMMEPI_GATED | (upstream ? GEMMEPI_UPSTREAM : 0)))
                continue;
            check_network(activation | GEMMEPI_GATED, upstream);
            check_network(activation | GEMMEPI_GATED | GEMMEPI_GATE_FIRST, upstream);
        }
}

/* >>edges */

static void no_terms_leave_beta_c_and_the_epilogue(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_GELU_ERF | GEMMEPI_BIAS | GEMMEPI_AUX,
        GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_A,
        GEMMEPI_NONE | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX,
        GEMMEPI_GELU_ERF | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS};
    int t, e, layout;
    for (t = 0; t < COUNT(plain_types); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (layout = 0; layout < LAYOUTS; layout++) {
                problem p = typed(plain_types[t], 11, 14, 0, epilogues[e]);
                lay_out(&p, layout);
                if (layout % 3)
                    problem_scale(&p, 3, 0.7);
                p.by_plan = layout % 2;
                holds(&p);
            }
}

static void alpha_zero_leaves_beta_c_and_the_epilogue(void) {
    static const int64_t sizes[][3] = {{3, 1, 106}, {1, 3, 106}, {1, 1, 50}, {40, 33, 64}};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE,
                                                 GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD,
                                                 GEMMEPI_RELU | GEMMEPI_BIAS,
                                                 GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS,
                                                 GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD,
                                                 GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD |
                                                     GEMMEPI_UPSTREAM};
    int e, size, way;
    for (e = 0; e < COUNT(epilogues); e++)
        for (size = 0; size < COUNT(sizes); size++)
            for (way = 0; way < 2 * LAYOUTS; way++) {
                problem p = typed(plain_types[grid_types], sizes[size][0], sizes[size][1], sizes[size][2],
                                  epilogues[e]);
                lay_out(&p, way);
                problem_scale(&p, 0, way / LAYOUTS);
                p.desc.flags = way % 3 == 2 ? GEMMEPI_DEVICE_SCALARS : 0;
                holds(&p);
            }
}

static void an_empty_product_writes_bias_grad_alone(void) {
    static const int64_t empty[][4] = {{0, 5, 3, 1},     {5, 0, 3, 1},     {5, 6, 3, 0}, {0, 0, 0, 1},
                                       {0, 5, 3, 2},     {5, 0, 3, 2},     {0, 5, 0, 1}, {5, 0, 0, 2},
                                       {0, 600, 700, 1}, {600, 0, 1300, 3}};
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX,
        GEMMEPI_NONE | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_BGRAD_A,
        GEMMEPI_NONE | GEMMEPI_BGRAD_B,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_BIAS,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD};
    int i, e, way;
    for (i = 0; i < COUNT(empty); i++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (way = 0; way < 16; way++) {
                problem p =
                    typed(way & 1 ? &f32 : &bf16, empty[i][0], empty[i][1], empty[i][2], epilogues[e]);
                p.desc.batch = empty[i][3];
                p.desc.order = way & 4 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
                if (way & 8 && problem_has(&p, GEMMEPI_BGRAD | GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
                    p.desc.epilogue |= GEMMEPI_ACCUMULATE_BIAS_GRAD;
                problem_make_even(&p);
                p.by_plan = way >> 1 & 1;
                if (way & 2)
                    p.desc.flags |= GEMMEPI_AMAX_D; /* of nothing: not written */
                if (way & 1 || p.desc.batch > 1)
                    problem_space_out(&p, 1);
                if (way & 8 && p.desc.batch > 1)
                    p.desc.bias_grad.batch_stride = 0; /* one for all items */
                holds(&p);
            }
}

static void beta_zero_never_reads_c(void) {
    int t, way;
    for (t = 0; t < COUNT(plain_types); t++)
        for (way = 0; way < 8;
             way++) { /* C full of NaN or NULL, beta on the host or the device, one shot or plan */
            problem p =
                typed(plain_types[t], 19, 24, 16, GEMMEPI_SILU | GEMMEPI_BIAS | (t % 2 ? GEMMEPI_GATED : 0));
            problem_scale(&p, 0.7, 0);
            p.no_c = way & 1;
            p.desc.flags = way & 2 && !p.no_c ? GEMMEPI_DEVICE_SCALARS : 0;
            p.by_plan = way >> 2;
            holds(&p);
        }
}

static void scalars_on_the_device_are_those_of_the_host(void) {
    int t, way;
    for (t = 0; t < COUNT(plain_types); t++)
        for (way = 0; way < 4; way++) {
            problem p = typed(plain_types[t], 19, 24, 16,
                              GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD | (t % 2 ? 0 : GEMMEPI_GATED));
            problem_scale(&p, 0.7, -1.3);
            p.has_beta = way & 1;
            p.beta = p.has_beta ? p.beta : 0;
            p.by_plan = way >> 1;
            p.desc.flags = GEMMEPI_DEVICE_SCALARS;
            holds(&p);
        }
}

/* What the tests above say of plain types, with few kernels. */
static void edges_hold_for_8_bits_and_mixed_types(void) {
    static const types *const kinds[] = {&e4m3_to_bf16, &e4m3_alone, &i8, &bf16_e4m3};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX,
                                                 GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL};
    int t, e, way;
    for (t = 0; t < COUNT(kinds); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (way = 0; way < 16; way++) { /* k 0, alpha 0, beta 0 with C of NaN, scalars on the device */
                problem p = typed(kinds[t], 19, 32, way & 1 ? 16 : 0, epilogues[e]);
                lay_out(&p, 4 * (t % 2));
                problem_scale(&p, way & 2 ? 0 : 0.7, way & 4 ? 0 : -1.3);
                p.desc.flags = way & 8 ? GEMMEPI_DEVICE_SCALARS : 0;
                p.by_plan = way >> 1 & 1;
                add_scales(&p, GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_TENSOR);
                holds(&p);
            }
}

static void c_residual_and_aux_may_be_d(void) {
    static const int which[] = {T_C, T_RESIDUAL, T_AUX};
    static const types *const kinds[] = {&f64, &f32, &f16, &bf16, &e4m3_alone, &i8, &e5m2_e4m3_to_e5m2};
    int t, subset, i;
    for (t = 0; t < COUNT(kinds); t++)
        for (subset = 1; subset < 8; subset++) {
            problem p = typed(kinds[t], 45, 37, 20, GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL);
            p.desc.batch = 2;
            problem_space_out(&p, 3);
            problem_scale(&p, 1, 0.5);
            if (t % 2 == 0)
                add_scales(&p, GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_TENSOR);
            for (i = 0; i < 3; i++)
                p.in_place[which[i]] = subset >> i & 1;
            holds(&p);
        }
}

/* Those of c, residual and aux that have d's shape, in all combinations. */
static void what_has_the_shape_of_d_may_be_d(void) {
    static const int which[] = {T_C, T_RESIDUAL, T_AUX};
    static const types *const kinds[] = {&f64, &f32, &f16, &bf16, &e4m3_alone, &i8, &e5m2_e4m3_to_e5m2};
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_GELU_TANH | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_GELU_TANH | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL |
            GEMMEPI_BGRAD,
        GEMMEPI_GELU_TANH | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_RESIDUAL};
    int t, e, subset, i;
    for (t = 0; t < COUNT(kinds); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (subset = 1; subset < 16; subset++) {
                problem p = typed(kinds[t], 44, 38, 20, epilogues[e]);
                p.desc.order = (gemmepi_order)(subset >> 3);
                p.desc.batch = 2;
                problem_space_out(&p, 3);
                problem_scale(&p, 1, 0.5);
                if (t % 2 == 0)
                    add_scales(&p, GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_TENSOR);
                for (i = 0; i < 3; i++)
                    p.in_place[which[i]] = (subset >> i & 1) && problem_fits_d(&p, which[i]) &&
                                           !(which[i] == T_AUX && problem_has(&p, GEMMEPI_AUX));
                holds(&p);
            }
}

/* With GATED c that is left zero is dense, its items too, whatever d is. */
static void a_c_left_zero_is_dense_beside_a_gate(void) {
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_SILU | GEMMEPI_GATED,
                                                 GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD};
    int e, layout, scaled;
    for (e = 0; e < COUNT(epilogues); e++)
        for (layout = 0; layout < LAYOUTS; layout++)
            for (scaled = 0; scaled < 2; scaled++) {
                problem p = typed(scaled ? &i8 : &f32, 13, 18, 7, epilogues[e]);
                lay_out(&p, layout);
                p.desc.batch = 3;
                problem_space_out(&p, 5);
                problem_scale(&p, 1, 0.5);
                memset(&p.desc.c, 0, sizeof p.desc.c);
                if (scaled)
                    p.desc.c.scale.mode = GEMMEPI_SCALE_TENSOR;
                holds(&p);
            }
}

static void a_relaxed_gradient_may_overwrite_its_aux(void) {
    int t, layout;
    for (t = 0; t < COUNT(plain_types); t++)
        for (layout = 0; layout < LAYOUTS; layout++) {
            problem p = typed(plain_types[t], 16, 40, 32, GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD);
            lay_out(&p, layout);
            p.desc.flags = GEMMEPI_RELAXED;
            p.in_place[T_AUX] = 1;
            p.desc.aux = p.desc.d;
            holds(&p);
        }
}

static void bias_grad_is_per_item_or_the_sum_over_the_batch(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE | GEMMEPI_BGRAD,
        GEMMEPI_TANH | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_NONE | GEMMEPI_BGRAD_A,
        GEMMEPI_SILU | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BGRAD_A,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD};
    int t, e, way;
    for (t = 0; t < COUNT(all_types); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (way = 0; way < 8; way++) {
                problem p = typed(all_types[t], 31, 18, 12, epilogues[e]);
                lay_out(&p, way & 1);
                p.desc.batch = 4;
                problem_space_out(&p, 2);
                if (way & 2)
                    p.desc.bias_grad.batch_stride = 0;
                if (way & 4)
                    p.desc.a.batch_stride = p.desc.b.batch_stride = 0;
                p.fill = INTEGERS;
                holds(&p);
            }
}

static void the_backward_of_none_multiplies_by_one(void) {
    int t;
    for (t = 0; t < COUNT(plain_types); t++) {
        problem p = typed(plain_types[t], 17, 10, 12, GEMMEPI_NONE | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
        holds(&p);
    }
}

/* >>the mask and the saved pre-activation */

/* Eleven values along a row of the mask; the second row has them negated. Bits past the eleventh stay. */
static void the_mask_has_a_bit_where_v_is_above_zero(void) {
    static const double signs[] = {1, -1};
    double values[] = {0, -0.0, NAN, 1, -1, 6e-8, INFINITY, -INFINITY, 2, -3, 4};
    int t, layout;
    for (t = 0; t < COUNT(special_types); t++)
        for (layout = 0; layout < 2; layout++) {
            problem p =
                typed(special_types[t], layout ? 11 : 2, layout ? 2 : 11, 1, GEMMEPI_RELU | GEMMEPI_AUX);
            run r;
            const unsigned char *before, *after;
            lay_out(&p, layout);
            values[5] = special_types[t] == &e5m2_to_f32 ? 0x1p-16 : 6e-8; /* the smallest there is */
            p.given[layout ? T_A : T_B] = values;
            p.given[layout ? T_B : T_A] = signs;
            CHECK(problem_holds_run(here, &p, NULL, &r), "see above");
            before = r.before + r.tensors[T_AUX].offset;
            after = r.after + r.tensors[T_AUX].offset;
            CHECK(after[0] == 0x68 && (after[1] & 7) == 5, "%s: %02x %02x", special_types[t]->name, after[0],
                  after[1]);
            CHECK(after[16] == 0x90 && (after[17] & 7) == 2, "%s: %02x %02x", special_types[t]->name,
                  after[16], after[17]);
            CHECK((after[1] ^ before[1]) >> 3 == 0 && (after[17] ^ before[17]) >> 3 == 0,
                  "bits past the end changed");
            run_free(&r);
        }
}

static void the_aux_of_forward_feeds_backward(void) {
    gemmepi_epilogue activation;
    int t, layout;
    for (t = 0; t < COUNT(plain_types); t++)
        for (activation = GEMMEPI_RELU; activation <= GEMMEPI_MISH; activation = activation_after(activation))
            for (layout = 0; layout < 2; layout++) {
                problem forward = typed(plain_types[t], 20, 33, 9, activation | GEMMEPI_AUX);
                problem backward =
                    typed(plain_types[t], 20, 33, 14, activation | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
                run saved, used;
                if (!takes(plain_types[t], forward.desc.epilogue))
                    continue;
                lay_out(&forward, layout);
                lay_out(&backward, layout);
                CHECK(problem_holds_run(here, &forward, NULL, &saved), "see above");
                run_make(&used, &backward);
                memcpy(used.before + used.tensors[T_AUX].offset, saved.after + saved.tensors[T_AUX].offset,
                       used.tensors[T_AUX].bytes);
                CHECK(run_execute(&used, &backward, here, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
                CHECK(run_compare(&used, &backward, here), "see above");
                run_free(&saved);
                run_free(&used);
            }
}

/* The aux of a forward gate, both halves of it, feeds the backward one; and the upstream gradient that this makes of
   one product is what UPSTREAM makes of the other. */
static void saved_and_recomputed_gates_have_the_same_gradients(void) {
    gemmepi_epilogue gate;
    int layout, upstream, i, first;
    for (gate = GEMMEPI_NONE; gate <= GEMMEPI_MISH; gate = activation_after(gate))
        for (first = 0; first < 2; first++)
            for (layout = 0; layout < LAYOUTS; layout++) {
                gemmepi_epilogue e = gate | GEMMEPI_GATED | (first ? GEMMEPI_GATE_FIRST : 0);
                problem p = typed(&f64, 10, 12, 9, e | GEMMEPI_AUX | GEMMEPI_BIAS), back;
                double *saved, *dy, *g[2];
                if (!takes(&f64, e))
                    continue;
                lay_out(&p, layout);
                saved = answer(&p, T_AUX);
                back = typed(&f64, layout % 2 ? 5 : 10, layout % 2 ? 12 : 6, 7, GEMMEPI_NONE);
                lay_out(&back, layout);
                dy = answer(&back, T_D);
                back.desc.epilogue = e | GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
                back.given[T_AUX] = saved;
                g[0] = answer(&back, T_D);
                p.desc.epilogue = e | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS;
                p.given[T_AUX] = dy;
                g[1] = answer(&p, T_D);
                for (i = 0; i < 120; i++)
                    CHECK(fabs(g[0][i] - g[1][i]) <= 1e-13 * (1 + fabs(g[0][i])),
                          "%s: element %d is %.17g saved and %.17g anew", problem_line(&p).text, i, g[0][i],
                          g[1][i]);
                for (upstream = 0; upstream < 2; upstream++)
                    free(g[upstream]);
                free(saved);
                free(dy);
            }
}

/* >>bits */

static const gemmepi_epilogue bit_epilogues[] = {GEMMEPI_NONE,
                                                 GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX,
                                                 GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                                                 GEMMEPI_NONE | GEMMEPI_BGRAD_B,
                                                 GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX,
                                                 GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD |
                                                     GEMMEPI_BGRAD};

static const types *const bit_types[] = {&f64, &f32, &f16, &bf16, &e4m3_to_bf16, &i8_to_f32};

static int same_bits(const problem *first, const problem *second) {
    run one, two;
    int same = problem_holds_run(here, first, NULL, &one);
    same = problem_holds_run(here, second, NULL, &two) && same && memcmp(one.after, two.after, one.size) == 0;
    run_free(&one);
    run_free(&two);
    return same;
}

static problem bit_problem(const types *t, gemmepi_epilogue epilogue) {
    problem p = typed(t, 72, 40, 2100, epilogue);
    p.desc.batch = 2;
    problem_space_out(&p, 8);
    p.desc.bias_grad.batch_stride = 0;
    p.desc.alignment = 16;
    return p;
}

static void a_repeated_run_gives_the_same_bits(void) {
    int t, e;
    for (t = 0; t < COUNT(bit_types); t++)
        for (e = 0; e < COUNT(bit_epilogues); e++) {
            problem p = bit_problem(bit_types[t], bit_epilogues[e]);
            if (takes(bit_types[t], bit_epilogues[e]))
                CHECK(same_bits(&p, &p), "%s", problem_line(&p).text);
        }
}

static void one_shot_gives_the_bits_of_the_plan(void) {
    int t, e;
    for (t = 0; t < COUNT(bit_types); t++)
        for (e = 0; e < COUNT(bit_epilogues); e++) {
            problem p = bit_problem(bit_types[t], bit_epilogues[e]), by_plan = p;
            by_plan.by_plan = by_plan.own_workspace = 1;
            if (takes(bit_types[t], bit_epilogues[e]))
                CHECK(same_bits(&p, &by_plan), "%s", problem_line(&p).text);
        }
}

/* >>the oracle itself */

static void the_oracle_rounds_to_nearest_even(void) {
    static const struct {
        gemmepi_dtype dtype;
        double x, rounded;
    } cases[] = {
        {GEMMEPI_F16, 65519.99, 65504},
        {GEMMEPI_F16, 65520, INFINITY},
        {GEMMEPI_F16, 0x1p-25, 0},
        {GEMMEPI_F16, 0x1.8p-24, 0x1p-23},
        {GEMMEPI_F16, 2049, 2048},
        {GEMMEPI_F16, 2051, 2052},
        {GEMMEPI_BF16, 257, 256},
        {GEMMEPI_BF16, 259, 260},
        {GEMMEPI_BF16, 0x1.ffp127, INFINITY},
        {GEMMEPI_BF16, 0x1.fefp127, 0x1.fep127},
        {GEMMEPI_BF16, 0x1.8p-133, 0x1p-132},
        {GEMMEPI_F32, 16777217, 16777216},
        {GEMMEPI_E4M3, 1.0625, 1},
        {GEMMEPI_E4M3, 0x1.8p-9, 0x1p-8},
        {GEMMEPI_E4M3, 464, 448},
        {GEMMEPI_E4M3, -500, -448},
        {GEMMEPI_E4M3, INFINITY, 448},
        {GEMMEPI_E5M2, 0x1p-17, 0},
        {GEMMEPI_E5M2, 1e6, 57344},
        {GEMMEPI_E5M2, -INFINITY, -57344},
        {GEMMEPI_I8, 2.5, 2},
        {GEMMEPI_I8, 127.6, 127},
        {GEMMEPI_I8, -127.5, -128},
        {GEMMEPI_I8, -1e9, -128},
    };
    unsigned bits;
    int i;
    for (i = 0; i < COUNT(cases); i++)
        CHECK(oracle_round(cases[i].dtype, cases[i].x) == cases[i].rounded, "%g gives %g", cases[i].x,
              oracle_round(cases[i].dtype, cases[i].x));
    for (bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits, as_f16 = 0, as_bf16 = 0;
        double from_f16 = oracle_decode(GEMMEPI_F16, &half), from_bf16 = oracle_decode(GEMMEPI_BF16, &half);
        oracle_encode(GEMMEPI_F16, &as_f16, from_f16);
        oracle_encode(GEMMEPI_BF16, &as_bf16, from_bf16);
        CHECK(isnan(from_f16) || as_f16 == half, "f16 %04x comes back as %04x", bits, as_f16);
        CHECK(isnan(from_bf16) || as_bf16 == half, "bf16 %04x comes back as %04x", bits, as_bf16);
    }
    for (bits = 0; bits < 256; bits++)
        for (i = GEMMEPI_E4M3; i <= (int)GEMMEPI_I8; i++) {
            uint8_t code[8] = {0}, again[8] = {0};
            double value;
            code[0] = (uint8_t)bits;
            value = oracle_decode((gemmepi_dtype)i, code);
            oracle_encode((gemmepi_dtype)i, again, value);
            CHECK(isnan(value) || again[0] == code[0], "%s %02x comes back as %02x",
                  oracle_format((gemmepi_dtype)i).name, bits, again[0]);
        }
}

static void run_all(void) {
    RUN(small_integers_are_exact);
    RUN(what_is_added_to_is_rounded_once);
    RUN(accumulation_adds_to_what_d_holds);
    RUN(a_batch_left_zero_is_one_product);
    RUN_TYPES(small_integers_make_exact_gates, integer_types);
    RUN(strict_f32_keeps_the_bits_that_tf32_drops);
    RUN(worked_forward_cases_come_out);
    RUN_TYPES(worked_gates_come_out, all_types);
    RUN(worked_backward_cases_come_out);
    RUN(worked_batched_gradients_come_out);
    RUN(gradients_equal_central_differences);
    RUN(gradients_of_gates_equal_central_differences);
    RUN(saved_and_recomputed_gates_have_the_same_gradients);
    RUN(special_values_pass_through_every_activation);
    RUN(special_values_pass_through_every_derivative);
    RUN(special_values_pass_through_every_gate);
    RUN(tails_keep_their_relative_precision);
    RUN(gates_keep_their_relative_precision_in_the_tails);
    RUN(relu_backward_selects_so_that_infinity_times_zero_does_not_arise);
    RUN(a_gate_of_relu_selects_so_that_infinity_times_zero_does_not_arise);
    RUN(the_two_gelus_are_told_apart);
    RUN(no_terms_leave_beta_c_and_the_epilogue);
    RUN_TYPES(alpha_zero_leaves_beta_c_and_the_epilogue, plain_types);
    RUN(an_empty_product_writes_bias_grad_alone);
    RUN(beta_zero_never_reads_c);
    RUN(scalars_on_the_device_are_those_of_the_host);
    RUN(c_residual_and_aux_may_be_d);
    RUN(what_has_the_shape_of_d_may_be_d);
    RUN(a_c_left_zero_is_dense_beside_a_gate);
    RUN(a_relaxed_gradient_may_overwrite_its_aux);
    RUN(bias_grad_is_per_item_or_the_sum_over_the_batch);
    RUN(the_backward_of_none_multiplies_by_one);
    RUN(the_mask_has_a_bit_where_v_is_above_zero);
    RUN(the_aux_of_forward_feeds_backward);
    RUN(a_repeated_run_gives_the_same_bits);
    RUN(one_shot_gives_the_bits_of_the_plan);
    RUN(typical_errors_are_those_of_rounding_once);
    RUN(typical_errors_of_gates_are_those_of_rounding_once);
    RUN(edges_hold_for_8_bits_and_mixed_types);
    RUN(small_integers_are_exact_for_8_bits_and_mixed_types);
    RUN(stores_of_8_bits_round_to_even_and_saturate);
    RUN(nan_stays_nan_in_8_bits_and_is_zero_in_i8);
    RUN(every_code_of_8_bits_is_read);
    RUN(the_bias_is_added_before_rounding);
    RUN(every_pair_of_scale_modes_holds);
    RUN(scale_modes_hold_for_other_operands);
    RUN(scale_modes_hold_for_gates);
    RUN(sums_of_operands_are_of_scaled_values);
    RUN(a_row_beyond_whole_blocks_has_scales_of_its_own_in_each_item);
    RUN(each_item_of_a_batch_has_its_own_scales_or_all_share_them);
    RUN(c_d_aux_and_residual_have_scales);
    RUN(an_aux_of_8_bits_feeds_backward_by_its_scale);
    RUN(amax_is_the_largest_magnitude_before_scaling_and_rounding);
    RUN(a_nan_anywhere_is_the_amax);
    RUN(amax_holds_over_many_tiles_and_items);
    RUN(amax_is_of_both_halves_before_the_gate_and_of_its_result);
    RUN(i32_results_are_exact);
    RUN(i32_results_wrap_around);
    RUN(i32_results_with_alpha_and_beta_wrap_around);
    RUN(long_sums_of_i8_are_exact);
    RUN(scalars_on_the_device_are_rounded_for_i32);
    RUN(every_epilogue_holds_for_8_bits);
    RUN(gates_hold_for_8_bits_and_mixed_types);
    RUN(mixed_and_8_bit_types_hold_at_multiples_of_16);
    RUN(mixed_and_8_bit_types_hold_at_other_sizes);
    RUN(long_sums_of_8_bits_are_within_the_bound);
    RUN_GRID(gates_and_upstream_gradients_are_within_the_bound);
    RUN_GRID(f64_products_are_within_the_bound);
    RUN_GRID(f32_products_are_within_the_bound);
    RUN_GRID(tf32_products_are_within_the_bound);
    RUN_GRID(f16_products_are_within_the_bound);
    RUN_GRID(bf16_products_are_within_the_bound);
    RUN_GRID(bf16_products_with_f32_results_are_within_the_bound);
    RUN(long_sums_are_within_the_bound);
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    RUN(the_oracle_rounds_to_nearest_even);
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        run_all();
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
