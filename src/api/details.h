/* >>answers */
#ifndef GEMMEPI_API_DETAILS_H
#define GEMMEPI_API_DETAILS_H

#include "products.h"

/* How a plan runs its problem. A plan uses the route with the least estimate; PLAIN is the last resort where its time is not known.
   Operands are read fastest at multiples of 16 bytes: pointers, leading dimensions and batch strides. FUSED reads any alignment
   down to the element's, or copies the operand to workspace first. docs/routes.md says what each route can run. */
typedef enum gemmepi_route {
    GEMMEPI_ROUTE_EMPTY = 0,      /* m or n is 0, or a tensor is empty: nothing is written but sums of bias_grad */
    GEMMEPI_ROUTE_LT = 1,         /* cuBLASLt: product and epilogue in one kernel */
    GEMMEPI_ROUTE_SPLIT = 2,      /* a cuBLASLt product, then one pass of ours */
    GEMMEPI_ROUTE_HOST = 3,       /* plain C on the host */
    GEMMEPI_ROUTE_PLAIN = 4,      /* a kernel of ours for all problems, used where no other route runs, and for some small products */
    GEMMEPI_ROUTE_CONTIGUOUS = 5, /* element-wise: dense tensors in one line */
    GEMMEPI_ROUTE_STRIDED = 6,    /* element-wise: tiles of any layout */
    GEMMEPI_ROUTE_SUM = 7,        /* sums over axes, in one launch or two, with or without one of those */
    GEMMEPI_ROUTE_SCALED = 8,     /* casts with scales of rows or blocks */
    GEMMEPI_ROUTE_LINEAR = 9,     /* a layer's backward, or a network by layers: products and passes, each with a route of its own (on the host: HOST) */
    GEMMEPI_ROUTE_FUSED = 10      /* product and epilogue in one kernel of ours; a divided k is finished by a pass */
} gemmepi_route;

typedef enum gemmepi_plan_kind {
    GEMMEPI_PLAN_MATMUL = 1,
    GEMMEPI_PLAN_ELEMENTWISE = 2,
    GEMMEPI_PLAN_LINEAR = 3,
    GEMMEPI_PLAN_LINEAR_BACKWARD = 4,
    GEMMEPI_PLAN_GROUPED = 5,
    GEMMEPI_PLAN_NETWORK = 6,
    GEMMEPI_PLAN_NETWORK_BACKWARD = 7
} gemmepi_plan_kind;

typedef struct gemmepi_plan_details {
    gemmepi_plan_kind kind; /* says which gemmepi_run_ function runs the plan */
    gemmepi_route route;
    const char *route_name;    /* "lt" and so on, as the constants; never freed */
    char kernel[96];           /* the kernel of ours or the algorithm that does most of the work */
    int tile_m, tile_n;        /* rows and columns of the result that one block makes; 0: not known */
    int launches;              /* kernels and memsets of ours and calls of cuBLASLt in one run, at most */
    size_t workspace_size;     /* bytes that one run needs; on the route fused with any alpha and c */
    gemmepi_compute compute;   /* never DEFAULT */
    gemmepi_dtype accumulator; /* F32, F64 or I32 */
    int deterministic;         /* 1: repeated runs on one GPU give the same bits */
    int bit_stable;            /* 1: so do other processes on the same hardware and versions, with the same answers or none */
    double microseconds;       /* of one run if the plan was tuned, else 0 */
    int ways_timed, ways_left; /* then: how many ways were timed, and how many were not for want of time or memory */
    size_t saved_size;         /* of a network with SAVED: bytes of args.saved */
} gemmepi_plan_details;

/* What an epilogue reads and writes besides A, B, C and D, with sizes. Sizes are of the whole batch. */
typedef struct gemmepi_epilogue_needs {
    int reads_bias, reads_aux, reads_residual; /* 1 or 0 */
    int writes_aux, writes_bias_grad;
    int accumulates_bias_grad; /* 1: bias_grad is read too */
    int aux_is_mask;           /* 1: RELU's bit mask, 0: a matrix of pre-activations */

    gemmepi_dtype bias_dtype, aux_dtype, residual_dtype, bias_grad_dtype; /* 0 where not used */
    int64_t bias_length, bias_grad_length;                                /* elements of one item; 0 where not used */
    int64_t aux_ld;                                                       /* elements, bits for a mask */
    size_t bias_bytes, aux_bytes, residual_bytes, bias_grad_bytes;        /* from the pointer to the last byte used */

    size_t scale_a_bytes, scale_b_bytes; /* the same; 0 without a scale. Other scales are one F32 for each item */
    size_t found_scale_d_bytes;          /* the same; 0 without FIND_SCALE_D */
} gemmepi_epilogue_needs;

typedef struct gemmepi_context_details {
    int is_host;               /* 1: products run in plain C on the host */
    char fallback_reason[512]; /* why config.device 0 is the host; "" where it is not */
    int device;                /* the CUDA device's index from 0; -1 on the host */
    char name[128];            /* as the driver gives it; "host" on the host */
    int compute_capability;    /* 90 for 9.0; 0 on the host */
    int multiprocessors;       /* 0 on the host */

    int driver_version, nvrtc_version, cublaslt_version; /* 13000 for CUDA 13.0, 130100 for cuBLASLt 13.1; 0: not loaded yet */
    int64_t kernels_compiled;                            /* by NVRTC, since the context was created */
    int64_t kernels_from_disk;                           /* loaded from the cache folder */
    int64_t kernels_from_bundle;                         /* loaded from bundles */
    char cache_path[512];                                /* the cache folder in use; "" if none */
} gemmepi_context_details;

#endif
