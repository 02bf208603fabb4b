/* A layer as its plan sees it: row-major, defaults filled in, every rule checked.

   A column-major layer is the row-major one with A and B exchanged, so it is folded first, and what a sentence says of a
   field is put back into the caller's words. The rules of matrices and vectors are those of the products that the layer is
   made of: each is normalised once to check them, and to take the views over. */
#ifndef GEMMEPI_LINEAR_LAYER_H
#define GEMMEPI_LINEAR_LAYER_H

#include "../problem/arguments.h"
#include "../problem/normalise.h"
#ifndef GEMMEPI_NO_FORMULA
#include "../problem/formula_arguments.h"
#endif

/* The tensors of a layer, the scales that go with the first five, and what forward finds for Y in its scale's place. */
enum {
    GEMMEPI__L_A,
    GEMMEPI__L_B,
    GEMMEPI__L_Y,
    GEMMEPI__L_PREACT,
    GEMMEPI__L_DY,
    GEMMEPI__L_BIAS,
    GEMMEPI__L_DA,
    GEMMEPI__L_DB,
    GEMMEPI__L_DBIAS,
    GEMMEPI__L_SCALE_A,
    GEMMEPI__L_SCALE_B,
    GEMMEPI__L_SCALE_Y,
    GEMMEPI__L_SCALE_PREACT,
    GEMMEPI__L_SCALE_DY,
    GEMMEPI__L_FOUND_SCALE_Y,
    GEMMEPI__L_AMAX_HISTORY,
    GEMMEPI__L_COUNT
};

/* Behind them, as pointers of a run alone, the operands of a formula, as the caller lists them, and their scales. */
#ifdef GEMMEPI_NO_FORMULA
#define GEMMEPI__LAYER_OPERANDS 0
#else
#define GEMMEPI__LAYER_OPERANDS 28 /* what the layer adds has room among those of a formula */
#endif
enum {
    GEMMEPI__L_OPERANDS = GEMMEPI__L_COUNT,
    GEMMEPI__L_OPERAND_SCALES = GEMMEPI__L_OPERANDS + GEMMEPI__LAYER_OPERANDS,
    GEMMEPI__L_ALL = GEMMEPI__L_OPERAND_SCALES + GEMMEPI__LAYER_OPERANDS
};

#define GEMMEPI__L_SCALE_OF(tensor) (GEMMEPI__L_SCALE_A + (tensor)) /* of A to DY */

static const char *const gemmepi__layer_names[GEMMEPI__L_COUNT] = {"a",
                                                                   "b",
                                                                   "y",
                                                                   "preact",
                                                                   "dy",
                                                                   "bias",
                                                                   "da",
                                                                   "db",
                                                                   "dbias",
                                                                   "scale_a",
                                                                   "scale_b",
                                                                   "scale_y",
                                                                   "scale_preact",
                                                                   "scale_dy",
                                                                   "found_scale_y",
                                                                   "amax_history"};

#define GEMMEPI__LINEAR_OUTPUTS (GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS)

/* Zeroed before it is filled, so that its bytes tell layers apart. */
typedef struct gemmepi__layer_task {
    int64_t
        tag; /* -2: a forward, -3: a backward; products begin with 0 or more, element-wise tasks with -1 */
    int64_t m, n, k, batch;
    double parameter;
    uint64_t epilogue; /* activation, GATED, GATE_FIRST */
    uint64_t flags;
    int32_t compute; /* as given */
    int32_t g_dtype;
    int32_t alignment;
    int32_t found_scale;  /* the gemmepi_scale_mode of the scales that forward finds for Y; 0: none are */
    int32_t amax_history; /* with TENSOR */
    int32_t exchanged;    /* column-major: a here is the caller's b */
    int32_t shares_b;     /* in a batch B is the same for all items: dB and dbias are sums over them */
    int32_t shares_a;     /* A and dA are: dA is a sum over them */
    int32_t shares_dbias; /* dbias is */
    uint32_t used;        /* bit t: this direction has tensor t */
    uint32_t written;
    struct gemmepi__kept_formula
        *formula;          /* that this direction's one step with a formula has; NULL: the layer has none */
    int32_t operand_count; /* of the caller's, which are the formula's first ones */
    int8_t beside[4];      /* tensors of the layer that stand behind them */
    gemmepi__view views[GEMMEPI__L_COUNT];
} gemmepi__layer_task;

static int gemmepi__is_backward(const gemmepi__layer_task *task) {
    return task->tag == -3;
}

/* How a tensor of the layer lies. Of a formula's operand, which no NUMBER is, and of its scale in the formula. */
static const gemmepi__view *gemmepi__layer_view(const gemmepi__layer_task *task, int tensor) {
#ifndef GEMMEPI_NO_FORMULA
    if (tensor >= GEMMEPI__L_OPERAND_SCALES)
        return &gemmepi__one_f32;
    if (tensor >= GEMMEPI__L_OPERANDS)
        return &task->formula->views[tensor - GEMMEPI__L_OPERANDS];
#endif
    return &task->views[tensor];
}

