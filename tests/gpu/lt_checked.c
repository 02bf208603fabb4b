/* What config.check finds of the cuBLASLt of this machine, as if nobody had measured it: config.resolve_symbol gives it another version. All kinds of
   products that plans use are within their bounds, and so is every algorithm that the heuristic names, but for those other than 66 that round
   before their epilogue. */
#include "gemmepi.h"
#include "test.h"

#include <stdlib.h>

enum { OTHER_VERSION = 130203, ANSWERS = 64 };

static size_t GPI__CUDA_CALL other_version(void) {
    return OTHER_VERSION;
}

static void *resolve(void *user, const char *library, const char *symbol, void *found) {
    size_t (*function)(void) = other_version;
    void *address;
    (void)user, (void)library;
    memcpy(&address, &function, sizeof address);
    return found && strcmp(symbol, "cublasLtGetVersion") == 0 ? address : found;
}

static int found_right, found_wrong, not_checked;
static double worst_right;

static void read_log(void *user, gemmepi_log_level level, const char *message) {
    const char *off = strstr(message, "is right: off by ");
    (void)user;
    found_right += off != NULL;
    if (off && atof(off + 17) > worst_right)
        worst_right = atof(off + 17);
    found_wrong += strstr(message, "was checked and is wrong") != NULL;
    not_checked += strstr(message, "could not be checked") != NULL;
    if (level <= GEMMEPI_LOG_WARNING || getenv("V"))
        printf("  %s\n", message);
}

static gemmepi_context *open_checking(gemmepi_route route) {
    const char *device = getenv("GEMMEPI_TEST_DEVICE");
    gemmepi_config config;
    gemmepi_context *context = NULL;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE(device ? atoi(device) : 0);
    config.log = read_log;
    config.routes = 1u << route;
    config.resolve_symbol = resolve;
    config.cache_path = "";
    config.check = 1;
    return gemmepi_create(&config, &context) == GEMMEPI_OK ? context : NULL;
}

/* >>products */

static const struct {
    gemmepi_dtype a, b, d;
    gemmepi_compute compute;
    gemmepi_scale_mode scale;
} types[] = {{GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SCALE_NONE},
             {GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SCALE_NONE},
             {GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SCALE_NONE},
             {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SCALE_NONE},
             {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_TF32, GEMMEPI_SCALE_NONE},
             {GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SCALE_NONE},
             {GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SCALE_TENSOR},
             {GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SCALE_TENSOR},
             {GEMMEPI_E5M2, GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SCALE_TENSOR},
             {GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SCALE_VECTOR_128},
             {GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SCALE_NONE}};
static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE,
                                             GEMMEPI_BIAS,
                                             GEMMEPI_RELU,
                                             GEMMEPI_RELU | GEMMEPI_BIAS,
                                             GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX,
                                             GEMMEPI_RELU | GEMMEPI_BACKWARD,
                                             GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                                             GEMMEPI_BGRAD_A,
                                             GEMMEPI_BGRAD_B};

/* Some layouts and sizes, in turn. */
static gemmepi_matmul_desc nth_product(int type, int epilogue) {
    int which = type + epilogue;
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = which % 4 == 3 ? 1021 : 1024, desc.n = 768, desc.k = which % 5 ? 1024 : 4096;
    desc.a.dtype = types[type].a, desc.b.dtype = types[type].b, desc.d.dtype = types[type].d;
    desc.compute = types[type].compute;
    desc.a.scale.mode = desc.b.scale.mode = types[type].scale;
    desc.a.transposed = which % 3 == 1 && types[type].a < GEMMEPI_E4M3 && desc.m == 1024;
    desc.b.transposed = which % 2 || types[type].a >= GEMMEPI_E4M3;
    desc.epilogue = epilogues[epilogue];
    if (which % 7 == 2 && !(desc.epilogue & GEMMEPI_BGRAD) && !types[type].scale) {
        desc.batch = 3;
        desc.a.batch_stride = desc.m * desc.k, desc.d.batch_stride = desc.aux.batch_stride = desc.m * desc.n;
        if (desc.epilogue & GEMMEPI_RELU)
            desc.aux.batch_stride = (desc.m + 1) * 768;
    }
    return desc;
}

enum { TYPES = (int)(sizeof types / sizeof *types), EPILOGUES = (int)(sizeof epilogues / sizeof *epilogues) };

/* >>what plans use */

static int plan_all(gemmepi_route route, int epilogue_count) {
    gemmepi_context *context = open_checking(route);
    int type, epilogue, planned = 0;
    for (type = 0; type < TYPES; type++)
        for (epilogue = 0; epilogue < epilogue_count; epilogue++) {
            gemmepi_matmul_desc desc = nth_product(type, epilogue);
            gemmepi_plan *plan = NULL;
            gemmepi_status status = gemmepi_plan_matmul(context, &desc, &plan);
            planned += status == GEMMEPI_OK;
            CHECK(status == GEMMEPI_OK || status == GEMMEPI_UNSUPPORTED || status == GEMMEPI_INVALID_ARGUMENT,
                  "%s", gemmepi_last_error());
            gemmepi_plan_destroy(plan);
        }
    gemmepi_destroy(context);
    return planned;
}

