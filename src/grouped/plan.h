/* Plans of grouped products. On a GPU a run is a kernel that checks the ends and divides groups into parts (groups.cu), a copy of gathered rows
   where the kernel for Hopper takes them, and the product: by that kernel, or by that of the route plain, which takes everything. */
#ifndef GEMMEPI_GROUPED_PLAN_H
#define GEMMEPI_GROUPED_PLAN_H

#include "../problem/grouped.h"
#include "../product/plan.h"

#define GEMMEPI__GROUPS_THREADS 1024  /* groups.cu */
#define GEMMEPI__GROUPS_PARTS   16384 /* at most, of a block, where there are fewer than */
#define GEMMEPI__GROUPS_BLOCKS  16
#define GEMMEPI__GATHER_THREADS 256 /* a warp takes a row */
#define GEMMEPI__MAPS_THREADS   128 /* maps_sm90.cu */

typedef struct gemmepi__grouped_plan {
    gemmepi_plan base;
    gemmepi__problem problem;
    gemmepi_route route;
    const char *not_fused;
    int applied;                   /* alpha 1 and no C are compiled in */
    const gemmepi__engine *engine; /* of the route fused */
#ifndef GEMMEPI_NO_FORMULA
    gemmepi__slots slots; /* with a formula: the operands that come as an epilogue's do */
#endif
    gemmepi__problem
        inner; /* as the kernel has it: gathered rows side by side, ACCUMULATE's D as a residual */
    gemmepi__launch groups, maps, gathers[2], sums;  /* gathers: of A and B */
    gemmepi__group_sums_params sums_params;          /* all but pointers */
    gemmepi__gather_params gather_params[2];         /* all but pointers */
    int tile, low, columns, band;                    /* of parts, as groups.cu takes them */
    size_t parts_size, maps_size, gathered_sizes[2]; /* of workspace, behind 256 bytes for the count */
    union {
        gemmepi__sm90 sm90;
        gemmepi__plain plain;
    } built;
    /* The plan for runs with alpha or C, where this one is not: as of gemmepi__matmul_plan */
    gemmepi__atomic_pointer general;
    gemmepi__atomic_pointer *general_place;
} gemmepi__grouped_plan;

/* >>what the kernel for Hopper takes */

static int gemmepi__is_gathered(const gemmepi__problem *problem, int operand) {
    return problem->grouping.gathered >> operand & 1;
}

/* The problem as kernels see it: a formula is inside an epilogue that says where operands are. */
static gemmepi__problem gemmepi__seen_problem(const gemmepi__problem *problem) {
#ifndef GEMMEPI_NO_FORMULA
    if (problem->formula)
        return gemmepi__problem_inside(problem);
#endif
    return *problem;
}

/* Why no kernel has its formula inside, or NULL. */
static const char *gemmepi__formula_rule(const gemmepi__problem *problem) {
#ifndef GEMMEPI_NO_FORMULA
    if (problem->formula && gemmepi__not_inside(problem))
        return gemmepi__not_inside(problem);
#endif
    return gemmepi__half_group(problem) ? "halves of groups of columns do not go with groups of rows" : NULL;
}

/* The problem as that kernel has it. */
static gemmepi__problem gemmepi__inner_problem(const gemmepi__problem *problem) {
    static const int packs[2] = {0, 0};
    gemmepi__problem inner;
    int operand;
    gemmepi__pack_views(problem, packs, &inner);
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++) {
        gemmepi__view *view = &inner.views[operand];
        if (!gemmepi__is_gathered(problem, operand))
            continue;
        view->lines = gemmepi__positions(problem);
        *view = gemmepi__converted_view(view, 1, view->dtype);
        view->scale = problem->views[operand].scale;
    }
    inner.grouping.scales_gathered =
        gemmepi__is_gathered(problem, GEMMEPI__A) && problem->views[GEMMEPI__A].scale > GEMMEPI_SCALE_TENSOR;
    inner.grouping.gathered = 0;
    inner.epilogue &= ~(uint64_t)(GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B); /* by another launch */
    memset(&inner.views[GEMMEPI__BIAS_GRAD], 0, sizeof inner.views[0]);
    return inner;
}