/* Whether a NUMBER of a formula stands there, which lies on the host. */
static int gemmepi__is_layers_number(const gemmepi__layer_task *task, int tensor) {
#ifndef GEMMEPI_NO_FORMULA
    int place = tensor - GEMMEPI__L_OPERANDS;
    return place >= 0 && place < task->operand_count &&
           task->formula->placed.formula->operands[place].kind == GEMMEPI_NUMBER;
#else
    (void)task, (void)tensor;
    return 0;
#endif
}

/* Whether this direction needs a pointer to it. */
static int gemmepi__layer_has(const gemmepi__layer_task *task, int tensor) {
#ifndef GEMMEPI_NO_FORMULA
    int is_scale = tensor >= GEMMEPI__L_OPERAND_SCALES;
    int place = tensor - (is_scale ? (int)GEMMEPI__L_OPERAND_SCALES : (int)GEMMEPI__L_OPERANDS);
    if (place >= 0)
        return place < task->operand_count && task->formula->placed.formula->operands[place].used &&
               (!is_scale || task->formula->placed.operands[place].scale);
#endif
    return (int)(task->used >> tensor & 1);
}

static int gemmepi__layer_writes(const gemmepi__layer_task *task, int tensor) {
#ifndef GEMMEPI_NO_FORMULA
    if (tensor >= GEMMEPI__L_OPERANDS)
        return tensor < GEMMEPI__L_OPERAND_SCALES && gemmepi__layer_has(task, tensor) &&
               task->formula->placed.formula->operands[tensor - GEMMEPI__L_OPERANDS].output;
#endif
    return (int)(task->written >> tensor & 1);
}

/* Whether G is dY itself up to its type: there is no activation. */
static int gemmepi__is_affine(uint64_t epilogue) {
    return gemmepi__activation(epilogue) == GEMMEPI_NONE && !(epilogue & GEMMEPI_GATED);
}

/* >>sentences in the caller's words */

typedef struct gemmepi__renaming {
    const char *from, *to;
} gemmepi__renaming;

/* Exchanges whole words "desc.x" in this thread's sentence, all at once. */
static void gemmepi__rename_error(const gemmepi__renaming *names, size_t count) {
    char renamed[GEMMEPI__ERROR_TEXT_SIZE];
    gemmepi__text text = gemmepi__text_in(renamed, sizeof renamed);
    const char *at = gemmepi__error_text;
    while (*at) {
        size_t i = 0, length = 1;
        for (; i < count; i++) {
            length = strlen(names[i].from);
            if (strncmp(at, names[i].from, length) == 0 && !gemmepi__is_word(at[length]))
                break;
        }
        if (i < count) {
            gemmepi__append(&text, "%s", names[i].to);
            at += length;
        } else {
            gemmepi__append(&text, "%c", *at++);
        }
    }
    (void)gemmepi__fail(GEMMEPI_OK, "%s", renamed);
}

/* What a product of the layer calls its matrices, in the layer's words. */
static gemmepi_status gemmepi__in_layers_words(gemmepi_status status, int exchanged, const char *a,
                                               const char *b, const char *d, const char *aux) {
    static const char *const folded[][2] = {{"desc.a", "desc.b"},   {"desc.b", "desc.a"},
                                            {"desc.da", "desc.db"}, {"desc.db", "desc.da"},
                                            {"desc.m", "desc.n"},   {"desc.n", "desc.m"}};
    gemmepi__renaming names[] = {{"desc.a", NULL},
                                 {"desc.b", NULL},
                                 {"desc.d", NULL},
                                 {"desc.aux", NULL},
                                 {"desc.bias_grad", "desc.dbias"},
                                 {"desc.epilogue", "desc.activation"},
                                 {"desc.m", "desc.m"},
                                 {"desc.n", "desc.n"}};
    size_t i, j;
    if (!status)
        return status;
    names[0].to = a;
    names[1].to = b;
    names[2].to = d;
    names[3].to = aux;
    for (i = 0; exchanged && i < GEMMEPI__COUNT(names); i++)
        for (j = 0; j < GEMMEPI__COUNT(folded); j++)
            if (strcmp(names[i].to, folded[j][0]) == 0) {
                names[i].to = folded[j][1];
                break;
            }
    gemmepi__rename_error(names, GEMMEPI__COUNT(names));
    return status;
}

