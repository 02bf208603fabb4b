/* The second kernel of the route fused, gemm_sm80.cu: from Ampere on, and on Hopper for F32, for what TMA does not take and where
   it takes less time. */
#ifndef GEMMEPI_PRODUCT_ENGINES_SM80_H
#define GEMMEPI_PRODUCT_ENGINES_SM80_H

#include "sm90_fp8.h"

#define GEMMEPI__SM80_LINE    128 /* gemm_sm80.cu: bytes of k of a stage */
#define GEMMEPI__EXACT_CYCLES 20  /* of an element of F32 more, where activations are exact, on an H200 */

/* A way to cut the product up: its kernel is compiled for it. */
typedef struct gemmepi__sm80_shape {
    short tile_m, tile_n, warps_m, warps_n, stages;
    short blocks; /* for so many of a multiprocessor registers are shared out */
    short unit;   /* bytes: less at a time to copy would take more registers than there are */
    short kinds;  /* that gain by it, or that it has registers for */
} gemmepi__sm80_shape;

/* How the kernel multiplies: with mma.sync, or strict F32 by fused multiply-adds. */
enum { GEMMEPI__OF_16_BITS = 1, GEMMEPI__OF_TF32 = 2, GEMMEPI__OF_F32 = 4, GEMMEPI__OF_ALL = 7 };

/* Lines along m of 16 bits are of 64 elements; strict F32 has two sums of each element in registers. */
static const gemmepi__sm80_shape gemmepi__sm80_shapes[] = {
    {64, 128, 2, 2, 3, 2, 2, GEMMEPI__OF_ALL}, /* first the one for everything */
    {128, 128, 2, 2, 3, 2, 16, GEMMEPI__OF_16_BITS | GEMMEPI__OF_TF32},
    {128, 256, 2, 4, 3, 1, 8, GEMMEPI__OF_16_BITS | GEMMEPI__OF_TF32},
    {64, 64, 2, 2, 4, 3, 2, GEMMEPI__OF_ALL},
    {32, 64, 2, 2, 4, 3, 4, GEMMEPI__OF_TF32 | GEMMEPI__OF_F32},
    {128, 128, 2, 4, 3, 1, 16, GEMMEPI__OF_F32},
};

/* How a problem is cut up: into tiles, and k into parts. */
typedef struct gemmepi__sm80_cut {
    const gemmepi__sm80_shape *shape;
    int parts; /* more than one: their sums go to workspace, and the pass adds them up and finishes */
} gemmepi__sm80_cut;

typedef struct gemmepi__sm80 {
    gemmepi__sm80_shape shape;
    int parts;
    int staged;  /* what leaves by way of shared memory: bits 1 D, 2 AUX */
    int copied;  /* in words, as it does not lie at multiples of 16 bytes */
    int applied; /* alpha is 1 and there is no C: compiled in */
    gemmepi__launch launch;
    gemmepi__sm80_params params; /* all but pointers and scalars */
    size_t product_bytes;        /* of the parts' sums */
    gemmepi__pass pass;
    size_t partial_bytes; /* BGRAD: of the kernel's sums of a warp's rows, or the pass's */
    gemmepi__sums sums;
} gemmepi__sm80;

/* >>what may go there */

/* The rule that keeps a problem from every engine, or NULL. What gemm_sm90.cu takes this kernel takes, too. */
static const char *gemmepi__engines_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
    const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
    if (!gemmepi__chip_has(context->arch, GEMMEPI__MMA_SYNC))
        return "its kernels are for compute capability 8.0 and later";
    if (gemmepi__is_fp8_product(problem))
        return gemmepi__fp8_engines_rule(context, problem);
    if (gemmepi__is_of_weights(problem))
        return gemmepi__is_invariant(problem)
                   ? "BATCH_INVARIANT: the kernel for weights in I8 divides k among more warps or fewer"
                   : gemmepi__extents_rule(problem);
    if (a->dtype != b->dtype ||
        (a->dtype != GEMMEPI_BF16 && a->dtype != GEMMEPI_F16 && a->dtype != GEMMEPI_F32))
        return "a and b are not both BF16, both F16, both F32 or both of fp8, nor b weights in I8 and a BF16 or F16";
    return gemmepi__extents_rule(problem);
}

