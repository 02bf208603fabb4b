/* Descs of every kind that fuzzers draw: good ones, most times, and some that are spoiled. */
#ifndef GEMMEPI_TESTS_DRAW_DESCS_H
#define GEMMEPI_TESTS_DRAW_DESCS_H

#include "formula_texts.h"

#include <ctype.h>

typedef enum kind { PRODUCT, GROUPED, FORWARD, BACKWARD, OPERATION, NETWORK, NETWORK_BACKWARD, KINDS } kind;

enum { MOST_TENSORS = 9 + GPI__FORMULA_OPERANDS, MOST_DRAWN_OPERANDS = 40, MOST_DRAWN_LAYERS = 17 };

/* A desc and all that it points to. */
static struct {
    kind kind;
    int is_spoiled;
    union {
        gemmepi_matmul_desc product;
        gemmepi_grouped_desc grouped;
        gemmepi_linear_desc layer;
        gemmepi_elementwise_desc operation;
        gemmepi_network_desc network;
    } desc;
    gemmepi_network_layer layers[MOST_DRAWN_LAYERS]; /* of the network; the first alone has operands */
    gemmepi_linear_desc before;                      /* of the layer */
    gemmepi_operand operands[MOST_DRAWN_OPERANDS];
    int operand_count, tensor_count;
    gemmepi_tensor tensors[MOST_TENSORS];
    int64_t shapes[MOST_TENSORS][8], strides[MOST_TENSORS][8];
} drawn;

static const gemmepi_dtype dtypes[] = {GEMMEPI_F32,  GEMMEPI_F64,  GEMMEPI_F16, GEMMEPI_BF16,
                                       GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};

static gemmepi_dtype any_dtype(void) {
    return one_in(2) ? dtypes[below((int)GPI__COUNT(dtypes))] : GEMMEPI_BF16;
}

static gemmepi_matrix matrix(gemmepi_dtype dtype, int64_t rows, int64_t columns, int may_turn) {
    gemmepi_matrix m;
    int64_t line = columns;
    memset(&m, 0, sizeof m);
    m.dtype = dtype;
    m.transposed = may_turn && one_in(2);
    if (m.transposed)
        line = rows;
    m.ld = one_in(2) ? stride_for(line) : 0;
    m.batch_stride = stride_for(times(m.ld ? m.ld : line, m.transposed ? columns : rows));
    return m;
}

static int is_of_8_bits(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_E4M3 || dtype == GEMMEPI_E5M2 || dtype == GEMMEPI_I8;
}

/* Of a type that has none, too, which is refused. */
static void choose_scale(gemmepi_matrix *m) {
    if (one_in(is_of_8_bits(m->dtype) ? 2 : 30))
        m->scale.mode = (gemmepi_scale_mode)below(5);
    if (m->scale.mode && one_in(3))
        m->scale.batch_stride = extent();
}

/* >>formulas */

static const char *const plain_formulas[] = {"d = silu(v + 1)",
                                             "d = silu(v + b)",
                                             "d = relu(v) + r",
                                             "d = r",
                                             "d = v * sigmoid(k * v)",
                                             "d = left(v) * silu(right(v))",
                                             "d = even(v) * odd(v)",
                                             "d = part(v, 0, 3) * part(v, 2, 3)",
                                             "d = pair(left(v, 64) * p, right(v, 64), 64)",
                                             "d = v * p; rs = row_sum(d)",
                                             "d = v; cs = column_sum(d * d)",
                                             "d = v; g8 = row_sum(d * d, 8)",
                                             "g16 = row_max(left(v), 16); gh = row_sum(left(v), 8)",
                                             "d = uniform(seed, 0) < 0.5 ? v : 0",
                                             "d = stochastic(v * p, seed)",
                                             "al = all_sum(v * v)",
                                             "d = gelu_tanh(v + b) * s",
                                             "rt = row_logsumexp(v)",
                                             "o = v; d = 2 * r + u * b"};

static void draw_text(void) {
    if (corpus_count && one_in(3))
        snprintf(text, sizeof text, "%s", corpus[below(corpus_count)]);
    else if (one_in(3))
        make_text();
    else
        snprintf(text, sizeof text, "%s", plain_formulas[below((int)GPI__COUNT(plain_formulas))]);
    if (one_in(10))
        spoil_text();
}