/* The caller's name of a tensor. */
static const char *gemmepi__layer_name(const gemmepi__layer_task *task, int tensor) {
    static const int8_t pairs[][2] = {{GEMMEPI__L_A, GEMMEPI__L_B},
                                      {GEMMEPI__L_DA, GEMMEPI__L_DB},
                                      {GEMMEPI__L_SCALE_A, GEMMEPI__L_SCALE_B}};
    size_t i;
    for (i = 0; task->exchanged && i < GEMMEPI__COUNT(pairs); i++)
        if (tensor == pairs[i][0] || tensor == pairs[i][1])
            return gemmepi__layer_names[pairs[i][0] + pairs[i][1] - tensor];
    return gemmepi__layer_names[tensor];
}

/* That of anything that a run has a pointer to: in room, where it is an operand of a formula. */
static const char *gemmepi__layer_pointers_name(const gemmepi__layer_task *task, int tensor, char room[128]) {
#ifndef GEMMEPI_NO_FORMULA
    int is_scale = tensor >= GEMMEPI__L_OPERAND_SCALES;
    int place = tensor - (is_scale ? (int)GEMMEPI__L_OPERAND_SCALES : (int)GEMMEPI__L_OPERANDS);
    if (place >= 0) {
        const gemmepi__formula *formula = task->formula->placed.formula;
        snprintf(room, 128, "%s[%d] (of %s)", is_scale ? "operand_scales" : "operands", place,
                 formula->names + formula->operands[place].name);
        return room;
    }
#endif
    (void)room;
    return gemmepi__layer_name(task, tensor);
}

/* >>what a desc says by itself */

static uint64_t gemmepi__exchange_bits(uint64_t flags, uint64_t first, uint64_t second) {
    uint64_t rest = flags & ~(first | second);
    return rest | (flags & first ? second : 0) | (flags & second ? first : 0);
}

/* A and B exchanged, and all that goes with them but the order: its own way back. */
static void gemmepi__exchange_layer(gemmepi_linear_desc *layer) {
    gemmepi_matrix a = layer->a, da = layer->da;
    int64_t m = layer->m;
    layer->a = layer->b;
    layer->b = a;
    layer->da = layer->db;
    layer->db = da;
    layer->m = layer->n;
    layer->n = m;
    layer->flags = gemmepi__exchange_bits(layer->flags, GEMMEPI_LINEAR_DA, GEMMEPI_LINEAR_DB);
    layer->flags = gemmepi__exchange_bits(layer->flags, GEMMEPI_ACCUMULATE_DA, GEMMEPI_ACCUMULATE_DB);
}

/* The row-major layer of a column-major one. */
static gemmepi_linear_desc gemmepi__fold_layer(const gemmepi_linear_desc *desc) {
    gemmepi_linear_desc folded = *desc;
    if (!folded.batch)
        folded.batch = 1;
    if (!folded.a.dtype)
        folded.a.dtype = GEMMEPI_F32;
    if (!folded.b.dtype)
        folded.b.dtype = folded.a.dtype;
    if (!folded.y.dtype)
        folded.y.dtype = gemmepi__is_fp8((int)folded.a.dtype) ? GEMMEPI_BF16 : folded.a.dtype;
    if (!folded.da.dtype)
        folded.da.dtype = gemmepi__is_fp8((int)folded.a.dtype) ? GEMMEPI_BF16 : folded.a.dtype;
    if (!folded.db.dtype)
        folded.db.dtype = gemmepi__is_fp8((int)folded.b.dtype) ? GEMMEPI_BF16 : folded.b.dtype;
    if (desc->order == GEMMEPI_COLUMN_MAJOR) {
        gemmepi__exchange_layer(&folded);
        folded.order = GEMMEPI_ROW_MAJOR;
    }
    return folded;
}

/* Whether operands are gradients of others, which the caller calls d_NAME. The formula's fields have been checked. */
static int gemmepi__asks_for_gradients(const gemmepi_linear_desc *desc) {
    int i;
    for (i = 0; i < desc->operand_count; i++)
        if (desc->operands[i].output)
            return 1;
    return 0;
}

