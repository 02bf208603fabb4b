/* cuBLASLt, as far as rows are held against it: declared by hand, found when the program runs. Products, bare or with an
   epilogue of cuBLASLt's, each by the fastest algorithm that its heuristic names. */
#ifndef GEMMEPI_BENCH_LT_H
#define GEMMEPI_BENCH_LT_H

#include "bench.h"

typedef struct lt_answer {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} lt_answer;

enum {
    LT_REAL_32F = 0, /* cudaDataType */
    LT_REAL_16F = 2,
    LT_REAL_16BF = 14,
    LT_COMPUTE_32F = 68,  /* cublasComputeType_t */
    LT_COMPUTE_TF32 = 77, /* cublasComputeType_t */
    LT_INVALID_VALUE =
        7, /* cublasStatus_t: the heuristic's answer to some of what cuBLASLt does not support */
    LT_NOT_SUPPORTED = 15,
    LT_TRANSPOSED = 1,
    LT_PREFERENCE_WORKSPACE = 1,
    LT_HOPPER = 66 /* the algorithm whose kernels have wgmma and TMA, on 9.0; the others' have mma.sync */
};

/* attributes of an algorithm, and which tiles and stages it has */
enum {
    LT_ALGORITHM_ID = 0,
    LT_ALGORITHM_TILE = 1,
    LT_ALGORITHM_PARTS = 2, /* of k */
    LT_ALGORITHM_REDUCTION = 3,
    LT_ALGORITHM_SWIZZLE = 4,
    LT_ALGORITHM_STAGES = 6,
    LT_HAS_TILES = 6,
    LT_HAS_STAGES = 13,
    LT_REDUCES_IN_F32 = 2, /* of parts, where that is what is computed with */
    LT_TILE_32X32 = 11,
    LT_TILE_256X128 = 24
};

/* attributes of a product */
enum {
    LT_DESC_TRANSA = 3,
    LT_DESC_TRANSB = 4,
    LT_DESC_EPILOGUE = 7,
    LT_DESC_BIAS = 8,
    LT_DESC_AUX = 11,
    LT_DESC_AUX_LD = 12,
    LT_DESC_BIAS_TYPE = 26
};

/* cublasLtEpilogue_t, bits to be or-ed */
enum {
    LT_EPILOGUE_RELU = 2,
    LT_EPILOGUE_BIAS = 4,
    LT_EPILOGUE_DRELU = 8,  /* with AUX, which is read */
    LT_EPILOGUE_BGRAD = 16, /* with DRELU or DGELU */
    LT_EPILOGUE_GELU = 32,
    LT_EPILOGUE_DGELU = 64, /* as DRELU */
    LT_EPILOGUE_AUX = 128,
    LT_EPILOGUE_BGRADA = 256, /* of the column-major operands, alone */
    LT_EPILOGUE_BGRADB = 512,
    LT_EPILOGUE_ANY_BIAS = LT_EPILOGUE_BIAS | LT_EPILOGUE_BGRAD | LT_EPILOGUE_BGRADA | LT_EPILOGUE_BGRADB
};

