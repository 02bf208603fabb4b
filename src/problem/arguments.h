/* The pointers of one run, checked against the problem. On the way of every run: no allocation, no division. */
#ifndef GEMMEPI_PROBLEM_ARGUMENTS_H
#define GEMMEPI_PROBLEM_ARGUMENTS_H

#include "overlap.h"
#include "problem.h"

/* A run's pointers in the order of the views (so exchanged where the problem is), and its scalars. */
typedef struct gpi__arguments {
    void *pointers[GPI__OPERANDS];
    double alpha, beta;                     /* 1 and 0 where they lie on the device */
    const void *device_alpha, *device_beta; /* NULL where they lie on the host, or are 1 and 0 */
    int uses_c;
    gpi__kernel_groups groups; /* of a grouped product, else undefined */
#ifndef GEMMEPI_NO_FORMULA
    const struct gpi__kept_formula *inside; /* the formula of a kernel's epilogue, NULL: it has none */
    void *const *operands; /* of a formula; set by gpi__convert_formula_arguments, else undefined */
    const float *const *operand_scales;
    void *const *operand_amax;
    double numbers[GPI__FORMULA_OPERANDS];
#endif
} gpi__arguments;

#define GPI__OPERAND_PLACE(NAME, name, wanted_by) offsetof(gemmepi_matmul_args, name),
static const size_t gpi__operand_places[] = {GPI__OPERAND_ROWS(GPI__OPERAND_PLACE)};

#define GPI__OPERAND_WANTED(NAME, name, wanted_by) wanted_by,
#define GPI__EXTRA_WANTED(NAME, name, along)       #name,
static const char *const gpi__operand_wanted_by[] = {GPI__OPERAND_ROWS(GPI__OPERAND_WANTED)
                                                         GEMMEPI_EXTRA_OPERANDS(GPI__EXTRA_WANTED)};

static void gpi__exchange(void **first, void **second) {
    void *kept = *first;
    *first = *second;
    *second = kept;
}

/* Casts the const of inputs away: the one place where args becomes a table. Extra operands are left NULL, for who has them. */
static void gpi__list_pointers(const gpi__problem *problem, const gemmepi_matmul_args *args,
                               void **pointers) {
    size_t i;
    memset(&pointers[GPI__FIRST_EXTRA], 0, GPI__EXTRAS * sizeof(void *));
    for (i = 0; i < GPI__COUNT(gpi__operand_places); i++)
        memcpy(&pointers[i], (const char *)args + gpi__operand_places[i], sizeof(void *));
    if (problem->exchanged) {
        gpi__exchange(&pointers[GPI__A], &pointers[GPI__B]);
        gpi__exchange(&pointers[GPI__SCALE_A], &pointers[GPI__SCALE_B]);
    }
}

/* The caller's name of an operand. */
static const char *gpi__argument_name(const gpi__problem *problem, int operand) {
    int is_a = operand == GPI__A || operand == GPI__SCALE_A;
    int is_b = operand == GPI__B || operand == GPI__SCALE_B;
    if (operand == GPI__ROW_FACTOR && problem->grouping.groups)
        return "weights";
    if (problem->exchanged && (is_a || is_b))
        operand += is_a ? 1 : -1;
    return gpi__operand_names[operand];
}