static gemmepi_status gemmepi__check_layer_flags(const gemmepi_linear_desc *desc, int backward) {
    static const struct {
        uint64_t accumulate, output;
        const char *name;
    } pairs[] = {{GEMMEPI_ACCUMULATE_DA, GEMMEPI_LINEAR_DA, "DA"},
                 {GEMMEPI_ACCUMULATE_DB, GEMMEPI_LINEAR_DB, "DB"},
                 {GEMMEPI_ACCUMULATE_DBIAS, GEMMEPI_LINEAR_DBIAS, "DBIAS"}};
    uint64_t keeps = desc->flags & (GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_RECOMPUTE);
    int affine = !desc->formula && gemmepi__is_affine(desc->activation);
    size_t i;
    gemmepi_status status = gemmepi__check_flags_of(GEMMEPI__OF_LAYER, desc->flags, 0);
    if (status)
        return status;
    if (gemmepi__has_two(keeps))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.flags has both LINEAR_SAVED and LINEAR_RECOMPUTE; P is either read from "
                             "preact or computed anew");
    if (!(desc->flags & GEMMEPI_FIND_SCALE_D) &&
        (desc->flags & GEMMEPI_POWER_OF_TWO_SCALE || desc->amax_history))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s; it goes with FIND_SCALE_D%s",
                             desc->amax_history ? "amax_history is not 0" : "flags has POWER_OF_TWO_SCALE",
                             desc->amax_history ? GEMMEPI__UNINITIALISED : "");
    if (affine && keeps)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.flags has LINEAR_%s, but the activation is NONE: its gradient needs no P",
                             keeps == GEMMEPI_LINEAR_SAVED ? "SAVED" : "RECOMPUTE");
    if (!backward)
        return GEMMEPI_OK;
    if (!(desc->flags & GEMMEPI__LINEAR_OUTPUTS) && !gemmepi__asks_for_gradients(desc))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.flags asks for no output; at least one of LINEAR_DA, LINEAR_DB and "
                             "LINEAR_DBIAS%s",
                             desc->formula ? ", or an operand d_NAME" : "");
    for (i = 0; i < GEMMEPI__COUNT(pairs); i++)
        if (desc->flags & pairs[i].accumulate && !(desc->flags & pairs[i].output))
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.flags has ACCUMULATE_%s without LINEAR_%s",
                                 pairs[i].name, pairs[i].name);
    if (!affine && !keeps && !desc->formula)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.flags has neither LINEAR_SAVED nor LINEAR_RECOMPUTE; the gradient of this "
                             "activation needs P");
    return GEMMEPI_OK;
}

/* What a desc without a formula leaves 0, and one with a formula. */
static gemmepi_status gemmepi__check_beside_layers_formula(const gemmepi_linear_desc *desc) {
    if (!desc->formula)
        return gemmepi__check_without_formula(desc->operands, desc->operand_count, desc->formula_value,
                                              desc->formula_result);
#ifdef GEMMEPI_NO_FORMULA
    return gemmepi__fail(GEMMEPI_UNSUPPORTED,
                         "desc.formula is given, but formulas are left out of this build "
                         "(GEMMEPI_NO_FORMULA)");
#else
    if (desc->activation || desc->has_parameter || desc->activation_parameter != 0)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.%s is not 0 beside desc.formula, which takes the activation's place: leave it 0",
            desc->activation      ? "activation"
            : desc->has_parameter ? "has_parameter"
                                  : "activation_parameter");
    if (desc->operand_count < 0 || desc->operand_count > GEMMEPI__LAYER_OPERANDS)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.operand_count is %d; accepted are 0 to %d in a layer", desc->operand_count,
                             GEMMEPI__LAYER_OPERANDS);
    if (desc->operand_count && !desc->operands)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.operands is NULL, but desc.operand_count is %d",
                             desc->operand_count);
    return GEMMEPI_OK;
#endif
}

static gemmepi_status gemmepi__check_layer_scalars(const gemmepi_linear_desc *desc) {
    gemmepi_status status = gemmepi__check_activation("activation", desc->activation);
    if (!status)
        status =
            gemmepi__check_flags_of(GEMMEPI__OF_LAYERS_ACTIVATION, desc->activation, GEMMEPI_ACTIVATION_MASK);
    if (!status)
        status = gemmepi__check_beside_layers_formula(desc);
    if (!status && (unsigned)desc->order > GEMMEPI_COLUMN_MAJOR)
        status = gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.order is %d, which is no gemmepi_order%s",
                               (int)desc->order, GEMMEPI__UNINITIALISED);
    if (status)
        return status;
    if (desc->batch < 0 || desc->batch > GEMMEPI__MAX_ELEMENTS)
        return gemmepi__check_size("batch", desc->batch);
    return GEMMEPI_OK;
}

/* >>products of the layer, as descs */

/* A matrix between the steps, dense. */
static gemmepi_matrix gemmepi__dense_matrix(gemmepi_dtype dtype, int64_t lines, int64_t length) {
    gemmepi_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    matrix.dtype = dtype;
    matrix.ld = length;
    matrix.batch_stride = length != 0 && lines > GEMMEPI__MAX_ELEMENTS / length ? 0 : lines * length;
    return matrix;
}

/* What a layer and its product have in common. */
#define GEMMEPI__LAYERS_PRODUCT_FLAGS (GEMMEPI_RELAXED | GEMMEPI_FAST_ACCUMULATION | GEMMEPI_BATCH_INVARIANT)

/* Which only forward's has. */
#define GEMMEPI__LAYERS_FOUND_FLAGS (GEMMEPI_FIND_SCALE_D | GEMMEPI_POWER_OF_TWO_SCALE)

