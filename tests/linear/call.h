/* Layers to test with: described by hand or drawn from a seed, laid out in one block of device memory between sentinels, run
   through the public interface and held against oracle.h. */
#ifndef GEMMEPI_TESTS_LINEAR_CALL_H
#define GEMMEPI_TESTS_LINEAR_CALL_H

#include "oracle.h"

/* >>descriptions */

/* One layer: SAVED, or RECOMPUTE, or (NONE without GATED) neither, all gradients or those in flags. */
static layer layer_plain(gemmepi_dtype dtype, int64_t m, int64_t n, int64_t k, gemmepi_epilogue activation,
                         uint64_t flags) {
    layer l;
    memset(&l, 0, sizeof l);
    l.seed = 1;
    l.desc.m = m;
    l.desc.n = n;
    l.desc.k = k;
    l.desc.batch = 1;
    l.desc.a.dtype = dtype;
    l.desc.activation = activation;
    l.desc.flags = flags;
    return l;
}

#define ALL_GRADIENTS (GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS)

static gemmepi_matrix *layer_matrix_at(layer *l, int t) {
    gemmepi_linear_desc *d = &l->desc;
    gemmepi_matrix *const all[] = {&d->a, &d->b, NULL, &d->y, &d->preact, &d->dy, &d->da, &d->db};
    return t <= L_DB ? all[t] : NULL;
}

/* The tensors that are matrices and are there, other than RELU's mask. */
static int layer_is_plain_matrix(const layer *l, int t) {
    return t <= L_DB && t != L_BIAS && layer_uses(l, t) && !(t == L_PREACT && layer_has_mask(l));
}

/* As many elements between the starts of two lines as one has, and pad more. */
static void layer_pad(layer *l, int64_t pad) {
    int t;
    for (t = 0; t <= L_DB; t++)
        if (layer_is_plain_matrix(l, t))
            layer_matrix_at(l, t)->ld = layer_line(l, t) + pad;
    if (layer_uses(l, L_PREACT) && layer_has_mask(l))
        l->desc.preact.ld = (layer_line(l, L_PREACT) + 127) / 128 * 128 + (pad ? 128 : 0);
}

/* Elements from one item of a matrix to the next, if they lie one after the other, gap elements apart. */
static int64_t layer_step(const layer *l, int t, int64_t gap) {
    int64_t step = layer_lines(l, t) * layer_ld(l, t);
    return t == L_PREACT && layer_has_mask(l) ? step + gap * 128 : step + gap;
}

/* Items one after the other: of everything, where `items` says that the weight has them, else of all but the weight, its
   gradient, bias and dbias. The weight is B, in column-major order A. */
static void layer_spread(layer *l, int64_t batch, int items, int64_t gap) {
    int weight = layer_weight(l), t;
    l->desc.batch = batch;
    for (t = 0; t <= L_DB; t++)
        if (t != L_BIAS)
            layer_matrix_at(l, t)->batch_stride =
                (t == weight || t == layer_gradient(weight)) && !items ? 0 : layer_step(l, t, gap);
    l->desc.bias.batch_stride = items ? layer_bias_length(l) + gap + (layer_bias_length(l) == 0) : 0;
    l->desc.dbias.batch_stride = items ? layer_bias_length(l) + gap + 1 : 0;
}

/* Rows of all items by turns: line 0 of each item, line 1 of each item ... */
static void layer_interleave(layer *l, int t, int64_t gap) {
    gemmepi_matrix *matrix = layer_matrix_at(l, t);
    matrix->batch_stride = layer_line(l, t) + gap;
    matrix->ld = layer_batch(l) * (layer_line(l, t) + gap);
}

/* Scales of this mode, each item's own with gap numbers between two, or (gap < 0) the same for all. */
static void layer_scale(layer *l, int t, gemmepi_scale_mode mode, int64_t gap) {
    gemmepi_matrix *matrix = layer_matrix_at(l, t);
    scales s;
    matrix->scale.mode = mode;
    matrix->scale.batch_stride = 0;
    s = layer_scales(l, t);
    if (gap >= 0 && mode != GEMMEPI_SCALE_NONE)
        matrix->scale.batch_stride = s.rows * (s.at.row > 1 ? s.at.row : s.columns) + gap;
}

typedef struct text_line {
    char text[1600];
    size_t length;
} text_line;

