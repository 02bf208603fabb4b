/* Products whose operands and results have scales, and the largest magnitudes that they leave. */
#include "grid.h"

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

/* >>weights in I8, beside an a of 16 bits: a kernel of their own takes what lies along k at multiples of 16 bytes */

static const types bf16_i8 = {"bf16 by i8", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT,
                              GEMMEPI_I8,   GEMMEPI_BF16};
static const types f16_i8_to_f32 = {"f16 by i8 to f32",      GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_F32,
                                    GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_I8,  GEMMEPI_F16};
static const types bf16_i8_to_f16 = {"bf16 by i8 to f16",     GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F32,
                                     GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_I8,   GEMMEPI_F32};
static const types *const weight_types[] = {&bf16_i8, &f16_i8_to_f32, &bf16_i8_to_f16};

static problem by_weights(int type, int64_t m, int64_t n, int64_t k, int mode, gemmepi_epilogue epilogue) {
    problem p = typed(weight_types[type], m, n, k, epilogue);
    lay_out(&p, 4); /* b is [n, k], as nn.Linear has it */
    p.desc.a.ld = (k + 7) / 8 * 8, p.desc.b.ld = (k + 15) / 16 * 16;
    add_scales(&p, GEMMEPI_SCALE_NONE, (gemmepi_scale_mode)mode);
    return p;
}

static void few_rows_by_weights_of_8_bits_hold_in_every_scale_mode(void) {
    static const int64_t rows[] = {1, 7, 8, 9, 16, 31, 64, 65, 130};
    static const int64_t extents[][2] = {{64, 128}, {33, 300}, {150, 16}, {40, 1}, {272, 1100}, {8, 129}};
    int mode, i, j, turn = 0;
    for (mode = 0; mode <= (int)GEMMEPI_SCALE_BLOCK_128; mode++)
        for (i = 0; i < COUNT(rows); i++)
            for (j = 0; j < COUNT(extents); j++, turn++) {
                problem p = by_weights(turn % 3, rows[i], extents[j][0], extents[j][1], mode, GEMMEPI_NONE);
                p.fill = turn % 4 ? NORMAL : INTEGERS;
                p.seed = (uint64_t)turn;
                holds(&p);
            }
}

static void weights_of_8_bits_go_with_every_epilogue(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS,
        GEMMEPI_GELU_TANH | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD,
        GEMMEPI_NONE | GEMMEPI_BGRAD,
        GEMMEPI_NONE | GEMMEPI_BGRAD_A,
        GEMMEPI_NONE | GEMMEPI_BGRAD_B,
    };
    int e, mode, turn = 0;
    for (e = 0; e < COUNT(epilogues); e++)
        for (mode = (int)GEMMEPI_SCALE_OUTER; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++, turn++) {
            problem p = by_weights(turn % 3, 5 + 7 * (turn % 4), 144, 272, mode, epilogues[e]);
            if (turn % 5 == 4) {
                p.desc.batch = 3;
                problem_space_out(&p, 16);
                problem_space_out_scales(&p, 4);
            }
            if (turn % 3 == 2)
                problem_scale(&p, 0.75, 0.5);
            holds(&p);
        }
}

/* Stored [k, n], at odd lines, in column-major order, where weights are the first operand, and as the first in row-major order. */
static void weights_of_8_bits_may_lie_in_any_way(void) {
    int layout, mode, first;
    for (layout = 0; layout < LAYOUTS; layout++)
        for (mode = (int)GEMMEPI_SCALE_OUTER; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++)
            for (first = 0; first < 2; first++) {
                problem p =
                    typed(&bf16_i8, first ? 150 : 12, first ? 12 : 150, 290, GEMMEPI_SILU | GEMMEPI_BIAS);
                lay_out(&p, layout);
                if (first) {
                    p.desc.a.dtype = GEMMEPI_I8, p.desc.b.dtype = GEMMEPI_BF16;
                    p.desc.d.dtype = GEMMEPI_BF16;
                }
                add_scales(&p, first ? (gemmepi_scale_mode)mode : GEMMEPI_SCALE_NONE,
                           first ? GEMMEPI_SCALE_NONE : (gemmepi_scale_mode)mode);
                holds(&p);
                if (layout % 2 == 0)
                    continue;
                p.desc.a.ld = p.desc.b.ld = 304; /* long enough for every layout, and whole units */
                holds(&p);
            }
}

static void infinities_beside_weights_stay_in_their_rows(void) {
    enum { M = 11, N = 40, K = 272 };
    static double a[M * K];
    int mode, i;
    for (i = 0; i < M * K; i++)
        a[i] = 1 + i % 5;
    a[3 * K + 271] = INFINITY, a[7 * K + 130] = NAN, a[10 * K] = -INFINITY;
    for (mode = 0; mode <= (int)GEMMEPI_SCALE_BLOCK_128; mode++) {
        problem p = by_weights(mode % 3, M, N, K, mode, GEMMEPI_NONE);
        p.given[T_A] = a;
        holds(&p);
    }
}

/* >>amax */

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

static void run_all(void) {
    RUN(every_pair_of_scale_modes_holds);
    RUN(scale_modes_hold_for_other_operands);
    RUN(scale_modes_hold_for_gates);
    RUN(sums_of_operands_are_of_scaled_values);
    RUN(a_row_beyond_whole_blocks_has_scales_of_its_own_in_each_item);
    RUN(each_item_of_a_batch_has_its_own_scales_or_all_share_them);
    RUN(c_d_aux_and_residual_have_scales);
    RUN(an_aux_of_8_bits_feeds_backward_by_its_scale);
    RUN(few_rows_by_weights_of_8_bits_hold_in_every_scale_mode);
    RUN(weights_of_8_bits_go_with_every_epilogue);
    RUN(weights_of_8_bits_may_lie_in_any_way);
    RUN(infinities_beside_weights_stay_in_their_rows);
    RUN(amax_is_the_largest_magnitude_before_scaling_and_rounding);
    RUN(a_nan_anywhere_is_the_amax);
    RUN(amax_holds_over_many_tiles_and_items);
    RUN(amax_is_of_both_halves_before_the_gate_and_of_its_result);
}

int main(void) {
    return run_on_devices(run_all);
}
