/* A layer as its plan sees it: row-major, defaults filled in, every rule checked.

   A column-major layer is the row-major one with A and B exchanged, so it is folded first, and what a sentence says of a
   field is put back into the caller's words. The rules of matrices and vectors are those of the products that the layer is
   made of: each is normalised once to check them, and to take the views over. */
#ifndef GEMMEPI_LINEAR_LAYER_H
#define GEMMEPI_LINEAR_LAYER_H

#include "../problem/arguments.h"

/* The tensors of a layer, and the scales that go with the first five. */
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
    GEMMEPI__L_COUNT
};

#define GEMMEPI__L_SCALE_OF(tensor) (GEMMEPI__L_SCALE_A + (tensor)) /* of A to DY */

static const char *const gemmepi__layer_names[GEMMEPI__L_COUNT] = {
    "a",  "b",     "y",       "preact",  "dy",      "bias",         "da",
    "db", "dbias", "scale_a", "scale_b", "scale_y", "scale_preact", "scale_dy"};

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
    int32_t exchanged;    /* column-major: a here is the caller's b */
    int32_t shares_b;     /* in a batch B is the same for all items: dB and dbias are sums over them */
    int32_t shares_a;     /* A and dA are: dA is a sum over them */
    int32_t shares_dbias; /* dbias is */
    uint32_t used;        /* bit t: this direction has tensor t */
    uint32_t written;
    gemmepi__view views[GEMMEPI__L_COUNT];
} gemmepi__layer_task;

static int gemmepi__is_backward(const gemmepi__layer_task *task) {
    return task->tag == -3;
}

static int gemmepi__layer_has(const gemmepi__layer_task *task, int tensor) {
    return (int)(task->used >> tensor & 1);
}

/* Whether G is dY itself up to its type: there is no activation. */
static int gemmepi__is_affine(uint64_t epilogue) {
    return gemmepi__activation(epilogue) == GEMMEPI_NONE && !(epilogue & GEMMEPI_GATED);
}

/* >>sentences in the caller's words */

typedef struct gemmepi__renaming {
    const char *from, *to;
} gemmepi__renaming;

static int gemmepi__is_word(char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
}

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

/* >>what a desc says by itself */

static uint64_t gemmepi__exchange_bits(uint64_t flags, uint64_t first, uint64_t second) {
    uint64_t rest = flags & ~(first | second);
    return rest | (flags & first ? second : 0) | (flags & second ? first : 0);
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
        gemmepi_matrix a = folded.a, da = folded.da;
        folded.a = folded.b;
        folded.b = a;
        folded.da = folded.db;
        folded.db = da;
        folded.m = desc->n;
        folded.n = desc->m;
        folded.flags = gemmepi__exchange_bits(folded.flags, GEMMEPI_LINEAR_DA, GEMMEPI_LINEAR_DB);
        folded.flags = gemmepi__exchange_bits(folded.flags, GEMMEPI_ACCUMULATE_DA, GEMMEPI_ACCUMULATE_DB);
        folded.order = GEMMEPI_ROW_MAJOR;
    }
    return folded;
}