static void text_add(text_line *l, const char *format, ...) {
    va_list list;
    size_t room = sizeof l->text - l->length;
    int added;
    va_start(list, format);
    added = vsnprintf(l->text + l->length, room, format, list);
    va_end(list);
    if (added > 0)
        l->length += (size_t)added < room ? (size_t)added : room - 1;
}

static void text_add_tensor(text_line *to, const layer *l, int t) {
    region r = layer_region(l, t);
    const gemmepi_matrix *matrix = t == L_BIAS || t >= L_DBIAS ? NULL : layer_matrix_at((layer *)l, t);
    if (!layer_uses(l, t) || t >= L_SCALE_A)
        return;
    text_add(to, "; %s %s%s", layer_names[t], oracle_format(r.at.dtype).name,
             matrix != NULL && layer_matrix(l, t).transposed ? "^T" : "");
    if (matrix != NULL && matrix->ld)
        text_add(to, " ld %lld", (long long)matrix->ld);
    if (r.at.item)
        text_add(to, " stride %lld", (long long)r.at.item);
    if (matrix != NULL && matrix->scale.mode)
        text_add(to, " scale %d/%lld", (int)matrix->scale.mode, (long long)matrix->scale.batch_stride);
    if (l->shift[t])
        text_add(to, " shift %d", l->shift[t]);
}

static text_line layer_text(const layer *l) {
    static const char *const words[] = {"BIAS",  "SAVED", "RECOMPUTE", "DA",    "DB",
                                        "DBIAS", "+DA",   "+DB",       "+DBIAS"};
    const gemmepi_linear_desc *d = &l->desc;
    text_line to;
    int i;
    memset(&to, 0, sizeof to);
    text_add(&to, "seed %llu: m %lld n %lld k %lld batch %lld%s compute %d %s%s%s p %g%s g %s fill %d",
             (unsigned long long)l->seed, (long long)d->m, (long long)d->n, (long long)d->k,
             (long long)d->batch, d->order ? " column-major" : "", (int)d->compute,
             activation_name(d->activation), layer_is_gated(l) ? "|GATED" : "",
             d->activation & GEMMEPI_GATE_FIRST ? "|GATE_FIRST" : "", d->activation_parameter,
             d->has_parameter ? "" : " (none)", oracle_format(layer_g(l)).name, (int)l->values);
    for (i = 0; i < 9; i++)
        if (d->flags & GEMMEPI_LINEAR_BIAS << i)
            text_add(&to, " %s", words[i]);
    if (layer_has(l, GEMMEPI_RELAXED))
        text_add(&to, " RELAXED");
    if (layer_has(l, GEMMEPI_BATCH_INVARIANT))
        text_add(&to, " BATCH_INVARIANT");
    if (layer_has(l, GEMMEPI_FAST_ACCUMULATION))
        text_add(&to, " FAST_ACCUMULATION");
    text_add(&to, " alignment %lld%s%s", (long long)d->alignment, l->by_plan ? ", by plan" : "",
             l->own_workspace ? ", own workspace" : "");
    for (i = 0; i < L_SCALE_A; i++)
        text_add_tensor(&to, l, i);
    return to;
}

/* As the library is given it. */
static gemmepi_linear_desc layer_given_desc(const layer *l) {
    gemmepi_linear_desc desc = l->desc;
    if (l->formula != NULL) {
        desc.activation = 0;
        desc.has_parameter = 0;
        desc.activation_parameter = 0;
        desc.formula = l->formula;
    }
    return desc;
}

/* Prints what went wrong, the first few times in a test. */
static void layer_report(test_device *device, const layer *l, int backward, const char *what) {
    static int test, reports;
    text_line line = layer_text(l);
    gemmepi_linear_desc desc = layer_given_desc(l);
    gemmepi_plan *plan = NULL;
    char text[3000] = "";
    if (test != test_count_here)
        reports = 0;
    test = test_count_here;
    if (reports++ >= 4)
        return;
    if ((backward ? gemmepi_plan_linear_backward(device->context, &desc, &plan)
                  : gemmepi_plan_linear(device->context, &desc, &plan)) == GEMMEPI_OK)
        gemmepi_plan_explain(plan, text, sizeof text);
    gemmepi_plan_destroy(plan);
    printf("  %s on %s: %s: %s\n%s%s", backward ? "backward" : "forward", device->name, what, line.text, text,
           text[0] ? "\n" : "");
}

