/* The pointers of one run, checked against the problem. On the way of every run: no allocation, no division. */
#ifndef GEMMEPI_PROBLEM_ARGUMENTS_H
#define GEMMEPI_PROBLEM_ARGUMENTS_H

#include "product_regions.h"

/* A run's pointers in the order of the views (so exchanged where the problem is), and its scalars. */
typedef struct gpi__arguments {
    void *pointers[GPI__OPERANDS];
    double alpha, beta;                     /* 1 and 0 where they lie on the device */
    const void *device_alpha, *device_beta; /* NULL where they lie on the host, or are 1 and 0 */
    int uses_c;
    gpi__kernel_groups groups;              /* of a grouped product, else undefined */
    const struct gpi__kept_formula *inside; /* the formula of a kernel's epilogue, NULL: it has none */
    void *const *operands; /* of a formula; set by gpi__convert_formula_arguments, else undefined */
    const float *const *operand_scales;
    void *const *operand_amax;
    double numbers[GPI__FORMULA_OPERANDS];
} gpi__arguments;

#define GPI__OPERAND_PLACE(NAME, name, wanted_by) offsetof(gemmepi_matmul_args, name),
static const size_t gpi__operand_places[] = {GPI__OPERAND_ROWS(GPI__OPERAND_PLACE)};

#define GPI__OPERAND_WANTED(NAME, name, wanted_by) wanted_by,
static const char *const gpi__operand_wanted_by[] = {GPI__OPERAND_ROWS(GPI__OPERAND_WANTED) "row_factor"};

static void gpi__exchange(void **first, void **second) {
    void *kept = *first;
    *first = *second;
    *second = kept;
}

/* Casts the const of inputs away: the one place where args becomes a table. row_factor is left NULL, for who has one. */
static void gpi__list_pointers(const gpi__problem *problem, const gemmepi_matmul_args *args,
                               void **pointers) {
    size_t i;
    pointers[GPI__ROW_FACTOR] = NULL;
    for (i = 0; i < GPI__COUNT(gpi__operand_places); i++)
        memcpy(&pointers[i], (const char *)args + gpi__operand_places[i], sizeof(void *));
    if (problem->exchanged) {
        gpi__exchange(&pointers[GPI__A], &pointers[GPI__B]);
        gpi__exchange(&pointers[GPI__SCALE_A], &pointers[GPI__SCALE_B]);
    }
}

static gemmepi_status gpi__refuse_pointer(const gpi__problem *problem, int operand, const void *pointer) {
    char name[256];
    gpi__text text = gpi__text_in(name, sizeof name);
    const char *argument = gpi__argument_name(problem, operand);
    GPI__INVALID_IF(operand == GPI__FOUND_SCALE_D, "args.found_scale_d is %s",
                    pointer ? "given, but desc.flags has no FIND_SCALE_D"
                            : "NULL, but desc.flags has FIND_SCALE_D, whose scales go there");
    GPI__INVALID_IF(operand == GPI__AMAX_HISTORY, "args.amax_history is %s; %s", pointer ? "given" : "NULL",
                    pointer ? "it goes with FIND_SCALE_D and the scale mode TENSOR"
                            : "FIND_SCALE_D with the scale mode TENSOR reads and writes it");
    GPI__INVALID_IF(operand == GPI__SCALE_D && pointer && problem->found_scale,
                    "args.scale_d is given, but desc.flags has FIND_SCALE_D: d's scales are found, and go "
                    "to args.found_scale_d");
    GPI__INVALID_IF(operand == GPI__AMAX_D || operand == GPI__AMAX_AUX,
                    "args.%s is %s, but desc.flags has %s AMAX_%s", argument, pointer ? "given" : "NULL",
                    pointer ? "no" : "the flag", operand == GPI__AMAX_D ? "D" : "AUX");
    GPI__INVALID_IF(operand >= GPI__SCALE_A && operand < GPI__AMAX_D &&
                        (problem->used >> (operand - GPI__SCALE_A) & 1),
                    "args.%s is %s, but desc.%s.scale.mode is %s", argument, pointer ? "given" : "NULL",
                    argument + strlen("scale_"), pointer ? "NONE" : "not NONE");
    GPI__INVALID_IF(operand == GPI__D && pointer,
                    "args.d is given, but desc.formula does not assign it: leave it NULL");
    GPI__INVALID_IF(pointer && problem->formula,
                    "args.%s is given, but desc.formula has operands instead: leave it NULL", argument);
    GPI__INVALID_IF(operand <= GPI__D, "args.%s is NULL; the product needs it", argument);
    gpi__append_epilogue(&text, gpi__callers_epilogue(problem->epilogue, problem->exchanged));
    GPI__INVALID_IF(pointer, "args.%s is given (%p), but the epilogue %s does not use it; one with %s does",
                    argument, pointer, name, gpi__operand_wanted_by[operand]);
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is NULL; the epilogue %s needs it", argument, name);
}

