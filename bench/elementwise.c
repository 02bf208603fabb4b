/* The rows of the element-wise operations: each a planned run against a plain copy of as many bytes on the device; then
   what a run costs the host, against an empty launch. Part of main.c. */
#include "bench.h"

/* >>layouts of tensors of n elements */

#define REST 0 /* the extent that the elements leave to this axis */

typedef struct layout {
    const char *order; /* the axes as they lie in memory, the innermost last */
    int64_t extent[3];
    int64_t times, less; /* it has n times `times` / `less` elements; 0: 1 */
    int64_t step;        /* elements from one to the next along the innermost axis; 0: 1 */
} layout;

enum {
    ABSENT,
    LINES,
    LINES_TWICE,
    LINES_STEP_2,
    ONE_LINE,
    NARROW,
    FIRST,
    FIRST_TWICE,
    MIDDLE,
    MIDDLE_TWICE,
    LONG,
    LONG_TURNED,
    LONG_EXCHANGED,
    INNER,
    INNER_TURNED,
    OUTER,
    OUTER_TURNED,
    TINY,
    TINY_TURNED,
    IMAGES,
    IMAGES_TURNED,
    SMALL,
    SMALL_TURNED,
    ONE,
    PER_COLUMN,
    PER_NARROW_COLUMN,
    PER_LINE,
    PER_VECTOR,
    PER_BLOCK
};

/* n is a multiple of 2^18, and of 2^19 and 2^20 in types of 16 and 8 bits; of the small tensors it is 2^16. What does
   not fill an image is left out */
static const layout layouts[] = {
    [LINES] = {"01", {REST, 4096}, 0, 0, 0},
    [LINES_TWICE] = {"01", {REST, 8192}, 2, 0, 0},
    [LINES_STEP_2] = {"01", {REST, 4096}, 0, 0, 2},
    [ONE_LINE] = {"01", {1, 4096}, 0, 0, 0},
    [NARROW] = {"01", {REST, 1024}, 0, 0, 0},
    [FIRST] = {"012", {1, REST, 4096}, 0, 0, 0},
    [FIRST_TWICE] = {"012", {2, REST, 4096}, 2, 0, 0},
    [MIDDLE] = {"012", {16, REST, 1024}, 0, 0, 0},
    [MIDDLE_TWICE] = {"012", {16, REST, 1024}, 2, 0, 0},
    [LONG] = {"01", {8192, REST}, 0, 0, 0},
    [LONG_TURNED] = {"10", {8192, REST}, 0, 0, 0},
    [LONG_EXCHANGED] = {"01", {REST, 8192}, 0, 0, 0},
    [INNER] = {"012", {64, 1024, REST}, 0, 0, 0},
    [INNER_TURNED] = {"021", {64, 1024, REST}, 0, 0, 0},
    [OUTER] = {"012", {1024, 64, REST}, 0, 0, 0},
    [OUTER_TURNED] = {"210", {1024, 64, REST}, 0, 0, 0},
    [TINY] = {"012", {REST, 32, 32}, 0, 0, 0},
    [TINY_TURNED] = {"021", {REST, 32, 32}, 0, 0, 0},
    [IMAGES] = {"012", {REST, 3, 224 * 224}, 0, 0, 0},
    [IMAGES_TURNED] = {"021", {REST, 3, 224 * 224}, 0, 0, 0},
    [SMALL] = {"01", {256, REST}, 0, 0, 0},
    [SMALL_TURNED] = {"10", {256, REST}, 0, 0, 0},
    [ONE] = {"0", {1}, 0, 0, 0},
    [PER_COLUMN] = {"0", {4096}, 0, 0, 0},
    [PER_NARROW_COLUMN] = {"0", {1024}, 0, 0, 0},
    [PER_LINE] = {"0", {REST}, 0, 4096, 0},
    [PER_VECTOR] = {"0", {REST}, 0, 128, 0},
    [PER_BLOCK] = {"0", {REST}, 0, 128 * 128, 0},
};

/* >>the forms of operations */

/* Inputs, then outputs. */
enum {
    T_A,
    T_B,
    T_W,
    T_DY,
    T_SCALE,
    T_Y,
    T_DA,
    T_DB,
    T_DW,
    T_Y_TRANSPOSED,
    T_Y_SCALE,
    T_AMAX,
    T_COUNT,
    T_FIRST_OUTPUT = T_Y
};

