/* Networks in one kernel (kernels/network.cu, network_few.cu, network_backward.cu): which it takes, its shape, its text, and its launches. Narrow ones: what a
   warp has of its rows stays in registers, and the weights of all layers in shared memory. */
#ifndef GEMMEPI_NETWORK_KERNEL_H
#define GEMMEPI_NETWORK_KERNEL_H

#include "../formula/emit.h"
#include "../product/parts/sums.h"
#include "task.h"

#define GPI__WIDEST_IN_KERNEL    128
#define GPI__WIDEST_OF_F32       96
#define GPI__FEW_ROWS            512 /* up to so many go by network_few.cu */
#define GPI__REGISTERS_OF_THREAD 250 /* as gpi__registers_of_backward counts them */

/* How its blocks are made. */
typedef struct gpi__network_shape {
    int warps, row_blocks; /* each warp has 16 rows times row_blocks */
    int blocks;            /* of a multiprocessor, at most */
    int few;               /* 1: a block has 16 rows, and a warp 16 columns of theirs (network_few.cu) */
    int wgmma;             /* 1: products by that, of four warps' rows together */
} gpi__network_shape;

/* What a plan has of it. */
typedef struct gpi__network_kernel {
    gpi__launch launch, sums; /* sums: those of blocks, of dw */
    gpi__network_shape shape;
    gpi__network_params params; /* without pointers */
    gpi__reduce_params sums_params;
    size_t workspace_size;
} gpi__network_kernel;

/* >>shape */

static int64_t gpi__network_steps(int64_t width) {
    return (width + 15) / 16;
}

static int64_t gpi__width_at(const gpi__network_task *task, int i) {
    return i ? task->layers[i - 1].width : task->layers[0].inputs;
}

static int64_t gpi__widest(const gpi__network_task *task) {
    int64_t most = 0;
    int i;
    for (i = 0; i <= task->layer_count; i++)
        most = gpi__width_at(task, i) > most ? gpi__width_at(task, i) : most;
    return most;
}

static int gpi__network_is(const gpi__network_task *task, uint64_t flag) {
    return (task->flags & flag) != 0;
}

/* Whether its activations take no registers of their own. */
static int gpi__is_plain_network(const gpi__network_task *task) {
    int i, plain = 1;
    for (i = 0; i < task->layer_count; i++)
        plain &= !task->layers[i].formula &&
                 (task->layers[i].activation == GEMMEPI_NONE || task->layers[i].activation == GEMMEPI_RELU);
    return plain;
}

/* F32 in twice the registers, as TF32. */
static int gpi__is_tf32_network(const gpi__network_task *task) {
    return task->dtype == GEMMEPI_F32 && task->compute == GEMMEPI_COMPUTE_TF32;
}

/* By wgmma: the more registers functions take, and addresses of layers whose widths differ, the fewer warps there are. */
static void gpi__shape_for_wgmma(const gpi__network_task *task, gpi__network_shape *shape) {
    int i, is_wide = gpi__widest(task) > 64, is_plain = gpi__is_plain_network(task), is_alike = 1;
    for (i = 0; i < task->layer_count; i++)
        is_alike &= !task->layers[i].formula && task->layers[i].width == task->layers[0].inputs;
    shape->warps = is_wide ? (is_plain || is_alike ? 16 : 12) : is_plain ? 12 : 20;
    shape->blocks = is_plain && !is_wide ? 2 : 1;
}

static int gpi__has_few_rows(const gpi__network_task *task) {
    return !gpi__is_network_backward(task) && task->rows <= GPI__FEW_ROWS;
}

static gpi__network_shape gpi__network_shape_of(const gpi__network_task *task, int arch) {
    gpi__network_shape shape = {8, 1, 1, 0, 0};
    int64_t widest = gpi__widest(task);
    int backward = gpi__is_network_backward(task);
    shape.few = gpi__has_few_rows(task);
    if (shape.few)
        shape.warps = (int)gpi__network_steps(widest);
    if (shape.few)
        return shape;
    shape.wgmma = widest > 32 && widest <= (backward ? 64 : 128) && !gpi__is_tf32_network(task) &&
                  gpi__chip_has(arch, GPI__WGMMA);
    if (shape.wgmma && !backward)
        gpi__shape_for_wgmma(task, &shape);
    if (shape.wgmma)
        return shape;
    if (widest <= 32)
        shape.blocks = backward ? 2 : 3;
    else if (!backward && widest <= 64)
        shape.blocks = 2;
    if (!backward && widest <= 64 && !gpi__is_plain_network(task))
        shape.warps = 6;
    shape.row_blocks = backward || gpi__is_tf32_network(task) ? 1 : 2;
    return shape;
}