static gemmepi_status gpi__refuse_pointer(const gpi__problem *problem, int operand, const void *pointer) {
    char name[256];
    gpi__text text = gpi__text_in(name, sizeof name);
    const char *argument = gpi__argument_name(problem, operand);
    if (operand == GPI__FOUND_SCALE_D)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.found_scale_d is %s",
                         pointer ? "given, but desc.flags has no FIND_SCALE_D"
                                 : "NULL, but desc.flags has FIND_SCALE_D, whose scales go there");
    if (operand == GPI__AMAX_HISTORY)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.amax_history is %s; %s", pointer ? "given" : "NULL",
                         pointer ? "it goes with FIND_SCALE_D and the scale mode TENSOR"
                                 : "FIND_SCALE_D with the scale mode TENSOR reads and writes it");
    if (operand == GPI__SCALE_D && pointer && problem->found_scale)
        return gpi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "args.scale_d is given, but desc.flags has FIND_SCALE_D: d's scales are found, and go "
            "to args.found_scale_d");
    if (operand == GPI__AMAX_D || operand == GPI__AMAX_AUX)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is %s, but desc.flags has %s AMAX_%s", argument,
                         pointer ? "given" : "NULL", pointer ? "no" : "the flag",
                         operand == GPI__AMAX_D ? "D" : "AUX");
    if (operand >= GPI__SCALE_A && operand < GPI__AMAX_D && (problem->used >> (operand - GPI__SCALE_A) & 1))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is %s, but desc.%s.scale.mode is %s", argument,
                         pointer ? "given" : "NULL", argument + strlen("scale_"),
                         pointer ? "NONE" : "not NONE");
    if (operand == GPI__D && pointer)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.d is given, but desc.formula does not assign it: leave it NULL");
    if (pointer && problem->formula)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.%s is given, but desc.formula has operands instead: leave it NULL", argument);
    if (operand <= GPI__D)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is NULL; the product needs it", argument);
    gpi__append_epilogue(&text, gpi__callers_epilogue(problem->epilogue, problem->exchanged));
    if (pointer)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.%s is given (%p), but the epilogue %s does not use it; one with %s does",
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
    if (problem->flags & GEMMEPI_ACCUMULATE && (args->c || args->beta))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.%s is given, but desc.flags has ACCUMULATE, which adds to d: leave c and "
                         "beta NULL",
                         args->c ? "c" : "beta");
    if (args->c && !args->beta)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
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
        if (used && operand == GPI__C && problem->flags & GEMMEPI_ACCUMULATE)
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "args.d is NULL, but desc.flags has ACCUMULATE, which adds to it");
        if (used && operand == GPI__C)
            return gpi__fail(
                GEMMEPI_INVALID_ARGUMENT,
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

static gemmepi_status gpi__check_alignment(const gpi__problem *problem, const gpi__arguments *arguments) {
    int i;
    for (i = 0; i < problem->count; i++) {
        int operand = problem->list[i];
        const gpi__view *view = &problem->views[operand];
        if ((uintptr_t)arguments->pointers[operand] > (uintptr_t)-1 - (uintptr_t)view->bytes)
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is %p; no %lld bytes begin there",
                             gpi__argument_name(problem, operand), arguments->pointers[operand],
                             (long long)view->bytes);
        if ((uintptr_t)arguments->pointers[operand] & (uintptr_t)(view->alignment - 1))
            return gpi__fail(GEMMEPI_MISALIGNED, "args.%s is %p; it must be a multiple of %d bytes (%s)",
                             gpi__argument_name(problem, operand), arguments->pointers[operand],
                             (int)view->alignment, gpi__alignment_rule(problem, operand));
    }
    return GEMMEPI_OK;
}

/* >>overlap */

/* D may be read where it is written: by C, the residual and a pre-activation, if they are the very same matrix. */
static int gpi__may_be_d(const gpi__problem *problem, int operand) {
    return operand == GPI__C || operand == GPI__RESIDUAL ||
           (operand == GPI__AUX && !problem->views[operand].written && problem->views[operand].bits != 1);
}

static int gpi__same_layout(const gpi__problem *problem, const gpi__view *p, const gpi__view *q) {
    return p->dtype == q->dtype && p->bits == q->bits && p->lines == q->lines && p->length == q->length &&
           (p->lines <= 1 || p->ld == q->ld) && (problem->batch <= 1 || p->batch_stride == q->batch_stride);
}

static int64_t gpi__bytes_of(const gpi__view *view, int64_t elements) {
    return (elements * view->bits + 7) / 8;
}

