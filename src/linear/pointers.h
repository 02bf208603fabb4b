/* The pointers of a layer's run, checked: those of its tensors, and of the operands of its formula. */
#ifndef GEMMEPI_LINEAR_POINTERS_H
#define GEMMEPI_LINEAR_POINTERS_H

#include "desc.h"

/* Whether a backward has its G as dY, and leaves alone what forward has for it. */
static int gpi__is_given_g(const gpi__layer_task *task) {
    return gpi__is_backward(task) && (task->flags & GEMMEPI_LINEAR_DY_IS_G) != 0;
}

/* The arguments that operands are listed in. */
static const gemmepi_linear_args *gpi__args_of_operands(const gpi__layer_task *task,
                                                        const gemmepi_linear_args *args) {
    return gpi__has_befores_formula(task) ? args->before : args;
}

/* As args has them, of which before is not NULL. */
static void gpi__list_tensors_of_layer(const gemmepi_linear_args *args, void **pointers) {
#define GPI__LAYER_POINTER(NAME, name) args->name,
    const void *const all[] = {GPI__LAYER_ROWS(GPI__LAYER_POINTER)};
    memcpy(pointers, all, sizeof all);
}

static void gpi__list_layer_pointers(const gpi__layer_task *task, const gemmepi_linear_args *args,
                                     void *pointers[GPI__L_ALL]) {
    const gemmepi_linear_args *of_operands = gpi__args_of_operands(task, args);
    gemmepi_linear_args given = *args, none;
    size_t i;
    memset(&none, 0, sizeof none);
    if (!args->before)
        given.before = &none;
    memset(pointers, 0, GPI__L_ALL * sizeof(void *));
    gpi__list_tensors_of_layer(&given, pointers);
    for (i = 0; task->exchanged && i < GPI__COUNT(gpi__exchanged_tensors); i++)
        gpi__exchange(&pointers[gpi__exchanged_tensors[i][0]], &pointers[gpi__exchanged_tensors[i][1]]);
    if (GPI__HAS_FORMULAS && task->operand_count && of_operands->operands)
        memcpy(&pointers[GPI__L_OPERANDS], of_operands->operands,
               (size_t)task->operand_count * sizeof(void *));
    if (GPI__HAS_FORMULAS && task->operand_count && of_operands->operand_scales)
        memcpy(&pointers[GPI__L_OPERAND_SCALES], of_operands->operand_scales,
               (size_t)task->operand_count * sizeof(void *));
}

/* The arrays of a formula's operands, and the pointers of the layer before. */
static gemmepi_status gpi__check_layer_arrays(const gpi__layer_task *task, const gemmepi_linear_args *args) {
    const char *of = gpi__has_befores_formula(task) ? "before->" : "";
    GPI__INVALID_IF(gpi__is_backward(task) && args->before && !task->has_before,
                    "args.before is given, but desc.before is NULL");
    GPI__INVALID_IF(
        (gpi__layer_has(task, GPI__L_BEFORE) || (gpi__has_befores_formula(task) && task->operand_count)) &&
            !args->before,
        "args.before is NULL; this backward needs it, as desc.before is given");
    GPI__INVALID_IF(!gpi__has_own_formula(task) && !gpi__makes_factors(task) &&
                        (args->operands || args->operand_scales) && !gpi__is_given_g(task),
                    "args.%s is given, but desc.formula is NULL",
                    args->operands ? "operands" : "operand_scales");
    GPI__INVALID_IF(task->operand_count && !gpi__args_of_operands(task, args)->operands,
                    "args.%soperands is NULL; desc.%soperand_count is %d, so it has as many pointers", of, of,
                    (int)task->operand_count);
    return GEMMEPI_OK;
}

/* The next of what a run has pointers for, or GPI__L_ALL. */
static int gpi__next_pointer(const gpi__layer_task *task, int t) {
    t++;
    if (t >= GPI__L_OPERANDS + task->operand_count && t < GPI__L_OPERAND_SCALES)
        t = GPI__L_OPERAND_SCALES;
    return t < GPI__L_OPERAND_SCALES + task->operand_count ? t : (int)GPI__L_ALL;
}

/* The flag with which a layer has a tensor; 0: the layer has it in any case. */
static uint64_t gpi__flag_of_tensor(int tensor) {
    static const struct {
        int tensor;
        uint64_t flag;
    } rows[] = {{GPI__L_PREACT, GEMMEPI_LINEAR_SAVED},
                {GPI__L_BIAS, GEMMEPI_LINEAR_BIAS},
                {GPI__L_RESIDUAL, GEMMEPI_LINEAR_RESIDUAL},
                {GPI__L_DBIAS, GEMMEPI_LINEAR_DBIAS},
                {GPI__L_DA, GEMMEPI_LINEAR_DA},
                {GPI__L_DB, GEMMEPI_LINEAR_DB}};
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++)
        if (rows[i].tensor == tensor)
            return rows[i].flag;
    return 0;
}