/* >>memory */

/* The memory of a layer as it is before and after a run. */
typedef struct image {
    size_t size;
    unsigned char *before, *after;
    size_t data[L_COUNT], bytes[L_COUNT];
    region r[L_COUNT]; /* whose views are of before */
} image;

#define IMAGE_GUARD 512 /* bytes between tensors, at least */

/* Finds a place for everything; values are written by layer_fill. */
static void layer_place(const layer *l, image *m) {
    size_t end = 0;
    int t;
    memset(m, 0, sizeof *m);
    for (t = 0; t < L_COUNT; t++) {
        size_t size;
        m->r[t] = layer_region(l, t);
        if (!layer_uses(l, t))
            continue;
        size = oracle_format(m->r[t].at.dtype).size;
        m->bytes[t] = region_bytes(&m->r[t]);
        m->data[t] = (end + IMAGE_GUARD + 255) / 256 * 256 + (size_t)l->shift[t] * (size ? size : 1);
        end = m->data[t] + m->bytes[t];
    }
    m->size = end + IMAGE_GUARD;
    m->before = (unsigned char *)malloc(m->size);
    m->after = (unsigned char *)malloc(m->size);
    memset(m->before, 0xff, m->size); /* NaN in every dtype that has it */
    for (t = 0; t < L_COUNT; t++)
        m->r[t].at.data = m->before + m->data[t];
}

static void image_free(image *m) {
    free(m->before);
    free(m->after);
    memset(m, 0, sizeof *m);
}

/* Between 1/4 and 2, some of them negative; whole numbers keep powers of two. */
static double layer_scale_value(const layer *l, uint64_t hash) {
    if (l->values == WHOLE)
        return ldexp(1, (int)(hash % 3) - 1);
    return (hash >> 32 & 7 || l->values == NO_SIGNS ? 1 : -1) *
           ldexp(1 + random_uniform(random_hash(hash)), (int)(hash % 3) - 2);
}

static double layer_value(const layer *l, int t, uint64_t index) {
    uint64_t hash = random_hash(random_hash(l->seed * 32 + (uint64_t)t) + index);
    double size = 1, x;
    if (l->given[t] != NULL)
        return l->given[t][index];
    if (t >= L_SCALE_A)
        return layer_scale_value(l, hash);
    if (l->values == WHOLE)
        return random_integer(hash, t == L_A || t == L_B || t == L_DY ? 3 : 8);
    x = random_normal(hash);
    if (t == L_B)
        size = 1.5 / sqrt((double)(l->desc.k > 0 ? l->desc.k : 1));
    if (t == L_PREACT)
        size = 2;
    return size * (l->values == NO_SIGNS ? fabs(x) : x);
}

static void layer_fill_tensor(const layer *l, image *m, int t) {
    const region *r = &m->r[t];
    int64_t item, i, j;
    uint64_t index = 0;
    for (item = 0; item < r->items; item++)
        for (i = 0; i < r->rows; i++)
            for (j = 0; j < r->columns; j++)
                view_set(&r->at, item, i, j, layer_value(l, t, index++));
}

/* Values of what the direction reads, and of sums that are added to. All else stays a sentinel: what is not to be
   read too. */
static void layer_fill(const layer *l, image *m, int backward) {
    int t;
    for (t = 0; t < L_COUNT; t++)
        if (layer_uses(l, t) && layer_reads(l, t, backward))
            layer_fill_tensor(l, m, t);
}

static void *layer_pointer(const layer *l, const image *m, const test_device *device, int backward, int t) {
    if (!layer_uses(l, t) || (l->bare && !layer_needs(l, t, backward)) || (l->bare == 2 && m->bytes[t] == 0))
        return NULL;
    return (unsigned char *)device->arena + m->data[t];
}