static gemmepi_status gemmepi__check_layer_flags(const gemmepi_linear_desc *desc, int backward) {
    static const struct {
        uint64_t accumulate, output;
        const char *name;
    } pairs[] = {{GEMMEPI_ACCUMULATE_DA, GEMMEPI_LINEAR_DA, "DA"},
                 {GEMMEPI_ACCUMULATE_DB, GEMMEPI_LINEAR_DB, "DB"},
                 {GEMMEPI_ACCUMULATE_DBIAS, GEMMEPI_LINEAR_DBIAS, "DBIAS"}};
    uint64_t keeps = desc->flags & (GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_RECOMPUTE);
    int affine = gemmepi__is_affine(desc->activation);
    size_t i;
    gemmepi_status status = gemmepi__check_flags_of(GEMMEPI__OF_LAYER, desc->flags, 0);
    if (status)
        return status;
    if (gemmepi__has_two(keeps))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.flags has both LINEAR_SAVED and LINEAR_RECOMPUTE; P is either read from "
                             "preact or computed anew");
    if (affine && keeps)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.flags has LINEAR_%s, but the activation is NONE: its gradient needs no P",
                             keeps == GEMMEPI_LINEAR_SAVED ? "SAVED" : "RECOMPUTE");
    if (!backward)
        return GEMMEPI_OK;
    if (!(desc->flags & GEMMEPI__LINEAR_OUTPUTS))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.flags asks for no output; at least one of LINEAR_DA, LINEAR_DB and LINEAR_DBIAS");
    for (i = 0; i < GEMMEPI__COUNT(pairs); i++)
        if (desc->flags & pairs[i].accumulate && !(desc->flags & pairs[i].output))
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.flags has ACCUMULATE_%s without LINEAR_%s",
                                 pairs[i].name, pairs[i].name);
    if (!affine && !keeps)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.flags has neither LINEAR_SAVED nor LINEAR_RECOMPUTE; the gradient of this "
                             "activation needs P");
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_layer_scalars(const gemmepi_linear_desc *desc) {
    gemmepi_status status = gemmepi__check_activation("activation", desc->activation);
    if (!status)
        status =
            gemmepi__check_flags_of(GEMMEPI__OF_LAYERS_ACTIVATION, desc->activation, GEMMEPI_ACTIVATION_MASK);
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

/* A, B, bias, and Y or, for backward, the P that forward left. */
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
    if (backward) { /* Y is not looked at */
        int64_t columns = gemmepi__result_columns(layer->activation, layer->n);
        desc.d =
            gemmepi__dense_matrix(layer->y.dtype, layer->m > 0 ? layer->m : 0, columns > 0 ? columns : 0);
    }
    status = gemmepi__normalise(&desc, alignment, &problem);
    if (status)
        return gemmepi__in_layers_words(status, task->exchanged, "desc.a", "desc.b", "desc.y", "desc.preact");
    gemmepi__take_layer_view(task, GEMMEPI__L_A, &problem, GEMMEPI__A);
    gemmepi__take_layer_view(task, GEMMEPI__L_B, &problem, GEMMEPI__B);
    gemmepi__take_layer_view(task, GEMMEPI__L_BIAS, &problem, GEMMEPI__BIAS);
    if (!backward)
        gemmepi__take_layer_view(task, GEMMEPI__L_Y, &problem, GEMMEPI__D);
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

/* dY and dbias. */
static gemmepi_status gemmepi__take_upstream(const gemmepi_linear_desc *layer, size_t alignment,
                                             gemmepi__layer_task *task) {
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
    status = gemmepi__normalise(&desc, alignment, &problem);
    if (status)
        return gemmepi__in_layers_words(status, task->exchanged, "desc.a", "desc.b", "desc.g", "desc.dy");
    gemmepi__take_layer_view(task, GEMMEPI__L_DY, &problem, GEMMEPI__AUX);
    gemmepi__take_layer_view(task, GEMMEPI__L_DBIAS, &problem, GEMMEPI__BIAS_GRAD);
    return GEMMEPI_OK;
}

/* dA or dB as the result of a product, of which only its own rules are new. batch: the number of its items. */
static gemmepi_status gemmepi__take_gradient(const gemmepi_linear_desc *layer, int tensor, int64_t batch,
                                             size_t alignment, gemmepi__layer_task *task) {
    int is_da = tensor == GEMMEPI__L_DA;
    const gemmepi_matrix *matrix = is_da ? &layer->da : &layer->db, *of = is_da ? &layer->a : &layer->b;
    int64_t rows = is_da ? layer->m : layer->k, columns = is_da ? layer->k : layer->n;
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
    if (matrix->dtype != GEMMEPI_F64 &&
        !(gemmepi__dtype_is_known(matrix->dtype) && GEMMEPI__VECTOR_TYPES >> matrix->dtype & 1))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.%s.dtype is %d (%s); accepted for gradients are F32, F16 and BF16 (F64 in F64)%s",
            gemmepi__layer_name(task, tensor), (int)matrix->dtype,
            gemmepi__dtype_is_known(matrix->dtype) ? gemmepi__dtype(matrix->dtype)->name : "no gemmepi_dtype",
            gemmepi__dtype_is_known(matrix->dtype) ? "" : GEMMEPI__UNINITIALISED);
    memset(&desc, 0, sizeof desc);
    desc.m = of->transposed ? columns : rows;
    desc.n = of->transposed ? rows : columns;
    desc.batch = batch;
    desc.a.dtype = desc.b.dtype = layer->a.dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
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

/* Which tensors this direction reads and writes. */
static void gemmepi__use_tensors(gemmepi__layer_task *task, int backward) {
    uint64_t flags = task->flags;
    int recomputes = (flags & GEMMEPI_LINEAR_RECOMPUTE) != 0;
    if (!backward || recomputes || flags & GEMMEPI_LINEAR_DB)
        gemmepi__use_layer(task, GEMMEPI__L_A);
    if (!backward || recomputes || flags & GEMMEPI_LINEAR_DA)
        gemmepi__use_layer(task, GEMMEPI__L_B);
    if (flags & GEMMEPI_LINEAR_BIAS && (!backward || recomputes))
        gemmepi__use_layer(task, GEMMEPI__L_BIAS);
    if (flags & GEMMEPI_LINEAR_SAVED && backward)
        gemmepi__use_layer(task, GEMMEPI__L_PREACT);
    if (flags & GEMMEPI_LINEAR_SAVED && !backward)
        gemmepi__write_layer(task, GEMMEPI__L_PREACT);
    if (!backward) {
        gemmepi__write_layer(task, GEMMEPI__L_Y);
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

static gemmepi_status gemmepi__take_gradients(const gemmepi_linear_desc *layer, size_t alignment,
                                              gemmepi__layer_task *task) {
    gemmepi_status status = gemmepi__take_g_dtype(layer, task);
    if (!status)
        status = gemmepi__take_upstream(layer, alignment, task);
    if (!status && layer->flags & GEMMEPI_LINEAR_DA)
        status =
            gemmepi__take_gradient(layer, GEMMEPI__L_DA, task->shares_a ? 1 : layer->batch, alignment, task);
    if (!status && layer->flags & GEMMEPI_LINEAR_DB)
        status =
            gemmepi__take_gradient(layer, GEMMEPI__L_DB, task->shares_b ? 1 : layer->batch, alignment, task);
    return status;
}

/* desc -> task, or the sentence that says what is wrong with it. */
static gemmepi_status gemmepi__take_layer(const gemmepi_linear_desc *desc, int backward, size_t alignment,
                                          gemmepi__layer_task *task) {
    gemmepi_linear_desc layer;
    gemmepi_status status;
    memset(task, 0, sizeof *task);
    if (!desc)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc is NULL");
    status = gemmepi__check_layer_scalars(desc);
    if (!status)
        status = gemmepi__check_layer_flags(desc, backward);
    if (status)
        return status;
    layer = gemmepi__fold_layer(desc);
    task->tag = backward ? -3 : -2;
    task->exchanged = desc->order == GEMMEPI_COLUMN_MAJOR;
    task->m = layer.m;
    task->n = layer.n;
    task->k = layer.k;
    task->batch = layer.batch;
    task->shares_b = layer.batch != 1 && layer.b.batch_stride == 0;
    task->shares_a = backward && layer.batch != 1 && layer.flags & GEMMEPI_LINEAR_DA &&
                     layer.a.batch_stride == 0 && layer.da.batch_stride == 0;
    task->shares_dbias = layer.batch != 1 && layer.dbias.batch_stride == 0;
    task->epilogue = layer.activation;
    task->compute = (int32_t)layer.compute;
    task->flags =
        backward ? layer.flags
                 : layer.flags & (GEMMEPI__LAYERS_PRODUCT_FLAGS | GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED);
    status = gemmepi__take_forward(&layer, backward, alignment, task);
    if (!status)
        status = gemmepi__check_batch_form(&layer, task, backward);
    if (!status && backward)
        status = gemmepi__take_gradients(&layer, alignment, task);
    if (!status)
        gemmepi__use_tensors(task, backward);
    return status;
}

/* >>the pointers of a run */

static void gemmepi__take_layer_pointers(const gemmepi__layer_task *task, const gemmepi_linear_args *args,
                                         void *pointers[GEMMEPI__L_COUNT]) {
    int swap = task->exchanged;
    const void *inputs[GEMMEPI__L_COUNT];
    inputs[GEMMEPI__L_A] = swap ? args->b : args->a;
    inputs[GEMMEPI__L_B] = swap ? args->a : args->b;
    inputs[GEMMEPI__L_Y] = args->y;
    inputs[GEMMEPI__L_PREACT] = args->preact;
    inputs[GEMMEPI__L_DY] = args->dy;
    inputs[GEMMEPI__L_BIAS] = args->bias;
    inputs[GEMMEPI__L_DA] = swap ? args->db : args->da;
    inputs[GEMMEPI__L_DB] = swap ? args->da : args->db;
    inputs[GEMMEPI__L_DBIAS] = args->dbias;
    inputs[GEMMEPI__L_SCALE_A] = swap ? args->scale_b : args->scale_a;
    inputs[GEMMEPI__L_SCALE_B] = swap ? args->scale_a : args->scale_b;
    inputs[GEMMEPI__L_SCALE_Y] = args->scale_y;
    inputs[GEMMEPI__L_SCALE_PREACT] = args->scale_preact;
    inputs[GEMMEPI__L_SCALE_DY] = args->scale_dy;
    memcpy(pointers, inputs, sizeof inputs);
}

/* What a direction does not need may be there all the same, for the other; but not what the layer has not. */
static gemmepi_status gemmepi__check_layer_presence(const gemmepi__layer_task *task,
                                                    void *const pointers[GEMMEPI__L_COUNT]) {
    int t;
    for (t = 0; t < GEMMEPI__L_COUNT; t++) {
        const gemmepi__view *view = &task->views[t];
        const char *name = gemmepi__layer_name(task, t);
        int used = gemmepi__layer_has(task, t);
        if (used && !pointers[t] && view->bytes)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is NULL; this %s needs it", name,
                                 gemmepi__is_backward(task) ? "backward" : "forward");
        if (t == GEMMEPI__L_BIAS && pointers[t] && !(task->flags & GEMMEPI_LINEAR_BIAS))
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "args.bias is given (%p), but desc.flags has no LINEAR_BIAS", pointers[t]);
        if (!used && pointers[t] && gemmepi__is_backward(task) && t >= GEMMEPI__L_DA && t <= GEMMEPI__L_DBIAS)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "args.%s is given (%p), but desc.flags does not ask for it", name,
                                 pointers[t]);
        if (t >= GEMMEPI__L_SCALE_A && !used && pointers[t] &&
            gemmepi__layer_has(task, t - GEMMEPI__L_SCALE_A))
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "args.%s is given (%p), but desc.%s.scale.mode is NONE", name, pointers[t],
                                 gemmepi__layer_name(task, t - GEMMEPI__L_SCALE_A));
    }
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_layer_alignment(const gemmepi__layer_task *task,
                                                     void *const pointers[GEMMEPI__L_COUNT]) {
    int t;
    for (t = 0; t < GEMMEPI__L_COUNT; t++)
        if (gemmepi__layer_has(task, t) && (uintptr_t)pointers[t] & (uintptr_t)(task->views[t].alignment - 1))
            return gemmepi__fail(GEMMEPI_MISALIGNED, "args.%s is %p; it must be a multiple of %d bytes",
                                 gemmepi__layer_name(task, t), pointers[t], (int)task->views[t].alignment);
    return GEMMEPI_OK;
}