static gemmepi_matmul_desc gemmepi__product_of_layer(const gemmepi_linear_desc *layer) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = layer->m;
    desc.n = layer->n;
    desc.k = layer->k;
    desc.batch = layer->batch;
    desc.compute = layer->compute;
    desc.epilogue = layer->activation;
    desc.flags = layer->flags & GEMMEPI__LAYERS_PRODUCT_FLAGS;
    desc.has_parameter = layer->has_parameter;
    desc.activation_parameter = layer->activation_parameter;
    desc.a = layer->a;
    desc.b = layer->b;
    desc.bias = layer->bias;
    if (layer->flags & GEMMEPI_LINEAR_BIAS)
        desc.epilogue |= GEMMEPI_BIAS;
    desc.alignment = layer->alignment;
    return desc;
}

/* TF32 where it fits; other types follow from the operands. */
static gemmepi_compute gemmepi__gradient_compute(gemmepi_compute wanted, int a, int b) {
    return wanted == GEMMEPI_COMPUTE_TF32 && gemmepi__common_dtype(a, b) == GEMMEPI_F32
               ? GEMMEPI_COMPUTE_TF32
               : GEMMEPI_COMPUTE_DEFAULT;
}

/* >>taking a desc */

static void gemmepi__take_layer_view(gemmepi__layer_task *task, int tensor, const gemmepi__problem *problem,
                                     int operand) {
    task->views[tensor] = problem->views[operand];
    if (tensor <= GEMMEPI__L_DY)
        task->views[GEMMEPI__L_SCALE_OF(tensor)] = problem->views[GEMMEPI__SCALE_OF(operand)];
}

/* Y, and what is found for it. */
static void gemmepi__take_y_view(gemmepi__layer_task *task, const gemmepi__problem *problem) {
    gemmepi__take_layer_view(task, GEMMEPI__L_Y, problem, GEMMEPI__D);
    task->found_scale = problem->found_scale;
    task->amax_history = problem->amax_history;
    if (!problem->found_scale)
        return;
    task->views[GEMMEPI__L_Y].scale = 0;
    memset(&task->views[GEMMEPI__L_SCALE_Y], 0, sizeof task->views[GEMMEPI__L_SCALE_Y]);
    gemmepi__take_layer_view(task, GEMMEPI__L_FOUND_SCALE_Y, problem, GEMMEPI__FOUND_SCALE_D);
    gemmepi__take_layer_view(task, GEMMEPI__L_AMAX_HISTORY, problem, GEMMEPI__AMAX_HISTORY);
}

/* Of a layer's product, D being Y: whether its scales are found. */
static void gemmepi__find_scale_of_y(const gemmepi_linear_desc *layer, gemmepi_matmul_desc *desc) {
    desc->flags |= layer->flags & GEMMEPI__LAYERS_FOUND_FLAGS;
    desc->amax_history = layer->amax_history;
}

/* A, B, bias, and Y or, for backward, the P that forward left. A formula's Y is not looked at, but as P has a type by it. */
static gemmepi_status gemmepi__take_forward(const gemmepi_linear_desc *layer, int backward, size_t alignment,
                                            gemmepi__layer_task *task) {
    gemmepi_matmul_desc desc = gemmepi__product_of_layer(layer);
    gemmepi__problem problem;
    gemmepi_status status;
    desc.d = layer->y;
    desc.aux = layer->preact;
    if (!desc.aux.dtype && !gemmepi__aux_is_mask(desc.epilogue | GEMMEPI_AUX))
        desc.aux.dtype = layer->y.dtype;
    if (layer->flags & GEMMEPI_LINEAR_SAVED)
        desc.epilogue |= GEMMEPI_AUX;
    if (backward || layer->formula) { /* Y is not looked at */
        int64_t columns = gemmepi__result_columns(layer->activation, layer->n);
        desc.d =
            gemmepi__dense_matrix(layer->y.dtype, layer->m > 0 ? layer->m : 0, columns > 0 ? columns : 0);
    } else {
        gemmepi__find_scale_of_y(layer, &desc);
    }
    status = gemmepi__normalise(&desc, alignment, &problem);
    if (status)
        return gemmepi__in_layers_words(status, task->exchanged, "desc.a", "desc.b", "desc.y", "desc.preact");
    gemmepi__take_layer_view(task, GEMMEPI__L_A, &problem, GEMMEPI__A);
    gemmepi__take_layer_view(task, GEMMEPI__L_B, &problem, GEMMEPI__B);
    gemmepi__take_layer_view(task, GEMMEPI__L_BIAS, &problem, GEMMEPI__BIAS);
    if (!backward && !layer->formula)
        gemmepi__take_y_view(task, &problem);
    if (layer->flags & GEMMEPI_LINEAR_SAVED)
        gemmepi__take_layer_view(task, GEMMEPI__L_PREACT, &problem, GEMMEPI__AUX);
    task->parameter = problem.parameter;
    task->alignment = problem.alignment;
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__take_g_dtype(const gemmepi_linear_desc *layer, gemmepi__layer_task *task) {
    int a = (int)layer->a.dtype, b = (int)layer->b.dtype, common = gemmepi__common_dtype(a, b);
    uint32_t accepted = a == GEMMEPI_F64 ? 1u << GEMMEPI_F64 : GEMMEPI__VECTOR_TYPES;
    task->g_dtype = layer->g_dtype                             ? (int32_t)layer->g_dtype
                    : gemmepi__is_fp8(a) && gemmepi__is_fp8(b) ? (int32_t)GEMMEPI_BF16
                                                               : (int32_t)common;
    if (a == GEMMEPI_I8 || b == GEMMEPI_I8)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED,
                             "desc.%s.dtype is I8; gradients go to operands of F64, F32, F16, BF16, E4M3 and "
                             "E5M2",
                             (a == GEMMEPI_I8) != (task->exchanged != 0) ? "a" : "b");
    if ((unsigned)task->g_dtype > GEMMEPI_I32 || !(accepted >> task->g_dtype & 1))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.g_dtype is %d (%s); accepted %s here%s",
                             (int)layer->g_dtype,
                             gemmepi__dtype_is_known(layer->g_dtype) ? gemmepi__dtype(layer->g_dtype)->name
                                                                     : "no gemmepi_dtype",
                             a == GEMMEPI_F64 ? "is F64" : "are F32, F16 and BF16",
                             gemmepi__dtype_is_known(layer->g_dtype) ? "" : GEMMEPI__UNINITIALISED);
    return GEMMEPI_OK;
}

