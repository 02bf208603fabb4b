/* What is known to be wrong with cuBLASLt: a table by version and chip, asked when the library is opened, before it is asked for
   algorithms, of each algorithm and of each run. NVIDIA's release notes are at docs.nvidia.com/cuda/cuda-toolkit-release-notes and
   .../cublas-patch-release-notes; the number of a row is theirs. docs/routes.md prints the table. */
#ifndef GEMMEPI_PRODUCT_ROUTES_LT_KNOWN_H
#define GEMMEPI_PRODUCT_ROUTES_LT_KNOWN_H

#include "lt_describe.h"

/* What is asked about: a product, by an algorithm or by any. */
typedef struct gpi__lt_question {
    const gemmepi_context *context;
    const gpi__problem *problem;
    gpi__lt_use use;
    const gpi__view *c, *d;             /* the product's */
    const gpi__lt_algorithm *algorithm; /* NULL: whichever it will be */
} gpi__lt_question;

/* About a product into the problem's own D, by any algorithm. */
static gpi__lt_question gpi__lt_question_of(const gemmepi_context *context, const gpi__problem *problem,
                                            gpi__lt_use use) {
    gpi__lt_question question;
    question.context = context;
    question.problem = problem;
    question.use = use;
    question.c = &problem->views[GPI__C];
    question.d = &problem->views[GPI__D];
    question.algorithm = NULL;
    return question;
}

typedef enum gpi__lt_asked {
    GPI__LT_ASKED_OPENING, /* a warning: what decides cannot be seen from here */
    GPI__LT_ASKED_PRODUCT, /* no algorithm may run the product                 */
    GPI__LT_ASKED_ALGORITHM,
    GPI__LT_ASKED_RUN /* runs with C, that is beta other than 0 */
} gpi__lt_asked;

typedef struct gpi__lt_defect {
    int from, before; /* versions, 120603 for 12.6.3: from the first with the defect to the first without */
    int patched;      /* the patch releases of March 2026 are without it, too */
    int first_arch, last_arch;
    int algorithm; /* cuBLASLt's number; 0: any */
    gpi__lt_asked asked;
    int (*applies)(const gpi__lt_question *); /* NULL: always */
    const char *sentence;                     /* what goes wrong, and when */
    const char *source;
} gpi__lt_defect;

/* >>conditions */

/* Elements of k in a stage, by cuBLASLt's number of the stages (cublasLtMatmulStages_t of CUDA 13); 0: a number that is not known. */
static int gpi__lt_stage(int stages) {
    static const short listed[] = {0,  16, 16, 16, 16, 16, 16,  32,  32,  32,  32,  32,  32,
                                   64, 64, 64, 64, 64, 64, 128, 128, 128, 128, 128, 128, 32,
                                   8,  16, 8,  0,  0,  8,  8,   16,  32,  64,  128, 256, 768};
    return stages >= 0 && stages < (int)GPI__COUNT(listed) ? listed[stages] : 0;
}

/* The split does not divide k, and the parts without the rest are whole stages. Of stages that are not known the smallest is counted. */
static int gpi__lt_loses_end_of_k(const gpi__lt_question *q) {
    int split = q->algorithm->split, stage = gpi__lt_stage(q->algorithm->stages);
    return split > 1 && q->problem->k % split != 0 && q->problem->k / split % (stage ? stage : 8) == 0;
}

static int gpi__lt_has_long_lines(const gpi__lt_question *q) {
    const gpi__view *views = q->problem->views;
    return views[GPI__A].ld > INT_MAX / (views[GPI__A].bits / 8) ||
           views[GPI__B].ld > INT_MAX / (views[GPI__B].bits / 8) || q->c->ld > INT_MAX / (q->c->bits / 8) ||
           q->d->ld > INT_MAX / (q->d->bits / 8);
}

static int gpi__lt_is_vector(const gpi__lt_question *q) {
    return q->problem->m == 1 || q->problem->n == 1;
}

static int gpi__lt_is_vector_with_bias(const gpi__lt_question *q) {
    return gpi__lt_is_vector(q) && q->use == GPI__LT_WHOLE && gpi__has(q->problem, GEMMEPI_BIAS);
}

static int gpi__lt_spans_2_31(const gpi__view *view) {
    return view->lines > INT_MAX / view->ld;
}

static int gpi__lt_has_large_matrix(const gpi__lt_question *q) {
    const gpi__view *views = q->problem->views;
    return gpi__lt_spans_2_31(&views[GPI__A]) || gpi__lt_spans_2_31(&views[GPI__B]) ||
           gpi__lt_spans_2_31(q->c) || gpi__lt_spans_2_31(q->d);
}

static int gpi__lt_is_vector_of_large_matrix(const gpi__lt_question *q) {
    return gpi__lt_is_vector(q) && gpi__lt_has_large_matrix(q);
}

