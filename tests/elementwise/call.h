/* Element-wise calls to test with: described by hand or drawn from a seed, laid out in one block of device memory between
   sentinels, run through the public interface and held against oracle.h. */
#ifndef GEMMEPI_TESTS_ELEMENTWISE_CALL_H
#define GEMMEPI_TESTS_ELEMENTWISE_CALL_H

#include "oracle.h"

/* What lies in memory: the tensors, and what casts read and write. */
enum { E_SCALE = E_TENSORS, E_Y_SCALE, E_AMAX, E_TURNED_SCALE, E_REGIONS };

typedef enum values {
    MIXED,   /* uniform in [-4, 4], w in [-1/2, 3/2] and some 0, 1/2 and 1        */
    SPECIAL, /* every third is a zero, an infinity, NaN, tiny, a kink or +-80     */
    WHOLE,   /* small whole numbers: sums are exact                             */
    SPREAD   /* of all magnitudes, for casts                                      */
} values;

typedef struct call {
    uint64_t seed; /* of the values, and of everything if random */
    operation o;   /* its tensors' shapes and strides; where they lie is found by call_place */
    values values;
    const double *given[E_TENSORS]; /* in place of values, dense */
    int in_place[E_TENSORS];        /* an output: 1 + the input that it is */
    int half[E_TENSORS];            /* elements from the first one of that input to the output's */
    int lead[E_TENSORS];            /* elements between data and the lowest element that is used */
    int shift[E_TENSORS];           /* elements from a multiple of 256 bytes to data */
    int no_stride;                  /* strides of dense tensors are NULL */
    int no_bytes;                   /* and the buffers' sizes 0 */
    int by_plan, own_workspace;
    int by_struct; /* of a call at once: 0 the short call, if there is one for it; else gemmepi_elementwise, with the pointers 1 in
                       args, 2 in the tensors, 3 by turns */
    size_t spacing; /* bytes before the first tensor: moves all of them */
} call;

/* The memory of a call as it is before and after it. */
typedef struct image {
    size_t size;
    unsigned char *before, *after;
    size_t data[E_REGIONS], bytes[E_REGIONS]; /* of the buffers in the arena */
    operation o;                              /* whose tensors lie in before */
} image;

/* >>descriptions */

static void strided_set(strided *t, gemmepi_dtype dtype, int rank, const int64_t *shape) {
    int64_t dense = 1;
    int d;
    memset(t, 0, sizeof *t);
    t->used = 1;
    t->dtype = dtype;
    t->rank = rank;
    for (d = rank - 1; d >= 0; d--) {
        t->shape[d] = shape[d];
        t->stride[d] = dense;
        dense *= shape[d];
    }
}

static int strided_is_dense(const strided *t) {
    strided dense;
    strided_set(&dense, t->dtype, t->rank, t->shape);
    return memcmp(dense.stride, t->stride, sizeof dense.stride) == 0;
}

/* The elements before the first one, and from the lowest to the highest. */
static int64_t strided_lowest(const strided *t) {
    int64_t lowest = 0;
    int d;
    for (d = 0; d < t->rank; d++)
        if (t->stride[d] < 0 && t->shape[d] > 1 && strided_count(t) > 0)
            lowest += (t->shape[d] - 1) * t->stride[d];
    return lowest;
}

static int64_t strided_span(const strided *t) {
    int64_t span = 1;
    int d;
    if (strided_count(t) == 0)
        return 0;
    for (d = 0; d < t->rank; d++)
        if (t->shape[d] > 1)
            span += (t->shape[d] - 1) * (t->stride[d] < 0 ? -t->stride[d] : t->stride[d]);
    return span;
}

/* Dense tensors of one shape and dtype, as many as the operation has. */
static call call_plain(gemmepi_operation kind, gemmepi_dtype dtype, int rank, const int64_t *shape) {
    static const int has[][E_TENSORS] = {{0},
                                         {1, 0, 0, 0, 1},
                                         {1, 0, 0, 1, 0, 1},
                                         {1, 1, 0, 0, 1},
                                         {1, 1, 0, 1, 0, 1, 1},
                                         {1, 1, 1, 0, 1},
                                         {1, 1, 1, 1, 0, 1, 1, 1},
                                         {1, 0, 0, 0, 1},
                                         {1, 0, 0, 0, 1}};
    call c;
    int t;
    memset(&c, 0, sizeof c);
    c.seed = 1;
    c.o.kind = kind;
    for (t = 0; t < E_TENSORS; t++)
        if (has[kind][t])
            strided_set(&c.o.t[t], dtype, rank, shape);
    if (kind == GEMMEPI_OP_BIAS_GRAD) {
        c.o.axis = -1;
        strided_set(&c.o.t[E_Y], dtype, 1, &shape[rank - 1]);
    }
    return c;
}

static void call_drop(call *c, int t) {
    memset(&c->o.t[t], 0, sizeof c->o.t[t]);
}

/* a (and da) hold both halves of an axis. */
static void call_split(call *c, int axis) {
    int both[] = {E_A, E_DA}, i, positive = axis < 0 ? axis + operation_shaped(&c->o)->rank : axis;
    c->o.axis = axis;
    call_drop(c, E_B);
    call_drop(c, E_DB);
    for (i = 0; i < 2; i++)
        if (c->o.t[both[i]].used) {
            int64_t shape[8];
            memcpy(shape, c->o.t[both[i]].shape, sizeof shape);
            shape[positive] *= 2;
            strided_set(&c->o.t[both[i]], c->o.t[both[i]].dtype, c->o.t[both[i]].rank, shape);
        }
}

