/* The pointers of a network's run, checked. */
#ifndef GEMMEPI_NETWORK_POINTERS_H
#define GEMMEPI_NETWORK_POINTERS_H

#include "plan.h"

/* Those that a network has once, and those that each layer has; operands come behind. */
enum {
    GPI__N_X,
    GPI__N_Y,
    GPI__N_DY,
    GPI__N_DX,
    GPI__N_SAVED,
    GPI__N_ALONE,
    GPI__N_W = GPI__N_ALONE,
    GPI__N_BIAS,
    GPI__N_DW,
    GPI__N_DBIAS,
    GPI__N_OPERANDS
};

static const char *const gpi__network_names[GPI__N_OPERANDS] = {"x", "y",    "dy", "dx",   "saved",
                                                                "w", "bias", "dw", "dbias"};

/* Of a run. An array is by layer. */
typedef struct gpi__network_pointers {
    void *alone[GPI__N_ALONE];
    void *of_layers[GPI__N_OPERANDS - GPI__N_ALONE][GPI__NETWORK_LAYERS];
    void *const *operands[GPI__NETWORK_LAYERS]; /* as the caller lists them; NULL: a layer has none */
} gpi__network_pointers;

/* How a pointer is used, before it is looked at. */
typedef struct gpi__network_place {
    int kind, layer; /* of the lists above, from OPERANDS on of an operand */
    int is_written;
    int alignment;
    int64_t bytes;
    const gpi__view *lies;
} gpi__network_place;

static const char *gpi__name_network_pointer(const gpi__network_task *task, int kind, int layer,
                                             char room[128]) {
    const gpi__kept_formula *kept;
    if (kind < GPI__N_ALONE)
        snprintf(room, 128, "args.%s", gpi__network_names[kind]);
    else if (kind < GPI__N_OPERANDS)
        snprintf(room, 128, "args.%s[%d]", gpi__network_names[kind], layer);
    else {
        kept = gpi__networks_formula_with(task, layer, kind - GPI__N_OPERANDS);
        snprintf(room, 128, "args.operands[%d][%d] (of %s)", layer, kind - GPI__N_OPERANDS,
                 kept->placed.formula->names + kept->placed.formula->operands[kind - GPI__N_OPERANDS].name);
    }
    return room;
}

static const char *gpi__name_networks_region(const void *owner, const gpi__region *region, char room[128]) {
    return gpi__name_network_pointer((const gpi__network_task *)owner, region->kind, region->place, room);
}

/* Outputs overlap nothing; of two matrices with gaps between their rows one may be in those of the other. */
static gemmepi_status gpi__judge_network(const gpi__regions *regions, const gpi__region *output,
                                         const gpi__region *other) {
    int64_t distance = (int64_t)(other->begin - output->begin);
    int shares = output->lies && other->lies ? gpi__views_share((const gpi__view *)output->lies,
                                                                (const gpi__view *)other->lies, 1, distance)
                                             : 1;
    return shares ? gpi__refuse_overlap(regions, output, other,
                                        output->lies && other->lies ? gpi__if_undecided(shares) : "", "")
                  : GEMMEPI_OK;
}

/* The flag with which a network has a pointer, or 0. */
static uint64_t gpi__flag_of_network_pointer(int kind) {
    switch (kind) {
    case GPI__N_DX:
        return GEMMEPI_NETWORK_DX;
    case GPI__N_SAVED:
        return GEMMEPI_NETWORK_SAVED;
    case GPI__N_BIAS:
        return GEMMEPI_NETWORK_BIAS;
    case GPI__N_DW:
    case GPI__N_DBIAS:
        return GEMMEPI_NETWORK_DW;
    default:
        return 0;
    }
}

/* Whether only the other direction has it, so that this one lets it be. */
static int gpi__is_of_other_networks_direction(const gpi__network_task *task, int kind) {
    int of_backward = kind == GPI__N_DY || kind == GPI__N_DX || kind == GPI__N_DW || kind == GPI__N_DBIAS;
    return gpi__is_network_backward(task) ? kind == GPI__N_Y : of_backward;
}

/* Whether the network has it in this direction. */
static int gpi__network_has(const gpi__network_task *task, int kind) {
    uint64_t flag = gpi__flag_of_network_pointer(kind);
    if (gpi__is_of_other_networks_direction(task, kind) ||
        (kind == GPI__N_DBIAS && !(task->flags & GEMMEPI_NETWORK_BIAS)))
        return 0;
    return !flag || task->flags & flag;
}

