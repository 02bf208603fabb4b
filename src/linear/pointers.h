/* The pointers of a layer's run, checked: those of its tensors, and of the operands of its formula. */
#ifndef GEMMEPI_LINEAR_POINTERS_H
#define GEMMEPI_LINEAR_POINTERS_H

#include "layer.h"

static void gpi__list_layer_pointers(const gpi__layer_task *task, const gemmepi_linear_args *args,
                                     void *pointers[GPI__L_ALL]) {
    int swap = task->exchanged;
    const void *inputs[GPI__L_COUNT];
    inputs[GPI__L_A] = swap ? args->b : args->a;
    inputs[GPI__L_B] = swap ? args->a : args->b;
    inputs[GPI__L_Y] = args->y;
    inputs[GPI__L_PREACT] = args->preact;
    inputs[GPI__L_DY] = args->dy;
    inputs[GPI__L_BIAS] = args->bias;
    inputs[GPI__L_DA] = swap ? args->db : args->da;
    inputs[GPI__L_DB] = swap ? args->da : args->db;
    inputs[GPI__L_DBIAS] = args->dbias;
    inputs[GPI__L_SCALE_A] = swap ? args->scale_b : args->scale_a;
    inputs[GPI__L_SCALE_B] = swap ? args->scale_a : args->scale_b;
    inputs[GPI__L_SCALE_Y] = args->scale_y;
    inputs[GPI__L_SCALE_PREACT] = args->scale_preact;
    inputs[GPI__L_SCALE_DY] = args->scale_dy;
    inputs[GPI__L_FOUND_SCALE_Y] = args->found_scale_y;
    inputs[GPI__L_AMAX_HISTORY] = args->amax_history;
    memset(pointers, 0, GPI__L_ALL * sizeof(void *));
    memcpy(pointers, inputs, sizeof inputs);
    if (GPI__LAYER_OPERANDS && args->operands && task->operand_count)
        memcpy(&pointers[GPI__L_OPERANDS], args->operands, (size_t)task->operand_count * sizeof(void *));
    if (GPI__LAYER_OPERANDS && args->operand_scales && task->operand_count)
        memcpy(&pointers[GPI__L_OPERAND_SCALES], args->operand_scales,
               (size_t)task->operand_count * sizeof(void *));
}

/* The arrays of a formula's operands. */
static gemmepi_status gpi__check_layer_arrays(const gpi__layer_task *task, const gemmepi_linear_args *args) {
    if (!task->formula && (args->operands || args->operand_scales))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is given, but desc.formula is NULL",
                         args->operands ? "operands" : "operand_scales");
    if (task->operand_count && !args->operands)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.operands is NULL; desc.operand_count is %d, so it has as many pointers",
                         (int)task->operand_count);
    return GEMMEPI_OK;
}

/* What a run has pointers for. */
static int gpi__layer_pointers(const gpi__layer_task *task) {
    return task->formula ? (int)GPI__L_ALL : (int)GPI__L_COUNT;
}

/* The flag with which a layer has a tensor, in the caller's words. */
typedef struct gpi__layers_flag {
    int tensor;
    uint64_t bit;
    const char *name;
} gpi__layers_flag;

/* NULL: the layer has the tensor in any case. */
static const gpi__layers_flag *gpi__flag_of_tensor(const gpi__layer_task *task, int tensor) {
    static const gpi__layers_flag flags[] = {{GPI__L_PREACT, GEMMEPI_LINEAR_SAVED, "LINEAR_SAVED"},
                                             {GPI__L_BIAS, GEMMEPI_LINEAR_BIAS, "LINEAR_BIAS"},
                                             {GPI__L_DBIAS, GEMMEPI_LINEAR_DBIAS, "LINEAR_DBIAS"},
                                             {GPI__L_DA, GEMMEPI_LINEAR_DA, "LINEAR_DA"},
                                             {GPI__L_DB, GEMMEPI_LINEAR_DB, "LINEAR_DB"},
                                             {GPI__L_DA, GEMMEPI_LINEAR_DA, "LINEAR_DB"}, /* exchanged */
                                             {GPI__L_DB, GEMMEPI_LINEAR_DB, "LINEAR_DA"}};
    size_t i, first = task->exchanged && (tensor == GPI__L_DA || tensor == GPI__L_DB) ? 5 : 0;
    for (i = first; i < GPI__COUNT(flags); i++)
        if (flags[i].tensor == tensor)
            return &flags[i];
    return NULL;
}

