/* A problem on memory and a stream of its own, with random data: its ways are run, compared and timed here. */
#ifndef GEMMEPI_PRODUCT_TUNING_TRIAL_H
#define GEMMEPI_PRODUCT_TUNING_TRIAL_H

#include "../../numbers/convert.h"
#include "../run.h"
#include "ways.h"

enum {
    GPI__TRIAL_BLOCK = 1 << 18, /* elements of random data, repeated where more are needed */
    GPI__TRIAL_SETS = 64,       /* of tensors, at most */
    GPI__TRIAL_CACHES = 3,      /* all sets are larger than so many times the L2 cache */
    GPI__TRIAL_PIECES = 16,     /* of an output, that are compared */
    GPI__TRIAL_PIECE = 4096,    /* bytes */
    GPI__TRIAL_CALLS = 200      /* of a graph, at most */
};
#define GPI__TRIAL_TIME    800 /* microseconds of a graph's calls, about */
#define GPI__TRIAL_REST    10  /* milliseconds before a burst */
#define GPI__TRIAL_BURST   8   /* calls of it */
#define GPI__TRIAL_MEMORY  ((size_t)2 << 30)
#define GPI__TRIAL_LARGEST 1.5 /* of the random numbers */
#define GPI__TRIAL_OFF \
    0.04 /* how far a way's numbers may lie from the reference's, of their size and of all, */
#define GPI__TRIAL_OFF_8 0.3 /* and those of 8 bits */

/* How far numbers may lie from the reference's: so much, so much of their size, and of the root mean square of all. */
typedef struct gpi__allowance {
    double absolute, of_size, of_all;
} gpi__allowance;

/* Tensors by their number: operands, those of a formula with their scales and amax, and lists of groups. */
enum {
    GPI__OF_FORMULA = (int)GPI__OPERANDS,
    GPI__SCALES_OF_FORMULA = GPI__OF_FORMULA + GPI__FORMULA_OPERANDS,
    GPI__AMAX_OF_FORMULA = GPI__SCALES_OF_FORMULA + GPI__FORMULA_OPERANDS,
    GPI__OF_GROUPS = GPI__AMAX_OF_FORMULA + GPI__FORMULA_OPERANDS,
    GPI__TRIAL_TENSORS = GPI__OF_GROUPS + GPI__FAULTS
};

typedef struct gpi__trial_tensor {
    gpi__view view; /* dtype 0: there is none */
    int is_output, is_factor;
    size_t offset; /* in a set */
} gpi__trial_tensor;

struct gpi__tuned_kind;
struct gpi__trial;

/* What is allowed for an output. */
typedef gpi__allowance (*gpi__allowed)(const struct gpi__trial *trial, int number);

typedef struct gpi__trial {
    gemmepi_context *context;
    const gpi__problem *problem;
    const struct gpi__tuned_kind *kind;
    gpi__allowed allowed;
    gemmepi_tune_mode mode;
    gemmepi_stream stream;
    gpi__cu_event began, ended;
    char *memory, *workspace;
    size_t workspace_size, set;
    gpi__trial_tensor tensors[GPI__TRIAL_TENSORS];
    int has_no_room;     /* for the workspace of the way that was run last */
    int sets, next;      /* how many, and which comes next */
    char *block;         /* GPI__TRIAL_BLOCK elements for the operand at hand */
    char *reference;     /* pieces of all outputs, one after another */
    char *compared;      /* likewise of the way at hand */
    size_t outputs_size; /* of each of these */
} gpi__trial;

