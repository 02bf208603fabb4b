/* The pointers and numbers of one run, at the borders of what is accepted. None of the pointers leads anywhere. */
#include "problem/normalise.h"

#include "problem/convert_arguments.h"

#include "test.h"

/* Operands lie this far from each other where a test does not move them. */
enum { APART = 1 << 20 };

static const double one = 1, two = 2;

static gpi__problem problem_of(const gemmepi_matmul_desc *desc) {
    gpi__problem problem;
    CHECK(gpi__normalise(desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return problem;
}

/* A product whose tensors have gaps between their rows. */
static gemmepi_matmul_desc product(gemmepi_epilogue epilogue, uint64_t flags) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = 6, desc.n = 10, desc.k = 8;
    desc.batch = 3;
    desc.d.ld = 12;
    desc.d.batch_stride = 80;
    desc.aux.batch_stride = epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD) ? 80 : 0;
    desc.alignment = 4;
    desc.epilogue = epilogue, desc.flags = flags;
    return desc;
}

/* Every operand that there is, and the scales of each kind. */
static int problems(gpi__problem *out) {
    gemmepi_matmul_desc desc =
        product((gemmepi_epilogue)(GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL),
                GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX);
    out[0] = problem_of(&desc);
    desc = product((gemmepi_epilogue)(GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD), 0);
    out[1] = problem_of(&desc);
    desc = product((gemmepi_epilogue)(GEMMEPI_SILU | GEMMEPI_AUX), GEMMEPI_FIND_SCALE_D);
    desc.m = desc.n = desc.k = 16, desc.batch = 1, desc.d.ld = 0, desc.d.batch_stride = 0,
    desc.aux.batch_stride = 0, desc.alignment = 16;
    desc.a.dtype = desc.d.dtype = desc.aux.dtype = desc.c.dtype = GEMMEPI_E4M3;
    desc.a.scale.mode = desc.b.scale.mode = GEMMEPI_SCALE_OUTER;
    desc.c.scale.mode = desc.aux.scale.mode = GEMMEPI_SCALE_TENSOR;
    desc.d.scale.mode = GEMMEPI_SCALE_TENSOR, desc.amax_history = 4;
    out[2] = problem_of(&desc);
    desc.amax_history = 0, desc.d.scale.mode = GEMMEPI_SCALE_OUTER;
    out[3] = problem_of(&desc);
    desc.order = GEMMEPI_COLUMN_MAJOR;
    out[4] = problem_of(&desc);
    return 5;
}

static void *far_address(int i) {
    return (void *)(uintptr_t)(0x10000000u + (unsigned)i * APART);
}

/* Arguments as they are taken, every operand far from the others. The scale of a d whose scale is found is nobody's to give. */
static gpi__arguments spread(const gpi__problem *problem) {
    gpi__arguments arguments;
    int i;
    memset(&arguments, 0, sizeof arguments);
    arguments.alpha = 1, arguments.beta = 2;
    for (i = 0; i < GPI__OPERANDS; i++)
        if (problem->used >> i & 1)
            arguments.pointers[i] = far_address(i);
    return arguments;
}

static gpi__regions regions; /* of the last check */

static gemmepi_status check(const gpi__problem *problem, gpi__arguments *arguments) {
    gemmepi_status status = gpi__check_arguments(problem, arguments, &regions);
    return status ? status : gpi__check_regions(&regions);
}