static int64_t gpi__network_tile(const gpi__network_shape *shape) {
    return shape->few ? 16 : (int64_t)shape->warps * shape->row_blocks * 16;
}

/* Shared memory: weights, bias, and backward what its layers read and two G, of a tile. Forward what warps of few rows exchange, by turns: for any number
   of rows, on which it does not depend whether the kernel runs. */
static int64_t gpi__network_shared(const gpi__network_task *task, int arch) {
    gpi__network_shape shape = gpi__network_shape_of(task, arch);
    int64_t bytes = 0, rows = gpi__network_tile(&shape) / 16,
            block = 256 * (int64_t)gemmepi_dtype_size((gemmepi_dtype)task->dtype);
    int i;
    for (i = 0; i < task->layer_count; i++) {
        int64_t k = gpi__network_steps(gpi__width_at(task, i)),
                n = gpi__network_steps(gpi__width_at(task, i + 1));
        bytes += k * n * block + (gpi__network_is(task, GEMMEPI_NETWORK_BIAS) ? n * 64 : 0);
        bytes += gpi__is_network_backward(task) ? k * rows * block : 0;
    }
    bytes += shape.wgmma && gpi__is_network_backward(task)
                 ? 2048
                 : 0; /* that wgmma reads of columns that there are not */
    return bytes +
           2 * gpi__network_steps(gpi__widest(task)) * (gpi__is_network_backward(task) ? rows : 1) * block;
}

/* Registers of a thread for the sums of a layer's dw, and of dbias: as kernels/network_backward.cu divides them among warps. */
static int64_t gpi__registers_of_sums(int64_t k, int64_t n, const gpi__network_shape *shape) {
    int64_t least = INT64_MAX, most_biases = 0;
    int along, warps = shape->warps;
    for (along = shape->wgmma ? 4 : 1; along <= (shape->wgmma ? 4 : warps); along *= 2) {
        int64_t rows = gpi__divide_up(k, along), columns = gpi__divide_up(n, warps / along);
        int64_t cost = rows * columns * 64 + rows + columns;
        if (cost < least) {
            least = cost;
            most_biases = rows * columns * 8 + gpi__divide_up(2 * columns, along) * 4;
        }
    }
    return most_biases;
}

/* Roughly what ptxas gives a thread of backward: of a step it has three fragments. */
static int64_t gpi__registers_of_backward(const gpi__network_task *task, int arch) {
    gpi__network_shape shape = gpi__network_shape_of(task, arch);
    int64_t registers =
        (shape.wgmma ? 90 : 70) + 16 * gpi__network_steps(gpi__widest(task)) * shape.row_blocks;
    int i;
    for (i = 0; i < task->layer_count && gpi__network_is(task, GEMMEPI_NETWORK_DW); i++)
        registers += gpi__registers_of_sums(gpi__network_steps(gpi__width_at(task, i)),
                                            gpi__network_steps(gpi__width_at(task, i + 1)), &shape);
    return registers;
}

/* >>which it takes */

static const char *gpi__network_operand_refusal(const gpi__kept_formula *kept, int i) {
    const gpi__formula_operand *o = &kept->placed.formula->operands[i];
    if (!o->used)
        return NULL;
    if (o->used & GPI__BY_INDEX)
        return "a formula reads by index";
    if (o->output)
        return "a formula has an output besides d";
    if (o->kind == GEMMEPI_BLOCKED || o->periods || gpi__is_packed(o->dtype) ||
        kept->placed.operands[i].scale)
        return "a formula's operand is BLOCKED, repeats, has a scale, or has elements of 4 bits";
    return NULL;
}

