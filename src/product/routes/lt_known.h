/* What is known of cuBLASLt beyond its documentation: a table by version and chip, of what NVIDIA says to be wrong and of what was measured.
   It is asked before the library is loaded, when it is opened, before it is asked for algorithms, of each algorithm and of each run. NVIDIA's
   release notes are at docs.nvidia.com/cuda/cuda-toolkit-release-notes and .../cublas-patch-release-notes; the number of a row is theirs.
   docs/routes.md prints the table. */
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

/* When a row is asked, and what follows. */
typedef enum gpi__lt_asked {
    GPI__LT_ASKED_EPILOGUE,  /* the library may not be loaded: its epilogue is not used,         */
    GPI__LT_ASKED_BOUNDS,    /* and with RELAXED it is                                           */
    GPI__LT_ASKED_C,         /* C is not the product's                                           */
    GPI__LT_ASKED_READS,     /* the product takes longer than its model says                     */
    GPI__LT_ASKED_OPENING,   /* a warning: what decides cannot be seen from here                 */
    GPI__LT_ASKED_PRODUCT,   /* no algorithm may run the product                                 */
    GPI__LT_ASKED_ALGORITHM, /* this one may not                                                 */
    GPI__LT_ASKED_CONTRACT,  /* likewise, as it breaks the contract, or                          */
    GPI__LT_ASKED_UNSEEN,    /* as nobody has seen that it keeps it, unless config.check looks   */
    GPI__LT_ASKED_TILES,     /* one with smaller tiles goes first                                */
    GPI__LT_ASKED_IN_PLACE,  /* D = A B + D is kept from the memory                              */
    GPI__LT_ASKED_RUN,       /* runs with C, that is beta other than 0, use another route        */
    GPI__LT_ASKED_SEEN       /* tests hold all that it is used for to the bounds: no check       */
} gpi__lt_asked;

typedef struct gpi__lt_row {
    int from, before; /* versions, 120603 for 12.6.3: from the first with it to the first without */
    int patched;      /* the patch releases of March 2026 are without it, too */
    int first_arch, last_arch;
    int algorithm; /* cuBLASLt's number; negative: all but that; 0: any */
    gpi__lt_asked asked;
    int (*applies)(const gpi__lt_question *); /* NULL: always */
    const char *sentence;                     /* what goes wrong, and when */
    const char *source;
} gpi__lt_row;

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

/* >>conditions of what was measured */

static int gpi__lt_is_gelu(const gpi__lt_question *q) {
    return gpi__activation(q->problem->epilogue) == GEMMEPI_GELU_TANH;
}

static int gpi__lt_is_narrow(const gpi__lt_question *q) {
    return q->problem->views[GPI__D].bits <= 16;
}

static int gpi__lt_converts_f32(const gpi__lt_question *q) {
    int d = q->d->dtype;
    return !gpi__is_fp8_product(q->problem) && d != GEMMEPI_F32 && d != q->problem->common &&
           !gpi__is_scaled_dtype(d);
}

static int gpi__lt_has_gelu_gradient(const gpi__lt_question *q) {
    return gpi__lt_is_gelu(q) && gpi__has(q->problem, GEMMEPI_BACKWARD);
}

/* D would be stored as C lies: algorithm 21 did so in F32 and BF16, where lines of C begin at multiples of 16 bytes and those of D do not, and
   the GPU ended with CUDA_ERROR_MISALIGNED_ADDRESS; the other way round it was right. Counted in elements, as they may differ in dtype. */
static int gpi__lt_stores_as_c(const gpi__lt_question *q) {
    return gpi__unit_of(q->problem, q->c, 0) / (q->c->bits / 8) >
           gpi__unit_of(q->problem, q->d, 0) / (q->d->bits / 8);
}

/* From this many elements on a 16-bit DRELU costs 1.2 to 1.3 times a bare product and a pass at 4096 x 4096 x 4096 and 8192 x 3072 x 768 (m, n,
   k), as much below. */
#define GPI__LT_DRELU_MAX_SIZE ((int64_t)1 << 23)

static int gpi__lt_has_large_drelu(const gpi__lt_question *q) {
    const gpi__problem *problem = q->problem;
    return gpi__activation(problem->epilogue) == GEMMEPI_RELU && gpi__has(problem, GEMMEPI_BACKWARD) &&
           problem->views[GPI__D].bits == 16 && problem->m > GPI__LT_DRELU_MAX_SIZE / problem->n;
}

static int gpi__lt_writes_mask(const gpi__lt_question *q) {
    return gpi__activation(q->problem->epilogue) == GEMMEPI_RELU && gpi__has(q->problem, GEMMEPI_AUX);
}

static int gpi__lt_has_amax_of_e5m2(const gpi__lt_question *q) {
    const gpi__view *views = q->problem->views;
    return (q->problem->flags & (GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX)) &&
           (views[GPI__A].dtype == GEMMEPI_E5M2 || views[GPI__B].dtype == GEMMEPI_E5M2);
}

