/* The opponent's kernels, as text for NVRTC: the pass over a product P in 16 bits that makes of it what the epilogue asks for, and
   the sums that a bias gradient is. Written for one problem, whose sizes are constants. Element-wise work is in F32; a thread
   has eight elements, in loads and stores as wide as all lines are aligned. */
#ifndef GEMMEPI_BENCH_PASS_SOURCE_H
#define GEMMEPI_BENCH_PASS_SOURCE_H

#include "draw.h"

enum {
    PASS_SOURCE = 16384,   /* bytes of a source at most */
    PASS_THREADS = 256,    /* of a block of every kernel here */
    PASS_EACH = 8,         /* elements of a thread */
    PASS_SUM_BLOCKS = 528, /* that sums of columns are divided into: four for each processor of an H100 */
    PASS_SUM_ROWS = 64,    /* and rows of one at least, */
    PASS_MOST_SPLITS = 64, /* and parts of a column at most */
    PASS_LANES = 32,       /* threads side by side in sums of columns */
    PASS_LONG_LINE = 2048  /* columns from which on a block sums a line, not a warp */
};

/* What is summed into bias_grad, and how. */
typedef struct pass_sums {
    int64_t lines, columns, ld;
    int of_lines; /* each line makes a sum; 0: each column */
    int width;    /* elements of a load */
    int splits;   /* of columns: parts that are summed apart */
    unsigned grid_x, grid_y;
} pass_sums;

typedef struct pass_shape {
    int has_pass, has_sums;
    int64_t p_ld;
    int width; /* elements of a load or store */
    int each;  /* elements that lie together in a thread: width, or 8 where a mask's byte is made of them */
    int64_t columns; /* of one half, where there are two */
    unsigned grid;   /* of the pass */
    pass_sums sums;
} pass_shape;

/* >>shapes */

/* Whether the product alone is the whole of it. */
static int pass_is_product(const draw_problem *p) {
    return p->epilogue == GEMMEPI_NONE;
}

/* Whether the product writes D itself, to which it adds where D accumulates. */
static int pass_is_direct(const draw_problem *p) {
    return !(p->epilogue & ~(GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B | GEMMEPI_BGRAD));
}

/* 8, 4, 2 or 1: the largest that divides n, and `most`. */
static int pass_divisor(int most, int64_t n) {
    while (n % most)
        most /= 2;
    return most;
}

static int pass_width(const draw_problem *p, int64_t half) {
    int width = pass_divisor(PASS_EACH, p->d_ld);
    if (!draw_aux_is_mask(p))
        width = pass_divisor(width, p->aux_ld);
    width = pass_divisor(width, p->residual_ld);
    return p->epilogue & GEMMEPI_GATED ? pass_divisor(width, half) : width;
}

static int64_t pass_least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t pass_blocks(int64_t count, int64_t of) {
    return (count + of - 1) / of;
}

static pass_sums pass_shape_sums(const draw_problem *p) {
    pass_sums s;
    int64_t blocks, splits;
    memset(&s, 0, sizeof s);
    if (p->epilogue & GEMMEPI_BGRAD_A)
        s.lines = draw_a_lines(p), s.columns = draw_a_columns(p), s.ld = p->a_ld,
        s.of_lines = !p->a_transposed;
    else if (p->epilogue & GEMMEPI_BGRAD_B)
        s.lines = draw_b_lines(p), s.columns = draw_b_columns(p), s.ld = p->b_ld,
        s.of_lines = p->b_transposed;
    else
        s.lines = p->m, s.columns = draw_d_columns(p), s.ld = p->d_ld;
    s.width = pass_divisor(PASS_EACH, s.ld);
    if (s.of_lines) {
        s.grid_x =
            (unsigned)(s.columns >= PASS_LONG_LINE ? s.lines : pass_blocks(s.lines, PASS_THREADS / 32));
        s.grid_y = s.splits = 1;
        return s;
    }
    blocks = pass_blocks(s.columns, (int64_t)PASS_LANES * s.width);
    splits = pass_least(pass_blocks(PASS_SUM_BLOCKS, blocks), pass_blocks(s.lines, PASS_SUM_ROWS));
    s.splits = (int)pass_least(splits, PASS_MOST_SPLITS);
    s.grid_x = (unsigned)blocks, s.grid_y = (unsigned)s.splits;
    return s;
}