static const char *gpi__network_formula_refusal(const gpi__kept_formula *kept) {
    const char *reason = NULL;
    int i;
    if (!kept)
        return NULL;
    if (kept->placed.formula->has_halves)
        return "a formula has halves";
    for (i = 0; i < kept->placed.formula->operand_count && !reason; i++)
        reason = gpi__network_operand_refusal(kept, i);
    return reason;
}

static const char *gpi__network_layers_refusal(const gpi__network_task *task) {
    const char *reason = NULL;
    int i, places = 0;
    for (i = 0; i < task->layer_count && !reason; i++) {
        const gpi__network_layer *layer = &task->layers[i];
        places += layer->operand_count;
        if (layer->made)
            return "x is made by a formula";
        if (gpi__is_network_backward(task) && layer->asks_gradients)
            return "gradients of operands are asked for";
        reason = gpi__network_formula_refusal(layer->formula);
        if (!reason && gpi__is_network_backward(task))
            reason = gpi__network_formula_refusal(layer->gradient);
    }
    if (!reason && places > GPI__NETWORK_PLACES)
        reason = "its formulas have more than 24 operands together";
    return reason;
}

/* Cycles of a layer's function, of a warpgroup for an element in each of its threads. */
static double gpi__function_cycles(const gpi__network_layer *layer, int backward) {
    const gpi__kept_formula *kept = backward ? layer->gradient : layer->formula;
    double cycles = 0;
    int i;
    if (!kept)
        return gpi__activation_of(layer->activation)->cycles;
    for (i = 0; i < kept->placed.formula->node_count; i++)
        cycles += gpi__node_cycles(kept->placed.formula, &kept->placed.formula->nodes[i]);
    return cycles;
}

/* Of its functions, of all columns, for a row: backward makes those of hidden layers again. */
static double gpi__network_cycles(const gpi__network_task *task) {
    int i, backward = gpi__is_network_backward(task);
    double cycles = 0;
    for (i = 0; i < task->layer_count; i++) {
        const gpi__network_layer *layer = &task->layers[i];
        cycles += (double)layer->width * gpi__function_cycles(layer, backward);
        if (backward && i + 1 < task->layer_count)
            cycles += (double)layer->width * gpi__function_cycles(layer, 0);
    }
    return cycles;
}

/* Whether a function goes by two values of a thread at a time, and not by all: else backward, in which each layer has its own instructions, has more
   than a multiprocessor keeps at hand. */
static int gpi__network_goes_by_turns(const gpi__network_task *task) {
    return gpi__is_network_backward(task) && gpi__network_cycles(task) > GPI__NETWORK_FUNCTIONS;
}

/* Why a network in this direction does not run in one kernel, as the end of a sentence, or NULL. Of rows it counts only that there are some, and
   that all rows of the last tile have numbers. */
static const char *gpi__network_refusal(const gemmepi_context *context, const gpi__network_task *task) {
    int backward = gpi__is_network_backward(task);
    if (task->dtype != GEMMEPI_F16 && task->dtype != GEMMEPI_BF16 && !gpi__is_tf32_network(task))
        return "the kernel is for F16, BF16 and F32 with COMPUTE_TF32";
    if (backward && gpi__is_tf32_network(task))
        return "the kernel's backward is for F16 and BF16";
    if (!gpi__chip_has(context->arch, task->dtype == GEMMEPI_F16 ? GPI__MMA_F16 : GPI__MMA_SYNC))
        return "the chip has no mma.sync for its type";
    if (task->rows == 0)
        return "there are no rows";
    if (task->rows > INT32_MAX - 1024)
        return "it has more than 2^31 - 1025 rows";
    if (gpi__widest(task) > GPI__WIDEST_IN_KERNEL)
        return "a layer, or its input, is wider than 128";
    if (gpi__is_tf32_network(task) && gpi__widest(task) > GPI__WIDEST_OF_F32)
        return "a layer, or its input, is wider than 96, in F32";
    if (gpi__network_is(task, GEMMEPI_NETWORK_SAVED))
        return "it has NETWORK_SAVED, where the kernel makes all again";
    if (backward && gpi__network_is(task, GEMMEPI_ACCUMULATE_DX))
        return "it has ACCUMULATE_DX";
    if (gpi__network_shared(task, context->arch) > (int64_t)gpi__chip_of(context->arch)->most_shared)
        return "its weights, or backward they and a tile's rows of every layer, are more than a block's shared memory";
    if (backward && gpi__registers_of_backward(task, context->arch) > GPI__REGISTERS_OF_THREAD)
        return "the sums of dw are more than a block has registers for";
    return gpi__network_layers_refusal(task);
}