static gemmepi_linear_args layer_args(const layer *l, const image *m, const test_device *device,
                                      int backward) {
    gemmepi_linear_args args;
    memset(&args, 0, sizeof args);
    args.a = layer_pointer(l, m, device, backward, L_A);
    args.b = layer_pointer(l, m, device, backward, L_B);
    args.bias = layer_pointer(l, m, device, backward, L_BIAS);
    args.y = layer_pointer(l, m, device, backward, L_Y);
    args.preact = layer_pointer(l, m, device, backward, L_PREACT);
    args.dy = layer_pointer(l, m, device, backward, L_DY);
    args.da = layer_pointer(l, m, device, backward, L_DA);
    args.db = layer_pointer(l, m, device, backward, L_DB);
    args.dbias = layer_pointer(l, m, device, backward, L_DBIAS);
    args.scale_a = (const float *)layer_pointer(l, m, device, backward, L_SCALE_A);
    args.scale_b = (const float *)layer_pointer(l, m, device, backward, L_SCALE_B);
    args.scale_y = (const float *)layer_pointer(l, m, device, backward, L_SCALE_Y);
    args.scale_preact = (const float *)layer_pointer(l, m, device, backward, L_SCALE_PREACT);
    args.scale_dy = (const float *)layer_pointer(l, m, device, backward, L_SCALE_DY);
    return args;
}

/* The largest power of two up to 256 that all pointers but those to scales are multiples of. */
static size_t image_alignment(const layer *l, const image *m) {
    size_t all = 256;
    int t;
    for (t = 0; t < L_SCALE_A; t++)
        if (layer_uses(l, t))
            all |= m->data[t];
    return all & (~all + 1);
}

static gemmepi_status image_upload(image *m, test_device *device) {
    if (!test_device_reserve(device, &device->arena, &device->arena_size, m->size))
        return GEMMEPI_OUT_OF_MEMORY;
    return gemmepi_upload(device->context, device->arena, m->before, m->size, device->stream);
}

static gemmepi_status image_download(image *m, test_device *device) {
    return gemmepi_download(device->context, m->after, device->arena, m->size, device->stream);
}

/* >>running */

static gemmepi_status layer_plan(const layer *l, test_device *device, int backward, gemmepi_plan **plan) {
    gemmepi_linear_desc desc = layer_given_desc(l);
    return backward ? gemmepi_plan_linear_backward(device->context, &desc, plan)
                    : gemmepi_plan_linear(device->context, &desc, plan);
}

static gemmepi_status layer_plan_run(const gemmepi_plan *plan, const gemmepi_linear_args *args,
                                     test_device *device, int backward) {
    return backward ? gemmepi_run_linear_backward(plan, args, device->stream)
                    : gemmepi_run_linear(plan, args, device->stream);
}

/* Runs the plan on the caller's workspace of exactly its size, and looks at 256 bytes on either side. */
static gemmepi_status layer_run_between_guards(const gemmepi_plan *plan, gemmepi_linear_args *args,
                                               test_device *device, int backward) {
    gemmepi_plan_details details;
    unsigned char guard[256], found[256];
    unsigned char *start;
    gemmepi_status status = gemmepi_plan_info(plan, &details);
    int side;
    if (status)
        return status;
    if (!test_device_reserve(device, &device->workspace, &device->workspace_size,
                             details.workspace_size + 512))
        return GEMMEPI_OUT_OF_MEMORY;
    start = (unsigned char *)device->workspace;
    memset(guard, 0xa5, sizeof guard);
    for (side = 0; side < 2 && !status; side++)
        status = gemmepi_upload(device->context, side ? start + 256 + details.workspace_size : start, guard,
                                256, device->stream);
    args->workspace = start + 256;
    args->workspace_size = details.workspace_size;
    if (!status)
        status = layer_plan_run(plan, args, device, backward);
    for (side = 0; side < 2 && !status; side++) {
        status = gemmepi_download(device->context, found, side ? start + 256 + details.workspace_size : start,
                                  256, device->stream);
        CHECK(status || memcmp(guard, found, 256) == 0, "memory %s the workspace of %llu bytes has changed",
              side ? "after" : "before", (unsigned long long)details.workspace_size);
    }
    return status;
}

static gemmepi_status layer_run_plan(const layer *l, gemmepi_linear_args *args, test_device *device,
                                     int backward) {
    gemmepi_plan *plan = NULL;
    char text[64];
    gemmepi_status status = layer_plan(l, device, backward, &plan);
    if (status)
        return status;
    CHECK(gemmepi_plan_explain(plan, text, sizeof text) > 0, "nothing to explain");
    if (l->own_workspace) {
        status = layer_run_between_guards(plan, args, device, backward);
    } else {
        status = gemmepi_plan_prepare(plan, device->stream);
        if (!status)
            status = layer_plan_run(plan, args, device, backward);
    }
    gemmepi_plan_destroy(plan);
    return status;
}

