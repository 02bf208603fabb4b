/* The common epilogue (kernels/epilogue.cuh) as the host sees it, and the pass that runs it over a finished product. */
#ifndef GEMMEPI_PRODUCT_PARTS_PASS_H
#define GEMMEPI_PRODUCT_PARTS_PASS_H

#include "../../device/chip.h"
#include "sums.h"

#define GPI__PASS_THREADS    256 /* pass.cu */
#define GPI__PASS_MOST_STEPS 64  /* rows that a thread adds up in the accumulator's type */
#define GPI__RUN             8   /* types.cuh: columns of one thread */

/* >>the epilogue of any kernel of ours */

static const char *gpi__type_name(const gpi__problem *problem, int operand) {
    int dtype = problem->views[operand].dtype;
    return gpi__type(dtype ? dtype : problem->accumulator);
}

/* Where the launch parameters have the operands, and what defines call the types of matrices. */
#define GPI__EPILOGUE_PLACE(name) offsetof(gpi__epilogue_params, name)
static const struct {
    int operand;
    const char *name;
    size_t place;
} gpi__epilogue_matrices[] = {{GPI__C, "C", GPI__EPILOGUE_PLACE(c)},
                              {GPI__D, "D", GPI__EPILOGUE_PLACE(d)},
                              {GPI__BIAS, "BIAS", GPI__EPILOGUE_PLACE(bias)},
                              {GPI__AUX, "AUX", GPI__EPILOGUE_PLACE(aux)},
                              {GPI__RESIDUAL, "RESIDUAL", GPI__EPILOGUE_PLACE(residual)}};
static const size_t gpi__epilogue_scales[] = {/* of A to RESIDUAL */
                                              GPI__EPILOGUE_PLACE(scale_a),
                                              GPI__EPILOGUE_PLACE(scale_b),
                                              GPI__EPILOGUE_PLACE(scale_c),
                                              GPI__EPILOGUE_PLACE(scale_d),
                                              GPI__EPILOGUE_PLACE(scale_aux),
                                              GPI__EPILOGUE_PLACE(scale_residual)};

/* The bits of the epilogue that epilogue.cuh knows; sums are none of its. */
#define GPI__KERNEL_EPILOGUE                                                                      \
    (GEMMEPI_ACTIVATION_MASK | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL | \
     GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_UPSTREAM)

/* From this k on a product's bound has more than twice the room that GELU_ERF's form of long sums takes: that is off by 2^-18.2 of v,
   and 1.13 (4 + k/8) 2^-24 of v is the least that the bound leaves. Whole numbers' sums are exact, and their bound knows no k. */
#define GPI__LONG_SUM 768
static int gpi__has_long_sums(const gpi__problem *problem, const gpi__formula *f) {
    return f->is_short && problem->k >= GPI__LONG_SUM && problem->common != GEMMEPI_I8 &&
           gpi__takes_long_sums(f);
}

/* Whether RELU's mask, whose lines are of whole units of 16 bytes, begins at a multiple of as many. */
static int gpi__mask_is_aligned(const gpi__problem *problem) {
    const gpi__view *aux = &problem->views[GPI__AUX];
    if (problem->grouping.groups) /* a box's rows are not all there */
        return 0;
    return gpi__has_operand(problem, GPI__AUX) && aux->bits == 1 && aux->alignment % 16 == 0;
}

/* What a kernel's name says of D and the epilogue: "_to_F32_SILU_BIAS", "_BIAS" where D has the type that was named. */
static const char *gpi__name_of_epilogue(const gpi__problem *problem, int named, char data[160]) {
    gpi__text text = gpi__text_in(data, 160);
    const char *type = gpi__type_name(problem, GPI__D);
    if (strcmp(type, gpi__type(named)) != 0)
        gpi__append(&text, "_to_%s", type);
    gpi__append_epilogue_words(&text, problem->epilogue & (GPI__KERNEL_EPILOGUE | GEMMEPI_BGRAD));
    if (gpi__has_operand(problem, GPI__ROW_FACTOR))
        gpi__append(&text, "_row_factor");
    if (problem->found_scale)
        gpi__append(&text, "_found_scales");
    if (problem->formula)
        gpi__append(&text, "_formula");
    return data;
}