/* our field, the exported name, parameters; every result is an int, 0 for success */
#define LT_FUNCTIONS(X)                                                                                      \
    X(create, cublasLtCreate, (void **handle))                                                               \
    X(destroy, cublasLtDestroy, (void *handle))                                                              \
    X(desc_create, cublasLtMatmulDescCreate, (void **desc, int compute, int scale_type))                     \
    X(desc_destroy, cublasLtMatmulDescDestroy, (void *desc))                                                 \
    X(desc_set, cublasLtMatmulDescSetAttribute, (void *desc, int attribute, const void *value, size_t size)) \
    X(layout_create, cublasLtMatrixLayoutCreate,                                                             \
      (void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld))                                \
    X(layout_destroy, cublasLtMatrixLayoutDestroy, (void *layout))                                           \
    X(preference_create, cublasLtMatmulPreferenceCreate, (void **preference))                                \
    X(preference_destroy, cublasLtMatmulPreferenceDestroy, (void *preference))                               \
    X(preference_set, cublasLtMatmulPreferenceSetAttribute,                                                  \
      (void *preference, int attribute, const void *value, size_t size))                                     \
    X(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                             \
      (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int requested,        \
       lt_answer *answers, int *returned))                                                                   \
    X(algorithm_get, cublasLtMatmulAlgoConfigGetAttribute,                                                   \
      (const uint64_t *algorithm, int attribute, void *value, size_t size, size_t *written))                 \
    X(algorithm_set, cublasLtMatmulAlgoConfigSetAttribute,                                                   \
      (uint64_t * algorithm, int attribute, const void *value, size_t size))                                 \
    X(algorithm_has, cublasLtMatmulAlgoCapGetAttribute,                                                      \
      (const uint64_t *algorithm, int attribute, void *value, size_t size, size_t *written))                 \
    X(algorithm_ids, cublasLtMatmulAlgoGetIds,                                                               \
      (void *handle, int compute, int scale_type, int a, int b, int c, int d, int requested, int *ids,       \
       int *returned))                                                                                       \
    X(algorithm_of_id, cublasLtMatmulAlgoInit,                                                               \
      (void *handle, int compute, int scale_type, int a, int b, int c, int d, int id, uint64_t *algorithm))  \
    X(algorithm_check, cublasLtMatmulAlgoCheck,                                                              \
      (void *handle, void *desc, void *a, void *b, void *c, void *d, const uint64_t *algorithm,              \
       lt_answer *answer))                                                                                   \
    X(matmul, cublasLtMatmul,                                                                                \
      (void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,            \
       void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,             \
       const uint64_t *algorithm, void *workspace, size_t workspace_size, void *stream))

enum {
    LT_IDS = 200,
    LT_SETTINGS = 1024, /* tiles, or stages, of an algorithm */
    LT_ANSWERS = 32,    /* that the heuristic is asked for, */
    LT_TRIALS = 3,      /* times that each is measured, the least counts, */
    LT_TRIAL_RUNS = 5,  /* and runs each time */
    LT_WORKSPACE = 32 << 20
};

typedef struct lt {
#define LT_FIELD(field, symbol, parameters) int(*field) parameters;
    LT_FUNCTIONS(LT_FIELD)
#undef LT_FIELD
    void *handle, *preference;
    void *workspace; /* the caller's, LT_WORKSPACE bytes of the device */
} lt;

/* Row-major matrices are column-major ones transposed, so D^T [rows, columns] = op(a) op(b) with `a` the
   right operand. */
typedef struct lt_form {
    int64_t rows, columns, inner;
    int a_transposed, b_transposed;
    int type;                 /* of all three: LT_REAL_16BF, LT_REAL_16F or LT_REAL_32F */
    int d_is_f32;             /* 1: D, C, bias and what is summed are LT_REAL_32F */
    int adds;                 /* 1: D = op(a) op(b) + C; C lies as D unless c_ld says otherwise */
    int compute;              /* 0: LT_COMPUTE_32F */
    int epilogue;             /* 0: none */
    int64_t aux_ld;           /* bits with RELU and DRELU, else elements; 0 without AUX */
    int64_t a_ld, b_ld, d_ld; /* 0: dense */
    int64_t c_ld;             /* 0: D's */
} lt_form;

typedef struct lt_product {
    void *desc, *a_layout, *b_layout, *c_layout, *d_layout;
    int epilogue, adds;
    lt_answer answer;
} lt_product;

typedef struct lt_pointers {
    const void *a, *b;
    void *d;
    const void *bias; /* these two where the epilogue has them; BGRAD writes its sums there */
    void *aux;
    const void *c; /* of a product that adds */
} lt_pointers;

/* >>opening and closing */

static int lt_did(bench *b, int result, const char *what) {
    return !result || bench_fail(b, "%s: cuBLASLt returned %d", what, result);
}

