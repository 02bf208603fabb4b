/* The route fused: product and epilogue in one kernel of ours, by the engine and shape of the least estimate, and the operands that
   are copied for it first. */
#ifndef GEMMEPI_PRODUCT_ROUTES_FUSED_H
#define GEMMEPI_PRODUCT_ROUTES_FUSED_H

#include "../engines/engines.h"
#include "../matmul_plan.h"
#include "../parts/operand_copy.h"

typedef struct gpi__fused {
    const gpi__engine *engine;
    gpi__built built;
    gpi__convert packs[2]; /* of A and B */
    int lies_as_packed
        [2]; /* their lines and items do, so that they are packed in runs alone where they begin anywhere */
} gpi__fused;

/* >>copies of operands */

static gpi__view gpi__packed_view(const gpi__problem *problem, int operand, int pack) {
    const gpi__view *view = &problem->views[operand];
    gpi__view packed = pack == GPI__SIDE_BY_SIDE ? gpi__transposed_view(view, problem->batch)
                                                 : gpi__converted_view(view, problem->batch, view->dtype);
    packed.scale = view->scale;
    return packed;
}

/* Whether its lines lie along k. */
static int gpi__is_side_by_side(const gpi__problem *problem, int operand) {
    return (problem->views[operand].transposed != 0) == (operand == GPI__B);
}

/* Whether it has to be so in the kernel for Hopper, or of 8 bits in any. */
static int gpi__wants_side_by_side(const gpi__problem *problem, int operand) {
    return gpi__is_tf32(problem) || gpi__is_byte_product(problem) ||
           (operand == GPI__B && gpi__half_begins_within(problem) && !gpi__is_of_weights(problem));
}

/* How the operand is packed, if operands are: so that it is taken 16 bytes at a time or, side_by_side, lies as the kernel for Hopper
   has to have it. Items that overlap would be far larger. */
static int gpi__pack_of(const gpi__problem *problem, int operand, int side_by_side) {
    gpi__problem packed = *problem;
    int turns =
        side_by_side && gpi__wants_side_by_side(problem, operand) && !gpi__is_side_by_side(problem, operand);
    int pack = gpi__is_scaled_product(problem)                                         ? GPI__AS_IT_LIES
               : turns                                                                 ? GPI__SIDE_BY_SIDE
               : gpi__copy_unit(problem, operand) < 16 && !gpi__is_of_weights(problem) ? GPI__IN_UNITS
                                                                                       : GPI__AS_IT_LIES;
    if (pack == GPI__AS_IT_LIES)
        return pack;
    packed.views[operand] = gpi__packed_view(problem, operand, pack);
    return gpi__copy_unit(&packed, operand) == 16 &&
                   packed.views[operand].bytes / 16 <= problem->views[operand].bytes
               ? pack
               : GPI__AS_IT_LIES;
}

/* Whether ACCUMULATE's D is a residual of the kernel's: that is fetched ahead of the epilogue and leaves alpha 1 compiled in, where a C
   is asked for when the sums are there. */
static int gpi__adds_as_residual(const gpi__problem *problem) {
    return (problem->flags & GEMMEPI_ACCUMULATE) && !gpi__has(problem, GEMMEPI_RESIDUAL) &&
           problem->accumulator == GEMMEPI_F32;
}

/* The problem as the kernel has it. */
static void gpi__pack_views(const gpi__problem *problem, const int packs[2], gpi__problem *packed) {
    int operand;
    *packed = *problem;
    for (operand = GPI__A; operand <= GPI__B; operand++)
        if (packs[operand])
            packed->views[operand] = gpi__packed_view(problem, operand, packs[operand]);
    if (!gpi__adds_as_residual(problem))
        return;
    packed->epilogue |= GEMMEPI_RESIDUAL;
    packed->views[GPI__RESIDUAL] = problem->views[GPI__C];
}

/* Returns whether a plan may be only for runs with alpha 1 and without a C that is no residual. */
static int gpi__may_have_unit_alpha(const gpi__problem *problem) {
    return !(problem->flags & GEMMEPI_DEVICE_SCALARS) &&
           (!(problem->flags & GEMMEPI_ACCUMULATE) || gpi__adds_as_residual(problem));
}

