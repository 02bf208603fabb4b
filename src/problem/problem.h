/* A product as every route sees it: row-major, defaults filled in, every rule checked. */
#ifndef GEMMEPI_PROBLEM_PROBLEM_H
#define GEMMEPI_PROBLEM_PROBLEM_H

#include "dtype.h"
#include "epilogue.h"

/* The tensors of a product, in the order of every table below. */
enum {
    GEMMEPI__A,
    GEMMEPI__B,
    GEMMEPI__C,
    GEMMEPI__D,
    GEMMEPI__AUX,
    GEMMEPI__RESIDUAL,
    GEMMEPI__BIAS,
    GEMMEPI__BIAS_GRAD,
    GEMMEPI__OPERANDS
};

static const char *const gemmepi__operand_names[GEMMEPI__OPERANDS] = {"a",   "b",        "c",    "d",
                                                                      "aux", "residual", "bias", "bias_grad"};

/* How a tensor lies in memory: `lines` runs of `length` elements, `ld` apart. dtype 0: the problem does not have it. */
typedef struct gemmepi__view {
    int32_t dtype;
    int32_t transposed;
    int32_t bits; /* of one element: 1 for RELU's mask */
    int32_t written;
    int64_t lines, length, ld, batch_stride;
    int64_t bytes; /* from the pointer to the last byte used, whole batch */
} gemmepi__view;

/* Zeroed before it is filled, so that its bytes are the key under which a plan is found again. */
typedef struct gemmepi__problem {
    int64_t m, n, k, batch;
    uint32_t epilogue;
    uint32_t flags;
    int32_t compute;     /* never DEFAULT */
    int32_t accumulator; /* F32 or F64 */
    int32_t exchanged;   /* column-major: a here is the caller's b and the other way round */
    int32_t alignment;   /* bytes, promised for every pointer */
    gemmepi__view views[GEMMEPI__OPERANDS];
} gemmepi__problem;

static int gemmepi__has(const gemmepi__problem *problem, uint32_t flags) {
    return (problem->epilogue & flags) != 0;
}

static int gemmepi__is_empty(const gemmepi__problem *problem) {
    return problem->m == 0 || problem->n == 0 || problem->batch == 0;
}

/* Sizes and offsets stay below this many elements, so that no sum of products of them overflows 64 bits in bits. */
#define GEMMEPI__MAX_ELEMENTS ((int64_t)1 << 56)

/* count * stride + rest, or -1 where that passes GEMMEPI__MAX_ELEMENTS. All are at least 0. */
static int64_t gemmepi__offset(int64_t count, int64_t stride, int64_t rest) {
    if (rest > GEMMEPI__MAX_ELEMENTS || (stride != 0 && count > (GEMMEPI__MAX_ELEMENTS - rest) / stride))
        return -1;
    return count * stride + rest;
}

static gemmepi_status gemmepi__check_size(const char *name, int64_t size) {
    if (size < 0 || size > GEMMEPI__MAX_ELEMENTS)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s is %lld; accepted are 0 to 2^56", name,
                             (long long)size);
    return GEMMEPI_OK;
}