/* What the caller calls that flag. */
static const char *gpi__callers_flag(const gpi__layer_task *task, uint64_t flag) {
    if (task->exchanged)
        flag = gpi__exchange_bits(flag, GEMMEPI_LINEAR_DA, GEMMEPI_LINEAR_DB);
    return gpi__flag(flag)->name;
}

/* Whether only the other direction takes it, so that this one lets it be. */
static int gpi__is_of_other_direction(const gpi__layer_task *task, int tensor) {
    int of_forward = tensor == GPI__L_Y || tensor == GPI__L_SCALE_Y || tensor == GPI__L_FOUND_SCALE_Y ||
                     tensor == GPI__L_AMAX_HISTORY || tensor == GPI__L_RESIDUAL ||
                     tensor == GPI__L_SCALE_RESIDUAL;
    int of_backward = tensor == GPI__L_DY || tensor == GPI__L_SCALE_DY || tensor == GPI__L_BEFORE ||
                      tensor == GPI__L_SCALE_BEFORE || (tensor >= GPI__L_DA && tensor <= GPI__L_DBIAS);
    if (gpi__is_given_g(task) && (tensor == GPI__L_PREACT || tensor == GPI__L_SCALE_PREACT))
        return 1;
    return gpi__is_backward(task) ? of_forward : of_backward;
}

/* Refuses a pointer that is given without its flag or scale mode. */
static gemmepi_status gpi__check_layers_pointer(const gpi__layer_task *task, int tensor,
                                                const void *pointer) {
    int of = tensor >= GPI__L_SCALE_A && tensor <= GPI__L_SCALE_DY ? tensor - GPI__L_SCALE_A : tensor;
    uint64_t flag = gpi__flag_of_tensor(of);
    const char *name = gpi__layer_name(task, tensor);
    GPI__INVALID_IF(task->lacks_y && (of == GPI__L_Y || of == GPI__L_DY),
                    "args.%s is given (%p), but desc.formula does not assign the result: leave %s NULL", name,
                    pointer, name);
    GPI__INVALID_IF(
        task->outputs && of == GPI__L_PREACT,
        "args.%s is given (%p), but desc.flags has LINEAR_FORWARD, with which P is in workspace: leave %s NULL",
        name, pointer, name);
    GPI__INVALID_IF(flag && (!(task->flags & flag) || (tensor >= GPI__L_DA && tensor <= GPI__L_DB &&
                                                       task->lacks_gradient >> (tensor - GPI__L_DA) & 1)),
                    "args.%s is given (%p), but desc.flags has no %s: set it, or leave %s NULL", name,
                    pointer, gpi__callers_flag(task, flag), name);
    GPI__INVALID_IF(tensor >= GPI__L_FOUND_SCALE_Y && !gpi__layer_has(task, tensor),
                    "args.%s is given (%p), but desc.flags has no FIND_SCALE_D%s", name, pointer,
                    tensor == GPI__L_AMAX_HISTORY ? " with the scale mode TENSOR of y" : "");
    GPI__INVALID_IF(tensor == GPI__L_SCALE_Y && task->found_scale,
                    "args.scale_y is given (%p), but desc.flags has FIND_SCALE_D: y's scales are "
                    "found, and go to args.found_scale_y",
                    pointer);
    GPI__INVALID_IF(of != tensor && !task->views[of].scale,
                    "args.%s is given (%p), but desc.%s.scale.mode is NONE", name, pointer,
                    gpi__layer_name(task, of));
    return GEMMEPI_OK;
}

/* Refuses a scale of an operand that desc gives none: both directions take the same array. */
static gemmepi_status gpi__check_layers_operand_scale(const gpi__layer_task *task, int tensor,
                                                      const void *pointer) {
    int place = tensor - GPI__L_OPERAND_SCALES;
    char room[128];
    GPI__INVALID_IF(place >= 0 && place < task->operand_count && pointer &&
                        !gpi__layers_formula_with(task, place)->placed.operands[place].scale,
                    "args.%s is given (%p), but desc%s has no scale.mode for it",
                    gpi__layer_pointers_name(task, tensor, room), pointer,
                    gpi__has_befores_formula(task) ? ".before" : "");
    return GEMMEPI_OK;
}

/* Bytes that a pointer is a multiple of: of operands with rows or columns those of matrices. */
static int gpi__layers_alignment(const gpi__layer_task *task, int tensor) {
    int alignment = gpi__layer_view(task, tensor)->alignment;
    if (tensor >= GPI__L_OPERANDS && tensor < GPI__L_OPERAND_SCALES && alignment < task->alignment &&
        gpi__layers_formula_with(task, tensor - GPI__L_OPERANDS)
                ->placed.formula->operands[tensor - GPI__L_OPERANDS]
                .kind >= GEMMEPI_PER_ROW)
        return task->alignment;
    return alignment;
}

/* >>what they point to */

static const char *gpi__name_layers_region(const void *owner, const gpi__region *region, char room[128]) {
    char name[128];
    snprintf(room, 128, "args.%s",
             gpi__layer_pointers_name((const gpi__layer_task *)owner, region->place, name));
    return room;
}