static pass_shape pass_shape_of(const draw_problem *p) {
    pass_shape s;
    int64_t pieces;
    memset(&s, 0, sizeof s);
    s.has_pass = !pass_is_direct(p);
    s.has_sums = draw_bias_grad_length(p) != 0;
    s.p_ld = pass_blocks(p->n, 8) * 8;
    s.columns = p->epilogue & GEMMEPI_GATED && !(p->epilogue & GEMMEPI_BACKWARD) ? p->n / 2 : p->n;
    s.width = pass_width(p, s.columns);
    s.each = draw_aux_is_mask(p) ? PASS_EACH : s.width;
    pieces = p->m * pass_blocks(s.columns, s.each);
    s.grid = (unsigned)pass_blocks(pieces, PASS_THREADS * (PASS_EACH / s.each));
    if (s.has_sums)
        s.sums = pass_shape_sums(p);
    return s;
}

/* Bytes of P, of the partial sums and of the counters behind those. */
static size_t pass_product_bytes(const draw_problem *p, const pass_shape *s) {
    return s->has_pass ? 2 * (size_t)(p->m * s->p_ld) : 0;
}
static size_t pass_partial_bytes(const pass_shape *s) {
    return sizeof(float) * (size_t)s->sums.splits * (size_t)s->sums.columns;
}
static size_t pass_counter_bytes(const pass_shape *s) {
    return sizeof(unsigned) * (size_t)s->sums.grid_x;
}

/* >>text */

typedef struct pass_text {
    char text[PASS_SOURCE];
    size_t length; /* PASS_SOURCE or more: it did not fit */
} pass_text;

static void pass_append(pass_text *t, const char *format, ...) {
    va_list arguments;
    size_t left = t->length < PASS_SOURCE ? PASS_SOURCE - t->length : 0;
    va_start(arguments, format);
    t->length += (size_t)vsnprintf(left ? t->text + t->length : NULL, left, format, arguments);
    va_end(arguments);
}

static void pass_define(pass_text *t, const char *name, int64_t value) {
    pass_append(t, "#define %s %lld\n", name, (long long)value);
}

/* C, the columns of a half; X_LD the elements (a mask's: bytes) from a line to the next. */
static void pass_define_problem(pass_text *t, const draw_problem *p, const pass_shape *s) {
    static const struct {
        gemmepi_epilogue flag;
        const char *name;
    } flags[] = {{GEMMEPI_BIAS, "BIAS"},         {GEMMEPI_AUX, "AUX"},
                 {GEMMEPI_BACKWARD, "BACKWARD"}, {GEMMEPI_RESIDUAL, "RESIDUAL"},
                 {GEMMEPI_GATED, "GATED"},       {GEMMEPI_GATE_FIRST, "GATE_FIRST"}};
    int mask = draw_aux_is_mask(p), i;
    for (i = 0; i < COUNT(flags); i++)
        pass_define(t, flags[i].name, (p->epilogue & flags[i].flag) != 0);
    pass_define(t, "IS_BF16", p->dtype == GEMMEPI_BF16);
    pass_define(t, "ADDS_TO_D", p->accumulates);
    pass_define(t, "MASK", mask);
    pass_define(t, "LINES", p->m);
    pass_define(t, "C", s->columns);
    pass_define(t, "P_LD", s->p_ld);
    pass_define(t, "D_LD", p->d_ld);
    pass_define(t, "AUX_LD", mask ? p->aux_ld / 8 : p->aux_ld);
    pass_define(t, "RESIDUAL_LD", p->residual_ld);
    pass_define(t, "WIDTH", s->width);
    pass_define(t, "EACH", s->each);
    pass_define(t, "THREADS", PASS_THREADS);
    pass_define(t, "PIECES", PASS_EACH / s->each);
}

static void pass_define_sums(pass_text *t, const draw_problem *p, const pass_sums *s) {
    pass_define(t, "SUM_LINES", s->lines);
    pass_define(t, "SUM_COLUMNS", s->columns);
    pass_define(t, "SUM_LD", s->ld);
    pass_define(t, "SUM_WIDTH", s->width);
    pass_define(t, "SPLITS", s->splits);
    pass_define(t, "LANES", PASS_LANES);
    pass_define(t, "GROUP", s->columns >= PASS_LONG_LINE ? PASS_THREADS : 32);
    pass_define(t, "SUM_IS_F32", p->d_dtype == GEMMEPI_F32);
}