/* That which gemmepi has loaded, wherever it has found it: the system's loader knows it by its name from then on. */
static void *lt_find_library(void) {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    void *library = NULL;
    int i;
    for (i = 0; i < COUNT(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    for (i = 0; i < COUNT(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static int lt_load(bench *b, lt *l) {
    void *library = lt_find_library(), *address;
    if (!library)
        return bench_fail(b, "libcublasLt.so.13 and .12 cannot be opened");
/* by memcpy: ISO C has no conversion from objects to functions */
#define LT_FIND(field, symbol, parameters)                        \
    address = dlsym(library, #symbol);                            \
    if (!address)                                                 \
        return bench_fail(b, "libcublasLt.so lacks %s", #symbol); \
    memcpy(&l->field, &address, sizeof address);
    LT_FUNCTIONS(LT_FIND)
#undef LT_FIND
    return 1;
}

/* Everything but the workspace, which is the caller's to set. lt_close takes whatever this leaves. */
static int lt_open(bench *b, lt *l) {
    const uint64_t workspace = LT_WORKSPACE;
    return lt_load(b, l) && lt_did(b, l->create(&l->handle), "cublasLtCreate") &&
           lt_did(b, l->preference_create(&l->preference), "cublasLtMatmulPreferenceCreate") &&
           lt_did(b, l->preference_set(l->preference, LT_PREFERENCE_WORKSPACE, &workspace, sizeof workspace),
                  "setting the workspace");
}

static void lt_close(lt *l) {
    if (l->preference)
        l->preference_destroy(l->preference);
    if (l->handle)
        l->destroy(l->handle);
    l->preference = l->handle = NULL;
}

/* >>products */

static int lt_set(bench *b, const lt *l, const lt_product *p, int attribute, const void *value, size_t size) {
    return lt_did(b, l->desc_set(p->desc, attribute, value, size), "cublasLtMatmulDescSetAttribute");
}

static int lt_layout(bench *b, const lt *l, void **layout, int type, int64_t rows, int64_t columns,
                     int64_t ld) {
    return lt_did(b, l->layout_create(layout, type, (uint64_t)rows, (uint64_t)columns, ld ? ld : rows),
                  "cublasLtMatrixLayoutCreate");
}

static int lt_d_type(const lt_form *form) {
    return form->d_is_f32 ? LT_REAL_32F : form->type;
}

static int lt_set_epilogue(bench *b, const lt *l, lt_product *p, const lt_form *form) {
    const int type = lt_d_type(form);
    p->epilogue = form->epilogue;
    return (!form->epilogue || lt_set(b, l, p, LT_DESC_EPILOGUE, &form->epilogue, sizeof form->epilogue)) &&
           (!(form->epilogue & LT_EPILOGUE_ANY_BIAS) ||
            lt_set(b, l, p, LT_DESC_BIAS_TYPE, &type, sizeof type)) &&
           (!(form->epilogue & LT_EPILOGUE_AUX) ||
            lt_set(b, l, p, LT_DESC_AUX_LD, &form->aux_ld, sizeof form->aux_ld));
}

/* lt_forget takes whatever this leaves. */
static int lt_describe(bench *b, const lt *l, lt_product *p, const lt_form *form) {
    const int transposed = LT_TRANSPOSED;
    int64_t a_rows = form->a_transposed ? form->inner : form->rows;
    int64_t a_columns = form->a_transposed ? form->rows : form->inner;
    int64_t b_rows = form->b_transposed ? form->columns : form->inner;
    int64_t b_columns = form->b_transposed ? form->inner : form->columns;
    int64_t d_ld = form->d_ld ? form->d_ld : form->rows;
    int compute = form->compute ? form->compute : LT_COMPUTE_32F;
    memset(p, 0, sizeof *p);
    p->adds = form->adds;
    return lt_did(b, l->desc_create(&p->desc, compute, LT_REAL_32F), "cublasLtMatmulDescCreate") &&
           (!form->a_transposed || lt_set(b, l, p, LT_DESC_TRANSA, &transposed, sizeof transposed)) &&
           (!form->b_transposed || lt_set(b, l, p, LT_DESC_TRANSB, &transposed, sizeof transposed)) &&
           lt_set_epilogue(b, l, p, form) &&
           lt_layout(b, l, &p->a_layout, form->type, a_rows, a_columns, form->a_ld) &&
           lt_layout(b, l, &p->b_layout, form->type, b_rows, b_columns, form->b_ld) &&
           lt_layout(b, l, &p->c_layout, lt_d_type(form), form->rows, form->columns,
                     form->c_ld ? form->c_ld : d_ld) &&
           lt_layout(b, l, &p->d_layout, lt_d_type(form), form->rows, form->columns, d_ld);
}

/* A product that was never described is none to forget. */
static void lt_forget(const lt *l, lt_product *p) {
    if (p->desc)
        l->desc_destroy(p->desc);
    if (p->a_layout)
        l->layout_destroy(p->a_layout);
    if (p->b_layout)
        l->layout_destroy(p->b_layout);
    if (p->c_layout)
        l->layout_destroy(p->c_layout);
    if (p->d_layout)
        l->layout_destroy(p->d_layout);
    memset(p, 0, sizeof *p);
}

/* The bias and aux that runs from now on, and the heuristic, take. */
static int lt_point(bench *b, const lt *l, const lt_product *p, const lt_pointers *at) {
    return (!(p->epilogue & LT_EPILOGUE_ANY_BIAS) ||
            lt_set(b, l, p, LT_DESC_BIAS, &at->bias, sizeof at->bias)) &&
           (!(p->epilogue & LT_EPILOGUE_AUX) || lt_set(b, l, p, LT_DESC_AUX, &at->aux, sizeof at->aux));
}

static int lt_run(bench *b, const lt *l, const lt_product *p, const lt_pointers *at) {
    static const float one = 1, zero = 0;
    return lt_point(b, l, p, at) &&
           lt_did(b,
                  l->matmul(l->handle, p->desc, &one, at->a, p->a_layout, at->b, p->b_layout,
                            p->adds ? &one : &zero, p->adds ? at->c : at->d, p->c_layout, at->d, p->d_layout,
                            p->answer.algorithm, l->workspace, LT_WORKSPACE, b->stream),
                  "cublasLtMatmul");
}

/* So many algorithms for p, or fewer, that the heuristic names; *count 0: cuBLASLt does not support it. */
static int lt_ask(bench *b, const lt *l, const lt_product *p, int most, lt_answer *answers, int *count) {
    int result;
    *count = 0;
    result = l->heuristic(l->handle, p->desc, p->a_layout, p->b_layout, p->c_layout, p->d_layout,
                          l->preference, most, answers, count);
    if (result)
        *count = 0;
    return result == LT_NOT_SUPPORTED || result == LT_INVALID_VALUE ||
           lt_did(b, result, "cublasLtMatmulAlgoGetHeuristic");
}

/* Leaves the answers whose kernels are none of Hopper's, in their order; returns how many there are, `most` of them at most. */
static int lt_leave_out_hopper(const lt *l, lt_answer *answers, int count, int most) {
    int kept = 0, i;
    for (i = 0; i < count && kept < most; i++) {
        int id = LT_HOPPER;
        size_t written = 0;
        if (!l->algorithm_get(answers[i].algorithm, LT_ALGORITHM_ID, &id, sizeof id, &written) &&
            id != LT_HOPPER)
            answers[kept++] = answers[i];
    }
    return kept;
}

/* >>algorithms that the heuristic does not name */

typedef struct lt_list {
    lt_answer *answers;
    int count, most;
} lt_list;

/* The tiles or stages that the algorithm has, or 0, what it has where it names none. Returns how many there are. */
static int lt_settings(const lt *l, const uint64_t *algorithm, int attribute, int *settings) {
    size_t bytes = 0, written;
    settings[0] = 0;
    if (l->algorithm_has(algorithm, attribute, NULL, 0, &bytes) || bytes < sizeof *settings ||
        bytes > LT_SETTINGS * sizeof *settings ||
        l->algorithm_has(algorithm, attribute, settings, bytes, &written))
        return 1;
    return (int)(bytes / sizeof *settings);
}

static void lt_configure(const lt *l, uint64_t *algorithm, int attribute, int value) {
    l->algorithm_set(algorithm, attribute, &value, sizeof value);
}

/* Adds the algorithm if it runs p. Returns its waves, how many times as many blocks as run at a time it has; 0: it does not run. */
static float lt_add(const lt *l, const lt_product *p, const uint64_t *algorithm, lt_list *list) {
    lt_answer answer;
    memset(&answer, 0, sizeof answer);
    if (list->count == list->most ||
        l->algorithm_check(l->handle, p->desc, p->a_layout, p->b_layout, p->c_layout, p->d_layout, algorithm,
                           &answer) ||
        answer.workspace > LT_WORKSPACE)
        return 0;
    memcpy(answer.algorithm, algorithm, sizeof answer.algorithm);
    answer.state = 0;
    list->answers[list->count++] = answer;
    return answer.waves;
}

/* With a tile and stages: where tiles fill the GPU in both orders of blocks, else with k in parts, too. */
static void lt_add_tile(const lt *l, const lt_product *p, const uint64_t *like, lt_list *list) {
    static const int parts[] = {2, 4, 8, 16};
    uint64_t algorithm[8];
    float waves;
    int i;
    memcpy(algorithm, like, sizeof algorithm);
    waves = lt_add(l, p, algorithm, list);
    if (waves >= 1) {
        lt_configure(l, algorithm, LT_ALGORITHM_SWIZZLE, 1);
        lt_add(l, p, algorithm, list);
    }
    for (i = 0; i < COUNT(parts) && waves > 0 && waves * (float)parts[i] <= 2; i++) {
        lt_configure(l, algorithm, LT_ALGORITHM_PARTS, parts[i]);
        lt_configure(l, algorithm, LT_ALGORITHM_REDUCTION, LT_REDUCES_IN_F32);
        lt_add(l, p, algorithm, list);
    }
}

/* With its tiles from 32 x 32 to 256 x 128 and all stages. */
static void lt_add_algorithm(const lt *l, const lt_product *p, uint64_t *algorithm, lt_list *list) {
    int tiles[LT_SETTINGS], stages[LT_SETTINGS], tile, stage;
    int tile_count = lt_settings(l, algorithm, LT_HAS_TILES, tiles);
    int stage_count = lt_settings(l, algorithm, LT_HAS_STAGES, stages);
    for (tile = 0; tile < tile_count; tile++)
        for (stage = 0; stage < stage_count; stage++) {
            lt_configure(l, algorithm, LT_ALGORITHM_TILE, tiles[tile]);
            lt_configure(l, algorithm, LT_ALGORITHM_STAGES, stages[stage]);
            if (!tiles[tile] || (tiles[tile] >= LT_TILE_32X32 && tiles[tile] <= LT_TILE_256X128))
                lt_add_tile(l, p, algorithm, list);
        }
}

/* Lists up to `most` algorithms that run p, but none of Hopper's. Returns how many there are. */
static int lt_list_others(const lt *l, const lt_product *p, const lt_form *form, lt_answer *answers,
                          int most) {
    const int compute = form->compute ? form->compute : LT_COMPUTE_32F, type = form->type,
              d = lt_d_type(form);
    int ids[LT_IDS], count = 0, i;
    uint64_t algorithm[8];
    lt_list list;
    list.answers = answers, list.count = 0, list.most = most;
    if (l->algorithm_ids(l->handle, compute, LT_REAL_32F, type, type, d, d, LT_IDS, ids, &count))
        return 0;
    for (i = 0; i < count; i++)
        if (ids[i] != LT_HOPPER &&
            !l->algorithm_of_id(l->handle, compute, LT_REAL_32F, type, type, d, d, ids[i], algorithm))
            lt_add_algorithm(l, p, algorithm, &list);
    return list.count;
}

/* Times the algorithms that the heuristic names, each by `run`, which runs p with p->answer, by turns, as the clock falls
   while they run, and keeps the fastest. *found: whether any runs; for what cuBLASLt does not support none does. */
static int lt_choose(bench *b, const lt *l, lt_product *p, bench_call run, void *user, int *found) {
    lt_answer answers[LT_ANSWERS], best;
    double least = 0, time;
    int count, i, trial;
    *found = 0;
    if (!lt_ask(b, l, p, LT_ANSWERS, answers, &count))
        return 0;
    for (i = 0; i < count; i++) { /* what does not run is out; it warms up, too */
        p->answer = answers[i];
        answers[i].state = answers[i].state || !run(b, user);
    }
    for (trial = 0; trial < LT_TRIALS; trial++)
        for (i = 0; i < count; i++) {
            p->answer = answers[i];
            if (answers[i].state)
                continue;
            if (!bench_time(b, run, user, LT_TRIAL_RUNS, &time))
                return 0;
            if (!*found || time < least)
                least = time, best = answers[i];
            *found = 1;
        }
    if (*found)
        p->answer = best;
    return 1;
}

/* A bare product there must be. */
static int lt_choose_bare(bench *b, const lt *l, lt_product *p, bench_call run, void *user) {
    int found;
    return lt_choose(b, l, p, run, user, &found) &&
           (found || bench_fail(b, "cuBLASLt runs no algorithm for a bare product"));
}

#endif