static int gpi__lt_is_very_long_vector(const gpi__lt_question *q) {
    return gpi__lt_is_vector(q) && (q->problem->m > 3145680 || q->problem->n > 3145680);
}

static int gpi__lt_has_biases_of_items(const gpi__lt_question *q) {
    return q->use == GPI__LT_WHOLE && q->problem->batch > 1 && gpi__has(q->problem, GEMMEPI_BIAS) &&
           q->problem->views[GPI__BIAS].batch_stride != 0;
}

static int gpi__lt_sums_gradients_at_k_1(const gpi__lt_question *q) {
    return q->use == GPI__LT_WHOLE && q->problem->k == 1 &&
           (gpi__has(q->problem, GPI__ANY_BGRAD) || gpi__has(q->problem, GEMMEPI_BACKWARD));
}

static int gpi__lt_has_fp8_gelu(const gpi__lt_question *q) {
    return q->use == GPI__LT_WHOLE && gpi__is_fp8_product(q->problem) && !gpi__is_fp8(q->d->dtype) &&
           gpi__activation(q->problem->epilogue) == GEMMEPI_GELU_TANH;
}

/* Documented are a bias of D's type, beside F32 BF16 and beside fp8 C's, and an aux of D's type. */
static int gpi__lt_has_other_fp8_bias_or_aux(const gpi__lt_question *q) {
    const gpi__view *views = q->problem->views;
    int d = q->d->dtype, bias = gpi__is_fp8(d) ? q->c->dtype : d == GEMMEPI_F32 ? GEMMEPI_BF16 : d;
    return q->use == GPI__LT_WHOLE && gpi__is_fp8_product(q->problem) &&
           ((views[GPI__BIAS].dtype && views[GPI__BIAS].dtype != bias) ||
            (views[GPI__AUX].dtype && views[GPI__AUX].bits != 1 && views[GPI__AUX].dtype != d));
}

static int gpi__lt_is_i8(const gpi__lt_question *q) {
    return q->problem->common == GEMMEPI_I8;
}

static int gpi__lt_shares_an_operand(const gpi__lt_question *q) {
    const gpi__view *a = &q->problem->views[GPI__A], *b = &q->problem->views[GPI__B];
    return q->problem->batch > 1 &&
           (a->batch_stride < a->lines * a->ld || b->batch_stride < b->lines * b->ld);
}

static int gpi__lt_has_scaled_c(const gpi__lt_question *q) {
    return q->use == GPI__LT_WHOLE && gpi__is_fp8_product(q->problem) && q->c->scale != 0;
}

