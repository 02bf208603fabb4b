/* The choice of a shape of the kernel for Hopper: which ones take a problem, and what each takes by estimate. */
#ifndef GEMMEPI_PRODUCT_ENGINES_SM90_MODEL_H
#define GEMMEPI_PRODUCT_ENGINES_SM90_MODEL_H

#include "sm90_shape.h"

#include <math.h>

/* Tiles of clusters, whose rows and columns it leaves in `rows` and `columns`. */
static int64_t gpi__sm90_tiles(const gpi__problem *problem, const gpi__sm90_shape *shape, int64_t *rows,
                               int64_t *columns) {
    int halves = gpi__halves_in(problem);
    int height = shape->tile_m * shape->cluster_m;
    *rows = gpi__divide_up(problem->m, height);
    *columns = gpi__divide_up(gpi__half_columns(problem), (int64_t)shape->tile_n / halves * shape->cluster_n);
    if (gpi__has_groups_of_rows(problem)) {
        *rows = gpi__most_parts(problem, height);
        return gpi__offset(*rows, *columns, 0);
    }
    return gpi__offset(gpi__offset(*rows, *columns, 0), problem->batch, 0);
}

/* All of a box is loaded then, also what lies beyond the end: the gradient of a gate of ELU spills two to eight registers else. */
static int gpi__lacks_registers_for_tails(const gpi__problem *problem, int unit_alpha) {
    const uint64_t all = GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD;
    return !unit_alpha && (problem->epilogue & all) == all;
}

/* The shape, and what shared memory holds. */
static void gpi__cut_up(const gpi__problem *problem, const gpi__sm90_shape *shape, int unit_alpha,
                        gpi__sm90 *sm90) {
    sm90->shape = *shape;
    if (gpi__found_beside(problem, unit_alpha))
        sm90->shape.ping_pong = 0;
    gpi__start_kernel(shape->tile_m, shape->tile_n, unit_alpha, &sm90->kernel);
    sm90->staged = gpi__results_of(problem, gpi__box_bits(problem));
    sm90->copied = sm90->staged - gpi__sm90_moved(problem);
    sm90->loaded = gpi__sm90_loaded(problem);
    sm90->summed = gpi__sm90_summed(problem, shape, unit_alpha);
    sm90->tails = gpi__sm90_tails(problem, shape) && !gpi__lacks_registers_for_tails(problem, unit_alpha);
    if (sm90->tails && !problem->views[GPI__A].transposed && !gpi__has_groups_of_rows(problem))
        sm90->last_a = gpi__last_lines(problem->m, gpi__a_box(problem, shape));
    if (sm90->tails && problem->views[GPI__B].transposed)
        sm90->last_b = gpi__last_lines(gpi__span_columns(problem), gpi__b_box(problem, shape));
    gpi__share_memory(problem, sm90);
}

/* Whether enough stages fit beside the boxes of a wide tile: with two of them it waits. */
static int gpi__has_stages(const gpi__problem *problem, const gpi__sm90_shape *shape, int unit_alpha) {
    gpi__sm90 sm90;
    memset(&sm90, 0, sizeof sm90);
    gpi__cut_up(problem, shape, unit_alpha, &sm90);
    return shape->tile_n <= 128 || sm90.stages > 2;
}

static int gpi__makes_gate_anew(const gpi__problem *problem) {
    const uint64_t anew = GEMMEPI_GATED | GEMMEPI_UPSTREAM | GEMMEPI_BIAS;
    return (problem->epilogue & anew) == anew;
}

/* Beside wgmma's sums, of 128 columns at most, there are those in F32. Without these a gate that is made anew has fewer registers
   left. What lies at odd places takes more registers. */
static int gpi__fp8_has_registers(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    int is_odd = !gpi__epilogue_is_aligned(problem), is_wide = shape->tile_n > 128;
    if (!gpi__promotes(problem))
        return !(gpi__makes_gate_anew(problem) && is_odd && (is_wide || shape->ping_pong));
    if (shape->ping_pong || shape->tile_n == 192)
        return 0;
    if (problem->grouping.groups && is_wide && gpi__has(problem, GEMMEPI_GATED) &&
        gpi__has(problem, GEMMEPI_AUX))
        return 0;
    return !is_wide || !(gpi__column_lines(problem) ||
                         (is_odd && gpi__has(problem, GEMMEPI_AUX | GEMMEPI_RESIDUAL | GEMMEPI_GATED)));
}