/* Returns what a copy takes that moves so many bytes. */
static double gpi__copy_microseconds(double bytes) {
    return GPI__ANOTHER_LAUNCH + bytes / GPI__COPY_RATE;
}

static double gpi__pack_microseconds(const gpi__problem *packed, const int packs[2]) {
    double microseconds = 0;
    int operand;
    for (operand = GPI__A; operand <= GPI__B; operand++)
        if (packs[operand])
            microseconds += gpi__copy_microseconds(2 * (double)packed->views[operand].bytes);
    return microseconds;
}

/* >>choosing */

/* With BATCH_INVARIANT: what is copied, so that the kernel for Hopper takes operands that lie anywhere as it does all others. None are
   where another kernel takes the problem, which reads them as they lie. */
static void gpi__copy_for_hopper(const gemmepi_context *context, const gpi__problem *problem, int copies[2]) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    gpi__problem packed;
    copies[0] = gpi__tma_accepts(problem, a, a->bits) ? GPI__AS_IT_LIES : GPI__IN_UNITS;
    copies[1] = gpi__tma_accepts(problem, b, b->bits) ? GPI__AS_IT_LIES : GPI__IN_UNITS;
    gpi__pack_views(problem, copies, &packed);
    if (gpi__engine_refusal(context, &packed, &gpi__sm90_engine, 0) &&
        gpi__engine_refusal(context, &packed, &gpi__sm90_fp8_engine, 0))
        copies[0] = copies[1] = GPI__AS_IT_LIES;
}

/* In units of 16 bytes alone, or side by side, too. Where m may not decide whether a copy pays there is no such way. */
static int gpi__ways_to_copy(const gemmepi_context *context, const gpi__problem *problem) {
    if (gpi__is_invariant(problem))
        return 0;
    if (gpi__is_byte_product(problem) && !gpi__chip_has(context->arch, GPI__WGMMA))
        return 2;
    return gpi__chip_has(context->arch, GPI__WGMMA) && gpi__wants_side_by_side(problem, GPI__B) ? 2 : 1;
}

/* By every engine, with the operands as they lie and copied in the ways that help. */
static void gpi__enumerate_fused(const gpi__wanted *wanted, gpi__candidates *candidates) {
    const gemmepi_context *context = wanted->context;
    const gpi__problem *problem = wanted->problem;
    int side_by_side, ways = gpi__ways_to_copy(context, problem);
    gpi__problem packed;
    gpi__candidate like;
    memset(&like, 0, sizeof like);
    like.route = GEMMEPI_ROUTE_FUSED;
    like.unit_alpha = wanted->unit_alpha;
    like.otherwise = "its estimate is not less";
    if (gpi__is_invariant(problem))
        gpi__copy_for_hopper(context, problem, like.copies);
    gpi__pack_views(problem, like.copies, &packed);
    gpi__enumerate_engines(context, &packed, &like, gpi__pack_microseconds(&packed, like.copies), candidates);
    for (side_by_side = 0; side_by_side < ways; side_by_side++) {
        int a = gpi__pack_of(problem, GPI__A, side_by_side);
        int b = gpi__pack_of(problem, GPI__B, side_by_side);
        if (a == like.copies[0] && b == like.copies[1])
            continue;
        like.copies[0] = a;
        like.copies[1] = b;
        gpi__pack_views(problem, like.copies, &packed);
        gpi__enumerate_engines(context, &packed, &like, gpi__pack_microseconds(&packed, like.copies),
                               candidates);
    }
}

