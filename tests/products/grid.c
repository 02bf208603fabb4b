/* Products, systematically: every activation with every set of flags, in every dtype, layout and class of size (on a GPU some of
   them), and mixed and 8-bit types. */
#include "grid.h"

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

/* All sizes, and all layouts of one, of a grid's activation with these flags. Of a share on a GPU every second one, and the others for
   the next set of flags and the next activation that is drawn: most have a kernel of their own. */
static void hold_sizes(const types *t, gemmepi_epilogue flags, int *variant) {
    gemmepi_epilogue epilogue = activation_codes[grid_activation] | flags;
    int size, layout, step = !here->is_host && test_share() > 1 ? 2 : 1;
    for (size = 0; size < COUNT(grid_sizes); size++)
        for (layout = 0; layout < (size == 1 ? LAYOUTS : 1); layout++) {
            problem p = grid_problem(t, epilogue, grid_sizes[size], *variant);
            if ((*variant + *variant / 16 + grid_activation / 4) % step == 0)
                holds(&p);
            ++*variant;
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

static void products_summed_in_f16_are_within_the_bound(void) {
    grid(&f16_sums);
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

static void run_all(void) {
    RUN(small_integers_are_exact_for_8_bits_and_mixed_types);
    RUN(every_epilogue_holds_for_8_bits);
    RUN(gates_hold_for_8_bits_and_mixed_types);
    RUN(mixed_and_8_bit_types_hold_at_multiples_of_16);
    RUN(mixed_and_8_bit_types_hold_at_other_sizes);
    RUN(long_sums_of_8_bits_are_within_the_bound);
    RUN_GRID(gates_and_upstream_gradients_are_within_the_bound);
    RUN_GRID(f64_products_are_within_the_bound);
    RUN_GRID(f32_products_are_within_the_bound);
    RUN_GRID(tf32_products_are_within_the_bound);
    RUN_GRID(products_summed_in_f16_are_within_the_bound);
    RUN_GRID(f16_products_are_within_the_bound);
    RUN_GRID(bf16_products_are_within_the_bound);
    RUN_GRID(bf16_products_with_f32_results_are_within_the_bound);
    RUN(long_sums_are_within_the_bound);
}

int main(void) {
    return run_on_devices(run_all);
}