/* dY of so many columns, as what a product without terms reads. */
static gemmepi_status gemmepi__take_formulas_dy(const gemmepi_linear_desc *layer, int64_t columns,
                                                size_t alignment, gemmepi__layer_task *task) {
    gemmepi_matmul_desc desc;
    gemmepi__problem problem;
    gemmepi_status status;
    memset(&desc, 0, sizeof desc);
    desc.m = layer->m;
    desc.n = columns;
    desc.batch = layer->batch;
    desc.alignment = layer->alignment;
    desc.epilogue = GEMMEPI_BACKWARD;
    desc.a.dtype = layer->a.dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    desc.aux = layer->dy;
    if (!desc.aux.dtype)
        desc.aux.dtype = layer->y.dtype;
    desc.d = gemmepi__dense_matrix(desc.a.dtype, layer->m, columns);
    status = gemmepi__normalise(&desc, alignment, &problem);
    if (status)
        return gemmepi__in_layers_words(status, task->exchanged, "desc.a", "desc.b", "desc.g", "desc.dy");
    gemmepi__take_layer_view(task, GEMMEPI__L_DY, &problem, GEMMEPI__AUX);
    return GEMMEPI_OK;
}

/* dY and dbias. columns: of dY, if the layer has a formula. */
static gemmepi_status gemmepi__take_upstream(const gemmepi_linear_desc *layer, int64_t columns,
                                             size_t alignment, gemmepi__layer_task *task) {
    gemmepi_matmul_desc desc = gemmepi__product_of_layer(layer);
    gemmepi__problem problem;
    gemmepi_status status;
    desc.epilogue |= GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM;
    desc.aux = layer->dy;
    if (!desc.aux.dtype)
        desc.aux.dtype = layer->y.dtype;
    desc.d = gemmepi__dense_matrix((gemmepi_dtype)task->g_dtype, layer->m, layer->n);
    if (layer->flags & GEMMEPI_LINEAR_DBIAS) {
        desc.epilogue |= GEMMEPI_BGRAD;
        desc.bias_grad = layer->dbias;
        if (!desc.bias_grad.dtype && layer->flags & GEMMEPI_LINEAR_BIAS)
            desc.bias_grad.dtype = (gemmepi_dtype)task->views[GEMMEPI__L_BIAS].dtype;
        if (!desc.bias_grad.dtype)
            desc.bias_grad.dtype = gemmepi__default_dtype(GEMMEPI__BIAS, layer->y.dtype);
    }
    if (layer->formula) /* which says how wide dY is */
        memset(&desc.aux, 0, sizeof desc.aux);
    status = gemmepi__normalise(&desc, alignment, &problem);
    if (status)
        return gemmepi__in_layers_words(status, task->exchanged, "desc.a", "desc.b", "desc.g", "desc.dy");
    gemmepi__take_layer_view(task, GEMMEPI__L_DY, &problem, GEMMEPI__AUX);
    gemmepi__take_layer_view(task, GEMMEPI__L_DBIAS, &problem, GEMMEPI__BIAS_GRAD);
    return layer->formula ? gemmepi__take_formulas_dy(layer, columns, alignment, task) : GEMMEPI_OK;
}

