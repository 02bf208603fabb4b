/* From a desc to a problem: what the defaults are, column-major products, and that the bytes of problems are equal where they mean
   the same, as those are the keys by which plans are found. */
#include "problem/normalise.h"

#include "test.h"

enum { PROMISED = 16 }; /* bytes, where desc.alignment is 0 */

static gemmepi_matmul_desc product(int64_t m, int64_t n, int64_t k, gemmepi_epilogue epilogue) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = m, desc.n = n, desc.k = k;
    desc.epilogue = epilogue;
    return desc;
}

static gpi__problem problem_of(const gemmepi_matmul_desc *desc) {
    gpi__problem problem;
    CHECK(gpi__normalise(desc, PROMISED, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return problem;
}

static int are_one(const gemmepi_matmul_desc *first, const gemmepi_matmul_desc *second) {
    gpi__problem one = problem_of(first), other = problem_of(second);
    return memcmp(&one, &other, sizeof one) == 0;
}

/* >>defaults */

static void a_desc_of_sizes_alone_is_one_dense_product_in_f32(void) {
    gemmepi_matmul_desc desc = product(5, 6, 7, GEMMEPI_NONE);
    gpi__problem problem = problem_of(&desc);
    const gpi__view *views = problem.views;
    int operand;
    CHECK(problem.batch == 1 && problem.compute == GEMMEPI_COMPUTE_F32 && problem.accumulator == GEMMEPI_F32,
          "batch %d, compute %d, accumulator %d", (int)problem.batch, (int)problem.compute,
          (int)problem.accumulator);
    CHECK(problem.alignment == PROMISED && !problem.exchanged, "alignment %d", (int)problem.alignment);
    for (operand = GPI__A; operand <= GPI__D; operand++)
        CHECK(views[operand].dtype == GEMMEPI_F32 && views[operand].bits == 32 &&
                  !views[operand].batch_stride && views[operand].written == (operand == GPI__D),
              "%s", gpi__operand_names[operand]);
    CHECK(views[GPI__A].ld == 7 && views[GPI__A].bytes == 4 * 5 * 7, "a");
    CHECK(views[GPI__B].ld == 6 && views[GPI__B].bytes == 4 * 7 * 6, "b");
    CHECK(views[GPI__C].ld == 6 && views[GPI__D].ld == 6 && views[GPI__D].bytes == 4 * 5 * 6, "c and d");
}

static void types_left_open_follow_from_a_and_d(void) {
    static const struct {
        gemmepi_dtype a, d;                              /* given */
        gemmepi_dtype b, result, c, aux, residual, bias; /* taken */
        gemmepi_dtype accumulator;
    } cases[] = {
        {GEMMEPI_DTYPE_DEFAULT, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32,
         GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32},
        {GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16,
         GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_F32},
        {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32,
         GEMMEPI_F32, GEMMEPI_F32},
        {GEMMEPI_F64, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64,
         GEMMEPI_F64, GEMMEPI_F64},
        {GEMMEPI_E4M3, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16,
         GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_F32},
        {GEMMEPI_E5M2, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_E5M2, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16,
         GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_F32},
        {GEMMEPI_I8, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I8,
         GEMMEPI_F32, GEMMEPI_F32},
    };
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc =
            product(5, 6, 7, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL);
        gpi__problem problem;
        const gpi__view *views = problem.views;
        desc.a.dtype = cases[i].a, desc.d.dtype = cases[i].d;
        problem = problem_of(&desc);
        CHECK(views[GPI__B].dtype == (int)cases[i].b && views[GPI__D].dtype == (int)cases[i].result &&
                  views[GPI__C].dtype == (int)cases[i].c,
              "%d: b %d, d %d, c %d", i, (int)views[GPI__B].dtype, (int)views[GPI__D].dtype,
              (int)views[GPI__C].dtype);
        CHECK(views[GPI__AUX].dtype == (int)cases[i].aux &&
                  views[GPI__RESIDUAL].dtype == (int)cases[i].residual &&
                  views[GPI__BIAS].dtype == (int)cases[i].bias,
              "%d: aux %d, residual %d, bias %d", i, (int)views[GPI__AUX].dtype,
              (int)views[GPI__RESIDUAL].dtype, (int)views[GPI__BIAS].dtype);
        CHECK(problem.accumulator == (int)cases[i].accumulator, "%d: sums in %d", i,
              (int)problem.accumulator);
    }
}

/* With fp8 operands D is fp8 where a scale or an amax of it is spoken of. */
static void an_fp8_d_that_is_left_open_has_something_said_of_its_scale(void) {
    gemmepi_matmul_desc desc = product(5, 6, 7, GEMMEPI_NONE);
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__problem problem;
    desc.a.dtype = GEMMEPI_E4M3;
    desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
    problem = problem_of(&desc);
    CHECK(problem.views[GPI__D].dtype == GEMMEPI_E4M3, "with a scale: %d", (int)problem.views[GPI__D].dtype);
    desc.d.scale.mode = GEMMEPI_SCALE_NONE;
    desc.flags = GEMMEPI_AMAX_D;
    problem = problem_of(&desc);
    CHECK(problem.views[GPI__D].dtype == GEMMEPI_E4M3, "with an amax: %d", (int)problem.views[GPI__D].dtype);
    desc.flags = 0;
    desc.formula = "d = rounded(v)";
    CHECK(gpi__normalise_in(&allocator, &desc, NULL, NULL, PROMISED, &problem) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(problem.views[GPI__D].dtype == GEMMEPI_BF16 && problem.formula->placed.formula->d == GEMMEPI_BF16,
          "with a formula: %d", (int)problem.views[GPI__D].dtype);
    gpi__free_formulas(&problem, &allocator);
}

static void the_parameter_left_open_is_the_activations_own(void) {
    gemmepi_matmul_desc leaky = product(5, 6, 7, GEMMEPI_LEAKY_RELU), elu = product(5, 6, 7, GEMMEPI_ELU),
                        silu = product(5, 6, 7, GEMMEPI_SILU);
    CHECK(problem_of(&leaky).parameter == 0.01 && problem_of(&elu).parameter == 1 &&
              problem_of(&silu).parameter == 0,
          "%g, %g and %g", problem_of(&leaky).parameter, problem_of(&elu).parameter,
          problem_of(&silu).parameter);
    leaky.has_parameter = 1;
    CHECK(problem_of(&leaky).parameter == 0, "a parameter of 0 becomes %g", problem_of(&leaky).parameter);
}

static void a_c_without_ld_has_ds_layout_whatever_its_dtype(void) {
    gemmepi_matmul_desc desc = product(5, 6, 7, GEMMEPI_NONE);
    static const gemmepi_dtype named[] = {GEMMEPI_DTYPE_DEFAULT, GEMMEPI_F32, GEMMEPI_F16};
    gpi__problem problem;
    size_t i;
    desc.batch = 3;
    desc.d.ld = 10, desc.d.batch_stride = 100;
    desc.a.batch_stride = 35;
    for (i = 0; i < GPI__COUNT(named); i++) {
        desc.c.dtype = named[i];
        problem = problem_of(&desc);
        CHECK(problem.views[GPI__C].ld == 10 && problem.views[GPI__C].batch_stride == 100,
              "ld %d, batch_stride %d", (int)problem.views[GPI__C].ld,
              (int)problem.views[GPI__C].batch_stride);
    }
    desc.c.ld = 6; /* shared by the batch */
    problem = problem_of(&desc);
    CHECK(problem.views[GPI__C].ld == 6 && problem.views[GPI__C].batch_stride == 0, "ld %d, batch_stride %d",
          (int)problem.views[GPI__C].ld, (int)problem.views[GPI__C].batch_stride);
}

/* The bytes of a view by going through it. */
static int64_t last_byte(int64_t batch, int64_t stride, int64_t lines, int64_t ld, int64_t length, int bits) {
    int64_t item, line, last = 0;
    for (item = 0; item < batch; item++)
        for (line = 0; line < lines; line++) {
            int64_t end = ((item * stride + line * ld + length) * bits + 7) / 8;
            last = length && end > last ? end : last;
        }
    return last;
}

static void a_tensor_reaches_to_its_last_element(void) {
    int i;
    for (i = 0; i < 500; i++) {
        gemmepi_matmul_desc desc = product(i % 4, i / 2 % 5, i / 3 % 7, GEMMEPI_RELU | GEMMEPI_AUX);
        gpi__problem problem;
        int64_t lines, length, ld_a, ld_aux = i % 3 ? 128 : 384;
        desc.batch = 1 + i % 3;
        desc.a.dtype = i % 2 ? GEMMEPI_BF16 : GEMMEPI_E4M3, desc.b.dtype = GEMMEPI_BF16,
        desc.d.dtype = GEMMEPI_F32;
        desc.a.transposed = i / 5 % 2;
        lines = desc.a.transposed ? desc.k : desc.m, length = desc.a.transposed ? desc.m : desc.k;
        ld_a = desc.a.ld = length + i % 5 + (length == 0);
        desc.a.batch_stride = i % 11;
        desc.d.batch_stride = desc.m * desc.n;
        desc.aux.ld = ld_aux, desc.aux.batch_stride = desc.m * ld_aux;
        problem = problem_of(&desc);
        CHECK(problem.views[GPI__A].bytes ==
                  last_byte(desc.batch, desc.a.batch_stride, lines, ld_a, length, i % 2 ? 16 : 8),
              "%d: %d bytes of a", i, (int)problem.views[GPI__A].bytes);
        CHECK(problem.views[GPI__AUX].bytes ==
                  last_byte(desc.batch, desc.aux.batch_stride, desc.m, ld_aux, desc.n, 1),
              "%d: %d bytes of the mask", i, (int)problem.views[GPI__AUX].bytes);
    }
}

static void operands_are_listed_once_with_the_outputs_first(void) {
    static const struct {
        gemmepi_epilogue epilogue;
        uint64_t flags;
        int outputs, list[8], count;
    } cases[] = {
        {GEMMEPI_NONE, 0, 1, {GPI__D, GPI__A, GPI__B, GPI__C}, 4},
        {GEMMEPI_SILU | GEMMEPI_AUX | GEMMEPI_BIAS,
         0,
         2,
         {GPI__D, GPI__AUX, GPI__A, GPI__B, GPI__C, GPI__BIAS},
         6},
        {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_RESIDUAL,
         GEMMEPI_AMAX_D,
         3,
         {GPI__D, GPI__BIAS_GRAD, GPI__AMAX_D, GPI__A, GPI__B, GPI__C, GPI__AUX, GPI__RESIDUAL},
         8},
    };
    int i, j;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc = product(5, 6, 7, cases[i].epilogue);
        gpi__problem problem;
        uint32_t used = 0;
        desc.flags = cases[i].flags;
        problem = problem_of(&desc);
        CHECK(problem.count == cases[i].count && problem.outputs == cases[i].outputs, "%d: %d of %d", i,
              (int)problem.outputs, (int)problem.count);
        for (j = 0; j < cases[i].count; j++) {
            CHECK(problem.list[j] == cases[i].list[j], "%d: %s at %d", i,
                  gpi__operand_names[(int)problem.list[j]], j);
            used |= 1u << cases[i].list[j];
        }
        CHECK(problem.used == used, "%d: used 0x%x", i, (unsigned)problem.used);
    }
}

/* >>column-major */

/* The product that has the same bytes: D^T = op(B)^T op(A)^T. */
static gemmepi_matmul_desc turned(const gemmepi_matmul_desc *desc) {
    gemmepi_matmul_desc other = *desc;
    other.order = GEMMEPI_ROW_MAJOR;
    other.m = desc->n, other.n = desc->m;
    other.a = desc->b, other.b = desc->a;
    if (desc->epilogue & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        other.epilogue ^= GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B;
    return other;
}

static void a_column_major_product_is_the_row_major_one_of_the_same_memory(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE,
        GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX,
        GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_RESIDUAL,
        GEMMEPI_BGRAD_A | GEMMEPI_BIAS,
        GEMMEPI_BGRAD_B,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD};
    int i, transposed, scaled;
    for (i = 0; i < (int)GPI__COUNT(epilogues); i++)
        for (transposed = 0; transposed < 4; transposed++)
            for (scaled = 0; scaled < 2; scaled++) {
                gemmepi_matmul_desc desc = product(26, 40, 14, epilogues[i]), other;
                gpi__problem folded, plain;
                desc.order = GEMMEPI_COLUMN_MAJOR;
                desc.batch = 2;
                desc.a.dtype = desc.b.dtype = scaled ? GEMMEPI_E4M3 : GEMMEPI_BF16,
                desc.d.dtype = GEMMEPI_BF16;
                desc.a.transposed = transposed & 1, desc.b.transposed = transposed >> 1;
                desc.a.ld = 64, desc.b.ld = 72, desc.d.ld = 80;
                desc.a.batch_stride = 4000, desc.d.batch_stride = 8000;
                desc.aux.batch_stride = desc.residual.batch_stride = 8192;
                desc.a.scale.mode = desc.b.scale.mode = scaled ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_NONE;
                other = turned(&desc);
                folded = problem_of(&desc), plain = problem_of(&other);
                CHECK(folded.exchanged && !plain.exchanged, "%d: exchanged", i);
                CHECK(gpi__callers_m(&folded) == 26 && gpi__callers_n(&folded) == 40, "%d: %d x %d", i,
                      (int)gpi__callers_m(&folded), (int)gpi__callers_n(&folded));
                folded.exchanged = 0;
                CHECK(memcmp(&folded, &plain, sizeof folded) == 0,
                      "%d, transposed %d, scaled %d: other bytes", i, transposed, scaled);
            }
}

/* >>keys */

static void what_is_left_open_and_what_is_given_as_the_default_are_one_problem(void) {
    gemmepi_matmul_desc open = product(5, 6, 7, GEMMEPI_LEAKY_RELU | GEMMEPI_BIAS | GEMMEPI_AUX),
                        given = open;
    given.batch = 1;
    given.compute = GEMMEPI_COMPUTE_F32;
    given.alignment = PROMISED;
    given.a.dtype = given.b.dtype = given.c.dtype = given.d.dtype = given.aux.dtype = given.bias.dtype =
        GEMMEPI_F32;
    given.a.ld = 7, given.b.ld = given.c.ld = given.d.ld = given.aux.ld = 6;
    given.has_parameter = 1, given.activation_parameter = 0.01;
    CHECK(are_one(&open, &given), "they differ");
}

static void what_has_no_meaning_tells_no_problems_apart(void) {
    gemmepi_matmul_desc first = product(1, 6, 7, GEMMEPI_BIAS), second = first;
    second.a.ld = 1000; /* of one line */
    second.d.ld = 77;
    CHECK(are_one(&first, &second), "the ld of one line");
    second.a.batch_stride = second.d.batch_stride = second.bias.batch_stride = 12345; /* of one item */
    CHECK(are_one(&first, &second), "the batch_stride of one item");
    first = second = product(5, 6, 0, GEMMEPI_NONE);
    second.a.ld = 9, second.b.ld = 10; /* of no element */
    CHECK(are_one(&first, &second), "the ld of no element");
    first = second = product(0, 6, 7, GEMMEPI_NONE);
    first.batch = second.batch = 3;
    second.a.batch_stride = (int64_t)1 << 55;
    CHECK(are_one(&first, &second), "the batch_stride of no element");
}

enum { CHANGES = 20 };

/* One thing in which a desc may differ. */
/* clang-format off */
static void change(gemmepi_matmul_desc *desc, int what) {
    switch (what) {
    case 0: desc->m++; break;
    case 1: desc->n++; break;
    case 2: desc->k++; break;
    case 3: desc->batch++; break;
    case 4: desc->order = GEMMEPI_COLUMN_MAJOR; break;
    case 5: desc->compute = GEMMEPI_COMPUTE_TF32; break;
    case 6: desc->epilogue ^= GEMMEPI_SILU ^ GEMMEPI_LEAKY_RELU; break;
    case 7: desc->epilogue ^= GEMMEPI_AUX; break;
    case 8: desc->flags |= GEMMEPI_RELAXED; break;
    case 9: desc->flags |= GEMMEPI_AMAX_D; break;
    case 10: desc->has_parameter = 1, desc->activation_parameter = 0.5; break;
    case 11: desc->alignment = 64; break;
    case 12: desc->a.transposed = 1; break;
    case 13: desc->b.ld = 10; break;
    case 14: desc->a.batch_stride = 64; break;
    case 15: desc->d.dtype = GEMMEPI_BF16; break;
    case 16: desc->bias.dtype = GEMMEPI_F16; break;
    case 17: desc->residual.ld = 16; break;
    case 18: desc->c.ld = 24; break;
    default: desc->bias.batch_stride = 6; break;
    }
}
/* clang-format on */

static void each_difference_tells_problems_apart(void) {
    int i, j;
    for (i = 0; i < CHANGES; i++)
        for (j = i + 1; j <= CHANGES; j++) {
            gemmepi_matmul_desc first =
                                    product(5, 6, 5, GEMMEPI_LEAKY_RELU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL),
                                second;
            first.batch = 2;
            first.a.batch_stride = 40, first.d.batch_stride = first.aux.batch_stride = 60;
            second = first;
            change(&first, i);
            if (j < CHANGES)
                change(&second, j);
            CHECK(!are_one(&first, &second), "%d and %d are one problem", i, j);
        }
}

/* Columns that are halves and doubles of n, in halves; -1: there is no such operand. Column-major, rows of m are. */
static void extents_beside_a_product_are_as_the_manual_says(void) {
    static const struct {
        gemmepi_epilogue epilogue;
        int d, aux, residual, bias, bias_grad;
    } cases[] = {
        {GEMMEPI_SILU | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 2, 2, 2, 2, -1},
        {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 2, 2, -1, -1, 2},
        {GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 1, 2, 1, 2, -1},
        {GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_RESIDUAL, 4, 4, 4, -1, 4},
        {GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_RESIDUAL, 2, 1, 2, -1,
         -1},
        {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM, 2, 2, -1, -1, -1},
    };
    int i, is_column_major, operand;
    for (i = 0; i < 2 * (int)GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc = product(6, 10, 7, cases[i / 2].epilogue);
        gpi__problem problem;
        int64_t across, halves;
        is_column_major = i % 2;
        desc.order = is_column_major ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
        problem = problem_of(&desc);
        across = is_column_major ? 10 : 6, halves = is_column_major ? 3 : 5;
        for (operand = GPI__D; operand <= GPI__BIAS_GRAD; operand++) {
            const gpi__view *view = &problem.views[operand];
            int is_vector = operand == GPI__BIAS || operand == GPI__BIAS_GRAD;
            int expected = operand == GPI__D          ? cases[i / 2].d
                           : operand == GPI__AUX      ? cases[i / 2].aux
                           : operand == GPI__RESIDUAL ? cases[i / 2].residual
                           : operand == GPI__BIAS     ? cases[i / 2].bias
                                                      : cases[i / 2].bias_grad;
            CHECK(gpi__has_operand(&problem, operand) == (expected > 0) &&
                      (expected < 0 ||
                       (view->length == expected * halves && view->lines == (is_vector ? 1 : across))),
                  "case %d: %s has %d lines of %d", i, gpi__operand_names[operand], (int)view->lines,
                  (int)view->length);
        }
    }
}

/* >>scales */

static int64_t blocks(int64_t extent) {
    int64_t count = 0, begin;
    for (begin = 0; begin < extent; begin += 128)
        count++;
    return count;
}

static void scales_are_laid_out_as_the_manual_says(void) {
    static const int64_t extents[] = {1, 127, 128, 129, 256, 512, 513, 641};
    int count = (int)GPI__COUNT(extents), i, j, mode, of_b;
    for (i = 0; i < count * count * 2; i++)
        for (mode = GEMMEPI_SCALE_TENSOR; mode <= GEMMEPI_SCALE_BLOCK_128; mode++) {
            int64_t outer = extents[i / 2 % count], k = extents[i / 2 / count], lines, length, ld;
            gemmepi_matmul_desc desc = product(outer, outer, k, GEMMEPI_NONE);
            gpi__problem problem;
            const gpi__view *view;
            of_b = i % 2;
            desc.a.dtype = GEMMEPI_E4M3, desc.d.dtype = GEMMEPI_BF16;
            (of_b ? &desc.b : &desc.a)->scale.mode = (gemmepi_scale_mode)mode;
            problem = problem_of(&desc);
            view = &problem.views[of_b ? GPI__SCALE_B : GPI__SCALE_A];
            lines = mode == GEMMEPI_SCALE_VECTOR_128  ? blocks(k)
                    : mode == GEMMEPI_SCALE_BLOCK_128 ? blocks(outer)
                                                      : 1;
            length = mode == GEMMEPI_SCALE_TENSOR ? 1 : mode == GEMMEPI_SCALE_BLOCK_128 ? blocks(k) : outer;
            for (ld = length; mode == GEMMEPI_SCALE_BLOCK_128 && ld % 4; ld++)
                ;
            CHECK(view->lines == lines && view->length == length && (lines == 1 || view->ld == ld) &&
                      view->bytes == 4 * ((lines - 1) * ld + length) && !view->written &&
                      view->alignment == (mode == GEMMEPI_SCALE_TENSOR ? 4 : 16) &&
                      view->dtype == GEMMEPI_F32 && problem.views[of_b ? GPI__B : GPI__A].scale == mode,
                  "%s, mode %d of %d x %d: %d lines of %d, ld %d", of_b ? "b" : "a", mode, (int)outer, (int)k,
                  (int)view->lines, (int)view->length, (int)view->ld);
            for (j = 0; j < problem.outputs; j++)
                CHECK(problem.list[j] == GPI__D, "%d is an output", (int)problem.list[j]);
        }
}

static int is_output(const gpi__problem *problem, int operand) {
    int i;
    for (i = 0; i < problem->outputs; i++)
        if (problem->list[i] == operand)
            return 1;
    return 0;
}

static gemmepi_matmul_desc finding(gemmepi_scale_mode mode, int64_t n, int history) {
    gemmepi_matmul_desc desc = product(5, n, 32, GEMMEPI_NONE);
    desc.a.dtype = desc.d.dtype = GEMMEPI_E4M3;
    desc.flags = GEMMEPI_FIND_SCALE_D;
    desc.d.scale.mode = mode, desc.amax_history = history;
    return desc;
}

static void rows_of_up_to_128_are_found_as_vectors_where_bits_may_depend_on_m(void) {
    static const int64_t columns[] = {1, 127, 128, 129, 256, 257};
    int i, mode, is_invariant;
    for (i = 0; i < (int)GPI__COUNT(columns); i++)
        for (mode = GEMMEPI_SCALE_OUTER; mode <= GEMMEPI_SCALE_VECTOR_128; mode++)
            for (is_invariant = 0; is_invariant < 2; is_invariant++) {
                gemmepi_matmul_desc desc = finding((gemmepi_scale_mode)mode, columns[i], 0);
                gpi__problem problem;
                const gpi__view *found = &problem.views[GPI__FOUND_SCALE_D];
                int is_vector = mode == GEMMEPI_SCALE_VECTOR_128 || (columns[i] <= 128 && !is_invariant);
                desc.flags |= is_invariant ? GEMMEPI_BATCH_INVARIANT : 0;
                problem = problem_of(&desc);
                CHECK(problem.found_scale == (is_vector ? GEMMEPI_SCALE_VECTOR_128 : GEMMEPI_SCALE_OUTER) &&
                          found->lines == (is_vector ? blocks(columns[i]) : 1) && found->length == 5 &&
                          found->alignment == 16 && is_output(&problem, GPI__FOUND_SCALE_D) &&
                          !gpi__has_operand(&problem, GPI__AMAX_HISTORY),
                      "mode %d, %d columns, invariant %d: %d", mode, (int)columns[i], is_invariant,
                      (int)problem.found_scale);
            }
}

static void a_scale_of_one_number_has_a_history_of_1_to_1024(void) {
    static const int lengths[] = {1, 2, 1024, 0, -1, 1025};
    int i;
    for (i = 0; i < (int)GPI__COUNT(lengths); i++) {
        gemmepi_matmul_desc desc = finding(GEMMEPI_SCALE_TENSOR, 200, lengths[i]);
        gpi__problem problem;
        CHECK((gpi__normalise(&desc, PROMISED, &problem) == GEMMEPI_OK) == (i < 3), "history %d: %s",
              lengths[i], gemmepi_last_error());
        if (i >= 3)
            continue;
        CHECK(problem.views[GPI__AMAX_HISTORY].length == lengths[i] &&
                  problem.views[GPI__FOUND_SCALE_D].length == 1 &&
                  problem.views[GPI__FOUND_SCALE_D].alignment == 4 &&
                  is_output(&problem, GPI__AMAX_HISTORY) && is_output(&problem, GPI__FOUND_SCALE_D) &&
                  problem.amax_history == lengths[i],
              "history %d", lengths[i]);
    }
}

static void an_amax_has_the_type_and_alignment_of_the_accumulator(void) {
    static const gemmepi_dtype types[] = {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F64};
    int i, operand;
    for (i = 0; i < 3; i++) {
        gemmepi_matmul_desc desc = product(5, 6, 7, (gemmepi_epilogue)(GEMMEPI_SILU | GEMMEPI_AUX));
        gpi__problem problem;
        desc.a.dtype = types[i], desc.flags = GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX;
        problem = problem_of(&desc);
        for (operand = GPI__AMAX_D; operand <= GPI__AMAX_AUX; operand++)
            CHECK(problem.views[operand].bytes == (i == 2 ? 8 : 4) &&
                      problem.views[operand].alignment == (i == 2 ? 8 : 4) && is_output(&problem, operand),
                  "type %d: %d bytes", i, (int)problem.views[operand].bytes);
    }
}

/* >>numbers of a desc */

static gemmepi_status said_of(gemmepi_dtype dtype, double parameter, int alignment) {
    gemmepi_matmul_desc desc = product(5, 6, 7, GEMMEPI_LEAKY_RELU);
    gpi__problem problem;
    desc.a.dtype = dtype;
    desc.has_parameter = 1, desc.activation_parameter = parameter;
    desc.alignment = (uint32_t)alignment;
    return gpi__normalise(&desc, PROMISED, &problem);
}

static void a_parameter_is_a_number_of_the_accumulator(void) {
    static const double accepted[] = {0, -1, FLT_MAX, -FLT_MAX, 1e-300},
                        of_f64[] = {1e300, -1e300, 3.5e38, DBL_MAX}, refused[] = {HUGE_VAL, -HUGE_VAL, NAN};
    size_t i;
    for (i = 0; i < GPI__COUNT(accepted); i++)
        CHECK(!said_of(GEMMEPI_F32, accepted[i], 0) && !said_of(GEMMEPI_F64, accepted[i], 0), "%g: %s",
              accepted[i], gemmepi_last_error());
    for (i = 0; i < GPI__COUNT(of_f64); i++)
        CHECK(said_of(GEMMEPI_BF16, of_f64[i], 0) && !said_of(GEMMEPI_F64, of_f64[i], 0), "%g", of_f64[i]);
    for (i = 0; i < GPI__COUNT(refused); i++)
        CHECK(said_of(GEMMEPI_F32, refused[i], 0) && said_of(GEMMEPI_F64, refused[i], 0), "%g", refused[i]);
}

static void an_alignment_is_a_power_of_two_up_to_256(void) {
    int bytes;
    for (bytes = 1; bytes <= 1024; bytes++)
        CHECK((said_of(GEMMEPI_F32, 0, bytes) == GEMMEPI_OK) == (bytes <= 256 && !(bytes & (bytes - 1))),
              "%d bytes: %s", bytes, gemmepi_last_error());
}

/* >>what is left 0 */

enum { FIELDS_OF_A_MATRIX = 6 };

static void give(gemmepi_matrix *matrix, int field) {
    if (field == 0)
        matrix->dtype = GEMMEPI_F32;
    else if (field == 1)
        matrix->transposed = 1;
    else if (field == 2)
        matrix->ld = 12;
    else if (field == 3)
        matrix->batch_stride = 72;
    else if (field == 4)
        matrix->scale.mode = GEMMEPI_SCALE_TENSOR;
    else
        matrix->scale.batch_stride = 1;
}

static void check_refused(const gemmepi_matmul_desc *desc, const char *name) {
    gpi__problem problem;
    char says[64];
    snprintf(says, sizeof says, "desc.%s is ", name);
    CHECK(gpi__normalise(desc, PROMISED, &problem) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), says),
          "%s: %s", name, gemmepi_last_error());
}