/* Fills in ld and checks every rule of a view that says nothing about other tensors. */
static gemmepi_status gemmepi__check_view(gemmepi__view *view, const char *name, int64_t batch) {
    int64_t given_ld = view->ld, item, end;
    int mask = view->bits == 1;
    const char *unit = mask ? "bits" : "elements";
    if (view->ld < 0 || view->batch_stride < 0)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.%s is %lld; it may not be negative", name,
                             view->ld < 0 ? "ld" : "batch_stride",
                             (long long)(view->ld < 0 ? view->ld : view->batch_stride));
    if (view->ld == 0)
        view->ld = view->length ? view->length : 1;
    if (mask && given_ld == 0)
        view->ld = (view->ld + 127) / 128 * 128;
    if (mask && (view->ld % 128 || view->batch_stride % 128))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.%s.%s is %lld; for RELU's mask it counts bits and must be a multiple of 128", name,
            view->ld % 128 ? "ld" : "batch_stride",
            (long long)(view->ld % 128 ? view->ld : view->batch_stride));
    if (view->ld < view->length)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.%s.ld is %lld; a line as stored has %lld %s, so at least that", name,
                             (long long)view->ld, (long long)view->length, unit);
    item = view->lines && view->length ? gemmepi__offset(view->lines - 1, view->ld, view->length) : 0;
    end = item > 0 && batch ? gemmepi__offset(batch - 1, view->batch_stride, item) : item;
    if (end > 0 && batch == 0)
        end = 0;
    if (end < 0)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.%s spans more than 2^56 %s (lines %lld, ld %lld, batch %lld, batch_stride %lld)", name,
            unit, (long long)view->lines, (long long)view->ld, (long long)batch,
            (long long)view->batch_stride);
    view->bytes = (end * view->bits + 7) / 8;
    /* what has no meaning takes its smallest value, so that equal problems have equal keys and no product overflows */
    if (view->lines <= 1)
        view->ld = mask ? (view->length + 127) / 128 * 128 : view->length;
    if (view->ld == 0)
        view->ld = mask ? 128 : 1;
    if (batch <= 1)
        view->batch_stride = 0;
    return GEMMEPI_OK;
}

/* Items of an output may follow one another or be interleaved line by line, but never share memory. */
static gemmepi_status gemmepi__check_output(const gemmepi__view *view, const char *name, int64_t batch) {
    int64_t item = gemmepi__offset(view->lines - 1, view->ld, view->length);
    int follow = view->batch_stride >= item;
    int interleaved = view->batch_stride >= view->length &&
                      view->ld >= gemmepi__offset(batch - 1, view->batch_stride, view->length);
    if (batch <= 1 || view->lines == 0 || view->length == 0 || follow || interleaved)
        return GEMMEPI_OK;
    return gemmepi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "desc.%s.batch_stride is %lld with desc.batch %lld: items of an output would overlap; at least %lld keeps "
        "them apart",
        name, (long long)view->batch_stride, (long long)batch, (long long)item);
}

/* Which dtypes a side tensor (anything but a and b) may have: the operands', or F32 beside 16-bit operands. */
static gemmepi_status gemmepi__check_side_dtype(const char *name, gemmepi_dtype dtype,
                                                gemmepi_dtype operands) {
    if (dtype == operands || (dtype == GEMMEPI_F32 && operands != GEMMEPI_F64))
        return GEMMEPI_OK;
    if (!gemmepi__dtype_is_known(dtype))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.dtype is %d, which is no gemmepi_dtype", name,
                             (int)dtype);
    return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.dtype is %s; with %s operands %s%s is accepted",
                         name, gemmepi__dtype(dtype)->name, gemmepi__dtype(operands)->name,
                         gemmepi__dtype(operands)->name,
                         operands == GEMMEPI_F64 || operands == GEMMEPI_F32 ? "" : " or F32");
}

/* A matrix in the caller's order: rows x columns of op(), so exchanged here where it is stored transposed. */
static gemmepi_status gemmepi__take_matrix(gemmepi__problem *problem, int operand,
                                           const gemmepi_matrix *matrix, gemmepi_dtype default_dtype,
                                           int64_t rows, int64_t columns, gemmepi_order order) {
    gemmepi__view *view = &problem->views[operand];
    const char *name = gemmepi__operand_names[operand];
    int may_transpose = operand == GEMMEPI__A || operand == GEMMEPI__B;
    int lines_are_rows = (order == GEMMEPI_ROW_MAJOR) != (matrix->transposed != 0);
    if (matrix->transposed != 0 && (matrix->transposed != 1 || !may_transpose))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.transposed is %d; accepted %s", name,
                             matrix->transposed,
                             may_transpose ? "are 0 and 1" : "is 0: only a and b may be stored transposed");
    view->dtype = (int32_t)(matrix->dtype ? matrix->dtype : default_dtype);
    view->transposed = matrix->transposed;
    view->lines = lines_are_rows ? rows : columns;
    view->length = lines_are_rows ? columns : rows;
    view->ld = matrix->ld;
    view->batch_stride = matrix->batch_stride;
    if (operand == GEMMEPI__AUX && gemmepi__aux_is_mask(problem->epilogue)) {
        view->bits = 1;
        if (matrix->dtype != GEMMEPI_DTYPE_DEFAULT && matrix->dtype != default_dtype)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "desc.aux.dtype is %d; RELU's aux is a bit mask and takes no dtype",
                                 (int)matrix->dtype);
    } else {
        view->bits = (int32_t)(8 * gemmepi__dtype((gemmepi_dtype)view->dtype)->size);
    }
    if (operand != GEMMEPI__A && operand != GEMMEPI__B && view->bits != 1) {
        gemmepi_status status = gemmepi__check_side_dtype(name, (gemmepi_dtype)view->dtype,
                                                          (gemmepi_dtype)problem->views[GEMMEPI__A].dtype);
        if (status)
            return status;
    }
    return gemmepi__check_view(view, name, problem->batch);
}

