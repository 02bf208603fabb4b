/* Plans of grouped products. On a GPU a run is a kernel that checks the ends and divides groups into parts (groups.cu), a copy of gathered rows
   where the kernel for Hopper takes them, and the product: by that kernel, or by that of the route plain, which takes everything. */
#ifndef GEMMEPI_GROUPED_PLAN_H
#define GEMMEPI_GROUPED_PLAN_H

#include "../device/run.h"
#include "../problem/grouped.h"
#include "../product/plan.h"

#define GPI__GROUPS_THREADS 1024  /* groups.cu */
#define GPI__GROUPS_PARTS   16384 /* at most, of a block, where there are fewer than */
#define GPI__GROUPS_BLOCKS  16
#define GPI__GATHER_THREADS 256 /* a warp takes a row */
#define GPI__MAPS_THREADS   128 /* maps_sm90.cu */

typedef struct gpi__grouped_plan {
    gemmepi_plan base;
    gpi__problem problem; /* on a GPU of an a and a b that are made, if formulas make them */
    gpi__around *around;  /* what makes it, on a GPU; or NULL */
    gemmepi_route route;
    const char *not_fused;
    gpi__tuned tuned;
    const gpi__candidate *forced; /* while it is built: what is to be taken; NULL: what is best */
    int unit_alpha;
    const gpi__engine *engine; /* of the route fused */
    gpi__composition said;     /* with a formula: the operands that come as an epilogue's do */
    gpi__problem inner; /* as the kernel has it: gathered rows side by side, ACCUMULATE's D as a residual */
    gpi__launch groups, maps, gathers[2]; /* gathers: of A and B */
    gpi__sums sums;
    gpi__gather_params gather_params[2];             /* all but pointers */
    int tile, low, columns, band;                    /* of parts, as groups.cu takes them */
    size_t parts_size, maps_size, gathered_sizes[2]; /* of workspace, behind 256 bytes for the count */
    union {
        gpi__product_kernel kernel;
        gpi__sm90 sm90;
        gpi__plain plain;
    } built;
    /* The plan for runs with alpha or C, where this one is not: as of gpi__matmul_plan */
    gpi__atomic_pointer general;
    gpi__atomic_pointer *general_place;
} gpi__grouped_plan;

/* What the plan was made for. */
static const gpi__problem *gpi__asked_of_groups(const gpi__grouped_plan *plan) {
    return plan->around ? &plan->around->problem : &plan->problem;
}

/* >>what the kernel for Hopper takes */

static int gpi__is_gathered(const gpi__problem *problem, int operand) {
    return problem->grouping.gathered >> operand & 1;
}

/* The problem as kernels see it: a formula is inside an epilogue that says where operands are. */
static gpi__problem gpi__seen_problem(const gpi__problem *problem) {
    if (GPI__FORMULA(problem))
        return gpi__problem_inside(problem);
    return *problem;
}

/* Why no kernel has its formula inside, or NULL. */
static const char *gpi__formula_rule(const gpi__problem *problem) {
    if (GPI__FORMULA(problem) && gpi__not_inside(problem))
        return gpi__not_inside(problem);
    return gpi__half_group(problem)
               ? "halves of groups of columns, or of every second one, do not go with groups of rows"
               : NULL;
}

/* The problem as that kernel has it. */
static gpi__problem gpi__inner_problem(const gpi__problem *problem) {
    static const int packs[2] = {0, 0};
    gpi__problem rest = gpi__without_sums(problem), inner; /* they are another launch's */
    int operand;
    gpi__pack_views(&rest, packs, &inner);
    for (operand = GPI__A; operand <= GPI__B; operand++) {
        gpi__view *view = &inner.views[operand];
        if (!gpi__is_gathered(problem, operand))
            continue;
        view->lines = gpi__positions(problem);
        *view = gpi__converted_view(view, 1, view->dtype);
        view->scale = problem->views[operand].scale;
    }
    inner.grouping.scales_gathered =
        gpi__is_gathered(problem, GPI__A) && problem->views[GPI__A].scale > GEMMEPI_SCALE_TENSOR;
    inner.grouping.gathered = 0;
    return inner;
}