/* Whether 256 bytes of workspace are apart from all. */
static gemmepi_status check_workspace(const gpi__problem *problem, const gpi__arguments *arguments,
                                      uintptr_t workspace) {
    CHECK(gpi__list_regions(problem, arguments, &regions) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return gpi__check_workspace(&regions, (void *)workspace, 256, " used");
}

/* >>what shares memory */

/* Where something of `size` bytes, that moves by `step`, is apart from, and where it just shares, what is at `begin` and has `bytes`. */
typedef struct border {
    uintptr_t place;
    int shares;
} border;

static void borders_of(uintptr_t begin, uintptr_t bytes, uintptr_t size, uintptr_t step, border *out) {
    out[0].place = begin + bytes, out[0].shares = 0;
    out[1].place = begin + bytes - step, out[1].shares = 1;
    out[2].place = begin - size, out[2].shares = 0;
    out[3].place = begin - size + step, out[3].shares = 1;
}

static void check_pair(const gpi__problem *problem, int output, int other) {
    const gpi__view *view = &problem->views[other];
    int may_be_d =
        other == GPI__C || other == GPI__RESIDUAL ||
        (other == GPI__AUX && !view->written && view->dtype != GEMMEPI_DTYPE_DEFAULT && view->bits != 1);
    border borders[4];
    int i;
    borders_of((uintptr_t)far_address(output), (uintptr_t)problem->views[output].bytes,
               (uintptr_t)view->bytes, (uintptr_t)view->alignment, borders);
    for (i = 0; i < 4; i++) {
        gpi__arguments arguments = spread(problem);
        gemmepi_status status;
        if (borders[i].place % (uintptr_t)view->alignment)
            continue;
        arguments.pointers[other] = (void *)borders[i].place;
        status = check(problem, &arguments);
        CHECK((status == GEMMEPI_INVALID_ARGUMENT) == borders[i].shares &&
                  (!status || (strstr(gemmepi_last_error(), " overlaps ") &&
                               strstr(gemmepi_last_error(), gpi__argument_name(problem, other)))),
              "%s at border %d of %s: %s", gpi__argument_name(problem, other), i,
              gpi__argument_name(problem, output), gemmepi_last_error());
        CHECK(!status || ((strstr(gemmepi_last_error(), "; it may be exactly d (") != NULL) ==
                              (output == GPI__D && may_be_d) &&
                          !strstr(gemmepi_last_error(), "FULL")),
              "%s at border %d of %s: %s", gpi__argument_name(problem, other), i,
              gpi__argument_name(problem, output), gemmepi_last_error());
    }
}

static void an_operand_may_touch_an_output_and_share_no_byte_of_it(void) {
    gpi__problem cases[8];
    int count = problems(cases), c, i, j;
    for (c = 0; c < count; c++)
        for (i = 0; i < cases[c].outputs; i++)
            for (j = 0; j < cases[c].count; j++)
                if (i != j)
                    check_pair(&cases[c], cases[c].list[i], cases[c].list[j]);
}

static void a_workspace_may_touch_an_operand_and_share_no_byte_of_it(void) {
    gpi__problem cases[8];
    int count = problems(cases), c, i, j;
    for (c = 0; c < count; c++)
        for (j = 0; j < cases[c].count; j++) {
            int operand = cases[c].list[j];
            gpi__arguments arguments = spread(&cases[c]);
            border borders[4];
            borders_of((uintptr_t)far_address(operand), (uintptr_t)cases[c].views[operand].bytes, 256, 1,
                       borders);
            for (i = 0; i < 4; i++)
                CHECK((check_workspace(&cases[c], &arguments, borders[i].place) != 0) == borders[i].shares,
                      "border %d of %s", i, gpi__argument_name(&cases[c], operand));
        }
}

static void numbers_on_the_device_may_touch_and_share_no_byte_of_an_output_or_workspace(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_NONE, GEMMEPI_DEVICE_SCALARS);
    gpi__problem problem = problem_of(&desc);
    uintptr_t d = (uintptr_t)far_address(GPI__D), bytes = (uintptr_t)problem.views[GPI__D].bytes;
    int which, off, i;
    CHECK(bytes % 8 == 0 && problem.views[GPI__D].ld == 12, "%d bytes", (int)bytes);
    for (which = 0; which < 2; which++) {
        gpi__arguments arguments = spread(&problem);
        const void **scalar = which ? &arguments.device_beta : &arguments.device_alpha;
        border borders[4];
        for (off = 0; off < 8; off += 4) { /* with 4, a number shares half of itself */
            arguments.pointers[GPI__D] = (void *)(d + (uintptr_t)off);
            borders_of(d, bytes + 2 * (uintptr_t)off, 8, 8, borders);
            for (i = 0; i < 4; i++) {
                *scalar = (void *)borders[i].place;
                CHECK((check(&problem, &arguments) != 0) == borders[i].shares, "%s at border %d, %d: %s",
                      gpi__scalar_names[which], i, off, gemmepi_last_error());
            }
        }
        arguments.pointers[GPI__D] = (void *)d;
        *scalar = (void *)(d + 40);
        CHECK(check(&problem, &arguments) == GEMMEPI_OK, "between two rows: %s", gemmepi_last_error());
        *scalar = (void *)(d + 32);
        CHECK(check(&problem, &arguments) == GEMMEPI_INVALID_ARGUMENT &&
                  strstr(gemmepi_last_error(), ", on the device)"),
              "at the end of a row: %s", gemmepi_last_error());
        *scalar = (void *)(d - 12);
        CHECK(check(&problem, &arguments) == GEMMEPI_MISALIGNED, "at a multiple of 4: %s",
              gemmepi_last_error());
        borders_of(d + APART / 2, 256, 8, 8, borders);
        for (i = 0; i < 4; i++) {
            *scalar = (void *)borders[i].place;
            CHECK((check_workspace(&problem, &arguments, d + APART / 2) != 0) == borders[i].shares,
                  "%s at border %d of the workspace", gpi__scalar_names[which], i);
        }
    }
}