/* That of the types of A and B. */
static const gemmepi__engine *gemmepi__engine_of_groups(const gemmepi__problem *problem) {
    return gemmepi__is_fp8_product(problem) ? &gemmepi__sm90_fp8_engine : &gemmepi__sm90_engine;
}

/* And its shapes. */
static const gemmepi__sm90_shape *gemmepi__shapes_of_groups(const gemmepi__problem *problem, size_t *count) {
    int is_fp8 = gemmepi__is_fp8_product(problem);
    *count = is_fp8 ? GEMMEPI__COUNT(gemmepi__sm90_fp8_shapes) : GEMMEPI__COUNT(gemmepi__sm90_shapes);
    return is_fp8 ? gemmepi__sm90_fp8_shapes : gemmepi__sm90_shapes;
}

static int gemmepi__groups_have_shape(const gemmepi__problem *inner, int applied) {
    size_t count, i;
    const gemmepi__sm90_shape *shapes = gemmepi__shapes_of_groups(inner, &count);
    if (!inner->grouping.is_of_k)
        return 1; /* the first takes everything */
    for (i = 0; i < count; i++)
        if (gemmepi__shape_takes(inner, &shapes[i], applied))
            return 1;
    return 0;
}

/* Why it does not take the problem, or NULL. */
static const char *gemmepi__grouped_rule(const gemmepi_context *context, const gemmepi__problem *problem,
                                         int applied) {
    gemmepi__problem seen = gemmepi__seen_problem(problem), inner = gemmepi__inner_problem(&seen);
    const char *rule = gemmepi__is_empty(problem) ? "d is empty" : gemmepi__engines_rule(context, problem);
    const gemmepi__engine *engine = gemmepi__engine_of_groups(problem);
    int bits = gemmepi__box_bits(problem), operand;
    if (!GEMMEPI__HAS_SM90)
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
    if (!problem->grouping.is_of_k && problem->views[GEMMEPI__A].transposed)
        return "its kernel takes groups of rows that lie along k";
    if (problem->grouping.is_of_k &&
        (!problem->views[GEMMEPI__A].transposed || problem->views[GEMMEPI__B].transposed))
        return "its kernel takes groups of k where a is stored [k, m] and b [k, n]";
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        if (gemmepi__is_gathered(problem, operand) &&
            problem->views[operand].length * problem->views[operand].bits % 128)
            return "gathered rows are copied in units of 16 bytes";
    if (gemmepi__results_of(&inner, bits) != gemmepi__sm90_moved(&inner))
        return "its kernel stores rows of groups in units of 16 bytes";
    if (!gemmepi__groups_have_shape(&inner, applied))
        return "no shape of its kernel has registers and memory for this epilogue";
    return NULL;
}

/* >>building */

/* A kernel of which nothing is compiled in but how many threads a block has. */
static gemmepi_status gemmepi__get_threads_kernel(gemmepi_context *context, const char *file,
                                                  const char *entry, gemmepi__launch *launch) {
    char prologue[64];
    gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
    gemmepi__append(&text, "#define GEMMEPI_THREADS %u\n", launch->threads_x);
    return gemmepi__get_waiting_kernel(context, file, prologue, entry, launch);
}

static gemmepi_status gemmepi__build_gather(gemmepi_context *context, gemmepi__grouped_plan *plan,
                                            int operand) {
    const gemmepi__view *from = &plan->problem.views[operand], *to = &plan->inner.views[operand];
    int64_t unit = 128 / from->bits, blocks = gemmepi__divide_up(to->lines, GEMMEPI__GATHER_THREADS / 32);
    int64_t most = 8 * (int64_t)context->multiprocessors;
    gemmepi__gather_params *params = &plan->gather_params[operand];
    gemmepi__launch *gather = &plan->gathers[operand];
    params->ld = from->ld / unit;
    params->to_ld = to->ld / unit;
    params->units = (int)(from->length / unit);
    params->groups = plan->problem.grouping.groups;
    plan->gathered_sizes[operand] = gemmepi__bytes_for(to->bytes, 1);
    gather->blocks = (unsigned)(blocks < most ? blocks : most);
    gather->threads_x = GEMMEPI__GATHER_THREADS;
    gather->threads_y = 1;
    return gemmepi__get_threads_kernel(context, "groups.cu", "gemmepi_gather", gather);
}