/* Whether a blocking stream of this context is captured: the driver refuses the legacy stream then, and leaves the capture as it is. */
static int gpi__lt_is_captured(const gpi__lt_question *q) {
    gpi__cu_stream legacy = (gpi__cu_stream)(uintptr_t)GPI__CU_STREAM_LEGACY;
    int status = 0;
    return q->context->driver.stream_is_capturing(legacy, &status) == GPI__CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* >>the table */

static const gpi__lt_defect gpi__lt_defects[] = {
    {120603, 130800, 0, 90, 119, 66, GPI__LT_ASKED_ALGORITHM, gpi__lt_loses_end_of_k,
     "split-k leaves out the end of k where it does not divide k and its parts are whole stages", "6580689"},
    {120603, 130300, 1, 90, 119, 66, GPI__LT_ASKED_ALGORITHM, gpi__lt_has_long_lines,
     "results are wrong where ld in bytes is 2^31 or more", "CUB-9572"},
    {130600, 130601, 0, 0, INT_MAX, 68, GPI__LT_ASKED_ALGORITHM, gpi__lt_has_large_matrix,
     "runs fail where a matrix spans 2^31 elements", "raft 3097"},
    {0, 130300, 1, 90, 90, 66, GPI__LT_ASKED_RUN, gpi__lt_has_scaled_c,
     "fp8 products hang where beta is not 0 and the scale of C is 0", "CUB-9627"},
    {130501, 130601, 0, 0, INT_MAX, 0, GPI__LT_ASKED_PRODUCT, gpi__lt_is_captured,
     "asking for an algorithm ends the capture of a blocking stream", "6288786"},
    {0, 120804, 0, 0, INT_MAX, 0, GPI__LT_ASKED_PRODUCT, gpi__lt_is_vector_with_bias,
     "results with BIAS may be wrong where m or n is 1", "5104822"},
    {0, 120804, 0, 0, INT_MAX, 0, GPI__LT_ASKED_PRODUCT, gpi__lt_is_vector_of_large_matrix,
     "memory beyond the operands may be read where m or n is 1 and a matrix spans 2^31 elements", "5113092"},
    {130600, 130601, 0, 120, 121, 0, GPI__LT_ASKED_PRODUCT, gpi__lt_is_very_long_vector,
     "results with beta C may be wrong where m or n is 1 and the other above 3145680", "CUB-10445"},
    {130100, 130601, 0, 120, 121, 0, GPI__LT_ASKED_PRODUCT, gpi__lt_shares_an_operand,
     "memory beyond an operand that items share may be read", "6040940"},
    {130000, 130002, 0, 0, INT_MAX, 0, GPI__LT_ASKED_PRODUCT, gpi__lt_is_i8,
     "products of I8 into I32 may be wrong", "CUB-8874"},
    {0, 120603, 0, 0, INT_MAX, 0, GPI__LT_ASKED_PRODUCT, gpi__lt_has_other_fp8_bias_or_aux,
     "fp8 products may ignore the type of bias or aux", "4750343"},
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_PRODUCT, gpi__lt_sums_gradients_at_k_1,
     "gradients in the epilogue may be wrong, or use memory beyond the workspace, where k is 1",
     "known issue of CUDA 12.4, not said to be resolved"},
    {120200, 120304, 0, 0, INT_MAX, 0, GPI__LT_ASKED_PRODUCT, gpi__lt_has_fp8_gelu,
     "fp8 products with GELU may be wrong where D is C and beta is 1", "resolved in CUDA 12.3 Update 1"},
    {0, 120300, 0, 90, 90, 0, GPI__LT_ASKED_PRODUCT, gpi__lt_has_biases_of_items,
     "each item may get the first item's bias", "known issue of CUDA 12.2, not listed from 12.3 on"},
    {120800, 130300, 1, 100, 119, 66, GPI__LT_ASKED_OPENING, NULL,
     "results may be wrong while another kernel uses tensor memory", "5807900"},
    {120800, 120804, 0, 100, INT_MAX, 0, GPI__LT_ASKED_OPENING, NULL,
     "launches of fp8, F16 and BF16 products may fail under rare circumstances", "5124406"},
    {0, 130300, 0, 120, 121, 0, GPI__LT_ASKED_OPENING, NULL,
     "16-bit products on 12.1 and fp8 products on 12.0 may read memory beyond their operands", "5846563"},
    {0, 120405, 0, 90, 90, 0, GPI__LT_ASKED_OPENING, NULL,
     "asking for an algorithm may end the program by a floating-point exception, as on parts of a GPU (MIG)",
     "resolved in CUDA 12.4 Update 1"},
};

/* Whether the version is one of the patch releases of March 2026 (12.8.5, 12.9.2, 13.1.1, 13.2.2), or a later one of its series. */
static int gpi__lt_is_patched(int version) {
    return (version >= 120805 && version < 120900) || (version >= 120902 && version < 130000) ||
           (version >= 130101 && version < 130200) || version >= 130202;
}

static int gpi__lt_is_affected(const gemmepi_context *context, const gpi__lt_defect *defect) {
    int version = context->cublaslt.version, arch = context->arch;
    return version >= defect->from && version < defect->before &&
           !(defect->patched && gpi__lt_is_patched(version)) && arch >= defect->first_arch &&
           arch <= defect->last_arch;
}

/* The first defect that is met, or NULL. */
static const gpi__lt_defect *gpi__lt_known(const gpi__lt_question *question, gpi__lt_asked asked) {
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__lt_defects); i++) {
        const gpi__lt_defect *defect = &gpi__lt_defects[i];
        if (defect->asked == asked && gpi__lt_is_affected(question->context, defect) &&
            (!defect->algorithm || defect->algorithm == question->algorithm->id) && defect->applies(question))
            return defect;
    }
    return NULL;
}

/* >>opening */

static gemmepi_status gpi__open_lt(gemmepi_context *context) {
    gemmepi_status status = GEMMEPI_OK;
    size_t i;
    int result;
    if (context->lt_handle)
        return GEMMEPI_OK;
    if (!context->has_cublaslt)
        status = gpi__load_cublaslt(&context->loader, &context->cublaslt);
    if (status)
        return status;
    context->has_cublaslt = 1;
    result = context->cublaslt.create(&context->lt_handle);
    if (result) {
        context->lt_handle = NULL;
        return gpi__cublaslt_failed(&context->cublaslt, result, "cublasLtCreate");
    }
    for (i = 0; i < GPI__COUNT(gpi__lt_defects); i++)
        if (gpi__lt_defects[i].asked == GPI__LT_ASKED_OPENING &&
            gpi__lt_is_affected(context, &gpi__lt_defects[i]))
            gpi__say(&context->log, GEMMEPI_LOG_WARNING,
                     "cuBLASLt %d on this GPU: %s (NVIDIA: %s); a newer one is without",
                     context->cublaslt.version, gpi__lt_defects[i].sentence, gpi__lt_defects[i].source);
    return GEMMEPI_OK;
}

#endif