/* The best of them; one of NEVER where no engine takes the problem, however its operands are copied. */
static gpi__candidate gpi__choose_fused(const gemmepi_context *context, const gpi__problem *problem,
                                        int unit_alpha) {
    gpi__candidates candidates;
    const gpi__candidate *least;
    gpi__candidate never;
    gpi__wanted wanted;
    wanted.context = context;
    wanted.problem = problem;
    wanted.unit_alpha = unit_alpha;
    wanted.bare_microseconds = 0;
    candidates.count = 0;
    gpi__enumerate_fused(&wanted, &candidates);
    least = gpi__least(&candidates);
    memset(&never, 0, sizeof never);
    never.microseconds = GPI__NEVER;
    return least ? *least : never;
}

/* The rule that keeps a problem from the route, or NULL. */
static const char *gpi__fused_rule(const gemmepi_context *context, const gpi__problem *problem) {
    const char *rule = gpi__engines_rule(context, problem);
    if (rule)
        return rule;
    if (!GPI__HAS_SM80 && !GPI__HAS_SM90)
        return "its kernels were left out of this program (GEMMEPI_NO_SM80, GEMMEPI_NO_SM90)";
    rule = GPI__HAS_SM80 ? gpi__sm80_type_rule(context, problem)
                         : "its kernel for this problem was left out of this program (GEMMEPI_NO_SM80)";
    if (!rule && problem->found_scale)
        rule = "only its kernel for Hopper finds scales of d, and that does not run this problem";
    return rule && gpi__choose_fused(context, problem, 1).microseconds >= GPI__NEVER ? rule : NULL;
}

/* >>building */

static gemmepi_status gpi__build_packs(gemmepi_context *context, const gpi__problem *problem,
                                       const int packs[2], gpi__convert *built) {
    gemmepi_status status = GEMMEPI_OK;
    int operand;
    for (operand = GPI__A; !status && operand <= GPI__B; operand++)
        if (packs[operand] == GPI__IN_UNITS)
            status = gpi__build_pack(context, problem, operand, &built[operand]);
        else if (packs[operand] == GPI__SIDE_BY_SIDE)
            status = gpi__build_transpose(context, problem, operand, &built[operand]);
    return status;
}

/* Whether an operand's lines and items lie as they are packed. */
static int gpi__lies_as_packed(const gpi__problem *problem, const gpi__problem *packed, int operand) {
    const gpi__view *from = &problem->views[operand], *to = &packed->views[operand];
    return from->transposed == to->transposed && (from->lines <= 1 || from->ld == to->ld) &&
           (problem->batch <= 1 || from->batch_stride == to->batch_stride);
}

/* Builds the candidate as it is. */
static gemmepi_status gpi__build_fused(gemmepi_context *context, const gpi__problem *problem,
                                       const gpi__candidate *candidate, gpi__fused *fused) {
    gpi__problem packed;
    gemmepi_status status;
    int operand;
    memset(fused, 0, sizeof *fused);
    fused->engine = gpi__engines[candidate->engine];
    gpi__pack_views(problem, candidate->copies, &packed);
    for (operand = GPI__A; operand <= GPI__B; operand++)
        fused->lies_as_packed[operand] = gpi__lies_as_packed(problem, &packed, operand);
    status = gpi__build_packs(context, problem, candidate->copies, fused->packs);
    return status ? status : fused->engine->build(context, &packed, candidate, &fused->built);
}

static size_t gpi__fused_workspace(const gpi__fused *fused) {
    return gpi__round_up(fused->packs[0].bytes, 256) + gpi__round_up(fused->packs[1].bytes, 256) +
           gpi__kernel_workspace(&fused->built.kernel);
}

/* Counts what runs with alpha or C need, too, whose kernel is compiled in the first of them. */
static gemmepi_status gpi__count_general(gpi__matmul_plan *plan) {
    gemmepi_context *context = plan->base.context;
    gpi__candidate candidate = gpi__choose_fused(context, &plan->problem, 0);
    gpi__fused general;
    gemmepi_status status;
    size_t size;
    context->only_workspace = 1;
    status = gpi__build_fused(context, &plan->problem, &candidate, &general);
    context->only_workspace = 0;
    size = status ? 0 : gpi__fused_workspace(&general);
    if (size > plan->workspace_size)
        plan->workspace_size = size;
    return status == GEMMEPI_UNSUPPORTED ? GEMMEPI_OK : status; /* then such runs are, too */
}