/* What makes groups' tensor maps. */
static gemmepi_status gemmepi__build_maps(gemmepi_context *context, gemmepi__grouped_plan *plan) {
    int groups = plan->problem.grouping.groups;
    plan->maps_size = (size_t)groups * 2 * sizeof(gemmepi__tensor_map);
    plan->maps.blocks = (unsigned)gemmepi__divide_up(groups, GEMMEPI__MAPS_THREADS);
    plan->maps.threads_x = GEMMEPI__MAPS_THREADS;
    plan->maps.threads_y = 1;
    return gemmepi__get_threads_kernel(context, "maps_sm90.cu", "gemmepi_maps", &plan->maps);
}

/* The operand that bias_grad sums, or -1. */
static int gemmepi__summed_operand(const gemmepi__problem *problem) {
    return gemmepi__has(problem, GEMMEPI_BGRAD_A)   ? (int)GEMMEPI__A
           : gemmepi__has(problem, GEMMEPI_BGRAD_B) ? (int)GEMMEPI__B
                                                    : -1;
}

static gemmepi_status gemmepi__build_group_sums(gemmepi_context *context, gemmepi__grouped_plan *plan) {
    const gemmepi__problem *problem = &plan->problem;
    const gemmepi__view *x = &problem->views[gemmepi__summed_operand(problem)];
    const gemmepi__view *out = &problem->views[GEMMEPI__BIAS_GRAD];
    gemmepi__group_sums_params *params = &plan->sums_params;
    int64_t tiles = gemmepi__divide_up(x->length, GEMMEPI__SUM_COLUMNS), blocks;
    char prologue[512];
    gemmepi__addends like = {0, 1, 0, 0, 0, 0};
    blocks = gemmepi__offset(tiles, problem->grouping.groups, 0);
    if (blocks <= 0 || blocks > INT_MAX)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "bias_grad has more tiles than a grid has blocks");
    like.dtype = x->dtype;
    like.scale = x->scale;
    like.out_dtype = out->dtype;
    like.accumulate = gemmepi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD);
    params->x = gemmepi__kernel_matrix_of(x);
    params->out_stride = out->batch_stride;
    params->columns = (int)x->length;
    params->column_tiles = (unsigned)tiles;
    plan->sums.blocks = (unsigned)blocks;
    plan->sums.threads_x = plan->sums.threads_y = GEMMEPI__SUM_COLUMNS;
    gemmepi__reduce_prologue(&like, GEMMEPI__SUM_LINE_THREADS, GEMMEPI__SUM_MANY_ROWS, prologue,
                             sizeof prologue);
    gemmepi__name_kernel(&plan->sums, "gemmepi_group_sums_%s_to_%s",
                         gemmepi__dtype((gemmepi_dtype)x->dtype)->name,
                         gemmepi__dtype((gemmepi_dtype)out->dtype)->name);
    return gemmepi__get_waiting_kernel(context, "group_sums.cu", prologue, "gemmepi_group_sums", &plan->sums);
}

/* Columns of clusters' tiles in which rows are taken one after another: what is under way at a time is four times as wide as high, or all
   columns. Measured on an H100, 64 groups of 65536 rows, n 4096 and k 7168: bands that are as high as wide take up to 1.14 times as long, and columns
   that are taken one after another as well. No band is much narrower than the others. */
static int gemmepi__band_of_columns(const gemmepi_context *context, const gemmepi__sm90_shape *shape,
                                    int columns) {
    int64_t area = (int64_t)context->multiprocessors * shape->tile_m * shape->tile_n;
    int64_t width = (int64_t)shape->tile_n * shape->cluster_n, wide = 1, bands;
    while ((wide + 1) * width * (wide + 1) * width <= 4 * area)
        wide++;
    bands = (columns + wide / 2) / wide;
    wide = gemmepi__divide_up(columns, bands ? bands : 1);
    return (int)(wide + wide % 2);
}

/* Of groups of rows each tile of clusters is listed: where blocks of a cluster lie one above the other, those of a group's last few rows lie
   side by side. */