/* One direction, on what lies in the arena. */
static gemmepi_status layer_run(const layer *l, const image *m, test_device *device, int backward) {
    gemmepi_linear_args args = layer_args(l, m, device, backward);
    gemmepi_linear_desc desc = layer_given_desc(l);
    if (l->by_plan)
        return layer_run_plan(l, &args, device, backward);
    return backward ? gemmepi_linear_backward(device->context, &desc, &args, device->stream)
                    : gemmepi_linear(device->context, &desc, &args, device->stream);
}

/* Places, fills, uploads, runs, downloads. The image is to be freed in any case. */
static gemmepi_status layer_execute(layer *l, image *m, test_device *device, int backward) {
    gemmepi_status status;
    layer_place(l, m);
    if (l->promise)
        l->desc.alignment = image_alignment(l, m);
    layer_fill(l, m, backward);
    status = image_upload(m, device);
    if (!status)
        status = layer_run(l, m, device, backward);
    return status ? status : image_download(m, device);
}

/* >>verdicts */

static int unsupported_layers; /* refused as they may be */

static double image_got(const image *m, int t, int64_t item, int64_t i, int64_t j) {
    view v = m->r[t].at;
    v.data = m->after + m->data[t];
    return view_get(&v, item, i, j);
}

/* Takes an element of an output for seen: before has what after has. */
static void image_take(image *m, int t, int64_t item, int64_t i, int64_t j) {
    const view *v = &m->r[t].at;
    int64_t index = view_index(v, item, i, j);
    size_t size = oracle_format(v->dtype).size, at = m->data[t] + (size_t)index * size;
    if (size) {
        memcpy(m->before + at, m->after + at, size);
        return;
    }
    at = m->data[t] + (size_t)(index / 8);
    m->before[at] = (unsigned char)((m->before[at] & ~(1 << index % 8)) | (m->after[at] & (1 << index % 8)));
}

/* Every element of one output. */
static int image_holds_tensor(test_device *device, const layer *l, image *m, int backward, int t,
                              const expected *want) {
    const region *r = &m->r[t];
    int64_t item, i, j, wrong = 0, all = 0;
    char what[300] = "";
    for (item = 0; item < r->items; item++)
        for (i = 0; i < r->rows; i++)
            for (j = 0; j < r->columns; j++, all++) {
                double got = image_got(m, t, item, i, j);
                if (!oracle_accepts(r->at.dtype, got, want[all]) && wrong++ == 0)
                    snprintf(what, sizeof what, "item %lld (%lld, %lld): got %.17g, want %.17g +- %.3g",
                             (long long)item, (long long)i, (long long)j, got, want[all].value,
                             want[all].bound);
                image_take(m, t, item, i, j);
            }
    if (wrong) {
        char line[400];
        snprintf(line, sizeof line, "%s: %lld of %lld wrong, first at %s", layer_names[t], (long long)wrong,
                 (long long)all, what);
        layer_report(device, l, backward, line);
    }
    return wrong == 0;
}

/* Nothing has changed but outputs that image_holds_tensor has seen. */
static int image_is_untouched(test_device *device, const layer *l, image *m, int backward) {
    size_t i;
    int t, near = L_A;
    char what[200];
    if (memcmp(m->before, m->after, m->size) == 0)
        return 1;
    for (i = 0; m->before[i] == m->after[i]; i++) {
    }
    for (t = 0; t < L_COUNT; t++)
        if (layer_uses(l, t) && m->data[t] <= i && (!layer_uses(l, near) || m->data[t] >= m->data[near]))
            near = t;
    snprintf(what, sizeof what, "byte %lld from the start of %s (%lld bytes long) changed from %02x to %02x",
             (long long)i - (long long)m->data[near], layer_names[near], (long long)m->bytes[near],
             m->before[i], m->after[i]);
    layer_report(device, l, backward, what);
    return 0;
}

/* Every output and that nothing else has changed. m holds what was there before the run and after it. */
static int image_holds(test_device *device, const layer *l, image *m, int backward) {
    answers_of_layer want = layer_answers(l, m->r, backward);
    int t, good = 1;
    for (t = 0; t < L_COUNT; t++)
        if (want.of[t] != NULL)
            good = image_holds_tensor(device, l, m, backward, t, want.of[t]) && good;
    good = image_is_untouched(device, l, m, backward) && good;
    answers_of_layer_free(&want);
    return good;
}