/* dA or dB as the result of a product, of which only its own rules are new. batch: the number of its items. */
static gemmepi_status gemmepi__take_gradient(const gemmepi_linear_desc *layer, int tensor, int64_t batch,
                                             size_t alignment, gemmepi__layer_task *task) {
    int is_da = tensor == GEMMEPI__L_DA;
    const gemmepi_matrix *matrix = is_da ? &layer->da : &layer->db, *of = is_da ? &layer->a : &layer->b;
    int64_t rows = is_da ? layer->m : layer->k, columns = is_da ? layer->k : layer->n;
    int is_f64 = layer->a.dtype == GEMMEPI_F64;
    uint32_t accepted = is_f64 ? 1u << GEMMEPI_F64 : GEMMEPI__VECTOR_TYPES;
    gemmepi_matmul_desc desc;
    gemmepi__problem problem;
    gemmepi_status status;
    if (matrix->transposed && matrix->transposed != of->transposed)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.%s.transposed is %d; a gradient lies as its operand is stored, so leave it 0%s",
            gemmepi__layer_name(task, tensor), matrix->transposed,
            matrix->transposed == 1 ? "" : GEMMEPI__UNINITIALISED);
    if (is_da && of->transposed && layer->flags & GEMMEPI_BATCH_INVARIANT)
        return gemmepi__fail(
            GEMMEPI_UNSUPPORTED,
            "desc.flags has BATCH_INVARIANT and LINEAR_%s, and desc.%s is stored transposed, as its gradient is, whose "
            "rows then depend on m; leave one of the flags out",
            task->exchanged ? "DB" : "DA", gemmepi__layer_name(task, GEMMEPI__L_A));
    if (matrix->scale.mode != GEMMEPI_SCALE_NONE)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.scale.mode is %d; a gradient takes no scale",
                             gemmepi__layer_name(task, tensor), (int)matrix->scale.mode);
    if (!gemmepi__dtype_is_known(matrix->dtype) || !(accepted >> matrix->dtype & 1))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT, "desc.%s.dtype is %d (%s); gradients of a layer in %s are in %s%s",
            gemmepi__layer_name(task, tensor), (int)matrix->dtype,
            gemmepi__dtype_is_known(matrix->dtype) ? gemmepi__dtype(matrix->dtype)->name : "no gemmepi_dtype",
            gemmepi__dtype(layer->a.dtype)->name, is_f64 ? "F64" : "F32, F16 or BF16",
            gemmepi__dtype_is_known(matrix->dtype) ? "" : GEMMEPI__UNINITIALISED);
    memset(&desc, 0, sizeof desc);
    desc.m = of->transposed ? columns : rows;
    desc.n = of->transposed ? rows : columns;
    desc.batch = batch;
    desc.a.dtype = desc.b.dtype = is_f64 ? GEMMEPI_F64 : GEMMEPI_F32;
    desc.d = *matrix;
    desc.d.transposed = 0;
    desc.flags = layer->flags & GEMMEPI_BATCH_INVARIANT;
    desc.alignment = layer->alignment;
    status = gemmepi__normalise(&desc, alignment, &problem);
    if (status)
        return gemmepi__in_layers_words(status, task->exchanged, "desc.a", "desc.b",
                                        is_da ? "desc.da" : "desc.db", "desc.aux");
    gemmepi__take_layer_view(task, tensor, &problem, GEMMEPI__D);
    task->views[tensor].transposed = of->transposed;
    return GEMMEPI_OK;
}

/* One batch form for all: see gemmepi_linear_desc. The fields are those of the folded layer. */
static gemmepi_status gemmepi__check_batch_form(const gemmepi_linear_desc *layer,
                                                const gemmepi__layer_task *task, int backward) {
    int exchanged = task->exchanged;
    const char *b = exchanged ? "a" : "b", *db = exchanged ? "da" : "db", *da = exchanged ? "db" : "da";
    int shared = task->shares_b;
    int has_bias = (layer->flags & GEMMEPI_LINEAR_BIAS) != 0;
    if (layer->batch == 1)
        return GEMMEPI_OK;
    if (shared && has_bias && layer->bias.batch_stride)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.bias.batch_stride is %lld, but %s is shared by the batch (its stride is 0): "
            "then bias is too",
            (long long)layer->bias.batch_stride, b);
    if (shared && layer->b.scale.batch_stride)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.%s.scale.batch_stride is %lld, but %s is shared by the batch (its stride is "
            "0): then its scale is too",
            b, (long long)layer->b.scale.batch_stride, b);
    if (!backward)
        return GEMMEPI_OK;
    if (task->shares_a && layer->a.scale.batch_stride)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.%s.scale.batch_stride is %lld, but %s is the sum over the batch (its stride "
            "is 0): then the scale is shared too",
            exchanged ? "b" : "a", (long long)layer->a.scale.batch_stride, da);
    if (layer->flags & GEMMEPI_LINEAR_DB && shared != (layer->db.batch_stride == 0))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.%s.batch_stride is %lld and desc.%s.batch_stride %lld; either both are 0 "
                             "(shared by the batch, its gradient a sum over it), or neither is",
                             db, (long long)layer->db.batch_stride, b, (long long)layer->b.batch_stride);
    if (layer->flags & GEMMEPI_LINEAR_DBIAS && shared && layer->dbias.batch_stride)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.dbias.batch_stride is %lld, but %s is shared by the batch (its stride is 0): "
            "then dbias is the sum over it, with stride 0",
            (long long)layer->dbias.batch_stride, b);
    if (layer->flags & GEMMEPI_LINEAR_DBIAS && has_bias &&
        (layer->dbias.batch_stride == 0) != (layer->bias.batch_stride == 0))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.dbias.batch_stride is %lld and desc.bias.batch_stride %lld; either both are "
            "0, or neither is",
            (long long)layer->dbias.batch_stride, (long long)layer->bias.batch_stride);
    if (task->shares_a && shared)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED,
                             "desc.%s.batch_stride is 0 where a and b are both the same for all items; the "
                             "gradient is that of the sum of dy over the batch: add dy up, and leave batch 1",
                             da);
    return GEMMEPI_OK;
}