/* How the problems of a kind of plans are tuned. */
typedef struct gpi__tuned_kind {
    void (*enumerate)(const gemmepi_context *context, const gpi__problem *problem, gpi__ways *ways);
    /* Copies the answer that plans take, if there is one. The primary context is current, here and below. */
    int (*find)(gemmepi_context *context, const gpi__problem *problem, gpi__answer *answer);
    /* Builds the way, and fills in its algorithm. */
    gemmepi_status (*build)(gemmepi_context *context, const gpi__problem *problem, gpi__candidate *way,
                            gemmepi_plan **plan);
    size_t (*workspace)(const gemmepi_plan *plan);
    /* On the trial's stream. GEMMEPI_UNSUPPORTED where cuBLASLt refuses. */
    gemmepi_status (*run)(const gemmepi_plan *plan, const gpi__trial *trial, int set,
                          gpi__arguments *arguments);
} gpi__tuned_kind;

/* >>memory */

static void gpi__add_to_set(gpi__trial *trial, int number, const gpi__view *view, int is_output) {
    gpi__trial_tensor *tensor = &trial->tensors[number];
    tensor->view = *view;
    tensor->is_output = is_output;
    tensor->offset = trial->set;
    trial->set += gpi__round_up((size_t)view->bytes, 256) + 256;
}

static void gpi__add_tensors_of_formula(gpi__trial *trial, const gpi__kept_formula *kept) {
    gpi__view one = gpi__one_f32;
    int i;
    for (i = 0; i < kept->placed.formula->operand_count; i++) {
        const gpi__formula_operand *operand = &kept->placed.formula->operands[i];
        if (!operand->used || operand->kind == GEMMEPI_NUMBER)
            continue;
        gpi__add_to_set(trial, GPI__OF_FORMULA + i, &kept->views[i], operand->output);
        if (kept->placed.operands[i].scale)
            gpi__add_to_set(trial, GPI__SCALES_OF_FORMULA + i, &one, 0);
        trial->tensors[GPI__SCALES_OF_FORMULA + i].is_factor = 1;
        if (kept->placed.operands[i].amax)
            gpi__add_to_set(trial, GPI__AMAX_OF_FORMULA + i, &one, 1);
    }
}

/* Ends, and indices: all positions, of groups of one size. */
static void gpi__add_lists_of_groups(gpi__trial *trial) {
    const gpi__grouping *grouping = &trial->problem->grouping;
    gpi__view list;
    int i;
    memset(&list, 0, sizeof list);
    list.dtype = GEMMEPI_I32, list.bits = 32, list.lines = 1;
    for (i = 0; i < GPI__FAULTS; i++) {
        list.length = i == GPI__FAULT_ENDS ? grouping->groups : gpi__positions(trial->problem);
        list.bytes = 4 * list.length;
        if (i == GPI__FAULT_ENDS || (i == GPI__FAULT_A && (grouping->gathered & 1)) ||
            (i == GPI__FAULT_B && (grouping->gathered & 2)) || (i == GPI__FAULT_D && grouping->scattered))
            gpi__add_to_set(trial, GPI__OF_GROUPS + i, &list, 0);
    }
}

static void gpi__lay_out_trial(gpi__trial *trial) {
    const gpi__problem *problem = trial->problem;
    int i;
    for (i = 0; i < problem->count; i++) {
        int operand = problem->list[i];
        const gpi__view *view = &problem->views[operand];
        if (operand == GPI__C)
            continue;
        gpi__add_to_set(trial, operand, view, i < problem->outputs);
        trial->tensors[operand].is_factor =
            operand >= GPI__SCALE_A && view->dtype == GEMMEPI_F32 && operand != GPI__BIAS_GRAD;
    }
    for (i = 0; i < GPI__FORMULAS; i++)
        if (gpi__nth_formula(problem, i))
            gpi__add_tensors_of_formula(trial, gpi__nth_formula(problem, i));
    if (problem->grouping.groups)
        gpi__add_lists_of_groups(trial);
}

