/* What the kernels of the route fused are launched with: on the fake GPU of fake_cuda.h. */
#include "fake_program.h"

/* >>maps */

static void a_fused_run_has_its_own_pointers_in_its_maps(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    int run;
    desc.batch = 3;
    desc.a.batch_stride = desc.m * desc.k;
    desc.d.batch_stride = desc.m * desc.n;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(explain_has(plan, "route fused") && explain_has(plan, "  gemmepi_sm90_") &&
              explain_has(plan, ": product and epilogue"),
          "another route");
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.launches == 1 &&
              details.workspace_size == 0 && details.route == GEMMEPI_ROUTE_FUSED,
          "%d launches", details.launches);
    for (run = 0; run < 2; run++) {
        const gpi__sm90_params *last = &gpu.last_fused;
        args.a = (const void *)(uintptr_t)(0x10000000 + 256 * run);
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(last->a.words[0] == (uintptr_t)args.a && last->b.words[0] == (uintptr_t)args.b,
              "pointers of another run");
        CHECK(last->a.words[1] == 512 && last->a.words[2] == 2048 && last->a.words[3] == 3, "A's extents");
        CHECK(last->a.words[6] == 2 * 512 && last->a.words[7] == 2 * 2048 * 512, "A's strides");
        CHECK(last->d.words[6] == 2 * 1024 && last->d.words[8] == 2 * 2048 * 1024, "D's strides");
        CHECK(last->b.words[1] == 1024 && last->b.words[2] == 512 && last->b.words[3] == 1, "B's extents");
        CHECK(last->a_items == 1 && last->b_items == 0 && last->epilogue.d.data == args.d, "other operands");
        CHECK(gpu.last_shared > 48 << 10 && gpu.last_shared <= 227 << 10, "%u bytes of shared memory",
              gpu.last_shared);
    }
    CHECK(gpu.launches == 2 && gpu.products == 0 && gpu.overlapping == 2, "%ld launches", gpu.launches);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Results of 16 bits, or of 32, have maps, whose halves are an axis of their own; others have none, nor has an aux of another width
   than D. */