#define BIT(activation) (1ull << (activation)) /* their codes are below 64 */
#define NO_ACTIVATION   BIT(GEMMEPI_NONE)
#define ALL             (~NO_ACTIVATION)
#define SLOW            (BIT(GEMMEPI_GELU_ERF) | BIT(GEMMEPI_MISH) | BIT(GEMMEPI_SOFTPLUS))
#define GATES                                                                                \
    (BIT(GEMMEPI_SIGMOID) | BIT(GEMMEPI_RELU) | BIT(GEMMEPI_SILU) | BIT(GEMMEPI_GELU_TANH) | \
     BIT(GEMMEPI_GELU_ERF))

/* The least ratio that is wanted, in hundredths. CONTIGUOUS is less for slow activations in 16 bits. */
enum {
    NO_FLOOR = 0,
    CONTIGUOUS = 92,
    CONTIGUOUS_SLOW = 80,
    SPLIT = 80,
    STRIDED = 80,
    TURNED = 70,
    SUMS = 85,
    AMAX = 85
};
enum { MOST_OF_EMPTY = 115 }; /* of the host's cost */

typedef struct form {
    const char *group, *name; /* the name follows the activation's */
    gemmepi_operation operation;
    uint64_t activations; /* BITs, a row for each */
    int axis;
    gemmepi_scale_mode mode;
    uint64_t flags;
    gemmepi_dtype from, to; /* 0: rows of F32, F16 and BF16 */
    int bound;
    unsigned char layouts[T_COUNT];
} form;

#define ACTIVATION          GEMMEPI_OP_ACTIVATION
#define ACTIVATION_BACKWARD GEMMEPI_OP_ACTIVATION_BACKWARD
#define GATED               GEMMEPI_OP_GATED
#define GATED_BACKWARD      GEMMEPI_OP_GATED_BACKWARD
#define OF_SILU             BIT(GEMMEPI_SILU)