/* A cast to both layouts; y has its dtype. */
static void call_turn(call *c) {
    strided turned = strided_turned(&c->o.t[E_Y]);
    strided_set(&c->o.t[E_TURNED], turned.dtype, turned.rank, turned.shape);
}

static void line_add_strided(sentence *l, const call *c, int t) {
    const strided *x = &c->o.t[t];
    int d;
    if (!x->used)
        return;
    line_add(l, "; %s %s [", element_names[t], oracle_format(x->dtype).name);
    for (d = 0; d < x->rank; d++)
        line_add(l, "%s%lld", d ? "," : "", (long long)x->shape[d]);
    line_add(l, "]");
    for (d = 0; d < x->rank && !strided_is_dense(x); d++)
        line_add(l, "%c%lld", d ? ',' : '/', (long long)x->stride[d]);
    if (c->in_place[t])
        line_add(l, " is %s+%d", element_names[c->in_place[t] - 1], c->half[t]);
    if (c->lead[t] || c->shift[t])
        line_add(l, " lead %d shift %d", c->lead[t], c->shift[t]);
}

static sentence call_line(const call *c) {
    sentence l = {"", 0};
    int t;
    line_add(
        &l,
        "seed %llu: operation %d %s%s p %g%s axis %d weight %g mode %d flags 0x%llx values %d%s%s by struct %d",
        (unsigned long long)c->seed, (int)c->o.kind, activation_name(c->o.activation),
        c->o.activation & GEMMEPI_GATE_FIRST ? "|GATE_FIRST" : "", c->o.parameter,
        c->o.has_parameter ? "" : " (none)", c->o.axis, c->o.weight, (int)c->o.mode,
        (unsigned long long)c->o.flags, (int)c->values, c->by_plan ? ", by plan" : "",
        c->own_workspace ? ", own workspace" : "", c->by_struct);
    for (t = 0; t < E_TENSORS; t++)
        line_add_strided(&l, c, t);
    return l;
}

/* >>memory */

static size_t round_up(size_t n) {
    return (n + 255) / 256 * 256;
}

static size_t call_scale_bytes(const call *c, int region) {
    scale_layout s;
    operation turned;
    size_t size = region == E_AMAX && c->o.t[E_A].dtype == GEMMEPI_F64 ? 8 : 4;
    uint64_t flag = region == E_SCALE  ? GEMMEPI_CAST_SCALE
                    : region == E_AMAX ? GEMMEPI_CAST_AMAX
                                       : GEMMEPI_CAST_Y_SCALE;
    if (c->o.kind != GEMMEPI_OP_CAST || !(c->o.flags & flag))
        return 0;
    if (region == E_TURNED_SCALE && (!c->o.t[E_TURNED].used || c->o.mode <= GEMMEPI_SCALE_TENSOR))
        return 0;
    s = scale_layout_of(&c->o);
    if (region == E_TURNED_SCALE) {
        turned = operation_turned(&c->o);
        s = scale_layout_of(&turned);
    }
    return (size_t)(scale_count(&s) + (scale_count(&s) == 0)) * size;
}

/* Finds a place for everything. Elements of inputs are written by call_fill. */
static void call_place(const call *c, image *m) {
    size_t at = 256 + round_up(c->spacing);
    int t;
    memset(m, 0, sizeof *m);
    m->o = c->o;
    for (t = 0; t < E_REGIONS; t++) {
        if (t < E_TENSORS && (!c->o.t[t].used || c->in_place[t]))
            continue;
        if (t < E_TENSORS) {
            size_t size = oracle_format(c->o.t[t].dtype).size;
            m->bytes[t] = (size_t)(c->lead[t] + strided_span(&c->o.t[t])) * size;
            m->data[t] = at + (size_t)c->shift[t] * size;
        } else {
            m->bytes[t] = call_scale_bytes(c, t);
            m->data[t] = at;
        }
        at = round_up(m->data[t] + m->bytes[t]) + 256;
    }
    m->size = at;
    m->before = (unsigned char *)malloc(m->size);
    m->after = (unsigned char *)malloc(m->size);
    memset(m->before, 0xff, m->size); /* NaN in every dtype */
    for (t = 0; t < E_TENSORS; t++) {
        int from = c->in_place[t] ? c->in_place[t] - 1 : t;
        if (!c->o.t[t].used)
            continue;
        m->data[t] = m->data[from];
        m->bytes[t] = m->bytes[from];
        m->o.t[t].first = m->before + m->data[t] +
                          (c->lead[from] + c->half[t] - strided_lowest(&c->o.t[t])) *
                              (int64_t)oracle_format(c->o.t[t].dtype).size;
    }
}

static void image_free(image *m) {
    free(m->before);
    free(m->after);
    memset(m, 0, sizeof *m);
}

static double uniform(rng *r) {
    return ldexp((double)(rng_next(r) >> 11), -53);
}

static double special_value(rng *r, gemmepi_dtype dtype) {
    static const double specials[] = {0, -0.0, 1e-7, -1e-7, 80, -80, 3, -3, 1, -1, 0.5, -12, 12};
    int i = rng_below(r, 18);
    double tiny = ldexp(1 + rng_below(r, 5), oracle_format(dtype).lowest);
    return i < 13    ? specials[i]
           : i == 13 ? INFINITY
           : i == 14 ? -INFINITY
           : i == 15 ? NAN
           : i == 16 ? tiny
                     : -tiny;
}