static void fused_results_have_maps_of_their_own(void) {
    static const struct {
        gemmepi_dtype d, aux;
        int d_ld, aux_ld, has_d, has_aux; /* ld beyond the length */
    } cases[] = {{GEMMEPI_BF16, GEMMEPI_BF16, 0, 0, 1, 1}, {GEMMEPI_F32, GEMMEPI_F32, 0, 0, 1, 1},
                 {GEMMEPI_BF16, GEMMEPI_BF16, 1, 0, 0, 1}, {GEMMEPI_BF16, GEMMEPI_BF16, 0, 4, 1, 0},
                 {GEMMEPI_F32, GEMMEPI_BF16, 0, 0, 1, 0},  {GEMMEPI_BF16, GEMMEPI_F32, 0, 0, 1, 0},
                 {GEMMEPI_F32, GEMMEPI_F32, 4, 2, 1, 0},   {GEMMEPI_E4M3, GEMMEPI_E4M3, 0, 0, 0, 0},
                 {GEMMEPI_E4M3, GEMMEPI_BF16, 0, 0, 0, 1}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_matmul_args args = fused_args();
        const gpi__tensor_map *d = &gpu.last_fused.d, *aux = &gpu.last_fused.aux;
        gemmepi_plan *plan = NULL;
        desc.epilogue |= GEMMEPI_GATED | GEMMEPI_AUX;
        args.aux = (void *)(uintptr_t)0x50000000;
        desc.d.dtype = cases[i].d, desc.d.ld = desc.n / 2 + cases[i].d_ld;
        desc.aux.dtype = cases[i].aux, desc.aux.ld = desc.n + cases[i].aux_ld;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(d->words[0] == (cases[i].has_d ? (uintptr_t)args.d : 0), "%d: D's address", i);
        CHECK(aux->words[0] == (cases[i].has_aux ? (uintptr_t)args.aux : 0), "%d: AUX's address", i);
        if (i < 2)
            CHECK(d->words[1] == 512 && d->words[2] == 2048 && d->words[3] == 1 && aux->words[1] == 512 &&
                      aux->words[2] == 2048 && aux->words[3] == 2 && aux->words[4] == 1,
                  "extents");
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* TMA is slow for what lies beyond an operand, so the last boxes of lines along k have a map of their own, with as many as there
   are. Where those along m or n lie side by side boxes are whole, and none begins beyond. */
static void boxes_have_no_lines_beyond_an_operand(void) {
    static const struct {
        int64_t m, n;
        int rows,
            columns; /* of last boxes; 40 columns side by side are in one box of 64, and so are 24 rows */
    } cases[] = {{24, 4096, 24, 0}, {4096, 40, 0, 40}, {4096, 3072, 0, 0}}; /* 3072: of tiles of any width */
    int i, layout;
    for (i = 0; i < (int)GPI__COUNT(cases); i++)
        for (layout = 0; layout < 4; layout++) {
            planned p = planned_begin(0, 1u << GEMMEPI_ROUTE_FUSED);
            const gpi__sm90_params *last = &gpu.last_fused;
            p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.k = 1024;
            p.desc.a.transposed = layout & 1, p.desc.b.transposed = layout >> 1;
            if (planned_plan(&p)) {
                planned_run(&p);
                CHECK(is_kernel(&p.details, "gemmepi_sm90_") &&
                          is_defined("GEMMEPI_TAILS 1") ==
                              ((cases[i].rows && (!p.desc.a.transposed || p.details.tile_m > 64)) ||
                               (cases[i].columns && p.desc.b.transposed)),
                      "%d, layout %d: tails in %s", i, layout, p.details.kernel);
                if (cases[i].rows && !p.desc.a.transposed)
                    CHECK(last->a_tail.words[0] == (uintptr_t)p.args.a &&
                              (int)last->a_tail.words[5] == cases[i].rows,
                          "%d, layout %d: the last box of A has %d lines", i, layout,
                          (int)last->a_tail.words[5]);
                if (cases[i].columns && p.desc.b.transposed)
                    CHECK(last->b_tail.words[0] == (uintptr_t)p.args.b &&
                              (int)last->b_tail.words[5] == cases[i].columns,
                          "%d, layout %d: the last box of B has %d lines", i, layout,
                          (int)last->b_tail.words[5]);
                CHECK((int)last->a.words[10] == ((p.desc.a.transposed ? p.desc.m : p.desc.k) % 128
                                                     ? GPI__CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                                                     : GPI__CU_TENSOR_MAP_L2_PROMOTION_L2_256B),
                      "%d, layout %d: lines of A are brought to L2 by %d", i, layout, (int)last->a.words[10]);
                CHECK(!p.desc.a.transposed || last->a_tail.words[0] == 0, "%d: A has another map", i);
                CHECK(p.desc.b.transposed || last->b_tail.words[0] == 0, "%d: B has another map", i);
            }
            planned_end(&p);
        }
}

/* Before CUDA 12.3 a captured launch may not overlap. */
static void an_older_driver_launches_without_overlap(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    context = open_fake(&config);
    context->driver.version = 12020;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.launches == 1 && gpu.overlapping == 0, "%ld of %ld launches overlap", gpu.overlapping,
          gpu.launches);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* What waits for the launch ahead is left out of PTX for 8.0, on whatever chip it runs. */
static void a_kernel_compiled_for_an_older_chip_launches_without_overlap(void) {
    static const int targets[] = {0, 90, 80};
    int i;
    for (i = 0; i < 3; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_matmul_args args = fused_args();
        gemmepi_context *context;
        gpu.other_arch = 100;
        gpu.newest_target = targets[i];
        context = open_fake(&config);
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gpu.launches == 1 && gpu.overlapping == (i < 2), "target %d: %ld of %ld launches overlap",
              targets[i], gpu.overlapping, gpu.launches);
        gemmepi_destroy(context);
        gpu.other_arch = gpu.newest_target = 0;
        nothing_is_left();
    }
}

/* >>kernels for what a run has */

/* alpha 1 and no C are compiled in; runs with others have a plan of their own, which is built once. */
static void a_fused_run_with_alpha_or_c_has_its_own_kernel(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    double two = 2;
    gemmepi_plan *plan = NULL;
    int run;
    config.log = keep_log;
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.compilations == 1 && gpu.for_sm_90a == 1 &&
              explain_has(plan, "runs with alpha or C have a kernel of their own"),
          "%ld kernels", gpu.compilations);
    for (run = 0; run < 5; run++) {
        args.alpha = run % 2 ? &two : NULL;
        args.beta = run == 4 ? &two : NULL;
        args.c = run == 4 ? (const void *)(uintptr_t)0x60000000 : NULL;
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", run, gemmepi_last_error());
        CHECK(gpu.last_fused.epilogue.alpha == (run % 2 ? 2 : 1) &&
                  gpu.last_fused.epilogue.uses_c == (run == 4),
              "%d: alpha %g", run, gpu.last_fused.epilogue.alpha);
        CHECK(gpu.compilations == (run > 0 ? 2 : 1), "%d: %ld kernels", run, gpu.compilations);
    }
    CHECK(lines_of("2 ") == 0, "the log has: %s", logged);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* GELU_ERF's shortest form is for those alone whose bound leaves it the room. */
static void long_sums_are_those_of_which_the_bound_grows_with_k(void) {
    static const struct {
        int64_t k;
        gemmepi_dtype operands, results;
        gemmepi_epilogue epilogue;
        uint64_t flags;
        int is_long;
    } cases[] = {
        {768, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 0, 1},
        {767, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 0, 0},
        {4096, GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_GELU_ERF | GEMMEPI_GATED, 0, 1},
        {4096, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, 0, 0},
        {4096, GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 0, 0},
        {4096, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD, 0, 0},
        {4096, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_RESIDUAL, 0, 1},
        {4096, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_ERF, GEMMEPI_AMAX_D, 0},
        {4096, GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_GELU_ERF, 0, 0},
    };
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc = product(cases[i].operands, cases[i].epilogue);
        gemmepi_plan *plan = NULL;
        int is_long;
        desc.m = 256, desc.n = 256, desc.k = cases[i].k;
        desc.d.dtype = cases[i].results;
        desc.flags = cases[i].flags;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        is_long = is_defined("GEMMEPI_LONG_SUMS 1");
        CHECK(is_long == cases[i].is_long, "%d: %d", i, is_long);
        gemmepi_plan_destroy(plan);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Formulas have it likewise, of v and what is along its columns. */
static void long_sums_of_formulas_are_of_v_and_vectors(void) {
    static const struct {
        const char *formula;
        int64_t k;
        int is_long;
    } cases[] = {{"d = gelu_erf(v + b) * u", 768, 1},
                 {"d = gelu_erf(v + b) * u", 767, 0},
                 {"x = v + b; d = left(x) * gelu_erf(right(b + v)) + 1", 768, 1},
                 {"d = gelu_erf(v) * u + gelu_erf(b + v)", 768, 1},
                 {"d = gelu_erf(v + u)", 768, 0},
                 {"d = gelu_erf(v + r)", 768, 0},
                 {"d = gelu_erf(v - 3)", 768, 0},
                 {"d = gelu_erf(2 * v) * u", 768, 0},
                 {"d = gelu_erf(v) * u + gelu_erf(v + 1)", 768, 0},
                 {"d = gelu_tanh(v + b) * u", 768, 0},
                 {"d = v * d_gelu_erf(u) * r", 768, 0}};
    static const char *const names[] = {"b", "r", "u"};
    static const gemmepi_operand_kind kinds[] = {GEMMEPI_PER_COLUMN, GEMMEPI_PER_ROW, GEMMEPI_FULL};
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    int i, o;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc = product(GEMMEPI_BF16, 0);
        gemmepi_operand operands[3];
        gemmepi_plan *plan = NULL;
        memset(operands, 0, sizeof operands);
        for (o = 0; o < 3; o++)
            operands[o].name = names[o], operands[o].kind = kinds[o];
        desc.m = 2048, desc.n = 2048, desc.k = cases[i].k;
        desc.formula = cases[i].formula, desc.operands = operands, desc.operand_count = 3;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s: %s", cases[i].formula,
              gemmepi_last_error());
        CHECK(explain_has(plan, "the formula is inside the kernel"), "%s", cases[i].formula);
        CHECK(is_defined("GEMMEPI_LONG_SUMS 1") == cases[i].is_long, "%s, k %d", cases[i].formula,
              (int)cases[i].k);
        gemmepi_plan_destroy(plan);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>tiles and parts of k */

/* k in parts: gates take the small tiles that the bare product does; no multiprocessor has room for more than its share of the blocks,
   and the pass has a block for each multiprocessor, where its threads are not all of a warp or it sums. */
static void blocks_are_shared_out_evenly(void) {
    static const struct {
        gemmepi_epilogue epilogue;
        int64_t m, n, k;
        int tile_m;      /* of parts, which are 64 wide */
        int room, waves; /* blocks that a multiprocessor has room for; how often all have as many */
        int pass_blocks; /* at least; 0: no pass */
    } cases[] = {{GEMMEPI_SILU | GEMMEPI_GATED, 300, 300, 300, 32, 1, 1, 132},
                 {GEMMEPI_SILU | GEMMEPI_GATED, 64, 2048, 2048, 64, 2, 1, 132},
                 {GEMMEPI_SILU | GEMMEPI_GATED, 32, 256, 2048, 32, 1, 1, 8},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 64, 2048, 2048, 64, 2, 1, 1},
                 {GEMMEPI_BIAS, 64, 2048, 64, 0, 1, 1, 0},
                 {GEMMEPI_SILU, 4096, 4096, 512, 0, 2, 4, 0}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        planned p = planned_begin(90, 1u << GEMMEPI_ROUTE_FUSED);
        p.desc.epilogue = cases[i].epilogue;
        p.desc.a.dtype = GEMMEPI_F32;
        p.desc.b.transposed = 1;
        p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.k = cases[i].k;
        if (planned_plan(&p)) {
            const gpi__sm80 *mma = &((const gpi__fused *)matmul_of(p.plan)->built)->built.sm80;
            const gpi__launch *pass = &mma->kernel.pass.launch;
            unsigned room =
                gpi__chip_of(90)->most_shared / (mma->kernel.launch.shared ? mma->kernel.launch.shared : 1);
            CHECK(is_kernel(&p.details, "gemmepi_sm80_") && (int)room == cases[i].room &&
                      (int)gpi__divide_up(mma->kernel.launch.blocks, 132 * room) == cases[i].waves,
                  "%d: %u blocks with %u bytes each", i, mma->kernel.launch.blocks,
                  mma->kernel.launch.shared);
            CHECK((mma->parts > 1) == (cases[i].pass_blocks > 0) &&
                      (mma->parts == 1 || (mma->shape.tile_m == cases[i].tile_m && mma->shape.tile_n == 64)),
                  "%d: %d parts, tiles of %d x %d", i, mma->parts, mma->shape.tile_m, mma->shape.tile_n);
            CHECK((int)pass->blocks >= cases[i].pass_blocks &&
                      (!pass->function || pass->threads_x * pass->threads_y >= 32),
                  "%d: a pass of %u blocks of %u x %u", i, pass->blocks, pass->threads_x, pass->threads_y);
        }
        planned_end(&p);
    }
}

/* Its pointers are those that the epilogue takes. */
static void point(planned *p) {
    gemmepi_epilogue epilogue = p->desc.epilogue;
    p->args.bias = epilogue & GEMMEPI_BIAS ? p->args.bias : NULL;
    p->args.aux = epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD) ? (void *)(uintptr_t)0x50000000 : NULL;
    p->args.bias_grad = epilogue & GEMMEPI_BGRAD ? (void *)(uintptr_t)0x60000000 : NULL;
}