static gemmepi_status gemmepi__take_vector(gemmepi__problem *problem, int operand,
                                           const gemmepi_vector *vector, int64_t length) {
    gemmepi__view *view = &problem->views[operand];
    const char *name = gemmepi__operand_names[operand];
    gemmepi_dtype dtype = vector->dtype ? vector->dtype : (gemmepi_dtype)problem->views[GEMMEPI__D].dtype;
    gemmepi_status status =
        gemmepi__check_side_dtype(name, dtype, (gemmepi_dtype)problem->views[GEMMEPI__A].dtype);
    if (status)
        return status;
    view->dtype = (int32_t)dtype;
    view->bits = (int32_t)(8 * gemmepi__dtype(dtype)->size);
    view->lines = 1;
    view->length = length;
    view->batch_stride = vector->batch_stride;
    return gemmepi__check_view(view, name, problem->batch);
}

/* a, b and the kind of arithmetic */
static gemmepi_status gemmepi__take_operands(gemmepi__problem *problem, const gemmepi_matmul_desc *desc) {
    gemmepi_dtype dtype = desc->a.dtype ? desc->a.dtype : GEMMEPI_F32;
    gemmepi_compute compute = desc->compute;
    gemmepi_status status;
    if (!gemmepi__dtype_is_known(dtype))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.a.dtype is %d, which is no gemmepi_dtype",
                             (int)dtype);
    if (desc->b.dtype && desc->b.dtype != dtype)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.b.dtype is %s (%d); it must be a's, %s",
                             gemmepi__dtype(desc->b.dtype)->name, (int)desc->b.dtype,
                             gemmepi__dtype(dtype)->name);
    if (compute == GEMMEPI_COMPUTE_DEFAULT)
        compute = dtype == GEMMEPI_F64 ? GEMMEPI_COMPUTE_F64 : GEMMEPI_COMPUTE_F32;
    if ((unsigned)compute > GEMMEPI_COMPUTE_F64)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.compute is %d, which is no gemmepi_compute",
                             (int)compute);
    if ((compute == GEMMEPI_COMPUTE_F64) != (dtype == GEMMEPI_F64) ||
        (compute == GEMMEPI_COMPUTE_TF32 && dtype != GEMMEPI_F32))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.compute is %s with %s operands; F64 goes with F64, TF32 with F32, F32 with F32, F16 and BF16",
            compute == GEMMEPI_COMPUTE_F64    ? "F64"
            : compute == GEMMEPI_COMPUTE_TF32 ? "TF32"
                                              : "F32",
            gemmepi__dtype(dtype)->name);
    problem->compute = (int32_t)compute;
    problem->accumulator = dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    status = gemmepi__take_matrix(problem, GEMMEPI__A, &desc->a, dtype, desc->m, desc->k, desc->order);
    if (status)
        return status;
    return gemmepi__take_matrix(problem, GEMMEPI__B, &desc->b, dtype, desc->k, desc->n, desc->order);
}

