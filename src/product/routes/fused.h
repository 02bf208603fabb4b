/* The route fused: product and epilogue in one kernel of ours, by the engine and shape of the least estimate, and the operands that
   are copied for it first. */
#ifndef GEMMEPI_PRODUCT_ROUTES_FUSED_H
#define GEMMEPI_PRODUCT_ROUTES_FUSED_H

#include "../engines/engines.h"
#include "../matmul_plan.h"
#include "../parts/operand_copy.h"

typedef struct gemmepi__fused {
    const gemmepi__engine *engine;
    gemmepi__built built;
    gemmepi__convert packs[2]; /* of A and B */
    int lies_as_packed
        [2]; /* their lines and items do, so that they are packed in runs alone where they begin anywhere */
    size_t
        other_workspace; /* of applied: what runs with alpha or C need, whose kernel is compiled in the first of them */
} gemmepi__fused;

/* >>copies of operands */

static gemmepi__view gemmepi__packed_view(const gemmepi__problem *problem, int operand, int pack) {
    const gemmepi__view *view = &problem->views[operand];
    gemmepi__view packed = pack == GEMMEPI__SIDE_BY_SIDE
                               ? gemmepi__transposed_view(view, problem->batch)
                               : gemmepi__converted_view(view, problem->batch, view->dtype);
    packed.scale = view->scale;
    return packed;
}

/* Whether its lines lie along k. */
static int gemmepi__is_side_by_side(const gemmepi__problem *problem, int operand) {
    return (problem->views[operand].transposed != 0) == (operand == GEMMEPI__B);
}

/* How the operand is packed, if operands are: so that it is taken 16 bytes at a time or, side_by_side, lies as the kernel for Hopper
   has to have TF32 and fp8. Items that overlap would be far larger. */
static int gemmepi__pack_of(const gemmepi__problem *problem, int operand, int side_by_side) {
    gemmepi__problem packed = *problem;
    int pack = side_by_side && !gemmepi__is_side_by_side(problem, operand) ? GEMMEPI__SIDE_BY_SIDE
               : gemmepi__copy_unit(problem, operand) < 16 && !gemmepi__is_of_weights(problem)
                   ? GEMMEPI__IN_UNITS
                   : GEMMEPI__AS_IT_LIES;
    if (pack == GEMMEPI__AS_IT_LIES)
        return pack;
    packed.views[operand] = gemmepi__packed_view(problem, operand, pack);
    return gemmepi__copy_unit(&packed, operand) == 16 &&
                   packed.views[operand].bytes / 16 <= problem->views[operand].bytes
               ? pack
               : GEMMEPI__AS_IT_LIES;
}

/* Whether ACCUMULATE's D is a residual of the kernel's: that is fetched ahead of the epilogue and leaves alpha 1 compiled in, where a C
   is asked for when the sums are there. */
static int gemmepi__adds_as_residual(const gemmepi__problem *problem) {
    return (problem->flags & GEMMEPI_ACCUMULATE) && !gemmepi__has(problem, GEMMEPI_RESIDUAL) &&
           problem->accumulator == GEMMEPI_F32;
}

/* The problem as the kernel has it. */
static void gemmepi__pack_views(const gemmepi__problem *problem, const int packs[2],
                                gemmepi__problem *packed) {
    int operand;
    *packed = *problem;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        if (packs[operand])
            packed->views[operand] = gemmepi__packed_view(problem, operand, packs[operand]);
    if (!gemmepi__adds_as_residual(problem))
        return;
    packed->epilogue |= GEMMEPI_RESIDUAL;
    packed->views[GEMMEPI__RESIDUAL] = problem->views[GEMMEPI__C];
}

/* Whether a plan may be for runs alone whose alpha is 1 and which have no C beside what is added as a residual. */
static int gemmepi__may_be_applied(const gemmepi__problem *problem) {
    return !(problem->flags & GEMMEPI_DEVICE_SCALARS) &&
           (!(problem->flags & GEMMEPI_ACCUMULATE) || gemmepi__adds_as_residual(problem));
}