/* That of the types of A and B. */
static const gpi__engine *gpi__engine_of_groups(const gpi__problem *problem) {
    return gpi__is_fp8_product(problem) ? &gpi__sm90_fp8_engine : &gpi__sm90_engine;
}

/* And its shapes. */
static const gpi__sm90_shape *gpi__shapes_of_groups(const gpi__problem *problem, size_t *count) {
    *count = (size_t)gpi__engine_of_groups(problem)->shapes;
    return gpi__shapes_for(problem);
}

static int gpi__groups_have_shape(const gpi__problem *inner, int unit_alpha) {
    size_t count, i;
    const gpi__sm90_shape *shapes = gpi__shapes_of_groups(inner, &count);
    if (!inner->grouping.is_of_k)
        return 1; /* the first takes everything */
    for (i = 0; i < count; i++)
        if (gpi__shape_accepts(inner, &shapes[i], unit_alpha))
            return 1;
    return 0;
}

/* Why it does not take the problem, or NULL. */
static const char *gpi__grouped_rule(const gemmepi_context *context, const gpi__problem *problem,
                                     int unit_alpha) {
    gpi__problem seen = gpi__seen_problem(problem), inner = gpi__inner_problem(&seen);
    const char *rule = gpi__is_empty(problem) ? "d is empty" : gpi__engines_rule(context, problem);
    const gpi__engine *engine = gpi__engine_of_groups(problem);
    int bits = gpi__box_bits(problem), operand;
    if (!GPI__HAS_SM90)
        return "its kernel was left out of this program (GEMMEPI_NO_SM90)";
    if (context->routes && !(context->routes >> GEMMEPI_ROUTE_FUSED & 1))
        return "config.routes leaves it out";
    if (context->multiprocessors < 2)
        return "its kernel needs two multiprocessors";
    if (!rule)
        rule = engine->rule(context, &seen);
    if (!rule)
        rule = engine->rule(context, &inner);
    if (rule)
        return rule;
    if (!problem->grouping.is_of_k && problem->views[GPI__A].transposed)
        return "its kernel runs groups of rows that are contiguous along k";
    if (problem->grouping.is_of_k &&
        (!problem->views[GPI__A].transposed || problem->views[GPI__B].transposed))
        return "its kernel runs groups of k where a is stored [k, m] and b [k, n]";
    for (operand = GPI__A; operand <= GPI__B; operand++)
        if (gpi__is_gathered(problem, operand) &&
            problem->views[operand].length * problem->views[operand].bits % 128)
            return "gathered rows are copied in units of 16 bytes";
    if (gpi__results_of(&inner, bits) != gpi__sm90_moved(&inner))
        return "its kernel stores rows of groups in units of 16 bytes";
    if (!gpi__groups_have_shape(&inner, unit_alpha))
        return "no shape of its kernel has registers and memory for this epilogue";
    return NULL;
}

/* >>building */

/* A kernel of which nothing is compiled in but how many threads a block has. */
static gemmepi_status gpi__get_threads_kernel(gemmepi_context *context, const char *file, const char *entry,
                                              gpi__launch *launch) {
    char prologue[64];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gpi__append(&text, "#define GEMMEPI_THREADS %u\n", launch->threads_x);
    return gpi__get_waiting_kernel(context, file, prologue, entry, launch);
}

static gemmepi_status gpi__build_gather(gemmepi_context *context, gpi__grouped_plan *plan, int operand) {
    const gpi__view *from = &plan->problem.views[operand], *to = &plan->inner.views[operand];
    int64_t unit = 128 / from->bits, blocks = gpi__divide_up(to->lines, GPI__GATHER_THREADS / 32);
    int64_t most = 8 * (int64_t)context->multiprocessors;
    gpi__gather_params *params = &plan->gather_params[operand];
    gpi__launch *gather = &plan->gathers[operand];
    params->ld = from->ld / unit;
    params->to_ld = to->ld / unit;
    params->units = (int)(from->length / unit);
    params->groups = plan->problem.grouping.groups;
    plan->gathered_sizes[operand] = gpi__bytes_for(to->bytes, 1);
    gather->blocks = (unsigned)(blocks < most ? blocks : most);
    gather->threads_x = GPI__GATHER_THREADS;
    gather->threads_y = 1;
    return gpi__get_threads_kernel(context, "groups.cu", "gemmepi_gather", gather);
}