static gemmepi_status gpi__fused_build(gpi__matmul_plan *plan, const gpi__candidate *candidate) {
    gpi__fused *fused = (gpi__fused *)plan->built;
    gemmepi_status status = gpi__build_fused(plan->base.context, &plan->problem, candidate, fused);
    plan->workspace_size = gpi__fused_workspace(fused);
    return !status && candidate->unit_alpha ? gpi__count_general(plan) : status;
}

/* >>running */

/* For runs with alpha or C, for which it is not, FUSED goes first again. */
static void gpi__fused_give_up(const gpi__matmul_plan *plan, gpi__candidates *candidates) {
    int i;
    (void)plan;
    for (i = 0; i < candidates->count; i++)
        if (candidates->list[i].route != GEMMEPI_ROUTE_FUSED)
            candidates->list[i].rank = GPI__NEVER;
}

static gemmepi_status gpi__fused_run(const gpi__matmul_plan *plan, const gpi__arguments *arguments,
                                     char *workspace, gemmepi_stream stream) {
    const gemmepi_context *context = plan->base.context;
    const gpi__fused *fused = (const gpi__fused *)plan->built;
    gpi__arguments packed = *arguments;
    gemmepi_status status = GEMMEPI_OK;
    int operand;
    if (gpi__adds_as_residual(&plan->problem)) {
        packed.pointers[GPI__RESIDUAL] = arguments->pointers[GPI__C];
        packed.uses_c = 0;
        packed.beta = 0;
    }
    for (operand = GPI__A; !status && operand <= GPI__B; operand++) {
        void *pointer = arguments->pointers[operand];
        if (fused->packs[operand].launch.function &&
            !(fused->lies_as_packed[operand] && (uintptr_t)pointer % 16 == 0)) {
            status = gpi__run_convert(context, &fused->packs[operand], pointer, workspace, stream);
            packed.pointers[operand] = workspace;
        }
        workspace = gpi__past(workspace, fused->packs[operand].bytes);
    }
    return status ? status
                  : fused->engine->run(context, &plan->problem, &fused->built, &packed, workspace, stream);
}

/* >>in words */

static void gpi__fused_describe(const gpi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gpi__fused *fused = (const gpi__fused *)plan->built;
    gpi__describe_product_kernel(&plan->problem, &fused->built.kernel, details);
    details->launches +=
        (fused->packs[0].launch.function != NULL) + (fused->packs[1].launch.function != NULL);
}

/* Says how much of the chip's shared memory a block asks for, and how many blocks a multiprocessor has room for by that. */
static void gpi__explain_shared(gpi__text *text, const gemmepi_context *context, unsigned shared) {
    const gpi__chip *chip = gpi__chip_of(context->arch);
    gpi__append(text,
                "  %u bytes of shared memory a block, of %u on compute capability %d.%d: room for %u on a "
                "multiprocessor\n",
                shared, chip->most_shared, chip->arch / 10, chip->arch % 10,
                gpi__blocks_at_once(context->arch, shared));
}

static void gpi__fused_explain(const gpi__matmul_plan *plan, const char *kernel, gpi__text *text) {
    const gpi__fused *fused = (const gpi__fused *)plan->built;
    int operand;
    (void)kernel;
    for (operand = GPI__A; operand <= GPI__B; operand++)
        if (fused->packs[operand].launch.function)
            gpi__append(text, "  %s: %s to workspace, lines of whole 16 bytes%s\n",
                        fused->packs[operand].launch.name, gpi__argument_name(&plan->problem, operand),
                        fused->lies_as_packed[operand]
                            ? ", in runs where it does not begin at a multiple of 16 bytes"
                            : "");
    fused->engine->explain(&plan->problem, &fused->built, text);
    if (fused->built.kernel.launch.shared)
        gpi__explain_shared(text, plan->base.context, fused->built.kernel.launch.shared);
    if (plan->unit_alpha)
        gpi__append(text, "  runs with alpha or C have a kernel of their own\n");
}

#endif