/* A pointer, or the array of them, that the network does not have. */
static gemmepi_status gpi__refuse_networks_extra(const gpi__network_task *task, int kind,
                                                 const void *pointer) {
    uint64_t flag = gpi__flag_of_network_pointer(kind);
    if (!pointer || gpi__is_of_other_networks_direction(task, kind))
        return GEMMEPI_OK;
    if (kind == GPI__N_DBIAS && task->flags & GEMMEPI_NETWORK_DW)
        flag = GEMMEPI_NETWORK_BIAS;
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                     "args.%s is given (%p), but desc.flags has no %s: set it, or leave %s NULL",
                     gpi__network_names[kind], pointer, gpi__flag(flag)->name, gpi__network_names[kind]);
}

/* Lists what a pointer leads to. */
static gemmepi_status gpi__list_network_pointer(const gpi__network_task *task,
                                                const gpi__network_place *place, const void *pointer,
                                                gpi__regions *regions) {
    char room[128];
    uint64_t flag = place->kind < GPI__N_OPERANDS ? gpi__flag_of_network_pointer(place->kind) : 0;
    if (!pointer)
        return place->bytes ? gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL; this %s needs it%s%s",
                                        gpi__name_network_pointer(task, place->kind, place->layer, room),
                                        gpi__is_network_backward(task) ? "backward" : "forward",
                                        flag ? ", as desc.flags has " : "", flag ? gpi__flag(flag)->name : "")
                            : GEMMEPI_OK;
    GPI__REFUSE_IF((uintptr_t)pointer & (uintptr_t)(place->alignment - 1), GEMMEPI_MISALIGNED,
                   "%s is %p; it must be a multiple of %d bytes%s",
                   gpi__name_network_pointer(task, place->kind, place->layer, room), pointer,
                   place->alignment,
                   place->alignment == task->alignment ? ", which desc.alignment says" : "");
    gpi__add_region(regions, place->kind, place->layer, place->is_written, pointer, place->bytes)->lies =
        place->lies;
    return GEMMEPI_OK;
}

/* >>alone */

static gemmepi_status gpi__list_networks_ends(const gpi__network_plan *network,
                                              const gemmepi_network_args *args, gpi__network_pointers *at,
                                              gpi__regions *regions) {
    const gpi__network_task *task = &network->task;
    int backward = gpi__is_network_backward(task), kind;
    gemmepi_status status = GEMMEPI_OK;
    void *given[GPI__N_ALONE];
    memcpy(&given[GPI__N_X], &args->x, sizeof args->x);
    given[GPI__N_Y] = args->y;
    memcpy(&given[GPI__N_DY], &args->dy, sizeof args->dy);
    given[GPI__N_DX] = args->dx;
    given[GPI__N_SAVED] = args->saved;
    for (kind = 0; kind < GPI__N_ALONE && !status; kind++) {
        const gpi__view *view = kind == GPI__N_X || kind == GPI__N_DX ? &task->x : &task->y;
        gpi__network_place place = {kind, 0, 0, view->alignment, view->bytes, view};
        place.is_written = kind == GPI__N_Y || kind == GPI__N_DX;
        if (kind == GPI__N_SAVED) {
            place.is_written = !backward;
            place.alignment = 256;
            place.bytes = (int64_t)gpi__saved_size(network);
            place.lies = NULL;
        }
        at->alone[kind] = gpi__network_has(task, kind) ? given[kind] : NULL;
        status = gpi__network_has(task, kind) ? gpi__list_network_pointer(task, &place, given[kind], regions)
                                              : gpi__refuse_networks_extra(task, kind, given[kind]);
    }
    GPI__REFUSE_IF(!status && at->alone[GPI__N_SAVED] && args->saved_size < gpi__saved_size(network),
                   GEMMEPI_BUFFER_TOO_SMALL, "args.saved_size is %llu; this network needs %llu bytes",
                   (gpi__ull)args->saved_size, (gpi__ull)gpi__saved_size(network));
    return status;
}

/* >>of layers */

/* How large w, bias and their gradients are. */
static gpi__network_place gpi__place_of_layer(const gpi__network_task *task, int kind, int i) {
    const gpi__network_layer *layer = &task->layers[i];
    int is_vector = kind == GPI__N_BIAS || kind == GPI__N_DBIAS;
    int is_gradient = kind == GPI__N_DW || kind == GPI__N_DBIAS;
    gpi__network_place place = {kind, i, is_gradient, task->alignment, 0, NULL};
    int32_t dtype = is_gradient ? task->gradient_dtype : is_vector ? task->bias_dtype : task->dtype;
    int size = (int)gemmepi_dtype_size((gemmepi_dtype)dtype);
    place.bytes = (is_vector ? 1 : layer->inputs) * layer->width * size;
    if (place.alignment < size)
        place.alignment = size;
    return place;
}