/* Our kernels read the halves of a gated B each by itself. */
static int gemmepi__copy_unit(const gemmepi__problem *problem, int operand) {
    const gemmepi__view *view = &problem->views[operand];
    int has_halves = operand == GEMMEPI__B && gemmepi__halves_in(problem) > 1 && !view->transposed;
    return gemmepi__unit_of(problem, view, has_halves ? gemmepi__half_columns(problem) * view->bits / 8 : 0);
}

static unsigned gemmepi__sm80_shared(const gemmepi__sm80_shape *shape) {
    return (unsigned)((shape->tile_m + shape->tile_n) * GEMMEPI__SM80_LINE * shape->stages);
}

static int gemmepi__sm80_kind(const gemmepi__problem *problem) {
    return problem->common != GEMMEPI_F32 ? GEMMEPI__OF_16_BITS
           : gemmepi__is_tf32(problem)    ? GEMMEPI__OF_TF32
                                          : GEMMEPI__OF_F32;
}

static int gemmepi__is_fma(const gemmepi__problem *problem) {
    return gemmepi__sm80_kind(problem) == GEMMEPI__OF_F32;
}

static int gemmepi__sm80_shape_takes(const gemmepi__problem *problem, const gemmepi__sm80_shape *shape,
                                     int arch) {
    int halves = gemmepi__halves_in(problem), unit = gemmepi__copy_unit(problem, GEMMEPI__A);
    if (unit > gemmepi__copy_unit(problem, GEMMEPI__B))
        unit = gemmepi__copy_unit(problem, GEMMEPI__B);
    if (shape->tile_n / halves / shape->warps_n % 32)
        return 0; /* a warp's runs are of 32 columns, of both halves */
    if (!gemmepi__has_whole_states(problem, shape->tile_n / halves / shape->warps_n))
        return 0;
    if (halves > 1 && !problem->views[GEMMEPI__B].transposed && shape->tile_n / halves % 64)
        return 0; /* lines of 64 along n are of one half */
    if (!(shape->kinds & gemmepi__sm80_kind(problem)))
        return 0;
    if (unit < shape->unit ||
        (shape->tile_m > 64 && gemmepi__has(problem, GEMMEPI_BGRAD) &&
         (shape->tile_n > 128 || gemmepi__is_fma(problem) || gemmepi__has(problem, GEMMEPI_GATED) ||
          gemmepi__activation_has(problem->epilogue, GEMMEPI__IS_WIDE_IN_SUMS))))
        return 0; /* registers would not do */
    return gemmepi__sm80_shared(shape) <= gemmepi__chip_of(arch)->most_shared;
}

/* >>how long it takes */

static int64_t gemmepi__sm80_tiles(const gemmepi__problem *problem, const gemmepi__sm80_shape *shape,
                                   int64_t *rows, int64_t *columns) {
    *rows = gemmepi__divide_up(problem->m, shape->tile_m);
    *columns =
        gemmepi__divide_up(gemmepi__half_columns(problem), shape->tile_n / gemmepi__halves_in(problem));
    return gemmepi__offset(gemmepi__offset(*rows, *columns, 0), problem->batch, 0);
}

/* Of k. */
static int64_t gemmepi__stage_k(const gemmepi__problem *problem) {
    return GEMMEPI__SM80_LINE * 8 / problem->views[GEMMEPI__A].bits;
}

/* Pairs that a multiprocessor multiplies in a cycle. */
static double gemmepi__sm80_rate(const gemmepi__problem *problem, const gemmepi__chip *chip) {
    if (gemmepi__is_fma(problem))
        return chip->fma;
    return problem->common == GEMMEPI_F32 ? chip->mma / 2 : chip->mma;
}

/* How much longer multiply-adds take than that, fitted to products on an H200: A along m is read a word at a time, small tiles load
   more for what they multiply, large ones less, and four warps of wide tiles, alone on a multiprocessor, wait for what they load. */
static double gemmepi__fma_slowness(const gemmepi__problem *problem, const gemmepi__sm80_shape *shape,
                                    int blocks) {
    double slowness = problem->views[GEMMEPI__A].transposed ? 1.42 : 1.25;
    slowness *= shape->tile_m < 64 ? 1.1 : shape->tile_m > 64 ? 0.9 : 1;
    if (shape->tile_n > 64 && blocks * shape->warps_m * shape->warps_n <= 4)
        slowness *= 2.1;
    return slowness;
}

