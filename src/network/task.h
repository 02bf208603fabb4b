/* A network as its plan sees it: defaults filled in, every rule checked. A task's bytes tell networks apart. */
#ifndef GEMMEPI_NETWORK_TASK_H
#define GEMMEPI_NETWORK_TASK_H

#include "../linear/calls.h"

enum { GPI__NETWORK_OPERANDS = 48 }; /* of all layers */

/* What tells a task from those of other kinds. */
enum { GPI__NETWORK_FORWARD = -32, GPI__NETWORK_BACKWARD = -33 };

/* Formulas are the context's, each with a reference for the task. */
typedef struct gpi__network_layer {
    int64_t inputs, width; /* k and n of its product */
    double parameter;
    uint64_t activation; /* by name; NONE where a formula is in its place */
    /* Forward: of the product x w, with the bias among its operands. NULL: by name */
    gpi__kept_formula *formula;
    /* Backward: what makes G, of the product that makes P again, with bias and dY among its operands */
    gpi__kept_formula *gradient;
    gpi__kept_formula *made; /* what makes the first layer's input of x */
    int32_t operand_count;   /* of the caller's, which are the first ones of each formula */
    int32_t asks_gradients;  /* some of them are gradients d_NAME */
    /* Behind them, of formula and of gradient: tensors of the layer, GPI__L_BIAS and so on; -1: none */
    int8_t beside[2][4];
} gpi__network_layer;

/* Zeroed before it is filled. */
typedef struct gpi__network_task {
    int64_t tag;
    int64_t rows;
    uint64_t flags;
    gpi__view x, y; /* dx and dy lie as they do */
    int32_t layer_count;
    int32_t dtype, x_dtype, bias_dtype, gradient_dtype;
    int32_t compute; /* as given */
    int32_t alignment;
    /* At the end: the bytes behind the last layer do not count */
    gpi__network_layer layers[GPI__NETWORK_LAYERS];
} gpi__network_task;

static size_t gpi__network_task_size(const gpi__network_task *task) {
    return offsetof(gpi__network_task, layers) + (size_t)task->layer_count * sizeof task->layers[0];
}

static int gpi__is_network_backward(const gpi__network_task *task) {
    return task->tag == GPI__NETWORK_BACKWARD;
}

static void gpi__drop_networks_formulas(gemmepi_context *context, const gpi__network_task *task) {
    int i;
    for (i = 0; i < task->layer_count; i++) {
        gpi__drop_one(context, task->layers[i].formula);
        gpi__drop_one(context, task->layers[i].gradient);
        gpi__drop_one(context, task->layers[i].made);
    }
}

/* The formula that reads or writes an operand in this direction, or NULL. Backward may run forward's again. */
static const gpi__kept_formula *gpi__networks_formula_with(const gpi__network_task *task, int layer,
                                                           int operand) {
    const gpi__kept_formula *all[3];
    int i;
    all[0] = task->layers[layer].gradient;
    all[1] = task->layers[layer].formula;
    all[2] = task->layers[layer].made;
    for (i = 0; i < 3; i++)
        if (all[i] && all[i]->placed.formula->operands[operand].used)
            return all[i];
    return NULL;
}

#endif