/* The activation of x and its derivative; --use_fast_math makes the functions short. */
static const char *const pass_formulas[][3] = {
    {"RELU", "x > 0 ? x : 0", "x > 0 ? 1 : 0"},
    {"GELU_TANH", "x * s(gelu_w(x))",
     "s(gelu_w(x)) + x * s(gelu_w(x)) * s(-gelu_w(x)) * 1.5957691f * (1 + 0.134145f * x * x)"},
    {"GELU_ERF", "0.5f * x * (1 + erff(0.70710678f * x))",
     "0.5f * (1 + erff(0.70710678f * x)) + x * 0.39894228f * expf(-0.5f * x * x)"},
    {"SILU", "x * s(x)", "s(x) * (1 + x * s(-x))"},
    {"SIGMOID", "s(x)", "s(x) * s(-x)"},
    {"TANH", "tanhf(x)", "4 * s(2 * x) * s(-2 * x)"},
    {"LEAKY_RELU", "x > 0 ? x : 0.01f * x", "x > 0 ? 1 : 0.01f"},
    {"ELU", "x > 0 ? x : expf(x) - 1", "x > 0 ? 1 : expf(x)"},
    {"SQUARED_RELU", "x > 0 ? x * x : 0", "x > 0 ? 2 * x : 0"},
    {"QUICK_GELU", "x * s(1.702f * x)", "s(1.702f * x) * (1 + 1.702f * x * s(-1.702f * x))"},
    {"SOFTPLUS", "(x > 0 ? x : 0) + logf(1 + expf(-fabsf(x)))", "s(x)"},
    {"HARDSWISH", "x * clamp(x + 3) / 6", "x <= -3 ? 0 : x < 3 ? x / 3 + 0.5f : 1"},
    {"MISH", "x * tanhf(softplus(x))",
     "tanhf(softplus(x)) + x * s(x) * (1 - tanhf(softplus(x)) * tanhf(softplus(x)))"},
    {"HARDSIGMOID", "clamp(x + 3) / 6", "x > -3 && x < 3 ? 1 / 6.0f : 0"},
};

static void pass_append_activation(pass_text *t, const draw_problem *p) {
    const char *name = draw_activation_name(p->epilogue), *value = "x", *derivative = "1";
    int i;
    for (i = 0; i < COUNT(pass_formulas); i++)
        if (name && strcmp(name, pass_formulas[i][0]) == 0)
            value = pass_formulas[i][1], derivative = pass_formulas[i][2];
    pass_append(t,
                "__device__ float s(float x) { return 1 / (1 + expf(-x)); }\n"
                "__device__ float gelu_w(float x) { return 1.5957691f * (x + 0.044715f * x * x * x); }\n"
                "__device__ float clamp(float x) { return fminf(fmaxf(x, 0.0f), 6.0f); }\n"
                "__device__ float softplus(float x) { return fmaxf(x, 0.0f) + logf(1 + expf(-fabsf(x))); }\n"
                "__device__ float act(float x) { return %s; }\n"
                "__device__ float slope(float x) { return %s; }\n",
                value, derivative);
}