/* Bytes that a multiprocessor copies in a cycle, 16, 8, 4 or 2 at a time. Measured on an H200. */
static double gemmepi__copy_rate(int unit) {
    return unit == 16 ? 50 : unit == 8 ? 25 : unit == 4 ? 17 : 10;
}

/* Copies of 2 bytes are loads of the threads' own, which wait for each other where few blocks run: for as long as so many would. */
#define GEMMEPI__SM80_LEAST_AT_WORK 2.5

/* That a multiprocessor runs at a time. */
static int gemmepi__sm80_blocks(const gemmepi_context *context, const gemmepi__sm80_shape *shape) {
    int blocks = (int)(gemmepi__chip_of(context->arch)->most_shared / gemmepi__sm80_shared(shape));
    return blocks < shape->blocks ? blocks : shape->blocks;
}

/* Microseconds with a shape, roughly: a launch takes 2400 cycles to begin and end, a step of k 600 beside what it multiplies or copies,
   whichever is more, for all blocks of a multiprocessor, which share it in their epilogues, too. Fitted to the
   times of bench/candidates_h100.csv. own: the kernel's problem, bare where k is in parts */
static double gemmepi__sm80_microseconds(const gemmepi_context *context, const gemmepi__problem *problem,
                                         const gemmepi__problem *own, const gemmepi__sm80_cut *cut) {
    const gemmepi__sm80_shape *shape = cut->shape;
    const gemmepi__chip *chip = gemmepi__chip_of(context->arch);
    int64_t rows, columns, tiles = gemmepi__sm80_tiles(own, shape, &rows, &columns);
    int64_t each = gemmepi__divide_up(gemmepi__times(tiles, cut->parts),
                                      context->multiprocessors); /* tiles of a multiprocessor */
    int blocks = gemmepi__sm80_blocks(context, shape);
    double area = (double)shape->tile_m * shape->tile_n, lines[2];
    int64_t of_stage = gemmepi__stage_k(problem);
    double steps = (double)gemmepi__divide_up(gemmepi__divide_up(problem->k, cut->parts), of_stage);
    double multiply = area * (double)of_stage / gemmepi__sm80_rate(problem, chip), copy;
    double finish = cut->parts > 1 ? 2 * GEMMEPI__STORING_CYCLES
                                   : GEMMEPI__STORING_CYCLES + gemmepi__epilogue_cycles(problem),
           waves;
    if (cut->parts > 1 && gemmepi__leaves_states(problem))
        return GEMMEPI__NEVER; /* the pass behind it has no row's lanes side by side */
    lines[0] = shape->tile_m / gemmepi__copy_rate(gemmepi__copy_unit(problem, GEMMEPI__A));
    lines[1] = shape->tile_n / gemmepi__copy_rate(gemmepi__copy_unit(problem, GEMMEPI__B));
    copy = (lines[0] + lines[1]) * GEMMEPI__SM80_LINE;
    if (blocks > each)
        blocks = (int)each;
    if (gemmepi__is_fma(problem))
        multiply *= gemmepi__fma_slowness(own, shape, blocks);
    if (gemmepi__copy_unit(problem, GEMMEPI__A) > 2 && gemmepi__copy_unit(problem, GEMMEPI__B) > 2)
        copy *= blocks;
    else
        copy *= blocks > GEMMEPI__SM80_LEAST_AT_WORK ? blocks : GEMMEPI__SM80_LEAST_AT_WORK;
    waves = (double)gemmepi__divide_up(each, blocks ? blocks : 1);
    if (problem->common == GEMMEPI_F32 && cut->parts == 1 && gemmepi__wants_exact(problem))
        finish += gemmepi__activation_costs(problem->epilogue) ? GEMMEPI__EXACT_CYCLES : 0;
    finish *= blocks * area / 128;
    return (2400 + waves * (steps * (600 + (blocks * multiply > copy ? blocks * multiply : copy)) + finish)) /
               chip->megahertz +
           (cut->parts > 1 ? gemmepi__pass_microseconds(context, problem, cut->parts)
                           : gemmepi__sums_microseconds(problem));
}