static gemmepi_status gemmepi__take_epilogue(gemmepi__problem *problem, const gemmepi_matmul_desc *desc) {
    int64_t along = desc->order == GEMMEPI_ROW_MAJOR ? desc->n : desc->m; /* the length of one bias */
    gemmepi_dtype d = (gemmepi_dtype)problem->views[GEMMEPI__D].dtype;
    gemmepi_status status = GEMMEPI_OK;
    if (gemmepi__has(problem, GEMMEPI_AUX | GEMMEPI_BACKWARD))
        status = gemmepi__take_matrix(problem, GEMMEPI__AUX, &desc->aux, d, desc->m, desc->n, desc->order);
    if (!status && gemmepi__has(problem, GEMMEPI_RESIDUAL))
        status = gemmepi__take_matrix(problem, GEMMEPI__RESIDUAL, &desc->residual, d, desc->m, desc->n,
                                      desc->order);
    if (!status && gemmepi__has(problem, GEMMEPI_BIAS))
        status = gemmepi__take_vector(problem, GEMMEPI__BIAS, &desc->bias, along);
    if (!status && gemmepi__has(problem, GEMMEPI_BGRAD))
        status = gemmepi__take_vector(problem, GEMMEPI__BIAS_GRAD, &desc->bias_grad, along);
    if (!status && gemmepi__has(problem, GEMMEPI_BGRAD_A))
        status = gemmepi__take_vector(problem, GEMMEPI__BIAS_GRAD, &desc->bias_grad, desc->m);
    if (!status && gemmepi__has(problem, GEMMEPI_BGRAD_B))
        status = gemmepi__take_vector(problem, GEMMEPI__BIAS_GRAD, &desc->bias_grad, desc->n);
    return status;
}

static gemmepi_status gemmepi__check_outputs(gemmepi__problem *problem) {
    gemmepi__view *bias_grad = &problem->views[GEMMEPI__BIAS_GRAD];
    gemmepi_status status;
    problem->views[GEMMEPI__D].written = 1;
    problem->views[GEMMEPI__AUX].written = gemmepi__has(problem, GEMMEPI_AUX);
    bias_grad->written = bias_grad->dtype != 0;
    if (gemmepi__is_empty(problem))
        return GEMMEPI_OK;
    status = gemmepi__check_output(&problem->views[GEMMEPI__D], "d", problem->batch);
    if (!status && gemmepi__has(problem, GEMMEPI_AUX))
        status = gemmepi__check_output(&problem->views[GEMMEPI__AUX], "aux", problem->batch);
    if (!status && bias_grad->dtype && bias_grad->batch_stride)
        status = gemmepi__check_output(bias_grad, "bias_grad", problem->batch);
    return status;
}

/* Column-major is the same memory read as the transposed row-major product, D^T = op(B)^T op(A)^T: the operands
   exchange, every view stays as it lies. */
static void gemmepi__fold_column_major(gemmepi__problem *problem) {
    gemmepi__view a = problem->views[GEMMEPI__A];
    int64_t m = problem->m;
    problem->views[GEMMEPI__A] = problem->views[GEMMEPI__B];
    problem->views[GEMMEPI__B] = a;
    problem->m = problem->n;
    problem->n = m;
    problem->exchanged = 1;
    problem->epilogue = gemmepi__callers_epilogue(problem->epilogue, 1); /* the way back is the same */
}

static gemmepi_status gemmepi__check_scalars_of_desc(const gemmepi_matmul_desc *desc) {
    gemmepi_status status = gemmepi__check_size("m", desc->m);
    if (!status)
        status = gemmepi__check_size("n", desc->n);
    if (!status)
        status = gemmepi__check_size("k", desc->k);
    if (!status)
        status = gemmepi__check_size("batch", desc->batch);
    if (status)
        return status;
    if ((unsigned)desc->order > GEMMEPI_COLUMN_MAJOR)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.order is %d, which is no gemmepi_order",
                             (int)desc->order);
    if (desc->flags & ~(GEMMEPI_RELAXED | GEMMEPI_DEVICE_SCALARS))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.flags is 0x%x; accepted are RELAXED (1) and DEVICE_SCALARS (2)",
                             (unsigned)desc->flags);
    if (desc->alignment > 256 || (desc->alignment & (desc->alignment - 1)))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.alignment is %llu; accepted are powers of two up to 256, and 0",
                             (gemmepi__ull)desc->alignment);
    return gemmepi__check_epilogue(desc->epilogue);
}