/* Where the models were fitted: tiles, and bands of rows. */
static void hopper_kernel_is_cut_as_fitted(void) {
    static const struct {
        gemmepi_epilogue epilogue;
        int64_t m, n, k;
        int tile_n, bands;
    } cases[] = {{GEMMEPI_BIAS, 8192, 3072, 768, 128, 6},
                 {GEMMEPI_BIAS | GEMMEPI_RELU, 2048, 50304, 768, 128, 1},
                 {GEMMEPI_BIAS | GEMMEPI_RELU, 4096, 4096, 4096, 256, 2},
                 {GEMMEPI_BIAS | GEMMEPI_SILU, 8192, 3072, 768, 128, 6},
                 {GEMMEPI_BIAS | GEMMEPI_SILU, 4096, 4096, 4096, 256, 2},
                 {GEMMEPI_BIAS | GEMMEPI_SILU | GEMMEPI_AUX, 8192, 3072, 768, 128, 6},
                 {GEMMEPI_BIAS | GEMMEPI_GELU_TANH | GEMMEPI_AUX, 8192, 3072, 768, 128, 6},
                 {GEMMEPI_BIAS | GEMMEPI_GELU_ERF, 8192, 3072, 768, 128, 6},
                 {GEMMEPI_BIAS, 8192, 8192, 8192, 192, 5},
                 {GEMMEPI_BIAS | GEMMEPI_GELU_ERF, 8192, 8192, 8192, 192, 5},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 8192, 3072, 768, 128, 6},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 2048, 50304, 768, 128, 2}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        planned p = planned_begin(90, 1u << GEMMEPI_ROUTE_FUSED);
        p.desc.epilogue = cases[i].epilogue;
        p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.k = cases[i].k;
        point(&p);
        if (planned_plan(&p)) {
            unsigned band, rows;
            char tile[20];
            snprintf(tile, sizeof tile, "_128x%d", cases[i].tile_n);
            CHECK(is_kernel(&p.details, "gemmepi_sm90_") && strstr(p.details.kernel, tile), "%d: not %s: %s",
                  i, tile, p.details.kernel);
            planned_run(&p);
            band = gpu.last_fused.band, rows = gpu.last_fused.cluster_rows;
            CHECK(band && (int)((rows + band - 1) / band) == cases[i].bands, "%d: %u rows in bands of %u", i,
                  rows, band);
        }
        planned_end(&p);
    }
}

