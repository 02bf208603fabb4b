/* Grouped products whose ends or indices are wrong: every byte of every output stays as it was, on the host and by each route of a GPU. The
   same product with right ones follows, whose amax are those of what it wrote. */
#include "grouped_case.h"

#define F64    GEMMEPI_F64
#define E4M3   GEMMEPI_E4M3
#define FIND   GEMMEPI_FIND_SCALE_D
#define NO     GEMMEPI_SCALE_NONE
#define VECTOR GEMMEPI_SCALE_VECTOR_128
#define BLOCK  GEMMEPI_SCALE_BLOCK_128
#define OUTER  GEMMEPI_SCALE_OUTER

/* clang-format off */
static const grouped_case cases[] = {
    {"bf16", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX, 0, 6, 400, 72, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    {"bf16, gathered and scattered, a gate", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, 0, 5, 300, 72, 256, 0, 0, 1, 60, 0, 310, 1, 0, 0, 0, NO, NO, 2},
    {"added to D", BF16, F32, GEMMEPI_NONE, GEMMEPI_ACCUMULATE, 5, 300, 72, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    {"alpha and C", F16, F32, GEMMEPI_NONE, 0, 5, 300, 72, 136, 0, 0, 0, 0, 0, 0, 0, 0, 2, .5, NO, NO, 2},
    {"fp8", E4M3, BF16, GEMMEPI_GELU_TANH | GEMMEPI_AUX, 0, 6, 400, 272, 136, 0, 0, 1, 77, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
    {"fp8, scales of rows", E4M3, F32, GEMMEPI_NONE, 0, 4, 200, 144, 64, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
    {"scales that are found", E4M3, E4M3, GEMMEPI_SILU | GEMMEPI_GATED, FIND, 4, 300, 144, 272, 0, 0, 1, 0, 0, 310, 0, 0, 0, 0, VECTOR, BLOCK, 2},
    {"scales that are found, of bf16", BF16, E4M3, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX, FIND, 6, 500, 72, 264, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    {"odd sizes", BF16, F32, GEMMEPI_SILU | GEMMEPI_AUX, 0, 6, 300, 37, 53, 0, 0, 1, 40, 0, 310, 0, 3, 0, 0, NO, NO, 2},
    {"f64", F64, F64, GEMMEPI_TANH | GEMMEPI_AUX, 0, 6, 200, 30, 33, 0, 0, 1, 20, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    {"of k, gathered both", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 72, 136, 1, 1, 0, 90, 80, 0, 0, 8, 0, 0, NO, NO, 2},
    {"of k, sums added", BF16, F32, GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD, GEMMEPI_ACCUMULATE, 6, 600, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 1},
    {"of k, odd sums", F16, F32, GEMMEPI_BGRAD_B, 0, 6, 400, 37, 53, 1, 1, 0, 90, 0, 0, 0, 3, 0, 0, NO, NO, 2},
    {"of k, sums beside an empty d", BF16, F32, GEMMEPI_BGRAD_A, 0, 6, 400, 40, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
};
/* clang-format on */

/* >>a run with amax */

enum { AMAX_D, AMAX_AUX, AMAXES };

typedef struct amax_run {
    grouped_run of;
    unsigned char *sent[G_TENSORS]; /* what the tensors held before */
    void *amax[AMAXES];
} amax_run;

static const int is_output[G_TENSORS] = {0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 1};
static const unsigned char poison[8] = {0x11, 0x11, 0x11, 0x11,
                                        0x11, 0x11, 0x11, 0x11}; /* small and positive */

static void make_run(const grouped_case *c, amax_run *r, uint64_t seed) {
    scales of_a, of_b;
    int t;
    make_case(c, &r->of, seed);
    make_scales(c, &r->of, &of_a, &of_b);
    send_all(c, &r->of);
    for (t = 0; t < G_TENSORS; t++) {
        const grouped_tensor *tensor = &r->of.tensors[t];
        r->sent[t] = (unsigned char *)malloc(tensor->bytes + 1);
        if (tensor->bytes)
            memcpy(r->sent[t], tensor->at.data, tensor->bytes);
    }
    for (t = 0; t < AMAXES; t++)
        r->amax[t] = send(poison, sizeof poison);
    r->of.desc.product.flags |= GEMMEPI_AMAX_D;
    r->of.args.product.amax_d = r->amax[AMAX_D];
    if (c->epilogue & GEMMEPI_AUX) {
        r->of.desc.product.flags |= GEMMEPI_AMAX_AUX;
        r->of.args.product.amax_aux = r->amax[AMAX_AUX];
    }
}

static void free_run(amax_run *r) {
    int t;
    for (t = 0; t < G_TENSORS; t++)
        free(r->sent[t]);
    for (t = 0; t < AMAXES; t++)
        gemmepi_free(here->context, r->amax[t]);
    free_all(&r->of);
}

static void receive(void *to, const void *from, size_t bytes) {
    CHECK(bytes == 0 || gemmepi_download(here->context, to, from, bytes, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}

/* >>wrong lists */

typedef struct wrong_number {
    const char *list; /* as the sentence names it */
    int which;        /* of grouped_run.lists */
    int at, value;
} wrong_number;

static void run_refused(const gemmepi_plan *plan, const grouped_case *c, amax_run *r,
                        const wrong_number *wrong) {
    char *place = (char *)r->of.lists[wrong->which] + 4 * wrong->at;
    int32_t right, value = wrong->value;
    unsigned char amax[8];
    gemmepi_status status;
    int t;
    receive(&right, place, 4);
    CHECK(gemmepi_upload(here->context, place, &value, 4, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    status = gemmepi_run_grouped(plan, &r->of.args, here->stream);
    if (!status)
        status = gemmepi_synchronize(here->context, here->stream);
    CHECK(status == GEMMEPI_INVALID_ARGUMENT && strstr(gemmepi_last_error(), wrong->list) &&
              strstr(gemmepi_last_error(), "nothing was written"),
          "%s on %s: %s[%d] is %d, and is said: %s", c->name, here->name, wrong->list, wrong->at,
          wrong->value, status ? gemmepi_last_error() : "nothing");
    for (t = 0; t < G_TENSORS; t++) {
        receive(r->of.tensors[t].at.data, r->of.tensors[t].device, r->of.tensors[t].bytes);
        CHECK(r->of.tensors[t].bytes == 0 ||
                  memcmp(r->of.tensors[t].at.data, r->sent[t], r->of.tensors[t].bytes) == 0,
              "%s on %s: with a wrong %s tensor %d was written", c->name, here->name, wrong->list, t);
    }
    for (t = 0; t < AMAXES; t++) {
        receive(amax, r->amax[t], sizeof amax);
        CHECK(memcmp(amax, poison, sizeof amax) == 0, "%s on %s: with a wrong %s amax_%s was written",
              c->name, here->name, wrong->list, t == AMAX_D ? "d" : "aux");
    }
    CHECK(gemmepi_upload(here->context, place, &right, 4, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}

static void run_all_refused(const gemmepi_plan *plan, const grouped_case *c, amax_run *r) {
    const wrong_number wrong[] = {{"args.ends", 0, c->groups - 1, c->positions + 1},
                                  {"args.ends", 0, c->groups / 2, -1},
                                  {"args.index_a", 1, 0, c->gather_a},
                                  {"args.index_b", 2, 0, -1},
                                  {"args.index_d", 3, 0, c->scatter_d}};
    const int has_list[] = {1, c->gather_a, c->gather_b, c->scatter_d};
    size_t i;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (has_list[wrong[i].which])
            run_refused(plan, c, r, &wrong[i]);
}

/* >>right ones */

/* What a number becomes in a type. */
static double rounded_to(gemmepi_dtype dtype, double value) {
    unsigned char element[8] = {0};
    view one = oracle_view(dtype, GEMMEPI_ROW_MAJOR, 0, 1, 1);
    one.data = element;
    view_set(&one, 0, 0, 0, value);
    return view_get(&one, 0, 0, 0);
}

/* amax rounded to the tensor's type is the largest magnitude that it holds, as rounding keeps order: or what is next to it is, for the host
   rounds once what is in F64. Rows of no group are NaN, as they were. */
static void check_amax(const grouped_case *c, const amax_run *r, int which) {
    const grouped_tensor *t = &r->of.tensors[which == AMAX_D ? G_D : G_AUX];
    double most = 0, amax;
    unsigned char bytes[8];
    view of = oracle_view(c->operands == F64 ? F64 : F32, GEMMEPI_ROW_MAJOR, 0, 1, 1);
    int64_t i, j, item;
    for (item = 0; item < t->items; item++)
        for (i = 0; i < t->rows; i++)
            for (j = 0; j < t->columns; j++) {
                double value = fabs(view_get(&t->at, item, i, j));
                most = value > most ? value : most;
            }
    receive(bytes, r->amax[which], sizeof bytes);
    of.data = bytes;
    amax = view_get(&of, 0, 0, 0);
    if (t->columns == 0)
        CHECK(memcmp(bytes, poison, sizeof bytes) == 0, "%s on %s: the amax of an empty d was written",
              c->name, here->name);
    else
        CHECK(rounded_to(t->at.dtype, amax * (1 - 0x1p-23)) <= most &&
                  rounded_to(t->at.dtype, amax * (1 + 0x1p-23)) >= most,
              "%s on %s: amax_%s is %g, and the largest number %g", c->name, here->name,
              which == AMAX_D ? "d" : "aux", amax, most);
}

static void run_right(const gemmepi_plan *plan, const grouped_case *c, amax_run *r) {
    int t;
    CHECK(gemmepi_run_grouped(plan, &r->of.args, here->stream) == GEMMEPI_OK &&
              gemmepi_synchronize(here->context, here->stream) == GEMMEPI_OK,
          "%s on %s: %s", c->name, here->name, gemmepi_last_error());
    for (t = 0; t < G_TENSORS; t++)
        if (is_output[t])
            receive(r->of.tensors[t].at.data, r->of.tensors[t].device, r->of.tensors[t].bytes);
    if (!(c->flags & (GEMMEPI_FIND_SCALE_D | GEMMEPI_ACCUMULATE)))
        check_amax(c, r, AMAX_D);
    if (c->epilogue & GEMMEPI_AUX)
        check_amax(c, r, AMAX_AUX);
}

static void run_case_refused(const grouped_case *c, const char *formula, uint64_t seed) {
    static amax_run r; /* large */
    gemmepi_plan *plan = NULL;
    if (c->flags & GEMMEPI_FIND_SCALE_D && !here->is_host &&
        (!here->has_fused || strstr(here->name, "without") != NULL))
        return; /* refused there: grouped.c */
    make_run(c, &r, seed);
    r.of.desc.product.formula = formula;
    CHECK(gemmepi_plan_grouped(here->context, &r.of.desc, &plan) == GEMMEPI_OK &&
              gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK,
          "%s on %s: %s", c->name, here->name, gemmepi_last_error());
    if (plan) {
        run_all_refused(plan, c, &r);
        run_right(plan, c, &r);
    }
    gemmepi_plan_destroy(plan);
    free_run(&r);
}

/* >>facts */

static void a_refused_grouped_product_writes_no_byte_of_any_output(void) {
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        run_case_refused(&cases[i], NULL, 500 + i);
}

static void one_with_a_formula_writes_none_either(void) {
    static const grouped_case plain = {
        "a formula", BF16, BF16, GEMMEPI_NONE, 0, 6, 400, 72, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2};
    run_case_refused(&plain, "d = silu(v) * 2", 600);
}

int main(void) {
    test_device devices[TEST_MOST_DEVICES];
    int count = test_devices_open_with_routes(devices), i;
    if (count == 0)
        return 1;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(a_refused_grouped_product_writes_no_byte_of_any_output);
        RUN(one_with_a_formula_writes_none_either);
        test_device_close(here);
    }
    return test_finish();
}
