/* Element-wise formulas: what a plan has of one, and its runs. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_H
#define GEMMEPI_ELEMENTWISE_FORMULA_H

#include "../device/create.h"
#include "../device/memory.h"
#include "../formula/key.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/formula.h"
#endif
#include "formula_axes.h"
#include "formula_launch.h"
#include "formula_regions.h"

typedef struct gpi__elementwise_formula {
    gpi__formula_task task;
    gpi__formula *formula;
    gpi__reach_of reach[GPI__RESULT + 1];
    gpi__formula_pass pass; /* on a GPU */
    int64_t offsets[GPI__RESULT + 1];
    int is_one_line;     /* all tensors merge into one */
    double microseconds; /* estimated */
} gpi__elementwise_formula;

/* >>building */

static void gpi__delete_elementwise_formula(const gemmepi_allocator *allocator,
                                            gpi__elementwise_formula *own) {
    if (own)
        gpi__delete(allocator, own->formula);
    gpi__delete(allocator, own);
}

/* Of a task whose formula becomes the result's. NULL: there is no memory, and the formula is still the caller's. */
static gpi__elementwise_formula *gpi__new_elementwise_formula(const gemmepi_allocator *allocator,
                                                              const gpi__formula_task *task,
                                                              gpi__formula *formula) {
    gpi__elementwise_formula *own = (gpi__elementwise_formula *)gpi__new(allocator, sizeof *own);
    gpi__layout layout;
    int i;
    if (!own)
        return NULL;
    own->task = *task;
    own->formula = formula;
    gpi__point_task(&own->task, formula);
    for (i = 0; i <= GPI__RESULT; i++) {
        if (!task->has_tensor[i])
            continue;
        layout = gpi__layout_of_tensor(&own->task, i);
        own->reach[i] = gpi__reach_of_layout(&layout, task->offsets[i]);
        if (formula->operands[i].output && !formula->operands[i].used) /* without an element */
            own->reach[i].low = own->reach[i].high = 0;
    }
    return own;
}

/* What tells it from all others: task and formula, to be given to gpi__delete, or NULL. */
static void *gpi__key_of_formula_task(const gemmepi_allocator *allocator, const gpi__formula_task *task,
                                      const gpi__formula *formula, size_t *size) {
    gpi__formula head = *formula;
    size_t rest = gpi__rest_of_formula(formula), fields = offsetof(gpi__formula, nodes);
    char *key;
    *size = sizeof *task + fields + rest;
    key = (char *)gpi__new(allocator, *size);
    if (!key)
        return NULL;
    memcpy(key, task, sizeof *task);
    memcpy(key + sizeof *task, &head, fields);
    memcpy(key + sizeof *task + fields, formula->nodes, rest);
    return key;
}

/* Under the build lock. */
static gemmepi_status gpi__build_formula_launches(gemmepi_context *context, gpi__elementwise_formula *own) {
    gpi__device_formula device;
    gpi__formula_source source;
    gpi__convert_device_formula(&own->task, &device);
    memset(&source, 0, sizeof source);
    source.alignment = gpi__alignment_on_device(&device, own->task.alignment);
    memcpy(own->offsets, device.offsets, sizeof own->offsets);
    own->is_one_line = device.placed.rows == 1 && device.placed.items == 1;
    own->microseconds = gpi__formula_pass_microseconds(context, &device.placed, &source);
    return gpi__build_formula_pass(context, &device.placed, &source, &own->pass);
}

/* >>pointers */

/* A run's pointers by place, y's at RESULT. desc, of a call that plans itself: whose tensors' data stands for what args lacks. */
static void gpi__list_formula_pointers(const gemmepi_elementwise_args *args, int count,
                                       const gemmepi_elementwise_desc *desc,
                                       void *pointers[GPI__RESULT + 1]) {
    int i;
    for (i = 0; i < count; i++) {
        pointers[i] = args->operands ? args->operands[i] : NULL;
        if (!pointers[i] && desc && desc->operands[i].tensor)
            pointers[i] = desc->operands[i].tensor->data;
    }
    pointers[GPI__RESULT] = args->y;
    if (!args->y && desc && desc->y)
        pointers[GPI__RESULT] = desc->y->data;
}

/* The alignment class of the tensors' data, as gpi__alignment_of for products. Nothing of the desc but its count is checked yet. */
static size_t gpi__alignment_of_formula(const gemmepi_elementwise_desc *desc, void *const *pointers) {
    uintptr_t bits = GPI__DEFAULT_ALIGNMENT | (uintptr_t)pointers[GPI__RESULT];
    int i;
    for (i = 0; i < desc->operand_count; i++)
        if (desc->operands[i].kind != GEMMEPI_NUMBER)
            bits |= (uintptr_t)pointers[i];
    return (size_t)(bits & (~bits + 1));
}

/* >>running */

/* Each pointer to the element of index 0 of its tensor, `offsets` bytes on. */
static void gpi__shift_pointers(const gpi__formula *formula, const int64_t *offsets, void *const *pointers,
                                void *shifted[GPI__RESULT + 1]) {
    int i;
    for (i = gpi__next_place(formula, -1); i <= GPI__RESULT; i = gpi__next_place(formula, i))
        shifted[i] = pointers[i] && formula->operands[i].kind != GEMMEPI_NUMBER
                         ? (void *)((uintptr_t)pointers[i] + (uintptr_t)offsets[i])
                         : pointers[i];
}

static gemmepi_status gpi__run_formula_on_device(const gemmepi_context *context,
                                                 const gpi__elementwise_formula *own,
                                                 const gemmepi_elementwise_args *args, void *const *pointers,
                                                 void *workspace, gemmepi_stream stream) {
    gpi__formula_run run;
    void *shifted[GPI__RESULT + 1];
    gpi__shift_pointers(own->formula, own->offsets, pointers, shifted);
    memset(&run, 0, sizeof run);
    run.operands = shifted;
    run.scales = args->operand_scales;
    run.amax = args->operand_amax;
    run.states = workspace;
    return gpi__run_formula_pass(context, &own->pass, &run, stream);
}

#ifndef GEMMEPI_NO_HOST
static gemmepi_status gpi__run_formula_on_host(const gpi__elementwise_formula *own,
                                               const gemmepi_elementwise_args *args, void *const *pointers,
                                               const gemmepi_allocator *allocator) {
    gpi__arguments arguments;
    void *shifted[GPI__RESULT + 1];
    int i;
    memset(&arguments, 0, sizeof arguments);
    gpi__shift_pointers(own->formula, own->task.offsets, pointers, shifted);
    for (i = 0; i < own->formula->operand_count; i++)
        if (own->formula->operands[i].kind == GEMMEPI_NUMBER && own->formula->operands[i].used)
            memcpy(&arguments.numbers[i], pointers[i], sizeof(double));
    arguments.pointers[GPI__D] = shifted[GPI__RESULT];
    arguments.operands = shifted;
    arguments.operand_scales = args->operand_scales;
    arguments.operand_amax = args->operand_amax;
    return gpi__host_formula_over(NULL, &own->task.placed, &arguments, NULL, allocator);
}
#endif

#endif