/* Few tiles and a long k: its parts, and a pass that adds them up. */
static void the_second_kernel_divides_k_among_blocks(void) {
    static const double two = 2;
    planned p = planned_begin(80, 0);
    p.desc.m = p.desc.n = 128, p.desc.k = 8192;
    p.desc.epilogue = GEMMEPI_SILU | GEMMEPI_BACKWARD;
    p.args.aux = (void *)(uintptr_t)0x50000000, p.args.bias = NULL;
    if (planned_plan(&p)) {
        CHECK(is_kernel(&p.details, "gemmepi_sm80_") && p.details.launches == 2 &&
                  p.details.workspace_size >= 2 * 128 * 128 * sizeof(float),
              "%d launches of %s, %d bytes", p.details.launches, p.details.kernel,
              (int)p.details.workspace_size);
        CHECK(explain_has(p.plan, "gemmepi_sm80_") &&
                  explain_has(p.plan, ": the sum of k's parts, the epilogue"),
              "another explanation");
        planned_run(&p);
        CHECK(gpu.launches == 2, "%ld launches", gpu.launches);
        p.args.alpha = &two; /* by kernels of its own, in the same workspace */
        CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    }
    CHECK(gpu.launches == 4, "%ld launches", gpu.launches);
    planned_end(&p);
}