/* Whether only the other direction takes it, so that this one lets it be. */
static int gpi__is_of_other_direction(const gpi__layer_task *task, int tensor) {
    int of_forward = tensor == GPI__L_Y || tensor == GPI__L_SCALE_Y || tensor == GPI__L_FOUND_SCALE_Y ||
                     tensor == GPI__L_AMAX_HISTORY;
    int of_backward =
        tensor == GPI__L_DY || tensor == GPI__L_SCALE_DY || (tensor >= GPI__L_DA && tensor <= GPI__L_DBIAS);
    return gpi__is_backward(task) ? of_forward : of_backward;
}

/* Refuses a pointer that is given without its flag or scale mode. */
static gemmepi_status gpi__check_layers_pointer(const gpi__layer_task *task, int tensor,
                                                const void *pointer) {
    int of = tensor >= GPI__L_SCALE_A && tensor <= GPI__L_SCALE_DY ? tensor - GPI__L_SCALE_A : tensor;
    const gpi__layers_flag *flag = gpi__flag_of_tensor(task, of);
    const char *name = gpi__layer_name(task, tensor);
    if (flag && !(task->flags & flag->bit))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.%s is given (%p), but desc.flags has no %s: set it, or leave %s NULL", name,
                         pointer, flag->name, name);
    if (tensor >= GPI__L_FOUND_SCALE_Y && !gpi__layer_has(task, tensor))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.%s is given (%p), but desc.flags has no FIND_SCALE_D%s", name, pointer,
                         tensor == GPI__L_AMAX_HISTORY ? " with the scale mode TENSOR of y" : "");
    if (tensor == GPI__L_SCALE_Y && task->found_scale)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.scale_y is given (%p), but desc.flags has FIND_SCALE_D: y's scales are "
                         "found, and go to args.found_scale_y",
                         pointer);
    if (of != tensor && !task->views[of].scale)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is given (%p), but desc.%s.scale.mode is NONE",
                         name, pointer, gpi__layer_name(task, of));
    return GEMMEPI_OK;
}

/* Refuses a scale of an operand that desc gives none: both directions take the same array. */
static gemmepi_status gpi__check_layers_operand_scale(const gpi__layer_task *task, int tensor,
                                                      const void *pointer) {
#ifndef GEMMEPI_NO_FORMULA
    int place = tensor - GPI__L_OPERAND_SCALES;
    char room[128];
    if (place >= 0 && place < task->operand_count && pointer && !task->formula->placed.operands[place].scale)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is given (%p), but desc has no scale.mode for it",
                         gpi__layer_pointers_name(task, tensor, room), pointer);
#else
    (void)task, (void)tensor, (void)pointer;
#endif
    return GEMMEPI_OK;
}

/* What one direction alone takes may be there in the other; what the layer has not may be there in neither. */
static gemmepi_status gpi__check_layer_presence(const gpi__layer_task *task,
                                                void *const pointers[GPI__L_ALL]) {
    gemmepi_status status = GEMMEPI_OK;
    char room[128];
    int t;
    for (t = 0; t < gpi__layer_pointers(task) && !status; t++) {
        if (!pointers[t] && gpi__layer_has(task, t) &&
            (gpi__is_layers_number(task, t) || gpi__layer_view(task, t)->bytes)) {
            const gpi__layers_flag *flag = gpi__flag_of_tensor(task, t);
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is NULL; this %s needs it%s%s",
                             gpi__layer_pointers_name(task, t, room),
                             gpi__is_backward(task) ? "backward" : "forward",
                             flag ? ", as desc.flags has " : "", flag ? flag->name : "");
        }
        if (t >= GPI__L_OPERANDS)
            status = gpi__check_layers_operand_scale(task, t, pointers[t]);
        else if (pointers[t] && !gpi__is_of_other_direction(task, t))
            status = gpi__check_layers_pointer(task, t, pointers[t]);
    }
    return status;
}