/* As many sets as make up three caches, or as the memory holds. */
static gemmepi_status gpi__count_sets(gpi__trial *trial, size_t most) {
    const gpi__driver *driver = &trial->context->driver;
    int cache = 0, result = driver->device_get_attribute(&cache, GPI__CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
                                                         trial->context->device);
    size_t wanted, held = most / trial->set;
    if (result)
        return gpi__cuda_failed(driver, result, "asking for the size of the L2 cache");
    wanted = ((size_t)cache * GPI__TRIAL_CACHES + trial->set - 1) / trial->set;
    if (wanted > held)
        wanted = held;
    trial->sets = wanted < 1 ? 1 : wanted > GPI__TRIAL_SETS ? GPI__TRIAL_SETS : (int)wanted;
    return GEMMEPI_OK;
}

/* Less than is wanted will do, but for one set. */
static gemmepi_status gpi__acquire_trial_memory(gpi__trial *trial) {
    void *memory = NULL;
    gemmepi_status status = GEMMEPI_OUT_OF_MEMORY;
    while (trial->sets && status == GEMMEPI_OUT_OF_MEMORY) {
        status = gemmepi_alloc(trial->context, trial->set * (size_t)trial->sets, &memory);
        if (status == GEMMEPI_OUT_OF_MEMORY)
            trial->sets /= 2;
    }
    trial->memory = (char *)memory;
    return status;
}

/* Where a set has the tensor; NULL: it has none. */
static char *gpi__at_trial(const gpi__trial *trial, int set, int number) {
    const gpi__trial_tensor *tensor = &trial->tensors[number];
    return tensor->view.dtype ? trial->memory + trial->set * (size_t)set + tensor->offset : NULL;
}

/* >>data */

static uint32_t gpi__next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Numbers of either sign about 1 in size; factors, which scales are, above 0; of a mask and of 4 bits any bits. */
static void gpi__make_block(gpi__trial *trial, int number) {
    const gpi__trial_tensor *tensor = &trial->tensors[number];
    const gpi__view *view = &tensor->view;
    int is_whole = view->dtype == GEMMEPI_I8 || view->dtype == GEMMEPI_I32;
    int is_positive = tensor->is_factor || view->dtype == GEMMEPI_E8M0;
    uint32_t state = 1u + (uint32_t)number;
    int64_t elements = view->bits < 8 ? (int64_t)GPI__TRIAL_BLOCK : view->bytes / (view->bits / 8);
    int i, j;
    for (i = 0; i < GPI__TRIAL_BLOCK && i < elements; i += 256) {
        double values[256];
        int64_t whole[256];
        for (j = 0; j < 256; j++) {
            double size = 0.5 + (double)(gpi__next_random(&state) & 255) / 256;
            values[j] = is_positive || gpi__next_random(&state) & 1 ? size : -size;
            if (is_whole)
                values[j] = floor(values[j] * 8);
            whole[j] = (int64_t)(size * 8);
        }
        if (view->bits < 8)
            for (j = 0; j < 256; j++)
                trial->block[i + j] = (char)gpi__next_random(&state);
        else if (view->dtype == GEMMEPI_I64)
            memcpy(trial->block + 8 * (size_t)i, whole, sizeof whole);
        else
            gpi__store_run(view->dtype, trial->block, i, 256, values);
    }
}

/* A piece of a list of groups, from `first` on. */
static void gpi__make_list(gpi__trial *trial, int list, int64_t first) {
    const gpi__problem *problem = trial->problem;
    int64_t limits[GPI__FAULTS], groups = problem->grouping.groups, i;
    gpi__limit_group_lists(problem, limits);
    for (i = 0; i < GPI__TRIAL_BLOCK && limits[list]; i++) {
        int64_t at = first + i;
        int32_t value =
            (int32_t)(list == GPI__FAULT_ENDS ? (at < groups ? at + 1 : groups) * limits[list] / groups
                                              : at % limits[list]);
        memcpy(trial->block + 4 * i, &value, sizeof value);
    }
}

