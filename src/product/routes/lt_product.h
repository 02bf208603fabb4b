/* A product by cuBLASLt: its algorithm, and its runs. */
#ifndef GEMMEPI_PRODUCT_ROUTES_LT_PRODUCT_H
#define GEMMEPI_PRODUCT_ROUTES_LT_PRODUCT_H

#include "../../device/chip.h"
#include "lt_checked.h"

/* >>choosing an algorithm */

/* What one reduction over k may need; NVIDIA recommends 32 MiB for Hopper, and 4 MiB before. */
#define GPI__LT_WORKSPACE ((size_t)32 << 20)

static int gpi__lt_prefer(const gpi__cublaslt *lt, const gpi__problem *problem, const gpi__view *c,
                          const gpi__view *d, gpi__lt_preference *preference) {
    static const int alignments[] = {
        GPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, GPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        GPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, GPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    size_t workspace = GPI__LT_WORKSPACE, i;
    /* the other schemes add up in D's type or in place, which rounds more than once */
    uint32_t schemes = GPI__CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, alignment;
    const gpi__view *views[4];
    int result = lt->preference_init(preference, sizeof *preference);
    views[0] = &problem->views[GPI__B];
    views[1] = &problem->views[GPI__A];
    views[2] = c;
    views[3] = d;
    if (!result)
        result = lt->preference_set_attribute(preference, GPI__CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &workspace, sizeof workspace);
    if (!result)
        result = lt->preference_set_attribute(preference, GPI__CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                              &schemes, sizeof schemes);
    for (i = 0; i < GPI__COUNT(alignments) && !result; i++) {
        alignment = (uint32_t)views[i]->alignment;
        result = lt->preference_set_attribute(preference, alignments[i], &alignment, sizeof alignment);
    }
    return result;
}

static int gpi__lt_config(const gpi__cublaslt *lt, const gpi__lt_algo *algo, int attribute) {
    int32_t value = 0;
    int is_short = attribute == GPI__CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
                   attribute == GPI__CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    uint16_t short_value = 0;
    size_t written = 0;
    if (is_short)
        return lt->algo_config_get_attribute(algo, attribute, &short_value, sizeof short_value, &written)
                   ? 0
                   : short_value;
    return lt->algo_config_get_attribute(algo, attribute, &value, sizeof value, &written) ? 0 : value;
}

static gpi__lt_algorithm gpi__lt_name(const gpi__cublaslt *lt, const gpi__lt_algo *algo) {
    gpi__lt_algorithm name;
    name.id = gpi__lt_config(lt, algo, GPI__CUBLASLT_ALGO_CONFIG_ID);
    name.tile = gpi__lt_config(lt, algo, GPI__CUBLASLT_ALGO_CONFIG_TILE_ID);
    name.stages = gpi__lt_config(lt, algo, GPI__CUBLASLT_ALGO_CONFIG_STAGES_ID);
    name.split = gpi__lt_config(lt, algo, GPI__CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
    name.reduction = gpi__lt_config(lt, algo, GPI__CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
    name.swizzle = gpi__lt_config(lt, algo, GPI__CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING);
    name.custom = gpi__lt_config(lt, algo, GPI__CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION);
    name.inner = gpi__lt_config(lt, algo, GPI__CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID);
    name.cluster = gpi__lt_config(lt, algo, GPI__CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
    return name;
}

/* Rows x columns of cuBLASLt's tiles up to 35, which cublasLt.h numbers from 1 on. */
static const short gpi__lt_tiles[][2] = {
    {8, 8},    {8, 16},    {16, 8},    {8, 32},    {16, 16},   {32, 8},    {8, 64},   {16, 32},  {32, 16},
    {64, 8},   {32, 32},   {32, 64},   {64, 32},   {32, 128},  {64, 64},   {128, 32}, {64, 128}, {128, 64},
    {64, 256}, {128, 128}, {256, 64},  {64, 512},  {128, 256}, {256, 128}, {512, 64}, {64, 96},  {96, 64},
    {96, 128}, {128, 160}, {160, 128}, {192, 128}, {128, 192}, {128, 96},  {32, 256}, {256, 32},
};

static int gpi__lt_tile_is_listed(int rows, int columns) {
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__lt_tiles); i++)
        if (gpi__lt_tiles[i][0] == rows && gpi__lt_tiles[i][1] == columns)
            return 1;
    return 0;
}

/* Rows and columns of a tile in our D, 0 of a number that is not known. Behind those that are listed cublasLt.h of CUDA 13 numbers
   8, 16, ... rows by 64, 128, ... columns of at most 49152 elements, then 64, 128, ... rows by 8, 16, ... columns of at most 65536,
   both up to 768 and without what has a number already. Its rows are our columns. */
static void gpi__lt_tile(int number, int *tile_m, int *tile_n) {
    int left = number - (int)GPI__COUNT(gpi__lt_tiles), family, rows, columns;
    *tile_m = *tile_n = 0;
    if (number >= 1 && left <= 0) {
        *tile_n = gpi__lt_tiles[number - 1][0];
        *tile_m = gpi__lt_tiles[number - 1][1];
    }
    for (family = 0; family < 2; family++)
        for (rows = family ? 64 : 8; rows <= 768 && left > 0; rows += family ? 64 : 8)
            for (columns = family ? 8 : 64; columns <= 768 && left > 0; columns += family ? 8 : 64) {
                int in_first = columns % 64 == 0 && rows * columns <= 49152;
                if (in_first == family || rows * columns > 65536 || gpi__lt_tile_is_listed(rows, columns))
                    continue;
                if (--left == 0) {
                    *tile_n = rows;
                    *tile_m = columns;
                }
            }
}

#define GPI__LT_FOUND_WRONG "are wrong on this GPU, as config.check has found"

/* NULL if an algorithm keeps the contract for the problem, else what it breaks. With config.check what nobody has seen is seen. */
static const char *gpi__lt_algorithm_fault(const gpi__lt_question *question) {
    const gpi__lt_row *row = gpi__lt_known(question, GPI__LT_ASKED_CONTRACT);
    if (!row && !question->context->check)
        row = gpi__lt_known(question, GPI__LT_ASKED_UNSEEN);
    return row ? row->sentence : gpi__lt_is_found_wrong(question) ? GPI__LT_FOUND_WRONG : NULL;
}

#define GPI__LT_ALGORITHMS 16 /* that tuning tries */
#define GPI__LT_FIRST      8  /* that the rule looks at */

/* The smaller tiles of GPI__LT_ASKED_TILES, 128 x 128 and 128 x 160, and from how many waves on they are the faster ones. */
static const int gpi__lt_short_tiles[] = {20, 29};
#define GPI__LT_SHORT_WAVES 2

/* cuBLASLt's answers that may be taken, in its order. */
typedef struct gpi__lt_answers {
    gpi__lt_heuristic list[GPI__LT_ALGORITHMS];
    gpi__lt_algorithm names[GPI__LT_ALGORITHMS];
    int count;
    const char *fault;         /* what the last of those that break the contract does, or NULL */
    const gpi__lt_row *defect; /* what the last of those that are known to be wrong does, or NULL */
} gpi__lt_answers;

/* Leaves those that may be taken, of `count` answers. */
static void gpi__lt_sort_out(const gpi__lt_question *about, int count, gpi__lt_answers *answers) {
    const gpi__cublaslt *lt = &about->context->cublaslt;
    gpi__lt_question question = *about;
    int i;
    for (i = 0; i < count; i++) {
        gpi__lt_algorithm name;
        const gpi__lt_row *defect;
        const char *fault;
        if (answers->list[i].state)
            continue;
        name = gpi__lt_name(lt, &answers->list[i].algo);
        question.algorithm = &name;
        fault = gpi__lt_algorithm_fault(&question);
        defect = gpi__lt_known(&question, GPI__LT_ASKED_ALGORITHM);
        answers->fault = fault ? fault : answers->fault;
        answers->defect = defect ? defect : answers->defect;
        if (fault || defect)
            continue;
        answers->names[answers->count] = name;
        answers->list[answers->count++] = answers->list[i];
    }
}

/* The answer that a rule of ours takes. */
static int gpi__lt_choose(const gpi__lt_question *question, const gpi__lt_answers *answers) {
    size_t t;
    int i;
    if (answers->list[0].waves < GPI__LT_SHORT_WAVES || !gpi__lt_known(question, GPI__LT_ASKED_TILES))
        return 0;
    for (t = 0; t < GPI__COUNT(gpi__lt_short_tiles); t++)
        for (i = 0; i < answers->count; i++)
            if (answers->names[i].tile == gpi__lt_short_tiles[t] && answers->names[i].split <= 1)
                return i;
    return 0;
}

/* The answer that the candidate names, or -1. */
static int gpi__lt_find(const gpi__lt_question *question, const gpi__candidate *candidate,
                        const gpi__lt_answers *answers) {
    int i;
    if (candidate->nth)
        return candidate->nth <= answers->count ? candidate->nth - 1 : -1;
    if (!candidate->algorithm.id)
        return gpi__lt_choose(question, answers);
    for (i = 0; i < answers->count; i++)
        if (memcmp(&answers->names[i], &candidate->algorithm, sizeof candidate->algorithm) == 0)
            return i;
    return -1;
}

/* Fills in all that a run hands over but the algorithm. */
static int gpi__lt_describe_product(const gpi__lt_question *question, gpi__lt_product *product) {
    const gemmepi_context *context = question->context;
    const gpi__cublaslt *lt = &context->cublaslt;
    const gpi__problem *problem = question->problem;
    int32_t most = context->asked_multiprocessors;
    int result = gpi__lt_describe(lt, problem, question->c, question->d, product);
    if (!result)
        result = gpi__lt_describe_scales(lt, problem, question->use, product);
    if (!result && question->use == GPI__LT_WHOLE)
        result = gpi__lt_describe_epilogue(lt, problem, product);
    if (!result && most)
        result = gpi__lt_set(lt, product, GPI__CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &most, sizeof most);
    product->adds_in_place = gpi__lt_known(question, GPI__LT_ASKED_IN_PLACE) != NULL;
    return result;
}

/* Has the heuristic's answers, as far as they may be taken. */
static int gpi__lt_get_answers(const gpi__lt_question *question, const gpi__candidate *candidate,
                               gpi__lt_product *product, gpi__lt_answers *answers) {
    const gemmepi_context *context = question->context;
    const gpi__cublaslt *lt = &context->cublaslt;
    const gpi__problem *problem = question->problem;
    gpi__lt_preference preference;
    int asked = candidate->nth || candidate->algorithm.id ? GPI__LT_ALGORITHMS : GPI__LT_FIRST, count = 0;
    int result = gpi__lt_describe_product(question, product);
    if (!result)
        result = gpi__lt_prefer(lt, problem, question->c, question->d, &preference);
    if (!result)
        result = lt->algo_get_heuristic(context->lt_handle, &product->desc, &product->b, &product->a,
                                        &product->c, &product->d, &preference, asked, answers->list, &count);
    if (!result)
        gpi__lt_sort_out(question, count, answers);
    return result;
}

/* The sentence for a problem that none of the answers runs. */
static gemmepi_status gpi__lt_no_answer(const gpi__cublaslt *lt, const gpi__lt_answers *answers, int result) {
    GPI__UNSUPPORTED_IF(answers->defect, "cuBLASLt %d is known to be wrong here: %s (NVIDIA: %s)",
                        lt->version, answers->defect->sentence, answers->defect->source);
    GPI__UNSUPPORTED_IF(answers->fault, "cuBLASLt %d's algorithms for this shape %s", lt->version,
                        answers->fault);
    if (result && result != GPI__CUBLAS_STATUS_NOT_SUPPORTED && result != GPI__CUBLAS_STATUS_INVALID_VALUE)
        return gpi__cublaslt_failed(lt, result, "asking cuBLASLt for an algorithm");
    return gpi__fail(GEMMEPI_UNSUPPORTED, "cuBLASLt %d has no algorithm for it (%s)", lt->version,
                     lt->get_status_string(result ? result : GPI__CUBLAS_STATUS_NOT_SUPPORTED));
}

static void gpi__lt_take(const gpi__lt_question *about, const gpi__lt_answers *answers, int taken,
                         gpi__lt_product *product) {
    gpi__lt_question question = *about;
    const gpi__lt_row *of_runs;
    product->algo = answers->list[taken].algo;
    product->workspace_size = answers->list[taken].workspace_size;
    product->algorithm = answers->names[taken];
    product->waves = answers->list[taken].waves;
    product->left_out = answers->defect ? answers->defect->sentence : NULL;
    product->left_out_wrong = answers->fault && strcmp(answers->fault, GPI__LT_FOUND_WRONG) == 0;
    question.algorithm = &product->algorithm;
    product->kind = gpi__lt_kind(&question);
    of_runs = gpi__lt_known(&question, GPI__LT_ASKED_RUN);
    product->not_with_c = of_runs ? of_runs->sentence : NULL;
}

/* candidate: which algorithm */
static gemmepi_status gpi__lt_ask(const gpi__lt_question *question, const gpi__candidate *candidate,
                                  gpi__lt_product *product) {
    const gpi__cublaslt *lt = &question->context->cublaslt;
    gpi__lt_answers answers;
    int result = 0, taken;
    memset(product, 0, sizeof *product);
    memset(&answers, 0, sizeof answers);
    GPI__UNSUPPORTED_IF(question->problem->batch > INT_MAX, "batch is %lld; cuBLASLt accepts up to 2^31 - 1",
                        (long long)question->problem->batch);
    answers.defect = gpi__lt_known(question, GPI__LT_ASKED_PRODUCT);
    if (!answers.defect)
        result = gpi__lt_get_answers(question, candidate, product, &answers);
    if (!answers.count)
        return gpi__lt_no_answer(lt, &answers, result);
    taken = gpi__lt_find(question, candidate, &answers);
    GPI__UNSUPPORTED_IF(taken < 0,
                        "cuBLASLt %d offers %d algorithms for it that may be used, and not the one asked for",
                        lt->version, answers.count);
    gpi__lt_take(question, &answers, taken, product);
    return GEMMEPI_OK;
}

/* Asks cuBLASLt for an algorithm. c and d are the problem's, or those of a bare product into a buffer of ours.
   GEMMEPI_UNSUPPORTED with the sentence if cuBLASLt has none. Fast accumulation is a permission: block-scaled products do
   not have it. */
static gemmepi_status gpi__lt_build(const gpi__lt_question *question, const gpi__candidate *candidate,
                                    gpi__lt_product *product) {
    gemmepi_status status = gpi__lt_ask(question, candidate, product);
    gpi__problem slow = *question->problem;
    gpi__lt_question slowly = *question;
    slow.flags &= ~GEMMEPI_FAST_ACCUMULATION;
    slowly.problem = &slow;
    if (status == GEMMEPI_UNSUPPORTED && slow.flags != question->problem->flags)
        status = gpi__lt_ask(&slowly, candidate, product);
    return status;
}

/* >>running */

/* What one run hands over beside the plan's product. */
typedef struct gpi__lt_call {
    double alpha, beta;
    const void *a, *b, *c;
    void *d, *workspace;
} gpi__lt_call;

static gpi__lt_call gpi__lt_call_of(const gpi__arguments *arguments, void *workspace) {
    gpi__lt_call call;
    call.alpha = arguments->alpha;
    call.beta = arguments->beta;
    call.a = arguments->pointers[GPI__A];
    call.b = arguments->pointers[GPI__B];
    call.c = arguments->pointers[GPI__C];
    call.d = arguments->pointers[GPI__D];
    call.workspace = workspace;
    return call;
}

typedef union gpi__lt_scalar {
    double f64;
    float f32;
    int32_t i32;
} gpi__lt_scalar;

static gpi__lt_scalar gpi__lt_scalar_of(int dtype, double value) {
    gpi__lt_scalar scalar;
    if (dtype == GEMMEPI_F64)
        scalar.f64 = value;
    else if (dtype == GEMMEPI_I32)
        scalar.i32 = (int32_t)value;
    else
        scalar.f32 = (float)value;
    return scalar;
}

/* Whether cuBLASLt refused to start, rather than failed while it ran. */
static int gpi__lt_refused(int result) {
    return result == GPI__CUBLAS_STATUS_INVALID_VALUE || result == GPI__CUBLAS_STATUS_ARCH_MISMATCH ||
           result == GPI__CUBLAS_STATUS_INTERNAL_ERROR || result == GPI__CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Whether D = alpha A B + D is to be kept from the memory. */
static int gpi__lt_is_in_place(const gpi__lt_product *product, const gpi__lt_call *call) {
    return product->adds_in_place && (float)call->beta == 1 && call->c == call->d;
}

/* Why another route is to run it, or NULL. */
static const char *gpi__lt_needs_other_plan(const gemmepi_context *context, const gpi__lt_product *product,
                                            const gpi__arguments *arguments) {
    gpi__lt_call call = gpi__lt_call_of(arguments, NULL);
    if (product->not_with_c && call.beta != 0)
        return product->not_with_c;
    if (!gpi__lt_is_in_place(product, &call) || ((float)call.alpha == 1 && context->ones))
        return NULL;
    return context->ones ? "with such an alpha it rounds the product to d's type before it adds d"
                         : "without scalars on the device it rounds the product to d's type before it adds d";
}

/* D = A B + D, which a product that adds in place makes right where it does not know that beta is 1: where beta lies on the
   device, and alpha too. */
static int gpi__lt_hide_scalars(const gemmepi_context *context, gpi__lt_product *run, const void **alpha,
                                const void **beta) {
    int32_t mode = GPI__CUBLASLT_POINTER_MODE_DEVICE;
    *alpha = (const float *)(uintptr_t)context->ones;
    *beta = (const float *)(uintptr_t)context->ones + 1;
    return gpi__lt_set(&context->cublaslt, run, GPI__CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
}

/* The primary context is current. UNSUPPORTED, and nothing runs, where cuBLASLt refuses what its heuristic had accepted. */
static gemmepi_status gpi__lt_run(const gemmepi_context *context, const gpi__lt_product *product,
                                  const gpi__arguments *arguments, const gpi__lt_call *call,
                                  gemmepi_stream stream) {
    const gpi__cublaslt *lt = &context->cublaslt;
    gpi__lt_product run = *product; /* the plan's own stays as it is: other threads use it */
    gpi__lt_scalar alpha = gpi__lt_scalar_of(run.scalars, call->alpha);
    gpi__lt_scalar beta = gpi__lt_scalar_of(run.scalars, call->beta);
    const void *c = call->c, *at_alpha = &alpha, *at_beta = &beta;
    int in_place = gpi__lt_is_in_place(&run, call), result = 0, i;
    for (i = 0; i < run.pointer_count && !result; i++)
        result = gpi__lt_set(lt, &run, run.pointers[i].attribute,
                             &arguments->pointers[run.pointers[i].operand], sizeof(void *));
    if (!result && in_place)
        result = gpi__lt_hide_scalars(context, &run, &at_alpha, &at_beta);
    if (call->beta == 0) { /* cuBLASLt wants a C all the same, and does not read it */
        c = run.c_as_d ? call->d : call->a;
        if (run.c_as_d)
            run.c = run.d;
    }
    if (!result)
        result =
            lt->matmul(context->lt_handle, &run.desc, at_alpha, call->b, &run.b, call->a, &run.a, at_beta, c,
                       &run.c, call->d, &run.d, &run.algo, call->workspace, run.workspace_size, stream);
    /* after an internal error something may have run, and a C that is D may be lost */
    GPI__UNSUPPORTED_IF(gpi__lt_refused(result) && !(result == GPI__CUBLAS_STATUS_INTERNAL_ERROR &&
                                                     call->beta != 0 && call->c == call->d),
                        "cublasLtMatmul refused what its heuristic had accepted: %s (%d)",
                        lt->get_status_name(result), result);
    return result ? gpi__cublaslt_failed(lt, result, "cublasLtMatmul") : GEMMEPI_OK;
}

/* >>in words */

/* The algorithm in words; its tile in rows and columns of our D, 0 where its number is not known. */
static void gpi__lt_describe_algo(const gpi__cublaslt *lt, const gpi__lt_product *product,
                                  gemmepi_plan_details *details) {
    gpi__lt_tile(product->algorithm.tile, &details->tile_m, &details->tile_n);
    snprintf(details->kernel, sizeof details->kernel, "cuBLASLt %d algorithm %d, tile %d, split-k %d",
             lt->version, product->algorithm.id, product->algorithm.tile, product->algorithm.split);
}

/* Says what the results of a kind that nobody has measured rest on. */
static void gpi__lt_explain_kind(gemmepi_context *context, gpi__text *text, uint64_t kind) {
    const gpi__lt_verdict *verdict;
    double off = -1;
    gpi__lock(&context->build_lock);
    verdict = gpi__lt_verdict_of(context, kind);
    if (verdict)
        off = verdict->off;
    gpi__unlock(&context->build_lock);
    gpi__append(text,
                "  cuBLASLt %d is not measured on compute capability %d.%d: ", context->cublaslt.version,
                context->arch / 10, context->arch % 10);
    if (off >= 0)
        gpi__append(text, "config.check found this algorithm off by %.2g of the bound at most\n", off);
    else
        gpi__append(text, "this algorithm is taken for right, as documented%s\n",
                    context->check ? "; it has not been checked yet, or could not be"
                                   : "; config.check would check it");
}

static void gpi__lt_explain_product(gemmepi_context *context, gpi__text *text,
                                    const gpi__lt_product *product) {
    if (product->left_out)
        gpi__append(text,
                    "  left out other algorithms of this version, which are known to be wrong here: %s\n",
                    product->left_out);
    if (product->left_out_wrong)
        gpi__append(text, "  left out other algorithms, which " GPI__LT_FOUND_WRONG "\n");
    if (product->kind)
        gpi__lt_explain_kind(context, text, product->kind);
    if (product->not_with_c)
        gpi__append(text, "  runs with beta other than 0 use another plan: %s\n", product->not_with_c);
}

#endif