/* A view in bytes, items of lines; `batch` items where they have a stride. */
static gpi__layout gpi__layout_of_view(const gpi__view *view, int64_t batch) {
    gpi__layout layout;
    layout.rank = 2;
    layout.size = gpi__bytes_of(view, view->length);
    layout.shape[0] = view->lines;
    layout.stride[0] = view->lines > 1 ? gpi__bytes_of(view, view->ld) : 0;
    layout.shape[1] = view->batch_stride ? batch : 1;
    layout.stride[1] = gpi__bytes_of(view, view->batch_stride);
    return layout;
}

/* Whether two views share a byte, q beginning `distance` bytes after p: GPI__APART and so on. */
static int gpi__views_share(const gpi__view *p, const gpi__view *q, int64_t batch, int64_t distance) {
    gpi__layout first = gpi__layout_of_view(p, batch), second = gpi__layout_of_view(q, batch);
    return gpi__layouts_share(&first, &second, distance);
}

/* Whether the output and another operand are in each other's way: GPI__APART and so on. The quick answer, by ranges, is the
   usual one. */
static int gpi__collide(const gpi__problem *problem, const gpi__arguments *arguments, int output, int other) {
    const gpi__view *p = &problem->views[output], *q = &problem->views[other];
    uintptr_t p_begin = (uintptr_t)arguments->pointers[output],
              q_begin = (uintptr_t)arguments->pointers[other];
    if (p_begin + (uintptr_t)p->bytes <= q_begin || q_begin + (uintptr_t)q->bytes <= p_begin || !p_begin ||
        !q_begin || !p->bytes || !q->bytes)
        return 0;
    if ((other == GPI__C || other == GPI__SCALE_C) && !arguments->uses_c)
        return 0;
    if (output == GPI__D && gpi__may_be_d(problem, other) && p_begin == q_begin &&
        gpi__same_layout(problem, p, q))
        return 0;
    return gpi__views_share(p, q, problem->batch, (int64_t)(q_begin - p_begin));
}

/* What keeps an operand at D's address from being D. */
static gemmepi_status gpi__refuse_in_place(const gpi__problem *problem, int other) {
    const gpi__view *d = &problem->views[GPI__D], *view = &problem->views[other];
    const char *name = gpi__argument_name(problem, other);
    if (view->dtype != d->dtype)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.%s is args.d, but desc.%s.dtype is %s and d's %s: to be d it must be the same",
                         name, name, gpi__dtype((gemmepi_dtype)view->dtype)->name,
                         gpi__dtype((gemmepi_dtype)d->dtype)->name);
    if (view->lines == d->lines && view->length == d->length && view->ld != d->ld)
        return gpi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "args.%s is args.d, but desc.%s.ld is %lld and d's %lld: to be d it must be the same", name, name,
            (long long)view->ld, (long long)d->ld);
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "args.%s is args.d, but its %s differs: %lld x %lld and batch_stride %lld, d's %lld x %lld and "
        "%lld",
        name, view->lines == d->lines && view->length == d->length ? "batch_stride" : "shape",
        (long long)view->lines, (long long)view->length, (long long)view->batch_stride, (long long)d->lines,
        (long long)d->length, (long long)d->batch_stride);
}

static gemmepi_status gpi__refuse_overlap(const gpi__problem *problem, const gpi__arguments *arguments,
                                          int output, int other, int shares) {
    int may_be_d = output == GPI__D && gpi__may_be_d(problem, other);
    if (may_be_d && arguments->pointers[output] == arguments->pointers[other])
        return gpi__refuse_in_place(problem, other);
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT, "args.%s (%p, %lld bytes) overlaps args.%s (%p, %lld bytes)%s%s",
        gpi__argument_name(problem, output), arguments->pointers[output],
        (long long)problem->views[output].bytes, gpi__argument_name(problem, other),
        arguments->pointers[other], (long long)problem->views[other].bytes, gpi__if_undecided(shares),
        may_be_d ? "; it may be exactly d (pointer, dtype, ld, batch stride)" : "");
}