/* >>grouped products */

/* Parts of groups of rows, of `tile` rows at most, or of groups of k: how many there are at most. */
static int64_t gpi__most_parts(const gpi__problem *problem, int tile) {
    const gpi__grouping *grouping = &problem->grouping;
    if (grouping->is_of_k)
        return grouping->groups;
    return problem->m / tile + (grouping->groups < problem->m ? grouping->groups : problem->m);
}

static const char *gpi__name_of_grouping(const gpi__problem *problem) {
    return !problem->grouping.groups ? "" : problem->grouping.is_of_k ? "_groups_of_k" : "_groups";
}

static void gpi__append_grouping(gpi__text *text, const gpi__problem *problem) {
    const gpi__grouping *grouping = &problem->grouping;
    if (grouping->groups)
        gpi__append(text,
                    "#define GEMMEPI_GROUPED %d\n#define GEMMEPI_GATHERED %d\n#define GEMMEPI_SCATTERED %d\n",
                    grouping->is_of_k ? 2 : 1, (int)grouping->gathered, grouping->scattered != 0);
    if (grouping->scales_gathered)
        gpi__append(text, "#define GEMMEPI_SCALES_GATHERED 1\n");
}

/* The defines that make an epilogue of epilogue.cuh. scale_a, scale_b: the modes that it must know of. */
static void gpi__append_epilogue_defines(gpi__text *text, const gpi__problem *problem, int aligned,
                                         int scale_a, int scale_b) {
    const gpi__view *views = problem->views;
    int scales = (views[GPI__C].scale ? 1 : 0) | (views[GPI__D].scale ? 2 : 0) |
                 (views[GPI__AUX].scale ? 4 : 0) | (views[GPI__RESIDUAL].scale ? 8 : 0);
    int amax = gpi__has_operand(problem, GPI__AMAX_D) | gpi__has_operand(problem, GPI__AMAX_AUX) << 1;
    gpi__inside inside;
    size_t i;
    gpi__look_inside(problem, &inside);
    gpi__append(text, "#define GEMMEPI_EPILOGUE 0x%x\n",
                (unsigned)(problem->epilogue & GPI__KERNEL_EPILOGUE));
    gpi__append(text, "#define GEMMEPI_ACC %s\n", gpi__type(problem->accumulator));
    for (i = 0; i < GPI__COUNT(gpi__epilogue_matrices); i++)
        gpi__append(text, "#define GEMMEPI_%s_TYPE %s\n", gpi__epilogue_matrices[i].name,
                    gpi__type_name(problem, gpi__epilogue_matrices[i].operand));
    gpi__append(text, "#define GEMMEPI_SCALE_A %d\n#define GEMMEPI_SCALE_B %d\n", scale_a, scale_b);
    gpi__append(text, "#define GEMMEPI_SCALES %d\n#define GEMMEPI_AMAX %d\n", scales, amax);
    gpi__append(text, "#define GEMMEPI_ALIGNED %d\n", aligned);
    gpi__append(text, "#define GEMMEPI_EXACT %d\n", !inside.formula->is_short);
    if (gpi__has_long_sums(problem, inside.formula))
        gpi__append(text, "#define GEMMEPI_LONG_SUMS 1\n");
    gpi__append(text, "#define GEMMEPI_STORES_D %d\n", !(problem->flags & GPI__ONLY_SUMS));
    if (problem->found_scale)
        gpi__append(text, "#define GEMMEPI_FINDS 1\n");
    if (problem->flags & GEMMEPI_POWER_OF_TWO_SCALE)
        gpi__append(text, "#define GEMMEPI_POWER_OF_TWO 1\n");
    if (gpi__is_invariant(problem))
        gpi__append(text, GPI__AS_WRITTEN);
    if (gpi__mask_is_aligned(problem))
        gpi__append(text, "#define GEMMEPI_MASK_WORDS 1\n");
    gpi__append_inside_defines(text, problem, &inside);
}