static double call_value(const call *c, int t, rng *r) {
    static const double weights[] = {0, 1, 0.5, -0.0};
    gemmepi_dtype dtype = c->o.t[t].dtype;
    double x = uniform(r);
    if (c->values == WHOLE)
        return rng_below(r, 9) - 4;
    if (c->values == SPECIAL && rng_one_in(r, 3))
        return special_value(r, dtype);
    if (c->values == SPREAD)
        return ldexp(x - 0.5, rng_below(r, oracle_format(dtype).highest - oracle_format(dtype).lowest) +
                                  oracle_format(dtype).lowest + 1);
    if (t == E_W)
        return rng_one_in(r, 4) ? weights[rng_below(r, 4)] : 2 * x - 0.5;
    return 8 * x - 4;
}

/* Values of the inputs, of scales, and of the sums that are added to. */
static void call_fill(const call *c, image *m) {
    rng r = rng_seeded(c->seed);
    int64_t i;
    int t;
    for (t = 0; t < E_TENSORS; t++) {
        const strided *x = &m->o.t[t];
        int64_t index[8] = {0}, number = 0;
        int is_read = t < E_Y || (t == E_Y && (c->o.flags & GEMMEPI_ACCUMULATE));
        if (!x->used || strided_count(x) == 0 || !is_read || (t == E_Y && c->o.kind == GEMMEPI_OP_CAST))
            continue;
        do {
            double value = c->given[t] ? c->given[t][number] : call_value(c, t, &r);
            oracle_encode(x->dtype, strided_at(x, x->rank, index), value);
            number++;
        } while (index_next(x->rank, x->shape, index));
    }
    for (i = 0; i < (int64_t)(call_scale_bytes(c, E_SCALE) / 4); i++) {
        float scale = (float)ldexp(0.5 + uniform(&r), rng_below(&r, 6) - 3);
        memcpy(m->before + m->data[E_SCALE] + i * 4, &scale, 4);
    }
}

static void *call_pointer(const test_device *device, const image *m, const call *c, int region) {
    if (region < E_TENSORS ? !c->o.t[region].used : m->bytes[region] == 0)
        return NULL;
    return (unsigned char *)device->arena + m->data[region];
}

/* The tensors as the interface has them; with data, or for a plan without. */
static void call_tensors(const call *c, const image *m, const test_device *device, int with_data,
                         gemmepi_tensor g[E_TENSORS]) {
    int t;
    memset(g, 0, E_TENSORS * sizeof *g);
    for (t = 0; t < E_TENSORS; t++) {
        const strided *x = &c->o.t[t];
        if (!x->used)
            continue;
        g[t].data = with_data ? call_pointer(device, m, c, t) : NULL;
        g[t].dtype = x->dtype;
        g[t].rank = x->rank;
        g[t].shape = x->rank ? x->shape : NULL;
        g[t].stride = x->rank == 0 || (c->no_stride && strided_is_dense(x)) ? NULL : x->stride;
        g[t].offset = (size_t)(m->o.t[t].first - m->before) - m->data[t];
        g[t].bytes = c->no_bytes ? 0 : m->bytes[t];
    }
}

static const gemmepi_tensor *strided_or_null(const call *c, const gemmepi_tensor *g, int t) {
    return c->o.t[t].used ? &g[t] : NULL;
}

static void call_desc(const call *c, const gemmepi_tensor *g, gemmepi_elementwise_desc *desc) {
    memset(desc, 0, sizeof *desc);
    desc->operation = c->o.kind;
    desc->activation = c->o.activation;
    desc->has_parameter = c->o.has_parameter;
    desc->activation_parameter = c->o.parameter;
    desc->axis = c->o.axis;
    desc->scale_mode = c->o.mode;
    desc->flags = c->o.flags;
    desc->a = strided_or_null(c, g, E_A);
    desc->b = strided_or_null(c, g, E_B);
    desc->w = strided_or_null(c, g, E_W);
    desc->dy = strided_or_null(c, g, E_DY);
    desc->y = strided_or_null(c, g, E_Y);
    desc->da = strided_or_null(c, g, E_DA);
    desc->db = strided_or_null(c, g, E_DB);
    desc->dw = strided_or_null(c, g, E_DW);
    desc->y_transposed = strided_or_null(c, g, E_TURNED);
}

static gemmepi_elementwise_args call_args(const call *c, const image *m, const test_device *device) {
    gemmepi_elementwise_args args;
    memset(&args, 0, sizeof args);
    args.a = call_pointer(device, m, c, E_A);
    args.b = call_pointer(device, m, c, E_B);
    args.w = call_pointer(device, m, c, E_W);
    args.dy = call_pointer(device, m, c, E_DY);
    args.y = call_pointer(device, m, c, E_Y);
    args.da = call_pointer(device, m, c, E_DA);
    args.db = call_pointer(device, m, c, E_DB);
    args.dw = call_pointer(device, m, c, E_DW);
    args.y_transposed = call_pointer(device, m, c, E_TURNED);
    args.y_transposed_scale = (float *)call_pointer(device, m, c, E_TURNED_SCALE);
    args.weight = c->o.weight;
    args.scale = (const float *)call_pointer(device, m, c, E_SCALE);
    args.y_scale = (float *)call_pointer(device, m, c, E_Y_SCALE);
    args.amax = call_pointer(device, m, c, E_AMAX);
    return args;
}

/* The largest power of two up to 256 that all pointers are multiples of. */
static size_t call_alignment(const call *c, const image *m) {
    size_t all = 256;
    int t;
    for (t = 0; t < E_TENSORS; t++)
        if (c->o.t[t].used)
            all |= m->data[t];
    return all & (~all + 1);
}

/* >>running */