/* What is optional of an operand that the text names. */
static void draw_operand(gemmepi_operand *operand, int64_t rows, int64_t columns) {
    if (operand->kind == GEMMEPI_NUMBER)
        return;
    if (operand->dtype == GEMMEPI_DTYPE_DEFAULT && one_in(3))
        operand->dtype = any_dtype();
    if (operand->kind == GEMMEPI_FULL && !operand->output && one_in(8)) {
        operand->kind = GEMMEPI_BLOCKED;
        operand->block_rows = one_in(2) ? 1 : 1 + below(130),
        operand->block_columns = one_in(2) ? 32 : 1 + below(130);
    }
    if (!operand->output && one_in(8))
        operand->dtype =
            operand->kind == GEMMEPI_FULL ? (gemmepi_dtype)(GEMMEPI_I4 + below(4)) : GEMMEPI_E8M0;
    if (one_in(3) && operand->kind >= GEMMEPI_FULL)
        operand->ld = stride_for(columns);
    if (one_in(2))
        operand->batch_stride =
            stride_for(operand->kind >= GEMMEPI_FULL ? times(rows, times(columns, 2)) : columns);
    if (!operand->output && one_in(10) && (operand->kind != GEMMEPI_BLOCKED || one_in(4)))
        operand->row_period = 1 + below(9), operand->column_period = below(9);
    if (operand->dtype >= GEMMEPI_I4 && operand->dtype <= GEMMEPI_E2M1 && !one_in(4))
        operand->ld += operand->ld % 2, operand->batch_stride += operand->batch_stride % 2,
            operand->row_period *= 2, operand->column_period *= 2;
    if (is_of_8_bits(operand->dtype) && one_in(2))
        operand->scale.mode = GEMMEPI_SCALE_TENSOR;
    if (operand->output)
        operand->accumulate = one_in(6), operand->amax = one_in(8);
}

/* Gradients of inputs, which a layer's backward writes. */
static void draw_gradients(void) {
    static const char *const names[][2] = {{"r", "d_r"}, {"u", "d_u"}, {"b", "d_b"},  {"p", "d_p"},
                                           {"s", "d_s"}, {"h", "d_h"}, {"bh", "d_bh"}};
    int i, j, inputs = drawn.operand_count;
    for (i = 0; i < inputs; i++)
        for (j = 0; j < (int)GPI__COUNT(names); j++)
            if (strcmp(drawn.operands[i].name, names[j][0]) == 0 && one_in(2)) {
                gemmepi_operand *gradient = &drawn.operands[drawn.operand_count++];
                memset(gradient, 0, sizeof *gradient);
                gradient->name = names[j][1];
                gradient->kind = drawn.operands[i].kind, gradient->width = drawn.operands[i].width;
                gradient->batch_stride = drawn.operands[i].batch_stride;
                gradient->output = 1, gradient->accumulate = one_in(4);
            }
}

/* What comes in for a layer's outputs. */
static void draw_upstreams(void) {
    static char names[GPI__FORMULA_OPERANDS][16];
    int i, operands = drawn.operand_count;
    for (i = 0; i < operands && drawn.operand_count < GPI__FORMULA_OPERANDS; i++) {
        const gemmepi_operand *output = &drawn.operands[i];
        gemmepi_operand *upstream = &drawn.operands[drawn.operand_count];
        if (!output->output || strncmp(output->name, "d_", 2) == 0 || one_in(4))
            continue;
        *upstream = *output;
        snprintf(names[i], sizeof names[i], "dy_%s", output->name);
        upstream->name = names[i], upstream->output = upstream->accumulate = upstream->amax = 0;
        upstream->kind = one_in(4) ? GEMMEPI_SCALAR : upstream->kind;
        drawn.operand_count++;
    }
}