/* Whether stretches of so many columns along the lines of a view may be loaded at once: eight of bf16 are 16 bytes, of fp8 8, and more
   are loaded 16 at a time. */
static int gpi__stretches_are_aligned(const gpi__problem *problem, const gpi__view *view, int stretch) {
    int64_t bytes = (int64_t)view->bits * stretch / 8, unit = bytes < 16 ? bytes : 16,
            line = view->ld * view->bits / 8;
    int64_t item = view->batch_stride * view->bits / 8;
    return view->alignment % unit == 0 && (view->lines <= 1 || line % unit == 0) &&
           (problem->batch <= 1 || item % unit == 0);
}

static int gpi__runs_are_aligned(const gpi__problem *problem, const gpi__view *view) {
    return gpi__stretches_are_aligned(problem, view, GPI__RUN);
}

/* Whether that holds for stretches of so many columns of every tensor that the epilogue reads or writes. */
static int gpi__epilogue_stretches_are_aligned(const gpi__problem *problem, int stretch) {
    int operand;
    if (gpi__has(problem, GEMMEPI_GATED) && gpi__half_columns(problem) % stretch)
        return 0; /* the second halves begin between stretches */
    for (operand = GPI__C; operand <= GPI__BIAS; operand++)
        if (gpi__has_operand(problem, operand) && problem->views[operand].bits != 1 &&
            !gpi__stretches_are_aligned(problem, &problem->views[operand], stretch))
            return 0;
    return 1;
}

/* Whether it holds for whole runs, and for a formula's operands. */
static int gpi__epilogue_is_aligned(const gpi__problem *problem) {
    if (!gpi__epilogue_stretches_are_aligned(problem, GPI__RUN))
        return 0;
    if (GPI__FORMULA(problem))
        return gpi__inside_is_aligned(problem, gpi__runs_are_aligned);
    return 1;
}

static gpi__kernel_matrix *gpi__epilogue_matrix(gpi__epilogue_params *params, size_t i) {
    return (gpi__kernel_matrix *)(void *)((char *)params + gpi__epilogue_matrices[i].place);
}

static gpi__kernel_scale *gpi__epilogue_scale(gpi__epilogue_params *params, size_t i) {
    return (gpi__kernel_scale *)(void *)((char *)params + gpi__epilogue_scales[i]);
}

/* All but pointers, scalars and tiles. */
static void gpi__fill_epilogue(const gpi__problem *problem, gpi__epilogue_params *params,
                               gpi__formula_place *places) {
    const gpi__view *views = problem->views;
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__epilogue_matrices); i++)
        *gpi__epilogue_matrix(params, i) = gpi__kernel_matrix_of(&views[gpi__epilogue_matrices[i].operand]);
    for (i = 0; i < GPI__COUNT(gpi__epilogue_scales); i++)
        gpi__epilogue_scale(params, i)->stride = views[GPI__SCALE_A + i].batch_stride;
    if (problem->found_scale)
        params->scale_d.stride = gpi__has_groups_of_rows(problem)
                                     ? views[GPI__FOUND_SCALE_D].ld /* there are no items */
                                     : views[GPI__FOUND_SCALE_D].batch_stride;
    params->row_factor.stride = views[GPI__ROW_FACTOR].batch_stride;
    params->parameter = problem->parameter;
    params->m = problem->m;
    params->n = gpi__half_columns(problem);
    if (GPI__FORMULA(problem))
        gpi__fill_places(problem, places);
    else if (gpi__has(problem, GEMMEPI_BGRAD))
        places[GPI__IN_BIAS_GRAD].ld = views[GPI__BIAS_GRAD].length;
}