/* Whether there is no short call for it. */
static int call_has_but_a_struct(const call *c) {
    gemmepi_operation kind = c->o.kind;
    return kind == GEMMEPI_OP_GATED_BACKWARD || kind == GEMMEPI_OP_LERP_BACKWARD ||
           (kind == GEMMEPI_OP_GATED && c->o.has_parameter) ||
           (kind == GEMMEPI_OP_CAST && (c->o.flags || c->o.mode || c->o.t[E_TURNED].used));
}

/* Whether args say what is in no tensor. */
static int args_have_more(const gemmepi_elementwise_args *args) {
    return args->weight != 0 || args->scale != NULL || args->y_scale != NULL || args->amax != NULL;
}

/* Pointers in args, which count before those of the tensors, or in the tensors. */
static gemmepi_status call_by_struct(const call *c, const image *m, test_device *device) {
    gemmepi_tensor g[E_TENSORS];
    gemmepi_elementwise_desc desc;
    gemmepi_elementwise_args args = call_args(c, m, device);
    const void **const inputs[] = {&args.a, &args.b, &args.w, &args.dy};
    void **const outputs[] = {&args.y, &args.da, &args.db, &args.dw, &args.y_transposed};
    int t;
    call_tensors(c, m, device, 1, g);
    for (t = 0; t < E_TENSORS; t++) {
        if (c->by_struct == 1 || (c->by_struct == 3 && t % 2)) {
            g[t].data = c->o.t[t].used && t % 4 < 2 ? device->arena : NULL; /* neither counts */
            continue;
        }
        if (t < E_Y)
            *inputs[t] = NULL;
        else
            *outputs[t - E_Y] = NULL;
    }
    call_desc(c, g, &desc);
    return gemmepi_elementwise(device->context, &desc,
                               c->by_struct == 2 && !args_have_more(&args) ? NULL : &args, device->stream);
}

static gemmepi_status call_at_once(const call *c, const image *m, test_device *device) {
    gemmepi_tensor g[E_TENSORS];
    const gemmepi_tensor *p[E_TENSORS];
    gemmepi_context *context = device->context;
    gemmepi_stream stream = device->stream;
    const operation *o = &c->o;
    double parameter = o->has_parameter ? o->parameter : NAN;
    int t;
    if (c->by_struct || call_has_but_a_struct(c))
        return call_by_struct(c, m, device);
    call_tensors(c, m, device, 1, g);
    for (t = 0; t < E_TENSORS; t++)
        p[t] = strided_or_null(c, g, t);
    switch (o->kind) {
    case GEMMEPI_OP_ACTIVATION:
        return gemmepi_activation(context, o->activation, parameter, p[E_A], p[E_Y], stream);
    case GEMMEPI_OP_ACTIVATION_BACKWARD:
        return gemmepi_activation_backward(context, o->activation, parameter, p[E_A], p[E_DY], p[E_DA],
                                           stream);
    case GEMMEPI_OP_GATED:
        return gemmepi_gated(context, o->activation, o->axis, p[E_A], p[E_B], p[E_Y], stream);
    case GEMMEPI_OP_LERP:
        return gemmepi_lerp(context, p[E_A], p[E_B], p[E_W], o->weight, p[E_Y], stream);
    case GEMMEPI_OP_BIAS_GRAD:
        return gemmepi_bias_grad(context, p[E_A], o->axis, (o->flags & GEMMEPI_ACCUMULATE) != 0, p[E_Y],
                                 stream);
    default:
        return gemmepi_cast(context, p[E_A], p[E_Y], stream);
    }
}

static gemmepi_status plan_on(const gemmepi_plan *plan, const call *c, const image *m, test_device *device) {
    gemmepi_elementwise_args args = call_args(c, m, device);
    gemmepi_plan_details details;
    gemmepi_status status;
    if (!c->own_workspace) {
        status = gemmepi_plan_prepare(plan, device->stream);
        return status ? status : gemmepi_run_elementwise(plan, &args, device->stream);
    }
    status = gemmepi_plan_info(plan, &details);
    if (status)
        return status;
    if (!test_device_reserve(device, &device->workspace, &device->workspace_size,
                             details.workspace_size + 256))
        return GEMMEPI_OUT_OF_MEMORY;
    args.workspace = device->workspace;
    args.workspace_size = details.workspace_size;
    return gemmepi_run_elementwise(plan, &args, device->stream);
}

static gemmepi_status call_plan(const call *c, const image *m, const test_device *device,
                                gemmepi_plan **plan) {
    gemmepi_tensor g[E_TENSORS];
    gemmepi_elementwise_desc desc;
    call_tensors(c, m, device, 0, g);
    call_desc(c, g, &desc);
    desc.alignment = call_alignment(c, m);
    return gemmepi_plan_elementwise(device->context, &desc, plan);
}

static gemmepi_status call_by_plan(const call *c, const image *m, test_device *device) {
    gemmepi_plan *plan = NULL;
    char text[64];
    gemmepi_status status = call_plan(c, m, device, &plan);
    if (status)
        return status;
    CHECK(gemmepi_plan_explain(plan, text, sizeof text) > 0, "nothing to explain");
    status = plan_on(plan, c, m, device);
    gemmepi_plan_destroy(plan);
    return status;
}

static gemmepi_status image_upload(const image *m, test_device *device) {
    if (!test_device_reserve(device, &device->arena, &device->arena_size, m->size))
        return GEMMEPI_OUT_OF_MEMORY;
    return gemmepi_upload(device->context, device->arena, m->before, m->size, device->stream);
}

static gemmepi_status image_download(image *m, test_device *device) {
    return gemmepi_download(device->context, m->after, device->arena, m->size, device->stream);
}