/* Runs of eight are stored in pairs: in each part they must begin at a multiple of their size. */
static void parts_of_a_narrow_product_are_aligned(void) {
    int n;
    for (n = 1; n < 20; n++) {
        planned p = planned_begin(80, 0);
        p.desc.m = 1, p.desc.n = n, p.desc.k = 65536, p.desc.batch = 1 + n % 2;
        p.desc.b.transposed = 1;
        p.desc.a.batch_stride = p.desc.k, p.desc.d.batch_stride = n;
        if (planned_plan(&p)) {
            const gpi__sm80 *mma = &((const gpi__fused *)matmul_of(p.plan)->built)->built.sm80;
            int64_t part = mma->params.epilogue.d.stride;
            CHECK(matmul_of(p.plan)->route->id == GEMMEPI_ROUTE_FUSED && mma->parts > 1,
                  "n %d is not in parts", n);
            CHECK(part % 4 == 0 && part >= n, "n %d: stride %d", n, (int)part);
            CHECK(mma->kernel.pass.params.part == part &&
                      mma->kernel.pass.params.product.stride == mma->parts * part,
                  "n %d: the pass reads other places", n);
            CHECK(mma->kernel.product_bytes == (size_t)(p.desc.batch * mma->parts * part) * sizeof(float),
                  "n %d: %d bytes", n, (int)mma->kernel.product_bytes);
        }
        planned_end(&p);
    }
}

/* >>the pass */