/* Whether a block has all of the 128 columns whose scale is found, of a half, and rows that two warpgroups may share. */
static int gpi__has_whole_vectors(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    return shape->parts == 1 && shape->tile_m == 128 && shape->tile_n / gpi__halves_in(problem) % 128 == 0;
}

/* What shapes do not do for want of registers, or as they are made of units of 64 columns. */
static int gpi__shape_accepts(const gpi__problem *problem, const gpi__sm90_shape *shape, int unit_alpha) {
    int64_t steps = gpi__sm90_steps(problem);
    if (problem->grouping.groups && (shape->parts > 1 || (problem->grouping.is_of_k && shape->ping_pong)))
        return 0; /* warpgroups that take turns would have to know each other's k */
    if (gpi__is_invariant(problem) && shape->parts > 1)
        return 0;
    if (gpi__is_fp8_product(problem) && !gpi__fp8_has_registers(problem, shape))
        return 0;
    if (gpi__halves_in(problem) > 1 && shape->tile_n % (2 * GPI__SM90_UNIT_N))
        return 0;
    if (problem->found_scale && !gpi__has_whole_vectors(problem, shape))
        return 0;
    if (gpi__found_beside(problem, unit_alpha) && gpi__halves_in(problem) == 1 && shape->tile_n > 128)
        return 0;
    if (gpi__column_lines(problem) && shape->parts > 1)
        return 0; /* blocks that divide k share out a tile's boxes: none has all rows of a column */
    if (!shape->ping_pong && shape->parts == 1 && gpi__has_operand(problem, GPI__ROW_FACTOR) &&
        (!unit_alpha || gpi__has(problem, GEMMEPI_RESIDUAL)))
        return 0; /* a register is missing: GELU_ERF spills three */
    return (steps >= 2 * shape->parts || shape->parts == 1) && gpi__has_stages(problem, shape, unit_alpha);
}

/* Whether D leaves in whole units: by TMA, or of 8 bits in runs of eight, which takes as long (SWIGLU at 8192 x 28672 x 4096, an H100). */
static int gpi__stores_whole(const gpi__problem *problem) {
    const gpi__view *d = &problem->views[GPI__D];
    return (gpi__sm90_moved(problem) & 1) ||
           (d->bits == 8 && d->length % GPI__RUN == 0 && gpi__runs_are_aligned(problem, d));
}

/* Returns the cycles of what else the epilogue does. */
static double gpi__epilogue_cycles(const gpi__problem *problem) {
    int more =
        gpi__has(problem, GEMMEPI_AUX | GEMMEPI_BACKWARD) + gpi__has(problem, GEMMEPI_RESIDUAL) +
        gpi__halves_out(problem) * (gpi__has(problem, GEMMEPI_BACKWARD) + gpi__has(problem, GEMMEPI_BGRAD));
    double activation = gpi__activation_of(problem->epilogue)->cycles;
    double cycles = GPI__MATRIX * more + (gpi__has(problem, GEMMEPI_GATED) ? activation / 2 : activation);
    if (GPI__FORMULA(problem))
        cycles += gpi__inside_cycles(problem);
    return cycles;
}

/* Blocks that run at once in clusters, one cluster at least: those of more than two do not fill every set of
   multiprocessors (an H200 runs 30 of 4 and 15 of 8). */
static int64_t gpi__resident_blocks(const gemmepi_context *context, int cluster) {
    int64_t blocks = context->multiprocessors;
    if (cluster > 2)
        blocks -= blocks / 11;
    return blocks < cluster ? cluster : blocks / cluster * cluster;
}

static int gpi__cluster_blocks(const gpi__sm90_shape *shape) {
    return shape->cluster_m * shape->cluster_n * shape->parts;
}

/* Tiles of all blocks. Of groups of rows, whose sizes are not known here, each has half a tile beside those that are full. */
static int64_t gpi__block_tiles(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    int64_t rows, columns, tiles = gpi__sm90_tiles(problem, shape, &rows, &columns);
    int64_t groups = problem->grouping.groups < problem->m ? problem->grouping.groups : problem->m;
    if (!gpi__has_groups_of_rows(problem))
        return gpi__times(tiles, gpi__cluster_blocks(shape));
    rows = gpi__divide_up(problem->m, shape->tile_m) + groups / 2;
    return gpi__times(rows, columns * shape->cluster_n);
}