/* Every output against those after it in the list, which has the outputs first. */
static gemmepi_status gpi__check_overlap(const gpi__problem *problem, const gpi__arguments *arguments) {
    int i, j, shares;
    for (i = 0; i < problem->outputs; i++)
        for (j = i + 1; j < problem->count; j++)
            if ((shares = gpi__collide(problem, arguments, problem->list[i], problem->list[j])) != 0)
                return gpi__refuse_overlap(problem, arguments, problem->list[i], problem->list[j], shares);
    return GEMMEPI_OK;
}

static const char *const gpi__scalar_names[] = {"alpha", "beta"};

/* alpha or beta where it lies on the device, else NULL */
static const void *gpi__device_scalar(const gpi__arguments *arguments, int which) {
    return which ? arguments->device_beta : arguments->device_alpha;
}

/* These are operands, too: kernels load a double, when some of D may be written. */
static gemmepi_status gpi__check_device_scalars(const gpi__problem *problem,
                                                const gpi__arguments *arguments) {
    gpi__layout number, written;
    int which, i;
    number.rank = 0;
    number.size = sizeof(double);
    for (which = 0; which < 2; which++) {
        const char *name = gpi__scalar_names[which];
        const void *pointer = gpi__device_scalar(arguments, which);
        if ((uintptr_t)pointer % sizeof(double))
            return gpi__fail(GEMMEPI_MISALIGNED,
                             "args.%s is %p; on the device it must be a multiple of 8 bytes", name, pointer);
        for (i = 0; i < problem->outputs && pointer; i++) {
            const gpi__view *view = &problem->views[problem->list[i]];
            const void *output = arguments->pointers[problem->list[i]];
            written = gpi__layout_of_view(view, problem->batch);
            if (output && view->bytes && (uintptr_t)pointer < (uintptr_t)output + (uintptr_t)view->bytes &&
                (uintptr_t)output < (uintptr_t)pointer + sizeof(double) &&
                gpi__layouts_share(&written, &number, (int64_t)((uintptr_t)pointer - (uintptr_t)output)))
                return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "args.%s (%p, %lld bytes) overlaps args.%s (%p, on the device)",
                                 gpi__argument_name(problem, problem->list[i]), output,
                                 (long long)view->bytes, name, pointer);
        }
    }
    return GEMMEPI_OK;
}

/* Workspace is an output like any other, and none of the operands may lie in it. */
static gemmepi_status gpi__check_workspace(const gpi__problem *problem, const gpi__arguments *arguments,
                                           const void *workspace, size_t needed) {
    uintptr_t begin = (uintptr_t)workspace;
    const void *pointer;
    int operand, which;
    for (operand = 0; operand < GPI__OPERANDS; operand++) {
        uintptr_t other = (uintptr_t)arguments->pointers[operand];
        if (operand == GPI__C && problem->flags & GEMMEPI_ACCUMULATE)
            continue; /* it is D, whose name the caller knows */
        if (other && other < begin + needed && begin < other + (uintptr_t)problem->views[operand].bytes)
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "args.workspace (%p, %llu bytes used) overlaps args.%s (%p)", workspace,
                             (gpi__ull)needed, gpi__argument_name(problem, operand),
                             arguments->pointers[operand]);
    }
    for (which = 0; which < 2; which++) {
        pointer = gpi__device_scalar(arguments, which);
        if (pointer && (uintptr_t)pointer < begin + needed && begin < (uintptr_t)pointer + sizeof(double))
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "args.workspace (%p, %llu bytes used) overlaps args.%s (%p, on the device)",
                             workspace, (gpi__ull)needed, gpi__scalar_names[which], pointer);
    }
    return GEMMEPI_OK;
}

/* alpha and beta of an I32 result. */
static gemmepi_status gpi__check_whole(const char *name, double value) {
    if (value >= -2147483648.0 && value <= 2147483647.0 && value == (double)(int64_t)value)
        return GEMMEPI_OK;
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                     "args.%s is %.17g; with a result in I32 it must be a whole number of 32 bits", name,
                     value);
}