/* Bytes that a pointer is a multiple of: of operands with rows or columns those of matrices. */
static int gpi__layers_alignment(const gpi__layer_task *task, int tensor) {
    int alignment = gpi__layer_view(task, tensor)->alignment;
#ifndef GEMMEPI_NO_FORMULA
    if (tensor >= GPI__L_OPERANDS && tensor < GPI__L_OPERAND_SCALES && alignment < task->alignment &&
        task->formula->placed.formula->operands[tensor - GPI__L_OPERANDS].kind >= GEMMEPI_PER_ROW)
        return task->alignment;
#endif
    return alignment;
}

static gemmepi_status gpi__check_layer_alignment(const gpi__layer_task *task,
                                                 void *const pointers[GPI__L_ALL]) {
    char room[128];
    int t, alignment;
    for (t = 0; t < gpi__layer_pointers(task); t++) {
        if (!gpi__layer_has(task, t) || gpi__is_layers_number(task, t))
            continue;
        alignment = gpi__layers_alignment(task, t);
        if ((uintptr_t)pointers[t] & (uintptr_t)(alignment - 1))
            return gpi__fail(GEMMEPI_MISALIGNED, "args.%s is %p; it must be a multiple of %d bytes",
                             gpi__layer_pointers_name(task, t, room), pointers[t], alignment);
    }
    return GEMMEPI_OK;
}

/* An output and another tensor. */
static gemmepi_status gpi__check_two_tensors(const gpi__layer_task *task, void *const pointers[GPI__L_ALL],
                                             int t, int other) {
    const gpi__view *view = gpi__layer_view(task, t), *beside = gpi__layer_view(task, other);
    uintptr_t p = (uintptr_t)pointers[t], q = (uintptr_t)pointers[other];
    uintptr_t p_bytes = (uintptr_t)view->bytes, q_bytes = (uintptr_t)beside->bytes;
    char first[128], second[128];
    int shares;
    if (!p_bytes || !q_bytes || p + p_bytes <= q || q + q_bytes <= p)
        return GEMMEPI_OK;
    shares = gpi__views_share(view, beside, task->batch, (int64_t)(q - p));
    if (!shares)
        return GEMMEPI_OK;
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s (%p, %lld bytes) overlaps args.%s (%p, %lld bytes)%s",
                     gpi__layer_pointers_name(task, t, first), pointers[t], (long long)p_bytes,
                     gpi__layer_pointers_name(task, other, second), pointers[other], (long long)q_bytes,
                     gpi__if_undecided(shares));
}

/* Outputs overlap nothing. */
static gemmepi_status gpi__check_layer_overlap(const gpi__layer_task *task,
                                               void *const pointers[GPI__L_ALL]) {
    gemmepi_status status = GEMMEPI_OK;
    int t, other, all = gpi__layer_pointers(task);
    for (t = 0; t < all; t++)
        for (other = 0; other < all && !status && gpi__layer_writes(task, t); other++)
            if (other != t && gpi__layer_has(task, other) && !gpi__is_layers_number(task, other) &&
                !(other < t && gpi__layer_writes(task, other)))
                status = gpi__check_two_tensors(task, pointers, t, other);
    return status;
}

static gemmepi_status gpi__check_layer_workspace(const gpi__layer_task *task, const gemmepi_linear_args *args,
                                                 void *const pointers[GPI__L_ALL]) {
    uintptr_t begin = (uintptr_t)args->workspace, end = begin + args->workspace_size;
    char room[128];
    int t;
    if (end < begin)
        end = ~(uintptr_t)0;
    for (t = 0; t < gpi__layer_pointers(task); t++) {
        uintptr_t other = (uintptr_t)pointers[t];
        if (gpi__layer_has(task, t) && !gpi__is_layers_number(task, t) && other && other < end &&
            begin < other + (uintptr_t)gpi__layer_view(task, t)->bytes)
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "args.workspace (%p, %llu bytes) overlaps args.%s (%p)", args->workspace,
                             (gpi__ull)args->workspace_size, gpi__layer_pointers_name(task, t, room),
                             pointers[t]);
    }
    return GEMMEPI_OK;
}

#endif