/* Fills in the pointers and scalars of a run. */
static void gpi__point_epilogue(const gpi__arguments *arguments, int unit_alpha, gpi__epilogue_params *params,
                                gpi__formula_place *places) {
    void *const *pointers = arguments->pointers;
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__epilogue_matrices); i++)
        gpi__epilogue_matrix(params, i)->data = pointers[gpi__epilogue_matrices[i].operand];
    for (i = 0; i < GPI__COUNT(gpi__epilogue_scales); i++)
        gpi__epilogue_scale(params, i)->data = (const float *)pointers[GPI__SCALE_A + i];
    if (pointers[GPI__FOUND_SCALE_D])
        params->scale_d.data = (const float *)pointers[GPI__FOUND_SCALE_D];
    params->row_factor.data = (const float *)pointers[GPI__ROW_FACTOR];
    params->amax_d = pointers[GPI__AMAX_D];
    params->amax_aux = pointers[GPI__AMAX_AUX];
    params->alpha = unit_alpha ? 1 : arguments->alpha;
    params->beta = unit_alpha ? 0 : arguments->beta;
    params->uses_c = arguments->uses_c && !unit_alpha;
    if (arguments->inside)
        gpi__point_places(arguments, places);
    memcpy(&params->device_alpha, &arguments->device_alpha, sizeof(void *));
    memcpy(&params->device_beta, &arguments->device_beta, sizeof(void *));
}

/* Whether an amax is to be set to 0 before the run. groups.cu does so for grouped products: only where their lists are right. */
static int gpi__clears_amax(const gpi__problem *problem, int operand) {
    return gpi__has_operand(problem, operand) && !problem->grouping.groups &&
           !(operand == GPI__AMAX_D && problem->flags & GPI__AMAX_TO_HISTORY);
}

static int gpi__amax_count(const gpi__problem *problem) {
    return gpi__clears_amax(problem, GPI__AMAX_D) + gpi__clears_amax(problem, GPI__AMAX_AUX);
}

/* amax starts at 0: kernels raise it. */
static gemmepi_status gpi__clear_amax(const gemmepi_context *context, const gpi__problem *problem,
                                      const gpi__arguments *arguments, gemmepi_stream stream) {
    int operand, result = 0;
    for (operand = GPI__AMAX_D; operand <= GPI__AMAX_AUX && !result; operand++)
        if (gpi__clears_amax(problem, operand))
            result = context->driver.memset_d8_async(
                (gpi__cu_deviceptr)(uintptr_t)arguments->pointers[operand], 0,
                (size_t)problem->views[operand].bytes, (gpi__cu_stream)stream);
    return result ? gpi__cuda_failed(&context->driver, result, "clearing amax") : GEMMEPI_OK;
}

/* >>the pass */

/* The product, in the type of its sums, as it lies in workspace. Runs of eight start at multiples of 16 bytes, but for narrow
   results, which would grow too much. */
static gpi__view gpi__product_in_workspace(const gpi__problem *problem, int dtype) {
    gpi__view view = problem->views[GPI__D];
    view.dtype = dtype;
    view.bits = dtype == GEMMEPI_F64 ? 64 : 32;
    view.alignment = 256;
    view.scale = 0;
    view.lines = problem->m;
    view.length = problem->n;
    view.ld = problem->n < 8 ? problem->n : (problem->n + 7) / 8 * 8;
    view.batch_stride = problem->m * view.ld;
    return view;
}

/* The product alone, into workspace. */
static gpi__problem gpi__bare_problem(const gpi__problem *problem) {
    gpi__problem bare = *problem;
    int operand;
    for (operand = GPI__C; operand < GPI__OPERANDS; operand++)
        if (operand != GPI__SCALE_A && operand != GPI__SCALE_B)
            memset(&bare.views[operand], 0, sizeof bare.views[operand]);
    bare.views[GPI__D] = gpi__product_in_workspace(problem, problem->accumulator);
    bare.epilogue = GEMMEPI_NONE;
    bare.formula = NULL;
    bare.found_scale = 0;
    bare.flags &= ~(GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX | GPI__ONLY_SUMS | GEMMEPI_FIND_SCALE_D |
                    GEMMEPI_POWER_OF_TWO_SCALE | GPI__AMAX_TO_HISTORY);
    return bare;
}