static gemmepi_status gpi__fill_tensor(gpi__trial *trial, int set, int number) {
    const gpi__view *view = &trial->tensors[number].view;
    size_t size = (size_t)view->bytes, done,
           piece = GPI__TRIAL_BLOCK * (size_t)(view->bits < 8 ? 1 : view->bits / 8);
    gemmepi_status status = GEMMEPI_OK;
    for (done = 0; !status && done < size; done += piece) {
        if (number >= GPI__OF_GROUPS)
            gpi__make_list(trial, number - GPI__OF_GROUPS, (int64_t)(done / 4));
        status = gemmepi_upload(trial->context, gpi__at_trial(trial, set, number) + done, trial->block,
                                size - done < piece ? size - done : piece, trial->stream);
    }
    return status;
}

/* Fills all tensors of all sets: outputs, too, because ACCUMULATE reads them, and what is not written is the same in all ways. Or only the
   outputs of the first. */
static gemmepi_status gpi__fill_sets(gpi__trial *trial, int only_outputs) {
    gemmepi_status status = GEMMEPI_OK;
    int number, set;
    for (number = 0; number < GPI__TRIAL_TENSORS && !status; number++) {
        if (!trial->tensors[number].view.dtype || (only_outputs && !trial->tensors[number].is_output))
            continue;
        gpi__make_block(trial, number);
        for (set = 0; set < (only_outputs ? 1 : trial->sets) && !status; set++)
            status = gpi__fill_tensor(trial, set, number);
    }
    return status;
}

/* >>a run */

/* A formula's pointers in a set. */
typedef struct gpi__trial_formula {
    void *operands[GPI__FORMULA_OPERANDS], *amax[GPI__FORMULA_OPERANDS];
    const float *scales[GPI__FORMULA_OPERANDS];
} gpi__trial_formula;

static void gpi__point_trial_formula(const gpi__trial *trial, int set, gpi__trial_formula *formula,
                                     gpi__arguments *arguments) {
    int i;
    for (i = 0; i < GPI__FORMULA_OPERANDS; i++) {
        formula->operands[i] = gpi__at_trial(trial, set, GPI__OF_FORMULA + i);
        formula->scales[i] =
            (const float *)(const void *)gpi__at_trial(trial, set, GPI__SCALES_OF_FORMULA + i);
        formula->amax[i] = gpi__at_trial(trial, set, GPI__AMAX_OF_FORMULA + i);
        arguments->numbers[i] = trial->problem->accumulator == GEMMEPI_I32 ? 1 : 0.5;
    }
    arguments->operands = formula->operands;
    arguments->operand_scales = formula->scales;
    arguments->operand_amax = formula->amax;
}

/* The primary context is current. Alpha is 1; C is there where it is D. */
static gemmepi_status gpi__run_way(gpi__trial *trial, const gemmepi_plan *plan, int set) {
    const gpi__problem *problem = trial->problem;
    size_t workspace = trial->kind->workspace(plan);
    gpi__arguments arguments;
    gpi__trial_formula formula;
    int i;
    memset(&arguments, 0, sizeof arguments);
    for (i = 0; i < GPI__OPERANDS; i++)
        arguments.pointers[i] = gpi__at_trial(trial, set, i);
    arguments.alpha = 1;
    if (problem->flags & GEMMEPI_ACCUMULATE) {
        arguments.pointers[GPI__C] = arguments.pointers[GPI__D];
        arguments.beta = arguments.uses_c = 1;
    }
    if (GPI__FORMULA(problem) || gpi__makes_operands(problem))
        gpi__point_trial_formula(trial, set, &formula, &arguments);
    trial->has_no_room = workspace > trial->workspace_size;
    GPI__REFUSE_IF(trial->has_no_room, GEMMEPI_OUT_OF_MEMORY, "there is no room for %llu bytes of workspace",
                   (gpi__ull)workspace);
    return trial->kind->run(plan, trial, set, &arguments);
}

static gemmepi_status gpi__allocate_trial_workspace(gpi__trial *trial, size_t size) {
    void *memory = NULL;
    gemmepi_status status = gemmepi_alloc(trial->context, size, &memory);
    trial->workspace = (char *)memory;
    trial->workspace_size = status ? 0 : size;
    return status;
}