/* Numbers of 16 bits, and N of them at a time. */
static const char pass_text_numbers[] =
    "typedef unsigned short half16;\n"
    "__device__ float number(half16 h) {\n"
    "#if IS_BF16\n"
    "    return __uint_as_float((unsigned)h << 16);\n"
    "#else\n"
    "    float x;\n"
    "    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(h));\n"
    "    return x;\n"
    "#endif\n"
    "}\n"
    "__device__ half16 rounded(float x) {\n"
    "    half16 h;\n"
    "#if IS_BF16\n"
    "    asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x));\n"
    "#else\n"
    "    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x));\n"
    "#endif\n"
    "    return h;\n"
    "}\n"
    "template <int N> struct Word;\n"
    "template <> struct Word<8> { typedef uint4 type; };\n"
    "template <> struct Word<4> { typedef uint2 type; };\n"
    "template <> struct Word<2> { typedef unsigned type; };\n"
    "template <> struct Word<1> { typedef half16 type; };\n"
    "template <int N> union Packed { typename Word<N>::type word; half16 halves[N]; };\n"
    "// EACH numbers in words of WIDTH, the last of a line one by one\n"
    "template <int EACH_, int WIDTH_> __device__ void load(float *to, const half16 *from, int count) {\n"
    "    if (count >= EACH_) {\n"
    "#pragma unroll\n"
    "        for (int i = 0; i < EACH_; i += WIDTH_) {\n"
    "            Packed<WIDTH_> p;\n"
    "            p.word = *(const typename Word<WIDTH_>::type *)(from + i);\n"
    "#pragma unroll\n"
    "            for (int j = 0; j < WIDTH_; j++)\n"
    "                to[i + j] = number(p.halves[j]);\n"
    "        }\n"
    "    } else {\n"
    "#pragma unroll\n"
    "        for (int i = 0; i < EACH_; i++)\n"
    "            to[i] = i < count ? number(from[i]) : 0;\n"
    "    }\n"
    "}\n"
    "template <int EACH_, int WIDTH_> __device__ void store(half16 *to, const float *from, int count) {\n"
    "    if (count >= EACH_) {\n"
    "#pragma unroll\n"
    "        for (int i = 0; i < EACH_; i += WIDTH_) {\n"
    "            Packed<WIDTH_> p;\n"
    "#pragma unroll\n"
    "            for (int j = 0; j < WIDTH_; j++)\n"
    "                p.halves[j] = rounded(from[i + j]);\n"
    "            *(typename Word<WIDTH_>::type *)(to + i) = p.word;\n"
    "        }\n"
    "    } else {\n"
    "#pragma unroll\n"
    "        for (int i = 0; i < EACH_; i++)\n"
    "            if (i < count)\n"
    "                to[i] = rounded(from[i]);\n"
    "    }\n"
    "}\n"
    "#define LOAD(to, from, count) load<EACH, WIDTH>(to, from, count)\n"
    "#define STORE(to, from, count) store<EACH, WIDTH>(to, from, count)\n";

/* One piece: EACH elements of a line, or of both of its halves. VALUE and GATE are where a gate's halves begin. */
static const char pass_text_piece[] =
    "#define VALUE (GATE_FIRST ? C : 0)\n"
    "#define GATE (GATE_FIRST ? 0 : C)\n"
    "__device__ void add(float *to, const half16 *from, int count) {\n"
    "    float more[EACH];\n"
    "    LOAD(more, from, count);\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < EACH; i++)\n"
    "        to[i] += more[i];\n"
    "}\n"
    "// the product with its bias at a column, stored where that is asked for\n"
    "__device__ void pre_activation(float *v, const half16 *p, const half16 *bias, half16 *aux, int count) {\n"
    "    LOAD(v, p, count);\n"
    "    if (BIAS)\n"
    "        add(v, bias, count);\n"
    "    if (AUX && !MASK)\n"
    "        STORE(aux, v, count);\n"
    "}\n"
    "__device__ unsigned char signs(const float *v) {\n"
    "    unsigned bits = 0;\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < EACH; i++)\n"
    "        bits |= (v[i] > 0 ? 1u : 0u) << i;\n"
    "    return bits;\n"
    "}\n"
    "__device__ void forward(half16 *d, const half16 *p, const half16 *bias, half16 *aux,\n"
    "                        unsigned char *mask, const half16 *residual, int count) {\n"
    "    float v[EACH], gate[EACH];\n"
    "    pre_activation(v, p + VALUE * GATED, bias + VALUE * GATED, aux + VALUE * GATED, count);\n"
    "    if (GATED)\n"
    "        pre_activation(gate, p + GATE, bias + GATE, aux + GATE, count);\n"
    "    if (AUX && MASK)\n"
    "        *mask = signs(v);\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < EACH; i++)\n"
    "        v[i] = GATED ? v[i] * act(gate[i]) : act(v[i]);\n"
    "    if (ADDS_TO_D)\n"
    "        add(v, d, count);\n"
    "    if (RESIDUAL)\n"
    "        add(v, residual, count);\n"
    "    STORE(d, v, count);\n"
    "}\n"
    "__device__ void backward(half16 *d, const half16 *p, const half16 *aux, const unsigned char *mask,\n"
    "                         int count) {\n"
    "    float v[EACH], value[EACH], gate[EACH];\n"
    "    LOAD(v, p, count);\n"
    "    if (!MASK)\n"
    "        LOAD(gate, aux + GATE * GATED, count);\n"
    "    if (GATED)\n"
    "        LOAD(value, aux + VALUE, count);\n"
    "    unsigned bits = MASK ? *mask : 0;\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < EACH; i++) {\n"
    "        float factor = MASK ? (bits >> i & 1 ? 1.0f : 0.0f) : slope(gate[i]);\n"
    "        if (GATED) {\n"
    "            float of_value = v[i] * act(gate[i]);\n"
    "            v[i] = v[i] * value[i] * factor;\n"
    "            value[i] = of_value;\n"
    "        } else\n"
    "            v[i] *= factor;\n"
    "    }\n"
    "    STORE(d + GATE * GATED, v, count);\n"
    "    if (GATED)\n"
    "        STORE(d + VALUE, value, count);\n"
    "}\n";