typedef struct gpi__pass {
    gpi__launch launch;
    int unit_alpha;          /* or the product has alpha, beta and C in it */
    gpi__pass_params params; /* all but pointers and scalars */
} gpi__pass;

/* Blocks that a multiprocessor is to hold: fewer where a thread keeps more in registers. */
static int gpi__pass_blocks(const gpi__problem *problem, int parts, int aligned) {
    int sums = gpi__has(problem, GEMMEPI_BGRAD), gated = gpi__has(problem, GEMMEPI_GATED);
    if (parts > 16)
        return 1; /* which loads more of them at a time */
    if (problem->accumulator == GEMMEPI_F64)
        return sums ? 1 : 2;
    if (!aligned && (sums || (gated && gpi__has(problem, GEMMEPI_BACKWARD))))
        return 2;
    return parts > 1 || (sums && gated) ? 2 : 3;
}

/* The rows of a thread: four, or fewer where blocks would be fewer than two for each multiprocessor. With BGRAD, where each
   block leaves partial sums, as many as it takes to have all blocks run at once, up to a bound. */
static int gpi__pass_steps(const gemmepi_context *context, const gpi__problem *problem, int blocks,
                           int64_t column_tiles, unsigned threads_y) {
    int64_t columns = gpi__times(column_tiles, problem->batch), steps = 4;
    if (gpi__has(problem, GEMMEPI_BGRAD)) {
        int64_t tiles = blocks * (int64_t)context->multiprocessors / columns;
        steps = gpi__divide_up(problem->m, threads_y * (tiles ? tiles : 1));
        return steps < GPI__PASS_MOST_STEPS ? (int)steps : GPI__PASS_MOST_STEPS;
    }
    while (steps > 1 && gpi__times(columns, gpi__divide_up(problem->m, threads_y * steps)) <
                            2 * (int64_t)context->multiprocessors)
        steps /= 2;
    return (int)steps;
}

/* The rows of a block. Fewer where not every multiprocessor would get one: what is launched behind the pass begins beside it, and
   would have two blocks where the pass has none. Sums and largest magnitudes of a block are of all its threads. */
static unsigned gpi__pass_rows(const gemmepi_context *context, const gpi__problem *problem,
                               int64_t column_tiles, unsigned threads_x) {
    unsigned rows = GPI__PASS_THREADS / threads_x;
    int64_t tiles;
    if (gpi__has(problem, GEMMEPI_BGRAD) || (problem->flags & (GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX)))
        return rows;
    for (; threads_x * rows > 32; rows /= 2) {
        tiles = gpi__offset(column_tiles, gpi__divide_up(problem->m, rows), 0);
        tiles = gpi__offset(tiles, problem->batch, 0);
        if (tiles < 0 || tiles >= context->multiprocessors)
            break;
    }
    return rows;
}

/* Whether runs may be in stretches: not where a byte of a mask, a scale or a formula is of whole ones. */
static int gpi__pass_may_cut(const gpi__problem *problem) {
    return !problem->found_scale && !problem->formula &&
           !(gpi__has_operand(problem, GPI__AUX) && problem->views[GPI__AUX].bits == 1);
}

/* Columns of a thread's run that lie side by side: all where whole runs may be accessed at once; else as many as may be, and
   exist all or none. */
static int gpi__pass_stretch(const gpi__problem *problem, const gpi__view *product, int aligned) {
    int stretch = GPI__RUN;
    if (aligned || !gpi__pass_may_cut(problem))
        return stretch;
    while ((stretch /= 2) > 1)
        if (gpi__half_columns(problem) % stretch == 0 &&
            gpi__epilogue_stretches_are_aligned(problem, stretch) &&
            gpi__stretches_are_aligned(problem, product, stretch))
            break;
    return stretch;
}