static int gpi__lt_has_f64_gelu(const gpi__lt_question *q) {
    return gpi__lt_is_gelu(q) && q->problem->accumulator == GEMMEPI_F64;
}

static int gpi__lt_has_wide_gelu(const gpi__lt_question *q) {
    return gpi__lt_is_gelu(q) && !gpi__lt_is_narrow(q) && !gpi__is_fp8_product(q->problem);
}

/* From this k on the bound for 16-bit results, at least 1.13 (4 + k / 8) 2^-24 |v| = 4.5e-6 |v|, covers the error of the approximate GELU: at
   most 3.9e-6 |v| (near v = -1.4; 1.2e-6 |v| below 0.5, 3e-7 below 0.25), over |v| from 2^-13 to 64. */
#define GPI__LT_GELU_MIN_K 512

static int gpi__lt_has_gelu_of_short_k(const gpi__lt_question *q) {
    return gpi__lt_is_gelu(q) && !gpi__is_fp8_product(q->problem) && q->problem->k < GPI__LT_GELU_MIN_K;
}

static int gpi__lt_has_narrow_sums(const gpi__lt_question *q) {
    return gpi__has(q->problem, GEMMEPI_BGRAD) && gpi__lt_is_narrow(q);
}

static int gpi__lt_may_have_alpha_0(const gpi__lt_question *q) {
    return q->use != GPI__LT_BARE_ALPHA_1;
}

/* Algorithm 66 keeps its sums in F32 until bias and GELU are done. Others, 24 for one, round them to 16 bits before: off by a unit of the sum,
   however small the result is. */
static int gpi__lt_adds_before_rounding(const gpi__lt_question *q) {
    return gpi__lt_is_narrow(q) && !(q->problem->flags & GEMMEPI_RELAXED) && q->use == GPI__LT_WHOLE &&
           (gpi__has(q->problem, GEMMEPI_BIAS) || gpi__lt_is_gelu(q));
}

/* Where cuBLASLt puts tiles of 128 x 256 first, which store their results while nothing is multiplied. With BF16, products of 1000 to 16384
   rows, 768 to 8192 columns and k 200 to 2048, all layouts, an answer with one of the smaller tiles took 0.90 of the first answer's time in the
   mean and 1.03 at most where that has two waves or more (238 and 195 products; 0.87 and 1.00 where the results are F32); with fewer waves up to
   1.06. F16 is taken to be like BF16. */
#define GPI__LT_SHORT_K 2048

static int gpi__lt_has_short_k(const gpi__lt_question *q) {
    return gpi__dtype((gemmepi_dtype)q->problem->common)->size == 2 && q->problem->k <= GPI__LT_SHORT_K;
}

/* D = alpha A B + D is left to the memory, which adds in D's type what was rounded to it before, where beta is known to be 1, with no epilogue,
   with BIAS and with DRELU, whose results were off by 20 times the bound so. */
static int gpi__lt_may_add_in_memory(const gpi__lt_question *q) {
    uint32_t activation = gpi__activation(q->problem->epilogue);
    return q->problem->views[GPI__D].bits == 16 && !(q->problem->flags & GEMMEPI_RELAXED) &&
           q->use == GPI__LT_WHOLE &&
           (activation == GEMMEPI_NONE ||
            (activation == GEMMEPI_RELU && gpi__has(q->problem, GEMMEPI_BACKWARD)));
}

/* >>the table */

/* Measured on an H200 with 13.1. What was seen of an algorithm or an epilogue is taken to hold for all chips and versions, what makes one
   faster, or is said of all others, for 9.0 alone. */
#define GPI__LT_H200 "measured on an H200"