/* >>its text */

/* Functions of layers have numbers: that of the first layer with the same. */
static int gpi__is_same_function(const gpi__network_task *task, int i, int j, int backward) {
    const gpi__network_layer *x = &task->layers[i], *y = &task->layers[j];
    if (x->formula || y->formula)
        return backward ? x->gradient == y->gradient : x->formula == y->formula;
    return x->activation == y->activation;
}

static int gpi__number_of_function(const gpi__network_task *task, int i, int backward) {
    int first = 0;
    while (!gpi__is_same_function(task, first, i, backward))
        first++;
    return first;
}

/* The place, in a layer's formula, of a tensor of the layer itself; -1: it has none. */
static int gpi__place_beside(const gpi__network_layer *layer, int backward, int tensor) {
    int i;
    for (i = 0; i < 4; i++)
        if (layer->beside[backward][i] == tensor)
            return layer->operand_count + i;
    return -1;
}

static void gpi__append_network_function(gpi__text *text, const gpi__network_task *task, int i,
                                         int backward) {
    const gpi__network_layer *layer = &task->layers[i];
    gpi__append(text, "namespace %s_%d {\n#define NETWORK_BIAS %d\n#define NETWORK_DY %d\n",
                backward ? "gradient" : "forward", i,
                layer->formula ? gpi__place_beside(layer, backward, GPI__L_BIAS) : -1,
                layer->formula ? gpi__place_beside(layer, backward, GPI__L_DY) : -1);
    if (layer->formula)
        gpi__emit_formula(text, (backward ? layer->gradient : layer->formula)->placed.formula);
    else
        gpi__append(text, "#define NETWORK_ACTIVATION %s\n#define NETWORK_BACKWARD %d\n",
                    gpi__activation_name(layer->activation), backward);
    gpi__append(text, "#include \"network_function.cuh\"\n}\n");
}

static void gpi__append_network_functions(gpi__text *text, const gpi__network_task *task, int backward) {
    int i;
    for (i = 0; i < task->layer_count; i++)
        if (gpi__number_of_function(task, i, backward) == i)
            gpi__append_network_function(text, task, i, backward);
}

/* Layers from the first on that share instructions. */
static int gpi__network_segment(const gpi__network_task *task, int first) {
    int end = first + 1;
    while (end < task->layer_count && task->layers[end].width == task->layers[first].width &&
           task->layers[end].inputs == task->layers[first].inputs &&
           task->layers[end].operand_count == task->layers[first].operand_count &&
           gpi__is_same_function(task, first, end, 0))
        end++;
    return end;
}

static void gpi__append_segments(gpi__text *text, const gpi__network_task *task) {
    int first, end, count = 0;
    gpi__append(text, "#define NETWORK_SEGMENTS(X)");
    for (first = 0; first < task->layer_count; first = end) {
        end = gpi__network_segment(task, first);
        gpi__append(text, " X(%d, %d, %d, forward_%d)", count++, first, end - first,
                    gpi__number_of_function(task, first, 0));
    }
    gpi__append(text, "\n");
}

/* Of each layer; backward its gradient's, too. */
static void gpi__append_layer_functions(gpi__text *text, const gpi__network_task *task, int backward) {
    int i;
    gpi__append(text, "#define NETWORK_LAYER_FUNCTIONS(X)");
    for (i = 0; i < task->layer_count; i++) {
        gpi__append(text, " X(%d, forward_%d", i, gpi__number_of_function(task, i, 0));
        if (backward)
            gpi__append(text, ", gradient_%d", gpi__number_of_function(task, i, 1));
        gpi__append(text, ")");
    }
    gpi__append(text, "\n");
}

static int gpi__network_is_exact(const gpi__network_task *task) {
    int i, exact = task->dtype == GEMMEPI_F32;
    for (i = 0; i < task->layer_count; i++) {
        const gpi__network_layer *layer = &task->layers[i];
        exact |= layer->formula && !layer->formula->placed.formula->is_short;
        exact |= layer->gradient && !layer->gradient->placed.formula->is_short;
    }
    return exact;
}