/* clang-format off */
static const form speed_forms[] = {
    {"activations", "", ACTIVATION, ALL, .bound = CONTIGUOUS,
     .layouts = {[T_A] = LINES, [T_Y] = LINES}},
    {"activations", "backward", ACTIVATION_BACKWARD, ALL, .bound = CONTIGUOUS,
     .layouts = {[T_A] = LINES, [T_DY] = LINES, [T_DA] = LINES}},

    {"gates", "gate of two tensors", GATED, GATES, .bound = CONTIGUOUS,
     .layouts = {[T_A] = LINES, [T_B] = LINES, [T_Y] = LINES}},
    {"gates", "gate of last axis", GATED, GATES, .axis = -1, .bound = SPLIT,
     .layouts = {[T_A] = LINES_TWICE, [T_Y] = LINES}},
    {"gates", "gate of first axis", GATED, GATES, .axis = 0, .bound = SPLIT,
     .layouts = {[T_A] = FIRST_TWICE, [T_Y] = FIRST}},
    {"gates", "gate of middle axis", GATED, GATES, .axis = 1, .bound = SPLIT,
     .layouts = {[T_A] = MIDDLE_TWICE, [T_Y] = MIDDLE}},
    {"gates", "gate backward two tensors", GATED_BACKWARD, GATES, .bound = CONTIGUOUS,
     .layouts = {[T_A] = LINES, [T_B] = LINES, [T_DY] = LINES, [T_DA] = LINES, [T_DB] = LINES}},
    {"gates", "gate backward last axis", GATED_BACKWARD, GATES, .axis = -1, .bound = SPLIT,
     .layouts = {[T_A] = LINES_TWICE, [T_DY] = LINES, [T_DA] = LINES_TWICE}},
    {"gates", "gate backward first axis", GATED_BACKWARD, GATES, .axis = 0, .bound = SPLIT,
     .layouts = {[T_A] = FIRST_TWICE, [T_DY] = FIRST, [T_DA] = FIRST_TWICE}},
    {"gates", "gate backward middle axis", GATED_BACKWARD, GATES, .axis = 1, .bound = SPLIT,
     .layouts = {[T_A] = MIDDLE_TWICE, [T_DY] = MIDDLE, [T_DA] = MIDDLE_TWICE}},

    {"lerp", "lerp by a number", GEMMEPI_OP_LERP, NO_ACTIVATION, .bound = CONTIGUOUS,
     .layouts = {[T_A] = LINES, [T_B] = LINES, [T_Y] = LINES}},
    {"lerp", "lerp by a tensor", GEMMEPI_OP_LERP, NO_ACTIVATION, .bound = CONTIGUOUS,
     .layouts = {[T_A] = LINES, [T_B] = LINES, [T_W] = LINES, [T_Y] = LINES}},
    {"lerp", "lerp backward by a number", GEMMEPI_OP_LERP_BACKWARD, NO_ACTIVATION, .bound = CONTIGUOUS,
     .layouts = {[T_DY] = LINES, [T_DA] = LINES, [T_DB] = LINES}},
    {"lerp", "lerp backward by a tensor", GEMMEPI_OP_LERP_BACKWARD, NO_ACTIVATION, .bound = CONTIGUOUS,
     .layouts = {[T_A] = LINES, [T_B] = LINES, [T_W] = LINES, [T_DY] = LINES,
                 [T_DA] = LINES, [T_DB] = LINES, [T_DW] = LINES}},
    {"lerp", "lerp by a row for all", GEMMEPI_OP_LERP, NO_ACTIVATION,
     .layouts = {[T_A] = LINES, [T_B] = LINES, [T_W] = ONE_LINE, [T_Y] = LINES}},

    {"strides", "from stride 2", ACTIVATION, OF_SILU, .bound = STRIDED,
     .layouts = {[T_A] = LINES_STEP_2, [T_Y] = LINES}},
    {"strides", "to stride 2", ACTIVATION, OF_SILU, .bound = STRIDED,
     .layouts = {[T_A] = LINES, [T_Y] = LINES_STEP_2}},
    {"strides", "transposed", ACTIVATION, OF_SILU, .bound = TURNED,
     .layouts = {[T_A] = LONG_TURNED, [T_Y] = LONG}},
    {"strides", "axes 0 2 1", ACTIVATION, OF_SILU, .bound = TURNED,
     .layouts = {[T_A] = INNER_TURNED, [T_Y] = INNER}},
    {"strides", "axes 2 1 0", ACTIVATION, OF_SILU, .bound = TURNED,
     .layouts = {[T_A] = OUTER_TURNED, [T_Y] = OUTER}},
    {"strides", "transposed 32 x 32 matrices", ACTIVATION, OF_SILU, .from = GEMMEPI_F32, .to = GEMMEPI_F32,
     .layouts = {[T_A] = TINY_TURNED, [T_Y] = TINY}},
    {"strides", "transposed 32 x 32 matrices", ACTIVATION, OF_SILU, .from = GEMMEPI_BF16, .to = GEMMEPI_BF16,
     .layouts = {[T_A] = TINY_TURNED, [T_Y] = TINY}},
    {"strides", "channels-last images", ACTIVATION, OF_SILU, .from = GEMMEPI_F32, .to = GEMMEPI_F32,
     .layouts = {[T_A] = IMAGES_TURNED, [T_Y] = IMAGES}},
    {"strides", "channels-last images", ACTIVATION, OF_SILU, .from = GEMMEPI_BF16, .to = GEMMEPI_BF16,
     .layouts = {[T_A] = IMAGES_TURNED, [T_Y] = IMAGES}},

    {"bias_grad", "sums of 4096 columns", GEMMEPI_OP_BIAS_GRAD, NO_ACTIVATION, .axis = 1, .bound = SUMS,
     .layouts = {[T_A] = LINES, [T_Y] = PER_COLUMN}},
    {"bias_grad", "sums of 1024 columns", GEMMEPI_OP_BIAS_GRAD, NO_ACTIVATION, .axis = 1, .bound = SUMS,
     .layouts = {[T_A] = NARROW, [T_Y] = PER_NARROW_COLUMN}},
    {"bias_grad", "sums of rows of 4096", GEMMEPI_OP_BIAS_GRAD, NO_ACTIVATION, .axis = 0, .bound = SUMS,
     .layouts = {[T_A] = LINES, [T_Y] = PER_LINE}},

    {"cast", "cast with amax", GEMMEPI_OP_CAST, NO_ACTIVATION, .flags = GEMMEPI_CAST_AMAX,
     .from = GEMMEPI_F32, .to = GEMMEPI_BF16, .bound = AMAX,
     .layouts = {[T_A] = LINES, [T_Y] = LINES, [T_AMAX] = ONE}},
    {"cast", "cast by a scale with amax", GEMMEPI_OP_CAST, NO_ACTIVATION, .mode = GEMMEPI_SCALE_TENSOR,
     .flags = GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX, .from = GEMMEPI_BF16, .to = GEMMEPI_E4M3, .bound = AMAX,
     .layouts = {[T_A] = LINES, [T_SCALE] = ONE, [T_Y] = LINES, [T_AMAX] = ONE}},
    {"cast", "cast by scales of rows", GEMMEPI_OP_CAST, NO_ACTIVATION, .mode = GEMMEPI_SCALE_OUTER,
     .flags = GEMMEPI_CAST_SCALE, .from = GEMMEPI_F32, .to = GEMMEPI_E4M3,
     .layouts = {[T_A] = LINES, [T_SCALE] = PER_LINE, [T_Y] = LINES}},
    {"cast", "cast finding scales of vectors", GEMMEPI_OP_CAST, NO_ACTIVATION, .mode = GEMMEPI_SCALE_VECTOR_128,
     .flags = GEMMEPI_CAST_Y_SCALE, .from = GEMMEPI_BF16, .to = GEMMEPI_E4M3,
     .layouts = {[T_A] = LINES, [T_Y] = LINES, [T_Y_SCALE] = PER_VECTOR}},
    {"cast", "cast finding scales of blocks", GEMMEPI_OP_CAST, NO_ACTIVATION, .mode = GEMMEPI_SCALE_BLOCK_128,
     .flags = GEMMEPI_CAST_Y_SCALE, .from = GEMMEPI_BF16, .to = GEMMEPI_E4M3,
     .layouts = {[T_A] = LINES, [T_Y] = LINES, [T_Y_SCALE] = PER_BLOCK}},
    {"cast", "cast finding a scale", GEMMEPI_OP_CAST, NO_ACTIVATION, .mode = GEMMEPI_SCALE_TENSOR,
     .flags = GEMMEPI_CAST_Y_SCALE, .from = GEMMEPI_BF16, .to = GEMMEPI_E4M3,
     .layouts = {[T_A] = LINES, [T_Y] = LINES, [T_Y_SCALE] = ONE}},
    {"cast", "cast to both layouts", GEMMEPI_OP_CAST, NO_ACTIVATION, .mode = GEMMEPI_SCALE_TENSOR,
     .flags = GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX, .from = GEMMEPI_BF16, .to = GEMMEPI_E4M3,
     .layouts = {[T_A] = LONG, [T_SCALE] = ONE, [T_Y] = LONG, [T_Y_TRANSPOSED] = LONG_EXCHANGED, [T_AMAX] = ONE}},
    {"cast", "cast to both layouts finding a scale", GEMMEPI_OP_CAST, NO_ACTIVATION, .mode = GEMMEPI_SCALE_TENSOR,
     .flags = GEMMEPI_CAST_Y_SCALE, .from = GEMMEPI_BF16, .to = GEMMEPI_E4M3,
     .layouts = {[T_A] = LONG, [T_Y] = LONG, [T_Y_TRANSPOSED] = LONG_EXCHANGED, [T_Y_SCALE] = ONE}},
    {"cast", "cast", GEMMEPI_OP_CAST, NO_ACTIVATION, .from = GEMMEPI_E4M3, .to = GEMMEPI_BF16,
     .layouts = {[T_A] = LINES, [T_Y] = LINES}},
};