static void each_field_that_a_formula_has_no_use_for_is_refused_by_its_name(void) {
    gemmepi_matmul_desc desc, plain = product(5, 6, 7, GEMMEPI_NONE);
    gemmepi_operand operand;
    int i;
    memset(&operand, 0, sizeof operand);
    plain.formula = "d = v";
    for (i = 0; i < FIELDS_OF_A_MATRIX; i++) {
        desc = plain, give(&desc.aux, i), check_refused(&desc, "aux");
        desc = plain, give(&desc.residual, i), check_refused(&desc, "residual");
    }
    desc = plain, desc.bias.dtype = GEMMEPI_F32, check_refused(&desc, "bias");
    desc = plain, desc.bias.batch_stride = 6, check_refused(&desc, "bias");
    desc = plain, desc.bias_grad.dtype = GEMMEPI_F32, check_refused(&desc, "bias_grad");
    desc = plain, desc.bias_grad.batch_stride = 6, check_refused(&desc, "bias_grad");
    plain.formula = NULL;
    desc = plain, desc.operands = &operand, check_refused(&desc, "operands");
    desc = plain, desc.operand_count = 1, check_refused(&desc, "operand_count");
    desc = plain, desc.formula_value = "v", check_refused(&desc, "formula_value");
    desc = plain, desc.formula_result = "d", check_refused(&desc, "formula_result");
}