/* Whether k has so many parts of two stages, and there are not already as many tiles as run at a time, of which m must not decide.
   problem: the kernel's */
static int gemmepi__sm80_divides(const gemmepi_context *context, const gemmepi__problem *problem,
                                 const gemmepi__sm80_cut *cut) {
    const gemmepi__sm80_shape *shape = cut->shape;
    int64_t rows, columns, tiles = gemmepi__sm80_tiles(problem, shape, &rows, &columns);
    int64_t of_stage = gemmepi__stage_k(problem);
    int64_t at_a_time = (int64_t)context->multiprocessors * gemmepi__sm80_blocks(context, shape);
    return cut->parts == 1 || (!gemmepi__is_invariant(problem) && problem->k >= 2 * of_stage * cut->parts &&
                               tiles > 0 && tiles * cut->parts <= at_a_time);
}

static gemmepi__sm80_cut gemmepi__choose_sm80(const gemmepi_context *context, const gemmepi__problem *problem,
                                              double *microseconds) {
    static const int parts[] = {1, 2, 3, 4, 6, 8, 12, 16};
    gemmepi__problem bare = gemmepi__bare_problem(problem);
    gemmepi__sm80_cut best = {NULL, 1};
    size_t i, j;
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__sm80_shapes); i++)
        for (j = 0; j < GEMMEPI__COUNT(parts); j++) {
            const gemmepi__problem *own = parts[j] > 1 ? &bare : problem;
            gemmepi__sm80_cut cut;
            double time;
            cut.shape = &gemmepi__sm80_shapes[i];
            cut.parts = parts[j];
            if ((i && !gemmepi__sm80_shape_takes(own, cut.shape, context->arch)) ||
                !gemmepi__sm80_divides(context, own, &cut))
                continue;
            time = gemmepi__sm80_microseconds(context, problem, own, &cut);
            if (!best.shape || time < *microseconds) {
                best = cut;
                *microseconds = time;
            }
        }
    return best;
}

/* >>building */

/* Of each part but the last: whole stages. */
static int64_t gemmepi__part_k(const gemmepi__problem *problem, int parts) {
    int64_t of_stage = gemmepi__stage_k(problem);
    return gemmepi__divide_up(gemmepi__divide_up(problem->k, parts), of_stage) * of_stage;
}

/* How the operands lie. */
static void gemmepi__append_lines(gemmepi__text *text, const gemmepi__problem *problem) {
    gemmepi__append(text, "#define GEMMEPI_A_ROWS %d\n#define GEMMEPI_B_ROWS %d\n",
                    !problem->views[GEMMEPI__A].transposed, (int)problem->views[GEMMEPI__B].transposed);
    gemmepi__append(text, "#define GEMMEPI_A_UNIT %d\n#define GEMMEPI_B_UNIT %d\n",
                    gemmepi__copy_unit(problem, GEMMEPI__A), gemmepi__copy_unit(problem, GEMMEPI__B));
}

static void gemmepi__append_sm80_defines(gemmepi__text *text, const gemmepi__problem *problem,
                                         const gemmepi__sm80 *sm80) {
    const gemmepi__sm80_shape *shape = &sm80->shape;
    gemmepi__append_epilogue_defines(text, problem, gemmepi__epilogue_is_aligned(problem), 0, 0);
    gemmepi__append(text, "#define GEMMEPI_TILE_M %d\n#define GEMMEPI_TILE_N %d\n", shape->tile_m,
                    shape->tile_n);
    gemmepi__append(text, "#define GEMMEPI_WARPS_M %d\n#define GEMMEPI_WARPS_N %d\n", shape->warps_m,
                    shape->warps_n);
    gemmepi__append(text, "#define GEMMEPI_STAGES %d\n#define GEMMEPI_BLOCKS %d\n", shape->stages,
                    shape->blocks);
    gemmepi__append(text, "#define GEMMEPI_STAGED %d\n#define GEMMEPI_COPIED %d\n", sm80->staged,
                    sm80->copied);
    gemmepi__append(text, "#define GEMMEPI_APPLIED %d\n", sm80->applied || sm80->parts > 1);
    gemmepi__append(text, "#define GEMMEPI_IN_PARTS %d\n", sm80->parts > 1);
    gemmepi__append_lines(text, problem);
    gemmepi__append(text, "#define GEMMEPI_WHOLE %d\n", gemmepi__half_columns(problem) % GEMMEPI__RUN == 0);
    gemmepi__append(text, "#define GEMMEPI_FMA %d\n", gemmepi__is_fma(problem));
    gemmepi__append_operands(text, problem);
}

