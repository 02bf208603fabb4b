/* Empty products, alpha and beta of 0, tensors in the place of others, and runs that give the same bits. */
#include "grid.h"

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
                const int numbers[] = {i, e, way};
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
                if (test_takes(test_key(numbers, 3)))
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

/* cuBLASLt stores D as C lies: lines and items of each are at multiples of 16 bytes or are not. */
static void c_and_d_may_lie_differently(void) {
    static const int64_t sizes[][3] = {{64, 64, 64}, {256, 256, 64}, {40, 36, 130}};
    static const int64_t pads[][2] = {{0, 9}, {9, 0}, {8, 1}, {8, 2}, {0, 4}, {1, 3}};
    int size, pad, items, way;
    for (size = 0; size < COUNT(sizes); size++)
        for (pad = 0; pad < COUNT(pads); pad++)
            for (items = 1; items < 3; items++)
                for (way = 0; way < 2; way++) { /* one shot, or a plan */
                    problem p = typed(plain_types[grid_types], sizes[size][0], sizes[size][1], sizes[size][2],
                                      way ? GEMMEPI_NONE : GEMMEPI_RELU | GEMMEPI_BIAS);
                    p.desc.batch = items;
                    problem_scale(&p, 1, 0.5);
                    matrix_space_out(&p.desc.c, &p, T_C, pads[pad][0]);
                    matrix_space_out(&p.desc.d, &p, T_D, pads[pad][1]);
                    p.by_plan = way;
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

/* >>bits */

static const gemmepi_epilogue bit_epilogues[] = {GEMMEPI_NONE,
                                                 GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX,
                                                 GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                                                 GEMMEPI_NONE | GEMMEPI_BGRAD_B,
                                                 GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX,
                                                 GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD |
                                                     GEMMEPI_BGRAD};

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

static void run_all(void) {
    RUN(no_terms_leave_beta_c_and_the_epilogue);
    RUN_TYPES(alpha_zero_leaves_beta_c_and_the_epilogue, plain_types);
    RUN(an_empty_product_writes_bias_grad_alone);
    RUN(beta_zero_never_reads_c);
    RUN_TYPES(c_and_d_may_lie_differently, plain_types);
    RUN(scalars_on_the_device_are_those_of_the_host);
    RUN(c_residual_and_aux_may_be_d);
    RUN(what_has_the_shape_of_d_may_be_d);
    RUN(a_c_left_zero_is_dense_beside_a_gate);
    RUN(a_relaxed_gradient_may_overwrite_its_aux);
    RUN(bias_grad_is_per_item_or_the_sum_over_the_batch);
    RUN(the_backward_of_none_multiplies_by_one);
    RUN(a_repeated_run_gives_the_same_bits);
    RUN(one_shot_gives_the_bits_of_the_plan);
    RUN(edges_hold_for_8_bits_and_mixed_types);
}

int main(void) {
    return run_on_devices(run_all);
}