/* Room for the plan's workspace, before the first graph is captured, which has its address. Where there is no memory for it, that of
   smaller ones stays, if it can be had again. */
static void gpi__acquire_trial_workspace(gpi__trial *trial, const gemmepi_plan *plan) {
    size_t before = trial->workspace_size, size = trial->kind->workspace(plan);
    if (size <= before)
        return;
    if (trial->workspace)
        trial->context->driver.mem_free((gpi__cu_deviceptr)(uintptr_t)trial->workspace);
    if (gpi__allocate_trial_workspace(trial, size) && before)
        (void)gpi__allocate_trial_workspace(trial, before);
}

/* >>comparing */

static size_t gpi__piece_size(const gpi__view *view) {
    size_t bytes = (size_t)view->bytes;
    return bytes < (size_t)GPI__TRIAL_PIECE ? bytes : (size_t)GPI__TRIAL_PIECE;
}

static size_t gpi__outputs_size(const gpi__trial *trial) {
    size_t size = 0;
    int i;
    for (i = 0; i < GPI__TRIAL_TENSORS; i++)
        if (trial->tensors[i].is_output)
            size += GPI__TRIAL_PIECES * gpi__piece_size(&trial->tensors[i].view);
    return size;
}

/* Pieces of all outputs of the first set, evenly over each. */
static gemmepi_status gpi__read_outputs(gpi__trial *trial, char *to) {
    gemmepi_status status = GEMMEPI_OK;
    int i, piece;
    for (i = 0; i < GPI__TRIAL_TENSORS && !status; i++) {
        const gpi__view *view = &trial->tensors[i].view;
        size_t size = gpi__piece_size(view), beyond = (size_t)view->bytes - size;
        for (piece = 0; piece < GPI__TRIAL_PIECES && !status && trial->tensors[i].is_output;
             piece++, to += size) {
            size_t at = beyond / (GPI__TRIAL_PIECES - 1) * (size_t)piece / 16 * 16;
            status =
                gemmepi_download(trial->context, to, gpi__at_trial(trial, 0, i) + at, size, trial->stream);
        }
    }
    return status;
}

/* What tuning allows: the ways round differently, and what is wrong is wrong by far. */
static gpi__allowance gpi__allow_of_size(const gpi__trial *trial, int number) {
    gpi__allowance allowance;
    allowance.absolute = 0;
    allowance.of_size = allowance.of_all =
        trial->tensors[number].view.bits == 8 ? GPI__TRIAL_OFF_8 : GPI__TRIAL_OFF;
    return allowance;
}

/* The difference of two numbers over what is allowed; 0 of NaN and infinities where the other has them. */
static double gpi__number_off(double a, double b, double within) {
    int are_finite = a - a == 0 && b - b == 0;
    if (!are_finite)
        return a == b || (a != a && b != b) ? 0 : GPI__NEVER;
    return a == b ? 0 : within > 0 ? fabs(a - b) / within : GPI__NEVER;
}

/* Of an output's pieces: the largest difference of numbers over what is allowed. */
static double gpi__numbers_off(const gpi__view *view, const gpi__allowance *allowed, const char *x,
                               const char *y, size_t bytes) {
    int64_t count = (int64_t)(bytes / (size_t)(view->bits / 8)), i, j;
    double squares = 0, within = 0, worst = 0;
    int pass;
    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < count; i += 64) {
            double a[64], b[64], off;
            int64_t some = count - i < 64 ? count - i : 64;
            gpi__load_run(view->dtype, x, i, 1, some, a);
            gpi__load_run(view->dtype, y, i, 1, some, b);
            for (j = 0; j < some; j++) {
                if (pass == 0)
                    squares += a[j] == a[j] && fabs(a[j]) < 1e30 ? a[j] * a[j] : 0;
                else if ((off = gpi__number_off(a[j], b[j], within + allowed->of_size * fabs(a[j]))) > worst)
                    worst = off;
            }
        }
        within = allowed->absolute + allowed->of_all * sqrt(squares / (double)(count ? count : 1));
    }
    return worst;
}