/* Without a product what is read is an operand. */
static void read_operand_for_value(void) {
    char *at = text;
    while ((at = strchr(at, 'v')) != NULL) {
        int in_word =
            (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_')) || isalnum((unsigned char)at[1]);
        if (!in_word)
            *at = 'r';
        at++;
    }
}

static void take_formula(const char *given, int64_t rows, int64_t columns) {
    int i;
    snprintf(text, sizeof text, "%s", given);
    memset(drawn.operands, 0, sizeof drawn.operands);
    drawn.operand_count = operands_of(text, drawn.operands);
    for (i = 0; i < drawn.operand_count; i++)
        draw_operand(&drawn.operands[i], rows, columns);
}

static void draw_formula(int64_t rows, int64_t columns, int has_value) {
    int i;
    draw_text();
    if (!has_value)
        read_operand_for_value();
    memset(drawn.operands, 0, sizeof drawn.operands);
    drawn.operand_count = operands_of(text, drawn.operands);
    for (i = 0; i < drawn.operand_count; i++)
        draw_operand(&drawn.operands[i], rows, columns);
}

/* >>products */

static gemmepi_epilogue any_epilogue(void) {
    static const gemmepi_epilogue flags[] = {
        0,
        GEMMEPI_BIAS,
        GEMMEPI_BGRAD,
        GEMMEPI_BGRAD_A,
        GEMMEPI_BGRAD_B,
        GEMMEPI_BIAS | GEMMEPI_AUX,
        GEMMEPI_BACKWARD,
        GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
        GEMMEPI_GATED,
        GEMMEPI_GATED | GEMMEPI_AUX,
        GEMMEPI_GATED | GEMMEPI_BACKWARD,
        GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
        GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD,
        GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM,
        GEMMEPI_RESIDUAL,
        GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD};
    static const gemmepi_epilogue activations[] = {
        GEMMEPI_NONE,       GEMMEPI_RELU, GEMMEPI_GELU_TANH,    GEMMEPI_GELU_ERF, GEMMEPI_SILU,
        GEMMEPI_LEAKY_RELU, GEMMEPI_TANH, GEMMEPI_SQUARED_RELU, GEMMEPI_MISH,     GEMMEPI_HARDSWISH};
    gemmepi_epilogue epilogue = flags[below((int)GPI__COUNT(flags))];
    if (!(epilogue & GEMMEPI_BGRAD) || epilogue & GEMMEPI_BACKWARD)
        epilogue |= activations[below((int)GPI__COUNT(activations))];
    return epilogue;
}

static void draw_found_scale(gemmepi_matrix *d, uint64_t *flags, int *amax_history) {
    d->dtype = one_in(2) ? GEMMEPI_E5M2 : GEMMEPI_E4M3;
    d->scale.mode = (gemmepi_scale_mode)(1 + below(3));
    if (d->scale.mode == GEMMEPI_SCALE_TENSOR)
        *amax_history = 1 + below(9);
    else
        d->scale.batch_stride = one_in(2) ? extent() : 0;
    *flags |= GEMMEPI_FIND_SCALE_D | (one_in(3) ? GEMMEPI_POWER_OF_TWO_SCALE : 0);
    *flags &= ~(GEMMEPI_AMAX_D | GEMMEPI_ACCUMULATE);
}

/* Weights in I8 with scales beside few rows of 16 bits, or I8 alone, with whole numbers as results. */
static void draw_eight_bits(gemmepi_matmul_desc *desc) {
    desc->b = matrix(GEMMEPI_I8, desc->k, desc->n, 0);
    if (one_in(2)) {
        desc->a = matrix(GEMMEPI_I8, desc->m, desc->k, 0);
        desc->d.dtype = GEMMEPI_I32;
        desc->d.scale.mode = GEMMEPI_SCALE_NONE;
        memset(&desc->c, 0, sizeof desc->c);
        desc->flags &= GEMMEPI_DEVICE_SCALARS | GEMMEPI_BATCH_INVARIANT;
        desc->amax_history = 0;
        desc->epilogue = one_in(2) ? GEMMEPI_BIAS : one_in(2) ? GEMMEPI_RELU : GEMMEPI_NONE;
        return;
    }
    desc->a.dtype = one_in(2) ? GEMMEPI_F16 : GEMMEPI_BF16;
    desc->a.scale.mode = GEMMEPI_SCALE_NONE;
    if (desc->order == GEMMEPI_ROW_MAJOR)
        desc->b.transposed = 1, desc->b.ld = 0;
    desc->b.scale.mode = one_in(2) ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_VECTOR_128;
    desc->m = one_in(2) ? 1 + below(16) : desc->m;
}

/* Operands that formulas make: dense ones and their lines, which may be as wide as what is made, or not. */
static void draw_made_operands(gemmepi_matrix *a, gemmepi_matrix *b) {
    static const char *const texts[][2] = {{"2 * a", "2 * b"},
                                           {"silu(left(a)) * right(a)", "left(b) + right(b)"},
                                           {"t = even(a); t * odd(a)", "even(b)"},
                                           {"pair(a, a)", "interleave(b, -b)"},
                                           {"part(a, 1, 3) * row", "b + item"},
                                           {"a +", "row_sum(b)"}};
    int which = below((int)GPI__COUNT(texts));
    if (one_in(2))
        a->formula = texts[which][0], a->compute_dtype = one_in(2) ? any_dtype() : GEMMEPI_DTYPE_DEFAULT;
    if (one_in(2))
        b->formula = texts[which][1], b->ld = one_in(2) ? 0 : b->ld;
    if (one_in(2))
        a->ld = 0, a->scale.mode = GEMMEPI_SCALE_NONE;
}

/* Scales that are found of what they make. */
static void draw_scales_of_made(gemmepi_matmul_desc *desc) {
    gemmepi_matrix *made = desc->a.formula ? &desc->a : &desc->b;
    desc->flags |= (made == &desc->a ? GEMMEPI_FIND_SCALE_A : GEMMEPI_FIND_SCALE_B) |
                   (one_in(2) ? GEMMEPI_POWER_OF_TWO_SCALE : 0);
    if (one_in(9))
        return; /* as it is */
    made->compute_dtype = one_in(2) ? GEMMEPI_E4M3 : GEMMEPI_E5M2;
    made->transposed = (made == &desc->a) == (desc->order == GEMMEPI_COLUMN_MAJOR), made->ld = 0;
    made->scale.mode = one_in(2) ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_VECTOR_128,
    made->scale.batch_stride = 0;
}

static gemmepi_matmul_desc any_product(int has_formula) {
    gemmepi_matmul_desc desc;
    gemmepi_dtype a = any_dtype(), b = one_in(4) && a != GEMMEPI_F64 ? any_dtype() : a;
    int64_t e[4];
    int is_made = 0;
    memset(&desc, 0, sizeof desc);
    extents(e, 4);
    desc.m = e[0], desc.n = e[1], desc.k = e[2], desc.batch = one_in(2) ? e[3] : 1;
    desc.order = one_in(3) ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc.epilogue = any_epilogue();
    if (desc.epilogue & GEMMEPI_GATED)
        desc.n &= ~(int64_t)1, desc.m &= ~(int64_t)1;
    desc.a = matrix(a, desc.m, desc.k, desc.order == GEMMEPI_ROW_MAJOR);
    desc.b = matrix(b, desc.k, desc.n, desc.order == GEMMEPI_ROW_MAJOR);
    choose_scale(&desc.a);
    choose_scale(&desc.b);
    desc.d.dtype = a == GEMMEPI_F64 ? a : one_in(2) ? any_dtype() : GEMMEPI_DTYPE_DEFAULT;
    desc.d.batch_stride = times(desc.m, times(desc.n, 2));
    if (one_in(2))
        desc.d = matrix(desc.d.dtype, desc.m, desc.n, 0);
    if (one_in(4))
        desc.c = matrix(a == GEMMEPI_F64 ? a : any_dtype(), desc.m, desc.n, 0);
    desc.flags = one_in(4) ? GEMMEPI_AMAX_D : one_in(4) ? GEMMEPI_DEVICE_SCALARS : 0;
    desc.flags |= one_in(4) ? GEMMEPI_BATCH_INVARIANT : one_in(6) ? GEMMEPI_ACCUMULATE : 0;
    if (one_in(4))
        draw_found_scale(&desc.d, &desc.flags, &desc.amax_history);
    desc.alignment = one_in(3) ? (size_t)1 << below(9) : 0;
    if (one_in(8))
        draw_eight_bits(&desc);
    if (one_in(6))
        draw_made_operands(&desc.a, &desc.b), is_made = 1;
    if (is_made && one_in(3))
        draw_scales_of_made(&desc);
    if (has_formula) {
        draw_formula(desc.m, desc.n, 1);
        desc.epilogue = 0;
        desc.flags &= ~GEMMEPI_ACCUMULATE;
        desc.formula = text, desc.operands = drawn.operands, desc.operand_count = drawn.operand_count;
        return desc;
    }
    desc.aux.batch_stride = times((desc.m + 127) / 128 * 128, times((desc.n + 127) / 128 * 128, 2));
    desc.residual.batch_stride = one_in(2) ? desc.aux.batch_stride : 0;
    desc.bias_grad.batch_stride = one_in(2) ? 2 * (desc.m > desc.n ? desc.m : desc.n) : 0;
    return desc;
}

static gemmepi_grouped_desc any_groups(void) {
    gemmepi_grouped_desc desc;
    int is_of_k = one_in(3), has_formula = !is_of_k && one_in(3);
    memset(&desc, 0, sizeof desc);
    desc.product = any_product(has_formula);
    desc.product.batch = one_in(2);
    desc.product.order = GEMMEPI_ROW_MAJOR;
    desc.product.epilogue &= ~(GEMMEPI_BGRAD | (is_of_k ? 0 : GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B));
    if (!(desc.product.epilogue & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B)))
        desc.product.epilogue &= ~GEMMEPI_ACCUMULATE_BIAS_GRAD;
    desc.product.flags &= ~GEMMEPI_BATCH_INVARIANT;
    desc.product.a.batch_stride = desc.product.d.batch_stride = desc.product.c.batch_stride = 0;
    desc.product.aux.batch_stride = desc.product.residual.batch_stride = desc.product.bias_grad.batch_stride =
        0;
    desc.product.b.batch_stride = one_in(3) ? desc.product.b.batch_stride : 0;
    if (desc.product.flags & GEMMEPI_FIND_SCALE_D && !one_in(9)) {
        desc.product.d.scale.mode = GEMMEPI_SCALE_VECTOR_128, desc.product.amax_history = 0;
        desc.product.d.scale.batch_stride = 0;
    }
    desc.groups = 1 + below(one_in(8) ? 4096 : 9);
    desc.grouping = is_of_k ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
    desc.gather_a = one_in(4) ? extent() : 0;
    if (is_of_k) {
        desc.product.a.transposed = 1, desc.product.b.transposed = 0;
        desc.product.a.ld = desc.product.b.ld = desc.product.b.batch_stride = 0;
        desc.gather_b = one_in(4) ? extent() : 0;
    } else if (!has_formula || one_in(20)) {
        desc.scatter_d = one_in(4) ? extent() : 0;
        desc.weighted = one_in(4);
    }
    if (desc.gather_a && !is_of_k)
        desc.product.a.transposed = 0, desc.product.a.ld = 0;
    return desc;
}