static gemmepi_status gemmepi__get_sm80_kernel(gemmepi_context *context, const gemmepi__problem *problem,
                                               gemmepi__sm80 *sm80) {
    int dtype = problem->common;
    char prologue[1536], words[160];
    gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
    gemmepi__append_sm80_defines(&text, problem, sm80);
    gemmepi__name_kernel(&sm80->launch, "gemmepi_sm80_%s_%dx%d%s%s",
                         dtype == GEMMEPI_F32 && !gemmepi__is_fma(problem)
                             ? "TF32"
                             : gemmepi__dtype((gemmepi_dtype)dtype)->name,
                         sm80->shape.tile_m, sm80->shape.tile_n, sm80->parts > 1 ? "_parts" : "",
                         gemmepi__name_of_epilogue(problem, dtype, words));
    return gemmepi__get_product_kernel(context, problem, "gemm_sm80.cu", prologue, "gemmepi_mma",
                                       &sm80->launch);
}

/* The shape, and what follows from it. problem: as the kernel has it, bare where k is in parts */
static void gemmepi__cut_up_sm80(const gemmepi__problem *problem, const gemmepi__sm80_cut *cut, int applied,
                                 gemmepi__sm80 *sm80) {
    /* of 32 bits a row's four lanes write whole sectors, but for these */
    int wide = gemmepi__results_of(problem, 32) - gemmepi__moved_of(problem, 32);
    sm80->shape = *cut->shape;
    sm80->parts = (int)gemmepi__divide_up(problem->k, gemmepi__part_k(problem, cut->parts)); /* none empty */
    sm80->applied = applied;
    sm80->staged = gemmepi__results_of(problem, 16) | wide;
    sm80->copied = sm80->staged - gemmepi__moved_of(problem, 16);
}

/* What a block asks for: so much that no multiprocessor has more than its share. Those with room for more would take it, and others
   have less: 1.5 of the time on an H200, where the launch before is still on some of them, or three have room and two are a share. */
static unsigned gemmepi__sm80_asked(const gemmepi_context *context, const gemmepi__sm80 *sm80) {
    unsigned each = (unsigned)gemmepi__divide_up(sm80->launch.blocks, context->multiprocessors);
    unsigned needed = gemmepi__sm80_shared(&sm80->shape);
    unsigned least = gemmepi__chip_of(context->arch)->most_shared / (each + 1) + 16;
    return needed < least ? least / 16 * 16 : needed;
}

static gemmepi_status gemmepi__lay_out_sm80(const gemmepi_context *context, const gemmepi__problem *problem,
                                            gemmepi__sm80 *sm80) {
    const gemmepi__sm80_shape *shape = &sm80->shape;
    gemmepi__sm80_params *params = &sm80->params;
    int64_t rows, columns, tiles = gemmepi__sm80_tiles(problem, shape, &rows, &columns), square = 1, bands;
    int64_t area = (int64_t)context->multiprocessors * shape->blocks * shape->tile_m * shape->tile_n;
    int warp_rows = shape->tile_m / shape->warps_m;
    if (tiles <= 0 || tiles > INT_MAX / sm80->parts)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
    while ((square + 1) * shape->tile_m * (square + 1) * shape->tile_m <= area)
        square++; /* what is under way at a time is about square */
    bands = (rows + square / 2) / square;
    params->tile_rows = (unsigned)rows;
    params->band = (unsigned)gemmepi__divide_up(rows, bands ? bands : 1);
    params->k = (int)problem->k;
    params->parts = (unsigned)sm80->parts;
    params->part_k = (int)gemmepi__part_k(problem, sm80->parts);
    params->a = gemmepi__kernel_matrix_of(&problem->views[GEMMEPI__A]);
    params->b = gemmepi__kernel_matrix_of(&problem->views[GEMMEPI__B]);
    params->epilogue.column_tiles = (unsigned)columns;
    params->epilogue.row_tiles = (unsigned)gemmepi__divide_up(problem->m, warp_rows);
    sm80->launch.blocks = (unsigned)(tiles * sm80->parts);
    sm80->launch.threads_x = (unsigned)(32 * shape->warps_m * shape->warps_n);
    sm80->launch.threads_y = 1;
    sm80->launch.shared = gemmepi__sm80_asked(context, sm80);
    sm80->partial_bytes = gemmepi__line_bytes(problem, params->epilogue.row_tiles);
    return GEMMEPI_OK;
}