static void gemmepi__list_tiles(const gemmepi_context *context, gemmepi__grouped_plan *plan) {
    const gemmepi__sm90_shape *shape = &plan->built.sm90.shape;
    plan->tile = shape->tile_m * shape->cluster_m;
    plan->low = shape->cluster_m > 1 ? shape->tile_m : 0;
    plan->columns = (int)plan->built.sm90.params.cluster_columns;
    plan->band = gemmepi__band_of_columns(context, shape, plan->columns);
}

/* By the engine's shape of the least estimate. */
static gemmepi__candidate gemmepi__choose_for_groups(const gemmepi_context *context,
                                                     gemmepi__grouped_plan *plan) {
    gemmepi__candidate candidate;
    gemmepi__problem like;
    plan->engine = gemmepi__engine_of_groups(&plan->problem);
    plan->inner = gemmepi__seen_problem(&plan->problem);
    plan->inner = gemmepi__inner_problem(&plan->inner);
    memset(&candidate, 0, sizeof candidate);
    candidate.route = GEMMEPI_ROUTE_FUSED;
    candidate.applied = plan->applied;
    candidate.parts = 1;
    like = plan->inner; /* a group has a part of k */
    if (like.grouping.is_of_k)
        like.k = gemmepi__divide_up(like.k, like.grouping.groups);
    plan->engine->choose(context, &like, &candidate);
    return candidate;
}

static gemmepi_status gemmepi__build_fused_groups(gemmepi_context *context,
                                                  const gemmepi__candidate *candidate,
                                                  gemmepi__grouped_plan *plan) {
    gemmepi_status status = plan->engine->build(context, &plan->inner, candidate, &plan->built.sm90);
    int operand;
    if (!status && !plan->problem.grouping.is_of_k)
        gemmepi__list_tiles(context, plan);
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B && !status; operand++)
        if (gemmepi__is_gathered(&plan->problem, operand))
            status = gemmepi__build_gather(context, plan, operand);
    if (!status && plan->problem.grouping.is_of_k)
        status = gemmepi__build_maps(context, plan);
    return status;
}

/* Parts of the groups at most, whichever shape a kernel for alpha and C has beside that for runs without: both take the plan's workspace. */
static int64_t gemmepi__most_listed(const gemmepi__grouped_plan *plan, int64_t parts) {
    size_t count, i;
    const gemmepi__sm90_shape *shapes = gemmepi__shapes_of_groups(&plan->problem, &count);
    int64_t plain = gemmepi__most_parts(&plan->problem, GEMMEPI__PLAIN_TILE), rows, columns;
    if (plan->route != GEMMEPI_ROUTE_FUSED || plan->problem.grouping.is_of_k)
        return parts;
    for (i = 0; i < count; i++) {
        int64_t listed = gemmepi__sm90_tiles(&plan->inner, &shapes[i], &rows, &columns);
        int takes = i == 0 || gemmepi__shape_takes(&plan->inner, &shapes[i], 0) ||
                    gemmepi__shape_takes(&plan->inner, &shapes[i], 1);
        parts = takes && listed > parts ? listed : parts;
    }
    return plain > parts ? plain : parts;
}

/* How many parts there are at most, and the blocks that list them. */
static void gemmepi__count_parts(gemmepi__grouped_plan *plan) {
    int64_t parts = gemmepi__most_parts(&plan->problem, plan->tile ? plan->tile : 1) * (int64_t)plan->columns;
    int64_t blocks = gemmepi__divide_up(parts + 1, GEMMEPI__GROUPS_PARTS);
    plan->parts_size = (size_t)gemmepi__most_listed(plan, parts) * sizeof(gemmepi__group_part);
    plan->groups.blocks = (unsigned)(blocks < GEMMEPI__GROUPS_BLOCKS ? blocks : GEMMEPI__GROUPS_BLOCKS);
}

static gemmepi_status gemmepi__build_plain_groups(gemmepi_context *context, gemmepi__grouped_plan *plan) {
    if (context->routes && !(context->routes >> GEMMEPI_ROUTE_PLAIN & 1))
        return gemmepi__fail(
            GEMMEPI_UNSUPPORTED,
            "no route runs this grouped product. fused: %s. plain: config.routes leaves it out",
            plan->not_fused);
    if (plan->problem.found_scale)
        return gemmepi__fail(
            GEMMEPI_UNSUPPORTED,
            "no route finds the scales of this grouped product's d. fused: %s. plain: it finds none",
            plan->not_fused);
    plan->inner = gemmepi__seen_problem(&plan->problem);
    plan->applied = 0;
    plan->tile = plan->problem.grouping.is_of_k ? 0 : GEMMEPI__PLAIN_TILE;
    return gemmepi__build_plain_kernel(context, &plan->inner, &plan->built.plain);
}