static void gpi__append_network_shape(gpi__text *text, const gpi__network_task *task, int arch) {
    gpi__network_shape shape = gpi__network_shape_of(task, arch);
    int i, place = 0;
    gpi__append(text, "#define NETWORK_ELEMENT %s\n#define NETWORK_LAYERS %d\n#define NETWORK_WIDTHS %lld",
                gpi__type(task->dtype), (int)task->layer_count, (long long)gpi__width_at(task, 0));
    for (i = 1; i <= task->layer_count; i++)
        gpi__append(text, ", %lld", (long long)gpi__width_at(task, i));
    gpi__append(text, "\n#define NETWORK_FIRST_PLACES 0");
    for (i = 0; i < task->layer_count; i++)
        gpi__append(text, ", %d", place += task->layers[i].operand_count);
    gpi__append(
        text,
        "\n#define NETWORK_WARPS %d\n#define NETWORK_ROW_BLOCKS %d\n#define NETWORK_BLOCKS %d\n"
        "#define NETWORK_WGMMA %d\n#define NETWORK_HAS_BIAS %d\n#define NETWORK_BIAS_TYPE %s\n#define NETWORK_TRANSPOSED %d\n",
        shape.warps, shape.row_blocks, shape.blocks, shape.wgmma, gpi__network_is(task, GEMMEPI_NETWORK_BIAS),
        gpi__type(task->bias_dtype), gpi__network_is(task, GEMMEPI_NETWORK_TRANSPOSED));
}

static int gpi__is_in_runs(const gpi__network_task *task, int64_t width, int64_t ld) {
    return task->alignment % 16 == 0 && width % 8 == 0 && ld % 8 == 0;
}

static void gpi__append_network_flags(gpi__text *text, const gpi__network_task *task) {
    gpi__append(
        text, "#define NETWORK_X_ALIGNED %d\n#define NETWORK_Y_ALIGNED %d\n#define NETWORK_W_ALIGNED %d\n",
        gpi__is_in_runs(task, task->layers[0].inputs, task->x.ld),
        gpi__is_in_runs(task, gpi__width_at(task, task->layer_count), task->y.ld), task->alignment % 16 == 0);
    if (gpi__is_network_backward(task))
        gpi__append(text, "#define NETWORK_HAS_DX %d\n#define NETWORK_HAS_DW %d\n",
                    gpi__network_is(task, GEMMEPI_NETWORK_DX), gpi__network_is(task, GEMMEPI_NETWORK_DW));
}

/* All that stands before a kernel. */
static void gpi__network_prologue(gpi__text *text, const gpi__network_task *task, int arch) {
    int i, has_formulas = 0;
    for (i = 0; i < task->layer_count; i++)
        has_formulas |= task->layers[i].formula != NULL;
    gpi__append_network_shape(text, task, arch);
    gpi__append_network_flags(text, task);
    gpi__append(text,
                "#define GEMMEPI_T float\n#define GEMMEPI_INDEX int\n#define GEMMEPI_EXACT %d\n"
                "#define NETWORK_HAS_FORMULAS %d\n#define NETWORK_TURNS %d\n#include \"network.cuh\"\n",
                gpi__network_is_exact(task), has_formulas, gpi__network_goes_by_turns(task));
    if (has_formulas)
        gpi__append(text, "__device__ inline float formula_rounded(float x, float) {\n"
                          "    return to_f32(from_acc<Element>(x));\n}\n");
    gpi__append_network_functions(text, task, 0);
    if (gpi__is_network_backward(task))
        gpi__append_network_functions(text, task, 1);
    if (gpi__is_network_backward(task) || gpi__has_few_rows(task))
        gpi__append_layer_functions(text, task, gpi__is_network_backward(task));
    else
        gpi__append_segments(text, task);
}

/* >>building */

static gemmepi_status gpi__get_network_kernel(gemmepi_context *context, const gpi__network_task *task,
                                              const char *file, const char *entry, gpi__launch *launch) {
    gpi__text text = gpi__growing_text(&context->allocator);
    gemmepi_status status;
    gpi__network_prologue(&text, task, context->arch);
    status = gpi__get_printed_kernel(context, file, entry, &text, launch);
    gpi__delete(&context->allocator, text.data);
    return status;
}