/* Scales of items that a gradient sums over may be refused: as UNSUPPORTED, by name and before anything is written. */
static int is_unsupported(const layer *l, gemmepi_status status) {
    return l->may_be_unsupported && status == GEMMEPI_UNSUPPORTED && layer_batch(l) != 1 &&
           strstr(gemmepi_last_error(), ".scale.batch_stride") != NULL;
}

static void report_status(test_device *device, const layer *l, int backward, gemmepi_status status) {
    text_line what;
    what.length = 0;
    text_add(&what, "%s (%s)", gemmepi_status_name(status), gemmepi_last_error());
    layer_report(device, l, backward, what.text);
}

/* What is compiled into kernels. */
static uint64_t layer_key(const layer *l) {
    int numbers[L_COUNT + 3], t;
    for (t = 0; t < L_COUNT; t++)
        numbers[t] =
            t < L_SCALE_A ? (int)layer_dtype(l, t) : (int)layer_matrix(l, layer_scaled(t)).scale.mode;
    numbers[L_COUNT] = (int)l->desc.activation;
    numbers[L_COUNT + 1] = (int)l->desc.flags;
    numbers[L_COUNT + 2] = (int)l->desc.compute;
    return test_key(numbers, L_COUNT + 3);
}

/* The run succeeds and all is right. 1 too where TEST_SHARE leaves it out. */
static int direction_holds(test_device *device, layer *l, int backward) {
    image m;
    gemmepi_status status;
    int good;
    if (!test_takes(layer_key(l)))
        return 1;
    status = layer_execute(l, &m, device, backward);
    good = status == GEMMEPI_OK;
    if (good) {
        good = image_holds(device, l, &m, backward);
    } else if (is_unsupported(l, status)) {
        unsupported_layers++;
        good = image_download(&m, device) == GEMMEPI_OK && image_is_untouched(device, l, &m, backward);
    } else {
        report_status(device, l, backward, status);
    }
    image_free(&m);
    return good;
}

static int forward_holds(test_device *device, layer *l) {
    return direction_holds(device, l, 0);
}

static int backward_holds(test_device *device, layer *l) {
    return direction_holds(device, l, 1);
}

/* What backward reads and forward did not, but for what forward has made. */
static void layer_fill_rest(const layer *l, image *m) {
    int t;
    for (t = 0; t < L_COUNT; t++)
        if (layer_uses(l, t) && layer_reads(l, t, 1) && !layer_reads(l, t, 0) && t != L_PREACT)
            layer_fill_tensor(l, m, t);
}

/* Forward, then backward from what forward stored: preact is not drawn but made. */
static int both_hold(test_device *device, layer *l) {
    image m;
    gemmepi_status status;
    int good, backward;
    if (!test_takes(layer_key(l)))
        return 1;
    status = layer_execute(l, &m, device, 0);
    good = backward = status == GEMMEPI_OK && image_holds(device, l, &m, 0);
    if (good) {
        layer_fill_rest(l, &m);
        status = image_upload(&m, device);
        if (!status)
            status = layer_run(l, &m, device, 1);
        good = is_unsupported(l, status);
        if (!status)
            status = image_download(&m, device);
        good = good || (status == GEMMEPI_OK && image_holds(device, l, &m, 1));
    }
    if (status && !good)
        report_status(device, l, backward, status);
    image_free(&m);
    return good;
}

/* >>random layers */

static gemmepi_dtype dtype_of(rng *r, const gemmepi_dtype *dtypes, int count) {
    return dtypes[rng_below(r, count)];
}