#define GEMMEPI__NVRTC_HAS_TENSORMAP 12030 /* PTX 8.3 */

/* NVRTC before CUDA 12.3 does not compile what makes tensor maps of groups of k. */
static gemmepi_status gemmepi__build_plain_instead(gemmepi_context *context, gemmepi__grouped_plan *plan) {
    gemmepi__say(&context->log, GEMMEPI_LOG_WARNING, "groups of k take the route plain: %s",
                 gemmepi__error_text);
    memset(&plan->maps, 0, sizeof plan->maps);
    memset(plan->gathers, 0, sizeof plan->gathers);
    memset(&plan->built, 0, sizeof plan->built);
    plan->maps_size = plan->gathered_sizes[0] = plan->gathered_sizes[1] = 0;
    plan->tile = plan->low = 0;
    plan->not_fused = "NVRTC before CUDA 12.3 does not compile its kernels";
    plan->route = GEMMEPI_ROUTE_PLAIN;
    return gemmepi__build_plain_groups(context, plan);
}

/* With build_lock held, the primary context current. */
static gemmepi_status gemmepi__build_groups(gemmepi__grouped_plan *plan) {
    gemmepi_context *context = plan->base.context;
    const char *reason = gemmepi__is_empty(&plan->problem) ? NULL : gemmepi__formula_rule(&plan->problem);
    gemmepi_status status;
    if (reason)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED,
                             "no kernel has the formula of this grouped product inside: %s", reason);
#ifndef GEMMEPI_NO_FORMULA
    if (plan->problem.formula)
        plan->slots = gemmepi__slots_of(&plan->problem);
#endif
    status = gemmepi__make_faults(context);
    plan->columns = plan->band = 1;
    plan->not_fused = gemmepi__grouped_rule(context, &plan->problem, plan->applied);
    plan->route = plan->not_fused ? GEMMEPI_ROUTE_PLAIN : GEMMEPI_ROUTE_FUSED;
    plan->groups.blocks = plan->groups.threads_y = 1;
    plan->groups.threads_x = GEMMEPI__GROUPS_THREADS;
    if (!status)
        status = gemmepi__get_threads_kernel(context, "groups.cu", "gemmepi_groups", &plan->groups);
    if (!status && gemmepi__summed_operand(&plan->problem) >= 0)
        status = gemmepi__build_group_sums(context, plan);
    if (!status && !plan->not_fused) {
        gemmepi__candidate candidate = gemmepi__choose_for_groups(context, plan);
        status = gemmepi__build_fused_groups(context, &candidate, plan);
        if (status == GEMMEPI_COMPILE_ERROR && plan->problem.grouping.is_of_k &&
            context->nvrtc.version < GEMMEPI__NVRTC_HAS_TENSORMAP)
            status = gemmepi__build_plain_instead(context, plan);
    } else if (!status && !gemmepi__is_empty(&plan->problem)) {
        status = gemmepi__build_plain_groups(context, plan);
    }
    if (!status)
        gemmepi__count_parts(plan);
    return status;
}

static gemmepi_status gemmepi__build_groups_on_device(gemmepi__grouped_plan *plan) {
    gemmepi_context *context = plan->base.context;
    gemmepi__entry entry;
    gemmepi_status status = gemmepi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gemmepi__lock(&context->build_lock);
    status = gemmepi__build_groups(plan);
    gemmepi__unlock(&context->build_lock);
    gemmepi__leave_relaxed(context, &entry);
    return status;
}

static void gemmepi__destroy_grouped(gemmepi_plan *destroyed) {
    gemmepi__grouped_plan *plan = (gemmepi__grouped_plan *)destroyed;
    gemmepi_plan *general = (gemmepi_plan *)gemmepi__load_pointer(&plan->general);
    if (general)
        gemmepi__release_plan(general);
    gemmepi__drop_formula(plan->base.context, &plan->problem);
    gemmepi__delete(&plan->base.context->allocator, plan);
}