/* Places and runs it. What it returns is to be freed. */
static gemmepi_status call_run(const call *c, test_device *device, image *m) {
    gemmepi_status status;
    call_place(c, m);
    call_fill(c, m);
    status = image_upload(m, device);
    if (!status)
        status = c->by_plan ? call_by_plan(c, m, device) : call_at_once(c, m, device);
    if (!status)
        status = image_download(m, device);
    return status;
}

/* >>checking */

/* Where an element of output t lies after the call. The bytes are marked in before, so that what is left of it must be
   as it was. */
static double image_take(image *m, const strided *x, const int64_t *index) {
    unsigned char *at = strided_at(x, x->rank, index), *after = m->after + (at - m->before);
    return oracle_decode(x->dtype, after);
}

static void image_mark(image *m, const strided *x) {
    int64_t index[8] = {0};
    size_t size = oracle_format(x->dtype).size;
    if (strided_count(x) == 0)
        return;
    do {
        unsigned char *at = strided_at(x, x->rank, index);
        memcpy(at, m->after + (at - m->before), size);
    } while (index_next(x->rank, x->shape, index));
}

static int check_element(const call *c, const strided *x, int t, const int64_t *index, const term *want,
                         double got) {
    sentence l;
    int good = term_allows(want, x->dtype, got);
    if (good)
        return 1;
    l = call_line(c);
    CHECK(good, "%s[%lld, %lld, %lld, %lld] (of rank %d) is %.17g, want %.17g within %g%s: %s",
          element_names[t], (long long)index[0], (long long)index[1], (long long)index[2],
          (long long)index[3], x->rank, got, (double)want->value, (double)want->bound,
          want->exact ? " (exact)" : "", l.text);
    return 0;
}

static int is_sum(const operation *o, int t) {
    const strided *shaped = operation_shaped(o), *x = &o->t[t];
    int d, split = operation_is_split(o);
    if (o->kind == GEMMEPI_OP_BIAS_GRAD)
        return 1;
    for (d = 0; d < shaped->rank; d++) {
        int mine = d - (shaped->rank - x->rank);
        if (split && d == operation_axis(o))
            continue;
        if (shaped->shape[d] != 1 && (mine < 0 || x->shape[mine] == 1))
            return t != E_Y;
    }
    return 0;
}

/* The index in output t, of t's own rank, of what an index of the operation adds to or writes. half: of a split da. */
static void output_index(const operation *o, int t, int half, const int64_t *index, int64_t *mine) {
    const strided *shaped = operation_shaped(o), *x = &o->t[t];
    int64_t moved[8];
    int d;
    memcpy(moved, index, sizeof moved);
    memset(mine, 0, 8 * sizeof *mine);
    if (o->kind == GEMMEPI_OP_BIAS_GRAD) {
        mine[0] = index[operation_axis(o)];
        return;
    }
    if (operation_is_split(o) && t == E_DA)
        index_halve(o, half, moved);
    for (d = 0; d < x->rank; d++)
        mine[d] = x->shape[d] == 1 ? 0 : moved[shaped->rank - x->rank + d];
}

/* An output that is a sum: all of them are added up first. */
static int check_sums(const call *c, image *m, int t) {
    const operation *o = &m->o;
    const strided *shaped = operation_shaped(o), *x = &o->t[t];
    int64_t index[8] = {0}, mine[8] = {0}, count = strided_count(x), number;
    sum *sums = (sum *)calloc((size_t)count + 1, sizeof *sums);
    int half, halves = operation_is_split(o) ? 2 : 1, good = 1;
    if (strided_count(shaped) > 0)
        do {
            for (half = 0; half < halves; half++) {
                term one = oracle_term(o, half ? E_DB : t, index);
                output_index(o, t, half, index, mine);
                sum_add(&sums[strided_number(x, x->rank, mine)], &one);
            }
        } while (index_next(shaped->rank, shaped->shape, index));
    memset(mine, 0, sizeof mine);
    for (number = 0; number < count && good; number++) {
        sum *s = &sums[number];
        term want;
        if (o->flags & GEMMEPI_ACCUMULATE) {
            term old = {0, 0, 0, 0, 0};
            old.value = strided_get(x, x->rank, mine);
            sum_add(s, &old);
            s->count -= s->count == 1;
        }
        want = sum_close(o, s);
        want.exact |= c->values == WHOLE && o->kind == GEMMEPI_OP_BIAS_GRAD;
        good = check_element(c, x, t, mine, &want, image_take(m, x, mine));
        index_next(x->rank, x->shape, mine);
    }
    free(sums);
    return good;
}

static int check_elements(const call *c, image *m, int t) {
    const operation *o = &m->o;
    const strided *shaped = operation_shaped(o), *x = &o->t[t];
    int64_t index[8] = {0}, mine[8] = {0};
    int half, halves = operation_is_split(o) && t == E_DA ? 2 : 1, good = 1;
    if (strided_count(shaped) == 0)
        return 1;
    do {
        for (half = 0; half < halves && good; half++) {
            term want = oracle_term(o, half ? E_DB : t, index);
            output_index(o, t, half, index, mine);
            good = check_element(c, x, t, mine, &want, image_take(m, x, mine));
        }
    } while (good && index_next(shaped->rank, shaped->shape, index));
    return good;
}

/* A number of a cast's scales, from before or after. */
static double number_at(const image *m, const unsigned char *memory, int region, int64_t number,
                        gemmepi_dtype dtype) {
    return oracle_decode(dtype, memory + m->data[region] + (size_t)number * oracle_format(dtype).size);
}