/* Five seeds in a row share dtypes, activation and flags, of which each new choice may compile a kernel. */
static void random_layer_types(layer *l, rng *r) {
    static const gemmepi_dtype floats[] = {GEMMEPI_DTYPE_DEFAULT, GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_F16};
    static const gemmepi_dtype any[] = {GEMMEPI_F32, GEMMEPI_F16,  GEMMEPI_BF16,
                                        GEMMEPI_F64, GEMMEPI_E4M3, GEMMEPI_E5M2};
    static const gemmepi_dtype sides[] = {GEMMEPI_DTYPE_DEFAULT, GEMMEPI_F32,  GEMMEPI_BF16,
                                          GEMMEPI_F16,           GEMMEPI_E4M3, GEMMEPI_E5M2};
    gemmepi_linear_desc *d = &l->desc;
    d->a.dtype = dtype_of(r, any, 6);
    if (d->a.dtype == GEMMEPI_F64)
        return;
    if (rng_one_in(r, 3))
        d->compute = rng_one_in(r, 2) ? GEMMEPI_COMPUTE_F32 : GEMMEPI_COMPUTE_DEFAULT;
    if (d->a.dtype == GEMMEPI_F32 && rng_one_in(r, 3))
        d->compute = GEMMEPI_COMPUTE_TF32;
    if (d->a.dtype == GEMMEPI_F16 && rng_one_in(r, 3))
        d->compute = GEMMEPI_COMPUTE_F16;
    else if (rng_one_in(r, 3))
        d->b.dtype = dtype_of(r, any, 3);
    else if (oracle_is_fp8(d->a.dtype))
        d->b.dtype = dtype_of(r, any + 4, 2);
    if (rng_one_in(r, 2)) {
        d->y.dtype = dtype_of(r, floats, 4);
        d->dy.dtype = dtype_of(r, sides, 6);
        d->da.dtype = dtype_of(r, floats, 4);
        d->db.dtype = dtype_of(r, floats, 4);
        d->bias.dtype = dtype_of(r, floats, 4);
        d->dbias.dtype = dtype_of(r, floats, 4);
        if (!layer_uses(l, L_BIAS)) /* it has no dtype that dbias could follow */
            d->bias.dtype = GEMMEPI_DTYPE_DEFAULT;
        d->g_dtype = dtype_of(r, floats, 4);
        if (!layer_has_mask(l))
            d->preact.dtype = dtype_of(r, floats, 4);
    }
}

static void random_layer_flags(layer *l, rng *r) {
    int asked = 1 + rng_below(r, 7);
    gemmepi_linear_desc *d = &l->desc;
    d->activation = activation_codes[rng_below(r, ACTIVATION_COUNT)];
    if (rng_one_in(r, 3))
        d->activation |= GEMMEPI_GATED | (rng_one_in(r, 2) ? GEMMEPI_GATE_FIRST : 0);
    if (rng_one_in(r, 2))
        asked = 7;
    d->flags = (uint64_t)asked * GEMMEPI_LINEAR_DA;
    d->flags |= (uint64_t)(asked & rng_below(r, 8) & rng_below(r, 8)) * GEMMEPI_ACCUMULATE_DA;
    if (rng_one_in(r, 2))
        d->flags |= GEMMEPI_LINEAR_BIAS;
    if (layer_needs_p(l))
        d->flags |= rng_one_in(r, 2) ? GEMMEPI_LINEAR_SAVED : GEMMEPI_LINEAR_RECOMPUTE;
    if (activation_has_parameter(layer_activation(l)) && rng_one_in(r, 2)) {
        static const double some[] = {0, -0.5, -0.1, 0.3, 1.1};
        d->has_parameter = 1;
        d->activation_parameter = some[rng_below(r, 5)];
    }
}

static int64_t random_layer_size(rng *r) {
    static const int64_t edges[] = {1, 2, 8, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 144, 200};
    if (rng_one_in(r, 50))
        return 0;
    return rng_one_in(r, 3) ? edges[rng_below(r, 16)] : 1 + rng_below(r, 40);
}

static void random_layer_sizes(layer *l, rng *r) {
    gemmepi_linear_desc *d = &l->desc;
    d->m = random_layer_size(r);
    d->n = random_layer_size(r);
    d->k = random_layer_size(r);
    d->order = (gemmepi_order)rng_one_in(r, 3);
    if (layer_is_gated(l) && d->order == GEMMEPI_ROW_MAJOR)
        d->n += d->n % 2;
    if (layer_is_gated(l) && d->order == GEMMEPI_COLUMN_MAJOR)
        d->m += d->m % 2;
}