/* >>layers */

/* The layer whose y is a, or the b of a column-major one: most times it fits. */
static void draw_before(gemmepi_linear_desc *layer) {
    static const gemmepi_epilogue activations[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_ELU,
                                                   GEMMEPI_TANH | GEMMEPI_GATED};
    gemmepi_linear_desc *before = &drawn.before;
    int by_columns = layer->order == GEMMEPI_COLUMN_MAJOR;
    int64_t width;
    memset(before, 0, sizeof *before);
    before->order = layer->order;
    before->batch = layer->batch;
    before->activation = activations[below((int)GPI__COUNT(activations))];
    width = times(layer->k, before->activation & GEMMEPI_GATED ? 2 : 1);
    before->m = by_columns ? width : layer->m;
    before->n = by_columns ? layer->n : width;
    before->k = 1 + below(9);
    before->a.dtype = layer->a.dtype;
    before->flags = before->activation && !one_in(16) ? GEMMEPI_LINEAR_SAVED : 0;
    before->preact.batch_stride = times((before->m + 127) / 128 * 128, (before->n + 127) / 128 * 128);
    (by_columns ? &layer->db : &layer->da)->batch_stride = times(before->m, before->n);
    if (!one_in(16))
        (by_columns ? &layer->b : &layer->a)->transposed = 0;
    layer->before = before;
}

