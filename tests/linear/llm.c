/* examples/llm_matmul.h in place of llm.c's products: forward and backward of its layers against loops in double, on the
   host device. */
#define LLM_DTYPE GEMMEPI_F32
#include "examples/llm_matmul.h"
#include "test.h"
#include <math.h>

enum { B = 3, T = 5, C = 12, OC = 20, ROWS = B * T, HEADS = 4 };

typedef struct layer {
    float inp[ROWS][C], weight[OC][C], bias[OC], out[ROWS][OC], pre[ROWS][OC];
    float dout[ROWS][OC], dinp[ROWS][C], dweight[OC][C], dbias[OC], inp_pre[ROWS][C];
} layer;

static uint32_t random_state = 1;

static void draw(float *values, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        random_state = random_state * 1664525u + 1013904223u;
        values[i] = (float)(random_state >> 8) / 8388608.0f - 1;
    }
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x) {
    return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
}

static void is_near(const char *what, double got, double want) {
    CHECK(fabs(got - want) <= 1e-5 * (1 + fabs(want)), "%s is %g, not %g", what, got, want);
}

/* Row r of inp times row o of weight, and bias. */
static double preact(const layer *l, int r, int o, int has_bias) {
    double sum = has_bias ? (double)l->bias[o] : 0;
    int c;
    for (c = 0; c < C; c++)
        sum += (double)l->inp[r][c] * (double)l->weight[o][c];
    return sum;
}

static void check_forward(int has_bias, int has_gelu) {
    static layer l;
    int r, o;
    draw((float *)(void *)&l, sizeof l / sizeof(float));
    matmul_forward_cublaslt(l.out, l.inp, l.weight, has_bias ? l.bias : NULL, B, T, C, OC, NULL,
                            has_gelu ? l.pre : NULL, 1);
    for (r = 0; r < ROWS; r++)
        for (o = 0; o < OC; o++) {
            const double want = preact(&l, r, o, has_bias);
            is_near("out", (double)l.out[r][o], has_gelu ? gelu(want) : want);
            if (has_gelu)
                is_near("pre_gelu", (double)l.pre[r][o], want);
        }
}

/* What was in dweight and dbias counts, what was in dinp does not. */
static void check_backward(int has_bias, int has_gelu) {
    static layer l, before;
    int r, o, c;
    draw((float *)(void *)&l, sizeof l / sizeof(float));
    before = l;
    matmul_backward(l.dinp, l.dweight, has_bias ? l.dbias : NULL, l.dout, l.inp, l.weight, NULL, B, T, C, OC,
                    NULL, has_gelu ? l.inp_pre : NULL, 1);
    for (r = 0; r < ROWS; r++)
        for (c = 0; c < C; c++) {
            double want = 0;
            for (o = 0; o < OC; o++)
                want += (double)l.dout[r][o] * (double)l.weight[o][c];
            is_near("dinp", (double)l.dinp[r][c],
                    has_gelu ? want * gelu_slope((double)l.inp_pre[r][c]) : want);
        }
    for (o = 0; o < OC; o++) {
        double sum = (double)before.dbias[o];
        for (r = 0; r < ROWS; r++)
            sum += (double)l.dout[r][o];
        is_near("dbias", (double)l.dbias[o], has_bias ? sum : (double)before.dbias[o]);
        for (c = 0; c < C; c++) {
            double want = (double)before.dweight[o][c];
            for (r = 0; r < ROWS; r++)
                want += (double)l.dout[r][o] * (double)l.inp[r][c];
            is_near("dweight", (double)l.dweight[o][c], want);
        }
    }
}

static void forward_is_that_of_loops(void) {
    check_forward(0, 0);
    check_forward(1, 0);
    check_forward(0, 1);
    check_forward(1, 1);
}

static void backward_is_that_of_loops(void) {
    check_backward(0, 0);
    check_backward(1, 0);
    check_backward(0, 1);
    check_backward(1, 1);
}

/* preatt[h] [T, T] = q[h] k[h]^T of [T, C], as attention asks for it. */
static void batches_are_those_of_attention(void) {
    static float q[HEADS][T][C], k[HEADS][T][C], preatt[HEADS][T][T];
    int h, i, j, c;
    draw(&q[0][0][0], sizeof q / sizeof(float));
    draw(&k[0][0][0], sizeof k / sizeof(float));
    matmul_cublaslt(preatt, k, q, NULL, T, T, C, NULL, 1, 0, HEADS, T * C, T * C, T * T, 0, NULL, 0);
    for (h = 0; h < HEADS; h++)
        for (i = 0; i < T; i++)
            for (j = 0; j < T; j++) {
                double want = 0;
                for (c = 0; c < C; c++)
                    want += (double)q[h][i][c] * (double)k[h][j][c];
                is_near("preatt", (double)preatt[h][i][j], want);
            }
}

int main(void) {
    gemmepi_config config = {0};
    config.device = GEMMEPI_DEVICE_HOST;
    llm_check(gemmepi_create(&config, &llm_context));
    RUN(forward_is_that_of_loops);
    RUN(backward_is_that_of_loops);
    RUN(batches_are_those_of_attention);
    gemmepi_destroy(llm_context);
    return test_finish();
}