/* desc -> problem, or the sentence that says what is wrong with it. */
static gemmepi_status gemmepi__normalise(const gemmepi_matmul_desc *desc, gemmepi__problem *problem) {
    gemmepi_matrix c;
    gemmepi_status status;
    memset(problem, 0, sizeof *problem);
    if (!desc)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc is NULL");
    status = gemmepi__check_scalars_of_desc(desc);
    if (status)
        return status;
    problem->m = desc->m;
    problem->n = desc->n;
    problem->k = desc->k;
    problem->batch = desc->batch;
    problem->epilogue = desc->epilogue;
    problem->flags = desc->flags;
    problem->alignment = desc->alignment ? (int32_t)desc->alignment : 16;
    status = gemmepi__take_operands(problem, desc);
    if (!status)
        status = gemmepi__take_matrix(problem, GEMMEPI__D, &desc->d,
                                      (gemmepi_dtype)problem->views[GEMMEPI__A].dtype, desc->m, desc->n,
                                      desc->order);
    if (status)
        return status;
    c = desc->c;
    if (!c.dtype && !c.transposed && !c.ld && !c.batch_stride) {
        c.ld = problem->views[GEMMEPI__D].ld;
        c.batch_stride = problem->views[GEMMEPI__D].batch_stride;
    }
    status = gemmepi__take_matrix(problem, GEMMEPI__C, &c, (gemmepi_dtype)problem->views[GEMMEPI__D].dtype,
                                  desc->m, desc->n, desc->order);
    if (!status)
        status = gemmepi__take_epilogue(problem, desc);
    if (!status)
        status = gemmepi__check_outputs(problem);
    if (!status && desc->order == GEMMEPI_COLUMN_MAJOR)
        gemmepi__fold_column_major(problem);
    return status;
}

static void gemmepi__fill_needs(const gemmepi__problem *problem, gemmepi_epilogue_needs *needs) {
    const gemmepi__view *views = problem->views;
    memset(needs, 0, sizeof *needs);
    needs->reads_bias = views[GEMMEPI__BIAS].dtype != 0;
    needs->reads_aux = gemmepi__has(problem, GEMMEPI_BACKWARD);
    needs->reads_residual = views[GEMMEPI__RESIDUAL].dtype != 0;
    needs->writes_aux = gemmepi__has(problem, GEMMEPI_AUX);
    needs->writes_bias_grad = views[GEMMEPI__BIAS_GRAD].dtype != 0;
    needs->accumulates_bias_grad = gemmepi__has(problem, GEMMEPI_BGRAD_ACCUMULATE);
    needs->aux_is_mask = views[GEMMEPI__AUX].bits == 1;
    needs->bias_dtype = (gemmepi_dtype)views[GEMMEPI__BIAS].dtype;
    needs->aux_dtype = needs->aux_is_mask ? GEMMEPI_DTYPE_DEFAULT : (gemmepi_dtype)views[GEMMEPI__AUX].dtype;
    needs->residual_dtype = (gemmepi_dtype)views[GEMMEPI__RESIDUAL].dtype;
    needs->bias_grad_dtype = (gemmepi_dtype)views[GEMMEPI__BIAS_GRAD].dtype;
    needs->bias_length = views[GEMMEPI__BIAS].length;
    needs->bias_grad_length = views[GEMMEPI__BIAS_GRAD].length;
    needs->aux_ld = views[GEMMEPI__AUX].ld;
    needs->bias_bytes = (size_t)views[GEMMEPI__BIAS].bytes;
    needs->aux_bytes = (size_t)views[GEMMEPI__AUX].bytes;
    needs->residual_bytes = (size_t)views[GEMMEPI__RESIDUAL].bytes;
    needs->bias_grad_bytes = (size_t)views[GEMMEPI__BIAS_GRAD].bytes;
}

GEMMEPI_API gemmepi_status gemmepi_epilogue_info(const gemmepi_matmul_desc *desc,
                                                 gemmepi_epilogue_needs *needs) {
    gemmepi__problem problem;
    gemmepi_status status;
    if (!needs)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "needs is NULL");
    status = gemmepi__normalise(desc, &problem);
    if (!status)
        gemmepi__fill_needs(&problem, needs);
    return status;
}

#endif
