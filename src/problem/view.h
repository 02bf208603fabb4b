/* How a tensor of a product lies in memory, and the rules for one that say nothing about others. */
#ifndef GEMMEPI_PROBLEM_VIEW_H
#define GEMMEPI_PROBLEM_VIEW_H

#include "../api/functions.h"
#include "flags.h"

/* How a tensor lies in memory: `lines` runs of `length` elements, `ld` apart. dtype 0: the problem does not have it. */
typedef struct gpi__view {
    int32_t dtype;
    int32_t transposed;
    int32_t bits; /* of one element: 1 for RELU's mask */
    int32_t written;
    int32_t alignment; /* bytes that every pointer is a multiple of */
    int32_t scale;     /* a gemmepi_scale_mode, of A to RESIDUAL */
    int64_t lines, length, ld, batch_stride;
    int64_t bytes; /* from the pointer to the last byte used, whole batch */
} gpi__view;

/* Sizes and offsets stay below this many elements, so that no sum of products of them overflows 64 bits in bits. */
#define GPI__MAX_ELEMENTS ((int64_t)1 << 56)

/* count * stride + rest, or -1 where that passes GPI__MAX_ELEMENTS, or one is -1 already. */
static int64_t gpi__offset(int64_t count, int64_t stride, int64_t rest) {
    if (count < 0 || stride < 0 || rest < 0 || rest > GPI__MAX_ELEMENTS ||
        (stride != 0 && count > (GPI__MAX_ELEMENTS - rest) / stride))
        return -1;
    return count * stride + rest;
}

static int64_t gpi__bytes_for_bits(int64_t bits) {
    return (bits + 7) / 8;
}

static gemmepi_status gpi__check_size(const char *name, int64_t size) {
    GPI__INVALID_IF(size < 0 || size > GPI__MAX_ELEMENTS, "desc.%s is %lld; accepted are 0 to 2^56%s", name,
                    (long long)size, size < -GPI__MAX_ELEMENTS || size > 0 ? GPI__UNINITIALISED : "");
    return GEMMEPI_OK;
}

/* Fills in ld and checks every rule of a view that says nothing about other tensors. */
static gemmepi_status gpi__check_view(gpi__view *view, const char *name, int64_t batch) {
    int64_t given_ld = view->ld, item, end;
    int mask = view->bits == 1;
    const char *unit = mask ? "bits" : "elements";
    GPI__INVALID_IF(view->ld < 0 || view->batch_stride < 0, "desc.%s.%s is %lld; it may not be negative",
                    name, view->ld < 0 ? "ld" : "batch_stride",
                    (long long)(view->ld < 0 ? view->ld : view->batch_stride));
    if (view->ld == 0)
        view->ld = view->length ? view->length : 1;
    if (mask && given_ld == 0)
        view->ld = (view->ld + 127) / 128 * 128;
    GPI__INVALID_IF(mask && (view->ld % 128 || view->batch_stride % 128),
                    "desc.%s.%s is %lld; for RELU's mask it counts bits and must be a multiple of 128", name,
                    view->ld % 128 ? "ld" : "batch_stride",
                    (long long)(view->ld % 128 ? view->ld : view->batch_stride));
    GPI__INVALID_IF(view->ld < view->length,
                    "desc.%s.ld is %lld; a line as stored has %lld %s, so at least that", name,
                    (long long)view->ld, (long long)view->length, unit);
    item = view->lines && view->length ? gpi__offset(view->lines - 1, view->ld, view->length) : 0;
    end = item > 0 ? gpi__offset(batch - 1, view->batch_stride, item) : item;
    GPI__INVALID_IF(
        end < 0, "desc.%s spans more than 2^56 %s (lines %lld, ld %lld, batch %lld, batch_stride %lld)", name,
        unit, (long long)view->lines, (long long)view->ld, (long long)batch, (long long)view->batch_stride);
    view->bytes = gpi__bytes_for_bits(end * view->bits);
    /* what has no meaning takes its smallest value, so that equal problems have equal keys and no product overflows */
    if (view->lines <= 1 || view->length == 0)
        view->ld = mask ? (view->length + 127) / 128 * 128 : view->length;
    if (view->ld == 0)
        view->ld = mask ? 128 : 1;
    if (batch <= 1 || item == 0)
        view->batch_stride = 0;
    return GEMMEPI_OK;
}

/* Items of an output may follow one another or be interleaved line by line, but never share memory. */
static gemmepi_status gpi__check_output(const gpi__view *view, const char *name, int64_t batch) {
    int64_t item, line = view->length;
    int follow, interleaved;
    if (batch <= 1 || view->lines == 0 || view->length == 0)
        return GEMMEPI_OK;
    item = gpi__offset(view->lines - 1, view->ld, view->length);
    follow = view->batch_stride >= item;
    interleaved = view->batch_stride >= view->length &&
                  view->ld >= gpi__offset(batch - 1, view->batch_stride, view->length);
    if (follow || interleaved)
        return GEMMEPI_OK;
    if (view->bits == 1) /* what a mask's stride must be a multiple of */
        item = (item + 127) / 128 * 128, line = (line + 127) / 128 * 128;
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "desc.%s.batch_stride is %lld with desc.batch %lld: items of an output would overlap; at least %lld keeps "
        "them apart, or %lld side by side in lines of %lld",
        name, (long long)view->batch_stride, (long long)batch, (long long)item, (long long)line,
        (long long)gpi__offset(batch - 1, line, line));
}

#endif