/* Of the blocks that run at once, those that have a tile, where each has one at most; else 1. */
static double gpi__sm90_share(const gemmepi_context *context, const gpi__problem *problem,
                              const gpi__sm90_shape *shape) {
    double share = (double)gpi__block_tiles(problem, shape) /
                   (double)gpi__resident_blocks(context, gpi__cluster_blocks(shape));
    return share < 1 ? share : 1;
}

/* Whether a cluster's blocks gain by lying side by side, where the lines that they write at about the same time lie together. On an H200
   gradients without a gate lose 1 to 3 percent where k is 768 or 2048, and wider tiles do not care. */
static int gpi__gains_side_by_side(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    return shape->cluster_n > 1 && shape->tile_n == 128 &&
           (!gpi__has(problem, GEMMEPI_BACKWARD) || gpi__has(problem, GEMMEPI_GATED) || problem->k > 2048);
}

/* Lines that are loaded of a tile: those that exist, or where they lie along m or n the boxes in which one does. */
static double gpi__lines_loaded(int64_t extent, int lines, int is_side_by_side) {
    int64_t there = is_side_by_side ? extent : gpi__divide_up(extent, 64) * 64;
    return there < lines ? (double)there : lines;
}

static double gpi__load_slowness(const gpi__view *view) {
    int64_t bytes = view->lines > 1 ? view->ld * view->bits / 8 : 0;
    return bytes % 32 ? GPI__SM90_SECTORS : bytes % 128 ? GPI__SM90_LINES : 1;
}

/* Returns the cycles to load a step of k of a block's tile: with a tile on every multiprocessor
   128 x 128 is loaded more slowly than it is multiplied, 128 x 256 is not. */
static double gpi__load_cycles(const gemmepi_context *context, const gpi__problem *problem,
                               const gpi__sm90_shape *shape) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    int halves = gpi__halves_in(problem), cluster = gpi__cluster_blocks(shape);
    double rows =
        gpi__lines_loaded(problem->m, shape->tile_m, !a->transposed) * gpi__load_slowness(a) * GPI__SM90_LINE;
    double columns = halves *
                     gpi__lines_loaded(gpi__half_columns(problem), shape->tile_n / halves, b->transposed) *
                     gpi__load_slowness(b) * GPI__SM90_LINE;
    double own = rows / shape->cluster_n + columns / shape->cluster_m;
    double blocks = gpi__sm90_share(context, problem, shape) * (double)gpi__resident_blocks(context, cluster);
    double all = blocks * (own + rows + columns) / 2 / GPI__SM90_RATE;
    if (gpi__has_groups_of_rows(problem))
        all *= GPI__SM90_GROUPS;
    own /= GPI__SM90_BLOCK_RATE;
    return own > all ? own : all;
}

#define GPI__SM90_FEW_ROWS 64 /* FEW_ROWS in sm90/load.cuh */

static int gpi__fetches_ahead(const gpi__problem *problem) {
    return problem->m <= GPI__SM90_FEW_ROWS && !problem->grouping.groups && !problem->found_scale &&
           !gpi__has(problem, GEMMEPI_BACKWARD) && !gpi__column_lines(problem);
}

/* Of a short k there is little to fetch ahead: 5 x 448 x 1 took an H200 1.85 us, where 1.3 were counted. */
static double gpi__launch_cycles(const gpi__problem *problem) {
    double launch = GPI__SM90_LAUNCH - GPI__SM90_AHEAD * (double)gpi__sm90_steps(problem);
    if (!gpi__fetches_ahead(problem))
        return GPI__SM90_LAUNCH;
    return launch > GPI__SM90_FEW ? launch : GPI__SM90_FEW;
}

/* Of formulas where warpgroups take turns: boxes of two matrices leave four stages, which are loaded too late. */
static double gpi__stages_slowness(const gpi__problem *problem, const gpi__sm90_shape *shape,
                                   int unit_alpha) {
    gpi__sm90 sm90;
    if (!problem->formula || !shape->ping_pong)
        return 1;
    memset(&sm90, 0, sizeof sm90);
    gpi__cut_up(problem, shape, unit_alpha, &sm90);
    return sm90.stages > 4 ? 1 : GPI__SM90_FEW_STAGES;
}