static gemmepi_linear_desc any_layer(void) {
    static const gemmepi_epilogue activations[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_GELU_TANH,
                                                   GEMMEPI_SILU | GEMMEPI_GATED};
    gemmepi_linear_desc desc;
    gemmepi_dtype a = any_dtype();
    int64_t e[4];
    memset(&desc, 0, sizeof desc);
    extents(e, 4);
    desc.m = e[0], desc.n = e[1], desc.k = e[2], desc.batch = one_in(2) ? e[3] : 1;
    desc.activation = activations[below((int)GPI__COUNT(activations))];
    if (desc.activation & GEMMEPI_GATED)
        desc.n &= ~(int64_t)1;
    desc.order = one_in(4) ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc.flags = GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS;
    desc.flags |= one_in(4) ? GEMMEPI_BATCH_INVARIANT : 0;
    if (one_in(3))
        desc.flags = below(2) ? GEMMEPI_LINEAR_DB : GEMMEPI_LINEAR_DBIAS;
    if (one_in(2))
        desc.flags |= GEMMEPI_LINEAR_BIAS;
    desc.a = matrix(a, desc.m, desc.k, desc.order == GEMMEPI_ROW_MAJOR);
    desc.b = matrix(a, desc.k, desc.n, desc.order == GEMMEPI_ROW_MAJOR);
    if (one_in(2))
        desc.b.batch_stride = 0;
    choose_scale(&desc.a);
    choose_scale(&desc.b);
    desc.y.batch_stride = desc.dy.batch_stride = times(desc.m, desc.n);
    desc.preact.batch_stride = times((desc.m + 127) / 128 * 128, (desc.n + 127) / 128 * 128);
    desc.da.batch_stride = times(desc.m, desc.k);
    desc.db.batch_stride = desc.b.batch_stride ? times(desc.k, desc.n) : 0;
    desc.bias.batch_stride = desc.dbias.batch_stride = desc.b.batch_stride ? desc.n : 0;
    if (one_in(6))
        draw_found_scale(&desc.y, &desc.flags, &desc.amax_history);
    if (one_in(3)) {
        desc.activation = 0;
        draw_formula(desc.m, desc.n, 1);
        draw_gradients();
        draw_upstreams();
        if (one_in(4))
            desc.workspace_limit = (size_t)1 << below(40);
        desc.formula = text, desc.operands = drawn.operands, desc.operand_count = drawn.operand_count;
    }
    if (desc.activation || desc.formula)
        desc.flags |= one_in(2) ? GEMMEPI_LINEAR_SAVED : GEMMEPI_LINEAR_RECOMPUTE;
    if (one_in(6)) {
        desc.flags |= GEMMEPI_LINEAR_RESIDUAL;
        desc.residual.batch_stride = times(desc.m, desc.n);
    }
    desc.flags |= one_in(6) ? GEMMEPI_LINEAR_DY_IS_G : 0;
    if (one_in(4))
        draw_before(&desc);
    if (one_in(5)) { /* most times as they are accepted: one item, and no layer before */
        draw_made_operands(&desc.a, &desc.b);
        desc.batch = one_in(6) ? desc.batch : 1;
        desc.before = one_in(6) ? desc.before : NULL;
    }
    return desc;
}

/* >>element-wise */