static gemmepi_status gpi__shape_pass(const gemmepi_context *context, const gpi__problem *problem, int blocks,
                                      gpi__pass *pass) {
    int64_t chunks = gpi__divide_up(gpi__half_columns(problem), GPI__RUN), column_tiles, row_tiles, tiles;
    unsigned threads_x = 1, threads_y;
    int steps;
    while (threads_x < 32 && (int64_t)threads_x < chunks)
        threads_x *= 2;
    column_tiles = gpi__divide_up(chunks, (int64_t)threads_x);
    threads_y = gpi__pass_rows(context, problem, column_tiles, threads_x);
    steps = gpi__pass_steps(context, problem, blocks, column_tiles, threads_y);
    for (;; steps *= 2) { /* a grid has only so many blocks */
        row_tiles = gpi__divide_up(problem->m, (int64_t)threads_y * steps);
        tiles = gpi__offset(gpi__offset(column_tiles, row_tiles, 0), problem->batch, 0);
        if (tiles > 0 && tiles <= INT_MAX)
            break;
        GPI__UNSUPPORTED_IF(steps > INT_MAX / 4, "the result has more tiles than a grid has blocks");
    }
    pass->params.row_steps = steps;
    pass->params.epilogue.row_tiles = (unsigned)row_tiles;
    pass->params.epilogue.column_tiles = (unsigned)column_tiles;
    pass->launch.blocks = (unsigned)tiles;
    pass->launch.threads_x = threads_x;
    pass->launch.threads_y = threads_y;
    return GEMMEPI_OK;
}

/* abreast: threads side by side, which matters where runs are in stretches */
static void gpi__append_pass_defines(gpi__text *text, const gpi__problem *problem, int parts, int unit_alpha,
                                     int blocks, int stretch, unsigned abreast) {
    int whole = gpi__half_columns(problem) % GPI__RUN == 0;
    gpi__append(text, "#define GEMMEPI_HAS_PRODUCT %d\n#define GEMMEPI_PARTS %d\n", problem->k != 0, parts);
    gpi__append(text, "#define GEMMEPI_BLOCKS %d\n", blocks);
    gpi__append(text, "#define GEMMEPI_UNIT_ALPHA %d\n#define GEMMEPI_WHOLE %d\n", unit_alpha, whole);
    if (stretch < GPI__RUN)
        gpi__append(text, "#define GEMMEPI_STRETCH %d\n#define GEMMEPI_ABREAST %u\n", stretch, abreast);
}

/* product: where and in what type the finished product lies, in so many parts of each item that the pass adds up */
static gemmepi_status gpi__build_pass(gemmepi_context *context, const gpi__problem *problem,
                                      const gpi__view *product, int parts, int unit_alpha, gpi__pass *pass) {
    char prologue[2048], words[160];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    int aligned = gpi__epilogue_is_aligned(problem) && gpi__runs_are_aligned(problem, product);
    int scale_a = problem->views[GPI__A].scale, scale_b = problem->views[GPI__B].scale;
    int blocks = gpi__pass_blocks(problem, parts, aligned);
    gemmepi_status status = gpi__shape_pass(context, problem, blocks, pass);
    if (status)
        return status;
    pass->unit_alpha = unit_alpha;
    gpi__fill_epilogue(problem, &pass->params.epilogue, pass->params.places);
    pass->params.product = gpi__kernel_matrix_of(product);
    pass->params.part = pass->params.product.stride;
    pass->params.product.stride *= parts;
    /* the product has taken scales that change along k */
    gpi__append_epilogue_defines(&text, problem, aligned, scale_a > GEMMEPI_SCALE_OUTER ? 0 : scale_a,
                                 scale_b > GEMMEPI_SCALE_OUTER ? 0 : scale_b);
    gpi__append(&text, "#define GEMMEPI_PRODUCT_TYPE %s\n", gpi__type(product->dtype));
    gpi__append_pass_defines(&text, problem, parts, unit_alpha, blocks,
                             gpi__pass_stretch(problem, product, aligned), pass->launch.threads_x);
    gpi__name_kernel(&pass->launch, "gemmepi_pass_%s%s", gpi__type(product->dtype),
                     gpi__name_of_epilogue(problem, product->dtype, words));
    return gpi__get_product_kernel(context, problem, "pass.cu", prologue, "gemmepi_pass", &pass->launch);
}