/* Returns the microseconds that the product takes with a shape, roughly. Where warpgroups take turns, the epilogue of one is behind the
   sums of the other, but half of it shows. */
static double gpi__sm90_microseconds(const gemmepi_context *context, const gpi__problem *problem,
                                     const gpi__sm90_shape *shape, int unit_alpha) {
    double megahertz = gpi__chip_of(context->arch)->megahertz;
    double waves = (double)gpi__divide_up(gpi__block_tiles(problem, shape),
                                          gpi__resident_blocks(context, gpi__cluster_blocks(shape)));
    double area = (double)shape->tile_m * shape->tile_n;
    double multiplied = area > GPI__SM90_LEAST ? area : GPI__SM90_LEAST;
    double steps = (double)gpi__divide_up(gpi__sm90_steps(problem), shape->parts);
    double multiply =
        multiplied * GPI__SM90_LINE / (gpi__is_fp8_product(problem) ? GPI__SM90_FP8_PAIRS : GPI__SM90_PAIRS);
    double load = gpi__load_cycles(context, problem, shape);
    double slowness = gpi__stages_slowness(problem, shape, unit_alpha);
    double sums, storing, finish, cycles = gpi__launch_cycles(problem);
    if (shape->tile_n == 64 && !gpi__fetches_ahead(problem))
        slowness *= GPI__SM90_NARROW;
    if (!shape->ping_pong && shape->parts == 1 && !gpi__is_fp8_product(problem))
        slowness *= GPI__SM90_TOGETHER;
    multiply *= slowness, load *= slowness;
    sums = steps * (multiply > load ? multiply : load);
    storing = GPI__STORING + (gpi__stores_whole(problem) ? 0 : GPI__COPYING);
    finish = area / 128 * (storing + gpi__epilogue_cycles(problem)) / shape->parts;
    if (shape->parts > 1)
        waves += GPI__SM90_AGAIN * (waves - 1);
    if (shape->ping_pong && !gpi__found_beside(problem, unit_alpha))
        cycles += waves * (sums + finish / 2 - GPI__SM90_HIDDEN);
    else
        cycles +=
            waves *
            (sums + finish +
             (shape->parts > 1 ? GPI__SM90_MEET + GPI__SM90_MEET_AGAIN * log2((double)shape->parts) : 0));
    if (gpi__gains_side_by_side(problem, shape))
        cycles *= GPI__SM90_ABREAST;
    return cycles / megahertz +
           (gpi__sm90_summed(problem, shape, unit_alpha) ? 0 : gpi__sums_microseconds(problem));
}

/* Whether a shape of the table takes the problem. The first one takes everything, or with scales that are found the first that has
   whole vectors. */
static int gpi__accepts_shape(const gemmepi_context *context, const gpi__problem *problem,
                              const gpi__sm90_shape *shapes, const gpi__candidate *candidate) {
    const gpi__sm90_shape *shape = &shapes[candidate->shape];
    int any = 0;
    while (problem->found_scale && !gpi__has_whole_vectors(problem, &shapes[any]))
        any++;
    return candidate->parts == 1 && ((candidate->shape == any && !problem->grouping.is_of_k) ||
                                     (gpi__shape_accepts(problem, shape, candidate->unit_alpha) &&
                                      gpi__cluster_blocks(shape) <= context->multiprocessors));
}

static double gpi__sm90_estimate(const gemmepi_context *context, const gpi__problem *problem,
                                 const gpi__candidate *candidate) {
    const gpi__sm90_shape *shapes = gpi__shapes_for(problem);
    return gpi__accepts_shape(context, problem, shapes, candidate)
               ? gpi__sm90_microseconds(context, problem, &shapes[candidate->shape], candidate->unit_alpha)
               : GPI__NEVER;
}

/* Rows of clusters' tiles in which columns are taken one after another: what is under way at a time is about square. No band is much
   lower than the others. */
static unsigned gpi__sm90_band(const gemmepi_context *context, const gpi__sm90_shape *shape, int64_t rows) {
    int64_t area = (int64_t)context->multiprocessors * shape->tile_m * shape->tile_n;
    int64_t height = (int64_t)shape->tile_m * shape->cluster_m, high = 1, bands;
    while ((high + 1) * height * (high + 1) * height <= area)
        high++;
    bands = (rows + high / 2) / high;
    return (unsigned)gpi__divide_up(rows, bands ? bands : 1);
}

#endif