/* Broadcast now and then, unless it is an output. */
static gemmepi_tensor *any_tensor(gemmepi_dtype dtype, int rank, const int64_t *shape, int is_output) {
    int i = drawn.tensor_count++, d;
    gemmepi_tensor *tensor = &drawn.tensors[i];
    int64_t dense = 1;
    memset(tensor, 0, sizeof *tensor);
    tensor->dtype = dtype;
    tensor->rank = rank;
    tensor->shape = drawn.shapes[i];
    for (d = rank - 1; d >= 0; d--) {
        drawn.shapes[i][d] = !is_output && one_in(8) ? 1 : shape[d];
        drawn.strides[i][d] = is_output && !one_in(8) ? times(dense, 1 + one_in(8)) : stride_for(dense);
        if (one_in(6))
            drawn.strides[i][d] = -drawn.strides[i][d];
        dense = times(drawn.strides[i][d] < 0 ? -drawn.strides[i][d] : drawn.strides[i][d], shape[d]);
    }
    if (one_in(2))
        tensor->stride = drawn.strides[i];
    if (one_in(12))
        tensor->offset = (size_t)below(40);
    if (one_in(12))
        tensor->bytes = one_in(2) ? (size_t)extent() : (size_t)1 << 60;
    return tensor;
}

static void draw_cast(gemmepi_elementwise_desc *desc) {
    desc->flags =
        (next() & (GEMMEPI_CAST_SCALE | GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX | GEMMEPI_CAST_K_IS_ROWS));
    if (desc->flags & GEMMEPI_CAST_SCALE)
        desc->flags &= ~GEMMEPI_CAST_Y_SCALE;
    if (desc->flags)
        desc->scale_mode = (gemmepi_scale_mode)below(5);
    if (desc->scale_mode < GEMMEPI_SCALE_OUTER)
        desc->flags &= ~GEMMEPI_CAST_K_IS_ROWS;
}

/* The tensors that the operation has, of one type most times. */
static gemmepi_elementwise_desc any_operation(void) {
    gemmepi_elementwise_desc desc;
    gemmepi_dtype dtype = dtypes[below(4)];
    int rank = below(6), axis = rank ? below(rank) : 0, sums;
    int64_t shape[8] = {0}, turned[8] = {0};
    memset(&desc, 0, sizeof desc);
    extents(shape, rank ? rank : 1);
    desc.operation = (gemmepi_operation)(1 + below(8));
    desc.axis = desc.operation == GEMMEPI_OP_BIAS_GRAD || one_in(20) ? axis : 0;
    sums = desc.operation == GEMMEPI_OP_BIAS_GRAD || one_in(3);
    if (desc.operation <= GEMMEPI_OP_GATED_BACKWARD)
        desc.activation = any_epilogue() & 0xff;
    if (desc.operation != GEMMEPI_OP_LERP_BACKWARD || one_in(2))
        desc.a = any_tensor(dtype, rank, shape, sums);
    switch (desc.operation) {
    case GEMMEPI_OP_GATED:
    case GEMMEPI_OP_GATED_BACKWARD:
        if (one_in(2))
            desc.b = any_tensor(dtype, rank, shape, 0);
        else
            desc.axis = -1;
        break;
    case GEMMEPI_OP_LERP:
    case GEMMEPI_OP_LERP_BACKWARD:
        if (desc.a)
            desc.b = any_tensor(dtype, rank, shape, 0);
        if (one_in(2) || desc.b)
            desc.w = any_tensor(dtype, rank, shape, 0);
        break;
    case GEMMEPI_OP_CAST:
        draw_cast(&desc);
        break;
    default:
        break;
    }
    if (desc.operation == GEMMEPI_OP_ACTIVATION_BACKWARD || desc.operation == GEMMEPI_OP_GATED_BACKWARD ||
        desc.operation == GEMMEPI_OP_LERP_BACKWARD) {
        desc.dy = any_tensor(dtype, rank, shape, 1);
        desc.da = any_tensor(dtype, rank, desc.a ? desc.a->shape : shape, 1);
        if (desc.b && one_in(2))
            desc.db = any_tensor(dtype, rank, desc.b->shape, 1);
        if (desc.w && desc.b && one_in(2))
            desc.dw = any_tensor(dtype, rank, desc.w->shape, 1);
        return desc;
    }
    if (desc.operation == GEMMEPI_OP_BIAS_GRAD) {
        desc.y = any_tensor(dtype, 1, shape + axis, 1);
        desc.flags = one_in(3) ? GEMMEPI_ACCUMULATE : 0;
        return desc;
    }
    desc.y = any_tensor(desc.operation == GEMMEPI_OP_CAST ? dtypes[below(6)] : dtype, rank, shape, 1);
    if (desc.operation == GEMMEPI_OP_CAST && rank >= 2 && one_in(3)) {
        memcpy(turned, shape, sizeof turned);
        turned[rank - 1] = shape[rank - 2], turned[rank - 2] = shape[rank - 1];
        desc.y_transposed = any_tensor(desc.y->dtype, rank, turned, 1);
    }
    return desc;
}