static int check_number(const call *c, const char *what, int64_t number, double got, double want,
                        double relative) {
    int good = isnan(want) ? isnan(got) : got == want || fabs(got - want) <= relative * fabs(want);
    sentence l;
    if (good)
        return 1;
    l = call_line(c);
    CHECK(good, "%s[%lld] is %.17g, want %.17g: %s", what, (long long)number, got, want, l.text);
    return 0;
}

/* amax and scales, which lie in region y_scale, and marks them as image_mark does. */
static int check_numbers(const call *c, image *m, const operation *o, int y_scale) {
    const strided *a = &o->t[E_A];
    scale_layout s = scale_layout_of(o);
    int64_t index[8] = {0}, count = scale_count(&s), i;
    double *amax = (double *)malloc((size_t)count * sizeof *amax + 1);
    gemmepi_dtype dtype = a->dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    int good = 1;
    for (i = 0; i < count; i++)
        amax[i] = -1; /* nothing has it */
    if (strided_count(a) > 0)
        do {
            int64_t number = scale_number(&s, index);
            amax[number] =
                larger_magnitude(amax[number] == -1 ? 0 : amax[number], strided_get(a, a->rank, index));
        } while (index_next(a->rank, a->shape, index));
    for (i = 0; i < count && good; i++) {
        if (amax[i] == -1)
            continue;
        if (o->flags & GEMMEPI_CAST_AMAX) {
            size_t at = m->data[E_AMAX] + (size_t)i * oracle_format(dtype).size;
            good &= check_number(c, "amax", i, number_at(m, m->after, E_AMAX, i, dtype), amax[i], 0);
            memcpy(m->before + at, m->after + at, oracle_format(dtype).size);
        }
        if (o->flags & GEMMEPI_CAST_Y_SCALE) {
            size_t at = m->data[y_scale] + (size_t)i * 4;
            good &= check_number(c, y_scale == E_Y_SCALE ? "y_scale" : "y_transposed_scale", i,
                                 number_at(m, m->after, y_scale, i, GEMMEPI_F32),
                                 oracle_y_scale(o->t[E_Y].dtype, amax[i]),
                                 dtype == GEMMEPI_F64 ? ldexp(1, -23) : 0);
            memcpy(m->before + at, m->after + at, 4);
        }
    }
    free(amax);
    return good;
}

/* A cast to y, which is tensor t of the call. */
static int check_cast(const call *c, image *m, const operation *o, int t, int y_scale) {
    const strided *a = &o->t[E_A], *y = &o->t[E_Y];
    scale_layout s = scale_layout_of(o);
    int64_t index[8] = {0};
    int good = check_numbers(c, m, o, y_scale), divides = (o->flags & GEMMEPI_CAST_Y_SCALE) != 0;
    if (strided_count(a) == 0 || !good)
        return good;
    do {
        int64_t number = scale_number(&s, index);
        double from = strided_get(a, a->rank, index);
        term want = {0, 0, 1, 1, 0};
        want.value = from;
        if (divides)
            want = term_scaled(o, from, number_at(m, m->after, y_scale, number, GEMMEPI_F32), 1);
        if (o->flags & GEMMEPI_CAST_SCALE)
            want = term_scaled(o, from, number_at(m, m->before, E_SCALE, number, GEMMEPI_F32), 0);
        good = check_element(c, y, t, index, &want, image_take(m, y, index));
    } while (good && index_next(a->rank, a->shape, index));
    return good;
}

static int check_scaled(const call *c, image *m) {
    operation turned;
    int good = check_cast(c, m, &m->o, E_Y, E_Y_SCALE);
    if (!good || !m->o.t[E_TURNED].used)
        return good;
    turned = operation_turned(&m->o);
    return check_cast(c, m, &turned, E_TURNED, m->o.mode > GEMMEPI_SCALE_TENSOR ? E_TURNED_SCALE : E_Y_SCALE);
}

/* Every element of every output, and that nothing else has changed. */
static int image_holds(const call *c, image *m) {
    int t, good = 1;
    size_t i;
    if (c->o.kind == GEMMEPI_OP_CAST)
        good = check_scaled(c, m);
    for (t = E_Y; t < E_TENSORS && c->o.kind != GEMMEPI_OP_CAST; t++)
        if (c->o.t[t].used && good)
            good = is_sum(&c->o, t) ? check_sums(c, m, t) : check_elements(c, m, t);
    if (!good)
        return 0;
    for (t = E_Y; t < E_TENSORS; t++)
        if (c->o.t[t].used)
            image_mark(m, &m->o.t[t]);
    if (memcmp(m->before, m->after, m->size) == 0)
        return 1;
    for (i = 0; i < m->size && m->before[i] == m->after[i]; i++) {
    }
    for (t = E_REGIONS - 1; t > 0 && (m->bytes[t] == 0 || m->data[t] > i + 256); t--) {
    }
    CHECK(0, "byte %llu of memory has changed, %lld after the beginning of region %d: %s",
          (unsigned long long)i, (long long)i - (long long)m->data[t], t, call_line(c).text);
    return 0;
}

/* What is compiled into kernels. */
static uint64_t call_key(const call *c) {
    int numbers[E_TENSORS + 4], t;
    for (t = 0; t < E_TENSORS; t++)
        numbers[t] = c->o.t[t].used ? 1 + (int)c->o.t[t].dtype : 0;
    numbers[E_TENSORS] = (int)c->o.kind;
    numbers[E_TENSORS + 1] = (int)c->o.activation;
    numbers[E_TENSORS + 2] = (int)c->o.flags;
    numbers[E_TENSORS + 3] = (int)c->o.mode;
    return test_key(numbers, E_TENSORS + 4);
}