/* Of a mask a few bits may differ, where a sum is nearly 0, and of a formula's I32, which are columns, where two are nearly the largest. */
static int gpi__bits_agree(const char *x, const char *y, size_t bytes) {
    size_t i, off = 0;
    int bit;
    for (i = 0; i < bytes; i++)
        for (bit = 0; bit < 8; bit++)
            off += (size_t)((x[i] ^ y[i]) >> bit & 1);
    return off <= 8 + bytes / 10;
}

/* The largest difference of all outputs over what is allowed: above 1 they are not the same. */
static double gpi__outputs_off(const gpi__trial *trial) {
    size_t at = 0;
    double worst = 0;
    int i;
    for (i = 0; i < GPI__TRIAL_TENSORS; i++) {
        const gpi__view *view = &trial->tensors[i].view;
        size_t bytes = GPI__TRIAL_PIECES * gpi__piece_size(view);
        int are_bits = view->bits == 1 || view->dtype == GEMMEPI_I64 ||
                       (view->dtype == GEMMEPI_I32 && i >= GPI__OF_FORMULA);
        const char *x = trial->reference + at, *y = trial->compared + at;
        gpi__allowance allowed;
        double off;
        if (!trial->tensors[i].is_output)
            continue;
        allowed = trial->allowed(trial, i);
        off = !are_bits                      ? gpi__numbers_off(view, &allowed, x, y, bytes)
              : gpi__bits_agree(x, y, bytes) ? 0
                                             : GPI__NEVER;
        worst = off > worst ? off : worst;
        at += bytes;
    }
    return worst;
}

/* One run on the first set, whose outputs are as at the beginning, and what it leaves. */
static gemmepi_status gpi__read_way(gpi__trial *trial, const gemmepi_plan *plan, char *to) {
    gemmepi_status status = gpi__fill_sets(trial, 1);
    if (!status)
        status = gpi__run_way(trial, plan, 0);
    return status ? status : gpi__read_outputs(trial, to);
}

/* >>timing */

static gemmepi_status gpi__issue_calls(gpi__trial *trial, const gemmepi_plan *plan, int calls) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < calls && !status; i++) {
        status = gpi__run_way(trial, plan, trial->next);
        trial->next = (trial->next + 1) % trial->sets;
    }
    return status;
}

/* Calls as a graph; *exec is the caller's to destroy. */
static gemmepi_status gpi__capture_calls(gpi__trial *trial, const gemmepi_plan *plan, int calls,
                                         gpi__cu_graph_exec *exec) {
    const gpi__driver *driver = &trial->context->driver;
    gpi__cu_graph graph = NULL;
    gemmepi_status status;
    int result = driver->stream_begin_capture(trial->stream, GPI__CU_STREAM_CAPTURE_MODE_RELAXED), ended;
    if (result)
        return gpi__cuda_failed(driver, result, "cuStreamBeginCapture");
    status = gpi__issue_calls(trial, plan, calls);
    ended = driver->stream_end_capture(trial->stream, &graph);
    if (!status && !ended)
        ended = driver->graph_instantiate(exec, graph, 0);
    if (graph)
        driver->graph_destroy(graph);
    return status || !ended ? status : gpi__cuda_failed(driver, ended, "capturing a graph");
}

static gemmepi_status gpi__trial_wait(const gpi__trial *trial) {
    const gpi__driver *driver = &trial->context->driver;
    int result = driver->stream_synchronize(trial->stream);
    return result ? gpi__cuda_failed(driver, result, "cuStreamSynchronize") : GEMMEPI_OK;
}