/* What adds up the sums that blocks leave of dw and dbias, one layer after another. */
static gemmepi_status gpi__build_network_sums(gemmepi_context *context, const gpi__network_task *task,
                                              gpi__network_kernel *kernel) {
    gpi__addends x = {0, 1, GEMMEPI_F32, 0, task->gradient_dtype, 0, 0, 0, 1};
    gpi__reduce_params *params = &kernel->sums_params;
    int i, of_bias;
    for (i = 0; i < task->layer_count; i++)
        for (of_bias = 0; of_bias <= gpi__network_is(task, GEMMEPI_NETWORK_BIAS); of_bias++) {
            params->begins[params->outputs++] = (int)params->results;
            params->results += (of_bias ? 1 : task->layers[i].inputs) * task->layers[i].width;
        }
    x.accumulate = gpi__network_is(task, GEMMEPI_ACCUMULATE_DW);
    params->x.ld = params->results;
    params->terms = params->part_terms = (int64_t)kernel->launch.blocks;
    params->parts = 1;
    kernel->workspace_size = (size_t)(params->terms * params->results) * sizeof(float);
    return gpi__build_sum(context, &x, params, &kernel->sums);
}

/* As many blocks as run at a time, or fewer; of few rows one for each tile. */
static void gpi__shape_network(const gemmepi_context *context, const gpi__network_task *task,
                               gpi__network_kernel *kernel) {
    int64_t shared = gpi__network_shared(task, context->arch);
    int64_t at_once = gpi__blocks_at_once(context->arch, (unsigned)shared), tiles;
    kernel->shape = gpi__network_shape_of(task, context->arch);
    at_once = at_once < 1 ? 1 : at_once > kernel->shape.blocks ? kernel->shape.blocks : at_once;
    at_once *= context->multiprocessors;
    tiles = gpi__divide_up(task->rows, gpi__network_tile(&kernel->shape));
    kernel->launch.blocks = (unsigned)(tiles < at_once || kernel->shape.few ? tiles : at_once);
    kernel->launch.threads_x = (unsigned)kernel->shape.warps * 32;
    kernel->launch.threads_y = 1;
    kernel->launch.shared = (unsigned)shared;
}

static void gpi__fill_network_params(const gpi__network_task *task, gpi__network_params *params) {
    int i, j, place = 0;
    params->rows = (int)task->rows;
    params->x_ld = task->x.ld;
    params->y_ld = task->y.ld;
    for (i = 0; i < task->layer_count; i++) {
        const gpi__network_layer *layer = &task->layers[i];
        params->parameter[i] = (float)layer->parameter;
        for (j = 0; j < layer->operand_count; j++, place++) {
            const gpi__kept_formula *kept = gpi__networks_formula_with(task, i, j);
            if (kept)
                params->places[place].ld =
                    kept->placed.formula->operands[j].kind == GEMMEPI_FULL ? kept->placed.operands[j].ld : 1;
        }
    }
}

/* Of a network that is not refused; the build lock is not held. */
static gemmepi_status gpi__build_network_kernel(gemmepi_context *context, const gpi__network_task *task,
                                                gpi__network_kernel *kernel) {
    int backward = gpi__is_network_backward(task);
    const char *file = backward                  ? "network_backward.cu"
                       : gpi__has_few_rows(task) ? "network_few.cu"
                                                 : "network.cu";
    gpi__entry entry;
    gemmepi_status status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    memset(kernel, 0, sizeof *kernel);
    gpi__shape_network(context, task, kernel);
    gpi__fill_network_params(task, &kernel->params);
    gpi__lock(&context->build_lock);
    status = gpi__get_network_kernel(
        context, task, file, backward ? "gemmepi_network_backward" : "gemmepi_network", &kernel->launch);
    if (!status && backward && gpi__network_is(task, GEMMEPI_NETWORK_DW))
        status = gpi__build_network_sums(context, task, kernel);
    gpi__unlock(&context->build_lock);
    gpi__leave_relaxed(context, &entry);
    return status;
}

#endif