static int64_t columns_of_width(int64_t columns, gemmepi_width width) {
    return width == GEMMEPI_WIDTH_HALF     ? columns / 2
           : width == GEMMEPI_WIDTH_DOUBLE ? times(columns, 2)
                                           : columns;
}

/* Every operand with a tensor of its kind's shape. */
static gemmepi_elementwise_desc any_formula_operation(void) {
    gemmepi_elementwise_desc desc;
    int64_t shape[8] = {1, 1};
    int i, rank = 2 + below(3);
    memset(&desc, 0, sizeof desc);
    extents(shape, rank);
    draw_formula(shape[rank - 2], shape[rank - 1], one_in(30));
    for (i = 0; i < drawn.operand_count; i++) {
        gemmepi_operand *operand = &drawn.operands[i];
        int64_t own[8];
        memcpy(own, shape, sizeof own);
        own[rank - 1] = columns_of_width(own[rank - 1], operand->width);
        if (operand->kind == GEMMEPI_PER_ROW || operand->kind == GEMMEPI_SCALAR)
            own[rank - 1] = 1;
        if (operand->kind == GEMMEPI_PER_COLUMN || operand->kind == GEMMEPI_SCALAR)
            own[rank - 2] = 1;
        operand->ld = operand->batch_stride = 0;
        if (operand->row_period)
            own[rank - 2] = operand->row_period;
        if (operand->kind == GEMMEPI_BLOCKED) {
            own[rank - 2] = (own[rank - 2] + operand->block_rows - 1) / operand->block_rows;
            own[rank - 1] = (own[rank - 1] + operand->block_columns - 1) / operand->block_columns;
        }
        if (operand->kind != GEMMEPI_NUMBER)
            operand->tensor =
                any_tensor(operand->dtype ? operand->dtype : GEMMEPI_F32, rank, own, operand->output);
        if (operand->kind != GEMMEPI_NUMBER && operand->dtype == GEMMEPI_DTYPE_DEFAULT)
            operand->dtype = operand->tensor->dtype;
    }
    if (has_word(text, "d"))
        desc.y = any_tensor(dtypes[below((int)GPI__COUNT(dtypes))], rank, shape, 1);
    desc.formula = text, desc.operands = drawn.operands, desc.operand_count = drawn.operand_count;
    return desc;
}

/* >>networks */

static gemmepi_network_desc any_network(void) {
    static const uint64_t flags[] = {GEMMEPI_NETWORK_BIAS,  GEMMEPI_NETWORK_TRANSPOSED, GEMMEPI_NETWORK_SAVED,
                                     GEMMEPI_NETWORK_DX,    GEMMEPI_NETWORK_DW,         GEMMEPI_ACCUMULATE_DX,
                                     GEMMEPI_ACCUMULATE_DW, GEMMEPI_BATCH_INVARIANT,    GEMMEPI_RELAXED};
    static const gemmepi_epilogue activations[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_GELU_TANH,
                                                   GEMMEPI_SILU};
    static const char *const formulas[] = {"d = sin(30 * v)", "d = v * sigmoid(k * v)", "d = v + r",
                                           "d = 2 * v"};
    gemmepi_network_desc desc;
    int i;
    memset(&desc, 0, sizeof desc);
    desc.rows = extent(), desc.input = one_in(12) ? extent() : 1 + below(draw_is_modest ? 9 : 300);
    desc.layers = drawn.layers, desc.layer_count = one_in(16) ? below(18) : 1 + below(5);
    desc.dtype = one_in(12) ? dtypes[below((int)GPI__COUNT(dtypes))] : dtypes[below(4)];
    for (i = 0; i < (int)GPI__COUNT(flags); i++)
        desc.flags |= one_in(i == 5 || i == 6 ? 8 : 2) ? flags[i] : 0;
    for (i = 0; i < MOST_DRAWN_LAYERS; i++) {
        drawn.layers[i].width = one_in(20) ? extent() : 1 + below(draw_is_modest ? 9 : 200);
        if (i > 0 && one_in(3))
            drawn.layers[i].formula = formulas[3 * below(2)];
        else
            drawn.layers[i].activation = activations[below((int)GPI__COUNT(activations))];
    }
    if (one_in(2)) {
        if (one_in(3))
            draw_formula(desc.rows, drawn.layers[0].width, 1), draw_gradients();
        else
            take_formula(formulas[below((int)GPI__COUNT(formulas))], desc.rows, drawn.layers[0].width);
        drawn.layers[0].activation = 0, drawn.layers[0].formula = text;
        drawn.layers[0].operands = drawn.operands, drawn.layers[0].operand_count = drawn.operand_count;
    }
    desc.gradient_dtype = desc.dtype != GEMMEPI_F64 && one_in(2) ? GEMMEPI_F32 : GEMMEPI_DTYPE_DEFAULT;
    desc.x_ld = one_in(3) ? stride_for(desc.input) : 0;
    desc.alignment = one_in(4) ? (size_t)1 << below(9) : 0;
    return desc;
}