static void a_d_in_place_is_the_same_matrix_of_the_same_batch(void) {
    static const int operands[] = {GPI__C, GPI__RESIDUAL};
    gemmepi_matmul_desc desc = product((gemmepi_epilogue)(GEMMEPI_SILU | GEMMEPI_RESIDUAL), 0);
    gpi__problem problem;
    gpi__arguments arguments;
    int i;
    desc.c.ld = desc.residual.ld = desc.d.ld;
    desc.c.batch_stride = desc.residual.batch_stride = desc.d.batch_stride;
    for (i = 0; i < 2; i++) {
        gemmepi_matmul_desc other = desc;
        gemmepi_matrix *matrix = i ? &other.residual : &other.c;
        problem = problem_of(&desc), arguments = spread(&problem);
        arguments.pointers[operands[i]] = arguments.pointers[GPI__D];
        CHECK(check(&problem, &arguments) == GEMMEPI_OK, "%s", gemmepi_last_error());
        matrix->batch_stride = 84;
        problem = problem_of(&other);
        CHECK(check(&problem, &arguments) == GEMMEPI_INVALID_ARGUMENT &&
                  strstr(gemmepi_last_error(), "but its batch_stride differs"),
              "%s", gemmepi_last_error());
        matrix->batch_stride = 80, matrix->ld = 14;
        problem = problem_of(&other);
        CHECK(check(&problem, &arguments) == GEMMEPI_INVALID_ARGUMENT &&
                  strstr(gemmepi_last_error(), ".ld is 14 and d's 12"),
              "%s", gemmepi_last_error());
    }
    desc = product((gemmepi_epilogue)(GEMMEPI_SILU | GEMMEPI_AUX), 0);
    desc.aux.ld = desc.d.ld;
    problem = problem_of(&desc), arguments = spread(&problem);
    arguments.pointers[GPI__AUX] = arguments.pointers[GPI__D];
    CHECK(check(&problem, &arguments) == GEMMEPI_INVALID_ARGUMENT, "an aux that is written is d");
    desc.epilogue = (gemmepi_epilogue)(GEMMEPI_SILU | GEMMEPI_BACKWARD);
    problem = problem_of(&desc), arguments = spread(&problem);
    arguments.pointers[GPI__AUX] = arguments.pointers[GPI__D];
    CHECK(check(&problem, &arguments) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void a_c_that_is_not_read_may_share_and_be_left_out(void) {
    gpi__problem cases[8], *problem = &cases[2];
    gpi__arguments arguments;
    int operand;
    problems(cases);
    for (operand = GPI__C; operand <= GPI__SCALE_C; operand += GPI__SCALE_A) {
        arguments = spread(problem);
        arguments.pointers[operand] = (char *)arguments.pointers[GPI__D] + 16;
        CHECK(check(problem, &arguments) == GEMMEPI_INVALID_ARGUMENT, "%d shares", operand);
        arguments.beta = 0;
        CHECK(check(problem, &arguments) == GEMMEPI_OK && !arguments.uses_c, "%s", gemmepi_last_error());
        arguments.pointers[operand] = NULL;
        CHECK(check(problem, &arguments) == GEMMEPI_OK, "%s", gemmepi_last_error());
        arguments.device_beta = far_address(40);
        CHECK(check(problem, &arguments) == GEMMEPI_INVALID_ARGUMENT && arguments.uses_c, "%d is NULL",
              operand);
    }
}

/* >>presence, alignment, numbers */

static void each_pointer_is_given_where_it_is_used_and_not_elsewhere(void) {
    gpi__problem cases[8];
    int count = problems(cases), c, i;
    for (c = 0; c < count; c++)
        for (i = 0; i < GPI__ROW_FACTOR; i++) {
            gpi__arguments arguments = spread(&cases[c]);
            char says[64];
            arguments.pointers[i] = arguments.pointers[i] ? NULL : far_address(i);
            snprintf(says, sizeof says, "args.%s is %s", gpi__argument_name(&cases[c], i),
                     arguments.pointers[i] ? "given" : "NULL");
            CHECK(check(&cases[c], &arguments) == GEMMEPI_INVALID_ARGUMENT &&
                      strstr(gemmepi_last_error(), says),
                  "case %d, %s: %s", c, says, gemmepi_last_error());
        }
}

static void each_pointer_is_a_multiple_of_its_alignment(void) {
    gpi__problem cases[8];
    int count = problems(cases), c, j;
    for (c = 0; c < count; c++)
        for (j = 0; j < cases[c].count; j++) {
            int operand = cases[c].list[j];
            gpi__arguments arguments = spread(&cases[c]);
            uintptr_t pointer = (uintptr_t)arguments.pointers[operand];
            int alignment = cases[c].views[operand].alignment, off;
            char says[64];
            snprintf(says, sizeof says, "args.%s is ", gpi__argument_name(&cases[c], operand));
            for (off = 1; off <= alignment; off *= 2) {
                arguments.pointers[operand] = (void *)(pointer + (uintptr_t)off);
                CHECK(check(&cases[c], &arguments) == (off == alignment ? GEMMEPI_OK : GEMMEPI_MISALIGNED) &&
                          (off == alignment || strstr(gemmepi_last_error(), says)),
                      "case %d, %d bytes, %s: %s", c, off, says, gemmepi_last_error());
            }
        }
}

static void numbers_of_an_i32_result_are_whole_and_have_32_bits(void) {
    static const struct {
        double value;
        int is_accepted;
    } cases[] = {{-2147483648.0, 1}, {2147483647.0, 1}, {0, 1},     {-1, 1},   {-2147483649.0, 0},
                 {2147483648.0, 0},  {0.5, 0},          {1e300, 0}, {-1.5, 0}, {NAN, 0}};
    gemmepi_matmul_desc desc = product(GEMMEPI_NONE, 0);
    gpi__problem problem;
    int i, which;
    desc.a.dtype = GEMMEPI_I8, desc.d.dtype = GEMMEPI_I32;
    problem = problem_of(&desc);
    for (i = 0; i < (int)GPI__COUNT(cases); i++)
        for (which = 0; which < 2; which++) {
            gpi__arguments arguments = spread(&problem);
            *(which ? &arguments.beta : &arguments.alpha) = cases[i].value;
            CHECK((check(&problem, &arguments) == GEMMEPI_OK) == cases[i].is_accepted, "%s %g: %s",
                  gpi__scalar_names[which], cases[i].value, gemmepi_last_error());
        }
}

/* >>what is taken */

static void pointers_of_a_column_major_product_are_exchanged_with_their_scales(void) {
    gpi__problem cases[8];
    gemmepi_matmul_args args;
    gpi__arguments arguments;
    const void *const *pointers = (const void *const *)arguments.pointers;
    int is_column_major;
    problems(cases);
    memset(&args, 0, sizeof args);
    args.a = far_address(0), args.b = far_address(1), args.d = far_address(3), args.aux = far_address(4);
    args.scale_a = (const float *)far_address(5), args.scale_b = (const float *)far_address(6);
    args.scale_aux = (const float *)far_address(7), args.found_scale_d = (float *)far_address(8);
    args.alpha = &two;
    for (is_column_major = 0; is_column_major < 2; is_column_major++) {
        gpi__problem *problem = &cases[3 + is_column_major];
        CHECK(gpi__convert_arguments(problem, &args, NULL, &arguments, &regions) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        CHECK(pointers[GPI__A] == (is_column_major ? args.b : args.a) &&
                  pointers[GPI__B] == (is_column_major ? args.a : args.b) &&
                  pointers[GPI__SCALE_A] == (is_column_major ? args.scale_b : args.scale_a) &&
                  pointers[GPI__SCALE_B] == (is_column_major ? args.scale_a : args.scale_b),
              "order %d", is_column_major);
        CHECK(arguments.alpha == 2 && arguments.beta == 0 && !arguments.uses_c && !arguments.device_alpha,
              "alpha %g, beta %g", arguments.alpha, arguments.beta);
    }
}

static void what_accumulates_reads_d_and_numbers_on_the_device_are_not_read(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_NONE, GEMMEPI_ACCUMULATE);
    gpi__problem problem = problem_of(&desc);
    gemmepi_matmul_args args;
    gpi__arguments arguments;
    memset(&args, 0, sizeof args);
    args.a = far_address(0), args.b = far_address(1), args.d = far_address(3);
    CHECK(gpi__convert_arguments(&problem, &args, NULL, &arguments, &regions) == GEMMEPI_OK &&
              arguments.uses_c && arguments.beta == 1 && arguments.pointers[GPI__C] == args.d,
          "%s", gemmepi_last_error());
    CHECK(check_workspace(&problem, &arguments, (uintptr_t)args.d) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "overlaps args.d "),
          "%s", gemmepi_last_error());
    args.beta = &one;
    CHECK(gpi__convert_arguments(&problem, &args, NULL, &arguments, &regions) == GEMMEPI_INVALID_ARGUMENT,
          "beta is accepted");
    args.beta = NULL, args.c = far_address(2);
    CHECK(gpi__convert_arguments(&problem, &args, NULL, &arguments, &regions) == GEMMEPI_INVALID_ARGUMENT,
          "c is accepted");
    desc.flags = GEMMEPI_DEVICE_SCALARS;
    problem = problem_of(&desc);
    args.alpha = (const double *)far_address(9), args.beta = (const double *)far_address(10);
    CHECK(gpi__convert_arguments(&problem, &args, NULL, &arguments, &regions) == GEMMEPI_OK &&
              arguments.uses_c && arguments.alpha == 1 && arguments.beta == 0 &&
              arguments.device_alpha == args.alpha && arguments.device_beta == args.beta,
          "%s", gemmepi_last_error());
}

static void every_pointer_of_a_matrix_or_vector_decides_the_alignment(void) {
    static const size_t places[] = {
        offsetof(gemmepi_matmul_args, a),    offsetof(gemmepi_matmul_args, b),
        offsetof(gemmepi_matmul_args, c),    offsetof(gemmepi_matmul_args, d),
        offsetof(gemmepi_matmul_args, aux),  offsetof(gemmepi_matmul_args, residual),
        offsetof(gemmepi_matmul_args, bias), offsetof(gemmepi_matmul_args, bias_grad)};
    static const gemmepi_operand_kind kinds[] = {GEMMEPI_NUMBER, GEMMEPI_SCALAR, GEMMEPI_PER_ROW,
                                                 GEMMEPI_PER_COLUMN, GEMMEPI_FULL};
    gemmepi_matmul_desc desc = product(GEMMEPI_NONE, 0);
    gemmepi_operand operand;
    void *pointer = (void *)(uintptr_t)0x1008;
    gemmepi_matmul_args args;
    size_t i;
    memset(&operand, 0, sizeof operand);
    for (i = 0; i < GPI__COUNT(places); i++) {
        memset(&args, 0, sizeof args);
        CHECK(gpi__alignment_of(&desc, &args) == 16, "of nothing");
        memcpy((char *)&args + places[i], &pointer, sizeof pointer);
        CHECK(gpi__alignment_of(&desc, &args) == 8, "pointer %d", (int)i);
    }
    memset(&args, 0, sizeof args);
    desc.formula = "d = v", desc.operands = &operand, desc.operand_count = 1;
    args.operands = &pointer;
    for (i = 0; i < GPI__COUNT(kinds); i++) {
        operand.kind = kinds[i];
        CHECK(gpi__alignment_of(&desc, &args) == (i < 2 ? 16u : 8u), "kind %d", (int)kinds[i]);
    }
}

int main(void) {
    RUN(an_operand_may_touch_an_output_and_share_no_byte_of_it);
    RUN(a_workspace_may_touch_an_operand_and_share_no_byte_of_it);
    RUN(numbers_on_the_device_may_touch_and_share_no_byte_of_an_output_or_workspace);
    RUN(a_d_in_place_is_the_same_matrix_of_the_same_batch);
    RUN(a_c_that_is_not_read_may_share_and_be_left_out);
    RUN(each_pointer_is_given_where_it_is_used_and_not_elsewhere);
    RUN(each_pointer_is_a_multiple_of_its_alignment);
    RUN(numbers_of_an_i32_result_are_whole_and_have_32_bits);
    RUN(pointers_of_a_column_major_product_are_exchanged_with_their_scales);
    RUN(what_accumulates_reads_d_and_numbers_on_the_device_are_not_read);
    RUN(every_pointer_of_a_matrix_or_vector_decides_the_alignment);
    return test_finish();
}