/* A launch more for each, whose beginning is behind another's end, and 3.5 TB/s read and written, measured on an H100; the product reads
   it from L2. */
static double gemmepi__pack_microseconds(const gemmepi__problem *packed, const int packs[2]) {
    double microseconds = 0;
    int operand;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        if (packs[operand])
            microseconds += 1.4 + 2 * (double)packed->views[operand].bytes / 3.5e6;
    return microseconds;
}

/* >>choosing */

/* With BATCH_INVARIANT: what is copied, so that the kernel for Hopper takes operands that lie anywhere as it does all others. None are
   where another kernel takes the problem, which reads them as they lie. */
static void gemmepi__copy_for_hopper(const gemmepi_context *context, const gemmepi__problem *problem,
                                     int copies[2]) {
    const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
    gemmepi__problem packed;
    copies[0] = gemmepi__tma_takes(problem, a, a->bits) ? GEMMEPI__AS_IT_LIES : GEMMEPI__IN_UNITS;
    copies[1] = gemmepi__tma_takes(problem, b, b->bits) ? GEMMEPI__AS_IT_LIES : GEMMEPI__IN_UNITS;
    gemmepi__pack_views(problem, copies, &packed);
    if (gemmepi__engine_refusal(context, &packed, &gemmepi__sm90_engine, 0) &&
        gemmepi__engine_refusal(context, &packed, &gemmepi__sm90_fp8_engine, 0))
        copies[0] = copies[1] = GEMMEPI__AS_IT_LIES;
}

/* In units of 16 bytes alone, or side by side, too. Where m may not decide whether a copy pays there is no such way. */
static int gemmepi__ways_to_copy(const gemmepi_context *context, const gemmepi__problem *problem) {
    if (gemmepi__is_invariant(problem))
        return 0;
    return gemmepi__chip_has(context->arch, GEMMEPI__WGMMA) &&
                   (gemmepi__is_tf32(problem) || gemmepi__is_fp8_product(problem))
               ? 2
               : 1;
}

/* By every engine, with the operands as they lie and copied in the ways that help. */
static void gemmepi__enumerate_fused(const gemmepi__wanted *wanted, gemmepi__candidates *candidates) {
    const gemmepi_context *context = wanted->context;
    const gemmepi__problem *problem = wanted->problem;
    int side_by_side, ways = gemmepi__ways_to_copy(context, problem);
    gemmepi__problem packed;
    gemmepi__candidate like;
    memset(&like, 0, sizeof like);
    like.route = GEMMEPI_ROUTE_FUSED;
    like.applied = wanted->applied;
    like.otherwise = "its estimate is not less";
    if (gemmepi__is_invariant(problem))
        gemmepi__copy_for_hopper(context, problem, like.copies);
    gemmepi__pack_views(problem, like.copies, &packed);
    gemmepi__enumerate_engines(context, &packed, &like, gemmepi__pack_microseconds(&packed, like.copies),
                               candidates);
    for (side_by_side = 0; side_by_side < ways; side_by_side++) {
        int a = gemmepi__pack_of(problem, GEMMEPI__A, side_by_side);
        int b = gemmepi__pack_of(problem, GEMMEPI__B, side_by_side);
        if (a == like.copies[0] && b == like.copies[1])
            continue;
        like.copies[0] = a;
        like.copies[1] = b;
        gemmepi__pack_views(problem, like.copies, &packed);
        gemmepi__enumerate_engines(context, &packed, &like, gemmepi__pack_microseconds(&packed, like.copies),
                                   candidates);
    }
}

/* The best of them; one of NEVER where no engine takes the problem, however its operands are copied. */
static gemmepi__candidate gemmepi__choose_fused(const gemmepi_context *context,
                                                const gemmepi__problem *problem, int applied) {
    gemmepi__candidates candidates;
    const gemmepi__candidate *least;
    gemmepi__candidate never;
    gemmepi__wanted wanted;
    wanted.context = context;
    wanted.problem = problem;
    wanted.applied = applied;
    wanted.bare_microseconds = 0;
    candidates.count = 0;
    gemmepi__enumerate_fused(&wanted, &candidates);
    least = gemmepi__least(&candidates);
    memset(&never, 0, sizeof never);
    never.microseconds = GEMMEPI__NEVER;
    return least ? *least : never;
}