/* As many columns side by side as every tensor has at a multiple of their size, and as exist all or none. */
static void passes_cut_runs_where_lines_begin_anywhere(void) {
    static const struct {
        int n, d_ld; /* 0: no longer than it is */
        gemmepi_epilogue epilogue;
        int stretch;
    } cases[] = {{128, 0, GEMMEPI_SILU | GEMMEPI_AUX, 8},
                 {127, 0, GEMMEPI_SILU | GEMMEPI_AUX, 1},
                 {126, 0, GEMMEPI_SILU | GEMMEPI_AUX, 2},
                 {124, 0, GEMMEPI_SILU | GEMMEPI_AUX, 4},
                 {127, 128, GEMMEPI_SILU, 8},
                 {128, 132, GEMMEPI_SILU, 4},
                 {126, 132, GEMMEPI_SILU, 2},
                 {127, 0, GEMMEPI_RELU | GEMMEPI_AUX, 8},
                 {252, 128, GEMMEPI_SILU | GEMMEPI_GATED, 2},
                 {256, 0, GEMMEPI_SILU | GEMMEPI_GATED, 8},
                 {126, 0, GEMMEPI_SILU | GEMMEPI_GATED, 1}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc = fused_product();
        gpi__problem problem;
        gpi__view product;
        int aligned, stretch;
        desc.m = 64, desc.n = cases[i].n, desc.d.ld = cases[i].d_ld, desc.epilogue = cases[i].epilogue;
        CHECK(gpi__normalise(&desc, 16, &problem) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        product = gpi__product_in_workspace(&problem, GEMMEPI_F32);
        aligned = gpi__epilogue_is_aligned(&problem) && gpi__runs_are_aligned(&problem, &product);
        stretch = gpi__pass_stretch(&problem, &product, aligned);
        CHECK(stretch == cases[i].stretch, "%d: stretches of %d", i, stretch);
    }
}

/* >>sums */

/* The kernel leaves a line of sums for each warpgroup's rows of a tile in workspace, 128 of one in turns, 64 of one that they share, and of
   both halves of a gate's gradient; one launch adds them up, of more threads where a column has more than 256 of them. */
static void a_fused_gradient_leaves_its_sums(void) {
    static const struct {
        int64_t m, n;
        int batch, shared, gated;
        const char *threads;
    } cases[] = {{2048, 1024, 1, 1, 0, "THREADS 256"},     {2000, 1024, 3, 0, 0, "THREADS 256"},
                 {2048, 1024, 3, 1, 0, "THREADS 256"},     {4096, 4096, 1, 1, 0, "THREADS 256"},
                 {128 * 256, 128, 1, 1, 0, "THREADS 256"}, {128 * 513, 128, 1, 1, 0, "THREADS 1024"},
                 {2048, 1024, 1, 1, 1, "THREADS 256"}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        planned p = planned_begin(0, 0);
        const gpi__sm90_params *last = &gpu.last_fused;
        p.desc.epilogue = GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
        if (cases[i].gated)
            p.desc.epilogue |= GEMMEPI_GATED;
        p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.batch = cases[i].batch;
        if (p.desc.batch > 1) {
            p.desc.a.batch_stride = p.desc.m * p.desc.k;
            p.desc.d.batch_stride = p.desc.aux.batch_stride = p.desc.m * p.desc.n;
            p.desc.bias_grad.batch_stride = cases[i].shared ? 0 : p.desc.n + 8;
        }
        p.args.aux = (void *)(uintptr_t)0x50000000;
        p.args.bias = NULL;
        p.args.bias_grad = (void *)(uintptr_t)0x30000000;
        if (planned_plan(&p)) {
            int64_t rows = explain_has(p.plan, "in turns") ? 128 : 64, tiles = (cases[i].m + rows - 1) / rows;
            size_t lines =
                (size_t)(tiles * cases[i].n * cases[i].batch * (1 + cases[i].gated)) * sizeof(float);
            CHECK(p.details.route == GEMMEPI_ROUTE_FUSED && p.details.launches == 2,
                  "%d: route %d, %d launches", i, (int)p.details.route, p.details.launches);
            CHECK(p.details.workspace_size == lines, "%d: %lu bytes", i,
                  (unsigned long)p.details.workspace_size);
            CHECK(explain_has(p.plan, "reductions in a fixed order"), "%d: explain does not tell", i);
            CHECK(strstr(gpu.last_source, cases[i].threads), "%d: other than %s", i, cases[i].threads);
            planned_run(&p);
            CHECK(last->epilogue.row_tiles == (unsigned)tiles, "%d: %u lines", i, last->epilogue.row_tiles);
        }
        CHECK(gpu.launches == 2 && gpu.overlapping == gpu.launches, "%d: %ld of %ld launches overlap", i,
              gpu.overlapping, gpu.launches);
        planned_end(&p);
    }
}

/* The kernel writes them into bias_grad itself; where the items of a batch share it, into lines that one launch adds up. */
static void sums_of_an_operand_are_the_fused_kernels_own(void) {
    int i;
    for (i = 0; i < 6; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_matmul_args args = fused_args();
        gemmepi_plan_details details;
        gemmepi_plan *plan = NULL;
        int of_a = i % 2, shared = i / 2 == 2;
        int64_t length = of_a ? desc.m : desc.n;
        size_t lines = shared ? (size_t)(3 * length) * sizeof(double) : 0;
        const gpi__sm90_params *last = &gpu.last_fused;
        desc.epilogue |= of_a ? GEMMEPI_BGRAD_A : GEMMEPI_BGRAD_B;
        args.bias_grad = (void *)(uintptr_t)0x50000000;
        if (i / 2) {
            desc.batch = 3;
            desc.a.batch_stride = desc.m * desc.k;
            desc.d.batch_stride = desc.m * desc.n;
            desc.bias_grad.batch_stride = shared ? 0 : length + 8;
        }
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == GEMMEPI_ROUTE_FUSED &&
                  details.launches == 1 + shared && details.workspace_size == lines,
              "%d: route %d, %d launches, %lu bytes", i, (int)details.route, details.launches,
              (unsigned long)details.workspace_size);
        CHECK(explain_has(plan, of_a ? "bias_grad: sums of a as" : "bias_grad: sums of b as") &&
                  explain_has(plan, "by 1 more launch") == shared,
              "%d: explain does not tell", i);
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gpu.launches = 0;
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(gpu.launches == 1 + shared, "%d: %ld launches", i, gpu.launches);
        CHECK((last->sums == args.bias_grad) == !shared && last->sums != NULL, "%d: sums elsewhere", i);
        CHECK(last->sums_stride == (shared ? length : desc.bias_grad.batch_stride), "%d: stride %lld", i,
              last->sums_stride);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* What a block asks for depends on how many there are: a later plan that asks for less leaves the earlier one what it needs. */
static void plans_of_one_kernel_keep_their_shared_memory(void) {
    planned p = planned_begin(0, 1u << GEMMEPI_ROUTE_FUSED);
    static const int64_t edges[] = {512, 768, 640, 960,
                                    1088}; /* as many bytes as 116240, and as few as 58128 */
    gemmepi_plan *plans[GPI__COUNT(edges)];
    int i, count = (int)GPI__COUNT(edges);
    long kernels;
    p.desc.a.dtype = GEMMEPI_F32, p.desc.epilogue = GEMMEPI_NONE, p.args.bias = NULL;
    for (i = 0; i < count; i++) {
        p.desc.m = p.desc.n = edges[i], p.desc.k = 128;
        CHECK(gemmepi_plan_matmul(p.context, &p.desc, &plans[i]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    }
    kernels = gpu.compilations;
    for (i = 0; i < count; i++) {
        CHECK(gemmepi_run_matmul(plans[i], &p.args, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        gemmepi_plan_destroy(plans[i]);
    }
    CHECK(kernels < count, "%ld kernels of %d plans", kernels, count);
    planned_end(&p);
}

/* >>launches around a product, which find D's scales */

static gpi__history_params history_seen;
static gpi__scaled_params rows_seen;
static gpi__sm90_params product_seen;
static char order_seen[8]; /* of launches: h, q, p */

static void see_found(const fake_launch *launch) {
    size_t length = strlen(order_seen);
    if (strncmp(launch->entry, "gemmepi_scale_of_history", 24) == 0) {
        memcpy(&history_seen, launch->params, sizeof history_seen);
        order_seen[length] = 'h';
        CHECK(launch->grid == 1 && launch->block_x >= (unsigned)history_seen.count &&
                  launch->block_x % 32 == 0,
              "%u threads", launch->block_x);
    } else if (strncmp(launch->entry, "gemmepi_find_scales", 19) == 0) {
        memcpy(&rows_seen, launch->params, sizeof rows_seen);
        order_seen[length] = 'q';
    } else {
        memcpy(&product_seen, launch->params, sizeof product_seen);
        order_seen[length] = 'p';
    }
}

static planned found_begin(gemmepi_scale_mode mode) {
    planned p = planned_begin(90, 0);
    gpu.is_untouched = 1;
    gpu.watch = see_found;
    memset(order_seen, 0, sizeof order_seen);
    p.desc.m = 3000, p.desc.n = 2000, p.desc.k = 512, p.desc.batch = 2;
    p.desc.d.dtype = GEMMEPI_E4M3, p.desc.d.ld = 2016;
    p.desc.a.batch_stride = 3000 * 512, p.desc.d.batch_stride = 3001 * 2016;
    p.desc.flags = GEMMEPI_FIND_SCALE_D;
    p.desc.d.scale.mode = mode;
    p.args.found_scale_d = (float *)(uintptr_t)0x50000000;
    return p;
}

/* With TENSOR the scale is made ahead of the product, which reads its reciprocal and leaves its amax in the history. */
static void the_scale_of_earlier_runs_is_made_ahead_of_the_product(void) {
    planned p = found_begin(GEMMEPI_SCALE_TENSOR);
    p.desc.amax_history = 40;
    p.args.amax_history = (float *)(uintptr_t)0x60000000;
    if (planned_plan(&p)) {
        CHECK(p.details.launches == 2 && p.details.route == GEMMEPI_ROUTE_FUSED, "%d launches",
              p.details.launches);
        p.args.workspace = (void *)(uintptr_t)0x70000000, p.args.workspace_size = p.details.workspace_size;
        CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(strcmp(order_seen, "hp") == 0, "launches are %s", order_seen);
        CHECK(history_seen.history == p.args.amax_history && history_seen.scale == p.args.found_scale_d &&
                  history_seen.count == 40 && history_seen.reciprocal == p.args.workspace,
              "another history");
        CHECK(product_seen.epilogue.scale_d.data == p.args.workspace &&
                  product_seen.epilogue.amax_d == p.args.amax_history &&
                  product_seen.epilogue.d.data == p.args.d && product_seen.epilogue.d.ld == 2016,
              "another scale");
    }
    gpu.watch = NULL;
    planned_end(&p);
}

/* With OUTER a launch behind the product stores D of its F32 in workspace, which lies as D does. */
static void scales_of_rows_are_found_behind_the_product(void) {
    planned p = found_begin(GEMMEPI_SCALE_OUTER);
    p.desc.d.scale.batch_stride = 3008;
    if (planned_plan(&p)) {
        size_t bytes = 4 * (3001 * 2016 + 2999 * 2016 + 2000);
        CHECK(p.details.launches == 2 && p.details.workspace_size >= bytes, "%d launches",
              p.details.launches);
        p.args.workspace = (void *)(uintptr_t)0x70000000, p.args.workspace_size = p.details.workspace_size;
        CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(strcmp(order_seen, "pq") == 0, "launches are %s", order_seen);
        CHECK(product_seen.epilogue.d.data == p.args.workspace && product_seen.epilogue.d.ld == 2016 &&
                  product_seen.epilogue.d.stride == 3001 * 2016 && !product_seen.epilogue.scale_d.data,
              "the product's D");
        CHECK(rows_seen.a == p.args.workspace && rows_seen.y == p.args.d && rows_seen.stride_a[1] == 2016 &&
                  rows_seen.stride_y[1] == 2016 && rows_seen.stride_a[2] == 3001 * 2016 &&
                  rows_seen.stride_y[2] == 3001 * 2016,
              "matrices");
        CHECK(rows_seen.y_scale == p.args.found_scale_d && rows_seen.scale_gap == 8 &&
                  rows_seen.extent[0] == 2000 && rows_seen.extent[1] == 3000 && rows_seen.extent[2] == 2,
              "scales");
    }
    gpu.watch = NULL;
    planned_end(&p);
}

int main(void) {
    keep_libraries_open();
    RUN(a_fused_run_has_its_own_pointers_in_its_maps);
    RUN(fused_results_have_maps_of_their_own);
    RUN(boxes_have_no_lines_beyond_an_operand);
    RUN(an_older_driver_launches_without_overlap);
    RUN(a_kernel_compiled_for_an_older_chip_launches_without_overlap);
    RUN(a_fused_run_with_alpha_or_c_has_its_own_kernel);
    RUN(long_sums_are_those_of_which_the_bound_grows_with_k);
    RUN(long_sums_of_formulas_are_of_v_and_vectors);
    RUN(blocks_are_shared_out_evenly);
    RUN(hopper_kernel_is_cut_as_fitted);
    RUN(the_second_kernel_divides_k_among_blocks);
    RUN(parts_of_a_narrow_product_are_aligned);
    RUN(passes_cut_runs_where_lines_begin_anywhere);
    RUN(a_fused_gradient_leaves_its_sums);
    RUN(sums_of_an_operand_are_the_fused_kernels_own);
    RUN(plans_of_one_kernel_keep_their_shared_memory);
    RUN(the_scale_of_earlier_runs_is_made_ahead_of_the_product);
    RUN(scales_of_rows_are_found_behind_the_product);
    return test_finish();
}