/* Outputs overlap nothing. */
static gemmepi_status gemmepi__check_layer_overlap(const gemmepi__layer_task *task,
                                                   void *const pointers[GEMMEPI__L_COUNT]) {
    int t, other, shares;
    for (t = 0; t < GEMMEPI__L_COUNT; t++)
        for (other = 0; other < GEMMEPI__L_COUNT && task->written >> t & 1; other++) {
            uintptr_t p = (uintptr_t)pointers[t], q = (uintptr_t)pointers[other];
            uintptr_t p_bytes = (uintptr_t)task->views[t].bytes,
                      q_bytes = (uintptr_t)task->views[other].bytes;
            if (!gemmepi__layer_has(task, other) || other == t || (task->written >> other & 1 && other < t) ||
                !p_bytes || !q_bytes || p + p_bytes <= q || q + q_bytes <= p)
                continue;
            shares =
                gemmepi__views_share(&task->views[t], &task->views[other], task->batch, (int64_t)(q - p));
            if (shares)
                return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                     "args.%s (%p, %lld bytes) overlaps args.%s (%p, %lld bytes)%s",
                                     gemmepi__layer_name(task, t), pointers[t], (long long)p_bytes,
                                     gemmepi__layer_name(task, other), pointers[other], (long long)q_bytes,
                                     gemmepi__if_undecided(shares));
        }
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_layer_workspace(const gemmepi__layer_task *task,
                                                     const gemmepi_linear_args *args,
                                                     void *const pointers[GEMMEPI__L_COUNT]) {
    uintptr_t begin = (uintptr_t)args->workspace, end = begin + args->workspace_size;
    int t;
    if (end < begin)
        end = ~(uintptr_t)0;
    for (t = 0; t < GEMMEPI__L_COUNT; t++) {
        uintptr_t other = (uintptr_t)pointers[t];
        if (gemmepi__layer_has(task, t) && other && other < end &&
            begin < other + (uintptr_t)task->views[t].bytes)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "args.workspace (%p, %llu bytes) overlaps args.%s (%p)", args->workspace,
                                 (gemmepi__ull)args->workspace_size, gemmepi__layer_name(task, t),
                                 pointers[t]);
    }
    return GEMMEPI_OK;
}

#endif