/* The rule that keeps a problem from the route, or NULL. */
static const char *gemmepi__fused_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
    const char *rule = gemmepi__engines_rule(context, problem);
    if (!rule && !GEMMEPI__HAS_SM80 && !GEMMEPI__HAS_SM90)
        rule = "its kernels were left out of this program (GEMMEPI_NO_SM80, GEMMEPI_NO_SM90)";
    if (!rule && !GEMMEPI__HAS_SM80 &&
        gemmepi__choose_fused(context, problem, 1).microseconds >= GEMMEPI__NEVER)
        rule = "its kernel for this problem was left out of this program (GEMMEPI_NO_SM80)";
    if (!rule && problem->found_scale &&
        gemmepi__choose_fused(context, problem, 1).microseconds >= GEMMEPI__NEVER)
        rule = "of its kernels that for Hopper alone finds scales of d, and does not take this problem";
    return rule;
}

/* >>building */

static gemmepi_status gemmepi__build_packs(gemmepi_context *context, const gemmepi__problem *problem,
                                           const int packs[2], gemmepi__convert *built) {
    gemmepi_status status = GEMMEPI_OK;
    int operand;
    for (operand = GEMMEPI__A; !status && operand <= GEMMEPI__B; operand++)
        if (packs[operand] == GEMMEPI__IN_UNITS)
            status = gemmepi__build_pack(context, problem, operand, &built[operand]);
        else if (packs[operand] == GEMMEPI__SIDE_BY_SIDE)
            status = gemmepi__build_transpose(context, problem, operand, &built[operand]);
    return status;
}

/* Whether an operand's lines and items lie as they are packed. */
static int gemmepi__lies_as_packed(const gemmepi__problem *problem, const gemmepi__problem *packed,
                                   int operand) {
    const gemmepi__view *from = &problem->views[operand], *to = &packed->views[operand];
    return from->transposed == to->transposed && (from->lines <= 1 || from->ld == to->ld) &&
           (problem->batch <= 1 || from->batch_stride == to->batch_stride);
}

/* Builds the candidate as it is. */
static gemmepi_status gemmepi__build_fused(gemmepi_context *context, const gemmepi__problem *problem,
                                           const gemmepi__candidate *candidate, gemmepi__fused *fused) {
    gemmepi__problem packed;
    gemmepi_status status;
    int operand;
    memset(fused, 0, sizeof *fused);
    fused->engine = gemmepi__engines[candidate->engine];
    gemmepi__pack_views(problem, candidate->copies, &packed);
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        fused->lies_as_packed[operand] = gemmepi__lies_as_packed(problem, &packed, operand);
    status = gemmepi__build_packs(context, problem, candidate->copies, fused->packs);
    return status ? status : fused->engine->build(context, &packed, candidate, &fused->built);
}

static gemmepi__built_details gemmepi__describe_built(const gemmepi__fused *fused) {
    gemmepi__built_details details;
    fused->engine->describe(&fused->built, &details);
    return details;
}

static size_t gemmepi__fused_workspace(const gemmepi__fused *fused) {
    return gemmepi__round_up(fused->packs[0].bytes, 256) + gemmepi__round_up(fused->packs[1].bytes, 256) +
           gemmepi__describe_built(fused).workspace_size;
}

/* Counts what runs with alpha or C need, too, whose kernel is compiled in the first of them. */
static gemmepi_status gemmepi__count_scaled(gemmepi__matmul_plan *plan) {
    gemmepi_context *context = plan->base.context;
    gemmepi__candidate candidate = gemmepi__choose_fused(context, &plan->problem, 0);
    gemmepi__fused scaled;
    gemmepi_status status;
    size_t size;
    context->only_measures = 1;
    status = gemmepi__build_fused(context, &plan->problem, &candidate, &scaled);
    context->only_measures = 0;
    size = status ? 0 : gemmepi__fused_workspace(&scaled);
    if (size > plan->workspace_size)
        plan->workspace_size = size;
    return status == GEMMEPI_UNSUPPORTED ? GEMMEPI_OK : status; /* then such runs are, too */
}

