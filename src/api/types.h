/* Everything a user hands over or gets back. */
#ifndef GEMMEPI_API_TYPES_H
#define GEMMEPI_API_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define GEMMEPI_VERSION_MAJOR  0
#define GEMMEPI_VERSION_MINOR  15
#define GEMMEPI_VERSION_PATCH  0
#define GEMMEPI_VERSION_STRING "0.15.0"
#define GEMMEPI_VERSION        (GEMMEPI_VERSION_MAJOR * 10000 + GEMMEPI_VERSION_MINOR * 100 + GEMMEPI_VERSION_PATCH)

/* Every struct below is zero-initialised by the user: = {0} in C, = {} in C++. A field left 0 has the default that its
   comment states. Sizes m, n and k have none: 0 is an empty matrix. */

/* A compiler that knows how warns of a status that nobody looks at. */
#ifndef GEMMEPI_NODISCARD
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (!defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
#define GEMMEPI_NODISCARD [[nodiscard]]
#else
#define GEMMEPI_NODISCARD
#endif
#endif

/* >>statuses */

/* What every function that can fail returns. gemmepi_last_error() has the sentence that goes with it. */
#define GEMMEPI_STATUS_LIST(X)                                                                   \
    X(GEMMEPI_OK, 0, "success")                                                                  \
    X(GEMMEPI_INVALID_ARGUMENT, 1, "an argument has a value that is never accepted")             \
    X(GEMMEPI_UNSUPPORTED, 2, "the problem has a meaning, but no route of this version runs it") \
    X(GEMMEPI_MISALIGNED, 3, "a pointer is less aligned than promised")                          \
    X(GEMMEPI_BUFFER_TOO_SMALL, 4, "the workspace is too small or was not reserved")             \
    X(GEMMEPI_OUT_OF_MEMORY, 5, "host or device memory is exhausted")                            \
    X(GEMMEPI_NO_DEVICE, 6, "the device that was asked for does not exist or cannot be used")    \
    X(GEMMEPI_LIBRARY_NOT_FOUND, 7, "a CUDA library was not found, or lacks a function")         \
    X(GEMMEPI_COMPILE_ERROR, 8, "NVRTC did not compile a kernel")                                \
    X(GEMMEPI_CUDA_ERROR, 9, "the CUDA driver returned an error")                                \
    X(GEMMEPI_CUBLAS_ERROR, 10, "cuBLASLt returned an error")                                    \
    X(GEMMEPI_FILE_ERROR, 11, "a file cannot be read or written, or a bundle cannot be used")

typedef enum GEMMEPI_NODISCARD gemmepi_status {
#define GEMMEPI_STATUS_ENUM(name, value, text) name = value,
    GEMMEPI_STATUS_LIST(GEMMEPI_STATUS_ENUM)
#undef GEMMEPI_STATUS_ENUM
        GEMMEPI_STATUS_FORCE_INT = 0x7fffffff
} gemmepi_status;

/* >>handles */

typedef struct gemmepi_context gemmepi_context; /* one device; any number of threads may use it at once */
typedef struct gemmepi_plan gemmepi_plan;       /* one problem of any kind, prepared; immutable, so threads share it */
typedef void *gemmepi_stream;                   /* a CUstream or cudaStream_t; NULL is the default stream */

/* >>configuration */

#define GEMMEPI_DEVICE_HOST (-1)      /* no GPU: the same interface in plain C on host memory */
#define GEMMEPI_DEVICE(i)   ((i) + 1) /* the i-th CUDA device, counted from 0 */

typedef enum gemmepi_log_level {
    GEMMEPI_LOG_ERROR = 1,   /* something failed that the library works around */
    GEMMEPI_LOG_WARNING = 2, /* something the user would want to change */
    GEMMEPI_LOG_INFO = 3,    /* choices made: device, libraries, routes */
    GEMMEPI_LOG_DEBUG = 4    /* compilations, cache hits and misses */
} gemmepi_log_level;

/* message is one line without a line end, valid during the call. May be called from any thread that uses the
   context; must not call back into the context. */
typedef void (*gemmepi_log_function)(void *user, gemmepi_log_level level, const char *message);

/* Host memory for the library's own bookkeeping. Both or neither are set; they must be safe to call from every
   thread that uses the context. alloc returns memory aligned as malloc's, or NULL. */
typedef struct gemmepi_allocator {
    void *(*alloc)(void *user, size_t size);
    void (*free)(void *user, void *pointer);
    void *user;
} gemmepi_allocator;

/* Called for each function that the library takes from a CUDA library: library is "cuda", "nvrtc" or "cublasLt",
   symbol the name, found what the library itself exports (NULL where it or the whole library is missing).
   Returns the address to use, found to leave things as they are, NULL for "missing". Must not call back into the context. */
typedef void *(*gemmepi_symbol_resolver)(void *user, const char *library, const char *symbol, void *found);

typedef struct gemmepi_config {
    /* GEMMEPI_DEVICE(i) or GEMMEPI_DEVICE_HOST. 0: the calling thread's current CUDA device, else the first one, else the
       host (gemmepi_context_details.fallback_reason says why) */
    int device;

    /* NULL: none; but the environment variable GEMMEPI_LOG (error, warning, info, debug) then sends so much to stderr */
    gemmepi_log_function log;
    void *log_user;
    gemmepi_allocator allocator; /* zero: malloc and free */

    /* Folders searched for the CUDA libraries before the usual ones, separated by ':' (';' on Windows). NULL: none. Relative ones, here
       and below, are of the current folder when the context is made */
    const char *library_path;
    int library_path_only;                  /* 1: the folders of library_path and no others, for the driver too */
    gemmepi_symbol_resolver resolve_symbol; /* NULL: what the libraries export */
    void *resolve_user;

    /* Folder for compiled kernels, made with mode 0700; one that others own or can write is not used (the log says so).
       "": none. NULL: gemmepi/ in XDG_CACHE_HOME or ~/.cache (on Windows in LOCALAPPDATA), none where these are not set */
    const char *cache_path;
    size_t cache_size; /* bound on that folder in bytes; 0: 256 MiB */

    /* Folder that receives NAME.cu, .ptx and .cubin of each kernel that is compiled (what the cache has is not: set cache_path
       to "" for all). A failure to write is a warning of the log. NULL: none */
    const char *dump_path;

    unsigned routes;    /* bits 1 << gemmepi_route of those that a GPU's products may take; 0: all */
    int check_pointers; /* 1: every run refuses pointers that the device cannot reach; 0: calls without a plan alone do */

    /* The most multiprocessors that a product takes, by the kernel for Hopper or by cuBLASLt. The rest are for kernels that run
       beside it, such as NCCL's: a product that waits for one multiprocessor waits as a whole. 0, or more than there are: all */
    int multiprocessors;
} gemmepi_config;

/* >>problems */

typedef enum gemmepi_dtype {
    GEMMEPI_DTYPE_DEFAULT = 0, /* what it stands for is said where it is used */
    GEMMEPI_F32 = 1,
    GEMMEPI_F64 = 2,
    GEMMEPI_F16 = 3,  /* IEEE binary16                                                                 */
    GEMMEPI_BF16 = 4, /* the upper 16 bits of an F32                                                   */
    GEMMEPI_E4M3 = 5, /* fp8 of 4 exponent and 3 mantissa bits: up to 448, NaN is 0x7f, no infinity    */
    GEMMEPI_E5M2 = 6, /* fp8 of 5 exponent and 2 mantissa bits: up to 57344, the upper half of an F16  */
    GEMMEPI_I8 = 7,
    GEMMEPI_I32 = 8, /* results of I8 operands, and what is added to them                              */
    GEMMEPI_I64 = 9  /* operands of formulas that are only read: labels, seeds                         */
} gemmepi_dtype;

typedef enum gemmepi_order {
    GEMMEPI_ROW_MAJOR = 0,
    GEMMEPI_COLUMN_MAJOR = 1
} gemmepi_order;

/* How products are multiplied and summed. The accumulator is F64 for F64 operands, I32 for I8 operands with an I32
   result, and F32 for all others (the host accumulates in F64 always). */
typedef enum gemmepi_compute {
    GEMMEPI_COMPUTE_DEFAULT = 0, /* F64 for F64 operands, I32 where both are I8, else F32         */
    GEMMEPI_COMPUTE_F32 = 1,     /* exact products of operands of any type but F64, summed in F32 */
    GEMMEPI_COMPUTE_TF32 = 2,    /* F32 operands of 11 significant bits, the others cut or rounded */
    GEMMEPI_COMPUTE_F64 = 3,     /* F64 operands                                                  */
    GEMMEPI_COMPUTE_I32 = 4      /* I8 operands: exact products and sums                          */
} gemmepi_compute;

/* The factors by which the elements of a matrix are multiplied when read (a, b, c, residual, and aux with BACKWARD) or
   before they are rounded and stored (d, and aux with AUX): F32 numbers on the device.
   For matrices of E4M3, E5M2 and I8 alone; a and b may have different modes.
   BGRAD_A and BGRAD_B sum the scaled operand. Amax (AMAX_D, AMAX_AUX) tells which scale the next result needs. FIND_SCALE_D
   finds d's scales, also of rows and vectors, where otherwise OUTER, VECTOR_128 and BLOCK_128 are for a and b alone.

   The layouts are cuBLASLt 13's. For op(A) of m x k (op(B): exchange m and n, rows and columns):

       TENSOR       one number       s[0]
       OUTER        m numbers        s[row]
                                                 row 0  1  2 ...  m-1
       VECTOR_128   ceil(k / 128) lines of m:    s[k / 128 * m + row]         k 0..127     | s s s ... s |
                                                                              k 128..255   | s s s ... s |
                                                 k 0..127  128..255  ...
       BLOCK_128    ceil(m / 128) lines of L:    s[row / 128 * L + k / 128]   rows 0..127  | s s s . |
                    L = ceil(k / 128) up to a    numbers past ceil(k / 128)   rows 128..   | s s s . |
                    multiple of 4                are not read

   VECTOR_128 is what 1 x 128 groups along k are called elsewhere, BLOCK_128 128 x 128 tiles. Weights in I8 beside an a of 16 bits are a b
   with OUTER, one for each output, or VECTOR_128: stored [n, k] and few rows of a are fast. */
typedef enum gemmepi_scale_mode {
    GEMMEPI_SCALE_NONE = 0,       /* every element by 1                                              */
    GEMMEPI_SCALE_TENSOR = 1,     /* one number for the matrix                                       */
    GEMMEPI_SCALE_OUTER = 2,      /* one for each row of op(A), for each column of op(B)             */
    GEMMEPI_SCALE_VECTOR_128 = 3, /* one for each row of op(A) (column of op(B)) and 128 steps of k  */
    GEMMEPI_SCALE_BLOCK_128 = 4   /* one for each 128 rows of op(A) (columns of op(B)) and 128 of k  */
} gemmepi_scale_mode;

typedef struct gemmepi_scale {
    gemmepi_scale_mode mode;
    int64_t batch_stride; /* F32 numbers between the scales of two items of the batch; 0: the same for all */
} gemmepi_scale;

/* An epilogue is one activation, or-ed with flags. In the order in which they act, all in the accumulator type,
   rounded once when stored:

           v = alpha * sum_k op(A)[m,k] op(B)[k,n] + beta * C[m,n]        (C is not read when beta is 0)
       BIAS       v += bias[n]
       AUX        aux[m,n] = round(scale_aux * v); for RELU the bit v > 0 instead; amax_aux = max |v|
       forward    v = act(v)
       BACKWARD   v = v * act'(aux[m,n]) instead; RELU selects: v or 0
       RESIDUAL   v += residual[m,n]
       BGRAD      bias_grad[n] = sum_m v
       D[m,n] = round(scale_d * v); amax_d = max |v|
       BGRAD_A    bias_grad[m] = sum_k op(A)[m,k];   BGRAD_B  bias_grad[n] = sum_k op(B)[k,n]

   GATED makes one column of a value column and a gate column, or back, in place of act:
       forward    n is even; value and gate of column j are columns j and j + n/2 of v (GATE_FIRST: the other way round),
                  v = value act(gate). C and aux are [m,n], D and residual [m,n/2]. aux is the pre-activation, for RELU too
       BACKWARD   v [m,n] is the upstream gradient, aux the saved [m,2n]. With its value and gate the two halves of
                  D, residual [m,2n] and bias_grad [2n] are v act(gate) and v value act'(gate)
       UPSTREAM   v [m,n] is the pre-activation of both halves, aux [m,n/2] the upstream gradient; D and residual [m,n]
   UPSTREAM without GATED has aux [m,n], for RELU too: there is no bit mask.

   A, B, C, residual and the aux that BACKWARD reads stand for their elements times their scales. Stores round to nearest
   even; those of E4M3, E5M2 and I8 saturate (also infinities; NaN stays NaN, and is 0 in I8). With an I32 result
   everything is whole numbers modulo 2^32.

   RELU's mask (AUX or BACKWARD with RELU, without GATED and UPSTREAM): bit n % 8 of byte (m * ld + n) / 8 is set where v > 0, as
   cuBLASLt packs it. ld and batch stride count bits and are multiples of 128; bits past n are left as they are. In column-major
   order m and n exchange.

   In column-major order bias and bias_grad of BGRAD run along m (length m), and GATED's halves are halves of the m rows,
   as in cuBLASLt. */
typedef uint64_t gemmepi_epilogue;

/* Activations: name, value, derivative; s is the logistic function, Phi and phi the normal distribution's, c = sqrt(2 / pi), p the
   parameter.

       NONE          x                                          1
       RELU          x > 0 ? x : 0, NaN stays NaN               x > 0, applied by selection: v or 0
       GELU_TANH     x q, q = s(2 w), w = c (x + 0.044715 x^3)  q + 2 x q s(-2 w) c (1 + 0.134145 x^2)
       GELU_ERF      x Phi(x)                                   Phi(x) + x phi(x)
       SILU          x s(x)                                     s(x) (1 + x s(-x))
       SIGMOID       s(x)                                       s(x) s(-x)
       TANH          tanh x                                     4 s(2 x) s(-2 x)
       LEAKY_RELU    x > 0 ? x : p x                            x > 0 ? 1 : p
       ELU           x > 0 ? x : p (exp(x) - 1)                 x > 0 ? 1 : p exp(x)
       SQUARED_RELU  x > 0 ? x^2 : 0, NaN stays NaN             2 x, by selection: 0 below
       QUICK_GELU    x s(1.702 x)                               s(z) (1 + z s(-z)), z = 1.702 x
       SOFTPLUS      log(1 + exp(x))                            s(x)
       HARDSWISH     x min(max(x + 3, 0), 6) / 6                0 up to -3, x / 3 + 1 / 2, 1 from 3 on
       MISH          x t, t = tanh(log(1 + exp(x)))             t + x s(x) (1 - t^2)
       HARDSIGMOID   min(max(x + 3, 0), 6) / 6, NaN stays NaN   1 / 6 where -3 < x < 3, by selection: 0 elsewhere

   The formulas are meant to the letter, also at infinities and NaN: where one says inf * 0 (SILU, the GELUs, MISH and HARDSWISH at
   -inf, the derivatives of all these but HARDSWISH at either infinity) the result is NaN, as in PyTorch.

   Each code has four of its eight bits set, so that two activations or-ed together are none, and so is every epilogue number of
   cuBLASLt's. */
#define GEMMEPI_NONE         0x00ull /* x */
#define GEMMEPI_RELU         0x0full /* x > 0 ? x : 0, NaN stays NaN */
#define GEMMEPI_GELU_TANH    0x17ull /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
#define GEMMEPI_GELU_ERF     0x1bull /* x Phi(x) = 0.5 x (1 + erf(x / sqrt 2)) */
#define GEMMEPI_SILU         0x1dull /* x / (1 + exp(-x)) */
#define GEMMEPI_SIGMOID      0x1eull /* 1 / (1 + exp(-x)) */
#define GEMMEPI_TANH         0x27ull /* tanh x */
#define GEMMEPI_LEAKY_RELU   0x2bull /* x > 0 ? x : p x, p = 0.01 unless given */
#define GEMMEPI_ELU          0x2dull /* x > 0 ? x : p (exp(x) - 1), p = 1 unless given */
#define GEMMEPI_SQUARED_RELU 0x2eull /* x > 0 ? x^2 : 0, NaN stays NaN */
#define GEMMEPI_QUICK_GELU   0x33ull /* x / (1 + exp(-1.702 x)) */
#define GEMMEPI_SOFTPLUS     0x35ull /* log(1 + exp(x)) */
#define GEMMEPI_HARDSWISH    0x36ull /* x min(max(x + 3, 0), 6) / 6 */
#define GEMMEPI_MISH         0x39ull /* x tanh(log(1 + exp(x))) */
#define GEMMEPI_HARDSIGMOID  0x3aull /* min(max(x + 3, 0), 6) / 6, NaN stays NaN */

#define GEMMEPI_ACTIVATION_MASK 0xffull

/* Flags of an epilogue. No two flags of this header share a bit, whatever field they belong to. */
#define GEMMEPI_BIAS       0x0000400ull /* add bias */
#define GEMMEPI_AUX        0x0000800ull /* store the pre-activation; with RELU a bit mask of v > 0 */
#define GEMMEPI_BACKWARD   0x0001000ull /* multiply by act'(aux); aux as AUX with the same activation stored it */
#define GEMMEPI_RESIDUAL   0x0002000ull /* add residual after the activation */
#define GEMMEPI_BGRAD      0x0004000ull /* column sums of the result; with BACKWARD or the activation NONE */
#define GEMMEPI_BGRAD_A    0x0008000ull /* sums of op(A) over k */
#define GEMMEPI_BGRAD_B    0x0010000ull /* sums of op(B) over k; one of the three BGRADs at a time */
#define GEMMEPI_GATED      0x0040000ull /* the columns of v are halves: v = value act(gate); see above */
#define GEMMEPI_GATE_FIRST 0x0080000ull /* with GATED: the first half is the gate, not the second */
#define GEMMEPI_UPSTREAM   0x0100000ull /* with BACKWARD: v = aux act'(v), v made anew, aux the upstream gradient */

#define GEMMEPI_ACCUMULATE_BIAS_GRAD 0x0020000ull /* with a BGRAD: add to bias_grad instead of overwriting it */

/* The names that cuBLASLt's users know. GELU is the tanh form here, as it is there. */
#define GEMMEPI_EPILOGUE_DEFAULT       GEMMEPI_NONE
#define GEMMEPI_EPILOGUE_RELU          GEMMEPI_RELU
#define GEMMEPI_EPILOGUE_RELU_AUX      (GEMMEPI_RELU | GEMMEPI_AUX)
#define GEMMEPI_EPILOGUE_BIAS          GEMMEPI_BIAS
#define GEMMEPI_EPILOGUE_RELU_BIAS     (GEMMEPI_RELU | GEMMEPI_BIAS)
#define GEMMEPI_EPILOGUE_RELU_AUX_BIAS (GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_BIAS)
#define GEMMEPI_EPILOGUE_DRELU         (GEMMEPI_RELU | GEMMEPI_BACKWARD)
#define GEMMEPI_EPILOGUE_DRELU_BGRAD   (GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD)
#define GEMMEPI_EPILOGUE_GELU          GEMMEPI_GELU_TANH
#define GEMMEPI_EPILOGUE_GELU_AUX      (GEMMEPI_GELU_TANH | GEMMEPI_AUX)
#define GEMMEPI_EPILOGUE_GELU_BIAS     (GEMMEPI_GELU_TANH | GEMMEPI_BIAS)
#define GEMMEPI_EPILOGUE_GELU_AUX_BIAS (GEMMEPI_GELU_TANH | GEMMEPI_AUX | GEMMEPI_BIAS)
#define GEMMEPI_EPILOGUE_DGELU         (GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD)
#define GEMMEPI_EPILOGUE_DGELU_BGRAD   (GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD | GEMMEPI_BGRAD)
#define GEMMEPI_EPILOGUE_BGRADA        GEMMEPI_BGRAD_A
#define GEMMEPI_EPILOGUE_BGRADB        GEMMEPI_BGRAD_B

/* Flags of a product (desc.flags). */
#define GEMMEPI_RELAXED           0x01000000ull /* admit cuBLASLt's epilogues where they are looser than the contract */
#define GEMMEPI_DEVICE_SCALARS    0x02000000ull /* args.alpha and args.beta lie on the device, read when the product runs */
#define GEMMEPI_FAST_ACCUMULATION 0x04000000ull /* E4M3 and E5M2 operands: fewer bits in the sums where that is faster */
#define GEMMEPI_AMAX_D            0x08000000ull /* write args.amax_d */
#define GEMMEPI_AMAX_AUX          0x10000000ull /* write args.amax_aux; with AUX, where aux is no bit mask */

/* D += alpha op(A) op(B) (+ bias): c is d, beta is 1, and args.c and args.beta stay NULL. Also an element-wise operation's:
   BIAS_GRAD adds to y. */
#define GEMMEPI_ACCUMULATE 0x20000000ull

/* A row of D and of AUX has the same bits whatever m is and wherever in it the row stands (in column-major order a column, whatever n
   is), and wherever tensors lie: pointers, ld, strides of items and desc.alignment may be any, in plans and calls. On one GPU with the
   same gemmepi, NVRTC and driver. Runs with other scalars than alpha 1 and no c agree among themselves. bias_grad and amax are of all
   rows, and not meant. One kernel of gemmepi's, told by types, transposition, n, k and the epilogue alone, takes all m: what is faster
   for some of them is left out, operands that it does not take as they lie are copied first, and explain says how much that costs. */
#define GEMMEPI_BATCH_INVARIANT 0x40000000ull

/* A d of E4M3 or E5M2 whose scales are found. desc.d.scale.mode says which: they go to args.found_scale_d, laid out as a
   product has those of its a, with d's columns as k (column-major: of its b, with d's rows), and d = round(v / scale), so that
   the next product takes both. They are this run's amax over the largest number of d's type, held between 2^-126 and the
   largest F32, and 1 where amax is 0 or not finite, as CAST_Y_SCALE makes them; what an activation's short form leaves out
   (2^-12) they may lack, too.

       OUTER        one for each row (column-major: each column); of at most 128 numbers as with VECTOR_128, where its kernels find them
       VECTOR_128   one for each row and 128 columns: 1 x 128 vectors, the last of which may be shorter
       TENSOR       one for the whole batch, of earlier runs' amax (delayed scaling): see below

   TENSOR: args.amax_history holds the amax of the last desc.amax_history runs, the newest first, 0 where there was none. A run takes its
   scale from the largest that is finite of them, moves all one place on and writes its own amax to the first: all of it on the device,
   so a graph may hold the run. Set it to 0, or its first number to what a cast finds. Runs that share a history must not overlap.
   d.scale.batch_stride: F32 numbers between the scales of two items; with TENSOR 0. An empty product writes neither scales nor history.
   Not with ACCUMULATE, and TENSOR not with AMAX_D, as the history has it. */
#define GEMMEPI_FIND_SCALE_D 0x10000000000000ull

/* With FIND_SCALE_D: scales are rounded up to powers of two, so that to divide by them is exact. */
#define GEMMEPI_POWER_OF_TWO_SCALE 0x20000000000000ull

/* A matrix operand. */
typedef struct gemmepi_matrix {
    gemmepi_dtype dtype; /* 0: see gemmepi_matmul_desc */
    int transposed;      /* a and b only: 1 if the matrix is stored transposed; op() transposes it back */

    /* Elements between the starts of two rows as stored (columns in column-major order), at least the length of one; 0: that
       length. Of RELU's mask: bits, a multiple of 128; 0: the length rounded up to one */
    int64_t ld;

    /* Elements (bits of RELU's mask) between two items of the batch. Inputs: 0 gives all items the same matrix (but a c that
       is all 0 lies as d). Outputs: items must not overlap */
    int64_t batch_stride;
    gemmepi_scale scale; /* zero: 1 for every element */
} gemmepi_matrix;

/* bias or bias_grad, contiguous. */
typedef struct gemmepi_vector {
    gemmepi_dtype dtype;  /* 0: d's; BF16 where d is E4M3 or E5M2, F32 where it is I8 */
    int64_t batch_stride; /* elements between two items of the batch; 0: one for all, a bias_grad is then the sum over it */
} gemmepi_vector;

/* D = epilogue(alpha op(A) op(B) + beta C) for every item of a batch.

   Shapes: op(A) [m, k], op(B) [k, n], C, D, aux and residual [m, n], bias [n]; with GATED see gemmepi_epilogue.
   Dtypes: F64 goes with F64 alone: a, b and all others. Else a and b are any of F32, F16, BF16, E4M3, E5M2 and I8, also
   different ones; c, d, aux and residual any of these; bias and bias_grad F32, F16 or BF16. Where a and b are I8, d may
   also be I32; then c, aux, residual, bias and bias_grad are I32, nothing has a scale, the activation is NONE or RELU,
   BACKWARD and BGRAD have no meaning, and alpha and beta are whole numbers of 32 bits. */
typedef struct gemmepi_matmul_desc {
    /* m or n 0: d is empty, and bias_grad alone is written, where it has elements (sums over no rows are 0). k 0: beta C and
       the epilogue alone */
    int64_t m, n, k;
    int64_t batch;           /* the number of products; 0: 1 */
    gemmepi_order order;     /* of all matrices; 0: row-major */
    gemmepi_compute compute; /* 0: by the operands' dtype */
    gemmepi_epilogue epilogue;
    uint64_t flags;              /* RELAXED and so on, above */
    int has_parameter;           /* 1: activation_parameter counts; 0: it must be 0, and the default holds */
    double activation_parameter; /* p of LEAKY_RELU and ELU */

    gemmepi_matrix a;         /* dtype 0: F32 */
    gemmepi_matrix b;         /* dtype 0: a's */
    gemmepi_matrix c;         /* dtype 0: d's, BF16 where d is fp8. All 0 but scale: as d lies, item by item (of another shape: dense) */
    gemmepi_matrix d;         /* dtype 0: a's */
    gemmepi_matrix aux;       /* dtype 0: d's (RELU's mask: leave it 0); read only with AUX or BACKWARD */
    gemmepi_matrix residual;  /* dtype 0: as c's; read only with RESIDUAL. Its ld and batch stride are its own, not d's */
    gemmepi_vector bias;      /* read only with BIAS */
    gemmepi_vector bias_grad; /* read only with one of the BGRADs */
    int amax_history;         /* FIND_SCALE_D with TENSOR: runs whose amax args.amax_history holds, 1 to 1024; else 0 */

    /* Bytes, a power of two up to 256, that the pointers of matrices and vectors will be multiples of in every run. 0: 16 for
       plans, what the pointers have for gemmepi_matmul. An element's size in any case */
    size_t alignment;

    /* In the epilogue's place: what becomes of v = alpha op(A) op(B) + beta C, in the language that stands below. epilogue,
       aux, residual, bias and bias_grad are 0 then, and ACCUMULATE is refused. What says the same as an epilogue is run as that
       on a GPU. NULL: none */
    const char *formula;
    const struct gemmepi_operand *operands; /* what it reads and assigns beside v and d */
    int operand_count;
    const char *formula_value;  /* what it calls v; NULL: "v" */
    const char *formula_result; /* what it calls d; NULL: "d" */
} gemmepi_matmul_desc;

/* Pointers, on the device of the context. A pointer that the epilogue needs must be there, one that it would not
   use must be NULL. Outputs must not overlap anything, except that c, residual and an aux that BACKWARD reads
   and that is no mask may be exactly d (same pointer, dtype, ld and batch stride). */
typedef struct gemmepi_matmul_args {
    const void *a;
    const void *b;
    const void *c; /* given with beta, which may be 0: then it is not read */
    void *d;
    const void *bias;     /* with BIAS */
    void *aux;            /* written with AUX, only read with BACKWARD */
    void *bias_grad;      /* with BGRAD, BGRAD_A, BGRAD_B */
    const void *residual; /* with RESIDUAL */

    /* Where the desc's matrix has a scale mode. TENSOR: a multiple of 4 bytes, the other modes of 16 */
    const float *scale_a, *scale_b, *scale_c, *scale_d, *scale_aux, *scale_residual;

    /* With AMAX_D, AMAX_AUX: one F32 (F64 with F64 operands), overwritten with the largest |v| of the whole batch before the
       scale and rounding; NaN if any is NaN. Where m or n is 0 nothing is written */
    void *amax_d, *amax_aux;

    /* FIND_SCALE_D: overwritten with d's scales; TENSOR: a multiple of 4 bytes, the other modes of 16 */
    float *found_scale_d;
    float *amax_history; /* with TENSOR: desc.amax_history numbers, read and written */

    const double *alpha; /* NULL: 1; on the host, or on the device with GEMMEPI_DEVICE_SCALARS (rounded to a whole number for I32) */
    const double *beta;  /* NULL: 0, and c NULL too; likewise */

    void *workspace;       /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size; /* bytes; at least the plan's */

    /* Of a formula, a pointer for each of desc's operands, in their order, at a multiple of its element's size: of a NUMBER to a double on
       the host. What no output depends on is not looked at. Inputs are only read: const is cast away for them. Outputs overlap nothing, but D
       and outputs of the kind FULL may be exactly an input FULL of the same width, dtype, ld and batch stride, without periods, that is not read
       through left, right, even or odd */
    void *const *operands;
    const float *const *operand_scales; /* likewise of those with a scale mode, else NULL; NULL: none has one */
    void *const *operand_amax;          /* likewise of those with amax: one F32, as amax_d */
} gemmepi_matmul_args;

/* >>grouped products */

/* Along what a grouped product is divided. */
typedef enum gemmepi_grouping {
    GEMMEPI_GROUPS_OF_ROWS = 0, /* a group has some rows of A and D, and a B of its own: experts forward, and the gradient of A */
    GEMMEPI_GROUPS_OF_K = 1     /* a group has a part of k, and a D of its own: the gradient of experts' weights */
} gemmepi_grouping;

/* Many products of one n, types and epilogue, whose sizes only the device knows: experts of a mixture. args.ends says there where
   each group ends, as torch._grouped_mm's offs do: group e has the positions ends[e - 1] (0 for the first) to ends[e] - 1. So
   there are as many numbers as groups, and a running sum of counts is what is wanted. Groups may be empty. A position is

   - GROUPS_OF_ROWS: a row. D[i, :] = epilogue(alpha op(A)[i, :] op(B[e]) + beta C[i, :]) for the positions i of each group e.
     product.m is how many positions there are at most; rows from ends[groups - 1] on are not written, and what they hold has no
     effect. B has groups items, and so have bias and the scales of b; all else is one matrix.
   - GROUPS_OF_K: a step of k. D[e] = epilogue(alpha op(A)[:, those of e] op(B)[those of e, :] + beta C[e]), of an empty group
     epilogue(beta C[e]). product.k is how many there are at most. C, D, aux and residual, with their scales, and bias have
     groups items; A and B are one.

   Items lie as batch_stride says, 0: one after another. product.batch is 0 or 1, product.order row-major, and there is
   no BATCH_INVARIANT. BGRAD_A and BGRAD_B go with GROUPS_OF_K, where a is stored [k, m] and b [k, n]: bias_grad has groups items; BGRAD
   does not. Scales along k (VECTOR_128, BLOCK_128) do not go with GROUPS_OF_K.

   A formula goes with GROUPS_OF_ROWS, neither scattered nor weighted: D is its one output, and it reads neither row,
   item and rows nor uniform. A GPU refuses one that no kernel has inside: with even and odd, or with a D wider than v
   and all FULL operands. FULL and PER_ROW operands have the rows of D; those of columns or of one number have
   batch_stride from one group's to the next, 0: the same for all.

   FIND_SCALE_D goes with GROUPS_OF_ROWS, VECTOR_128 (or OUTER, where d has at most 128 columns) and no formula, on the host and
   where the kernel for Hopper takes the product, else it is refused: args.found_scale_d[column / 128 * rows of D + row of D],
   written where D is. */
typedef struct gemmepi_grouped_desc {
    gemmepi_matmul_desc product;
    int groups; /* 1 to 4,096 */
    gemmepi_grouping grouping;

    /* More than 0: position i reads row index_a[i] of a matrix a that has so many rows (as stored, so a.transposed is 1 with
       GROUPS_OF_K and 0 else), with its scale; with GROUPS_OF_K likewise b, stored [k, n]. Rows may be read by many positions.
       0: row i */
    int64_t gather_a, gather_b;

    /* GROUPS_OF_ROWS. More than 0: C, D, aux and residual have so many rows, and position i has row index_d[i] of each. No row may be
       there twice. 0: row i */
    int64_t scatter_d;
    int weighted; /* 1, GROUPS_OF_ROWS: D = weights[row of D] (what comes before the residual) + residual */
} gemmepi_grouped_desc;

/* Pointers on the device, ends and indices at multiples of 4 bytes. What they say is checked there when the product runs: ends
   that are not ascending or pass the last position, or an index that is out of range. Then nothing is written, and the next run
   of any plan of the context, the next upload or download, or gemmepi_synchronize, returns INVALID_ARGUMENT with the sentence,
   also after a graph's replay: once. On the host the call itself does. */
typedef struct gemmepi_grouped_args {
    gemmepi_matmul_args product;
    const int32_t *ends;    /* [groups], ascending */
    const int32_t *index_a; /* [positions], with gather_a */
    const int32_t *index_b; /* [positions], with gather_b */
    const int32_t *index_d; /* [positions], with scatter_d */
    const float *weights;   /* [rows of D], with weighted */
} gemmepi_grouped_args;

/* >>element-wise operations */

/* A tensor as DLPack has it: element (i, j, ..) lies (i stride[0] + j stride[1] + ..) elements after the first one.
   Strides are any: 0 repeats an input, a negative one runs backwards. */
typedef struct gemmepi_tensor {
    void *data;            /* on the device; only read where the tensor is an input */
    gemmepi_dtype dtype;   /* 0: F32 */
    int rank;              /* 0 to 8; 0 is a single element */
    const int64_t *shape;  /* rank extents; NULL where rank is 0 */
    const int64_t *stride; /* rank strides in elements; NULL: dense, the last axis contiguous */
    size_t offset;         /* bytes from data to the element whose indices are all 0 */
    size_t bytes;          /* the buffer's from data on: all elements lie in it; 0: not checked */
} gemmepi_tensor;

/* What is computed for every index of the operation's shape: y's where there is a y, else dy's. The inputs a, b and w are
   broadcast to it as NumPy does: axes are compared from the last one on, and an axis that is missing or has the extent 1
   repeats. So are da, db and dw, which are then sums over the axes that repeat. BIAS_GRAD has its own rule.

   GATED: SIGMOID is GLU, RELU ReGLU, SILU SwiGLU, the GELUs GeGLU. Without b, a's axis `axis` has twice y's extent: its first
   half is the value, its second the gate (GATE_FIRST: exchanged), and GATED_BACKWARD's da is the gradient of both.

   How right: with f the function, u the unit roundoff of the stored type and some |d| <= 2 u, |e| <= 4 u, a result is
   f(x (1 + d)) (1 + e), or within 4 u of the largest term that is added, and within the smallest subnormal. A product with dy or
   with a gate's value is one rounding more. Results of 16 bits take shorter forms of the functions (2^-12), and those below 2^-126
   may be 0. docs/numerics.md has the rest. */
typedef enum gemmepi_operation {
    GEMMEPI_OP_ACTIVATION = 1,          /* y = act(a) */
    GEMMEPI_OP_ACTIVATION_BACKWARD = 2, /* da = dy act'(a) */
    GEMMEPI_OP_GATED = 3,               /* y = a act(b) */
    GEMMEPI_OP_GATED_BACKWARD = 4,      /* da = dy act(b), db = dy a act'(b) */
    GEMMEPI_OP_LERP = 5,                /* y = a + w (b - a) where |w| < 1/2, else b - (b - a) (1 - w) */
    GEMMEPI_OP_LERP_BACKWARD = 6,       /* da = (1 - w) dy, db = w dy, dw = dy (b - a) */
    GEMMEPI_OP_BIAS_GRAD = 7,           /* y[i] = the sum of a over all axes but `axis` */
    GEMMEPI_OP_CAST = 8                 /* y = a in another type, with scales and amax */
} gemmepi_operation;

/* Flags of an operation, beside ACCUMULATE (BIAS_GRAD: add to y instead of overwriting it).
   CAST_Y_SCALE: y_scale = amax / the largest number of y's type, held between 2^-126 and the largest F32 (1 where amax is 0
   or not finite), and y = round(a / y_scale), so that y_scale is what products take as y's scale. CAST_SCALE multiplies: it
   takes y_scale to bring y back, and 1 / y_scale to make it. An empty cast writes neither y_scale nor amax.
   CAST_K_IS_ROWS: rows, vectors and blocks are those of a matrix whose k is its last axis but one (a B of [k, n] that is not
   transposed); else its last (an A of [m, k], a transposed B of [n, k]). */
#define GEMMEPI_CAST_SCALE     0x100000000ull /* CAST: y = round(scale a), with args.scale read */
#define GEMMEPI_CAST_Y_SCALE   0x200000000ull /* CAST: find y's scale, and write it to args.y_scale */
#define GEMMEPI_CAST_AMAX      0x400000000ull /* CAST: write args.amax, the largest |a| */
#define GEMMEPI_CAST_K_IS_ROWS 0x800000000ull /* CAST: k is the last axis but one */

/* One operation. A tensor that it does not have is NULL. A plan does not look at the tensors' data: each run brings its own
   pointers.

   Tensors: ACTIVATION a, y. ACTIVATION_BACKWARD a, dy, da. GATED a, [b], y. GATED_BACKWARD a, [b], dy, and da, with b also
   db: one of them or both. LERP a, b, [w], y. LERP_BACKWARD dy, [w] and any of da, db, dw; a and b with dw alone, dw with w
   alone. BIAS_GRAD a, y. CAST a, y, [y_transposed].
   Dtypes: F32, F16, BF16 or F64, one for all tensors of an operation, computed in F32 (F64 in F64) and rounded once;
   y of BIAS_GRAD, and da, db and dw where they are sums, may be F32 in 16 bits. CAST: a and y any of F32, F64, F16, BF16,
   E4M3 and E5M2; stores to the last two saturate as a product's do.
   Sums add 16-bit values eight at a time in F32, those sums and all other values in F64, in a fixed order.

   CAST's scales and amax: one number for all (SCALE_TENSOR; NONE stands for it), or one for each row (SCALE_OUTER), 128
   steps of k of a row (SCALE_VECTOR_128), or block of 128 rows and 128 steps of k (SCALE_BLOCK_128) of the matrices that
   are the last two axes (of rank 1: one row), laid out as gemmepi_scale_mode draws the scales of products; those of further axes
   follow one another. Numbers beyond the last of a line are not written.

   CAST's y_transposed: of one read of a both layouts of an operand in fp8, y of shape [.., m, k] and y_transposed of [.., k, m], such as
   an activation forward and in the gradient of the weight, where its k is m. y_transposed has y's dtype, E4M3 or E5M2, and any strides,
   and is what the same cast makes of a with its last two axes exchanged: with one number for all the scale is y's, with VECTOR_128 its
   vectors run along the other axis and with BLOCK_128 its blocks stand transposed, so that it has scales of its own, which go to
   args.y_transposed_scale. Not with OUTER (its rows are y's columns: cast twice), and VECTOR_128 and BLOCK_128 with CAST_Y_SCALE alone.

   A formula is computed for every index of the shape [.., rows, columns] that y and the operands' tensors are broadcast to: columns are the
   last axis, rows the last but one, items all before, counted as in a dense tensor; depth is 0. What is HALF or DOUBLE has half or twice as
   many columns. An input is broadcast as above, PER_ROW ones have the extent 1 in columns, PER_COLUMN ones in rows, SCALARs in both; of an
   axis with a period it has that. y and FULL outputs have the whole shape, other outputs 1 in columns (PER_ROW), rows (PER_COLUMN) or both
   (SCALAR). PER_COLUMN and SCALAR outputs with 1 in all axes before cover all items (but for column_argmax). Else the axes before the last two
   of an output PER_ROW, PER_COLUMN or SCALAR have one stride from item to item, as in a dense tensor; those of y and FULL outputs may have
   any. Types are the tensors': y F32, F16, BF16, E4M3, E5M2, I8, I32 or F64, operands as with products; computed
   in F32, in F64 where a tensor is, in I32 where y is. */
typedef struct gemmepi_elementwise_desc {
    gemmepi_operation operation;
    gemmepi_epilogue activation;            /* RELU and so on; of a tensor that is split or-ed with GATE_FIRST or not */
    int has_parameter;                      /* 1: activation_parameter counts; 0: it must be 0, and the default holds */
    double activation_parameter;            /* p of LEAKY_RELU and ELU */
    int axis;                               /* GATED without b: which is split; BIAS_GRAD: which is kept; -1: the last */
    gemmepi_scale_mode scale_mode;          /* CAST: of scale, y_scale and amax */
    uint64_t flags;                         /* ACCUMULATE, CAST_SCALE and so on */
    const gemmepi_tensor *a, *b, *w, *dy;   /* inputs */
    const gemmepi_tensor *y, *da, *db, *dw; /* outputs */
    const gemmepi_tensor *y_transposed;     /* CAST: y once more, its last two axes exchanged; NULL: none */
    size_t alignment;                       /* bytes, a power of two up to 256, that all pointers are multiples of; 0: 16 */

    /* In the operation's place: a formula, in the language that stands below, without v. operation, activation, axis, flags and all
       tensors but y are 0 then. y is D, as wide as what is assigned to it, NULL where the formula does not assign it. NULL: none */
    const char *formula;
    const struct gemmepi_operand *operands; /* what it reads and assigns beside y; each but a NUMBER has a tensor */
    int operand_count;
    const char *formula_result; /* what it calls y; NULL: "d" */
} gemmepi_elementwise_desc;

/* The tensors' data, as desc has tensors, and what a run may change. An output must not overlap anything, except that it
   may be exactly (pointer, dtype, strides) an input, or the half of one that is split: but no sum may, and no cast with
   CAST_Y_SCALE, scales of rows or blocks, or y_transposed. */
typedef struct gemmepi_elementwise_args {
    const void *a, *b, *w, *dy;
    void *y, *da, *db, *dw;
    double weight;             /* LERP and LERP_BACKWARD without w */
    const float *scale;        /* CAST_SCALE */
    float *y_scale;            /* CAST_Y_SCALE */
    void *amax;                /* CAST_AMAX: F32, or F64 where a is F64; NaN where any of its numbers is NaN */
    void *y_transposed;        /* CAST */
    float *y_transposed_scale; /* CAST_Y_SCALE with y_transposed and VECTOR_128 or BLOCK_128 */
    void *workspace;           /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size;     /* bytes; at least the plan's */

    /* Of a formula, as in gemmepi_matmul_args, and y. gemmepi_elementwise takes a pointer that is NULL from the operand's tensor. What no
       output depends on is not looked at. An output of the kind FULL, or y, may be exactly an input of the kind FULL (pointer, dtype,
       strides), without periods, that is not read through left, right, even or odd */
    void *const *operands;
    const float *const *operand_scales;
    void *const *operand_amax;
} gemmepi_elementwise_args;

/* >>layers */

/* Flags of a layer, beside RELAXED, FAST_ACCUMULATION, FIND_SCALE_D with POWER_OF_TWO_SCALE, which are of y, and BATCH_INVARIANT, which
   is of y, preact and da (where a is not stored transposed), not of db and dbias. Those of gradients say what
   gemmepi_linear_backward makes. */
#define GEMMEPI_LINEAR_BIAS      0x0010000000000ull /* P has a bias */
#define GEMMEPI_LINEAR_SAVED     0x0020000000000ull /* forward stores P in args.preact, backward reads it there */
#define GEMMEPI_LINEAR_RECOMPUTE 0x0040000000000ull /* backward computes P anew, from a, b and bias */
#define GEMMEPI_LINEAR_DA        0x0080000000000ull /* dA is asked for */
#define GEMMEPI_LINEAR_DB        0x0100000000000ull /* dB is asked for */
#define GEMMEPI_LINEAR_DBIAS     0x0200000000000ull /* dbias is asked for */
#define GEMMEPI_ACCUMULATE_DA    0x0400000000000ull /* args.da += dA; else it is overwritten */
#define GEMMEPI_ACCUMULATE_DB    0x0800000000000ull /* args.db += dB */
#define GEMMEPI_ACCUMULATE_DBIAS 0x1000000000000ull /* args.dbias += dbias */

/* A layer of a network, forward and backward, for every item of a batch:

       P = op(A) op(B) + bias        Y = act(P), with GATED value act(gate) of the halves of P
       G = dY act'(P)                dA = G op(B)^T     dB = op(A)^T G     dbias = the sums of G's columns

   Shapes: op(A) [m, k], op(B) [k, n], P and G [m, n], Y and dY [m, n] (GATED: n is even, [m, n/2]), bias and dbias [n].
   da and db lie as a and b are stored: a weight stored [n, k] (b.transposed) has a db of [n, k]. Their own `transposed` is
   0 or the operand's. preact holds P, for RELU without GATED its bit mask, as AUX stores it. dA, dB and dbias are summed in F32
   or wider (dbias over values of G that are not rounded) and rounded once.
   Column-major: the same layer with A and B exchanged, so bias, dbias and the halves run along m, and what is said of B in
   a batch holds for A.

   Where act is not NONE backward needs P: one of SAVED and RECOMPUTE. NONE without GATED takes neither.

   Bounds are those of gemmepi_matmul, with the terms of G as stored: u |g| more in each where g_dtype is coarser than the
   accumulator. In a recomputed G the error E of P stands times |dy| and the largest |act''| nearby; a saved P is taken as preact stores
   it, so that where its rounding leads over a jump of act' (HARDSIGMOID's at 3) G has the other side's. fp8 operands whose scales change
   along a gradient's sum (OUTER, VECTOR_128 and BLOCK_128 may) are first written out in F32: right, but slow. An A of a batch that
   shares B, whose items are not stored one after another, is copied for dB.

   Batch: either B is shared (b.batch_stride 0): then so are its scale, bias, db and dbias (strides 0), and dB and dbias are
   the sums over the batch. Or B has items: then db has (its stride is not 0), and dbias as bias. An A that is the same for all items
   (a.batch_stride 0) may have a da of one item for each, or (da.batch_stride 0, B has items) the sum; then its scale has no
   items either. dy may be the same for all items.

   Dtypes: a, b, y, bias and preact as a product's a, b, d, bias and aux. Backward takes a and b of F64 (with F64
   alone), F32, F16, BF16, E4M3 and E5M2; dy any of these or I8, da, db and dbias F32, F16 or BF16. Scales go with a, b, y,
   preact and dy: any mode of a and b, TENSOR of the others. With FIND_SCALE_D forward finds y's scales, in the modes OUTER, VECTOR_128
   and TENSOR, as a product finds its d's; backward takes no notice of it.

   A formula takes the activation's place: d = v * sigmoid(beta * v), say. v is P, with the bias, d is Y, and nothing else is assigned.
   Y and dY are as wide as what d is assigned, [m, n], [m, n/2] or [m, 2n]; gates are formulas with halves. preact holds P
   itself, whatever the formula is, and where it and dy have a scale, that is one for the batch. Backward runs the formula's
   gradient, as gemmepi_derive gives it; what has no derivative is refused. Where that gradient reads P it needs SAVED or
   RECOMPUTE, else neither, and then preact is not read. uniform gives both directions the same numbers. The gradient of an
   input operand NAME is an output operand d_NAME, of its kind and width, in F32, F16 or BF16 (F64 in F64; dtype 0: of FULL the
   input's, BF16 where that has 8 bits, of others F32 or F64). One that is listed is asked for: backward writes it, or, with
   accumulate and but for FULL, adds to it, and forward takes no notice of it. It has no scale and no amax. There are none of
   NUMBERs, of whole numbers, and of inputs with periods. In a batch d_NAME has a batch_stride for items, or 0, PER_COLUMN
   (column-major: PER_ROW) and SCALAR alone, where NAME has 0, too: the sum over the batch. */
typedef struct gemmepi_linear_desc {
    int64_t m, n, k;             /* as in gemmepi_matmul_desc */
    int64_t batch;               /* the number of items; 0: 1 */
    gemmepi_order order;         /* of all matrices; 0: row-major */
    gemmepi_compute compute;     /* of all products that it fits, as in gemmepi_matmul_desc */
    gemmepi_epilogue activation; /* RELU and so on, or-ed with GATED and GATE_FIRST or not */
    uint64_t flags;              /* LINEAR_BIAS and so on, RELAXED, FAST_ACCUMULATION, BATCH_INVARIANT, FIND_SCALE_D */
    int has_parameter;           /* 1: activation_parameter counts; 0: it must be 0, and the default holds */
    double activation_parameter; /* p of LEAKY_RELU and ELU */

    gemmepi_matrix a, b;   /* dtype 0: F32, a's */
    gemmepi_matrix y;      /* dtype 0: a's, BF16 where a is E4M3 or E5M2 */
    gemmepi_matrix preact; /* dtype 0: y's (RELU's mask: leave it 0); read only with SAVED */
    gemmepi_matrix dy;     /* dtype 0: y's */
    gemmepi_matrix da, db; /* dtype 0: a's, b's, BF16 where that is E4M3 or E5M2 */
    gemmepi_vector bias;   /* dtype 0: as a product's */
    gemmepi_vector dbias;  /* dtype 0: bias's; without BIAS what a bias's would be */
    int amax_history;      /* FIND_SCALE_D with TENSOR, as in gemmepi_matmul_desc */

    /* Of G between the passes: F32, F16 or BF16 (F64 in F64). 0: that of a and b, where they differ the one that holds both,
       BF16 for E4M3 and E5M2. A dy that has it already, and no activation, is G itself */
    gemmepi_dtype g_dtype;
    size_t alignment; /* as in gemmepi_matmul_desc */

    /* In the activation's place: what becomes of P, as text. activation and has_parameter are 0 then. NULL: none */
    const char *formula;
    const struct gemmepi_operand *operands; /* what it reads beside P, and gradients of these, d_NAME */
    int operand_count;                      /* at most 28 */
    const char *formula_value;              /* what it calls P; NULL: "v" */
    const char *formula_result;             /* what it calls Y; NULL: "d" */
} gemmepi_linear_desc;

/* The pointers of a layer. Forward reads a, b and, with BIAS, bias, and writes y and, with SAVED, preact. Backward reads dy, b for da,
   a for db, both and bias for RECOMPUTE, and with SAVED preact, and writes da, db and dbias as asked for. Outputs must not overlap
   anything of their direction.
   One struct serves both: forward does not look at dy, da, db, dbias and scale_dy, backward not at y, scale_y, found_scale_y and
   amax_history. All else that desc has no flag or scale mode for is NULL, or the call is refused: bias without BIAS, preact without
   SAVED, backward's da without DA.
   A scale multiplies what is read and what is stored: a preact that forward stored times scale_preact comes back from
   backward's scale_preact, the reciprocal. */
typedef struct gemmepi_linear_args {
    const void *a, *b, *bias;
    void *y;
    void *preact; /* written by forward, read by backward */
    const void *dy;
    void *da, *db, *dbias;
    const float *scale_a, *scale_b, *scale_y, *scale_preact, *scale_dy; /* where desc has a mode */
    float *found_scale_y, *amax_history;                                /* FIND_SCALE_D, in the place of scale_y: as those of a product */

    void *workspace;       /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size; /* bytes; at least the plan's; all of it may be used */

    /* Of a formula, a pointer for each of desc's operands, in their order: of a NUMBER to a double on the host, of those that
       have more than one element at a multiple of desc.alignment. The array is needed, and may be the same, in both directions;
       each takes those that it needs. The caller's memory, which is read while the call is made */
    void *const *operands;
    const float *const *operand_scales; /* likewise of those with a scale mode, else NULL; NULL: none has one */
} gemmepi_linear_args;

/* >>formulas */

/* A formula says in text what becomes of the elements of a matrix:

       d = silu(v + bias) * up + residual; ss = row_sum(d * d)

   formula     statement { ';' statement } [ ';' ]
   statement   name '=' expression
   expression  c ? a : b    || && !    < <= > >= == !=    + - * /    unary -    function(...)    (...)    number    name

   Precedence is C's, and so are comments. At most 4,096 characters, 1,024 operations, 32 operands with names of up to 60 characters, and
   64 expressions within one another.

   Names: v is what the formula is applied to, operands have the names that they are given; a name is defined once, before it is used,
   and something reads it.
   row, column and item count from 0; rows, columns and depth are the extents. They, and operands in I32 and I64, are whole numbers:
   exact where they are compared with each other, numbers like others in arithmetic. The names of functions are reserved, and those that
   begin with d_ or dy_ are for operands alone.
   Outputs: a statement that assigns d or an output operand writes it, rounded once in its type. Read later, it is the number before
   that; rounded(x) is what d stands for once it has stored x: the number that is stored, divided by the scale that d is multiplied by, if
   it has one (with FIND_SCALE_D and TENSOR times the scale that is found ahead; those of OUTER and VECTOR_128 are found of d, and rounded is
   refused). Where d is not stored, it is of the type that it would have, without a scale; over tensors without y of that which is computed
   in, so that rounded(x) is x.

   Functions: abs min max clamp(x, low, high) exp exp2 expm1 log log2 log1p pow sqrt rsqrt sin cos tanh erf floor round mod fma isnan;
   every activation above by its name in small letters (silu(x), leaky_relu(x, p)), and its derivative (d_silu(x)). c ? a : b selects: a
   NaN in what is not taken has no effect. min, max and clamp propagate NaN, clamp is min(max(x, low), high), round is half to even, and
   mod(a, b) has a's sign, as C's fmod.
   Widths: an expression is n, n / 2 or 2 n columns wide, and operators want equal widths; what does not change along columns fits any.
   left(x) and right(x) are the halves, pair(a, b) the way back; even(x), odd(x) and interleave(a, b) likewise of every second column;
   with a last argument w, a number, left, right and pair are of each group of w columns. A formula has two widths at most and halves of
   one kind. column counts in the wider of the two, and so does columns.
   Reductions: row_sum row_max row_logsumexp row_argmax (I32: the lowest column), column_sum column_max column_logsumexp column_argmax,
   all_sum all_max, each the whole right side of a statement that assigns an output, which no later statement reads. Over nothing: 0,
   -inf, -inf, and 0. In a fixed order, in F32 or wider. A NaN goes through all of them. An output PER_COLUMN or SCALAR with the
   batch_stride 0 covers the whole batch; others need a stride where batch is above 1, and so does argmax.
   uniform(seed, i) is a random number in [0, 1): Philox4x32-10 with the key seed, a scalar operand in I64, and the counter
   (column / 4, row, item, i), word column % 4, of which the upper 24 bits count.

   Order: row, column and kinds are those of the matrix, whatever the order; left, right, even, odd and pair run along D's
   contiguous axis. So in column-major order widths are of m, of operands PER_ROW and FULL, and PER_ROW outputs may cover the
   batch.

   Products run formulas (gemmepi_matmul_desc.formula), and so do layers (gemmepi_linear_desc.formula) and element-wise operations
   (gemmepi_elementwise_desc.formula), these without v. gemmepi_derive derives them.
   All is computed in the accumulator's type. With I32 results + - * min max relu, comparisons and c ? a : b, modulo 2^32. */

/* What an operand of a formula has an element for. */
typedef enum gemmepi_operand_kind {
    GEMMEPI_NUMBER = 1,     /* a double on the host, read by each run */
    GEMMEPI_SCALAR = 2,     /* one element: [] */
    GEMMEPI_PER_ROW = 3,    /* one for each row: [m] */
    GEMMEPI_PER_COLUMN = 4, /* one for each column: [n] */
    GEMMEPI_FULL = 5        /* one for each row and column: [m, n] */
} gemmepi_operand_kind;

/* How many columns an operand PER_COLUMN or FULL has. */
typedef enum gemmepi_width {
    GEMMEPI_WIDTH_N = 0,
    GEMMEPI_WIDTH_HALF = 1,  /* n / 2 */
    GEMMEPI_WIDTH_DOUBLE = 2 /* 2 n */
} gemmepi_width;

/* An operand of a formula: an input, which it reads, or an output, which it assigns. */
typedef struct gemmepi_operand {
    const char *name;          /* as the formula has it */
    gemmepi_operand_kind kind; /* never 0 */
    gemmepi_width width;       /* of PER_COLUMN and FULL */

    /* F32, F16, BF16, E4M3, E5M2, I8 or, with F64 products, F64; inputs also I32 and I64. 0: d's, BF16 where d is fp8; of reductions
       F32 (F64), of row_argmax and column_argmax I32 */
    gemmepi_dtype dtype;
    int output;                        /* 1: the formula assigns it */
    int accumulate;                    /* 1, of sums: added to what is there */
    int64_t ld, batch_stride;          /* as in gemmepi_matrix; a batch_stride of 0 repeats an input over the batch */
    int64_t row_period, column_period; /* inputs: element (row % p, column % q), as of tables of positions; 0: none */
    gemmepi_scale scale;               /* of E4M3, E5M2 and I8: NONE or TENSOR, one for the whole batch */
    int amax;                          /* 1, of outputs in those: the largest magnitude is written */

    /* Element-wise: where it lies, gemmepi_elementwise_desc says of what shape; dtype is 0 or the tensor's, ld and batch_stride are 0.
       NULL of a NUMBER, and with products */
    const gemmepi_tensor *tensor;
} gemmepi_operand;

/* What gemmepi_derive derives. */
typedef struct gemmepi_derive_desc {
    const char *formula;
    const gemmepi_operand *operands;
    int operand_count;
    const char *value; /* what the formula is applied to; NULL: "v" */
    const char *wrt;   /* names of inputs, the value among them or not, separated by commas: of which gradients are wanted */
    const char *saved; /* names that the gradient may read: inputs, outputs, the value. NULL: all inputs and the value */
} gemmepi_derive_desc;

/* >>work ahead */

/* One problem of any kind: exactly one of the pointers is not NULL. */
typedef struct gemmepi_any_desc {
    const gemmepi_matmul_desc *matmul;
    const gemmepi_elementwise_desc *elementwise;
    const gemmepi_linear_desc *linear; /* a layer, forward */
    const gemmepi_linear_desc *linear_backward;
    const gemmepi_grouped_desc *grouped;
} gemmepi_any_desc;

/* Told that `done` of `count` problems are done, from 1 on; by any thread that works on them, but one at a time. Must not
   call back into the context. */
typedef void (*gemmepi_progress_function)(void *user, size_t done, size_t count);

/* What gemmepi_tune times. */
typedef enum gemmepi_tune_mode {
    GEMMEPI_TUNE_GRAPH = 0, /* calls in a CUDA graph, replayed: as in a captured step of training or inference */
    GEMMEPI_TUNE_BURST = 1, /* a few calls of a graph after a rest, at the clock of a GPU that is not hot */
    GEMMEPI_TUNE_STREAM = 2 /* calls one after another on a stream, what the host takes included */
} gemmepi_tune_mode;

/* How gemmepi_tune goes about it. All zero is a good choice. */
typedef struct gemmepi_tune_options {
    double milliseconds; /* for each problem, after which no way is begun; 0: until all are compiled and timed */
    size_t memory;       /* bytes of tensors at most; 0: 2 GiB. They are there once, whatever this says */
    int again;           /* 1: problems that have an answer already, too */
    int threads;         /* that compile; 0: as many as there are cores */
    gemmepi_tune_mode mode;
} gemmepi_tune_options;

/* >>answers */

/* A plan takes the route of the least estimate that can run the problem; PLAIN is the last resort where its time is not known.
   Fastest are operands at multiples of 16 bytes: pointers, leading dimensions and batch strides. FUSED reads any alignment down
   to the element's, or copies such an operand to workspace first. docs/routes.md has what each takes. */
typedef enum gemmepi_route {
    GEMMEPI_ROUTE_EMPTY = 0,      /* m or n is 0, or a tensor is empty: nothing is written but sums of bias_grad */
    GEMMEPI_ROUTE_LT = 1,         /* cuBLASLt: product and epilogue in one kernel */
    GEMMEPI_ROUTE_SPLIT = 2,      /* a cuBLASLt product, then one pass of ours */
    GEMMEPI_ROUTE_HOST = 3,       /* plain C on the host */
    GEMMEPI_ROUTE_PLAIN = 4,      /* a kernel of ours that takes everything, for what others do not and small products */
    GEMMEPI_ROUTE_CONTIGUOUS = 5, /* element-wise: dense tensors in one line */
    GEMMEPI_ROUTE_STRIDED = 6,    /* element-wise: tiles of any layout */
    GEMMEPI_ROUTE_SUM = 7,        /* sums over axes, in one launch or two, beside one of those or alone */
    GEMMEPI_ROUTE_SCALED = 8,     /* casts with scales of rows or blocks */
    GEMMEPI_ROUTE_LINEAR = 9,     /* a layer's backward: products and passes, each with a route of its own (on the host: HOST) */
    GEMMEPI_ROUTE_FUSED = 10      /* product and epilogue in one kernel of ours; a divided k is finished by a pass */
} gemmepi_route;

typedef enum gemmepi_plan_kind {
    GEMMEPI_PLAN_MATMUL = 1,
    GEMMEPI_PLAN_ELEMENTWISE = 2,
    GEMMEPI_PLAN_LINEAR = 3,
    GEMMEPI_PLAN_LINEAR_BACKWARD = 4,
    GEMMEPI_PLAN_GROUPED = 5
} gemmepi_plan_kind;

typedef struct gemmepi_plan_details {
    gemmepi_plan_kind kind; /* which gemmepi_run_ function takes the plan */
    gemmepi_route route;
    const char *route_name;    /* "lt" and so on, as the constants; never freed */
    char kernel[96];           /* the kernel of ours or the algorithm that does most of the work */
    int tile_m, tile_n;        /* rows and columns of the result that one block makes; 0: not known */
    int launches;              /* kernels and memsets of ours plus calls of cuBLASLt in one run, at most */
    size_t workspace_size;     /* bytes that one run needs; of the route fused whatever alpha and c */
    gemmepi_compute compute;   /* never DEFAULT */
    gemmepi_dtype accumulator; /* F32, F64 or I32 */
    int deterministic;         /* 1: repeated runs on one GPU give the same bits */
    int bit_stable;            /* 1: so do others on such hardware and versions, of the same answers or none */
    double microseconds;       /* of one run if the plan was tuned, else 0 */
} gemmepi_plan_details;

/* What an epilogue reads and writes besides A, B, C and D, and how large. Sizes are of the whole batch. */
typedef struct gemmepi_epilogue_needs {
    int reads_bias, reads_aux, reads_residual; /* 1 or 0 */
    int writes_aux, writes_bias_grad;
    int accumulates_bias_grad; /* 1: bias_grad is read too */
    int aux_is_mask;           /* 1: RELU's bit mask, 0: a matrix of pre-activations */

    gemmepi_dtype bias_dtype, aux_dtype, residual_dtype, bias_grad_dtype; /* 0 where not used */
    int64_t bias_length, bias_grad_length;                                /* elements of one item; 0 where not used */
    int64_t aux_ld;                                                       /* elements, bits for a mask */
    size_t bias_bytes, aux_bytes, residual_bytes, bias_grad_bytes;        /* from the pointer to the last byte used */

    size_t scale_a_bytes, scale_b_bytes; /* likewise; 0 without a scale; the other scales are one F32 an item */
    size_t found_scale_d_bytes;          /* likewise; 0 without FIND_SCALE_D */
} gemmepi_epilogue_needs;

typedef struct gemmepi_context_details {
    int is_host;               /* 1: products run in plain C on the host */
    char fallback_reason[512]; /* why config.device 0 took the host; "" where it did not */
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