static void random_layer_batch(layer *l, rng *r) {
    int items = rng_one_in(r, 2), weight = layer_weight(l), data = weight == L_B ? L_A : L_B, t;
    gemmepi_linear_desc *d = &l->desc;
    if (rng_one_in(r, 3))
        return;
    layer_spread(l, rng_one_in(r, 20) ? 0 : 1 + rng_below(r, 4), items,
                 rng_one_in(r, 2) ? rng_below(r, 9) : 0);
    for (t = 0; t <= L_DB; t++) /* a step of nothing would mean that all items are the same */
        if (t != L_BIAS && (items || (t != layer_weight(l) && t != layer_gradient(layer_weight(l)))) &&
            layer_matrix_at(l, t)->batch_stride == 0)
            layer_spread(l, d->batch, items, 128);
    if (rng_one_in(r, 4) && d->m && d->n && d->k) {
        layer_interleave(l, data, rng_below(r, 3));
        layer_interleave(l, layer_gradient(data), rng_below(r, 3));
    }
    if (items && rng_one_in(r, 4) && d->m && d->n && d->k) {
        layer_interleave(l, weight, rng_below(r, 3));
        layer_interleave(l, layer_gradient(weight), rng_below(r, 3));
    }
    if (rng_one_in(r, 6))
        layer_matrix_at(l, data)->batch_stride = 0;
    if (layer_matrix_at(l, data)->batch_stride == 0 && items && rng_one_in(r, 2))
        layer_matrix_at(l, layer_gradient(data))->batch_stride = 0;
    if (rng_one_in(r, 6))
        d->dy.batch_stride = 0;
    if (items && rng_one_in(r, 4))
        d->bias.batch_stride = d->dbias.batch_stride = 0;
}

static void random_layer_scales(layer *l, rng *r) {
    static const int scaled[] = {L_A, L_B, L_DY};
    int i;
    for (i = 0; i < 3; i++) {
        int t = scaled[i], own = l->desc.batch > 1 && rng_one_in(r, 2);
        int is_shared = t != L_DY && layer_matrix_at(l, layer_gradient(t))->batch_stride == 0;
        gemmepi_scale_mode mode = (gemmepi_scale_mode)(t == L_DY ? rng_below(r, 2) : rng_below(r, 5));
        if (oracle_is_fp8(layer_dtype(l, t)))
            layer_scale(l, t, mode, own && !is_shared ? rng_below(r, 2) * rng_below(r, 5) : -1);
    }
}

static void random_layer_alignment(layer *l, rng *r) {
    int kind = rng_below(r, 4), t;
    for (t = 0; t < L_SCALE_A; t++) {
        int size = (int)oracle_format(layer_dtype(l, t)).size, unit = kind == 0 || !size ? 1 : 16 / size;
        l->shift[t] = kind < 2 ? rng_below(r, 8) * unit : 0;
    }
    l->by_plan = rng_one_in(r, 2);
    l->own_workspace = rng_one_in(r, 2);
    l->promise = l->by_plan || rng_one_in(r, 2);
    l->bare = rng_below(r, 3);
    l->may_be_unsupported = 1;
}

static int layer_has_f16(const layer *l) {
    int t, has = layer_g(l) == GEMMEPI_F16;
    for (t = 0; t < L_SCALE_A; t++)
        has = has || layer_dtype(l, t) == GEMMEPI_F16;
    return has;
}

static layer layer_random(uint64_t seed) {
    rng kernel = rng_seeded(~(seed / 5)), r = rng_seeded(seed);
    layer l = layer_plain(GEMMEPI_F32, 1, 1, 1, GEMMEPI_NONE, 0);
    l.seed = seed;
    l.values = rng_one_in(&r, 4) ? WHOLE : rng_one_in(&r, 4) ? NO_SIGNS : ANY;
    random_layer_flags(&l, &kernel);
    random_layer_types(&l, &kernel);
    if (layer_activation(&l) == GEMMEPI_SQUARED_RELU && layer_has_f16(&l)) /* would leave its range */
        l.desc.activation ^= GEMMEPI_SQUARED_RELU ^ GEMMEPI_SILU;
    random_layer_sizes(&l, &r);
    l.desc.a.transposed = rng_one_in(&r, 3);
    l.desc.b.transposed = rng_one_in(&r, 3);
    if (rng_one_in(&r, 3)) { /* may be said, and changes nothing */
        l.desc.da.transposed = l.desc.a.transposed;
        l.desc.db.transposed = l.desc.b.transposed;
    }
    if (rng_one_in(&r, 2))
        layer_pad(&l, rng_one_in(&r, 2) ? 8 : rng_below(&r, 9));
    random_layer_batch(&l, &r);
    random_layer_scales(&l, &r);
    random_layer_alignment(&l, &r);
    return l;
}

#endif