/* An operand without a byte needs no pointer, and C none where it is not read. */
static int gpi__may_lack(const gpi__problem *problem, const gpi__arguments *arguments, int operand) {
    if (operand == GPI__C || operand == GPI__SCALE_C)
        return !arguments->uses_c || problem->views[GPI__C].bytes == 0;
    return problem->views[operand].bytes == 0;
}

/* c and beta come together; with ACCUMULATE neither. */
static gemmepi_status gpi__check_c(const gpi__problem *problem, const gemmepi_matmul_args *args) {
    GPI__INVALID_IF(problem->flags & GEMMEPI_ACCUMULATE && (args->c || args->beta),
                    "args.%s is given, but desc.flags has ACCUMULATE, which adds to d: leave c and "
                    "beta NULL",
                    args->c ? "c" : "beta");
    GPI__INVALID_IF(args->c && !args->beta,
                    "args.c is given but args.beta is NULL, so c would not be added; point beta to "
                    "a factor (0 is one), or leave c NULL");
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_presence(const gpi__problem *problem, const gpi__arguments *arguments) {
    uint32_t given = 0;
    int operand;
    for (operand = 0; operand < GPI__OPERANDS; operand++)
        given |= (uint32_t)(arguments->pointers[operand] != NULL) << operand;
    if (given == problem->used)
        return GEMMEPI_OK;
    for (operand = 0; operand < GPI__OPERANDS; operand++) {
        const void *pointer = arguments->pointers[operand];
        int used = problem->used >> operand & 1;
        if (used == (pointer != NULL) || (used && gpi__may_lack(problem, arguments, operand)))
            continue;
        GPI__INVALID_IF(used && operand == GPI__C && problem->flags & GEMMEPI_ACCUMULATE,
                        "args.d is NULL, but desc.flags has ACCUMULATE, which adds to it");
        GPI__INVALID_IF(used && operand == GPI__C,
                        "args.c is NULL, but args.beta is %s: give c (args.d for D = A B + beta D), or leave "
                        "beta NULL",
                        arguments->device_beta ? "given on the device" : "not 0");
        return gpi__refuse_pointer(problem, operand, pointer);
    }
    return GEMMEPI_OK;
}

static const char *gpi__alignment_rule(const gpi__problem *problem, int operand) {
    const gpi__view *view = &problem->views[operand];
    if (view->alignment * 8 == view->bits)
        return "the size of an element";
    return operand >= GPI__SCALE_A ? "scales that are more than one number" : "desc.alignment, 16 by default";
}

static gemmepi_status gpi__refuse_place(const gpi__problem *problem, int operand, const void *pointer) {
    const gpi__view *view = &problem->views[operand];
    const char *name = gpi__argument_name(problem, operand);
    GPI__INVALID_IF((uintptr_t)pointer > (uintptr_t)-1 - (uintptr_t)view->bytes,
                    "args.%s is %p; no %lld bytes begin there", name, pointer, (long long)view->bytes);
    return gpi__fail(GEMMEPI_MISALIGNED, "args.%s is %p; it must be a multiple of %d bytes (%s)", name,
                     pointer, (int)view->alignment, gpi__alignment_rule(problem, operand));
}

/* alpha or beta where it lies on the device, else NULL */
static const void *gpi__device_scalar(const gpi__arguments *arguments, int which) {
    return which ? arguments->device_beta : arguments->device_alpha;
}

/* Lists what the product itself has, the outputs first, each at its alignment, and its scalars on the device: kernels load a double, when
   some of D may be written. */
static gemmepi_status gpi__list_regions(const gpi__problem *problem, const gpi__arguments *arguments,
                                        gpi__regions *regions) {
    gpi__region *region;
    int i;
    regions->owner = problem;
    regions->name = gpi__name_region;
    regions->judge = gpi__judge_product;
    regions->count = 0;
    for (i = 0; i < problem->count; i++) {
        int operand = problem->list[i];
        const gpi__view *view = &problem->views[operand];
        const void *pointer = arguments->pointers[operand];
        if ((uintptr_t)pointer > (uintptr_t)-1 - (uintptr_t)view->bytes ||
            ((uintptr_t)pointer & (uintptr_t)(view->alignment - 1)))
            return gpi__refuse_place(problem, operand, pointer);
        if (!pointer)
            continue;
        region =
            gpi__add_region(regions, GPI__OF_PRODUCT_ITSELF, operand, view->written, pointer, view->bytes);
        region->lies = view;
        region->idle = !arguments->uses_c && (operand == GPI__C || operand == GPI__SCALE_C);
    }
    for (i = 0; i < 2 && problem->flags & GEMMEPI_DEVICE_SCALARS; i++) {
        const void *pointer = gpi__device_scalar(arguments, i);
        GPI__REFUSE_IF((uintptr_t)pointer % sizeof(double), GEMMEPI_MISALIGNED,
                       "args.%s is %p; on the device it must be a multiple of 8 bytes", gpi__scalar_names[i],
                       pointer);
        if (!pointer)
            continue;
        region = gpi__add_region(regions, GPI__OF_SCALARS, i, 0, pointer, sizeof(double));
        region->lies = &gpi__one_f64;
        region->note = ", on the device";
    }
    return GEMMEPI_OK;
}

/* alpha and beta of an I32 result. */
static gemmepi_status gpi__check_whole(const char *name, double value) {
    GPI__INVALID_IF(!(value >= -2147483648.0 && value <= 2147483647.0 && value == (double)(int64_t)value),
                    "args.%s is %.17g; with a result in I32 it must be a whole number of 32 bits", name,
                    value);
    return GEMMEPI_OK;
}

/* Presence and alignment of the product's own pointers, and the list of them; they and the scalars have been taken. */
static gemmepi_status gpi__check_arguments(const gpi__problem *problem, gpi__arguments *arguments,
                                           gpi__regions *regions) {
    gemmepi_status status;
    arguments->uses_c = arguments->beta != 0 || arguments->device_beta;
    status = gpi__check_presence(problem, arguments);
    if (!status && problem->accumulator == GEMMEPI_I32) {
        status = gpi__check_whole("alpha", arguments->alpha);
        if (!status)
            status = gpi__check_whole("beta", arguments->beta);
    }
    return status ? status : gpi__list_regions(problem, arguments, regions);
}

/* The alignment class that the pointers of a one-shot call have: a power of two, 16 at most. A pointer less aligned
   than its element lowers it too; gpi__list_regions will refuse that one. desc may be NULL, and is not checked yet. */
static size_t gpi__alignment_of(const gemmepi_matmul_desc *desc, const gemmepi_matmul_args *args) {
    uintptr_t bits = (uintptr_t)args->a | (uintptr_t)args->b | (uintptr_t)args->c | (uintptr_t)args->d |
                     (uintptr_t)args->aux | (uintptr_t)args->residual | (uintptr_t)args->bias |
                     (uintptr_t)args->bias_grad | 16;
    int has_formula = desc && (desc->formula || desc->a.formula || desc->b.formula), i;
    int count = has_formula && desc->operands && args->operands ? desc->operand_count : 0;
    for (i = 0; i < count && count <= GPI__FORMULA_OPERANDS; i++)
        if (desc->operands[i].kind >= GEMMEPI_PER_ROW)
            bits |= (uintptr_t)args->operands[i];
    return (size_t)(bits & (~bits + 1));
}

#endif