/* Outputs overlap nothing, but that Y may be the residual. */
static gemmepi_status gpi__judge_layer(const gpi__regions *regions, const gpi__region *output,
                                       const gpi__region *other) {
    const gpi__view *of = (const gpi__view *)output->lies, *from = (const gpi__view *)other->lies;
    int is_same = output->place == GPI__L_Y && other->place == GPI__L_RESIDUAL &&
                  output->begin == other->begin && of->dtype == from->dtype && of->ld == from->ld &&
                  of->batch_stride == from->batch_stride;
    int shares = !is_same && gpi__views_share(of, from, ((const gpi__layer_task *)regions->owner)->batch,
                                              (int64_t)(other->begin - output->begin));
    return shares ? gpi__refuse_overlap(regions, output, other, gpi__if_undecided(shares), "") : GEMMEPI_OK;
}

static gemmepi_status gpi__refuse_lacking(const gpi__layer_task *task, int t) {
    uint64_t flag = gpi__flag_of_tensor(t);
    char room[128];
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is NULL; this %s needs it%s%s",
                     gpi__layer_pointers_name(task, t, room), gpi__is_backward(task) ? "backward" : "forward",
                     flag ? ", as desc.flags has " : "", flag ? gpi__callers_flag(task, flag) : "");
}

/* Lists what a pointer leads to. What one direction alone takes may be there in the other; what the layer has not may be there in
   neither. */
static gemmepi_status gpi__list_layer_pointer(const gpi__layer_task *task, int t, const void *pointer,
                                              gpi__regions *regions) {
    int has = gpi__layer_has(task, t), is_number = gpi__is_layers_number(task, t);
    const gpi__view *view = gpi__layer_view(task, t);
    gemmepi_status status = GEMMEPI_OK;
    char room[128];
    if (!pointer)
        return has && (is_number || view->bytes) ? gpi__refuse_lacking(task, t) : GEMMEPI_OK;
    if (t >= GPI__L_OPERANDS)
        status = gpi__check_layers_operand_scale(task, t, pointer);
    else if (!gpi__is_of_other_direction(task, t))
        status = gpi__check_layers_pointer(task, t, pointer);
    if (status || !has || is_number)
        return status;
    GPI__REFUSE_IF((uintptr_t)pointer & (uintptr_t)(gpi__layers_alignment(task, t) - 1), GEMMEPI_MISALIGNED,
                   "args.%s is %p; it must be a multiple of %d bytes",
                   gpi__layer_pointers_name(task, t, room), pointer, gpi__layers_alignment(task, t));
    gpi__add_region(regions, 0, t, gpi__layer_writes(task, t), pointer, view->bytes)->lies = view;
    return GEMMEPI_OK;
}

/* args -> pointers and regions, or the sentence that says what is wrong with them. */
static gemmepi_status gpi__convert_layer_pointers(const gpi__layer_task *task,
                                                  const gemmepi_linear_args *args, void **pointers,
                                                  gpi__regions *regions) {
    gemmepi_status status = gpi__check_layer_arrays(task, args);
    int t;
    if (status)
        return status;
    gpi__list_layer_pointers(task, args, pointers);
    regions->owner = task;
    regions->name = gpi__name_layers_region;
    regions->judge = gpi__judge_layer;
    regions->count = 0;
    for (t = 0; t < GPI__L_ALL && !status; t = gpi__next_pointer(task, t))
        status = gpi__list_layer_pointer(task, t, pointers[t], regions);
    return status;
}

/* >>of a block of rows */

/* Elements from row 0 of a tensor or operand of the layer to row `first`, a multiple of 8: RELU's mask has bits. */
static int64_t gpi__elements_to_row(const gpi__layer_task *task, int tensor, int64_t first) {
    const gpi__view *view = gpi__layer_view(task, tensor);
    int kind;
    if (tensor == GPI__L_A || tensor == GPI__L_DA)
        return view->transposed ? first : first * view->ld;
    if (tensor == GPI__L_PREACT || tensor == GPI__L_BEFORE)
        return first * view->ld;
    if (tensor < GPI__L_OPERANDS || tensor >= GPI__L_OPERAND_SCALES)
        return 0;
    kind = gpi__layers_formula_with(task, tensor - GPI__L_OPERANDS)
               ->placed.formula->operands[tensor - GPI__L_OPERANDS]
               .kind;
    return kind >= GEMMEPI_FULL ? first * view->ld : kind == GEMMEPI_PER_ROW ? first : 0;
}

/* The pointers of a block, from those of the layer. */
static void gpi__point_block(const gpi__layer_task *task, void *const *whole, int64_t first, void **block) {
    int t;
    memcpy(block, whole, GPI__L_ALL * sizeof *block);
    for (t = 0; t < GPI__L_ALL; t = gpi__next_pointer(task, t))
        if (block[t] && gpi__layer_has(task, t) && !gpi__is_layers_number(task, t))
            block[t] =
                (char *)block[t] + gpi__elements_to_row(task, t, first) * gpi__layer_view(task, t)->bits / 8;
}

#endif