static gemmepi_status gpi__list_networks_weights(const gpi__network_task *task,
                                                 const gemmepi_network_args *args, gpi__network_pointers *at,
                                                 gpi__regions *regions) {
    const void *arrays[] = {NULL, NULL, NULL, NULL};
    gemmepi_status status = GEMMEPI_OK;
    int kind, i;
    arrays[0] = args->w, arrays[1] = args->bias, arrays[2] = args->dw, arrays[3] = args->dbias;
    for (kind = GPI__N_W; kind < GPI__N_OPERANDS && !status; kind++) {
        void *const *array = (void *const *)arrays[kind - GPI__N_W];
        if (!gpi__network_has(task, kind)) {
            status = gpi__refuse_networks_extra(task, kind, array);
            continue;
        }
        GPI__INVALID_IF(!array, "args.%s is NULL; it has a pointer for each of the %d layers",
                        gpi__network_names[kind], (int)task->layer_count);
        for (i = 0; i < task->layer_count && !status; i++) {
            gpi__network_place place = gpi__place_of_layer(task, kind, i);
            at->of_layers[kind - GPI__N_W][i] = array[i];
            status = gpi__list_network_pointer(task, &place, array[i], regions);
        }
    }
    return status;
}

/* An operand that no formula of this direction has may be anything. */
static gemmepi_status gpi__list_networks_operand(const gpi__network_task *task, int i, int operand,
                                                 const void *pointer, gpi__regions *regions) {
    const gpi__kept_formula *kept = gpi__networks_formula_with(task, i, operand);
    gpi__network_place place = {GPI__N_OPERANDS + operand, i, 0, 1, 1, NULL};
    char room[128];
    if (!kept)
        return GEMMEPI_OK;
    if (kept->placed.formula->operands[operand].kind == GEMMEPI_NUMBER)
        return pointer ? GEMMEPI_OK
                       : gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL; a NUMBER has a double on the host",
                                   gpi__name_network_pointer(task, place.kind, i, room));
    place.lies = &kept->views[operand];
    place.bytes = kept->views[operand].bytes;
    place.is_written = kept->placed.formula->operands[operand].output != 0;
    place.alignment = kept->views[operand].alignment;
    if (kept->placed.formula->operands[operand].kind >= GEMMEPI_PER_ROW && place.alignment < task->alignment)
        place.alignment = task->alignment;
    return gpi__list_network_pointer(task, &place, pointer, regions);
}

static gemmepi_status gpi__list_networks_operands(const gpi__network_task *task,
                                                  const gemmepi_network_args *args, gpi__network_pointers *at,
                                                  gpi__regions *regions) {
    gemmepi_status status = GEMMEPI_OK;
    int i, j;
    for (i = 0; i < task->layer_count; i++) {
        int count = task->layers[i].operand_count;
        at->operands[i] = NULL;
        if (!count)
            continue;
        GPI__INVALID_IF(!args->operands, "args.operands is NULL, but desc.layers[%d] has operands", i);
        GPI__INVALID_IF(!args->operands[i],
                        "args.operands[%d] is NULL; desc.layers[%d].operand_count is %d, so it has as many "
                        "pointers",
                        i, i, count);
        at->operands[i] = args->operands[i];
        for (j = 0; j < count && !status; j++)
            status = gpi__list_networks_operand(task, i, j, args->operands[i][j], regions);
    }
    return status;
}

/* args -> pointers and regions, or the sentence that says what is wrong with them. */
static gemmepi_status gpi__convert_network_pointers(const gpi__network_plan *network,
                                                    const gemmepi_network_args *args,
                                                    gpi__network_pointers *at, gpi__regions *regions) {
    gemmepi_status status;
    regions->owner = &network->task;
    regions->name = gpi__name_networks_region;
    regions->judge = gpi__judge_network;
    regions->count = 0;
    status = gpi__list_networks_ends(network, args, at, regions);
    if (!status)
        status = gpi__list_networks_weights(&network->task, args, at, regions);
    return status ? status : gpi__list_networks_operands(&network->task, args, at, regions);
}

#endif