/* The call succeeds and all is right. 1 too where TEST_SHARE leaves it out. */
static int call_holds(test_device *device, const call *c) {
    image m;
    gemmepi_status status;
    int good;
    if (!test_takes(call_key(c)))
        return 1;
    status = call_run(c, device, &m);
    good = status == GEMMEPI_OK;
    CHECK(good, "%s (%s): %s", gemmepi_status_name(status), status ? gemmepi_last_error() : "",
          call_line(c).text);
    good = good && image_holds(c, &m);
    image_free(&m);
    return good;
}

/* >>random calls */

/* Elements' strides: axes in random order, gaps, some backwards, and some that repeat. */
static void random_strides(strided *t, rng *r, int input) {
    int order[8], d, kind = rng_below(r, 4);
    int64_t step = rng_one_in(r, 4) ? 1 + rng_below(r, 3) : 1;
    for (d = 0; d < t->rank; d++)
        order[d] = t->rank - 1 - d;
    for (d = t->rank - 1; d > 0 && kind >= 2; d--) {
        int other = rng_below(r, d + 1), kept = order[d];
        order[d] = order[other];
        order[other] = kept;
    }
    for (d = 0; d < t->rank && kind > 0; d++) {
        t->stride[order[d]] = step;
        step *= t->shape[order[d]] > 0 ? t->shape[order[d]] : 1;
        step += rng_one_in(r, 4) ? rng_below(r, 9) : 0;
        if (rng_one_in(r, 6))
            t->stride[order[d]] = -t->stride[order[d]];
        if (input && rng_one_in(r, 8))
            t->stride[order[d]] = 0;
    }
}

static int64_t random_extent(rng *r, int rank) {
    static const int64_t edges[] = {1, 2, 3, 7, 8, 9, 16, 63, 64, 65, 127, 128, 129, 255, 257, 300};
    int most = rank <= 1 ? 16 : rank == 2 ? 14 : rank == 3 ? 8 : rank == 4 ? 6 : 4;
    if (rng_one_in(r, 40))
        return 0;
    return rng_one_in(r, 2) ? 1 + rng_below(r, rank <= 2   ? 40
                                               : rank <= 4 ? 9
                                                           : 4)
                            : edges[rng_below(r, most)];
}

/* Axes that repeat: of extent 1, or missing. */
static void random_broadcast(strided *t, rng *r) {
    int64_t shape[8];
    int d, missing = t->rank && rng_one_in(r, 4) ? rng_below(r, t->rank + 1) : 0;
    gemmepi_dtype dtype = t->dtype;
    memcpy(shape, t->shape, sizeof shape);
    for (d = 0; d < t->rank; d++)
        if (rng_one_in(r, 3))
            shape[d] = 1;
    strided_set(t, dtype, t->rank - missing, shape + missing);
}

/* What a random operation has of what it may have. */
static void random_presence(call *c, rng *r) {
    gemmepi_operation kind = c->o.kind;
    int rank = operation_shaped(&c->o)->rank;
    if ((kind == GEMMEPI_OP_GATED || kind == GEMMEPI_OP_GATED_BACKWARD) && rank && rng_one_in(r, 2)) {
        call_split(c, rng_below(r, 2 * rank) - rank);
        c->o.activation |= rng_one_in(r, 2) ? GEMMEPI_GATE_FIRST : 0;
    } else if (kind == GEMMEPI_OP_GATED_BACKWARD && rng_one_in(r, 3)) {
        call_drop(c, rng_one_in(r, 2) ? E_DA : E_DB);
    }
    if (kind == GEMMEPI_OP_LERP && rng_one_in(r, 3))
        call_drop(c, E_W);
    if (kind == GEMMEPI_OP_LERP_BACKWARD) {
        int kept = 1 + rng_below(r, 7), t;
        for (t = 0; t < 3; t++)
            if (!(kept >> t & 1))
                call_drop(c, E_DA + t);
        if (!(kept & 4)) {
            call_drop(c, E_A);
            call_drop(c, E_B);
            if (rng_one_in(r, 2))
                call_drop(c, E_W);
        }
    }
}

static void random_activation(call *c, rng *r) {
    gemmepi_operation kind = c->o.kind;
    if (kind > GEMMEPI_OP_GATED_BACKWARD)
        return;
    c->o.activation |= activation_codes[rng_below(r, ACTIVATION_COUNT)];
    if (activation_has_parameter(operation_activation(&c->o)) && rng_one_in(r, 2)) {
        static const double some[] = {0, -0.5, -0.1, 0.3, 1.1};
        c->o.has_parameter = 1;
        c->o.parameter = some[rng_below(r, 5)];
    }
}

static void random_cast(call *c, rng *kernel, rng *r) {
    static const gemmepi_dtype any[] = {GEMMEPI_F32,  GEMMEPI_F16, GEMMEPI_BF16, GEMMEPI_E4M3,
                                        GEMMEPI_E5M2, GEMMEPI_F64, GEMMEPI_E4M3};
    gemmepi_dtype y = any[rng_below(kernel, 7)];
    c->o.t[E_A].dtype = any[rng_below(kernel, 6)];
    c->o.t[E_Y].dtype = y;
    c->values = rng_one_in(r, 2) ? SPREAD : rng_one_in(r, 3) ? SPECIAL : MIXED;
    if (oracle_is_fp8(y) && c->o.t[E_A].rank >= 2 && rng_one_in(kernel, 3))
        call_turn(c);
    if (rng_one_in(kernel, 3))
        return;
    c->o.flags = rng_one_in(kernel, 2) ? GEMMEPI_CAST_AMAX : 0;
    if (oracle_is_fp8(y) && rng_one_in(kernel, 2))
        c->o.flags |= GEMMEPI_CAST_Y_SCALE;
    else if (rng_one_in(kernel, 2) || !c->o.flags)
        c->o.flags |= GEMMEPI_CAST_SCALE;
    c->o.mode = (gemmepi_scale_mode)rng_below(kernel, 5);
    if (c->o.mode > GEMMEPI_SCALE_TENSOR && c->o.t[E_A].rank >= 2 && rng_one_in(kernel, 2))
        c->o.flags |= GEMMEPI_CAST_K_IS_ROWS;
    if (c->o.mode == GEMMEPI_SCALE_OUTER ||
        (c->o.mode > GEMMEPI_SCALE_OUTER && !(c->o.flags & GEMMEPI_CAST_Y_SCALE)))
        call_drop(c, E_TURNED);
}