/* The sums of each part of k, one after another, in workspace, and what adds them up. */
static gemmepi_status gemmepi__build_parts(gemmepi_context *context, const gemmepi__problem *problem,
                                           const gemmepi__view *part, int applied, gemmepi__sm80 *sm80) {
    int64_t elements = gemmepi__offset(gemmepi__times(problem->batch, sm80->parts), part->batch_stride, 0);
    gemmepi_status status;
    if (elements < 0)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the product has more than 2^56 elements");
    sm80->product_bytes = gemmepi__bytes_for(elements, sizeof(float));
    status = gemmepi__build_pass(context, problem, part, sm80->parts, applied, &sm80->pass);
    sm80->partial_bytes = sm80->pass.partial_bytes;
    return status;
}

/* As a shape that takes it, and parts that are not too many. */
static gemmepi_status gemmepi__sm80_build(gemmepi_context *context, const gemmepi__problem *problem,
                                          const gemmepi__candidate *candidate, void *built) {
    gemmepi__sm80 *sm80 = (gemmepi__sm80 *)built;
    gemmepi__sm80_cut cut;
    gemmepi__problem bare;
    const gemmepi__problem *own = problem; /* the kernel's */
    unsigned row_tiles;
    gemmepi_status status;
    memset(sm80, 0, sizeof *sm80);
    cut.shape = &gemmepi__sm80_shapes[candidate->shape];
    cut.parts = candidate->parts;
    if (cut.parts > 1) {
        gemmepi__view *d = &bare.views[GEMMEPI__D];
        bare = gemmepi__bare_problem(problem);
        d->batch_stride =
            (int64_t)gemmepi__round_up((size_t)d->batch_stride, 4); /* parts begin at multiples of 16 bytes */
        own = &bare;
    }
    gemmepi__cut_up_sm80(own, &cut, candidate->applied, sm80);
    gemmepi__fill_epilogue(own, &sm80->params.epilogue, sm80->params.extras, sm80->params.places);
    status = gemmepi__lay_out_sm80(context, own, sm80);
    row_tiles = sm80->params.epilogue.row_tiles;
    if (!status)
        status = gemmepi__get_sm80_kernel(context, own, sm80);
    if (!status && cut.parts > 1) {
        status = gemmepi__build_parts(context, problem, &own->views[GEMMEPI__D], candidate->applied, sm80);
        row_tiles = sm80->pass.params.epilogue.row_tiles;
    }
    if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
        status = gemmepi__build_sums(context, problem, row_tiles, &sm80->sums);
    return status;
}

static void gemmepi__sm80_describe(const void *built, gemmepi__built_details *details) {
    const gemmepi__sm80 *sm80 = (const gemmepi__sm80 *)built;
    details->launch = &sm80->launch;
    details->pass = sm80->pass.launch.function ? &sm80->pass.launch : NULL;
    details->sums = &sm80->sums;
    details->tile_m = sm80->shape.tile_m;
    details->tile_n = sm80->shape.tile_n;
    details->workspace_size = gemmepi__round_up(sm80->product_bytes, 256) +
                              gemmepi__round_up(sm80->partial_bytes, 256) + sm80->sums.partial_bytes;
}

/* >>running */