/* Of the bare products of SPLIT those without an epilogue are all. */
static void all_kinds_that_plans_use_are_right(void) {
    double begin = gpi__seconds();
    int planned = plan_all(GEMMEPI_ROUTE_LT, EPILOGUES) + plan_all(GEMMEPI_ROUTE_SPLIT, 1);
    printf(
        "  %d plans, %d kinds right, %d wrong, %d not checked, the worst off by %.2f of the bound, %.1f s with "
        "kernels compiled\n",
        planned, found_right, found_wrong, not_checked, worst_right, gpi__seconds() - begin);
    CHECK(planned >= 5 && found_right >= 5 && found_wrong == 0 && not_checked == 0,
          "%d plans, %d right, %d wrong, %d not checked", planned, found_right, found_wrong, not_checked);
}

/* >>every algorithm that cuBLASLt offers */

/* The heuristic's answers, whatever is known of them. */
static int ask_all(gemmepi_context *context, const gpi__lt_question *question, gpi__lt_product *product,
                   gpi__lt_heuristic answers[ANSWERS]) {
    gpi__lt_preference preference;
    int count = 0;
    memset(product, 0, sizeof *product);
    if (gpi__lt_describe_product(question, product) ||
        gpi__lt_prefer(&context->cublaslt, question->problem, question->c, question->d, &preference) ||
        context->cublaslt.algo_get_heuristic(context->lt_handle, &product->desc, &product->b, &product->a,
                                             &product->c, &product->d, &preference, ANSWERS, answers, &count))
        return 0;
    return count;
}

static void algorithm_66_is_right_with_each_epilogue_and_every_one_without(void) {
    static const gemmepi_epilogue with[] = {GEMMEPI_NONE, GEMMEPI_BIAS, GEMMEPI_GELU_TANH | GEMMEPI_BIAS};
    gemmepi_context *context = open_checking(GEMMEPI_ROUTE_LT);
    double begin = gpi__seconds();
    int type, i, checks = 0, wrong_others = 0;
    for (type = 0; type < 2; type++)
        for (i = 0; i < 3; i++) {
            gemmepi_matmul_desc desc = nth_product(type, 0);
            gpi__problem problem;
            gpi__lt_question question;
            gpi__lt_product product;
            gpi__lt_heuristic answers[ANSWERS];
            double worst[128] = {0};
            int count, nth, id;
            gpi__entry entry;
            desc.epilogue = with[i];
            CHECK(gpi__normalise(&desc, 16, &problem) == GEMMEPI_OK &&
                      gpi__enter(context, &entry) == GEMMEPI_OK && gpi__open_lt(context) == GEMMEPI_OK,
                  "%s", gemmepi_last_error());
            question = gpi__lt_question_of(context, &problem, GPI__LT_WHOLE);
            count = ask_all(context, &question, &product, answers);
            gpi__leave(context, &entry);
            for (nth = 0; nth < count; nth++) {
                double off = 0;
                product.algo = answers[nth].algo;
                product.algorithm = gpi__lt_name(&context->cublaslt, &product.algo);
                product.workspace_size = answers[nth].workspace_size;
                id = product.algorithm.id & 127;
                if (gpi__check_product(context, &problem, &product, &off) != GEMMEPI_OK)
                    off = -1;
                checks++;
                worst[id] = off > worst[id] || worst[id] == 0 ? off : worst[id];
                CHECK(i > 0 || off <= 1, "algorithm %d is off by %g of the bound without an epilogue", id,
                      off);
                CHECK(id != 66 || off <= 1, "algorithm 66 is off by %g of the bound", off);
                wrong_others += i > 0 && id != 66 && off > 1;
            }
            printf("  %s, epilogue 0x%x, %d answers:", gpi__dtype((gemmepi_dtype)types[type].a)->name,
                   (unsigned)with[i], count);
            for (id = 0; id < 128; id++)
                if (worst[id] != 0)
                    printf(" algorithm %d %.3g", id, worst[id]);
            printf("\n");
        }
    printf("  %d checks in %.2f s, %d of other algorithms with an epilogue off by more than the bound\n",
           checks, gpi__seconds() - begin, wrong_others);
    gemmepi_destroy(context);
}

int main(void) {
    const char *device = getenv("GEMMEPI_TEST_DEVICE");
    gemmepi_context *context = device && strcmp(device, "host") == 0 ? NULL : open_checking(GEMMEPI_ROUTE_LT);
    if (!context) {
        printf("skip lt_checked: there is no GPU\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    gemmepi_destroy(context);
    RUN(all_kinds_that_plans_use_are_right);
    RUN(algorithm_66_is_right_with_each_epilogue_and_every_one_without);
    return test_finish();
}
