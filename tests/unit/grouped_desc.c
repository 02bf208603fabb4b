/* From a desc of a grouped product to its problem: strides of what groups have of their own, rows of what all of them share, scales, and what
   is refused at both sides of each limit. */
#include "problem/grouped.h"

#include "test.h"

enum { PROMISED = 16, GROUPS = 3 };

static gemmepi_allocator allocator;

static gemmepi_grouped_desc grouped_desc(int of_k) {
    gemmepi_grouped_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.groups = GROUPS, desc.grouping = of_k ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
    desc.product.m = 40, desc.product.n = 56, desc.product.k = 72;
    desc.product.a.dtype = GEMMEPI_BF16;
    desc.product.a.transposed = of_k;
    return desc;
}

static gpi__problem problem_of(const gemmepi_grouped_desc *desc) {
    gpi__problem problem;
    CHECK(gpi__convert_grouped(&allocator, desc, PROMISED, &problem) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    return problem;
}

static const gpi__view *view_of(const gpi__problem *problem, int operand) {
    return &problem->views[operand];
}

static void check_view(const gpi__problem *problem, int operand, int64_t lines, int64_t ld, int64_t stride) {
    const gpi__view *view = view_of(problem, operand);
    CHECK(view->lines == lines && view->ld == ld && view->batch_stride == stride,
          "%s has %d lines, %d apart, and items %d apart; it should have %d, %d and %d",
          gpi__operand_names[operand], (int)view->lines, (int)view->ld, (int)view->batch_stride, (int)lines,
          (int)ld, (int)stride);
}

/* >>strides */

static void groups_of_rows_have_b_and_bias_of_their_own(void) {
    gemmepi_grouped_desc desc = grouped_desc(0);
    gpi__problem problem;
    desc.product.epilogue = GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL;
    problem = problem_of(&desc);
    CHECK(problem.batch == GROUPS && problem.grouping.groups == GROUPS && !problem.grouping.is_of_k,
          "groups");
    check_view(&problem, GPI__A, 40, 72, 0);
    check_view(&problem, GPI__B, 72, 56, 72 * 56);
    check_view(&problem, GPI__D, 40, 56, 0);
    check_view(&problem, GPI__AUX, 40, 56, 0);
    check_view(&problem, GPI__RESIDUAL, 40, 56, 0);
    CHECK(view_of(&problem, GPI__BIAS)->batch_stride == 56, "bias");
    desc.product.b.transposed = 1, desc.product.b.ld = 80;
    problem = problem_of(&desc);
    check_view(&problem, GPI__B, 56, 80, 56 * 80);
    desc.product.b.batch_stride = 5000, desc.product.bias.batch_stride = 64;
    problem = problem_of(&desc);
    check_view(&problem, GPI__B, 56, 80, 5000);
    CHECK(view_of(&problem, GPI__BIAS)->batch_stride == 64, "bias");
    CHECK(view_of(&problem, GPI__B)->bytes == 2 * (2 * 5000 + 55 * 80 + 72), "%d bytes of b",
          (int)view_of(&problem, GPI__B)->bytes);
}

static void groups_of_k_have_d_and_what_lies_as_it_of_their_own(void) {
    gemmepi_grouped_desc desc = grouped_desc(1);
    gpi__problem problem;
    desc.product.epilogue = GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL;
    desc.product.d.ld = 64, desc.product.residual.ld = 72;
    problem = problem_of(&desc);
    CHECK(problem.grouping.is_of_k, "groups of k");
    check_view(&problem, GPI__A, 72, 40, 0);
    check_view(&problem, GPI__B, 72, 56, 0);
    check_view(&problem, GPI__D, 40, 64, 40 * 64);
    check_view(&problem, GPI__AUX, 40, 56, 40 * 56);
    check_view(&problem, GPI__RESIDUAL, 40, 72, 40 * 72);
    check_view(&problem, GPI__C, 40, 64, 40 * 64); /* as D */
    CHECK(view_of(&problem, GPI__BIAS)->batch_stride == 56, "bias");
    desc.product.c.dtype = GEMMEPI_F32;
    problem = problem_of(&desc);
    check_view(&problem, GPI__C, 40, 64, 40 * 64); /* as D, whatever its type */
    desc.product.c.ld = 60, desc.product.c.batch_stride = 3000;
    problem = problem_of(&desc);
    check_view(&problem, GPI__C, 40, 60, 3000);
}

/* Of a gate D is half as wide; a mask has lines of whole 128 bits; each sum is as long as what it sums. */
static void strides_are_of_the_width_that_a_tensor_has(void) {
    gemmepi_grouped_desc desc = grouped_desc(1);
    gpi__problem problem;
    desc.product.epilogue = GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX;
    problem = problem_of(&desc);
    check_view(&problem, GPI__D, 40, 28, 40 * 28);
    check_view(&problem, GPI__AUX, 40, 56, 40 * 56);
    check_view(&problem, GPI__C, 40, 56, 40 * 56);
    desc.product.epilogue = GEMMEPI_RELU | GEMMEPI_AUX;
    problem = problem_of(&desc);
    check_view(&problem, GPI__AUX, 40, 128, 40 * 128);
    desc.product.epilogue = GEMMEPI_BGRAD_A;
    problem = problem_of(&desc);
    CHECK(view_of(&problem, GPI__BIAS_GRAD)->batch_stride == 40, "sums of a");
    desc.product.epilogue = GEMMEPI_BGRAD_B;
    problem = problem_of(&desc);
    CHECK(view_of(&problem, GPI__BIAS_GRAD)->batch_stride == 56, "sums of b");
    desc.product.bias_grad.batch_stride = 60;
    problem = problem_of(&desc);
    CHECK(view_of(&problem, GPI__BIAS_GRAD)->batch_stride == 60, "sums of b, apart");
}

/* >>rows that are stored */

static void gathered_and_scattered_tensors_have_rows_of_their_own(void) {
    gemmepi_grouped_desc desc = grouped_desc(0);
    gpi__problem problem;
    desc.product.epilogue = GEMMEPI_SILU | GEMMEPI_AUX | GEMMEPI_RESIDUAL;
    desc.gather_a = 90, desc.scatter_d = 50, desc.weighted = 1;
    desc.product.a.ld = 80, desc.product.d.ld = 60, desc.product.aux.ld = 64, desc.product.residual.ld = 68;
    problem = problem_of(&desc);
    check_view(&problem, GPI__A, 90, 80, 0);
    check_view(&problem, GPI__D, 50, 60, 0);
    check_view(&problem, GPI__C, 50, 60, 0);
    check_view(&problem, GPI__AUX, 50, 64, 0);
    check_view(&problem, GPI__RESIDUAL, 50, 68, 0);
    desc.product.c.dtype = GEMMEPI_F32; /* its type does not count */
    problem = problem_of(&desc);
    check_view(&problem, GPI__C, 50, 60, 0);
    CHECK(view_of(&problem, GPI__ROW_FACTOR)->length == 50 &&
              view_of(&problem, GPI__ROW_FACTOR)->bytes == 200 &&
              view_of(&problem, GPI__ROW_FACTOR)->dtype == GEMMEPI_F32,
          "weights");
    CHECK(view_of(&problem, GPI__A)->bytes == 2 * (89 * 80 + 72) &&
              view_of(&problem, GPI__D)->bytes == 2 * (49 * 60 + 56),
          "bytes");
    CHECK(problem.m == 40 && problem.grouping.gathered == 1 && problem.grouping.scattered == 50, "positions");
    /* a single position, whose ld would not count of a product alone */
    desc.product.m = 1;
    problem = problem_of(&desc);
    check_view(&problem, GPI__A, 90, 80, 0);
    check_view(&problem, GPI__D, 50, 60, 0);
    desc = grouped_desc(1);
    desc.gather_a = 90, desc.gather_b = 95;
    desc.product.k = 1, desc.product.a.ld = 48, desc.product.b.ld = 64;
    problem = problem_of(&desc);
    check_view(&problem, GPI__A, 90, 48, 0);
    check_view(&problem, GPI__B, 95, 64, 0);
    CHECK(problem.grouping.gathered == 3 && !problem.grouping.scattered, "gathered %d",
          problem.grouping.gathered);
    desc.gather_a = 0;
    problem = problem_of(&desc);
    CHECK(problem.grouping.gathered == 2, "gathered %d", problem.grouping.gathered);
}

/* >>scales */

static void scales_of_b_lie_one_group_after_another(void) {
    static const struct {
        gemmepi_scale_mode mode;
        int64_t n, lines, length, stride;
    } cases[] = {{GEMMEPI_SCALE_OUTER, 200, 1, 200, 200},
                 {GEMMEPI_SCALE_VECTOR_128, 200, 3, 200, 600},
                 {GEMMEPI_SCALE_BLOCK_128, 200, 2, 3, 2 * 4},
                 {GEMMEPI_SCALE_BLOCK_128, 100, 1, 3, 4}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_grouped_desc desc = grouped_desc(0);
        gpi__problem problem;
        const gpi__view *scale = &problem.views[GPI__SCALE_B];
        int64_t last;
        desc.product.n = cases[i].n, desc.product.k = 260;
        desc.product.a.dtype = GEMMEPI_E4M3, desc.product.d.dtype = GEMMEPI_BF16;
        desc.product.b.scale.mode = cases[i].mode;
        problem = problem_of(&desc);
        last = (cases[i].lines - 1) * scale->ld + cases[i].length; /* numbers of one group */
        CHECK(scale->lines == cases[i].lines && scale->length == cases[i].length &&
                  scale->batch_stride == cases[i].stride && scale->bytes == 4 * (2 * cases[i].stride + last),
              "mode %d: %d x %d, %d apart, %d bytes", (int)cases[i].mode, (int)scale->lines,
              (int)scale->length, (int)scale->batch_stride, (int)scale->bytes);
        desc.product.b.scale.batch_stride = 1000;
        problem = problem_of(&desc);
        CHECK(scale->batch_stride == 1000 && scale->bytes == 4 * (2 * 1000 + last),
              "mode %d: given, %d apart", (int)cases[i].mode, (int)scale->batch_stride);
        desc.groups = 1, desc.product.b.scale.batch_stride = 0;
        problem = problem_of(&desc);
        CHECK(scale->bytes == 4 * last, "mode %d: one group has %d bytes", (int)cases[i].mode,
              (int)scale->bytes);
    }
}

static void scales_of_a_are_of_the_rows_that_it_has(void) {
    static const struct {
        gemmepi_scale_mode mode;
        int64_t lines, length;
    } cases[] = {
        {GEMMEPI_SCALE_OUTER, 1, 300}, {GEMMEPI_SCALE_VECTOR_128, 3, 300}, {GEMMEPI_SCALE_BLOCK_128, 3, 3}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_grouped_desc desc = grouped_desc(0);
        gpi__problem problem;
        const gpi__view *scale = &problem.views[GPI__SCALE_A];
        desc.product.k = 260, desc.gather_a = 300;
        desc.product.a.dtype = GEMMEPI_E4M3, desc.product.d.dtype = GEMMEPI_BF16;
        desc.product.a.scale.mode = cases[i].mode;
        problem = problem_of(&desc);
        CHECK(scale->lines == cases[i].lines && scale->length == cases[i].length &&
                  scale->batch_stride == 0 && view_of(&problem, GPI__A)->scale == (int)cases[i].mode,
              "mode %d: %d x %d", (int)cases[i].mode, (int)scale->lines, (int)scale->length);
    }
    {
        gemmepi_grouped_desc desc = grouped_desc(1); /* a is [k, m], and its scales are of m */
        gpi__problem problem;
        desc.gather_a = 300;
        desc.product.a.dtype = GEMMEPI_E4M3, desc.product.d.dtype = GEMMEPI_BF16;
        desc.product.a.scale.mode = GEMMEPI_SCALE_OUTER;
        problem = problem_of(&desc);
        CHECK(view_of(&problem, GPI__SCALE_A)->length == 40, "%d scales",
              (int)view_of(&problem, GPI__SCALE_A)->length);
    }
}

/* >>what is refused, and what next to it is not */

static void check_desc(const gemmepi_grouped_desc *desc, const char *says) {
    gpi__problem problem;
    gemmepi_status status = gpi__convert_grouped(&allocator, desc, PROMISED, &problem);
    if (!says)
        CHECK(status == GEMMEPI_OK, "%s", gemmepi_last_error());
    else
        CHECK(status != GEMMEPI_OK && strstr(gemmepi_last_error(), says), "'%s' should be said, and is: %s",
              says, status ? gemmepi_last_error() : "nothing");
    if (!status)
        gpi__free_formulas(&problem, &allocator);
}

#define DESC(of_k, change, says)                        \
    do {                                                \
        gemmepi_grouped_desc desc = grouped_desc(of_k); \
        gemmepi_matmul_desc *p = &desc.product;         \
        (void)p;                                        \
        change;                                         \
        check_desc(&desc, says);                        \
    } while (0)

static void limits_are_where_they_are_said_to_be(void) {
    const int64_t most = ((int64_t)1 << 30) - 1;
    DESC(0, desc.groups = 1, NULL);
    DESC(0, desc.groups = 4096, NULL);
    DESC(0, desc.groups = 4097, "desc.groups is 4097");
    DESC(0, desc.groups = 0, "desc.groups is 0");
    DESC(0, p->batch = 1, NULL);
    DESC(0, p->batch = 2, "desc.product.batch is 2");
    DESC(0, p->m = most, NULL);
    DESC(0, p->m = most + 1, "desc.product.m is 1073741824");
    DESC(1, p->k = most, NULL);
    DESC(1, p->k = most + 1, "desc.product.k is 1073741824");
    DESC(1, p->m = most + 1, NULL); /* no positions */
    DESC(0, desc.gather_a = most, NULL);
    DESC(0, desc.gather_a = most + 1, "desc.gather_a is 1073741824");
    DESC(1, desc.gather_b = most, NULL);
    DESC(1, desc.gather_b = most + 1, "desc.gather_b is 1073741824");
    DESC(1, desc.gather_b = -1, "desc.gather_b is -1");
    DESC(0, desc.scatter_d = most, NULL);
    DESC(0, desc.scatter_d = most + 1, "desc.scatter_d is 1073741824");
    DESC(0, desc.weighted = 1, NULL);
    DESC(0, desc.weighted = -1, "desc.weighted is -1");
}

#define FINDS(scale_mode) \
    p->flags = GEMMEPI_FIND_SCALE_D, p->d.dtype = GEMMEPI_E4M3, p->d.scale.mode = (scale_mode)

static void scales_are_found_of_rows_and_of_vectors(void) {
    DESC(0, (FINDS(GEMMEPI_SCALE_VECTOR_128), p->n = 400), NULL);
    DESC(1, FINDS(GEMMEPI_SCALE_VECTOR_128), "GROUPS_OF_ROWS");
    DESC(0, (FINDS(GEMMEPI_SCALE_OUTER), p->n = 128), NULL);
    DESC(0, (FINDS(GEMMEPI_SCALE_OUTER), p->n = 129), "at most 128 columns");
    DESC(0, (FINDS(GEMMEPI_SCALE_OUTER), p->n = 256, p->epilogue = GEMMEPI_SILU | GEMMEPI_GATED), NULL);
    DESC(0, (FINDS(GEMMEPI_SCALE_OUTER), p->n = 258, p->epilogue = GEMMEPI_SILU | GEMMEPI_GATED),
         "at most 128 columns");
    DESC(0, FINDS(GEMMEPI_SCALE_TENSOR), "d.scale.mode TENSOR (1)");
}

static void strides_of_what_is_one_matrix_are_refused(void) {
    DESC(0, p->a.batch_stride = 9000, "desc.product.a has a batch_stride");
    DESC(0, p->d.batch_stride = 9000, "desc.product.d has a batch_stride");
    DESC(0, p->c.batch_stride = 9000, "desc.product.c has a batch_stride");
    DESC(0, (p->a.dtype = GEMMEPI_E4M3, p->a.scale.mode = GEMMEPI_SCALE_OUTER, p->a.scale.batch_stride = 64),
         "desc.product.a has a batch_stride");
    DESC(1, p->a.batch_stride = 9000, "desc.product.a has a batch_stride");
    DESC(1, p->b.batch_stride = 9000, "desc.product.b has a batch_stride");
    DESC(1, p->d.batch_stride = 9000, NULL);
    DESC(0, p->b.batch_stride = 9000, NULL);
}

static void each_grouping_refuses_what_is_for_the_other(void) {
    DESC(0, desc.gather_b = 80, "desc.gather_b is 80 with GROUPS_OF_ROWS");
    DESC(1, (desc.gather_b = 80, p->b.transposed = 1), "desc.product.b.transposed is 1 with gather_b");
    DESC(1, desc.gather_b = 80, NULL);
    DESC(1, (desc.gather_a = 80, p->a.transposed = 0), "desc.product.a.transposed is 0");
    DESC(1, desc.gather_a = 80, NULL);
    DESC(0, (desc.gather_a = 80, p->a.transposed = 1), "desc.product.a.transposed is 1");
    DESC(1, desc.scatter_d = 80, "desc.scatter_d is not 0");
    DESC(1, desc.weighted = 1, "desc.weighted is not 0");
    DESC(0, p->epilogue = GEMMEPI_BGRAD_A, "BGRAD");
    DESC(1, p->epilogue = GEMMEPI_BGRAD_A, NULL);
    DESC(1, (p->epilogue = GEMMEPI_BGRAD_A, p->a.transposed = 0), "stored [k, m]");
    DESC(1, p->epilogue = GEMMEPI_BGRAD_B, NULL);
    DESC(1, (p->epilogue = GEMMEPI_BGRAD_B, p->b.transposed = 1), "stored [k, n]");
    DESC(1, p->epilogue = GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, "BGRAD");
    DESC(0, (p->a.dtype = GEMMEPI_I8, p->d.dtype = GEMMEPI_I32, desc.weighted = 1), "weights are F32");
}

static void scales_along_k_do_not_go_with_groups_of_k(void) {
    static const gemmepi_scale_mode modes[] = {GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_OUTER,
                                               GEMMEPI_SCALE_VECTOR_128, GEMMEPI_SCALE_BLOCK_128};
    size_t i;
    for (i = 0; i < GPI__COUNT(modes); i++) {
        const char *of_a = i < 2 ? NULL : "desc.product.a.scale.mode is",
                   *of_b = i < 2 ? NULL : "desc.product.b.scale.mode is";
        DESC(1, (p->a.dtype = GEMMEPI_E4M3, p->d.dtype = GEMMEPI_F32, p->a.scale.mode = modes[i]), of_a);
        DESC(1, (p->a.dtype = GEMMEPI_E4M3, p->d.dtype = GEMMEPI_F32, p->b.scale.mode = modes[i]), of_b);
        DESC(0,
             (p->a.dtype = GEMMEPI_E4M3, p->d.dtype = GEMMEPI_F32,
              p->a.scale.mode = p->b.scale.mode = modes[i]),
             NULL);
    }
}

/* >>formulas */

static gemmepi_operand operands[2];

static void formula(gemmepi_matmul_desc *p, const char *text, gemmepi_operand_kind kind) {
    memset(operands, 0, sizeof operands);
    operands[0].name = "x", operands[0].kind = kind;
    operands[1].name = "seed", operands[1].kind = GEMMEPI_SCALAR, operands[1].dtype = GEMMEPI_I64;
    p->formula = text, p->operands = operands, p->operand_count = 1;
}

/* x and y, of which y is last. */
static gemmepi_operand *second_of_two(gemmepi_matmul_desc *p, const char *text, gemmepi_operand_kind kind) {
    formula(p, text, kind);
    operands[1] = operands[0], operands[1].name = "y", p->operand_count = 2;
    return &operands[1];
}

static void formulas_have_one_matrix_of_rows_for_all_groups(void) {
    DESC(0, second_of_two(p, "d = v + x * y", GEMMEPI_FULL), NULL);
    DESC(0, second_of_two(p, "d = v + x; y = v", GEMMEPI_FULL)->output = 1, NULL);
    DESC(0, second_of_two(p, "d = v + x; y = row_sum(v)", GEMMEPI_PER_ROW)->output = 1,
         "operands[1] (y) is a reduction");
    DESC(0, second_of_two(p, "d = v + x; y = column_sum(v)", GEMMEPI_PER_COLUMN)->output = 1,
         "operands[1] (y) is a reduction");
    DESC(0, second_of_two(p, "d = v + x * y", GEMMEPI_FULL)->batch_stride = 9000,
         "operands[1] (y) has a batch_stride");
    DESC(0, second_of_two(p, "d = v + x * y", GEMMEPI_PER_ROW)->row_period = 2, "operands[1]");
    DESC(0, formula(p, "d = v + x", GEMMEPI_FULL), NULL);
    DESC(0, (formula(p, "d = v + x", GEMMEPI_FULL), operands[0].batch_stride = 9000), "has a batch_stride");
    DESC(0, (formula(p, "d = v + x", GEMMEPI_FULL), operands[0].row_period = 2), "has a row_period");
    DESC(0, (formula(p, "d = v + x", GEMMEPI_PER_ROW), operands[0].row_period = 2), "has a row_period");
    DESC(0,
         (formula(p, "d = v + x", GEMMEPI_BLOCKED), operands[0].block_rows = 1,
          operands[0].block_columns = 32),
         NULL);
    DESC(0,
         (formula(p, "d = v + x", GEMMEPI_BLOCKED), operands[0].block_rows = 2,
          operands[0].block_columns = 32),
         "desc.product.operands[0].block_rows (of x) is 2");
    DESC(0,
         (formula(p, "d = v + x", GEMMEPI_BLOCKED), operands[0].block_rows = operands[0].block_columns = 1,
          operands[0].batch_stride = 9000),
         "has a batch_stride");
    DESC(0, (formula(p, "d = v + x", GEMMEPI_PER_ROW), operands[0].batch_stride = 40), "has a batch_stride");
    DESC(0, (formula(p, "d = v + x", GEMMEPI_PER_COLUMN), operands[0].batch_stride = 56), NULL);
    DESC(0, (formula(p, "d = v + x", GEMMEPI_SCALAR), operands[0].batch_stride = 1), NULL);
    DESC(0, (formula(p, "d = v * v; x = v", GEMMEPI_FULL), operands[0].output = 1), NULL);
    DESC(0, (formula(p, "x = v", GEMMEPI_FULL), operands[0].output = 1), "does not assign d");
    DESC(0,
         (formula(p, "d = v; x = v", GEMMEPI_FULL), operands[0].output = 1, operands[0].batch_stride = 9000),
         "has a batch_stride");
    DESC(0, formula(p, "d = v + x + column", GEMMEPI_FULL), NULL);
    DESC(0, formula(p, "d = v + x + columns + depth", GEMMEPI_FULL), NULL);
    DESC(0, formula(p, "d = v + x + row", GEMMEPI_FULL), "row");
    DESC(0, formula(p, "d = v + x + item", GEMMEPI_FULL), "item");
    DESC(0, formula(p, "d = v + x + rows", GEMMEPI_FULL), "rows");
    DESC(0, (formula(p, "d = v + x + uniform(seed, 0)", GEMMEPI_FULL), p->operand_count = 2),
         "uniform and stochastic are not what the positions");
    DESC(0, (formula(p, "d = v + x", GEMMEPI_FULL), p->operand_count = 2), NULL);
    DESC(0, (formula(p, "d = v + x", GEMMEPI_FULL), desc.weighted = 1), "weighted");
    DESC(0, (formula(p, "d = v + x", GEMMEPI_FULL), desc.scatter_d = 80), NULL);
    DESC(0, (formula(p, "d = v + x", GEMMEPI_FULL), desc.gather_a = 80), NULL);
    DESC(1, formula(p, "d = v + x", GEMMEPI_FULL), "GROUPS_OF_K");
}

int main(void) {
    allocator = gpi__default_allocator();
    RUN(groups_of_rows_have_b_and_bias_of_their_own);
    RUN(groups_of_k_have_d_and_what_lies_as_it_of_their_own);
    RUN(strides_are_of_the_width_that_a_tensor_has);
    RUN(gathered_and_scattered_tensors_have_rows_of_their_own);
    RUN(scales_of_b_lie_one_group_after_another);
    RUN(scales_of_a_are_of_the_rows_that_it_has);
    RUN(limits_are_where_they_are_said_to_be);
    RUN(scales_are_found_of_rows_and_of_vectors);
    RUN(strides_of_what_is_one_matrix_are_refused);
    RUN(each_grouping_refuses_what_is_for_the_other);
    RUN(scales_along_k_do_not_go_with_groups_of_k);
    RUN(formulas_have_one_matrix_of_rows_for_all_groups);
    return test_finish();
}