/* What makes groups' tensor maps. */
static gemmepi_status gpi__build_maps(gemmepi_context *context, gpi__grouped_plan *plan) {
    int groups = plan->problem.grouping.groups;
    plan->maps_size = (size_t)groups * 2 * sizeof(gpi__tensor_map);
    plan->maps.blocks = (unsigned)gpi__divide_up(groups, GPI__MAPS_THREADS);
    plan->maps.threads_x = GPI__MAPS_THREADS;
    plan->maps.threads_y = 1;
    return gpi__get_threads_kernel(context, "maps_sm90.cu", "gemmepi_maps", &plan->maps);
}

/* Columns of clusters' tiles in which rows are taken one after another: what is under way at a time is four times as wide as high, or all
   columns. Measured on an H100, 64 groups of 65536 rows, n 4096 and k 7168: bands that are as high as wide take up to 1.14 times as long, and columns
   that are taken one after another as well. No band is much narrower than the others. */
static int gpi__band_of_columns(const gemmepi_context *context, const gpi__sm90_shape *shape, int columns) {
    int64_t area = (int64_t)context->multiprocessors * shape->tile_m * shape->tile_n;
    int64_t width = (int64_t)shape->tile_n * shape->cluster_n, wide = 1, bands;
    while ((wide + 1) * width * (wide + 1) * width <= 4 * area)
        wide++;
    bands = (columns + wide / 2) / wide;
    wide = gpi__divide_up(columns, bands ? bands : 1);
    return (int)(wide + wide % 2);
}

/* Of groups of rows each tile of clusters is listed: where blocks of a cluster lie one above the other, those of a group's last few rows lie
   side by side. */
static void gpi__list_tiles(const gemmepi_context *context, gpi__grouped_plan *plan) {
    const gpi__sm90_shape *shape = &plan->built.sm90.shape;
    plan->tile = shape->tile_m * shape->cluster_m;
    plan->low = shape->cluster_m > 1 ? shape->tile_m : 0;
    plan->columns = (int)plan->built.sm90.params.cluster_columns;
    plan->band = gpi__band_of_columns(context, shape, plan->columns);
}

/* The problem by which its engine's shapes are estimated: a group has a part of k. */
static gpi__problem gpi__estimated_groups(const gpi__problem *problem) {
    gpi__problem seen = gpi__seen_problem(problem), like = gpi__inner_problem(&seen);
    if (like.grouping.is_of_k)
        like.k = gpi__divide_up(like.k, like.grouping.groups);
    return like;
}

/* Its engine without a shape. */
static gpi__candidate gpi__candidate_of_groups(const gpi__problem *problem, int unit_alpha) {
    gpi__candidate candidate;
    memset(&candidate, 0, sizeof candidate);
    candidate.route = GEMMEPI_ROUTE_FUSED;
    while (gpi__engines[candidate.engine] != gpi__engine_of_groups(problem))
        candidate.engine++;
    candidate.unit_alpha = unit_alpha;
    candidate.parts = 1;
    return candidate;
}

/* By the shape of the least estimate, or as forced. */
static gpi__candidate gpi__choose_for_groups(const gemmepi_context *context, gpi__grouped_plan *plan) {
    gpi__candidate candidate = gpi__candidate_of_groups(&plan->problem, plan->unit_alpha);
    gpi__problem like = gpi__estimated_groups(&plan->problem);
    plan->engine = gpi__engine_of_groups(&plan->problem);
    plan->inner = gpi__seen_problem(&plan->problem);
    plan->inner = gpi__inner_problem(&plan->inner);
    if (plan->forced)
        candidate.shape = plan->forced->shape;
    else
        candidate.microseconds = gpi__choose_shape(context, &like, plan->engine, &candidate);
    return candidate;
}