static void random_layouts_of(call *c, rng *r) {
    int t, shaped_is_a = c->o.kind == GEMMEPI_OP_BIAS_GRAD;
    for (t = 0; t < E_TENSORS; t++) {
        int may = t < E_DY || t > E_Y, split = operation_is_split(&c->o) && (t == E_A || t == E_DA);
        if (!c->o.t[t].used)
            continue;
        if (may && !split && !shaped_is_a && c->o.kind != GEMMEPI_OP_CAST && rng_one_in(r, 4))
            random_broadcast(&c->o.t[t], r);
        if (rng_one_in(r, 2))
            random_strides(&c->o.t[t], r, t < E_Y);
        c->lead[t] = rng_one_in(r, 4) ? rng_below(r, 20) : 0;
        c->shift[t] = rng_one_in(r, 3) ? rng_below(r, 9) : 0;
    }
}

/* A cast whose scales go by rows or blocks, or are found on the way. It is not run in place. */
static int call_is_scaled(const call *c) {
    return c->o.kind == GEMMEPI_OP_CAST &&
           (c->o.mode > GEMMEPI_SCALE_TENSOR || (c->o.flags & GEMMEPI_CAST_Y_SCALE) || c->o.t[E_TURNED].used);
}

/* Some outputs exactly an input. */
static void random_in_place_of(call *c, rng *r) {
    int t, i, taken = 0;
    for (t = E_Y; t < E_TENSORS; t++) {
        if (!c->o.t[t].used || is_sum(&c->o, t) || call_is_scaled(c) || !rng_one_in(r, 4))
            continue;
        for (i = 0; i < E_Y; i++) {
            strided *x = &c->o.t[i], *y = &c->o.t[t];
            if (!x->used || (taken >> i & 1) || x->dtype != y->dtype || x->rank != y->rank ||
                memcmp(x->shape, y->shape, sizeof x->shape) != 0)
                continue;
            *x = *y; /* an output's strides never repeat */
            c->lead[i] = c->lead[t];
            c->shift[i] = c->shift[t];
            c->in_place[t] = i + 1;
            taken |= 1 << i;
            break;
        }
    }
}

/* Sums of 16-bit tensors may be F32. */
static void random_sum_dtypes(call *c, rng *kernel) {
    int t, wide_ones = rng_one_in(kernel, 2);
    for (t = E_Y; t < E_TENSORS; t++)
        if (c->o.t[t].used && c->o.kind != GEMMEPI_OP_CAST && is_16_bits(c->o.t[t].dtype) && wide_ones &&
            is_sum(&c->o, t))
            c->o.t[t].dtype = GEMMEPI_F32;
}

/* Operation, dtypes and rank, of which each new one may compile a kernel: five seeds in a row share them. */
static call call_random(uint64_t seed) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_BF16, GEMMEPI_F64};
    static const double some[] = {0, 1, 0.5, 0.3, -0.2, 1.7, 0.4999};
    rng kernel = rng_seeded(~(seed / 5)), r = rng_seeded(seed);
    gemmepi_operation kind = (gemmepi_operation)(1 + rng_below(&kernel, 8));
    gemmepi_dtype dtype = dtypes[rng_below(&kernel, 4)];
    int rank = rng_below(&r, 7), d;
    int64_t shape[8] = {0};
    call c;
    if (kind == GEMMEPI_OP_BIAS_GRAD && rank == 0)
        rank = 2;
    for (d = 0; d < rank; d++)
        shape[d] = random_extent(&r, rank);
    c = call_plain(kind, dtype, rank, shape);
    c.seed = seed;
    c.values = rng_one_in(&r, 3) ? SPECIAL : rng_one_in(&r, 5) ? WHOLE : MIXED;
    random_presence(&c, &r);
    random_activation(&c, &kernel);
    if (kind == GEMMEPI_OP_CAST)
        random_cast(&c, &kernel, &r);
    if (kind == GEMMEPI_OP_BIAS_GRAD) {
        c.o.axis = rng_below(&r, 2 * rank) - rank;
        strided_set(&c.o.t[E_Y], dtype, 1, &shape[operation_axis(&c.o)]);
        c.o.flags = rng_one_in(&r, 3) ? GEMMEPI_ACCUMULATE : 0;
    }
    if (kind == GEMMEPI_OP_LERP || kind == GEMMEPI_OP_LERP_BACKWARD)
        c.o.weight = c.o.t[E_W].used ? 0 : some[rng_below(&r, 7)];
    random_layouts_of(&c, &r);
    random_sum_dtypes(&c, &kernel);
    random_in_place_of(&c, &r);
    c.no_stride = rng_one_in(&r, 2);
    c.no_bytes = rng_one_in(&r, 3);
    c.by_plan = rng_one_in(&r, 2);
    c.by_struct = rng_below(&r, 4);
    c.own_workspace = rng_one_in(&r, 2);
    return c;
}

#endif