#define HOST_COST "host cost of a call"
static const form host_forms[] = {
    {HOST_COST, "call", ACTIVATION, OF_SILU, .from = GEMMEPI_F32, .to = GEMMEPI_F32, .bound = MOST_OF_EMPTY,
     .layouts = {[T_A] = LINES, [T_Y] = LINES}},
    {HOST_COST, "call gate of last axis", GATED, OF_SILU, .axis = -1, .from = GEMMEPI_BF16, .to = GEMMEPI_BF16,
     .bound = MOST_OF_EMPTY, .layouts = {[T_A] = LINES_TWICE, [T_Y] = LINES}},
    {HOST_COST, "call transposed", ACTIVATION, OF_SILU, .from = GEMMEPI_F32, .to = GEMMEPI_F32,
     .bound = MOST_OF_EMPTY, .layouts = {[T_A] = SMALL_TURNED, [T_Y] = SMALL}},
    {HOST_COST, "call sums of 1024 columns", GEMMEPI_OP_BIAS_GRAD, NO_ACTIVATION, .axis = 1, .from = GEMMEPI_F32,
     .to = GEMMEPI_F32, .bound = MOST_OF_EMPTY, .layouts = {[T_A] = NARROW, [T_Y] = PER_NARROW_COLUMN}},
};
/* clang-format on */