/* The primary context is current. */
static gemmepi_status gemmepi__sm80_run(const gemmepi_context *context, const gemmepi__problem *problem,
                                        const void *built, const gemmepi__arguments *arguments,
                                        char *workspace, gemmepi_stream stream) {
    const gemmepi__sm80 *sm80 = (const gemmepi__sm80 *)built;
    gemmepi__sm80_params params = sm80->params;
    char *partials = gemmepi__past(workspace, sm80->product_bytes);
    gemmepi_status status = gemmepi__clear_amax(context, problem, arguments, stream);
    if (status)
        return status;
    gemmepi__point_epilogue(arguments, sm80->applied, partials, &params.epilogue, params.extras,
                            params.places);
    params.a.data = arguments->pointers[GEMMEPI__A];
    params.b.data = arguments->pointers[GEMMEPI__B];
    if (sm80->parts > 1)
        params.epilogue.d.data = workspace;
    status = gemmepi__launch_kernel(context, &sm80->launch, &params, "the product", stream);
    if (!status && sm80->parts > 1)
        status = gemmepi__run_pass(context, &sm80->pass, arguments, workspace, partials, stream);
    if (status)
        return status;
    return gemmepi__run_sums(context, &sm80->sums, arguments, partials,
                             gemmepi__past(partials, sm80->partial_bytes), stream);
}

/* >>in words */

static void gemmepi__sm80_explain(const gemmepi__problem *problem, const void *built, gemmepi__text *text) {
    const gemmepi__sm80 *sm80 = (const gemmepi__sm80 *)built;
    const gemmepi__sm80_shape *shape = &sm80->shape;
    (void)problem;
    gemmepi__append(text, "  %s: product%s, %u blocks of %u threads, tiles of %d x %d, %d stages",
                    sm80->launch.name, sm80->parts > 1 ? "" : " and epilogue", sm80->launch.blocks,
                    sm80->launch.threads_x, shape->tile_m, shape->tile_n, shape->stages);
    if (sm80->parts > 1)
        gemmepi__append(text, ", k in %d parts", sm80->parts);
    gemmepi__append(text, "\n");
    gemmepi__explain_pass(text, &sm80->pass.launch, "the sum of k's parts, ");
    gemmepi__explain_sums(text, &sm80->sums);
}

/* >>the engine */

static const char *gemmepi__sm80_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
    (void)context;
    if (gemmepi__is_fp8_product(problem))
        return "it does not multiply fp8";
    if (problem->found_scale)
        return "it finds no scales of d";
    return gemmepi__is_of_weights(problem) ? "a and b differ in dtype" : gemmepi__half_group_rule(problem);
}

static void gemmepi__sm80_choose(const gemmepi_context *context, const gemmepi__problem *problem,
                                 gemmepi__candidate *candidate) {
    gemmepi__sm80_cut cut = gemmepi__choose_sm80(context, problem, &candidate->microseconds);
    candidate->shape = (int)(cut.shape - gemmepi__sm80_shapes);
    candidate->parts = cut.parts;
}

static double gemmepi__sm80_estimate(const gemmepi_context *context, const gemmepi__problem *problem,
                                     const gemmepi__candidate *candidate) {
    gemmepi__problem own = candidate->parts > 1 ? gemmepi__bare_problem(problem) : *problem;
    gemmepi__sm80_cut cut;
    cut.shape = &gemmepi__sm80_shapes[candidate->shape];
    cut.parts = candidate->parts;
    return gemmepi__sm80_shape_takes(&own, cut.shape, context->arch) &&
                   gemmepi__sm80_divides(context, &own, &cut)
               ? gemmepi__sm80_microseconds(context, problem, &own, &cut)
               : GEMMEPI__NEVER;
}

static void gemmepi__sm80_tile(const gemmepi__candidate *candidate, int *tile_m, int *tile_n) {
    *tile_m = gemmepi__sm80_shapes[candidate->shape].tile_m;
    *tile_n = gemmepi__sm80_shapes[candidate->shape].tile_n;
}

static const gemmepi__engine gemmepi__sm80_engine = {"sm80",
                                                     GEMMEPI__HAS_SM80,
                                                     0.92,
                                                     gemmepi__sm80_rule,
                                                     NULL,
                                                     gemmepi__sm80_choose,
                                                     GEMMEPI__COUNT(gemmepi__sm80_shapes),
                                                     gemmepi__sm80_estimate,
                                                     gemmepi__sm80_tile,
                                                     GEMMEPI__HAS_SM80 ? gemmepi__sm80_build : NULL,
                                                     gemmepi__sm80_describe,
                                                     gemmepi__sm80_explain,
                                                     GEMMEPI__HAS_SM80 ? gemmepi__sm80_run : NULL};

#endif