static void gemmepi__use_layer(gemmepi__layer_task *task, int tensor) {
    task->used |= 1u << tensor;
    if (tensor <= GEMMEPI__L_DY && task->views[tensor].scale)
        task->used |= 1u << GEMMEPI__L_SCALE_OF(tensor);
}

static void gemmepi__write_layer(gemmepi__layer_task *task, int tensor) {
    gemmepi__use_layer(task, tensor);
    task->written |= 1u << tensor;
}

/* Whether G needs P. */
static int gemmepi__reads_p(const gemmepi__layer_task *task) {
#ifndef GEMMEPI_NO_FORMULA
    int i;
    if (!task->formula || task->formula->placed.formula->reads_value)
        return 1;
    for (i = 0; i < (int)sizeof task->beside; i++)
        if (task->beside[i] == GEMMEPI__L_PREACT)
            return 1;
    return 0;
#else
    (void)task;
    return 1;
#endif
}

/* Which tensors this direction reads and writes. */
static void gemmepi__use_tensors(gemmepi__layer_task *task, int backward) {
    uint64_t flags = task->flags;
    int recomputes = (flags & GEMMEPI_LINEAR_RECOMPUTE) != 0 && gemmepi__reads_p(task);
    if (!backward || recomputes || flags & GEMMEPI_LINEAR_DB)
        gemmepi__use_layer(task, GEMMEPI__L_A);
    if (!backward || recomputes || flags & GEMMEPI_LINEAR_DA)
        gemmepi__use_layer(task, GEMMEPI__L_B);
    if (flags & GEMMEPI_LINEAR_BIAS && (!backward || recomputes))
        gemmepi__use_layer(task, GEMMEPI__L_BIAS);
    if (flags & GEMMEPI_LINEAR_SAVED && backward && gemmepi__reads_p(task))
        gemmepi__use_layer(task, GEMMEPI__L_PREACT);
    if (flags & GEMMEPI_LINEAR_SAVED && !backward)
        gemmepi__write_layer(task, GEMMEPI__L_PREACT);
    if (!backward) {
        gemmepi__write_layer(task, GEMMEPI__L_Y);
        if (task->found_scale)
            gemmepi__write_layer(task, GEMMEPI__L_FOUND_SCALE_Y);
        if (task->found_scale == GEMMEPI_SCALE_TENSOR)
            gemmepi__write_layer(task, GEMMEPI__L_AMAX_HISTORY);
        return;
    }
    gemmepi__use_layer(task, GEMMEPI__L_DY);
    if (flags & GEMMEPI_LINEAR_DA)
        gemmepi__write_layer(task, GEMMEPI__L_DA);
    if (flags & GEMMEPI_LINEAR_DB)
        gemmepi__write_layer(task, GEMMEPI__L_DB);
    if (flags & GEMMEPI_LINEAR_DBIAS)
        gemmepi__write_layer(task, GEMMEPI__L_DBIAS);
}

static gemmepi_status gemmepi__take_gradients(const gemmepi_linear_desc *layer, int64_t columns,
                                              size_t alignment, gemmepi__layer_task *task) {
    gemmepi_status status = gemmepi__take_g_dtype(layer, task);
    if (!status)
        status = gemmepi__take_upstream(layer, columns, alignment, task);
    if (!status && layer->flags & GEMMEPI_LINEAR_DA)
        status =
            gemmepi__take_gradient(layer, GEMMEPI__L_DA, task->shares_a ? 1 : layer->batch, alignment, task);
    if (!status && layer->flags & GEMMEPI_LINEAR_DB)
        status =
            gemmepi__take_gradient(layer, GEMMEPI__L_DB, task->shares_b ? 1 : layer->batch, alignment, task);
    return status;
}

#endif