static const char *const dtype_names[BENCH_DTYPES] = {
    [GEMMEPI_F32] = "F32", [GEMMEPI_F16] = "F16", [GEMMEPI_BF16] = "BF16", [GEMMEPI_E4M3] = "E4M3"};

static const gemmepi_dtype floats[] = {GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_BF16};

/* >>one row's tensors */

typedef struct recipe {
    const form *form;
    bench_kind kind;
    const gpi__activation_row *activation;
    gemmepi_dtype from, to;
} recipe;

enum { ALIGNMENT = 256, SECTOR = 32, SMALL_ELEMENTS = 1 << 16 };

typedef struct work {
    const recipe *recipe;
    gemmepi_tensor tensors[T_COUNT]; /* rank 0: it has none */
    int64_t shapes[T_COUNT][3], strides[T_COUNT][3];
    size_t places[T_COUNT]; /* from the start of the row's memory */
    size_t end;             /* of all tensors */
    double bytes;           /* of the sectors that must be touched */
    char *memory;
    gemmepi_plan *plan;
    gemmepi_elementwise_args args;
} work;

static gemmepi_dtype dtype_of(const recipe *r, int t) {
    if (t == T_SCALE || t == T_Y_SCALE || t == T_AMAX)
        return GEMMEPI_F32;
    return t == T_Y || t == T_Y_TRANSPOSED ? r->to : r->from;
}

static void set_shape(int64_t *shape, const layout *l, int64_t n) {
    int64_t left = n * (l->times ? l->times : 1) / (l->less ? l->less : 1);
    size_t i, rank = strlen(l->order);
    for (i = 0; i < rank; i++)
        if (l->extent[i] != REST)
            left /= l->extent[i];
    for (i = 0; i < rank; i++)
        shape[i] = l->extent[i] == REST ? left : l->extent[i];
}

/* Returns the elements from the first to behind the last. */
static int64_t set_strides(int64_t *stride, const int64_t *shape, const layout *l) {
    int64_t next = l->step ? l->step : 1;
    size_t i;
    for (i = strlen(l->order); i-- > 0;) {
        int axis = l->order[i] - '0';
        stride[axis] = next;
        next *= shape[axis];
    }
    return next;
}

/* Bytes of the sectors that hold the tensor's elements. From the innermost axis on: what an axis repeats grows into one
   stretch where the gaps are too small to hold a sector, else there are so many of it. */
static double sector_bytes(const layout *l, const gemmepi_tensor *t) {
    int64_t element = (int64_t)gemmepi_dtype_size(t->dtype), stretch = element;
    double pieces = 1;
    size_t i;
    for (i = strlen(l->order); i-- > 0;) {
        int axis = l->order[i] - '0';
        int64_t stride = t->stride[axis] * element;
        if (stride - stretch < SECTOR)
            stretch += (t->shape[axis] - 1) * stride;
        else
            pieces *= (double)t->shape[axis];
    }
    return pieces * (double)((stretch + SECTOR - 1) / SECTOR * SECTOR);
}