/* The pieces of a thread lie a block apart, so that neighbours read neighbours. */
static const char pass_text_kernel[] =
    "extern \"C\" __global__ void __launch_bounds__(THREADS)\n"
    "bench_pass(const half16 *p, half16 *d, const half16 *bias, void *aux, const half16 *residual) {\n"
    "    const unsigned in_line = (C + EACH - 1) / EACH, all = LINES * in_line;\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < PIECES; i++) {\n"
    "        unsigned piece = (blockIdx.x * PIECES + i) * THREADS + threadIdx.x;\n"
    "        if (piece >= all)\n"
    "            return;\n"
    "        unsigned line = piece / in_line, column = piece % in_line * EACH;\n"
    "        int count = C - column < EACH ? C - column : EACH;\n"
    "        half16 *to = d + (size_t)line * D_LD + column;\n"
    "        const half16 *from = p + (size_t)line * P_LD + column;\n"
    "        half16 *saved = (half16 *)aux + (size_t)line * AUX_LD + column;\n"
    "        unsigned char *mask = (unsigned char *)aux + (size_t)line * AUX_LD + column / 8;\n"
    "        if (BACKWARD)\n"
    "            backward(to, from, saved, mask, count);\n"
    "        else\n"
    "            forward(to, from, bias + column, saved, mask, residual + (size_t)line * RESIDUAL_LD + column,\n"
    "                    count);\n"
    "    }\n"
    "}\n";

/* A sum for each column. The blocks of a column write their parts; the last of them to come adds those up, and leaves the
   counter 0. */
static const char pass_text_column_sums[] =
    "#if SUM_IS_F32\n"
    "typedef float Sum;\n"
    "__device__ float as_sum(float x) { return x; }\n"
    "#else\n"
    "typedef half16 Sum;\n"
    "__device__ half16 as_sum(float x) { return rounded(x); }\n"
    "#endif\n"
    "extern \"C\" __global__ void __launch_bounds__(THREADS)\n"
    "bench_column_sums(const half16 *from, Sum *to, float *parts, unsigned *counters) {\n"
    "    __shared__ float shared[THREADS / LANES][LANES * SUM_WIDTH];\n"
    "    __shared__ unsigned arrived;\n"
    "    const unsigned lane = threadIdx.x % LANES, group = threadIdx.x / LANES, groups = THREADS / LANES;\n"
    "    const unsigned first = blockIdx.x * LANES * SUM_WIDTH, column = first + lane * SUM_WIDTH;\n"
    "    const unsigned step = (SUM_LINES + SPLITS - 1) / SPLITS, begin = blockIdx.y * step;\n"
    "    const unsigned end = begin + step < SUM_LINES ? begin + step : SUM_LINES;\n"
    "    int count = column < SUM_COLUMNS ? SUM_COLUMNS - column : 0;\n"
    "    float sums[SUM_WIDTH] = {}, more[SUM_WIDTH];\n"
    "    if (count) {\n"
    "#pragma unroll 4\n"
    "        for (unsigned line = begin + group; line < end; line += groups) {\n"
    "            load<SUM_WIDTH, SUM_WIDTH>(more, from + (size_t)line * SUM_LD + column, count);\n"
    "#pragma unroll\n"
    "            for (int i = 0; i < SUM_WIDTH; i++)\n"
    "                sums[i] += more[i];\n"
    "        }\n"
    "    }\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < SUM_WIDTH; i++)\n"
    "        shared[group][lane * SUM_WIDTH + i] = sums[i];\n"
    "    __syncthreads();\n"
    "    for (unsigned i = threadIdx.x; i < LANES * SUM_WIDTH; i += THREADS) {\n"
    "        float sum = 0;\n"
    "        for (unsigned g = 0; g < groups; g++)\n"
    "            sum += shared[g][i];\n"
    "        if (first + i < SUM_COLUMNS && SPLITS > 1)\n"
    "            parts[(size_t)blockIdx.y * SUM_COLUMNS + first + i] = sum;\n"
    "        else if (first + i < SUM_COLUMNS)\n"
    "            to[first + i] = as_sum(sum);\n"
    "    }\n"
    "    if (SPLITS == 1)\n"
    "        return;\n"
    "    __threadfence();\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0)\n"
    "        arrived = atomicAdd(counters + blockIdx.x, 1u);\n"
    "    __syncthreads();\n"
    "    if (arrived != SPLITS - 1)\n"
    "        return;\n"
    "    __threadfence();\n"
    "    for (unsigned i = threadIdx.x; i < LANES * SUM_WIDTH && first + i < SUM_COLUMNS; i += THREADS) {\n"
    "        float sum = 0;\n"
    "        for (unsigned split = 0; split < SPLITS; split++)\n"
    "            sum += __ldcg(parts + (size_t)split * SUM_COLUMNS + first + i);\n"
    "        to[first + i] = as_sum(sum);\n"
    "    }\n"
    "    if (threadIdx.x == 0)\n"
    "        counters[blockIdx.x] = 0;\n"
    "}\n";