/* Presence, alignment and overlap of all pointers; they and the scalars have been taken. */
static gemmepi_status gpi__check_arguments(const gpi__problem *problem, gpi__arguments *arguments) {
    gemmepi_status status;
    arguments->uses_c = arguments->beta != 0 || arguments->device_beta;
    status = gpi__check_presence(problem, arguments);
    if (!status && problem->accumulator == GEMMEPI_I32) {
        status = gpi__check_whole("alpha", arguments->alpha);
        if (!status)
            status = gpi__check_whole("beta", arguments->beta);
    }
    if (!status)
        status = gpi__check_alignment(problem, arguments);
    if (!status)
        status = gpi__check_overlap(problem, arguments);
    if (!status && (problem->flags & GEMMEPI_DEVICE_SCALARS))
        status = gpi__check_device_scalars(problem, arguments);
    return status;
}

/* args -> arguments, or the sentence that says what is wrong with them. row_factor: of a problem that has it, else NULL. */
static gemmepi_status gpi__convert_arguments_with(const gpi__problem *problem,
                                                  const gemmepi_matmul_args *args, const float *row_factor,
                                                  gpi__arguments *arguments) {
    int on_device = (problem->flags & GEMMEPI_DEVICE_SCALARS) != 0;
    gemmepi_status status = gpi__check_c(problem, args);
    if (!status && !problem->formula && (args->operands || args->operand_scales || args->operand_amax))
        status = gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is given, but desc.formula is NULL",
                           args->operands         ? "operands"
                           : args->operand_scales ? "operand_scales"
                                                  : "operand_amax");
    if (status)
        return status;
    gpi__list_pointers(problem, args, arguments->pointers);
    memcpy(&arguments->pointers[GPI__ROW_FACTOR], &row_factor, sizeof row_factor);
#ifndef GEMMEPI_NO_FORMULA
    arguments->inside = NULL;
#endif
    arguments->alpha = 1;
    arguments->beta = 0;
    if (args->alpha && !on_device)
        memcpy(&arguments->alpha, args->alpha, sizeof arguments->alpha);
    if (args->beta && !on_device)
        memcpy(&arguments->beta, args->beta, sizeof arguments->beta);
    arguments->device_alpha = on_device ? args->alpha : NULL;
    arguments->device_beta = on_device ? args->beta : NULL;
    if (problem->flags & GEMMEPI_ACCUMULATE) {
        arguments->beta = 1;
        arguments->pointers[GPI__C] = args->d;
    }
    return gpi__check_arguments(problem, arguments);
}

static gemmepi_status gpi__convert_arguments(const gpi__problem *problem, const gemmepi_matmul_args *args,
                                             gpi__arguments *arguments) {
    return gpi__convert_arguments_with(problem, args, NULL, arguments);
}

/* The alignment class that the pointers of a one-shot call have: a power of two, 16 at most. A pointer less aligned
   than its element lowers it too; gpi__check_alignment will refuse that one. desc may be NULL, and is not checked yet. */
static size_t gpi__alignment_of(const gemmepi_matmul_desc *desc, const gemmepi_matmul_args *args) {
    uintptr_t bits = (uintptr_t)args->a | (uintptr_t)args->b | (uintptr_t)args->c | (uintptr_t)args->d |
                     (uintptr_t)args->aux | (uintptr_t)args->residual | (uintptr_t)args->bias |
                     (uintptr_t)args->bias_grad | 16;
#ifndef GEMMEPI_NO_FORMULA
    int count = desc && desc->formula && desc->operands && args->operands ? desc->operand_count : 0, i;
    for (i = 0; i < count && count <= GPI__FORMULA_OPERANDS; i++)
        if (desc->operands[i].kind >= GEMMEPI_PER_ROW)
            bits |= (uintptr_t)args->operands[i];
#else
    (void)desc;
#endif
    return (size_t)(bits & (~bits + 1));
}

#endif