static void lay_out(work *w, const recipe *r, size_t size) {
    int64_t n = r->kind == BENCH_SPEED ? (int64_t)(size / gemmepi_dtype_size(r->from)) : SMALL_ELEMENTS;
    int t;
    memset(w, 0, sizeof *w);
    w->recipe = r;
    for (t = 0; t < T_COUNT; t++) {
        const layout *l = layouts + r->form->layouts[t];
        gemmepi_tensor *tensor = w->tensors + t;
        if (!l->order)
            continue;
        set_shape(w->shapes[t], l, n);
        tensor->dtype = dtype_of(r, t);
        tensor->rank = (int)strlen(l->order);
        tensor->shape = w->shapes[t];
        tensor->stride = w->strides[t];
        tensor->bytes =
            (size_t)set_strides(w->strides[t], w->shapes[t], l) * gemmepi_dtype_size(tensor->dtype);
        w->places[t] = w->end;
        w->end += (tensor->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        w->bytes += sector_bytes(l, tensor);
    }
}

/* A copy moves twice its size. */
static size_t copied_bytes(const work *w) {
    return ((size_t)w->bytes / 2 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The tensors, and where the copy goes: it takes what the tensors hold. */
static size_t memory_of(const bench_row *row, size_t size) {
    work w;
    lay_out(&w, row->recipe, size);
    return w.end + copied_bytes(&w);
}

/* >>one row's runs */

static const gemmepi_tensor *tensor_of(const work *w, int t) {
    return w->tensors[t].rank ? w->tensors + t : NULL;
}

static void *data_of(const work *w, int t) {
    return w->tensors[t].rank ? w->memory + w->places[t] : NULL;
}

static gemmepi_elementwise_desc describe(const work *w) {
    const form *f = w->recipe->form;
    gemmepi_elementwise_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.operation = f->operation;
    desc.activation = w->recipe->activation->code;
    desc.axis = f->axis;
    desc.scale_mode = f->mode;
    desc.flags = f->flags;
    desc.a = tensor_of(w, T_A);
    desc.b = tensor_of(w, T_B);
    desc.w = tensor_of(w, T_W);
    desc.dy = tensor_of(w, T_DY);
    desc.y = tensor_of(w, T_Y);
    desc.da = tensor_of(w, T_DA);
    desc.db = tensor_of(w, T_DB);
    desc.dw = tensor_of(w, T_DW);
    desc.y_transposed = tensor_of(w, T_Y_TRANSPOSED);
    return desc;
}

static void set_arguments(work *w) {
    gemmepi_elementwise_args *args = &w->args;
    args->a = data_of(w, T_A);
    args->b = data_of(w, T_B);
    args->w = data_of(w, T_W);
    args->dy = data_of(w, T_DY);
    args->scale = data_of(w, T_SCALE);
    args->y = data_of(w, T_Y);
    args->da = data_of(w, T_DA);
    args->db = data_of(w, T_DB);
    args->dw = data_of(w, T_DW);
    args->y_transposed = data_of(w, T_Y_TRANSPOSED);
    args->y_scale = data_of(w, T_Y_SCALE);
    args->amax = data_of(w, T_AMAX);
    args->weight = w->tensors[T_W].rank ? 0 : 0.3;
}

/* Inputs random, scales 64, outputs 0xff, which is a NaN that no operation makes. */
static int fill_tensors(bench *b, work *w) {
    int t;
    for (t = 0; t < T_COUNT; t++) {
        const gemmepi_tensor *tensor = w->tensors + t;
        int filled = 1;
        if (tensor->rank && t >= T_FIRST_OUTPUT)
            filled = bench_set_bytes(b, data_of(w, t), 0xff, tensor->bytes);
        else if (tensor->rank && t == T_SCALE)
            filled = bench_set_floats(b, data_of(w, t), 64, tensor->bytes / sizeof(float));
        else if (tensor->rank)
            filled = bench_fill(b, data_of(w, t), tensor->dtype, tensor->bytes, 3 * t);
        if (!filled)
            return 0;
    }
    return 1;
}

static int run_plan(bench *b, void *user) {
    const work *w = user;
    return bench_ok(b, gemmepi_run_elementwise(w->plan, &w->args, b->stream));
}

static int run_copy(bench *b, void *user) {
    const work *w = user;
    return bench_copy(b, w->memory + w->end, w->memory, copied_bytes(w));
}

static int run_empty(bench *b, void *user) {
    (void)user;
    return bench_launch_empty(b);
}

static int64_t place_of_element(const gemmepi_tensor *t, int64_t index) {
    int64_t place = 0;
    int axis;
    for (axis = t->rank; axis-- > 0; index /= t->shape[axis])
        place += index % t->shape[axis] * t->stride[axis];
    return place;
}

static int is_poison(const unsigned char *element, size_t size) {
    while (size-- > 0)
        if (element[size] != 0xff)
            return 0;
    return 1;
}

/* Have the runs written this output? Looks at elements from the first to the last. */
static int check_output(bench *b, const work *w, int t) {
    enum { SAMPLES = 33 };
    const gemmepi_tensor *tensor = w->tensors + t;
    size_t size = gemmepi_dtype_size(tensor->dtype);
    unsigned char element[8];
    int64_t count = 1;
    int i;
    for (i = 0; i < tensor->rank; i++)
        count *= tensor->shape[i];
    for (i = 0; i < SAMPLES; i++) {
        int64_t index = (count - 1) / (SAMPLES - 1) * i + (count - 1) % (SAMPLES - 1) * i / (SAMPLES - 1);
        const char *at = (const char *)data_of(w, t) + (size_t)place_of_element(tensor, index) * size;
        if (!bench_ok(b, gemmepi_download(b->context, element, at, size, b->stream)))
            return 0;
        if (is_poison(element, size))
            return bench_fail(b, "element %lld of %lld of an output was not written", (long long)index,
                              (long long)count);
    }
    return 1;
}

static int check_outputs(bench *b, void *user) {
    const work *w = user;
    int t;
    for (t = T_FIRST_OUTPUT; t < T_COUNT; t++)
        if (w->tensors[t].rank && !check_output(b, w, t))
            return 0;
    return 1;
}

static int make_plan(bench *b, work *w, int *launches) {
    gemmepi_elementwise_desc desc = describe(w);
    gemmepi_plan_details details;
    double began = bench_seconds();
    int made = bench_ok(b, gemmepi_plan_elementwise(b->context, &desc, &w->plan)) &&
               bench_ok(b, gemmepi_plan_prepare(w->plan, b->stream)) &&
               bench_ok(b, gemmepi_plan_info(w->plan, &details));
    b->plan_seconds += bench_seconds() - began;
    if (made)
        *launches = details.launches;
    return made;
}

static void close_work(bench_job *job) {
    work *w = job->user;
    gemmepi_plan_destroy(w->plan);
    free(w);
}

static int open_work(bench *b, const bench_row *row, bench_job *job) {
    work *w = malloc(sizeof *w);
    if (!w)
        return bench_fail(b, "out of memory");
    lay_out(w, row->recipe, b->size);
    w->memory = b->memory;
    job->user = w;
    job->calls[BENCH_OURS] = run_plan;
    job->calls[BENCH_OTHER] = row->kind == BENCH_SPEED ? run_copy : run_empty;
    job->check = check_outputs;
    job->bytes = w->bytes;
    set_arguments(w);
    if (make_plan(b, w, &job->launches) && fill_tensors(b, w))
        return 1;
    close_work(job);
    return 0;
}

/* >>the rows */

static int bound_of(const recipe *r) {
    int slow = SLOW & BIT(r->activation->code) && r->from != GEMMEPI_F32;
    return r->form->bound == CONTIGUOUS && slow ? CONTIGUOUS_SLOW : r->form->bound;
}

static void add_row(bench_list *list, const recipe *r) {
    static recipe recipes[BENCH_MOST_ROWS];
    bench_row *row = list->rows + list->count;
    const form *f = r->form;
    const char *activation = r->activation->code == GEMMEPI_NONE ? "" : r->activation->name;
    if (list->count == BENCH_MOST_ROWS)
        return;
    recipes[list->count] = *r;
    memset(row, 0, sizeof *row);
    row->kind = r->kind;
    row->group = f->group;
    snprintf(row->name, sizeof row->name, "%s%s%s", activation, activation[0] && f->name[0] ? " " : "",
             f->name);
    snprintf(row->dtype, sizeof row->dtype, "%s%s%s", dtype_names[r->from], r->from == r->to ? "" : "->",
             r->from == r->to ? "" : dtype_names[r->to]);
    row->bound = bound_of(r) / 100.0;
    row->recipe = recipes + list->count++;
    row->memory = memory_of;
    row->open = open_work;
    row->close = close_work;
}

static void add_form(bench_list *list, const form *f, bench_kind kind) {
    recipe r = {NULL, BENCH_SPEED, NULL, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_DTYPE_DEFAULT};
    int i, j;
    r.form = f;
    r.kind = kind;
    for (j = 0; j < COUNT(gpi__activations); j++)
        for (i = 0; i < (f->from ? 1 : COUNT(floats)); i++) {
            r.from = f->from ? f->from : floats[i];
            r.to = f->from ? f->to : floats[i];
            r.activation = &gpi__activations[j];
            if (f->activations & BIT(r.activation->code))
                add_row(list, &r);
        }
}

static void elementwise_rows(bench_list *list) {
    int i;
    for (i = 0; i < COUNT(speed_forms); i++)
        add_form(list, speed_forms + i, BENCH_SPEED);
    for (i = 0; i < COUNT(host_forms); i++)
        add_form(list, host_forms + i, BENCH_HOST_COST);
}