/* Copies the answer of a grouped product, if plans take one: what it says is of this problem's kernels. With build_lock held. */
static int gpi__find_answer_of_groups(gemmepi_context *context, const gpi__problem *problem,
                                      gpi__answer *found) {
    const gpi__answer *answer = gpi__look_up_answer(context, problem);
    int unit_alpha = gpi__may_have_unit_alpha(problem), is_there;
    gpi__candidate own = gpi__candidate_of_groups(problem, unit_alpha);
    gpi__problem like;
    if (!answer)
        return 0;
    *found = *answer;
    own.shape = found->candidate.shape;
    if (found->candidate.route == GEMMEPI_ROUTE_PLAIN) {
        is_there = !problem->found_scale;
    } else {
        is_there = found->candidate.route == GEMMEPI_ROUTE_FUSED && found->candidate.engine == own.engine &&
                   own.shape >= 0 && own.shape < gpi__engines[own.engine]->shapes &&
                   !gpi__grouped_rule(context, problem, unit_alpha);
        like = is_there ? gpi__estimated_groups(problem) : *problem;
        is_there = is_there && gpi__engines[own.engine]->estimate(context, &like, &own) < GPI__NEVER;
    }
    if (!is_there)
        gpi__ignore_answer(context, answer);
    return is_there;
}

static gemmepi_status gpi__build_fused_groups(gemmepi_context *context, const gpi__candidate *candidate,
                                              gpi__grouped_plan *plan) {
    gemmepi_status status = plan->engine->build(context, &plan->inner, candidate, &plan->built.sm90);
    int operand;
    if (!status && !plan->problem.grouping.is_of_k)
        gpi__list_tiles(context, plan);
    for (operand = GPI__A; operand <= GPI__B && !status; operand++)
        if (gpi__is_gathered(&plan->problem, operand))
            status = gpi__build_gather(context, plan, operand);
    if (!status && plan->problem.grouping.is_of_k)
        status = gpi__build_maps(context, plan);
    return status;
}

/* Parts of the groups at most, whichever shape a kernel for alpha and C has beside that for runs without: both take the plan's workspace. */
static int64_t gpi__most_listed(const gpi__grouped_plan *plan, int64_t parts) {
    size_t count, i;
    const gpi__sm90_shape *shapes = gpi__shapes_of_groups(&plan->problem, &count);
    int64_t plain = gpi__most_parts(&plan->problem, GPI__PLAIN_TILE), rows, columns;
    if (plan->route != GEMMEPI_ROUTE_FUSED || plan->problem.grouping.is_of_k)
        return parts;
    for (i = 0; i < count; i++) {
        int64_t listed = gpi__sm90_tiles(&plan->inner, &shapes[i], &rows, &columns);
        int takes = i == 0 || gpi__shape_accepts(&plan->inner, &shapes[i], 0) ||
                    gpi__shape_accepts(&plan->inner, &shapes[i], 1);
        parts = takes && listed > parts ? listed : parts;
    }
    return plain > parts ? plain : parts;
}

/* How many parts there are at most, and the blocks that list them. */
static void gpi__count_parts(gpi__grouped_plan *plan) {
    int64_t parts = gpi__most_parts(&plan->problem, plan->tile ? plan->tile : 1) * (int64_t)plan->columns;
    int64_t blocks = gpi__divide_up(parts + 1, GPI__GROUPS_PARTS);
    plan->parts_size = (size_t)gpi__most_listed(plan, parts) * sizeof(gpi__group_part);
    plan->groups.blocks = (unsigned)(blocks < GPI__GROUPS_BLOCKS ? blocks : GPI__GROUPS_BLOCKS);
}

static gemmepi_status gpi__build_plain_groups(gemmepi_context *context, gpi__grouped_plan *plan) {
    GPI__UNSUPPORTED_IF(context->routes && !(context->routes >> GEMMEPI_ROUTE_PLAIN & 1),
                        "no route runs this grouped product. fused: %s. plain: config.routes leaves it out",
                        plan->not_fused);
    GPI__UNSUPPORTED_IF(
        plan->problem.found_scale,
        "no route finds the scales of this grouped product's d. fused: %s. plain: it finds none",
        plan->not_fused);
    plan->inner = gpi__seen_problem(&plan->problem);
    plan->unit_alpha = 0;
    plan->tile = plan->problem.grouping.is_of_k ? 0 : GPI__PLAIN_TILE;
    return gpi__build_plain_kernel(context, &plan->inner, &plan->built.plain);
}

#define GPI__NVRTC_HAS_TENSORMAP 12030 /* PTX 8.3 */