static void what_accumulates_leaves_every_field_of_c_0(void) {
    int i;
    for (i = 0; i < FIELDS_OF_A_MATRIX; i++) {
        gemmepi_matmul_desc desc = product(5, 6, 7, GEMMEPI_NONE);
        gpi__problem problem;
        desc.flags = GEMMEPI_ACCUMULATE;
        CHECK(gpi__normalise(&desc, PROMISED, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
        give(&desc.c, i);
        CHECK(gpi__normalise(&desc, PROMISED, &problem) == GEMMEPI_INVALID_ARGUMENT &&
                  strstr(gemmepi_last_error(), "desc.c is not zero"),
              "field %d: %s", i, gemmepi_last_error());
    }
}

static void needs_are_of_the_caller_s_a_and_b(void) {
    int is_column_major;
    for (is_column_major = 0; is_column_major < 2; is_column_major++) {
        gemmepi_matmul_desc desc =
            product(16, 48, 256, (gemmepi_epilogue)(GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_BIAS));
        gemmepi_epilogue_needs needs;
        desc.order = is_column_major ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
        desc.a.dtype = GEMMEPI_E4M3, desc.d.dtype = GEMMEPI_BF16;
        desc.a.scale.mode = GEMMEPI_SCALE_OUTER, desc.b.scale.mode = GEMMEPI_SCALE_VECTOR_128;
        CHECK(gemmepi_epilogue_info(&desc, &needs) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(needs.scale_a_bytes == 4 * 16 && needs.scale_b_bytes == 4 * 2 * 48 &&
                  needs.found_scale_d_bytes == 0,
              "%d and %d bytes", (int)needs.scale_a_bytes, (int)needs.scale_b_bytes);
        CHECK(needs.reads_bias && !needs.reads_aux && needs.writes_aux && needs.aux_is_mask &&
                  needs.aux_dtype == GEMMEPI_DTYPE_DEFAULT && !needs.reads_residual &&
                  !needs.writes_bias_grad,
              "bias %d, aux %d", needs.reads_bias, needs.writes_aux);
        CHECK(needs.bias_length == (is_column_major ? 16 : 48) &&
                  needs.bias_bytes == 2 * (size_t)needs.bias_length && needs.bias_dtype == GEMMEPI_BF16 &&
                  needs.residual_bytes == 0 && needs.bias_grad_bytes == 0,
              "bias of %d, %d bytes", (int)needs.bias_length, (int)needs.bias_bytes);
        CHECK(needs.aux_ld == 128 && needs.aux_bytes == (is_column_major ? 47 * 16 + 2 : 15 * 16 + 6),
              "lines of %d bits, %d bytes", (int)needs.aux_ld, (int)needs.aux_bytes);
        desc.epilogue = GEMMEPI_SILU | GEMMEPI_AUX | GEMMEPI_RESIDUAL;
        for (desc.aux.ld = 0; desc.aux.ld <= 56; desc.aux.ld += 56) {
            int64_t length = is_column_major ? 16 : 48, lines = is_column_major ? 48 : 16,
                    ld = desc.aux.ld ? desc.aux.ld : length;
            CHECK(gemmepi_epilogue_info(&desc, &needs) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(!needs.aux_is_mask && needs.aux_ld == ld &&
                      needs.aux_bytes == 2 * (size_t)((lines - 1) * ld + length) &&
                      needs.residual_bytes == 2 * 16 * 48 && needs.residual_dtype == GEMMEPI_BF16 &&
                      needs.reads_residual && !needs.reads_bias && needs.bias_length == 0,
                  "lines of %d, %d bytes", (int)needs.aux_ld, (int)needs.aux_bytes);
        }
    }
}

/* >>sizes */

static void sizes_up_to_2_to_the_56_have_bytes_and_beyond_are_refused(void) {
    gemmepi_matmul_desc desc = product((int64_t)1 << 40, 1, 1 << 15, GEMMEPI_NONE);
    gpi__problem problem = problem_of(&desc);
    CHECK(problem.views[GPI__A].bytes == (int64_t)1 << 57, "%lld bytes",
          (long long)problem.views[GPI__A].bytes);
    desc.a.dtype = GEMMEPI_F64, desc.k = 1 << 16;
    problem = problem_of(&desc);
    CHECK(problem.views[GPI__A].bytes == (int64_t)1 << 59, "%lld bytes",
          (long long)problem.views[GPI__A].bytes);
    desc.k++;
    CHECK(gpi__normalise(&desc, PROMISED, &problem) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "desc.a spans more than 2^56 elements"),
          "%s", gemmepi_last_error());
    desc = product(2, (int64_t)1 << 55, 1, GEMMEPI_NONE);
    desc.d.ld = INT64_MAX;
    CHECK(gpi__normalise(&desc, PROMISED, &problem) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "desc.d spans more than 2^56 elements"),
          "%s", gemmepi_last_error());
}

int main(void) {
    RUN(a_desc_of_sizes_alone_is_one_dense_product_in_f32);
    RUN(types_left_open_follow_from_a_and_d);
    RUN(an_fp8_d_that_is_left_open_has_something_said_of_its_scale);
    RUN(the_parameter_left_open_is_the_activations_own);
    RUN(a_c_without_ld_has_ds_layout_whatever_its_dtype);
    RUN(a_tensor_reaches_to_its_last_element);
    RUN(operands_are_listed_once_with_the_outputs_first);
    RUN(a_column_major_product_is_the_row_major_one_of_the_same_memory);
    RUN(what_is_left_open_and_what_is_given_as_the_default_are_one_problem);
    RUN(what_has_no_meaning_tells_no_problems_apart);
    RUN(each_difference_tells_problems_apart);
    RUN(extents_beside_a_product_are_as_the_manual_says);
    RUN(scales_are_laid_out_as_the_manual_says);
    RUN(rows_of_up_to_128_are_found_as_vectors_where_bits_may_depend_on_m);
    RUN(a_scale_of_one_number_has_a_history_of_1_to_1024);
    RUN(an_amax_has_the_type_and_alignment_of_the_accumulator);
    RUN(a_parameter_is_a_number_of_the_accumulator);
    RUN(an_alignment_is_a_power_of_two_up_to_256);
    RUN(each_field_that_a_formula_has_no_use_for_is_refused_by_its_name);
    RUN(what_accumulates_leaves_every_field_of_c_0);
    RUN(needs_are_of_the_caller_s_a_and_b);
    RUN(sizes_up_to_2_to_the_56_have_bytes_and_beyond_are_refused);
    return test_finish();
}
