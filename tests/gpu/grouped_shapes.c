/* grouped_shapes [shape]: groups of rows by each shape of the kernels for Hopper, which a plan is made to take here, against the oracle: few blocks
   with many tiles each, bands of two columns, last rows that blocks of a cluster take side by side. Likewise of formulas that write outputs next to D. Needs a GPU of compute capability 9.0, the
   first or that which GEMMEPI_TEST_DEVICE numbers. A third of the cases by each shape; with a number all of them by that one. */
#include "../products/grouped_formula.h"

static test_device device;
static int shape_here, runs, only = -1;

#define NO     GEMMEPI_SCALE_NONE
#define VECTOR GEMMEPI_SCALE_VECTOR_128
#define BLOCK  GEMMEPI_SCALE_BLOCK_128
#define OUTER  GEMMEPI_SCALE_OUTER

/* >>a plan of one shape */

static int takes_shape(const gpi__problem *problem, int unit_alpha) {
    gpi__problem seen = gpi__seen_problem(problem), inner = gpi__inner_problem(&seen);
    size_t count;
    const gpi__sm90_shape *shapes = gpi__shapes_of_groups(problem, &count);
    return shape_here < (int)count && gpi__shape_accepts(&inner, &shapes[shape_here], unit_alpha);
}

/* Blocks of four multiprocessors, and bands of two columns of tiles. */
static gemmepi_status plan_shape(const gemmepi_grouped_desc *desc, int has_scalars, gemmepi_plan **plan) {
    gemmepi_context *context = here->context;
    gpi__candidate candidate;
    gpi__problem problem;
    int all = context->multiprocessors, unit_alpha;
    gemmepi_status status = gpi__convert_grouped(&context->allocator, desc, GPI__DEFAULT_ALIGNMENT, &problem);
    if (status)
        return status;
    gpi__share_formulas(context, &problem);
    unit_alpha = !has_scalars && gpi__may_have_unit_alpha(&problem);
    if (takes_shape(&problem, unit_alpha)) {
        candidate = gpi__candidate_of_groups(&problem, unit_alpha);
        candidate.shape = shape_here;
        context->multiprocessors = 4;
        status = gpi__build_grouped(context, &problem, unit_alpha, &candidate, plan);
        context->multiprocessors = all;
        runs += !status;
    }
    if (*plan)
        ((gpi__grouped_plan *)*plan)->band = 2;
    gpi__drop_formulas(context, &problem);
    return status;
}

/* >>cases */

/* clang-format off */
static const grouped_case cases[] = {
    {"even, weights [n, k]", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_NONE, 0, 2, 640, 72, 1024, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 0},
    {"one group, weights [k, n]", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_NONE, 0, 5, 690, 64, 584, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 1},
    {"random, an odd number of columns of tiles", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 5, 700, 136, 600, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    {"random, f32 results", GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_NONE, 0, 7, 700, 40, 264, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    {"few have one", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_NONE, 0, 4096, 700, 64, 328, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 4},
    {"nothing in any group", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_NONE, 0, 5, 300, 96, 264, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 3},
    {"a gate, scattered", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 4, 700, 72, 784, 0, 0, 1, 0, 0, 710, 0, 0, 0, 0, NO, NO, 2},
    {"a gate's gradient", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD, 0, 4, 640, 72, 272, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 0},
    {"alpha, C and a residual", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_RESIDUAL, 0, 4, 700, 72, 392, 0, 0, 1, 0, 0, 0, 0, 0, 2, .5, NO, NO, 2},
    {"fp8, 1 x 128 by 128 x 128", GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_NONE, 0, 4, 640, 272, 648, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 0},
    {"fp8 likewise, random, gathered", GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_NONE, 0, 5, 700, 272, 392, 0, 0, 1, 90, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
    {"fp8, rows and columns, one group", GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 5, 690, 144, 528, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 1},
    {"scales found behind a gate", GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_SILU | GEMMEPI_GATED, GEMMEPI_FIND_SCALE_D, 5, 700, 144, 1040, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
    {"scales found, of bf16, scattered", GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_BIAS, GEMMEPI_FIND_SCALE_D, 3, 690, 72, 392, 0, 0, 0, 0, 0, 710, 0, 0, 0, 0, NO, NO, 1},
    {"fp8, fast sums", GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_NONE, GEMMEPI_FAST_ACCUMULATION, 5, 700, 144, 392, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
};
/* clang-format on */

static void the_shape_is_within_the_bound_for_groups(void) {
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        if (only >= 0 || (i + (size_t)shape_here) % 3 == 0)
            run_case(&cases[i], 300 + i);
}

static void formulas_of_groups_write_their_outputs_by_the_shape(void) {
    size_t i;
    for (i = 0; i < sizeof outputs_cases / sizeof *outputs_cases; i++)
        if (outputs_cases[i].is_fast && (only >= 0 || (i + (size_t)shape_here) % 3 == 0))
            run_outputs_case(&outputs_cases[i], 400 + i);
}

int main(int argc, char **argv) {
    const char *name = getenv("GEMMEPI_TEST_DEVICE");
    int is_number = name && name[0] >= '0' && name[0] <= '9';
    int shapes = (int)GPI__COUNT(gpi__sm90_fp8_shapes);
    here = &device;
    if (argc > 1)
        only = atoi(argv[1]);
    if ((name && !is_number) ||
        !test_device_open(&device, GEMMEPI_DEVICE(is_number ? atoi(name) : 0), 1u << GEMMEPI_ROUTE_FUSED)) {
        printf("skip grouped_shapes: there is no GPU\n");
        test_skipped++;
        return test_finish();
    }
    if (!device.has_fused) {
        printf("skip grouped_shapes: the GPU is not of compute capability 9.0\n");
        test_device_close(&device);
        test_skipped++;
        return test_finish();
    }
    wants_fused = 1;
    make_plan = plan_shape;
    for (shape_here = 0; shape_here < shapes; shape_here++)
        if (only < 0 || only == shape_here) {
            RUN(the_shape_is_within_the_bound_for_groups);
            RUN(formulas_of_groups_write_their_outputs_by_the_shape);
        }
    CHECK(only >= 0 || getenv("TEST_PART") || runs >= 20, "shapes took %d products", runs);
    test_device_close(&device);
    return test_finish();
}