static gemmepi_status gemmepi__fused_build(gemmepi__matmul_plan *plan, const gemmepi__candidate *candidate) {
    gemmepi__fused *fused = (gemmepi__fused *)plan->built;
    gemmepi_status status = gemmepi__build_fused(plan->base.context, &plan->problem, candidate, fused);
    plan->workspace_size = gemmepi__fused_workspace(fused);
    return !status && candidate->applied ? gemmepi__count_scaled(plan) : status;
}

/* >>running */

/* For runs with alpha or C, for which it is not, FUSED goes first again. */
static void gemmepi__fused_give_up(const gemmepi__matmul_plan *plan, gemmepi__candidates *candidates) {
    int i;
    (void)plan;
    for (i = 0; i < candidates->count; i++)
        if (candidates->list[i].route != GEMMEPI_ROUTE_FUSED)
            candidates->list[i].rank = GEMMEPI__NEVER;
}

static gemmepi_status gemmepi__fused_run(const gemmepi__matmul_plan *plan,
                                         const gemmepi__arguments *arguments, char *workspace,
                                         gemmepi_stream stream) {
    const gemmepi_context *context = plan->base.context;
    const gemmepi__fused *fused = (const gemmepi__fused *)plan->built;
    gemmepi__arguments packed = *arguments;
    gemmepi_status status = GEMMEPI_OK;
    int operand;
    if (gemmepi__adds_as_residual(&plan->problem)) {
        packed.pointers[GEMMEPI__RESIDUAL] = arguments->pointers[GEMMEPI__C];
        packed.uses_c = 0;
        packed.beta = 0;
    }
    for (operand = GEMMEPI__A; !status && operand <= GEMMEPI__B; operand++) {
        void *pointer = arguments->pointers[operand];
        if (fused->packs[operand].launch.function &&
            !(fused->lies_as_packed[operand] && (uintptr_t)pointer % 16 == 0)) {
            status = gemmepi__run_convert(context, &fused->packs[operand], pointer, workspace, stream);
            packed.pointers[operand] = workspace;
        }
        workspace = gemmepi__past(workspace, fused->packs[operand].bytes);
    }
    return status ? status
                  : fused->engine->run(context, &plan->problem, &fused->built, &packed, workspace, stream);
}

/* >>in words */

static void gemmepi__fused_describe(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gemmepi__fused *fused = (const gemmepi__fused *)plan->built;
    gemmepi__built_details inside = gemmepi__describe_built(fused);
    memcpy(details->kernel, inside.launch->name, sizeof details->kernel);
    details->tile_m = inside.tile_m;
    details->tile_n = inside.tile_n;
    details->launches = 1 + (inside.pass != NULL) + gemmepi__amax_count(&plan->problem) +
                        (fused->packs[0].launch.function != NULL) +
                        (fused->packs[1].launch.function != NULL) + gemmepi__sums_launches(inside.sums);
}

static void gemmepi__fused_explain(const gemmepi__matmul_plan *plan, const char *kernel,
                                   gemmepi__text *text) {
    const gemmepi__fused *fused = (const gemmepi__fused *)plan->built;
    int operand;
    (void)kernel;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        if (fused->packs[operand].launch.function)
            gemmepi__append(
                text, "  %s: %s to workspace, lines of whole 16 bytes%s\n", fused->packs[operand].launch.name,
                gemmepi__argument_name(&plan->problem, operand),
                fused->lies_as_packed[operand] ? ", in runs where it does not begin at a multiple of 16 bytes"
                                               : "");
    fused->engine->explain(&plan->problem, &fused->built, text);
    if (plan->applied)
        gemmepi__append(text, "  runs with alpha or C have a kernel of their own\n");
}

#endif