/* What stands between two events, in microseconds: the graph once, or calls one after another. */
static gemmepi_status gpi__time_once(gpi__trial *trial, const gemmepi_plan *plan, int calls,
                                     gpi__cu_graph_exec exec, double *microseconds) {
    const gpi__driver *driver = &trial->context->driver;
    float milliseconds = 0;
    gemmepi_status status = GEMMEPI_OK;
    int result;
    if (trial->mode == GEMMEPI_TUNE_BURST) {
        status = gpi__trial_wait(trial);
        gpi__rest(GPI__TRIAL_REST);
    }
    result = exec && !status ? driver->graph_launch(exec, trial->stream)
                             : 0; /* one that does not count: it hides the launch */
    if (!result)
        result = driver->event_record(trial->began, trial->stream);
    if (!result && !status && !exec)
        status = gpi__issue_calls(trial, plan, calls);
    else if (!result && !status)
        result = driver->graph_launch(exec, trial->stream);
    if (!result)
        result = driver->event_record(trial->ended, trial->stream);
    if (!result)
        result = driver->event_synchronize(trial->ended);
    if (!result)
        result = driver->event_elapsed_time(&milliseconds, trial->began, trial->ended);
    *microseconds = 1e3 * (double)milliseconds / calls;
    return status || !result ? status : gpi__cuda_failed(driver, result, "timing");
}

/* >>the whole */

/* The primary context is current, and nothing runs any more. */
static void gpi__close_trial(gpi__trial *trial) {
    const gpi__driver *driver = &trial->context->driver;
    const gemmepi_allocator *allocator = &trial->context->allocator;
    if (trial->began)
        driver->event_destroy(trial->began);
    if (trial->ended)
        driver->event_destroy(trial->ended);
    if (trial->memory)
        driver->mem_free((gpi__cu_deviceptr)(uintptr_t)trial->memory);
    if (trial->workspace)
        driver->mem_free((gpi__cu_deviceptr)(uintptr_t)trial->workspace);
    if (trial->stream)
        driver->stream_destroy(trial->stream);
    gpi__delete(allocator, trial->block);
    gpi__delete(allocator, trial->reference);
    gpi__delete(allocator, trial->compared);
}

/* gpi__close_trial takes whatever this leaves. The primary context is current. */
static gemmepi_status gpi__open_trial(gpi__trial *trial, gemmepi_context *context,
                                      const gpi__problem *problem, const gpi__tuned_kind *kind,
                                      const gemmepi_tune_options *options) {
    const gemmepi_allocator *allocator = &context->allocator;
    gemmepi_stream stream = NULL;
    gemmepi_status status;
    int result;
    memset(trial, 0, sizeof *trial);
    trial->context = context;
    trial->problem = problem;
    trial->kind = kind;
    trial->mode = options->mode;
    trial->allowed = gpi__allow_of_size;
    gpi__lay_out_trial(trial);
    trial->outputs_size = gpi__outputs_size(trial);
    trial->block = (char *)gpi__new(allocator, GPI__TRIAL_BLOCK * sizeof(double));
    trial->reference = (char *)gpi__new(allocator, trial->outputs_size + 1);
    trial->compared = (char *)gpi__new(allocator, trial->outputs_size + 1);
    if (!trial->block || !trial->reference || !trial->compared)
        return GEMMEPI_OUT_OF_MEMORY;
    status = gpi__count_sets(trial, options->memory ? options->memory : GPI__TRIAL_MEMORY);
    if (!status)
        status = gemmepi_stream_create(context, &stream);
    if (status)
        return status;
    trial->stream = stream;
    status = gpi__acquire_trial_memory(trial);
    if (status)
        return status;
    result = context->driver.event_create(&trial->began, 0);
    if (!result)
        result = context->driver.event_create(&trial->ended, 0);
    if (result)
        return gpi__cuda_failed(&context->driver, result, "cuEventCreate");
    return gpi__fill_sets(trial, 0);
}

#endif