/* NVRTC before CUDA 12.3 does not compile what makes tensor maps of groups of k. */
static gemmepi_status gpi__build_plain_instead(gemmepi_context *context, gpi__grouped_plan *plan) {
    gpi__say(&context->log, GEMMEPI_LOG_WARNING, "groups of k use the route plain: %s", gpi__error_text);
    memset(&plan->maps, 0, sizeof plan->maps);
    memset(plan->gathers, 0, sizeof plan->gathers);
    memset(&plan->built, 0, sizeof plan->built);
    plan->maps_size = plan->gathered_sizes[0] = plan->gathered_sizes[1] = 0;
    plan->tile = plan->low = 0;
    plan->not_fused = "NVRTC before CUDA 12.3 does not compile its kernels";
    plan->route = GEMMEPI_ROUTE_PLAIN;
    return gpi__build_plain_groups(context, plan);
}

/* What is launched ahead of the product, and beside it. */
static gemmepi_status gpi__build_ahead_of_groups(gpi__grouped_plan *plan) {
    gemmepi_context *context = plan->base.context;
    gemmepi_status status = gpi__make_faults(context);
    plan->columns = plan->band = 1;
    plan->groups.blocks = plan->groups.threads_y = 1;
    plan->groups.threads_x = GPI__GROUPS_THREADS;
    if (!status)
        status = gpi__get_threads_kernel(context, "groups.cu", "gemmepi_groups", &plan->groups);
    if (!status && gpi__summed_operand(&plan->problem) >= 0)
        status = gpi__build_operand_sums(context, &plan->problem, &plan->sums);
    return status;
}

/* With build_lock held, the primary context current. */
static gemmepi_status gpi__build_groups(gpi__grouped_plan *plan) {
    gemmepi_context *context = plan->base.context;
    const char *reason = gpi__is_empty(&plan->problem) ? NULL : gpi__formula_rule(&plan->problem);
    gemmepi_status status;
    GPI__UNSUPPORTED_IF(reason, "no kernel has the formula of this grouped product inside: %s", reason);
    if (GPI__FORMULA(&plan->problem))
        plan->said = gpi__slots_of(&plan->problem);
    status = gpi__build_ahead_of_groups(plan);
    plan->not_fused = gpi__grouped_rule(context, &plan->problem, plan->unit_alpha);
    if (!plan->not_fused && plan->forced && plan->forced->route == GEMMEPI_ROUTE_PLAIN)
        plan->not_fused = "the route plain took less when it was tuned";
    plan->route = plan->not_fused ? GEMMEPI_ROUTE_PLAIN : GEMMEPI_ROUTE_FUSED;
    if (!status && !plan->not_fused) {
        gpi__candidate candidate = gpi__choose_for_groups(context, plan);
        status = gpi__build_fused_groups(context, &candidate, plan);
        if (status == GEMMEPI_COMPILE_ERROR && plan->problem.grouping.is_of_k &&
            context->nvrtc.version < GPI__NVRTC_HAS_TENSORMAP)
            status = gpi__build_plain_instead(context, plan);
    } else if (!status && !gpi__is_empty(&plan->problem)) {
        status = gpi__build_plain_groups(context, plan);
    }
    if (!status)
        gpi__count_parts(plan);
    return status;
}

/* By its answer, if it has one and is not only for runs with alpha or C. */
static gemmepi_status gpi__build_groups_on_device(gpi__grouped_plan *plan) {
    gemmepi_context *context = plan->base.context;
    gpi__answer answer;
    gpi__entry entry;
    gemmepi_status status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gpi__lock(&context->build_lock);
    if (!plan->forced && plan->unit_alpha == gpi__may_have_unit_alpha(&plan->problem) &&
        !gpi__is_empty(&plan->problem) && gpi__find_answer_of_groups(context, &plan->problem, &answer)) {
        plan->forced = &answer.candidate;
        plan->tuned = gpi__tuned_by(&answer);
    }
    status = plan->around ? gpi__build_made(context, plan->around) : GEMMEPI_OK;
    if (!status)
        status = gpi__build_groups(plan);
    plan->forced = NULL;
    gpi__unlock(&context->build_lock);
    gpi__leave_relaxed(context, &entry);
    return status;
}