/* A sum for each line, by GROUP threads. */
static const char pass_text_line_sums[] =
    "extern \"C\" __global__ void __launch_bounds__(THREADS)\n"
    "bench_line_sums(const half16 *from, Sum *to) {\n"
    "    __shared__ float shared[THREADS / 32];\n"
    "    const unsigned groups = THREADS / GROUP, line = blockIdx.x * groups + threadIdx.x / GROUP;\n"
    "    float sum = 0, more[SUM_WIDTH];\n"
    "    if (line < SUM_LINES) {\n"
    "#pragma unroll 4\n"
    "        for (unsigned i = threadIdx.x % GROUP * SUM_WIDTH; i < SUM_COLUMNS; i += GROUP * SUM_WIDTH) {\n"
    "            load<SUM_WIDTH, SUM_WIDTH>(more, from + (size_t)line * SUM_LD + i, SUM_COLUMNS - i);\n"
    "#pragma unroll\n"
    "            for (int j = 0; j < SUM_WIDTH; j++)\n"
    "                sum += more[j];\n"
    "        }\n"
    "    }\n"
    "#pragma unroll\n"
    "    for (int i = 16; i; i /= 2)\n"
    "        sum += __shfl_xor_sync(0xffffffffu, sum, i);\n"
    "    if (GROUP == THREADS) {\n"
    "        if (threadIdx.x % 32 == 0)\n"
    "            shared[threadIdx.x / 32] = sum;\n"
    "        __syncthreads();\n"
    "        sum = 0;\n"
    "        for (int i = 0; i < THREADS / 32; i++)\n"
    "            sum += shared[i];\n"
    "    }\n"
    "    if (threadIdx.x % GROUP == 0 && line < SUM_LINES)\n"
    "        to[line] = as_sum(sum);\n"
    "}\n";

/* All kernels that the problem takes; "" where it takes none. Returns whether they fit. */
static int pass_write(pass_text *t, const draw_problem *p, const pass_shape *s) {
    t->length = 0;
    t->text[0] = 0;
    if (!s->has_pass && !s->has_sums)
        return 1;
    pass_define_problem(t, p, s);
    pass_append_activation(t, p);
    pass_append(t, "%s", pass_text_numbers);
    if (s->has_pass)
        pass_append(t, "%s%s", pass_text_piece, pass_text_kernel);
    if (s->has_sums) {
        pass_define_sums(t, p, &s->sums);
        pass_append(t, "%s%s", pass_text_column_sums, pass_text_line_sums);
    }
    return t->length < PASS_SOURCE;
}

#endif