/* >>any */

#define POINTERS(type, ...) static const size_t pointers_of_##type[] = {__VA_ARGS__}
POINTERS(product, offsetof(gemmepi_matmul_desc, a.formula), offsetof(gemmepi_matmul_desc, b.formula),
         offsetof(gemmepi_matmul_desc, formula), offsetof(gemmepi_matmul_desc, operands),
         offsetof(gemmepi_matmul_desc, formula_value), offsetof(gemmepi_matmul_desc, formula_result));
POINTERS(layer, offsetof(gemmepi_linear_desc, a.formula), offsetof(gemmepi_linear_desc, b.formula),
         offsetof(gemmepi_linear_desc, formula), offsetof(gemmepi_linear_desc, operands),
         offsetof(gemmepi_linear_desc, formula_value), offsetof(gemmepi_linear_desc, formula_result),
         offsetof(gemmepi_linear_desc, before));
POINTERS(operation, offsetof(gemmepi_elementwise_desc, a), offsetof(gemmepi_elementwise_desc, b),
         offsetof(gemmepi_elementwise_desc, w), offsetof(gemmepi_elementwise_desc, dy),
         offsetof(gemmepi_elementwise_desc, y), offsetof(gemmepi_elementwise_desc, da),
         offsetof(gemmepi_elementwise_desc, db), offsetof(gemmepi_elementwise_desc, dw),
         offsetof(gemmepi_elementwise_desc, y_transposed), offsetof(gemmepi_elementwise_desc, formula),
         offsetof(gemmepi_elementwise_desc, operands), offsetof(gemmepi_elementwise_desc, formula_result));
POINTERS(network, offsetof(gemmepi_network_desc, layers), offsetof(gemmepi_network_desc, input_formula));
POINTERS(network_layer, offsetof(gemmepi_network_layer, formula), offsetof(gemmepi_network_layer, operands));
POINTERS(operand, offsetof(gemmepi_operand, name), offsetof(gemmepi_operand, tensor));
POINTERS(tensor, offsetof(gemmepi_tensor, data), offsetof(gemmepi_tensor, shape),
         offsetof(gemmepi_tensor, stride));
#define SPOIL(block, type) \
    spoil(&(block), sizeof(block), pointers_of_##type, (int)GPI__COUNT(pointers_of_##type))

/* One field of the desc, or of what it points to. */
static void spoil_drawn(void) {
    int which = below(4);
    if (which == 1 && drawn.operand_count)
        SPOIL(drawn.operands[below(drawn.operand_count)], operand);
    else if (which == 2 && drawn.tensor_count)
        SPOIL(drawn.tensors[below(drawn.tensor_count)], tensor);
    else if (which == 3 && drawn.tensor_count)
        (one_in(2) ? drawn.shapes : drawn.strides)[below(drawn.tensor_count)][below(8)] = (int64_t)garbage();
    else if (drawn.kind == PRODUCT || drawn.kind == GROUPED)
        SPOIL(drawn.desc.product, product);
    else if (drawn.kind == OPERATION)
        SPOIL(drawn.desc.operation, operation);
    else if (drawn.kind >= NETWORK && one_in(2))
        SPOIL(drawn.layers[below(3)], network_layer);
    else if (drawn.kind >= NETWORK)
        SPOIL(drawn.desc.network, network);
    else if (one_in(3))
        SPOIL(drawn.before, layer);
    else
        SPOIL(drawn.desc.layer, layer);
    if (drawn.kind == GROUPED && one_in(2))
        spoil(&drawn.desc.grouped.groups, sizeof drawn.desc.grouped - offsetof(gemmepi_grouped_desc, groups),
              NULL, 0);
}

/* Few networks, each of which is many plans, from the bytes that no other kind needs. */
static kind draw_kind(void) {
    unsigned value = draw_byte();
    return value < 230 ? (kind)(value % NETWORK) : (kind)(NETWORK + value % 2);
}

static void draw_desc(kind of_kind) {
    memset(&drawn, 0, sizeof drawn);
    drawn.kind = of_kind;
    switch (of_kind) {
    case PRODUCT:
        drawn.desc.product = any_product(one_in(2));
        break;
    case GROUPED:
        drawn.desc.grouped = any_groups();
        break;
    case OPERATION:
        drawn.desc.operation = one_in(2) ? any_formula_operation() : any_operation();
        break;
    case NETWORK:
    case NETWORK_BACKWARD:
        drawn.desc.network = any_network();
        break;
    default:
        drawn.desc.layer = any_layer();
        drawn.desc.layer.alignment = one_in(4) ? (size_t)1 << below(9) : 0;
    }
    if (of_kind == OPERATION)
        drawn.desc.operation.alignment = one_in(4) ? (size_t)1 << below(9) : 0;
    while (one_in(5)) {
        spoil_drawn();
        drawn.is_spoiled = 1;
    }
}

#endif