static void gpi__destroy_grouped(gemmepi_plan *destroyed) {
    gpi__grouped_plan *plan = (gpi__grouped_plan *)destroyed;
    gemmepi_plan *general = (gemmepi_plan *)gpi__load_pointer(&plan->general);
    if (general)
        gpi__release_plan(general);
    gpi__drop_formulas(plan->base.context, gpi__asked_of_groups(plan));
    gpi__delete(&plan->base.context->allocator, plan->around);
    gpi__delete(&plan->base.context->allocator, plan);
}

/* On a GPU formulas of a and b run first, and the plan is one of what they make. */
static gemmepi_status gpi__put_made_around(gpi__grouped_plan *plan) {
    const gemmepi_context *context = plan->base.context;
    if (context->is_host || !gpi__makes_operands(&plan->problem))
        return GEMMEPI_OK;
    plan->around = (gpi__around *)gpi__new(&context->allocator, sizeof *plan->around);
    if (!plan->around)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->around->problem = plan->problem;
    plan->around->inside = plan->problem = gpi__problem_of_made(&plan->around->problem);
    return GEMMEPI_OK;
}

/* forced: the way to run it, or NULL */
static gemmepi_status gpi__build_grouped(gemmepi_context *context, const gpi__problem *problem,
                                         int unit_alpha, const gpi__candidate *forced,
                                         gemmepi_plan **result) {
    gpi__grouped_plan *plan = (gpi__grouped_plan *)gpi__new(&context->allocator, sizeof *plan);
    gemmepi_status status = GEMMEPI_OK;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->base = gpi__plan_base(context, GEMMEPI_PLAN_GROUPED, gpi__destroy_grouped);
    plan->problem = *problem;
    gpi__hold_formulas(context, problem);
    plan->unit_alpha = unit_alpha;
    plan->forced = forced;
    plan->general_place = &plan->general;
    status = gpi__put_made_around(plan);
    if (status)
        return gpi__finish_plan(&plan->base, status, result);
    if (gpi__writes_nothing(problem))
        plan->route = GEMMEPI_ROUTE_EMPTY;
    else if (context->is_host)
        plan->route = GEMMEPI_ROUTE_HOST;
    else
        status = gpi__build_groups_on_device(plan);
    return gpi__finish_plan(&plan->base, status, result);
}

/* The plan for runs with alpha or C, if it is not there yet. */
static gemmepi_status gpi__build_general_groups(const gpi__grouped_plan *plan) {
    gemmepi_plan *built = NULL;
    gemmepi_status status;
    if (gpi__load_pointer(plan->general_place))
        return GEMMEPI_OK;
    status = gpi__build_grouped(plan->base.context, gpi__asked_of_groups(plan), 0, NULL, &built);
    if (!status)
        (void)gpi__publish_plan(plan->general_place, GEMMEPI_OK, built);
    return status;
}

/* Builds ahead what runs with alpha or C take, unless there is none: the smaller tiles of its kernel may be more than a grid has blocks. */
static gemmepi_status gpi__build_groups_for_scalars(const gpi__grouped_plan *plan) {
    gemmepi_status status = plan->unit_alpha ? gpi__build_general_groups(plan) : GEMMEPI_OK;
    return status == GEMMEPI_UNSUPPORTED ? GEMMEPI_OK : status;
}

static gemmepi_status gpi__general_groups(const gpi__grouped_plan *plan, const gpi__grouped_plan **general) {
    gemmepi_status status = gpi__build_general_groups(plan);
    *general = (const gpi__grouped_plan *)gpi__load_pointer(plan->general_place);
    return status;
}

/* One number, parts, maps, gathered rows. */
static size_t gpi__workspace_of_groups_alone(const gpi__grouped_plan *plan) {
    if (plan->route != GEMMEPI_ROUTE_PLAIN && plan->route != GEMMEPI_ROUTE_FUSED)
        return 0;
    return 256 + gpi__round_up(plan->parts_size, 256) + gpi__round_up(plan->maps_size, 256) +
           gpi__round_up(plan->gathered_sizes[0], 256) + gpi__round_up(plan->gathered_sizes[1], 256);
}

/* Ahead of these what is made. */
static size_t gpi__grouped_workspace(const gpi__grouped_plan *plan) {
    return gpi__workspace_of_groups_alone(plan) + (plan->around ? gpi__bytes_around(plan->around) : 0);
}

#endif