static const gpi__lt_row gpi__lt_rows[] = {
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
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_EPILOGUE, gpi__lt_converts_f32,
     "it was seen to write past a 16-bit d of F32 operands", GPI__LT_H200},
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_EPILOGUE, gpi__lt_has_gelu_gradient,
     "its GELU derivative is off by up to 1.6e-5, and wrong where aux is D", GPI__LT_H200},
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_C, gpi__lt_stores_as_c,
     "lines or items of d begin at multiples of fewer elements than those of c, as which it stores d",
     GPI__LT_H200},
    {0, INT_MAX, 0, 90, 90, 0, GPI__LT_ASKED_EPILOGUE, gpi__lt_has_large_drelu,
     "its DRELU is slower than a pass of ours from 2^23 elements on", GPI__LT_H200},
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_BOUNDS, gpi__lt_writes_mask,
     "its RELU mask has the bit for v >= 0, ours for v > 0", GPI__LT_H200},
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_BOUNDS, gpi__lt_has_amax_of_e5m2,
     "its amax is NaN where an infinity of E5M2 makes it infinite", GPI__LT_H200},
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_BOUNDS, gpi__lt_has_f64_gelu,
     "its GELU is off by up to 3e-10 in F64", GPI__LT_H200},
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_BOUNDS, gpi__lt_has_wide_gelu,
     "its GELU is off by up to 5.3e-6", GPI__LT_H200},
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_BOUNDS, gpi__lt_has_gelu_of_short_k,
     "its GELU is off by up to 5.3e-6, which the bound for k below 512 does not cover", GPI__LT_H200},
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_BOUNDS, gpi__lt_has_narrow_sums,
     "it sums bias_grad from values already rounded to D's type", GPI__LT_H200},
    {0, INT_MAX, 0, 0, INT_MAX, 13, GPI__LT_ASKED_CONTRACT, gpi__lt_may_have_alpha_0,
     "do not write D where alpha is 0", GPI__LT_H200},
    {0, INT_MAX, 0, 90, 90, -66, GPI__LT_ASKED_CONTRACT, gpi__lt_adds_before_rounding,
     "may round to 16 bits before the epilogue", GPI__LT_H200},
    {0, INT_MAX, 0, 0, INT_MAX, -66, GPI__LT_ASKED_UNSEEN, gpi__lt_adds_before_rounding,
     "may round to 16 bits before the epilogue: it is not documented, and not measured on this chip (config.check would)",
     "not documented, not measured"},
    {0, INT_MAX, 0, 0, INT_MAX, 0, GPI__LT_ASKED_IN_PLACE, gpi__lt_may_add_in_memory,
     "D = A B + D in 16 bits rounds A B first", GPI__LT_H200},
    {0, INT_MAX, 0, 90, 90, 0, GPI__LT_ASKED_TILES, gpi__lt_has_short_k,
     "large tiles are slow in 16 bits with k up to 2048", GPI__LT_H200},
    {0, INT_MAX, 0, 90, 90, 0, GPI__LT_ASKED_READS, NULL, "products that wait for A and B take longer",
     "measured on an H100"},
    {130100, 130200, 0, 90, 90, 0, GPI__LT_ASKED_SEEN, NULL, "the tests hold its results to the bounds",
     "measured on an H100 and an H200"},
};

/* Whether the version is one of the patch releases of March 2026 (12.8.5, 12.9.2, 13.1.1, 13.2.2), or a later one of its series. */
static int gpi__lt_is_patched(int version) {
    return (version >= 120805 && version < 120900) || (version >= 120902 && version < 130000) ||
           (version >= 130101 && version < 130200) || version >= 130202;
}

/* Of what holds for all versions the library need not be loaded. */
static int gpi__lt_is_affected(const gemmepi_context *context, const gpi__lt_row *row) {
    int version = context->cublaslt.version, arch = context->arch;
    return version >= row->from && version < row->before && !(row->patched && gpi__lt_is_patched(version)) &&
           arch >= row->first_arch && arch <= row->last_arch;
}

static int gpi__lt_is_by(const gpi__lt_row *row, const gpi__lt_algorithm *algorithm) {
    return !row->algorithm ||
           (row->algorithm > 0 ? algorithm->id == row->algorithm : algorithm->id != -row->algorithm);
}

/* The first row that holds, or NULL. */
static const gpi__lt_row *gpi__lt_known(const gpi__lt_question *question, gpi__lt_asked asked) {
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__lt_rows); i++) {
        const gpi__lt_row *row = &gpi__lt_rows[i];
        if (row->asked == asked && gpi__lt_is_affected(question->context, row) &&
            gpi__lt_is_by(row, question->algorithm) && (!row->applies || row->applies(question)))
            return row;
    }
    return NULL;
}

/* The rule that keeps a problem from cuBLASLt's epilogues, or NULL. The library need not be loaded. */
static const char *gpi__lt_rule(const gemmepi_context *context, const gpi__problem *problem) {
    const char *documented = gpi__lt_documented(problem);
    gpi__lt_question question = gpi__lt_question_of(context, problem, GPI__LT_WHOLE);
    const gpi__lt_row *row;
    if (documented)
        return documented;
    row = gpi__lt_known(&question, GPI__LT_ASKED_C);
    if (!row)
        row = gpi__lt_known(&question, GPI__LT_ASKED_EPILOGUE);
    if (!row && !(problem->flags & GEMMEPI_RELAXED))
        row = gpi__lt_known(&question, GPI__LT_ASKED_BOUNDS);
    return row ? row->sentence : NULL;
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
    for (i = 0; i < GPI__COUNT(gpi__lt_rows); i++)
        if (gpi__lt_rows[i].asked == GPI__LT_ASKED_OPENING && gpi__lt_is_affected(context, &gpi__lt_rows[i]))
            gpi__say(&context->log, GEMMEPI_LOG_WARNING,
                     "cuBLASLt %d on this GPU: %s (NVIDIA: %s); a newer one is without",
                     context->cublaslt.version, gpi__lt_rows[i].sentence, gpi__lt_rows[i].source);
    return GEMMEPI_OK;
}

#endif