/* Bytes that memory moves for an operand, counted by the time: what is written and does not fill sectors of 32 bytes takes longer. */
static double gpi__bytes_moved(const gpi__problem *problem, int operand) {
    const gpi__view *view = &problem->views[operand];
    int is_written = operand == GPI__D || (operand == GPI__AUX && gpi__has(problem, GEMMEPI_AUX));
    int64_t beyond = is_written && view->lines > 1 ? view->ld * view->bits / 8 % 32 : 0;
    double items = problem->batch > 1 && view->batch_stride ? (double)problem->batch : 1;
    double bytes = (double)view->lines * (double)view->length * view->bits / 8 * items;
    return bytes * (beyond ? GPI__HALF_SECTORS : 1);
}

/* Those of some operands, one after another. */
static double gpi__bytes_of_operands(const gpi__problem *problem, int first, int last) {
    double bytes = 0;
    int operand;
    for (operand = first; operand <= last; operand++)
        if (gpi__has_operand(problem, operand) &&
            (operand != GPI__C ||
             (problem->flags & GEMMEPI_ACCUMULATE && !gpi__has(problem, GEMMEPI_RESIDUAL))))
            bytes += gpi__bytes_moved(problem, operand);
    return bytes;
}

/* Returns what memory takes to read and write all operands once. */
static double gpi__memory_microseconds(const gemmepi_context *context, const gpi__problem *problem) {
    return gpi__bytes_of_operands(problem, GPI__A, GPI__RESIDUAL) / gpi__memory_rate(context);
}

/* What a kernel takes that takes so many microseconds where memory does not hold it up. Of two that wait for it the shorter is still
   the better. */
static double gpi__with_memory(const gemmepi_context *context, const gpi__problem *problem,
                               double microseconds) {
    double memory = gpi__memory_microseconds(context, problem);
    return microseconds > memory ? microseconds + GPI__BEHIND_MEMORY * memory
                                 : memory + GPI__BEHIND_MEMORY * microseconds;
}

/* Whether it waits for memory, and for A and B more than for all else. */
static int gpi__waits_for_operands(const gemmepi_context *context, const gpi__problem *problem,
                                   double microseconds) {
    return microseconds < gpi__memory_microseconds(context, problem) &&
           gpi__bytes_of_operands(problem, GPI__A, GPI__B) >
               gpi__bytes_of_operands(problem, GPI__B + 1, GPI__RESIDUAL);
}

/* It reads the product in F32 and moves what else the epilogue has, and is a launch more. */
static double gpi__pass_microseconds(const gemmepi_context *context, const gpi__problem *problem, int parts) {
    double bytes = (double)problem->m * (double)problem->n * 8 * parts; /* the product, written and read */
    int operand;
    for (operand = GPI__D; operand <= GPI__RESIDUAL; operand++)
        if (gpi__has_operand(problem, operand))
            bytes += (double)problem->m * (double)problem->views[operand].length *
                     problem->views[operand].bits / 8;
    return GPI__ANOTHER_LAUNCH + GPI__PASS_PART * (parts - 1) +
           bytes * (double)problem->batch / gpi__memory_rate(context) + gpi__sums_microseconds(problem);
}

static gemmepi_status gpi__run_pass(const gemmepi_context *context, const gpi__pass *pass,
                                    const gpi__sums *sums, const gpi__arguments *arguments, void *product,
                                    char *states, gemmepi_stream stream) {
    gpi__pass_params params = pass->params;
    gpi__point_epilogue(arguments, pass->unit_alpha, &params.epilogue, params.places);
    gpi__point_states(sums, states, params.places);
    params.product.data = product;
    return gpi__launch_kernel(context, &pass->launch, &params, "the epilogue", stream);
}

/* >>in words */

/* before: what it does before the epilogue */
static void gpi__explain_pass(gpi__text *text, const gpi__launch *pass, const char *before) {
    if (pass->function)
        gpi__append(text, "  %s: %sthe epilogue, %u blocks of %u x %u threads\n", pass->name, before,
                    pass->blocks, pass->threads_x, pass->threads_y);
}

#endif