static gemmepi_status gemmepi__build_grouped(gemmepi_context *context, const gemmepi__problem *problem,
                                             int applied, gemmepi__grouped_plan **result) {
    gemmepi__grouped_plan *plan = (gemmepi__grouped_plan *)gemmepi__new(&context->allocator, sizeof *plan);
    gemmepi_status status = GEMMEPI_OK;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->base = gemmepi__plan_base(context, GEMMEPI_PLAN_GROUPED, gemmepi__destroy_grouped);
    plan->problem = *problem;
    gemmepi__hold_formula(context, problem);
    plan->applied = applied;
    plan->general_place = &plan->general;
    if (gemmepi__writes_nothing(problem))
        plan->route = GEMMEPI_ROUTE_EMPTY;
    else if (context->is_host)
        plan->route = GEMMEPI_ROUTE_HOST;
    else
        status = gemmepi__build_groups_on_device(plan);
    if (status)
        gemmepi__release_plan(&plan->base);
    else
        *result = plan;
    return status;
}

/* The plan for runs with alpha or C, if it is not there yet. */
static gemmepi_status gemmepi__build_general_groups(const gemmepi__grouped_plan *plan) {
    gemmepi_context *context = plan->base.context;
    gemmepi__grouped_plan *built = NULL;
    gemmepi_status status = GEMMEPI_OK;
    if (!gemmepi__load_pointer(plan->general_place)) {
        status = gemmepi__build_grouped(context, &plan->problem, 0, &built);
        gemmepi__lock(&context->lock);
        if (!status && !gemmepi__load_pointer(plan->general_place)) {
            gemmepi__publish_pointer(plan->general_place, built);
            built = NULL;
        }
        gemmepi__unlock(&context->lock);
        if (built)
            gemmepi__release_plan(&built->base);
    }
    return status;
}

/* Ahead of runs with alpha or C, unless there is none: scales of D may be found only where these are compiled in. */
static gemmepi_status gemmepi__build_groups_for_scalars(const gemmepi__grouped_plan *plan) {
    gemmepi_status status = plan->applied ? gemmepi__build_general_groups(plan) : GEMMEPI_OK;
    return status == GEMMEPI_UNSUPPORTED ? GEMMEPI_OK : status;
}

static gemmepi_status gemmepi__general_groups(const gemmepi__grouped_plan *plan,
                                              const gemmepi__grouped_plan **general) {
    gemmepi_status status = gemmepi__build_general_groups(plan);
    *general = (const gemmepi__grouped_plan *)gemmepi__load_pointer(plan->general_place);
    return status;
}

/* One number, parts, maps, gathered rows. */
static size_t gemmepi__grouped_workspace(const gemmepi__grouped_plan *plan) {
    if (plan->route != GEMMEPI_ROUTE_PLAIN && plan->route != GEMMEPI_ROUTE_FUSED)
        return 0;
    return 256 + gemmepi__round_up(plan->parts_size, 256) + gemmepi__round_up(plan->maps_size, 256) +
           gemmepi__round_up(plan->gathered_sizes[0], 256) + gemmepi__round_up(plan->gathered_sizes[1], 256);
}

static gemmepi_status gemmepi__prepare_grouped(const gemmepi__grouped_plan *plan, gemmepi_stream stream) {
    return gemmepi__reserve_for(plan->base.context, stream, gemmepi__key_of_stream(stream),
                                gemmepi__grouped_workspace(plan));
}

GEMMEPI_API gemmepi_status gemmepi_plan_grouped(gemmepi_context *context, const gemmepi_grouped_desc *desc,
                                                gemmepi_plan **result) {
    gemmepi__problem problem;
    gemmepi__grouped_plan *plan = NULL;
    gemmepi_status status;
    if (result)
        *result = NULL; /* also after a failure */
    if (!context || !result)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__take_grouped(&context->allocator, desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem);
    if (status)
        return status;
    gemmepi__share_formula(context, &problem);
    status = gemmepi__build_grouped(context, &problem, gemmepi__may_be_applied(&problem), &plan);
    if (!status)
        *result = &plan->base;
    gemmepi__drop_formula(context, &problem);
    return status;
}

#endif
