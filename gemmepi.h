#ifndef GEMMEPI_H
#define GEMMEPI_H

/* gemmepi - matrix products with bias, activation or gradient in one pass, in one C header (version 0.13.0, MIT licence)

   The licence stands at the end of this file. README.md and docs/ of the repository say more.

   DO THIS: copy this file into your project. In one file, C99 or C++11 or later, write

       #define GEMMEPI_IMPLEMENTATION
       #include "gemmepi.h"

   and include it plainly in all others. Nothing of CUDA is needed to build: the driver, NVRTC and cuBLASLt are found when the
   program runs. Without a GPU the same calls run on the host, in plain C and slowly.

   LINK:  Linux -lm -ldl -lpthread (with glibc 2.34 and later -lm is enough)      Windows, macOS: nothing (macOS: host alone)

   OPTIONS, defined before the implementation; STATIC and API before every inclusion
       GEMMEPI_STATIC     every function is static: libraries that each hold this file do not clash
       GEMMEPI_API        decorates every public function, for instance with an export attribute
       GEMMEPI_NODISCARD  marks gemmepi_status; empty turns off the warning of a status that nobody looks at
       GEMMEPI_NO_HOST    leaves the host's arithmetic out: gemmepi_create then fails without a GPU
       GEMMEPI_NO_LINEAR, GEMMEPI_NO_ELEMENTWISE  leave out layers, and, together, element-wise operations
       GEMMEPI_NO_SM80, GEMMEPI_NO_SM90           leave out the route fused's kernel for Ampere and later, for Hopper

   A WHOLE PROGRAM, D = gelu(A B + bias)

       #define GEMMEPI_IMPLEMENTATION
       #include "gemmepi.h"
       #include <stdio.h>
       #include <stdlib.h>

       static void check(gemmepi_status status) {
           if (status != GEMMEPI_OK)
               fprintf(stderr, "%s: %s\n", gemmepi_status_name(status), gemmepi_last_error()), exit(1);
       }

       int main(void) {
           float a[2 * 3] = {1, 2, -1, 3, -2, 4}, b[3 * 2] = {.5f, -.3f, .1f, .7f, -.2f, .4f}, bias[2] = {-.1f, .2f}, d[4];
           gemmepi_context *gpu;
           gemmepi_matmul_desc desc = {0}; // in C++: = {}
           gemmepi_matmul_args args = {0};
           void *memory; // A, B, bias and D, at multiples of 256 bytes
           check(gemmepi_create(NULL, &gpu));
           check(gemmepi_alloc(gpu, 4 * 256, &memory));
           args.a = memory, args.b = (char *)memory + 256, args.bias = (char *)memory + 512, args.d = (char *)memory + 768;
           check(gemmepi_upload(gpu, memory, a, sizeof a, NULL));
           check(gemmepi_upload(gpu, (char *)memory + 256, b, sizeof b, NULL));
           check(gemmepi_upload(gpu, (char *)memory + 512, bias, sizeof bias, NULL));
           desc.m = 2, desc.n = 2, desc.k = 3;
           desc.epilogue = GEMMEPI_GELU_TANH | GEMMEPI_BIAS;
           check(gemmepi_matmul(gpu, &desc, &args, NULL));
           check(gemmepi_download(gpu, d, args.d, sizeof d, NULL));
           printf("%g %g\n%g %g\n", d[0], d[1], d[2], d[3]); // 0.630432 0.734228 / 0.262161 -0.154286
           check(gemmepi_free(gpu, memory));
           gemmepi_destroy(gpu);
           return 0;
       }

   IT DOES NOT
   - print, exit or abort; the one exception is the environment variable GEMMEPI_LOG, which asks for a log on stderr
   - tune: routes are chosen by a model fitted on an H200, and the choice is not always the fastest
   - use several GPUs in one context, convolve, or multiply sparse matrices
   - fuse the epilogue of F64, fp8 and I8 operands beyond what cuBLASLt does: there it is one pass more
   - order anything across streams, or keep a destroyed stream's runs from one with the same handle
   - run on a driver older than 525, or with NVRTC and cuBLASLt older than CUDA 12

   STEP BY STEP

   1. Create a context: one device, for any number of threads. A gemmepi_config names another device, a log, an allocator, and
      where libraries and compiled kernels lie. details.fallback_reason says why the host was taken where it was.
          check(gemmepi_create(NULL, &gpu)); // the thread's current CUDA device, else the first, else the host
          check(gemmepi_context_info(gpu, &details));
   2. Memory is gemmepi_alloc's, or any that the device can reach (cudaMalloc, PyTorch).
          check(gemmepi_alloc(gpu, sizeof input, &x));
          check(gemmepi_upload(gpu, x, input, sizeof input, stream)); // a CUstream or cudaStream_t; NULL is the default stream
   3. A product: a desc has shapes and types, args the pointers. A field left 0 has its default: row-major, dense, one item.
          desc.m = tokens, desc.n = inner, desc.k = width; // D [m, n] = A [m, k] B [k, n]
          desc.a.dtype = GEMMEPI_BF16;                     // the other tensors follow
          desc.b.transposed = 1;                           // w is stored [n, k], as nn.Linear stores it
          args.a = x, args.b = w, args.d = y;
          check(gemmepi_matmul(gpu, &desc, &args, stream));
   4. An epilogue is one activation or-ed with flags; gemmepi_epilogue has the formula and the order in which they act.
          desc.epilogue = GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX; // y = silu(p), p = x w^T + bias
          args.bias = bias, args.aux = p;
   5. A plan does the work of planning once. Running it costs its launches.
          check(gemmepi_plan_matmul(gpu, &desc, &plan));
          check(gemmepi_plan_prepare(plan, stream)); // workspace for runs on this stream
          check(gemmepi_run_matmul(plan, &args, stream)); // pointers at multiples of 16 bytes, unless desc.alignment says less
          gemmepi_plan_explain(plan, text, sizeof text); // the route taken, and why not another
          gemmepi_plan_destroy(plan);
   6. A layer y = act(x w^T + bias) with its gradients: one desc and one args for both directions. dw lies as w does.
          layer.m = tokens, layer.n = inner, layer.k = width, layer.a.dtype = GEMMEPI_BF16, layer.b.transposed = 1;
          layer.activation = GEMMEPI_SILU;
          layer.flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB |
                        GEMMEPI_ACCUMULATE_DB | GEMMEPI_LINEAR_DBIAS;
          tensors.a = x, tensors.b = w, tensors.bias = bias, tensors.y = y, tensors.preact = p;
          tensors.dy = dy, tensors.da = dx, tensors.db = dw, tensors.dbias = dbias; // dw is added to
          check(gemmepi_linear(gpu, &layer, &tensors, stream));
          check(gemmepi_linear_backward(gpu, &layer, &tensors, stream));
   7. Element-wise operations take tensors of any strides, as DLPack and NumPy have them.
          values.data = y, values.dtype = GEMMEPI_BF16, values.rank = 2, values.shape = shape; // no strides: dense
          check(gemmepi_activation(gpu, GEMMEPI_TANH, NAN, &values, &values, stream)); // in place; NAN: no parameter
   8. Every call that can fail returns a gemmepi_status, and gemmepi_last_error() has the sentence: which field, its value,
      what is accepted. A call that is refused has changed nothing. What goes wrong on the GPU later is reported by
          check(gemmepi_synchronize(gpu, stream));
   9. Threads share contexts and plans. Runs take no lock but for the context's workspace, and may be captured into CUDA graphs:
      prepare and run once before. docs/threads-and-graphs.md has the rules of streams and workspace.
  10. Ship: a problem's first use compiles kernels, half a second each, and keeps them in a folder. gemmepi_precompile does that
      for a list of problems on all cores. docs/shipping.md says which libraries a program takes along, and how they are found.
          problem.matmul = &desc;
          check(gemmepi_precompile(gpu, &problem, 1, 0, NULL, NULL));

   FUNCTIONS, each with its contract at its declaration below; docs/api.md is the same to read in a browser
       gemmepi_create _destroy _context_info _last_error _status_name _version              contexts and errors
       gemmepi_alloc _free _upload _download _synchronize _stream_create _stream_destroy   memory and streams
       gemmepi_matmul _linear _linear_backward _elementwise                                 a problem in one call
       gemmepi_plan_matmul ... _plan_elementwise, gemmepi_run_matmul ... _run_elementwise   the same, planned once
       gemmepi_plan_prepare _plan_info _plan_explain _plan_destroy                          of plans of every kind
       gemmepi_activation _activation_backward _gated _lerp _bias_grad _cast                element-wise, in short
       gemmepi_precompile _epilogue_info _dtype_size                                        ahead of time, and sizes */
/* Everything a user hands over or gets back. */

#include <stddef.h>
#include <stdint.h>

#define GEMMEPI_VERSION_MAJOR  0
#define GEMMEPI_VERSION_MINOR  13
#define GEMMEPI_VERSION_PATCH  0
#define GEMMEPI_VERSION_STRING "0.13.0"
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
    X(GEMMEPI_CUBLAS_ERROR, 10, "cuBLASLt returned an error")

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

    /* Folders searched for the CUDA libraries before the usual ones, separated by ':' (';' on Windows). NULL: none */
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
    GEMMEPI_I32 = 8 /* results of I8 operands, and what is added to them                               */
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
   For matrices of E4M3, E5M2 and I8 alone; OUTER, VECTOR_128 and BLOCK_128 for a and b alone, which may have different modes.
   BGRAD_A and BGRAD_B sum the scaled operand. Amax (AMAX_D, AMAX_AUX) tells which scale the next result needs.

   The layouts are cuBLASLt 13's. For op(A) of m x k (op(B): exchange m and n, rows and columns):

       TENSOR       one number       s[0]
       OUTER        m numbers        s[row]
                                                 row 0  1  2 ...  m-1
       VECTOR_128   ceil(k / 128) lines of m:    s[k / 128 * m + row]         k 0..127     | s s s ... s |
                                                                              k 128..255   | s s s ... s |
                                                 k 0..127  128..255  ...  (lines are a multiple of 4 long)
       BLOCK_128    ceil(m / 128) lines:         s[row / 128 * L + k / 128]   rows 0..127  | s s s . |
                    L = ceil(k / 128) up to a    numbers past ceil(k / 128)   rows 128..   | s s s . |
                    multiple of 4                are not read

   VECTOR_128 is what 1 x 128 groups along k are called elsewhere, BLOCK_128 128 x 128 tiles. */
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
    uint64_t flags;              /* RELAXED, DEVICE_SCALARS, FAST_ACCUMULATION, AMAX_D, AMAX_AUX, ACCUMULATE */
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

    /* Bytes, a power of two up to 256, that the pointers of matrices and vectors will be multiples of in every run. 0: 16 for
       plans, what the pointers have for gemmepi_matmul. An element's size in any case */
    size_t alignment;
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
       scale and rounding; NaN if any is NaN */
    void *amax_d, *amax_aux;

    const double *alpha; /* NULL: 1; on the host, or on the device with GEMMEPI_DEVICE_SCALARS (rounded to a whole number for I32) */
    const double *beta;  /* NULL: 0, and c NULL too; likewise */

    void *workspace;       /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size; /* bytes; at least the plan's */
} gemmepi_matmul_args;

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
   alone. BIAS_GRAD and CAST a, y.
   Dtypes: F32, F16, BF16 or F64, one for all tensors of an operation, computed in F32 (F64 in F64) and rounded once;
   y of BIAS_GRAD, and da, db and dw where they are sums, may be F32 in 16 bits. CAST: a and y any of F32, F64, F16, BF16,
   E4M3 and E5M2; stores to the last two saturate as a product's do.
   Sums add 16-bit values eight at a time in F32, those sums and all other values in F64, in a fixed order.

   CAST's scales and amax: one number for all (SCALE_TENSOR; NONE stands for it), or one for each row (SCALE_OUTER), 128
   steps of k of a row (SCALE_VECTOR_128), or block of 128 rows and 128 steps of k (SCALE_BLOCK_128) of the matrices that
   are the last two axes (of rank 1: one row), laid out as gemmepi_scale_mode draws the scales of products; those of further axes
   follow one another. Numbers beyond the last of a line are not written. */
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
    size_t alignment;                       /* bytes, a power of two up to 256, that all pointers are multiples of; 0: 16 */
} gemmepi_elementwise_desc;

/* The tensors' data, as desc has tensors, and what a run may change. An output must not overlap anything, except that it
   may be exactly (pointer, dtype, strides) an input, or the half of one that is split: but no sum may, and no cast with
   CAST_Y_SCALE or scales of rows or blocks. */
typedef struct gemmepi_elementwise_args {
    const void *a, *b, *w, *dy;
    void *y, *da, *db, *dw;
    double weight;         /* LERP and LERP_BACKWARD without w */
    const float *scale;    /* CAST_SCALE */
    float *y_scale;        /* CAST_Y_SCALE */
    void *amax;            /* CAST_AMAX: F32, or F64 where a is F64; NaN where any of its numbers is NaN */
    void *workspace;       /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size; /* bytes; at least the plan's */
} gemmepi_elementwise_args;

/* >>layers */

/* Flags of a layer, beside RELAXED and FAST_ACCUMULATION. Those of gradients say what gemmepi_linear_backward makes. */
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
   accumulator. In a recomputed G the error E of P stands times |dy| and the largest |act''| nearby. fp8 operands whose scales change
   along a gradient's sum (OUTER, VECTOR_128 and BLOCK_128 may) are first written out in F32: right, but slow. An A of a batch that
   shares B, whose items are not stored one after another, is copied for dB.

   Batch: either B is shared (b.batch_stride 0): then so are its scale, bias, db and dbias (strides 0), and dB and dbias are
   the sums over the batch. Or B has items: then db has (its stride is not 0), and dbias as bias. An A that is the same for all items
   (a.batch_stride 0) may have a da of one item for each, or (da.batch_stride 0, B has items) the sum; then its scale has no
   items either. dy may be the same for all items.

   Dtypes: a, b, y, bias and preact as a product's a, b, d, bias and aux. Backward takes a and b of F64 (with F64
   alone), F32, F16, BF16, E4M3 and E5M2; dy any of these or I8, da, db and dbias F32, F16 or BF16. Scales go with a, b, y,
   preact and dy: any mode of a and b, TENSOR of the others. */
typedef struct gemmepi_linear_desc {
    int64_t m, n, k;             /* as in gemmepi_matmul_desc */
    int64_t batch;               /* the number of items; 0: 1 */
    gemmepi_order order;         /* of all matrices; 0: row-major */
    gemmepi_compute compute;     /* of all products that it fits, as in gemmepi_matmul_desc */
    gemmepi_epilogue activation; /* RELU and so on, or-ed with GATED and GATE_FIRST or not */
    uint64_t flags;              /* LINEAR_BIAS and so on, RELAXED, FAST_ACCUMULATION */
    int has_parameter;           /* 1: activation_parameter counts; 0: it must be 0, and the default holds */
    double activation_parameter; /* p of LEAKY_RELU and ELU */

    gemmepi_matrix a, b;   /* dtype 0: F32, a's */
    gemmepi_matrix y;      /* dtype 0: a's, BF16 where a is E4M3 or E5M2 */
    gemmepi_matrix preact; /* dtype 0: y's (RELU's mask: leave it 0); read only with SAVED */
    gemmepi_matrix dy;     /* dtype 0: y's */
    gemmepi_matrix da, db; /* dtype 0: a's, b's, BF16 where that is E4M3 or E5M2 */
    gemmepi_vector bias;   /* dtype 0: as a product's */
    gemmepi_vector dbias;  /* dtype 0: bias's; without BIAS what a bias's would be */

    /* Of G between the passes: F32, F16 or BF16 (F64 in F64). 0: that of a and b, where they differ the one that holds both,
       BF16 for E4M3 and E5M2. A dy that has it already, and no activation, is G itself */
    gemmepi_dtype g_dtype;
    size_t alignment; /* as in gemmepi_matmul_desc */
} gemmepi_linear_desc;

/* The pointers of a layer; each direction takes those that it needs and leaves the others, so that one struct serves both.
   Forward: a, b, bias with BIAS, y, preact with SAVED. Backward: dy; da, db and dbias as asked for, else NULL; b for da, a
   for db, both and bias for RECOMPUTE; preact with SAVED. Outputs must not overlap anything of their direction.
   A scale multiplies what is read and what is stored: a preact that forward stored times scale_preact comes back from
   backward's scale_preact, the reciprocal. */
typedef struct gemmepi_linear_args {
    const void *a, *b, *bias;
    void *y;
    void *preact; /* written by forward, read by backward */
    const void *dy;
    void *da, *db, *dbias;
    const float *scale_a, *scale_b, *scale_y, *scale_preact, *scale_dy; /* where desc has a mode */

    void *workspace;       /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size; /* bytes; at least the plan's; all of it may be used */
} gemmepi_linear_args;

/* >>work ahead */

/* One problem of any kind: exactly one of the pointers is not NULL. */
typedef struct gemmepi_any_desc {
    const gemmepi_matmul_desc *matmul;
    const gemmepi_elementwise_desc *elementwise;
    const gemmepi_linear_desc *linear; /* a layer, forward */
    const gemmepi_linear_desc *linear_backward;
} gemmepi_any_desc;

/* Told that `done` of `count` problems are done, from 1 on; by any thread that works on them, but one at a time. Must not
   call back into the context. */
typedef void (*gemmepi_progress_function)(void *user, size_t done, size_t count);

/* >>answers */

/* Of FUSED, LT and SPLIT a plan takes the one of the least estimate that can run the problem, PLAIN where none can. Fastest are
   operands at multiples of 16 bytes: pointers, leading dimensions and batch strides. FUSED reads any alignment down to the
   element's, or copies such an operand to workspace first. docs/routes.md has what each takes. */
typedef enum gemmepi_route {
    GEMMEPI_ROUTE_EMPTY = 0,      /* m or n is 0, or a tensor is empty: nothing is written but sums of bias_grad */
    GEMMEPI_ROUTE_LT = 1,         /* cuBLASLt: product and epilogue in one kernel */
    GEMMEPI_ROUTE_SPLIT = 2,      /* a cuBLASLt product, then one pass of ours */
    GEMMEPI_ROUTE_HOST = 3,       /* plain C on the host */
    GEMMEPI_ROUTE_PLAIN = 4,      /* a kernel of ours that takes everything, for what cuBLASLt does not */
    GEMMEPI_ROUTE_CONTIGUOUS = 5, /* element-wise: dense tensors in one line */
    GEMMEPI_ROUTE_STRIDED = 6,    /* element-wise: tiles of any layout */
    GEMMEPI_ROUTE_SUM = 7,        /* sums over axes, in one launch or two, beside one of those or alone */
    GEMMEPI_ROUTE_SCALED = 8,     /* casts with scales of rows or blocks */
    GEMMEPI_ROUTE_LINEAR = 9,     /* a layer's backward: products and passes, each with a route of its own */
    GEMMEPI_ROUTE_FUSED = 10      /* product and epilogue in one kernel of ours */
} gemmepi_route;

typedef enum gemmepi_plan_kind {
    GEMMEPI_PLAN_MATMUL = 1,
    GEMMEPI_PLAN_ELEMENTWISE = 2,
    GEMMEPI_PLAN_LINEAR = 3,
    GEMMEPI_PLAN_LINEAR_BACKWARD = 4
} gemmepi_plan_kind;

typedef struct gemmepi_plan_details {
    gemmepi_plan_kind kind; /* which gemmepi_run_ function takes the plan */
    gemmepi_route route;
    const char *route_name;    /* "lt" and so on, as the constants; never freed */
    char kernel[96];           /* the kernel of ours or the algorithm that does most of the work */
    int tile_m, tile_n;        /* rows and columns of the result that one block makes; 0: not known */
    int launches;              /* kernels and memsets of ours plus calls of cuBLASLt in one run */
    size_t workspace_size;     /* bytes that one run needs; of the route fused whatever alpha and c */
    gemmepi_compute compute;   /* never DEFAULT */
    gemmepi_dtype accumulator; /* F32, F64 or I32 */
    int deterministic;         /* 1: repeated runs on one GPU give the same bits */
    int bit_stable;            /* 1: so do other processes on the same hardware and library versions */
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
    char cache_path[512];                                /* the cache folder in use; "" if none */
} gemmepi_context_details;
/* Every public function with its contract. Unless one says otherwise:
   - it returns GEMMEPI_OK, or a status with a sentence in gemmepi_last_error(), and then has changed nothing, but what it
     would have filled in (a handle, a pointer, a struct of details) is NULL or zero;
   - it may be called from any number of threads at once, but a handle is ended (_destroy) once, when no other call uses it;
   - pointers in structs are borrowed for the time of the call. */

/* GEMMEPI_API decorates every public function (an export attribute, a calling convention). GEMMEPI_STATIC makes
   them static instead: then every file that calls them defines GEMMEPI_IMPLEMENTATION too. */
#ifndef GEMMEPI_API
#ifdef GEMMEPI_STATIC
#if defined(__GNUC__) || defined(__clang__)
#define GEMMEPI_API static __attribute__((unused))
#else
#define GEMMEPI_API static
#endif
#else
#define GEMMEPI_API extern
#endif
#endif

#if defined(GEMMEPI_NO_ELEMENTWISE) && !defined(GEMMEPI_NO_LINEAR)
#error "GEMMEPI_NO_ELEMENTWISE leaves out what layers copy and sum with: define GEMMEPI_NO_LINEAR, too"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* >>context */

/* Opens a device. config may be NULL: all defaults. On success *context is the caller's, to be given to
   gemmepi_destroy. On a GPU the device's primary context is used, which the CUDA runtime and PyTorch use too; the
   calling thread's current CUDA context is left as it is. Loads the CUDA driver, nothing else. Texts of config are copied;
   its functions and what their user pointers point to are used until gemmepi_destroy.
   The child of a fork() makes a context of its own: there the parent's, and what was made with it, are refused with
   INVALID_ARGUMENT, and destroying them does nothing. On a GPU CUDA takes that only where the parent has not used CUDA.
   Errors: INVALID_ARGUMENT, NO_DEVICE, LIBRARY_NOT_FOUND (a device was asked for and there is no driver), CUDA_ERROR,
   OUT_OF_MEMORY. */
GEMMEPI_API gemmepi_status gemmepi_create(const gemmepi_config *config, gemmepi_context **context);

/* Waits for the device and frees everything the context holds: kernels, workspace, the plans of one-shot calls. What is the
   caller's must be given back before: plans, memory of gemmepi_alloc, streams of gemmepi_stream_create.
   No stream of the device may be being captured: CUDA waits for no device then. NULL is accepted. */
GEMMEPI_API void gemmepi_destroy(gemmepi_context *context);

/* What the context is and has done so far. Errors: INVALID_ARGUMENT. */
GEMMEPI_API gemmepi_status gemmepi_context_info(gemmepi_context *context, gemmepi_context_details *details);

/* The sentence about the last call on this thread that failed: the argument, its value and what would be accepted.
   Read it right after that call: later ones, also those that succeed, may overwrite it. Never NULL. With GEMMEPI_STATIC
   each file has its own: it speaks of that file's calls. */
GEMMEPI_API const char *gemmepi_last_error(void);

/* The GEMMEPI_VERSION of the implementation that is linked: compare it with the header's. */
GEMMEPI_API int gemmepi_version(void);

/* "GEMMEPI_OK" and so on, "unknown status" for other values; never freed. */
GEMMEPI_API const char *gemmepi_status_name(gemmepi_status status);

/* >>memory and streams: alike on a GPU and on the host, so that a whole program needs no CUDA toolkit

   Memory and streams from elsewhere (cudaMalloc, PyTorch) may be used instead, or beside these. All functions here may be called
   while other streams are being captured.
   Errors: INVALID_ARGUMENT, OUT_OF_MEMORY and CUDA_ERROR, which may come from an earlier launch. */

/* bytes of device memory, a multiple of 256 in address and not cleared, to be given to gemmepi_free. Zero bytes give NULL. */
GEMMEPI_API gemmepi_status gemmepi_alloc(gemmepi_context *context, size_t bytes, void **pointer);
/* Waits until the device has finished with it. NULL is accepted; a pointer that gemmepi_alloc of this context did not give is
   refused on the host, and by CUDA on a GPU. */
GEMMEPI_API gemmepi_status gemmepi_free(gemmepi_context *context, void *pointer);
/* Copies bytes of host memory to the device, in the order of the stream; host may be reused on return. This and the next two
   wait, so the stream must not be being captured. */
GEMMEPI_API gemmepi_status gemmepi_upload(gemmepi_context *context, void *device, const void *host,
                                          size_t bytes, gemmepi_stream stream);
/* Copies bytes of device memory to the host, in the order of the stream; host is filled on return. */
GEMMEPI_API gemmepi_status gemmepi_download(gemmepi_context *context, void *host, const void *device,
                                            size_t bytes, gemmepi_stream stream);
/* Waits for everything on the stream and reports what went wrong there. */
GEMMEPI_API gemmepi_status gemmepi_synchronize(gemmepi_context *context, gemmepi_stream stream);
/* A stream that does not wait for the default one, to be given to gemmepi_stream_destroy; on the host a token without effect. */
GEMMEPI_API gemmepi_status gemmepi_stream_create(gemmepi_context *context, gemmepi_stream *stream);
/* Waits for the stream, then ends it. NULL is accepted. On the host a stream that has ended, or never was, is refused by every
   call that takes one. */
GEMMEPI_API gemmepi_status gemmepi_stream_destroy(gemmepi_context *context, gemmepi_stream stream);

/* >>problems in one call

   Each runs desc on args in the order of stream. The first call for a problem builds a plan (milliseconds) and may compile a
   kernel (half a second, once on a machine: config.cache_path); later calls find the plan. Workspace is reserved by itself,
   except while the stream is being captured. On a GPU a pointer to host memory that the device cannot reach is refused.
   Errors: those of planning, gemmepi_plan_prepare and running below. */

/* D = epilogue(alpha op(A) op(B) + beta C): gemmepi_matmul_desc has shapes and types, gemmepi_epilogue the formula.

   How right: everything up to the store is computed in the accumulator's type and rounded once. With u the unit roundoff of the
   stored type, u_acc that of the accumulator (2^-24, or 2^-53 for F64), S = sum_k |alpha A B| + |beta C| + |bias| and
   E = (4 + k / 8) u_acc S (plus 2^-9 S with TF32),

       |out - exact| <= u |exact| + L E + 4 u_acc T + the smallest subnormal of the stored type

   L is the largest |act'| nearby (1.13 for GELU, 1.1 for SILU, QUICK_GELU and MISH, 1.5 for HARDSWISH, 2.2 v + 1 for SQUARED_RELU,
   |p| for LEAKY_RELU and ELU where that is above 1, 1 for the others, |act'(aux)| for BACKWARD), T the sum of the magnitudes
   combined after the product; act' of BACKWARD may be taken at aux (1 + 2 u_acc). GATED: |act(gate)| E_value + |value| L E_gate
   stands for L E. UPSTREAM: |aux| times what act' changes by within v +- E.
   Products of two fp8 operands have 2^-10 S more in E for each 32 of k, of 128 at most (of all with FAST_ACCUMULATION). Those of I8
   are exact, an I32 result modulo 2^32. Results of 16 bits or fewer take shorter forms of activations, off by up to 2^-17.3 of
   their largest term for |v| < 5 and 2^-16.5 for |v| < 10; forward GELU_ERF by up to 2^-21 of |v|, from k = 768 on by 2^-18.2.
   Kernels add up to 128 terms of a bias_grad in the accumulator's type, the rest in F64: a term or such a sum out of its range is
   infinite, and where both signs are, bias_grad is NaN. docs/numerics.md says how these were measured.
   A run repeated on the same GPU gives the same bits. Where cuBLASLt's own epilogue is looser than this, another route is taken,
   unless GEMMEPI_RELAXED is set.
   Activations and their derivatives stand at GEMMEPI_NONE. */
GEMMEPI_API gemmepi_status gemmepi_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                          const gemmepi_matmul_args *args, gemmepi_stream stream);

#ifndef GEMMEPI_NO_LINEAR
/* A layer's Y, and with SAVED P (else preact is not written): one product with desc's activation. What desc says of gradients is
   not looked at. Formulas,
   shapes and batches stand at gemmepi_linear_desc. */
GEMMEPI_API gemmepi_status gemmepi_linear(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                          const gemmepi_linear_args *args, gemmepi_stream stream);

/* A layer's dA, dB and dbias, those that desc asks for; y is not looked at. A pass over dY and P (or a product, with RECOMPUTE), then a product for
   each of dA and dB. G and what else lies between them is in workspace. */
GEMMEPI_API gemmepi_status gemmepi_linear_backward(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                                   const gemmepi_linear_args *args, gemmepi_stream stream);
#endif

#ifndef GEMMEPI_NO_ELEMENTWISE
/* An element-wise operation: gemmepi_operation has the formulas. args may be NULL, and a tensor whose pointer is NULL there is
   taken from desc's own data. */
GEMMEPI_API gemmepi_status gemmepi_elementwise(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
                                               const gemmepi_elementwise_args *args, gemmepi_stream stream);
#endif

/* >>plans

   A program that runs a problem often prepares it once: plan, reserve, run any number of times, destroy. A plan is immutable;
   threads and streams may share it. */

/* Validates desc, chooses the route and compiles what it needs. *plan is the caller's, to be given to gemmepi_plan_destroy
   before the context goes. May be called while streams are being captured.
   Errors: INVALID_ARGUMENT, UNSUPPORTED, LIBRARY_NOT_FOUND, COMPILE_ERROR, CUDA_ERROR, CUBLAS_ERROR, OUT_OF_MEMORY. */
GEMMEPI_API gemmepi_status gemmepi_plan_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                               gemmepi_plan **plan);
#ifndef GEMMEPI_NO_ELEMENTWISE
GEMMEPI_API gemmepi_status gemmepi_plan_elementwise(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
                                                    gemmepi_plan **plan);
#endif
#ifndef GEMMEPI_NO_LINEAR
GEMMEPI_API gemmepi_status gemmepi_plan_linear(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                               gemmepi_plan **plan);
/* Also UNSUPPORTED: I8 operands, and the few forms of a batch that its sentence names. */
GEMMEPI_API gemmepi_status gemmepi_plan_linear_backward(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                                        gemmepi_plan **plan);
#endif

/* Run a plan on args in the order of stream: a few launches (gemmepi_plan_info), and, but for what is said below, no allocation,
   no compilation and no lock. A plan of another kind is refused. A run may be captured into a CUDA graph, which keeps the
   workspace it was captured with: graphs captured on one stream must not run at the same time, nor beside runs on that stream.
   Calls on different streams need different workspaces, which the context's own are; threads that run plans on one stream with
   the context's workspace take turns for the time of the launches.
   Where cuBLASLt refuses what its heuristic had accepted, nothing has run yet: the plan then takes the next route for good,
   which this one run builds (and reserves workspace for, if args.workspace is too small), and the log says so. A backward may
   have launched what comes before that product: captured without workspace for the next route it ends with BUFFER_TOO_SMALL;
   prepare again and begin the capture anew.
   A plan of the route fused has a kernel for alpha 1 and no c, and with ACCUMULATE one for that: its first run with other
   scalars compiles another (gemmepi_precompile does that ahead; with GEMMEPI_DEVICE_SCALARS one is for all). Its workspace is
   counted from the beginning. For 16-bit D = alpha A B + D with alpha other than 1 the first run may build a second plan: run
   once, and call gemmepi_plan_prepare again, before a capture.
   Errors: INVALID_ARGUMENT, MISALIGNED, BUFFER_TOO_SMALL (args.workspace_size, or no workspace given and none
   reserved by gemmepi_plan_prepare): nothing was launched; CUDA_ERROR, CUBLAS_ERROR; and those of planning in a run that builds
   another route or kernel. */
GEMMEPI_API gemmepi_status gemmepi_run_matmul(const gemmepi_plan *plan, const gemmepi_matmul_args *args,
                                              gemmepi_stream stream);
#ifndef GEMMEPI_NO_ELEMENTWISE
GEMMEPI_API gemmepi_status gemmepi_run_elementwise(const gemmepi_plan *plan, const gemmepi_elementwise_args *args,
                                                   gemmepi_stream stream);
#endif
#ifndef GEMMEPI_NO_LINEAR
/* All of args.workspace_size may be used, so no tensor may lie in it. */
GEMMEPI_API gemmepi_status gemmepi_run_linear(const gemmepi_plan *plan, const gemmepi_linear_args *args,
                                              gemmepi_stream stream);
GEMMEPI_API gemmepi_status gemmepi_run_linear_backward(const gemmepi_plan *plan, const gemmepi_linear_args *args,
                                                       gemmepi_stream stream);
#endif

/* Reserves the workspace that runs of this plan on this stream need, until the context goes: once for each stream that
   the plan will run on without args.workspace. Plans on one stream share it. Where it is too small a block of at least twice
   the size is added and the old ones stay, because graphs may have captured them: all together less than four times what the
   largest plan needs. Where there is no memory for that, the block is as large as this plan needs. Allocates device memory, so
   not to be called while the stream is being captured (BUFFER_TOO_SMALL then, unless there is enough). A stream is known by its
   handle: one that is destroyed while runs on it are under way must not be followed by another with the same handle before they
   end. The per-thread default stream is one for each thread, and, with GEMMEPI_STATIC, for each file: reserve where it runs. On
   the host, and where a plan needs none, it does nothing.
   Errors: INVALID_ARGUMENT, BUFFER_TOO_SMALL, OUT_OF_MEMORY, CUDA_ERROR. */
GEMMEPI_API gemmepi_status gemmepi_plan_prepare(const gemmepi_plan *plan, gemmepi_stream stream);

/* NULL is accepted. Runs already launched go on; graphs that captured runs of the plan stay valid until the context
   goes. */
GEMMEPI_API void gemmepi_plan_destroy(gemmepi_plan *plan);

/* The route taken and its properties. Of a layer's backward all launches together, and the kernel that makes G; of element-wise
   operations tile_m and tile_n are the extents of a tile. Errors: INVALID_ARGUMENT. */
GEMMEPI_API gemmepi_status gemmepi_plan_info(const gemmepi_plan *plan, gemmepi_plan_details *details);

/* In words: the problem, the route taken, and for every other route the rule that ruled it out; of a layer's backward the steps
   in their order. Writes at most size bytes with the final zero (text may be NULL if size is 0), returns the length of the whole
   text without it, 0 for a NULL plan. */
GEMMEPI_API size_t gemmepi_plan_explain(const gemmepi_plan *plan, char *text, size_t size);

/* What the epilogue of desc reads and writes and how large that is; needs no context. The desc is validated as by
   gemmepi_plan_matmul. Errors: INVALID_ARGUMENT. */
GEMMEPI_API gemmepi_status gemmepi_epilogue_info(const gemmepi_matmul_desc *desc,
                                                 gemmepi_epilogue_needs *needs);

#ifndef GEMMEPI_NO_ELEMENTWISE

/* >>short calls for element-wise operations, as gemmepi_elementwise

   The tensors' structs, shapes and strides are borrowed for the call. Empty tensors succeed.
   Errors: INVALID_ARGUMENT (shapes, strides, dtypes or lengths that do not go together, overlap, NULL), MISALIGNED (data
   is no multiple of its element's size), and those of planning and running. */

/* y = act(a). activation: RELU and so on; parameter: p of LEAKY_RELU and ELU, NAN (math.h) for the default and for the others. */
GEMMEPI_API gemmepi_status gemmepi_activation(gemmepi_context *context, gemmepi_epilogue activation,
                                              double parameter, const gemmepi_tensor *a,
                                              const gemmepi_tensor *y, gemmepi_stream stream);
/* da = dy act'(a), from the pre-activation a. */
GEMMEPI_API gemmepi_status gemmepi_activation_backward(gemmepi_context *context, gemmepi_epilogue activation,
                                                       double parameter, const gemmepi_tensor *a,
                                                       const gemmepi_tensor *dy, const gemmepi_tensor *da,
                                                       gemmepi_stream stream);

/* y = a act(b), value and gate. activation: SIGMOID (GLU), RELU (ReGLU), SILU (SwiGLU), GELU_TANH or GELU_ERF (GeGLU), or
   any other. b NULL: a holds both, halves of its axis split_dim (negative: from the end), whose extent is twice y's; the
   value is the first, with GATE_FIRST in activation the second. With b split_dim is 0 and GATE_FIRST is not set. LEAKY_RELU
   and ELU have their default parameter here; gemmepi_elementwise takes any. */
GEMMEPI_API gemmepi_status gemmepi_gated(gemmepi_context *context, gemmepi_epilogue activation, int split_dim,
                                         const gemmepi_tensor *a, const gemmepi_tensor *b,
                                         const gemmepi_tensor *y, gemmepi_stream stream);
/* y = a + w (b - a), exactly a for w = 0 and b for w = 1 where b - a is finite. w NULL: weight for
   all; else weight is 0. */
GEMMEPI_API gemmepi_status gemmepi_lerp(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *b, const gemmepi_tensor *w, double weight,
                                        const gemmepi_tensor *y, gemmepi_stream stream);
/* y[i] = the sum of a over all axes but `axis` (negative: from the end), on which its index is i: of a matrix, axis 1 or
   -1 gives the sums of its columns and 0 those of its rows. y has rank 1. accumulate is 0, or 1 to add to it. */
GEMMEPI_API gemmepi_status gemmepi_bias_grad(gemmepi_context *context, const gemmepi_tensor *a, int axis,
                                             int accumulate, const gemmepi_tensor *y, gemmepi_stream stream);

/* y = a in y's type, saturated to E4M3 and E5M2. Scales and amax: gemmepi_elementwise with GEMMEPI_OP_CAST. */
GEMMEPI_API gemmepi_status gemmepi_cast(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *y, gemmepi_stream stream);

#endif

/* >>work ahead */

/* Compiles what the problems need on several threads, so that plans and calls for them compile nothing later: kernels stay
   in the context, and on disk (config.cache_path), so it is enough to do this once on a machine. threads: 0 for as many as it
   has cores; more than 256 count as 256, and the caller's is one of them. progress may be NULL. Problems are planned as by the
   gemmepi_plan_ functions, and like those it may run beside any other calls and while streams are
   being captured. Calls whose pointers are multiples of less than 16 bytes may need other kernels (say so in desc.alignment),
   and so may runs in which c is d, see gemmepi_run_matmul. One that fails keeps no other from being done: of those that fail
   the first in the list is returned, and the sentence names it. A count of 0 does nothing.
   Errors: INVALID_ARGUMENT and those of planning. */
GEMMEPI_API gemmepi_status gemmepi_precompile(gemmepi_context *context, const gemmepi_any_desc *problems,
                                              size_t count, int threads, gemmepi_progress_function progress,
                                              void *user);

/* >>small things */

/* Bytes of one element; 0 for DEFAULT and unknown values. */
GEMMEPI_API size_t gemmepi_dtype_size(gemmepi_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif

#if defined(GEMMEPI_IMPLEMENTATION) && !defined(GEMMEPI_IMPLEMENTATION_INCLUDED)
#define GEMMEPI_IMPLEMENTATION_INCLUDED

/* Each room uses only what stands before it. */
/* What compilers and systems call the same things. Everything above speaks only these names. */

#include <limits.h>
#include <stdarg.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#define GEMMEPI__WINDOWS 1
#else
#define GEMMEPI__WINDOWS 0
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define GEMMEPI__THREAD_LOCAL __declspec(thread)
#define GEMMEPI__PRINTF(at, first)
#else
#define GEMMEPI__THREAD_LOCAL __thread
#if GEMMEPI__WINDOWS && !defined(__clang__)
#define GEMMEPI__PRINTF(at, first) __attribute__((format(gnu_printf, at, first)))
#else
#define GEMMEPI__PRINTF(at, first) __attribute__((format(printf, at, first)))
#endif
#endif

/* The calling convention of the CUDA libraries' functions and of their callbacks. */
#if GEMMEPI__WINDOWS
#define GEMMEPI__CUDA_CALL __stdcall
#else
#define GEMMEPI__CUDA_CALL
#endif

/* A system function that strict C99 hides from its own header, declared privately: the linker's name is given, so
 that a declaration the header does make cannot disagree. On macOS, where some of these functions have several names,
 the headers hide nothing, and theirs are used (GEMMEPI__HEADERS_HIDE 0). */
#if !GEMMEPI__WINDOWS
#define GEMMEPI__SYSTEM_NAME(name) __asm__(name)
#endif
#if defined(__APPLE__)
#define GEMMEPI__HEADERS_HIDE 0
#else
#define GEMMEPI__HEADERS_HIDE 1
#endif

/* room for a path that the system gives, with its final zero: Linux's PATH_MAX, which strict C99 hides */
#define GEMMEPI__PATH_SIZE 4096

static int gemmepi__is_slash(char c) {
 return c == '/' || (GEMMEPI__WINDOWS && c == '\\');
}

static int gemmepi__is_absolute(const char *path) {
 if (GEMMEPI__WINDOWS && path[0] && path[1] == ':')
  return gemmepi__is_slash(path[2]);
 return gemmepi__is_slash(path[0]);
}

#define GEMMEPI__COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* sizes are printed as unsigned long long everywhere: %zu is unknown to older Windows runtimes */
typedef unsigned long long gemmepi__ull;
/* Statuses and this thread's sentence about the last failure. */

#define GEMMEPI__ERROR_TEXT_SIZE 2048

static GEMMEPI__THREAD_LOCAL char gemmepi__error_text[GEMMEPI__ERROR_TEXT_SIZE];

/* Notes the sentence and returns the status, so that a failing function ends in `return gemmepi__fail(...)`.
 The arguments may include the current sentence itself. */
GEMMEPI__PRINTF(2, 3)
static gemmepi_status gemmepi__fail(gemmepi_status status, const char *format, ...) {
 char text[GEMMEPI__ERROR_TEXT_SIZE];
 va_list arguments;
 va_start(arguments, format);
 vsnprintf(text, sizeof text, format, arguments);
 va_end(arguments);
 memcpy(gemmepi__error_text, text, sizeof text);
 return status;
}

GEMMEPI_API const char *gemmepi_last_error(void) {
 return gemmepi__error_text;
}

GEMMEPI_API int gemmepi_version(void) {
 return GEMMEPI_VERSION;
}

GEMMEPI_API const char *gemmepi_status_name(gemmepi_status status) {
 switch (status) {
#define GEMMEPI_STATUS_CASE(name, value, text) \
 case name: \
  return #name;
  GEMMEPI_STATUS_LIST(GEMMEPI_STATUS_CASE)
#undef GEMMEPI_STATUS_CASE
 default:
  return "unknown status";
 }
}
/* Variables of the environment, and whether a folder that one of them names may be trusted with code. */

#if GEMMEPI__WINDOWS

static int gemmepi__environment(const char *name, char *value, size_t size) {
 DWORD length = GetEnvironmentVariableA(name, value, (DWORD)size);
 return length > 0 && length < size;
}

/* Folders are private by their access lists, which are not examined. */
static int gemmepi__others_can_write(const char *folder) {
 (void)folder;
 return 0;
}

#else

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#if GEMMEPI__HEADERS_HIDE
extern char *gemmepi__realpath(const char *path, char *resolved) GEMMEPI__SYSTEM_NAME("realpath");
#else
#define gemmepi__realpath realpath
#endif

/* NULL if the variable is not set, or if the program runs with more rights than its user: code is loaded from where it
 points to. */
#if defined(__linux__)
extern char *gemmepi__secure_getenv(const char *name) GEMMEPI__SYSTEM_NAME("secure_getenv");
#else
#if GEMMEPI__HEADERS_HIDE
extern int gemmepi__issetugid(void) GEMMEPI__SYSTEM_NAME("issetugid");
#else
#define gemmepi__issetugid issetugid
#endif
static char *gemmepi__secure_getenv(const char *name) {
 return gemmepi__issetugid() ? NULL : getenv(name);
}
#endif

/* 0 if the variable may not be looked at, is empty or too long. */
static int gemmepi__environment(const char *name, char *value, size_t size) {
 const char *found = gemmepi__secure_getenv(name);
 if (!found || !found[0] || strlen(found) >= size)
  return 0;
 memcpy(value, found, strlen(found) + 1);
 return 1;
}

/* 1 if others than a folder's owner and root may put files there. A group of the owner's number is the user's own, of
 which nobody else is a member: so systems of one group for each user make folders. */
static int gemmepi__mode_lets_others_write(const struct stat *status) {
 if (status->st_mode & 0002)
  return 1;
 return (status->st_mode & 0020) && (unsigned long)status->st_gid != (unsigned long)status->st_uid;
}

/* 1 if somebody else than the owner of the folder, or of one that it lies in, can put files there or exchange it. In a
 folder like /tmp others cannot exchange what this user or root has made. Symbolic links are followed first. 0 if it
 does not exist. */
static int gemmepi__others_can_write(const char *folder) {
 char path[GEMMEPI__PATH_SIZE];
 struct stat status;
 int is_last = 1, is_mine;
 size_t length;
 if (!gemmepi__realpath(folder, path) || stat(path, &status) != 0)
  return 0;
 for (;;) {
  is_mine = status.st_uid == 0 || status.st_uid == geteuid();
  if (is_last && gemmepi__mode_lets_others_write(&status))
   return 1;
  is_last = 0;
  length = strlen(path);
  if (length <= 1)
   return 0;
  while (length > 1 && path[length - 1] != '/')
   length--;
  path[length > 1 ? length - 1 : 1] = 0;
  if (stat(path, &status) != 0)
   return 1;
  /* sticky: only the owner of an entry, or of the folder, may rename it */
  if (gemmepi__mode_lets_others_write(&status) && !((status.st_mode & 01000) && is_mine))
   return 1;
 }
}

#endif
/* Text built piece by piece into a buffer of fixed size. */

/* Appending never writes past size; length goes on counting, so that length >= size tells of a cut. */
typedef struct gemmepi__text {
 char *data;
 size_t size;
 size_t length;
} gemmepi__text;

static gemmepi__text gemmepi__text_in(char *data, size_t size) {
 gemmepi__text text;
 text.data = data;
 text.size = data ? size : 0;
 text.length = 0;
 if (text.size != 0)
  data[0] = 0;
 return text;
}

GEMMEPI__PRINTF(2, 3)
static void gemmepi__append(gemmepi__text *text, const char *format, ...) {
 size_t left = text->length < text->size ? text->size - text->length : 0;
 int written;
 va_list arguments;
 va_start(arguments, format);
 written = vsnprintf(left ? text->data + text->length : NULL, left, format, arguments);
 va_end(arguments);
 if (written > 0)
  text->length += (size_t)written;
}

static int gemmepi__text_is_cut(const gemmepi__text *text) {
 return text->length >= text->size;
}
/* One line to the user's log callback or, where there is none and GEMMEPI_LOG asks for it, to stderr. */

typedef struct gemmepi__log {
 gemmepi_log_function function; /* NULL: nobody listens */
 void *user;
 int most; /* no level beyond this one; 0: all */
} gemmepi__log;

static const char *const gemmepi__log_levels[] = {"", "error", "warning", "info", "debug"};

static void gemmepi__log_to_stderr(void *user, gemmepi_log_level level, const char *message) {
 (void)user;
 fprintf(stderr, "gemmepi %s: %s\n", gemmepi__log_levels[level], message);
}

/* The program's callback, else what GEMMEPI_LOG says: error, warning, info or debug. Other values say nothing, and it is not
 looked at in a program that runs with more rights than its user. */
static gemmepi__log gemmepi__choose_log(gemmepi_log_function function, void *user) {
 char value[16];
 gemmepi__log log;
 int level;
 log.function = function;
 log.user = user;
 log.most = 0;
 if (function || !gemmepi__environment("GEMMEPI_LOG", value, sizeof value))
  return log;
 for (level = GEMMEPI_LOG_ERROR; level <= GEMMEPI_LOG_DEBUG; level++)
  if (strcmp(value, gemmepi__log_levels[level]) == 0) {
   log.function = gemmepi__log_to_stderr;
   log.most = level;
  }
 return log;
}

GEMMEPI__PRINTF(3, 4)
static void gemmepi__say(const gemmepi__log *log, gemmepi_log_level level, const char *format, ...) {
 char text[2048], *at;
 va_list arguments;
 if (!log->function || (log->most && (int)level > log->most))
  return;
 va_start(arguments, format);
 vsnprintf(text, sizeof text, format, arguments);
 va_end(arguments);
 for (at = text; *at; at++) /* what compilers say has several lines */
  if (*at == '\n' || *at == '\r')
   *at = ' ';
 log->function(log->user, level, text);
}
/* Host memory through the user's allocator. */

static void *gemmepi__default_alloc(void *user, size_t size) {
 (void)user;
 return malloc(size);
}

static void gemmepi__default_free(void *user, void *pointer) {
 (void)user;
 free(pointer);
}

static gemmepi_allocator gemmepi__default_allocator(void) {
 gemmepi_allocator allocator;
 allocator.alloc = gemmepi__default_alloc;
 allocator.free = gemmepi__default_free;
 allocator.user = NULL;
 return allocator;
}

/* Zeroed memory, or NULL with the sentence noted. */
static void *gemmepi__new(const gemmepi_allocator *allocator, size_t size) {
 void *pointer = allocator->alloc(allocator->user, size ? size : 1);
 if (pointer)
  memset(pointer, 0, size);
 else
  (void)gemmepi__fail(GEMMEPI_OUT_OF_MEMORY, "the allocator gave no %llu bytes of host memory",
    (gemmepi__ull)size);
 return pointer;
}

static void gemmepi__delete(const gemmepi_allocator *allocator, void *pointer) {
 if (pointer)
  allocator->free(allocator->user, pointer);
}
/* Mutexes and conditions, threads of our own, and the few atomic operations that the lock-free paths need. */

#if GEMMEPI__WINDOWS
typedef SRWLOCK gemmepi__mutex;

static int gemmepi__mutex_init(gemmepi__mutex *mutex) {
 InitializeSRWLock(mutex);
 return 1;
}
static void gemmepi__mutex_destroy(gemmepi__mutex *mutex) {
 (void)mutex;
}
static void gemmepi__lock(gemmepi__mutex *mutex) {
 AcquireSRWLockExclusive(mutex);
}
static void gemmepi__unlock(gemmepi__mutex *mutex) {
 ReleaseSRWLockExclusive(mutex);
}

typedef CONDITION_VARIABLE gemmepi__condition;

static int gemmepi__condition_init(gemmepi__condition *condition) {
 InitializeConditionVariable(condition);
 return 1;
}
static void gemmepi__condition_destroy(gemmepi__condition *condition) {
 (void)condition;
}
static void gemmepi__wait(gemmepi__condition *condition, gemmepi__mutex *mutex) {
 SleepConditionVariableSRW(condition, mutex, INFINITE, 0);
}
static void gemmepi__wake_all(gemmepi__condition *condition) {
 WakeAllConditionVariable(condition);
}

typedef HANDLE gemmepi__thread;
#define GEMMEPI__THREAD_BODY(name) static DWORD WINAPI name(void *user)

/* 0 if the system gives no thread. */
static int gemmepi__thread_start(gemmepi__thread *thread, DWORD(WINAPI *body)(void *), void *user) {
 *thread = CreateThread(NULL, 0, body, user, 0, NULL);
 return *thread != NULL;
}
static void gemmepi__thread_join(gemmepi__thread thread) {
 WaitForSingleObject(thread, INFINITE);
 CloseHandle(thread);
}
static int gemmepi__core_count(void) {
 SYSTEM_INFO info;
 GetSystemInfo(&info);
 return (int)info.dwNumberOfProcessors;
}
#else
#include <pthread.h>
#include <unistd.h>
typedef pthread_mutex_t gemmepi__mutex;

static int gemmepi__mutex_init(gemmepi__mutex *mutex) {
 return pthread_mutex_init(mutex, NULL) == 0;
}
static void gemmepi__mutex_destroy(gemmepi__mutex *mutex) {
 pthread_mutex_destroy(mutex);
}
static void gemmepi__lock(gemmepi__mutex *mutex) {
 pthread_mutex_lock(mutex);
}
static void gemmepi__unlock(gemmepi__mutex *mutex) {
 pthread_mutex_unlock(mutex);
}

typedef pthread_cond_t gemmepi__condition;

static int gemmepi__condition_init(gemmepi__condition *condition) {
 return pthread_cond_init(condition, NULL) == 0;
}
static void gemmepi__condition_destroy(gemmepi__condition *condition) {
 pthread_cond_destroy(condition);
}
/* Lets go of the mutex while it waits. May wake up early. */
static void gemmepi__wait(gemmepi__condition *condition, gemmepi__mutex *mutex) {
 pthread_cond_wait(condition, mutex);
}
static void gemmepi__wake_all(gemmepi__condition *condition) {
 pthread_cond_broadcast(condition);
}

typedef pthread_t gemmepi__thread;
#define GEMMEPI__THREAD_BODY(name) static void *name(void *user)

/* 0 if the system gives no thread. */
static int gemmepi__thread_start(gemmepi__thread *thread, void *(*body)(void *), void *user) {
 return pthread_create(thread, NULL, body, user) == 0;
}
static void gemmepi__thread_join(gemmepi__thread thread) {
 pthread_join(thread, NULL);
}
static int gemmepi__core_count(void) {
 long count = sysconf(_SC_NPROCESSORS_ONLN);
 return count < 1 ? 1 : count > 1024 ? 1024 : (int)count;
}
#endif

/* A pointer that one thread publishes under a lock and others follow without one. */
typedef void *gemmepi__atomic_pointer;

#if defined(_MSC_VER) && !defined(__clang__)
static void *gemmepi__load_pointer(gemmepi__atomic_pointer const *place) {
 void *pointer = *(void *const volatile *)place;
 MemoryBarrier();
 return pointer;
}
static void gemmepi__publish_pointer(gemmepi__atomic_pointer *place, void *pointer) {
 InterlockedExchangePointer(place, pointer);
}
static long gemmepi__add(long *counter, long amount) {
 return InterlockedExchangeAdd((volatile LONG *)counter, amount) + amount;
}
#else
static void *gemmepi__load_pointer(gemmepi__atomic_pointer const *place) {
 return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}
static void gemmepi__publish_pointer(gemmepi__atomic_pointer *place, void *pointer) {
 __atomic_store_n(place, pointer, __ATOMIC_RELEASE);
}
static long gemmepi__add(long *counter, long amount) {
 return __atomic_add_fetch(counter, amount, __ATOMIC_ACQ_REL);
}
#endif

/* How often this process is the child of a fork() since gemmepi__watch_forks was first called. A child has none of its
 parent's other threads, so a lock that one of them held stays held: what belongs to an earlier count must not be used.
 Counting costs a run nothing, where getpid is a system call. */
static long gemmepi__forks;

#if GEMMEPI__WINDOWS
static int gemmepi__watch_forks(void) {
 return 1;
}
#else
static gemmepi__atomic_pointer gemmepi__forks_are_watched;

static void gemmepi__count_fork(void) {
 gemmepi__forks++; /* no other thread is there yet */
}

/* 0 if the system has no memory for it. Without a lock: threads that call it at once count twice, which does not matter. */
static int gemmepi__watch_forks(void) {
 if (gemmepi__load_pointer(&gemmepi__forks_are_watched))
  return 1;
 if (pthread_atfork(NULL, NULL, gemmepi__count_fork) != 0)
  return 0;
 gemmepi__publish_pointer(&gemmepi__forks_are_watched, &gemmepi__forks);
 return 1;
}
#endif

static long gemmepi__threads_numbered; /* by this file: with GEMMEPI_STATIC each has its own numbers */

/* A number that this file gave no other thread of the process. */
static uintptr_t gemmepi__thread_number(void) {
 static GEMMEPI__THREAD_LOCAL long mine;
 if (!mine)
  mine = gemmepi__add(&gemmepi__threads_numbered, 1);
 return (uintptr_t)mine;
}
/* SHA-256, for names and checksums on disk, and a hash for tables in memory. */

/* >>sha-256, as FIPS 180-4 defines it: https://doi.org/10.6028/NIST.FIPS.180-4 */

#define GEMMEPI__SHA256_SIZE     32
#define GEMMEPI__SHA256_HEX_SIZE 65 /* with the final zero */

typedef struct gemmepi__sha256 {
 uint32_t state[8];
 unsigned char block[64];
 uint64_t length; /* bytes taken so far; the last length % 64 of them wait in block */
} gemmepi__sha256;

static void gemmepi__sha256_init(gemmepi__sha256 *sha) {
 static const uint32_t start[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
    0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
 memcpy(sha->state, start, sizeof start);
 sha->length = 0;
}

static uint32_t gemmepi__rotate_right(uint32_t x, unsigned bits) {
 return x >> bits | x << (32 - bits);
}

static void gemmepi__sha256_block(uint32_t state[8], const unsigned char *block) {
 static const uint32_t constants[64] = {
  0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u,
  0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu,
  0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu,
  0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u,
  0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
  0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
  0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,
  0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
  0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u,
  0xc67178f2u};
 uint32_t w[64];
 uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
    h = state[7];
 int i;
 for (i = 0; i < 16; i++)
  w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
    (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
 for (; i < 64; i++) {
  uint32_t x = w[i - 15], y = w[i - 2];
  w[i] = w[i - 16] + (gemmepi__rotate_right(x, 7) ^ gemmepi__rotate_right(x, 18) ^ x >> 3) + w[i - 7] +
    (gemmepi__rotate_right(y, 17) ^ gemmepi__rotate_right(y, 19) ^ y >> 10);
 }
 for (i = 0; i < 64; i++) {
  uint32_t t1 =
   h + constants[i] + w[i] + ((e & f) ^ (~e & g)) +
   (gemmepi__rotate_right(e, 6) ^ gemmepi__rotate_right(e, 11) ^ gemmepi__rotate_right(e, 25));
  uint32_t t2 =
   ((a & b) ^ (a & c) ^ (b & c)) +
   (gemmepi__rotate_right(a, 2) ^ gemmepi__rotate_right(a, 13) ^ gemmepi__rotate_right(a, 22));
  h = g;
  g = f;
  f = e;
  e = d + t1;
  d = c;
  c = b;
  b = a;
  a = t1 + t2;
 }
 state[0] += a;
 state[1] += b;
 state[2] += c;
 state[3] += d;
 state[4] += e;
 state[5] += f;
 state[6] += g;
 state[7] += h;
}

static void gemmepi__sha256_update(gemmepi__sha256 *sha, const void *data, size_t size) {
 const unsigned char *bytes = (const unsigned char *)data;
 while (size != 0) {
  size_t waiting = (size_t)(sha->length % 64);
  size_t take = 64 - waiting < size ? 64 - waiting : size;
  if (take == 64) { /* a whole block, from where it lies */
   gemmepi__sha256_block(sha->state, bytes);
   sha->length += 64;
   bytes += 64;
   size -= 64;
   continue;
  }
  memcpy(sha->block + waiting, bytes, take);
  sha->length += take;
  bytes += take;
  size -= take;
  if (waiting + take == 64)
   gemmepi__sha256_block(sha->state, sha->block);
 }
}

static void gemmepi__sha256_final(gemmepi__sha256 *sha, unsigned char digest[GEMMEPI__SHA256_SIZE]) {
 static const unsigned char padding[64] = {0x80};
 unsigned char bits[8];
 uint64_t length = sha->length * 8;
 int i;
 for (i = 0; i < 8; i++)
  bits[i] = (unsigned char)(length >> (56 - 8 * i));
 gemmepi__sha256_update(sha, padding, 1 + (size_t)((119 - sha->length % 64) % 64));
 gemmepi__sha256_update(sha, bits, sizeof bits);
 for (i = 0; i < GEMMEPI__SHA256_SIZE; i++)
  digest[i] = (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

static void gemmepi__sha256_of(const void *data, size_t size, unsigned char digest[GEMMEPI__SHA256_SIZE]) {
 gemmepi__sha256 sha;
 gemmepi__sha256_init(&sha);
 gemmepi__sha256_update(&sha, data, size);
 gemmepi__sha256_final(&sha, digest);
}

static void gemmepi__sha256_hex(const unsigned char digest[GEMMEPI__SHA256_SIZE],
    char text[GEMMEPI__SHA256_HEX_SIZE]) {
 int i;
 for (i = 0; i < GEMMEPI__SHA256_SIZE; i++) {
  text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
  text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
 }
 text[2 * GEMMEPI__SHA256_SIZE] = 0;
}

/* >>for tables: eight bytes at a time, each word multiplied and its upper half folded into the lower, which chooses the
 bucket */

#define GEMMEPI__HASH_START 0xcbf29ce484222325u

static uint64_t gemmepi__hash_word(uint64_t hash, uint64_t word) {
 hash = (hash ^ word) * 0x9e3779b97f4a7c15u; /* the golden ratio's digits, as Knuth proposes */
 return hash ^ hash >> 32;
}

static uint64_t gemmepi__hash(const void *data, size_t size) {
 const unsigned char *bytes = (const unsigned char *)data;
 uint64_t hash = GEMMEPI__HASH_START, word;
 for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
  memcpy(&word, bytes, sizeof word);
  hash = gemmepi__hash_word(hash, word);
 }
 for (; size > 0; size--, bytes++)
  hash = gemmepi__hash_word(hash, *bytes);
 return hash;
}
/* A table from keys of any bytes to pointers. It copies the keys and never looks at what the pointers point to. It
 takes no lock: the caller does. */

/* The key's bytes follow the entry in the same block of memory. */
typedef struct gemmepi__map_entry {
 struct gemmepi__map_entry *next; /* in the same bucket */
 uint64_t hash;
 void *value;
 size_t key_size;
} gemmepi__map_entry;

typedef struct gemmepi__map {
 gemmepi_allocator allocator;
 gemmepi__map_entry **buckets;
 size_t bucket_count; /* a power of two, or 0 while nothing was inserted */
 size_t count;
} gemmepi__map;

static void gemmepi__map_init(gemmepi__map *map, const gemmepi_allocator *allocator) {
 memset(map, 0, sizeof *map);
 map->allocator = *allocator;
}

static const void *gemmepi__map_key(const gemmepi__map_entry *entry) {
 return entry + 1;
}

/* The place that holds the pointer to the key's entry, or to the NULL that ends its bucket. There are buckets. */
static gemmepi__map_entry **gemmepi__map_place(const gemmepi__map *map, uint64_t hash, const void *key,
    size_t key_size) {
 gemmepi__map_entry **place = &map->buckets[hash & (map->bucket_count - 1)];
 while (*place && !((*place)->hash == hash && (*place)->key_size == key_size &&
    (key_size == 0 || memcmp(gemmepi__map_key(*place), key, key_size) == 0)))
  place = &(*place)->next;
 return place;
}

/* The key's entry, whose value may be read and set, or NULL. */
static gemmepi__map_entry *gemmepi__map_find_entry(const gemmepi__map *map, const void *key,
    size_t key_size) {
 if (map->count == 0)
  return NULL;
 return *gemmepi__map_place(map, gemmepi__hash(key, key_size), key, key_size);
}

/* The key's value, or NULL. */
static void *gemmepi__map_find(const gemmepi__map *map, const void *key, size_t key_size) {
 gemmepi__map_entry *entry = gemmepi__map_find_entry(map, key, key_size);
 return entry ? entry->value : NULL;
}

static int gemmepi__map_grow(gemmepi__map *map) {
 size_t count = map->bucket_count ? 2 * map->bucket_count : 16, i;
 gemmepi__map_entry **buckets =
  (gemmepi__map_entry **)gemmepi__new(&map->allocator, count * sizeof *buckets);
 if (!buckets)
  return 0;
 for (i = 0; i < map->bucket_count; i++) {
  while (map->buckets[i]) {
   gemmepi__map_entry *entry = map->buckets[i];
   gemmepi__map_entry **place = &buckets[entry->hash & (count - 1)];
   map->buckets[i] = entry->next;
   entry->next = *place;
   *place = entry;
  }
 }
 gemmepi__delete(&map->allocator, map->buckets);
 map->buckets = buckets;
 map->bucket_count = count;
 return 1;
}

/* Gives the key this value, in place of the one it may have. 0 if memory is exhausted: nothing changed then but the
 noted sentence. */
static int gemmepi__map_insert(gemmepi__map *map, const void *key, size_t key_size, void *value) {
 uint64_t hash = gemmepi__hash(key, key_size);
 gemmepi__map_entry *entry = gemmepi__map_find_entry(map, key, key_size);
 gemmepi__map_entry **bucket;
 if (entry) {
  entry->value = value;
  return 1;
 }
 if (map->count == map->bucket_count && !gemmepi__map_grow(map))
  return 0;
 entry = (gemmepi__map_entry *)gemmepi__new(&map->allocator, sizeof *entry + key_size);
 if (!entry)
  return 0;
 bucket = &map->buckets[hash & (map->bucket_count - 1)];
 entry->next = *bucket;
 entry->hash = hash;
 entry->value = value;
 entry->key_size = key_size;
 if (key_size != 0)
  memcpy(entry + 1, key, key_size);
 *bucket = entry;
 map->count++;
 return 1;
}

/* Forgets the key and returns the value it had, or NULL. */
static void *gemmepi__map_remove(gemmepi__map *map, const void *key, size_t key_size) {
 gemmepi__map_entry **place, *entry;
 void *value;
 if (map->count == 0)
  return NULL;
 place = gemmepi__map_place(map, gemmepi__hash(key, key_size), key, key_size);
 entry = *place;
 if (!entry)
  return NULL;
 value = entry->value;
 *place = entry->next;
 gemmepi__delete(&map->allocator, entry);
 map->count--;
 return value;
}

/* Calls visit for every entry, in no order. It may set the entry's value, but neither insert nor remove. */
static void gemmepi__map_each(const gemmepi__map *map, void (*visit)(void *user, gemmepi__map_entry *entry),
    void *user) {
 gemmepi__map_entry *entry;
 size_t i;
 for (i = 0; i < map->bucket_count; i++)
  for (entry = map->buckets[i]; entry; entry = entry->next)
   visit(user, entry);
}

/* Forgets everything; the map is empty afterwards and may be used again. What the values point to is the caller's,
 who frees it with gemmepi__map_each before. */
static void gemmepi__map_free(gemmepi__map *map) {
 size_t i;
 for (i = 0; i < map->bucket_count; i++) {
  while (map->buckets[i]) {
   gemmepi__map_entry *entry = map->buckets[i];
   map->buckets[i] = entry->next;
   gemmepi__delete(&map->allocator, entry);
  }
 }
 gemmepi__delete(&map->allocator, map->buckets);
 map->buckets = NULL;
 map->bucket_count = 0;
 map->count = 0;
}
/* Files and folders. A folder is opened first, and what is in it is then reached through the opened folder: so what
 was checked is what is used, whatever happens to the path meanwhile. (On Windows an opened folder is its path.)

 Functions that can fail return 0, or the system's error code (errno; GetLastError on Windows). */

#if !GEMMEPI__WINDOWS
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#endif

typedef struct gemmepi__folder {
 const char *path; /* borrowed */
#if !GEMMEPI__WINDOWS
 int descriptor;
#endif
} gemmepi__folder;

typedef struct gemmepi__file_info {
 int is_regular;
 uint64_t size;
 int64_t modified; /* seconds since 1970 */
 long modified_nanoseconds;
} gemmepi__file_info;

/* One stretch of bytes of a file to be written. */
typedef struct gemmepi__file_piece {
 const void *data;
 size_t size;
} gemmepi__file_piece;

#if GEMMEPI__WINDOWS

#define GEMMEPI__FILE_NO_MEMORY ((int)ERROR_NOT_ENOUGH_MEMORY)
#define GEMMEPI__FILE_TOO_LARGE ((int)ERROR_FILE_TOO_LARGE)
#define GEMMEPI__FILE_LONG_NAME ((int)ERROR_FILENAME_EXCED_RANGE)

static int gemmepi__file_is_missing(int code) {
 return code == (int)ERROR_FILE_NOT_FOUND || code == (int)ERROR_PATH_NOT_FOUND;
}

static int gemmepi__file_exists_already(int code) {
 return code == (int)ERROR_FILE_EXISTS || code == (int)ERROR_ALREADY_EXISTS;
}

static void gemmepi__file_error(gemmepi__text *text, int code) {
 gemmepi__append(text, "Windows error %d", code);
}

static int gemmepi__current_folder(char *path, size_t size) {
 DWORD length = GetCurrentDirectoryA((DWORD)size, path);
 return length == 0 ? (int)GetLastError() : length >= size ? GEMMEPI__FILE_LONG_NAME : 0;
}

static int gemmepi__make_one_folder(const char *path) {
 return CreateDirectoryA(path, NULL) ? 0 : (int)GetLastError();
}

static int gemmepi__folder_open(gemmepi__folder *folder, const char *path) {
 DWORD attributes = GetFileAttributesA(path);
 folder->path = path;
 if (attributes == INVALID_FILE_ATTRIBUTES)
  return (int)GetLastError();
 return attributes & FILE_ATTRIBUTE_DIRECTORY ? 0 : (int)ERROR_DIRECTORY;
}

static void gemmepi__folder_close(gemmepi__folder *folder) {
 folder->path = NULL;
}

/* The user's folders are private by their access lists, which are not examined. */
static int gemmepi__folder_is_private(const gemmepi__folder *folder, gemmepi__text *why) {
 (void)folder;
 (void)why;
 return 1;
}

static int gemmepi__path_join(char path[GEMMEPI__PATH_SIZE], const gemmepi__folder *folder,
    const char *name) {
 gemmepi__text text = gemmepi__text_in(path, GEMMEPI__PATH_SIZE);
 gemmepi__append(&text, "%s\\%s", folder->path, name);
 return gemmepi__text_is_cut(&text) ? GEMMEPI__FILE_LONG_NAME : 0;
}

static int gemmepi__folder_list(const gemmepi__folder *folder, void (*visit)(void *user, const char *name),
    void *user) {
 char pattern[GEMMEPI__PATH_SIZE];
 WIN32_FIND_DATAA found;
 HANDLE search;
 int code = gemmepi__path_join(pattern, folder, "*");
 if (code)
  return code;
 search = FindFirstFileA(pattern, &found);
 if (search == INVALID_HANDLE_VALUE)
  return (int)GetLastError();
 do {
  if (strcmp(found.cFileName, ".") != 0 && strcmp(found.cFileName, "..") != 0)
   visit(user, found.cFileName);
 } while (FindNextFileA(search, &found));
 FindClose(search);
 return 0;
}

static int64_t gemmepi__file_seconds(FILETIME time, long *nanoseconds) {
 /* in units of 100 ns since 1601, which was 11644473600 seconds before 1970 */
 uint64_t units = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
 *nanoseconds = (long)(units % 10000000u) * 100;
 return (int64_t)(units / 10000000u) - 11644473600;
}

static int64_t gemmepi__file_now(void) {
 FILETIME now;
 long nanoseconds;
 GetSystemTimeAsFileTime(&now);
 return gemmepi__file_seconds(now, &nanoseconds);
}

static int gemmepi__file_get_info(const gemmepi__folder *folder, const char *name, gemmepi__file_info *info) {
 char path[GEMMEPI__PATH_SIZE];
 WIN32_FILE_ATTRIBUTE_DATA data;
 int code = gemmepi__path_join(path, folder, name);
 if (code)
  return code;
 if (!GetFileAttributesExA(path, GetFileExInfoStandard, &data))
  return (int)GetLastError();
 info->is_regular = !(data.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT));
 info->size = (uint64_t)data.nFileSizeHigh << 32 | data.nFileSizeLow;
 info->modified = gemmepi__file_seconds(data.ftLastWriteTime, &info->modified_nanoseconds);
 return 0;
}

static int gemmepi__file_touch(const gemmepi__folder *folder, const char *name) {
 char path[GEMMEPI__PATH_SIZE];
 FILETIME now;
 HANDLE file;
 int code = gemmepi__path_join(path, folder, name);
 if (code)
  return code;
 file = CreateFileA(path, FILE_WRITE_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
    NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
 if (file == INVALID_HANDLE_VALUE)
  return (int)GetLastError();
 GetSystemTimeAsFileTime(&now);
 code = SetFileTime(file, NULL, NULL, &now) ? 0 : (int)GetLastError();
 CloseHandle(file);
 return code;
}

static int gemmepi__file_remove(const gemmepi__folder *folder, const char *name) {
 char path[GEMMEPI__PATH_SIZE];
 int code = gemmepi__path_join(path, folder, name);
 if (code)
  return code;
 return DeleteFileA(path) ? 0 : (int)GetLastError();
}

static int gemmepi__file_rename(const gemmepi__folder *folder, const char *from, const char *to) {
 char from_path[GEMMEPI__PATH_SIZE], to_path[GEMMEPI__PATH_SIZE];
 int attempt, code = gemmepi__path_join(from_path, folder, from);
 if (!code)
  code = gemmepi__path_join(to_path, folder, to);
 if (code)
  return code;
 /* a file that someone has open, or replaces at this moment, cannot be replaced: readers take milliseconds */
 for (attempt = 0; attempt < 50; attempt++) {
  code = MoveFileExA(from_path, to_path, MOVEFILE_REPLACE_EXISTING) ? 0 : (int)GetLastError();
  if (code != (int)ERROR_ACCESS_DENIED && code != (int)ERROR_SHARING_VIOLATION)
   break;
  Sleep(2);
 }
 return code;
}

static unsigned long gemmepi__process_id(void) {
 return GetCurrentProcessId();
}

typedef HANDLE gemmepi__file;

static int gemmepi__file_open(const gemmepi__folder *folder, const char *name, gemmepi__file *file,
    uint64_t *size) {
 char path[GEMMEPI__PATH_SIZE];
 LARGE_INTEGER length;
 int code = gemmepi__path_join(path, folder, name);
 if (code)
  return code;
 *file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
    OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
 if (*file == INVALID_HANDLE_VALUE)
  return (int)GetLastError();
 if (!GetFileSizeEx(*file, &length)) {
  code = (int)GetLastError();
  CloseHandle(*file);
  return code;
 }
 *size = (uint64_t)length.QuadPart;
 return 0;
}

static int gemmepi__file_create(const gemmepi__folder *folder, const char *name, gemmepi__file *file) {
 char path[GEMMEPI__PATH_SIZE];
 int code = gemmepi__path_join(path, folder, name);
 if (code)
  return code;
 *file = CreateFileA(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
 return *file == INVALID_HANDLE_VALUE ? (int)GetLastError() : 0;
}

static int gemmepi__file_close(gemmepi__file file) {
 return CloseHandle(file) ? 0 : (int)GetLastError();
}

/* Reads or writes at most size bytes, and tells how many. */
static int gemmepi__file_read_some(gemmepi__file file, void *data, size_t size, size_t *done) {
 DWORD got = 0;
 int code =
  ReadFile(file, data, size < 1u << 30 ? (DWORD)size : 1u << 30, &got, NULL) ? 0 : (int)GetLastError();
 *done = got;
 return code;
}

static int gemmepi__file_write_some(gemmepi__file file, const void *data, size_t size, size_t *done) {
 DWORD put = 0;
 int code =
  WriteFile(file, data, size < 1u << 30 ? (DWORD)size : 1u << 30, &put, NULL) ? 0 : (int)GetLastError();
 *done = put;
 return code;
}

static int gemmepi__file_may_have(uint64_t size) {
 (void)size;
 return 1;
}

/* Appends the folder where programs of this user keep what they can make again. 0 if the user has none. */
static int gemmepi__user_cache_folder(gemmepi__text *text) {
 char path[GEMMEPI__PATH_SIZE];
 DWORD length = GetEnvironmentVariableA("LOCALAPPDATA", path, sizeof path);
 if (length == 0 || length >= sizeof path || !gemmepi__is_absolute(path))
  return 0;
 gemmepi__append(text, "%s", path);
 return 1;
}

#else

#define GEMMEPI__FILE_NO_MEMORY ENOMEM
#define GEMMEPI__FILE_TOO_LARGE EFBIG
#define GEMMEPI__FILE_LONG_NAME ENAMETOOLONG

/* What strict C99 hides. glibc has the numbers under names of its own in any mode; the last resort is Linux's own
 numbers, which arm and powerpc keep apart from the rest. */
#if defined(O_NOFOLLOW) && defined(O_DIRECTORY) && defined(O_CLOEXEC)
#define GEMMEPI__O_NOFOLLOW  O_NOFOLLOW
#define GEMMEPI__O_DIRECTORY O_DIRECTORY
#define GEMMEPI__O_CLOEXEC   O_CLOEXEC
#elif defined(__O_NOFOLLOW) && defined(__O_DIRECTORY) && defined(__O_CLOEXEC)
#define GEMMEPI__O_NOFOLLOW  __O_NOFOLLOW
#define GEMMEPI__O_DIRECTORY __O_DIRECTORY
#define GEMMEPI__O_CLOEXEC   __O_CLOEXEC
#elif defined(__linux__) && (defined(__arm__) || defined(__aarch64__) || defined(__powerpc__))
#define GEMMEPI__O_NOFOLLOW  0100000
#define GEMMEPI__O_DIRECTORY 040000
#define GEMMEPI__O_CLOEXEC   02000000
#elif defined(__linux__) && (defined(__i386__) || defined(__x86_64__) || defined(__riscv))
#define GEMMEPI__O_NOFOLLOW  0400000
#define GEMMEPI__O_DIRECTORY 0200000
#define GEMMEPI__O_CLOEXEC   02000000
#else
#error "gemmepi: the numbers of O_NOFOLLOW, O_DIRECTORY and O_CLOEXEC are not known for this system"
#endif

/* These are functions in every glibc since 2.6; fstatat and lstat are not before 2.33, so they are done without. */
#if GEMMEPI__HEADERS_HIDE
extern int gemmepi__openat(int folder, const char *name, int flags, ...) GEMMEPI__SYSTEM_NAME("openat");
extern int gemmepi__renameat(int from_folder, const char *from, int to_folder, const char *to)
 GEMMEPI__SYSTEM_NAME("renameat");
extern int gemmepi__unlinkat(int folder, const char *name, int flags) GEMMEPI__SYSTEM_NAME("unlinkat");
extern int gemmepi__utimensat(int folder, const char *name, const void *times, int flags)
 GEMMEPI__SYSTEM_NAME("utimensat");
extern DIR *gemmepi__fdopendir(int descriptor) GEMMEPI__SYSTEM_NAME("fdopendir");
#else
#define gemmepi__openat    openat
#define gemmepi__renameat  renameat
#define gemmepi__unlinkat  unlinkat
#define gemmepi__utimensat utimensat
#define gemmepi__fdopendir fdopendir
#endif

static int gemmepi__file_is_missing(int code) {
 return code == ENOENT;
}

static int gemmepi__file_exists_already(int code) {
 return code == EEXIST;
}

static void gemmepi__file_error(gemmepi__text *text, int code) {
 gemmepi__append(text, "%s", strerror(code));
}

static int gemmepi__current_folder(char *path, size_t size) {
 return getcwd(path, size) ? 0 : errno;
}

static int gemmepi__make_one_folder(const char *path) {
 return mkdir(path, 0700) == 0 ? 0 : errno;
}

static int gemmepi__folder_open(gemmepi__folder *folder, const char *path) {
 folder->path = path;
 folder->descriptor = open(path, O_RDONLY | GEMMEPI__O_DIRECTORY | GEMMEPI__O_CLOEXEC);
 return folder->descriptor < 0 ? errno : 0;
}

static void gemmepi__folder_close(gemmepi__folder *folder) {
 close(folder->descriptor);
 folder->path = NULL;
 folder->descriptor = -1;
}

/* 1 if this user owns the folder and nobody else can write to it, else 0 with the reason and the mend appended. It
 is the opened folder that counts, not the path: a symbolic link may lead here, and whoever can change the link
 can only make it lead to another private folder of this user. */
static int gemmepi__folder_is_private(const gemmepi__folder *folder, gemmepi__text *why) {
 struct stat status;
 if (fstat(folder->descriptor, &status) != 0) {
  gemmepi__file_error(why, errno);
 } else if (status.st_uid != geteuid()) {
  gemmepi__append(
   why, "user %lu owns it, and this program runs as user %lu: choose a folder of that user's own",
   (unsigned long)status.st_uid, (unsigned long)geteuid());
 } else if (status.st_mode & 022) {
  gemmepi__append(
   why,
   "others can write to it (its mode is %03lo): take that from them with 'chmod go-w', after "
   "removing what they may have put there",
   (unsigned long)status.st_mode & 0777);
 } else {
  return 1;
 }
 return 0;
}

static int gemmepi__folder_list(const gemmepi__folder *folder, void (*visit)(void *user, const char *name),
    void *user) {
 struct dirent *entry;
 DIR *listing;
 int descriptor =
  gemmepi__openat(folder->descriptor, ".", O_RDONLY | GEMMEPI__O_DIRECTORY | GEMMEPI__O_CLOEXEC);
 if (descriptor < 0)
  return errno;
 listing = gemmepi__fdopendir(descriptor);
 if (!listing) {
  int code = errno;
  close(descriptor);
  return code;
 }
 while ((entry = readdir(listing)) != NULL)
  if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
   visit(user, entry->d_name);
 closedir(listing);
 return 0;
}

static int64_t gemmepi__file_now(void) {
 return (int64_t)time(NULL);
}

/* By path, the one function here that is: it is for sizes and ages, on which no safety rests. */
static int gemmepi__file_get_info(const gemmepi__folder *folder, const char *name, gemmepi__file_info *info) {
 char path[GEMMEPI__PATH_SIZE];
 struct stat status;
 gemmepi__text text = gemmepi__text_in(path, sizeof path);
 gemmepi__append(&text, "%s/%s", folder->path, name);
 if (gemmepi__text_is_cut(&text))
  return GEMMEPI__FILE_LONG_NAME;
 if (stat(path, &status) != 0)
  return errno;
 info->is_regular = S_ISREG(status.st_mode);
 info->size = (uint64_t)status.st_size;
 info->modified = (int64_t)status.st_mtime;
#if defined(st_mtime) && defined(__linux__)
 info->modified_nanoseconds = (long)status.st_mtim.tv_nsec;
#elif defined(__GLIBC__)
 info->modified_nanoseconds = (long)status.st_mtimensec;
#else
 info->modified_nanoseconds = 0;
#endif
 return 0;
}

static int gemmepi__file_touch(const gemmepi__folder *folder, const char *name) {
 return gemmepi__utimensat(folder->descriptor, name, NULL, 0) == 0 ? 0 : errno;
}

static int gemmepi__file_remove(const gemmepi__folder *folder, const char *name) {
 return gemmepi__unlinkat(folder->descriptor, name, 0) == 0 ? 0 : errno;
}

static int gemmepi__file_rename(const gemmepi__folder *folder, const char *from, const char *to) {
 return gemmepi__renameat(folder->descriptor, from, folder->descriptor, to) == 0 ? 0 : errno;
}

static unsigned long gemmepi__process_id(void) {
 return (unsigned long)getpid();
}

typedef int gemmepi__file;

/* O_NONBLOCK, because opening a pipe would wait for its other end. */
static int gemmepi__file_open(const gemmepi__folder *folder, const char *name, gemmepi__file *file,
    uint64_t *size) {
 struct stat status;
 int code = 0;
 *file = gemmepi__openat(folder->descriptor, name,
    O_RDONLY | O_NONBLOCK | GEMMEPI__O_NOFOLLOW | GEMMEPI__O_CLOEXEC);
 if (*file < 0)
  return errno;
 if (fstat(*file, &status) != 0)
  code = errno;
 else if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022))
  code = EPERM;
 if (code) {
  close(*file);
  return code;
 }
 *size = (uint64_t)status.st_size;
 return 0;
}

static int gemmepi__file_create(const gemmepi__folder *folder, const char *name, gemmepi__file *file) {
 *file = gemmepi__openat(folder->descriptor, name,
    O_WRONLY | O_CREAT | O_EXCL | GEMMEPI__O_NOFOLLOW | GEMMEPI__O_CLOEXEC, 0600);
 return *file < 0 ? errno : 0;
}

static int gemmepi__file_close(gemmepi__file file) {
 return close(file) == 0 ? 0 : errno;
}

/* Reads or writes at most size bytes, and tells how many. */
static int gemmepi__file_read_some(gemmepi__file file, void *data, size_t size, size_t *done) {
 ssize_t got;
 do
  got = read(file, data, size < 1u << 30 ? size : 1u << 30);
 while (got < 0 && errno == EINTR);
 *done = got > 0 ? (size_t)got : 0;
 return got < 0 ? errno : 0;
}

static int gemmepi__file_write_some(gemmepi__file file, const void *data, size_t size, size_t *done) {
 ssize_t put;
 do
  put = write(file, data, size < 1u << 30 ? size : 1u << 30);
 while (put < 0 && errno == EINTR);
 *done = put > 0 ? (size_t)put : 0;
 return put < 0 ? errno : put == 0 ? ENOSPC : 0;
}

/* Whether this process may make a file so large: a write beyond its limit sends it SIGXFSZ, which ends it. */
static int gemmepi__file_may_have(uint64_t size) {
 struct rlimit limit;
 return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
   size <= (uint64_t)limit.rlim_cur;
}

/* Appends the folder where programs of this user keep what they can make again, as the XDG base directory
 specification finds it. 0 if the user has none. */
static int gemmepi__user_cache_folder(gemmepi__text *text) {
 const char *cache = gemmepi__secure_getenv("XDG_CACHE_HOME"); /* code is loaded from there */
 const char *home = gemmepi__secure_getenv("HOME");
 if (cache && gemmepi__is_absolute(cache))
  gemmepi__append(text, "%s", cache);
 else if (home && gemmepi__is_absolute(home))
  gemmepi__append(text, "%s/.cache", home);
 else
  return 0;
 return 1;
}

#endif

/* Makes a folder that only this user can enter, and its parents likewise where they are missing. One that exists is
 left as it is. */
static int gemmepi__folder_make(const char *path) {
 char parent[GEMMEPI__PATH_SIZE];
 size_t length = strlen(path), i;
 int code;
 if (length >= sizeof parent)
  return GEMMEPI__FILE_LONG_NAME;
 /* what becomes of the parents does not matter: if one is missing in the end, the last step fails */
 for (i = 1; i < length; i++) {
  if (gemmepi__is_slash(path[i])) {
   memcpy(parent, path, i);
   parent[i] = 0;
   gemmepi__make_one_folder(parent);
  }
 }
 code = gemmepi__make_one_folder(path);
 return gemmepi__file_exists_already(code) ? 0 : code;
}

/* Reads a whole file of at most `most` bytes. It must be a regular file (not a link to one) that this user owns and
 nobody else can write to. *data is from the allocator and the caller's to free, not NULL even if *size is 0. A
 file that shrinks meanwhile gives what it still had. */
static int gemmepi__file_read(const gemmepi__folder *folder, const char *name,
    const gemmepi_allocator *allocator, size_t most, unsigned char **data,
    size_t *size) {
 gemmepi__file file;
 uint64_t length = 0;
 unsigned char *bytes = NULL;
 size_t have = 0, step = 1;
 int code = gemmepi__file_open(folder, name, &file, &length);
 if (code)
  return code;
 if (length > most)
  code = GEMMEPI__FILE_TOO_LARGE;
 if (!code) {
  /* not gemmepi__new: that notes a failure, and here none may be noted that the caller recovers from */
  bytes = (unsigned char *)allocator->alloc(allocator->user, length ? (size_t)length : 1);
  if (!bytes)
   code = GEMMEPI__FILE_NO_MEMORY;
 }
 while (!code && step != 0 && have < length) {
  code = gemmepi__file_read_some(file, bytes + have, (size_t)length - have, &step);
  have += step;
 }
 gemmepi__file_close(file);
 if (code) {
  gemmepi__delete(allocator, bytes);
  return code;
 }
 *data = bytes;
 *size = have;
 return 0;
}

/* Writes a new file, one that nobody else can read. What a failing call wrote is gone again, unless the name was
 taken. */
static int gemmepi__file_write_new(const gemmepi__folder *folder, const char *name,
    const gemmepi__file_piece *pieces, int count) {
 gemmepi__file file;
 uint64_t size = 0;
 int i, close_code, code;
 for (i = 0; i < count; i++)
  size += pieces[i].size;
 if (!gemmepi__file_may_have(size))
  return GEMMEPI__FILE_TOO_LARGE;
 code = gemmepi__file_create(folder, name, &file);
 if (code)
  return code;
 for (i = 0; i < count && !code; i++) {
  const unsigned char *bytes = (const unsigned char *)pieces[i].data;
  size_t have = 0, step;
  while (!code && have < pieces[i].size) {
   code = gemmepi__file_write_some(file, bytes + have, pieces[i].size - have, &step);
   have += step;
  }
 }
 close_code = gemmepi__file_close(file); /* network file systems tell of a full disk only here */
 if (!code)
  code = close_code;
 if (code)
  gemmepi__file_remove(folder, name);
 return code;
}

static long gemmepi__file_counter; /* of files written aside by this process */

/* Puts a whole file in place of the one of that name, if there is one: it is written aside, as NAME.PID-COUNT.tmp, and
 renamed, so that nobody ever opens half of it. Not flushed to the disk: after a crash of the machine it may be
 torn, so what reads it must check it. */
static int gemmepi__file_store(const gemmepi__folder *folder, const char *name,
    const gemmepi__file_piece *pieces, int count) {
 char aside[512];
 int code = 0, attempt;
 /* other machines that share the folder, and containers, have processes with the same id */
 for (attempt = 0; attempt < 100; attempt++) {
  gemmepi__text text = gemmepi__text_in(aside, sizeof aside);
  gemmepi__append(&text, "%s.%lu-%lu.tmp", name, gemmepi__process_id(),
    (unsigned long)gemmepi__add(&gemmepi__file_counter, 1));
  if (gemmepi__text_is_cut(&text))
   return GEMMEPI__FILE_LONG_NAME;
  code = gemmepi__file_write_new(folder, aside, pieces, count);
  if (!gemmepi__file_exists_already(code))
   break;
 }
 if (!code) {
  code = gemmepi__file_rename(folder, aside, name);
  if (code)
   gemmepi__file_remove(folder, aside);
 }
 return code;
}

/* The length of NAME if this is what gemmepi__file_store calls a file while it writes NAME, else 0. */
static size_t gemmepi__file_aside_stem(const char *name) {
 static const char digits[] = "0123456789";
 const char *end = name + strlen(name), *dot = end, *counter;
 size_t length;
 if (end - name < 4 || strcmp(end - 4, ".tmp") != 0)
  return 0;
 for (dot = end - 5; dot > name && *dot != '.'; dot--) {
 }
 if (dot <= name)
  return 0;
 length = strspn(dot + 1, digits);
 if (length == 0 || dot[1 + length] != '-')
  return 0;
 counter = dot + 2 + length;
 length = strspn(counter, digits);
 return length != 0 && counter + length == end - 4 ? (size_t)(dot - name) : 0;
}
/* Libraries opened while the program runs. */

#if !GEMMEPI__WINDOWS
#include <dlfcn.h>
#endif

#if GEMMEPI__WINDOWS
#define GEMMEPI__SLASH          "\\"
#define GEMMEPI__LIST_SEPARATOR ';'
#else
#define GEMMEPI__SLASH          "/"
#define GEMMEPI__LIST_SEPARATOR ':'

#if GEMMEPI__HEADERS_HIDE
typedef struct gemmepi__dl_info { /* Dl_info */
 const char *file;
 void *base;
 const char *symbol;
 void *address;
} gemmepi__dl_info;

#define GEMMEPI__DL_FILE(info) ((info).file)
extern int gemmepi__dladdr(const void *address, gemmepi__dl_info *info) GEMMEPI__SYSTEM_NAME("dladdr");
#else
typedef Dl_info gemmepi__dl_info;
#define GEMMEPI__DL_FILE(info) ((info).dli_fname)
#define gemmepi__dladdr        dladdr
#endif
#endif

/* Opens a library by a path with a folder in it, or by its plain name where the system looks for such; a plain name
 also finds a library that the process has already. NULL if that fails: then reason (of size bytes) says why. */
static void *gemmepi__library_open(const char *name, char *reason, size_t size) {
#if GEMMEPI__WINDOWS
 /* a full path lets the library find its neighbours; a plain name is not sought in the current folder, where anyone
  may have put it */
 void *library = (void *)LoadLibraryExA(name, NULL,
    gemmepi__is_absolute(name) ? LOAD_WITH_ALTERED_SEARCH_PATH
    : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
 if (!library)
  snprintf(reason, size, "%s: Windows error %lu", name, GetLastError());
#else
 /* local: the program may have its own version of the library, whose symbols must stay apart. Never unmapped:
  CUDA's libraries leak their own memory then, and some leave threads behind */
 void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
 if (!library) {
  const char *text = dlerror();
  snprintf(reason, size, "%s", text ? text : name);
 }
#endif
 return library;
}

/* Two opens need two closes. NULL is accepted. */
static void gemmepi__library_close(void *library) {
 if (!library)
  return;
#if GEMMEPI__WINDOWS
 FreeLibrary((HMODULE)library);
#else
 dlclose(library);
#endif
}

/* The address of an exported symbol, or NULL. */
static void *gemmepi__library_symbol(void *library, const char *symbol) {
#if GEMMEPI__WINDOWS
 FARPROC function = GetProcAddress((HMODULE)library, symbol);
 void *address;
 memcpy(&address, &function, sizeof address); /* ISO C has no conversion from functions to objects */
 return address;
#else
 return dlsym(library, symbol);
#endif
}

/* The file that the library was loaded from, asked for by one of its symbols. "" and 0 if that is unknown. */
static int gemmepi__library_path(void *library, const char *symbol, char *path, size_t size) {
 path[0] = 0;
#if GEMMEPI__WINDOWS
 {
  DWORD length = GetModuleFileNameA((HMODULE)library, path, (DWORD)size);
  (void)symbol;
  if (length >= size)
   path[0] = 0;
 }
#else
 {
  void *address = dlsym(library, symbol);
  gemmepi__dl_info info;
  const char *file = address && gemmepi__dladdr(address, &info) ? GEMMEPI__DL_FILE(info) : NULL;
  if (file && strlen(file) < size)
   memcpy(path, file, strlen(file) + 1);
 }
#endif
 return path[0] != 0;
}

/* The table of element types. */

typedef struct gemmepi__dtype_row {
 gemmepi_dtype dtype;
 const char *name; /* as in GEMMEPI_F32, and as kernels name it */
 size_t size;
} gemmepi__dtype_row;

static const gemmepi__dtype_row gemmepi__dtypes[] = {
 {GEMMEPI_DTYPE_DEFAULT, "DEFAULT", 0},
 {GEMMEPI_F32, "F32", 4},
 {GEMMEPI_F64, "F64", 8},
 {GEMMEPI_F16, "F16", 2},
 {GEMMEPI_BF16, "BF16", 2},
 {GEMMEPI_E4M3, "E4M3", 1},
 {GEMMEPI_E5M2, "E5M2", 1},
 {GEMMEPI_I8, "I8", 1},
 {GEMMEPI_I32, "I32", 4},
};

static int gemmepi__is_fp8(int dtype) {
 return dtype == GEMMEPI_E4M3 || dtype == GEMMEPI_E5M2;
}

/* The types of so few bits that scales go with them. */
static int gemmepi__takes_scale(int dtype) {
 return gemmepi__is_fp8(dtype) || dtype == GEMMEPI_I8;
}

/* The smallest type that holds every value of both: F64 with F64 alone, I8 for two I8. */
static int gemmepi__common_dtype(int a, int b) {
 int takes_bf16 = a == GEMMEPI_BF16 || b == GEMMEPI_BF16, takes_f16 = a == GEMMEPI_F16 || b == GEMMEPI_F16;
 if (a == b && !gemmepi__is_fp8(a))
  return a;
 if (a == GEMMEPI_F32 || b == GEMMEPI_F32 || (takes_bf16 && takes_f16))
  return GEMMEPI_F32;
 return takes_bf16 ? GEMMEPI_BF16 : GEMMEPI_F16;
}

/* The row of a known dtype, or that of DEFAULT. */
static const gemmepi__dtype_row *gemmepi__dtype(gemmepi_dtype dtype) {
 size_t i = (size_t)dtype < GEMMEPI__COUNT(gemmepi__dtypes) ? (size_t)dtype : 0;
 return &gemmepi__dtypes[i];
}

static int gemmepi__dtype_is_known(gemmepi_dtype dtype) {
 return gemmepi__dtype(dtype)->size != 0;
}

GEMMEPI_API size_t gemmepi_dtype_size(gemmepi_dtype dtype) {
 return gemmepi__dtype(dtype)->size;
}
/* The activations: one table of what is known of each, and value and derivative in double, in the forms that do not cancel
 (their formulas stand in api/types.h, what kernels compute in kernels/activation.cuh). */

#include <float.h>
#include <math.h>

/* >>the table */

enum {
 GEMMEPI__OF_INTEGERS = 1, /* whole numbers stay whole, so that a result in I32 may have it */
 GEMMEPI__SAVES_MASK = 2, /* AUX is a bit for each element where there is neither gate nor UPSTREAM */
 GEMMEPI__SHORT_IS_COARSE = 4, /* the short form is off by more than a few units of F32 */
 GEMMEPI__HAS_FORM_OF_LONG_SUMS = 8, /* one shorter still: kernels/activation.cuh, LONG_SUMS */
 GEMMEPI__WANTS_BIAS_FIRST = 16, /* sums that begin with the bias are faster than one loaded ahead */
 GEMMEPI__LEAVES_ROOM_FOR_AUX = 32, /* registers, for a bias loaded ahead where AUX is stored */
 GEMMEPI__IS_NOT_LEAN = 64, /* takes more registers than lean shapes of gemm_sm90.cu have */
 GEMMEPI__IS_WIDE_IN_SUMS = 128 /* so beside BGRAD in tiles of gemm_sm80.cu of more than 64 rows */
};

/* cycles: of a warpgroup for an element in each of its threads, in gemm_sm90.cu's epilogue beside what else it does, measured on an
 H200; of the value, of a gate and of the derivative, which a gate's two halves share. 0: it costs nothing that was seen. */
typedef struct gemmepi__activation_row {
 gemmepi_epilogue code;
 const char *name; /* as in GEMMEPI_RELU */
 double parameter; /* what it is unless given; 0: it has none */
 int cycles, gate_cycles, derivative_cycles, traits;
} gemmepi__activation_row;

#define GEMMEPI__ACTIVATION(name) GEMMEPI_##name, #name

/* clang-format off */
static const gemmepi__activation_row gemmepi__activations[] = {
 {GEMMEPI__ACTIVATION(NONE),         0,     0,  0,  0, GEMMEPI__OF_INTEGERS},
 {GEMMEPI__ACTIVATION(RELU),         0,     0,  0,  0, GEMMEPI__OF_INTEGERS | GEMMEPI__SAVES_MASK},
 {GEMMEPI__ACTIVATION(GELU_TANH),    0,    14, 14, 32, GEMMEPI__LEAVES_ROOM_FOR_AUX | GEMMEPI__IS_WIDE_IN_SUMS},
 {GEMMEPI__ACTIVATION(GELU_ERF),     0,    24, 40, 32, GEMMEPI__WANTS_BIAS_FIRST | GEMMEPI__HAS_FORM_OF_LONG_SUMS},
 {GEMMEPI__ACTIVATION(SILU),         0,    14, 14, 14, 0},
 {GEMMEPI__ACTIVATION(SIGMOID),      0,    14, 14, 14, 0},
 {GEMMEPI__ACTIVATION(TANH),         0,    14, 14, 14, GEMMEPI__SHORT_IS_COARSE},
 {GEMMEPI__ACTIVATION(LEAKY_RELU),   0.01, 14, 14, 14, 0},
 {GEMMEPI__ACTIVATION(ELU),          1,    14, 14, 14, GEMMEPI__SHORT_IS_COARSE},
 {GEMMEPI__ACTIVATION(SQUARED_RELU), 0,    14, 14, 14, 0},
 {GEMMEPI__ACTIVATION(QUICK_GELU),   0,    14, 14, 14, 0},
 {GEMMEPI__ACTIVATION(SOFTPLUS),     0,    14, 14, 14, GEMMEPI__SHORT_IS_COARSE},
 {GEMMEPI__ACTIVATION(HARDSWISH),    0,    14, 14, 14, 0},
 {GEMMEPI__ACTIVATION(MISH),         0,    14, 14, 14, GEMMEPI__IS_NOT_LEAN},
 {GEMMEPI__ACTIVATION(HARDSIGMOID),  0,    14, 14, 14, 0},
};
/* clang-format on */

static uint32_t gemmepi__activation(gemmepi_epilogue epilogue) {
 return (uint32_t)(epilogue & GEMMEPI_ACTIVATION_MASK);
}

/* NULL where the code is no activation's. */
static const gemmepi__activation_row *gemmepi__activation_of(gemmepi_epilogue epilogue) {
 size_t i;
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__activations); i++)
  if (gemmepi__activations[i].code == gemmepi__activation(epilogue))
   return &gemmepi__activations[i];
 return NULL;
}

/* "SILU", or NULL where the code is no activation's. */
static const char *gemmepi__activation_name(gemmepi_epilogue epilogue) {
 const gemmepi__activation_row *row = gemmepi__activation_of(epilogue);
 return row ? row->name : NULL;
}

static int gemmepi__activation_has(gemmepi_epilogue epilogue, int trait) {
 const gemmepi__activation_row *row = gemmepi__activation_of(epilogue);
 return row && (row->traits & trait);
}

/* Whether it takes time that a kernel would show. */
static int gemmepi__activation_costs(gemmepi_epilogue epilogue) {
 const gemmepi__activation_row *row = gemmepi__activation_of(epilogue);
 return row && row->cycles > 0;
}

/* The parameter of an activation that has one and was given none; 0 for the others. */
static double gemmepi__default_parameter(gemmepi_epilogue epilogue) {
 const gemmepi__activation_row *row = gemmepi__activation_of(epilogue);
 return row ? row->parameter : 0;
}

#ifndef GEMMEPI_NO_HOST
/* >>what they are made of */

/* 1 / (1 + exp(-x)) without overflow, accurate in both tails */
static double gemmepi__logistic(double x) {
 double e = exp(x < 0 ? x : -x);
 return (x < 0 ? e : 1) / (1 + e);
}

/* factor times the logistic of x. Far below zero the logistic itself is subnormal and short of digits, although the
 result need not be: there its root is multiplied in twice. */
static double gemmepi__scaled_logistic(double factor, double x) {
 double root;
 if (x > -600)
  return factor * gemmepi__logistic(x);
 root = exp(0.5 * x);
 return factor * root * root;
}

#define GEMMEPI__SQRT_2_OVER_PI 0.79788456080286535588
#define GEMMEPI__SQRT_HALF      0.70710678118654752440
#define GEMMEPI__INV_SQRT_2PI   0.39894228040143267794

/* 2 sqrt(2/pi) (x + 0.044715 x^3): the tanh form of GELU is x times the logistic of this */
static double gemmepi__gelu_argument(double x) {
 return x * (2 * GEMMEPI__SQRT_2_OVER_PI + 2 * GEMMEPI__SQRT_2_OVER_PI * 0.044715 * (x * x));
}

/* exp(-x (y + more)) of x, y >= 0 and finite products, which are not rounded; more is small */
static double gemmepi__exp_of_product(double x, double y, double more) {
 double product = x * y, e = exp(-product);
 return fma(e, -fma(x, more, fma(x, y, -product)), e);
}

/* 1 / (1 + x), with what was rounded off the sum */
static double gemmepi__reciprocal_of_1_plus(double x) {
 double sum = 1 + x, rest = sum > 2 ? 1 - (sum - x) : x - (sum - 1), inverse = 1 / sum;
 return fma(inverse, fma(-rest, inverse, fma(-sum, inverse, 1.0)), inverse);
}

/* The derivative of x s(w), of e = exp(-|w|) and the derivative slope + more of w: s(w) (1 + x (slope + more) s(-w)) */
static double gemmepi__gate_derivative(double x, double e, double slope, double more) {
 double inverse = gemmepi__reciprocal_of_1_plus(e), small = e * inverse;
 double s = x < 0 ? small : inverse, opposite = x < 0 ? inverse : small, change = x * opposite;
 change = fma(change, slope, fma(change, more, fma(x, opposite, -change) * slope));
 return fma(change, s, s);
}

/* e = exp(-|w|) of w = gemmepi__gelu_argument(x) where |x| < 30, and beyond that 0 */
static double gemmepi__gelu_exponential(double x) {
 double c = 2 * GEMMEPI__SQRT_2_OVER_PI, size = x < 0 ? -x : x, square, factor;
 size = size > 30 ? 30 : size;
 square = size * size;
 factor = fma(c * 0.044715, square, c);
 return gemmepi__exp_of_product(size, factor, fma(c * 0.044715, square, c - factor));
}

/* what was rounded off -x sqrt(1/2), times the slope of erfc / 2 but for its exponential; of bounded x */
static double gemmepi__rounded_off(double x) {
 double argument = -x * GEMMEPI__SQRT_HALF;
 return (fma(-x, GEMMEPI__SQRT_HALF, -argument) + x * 4.8336466567264567e-17) * -0.56418958354775628695;
}

/* Phi(x) is phi(x) times this over -x, for x < -30: to 2^-50, where a rounding of x weighs 900 of them */
static double gemmepi__normal_tail(double x) {
 double w = 1 / (x * x);
 return 1 - w * (1 - 3 * w * (1 - 5 * w * (1 - 7 * w * (1 - 9 * w))));
}

/* factor phi(x) of x < -30, where the exponential is subnormal although the result need not be */
static double gemmepi__times_density(double factor, double x) {
 double root = exp(-0.25 * x * x);
 return GEMMEPI__INV_SQRT_2PI * root * factor * root;
}

/* of x >= -30 */
static double gemmepi__normal(double x) {
 double within = x > 40 ? 40 : x;
 return fma(gemmepi__rounded_off(within), exp(-0.5 * within * within),
    0.5 * erfc(-within * GEMMEPI__SQRT_HALF));
}

/* log(1 + exp(x)), accurate in the left tail */
static double gemmepi__softplus(double x) {
 return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* n of tanh(log(1 + exp(x))) = n / (n + 2), for |x| <= 40 */
static double gemmepi__mish_product(double x) {
 double e = exp(x);
 return e * (e + 2);
}

/* >>value and derivative */

static double gemmepi__activate(uint32_t activation, double parameter, double x) {
 double n;
 switch (activation) {
 case GEMMEPI_RELU:
  return x > 0 || x != x ? x : 0;
 case GEMMEPI_GELU_TANH:
  if (x < -15)
   return gemmepi__scaled_logistic(x, gemmepi__gelu_argument(x));
  n = gemmepi__gelu_exponential(x);
  return x * ((x < 0 ? n : 1) / (1 + n));
 case GEMMEPI_GELU_ERF: /* at infinity the formula is NaN */
  return x < -30 ? gemmepi__times_density(x - x - gemmepi__normal_tail(x), x) : x * gemmepi__normal(x);
 case GEMMEPI_SILU:
  return gemmepi__scaled_logistic(x, x);
 case GEMMEPI_SIGMOID:
  return gemmepi__logistic(x);
 case GEMMEPI_TANH:
  return tanh(x);
 case GEMMEPI_LEAKY_RELU:
  return x > 0 || x != x ? x : parameter * x;
 case GEMMEPI_ELU:
  return x > 0 || x != x ? x : parameter * expm1(x);
 case GEMMEPI_SQUARED_RELU:
  return x > 0 || x != x ? x * x : 0;
 case GEMMEPI_QUICK_GELU:
  return gemmepi__scaled_logistic(x, 1.702 * x);
 case GEMMEPI_SOFTPLUS:
  return gemmepi__softplus(x);
 case GEMMEPI_HARDSWISH:
  return x * ((x < -3 ? 0 : x > 3 ? 6 : x + 3) / 6);
 case GEMMEPI_MISH: /* far below zero the factor is exp(x), as the logistic is, far above 1 */
  if (x < -40 || x > 40)
   return x < 0 ? gemmepi__scaled_logistic(x, x) : x;
  n = gemmepi__mish_product(x);
  return x * (n / (n + 2));
 case GEMMEPI_HARDSIGMOID:
  return (x < -3 ? 0 : x > 3 ? 6 : x + 3) / 6;
 default:
  return x;
 }
}

/* Where it is 0 by selection see below. */
static double gemmepi__derivative(uint32_t activation, double parameter, double x) {
 double argument, within, size, n, rest;
 switch (activation) {
 case GEMMEPI_GELU_TANH:
  if (x >= -15)
   return gemmepi__gate_derivative(x, gemmepi__gelu_exponential(x), 2 * GEMMEPI__SQRT_2_OVER_PI,
    2 * GEMMEPI__SQRT_2_OVER_PI * 0.134145 * (x > 30 ? 900 : x * x));
  argument = gemmepi__gelu_argument(x);
  /* beyond 64 the last factor is 0 or 1 and nothing must overflow; at infinity the formula is NaN */
  within = x > 64 && x < HUGE_VAL ? 64 : x < -64 && x > -HUGE_VAL ? -64 : x;
  return gemmepi__scaled_logistic(1 + 2 * within * gemmepi__logistic(-argument) *
    (GEMMEPI__SQRT_2_OVER_PI * (1 + 0.134145 * within * within)),
    argument);
 case GEMMEPI_GELU_ERF:
  if (x < -30)
   return gemmepi__times_density(x - gemmepi__normal_tail(x) / x, x);
  within = x > 40 ? 40 : x;
  size = within * within;
  argument = -within * GEMMEPI__SQRT_HALF;
  /* what was rounded off the argument, off the square and off x / sqrt(2 pi) */
  rest = gemmepi__rounded_off(within);
  rest = fma(within * GEMMEPI__INV_SQRT_2PI, -0.5 * fma(within, within, -size), rest);
  return fma(fma(x, GEMMEPI__INV_SQRT_2PI, rest), exp(-0.5 * x * x), 0.5 * erfc(argument));
 case GEMMEPI_SILU:
  if (x >= -600)
   return gemmepi__gate_derivative(x, exp(x < 0 ? x : -x), 1, 0);
  return gemmepi__scaled_logistic(1 + x * gemmepi__logistic(-x), x);
 case GEMMEPI_SIGMOID:
  return gemmepi__logistic(x) * gemmepi__logistic(-x);
 case GEMMEPI_TANH:
  size = x < 0 ? -x : x;
  return gemmepi__scaled_logistic(4 * gemmepi__logistic(2 * size), -2 * size);
 case GEMMEPI_LEAKY_RELU:
  return x > 0 ? 1 : parameter;
 case GEMMEPI_ELU:
  return x > 0 ? 1 : parameter * exp(x);
 case GEMMEPI_SQUARED_RELU:
  return x > 0 || x != x ? 2 * x : 0;
 case GEMMEPI_QUICK_GELU: /* 1.702 x must not overflow where x does not */
  if (x >= -350) {
   size = x < 0 ? -x : x > 1000 ? 1000 : x;
   return gemmepi__gate_derivative(x, gemmepi__exp_of_product(size, 1.702, 0), 1.702, 0);
  }
  argument = 1.702 * (x > 1e300 && x < HUGE_VAL ? 1e300 : x < -1e300 && x > -HUGE_VAL ? -1e300 : x);
  return gemmepi__scaled_logistic(1 + argument * gemmepi__logistic(-argument), argument);
 case GEMMEPI_SOFTPLUS:
  return gemmepi__logistic(x);
 case GEMMEPI_HARDSWISH:
  return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
 case GEMMEPI_MISH:
  if (x < -40)
   return gemmepi__scaled_logistic(1 + x, x);
  if (x > 40)
   return 1 + (x - x); /* at infinity the formula is NaN */
  /* above 0 n / (1 + n) is 1 - 1 / (1 + n), which is rounded less often */
  argument = exp(x);
  n = fma(argument, 0.5 * argument, argument);
  size = gemmepi__reciprocal_of_1_plus(n);
  rest = fma(x * fma(argument, argument, argument), size, x > 0 ? -1 : n);
  return x > 0 ? fma(rest, size, 1.0) : rest * size;
 case GEMMEPI_HARDSIGMOID:
  return 1 / 6.0;
 default:
  return 1;
 }
}

/* Whether the derivative is 0 by selection, so that inf * 0 does not arise. */
static int gemmepi__selects_0(uint32_t activation, double x) {
 switch (activation) {
 case GEMMEPI_RELU:
  return !(x > 0);
 case GEMMEPI_SQUARED_RELU:
  return x <= 0;
 case GEMMEPI_HARDSIGMOID:
  return !(x > -3 && x < 3);
 default:
  return 0;
 }
}

/* v times the derivative */
static double gemmepi__times_derivative(uint32_t activation, double parameter, double v, double x) {
 if (gemmepi__selects_0(activation, x))
  return 0;
 if (activation == GEMMEPI_SQUARED_RELU)
  return v * x * 2; /* 2 x may overflow */
 return v * gemmepi__derivative(activation, parameter, x);
}

/* x y z, right where that is in the range, wherever a product of two of them is */
static double gemmepi__product_in_range(double x, double y, double z) {
 double both = x * y, size = fabs(both), larger, smaller, outer;
 if (size >= DBL_MIN && size <= DBL_MAX)
  return both * z;
 larger = fabs(x) > fabs(y) ? x : y;
 smaller = fabs(x) > fabs(y) ? y : x;
 outer = larger * z;
 return size > DBL_MAX || fabs(outer) <= DBL_MAX ? outer * smaller : smaller * z * larger;
}

/* v times the activation, which may be subnormal or infinite where the product is not */
static double gemmepi__times_activation(uint32_t activation, double parameter, double v, double x) {
 int is_below = x <= 0;
 if (activation == GEMMEPI_SQUARED_RELU && !is_below)
  return gemmepi__product_in_range(x, x, v);
 if (activation == GEMMEPI_LEAKY_RELU && is_below)
  return gemmepi__product_in_range(x, parameter, v);
 if (activation == GEMMEPI_ELU && is_below)
  return gemmepi__product_in_range(expm1(x), parameter, v);
 return v * gemmepi__activate(activation, parameter, x);
}

/* dy value act'(gate); of three factors that may be any number, else with dy value first where it is a number that is not
 subnormal, or the larger one */
static double gemmepi__gate_gradient(uint32_t activation, double parameter, double dy, double value,
    double gate) {
 double both = dy * value, size = fabs(both), first = both, last = 1;
 if (gemmepi__selects_0(activation, gate))
  return 0;
 if (activation == GEMMEPI_SQUARED_RELU)
  return gemmepi__product_in_range(dy, value, gate) * 2;
 if (!(gate > 0) && (activation == GEMMEPI_LEAKY_RELU || activation == GEMMEPI_ELU))
  return gemmepi__product_in_range(dy, value, gemmepi__derivative(activation, parameter, gate));
 if (!(size <= DBL_MAX && (size >= DBL_MIN || dy == 0 || value == 0))) {
  int value_first = fabs(value) > fabs(dy);
  first = value_first ? value : dy;
  last = value_first ? dy : value;
 }
 return gemmepi__times_derivative(activation, parameter, first, gate) * last;
}
#endif
/* Every flag of the interface: what it is called, and which fields take it. No two share a bit. */

/* The fields that hold flags. */
enum {
 GEMMEPI__OF_EPILOGUE = 1, /* gemmepi_matmul_desc.epilogue */
 GEMMEPI__OF_PRODUCT = 2, /* gemmepi_matmul_desc.flags */
 GEMMEPI__OF_ELEMENTWISE = 4, /* gemmepi_elementwise_desc.flags */
 GEMMEPI__OF_GATE = 8, /* gemmepi_elementwise_desc.activation */
 GEMMEPI__OF_LAYER = 16, /* gemmepi_linear_desc.flags */
 GEMMEPI__OF_LAYERS_ACTIVATION = 32 /* gemmepi_linear_desc.activation */
};

typedef struct gemmepi__flag_row {
 uint64_t flag;
 const char *name;
 int fields;
} gemmepi__flag_row;

static const gemmepi__flag_row gemmepi__flags[] = {
 {GEMMEPI_BIAS, "BIAS", GEMMEPI__OF_EPILOGUE},
 {GEMMEPI_AUX, "AUX", GEMMEPI__OF_EPILOGUE},
 {GEMMEPI_BACKWARD, "BACKWARD", GEMMEPI__OF_EPILOGUE},
 {GEMMEPI_RESIDUAL, "RESIDUAL", GEMMEPI__OF_EPILOGUE},
 {GEMMEPI_BGRAD, "BGRAD", GEMMEPI__OF_EPILOGUE},
 {GEMMEPI_BGRAD_A, "BGRAD_A", GEMMEPI__OF_EPILOGUE},
 {GEMMEPI_BGRAD_B, "BGRAD_B", GEMMEPI__OF_EPILOGUE},
 {GEMMEPI_ACCUMULATE_BIAS_GRAD, "ACCUMULATE_BIAS_GRAD", GEMMEPI__OF_EPILOGUE},
 {GEMMEPI_GATED, "GATED", GEMMEPI__OF_EPILOGUE | GEMMEPI__OF_LAYERS_ACTIVATION},
 {GEMMEPI_GATE_FIRST, "GATE_FIRST",
  GEMMEPI__OF_EPILOGUE | GEMMEPI__OF_GATE | GEMMEPI__OF_LAYERS_ACTIVATION},
 {GEMMEPI_UPSTREAM, "UPSTREAM", GEMMEPI__OF_EPILOGUE},
 {GEMMEPI_RELAXED, "RELAXED", GEMMEPI__OF_PRODUCT | GEMMEPI__OF_LAYER},
 {GEMMEPI_DEVICE_SCALARS, "DEVICE_SCALARS", GEMMEPI__OF_PRODUCT},
 {GEMMEPI_FAST_ACCUMULATION, "FAST_ACCUMULATION", GEMMEPI__OF_PRODUCT | GEMMEPI__OF_LAYER},
 {GEMMEPI_AMAX_D, "AMAX_D", GEMMEPI__OF_PRODUCT},
 {GEMMEPI_AMAX_AUX, "AMAX_AUX", GEMMEPI__OF_PRODUCT},
 {GEMMEPI_ACCUMULATE, "ACCUMULATE", GEMMEPI__OF_PRODUCT | GEMMEPI__OF_ELEMENTWISE},
 {GEMMEPI_CAST_SCALE, "CAST_SCALE", GEMMEPI__OF_ELEMENTWISE},
 {GEMMEPI_CAST_Y_SCALE, "CAST_Y_SCALE", GEMMEPI__OF_ELEMENTWISE},
 {GEMMEPI_CAST_AMAX, "CAST_AMAX", GEMMEPI__OF_ELEMENTWISE},
 {GEMMEPI_CAST_K_IS_ROWS, "CAST_K_IS_ROWS", GEMMEPI__OF_ELEMENTWISE},
 {GEMMEPI_LINEAR_BIAS, "LINEAR_BIAS", GEMMEPI__OF_LAYER},
 {GEMMEPI_LINEAR_SAVED, "LINEAR_SAVED", GEMMEPI__OF_LAYER},
 {GEMMEPI_LINEAR_RECOMPUTE, "LINEAR_RECOMPUTE", GEMMEPI__OF_LAYER},
 {GEMMEPI_LINEAR_DA, "LINEAR_DA", GEMMEPI__OF_LAYER},
 {GEMMEPI_LINEAR_DB, "LINEAR_DB", GEMMEPI__OF_LAYER},
 {GEMMEPI_LINEAR_DBIAS, "LINEAR_DBIAS", GEMMEPI__OF_LAYER},
 {GEMMEPI_ACCUMULATE_DA, "ACCUMULATE_DA", GEMMEPI__OF_LAYER},
 {GEMMEPI_ACCUMULATE_DB, "ACCUMULATE_DB", GEMMEPI__OF_LAYER},
 {GEMMEPI_ACCUMULATE_DBIAS, "ACCUMULATE_DBIAS", GEMMEPI__OF_LAYER},
};

/* What a layer has instead of a flag of products. */
static const struct {
 uint64_t flag, instead;
} gemmepi__layers_flags[] = {{GEMMEPI_BIAS, GEMMEPI_LINEAR_BIAS},
    {GEMMEPI_AUX, GEMMEPI_LINEAR_SAVED},
    {GEMMEPI_BGRAD, GEMMEPI_LINEAR_DBIAS},
    {GEMMEPI_ACCUMULATE, GEMMEPI_ACCUMULATE_DB},
    {GEMMEPI_ACCUMULATE_BIAS_GRAD, GEMMEPI_ACCUMULATE_DBIAS}};

/* For values that nobody writes on purpose. */
#define GEMMEPI__UNINITIALISED " (did you leave desc uninitialised? = {0})"

/* By bit of the fields above. */
static const struct {
 const char *desc, *name;
} gemmepi__fields[] = {{"gemmepi_matmul_desc", "epilogue"},   {"gemmepi_matmul_desc", "flags"},
    {"gemmepi_elementwise_desc", "flags"}, {"gemmepi_elementwise_desc", "activation"},
    {"gemmepi_linear_desc", "flags"},      {"gemmepi_linear_desc", "activation"}};

static size_t gemmepi__field_index(int field) {
 size_t i = 0;
 while (!(field >> i & 1))
  i++;
 return i;
}

/* All flags of a field. */
static uint64_t gemmepi__flags_of(int field) {
 uint64_t flags = 0;
 size_t i;
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__flags); i++)
  if (gemmepi__flags[i].fields & field)
   flags |= gemmepi__flags[i].flag;
 return flags;
}

/* "BIAS" of the lowest flag that is set, or NULL. */
static const gemmepi__flag_row *gemmepi__flag(uint64_t flags) {
 size_t i;
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__flags); i++)
  if (flags & gemmepi__flags[i].flag)
   return &gemmepi__flags[i];
 return NULL;
}

/* "BIAS|AUX" */
static void gemmepi__append_flags(gemmepi__text *text, uint64_t flags) {
 size_t i;
 const char *between = text->length ? "|" : "";
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__flags); i++)
  if (flags & gemmepi__flags[i].flag) {
   gemmepi__append(text, "%s%s", between, gemmepi__flags[i].name);
   flags &= ~gemmepi__flags[i].flag;
   between = "|";
  }
 if (flags)
  gemmepi__append(text, "%s0x%llx", between, (gemmepi__ull)flags);
}

/* Refuses a flag in a field that does not take it, and names the field that does. */
static gemmepi_status gemmepi__refuse_flag(int field, const gemmepi__flag_row *row) {
 size_t here = gemmepi__field_index(field), there = gemmepi__field_index(row->fields), i;
 int is_layers = field & (GEMMEPI__OF_LAYER | GEMMEPI__OF_LAYERS_ACTIVATION);
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__fields); i++)
  if (row->fields >> i & 1 && strcmp(gemmepi__fields[i].desc, gemmepi__fields[here].desc) == 0)
   there = i;
 if (strcmp(gemmepi__fields[there].desc, gemmepi__fields[here].desc) == 0)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s has %s, which belongs in desc.%s",
    gemmepi__fields[here].name, row->name, gemmepi__fields[there].name);
 for (i = 0; is_layers && i < GEMMEPI__COUNT(gemmepi__layers_flags); i++)
  if (row->flag == gemmepi__layers_flags[i].flag)
   return gemmepi__fail(
    GEMMEPI_INVALID_ARGUMENT, "desc.%s has %s, a flag of products: a layer has %s, in desc.flags",
    gemmepi__fields[here].name, row->name, gemmepi__flag(gemmepi__layers_flags[i].instead)->name);
 return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s has %s, which belongs in %s.%s",
    gemmepi__fields[here].name, row->name, gemmepi__fields[there].desc,
    gemmepi__fields[there].name);
}

/* Whether a field has but its own flags, and, where `others` says so, further bits that are checked elsewhere. */
static gemmepi_status gemmepi__check_flags_of(int field, uint64_t flags, uint64_t others) {
 uint64_t wrong = flags & ~(gemmepi__flags_of(field) | others);
 const gemmepi__flag_row *row = gemmepi__flag(wrong);
 const char *name = gemmepi__fields[gemmepi__field_index(field)].name;
 if (!wrong)
  return GEMMEPI_OK;
 if (field == GEMMEPI__OF_GATE && wrong == GEMMEPI_GATED)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.activation has GATED, which belongs in gemmepi_matmul_desc.epilogue; an element-wise "
   "gate is the operation GEMMEPI_OP_GATED");
 if (row && !(wrong & 0xff))
  return gemmepi__refuse_flag(field, row);
 if (strcmp(name, "flags") == 0 && wrong & GEMMEPI_ACTIVATION_MASK && gemmepi__activation_name(flags))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT, "desc.flags has the activation %s, which belongs in desc.%s",
   gemmepi__activation_name(flags), field == GEMMEPI__OF_PRODUCT ? "epilogue" : "activation");
 return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.%s is 0x%llx; the bits 0x%llx are none of its flags%s", name,
    (gemmepi__ull)flags, (gemmepi__ull)wrong, GEMMEPI__UNINITIALISED);
}
/* What an epilogue is made of, which compositions have a meaning, and how they are called. */

#define GEMMEPI__ANY_BGRAD (GEMMEPI_BGRAD | GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B)

/* RELU saves one bit an element, every other activation, and a gate, the pre-activation itself. */
static int gemmepi__aux_is_mask(gemmepi_epilogue epilogue) {
 return (epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD)) &&
   !(epilogue & (GEMMEPI_GATED | GEMMEPI_UPSTREAM)) &&
   gemmepi__activation_has(epilogue, GEMMEPI__SAVES_MASK);
}

/* With GATED: whether the product's columns are two halves, of which one column is made or two gradients; else they are the
 upstream gradient. */
static int gemmepi__halves_come_in(gemmepi_epilogue epilogue) {
 return !(epilogue & GEMMEPI_BACKWARD) || (epilogue & GEMMEPI_UPSTREAM);
}

/* The columns of D, the residual and BGRAD's bias_grad, where the product has n; -1 where n must be even and is not. */
static int64_t gemmepi__result_columns(gemmepi_epilogue epilogue, int64_t n) {
 if (!(epilogue & GEMMEPI_GATED))
  return n;
 if (gemmepi__halves_come_in(epilogue) && n % 2)
  return -1;
 return !(epilogue & GEMMEPI_BACKWARD) ? n / 2 : epilogue & GEMMEPI_UPSTREAM ? n : 2 * n;
}

/* The columns of aux. */
static int64_t gemmepi__aux_columns(gemmepi_epilogue epilogue, int64_t n) {
 if (!(epilogue & GEMMEPI_GATED) || !(epilogue & GEMMEPI_BACKWARD))
  return n;
 return epilogue & GEMMEPI_UPSTREAM ? n / 2 : 2 * n;
}

/* "GELU_TANH|BIAS|AUX" */
static void gemmepi__append_epilogue(gemmepi__text *text, gemmepi_epilogue epilogue) {
 const char *name = gemmepi__activation_name(epilogue);
 if (name)
  gemmepi__append(text, "%s", name);
 else
  gemmepi__append(text, "activation 0x%x", (unsigned)gemmepi__activation(epilogue));
 gemmepi__append_flags(text, epilogue & ~GEMMEPI_ACTIVATION_MASK);
}

/* "_GELU_TANH_BIAS_AUX" for a kernel's name; nothing where there is no epilogue */
static void gemmepi__append_epilogue_words(gemmepi__text *text, gemmepi_epilogue epilogue) {
 size_t i;
 if (gemmepi__activation(epilogue) != GEMMEPI_NONE)
  gemmepi__append(text, "_%s", gemmepi__activation_name(epilogue));
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__flags); i++)
  if (epilogue & gemmepi__flags[i].flag)
   gemmepi__append(text, "_%s", gemmepi__flags[i].name);
}

/* The epilogue as the caller wrote it: in a column-major problem the operands are exchanged, and with them their sums. */
static gemmepi_epilogue gemmepi__callers_epilogue(gemmepi_epilogue epilogue, int exchanged) {
 uint64_t sums = epilogue & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B);
 return exchanged && sums ? epilogue ^ (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) : epilogue;
}

/* A composition is refused when it has all of `all`, none of `none` and, where `any` is given, at least two or more
 bits of `any`. */
typedef struct gemmepi__epilogue_rule {
 uint64_t all, none, two_of;
 gemmepi_status status;
 const char *sentence;
} gemmepi__epilogue_rule;

static const gemmepi__epilogue_rule gemmepi__epilogue_rules[] = {
 {0, 0, GEMMEPI__ANY_BGRAD, GEMMEPI_INVALID_ARGUMENT,
  "only one of BGRAD, BGRAD_A and BGRAD_B goes at a time"},
 {GEMMEPI_AUX | GEMMEPI_BACKWARD, 0, 0, GEMMEPI_INVALID_ARGUMENT,
  "AUX does not go with BACKWARD, which reads aux already"},
 {GEMMEPI_ACCUMULATE_BIAS_GRAD, GEMMEPI__ANY_BGRAD, 0, GEMMEPI_INVALID_ARGUMENT,
  "ACCUMULATE_BIAS_GRAD goes with BGRAD, BGRAD_A or BGRAD_B"},
 {GEMMEPI_GATE_FIRST, GEMMEPI_GATED, 0, GEMMEPI_INVALID_ARGUMENT, "GATE_FIRST goes with GATED"},
 {GEMMEPI_UPSTREAM, GEMMEPI_BACKWARD, 0, GEMMEPI_INVALID_ARGUMENT, "UPSTREAM goes with BACKWARD"},
};

static int gemmepi__has_two(uint64_t bits) {
 return (bits & (bits - 1)) != 0;
}

/* cuBLASLt's numbers, of which none is an epilogue here. */
static const struct {
 gemmepi_epilogue number;
 const char *name;
} gemmepi__cublaslt_numbers[] = {{1, "DEFAULT"},    {2, "RELU"},          {130, "RELU_AUX"},
    {4, "BIAS"},       {6, "RELU_BIAS"},     {134, "RELU_AUX_BIAS"},
    {136, "DRELU"},    {152, "DRELU_BGRAD"}, {32, "GELU"},
    {160, "GELU_AUX"}, {36, "GELU_BIAS"},    {164, "GELU_AUX_BIAS"},
    {192, "DGELU"},    {208, "DGELU_BGRAD"}, {256, "BGRADA"},
    {512, "BGRADB"}};

/* The bits that cuBLASLt's numbers use. */
#define GEMMEPI__CUBLASLT_BITS 0x3ffull

/* Whether the low byte is an activation's code. field: "epilogue" or "activation". */
static gemmepi_status gemmepi__check_activation(const char *field, gemmepi_epilogue epilogue) {
 int is_epilogue = strcmp(field, "epilogue") == 0;
 size_t i;
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__cublaslt_numbers); i++) {
  const char *name = gemmepi__cublaslt_numbers[i].name;
  unsigned number = (unsigned)gemmepi__cublaslt_numbers[i].number;
  if ((epilogue & GEMMEPI__CUBLASLT_BITS) != number)
   continue;
  if (is_epilogue)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.epilogue is 0x%llx, and %u is CUBLASLT_EPILOGUE_%s, which is called "
    "GEMMEPI_EPILOGUE_%s here",
    (gemmepi__ull)epilogue, number, name, name);
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.activation is 0x%llx, and %u is CUBLASLT_EPILOGUE_%s; give an activation alone, "
   "GEMMEPI_NONE, GEMMEPI_RELU and so on (a layer has LINEAR_BIAS and LINEAR_SAVED in "
   "desc.flags for the rest)",
   (gemmepi__ull)epilogue, number, name);
 }
 if (gemmepi__activation_name(epilogue))
  return GEMMEPI_OK;
 return gemmepi__fail(
  GEMMEPI_INVALID_ARGUMENT,
  "desc.%s is 0x%llx, and 0x%x is the code of no activation: give one of GEMMEPI_NONE, "
  "GEMMEPI_RELU and so on, never two or-ed%s",
  field, (gemmepi__ull)epilogue, (unsigned)gemmepi__activation(epilogue), GEMMEPI__UNINITIALISED);
}

static gemmepi_status gemmepi__check_epilogue(gemmepi_epilogue epilogue) {
 char name[256];
 gemmepi__text text = gemmepi__text_in(name, sizeof name);
 gemmepi_status status = gemmepi__check_activation("epilogue", epilogue);
 size_t i;
 if (!status)
  status = gemmepi__check_flags_of(GEMMEPI__OF_EPILOGUE, epilogue, GEMMEPI_ACTIVATION_MASK);
 if (status)
  return status;
 gemmepi__append_epilogue(&text, epilogue);
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__epilogue_rules); i++) {
  const gemmepi__epilogue_rule *rule = &gemmepi__epilogue_rules[i];
  if ((epilogue & rule->all) == rule->all && !(epilogue & rule->none) &&
   (!rule->two_of || gemmepi__has_two(epilogue & rule->two_of)))
   return gemmepi__fail(rule->status, "desc.epilogue is %s: %s", name, rule->sentence);
 }
 if ((epilogue & GEMMEPI_BGRAD) && !(epilogue & GEMMEPI_BACKWARD) &&
  gemmepi__activation(epilogue) != GEMMEPI_NONE)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.epilogue is %s: BGRAD goes with BACKWARD or with the activation NONE",
    name);
 return GEMMEPI_OK;
}
/* A product as every route sees it: row-major, defaults filled in, every rule checked. */

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
 GEMMEPI__SCALE_A,
 GEMMEPI__SCALE_B,
 GEMMEPI__SCALE_C,
 GEMMEPI__SCALE_D,
 GEMMEPI__SCALE_AUX,
 GEMMEPI__SCALE_RESIDUAL,
 GEMMEPI__AMAX_D,
 GEMMEPI__AMAX_AUX,
 GEMMEPI__OPERANDS
};

/* Of a problem's flags, not a caller's: D is not stored, bias_grad is what is wanted. */
#define GEMMEPI__ONLY_SUMS 0x80000000u

#define GEMMEPI__SCALE_OF(matrix) \
 (GEMMEPI__SCALE_A + (matrix)) /* of A to RESIDUAL, which stand in the same order */

static const char *const gemmepi__operand_names[GEMMEPI__OPERANDS] = {
 "a",       "b",       "c",       "d",       "aux",       "residual",       "bias",   "bias_grad",
 "scale_a", "scale_b", "scale_c", "scale_d", "scale_aux", "scale_residual", "amax_d", "amax_aux"};

/* How a tensor lies in memory: `lines` runs of `length` elements, `ld` apart. dtype 0: the problem does not have it. */
typedef struct gemmepi__view {
 int32_t dtype;
 int32_t transposed;
 int32_t bits; /* of one element: 1 for RELU's mask */
 int32_t written;
 int32_t alignment; /* bytes that every pointer is a multiple of */
 int32_t scale; /* a gemmepi_scale_mode, of A to RESIDUAL */
 int64_t lines, length, ld, batch_stride;
 int64_t bytes; /* from the pointer to the last byte used, whole batch */
} gemmepi__view;

/* Zeroed before it is filled, so that its bytes tell problems apart. */
typedef struct gemmepi__problem {
 int64_t m, n, k, batch;
 double parameter; /* of the activation */
 uint64_t epilogue;
 uint64_t flags;
 int32_t compute; /* never DEFAULT */
 int32_t accumulator; /* F32, F64 or I32 */
 int32_t common; /* the type that holds both operands' values */
 int32_t exchanged; /* column-major: a here is the caller's b and the other way round */
 int32_t alignment; /* bytes, promised for every pointer of a matrix or vector */
 uint32_t used; /* bit i: the problem has operand i */
 int32_t count; /* of the operands that it has */
 int8_t list[GEMMEPI__OPERANDS]; /* which they are, the outputs first */
 int32_t outputs; /* how many of them are written */
 gemmepi__view views[GEMMEPI__OPERANDS];
} gemmepi__problem;

static int gemmepi__has(const gemmepi__problem *problem, uint64_t flags) {
 return (problem->epilogue & flags) != 0;
}

/* With GATED: how many halves the product's columns are. */
static int gemmepi__halves_in(const gemmepi__problem *problem) {
 return gemmepi__has(problem, GEMMEPI_GATED) && gemmepi__halves_come_in(problem->epilogue) ? 2 : 1;
}

/* With GATED: how many halves the result's columns are. */
static int gemmepi__halves_out(const gemmepi__problem *problem) {
 return gemmepi__has(problem, GEMMEPI_GATED) && gemmepi__has(problem, GEMMEPI_BACKWARD) ? 2 : 1;
}

/* How many columns each half of the product has. */
static int64_t gemmepi__half_columns(const gemmepi__problem *problem) {
 return problem->n / gemmepi__halves_in(problem);
}

static int64_t gemmepi__callers_m(const gemmepi__problem *problem) {
 return problem->exchanged ? problem->n : problem->m;
}

static int64_t gemmepi__callers_n(const gemmepi__problem *problem) {
 return problem->exchanged ? problem->m : problem->n;
}

static int gemmepi__has_operand(const gemmepi__problem *problem, int operand) {
 return problem->views[operand].dtype != 0;
}

/* I8 operands multiply into exact I32 sums, whatever they become afterwards. */
static int gemmepi__product_dtype(const gemmepi__problem *problem) {
 return problem->common == GEMMEPI_I8 ? (int)GEMMEPI_I32 : (int)problem->accumulator;
}

/* Whether the scale of A or B changes along k, so that no factor after the sum can stand for it. */
static int gemmepi__scale_varies_along_k(const gemmepi__problem *problem, int operand) {
 return problem->views[operand].scale >= GEMMEPI_SCALE_VECTOR_128;
}

/* Whether D has no element. */
static int gemmepi__is_empty(const gemmepi__problem *problem) {
 return problem->m == 0 || problem->n == 0;
}

/* Whether nothing has an element that a run would write: an empty D may still have sums over no rows, or of an operand. */
static int gemmepi__writes_nothing(const gemmepi__problem *problem) {
 return gemmepi__is_empty(problem) && problem->views[GEMMEPI__BIAS_GRAD].bytes == 0;
}

/* Sizes and offsets stay below this many elements, so that no sum of products of them overflows 64 bits in bits. */
#define GEMMEPI__MAX_ELEMENTS ((int64_t)1 << 56)

/* count * stride + rest, or -1 where that passes GEMMEPI__MAX_ELEMENTS, or one is -1 already. */
static int64_t gemmepi__offset(int64_t count, int64_t stride, int64_t rest) {
 if (count < 0 || stride < 0 || rest < 0 || rest > GEMMEPI__MAX_ELEMENTS ||
  (stride != 0 && count > (GEMMEPI__MAX_ELEMENTS - rest) / stride))
  return -1;
 return count * stride + rest;
}

static gemmepi_status gemmepi__check_size(const char *name, int64_t size) {
 if (size < 0 || size > GEMMEPI__MAX_ELEMENTS)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s is %lld; accepted are 0 to 2^56%s", name,
    (long long)size,
    size < -GEMMEPI__MAX_ELEMENTS || size > 0 ? GEMMEPI__UNINITIALISED : "");
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
 end = item > 0 ? gemmepi__offset(batch - 1, view->batch_stride, item) : item;
 if (end < 0)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.%s spans more than 2^56 %s (lines %lld, ld %lld, batch %lld, batch_stride %lld)", name,
   unit, (long long)view->lines, (long long)view->ld, (long long)batch,
   (long long)view->batch_stride);
 view->bytes = (end * view->bits + 7) / 8;
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
static gemmepi_status gemmepi__check_output(const gemmepi__view *view, const char *name, int64_t batch) {
 int64_t item;
 int follow, interleaved;
 if (batch <= 1 || view->lines == 0 || view->length == 0)
  return GEMMEPI_OK;
 item = gemmepi__offset(view->lines - 1, view->ld, view->length);
 follow = view->batch_stride >= item;
 interleaved = view->batch_stride >= view->length &&
    view->ld >= gemmepi__offset(batch - 1, view->batch_stride, view->length);
 if (follow || interleaved)
  return GEMMEPI_OK;
 if (view->bits == 1)
  item = (item + 127) / 128 * 128; /* what a mask's stride must be a multiple of */
 return gemmepi__fail(
  GEMMEPI_INVALID_ARGUMENT,
  "desc.%s.batch_stride is %lld with desc.batch %lld: items of an output would overlap; at least %lld keeps "
  "them apart",
  name, (long long)view->batch_stride, (long long)batch, (long long)item);
}

/* The types that a tensor beside a and b may have: bit 1 << dtype. */
#define GEMMEPI__MATRIX_TYPES \
 (1u << GEMMEPI_F32 | 1u << GEMMEPI_F16 | 1u << GEMMEPI_BF16 | 1u << GEMMEPI_E4M3 | 1u << GEMMEPI_E5M2 | \
  1u << GEMMEPI_I8)
#define GEMMEPI__VECTOR_TYPES (1u << GEMMEPI_F32 | 1u << GEMMEPI_F16 | 1u << GEMMEPI_BF16)

static uint32_t gemmepi__side_types(const gemmepi__problem *problem, int operand) {
 if (problem->accumulator != GEMMEPI_F32)
  return 1u << problem->accumulator;
 return operand >= GEMMEPI__BIAS ? GEMMEPI__VECTOR_TYPES : GEMMEPI__MATRIX_TYPES;
}

static void gemmepi__append_types(gemmepi__text *text, uint32_t types) {
 size_t i;
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__dtypes); i++)
  if (types >> i & 1)
   gemmepi__append(text, "%s%s", text->length ? ", " : "", gemmepi__dtypes[i].name);
}

static gemmepi_status gemmepi__refuse_dtype(const char *name, gemmepi_dtype dtype) {
 return gemmepi__fail(
  GEMMEPI_INVALID_ARGUMENT,
  "desc.%s.dtype is %d, which is no gemmepi_dtype: accepted are 0 to 8 (GEMMEPI_F32 and so on)%s", name,
  (int)dtype, GEMMEPI__UNINITIALISED);
}

static gemmepi_status gemmepi__check_side_dtype(const gemmepi__problem *problem, int operand,
    gemmepi_dtype dtype) {
 char accepted[128];
 gemmepi__text text = gemmepi__text_in(accepted, sizeof accepted);
 uint32_t types = gemmepi__side_types(problem, operand);
 const char *name = gemmepi__operand_names[operand];
 if (!gemmepi__dtype_is_known(dtype))
  return gemmepi__refuse_dtype(name, dtype);
 if (types >> dtype & 1)
  return GEMMEPI_OK;
 gemmepi__append_types(&text, types);
 if (operand == GEMMEPI__D)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.d.dtype is %s; with %s and %s operands accepted: %s",
    gemmepi__dtype(dtype)->name,
    gemmepi__dtype((gemmepi_dtype)problem->views[GEMMEPI__A].dtype)->name,
    gemmepi__dtype((gemmepi_dtype)problem->views[GEMMEPI__B].dtype)->name, accepted);
 return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.dtype is %s; with a result in %s accepted: %s",
    name, gemmepi__dtype(dtype)->name,
    gemmepi__dtype((gemmepi_dtype)problem->views[GEMMEPI__D].dtype)->name, accepted);
}

/* The type of a tensor that the caller left open, given d's. */
static gemmepi_dtype gemmepi__default_dtype(int operand, gemmepi_dtype d) {
 if (gemmepi__is_fp8((int)d) && operand != GEMMEPI__AUX)
  return GEMMEPI_BF16;
 return d == GEMMEPI_I8 && operand >= GEMMEPI__BIAS ? GEMMEPI_F32 : d;
}

/* >>scales and amax */

/* A vector of `lines` x `length` numbers beside the matrices; its pointer needs `alignment` bytes. */
static gemmepi_status gemmepi__take_numbers(gemmepi__problem *problem, int operand, int dtype, int64_t lines,
    int64_t length, int64_t ld, int64_t batch_stride,
    int32_t alignment) {
 gemmepi__view *view = &problem->views[operand];
 int of = operand < GEMMEPI__AMAX_D ? operand - GEMMEPI__SCALE_A : operand;
 char name[32];
 view->dtype = dtype;
 view->bits = dtype == GEMMEPI_F64 ? 64 : 32;
 view->alignment = alignment;
 view->lines = lines;
 view->length = length;
 view->ld = ld;
 view->batch_stride = batch_stride;
 snprintf(name, sizeof name, "%s%s", gemmepi__operand_names[of], of == operand ? "" : ".scale");
 return gemmepi__check_view(view, name, problem->batch);
}

static int64_t gemmepi__blocks_of_128(int64_t extent) {
 return extent / 128 + (extent % 128 != 0);
}

/* The scales of a matrix whose rows (columns for b) number `outer`; k is used for a and b alone. */
static gemmepi_status gemmepi__take_scale(gemmepi__problem *problem, int operand, const gemmepi_scale *scale,
    int64_t outer, int64_t k) {
 gemmepi__view *view = &problem->views[operand];
 const char *name = gemmepi__operand_names[operand];
 int is_factor = operand == GEMMEPI__A || operand == GEMMEPI__B;
 int64_t steps = gemmepi__blocks_of_128(k);
 if ((unsigned)scale->mode > GEMMEPI_SCALE_BLOCK_128)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.%s.scale.mode is %d, which is no gemmepi_scale_mode: accepted are 0 (NONE) to 4 (BLOCK_128)%s",
   name, (int)scale->mode, GEMMEPI__UNINITIALISED);
 if (scale->mode == GEMMEPI_SCALE_NONE && scale->batch_stride)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.%s.scale.batch_stride is %lld, but its mode is NONE", name,
    (long long)scale->batch_stride);
 if (scale->mode == GEMMEPI_SCALE_NONE)
  return GEMMEPI_OK;
 if (view->bits == 1)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.aux.scale.mode is %d; RELU's aux is a bit mask and takes no scale",
    (int)scale->mode);
 if (!gemmepi__takes_scale(view->dtype) || problem->accumulator == GEMMEPI_I32)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.scale.mode is %d; %s takes no scale: %s",
    name, (int)scale->mode, gemmepi__dtype((gemmepi_dtype)view->dtype)->name,
    gemmepi__takes_scale(view->dtype) ? "the result is in I32"
    : "accepted with E4M3, E5M2 and I8");
 if (!is_factor && scale->mode != GEMMEPI_SCALE_TENSOR)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.%s.scale.mode is %d; accepted are NONE (0) and TENSOR (1): the others are for a and b",
   name, (int)scale->mode);
 view->scale = (int32_t)scale->mode;
 operand = GEMMEPI__SCALE_OF(operand);
 switch (scale->mode) {
 case GEMMEPI_SCALE_OUTER:
  return gemmepi__take_numbers(problem, operand, GEMMEPI_F32, 1, outer, outer, scale->batch_stride, 16);
 case GEMMEPI_SCALE_VECTOR_128:
  return gemmepi__take_numbers(problem, operand, GEMMEPI_F32, steps, outer, outer, scale->batch_stride,
    16);
 case GEMMEPI_SCALE_BLOCK_128:
  return gemmepi__take_numbers(problem, operand, GEMMEPI_F32, gemmepi__blocks_of_128(outer), steps,
    (steps + 3) / 4 * 4, scale->batch_stride, 16);
 default:
  return gemmepi__take_numbers(problem, operand, GEMMEPI_F32, 1, 1, 1, scale->batch_stride, 4);
 }
}

static gemmepi_status gemmepi__take_amax(gemmepi__problem *problem, uint64_t flag, int operand, int of) {
 const gemmepi__view *view = &problem->views[of];
 const char *name = flag == GEMMEPI_AMAX_D ? "AMAX_D" : "AMAX_AUX";
 int dtype = problem->accumulator;
 if (!(problem->flags & flag))
  return GEMMEPI_OK;
 if (of == GEMMEPI__AUX && !view->written)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.flags has AMAX_AUX, but the epilogue stores no aux: it goes with AUX");
 if (view->bits == 1 || dtype == GEMMEPI_I32)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.flags has %s; %s has no amax", name,
    view->bits == 1 ? "RELU's bit mask" : "an I32 tensor");
 problem->views[operand].written = 1;
 return gemmepi__take_numbers(problem, operand, dtype, 1, 1, 1, 0, dtype == GEMMEPI_F64 ? 8 : 4);
}

/* The alignment that a pointer of the view has: the promise, and the element in any case. */
static int32_t gemmepi__alignment_for(const gemmepi__problem *problem, const gemmepi__view *view) {
 int32_t element = view->bits > 8 ? view->bits / 8 : 1;
 return problem->alignment > element ? problem->alignment : element;
}

/* A matrix in the caller's order: rows x columns of op(), so exchanged here where it is stored transposed. */
static gemmepi_status gemmepi__take_matrix(gemmepi__problem *problem, int operand,
    const gemmepi_matrix *matrix, gemmepi_dtype default_dtype,
    int64_t rows, int64_t columns, gemmepi_order order) {
 gemmepi__view *view = &problem->views[operand];
 const char *name = gemmepi__operand_names[operand];
 int is_factor = operand == GEMMEPI__A || operand == GEMMEPI__B;
 int lines_are_rows = (order == GEMMEPI_ROW_MAJOR) != (matrix->transposed != 0);
 gemmepi_status status = GEMMEPI_OK;
 if (matrix->transposed != 0 && (matrix->transposed != 1 || !is_factor))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.transposed is %d; accepted %s%s", name,
    matrix->transposed,
    is_factor ? "are 0 and 1" : "is 0: only a and b may be stored transposed",
    matrix->transposed == 1 ? "" : GEMMEPI__UNINITIALISED);
 view->dtype = (int32_t)(matrix->dtype ? matrix->dtype : default_dtype);
 view->transposed = matrix->transposed;
 view->lines = lines_are_rows ? rows : columns;
 view->length = lines_are_rows ? columns : rows;
 view->ld = matrix->ld;
 view->batch_stride = matrix->batch_stride;
 if (operand == GEMMEPI__AUX && gemmepi__aux_is_mask(problem->epilogue)) {
  view->bits = 1;
  if (matrix->dtype != GEMMEPI_DTYPE_DEFAULT)
   return gemmepi__fail(
    GEMMEPI_INVALID_ARGUMENT,
    "desc.aux.dtype is %d; RELU's aux is a mask of bits, not of numbers: leave it 0",
    (int)matrix->dtype);
 } else {
  if (!is_factor)
   status = gemmepi__check_side_dtype(problem, operand, (gemmepi_dtype)view->dtype);
  view->bits = (int32_t)(8 * gemmepi__dtype((gemmepi_dtype)view->dtype)->size);
 }
 view->alignment = gemmepi__alignment_for(problem, view);
 if (!status)
  status = gemmepi__check_view(view, name, problem->batch);
 if (!status)
  status = gemmepi__take_scale(problem, operand, &matrix->scale, operand == GEMMEPI__B ? columns : rows,
    operand == GEMMEPI__B ? rows : columns);
 return status;
}

static gemmepi_status gemmepi__take_vector(gemmepi__problem *problem, int operand,
    const gemmepi_vector *vector, int64_t length) {
 gemmepi__view *view = &problem->views[operand];
 gemmepi_dtype d = (gemmepi_dtype)problem->views[GEMMEPI__D].dtype;
 gemmepi_dtype dtype = vector->dtype ? vector->dtype : gemmepi__default_dtype(operand, d);
 gemmepi_status status = gemmepi__check_side_dtype(problem, operand, dtype);
 if (status)
  return status;
 view->dtype = (int32_t)dtype;
 view->bits = (int32_t)(8 * gemmepi__dtype(dtype)->size);
 view->alignment = gemmepi__alignment_for(problem, view);
 view->lines = 1;
 view->length = length;
 view->batch_stride = vector->batch_stride;
 return gemmepi__check_view(view, gemmepi__operand_names[operand], problem->batch);
}

static const char *const gemmepi__compute_names[] = {"DEFAULT", "F32", "TF32", "F64", "I32"};

/* The arithmetic of operands whose values `common` holds, and of a result in d. */
static gemmepi_status gemmepi__take_compute(gemmepi__problem *problem, const gemmepi_matmul_desc *desc,
    gemmepi_dtype a, gemmepi_dtype b, gemmepi_dtype d) {
 gemmepi_compute compute = desc->compute;
 int common = gemmepi__common_dtype((int)a, (int)b);
 int fits;
 if (d == GEMMEPI_I32 && common != GEMMEPI_I8)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.d.dtype is I32 with %s and %s operands; I32 is for results of two I8 operands",
   gemmepi__dtype(a)->name, gemmepi__dtype(b)->name);
 if ((unsigned)compute > GEMMEPI_COMPUTE_I32)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.compute is %d, which is no gemmepi_compute: accepted are 0 (DEFAULT) to 4 (I32)%s",
   (int)compute, GEMMEPI__UNINITIALISED);
 if (compute == GEMMEPI_COMPUTE_DEFAULT)
  compute = common == GEMMEPI_F64  ? GEMMEPI_COMPUTE_F64
    : common == GEMMEPI_I8 ? GEMMEPI_COMPUTE_I32
    : GEMMEPI_COMPUTE_F32;
 fits = compute == GEMMEPI_COMPUTE_F64    ? common == GEMMEPI_F64
   : compute == GEMMEPI_COMPUTE_TF32 ? common == GEMMEPI_F32
   : compute == GEMMEPI_COMPUTE_I32  ? common == GEMMEPI_I8
    : common != GEMMEPI_F64 && d != GEMMEPI_I32;
 if (!fits)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.compute is %s with %s and %s operands and a result in %s; F64 goes with F64 alone, "
   "TF32 where F32 is the type that holds both, I32 with I8 operands, F32 with all but F64 and I32 results",
   gemmepi__compute_names[compute], gemmepi__dtype(a)->name, gemmepi__dtype(b)->name,
   gemmepi__dtype(d)->name);
 if ((problem->flags & GEMMEPI_FAST_ACCUMULATION) && !(gemmepi__is_fp8((int)a) && gemmepi__is_fp8((int)b)))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.flags has FAST_ACCUMULATION with %s and %s operands; it goes with E4M3 and E5M2",
   gemmepi__dtype(a)->name, gemmepi__dtype(b)->name);
 problem->compute = (int32_t)compute;
 problem->common = common;
 problem->accumulator = common == GEMMEPI_F64                      ? GEMMEPI_F64
    : common == GEMMEPI_I8 && d == GEMMEPI_I32 ? GEMMEPI_I32
    : GEMMEPI_F32;
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_factor_dtype(const char *name, gemmepi_dtype dtype) {
 if (!gemmepi__dtype_is_known(dtype))
  return gemmepi__refuse_dtype(name, dtype);
 if (dtype == GEMMEPI_I32)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.%s.dtype is I32, which is for results of I8 operands", name);
 return GEMMEPI_OK;
}

/* a, b and the kind of arithmetic */
static gemmepi_status gemmepi__take_operands(gemmepi__problem *problem, const gemmepi_matmul_desc *desc) {
 gemmepi_dtype a = desc->a.dtype ? desc->a.dtype : GEMMEPI_F32, b = desc->b.dtype ? desc->b.dtype : a;
 gemmepi_status status = gemmepi__check_factor_dtype("a", a);
 if (!status)
  status = gemmepi__check_factor_dtype("b", b);
 if (!status && (a == GEMMEPI_F64) != (b == GEMMEPI_F64))
  status = gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.b.dtype is %s and desc.a.dtype %s; F64 goes with F64 alone",
    gemmepi__dtype(b)->name, gemmepi__dtype(a)->name);
 if (!status)
  status = gemmepi__take_compute(problem, desc, a, b, desc->d.dtype ? desc->d.dtype : a);
 if (!status)
  status = gemmepi__take_matrix(problem, GEMMEPI__A, &desc->a, a, desc->m, desc->k, desc->order);
 if (!status)
  status = gemmepi__take_matrix(problem, GEMMEPI__B, &desc->b, b, desc->k, desc->n, desc->order);
 return status;
}

/* What an I32 result cannot have besides scales and amax. */
static gemmepi_status gemmepi__check_integer_epilogue(const gemmepi__problem *problem) {
 char name[256];
 gemmepi__text text = gemmepi__text_in(name, sizeof name);
 if (problem->accumulator != GEMMEPI_I32)
  return GEMMEPI_OK;
 gemmepi__append_epilogue(&text, problem->epilogue);
 if (!gemmepi__activation_has(problem->epilogue, GEMMEPI__OF_INTEGERS))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.epilogue is %s with a result in I32; its activation may be NONE or RELU: "
    "others need a floating-point or I8 result",
    name);
 if (gemmepi__has(problem, GEMMEPI_BACKWARD | GEMMEPI_BGRAD))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.epilogue is %s with a result in I32; BACKWARD and BGRAD have no meaning there", name);
 return GEMMEPI_OK;
}

/* A matrix of op(A) op(B)'s shape, but for its extent along the bias, which is `along`. */
static gemmepi_status gemmepi__take_beside(gemmepi__problem *problem, int operand,
    const gemmepi_matmul_desc *desc, const gemmepi_matrix *matrix,
    gemmepi_dtype default_dtype, int64_t along) {
 int by_rows = desc->order == GEMMEPI_ROW_MAJOR;
 return gemmepi__take_matrix(problem, operand, matrix, default_dtype, by_rows ? desc->m : along,
    by_rows ? along : desc->n, desc->order);
}

static gemmepi_status gemmepi__take_epilogue(gemmepi__problem *problem, const gemmepi_matmul_desc *desc,
    int64_t along) {
 int64_t result = gemmepi__result_columns(desc->epilogue, along);
 gemmepi_dtype d = (gemmepi_dtype)problem->views[GEMMEPI__D].dtype;
 gemmepi_status status = gemmepi__check_integer_epilogue(problem);
 if (!status && gemmepi__has(problem, GEMMEPI_AUX | GEMMEPI_BACKWARD))
  status = gemmepi__take_beside(problem, GEMMEPI__AUX, desc, &desc->aux, d,
    gemmepi__aux_columns(desc->epilogue, along));
 if (!status && gemmepi__has(problem, GEMMEPI_RESIDUAL))
  status = gemmepi__take_beside(problem, GEMMEPI__RESIDUAL, desc, &desc->residual,
    gemmepi__default_dtype(GEMMEPI__RESIDUAL, d), result);
 if (!status && gemmepi__has(problem, GEMMEPI_BIAS))
  status = gemmepi__take_vector(problem, GEMMEPI__BIAS, &desc->bias, along);
 if (!status && gemmepi__has(problem, GEMMEPI_BGRAD))
  status = gemmepi__take_vector(problem, GEMMEPI__BIAS_GRAD, &desc->bias_grad, result);
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
 status = gemmepi__take_amax(problem, GEMMEPI_AMAX_D, GEMMEPI__AMAX_D, GEMMEPI__D);
 if (!status)
  status = gemmepi__take_amax(problem, GEMMEPI_AMAX_AUX, GEMMEPI__AMAX_AUX, GEMMEPI__AUX);
 if (status)
  return status;
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
 gemmepi__view *views = problem->views, a = views[GEMMEPI__A], scale_a = views[GEMMEPI__SCALE_A];
 int64_t m = problem->m;
 views[GEMMEPI__A] = views[GEMMEPI__B];
 views[GEMMEPI__B] = a;
 views[GEMMEPI__SCALE_A] = views[GEMMEPI__SCALE_B];
 views[GEMMEPI__SCALE_B] = scale_a;
 problem->m = problem->n;
 problem->n = m;
 problem->exchanged = 1;
 problem->epilogue = gemmepi__callers_epilogue(problem->epilogue, 1); /* the way back is the same */
}

/* desc.has_parameter and desc.activation_parameter of any desc. */
static gemmepi_status gemmepi__check_parameter(gemmepi_epilogue epilogue, int has_parameter,
    double parameter) {
 if (has_parameter != 0 && has_parameter != 1)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.has_parameter is %d; accepted are 0 and 1%s",
    has_parameter, GEMMEPI__UNINITIALISED);
 if (!has_parameter && parameter == 0)
  return GEMMEPI_OK;
 if (gemmepi__default_parameter(epilogue) == 0)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.activation_parameter is given (%g), but the activation %s has none: leave "
    "it and desc.has_parameter 0 (in a short call NAN)",
    parameter, gemmepi__activation_name(epilogue));
 if (!has_parameter)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.activation_parameter is %g, but desc.has_parameter is 0: %s", parameter,
    parameter == parameter
    ? "set that to 1"
    : "leave it 0 for the default (NAN is for the short calls)");
 if (parameter - parameter != 0)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.activation_parameter is %g; it must be finite",
    parameter);
 return GEMMEPI_OK;
}

/* It is computed with in the accumulator's type. */
static gemmepi_status gemmepi__check_range_of_parameter(double parameter, int accumulator) {
 if (accumulator == GEMMEPI_F64 || (parameter <= FLT_MAX && parameter >= -FLT_MAX))
  return GEMMEPI_OK;
 return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.activation_parameter is %g; the largest F32 is 3.4e38", parameter);
}

/* ACCUMULATE adds the product to D before anything else; what would come between the two is refused. */
static gemmepi_status gemmepi__check_accumulation(const gemmepi_matmul_desc *desc) {
 const gemmepi_matrix *c = &desc->c;
 uint64_t between = desc->epilogue & (GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_AUX | GEMMEPI_BGRAD);
 const char *name = between ? gemmepi__flag(between)->name : gemmepi__activation_name(desc->epilogue);
 if (!(desc->flags & GEMMEPI_ACCUMULATE))
  return GEMMEPI_OK;
 if (between || gemmepi__activation(desc->epilogue) != GEMMEPI_NONE)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.flags has ACCUMULATE and desc.epilogue %s: it is not clear which comes first. To add D after the "
   "epilogue take RESIDUAL with args.residual = args.d%s",
   name,
   desc->epilogue & GEMMEPI_GATED ? "" : ", to add it before, args.beta 1 and args.c = args.d");
 if (c->dtype || c->transposed || c->ld || c->batch_stride || c->scale.mode || c->scale.batch_stride)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.flags has ACCUMULATE, and desc.c is not zero; c is d then: leave it zero");
 if (desc->d.scale.mode != GEMMEPI_SCALE_NONE)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.flags has ACCUMULATE, and desc.d.scale.mode is %d; a d that is read and "
    "written has no one scale: give c with its own scale and args.beta",
    (int)desc->d.scale.mode);
 return GEMMEPI_OK;
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
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.order is %d, which is no gemmepi_order: accepted are GEMMEPI_ROW_MAJOR (0) and "
   "GEMMEPI_COLUMN_MAJOR (1)%s",
   (int)desc->order, GEMMEPI__UNINITIALISED);
 status = gemmepi__check_flags_of(GEMMEPI__OF_PRODUCT, desc->flags, 0);
 if (status)
  return status;
 if (desc->alignment > 256 || (desc->alignment & (desc->alignment - 1)))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.alignment is %llu; accepted are powers of two up to 256, and 0%s",
    (gemmepi__ull)desc->alignment, GEMMEPI__UNINITIALISED);
 status = gemmepi__check_epilogue(desc->epilogue);
 if (!status)
  status = gemmepi__check_parameter(desc->epilogue, desc->has_parameter, desc->activation_parameter);
 return status ? status : gemmepi__check_accumulation(desc);
}

static void gemmepi__list_operands(gemmepi__problem *problem) {
 int operand, written;
 for (written = 1; written >= 0; written--)
  for (operand = 0; operand < GEMMEPI__OPERANDS; operand++)
   if (gemmepi__has_operand(problem, operand) && problem->views[operand].written == written) {
    problem->used |= 1u << operand;
    problem->list[problem->count++] = (int8_t)operand;
    problem->outputs += written;
   }
}

/* desc -> problem, or the sentence that says what is wrong with it. alignment is that of all matrices and vectors. */
static gemmepi_status gemmepi__normalise(const gemmepi_matmul_desc *desc, size_t alignment,
    gemmepi__problem *problem) {
 gemmepi_matrix c;
 gemmepi_dtype d;
 gemmepi_status status;
 int64_t along, result; /* the extents along the bias of the product and of D */
 memset(problem, 0, sizeof *problem);
 if (!desc)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc is NULL");
 status = gemmepi__check_scalars_of_desc(desc);
 if (status)
  return status;
 problem->m = desc->m;
 problem->n = desc->n;
 problem->k = desc->k;
 problem->batch = desc->batch ? desc->batch : 1;
 problem->epilogue = desc->epilogue;
 problem->parameter =
  desc->has_parameter ? desc->activation_parameter : gemmepi__default_parameter(desc->epilogue);
 problem->flags = desc->flags;
 problem->alignment = (int32_t)(desc->alignment ? desc->alignment : alignment);
 along = desc->order == GEMMEPI_ROW_MAJOR ? desc->n : desc->m;
 result = gemmepi__result_columns(desc->epilogue, along);
 if (result < 0)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.%s is %lld; with GATED it counts both halves and must be even",
    desc->order == GEMMEPI_ROW_MAJOR ? "n" : "m", (long long)along);
 status = gemmepi__take_operands(problem, desc);
 if (!status)
  status = gemmepi__check_range_of_parameter(problem->parameter, problem->accumulator);
 if (!status)
  status = gemmepi__take_beside(problem, GEMMEPI__D, desc, &desc->d,
    desc->a.dtype ? desc->a.dtype : GEMMEPI_F32, result);
 if (status)
  return status;
 c = desc->c;
 d = (gemmepi_dtype)problem->views[GEMMEPI__D].dtype;
 if (!c.dtype && !c.transposed && !c.ld && !c.batch_stride && result == along) {
  c.ld = problem->views[GEMMEPI__D].ld;
  c.batch_stride = problem->views[GEMMEPI__D].batch_stride;
 } else if (!c.dtype && !c.transposed && !c.ld && !c.batch_stride) {
  c.batch_stride = desc->m <= 0 || desc->n <= GEMMEPI__MAX_ELEMENTS / desc->m ? desc->m * desc->n : 0;
 }
 status = gemmepi__take_matrix(
  problem, GEMMEPI__C, &c, desc->flags & GEMMEPI_ACCUMULATE ? d : gemmepi__default_dtype(GEMMEPI__C, d),
  desc->m, desc->n, desc->order);
 if (!status)
  status = gemmepi__take_epilogue(problem, desc, along);
 if (!status)
  status = gemmepi__check_outputs(problem);
 if (status)
  return status;
 if (desc->order == GEMMEPI_COLUMN_MAJOR)
  gemmepi__fold_column_major(problem);
 gemmepi__list_operands(problem);
 return GEMMEPI_OK;
}

#define GEMMEPI__DEFAULT_ALIGNMENT 16

static void gemmepi__fill_needs(const gemmepi__problem *problem, gemmepi_epilogue_needs *needs) {
 const gemmepi__view *views = problem->views;
 memset(needs, 0, sizeof *needs);
 needs->reads_bias = views[GEMMEPI__BIAS].dtype != 0;
 needs->reads_aux = gemmepi__has(problem, GEMMEPI_BACKWARD);
 needs->reads_residual = views[GEMMEPI__RESIDUAL].dtype != 0;
 needs->writes_aux = gemmepi__has(problem, GEMMEPI_AUX);
 needs->writes_bias_grad = views[GEMMEPI__BIAS_GRAD].dtype != 0;
 needs->accumulates_bias_grad = gemmepi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD);
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
 needs->scale_a_bytes = (size_t)views[problem->exchanged ? GEMMEPI__SCALE_B : GEMMEPI__SCALE_A].bytes;
 needs->scale_b_bytes = (size_t)views[problem->exchanged ? GEMMEPI__SCALE_A : GEMMEPI__SCALE_B].bytes;
}

GEMMEPI_API gemmepi_status gemmepi_epilogue_info(const gemmepi_matmul_desc *desc,
    gemmepi_epilogue_needs *needs) {
 gemmepi__problem problem;
 gemmepi_status status;
 if (!needs)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "needs is NULL");
 memset(needs, 0, sizeof *needs);
 status = gemmepi__normalise(desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem);
 if (!status)
  gemmepi__fill_needs(&problem, needs);
 return status;
}
/* The pointers of one run, checked against the problem. On the way of every run: no allocation, no division. */

/* Whether strided tensors share a byte. The quick answers come first, since this is asked at every run of tensors whose
 ranges overlap: an empty tensor, and ranges apart. Else two elements share a byte where

  sum of step[i] x[i] = total,   0 <= x[i] <= most[i]

 has a solution in whole numbers, a term for each axis and one (of step 1) for the bytes of an element. Narrowing the
 terms settles all that comes of slicing one matrix, and three terms (the lines of two matrices, and bytes) are settled by
 Euclid's algorithm; what is left is searched, a bounded number of steps. */

#define GEMMEPI__OVERLAP_STEPS 4000 /* a millisecond or two */

/* What layouts_share and layout_repeats answer. */
enum { GEMMEPI__APART, GEMMEPI__SHARED, GEMMEPI__UNDECIDED };

/* A strided tensor in bytes: element (i0, i1, ..) covers `size` bytes from i0 stride[0] + i1 stride[1] + .. on. It is
 empty where an extent or size is 0, and spans less than 2^62 bytes. Strides of extents of 1 do not count. */
typedef struct gemmepi__layout {
 int rank;
 int64_t size;
 int64_t shape[8], stride[8];
} gemmepi__layout;

/* step x, 0 <= x <= most; step is positive. */
typedef struct gemmepi__term {
 int64_t step, most;
} gemmepi__term;

typedef struct gemmepi__equation {
 int count;
 int64_t total;
 gemmepi__term terms[17]; /* the axes of two layouts, and the bytes of an element */
} gemmepi__equation;

static void gemmepi__add_term(gemmepi__equation *equation, int64_t step, int64_t most) {
 gemmepi__term *term = &equation->terms[equation->count];
 if (step == 0 || most == 0)
  return;
 term->step = step;
 term->most = most;
 equation->count++;
}

static void gemmepi__sort_terms(gemmepi__equation *equation) {
 int i, j;
 for (i = 1; i < equation->count; i++) {
  gemmepi__term term = equation->terms[i];
  for (j = i; j > 0 && equation->terms[j - 1].step > term.step; j--)
   equation->terms[j] = equation->terms[j - 1];
  equation->terms[j] = term;
 }
}

/* Sorts the terms, drops those that are always 0, and folds a term into a smaller one whose values reach from one of
 its values to the next: then both together are simply more values of the smaller one. So rows without padding become
 one line, and equal strides one term. */
static void gemmepi__fold_terms(gemmepi__equation *equation) {
 int i, j, kept = 0;
 gemmepi__sort_terms(equation);
 for (i = 0; i < equation->count; i++) {
  gemmepi__term term = equation->terms[i];
  for (j = 0; j < kept && term.most; j++) {
   gemmepi__term *inner = &equation->terms[j];
   int64_t ratio = term.step / inner->step;
   if (ratio - 1 <= inner->most && term.step % inner->step == 0) {
    inner->most += ratio * term.most;
    term.most = 0;
   }
  }
  if (term.most)
   equation->terms[kept++] = term;
 }
 equation->count = kept;
}

/* The greatest common divisor of a and b, not both 0; a * factor is the same modulo b. */
static int64_t gemmepi__common_divisor(int64_t a, int64_t b, int64_t *factor) {
 int64_t next = 0;
 *factor = 1;
 while (b) {
  int64_t ratio = a / b, rest = a % b, before = *factor;
  *factor = next;
  next = before - ratio * next;
  a = b;
  b = rest;
 }
 return a;
}

/* a * b modulo m without more than 63 bits; a and b are below m. */
static int64_t gemmepi__times_modulo(int64_t a, int64_t b, int64_t m) {
 int64_t product = 0;
 if (m <= INT32_MAX)
  return a * b % m;
 for (; b; b >>= 1) {
  if (b & 1)
   product = product < m - a ? product + a : product - (m - a);
  a = a < m - a ? a + a : a - (m - a);
 }
 return product;
}

/* Leaves term i only the values that it may have: no less than the other terms leave over, no more than total, and such
 that the others' common divisor divides what is left for them. The least goes into total. 0 where there is none. */
static int gemmepi__narrow_term(gemmepi__equation *equation, int i) {
 gemmepi__term *term = &equation->terms[i];
 int64_t others = 0, divisor = 0, apart = 1, least = 0, most = equation->total / term->step, factor;
 int j;
 for (j = 0; j < equation->count; j++) {
  if (j == i)
   continue;
  others += equation->terms[j].step * equation->terms[j].most;
  divisor = gemmepi__common_divisor(equation->terms[j].step, divisor, &factor);
 }
 if (most > term->most)
  most = term->most;
 if (equation->total > others)
  least = (equation->total - others - 1) / term->step + 1;
 if (least > most)
  return 0;
 equation->total -= term->step * least;
 most -= least;
 if (divisor) {
  int64_t common = gemmepi__common_divisor(term->step % divisor, divisor, &factor);
  if (equation->total % common)
   return 0;
  apart = divisor / common;
  factor = factor < 0 ? factor + apart : factor;
  least = gemmepi__times_modulo(equation->total / common % apart, factor % apart, apart);
  if (least > most)
   return 0;
  equation->total -= term->step * least;
  most -= least;
 }
 term->most = most / apart;
 if (term->most)
  term->step *= apart;
 return 1;
}

/* Folds and narrows while that changes more than bounds. 0 where there is no solution. One term or two are settled
 here: either there is none, or nothing is left of them. */
static int gemmepi__simplify(gemmepi__equation *equation) {
 int i, again;
 do {
  if (equation->total < 0)
   return 0;
  again = 0;
  gemmepi__fold_terms(equation);
  for (i = 0; i < equation->count; i++) {
   int64_t step = equation->terms[i].step;
   if (!gemmepi__narrow_term(equation, i))
    return 0;
   again |= equation->terms[i].step != step || equation->terms[i].most == 0;
  }
 } while (again);
 return equation->count > 0 || equation->total == 0;
}

/* The least t from 0 to `most` for which a t modulo m lies in low .. high, or -1; 0 <= a < m, 0 <= low <= high < m. Where
 no multiple of a lies in between, a t passes m so often that the rest, modulo a, does: Euclid's algorithm. */
static int64_t gemmepi__first_within(int64_t a, int64_t m, int64_t low, int64_t high, int64_t most) {
 int64_t t, rounds, least = low;
 if (low == 0)
  return 0;
 if (a == 0)
  return -1;
 if (a > m - a) { /* the same, backwards */
  a = m - a;
  low = m - high;
  high = m - least;
 }
 t = (low - 1) / a + 1;
 if (t > most)
  return -1;
 if (a * t <= high)
  return t;
 rounds = gemmepi__first_within((a - m % a) % a, a, low % a, high % a, (a * most - low) / m);
 t = rounds < 0 ? -1 : (low + m * rounds - 1) / a + 1;
 return t <= most ? t : -1;
}

/* Three terms of which the smallest step divides the others. They are simplified: so its values do not reach from one value
 of another term to the next, and for each x of the middle one there is one y of the last at most. */
static int gemmepi__three_terms_meet(const gemmepi__equation *equation) {
 const gemmepi__term *terms = equation->terms;
 int64_t unit = terms[0].step, width = terms[0].most, total = equation->total / unit;
 int64_t a = terms[1].step / unit, b = terms[2].step / unit, beyond = b * (terms[2].most + 1), rest;
 int64_t least = total >= beyond ? (total - beyond) / a + 1 : 0; /* x from which on y is not too large */
 int64_t most = total / a < terms[1].most ? total / a : terms[1].most;
 if (least > most)
  return 0;
 rest = (total - a * least) % b;
 return rest <= width || gemmepi__first_within(a, b, rest - width, rest, most - least) >= 0;
}

static int gemmepi__are_three_in_units(const gemmepi__equation *equation) {
 return equation->count == 3 && equation->terms[1].step % equation->terms[0].step == 0 &&
   equation->terms[2].step % equation->terms[0].step == 0;
}

/* Whether there is a solution: tries each value of the term that has the fewest. 1 also where `steps` run out. */
static int gemmepi__has_solution(gemmepi__equation equation, int *steps) {
 gemmepi__term term;
 int64_t x;
 int i, fewest = 0;
 if (--*steps < 0)
  return 1;
 if (!gemmepi__simplify(&equation))
  return 0;
 if (equation.count == 0)
  return 1;
 if (gemmepi__are_three_in_units(&equation))
  return gemmepi__three_terms_meet(&equation);
 for (i = 1; i < equation.count; i++)
  if (equation.terms[i].most <= equation.terms[fewest].most)
   fewest = i;
 term = equation.terms[fewest];
 equation.terms[fewest] = equation.terms[--equation.count];
 for (x = 0; x <= term.most && equation.total >= 0; x++, equation.total -= term.step)
  if (gemmepi__has_solution(equation, steps))
   return 1;
 return 0;
}

static int gemmepi__layout_is_empty(const gemmepi__layout *layout) {
 int i, empty = layout->size <= 0;
 for (i = 0; i < layout->rank; i++)
  empty |= layout->shape[i] <= 0;
 return empty;
}

/* A term for each axis. A negative stride is its positive one from the other end, so the layout covers bytes from
 *begin to *end. */
static void gemmepi__add_axes(gemmepi__equation *equation, const gemmepi__layout *layout, int64_t *begin,
    int64_t *end) {
 int i;
 *begin = 0;
 *end = layout->size;
 for (i = 0; i < layout->rank; i++) {
  int64_t stride = layout->stride[i], most = layout->shape[i] - 1;
  if (most == 0)
   continue;
  gemmepi__add_term(equation, stride < 0 ? -stride : stride, most);
  *(stride < 0 ? begin : end) += stride * most;
 }
}

/* The equation of a byte in p that is one in q, q counted from its end so that all terms have one sign. 0 where the
 ranges are apart. */
static int gemmepi__share_equation(const gemmepi__layout *p, const gemmepi__layout *q, int64_t distance,
    gemmepi__equation *equation) {
 int64_t p_begin, p_end, q_begin, q_end;
 equation->count = 0;
 gemmepi__add_axes(equation, p, &p_begin, &p_end);
 gemmepi__add_axes(equation, q, &q_begin, &q_end);
 gemmepi__add_term(equation, 1, p->size - 1 + q->size - 1);
 if (distance >= p_end - q_begin || distance <= p_begin - q_end)
  return 0;
 equation->total = distance - (p_begin - q_end) - 1;
 return 1;
}

/* What follows a sentence that says that tensors overlap. */
static const char *gemmepi__if_undecided(int shares) {
 return shares == GEMMEPI__UNDECIDED
    ? ", or lies so between its lines that telling would take too long: give them ranges of their own"
    : "";
}

/* Whether the two, q's first element lying `distance` bytes after p's, have a byte in common. Not decided where that is not
 settled within a bounded number of steps. */
static int gemmepi__layouts_share(const gemmepi__layout *p, const gemmepi__layout *q, int64_t distance) {
 gemmepi__equation equation;
 int steps = GEMMEPI__OVERLAP_STEPS;
 if (gemmepi__layout_is_empty(p) || gemmepi__layout_is_empty(q) ||
  !gemmepi__share_equation(p, q, distance, &equation) || !gemmepi__has_solution(equation, &steps))
  return GEMMEPI__APART;
 return steps < 0 ? GEMMEPI__UNDECIDED : GEMMEPI__SHARED;
}

#ifndef GEMMEPI_NO_ELEMENTWISE
/* Whether two elements (different indices) of p have a byte in common. Likewise bounded. Their indices differ most
 outwardly along some axis: so for each axis whether what is inside it, moved along it, meets itself. That inside lies
 at both ends of the difference, so its terms count twice. */
static int gemmepi__layout_repeats(const gemmepi__layout *p) {
 gemmepi__equation axes, inside;
 int64_t begin, end, reach = p->size - 1;
 int i, steps = GEMMEPI__OVERLAP_STEPS;
 if (gemmepi__layout_is_empty(p))
  return 0;
 for (i = 0; i < p->rank; i++)
  if (p->shape[i] > 1 && p->stride[i] == 0)
   return 1;
 axes.count = inside.count = 0;
 gemmepi__add_axes(&axes, p, &begin, &end);
 gemmepi__sort_terms(&axes);
 gemmepi__add_term(&inside, 1, 2 * reach);
 for (i = 0; i < axes.count; i++) {
  gemmepi__term axis = axes.terms[i];
  if (axis.step <= reach) { /* else the inside is shorter than a step */
   gemmepi__equation moved = inside;
   moved.total = reach - axis.step;
   gemmepi__add_term(&moved, axis.step, axis.most - 1);
   if (gemmepi__has_solution(moved, &steps))
    return steps < 0 ? GEMMEPI__UNDECIDED : GEMMEPI__SHARED;
  }
  gemmepi__add_term(&inside, axis.step, 2 * axis.most);
  reach += axis.step * axis.most;
 }
 return 0;
}
#endif

/* A run's pointers in the order of the views (so exchanged where the problem is), and its scalars. */
typedef struct gemmepi__arguments {
 void *pointers[GEMMEPI__OPERANDS];
 double alpha, beta; /* 1 and 0 where they lie on the device */
 const void *device_alpha, *device_beta; /* NULL where they lie on the host, or are 1 and 0 */
 int uses_c;
} gemmepi__arguments;

/* Casts the const of inputs away: the one place where args becomes a table. */
static void gemmepi__take_pointers(const gemmepi__problem *problem, const gemmepi_matmul_args *args,
    void **pointers) {
 int swap = problem->exchanged;
 const void *inputs[GEMMEPI__AMAX_D];
 inputs[GEMMEPI__A] = swap ? args->b : args->a;
 inputs[GEMMEPI__B] = swap ? args->a : args->b;
 inputs[GEMMEPI__C] = args->c;
 inputs[GEMMEPI__D] = args->d;
 inputs[GEMMEPI__AUX] = args->aux;
 inputs[GEMMEPI__RESIDUAL] = args->residual;
 inputs[GEMMEPI__BIAS] = args->bias;
 inputs[GEMMEPI__BIAS_GRAD] = args->bias_grad;
 inputs[GEMMEPI__SCALE_A] = swap ? args->scale_b : args->scale_a;
 inputs[GEMMEPI__SCALE_B] = swap ? args->scale_a : args->scale_b;
 inputs[GEMMEPI__SCALE_C] = args->scale_c;
 inputs[GEMMEPI__SCALE_D] = args->scale_d;
 inputs[GEMMEPI__SCALE_AUX] = args->scale_aux;
 inputs[GEMMEPI__SCALE_RESIDUAL] = args->scale_residual;
 memcpy(pointers, inputs, sizeof inputs);
 pointers[GEMMEPI__AMAX_D] = args->amax_d;
 pointers[GEMMEPI__AMAX_AUX] = args->amax_aux;
}

/* The caller's name of an operand. */
static const char *gemmepi__argument_name(const gemmepi__problem *problem, int operand) {
 int is_a = operand == GEMMEPI__A || operand == GEMMEPI__SCALE_A;
 int is_b = operand == GEMMEPI__B || operand == GEMMEPI__SCALE_B;
 if (problem->exchanged && (is_a || is_b))
  operand += is_a ? 1 : -1;
 return gemmepi__operand_names[operand];
}

/* The flags of an epilogue that use an operand, or the one whose scale it is; not of a to d, which every product has. */
static const char *gemmepi__flags_for(int operand) {
 switch (operand < GEMMEPI__SCALE_A ? operand : operand - GEMMEPI__SCALE_A) {
 case GEMMEPI__AUX:
  return "AUX or BACKWARD";
 case GEMMEPI__RESIDUAL:
  return "RESIDUAL";
 case GEMMEPI__BIAS:
  return "BIAS";
 default:
  return "BGRAD, BGRAD_A or BGRAD_B";
 }
}

static gemmepi_status gemmepi__refuse_pointer(const gemmepi__problem *problem, int operand,
    const void *pointer) {
 char name[256];
 gemmepi__text text = gemmepi__text_in(name, sizeof name);
 const char *argument = gemmepi__argument_name(problem, operand);
 if (operand >= GEMMEPI__AMAX_D)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is %s, but desc.flags has %s AMAX_%s",
    argument, pointer ? "given" : "NULL", pointer ? "no" : "the flag",
    operand == GEMMEPI__AMAX_D ? "D" : "AUX");
 if (operand >= GEMMEPI__SCALE_A && (problem->used >> (operand - GEMMEPI__SCALE_A) & 1))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is %s, but desc.%s.scale.mode is %s",
    argument, pointer ? "given" : "NULL", argument + strlen("scale_"),
    pointer ? "NONE" : "not NONE");
 if (operand <= GEMMEPI__D)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is NULL; the product needs it", argument);
 gemmepi__append_epilogue(&text, gemmepi__callers_epilogue(problem->epilogue, problem->exchanged));
 if (pointer)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.%s is given (%p), but the epilogue %s does not use it; one with %s does",
    argument, pointer, name, gemmepi__flags_for(operand));
 return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is NULL; the epilogue %s needs it", argument,
    name);
}

/* An operand without a byte needs no pointer; C needs one where it is read. */
static int gemmepi__may_lack(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int operand) {
 if (operand == GEMMEPI__C || operand == GEMMEPI__SCALE_C)
  return !arguments->uses_c;
 return problem->views[operand].bytes == 0;
}

/* c and beta come together; with ACCUMULATE neither. */
static gemmepi_status gemmepi__check_c(const gemmepi__problem *problem, const gemmepi_matmul_args *args) {
 if (problem->flags & GEMMEPI_ACCUMULATE && (args->c || args->beta))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.%s is given, but desc.flags has ACCUMULATE, which adds to d: leave c and "
    "beta NULL",
    args->c ? "c" : "beta");
 if (args->c && !args->beta)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.c is given but args.beta is NULL, so c would not be added; point beta to "
    "a factor (0 is one), or leave c NULL");
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_presence(const gemmepi__problem *problem,
    const gemmepi__arguments *arguments) {
 uint32_t given = 0;
 int operand;
 for (operand = 0; operand < GEMMEPI__OPERANDS; operand++)
  given |= (uint32_t)(arguments->pointers[operand] != NULL) << operand;
 if (given == problem->used)
  return GEMMEPI_OK;
 for (operand = 0; operand < GEMMEPI__OPERANDS; operand++) {
  const void *pointer = arguments->pointers[operand];
  int used = problem->used >> operand & 1;
  if (used == (pointer != NULL) || (used && gemmepi__may_lack(problem, arguments, operand)))
   continue;
  if (used && operand == GEMMEPI__C)
   return gemmepi__fail(
    GEMMEPI_INVALID_ARGUMENT,
    "args.c is NULL, but args.beta is %s: give c (args.d for D = A B + beta D), or leave "
    "beta NULL",
    arguments->device_beta ? "given on the device" : "not 0");
  return gemmepi__refuse_pointer(problem, operand, pointer);
 }
 return GEMMEPI_OK;
}

static const char *gemmepi__alignment_rule(const gemmepi__problem *problem, int operand) {
 const gemmepi__view *view = &problem->views[operand];
 if (view->alignment * 8 == view->bits)
  return "the size of an element";
 return operand >= GEMMEPI__SCALE_A ? "scales that are more than one number"
    : "desc.alignment, 16 by default";
}

static gemmepi_status gemmepi__check_alignment(const gemmepi__problem *problem,
    const gemmepi__arguments *arguments) {
 int i;
 for (i = 0; i < problem->count; i++) {
  int operand = problem->list[i];
  const gemmepi__view *view = &problem->views[operand];
  if ((uintptr_t)arguments->pointers[operand] > (uintptr_t)-1 - (uintptr_t)view->bytes)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is %p; no %lld bytes begin there",
    gemmepi__argument_name(problem, operand), arguments->pointers[operand],
    (long long)view->bytes);
  if ((uintptr_t)arguments->pointers[operand] & (uintptr_t)(view->alignment - 1))
   return gemmepi__fail(GEMMEPI_MISALIGNED, "args.%s is %p; it must be a multiple of %d bytes (%s)",
    gemmepi__argument_name(problem, operand), arguments->pointers[operand],
    (int)view->alignment, gemmepi__alignment_rule(problem, operand));
 }
 return GEMMEPI_OK;
}

/* >>overlap */

/* D may be read where it is written: by C, the residual and a pre-activation, if they are the very same matrix. */
static int gemmepi__may_be_d(const gemmepi__problem *problem, int operand) {
 return operand == GEMMEPI__C || operand == GEMMEPI__RESIDUAL ||
   (operand == GEMMEPI__AUX && !problem->views[operand].written && problem->views[operand].bits != 1);
}

static int gemmepi__same_layout(const gemmepi__problem *problem, const gemmepi__view *p,
    const gemmepi__view *q) {
 return p->dtype == q->dtype && p->bits == q->bits && p->lines == q->lines && p->length == q->length &&
   (p->lines <= 1 || p->ld == q->ld) && (problem->batch <= 1 || p->batch_stride == q->batch_stride);
}

static int64_t gemmepi__bytes_of(const gemmepi__view *view, int64_t elements) {
 return (elements * view->bits + 7) / 8;
}

/* A view in bytes, items of lines; `batch` items where they have a stride. */
static gemmepi__layout gemmepi__layout_of_view(const gemmepi__view *view, int64_t batch) {
 gemmepi__layout layout;
 layout.rank = 2;
 layout.size = gemmepi__bytes_of(view, view->length);
 layout.shape[0] = view->lines;
 layout.stride[0] = view->lines > 1 ? gemmepi__bytes_of(view, view->ld) : 0;
 layout.shape[1] = view->batch_stride ? batch : 1;
 layout.stride[1] = gemmepi__bytes_of(view, view->batch_stride);
 return layout;
}

/* Whether two views share a byte, q beginning `distance` bytes after p: GEMMEPI__APART and so on. */
static int gemmepi__views_share(const gemmepi__view *p, const gemmepi__view *q, int64_t batch,
    int64_t distance) {
 gemmepi__layout first = gemmepi__layout_of_view(p, batch), second = gemmepi__layout_of_view(q, batch);
 return gemmepi__layouts_share(&first, &second, distance);
}

/* Whether the output and another operand are in each other's way: GEMMEPI__APART and so on. The quick answer, by ranges, is the
 usual one. */
static int gemmepi__collide(const gemmepi__problem *problem, const gemmepi__arguments *arguments, int output,
    int other) {
 const gemmepi__view *p = &problem->views[output], *q = &problem->views[other];
 uintptr_t p_begin = (uintptr_t)arguments->pointers[output],
    q_begin = (uintptr_t)arguments->pointers[other];
 if (p_begin + (uintptr_t)p->bytes <= q_begin || q_begin + (uintptr_t)q->bytes <= p_begin || !p_begin ||
  !q_begin || !p->bytes || !q->bytes)
  return 0;
 if ((other == GEMMEPI__C || other == GEMMEPI__SCALE_C) && !arguments->uses_c)
  return 0;
 if (output == GEMMEPI__D && gemmepi__may_be_d(problem, other) && p_begin == q_begin &&
  gemmepi__same_layout(problem, p, q))
  return 0;
 return gemmepi__views_share(p, q, problem->batch, (int64_t)(q_begin - p_begin));
}

/* What keeps an operand at D's address from being D. */
static gemmepi_status gemmepi__refuse_in_place(const gemmepi__problem *problem, int other) {
 const gemmepi__view *d = &problem->views[GEMMEPI__D], *view = &problem->views[other];
 const char *name = gemmepi__argument_name(problem, other);
 if (view->dtype != d->dtype)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "args.%s is args.d, but desc.%s.dtype is %s and d's %s: to be d it must be the same", name, name,
   gemmepi__dtype((gemmepi_dtype)view->dtype)->name, gemmepi__dtype((gemmepi_dtype)d->dtype)->name);
 if (view->lines == d->lines && view->length == d->length && view->ld != d->ld)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "args.%s is args.d, but desc.%s.ld is %lld and d's %lld: to be d it must be the same", name, name,
   (long long)view->ld, (long long)d->ld);
 return gemmepi__fail(
  GEMMEPI_INVALID_ARGUMENT,
  "args.%s is args.d, but its %s differs: %lld x %lld and batch_stride %lld, d's %lld x %lld and "
  "%lld",
  name, view->lines == d->lines && view->length == d->length ? "batch_stride" : "shape",
  (long long)view->lines, (long long)view->length, (long long)view->batch_stride, (long long)d->lines,
  (long long)d->length, (long long)d->batch_stride);
}

static gemmepi_status gemmepi__refuse_overlap(const gemmepi__problem *problem,
    const gemmepi__arguments *arguments, int output, int other,
    int shares) {
 int may_be_d = output == GEMMEPI__D && gemmepi__may_be_d(problem, other);
 if (may_be_d && arguments->pointers[output] == arguments->pointers[other])
  return gemmepi__refuse_in_place(problem, other);
 return gemmepi__fail(
  GEMMEPI_INVALID_ARGUMENT, "args.%s (%p, %lld bytes) overlaps args.%s (%p, %lld bytes)%s%s",
  gemmepi__argument_name(problem, output), arguments->pointers[output],
  (long long)problem->views[output].bytes, gemmepi__argument_name(problem, other),
  arguments->pointers[other], (long long)problem->views[other].bytes, gemmepi__if_undecided(shares),
  may_be_d ? "; it may be exactly d (pointer, dtype, ld, batch stride)" : "");
}

/* Every output against those after it in the list, which has the outputs first. */
static gemmepi_status gemmepi__check_overlap(const gemmepi__problem *problem,
    const gemmepi__arguments *arguments) {
 int i, j, shares;
 for (i = 0; i < problem->outputs; i++)
  for (j = i + 1; j < problem->count; j++)
   if ((shares = gemmepi__collide(problem, arguments, problem->list[i], problem->list[j])) != 0)
    return gemmepi__refuse_overlap(problem, arguments, problem->list[i], problem->list[j],
    shares);
 return GEMMEPI_OK;
}

static const char *const gemmepi__scalar_names[] = {"alpha", "beta"};

/* alpha or beta where it lies on the device, else NULL */
static const void *gemmepi__device_scalar(const gemmepi__arguments *arguments, int which) {
 return which ? arguments->device_beta : arguments->device_alpha;
}

/* These are operands, too: kernels load a double, when some of D may be written. */
static gemmepi_status gemmepi__check_device_scalars(const gemmepi__problem *problem,
    const gemmepi__arguments *arguments) {
 gemmepi__layout number, written;
 int which, i;
 number.rank = 0;
 number.size = sizeof(double);
 for (which = 0; which < 2; which++) {
  const char *name = gemmepi__scalar_names[which];
  const void *pointer = gemmepi__device_scalar(arguments, which);
  if ((uintptr_t)pointer % sizeof(double))
   return gemmepi__fail(GEMMEPI_MISALIGNED,
    "args.%s is %p; on the device it must be a multiple of 8 bytes", name,
    pointer);
  for (i = 0; i < problem->outputs && pointer; i++) {
   const gemmepi__view *view = &problem->views[problem->list[i]];
   const void *output = arguments->pointers[problem->list[i]];
   written = gemmepi__layout_of_view(view, problem->batch);
   if (output && view->bytes && (uintptr_t)pointer < (uintptr_t)output + (uintptr_t)view->bytes &&
    (uintptr_t)output < (uintptr_t)pointer + sizeof(double) &&
    gemmepi__layouts_share(&written, &number, (int64_t)((uintptr_t)pointer - (uintptr_t)output)))
    return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.%s (%p, %lld bytes) overlaps args.%s (%p, on the device)",
    gemmepi__argument_name(problem, problem->list[i]), output,
    (long long)view->bytes, name, pointer);
  }
 }
 return GEMMEPI_OK;
}

/* Workspace is an output like any other, and none of the operands may lie in it. */
static gemmepi_status gemmepi__check_workspace(const gemmepi__problem *problem,
    const gemmepi__arguments *arguments, const void *workspace,
    size_t needed) {
 uintptr_t begin = (uintptr_t)workspace;
 const void *pointer;
 int operand, which;
 for (operand = 0; operand < GEMMEPI__OPERANDS; operand++) {
  uintptr_t other = (uintptr_t)arguments->pointers[operand];
  if (other && other < begin + needed && begin < other + (uintptr_t)problem->views[operand].bytes)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.workspace (%p, %llu bytes used) overlaps args.%s (%p)", workspace,
    (gemmepi__ull)needed, gemmepi__argument_name(problem, operand),
    arguments->pointers[operand]);
 }
 for (which = 0; which < 2; which++) {
  pointer = gemmepi__device_scalar(arguments, which);
  if (pointer && (uintptr_t)pointer < begin + needed && begin < (uintptr_t)pointer + sizeof(double))
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.workspace (%p, %llu bytes used) overlaps args.%s (%p, on the device)",
    workspace, (gemmepi__ull)needed, gemmepi__scalar_names[which], pointer);
 }
 return GEMMEPI_OK;
}

/* alpha and beta of an I32 result. */
static gemmepi_status gemmepi__check_whole(const char *name, double value) {
 if (value >= -2147483648.0 && value <= 2147483647.0 && value == (double)(int64_t)value)
  return GEMMEPI_OK;
 return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.%s is %.17g; with a result in I32 it must be a whole number of 32 bits", name,
    value);
}

/* args -> arguments, or the sentence that says what is wrong with them. */
static gemmepi_status gemmepi__take_arguments(const gemmepi__problem *problem,
    const gemmepi_matmul_args *args,
    gemmepi__arguments *arguments) {
 int on_device = (problem->flags & GEMMEPI_DEVICE_SCALARS) != 0;
 gemmepi_status status = gemmepi__check_c(problem, args);
 if (status)
  return status;
 gemmepi__take_pointers(problem, args, arguments->pointers);
 arguments->alpha = 1;
 arguments->beta = 0;
 if (args->alpha && !on_device)
  memcpy(&arguments->alpha, args->alpha, sizeof arguments->alpha);
 if (args->beta && !on_device)
  memcpy(&arguments->beta, args->beta, sizeof arguments->beta);
 arguments->device_alpha = on_device ? args->alpha : NULL;
 arguments->device_beta = on_device ? args->beta : NULL;
 if (problem->flags & GEMMEPI_ACCUMULATE) {
  arguments->beta = 1;
  arguments->pointers[GEMMEPI__C] = args->d;
 }
 arguments->uses_c = arguments->beta != 0 || arguments->device_beta;
 status = gemmepi__check_presence(problem, arguments);
 if (!status && problem->accumulator == GEMMEPI_I32) {
  status = gemmepi__check_whole("alpha", arguments->alpha);
  if (!status)
   status = gemmepi__check_whole("beta", arguments->beta);
 }
 if (!status)
  status = gemmepi__check_alignment(problem, arguments);
 if (!status)
  status = gemmepi__check_overlap(problem, arguments);
 if (!status && on_device)
  status = gemmepi__check_device_scalars(problem, arguments);
 return status;
}

/* The alignment class that the pointers of a one-shot call have: a power of two, 16 at most. A pointer less aligned
 than its element lowers it too; gemmepi__check_alignment will refuse that one. */
static size_t gemmepi__alignment_of(const gemmepi_matmul_args *args) {
 uintptr_t bits = (uintptr_t)args->a | (uintptr_t)args->b | (uintptr_t)args->c | (uintptr_t)args->d |
    (uintptr_t)args->aux | (uintptr_t)args->residual | (uintptr_t)args->bias |
    (uintptr_t)args->bias_grad | 16;
 return (size_t)(bits & (~bits + 1));
}
#ifndef GEMMEPI_NO_ELEMENTWISE
/* An element-wise operation as every launch sees it: what it reads and writes for each index of one shape. */

#define GEMMEPI__MAX_RANK 8

/* The tensors of an operation, in the order of every table below and of the kernels. */
enum {
 GEMMEPI__IN_A,
 GEMMEPI__IN_B,
 GEMMEPI__IN_W,
 GEMMEPI__IN_DY,
 GEMMEPI__OUT_Y,
 GEMMEPI__OUT_DA,
 GEMMEPI__OUT_DB,
 GEMMEPI__OUT_DW,
 GEMMEPI__TENSORS
};

static const char *const gemmepi__tensor_names[GEMMEPI__TENSORS] = {"a", "b",  "w",  "dy",
    "y", "da", "db", "dw"};

#define GEMMEPI__BIT(tensor) (1u << (tensor))
#define GEMMEPI__BIT_A       GEMMEPI__BIT(GEMMEPI__IN_A)
#define GEMMEPI__BIT_B       GEMMEPI__BIT(GEMMEPI__IN_B)
#define GEMMEPI__BIT_W       GEMMEPI__BIT(GEMMEPI__IN_W)
#define GEMMEPI__BIT_DY      GEMMEPI__BIT(GEMMEPI__IN_DY)
#define GEMMEPI__BIT_Y       GEMMEPI__BIT(GEMMEPI__OUT_Y)
#define GEMMEPI__BIT_DA      GEMMEPI__BIT(GEMMEPI__OUT_DA)
#define GEMMEPI__BIT_DB      GEMMEPI__BIT(GEMMEPI__OUT_DB)
#define GEMMEPI__BIT_DW      GEMMEPI__BIT(GEMMEPI__OUT_DW)
#define GEMMEPI__INPUTS      0x0fu
#define GEMMEPI__OUTPUTS     0xf0u

#define GEMMEPI__CAST_FLAGS \
 (GEMMEPI_CAST_SCALE | GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX | GEMMEPI_CAST_K_IS_ROWS)

/* An operation: the tensors that it must and may have, and of which inputs each output is made. With its function in
 kernels/operations.cuh and that in host/elementwise.h this is all that there is of it. */
typedef struct gemmepi__operation_row {
 gemmepi_operation operation;
 const char *name; /* as in GEMMEPI_OP_GATED, and as kernels name it */
 uint32_t needs, may;
 uint32_t reads[4]; /* for y, da, db, dw */
 int has_activation, has_halves;
 uint64_t flags; /* that go with it */
} gemmepi__operation_row;

static const gemmepi__operation_row gemmepi__operations[] = {
 {GEMMEPI_OP_ACTIVATION,
  "ACTIVATION",
  GEMMEPI__BIT_A | GEMMEPI__BIT_Y,
  0,
  {GEMMEPI__BIT_A, 0, 0, 0},
  1,
  0,
  0},
 {GEMMEPI_OP_ACTIVATION_BACKWARD,
  "ACTIVATION_BACKWARD",
  GEMMEPI__BIT_A | GEMMEPI__BIT_DY | GEMMEPI__BIT_DA,
  0,
  {0, GEMMEPI__BIT_A | GEMMEPI__BIT_DY, 0, 0},
  1,
  0,
  0},
 {GEMMEPI_OP_GATED,
  "GATED",
  GEMMEPI__BIT_A | GEMMEPI__BIT_Y,
  GEMMEPI__BIT_B,
  {GEMMEPI__BIT_A | GEMMEPI__BIT_B, 0, 0, 0},
  1,
  1,
  0},
 {GEMMEPI_OP_GATED_BACKWARD,
  "GATED_BACKWARD",
  GEMMEPI__BIT_A | GEMMEPI__BIT_DY,
  GEMMEPI__BIT_B | GEMMEPI__BIT_DA | GEMMEPI__BIT_DB,
  {0, GEMMEPI__BIT_DY | GEMMEPI__BIT_B, GEMMEPI__BIT_DY | GEMMEPI__BIT_A | GEMMEPI__BIT_B, 0},
  1,
  1,
  0},
 {GEMMEPI_OP_LERP,
  "LERP",
  GEMMEPI__BIT_A | GEMMEPI__BIT_B | GEMMEPI__BIT_Y,
  GEMMEPI__BIT_W,
  {GEMMEPI__BIT_A | GEMMEPI__BIT_B | GEMMEPI__BIT_W, 0, 0, 0},
  0,
  0,
  0},
 {GEMMEPI_OP_LERP_BACKWARD,
  "LERP_BACKWARD",
  GEMMEPI__BIT_DY,
  GEMMEPI__BIT_A | GEMMEPI__BIT_B | GEMMEPI__BIT_W | GEMMEPI__BIT_DA | GEMMEPI__BIT_DB | GEMMEPI__BIT_DW,
  {0, GEMMEPI__BIT_DY | GEMMEPI__BIT_W, GEMMEPI__BIT_DY | GEMMEPI__BIT_W,
  GEMMEPI__BIT_DY | GEMMEPI__BIT_A | GEMMEPI__BIT_B},
  0,
  0,
  0},
 {GEMMEPI_OP_BIAS_GRAD,
  "BIAS_GRAD",
  GEMMEPI__BIT_A | GEMMEPI__BIT_Y,
  0,
  {GEMMEPI__BIT_A, 0, 0, 0},
  0,
  0,
  GEMMEPI_ACCUMULATE},
 {GEMMEPI_OP_CAST,
  "CAST",
  GEMMEPI__BIT_A | GEMMEPI__BIT_Y,
  0,
  {GEMMEPI__BIT_A, 0, 0, 0},
  0,
  0,
  GEMMEPI__CAST_FLAGS},
};

/* A tensor broadcast to the operation's shape. dtype 0: the operation does not have it. */
typedef struct gemmepi__operand {
 int32_t dtype;
 int32_t pointer; /* the tensor whose pointer it goes by: halves are two operands of one */
 int32_t is_sum; /* an output that is added up over the axes below, or added to */
 int32_t summed; /* bit d: over axis d */
 int64_t offset; /* bytes from the pointer to the element of index 0 */
 int64_t stride[GEMMEPI__MAX_RANK]; /* elements; 0 on axes that repeat or are summed */
} gemmepi__operand;

/* Zeroed before it is filled, so that its bytes tell tasks apart. */
typedef struct gemmepi__task {
 int64_t tag; /* -1, with which no product begins: both are keys of the same table */
 int32_t operation, activation;
 uint64_t flags;
 int32_t scale_mode; /* CAST; TENSOR where it has a scale or amax and none is given */
 double parameter; /* of the activation */
 int32_t accumulator;
 int32_t alignment; /* bytes that all pointers are multiples of */
 uint32_t used; /* bit t: the operation has tensor t */
 uint32_t given; /* bit t: a pointer goes with tensor t */
 int32_t rank;
 int32_t is_empty; /* no output has an element */
 int64_t shape[GEMMEPI__MAX_RANK];
 gemmepi__operand operands[GEMMEPI__TENSORS];
} gemmepi__task;

static int gemmepi__task_has(const gemmepi__task *task, int tensor) {
 return (int)(task->used >> tensor & 1);
}

static const gemmepi__operation_row *gemmepi__operation(int operation) {
 return &gemmepi__operations[operation - 1];
}

/* >>one tensor by itself */

static int gemmepi__is_float(int dtype) {
 return dtype >= GEMMEPI_F32 && dtype <= GEMMEPI_E5M2;
}

/* The strides, those of a dense tensor filled in. Of one without an element they have no meaning and are 0: so no product of them
 overflows, and equal tasks have equal keys. */
static void gemmepi__take_strides(const gemmepi_tensor *tensor, int64_t stride[GEMMEPI__MAX_RANK]) {
 int64_t dense = 1;
 int d;
 for (d = tensor->rank - 1; d >= 0; d--) {
  stride[d] = tensor->stride ? tensor->stride[d] : dense;
  dense *= tensor->shape[d];
 }
 for (d = 0; d < tensor->rank && dense == 0; d++)
  stride[d] = 0;
}

/* Whether |count| * |stride| + rest stays within 2^56, and what it is. */
static int gemmepi__reach(int64_t count, int64_t stride, int64_t *rest) {
 if (stride < -GEMMEPI__MAX_ELEMENTS || stride > GEMMEPI__MAX_ELEMENTS)
  return 0;
 *rest = gemmepi__offset(count, stride < 0 ? -stride : stride, *rest);
 return *rest >= 0;
}

/* The elements that lie before and after the first one, if there is any. */
static gemmepi_status gemmepi__check_range(const gemmepi_tensor *tensor, const char *name,
    const int64_t *stride) {
 int64_t before = 0, after = 0,
   size = (int64_t)gemmepi_dtype_size(tensor->dtype ? tensor->dtype : GEMMEPI_F32);
 int d;
 for (d = 0; d < tensor->rank; d++)
  if (tensor->shape[d] == 0)
   return GEMMEPI_OK;
 for (d = 0; d < tensor->rank; d++)
  if (tensor->shape[d] > 1 &&
   !gemmepi__reach(tensor->shape[d] - 1, stride[d], stride[d] < 0 ? &before : &after))
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "%s reaches over more than 2^56 elements: axis %d has %lld of stride %lld",
    name, d, (long long)tensor->shape[d], (long long)stride[d]);
 if (!tensor->bytes)
  return GEMMEPI_OK;
 if (tensor->offset > tensor->bytes || (uint64_t)before > tensor->offset / (uint64_t)size ||
  (uint64_t)after >= (tensor->bytes - tensor->offset) / (uint64_t)size)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "%s.bytes is %llu, but its elements reach from byte %lld to byte %lld of the buffer "
   "(%s.offset is %llu)",
   name, (gemmepi__ull)tensor->bytes, (long long)tensor->offset - before * size,
   (long long)tensor->offset + (after + 1) * size, name, (gemmepi__ull)tensor->offset);
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_tensor(const gemmepi_tensor *tensor, const char *name) {
 int64_t stride[GEMMEPI__MAX_RANK], count = 1;
 int dtype = tensor->dtype ? (int)tensor->dtype : GEMMEPI_F32, d;
 if (!gemmepi__is_float(dtype))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "%s.dtype is %d (%s); accepted are F32, F64, F16 and BF16, for casts also E4M3 and E5M2", name,
   dtype,
   gemmepi__dtype_is_known(tensor->dtype) ? gemmepi__dtype((gemmepi_dtype)dtype)->name
    : "no gemmepi_dtype");
 if (tensor->rank < 0 || tensor->rank > GEMMEPI__MAX_RANK)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s.rank is %d; accepted are 0 to 8%s", name,
    tensor->rank,
    tensor->rank > 64 || tensor->rank < -64 ? GEMMEPI__UNINITIALISED : "");
 if (tensor->rank && !tensor->shape)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s.shape is NULL, but its rank is %d", name,
    tensor->rank);
 if (tensor->offset % gemmepi_dtype_size((gemmepi_dtype)dtype))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "%s.offset is %llu; it must be a multiple of an element's size, %d bytes", name,
    (gemmepi__ull)tensor->offset, (int)gemmepi_dtype_size((gemmepi_dtype)dtype));
 if (tensor->offset > (size_t)GEMMEPI__MAX_ELEMENTS)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s.offset is %llu; accepted are 0 to 2^56", name,
    (gemmepi__ull)tensor->offset);
 for (d = 0; d < tensor->rank; d++)
  if (tensor->shape[d] < 0)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s.shape[%d] is %lld; it may not be negative",
    name, d, (long long)tensor->shape[d]);
 for (d = 0; d < tensor->rank; d++)
  if (tensor->shape[d] && count && (count = gemmepi__offset(count, tensor->shape[d], 0)) < 0)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s has more than 2^56 elements", name);
 gemmepi__take_strides(tensor, stride);
 return gemmepi__check_range(tensor, name, stride);
}

/* >>the shape of the operation */

/* "[2, 3]" */
static void gemmepi__append_shape(gemmepi__text *text, int rank, const int64_t *shape) {
 int d;
 gemmepi__append(text, "[");
 for (d = 0; d < rank; d++)
  gemmepi__append(text, "%s%lld", d ? ", " : "", (long long)shape[d]);
 gemmepi__append(text, "]");
}

static gemmepi_status gemmepi__refuse_shape(const gemmepi__task *task, const gemmepi_tensor *tensor,
    int which, const char *rule) {
 char mine[200], its[200];
 gemmepi__text given = gemmepi__text_in(mine, sizeof mine), wanted = gemmepi__text_in(its, sizeof its);
 gemmepi__append_shape(&given, tensor->rank, tensor->shape);
 gemmepi__append_shape(&wanted, task->rank, task->shape);
 return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s has the shape %s, the operation %s: %s",
    gemmepi__tensor_names[which], mine, its, rule);
}

/* A tensor's strides along the axes of the operation, on which it repeats where its extent is 1 or the axis is missing.
 halved: the axis on which it has twice the extent, or -1. */
static gemmepi_status gemmepi__broadcast(gemmepi__task *task, const gemmepi_tensor *tensor, int which,
    int halved) {
 gemmepi__operand *operand = &task->operands[which];
 int64_t stride[GEMMEPI__MAX_RANK];
 int is_gradient = which >= GEMMEPI__OUT_DA, may_repeat = which < GEMMEPI__IN_DY || is_gradient, d;
 int first = task->rank - tensor->rank;
 if (first < 0)
  return gemmepi__refuse_shape(task, tensor, which, "it may not have more axes");
 gemmepi__take_strides(tensor, stride);
 for (d = 0; d < task->rank; d++) {
  int64_t extent = d < first ? 1 : tensor->shape[d - first];
  int64_t wanted = d == halved ? 2 * task->shape[d] : task->shape[d];
  int repeats = extent == 1 && wanted != 1 && d != halved;
  if (extent != wanted && !(repeats && may_repeat))
   return gemmepi__refuse_shape(
    task, tensor, which,
    d == halved
    ? "desc.axis, which is split, has twice the operation's extent (-1 is the last axis)"
    : may_repeat ? "each axis, from the last on, has the same extent or 1"
    : "they must be the same");
  if (d < first || repeats) {
   if (is_gradient && wanted != 1) {
    operand->is_sum = 1;
    operand->summed |= 1 << d;
   }
  } else if (wanted != 1) {
   operand->stride[d] = stride[d - first];
  }
 }
 if (may_repeat || first == 0)
  return GEMMEPI_OK;
 return gemmepi__refuse_shape(task, tensor, which, "they must have the same number of axes");
}

static gemmepi_status gemmepi__check_axis(const char *name, int axis, int rank, int *result) {
 *result = axis < 0 ? axis + rank : axis;
 if (*result >= 0 && *result < rank)
  return GEMMEPI_OK;
 return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is %d; a has %d axes, so accepted are %d to %d", name,
    axis, rank, -rank, rank - 1);
}

/* a (which A) or da (DA) holds value and gate: two operands of one pointer. The operand has been broadcast. */
static void gemmepi__halve(gemmepi__task *task, int which, int axis, int gate_first) {
 gemmepi__operand *value = &task->operands[which], *gate = &task->operands[which + 1];
 int64_t size = (int64_t)gemmepi__dtype((gemmepi_dtype)value->dtype)->size;
 int64_t second = task->shape[axis] * value->stride[axis] * size;
 if (task->shape[axis] == 1)
  value->stride[axis] = 0; /* as of every axis of extent 1 */
 *gate = *value;
 if (gate_first)
  value->offset += second;
 else
  gate->offset += second;
 task->used |= GEMMEPI__BIT(which + 1);
}

/* >>dtypes */

static gemmepi_status gemmepi__check_dtypes(const gemmepi__task *task) {
 int first = task->operands[gemmepi__task_has(task, GEMMEPI__IN_A) ? GEMMEPI__IN_A : GEMMEPI__IN_DY].dtype,
  t;
 const char *of = gemmepi__task_has(task, GEMMEPI__IN_A) ? "a" : "dy";
 if (task->operation == GEMMEPI_OP_CAST)
  return GEMMEPI_OK;
 for (t = 0; t < GEMMEPI__TENSORS; t++) {
  int dtype = task->operands[t].dtype;
  if (!dtype)
   continue;
  if (gemmepi__is_fp8(dtype))
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s has the dtype %s, which goes with casts alone",
    gemmepi__tensor_names[t], gemmepi__dtype((gemmepi_dtype)dtype)->name);
  if (dtype != first && !(task->operands[t].is_sum && dtype == GEMMEPI_F32 &&
    gemmepi_dtype_size((gemmepi_dtype)first) == 2))
   return gemmepi__fail(
    GEMMEPI_INVALID_ARGUMENT,
    "%s has the dtype %s, %s has %s; they must be the same, only sums of 16-bit tensors "
    "may be F32",
    gemmepi__tensor_names[t], gemmepi__dtype((gemmepi_dtype)dtype)->name, of,
    gemmepi__dtype((gemmepi_dtype)first)->name);
 }
 return GEMMEPI_OK;
}

/* >>the desc */

static gemmepi_status gemmepi__check_presence_of_tensors(const gemmepi__operation_row *row, uint32_t given) {
 uint32_t outputs = given & GEMMEPI__OUTPUTS, missing = row->needs & ~given, surplus;
 int t;
 if (row->operation == GEMMEPI_OP_GATED_BACKWARD && !(given & GEMMEPI__BIT_B))
  missing |= GEMMEPI__BIT_DA & ~given;
 if (row->operation == GEMMEPI_OP_LERP_BACKWARD && (given & GEMMEPI__BIT_DW))
  missing |= (GEMMEPI__BIT_A | GEMMEPI__BIT_B | GEMMEPI__BIT_W) & ~given;
 surplus = given & ~(row->needs | row->may);
 if (row->operation == GEMMEPI_OP_GATED_BACKWARD && !(given & GEMMEPI__BIT_B))
  surplus |= given & GEMMEPI__BIT_DB;
 if (row->operation == GEMMEPI_OP_LERP_BACKWARD && !(given & GEMMEPI__BIT_DW))
  surplus |= given & (GEMMEPI__BIT_A | GEMMEPI__BIT_B);
 for (t = 0; t < GEMMEPI__TENSORS; t++) {
  if (missing >> t & 1)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL; the operation %s needs it",
    gemmepi__tensor_names[t], row->name);
  if (surplus >> t & 1)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "%s is given, but the operation %s has no use for it%s",
    gemmepi__tensor_names[t], row->name,
    !(row->may >> t & 1)                          ? ""
    : row->operation == GEMMEPI_OP_GATED_BACKWARD ? " without b"
    : " without dw");
 }
 if (!outputs)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "the operation %s has no output: da, db%s are NULL",
    row->name, row->operation == GEMMEPI_OP_LERP_BACKWARD ? " and dw" : "");
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_flags(const gemmepi_elementwise_desc *desc,
    const gemmepi__operation_row *row, int is_split) {
 gemmepi_status status = gemmepi__check_activation("activation", desc->activation);
 if (!status)
  status = gemmepi__check_flags_of(GEMMEPI__OF_GATE, desc->activation, GEMMEPI_ACTIVATION_MASK);
 if (!status && !row->has_activation && desc->activation)
  status = gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.activation is 0x%llx; the operation %s has none: leave it 0",
    (gemmepi__ull)desc->activation, row->name);
 if (!status && !is_split && desc->activation & GEMMEPI_GATE_FIRST)
  status = gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.activation has GATE_FIRST; it goes with gates whose b is NULL");
 if (!status)
  status = gemmepi__check_flags_of(GEMMEPI__OF_ELEMENTWISE, desc->flags, 0);
 if (status)
  return status;
 if (desc->flags & ~row->flags)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.flags has %s; the operation %s has no use for it",
    gemmepi__flag(desc->flags & ~row->flags)->name, row->name);
 if (!is_split && row->operation != GEMMEPI_OP_BIAS_GRAD && desc->axis)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.axis is %d; %s", desc->axis,
    row->has_halves ? "with b nothing is split: leave it 0"
    : "the operation has none: leave it 0");
 if (desc->alignment & (desc->alignment - 1) || desc->alignment > 256)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.alignment is %llu; accepted are 0 and the powers of two up to 256",
    (gemmepi__ull)desc->alignment);
 if ((unsigned)desc->scale_mode > GEMMEPI_SCALE_BLOCK_128)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.scale_mode is %d, which is no gemmepi_scale_mode%s", (int)desc->scale_mode,
    GEMMEPI__UNINITIALISED);
 if (desc->scale_mode && !(desc->flags & (GEMMEPI_CAST_SCALE | GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX)))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.scale_mode is %d, but %s", (int)desc->scale_mode,
    row->flags & GEMMEPI_CAST_SCALE ? "neither a scale nor amax is asked for"
    : "scales go with CAST alone");
 if ((desc->flags & GEMMEPI_CAST_SCALE) && (desc->flags & GEMMEPI_CAST_Y_SCALE))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.flags has CAST_SCALE and CAST_Y_SCALE; one scale is read, or one written");
 if ((desc->flags & GEMMEPI_CAST_K_IS_ROWS) && desc->scale_mode < GEMMEPI_SCALE_OUTER)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.flags has CAST_K_IS_ROWS, which goes with the modes OUTER, VECTOR_128 and BLOCK_128");
 return gemmepi__check_parameter(desc->activation, desc->has_parameter, desc->activation_parameter);
}

static gemmepi_status gemmepi__check_scaled(const gemmepi__task *task, const gemmepi_elementwise_desc *desc) {
 int y = task->operands[GEMMEPI__OUT_Y].dtype;
 if ((desc->flags & GEMMEPI_CAST_Y_SCALE) && !gemmepi__is_fp8(y))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.flags has CAST_Y_SCALE, but y has the dtype %s; accepted are E4M3 and E5M2",
   gemmepi__dtype((gemmepi_dtype)y)->name);
 if ((desc->flags & GEMMEPI_CAST_K_IS_ROWS) && task->rank < 2)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.flags has CAST_K_IS_ROWS, but y has %d axes; it takes two", task->rank);
 return GEMMEPI_OK;
}

static gemmepi__layout gemmepi__layout_of(const gemmepi__task *task, const gemmepi__operand *operand) {
 gemmepi__layout layout;
 int d;
 memset(&layout, 0, sizeof layout);
 layout.rank = task->rank;
 layout.size = (int64_t)gemmepi__dtype((gemmepi_dtype)operand->dtype)->size;
 for (d = 0; d < task->rank; d++) {
  int repeats = operand->stride[d] == 0 && task->shape[d] != 0;
  layout.shape[d] = (operand->summed >> d & 1) || repeats ? 1 : task->shape[d];
  layout.stride[d] = layout.shape[d] > 1 ? operand->stride[d] * layout.size : 0;
 }
 return layout;
}

static int gemmepi__operand_is_empty(const gemmepi__task *task, const gemmepi__operand *operand) {
 int d;
 for (d = 0; d < task->rank; d++)
  if (task->shape[d] == 0 && !(operand->summed >> d & 1))
   return 1;
 return 0;
}

/* No two elements of an output may be one. */
static gemmepi_status gemmepi__check_written(gemmepi__task *task, int which) {
 const gemmepi__operand *operand = &task->operands[which];
 gemmepi__layout layout = gemmepi__layout_of(task, operand);
 int d, repeats = GEMMEPI__APART;
 if (gemmepi__operand_is_empty(task, operand))
  return GEMMEPI_OK;
 task->is_empty = 0;
 for (d = 0; d < task->rank; d++)
  if (!(operand->summed >> d & 1) && task->shape[d] > 1 && operand->stride[d] == 0)
   repeats = GEMMEPI__SHARED;
 if (!repeats && operand->pointer != which) /* two halves of one tensor */
  repeats = gemmepi__layouts_share(&layout, &layout,
    operand->offset - task->operands[operand->pointer].offset);
 if (!repeats)
  repeats = gemmepi__layout_repeats(&layout);
 if (repeats)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "%s is written, but its strides put several of its elements into the same place%s",
   gemmepi__tensor_names[operand->pointer],
   repeats == GEMMEPI__UNDECIDED
    ? ", or so close that telling would take too long: write a dense tensor"
    : "");
 return GEMMEPI_OK;
}

/* bias_grad: y runs along one axis of a, and is summed over the others. */
static gemmepi_status gemmepi__take_bias_grad(gemmepi__task *task, const gemmepi_elementwise_desc *desc) {
 gemmepi__operand *y = &task->operands[GEMMEPI__OUT_Y];
 int64_t stride[GEMMEPI__MAX_RANK];
 int axis = 0, d;
 gemmepi_status status;
 if (desc->a->rank == 0)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "a has no axis to keep; its rank must be 1 to 8");
 status = gemmepi__check_axis("axis", desc->axis, desc->a->rank, &axis);
 if (status)
  return status;
 if (desc->y->rank != 1 || desc->y->shape[0] != desc->a->shape[axis])
  return gemmepi__refuse_shape(task, desc->y, GEMMEPI__OUT_Y,
    "y has one axis, of the extent of the one kept");
 gemmepi__take_strides(desc->y, stride);
 y->is_sum = 1;
 for (d = 0; d < task->rank; d++)
  if (d == axis)
   y->stride[d] = task->shape[d] == 1 ? 0 : stride[0];
  else
   y->summed |= 1 << d;
 return GEMMEPI_OK;
}

/* What tells garbage from a desc, before a pointer of it is followed. */
static gemmepi_status gemmepi__check_operation(const gemmepi_elementwise_desc *desc) {
 if (!desc)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc is NULL");
 if ((int)desc->operation < 1 || (size_t)desc->operation > GEMMEPI__COUNT(gemmepi__operations))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT, "desc.operation is %d; accepted are 1 (ACTIVATION) to %d (CAST)%s",
   (int)desc->operation, (int)GEMMEPI__COUNT(gemmepi__operations), GEMMEPI__UNINITIALISED);
 if (desc->has_parameter != 0 && desc->has_parameter != 1)
  return gemmepi__check_parameter(desc->activation, desc->has_parameter, desc->activation_parameter);
 return gemmepi__check_flags_of(GEMMEPI__OF_ELEMENTWISE, desc->flags, 0);
}

/* desc -> task, or the sentence that says what is wrong with it. alignment is the pointers'. */
static gemmepi_status gemmepi__take_task(const gemmepi_elementwise_desc *desc, size_t alignment,
    gemmepi__task *task) {
 const gemmepi_tensor *tensors[GEMMEPI__TENSORS], *shaped;
 const gemmepi__operation_row *row;
 int is_split, axis = -1, t;
 gemmepi_status status;
 memset(task, 0, sizeof *task);
 status = gemmepi__check_operation(desc);
 if (status)
  return status;
 row = gemmepi__operation((int)desc->operation);
 tensors[GEMMEPI__IN_A] = desc->a;
 tensors[GEMMEPI__IN_B] = desc->b;
 tensors[GEMMEPI__IN_W] = desc->w;
 tensors[GEMMEPI__IN_DY] = desc->dy;
 tensors[GEMMEPI__OUT_Y] = desc->y;
 tensors[GEMMEPI__OUT_DA] = desc->da;
 tensors[GEMMEPI__OUT_DB] = desc->db;
 tensors[GEMMEPI__OUT_DW] = desc->dw;
 for (t = 0; t < GEMMEPI__TENSORS; t++)
  if (tensors[t])
   task->given |= GEMMEPI__BIT(t);
 is_split = row->has_halves && !desc->b;
 status = gemmepi__check_presence_of_tensors(row, task->given);
 if (!status)
  status = gemmepi__check_flags(desc, row, is_split);
 for (t = 0; t < GEMMEPI__TENSORS && !status; t++)
  if (tensors[t])
   status = gemmepi__check_tensor(tensors[t], gemmepi__tensor_names[t]);
 if (status)
  return status;
 task->tag = -1;
 task->operation = (int32_t)desc->operation;
 task->activation = (int32_t)gemmepi__activation(desc->activation);
 task->parameter =
  desc->has_parameter ? desc->activation_parameter : gemmepi__default_parameter(desc->activation);
 task->flags = desc->flags;
 task->scale_mode = (int32_t)desc->scale_mode;
 if (!task->scale_mode && (desc->flags & GEMMEPI__CAST_FLAGS))
  task->scale_mode = GEMMEPI_SCALE_TENSOR;
 task->alignment = (int32_t)(desc->alignment ? desc->alignment : alignment);
 task->used = task->given;
 task->is_empty = 1;
 shaped = row->operation == GEMMEPI_OP_BIAS_GRAD ? desc->a : desc->y ? desc->y : desc->dy;
 task->rank = shaped->rank;
 for (t = 0; t < shaped->rank; t++)
  task->shape[t] = shaped->shape[t];
 if (is_split) {
  if (desc->a->rank != task->rank)
   return gemmepi__refuse_shape(task, desc->a, GEMMEPI__IN_A, "a, which is split, has as many axes");
  if (task->rank == 0)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "a has no axis to split; its rank must be 1 to 8");
  status = gemmepi__check_axis("split_dim (axis)", desc->axis, task->rank, &axis);
  if (!status && desc->a->shape[axis] % 2)
   status = gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "axis %d of a, which is split, has the extent %lld; it must be even", axis,
    (long long)desc->a->shape[axis]);
  if (!status && desc->da && desc->da->rank != task->rank)
   status = gemmepi__refuse_shape(task, desc->da, GEMMEPI__OUT_DA, "da has as many axes as a");
 }
 for (t = 0; t < GEMMEPI__TENSORS && !status; t++) {
  gemmepi__operand *operand = &task->operands[t];
  if (!tensors[t])
   continue;
  operand->dtype = (int32_t)(tensors[t]->dtype ? tensors[t]->dtype : GEMMEPI_F32);
  operand->pointer = t;
  operand->offset = (int64_t)tensors[t]->offset;
  if (row->operation == GEMMEPI_OP_BIAS_GRAD && t == GEMMEPI__OUT_Y)
   status = gemmepi__take_bias_grad(task, desc);
  else
   status = gemmepi__broadcast(task, tensors[t], t,
    is_split && (t == GEMMEPI__IN_A || t == GEMMEPI__OUT_DA) ? axis : -1);
 }
 if (!status)
  status = gemmepi__check_dtypes(task);
 if (!status && row->operation == GEMMEPI_OP_CAST)
  status = gemmepi__check_scaled(task, desc);
 if (status)
  return status;
 if (is_split) {
  int gate_first = (desc->activation & GEMMEPI_GATE_FIRST) != 0;
  gemmepi__halve(task, GEMMEPI__IN_A, axis, gate_first);
  if (desc->da)
   gemmepi__halve(task, GEMMEPI__OUT_DA, axis, gate_first);
 }
 for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS && !status; t++)
  if (gemmepi__task_has(task, t))
   status = gemmepi__check_written(task, t);
 task->accumulator = GEMMEPI_F32;
 for (t = 0; t < GEMMEPI__TENSORS; t++)
  if (task->operands[t].dtype == GEMMEPI_F64)
   task->accumulator = GEMMEPI_F64;
 return status;
}
/* The loops of one launch: the axes of an element-wise task in the best order, as few as its strides allow. */

/* Axes from the innermost on. Those of a sum are kept or summed. */
typedef struct gemmepi__nest {
 uint32_t used; /* bit t: tensor t is read or written */
 int rank;
 int64_t extent[GEMMEPI__MAX_RANK];
 int summed[GEMMEPI__MAX_RANK]; /* 1: the axis is added up */
 int dtype[GEMMEPI__TENSORS];
 int pointer[GEMMEPI__TENSORS]; /* the tensor whose pointer it goes by */
 int64_t offset[GEMMEPI__TENSORS]; /* bytes to the first element */
 int64_t stride[GEMMEPI__TENSORS][GEMMEPI__MAX_RANK]; /* elements */
} gemmepi__nest;

static int gemmepi__nest_has(const gemmepi__nest *nest, int tensor) {
 return (int)(nest->used >> tensor & 1);
}

/* The tensors of some of the outputs: they and what they are made of. */
static uint32_t gemmepi__tensors_of(const gemmepi__task *task, uint32_t outputs) {
 const gemmepi__operation_row *row = gemmepi__operation(task->operation);
 uint32_t used = outputs;
 int t;
 for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS; t++)
  if (outputs >> t & 1)
   used |= row->reads[t - GEMMEPI__OUT_Y] & task->used;
 return used;
}

static void gemmepi__swap_axes(gemmepi__nest *nest, int p, int q) {
 int64_t extent = nest->extent[p], stride;
 int summed = nest->summed[p], t;
 nest->extent[p] = nest->extent[q];
 nest->extent[q] = extent;
 nest->summed[p] = nest->summed[q];
 nest->summed[q] = summed;
 for (t = 0; t < GEMMEPI__TENSORS; t++) {
  stride = nest->stride[t][p];
  nest->stride[t][p] = nest->stride[t][q];
  nest->stride[t][q] = stride;
 }
}

/* Outputs go before inputs, but those of sums, of which there are few elements, after them. */
static int gemmepi__goes_before(const gemmepi__nest *nest, int is_sum, int axis, int other) {
 int i;
 for (i = 0; i < GEMMEPI__TENSORS; i++) {
  int t = is_sum ? i : (i + GEMMEPI__OUT_Y) % GEMMEPI__TENSORS;
  int64_t p = nest->stride[t][axis], q = nest->stride[t][other];
  if (gemmepi__nest_has(nest, t) && p && q && p != q)
   return p < q;
 }
 return 0;
}

/* An axis along which the tensor that decides runs backwards is turned around for all of them. */
static void gemmepi__turn_axis(gemmepi__nest *nest, int is_sum, int axis) {
 int i, t;
 for (i = 0; i < GEMMEPI__TENSORS; i++) {
  t = is_sum ? i : (i + GEMMEPI__OUT_Y) % GEMMEPI__TENSORS;
  if (gemmepi__nest_has(nest, t) && nest->stride[t][axis] > 0)
   return;
  if (gemmepi__nest_has(nest, t) && nest->stride[t][axis] < 0)
   break;
 }
 for (t = 0; t < GEMMEPI__TENSORS; t++) {
  int64_t size = (int64_t)gemmepi__dtype((gemmepi_dtype)nest->dtype[t])->size;
  nest->offset[t] += (nest->extent[axis] - 1) * nest->stride[t][axis] * size;
  nest->stride[t][axis] = -nest->stride[t][axis];
 }
}

static int gemmepi__axes_merge(const gemmepi__nest *nest, int inner, int outer) {
 int t;
 for (t = 0; t < GEMMEPI__TENSORS; t++)
  if (nest->stride[t][outer] != nest->stride[t][inner] * nest->extent[inner])
   return 0;
 return nest->summed[inner] == nest->summed[outer];
}

/* Axes of extent 1 go; the others are sorted by stride, and merged where one runs on where another ends. At least one is
 left. No extent that is kept is 0. */
static void gemmepi__simplify_nest(gemmepi__nest *nest, int is_sum) {
 int d, e, t, rank = 0;
 for (d = 0; d < nest->rank; d++)
  if (nest->extent[d] != 1)
   gemmepi__swap_axes(nest, rank++, d);
 nest->rank = rank;
 for (d = 0; d < rank; d++)
  gemmepi__turn_axis(nest, is_sum, d);
 for (d = 1; d < rank; d++)
  for (e = d; e > 0 && gemmepi__goes_before(nest, is_sum, e, e - 1); e--)
   gemmepi__swap_axes(nest, e, e - 1);
 for (d = 0, e = 1; e < rank; e++)
  if (gemmepi__axes_merge(nest, d, e)) {
   nest->extent[d] *= nest->extent[e];
  } else if (++d != e) {
   gemmepi__swap_axes(nest, d, e);
  }
 nest->rank = rank ? d + 1 : 1;
 if (rank == 0) {
  nest->extent[0] = 1;
  nest->summed[0] = is_sum;
  for (t = 0; t < GEMMEPI__TENSORS; t++)
   nest->stride[t][0] = 0;
 }
}

/* The loops that make `outputs`: any that are no sums, or one sum. */
static void gemmepi__take_nest(const gemmepi__task *task, uint32_t outputs, gemmepi__nest *nest) {
 int d, t, is_sum = 0;
 memset(nest, 0, sizeof *nest);
 nest->used = gemmepi__tensors_of(task, outputs);
 nest->rank = task->rank;
 for (t = 0; t < GEMMEPI__TENSORS; t++) {
  const gemmepi__operand *operand = &task->operands[t];
  if (!gemmepi__nest_has(nest, t))
   continue;
  nest->dtype[t] = operand->dtype;
  nest->pointer[t] = operand->pointer;
  nest->offset[t] = operand->offset;
  if (t >= GEMMEPI__OUT_Y && operand->is_sum)
   is_sum = 1;
  for (d = 0; d < task->rank; d++) {
   nest->stride[t][task->rank - 1 - d] = operand->stride[d];
   if (t >= GEMMEPI__OUT_Y && (operand->summed >> d & 1))
    nest->summed[task->rank - 1 - d] = 1;
  }
 }
 for (d = 0; d < task->rank; d++)
  nest->extent[task->rank - 1 - d] = task->shape[d];
 gemmepi__simplify_nest(nest, is_sum);
}

/* Of all kept axes, or of all summed ones. */
static int64_t gemmepi__nest_count(const gemmepi__nest *nest, int summed) {
 int64_t count = 1;
 int d;
 for (d = 0; d < nest->rank; d++)
  if (nest->summed[d] == summed)
   count *= nest->extent[d];
 return count;
}
#endif

/* The CUDA driver's interface, as far as it is used: declared by hand, because the toolkit's headers may be missing
 and their names belong to others. tests/compile/declarations.cpp compares every line with those headers. */

typedef int gemmepi__cu_result;
typedef int gemmepi__cu_device;
typedef unsigned long long gemmepi__cu_deviceptr;
typedef gemmepi_stream gemmepi__cu_stream;
typedef struct gemmepi__cu_context_opaque *gemmepi__cu_context;
typedef struct gemmepi__cu_module_opaque *gemmepi__cu_module;
typedef struct gemmepi__cu_function_opaque *gemmepi__cu_function;

/* A CUtensorMap, which wants to lie at a multiple of 64. */
typedef struct gemmepi__cu_tensor_map {
 uint64_t words[16];
} gemmepi__cu_tensor_map;

/* A CUlaunchAttribute: what it says comes first in `value`. */
typedef struct gemmepi__cu_launch_attribute {
 int id;
 char pad[4];
 uint64_t value[8];
} gemmepi__cu_launch_attribute;

typedef struct gemmepi__cu_launch_config {
 unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_size;
 gemmepi__cu_stream stream;
 gemmepi__cu_launch_attribute *attributes;
 unsigned attribute_count;
} gemmepi__cu_launch_config;

/* CUDA's name, value; ours has GEMMEPI__ before it */
#define GEMMEPI__DRIVER_CONSTANTS(X) \
 X(CUDA_SUCCESS, 0) \
 X(CUDA_ERROR_INVALID_VALUE, 1) \
 X(CUDA_ERROR_OUT_OF_MEMORY, 2) \
 X(CUDA_ERROR_NOT_INITIALIZED, 3) \
 X(CUDA_ERROR_DEINITIALIZED, 4) \
 X(CUDA_ERROR_STUB_LIBRARY, 34) \
 X(CUDA_ERROR_NO_DEVICE, 100) \
 X(CUDA_ERROR_INVALID_DEVICE, 101) \
 X(CUDA_ERROR_INVALID_IMAGE, 200) \
 X(CUDA_ERROR_INVALID_CONTEXT, 201) \
 X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209) \
 X(CUDA_ERROR_INVALID_HANDLE, 400) \
 X(CUDA_ERROR_NOT_FOUND, 500) \
 X(CUDA_ERROR_NOT_READY, 600) \
 X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900) \
 X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906) \
 X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) \
 X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38) \
 X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
 X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
 X(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 88) \
 X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
 X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2) \
 X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8) \
 X(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6) \
 X(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 7) \
 X(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9) \
 X(CU_TENSOR_MAP_INTERLEAVE_NONE, 0) \
 X(CU_TENSOR_MAP_SWIZZLE_128B, 3) \
 X(CU_TENSOR_MAP_L2_PROMOTION_NONE, 0) \
 X(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 2) \
 X(CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3) \
 X(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0) \
 X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6) \
 X(CU_STREAM_DEFAULT, 0) \
 X(CU_STREAM_NON_BLOCKING, 1) \
 X(CU_STREAM_CAPTURE_MODE_RELAXED, 2) \
 X(CU_STREAM_CAPTURE_STATUS_NONE, 0) \
 X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1) \
 X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)

/* handles that stand for streams, as casts of these numbers: CU_STREAM_LEGACY and CU_STREAM_PER_THREAD */
#define GEMMEPI__CU_STREAM_LEGACY     1
#define GEMMEPI__CU_STREAM_PER_THREAD 2

enum {
#define GEMMEPI__DRIVER_CONSTANT(name, value) GEMMEPI__##name = value,
 GEMMEPI__DRIVER_CONSTANTS(GEMMEPI__DRIVER_CONSTANT)
#undef GEMMEPI__DRIVER_CONSTANT
};

/* our field, the exported name (present in every driver from CUDA 12.0 on, the newest form then), result, parameters */
#define GEMMEPI__DRIVER_FUNCTIONS(X) \
 X(init, cuInit, gemmepi__cu_result, (unsigned flags)) \
 X(driver_get_version, cuDriverGetVersion, gemmepi__cu_result, (int *version)) \
 X(device_get, cuDeviceGet, gemmepi__cu_result, (gemmepi__cu_device * device, int ordinal)) \
 X(device_get_count, cuDeviceGetCount, gemmepi__cu_result, (int *count)) \
 X(device_get_name, cuDeviceGetName, gemmepi__cu_result, \
  (char *name, int size, gemmepi__cu_device device)) \
 X(device_get_attribute, cuDeviceGetAttribute, gemmepi__cu_result, \
  (int *value, int attribute, gemmepi__cu_device device)) \
 X(device_primary_ctx_retain, cuDevicePrimaryCtxRetain, gemmepi__cu_result, \
  (gemmepi__cu_context * context, gemmepi__cu_device device)) \
 X(device_primary_ctx_release, cuDevicePrimaryCtxRelease_v2, gemmepi__cu_result, \
  (gemmepi__cu_device device)) \
 X(ctx_get_current, cuCtxGetCurrent, gemmepi__cu_result, (gemmepi__cu_context * context)) \
 X(ctx_push_current, cuCtxPushCurrent_v2, gemmepi__cu_result, (gemmepi__cu_context context)) \
 X(ctx_pop_current, cuCtxPopCurrent_v2, gemmepi__cu_result, (gemmepi__cu_context * context)) \
 X(ctx_get_device, cuCtxGetDevice, gemmepi__cu_result, (gemmepi__cu_device * device)) \
 X(ctx_synchronize, cuCtxSynchronize, gemmepi__cu_result, (void)) \
 X(mem_alloc, cuMemAlloc_v2, gemmepi__cu_result, (gemmepi__cu_deviceptr * pointer, size_t size)) \
 X(mem_free, cuMemFree_v2, gemmepi__cu_result, (gemmepi__cu_deviceptr pointer)) \
 X(pointer_get_attribute, cuPointerGetAttribute, gemmepi__cu_result, \
  (void *value, int attribute, gemmepi__cu_deviceptr pointer)) \
 X(memcpy_htod_async, cuMemcpyHtoDAsync_v2, gemmepi__cu_result, \
  (gemmepi__cu_deviceptr to, const void *from, size_t size, gemmepi__cu_stream stream)) \
 X(memcpy_dtoh_async, cuMemcpyDtoHAsync_v2, gemmepi__cu_result, \
  (void *to, gemmepi__cu_deviceptr from, size_t size, gemmepi__cu_stream stream)) \
 X(memset_d8_async, cuMemsetD8Async, gemmepi__cu_result, \
  (gemmepi__cu_deviceptr to, unsigned char value, size_t count, gemmepi__cu_stream stream)) \
 X(stream_create, cuStreamCreate, gemmepi__cu_result, (gemmepi__cu_stream * stream, unsigned flags)) \
 X(stream_destroy, cuStreamDestroy_v2, gemmepi__cu_result, (gemmepi__cu_stream stream)) \
 X(stream_synchronize, cuStreamSynchronize, gemmepi__cu_result, (gemmepi__cu_stream stream)) \
 X(stream_is_capturing, cuStreamIsCapturing, gemmepi__cu_result, \
  (gemmepi__cu_stream stream, int *status)) \
 X(thread_exchange_stream_capture_mode, cuThreadExchangeStreamCaptureMode, gemmepi__cu_result, \
  (int *mode)) \
 X(module_load_data, cuModuleLoadData, gemmepi__cu_result, \
  (gemmepi__cu_module * module, const void *image)) \
 X(module_unload, cuModuleUnload, gemmepi__cu_result, (gemmepi__cu_module module)) \
 X(module_get_function, cuModuleGetFunction, gemmepi__cu_result, \
  (gemmepi__cu_function * function, gemmepi__cu_module module, const char *name)) \
 X(func_set_attribute, cuFuncSetAttribute, gemmepi__cu_result, \
  (gemmepi__cu_function function, int attribute, int value)) \
 X(tensor_map_encode_tiled, cuTensorMapEncodeTiled, gemmepi__cu_result, \
  (gemmepi__cu_tensor_map * map, int type, uint32_t rank, void *address, const uint64_t *extents, \
  const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, \
  int promotion, int fill)) \
 X(tensor_map_replace_address, cuTensorMapReplaceAddress, gemmepi__cu_result, \
  (gemmepi__cu_tensor_map * map, void *address)) \
 X(launch_kernel, cuLaunchKernel, gemmepi__cu_result, \
  (gemmepi__cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
  unsigned block_y, unsigned block_z, unsigned shared_size, gemmepi__cu_stream stream, \
  void **parameters, void **extra)) \
 X(launch_kernel_ex, cuLaunchKernelEx, gemmepi__cu_result, \
  (const gemmepi__cu_launch_config *config, gemmepi__cu_function function, void **parameters, \
  void **extra)) \
 X(get_error_name, cuGetErrorName, gemmepi__cu_result, (gemmepi__cu_result error, const char **name)) \
 X(get_error_string, cuGetErrorString, gemmepi__cu_result, (gemmepi__cu_result error, const char **text))

/* Filled by gemmepi__load_driver; then every function is there. */
typedef struct gemmepi__driver {
 void *library; /* NULL if a resolver supplied everything */
 int version; /* 13000 for CUDA 13.0 */
#define GEMMEPI__DRIVER_FIELD(field, symbol, result, parameters) result(GEMMEPI__CUDA_CALL *field) parameters;
 GEMMEPI__DRIVER_FUNCTIONS(GEMMEPI__DRIVER_FIELD)
#undef GEMMEPI__DRIVER_FIELD
} gemmepi__driver;

/* The status and the sentence for an error code of the driver; what says what was being done. */
static gemmepi_status gemmepi__cuda_failed(const gemmepi__driver *driver, gemmepi__cu_result result,
    const char *what) {
 const char *name = NULL, *text = NULL;
 driver->get_error_name(result, &name);
 driver->get_error_string(result, &text);
 return gemmepi__fail(result == GEMMEPI__CUDA_ERROR_OUT_OF_MEMORY ? GEMMEPI_OUT_OF_MEMORY
    : GEMMEPI_CUDA_ERROR,
    "%s: the CUDA driver returned %s (%d), %s", what, name ? name : "an unknown error",
    result, text ? text : "for which it has no text");
}
/* NVRTC's interface, as far as it is used; declared by hand as the driver's in driver.h. */

typedef int gemmepi__nvrtc_result;
typedef struct gemmepi__nvrtc_program_opaque *gemmepi__nvrtc_program;

/* NVRTC's name, value; ours has GEMMEPI__ before it */
#define GEMMEPI__NVRTC_CONSTANTS(X) \
 X(NVRTC_SUCCESS, 0) \
 X(NVRTC_ERROR_OUT_OF_MEMORY, 1) \
 X(NVRTC_ERROR_INVALID_INPUT, 3) \
 X(NVRTC_ERROR_INVALID_OPTION, 5) \
 X(NVRTC_ERROR_COMPILATION, 6) \
 X(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, 7) \
 X(NVRTC_ERROR_INTERNAL_ERROR, 11)

enum {
#define GEMMEPI__NVRTC_CONSTANT(name, value) GEMMEPI__##name = value,
 GEMMEPI__NVRTC_CONSTANTS(GEMMEPI__NVRTC_CONSTANT)
#undef GEMMEPI__NVRTC_CONSTANT
};

/* our field, the exported name (present since CUDA 12.0), result, parameters */
#define GEMMEPI__NVRTC_FUNCTIONS(X) \
 X(get_version, nvrtcVersion, gemmepi__nvrtc_result, (int *major, int *minor)) \
 X(get_error_string, nvrtcGetErrorString, const char *, (gemmepi__nvrtc_result result)) \
 X(get_num_supported_archs, nvrtcGetNumSupportedArchs, gemmepi__nvrtc_result, (int *count)) \
 X(get_supported_archs, nvrtcGetSupportedArchs, gemmepi__nvrtc_result, (int *archs)) \
 X(create_program, nvrtcCreateProgram, gemmepi__nvrtc_result, \
  (gemmepi__nvrtc_program * program, const char *source, const char *name, int header_count, \
  const char *const *headers, const char *const *header_names)) \
 X(destroy_program, nvrtcDestroyProgram, gemmepi__nvrtc_result, (gemmepi__nvrtc_program * program)) \
 X(compile_program, nvrtcCompileProgram, gemmepi__nvrtc_result, \
  (gemmepi__nvrtc_program program, int option_count, const char *const *options)) \
 X(get_cubin_size, nvrtcGetCUBINSize, gemmepi__nvrtc_result, \
  (gemmepi__nvrtc_program program, size_t * size)) \
 X(get_cubin, nvrtcGetCUBIN, gemmepi__nvrtc_result, (gemmepi__nvrtc_program program, char *cubin)) \
 X(get_ptx_size, nvrtcGetPTXSize, gemmepi__nvrtc_result, (gemmepi__nvrtc_program program, size_t * size)) \
 X(get_ptx, nvrtcGetPTX, gemmepi__nvrtc_result, (gemmepi__nvrtc_program program, char *ptx)) \
 X(get_program_log_size, nvrtcGetProgramLogSize, gemmepi__nvrtc_result, \
  (gemmepi__nvrtc_program program, size_t * size)) \
 X(get_program_log, nvrtcGetProgramLog, gemmepi__nvrtc_result, (gemmepi__nvrtc_program program, char *log))

/* Filled by gemmepi__load_nvrtc; then every function is there. */
typedef struct gemmepi__nvrtc {
 void *library; /* NULL if a resolver supplied everything */
 void *builtins; /* the library that NVRTC loads by name when it compiles; NULL: left to it */
 int version; /* 13000 for CUDA 13.0 */
#define GEMMEPI__NVRTC_FIELD(field, symbol, result, parameters) result(GEMMEPI__CUDA_CALL *field) parameters;
 GEMMEPI__NVRTC_FUNCTIONS(GEMMEPI__NVRTC_FIELD)
#undef GEMMEPI__NVRTC_FIELD
} gemmepi__nvrtc;

/* The status and the sentence for an error code of NVRTC; what says what was being done. */
static gemmepi_status gemmepi__nvrtc_failed(const gemmepi__nvrtc *nvrtc, gemmepi__nvrtc_result result,
    const char *what) {
 const char *name = nvrtc->get_error_string(result);
 return gemmepi__fail(result == GEMMEPI__NVRTC_ERROR_OUT_OF_MEMORY ? GEMMEPI_OUT_OF_MEMORY
    : GEMMEPI_COMPILE_ERROR,
    "%s: NVRTC returned %s (%d)", what, name ? name : "an unknown error", result);
}
/* cuBLASLt's interface, as far as it is used; declared by hand as the driver's in driver.h. */

typedef int gemmepi__lt_status;
typedef struct gemmepi__lt_handle_opaque *gemmepi__lt_handle;

/* Descriptors that the library builds in memory of ours, by the functions named _internal, which are told the size. A
 later version may use more of it than an earlier one: 23 words in CUDA 12.0, 32 in 13.0. Copies by value are good. */
typedef struct gemmepi__lt_matmul_desc {
 uint64_t data[32];
} gemmepi__lt_matmul_desc;

typedef struct gemmepi__lt_layout {
 uint64_t data[8];
} gemmepi__lt_layout;

typedef struct gemmepi__lt_preference {
 uint64_t data[8];
} gemmepi__lt_preference;

typedef struct gemmepi__lt_algo {
 uint64_t data[8];
} gemmepi__lt_algo;

typedef struct gemmepi__lt_heuristic {
 gemmepi__lt_algo algo;
 size_t workspace_size;
 gemmepi__lt_status state;
 float waves;
 int reserved[4];
} gemmepi__lt_heuristic;

/* cuBLASLt's name, value; ours has GEMMEPI__ before it. The MATMUL_DESC attributes above 26
 came after CUDA 12.0: a library that does not know one answers INVALID_VALUE. */
#define GEMMEPI__CUBLASLT_CONSTANTS(X) \
 X(CUBLAS_STATUS_SUCCESS, 0) \
 X(CUBLAS_STATUS_NOT_INITIALIZED, 1) \
 X(CUBLAS_STATUS_ALLOC_FAILED, 3) \
 X(CUBLAS_STATUS_INVALID_VALUE, 7) \
 X(CUBLAS_STATUS_ARCH_MISMATCH, 8) \
 X(CUBLAS_STATUS_EXECUTION_FAILED, 13) \
 X(CUBLAS_STATUS_INTERNAL_ERROR, 14) \
 X(CUBLAS_STATUS_NOT_SUPPORTED, 15) \
 X(CUDA_R_32F, 0) \
 X(CUDA_R_64F, 1) \
 X(CUDA_R_16F, 2) \
 X(CUDA_R_8I, 3) \
 X(CUDA_R_32I, 10) \
 X(CUDA_R_16BF, 14) \
 X(CUDA_R_8F_E4M3, 28) \
 X(CUDA_R_8F_E5M2, 29) \
 X(CUBLAS_COMPUTE_16F, 64) \
 X(CUBLAS_COMPUTE_32F, 68) \
 X(CUBLAS_COMPUTE_32F_PEDANTIC, 69) \
 X(CUBLAS_COMPUTE_64F, 70) \
 X(CUBLAS_COMPUTE_32I, 72) \
 X(CUBLAS_COMPUTE_32F_FAST_16F, 74) \
 X(CUBLAS_COMPUTE_32F_FAST_16BF, 75) \
 X(CUBLAS_COMPUTE_32F_FAST_TF32, 77) \
 X(CUBLAS_OP_N, 0) \
 X(CUBLAS_OP_T, 1) \
 X(CUBLASLT_POINTER_MODE_HOST, 0) \
 X(CUBLASLT_POINTER_MODE_DEVICE, 1) \
 X(CUBLASLT_POINTER_MODE_DEVICE_VECTOR, 2) \
 X(CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO, 3) \
 X(CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST, 4) \
 X(CUBLASLT_ORDER_COL, 0) \
 X(CUBLASLT_ORDER_ROW, 1) \
 X(CUBLASLT_EPILOGUE_DEFAULT, 1) \
 X(CUBLASLT_EPILOGUE_RELU, 2) \
 X(CUBLASLT_EPILOGUE_BIAS, 4) \
 X(CUBLASLT_EPILOGUE_RELU_BIAS, 6) \
 X(CUBLASLT_EPILOGUE_GELU, 32) \
 X(CUBLASLT_EPILOGUE_GELU_BIAS, 36) \
 X(CUBLASLT_EPILOGUE_RELU_AUX, 130) \
 X(CUBLASLT_EPILOGUE_RELU_AUX_BIAS, 134) \
 X(CUBLASLT_EPILOGUE_DRELU, 136) \
 X(CUBLASLT_EPILOGUE_DRELU_BGRAD, 152) \
 X(CUBLASLT_EPILOGUE_GELU_AUX, 160) \
 X(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 164) \
 X(CUBLASLT_EPILOGUE_DGELU, 192) \
 X(CUBLASLT_EPILOGUE_DGELU_BGRAD, 208) \
 X(CUBLASLT_EPILOGUE_BGRADA, 256) \
 X(CUBLASLT_EPILOGUE_BGRADB, 512) \
 X(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 0) \
 X(CUBLASLT_MATMUL_DESC_SCALE_TYPE, 1) \
 X(CUBLASLT_MATMUL_DESC_POINTER_MODE, 2) \
 X(CUBLASLT_MATMUL_DESC_TRANSA, 3) \
 X(CUBLASLT_MATMUL_DESC_TRANSB, 4) \
 X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7) \
 X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8) \
 X(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, 10) \
 X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 11) \
 X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 12) \
 X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, 13) \
 X(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, 14) \
 X(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 15) \
 X(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 17) \
 X(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 18) \
 X(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, 19) \
 X(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, 20) \
 X(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, 21) \
 X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, 22) \
 X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, 23) \
 X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, 24) \
 X(CUBLASLT_MATMUL_DESC_FAST_ACCUM, 25) \
 X(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 26) \
 X(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 31) \
 X(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 32) \
 X(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, 33) \
 X(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, 34) \
 X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, 35) \
 X(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, 36) \
 X(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, 37) \
 X(CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, 0) \
 X(CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3, 1) \
 X(CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0, 2) \
 X(CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, 3) \
 X(CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F, 4) \
 X(CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F, 5) \
 X(CUBLASLT_MATRIX_LAYOUT_TYPE, 0) \
 X(CUBLASLT_MATRIX_LAYOUT_ORDER, 1) \
 X(CUBLASLT_MATRIX_LAYOUT_ROWS, 2) \
 X(CUBLASLT_MATRIX_LAYOUT_COLS, 3) \
 X(CUBLASLT_MATRIX_LAYOUT_LD, 4) \
 X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5) \
 X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6) \
 X(CUBLASLT_MATMUL_PREF_SEARCH_MODE, 0) \
 X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1) \
 X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3) \
 X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5) \
 X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6) \
 X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7) \
 X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8) \
 X(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, 9) \
 X(CUBLASLT_REDUCTION_SCHEME_NONE, 0) \
 X(CUBLASLT_REDUCTION_SCHEME_INPLACE, 1) \
 X(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2) \
 X(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 4) \
 X(CUBLASLT_REDUCTION_SCHEME_MASK, 7) \
 X(CUBLASLT_ALGO_CONFIG_ID, 0) \
 X(CUBLASLT_ALGO_CONFIG_TILE_ID, 1) \
 X(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2) \
 X(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3) \
 X(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4) \
 X(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 5) \
 X(CUBLASLT_ALGO_CONFIG_STAGES_ID, 6) \
 X(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 7) \
 X(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 8)

enum {
#define GEMMEPI__CUBLASLT_CONSTANT(name, value) GEMMEPI__##name = value,
 GEMMEPI__CUBLASLT_CONSTANTS(GEMMEPI__CUBLASLT_CONSTANT)
#undef GEMMEPI__CUBLASLT_CONSTANT
};

/* our field, the exported name (present since CUDA 12.0), result, parameters; what cuBLASLt calls an enum is an int */
#define GEMMEPI__CUBLASLT_FUNCTIONS(X) \
 X(get_version, cublasLtGetVersion, size_t, (void)) \
 X(get_status_name, cublasLtGetStatusName, const char *, (gemmepi__lt_status status)) \
 X(get_status_string, cublasLtGetStatusString, const char *, (gemmepi__lt_status status)) \
 X(create, cublasLtCreate, gemmepi__lt_status, (gemmepi__lt_handle * handle)) \
 X(destroy, cublasLtDestroy, gemmepi__lt_status, (gemmepi__lt_handle handle)) \
 X(matmul, cublasLtMatmul, gemmepi__lt_status, \
  (gemmepi__lt_handle handle, gemmepi__lt_matmul_desc * desc, const void *alpha, const void *a, \
  gemmepi__lt_layout *a_layout, const void *b, gemmepi__lt_layout *b_layout, const void *beta, \
  const void *c, gemmepi__lt_layout *c_layout, void *d, gemmepi__lt_layout *d_layout, \
  const gemmepi__lt_algo *algo, void *workspace, size_t workspace_size, gemmepi__cu_stream stream)) \
 X(matmul_desc_init, cublasLtMatmulDescInit_internal, gemmepi__lt_status, \
  (gemmepi__lt_matmul_desc * desc, size_t size, int compute_type, int scale_type)) \
 X(matmul_desc_set_attribute, cublasLtMatmulDescSetAttribute, gemmepi__lt_status, \
  (gemmepi__lt_matmul_desc * desc, int attribute, const void *value, size_t size)) \
 X(matmul_desc_get_attribute, cublasLtMatmulDescGetAttribute, gemmepi__lt_status, \
  (gemmepi__lt_matmul_desc * desc, int attribute, void *value, size_t size, size_t *written)) \
 X(layout_init, cublasLtMatrixLayoutInit_internal, gemmepi__lt_status, \
  (gemmepi__lt_layout * layout, size_t size, int type, uint64_t rows, uint64_t cols, int64_t ld)) \
 X(layout_set_attribute, cublasLtMatrixLayoutSetAttribute, gemmepi__lt_status, \
  (gemmepi__lt_layout * layout, int attribute, const void *value, size_t size)) \
 X(preference_init, cublasLtMatmulPreferenceInit_internal, gemmepi__lt_status, \
  (gemmepi__lt_preference * preference, size_t size)) \
 X(preference_set_attribute, cublasLtMatmulPreferenceSetAttribute, gemmepi__lt_status, \
  (gemmepi__lt_preference * preference, int attribute, const void *value, size_t size)) \
 X(algo_get_heuristic, cublasLtMatmulAlgoGetHeuristic, gemmepi__lt_status, \
  (gemmepi__lt_handle handle, gemmepi__lt_matmul_desc * desc, gemmepi__lt_layout * a, \
  gemmepi__lt_layout * b, gemmepi__lt_layout * c, gemmepi__lt_layout * d, \
  gemmepi__lt_preference * preference, int requested, gemmepi__lt_heuristic *results, int *returned)) \
 X(algo_config_get_attribute, cublasLtMatmulAlgoConfigGetAttribute, gemmepi__lt_status, \
  (const gemmepi__lt_algo *algo, int attribute, void *value, size_t size, size_t *written))

/* Filled by gemmepi__load_cublaslt; then every function is there. */
typedef struct gemmepi__cublaslt {
 void *library; /* NULL if a resolver supplied everything */
 int version; /* 130100 for cuBLASLt 13.1.0 */
#define GEMMEPI__CUBLASLT_FIELD(field, symbol, result, parameters) \
 result(GEMMEPI__CUDA_CALL *field) parameters;
 GEMMEPI__CUBLASLT_FUNCTIONS(GEMMEPI__CUBLASLT_FIELD)
#undef GEMMEPI__CUBLASLT_FIELD
} gemmepi__cublaslt;

/* The status and the sentence for an error code of cuBLASLt; what says what was being done. */
static gemmepi_status gemmepi__cublaslt_failed(const gemmepi__cublaslt *lt, gemmepi__lt_status result,
    const char *what) {
 const char *name = lt->get_status_name(result), *text = lt->get_status_string(result);
 return gemmepi__fail(result == GEMMEPI__CUBLAS_STATUS_ALLOC_FAILED ? GEMMEPI_OUT_OF_MEMORY
    : GEMMEPI_CUBLAS_ERROR,
    "%s: cuBLASLt returned %s (%d), %s", what, name ? name : "an unknown error", result,
    text ? text : "for which it has no text");
}
/* Finds the CUDA driver, NVRTC and cuBLASLt on this machine and takes their functions.

 For every file name that a library may have, newest CUDA first, the places are tried in this order: the folders
 of the user's library_path; the system's own search, which also finds a library that the process has already;
 the toolkit; the wheels of pip. A newer CUDA in a later place beats an older one in an earlier place, except that
 library_path always wins. What is opened must have every function and a version that the driver takes, else the
 search goes on. Code is loaded from there, so a folder that comes from the environment is left out where others can
 write to it or to what it lies in. */

#if !GEMMEPI__WINDOWS
#include <dirent.h>
#endif

#define GEMMEPI__OLDEST_CUDA_MAJOR 12

typedef struct gemmepi__loader {
 const gemmepi__log *log; /* not NULL */
 const char *library_path; /* as in gemmepi_config */
 int library_path_only; /* as in gemmepi_config */
 gemmepi_symbol_resolver
  resolve; /* NULL: what the libraries export */
 void *resolve_user;
 int newest_major; /* of CUDA, for NVRTC and cuBLASLt: the driver's own (13.0 gives 13), since older drivers
    do not run what newer toolkits make; 0: any */
} gemmepi__loader;

/* >>tables */

typedef struct gemmepi__symbol {
 const char *name;
 size_t offset; /* of the function pointer in the library's struct */
} gemmepi__symbol;

typedef struct gemmepi__library_file {
 const char *name; /* NULL ends the list */
 int major; /* of CUDA; 0: the name does not tell */
} gemmepi__library_file;

/* Every root is tried with every folder behind it. A root may begin with $NAME, an environment variable, or with
 $(python3), the installation that the python3 on PATH belongs to, or $(python3 resolved), the same through its
 symbolic links, which lead out of a virtual environment. A * ends a component and stands for any end of it;
 a folder whose own name has one is not found. */
typedef struct gemmepi__places {
 const char *what; /* NULL ends the list */
 const char *const *roots;
 const char *const *folders;
} gemmepi__places;

typedef struct gemmepi__library_row {
 const char *name; /* for the resolver and the log */
 const char *title; /* for sentences */
 const char *advice;
 gemmepi__library_file files[4];
 gemmepi__places places[3];
 const gemmepi__symbol *symbols;
 size_t symbol_count;
 int (*version)(const void *functions); /* 0: it does not tell; NULL: not asked */
 int version_unit; /* what one major version counts in the version's number */
 int follows_driver; /* 1: newest_major holds */
} gemmepi__library_row;

static const gemmepi__symbol gemmepi__driver_symbols[] = {
#define GEMMEPI__DRIVER_SYMBOL(field, symbol, result, parameters) {#symbol, offsetof(gemmepi__driver, field)},
 GEMMEPI__DRIVER_FUNCTIONS(GEMMEPI__DRIVER_SYMBOL)
#undef GEMMEPI__DRIVER_SYMBOL
};

static const gemmepi__symbol gemmepi__nvrtc_symbols[] = {
#define GEMMEPI__NVRTC_SYMBOL(field, symbol, result, parameters) {#symbol, offsetof(gemmepi__nvrtc, field)},
 GEMMEPI__NVRTC_FUNCTIONS(GEMMEPI__NVRTC_SYMBOL)
#undef GEMMEPI__NVRTC_SYMBOL
};

static const gemmepi__symbol gemmepi__cublaslt_symbols[] = {
#define GEMMEPI__CUBLASLT_SYMBOL(field, symbol, result, parameters) \
 {#symbol, offsetof(gemmepi__cublaslt, field)},
 GEMMEPI__CUBLASLT_FUNCTIONS(GEMMEPI__CUBLASLT_SYMBOL)
#undef GEMMEPI__CUBLASLT_SYMBOL
};

static int gemmepi__driver_version_of(const void *functions) {
 int version = 0;
 if (((const gemmepi__driver *)functions)->driver_get_version(&version) != GEMMEPI__CUDA_SUCCESS)
  return 0;
 return version;
}

static int gemmepi__nvrtc_version_of(const void *functions) {
 int major = 0, minor = 0;
 if (((const gemmepi__nvrtc *)functions)->get_version(&major, &minor) != GEMMEPI__NVRTC_SUCCESS)
  return 0;
 return major * 1000 + minor * 10;
}

static int gemmepi__cublaslt_version_of(const void *functions) {
 return (int)((const gemmepi__cublaslt *)functions)->get_version();
}

#if GEMMEPI__WINDOWS
#define GEMMEPI__FILES_CUDA \
 { \
  { "nvcuda.dll", 0 } \
 }
#define GEMMEPI__FILES_NVRTC \
 { \
  {"nvrtc64_130_0.dll", 13}, { \
   "nvrtc64_120_0.dll", 12 \
  } \
 }
#define GEMMEPI__FILES_CUBLASLT \
 { \
  {"cublasLt64_13.dll", 13}, { \
   "cublasLt64_12.dll", 12 \
  } \
 }
#define GEMMEPI__FILE_BUILTINS "nvrtc-builtins64_%d%d.dll"

static const char *const gemmepi__driver_roots[] = {NULL};
static const char *const gemmepi__driver_folders[] = {NULL};
static const char *const gemmepi__toolkit_roots[] = {"$CUDA_PATH", "$CUDA_HOME", "$CONDA_PREFIX\\Library",
    "$ProgramFiles\\NVIDIA GPU Computing Toolkit\\CUDA\\v*",
    NULL};
static const char *const gemmepi__toolkit_folders[] = {"\\bin\\x64", "\\bin", NULL};
static const char *const gemmepi__python_roots[] = {"$VIRTUAL_ENV\\Lib",
    "$CONDA_PREFIX\\Lib",
    "$(python3)\\Lib",
    "$LOCALAPPDATA\\Programs\\Python\\Python3*\\Lib",
    "$APPDATA\\Python\\Python3*",
    NULL};
static const char *const gemmepi__python_folders[] = {
 "\\site-packages\\nvidia\\cu13\\bin\\x86_64", "\\site-packages\\nvidia\\cu13\\bin",
 "\\site-packages\\nvidia\\cu12\\bin",         "\\site-packages\\nvidia\\cuda_nvrtc\\bin",
 "\\site-packages\\nvidia\\cublas\\bin",       NULL};
#else
#define GEMMEPI__FILES_CUDA \
 { \
  {"libcuda.so.1", 0}, { \
   "libcuda.so", 0 \
  } \
 }
#define GEMMEPI__FILES_NVRTC \
 { \
  {"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}, { \
   "libnvrtc.so", 0 \
  } \
 }
#define GEMMEPI__FILES_CUBLASLT \
 { \
  {"libcublasLt.so.13", 13}, {"libcublasLt.so.12", 12}, { \
   "libcublasLt.so", 0 \
  } \
 }
#define GEMMEPI__FILE_BUILTINS "libnvrtc-builtins.so.%d.%d"

/* where WSL, NixOS and Kubernetes put the driver */
static const char *const gemmepi__driver_roots[] = {"/usr/lib/wsl/lib", "/run/opengl-driver/lib",
    "/usr/local/nvidia/lib64", NULL};
static const char *const gemmepi__driver_folders[] = {"", NULL};
static const char *const gemmepi__toolkit_roots[] = {
 "$CUDA_PATH", "$CUDA_HOME", "$CONDA_PREFIX", "/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", NULL};
static const char *const gemmepi__toolkit_folders[] = {"/lib64", "/lib", "/targets/x86_64-linux/lib",
    "/targets/sbsa-linux/lib", NULL};
static const char *const gemmepi__python_roots[] = {
 "$VIRTUAL_ENV/lib/python3*", "$CONDA_PREFIX/lib/python3*",
 "$(python3)/lib/python3*",   "$(python3 resolved)/lib/python3*",
 "$HOME/.local/lib/python3*", "/usr/local/lib/python3*",
 "/usr/lib/python3*",         NULL};
static const char *const gemmepi__python_folders[] = {"/site-packages/nvidia/cu13/lib",
    "/site-packages/nvidia/cu12/lib",
    "/site-packages/nvidia/cuda_nvrtc/lib",
    "/site-packages/nvidia/cublas/lib",
    "/dist-packages/nvidia/cu13/lib",
    "/dist-packages/nvidia/cu12/lib",
    "/dist-packages/nvidia/cuda_nvrtc/lib",
    "/dist-packages/nvidia/cublas/lib",
    NULL};
#endif

#define GEMMEPI__PLACES_DRIVER \
 { \
  {"", gemmepi__driver_roots, gemmepi__driver_folders}, { \
   NULL, NULL, NULL \
  } \
 }
#define GEMMEPI__PLACES_TOOLKIT \
 { \
  {"the toolkit's folders under ", gemmepi__toolkit_roots, gemmepi__toolkit_folders}, \
   {"pip's nvidia wheels under ", gemmepi__python_roots, gemmepi__python_folders}, { \
   NULL, NULL, NULL \
  } \
 }

#if defined(__APPLE__)
#define GEMMEPI__ADVICE_CUDA "There is none for macOS: take GEMMEPI_DEVICE_HOST."
#else
#define GEMMEPI__ADVICE_CUDA "It is part of NVIDIA's display driver: install that, 525 or later."
#endif

static const gemmepi__library_row gemmepi__driver_row = {"cuda",
    "the CUDA driver",
    GEMMEPI__ADVICE_CUDA,
    GEMMEPI__FILES_CUDA,
    GEMMEPI__PLACES_DRIVER,
    gemmepi__driver_symbols,
    GEMMEPI__COUNT(gemmepi__driver_symbols),
    gemmepi__driver_version_of,
    1000,
    0};

static const gemmepi__library_row gemmepi__nvrtc_row = {
 "nvrtc",
 "NVRTC, CUDA's run-time compiler,",
 "Install the CUDA toolkit, or `pip install nvidia-cuda-nvrtc` (nvidia-cuda-nvrtc-cu12 for a driver of CUDA 12), "
 "or NVIDIA's package cuda-nvrtc-13-0, or set library_path of gemmepi_config to its folder.",
 GEMMEPI__FILES_NVRTC,
 GEMMEPI__PLACES_TOOLKIT,
 gemmepi__nvrtc_symbols,
 GEMMEPI__COUNT(gemmepi__nvrtc_symbols),
 gemmepi__nvrtc_version_of,
 1000,
 1};

static const gemmepi__library_row gemmepi__cublaslt_row = {
 "cublasLt",
 "cuBLASLt",
 "Install the CUDA toolkit, or `pip install nvidia-cublas` (nvidia-cublas-cu12 for a driver of CUDA 12), or NVIDIA's "
 "package libcublas-13-0, or set library_path of gemmepi_config to its folder.",
 GEMMEPI__FILES_CUBLASLT,
 GEMMEPI__PLACES_TOOLKIT,
 gemmepi__cublaslt_symbols,
 GEMMEPI__COUNT(gemmepi__cublaslt_symbols),
 gemmepi__cublaslt_version_of,
 10000,
 1};

/* >>the system's answers */

static int gemmepi__file_exists(const char *path) {
#if GEMMEPI__WINDOWS
 DWORD attributes = GetFileAttributesA(path);
 return attributes != INVALID_FILE_ATTRIBUTES && !(attributes & FILE_ATTRIBUTE_DIRECTORY);
#else
 return access(path, F_OK) == 0;
#endif
}

/* The three texts in one path; 0 if they do not fit. */
static int gemmepi__join(char *path, const char *first, const char *second, const char *third) {
 gemmepi__text text = gemmepi__text_in(path, GEMMEPI__PATH_SIZE);
 gemmepi__append(&text, "%s%s%s", first, second, third);
 return !gemmepi__text_is_cut(&text);
}

/* Cuts the last component off; 0 if there is none. */
static int gemmepi__to_folder(char *path) {
 size_t length = strlen(path);
 while (length > 0 && !gemmepi__is_slash(path[length - 1]))
  length--;
 if (length == 0)
  return 0;
 path[length - 1] = 0;
 return 1;
}

/* Takes the next item off a list of folders; 0 at its end. Empty items are left out. */
static int gemmepi__next_folder(const char **list, char *folder) {
 while (*list && **list) {
  const char *end = strchr(*list, GEMMEPI__LIST_SEPARATOR);
  size_t length = end ? (size_t)(end - *list) : strlen(*list);
  const char *item = *list;
  *list = end ? end + 1 : NULL;
  if (length > 0 && length < GEMMEPI__PATH_SIZE) {
   memcpy(folder, item, length);
   folder[length] = 0;
   return 1;
  }
 }
 return 0;
}

#define GEMMEPI__ENTRY_SIZE 256

/* Newer versions first: 3.13 before 3.9, 13.0 before 12.9. */
static int gemmepi__comes_before(const char *a, const char *b) {
 return strlen(a) != strlen(b) ? strlen(a) > strlen(b) : strcmp(a, b) > 0;
}

/* Keeps name in best if it comes after previous and before what best holds. */
static void gemmepi__consider_entry(const char *name, const char *prefix, const char *previous, char *best) {
 if (strncmp(name, prefix, strlen(prefix)) != 0 || strlen(name) >= GEMMEPI__ENTRY_SIZE)
  return;
 if (previous[0] && !gemmepi__comes_before(previous, name))
  return;
 if (!best[0] || gemmepi__comes_before(name, best))
  memcpy(best, name, strlen(name) + 1);
}

/* Replaces entry by the one after it among those of the folder that begin with prefix ("" asks for the first); 0 after
 the last. Reads the folder anew each time, so that nothing is to be kept. */
static int gemmepi__next_entry(const char *folder, const char *prefix, char *entry) {
 char best[GEMMEPI__ENTRY_SIZE] = "";
#if GEMMEPI__WINDOWS
 char pattern[GEMMEPI__PATH_SIZE];
 WIN32_FIND_DATAA data;
 HANDLE list;
 if (!gemmepi__join(pattern, folder, "\\", "*"))
  return 0;
 list = FindFirstFileA(pattern, &data);
 if (list == INVALID_HANDLE_VALUE)
  return 0;
 do
  gemmepi__consider_entry(data.cFileName, prefix, entry, best);
 while (FindNextFileA(list, &data));
 FindClose(list);
#else
 struct dirent *item;
 DIR *list = opendir(folder);
 if (!list)
  return 0;
 while ((item = readdir(list)) != NULL)
  gemmepi__consider_entry(item->d_name, prefix, entry, best);
 closedir(list);
#endif
 memcpy(entry, best, sizeof best);
 return entry[0] != 0;
}

#if !GEMMEPI__WINDOWS
/* Whether the path's last component is this. */
static int gemmepi__ends_in_folder(const char *path, const char *name) {
 size_t length = strlen(path), size = strlen(name);
 return length > size && gemmepi__is_slash(path[length - size - 1]) &&
   strcmp(path + length - size, name) == 0;
}
#endif

/* The folder that holds bin, and beside it the lib folder, of the first Python on PATH. Items of PATH that are relative,
 that others can write to, or (but on Windows) that are not called bin, are left out: code is loaded from what is found. */
static int gemmepi__python_prefix(int resolved, char *prefix) {
 char variable[4 * GEMMEPI__PATH_SIZE], folder[GEMMEPI__PATH_SIZE], program[GEMMEPI__PATH_SIZE];
 const char *list = variable;
 if (!gemmepi__environment("PATH", variable, sizeof variable))
  return 0;
 while (gemmepi__next_folder(&list, folder)) {
  if (!gemmepi__is_absolute(folder) || gemmepi__others_can_write(folder))
   continue;
#if GEMMEPI__WINDOWS
  (void)resolved;
  if (!gemmepi__join(program, folder, "\\", "python.exe") || !gemmepi__file_exists(program))
   continue;
  /* a virtual environment keeps it in Scripts, an installation beside Lib */
  memcpy(prefix, folder, sizeof folder);
  if (gemmepi__join(program, folder, "\\", "activate.bat") && gemmepi__file_exists(program))
   gemmepi__to_folder(prefix);
  return 1;
#else
  while (strlen(folder) > 1 && gemmepi__is_slash(folder[strlen(folder) - 1]))
   folder[strlen(folder) - 1] = 0;
  if (!gemmepi__ends_in_folder(folder, "bin") || !gemmepi__join(program, folder, "/", "python3") ||
   !gemmepi__file_exists(program))
   continue;
  if (!resolved)
   memcpy(prefix, program, sizeof program);
  else if (!gemmepi__realpath(program, prefix))
   return 0;
  return gemmepi__to_folder(prefix) && gemmepi__ends_in_folder(prefix, "bin") &&
    gemmepi__to_folder(prefix);
#endif
 }
 return 0;
}

/* Replaces what a root begins with by what it stands for; 0 if that is not set, or not an absolute path. */
static int gemmepi__expand_root(const char *root, char *path) {
 char name[64], value[GEMMEPI__PATH_SIZE];
 size_t length = 0;
 if (root[0] != '$')
  return gemmepi__join(path, root, "", "");
 while (root[1 + length] && !gemmepi__is_slash(root[1 + length]) && length < sizeof name - 1) {
  name[length] = root[1 + length];
  length++;
 }
 name[length] = 0;
 if (name[0] == '(') {
  if (!gemmepi__python_prefix(strcmp(name, "(python3 resolved)") == 0, value))
   return 0;
 } else if (!gemmepi__environment(name, value, sizeof value)) {
  return 0;
 }
 return gemmepi__is_absolute(value) && gemmepi__join(path, value, root + 1 + length, "");
}

/* >>the search */

typedef struct gemmepi__search {
 const gemmepi__loader *loader;
 const gemmepi__library_row *row;
 const char *file; /* the name that is looked for now */
 int from_environment; /* the folders looked into come from a variable */
 void *functions; /* the struct to fill */
 void *library; /* the answer */
 int version;
 char path[GEMMEPI__PATH_SIZE];
 char reason[400]; /* why the first that was there was not taken; "" if nothing was there */
} gemmepi__search;

GEMMEPI__PRINTF(2, 3)
static void gemmepi__note_reason(gemmepi__search *search, const char *format, ...) {
 char text[sizeof search->reason];
 va_list arguments;
 va_start(arguments, format);
 vsnprintf(text, sizeof text, format, arguments);
 va_end(arguments);
 gemmepi__say(search->loader->log, GEMMEPI_LOG_DEBUG, "%s not taken: %s", search->row->name, text);
 if (!search->reason[0])
  memcpy(search->reason, text, sizeof text);
}

/* Fills in every function, from the library (NULL: none) and the resolver. Returns how many there are; *missing is
 the first that is not. */
static size_t gemmepi__take_symbols(gemmepi__search *search, void *library, const char **missing) {
 const gemmepi__loader *loader = search->loader;
 const gemmepi__library_row *row = search->row;
 size_t i, count = 0;
 *missing = NULL;
 for (i = 0; i < row->symbol_count; i++) {
  const gemmepi__symbol *symbol = &row->symbols[i];
  void *address = library ? gemmepi__library_symbol(library, symbol->name) : NULL;
  if (loader->resolve)
   address = loader->resolve(loader->resolve_user, row->name, symbol->name, address);
  if (address)
   count++;
  else if (!*missing)
   *missing = symbol->name;
  memcpy((char *)search->functions + symbol->offset, &address, sizeof address);
 }
 return count;
}

/* The version of what the functions belong to is asked for and noted; 0 with the reason if it is not to be used. */
static int gemmepi__check_version(gemmepi__search *search, const char *from) {
 const gemmepi__library_row *row = search->row;
 int newest = row->follows_driver ? search->loader->newest_major : 0, major, minor;
 if (!row->version)
  return 1;
 search->version = row->version(search->functions);
 major = search->version / row->version_unit;
 minor = search->version % row->version_unit / (row->version_unit / 100);
 if (search->version <= 0)
  gemmepi__note_reason(search, "%s does not tell its version", from);
 else if (major < GEMMEPI__OLDEST_CUDA_MAJOR)
  gemmepi__note_reason(search, "%s has version %d.%d, and the oldest that can be used is %d.0", from,
    major, minor, GEMMEPI__OLDEST_CUDA_MAJOR);
 else if (newest && major > newest)
  gemmepi__note_reason(search, "%s has version %d.%d, and this driver takes CUDA %d at most", from,
    major, minor, newest);
 else
  return 1;
 return 0;
}

/* Opens a file by a path or a plain name. 1 if it is what is wanted. */
static int gemmepi__try_library(gemmepi__search *search, const char *name, int has_folder) {
 const char *missing;
 char text[300];
 void *library = gemmepi__library_open(name, text, sizeof text);
 if (!library) {
  if (has_folder) /* then it was there, and something else is wrong */
   gemmepi__note_reason(search, "%s", text);
  return 0;
 }
 if (has_folder ||
  !gemmepi__library_path(library, search->row->symbols[0].name, search->path, sizeof search->path))
  gemmepi__join(search->path, name, "", "");
 gemmepi__take_symbols(search, library, &missing);
 if (missing)
  gemmepi__note_reason(search, "%.250s has no function %s", search->path, missing);
 else if (gemmepi__check_version(search, search->path)) {
  search->library = library;
  return 1;
 }
 gemmepi__library_close(library);
 return 0;
}

static int gemmepi__try_folder(gemmepi__search *search, const char *folder) {
 char path[GEMMEPI__PATH_SIZE];
 if (!gemmepi__join(path, folder, GEMMEPI__SLASH, search->file) || !gemmepi__file_exists(path))
  return 0;
 if (search->from_environment && (gemmepi__others_can_write(folder) || gemmepi__others_can_write(path))) {
  gemmepi__note_reason(search, "%.250s is in a folder that others can write to, or replace", path);
  return 0;
 }
 return gemmepi__try_library(search, path, 1);
}

/* Tries every folder that done followed by rest stands for; only rest may have a *. */
static int gemmepi__try_pattern(gemmepi__search *search, const char *done, const char *rest) {
 const char *star = strchr(rest, '*');
 char folder[GEMMEPI__PATH_SIZE], next[GEMMEPI__PATH_SIZE];
 char prefix[GEMMEPI__ENTRY_SIZE], entry[GEMMEPI__ENTRY_SIZE] = "";
 const char *last;
 if (!gemmepi__join(folder, done, rest, ""))
  return 0;
 if (!star)
  return gemmepi__try_folder(search, folder);
 folder[strlen(done) + (size_t)(star - rest)] = 0;
 last = strrchr(folder, GEMMEPI__SLASH[0]);
 if (!last || strlen(last + 1) >= sizeof prefix)
  return 0;
 memcpy(prefix, last + 1, strlen(last + 1) + 1);
 gemmepi__to_folder(folder);
 while (gemmepi__next_entry(folder, prefix, entry))
  if (gemmepi__join(next, folder, GEMMEPI__SLASH, entry) &&
   gemmepi__try_pattern(search, next, star + 1))
   return 1;
 return 0;
}

static int gemmepi__try_places(gemmepi__search *search) {
 const gemmepi__places *places;
 size_t r, f;
 for (places = search->row->places; places->what; places++)
  for (r = 0; places->roots[r]; r++) {
   char root[GEMMEPI__PATH_SIZE], pattern[GEMMEPI__PATH_SIZE];
   if (!gemmepi__expand_root(places->roots[r], root))
    continue;
   search->from_environment = places->roots[r][0] == '$';
   for (f = 0; places->folders[f]; f++)
    if (gemmepi__join(pattern, root, places->folders[f], "") &&
    gemmepi__try_pattern(search, "", pattern))
    return 1;
  }
 return 0;
}

static int gemmepi__is_wanted(const gemmepi__search *search, const gemmepi__library_file *file) {
 int newest = search->row->follows_driver ? search->loader->newest_major : 0;
 return newest == 0 || file->major <= newest;
}

/* The folders of library_path, each with every name before the next folder; then name by name everywhere else. */
static int gemmepi__find_library(gemmepi__search *search) {
 const char *list = search->loader->library_path;
 const gemmepi__library_file *files = search->row->files;
 char folder[GEMMEPI__PATH_SIZE];
 size_t i;
 while (gemmepi__next_folder(&list, folder))
  for (i = 0; i < GEMMEPI__COUNT(search->row->files) && files[i].name; i++) {
   search->file = files[i].name;
   if (gemmepi__is_wanted(search, &files[i]) && gemmepi__try_folder(search, folder))
    return 1;
  }
 for (i = 0; i < GEMMEPI__COUNT(search->row->files) && files[i].name && !search->loader->library_path_only;
   i++) {
  search->file = files[i].name;
  if (gemmepi__is_wanted(search, &files[i]) &&
   (gemmepi__try_library(search, search->file, 0) || gemmepi__try_places(search)))
   return 1;
 }
 return 0;
}

/* 1 if the resolver has a whole library of its own, as tests do. */
static int gemmepi__resolve_without_library(gemmepi__search *search) {
 const char *missing;
 if (!search->loader->resolve)
  return 0;
 if (gemmepi__take_symbols(search, NULL, &missing) > 0 && missing)
  gemmepi__note_reason(search, "the symbol resolver has no function %s", missing);
 if (missing || !gemmepi__check_version(search, "what the symbol resolver gives"))
  return 0;
 gemmepi__join(search->path, "the symbol resolver", "", "");
 return 1;
}

/* What was looked for, and where; what helps stands first, because a very long sentence loses its end. */
static gemmepi_status gemmepi__library_not_found(const gemmepi__search *search) {
 const gemmepi__library_row *row = search->row;
 const gemmepi__places *places;
 char data[GEMMEPI__ERROR_TEXT_SIZE], path[GEMMEPI__PATH_SIZE];
 gemmepi__text text = gemmepi__text_in(data, sizeof data);
 size_t i;
 if (search->reason[0])
  gemmepi__append(&text, "%s cannot be used: %s. %s Tried:", row->title, search->reason, row->advice);
 else
  gemmepi__append(&text, "%s was not found. %s Tried:", row->title, row->advice);
 for (i = 0; i < GEMMEPI__COUNT(row->files) && row->files[i].name; i++)
  if (gemmepi__is_wanted(search, &row->files[i]))
   gemmepi__append(&text, " %s", row->files[i].name);
 if (search->loader->library_path && search->loader->library_path[0])
  gemmepi__append(&text, ", in library_path (%.200s)", search->loader->library_path);
 else
  gemmepi__append(&text, ", in library_path (not set)");
 if (search->loader->library_path_only) {
  gemmepi__append(&text, " alone (library_path_only)");
  return gemmepi__fail(GEMMEPI_LIBRARY_NOT_FOUND, "%s", data);
 }
 gemmepi__append(&text, ", the system's library search");
 for (places = row->places; places->what; places++)
  for (i = 0; places->roots[i]; i++)
   gemmepi__append(&text, ", %s%s%s", i ? "" : places->what, places->roots[i],
    gemmepi__expand_root(places->roots[i], path) ? "" : " (not set)");
 return gemmepi__fail(GEMMEPI_LIBRARY_NOT_FOUND, "%s", data);
}

/* Fills the struct of functions, sets *library (NULL: the resolver has it all) and *version (0: not asked). file, if
 not NULL, has room for GEMMEPI__PATH_SIZE bytes and gets the file's path. Unless that succeeds, the functions have
 no meaning. */
static gemmepi_status gemmepi__load_library(const gemmepi__loader *loader, const gemmepi__library_row *row,
    void *functions, void **library, int *version, char *file) {
 gemmepi__search search;
 memset(&search, 0, sizeof search);
 search.loader = loader;
 search.row = row;
 search.functions = functions;
 if (!gemmepi__find_library(&search) && !gemmepi__resolve_without_library(&search))
  return gemmepi__library_not_found(&search);
 *library = search.library;
 *version = search.version;
 if (file)
  memcpy(file, search.path, sizeof search.path);
 gemmepi__say(loader->log, GEMMEPI_LOG_INFO, "%s %d.%d from %s", row->name,
    search.version / row->version_unit,
    search.version % row->version_unit / (row->version_unit / 100), search.path);
 return GEMMEPI_OK;
}

/* >>the three libraries */

/* Each takes a struct of any content. On failure it is all zero, the status LIBRARY_NOT_FOUND. Not for two threads on
 the same struct at once. */
static gemmepi_status gemmepi__load_driver(const gemmepi__loader *loader, gemmepi__driver *driver) {
 gemmepi_status status;
 memset(driver, 0, sizeof *driver);
 status =
  gemmepi__load_library(loader, &gemmepi__driver_row, driver, &driver->library, &driver->version, NULL);
 if (status != GEMMEPI_OK)
  memset(driver, 0, sizeof *driver);
 return status;
}

static void gemmepi__unload_driver(gemmepi__driver *driver) {
 gemmepi__library_close(driver->library);
 memset(driver, 0, sizeof *driver);
}

/* NVRTC opens its builtins by their plain name when it compiles, which fails where its folder is not on the system's
 search path. Once they are in the process, that name finds them. */
static void gemmepi__load_builtins(const gemmepi__loader *loader, gemmepi__nvrtc *nvrtc, char *file) {
 char name[64], path[GEMMEPI__PATH_SIZE], reason[300];
 snprintf(name, sizeof name, GEMMEPI__FILE_BUILTINS, nvrtc->version / 1000, nvrtc->version % 1000 / 10);
 if (!nvrtc->library || !gemmepi__to_folder(file) || !gemmepi__join(path, file, GEMMEPI__SLASH, name))
  return;
 nvrtc->builtins = gemmepi__library_open(path, reason, sizeof reason);
 if (!nvrtc->builtins)
  gemmepi__say(loader->log, GEMMEPI_LOG_DEBUG, "nvrtc's builtins are left to it: %s", reason);
}

static gemmepi_status gemmepi__load_nvrtc(const gemmepi__loader *loader, gemmepi__nvrtc *nvrtc) {
 char file[GEMMEPI__PATH_SIZE];
 gemmepi_status status;
 memset(nvrtc, 0, sizeof *nvrtc);
 status =
  gemmepi__load_library(loader, &gemmepi__nvrtc_row, nvrtc, &nvrtc->library, &nvrtc->version, file);
 if (status == GEMMEPI_OK)
  gemmepi__load_builtins(loader, nvrtc, file);
 else
  memset(nvrtc, 0, sizeof *nvrtc);
 return status;
}

static void gemmepi__unload_nvrtc(gemmepi__nvrtc *nvrtc) {
 gemmepi__library_close(nvrtc->library);
 gemmepi__library_close(nvrtc->builtins);
 memset(nvrtc, 0, sizeof *nvrtc);
}

static gemmepi_status gemmepi__load_cublaslt(const gemmepi__loader *loader, gemmepi__cublaslt *lt) {
 gemmepi_status status;
 memset(lt, 0, sizeof *lt);
 status = gemmepi__load_library(loader, &gemmepi__cublaslt_row, lt, &lt->library, &lt->version, NULL);
 if (status != GEMMEPI_OK)
  memset(lt, 0, sizeof *lt);
 return status;
}

static void gemmepi__unload_cublaslt(gemmepi__cublaslt *lt) {
 gemmepi__library_close(lt->library);
 memset(lt, 0, sizeof *lt);
}

/* The cache folder: compiled kernels and tuning answers that outlive the process.

 Layout   One file for each entry, all in one folder: <SHA-256 of the key, 64 hex digits>.<kind>.gemmepi. The kind
   ("cubin", "tune") is 1 to 8 lower-case letters. Numbers are little endian:

    0   8  "gemmepi\n"                    32  32  SHA-256 of bytes 0 to 31, the key and the payload
    8   4  format version                 64      the key
    12  4  size of the key                        the payload
    16  8  kind, filled up with zeros             (nothing follows)
    24  8  size of the payload

 Key      Any bytes; the caller puts everything in that the payload depends on. The name only finds the file, what
   decides is the whole key in it.

 Trust    Code is loaded from here. So the folder must be this user's and writable by nobody else, and so must a
   file, which must be a regular one and no link; all of this is checked on what was opened, at every call.
   Every field is checked before it is used. A file that fails is a miss, never an error; one whose content
   is bad is removed.

 Sharing  Any number of threads, processes and machines may use a folder at once, without a lock: files are written
   aside and renamed into place, so a name has a whole file or none, and who finds it keeps it open while
   others replace or remove it. Two that miss the same key both put it; the last stays. Nobody relies on an
   entry being there.

 Size     After a put the oldest entries go until the rest is within the bound; a hit makes an entry young again.
   What an interrupted put left behind goes after an hour. Nothing else in the folder is touched.

 Nothing here fails: without a usable folder gets miss, puts do nothing, and the log says so once. */

#define GEMMEPI__DISK_CACHE_VERSION 1
#define GEMMEPI__DISK_CACHE_HEADER  64
#define GEMMEPI__DISK_CACHE_NAME    96 /* room for an entry's name with its final zero: 64 + 1 + 8 + 8 + 1 */
#define GEMMEPI__DISK_CACHE_KIND    8

/* What gemmepi_config.cache_size promises for zero. */
#define GEMMEPI__DISK_CACHE_BOUND ((size_t)256 << 20)

/* No put takes an hour. */
#define GEMMEPI__DISK_CACHE_STALE_SECONDS 3600

typedef struct gemmepi__disk_cache {
 gemmepi_allocator allocator;
 gemmepi__log log;
 char *path; /* NULL: no cache */
 size_t bound;
 long times_refused, times_not_stored; /* counted so that the log has each once */
} gemmepi__disk_cache;

/* >>names */

static void gemmepi__disk_cache_name(char name[GEMMEPI__DISK_CACHE_NAME], const char *kind, const void *key,
    size_t key_size) {
 unsigned char digest[GEMMEPI__SHA256_SIZE];
 char hex[GEMMEPI__SHA256_HEX_SIZE];
 gemmepi__text text = gemmepi__text_in(name, GEMMEPI__DISK_CACHE_NAME);
 gemmepi__sha256_of(key, key_size, digest);
 gemmepi__sha256_hex(digest, hex);
 gemmepi__append(&text, "%s.%s.gemmepi", hex, kind);
}

/* Whether the first length characters of name are what gemmepi__disk_cache_name makes. */
static int gemmepi__disk_cache_is_entry(const char *name, size_t length) {
 static const char last[] = ".gemmepi";
 size_t hex = strspn(name, "0123456789abcdef");
 size_t kind = name[hex] == '.' ? strspn(name + hex + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
 return hex == 64 && kind >= 1 && kind <= GEMMEPI__DISK_CACHE_KIND &&
   length == hex + 1 + kind + strlen(last) && strncmp(name + hex + 1 + kind, last, strlen(last)) == 0;
}

/* >>opening */

/* Takes copies of everything. path: NULL is gemmepi/ in the user's cache folder, "" is no cache. bound, in bytes: 0 is
 256 MiB. Touches no disk; the folder is made by the first put. */
static void gemmepi__disk_cache_open(gemmepi__disk_cache *cache, const gemmepi_allocator *allocator,
    const gemmepi__log *log, const char *path, size_t bound) {
 char full[GEMMEPI__PATH_SIZE];
 gemmepi__text text = gemmepi__text_in(full, sizeof full);
 memset(cache, 0, sizeof *cache);
 cache->allocator = *allocator;
 cache->log = *log;
 cache->bound = bound ? bound : GEMMEPI__DISK_CACHE_BOUND;
 if (path && path[0] == 0)
  return;
 if (!path) {
  if (!gemmepi__user_cache_folder(&text)) {
   gemmepi__say(
    &cache->log, GEMMEPI_LOG_INFO,
    "the environment names no cache folder of the user's: compiled kernels are not kept; "
    "set gemmepi_config.cache_path to keep them");
   return;
  }
  gemmepi__append(&text, "/gemmepi");
 } else if (gemmepi__is_absolute(path)) {
  gemmepi__append(&text, "%s", path);
 } else if (gemmepi__current_folder(full, sizeof full) == 0) {
  /* the program may change its current folder later */
  text.length = strlen(full);
  gemmepi__append(&text, "/%s", path);
 } else {
  gemmepi__append(&text, "%s", path);
 }
 if (!gemmepi__text_is_cut(&text))
  cache->path = (char *)allocator->alloc(allocator->user, text.length + 1);
 if (cache->path)
  memcpy(cache->path, full, text.length + 1);
 else
  gemmepi__say(
   &cache->log, GEMMEPI_LOG_WARNING,
   "the cache folder's path, of %llu bytes, is too long or there is no memory for it: compiled "
   "kernels are not kept",
   (gemmepi__ull)text.length);
}

static void gemmepi__disk_cache_close(gemmepi__disk_cache *cache) {
 gemmepi__delete(&cache->allocator, cache->path);
 cache->path = NULL;
}

/* 1 with the folder opened; 0 if it does not exist, unless `make` makes it; -1 if it cannot or must not be used, which
 the log is told once. */
static int gemmepi__disk_cache_enter(gemmepi__disk_cache *cache, int make, gemmepi__folder *folder) {
 char reason[512];
 gemmepi__text why = gemmepi__text_in(reason, sizeof reason);
 int code;
 if (!cache->path)
  return 0;
 code = gemmepi__folder_open(folder, cache->path);
 if (gemmepi__file_is_missing(code)) {
  if (!make)
   return 0;
  code = gemmepi__folder_make(cache->path);
  if (!code)
   code = gemmepi__folder_open(folder, cache->path);
 }
 if (code) {
  gemmepi__file_error(&why, code);
 } else {
  if (gemmepi__folder_is_private(folder, &why))
   return 1;
  gemmepi__folder_close(folder);
 }
 if (gemmepi__add(&cache->times_refused, 1) == 1)
  gemmepi__say(
   &cache->log, GEMMEPI_LOG_WARNING,
   "the cache folder %s is not used, so kernels are compiled anew in each process: %s; or set "
   "gemmepi_config.cache_path to another folder",
   cache->path, reason);
 return -1;
}

/* The folder in use, which need not exist yet; "" if there is none or it is refused. */
static const char *gemmepi__disk_cache_path(gemmepi__disk_cache *cache) {
 gemmepi__folder folder;
 int entered = gemmepi__disk_cache_enter(cache, 0, &folder);
 if (entered > 0)
  gemmepi__folder_close(&folder);
 return cache->path && entered >= 0 ? cache->path : "";
}

/* >>the file */

static void gemmepi__write_little_endian(unsigned char *bytes, int count, uint64_t value) {
 int i;
 for (i = 0; i < count; i++)
  bytes[i] = (unsigned char)(value >> (8 * i));
}

/* The header of the one file that this entry can be. */
static void gemmepi__disk_cache_header(unsigned char header[GEMMEPI__DISK_CACHE_HEADER], const char *kind,
    const void *key, size_t key_size, const void *payload,
    size_t payload_size) {
 gemmepi__sha256 sha;
 memset(header, 0, GEMMEPI__DISK_CACHE_HEADER);
 memcpy(header, "gemmepi\n", 8);
 gemmepi__write_little_endian(header + 8, 4, GEMMEPI__DISK_CACHE_VERSION);
 gemmepi__write_little_endian(header + 12, 4, key_size);
 memcpy(header + 16, kind, strlen(kind));
 gemmepi__write_little_endian(header + 24, 8, payload_size);
 gemmepi__sha256_init(&sha);
 gemmepi__sha256_update(&sha, header, 32);
 gemmepi__sha256_update(&sha, key, key_size);
 gemmepi__sha256_update(&sha, payload, payload_size);
 gemmepi__sha256_final(&sha, header + 32);
}

/* What is wrong with the file, or NULL: then the key is exactly this one, and the payload is all that follows it.
 The fields are not read but compared with what they have to be. */
static const char *gemmepi__disk_cache_fault(const unsigned char *file, size_t size, const char *kind,
    const void *key, size_t key_size) {
 unsigned char header[GEMMEPI__DISK_CACHE_HEADER];
 const unsigned char *rest = file + GEMMEPI__DISK_CACHE_HEADER;
 if (size < GEMMEPI__DISK_CACHE_HEADER || size - GEMMEPI__DISK_CACHE_HEADER < key_size)
  return "it is too short";
 size -= GEMMEPI__DISK_CACHE_HEADER;
 if (key_size != 0 && memcmp(rest, key, key_size) != 0)
  return "it has another key";
 gemmepi__disk_cache_header(header, kind, key, key_size, rest + key_size, size - key_size);
 if (memcmp(file, header, 8) != 0)
  return "it does not begin as a cache file does";
 if (memcmp(file + 8, header + 8, 4) != 0)
  return "it has another format version";
 if (memcmp(file + 12, header + 12, 20) != 0)
  return "its sizes or its kind do not fit";
 if (memcmp(file + 32, header + 32, GEMMEPI__SHA256_SIZE) != 0)
  return "its checksum does not fit";
 return NULL;
}

/* >>getting and putting */

/* 1 on a hit: *payload is from the allocator, aligned as its memory is, and the caller's to free. 0 on a miss. */
static int gemmepi__disk_cache_get(gemmepi__disk_cache *cache, const char *kind, const void *key,
    size_t key_size, void **payload, size_t *payload_size) {
 char name[GEMMEPI__DISK_CACHE_NAME];
 gemmepi__folder folder;
 unsigned char *file = NULL;
 size_t size = 0;
 const char *fault = NULL;
 *payload = NULL;
 *payload_size = 0;
 if (gemmepi__disk_cache_enter(cache, 0, &folder) <= 0)
  return 0;
 gemmepi__disk_cache_name(name, kind, key, key_size);
 if (gemmepi__file_read(&folder, name, &cache->allocator, cache->bound, &file, &size) == 0) {
  fault = gemmepi__disk_cache_fault(file, size, kind, key, key_size);
  if (fault) {
   gemmepi__file_remove(&folder, name);
   gemmepi__say(&cache->log, GEMMEPI_LOG_DEBUG, "removed the cache file %s: %s", name, fault);
   gemmepi__delete(&cache->allocator, file);
   file = NULL;
  } else {
   gemmepi__file_touch(&folder, name);
  }
 }
 gemmepi__folder_close(&folder);
 if (!file)
  return 0;
 *payload_size = size - GEMMEPI__DISK_CACHE_HEADER - key_size;
 memmove(file, file + GEMMEPI__DISK_CACHE_HEADER + key_size, *payload_size);
 *payload = file;
 return 1;
}

typedef struct gemmepi__disk_cache_found {
 char name[GEMMEPI__DISK_CACHE_NAME];
 gemmepi__file_info info;
} gemmepi__disk_cache_found;

typedef struct gemmepi__disk_cache_scan {
 gemmepi__disk_cache *cache;
 const gemmepi__folder *folder;
 const char *newest; /* the name just put: it counts, and stays whatever its time says */
 gemmepi__disk_cache_found *found; /* the other entries */
 size_t count, capacity;
 uint64_t total; /* bytes of all entries */
} gemmepi__disk_cache_scan;

static int gemmepi__disk_cache_make_room(gemmepi__disk_cache_scan *scan) {
 const gemmepi_allocator *allocator = &scan->cache->allocator;
 size_t capacity = scan->capacity ? 2 * scan->capacity : 64;
 gemmepi__disk_cache_found *found;
 if (scan->count < scan->capacity)
  return 1;
 found = (gemmepi__disk_cache_found *)allocator->alloc(allocator->user, capacity * sizeof *found);
 if (!found)
  return 0;
 if (scan->count != 0)
  memcpy(found, scan->found, scan->count * sizeof *found);
 gemmepi__delete(allocator, scan->found);
 scan->found = found;
 scan->capacity = capacity;
 return 1;
}

static void gemmepi__disk_cache_visit(void *user, const char *name) {
 gemmepi__disk_cache_scan *scan = (gemmepi__disk_cache_scan *)user;
 gemmepi__file_info info;
 size_t stem = gemmepi__file_aside_stem(name);
 int is_entry = gemmepi__disk_cache_is_entry(name, strlen(name));
 if (!is_entry && !(stem != 0 && gemmepi__disk_cache_is_entry(name, stem)))
  return;
 if (gemmepi__file_get_info(scan->folder, name, &info) != 0 || !info.is_regular)
  return;
 if (!is_entry) {
  if (info.modified < gemmepi__file_now() - GEMMEPI__DISK_CACHE_STALE_SECONDS)
   gemmepi__file_remove(scan->folder, name);
  return;
 }
 scan->total += info.size;
 /* without memory for it the entry is not a candidate this time */
 if (strcmp(name, scan->newest) != 0 && gemmepi__disk_cache_make_room(scan)) {
  memcpy(scan->found[scan->count].name, name, strlen(name) + 1);
  scan->found[scan->count].info = info;
  scan->count++;
 }
}

static int gemmepi__disk_cache_by_age(const void *left, const void *right) {
 const gemmepi__disk_cache_found *a = (const gemmepi__disk_cache_found *)left;
 const gemmepi__disk_cache_found *b = (const gemmepi__disk_cache_found *)right;
 if (a->info.modified != b->info.modified)
  return a->info.modified < b->info.modified ? -1 : 1;
 if (a->info.modified_nanoseconds != b->info.modified_nanoseconds)
  return a->info.modified_nanoseconds < b->info.modified_nanoseconds ? -1 : 1;
 return strcmp(a->name, b->name); /* so that processes that do this at once choose alike */
}

static void gemmepi__disk_cache_evict(gemmepi__disk_cache *cache, const gemmepi__folder *folder,
    const char *newest) {
 gemmepi__disk_cache_scan scan;
 size_t i;
 memset(&scan, 0, sizeof scan);
 scan.cache = cache;
 scan.folder = folder;
 scan.newest = newest;
 gemmepi__folder_list(folder, gemmepi__disk_cache_visit, &scan);
 if (scan.total > cache->bound && scan.count != 0)
  qsort(scan.found, scan.count, sizeof *scan.found, gemmepi__disk_cache_by_age);
 for (i = 0; i < scan.count && scan.total > cache->bound; i++) {
  int code = gemmepi__file_remove(folder, scan.found[i].name);
  if (code == 0 || gemmepi__file_is_missing(code)) /* another process was quicker */
   scan.total -= scan.found[i].info.size;
 }
 gemmepi__delete(&cache->allocator, scan.found);
}

/* Keeps the payload for later gets, in any process, until it is the oldest and there is no room. */
static void gemmepi__disk_cache_put(gemmepi__disk_cache *cache, const char *kind, const void *key,
    size_t key_size, const void *payload, size_t payload_size) {
 char name[GEMMEPI__DISK_CACHE_NAME], reason[256];
 unsigned char header[GEMMEPI__DISK_CACHE_HEADER];
 gemmepi__file_piece pieces[3];
 gemmepi__folder folder;
 gemmepi__text why = gemmepi__text_in(reason, sizeof reason);
 int code;
 if (key_size > cache->bound || (uint64_t)key_size > 0xffffffffu ||
  payload_size > cache->bound - key_size ||
  cache->bound - key_size - payload_size < GEMMEPI__DISK_CACHE_HEADER) {
  gemmepi__say(&cache->log, GEMMEPI_LOG_DEBUG, "%llu bytes are too many for a cache of %llu: not kept",
    (gemmepi__ull)payload_size, (gemmepi__ull)cache->bound);
  return;
 }
 if (gemmepi__disk_cache_enter(cache, 1, &folder) <= 0)
  return;
 gemmepi__disk_cache_name(name, kind, key, key_size);
 gemmepi__disk_cache_header(header, kind, key, key_size, payload, payload_size);
 pieces[0].data = header;
 pieces[0].size = sizeof header;
 pieces[1].data = key;
 pieces[1].size = key_size;
 pieces[2].data = payload;
 pieces[2].size = payload_size;
 code = gemmepi__file_store(&folder, name, pieces, 3);
 if (code == 0) {
  gemmepi__disk_cache_evict(cache, &folder, name);
 } else if (gemmepi__add(&cache->times_not_stored, 1) == 1) {
  gemmepi__file_error(&why, code);
  gemmepi__say(
   &cache->log, GEMMEPI_LOG_WARNING,
   "nothing can be stored in the cache folder %s, so kernels are compiled anew in each process: "
   "%s; make room there, or set gemmepi_config.cache_path to another folder",
   cache->path, reason);
 }
 gemmepi__folder_close(&folder);
}
/* A context: one device, what was loaded for it, and what it keeps. */

#define GEMMEPI__BLOCK_BUCKETS 64

struct gemmepi_context {
 gemmepi_allocator allocator;
 gemmepi__log log;
 gemmepi__loader loader;
 int is_host;
 int check_pointers; /* config.check_pointers */
 char fallback_reason[512]; /* why the host took a GPU's place, or "" */
 const long
  *forks_now; /* gemmepi__forks of the file that made it: with GEMMEPI_STATIC others have their own */
 long forks; /* what it was then */

 /* the GPU; all of it fixed once the context is created */
 gemmepi__driver driver;
 gemmepi__cu_device device;
 gemmepi__cu_context primary; /* NULL: not retained */
 int ordinal;
 int arch; /* 90 for compute capability 9.0 */
 int multiprocessors;
 int reaches_pageable; /* kernels may read host memory that CUDA does not know */
 unsigned routes; /* config.routes */
 char name[128];
 gemmepi__cu_deviceptr ones; /* F32 1 and 1: the scalars of D += A B where they are to lie on the device */

 gemmepi__mutex
  build_lock; /* held while a plan is built, but not while NVRTC compiles: guards what follows */
 gemmepi__condition kernel_built;
 gemmepi__nvrtc nvrtc;
 gemmepi__cublaslt cublaslt;
 gemmepi__lt_handle lt_handle; /* NULL: cuBLASLt not opened */
 int has_nvrtc, has_cublaslt;
 int entered_to_destroy; /* gemmepi_destroy could make the primary context current */
 gemmepi__disk_cache disk;
 char *dump_path; /* NULL: nothing is dumped */
 gemmepi__map kernels; /* gemmepi__kernel by file and prologue */
 long kernels_compiled, kernels_from_disk;
 int only_measures; /* what is built is to tell its workspace alone: no kernel is looked for */

 gemmepi__mutex lock; /* held for moments: guards handles, plans, and adding to blocks */
 gemmepi__map handles; /* the host's: see handles.h */
 gemmepi__map plans; /* of one-shot calls: gemmepi__kept by problem or task */
 long plan_clock;
 gemmepi__atomic_pointer
  blocks[GEMMEPI__BLOCK_BUCKETS]; /* workspace, see workspace.h; read without a lock */
};

static int gemmepi__is_of_parent(const gemmepi_context *context) {
 return *context->forks_now != context->forks;
}

/* 1 with the sentence if the context is the parent's and this is the child. Every public function asks, before it takes a
 lock: where another thread of the parent held one at the fork, nobody lets go of it here. */
static int gemmepi__came_by_fork(const gemmepi_context *context) {
 if (!gemmepi__is_of_parent(context))
  return 0;
 (void)gemmepi__fail(
  GEMMEPI_INVALID_ARGUMENT,
  "the context was made before fork(), and this process is the child: a child makes its own");
 return 1;
}

/* >>entering: the primary context is current while the library works, and the caller's own again afterwards */

typedef struct gemmepi__entry {
 int pushed;
 int previous_mode;
} gemmepi__entry;

static gemmepi_status gemmepi__enter(const gemmepi_context *context, gemmepi__entry *entry) {
 gemmepi__cu_context current = NULL;
 int result = context->driver.ctx_get_current(&current);
 entry->pushed = 0;
 if (result == 0 && current == context->primary)
  return GEMMEPI_OK;
 result = context->driver.ctx_push_current(context->primary);
 if (result)
  return gemmepi__cuda_failed(&context->driver, result, "cuCtxPushCurrent");
 entry->pushed = 1;
 return GEMMEPI_OK;
}

static void gemmepi__leave(const gemmepi_context *context, const gemmepi__entry *entry) {
 gemmepi__cu_context popped;
 if (entry->pushed)
  context->driver.ctx_pop_current(&popped);
}

/* For work that allocates, loads code or waits: allowed also while some other stream is being captured, because none of it
 touches that one. */
static gemmepi_status gemmepi__enter_relaxed(const gemmepi_context *context, gemmepi__entry *entry) {
 gemmepi_status status = gemmepi__enter(context, entry);
 int result;
 entry->previous_mode = GEMMEPI__CU_STREAM_CAPTURE_MODE_RELAXED;
 if (status)
  return status;
 result = context->driver.thread_exchange_stream_capture_mode(&entry->previous_mode);
 if (!result)
  return GEMMEPI_OK;
 gemmepi__leave(context, entry); /* the mode is as it was, and so must it stay */
 return gemmepi__cuda_failed(&context->driver, result, "cuThreadExchangeStreamCaptureMode");
}

static void gemmepi__leave_relaxed(const gemmepi_context *context, gemmepi__entry *entry) {
 context->driver.thread_exchange_stream_capture_mode(&entry->previous_mode);
 gemmepi__leave(context, entry);
}

/* >>create */

static char *gemmepi__copy_text(const gemmepi_allocator *allocator, const char *text) {
 size_t size = strlen(text) + 1;
 char *copy = (char *)gemmepi__new(allocator, size);
 if (copy)
  memcpy(copy, text, size);
 return copy;
}

/* The CUDA device that config.device 0 stands for: the current one of the calling thread, else the first. */
static int gemmepi__current_ordinal(const gemmepi__driver *driver) {
 gemmepi__cu_context current = NULL;
 gemmepi__cu_device device = 0, candidate;
 int count = 0, i;
 if (driver->ctx_get_current(&current) != 0 || !current || driver->ctx_get_device(&device) != 0 ||
  driver->device_get_count(&count) != 0)
  return 0;
 for (i = 0; i < count; i++)
  if (driver->device_get(&candidate, i) == 0 && candidate == device)
   return i;
 return 0;
}

static gemmepi_status gemmepi__make_ones(gemmepi_context *context) {
 static const float ones[2] = {1, 1};
 const gemmepi__driver *driver = &context->driver;
 gemmepi__cu_stream stream = NULL;
 gemmepi__entry entry;
 gemmepi_status status = gemmepi__enter_relaxed(context, &entry);
 int result, ended;
 if (status)
  return status;
 result = driver->mem_alloc(&context->ones, sizeof ones);
 if (result)
  context->ones = 0;
 if (!result)
  result = driver->stream_create(&stream, GEMMEPI__CU_STREAM_NON_BLOCKING);
 if (!result) {
  result = driver->memcpy_htod_async(context->ones, ones, sizeof ones, stream);
  if (!result)
   result = driver->stream_synchronize(stream);
  ended = driver->stream_destroy(stream);
  result = result ? result : ended;
 }
 if (result && context->ones) {
  driver->mem_free(context->ones);
  context->ones = 0;
 }
 gemmepi__leave_relaxed(context, &entry);
 return result ? gemmepi__cuda_failed(driver, result, "putting two numbers on the device") : GEMMEPI_OK;
}

/* Everything that can fail between the driver's library and a device that is ready. */
static gemmepi_status gemmepi__open_device(gemmepi_context *context, int wanted) {
 gemmepi__driver *driver = &context->driver;
 int count = 0, major = 0, minor = 0, result;
 gemmepi_status status = gemmepi__load_driver(&context->loader, driver);
 if (status)
  return status;
 context->loader.newest_major = driver->version / 1000;
 result = driver->init(0);
 if (result) {
  (void)gemmepi__cuda_failed(driver, result, "cuInit");
  if (gemmepi__forks)
   (void)gemmepi__fail(
    GEMMEPI_NO_DEVICE,
    "%s (after a fork() CUDA works in the parent or, if that has not used it, in the child)",
    gemmepi__error_text);
  return GEMMEPI_NO_DEVICE;
 }
 result = driver->device_get_count(&count);
 if (result)
  return gemmepi__cuda_failed(driver, result, "cuDeviceGetCount");
 context->ordinal = wanted ? wanted - 1 : gemmepi__current_ordinal(driver);
 if (context->ordinal >= count)
  return gemmepi__fail(GEMMEPI_NO_DEVICE, "config.device asks for CUDA device %d; this machine has %d",
    context->ordinal, count);
 result = driver->device_get(&context->device, context->ordinal);
 if (!result)
  result = driver->device_get_name(context->name, (int)sizeof context->name, context->device);
 if (!result)
  result = driver->device_get_attribute(&major, GEMMEPI__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
    context->device);
 if (!result)
  result = driver->device_get_attribute(&minor, GEMMEPI__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    context->device);
 if (!result)
  result = driver->device_get_attribute(
   &context->multiprocessors, GEMMEPI__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, context->device);
 if (!result)
  result = driver->device_get_attribute(
   &context->reaches_pageable, GEMMEPI__CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, context->device);
 if (result)
  return gemmepi__cuda_failed(driver, result, "reading the device's properties");
 context->arch = 10 * major + minor;
 result = driver->device_primary_ctx_retain(&context->primary, context->device);
 if (result) {
  context->primary = NULL;
  return gemmepi__cuda_failed(driver, result, "cuDevicePrimaryCtxRetain");
 }
 if (gemmepi__make_ones(context))
  gemmepi__say(&context->log, GEMMEPI_LOG_WARNING, "D = A B + D in 16 bits takes the route split: %s",
    gemmepi__error_text);
 gemmepi__say(&context->log, GEMMEPI_LOG_INFO, "device %d: %s, compute capability %d.%d", context->ordinal,
    context->name, major, minor);
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__open_host(gemmepi_context *context) {
#ifdef GEMMEPI_NO_HOST
 (void)context;
 return gemmepi__fail(GEMMEPI_NO_DEVICE, "the host was left out of this program (GEMMEPI_NO_HOST)");
#else
 context->is_host = 1;
 context->ordinal = -1;
 context->arch = context->multiprocessors = 0; /* a GPU that could not be used may have left its own */
 memset(context->name, 0, sizeof context->name);
 memcpy(context->name, "host", 5);
 return GEMMEPI_OK;
#endif
}

/* config.device 0 takes the host where no GPU can be used, and says so. */
static gemmepi_status gemmepi__open_any(gemmepi_context *context, int wanted) {
 gemmepi_status status;
 if (wanted == GEMMEPI_DEVICE_HOST)
  return gemmepi__open_host(context);
 status = gemmepi__open_device(context, wanted);
 if (!status || wanted != 0)
  return status;
#ifdef GEMMEPI_NO_HOST
 return status;
#else
 snprintf(context->fallback_reason, sizeof context->fallback_reason, "%.500s", gemmepi__error_text);
 gemmepi__say(&context->log, GEMMEPI_LOG_INFO, "no GPU can be used, so the host is: %s",
    gemmepi__error_text);
 return gemmepi__open_host(context);
#endif
}

#define GEMMEPI__PRODUCT_ROUTES \
 (1u << GEMMEPI_ROUTE_LT | 1u << GEMMEPI_ROUTE_SPLIT | 1u << GEMMEPI_ROUTE_PLAIN | \
  1u << GEMMEPI_ROUTE_FUSED)

static gemmepi_status gemmepi__check_config(const gemmepi_config *config) {
 if (config->device < GEMMEPI_DEVICE_HOST)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "config.device is %d; accepted are 0, GEMMEPI_DEVICE(i) and GEMMEPI_DEVICE_HOST "
    "(did you leave config uninitialised? = {0})",
    config->device);
 if ((config->allocator.alloc == NULL) != (config->allocator.free == NULL))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT, "config.allocator has %s without %s; both or neither are set",
   config->allocator.alloc ? "alloc" : "free", config->allocator.alloc ? "free" : "alloc");
 if (config->check_pointers != 0 && config->check_pointers != 1)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "config.check_pointers is %d; accepted are 0 and 1 (did you leave config "
    "uninitialised? = {0})",
    config->check_pointers);
 if (config->library_path_only != 0 && config->library_path_only != 1)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "config.library_path_only is %d; accepted are 0 and 1",
    config->library_path_only);
 if (config->library_path_only && (!config->library_path || !config->library_path[0]))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "config.library_path_only is 1 and config.library_path is %s: set it to the folders of "
   "libcuda, NVRTC and cuBLASLt",
   config->library_path ? "empty" : "NULL");
 if (config->routes & ~GEMMEPI__PRODUCT_ROUTES)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "config.routes is 0x%x; accepted are 0 and the bits 1 << GEMMEPI_ROUTE_LT, SPLIT, "
   "PLAIN and FUSED",
   config->routes);
 return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_create(const gemmepi_config *config, gemmepi_context **result) {
 gemmepi_config defaults;
 gemmepi_allocator allocator;
 gemmepi_context *context;
 gemmepi_status status;
 if (!result)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "context is NULL; it receives the new context");
 *result = NULL;
 memset(&defaults, 0, sizeof defaults);
 if (!config)
  config = &defaults;
 status = gemmepi__check_config(config);
 if (status)
  return status;
 if (!gemmepi__watch_forks())
  return gemmepi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no memory to watch fork()");
 allocator = config->allocator.alloc ? config->allocator : gemmepi__default_allocator();
 context = (gemmepi_context *)gemmepi__new(&allocator, sizeof *context);
 if (!context)
  return GEMMEPI_OUT_OF_MEMORY;
 context->allocator = allocator;
 context->forks_now = &gemmepi__forks;
 context->forks = gemmepi__forks;
 context->routes = config->routes;
 context->check_pointers = config->check_pointers;
 context->log = gemmepi__choose_log(config->log, config->log_user);
 context->loader.log = &context->log;
 context->loader.library_path_only = config->library_path_only;
 context->loader.resolve = config->resolve_symbol;
 context->loader.resolve_user = config->resolve_user;
 gemmepi__map_init(&context->kernels, &context->allocator);
 gemmepi__map_init(&context->plans, &context->allocator);
 gemmepi__map_init(&context->handles, &context->allocator);
 if (!gemmepi__mutex_init(&context->lock)) {
  gemmepi__delete(&allocator, context);
  return gemmepi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no mutex");
 }
 if (!gemmepi__mutex_init(&context->build_lock)) {
  gemmepi__mutex_destroy(&context->lock);
  gemmepi__delete(&allocator, context);
  return gemmepi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no mutex");
 }
 if (!gemmepi__condition_init(&context->kernel_built)) {
  gemmepi__mutex_destroy(&context->build_lock);
  gemmepi__mutex_destroy(&context->lock);
  gemmepi__delete(&allocator, context);
  return gemmepi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no condition variable");
 }
 if (config->library_path) {
  context->loader.library_path = gemmepi__copy_text(&allocator, config->library_path);
  status = context->loader.library_path ? GEMMEPI_OK : GEMMEPI_OUT_OF_MEMORY;
 }
 if (!status && config->dump_path && config->dump_path[0]) {
  context->dump_path = gemmepi__copy_text(&allocator, config->dump_path);
  status = context->dump_path ? GEMMEPI_OK : GEMMEPI_OUT_OF_MEMORY;
 }
 if (!status)
  status = gemmepi__open_any(context, config->device);
 if (!status && !context->is_host)
  gemmepi__disk_cache_open(&context->disk, &context->allocator, &context->log, config->cache_path,
    config->cache_size);
 if (status) {
  gemmepi_destroy(context);
  return status;
 }
 *result = context;
 return GEMMEPI_OK;
}

/* >>info */

GEMMEPI_API gemmepi_status gemmepi_context_info(gemmepi_context *context, gemmepi_context_details *details) {
 if (details)
  memset(details, 0, sizeof *details);
 if (!context || !details)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "details" : "context");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 details->is_host = context->is_host;
 memcpy(details->fallback_reason, context->fallback_reason, sizeof details->fallback_reason);
 details->device = context->ordinal;
 memcpy(details->name, context->name, sizeof details->name);
 details->compute_capability = context->arch;
 details->multiprocessors = context->multiprocessors;
 if (context->is_host)
  return GEMMEPI_OK;
 gemmepi__lock(&context->build_lock);
 details->driver_version = context->driver.version;
 details->nvrtc_version = context->has_nvrtc ? context->nvrtc.version : 0;
 details->cublaslt_version = context->has_cublaslt ? context->cublaslt.version : 0;
 details->kernels_compiled = context->kernels_compiled;
 details->kernels_from_disk = context->kernels_from_disk;
 snprintf(details->cache_path, sizeof details->cache_path, "%s", gemmepi__disk_cache_path(&context->disk));
 gemmepi__unlock(&context->build_lock);
 return GEMMEPI_OK;
}
/* What the host gave out, memory and streams, so that what is none of it is refused there as a GPU refuses it. */

/* What a pointer in context->handles is: the address of one of these. */
static char gemmepi__handle_kinds[2];
#define GEMMEPI__OF_MEMORY (&gemmepi__handle_kinds[0])
#define GEMMEPI__OF_STREAM (&gemmepi__handle_kinds[1])

/* 0 where there is no memory for it, with the sentence noted. */
static int gemmepi__note_handle(gemmepi_context *context, void *handle, void *kind) {
 int noted;
 gemmepi__lock(&context->lock);
 noted = gemmepi__map_insert(&context->handles, &handle, sizeof handle, kind);
 gemmepi__unlock(&context->lock);
 return noted;
}

static int gemmepi__has_handle(gemmepi_context *context, void *handle, const void *kind) {
 int has;
 gemmepi__lock(&context->lock);
 has = gemmepi__map_find(&context->handles, &handle, sizeof handle) == kind;
 gemmepi__unlock(&context->lock);
 return has;
}

/* Whether it was one, which it is no longer: of two threads only one is told so. */
static int gemmepi__drop_handle(gemmepi_context *context, void *handle, const void *kind) {
 int has;
 gemmepi__lock(&context->lock);
 has = gemmepi__map_find(&context->handles, &handle, sizeof handle) == kind;
 if (has)
  gemmepi__map_remove(&context->handles, &handle, sizeof handle);
 gemmepi__unlock(&context->lock);
 return has;
}

static gemmepi_status gemmepi__refuse_stream(gemmepi_stream stream) {
 return gemmepi__fail(
  GEMMEPI_INVALID_ARGUMENT,
  "stream is %p, which is no stream of this context; accepted on the host are NULL, what "
  "gemmepi_stream_create gave and was not destroyed, and, but for gemmepi_stream_destroy, CUDA's special "
  "handles 1 and 2",
  (void *)stream);
}

/* On the host; on a GPU the driver does. */
static gemmepi_status gemmepi__check_stream(gemmepi_context *context, gemmepi_stream stream) {
 if (!context->is_host || (uintptr_t)stream <= GEMMEPI__CU_STREAM_PER_THREAD ||
  gemmepi__has_handle(context, (void *)stream, GEMMEPI__OF_STREAM))
  return GEMMEPI_OK;
 return gemmepi__refuse_stream(stream);
}

/* What a run is given beside tensors, whether it needs that or not. */
static gemmepi_status gemmepi__check_run(gemmepi_context *context, gemmepi_stream stream,
    const void *workspace, size_t size) {
 uintptr_t begin = (uintptr_t)workspace;
 if (!begin && size)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "args.workspace is NULL, but args.workspace_size is %llu; leave both 0 for the context's own",
   (gemmepi__ull)size);
 if (begin & 255)
  return gemmepi__fail(GEMMEPI_MISALIGNED, "args.workspace is %p; it must be a multiple of 256 bytes",
    workspace);
 if (begin && size > (size_t)((uintptr_t)-1 - begin))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "args.workspace is %p and args.workspace_size %llu; no address space is that large", workspace,
   (gemmepi__ull)size);
 return gemmepi__check_stream(context, stream);
}

/* The tokens of streams that were not destroyed. */
static void gemmepi__free_stream_token(void *user, gemmepi__map_entry *entry) {
 gemmepi_context *context = (gemmepi_context *)user;
 void *token;
 memcpy(&token, gemmepi__map_key(entry), sizeof token);
 if (entry->value == GEMMEPI__OF_STREAM)
  gemmepi__delete(&context->allocator, token);
}
/* Device memory, copies and streams, alike on a GPU and on the host. */

#define GEMMEPI__HOST_ALIGNMENT 256

/* On the host the block's own address stands just before the aligned one. */
static gemmepi_status gemmepi__host_alloc(gemmepi_context *context, size_t bytes, void **pointer) {
 char *block, *aligned;
 if (bytes > (size_t)-1 - 2 * GEMMEPI__HOST_ALIGNMENT)
  return gemmepi__fail(GEMMEPI_OUT_OF_MEMORY, "%llu bytes are more than an address space holds",
    (gemmepi__ull)bytes);
 block = (char *)context->allocator.alloc(context->allocator.user,
    bytes + GEMMEPI__HOST_ALIGNMENT + sizeof(char *));
 if (!block)
  return gemmepi__fail(GEMMEPI_OUT_OF_MEMORY, "the allocator gave no %llu bytes of host memory",
    (gemmepi__ull)bytes);
 aligned = block + sizeof(char *);
 aligned +=
  (GEMMEPI__HOST_ALIGNMENT - (uintptr_t)aligned % GEMMEPI__HOST_ALIGNMENT) % GEMMEPI__HOST_ALIGNMENT;
 memcpy(aligned - sizeof(char *), &block, sizeof block);
 if (!gemmepi__note_handle(context, aligned, GEMMEPI__OF_MEMORY)) {
  context->allocator.free(context->allocator.user, block);
  return GEMMEPI_OUT_OF_MEMORY;
 }
 *pointer = aligned;
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__host_free(gemmepi_context *context, void *pointer) {
 char *block;
 if (!gemmepi__drop_handle(context, pointer, GEMMEPI__OF_MEMORY))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "pointer is %p, which gemmepi_alloc of this context did not give, or which is free already",
   pointer);
 memcpy(&block, (char *)pointer - sizeof(char *), sizeof block);
 context->allocator.free(context->allocator.user, block);
 return GEMMEPI_OK;
}

/* A stream of the host is a token: a byte of its own. */
static gemmepi_status gemmepi__host_stream(gemmepi_context *context, gemmepi_stream *stream) {
 void *token = gemmepi__new(&context->allocator, 1);
 if (!token)
  return GEMMEPI_OUT_OF_MEMORY;
 if (!gemmepi__note_handle(context, token, GEMMEPI__OF_STREAM)) {
  gemmepi__delete(&context->allocator, token);
  return GEMMEPI_OUT_OF_MEMORY;
 }
 *stream = (gemmepi_stream)token;
 return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_alloc(gemmepi_context *context, size_t bytes, void **pointer) {
 gemmepi__entry entry;
 gemmepi__cu_deviceptr address = 0;
 gemmepi_status status;
 int result;
 if (pointer)
  *pointer = NULL; /* also after a failure */
 if (!context || !pointer)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "pointer" : "context");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 if (bytes == 0)
  return GEMMEPI_OK;
 if (context->is_host)
  return gemmepi__host_alloc(context, bytes, pointer);
 status = gemmepi__enter_relaxed(context, &entry);
 if (status)
  return status;
 result = context->driver.mem_alloc(&address, bytes);
 gemmepi__leave_relaxed(context, &entry);
 if (result) {
  char what[64];
  snprintf(what, sizeof what, "allocating %llu bytes", (gemmepi__ull)bytes);
  return gemmepi__cuda_failed(&context->driver, result, what);
 }
 *pointer = (void *)(uintptr_t)address;
 return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_free(gemmepi_context *context, void *pointer) {
 gemmepi__entry entry;
 gemmepi_status status;
 int result;
 if (!context)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "context is NULL");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 if (!pointer)
  return GEMMEPI_OK;
 if (context->is_host) {
  return gemmepi__host_free(context, pointer);
 }
 status = gemmepi__enter_relaxed(context, &entry);
 if (status)
  return status;
 result = context->driver.mem_free((gemmepi__cu_deviceptr)(uintptr_t)pointer);
 gemmepi__leave_relaxed(context, &entry);
 return result ? gemmepi__cuda_failed(&context->driver, result, "freeing device memory") : GEMMEPI_OK;
}

/* A copy in either direction, complete on return. */
static gemmepi_status gemmepi__copy(gemmepi_context *context, void *device, void *host, size_t bytes, int up,
    gemmepi_stream stream) {
 gemmepi__cu_deviceptr address = (gemmepi__cu_deviceptr)(uintptr_t)device;
 gemmepi__entry entry;
 gemmepi_status status;
 int result;
 if (!context)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "context is NULL");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 status = gemmepi__check_stream(context, stream);
 if (status || bytes == 0)
  return status;
 if (!device || !host)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", device ? "host" : "device");
 if (context->is_host) {
  memmove(up ? device : host, up ? host : device, bytes);
  return GEMMEPI_OK;
 }
 status = gemmepi__enter_relaxed(context, &entry);
 if (status)
  return status;
 result = up ? context->driver.memcpy_htod_async(address, host, bytes, stream)
    : context->driver.memcpy_dtoh_async(host, address, bytes, stream);
 if (!result)
  result = context->driver.stream_synchronize(stream);
 gemmepi__leave_relaxed(context, &entry);
 return result ? gemmepi__cuda_failed(&context->driver, result,
    up ? "copying to the device" : "copying to the host")
    : GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_upload(gemmepi_context *context, void *device, const void *host,
    size_t bytes, gemmepi_stream stream) {
 void *from;
 memcpy(&from, &host, sizeof from); /* only read, see up in gemmepi__copy */
 return gemmepi__copy(context, device, from, bytes, 1, stream);
}

GEMMEPI_API gemmepi_status gemmepi_download(gemmepi_context *context, void *host, const void *device,
    size_t bytes, gemmepi_stream stream) {
 void *from;
 memcpy(&from, &device, sizeof from);
 return gemmepi__copy(context, from, host, bytes, 0, stream);
}

GEMMEPI_API gemmepi_status gemmepi_synchronize(gemmepi_context *context, gemmepi_stream stream) {
 gemmepi__entry entry;
 gemmepi_status status;
 int result;
 if (!context)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "context is NULL");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 if (context->is_host)
  return gemmepi__check_stream(context, stream);
 status = gemmepi__enter_relaxed(context, &entry);
 if (status)
  return status;
 result = context->driver.stream_synchronize(stream);
 gemmepi__leave_relaxed(context, &entry);
 return result ? gemmepi__cuda_failed(&context->driver, result, "waiting for the stream") : GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_stream_create(gemmepi_context *context, gemmepi_stream *stream) {
 gemmepi__entry entry;
 gemmepi_status status;
 int result;
 if (stream)
  *stream = NULL; /* also after a failure */
 if (!context || !stream)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "stream" : "context");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 if (context->is_host)
  return gemmepi__host_stream(context, stream);
 status = gemmepi__enter_relaxed(context, &entry);
 if (status)
  return status;
 result = context->driver.stream_create(stream, GEMMEPI__CU_STREAM_NON_BLOCKING);
 gemmepi__leave_relaxed(context, &entry);
 return result ? gemmepi__cuda_failed(&context->driver, result, "cuStreamCreate") : GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_stream_destroy(gemmepi_context *context, gemmepi_stream stream) {
 gemmepi__entry entry;
 gemmepi_status status;
 int result;
 if (!context)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "context is NULL");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 if (!stream)
  return GEMMEPI_OK;
 if (context->is_host) {
  if (!gemmepi__drop_handle(context, (void *)stream, GEMMEPI__OF_STREAM))
   return gemmepi__refuse_stream(stream);
  gemmepi__delete(&context->allocator, (void *)stream);
  return GEMMEPI_OK;
 }
 status = gemmepi__enter_relaxed(context, &entry);
 if (status)
  return status;
 result = context->driver.stream_synchronize(stream);
 if (!result)
  result = context->driver.stream_destroy(stream);
 gemmepi__leave_relaxed(context, &entry);
 return result ? gemmepi__cuda_failed(&context->driver, result, "ending the stream") : GEMMEPI_OK;
}
/* Pointers that a kernel could not follow: host memory that is unknown to CUDA. */

/* Refuses host memory that is not registered with CUDA, where the device cannot reach pageable memory. name: of the pointer,
 as in args.name. The primary context is current. */
static gemmepi_status gemmepi__check_reachable(const gemmepi_context *context, const char *name,
    const void *pointer) {
 unsigned type = 0;
 int result;
 if (!pointer || context->reaches_pageable)
  return GEMMEPI_OK;
 result = context->driver.pointer_get_attribute(&type, GEMMEPI__CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
    (gemmepi__cu_deviceptr)(uintptr_t)pointer);
 if (!result)
  return GEMMEPI_OK;
 if (result != GEMMEPI__CUDA_ERROR_INVALID_VALUE)
  return gemmepi__cuda_failed(&context->driver, result, "asking whose memory a pointer is");
 return gemmepi__fail(
  GEMMEPI_INVALID_ARGUMENT,
  "args.%s is %p, host memory that the GPU cannot reach: allocate with gemmepi_alloc and "
  "copy with gemmepi_upload, or register it with CUDA",
  name, pointer);
}
/* Workspace: a block for each stream, found without a lock.

 A bucket is a list that only grows at its head: a block is published whole, and neither moved nor freed before the
 context goes, because captured graphs keep its address. A stream is known by its handle (its id would be better, but
 CUDA does not tell it while the stream is being captured); the handle of the per-thread default stream stands for a
 stream of each thread, and of each file where such have implementations of their own (GEMMEPI_STATIC).

 A run is several launches through one block, so threads that run on one stream take turns for the time of them. */

typedef struct gemmepi__stream_key {
 uintptr_t handle;
 uintptr_t thread; /* 0 but for the per-thread default stream: the thread's number, and who numbered it */
 uintptr_t numbered_by;
} gemmepi__stream_key;

typedef struct gemmepi__block {
 struct gemmepi__block *next;
 gemmepi__stream_key stream;
 gemmepi__cu_deviceptr address;
 size_t size;
 gemmepi__mutex turn; /* held while a run launches */
} gemmepi__block;

static gemmepi__stream_key gemmepi__key_of_stream(gemmepi_stream stream) {
 gemmepi__stream_key key;
 key.handle = (uintptr_t)stream;
 key.thread = key.numbered_by = 0;
 if (key.handle == GEMMEPI__CU_STREAM_LEGACY)
  key.handle = 0; /* the same stream as NULL */
 if (key.handle == GEMMEPI__CU_STREAM_PER_THREAD) {
  key.thread = gemmepi__thread_number();
  key.numbered_by = (uintptr_t)&gemmepi__threads_numbered;
 }
 return key;
}

static gemmepi__atomic_pointer *gemmepi__bucket_of(gemmepi_context *context, gemmepi__stream_key key) {
 /* handles are addresses of allocations: their low bits say little */
 return &context->blocks[(key.handle >> 4 ^ key.handle >> 12 ^ key.thread) % GEMMEPI__BLOCK_BUCKETS];
}

static int gemmepi__is_of_stream(const gemmepi__block *block, gemmepi__stream_key key) {
 return block->stream.handle == key.handle && block->stream.thread == key.thread &&
   block->stream.numbered_by == key.numbered_by;
}

static gemmepi__block *gemmepi__find_block(gemmepi_context *context, gemmepi__stream_key key, size_t size) {
 gemmepi__block *block = (gemmepi__block *)gemmepi__load_pointer(gemmepi__bucket_of(context, key));
 while (block && !(gemmepi__is_of_stream(block, key) && block->size >= size))
  block = block->next;
 return block;
}

/* At least twice as large as the stream's last one, so that all those of growing problems together are less than four times
 what the largest needs; where there is no memory for that, as large as is needed. */
static gemmepi_status gemmepi__add_block(gemmepi_context *context, gemmepi__stream_key key, size_t size) {
 gemmepi__atomic_pointer *bucket = gemmepi__bucket_of(context, key);
 gemmepi__block *older = gemmepi__find_block(context, key, 0), *block;
 size_t needed = size;
 int result;
 if (older && size < 2 * older->size)
  size = 2 * older->size;
 block = (gemmepi__block *)gemmepi__new(&context->allocator, sizeof *block);
 if (!block)
  return GEMMEPI_OUT_OF_MEMORY;
 if (!gemmepi__mutex_init(&block->turn)) {
  gemmepi__delete(&context->allocator, block);
  return gemmepi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no mutex");
 }
 result = context->driver.mem_alloc(&block->address, size);
 if (result && size > needed) {
  size = needed;
  result = context->driver.mem_alloc(&block->address, size);
 }
 if (result) {
  char what[96];
  gemmepi__mutex_destroy(&block->turn);
  gemmepi__delete(&context->allocator, block);
  snprintf(what, sizeof what, "allocating %llu bytes of workspace", (gemmepi__ull)size);
  return gemmepi__cuda_failed(&context->driver, result, what);
 }
 block->stream = key;
 block->size = size;
 block->next = (gemmepi__block *)gemmepi__load_pointer(bucket);
 gemmepi__publish_pointer(bucket, block);
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__reserve_entered(gemmepi_context *context, gemmepi_stream stream,
    gemmepi__stream_key key, size_t size) {
 gemmepi_status status = GEMMEPI_OK;
 int capture = 0, result;
 if (gemmepi__find_block(context, key, size))
  return GEMMEPI_OK;
 result = context->driver.stream_is_capturing(stream, &capture);
 if (result)
  return gemmepi__cuda_failed(&context->driver, result, "cuStreamIsCapturing");
 if (capture != GEMMEPI__CU_STREAM_CAPTURE_STATUS_NONE)
  return gemmepi__fail(
   GEMMEPI_BUFFER_TOO_SMALL,
   "stream is being captured and has no %llu bytes of workspace; reserve it before the capture "
   "(gemmepi_plan_prepare), or run a plan with "
   "args.workspace",
   (gemmepi__ull)size);
 gemmepi__lock(&context->lock);
 if (!gemmepi__find_block(context, key, size))
  status = gemmepi__add_block(context, key, size);
 gemmepi__unlock(&context->lock);
 return status;
}

/* key: the stream's own, or one made of it for blocks of another use */
static gemmepi_status gemmepi__reserve_for(gemmepi_context *context, gemmepi_stream stream,
    gemmepi__stream_key key, size_t size) {
 gemmepi__entry entry;
 gemmepi_status status = gemmepi__check_stream(context, stream);
 if (status || size == 0)
  return status;
 status = gemmepi__enter_relaxed(context, &entry);
 if (status)
  return status;
 status = gemmepi__reserve_entered(context, stream, key, size);
 gemmepi__leave_relaxed(context, &entry);
 return status;
}

static gemmepi_status gemmepi__reserve(gemmepi_context *context, gemmepi_stream stream, size_t size) {
 return gemmepi__reserve_for(context, stream, gemmepi__key_of_stream(stream), size);
}

/* For a run: a block that was reserved, whose turn it is until gemmepi__give_block; or NULL with the sentence, which names the
 function that reserves. */
static gemmepi__block *gemmepi__take_block(gemmepi_context *context, gemmepi__stream_key key, size_t size,
    const char *prepare) {
 gemmepi__block *block = gemmepi__find_block(context, key, size);
 if (block)
  gemmepi__lock(&block->turn);
 else
  (void)gemmepi__fail(GEMMEPI_BUFFER_TOO_SMALL,
    "args.workspace is NULL and %s has reserved no %llu bytes for this stream",
    prepare, (gemmepi__ull)size);
 return block;
}

static void gemmepi__give_block(gemmepi__block *block) {
 gemmepi__unlock(&block->turn);
}

/* A workspace of the caller's, by itself: what it overlaps is another question. */
static gemmepi_status gemmepi__check_given_workspace(const void *workspace, size_t given, size_t needed) {
 if (given < needed)
  return gemmepi__fail(GEMMEPI_BUFFER_TOO_SMALL,
    "args.workspace_size is %llu; this plan needs %llu bytes", (gemmepi__ull)given,
    (gemmepi__ull)needed);
 if ((uintptr_t)workspace & 255)
  return gemmepi__fail(GEMMEPI_MISALIGNED, "args.workspace is %p; it must be a multiple of 256 bytes",
    workspace);
 return GEMMEPI_OK;
}

/* entered: the primary context is current; without it only host memory can be freed */
static void gemmepi__free_blocks(gemmepi_context *context, int entered) {
 size_t i;
 for (i = 0; i < GEMMEPI__BLOCK_BUCKETS; i++) {
  gemmepi__block *block = (gemmepi__block *)gemmepi__load_pointer(&context->blocks[i]), *next;
  for (; block; block = next) {
   next = block->next;
   if (entered)
    context->driver.mem_free(block->address);
   gemmepi__mutex_destroy(&block->turn);
   gemmepi__delete(&context->allocator, block);
  }
 }
}
/* Our CUDA sources: one file as a text, and the digest that names it with all that it includes. */

/* Made by src/embed.py from src/kernels/. Change those files, then run 'make gen'. */

#include <stddef.h>

static const char *const gemmepi__source_activation_cuh[] = {
"#line 1 \"src/kernels/activation.cuh\"\n#line 16\n#pragma once\n\n#include \"codes.h\"\n\n#ifndef GEMMEPI_LONG_SUMS\n#define GEMMEPI_LONG_SUMS 0\n#endif\n#ifndef GEMMEPI_EXACT\n#define GEMMEPI_EXACT 1\n#endif\n\n#define NAMED(name) name = CODE_##name,\nenum{ACTIVATION_CODES(NAMED)};\n"
"#undef NAMED\n\n\n\n\ntemplate<int Activation>constexpr bool SAVES_MASK=Activation==RELU;\n\ntemplate<int Activation>constexpr bool SELECTS=Activation==RELU||Activation==HARDSIGMOID;\n\ntemplate<int Activation>\n"
"constexpr bool HAS_ANY_SIZE=Activation==SQUARED_RELU||Activation==LEAKY_RELU||Activation==ELU;\n\n\n\ntemplate<int Activation>\nconstexpr bool ENDS_TAILS=Activation==SILU||Activation==GELU_TANH||Activation==QUICK_GELU;\n\ntemplate<int Activation>\n"
"constexpr bool HAS_FORM_OF_SUMS= !GEMMEPI_EXACT&&(ENDS_TAILS<Activation> ||Activation==GELU_ERF);\n\ntemplate<int Activation>constexpr bool GATES_BY_SUMS=HAS_FORM_OF_SUMS<Activation> &&Activation!=SILU;\n\n\n"
"template<int Activation>constexpr float SUM_SCALE= !GEMMEPI_EXACT&&Activation==GELU_TANH?0.46866869f:0;\n\n\ntemplate<int Activation>\nconstexpr bool HAS_NEAR_DERIVATIVE= !GEMMEPI_EXACT&&(ENDS_TAILS<Activation> ||Activation==GELU_ERF);\ntemplate<int Activation>\n"
"constexpr float NEAR=Activation==SILU         ? -80\n:Activation==QUICK_GELU? -47\n:Activation==GELU_ERF   ? -12.5f\n: -9.75f;\nconstexpr float NEAR_END=1048576;\ntemplate<int Activation>constexpr bool HAS_NEAR_END=Activation!=SILU;\n\n\n\n\n__device__ inline float from_0_to_1(float x){\n"
"return __saturatef(x);\n}\n__device__ inline double from_0_to_1(double x){\nreturn x<0?0:x>1?1:x;\n}\n\n\n#ifndef GEMMEPI_HAS_FUNCTIONS\n__device__ inline float fast_power_of_2(float x){\nfloat y;\nasm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y): \"f\"(x));\nreturn y;\n}\n"
"__device__ inline float fast_reciprocal(float x){\nfloat y;\nasm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(y): \"f\"(x));\nreturn y;\n}\n#endif\n\n\n__device__ inline float fused(float x,float y,float z){\nreturn fmaf(x,y,z);\n}\n__device__ inline double fused(double x,double y,double z){\n"
"return fma(x,y,z);\n}\n\n\n__device__ inline float ratio(float x,float y){\nfloat inverse=fast_reciprocal(y),guess=x*inverse;\nreturn GEMMEPI_EXACT?fmaf(inverse,fmaf(-y,guess,x),guess):guess;\n}\n\n\n__device__ inline float reciprocal_of_1_plus(float x,float y){\n"
"float sum=fmaf(x,y,1),inverse=fast_reciprocal(sum);\nif(!GEMMEPI_EXACT)\nreturn inverse;\nfloat rest=fmaf(x,y,1-sum);\nreturn fmaf(inverse,fmaf(-rest,inverse,fmaf(-sum,inverse,1)),inverse);\n}\n__device__ inline double reciprocal_of_1_plus(double x,double y){\n"
"double sum=fma(x,y,1.0),inverse=1/sum,rest=fma(x,y,1-sum);\nreturn fma(inverse,fma(-rest,inverse,fma(-sum,inverse,1.0)),inverse);\n}\n\n\n\ntemplate<class A>struct Exponential{\nA part,root;\n__device__ A value()const{\nreturn part*root*root;\n}\n};\n\n\nstruct Reduced_exponential{\n"
"float less_1,root;\n};\n\nconstexpr float ROUNDER=12582912+127+24;\nconstexpr float LOG_4_HIGH=1.38629150390625f,LOG_4_LOW=2.85721364e-06f;\n__device__ inline float shifted_quotient(float x){\nreturn fmaf(x,0.72134752044448170368f,ROUNDER);\n}\n"
"__device__ inline Reduced_exponential exponential_of_remainder(float shifted,float r){\n\nfloat q=fmaf(r,2.48440974e-05f,0.000200913782f);\nq=fmaf(r,q,0.00138897297f);\nq=fmaf(r,q,0.00833266042f);\nq=fmaf(r,q,0.0416666456f);\nq=fmaf(r,q,0.166666716f);\nq=fmaf(r,q,0.5f);\n"
"return{fmaf(r*r,q,r),__uint_as_float(__float_as_uint(shifted)<<23)*5.9604644775390625e-08f};\n}\n__device__ inline Reduced_exponential reduced_exponential(float x){\nx=x< -209.5f? -209.5f:x;\nfloat shifted=shifted_quotient(x),k=shifted-ROUNDER;\n"
"return exponential_of_remainder(shifted,fmaf(k,-LOG_4_LOW,fmaf(k,-LOG_4_HIGH,x)));\n}\n\n__device__ inline Exponential<float>exponential(float x){\n#if GEMMEPI_EXACT\nReduced_exponential e=reduced_exponential(x);\nreturn{1+e.less_1,e.root};\n#else\n"
"return{1,fast_power_of_2(x*0.72134752044448170368f)};\n#endif\n}\n",
"__device__ inline Exponential<double>exponential(double x){\nbool far= !(x> -600);\ndouble e=exp(far?0.5*x:x);\nreturn{far?1:e,far?e:1};\n}\n\n\ntemplate<bool More>\n__device__ inline Reduced_exponential reduced_exponential_of_product(float x,float y,float more){\n"
"float shifted=shifted_quotient(-x*y),k=shifted-ROUNDER,r=fmaf(-x,y,k* -LOG_4_HIGH);\nif(More)\nr=fmaf(-x,more,r);\nreturn exponential_of_remainder(shifted,fmaf(k,-LOG_4_LOW,r));\n}\ntemplate<bool More>\n__device__ inline Exponential<float>exponential_of_product(float x,float y,float more){\n"
"Reduced_exponential e=reduced_exponential_of_product<More>(x,y,more);\nreturn{1+e.less_1,e.root};\n}\ntemplate<bool More>\n__device__ inline Exponential<double>exponential_of_product(double x,double y,double more){\ndouble product=x*y;\nExponential<double>e=exponential(-product);\n"
"double rounded=fma(x,y,-product);\nif(More)\nrounded=fma(x,more,rounded);\nreturn{e.part==1?1:fma(e.part,-rounded,e.part),e.root};\n}\n\n\n__device__ inline float exponential_less_1(float x){\n#if GEMMEPI_EXACT\nReduced_exponential e=reduced_exponential(x);\nfloat square=e.root*e.root;\n"
"return fmaf(e.less_1,square,square-1);\n#else\n\nreturn x> -0.015625f?x*fmaf(x,0.5f,1):exponential(x).value()- 1;\n#endif\n}\n__device__ inline double exponential_less_1(double x){\nreturn expm1(x);\n}\n\n__device__ inline float hyperbolic_tangent(float x){\n"
"float m=exponential_less_1(-2*fabsf(x));\nreturn copysignf(ratio(m,2+m),x);\n}\n__device__ inline double hyperbolic_tangent(double x){\nreturn tanh(x);\n}\n\n\n__device__ inline float logarithm_of_1_plus(Exponential<float>exponential){\nfloat e=exponential.value(),q;\n#if GEMMEPI_EXACT\n\n"
"q=fmaf(e,-0.00329107419f,0.0200884603f);\nq=fmaf(e,q,-0.0574604832f);\nq=fmaf(e,q,0.106613711f);\nq=fmaf(e,q,-0.153449774f);\nq=fmaf(e,q,0.196921214f);\nq=fmaf(e,q,-0.249580204f);\nq=fmaf(e,q,0.333304644f);\nq=fmaf(e,q,-0.499999315f);\nreturn fmaf(exponential.part*e,q,exponential.part);\n"
"#else\n\nq=fmaf(e,0.0413442105f,-0.157421246f);\nq=fmaf(e,q,0.306297272f);\nq=fmaf(e,q,-0.496977061f);\nreturn fmaf(e,q,0.999943256f);\n#endif\n}\n__device__ inline double logarithm_of_1_plus(Exponential<double>e){\nreturn e.root==1?log1p(e.part):e.part;\n}\n\n\n\n\n"
"template<class A>struct Logistic{A part,root,opposite;};\ntemplate<class A>__device__ inline Logistic<A>logistic(bool below,Exponential<A>e){\nA inverse=reciprocal_of_1_plus(e.part*e.root,e.root);\nreturn{below?e.part*inverse:inverse,below?e.root:A(1),below?inverse:e.value()*inverse};\n}\n\n\n"
"template<class A>__device__ inline A times_logistic(A v,A factor,Logistic<A>s){\nreturn v*s.root*(factor*s.part)*s.root;\n}\n#if !GEMMEPI_EXACT\ntemplate<>struct Logistic<float>{float root,share;};\n__device__ inline Logistic<float>logistic(bool below,Exponential<float>e){\n"
"float root=below?e.root:1;\nreturn{root,root*reciprocal_of_1_plus(e.root,e.root)};\n}\n__device__ inline float times_logistic(float v,float factor,Logistic<float>s){\nreturn v*s.root*(factor*s.share);\n}\n#endif\ntemplate<class A>__device__ inline Logistic<A>logistic(A x){\n"
"return logistic(x<0,exponential(-fabs(x)));\n}\ntemplate<class A>__device__ inline A times_logistic(A v,A factor,A x){\nreturn times_logistic(v,factor,logistic(x));\n}\ntemplate<class A>__device__ inline A times_logistic(A v,A x){\nreturn times_logistic(v,A(1),x);\n}\n\n\n"
"__device__ inline float times_logistic_of(float x,float power){\nconstexpr float scale=0.00390625f;\nreturn x*scale*fast_reciprocal(fast_power_of_2(power)+ scale);\n}\n\n\n\ntemplate<bool More,class A>\n__device__ inline A times_gate_derivative(A v,A x,Logistic<A>s,A slope,A more){\n"
"A scale=s.opposite*s.root,change=x*scale;\nif(More)\nchange=fused(change,slope,fused(change,more,fused(x,scale,-change)*slope));\nelse\nchange*=slope;\nreturn v*s.root*fused(change,s.part,s.root*s.part);\n}\n#if !GEMMEPI_EXACT\ntemplate<bool More>\n"
"__device__ inline float times_gate_derivative(float v,float x,Logistic<float>s,float slope,float more){\n",
"float opposite=fmaf(-s.root,s.share,1);\nreturn v*s.root*(x*s.share*opposite*(More?slope+more:slope)+ s.share);\n}\n#endif\n\n\ntemplate<class A>__device__ inline A times_logistic_derivative(A v,A factor,A x){\nExponential<A>e=exponential(x);\n"
"A inverse=reciprocal_of_1_plus(e.part*e.root,e.root);\nreturn v*e.root*(e.part*inverse*inverse*(factor*e.root));\n}\n\n\n\ntemplate<class A>struct Gate{\nLogistic<A>s;\nA slope,more;\n};\nconstexpr double GELU_SLOPE=2*0.79788456080286535588;\n"
"template<class A>__device__ inline Gate<A>gelu_gate(A x){\nconstexpr double c=GELU_SLOPE;\nconstexpr A end=sizeof(A)==8?A(40):A(13.8);\nA size=fabs(x)>end?end:fabs(x),square=size*size;\nA factor=fused(A(c*0.044715),square,A(c)),more=A(c*0.134145)*square;\n"
"A rest=fused(A(c*0.044715),square,A(c)- factor);\nreturn{logistic(x<0,exponential_of_product<true>(size,factor,rest)),A(c),more};\n}\ntemplate<class A>__device__ inline Gate<A>quick_gelu_gate(A x){\nconstexpr A end=sizeof(A)==8?A(1000):A(123.2);\nA size=fabs(x)>end?end:fabs(x);\n"
"return{logistic(x<0,exponential_of_product<false>(size,A(1.702),A(0))),A(1.702),A(0)};\n}\n#if !GEMMEPI_EXACT\nconstexpr double ROOT_POWER= -0.72134752044448170368;\n__device__ inline Gate<float>gelu_gate(float x){\nconstexpr double c=GELU_SLOPE;\nfloat square=x*x,root=fast_power_of_2(\n"
"fabsf(x)*fmaf(float(ROOT_POWER*c*0.044715),square,float(ROOT_POWER*c)));\nreturn{logistic(x<0,{1,root}),float(c),float(c*0.134145)*(square<4096?square:4096)};\n}\n__device__ inline Gate<float>quick_gelu_gate(float x){\n"
"return{logistic(x<0,{1,fast_power_of_2(fabsf(x)*float(ROOT_POWER*1.702))}),1.702f,0};\n}\n#endif\n\n\n\n\n__device__ inline float short_normal_tail(float y){\nfloat above=fmaf(y,fmaf(y,fmaf(y,0.0157306679f,0.11407923f),0.352673531f),0.499999911f);\n"
"float under=fmaf(y,fmaf(y,fmaf(y,0.0394377708f,0.28568697f),0.927633762f),1.50322306f);\nreturn above*fast_reciprocal(fmaf(y,under,1));\n}\n\n\n__device__ inline float short_normal_slope(float y){\n"
"float above=fmaf(y,fmaf(y,fmaf(y,fmaf(y,-0.0383506231f,-0.217693895f),-0.443243533f),-0.192517936f),0.500000179f);\nfloat under=fmaf(y,fmaf(y,0.0961380526f,0.545425475f),1.2107532f);\nreturn above*fast_reciprocal(fmaf(y,under,1));\n}\n\n\n\n\n"
"template<bool Derivative>__device__ inline float times_normal(float v,float x){\n#if GEMMEPI_EXACT\nfloat size=fabsf(x),y=fminf(size,20.47f);\nReduced_exponential e=reduced_exponential_of_product<false>(y,0.5f*y,0);\n\n\nfloat above=\n"
"fmaf(y,fmaf(y,fmaf(y,fmaf(y,0.0031668392f,0.03207509f),0.14717144f),0.35697037f),0.4140625f);\nfloat under=fmaf(y,0.0079379715f,0.08040679f);\nfloat slope=fmaf(y,fmaf(y,fmaf(y,under,0.37669387f),0.97712195f),1.374689f);\nunder=fmaf(y,slope,0.828125f);\n\n"
"float inverse=fast_reciprocal(under),tail=above*inverse,lost=fmaf(y,slope,0.828125f-under);\ntail=fmaf(inverse,fmaf(-lost,tail,fmaf(-under,tail,above)),tail);\nif(Derivative)\ntail=fmaf(size,-0.39894228040143267794f,tail);\ntail=fmaf(tail,e.less_1,tail)*e.root;\n"
"return(x<0?v*tail:v)*(x<0?e.root:fmaf(-tail,e.root,1));\n#else\nfloat size=fabsf(x),y=fminf(size,20);\nExponential<float>e=exponential(-0.5f*x*x);\nfloat tail=short_normal_tail(y);\nif(Derivative)\ntail=fmaf(size,-0.39894228040143267794f,tail);\ntail*=e.root;\nfloat rest=e.part*e.root;\n"
"return(x<0?v*tail:v)*(x<0?rest:fmaf(-tail,rest,1));\n#endif\n}\n\n\n\n__device__ inline float times_own_normal(float x){\nfloat size=fabsf(fminf(x,20)),t=fast_reciprocal(fmaf(size,0.26f,1));\nfloat root=fast_power_of_2(x* -0.36067376f*x);\nfloat p=fmaf(t,-0.066500567f,0.20305874f);\n"
"p=fmaf(t,p,-0.065038852f);\np=fmaf(t,p,0.13312194f);\np=fmaf(t,p,0.087257259f);\np=fmaf(t,p,0.10438382f);\np=fmaf(t,p,0.10371772f);\np*=t*size;\nreturn fmaf(-p*root,root,fmaxf(x,0));\n}\n\n__device__ inline float above_0(float x){\n#if __CUDA_ARCH__ >= 800\n"
"asm(\"max.NaN.f32 %0, %1, 0f00000000;\" : \"=f\"(x): \"f\"(x));\nreturn x;\n#else\nreturn x<=0?0:x;\n#endif\n}\n\n\n\ntemplate<bool Gate>__device__ inline float sum_times_own_normal(float x){\n",
"float y=Gate? -fabsf(x):fminf(x,fmaxf(-x,-13));\n#if GEMMEPI_LONG_SUMS\nfloat p=fmaf(y,0.000388750457f,0.00660956977f);\np=fmaf(y,p,0.0510568805f);\np=fmaf(y,p,-0.460328877f);\np=fmaf(y,p,1.15084445f);\np=fmaf(y,p,-1.0000087f);\n#else\nfloat p=fmaf(y,9.13470785e-07f,4.16792682e-05f);\n"
"p=fmaf(y,p,0.000778685964f);\np=fmaf(y,p,0.00801064726f);\np=fmaf(y,p,0.0532111079f);\np=fmaf(y,p,-0.458959132f);\np=fmaf(y,p,1.15113628f);\np=fmaf(y,p,-0.999999404f);\n#endif\nif constexpr(Gate)\nreturn fmaf(x,0.5f,y* -0.5f)- from_0_to_1(-y*fast_power_of_2(p));\n"
"return fmaf(y,fast_power_of_2(p),above_0(x));\n}\nconstexpr double SQRT_HALF=0.70710678118654752440,\nSQRT_HALF_REST=4.8336466567264567e-17;\nconstexpr double INV_SQRT_2PI=0.39894228040143267794;\ntemplate<bool Derivative>__device__ inline double times_normal(double v,double x){\n"
"double y=x>40?40:x,square=y*y,argument=y* -SQRT_HALF;\nExponential<double>e=exponential(-0.5*x*x);\nif(x> -30){\ndouble of_square=fma(y,y,-square),\nof_argument=fma(y,-SQRT_HALF,-argument)+ y*SQRT_HALF_REST;\ndouble less=of_argument* -0.56418958354775628695,half;\n"
"half=square<1?fma(-0.5,erf(argument),0.5):0.5*erfc(argument);\nif(Derivative)\nless=fma(x,INV_SQRT_2PI,fma(y*INV_SQRT_2PI,-0.5*of_square,less));\nreturn v*fma(less,e.value(),half);\n}\ndouble factor=Derivative?x*INV_SQRT_2PI:0;\n\n"
"return v*e.root*(e.part*(0.5*erfcx(x* -SQRT_HALF)+ factor))*e.root;\n}\n\n\n\n\ntemplate<class A>__device__ inline A softplus(A x){\nExponential<A>e=exponential(-fabs(x));\nreturn e.root*logarithm_of_1_plus(e)*e.root +(x>0?x:A(0));\n}\n\n\n\ntemplate<class A>struct Mish{\nExponential<A>e;\n"
"A n,inverse;\n};\ntemplate<class A>constexpr A FAR=sizeof(A)==8?A(40):A(20);\ntemplate<class A>__device__ inline Mish<A>mish_parts(A x){\nExponential<A>e=exponential(x>FAR<A> ?FAR<A> :x);\nif(GEMMEPI_EXACT&&x>0)\ne={e.value(),1};\nA n=e.part+e.part*(A(0.5)*e.value());\n"
"return{e,n,reciprocal_of_1_plus(n*e.root,e.root)};\n}\ntemplate<class A>__device__ inline A mish(A x){\nMish<A>m=mish_parts(x);\nA y=x*m.e.root*(m.n*m.inverse)*m.e.root;\nreturn x>FAR<A> ?x:y;\n}\ntemplate<class A>__device__ inline A times_mish_derivative(A v,A x){\nMish<A>m=mish_parts(x);\n"
"A rise=m.e.part+m.e.part*m.e.value(),y;\nif(GEMMEPI_EXACT){\nA sum=fused(x*rise,m.inverse,x>0?A(-1):m.n);\ny=v*m.e.root*fused(sum*m.inverse,m.e.root,x>0?A(1):A(-0.0));\n}else{\nA sum=m.n+x*(rise*m.inverse);\ny=v*(sum*m.inverse*m.e.root)*m.e.root;\n}\nreturn x>FAR<A> ?v +(x-x):y;\n}\n\n\n\n\n"
"template<class A>constexpr A LARGEST=A(3.4028234663852886e38);\ntemplate<class A>constexpr A LEAST=A(1.1754943508222875e-38);\ntemplate<>constexpr double LARGEST<double> =1.7976931348623157e308;\ntemplate<>constexpr double LEAST<double> =2.2250738585072014e-308;\n\n\n"
"template<class A>__device__ inline A product_in_range(A x,A y,A z){\nbool x_is_larger=fabs(x)>fabs(y);\nA both=x*y,larger=x_is_larger?x:y,smaller=x_is_larger?y:x,outer=larger*z;\nA out=fabs(both)>LARGEST<A> ||fabs(outer)<=LARGEST<A> ?outer*smaller:smaller*z*larger;\n"
"return fabs(both)>=LEAST<A> &&fabs(both)<=LARGEST<A> ?both*z:out;\n}\n\n\n\n\ntemplate<int Activation,class A>__device__ inline A activate(A x,A parameter){\nconstexpr bool is_short= !GEMMEPI_EXACT&&sizeof(A)==4;\nif constexpr(Activation==RELU)\nreturn x>0||x!=x?x:A(0);\n"
"else if constexpr(Activation==GELU_TANH&&is_short)\nreturn times_logistic_of(x,fmaf(x,fmaf(-0.10294324f,x*x,-2.3022082f),-8));\nelse if constexpr(Activation==SILU&&is_short)\nreturn times_logistic_of(x,fmaf(x,-1.4426950f,-8));\nelse if constexpr(Activation==SIGMOID&&is_short)\n"
"return times_logistic_of(1,fmaf(x,-1.4426950f,-8));\nelse if constexpr(Activation==QUICK_GELU&&is_short)\nreturn times_logistic_of(x,fmaf(x,-2.4554670f,-8));\nelse if constexpr(Activation==GELU_TANH)\nreturn times_logistic(x,A(1),gelu_gate(x).s);\n"
"else if constexpr(Activation==GELU_ERF&&is_short)\nreturn times_own_normal(x);\nelse if constexpr(Activation==GELU_ERF)\nreturn times_normal<false>(x,x);\nelse if constexpr(Activation==SILU)\n",
"return times_logistic(x,x);\nelse if constexpr(Activation==SIGMOID)\nreturn times_logistic(A(1),x);\nelse if constexpr(Activation==TANH)\nreturn hyperbolic_tangent(x);\nelse if constexpr(Activation==LEAKY_RELU)\nreturn x>0||x!=x?x:parameter*x;\nelse if constexpr(Activation==ELU){\n"
"A below=parameter*copysign(exponential_less_1(x),x);\nreturn x>0||x!=x?x:below;\n}else if constexpr(Activation==SQUARED_RELU)\nreturn x>0||x!=x?x*x:A(0);\nelse if constexpr(Activation==QUICK_GELU)\nreturn times_logistic(x,A(1),quick_gelu_gate(x).s);\nelse if constexpr(Activation==SOFTPLUS)\n"
"return softplus(x);\nelse if constexpr(Activation==HARDSWISH)\nreturn x*from_0_to_1((x+3)*A(1/6.0));\nelse if constexpr(Activation==MISH)\nreturn mish(x);\nelse if constexpr(Activation==HARDSIGMOID)\nreturn x!=x?x:from_0_to_1((x+3)*A(1/6.0));\nelse\nreturn x;\n}\n\n"
"__device__ inline float logistic_of_power(float power){\nreturn fast_reciprocal(1+fast_power_of_2(power));\n}\ntemplate<int Activation>__device__ inline float power_of_gate(float x){\nif constexpr(Activation==GELU_TANH)\nreturn x*fmaf(-0.10294324f,x*x,-2.3022082f);\n"
"else if constexpr(Activation==QUICK_GELU)\nreturn x* -2.4554670f;\nelse\nreturn x* -1.4426950f;\n}\n\ntemplate<int Activation,bool Gate,class A>__device__ inline A activate_sum(A x,A parameter){\nif constexpr(!GEMMEPI_EXACT&&sizeof(A)==4&&ENDS_TAILS<Activation>)\n"
"return x*logistic_of_power(power_of_gate<Activation>(x));\nelse if constexpr(!GEMMEPI_EXACT&&sizeof(A)==4&&Activation==GELU_ERF)\nreturn sum_times_own_normal<Gate>(x);\nelse\nreturn activate<Activation>(x,parameter);\n}\n\n\n"
"template<int Activation>__device__ inline float activate_scaled_sum(float z){\nconstexpr float scale=SUM_SCALE<Activation>;\nfloat power=z*fmaf(z,-z,-4.9122296f);\nreturn z*fast_reciprocal(fmaf(fast_power_of_2(power),scale,scale));\n}\n\n\n"
"template<int Activation,class A>__device__ inline A times_derivative(A v,A x,A parameter){\nif constexpr(Activation==RELU){\nreturn x>0?v:A(0);\n}else if constexpr(Activation==GELU_TANH){\nGate<A>gate=gelu_gate(x);\nreturn times_gate_derivative<true>(v,x,gate.s,gate.slope,gate.more);\n"
"}else if constexpr(Activation==GELU_ERF){\nreturn times_normal<true>(v,x);\n}else if constexpr(Activation==SILU){\nreturn times_gate_derivative<false>(v,x,logistic(x),A(1),A(0));\n}else if constexpr(Activation==SIGMOID){\nreturn times_logistic_derivative(v,A(1),-fabs(x));\n"
"}else if constexpr(Activation==TANH){\nreturn times_logistic_derivative(v,A(4),-2*fabs(x));\n}else if constexpr(Activation==LEAKY_RELU){\nreturn x>0?v:v*parameter;\n}else if constexpr(Activation==ELU){\nExponential<A>e=exponential(x);\n\n"
"A large=fabs(parameter)>1?parameter:A(1),small=fabs(parameter)>1?A(1):parameter;\nA size=large*e.root*e.part,below=(fabs(v)>=1?v:size)*e.root*(fabs(v)>=1?size:v)*small;\nreturn x>0?v:below;\n}else if constexpr(Activation==SQUARED_RELU){\nreturn x>0||x!=x?v*x*2:A(0);\n"
"}else if constexpr(Activation==QUICK_GELU){\nGate<A>gate=quick_gelu_gate(x);\nreturn times_gate_derivative<false>(v,x,gate.s,gate.slope,gate.more);\n}else if constexpr(Activation==SOFTPLUS){\nreturn times_logistic(v,x);\n}else if constexpr(Activation==HARDSWISH){\n"
"return v*(x<= -3?A(0):x>=3?A(1):x*A(1/3.0)+ A(0.5));\n}else if constexpr(Activation==MISH){\nreturn times_mish_derivative(v,x);\n}else if constexpr(Activation==HARDSIGMOID){\nreturn x> -3&&x<3?v*A(1/6.0):A(0);\n}else{\nreturn v;\n}\n}\n\n\n\n"
"template<int Activation>__device__ inline float rise_of_gate(float x){\nif constexpr(Activation==GELU_TANH)\nreturn x*fmaf(float(GELU_SLOPE*0.134145),x*x,float(GELU_SLOPE));\nelse\nreturn Activation==QUICK_GELU?1.702f*x:x;\n}\n"
"template<int Activation>__device__ inline float near_derivative(float x){\nif constexpr(Activation==GELU_ERF){\nfloat rest=short_normal_slope(fabsf(x));\nreturn fmaf(x<0?rest: -rest,fast_power_of_2(x* -0.72134752f*x),x<0?0:1);\n}else{\nfloat s=logistic_of_power(power_of_gate<Activation>(x));\n"
"return fmaf(rise_of_gate<Activation>(x),fmaf(-s,s,s),s);\n}\n}\n\n\n",
"template<int Activation,class A>__device__ inline A times_activation(A v,A x,A parameter){\nif constexpr(Activation==GELU_TANH)\nreturn times_logistic(v,x,gelu_gate(x).s);\nelse if constexpr(Activation==SILU)\nreturn times_logistic(v,x,x);\nelse if constexpr(Activation==SIGMOID)\n"
"return times_logistic(v,A(1),x);\nelse if constexpr(Activation==QUICK_GELU)\nreturn times_logistic(v,x,quick_gelu_gate(x).s);\nelse if constexpr(Activation==LEAKY_RELU)\nreturn x>0?v*x:product_in_range(x,parameter,v);\nelse if constexpr(Activation==ELU)\n"
"return x>0?v*x:product_in_range(copysign(exponential_less_1(x),x),parameter,v);\nelse if constexpr(Activation==SQUARED_RELU)\nreturn x>0||x!=x?product_in_range(x,x,v):v*A(0);\nelse\nreturn v*activate<Activation>(x,parameter);\n}\n\n\n\n\n"
"template<class A>__device__ inline bool leaves_range(A both){\nreturn fabs(both)>LARGEST<A> ||(sizeof(A)==8&&both!=0&&fabs(both)<LEAST<A>);\n}\ntemplate<int Activation,class A,int N>\n__device__ inline void bounded_gate_gradients(const A(&dy)[N],const A(&value)[N],const A(&gate)[N],A parameter,\n"
"A(&out)[N]){\nbool apart=false;\n#pragma unroll\nfor(int i=0;i<N;i++){\nout[i]=dy[i]*value[i];\napart|=leaves_range(out[i]);\n}\nif(apart)\n#pragma unroll\nfor(int i=0;i<N;i++)\nif(leaves_range(out[i]))\nout[i]=fabs(dy[i])>fabs(value[i])?dy[i]:value[i];\n#pragma unroll\nfor(int i=0;i<N;i++)\n"
"out[i]=times_derivative<Activation>(out[i],gate[i],parameter);\nif(apart)\n#pragma unroll\nfor(int i=0;i<N;i++)\nif(leaves_range(dy[i]*value[i])&& !(SELECTS<Activation> &&out[i]==0))\nout[i]*=fabs(dy[i])>fabs(value[i])?value[i]:dy[i];\n}\n\n\n"
"template<int Activation,class A>__device__ inline A gate_gradient(A dy,A value,A gate,A parameter){\nif constexpr(Activation==SQUARED_RELU)\nreturn gate>0||gate!=gate?product_in_range(dy,value,gate)*2:A(0);\nelse if constexpr(Activation==LEAKY_RELU)\n"
"return gate>0?dy*value:product_in_range(dy,value,parameter);\nbool value_first=fabs(value)>fabs(dy);\nA both=dy*value,first=value_first?value:dy,last=value_first?dy:value;\nif(fabs(both)<=LARGEST<A> &&(fabs(both)>=LEAST<A> ||last==0)){\nfirst=both;\nlast=1;\n}\n"
"return times_derivative<Activation>(first,gate,parameter)*last;\n}\ntemplate<int Activation,class A,int N>\n__device__ inline void gate_gradients(const A(&dy)[N],const A(&value)[N],const A(&gate)[N],A parameter,A(&out)[N]){\nif constexpr(Activation==RELU){\n#pragma unroll\nfor(int i=0;i<N;i++)\n"
"out[i]=gate[i]>0?dy[i]*value[i]:A(0);\n}else if constexpr(HAS_ANY_SIZE<Activation>){\n#pragma unroll\nfor(int i=0;i<N;i++)\nout[i]=gate_gradient<Activation>(dy[i],value[i],gate[i],parameter);\n}else{\nbounded_gate_gradients<Activation>(dy,value,gate,parameter,out);\n}\n}\n",
 NULL};

static const char *const gemmepi__source_amax_cuh[] = {
"#line 1 \"src/kernels/amax.cuh\"\n\n#pragma once\n#include \"types.cuh\"\n\n\n__device__ inline u32 magnitude(float x){\nreturn __float_as_uint(x)&0x7fffffff;\n}\n__device__ inline u64 magnitude(double x){\nreturn(u64)__double_as_longlong(x)&0x7fffffffffffffff;\n}\n"
"__device__ inline u32 magnitude(int){\nreturn 0;\n}\n\ntemplate<class A,int N,class M>__device__ inline void keep_largest(const A(&v)[N],int valid,M&largest){\n#pragma unroll\nfor(int i=0;i<N;i++){\nM size=i<valid?magnitude(v[i]):0;\nlargest=size>largest?size:largest;\n}\n}\n\n\n"
"template<bool Is_f64>struct Amax_type{\ntypedef float type;\n};\ntemplate<>struct Amax_type<true>{\ntypedef double type;\n};\ntemplate<class T>using Amax_of=typename Amax_type<SAME<T,F64>>::type;\n\n"
"template<class Amax,class A,int N,class M>__device__ inline void keep_largest_of(const A(&v)[N],M&largest){\nAmax sizes[N];\n#pragma unroll\nfor(int i=0;i<N;i++)\nsizes[i]=(Amax)v[i];\nkeep_largest(sizes,N,largest);\n}\n\n\ntemplate<class M>__device__ inline M largest_of_warp(M largest){\n"
"#pragma unroll\nfor(int step=16;step>0;step/=2){\nM other=__shfl_xor_sync(0xffffffff,largest,step);\nlargest=other>largest?other:largest;\n}\nreturn largest;\n}\n\n\n\ntemplate<class M>__device__ inline void raise_to(void*amax,M largest){\nif(largest> *(volatile M*)amax)\n"
"atomicMax((M*)amax,largest);\n}\n\n\ntemplate<class M>__device__ inline void store_largest(void*amax,M largest){\nlargest=largest_of_warp(largest);\nif((threadIdx.y*blockDim.x+threadIdx.x)%32==0)\nraise_to(amax,largest);\n}\n\n\n"
"template<int Threads,class M>__device__ inline void store_largest_of_block(void*amax,M largest){\n__shared__ M warps[Threads/32];\nlargest=largest_of_warp(largest);\nif(threadIdx.x%32==0)\nwarps[threadIdx.x/32]=largest;\n__syncthreads();\nif(threadIdx.x<32){\n"
"largest=largest_of_warp(threadIdx.x<Threads/32?warps[threadIdx.x]:M(0));\nif(threadIdx.x==0)\nraise_to(amax,largest);\n}\n}\n",
 NULL};

static const char *const gemmepi__source_codes_h[] = {
"#line 1 \"src/kernels/codes.h\"\n\n\n#ifndef GEMMEPI_KERNELS_CODES_H\n#define GEMMEPI_KERNELS_CODES_H\n\n#define FLAG_BIAS 0x400\n#define FLAG_AUX 0x800\n#define FLAG_BACKWARD 0x1000\n#define FLAG_RESIDUAL 0x2000\n#define FLAG_BGRAD 0x4000\n#define FLAG_BGRAD_A 0x8000\n"
"#define FLAG_BGRAD_B 0x10000\n#define FLAG_GATED 0x40000\n#define FLAG_GATE_FIRST 0x80000\n#define FLAG_UPSTREAM 0x100000\n#define FLAG_ACCUMULATE_BIAS_GRAD 0x20000\n#define CODE_NONE 0x00\n#define CODE_RELU 0x0f\n#define CODE_GELU_TANH 0x17\n#define CODE_GELU_ERF 0x1b\n#define CODE_SILU 0x1d\n"
"#define CODE_SIGMOID 0x1e\n#define CODE_TANH 0x27\n#define CODE_LEAKY_RELU 0x2b\n#define CODE_ELU 0x2d\n#define CODE_SQUARED_RELU 0x2e\n#define CODE_QUICK_GELU 0x33\n#define CODE_SOFTPLUS 0x35\n#define CODE_HARDSWISH 0x36\n#define CODE_MISH 0x39\n#define CODE_HARDSIGMOID 0x3a\n\n"
"#define ACTIVATION_CODES(X) X(NONE) X(RELU) X(GELU_TANH) X(GELU_ERF) X(SILU) X(SIGMOID) X(TANH) X(LEAKY_RELU) X(ELU) X(SQUARED_RELU) X(QUICK_GELU) X(SOFTPLUS) X(HARDSWISH) X(MISH) X(HARDSIGMOID)\n\n#endif\n",
 NULL};

static const char *const gemmepi__source_convert_cu[] = {
"#line 1 \"src/kernels/convert.cu\"\n\n\n#include \"copy.cuh\"\n\n#ifndef GEMMEPI_X_TYPE\n#define GEMMEPI_X_TYPE E4M3\n#define GEMMEPI_OUT_TYPE F16\n#define GEMMEPI_ALIGNED 0\n#endif\n\nconstexpr int THREADS=256;\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_convert(GEMMEPI_PARAMS gemmepi__convert_params p){\nCopied_run run;\nif(!find_copied_run<THREADS>(p,run))\nreturn;\nlong long left=p.columns-run.column;\nint valid=left<RUN?(int)left:RUN;\n"
"const GEMMEPI_X_TYPE*x=start_of_run<const GEMMEPI_X_TYPE>(p.x,run);\nGEMMEPI_OUT_TYPE*out=start_of_run<GEMMEPI_OUT_TYPE>(p.out,run);\n*reinterpret_cast<Words<GEMMEPI_OUT_TYPE> *>(out)=\nconvert_run<GEMMEPI_OUT_TYPE>(read_run<GEMMEPI_ALIGNED>(x,valid));\n}\n",
 NULL};

static const char *const gemmepi__source_copy_cuh[] = {
"#line 1 \"src/kernels/copy.cuh\"\n\n#pragma once\n#include \"types.cuh\"\n#include \"params.h\"\n\nstruct Copied_run{\nlong long item,row,column;\n};\n\n\n\ntemplate<int Threads>__device__ inline bool find_copied_run(const gemmepi__convert_params&p,Copied_run&mine){\n"
"long long runs=p.out.ld/RUN,lines=p.items*p.rows;\nlong long at=(long long)blockIdx.x*Threads+threadIdx.x,line;\nif(at>=lines*runs)\nreturn false;\nif(lines*runs<=0xffffffff){\nline=(u32)at/(u32)runs;\nmine.item=(u32)line/(u32)p.rows;\n}else{\nline=at/runs;\nmine.item=line/p.rows;\n}\n"
"after_launches_before();\nmine.row=line-mine.item*p.rows;\nmine.column=(at-line*runs)*RUN;\nreturn true;\n}\n\n\ntemplate<class T>__device__ inline T*start_of_run(const gemmepi__kernel_matrix&matrix,const Copied_run&run){\n"
"return(T*)matrix.data+run.item*matrix.stride+run.row*matrix.ld+run.column;\n}\n",
 NULL};

#ifndef GEMMEPI_NO_ELEMENTWISE
static const char *const gemmepi__source_elementwise_cu[] = {
"#line 1 \"src/kernels/elementwise.cu\"\n\n\n#include \"operations.cuh\"\n\n#ifndef GEMMEPI_TILE\n#define GEMMEPI_AT_ONCE 2\n#define GEMMEPI_REPEATS 0\n#define GEMMEPI_TILE 0\n#define GEMMEPI_PER_THREAD 16\n#define GEMMEPI_MODES 0u\n#endif\n\nconstexpr int THREADS=256;\n\n"
"#if GEMMEPI_TILE == 0\n\n\n\nconstexpr int AT_ONCE=GEMMEPI_AT_ONCE;\n\ntemplate<int Tensor>constexpr bool REPEATS=(GEMMEPI_REPEATS>>Tensor&1)!=0;\n\ntemplate<int Tensor>struct Loaded{\nVector<Tensor>words[AT_ONCE];\n};\n\ntemplate<int Tensor>\n"
"__device__ inline void load_dense(const gemmepi__contiguous_params&p,long long first,Loaded<Tensor> &x){\nif constexpr(USED<Tensor> && !REPEATS<Tensor>)\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nlong long at=first +(long long)r*THREADS*VECTOR,left=p.count-at;\n"
"const Type<Tensor> *from=(const Type<Tensor> *)p.data[Tensor]+ at;\nx.words[r]=load_vector<Tensor>(from,left>=VECTOR?VECTOR:(int)left);\n}\n}\n\ntemplate<int Tensor>\n__device__ inline void take_dense(const gemmepi__contiguous_params&p,const Loaded<Tensor> &x,int r,\nAcc(&v)[TENSORS][VECTOR]){\n"
"if constexpr(USED<Tensor> &&REPEATS<Tensor>)\nrepeat_value<Tensor>(*(const Type<Tensor> *)p.data[Tensor],v);\nelse if constexpr(USED<Tensor>)\nto_values<Tensor>(x.words[r],v);\n}\n\ntemplate<int Tensor>\n"
"__device__ inline void store_dense(const gemmepi__contiguous_params&p,long long at,int valid,\nconst Acc(&v)[TENSORS][VECTOR]){\nif constexpr(USED<Tensor>)\nstore_vector<Tensor>((Type<Tensor> *)p.data[Tensor]+ at,valid,from_values<Tensor>(v));\n}\n\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS)\ngemmepi_contiguous(GEMMEPI_PARAMS gemmepi__contiguous_params p){\nlong long first=(long long)blockIdx.x*(THREADS*AT_ONCE*VECTOR)+ threadIdx.x*VECTOR;\nScalars s=scalars_of(p.operation);\nMagnitude largest=0;\nLoaded<IN_A>a;\n"
"Loaded<IN_B>b;\nLoaded<IN_W>w;\nLoaded<IN_DY>dy;\nload_dense<IN_A>(p,first,a);\nload_dense<IN_B>(p,first,b);\nload_dense<IN_W>(p,first,w);\nload_dense<IN_DY>(p,first,dy);\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nlong long at=first +(long long)r*THREADS*VECTOR,left=p.count-at;\n"
"Acc v[TENSORS][VECTOR];\ntake_dense<IN_A>(p,a,r,v);\ntake_dense<IN_B>(p,b,r,v);\ntake_dense<IN_W>(p,w,r,v);\ntake_dense<IN_DY>(p,dy,r,v);\noperate_on(v,s,largest);\nint valid=left>=VECTOR?VECTOR:(int)left;\n#define GEMMEPI_STORE(Tensor) store_dense<Tensor>(p, at, valid, v);\n"
"GEMMEPI_EACH_OUTPUT(GEMMEPI_STORE)\n#undef GEMMEPI_STORE\n}\nif(CAST_AMAX)\nstore_largest_of_block<THREADS>(p.operation.amax,largest);\n}\n\n#else\n\n\n\n\n\nenum{\nALONG_VECTORS,\nREPEATED,\nALONG_I,\nALONG_J,\nCOLUMNS\n};\n"
"template<int Tensor>constexpr int MODE=USED<Tensor> ?GEMMEPI_MODES>>4*Tensor&15:REPEATED;\ntemplate<int Tensor>constexpr bool IS_TRANSPOSED=MODE<Tensor> ==ALONG_J||MODE<Tensor> ==COLUMNS;\ntemplate<int Tensor>constexpr bool IS_EXCHANGED=MODE<Tensor> ==ALONG_I||IS_TRANSPOSED<Tensor>;\n\n"
"constexpr int PER_THREAD=GEMMEPI_PER_THREAD;\nconstexpr int TILE_I=GEMMEPI_TILE,TILE_J=THREADS*PER_THREAD/TILE_I;\nconstexpr int VECTORS=PER_THREAD/VECTOR;\nstatic_assert(TILE_J>=1,\"the tile is larger than a block's elements\");\n\n"
"constexpr bool TRANSPOSES=IS_TRANSPOSED<IN_A> ||IS_TRANSPOSED<IN_B> ||IS_TRANSPOSED<IN_W> ||IS_TRANSPOSED<IN_DY> ||\nIS_TRANSPOSED<OUT_Y> ||IS_TRANSPOSED<OUT_DA> ||IS_TRANSPOSED<OUT_DB> ||IS_TRANSPOSED<OUT_DW>;\n"
"constexpr bool EXCHANGES=IS_EXCHANGED<IN_A> ||IS_EXCHANGED<IN_B> ||IS_EXCHANGED<IN_W> ||IS_EXCHANGED<IN_DY> ||\nIS_EXCHANGED<OUT_Y> ||IS_EXCHANGED<OUT_DA> ||IS_EXCHANGED<OUT_DB> ||IS_EXCHANGED<OUT_DW>;\n\n\n\n"
"template<class T>constexpr int PITCH=TILE_I +(TRANSPOSES?(sizeof(T)<4?4/sizeof(T):1):0);\nconstexpr int SHARED_BYTES=EXCHANGES?TILE_J*(TILE_I +(TRANSPOSES?4:0))*LARGEST_SIZE:16;\n\n\n\ntemplate<int Mode>struct Walk{\nstatic constexpr bool BY_J=Mode==ALONG_J||Mode==COLUMNS;\n"
"static constexpr int UNIT=Mode==ALONG_I||Mode==ALONG_J?1:VECTOR;\nstatic constexpr int WIDTH=(BY_J?TILE_J:TILE_I)/UNIT;\nstatic constexpr int STEPS=PER_THREAD/UNIT;\nint i,j;\n",
"__device__ Walk(){\nint along=threadIdx.x%WIDTH*UNIT,across=threadIdx.x/WIDTH;\ni=BY_J?across:along;\nj=BY_J?along:across;\n}\nstatic constexpr __device__ int along(int step){\nreturn step*THREADS%WIDTH*UNIT;\n}\nstatic constexpr __device__ int across(int step){\nreturn step*THREADS/WIDTH;\n}\n"
"static constexpr __device__ int i_of(int step){\nreturn BY_J?across(step):along(step);\n}\nstatic constexpr __device__ int j_of(int step){\nreturn BY_J?along(step):across(step);\n}\n};\n\n\nstruct Place{\nint extent_i,extent_j;\nlong long i,j;\nu32 outer;\n};\n\n"
"template<int Tensor>__device__ inline Type<Tensor> *tile_of(const gemmepi__strided_params&p,const Place&place){\nlong long at=place.i*p.stride[Tensor][0]+ place.j*p.stride[Tensor][1];\nu32 outer=place.outer;\nfor(int d=2;d<p.rank;d++){\nu32 rest=outer/p.extent[d];\n"
"at +=(long long)(outer-rest*p.extent[d])*p.stride[Tensor][d];\nouter=rest;\n}\nreturn(Type<Tensor> *)p.data[Tensor]+ at;\n}\n\ntemplate<int Tensor>struct Tile{\nVector<Tensor>words[VECTORS];\nType<Tensor>single[VECTORS];\nType<Tensor>elements[PER_THREAD];\n};\n\n\n"
"template<int Mode>__device__ inline int exist(const Place&place,const Walk<Mode> &walk,int step){\nint i=place.extent_i-walk.i-Walk<Mode>::i_of(step),j=place.extent_j-walk.j-Walk<Mode>::j_of(step);\nint left=Walk<Mode>::BY_J?j:i;\nif((Walk<Mode>::BY_J?i:j)<=0)\nreturn 0;\n"
"return left<Walk<Mode>::UNIT?left:Walk<Mode>::UNIT;\n}\n\ntemplate<int Tensor>\n__device__ inline void load_tile(const gemmepi__strided_params&p,const Place&place,Tile<Tensor> &x){\nif constexpr(USED<Tensor>){\ntypedef Walk<MODE<Tensor>>W;\nW walk;\n"
"long long step_i=p.stride[Tensor][0],step_j=p.stride[Tensor][1];\nconst Type<Tensor> *from=tile_of<Tensor>(p,place)+ walk.i*step_i+walk.j*step_j;\n#pragma unroll\nfor(int step=0;step<W::STEPS;step++){\nconst Type<Tensor> *at=from +(W::i_of(step)*step_i+W::j_of(step)*step_j);\n"
"int valid=exist(place,walk,step);\nif constexpr(W::UNIT==1){\nx.elements[step]=Type<Tensor>();\nif(valid>0)\nx.elements[step]= *at;\n}else if constexpr(MODE<Tensor> ==REPEATED){\nx.single[step]=Type<Tensor>();\nif(valid>0)\nx.single[step]= *at;\n}else{\n"
"x.words[step]=load_vector<Tensor>(at,valid);\n}\n}\n}\n}\n\n\ntemplate<int Tensor>__device__ inline Vector<Tensor>vector_from_shared(const Type<Tensor> *from){\nif constexpr(!TRANSPOSES){\nreturn*reinterpret_cast<const Vector<Tensor> *>(from);\n}else{\nVector<Tensor>words;\n#pragma unroll\n"
"for(int k=0;k<sizeof words/sizeof words.at[0];k++)\nwords.at[k]=reinterpret_cast<const typename Vector<Tensor>::Word*>(from)[k];\nreturn words;\n}\n}\ntemplate<int Tensor>__device__ inline void vector_to_shared(Type<Tensor> *to,const Vector<Tensor> &words){\nif constexpr(!TRANSPOSES){\n"
"*reinterpret_cast<Vector<Tensor> *>(to)=words;\n}else{\n#pragma unroll\nfor(int k=0;k<sizeof words/sizeof words.at[0];k++)\nreinterpret_cast<typename Vector<Tensor>::Word*>(to)[k]=words.at[k];\n}\n}\n\n\ntemplate<int Tensor>__device__ inline void exchange_input(char*shared,Tile<Tensor> &x){\n"
"if constexpr(IS_EXCHANGED<Tensor>){\ntypedef Walk<MODE<Tensor>>W;\ntypedef Walk<ALONG_VECTORS>V;\nconstexpr int pitch=PITCH<Type<Tensor>>;\nW walk;\nV vectors;\nType<Tensor> *tile=(Type<Tensor> *)shared;\n__syncthreads();\n#pragma unroll\nfor(int step=0;step<W::STEPS;step++){\n"
"Type<Tensor> *to=tile +(walk.j*pitch+walk.i)+(W::j_of(step)*pitch+W::i_of(step));\nif constexpr(W::UNIT==1){\n*to=x.elements[step];\n}else{\nRun<Type<Tensor>,VECTOR>run=run_of(x.words[step]);\n#pragma unroll\nfor(int k=0;k<VECTOR;k++)\nto[k*pitch]=run.at[k];\n}\n}\n__syncthreads();\n"
"#pragma unroll\nfor(int v=0;v<VECTORS;v++)\nx.words[v]=vector_from_shared<Tensor>(tile +(vectors.j*pitch+vectors.i)+(V::j_of(v)*pitch+V::i_of(v)));\n}\n}\n\ntemplate<int Tensor>\n__device__ inline void take_tile(const Tile<Tensor> &x,int v,Acc(&values)[TENSORS][VECTOR]){\n"
"if constexpr(USED<Tensor> &&MODE<Tensor> ==REPEATED)\nrepeat_value<Tensor>(x.single[v],values);\nelse if constexpr(USED<Tensor>)\n",
"to_values<Tensor>(x.words[v],values);\n}\n\ntemplate<int Tensor>\n__device__ inline void keep_tile(Tile<Tensor> &y,int v,const Acc(&values)[TENSORS][VECTOR]){\nif constexpr(USED<Tensor>)\ny.words[v]=from_values<Tensor>(values);\n}\n\ntemplate<int Tensor>\n"
"__device__ inline void store_tile(const gemmepi__strided_params&p,const Place&place,char*shared,const Tile<Tensor> &y){\nif constexpr(USED<Tensor>){\ntypedef Walk<MODE<Tensor>>W;\ntypedef Walk<ALONG_VECTORS>V;\nconstexpr int pitch=PITCH<Type<Tensor>>;\nW walk;\nV vectors;\n"
"long long step_i=p.stride[Tensor][0],step_j=p.stride[Tensor][1];\nType<Tensor> *tile=(Type<Tensor> *)shared,*to=tile_of<Tensor>(p,place)+ walk.i*step_i+walk.j*step_j;\nif constexpr(IS_EXCHANGED<Tensor>){\n__syncthreads();\n#pragma unroll\nfor(int v=0;v<VECTORS;v++)\n"
"vector_to_shared<Tensor>(tile +(vectors.j*pitch+vectors.i)+(V::j_of(v)*pitch+V::i_of(v)),y.words[v]);\n__syncthreads();\n}\n#pragma unroll\nfor(int step=0;step<W::STEPS;step++){\nconst Type<Tensor> *from=tile +(walk.j*pitch+walk.i)+(W::j_of(step)*pitch+W::i_of(step));\n"
"Type<Tensor> *at=to +(W::i_of(step)*step_i+W::j_of(step)*step_j);\nint valid=exist(place,walk,step);\nif constexpr(MODE<Tensor> ==ALONG_VECTORS){\nstore_vector<Tensor>(at,valid,y.words[step]);\n}else if constexpr(W::UNIT==1){\nif(valid>0)\n*at= *from;\n}else{\nRun<Type<Tensor>,VECTOR>run;\n"
"#pragma unroll\nfor(int k=0;k<VECTOR;k++)\nrun.at[k]=from[k*pitch];\nstore_vector<Tensor>(at,valid,words_of(run));\n}\n}\n}\n}\n\n\nextern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_strided(GEMMEPI_PARAMS gemmepi__strided_params p){\n__shared__ alignas(16)char shared[SHARED_BYTES];\n"
"u32 rest=blockIdx.x/p.tiles_i;\nPlace place;\nplace.i=(long long)(blockIdx.x-rest*p.tiles_i)*TILE_I;\nplace.outer=rest/p.tiles_j;\nplace.j=(long long)(rest-place.outer*p.tiles_j)*TILE_J;\nplace.extent_i=p.extent_i-place.i<TILE_I?(int)(p.extent_i-place.i):TILE_I;\n"
"place.extent_j=p.extent_j-place.j<TILE_J?(int)(p.extent_j-place.j):TILE_J;\nScalars s=scalars_of(p.operation);\nMagnitude largest=0;\nTile<IN_A>a;\nTile<IN_B>b;\nTile<IN_W>w;\nTile<IN_DY>dy;\nTile<OUT_Y>y;\nTile<OUT_DA>da;\nTile<OUT_DB>db;\nTile<OUT_DW>dw;\nload_tile(p,place,a);\n"
"load_tile(p,place,b);\nload_tile(p,place,w);\nload_tile(p,place,dy);\nexchange_input(shared,a);\nexchange_input(shared,b);\nexchange_input(shared,w);\nexchange_input(shared,dy);\n#pragma unroll\nfor(int v=0;v<VECTORS;v++){\nAcc values[TENSORS][VECTOR];\ntake_tile(a,v,values);\n"
"take_tile(b,v,values);\ntake_tile(w,v,values);\ntake_tile(dy,v,values);\noperate_on(values,s,largest);\nkeep_tile(y,v,values);\nkeep_tile(da,v,values);\nkeep_tile(db,v,values);\nkeep_tile(dw,v,values);\n}\nstore_tile(p,place,shared,y);\nstore_tile(p,place,shared,da);\n"
"store_tile(p,place,shared,db);\nstore_tile(p,place,shared,dw);\nif(CAST_AMAX)\nstore_largest_of_block<THREADS>(p.operation.amax,largest);\n}\n\n#endif\n",
 NULL};
#endif

static const char *const gemmepi__source_epilogue_cuh[] = {
"#line 1 \"src/kernels/epilogue.cuh\"\n#line 13\n#pragma once\n#include \"epilogue_column_sums.cuh\"\n#include \"epilogue_formula.cuh\"\n#include \"epilogue_fragment.cuh\"\n#include \"epilogue_mask.cuh\"\n#include \"epilogue_staging.cuh\"\n\n"
"__device__ inline Acc scalar(const double*on_device,double given){\nreturn from_acc<Acc>(on_device? *on_device:given);\n}\n\ntemplate<bool Exists>__device__ inline Acc tensor_scale(const gemmepi__kernel_scale&scale,long long item){\nif constexpr(Exists)\n"
"return(Acc)scale.data[item*scale.stride];\nelse\nreturn 1;\n}\n\n__device__ inline bool takes_c(const gemmepi__epilogue_params&p,const Epilogue_state&state){\nreturn!GEMMEPI_APPLIED&&p.uses_c&&state.beta!=0;\n}\n\n"
"__device__ inline Epilogue_state begin_epilogue(const gemmepi__epilogue_params&p,long long item,long long column,\nint valid){\nEpilogue_state state={};\nstate.alpha=GEMMEPI_APPLIED?Acc(1):scalar(p.device_alpha,p.alpha);\nstate.beta=GEMMEPI_APPLIED?Acc(0):scalar(p.device_beta,p.beta);\n"
"if(GEMMEPI_SCALE_A==SCALE_TENSOR)\nstate.alpha=product(state.alpha,tensor_scale<true>(p.scale_a,item));\nif(GEMMEPI_SCALE_B==SCALE_TENSOR)\nstate.alpha=product(state.alpha,tensor_scale<true>(p.scale_b,item));\nif(GEMMEPI_SCALE_B==SCALE_OUTER){\n#pragma unroll\n"
"for(int half=0;half<HALVES_IN;half++){\nconst float*scale=p.scale_b.data+item*p.scale_b.stride+column+half*p.n;\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nstate.column_factors[half][i]=i<valid?product(state.alpha,(Acc)scale[i]):Acc(0);\n}\n}\n"
"state.scale_c=takes_c(p,state)?tensor_scale<SCALES_C>(p.scale_c,item):Acc(1);\nstate.scale_d=tensor_scale<SCALES_D>(p.scale_d,item);\nstate.scale_aux=tensor_scale<SCALES_AUX>(p.scale_aux,item);\nstate.scale_residual=tensor_scale<SCALES_RESIDUAL>(p.scale_residual,item);\nreturn state;\n}\n\n"
"__device__ inline void load_saved(const gemmepi__epilogue_params&p,const Epilogue_state&state,long long item,\nlong long row,long long column,int valid,Saved&saved){\nif(!BACKWARD||(!SPREAD&&valid==0))\nreturn;\nif constexpr(LOADS_MASK){\nsaved.mask=state.loaded_mask>>2*lane_of_row();\n"
"}else if constexpr(AUX_IS_MASK&&SPREAD){\nsaved.mask=load_spread_mask(p,item,row,column,valid);\n}else if constexpr(AUX_IS_MASK){\nsaved.mask=((const u8*)p.aux.data)[offset(p.aux,item,row,column)/8];\n}else{\n#pragma unroll\nfor(int half=0;half<HALVES_SAVED;half++){\nif constexpr(LOADS_AUX)\n"
"saved.runs[half]=unstage_run<GEMMEPI_AUX_TYPE>(state.loaded_aux[half]);\nelse\nsaved.runs[half]=read(\n(const GEMMEPI_AUX_TYPE*)p.aux.data+offset(p.aux,item,row,column+half*p.n),valid);\n}\n}\n}\n\n\n"
"__device__ inline void finish_product(const gemmepi__epilogue_params&p,Epilogue_state&state,const Of_columns&of,\nint half,long long item,long long row,long long column,int valid,\nAcc(&v)[RUN]){\nAcc other[RUN];\nAcc row_factor=GEMMEPI_SCALE_B==SCALE_OUTER?Acc(1):state.alpha;\n"
"if(GEMMEPI_SCALE_A==SCALE_OUTER)\nrow_factor=product(row_factor,(Acc)p.scale_a.data[item*p.scale_a.stride+row]);\nmultiply_by_factors(row_factor,state.column_factors[half],v);\nif(takes_c(p,state)){\nload<GEMMEPI_C_TYPE>(p.c,item,row,column,valid,other);\n"
"add_product(SCALES_C?product(state.beta,state.scale_c):state.beta,other,v);\n}\nif(HAS_BIAS&& !BIAS_FIRST){\nto_accs(of.bias[half],other);\nadd_bias(half,other,v);\n}\nif(AMAX_AUX)\nkeep_largest_of_run(v,valid,state.largest_aux);\nif(WRITES_AUX){\nif(KEEPS_MASK)\nkeep_mask(state,v);\n"
"else if(AUX_IS_MASK)\nstore_mask(p.aux,item,row,column,valid,v);\nelse if(SCALES_AUX)\nstore_scaled<GEMMEPI_AUX_TYPE,STAGES_AUX>(p.aux,state.staged_aux[half],state.scale_aux,item,row,column,\nvalid,v);\nelse\n"
"store<GEMMEPI_AUX_TYPE,STAGES_AUX>(p.aux,state.staged_aux[half],item,row,column,valid,v);\n}\n}\n\n\ntemplate<bool IsNear>\n__device__ inline void apply_derivative(const gemmepi__epilogue_params&p,const Epilogue_state&state,const Saved&saved,\nAcc(&v)[HALVES][RUN]){\nif constexpr(AUX_IS_MASK){\n"
"#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[0][i]=saved.mask>>place(i)&1?v[0][i]:Acc(0);\n",
"}else if constexpr(!SAME<Acc,I32>){\nAcc aside[HALVES_SAVED][RUN];\n#pragma unroll\nfor(int half=0;half<HALVES_SAVED;half++){\nto_accs(saved.runs[half],aside[half]);\n#pragma unroll\nfor(int i=0;SCALES_AUX&&i<RUN;i++)\naside[half][i]*=state.scale_aux;\n}\nif constexpr(GATED){\n"
"const Acc*dy=UPSTREAM?aside[0]:v[0];\nconst Acc(*pair)[RUN]=UPSTREAM?v:aside;\n#pragma unroll\nfor(int i=0;i<RUN;i +=TOGETHER){\nAcc upstream[TOGETHER],value[TOGETHER],gate[TOGETHER],of_gate[TOGETHER];\nmemcpy(upstream,dy+i,sizeof upstream);\nmemcpy(value,pair[VALUE]+ i,sizeof value);\n"
"memcpy(gate,pair[GATE]+ i,sizeof gate);\ngate_gradients<ACTIVATION>(upstream,value,gate,(Acc)p.parameter,of_gate);\n#pragma unroll\nfor(int j=0;j<TOGETHER;j++)\nv[VALUE][i+j]=times_activation<ACTIVATION>(upstream[j],gate[j],(Acc)p.parameter);\nmemcpy(v[GATE]+ i,of_gate,sizeof of_gate);\n}\n"
"}else{\ndifferentiate<IsNear>((Acc)p.parameter,aside,v);\n}\n}\n}\n\n\ntemplate<bool IsNear=false>\n__device__ inline void epilogue(const gemmepi__epilogue_params&p,Epilogue_state&state,const Of_columns&of,\nconst Saved&saved,long long item,long long row,long long column,int valid,\n"
"Acc(&v)[HALVES][RUN]){\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\nfinish_product(p,state,of,half,item,row,column+half*p.n,valid,v[half]);\nif constexpr(BACKWARD){\napply_derivative<IsNear>(p,state,saved,v);\n}else if constexpr(GATED){\nmultiply_halves((Acc)p.parameter,v);\n}else{\n"
"#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[0][i]=activate_finished((Acc)p.parameter,v[0][i]);\n}\nif(HAS_RESIDUAL)\n#pragma unroll\nfor(int half=0;half<HALVES_OUT;half++){\nAcc other[RUN];\nif constexpr(LOADS_RESIDUAL)\n"
"to_accs(unstage_run<GEMMEPI_RESIDUAL_TYPE>(state.loaded_residual[half]),other);\nelse\nload<GEMMEPI_RESIDUAL_TYPE>(p.residual,item,row,column+half*p.n,valid,other);\nadd_residual(state.scale_residual,other,v[half]);\n}\n}\n\n\n"
"__device__ inline void store_result(const gemmepi__epilogue_params&p,Epilogue_state&state,long long item,\nlong long row,long long column,int valid,const Acc(&v)[HALVES][RUN]){\n#pragma unroll\nfor(int half=0;half<HALVES_OUT;half++){\nif(AMAX_D)\n"
"keep_largest_of_run(v[half],valid,state.largest_d);\nif(!GEMMEPI_STORES_D)\ncontinue;\nif(SCALES_D)\nstore_scaled<GEMMEPI_D_TYPE,STAGES_D>(p.d,state.staged_d[half],state.scale_d,item,row,column+half*p.n,valid,\nv[half]);\nelse\n"
"store<GEMMEPI_D_TYPE,STAGES_D>(p.d,state.staged_d[half],item,row,column+half*p.n,valid,v[half]);\n}\n}\n\n\n__device__ inline void end_epilogue(const gemmepi__epilogue_params&p,const Epilogue_state&state){\nif(AMAX_D)\nstore_largest(p.amax_d,state.largest_d);\nif(AMAX_AUX)\n"
"store_largest(p.amax_aux,state.largest_aux);\n}\n",
 NULL};

static const char *const gemmepi__source_epilogue_column_sums_cuh[] = {
"#line 1 \"src/kernels/epilogue_column_sums.cuh\"\n\n#pragma once\n#include \"epilogue_formula.cuh\"\n#include \"epilogue_fragment.cuh\"\n\n\n\ntemplate<int Threads>\n__device__ inline void store_partials(const gemmepi__epilogue_params&p,long long part,long long column,int valid,\n"
"u32 x,u32 y,u32 width,const Acc(&sums)[HALVES_OUT][RUN]){\n__shared__ Acc shared[HALVES_OUT*RUN][Threads];\nu32 thread=y*width+x;\n#pragma unroll\nfor(int i=0;i<HALVES_OUT*RUN;i++)\nshared[i][thread]=sums[i/RUN][i%RUN];\nfor(u32 half=Threads/width/2;half>0;half/=2){\n__syncthreads();\n"
"if(y<half)\n#pragma unroll\nfor(int i=0;i<HALVES_OUT*RUN;i++)\nshared[i][thread]=sum(shared[i][thread],shared[i][thread+half*width]);\n}\nif(y==0)\nfor(int half=0;half<HALVES_OUT;half++)\nfor(int i=0;i<valid;i++)\n"
"((Acc*)p.partials)[(part*HALVES_OUT+half)*p.n+column+i]=shared[half*RUN+i][thread];\n}\n\n\n\n__device__ inline Acc sum_of_rows(const Acc(&of_run)[RUN]){\nstatic_assert(!SPREAD||RUN==8,\"a sum for each lane\");\nAcc left[RUN];\n#pragma unroll\nfor(int j=0;j<RUN;j++)\nleft[j]=of_run[j];\n"
"#pragma unroll\nfor(int count=RUN/2;count>0;count/=2)\n#pragma unroll\nfor(int j=0;j<count;j++){\nbool upper=threadIdx.x&(u32)count*OF_ROWS;\nAcc sent=upper?left[j]:left[j+count],kept=upper?left[j+count]:left[j];\nleft[j]=kept+__shfl_xor_sync(0xffffffffu,sent,count*OF_ROWS);\n}\nreturn left[0];\n"
"}\n\n\n\ntemplate<bool AtOnce>struct Column_sums{\nAcc of_lane[HALVES_OUT][RUN],of_lanes[HALVES_OUT];\n\n__device__ inline Column_sums():of_lanes{}{\nbegin_rows();\n}\n__device__ inline void begin_rows(){\n#pragma unroll\nfor(int i=0;i<HALVES_OUT*RUN;i++)\nof_lane[i/RUN][i%RUN]=Acc(-0.0);\n"
"}\n\n\n__device__ inline void add(const Acc(&v)[HALVES][RUN],bool exists){\nif(exists)\n#pragma unroll\nfor(int i=0;i<HALVES_OUT*RUN;i++)\nof_lane[i/RUN][i%RUN]+=v[i/RUN][i%RUN];\n}\n\n\n__device__ inline void end_rows(){\nif constexpr(AtOnce){\n#pragma unroll\n"
"for(int half=0;half<HALVES_OUT;half++)\nof_lanes[half]+=sum_of_rows(of_lane[half]);\nbegin_rows();\n}\n}\n\n\n__device__ static inline int column(){\nreturn lane_of_row()*2+place(row_of_lane());\n}\n__device__ inline Acc sum(int half)const{\n"
"return AtOnce?of_lanes[half]:sum_of_rows(of_lane[half]);\n}\n\n\n__device__ inline void store(const gemmepi__epilogue_params&p,long long line,int first)const{\n#pragma unroll\nfor(int half=0;half<HALVES_OUT;half++){\nAcc of_column=sum(half);\nif(first+column()<(int)p.n)\n"
"((Acc*)p.partials)[(line*HALVES_OUT+half)*p.n+first+column()]=of_column;\n}\n}\n};\n",
 NULL};

static const char *const gemmepi__source_epilogue_formula_cuh[] = {
"#line 1 \"src/kernels/epilogue_formula.cuh\"\n\n#pragma once\n#include \"epilogue_parameters.cuh\"\n\n\n\n__device__ inline int product(int x,int y){\nreturn(int)((u32)x*(u32)y);\n}\n__device__ inline int sum(int x,int y){\nreturn(int)((u32)x +(u32)y);\n}\n"
"template<class A>__device__ inline A product(A x,A y){\nreturn x*y;\n}\ntemplate<class A>__device__ inline A sum(A x,A y){\nreturn x+y;\n}\n\n\n__device__ inline void multiply_by_factors(Acc row_factor,const Acc(&column_factors)[RUN],Acc(&v)[RUN]){\n"
"constexpr bool by_column=GEMMEPI_SCALE_B==SCALE_OUTER;\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[i]=product(v[i],!by_column                       ?row_factor\n:GEMMEPI_SCALE_A==SCALE_OUTER?product(row_factor,column_factors[i])\n:column_factors[i]);\n}\n\n"
"__device__ inline void add_product(Acc factor,const Acc(&c)[RUN],Acc(&v)[RUN]){\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[i]=sum(v[i],product(factor,c[i]));\n}\n\n\nconstexpr bool SCALES_SUM=\n"
"HAS_BIAS&& !BIAS_FIRST&& !BACKWARD&& !WRITES_AUX&& !AMAX_AUX&&SAME<Acc,F32> &&SUM_SCALE<ACTIVATION> !=0;\n\n\n__device__ inline void add_bias(int half,const Acc(&bias)[RUN],Acc(&v)[RUN]){\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nif constexpr(SCALES_SUM)\n"
"v[i]=half==GATE%HALVES?fmaf(v[i],SUM_SCALE<ACTIVATION>,bias[i]*SUM_SCALE<ACTIVATION>)\n:v[i]+ bias[i];\nelse\nv[i]=sum(v[i],bias[i]);\n}\n\n\n__device__ inline Acc activate_finished(Acc parameter,Acc v){\nif constexpr(SCALES_SUM)\nreturn activate_scaled_sum<ACTIVATION>(v);\nelse\n"
"return activate_sum<ACTIVATION,GATED>(v,parameter);\n}\n\n\n__device__ inline void multiply_halves(Acc parameter,Acc(&v)[HALVES][RUN]){\n#pragma unroll\nfor(int i=0;i<RUN;i++){\nif constexpr(SAME<Acc,I32>)\nv[0][i]=product(v[VALUE%HALVES][i],activate<ACTIVATION>(v[GATE%HALVES][i],Acc(0)));\n"
"else if constexpr(GATES_BY_SUMS<ACTIVATION>)\nv[0][i]=v[VALUE%HALVES][i]*activate_finished(parameter,v[GATE%HALVES][i]);\nelse\nv[0][i]=times_activation<ACTIVATION>(v[VALUE%HALVES][i],v[GATE%HALVES][i],parameter);\n}\n}\n\n\n"
"constexpr int TOGETHER= !SPREAD?1:GEMMEPI_APPLIED&& !HAS_RESIDUAL?RUN:4;\n\n\ntemplate<bool IsNear>\n__device__ inline void differentiate(Acc parameter,const Acc(&saved)[HALVES_SAVED][RUN],Acc(&v)[HALVES][RUN]){\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nif constexpr(IsNear)\n"
"v[0][i]*=near_derivative<ACTIVATION>(saved[0][i]);\nelse\nv[0][i]=UPSTREAM?times_derivative<ACTIVATION>(saved[0][i],v[0][i],parameter)\n:times_derivative<ACTIVATION>(v[0][i],saved[0][i],parameter);\n}\n\n__device__ inline void add_residual(Acc scale,const Acc(&residual)[RUN],Acc(&v)[RUN]){\n"
"#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[i]=sum(v[i],SCALES_RESIDUAL?product(residual[i],scale):residual[i]);\n}\n",
 NULL};

static const char *const gemmepi__source_epilogue_fragment_cuh[] = {
"#line 1 \"src/kernels/epilogue_fragment.cuh\"\n\n#pragma once\n#include \"epilogue_parameters.cuh\"\n\n__device__ inline long long offset(const gemmepi__kernel_matrix&x,long long item,long long row,long long column){\nreturn item*x.stride+row*x.ld+column;\n}\n\n\n"
"__device__ constexpr int place(int i){\nreturn SPREAD?i/2*8+i%2:i;\n}\n\nconstexpr int IN_ROW=APART?16:2,OF_ROWS=APART?2:4;\n__device__ inline int lane_of_row(){\nreturn APART?(int)(threadIdx.x%2+threadIdx.x%32/IN_ROW*2):(int)(threadIdx.x%4);\n}\n__device__ inline int row_of_lane(){\n"
"return(int)(threadIdx.x%32/OF_ROWS%8);\n}\n\n\ntemplate<class T>struct Read{\nWords<T,SPREAD?2:RUN>at[SPREAD?RUN/2:1];\n};\ntemplate<class T>__device__ inline Read<T>read(const T*from,int valid){\nRead<T>read={};\nif constexpr(SPREAD){\n#pragma unroll\nfor(int i=0;i<RUN;i +=2)\n"
"if(ALIGNED&&valid>place(i+1))\nread.at[i/2]= *reinterpret_cast<const Words<T,2> *>(from+place(i));\nelse if(!(ALIGNED&&WHOLE))\nread.at[i/2]=words_of(read_elements<2>(from+place(i),valid-place(i)));\n}else{\nread.at[0]=read_run<ALIGNED>(from,valid);\n}\nreturn read;\n}\n"
"template<class T>__device__ inline void to_accs(const Read<T> &read,Acc(&values)[RUN]){\nif constexpr(SPREAD){\n#pragma unroll\nfor(int i=0;i<RUN;i +=2){\nAcc two[2];\nwords_to_acc(read.at[i/2],two);\nvalues[i]=two[0];\nvalues[i+1]=two[1];\n}\n}else{\nrun_to_acc(run_of(read.at[0]),values);\n}\n"
"}\n\ntemplate<class T>__device__ inline void store_at(T*to,int valid,const Acc(&values)[RUN]){\nif constexpr(SPREAD){\nRun<T>run=run_from_acc<T>(values);\n#pragma unroll\nfor(int i=0;i<RUN;i +=2){\nRun<T,2>pair={run.at[i],run.at[i+1]};\nif(ALIGNED&&valid>place(i+1)){\n"
"*reinterpret_cast<Words<T,2> *>(to+place(i))=words_of(pair);\n}else{\nif(valid>place(i))\nto[place(i)]=pair.at[0];\nif(valid>place(i+1))\nto[place(i+1)]=pair.at[1];\n}\n}\n}else{\nstore_run<ALIGNED>(to,valid,values);\n}\n}\n\ntemplate<class T>\n"
"__device__ inline void load(const gemmepi__kernel_matrix&x,long long item,long long row,long long column,int valid,\nAcc(&values)[RUN]){\nto_accs(read((const T*)x.data+offset(x,item,row,column),valid),values);\n}\n\n\n"
"__device__ inline void keep_largest_of_run(const Acc(&v)[RUN],int valid,Magnitude&largest){\nAcc existing[RUN];\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nexisting[i]=place(i)<valid?v[i]:Acc(0);\nkeep_largest(existing,RUN,largest);\n}\n\n\n\nstruct Saved{\n"
"Read<GEMMEPI_AUX_TYPE>runs[HALVES_SAVED];\nu32 mask;\n};\n\n\nconstexpr bool LOOKS_NEAR=\nLOADS_AUX&&sizeof(GEMMEPI_AUX_TYPE)==2&&HAS_NEAR_DERIVATIVE<ACTIVATION> &&SAME<Acc,F32> && !GATED&& !UPSTREAM&& !HAS_RESIDUAL&& !SCALES_AUX;\n\ntemplate<class T>__device__ inline u32 pair_of(float x){\n"
"u32 bits=__float_as_uint(x),of_f16=(bits>>16&0x8000)|(((bits&0x7fffffff)>>13)-(112<<10));\nreturn(SAME<T,BF16> ?bits>>16:of_f16)*0x10001u;\n}\n\n\nconstexpr bool NEAR_ENDS=HAS_NEAR_END<ACTIVATION> &&SAME<GEMMEPI_AUX_TYPE,BF16>;\nstruct Near{\n"
"u32 low=pair_of<GEMMEPI_AUX_TYPE>(NEAR<ACTIVATION>),high=pair_of<GEMMEPI_AUX_TYPE>(NEAR_END);\n\n__device__ inline void take_in(const Read<GEMMEPI_AUX_TYPE> &read){\nu32 words[4];\nmemcpy(words,&read,sizeof words);\n#pragma unroll\nfor(int i=0;i<4;i +=2){\n"
"asm(\"{\\n.reg .b32 most;\\nmax.u16x2 most, %0, %1;\\nmax.u16x2 %0, most, %2;\\n}\"\n: \"+r\"(low)\n: \"r\"(words[i]),\"r\"(words[i+1]));\nif(NEAR_ENDS)\nasm(\"{\\n.reg .b32 most;\\nmax.s16x2 most, %0, %1;\\nmax.s16x2 %0, most, %2;\\n}\"\n: \"+r\"(high)\n: \"r\"(words[i]),\"r\"(words[i+1]));\n}\n"
"}\n__device__ inline bool has_all()const{\nNear none;\nreturn low==none.low&&high==none.high;\n}\n};\n\n\nstruct Of_columns{\nRead<GEMMEPI_BIAS_TYPE>bias[HALVES_IN];\n};\n__device__ inline Of_columns load_columns(const gemmepi__epilogue_params&p,long long item,long long column,int valid){\n"
"Of_columns of;\nif(HAS_BIAS)\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\nof.bias[half]=\nread((const GEMMEPI_BIAS_TYPE*)p.bias.data+offset(p.bias,item,0,column+half*p.n),valid);\nreturn of;\n}\n",
 NULL};

static const char *const gemmepi__source_epilogue_mask_cuh[] = {
"#line 1 \"src/kernels/epilogue_mask.cuh\"\n\n#pragma once\n#include \"epilogue_fragment.cuh\"\n\n\n\n__device__ inline void store_mask_byte(u8*byte,u32 bits,int valid){\nu32 mine=(1u<<valid)- 1;\n*byte=valid==RUN?(u8)bits:(u8)((*byte& ~mine)|(bits&mine));\n}\n"
"__device__ inline u32 mask_of_run(const Acc(&v)[RUN]){\nu32 bits=0;\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nbits|=(u32)(v[i]>0)<<place(i);\nreturn bits;\n}\n\n__device__ inline u32 mask_of_row(const Acc(&v)[RUN]){\nu32 bits=mask_of_run(v)<<2*lane_of_row();\n"
"bits|=__shfl_xor_sync(0xffffffffu,bits,1);\nreturn bits|__shfl_xor_sync(0xffffffffu,bits,IN_ROW);\n}\n__device__ inline void store_mask(const gemmepi__kernel_matrix&x,long long item,long long row,long long column,\nint valid,const Acc(&v)[RUN]){\nu32 bits;\nif(SPREAD){\nint lane=lane_of_row();\n"
"bits=mask_of_row(v)>>8*lane&0xff;\ncolumn +=6*lane;\nvalid=existing(valid-6*lane);\nif(valid<=0)\nreturn;\n}else{\nbits=mask_of_run(v);\n}\nstore_mask_byte((u8*)x.data+offset(x,item,row,column)/8,bits,valid);\n}\n\n\n"
"__device__ inline u32 load_spread_mask(const gemmepi__epilogue_params&p,long long item,long long row,long long column,\nint valid){\nint lane=lane_of_row();\nu32 byte=0;\nif(valid>6*lane)\nbyte=((const u8*)p.aux.data)[offset(p.aux,item,row,column+6*lane)/8];\nu32 bits=byte<<8*lane;\n"
"bits|=__shfl_xor_sync(0xffffffffu,bits,1);\nbits|=__shfl_xor_sync(0xffffffffu,bits,IN_ROW);\nreturn bits>>2*lane;\n}\n\n\n__device__ inline void keep_mask(Epilogue_state&state,const Acc(&v)[RUN]){\nu32 bits=mask_of_row(v);\nif(lane_of_row()==state.mask_place)\nstate.kept_mask=bits;\n}\n\n"
"__device__ inline void store_kept_masks(const gemmepi__epilogue_params&p,const Epilogue_state&state,long long item,\nint row,int column,int groups){\nint group=lane_of_row()/2;\nrow +=lane_of_row()%2*8+row_of_lane();\ncolumn +=group*32;\nif(group>=groups||row>=(int)p.m)\nreturn;\n"
"u8*bytes=(u8*)p.aux.data+offset(p.aux,item,row,column)/8;\nif(column+32<=(int)p.n)\n*reinterpret_cast<u32*>(bytes)=state.kept_mask;\nelse\nfor(int i=0;column+i*RUN<(int)p.n;i++)\nstore_mask_byte(bytes+i,state.kept_mask>>i*RUN&0xff,existing((int)p.n-column-i*RUN));\n}\n",
 NULL};

static const char *const gemmepi__source_epilogue_parameters_cuh[] = {
"#line 1 \"src/kernels/epilogue_parameters.cuh\"\n\n#pragma once\n#include \"types.cuh\"\n#include \"activation.cuh\"\n#include \"amax.cuh\"\n#include \"params.h\"\n\n\n#ifndef GEMMEPI_EPILOGUE\n#define GEMMEPI_EPILOGUE 0\n#define GEMMEPI_ACC F32\n#define GEMMEPI_C_TYPE F32\n"
"#define GEMMEPI_D_TYPE F32\n#define GEMMEPI_BIAS_TYPE F32\n#define GEMMEPI_AUX_TYPE F32\n#define GEMMEPI_RESIDUAL_TYPE F32\n#define GEMMEPI_ALIGNED 0\n#define GEMMEPI_SCALE_A 0\n#define GEMMEPI_SCALE_B 0\n#define GEMMEPI_SCALES 0\n#define GEMMEPI_AMAX 0\n#define GEMMEPI_STORES_D 1\n#endif\n"
"#ifndef GEMMEPI_APPLIED\n#define GEMMEPI_APPLIED 0\n#endif\n#ifndef GEMMEPI_WHOLE\n#define GEMMEPI_WHOLE 0\n#endif\n#ifndef GEMMEPI_SPREAD\n#define GEMMEPI_SPREAD 0\n#endif\n#ifndef GEMMEPI_APART\n#define GEMMEPI_APART 0\n#endif\n#ifndef GEMMEPI_BIAS_FIRST\n#define GEMMEPI_BIAS_FIRST 0\n#endif\n"
"#ifndef GEMMEPI_LOADED\n#define GEMMEPI_LOADED 0\n#endif\n#ifndef GEMMEPI_MASK_WORDS\n#define GEMMEPI_MASK_WORDS 0\n#endif\n#ifndef GEMMEPI_STAGES_WORDS\n#define GEMMEPI_STAGES_WORDS 0\n#endif\n#ifndef GEMMEPI_STAGED\n#define GEMMEPI_STAGED 0\n#endif\n#ifndef GEMMEPI_COPIED\n"
"#define GEMMEPI_COPIED 0\n#endif\n\ntypedef GEMMEPI_ACC Acc;\n\nconstexpr bool HAS_BIAS=(GEMMEPI_EPILOGUE&FLAG_BIAS)!=0,BIAS_FIRST=HAS_BIAS&&GEMMEPI_BIAS_FIRST;\nconstexpr bool WRITES_AUX=(GEMMEPI_EPILOGUE&FLAG_AUX)!=0;\nconstexpr bool BACKWARD=(GEMMEPI_EPILOGUE&FLAG_BACKWARD)!=0;\n"
"constexpr bool HAS_RESIDUAL=(GEMMEPI_EPILOGUE&FLAG_RESIDUAL)!=0;\nconstexpr bool HAS_BGRAD=(GEMMEPI_EPILOGUE&FLAG_BGRAD)!=0;\nconstexpr bool GATED=(GEMMEPI_EPILOGUE&FLAG_GATED)!=0;\nconstexpr bool GATE_FIRST=(GEMMEPI_EPILOGUE&FLAG_GATE_FIRST)!=0;\n"
"constexpr bool UPSTREAM=(GEMMEPI_EPILOGUE&FLAG_UPSTREAM)!=0;\nconstexpr int ACTIVATION=GEMMEPI_EPILOGUE&0xff;\nconstexpr int HALVES=GATED?2:1,VALUE=GATE_FIRST?1:0,GATE=1-VALUE;\nconstexpr int HALVES_IN=GATED&&(!BACKWARD||UPSTREAM)?2:1;\nconstexpr int HALVES_OUT=GATED&&BACKWARD?2:1;\n"
"constexpr int HALVES_SAVED=GATED&& !UPSTREAM?2:1;\nconstexpr bool AUX_IS_MASK=SAVES_MASK<ACTIVATION> && !GATED&& !UPSTREAM;\nconstexpr bool ALIGNED=GEMMEPI_ALIGNED;\nconstexpr bool WHOLE=GEMMEPI_WHOLE;\nconstexpr bool SPREAD=GEMMEPI_SPREAD,APART=GEMMEPI_APART;\n"
"constexpr bool STAGES_D=(GEMMEPI_STAGED&1)!=0;\nconstexpr bool LOADS_AUX=(GEMMEPI_LOADED&1)!=0&&BACKWARD&& !AUX_IS_MASK;\nconstexpr bool LOADS_MASK=(GEMMEPI_LOADED&4)!=0&&BACKWARD&&AUX_IS_MASK;\nconstexpr bool LOADS_RESIDUAL=(GEMMEPI_LOADED&2)!=0&&HAS_RESIDUAL;\n"
"constexpr bool STAGES_AUX=(GEMMEPI_STAGED&2)!=0&&WRITES_AUX&& !AUX_IS_MASK;\nconstexpr bool COPIES_D=(GEMMEPI_COPIED&1)!=0,COPIES_AUX=(GEMMEPI_COPIED&2)!=0;\nconstexpr bool KEEPS_MASK=SPREAD&&GEMMEPI_MASK_WORDS&&WRITES_AUX&&AUX_IS_MASK;\nconstexpr bool SCALES_C=(GEMMEPI_SCALES&1)!=0;\n"
"constexpr bool SCALES_D=(GEMMEPI_SCALES&2)!=0;\nconstexpr bool SCALES_AUX=(GEMMEPI_SCALES&4)!=0&& !AUX_IS_MASK;\nconstexpr bool SCALES_RESIDUAL=(GEMMEPI_SCALES&8)!=0;\nconstexpr bool AMAX_D=(GEMMEPI_AMAX&1)!=0;\nconstexpr bool AMAX_AUX=(GEMMEPI_AMAX&2)!=0&&WRITES_AUX&& !AUX_IS_MASK;\n\n"
"typedef decltype(magnitude(Acc()))Magnitude;\n\n\nstruct Epilogue_state{\nAcc alpha,beta;\nAcc scale_c,scale_d,scale_aux,scale_residual;\nAcc column_factors[HALVES_IN][RUN];\nMagnitude largest_d,largest_aux;\nu32 staged_d[HALVES_OUT],staged_aux[HALVES_IN];\n"
"u32 loaded_aux[HALVES_SAVED],loaded_residual[HALVES_OUT];\nu32 loaded_mask;\nu32 kept_mask;\nint mask_place;\n};\n",
 NULL};

static const char *const gemmepi__source_epilogue_staging_cuh[] = {
"#line 1 \"src/kernels/epilogue_staging.cuh\"\n\n#pragma once\n#include \"epilogue_formula.cuh\"\n#include \"epilogue_fragment.cuh\"\n\n\n\n\ntemplate<class T>__device__ inline void stage_run(u32 to,const Acc(&values)[RUN]){\n"
"static_assert(sizeof(T)==2||sizeof(T)==4,\"pairs are of one or two words\");\nWords<T>words=words_of(run_from_acc<T>(values));\nif constexpr(sizeof(T)==4){\n#pragma unroll\nfor(int i=0;i<4;i++)\nasm volatile(\"st.shared.v2.b32 [%0], {%1, %2};\" ::\"r\"(to ^(u32)i<<5),\"r\"(words.at[2*i]),\n"
"\"r\"(words.at[2*i+1])\n: \"memory\");\n}else{\n#if GEMMEPI_STAGES_WORDS\n#pragma unroll\nfor(int i=0;i<4;i++)\nasm volatile(\"st.shared.b32 [%0], %1;\" ::\"r\"(to ^(u32)i<<4),\"r\"(words.at[i]): \"memory\");\n#else\n"
"asm volatile(\"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\" ::\"r\"(to),\"r\"(words.at[0]),\n\"r\"(words.at[1]),\"r\"(words.at[2]),\"r\"(words.at[3])\n: \"memory\");\n#endif\n}\n}\n\n\n__device__ inline void store_word_if(bool does,u64 to,u32 bits){\n"
"asm volatile(\"{\\n.reg .pred does;\\nsetp.ne.u32 does, %2, 0;\\n@does st.global.b32 [%0], %1;\\n}\" ::\"l\"(to),\"r\"(bits),\"r\"((u32)does)\n: \"memory\");\n}\n__device__ inline void store_half_if(bool does,u64 to,u32 bits){\n"
"asm volatile(\"{\\n.reg .pred does;\\nsetp.ne.u32 does, %2, 0;\\n@does st.global.b16 [%0], %1;\\n}\" ::\"l\"(to),\"h\"((u16)bits),\n\"r\"((u32)does)\n: \"memory\");\n}\n\n\n\ntemplate<class T,int Columns,bool InWords>\n"
"__device__ inline void copy_box(u32 from,T*to,long long ld,int rows_left,int columns_left){\nconstexpr int per_word=4/sizeof(T),words=InWords?Columns/per_word:Columns/per_word/4;\nconstexpr int at_once=words<32?32/words:1;\nconstexpr int under_way=BACKWARD&&GATED?2:sizeof(T)==4?8:4;\n"
"constexpr int rounds=16/at_once,loaded=rounds<under_way?rounds:under_way;\nint line=(int)threadIdx.x%32/words,word=(int)threadIdx.x%words;\nint left=columns_left<Columns?columns_left:Columns,first=word*(InWords?per_word:4*per_word);\nu64 at=(u64)(to+line*ld),step=(u64)(at_once*ld)*sizeof(T);\n"
"#pragma unroll 1\nfor(int i=0;i<rounds&&i*at_once<rows_left;i +=loaded){\nu32 bits[loaded][InWords?1:4],next[loaded];\n#pragma unroll\nfor(int j=0;j<loaded;j++){\nu32 of_line=from +(line+j*at_once)*128;\nint turn=(line+j*at_once)%8;\nif constexpr(InWords)\n"
"asm volatile(\"ld.shared.b32 %0, [%1];\"\n: \"=r\"(bits[j][0])\n: \"r\"(of_line +((word/4 ^ turn)<<4)+ word%4*4)\n: \"memory\");\nelse\nasm volatile(\"ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\"\n: \"=r\"(bits[j][0]),\"=r\"(bits[j][1]),\"=r\"(bits[j][2]),\"=r\"(bits[j][3])\n"
": \"r\"(of_line +((word ^ turn)<<4))\n: \"memory\");\n}\nif constexpr(InWords&&per_word==2)\n#pragma unroll\nfor(int j=0;j<loaded;j++)\nnext[j]=__shfl_sync(0xffffffffu,bits[j][0],(int)threadIdx.x%32+1);\n#pragma unroll\nfor(int j=0;j<loaded;j++,at +=step){\n"
"int left_here=line+j*at_once<rows_left?left:0;\nif constexpr(!InWords){\nuint4 unit;\nmemcpy(&unit,bits[j],sizeof unit);\nif(first<left_here)\n*reinterpret_cast<uint4*>(at+word*16)=unit;\n}else if constexpr(per_word==1)\nstore_word_if(first<left_here,at+word*4,bits[j][0]);\nelse{\n"
"u32 between=(u32)at>>1&1;\nint left_of_word=left_here-first -(int)between;\nu64 of_word=at+word*4+between*2;\nu32 here=__byte_perm(bits[j][0],next[j],between?0x5432:0x3210);\nstore_half_if(between&&word==0&&left_here>0,at,bits[j][0]);\nstore_word_if(left_of_word>=2,of_word,here);\n"
"store_half_if(left_of_word==1,of_word,here);\n}\n}\nline +=loaded*at_once;\n}\n}\n\n\ntemplate<class T>__device__ inline Read<T>unstage_run(u32 from){\nstatic_assert(sizeof(T)==2||sizeof(T)==4,\"pairs are of one or two words\");\nu32 words[sizeof(T)*2];\nif constexpr(sizeof(T)==4){\n"
"#pragma unroll\nfor(int i=0;i<4;i++)\nasm volatile(\"ld.shared.v2.b32 {%0, %1}, [%2];\"\n: \"=r\"(words[2*i]),\"=r\"(words[2*i+1])\n: \"r\"(from ^(u32)i<<5)\n: \"memory\");\n}else{\nasm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\"\n",
": \"=r\"(words[0]),\"=r\"(words[1]),\"=r\"(words[2]),\"=r\"(words[3])\n: \"r\"(from)\n: \"memory\");\n}\nRead<T>read;\nmemcpy(&read,words,sizeof read);\nreturn read;\n}\n\ntemplate<class T,bool Staged>\n"
"__device__ inline void store(const gemmepi__kernel_matrix&x,u32 staged,long long item,long long row,\nlong long column,int valid,const Acc(&values)[RUN]){\nif constexpr(Staged)\nstage_run<T>(staged,values);\nelse\nstore_at((T*)x.data+offset(x,item,row,column),valid,values);\n}\n\n"
"template<class T,bool Staged>\n__device__ inline void store_scaled(const gemmepi__kernel_matrix&x,u32 staged,Acc scale,long long item,\nlong long row,long long column,int valid,const Acc(&values)[RUN]){\nAcc scaled[RUN];\n#pragma unroll\nfor(int i=0;i<RUN;i++)\n"
"scaled[i]=product(values[i],scale);\nstore<T,Staged>(x,staged,item,row,column,valid,scaled);\n}\n",
 NULL};

static const char *const gemmepi__source_gemm_plain_cu[] = {
"#line 1 \"src/kernels/gemm_plain.cu\"\n\n\n\n#include \"epilogue.cuh\"\n\n#ifndef GEMMEPI_A_TYPE\n#define GEMMEPI_A_TYPE F32\n#define GEMMEPI_B_TYPE F32\n#define GEMMEPI_A_TRANSPOSED 0\n#define GEMMEPI_B_TRANSPOSED 0\n#define GEMMEPI_A_ALIGNED 0\n#define GEMMEPI_B_ALIGNED 0\n"
"#define GEMMEPI_COMPUTE_TYPE F32\n#define GEMMEPI_CHUNK 0\n#endif\n\ntypedef GEMMEPI_A_TYPE A;\ntypedef GEMMEPI_B_TYPE B;\ntypedef GEMMEPI_COMPUTE_TYPE Compute;\n\ntemplate<bool Condition,class X,class Y>struct Choice{\ntypedef X type;\n};\ntemplate<class X,class Y>struct Choice<false,X,Y>{\n"
"typedef Y type;\n};\ntemplate<bool Condition,class X,class Y>using Choose=typename Choice<Condition,X,Y>::type;\n\nconstexpr bool TENSOR_CORES=__CUDA_ARCH__>=800&& !SAME<Compute,F32> && !SAME<Compute,F64>;\ntypedef Choose<SAME<Compute,I8>,int,Choose<SAME<Compute,F64>,double,float>>Sum;\n"
"typedef Choose<TENSOR_CORES,Compute,Sum>Staged;\n\nconstexpr int THREADS=128,WARP=32;\nconstexpr int TILE=64;\nconstexpr int GROUP=8;\nconstexpr int GROUPS=TILE/2/GROUP;\nconstexpr int LINE_BYTES=128,LINE_PITCH=144;\nconstexpr int PIECE=16;\nconstexpr int STEP=LINE_BYTES/(int)sizeof(Staged);\n"
"constexpr int RESULT_PITCH=TILE+8;\nconstexpr int OPERAND_BYTES=TILE*LINE_PITCH;\nconstexpr int SHARED_BYTES=TILE*RESULT_PITCH*sizeof(Acc)>4*OPERAND_BYTES?TILE*RESULT_PITCH*sizeof(Acc)\n:4*OPERAND_BYTES;\n\n"
"constexpr bool A_VARIES=GEMMEPI_SCALE_A==SCALE_VECTOR_128||GEMMEPI_SCALE_A==SCALE_BLOCK_128;\nconstexpr bool B_VARIES=GEMMEPI_SCALE_B==SCALE_VECTOR_128||GEMMEPI_SCALE_B==SCALE_BLOCK_128;\nconstexpr bool CHUNKED=GEMMEPI_CHUNK!=0;\nstatic_assert(GEMMEPI_CHUNK%STEP==0,\"a chunk is whole steps\");\n"
"static_assert((!A_VARIES&& !B_VARIES)||GEMMEPI_CHUNK==SCALE_STEPS,\"scales vary from chunk to chunk\");\n\n\nconstexpr bool SPLIT_TOTALS=CHUNKED&&SAME<Sum,int> && !A_VARIES&& !B_VARIES;\ntypedef Choose<SPLIT_TOTALS,int,Acc>Total;\n\n\n\n\n__device__ constexpr int place(int outer,int byte){\n"
"return outer*LINE_PITCH +((byte/PIECE ^ outer/GROUP%4)*PIECE|byte%PIECE);\n}\n\n\n\n\nconstexpr int SINGLE_BYTES=(sizeof(A)==1&& !GEMMEPI_A_ALIGNED)+(sizeof(B)==1&& !GEMMEPI_B_ALIGNED);\nconstexpr bool FETCHES_AHEAD=SINGLE_BYTES*TILE*STEP/THREADS<64;\n\n\n"
"template<class T,bool Transposed,bool Aligned>struct Operand{\nstatic constexpr int PACKED=Transposed&&sizeof(Staged)<4?4/(int)sizeof(Staged):1;\nstatic constexpr int LINE_RUNS=(Transposed?TILE:STEP)/RUN;\nstatic constexpr int LINES=THREADS/LINE_RUNS;\n"
"static constexpr int UNITS=TILE*STEP/RUN/THREADS/PACKED;\n\nWords<T>runs[UNITS][PACKED];\nconst T*from;\nlong long ld;\nint line,run;\n\n__device__ Operand(const gemmepi__kernel_matrix&x,long long item,long long outer){\nld=x.ld;\nline=(int)threadIdx.x/LINE_RUNS*PACKED;\n"
"run=(int)threadIdx.x%LINE_RUNS*RUN;\nfrom=(const T*)x.data+item*x.stride+line*ld+run +(Transposed?outer:outer*ld);\n}\n\n\n__device__ void fetch(int outer_left,int k_left){\nint lines_left=(Transposed?k_left:outer_left)- line;\nint run_left=(Transposed?outer_left:k_left)- run;\n"
"int valid=existing(run_left);\nif(Aligned&&valid==RUN&&lines_left>((UNITS-1)*LINES+1)*PACKED-1)\nfetch_runs<true>(lines_left,valid);\nelse\nfetch_runs<false>(lines_left,valid);\nfrom +=Transposed?STEP*ld:STEP;\n}\n\n\ntemplate<bool Whole>__device__ void fetch_runs(int lines_left,int valid){\n"
"#pragma unroll\nfor(int unit=0;unit<UNITS;unit++)\n#pragma unroll\nfor(int i=0;i<PACKED;i++){\nint next=unit*LINES*PACKED+i;\nruns[unit][i]=read_run<Aligned>(from+next*ld,Whole?RUN:next<lines_left?valid:0);\n}\n}\n\n__device__ void put(u8*shared)const{\n#pragma unroll\n"
"for(int unit=0;unit<UNITS;unit++){\nint at=line+unit*LINES*PACKED;\nWords<Staged>staged[PACKED];\n#pragma unroll\nfor(int i=0;i<PACKED;i++)\nstaged[i]=convert_run<Staged>(runs[unit][i]);\nif constexpr(Transposed)\nput_across(shared,at,staged);\nelse\nput_along(shared,at,staged[0]);\n}\n}\n\n\n"
"__device__ void put_along(u8*shared,int outer,const Words<Staged> &staged)const{\n",
"constexpr int bytes=sizeof(staged)<PIECE?sizeof(staged):PIECE,words=bytes/sizeof(u32);\nstruct alignas(bytes)Part{\nu32 at[words];\n};\n#pragma unroll\nfor(int i=0;i<(int)sizeof(staged)/bytes;i++){\nPart part;\n#pragma unroll\nfor(int word=0;word<words;word++)\n"
"part.at[word]=staged.at[i*words+word];\n*reinterpret_cast<Part*>(shared+place(outer,run*(int)sizeof(Staged)+ i*bytes))=part;\n}\n}\n\n\n__device__ void put_across(u8*shared,int k,const Words<Staged>(&staged)[PACKED])const{\nstruct alignas(PACKED*sizeof(Staged))Element{\n"
"u32 at[PACKED*sizeof(Staged)/sizeof(u32)];\n};\n#pragma unroll\nfor(int outer=0;outer<RUN;outer++){\nElement element;\nif constexpr(PACKED==1){\nconstexpr int words=sizeof(element)/sizeof(u32);\n#pragma unroll\nfor(int word=0;word<words;word++)\nelement.at[word]=staged[0].at[outer*words+word];\n"
"}else if constexpr(PACKED==2){\nelement.at[0]=__byte_perm(staged[0].at[outer/2],staged[1].at[outer/2],\nouter%2?0x7632:0x5410);\n}else{\nconstexpr u32 front=0x5140,back=0x7362;\nu32 pick=outer%4<2?front:back;\nu32 first=__byte_perm(staged[0].at[outer/4],staged[1].at[outer/4],pick);\n"
"u32 second=__byte_perm(staged[2].at[outer/4],staged[3].at[outer/4],pick);\nelement.at[0]=__byte_perm(first,second,outer%2?0x7632:0x5410);\n}\n*reinterpret_cast<Element*>(shared+place(run+outer,k*(int)sizeof(Staged)))=element;\n}\n}\n};\n\n\n\n\n#if __CUDA_ARCH__ >= 800\n"
"__device__ inline void multiply_16(F16,float(&upper)[2],float(&lower)[2],const u32(&a)[4],const u32(&b)[2]){\nasm(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 \"\n\"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
": \"+f\"(upper[0]),\"+f\"(upper[1]),\"+f\"(lower[0]),\"+f\"(lower[1])\n: \"r\"(a[0]),\"r\"(a[1]),\"r\"(a[2]),\"r\"(a[3]),\"r\"(b[0]),\"r\"(b[1]));\n}\n__device__ inline void multiply_16(BF16,float(&upper)[2],float(&lower)[2],const u32(&a)[4],const u32(&b)[2]){\n"
"asm(\"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 \"\n\"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n: \"+f\"(upper[0]),\"+f\"(upper[1]),\"+f\"(lower[0]),\"+f\"(lower[1])\n: \"r\"(a[0]),\"r\"(a[1]),\"r\"(a[2]),\"r\"(a[3]),\"r\"(b[0]),\"r\"(b[1]));\n}\n"
"__device__ inline void multiply_16(I8,int(&upper)[2],int(&lower)[2],const u32(&a)[4],const u32(&b)[2]){\nasm(\"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 \"\n\"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
": \"+r\"(upper[0]),\"+r\"(upper[1]),\"+r\"(lower[0]),\"+r\"(lower[1])\n: \"r\"(a[0]),\"r\"(a[1]),\"r\"(a[2]),\"r\"(a[3]),\"r\"(b[0]),\"r\"(b[1]));\n}\n#endif\n\n\ntemplate<class T>\n__device__ inline void multiply_fragments(const u8*a,const u8*b,Sum(&sums)[GROUPS][GROUPS][2]){\n"
"int group=threadIdx.x%WARP/4,quarter=threadIdx.x%4;\na +=group*LINE_PITCH+quarter*sizeof(u32);\nb +=group*LINE_PITCH+quarter*sizeof(u32);\n#pragma unroll\nfor(int byte=0;byte<LINE_BYTES;byte +=2*PIECE){\nu32 left[GROUPS/2][4],right[GROUPS][2];\n#pragma unroll\nfor(int i=0;i<GROUPS;i++)\n"
"#pragma unroll\nfor(int half=0;half<2;half++){\nint at=place(i*GROUP,byte+half*PIECE);\nleft[i/2][i%2+2*half]= *reinterpret_cast<const u32*>(a+at);\nright[i][half]= *reinterpret_cast<const u32*>(b+at);\n}\n#pragma unroll\nfor(int i=0;i<GROUPS;i +=2)\n#pragma unroll\nfor(int j=0;j<GROUPS;j++)\n"
"multiply_16(T(),sums[i][j],sums[i+1][j],left[i/2],right[j]);\n}\n}\n\n__device__ inline int multiply_add(int x,int y,int z){\nreturn sum(product(x,y),z);\n}\n__device__ inline float multiply_add(float x,float y,float z){\nreturn fmaf(x,y,z);\n}\n"
"__device__ inline double multiply_add(double x,double y,double z){\nreturn fma(x,y,z);\n}\n\n\n__device__ inline void multiply_elements(const u8*a,const u8*b,Sum(&sums)[GROUPS][GROUPS][2]){\nconstexpr int count=PIECE/(int)sizeof(Sum);\nstruct alignas(PIECE)Part{\nSum at[count];\n};\n"
"int group=threadIdx.x%WARP/4,quarter=threadIdx.x%4;\na +=group*LINE_PITCH;\nb +=quarter*2*LINE_PITCH;\n#pragma unroll 1\nfor(int half=0;half<2;half++){\n#pragma unroll\n",
"for(int byte=0;byte<LINE_BYTES/2;byte +=PIECE){\nPart left[GROUPS],right[GROUPS][2];\n#pragma unroll\nfor(int i=0;i<GROUPS;i++){\nleft[i]= *reinterpret_cast<const Part*>(a+place(i*GROUP,byte));\n#pragma unroll\nfor(int e=0;e<2;e++)\n"
"right[i][e]= *reinterpret_cast<const Part*>(b+place(i*GROUP+e,byte));\n}\n#pragma unroll\nfor(int k=0;k<count;k++)\n#pragma unroll\nfor(int i=0;i<GROUPS;i++)\n#pragma unroll\nfor(int j=0;j<GROUPS;j++)\n#pragma unroll\nfor(int e=0;e<2;e++)\n"
"sums[i][j][e]=multiply_add(left[i].at[k],right[j][e].at[k],sums[i][j][e]);\n}\na +=LINE_BYTES/2;\nb +=LINE_BYTES/2;\n}\n}\n\n\n\n\ntemplate<int Mode,int Each>struct Chunk_scales{\nconst float*at;\nlong long step;\nlong long left;\nfloat values[GROUPS][Each];\n\n"
"__device__ Chunk_scales(const gemmepi__kernel_scale&scale,long long item,long long first,long long extent,\nlong long k){\n\nlong long outer=first<extent?first:extent-1;\nScale_line line=scale_line<Mode>(scale.data+item*scale.stride,outer,extent,k);\nat=line.at;\nstep=line.step;\n"
"left=extent-first;\n}\n__device__ void next(){\n#pragma unroll\nfor(int i=0;i<GROUPS;i++)\n#pragma unroll\nfor(int e=0;e<Each;e++){\nint line=i*GROUP+e;\nif(Mode==SCALE_BLOCK_128)\nvalues[i][e]=i+e==0? *at:values[0][0];\nelse\nvalues[i][e]=line<left?at[line]:0;\n}\nat +=step;\n}\n};\n\n"
"template<class T>__device__ inline void add_to_total(T&value,Total&total,float factor){\nif constexpr(SPLIT_TOTALS){\ntotal +=value>>16;\nvalue&=0xffff;\n}else{\ntotal +=(Acc)value*(Acc)factor;\nvalue=0;\n}\n}\n\n\ntemplate<class Left,class Right>\n"
"__device__ inline void add_chunk(const Left&left,const Right&right,Sum(&sums)[GROUPS][GROUPS][2],\nTotal(&totals)[GROUPS][GROUPS][2]){\n#pragma unroll\nfor(int i=0;i<GROUPS;i++)\n#pragma unroll\nfor(int j=0;j<GROUPS;j++)\n#pragma unroll\nfor(int e=0;e<2;e++)\n"
"add_to_total(sums[i][j][e],totals[i][j][e],\n(A_VARIES?left.values[i][0]:1)*(B_VARIES?right.values[j][e]:1));\n}\n\n__device__ inline Acc finished(Sum value,Total total){\nif(SPLIT_TOTALS)\nreturn(Acc)((long long)total*65536 +(long long)value);\nreturn CHUNKED?(Acc)total:(Acc)value;\n}\n\n\n\n"
"template<class Left,class Right>\n__device__ inline void fetch(Left&a,Right&b,int rows,int columns,int k_left){\na.fetch(rows,k_left);\nb.fetch(columns,k_left);\n}\n\ntemplate<class Left,class Right>\n__device__ inline void put(Left&a,Right&b,int rows,int columns,int k_left,u8*shared){\n"
"if(!FETCHES_AHEAD)\na.fetch(rows,k_left);\na.put(shared);\nif(!FETCHES_AHEAD){\n__syncthreads();\nb.fetch(columns,k_left);\n}\nb.put(shared+OPERAND_BYTES);\n}\n\n\nextern \"C\" __global__ void __launch_bounds__(THREADS,2)\ngemmepi_plain(GEMMEPI_PARAMS gemmepi__plain_params params){\n"
"__shared__ alignas(PIECE)u8 shared[SHARED_BYTES];\nconst gemmepi__epilogue_params&p=params.epilogue;\nu32 part=blockIdx.x/p.column_tiles;\nu32 item=part/p.row_tiles;\nlong long tile_row=(long long)(part-item*p.row_tiles)*TILE;\n"
"long long tile_column=(long long)(blockIdx.x-part*p.column_tiles)*TILE;\nint rows=p.m-tile_row<TILE?(int)(p.m-tile_row):TILE;\nint columns=p.n-tile_column<TILE?(int)(p.n-tile_column):TILE;\nint row=(int)threadIdx.x/WARP%2*(TILE/2),column=(int)threadIdx.x/WARP/2*(TILE/2);\n"
"int group=threadIdx.x%WARP/4,quarter=threadIdx.x%4;\n\nSum sums[GROUPS][GROUPS][2]={};\nTotal totals[GROUPS][GROUPS][2]={};\nOperand<A,GEMMEPI_A_TRANSPOSED,GEMMEPI_A_ALIGNED>a(params.a,item,tile_row);\nOperand<B,!GEMMEPI_B_TRANSPOSED,GEMMEPI_B_ALIGNED>b(params.b,item,tile_column);\n"
"Chunk_scales<GEMMEPI_SCALE_A,1>scales_a(p.scale_a,item,tile_row+row+group,p.m,params.k);\nChunk_scales<GEMMEPI_SCALE_B,2>scales_b(p.scale_b,item,tile_column+column+quarter*2,p.n,params.k);\nu8*now=shared,*next=shared+2*OPERAND_BYTES;\nint k_left=params.k<STEP?(int)params.k:STEP;\n"
"if(FETCHES_AHEAD&&k_left>0)\nfetch(a,b,rows,columns,k_left);\nif(k_left>0)\nput(a,b,rows,columns,k_left,now);\n__syncthreads();\nint chunk_left=0;\nfor(long long left=params.k;left>0;left -=STEP){\nk_left=left-STEP<STEP?(int)(left-STEP):STEP;\n",
"if(FETCHES_AHEAD&&k_left>0)\nfetch(a,b,rows,columns,k_left);\nif(CHUNKED&&chunk_left==0){\nchunk_left=GEMMEPI_CHUNK/STEP;\nif(A_VARIES)\nscales_a.next();\nif(B_VARIES)\nscales_b.next();\n}\nif constexpr(TENSOR_CORES)\n"
"multiply_fragments<Staged>(now+row*LINE_PITCH,now+OPERAND_BYTES+column*LINE_PITCH,sums);\nelse\nmultiply_elements(now+row*LINE_PITCH,now+OPERAND_BYTES+column*LINE_PITCH,sums);\nif(CHUNKED&&(--chunk_left==0||k_left<=0))\nadd_chunk(scales_a,scales_b,sums,totals);\nif(k_left>0)\n"
"put(a,b,rows,columns,k_left,next);\n__syncthreads();\nu8*last=now;\nnow=next;\nnext=last;\n}\n\n\nAcc*results=reinterpret_cast<Acc*>(shared);\n#pragma unroll\nfor(int i=0;i<GROUPS;i++)\n#pragma unroll\nfor(int j=0;j<GROUPS;j++){\nint at=(row+i*GROUP+group)*RESULT_PITCH+column+j*GROUP+quarter*2;\n"
"results[at]=finished(sums[i][j][0],totals[i][j][0]);\nresults[at+1]=finished(sums[i][j][1],totals[i][j][1]);\n}\n__syncthreads();\nconstexpr int width=TILE/RUN,height=THREADS/width;\nint x=(int)threadIdx.x%width,y=(int)threadIdx.x/width;\nint valid=existing(columns-x*RUN);\n"
"long long first=tile_column+x*RUN;\nEpilogue_state state=begin_epilogue(p,item,first,valid);\nAcc column_sums[HALVES_OUT][RUN]={};\n#pragma unroll 1\nfor(int r=y;r<rows&&valid>0;r +=height){\nAcc v[HALVES][RUN];\nSaved saved;\nload_saved(p,state,item,tile_row+r,first,valid,saved);\n"
"#pragma unroll\nfor(int i=0;i<RUN;i++)\nv[0][i]=results[r*RESULT_PITCH+x*RUN+i];\nepilogue(p,state,load_columns(p,item,first,valid),saved,item,tile_row+r,first,valid,v);\nstore_result(p,state,item,tile_row+r,first,valid,v);\nif(HAS_BGRAD)\n#pragma unroll\nfor(int i=0;i<RUN;i++)\n"
"column_sums[0][i]=sum(column_sums[0][i],v[0][i]);\n}\nif(HAS_BGRAD)\nstore_partials<THREADS>(p,part,first,valid,x,y,width,column_sums);\nend_epilogue(p,state);\n}\n",
 NULL};

#ifndef GEMMEPI_NO_SM80
static const char *const gemmepi__source_gemm_sm80_cu[] = {
"#line 1 \"src/kernels/gemm_sm80.cu\"\n#line 13\n#define GEMMEPI_SPREAD 1\n#define GEMMEPI_STAGES_WORDS 1\n\n\n#ifdef GEMMEPI_FMA\n#define GEMMEPI_APART GEMMEPI_FMA\n#endif\n#include \"epilogue.cuh\"\n\n#ifndef GEMMEPI_TILE_M\n#define GEMMEPI_TILE_M 128\n#define GEMMEPI_TILE_N 128\n"
"#define GEMMEPI_WARPS_M 4\n#define GEMMEPI_WARPS_N 2\n#define GEMMEPI_STAGES 3\n#define GEMMEPI_BLOCKS 2\n#define GEMMEPI_A_ROWS 1\n#define GEMMEPI_B_ROWS 1\n#define GEMMEPI_A_UNIT 16\n#define GEMMEPI_B_UNIT 16\n#define GEMMEPI_ELEMENT 2\n#define GEMMEPI_OPERANDS \"bf16\"\n#define GEMMEPI_FMA 0\n"
"#define GEMMEPI_SPLIT 0\n#endif\n\n#if GEMMEPI_ELEMENT == 2\ntypedef u16 Element;\n#define GEMMEPI_MMA \"m16n8k16\"\n#else\ntypedef u32 Element;\n#define GEMMEPI_MMA \"m16n8k8\"\n#endif\nconstexpr int ELEMENT=GEMMEPI_ELEMENT,LINE=128;\nconstexpr bool SPLIT=GEMMEPI_SPLIT;\n"
"constexpr bool FMA=GEMMEPI_FMA;\nconstexpr int TILE_M=GEMMEPI_TILE_M,TILE_N=GEMMEPI_TILE_N,TILE_K=LINE/ELEMENT,STAGES=GEMMEPI_STAGES;\nconstexpr int STEPS=4;\nconstexpr int WARPS_M=GEMMEPI_WARPS_M,WARPS_N=GEMMEPI_WARPS_N,THREADS=32*WARPS_M*WARPS_N;\n"
"constexpr int WARP_M=TILE_M/WARPS_M,WARP_N=TILE_N/WARPS_N;\nconstexpr bool A_ROWS=GEMMEPI_A_ROWS,B_ROWS=GEMMEPI_B_ROWS;\nconstexpr int TILE_COLUMNS=TILE_N/HALVES_IN,WARP_COLUMNS=WARP_N/HALVES_IN;\nconstexpr int ROW_BLOCKS=WARP_M/16,PAIRS=WARP_N/16;\nconstexpr int BOX=TILE_K*LINE;\n"
"constexpr u32 A_BYTES=TILE_M*LINE,B_BYTES=TILE_N*LINE,STAGE_BYTES=A_BYTES+B_BYTES;\n\n\nconstexpr bool STAGED=STAGES_D||STAGES_AUX;\nconstexpr bool STAGES_WIDE=(STAGES_D&&sizeof(GEMMEPI_D_TYPE)==4)||(STAGES_AUX&&sizeof(GEMMEPI_AUX_TYPE)==4);\nconstexpr int GROUP=32,GROUPS=WARP_COLUMNS/GROUP;\n"
"constexpr int BOX_GROUPS=GROUPS%2||STAGES_WIDE?1:2,BOX_COLUMNS=BOX_GROUPS*GROUP;\nconstexpr int STAGED_D=STAGES_D?HALVES_OUT:0,STAGED_MATRICES=STAGED_D +(STAGES_AUX?HALVES_IN:0);\nconstexpr int STAGED_BYTES=16*LINE;\n"
"static_assert(WARP_M%16==0&&WARP_COLUMNS%GROUP==0,\"a warp has whole runs of both halves\");\nstatic_assert(TILE_COLUMNS%TILE_K==0||B_ROWS||HALVES_IN==1,\"lines along n are of one half\");\n"
"static_assert(THREADS/32*STAGED_MATRICES*STAGED_BYTES<=STAGES*STAGE_BYTES,\"results lie where the stages were\");\n\n\n\ntemplate<int Unit>__device__ inline void copy_whole(u32 to,const void*from){\nif constexpr(Unit==16)\n"
"asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" ::\"r\"(to),\"l\"(from): \"memory\");\nelse\nasm volatile(\"cp.async.ca.shared.global [%0], [%1], %2;\" ::\"r\"(to),\"l\"(from),\"n\"(Unit): \"memory\");\n}\n\n"
"template<int Unit>__device__ inline void copy_some(u32 to,const void*from,int bytes){\nif constexpr(Unit==16)\nasm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\" ::\"r\"(to),\"l\"(from),\"r\"(bytes): \"memory\");\nelse\n"
"asm volatile(\"cp.async.ca.shared.global [%0], [%1], %3, %2;\" ::\"r\"(to),\"l\"(from),\"r\"(bytes),\"n\"(Unit)\n: \"memory\");\n}\n__device__ inline void copies_commit(){\nasm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n}\ntemplate<int Left>__device__ inline void copies_wait(){\n"
"asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(Left): \"memory\");\n}\ntemplate<bool Turned>__device__ inline void load_matrices(u32 from,u32(&to)[4]){\nif constexpr(Turned)\nasm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\"\n"
": \"=r\"(to[0]),\"=r\"(to[1]),\"=r\"(to[2]),\"=r\"(to[3])\n: \"r\"(from)\n: \"memory\");\nelse\nasm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\"\n: \"=r\"(to[0]),\"=r\"(to[1]),\"=r\"(to[2]),\"=r\"(to[3])\n: \"r\"(from)\n: \"memory\");\n}\n"
"__device__ inline void load_words(u32 from,u32&to){\nasm volatile(\"ld.shared.b32 %0, [%1];\" : \"=r\"(to): \"r\"(from): \"memory\");\n}\n__device__ inline void load_words(u32 from,float&to0,float&to1){\n"
"asm volatile(\"ld.shared.v2.f32 {%0, %1}, [%2];\" : \"=f\"(to0),\"=f\"(to1): \"r\"(from): \"memory\");\n}\n__device__ inline void load_words(u32 from,float(&to)[4]){\n",
"asm volatile(\"ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\"\n: \"=f\"(to[0]),\"=f\"(to[1]),\"=f\"(to[2]),\"=f\"(to[3])\n: \"r\"(from)\n: \"memory\");\n}\n#if !GEMMEPI_FMA\n\n__device__ inline void multiply(float(&sums)[4],const u32(&a)[4],u32 b0,u32 b1){\n"
"asm volatile(\"mma.sync.aligned.\" GEMMEPI_MMA \".row.col.f32.\" GEMMEPI_OPERANDS \".\" GEMMEPI_OPERANDS \".f32 \"\n\"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n: \"+f\"(sums[0]),\"+f\"(sums[1]),\"+f\"(sums[2]),\"+f\"(sums[3])\n"
": \"r\"(a[0]),\"r\"(a[1]),\"r\"(a[2]),\"r\"(a[3]),\"r\"(b0),\"r\"(b1));\n}\n#endif\n\n\n\n\ntemplate<bool Rows>__device__ constexpr int turn_of(int line){\nreturn Rows||ELEMENT==2?line%8:line%4*2;\n}\n\n\n\n\ntemplate<bool Rows,int Lines,int Unit,int Halves>struct Loader{\n"
"static constexpr int PIECE=Unit==2?16:Unit,PIECES=LINE/PIECE,ELEMENTS=PIECE/ELEMENT;\nstatic constexpr int STEP=THREADS/PIECES,COUNT=Lines/STEP;\nstatic constexpr int PART=(COUNT+3)/4;\nstatic_assert(TILE_K%STEP==0&&Lines/Halves%STEP==0,\"all threads copy as much\");\nconst Element*from,*at;\n"
"long long ld,apart;\nint exist;\nbool inside;\nu32 to;\nElement held[Unit==2?PART*ELEMENTS:1];\n\n\n__device__ inline Loader(const gemmepi__kernel_matrix&x,long long item,long long first,long long extent,\nlong long first_k){\n"
"int line=(int)threadIdx.x/PIECES,piece=(int)threadIdx.x%PIECES,unit=piece*PIECE/16;\nld=x.ld;\napart=extent;\nfrom=(const Element*)x.data+item*x.stride +\n(Rows?(first+line)*ld+first_k+piece*ELEMENTS:(first_k+line)*ld+first+piece*ELEMENTS);\n"
"long long left=extent-first -(Rows?line:piece*ELEMENTS);\nexist=left<Lines?(int)left:Lines;\ninside=first+Lines/Halves<=extent;\nto=line*LINE +((unit ^ turn_of<Rows>(line))<<4)+ piece*PIECE%16;\n}\n\n\n__device__ inline int go_to(int i,int k_left){\n"
"constexpr int of_half=Lines/Halves,of_run=Rows?of_half:TILE_K;\nint line=i*STEP,half=line/of_half,within=line%of_half;\nint piece_k=(int)threadIdx.x%PIECES*ELEMENTS,line_k=(int)threadIdx.x/PIECES;\nif(line%of_run)\nat +=STEP*ld;\nelse\n"
"at=from +(Rows?half*apart*ld:within/TILE_K*TILE_K+half*apart);\nasm volatile(\"\" : \"+l\"(at),\"+r\"(exist));\nif(Rows)\nreturn within<exist?k_left-piece_k:0;\nreturn line_k+line%TILE_K<k_left?exist-within/TILE_K*TILE_K:0;\n}\n__device__ inline u32 place_of(u32 stage,int i)const{\n"
"return((stage+to)^(u32)(turn_of<Rows>(i*STEP)<<4))+ i*STEP*LINE;\n}\n\ntemplate<bool Whole>__device__ inline void fetch_part(u32 stage,int part,int k_left){\n#pragma unroll\nfor(int p=0;p<PART;p++){\nint i=part*PART+p;\nif(i>=COUNT)\nbreak;\nint valid=go_to(i,k_left);\nif constexpr(Unit==2){\n"
"#pragma unroll\nfor(int j=0;j<ELEMENTS;j++)\nheld[p*ELEMENTS+j]=Whole||j<valid?at[j]:(Element)0;\n}else if(Whole)\ncopy_whole<Unit>(place_of(stage,i),at);\nelse\ncopy_some<Unit>(place_of(stage,i),at,valid<=0?0:valid>=ELEMENTS?PIECE:valid*ELEMENT);\n}\n}\n"
"__device__ inline void fetch(u32 stage,int part,int k_left){\nif(inside&&k_left>=TILE_K)\nfetch_part<true>(stage,part,k_left);\nelse\nfetch_part<false>(stage,part,k_left);\n}\n\n__device__ inline void put(u32 stage,int part)const{\nif constexpr(Unit==2){\n#pragma unroll\n"
"for(int p=0;p<PART;p++){\nu32 words[4];\nmemcpy(words,held+p*ELEMENTS,sizeof words);\nasm volatile(\"st.shared.v4.b32 [%0], {%1, %2, %3, %4};\" ::\"r\"(place_of(stage,part*PART+p)),\"r\"(words[0]),\n\"r\"(words[1]),\"r\"(words[2]),\"r\"(words[3])\n: \"memory\");\n}\n}\n}\n\n"
"__device__ inline void next(){\nfrom +=Rows?TILE_K:TILE_K*ld;\nasm volatile(\"\" : \"+l\"(ld));\n}\n};\n\n\n\n\n\ntemplate<bool Rows>__device__ inline u32 fragment_lane(int first,int outer,int k){\nint lane=threadIdx.x%8,word=threadIdx.x%32/4,line=threadIdx.x%4;\nif(!Rows&&ELEMENT==4)\n"
"return(u32)(first/TILE_K*BOX+line*LINE +((first%TILE_K/4+word/4 ^ turn_of<Rows>(line))<<4)+ word%4*4);\nreturn Rows?(u32)((first+outer*8+lane)*LINE +((k ^ lane)<<4))\n:(u32)(first/TILE_K*BOX +(k*8+lane)*LINE +((first%TILE_K/8 ^ outer ^ lane)<<4));\n}\n\n",
"template<bool Rows>__device__ inline u32 fragment_at(u32 lane,int i,int step){\nconstexpr int sixteens=TILE_K/16,units=16*ELEMENT/16;\nreturn Rows?(lane ^(u32)step<<5)+ i*16*LINE\n:(lane ^(u32)(i%sixteens*units)<<4)+ i/sixteens*BOX+step*(TILE_K/STEPS)*LINE;\n}\n\n"
"template<bool Rows,bool KInner>__device__ inline void load_fragment(u32 from,u32(&to)[4]){\nif constexpr(Rows||ELEMENT==2)\nload_matrices<!Rows>(from,to);\nelse\n#pragma unroll\nfor(int i=0;i<4;i++){\nint outer=KInner?i/2:i%2,k=KInner?i%2:i/2;\nload_words((from ^(u32)outer<<5)+ k*4*LINE,to[i]);\n"
"}\n}\n\nstruct Fragments{\nu32 a[ROW_BLOCKS][4],b[PAIRS][4];\n};\n\n__device__ inline void load_fragments(u32 a,u32 b,int step,Fragments&fragments){\nconstexpr int of_half=PAIRS/HALVES_IN;\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS;i++)\n"
"load_fragment<A_ROWS,false>(fragment_at<A_ROWS>(a,i,step),fragments.a[i]);\n#pragma unroll\nfor(int i=0;i<PAIRS;i++)\nload_fragment<B_ROWS,true>(fragment_at<B_ROWS>(b,i%of_half,step)+ i/of_half*TILE_COLUMNS*LINE,\nfragments.b[i]);\n}\n\n"
"__device__ inline void multiply_fragments(const Fragments&fragments,float(&sums)[ROW_BLOCKS][PAIRS*2][4]){\n#if !GEMMEPI_FMA\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS;i++)\n#pragma unroll\nfor(int j=0;j<PAIRS*2;j++)\n"
"multiply(sums[i][j],fragments.a[i],fragments.b[j/2][j%2*2],fragments.b[j/2][j%2*2+1]);\n#endif\n}\n\n\n\n\ntemplate<bool Rows>__device__ inline u32 value_lane(int first,int at){\nreturn Rows?(u32)((first+at)*LINE +(at%8<<4)):(u32)(first/TILE_K*BOX+first%TILE_K*ELEMENT +(at/4<<4)+ at%4*4);\n}\n\n"
"template<bool Rows>__device__ inline u32 value_at(u32 lane,int i,int four){\nreturn Rows?(lane ^(u32)four<<4)+ i*8*LINE:(lane ^(u32)(i%4)<<5)+ i/4*BOX+four*4*LINE;\n}\n\n__device__ inline u32 line_at(u32 from,int k){\nreturn(from ^(u32)turn_of<false>(k)<<4)+ k*LINE;\n}\n\n"
"__device__ inline void load_a_values(u32 from,float(&to)[4]){\nif constexpr(A_ROWS)\nload_words(from,to);\nelse\n#pragma unroll\nfor(int k=0;k<4;k++){\nu32 word;\nload_words(line_at(from,k),word);\nto[k]=__uint_as_float(word);\n}\n}\n"
"__device__ inline void load_b_values(u32 from,float(&to)[2][4]){\nif constexpr(B_ROWS){\nload_words(from,to[0]);\nload_words((from ^ 16)+ LINE,to[1]);\n}else{\n#pragma unroll\nfor(int k=0;k<4;k++)\nload_words(line_at(from,k),to[0][k],to[1][k]);\n}\n}\n\n\n"
"__device__ inline void multiply_add(u32 a,u32 b,int step,float(&sums)[ROW_BLOCKS][PAIRS*2][4]){\nconstexpr int of_half=PAIRS*2/HALVES_IN;\n#pragma unroll\nfor(int four=step*2;four<step*2+2;four++){\nfloat rows[ROW_BLOCKS*2][4];\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS*2;i++)\n"
"load_a_values(value_at<A_ROWS>(a,i,four),rows[i]);\n#pragma unroll\nfor(int j=0;j<PAIRS*2;j++){\nfloat columns[2][4];\nload_b_values(value_at<B_ROWS>(b,j%of_half,four)+ j/of_half*TILE_COLUMNS*LINE,columns);\n#pragma unroll\nfor(int k=0;k<4;k++)\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS*4;i++){\n"
"float&sum=sums[i/4][j][i%4];\nsum=__fmaf_rn(rows[i/2][k],columns[i%2][k],sum);\n}\n}\n}\n}\n\n__device__ inline void take_sums(const float(&from)[ROW_BLOCKS][PAIRS*2][4],float(&sums)[ROW_BLOCKS][PAIRS*2][4]){\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS*PAIRS*8;i++)\n"
"sums[i/(PAIRS*8)][i/4%(PAIRS*2)][i%4]+=from[i/(PAIRS*8)][i/4%(PAIRS*2)][i%4];\n}\n\n\n\n\ntemplate<class T>__device__ inline u32 place_in_box(int half,int g){\nint row=row_of_lane(),unit=sizeof(T)==4?lane_of_row()/2:g*4;\n"
"return(half*8+row)*LINE +((unit ^ row)<<4)+(sizeof(T)==4?lane_of_row()%2*8:lane_of_row()*4);\n}\n\n\n__device__ inline void finish(const gemmepi__epilogue_params&p,long long item,int row,int column,long long line,\nu32 staged,const float(&sums)[ROW_BLOCKS][PAIRS*2][4]){\n"
"int of_row=row_of_lane();\nEpilogue_state state=begin_epilogue(p,item,0,0);\n#pragma unroll\nfor(int box=0;box<GROUPS;box +=BOX_GROUPS){\nOf_columns of[BOX_GROUPS];\nColumn_sums<(ROW_BLOCKS>2)>column_sums[BOX_GROUPS];\nint box_column=column+box*GROUP,box_left=(int)p.n-box_column;\n"
"int first=box_column+lane_of_row()*2,left=box_left-lane_of_row()*2;\n",
"#pragma unroll\nfor(int g=0;g<BOX_GROUPS;g++)\nof[g]=load_columns(p,item,first+g*GROUP,left-g*GROUP);\n#pragma unroll\nfor(int i=0;i<ROW_BLOCKS;i++){\n#pragma unroll\nfor(int g=0;g<BOX_GROUPS;g++){\n#pragma unroll\nfor(int half=0;half<2;half++){\n"
"int at=row+i*16+half*8+of_row,exists=at<(int)p.m;\nint valid=exists?left-g*GROUP:0;\nAcc v[HALVES][RUN];\nSaved saved;\n#pragma unroll\nfor(int j=0;j<HALVES_IN*RUN;j++)\nv[j/RUN][j%RUN]=\nsums[i][j/RUN*WARP_COLUMNS/8 +(box+g)*4+j%RUN/2][half*2+j%2];\n#pragma unroll\nfor(int j=0;j<STAGED_D;j++)\n"
"state.staged_d[j]=staged+j*STAGED_BYTES+place_in_box<GEMMEPI_D_TYPE>(half,g);\n#pragma unroll\nfor(int j=0;j<STAGED_MATRICES-STAGED_D;j++)\nstate.staged_aux[j]=staged +(STAGED_D+j)*STAGED_BYTES+place_in_box<GEMMEPI_AUX_TYPE>(half,g);\nstate.mask_place=half+2*g;\n"
"load_saved(p,state,item,at,first+g*GROUP,valid,saved);\nepilogue(p,state,of[g],saved,item,at,first+g*GROUP,valid,v);\nstore_result(p,state,item,at,first+g*GROUP,valid,v);\nif(HAS_BGRAD)\ncolumn_sums[g].add(v,exists);\n}\nif(HAS_BGRAD)\ncolumn_sums[g].end_rows();\n}\nif(KEEPS_MASK)\n"
"store_kept_masks(p,state,item,row+i*16,box_column,BOX_GROUPS);\nif(STAGED){\nint rows_left=(int)p.m-row-i*16;\n__syncwarp();\n#pragma unroll\nfor(int j=0;j<STAGED_D;j++)\ncopy_box<GEMMEPI_D_TYPE,BOX_COLUMNS,COPIES_D>(\nstaged+j*STAGED_BYTES,\n"
"(GEMMEPI_D_TYPE*)p.d.data+offset(p.d,item,row+i*16,box_column+j*p.n),p.d.ld,rows_left,\nbox_left);\n#pragma unroll\nfor(int j=0;j<STAGED_MATRICES-STAGED_D;j++)\ncopy_box<GEMMEPI_AUX_TYPE,BOX_COLUMNS,COPIES_AUX>(\nstaged +(STAGED_D+j)*STAGED_BYTES,\n"
"(GEMMEPI_AUX_TYPE*)p.aux.data+offset(p.aux,item,row+i*16,box_column+j*p.n),p.aux.ld,\nrows_left,box_left);\n__syncwarp();\n}\n}\nif(HAS_BGRAD&&row<(int)p.m)\n#pragma unroll\nfor(int g=0;g<BOX_GROUPS;g++)\ncolumn_sums[g].store(p,line,box_column+g*GROUP);\n}\nend_epilogue(p,state);\n}\n\n\n\n\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS,GEMMEPI_BLOCKS)\ngemmepi_mma(GEMMEPI_PARAMS gemmepi__sm80_params params){\nextern __shared__ __align__(128)u8 memory[];\nconst gemmepi__epilogue_params&p=params.epilogue;\nu32 shared=(u32)__cvta_generic_to_shared(memory);\n"
"u32 of_part=params.tile_rows*p.column_tiles,slice=blockIdx.x/of_part,rest=blockIdx.x-slice*of_part;\nu32 item=SPLIT?slice/params.parts:slice;\nint first_k=SPLIT?(int)(slice-item*params.parts)*params.part_k:0;\nu32 of_band=params.band*p.column_tiles,band=rest/of_band,above=band*params.band;\n"
"u32 height=params.tile_rows-above<params.band?params.tile_rows-above:params.band;\nu32 within=rest-band*of_band,tile_n=within/height,tile_m=above+within-tile_n*height;\n\nint warp=threadIdx.x/32,lane=threadIdx.x%32,warp_m=warp%WARPS_M,warp_n=warp/WARPS_M;\n"
"Loader<A_ROWS,TILE_M,GEMMEPI_A_UNIT,1>a(params.a,item,(long long)tile_m*TILE_M,p.m,first_k);\nLoader<B_ROWS,TILE_N,GEMMEPI_B_UNIT,HALVES_IN>b(params.b,item,(long long)tile_n*TILE_COLUMNS,p.n,first_k);\nu32 a_lane=shared +(FMA?value_lane<A_ROWS>(warp_m*WARP_M,row_of_lane())\n"
":fragment_lane<A_ROWS>(warp_m*WARP_M,lane/8%2,lane/16));\nu32 b_lane=shared+A_BYTES +(FMA?value_lane<B_ROWS>(warp_n*WARP_COLUMNS,lane_of_row()*2)\n:fragment_lane<B_ROWS>(warp_n*WARP_COLUMNS,lane/16,lane/8%2));\nint k_left=SPLIT&&params.k-first_k>params.part_k?params.part_k:params.k-first_k;\n"
"int steps=(k_left+TILE_K-1)/TILE_K;\n#pragma unroll 1\nfor(int i=0;i<STAGES-1;i++){\nu32 stage=shared+i*STAGE_BYTES;\nif(i==0)\nafter_launches_before();\n#pragma unroll\nfor(int part=0;part<4;part++){\na.fetch(stage,part,k_left);\nb.fetch(stage+A_BYTES,part,k_left);\na.put(stage,part);\n"
"b.put(stage+A_BYTES,part);\n}\ncopies_commit();\na.next();\nb.next();\nk_left -=TILE_K;\n}\nfloat sums[ROW_BLOCKS][PAIRS*2][4]={};\nFragments fragments[2];\nu32 read=0,written=(STAGES-1)*STAGE_BYTES;\ncopies_wait<STAGES-2>();\n__syncthreads();\nif(!FMA)\n"
"load_fragments(a_lane,b_lane,0,fragments[0]);\nfor(int block=0;block<steps;block++){\nfloat of_stage[ROW_BLOCKS][PAIRS*2][4]={};\n#pragma unroll\nfor(int step=0;step<STEPS;step++){\n",
"bool last=step==STEPS-1;\n\na.fetch(shared+written,step,k_left);\nb.fetch(shared+written+A_BYTES,step,k_left);\nif(FMA)\nmultiply_add(a_lane+read,b_lane+read,step,of_stage);\nif(last){\na.put(shared+written,step);\nb.put(shared+written+A_BYTES,step);\ncopies_commit();\n"
"written=written+STAGE_BYTES==STAGES*STAGE_BYTES?0:written+STAGE_BYTES;\nread=read+STAGE_BYTES==STAGES*STAGE_BYTES?0:read+STAGE_BYTES;\ncopies_wait<STAGES-2>();\n__syncthreads();\n}\nif(!FMA){\nload_fragments(a_lane+read,b_lane+read,(step+1)%STEPS,fragments[(step+1)%2]);\n"
"multiply_fragments(fragments[step%2],sums);\n}\nif(!last){\na.put(shared+written,step);\nb.put(shared+written+A_BYTES,step);\n}\n}\nif(FMA)\ntake_sums(of_stage,sums);\na.next();\nb.next();\nk_left -=TILE_K;\n}\ncopies_wait<0>();\n__syncthreads();\n"
"long long line=((long long)slice*p.row_tiles)+ tile_m*WARPS_M+warp_m;\nfinish(p,slice,(int)(tile_m*TILE_M)+ warp_m*WARP_M,(int)(tile_n*TILE_COLUMNS)+ warp_n*WARP_COLUMNS,line,\nshared+warp*(STAGED_MATRICES*STAGED_BYTES),sums);\n}\n",
 NULL};
#endif

#ifndef GEMMEPI_NO_SM90
static const char *const gemmepi__source_gemm_sm90_cu[] = {
"#line 1 \"src/kernels/gemm_sm90.cu\"\n#line 20\n#include \"codes.h\"\n\n#define GEMMEPI_SPREAD 1\n\n\n\n\n#if GEMMEPI_APPLIED && GEMMEPI_SPLIT == 1 && !GEMMEPI_SCALE_A && !GEMMEPI_SCALE_B && \\\n((GEMMEPI_EPILOGUE&(FLAG_GATED|FLAG_UPSTREAM|FLAG_BIAS))==(FLAG_GATED|FLAG_UPSTREAM|FLAG_BIAS)|| \\\n"
"(!GEMMEPI_EXACT&&GEMMEPI_TILE_N<=128&& !GEMMEPI_BIAS_AHEAD&& \\\n(GEMMEPI_EPILOGUE==FLAG_BIAS||GEMMEPI_EPILOGUE==(FLAG_BIAS|CODE_RELU)|| \\\nGEMMEPI_EPILOGUE==(FLAG_BIAS|CODE_GELU_ERF))))\n#define GEMMEPI_BIAS_FIRST 1\n#endif\n#include \"epilogue.cuh\"\n\n#ifndef GEMMEPI_TILE_M\n"
"#define GEMMEPI_TILE_M 128\n#define GEMMEPI_TILE_N 128\n#define GEMMEPI_STAGES 5\n#define GEMMEPI_PING_PONG 1\n#define GEMMEPI_CLUSTER_M 2\n#define GEMMEPI_CLUSTER_N 1\n#define GEMMEPI_SPLIT 1\n#define GEMMEPI_A_ROWS 1\n#define GEMMEPI_B_ROWS 1\n#define GEMMEPI_OPERANDS   \"bf16\"\n"
"#define GEMMEPI_ELEMENT 2\n#define GEMMEPI_BOX_GROUPS 2\n#define GEMMEPI_TAILS 0\n#endif\n#ifndef GEMMEPI_BIAS_AHEAD\n#define GEMMEPI_BIAS_AHEAD 0\n#endif\n#ifndef GEMMEPI_SUMMED\n#define GEMMEPI_SUMMED 0\n#endif\n#ifndef GEMMEPI_SUMS_TYPE\n#define GEMMEPI_SUMS_TYPE F32\n"
"#define GEMMEPI_SUMS_ADD 0\n#endif\n\nconstexpr int TILE_M=GEMMEPI_TILE_M,TILE_N=GEMMEPI_TILE_N,STAGES=GEMMEPI_STAGES;\nconstexpr int CLUSTER_M=GEMMEPI_CLUSTER_M,CLUSTER_N=GEMMEPI_CLUSTER_N,SPLIT=GEMMEPI_SPLIT;\nconstexpr int CLUSTER=CLUSTER_M*CLUSTER_N*SPLIT;\n"
"constexpr bool PING_PONG=GEMMEPI_PING_PONG,A_ROWS=GEMMEPI_A_ROWS,B_ROWS=GEMMEPI_B_ROWS;\nconstexpr int WARPGROUP=128,CONSUMERS=2,THREADS=WARPGROUP*(CONSUMERS+1);\nconstexpr int PARTS=TILE_M/64/(PING_PONG?1:CONSUMERS);\nconstexpr int LINE=128,TILE_K=LINE/GEMMEPI_ELEMENT;\n"
"constexpr int BOX=64*LINE;\n\nconstexpr int TILE_COLUMNS=TILE_N/HALVES_IN;\nconstexpr int GROUP=32,GROUPS=TILE_COLUMNS/GROUP;\nconstexpr int BOX_GROUPS=GEMMEPI_BOX_GROUPS,BOX_COLUMNS=BOX_GROUPS*GROUP;\nconstexpr u32 A_BYTES=TILE_M*LINE,B_BYTES=TILE_N*LINE,STAGE_BYTES=A_BYTES+B_BYTES;\n\n"
"constexpr bool STAGED=STAGES_D||STAGES_AUX;\nconstexpr int BUFFERS=GEMMEPI_BUFFERS;\nconstexpr int STAGED_BYTES=16*LINE,WARPS=CONSUMERS*4;\n\nconstexpr int LOADED_AUX=LOADS_AUX?HALVES_SAVED:0;\n\n\nconstexpr bool IN_PLACE=(GATED||LOADS_RESIDUAL)&&STAGES_D&& !COPIES_D&&LOADED_AUX==HALVES_OUT;\n"
"constexpr int STAGED_D=STAGES_D?HALVES_OUT:0;\nconstexpr int STAGED_MATRICES=(IN_PLACE?0:STAGED_D)+(STAGES_AUX?HALVES_IN:0);\nconstexpr int LOADED_MATRICES=LOADED_AUX +(LOADS_RESIDUAL?HALVES_OUT:0),LOADED_BUFFERS=LOADED_MATRICES?2:0;\n\n"
"constexpr u32 LOADED=STAGES*STAGE_BYTES+WARPS*BUFFERS*STAGED_MATRICES*STAGED_BYTES;\nconstexpr u32 FULL=LOADED+WARPS*LOADED_BUFFERS*LOADED_MATRICES*STAGED_BYTES;\nconstexpr u32 EMPTY=FULL+STAGES*8,ARRIVED=EMPTY+STAGES*8;\n\n"
"constexpr int SUMMED=GEMMEPI_SUMMED,SUMMERS=SUMMED?3:0,SUMMED_LINES=SUMMED==1?TILE_M:TILE_N;\nconstexpr u32 RECEIVED=ARRIVED+WARPS*16,TOTALS=RECEIVED +(SPLIT>1?16:0);\n\n\nconstexpr int UNIT_GROUPS=GATED?1:2;\nconstexpr u32 SLOT_BYTES=UNIT_GROUPS*HALVES_OUT*WARPGROUP*4,SLOTS=TOTALS;\n"
"constexpr u32 LEFT=SLOTS+CONSUMERS*SLOT_BYTES,TAKEN=LEFT+CONSUMERS*8;\n#ifdef GEMMEPI_SHARED\nstatic_assert(TOTALS +(SUMMED?SUMMERS*16*8:HAS_BGRAD?TAKEN+CONSUMERS*8-TOTALS:0)==GEMMEPI_SHARED,\n\"the host counts the same\");\n#endif\n\n"
"constexpr bool AHEAD= !BIAS_FIRST&&SPLIT==1&&PARTS*TILE_N<=256&&GEMMEPI_APPLIED&& !(GATED&&WRITES_AUX);\nconstexpr bool ALL_AHEAD=GEMMEPI_BIAS_AHEAD;\n\nconstexpr bool SHARES_LAST=PING_PONG&&PARTS==2;\nconstexpr int COMPILER=__CUDACC_VER_MAJOR__*100+__CUDACC_VER_MINOR__;\n\n\n\n\n"
"constexpr bool ROLLS=HAS_BGRAD?GATED||ACTIVATION==GELU_ERF||BOX_GROUPS==1||(ACTIVATION==ELU&&COMPILER>=1300)\n:COMPILER<1300&&BOX_GROUPS==1&&GATED&&WRITES_AUX&&ACTIVATION==MISH;\n"
"static_assert(!HAS_BGRAD||(SHARES_LAST&& !SUMMED&&GROUPS/UNIT_GROUPS%2==0),\"a warp of its own for each warpgroup's sums\");\nstatic_assert(TILE_COLUMNS%BOX_COLUMNS==0,\"tiles are of whole boxes\");\nstatic_assert(!ALL_AHEAD||(AHEAD&& !ROLLS),\"a box's bias is found by a constant\");\n",
"static_assert(GEMMEPI_ELEMENT==2||(A_ROWS&&B_ROWS&& !SUMMED),\"wgmma takes wider elements along k alone\");\nstatic_assert(SPLIT==1||(!PING_PONG&&CLUSTER_M*CLUSTER_N==1),\"a cluster is one tile's\");\n\nconstexpr bool NEEDS_REGISTERS=\n!SUMMED&&(TILE_N==192||(HAS_BGRAD&& !LOADS_MASK)||\n"
"(TILE_N==128&&GATED&&(((WRITES_AUX||BACKWARD)&& !GEMMEPI_APPLIED)||__CUDACC_VER_MAJOR__<13)));\nconstexpr int PRODUCER_REGISTERS=NEEDS_REGISTERS?24:40,CONSUMER_REGISTERS=NEEDS_REGISTERS?240:232;\n"
"static_assert(PRODUCER_REGISTERS+CONSUMERS*CONSUMER_REGISTERS<=504,\"setmaxnreg waits for ever\");\n\n\n\n__device__ inline u32 shared_address(const void*p){\nreturn(u32)__cvta_generic_to_shared(p);\n}\n__device__ inline u32 cluster_rank(){\nu32 rank;\n"
"asm volatile(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));\nreturn rank;\n}\n\n__device__ inline void cluster_barrier(){\nasm volatile(\"barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;\" ::: \"memory\");\n}\n\n__device__ inline void cluster_meets(){\n"
"asm volatile(\"barrier.cluster.arrive.relaxed.aligned;\\nbarrier.cluster.wait.aligned;\" ::: \"memory\");\n}\n__device__ inline void barrier_init(u32 barrier,u32 count){\nasm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\" ::\"r\"(barrier),\"r\"(count): \"memory\");\n}\n"
"__device__ inline void barrier_expect(u32 barrier,u32 bytes){\nasm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\" ::\"r\"(barrier),\"r\"(bytes): \"memory\");\n}\n\n__device__ inline void barrier_wait(u32 barrier,u32 parity){\nasm volatile(\"{\\n\"\n\".reg .pred done;\\n\"\n"
"\"again:\\n\"\n\"mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\\n\"\n\"@!done bra again;\\n\"\n\"}\" ::\"r\"(barrier),\n\"r\"(parity)\n: \"memory\");\n}\n\n__device__ inline u32 address_in(u32 address,u32 rank){\nu32 there;\n"
"asm(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(there): \"r\"(address),\"r\"(rank));\nreturn there;\n}\n\n__device__ inline void barrier_arrive(u32 barrier_there){\nasm volatile(\"mbarrier.arrive.shared::cluster.b64 _, [%0];\" ::\"r\"(barrier_there): \"memory\");\n}\n"
"__device__ inline void barrier_arrive_here(u32 barrier){\nasm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\" ::\"r\"(barrier): \"memory\");\n}\n\ntemplate<bool Multicast>\n__device__ inline void load_box(const gemmepi__tensor_map&map,u32 to,u32 barrier,int x,int y,int item,u16 mask){\n"
"if(Multicast)\nasm volatile(\"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster \"\n\"[%0], [%1, {%3, %4, %5}], [%2], %6;\" ::\"r\"(to),\n\"l\"(&map),\"r\"(barrier),\"r\"(x),\"r\"(y),\"r\"(item),\"h\"(mask)\n: \"memory\");\nelse\n"
"asm volatile(\"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes \"\n\"[%0], [%1, {%3, %4, %5}], [%2];\" ::\"r\"(to),\n\"l\"(&map),\"r\"(barrier),\"r\"(x),\"r\"(y),\"r\"(item)\n: \"memory\");\n}\n\n\n\nconstexpr bool ELECTS=\n"
"BACKWARD||GATED||WRITES_AUX||ACTIVATION==NONE||ACTIVATION==RELU||ACTIVATION==SILU||ACTIVATION==SQUARED_RELU;\n__device__ inline bool is_elected(){\nu32 is=threadIdx.x%32==0;\nif(ELECTS)\n"
"asm volatile(\"{\\n.reg .pred is;\\nelect.sync _|is, 0xffffffff;\\nselp.u32 %0, 1, 0, is;\\n}\" : \"=r\"(is));\nreturn is;\n}\n__device__ inline void prefetch_map(const gemmepi__tensor_map&map){\nasm volatile(\"prefetch.tensormap [%0];\" ::\"l\"(&map): \"memory\");\n}\n"
"__device__ inline void turn_wait(int which){\nasm volatile(\"bar.sync %0, %1;\" ::\"r\"(1+which),\"n\"(CONSUMERS*WARPGROUP): \"memory\");\n}\n__device__ inline void turn_give(int which){\nasm volatile(\"bar.arrive %0, %1;\" ::\"r\"(1+which),\"n\"(CONSUMERS*WARPGROUP): \"memory\");\n}\n"
"__device__ inline void multiply_begin(){\nasm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n}\n__device__ inline void multiply_commit(){\nasm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n}\ntemplate<int Left>__device__ inline void multiply_wait(){\n",
"asm volatile(\"wgmma.wait_group.sync.aligned %0;\" ::\"n\"(Left): \"memory\");\n}\n\n\n\n#define GEMMEPI_8(list, i) list(i), list(i + 1), list(i + 2), list(i + 3), list(i + 4), list(i + 5), list(i + 6), list(i + 7)\n"
"#define GEMMEPI_32(list, i) GEMMEPI_8(list, i), GEMMEPI_8(list, i + 8), GEMMEPI_8(list, i + 16), GEMMEPI_8(list, i + 24)\n#define GEMMEPI_SUM(i) \"+f\"(sums[i])\n#define GEMMEPI_0_TO_31 \\\n\"%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, \" \\\n"
"\"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31\"\n#define GEMMEPI_32_TO_63 \\\n\"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, \" \\\n\"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63\"\n"
"#define GEMMEPI_64_TO_95 \\\n\"%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, \" \\\n\"%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95\"\n#define GEMMEPI_96_TO_127 \\\n"
"\"%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, \" \\\n\"%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127\"\n#if GEMMEPI_TILE_N == 64\n#define GEMMEPI_NAMES GEMMEPI_0_TO_31\n"
"#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0)\n#define GEMMEPI_ADDS \"%34\"\n#define GEMMEPI_MATRICES \"%32, %33\"\n#define GEMMEPI_TRANSPOSED \", %35, %36\"\n#elif GEMMEPI_TILE_N == 128\n#define GEMMEPI_NAMES GEMMEPI_0_TO_31 \", \" GEMMEPI_32_TO_63\n"
"#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0), GEMMEPI_32(GEMMEPI_SUM, 32)\n#define GEMMEPI_ADDS \"%66\"\n#define GEMMEPI_MATRICES \"%64, %65\"\n#define GEMMEPI_TRANSPOSED \", %67, %68\"\n#elif GEMMEPI_TILE_N == 192\n"
"#define GEMMEPI_NAMES GEMMEPI_0_TO_31 \", \" GEMMEPI_32_TO_63 \", \" GEMMEPI_64_TO_95\n#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0), GEMMEPI_32(GEMMEPI_SUM, 32), GEMMEPI_32(GEMMEPI_SUM, 64)\n#define GEMMEPI_ADDS \"%98\"\n#define GEMMEPI_MATRICES \"%96, %97\"\n"
"#define GEMMEPI_TRANSPOSED \", %99, %100\"\n#else\n#define GEMMEPI_NAMES GEMMEPI_0_TO_31 \", \" GEMMEPI_32_TO_63 \", \" GEMMEPI_64_TO_95 \", \" GEMMEPI_96_TO_127\n#define GEMMEPI_SUMS \\\nGEMMEPI_32(GEMMEPI_SUM,0),GEMMEPI_32(GEMMEPI_SUM,32),GEMMEPI_32(GEMMEPI_SUM,64),GEMMEPI_32(GEMMEPI_SUM,96)\n"
"#define GEMMEPI_ADDS \"%130\"\n#define GEMMEPI_MATRICES \"%128, %129\"\n#define GEMMEPI_TRANSPOSED \", %131, %132\"\n#endif\n#if GEMMEPI_ELEMENT == 4\n#undef GEMMEPI_TRANSPOSED\n#define GEMMEPI_TRANSPOSED \"\"\n#define GEMMEPI_STEP_K \"k8\"\n#else\n#define GEMMEPI_STEP_K \"k16\"\n#endif\n"
"#define GEMMEPI_TEXT_OF(x) #x\n#define GEMMEPI_TEXT(x) GEMMEPI_TEXT_OF(x)\n\n\n__device__ inline void multiply(float(&sums)[TILE_N/2],u64 a,u64 b,int adds){\nasm volatile(\"{\\n\"\n\".reg .pred adds;\\n\"\n\"setp.ne.b32 adds, \" GEMMEPI_ADDS \", 0;\\n\"\n"
"\"wgmma.mma_async.sync.aligned.m64n\" GEMMEPI_TEXT(GEMMEPI_TILE_N)GEMMEPI_STEP_K \".f32.\" GEMMEPI_OPERANDS\n\".\" GEMMEPI_OPERANDS \" {\" GEMMEPI_NAMES \"}, \" GEMMEPI_MATRICES \", adds, 1, 1\" GEMMEPI_TRANSPOSED \";\\n\"\n\"}\"\n:GEMMEPI_SUMS\n"
": \"l\"(a),\"l\"(b),\"r\"(adds),\"n\"(!A_ROWS),\"n\"(!B_ROWS));\n}\n\n\n__device__ inline void sums_are_there(float(&sums)[TILE_N/2]){\n#pragma unroll\nfor(int i=0;i<TILE_N/2;i++)\nasm volatile(\"\" : \"+f\"(sums[i])::\"memory\");\n}\n\n\n"
"__device__ inline void begin_sums(float(&sums)[PARTS][TILE_N/2]){\nif(__CUDACC_VER_MAJOR__<13)\n#pragma unroll\nfor(int i=0;i<PARTS*TILE_N/2;i++)\nsums[i/(TILE_N/2)][i%(TILE_N/2)]=0;\n}\n\n\n\n__device__ inline u64 descriptor(u32 address){\n"
"return(u64)1<<62|(u64)(1024>>4)<<32|(u64)(BOX>>4)<<16|(u64)(address>>4&0x3fff);\n}\n\nconstexpr int STEP_BYTES=32,STEPS=LINE/STEP_BYTES;\ntemplate<bool Rows>constexpr u64 STEP=(Rows?STEP_BYTES:STEP_BYTES/2*LINE)>>4;\n\n\n\nstruct Tile{\nint m,n;\nu32 item;\n};\n\n\n\n"
"__device__ inline Tile tile_of(const gemmepi__sm90_params&p,u32 t,u32 rank){\nu32 of_item=p.cluster_rows*p.cluster_columns,item=t/of_item,rest=t-item*of_item;\n",
"u32 of_band=p.band*p.cluster_columns,band=rest/of_band,first=band*p.band;\nu32 height=p.cluster_rows-first<p.band?p.cluster_rows-first:p.band,within=rest-band*of_band;\nu32 column=within/height,row=first+within-column*height;\nu32 place=SPLIT>1?0:rank;\n"
"return{(int)(row*CLUSTER_M+place%CLUSTER_M),(int)(column*CLUSTER_N+place/CLUSTER_M),item};\n}\n\n\n\n\n__device__ inline int begin_of_k(const gemmepi__sm90_params&p,u32 part){\nreturn SPLIT>1?(int)((u32)((p.k+TILE_K-1)/TILE_K)*part/SPLIT):0;\n}\n"
"__device__ inline int end_of_k(const gemmepi__sm90_params&p,u32 part){\nreturn SPLIT>1?begin_of_k(p,part+1):(p.k+TILE_K-1)/TILE_K;\n}\n\n\n__device__ inline int column_of(const gemmepi__sm90_params&p,const Tile&tile,int line){\nint half=HALVES_IN==2&&line>=TILE_COLUMNS;\n"
"return tile.n*TILE_COLUMNS+line-half*TILE_COLUMNS+half*(int)p.epilogue.n;\n}\n\n\n\n\nconstexpr bool TAILS=GEMMEPI_TAILS;\nconstexpr int A_LINES=TILE_M/CLUSTER_N,B_LINES=TILE_N/CLUSTER_M;\nconstexpr int B_BOX=B_LINES>TILE_COLUMNS?TILE_COLUMNS:B_LINES;\n\n\n"
"template<bool Rows>__device__ inline u32 tail_bytes(int left,int lines){\nint there=left<0?0:left<lines?left:lines;\nreturn(u32)(Rows?there:(there+63)/64*64)*LINE;\n}\n__device__ inline u32 stage_bytes(const gemmepi__sm90_params&p,const Tile&tile){\n"
"u32 a=TAILS?tail_bytes<A_ROWS>((int)p.epilogue.m-tile.m*TILE_M,TILE_M):A_BYTES;\nu32 b=TAILS?HALVES_IN*tail_bytes<B_ROWS>((int)p.epilogue.n-tile.n*TILE_COLUMNS,TILE_COLUMNS):B_BYTES;\nreturn a+b;\n}\n\ntemplate<int Lines,bool Multicast>\n"
"__device__ inline void load_lines(const gemmepi__tensor_map&map,const gemmepi__tensor_map&tail,int left,u32 to,u32 barrier,\nint x,int y,int item,u16 mask){\nif(!TAILS||left>=Lines)\nload_box<Multicast>(map,to,barrier,x,y,item,mask);\nelse if(left>0)\n"
"load_box<Multicast>(tail,to,barrier,x,y,item,mask);\n}\n\n\n\n__device__ inline void produce(const gemmepi__sm90_params&p,u32 shared,u32 rank,u32 first,u32 step){\nu32 row=SPLIT>1?0:rank%CLUSTER_M,column=SPLIT>1?0:rank/CLUSTER_M;\nu16 row_mask=0,column_mask=0;\nfor(int i=0;i<CLUSTER_N;i++)\n"
"row_mask|=(u16)(1<<(row+i*CLUSTER_M));\nfor(int i=0;i<CLUSTER_M;i++)\ncolumn_mask|=(u16)(1<<(column*CLUSTER_M+i));\nu32 stage=0,parity=1;\nfor(u32 t=first;t<p.tiles;t +=step){\nTile tile=tile_of(p,t,rank);\nasm volatile(\"\" : \"+r\"(tile.m),\"+r\"(tile.n),\"+r\"(tile.item));\nif(t==first)\n"
"after_launches_before();\nint m=tile.m*TILE_M +(int)column*A_LINES;\nint a_item=p.a_items?(int)tile.item:0,b_item=p.b_items?(int)tile.item:0;\nfor(int block=begin_of_k(p,rank);block<end_of_k(p,rank);block++){\nif(TAILS)\nasm volatile(\"\" : \"+r\"(m),\"+r\"(tile.m),\"+r\"(tile.n));\n"
"int k=block*TILE_K,rows_left=(int)p.epilogue.m-m,columns_left=(int)p.epilogue.n-tile.n*TILE_COLUMNS;\nu32 full=shared+FULL+stage*8,a=shared+stage*STAGE_BYTES+column*A_LINES*LINE;\nu32 b=shared+stage*STAGE_BYTES+A_BYTES;\nbarrier_wait(shared+EMPTY+stage*8,parity);\n"
"barrier_expect(full,stage_bytes(p,tile));\nif(A_ROWS){\nload_lines<A_LINES,(CLUSTER_N>1)>(p.a,p.a_tail,rows_left,a,full,k,m,a_item,row_mask);\n}else{\n#pragma unroll\nfor(int i=0;i<A_LINES;i +=64)\nif(!TAILS||i<rows_left)\nload_box<(CLUSTER_N>1)>(p.a,a+i*LINE,full,m+i,k,a_item,row_mask);\n}\n"
"if(B_ROWS){\n#pragma unroll\nfor(int i=0;i<B_LINES;i +=B_BOX){\nint line=(int)row*B_LINES+i;\nload_lines<B_BOX,(CLUSTER_M>1)>(p.b,p.b_tail,columns_left-line%TILE_COLUMNS,b+line*LINE,\nfull,k,column_of(p,tile,line),b_item,column_mask);\n}\n}else{\n#pragma unroll\nfor(int i=0;i<TILE_N;i +=64)\n"
"if((i/64+block)%CLUSTER_M==(int)row&&(!TAILS||i%TILE_COLUMNS<columns_left))\nload_box<(CLUSTER_M>1)>(p.b,b+i*LINE,full,column_of(p,tile,i),k,b_item,column_mask);\n}\nif(++stage==STAGES)\nstage=0,parity ^=1;\n}\n}\n}\n\n\n\n\n"
"__device__ inline int columns_left(const gemmepi__sm90_params&p,const Tile&tile,int group){\nreturn(int)p.epilogue.n-tile.n*TILE_COLUMNS-lane_of_row()*2-group*GROUP;\n}\n\ntemplate<int Groups>\n",
"__device__ inline void load_groups(const gemmepi__sm90_params&p,const Tile&tile,int first_group,\nOf_columns(&columns)[Groups]){\n#pragma unroll\nfor(int i=0;i<Groups;i++){\nlong long column=tile.n*TILE_COLUMNS+lane_of_row()*2 +(first_group+i)*GROUP;\n"
"columns[i]=load_columns(p.epilogue,tile.item,column,columns_left(p,tile,first_group+i));\n}\n}\n\n\n__device__ inline void begin_sums(const Of_columns(&bias)[GROUPS],float(&sums)[PARTS][TILE_N/2]){\nif constexpr(!BIAS_FIRST){\nbegin_sums(sums);\n}else{\n#pragma unroll\n"
"for(int i=0;i<HALVES_IN*GROUPS;i++){\nint half=i/GROUPS,group=i%GROUPS;\nAcc values[RUN];\nto_accs(bias[group].bias[half],values);\n\n#pragma unroll\nfor(int j=0;j<(sizeof(GEMMEPI_BIAS_TYPE)==4&& !ALIGNED?RUN:0);j++)\nasm volatile(\"add.f32 %0, %0, 0f80000000;\" : \"+f\"(values[j]));\n"
"#pragma unroll\nfor(int j=0;j<PARTS*2*RUN;j++)\nsums[j/(2*RUN)][(half*TILE_COLUMNS+group*GROUP)/2+j%(2*RUN)]=\nvalues[j%(2*RUN)/4*2+j%2];\n}\n}\n}\n\n\n\nstruct Staging{\nu32 first;\nu32 line;\nint turn;\nu32 inputs,arrived;\nu32 asked,taken;\n};\n\n\n"
"__device__ inline u32 place_in_box(const Staging&staging,int half,int group){\nu32 unit=BOX_GROUPS==1?threadIdx.x%4/2:group*4+threadIdx.x%32/8;\nreturn(half*8+staging.line)*LINE +((unit ^ staging.line)<<4)+(BOX_GROUPS==1?threadIdx.x%2*8:0);\n}\n"
"__device__ inline u32 staged_at(const Staging&staging,int matrix,int half,int group){\nreturn staging.first +(staging.turn*STAGED_MATRICES+matrix)*STAGED_BYTES+place_in_box(staging,half,group);\n}\n__device__ inline u32 loaded_at(const Staging&staging,int matrix,int half,int group){\n"
"return staging.inputs +(staging.taken%2*LOADED_MATRICES+matrix)*STAGED_BYTES +\nplace_in_box(staging,half,group);\n}\n\n__device__ inline void load_result_box(const gemmepi__tensor_map&map,u32 to,u32 barrier,int column,int row,int half,\nint item){\n"
"asm volatile(\"cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes \"\n\"[%0], [%1, {%3, %4, %5, %6}], [%2];\" ::\"r\"(to),\n\"l\"(&map),\"r\"(barrier),\"r\"(column),\"r\"(row),\"r\"(half),\"r\"(item)\n: \"memory\");\n}\n\n\n"
"template<int Left>__device__ inline void wait_for_stores(){\nasm volatile(\"cp.async.bulk.wait_group.read %0;\" ::\"n\"(Left): \"memory\");\n}\n\n\n__device__ inline void ask_for_inputs(const gemmepi__sm90_params&p,Staging&staging,const Tile&tile,int row,int group){\nif(LOADED_MATRICES==0)\n"
"return;\n__syncwarp();\nif(is_elected()){\nif(IN_PLACE&&staging.asked==staging.taken)\nwait_for_stores<1>();\nelse if(IN_PLACE)\nwait_for_stores<0>();\nu32 buffer=staging.asked%2,barrier=staging.arrived+buffer*8;\nu32 to=staging.inputs+buffer*LOADED_MATRICES*STAGED_BYTES;\n"
"int column=tile.n*TILE_COLUMNS+group*GROUP;\nbarrier_expect(barrier,LOADED_MATRICES*STAGED_BYTES);\n#pragma unroll\nfor(int half=0;half<LOADED_AUX;half++)\nload_result_box(p.aux,to+half*STAGED_BYTES,barrier,column,row,half,tile.item);\n#pragma unroll\n"
"for(int half=0;half<LOADED_MATRICES-LOADED_AUX;half++)\nload_result_box(p.residual,to +(LOADED_AUX+half)*STAGED_BYTES,barrier,column,row,half,tile.item);\n}\nstaging.asked++;\n}\n__device__ inline void wait_for_inputs(const Staging&staging){\nif(LOADED_MATRICES)\n"
"barrier_wait(staging.arrived+staging.taken%2*8,staging.taken/2&1);\n}\n\n\n__device__ inline void begin_staging(){\nwait_for_stores<BUFFERS-1>();\n__syncwarp();\n}\n\n__device__ inline void store_box(const gemmepi__tensor_map&map,u32 from,int column,int row,int half,int item){\n"
"asm volatile(\"cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];\" ::\"l\"(&map),\n\"r\"(from),\"r\"(column),\"r\"(row),\"r\"(half),\"r\"(item)\n: \"memory\");\n}\n\n\n__device__ inline u32 box_at(const Staging&staging){\n"
"return IN_PLACE?staging.inputs+staging.taken%2*LOADED_MATRICES*STAGED_BYTES\n:staging.first+staging.turn*STAGED_MATRICES*STAGED_BYTES;\n}\n\ntemplate<class T>\n__device__ inline void copy_matrix(const gemmepi__epilogue_params&p,const gemmepi__kernel_matrix&x,u32 from,int column,\n",
"int row,int half,int item){\ncopy_box<T,BOX_COLUMNS,true>(from,(T*)x.data+offset(x,item,row,column+half*p.n),x.ld,(int)p.m-row,\n(int)p.n-column);\n}\n\n__device__ inline void end_staging(const gemmepi__sm90_params&p,Staging&staging,int column,int row,int item){\n"
"constexpr int moved_d=COPIES_D?0:STAGED_D,moved_aux=COPIES_AUX?0:STAGED_MATRICES-STAGED_D;\nif(moved_d||moved_aux)\nasm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n__syncwarp();\nif((moved_d||moved_aux)&&is_elected()){\nu32 from=box_at(staging);\n#pragma unroll\n"
"for(int half=0;half<moved_d;half++)\nstore_box(p.d,from+half*STAGED_BYTES,column,row,half,item);\n#pragma unroll\nfor(int half=0;half<moved_aux;half++)\nstore_box(p.aux,from +(half+STAGED_D)*STAGED_BYTES,column,row,half,item);\nasm volatile(\"cp.async.bulk.commit_group;\" ::: \"memory\");\n}\n"
"#pragma unroll\nfor(int half=0;half<(COPIES_D?STAGED_D:0);half++)\ncopy_matrix<GEMMEPI_D_TYPE>(p.epilogue,p.epilogue.d,box_at(staging)+ half*STAGED_BYTES,column,row,half,item);\n#pragma unroll\nfor(int half=0;half<(COPIES_AUX?STAGED_MATRICES-STAGED_D:0);half++)\n"
"copy_matrix<GEMMEPI_AUX_TYPE>(p.epilogue,p.epilogue.aux,box_at(staging)+(half+STAGED_D)*STAGED_BYTES,column,\nrow,half,item);\nstaging.turn=staging.turn+1==BUFFERS?0:staging.turn+1;\n}\n\n\n\nstruct Box{\nfloat at[HALVES_IN][BOX_COLUMNS/8][4];\n};\n\n\n"
"__device__ inline Box box_of(const float(&sums)[TILE_N/2],int group){\nBox box;\n#pragma unroll\nfor(int j=0;j<HALVES_IN*BOX_COLUMNS/2;j++)\nbox.at[j/(BOX_COLUMNS/2)][j%(BOX_COLUMNS/2)/4][j%4]=\nsums[(j/(BOX_COLUMNS/2)*TILE_COLUMNS+group*GROUP)/2+j%(BOX_COLUMNS/2)];\nreturn box;\n}\n\n"
"__device__ inline void drop_first_box(float(&sums)[TILE_N/2]){\n#pragma unroll\nfor(int i=0;i+BOX_COLUMNS/2<TILE_N/2;i++)\nsums[i]=sums[i+BOX_COLUMNS/2];\n}\n\n\n\n\nconstexpr int MASK_WORDS=TILE_COLUMNS/32;\nstruct alignas(MASK_WORDS==4?16:8)Masks{\nu32 words[MASK_WORDS];\n};\n\n"
"__device__ inline Masks load_masks(const gemmepi__sm90_params&params,const Tile&tile,int row){\nconst gemmepi__epilogue_params&p=params.epilogue;\nMasks masks={};\nint column=tile.n*TILE_COLUMNS;\nrow +=(int)threadIdx.x%32/16*64+threadIdx.x%16;\nif(!LOADS_MASK||row>=(int)p.m)\nreturn masks;\n"
"const u8*bytes=(const u8*)p.aux.data+offset(p.aux,tile.item,row,column)/8;\nif(column+TILE_COLUMNS<=(int)p.n)\nmasks= *reinterpret_cast<const Masks*>(bytes);\nelse\n#pragma unroll\nfor(int i=0;i<MASK_WORDS*4;i++)\nif(column+i*8<(int)p.n)\nmasks.words[i/4]|=(u32)bytes[i]<<i%4*8;\nreturn masks;\n"
"}\n\n__device__ inline u32 mask_of(const Masks&masks,int part,int half,int group){\nu32 word=masks.words[0];\n#pragma unroll\nfor(int i=1;i<MASK_WORDS;i++)\nword=group==i?masks.words[i]:word;\nreturn __shfl_sync(0xffffffffu,word,part*16+half*8 +(int)threadIdx.x%32/4);\n}\n\n\n\n\n"
"typedef Column_sums<(GEMMEPI_EXACT||(GATED?UPSTREAM&&GEMMEPI_APPLIED: !GEMMEPI_APPLIED))>Box_sums[BOX_GROUPS];\n\n\n__device__ inline u32 slot_at(u32 shared,u32 group,u32 thread,int i,int half){\nreturn shared+SLOTS+group*SLOT_BYTES +((half*UNIT_GROUPS+i)*WARPGROUP+thread)*4;\n}\n\n"
"__device__ inline void leave_column_sums(u32 shared,u32 group,u32 thread,int first_group,const Box_sums&sums){\n#pragma unroll\nfor(int g=0;g<BOX_GROUPS;g++){\nint unit=(first_group+g)/UNIT_GROUPS,i=(first_group+g)%UNIT_GROUPS;\nif(i==0)\nbarrier_wait(shared+TAKEN+group*8,unit%2 ^ 1);\n"
"#pragma unroll\nfor(int half=0;half<HALVES_OUT;half++)\nasm volatile(\"st.shared.f32 [%0], %1;\" ::\"r\"(slot_at(shared,group,thread,i,half)),\"f\"(sums[g].sum(half))\n: \"memory\");\nif(i+1==UNIT_GROUPS){\n__syncwarp();\nif(thread%32==0)\nbarrier_arrive_here(shared+LEFT+group*8);\n}\n}\n}\n\n"
"__device__ inline Acc*line_of_sums(const gemmepi__sm90_params&params,const Tile&tile,int half){\nconst gemmepi__epilogue_params&p=params.epilogue;\nreturn(Acc*)p.partials +(((long long)tile.item*p.row_tiles+tile.m)*HALVES_OUT+half)*p.n;\n}\n"
"__device__ inline Acc sum_of_warps(Acc first,Acc second,Acc third,Acc fourth){\n",
"return(first+second)+(third+fourth);\n}\n\n\n__device__ inline void add_column_sums(const gemmepi__sm90_params&p,u32 shared,u32 rank,u32 first,u32 step){\nu32 group=__shfl_sync(0xffffffffu,threadIdx.x/32-1,0);\n#pragma unroll 1\nfor(u32 t=first+group*step;t+step<p.tiles;t +=CONSUMERS*step){\n"
"Tile tile=tile_of(p,t,rank);\nbool exists=tile.m*TILE_M<(int)p.epilogue.m;\n#pragma unroll 1\nfor(int unit=0;unit<GROUPS/UNIT_GROUPS;unit++){\nbarrier_wait(shared+LEFT+group*8,unit%2);\n#pragma unroll\nfor(int i=0;i<UNIT_GROUPS*HALVES_OUT;i++){\nint half=i/UNIT_GROUPS,of_unit=i%UNIT_GROUPS;\n"
"int column=tile.n*TILE_COLUMNS +(unit*UNIT_GROUPS+of_unit)*GROUP+Column_sums<false>::column();\nAcc sums[4];\n#pragma unroll\nfor(int warp=0;warp<4;warp++)\nasm volatile(\"ld.shared.f32 %0, [%1];\"\n: \"=f\"(sums[warp])\n: \"r\"(slot_at(shared,group,warp*32+threadIdx.x%32,of_unit,half))\n"
": \"memory\");\nif(exists&&column<(int)p.epilogue.n)\nline_of_sums(p,tile,half)[column]=sum_of_warps(sums[0],sums[1],sums[2],sums[3]);\n}\n__syncwarp();\nif(threadIdx.x%32==0)\nbarrier_arrive_here(shared+TAKEN+group*8);\n}\n}\n}\n\n\nstruct Run_place{\nint row,column,valid;\n};\n"
"__device__ inline Run_place place_of_run(const gemmepi__sm90_params&params,const Tile&tile,int row,int half,int group){\nint at=row+threadIdx.x%32/4+half*8,column=tile.n*TILE_COLUMNS+lane_of_row()*2+group*GROUP;\nif(BACKWARD&& !GEMMEPI_APPLIED)\nasm volatile(\"\" : \"+r\"(at),\"+r\"(column));\n"
"return{at,column,at<(int)params.epilogue.m?columns_left(params,tile,group):0};\n}\n\n\n__device__ inline void load_saved_run(const gemmepi__sm90_params&params,Epilogue_state&state,const Staging&staging,\nconst Tile&tile,const Run_place&at,const Masks&masks,int part,int half,\n"
"int group,int g,Saved&saved){\n#pragma unroll\nfor(int i=0;i<LOADED_AUX;i++)\nstate.loaded_aux[i]=loaded_at(staging,i,half,g);\nif(LOADS_MASK)\nstate.loaded_mask=mask_of(masks,part,half,group);\nload_saved(params.epilogue,state,tile.item,at.row,at.column,at.valid,saved);\n}\n\n\n"
"__device__ inline void set_staged(Epilogue_state&state,const Staging&staging,int half,int g){\n#pragma unroll\nfor(int i=0;i<STAGED_D;i++)\nstate.staged_d[i]=IN_PLACE?loaded_at(staging,i,half,g):staged_at(staging,i,half,g);\n#pragma unroll\nfor(int i=0;i<STAGED_MATRICES-STAGED_D;i++)\n"
"state.staged_aux[i]=staged_at(staging,i+STAGED_D,half,g);\n}\n\n\n\nconstexpr bool SAVED_FIRST= !GATED&& !UPSTREAM&& !HAS_RESIDUAL&&(LOADS_AUX||LOADS_MASK);\n\n\nstruct Next_box{\nbool exists;\nint row,group;\n};\n\n\n__device__ inline bool box_is_near(const Saved(&saved)[BOX_GROUPS][2]){\n"
"Near near;\n#pragma unroll\nfor(int i=0;i<BOX_GROUPS*2;i++)\nnear.take_in(saved[i/2][i%2].runs[0]);\nreturn __all_sync(0xffffffffu,near.has_all());\n}\n\n\ntemplate<bool IsNear>\n__device__ inline void finish_runs(const gemmepi__sm90_params&params,Epilogue_state&state,Staging&staging,\n"
"const Tile&tile,int row,int part,int group,const Next_box&next,\nconst Of_columns(&columns)[BOX_GROUPS],const Masks&masks,const Box&box,\nSaved(&saved)[BOX_GROUPS][2],Box_sums&column_sums){\nconst gemmepi__epilogue_params&p=params.epilogue;\n#pragma unroll\nfor(int g=0;g<BOX_GROUPS;g++){\n"
"Acc results[2][HALVES][RUN];\n#pragma unroll\nfor(int half=0;half<2;half++){\nRun_place at=place_of_run(params,tile,row,half,group+g);\nAcc(&v)[HALVES][RUN]=results[half];\n#pragma unroll\nfor(int i=0;i<HALVES_IN*RUN;i++)\nv[i/RUN][i%RUN]=box.at[i/RUN][g*4+i%RUN/2][half*2+i%2];\n"
"set_staged(state,staging,half,g);\n#pragma unroll\nfor(int i=0;i<LOADED_MATRICES-LOADED_AUX;i++)\nstate.loaded_residual[i]=loaded_at(staging,i+LOADED_AUX,half,g);\nstate.mask_place=half+2*g;\nif(!SAVED_FIRST)\n"
"load_saved_run(params,state,staging,tile,at,masks,part,half,group+g,g,saved[g][half]);\nepilogue<IsNear>(p,state,columns[g],saved[g][half],tile.item,at.row,at.column,at.valid,v);\nif(!SAVED_FIRST)\nstore_result(p,state,tile.item,at.row,at.column,at.valid,v);\nif(HAS_BGRAD)\n"
"column_sums[g].add(v,at.row<(int)p.m);\n}\n#pragma unroll\n",
"for(int half=0;half<(SAVED_FIRST?2:0);half++){\nRun_place at=place_of_run(params,tile,row,half,group+g);\nset_staged(state,staging,half,g);\nstore_result(p,state,tile.item,at.row,at.column,at.valid,results[half]);\n}\nif(HAS_BGRAD)\ncolumn_sums[g].end_rows();\nif(IN_PLACE&&g==0&&next.exists)\n"
"ask_for_inputs(params,staging,tile,next.row,next.group);\n}\n}\n\n\n__device__ inline void finish_box(const gemmepi__sm90_params&params,Epilogue_state&state,Staging&staging,\nconst Tile&tile,int row,int part,int group,const Next_box&next,\n"
"const Of_columns(&columns)[BOX_GROUPS],const Masks&masks,const Box&box,\nBox_sums&column_sums){\nconst gemmepi__epilogue_params&p=params.epilogue;\nSaved saved[BOX_GROUPS][2];\nif(!IN_PLACE&&next.exists)\nask_for_inputs(params,staging,tile,next.row,next.group);\nwait_for_inputs(staging);\n"
"#pragma unroll\nfor(int i=0;i<(SAVED_FIRST?BOX_GROUPS*2:0);i++)\nload_saved_run(params,state,staging,tile,place_of_run(params,tile,row,i%2,group+i/2),masks,part,\ni%2,group+i/2,i/2,saved[i/2][i%2]);\nif(STAGED_MATRICES)\nbegin_staging();\nif(LOOKS_NEAR&&box_is_near(saved))\n"
"finish_runs<LOOKS_NEAR>(params,state,staging,tile,row,part,group,next,columns,masks,box,saved,column_sums);\nelse\nfinish_runs<false>(params,state,staging,tile,row,part,group,next,columns,masks,box,saved,column_sums);\nif(KEEPS_MASK)\n"
"store_kept_masks(p,state,tile.item,row,tile.n*TILE_COLUMNS+group*GROUP,BOX_GROUPS);\nif(STAGED)\nend_staging(params,staging,tile.n*TILE_COLUMNS+group*GROUP,row,tile.item);\nstaging.taken++;\n}\n\n\n\n\n\n\nstatic_assert(SPLIT==1||PARTS==1,\"a warp has 16 rows\");\n"
"constexpr u32 FOURS_OF_BOX=HALVES_IN*BOX_COLUMNS/8;\nconstexpr u32 BOX_BYTES=FOURS_OF_BOX*32*16,BOXES=WARPS*(GROUPS/BOX_GROUPS);\nstatic_assert(SPLIT==1||(BOXES%SPLIT==0&&BOXES*BOX_BYTES<=STAGES*STAGE_BYTES),\"the stages have room for them\");\nconstexpr bool STORES_ASYNC=COMPILER>=1201;\n\n"
"struct Boxes{\nu32 rows,columns;\n};\n__device__ inline Boxes boxes_of(const gemmepi__sm90_params&p,const Tile&tile){\nu32 rows=(u32)p.epilogue.m-tile.m*TILE_M,columns=(u32)p.epilogue.n-tile.n*TILE_COLUMNS;\nreturn{((rows<TILE_M?rows:TILE_M)+ 15)/16,\n"
"((columns<TILE_COLUMNS?columns:TILE_COLUMNS)+ BOX_COLUMNS-1)/BOX_COLUMNS};\n}\n\n__device__ inline u32 left_at(u32 slot,u32 from){\nreturn(slot*SPLIT+from)*BOX_BYTES+threadIdx.x%32*16;\n}\n\n__device__ inline void leave_sums(const gemmepi__sm90_params&p,const Tile&tile,u32 shared,u32 rank,\n"
"const float(&sums)[TILE_N/2]){\nBoxes boxes=boxes_of(p,tile);\nu32 row=threadIdx.x/32-4;\nif(STORES_ASYNC&&threadIdx.x==WARPGROUP)\nbarrier_expect(shared+RECEIVED,(boxes.rows*boxes.columns+SPLIT-1-rank)/SPLIT*SPLIT*BOX_BYTES);\n#pragma unroll\nfor(int group=0;group<GROUPS;group +=BOX_GROUPS){\n"
"u32 i=group/BOX_GROUPS*boxes.rows+row;\nu32 there=address_in(shared,i%SPLIT),to=there+left_at(i/SPLIT,rank);\nBox box=box_of(sums,group);\nif(row>=boxes.rows||group/BOX_GROUPS>=boxes.columns)\ncontinue;\n#pragma unroll\nfor(int j=0;j<FOURS_OF_BOX;j++){\n"
"const float*four=box.at[j/(BOX_COLUMNS/8)][j%(BOX_COLUMNS/8)];\nif(STORES_ASYNC)\nasm volatile(\"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];\" ::\"r\"(\nto+j*512),\n"
"\"f\"(four[0]),\"f\"(four[1]),\"f\"(four[2]),\"f\"(four[3]),\"r\"(there+RECEIVED)\n: \"memory\");\nelse\nasm volatile(\"st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};\" ::\"r\"(to+j*512),\"f\"(four[0]),\"f\"(four[1]),\n\"f\"(four[2]),\"f\"(four[3])\n: \"memory\");\n}\n}\n}\n\n\n"
"__device__ inline void add_left(u32 shared,u32 slot,Box&box){\nbox={};\n#pragma unroll 1\nfor(u32 block=0;block<SPLIT;block++)\n#pragma unroll\nfor(int j=0;j<FOURS_OF_BOX;j++){\nfloat*four=box.at[j/(BOX_COLUMNS/8)][j%(BOX_COLUMNS/8)],x[4];\n"
"asm volatile(\"ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\"\n: \"=f\"(x[0]),\"=f\"(x[1]),\"=f\"(x[2]),\"=f\"(x[3])\n: \"r\"(shared+left_at(slot,block)+ j*512)\n: \"memory\");\n#pragma unroll\nfor(int i=0;i<4;i++)\nfour[i]+=x[i];\n}\n}\n\n",
"__device__ inline void finish_left(const gemmepi__sm90_params&p,Epilogue_state&state,Staging&staging,\nconst Tile&tile,u32 shared,u32 rank){\nBoxes boxes=boxes_of(p,tile);\nfor(u32 slot=threadIdx.x/32-4;slot*SPLIT+rank<boxes.rows*boxes.columns;slot +=WARPS){\nu32 i=slot*SPLIT+rank;\n"
"int group=(int)(i/boxes.rows)*BOX_GROUPS,row=tile.m*TILE_M +(int)(i%boxes.rows)*16;\nOf_columns columns[BOX_GROUPS];\nload_groups(p,tile,group,columns);\nask_for_inputs(p,staging,tile,row,group);\nMasks masks=load_masks(p,tile,row);\nBox box;\nadd_left(shared,slot,box);\nBox_sums none;\n"
"finish_box(p,state,staging,tile,row,0,group,{false,0,0},columns,masks,box,none);\n}\n}\n\n\n\nconstexpr u32 PART_BYTES=64*TILE_N*4;\n\n\n\nstruct Parked{\nu32 first,rest;\n};\nconstexpr u32 FOURS=WARPGROUP*16;\n__device__ inline u32 parked_at(const Parked&parked,u32 four,u32 thread){\n"
"u32 at=four*FOURS;\nreturn(at<STAGE_BYTES?parked.first+at:parked.rest +(at-STAGE_BYTES))+ thread*16;\n}\n\n__device__ inline void park(const Parked&parked,u32 thread,const float(&sums)[TILE_N/2]){\n#pragma unroll\nfor(int i=0;i<TILE_N/8;i++)\n"
"asm volatile(\"st.shared.v4.f32 [%0], {%1, %2, %3, %4};\" ::\"r\"(parked_at(parked,i,thread)),\"f\"(sums[i*4]),\n\"f\"(sums[i*4+1]),\"f\"(sums[i*4+2]),\"f\"(sums[i*4+3])\n: \"memory\");\n}\n\n\n\n\n\n\nconstexpr u32 PARKED_STAGES=(PART_BYTES+STAGE_BYTES-1)/STAGE_BYTES;\n"
"constexpr int LAST_BLOCKS=STAGES -(int)PARKED_STAGES;\nstatic_assert(!SHARES_LAST||(LAST_BLOCKS>0&&PARKED_STAGES<=2&&STAGE_BYTES%FOURS==0),\"the stages have room\");\n\n\n__device__ inline Parked parked_in(u32 shared,u32 stage){\n"
"return{shared+stage*STAGE_BYTES,shared +(stage+1==STAGES?0:stage+1)*STAGE_BYTES};\n}\n__device__ inline void read_parked(const Parked&parked,u32 thread,float(&sums)[TILE_N/2]){\n#pragma unroll\nfor(int i=0;i<TILE_N/2;i +=4)\nasm volatile(\"ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\"\n"
": \"=f\"(sums[i]),\"=f\"(sums[i+1]),\"=f\"(sums[i+2]),\"=f\"(sums[i+3])\n: \"r\"(parked_at(parked,i/4,thread))\n: \"memory\");\n}\n\n__device__ inline void both_meet(){\nasm volatile(\"bar.sync 6, %0;\\nbar.sync 6, %0;\" ::\"n\"(CONSUMERS*WARPGROUP): \"memory\");\n}\n"
"__device__ inline void meet_summers(){\nasm volatile(\"bar.sync 7, %0;\\nbar.sync 7, %0;\" ::\"n\"(WARPGROUP+SUMMERS*32): \"memory\");\n}\n__device__ inline void warpgroup_meets(int warpgroup){\nasm volatile(\"bar.sync %0, %1;\" ::\"r\"(4+warpgroup),\"n\"(WARPGROUP): \"memory\");\n}\n\n\n"
"__device__ inline void stages_are_left(int blocks){\nif(blocks<STAGES)\nboth_meet();\n}\n\n\n\nstatic_assert(!HAS_BGRAD||(PARKED_STAGES==1&&HALVES_OUT*BOX_COLUMNS*4<=FOURS/4),\"a warp's four are as much\");\nstruct Left_sums{\nu32 of_first,of_second;\n"
"__device__ inline u32 at(u32 part,u32 thread,int group,int half)const{\nreturn(part?of_second:of_first)+ group/BOX_GROUPS*BOX_GROUPS*4*FOURS+thread/32*(FOURS/4)+\n((half*BOX_GROUPS+group%BOX_GROUPS)*32+thread%32)*4;\n}\n"
"__device__ inline void leave(u32 part,u32 thread,int group,const Box_sums&sums)const{\n#pragma unroll\nfor(int i=0;i<BOX_GROUPS*HALVES_OUT;i++)\nasm volatile(\"st.shared.f32 [%0], %1;\" ::\"r\"(at(part,thread,group+i/HALVES_OUT,i%HALVES_OUT)),\n\"f\"(sums[i/HALVES_OUT].sum(i%HALVES_OUT))\n"
": \"memory\");\n}\n\n__device__ inline Acc sum(u32 lane,int group,int half)const{\nAcc of[4];\n#pragma unroll\nfor(u32 warp=0;warp<4;warp++){\nAcc first,second;\nasm volatile(\"ld.shared.f32 %0, [%1];\" : \"=f\"(first): \"r\"(at(0,warp*32+lane,group,half)): \"memory\");\n"
"asm volatile(\"ld.shared.f32 %0, [%1];\" : \"=f\"(second): \"r\"(at(1,warp*32+lane,group,half)): \"memory\");\nof[warp]=first+second;\n}\nreturn sum_of_warps(of[0],of[1],of[2],of[3]);\n}\n};\n__device__ inline Left_sums left_in(u32 shared,u32 stage){\n"
"return{parked_in(shared,stage).first,parked_in(shared,stage).rest};\n}\n\n__device__ inline void store_left_sums(const gemmepi__sm90_params&p,const Tile&tile,const Left_sums&left){\nif(tile.m*TILE_M>=(int)p.epilogue.m)\nreturn;\n",
"for(int warp=(int)threadIdx.x/32-4;warp<HALVES_OUT*GROUPS;warp +=CONSUMERS*4){\nint half=warp/GROUPS,group=warp%GROUPS;\nint column=tile.n*TILE_COLUMNS+group*GROUP+Column_sums<false>::column();\nif(column<(int)p.epilogue.n)\nline_of_sums(p,tile,half)[column]=left.sum(threadIdx.x%32,group,half);\n"
"}\n}\n\n\n\n\nconstexpr u32 TELLERS=CLUSTER_N+CLUSTER_M-1;\n__device__ inline u32 told_by(u32 thread,u32 rank){\nu32 row=rank%CLUSTER_M,column=rank/CLUSTER_M,other=thread-CLUSTER_N;\nreturn SPLIT>1            ?rank\n:thread<CLUSTER_N?row+thread*CLUSTER_M\n"
":column*CLUSTER_M +(other>=row?other+1:other);\n}\n\n\n\n\n\nconstexpr bool SUMMED_ROWS=SUMMED==1?A_ROWS:B_ROWS;\nconstexpr int SLICES=SUMMED_LINES/16;\n\n\n__device__ inline void store_total(const gemmepi__sm90_params&p,u32 item,int at,double sum){\n"
"GEMMEPI_SUMS_TYPE*to=(GEMMEPI_SUMS_TYPE*)p.sums+item*p.sums_stride+at;\nif(GEMMEPI_SUMS_ADD)\nsum +=to_acc<double>(*to);\n*to=from_acc<GEMMEPI_SUMS_TYPE>(sum);\n}\n\n\n__device__ inline int slice_of(const gemmepi__sm90_params&p,const Tile&tile,int summer){\n"
"int across=SUMMED==1?tile.n:tile.m,slice=across+summer*p.sum_tiles;\nreturn across<p.sum_tiles&&slice<SLICES?slice: -1;\n}\n\n\n\nconstexpr int SUMMED_AT_ONCE=64;\nstruct Slice_sums{\nfloat at[SUMMED_ROWS?1:8],before[SUMMED_ROWS?1:8];\n};\n__device__ inline void keep_sums(Slice_sums&sums){\n"
"#pragma unroll\nfor(int i=0;i<(SUMMED_ROWS?1:8);i++){\nsums.before[i]+=sums.at[i];\nsums.at[i]=0;\n}\n}\n\n\n\n__device__ inline u32 slice_lane(int slice){\nu32 pair=threadIdx.x%32/2,half=threadIdx.x%2;\nu32 line=SUMMED_ROWS?slice*16+pair:pair%4*2+pair/4%2+pair/8*8;\n"
"u32 unit=SUMMED_ROWS?half*4:slice%4*2+half;\nreturn(SUMMED==1?0:A_BYTES)+(SUMMED_ROWS?0:slice/4*BOX)+ line*LINE +((unit ^ line%8)<<4);\n}\n__device__ inline u32 slice_at(u32 lane,int i){\nreturn SUMMED_ROWS?lane ^ i<<4:lane+i*16*LINE;\n}\n\n"
"__device__ inline void to_floats(u32 word,float&low,float&high){\nif(GEMMEPI_OPERANDS[0]== 'b'){\nlow=__uint_as_float(word<<16);\nhigh=__uint_as_float(word&0xffff0000);\n}else{\nasm(\"{\\n.reg .b16 low, high;\\nmov.b32 {low, high}, %2;\\ncvt.f32.f16 %0, low;\\ncvt.f32.f16 %1, high;\\n}\"\n"
": \"=f\"(low),\"=f\"(high)\n: \"r\"(word));\n}\n}\n\n__device__ inline void add_stage(u32 lane,Slice_sums&sums){\nu32 words[4][4];\n#pragma unroll\nfor(int i=0;i<4;i++)\nasm volatile(\"ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\"\n"
": \"=r\"(words[i][0]),\"=r\"(words[i][1]),\"=r\"(words[i][2]),\"=r\"(words[i][3])\n: \"r\"(slice_at(lane,i))\n: \"memory\");\nfloat parts[4]={};\n#pragma unroll\nfor(int i=0;i<4;i++)\n#pragma unroll\nfor(int j=0;j<4;j++){\nfloat low,high;\nto_floats(words[i][j],low,high);\nif(SUMMED_ROWS){\n"
"parts[j]+=low+high;\n}else{\nsums.at[SUMMED_ROWS?0:j*2]+=low;\nsums.at[SUMMED_ROWS?0:j*2+1]+=high;\n}\n}\nif(SUMMED_ROWS)\nsums.at[0]+=(parts[0]+ parts[1])+(parts[2]+ parts[3]);\n}\n\n\n__device__ inline int line_of_sum(){\nint lane=threadIdx.x%32;\n"
"return SUMMED_ROWS?(lane%2? -1:lane/2):(lane<16?lane%2*8+lane/2: -1);\n}\n__device__ inline double sum_of_slice(const Slice_sums&sums){\ndouble mine=0;\n#pragma unroll\nfor(int i=0;i<(SUMMED_ROWS?1:8);i++){\ndouble sum=(double)sums.before[i]+ sums.at[i];\n#pragma unroll\n"
"for(int lanes=SUMMED_ROWS?1:2;lanes<=(SUMMED_ROWS?1:16);lanes*=2)\nsum +=__shfl_xor_sync(0xffffffffu,sum,lanes);\nif(SUMMED_ROWS||threadIdx.x%32/2==i)\nmine=sum;\n}\nreturn mine;\n}\n\n__device__ inline void store_sum(const gemmepi__sm90_params&p,const Tile&tile,int line,double sum){\n"
"int at=SUMMED==1?tile.m*TILE_M+line:column_of(p,tile,line);\nint left=SUMMED==1?(int)p.epilogue.m-at:(int)p.epilogue.n-tile.n*TILE_COLUMNS-line%TILE_COLUMNS;\nif(left>0)\nstore_total(p,tile.item,at,sum);\n}\n\n\n__device__ inline u32 total_at(u32 shared,int summer){\n"
"return shared+TOTALS +(summer*16+line_of_sum())*8;\n}\n__device__ inline void leave_total(u32 shared,int summer,double total){\nif(line_of_sum()>=0)\n",
"asm volatile(\"st.shared.f64 [%0], %1;\" ::\"r\"(total_at(shared,summer)),\"d\"(total): \"memory\");\n}\n__device__ inline void store_totals(const gemmepi__sm90_params&p,u32 shared,const Tile&tile,int summer){\nint slice=slice_of(p,tile,summer);\ndouble sum=0;\nif(slice<0||line_of_sum()<0)\n"
"return;\n#pragma unroll 1\nfor(int block=0;block<SPLIT;block++){\ndouble total;\nasm volatile(\"ld.shared::cluster.f64 %0, [%1];\"\n: \"=d\"(total)\n: \"r\"(address_in(total_at(shared,summer),block))\n: \"memory\");\nsum +=total;\n}\nstore_sum(p,tile,slice*16+line_of_sum(),sum);\n}\n\n\n\n"
"__device__ inline void add_operand(const gemmepi__sm90_params&p,u32 shared,u32 rank,u32 first,u32 step){\nint summer=(int)__shfl_sync(0xffffffffu,threadIdx.x/32-1,0);\nbool tells=threadIdx.x%32<TELLERS;\nu32 told=told_by(threadIdx.x%32,rank),empty=address_in(shared+EMPTY,tells?told:rank);\n"
"u32 stage=0,parity=0;\nint blocks=end_of_k(p,rank)- begin_of_k(p,rank);\n#pragma unroll 1\nfor(u32 t=first;t<p.tiles;t +=step){\nint slice=slice_of(p,tile_of(p,t,rank),summer);\nu32 lane=shared+slice_lane(slice<0?0:slice);\nSlice_sums sums={};\n#pragma unroll 1\n"
"for(int block=0;block<blocks;block++){\nbarrier_wait(shared+FULL+stage*8,parity);\nif(slice>=0)\nadd_stage(lane+stage*STAGE_BYTES,sums);\nif(block%SUMMED_AT_ONCE==SUMMED_AT_ONCE-1)\nkeep_sums(sums);\n__syncwarp();\nif(tells)\nbarrier_arrive(empty+stage*8);\nif(++stage==STAGES)\n"
"stage=0,parity ^=1;\n}\nif(slice<0)\ncontinue;\ndouble sum=sum_of_slice(sums);\nif(SPLIT>1)\nleave_total(shared,summer,sum);\nelse if(line_of_sum()>=0)\nstore_sum(p,tile_of(p,t,rank),slice*16+line_of_sum(),sum);\n}\nif(SHARES_LAST)\nmeet_summers();\n}\n\n\n\n"
"__device__ inline void skip_stages(u32&stage,u32&parity,int blocks){\nstage +=(u32)blocks;\nparity ^=stage/STAGES&1;\nstage%=STAGES;\n}\n\n\n__device__ inline void add_up(u32 shared,u32 empty,bool tells,int first_part,int blocks,u32&stage,u32&parity,\nfloat(&sums)[PARTS][TILE_N/2]){\n"
"u32 last=0,adds=0;\n#pragma unroll 1\ndo{\nu64 a=descriptor(shared+stage*STAGE_BYTES+first_part*BOX);\nu64 b=descriptor(shared+stage*STAGE_BYTES+A_BYTES);\nbarrier_wait(shared+FULL+stage*8,parity);\nmultiply_begin();\n#pragma unroll\nfor(int i=0;i<STEPS;i++)\n#pragma unroll\n"
"for(int part=0;part<PARTS;part++)\nmultiply(sums[part],a+part*(BOX>>4)+ i*STEP<A_ROWS>,b+i*STEP<B_ROWS>,\ni>0||BIAS_FIRST?1:adds);\nmultiply_commit();\nmultiply_wait<1>();\nif(tells&&adds)\nbarrier_arrive(empty+last*8);\nasm volatile(\"mov.u32 %0, 1;\" : \"=r\"(adds));\nlast=stage;\n"
"if(++stage==STAGES)\nstage=0,parity ^=1;\n}while(--blocks);\n}\n\n\n\n__device__ inline void add_up_in_turn(u32 shared,u32 adds,u32&stage,u32&parity,float(&sums)[PARTS][TILE_N/2]){\nu32 first=stage;\n#pragma unroll\nfor(int part=0;part<PARTS;part++){\nu32 add=adds;\nstage=first;\n#pragma unroll\n"
"for(int block=0;block<LAST_BLOCKS;block++){\nu64 a=descriptor(shared+stage*STAGE_BYTES),b=descriptor(shared+stage*STAGE_BYTES+A_BYTES);\nif(part==0)\nbarrier_wait(shared+FULL+stage*8,parity);\nmultiply_begin();\n#pragma unroll\nfor(int i=0;i<STEPS;i++)\n"
"multiply(sums[part],a+part*(BOX>>4)+ i*STEP<A_ROWS>,b+i*STEP<B_ROWS>,\ni>0||BIAS_FIRST?1:add);\nadd=1;\nif(++stage==STAGES)\nstage=0,parity ^=part==0;\n}\nmultiply_commit();\n}\nmultiply_wait<1>();\n}\n\n\n"
"__device__ inline void add_up_last(u32 shared,u32 empty,bool tells,u32 group,int blocks,u32&stage,u32&parity,\nfloat(&sums)[PARTS][TILE_N/2],float(&kept)[TILE_N/2]){\nint in_turn=blocks<LAST_BLOCKS?0:LAST_BLOCKS;\nturn_wait((int)group);\nif(in_turn<blocks)\n"
"add_up(shared,empty,tells,0,blocks-in_turn,stage,parity,sums);\nif(in_turn)\nadd_up_in_turn(shared,in_turn<blocks,stage,parity,sums);\nelse\nmultiply_wait<0>();\nsums_are_there(sums[0]);\nif(SUMMED)\nmeet_summers();\nstages_are_left(blocks);\nwarpgroup_meets((int)group);\n"
"park(parked_in(shared,stage),threadIdx.x%WARPGROUP,sums[0]);\nboth_meet();\nmultiply_wait<0>();\nsums_are_there(sums[PARTS-1]);\nmemcpy(kept,sums[PARTS-1],sizeof kept);\n}\n\n\n",
"__device__ inline void add_up_tile(u32 shared,u32 empty,bool tells,u32 group,int first_part,int blocks,u32&stage,\nu32&parity,float(&sums)[PARTS][TILE_N/2]){\nif(PING_PONG)\nturn_wait((int)group);\nadd_up(shared,empty,tells,first_part,blocks,stage,parity,sums);\nif(PING_PONG)\n"
"turn_give(1 -(int)group);\nmultiply_wait<0>();\n#pragma unroll\nfor(int part=0;part<PARTS;part++)\nsums_are_there(sums[part]);\nif(tells)\nbarrier_arrive(empty +(stage?stage-1:STAGES-1)*8);\nif(PING_PONG)\nskip_stages(stage,parity,blocks);\n}\n\n"
"__device__ inline void consume(const gemmepi__sm90_params&p,u32 shared,u32 rank,u32 first,u32 step){\n\nu32 group=__shfl_sync(0xffffffffu,threadIdx.x/WARPGROUP-1,0),thread=threadIdx.x%WARPGROUP;\nu32 stage=0,parity=0,tiles=SPLIT>1?1:(p.tiles-first+step-1)/step;\n"
"int blocks=end_of_k(p,rank)- begin_of_k(p,rank);\nint first_part=PING_PONG?0:(int)group*PARTS;\nbool tells=thread<TELLERS;\nu32 told=told_by(thread,rank),empty=address_in(shared+EMPTY,tells?told:rank);\n"
"Staging staging={shared+STAGES*STAGE_BYTES +(threadIdx.x/32-4)*(BUFFERS*STAGED_MATRICES*STAGED_BYTES),\nBOX_GROUPS==1?threadIdx.x%32/4:threadIdx.x%8,\n0,\nshared+LOADED +(threadIdx.x/32-4)*(LOADED_BUFFERS*LOADED_MATRICES*STAGED_BYTES),\nshared+ARRIVED +(threadIdx.x/32-4)*16,\n0,\n0};\n"
"Epilogue_state state;\nif(PING_PONG&&group==1){\nturn_give(0);\nskip_stages(stage,parity,blocks);\n}\nbool ends=SHARES_LAST&&(tiles-1)%CONSUMERS==group;\nconstexpr u32 turns=PING_PONG?CONSUMERS:1;\nu32 count=PING_PONG?group:0;\nOf_columns bias[GROUPS];\nif(BIAS_FIRST&&count<tiles)\n"
"load_groups(p,tile_of(p,first+count*step,rank),0,bias);\nfor(;count<tiles-ends;count +=turns){\nTile tile=tile_of(p,first+count*step,rank);\nfloat sums[PARTS][TILE_N/2];\nOf_columns columns[ALL_AHEAD?GROUPS:BOX_GROUPS];\nbegin_sums(bias,sums);\n"
"int warp_row=tile.m*TILE_M+first_part*64 +(int)(thread/32)*16;\nMasks masks;\nif(SPLIT==1){\nask_for_inputs(p,staging,tile,warp_row,0);\nmasks=load_masks(p,tile,warp_row);\n}\nif(AHEAD)\nload_groups(p,tile,0,columns);\nadd_up_tile(shared,empty,tells,group,first_part,blocks,stage,parity,sums);\n"
"state=begin_epilogue(p.epilogue,tile.item,0,0);\nif(SPLIT>1){\ncluster_meets();\nleave_sums(p,tile,shared,rank,sums[0]);\nif(STORES_ASYNC)\nbarrier_wait(shared+RECEIVED,0);\nelse\ncluster_barrier();\nfinish_left(p,state,staging,tile,shared,rank);\n}else{\n#pragma unroll ROLLS ? 1 : GROUPS\n"
"for(int i=0;i<GROUPS;i +=BOX_GROUPS){\nOf_columns now[BOX_GROUPS];\nif(!AHEAD&& !BIAS_FIRST)\nload_groups(p,tile,i,columns);\nif(BIAS_FIRST&&i+BOX_GROUPS==GROUPS&&count+turns<tiles)\nload_groups(p,tile_of(p,first +(count+turns)*step,rank),0,bias);\n"
"memcpy(now,columns +(ALL_AHEAD?i:0),sizeof now);\nif(AHEAD&& !ALL_AHEAD&&i+BOX_GROUPS<GROUPS)\nload_groups(p,tile,i+BOX_GROUPS,columns);\nBox_sums column_sums;\n#pragma unroll\nfor(int part=0;part<PARTS;part++){\nBox box=box_of(sums[part],ROLLS?0:i);\n"
"Next_box next={part+1<PARTS||i+BOX_GROUPS<GROUPS,\nwarp_row +(part+1<PARTS?part+1:0)*64,part+1<PARTS?i:i+BOX_GROUPS};\nfinish_box(p,state,staging,tile,warp_row+part*64,part,i,next,now,masks,box,column_sums);\nif(ROLLS)\ndrop_first_box(sums[part]);\n}\nif(HAS_BGRAD)\n"
"leave_column_sums(shared,group,thread,i,column_sums);\n}\n}\nend_epilogue(p.epilogue,state);\n}\nif(SHARES_LAST){\nTile tile=tile_of(p,first +(tiles-1)*step,rank);\nint part=ends,first_row=tile.m*TILE_M +(int)(thread/32)*16,row=first_row+part*64;\nfloat kept[TILE_N/2];\n"
"Of_columns columns[BOX_GROUPS];\nask_for_inputs(p,staging,tile,row,0);\nMasks masks=load_masks(p,tile,first_row);\nif(AHEAD)\nload_groups(p,tile,0,columns);\nif(ends){\nfloat sums[PARTS][TILE_N/2];\nbegin_sums(bias,sums);\nadd_up_last(shared,empty,tells,group,blocks,stage,parity,sums,kept);\n"
"}else{\nstages_are_left(blocks);\nboth_meet();\nread_parked(parked_in(shared,stage),thread,kept);\n}\nif(HAS_BGRAD)\nwarpgroup_meets((int)group);\nstate=begin_epilogue(p.epilogue,tile.item,0,0);\n#pragma unroll 1\nfor(int i=0;i<GROUPS;i +=BOX_GROUPS){\n",
"Of_columns now[BOX_GROUPS];\nBox_sums column_sums;\nBox box=box_of(kept,0);\nif(!AHEAD&& !BIAS_FIRST)\nload_groups(p,tile,i,columns);\nmemcpy(now,columns,sizeof now);\nif(AHEAD&&i+BOX_GROUPS<GROUPS)\nload_groups(p,tile,i+BOX_GROUPS,columns);\n"
"Next_box next={i+BOX_GROUPS<GROUPS,row,i+BOX_GROUPS};\nfinish_box(p,state,staging,tile,row,part,i,next,now,masks,box,column_sums);\nif(HAS_BGRAD)\nleft_in(shared,stage).leave(part,thread,i,column_sums);\ndrop_first_box(kept);\n}\nif(HAS_BGRAD)\nboth_meet();\nif(HAS_BGRAD)\n"
"store_left_sums(p,tile,left_in(shared,stage));\nend_epilogue(p.epilogue,state);\n}\nif(STAGED)\nasm volatile(\"cp.async.bulk.wait_group.read 0;\" ::: \"memory\");\n}\n\n\n__device__ inline u32 first_tile(){\nu32 block;\nasm volatile(\"mov.u32 %0, %%ctaid.x;\" : \"=r\"(block));\n"
"return block/CLUSTER;\n}\n\nextern \"C\" __global__ void __launch_bounds__(THREADS,1)__cluster_dims__(CLUSTER,1,1)\ngemmepi_fused(GEMMEPI_PARAMS gemmepi__sm90_params p){\nextern __shared__ __align__(1024)u8 memory[];\nu32 shared=shared_address(memory),rank=CLUSTER>1?cluster_rank():0;\n"
"u32 step=gridDim.x/CLUSTER;\nif(shared%1024)\n__trap();\nif(threadIdx.x==0){\nprefetch_map(p.a);\nprefetch_map(p.b);\nif(TAILS&&A_ROWS)\nprefetch_map(p.a_tail);\nif(TAILS&&B_ROWS)\nprefetch_map(p.b_tail);\nif(LOADS_AUX)\nprefetch_map(p.aux);\nfor(int i=0;i<STAGES;i++){\n"
"barrier_init(shared+FULL+i*8,1);\nbarrier_init(shared+EMPTY+i*8,((PING_PONG?1:CONSUMERS)+ SUMMERS)*TELLERS);\n}\nfor(int i=0;i<(LOADED_MATRICES?2*WARPS:0);i++)\nbarrier_init(shared+ARRIVED+i*8,1);\nif(SPLIT>1)\nbarrier_init(shared+RECEIVED,1);\nfor(int i=0;i<(HAS_BGRAD?CONSUMERS:0);i++){\n"
"barrier_init(shared+LEFT+i*8,4);\nbarrier_init(shared+TAKEN+i*8,1);\n}\nasm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");\n}\n__syncthreads();\nif(CLUSTER>1)\ncluster_meets();\nif(threadIdx.x>=32)\nafter_launches_before();\nif(threadIdx.x<WARPGROUP){\n"
"asm volatile(\"setmaxnreg.dec.sync.aligned.u32 %0;\" ::\"n\"(PRODUCER_REGISTERS));\nif(threadIdx.x<32&&is_elected())\nproduce(p,shared,rank,first_tile(),step);\nif(SUMMED&&threadIdx.x>=32)\nadd_operand(p,shared,rank,first_tile(),step);\n"
"if(HAS_BGRAD&&threadIdx.x>=32&&threadIdx.x<32+CONSUMERS*32)\nadd_column_sums(p,shared,rank,first_tile(),step);\n__syncwarp();\nif(SPLIT>1&&SUMMED)\ncluster_barrier();\nelse if(SPLIT>1)\ncluster_meets();\nif(SPLIT>1&& !STORES_ASYNC)\ncluster_barrier();\n"
"if(SUMMED&&SPLIT>1&&rank==0&&threadIdx.x>=32)\nstore_totals(p,shared,tile_of(p,first_tile(),rank),(int)threadIdx.x/32-1);\n}else{\nasm volatile(\"setmaxnreg.inc.sync.aligned.u32 %0;\" ::\"n\"(CONSUMER_REGISTERS));\nconsume(p,shared,rank,first_tile(),step);\n}\n\n"
"if(CLUSTER>1&&(SPLIT==1||SUMMED))\ncluster_meets();\n}\n",
 NULL};
#endif

#ifndef GEMMEPI_NO_SM80
static const char *const gemmepi__source_gemm_small_cu[] = {
"#line 1 \"src/kernels/gemm_small.cu\"\n#line 8\n#include \"epilogue.cuh\"\n\n#ifndef GEMMEPI_ROWS\n#define GEMMEPI_INPUT BF16\n#define GEMMEPI_TILE_M 1\n#define GEMMEPI_TILE_N 32\n#define GEMMEPI_ROWS 1\n#define GEMMEPI_COLUMNS 8\n#define GEMMEPI_A_ROWS 1\n#define GEMMEPI_B_ROWS 1\n"
"#define GEMMEPI_A_UNIT 16\n#define GEMMEPI_B_UNIT 16\n#endif\n\ntypedef GEMMEPI_INPUT In;\nconstexpr int ROWS=GEMMEPI_ROWS,COLUMNS=GEMMEPI_COLUMNS/HALVES_IN,DEPTH=16/sizeof(In);\nconstexpr int TILE_M=GEMMEPI_TILE_M,TILE_N=GEMMEPI_TILE_N/HALVES_IN,WIDTH=TILE_N<RUN?1:TILE_N/RUN;\n"
"constexpr int LANES_N=TILE_N/COLUMNS,OTHERS=TILE_M/ROWS*LANES_N,LANES_K=32/OTHERS;\nconstexpr int WARPS=8,THREADS=32*WARPS,STEP=WARPS*LANES_K*DEPTH;\nconstexpr int SUMS=HALVES_IN*ROWS*COLUMNS,LEFT=SUMS>LANES_K?SUMS/LANES_K:1;\nconstexpr bool K_FIRST=LANES_N>1?GEMMEPI_B_ROWS:GEMMEPI_A_ROWS;\n"
"static_assert(TILE_M*WIDTH<=THREADS,\"a thread has a run at most\");\n\n\ntemplate<bool Rows,int Lines,int Unit>struct Part{\nstatic constexpr int ALONG=Rows?DEPTH:Lines,ACROSS=Rows?Lines:DEPTH;\nstatic constexpr int AT_ONCE=Unit/(int)sizeof(In)<ALONG?Unit/(int)sizeof(In):ALONG;\nconst In*from;\n"
"long long ld;\nint exist;\nWords<In,AT_ONCE>words[ACROSS][ALONG/AT_ONCE]={};\n\n__device__ inline void begin(const gemmepi__kernel_matrix&x,long long item,long long first,long long extent,int first_k,\nlong long further){\nld=x.ld;\nexist=extent-first<Lines?(int)(extent-first):Lines;\n"
"first +=further;\nfrom=(const In*)x.data+item*x.stride +(Rows?first*ld+first_k:first_k*ld+first);\n}\ntemplate<bool Whole>__device__ inline void load(int k_left){\nint along=Rows?k_left:exist,across=Rows?exist:k_left;\n#pragma unroll\nfor(int i=0;i<ACROSS;i++)\n#pragma unroll\n"
"for(int j=0;j<ALONG;j +=AT_ONCE)\nif(Whole||(i<across&&j+AT_ONCE<=along))\nwords[i][j/AT_ONCE]= *reinterpret_cast<const Words<In,AT_ONCE> *>(from+i*ld+j);\nelse\nwords[i][j/AT_ONCE]=words_of(read_elements<AT_ONCE>(from+i*ld+j,i<across?along-j:0));\n}\n\n__device__ inline void load(int k_left){\n"
"if(exist==Lines&&k_left>=DEPTH)\nload<true>(k_left);\nelse\nload<false>(k_left);\nfrom +=Rows?STEP:STEP*ld;\n}\n__device__ inline void take(float(&values)[Lines][DEPTH])const{\n#pragma unroll\nfor(int i=0;i<ACROSS;i++)\n#pragma unroll\nfor(int j=0;j<ALONG;j +=AT_ONCE){\nfloat some[AT_ONCE];\n"
"words_to_acc(words[i][j/AT_ONCE],some);\n#pragma unroll\nfor(int l=0;l<AT_ONCE;l++)\nvalues[Rows?i:j+l][Rows?j+l:i]=some[l];\n}\n}\n};\n\n\n__device__ inline int sum_of_lanes(int lane_k,float(&sums)[SUMS]){\nint first=0;\n#pragma unroll\nfor(int step=1;step<LANES_K;step*=2){\n"
"bool halves=2*step<=SUMS,upper=halves&&lane_k&step;\n#pragma unroll\nfor(int j=0;j<SUMS/(2*step)+ !halves;j++){\nfloat other=sums[halves?j+SUMS/(2*step):j],sent=upper?sums[j]:other;\nsums[j]=(upper?other:sums[j])+ __shfl_xor_sync(0xffffffffu,sent,K_FIRST?step:step*OTHERS);\n}\n"
"first +=upper?SUMS/(2*step):0;\n}\nreturn first;\n}\n\n\nextern \"C\" __global__ void __launch_bounds__(THREADS,1)\ngemmepi_small(GEMMEPI_PARAMS gemmepi__plain_params params){\n__shared__ alignas(16)float results[WARPS][HALVES_IN][TILE_M][TILE_N];\n"
"const gemmepi__epilogue_params&p=params.epilogue;\nu32 part=blockIdx.x/p.column_tiles,item=part/p.row_tiles;\nlong long tile_row=(long long)(part-item*p.row_tiles)*TILE_M;\nlong long tile_column=(long long)(blockIdx.x-part*p.column_tiles)*TILE_N;\n"
"int warp=(int)threadIdx.x/32,lane=(int)threadIdx.x%32;\nint lane_k=K_FIRST?lane%LANES_K:lane/OTHERS,other=K_FIRST?lane/LANES_K:lane%OTHERS;\nint row=other/LANES_N*ROWS,column=other%LANES_N*COLUMNS;\nint first_k=(warp*LANES_K+lane_k)*DEPTH,k_left=(int)params.k-first_k;\n"
"Part<GEMMEPI_A_ROWS,ROWS,GEMMEPI_A_UNIT>a;\nPart<GEMMEPI_B_ROWS,COLUMNS,GEMMEPI_B_UNIT>b[HALVES_IN];\na.begin(params.a,item,tile_row+row,p.m,first_k,0);\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\nb[half].begin(params.b,item,tile_column+column,p.n,first_k,half*p.n);\n\n"
"after_launches_before();\n\nint x=(int)threadIdx.x%WIDTH,y=(int)threadIdx.x/WIDTH;\n",
"long long own_row=tile_row+y,first=tile_column+x*RUN;\nint valid=y<TILE_M&&own_row<p.m&&first<p.n?(p.n-first<RUN?(int)(p.n-first):RUN):0;\nEpilogue_state state=begin_epilogue(p,item,first,valid);\nOf_columns of=load_columns(p,item,first,valid);\nSaved saved;\n"
"load_saved(p,state,item,own_row,first,valid,saved);\n\nfloat sums[SUMS]={};\n#pragma unroll 1\nfor(k_left +=STEP;k_left>0;k_left -=STEP){\nfloat rows[ROWS][DEPTH],columns[HALVES_IN][COLUMNS][DEPTH];\na.take(rows);\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\n"
"b[half].take(columns[half]);\na.load(k_left-STEP);\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\nb[half].load(k_left-STEP);\n#pragma unroll\nfor(int k=0;k<DEPTH;k++)\n#pragma unroll\nfor(int i=0;i<SUMS;i++)\n"
"sums[i]=fmaf(rows[i/COLUMNS%ROWS][k],columns[i/(COLUMNS*ROWS)][i%COLUMNS][k],sums[i]);\n}\nint from=sum_of_lanes(lane_k,sums);\n#pragma unroll\nfor(int i=0;i<LEFT;i++){\nint at=from+i;\nresults[warp][at/(COLUMNS*ROWS)][row+at/COLUMNS%ROWS][column+at%COLUMNS]=sums[i];\n}\n__syncthreads();\n\n"
"Acc v[HALVES][RUN]={};\nif(valid>0){\n#pragma unroll\nfor(int i=0;i<WARPS*HALVES_IN*RUN;i++){\nint half=i/RUN%HALVES_IN,j=i%RUN;\nif(j<TILE_N)\nv[half][j]+=results[i/(HALVES_IN*RUN)][half][y][x*RUN+j];\n}\nepilogue(p,state,of,saved,item,own_row,first,valid,v);\n"
"store_result(p,state,item,own_row,first,valid,v);\n}\nif constexpr(HAS_BGRAD){\nAcc column_sums[HALVES_OUT][RUN];\nmemcpy(column_sums,v,sizeof column_sums);\nstore_partials<THREADS>(p,part,first,valid,x,y,WIDTH,column_sums);\n}\nend_epilogue(p,state);\n}\n",
 NULL};
#endif

#ifndef GEMMEPI_NO_ELEMENTWISE
static const char *const gemmepi__source_operations_cuh[] = {
"#line 1 \"src/kernels/operations.cuh\"\n\n\n#pragma once\n#include \"activation.cuh\"\n#include \"amax.cuh\"\n#include \"params.h\"\n#include \"types.cuh\"\n\n\n#ifndef GEMMEPI_OPERATION\n#define GEMMEPI_OPERATION 1\n#define GEMMEPI_ACTIVATION CODE_SILU\n#define GEMMEPI_USED 0x11\n"
"#define GEMMEPI_ACC F32\n#define GEMMEPI_A_TYPE F32\n#define GEMMEPI_B_TYPE F32\n#define GEMMEPI_W_TYPE F32\n#define GEMMEPI_DY_TYPE F32\n#define GEMMEPI_Y_TYPE F32\n#define GEMMEPI_DA_TYPE F32\n#define GEMMEPI_DB_TYPE F32\n#define GEMMEPI_DW_TYPE F32\n#define GEMMEPI_CAST 0\n#endif\n\n"
"typedef GEMMEPI_ACC Acc;\n\nenum{IN_A,IN_B,IN_W,IN_DY,OUT_Y,OUT_DA,OUT_DB,OUT_DW,TENSORS};\nenum{\nOP_ACTIVATION=1,OP_ACTIVATION_BACKWARD,OP_GATED,OP_GATED_BACKWARD,OP_LERP,OP_LERP_BACKWARD,OP_BIAS_GRAD,OP_CAST\n};\n\ntemplate<int Tensor>struct Type_of;\n"
"template<>struct Type_of<IN_A>{typedef GEMMEPI_A_TYPE type;};\ntemplate<>struct Type_of<IN_B>{typedef GEMMEPI_B_TYPE type;};\ntemplate<>struct Type_of<IN_W>{typedef GEMMEPI_W_TYPE type;};\ntemplate<>struct Type_of<IN_DY>{typedef GEMMEPI_DY_TYPE type;};\n"
"template<>struct Type_of<OUT_Y>{typedef GEMMEPI_Y_TYPE type;};\ntemplate<>struct Type_of<OUT_DA>{typedef GEMMEPI_DA_TYPE type;};\ntemplate<>struct Type_of<OUT_DB>{typedef GEMMEPI_DB_TYPE type;};\ntemplate<>struct Type_of<OUT_DW>{typedef GEMMEPI_DW_TYPE type;};\n"
"template<int Tensor>using Type=typename Type_of<Tensor>::type;\n\ntypedef Amax_of<Type<IN_A>>Amax;\ntypedef decltype(magnitude(Amax()))Magnitude;\n\ntemplate<int Tensor>constexpr bool USED=(GEMMEPI_USED>>Tensor&1)!=0;\n"
"constexpr bool CAST_SCALE=(GEMMEPI_CAST&1)!=0,CAST_AMAX=(GEMMEPI_CAST&2)!=0;\n\n#define GEMMEPI_EACH_INPUT(DO) DO(IN_A) DO(IN_B) DO(IN_W) DO(IN_DY)\n#define GEMMEPI_EACH_OUTPUT(DO) DO(OUT_Y) DO(OUT_DA) DO(OUT_DB) DO(OUT_DW)\n\n\n"
"template<int Tensor>constexpr int SIZE=USED<Tensor> ?sizeof(Type<Tensor>):1;\ntemplate<int X,int Y>constexpr int LARGER=X>Y?X:Y;\ntemplate<int Tensor>constexpr int LARGER_PAIR=LARGER<SIZE<Tensor>,SIZE<Tensor+1>>;\nconstexpr int LARGEST_SIZE=\n"
"LARGER<LARGER<LARGER_PAIR<IN_A>,LARGER_PAIR<IN_W>>,LARGER<LARGER_PAIR<OUT_Y>,LARGER_PAIR<OUT_DB>>>;\nconstexpr int VECTOR=16/LARGEST_SIZE<RUN?16/LARGEST_SIZE:RUN;\n\n\nstruct Scalars{\nAcc parameter,weight,rest;\nbool near_a;\nAcc scale;\n};\n"
"__device__ inline Scalars scalars_of(const gemmepi__operation_params&p){\nScalars s;\ns.parameter=(Acc)p.parameter;\ns.weight=(Acc)p.weight;\ns.rest=(Acc)(1-p.weight);\ns.near_a=p.weight> -0.5&&p.weight<0.5;\ns.scale=CAST_SCALE?(Acc)*p.scale:Acc(1);\nreturn s;\n}\n\n\n"
"__device__ inline void operate(Acc(&v)[TENSORS],const Scalars&s){\nconstexpr int operation=GEMMEPI_OPERATION;\nif constexpr(operation==OP_ACTIVATION){\nv[OUT_Y]=activate<GEMMEPI_ACTIVATION>(v[IN_A],s.parameter);\n}else if constexpr(operation==OP_ACTIVATION_BACKWARD){\n"
"v[OUT_DA]=times_derivative<GEMMEPI_ACTIVATION>(v[IN_DY],v[IN_A],s.parameter);\n}else if constexpr(operation==OP_GATED){\nv[OUT_Y]=times_activation<GEMMEPI_ACTIVATION>(v[IN_A],v[IN_B],s.parameter);\n}else if constexpr(operation==OP_GATED_BACKWARD){\nif(USED<OUT_DA>)\n"
"v[OUT_DA]=times_activation<GEMMEPI_ACTIVATION>(v[IN_DY],v[IN_B],s.parameter);\nif(USED<OUT_DB>){\nAcc dy[1]={v[IN_DY]},value[1]={v[IN_A]},gate[1]={v[IN_B]},db[1];\ngate_gradients<GEMMEPI_ACTIVATION>(dy,value,gate,s.parameter,db);\nv[OUT_DB]=db[0];\n}\n}else if constexpr(operation==OP_LERP){\n"
"Acc a=v[IN_A],b=v[IN_B],w=USED<IN_W> ?v[IN_W]:s.weight,rest=USED<IN_W> ?1-w:s.rest;\nbool near_a=USED<IN_W> ?w>Acc(-0.5)&&w<Acc(0.5):s.near_a;\nv[OUT_Y]=near_a?a+w*(b-a):b -(b-a)*rest;\n}else if constexpr(operation==OP_LERP_BACKWARD){\n"
"Acc w=USED<IN_W> ?v[IN_W]:s.weight,rest=USED<IN_W> ?1-w:s.rest;\nv[OUT_DA]=rest*v[IN_DY];\nv[OUT_DB]=w*v[IN_DY];\nif(USED<OUT_DW>)\nv[OUT_DW]=v[IN_DY]*(v[IN_B]- v[IN_A]);\n}else{\nv[OUT_Y]=CAST_SCALE?v[IN_A]*s.scale:v[IN_A];\n}\n}\n\n\n"
"template<int Tensor>using Vector=Words<Type<Tensor>,VECTOR>;\n\n\n\n",
"__device__ inline void operate_on(Acc(&v)[TENSORS][VECTOR],const Scalars&s,Magnitude&largest){\nif(CAST_AMAX)\nkeep_largest_of<Amax>(v[IN_A],largest);\n#pragma unroll\nfor(int i=0;i<VECTOR;i++){\nAcc one[TENSORS];\n#pragma unroll\nfor(int t=0;t<TENSORS;t++)\none[t]=v[t][i];\noperate(one,s);\n"
"#pragma unroll\nfor(int t=OUT_Y;t<TENSORS;t++)\nv[t][i]=one[t];\n}\n}\n\ntemplate<int Tensor>__device__ inline void to_values(const Vector<Tensor> &words,Acc(&v)[TENSORS][VECTOR]){\nwords_to_acc(words,v[Tensor]);\n}\n"
"template<int Tensor>__device__ inline Vector<Tensor>from_values(const Acc(&v)[TENSORS][VECTOR]){\nreturn words_of(run_from_acc<Type<Tensor>>(v[Tensor]));\n}\ntemplate<int Tensor>__device__ inline void repeat_value(Type<Tensor>x,Acc(&v)[TENSORS][VECTOR]){\n#pragma unroll\n"
"for(int i=0;i<VECTOR;i++)\nv[Tensor][i]=to_acc<Acc>(x);\n}\n\n\ntemplate<int Tensor>__device__ inline Vector<Tensor>load_vector(const Type<Tensor> *from,int valid){\nif(valid==VECTOR)\nreturn*reinterpret_cast<const Vector<Tensor> *>(from);\nreturn words_of(read_elements<VECTOR>(from,valid));\n}\n"
"template<int Tensor>__device__ inline void store_vector(Type<Tensor> *to,int valid,const Vector<Tensor> &words){\nif(valid==VECTOR){\n*reinterpret_cast<Vector<Tensor> *>(to)=words;\n}else{\nRun<Type<Tensor>,VECTOR>run=run_of(words);\n#pragma unroll\nfor(int i=0;i<VECTOR;i++)\nif(i<valid)\n"
"to[i]=run.at[i];\n}\n}\n",
 NULL};
#endif

static const char *const gemmepi__source_pack_cu[] = {
"#line 1 \"src/kernels/pack.cu\"\n\n\n#include \"copy.cuh\"\n\n#ifndef GEMMEPI_THREADS\n#define GEMMEPI_THREADS 256\n#endif\n\nconstexpr int THREADS=GEMMEPI_THREADS;\n\n__device__ inline void load_unit(u64 from,u32*to){\nasm volatile(\"ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\"\n"
": \"=r\"(to[0]),\"=r\"(to[1]),\"=r\"(to[2]),\"=r\"(to[3])\n: \"l\"(from)\n: \"memory\");\n}\n__device__ inline void store_unit(void*to,const u32(&words)[4]){\nasm volatile(\"st.global.v4.b32 [%0], {%1, %2, %3, %4};\" ::\"l\"(to),\"r\"(words[0]),\"r\"(words[1]),\"r\"(words[2]),\n\"r\"(words[3])\n"
": \"memory\");\n}\n\n\n__device__ inline void load_across(const u16*from,u32(&to)[4]){\nu64 address=(u64)from,first=address& ~(u64)15;\nu32 words[8];\nload_unit(first,words);\nload_unit(first+16,words+4);\n#pragma unroll\nfor(int i=0;i<6;i++)\nwords[i]=address&8?words[i+2]:words[i];\n"
"#pragma unroll\nfor(int i=0;i<5;i++)\nwords[i]=address&4?words[i+1]:words[i];\n#pragma unroll\nfor(int i=0;i<4;i++)\nto[i]=__funnelshift_r(words[i],words[i+1],(u32)(address&2)*8);\n}\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_pack(GEMMEPI_PARAMS gemmepi__convert_params p){\nCopied_run run;\nif(!find_copied_run<THREADS>(p,run))\nreturn;\nlong long left=p.columns-run.column;\nconst u16*x=start_of_run<const u16>(p.x,run);\nu32 words[4]={};\n"
"if(run.column>=RUN&&left>=2*RUN){\nload_across(x,words);\n}else{\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nif(i<left)\nwords[i/2]|=(u32)x[i]<<i%2*16;\n}\nstore_unit(start_of_run<u16>(p.out,run),words);\n}\n",
 NULL};

static const char *const gemmepi__source_params_h[] = {
"#line 1 \"src/kernels/params.h\"\n\n#ifndef GEMMEPI_KERNELS_PARAMS_H\n#define GEMMEPI_KERNELS_PARAMS_H\n\n\ntypedef struct gemmepi__kernel_matrix{\nvoid*data;\nlong long ld,stride;\n}gemmepi__kernel_matrix;\n\n\ntypedef struct gemmepi__kernel_scale{\nconst float*data;\nlong long stride;\n"
"}gemmepi__kernel_scale;\n\n\ntypedef struct gemmepi__epilogue_params{\ngemmepi__kernel_matrix c,bias,aux,residual,d;\ngemmepi__kernel_scale scale_a,scale_b,scale_c,scale_d,scale_aux,scale_residual;\nvoid*amax_d,*amax_aux;\nvoid*partials;\nconst double*device_alpha,*device_beta;\n"
"double alpha,beta;\ndouble parameter;\nlong long m,n;\nunsigned row_tiles,column_tiles;\nint uses_c;\n}gemmepi__epilogue_params;\n\n\ntypedef struct gemmepi__pass_params{\ngemmepi__epilogue_params epilogue;\ngemmepi__kernel_matrix product;\nlong long part;\nint row_steps;\n"
"}gemmepi__pass_params;\n\n\ntypedef struct gemmepi__plain_params{\ngemmepi__epilogue_params epilogue;\ngemmepi__kernel_matrix a,b;\nlong long k;\n}gemmepi__plain_params;\n\n\n\ntypedef struct gemmepi__convert_params{\ngemmepi__kernel_matrix x,out;\nlong long rows,columns,items;\n"
"}gemmepi__convert_params;\n\n\ntypedef struct gemmepi__reduce_params{\ngemmepi__kernel_matrix x;\ngemmepi__kernel_scale scale;\nvoid*out;\nlong long out_stride;\nlong long rows,columns;\nlong long parts;\nlong long part_rows;\n}gemmepi__reduce_params;\n\n\n#ifdef __CUDACC__\n"
"struct alignas(64)gemmepi__tensor_map{\nunsigned long long words[16];\n};\n#else\ntypedef struct gemmepi__tensor_map{\nunsigned long long words[16];\n}gemmepi__tensor_map;\n#endif\n\n\ntypedef struct gemmepi__sm90_params{\ngemmepi__tensor_map a,b;\ngemmepi__tensor_map a_tail,b_tail;\n"
"gemmepi__tensor_map d,aux,residual;\ngemmepi__epilogue_params epilogue;\nunsigned tiles;\nunsigned cluster_rows,cluster_columns;\nunsigned band;\nint k;\nint a_items,b_items;\nvoid*sums;\nlong long sums_stride;\nint sum_tiles;\n}gemmepi__sm90_params;\n\n\ntypedef struct gemmepi__sm80_params{\n"
"gemmepi__epilogue_params epilogue;\ngemmepi__kernel_matrix a,b;\nunsigned tile_rows;\nunsigned band;\nunsigned parts;\nint k,part_k;\n}gemmepi__sm80_params;\n\n\n#define GEMMEPI__PARAMS_TENSORS 8\n#define GEMMEPI__PARAMS_AXES 8\n\n\ntypedef struct gemmepi__operation_params{\ndouble parameter;\n"
"double weight;\nconst float*scale;\nvoid*amax;\n}gemmepi__operation_params;\n\n\ntypedef struct gemmepi__contiguous_params{\ngemmepi__operation_params operation;\nvoid*data[GEMMEPI__PARAMS_TENSORS];\nlong long count;\n}gemmepi__contiguous_params;\n\n\ntypedef struct gemmepi__strided_params{\n"
"gemmepi__operation_params operation;\nvoid*data[GEMMEPI__PARAMS_TENSORS];\nlong long stride[GEMMEPI__PARAMS_TENSORS][GEMMEPI__PARAMS_AXES];\nlong long extent_i,extent_j;\nunsigned extent[GEMMEPI__PARAMS_AXES];\nunsigned tiles_i,tiles_j;\nint rank;\n}gemmepi__strided_params;\n\n\n"
"typedef struct gemmepi__axes{\nlong long extent[GEMMEPI__PARAMS_AXES];\nlong long stride[GEMMEPI__PARAMS_TENSORS][GEMMEPI__PARAMS_AXES];\nint rank;\n}gemmepi__axes;\ntypedef struct gemmepi__sum_params{\ngemmepi__operation_params operation;\nvoid*data[GEMMEPI__PARAMS_TENSORS];\n"
"gemmepi__axes kept,summed;\nlong long kept_count,\nsummed_count;\nlong long part_count;\nunsigned kept_blocks;\n}gemmepi__sum_params;\n\n\ntypedef struct gemmepi__scaled_params{\nvoid*a,*y;\nconst float*scale;\nfloat*y_scale;\nvoid*amax;\nlong long extent[GEMMEPI__PARAMS_AXES];\n"
"long long stride_a[GEMMEPI__PARAMS_AXES],stride_y[GEMMEPI__PARAMS_AXES];\nunsigned tiles[2];\nint rank;\n}gemmepi__scaled_params;\n\n#endif\n",
 NULL};

static const char *const gemmepi__source_pass_cu[] = {
"#line 1 \"src/kernels/pass.cu\"\n\n\n#include \"epilogue.cuh\"\n\n#ifndef GEMMEPI_PRODUCT_TYPE\n#define GEMMEPI_PRODUCT_TYPE F32\n#define GEMMEPI_HAS_PRODUCT 1\n#define GEMMEPI_PARTS 1\n#endif\n\nconstexpr int THREADS=256,PARTS=GEMMEPI_PARTS;\n\n\n#if __CUDA_ARCH__ < 800\n"
"constexpr int MOST_AT_ONCE=BACKWARD?2:4;\n#else\nconstexpr int MOST_AT_ONCE=2;\n#endif\nconstexpr int AT_ONCE=\nsizeof(Acc)==8||GATED||sizeof(GEMMEPI_PRODUCT_TYPE)==4?1:MOST_AT_ONCE;\n\n#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1200\n"
"constexpr bool IS_LEAN=PARTS==1&&WHOLE&&GEMMEPI_APPLIED&&ALIGNED&&sizeof(Acc)==4;\nconstexpr bool KEEPS_MORE=GATED?UPSTREAM||sizeof(GEMMEPI_PRODUCT_TYPE)==4\n:UPSTREAM&&HAS_BGRAD&&__CUDA_ARCH__>=1000;\nconstexpr int BLOCKS= !IS_LEAN?1:KEEPS_MORE?2:3;\n#else\nconstexpr int BLOCKS=1;\n#endif\n\n\n"
"struct Rows{\nlong long item,first,column;\nint count,run;\n};\n\n\nstruct Fetched{\nWords<GEMMEPI_PRODUCT_TYPE>products[HALVES_IN];\nSaved saved;\n};\n\n__device__ inline void fetch(const gemmepi__pass_params&params,const Epilogue_state&state,const Rows&rows,int r,Fetched&fetched){\n"
"long long row=rows.first +(long long)r*blockDim.y;\nint exists=r<rows.count?rows.run:0;\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\nfetched.products[half]=read_run<ALIGNED>(\n(const GEMMEPI_PRODUCT_TYPE*)params.product.data +\n"
"offset(params.product,rows.item,row,rows.column+half*params.epilogue.n),\nGEMMEPI_HAS_PRODUCT?exists:0);\nload_saved(params.epilogue,state,rows.item,row,rows.column,exists,fetched.saved);\n}\n\n\n"
"__device__ inline void add_parts(const gemmepi__pass_params&params,const Rows&rows,long long row,Acc(&v)[HALVES][RUN]){\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++){\nconst GEMMEPI_PRODUCT_TYPE*from=\n(const GEMMEPI_PRODUCT_TYPE*)params.product.data +\n"
"offset(params.product,rows.item,row,rows.column+half*params.epilogue.n);\n#pragma unroll 4\nfor(int part=1;part<PARTS;part++){\nAcc more[RUN];\nrun_to_acc(run_of(read_run<ALIGNED>(from+part*params.part,rows.run)),more);\n#pragma unroll\nfor(int i=0;i<RUN;i++)\n"
"v[half][i]=sum(v[half][i],more[i]);\n}\n}\n}\n\nextern \"C\" __global__ void __launch_bounds__(THREADS,BLOCKS)gemmepi_pass(GEMMEPI_PARAMS gemmepi__pass_params params){\nconst gemmepi__epilogue_params&p=params.epilogue;\nafter_launches_before();\nu32 part=blockIdx.x/p.column_tiles;\n"
"u32 item=part/p.row_tiles;\nlong long column=(long long)(blockIdx.x-part*p.column_tiles)*blockDim.x*RUN+threadIdx.x*RUN;\nlong long row=(long long)(part-item*p.row_tiles)*params.row_steps*blockDim.y+threadIdx.y;\nint valid=column>=p.n?0:WHOLE||p.n-column>=RUN?RUN:(int)(p.n-column);\n"
"int most=row>=p.m?0:p.m-row>(long long)params.row_steps*blockDim.y?params.row_steps:(int)((p.m-row+blockDim.y-1)/blockDim.y);\nRows rows={item,row,column,valid?most:0,WHOLE?RUN:valid};\nEpilogue_state state=begin_epilogue(p,item,column,valid);\nAcc sums[HALVES_OUT][RUN]={};\n"
"Fetched ahead[AT_ONCE];\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++)\nfetch(params,state,rows,r,ahead[r]);\nfor(int first=0;first<rows.count;first +=AT_ONCE){\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nFetched now=ahead[r];\nAcc v[HALVES][RUN];\n"
"fetch(params,state,rows,first+r+AT_ONCE,ahead[r]);\nif(first+r>=rows.count)\ncontinue;\n#pragma unroll\nfor(int half=0;half<HALVES_IN;half++)\nrun_to_acc(run_of(now.products[half]),v[half]);\nlong long at=row +(long long)(first+r)*blockDim.y;\nadd_parts(params,rows,at,v);\n"
"epilogue(p,state,load_columns(p,item,column,rows.run),now.saved,item,at,column,rows.run,v);\nstore_result(p,state,item,at,column,rows.run,v);\nif(HAS_BGRAD)\n#pragma unroll\nfor(int i=0;i<HALVES_OUT*RUN;i++)\nsums[i/RUN][i%RUN]=sum(sums[i/RUN][i%RUN],v[i/RUN][i%RUN]);\n}\n}\nif(HAS_BGRAD)\n"
"store_partials<THREADS>(p,part,column,valid,threadIdx.x,threadIdx.y,blockDim.x,sums);\nend_epilogue(p,state);\n}\n",
 NULL};

static const char *const gemmepi__source_reduce_cu[] = {
"#line 1 \"src/kernels/reduce.cu\"\n\n\n#include \"types.cuh\"\n#include \"params.h\"\n\n#ifndef GEMMEPI_X_TYPE\n#define GEMMEPI_X_TYPE F32\n#define GEMMEPI_OUT_TYPE F32\n#define GEMMEPI_ACCUMULATE 0\n#define GEMMEPI_X_SCALE 0\n#define GEMMEPI_ROWS 8\n#endif\n\n"
"constexpr int COLUMNS=32,ROWS=GEMMEPI_ROWS;\nconstexpr int LINE_THREADS=128;\nconstexpr u32 AT_ONCE=8;\nconstexpr bool VARIES=GEMMEPI_X_SCALE==SCALE_VECTOR_128||GEMMEPI_X_SCALE==SCALE_BLOCK_128;\n\n\n__device__ inline double whole_scale(const float*scale,long long outer){\n"
"return GEMMEPI_X_SCALE==SCALE_TENSOR?scale[0]:GEMMEPI_X_SCALE==SCALE_OUTER?scale[outer]:1;\n}\n\n__device__ inline void finish(const gemmepi__reduce_params&p,long long line,long long at,double sum){\nGEMMEPI_OUT_TYPE*out=(GEMMEPI_OUT_TYPE*)p.out+line*p.out_stride+at;\nif(GEMMEPI_ACCUMULATE)\n"
"sum +=to_acc<double>(*out);\n*out=from_acc<GEMMEPI_OUT_TYPE>(sum);\n}\n\n\n\n__device__ inline double sum_up(const GEMMEPI_X_TYPE*x,long long stride,long long first,int step,long long last,\nconst Scale_line&factors){\nu32 count=first<last?(u32)((last-first+step-1)/step):0,i=0;\ndouble sum=0;\n"
"x +=first*stride;\nstride*=step;\n#pragma unroll 1\ndo{\nGEMMEPI_X_TYPE values[AT_ONCE]={};\nif(i==0)\nafter_launches_before();\n#pragma unroll\nfor(u32 j=0;j<AT_ONCE;j++,x +=stride)\nif(i+j<count)\nvalues[j]= *x;\n#pragma unroll\nfor(u32 j=0;j<AT_ONCE;j++)\nif(!VARIES)\n"
"sum +=to_acc<double>(values[j]);\nelse if(i+j<count)\nsum +=to_acc<double>(values[j])*factors.at[(first +(long long)(i+j)*step)/SCALE_STEPS*factors.step];\ni +=AT_ONCE;\n}while(i<count);\nreturn sum;\n}\n\n\nextern \"C\" __global__ void __launch_bounds__(COLUMNS*ROWS,1)\n"
"gemmepi_sum_columns(GEMMEPI_PARAMS gemmepi__reduce_params p){\n__shared__ double shared[ROWS][COLUMNS];\nu32 column_tiles=(u32)((p.columns+COLUMNS-1)/COLUMNS);\nu32 line=blockIdx.x/column_tiles,item=line/(u32)p.parts;\n"
"long long column=(long long)(blockIdx.x-line*column_tiles)*COLUMNS+threadIdx.x;\nlong long first=(line-item*(u32)p.parts)*p.part_rows;\nlong long last=first+p.part_rows<p.rows?first+p.part_rows:p.rows;\nconst float*scale=p.scale.data+item*p.scale.stride;\nshared[threadIdx.y][threadIdx.x]=\n"
"sum_up((const GEMMEPI_X_TYPE*)p.x.data+item*p.x.stride+column,p.x.ld,first+threadIdx.y,ROWS,\ncolumn<p.columns?last:0,scale_line<GEMMEPI_X_SCALE>(scale,column,p.columns,p.rows));\nfor(int half=ROWS/2;half>0;half/=2){\n__syncthreads();\nif(threadIdx.y<half)\n"
"shared[threadIdx.y][threadIdx.x]+=shared[threadIdx.y+half][threadIdx.x];\n}\nif(threadIdx.y==0&&column<p.columns)\nfinish(p,line,column,shared[0][threadIdx.x]*whole_scale(scale,column));\n}\n\n\nextern \"C\" __global__ void __launch_bounds__(LINE_THREADS,1)\n"
"gemmepi_sum_rows(GEMMEPI_PARAMS gemmepi__reduce_params p){\n__shared__ double shared[LINE_THREADS];\nu32 item=blockIdx.x/(u32)p.rows;\nlong long row=blockIdx.x-item*(u32)p.rows;\nconst float*scale=p.scale.data+item*p.scale.stride;\nshared[threadIdx.x]=\n"
"sum_up((const GEMMEPI_X_TYPE*)p.x.data+item*p.x.stride+row*p.x.ld,1,threadIdx.x,LINE_THREADS,p.columns,\nscale_line<GEMMEPI_X_SCALE>(scale,row,p.rows,p.columns));\nfor(int half=LINE_THREADS/2;half>0;half/=2){\n__syncthreads();\nif(threadIdx.x<half)\n"
"shared[threadIdx.x]+=shared[threadIdx.x+half];\n}\nif(threadIdx.x==0)\nfinish(p,item,row,shared[0]*whole_scale(scale,row));\n}\n",
 NULL};

#ifndef GEMMEPI_NO_ELEMENTWISE
static const char *const gemmepi__source_scaled_cu[] = {
"#line 1 \"src/kernels/scaled.cu\"\n\n\n\n#include \"amax.cuh\"\n#include \"params.h\"\n#include \"types.cuh\"\n\n#ifndef GEMMEPI_A_TYPE\n#define GEMMEPI_A_TYPE F32\n#define GEMMEPI_Y_TYPE E4M3\n#define GEMMEPI_ACC F32\n#define GEMMEPI_MODE 3\n#define GEMMEPI_K_FAST 1\n#define GEMMEPI_VECTORS 0\n"
"#define GEMMEPI_SCALE 2\n#define GEMMEPI_AMAX 0\n#define GEMMEPI_STORES 1\n#define GEMMEPI_SLOW 64\n#endif\n\nenum{AS_IT_IS,GIVEN,FROM_TILE,FROM_AMAX};\n\ntypedef GEMMEPI_ACC Acc;\ntypedef GEMMEPI_A_TYPE A;\ntypedef GEMMEPI_Y_TYPE Y;\ntypedef Amax_of<A>Amax;\n"
"typedef decltype(magnitude(Amax()))Magnitude;\n\nconstexpr int TILE=SCALE_STEPS,SLOW=GEMMEPI_SLOW,THREADS=4*SLOW;\nconstexpr int LARGEST_SIZE=sizeof(A)>sizeof(Y)?sizeof(A):sizeof(Y);\nconstexpr int WIDE= !GEMMEPI_VECTORS?1:16/LARGEST_SIZE<RUN?16/LARGEST_SIZE:RUN;\n"
"constexpr int LANES=TILE/WIDE,ROWS=THREADS/LANES;\nconstexpr int VECTORS=SLOW/ROWS;\nconstexpr bool K_FAST=GEMMEPI_K_FAST;\nconstexpr bool TAKES_AMAX=GEMMEPI_AMAX||GEMMEPI_SCALE==FROM_TILE;\nconstexpr int WORDS=WIDE*sizeof(A)<4?VECTORS:VECTORS*WIDE*(int)sizeof(A)/4;\n"
"constexpr bool KEEPS_VALUES=WORDS<=64&&WIDE>1;\n\n\nconstexpr bool BY_ROWS=GEMMEPI_MODE==SCALE_OUTER||GEMMEPI_MODE==SCALE_VECTOR_128;\n__device__ inline int group_of(int fast,int slow){\nreturn BY_ROWS?K_FAST?slow:fast:0;\n}\n\n\n"
"__device__ inline long long place_of(const gemmepi__scaled_params&p,long long item,long long fast,long long slow){\nlong long row=K_FAST?slow:fast,k=K_FAST?fast:slow;\nlong long rows=p.extent[K_FAST?1:0],steps=(p.extent[K_FAST?0:1]+ SCALE_STEPS-1)/SCALE_STEPS;\nif(GEMMEPI_MODE==SCALE_TENSOR)\n"
"return 0;\nif(GEMMEPI_MODE==SCALE_OUTER)\nreturn item*rows+row;\nif(GEMMEPI_MODE==SCALE_VECTOR_128)\nreturn(item*steps+k/SCALE_STEPS)*rows+row;\nlong long line=(steps+3)/4*4;\nreturn(item*((rows+SCALE_STEPS-1)/SCALE_STEPS)+ row/SCALE_STEPS)*line+k/SCALE_STEPS;\n}\n\n"
"__device__ inline float number_of(u32 bits){\nreturn __uint_as_float(bits);\n}\n__device__ inline double number_of(u64 bits){\nreturn __longlong_as_double((long long)bits);\n}\n\n\n__device__ inline float scale_from(Magnitude bits){\nconstexpr float largest=SAME<Y,E5M2> ?57344.f:448.f;\n"
"Acc amax=number_of(bits);\nconstexpr float least=1.17549435e-38f,most=3.40282347e38f;\nAcc scale=amax/largest;\nreturn amax==0||amax-amax!=0?1.f:scale<least?least:scale>most?most:(float)scale;\n}\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS,1024/THREADS)gemmepi_scaled(GEMMEPI_PARAMS gemmepi__scaled_params p){\n__shared__ Magnitude largest[TILE];\n__shared__ Acc factor[TILE];\nu32 rest=blockIdx.x/p.tiles[0],item=rest/p.tiles[1],outer=item;\n"
"long long fast=(long long)(blockIdx.x-rest*p.tiles[0])*TILE,slow=(long long)(rest-item*p.tiles[1])*SLOW;\nint extent_fast=p.extent[0]- fast<TILE?(int)(p.extent[0]- fast):TILE;\nint extent_slow=p.extent[1]- slow<SLOW?(int)(p.extent[1]- slow):SLOW;\n"
"const A*a=(const A*)p.a+fast*p.stride_a[0]+ slow*p.stride_a[1];\nY*y=(Y*)p.y+fast*p.stride_y[0]+ slow*p.stride_y[1];\nfor(int d=2;d<p.rank;d++){\nu32 extent=(u32)p.extent[d],next=outer/extent,at=outer-next*extent;\na +=at*p.stride_a[d];\ny +=at*p.stride_y[d];\nouter=next;\n}\n"
"int groups=BY_ROWS?K_FAST?extent_slow:extent_fast:1,i=threadIdx.x%LANES*WIDE,j=threadIdx.x/LANES;\nint left=extent_fast-i,valid=left<WIDE?left:WIDE;\nWords<A,WIDE>words[KEEPS_VALUES?VECTORS:1];\nif(threadIdx.x<TILE){\nlargest[threadIdx.x]=0;\nif(GEMMEPI_SCALE==GIVEN&&threadIdx.x<groups)\n"
"factor[threadIdx.x]=p.scale[place_of(p,item,fast +(K_FAST?0:threadIdx.x),slow +(K_FAST?threadIdx.x:0))];\n}\nauto load=[&](int v)->Words<A,WIDE>{\nint row=j+v*ROWS;\nconst A*from=a+row*p.stride_a[1]+ i*p.stride_a[0];\nif(row<extent_slow&&valid==WIDE)\n"
"return*reinterpret_cast<const Words<A,WIDE> *>(from);\nreturn words_of(read_elements<WIDE>(from,row<extent_slow?valid:0));\n};\nif(KEEPS_VALUES)\n#pragma unroll\nfor(int v=0;v<VECTORS;v++)\nwords[KEEPS_VALUES?v:0]=load(v);\n__syncthreads();\nif(TAKES_AMAX){\nMagnitude columns[WIDE]={};\n",
"#pragma unroll KEEPS_VALUES ? VECTORS : 8\nfor(int v=0;v<VECTORS;v++){\nAcc values[WIDE];\nMagnitude row=0;\nwords_to_acc(KEEPS_VALUES?words[KEEPS_VALUES?v:0]:load(v),values);\nkeep_largest_of<Amax>(values,row);\n#pragma unroll\nfor(int e=0;e<WIDE;e++)\n{\n"
"Magnitude size=magnitude((Amax)values[e]);\ncolumns[e]=size>columns[e]?size:columns[e];\n}\nif(BY_ROWS&&K_FAST){\n#pragma unroll\nfor(int step=(LANES<32?LANES:32)/2;step>0;step/=2){\nMagnitude other=__shfl_xor_sync(0xffffffff,row,step);\nrow=other>row?other:row;\n}\n"
"if(threadIdx.x%(LANES<32?LANES:32)==0)\natomicMax(&largest[j+v*ROWS],row);\n}\n}\nif(!(BY_ROWS&&K_FAST)){\nMagnitude all=0;\n#pragma unroll\nfor(int e=0;e<WIDE;e++){\nif(BY_ROWS)\natomicMax(&largest[i+e],columns[e]);\nall=columns[e]>all?columns[e]:all;\n}\nall=BY_ROWS?all:largest_of_warp(all);\n"
"if(!BY_ROWS&&threadIdx.x%32==0)\natomicMax(&largest[0],all);\n}\n__syncthreads();\n}\nif(threadIdx.x<groups){\nlong long at=place_of(p,item,fast +(K_FAST?0:threadIdx.x),slow +(K_FAST?threadIdx.x:0));\nif(GEMMEPI_SCALE==FROM_TILE||GEMMEPI_SCALE==FROM_AMAX){\n"
"float scale=scale_from(GEMMEPI_SCALE==FROM_TILE?largest[threadIdx.x]:((const Magnitude*)p.amax)[at]);\nfactor[threadIdx.x]=1/(Acc)scale;\nif(GEMMEPI_SCALE==FROM_TILE||(GEMMEPI_MODE==SCALE_TENSOR?blockIdx.x==0:(K_FAST?fast:slow)==0))\np.y_scale[at]=scale;\n}\n"
"if(GEMMEPI_AMAX&&(GEMMEPI_MODE==SCALE_TENSOR||GEMMEPI_MODE==SCALE_OUTER))\nraise_to((Magnitude*)p.amax+at,largest[threadIdx.x]);\nelse if(GEMMEPI_AMAX)\n((Magnitude*)p.amax)[at]=largest[threadIdx.x];\n}\nif(!GEMMEPI_STORES)\nreturn;\n__syncthreads();\n#pragma unroll KEEPS_VALUES ? VECTORS : 8\n"
"for(int v=0;v<VECTORS;v++){\nAcc values[WIDE];\nint row=j+v*ROWS;\nwords_to_acc(KEEPS_VALUES?words[KEEPS_VALUES?v:0]:load(v),values);\n#pragma unroll\nfor(int e=0;e<WIDE;e++){\nif(GEMMEPI_SCALE!=AS_IT_IS)\nvalues[e]*=factor[group_of(i+e,row)];\n}\nRun<Y,WIDE>run=run_from_acc<Y>(values);\n"
"Y*to=y+row*p.stride_y[1]+ i*p.stride_y[0];\nif(row<extent_slow&&valid==WIDE)\n*reinterpret_cast<Words<Y,WIDE> *>(to)=words_of(run);\nelse if(row<extent_slow)\n#pragma unroll\nfor(int e=0;e<WIDE;e++)\nif(e<valid)\nto[e]=run.at[e];\n}\n}\n",
 NULL};
#endif

#ifndef GEMMEPI_NO_ELEMENTWISE
static const char *const gemmepi__source_sum_cu[] = {
"#line 1 \"src/kernels/sum.cu\"\n\n\n\n\n\n#include \"operations.cuh\"\n\n#ifndef GEMMEPI_OUTPUT\n#define GEMMEPI_OUTPUT OUT_Y\n#define GEMMEPI_OUT_TYPE F32\n#define GEMMEPI_ACCUMULATE 0\n#define GEMMEPI_VECTORS 0\n#define GEMMEPI_REPEATS 0\n#define GEMMEPI_AT_ONCE 8\n#define GEMMEPI_KEPT 1\n"
"#define GEMMEPI_ONE_AXIS 0\n#endif\n\nconstexpr int THREADS=256,AT_ONCE=GEMMEPI_AT_ONCE;\nconstexpr bool IN_F32=LARGEST_SIZE<=2;\nconstexpr int WIDE=GEMMEPI_VECTORS?VECTOR:1;\ntypedef GEMMEPI_OUT_TYPE Out;\n\ntemplate<int Tensor>constexpr bool REPEATS=(GEMMEPI_REPEATS>>Tensor&1)!=0;\n\n\n"
"template<int Tensor>struct Line{\nWords<Type<Tensor>,WIDE>words;\n};\ntemplate<int Tensor>__device__ inline Line<Tensor>load_line(const gemmepi__sum_params&p,long long at,int valid){\nLine<Tensor>line={};\nif constexpr(USED<Tensor>){\n"
"const Type<Tensor> *from=(const Type<Tensor> *)p.data[Tensor]+ at;\nif constexpr(REPEATS<Tensor> ||WIDE==1){\nRun<Type<Tensor>,WIDE>run={};\nif(valid>0)\nrun.at[0]= *from;\nline.words=words_of(run);\n}else if(valid>=WIDE){\nline.words= *reinterpret_cast<const Words<Type<Tensor>,WIDE> *>(from);\n"
"}else{\nline.words=words_of(read_elements<WIDE>(from,valid));\n}\n}\nreturn line;\n}\n\nstruct Lines{\nLine<IN_A>a;\nLine<IN_B>b;\nLine<IN_W>w;\nLine<IN_DY>dy;\n};\n\ntemplate<int Tensor>__device__ inline void take_line(const Line<Tensor> &line,Acc(&v)[TENSORS][WIDE]){\n"
"if constexpr(USED<Tensor>){\nwords_to_acc(line.words,v[Tensor]);\nif(REPEATS<Tensor>)\n#pragma unroll\nfor(int i=1;i<WIDE;i++)\nv[Tensor][i]=v[Tensor][0];\n}\n}\n\n\n__device__ inline void values_of(const Lines&lines,const Scalars&s,int valid,Acc(&sums)[WIDE]){\nAcc v[TENSORS][WIDE];\n"
"take_line(lines.a,v);\ntake_line(lines.b,v);\ntake_line(lines.w,v);\ntake_line(lines.dy,v);\n#pragma unroll\nfor(int i=0;i<WIDE;i++){\nAcc one[TENSORS];\n#pragma unroll\nfor(int t=0;t<TENSORS;t++)\none[t]=v[t][i];\noperate(one,s);\nsums[i]=i<valid?one[GEMMEPI_OUTPUT]:Acc(0);\n}\n}\n\n\n\n"
"struct Index{\nlong long at[4];\n};\n__device__ inline Index operator+(const Index&x,const Index&y){\nreturn{x.at[0]+ y.at[0],x.at[1]+ y.at[1],x.at[2]+ y.at[2],x.at[3]+ y.at[3]};\n}\n\n\n__device__ inline Index index_of(const gemmepi__axes&axes,long long index,bool lines,long long&first){\n"
"Index result={};\nfirst=0;\n#pragma unroll 1\nfor(int d=0;d<axes.rank;d++){\nlong long extent=d==0&&lines?(axes.extent[d]+ WIDE-1)/WIDE:axes.extent[d],rest=0,at=index;\nif(d+1<axes.rank){\nrest=(index|extent)>>32?index/extent:(long long)((u32)index/(u32)extent);\nat=index-rest*extent;\n}\n"
"if(d==0&&lines){\nat*=WIDE;\nfirst=at;\n}\n#define GEMMEPI_ADD(Tensor) \\\nif(USED<Tensor>)                            \\\nresult.at[Tensor]+=at*axes.stride[Tensor][d];\nGEMMEPI_EACH_INPUT(GEMMEPI_ADD)\n#undef GEMMEPI_ADD\nindex=rest;\n}\nreturn result;\n}\n\n"
"__device__ inline Lines load_lines(const gemmepi__sum_params&p,const Index&index,int valid){\nreturn{load_line<IN_A>(p,index.at[IN_A],valid),load_line<IN_B>(p,index.at[IN_B],valid),\nload_line<IN_W>(p,index.at[IN_W],valid),load_line<IN_DY>(p,index.at[IN_DY],valid)};\n}\n\n\n"
"__device__ inline Index steps_of(const gemmepi__sum_params&p,long long count){\nIndex result={};\n#define GEMMEPI_STEP(Tensor) \\\nif(USED<Tensor>)        \\\nresult.at[Tensor]=count*p.summed.stride[Tensor][0];\nGEMMEPI_EACH_INPUT(GEMMEPI_STEP)\n#undef GEMMEPI_STEP\nreturn result;\n}\n\n\n\n\n"
"__device__ inline void finish(const gemmepi__sum_params&p,u32 part,long long index,double sum){\nlong long at=0,rest=index;\nif(p.part_count<p.summed_count){\n((double*)p.data[GEMMEPI_OUTPUT])[part*p.kept_count+index]=sum;\nreturn;\n}\n#pragma unroll 1\nfor(int d=0;d<p.kept.rank;d++){\n"
"long long next=d+1<p.kept.rank?rest/p.kept.extent[d]:0;\nat +=(rest-next*p.kept.extent[d])*p.kept.stride[GEMMEPI_OUTPUT][d];\nrest=next;\n}\nOut*out=(Out*)p.data[GEMMEPI_OUTPUT]+ at;\nif(GEMMEPI_ACCUMULATE)\nsum +=to_acc<double>(*out);\n*out=from_acc<Out>(sum);\n}\n\n\n"
"template<int N>__device__ inline Acc sum_of(const Acc(&x)[N]){\n",
"if constexpr(N==1){\nreturn x[0];\n}else{\nAcc pairs[N/2];\n#pragma unroll\nfor(int i=0;i<N/2;i++)\npairs[i]=x[2*i]+ x[2*i+1];\nreturn sum_of(pairs);\n}\n}\n\n\ntemplate<int Count>\n__device__ inline void sum_of_rows(const Lines*rows,const Scalars&s,const int*exist,Acc(&sums)[WIDE]){\n"
"if constexpr(Count==1){\nvalues_of(*rows,s,*exist,sums);\n}else{\nAcc others[WIDE];\nsum_of_rows<Count/2>(rows,s,exist,sums);\nsum_of_rows<Count/2>(rows+Count/2,s,exist+Count/2,others);\n#pragma unroll\nfor(int i=0;i<WIDE;i++)\nsums[i]+=others[i];\n}\n}\n\n#if GEMMEPI_KEPT\n\n\n"
"extern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_sum_kept(GEMMEPI_PARAMS gemmepi__sum_params p){\n__shared__ double shared[THREADS*WIDE];\nScalars s=scalars_of(p.operation);\nu32 part=blockIdx.x/p.kept_blocks,thread=threadIdx.y*blockDim.x+threadIdx.x;\n"
"long long lines=(p.kept.extent[0]+ WIDE-1)/WIDE,kept=p.kept_count/p.kept.extent[0]*lines;\nlong long line=(long long)(blockIdx.x-part*p.kept_blocks)*blockDim.x+threadIdx.x,first;\nIndex base=index_of(p.kept,line,true,first);\n"
"int valid=line<kept?p.kept.extent[0]- first<WIDE?(int)(p.kept.extent[0]- first):WIDE:0;\nlong long row=part*p.part_count+threadIdx.y,end=(part+1)*p.part_count,unused;\nend=end<p.summed_count?end:p.summed_count;\ndouble sums[WIDE]={};\n"
"Index next=GEMMEPI_ONE_AXIS?base+steps_of(p,row):base,step=steps_of(p,blockDim.y);\nfor(;row<end&&valid;row +=(long long)AT_ONCE*blockDim.y){\nLines loaded[AT_ONCE];\nint exist[AT_ONCE];\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nlong long at=row +(long long)r*blockDim.y;\n"
"if(!GEMMEPI_ONE_AXIS)\nnext=base+index_of(p.summed,at<end?at:row,false,unused);\nexist[r]=at<end?valid:0;\nloaded[r]=load_lines(p,next,exist[r]);\nif(GEMMEPI_ONE_AXIS)\nnext=next+step;\n}\nif(IN_F32){\nAcc values[WIDE];\nsum_of_rows<AT_ONCE>(loaded,s,exist,values);\n#pragma unroll\n"
"for(int i=0;i<WIDE;i++)\nsums[i]+=values[i];\n}else{\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nAcc values[WIDE];\nvalues_of(loaded[r],s,exist[r],values);\n#pragma unroll\nfor(int i=0;i<WIDE;i++)\nsums[i]+=values[i];\n}\n}\n}\n#pragma unroll\nfor(int i=0;i<WIDE;i++)\n"
"shared[i*THREADS+thread]=sums[i];\nfor(u32 half=blockDim.y/2;half>0;half/=2){\n__syncthreads();\nif(threadIdx.y<half)\n#pragma unroll\nfor(int i=0;i<WIDE;i++)\nshared[i*THREADS+thread]+=shared[i*THREADS+thread+half*blockDim.x];\n}\nif(threadIdx.y==0)\nfor(int i=0;i<valid;i++)\n"
"finish(p,part,line/lines*p.kept.extent[0]+ first+i,shared[i*THREADS+thread]);\n}\n\n#else\n\n\n\nextern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_sum_along(GEMMEPI_PARAMS gemmepi__sum_params p){\n__shared__ double warps[THREADS/32];\nScalars s=scalars_of(p.operation);\n"
"u32 part=blockIdx.x/p.kept_blocks,thread=threadIdx.y*blockDim.x+threadIdx.x;\nlong long index=(long long)(blockIdx.x-part*p.kept_blocks)*blockDim.y+threadIdx.y,unused;\nbool exists=index<p.kept_count;\nIndex base=index_of(p.kept,exists?index:0,false,unused);\n"
"long long line=part*p.part_count+threadIdx.x,end=(part+1)*p.part_count;\nend= !exists?0:end<p.summed_count?end:p.summed_count;\nIndex next=GEMMEPI_ONE_AXIS?base+steps_of(p,line*WIDE):base,step=steps_of(p,blockDim.x*WIDE);\ndouble sum=0;\nfor(;line<end;line +=(long long)AT_ONCE*blockDim.x){\n"
"Lines loaded[AT_ONCE];\nint valid[AT_ONCE];\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nlong long at=line +(long long)r*blockDim.x,first=at*WIDE;\nif(!GEMMEPI_ONE_AXIS)\nnext=base+index_of(p.summed,at<end?at:line,true,first);\n"
"valid[r]=at>=end?0:p.summed.extent[0]- first<WIDE?(int)(p.summed.extent[0]- first):WIDE;\nloaded[r]=load_lines(p,next,valid[r]);\nif(GEMMEPI_ONE_AXIS)\nnext=next+step;\n}\n#pragma unroll\nfor(int r=0;r<AT_ONCE;r++){\nAcc values[WIDE];\nvalues_of(loaded[r],s,valid[r],values);\nif(IN_F32)\n"
"sum +=sum_of(values);\nelse\n#pragma unroll\nfor(int i=0;i<WIDE;i++)\nsum +=values[i];\n}\n}\nfor(u32 half=(blockDim.x<32?blockDim.x:32)/2;half>0;half/=2)\nsum +=__shfl_xor_sync(0xffffffff,sum,half);\nif(blockDim.x>32){\nif(thread%32==0)\n",
"warps[thread/32]=sum;\n__syncthreads();\nfor(u32 other=1;other<blockDim.x/32;other++)\nsum=threadIdx.x==0?sum+warps[thread/32+other]:sum;\n}\nif(threadIdx.x==0&&exists)\nfinish(p,part,index,sum);\n}\n\n#endif\n",
 NULL};
#endif

static const char *const gemmepi__source_transpose_cu[] = {
"#line 1 \"src/kernels/transpose.cu\"\n\n\n#include \"types.cuh\"\n#include \"params.h\"\n\n#ifndef GEMMEPI_TILE\n#define GEMMEPI_TILE 64\n#endif\n#ifndef GEMMEPI_THREADS\n#define GEMMEPI_THREADS 256\n#endif\n\n"
"constexpr int TILE=GEMMEPI_TILE,THREADS=GEMMEPI_THREADS,AT_ONCE=THREADS/TILE,TIMES=TILE/AT_ONCE;\n\nextern \"C\" __global__ void __launch_bounds__(THREADS)gemmepi_transpose(GEMMEPI_PARAMS gemmepi__convert_params p){\n__shared__ u32 square[TILE][TILE+1];\n"
"u32 across=(u32)((p.columns+TILE-1)/TILE),of_item=across*(u32)((p.rows+TILE-1)/TILE);\nu32 item=blockIdx.x/of_item,of_lines=(blockIdx.x-item*of_item)/across;\nlong long row=(long long)of_lines*TILE,column=(long long)(blockIdx.x-item*of_item-of_lines*across)*TILE;\n"
"int lane=threadIdx.x%TILE,line=threadIdx.x/TILE;\nint rows_left=p.rows-row<TILE?(int)(p.rows-row):TILE;\nint columns_left=p.columns-column<TILE?(int)(p.columns-column):TILE;\nafter_launches_before();\nconst u32*x=(const u32*)p.x.data+item*p.x.stride+row*p.x.ld+column;\n"
"u32*out=(u32*)p.out.data+item*p.out.stride+column*p.out.ld+row;\nu32 words[TIMES];\n#pragma unroll\nfor(int i=0;i<TIMES;i++)\nwords[i]=line+i*AT_ONCE<rows_left&&lane<columns_left?x[(line+i*AT_ONCE)*p.x.ld+lane]:0;\n#pragma unroll\nfor(int i=0;i<TIMES;i++)\nsquare[line+i*AT_ONCE][lane]=words[i];\n"
"__syncthreads();\n#pragma unroll\nfor(int i=0;i<TIMES;i++)\nif(line+i*AT_ONCE<columns_left&&lane<rows_left)\nout[(line+i*AT_ONCE)*p.out.ld+lane]=square[lane][line+i*AT_ONCE];\n}\n",
 NULL};

static const char *const gemmepi__source_types_cuh[] = {
"#line 1 \"src/kernels/types.cuh\"\n\n#pragma once\n\ntypedef unsigned char u8;\ntypedef unsigned short u16;\ntypedef unsigned int u32;\ntypedef unsigned long long u64;\n\ntemplate<class X,class Y>constexpr bool SAME=false;\ntemplate<class X>constexpr bool SAME<X,X> =true;\n\n\n"
"#if __CUDA_ARCH__ >= 700\n#define GEMMEPI_PARAMS const __grid_constant__\n#else\n#define GEMMEPI_PARAMS const\n#endif\n\n\n\n__device__ inline void after_launches_before(){\n#if __CUDA_ARCH__ >= 900\nasm volatile(\"griddepcontrol.wait;\\ngriddepcontrol.launch_dependents;\" ::: \"memory\");\n"
"#endif\n}\n\ntypedef float F32;\ntypedef double F64;\ntypedef signed char I8;\ntypedef int I32;\nstruct F16{\nu16 bits;\n};\nstruct BF16{\nu16 bits;\n};\nstruct E4M3{\nu8 bits;\nstatic constexpr int MANTISSA=3,BIAS=7;\nstatic constexpr u32 LARGEST=0x7e;\n};\nstruct E5M2{\nu8 bits;\n"
"static constexpr int MANTISSA=2,BIAS=15;\nstatic constexpr u32 LARGEST=0x7b;\n};\ntemplate<class T>constexpr bool IS_FP8=SAME<T,E4M3> ||SAME<T,E5M2>;\n\n\nenum{SCALE_NONE,SCALE_TENSOR,SCALE_OUTER,SCALE_VECTOR_128,SCALE_BLOCK_128};\nconstexpr int SCALE_STEPS=128;\n\n\n\nstruct Scale_line{\n"
"const float*at;\nlong long step;\n};\ntemplate<int Mode>\n__device__ inline Scale_line scale_line(const float*scale,long long outer,long long extent,long long k){\nif(Mode==SCALE_VECTOR_128)\nreturn{scale+outer,extent};\nreturn{scale+outer/SCALE_STEPS*((k+4*SCALE_STEPS-1)/(4*SCALE_STEPS)*4),1};\n"
"}\n\n\n#if __CUDA_ARCH__ >= 900 || (__CUDA_ARCH__ >= 890 && (__CUDACC_VER_MAJOR__ > 12 || __CUDACC_VER_MINOR__ > 0))\n#define GEMMEPI_FP8_INSTRUCTIONS 1\n#else\n#define GEMMEPI_FP8_INSTRUCTIONS 0\n#endif\n\n\n__device__ inline float to_f32(F32 x){\nreturn x;\n}\n"
"__device__ inline float to_f32(F16 x){\nfloat y;\nasm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y): \"h\"(x.bits));\nreturn y;\n}\n__device__ inline float to_f32(BF16 x){\nreturn __uint_as_float((u32)x.bits<<16);\n}\n__device__ inline float to_f32(I8 x){\nreturn(float)x;\n}\n"
"__device__ inline float to_f32(I32 x){\nreturn(float)x;\n}\n__device__ inline void from_f32(float x,F32&y){\ny=x;\n}\n__device__ inline void from_f32(float x,F16&y){\nasm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y.bits): \"f\"(x));\n}\n__device__ inline void from_f32(float x,BF16&y){\n"
"#if __CUDA_ARCH__ >= 800\nasm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y.bits): \"f\"(x));\n#else\nu32 bits=__float_as_uint(x);\ny.bits=x!=x?(u16)0x7fff:(u16)((bits+0x7fff +(bits>>16&1))>>16);\n#endif\n}\n__device__ inline void from_f32(float x,I8&y){\nint whole=__float2int_rn(x);\n"
"y=(I8)(whole< -128? -128:whole>127?127:whole);\n}\n\n\n#if GEMMEPI_FP8_INSTRUCTIONS\ntemplate<class T>__device__ inline u16 pack_fp8(float first,float second){\nu16 two;\nif constexpr(SAME<T,E4M3>)\nasm(\"cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\" : \"=h\"(two): \"f\"(second),\"f\"(first));\n"
"else\nasm(\"cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;\" : \"=h\"(two): \"f\"(second),\"f\"(first));\nreturn two;\n}\ntemplate<class T>__device__ inline u32 unpack_fp8(u16 two){\nu32 wide;\nif constexpr(SAME<T,E4M3>)\nasm(\"cvt.rn.f16x2.e4m3x2 %0, %1;\" : \"=r\"(wide): \"h\"(two));\nelse\n"
"asm(\"cvt.rn.f16x2.e5m2x2 %0, %1;\" : \"=r\"(wide): \"h\"(two));\nreturn wide;\n}\n#else\ntemplate<class T>__device__ inline u32 encode_fp8(float x){\nconstexpr int shift=23-T::MANTISSA;\n\nconstexpr u32 rounder=(u32)(127+23+1-T::BIAS-T::MANTISSA)<<23;\n"
"u32 bits=__float_as_uint(x),size=bits&0x7fffffff,code;\nif(size<(u32)(128-T::BIAS)<<23)\ncode=__float_as_uint(__uint_as_float(size)+ __uint_as_float(rounder))- rounder;\nelse\ncode=((size +(1u<<(shift-1))- 1 +(size>>shift&1))>>shift)-\n((u32)(127-T::BIAS)<<T::MANTISSA);\n"
"code=code>T::LARGEST?T::LARGEST:code;\nreturn x!=x?0x7f:bits>>24&0x80|code;\n}\ntemplate<class T>__device__ inline u16 pack_fp8(float first,float second){\nreturn(u16)(encode_fp8<T>(first)|encode_fp8<T>(second)<<8);\n}\ntemplate<class T>__device__ inline u32 decode_fp8(u32 code){\n"
"if(SAME<T,E5M2>)\nreturn code<<8;\n",
"float size=__uint_as_float((code&0x7f)<<20)*__uint_as_float((127+120)<<23);\nF16 y;\nfrom_f32(size,y);\nreturn(code&0x80)<<8|((code&0x7f)==0x7f?0x7fff:y.bits);\n}\ntemplate<class T>__device__ inline u32 unpack_fp8(u16 two){\nreturn decode_fp8<T>(two&0xff)|decode_fp8<T>(two>>8)<<16;\n}\n#endif\n\n"
"template<class T>__device__ inline F16 fp8_to_f16(T x){\nreturn{(u16)unpack_fp8<T>(x.bits)};\n}\n__device__ inline float to_f32(E4M3 x){\nreturn to_f32(fp8_to_f16(x));\n}\n__device__ inline float to_f32(E5M2 x){\nreturn to_f32(fp8_to_f16(x));\n}\n__device__ inline void from_f32(float x,E4M3&y){\n"
"y.bits=(u8)pack_fp8<E4M3>(x,0);\n}\n__device__ inline void from_f32(float x,E5M2&y){\ny.bits=(u8)pack_fp8<E5M2>(x,0);\n}\n\n\n__device__ inline I32 wrap(double x){\nreturn x> -4611686018427387904.0&&x<4611686018427387904.0?(I32)__double2ll_rn(x):0;\n}\n\n\n"
"template<class A,class T>__device__ inline A to_acc(T x){\nif constexpr(SAME<A,T>)\nreturn x;\nelse if constexpr(SAME<T,I32>)\nreturn(A)x;\nelse\nreturn to_f32(x);\n}\ntemplate<class T,class A>__device__ inline T from_acc(A x){\nT y;\nif constexpr(SAME<A,T>){\ny=x;\n"
"}else if constexpr(SAME<A,F32>){\nfrom_f32(x,y);\n}else if constexpr(SAME<A,F64> &&SAME<T,F32>){\ny=(float)x;\n}else if constexpr(SAME<A,F64> &&SAME<T,I32>){\ny=wrap(x);\n}else{\n\nfloat cut=__double2float_rz(x);\nfrom_f32(cut==x?cut:__uint_as_float(__float_as_uint(cut)|1),y);\n}\nreturn y;\n"
"}\n\n\ntemplate<class To,class T>__device__ inline To convert(T x){\nTo y;\nif constexpr(SAME<To,T>)\ny=x;\nelse if constexpr(SAME<To,I32>)\ny=x;\nelse if constexpr(SAME<To,F16> &&IS_FP8<T>)\ny=fp8_to_f16(x);\nelse if constexpr(SAME<To,BF16>)\ny.bits=(u16)(__float_as_uint(to_f32(x))>>16);\nelse\n"
"from_f32(to_f32(x),y);\nreturn y;\n}\n\n\nconstexpr int RUN=8;\n\n\n\n__device__ inline int existing(int left){\nreturn left<RUN?left:RUN;\n}\n\ntemplate<class T,int N=RUN>struct alignas(sizeof(T)*N>16?16:sizeof(T)*N)Run{\nT at[N];\n};\n\n\ntemplate<int Bytes>struct Word_of{\ntypedef u32 type;\n"
"};\ntemplate<>struct Word_of<2>{\ntypedef u16 type;\n};\ntemplate<>struct Word_of<1>{\ntypedef u8 type;\n};\ntemplate<class T,int N=RUN>struct alignas(alignof(Run<T,N>))Words{\ntypedef typename Word_of<sizeof(Run<T,N>)>::type Word;\nWord at[sizeof(Run<T,N>)/sizeof(Word)];\n};\n"
"template<class T,int N>__device__ inline Run<T,N>run_of(const Words<T,N> &words){\nRun<T,N>run;\nmemcpy(&run,&words,sizeof run);\nreturn run;\n}\ntemplate<class T,int N>__device__ inline Words<T,N>words_of(const Run<T,N> &run){\nWords<T,N>words;\nmemcpy(&words,&run,sizeof words);\nreturn words;\n"
"}\n\n\ntemplate<class To,class T>__device__ inline Words<To>convert_run(const Words<T> &x){\nif constexpr(SAME<To,T>){\nreturn x;\n}else{\nRun<T>from=run_of(x);\nRun<To>to;\nWords<To>words;\n#pragma unroll\nfor(int i=0;i<RUN;i +=2){\nif constexpr(IS_FP8<T>){\n"
"u32 two=unpack_fp8<T>((u16)(x.at[i/4]>>i%4*8));\nif constexpr(SAME<To,F16>)\nwords.at[i/2]=two;\nto.at[i]=convert<To>(F16{(u16)two});\nto.at[i+1]=convert<To>(F16{(u16)(two>>16)});\n}else{\nto.at[i]=convert<To>(from.at[i]);\nto.at[i+1]=convert<To>(from.at[i+1]);\n}\n}\n"
"if constexpr(IS_FP8<T> &&SAME<To,F16>)\nreturn words;\nelse\nreturn words_of(to);\n}\n}\ntemplate<class A,class T,int N>__device__ inline void run_to_acc(const Run<T,N> &x,A(&values)[N]){\n#pragma unroll\nfor(int i=0;i<N;i +=2){\nif constexpr(N==1){\nvalues[i]=to_acc<A>(x.at[i]);\n"
"}else if constexpr(IS_FP8<T>){\nu32 two=unpack_fp8<T>((u16)(x.at[i].bits|x.at[i+1].bits<<8));\nvalues[i]=to_acc<A>(F16{(u16)two});\nvalues[i+1]=to_acc<A>(F16{(u16)(two>>16)});\n}else{\nvalues[i]=to_acc<A>(x.at[i]);\nvalues[i+1]=to_acc<A>(x.at[i+1]);\n}\n}\n}\n\n"
"template<class A,class T,int N>__device__ inline void words_to_acc(const Words<T,N> &words,A(&values)[N]){\nif constexpr(SAME<T,BF16> &&N>1){\n#pragma unroll\nfor(int i=0;i<N;i +=2){\nvalues[i]=(A)__uint_as_float(words.at[i/2]<<16);\nvalues[i+1]=(A)__uint_as_float(words.at[i/2]&0xffff0000);\n}\n"
"}else{\nrun_to_acc(run_of(words),values);\n}\n}\n",
"template<class T,class A,int N>__device__ inline Run<T,N>run_from_acc(const A(&values)[N]){\nRun<T,N>y;\n#pragma unroll\nfor(int i=0;i<N;i +=2){\nif constexpr(N==1){\ny.at[i]=from_acc<T>(values[i]);\n}else if constexpr(IS_FP8<T> &&SAME<A,F32>){\nu16 two=pack_fp8<T>(values[i],values[i+1]);\n"
"y.at[i].bits=(u8)two;\ny.at[i+1].bits=(u8)(two>>8);\n}else{\ny.at[i]=from_acc<T>(values[i]);\ny.at[i+1]=from_acc<T>(values[i+1]);\n}\n}\nreturn y;\n}\n\n\ntemplate<int N=RUN,class T>__device__ inline Run<T,N>read_elements(const T*from,int valid){\nRun<T,N>run={};\n#pragma unroll\n"
"for(int i=0;i<N;i++)\nif(i<valid)\nrun.at[i]=from[i];\nreturn run;\n}\n\n\ntemplate<bool Aligned,class T>__device__ inline Words<T>read_run(const T*from,int valid){\nif(Aligned&&valid==RUN)\nreturn*reinterpret_cast<const Words<T> *>(from);\nreturn words_of(read_elements(from,valid));\n}\n\n"
"template<bool Aligned,class A,class T>\n__device__ inline void store_run(T*to,int valid,const A(&values)[RUN]){\nRun<T>run=run_from_acc<T>(values);\nif(Aligned&&valid==RUN){\n*reinterpret_cast<Words<T> *>(to)=words_of(run);\n}else{\n#pragma unroll\nfor(int i=0;i<RUN;i++)\nif(i<valid)\n"
"to[i]=run.at[i];\n}\n}\n",
 NULL};

/* By file name; a source is its parts one after another. */
typedef struct gemmepi__source {
 const char *name;
 const char *const *parts;
} gemmepi__source;

static const gemmepi__source gemmepi__sources[] = {
 {"activation.cuh", gemmepi__source_activation_cuh},
 {"amax.cuh", gemmepi__source_amax_cuh},
 {"codes.h", gemmepi__source_codes_h},
 {"convert.cu", gemmepi__source_convert_cu},
 {"copy.cuh", gemmepi__source_copy_cuh},
#ifndef GEMMEPI_NO_ELEMENTWISE
 {"elementwise.cu", gemmepi__source_elementwise_cu},
#endif
 {"epilogue.cuh", gemmepi__source_epilogue_cuh},
 {"epilogue_column_sums.cuh", gemmepi__source_epilogue_column_sums_cuh},
 {"epilogue_formula.cuh", gemmepi__source_epilogue_formula_cuh},
 {"epilogue_fragment.cuh", gemmepi__source_epilogue_fragment_cuh},
 {"epilogue_mask.cuh", gemmepi__source_epilogue_mask_cuh},
 {"epilogue_parameters.cuh", gemmepi__source_epilogue_parameters_cuh},
 {"epilogue_staging.cuh", gemmepi__source_epilogue_staging_cuh},
 {"gemm_plain.cu", gemmepi__source_gemm_plain_cu},
#ifndef GEMMEPI_NO_SM80
 {"gemm_sm80.cu", gemmepi__source_gemm_sm80_cu},
#endif
#ifndef GEMMEPI_NO_SM90
 {"gemm_sm90.cu", gemmepi__source_gemm_sm90_cu},
#endif
#ifndef GEMMEPI_NO_SM80
 {"gemm_small.cu", gemmepi__source_gemm_small_cu},
#endif
#ifndef GEMMEPI_NO_ELEMENTWISE
 {"operations.cuh", gemmepi__source_operations_cuh},
#endif
 {"pack.cu", gemmepi__source_pack_cu},
 {"params.h", gemmepi__source_params_h},
 {"pass.cu", gemmepi__source_pass_cu},
 {"reduce.cu", gemmepi__source_reduce_cu},
#ifndef GEMMEPI_NO_ELEMENTWISE
 {"scaled.cu", gemmepi__source_scaled_cu},
#endif
#ifndef GEMMEPI_NO_ELEMENTWISE
 {"sum.cu", gemmepi__source_sum_cu},
#endif
 {"transpose.cu", gemmepi__source_transpose_cu},
 {"types.cuh", gemmepi__source_types_cuh},
 {NULL, NULL}};

#define GEMMEPI__MAX_SOURCES 32

static const gemmepi__source *gemmepi__find_source_in(const gemmepi__source *sources, const char *name) {
 while (sources->name && strcmp(sources->name, name) != 0)
  sources++;
 return sources->name ? sources : NULL;
}

static const gemmepi__source *gemmepi__find_source(const char *name) {
 return gemmepi__find_source_in(gemmepi__sources, name);
}

/* prologue and the source's parts as one text from the allocator */
static char *gemmepi__join_source(const gemmepi_allocator *allocator, const char *prologue,
    const gemmepi__source *source) {
 const char *const *part;
 size_t length = strlen(prologue), size;
 char *text, *at;
 for (part = source->parts; *part; part++)
  length += strlen(*part);
 text = (char *)gemmepi__new(allocator, length + 1);
 if (!text)
  return NULL;
 size = strlen(prologue);
 memcpy(text, prologue, size);
 at = text + size;
 for (part = source->parts; *part; part++) {
  size = strlen(*part);
  memcpy(at, *part, size);
  at += size;
 }
 return text;
}

/* >>digests: a file's own, and the files that it includes itself. Those of the library's own sources are found once in a
 process. No lock guards them: who is first with a file publishes what it found, others that miss it find the same. */

typedef struct gemmepi__source_digest {
 unsigned char own[GEMMEPI__SHA256_SIZE];
 uint32_t includes; /* bit i: the i-th of the sources */
} gemmepi__source_digest;

static gemmepi__source_digest gemmepi__source_digests[GEMMEPI__MAX_SOURCES];
static long gemmepi__source_claims[GEMMEPI__MAX_SOURCES];
static gemmepi__atomic_pointer
 gemmepi__source_known[GEMMEPI__MAX_SOURCES]; /* to the digest, once it is whole */

/* The source that a line of the embedded text includes, as a bit; 0: none. */
static uint32_t gemmepi__included_by_line(const gemmepi__source *sources, const char *line) {
 static const char directive[] = "#include \"";
 const char *end;
 char name[64];
 const gemmepi__source *source;
 if (strncmp(line, directive, strlen(directive)) != 0)
  return 0;
 line += strlen(directive);
 end = strchr(line, '"');
 if (!end || (size_t)(end - line) >= sizeof name)
  return 0;
 memcpy(name, line, (size_t)(end - line));
 name[end - line] = 0;
 source = gemmepi__find_source_in(sources, name);
 return source ? (uint32_t)1 << (source - sources) : 0;
}

/* Those of all lines of a part, which begins at one. */
static uint32_t gemmepi__included_by(const gemmepi__source *sources, const char *part) {
 uint32_t bits = 0;
 while (part) {
  bits |= gemmepi__included_by_line(sources, part);
  part = strchr(part, '\n');
  part = part ? part + 1 : NULL;
 }
 return bits;
}

static void gemmepi__digest_source(const gemmepi__source *sources, int index,
    gemmepi__source_digest *digest) {
 const gemmepi__source *source = &sources[index];
 const char *const *part;
 gemmepi__sha256 sha;
 digest->includes = 0;
 gemmepi__sha256_init(&sha);
 gemmepi__sha256_update(&sha, source->name, strlen(source->name) + 1);
 for (part = source->parts; *part; part++) {
  gemmepi__sha256_update(&sha, *part, strlen(*part));
  digest->includes |= gemmepi__included_by(sources, *part);
 }
 gemmepi__sha256_final(&sha, digest->own);
}

static void gemmepi__know_source(int index, gemmepi__source_digest *digest) {
 const void *known = gemmepi__load_pointer(&gemmepi__source_known[index]);
 if (known) {
  memcpy(digest, known, sizeof *digest);
  return;
 }
 gemmepi__digest_source(gemmepi__sources, index, digest);
 if (gemmepi__add(&gemmepi__source_claims[index], 1) == 1) {
  gemmepi__source_digests[index] = *digest;
  gemmepi__publish_pointer(&gemmepi__source_known[index], &gemmepi__source_digests[index]);
 }
}

/* The digest of a file and of exactly those that it includes, directly or not. sources: gemmepi__sources, or a test's. */
static void gemmepi__digest_closure(const gemmepi__source *sources, const char *file,
    char hex[GEMMEPI__SHA256_HEX_SIZE]) {
 const gemmepi__source *source = gemmepi__find_source_in(sources, file);
 uint32_t wanted = source ? (uint32_t)1 << (source - sources) : 0, done = 0;
 unsigned char all[GEMMEPI__SHA256_SIZE];
 gemmepi__sha256 sha;
 gemmepi__sha256_init(&sha);
 while (wanted & ~done) {
  gemmepi__source_digest digest;
  int index = 0;
  while (!((wanted & ~done) >> index & 1))
   index++;
  if (sources == gemmepi__sources)
   gemmepi__know_source(index, &digest);
  else
   gemmepi__digest_source(sources, index, &digest);
  gemmepi__sha256_update(&sha, digest.own, sizeof digest.own);
  wanted |= digest.includes;
  done |= (uint32_t)1 << index;
 }
 gemmepi__sha256_final(&sha, all);
 gemmepi__sha256_hex(all, hex);
}
/* Our CUDA sources to machine code, by NVRTC. */

#define GEMMEPI__KERNEL_NAME 96 /* room for a kernel's name, as in gemmepi_plan_details */

/* What to compile for: cubin for an architecture that NVRTC knows, or PTX that the driver of a newer chip compiles. */
typedef struct gemmepi__target {
 char name[24]; /* "sm_90", "sm_90a", "compute_120" */
 int is_ptx;
 int keeps_ptx; /* the image has PTX beside a cubin, too */
} gemmepi__target;

typedef struct gemmepi__image {
 char *data; /* cubin, or PTX with its final zero */
 size_t size;
 char *ptx; /* with its final zero; NULL: not asked for */
} gemmepi__image;

/* The best target of this NVRTC for a chip; arch is 90 for compute capability 9.0. */
static gemmepi_status gemmepi__choose_target(const gemmepi__nvrtc *nvrtc, int arch, gemmepi__target *target) {
 int archs[64], count = 0, best = 0, i;
 int result = nvrtc->get_num_supported_archs(&count);
 if (!result && count > 0 && count <= (int)GEMMEPI__COUNT(archs))
  result = nvrtc->get_supported_archs(archs);
 if (result || count <= 0 || count > (int)GEMMEPI__COUNT(archs))
  return gemmepi__fail(GEMMEPI_COMPILE_ERROR,
    "NVRTC does not tell the architectures it knows (%s, count %d)",
    nvrtc->get_error_string(result), count);
 for (i = 0; i < count; i++)
  if (archs[i] <= arch && archs[i] > best)
   best = archs[i];
 if (best == 0)
  return gemmepi__fail(
   GEMMEPI_UNSUPPORTED,
   "the GPU's compute capability is %d.%d, older than any that NVRTC %d.%d compiles for", arch / 10,
   arch % 10, nvrtc->version / 1000, nvrtc->version % 1000 / 10);
 target->is_ptx = best != arch;
 target->keeps_ptx = 0;
 snprintf(target->name, sizeof target->name, "%s_%d", target->is_ptx ? "compute" : "sm", best);
 return GEMMEPI_OK;
}

/* Every source by the name under which #include finds it, in memory from the allocator. */
typedef struct gemmepi__headers {
 int count;
 const char *names[GEMMEPI__MAX_SOURCES];
 char *texts[GEMMEPI__MAX_SOURCES];
} gemmepi__headers;

static void gemmepi__free_headers(const gemmepi_allocator *allocator, gemmepi__headers *headers) {
 int i;
 for (i = 0; i < headers->count; i++)
  gemmepi__delete(allocator, headers->texts[i]);
 headers->count = 0;
}

static int gemmepi__make_headers(const gemmepi_allocator *allocator, gemmepi__headers *headers) {
 const gemmepi__source *source;
 headers->count = 0;
 for (source = gemmepi__sources; source->name && headers->count < GEMMEPI__MAX_SOURCES; source++) {
  char *text;
  if (strstr(source->name, ".cu") && !strstr(source->name, ".cuh"))
   continue; /* a kernel file is never included */
  text = gemmepi__join_source(allocator, "", source);
  if (!text) {
   gemmepi__free_headers(allocator, headers);
   return 0;
  }
  headers->names[headers->count] = source->name;
  headers->texts[headers->count++] = text;
 }
 return 1;
}

/* NVRTC's log from the allocator, or NULL. */
static char *gemmepi__program_log(const gemmepi__nvrtc *nvrtc, const gemmepi_allocator *allocator,
    gemmepi__nvrtc_program program) {
 size_t size = 0;
 char *log;
 if (nvrtc->get_program_log_size(program, &size) != 0 || size == 0)
  return NULL;
 log = (char *)gemmepi__new(allocator, size + 1);
 if (log && nvrtc->get_program_log(program, log) != 0)
  log[0] = 0;
 return log;
}

static void gemmepi__free_image(const gemmepi_allocator *allocator, gemmepi__image *image) {
 gemmepi__delete(allocator, image->data);
 gemmepi__delete(allocator, image->ptx);
 image->data = image->ptx = NULL;
}

/* NULL where there is none. */
static char *gemmepi__take_ptx(const gemmepi__nvrtc *nvrtc, const gemmepi_allocator *allocator,
    gemmepi__nvrtc_program program) {
 size_t size = 0;
 char *ptx = NULL;
 if (nvrtc->get_ptx_size(program, &size) == 0 && size != 0)
  ptx = (char *)gemmepi__new(allocator, size + 1);
 if (ptx && nvrtc->get_ptx(program, ptx) != 0)
  ptx[0] = 0;
 return ptx;
}

static gemmepi_status gemmepi__take_image(const gemmepi__nvrtc *nvrtc, const gemmepi_allocator *allocator,
    gemmepi__nvrtc_program program, int is_ptx, gemmepi__image *image) {
 int result =
  is_ptx ? nvrtc->get_ptx_size(program, &image->size) : nvrtc->get_cubin_size(program, &image->size);
 if (result)
  return gemmepi__nvrtc_failed(nvrtc, result, "asking for the size of the machine code");
 image->data = (char *)gemmepi__new(allocator, image->size);
 if (!image->data)
  return GEMMEPI_OUT_OF_MEMORY;
 result = is_ptx ? nvrtc->get_ptx(program, image->data) : nvrtc->get_cubin(program, image->data);
 if (!result)
  return GEMMEPI_OK;
 gemmepi__delete(allocator, image->data);
 image->data = NULL;
 return gemmepi__nvrtc_failed(nvrtc, result, "taking the machine code");
}

/* Compiles file (a name in gemmepi__sources) after prologue. image->data, and *log if log is not NULL (with ptxas's
 report of registers and memory), are the caller's, from the allocator. */
static gemmepi_status gemmepi__compile(const gemmepi__nvrtc *nvrtc, const gemmepi_allocator *allocator,
    const char *file, const char *prologue, const gemmepi__target *target,
    gemmepi__image *image, char **log) {
 const gemmepi__source *source = gemmepi__find_source(file);
 gemmepi__nvrtc_program program = NULL;
 gemmepi__headers headers;
 gemmepi_status status;
 char arch[48], *text, *messages;
 const char *options[4];
 int count = 2, result;
 image->data = image->ptx = NULL;
 if (log)
  *log = NULL;
 if (!source)
  return gemmepi__fail(GEMMEPI_COMPILE_ERROR, "there is no kernel file called %s", file);
 text = gemmepi__join_source(allocator, prologue, source);
 if (!text || !gemmepi__make_headers(allocator, &headers)) {
  gemmepi__delete(allocator, text);
  return GEMMEPI_OUT_OF_MEMORY;
 }
 snprintf(arch, sizeof arch, "--gpu-architecture=%s", target->name);
 options[0] = arch;
 options[1] = "--std=c++17";
 if (log && !target->is_ptx)
  options[count++] = "--ptxas-options=-v";
 if (log && nvrtc->version >= 12090) /* what NVRTC finds in its own cache comes without a report */
  options[count++] = "--no-cache";
 result = nvrtc->create_program(&program, text, file, headers.count, (const char *const *)headers.texts,
    headers.names);
 if (!result)
  result = nvrtc->compile_program(program, count, options);
 messages = program ? gemmepi__program_log(nvrtc, allocator, program) : NULL;
 if (result)
  status = gemmepi__fail(result == GEMMEPI__NVRTC_ERROR_OUT_OF_MEMORY ? GEMMEPI_OUT_OF_MEMORY
    : GEMMEPI_COMPILE_ERROR,
    "NVRTC did not compile %s for %s: %s\n%s", file, target->name,
    nvrtc->get_error_string(result), messages ? messages : "");
 else
  status = gemmepi__take_image(nvrtc, allocator, program, target->is_ptx, image);
 if (!status && target->keeps_ptx && !target->is_ptx)
  image->ptx = gemmepi__take_ptx(nvrtc, allocator, program);
 if (log)
  *log = messages;
 else
  gemmepi__delete(allocator, messages);
 if (program)
  nvrtc->destroy_program(&program);
 gemmepi__free_headers(allocator, &headers);
 gemmepi__delete(allocator, text);
 return status;
}
/* What was compiled, to look at: config.dump_path. */

/* The source's lines with each file that they include in place, once. #line and #pragma once would only confuse a compiler
 that is given the whole. */
static void gemmepi__append_source(gemmepi__text *text, const gemmepi__source *source, uint32_t *seen) {
 const char *const *part;
 *seen |= (uint32_t)1 << (source - gemmepi__sources);
 for (part = source->parts; *part; part++) {
  const char *line = *part, *end;
  for (; *line; line = end) {
   uint32_t included;
   int i;
   end = strchr(line, '\n');
   end = end ? end + 1 : line + strlen(line);
   included = gemmepi__included_by_line(gemmepi__sources, line);
   for (i = 0; i < GEMMEPI__MAX_SOURCES; i++)
    if (included >> i & 1 && !(*seen >> i & 1))
    gemmepi__append_source(text, &gemmepi__sources[i], seen);
   if (!included && strncmp(line, "#line ", 6) != 0 && strncmp(line, "#pragma once", 12) != 0)
    gemmepi__append(text, "%.*s", (int)(end - line), line);
  }
 }
}

/* From the allocator, or NULL. */
static char *gemmepi__whole_source(const gemmepi_allocator *allocator, const gemmepi__source *source,
    const char *prologue) {
 char *data = NULL;
 size_t size = 0;
 int pass;
 for (pass = 0; pass < 2; pass++) { /* the first measures */
  gemmepi__text text = gemmepi__text_in(data, size);
  uint32_t seen = 0;
  gemmepi__append(&text, "%s", prologue);
  gemmepi__append_source(&text, source, &seen);
  size = text.length + 1;
  if (!pass)
   data = (char *)gemmepi__new(allocator, size);
  if (!data)
   return NULL;
 }
 return data;
}

/* Puts NAME.KIND in place of what the folder has of that name. Returns the system's error code. */
static int gemmepi__dump_file(const gemmepi__folder *folder, const char *name, const char *kind,
    const void *data, size_t size) {
 char file[GEMMEPI__KERNEL_NAME + 8];
 gemmepi__file_piece piece;
 snprintf(file, sizeof file, "%s.%s", name, kind);
 piece.data = data;
 piece.size = size;
 return gemmepi__file_store(folder, file, &piece, 1);
}

/* Needs no lock. */
static void gemmepi__dump_kernel(const gemmepi_context *context, const gemmepi__source *source,
    const char *prologue, const char *name, const gemmepi__target *target,
    const gemmepi__image *image) {
 const char *ptx = target->is_ptx ? image->data : image->ptx;
 char *text = gemmepi__whole_source(&context->allocator, source, prologue), reason[256];
 gemmepi__text why = gemmepi__text_in(reason, sizeof reason);
 gemmepi__folder folder;
 int code = gemmepi__folder_make(context->dump_path);
 if (!code)
  code = gemmepi__folder_open(&folder, context->dump_path);
 if (!code) {
  code = text ? gemmepi__dump_file(&folder, name, "cu", text, strlen(text)) : GEMMEPI__FILE_NO_MEMORY;
  if (!code && ptx)
   code = gemmepi__dump_file(&folder, name, "ptx", ptx, strlen(ptx));
  if (!code && !target->is_ptx)
   code = gemmepi__dump_file(&folder, name, "cubin", image->data, image->size);
  gemmepi__folder_close(&folder);
 }
 gemmepi__delete(&context->allocator, text);
 if (!code)
  return;
 gemmepi__file_error(&why, code);
 gemmepi__say(&context->log, GEMMEPI_LOG_WARNING, "%s cannot be written to config.dump_path (%s): %s",
    name, context->dump_path, reason);
}
/* Kernels by file and prologue: in memory, else on disk, else compiled. The build lock is held by every caller, and let go
 while NVRTC compiles, so that threads compile side by side.

 On disk a kernel lies under the digest of its file and of those that it includes, its prologue, the target and NVRTC's
 version. That version is not known before NVRTC is loaded, and a program whose kernels are all on disk never loads
 it: so a small entry for the architecture remembers the version and target used last. Where a kernel is missing under
 those, NVRTC is loaded and asked. */

typedef struct gemmepi__kernel {
 gemmepi__cu_module module;
 gemmepi__cu_function function; /* NULL: not there, because it is being built or that has failed */
 int is_being_built; /* by a thread; others wait for kernel_built */
 int arch; /* that it was compiled for, which may be older than the chip: 90 for 9.0 */
} gemmepi__kernel;

/* What NVRTC is or was, as far as the key on disk needs it. */
typedef struct gemmepi__compiler {
 int32_t nvrtc_version;
 int32_t is_ptx;
 char target[24];
} gemmepi__compiler;

#define GEMMEPI__KERNEL_KEY_SIZE 2048

static int gemmepi__arch_of(const gemmepi__compiler *compiler) {
 const char *number = strchr(compiler->target, '_');
 return number ? atoi(number + 1) : 0;
}

/* A kernel for one chip alone, by its file's name, uses what only that chip's own target has. */
static const char *gemmepi__target_suffix(const char *file) {
 return strstr(file, "_sm90") ? "a" : "";
}

/* The key's length, or 0 if the prologue is too long for the disk. */
static size_t gemmepi__kernel_key(char key[GEMMEPI__KERNEL_KEY_SIZE], const gemmepi__compiler *compiler,
    const char *file, const char *prologue) {
 char sources[GEMMEPI__SHA256_HEX_SIZE];
 gemmepi__text text = gemmepi__text_in(key, GEMMEPI__KERNEL_KEY_SIZE);
 gemmepi__digest_closure(gemmepi__sources, file, sources);
 gemmepi__append(&text, "kernel 2\nsources %s\nnvrtc %d\ntarget %s\noptions --std=c++17\nfile %s\n%s",
    sources, (int)compiler->nvrtc_version, compiler->target, file, prologue);
 return gemmepi__text_is_cut(&text) ? 0 : text.length;
}

static size_t gemmepi__compiler_key(char key[64], int arch) {
 gemmepi__text text = gemmepi__text_in(key, 64);
 gemmepi__append(&text, "compiler 1\narch %d\n", arch);
 return text.length;
}

static int gemmepi__recall_compiler(gemmepi_context *context, gemmepi__compiler *compiler) {
 char key[64];
 void *payload = NULL;
 size_t size = 0;
 int found = gemmepi__disk_cache_get(&context->disk, "compiler", key,
    gemmepi__compiler_key(key, context->arch), &payload, &size);
 int usable = found && size == sizeof *compiler;
 if (usable) {
  memcpy(compiler, payload, sizeof *compiler);
  compiler->target[sizeof compiler->target - 1] = 0;
 }
 if (found)
  gemmepi__delete(&context->allocator, payload);
 return usable;
}

static void gemmepi__remember_compiler(gemmepi_context *context, const gemmepi__compiler *compiler) {
 char key[64];
 gemmepi__disk_cache_put(&context->disk, "compiler", key, gemmepi__compiler_key(key, context->arch),
    compiler, sizeof *compiler);
}

static gemmepi_status gemmepi__load_module(gemmepi_context *context, const void *image, const char *entry,
    gemmepi__kernel *kernel) {
 int result = context->driver.module_load_data(&kernel->module, image);
 if (result)
  return gemmepi__cuda_failed(&context->driver, result, "cuModuleLoadData");
 result = context->driver.module_get_function(&kernel->function, kernel->module, entry);
 if (!result)
  return GEMMEPI_OK;
 kernel->function = NULL;
 context->driver.module_unload(kernel->module);
 return gemmepi__cuda_failed(&context->driver, result, entry);
}

/* 1 if the kernel came from disk. A cubin that this driver does not take is a miss. */
static int gemmepi__kernel_from_disk(gemmepi_context *context, const gemmepi__compiler *compiler,
    const char *file, const char *prologue, const char *entry,
    gemmepi__kernel *kernel) {
 char key[GEMMEPI__KERNEL_KEY_SIZE];
 size_t key_size = gemmepi__kernel_key(key, compiler, file, prologue), size = 0;
 void *image = NULL;
 gemmepi_status status;
 if (!key_size || !gemmepi__disk_cache_get(&context->disk, "cubin", key, key_size, &image, &size))
  return 0;
 status = gemmepi__load_module(context, image, entry, kernel);
 gemmepi__delete(&context->allocator, image);
 if (status)
  return 0;
 kernel->arch = gemmepi__arch_of(compiler);
 context->kernels_from_disk++;
 return 1;
}

static gemmepi_status gemmepi__open_nvrtc(gemmepi_context *context) {
 gemmepi_status status =
  context->has_nvrtc ? GEMMEPI_OK : gemmepi__load_nvrtc(&context->loader, &context->nvrtc);
 if (!status)
  context->has_nvrtc = 1;
 return status;
}

static gemmepi_status gemmepi__compile_kernel(gemmepi_context *context, const gemmepi__compiler *compiler,
    const char *file, const char *prologue, const char *entry,
    gemmepi__kernel *kernel) {
 char key[GEMMEPI__KERNEL_KEY_SIZE];
 size_t key_size = gemmepi__kernel_key(key, compiler, file, prologue);
 gemmepi__target target;
 gemmepi__image image;
 gemmepi_status status;
 snprintf(target.name, sizeof target.name, "%.20s%s", compiler->target, gemmepi__target_suffix(file));
 target.is_ptx = compiler->is_ptx;
 target.keeps_ptx = context->dump_path != NULL;
 gemmepi__unlock(&context->build_lock);
 status = gemmepi__compile(&context->nvrtc, &context->allocator, file, prologue, &target, &image, NULL);
 if (!status && context->dump_path)
  gemmepi__dump_kernel(context, gemmepi__find_source(file), prologue, entry, &target, &image);
 gemmepi__lock(&context->build_lock);
 if (status)
  return status;
 status = gemmepi__load_module(context, image.data, entry, kernel);
 if (!status) {
  kernel->arch = gemmepi__arch_of(compiler);
  context->kernels_compiled++;
  gemmepi__say(&context->log, GEMMEPI_LOG_DEBUG, "compiled %s for %s", file, target.name);
  if (key_size) {
   gemmepi__disk_cache_put(&context->disk, "cubin", key, key_size, image.data, image.size);
   gemmepi__remember_compiler(context, compiler);
  }
 }
 gemmepi__free_image(&context->allocator, &image);
 return status;
}

/* Fills in kernel. The primary context is current. */
static gemmepi_status gemmepi__build_kernel(gemmepi_context *context, const char *file, const char *prologue,
    const char *entry, gemmepi__kernel *kernel) {
 gemmepi__compiler recalled, compiler;
 gemmepi__target target;
 gemmepi_status status;
 int knows = gemmepi__recall_compiler(context, &recalled);
 if (knows && gemmepi__kernel_from_disk(context, &recalled, file, prologue, entry, kernel))
  return GEMMEPI_OK;
 memset(&target, 0, sizeof target); /* all of its bytes go into a key */
 status = gemmepi__open_nvrtc(context);
 if (!status)
  status = gemmepi__choose_target(&context->nvrtc, context->arch, &target);
 if (status)
  return status;
 memset(&compiler, 0, sizeof compiler);
 compiler.nvrtc_version = context->nvrtc.version;
 compiler.is_ptx = target.is_ptx;
 memcpy(compiler.target, target.name, sizeof compiler.target);
 if ((!knows || memcmp(&compiler, &recalled, sizeof compiler) != 0) &&
  gemmepi__kernel_from_disk(context, &compiler, file, prologue, entry, kernel))
  return GEMMEPI_OK;
 return gemmepi__compile_kernel(context, &compiler, file, prologue, entry, kernel);
}

/* The kernel `entry` of `file` under `prologue`, renamed to `name`, which profilers show; stays until the context goes. */
static gemmepi_status gemmepi__find_kernel(gemmepi_context *context, const char *file, const char *prologue,
    const char *entry, const char *name,
    const gemmepi__kernel **found) {
 char key[GEMMEPI__KERNEL_KEY_SIZE];
 gemmepi__text text = gemmepi__text_in(key, sizeof key);
 gemmepi__kernel *kernel;
 gemmepi_status status = GEMMEPI_OK;
 size_t file_length;
 gemmepi__append(&text, "%s\n", file);
 file_length = text.length;
 gemmepi__append(&text, "#define %s %s\n%s", entry, name, prologue);
 if (gemmepi__text_is_cut(&text))
  return gemmepi__fail(GEMMEPI_COMPILE_ERROR, "the prologue of %s is longer than %d characters", file,
    GEMMEPI__KERNEL_KEY_SIZE);
 kernel = (gemmepi__kernel *)gemmepi__map_find(&context->kernels, key, text.length);
 if (!kernel) {
  kernel = (gemmepi__kernel *)gemmepi__new(&context->allocator, sizeof *kernel);
  if (!kernel)
   return GEMMEPI_OUT_OF_MEMORY;
  if (!gemmepi__map_insert(&context->kernels, key, text.length, kernel)) {
   gemmepi__delete(&context->allocator, kernel);
   return GEMMEPI_OUT_OF_MEMORY;
  }
 }
 while (kernel->is_being_built)
  gemmepi__wait(&context->kernel_built, &context->build_lock);
 if (!kernel->function) { /* and where it could not be built before, it is tried again */
  kernel->is_being_built = 1;
  status = gemmepi__build_kernel(context, file, key + file_length, name, kernel);
  kernel->is_being_built = 0;
  gemmepi__wake_all(&context->kernel_built);
 }
 *found = kernel;
 return status;
}

static void gemmepi__free_kernel(void *user, gemmepi__map_entry *entry) {
 gemmepi_context *context = (gemmepi_context *)user;
 gemmepi__kernel *kernel = (gemmepi__kernel *)entry->value;
 if (context->entered_to_destroy && kernel->function)
  context->driver.module_unload(kernel->module);
 gemmepi__delete(&context->allocator, kernel);
}
/* One launch of a kernel of ours. */

typedef struct gemmepi__launch {
 gemmepi__cu_function function; /* NULL: nothing to launch */
 unsigned blocks, threads_x, threads_y;
 unsigned shared; /* bytes of dynamic shared memory */
 int arch; /* that the kernel was compiled for: 90 for 9.0 */
 int overlaps; /* the kernel waits itself for what is ahead of it in the stream */
 char name
  [GEMMEPI__KERNEL_NAME]; /* the kernel's, as gemmepi_plan_details has it; empty: that in its file */
} gemmepi__launch;

/* Says what a kernel is, of what its prologue says alone: one prologue has one name. Anything but letters and digits becomes
 an underscore, and what does not fit is cut off. */
GEMMEPI__PRINTF(2, 3)
static void gemmepi__name_kernel(gemmepi__launch *launch, const char *format, ...) {
 char *at;
 va_list arguments;
 va_start(arguments, format);
 vsnprintf(launch->name, sizeof launch->name, format, arguments);
 va_end(arguments);
 for (at = launch->name; *at; at++) {
  if (*at >= 'A' && *at <= 'Z')
   *at = (char)(*at - 'A' + 'a');
  else if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9')))
   *at = '_';
 }
}

static int64_t gemmepi__divide_up(int64_t x, int64_t y) {
 return x / y + (x % y != 0);
}

/* More than any grid, count or block of memory has; some of them added up still fit 64 bits. */
#define GEMMEPI__TOO_MANY ((int64_t)1 << 58)

/* x y of numbers from 0 on, TOO_MANY where it is that or more. What counts blocks, parts and lines multiplies so, or by
 gemmepi__offset: sizes may go to 2^56, and items of operands may all be one. */
static int64_t gemmepi__times(int64_t x, int64_t y) {
 return y > 0 && x >= GEMMEPI__TOO_MANY / y ? GEMMEPI__TOO_MANY : x * y;
}

/* The bytes of so many elements in workspace: where they are too many, so many that nothing gives them. */
static size_t gemmepi__bytes_for(int64_t count, size_t size) {
 const size_t most = (size_t)-1 / 16;
 return count < 0 || (uint64_t)count > most / size ? most : (size_t)count * size;
}

static size_t gemmepi__round_up(size_t x, size_t unit) {
 return (x + unit - 1) / unit * unit;
}

/* What follows a part of workspace, at a multiple of 256; a plan without workspace has none of it. */
static char *gemmepi__past(char *part, size_t bytes) {
 return part ? part + gemmepi__round_up(bytes, 256) : NULL;
}

/* The kernel `entry` of `file`, under the name that launch has. */
static gemmepi_status gemmepi__get_kernel(gemmepi_context *context, const char *file, const char *prologue,
    const char *entry, gemmepi__launch *launch) {
 const gemmepi__kernel *kernel = NULL;
 gemmepi_status status;
 if (!launch->name[0])
  gemmepi__name_kernel(launch, "%s", entry);
 status = gemmepi__find_kernel(context, file, prologue, entry, launch->name, &kernel);
 if (status)
  return status;
 launch->function = kernel->function;
 launch->arch = kernel->arch;
 return GEMMEPI_OK;
}

/* A kernel that calls after_launches_before(). Compiled for a chip before Hopper it cannot wait, and so may not overlap.
 launch->shared is known. */
static gemmepi_status gemmepi__get_waiting_kernel(gemmepi_context *context, const char *file,
    const char *prologue, const char *entry,
    gemmepi__launch *launch) {
 gemmepi_status status;
 char what[160];
 int result = 0;
 if (context->only_measures)
  return GEMMEPI_OK;
 status = gemmepi__get_kernel(context, file, prologue, entry, launch);
 if (status)
  return status;
 launch->overlaps = launch->arch >= 90;
 if (launch->shared)
  result = context->driver.func_set_attribute(
   launch->function, GEMMEPI__CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)launch->shared);
 snprintf(what, sizeof what, "giving %s its shared memory", launch->name);
 return result ? gemmepi__cuda_failed(&context->driver, result, what) : GEMMEPI_OK;
}

/* From CUDA 12.3 on a captured launch may overlap, too. */
#define GEMMEPI__GRAPHS_KEEP_OVERLAPS 12030

static gemmepi_status gemmepi__launch_failed(const gemmepi_context *context, const gemmepi__launch *launch,
    int result, const char *what) {
 char sentence[200];
 snprintf(sentence, sizeof sentence, "launching %s (%s)", what, launch->name);
 return gemmepi__cuda_failed(&context->driver, result, sentence);
}

/* what: is launched. The launch may begin before the one ahead of it in the stream has ended. */
static gemmepi_status gemmepi__launch_overlapping(const gemmepi_context *context,
    const gemmepi__launch *launch, void **list,
    const char *what, gemmepi_stream stream) {
 gemmepi__cu_launch_attribute attribute;
 gemmepi__cu_launch_config config;
 int allowed = 1, result;
 memset(&attribute, 0, sizeof attribute);
 attribute.id = GEMMEPI__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
 memcpy(attribute.value, &allowed, sizeof allowed);
 config.grid_x = launch->blocks;
 config.block_x = launch->threads_x;
 config.block_y = launch->threads_y;
 config.grid_y = config.grid_z = config.block_z = 1;
 config.shared_size = launch->shared;
 config.stream = stream;
 config.attributes = &attribute;
 config.attribute_count = 1;
 result = context->driver.launch_kernel_ex(&config, launch->function, list, NULL);
 return result ? gemmepi__launch_failed(context, launch, result, what) : GEMMEPI_OK;
}

static gemmepi_status gemmepi__launch_kernel(const gemmepi_context *context, const gemmepi__launch *launch,
    void *params, const char *what, gemmepi_stream stream) {
 void *list[1];
 int result;
 list[0] = params;
 if (launch->overlaps && context->driver.version >= GEMMEPI__GRAPHS_KEEP_OVERLAPS)
  return gemmepi__launch_overlapping(context, launch, list, what, stream);
 result = context->driver.launch_kernel(launch->function, launch->blocks, 1, 1, launch->threads_x,
    launch->threads_y, 1, launch->shared, stream, list, NULL);
 return result ? gemmepi__launch_failed(context, launch, result, what) : GEMMEPI_OK;
}
/* The plans that one-shot calls keep: found by what they were made for, the least recently used one goes first. */

/* By gemmepi_route. */
static const char *const gemmepi__route_names[] = {
 "empty", "lt", "split", "host", "plain", "contiguous", "strided", "sum", "scaled", "linear", "fused"};

/* How each kind of plan begins. It counts its references: one of who made it, one of the cache that keeps it, one of each call
 under way. */
struct gemmepi_plan {
 gemmepi_plan_kind kind;
 gemmepi_context *context;
 long references;
 long last_used; /* by the context's plan_clock, under its lock */
 void (*destroy)(gemmepi_plan *plan); /* of the last reference */
};

/* By gemmepi_plan_kind. */
static const char *const gemmepi__plan_kind_names[] = {"", "matmul", "elementwise", "linear",
    "linear_backward"};

/* A new plan's beginning. */
static gemmepi_plan gemmepi__plan_base(gemmepi_context *context, gemmepi_plan_kind kind,
    void (*destroy)(gemmepi_plan *plan)) {
 gemmepi_plan base;
 memset(&base, 0, sizeof base);
 base.kind = kind;
 base.context = context;
 base.references = 1;
 base.destroy = destroy;
 return base;
}

/* What every run asks first: whether there are plan and args, and the plan is of this process and of the run's kind. */
static gemmepi_status gemmepi__check_plan(const gemmepi_plan *plan, const void *args,
    gemmepi_plan_kind kind) {
 if (!plan || !args)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", plan ? "args" : "plan");
 if (gemmepi__came_by_fork(plan->context))
  return GEMMEPI_INVALID_ARGUMENT;
 if (plan->kind == kind)
  return GEMMEPI_OK;
 return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "plan was made by gemmepi_plan_%s; gemmepi_run_%s takes those of gemmepi_plan_%s",
    gemmepi__plan_kind_names[plan->kind], gemmepi__plan_kind_names[kind],
    gemmepi__plan_kind_names[kind]);
}

/* Plans are 5 to 17 KB; a program with more problems than this builds the least recently used ones anew. */
#define GEMMEPI__MAX_KEPT 1024

static void gemmepi__release_plan(gemmepi_plan *plan) {
 if (gemmepi__add(&plan->references, -1) == 0)
  plan->destroy(plan);
}

static void gemmepi__consider_oldest(void *user, gemmepi__map_entry *entry) {
 gemmepi__map_entry **oldest = (gemmepi__map_entry **)user;
 if (!*oldest || ((gemmepi_plan *)entry->value)->last_used < ((gemmepi_plan *)(*oldest)->value)->last_used)
  *oldest = entry;
}

static void gemmepi__drop_oldest(gemmepi_context *context) {
 gemmepi__map_entry *oldest = NULL;
 gemmepi_plan *plan;
 gemmepi__map_each(&context->plans, gemmepi__consider_oldest, &oldest);
 plan = (gemmepi_plan *)oldest->value;
 gemmepi__map_remove(&context->plans, gemmepi__map_key(oldest), oldest->key_size);
 gemmepi__release_plan(plan);
}

/* With the lock held: the plan with one more reference, or NULL. */
static gemmepi_plan *gemmepi__find_locked(gemmepi_context *context, const void *key, size_t size) {
 gemmepi_plan *plan = (gemmepi_plan *)gemmepi__map_find(&context->plans, key, size);
 if (plan) {
  gemmepi__add(&plan->references, 1);
  plan->last_used = ++context->plan_clock;
 }
 return plan;
}

/* The plan with a reference for the caller to release, or NULL. */
static gemmepi_plan *gemmepi__find_kept(gemmepi_context *context, const void *key, size_t size) {
 gemmepi_plan *plan;
 gemmepi__lock(&context->lock);
 plan = gemmepi__find_locked(context, key, size);
 gemmepi__unlock(&context->lock);
 return plan;
}

/* Keeps a new plan, if there is memory for it. The caller's reference goes over to what is returned: where another thread
 was quicker, its plan, which is as good. */
static gemmepi_plan *gemmepi__keep(gemmepi_context *context, const void *key, size_t size,
    gemmepi_plan *plan) {
 gemmepi_plan *other;
 gemmepi__lock(&context->lock);
 other = gemmepi__find_locked(context, key, size);
 if (!other) {
  if (context->plans.count >= GEMMEPI__MAX_KEPT)
   gemmepi__drop_oldest(context);
  plan->last_used = ++context->plan_clock;
  if (gemmepi__map_insert(&context->plans, key, size, plan))
   gemmepi__add(&plan->references, 1);
 }
 gemmepi__unlock(&context->lock);
 if (other)
  gemmepi__release_plan(plan);
 return other ? other : plan;
}

static void gemmepi__release_entry(void *user, gemmepi__map_entry *entry) {
 (void)user;
 gemmepi__release_plan((gemmepi_plan *)entry->value);
}
/* The end of a context, last in this room because it knows all of it. Also of one whose creation failed half-way. In the child
 of a fork() a parent's context is left as it is: another thread may have been changing it, and CUDA belongs to the parent. */

static void gemmepi__close_device(gemmepi_context *context) {
 gemmepi__entry entry;
 int entered = context->primary && gemmepi__enter(context, &entry) == GEMMEPI_OK;
 context->entered_to_destroy = entered;
 if (entered)
  context->driver.ctx_synchronize();
 gemmepi__map_each(&context->kernels, gemmepi__free_kernel, context);
 gemmepi__free_blocks(context, entered);
 if (context->lt_handle)
  context->cublaslt.destroy(context->lt_handle);
 if (entered && context->ones)
  context->driver.mem_free(context->ones);
 if (entered)
  gemmepi__leave(context, &entry);
 if (context->primary)
  context->driver.device_primary_ctx_release(context->device);
 if (context->has_cublaslt)
  gemmepi__unload_cublaslt(&context->cublaslt);
 if (context->has_nvrtc)
  gemmepi__unload_nvrtc(&context->nvrtc);
 gemmepi__disk_cache_close(&context->disk);
}

GEMMEPI_API void gemmepi_destroy(gemmepi_context *context) {
 gemmepi_allocator allocator;
 if (!context || gemmepi__is_of_parent(context))
  return;
 allocator = context->allocator;
 gemmepi__map_each(&context->plans, gemmepi__release_entry, context);
 if (!context->is_host)
  gemmepi__close_device(context);
 gemmepi__unload_driver(&context->driver);
 gemmepi__map_each(&context->handles, gemmepi__free_stream_token, context);
 gemmepi__map_free(&context->handles);
 gemmepi__map_free(&context->plans);
 gemmepi__map_free(&context->kernels);
 gemmepi__mutex_destroy(&context->lock);
 gemmepi__mutex_destroy(&context->build_lock);
 gemmepi__condition_destroy(&context->kernel_built);
 gemmepi__delete(&allocator, context->dump_path);
 if (context->loader.library_path) {
  char *path;
  memcpy(&path, &context->loader.library_path, sizeof path);
  gemmepi__delete(&allocator, path);
 }
 gemmepi__delete(&allocator, context);
}

#ifndef GEMMEPI_NO_HOST
/* Element types on the host: to double without loss, from double with one rounding to nearest even. */

#include <math.h>

/* A binary float of 16 bits or fewer. */
typedef struct gemmepi__float_format {
 int exponent_bits, mantissa_bits;
 uint32_t
  largest; /* code of what is too large: infinity, or the largest number where the type saturates */
 uint32_t nan;
 int special; /* the highest exponent means infinity and NaN; else only the code nan is not a number */
} gemmepi__float_format;

/* The row of a dtype, or NULL. */
static const gemmepi__float_format *gemmepi__format_of(int dtype) {
 static const gemmepi__float_format f16 = {5, 10, 0x7c00, 0x7e00, 1}, bf16 = {8, 7, 0x7f80, 0x7fc0, 1},
    e4m3 = {4, 3, 0x7e, 0x7f, 0}, e5m2 = {5, 2, 0x7b, 0x7f, 1};
 switch (dtype) {
 case GEMMEPI_F16:
  return &f16;
 case GEMMEPI_BF16:
  return &bf16;
 case GEMMEPI_E4M3:
  return &e4m3;
 case GEMMEPI_E5M2:
  return &e5m2;
 default:
  return NULL;
 }
}

static uint32_t gemmepi__encode(const gemmepi__float_format *format, double value) {
 uint64_t bits, significand, kept, rest, half;
 int bias = (1 << (format->exponent_bits - 1)) - 1, exponent, shift;
 uint32_t sign, result;
 memcpy(&bits, &value, sizeof bits);
 sign = (uint32_t)(bits >> 63) << (format->exponent_bits + format->mantissa_bits);
 exponent = (int)((bits >> 52) & 0x7ff) - 1023;
 significand = bits & (((uint64_t)1 << 52) - 1);
 if (exponent == 1024)
  return sign | (significand ? format->nan : format->largest);
 if (exponent == -1023) /* zero, or a double far below half the smallest result */
  return sign;
 significand |= (uint64_t)1 << 52;
 shift = 52 - format->mantissa_bits + (exponent < 1 - bias ? 1 - bias - exponent : 0);
 if (shift > 54)
  return sign;
 half = (uint64_t)1 << (shift - 1);
 kept = significand >> shift;
 rest = significand & (2 * half - 1);
 kept += rest > half || (rest == half && (kept & 1));
 /* the leading one of a normal significand counts as one step of the exponent, and so does a carry */
 result =
  (uint32_t)kept + (exponent < 1 - bias ? 0 : (uint32_t)(exponent + bias - 1) << format->mantissa_bits);
 return sign | (result > format->largest ? format->largest : result);
}

static double gemmepi__decode(const gemmepi__float_format *format, uint32_t code) {
 int bias = (1 << (format->exponent_bits - 1)) - 1, mantissa_bits = format->mantissa_bits;
 uint32_t exponent = (code >> mantissa_bits) & ((1u << format->exponent_bits) - 1);
 uint64_t mantissa = code & ((1u << mantissa_bits) - 1), bits;
 uint64_t sign = (uint64_t)(code >> (format->exponent_bits + mantissa_bits)) << 63;
 int highest = exponent == (1u << format->exponent_bits) - 1;
 double value, unit;
 if (exponent == 0) { /* mantissa units of the smallest subnormal; a double holds the product exactly */
  bits = (uint64_t)(1023 + 1 - bias - mantissa_bits) << 52;
  memcpy(&unit, &bits, sizeof unit);
  value = (double)mantissa * unit;
  return sign ? -value : value;
 }
 if (!format->special)
  highest = highest && mantissa == ((uint64_t)1 << mantissa_bits) - 1;
 bits = highest ? 0x7ff : (uint64_t)exponent + 1023 - (uint64_t)bias;
 bits = sign | bits << 52 | mantissa << (52 - mantissa_bits);
 memcpy(&value, &bits, sizeof value);
 return value;
}

/* Nearest whole number in -128 to 127, ties to even; NaN gives 0. */
static int8_t gemmepi__encode_i8(double value) {
 value = value >= 127 ? 127 : value <= -128 ? -128 : value == value ? rint(value) : 0;
 return (int8_t)value;
}

static int32_t gemmepi__signed(uint32_t bits) {
 int32_t value;
 memcpy(&value, &bits, sizeof value);
 return value;
}

/* A whole number modulo 2^32; what is no number or passes 2^62 gives 0. */
static int32_t gemmepi__wrap(double value) {
 return value > -4611686018427387904.0 && value < 4611686018427387904.0
    ? gemmepi__signed((uint32_t)(uint64_t)(int64_t)value)
    : 0;
}

/* count elements from `first` on, `step` apart, to double. */
static void gemmepi__load_run(int dtype, const void *base, int64_t first, int64_t step, int64_t count,
    double *out) {
 const gemmepi__float_format *format = gemmepi__format_of(dtype);
 int64_t i;
 if (dtype == GEMMEPI_F32)
  for (i = 0; i < count; i++)
   out[i] = (double)((const float *)base)[first + i * step];
 else if (dtype == GEMMEPI_F64)
  for (i = 0; i < count; i++)
   out[i] = ((const double *)base)[first + i * step];
 else if (dtype == GEMMEPI_I8)
  for (i = 0; i < count; i++)
   out[i] = (double)((const int8_t *)base)[first + i * step];
 else if (dtype == GEMMEPI_I32)
  for (i = 0; i < count; i++)
   out[i] = (double)((const int32_t *)base)[first + i * step];
 else if (dtype == GEMMEPI_F16 || dtype == GEMMEPI_BF16)
  for (i = 0; i < count; i++)
   out[i] = gemmepi__decode(format, ((const uint16_t *)base)[first + i * step]);
 else
  for (i = 0; i < count; i++)
   out[i] = gemmepi__decode(format, ((const uint8_t *)base)[first + i * step]);
}

static void gemmepi__store_run(int dtype, void *base, int64_t first, int64_t count, const double *values) {
 const gemmepi__float_format *format = gemmepi__format_of(dtype);
 int64_t i;
 if (dtype == GEMMEPI_F32)
  for (i = 0; i < count; i++)
   ((float *)base)[first + i] = (float)values[i];
 else if (dtype == GEMMEPI_F64)
  for (i = 0; i < count; i++)
   ((double *)base)[first + i] = values[i];
 else if (dtype == GEMMEPI_I8)
  for (i = 0; i < count; i++)
   ((int8_t *)base)[first + i] = gemmepi__encode_i8(values[i]);
 else if (dtype == GEMMEPI_I32)
  for (i = 0; i < count; i++)
   ((int32_t *)base)[first + i] = gemmepi__wrap(values[i]);
 else if (dtype == GEMMEPI_F16 || dtype == GEMMEPI_BF16)
  for (i = 0; i < count; i++)
   ((uint16_t *)base)[first + i] = (uint16_t)gemmepi__encode(format, values[i]);
 else
  for (i = 0; i < count; i++)
   ((uint8_t *)base)[first + i] = (uint8_t)gemmepi__encode(format, values[i]);
}
/* The whole product in plain C: a tile of the result at a time, everything in double, rounded once. */

/* A tile of 32 x 32 results over 64 steps of k keeps all blocks (48 KB of doubles) near the first-level cache
 and off the heap. */
#define GEMMEPI__HOST_TILE  32
#define GEMMEPI__HOST_DEPTH 64

typedef struct gemmepi__host_tile {
 double v[2][GEMMEPI__HOST_TILE][GEMMEPI__HOST_TILE]; /* of both halves with GATED, else the first */
 double a[GEMMEPI__HOST_TILE][GEMMEPI__HOST_DEPTH];
 double b[GEMMEPI__HOST_DEPTH][GEMMEPI__HOST_TILE];
 double amax_d, amax_aux; /* of all tiles so far */
} gemmepi__host_tile;

static int64_t gemmepi__smaller(int64_t x, int64_t y) {
 return x < y ? x : y;
}

/* The element (row, column) of op() of item `item`. */
static int64_t gemmepi__index_of(const gemmepi__view *view, int64_t item, int64_t row, int64_t column) {
 return item * view->batch_stride + (view->transposed ? column * view->ld + row : row * view->ld + column);
}

/* The number by which element (outer, k) of A or B is multiplied; outer is A's row or B's column. */
static double gemmepi__scale_at(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int operand, int64_t item, int64_t outer, int64_t k) {
 const gemmepi__view *scale = &problem->views[GEMMEPI__SCALE_OF(operand)];
 const float *numbers = (const float *)arguments->pointers[GEMMEPI__SCALE_OF(operand)];
 int64_t at = item * scale->batch_stride;
 switch (problem->views[operand].scale) {
 case GEMMEPI_SCALE_OUTER:
  return (double)numbers[at + outer];
 case GEMMEPI_SCALE_VECTOR_128:
  return (double)numbers[at + k / 128 * scale->ld + outer];
 case GEMMEPI_SCALE_BLOCK_128:
  return (double)numbers[at + outer / 128 * scale->ld + k / 128];
 default:
  return (double)numbers[at];
 }
}

/* `count` elements of A or B from (outer, k) on, along k or along the rows of A (columns of B), times the scales that change
 along k, or all scales */
static void gemmepi__host_load_factor(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int operand, int64_t item, int64_t outer, int64_t k, int along_k,
    int all_scales, int64_t count, double *out) {
 const gemmepi__view *view = &problem->views[operand];
 int is_a = operand == GEMMEPI__A;
 int64_t first = gemmepi__index_of(view, item, is_a ? outer : k, is_a ? k : outer), c;
 int contiguous = (is_a == (view->transposed == 0)) == (along_k != 0);
 gemmepi__load_run(view->dtype, arguments->pointers[operand], first, contiguous ? 1 : view->ld, count,
    out);
 for (c = 0; c < count && view->scale > (all_scales ? GEMMEPI_SCALE_NONE : GEMMEPI_SCALE_OUTER); c++)
  out[c] *= gemmepi__scale_at(problem, arguments, operand, item, along_k ? outer : outer + c,
    along_k ? k + c : k);
}

/* v = op(A)[rows from i, :] op(B)[:, columns from j] of one item */
static void gemmepi__host_multiply(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    gemmepi__host_tile *tile, int64_t item, int64_t i, int64_t rows, int64_t j,
    int64_t columns, double v[][GEMMEPI__HOST_TILE]) {
 int64_t k, r, c, s;
 memset(v, 0, sizeof tile->v[0]);
 memset(tile->b, 0, sizeof tile->b);
 for (k = 0; k < problem->k; k += GEMMEPI__HOST_DEPTH) {
  int64_t depth = gemmepi__smaller(problem->k - k, GEMMEPI__HOST_DEPTH);
  for (r = 0; r < rows; r++)
   gemmepi__host_load_factor(problem, arguments, GEMMEPI__A, item, i + r, k, 1, 0, depth,
    tile->a[r]);
  for (s = 0; s < depth; s++)
   gemmepi__host_load_factor(problem, arguments, GEMMEPI__B, item, j, k + s, 0, 0, columns,
    tile->b[s]);
  for (r = 0; r < rows; r++)
   for (s = 0; s < depth; s++)
    for (c = 0; c < GEMMEPI__HOST_TILE; c++)
    v[r][c] += tile->a[r][s] * tile->b[s][c];
 }
}

/* The scale of C, D, AUX or the residual. */
static double gemmepi__host_scale(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int operand, int64_t item) {
 return problem->views[operand].scale ? gemmepi__scale_at(problem, arguments, operand, item, 0, 0) : 1;
}

/* `columns` elements of row i of a matrix or vector, scaled */
static void gemmepi__host_load(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int operand, int64_t item, int64_t i, int64_t j, int64_t columns,
    double *out) {
 const gemmepi__view *view = &problem->views[operand];
 int64_t c;
 gemmepi__load_run(view->dtype, arguments->pointers[operand], gemmepi__index_of(view, item, i, j), 1,
    columns, out);
 if (operand <= GEMMEPI__RESIDUAL && view->scale)
  for (c = 0; c < columns; c++)
   out[c] *= gemmepi__host_scale(problem, arguments, operand, item);
}

static void gemmepi__host_store(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int operand, int64_t item, int64_t i, int64_t j, int64_t columns,
    const double *v) {
 const gemmepi__view *view = &problem->views[operand];
 double scale = gemmepi__host_scale(problem, arguments, operand, item), scaled[GEMMEPI__HOST_TILE];
 int64_t c;
 for (c = 0; c < columns; c++)
  scaled[c] = v[c] * scale;
 gemmepi__store_run(view->dtype, arguments->pointers[operand], gemmepi__index_of(view, item, i, j),
    columns, view->scale ? scaled : v);
}

/* The largest |v| so far; NaN stays. */
static void gemmepi__host_amax(double *amax, int64_t columns, const double *v) {
 int64_t c;
 for (c = 0; c < columns; c++)
  if (*amax == *amax && !(fabs(v[c]) <= *amax))
   *amax = fabs(v[c]);
}

static void gemmepi__host_store_mask(const gemmepi__view *aux, unsigned char *mask, int64_t item, int64_t i,
    int64_t j, int64_t columns, const double *v) {
 int64_t c;
 for (c = 0; c < columns; c++) {
  int64_t bit = gemmepi__index_of(aux, item, i, j + c);
  unsigned char *byte = &mask[bit / 8], one = (unsigned char)(1u << (bit % 8));
  *byte = (unsigned char)(v[c] > 0 ? *byte | one : *byte & ~one);
 }
}

/* The mask's bits as 1 and 0. */
static void gemmepi__host_load_mask(const gemmepi__view *aux, const unsigned char *mask, int64_t item,
    int64_t i, int64_t j, int64_t columns, double *out) {
 int64_t c;
 for (c = 0; c < columns; c++) {
  int64_t bit = gemmepi__index_of(aux, item, i, j + c);
  out[c] = mask[bit / 8] >> (bit % 8) & 1;
 }
}

/* The upstream gradient and the pre-activation, of which one is v and the other aux, into the gradient of a run of one row:
 with GATED of the same columns of both halves. */
static void gemmepi__host_backward(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int64_t item, int64_t i, int64_t j, int64_t columns, double *first,
    double *second) {
 uint32_t activation = gemmepi__activation(problem->epilogue);
 int gated = gemmepi__has(problem, GEMMEPI_GATED), upstream = gemmepi__has(problem, GEMMEPI_UPSTREAM);
 int gate_first = gemmepi__has(problem, GEMMEPI_GATE_FIRST);
 double aux[2][GEMMEPI__HOST_TILE] = {{0}};
 int64_t c;
 if (problem->views[GEMMEPI__AUX].bits == 1)
  gemmepi__host_load_mask(&problem->views[GEMMEPI__AUX],
    (const unsigned char *)arguments->pointers[GEMMEPI__AUX], item, i, j, columns,
    aux[0]); /* 1 is as good as any pre-activation above 0 */
 else
  gemmepi__host_load(problem, arguments, GEMMEPI__AUX, item, i, j, columns, aux[0]);
 if (gated && !upstream)
  gemmepi__host_load(problem, arguments, GEMMEPI__AUX, item, i, j + gemmepi__half_columns(problem),
    columns, aux[1]);
 for (c = 0; c < columns; c++) {
  double dy = upstream ? aux[0][c] : first[c];
  double p = upstream ? first[c] : aux[0][c], q = upstream && gated ? second[c] : aux[1][c];
  double value = gate_first ? q : p, gate = gate_first ? p : q;
  double *to_value = gate_first ? second : first, *to_gate = gate_first ? first : second;
  if (gated) {
   to_value[c] = gemmepi__times_activation(activation, problem->parameter, dy, gate);
   to_gate[c] = gemmepi__gate_gradient(activation, problem->parameter, dy, value, gate);
  } else {
   first[c] = gemmepi__times_derivative(activation, problem->parameter, dy, p);
  }
 }
}

/* v = factor v, and v = v + other, modulo 2^32 where the result is I32 */
static void gemmepi__host_multiply_by(const gemmepi__problem *problem, double factor, int64_t columns,
    double *v) {
 int64_t c;
 for (c = 0; c < columns; c++)
  v[c] = problem->accumulator == GEMMEPI_I32
    ? (double)gemmepi__signed((uint32_t)gemmepi__wrap(v[c]) * (uint32_t)gemmepi__wrap(factor))
    : v[c] * factor;
}

static void gemmepi__host_add(const gemmepi__problem *problem, const double *other, int64_t columns,
    double *v) {
 int64_t c;
 for (c = 0; c < columns; c++)
  v[c] = problem->accumulator == GEMMEPI_I32 ? (double)gemmepi__wrap(v[c] + other[c]) : v[c] + other[c];
}

/* The scales of A and B that are factors of the whole sum: so sums of I8 stay exact up to here. */
static void gemmepi__host_scale_sums(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int64_t item, int64_t i, int64_t j, int64_t columns, double *v) {
 int scale_a = problem->views[GEMMEPI__A].scale, scale_b = problem->views[GEMMEPI__B].scale;
 int64_t c;
 for (c = 0; c < columns; c++) {
  if (scale_a == GEMMEPI_SCALE_TENSOR || scale_a == GEMMEPI_SCALE_OUTER)
   v[c] *= gemmepi__scale_at(problem, arguments, GEMMEPI__A, item, i, 0);
  if (scale_b == GEMMEPI_SCALE_TENSOR || scale_b == GEMMEPI_SCALE_OUTER)
   v[c] *= gemmepi__scale_at(problem, arguments, GEMMEPI__B, item, j + c, 0);
 }
}

/* v up to the activation: from the bare sums, factors, C, bias, and what AUX keeps of it. */
static void gemmepi__host_finish_product(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    gemmepi__host_tile *tile, int64_t item, int64_t i, int64_t j,
    int64_t columns, double *v) {
 double other[GEMMEPI__HOST_TILE];
 gemmepi__host_scale_sums(problem, arguments, item, i, j, columns, v);
 gemmepi__host_multiply_by(problem, arguments->alpha, columns, v);
 if (arguments->uses_c && arguments->beta != 0) {
  gemmepi__host_load(problem, arguments, GEMMEPI__C, item, i, j, columns, other);
  gemmepi__host_multiply_by(problem, arguments->beta, columns, other);
  gemmepi__host_add(problem, other, columns, v);
 }
 if (gemmepi__has(problem, GEMMEPI_BIAS)) {
  gemmepi__host_load(problem, arguments, GEMMEPI__BIAS, item, 0, j, columns, other);
  gemmepi__host_add(problem, other, columns, v);
 }
 if (!gemmepi__has(problem, GEMMEPI_AUX))
  return;
 gemmepi__host_amax(&tile->amax_aux, columns, v);
 if (problem->views[GEMMEPI__AUX].bits == 1)
  gemmepi__host_store_mask(&problem->views[GEMMEPI__AUX],
    (unsigned char *)arguments->pointers[GEMMEPI__AUX], item, i, j, columns, v);
 else
  gemmepi__host_store(problem, arguments, GEMMEPI__AUX, item, i, j, columns, v);
}

/* The activation of a run, with GATED of a value's and a gate's, which leaves the result in the first. */
static void gemmepi__host_forward(const gemmepi__problem *problem, int64_t columns, double *first,
    double *second) {
 uint32_t activation = gemmepi__activation(problem->epilogue);
 int gate_first = gemmepi__has(problem, GEMMEPI_GATE_FIRST);
 int64_t c;
 for (c = 0; c < columns; c++) {
  double value = gate_first ? second[c] : first[c], gate = gate_first ? first[c] : second[c];
  if (!gemmepi__has(problem, GEMMEPI_GATED)) {
   first[c] = gemmepi__activate(activation, problem->parameter, first[c]);
  } else if (problem->accumulator == GEMMEPI_I32) {
   gemmepi__host_multiply_by(problem, gemmepi__activate(activation, 0, gate), 1, &value);
   first[c] = value;
  } else {
   first[c] = gemmepi__times_activation(activation, problem->parameter, value, gate);
  }
 }
}

/* The whole epilogue on a run of one row, with GATED on the same columns of both halves: the bare sums go in and what
 D stores comes out. */
static void gemmepi__host_epilogue(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    gemmepi__host_tile *tile, int64_t item, int64_t i, int64_t j,
    int64_t columns, double *const v[2]) {
 int64_t half_columns = gemmepi__half_columns(problem);
 double other[GEMMEPI__HOST_TILE];
 int half;
 for (half = 0; half < gemmepi__halves_in(problem); half++)
  gemmepi__host_finish_product(problem, arguments, tile, item, i, j + half * half_columns, columns,
    v[half]);
 if (gemmepi__has(problem, GEMMEPI_BACKWARD))
  gemmepi__host_backward(problem, arguments, item, i, j, columns, v[0], v[1]);
 else
  gemmepi__host_forward(problem, columns, v[0], v[1]);
 for (half = 0; half < gemmepi__halves_out(problem); half++) {
  if (gemmepi__has(problem, GEMMEPI_RESIDUAL)) {
   gemmepi__host_load(problem, arguments, GEMMEPI__RESIDUAL, item, i, j + half * half_columns,
    columns, other);
   gemmepi__host_add(problem, other, columns, v[half]);
  }
  gemmepi__host_amax(&tile->amax_d, columns, v[half]);
 }
}

/* A sum with what rounding took from it (Neumaier), so that it is right to a unit however many terms it has. */
typedef struct gemmepi__sum {
 double total, lost;
} gemmepi__sum;

static void gemmepi__add_to(gemmepi__sum *sum, double term) {
 double total = sum->total + term;
 int larger = (sum->total < 0 ? -sum->total : sum->total) >= (term < 0 ? -term : term);
 if (total - total == 0) /* else infinite or NaN, and nothing to be saved */
  sum->lost += larger ? (sum->total - total) + term : (term - total) + sum->total;
 sum->total = total;
}

/* bias_grad[first ...] of one item (+)= sums, which start anew */
static void gemmepi__host_store_sums(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int64_t item, int64_t first, int64_t count, gemmepi__sum *sums) {
 const gemmepi__view *view = &problem->views[GEMMEPI__BIAS_GRAD];
 void *bias_grad = arguments->pointers[GEMMEPI__BIAS_GRAD];
 double values[GEMMEPI__HOST_TILE] = {0};
 int64_t at = gemmepi__index_of(view, item, 0, first), c;
 if (gemmepi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD))
  gemmepi__load_run(view->dtype, bias_grad, at, 1, count, values);
 for (c = 0; c < count; c++) {
  gemmepi__add_to(&sums[c], values[c]);
  values[c] = sums[c].total - sums[c].total == 0 ? sums[c].total + sums[c].lost : sums[c].total;
 }
 gemmepi__store_run(view->dtype, bias_grad, at, count, values);
 memset(sums, 0, (size_t)count * sizeof *sums);
}

/* Where a finished product lies, if it is not to be made. */
typedef struct gemmepi__host_given {
 const gemmepi__view *view;
 const void *data;
} gemmepi__host_given;

/* A tile of D, with GATED the same columns of both halves; they are added to sums where the epilogue wants them. */
static void gemmepi__host_tile_row(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    const gemmepi__host_given *given, gemmepi__host_tile *tile, int64_t item,
    int64_t i, int64_t j, int64_t columns,
    gemmepi__sum sums[2][GEMMEPI__HOST_TILE]) {
 int64_t rows = gemmepi__smaller(problem->m - i, GEMMEPI__HOST_TILE), r, c;
 int64_t half_columns = gemmepi__half_columns(problem);
 int half;
 for (half = 0; half < gemmepi__halves_in(problem); half++) {
  int64_t from = j + half * half_columns;
  if (!given)
   gemmepi__host_multiply(problem, arguments, tile, item, i, rows, from, columns, tile->v[half]);
  for (r = 0; given && r < rows; r++)
   gemmepi__load_run(given->view->dtype, given->data,
    gemmepi__index_of(given->view, item, i + r, from), 1, columns,
    tile->v[half][r]);
 }
 for (r = 0; r < rows; r++) {
  double *v[2];
  v[0] = tile->v[0][r];
  v[1] = tile->v[1][r];
  gemmepi__host_epilogue(problem, arguments, tile, item, i + r, j, columns, v);
  for (half = 0; half < gemmepi__halves_out(problem); half++) {
   for (c = 0; c < columns && gemmepi__has(problem, GEMMEPI_BGRAD); c++)
    gemmepi__add_to(&sums[half][c], v[half][c]);
   if (!(problem->flags & GEMMEPI__ONLY_SUMS))
    gemmepi__host_store(problem, arguments, GEMMEPI__D, item, i + r, j + half * half_columns,
    columns, v[half]);
  }
 }
}

/* sum += the sum over k of row i of op(A) or column i of op(B) */
static void gemmepi__host_sum_line(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int operand, int64_t item, int64_t i, gemmepi__sum *sum) {
 double values[GEMMEPI__HOST_DEPTH];
 int64_t k, s, depth;
 for (k = 0; k < problem->k; k += GEMMEPI__HOST_DEPTH) {
  depth = gemmepi__smaller(problem->k - k, GEMMEPI__HOST_DEPTH);
  gemmepi__host_load_factor(problem, arguments, operand, item, i, k, 1, 1, depth, values);
  for (s = 0; s < depth; s++)
   gemmepi__add_to(sum, values[s]);
 }
}

/* bias_grad (+)= sums over k of op(A)'s rows or op(B)'s columns */
static void gemmepi__host_sum_operand(const gemmepi__problem *problem, const gemmepi__arguments *arguments) {
 int operand = gemmepi__has(problem, GEMMEPI_BGRAD_A) ? GEMMEPI__A : GEMMEPI__B;
 int shared = problem->views[GEMMEPI__BIAS_GRAD].batch_stride == 0;
 int64_t length = problem->views[GEMMEPI__BIAS_GRAD].length, i, item;
 gemmepi__sum sum = {0, 0};
 for (i = 0; i < length; i++) {
  for (item = 0; item < problem->batch; item++) {
   gemmepi__host_sum_line(problem, arguments, operand, item, i, &sum);
   if (!shared || item + 1 == problem->batch)
    gemmepi__host_store_sums(problem, arguments, item, i, 1, &sum);
  }
 }
}

static void gemmepi__host_store_amax(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    int operand, double amax) {
 if (gemmepi__has_operand(problem, operand))
  gemmepi__store_run(problem->views[operand].dtype, arguments->pointers[operand], 0, 1, &amax);
}

/* The product, or the epilogue over one that is given. */
static void gemmepi__host_product(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
    const gemmepi__host_given *given) {
 int shared = problem->views[GEMMEPI__BIAS_GRAD].batch_stride == 0, half;
 int64_t half_columns = gemmepi__half_columns(problem), i, j, item;
 gemmepi__sum sums[2][GEMMEPI__HOST_TILE];
 gemmepi__host_tile tile;
 memset(sums, 0, sizeof sums);
 tile.amax_d = tile.amax_aux = 0;
 for (j = 0; j < half_columns; j += GEMMEPI__HOST_TILE) {
  int64_t columns = gemmepi__smaller(half_columns - j, GEMMEPI__HOST_TILE);
  for (item = 0; item < problem->batch; item++) {
   for (i = 0; i < problem->m; i += GEMMEPI__HOST_TILE)
    gemmepi__host_tile_row(problem, arguments, given, &tile, item, i, j, columns, sums);
   if (!gemmepi__has(problem, GEMMEPI_BGRAD) || (shared && item + 1 < problem->batch))
    continue;
   for (half = 0; half < gemmepi__halves_out(problem); half++)
    gemmepi__host_store_sums(problem, arguments, item, j + half * half_columns, columns,
    sums[half]);
  }
 }
 if (!gemmepi__is_empty(problem)) {
  gemmepi__host_store_amax(problem, arguments, GEMMEPI__AMAX_D, tile.amax_d);
  gemmepi__host_store_amax(problem, arguments, GEMMEPI__AMAX_AUX, tile.amax_aux);
 }
 if (gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
  gemmepi__host_sum_operand(problem, arguments);
}
#ifndef GEMMEPI_NO_ELEMENTWISE
/* Element-wise operations in plain C: a run of elements at a time, everything in double, rounded once. */

#include <float.h>

/* A run of 256 values of each of eight tensors, 16 KB of doubles, stays in the first-level cache and off the heap. */
#define GEMMEPI__HOST_RUN 256

/* >>one index: the twin of kernels/operations.cuh */

static double gemmepi__backward(const gemmepi__task *task, double dy, double x) {
 return gemmepi__times_derivative((uint32_t)task->activation, task->parameter, dy, x);
}

static double gemmepi__lerp_at(double a, double b, double w) {
 return fabs(w) < 0.5 ? a + w * (b - a) : b - (b - a) * (1 - w);
}

/* v has a value for each tensor: from those of the inputs come those of the outputs. Inputs of outputs that nobody wants
 may be anything. */
static void gemmepi__operate(const gemmepi__task *task, double v[GEMMEPI__TENSORS]) {
 double a = v[GEMMEPI__IN_A], b = v[GEMMEPI__IN_B], w = v[GEMMEPI__IN_W], dy = v[GEMMEPI__IN_DY];
 switch (task->operation) {
 case GEMMEPI_OP_ACTIVATION:
  v[GEMMEPI__OUT_Y] = gemmepi__activate((uint32_t)task->activation, task->parameter, a);
  break;
 case GEMMEPI_OP_ACTIVATION_BACKWARD:
  v[GEMMEPI__OUT_DA] = gemmepi__backward(task, dy, a);
  break;
 case GEMMEPI_OP_GATED:
  v[GEMMEPI__OUT_Y] = gemmepi__times_activation((uint32_t)task->activation, task->parameter, a, b);
  break;
 case GEMMEPI_OP_GATED_BACKWARD:
  v[GEMMEPI__OUT_DA] = gemmepi__times_activation((uint32_t)task->activation, task->parameter, dy, b);
  v[GEMMEPI__OUT_DB] = gemmepi__gate_gradient((uint32_t)task->activation, task->parameter, dy, a, b);
  break;
 case GEMMEPI_OP_LERP:
  v[GEMMEPI__OUT_Y] = gemmepi__lerp_at(a, b, w);
  break;
 case GEMMEPI_OP_LERP_BACKWARD:
  v[GEMMEPI__OUT_DA] = (1 - w) * dy;
  v[GEMMEPI__OUT_DB] = w * dy;
  v[GEMMEPI__OUT_DW] = dy * (b - a);
  break;
 default: /* BIAS_GRAD, whose sums come later, and CAST */
  v[GEMMEPI__OUT_Y] = a;
  break;
 }
}

/* >>the loops of a nest */

typedef struct gemmepi__loops {
 const gemmepi__task *task;
 void *const *pointers;
 double weight;
 gemmepi__nest nest;
 int64_t index[GEMMEPI__MAX_RANK]; /* where in the nest the next run begins */
} gemmepi__loops;

static void gemmepi__store_strided(int dtype, void *base, int64_t first, int64_t step, int64_t count,
    const double *values) {
 int64_t i;
 if (step == 1)
  gemmepi__store_run(dtype, base, first, count, values);
 else
  for (i = 0; i < count; i++)
   gemmepi__store_run(dtype, base, first + i * step, 1, &values[i]);
}

static void *gemmepi__loops_base(const gemmepi__loops *loops, int t) {
 return (char *)loops->pointers[loops->nest.pointer[t]] + loops->nest.offset[t];
}

/* The element of tensor t at the index. */
static int64_t gemmepi__loops_first(const gemmepi__loops *loops, int t) {
 int64_t first = 0;
 int d;
 for (d = 0; d < loops->nest.rank; d++)
  first += loops->index[d] * loops->nest.stride[t][d];
 return first;
}

/* To the next index of the kept or of the summed axes outside of the innermost; 0 after the last, and at the first again. */
static int gemmepi__loops_next(gemmepi__loops *loops, int summed) {
 int d;
 for (d = 1; d < loops->nest.rank; d++) {
  if (loops->nest.summed[d] != summed)
   continue;
  if (++loops->index[d] < loops->nest.extent[d])
   return 1;
  loops->index[d] = 0;
 }
 return 0;
}

/* The values of all tensors for `count` indices along the innermost axis. */
static void gemmepi__loops_compute(const gemmepi__loops *loops, int64_t count,
    double values[GEMMEPI__TENSORS][GEMMEPI__HOST_RUN]) {
 const gemmepi__nest *nest = &loops->nest;
 double v[GEMMEPI__TENSORS] = {0};
 int64_t i;
 int t;
 for (t = 0; t < GEMMEPI__OUT_Y; t++)
  if (gemmepi__nest_has(nest, t))
   gemmepi__load_run(nest->dtype[t], gemmepi__loops_base(loops, t), gemmepi__loops_first(loops, t),
    nest->stride[t][0], count, values[t]);
 v[GEMMEPI__IN_W] = loops->weight;
 for (i = 0; i < count; i++) {
  for (t = 0; t < GEMMEPI__OUT_Y; t++)
   if (gemmepi__nest_has(nest, t))
    v[t] = values[t][i];
  gemmepi__operate(loops->task, v);
  for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS; t++)
   values[t][i] = v[t];
 }
}

/* The outputs that are no sums. */
static void gemmepi__host_map(gemmepi__loops *loops) {
 const gemmepi__nest *nest = &loops->nest;
 double values[GEMMEPI__TENSORS][GEMMEPI__HOST_RUN];
 int64_t *i = &loops->index[0];
 int t;
 do {
  for (*i = 0; *i < nest->extent[0]; *i += GEMMEPI__HOST_RUN) {
   int64_t count = gemmepi__smaller(nest->extent[0] - *i, GEMMEPI__HOST_RUN);
   gemmepi__loops_compute(loops, count, values);
   for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS; t++)
    if (gemmepi__nest_has(nest, t))
    gemmepi__store_strided(nest->dtype[t], gemmepi__loops_base(loops, t),
    gemmepi__loops_first(loops, t), nest->stride[t][0], count,
    values[t]);
  }
 } while (gemmepi__loops_next(loops, 0));
}

/* >>sums */

/* Adds a line along the innermost axis to one sum. */
static void gemmepi__host_add_line(gemmepi__loops *loops, int t, gemmepi__sum *sum) {
 double values[GEMMEPI__TENSORS][GEMMEPI__HOST_RUN];
 int64_t *j = &loops->index[0], i, count;
 for (*j = 0; *j < loops->nest.extent[0]; *j += GEMMEPI__HOST_RUN) {
  count = gemmepi__smaller(loops->nest.extent[0] - *j, GEMMEPI__HOST_RUN);
  gemmepi__loops_compute(loops, count, values);
  for (i = 0; i < count; i++)
   gemmepi__add_to(sum, values[t][i]);
 }
 *j = 0;
}

/* Adds `count` terms to as many sums. */
static void gemmepi__host_add_run(gemmepi__loops *loops, int t, int64_t count, gemmepi__sum *sums) {
 double values[GEMMEPI__TENSORS][GEMMEPI__HOST_RUN];
 int64_t i;
 gemmepi__loops_compute(loops, count, values);
 for (i = 0; i < count; i++)
  gemmepi__add_to(&sums[i], values[t][i]);
}

/* `count` sums of output t, side by side on the innermost axis where that is kept, else one. */
static void gemmepi__host_sum_run(gemmepi__loops *loops, int t, int64_t count) {
 const gemmepi__nest *nest = &loops->nest;
 void *base = gemmepi__loops_base(loops, t);
 int64_t first = gemmepi__loops_first(loops, t), step = nest->stride[t][0], i;
 int accumulates = (loops->task->flags & GEMMEPI_ACCUMULATE) != 0;
 int is_empty = gemmepi__nest_count(nest, 1) == 0;
 gemmepi__sum sums[GEMMEPI__HOST_RUN] = {{0, 0}};
 double values[GEMMEPI__HOST_RUN] = {0};
 if (is_empty && accumulates)
  return;
 if (!is_empty)
  do {
   if (nest->summed[0])
    gemmepi__host_add_line(loops, t, &sums[0]);
   else
    gemmepi__host_add_run(loops, t, count, sums);
  } while (gemmepi__loops_next(loops, 1));
 if (accumulates)
  gemmepi__load_run(nest->dtype[t], base, first, step, count, values);
 for (i = 0; i < count; i++) {
  gemmepi__add_to(&sums[i], values[i]);
  values[i] = sums[i].total - sums[i].total == 0 ? sums[i].total + sums[i].lost : sums[i].total;
 }
 gemmepi__store_strided(nest->dtype[t], base, first, step, count, values);
}

static void gemmepi__host_sum(gemmepi__loops *loops, int t) {
 const gemmepi__nest *nest = &loops->nest;
 int64_t length = nest->summed[0] ? 1 : nest->extent[0], i;
 do {
  for (i = 0; i < length; i += GEMMEPI__HOST_RUN) {
   loops->index[0] = i;
   gemmepi__host_sum_run(loops, t, gemmepi__smaller(length - i, GEMMEPI__HOST_RUN));
  }
  loops->index[0] = 0;
 } while (gemmepi__loops_next(loops, 0));
}

/* >>casts with scales */

/* The elements that share one number, and where that is. Axes are the task's, with as many before them as make two. */
typedef struct gemmepi__scaled {
 const gemmepi__task *task;
 void *const *pointers;
 const float *scale;
 float *y_scale;
 void *amax;
 int rank, k, row; /* the two axes of the matrices */
 int64_t extent[GEMMEPI__MAX_RANK], a_stride[GEMMEPI__MAX_RANK], y_stride[GEMMEPI__MAX_RANK];
 int64_t begin[GEMMEPI__MAX_RANK], end[GEMMEPI__MAX_RANK];
 int64_t number;
} gemmepi__scaled;

static int64_t gemmepi__steps_of_128(int64_t extent) {
 return (extent + 127) / 128;
}

static void gemmepi__take_scaled(const gemmepi__task *task, gemmepi__scaled *scaled) {
 int missing = task->rank < 2 ? 2 - task->rank : 0,
  k_is_rows = (task->flags & GEMMEPI_CAST_K_IS_ROWS) != 0, d;
 memset(scaled, 0, sizeof *scaled);
 scaled->task = task;
 scaled->rank = task->rank + missing;
 scaled->k = scaled->rank - 1 - k_is_rows;
 scaled->row = scaled->rank - 2 + k_is_rows;
 for (d = 0; d < scaled->rank; d++) {
  scaled->extent[d] = d < missing ? 1 : task->shape[d - missing];
  scaled->a_stride[d] = d < missing ? 0 : task->operands[GEMMEPI__IN_A].stride[d - missing];
  scaled->y_stride[d] = d < missing ? 0 : task->operands[GEMMEPI__OUT_Y].stride[d - missing];
  scaled->end[d] = scaled->extent[d];
 }
}

/* The next index of the elements that share a number, of all axes but k; 0 after the last. */
static int gemmepi__scaled_next(const gemmepi__scaled *scaled, int64_t *index) {
 int d;
 for (d = scaled->rank - 1; d >= 0; d--) {
  if (d == scaled->k)
   continue;
  if (++index[d] < scaled->end[d])
   return 1;
  index[d] = scaled->begin[d];
 }
 return 0;
}

/* A run along k of a or y: where it begins. */
static int64_t gemmepi__scaled_first(const gemmepi__scaled *scaled, const int64_t *stride,
    const int64_t *index) {
 int64_t first = 0;
 int d;
 for (d = 0; d < scaled->rank; d++)
  first += index[d] * stride[d];
 return first;
}

static void *gemmepi__scaled_base(const gemmepi__scaled *scaled, int t) {
 return (char *)scaled->pointers[t] + scaled->task->operands[t].offset;
}

static void gemmepi__scaled_load(const gemmepi__scaled *scaled, const int64_t *index, int64_t count,
    double *values) {
 gemmepi__load_run(
  scaled->task->operands[GEMMEPI__IN_A].dtype, gemmepi__scaled_base(scaled, GEMMEPI__IN_A),
  gemmepi__scaled_first(scaled, scaled->a_stride, index), scaled->a_stride[scaled->k], count, values);
}

/* The largest |a| of those that share a number; NaN stays. */
static double gemmepi__scaled_amax(const gemmepi__scaled *scaled) {
 int64_t index[GEMMEPI__MAX_RANK], *i = &index[scaled->k];
 double values[GEMMEPI__HOST_RUN], amax = 0;
 memcpy(index, scaled->begin, sizeof index);
 do {
  for (*i = scaled->begin[scaled->k]; *i < scaled->end[scaled->k]; *i += GEMMEPI__HOST_RUN) {
   int64_t count = gemmepi__smaller(scaled->end[scaled->k] - *i, GEMMEPI__HOST_RUN);
   gemmepi__scaled_load(scaled, index, count, values);
   gemmepi__host_amax(&amax, count, values);
  }
 } while (gemmepi__scaled_next(scaled, index));
 return amax;
}

/* y = factor a / divisor, one of which is 1, for those that share a number */
static void gemmepi__scaled_cast(const gemmepi__scaled *scaled, double factor, double divisor) {
 int64_t index[GEMMEPI__MAX_RANK], *i = &index[scaled->k], j;
 double values[GEMMEPI__HOST_RUN];
 memcpy(index, scaled->begin, sizeof index);
 do {
  for (*i = scaled->begin[scaled->k]; *i < scaled->end[scaled->k]; *i += GEMMEPI__HOST_RUN) {
   int64_t count = gemmepi__smaller(scaled->end[scaled->k] - *i, GEMMEPI__HOST_RUN);
   gemmepi__scaled_load(scaled, index, count, values);
   for (j = 0; j < count; j++)
    values[j] = values[j] * factor / divisor;
   gemmepi__store_strided(scaled->task->operands[GEMMEPI__OUT_Y].dtype,
    gemmepi__scaled_base(scaled, GEMMEPI__OUT_Y),
    gemmepi__scaled_first(scaled, scaled->y_stride, index),
    scaled->y_stride[scaled->k], count, values);
  }
 } while (gemmepi__scaled_next(scaled, index));
}

/* The scale that takes the largest number to the type's largest. */
static float gemmepi__scale_for(int dtype, double amax) {
 const gemmepi__float_format *format = gemmepi__format_of(dtype);
 double scale = amax / gemmepi__decode(format, format->largest);
 if (!(amax > 0 && amax - amax == 0))
  return 1;
 return scale < FLT_MIN ? FLT_MIN : scale > FLT_MAX ? FLT_MAX : (float)scale;
}

/* The elements that share a number: all that is made of them. */
static void gemmepi__scaled_run(const gemmepi__scaled *scaled) {
 const gemmepi__task *task = scaled->task;
 int amax_dtype = task->operands[GEMMEPI__IN_A].dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
 double factor = 1, divisor = 1, amax;
 if (task->flags & (GEMMEPI_CAST_AMAX | GEMMEPI_CAST_Y_SCALE)) {
  amax = gemmepi__scaled_amax(scaled);
  if (task->flags & GEMMEPI_CAST_AMAX)
   gemmepi__store_run(amax_dtype, scaled->amax, scaled->number, 1, &amax);
  if (task->flags & GEMMEPI_CAST_Y_SCALE) {
   scaled->y_scale[scaled->number] = gemmepi__scale_for(task->operands[GEMMEPI__OUT_Y].dtype, amax);
   divisor = (double)scaled->y_scale[scaled->number];
  }
 }
 if (task->flags & GEMMEPI_CAST_SCALE)
  factor = (double)scaled->scale[scaled->number];
 gemmepi__scaled_cast(scaled, factor, divisor);
}

/* One matrix, the numbers of which begin at `first`; returns where those of the next do. */
static int64_t gemmepi__scaled_matrix(gemmepi__scaled *scaled, int64_t first) {
 int mode = scaled->task->scale_mode, row = scaled->row, k = scaled->k;
 int64_t rows = scaled->extent[row], steps = gemmepi__steps_of_128(scaled->extent[k]);
 int64_t line = mode == GEMMEPI_SCALE_VECTOR_128 ? rows : (steps + 3) / 4 * 4;
 int64_t high = mode == GEMMEPI_SCALE_BLOCK_128 ? 128 : 1,
   wide = mode == GEMMEPI_SCALE_OUTER ? scaled->extent[k] : 128, i, j;
 for (i = 0; i < rows; i += high) {
  for (j = 0; j < scaled->extent[k]; j += wide) {
   scaled->begin[row] = i;
   scaled->end[row] = gemmepi__smaller(i + high, rows);
   scaled->begin[k] = j;
   scaled->end[k] = gemmepi__smaller(j + wide, scaled->extent[k]);
   scaled->number = first + (mode == GEMMEPI_SCALE_OUTER        ? i
    : mode == GEMMEPI_SCALE_VECTOR_128 ? j / 128 * line + i
    : i / 128 * line + j / 128);
   gemmepi__scaled_run(scaled);
  }
 }
 return first + (mode == GEMMEPI_SCALE_OUTER        ? rows
    : mode == GEMMEPI_SCALE_VECTOR_128 ? steps * line
    : gemmepi__steps_of_128(rows) * line);
}

/* To the next matrix; 0 after the last. */
static int gemmepi__scaled_next_matrix(gemmepi__scaled *scaled) {
 int d;
 for (d = scaled->rank - 3; d >= 0; d--) {
  scaled->begin[d] = scaled->end[d] < scaled->extent[d] ? scaled->end[d] : 0;
  scaled->end[d] = scaled->begin[d] + 1;
  if (scaled->begin[d])
   return 1;
 }
 return 0;
}

static void gemmepi__host_cast_scaled(gemmepi__scaled *scaled) {
 int64_t first = 0;
 int d;
 if (scaled->task->scale_mode == GEMMEPI_SCALE_TENSOR) {
  gemmepi__scaled_run(scaled);
  return;
 }
 for (d = 0; d < scaled->rank - 2; d++)
  scaled->end[d] = 1;
 do {
  first = gemmepi__scaled_matrix(scaled, first);
 } while (gemmepi__scaled_next_matrix(scaled));
}

/* >>the whole task */

static void gemmepi__take_loops(const gemmepi__task *task, void *const pointers[GEMMEPI__TENSORS],
    double weight, uint32_t outputs, gemmepi__loops *loops) {
 memset(loops, 0, sizeof *loops);
 loops->task = task;
 loops->pointers = pointers;
 loops->weight = weight;
 gemmepi__take_nest(task, outputs, &loops->nest);
}

/* Runs a task whose outputs are not empty. pointers[t]: the pointer that goes with tensor t (NULL where there is none); two
 halves go by the pointer of operand.pointer. Sums come first, since the other outputs may be in place with an input. */
static void gemmepi__host_elementwise(const gemmepi__task *task, void *const pointers[GEMMEPI__TENSORS],
    double weight, const float *scale, float *y_scale, void *amax) {
 uint32_t others = 0;
 gemmepi__loops loops;
 gemmepi__scaled scaled;
 int t;
 if (task->scale_mode) {
  gemmepi__take_scaled(task, &scaled);
  scaled.pointers = pointers;
  scaled.scale = scale;
  scaled.y_scale = y_scale;
  scaled.amax = amax;
  gemmepi__host_cast_scaled(&scaled);
  return;
 }
 for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS; t++) {
  const gemmepi__operand *operand = &task->operands[t];
  if (!gemmepi__task_has(task, t) || gemmepi__operand_is_empty(task, operand))
   continue;
  if (!operand->is_sum) {
   others |= GEMMEPI__BIT(t);
   continue;
  }
  gemmepi__take_loops(task, pointers, weight, GEMMEPI__BIT(t), &loops);
  gemmepi__host_sum(&loops, t);
 }
 if (others) {
  gemmepi__take_loops(task, pointers, weight, others, &loops);
  gemmepi__host_map(&loops);
 }
}
#endif
#endif

/* What the host hands to the kernels. Both sides include this file: C99 on one, CUDA C++ on the other. */

/* A matrix of the batch: element (item, row, column) is data[item * stride + row * ld + column]. */
typedef struct gemmepi__kernel_matrix {
 void *data;
 long long ld, stride;
} gemmepi__kernel_matrix;

/* The scales of a matrix: those of an item begin at data[item * stride]. */
typedef struct gemmepi__kernel_scale {
 const float *data;
 long long stride;
} gemmepi__kernel_scale;

/* epilogue.cuh. What the epilogue does not use is zero. */
typedef struct gemmepi__epilogue_params {
 gemmepi__kernel_matrix c, bias, aux, residual, d;
 gemmepi__kernel_scale scale_a, scale_b, scale_c, scale_d, scale_aux, scale_residual;
 void *amax_d, *amax_aux; /* of the accumulator's type, 0 before the launch */
 void *partials; /* BGRAD: [batch][row_tiles] lines of sums in the accumulator's type */
 const double *device_alpha, *device_beta;
 double alpha, beta; /* where no device_alpha, device_beta is given */
 double parameter; /* of the activation */
 long long m, n; /* n: columns of the product, or of each of its halves */
 unsigned row_tiles, column_tiles; /* 32 bits: a 64-bit division costs a thread as much as its work */
 int uses_c;
} gemmepi__epilogue_params;

/* pass.cu: the epilogue over a finished product. */
typedef struct gemmepi__pass_params {
 gemmepi__epilogue_params epilogue;
 gemmepi__kernel_matrix product;
 long long part; /* elements from one part of the product to the next, of an item */
 int row_steps; /* rows that each thread takes: a tile has blockDim.y * row_steps rows, blockDim.x * 8 columns */
} gemmepi__pass_params;

/* gemm_plain.cu, gemm_small.cu: product and epilogue. a and b lie as stored. */
typedef struct gemmepi__plain_params {
 gemmepi__epilogue_params epilogue;
 gemmepi__kernel_matrix a, b;
 long long k;
} gemmepi__plain_params;

/* convert.cu, pack.cu: out = x in another type or its own, rows filled up with zeros to out.ld, which is a multiple of 8.
 transpose.cu: out = x transposed, rows not filled up. */
typedef struct gemmepi__convert_params {
 gemmepi__kernel_matrix x, out;
 long long rows, columns, items;
} gemmepi__convert_params;

/* reduce.cu: sums of x, a batch of items of rows x columns, along its columns or rows. */
typedef struct gemmepi__reduce_params {
 gemmepi__kernel_matrix x;
 gemmepi__kernel_scale scale; /* of x: summed along k, the other extent is the outer one */
 void *out;
 long long out_stride; /* between the sums of two items, or of two parts */
 long long rows, columns;
 long long parts; /* sum_columns: into which an item's rows are divided */
 long long part_rows; /* sum_columns: rows of a part */
} gemmepi__reduce_params;

/* cuda.h's CUtensorMap, which a kernel wants at a multiple of 64. */
#ifdef __CUDACC__
struct alignas(64) gemmepi__tensor_map {
 unsigned long long words[16];
};
#else
typedef struct gemmepi__tensor_map {
 unsigned long long words[16];
} gemmepi__tensor_map;
#endif

/* gemm_sm90.cu: product and epilogue. A cluster's tile is its blocks' tiles side by side. */
typedef struct gemmepi__sm90_params {
 gemmepi__tensor_map a, b;
 gemmepi__tensor_map a_tail, b_tail; /* boxes of the last lines, where these lie along k and are fewer */
 gemmepi__tensor_map d, aux, residual; /* where TMA stores or loads them; of halves, too */
 gemmepi__epilogue_params epilogue;
 unsigned tiles; /* of clusters, of all items */
 unsigned cluster_rows, cluster_columns; /* tiles of clusters in an item */
 unsigned band; /* tiles of clusters one below the other before the next column is begun */
 int k;
 int a_items, b_items; /* 0: one matrix for all items of the batch */
 void *sums; /* of an operand: bias_grad, or a line in F64 of each item */
 long long sums_stride;
 int sum_tiles; /* along the other axis, among which sums of an operand are shared out */
} gemmepi__sm90_params;

/* gemm_sm80.cu: product and epilogue. a and b lie as stored. */
typedef struct gemmepi__sm80_params {
 gemmepi__epilogue_params epilogue; /* row_tiles: of the rows of one warp */
 gemmepi__kernel_matrix a, b;
 unsigned tile_rows; /* in an item */
 unsigned band; /* tiles one below the other before the next column is begun */
 unsigned parts; /* SPLIT: of k, each of part_k but the last; D has parts * batch items */
 int k, part_k;
} gemmepi__sm80_params;

/* The tensors of an element-wise operation, in the order of operations.cuh. */
#define GEMMEPI__PARAMS_TENSORS 8
#define GEMMEPI__PARAMS_AXES    8

/* operations.cuh: what is the same for all indices. */
typedef struct gemmepi__operation_params {
 double parameter; /* of the activation */
 double weight; /* LERP without w */
 const float *scale;
 void *amax; /* F64 where a is, else F32; 0 before the launch */
} gemmepi__operation_params;

/* elementwise.cu, gemmepi_contiguous */
typedef struct gemmepi__contiguous_params {
 gemmepi__operation_params operation;
 void *data[GEMMEPI__PARAMS_TENSORS];
 long long count;
} gemmepi__contiguous_params;

/* elementwise.cu, gemmepi_strided: strides in elements, of the tile's two axes and the others */
typedef struct gemmepi__strided_params {
 gemmepi__operation_params operation;
 void *data[GEMMEPI__PARAMS_TENSORS];
 long long stride[GEMMEPI__PARAMS_TENSORS][GEMMEPI__PARAMS_AXES];
 long long extent_i, extent_j; /* of the first two axes */
 unsigned extent[GEMMEPI__PARAMS_AXES]; /* of the others, from 2 on */
 unsigned tiles_i, tiles_j; /* 32 bits: a 64-bit division costs a thread as much as its work */
 int rank; /* 2 at least */
} gemmepi__strided_params;

/* sum.cu: axes of the sums that are made, and of what is added up, each from the innermost on */
typedef struct gemmepi__axes {
 long long extent[GEMMEPI__PARAMS_AXES];
 long long stride[GEMMEPI__PARAMS_TENSORS][GEMMEPI__PARAMS_AXES];
 int rank;
} gemmepi__axes;
typedef struct gemmepi__sum_params {
 gemmepi__operation_params operation;
 void *data[GEMMEPI__PARAMS_TENSORS]; /* of the output: y's place, or partial sums [parts][sums] in F64 */
 gemmepi__axes kept, summed;
 long long kept_count,
  summed_count; /* of vectors or elements along the innermost axis, times the other axes */
 long long part_count; /* of summed_count, in one part */
 unsigned kept_blocks; /* the grid is these times the parts */
} gemmepi__sum_params;

/* scaled.cu: axis 0 is the one along which tiles are fast, 1 the other of the matrix, the rest its items' */
typedef struct gemmepi__scaled_params {
 void *a, *y;
 const float *scale; /* read, or with Y_SCALE of whole tensors and rows */
 float *y_scale; /* written */
 void *amax;
 long long extent[GEMMEPI__PARAMS_AXES];
 long long stride_a[GEMMEPI__PARAMS_AXES], stride_y[GEMMEPI__PARAMS_AXES];
 unsigned tiles[2];
 int rank; /* 2 at least */
} gemmepi__scaled_params;

#ifndef GEMMEPI_NO_ELEMENTWISE
/* The launch that makes all outputs that are no sums: over dense tensors in one line, or over tiles of any strides. */

#define GEMMEPI__ELEMENT_THREADS 256 /* of all element-wise kernels */
#define GEMMEPI__VECTOR_BYTES    16 /* one access to memory */
#define GEMMEPI__VECTOR_MOST     8 /* elements */

#define GEMMEPI__LOOP_AT_ONCE 2 /* accesses of a thread to a dense tensor; on an H200 4 and 8 are slower */

/* How a tensor goes through a tile: as in elementwise.cu. */
enum { GEMMEPI__ALONG_VECTORS, GEMMEPI__REPEATED, GEMMEPI__ALONG_I, GEMMEPI__ALONG_J, GEMMEPI__COLUMNS };

typedef struct gemmepi__loop {
 gemmepi__launch launch; /* no function: there is nothing to launch */
 gemmepi__nest nest;
 int is_contiguous;
 int tile_i, tile_j;
 gemmepi__contiguous_params contiguous;
 gemmepi__strided_params strided;
} gemmepi__loop;

/* >>what all element-wise kernels are told */

static int gemmepi__size_of(int dtype) {
 return (int)gemmepi__dtype((gemmepi_dtype)dtype)->size;
}

static int gemmepi__largest_size(const gemmepi__nest *nest, uint32_t tensors) {
 int largest = 1, t;
 for (t = 0; t < GEMMEPI__TENSORS; t++)
  if ((nest->used & tensors) >> t & 1)
   largest = gemmepi__size_of(nest->dtype[t]) > largest ? gemmepi__size_of(nest->dtype[t]) : largest;
 return largest;
}

/* Elements of one access, the same for all tensors of a launch. */
static int gemmepi__vector_of(int largest_size) {
 int vector = GEMMEPI__VECTOR_BYTES / largest_size;
 return vector < GEMMEPI__VECTOR_MOST ? vector : GEMMEPI__VECTOR_MOST;
}

/* The short forms of the activations are for results of 16 bits. */
static int gemmepi__task_is_exact(const gemmepi__task *task) {
 int t;
 for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS; t++)
  if (task->operands[t].dtype == GEMMEPI_F32 || task->operands[t].dtype == GEMMEPI_F64)
   return 1;
 return 0;
}

/* type_of_output: what operations.cuh takes an output for, 0 for its own. */
static void gemmepi__append_operation(gemmepi__text *text, const gemmepi__task *task, int operation,
    const gemmepi__nest *nest, int accumulator, int cast,
    int type_of_output) {
 static const char *const names[GEMMEPI__TENSORS] = {"A", "B", "W", "DY", "Y", "DA", "DB", "DW"};
 int t;
 gemmepi__append(text, "#define GEMMEPI_OPERATION %d\n", operation);
 gemmepi__append(text, "#define GEMMEPI_ACTIVATION %d\n", (int)task->activation);
 gemmepi__append(text, "#define GEMMEPI_EXACT %d\n", gemmepi__task_is_exact(task));
 gemmepi__append(text, "#define GEMMEPI_USED 0x%x\n", (unsigned)nest->used);
 gemmepi__append(text, "#define GEMMEPI_ACC %s\n", gemmepi__dtype((gemmepi_dtype)accumulator)->name);
 gemmepi__append(text, "#define GEMMEPI_CAST %d\n", cast);
 for (t = 0; t < GEMMEPI__TENSORS; t++) {
  int dtype = gemmepi__nest_has(nest, t) ? nest->dtype[t] : GEMMEPI_F32;
  if (t >= GEMMEPI__OUT_Y && type_of_output)
   dtype = type_of_output;
  gemmepi__append(text, "#define GEMMEPI_%s_TYPE %s\n", names[t],
    gemmepi__dtype((gemmepi_dtype)dtype)->name);
 }
}

/* "gemmepi_elementwise_silu_backward_bf16". An operation that is an activation is called by that. */
static void gemmepi__name_operation(const gemmepi__task *task, int operation, const char *stem, int from,
    int to, gemmepi__launch *launch) {
 const char *name = gemmepi__operation(operation)->name;
 const char *activation = gemmepi__activation_name((gemmepi_epilogue)task->activation);
 const char *type = gemmepi__dtype((gemmepi_dtype)from)->name;
 if (strncmp(name, "ACTIVATION", 10) == 0)
  gemmepi__name_kernel(launch, "%s_%s%s_%s", stem, activation, name + 10, type);
 else if (task->activation)
  gemmepi__name_kernel(launch, "%s_%s_%s_%s", stem, activation, name, type);
 else if (from != to)
  gemmepi__name_kernel(launch, "%s_%s_%s_to_%s", stem, name, type,
    gemmepi__dtype((gemmepi_dtype)to)->name);
 else
  gemmepi__name_kernel(launch, "%s_%s_%s", stem, name, type);
}

static int gemmepi__first_dtype(const gemmepi__nest *nest) {
 int t = 0;
 while (t < GEMMEPI__OUT_Y && !gemmepi__nest_has(nest, t))
  t++;
 return nest->dtype[t];
}

/* Whether every vector of a tensor, `vector` elements along an axis, begins at a multiple of its size. */
static int gemmepi__vectors_are_aligned(const gemmepi__task *task, const gemmepi__nest *nest, int t, int axis,
    int vector) {
 int64_t size = gemmepi__size_of(nest->dtype[t]), bytes = size * vector;
 int d;
 if (axis >= nest->rank || nest->stride[t][axis] != 1 || task->alignment % bytes ||
  nest->offset[t] % bytes)
  return 0;
 for (d = 0; d < nest->rank; d++)
  if (d != axis && nest->stride[t][d] * size % bytes)
   return 0;
 return 1;
}

static void gemmepi__fill_pointers(const gemmepi__nest *nest, void *const *pointers, void **data) {
 int t;
 for (t = 0; t < GEMMEPI__TENSORS; t++)
  if (gemmepi__nest_has(nest, t))
   data[t] = (void *)((uintptr_t)pointers[nest->pointer[t]] + (uintptr_t)nest->offset[t]);
}

/* >>dense tensors in one line */

static int gemmepi__is_contiguous(const gemmepi__task *task, const gemmepi__nest *nest, int vector) {
 int t;
 for (t = 0; t < GEMMEPI__TENSORS && nest->rank == 1; t++)
  if (gemmepi__nest_has(nest, t) && !gemmepi__vectors_are_aligned(task, nest, t, 0, vector) &&
   (t >= GEMMEPI__OUT_Y || nest->stride[t][0] != 0))
   return 0;
 return nest->rank == 1;
}

static int gemmepi__count_inputs(const gemmepi__nest *nest) {
 int inputs = 0, t;
 for (t = 0; t < GEMMEPI__OUT_Y; t++)
  inputs += gemmepi__nest_has(nest, t);
 return inputs;
}

static int64_t gemmepi__describe_contiguous(gemmepi__loop *loop, int vector, gemmepi__text *defines) {
 const gemmepi__nest *nest = &loop->nest;
 int repeats = 0, t;
 for (t = 0; t < GEMMEPI__OUT_Y; t++)
  if (gemmepi__nest_has(nest, t) && nest->stride[t][0] == 0)
   repeats |= 1 << t;
 loop->is_contiguous = 1;
 loop->contiguous.count = nest->extent[0];
 gemmepi__append(defines, "#define GEMMEPI_REPEATS 0x%x\n", (unsigned)repeats);
 gemmepi__append(defines, "#define GEMMEPI_AT_ONCE %d\n", GEMMEPI__LOOP_AT_ONCE);
 gemmepi__append(defines,
    "#define GEMMEPI_TILE 0\n#define GEMMEPI_PER_THREAD 0\n#define GEMMEPI_MODES 0\n");
 return gemmepi__divide_up(nest->extent[0],
    (int64_t)GEMMEPI__ELEMENT_THREADS * vector * GEMMEPI__LOOP_AT_ONCE);
}

/* >>tiles */

static int64_t gemmepi__magnitude(int64_t x) {
 return x < 0 ? -x : x;
}

/* The axis along which a tensor's elements lie closest. */
static int gemmepi__fast_axis(const gemmepi__nest *nest, int t) {
 int fast = 0, d;
 for (d = 1; d < nest->rank; d++) {
  int64_t stride = gemmepi__magnitude(nest->stride[t][d]),
    least = gemmepi__magnitude(nest->stride[t][fast]);
  if (stride && (!least || stride < least))
   fast = d;
 }
 return fast;
}

/* The second axis of the tiles where some tensor is transposed: the one along which that lies closest. 0: none is. */
static int gemmepi__transposed_axis(const gemmepi__nest *nest) {
 int t;
 for (t = 0; t < GEMMEPI__TENSORS; t++)
  if (gemmepi__nest_has(nest, t) && nest->stride[t][0] != 0 && gemmepi__fast_axis(nest, t))
   return gemmepi__fast_axis(nest, t);
 return 0;
}

/* How much of the tiles lies within the tensors along one axis, in 1/1024, and along both. */
#define GEMMEPI__FULL_USE ((int64_t)1 << 20)

static int64_t gemmepi__use_along(int64_t extent, int64_t tile) {
 int64_t tiles = gemmepi__divide_up(extent, tile);
 return extent >= tile << 10 ? 1024 : extent * 1024 / (tiles * tile);
}

static int64_t gemmepi__use_of(const gemmepi__nest *nest, int elements, int tile, int axis) {
 if (tile > elements)
  return 0;
 return gemmepi__use_along(nest->extent[0], tile) *
   gemmepi__use_along(axis ? nest->extent[axis] : 1, elements / tile);
}

static int64_t gemmepi__best_use(const gemmepi__nest *nest, int elements, int first, int last) {
 int64_t best = 0, use;
 int axis, tile;
 for (axis = first; axis <= last; axis++)
  for (tile = 8; tile <= 4096; tile *= 2) {
   use = gemmepi__use_of(nest, elements, tile, axis);
   best = use > best ? use : best;
  }
 return best;
}

/* A tile has `elements`. Wide ones are best for rows and square ones for transposes, as long as they are filled; the first of
 the list that comes within a tenth of the best is taken. The second axis is that of a transpose, unless it fills less than
 a quarter of any tile. Returns the use of the tiles, of 2^20. */
static int64_t gemmepi__choose_tile(gemmepi__loop *loop, int elements, int *second_axis) {
 static const int wide[] = {256, 512, 1024, 128, 64, 2048, 4096, 32, 16, 8},
    square[] = {64, 32, 128, 16, 256, 8, 512, 1024, 2048, 4096};
 const gemmepi__nest *nest = &loop->nest;
 int transposed = gemmepi__transposed_axis(nest), axis, i;
 int first = transposed ? transposed : nest->rank > 1, last = transposed ? transposed : nest->rank - 1;
 const int *tiles = transposed ? square : wide;
 int64_t best = gemmepi__best_use(nest, elements, first, last), use;
 if (transposed && best < GEMMEPI__FULL_USE / 4) {
  first = 1;
  last = nest->rank - 1;
  best = gemmepi__best_use(nest, elements, first, last);
 }
 for (axis = first; axis <= last; axis++)
  for (i = 0; i < (int)GEMMEPI__COUNT(wide); i++) {
   use = gemmepi__use_of(nest, elements, tiles[i], axis);
   if (use < best - best / 10)
    continue;
   loop->tile_i = tiles[i];
   loop->tile_j = elements / tiles[i];
   *second_axis = axis;
   return use;
  }
 return 0; /* not reached: the best is among them */
}

static int gemmepi__mode_of(const gemmepi__task *task, const gemmepi__loop *loop, int t, int vector) {
 const gemmepi__nest *nest = &loop->nest;
 int64_t i = gemmepi__magnitude(nest->stride[t][0]),
   j = nest->rank > 1 ? gemmepi__magnitude(nest->stride[t][1]) : 0;
 if (gemmepi__vectors_are_aligned(task, nest, t, 0, vector))
  return GEMMEPI__ALONG_VECTORS;
 if (i == 0 && t < GEMMEPI__OUT_Y)
  return GEMMEPI__REPEATED;
 if (loop->tile_j >= vector && gemmepi__vectors_are_aligned(task, nest, t, 1, vector))
  return GEMMEPI__COLUMNS;
 return j && j < i ? GEMMEPI__ALONG_J : GEMMEPI__ALONG_I;
}

/* The number of blocks, or -1. */
static int64_t gemmepi__describe_tiles(const gemmepi__task *task, gemmepi__loop *loop, int vector,
    gemmepi__text *defines) {
 gemmepi__nest *nest = &loop->nest;
 gemmepi__strided_params *params = &loop->strided;
 /* the more tensors, the fewer elements fit registers */
 int inputs = gemmepi__count_inputs(nest), second = 0, t, d;
 int per_thread = vector * (inputs == 4 ? 1 : inputs > 1 || vector == 8 ? 2 : 4);
 unsigned modes = 0;
 int64_t blocks, tiles_i, tiles_j;
 for (;
   gemmepi__choose_tile(loop, GEMMEPI__ELEMENT_THREADS * per_thread, &second) < GEMMEPI__FULL_USE / 2 &&
   per_thread > vector;)
  per_thread /= 2; /* small matrices leave large tiles empty */
 if (second > 1)
  gemmepi__swap_axes(nest, 1, second);
 for (t = 0; t < GEMMEPI__TENSORS; t++) {
  if (gemmepi__nest_has(nest, t))
   modes |= (unsigned)gemmepi__mode_of(task, loop, t, vector) << 4 * t;
  for (d = 0; d < nest->rank; d++)
   params->stride[t][d] = nest->stride[t][d];
 }
 params->rank = nest->rank > 2 ? nest->rank : 2;
 params->extent_i = nest->extent[0];
 params->extent_j = nest->rank > 1 ? nest->extent[1] : 1;
 tiles_i = gemmepi__divide_up(params->extent_i, loop->tile_i);
 tiles_j = gemmepi__divide_up(params->extent_j, loop->tile_j);
 blocks = gemmepi__offset(tiles_i, tiles_j, 0);
 for (d = 2; d < nest->rank && blocks > 0; d++) {
  params->extent[d] = (unsigned)nest->extent[d];
  blocks = gemmepi__offset(blocks, nest->extent[d], 0);
 }
 params->tiles_i = (unsigned)tiles_i;
 params->tiles_j = (unsigned)tiles_j;
 gemmepi__append(defines, "#define GEMMEPI_TILE %d\n", loop->tile_i);
 gemmepi__append(defines, "#define GEMMEPI_PER_THREAD %d\n", per_thread);
 gemmepi__append(defines, "#define GEMMEPI_MODES 0x%xu\n", modes);
 gemmepi__append(defines, "#define GEMMEPI_REPEATS 0\n#define GEMMEPI_AT_ONCE 1\n");
 return blocks;
}

/* >>building and running */

/* Of CAST's single scale and amax; those of rows and blocks are scaled.h's. */
static int gemmepi__loop_cast(const gemmepi__task *task) {
 return (task->flags & GEMMEPI_CAST_SCALE ? 1 : 0) | (task->flags & GEMMEPI_CAST_AMAX ? 2 : 0);
}

/* What is launched, but for the kernel: blocks, parameters and the prologue. */
static gemmepi_status gemmepi__describe_loop(const gemmepi__task *task, uint32_t outputs, gemmepi__loop *loop,
    gemmepi__text *defines) {
 int64_t blocks;
 int vector;
 gemmepi__take_nest(task, outputs, &loop->nest);
 vector = gemmepi__vector_of(gemmepi__largest_size(&loop->nest, ~0u));
 gemmepi__append_operation(defines, task, task->operation, &loop->nest, task->accumulator,
    gemmepi__loop_cast(task), 0);
 if (gemmepi__is_contiguous(task, &loop->nest, vector))
  blocks = gemmepi__describe_contiguous(loop, vector, defines);
 else
  blocks = gemmepi__describe_tiles(task, loop, vector, defines);
 if (blocks <= 0 || blocks > INT_MAX)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the tensors have more tiles than a grid has blocks");
 loop->launch.blocks = (unsigned)blocks;
 loop->launch.threads_x = GEMMEPI__ELEMENT_THREADS;
 loop->launch.threads_y = 1;
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__build_loop(gemmepi_context *context, const gemmepi__task *task,
    uint32_t outputs, gemmepi__loop *loop) {
 char prologue[1024];
 gemmepi__text defines = gemmepi__text_in(prologue, sizeof prologue);
 gemmepi_status status = gemmepi__describe_loop(task, outputs, loop, &defines);
 if (status)
  return status;
 gemmepi__name_operation(task, task->operation,
    loop->is_contiguous ? "gemmepi_elementwise" : "gemmepi_strided",
    gemmepi__first_dtype(&loop->nest),
    task->operation == GEMMEPI_OP_CAST ? loop->nest.dtype[GEMMEPI__OUT_Y]
    : gemmepi__first_dtype(&loop->nest),
    &loop->launch);
 return gemmepi__get_kernel(context, "elementwise.cu", prologue,
    loop->is_contiguous ? "gemmepi_contiguous" : "gemmepi_strided", &loop->launch);
}

static gemmepi_status gemmepi__run_loop(const gemmepi_context *context, const gemmepi__loop *loop,
    const gemmepi__operation_params *operation, void *const *pointers,
    gemmepi_stream stream) {
 static const char what[] = "an element-wise operation";
 gemmepi__contiguous_params contiguous;
 gemmepi__strided_params strided;
 if (loop->is_contiguous) {
  contiguous = loop->contiguous;
  contiguous.operation = *operation;
  gemmepi__fill_pointers(&loop->nest, pointers, contiguous.data);
  return gemmepi__launch_kernel(context, &loop->launch, &contiguous, what, stream);
 }
 strided = loop->strided;
 strided.operation = *operation;
 gemmepi__fill_pointers(&loop->nest, pointers, strided.data);
 return gemmepi__launch_kernel(context, &loop->launch, &strided, what, stream);
}
/* The launches that make one output that is a sum over axes. */

#define GEMMEPI__SUM_AT_ONCE 4 /* sum.cu: rows or vectors that a thread has under way; with 8 it is slower */
#define GEMMEPI__SUM_WAVES   8 /* blocks for each multiprocessor, where there is enough to add up */
#define GEMMEPI__SUM_LANES \
 32 /* threads of a block along the sums that are made, where the innermost axis is kept */

/* A sum goes through one launch, or two with partial sums in workspace between them. */
typedef struct gemmepi__sum_step {
 gemmepi__launch launch;
 gemmepi__nest nest;
 int output; /* the tensor that is made */
 int is_kept; /* the innermost axis is one of the sums', not of what is added up */
 gemmepi__sum_params params;
} gemmepi__sum_step;

typedef struct gemmepi__axis_sum {
 gemmepi__sum_step first, second; /* second: no function where the first one ends in the output */
 size_t partial_bytes;
} gemmepi__axis_sum;

/* The kept or the summed axes of a nest, in its order. */
static void gemmepi__take_axes(const gemmepi__nest *nest, int summed, gemmepi__axes *axes) {
 int d, t;
 for (d = 0; d < nest->rank; d++) {
  if (nest->summed[d] != summed)
   continue;
  axes->extent[axes->rank] = nest->extent[d];
  for (t = 0; t < GEMMEPI__TENSORS; t++)
   axes->stride[t][axes->rank] = nest->stride[t][d];
  axes->rank++;
 }
}

/* Whether all inputs can be read in vectors along the innermost axis. */
static int gemmepi__sums_vectors(const gemmepi__task *task, const gemmepi__nest *nest, int vector) {
 int t;
 for (t = 0; t < GEMMEPI__OUT_Y; t++)
  if (gemmepi__nest_has(nest, t) && nest->stride[t][0] != 0 &&
   !gemmepi__vectors_are_aligned(task, nest, t, 0, vector))
   return 0;
 return vector > 1;
}

static unsigned gemmepi__power_of_two(int64_t at_least, unsigned most) {
 unsigned power = 1;
 while (power < most && power < at_least)
  power *= 2;
 return power;
}

/* Threads that add up `lines` of one sum: part of a warp with eight lines each, or whole warps with 32. */
static unsigned gemmepi__lanes_of_line(int64_t lines) {
 if (lines <= 32 * 32)
  return gemmepi__power_of_two(gemmepi__divide_up(lines, 8), 32);
 return gemmepi__power_of_two(gemmepi__divide_up(lines, 32), GEMMEPI__ELEMENT_THREADS);
}

/* How the launch goes about it: blocks for the sums times `parts` of what is added up. */
static gemmepi_status gemmepi__divide_sum(gemmepi__sum_step *step, int wide, int64_t blocks_wanted,
    int64_t *parts) {
 gemmepi__sum_params *params = &step->params;
 int64_t innermost = gemmepi__divide_up(step->nest.extent[0], wide), lines, least, blocks;
 params->kept_count = gemmepi__nest_count(&step->nest, 0);
 params->summed_count = gemmepi__nest_count(&step->nest, 1);
 if (step->is_kept) {
  lines = gemmepi__times(params->kept_count / step->nest.extent[0], innermost);
  step->launch.threads_x = gemmepi__power_of_two(lines, GEMMEPI__SUM_LANES);
  step->launch.threads_y = GEMMEPI__ELEMENT_THREADS / step->launch.threads_x;
  blocks = gemmepi__divide_up(lines, step->launch.threads_x);
  least = 16 * (int64_t)step->launch.threads_y;
 } else {
  params->summed_count =
   step->nest.extent[0] ? gemmepi__times(params->summed_count / step->nest.extent[0], innermost) : 0;
  step->launch.threads_x = gemmepi__lanes_of_line(params->summed_count);
  step->launch.threads_y = GEMMEPI__ELEMENT_THREADS / step->launch.threads_x;
  blocks = gemmepi__divide_up(params->kept_count, step->launch.threads_y);
  least = 16 * (int64_t)step->launch.threads_x;
 }
 *parts = gemmepi__divide_up(blocks_wanted, blocks);
 if (*parts > gemmepi__divide_up(params->summed_count, least))
  *parts = gemmepi__divide_up(params->summed_count, least);
 if (*parts < 1)
  *parts = 1;
 params->part_count = gemmepi__divide_up(params->summed_count, *parts);
 if (params->part_count)
  *parts = gemmepi__divide_up(params->summed_count, params->part_count);
 params->kept_blocks = (unsigned)blocks;
 blocks = blocks > INT_MAX ? -1 : gemmepi__offset(blocks, *parts, 0);
 if (blocks <= 0 || blocks > INT_MAX)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "a sum has more tiles than a grid has blocks");
 step->launch.blocks = (unsigned)blocks;
 return GEMMEPI_OK;
}

/* step->nest and output are set. blocks_wanted 0: no partial sums. */
static gemmepi_status gemmepi__describe_sum(const gemmepi__task *task, int operation, int64_t blocks_wanted,
    gemmepi__sum_step *step, int64_t *parts, gemmepi__text *defines) {
 const gemmepi__nest *nest = &step->nest;
 int largest = gemmepi__largest_size(nest, GEMMEPI__INPUTS), vector = gemmepi__vector_of(largest);
 int vectors = gemmepi__sums_vectors(task, nest, vector), repeats = 0, of = 0, t;
 gemmepi_status status;
 step->is_kept = !nest->summed[0];
 for (t = GEMMEPI__OUT_Y - 1; t >= 0; t--) {
  if (!gemmepi__nest_has(nest, t))
   continue;
  of = nest->dtype[t];
  if (nest->stride[t][0] == 0)
   repeats |= 1 << t;
 }
 gemmepi__take_axes(nest, 0, &step->params.kept);
 gemmepi__take_axes(nest, 1, &step->params.summed);
 status = gemmepi__divide_sum(step, vectors ? vector : 1, blocks_wanted, parts);
 gemmepi__append_operation(defines, task, operation, nest, largest == 8 ? GEMMEPI_F64 : GEMMEPI_F32, 0,
    of);
 gemmepi__append(defines, "#define GEMMEPI_OUTPUT %d\n", step->output);
 gemmepi__append(defines, "#define GEMMEPI_OUT_TYPE %s\n",
    gemmepi__dtype((gemmepi_dtype)nest->dtype[step->output])->name);
 gemmepi__append(defines, "#define GEMMEPI_ACCUMULATE %d\n",
    *parts == 1 && (task->flags & GEMMEPI_ACCUMULATE) != 0);
 gemmepi__append(defines, "#define GEMMEPI_VECTORS %d\n", vectors);
 gemmepi__append(defines, "#define GEMMEPI_REPEATS 0x%x\n", (unsigned)repeats);
 gemmepi__append(defines, "#define GEMMEPI_AT_ONCE %d\n", GEMMEPI__SUM_AT_ONCE);
 gemmepi__append(defines, "#define GEMMEPI_KEPT %d\n", step->is_kept);
 gemmepi__append(defines, "#define GEMMEPI_ONE_AXIS %d\n", step->params.summed.rank <= 1);
 return status;
}

static gemmepi_status gemmepi__build_sum_step(gemmepi_context *context, const gemmepi__task *task,
    int operation, int64_t blocks_wanted, gemmepi__sum_step *step,
    int64_t *parts) {
 char prologue[1024];
 gemmepi__text defines = gemmepi__text_in(prologue, sizeof prologue);
 gemmepi_status status = gemmepi__describe_sum(task, operation, blocks_wanted, step, parts, &defines);
 if (status)
  return status;
 gemmepi__name_operation(task, operation, step->is_kept ? "gemmepi_sum_kept" : "gemmepi_sum_along",
    gemmepi__first_dtype(&step->nest), step->nest.dtype[step->output], &step->launch);
 return gemmepi__get_kernel(context, "sum.cu", prologue,
    step->is_kept ? "gemmepi_sum_kept" : "gemmepi_sum_along", &step->launch);
}

/* Partial sums [parts][sums] in F64 into the output: its axes again, and one of the parts. */
static void gemmepi__nest_of_partials(const gemmepi__sum_step *first, int64_t parts,
    gemmepi__sum_step *second) {
 const gemmepi__nest *from = &first->nest;
 gemmepi__nest *nest = &second->nest;
 int64_t dense = 1;
 int d;
 second->output = GEMMEPI__OUT_Y;
 nest->used = GEMMEPI__BIT_A | GEMMEPI__BIT_Y;
 nest->dtype[GEMMEPI__IN_A] = GEMMEPI_F64;
 nest->dtype[GEMMEPI__OUT_Y] = from->dtype[first->output];
 nest->pointer[GEMMEPI__IN_A] = GEMMEPI__IN_A;
 nest->pointer[GEMMEPI__OUT_Y] = GEMMEPI__OUT_Y;
 for (d = 0; d < from->rank; d++) {
  if (from->summed[d])
   continue;
  nest->extent[nest->rank] = from->extent[d];
  nest->stride[GEMMEPI__IN_A][nest->rank] = dense;
  nest->stride[GEMMEPI__OUT_Y][nest->rank++] = from->stride[first->output][d];
  dense *= from->extent[d];
 }
 nest->extent[nest->rank] = parts;
 nest->summed[nest->rank] = 1;
 nest->stride[GEMMEPI__IN_A][nest->rank++] = dense;
 gemmepi__simplify_nest(nest, 1);
}

static gemmepi_status gemmepi__build_axis_sum(gemmepi_context *context, const gemmepi__task *task, int output,
    gemmepi__axis_sum *sum) {
 int64_t wanted = (int64_t)GEMMEPI__SUM_WAVES * context->multiprocessors, parts = 1, unused;
 gemmepi_status status;
 /* that the partial sums are F64 is known once there are some: a first look tells */
 char unread[1024];
 gemmepi__text defines = gemmepi__text_in(unread, sizeof unread);
 gemmepi__sum_step look;
 memset(&look, 0, sizeof look);
 gemmepi__take_nest(task, GEMMEPI__BIT(output), &look.nest);
 look.output = output;
 sum->first.nest = look.nest;
 sum->first.output = output;
 status = gemmepi__describe_sum(task, task->operation, wanted, &look, &parts, &defines);
 if (status)
  return status;
 if (parts > 1) {
  gemmepi__nest_of_partials(&look, parts, &sum->second);
  sum->first.nest.dtype[output] = GEMMEPI_F64;
  sum->partial_bytes =
   gemmepi__bytes_for(gemmepi__times(parts, look.params.kept_count), sizeof(double));
  status = gemmepi__build_sum_step(context, task, GEMMEPI_OP_BIAS_GRAD, 0, &sum->second, &unused);
 }
 if (!status)
  status = gemmepi__build_sum_step(context, task, task->operation, parts > 1 ? wanted : 0, &sum->first,
    &parts);
 return status;
}

/* partials: workspace of partial_bytes */
static gemmepi_status gemmepi__run_axis_sum(const gemmepi_context *context, const gemmepi__axis_sum *sum,
    const gemmepi__operation_params *operation, void *const *pointers,
    void *partials, gemmepi_stream stream) {
 static const char what[] = "a sum over axes";
 gemmepi__sum_params params = sum->first.params;
 void *out = (char *)pointers[sum->first.nest.pointer[sum->first.output]] +
    sum->first.nest.offset[sum->first.output];
 gemmepi_status status;
 params.operation = *operation;
 gemmepi__fill_pointers(&sum->first.nest, pointers, params.data);
 params.data[sum->first.output] = sum->second.launch.function ? partials : out;
 status = gemmepi__launch_kernel(context, &sum->first.launch, &params, what, stream);
 if (status || !sum->second.launch.function)
  return status;
 params = sum->second.params;
 params.operation = *operation;
 params.data[GEMMEPI__IN_A] = partials;
 params.data[GEMMEPI__OUT_Y] = (char *)out + sum->second.nest.offset[GEMMEPI__OUT_Y];
 return gemmepi__launch_kernel(context, &sum->second.launch, &params, what, stream);
}
/* Casts with a scale or amax for each row, 128 steps of k or block, and those whose scale is made of their amax. */

#define GEMMEPI__SCALED_TILE 128 /* scaled.cu: along its fast axis */

/* Where a kernel has its scale from: as in scaled.cu. */
enum { GEMMEPI__AS_IT_IS, GEMMEPI__GIVEN, GEMMEPI__FROM_TILE, GEMMEPI__FROM_AMAX };

typedef struct gemmepi__scaled_step {
 gemmepi__launch
  amax; /* of whole tensors and rows whose scale is made of it: a launch of its own, before the cast */
 gemmepi__launch cast; /* no function: there is nothing to launch */
 gemmepi__scaled_params params;
 size_t amax_bytes; /* zeroed before the first launch; 0: each number is written by one block */
 size_t partial_bytes; /* of workspace, where args have no amax */
 int64_t offset_a, offset_y;
 int is_two;
 int tile_slow;
} gemmepi__scaled_step;

/* Whether a task goes this way. */
static int gemmepi__is_scaled(const gemmepi__task *task) {
 return task->scale_mode > GEMMEPI_SCALE_TENSOR || (task->flags & GEMMEPI_CAST_Y_SCALE);
}

/* The scales, or amax, of a task: how many numbers of memory they reach over. */
static int64_t gemmepi__scale_count(const gemmepi__task *task) {
 int k_is_rows = (task->flags & GEMMEPI_CAST_K_IS_ROWS) != 0, d;
 int64_t last = task->rank ? task->shape[task->rank - 1] : 1,
   other = task->rank > 1 ? task->shape[task->rank - 2] : 1;
 int64_t rows = k_is_rows ? last : other,
   steps = gemmepi__divide_up(k_is_rows ? other : last, GEMMEPI__SCALED_TILE);
 int64_t count = task->scale_mode == GEMMEPI_SCALE_OUTER        ? rows
    : task->scale_mode == GEMMEPI_SCALE_VECTOR_128 ? gemmepi__times(rows, steps)
    : task->scale_mode == GEMMEPI_SCALE_BLOCK_128
    ? gemmepi__times(gemmepi__divide_up(rows, GEMMEPI__SCALED_TILE),
    gemmepi__times(gemmepi__divide_up(steps, 4), 4))
    : 1;
 for (d = 0; d < task->rank - 2 && task->scale_mode > GEMMEPI_SCALE_TENSOR; d++)
  count = gemmepi__times(count, task->shape[d]);
 return count;
}

static size_t gemmepi__amax_size(const gemmepi__task *task) {
 return task->operands[GEMMEPI__IN_A].dtype == GEMMEPI_F64 ? sizeof(double) : sizeof(float);
}

/* Axis `fast` of the last two (0: the last) first, then the other, then the rest from the last on. */
static void gemmepi__take_scaled_axes(const gemmepi__task *task, int fast, gemmepi__scaled_params *params) {
 int d;
 params->rank = task->rank > 2 ? task->rank : 2;
 for (d = 0; d < params->rank; d++) {
  int axis = task->rank - 1 - (d < 2 ? d ^ fast : d);
  params->extent[d] = axis < 0 ? 1 : task->shape[axis];
  params->stride_a[d] = axis < 0 ? 0 : task->operands[GEMMEPI__IN_A].stride[axis];
  params->stride_y[d] = axis < 0 ? 0 : task->operands[GEMMEPI__OUT_Y].stride[axis];
 }
}

/* Whether a run of `vector` elements along the fast axis begins at a multiple of its size. */
static int gemmepi__scaled_is_aligned(const gemmepi__task *task, const gemmepi__scaled_params *params,
    int tensor, int vector) {
 const gemmepi__operand *operand = &task->operands[tensor];
 const long long *stride = tensor == GEMMEPI__IN_A ? params->stride_a : params->stride_y;
 int64_t size = gemmepi__size_of(operand->dtype), bytes = size * vector;
 int d;
 if (stride[0] != 1 || task->alignment % bytes || operand->offset % bytes)
  return 0;
 for (d = 1; d < params->rank; d++)
  if (stride[d] * size % bytes)
   return 0;
 return 1;
}

/* How one launch goes about it: the defines of scaled.cu. */
typedef struct gemmepi__scaled_way {
 int k_is_fast, vectors, scale, amax, stores;
 int slow; /* a tile's extent along the other axis */
} gemmepi__scaled_way;

static void gemmepi__append_scaled(gemmepi__text *text, const gemmepi__task *task,
    const gemmepi__scaled_way *way) {
 gemmepi__append(text, "#define GEMMEPI_A_TYPE %s\n",
    gemmepi__dtype((gemmepi_dtype)task->operands[GEMMEPI__IN_A].dtype)->name);
 gemmepi__append(text, "#define GEMMEPI_Y_TYPE %s\n",
    gemmepi__dtype((gemmepi_dtype)task->operands[GEMMEPI__OUT_Y].dtype)->name);
 gemmepi__append(text, "#define GEMMEPI_ACC %s\n", gemmepi__dtype((gemmepi_dtype)task->accumulator)->name);
 gemmepi__append(text, "#define GEMMEPI_MODE %d\n", (int)task->scale_mode);
 gemmepi__append(text, "#define GEMMEPI_K_FAST %d\n", way->k_is_fast);
 gemmepi__append(text, "#define GEMMEPI_VECTORS %d\n", way->vectors);
 gemmepi__append(text, "#define GEMMEPI_SCALE %d\n", way->scale);
 gemmepi__append(text, "#define GEMMEPI_AMAX %d\n", way->amax);
 gemmepi__append(text, "#define GEMMEPI_STORES %d\n", way->stores);
 gemmepi__append(text, "#define GEMMEPI_SLOW %d\n", way->slow);
}

static gemmepi_status gemmepi__build_scaled_launch(gemmepi_context *context, const gemmepi__task *task,
    const gemmepi__scaled_way *way, gemmepi__launch *launch) {
 char prologue[512];
 gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
 gemmepi__append_scaled(&text, task, way);
 launch->threads_x = (unsigned)(4 * way->slow);
 launch->threads_y = 1;
 gemmepi__name_operation(task, task->operation, way->stores ? "gemmepi_scaled" : "gemmepi_scaled_amax",
    task->operands[GEMMEPI__IN_A].dtype, task->operands[GEMMEPI__OUT_Y].dtype,
    launch);
 return gemmepi__get_kernel(context, "scaled.cu", prologue, "gemmepi_scaled", launch);
}

/* Axes, tiles and what kind of launches there will be; *first is that of amax, where there are two. */
static gemmepi_status gemmepi__describe_scaled(const gemmepi__task *task, gemmepi__scaled_step *step,
    gemmepi__scaled_way *first, gemmepi__scaled_way *second) {
 gemmepi__scaled_params *params = &step->params;
 int size_a = gemmepi__size_of(task->operands[GEMMEPI__IN_A].dtype),
  size_y = gemmepi__size_of(task->operands[GEMMEPI__OUT_Y].dtype);
 int largest = size_a > size_y ? size_a : size_y, vector = gemmepi__vector_of(largest), fast, d;
 int is_whole = task->scale_mode <= GEMMEPI_SCALE_OUTER,
  makes_scale = (task->flags & GEMMEPI_CAST_Y_SCALE) != 0;
 int64_t blocks = 1;
 gemmepi__take_scaled_axes(task, 0, params);
 fast = params->stride_y[1] &&
   gemmepi__magnitude(params->stride_y[1]) < gemmepi__magnitude(params->stride_y[0]);
 gemmepi__take_scaled_axes(task, fast, params);
 first->k_is_fast = fast == ((task->flags & GEMMEPI_CAST_K_IS_ROWS) != 0);
 first->slow = task->scale_mode == GEMMEPI_SCALE_BLOCK_128 ||
    (task->scale_mode == GEMMEPI_SCALE_VECTOR_128 && !first->k_is_fast)
    ? GEMMEPI__SCALED_TILE
    : GEMMEPI__SCALED_TILE / 2;
 step->tile_slow = first->slow;
 for (d = 0; d < params->rank && blocks > 0; d++) {
  int64_t tile = d == 0 ? GEMMEPI__SCALED_TILE : first->slow;
  int64_t tiles = d < 2 ? gemmepi__divide_up(params->extent[d], tile) : params->extent[d];
  if (d < 2)
   params->tiles[d] = (unsigned)tiles;
  blocks = gemmepi__offset(blocks, tiles, 0);
 }
 if (blocks <= 0 || blocks > INT_MAX)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the tensors have more tiles than a grid has blocks");
 step->amax.blocks = step->cast.blocks = (unsigned)blocks;
 step->offset_a = task->operands[GEMMEPI__IN_A].offset;
 step->offset_y = task->operands[GEMMEPI__OUT_Y].offset;
 step->is_two = makes_scale && is_whole;
 if (is_whole && (task->flags & (GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX)))
  step->amax_bytes = gemmepi__bytes_for(gemmepi__scale_count(task), gemmepi__amax_size(task));
 if (step->is_two && !(task->flags & GEMMEPI_CAST_AMAX))
  step->partial_bytes = step->amax_bytes;
 first->vectors = largest < 8 && gemmepi__scaled_is_aligned(task, params, GEMMEPI__IN_A, vector) &&
    gemmepi__scaled_is_aligned(task, params, GEMMEPI__OUT_Y, vector);
 first->scale = GEMMEPI__AS_IT_IS;
 first->amax = 1;
 first->stores = 0;
 *second = *first;
 second->scale = step->is_two                         ? GEMMEPI__FROM_AMAX
    : makes_scale                        ? GEMMEPI__FROM_TILE
    : (task->flags & GEMMEPI_CAST_SCALE) ? GEMMEPI__GIVEN
    : GEMMEPI__AS_IT_IS;
 second->amax = (task->flags & GEMMEPI_CAST_AMAX) && !step->is_two;
 second->stores = 1;
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__build_scaled(gemmepi_context *context, const gemmepi__task *task,
    gemmepi__scaled_step *step) {
 gemmepi__scaled_way first, second;
 gemmepi_status status = gemmepi__describe_scaled(task, step, &first, &second);
 if (!status && step->is_two)
  status = gemmepi__build_scaled_launch(context, task, &first, &step->amax);
 return status ? status : gemmepi__build_scaled_launch(context, task, &second, &step->cast);
}

/* Sets the numbers that launches take the largest of to 0. */
static gemmepi_status gemmepi__clear_numbers(const gemmepi_context *context, void *amax, size_t bytes,
    gemmepi_stream stream) {
 int result = context->driver.memset_d8_async((gemmepi__cu_deviceptr)(uintptr_t)amax, 0, bytes, stream);
 return result ? gemmepi__cuda_failed(&context->driver, result, "clearing amax") : GEMMEPI_OK;
}

static gemmepi_status gemmepi__run_scaled(const gemmepi_context *context, const gemmepi__scaled_step *cast,
    const gemmepi_elementwise_args *args, void *const *pointers,
    void *workspace, gemmepi_stream stream) {
 static const char what[] = "a cast with scales";
 gemmepi__scaled_params params = cast->params;
 gemmepi_status status = GEMMEPI_OK;
 params.a = (char *)pointers[GEMMEPI__IN_A] + cast->offset_a;
 params.y = (char *)pointers[GEMMEPI__OUT_Y] + cast->offset_y;
 params.scale = args->scale;
 params.y_scale = args->y_scale;
 params.amax = cast->partial_bytes ? workspace : args->amax;
 if (cast->amax_bytes)
  status = gemmepi__clear_numbers(context, params.amax, cast->amax_bytes, stream);
 if (!status && cast->amax.function)
  status = gemmepi__launch_kernel(context, &cast->amax, &params, what, stream);
 return status ? status : gemmepi__launch_kernel(context, &cast->cast, &params, what, stream);
}
/* Element-wise operations: prepared once, run any number of times, and the calls that do both. */

#ifndef GEMMEPI_NO_HOST
#endif

#define GEMMEPI__MAX_SUMS 3 /* da, db and dw */

/* Where a tensor lies, for the checks of each run. */
typedef struct gemmepi__reach_of {
 gemmepi__layout layout;
 int64_t low, high; /* bytes from the pointer; both 0: the tensor has no element */
} gemmepi__reach_of;

typedef struct gemmepi__elementwise_plan {
 gemmepi_plan base;
 gemmepi__task task;
 gemmepi_route route;
 size_t workspace_size;
 gemmepi__axis_sum sums[GEMMEPI__MAX_SUMS];
 int sum_count;
 gemmepi__loop loop;
 gemmepi__scaled_step scaled;
 gemmepi__reach_of reach[GEMMEPI__TENSORS];
} gemmepi__elementwise_plan;

/* >>building */

static void gemmepi__take_reach(const gemmepi__task *task, int t, gemmepi__reach_of *reach) {
 const gemmepi__operand *operand = &task->operands[t];
 int d;
 reach->layout = gemmepi__layout_of(task, operand);
 reach->low = operand->offset;
 reach->high = operand->offset + reach->layout.size;
 for (d = 0; d < reach->layout.rank; d++) {
  int64_t last = (reach->layout.shape[d] - 1) * reach->layout.stride[d];
  if (reach->layout.shape[d] == 0) {
   reach->low = reach->high = 0;
   return;
  }
  if (last < 0)
   reach->low += last;
  else
   reach->high += last;
 }
}

static void gemmepi__need_workspace(gemmepi__elementwise_plan *plan, size_t bytes) {
 if (bytes > plan->workspace_size)
  plan->workspace_size = bytes;
}

static gemmepi_status gemmepi__build_launches(gemmepi__elementwise_plan *plan) {
 const gemmepi__task *task = &plan->task;
 gemmepi_status status = GEMMEPI_OK;
 uint32_t others = 0;
 int t;
 if (gemmepi__is_scaled(task)) {
  plan->route = GEMMEPI_ROUTE_SCALED;
  status = gemmepi__build_scaled(plan->base.context, task, &plan->scaled);
  gemmepi__need_workspace(plan, plan->scaled.partial_bytes);
  return status;
 }
 for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS && !status; t++) {
  const gemmepi__operand *operand = &task->operands[t];
  if (!gemmepi__task_has(task, t) || gemmepi__operand_is_empty(task, operand))
   continue;
  if (!operand->is_sum) {
   others |= GEMMEPI__BIT(t);
   continue;
  }
  status = gemmepi__build_axis_sum(plan->base.context, task, t, &plan->sums[plan->sum_count]);
  gemmepi__need_workspace(plan, plan->sums[plan->sum_count++].partial_bytes);
 }
 plan->route = GEMMEPI_ROUTE_SUM;
 if (!status && others) {
  status = gemmepi__build_loop(plan->base.context, task, others, &plan->loop);
  if (!plan->sum_count)
   plan->route = plan->loop.is_contiguous ? GEMMEPI_ROUTE_CONTIGUOUS : GEMMEPI_ROUTE_STRIDED;
 }
 return status;
}

static gemmepi_status gemmepi__build_on_device(gemmepi__elementwise_plan *plan) {
 gemmepi__entry entry;
 gemmepi_status status = gemmepi__enter_relaxed(plan->base.context, &entry);
 if (status)
  return status;
 gemmepi__lock(&plan->base.context->build_lock);
 status = gemmepi__build_launches(plan);
 gemmepi__unlock(&plan->base.context->build_lock);
 gemmepi__leave_relaxed(plan->base.context, &entry);
 return status;
}

static void gemmepi__destroy_elementwise(gemmepi_plan *destroyed) {
 gemmepi__elementwise_plan *plan = (gemmepi__elementwise_plan *)destroyed;
 gemmepi__delete(&plan->base.context->allocator, plan);
}

static gemmepi_status gemmepi__build_elementwise(gemmepi_context *context, const gemmepi__task *task,
    gemmepi__elementwise_plan **result) {
 gemmepi__elementwise_plan *plan =
  (gemmepi__elementwise_plan *)gemmepi__new(&context->allocator, sizeof *plan);
 gemmepi_status status = GEMMEPI_OK;
 int t;
 if (!plan)
  return GEMMEPI_OUT_OF_MEMORY;
 plan->base = gemmepi__plan_base(context, GEMMEPI_PLAN_ELEMENTWISE, gemmepi__destroy_elementwise);
 plan->task = *task;
 for (t = 0; t < GEMMEPI__TENSORS; t++)
  if (gemmepi__task_has(task, t))
   gemmepi__take_reach(task, t, &plan->reach[t]);
 if (task->is_empty)
  plan->route = GEMMEPI_ROUTE_EMPTY;
 else if (context->is_host)
  plan->route = GEMMEPI_ROUTE_HOST;
 else
  status = gemmepi__build_on_device(plan);
 if (status)
  gemmepi__release_plan(&plan->base);
 else
  *result = plan;
 return status;
}

GEMMEPI_API gemmepi_status gemmepi_plan_elementwise(gemmepi_context *context,
    const gemmepi_elementwise_desc *desc,
    gemmepi_plan **result) {
 gemmepi__task task;
 gemmepi__elementwise_plan *plan = NULL;
 gemmepi_status status;
 if (result)
  *result = NULL; /* also after a failure */
 if (!context || !result)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 status = gemmepi__take_task(desc, GEMMEPI__DEFAULT_ALIGNMENT, &task);
 if (!status)
  status = gemmepi__build_elementwise(context, &task, &plan);
 if (!status)
  *result = &plan->base;
 return status;
}

/* >>the pointers of a run */

/* What a run writes or reads beside tensors. */
typedef struct gemmepi__numbers_row {
 const char *name, *flag_name;
 uint64_t flag;
} gemmepi__numbers_row;

static const gemmepi__numbers_row gemmepi__numbers[] = {{"scale", "CAST_SCALE", GEMMEPI_CAST_SCALE},
    {"y_scale", "CAST_Y_SCALE", GEMMEPI_CAST_Y_SCALE},
    {"amax", "CAST_AMAX", GEMMEPI_CAST_AMAX}};

static gemmepi_status gemmepi__check_numbers(const gemmepi__elementwise_plan *plan,
    const gemmepi_elementwise_args *args) {
 const gemmepi__task *task = &plan->task;
 const void *given[3];
 int64_t count = gemmepi__scale_count(task);
 size_t i;
 int t;
 given[0] = args->scale;
 given[1] = args->y_scale;
 given[2] = args->amax;
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__numbers); i++) {
  const gemmepi__numbers_row *row = &gemmepi__numbers[i];
  size_t size = i == 2 ? gemmepi__amax_size(task) : sizeof(float);
  uintptr_t begin = (uintptr_t)given[i], end = begin + (uintptr_t)count * size;
  if (((task->flags & row->flag) != 0) != (given[i] != NULL))
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is %s, but flags has %s %s", row->name,
    given[i] ? "given" : "NULL", given[i] ? "no" : "the flag", row->flag_name);
  if (begin % size)
   return gemmepi__fail(GEMMEPI_MISALIGNED, "args.%s is %p; it must be a multiple of %d bytes",
    row->name, given[i], (int)size);
  for (t = GEMMEPI__IN_A; given[i] && t < GEMMEPI__TENSORS; t += GEMMEPI__OUT_Y - GEMMEPI__IN_A) {
   uintptr_t base = (uintptr_t)(t == GEMMEPI__IN_A ? args->a : args->y);
   if ((i > 0 || t == GEMMEPI__OUT_Y) && begin < base + (uintptr_t)plan->reach[t].high &&
    base + (uintptr_t)plan->reach[t].low < end)
    return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s (%p, %llu bytes) overlaps %s",
    row->name, given[i], (gemmepi__ull)(end - begin),
    gemmepi__tensor_names[t]);
  }
  if (i < 2 && given[i] && given[2] &&
   begin < (uintptr_t)given[2] + (uintptr_t)count * gemmepi__amax_size(task) &&
   (uintptr_t)given[2] < end)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s (%p) overlaps args.amax (%p)", row->name,
    given[i], given[2]);
 }
 return GEMMEPI_OK;
}

/* In place: the very same elements in the same order. */
static int gemmepi__is_in_place(const gemmepi__task *task, int output, int input) {
 const gemmepi__operand *p = &task->operands[output], *q = &task->operands[input];
 return input < GEMMEPI__OUT_Y && !p->is_sum && p->dtype == q->dtype && !gemmepi__is_scaled(task) &&
   memcmp(p->stride, q->stride, sizeof p->stride) == 0;
}

static gemmepi_status gemmepi__check_apart(const gemmepi__elementwise_plan *plan, void *const *pointers,
    int output, int other) {
 const gemmepi__reach_of *p = &plan->reach[output], *q = &plan->reach[other];
 intptr_t p_base = (intptr_t)pointers[plan->task.operands[output].pointer];
 intptr_t q_base = (intptr_t)pointers[plan->task.operands[other].pointer];
 int64_t distance;
 int shares;
 if (p_base + p->high <= q_base + q->low || q_base + q->high <= p_base + p->low || p->low == p->high ||
  q->low == q->high)
  return GEMMEPI_OK;
 distance = q_base + plan->task.operands[other].offset - (p_base + plan->task.operands[output].offset);
 if (distance == 0 && gemmepi__is_in_place(&plan->task, output, other))
  return GEMMEPI_OK;
 shares = gemmepi__layouts_share(&p->layout, &q->layout, distance);
 if (!shares)
  return GEMMEPI_OK;
 return gemmepi__fail(
  GEMMEPI_INVALID_ARGUMENT,
  "%s (%p), which is written, overlaps %s (%p)%s; an output may only be exactly an input (the same "
  "pointer, dtype, shape and strides), and no sum or cast with scales of rows or blocks may",
  gemmepi__tensor_names[plan->task.operands[output].pointer], (void *)p_base,
  gemmepi__tensor_names[plan->task.operands[other].pointer], (void *)q_base,
  gemmepi__if_undecided(shares));
}

static gemmepi_status gemmepi__check_pointers(const gemmepi__elementwise_plan *plan, int one_shot,
    void *const *pointers) {
 const gemmepi__task *task = &plan->task;
 gemmepi_status status = GEMMEPI_OK;
 int t, other;
 for (t = 0; t < GEMMEPI__TENSORS; t++) {
  int given = (int)(task->given >> t & 1), size = gemmepi__size_of(task->operands[t].dtype);
  int alignment = size > task->alignment ? size : task->alignment;
  if (!given && pointers[t])
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.%s is given, but the plan has no such tensor",
    gemmepi__tensor_names[t]);
  if (!given)
   continue;
  if (!pointers[t] && plan->reach[t].low != plan->reach[t].high)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    one_shot ? "%s.data is NULL, and so is args.%s"
    : "args.%s is NULL; a plan's run does not take a tensor's own data",
    gemmepi__tensor_names[t], gemmepi__tensor_names[t]);
  if ((uintptr_t)pointers[t] % (uintptr_t)alignment)
   return gemmepi__fail(
    GEMMEPI_MISALIGNED, "the data of %s is %p; it must be a multiple of %d bytes (%s)",
    gemmepi__tensor_names[t], pointers[t], alignment,
    alignment == size ? "the size of an element" : "desc.alignment, 16 by default");
 }
 for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS && !status; t++)
  for (other = 0; gemmepi__task_has(task, t) && other < GEMMEPI__TENSORS && !status; other++)
   if (gemmepi__task_has(task, other) && (other < GEMMEPI__OUT_Y || other > t))
    status = gemmepi__check_apart(plan, pointers, t, other);
 return status;
}

/* >>running */

static void gemmepi__take_pointers_of(const gemmepi_elementwise_args *args,
    void *pointers[GEMMEPI__TENSORS]) {
 const void *inputs[GEMMEPI__OUT_Y];
 inputs[GEMMEPI__IN_A] = args->a;
 inputs[GEMMEPI__IN_B] = args->b;
 inputs[GEMMEPI__IN_W] = args->w;
 inputs[GEMMEPI__IN_DY] = args->dy;
 memcpy(pointers, inputs, sizeof inputs);
 pointers[GEMMEPI__OUT_Y] = args->y;
 pointers[GEMMEPI__OUT_DA] = args->da;
 pointers[GEMMEPI__OUT_DB] = args->db;
 pointers[GEMMEPI__OUT_DW] = args->dw;
}

static gemmepi_status gemmepi__launch_all(const gemmepi__elementwise_plan *plan,
    const gemmepi_elementwise_args *args, void *const *pointers,
    void *workspace, gemmepi_stream stream) {
 gemmepi__operation_params operation;
 gemmepi_status status = GEMMEPI_OK;
 int i;
 if (plan->route == GEMMEPI_ROUTE_SCALED)
  return gemmepi__run_scaled(plan->base.context, &plan->scaled, args, pointers, workspace, stream);
 operation.parameter = plan->task.parameter;
 operation.weight = args->weight;
 operation.scale = args->scale;
 operation.amax = args->amax;
 for (i = 0; i < plan->sum_count && !status; i++)
  status = gemmepi__run_axis_sum(plan->base.context, &plan->sums[i], &operation, pointers, workspace,
    stream);
 if (!status && operation.amax)
  status = gemmepi__clear_numbers(plan->base.context, operation.amax, gemmepi__amax_size(&plan->task),
    stream);
 if (!status && plan->loop.launch.function)
  status = gemmepi__run_loop(plan->base.context, &plan->loop, &operation, pointers, stream);
 return status;
}

/* Workspace is an output like any other. */
static gemmepi_status gemmepi__check_own_workspace(const gemmepi__elementwise_plan *plan,
    const gemmepi_elementwise_args *args,
    void *const *pointers) {
 uintptr_t begin = (uintptr_t)args->workspace, end = begin + plan->workspace_size;
 int t;
 gemmepi_status status =
  gemmepi__check_given_workspace(args->workspace, args->workspace_size, plan->workspace_size);
 if (status)
  return status;
 for (t = 0; t < GEMMEPI__TENSORS; t++) {
  uintptr_t base =
   gemmepi__task_has(&plan->task, t) ? (uintptr_t)pointers[plan->task.operands[t].pointer] : 0;
  if (base && begin < base + (uintptr_t)plan->reach[t].high &&
   base + (uintptr_t)plan->reach[t].low < end)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.workspace (%p, %llu bytes used) overlaps %s",
    args->workspace, (gemmepi__ull)plan->workspace_size,
    gemmepi__tensor_names[plan->task.operands[t].pointer]);
 }
 if (args->y_scale && begin < (uintptr_t)(args->y_scale + gemmepi__scale_count(&plan->task)) &&
  (uintptr_t)args->y_scale < end)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.workspace (%p, %llu bytes used) overlaps args.y_scale (%p)",
    args->workspace, (gemmepi__ull)plan->workspace_size, (void *)args->y_scale);
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__launch_elementwise(const gemmepi__elementwise_plan *plan,
    const gemmepi_elementwise_args *args, void *const *pointers,
    gemmepi_stream stream) {
 gemmepi__block *block;
 gemmepi_status status;
 if (plan->workspace_size == 0)
  return gemmepi__launch_all(plan, args, pointers, NULL, stream);
 if (args->workspace) {
  status = gemmepi__check_own_workspace(plan, args, pointers);
  return status ? status : gemmepi__launch_all(plan, args, pointers, args->workspace, stream);
 }
 block = gemmepi__take_block(plan->base.context, gemmepi__key_of_stream(stream), plan->workspace_size,
    "gemmepi_plan_prepare");
 if (!block)
  return GEMMEPI_BUFFER_TOO_SMALL;
 status = gemmepi__launch_all(plan, args, pointers, (void *)(uintptr_t)block->address, stream);
 gemmepi__give_block(block);
 return status;
}

static gemmepi_status gemmepi__check_reach_of(const gemmepi__elementwise_plan *plan,
    const gemmepi_elementwise_args *args, void *const *pointers) {
 const gemmepi_context *context = plan->base.context;
 gemmepi_status status = gemmepi__check_reachable(context, "workspace", args->workspace);
 int t;
 for (t = 0; t < GEMMEPI__TENSORS && !status; t++)
  status = gemmepi__check_reachable(context, gemmepi__tensor_names[t], pointers[t]);
 if (!status)
  status = gemmepi__check_reachable(context, "scale", args->scale);
 if (!status)
  status = gemmepi__check_reachable(context, "y_scale", args->y_scale);
 return status ? status : gemmepi__check_reachable(context, "amax", args->amax);
}

/* one_shot: as gemmepi__run_matmul's. */
static gemmepi_status gemmepi__run_elementwise(const gemmepi__elementwise_plan *plan,
    const gemmepi_elementwise_args *args, int one_shot,
    gemmepi_stream stream) {
 void *pointers[GEMMEPI__TENSORS];
 gemmepi__entry entry;
 gemmepi_status status;
 status = gemmepi__check_run(plan->base.context, stream, args->workspace, args->workspace_size);
 if (status || plan->route == GEMMEPI_ROUTE_EMPTY)
  return status;
 if (args->weight != 0 && gemmepi__task_has(&plan->task, GEMMEPI__IN_W))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.weight is %g beside w; leave it 0, or w NULL",
    args->weight);
 if (args->weight != 0 && plan->task.operation != GEMMEPI_OP_LERP &&
  plan->task.operation != GEMMEPI_OP_LERP_BACKWARD)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.weight is %g; the operation %s has none: leave it 0", args->weight,
    gemmepi__operation(plan->task.operation)->name);
 gemmepi__take_pointers_of(args, pointers);
 status = gemmepi__check_pointers(plan, one_shot, pointers);
 if (!status && (plan->task.operation == GEMMEPI_OP_CAST || args->scale || args->y_scale || args->amax))
  status = gemmepi__check_numbers(plan, args);
 if (status)
  return status;
#ifndef GEMMEPI_NO_HOST
 if (plan->route == GEMMEPI_ROUTE_HOST) {
  gemmepi__host_elementwise(&plan->task, pointers, args->weight, args->scale, args->y_scale,
    args->amax);
  return GEMMEPI_OK;
 }
#endif
 status = gemmepi__enter(plan->base.context, &entry);
 if (status)
  return status;
 if (one_shot || plan->base.context->check_pointers)
  status = gemmepi__check_reach_of(plan, args, pointers);
 if (!status)
  status = gemmepi__launch_elementwise(plan, args, pointers, stream);
 gemmepi__leave(plan->base.context, &entry);
 return status;
}

GEMMEPI_API gemmepi_status gemmepi_run_elementwise(const gemmepi_plan *plan,
    const gemmepi_elementwise_args *args,
    gemmepi_stream stream) {
 gemmepi_status status = gemmepi__check_plan(plan, args, GEMMEPI_PLAN_ELEMENTWISE);
 return status ? status
    : gemmepi__run_elementwise((const gemmepi__elementwise_plan *)plan, args, 0, stream);
}

static gemmepi_status gemmepi__prepare_elementwise(const gemmepi__elementwise_plan *plan,
    gemmepi_stream stream) {
 return gemmepi__reserve(plan->base.context, stream, plan->workspace_size);
}

/* >>calls that plan by themselves */

/* The pointer that args has, or else the tensor's own. */
static const void *gemmepi__data_of(const gemmepi_tensor *tensor, const void *given) {
 return given || !tensor ? given : tensor->data;
}

static void *gemmepi__output_of(const gemmepi_tensor *tensor, void *given) {
 return given || !tensor ? given : tensor->data;
}

/* args as given, the tensors' own data where they are NULL. */
static gemmepi_elementwise_args gemmepi__filled_args(const gemmepi_elementwise_desc *desc,
    const gemmepi_elementwise_args *given) {
 gemmepi_elementwise_args args;
 memset(&args, 0, sizeof args);
 if (given)
  args = *given;
 args.a = gemmepi__data_of(desc->a, args.a);
 args.b = gemmepi__data_of(desc->b, args.b);
 args.w = gemmepi__data_of(desc->w, args.w);
 args.dy = gemmepi__data_of(desc->dy, args.dy);
 args.y = gemmepi__output_of(desc->y, args.y);
 args.da = gemmepi__output_of(desc->da, args.da);
 args.db = gemmepi__output_of(desc->db, args.db);
 args.dw = gemmepi__output_of(desc->dw, args.dw);
 return args;
}

/* The alignment class of the data, as gemmepi__alignment_of for products. */
static size_t gemmepi__alignment_of_data(void *const *pointers) {
 uintptr_t bits = GEMMEPI__DEFAULT_ALIGNMENT;
 int t;
 for (t = 0; t < GEMMEPI__TENSORS; t++)
  bits |= (uintptr_t)pointers[t];
 return (size_t)(bits & (~bits + 1));
}

GEMMEPI_API gemmepi_status gemmepi_elementwise(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
    const gemmepi_elementwise_args *given, gemmepi_stream stream) {
 gemmepi_elementwise_args args;
 void *pointers[GEMMEPI__TENSORS];
 gemmepi__elementwise_plan *plan;
 gemmepi__task task;
 gemmepi_plan *kept;
 gemmepi_status status;
 if (!context)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "context is NULL");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 status = gemmepi__check_operation(desc);
 if (status)
  return status;
 args = gemmepi__filled_args(desc, given);
 gemmepi__take_pointers_of(&args, pointers);
 status = gemmepi__take_task(desc, gemmepi__alignment_of_data(pointers), &task);
 if (status)
  return status;
 kept = gemmepi__find_kept(context, &task, sizeof task);
 if (!kept) {
  status = gemmepi__build_elementwise(context, &task, &plan);
  if (status)
   return status;
  kept = gemmepi__keep(context, &task, sizeof task, &plan->base);
 }
 plan = (gemmepi__elementwise_plan *)kept;
 if (!args.workspace)
  status = gemmepi__prepare_elementwise(plan, stream);
 if (!status)
  status = gemmepi__run_elementwise(plan, &args, 1, stream);
 gemmepi__release_plan(kept);
 return status;
}

/* >>short calls */

/* Zeroed, but for what the operation is. */
static gemmepi_elementwise_desc gemmepi__desc_of(gemmepi_operation operation, const gemmepi_tensor *a,
    const gemmepi_tensor *y) {
 gemmepi_elementwise_desc desc;
 memset(&desc, 0, sizeof desc);
 desc.operation = operation;
 desc.a = a;
 desc.y = y;
 return desc;
}

/* A positional call's parameter: NaN is the default. */
static void gemmepi__take_parameter(gemmepi_elementwise_desc *desc, double parameter) {
 desc->has_parameter = parameter == parameter;
 desc->activation_parameter = desc->has_parameter ? parameter : 0;
}

GEMMEPI_API gemmepi_status gemmepi_activation(gemmepi_context *context, gemmepi_epilogue activation,
    double parameter, const gemmepi_tensor *a,
    const gemmepi_tensor *y, gemmepi_stream stream) {
 gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_ACTIVATION, a, y);
 desc.activation = activation;
 gemmepi__take_parameter(&desc, parameter);
 return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_activation_backward(gemmepi_context *context, gemmepi_epilogue activation,
    double parameter, const gemmepi_tensor *a,
    const gemmepi_tensor *dy, const gemmepi_tensor *da,
    gemmepi_stream stream) {
 gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_ACTIVATION_BACKWARD, a, NULL);
 desc.activation = activation;
 gemmepi__take_parameter(&desc, parameter);
 desc.dy = dy;
 desc.da = da;
 return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_gated(gemmepi_context *context, gemmepi_epilogue activation, int split_dim,
    const gemmepi_tensor *a, const gemmepi_tensor *b,
    const gemmepi_tensor *y, gemmepi_stream stream) {
 gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_GATED, a, y);
 desc.activation = activation;
 desc.axis = split_dim;
 desc.b = b;
 return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_lerp(gemmepi_context *context, const gemmepi_tensor *a,
    const gemmepi_tensor *b, const gemmepi_tensor *w, double weight,
    const gemmepi_tensor *y, gemmepi_stream stream) {
 gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_LERP, a, y);
 gemmepi_elementwise_args args;
 memset(&args, 0, sizeof args);
 args.weight = weight;
 desc.b = b;
 desc.w = w;
 return gemmepi_elementwise(context, &desc, &args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_bias_grad(gemmepi_context *context, const gemmepi_tensor *a, int axis,
    int accumulate, const gemmepi_tensor *y, gemmepi_stream stream) {
 gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_BIAS_GRAD, a, y);
 desc.axis = axis;
 desc.flags = accumulate ? GEMMEPI_ACCUMULATE : 0;
 if (accumulate != 0 && accumulate != 1)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "accumulate is %d; accepted are 0 and 1", accumulate);
 return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_cast(gemmepi_context *context, const gemmepi_tensor *a,
    const gemmepi_tensor *y, gemmepi_stream stream) {
 gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_CAST, a, y);
 return gemmepi_elementwise(context, &desc, NULL, stream);
}
/* What an element-wise plan is, as a struct and in words. */

static int gemmepi__elementwise_launches(const gemmepi__elementwise_plan *plan) {
 int launches = (plan->loop.launch.function != NULL) + (plan->scaled.cast.function != NULL) +
    (plan->scaled.amax.function != NULL) + (plan->scaled.amax_bytes != 0),
  i;
 if (plan->loop.launch.function && (plan->task.flags & GEMMEPI_CAST_AMAX))
  launches++; /* clearing it */
 for (i = 0; i < plan->sum_count; i++)
  launches += 1 + (plan->sums[i].second.launch.function != NULL);
 return launches;
}

static const char *gemmepi__elementwise_kernel(const gemmepi__elementwise_plan *plan) {
 switch (plan->route) {
 case GEMMEPI_ROUTE_CONTIGUOUS:
 case GEMMEPI_ROUTE_STRIDED:
  return plan->loop.launch.name;
 case GEMMEPI_ROUTE_SUM:
  return plan->sums[0].first.launch.name;
 case GEMMEPI_ROUTE_SCALED:
  return plan->scaled.cast.name;
 case GEMMEPI_ROUTE_HOST:
  return "gemmepi__host_elementwise";
 default:
  return "";
 }
}

static void gemmepi__elementwise_info(const gemmepi__elementwise_plan *plan, gemmepi_plan_details *details) {
 memset(details, 0, sizeof *details);
 details->kind = GEMMEPI_PLAN_ELEMENTWISE;
 details->route = plan->route;
 details->route_name = gemmepi__route_names[plan->route];
 snprintf(details->kernel, sizeof details->kernel, "%s", gemmepi__elementwise_kernel(plan));
 if (plan->route == GEMMEPI_ROUTE_STRIDED) {
  details->tile_m = plan->loop.tile_j;
  details->tile_n = plan->loop.tile_i;
 } else if (plan->route == GEMMEPI_ROUTE_SCALED) {
  details->tile_m = plan->scaled.tile_slow;
  details->tile_n = GEMMEPI__SCALED_TILE;
 }
 details->launches = gemmepi__elementwise_launches(plan);
 details->workspace_size = plan->workspace_size;
 details->accumulator = plan->base.context->is_host ? GEMMEPI_F64 : (gemmepi_dtype)plan->task.accumulator;
 details->compute = details->accumulator == GEMMEPI_F64 ? GEMMEPI_COMPUTE_F64 : GEMMEPI_COMPUTE_F32;
 details->deterministic = details->bit_stable = 1;
}

static void gemmepi__explain_tensor(gemmepi__text *text, const gemmepi__task *task, int t) {
 const gemmepi__operand *operand = &task->operands[t];
 gemmepi__append(text, "  %s: %s, strides ", gemmepi__tensor_names[t],
    gemmepi__dtype((gemmepi_dtype)operand->dtype)->name);
 gemmepi__append_shape(text, task->rank, operand->stride);
 if (operand->pointer != t)
  gemmepi__append(text, ", the second operand in %s", gemmepi__tensor_names[operand->pointer]);
 gemmepi__append(text, "%s\n", operand->is_sum ? ", a sum" : "");
}

static void gemmepi__explain_loop(gemmepi__text *text, const gemmepi__elementwise_plan *plan) {
 static const char *const modes[] = {"by vectors", "one number for a line", "element by element",
    "transposed, element by element", "transposed"};
 const gemmepi__nest *nest = &plan->loop.nest;
 int vector = gemmepi__vector_of(gemmepi__largest_size(nest, ~0u)), t;
 if (plan->loop.is_contiguous) {
  gemmepi__append(text, "  contiguous: one line of %lld elements, %d at a time\n",
    (long long)nest->extent[0], vector);
  return;
 }
 gemmepi__append(text, "  strided: %d axes after merging, tiles of %d x %d;", nest->rank,
    plan->loop.tile_j, plan->loop.tile_i);
 for (t = 0; t < GEMMEPI__TENSORS; t++)
  if (gemmepi__nest_has(nest, t))
   gemmepi__append(text, " %s %s,", gemmepi__tensor_names[t],
    modes[gemmepi__mode_of(&plan->task, &plan->loop, t, vector)]);
 gemmepi__append(text, " not contiguous: %s\n",
    nest->rank > 1 ? "the tensors do not merge into one line"
    : "a tensor is not dense or not aligned");
}

static void gemmepi__explain_elementwise(gemmepi__text *text, const gemmepi__elementwise_plan *plan) {
 const gemmepi__task *task = &plan->task;
 int t, i;
 gemmepi__append(text, "%s", gemmepi__operation(task->operation)->name);
 if (gemmepi__operation(task->operation)->has_activation)
  gemmepi__append(text, " %s", gemmepi__activation_name((gemmepi_epilogue)task->activation));
 gemmepi__append(text, " over ");
 gemmepi__append_shape(text, task->rank, task->shape);
 gemmepi__append(text, "\n");
 for (t = 0; t < GEMMEPI__TENSORS; t++)
  if (gemmepi__task_has(task, t))
   gemmepi__explain_tensor(text, task, t);
 if (plan->route == GEMMEPI_ROUTE_EMPTY)
  gemmepi__append(text, "  empty: no output has an element\n");
 if (plan->route == GEMMEPI_ROUTE_HOST)
  gemmepi__append(text, "  host: plain C\n");
 for (i = 0; i < plan->sum_count; i++) {
  const gemmepi__axis_sum *sum = &plan->sums[i];
  gemmepi__append(text, "  sum: %s, %lld times %lld terms, the innermost axis is %s, %s\n",
    gemmepi__tensor_names[sum->first.output], (long long)sum->first.params.kept_count,
    (long long)gemmepi__nest_count(&sum->first.nest, 1),
    sum->first.is_kept ? "kept" : "added up",
    sum->second.launch.function ? "by way of partial sums" : "one launch");
 }
 if (plan->loop.launch.function)
  gemmepi__explain_loop(text, plan);
 if (plan->scaled.cast.function)
  gemmepi__append(text, "  scaled: tiles of 128 by %d, %s\n", plan->scaled.tile_slow,
    plan->scaled.amax.function ? "amax first, then the cast" : "one pass");
 gemmepi__append(text, "  %d launches, %llu bytes of workspace\n", gemmepi__elementwise_launches(plan),
    (gemmepi__ull)plan->workspace_size);
}
#endif

/* Sums for bias_grad: of partial sums that an epilogue left, or of an operand. */

#define GEMMEPI__SUM_COLUMNS      32 /* reduce.cu */
#define GEMMEPI__SUM_ROWS         8 /* of a block's threads, or MANY, so that few rounds of loads follow each other */
#define GEMMEPI__SUM_MANY_ROWS    32
#define GEMMEPI__SUM_LINE_THREADS 128

/* A sum is one launch, or two with partial sums in workspace between them; or the second alone, where a product's kernel
 leaves them, or none. */
typedef struct gemmepi__sums {
 gemmepi__launch first, second;
 gemmepi__reduce_params first_params, second_params;
 int operand; /* summed: A or B, or AUX for an epilogue's partial sums */
 size_t partial_bytes; /* between the two */
} gemmepi__sums;

static void gemmepi__reduce_prologue(int x, int scale, int out, int accumulate, int rows, char *data,
    size_t size) {
 gemmepi__text text = gemmepi__text_in(data, size);
 gemmepi__append(&text, "#define GEMMEPI_X_TYPE %s\n", gemmepi__dtype((gemmepi_dtype)x)->name);
 gemmepi__append(&text, "#define GEMMEPI_X_SCALE %d\n", scale);
 gemmepi__append(&text, "#define GEMMEPI_OUT_TYPE %s\n", gemmepi__dtype((gemmepi_dtype)out)->name);
 gemmepi__append(&text, "#define GEMMEPI_ACCUMULATE %d\n#define GEMMEPI_ROWS %d\n", accumulate, rows);
}

/* One launch of reduce.cu: items * parts sums of x's columns, or of its rows. */
static gemmepi_status gemmepi__build_sum(gemmepi_context *context, int along_rows, int64_t items, int x_dtype,
    int scale, int out_dtype, int accumulate,
    const gemmepi__reduce_params *params, gemmepi__launch *launch) {
 int64_t tiles = along_rows ? params->rows : gemmepi__divide_up(params->columns, GEMMEPI__SUM_COLUMNS);
 int64_t blocks = gemmepi__offset(gemmepi__offset(tiles, params->parts, 0), items, 0);
 int rows = params->part_rows >= 4 * GEMMEPI__SUM_MANY_ROWS ? GEMMEPI__SUM_MANY_ROWS : GEMMEPI__SUM_ROWS;
 char prologue[512];
 if (blocks <= 0 || blocks > INT_MAX)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "bias_grad has more tiles than a grid has blocks");
 launch->blocks = (unsigned)blocks;
 launch->threads_x = along_rows ? GEMMEPI__SUM_LINE_THREADS : GEMMEPI__SUM_COLUMNS;
 launch->threads_y = along_rows ? 1 : (unsigned)rows;
 gemmepi__reduce_prologue(x_dtype, scale, out_dtype, accumulate, rows, prologue, sizeof prologue);
 gemmepi__name_kernel(launch, "gemmepi_sum_%s_%s_to_%s", along_rows ? "rows" : "columns",
    gemmepi__dtype((gemmepi_dtype)x_dtype)->name,
    gemmepi__dtype((gemmepi_dtype)out_dtype)->name);
 return gemmepi__get_waiting_kernel(context, "reduce.cu", prologue,
    along_rows ? "gemmepi_sum_rows" : "gemmepi_sum_columns", launch);
}

/* Adds up `lines` lines of sums in F64 for each of `groups` rows of bias_grad. */
static gemmepi_status gemmepi__build_sum_of_lines(gemmepi_context *context, const gemmepi__problem *problem,
    int64_t groups, int64_t lines, gemmepi__sums *sums) {
 const gemmepi__view *out = &problem->views[GEMMEPI__BIAS_GRAD];
 gemmepi__reduce_params *second = &sums->second_params;
 int64_t stride = gemmepi__offset(lines, out->length, 0), count = gemmepi__offset(groups, stride, 0);
 if (count < 0)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "bias_grad has more than 2^56 partial sums");
 sums->partial_bytes = gemmepi__bytes_for(count, sizeof(double));
 second->x.ld = out->length;
 second->x.stride = stride;
 second->rows = second->part_rows = lines;
 second->columns = out->length;
 second->parts = 1;
 second->out_stride = out->batch_stride;
 return gemmepi__build_sum(context, 0, groups, GEMMEPI_F64, 0, out->dtype,
    gemmepi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD), second, &sums->second);
}

/* Sums `items` matrices of first_params into `groups` rows of bias_grad (as many, or one). Directly where each sum is one
 block's; else by way of partial sums in F64, of which a second launch adds up `lines` for each group. */
static gemmepi_status gemmepi__build_sums_of(gemmepi_context *context, const gemmepi__problem *problem,
    int along_rows, int x_dtype, int scale, int64_t items,
    int64_t groups, gemmepi__sums *sums) {
 const gemmepi__view *out = &problem->views[GEMMEPI__BIAS_GRAD];
 gemmepi__reduce_params *first = &sums->first_params;
 int64_t lines = gemmepi__times(items / groups, first->parts);
 gemmepi_status status;
 first->out_stride = out->batch_stride;
 if (lines == 1)
  return gemmepi__build_sum(context, along_rows, items, x_dtype, scale, out->dtype,
    gemmepi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD), first, &sums->first);
 first->out_stride = out->length;
 status =
  gemmepi__build_sum(context, along_rows, items, x_dtype, scale, GEMMEPI_F64, 0, first, &sums->first);
 return status ? status : gemmepi__build_sum_of_lines(context, problem, groups, lines, sums);
}

/* Divides the rows of an item so that there are some four blocks for each multiprocessor, of at least 512 rows
 each: fewer are not worth the second launch. */
static void gemmepi__choose_parts(const gemmepi_context *context, int64_t items,
    gemmepi__reduce_params *params) {
 int64_t tiles = gemmepi__divide_up(params->columns, GEMMEPI__SUM_COLUMNS);
 int64_t there = gemmepi__times(tiles, items);
 int64_t wanted = gemmepi__divide_up(4 * (int64_t)context->multiprocessors, there ? there : 1);
 int64_t most = gemmepi__divide_up(params->rows, 64 * GEMMEPI__SUM_ROWS);
 params->parts = wanted < most ? wanted : most;
 if (params->parts < 1)
  params->parts = 1;
 params->part_rows = gemmepi__divide_up(params->rows, params->parts);
}

static gemmepi__kernel_matrix gemmepi__kernel_matrix_of(const gemmepi__view *view) {
 gemmepi__kernel_matrix matrix;
 matrix.data = NULL;
 matrix.ld = view->ld;
 matrix.stride = view->batch_stride;
 return matrix;
}

/* row_tiles: of the epilogue that leaves [batch][row_tiles] lines of sums, where BGRAD is asked for */
static gemmepi_status gemmepi__build_sums(gemmepi_context *context, const gemmepi__problem *problem,
    int64_t row_tiles, gemmepi__sums *sums) {
 gemmepi__reduce_params *params = &sums->first_params;
 int shared = problem->views[GEMMEPI__BIAS_GRAD].batch_stride == 0;
 int64_t groups = shared ? 1 : problem->batch;
 const gemmepi__view *view;
 int along_rows;
 params->parts = 1;
 if (gemmepi__has(problem, GEMMEPI_BGRAD)) {
  sums->operand = GEMMEPI__AUX;
  params->rows = gemmepi__times(row_tiles, shared ? problem->batch : 1);
  params->columns = params->x.ld = problem->views[GEMMEPI__BIAS_GRAD].length;
  params->x.stride = gemmepi__times(params->rows, params->columns);
  gemmepi__choose_parts(context, groups, params);
  return gemmepi__build_sums_of(context, problem, 0, problem->accumulator, 0, groups, groups, sums);
 }
 sums->operand = gemmepi__has(problem, GEMMEPI_BGRAD_A) ? GEMMEPI__A : GEMMEPI__B;
 view = &problem->views[sums->operand];
 along_rows = (sums->operand == GEMMEPI__A) != (view->transposed != 0);
 params->x = gemmepi__kernel_matrix_of(view);
 params->scale.stride = problem->views[GEMMEPI__SCALE_OF(sums->operand)].batch_stride;
 params->rows = view->lines;
 params->columns = view->length;
 if (!along_rows)
  gemmepi__choose_parts(context, problem->batch, params);
 return gemmepi__build_sums_of(context, problem, along_rows, view->dtype, view->scale, problem->batch,
    groups, sums);
}

/* Of BGRAD's lines of sums in the accumulator's type, row_tiles for each item. */
static size_t gemmepi__line_bytes(const gemmepi__problem *problem, unsigned row_tiles) {
 if (!gemmepi__has(problem, GEMMEPI_BGRAD))
  return 0;
 return gemmepi__bytes_for(
  gemmepi__times(gemmepi__times(problem->batch, row_tiles), problem->views[GEMMEPI__BIAS_GRAD].length),
  gemmepi__dtype((gemmepi_dtype)problem->accumulator)->size);
}

/* To read an operand once more for its sums, at 2 TB/s: so much cuBLASLt's epilogue takes on an H200, where linear/plan.h says. */
static double gemmepi__operand_sum_microseconds(const gemmepi__problem *problem) {
 int operand = gemmepi__has(problem, GEMMEPI_BGRAD_A) ? GEMMEPI__A : GEMMEPI__B;
 const gemmepi__view *view = &problem->views[operand];
 if (!gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
  return 0;
 return (double)view->lines * (double)view->length * (double)problem->batch * view->bits / 8 / 2e6;
}

/* Microseconds of a launch more, though it overlaps: behind a fused product 1.4 to 2.7 on an H200. */
#define GEMMEPI__SUM_LAUNCH 2

static double gemmepi__sums_microseconds(const gemmepi__problem *problem) {
 return gemmepi__has(problem, GEMMEPI__ANY_BGRAD)
    ? GEMMEPI__SUM_LAUNCH + gemmepi__operand_sum_microseconds(problem)
    : 0;
}

/* left: the partial sums of an epilogue; between: workspace of sums->partial_bytes */
static gemmepi_status gemmepi__run_sums(const gemmepi_context *context, const gemmepi__sums *sums,
    const gemmepi__arguments *arguments, void *left, void *between,
    gemmepi_stream stream) {
 static const char what[] = "the sums of bias_grad";
 gemmepi__reduce_params params = sums->first_params;
 void *bias_grad = arguments->pointers[GEMMEPI__BIAS_GRAD];
 gemmepi_status status = GEMMEPI_OK;
 params.x.data = left;
 if (sums->operand != GEMMEPI__AUX) {
  params.x.data = arguments->pointers[sums->operand];
  params.scale.data = (const float *)arguments->pointers[GEMMEPI__SCALE_OF(sums->operand)];
 }
 params.out = sums->second.function ? between : bias_grad;
 if (sums->first.function)
  status = gemmepi__launch_kernel(context, &sums->first, &params, what, stream);
 if (status || !sums->second.function)
  return status;
 params = sums->second_params;
 params.x.data = between;
 params.out = bias_grad;
 return gemmepi__launch_kernel(context, &sums->second, &params, what, stream);
}

/* >>in words */

static void gemmepi__explain_sums(gemmepi__text *text, const gemmepi__sums *sums) {
 if (sums->first.function)
  gemmepi__append(text, "  bias_grad: %d more launch%s, sums in a fixed order\n",
    sums->second.function ? 2 : 1, sums->second.function ? "es" : "");
}
/* The common epilogue (kernels/epilogue.cuh) as the host sees it, and the pass that runs it over a finished product. */

#define GEMMEPI__PASS_THREADS    256 /* pass.cu */
#define GEMMEPI__PASS_BLOCKS     3 /* that a multiprocessor holds, as a rule */
#define GEMMEPI__PASS_MOST_STEPS 64 /* rows that a thread adds up in the accumulator's type */
#define GEMMEPI__RUN             8 /* types.cuh: columns of one thread */

/* >>the epilogue of any kernel of ours */

static const char *gemmepi__type_name(const gemmepi__problem *problem, int operand) {
 int dtype = problem->views[operand].dtype;
 return gemmepi__dtype((gemmepi_dtype)(dtype ? dtype : problem->accumulator))->name;
}

/* The bits of the epilogue that epilogue.cuh knows; sums of operands are none of its. */
#define GEMMEPI__KERNEL_EPILOGUE \
 (GEMMEPI_ACTIVATION_MASK | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL | \
  GEMMEPI_BGRAD | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_UPSTREAM)

/* Whether the short form of the activation is off by more than a few units of F32: a product's bound leaves no room for
 that. The derivatives' are not. */
static int gemmepi__is_approximate(const gemmepi__problem *problem) {
 int differentiates = gemmepi__has(problem, GEMMEPI_BACKWARD) && !gemmepi__has(problem, GEMMEPI_GATED);
 return !differentiates && gemmepi__activation_has(problem->epilogue, GEMMEPI__SHORT_IS_COARSE);
}

/* From so many rows on the errors of short forms are lost in a sum over them, if the rows differ: for |v| < 5 they are some 5
 units of F32 in the square mean, and one in the mean, where a sum's bound has room for 4. */
#define GEMMEPI__SHORT_SUM_ROWS 64

/* Whether short forms of the activation would be seen: in results of more than 16 bits, in amax, in what a residual leaves
 where it cancels the activation, and in sums of few values. */
static int gemmepi__wants_exact(const gemmepi__problem *problem) {
 return gemmepi__is_approximate(problem) || problem->views[GEMMEPI__D].bits > 16 ||
   gemmepi__has(problem, GEMMEPI_RESIDUAL) || gemmepi__has_operand(problem, GEMMEPI__AMAX_D) ||
   (gemmepi__has(problem, GEMMEPI_BGRAD) && problem->m < GEMMEPI__SHORT_SUM_ROWS);
}

/* From this k on a product's bound has more than twice the room that GELU_ERF's form of long sums takes: that is off by 2^-18.2 of v,
 and 1.13 (4 + k/8) 2^-24 of v is the least that the bound leaves. Whole numbers' sums are exact, and their bound knows no k. */
#define GEMMEPI__LONG_SUM 768
static int gemmepi__has_long_sums(const gemmepi__problem *problem) {
 return gemmepi__activation_has(problem->epilogue, GEMMEPI__HAS_FORM_OF_LONG_SUMS) &&
   !gemmepi__has(problem, GEMMEPI_BACKWARD) && problem->k >= GEMMEPI__LONG_SUM &&
   problem->common != GEMMEPI_I8 && !gemmepi__wants_exact(problem);
}

/* Whether RELU's mask, whose lines are of whole units of 16 bytes, begins at a multiple of as many. */
static int gemmepi__mask_is_aligned(const gemmepi__problem *problem) {
 const gemmepi__view *aux = &problem->views[GEMMEPI__AUX];
 return gemmepi__has_operand(problem, GEMMEPI__AUX) && aux->bits == 1 && aux->alignment % 16 == 0;
}

/* What a kernel's name says of D and the epilogue: "_to_F32_SILU_BIAS", "_BIAS" where D has the type that was named. */
static const char *gemmepi__name_of_epilogue(const gemmepi__problem *problem, int named, char data[160]) {
 gemmepi__text text = gemmepi__text_in(data, 160);
 const char *type = gemmepi__type_name(problem, GEMMEPI__D);
 if (strcmp(type, gemmepi__dtype((gemmepi_dtype)named)->name) != 0)
  gemmepi__append(&text, "_to_%s", type);
 gemmepi__append_epilogue_words(&text, problem->epilogue & GEMMEPI__KERNEL_EPILOGUE);
 return data;
}

/* The defines that make an epilogue of epilogue.cuh. scale_a, scale_b: the modes that it must know of. */
static void gemmepi__append_epilogue_defines(gemmepi__text *text, const gemmepi__problem *problem,
    int aligned, int scale_a, int scale_b) {
 const gemmepi__view *views = problem->views;
 int scales = (views[GEMMEPI__C].scale ? 1 : 0) | (views[GEMMEPI__D].scale ? 2 : 0) |
    (views[GEMMEPI__AUX].scale ? 4 : 0) | (views[GEMMEPI__RESIDUAL].scale ? 8 : 0);
 int amax = gemmepi__has_operand(problem, GEMMEPI__AMAX_D) |
    gemmepi__has_operand(problem, GEMMEPI__AMAX_AUX) << 1;
 gemmepi__append(text, "#define GEMMEPI_EPILOGUE 0x%x\n",
    (unsigned)(problem->epilogue & GEMMEPI__KERNEL_EPILOGUE));
 gemmepi__append(text, "#define GEMMEPI_ACC %s\n",
    gemmepi__dtype((gemmepi_dtype)problem->accumulator)->name);
 gemmepi__append(text, "#define GEMMEPI_C_TYPE %s\n", gemmepi__type_name(problem, GEMMEPI__C));
 gemmepi__append(text, "#define GEMMEPI_D_TYPE %s\n", gemmepi__type_name(problem, GEMMEPI__D));
 gemmepi__append(text, "#define GEMMEPI_BIAS_TYPE %s\n", gemmepi__type_name(problem, GEMMEPI__BIAS));
 gemmepi__append(text, "#define GEMMEPI_AUX_TYPE %s\n", gemmepi__type_name(problem, GEMMEPI__AUX));
 gemmepi__append(text, "#define GEMMEPI_RESIDUAL_TYPE %s\n",
    gemmepi__type_name(problem, GEMMEPI__RESIDUAL));
 gemmepi__append(text, "#define GEMMEPI_SCALE_A %d\n#define GEMMEPI_SCALE_B %d\n", scale_a, scale_b);
 gemmepi__append(text, "#define GEMMEPI_SCALES %d\n#define GEMMEPI_AMAX %d\n", scales, amax);
 gemmepi__append(text, "#define GEMMEPI_ALIGNED %d\n", aligned);
 gemmepi__append(text, "#define GEMMEPI_EXACT %d\n", gemmepi__wants_exact(problem));
 if (gemmepi__has_long_sums(problem))
  gemmepi__append(text, "#define GEMMEPI_LONG_SUMS 1\n");
 gemmepi__append(text, "#define GEMMEPI_STORES_D %d\n", !(problem->flags & GEMMEPI__ONLY_SUMS));
 if (gemmepi__mask_is_aligned(problem))
  gemmepi__append(text, "#define GEMMEPI_MASK_WORDS 1\n");
}

/* Whether runs of eight along the lines of a view may be loaded whole: a run of bf16 is 16 bytes, of fp8 8, and more
 are loaded 16 at a time. */
static int gemmepi__runs_are_aligned(const gemmepi__problem *problem, const gemmepi__view *view) {
 int64_t unit = view->bits < 16 ? view->bits : 16, line = view->ld * view->bits / 8;
 int64_t item = view->batch_stride * view->bits / 8;
 return view->alignment % unit == 0 && (view->lines <= 1 || line % unit == 0) &&
   (problem->batch <= 1 || item % unit == 0);
}

/* Whether that holds for every tensor that the epilogue reads or writes. */
static int gemmepi__epilogue_is_aligned(const gemmepi__problem *problem) {
 int operand;
 if (gemmepi__has(problem, GEMMEPI_GATED) && gemmepi__half_columns(problem) % GEMMEPI__RUN)
  return 0; /* the second halves begin between runs */
 for (operand = GEMMEPI__C; operand <= GEMMEPI__BIAS; operand++)
  if (gemmepi__has_operand(problem, operand) && problem->views[operand].bits != 1 &&
   !gemmepi__runs_are_aligned(problem, &problem->views[operand]))
   return 0;
 return 1;
}

static gemmepi__kernel_scale gemmepi__kernel_scale_of(const gemmepi__problem *problem, int operand) {
 gemmepi__kernel_scale scale;
 scale.data = NULL;
 scale.stride = problem->views[GEMMEPI__SCALE_OF(operand)].batch_stride;
 return scale;
}

/* All but pointers, scalars and tiles. */
static void gemmepi__fill_epilogue(const gemmepi__problem *problem, gemmepi__epilogue_params *params) {
 const gemmepi__view *views = problem->views;
 params->c = gemmepi__kernel_matrix_of(&views[GEMMEPI__C]);
 params->d = gemmepi__kernel_matrix_of(&views[GEMMEPI__D]);
 params->bias = gemmepi__kernel_matrix_of(&views[GEMMEPI__BIAS]);
 params->aux = gemmepi__kernel_matrix_of(&views[GEMMEPI__AUX]);
 params->residual = gemmepi__kernel_matrix_of(&views[GEMMEPI__RESIDUAL]);
 params->scale_a = gemmepi__kernel_scale_of(problem, GEMMEPI__A);
 params->scale_b = gemmepi__kernel_scale_of(problem, GEMMEPI__B);
 params->scale_c = gemmepi__kernel_scale_of(problem, GEMMEPI__C);
 params->scale_d = gemmepi__kernel_scale_of(problem, GEMMEPI__D);
 params->scale_aux = gemmepi__kernel_scale_of(problem, GEMMEPI__AUX);
 params->scale_residual = gemmepi__kernel_scale_of(problem, GEMMEPI__RESIDUAL);
 params->parameter = problem->parameter;
 params->m = problem->m;
 params->n = gemmepi__half_columns(problem);
}

/* A kernel that has a block for each tile of the product, of both halves where it has them. GEMMEPI_UNSUPPORTED with the sentence where
 there are too many. */
static gemmepi_status gemmepi__lay_out_tiles(const gemmepi__problem *problem, int tile_m, int tile_n,
    int threads, gemmepi__launch *launch,
    gemmepi__plain_params *params) {
 int64_t rows = gemmepi__divide_up(problem->m, tile_m), columns = gemmepi__divide_up(problem->n, tile_n);
 int64_t tiles = gemmepi__offset(gemmepi__offset(columns, rows, 0), problem->batch, 0);
 if (tiles <= 0 || tiles > INT_MAX)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
 launch->blocks = (unsigned)tiles;
 launch->threads_x = (unsigned)threads;
 launch->threads_y = 1;
 gemmepi__fill_epilogue(problem, &params->epilogue);
 params->epilogue.row_tiles = (unsigned)rows;
 params->epilogue.column_tiles = (unsigned)columns;
 params->a = gemmepi__kernel_matrix_of(&problem->views[GEMMEPI__A]);
 params->b = gemmepi__kernel_matrix_of(&problem->views[GEMMEPI__B]);
 params->k = problem->k;
 return GEMMEPI_OK;
}

/* The pointers and scalars of a run. applied: the product has taken alpha, beta and C already. */
static void gemmepi__point_epilogue(const gemmepi__arguments *arguments, int applied, void *partials,
    gemmepi__epilogue_params *params) {
 void *const *pointers = arguments->pointers;
 params->c.data = pointers[GEMMEPI__C];
 params->d.data = pointers[GEMMEPI__D];
 params->bias.data = pointers[GEMMEPI__BIAS];
 params->aux.data = pointers[GEMMEPI__AUX];
 params->residual.data = pointers[GEMMEPI__RESIDUAL];
 params->scale_a.data = (const float *)pointers[GEMMEPI__SCALE_A];
 params->scale_b.data = (const float *)pointers[GEMMEPI__SCALE_B];
 params->scale_c.data = (const float *)pointers[GEMMEPI__SCALE_C];
 params->scale_d.data = (const float *)pointers[GEMMEPI__SCALE_D];
 params->scale_aux.data = (const float *)pointers[GEMMEPI__SCALE_AUX];
 params->scale_residual.data = (const float *)pointers[GEMMEPI__SCALE_RESIDUAL];
 params->amax_d = pointers[GEMMEPI__AMAX_D];
 params->amax_aux = pointers[GEMMEPI__AMAX_AUX];
 params->partials = partials;
 params->alpha = applied ? 1 : arguments->alpha;
 params->beta = applied ? 0 : arguments->beta;
 params->uses_c = arguments->uses_c && !applied;
 memcpy(&params->device_alpha, &arguments->device_alpha, sizeof(void *));
 memcpy(&params->device_beta, &arguments->device_beta, sizeof(void *));
}

static int gemmepi__amax_count(const gemmepi__problem *problem) {
 return gemmepi__has_operand(problem, GEMMEPI__AMAX_D) + gemmepi__has_operand(problem, GEMMEPI__AMAX_AUX);
}

/* amax starts at 0: kernels raise it. */
static gemmepi_status gemmepi__clear_amax(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__arguments *arguments, gemmepi_stream stream) {
 int operand, result = 0;
 for (operand = GEMMEPI__AMAX_D; operand <= GEMMEPI__AMAX_AUX && !result; operand++)
  if (gemmepi__has_operand(problem, operand))
   result = context->driver.memset_d8_async(
    (gemmepi__cu_deviceptr)(uintptr_t)arguments->pointers[operand], 0,
    (size_t)problem->views[operand].bytes, (gemmepi__cu_stream)stream);
 return result ? gemmepi__cuda_failed(&context->driver, result, "clearing amax") : GEMMEPI_OK;
}

/* >>the pass */

/* The product, in the type of its sums, as it lies in workspace. Runs of eight start at multiples of 16 bytes, but for narrow
 results, which would grow too much. */
static gemmepi__view gemmepi__product_in_workspace(const gemmepi__problem *problem, int sums) {
 gemmepi__view view = problem->views[GEMMEPI__D];
 view.dtype = sums;
 view.bits = sums == GEMMEPI_F64 ? 64 : 32;
 view.alignment = 256;
 view.scale = 0;
 view.lines = problem->m;
 view.length = problem->n;
 view.ld = problem->n < 8 ? problem->n : (problem->n + 7) / 8 * 8;
 view.batch_stride = problem->m * view.ld;
 return view;
}

/* The product alone, into workspace. */
static gemmepi__problem gemmepi__bare_problem(const gemmepi__problem *problem) {
 gemmepi__problem bare = *problem;
 int operand;
 for (operand = GEMMEPI__C; operand < GEMMEPI__OPERANDS; operand++)
  if (operand != GEMMEPI__SCALE_A && operand != GEMMEPI__SCALE_B)
   memset(&bare.views[operand], 0, sizeof bare.views[operand]);
 bare.views[GEMMEPI__D] = gemmepi__product_in_workspace(problem, problem->accumulator);
 bare.epilogue = GEMMEPI_NONE;
 bare.flags &= ~(GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX | GEMMEPI__ONLY_SUMS);
 return bare;
}

typedef struct gemmepi__pass {
 gemmepi__launch launch;
 int applied; /* the product has taken alpha, beta and C already */
 gemmepi__pass_params params; /* all but pointers and scalars */
 size_t partial_bytes;
} gemmepi__pass;

/* The rows of a thread: four, or fewer where blocks would be fewer than two for each multiprocessor. With BGRAD, where each
 block leaves partial sums, as many as it takes to have all blocks run at once, up to a bound. */
static int gemmepi__pass_steps(const gemmepi_context *context, const gemmepi__problem *problem,
    int64_t column_tiles, unsigned threads_y) {
 int64_t columns = gemmepi__times(column_tiles, problem->batch), steps = 4;
 if (gemmepi__has(problem, GEMMEPI_BGRAD)) {
  int64_t tiles = GEMMEPI__PASS_BLOCKS * (int64_t)context->multiprocessors / columns;
  steps = gemmepi__divide_up(problem->m, threads_y * (tiles ? tiles : 1));
  return steps < GEMMEPI__PASS_MOST_STEPS ? (int)steps : GEMMEPI__PASS_MOST_STEPS;
 }
 while (steps > 1 && gemmepi__times(columns, gemmepi__divide_up(problem->m, threads_y * steps)) <
    2 * (int64_t)context->multiprocessors)
  steps /= 2;
 return (int)steps;
}

/* The rows of a block. Fewer where not every multiprocessor would get one: what is launched behind the pass begins beside it, and
 would have two blocks where the pass has none. Sums and largest magnitudes of a block are of all its threads. */
static unsigned gemmepi__pass_rows(const gemmepi_context *context, const gemmepi__problem *problem,
    int64_t column_tiles, unsigned threads_x) {
 unsigned rows = GEMMEPI__PASS_THREADS / threads_x;
 int64_t tiles;
 if (gemmepi__has(problem, GEMMEPI_BGRAD) || (problem->flags & (GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX)))
  return rows;
 for (; threads_x * rows > 32; rows /= 2) {
  tiles = gemmepi__offset(column_tiles, gemmepi__divide_up(problem->m, rows), 0);
  tiles = gemmepi__offset(tiles, problem->batch, 0);
  if (tiles < 0 || tiles >= context->multiprocessors)
   break;
 }
 return rows;
}

static gemmepi_status gemmepi__shape_pass(const gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__pass *pass) {
 int64_t chunks = gemmepi__divide_up(gemmepi__half_columns(problem), GEMMEPI__RUN), column_tiles,
   row_tiles, tiles;
 unsigned threads_x = 1, threads_y;
 int steps;
 while (threads_x < 32 && (int64_t)threads_x < chunks)
  threads_x *= 2;
 column_tiles = gemmepi__divide_up(chunks, (int64_t)threads_x);
 threads_y = gemmepi__pass_rows(context, problem, column_tiles, threads_x);
 steps = gemmepi__pass_steps(context, problem, column_tiles, threads_y);
 for (;; steps *= 2) { /* a grid has only so many blocks */
  row_tiles = gemmepi__divide_up(problem->m, (int64_t)threads_y * steps);
  tiles = gemmepi__offset(gemmepi__offset(column_tiles, row_tiles, 0), problem->batch, 0);
  if (tiles > 0 && tiles <= INT_MAX)
   break;
  if (steps > INT_MAX / 4)
   return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
 }
 pass->params.row_steps = steps;
 pass->params.epilogue.row_tiles = (unsigned)row_tiles;
 pass->params.epilogue.column_tiles = (unsigned)column_tiles;
 pass->launch.blocks = (unsigned)tiles;
 pass->launch.threads_x = threads_x;
 pass->launch.threads_y = threads_y;
 return GEMMEPI_OK;
}

static void gemmepi__append_pass_defines(gemmepi__text *text, const gemmepi__problem *problem, int parts,
    int applied) {
 int whole = gemmepi__half_columns(problem) % GEMMEPI__RUN == 0;
 gemmepi__append(text, "#define GEMMEPI_HAS_PRODUCT %d\n#define GEMMEPI_PARTS %d\n", problem->k != 0,
    parts);
 gemmepi__append(text, "#define GEMMEPI_APPLIED %d\n#define GEMMEPI_WHOLE %d\n", applied, whole);
}

/* product: where and in what type the finished product lies, in so many parts of each item that the pass adds up; applied: it
 has taken alpha, beta and C already */
static gemmepi_status gemmepi__build_pass(gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__view *product, int parts, int applied,
    gemmepi__pass *pass) {
 char prologue[1024], words[160];
 gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
 int aligned = gemmepi__epilogue_is_aligned(problem) && gemmepi__runs_are_aligned(problem, product);
 int scale_a = problem->views[GEMMEPI__A].scale, scale_b = problem->views[GEMMEPI__B].scale;
 gemmepi_status status = gemmepi__shape_pass(context, problem, pass);
 if (status)
  return status;
 pass->applied = applied;
 gemmepi__fill_epilogue(problem, &pass->params.epilogue);
 pass->params.product = gemmepi__kernel_matrix_of(product);
 pass->params.part = pass->params.product.stride;
 pass->params.product.stride *= parts;
 pass->partial_bytes = gemmepi__line_bytes(problem, pass->params.epilogue.row_tiles);
 /* the product has taken scales that change along k */
 gemmepi__append_epilogue_defines(&text, problem, aligned, scale_a > GEMMEPI_SCALE_OUTER ? 0 : scale_a,
    scale_b > GEMMEPI_SCALE_OUTER ? 0 : scale_b);
 gemmepi__append(&text, "#define GEMMEPI_PRODUCT_TYPE %s\n",
    gemmepi__dtype((gemmepi_dtype)product->dtype)->name);
 gemmepi__append_pass_defines(&text, problem, parts, applied);
 gemmepi__name_kernel(&pass->launch, "gemmepi_pass_%s%s",
    gemmepi__dtype((gemmepi_dtype)product->dtype)->name,
    gemmepi__name_of_epilogue(problem, product->dtype, words));
 return gemmepi__get_waiting_kernel(context, "pass.cu", prologue, "gemmepi_pass", &pass->launch);
}

/* It reads the product in F32 and moves what else the epilogue has, at 4.1 TB/s; a second launch takes 3 us. */
static double gemmepi__pass_microseconds(const gemmepi__problem *problem, int parts) {
 double bytes = (double)problem->m * (double)problem->n * 8 * parts; /* the product, written and read */
 int operand;
 for (operand = GEMMEPI__D; operand <= GEMMEPI__RESIDUAL; operand++)
  if (gemmepi__has_operand(problem, operand))
   bytes += (double)problem->m * (double)problem->views[operand].length *
    problem->views[operand].bits / 8;
 return 3 + bytes * (double)problem->batch / 4.1e6 + gemmepi__sums_microseconds(problem);
}

static gemmepi_status gemmepi__run_pass(const gemmepi_context *context, const gemmepi__pass *pass,
    const gemmepi__arguments *arguments, void *product, void *partials,
    gemmepi_stream stream) {
 gemmepi__pass_params params = pass->params;
 gemmepi__point_epilogue(arguments, pass->applied, partials, &params.epilogue);
 params.product.data = product;
 return gemmepi__launch_kernel(context, &pass->launch, &params, "the epilogue", stream);
}

/* >>in words */

/* before: what it does before the epilogue */
static void gemmepi__explain_pass(gemmepi__text *text, const gemmepi__launch *pass, const char *before) {
 if (pass->function)
  gemmepi__append(text, "  %s: %sthe epilogue, %u blocks of %u x %u threads\n", pass->name, before,
    pass->blocks, pass->threads_x, pass->threads_y);
}
/* Operands copied: converted without loss to a type that cuBLASLt multiplies in every layout, or packed or
 transposed for our kernels. */

#define GEMMEPI__CONVERT_THREADS 256 /* convert.cu, pack.cu, transpose.cu */
#define GEMMEPI__TRANSPOSE_TILE  64

typedef struct gemmepi__convert {
 gemmepi__launch launch; /* no function: the operand stays as it is */
 gemmepi__convert_params params;
 size_t bytes; /* of the converted operand, in workspace */
} gemmepi__convert;

static int64_t gemmepi__converted_ld(const gemmepi__view *view) {
 return gemmepi__divide_up(view->length, GEMMEPI__RUN) * GEMMEPI__RUN;
}

/* The operand as it will lie in workspace: dense, its lines rounded up to runs of eight. Where its items overlap it may have
 more bytes than can be counted: INT64_MAX. */
static gemmepi__view gemmepi__converted_view(const gemmepi__view *view, int64_t batch, int dtype) {
 gemmepi__view converted = *view;
 int64_t items = view->batch_stride ? batch : 1;
 converted.dtype = dtype;
 converted.bits = (int32_t)(8 * gemmepi__dtype((gemmepi_dtype)dtype)->size);
 converted.alignment = 256;
 converted.scale = 0;
 converted.ld = gemmepi__converted_ld(view);
 converted.batch_stride = view->batch_stride ? gemmepi__times(converted.ld, view->lines) : 0;
 converted.bytes = gemmepi__offset(items, gemmepi__offset(view->lines, converted.ld, 0), 0);
 converted.bytes = converted.bytes < 0 ? INT64_MAX : converted.bytes * converted.bits / 8;
 return converted;
}

/* Likewise, with lines along the other axis. */
static gemmepi__view gemmepi__transposed_view(const gemmepi__view *view, int64_t batch) {
 gemmepi__view turned = *view;
 turned.lines = view->length;
 turned.length = view->lines;
 turned.transposed = !view->transposed;
 return gemmepi__converted_view(&turned, batch, view->dtype);
}

/* The copy of an operand as `view`; its kernel has so many blocks. */
static gemmepi_status gemmepi__lay_out_copy(const gemmepi__problem *problem, int operand,
    const gemmepi__view *view, int64_t blocks,
    gemmepi__convert *convert) {
 const gemmepi__view *from = &problem->views[operand];
 int64_t size = view->bits / 8;
 if (view->bytes / size / 16 >
  from->bytes + 4096) /* items overlap: they would be written out one by one */
  return gemmepi__fail(GEMMEPI_UNSUPPORTED,
    "an operand's items overlap, and converted they would be far larger");
 convert->bytes = gemmepi__bytes_for(view->bytes, 1);
 convert->params.x = gemmepi__kernel_matrix_of(from);
 convert->params.out = gemmepi__kernel_matrix_of(view);
 convert->params.rows = from->lines;
 convert->params.columns = from->length;
 convert->params.items = from->batch_stride ? problem->batch : 1;
 if (blocks < 0 || blocks > INT_MAX)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "an operand has more tiles than a grid has blocks");
 convert->launch.blocks = (unsigned)blocks;
 convert->launch.threads_x = GEMMEPI__CONVERT_THREADS;
 convert->launch.threads_y = 1;
 return GEMMEPI_OK;
}

/* By kernels of which a thread copies a run. */
static gemmepi_status gemmepi__lay_out_convert(const gemmepi__problem *problem, int operand, int dtype,
    gemmepi__view *view, gemmepi__convert *convert) {
 *view = gemmepi__converted_view(&problem->views[operand], problem->batch, dtype);
 return gemmepi__lay_out_copy(
  problem, operand, view,
  gemmepi__divide_up(view->bytes / (view->bits / 8) / GEMMEPI__RUN, GEMMEPI__CONVERT_THREADS), convert);
}

/* To the type that the problem's operands have in common. *view is that of the converted operand. */
static gemmepi_status gemmepi__build_convert(gemmepi_context *context, const gemmepi__problem *problem,
    int operand, gemmepi__view *view, gemmepi__convert *convert) {
 const gemmepi__view *from = &problem->views[operand];
 gemmepi_status status = gemmepi__lay_out_convert(problem, operand, problem->common, view, convert);
 char prologue[256];
 gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
 if (status)
  return status;
 gemmepi__append(&text, "#define GEMMEPI_X_TYPE %s\n", gemmepi__dtype((gemmepi_dtype)from->dtype)->name);
 gemmepi__append(&text, "#define GEMMEPI_OUT_TYPE %s\n", gemmepi__dtype((gemmepi_dtype)view->dtype)->name);
 gemmepi__append(&text, "#define GEMMEPI_ALIGNED %d\n", gemmepi__runs_are_aligned(problem, from));
 gemmepi__name_kernel(&convert->launch, "gemmepi_convert_%s_to_%s",
    gemmepi__dtype((gemmepi_dtype)from->dtype)->name,
    gemmepi__dtype((gemmepi_dtype)view->dtype)->name);
 return gemmepi__get_waiting_kernel(context, "convert.cu", prologue, "gemmepi_convert", &convert->launch);
}

static void gemmepi__pack_prologue(char *data, size_t size) {
 gemmepi__text text = gemmepi__text_in(data, size);
 gemmepi__append(&text, "#define GEMMEPI_THREADS %d\n", GEMMEPI__CONVERT_THREADS);
}

/* As it is, but for where its lines begin. */
static gemmepi_status gemmepi__build_pack(gemmepi_context *context, const gemmepi__problem *problem,
    int operand, gemmepi__convert *pack) {
 char prologue[64];
 gemmepi__view view;
 gemmepi_status status;
 if (problem->views[operand].bits != 16) /* words are loaded one by one as fast as they can be */
  return gemmepi__build_convert(context, problem, operand, &view, pack);
 status = gemmepi__lay_out_convert(problem, operand, problem->views[operand].dtype, &view, pack);
 gemmepi__pack_prologue(prologue, sizeof prologue);
 return status ? status
    : gemmepi__get_waiting_kernel(context, "pack.cu", prologue, "gemmepi_pack", &pack->launch);
}

static void gemmepi__transpose_prologue(char *data, size_t size) {
 gemmepi__text text = gemmepi__text_in(data, size);
 gemmepi__append(&text, "#define GEMMEPI_TILE %d\n#define GEMMEPI_THREADS %d\n", GEMMEPI__TRANSPOSE_TILE,
    GEMMEPI__CONVERT_THREADS);
}

/* Of 32-bit elements, with lines along the other axis. */
static gemmepi_status gemmepi__build_transpose(gemmepi_context *context, const gemmepi__problem *problem,
    int operand, gemmepi__convert *pack) {
 const gemmepi__view *from = &problem->views[operand];
 gemmepi__view view = gemmepi__transposed_view(from, problem->batch);
 int64_t blocks = gemmepi__offset(gemmepi__divide_up(from->lines, GEMMEPI__TRANSPOSE_TILE),
    gemmepi__divide_up(from->length, GEMMEPI__TRANSPOSE_TILE), 0);
 char prologue[64];
 gemmepi_status status;
 if (blocks >= 0 && from->batch_stride)
  blocks = gemmepi__offset(blocks, problem->batch, 0);
 status = gemmepi__lay_out_copy(problem, operand, &view, blocks, pack);
 gemmepi__transpose_prologue(prologue, sizeof prologue);
 return status ? status
    : gemmepi__get_waiting_kernel(context, "transpose.cu", prologue, "gemmepi_transpose",
    &pack->launch);
}

static gemmepi_status gemmepi__run_convert(const gemmepi_context *context, const gemmepi__convert *convert,
    void *from, void *to, gemmepi_stream stream) {
 gemmepi__convert_params params = convert->params;
 params.x.data = from;
 params.out.data = to;
 return gemmepi__launch_kernel(context, &convert->launch, &params, "a copy of an operand", stream);
}
/* A way to run a product, as a value: what is enumerated, compared, built and, in words, explained. */

/* How an operand is copied to workspace first. */
enum {
 GEMMEPI__AS_IT_LIES,
 GEMMEPI__IN_UNITS, /* into lines that begin at multiples of 16 bytes */
 GEMMEPI__SIDE_BY_SIDE /* into such that lie along k */
};

typedef struct gemmepi__candidate {
 gemmepi_route route;
 int engine; /* of FUSED: a row of gemmepi__engines, or ANY_ENGINE of a refusal for all */
 int shape; /* of the engine: a row of its shapes */
 int parts; /* of the engine: k in so many, whose sums are added up by a pass */
 int applied; /* of FUSED: for runs alone whose alpha is 1 and which have no C */
 int copies[2]; /* of FUSED: of A and B */
 int bare; /* of SPLIT: without an epilogue of cuBLASLt's */
 double microseconds; /* an estimate; 0: not known */
 double rank; /* what is compared: mostly the estimate */
 const char *refusal; /* why it cannot run the problem, or NULL */
} gemmepi__candidate;

#define GEMMEPI__ANY_ENGINE      (-1)
#define GEMMEPI__NEVER           1e300 /* microseconds */
#define GEMMEPI__MOST_CANDIDATES 12 /* FUSED has engines times three ways to copy the operands */

typedef struct gemmepi__candidates {
 int count;
 gemmepi__candidate list[GEMMEPI__MOST_CANDIDATES];
} gemmepi__candidates;

static gemmepi__candidate *gemmepi__add_candidate(gemmepi__candidates *candidates, gemmepi_route route) {
 gemmepi__candidate *added = &candidates->list[candidates->count++];
 memset(added, 0, sizeof *added);
 added->route = route;
 return added;
}

/* Of those that are not refused, the first of the least rank; NULL where there is none. */
static const gemmepi__candidate *gemmepi__least(const gemmepi__candidates *candidates) {
 const gemmepi__candidate *least = NULL;
 int i;
 for (i = 0; i < candidates->count; i++)
  if (!candidates->list[i].refusal && (!least || candidates->list[i].rank < least->rank))
   least = &candidates->list[i];
 return least;
}

/* The route's candidate of the least rank; where all are refused the first of them, NULL where there is none. */
static const gemmepi__candidate *gemmepi__least_of_route(const gemmepi__candidates *candidates,
    gemmepi_route route) {
 const gemmepi__candidate *least = NULL;
 int i;
 for (i = 0; i < candidates->count; i++) {
  const gemmepi__candidate *one = &candidates->list[i];
  if (one->route == route && (!least || (!one->refusal && (least->refusal || one->rank < least->rank))))
   least = one;
 }
 return least;
}

/* Nothing of the route is tried any more. */
static void gemmepi__refuse_route(gemmepi__candidates *candidates, gemmepi_route route, const char *refusal) {
 int i;
 for (i = 0; i < candidates->count; i++)
  if (candidates->list[i].route == route && !candidates->list[i].refusal)
   candidates->list[i].refusal = refusal;
}
/* The kernels of our own that have the epilogue inside. To add one: its file, and its row here. */

/* The route fused: product and epilogue of 16-bit or TF32 operands in one kernel of ours, on Hopper. It sums operands for bias_grad as
 they pass; of results it leaves a line of sums for each tile's rows, and where a batch shares the sums of an operand one for each
 item, which another launch adds up. */

/* What the kernels of our own that have the epilogue inside have in common: each is a row of such functions, at its file's end. */

/* What is known of a chip, by its compute capability: limits, and what the models of time count with. To add one: its row, in order. */

typedef struct gemmepi__chip {
 int arch; /* 90 for compute capability 9.0 */
 unsigned most_shared; /* bytes of shared memory that a block may have */
 double
  mma; /* pairs of 16 bits that a multiprocessor multiplies in a cycle and sums in F32, by mma.sync; TF32 half */
 double wgmma; /* likewise by wgmma; 0: it has none */
 double fma; /* pairs of F32, by multiply-adds */
 double megahertz; /* of a multiprocessor at work */
 double
  memory; /* bytes that memory gives in a microsecond: four fifths of what NVIDIA's data sheets say, not measured */
 const char *source; /* of the four rates before */
} gemmepi__chip;

/* Limits are those of the CUDA C++ Programming Guide, compute capabilities. Of 8.8 it says nothing: it is taken for an 8.6. */
static const gemmepi__chip gemmepi__chips[] = {
 {80, 163u << 10, 920, 0, 58, 1700, 1244e3, "nine tenths of what NVIDIA's paper on A100 says"},
 {86, 99u << 10, 230, 0, 115, 1700, 749e3, "nine tenths of what NVIDIA's paper on GA102 says"},
 {87, 163u << 10, 920, 0, 115, 1700, 163e3, "a guess, as 8.0"},
 {88, 99u << 10, 230, 0, 115, 1700, 163e3, "a guess, as 8.6"},
 {89, 99u << 10, 230, 0, 115, 1700, 806e3, "nine tenths of what NVIDIA's paper on Ada says"},
 {90, 227u << 10, 1240, 1740, 115, 1700, 2680e3, "measured on an H200"},
 {100, 227u << 10, 920, 0, 115, 1700, 6400e3, "a guess from NVIDIA's paper on Blackwell"},
 {103, 227u << 10, 920, 0, 115, 1700, 6400e3, "a guess, as 10.0"},
 {110, 227u << 10, 230, 0, 115, 1700, 218e3, "a guess, as 12.0"},
 {120, 99u << 10, 230, 0, 115, 1700, 1433e3, "nine tenths of what NVIDIA's paper on RTX Blackwell says"},
 {121, 99u << 10, 230, 0, 115, 1700, 218e3, "a guess, as 12.0"},
};

/* The chip's row, or that of the nearest older one; of those older than all the first. */
static const gemmepi__chip *gemmepi__chip_of(int arch) {
 const gemmepi__chip *chip = gemmepi__chips + sizeof gemmepi__chips / sizeof *gemmepi__chips - 1;
 while (chip > gemmepi__chips && chip->arch > arch)
  chip--;
 return chip;
}

/* Engines that are left out of the program. What they would take is still known: cuBLASLt's time is estimated by it. */
#ifdef GEMMEPI_NO_SM80
#define GEMMEPI__HAS_SM80 0
#else
#define GEMMEPI__HAS_SM80 1
#endif
#ifdef GEMMEPI_NO_SM90
#define GEMMEPI__HAS_SM90 0
#else
#define GEMMEPI__HAS_SM90 1
#endif

/* What is asked of every engine when it has built. */
typedef struct gemmepi__built_details {
 const gemmepi__launch *launch, *pass; /* the kernel, and the pass behind it, if any */
 const gemmepi__sums *sums;
 int tile_m, tile_n;
 size_t workspace_size;
} gemmepi__built_details;

/* built: the engine's own struct, which build fills. */
typedef struct gemmepi__engine {
 const char *name;
 int is_there;
 /* Of the least estimate of the engines before it: its own must be less than that, so good are the models. */
 double margin;
 /* Why it does not take a problem that gemmepi__engines_rule lets pass, or NULL. */
 const char *(*rule)(const gemmepi_context *context, const gemmepi__problem *problem);
 /* The shape of the least estimate. The rule has been asked; candidate->applied is given. */
 void (*choose)(const gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__candidate *candidate);
 void (*tile)(const gemmepi__candidate *candidate, int *tile_m, int *tile_n);
 /* Builds the candidate as it is. */
 gemmepi_status (*build)(gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__candidate *candidate, void *built);
 void (*describe)(const void *built, gemmepi__built_details *details);
 /* In words, after the kernel's name. */
 void (*explain)(const gemmepi__problem *problem, const void *built, gemmepi__text *text);
 /* The primary context is current. */
 gemmepi_status (*run)(const gemmepi_context *context, const gemmepi__problem *problem, const void *built,
    const gemmepi__arguments *arguments, char *workspace, gemmepi_stream stream);
} gemmepi__engine;

#include <math.h>

#define GEMMEPI__SM90_THREADS 384 /* gemm_sm90.cu */
#define GEMMEPI__SM90_LINE    128 /* bytes of k of a stage */
#define GEMMEPI__SM90_BOX_M   16 /* rows of results that a warp stores at a time, lines of 128 bytes */
#define GEMMEPI__SM90_UNIT_N  64 /* columns of which tiles are made */
#define GEMMEPI__SM90_WARPS   8 /* that store */
#define GEMMEPI__SM90_SUMMERS 3 /* that sum an operand */
#define GEMMEPI__SM90_SHARED  (227u << 10) /* of a block on this chip */
#define GEMMEPI__SM90_PAIR    16 /* bytes of two barriers: of a stage, a warp's buffers, a slot */
#define GEMMEPI__SM90_STAGES  8 /* at most */

/* A way to cut the product up: its kernel is compiled for it. */
typedef struct gemmepi__sm90_shape {
 short tile_m, tile_n; /* of a block */
 short ping_pong; /* its two warpgroups take a tile each in turns, else they share one */
 short cluster_m, cluster_n;
 short split; /* blocks that add up a tile, each a part of k */
 short lean; /* no registers are left for more than BIAS and an activation */
} gemmepi__sm90_shape;

static const gemmepi__sm90_shape gemmepi__sm90_shapes[] = {
 {128, 128, 1, 2, 1, 1, 0}, /* first the one for everything that the rules admit */
 {128, 128, 1, 1, 2, 1, 0}, {128, 192, 1, 1, 2, 1, 1}, {128, 192, 1, 2, 1, 1, 1},
 {128, 256, 0, 2, 1, 1, 0}, {128, 128, 1, 1, 1, 1, 0}, {128, 128, 0, 1, 1, 2, 0},
 {128, 128, 0, 1, 1, 4, 0}, {128, 128, 0, 1, 1, 8, 0}, {128, 64, 1, 1, 1, 1, 0},
 {128, 64, 0, 1, 1, 2, 0},  {128, 64, 0, 1, 1, 4, 0},  {128, 64, 0, 1, 1, 8, 0},
};

typedef struct gemmepi__sm90 {
 gemmepi__sm90_shape shape;
 int stages, buffers; /* of operands, and of each warp's results */
 int staged; /* what leaves by shared memory: bits 1 D, 2 AUX */
 int copied; /* of these, what does not lie at multiples of 16 bytes: in words, by each warp; else TMA stores it */
 int loaded; /* what TMA loads for the epilogue: bits 1 the aux of BACKWARD, 2 RESIDUAL, 4 RELU's mask */
 int applied; /* alpha is 1 and there is no C: compiled in */
 int summed; /* the operand that it sums for bias_grad: 1 A, 2 B */
 int tails; /* some tiles reach beyond m or n by boxes or lines, which are not loaded */
 int last_a, last_b; /* 0, or lines of the last box of A and B, which are another map's */
 gemmepi__launch launch;
 gemmepi__sm90_params params; /* all but pointers and scalars; the maps have an address that is none */
 size_t partial_bytes; /* BGRAD: of the kernel's sums of a tile's rows */
 gemmepi__sums sums;
} gemmepi__sm90;

/* >>what may go there */

/* Whether TMA takes a matrix of so many bits an element as it lies. */
static int gemmepi__tma_takes(const gemmepi__problem *problem, const gemmepi__view *view, int bits) {
 int64_t unit = 128 / bits,
   most = ((int64_t)1 << 42) / bits; /* elements: a stride has fewer than 2^40 bytes */
 return view->bits == bits && view->alignment % 16 == 0 &&
   (view->lines <= 1 || (view->ld % unit == 0 && view->ld <= most)) &&
   (problem->batch <= 1 || (view->batch_stride % unit == 0 && view->batch_stride <= most));
}

/* F32 operands multiplied as TF32. */
static int gemmepi__is_tf32(const gemmepi__problem *problem) {
 return problem->common == GEMMEPI_F32 && problem->compute == GEMMEPI_COMPUTE_TF32;
}

/* What the kernels multiply. */
static void gemmepi__append_operands(gemmepi__text *text, const gemmepi__problem *problem) {
 gemmepi__append(text, "#define GEMMEPI_OPERANDS \"%s\"\n#define GEMMEPI_ELEMENT %d\n",
    problem->common == GEMMEPI_F16   ? "f16"
    : problem->common == GEMMEPI_F32 ? "tf32"
    : "bf16",
    (int)problem->views[GEMMEPI__A].bits / 8);
}

/* Stages that all of k fills. */
static int64_t gemmepi__sm90_steps(const gemmepi__problem *problem) {
 return gemmepi__divide_up(problem->k, GEMMEPI__SM90_LINE * 8 / problem->views[GEMMEPI__A].bits);
}

/* Whether the epilogue shows beside the sums: measured where k is 768 and 2048, in 16 bits. */
static int gemmepi__k_is_short(const gemmepi__problem *problem) {
 return gemmepi__sm90_steps(problem) < 32;
}

/* What no kernel of the route has, or NULL. */
static const char *gemmepi__extents_rule(const gemmepi__problem *problem) {
 if (problem->k == 0)
  return "k is 0";
 if (problem->m > INT_MAX / 2 || problem->n > INT_MAX / 2 || problem->k > INT_MAX / 2)
  return "m, n or k is 2^30 or more";
 return NULL;
}

/* The rule that keeps a problem from this kernel, or NULL. */
static const char *gemmepi__tma_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
 const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
 if (context->arch != 90)
  return "its kernel is for compute capability 9.0";
 if (a->dtype != b->dtype ||
  (a->dtype != GEMMEPI_BF16 && a->dtype != GEMMEPI_F16 && !gemmepi__is_tf32(problem)))
  return "a and b are not both BF16, both F16 or both F32 with TF32";
 if (gemmepi__is_tf32(problem) && (a->transposed || !b->transposed))
  return "wgmma takes TF32 only where the elements along k lie side by side";
 if (!gemmepi__tma_takes(problem, a, a->bits) || !gemmepi__tma_takes(problem, b, b->bits))
  return "TMA takes a and b at multiples of 16 bytes only: their pointers, lines and items";
 if (gemmepi__halves_in(problem) > 1 && !b->transposed && gemmepi__half_columns(problem) % 8)
  return "TMA takes the second half of b at a multiple of 16 bytes only";
 return gemmepi__extents_rule(problem);
}

/* Of aux, whether it is written or read. */
static int gemmepi__halves_aside(const gemmepi__problem *problem) {
 return gemmepi__has(problem, GEMMEPI_GATED) && !gemmepi__has(problem, GEMMEPI_UPSTREAM) ? 2 : 1;
}

/* Bits of an element of the matrices that TMA moves for the epilogue: of one width, that of D where it can be. */
static int gemmepi__box_bits(const gemmepi__problem *problem) {
 return problem->views[GEMMEPI__D].bits == 32 ? 32 : 16;
}

/* Whether one is of so many bits, and its lines, and halves of them, are whole units of 16 bytes: TMA moves those, whatever the
 extents of its map say. */
static int gemmepi__moves_box(const gemmepi__problem *problem, int operand, int bits) {
 return gemmepi__half_columns(problem) * bits % 128 == 0 &&
   gemmepi__tma_takes(problem, &problem->views[operand], bits);
}

/* Results of so many bits: bits 1 D, 2 AUX. */
static int gemmepi__results_of(const gemmepi__problem *problem, int bits) {
 int results = 0;
 if (problem->views[GEMMEPI__D].bits == bits && !(problem->flags & GEMMEPI__ONLY_SUMS))
  results |= 1;
 if (gemmepi__has(problem, GEMMEPI_AUX) && problem->views[GEMMEPI__AUX].bits == bits)
  results |= 2;
 return results;
}

/* Those that leave in whole units. */
static int gemmepi__moved_of(const gemmepi__problem *problem, int bits) {
 int moved = gemmepi__results_of(problem, bits);
 if ((moved & 1) && !gemmepi__moves_box(problem, GEMMEPI__D, bits))
  moved -= 1;
 if ((moved & 2) && !gemmepi__moves_box(problem, GEMMEPI__AUX, bits))
  moved -= 2;
 return moved;
}

/* What TMA stores. */
static int gemmepi__sm90_moved(const gemmepi__problem *problem) {
 return gemmepi__moved_of(problem, gemmepi__box_bits(problem));
}

/* What it loads for the epilogue, likewise; the mask without TMA. */
static int gemmepi__sm90_loaded(const gemmepi__problem *problem) {
 int loaded = 0, bits = gemmepi__box_bits(problem);
 if (gemmepi__has(problem, GEMMEPI_BACKWARD) && gemmepi__mask_is_aligned(problem))
  loaded |= 4;
 if (gemmepi__has(problem, GEMMEPI_BACKWARD) && gemmepi__moves_box(problem, GEMMEPI__AUX, bits))
  loaded |= 1;
 if (gemmepi__has(problem, GEMMEPI_RESIDUAL) && gemmepi__moves_box(problem, GEMMEPI__RESIDUAL, bits))
  loaded |= 2;
 return loaded;
}

/* Tiles along the axis that a sum of an operand is not of: in each, three warps add up 16 lines of the operand's tile at most. */
static int64_t gemmepi__tiles_across(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
 return gemmepi__has(problem, GEMMEPI_BGRAD_A)
    ? gemmepi__divide_up(gemmepi__half_columns(problem),
    shape->tile_n / gemmepi__halves_in(problem))
    : gemmepi__divide_up(problem->m, shape->tile_m);
}

/* The operand that the kernel sums, 1 A or 2 B. TF32, few tiles, and an epilogue that leaves too few registers, leave it to another
 launch. */
static int gemmepi__sm90_summed(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape,
    int applied) {
 int sums_a = gemmepi__has(problem, GEMMEPI_BGRAD_A), lines = sums_a ? shape->tile_m : shape->tile_n;
 if (!gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) || gemmepi__is_tf32(problem) ||
  GEMMEPI__SM90_SUMMERS * 16 * gemmepi__tiles_across(problem, shape) < lines ||
  (gemmepi__has(problem, GEMMEPI_GATED) && gemmepi__has(problem, GEMMEPI_AUX) && !applied))
  return 0;
 return sums_a ? 1 : 2;
}

/* Whether bias_grad is a sum over the batch, for which the kernel leaves a line of each item. */
static int gemmepi__sums_items(const gemmepi__problem *problem) {
 return problem->batch > 1 && problem->views[GEMMEPI__BIAS_GRAD].batch_stride == 0;
}

/* >>boxes of operands */

/* Lines of a box: along k those that a block loads of a tile of A, or of a half of B's. */
static int gemmepi__a_box(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
 return problem->views[GEMMEPI__A].transposed ? 64 : shape->tile_m / shape->cluster_n;
}

static int gemmepi__b_box(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
 int lines = shape->tile_n / shape->cluster_m, columns = shape->tile_n / gemmepi__halves_in(problem);
 return !problem->views[GEMMEPI__B].transposed ? 64 : lines < columns ? lines : columns;
}

/* Whether tiles of clusters reach so far beyond an extent that there is less to load: a line, or where these lie along k a whole box. */
static int gemmepi__has_tail(int64_t extent, int64_t cluster, int is_side_by_side) {
 return (cluster - extent % cluster) % cluster >= (is_side_by_side ? 1 : 64);
}

static int gemmepi__last_lines(int64_t extent, int box) {
 return (int)((extent - 1) % box) + 1;
}

static int gemmepi__sm90_tails(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
 int64_t columns = shape->tile_n / gemmepi__halves_in(problem) * shape->cluster_n;
 return gemmepi__has_tail(problem->m, shape->tile_m * shape->cluster_m,
    !problem->views[GEMMEPI__A].transposed) ||
   gemmepi__has_tail(gemmepi__half_columns(problem), columns, problem->views[GEMMEPI__B].transposed);
}

/* >>shared memory */

static unsigned gemmepi__sm90_stage_bytes(const gemmepi__sm90_shape *shape) {
 return (unsigned)(shape->tile_m + shape->tile_n) * GEMMEPI__SM90_LINE;
}

/* Of one matrix in every warp's buffer. */
#define GEMMEPI__SM90_BOXES (GEMMEPI__SM90_WARPS * GEMMEPI__SM90_BOX_M * GEMMEPI__SM90_LINE)

/* Gradients take the place of the aux that TMA loaded for them (IN_PLACE in the kernel). */
static int gemmepi__replaces_aux(const gemmepi__problem *problem, const gemmepi__sm90 *fused) {
 return (gemmepi__has(problem, GEMMEPI_GATED) || (fused->loaded & 2)) && (fused->staged & 1) &&
   (fused->loaded & 1) && !(fused->copied & 1) &&
   gemmepi__halves_aside(problem) == gemmepi__halves_out(problem);
}

static unsigned gemmepi__staged_matrices(const gemmepi__problem *problem, const gemmepi__sm90 *fused) {
 int replaces = gemmepi__replaces_aux(problem, fused);
 return (unsigned)((fused->staged & 1 && !replaces ? gemmepi__halves_out(problem) : 0) +
    (fused->staged & 2 ? gemmepi__halves_aside(problem) : 0));
}

static unsigned gemmepi__loaded_matrices(const gemmepi__problem *problem, int loaded) {
 return (unsigned)((loaded & 1 ? gemmepi__halves_aside(problem) : 0) +
    (loaded & 2 ? gemmepi__halves_out(problem) : 0));
}

/* BGRAD: a slot of either warpgroup, in which each lane leaves a sum of every 32 columns: of 32 of a gate's, of 64 of others. */
static unsigned gemmepi__slot_bytes(const gemmepi__problem *problem) {
 int groups = gemmepi__has(problem, GEMMEPI_GATED) ? gemmepi__halves_out(problem) : 2;
 unsigned sums = (unsigned)groups * GEMMEPI__SM90_WARPS * 32 * 4;
 return gemmepi__has(problem, GEMMEPI_BGRAD) ? sums + 2 * GEMMEPI__SM90_PAIR : 0;
}

static unsigned gemmepi__sm90_shared(const gemmepi__problem *problem, const gemmepi__sm90 *fused) {
 unsigned stage = gemmepi__sm90_stage_bytes(&fused->shape) + GEMMEPI__SM90_PAIR;
 unsigned boxes = (unsigned)fused->buffers * gemmepi__staged_matrices(problem, fused) +
    2 * gemmepi__loaded_matrices(problem, fused->loaded);
 unsigned divided = fused->shape.split > 1 ? GEMMEPI__SM90_PAIR : 0;
 unsigned sums = fused->summed ? GEMMEPI__SM90_SUMMERS * 16 * 8 : gemmepi__slot_bytes(problem);
 return (unsigned)fused->stages * stage + boxes * GEMMEPI__SM90_BOXES +
   GEMMEPI__SM90_WARPS * GEMMEPI__SM90_PAIR + divided + sums;
}

/* Sets both, and returns the stages. */
static int gemmepi__most_stages(const gemmepi__problem *problem, gemmepi__sm90 *fused, int buffers) {
 fused->buffers = buffers;
 fused->stages = GEMMEPI__SM90_STAGES;
 while (gemmepi__sm90_shared(problem, fused) > GEMMEPI__SM90_SHARED)
  fused->stages--;
 return fused->stages;
}

/* Two buffers, if enough stages fit beside them or one leaves room for no more of them, and as many stages as do. Measured on an
 H200 in 16 bits: a fifth stage saves 6 percent at any k; a sixth 1 to 2 percent where k is 2048 or more, and a second buffer 4
 where it is 768. Wide tiles gain by neither, and with five stages some of their kernels spill a register. */
static void gemmepi__share_memory(const gemmepi__problem *problem, gemmepi__sm90 *fused) {
 int enough = fused->shape.tile_n > 128 ? 4 : gemmepi__k_is_short(problem) ? 5 : 6;
 int most = fused->staged == fused->copied ? 1 : 2; /* one that is copied is free at once */
 int stages = gemmepi__most_stages(problem, fused, most);
 if (stages < enough && most == 2 && gemmepi__most_stages(problem, fused, 1) == stages)
  fused->buffers = 2;
}

/* Whether all of a tile's bias is loaded before its sums: else that of a box of columns while the box before it is computed, whose
 results TMA may not take before all loads under way have come. Measured on several H200, where k is 768 it saves 2 percent of SILU,
 one of GELU_TANH with AUX and without, of SILU with AUX nothing, and one or two of NONE and RELU, whose sums else begin with the
 bias; where k is 2048 or more it costs up to 3. GELU_ERF's sums better begin with it, and beside AUX other activations lack
 registers. */
static int gemmepi__loads_bias_ahead(const gemmepi__problem *problem, const gemmepi__sm90 *fused) {
 const uint32_t others = GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD |
    GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B;
 return gemmepi__has(problem, GEMMEPI_BIAS) && !gemmepi__has(problem, others) && fused->applied &&
   fused->shape.ping_pong && fused->shape.tile_n == 128 && (fused->staged & 1) &&
   gemmepi__box_bits(problem) == 16 && gemmepi__k_is_short(problem) &&
   (gemmepi__has(problem, GEMMEPI_AUX)
    ? gemmepi__activation_has(problem->epilogue, GEMMEPI__LEAVES_ROOM_FOR_AUX)
    : !gemmepi__activation_has(problem->epilogue, GEMMEPI__WANTS_BIAS_FIRST));
}

/* >>the choice of a shape */

/* Tiles of clusters, whose rows and columns it leaves in `rows` and `columns`. */
static int64_t gemmepi__sm90_tiles(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape,
    int64_t *rows, int64_t *columns) {
 int halves = gemmepi__halves_in(problem);
 *rows = gemmepi__divide_up(problem->m, (int64_t)shape->tile_m * shape->cluster_m);
 *columns = gemmepi__divide_up(gemmepi__half_columns(problem),
    (int64_t)shape->tile_n / halves * shape->cluster_n);
 return gemmepi__offset(gemmepi__offset(*rows, *columns, 0), problem->batch, 0);
}

/* Sums of an operand take registers from the epilogue: a lean shape has enough where there is none, and for those of B where
 its elements along n lie side by side. */
static int gemmepi__lean_takes_sums(const gemmepi__problem *problem) {
 uint64_t sums = GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B;
 return !gemmepi__has(problem, sums) ||
   ((problem->epilogue & ~(sums | GEMMEPI_ACCUMULATE_BIAS_GRAD)) == GEMMEPI_NONE &&
   !(gemmepi__has(problem, GEMMEPI_BGRAD_B) && problem->views[GEMMEPI__B].transposed));
}

/* What shapes of few registers, and units of 64 columns, do not do. */
static int gemmepi__shape_takes(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape,
    int applied) {
 int64_t steps = gemmepi__sm90_steps(problem);
 int staged = gemmepi__sm90_moved(problem), backward = gemmepi__has(problem, GEMMEPI_BACKWARD);
 int all_staged = (staged & 1) && (!gemmepi__has(problem, GEMMEPI_AUX) || (staged & 2) ||
    gemmepi__aux_is_mask(problem->epilogue));
 if (shape->lean && (gemmepi__has(problem, GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_AUX |
    GEMMEPI_RESIDUAL) ||
    !applied || !all_staged || !gemmepi__lean_takes_sums(problem) ||
    gemmepi__wants_exact(problem) || gemmepi__has_operand(problem, GEMMEPI__AMAX_D) ||
    gemmepi__activation_has(problem->epilogue, GEMMEPI__IS_NOT_LEAN)))
  return 0;
 if (gemmepi__halves_in(problem) > 1 && shape->tile_n < 2 * GEMMEPI__SM90_UNIT_N)
  return 0;
 if (gemmepi__has(problem, GEMMEPI_BGRAD) &&
  (!shape->ping_pong || shape->tile_n != 2 * GEMMEPI__SM90_UNIT_N))
  return 0; /* tiles of one warpgroup each, in units of columns of which there is an even number */
 if (shape->tile_n > 192 && (!all_staged || backward))
  return 0; /* an epilogue behind nothing, at its slowest */
 return steps >= 2 * shape->split || shape->split == 1;
}

#define GEMMEPI__STORING_CYCLES 12

/* Cycles of a warpgroup for an element of the product in each of its threads. Measured on an H200 for what they name; an activation's
 stand in its row. */
static double gemmepi__epilogue_cycles(const gemmepi__problem *problem) {
 const gemmepi__activation_row *row = gemmepi__activation_of(problem->epilogue);
 int backward = gemmepi__has(problem, GEMMEPI_BACKWARD), gated = gemmepi__has(problem, GEMMEPI_GATED);
 int activation = backward ? row->derivative_cycles : gated ? row->gate_cycles : row->cycles;
 double cycles = GEMMEPI__STORING_CYCLES + (gated ? activation / 2.0 : activation);
 if (gemmepi__has(problem, GEMMEPI_AUX))
  cycles += 14;
 if (backward)
  cycles += 14 + 9 * gemmepi__halves_out(problem);
 if (gemmepi__has(problem, GEMMEPI_RESIDUAL))
  cycles += gemmepi__sm90_loaded(problem) & 2 ? 6 : 20;
 if (gemmepi__has(problem, GEMMEPI_BGRAD))
  cycles += 11 * gemmepi__halves_out(problem);
 return cycles;
}

/* Blocks that run at once in clusters, one cluster at least: those of more than two do not fill every group of
 multiprocessors (an H200 runs 30 of 4 and 15 of 8). */
static int64_t gemmepi__resident_blocks(const gemmepi_context *context, int cluster) {
 int64_t blocks = context->multiprocessors;
 if (cluster > 2)
  blocks -= blocks / 11;
 return blocks < cluster ? cluster : blocks / cluster * cluster;
}

static int gemmepi__cluster_blocks(const gemmepi__sm90_shape *shape) {
 return shape->cluster_m * shape->cluster_n * shape->split;
}

/* Tiles of a block, of which some have one less. */
static int64_t gemmepi__sm90_waves(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__sm90_shape *shape) {
 int64_t rows, columns, tiles = gemmepi__sm90_tiles(problem, shape, &rows, &columns);
 int cluster = gemmepi__cluster_blocks(shape);
 return gemmepi__divide_up(gemmepi__times(tiles, cluster), gemmepi__resident_blocks(context, cluster));
}

/* Of the blocks that run at once, those that have a tile, where each has one at most; else 1. */
static double gemmepi__sm90_share(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__sm90_shape *shape) {
 int64_t rows, columns, tiles = gemmepi__sm90_tiles(problem, shape, &rows, &columns);
 int cluster = gemmepi__cluster_blocks(shape);
 double share = (double)(tiles * cluster) / (double)gemmepi__resident_blocks(context, cluster);
 return share < 1 ? share : 1;
}

/* Whether a cluster's blocks gain by lying side by side, where the lines that they write at about the same time lie together.
 Measured on several H200: up to 8 percent, most where the clock is high. Gradients without a gate lose 1 to 3 where k is 768 or
 2048, and wider tiles do not care. */
static int gemmepi__gains_side_by_side(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
 return shape->cluster_n > 1 && shape->tile_n == 128 &&
   (!gemmepi__has(problem, GEMMEPI_BACKWARD) || gemmepi__has(problem, GEMMEPI_GATED) ||
   problem->k > 2048);
}

/* Lines that are loaded of a tile: those that exist, or where they lie along m or n the boxes in which one does. */
static double gemmepi__lines_loaded(int64_t extent, int lines, int is_side_by_side) {
 int64_t there = is_side_by_side ? extent : gemmepi__divide_up(extent, 64) * 64;
 return there < lines ? (double)there : lines;
}

/* TMA takes longer where lines do not begin with whole sectors of 32 bytes of L2's: 1.4 times, as fitted to products on an H200. */
static double gemmepi__load_slowness(const gemmepi__view *view) {
 return view->lines > 1 && view->ld * view->bits / 8 % 32 ? 1.4 : 1;
}

/* Cycles to load a step of k of a block's tile: operands come from L2, at 54 bytes a cycle and multiprocessor at most. */
static double gemmepi__load_cycles(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
 const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
 int halves = gemmepi__halves_in(problem);
 double rows = gemmepi__lines_loaded(problem->m, shape->tile_m, !a->transposed);
 double columns =
  halves * gemmepi__lines_loaded(gemmepi__half_columns(problem), shape->tile_n / halves, b->transposed);
 return (rows / shape->cluster_n * gemmepi__load_slowness(a) +
   columns / shape->cluster_m * gemmepi__load_slowness(b)) *
   GEMMEPI__SM90_LINE / 54;
}

/* Microseconds that the product takes with a shape, roughly. A multiprocessor multiplies 2048 pairs of 16 bits, or half
 as many of TF32, a cycle and, in cuBLASLt's kernels as in ours, reaches 0.92 of that; a launch takes 2850 cycles to begin and
 end, a tile 500. Where warpgroups take turns, the epilogue of one is behind the sums of the other, but half of what it does beyond
 storing shows, in wide tiles 0.7 of it (forward without a gate a seventh more in clusters of blocks one above the other, which wait
 for each other); both do the last. Where k is short and little beside a bias is to be done, lean shapes take 2 cycles more an element:
 others load it ahead of the sums. Blocks that divide k take 900 to add their sums up, and 450 for each doubling of their number. Of 443
 random products in CUDA graphs on an H200 the times of shapes near the fastest were an eighth beside this in the mean, and the shape
 that it chooses took 1.02 of the fastest. */
static double gemmepi__sm90_microseconds(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__sm90_shape *shape, int applied) {
 int cluster = gemmepi__cluster_blocks(shape);
 double megahertz = gemmepi__chip_of(context->arch)->megahertz;
 double waves = (double)gemmepi__sm90_waves(context, problem, shape);
 double area = (double)shape->tile_m * shape->tile_n;
 double steps = (double)gemmepi__divide_up(gemmepi__sm90_steps(problem), shape->split);
 double multiply = area * GEMMEPI__SM90_LINE / (0.92 * 4096);
 double load = gemmepi__load_cycles(problem, shape);
 double sums = steps * (multiply > load ? multiply : load) + 500;
 int waits = shape->lean && gemmepi__k_is_short(problem) && gemmepi__has(problem, GEMMEPI_BIAS) &&
    !gemmepi__activation_costs(problem->epilogue);
 double finish = area / 128 * (gemmepi__epilogue_cycles(problem) + (waits ? 2 : 0)) / shape->split;
 double slowed =
  (finish - area / 128 * GEMMEPI__STORING_CYCLES / shape->split) * (shape->tile_n > 128 ? 0.7 : 0.5);
 double cycles = 2850, tile = steps * multiply + 500;
 if (cluster > 1 && !gemmepi__has(problem, GEMMEPI_GATED | GEMMEPI_BACKWARD) &&
  !gemmepi__gains_side_by_side(problem, shape))
  slowed *= 1.15;
 tile = tile + slowed > sums ? tile + slowed : sums; /* loads do not wait for what is slowed */
 if (shape->ping_pong)
  cycles += (waves - 1) * (tile > finish ? tile : finish) + sums + finish / 2;
 else
  cycles += waves * (sums + finish + (shape->split > 1 ? 900 + 450 * log2((double)shape->split) : 0));
 if (gemmepi__gains_side_by_side(problem, shape))
  cycles *= 0.995; /* enough to decide */
 if (gemmepi__sm90_summed(problem, shape, applied))
  return cycles / megahertz + (gemmepi__sums_items(problem) ? GEMMEPI__SUM_LAUNCH : 0);
 return cycles / megahertz + gemmepi__sums_microseconds(problem);
}

static const gemmepi__sm90_shape *gemmepi__choose_sm90(const gemmepi_context *context,
    const gemmepi__problem *problem, int applied,
    double *microseconds) {
 const gemmepi__sm90_shape *best = NULL;
 size_t i;
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__sm90_shapes); i++) {
  const gemmepi__sm90_shape *shape = &gemmepi__sm90_shapes[i];
  double time;
  if (i && (!gemmepi__shape_takes(problem, shape, applied) ||
    gemmepi__cluster_blocks(shape) > context->multiprocessors))
   continue;
  time = gemmepi__sm90_microseconds(context, problem, shape, applied);
  if (!best || time < *microseconds) {
   best = shape;
   *microseconds = time;
  }
 }
 return best;
}

#define GEMMEPI__SM90_KEPT (20 << 20) /* bytes of operands that stay in L2 beside what is written */

/* Rows of clusters' tiles in which columns are taken one after another: what is under way at a time is about square. Where one matrix
 is stored it is twice as high, to read B less often, where blocks gain by lying side by side: measured on several H200, up to 9
 percent less at 8192^3, 1 at 4096^3; and where A stays in L2 and B does not: gradients at 2048 x 50304 x 768 take half a percent to one
 less. With AUX of numbers it is half as high where the operands (of all items) stay in L2, so that longer lines of D and AUX are
 written at a time: 2 to 3 percent less. No band is much lower than the others. */
static unsigned gemmepi__sm90_band(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__sm90_shape *shape, int64_t rows) {
 int writes_two = gemmepi__has(problem, GEMMEPI_AUX) && !gemmepi__aux_is_mask(problem->epilogue);
 int64_t of_a = problem->views[GEMMEPI__A].bytes, bytes = of_a + problem->views[GEMMEPI__B].bytes;
 int stays = bytes <= GEMMEPI__SM90_KEPT, a_stays = !stays && of_a <= GEMMEPI__SM90_KEPT / 2;
 int64_t area = (int64_t)context->multiprocessors * shape->tile_m * shape->tile_n;
 int64_t height = (int64_t)shape->tile_m * shape->cluster_m, high = 1, bands;
 while ((high + 1) * height * (high + 1) * height <= area)
  high++;
 if (writes_two && stays)
  high = gemmepi__divide_up(high, 2);
 else if ((gemmepi__gains_side_by_side(problem, shape) || a_stays) && !writes_two &&
    gemmepi__halves_out(problem) == 1)
  high *= 2;
 bands = (rows + high / 2) / high;
 return (unsigned)gemmepi__divide_up(rows, bands ? bands : 1);
}

/* >>building */

typedef struct gemmepi__map_shape {
 uint32_t rank;
 uint64_t extents[4], strides[3]; /* strides in elements, of all but the first axis */
 uint32_t box[4];
} gemmepi__map_shape;

/* promotion: what of DRAM comes to L2 at once where a part of it is read */
static int gemmepi__encode_map(const gemmepi__driver *driver, const gemmepi__view *view,
    const gemmepi__map_shape *shape, int promotion, gemmepi__tensor_map *map) {
 static const uint32_t ones[4] = {1, 1, 1, 1};
 static const struct {
  int dtype, type;
 } types[] = {{GEMMEPI_BF16, GEMMEPI__CU_TENSOR_MAP_DATA_TYPE_BFLOAT16},
    {GEMMEPI_F16, GEMMEPI__CU_TENSOR_MAP_DATA_TYPE_FLOAT16},
    {GEMMEPI_F32, GEMMEPI__CU_TENSOR_MAP_DATA_TYPE_FLOAT32}};
 uint64_t strides[3], space[2 * sizeof(gemmepi__cu_tensor_map) / sizeof(uint64_t)];
 gemmepi__cu_tensor_map *aligned =
  (gemmepi__cu_tensor_map *)(((uintptr_t)space + 63) & ~(uintptr_t)63); /* as the driver wants it */
 unsigned axis, type = 0;
 int result;
 for (axis = 0; axis + 1 < shape->rank; axis++)
  strides[axis] = shape->strides[axis] * (uint64_t)view->bits / 8;
 while (types[type].dtype != view->dtype)
  type++;
 result = driver->tensor_map_encode_tiled(
  aligned, types[type].type, shape->rank, (void *)(uintptr_t)256, shape->extents, strides, shape->box,
  ones, GEMMEPI__CU_TENSOR_MAP_INTERLEAVE_NONE, GEMMEPI__CU_TENSOR_MAP_SWIZZLE_128B, promotion,
  GEMMEPI__CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
 if (!result)
  memcpy(map, aligned, sizeof *map);
 return result;
}

/* From one line to the next: a single line's ld may be anything. */
static uint64_t gemmepi__map_line(const gemmepi__view *view) {
 return (uint64_t)(view->lines > 1 ? view->ld : (view->length + 7) / 8 * 8);
}

/* How much of DRAM comes to L2 at once where a part of it is read. Lines that do not begin at multiples of 256 bytes would have more of
 their neighbours brought than they need: measured on an H200, loads from L2 take up to 1.18 of the time then. */
static int gemmepi__operand_promotion(const gemmepi__view *view) {
 return view->lines > 1 && view->ld * view->bits / 8 % 256 ? GEMMEPI__CU_TENSOR_MAP_L2_PROMOTION_L2_128B
    : GEMMEPI__CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
}

/* An operand, as boxes of 128 bytes along its lines and `lines` lines. One item serves the whole batch where it has no stride. */
static int gemmepi__map_operand(const gemmepi__driver *driver, const gemmepi__problem *problem,
    const gemmepi__view *view, int lines, gemmepi__tensor_map *map) {
 int has_items = problem->batch > 1 && view->batch_stride != 0;
 gemmepi__map_shape shape = {3, {0, 0, 1, 0}, {0, 0, 0}, {0, 0, 1, 0}};
 shape.extents[0] = (uint64_t)view->length;
 shape.extents[1] = (uint64_t)view->lines;
 shape.strides[0] = gemmepi__map_line(view);
 shape.strides[1] = shape.strides[0]; /* of an axis of one */
 if (has_items) {
  shape.extents[2] = (uint64_t)problem->batch;
  shape.strides[1] = (uint64_t)view->batch_stride;
 }
 shape.box[0] = (uint32_t)(GEMMEPI__SM90_LINE * 8 / view->bits);
 shape.box[1] = (uint32_t)lines;
 return gemmepi__encode_map(driver, view, &shape, gemmepi__operand_promotion(view), map);
}

/* A result: columns, rows, halves, items. Halves are an axis, so that one does not write into the other's columns. */
static int gemmepi__map_result(const gemmepi__driver *driver, const gemmepi__problem *problem,
    const gemmepi__view *view, int halves, int promotion,
    gemmepi__tensor_map *map) {
 gemmepi__map_shape shape = {4, {0, 0, 0, 0}, {0, 0, 0}, {0, GEMMEPI__SM90_BOX_M, 1, 1}};
 uint64_t line = gemmepi__map_line(view);
 shape.box[0] = (uint32_t)(GEMMEPI__SM90_LINE * 8 / view->bits);
 shape.extents[0] = (uint64_t)gemmepi__half_columns(problem);
 shape.extents[1] = (uint64_t)problem->m;
 shape.extents[2] = (uint64_t)halves;
 shape.extents[3] = (uint64_t)problem->batch;
 shape.strides[0] = line;
 shape.strides[1] = halves > 1 ? shape.extents[0] : line;
 shape.strides[2] = problem->batch > 1 ? (uint64_t)view->batch_stride : line;
 return gemmepi__encode_map(driver, view, &shape, promotion, map);
}

/* Aux and a residual are read once, 128 bytes of a row at a time. To bring the 256 around them to L2 at once, as of operands, takes
 up to 1.6 percent more where k is 768, on an H200; where aux is written it saves up to 2. */
static gemmepi_status gemmepi__make_maps(const gemmepi__driver *driver, const gemmepi__problem *problem,
    gemmepi__sm90 *fused) {
 const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
 const gemmepi__sm90_shape *shape = &fused->shape;
 const int written = GEMMEPI__CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
    read = GEMMEPI__CU_TENSOR_MAP_L2_PROMOTION_NONE;
 int a_box = gemmepi__a_box(problem, shape), b_box = gemmepi__b_box(problem, shape);
 int moved = fused->staged - fused->copied;
 int result = gemmepi__map_operand(driver, problem, a, a_box, &fused->params.a);
 if (!result)
  result = gemmepi__map_operand(driver, problem, b, b_box, &fused->params.b);
 if (!result && fused->last_a)
  result = gemmepi__map_operand(driver, problem, a, fused->last_a, &fused->params.a_tail);
 if (!result && fused->last_b)
  result = gemmepi__map_operand(driver, problem, b, fused->last_b, &fused->params.b_tail);
 if (!result && moved & 1)
  result = gemmepi__map_result(driver, problem, &problem->views[GEMMEPI__D],
    gemmepi__halves_out(problem), written, &fused->params.d);
 if (!result && (moved & 2 || fused->loaded & 1))
  result = gemmepi__map_result(driver, problem, &problem->views[GEMMEPI__AUX],
    gemmepi__halves_aside(problem), fused->loaded & 1 ? read : written,
    &fused->params.aux);
 if (!result && (fused->loaded & 2))
  result = gemmepi__map_result(driver, problem, &problem->views[GEMMEPI__RESIDUAL],
    gemmepi__halves_out(problem), read, &fused->params.residual);
 return result ? gemmepi__cuda_failed(driver, result, "cuTensorMapEncodeTiled") : GEMMEPI_OK;
}

static void gemmepi__append_fused_defines(gemmepi__text *text, const gemmepi__problem *problem,
    const gemmepi__sm90 *fused) {
 const gemmepi__sm90_shape *shape = &fused->shape;
 gemmepi__append_epilogue_defines(text, problem, gemmepi__epilogue_is_aligned(problem), 0, 0);
 gemmepi__append(text, "#define GEMMEPI_TILE_M %d\n#define GEMMEPI_TILE_N %d\n", shape->tile_m,
    shape->tile_n);
 gemmepi__append(text, "#define GEMMEPI_STAGES %d\n#define GEMMEPI_PING_PONG %d\n", fused->stages,
    shape->ping_pong);
 gemmepi__append(text, "#define GEMMEPI_CLUSTER_M %d\n#define GEMMEPI_CLUSTER_N %d\n", shape->cluster_m,
    shape->cluster_n);
 gemmepi__append(text, "#define GEMMEPI_SPLIT %d\n#define GEMMEPI_BUFFERS %d\n", shape->split,
    fused->buffers);
 gemmepi__append(text, "#define GEMMEPI_STAGED %d\n#define GEMMEPI_LOADED %d\n", fused->staged,
    fused->loaded);
 gemmepi__append(text, "#define GEMMEPI_COPIED %d\n#define GEMMEPI_BIAS_AHEAD %d\n", fused->copied,
    gemmepi__loads_bias_ahead(problem, fused));
 gemmepi__append(text, "#define GEMMEPI_BOX_GROUPS %d\n#define GEMMEPI_TAILS %d\n",
    gemmepi__box_bits(problem) == 32 ? 1 : 2, fused->tails);
 gemmepi__append(text, "#define GEMMEPI_APPLIED %d\n#define GEMMEPI_SHARED %u\n", fused->applied,
    gemmepi__sm90_shared(problem, fused));
 gemmepi__append(text, "#define GEMMEPI_A_ROWS %d\n#define GEMMEPI_B_ROWS %d\n",
    !problem->views[GEMMEPI__A].transposed, (int)problem->views[GEMMEPI__B].transposed);
 if (fused->summed)
  gemmepi__append(text,
    "#define GEMMEPI_SUMMED %d\n#define GEMMEPI_SUMS_TYPE %s\n"
    "#define GEMMEPI_SUMS_ADD %d\n",
    fused->summed,
    gemmepi__sums_items(problem) ? "F64"
    : gemmepi__type_name(problem, GEMMEPI__BIAS_GRAD),
    gemmepi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD) && !gemmepi__sums_items(problem));
 gemmepi__append(text, "#define GEMMEPI_WHOLE %d\n", gemmepi__half_columns(problem) % GEMMEPI__RUN == 0);
 gemmepi__append_operands(text, problem);
}

static gemmepi_status gemmepi__get_fused_kernel(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__sm90 *fused) {
 int dtype = problem->common;
 char prologue[1536], words[160];
 gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
 gemmepi__append_fused_defines(&text, problem, fused);
 gemmepi__name_kernel(&fused->launch, "gemmepi_sm90_%s_%dx%d%s%s",
    dtype == GEMMEPI_F32 ? "TF32" : gemmepi__dtype((gemmepi_dtype)dtype)->name,
    fused->shape.tile_m, fused->shape.tile_n, fused->shape.split > 1 ? "_split" : "",
    gemmepi__name_of_epilogue(problem, dtype, words));
 return gemmepi__get_waiting_kernel(context, "gemm_sm90.cu", prologue, "gemmepi_fused", &fused->launch);
}

/* The shape, and what shared memory holds. */
static void gemmepi__cut_up(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape, int applied,
    gemmepi__sm90 *fused) {
 fused->shape = *shape;
 fused->applied = applied;
 fused->staged = gemmepi__results_of(problem, gemmepi__box_bits(problem));
 fused->copied = fused->staged - gemmepi__sm90_moved(problem);
 fused->loaded = gemmepi__sm90_loaded(problem);
 fused->summed = gemmepi__sm90_summed(problem, shape, applied);
 fused->tails = gemmepi__sm90_tails(problem, shape);
 if (fused->tails && !problem->views[GEMMEPI__A].transposed)
  fused->last_a = gemmepi__last_lines(problem->m, gemmepi__a_box(problem, shape));
 if (fused->tails && problem->views[GEMMEPI__B].transposed)
  fused->last_b = gemmepi__last_lines(gemmepi__half_columns(problem), gemmepi__b_box(problem, shape));
 gemmepi__share_memory(problem, fused);
}

static gemmepi_status gemmepi__lay_out_grid(const gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__sm90 *fused) {
 const gemmepi__sm90_shape *shape = &fused->shape;
 gemmepi__sm90_params *params = &fused->params;
 int64_t cluster = gemmepi__cluster_blocks(shape), rows, columns;
 int64_t tiles = gemmepi__sm90_tiles(problem, shape, &rows, &columns), most;
 if (tiles <= 0 || tiles > INT_MAX / cluster)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
 most = shape->split > 1 ? tiles /* those of a split do not stay */
    : gemmepi__resident_blocks(context, (int)cluster) / cluster;
 params->tiles = (unsigned)tiles;
 params->cluster_rows = (unsigned)rows;
 params->cluster_columns = (unsigned)columns;
 params->band = gemmepi__sm90_band(context, problem, shape, rows);
 params->k = (int)problem->k;
 params->a_items = problem->batch > 1 && problem->views[GEMMEPI__A].batch_stride != 0;
 params->b_items = problem->batch > 1 && problem->views[GEMMEPI__B].batch_stride != 0;
 fused->launch.blocks = (unsigned)((most < tiles ? most : tiles) * cluster);
 fused->launch.threads_x = GEMMEPI__SM90_THREADS;
 fused->launch.threads_y = 1;
 fused->launch.shared = gemmepi__sm90_shared(problem, fused);
 return GEMMEPI_OK;
}

/* What is left of bias_grad when the kernel has run. */
static gemmepi_status gemmepi__finish_sums(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__sm90 *fused) {
 const gemmepi__view *out = &problem->views[GEMMEPI__BIAS_GRAD];
 if (!fused->summed)
  return gemmepi__build_sums(context, problem, fused->params.epilogue.row_tiles, &fused->sums);
 fused->params.sum_tiles = (int)gemmepi__tiles_across(problem, &fused->shape);
 fused->params.sums_stride = gemmepi__sums_items(problem) ? out->length : out->batch_stride;
 if (!gemmepi__sums_items(problem))
  return GEMMEPI_OK;
 return gemmepi__build_sum_of_lines(context, problem, 1, problem->batch, &fused->sums);
}

/* As a shape that takes it. */
static gemmepi_status gemmepi__sm90_build(gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__candidate *candidate, void *built) {
 const gemmepi__sm90_shape *shape = &gemmepi__sm90_shapes[candidate->shape];
 gemmepi__sm90 *fused = (gemmepi__sm90 *)built;
 gemmepi_status status;
 memset(fused, 0, sizeof *fused);
 gemmepi__cut_up(problem, shape, candidate->applied, fused);
 gemmepi__fill_epilogue(problem, &fused->params.epilogue);
 fused->params.epilogue.row_tiles = (unsigned)gemmepi__divide_up(problem->m, shape->tile_m);
 fused->partial_bytes = gemmepi__line_bytes(problem, fused->params.epilogue.row_tiles);
 status = gemmepi__lay_out_grid(context, problem, fused);
 if (!status)
  status = gemmepi__make_maps(&context->driver, problem, fused);
 if (!status)
  status = gemmepi__get_fused_kernel(context, problem, fused);
 if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
  status = gemmepi__finish_sums(context, problem, fused);
 return status;
}

static void gemmepi__sm90_describe(const void *built, gemmepi__built_details *details) {
 const gemmepi__sm90 *fused = (const gemmepi__sm90 *)built;
 details->launch = &fused->launch;
 details->pass = NULL;
 details->sums = &fused->sums;
 details->tile_m = fused->shape.tile_m;
 details->tile_n = fused->shape.tile_n;
 details->workspace_size = gemmepi__round_up(fused->partial_bytes, 256) + fused->sums.partial_bytes;
}

/* >>running */

static int gemmepi__point_map(const gemmepi__driver *driver, gemmepi__tensor_map *map, void *pointer) {
 return driver->tensor_map_replace_address((gemmepi__cu_tensor_map *)(void *)map, pointer);
}

/* The primary context is current. */
static gemmepi_status gemmepi__sm90_run(const gemmepi_context *context, const gemmepi__problem *problem,
    const void *built, const gemmepi__arguments *arguments,
    char *workspace, gemmepi_stream stream) {
 const gemmepi__sm90 *fused = (const gemmepi__sm90 *)built;
 const gemmepi__driver *driver = &context->driver;
 void *const *pointers = arguments->pointers;
 char *between = gemmepi__past(workspace, fused->partial_bytes);
 uint64_t space[(sizeof(gemmepi__sm90_params) + 128) / sizeof(uint64_t)];
 gemmepi__sm90_params *params = (gemmepi__sm90_params *)(((uintptr_t)space + 63) & ~(uintptr_t)63);
 gemmepi_status status = gemmepi__clear_amax(context, problem, arguments, stream);
 int moved = fused->staged - fused->copied, result;
 if (status)
  return status;
 memcpy(params, &fused->params, sizeof *params);
 gemmepi__point_epilogue(arguments, fused->applied, workspace, &params->epilogue);
 if (fused->summed)
  params->sums = fused->sums.second.function ? between : pointers[GEMMEPI__BIAS_GRAD];
 result = gemmepi__point_map(driver, &params->a, pointers[GEMMEPI__A]);
 if (!result)
  result = gemmepi__point_map(driver, &params->b, pointers[GEMMEPI__B]);
 if (!result && fused->last_a)
  result = gemmepi__point_map(driver, &params->a_tail, pointers[GEMMEPI__A]);
 if (!result && fused->last_b)
  result = gemmepi__point_map(driver, &params->b_tail, pointers[GEMMEPI__B]);
 if (!result && moved & 1)
  result = gemmepi__point_map(driver, &params->d, pointers[GEMMEPI__D]);
 if (!result && (moved & 2 || fused->loaded & 1))
  result = gemmepi__point_map(driver, &params->aux, pointers[GEMMEPI__AUX]);
 if (!result && (fused->loaded & 2))
  result = gemmepi__point_map(driver, &params->residual, pointers[GEMMEPI__RESIDUAL]);
 if (result)
  return gemmepi__cuda_failed(driver, result, "cuTensorMapReplaceAddress");
 status = gemmepi__launch_kernel(context, &fused->launch, params, "the product", stream);
 if (status)
  return status;
 return gemmepi__run_sums(context, &fused->sums, arguments, workspace, between, stream);
}

/* >>in words */

static void gemmepi__sm90_explain(const gemmepi__problem *problem, const void *built, gemmepi__text *text) {
 const gemmepi__sm90 *sm90 = (const gemmepi__sm90 *)built;
 const gemmepi__sm90_shape *shape = &sm90->shape;
 gemmepi__append(text, "  %s: product and epilogue, %u blocks, tiles of %d x %d%s, %d stages, ",
    sm90->launch.name, sm90->launch.blocks, shape->tile_m, shape->tile_n,
    shape->ping_pong ? " by two warpgroups in turns" : "", sm90->stages);
 if (shape->split > 1)
  gemmepi__append(text, "each by %d blocks that divide k\n", shape->split);
 else
  gemmepi__append(text, "clusters of %d x %d\n", shape->cluster_m, shape->cluster_n);
 if (sm90->summed)
  gemmepi__append(text, "  bias_grad: sums of %s as its tiles pass%s\n",
    gemmepi__argument_name(problem, sm90->summed == 1 ? GEMMEPI__A : GEMMEPI__B),
    sm90->sums.second.function ? ", of its items by 1 more launch" : "");
 else
  gemmepi__explain_sums(text, &sm90->sums);
}

/* >>the engine */

static void gemmepi__sm90_choose(const gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__candidate *candidate) {
 candidate->shape =
  (int)(gemmepi__choose_sm90(context, problem, candidate->applied, &candidate->microseconds) -
    gemmepi__sm90_shapes);
}

static void gemmepi__sm90_tile(const gemmepi__candidate *candidate, int *tile_m, int *tile_n) {
 *tile_m = gemmepi__sm90_shapes[candidate->shape].tile_m;
 *tile_n = gemmepi__sm90_shapes[candidate->shape].tile_n;
}

static const gemmepi__engine gemmepi__sm90_engine = {"sm90",
    GEMMEPI__HAS_SM90,
    1,
    gemmepi__tma_rule,
    gemmepi__sm90_choose,
    gemmepi__sm90_tile,
    GEMMEPI__HAS_SM90 ? gemmepi__sm90_build : NULL,
    gemmepi__sm90_describe,
    gemmepi__sm90_explain,
    GEMMEPI__HAS_SM90 ? gemmepi__sm90_run : NULL};
/* The second kernel of the route fused, gemm_sm80.cu: from Ampere on, and on Hopper for F32, for what TMA does not take and where
 it takes less time. */

#define GEMMEPI__SM80_LINE    128 /* gemm_sm80.cu: bytes of k of a stage */
#define GEMMEPI__EXACT_CYCLES 20 /* of an element of F32 more, where activations are exact, on an H200 */

/* A way to cut the product up: its kernel is compiled for it. */
typedef struct gemmepi__sm80_shape {
 short tile_m, tile_n, warps_m, warps_n, stages;
 short blocks; /* for so many of a multiprocessor registers are shared out */
 short unit; /* bytes: less at a time to copy would take more registers than there are */
 short kinds; /* that gain by it, or that it has registers for */
} gemmepi__sm80_shape;

/* How the kernel multiplies: with mma.sync, or strict F32 by fused multiply-adds. */
enum { GEMMEPI__OF_16_BITS = 1, GEMMEPI__OF_TF32 = 2, GEMMEPI__OF_F32 = 4, GEMMEPI__OF_ALL = 7 };

/* Lines along m of 16 bits are of 64 elements; strict F32 has two sums of each element in registers. */
static const gemmepi__sm80_shape gemmepi__sm80_shapes[] = {
 {64, 128, 2, 2, 3, 2, 2, GEMMEPI__OF_ALL}, /* first the one for everything */
 {128, 128, 2, 2, 3, 2, 16, GEMMEPI__OF_16_BITS | GEMMEPI__OF_TF32},
 {128, 256, 2, 4, 3, 1, 8, GEMMEPI__OF_16_BITS | GEMMEPI__OF_TF32},
 {64, 64, 2, 2, 4, 3, 2, GEMMEPI__OF_ALL},
 {32, 64, 2, 2, 4, 3, 4, GEMMEPI__OF_TF32 | GEMMEPI__OF_F32},
 {128, 128, 2, 4, 3, 1, 16, GEMMEPI__OF_F32},
};

/* How a problem is cut up: into tiles, and k into parts. */
typedef struct gemmepi__sm80_cut {
 const gemmepi__sm80_shape *shape;
 int parts; /* more than one: their sums go to workspace, and the pass adds them up and finishes */
} gemmepi__sm80_cut;

typedef struct gemmepi__sm80 {
 gemmepi__sm80_shape shape;
 int parts;
 int staged; /* what leaves by way of shared memory: bits 1 D, 2 AUX */
 int copied; /* in words, as it does not lie at multiples of 16 bytes */
 int applied; /* alpha is 1 and there is no C: compiled in */
 gemmepi__launch launch;
 gemmepi__sm80_params params; /* all but pointers and scalars */
 size_t product_bytes; /* of the parts' sums */
 gemmepi__pass pass;
 size_t partial_bytes; /* BGRAD: of the kernel's sums of a warp's rows, or the pass's */
 gemmepi__sums sums;
} gemmepi__sm80;

/* >>what may go there */

/* The rule that keeps a problem from every engine, or NULL. What gemm_sm90.cu takes this kernel takes, too. */
static const char *gemmepi__engines_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
 const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
 if (context->arch < 80)
  return "its kernels are for compute capability 8.0 and later";
 if (a->dtype != b->dtype ||
  (a->dtype != GEMMEPI_BF16 && a->dtype != GEMMEPI_F16 && a->dtype != GEMMEPI_F32))
  return "a and b are not both BF16, both F16 or both F32";
 return gemmepi__extents_rule(problem);
}

/* Bytes at whose multiples all that a copy of 16 begins with lies: 16, 8, 4 or, of 16-bit elements, 2. `further`: bytes between
 such beginnings within a line. */
static int gemmepi__unit_of(const gemmepi__problem *problem, const gemmepi__view *view, int64_t further) {
 int64_t of = view->alignment | further, element = view->bits / 8;
 int unit = 16;
 if (view->lines > 1)
  of |= view->ld * element;
 if (problem->batch > 1)
  of |= view->batch_stride * element;
 while (of % unit)
  unit /= 2;
 return unit;
}

/* Our kernels read the halves of a gated B each by itself. */
static int gemmepi__copy_unit(const gemmepi__problem *problem, int operand) {
 const gemmepi__view *view = &problem->views[operand];
 int has_halves = operand == GEMMEPI__B && gemmepi__halves_in(problem) > 1 && !view->transposed;
 return gemmepi__unit_of(problem, view, has_halves ? gemmepi__half_columns(problem) * view->bits / 8 : 0);
}

static unsigned gemmepi__sm80_shared(const gemmepi__sm80_shape *shape) {
 return (unsigned)((shape->tile_m + shape->tile_n) * GEMMEPI__SM80_LINE * shape->stages);
}

static int gemmepi__sm80_kind(const gemmepi__problem *problem) {
 return problem->common != GEMMEPI_F32 ? GEMMEPI__OF_16_BITS
   : gemmepi__is_tf32(problem)    ? GEMMEPI__OF_TF32
    : GEMMEPI__OF_F32;
}

static int gemmepi__is_fma(const gemmepi__problem *problem) {
 return gemmepi__sm80_kind(problem) == GEMMEPI__OF_F32;
}

static int gemmepi__sm80_shape_takes(const gemmepi__problem *problem, const gemmepi__sm80_shape *shape,
    int arch) {
 int halves = gemmepi__halves_in(problem), unit = gemmepi__copy_unit(problem, GEMMEPI__A);
 if (unit > gemmepi__copy_unit(problem, GEMMEPI__B))
  unit = gemmepi__copy_unit(problem, GEMMEPI__B);
 if (shape->tile_n / halves / shape->warps_n % 32)
  return 0; /* a warp's runs are of 32 columns, of both halves */
 if (halves > 1 && !problem->views[GEMMEPI__B].transposed && shape->tile_n / halves % 64)
  return 0; /* lines of 64 along n are of one half */
 if (!(shape->kinds & gemmepi__sm80_kind(problem)))
  return 0;
 if (unit < shape->unit ||
  (shape->tile_m > 64 && gemmepi__has(problem, GEMMEPI_BGRAD) &&
   (shape->tile_n > 128 || gemmepi__is_fma(problem) || gemmepi__has(problem, GEMMEPI_GATED) ||
   gemmepi__activation_has(problem->epilogue, GEMMEPI__IS_WIDE_IN_SUMS))))
  return 0; /* registers would not do */
 return gemmepi__sm80_shared(shape) <= gemmepi__chip_of(arch)->most_shared;
}

/* >>how long it takes */

static int64_t gemmepi__sm80_tiles(const gemmepi__problem *problem, const gemmepi__sm80_shape *shape,
    int64_t *rows, int64_t *columns) {
 *rows = gemmepi__divide_up(problem->m, shape->tile_m);
 *columns =
  gemmepi__divide_up(gemmepi__half_columns(problem), shape->tile_n / gemmepi__halves_in(problem));
 return gemmepi__offset(gemmepi__offset(*rows, *columns, 0), problem->batch, 0);
}

/* Of k. */
static int64_t gemmepi__stage_k(const gemmepi__problem *problem) {
 return GEMMEPI__SM80_LINE * 8 / problem->views[GEMMEPI__A].bits;
}

/* Pairs that a multiprocessor multiplies in a cycle. */
static double gemmepi__sm80_rate(const gemmepi__problem *problem, const gemmepi__chip *chip) {
 if (gemmepi__is_fma(problem))
  return chip->fma;
 return problem->common == GEMMEPI_F32 ? chip->mma / 2 : chip->mma;
}

/* How much longer multiply-adds take than that, fitted to products on an H200: A along m is read a word at a time, small tiles load
 more for what they multiply, large ones less, and four warps of wide tiles, alone on a multiprocessor, wait for what they load. */
static double gemmepi__fma_slowness(const gemmepi__problem *problem, const gemmepi__sm80_shape *shape,
    int blocks) {
 double slowness = problem->views[GEMMEPI__A].transposed ? 1.42 : 1.25;
 slowness *= shape->tile_m < 64 ? 1.1 : shape->tile_m > 64 ? 0.9 : 1;
 if (shape->tile_n > 64 && blocks * shape->warps_m * shape->warps_n <= 4)
  slowness *= 2.1;
 return slowness;
}

/* Bytes that a multiprocessor copies in a cycle, 16, 8, 4 or 2 at a time. Measured on an H200. */
static double gemmepi__copy_rate(int unit) {
 return unit == 16 ? 64 : unit == 8 ? 20 : unit == 4 ? 17 : 10;
}

/* That a multiprocessor runs at a time. */
static int gemmepi__sm80_blocks(const gemmepi_context *context, const gemmepi__sm80_shape *shape) {
 int blocks = (int)(gemmepi__chip_of(context->arch)->most_shared / gemmepi__sm80_shared(shape));
 return blocks < shape->blocks ? blocks : shape->blocks;
}

/* Microseconds with a shape, roughly: a launch takes 2900 cycles to begin and end, a step of k 400 beside what it
 multiplies or copies, whichever is more, for all blocks of a multiprocessor. own: the kernel's problem, bare where k is in
 parts */
static double gemmepi__sm80_microseconds(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__problem *own, const gemmepi__sm80_cut *cut) {
 const gemmepi__sm80_shape *shape = cut->shape;
 const gemmepi__chip *chip = gemmepi__chip_of(context->arch);
 int64_t rows, columns, tiles = gemmepi__sm80_tiles(own, shape, &rows, &columns);
 int64_t each = gemmepi__divide_up(gemmepi__times(tiles, cut->parts),
    context->multiprocessors); /* tiles of a multiprocessor */
 int blocks = gemmepi__sm80_blocks(context, shape);
 double area = (double)shape->tile_m * shape->tile_n, lines[2];
 int64_t of_stage = gemmepi__stage_k(problem);
 double steps = (double)gemmepi__divide_up(gemmepi__divide_up(problem->k, cut->parts), of_stage);
 double multiply = area * (double)of_stage / gemmepi__sm80_rate(problem, chip), copy;
 double finish = cut->parts > 1 ? 2 * GEMMEPI__STORING_CYCLES : gemmepi__epilogue_cycles(problem), waves;
 lines[0] = shape->tile_m / gemmepi__copy_rate(gemmepi__copy_unit(problem, GEMMEPI__A));
 lines[1] = shape->tile_n / gemmepi__copy_rate(gemmepi__copy_unit(problem, GEMMEPI__B));
 copy = (lines[0] + lines[1]) * GEMMEPI__SM80_LINE;
 if (blocks > each)
  blocks = (int)each;
 if (gemmepi__is_fma(problem))
  multiply *= gemmepi__fma_slowness(own, shape, blocks);
 waves = (double)gemmepi__divide_up(each, blocks ? blocks : 1);
 if (problem->common == GEMMEPI_F32 && cut->parts == 1 && gemmepi__wants_exact(problem)) {
  finish += gemmepi__activation_costs(problem->epilogue) ? GEMMEPI__EXACT_CYCLES : 0;
  finish *= blocks;
 }
 finish *= area / 128;
 return (2900 + waves * (steps * (400 + blocks * (multiply > copy ? multiply : copy)) + finish)) /
    chip->megahertz +
   (cut->parts > 1 ? gemmepi__pass_microseconds(problem, cut->parts)
    : gemmepi__sums_microseconds(problem));
}

/* Whether k has so many parts of four stages, and there are not already as many tiles as run at a time. problem: the kernel's */
static int gemmepi__sm80_divides(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__sm80_cut *cut) {
 const gemmepi__sm80_shape *shape = cut->shape;
 int64_t rows, columns, tiles = gemmepi__sm80_tiles(problem, shape, &rows, &columns);
 int64_t of_stage = gemmepi__stage_k(problem);
 int64_t at_a_time = (int64_t)context->multiprocessors * gemmepi__sm80_blocks(context, shape);
 return cut->parts == 1 ||
   (problem->k >= 4 * of_stage * cut->parts && tiles > 0 && tiles * cut->parts <= at_a_time);
}

static gemmepi__sm80_cut gemmepi__choose_sm80(const gemmepi_context *context, const gemmepi__problem *problem,
    double *microseconds) {
 static const int parts[] = {1, 2, 3, 4, 6, 8, 12, 16};
 gemmepi__problem bare = gemmepi__bare_problem(problem);
 gemmepi__sm80_cut best = {NULL, 1};
 size_t i, j;
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__sm80_shapes); i++)
  for (j = 0; j < GEMMEPI__COUNT(parts); j++) {
   const gemmepi__problem *own = parts[j] > 1 ? &bare : problem;
   gemmepi__sm80_cut cut;
   double time;
   cut.shape = &gemmepi__sm80_shapes[i];
   cut.parts = parts[j];
   if ((i && !gemmepi__sm80_shape_takes(own, cut.shape, context->arch)) ||
    !gemmepi__sm80_divides(context, own, &cut))
    continue;
   time = gemmepi__sm80_microseconds(context, problem, own, &cut);
   if (!best.shape || time < *microseconds) {
    best = cut;
    *microseconds = time;
   }
  }
 return best;
}

/* >>building */

/* Of each part but the last: whole stages. */
static int64_t gemmepi__part_k(const gemmepi__problem *problem, int parts) {
 int64_t of_stage = gemmepi__stage_k(problem);
 return gemmepi__divide_up(gemmepi__divide_up(problem->k, parts), of_stage) * of_stage;
}

/* How the operands lie. */
static void gemmepi__append_lines(gemmepi__text *text, const gemmepi__problem *problem) {
 gemmepi__append(text, "#define GEMMEPI_A_ROWS %d\n#define GEMMEPI_B_ROWS %d\n",
    !problem->views[GEMMEPI__A].transposed, (int)problem->views[GEMMEPI__B].transposed);
 gemmepi__append(text, "#define GEMMEPI_A_UNIT %d\n#define GEMMEPI_B_UNIT %d\n",
    gemmepi__copy_unit(problem, GEMMEPI__A), gemmepi__copy_unit(problem, GEMMEPI__B));
}

static void gemmepi__append_sm80_defines(gemmepi__text *text, const gemmepi__problem *problem,
    const gemmepi__sm80 *mma) {
 const gemmepi__sm80_shape *shape = &mma->shape;
 gemmepi__append_epilogue_defines(text, problem, gemmepi__epilogue_is_aligned(problem), 0, 0);
 gemmepi__append(text, "#define GEMMEPI_TILE_M %d\n#define GEMMEPI_TILE_N %d\n", shape->tile_m,
    shape->tile_n);
 gemmepi__append(text, "#define GEMMEPI_WARPS_M %d\n#define GEMMEPI_WARPS_N %d\n", shape->warps_m,
    shape->warps_n);
 gemmepi__append(text, "#define GEMMEPI_STAGES %d\n#define GEMMEPI_BLOCKS %d\n", shape->stages,
    shape->blocks);
 gemmepi__append(text, "#define GEMMEPI_STAGED %d\n#define GEMMEPI_COPIED %d\n", mma->staged, mma->copied);
 gemmepi__append(text, "#define GEMMEPI_APPLIED %d\n", mma->applied || mma->parts > 1);
 gemmepi__append(text, "#define GEMMEPI_SPLIT %d\n", mma->parts > 1);
 gemmepi__append_lines(text, problem);
 gemmepi__append(text, "#define GEMMEPI_WHOLE %d\n", gemmepi__half_columns(problem) % GEMMEPI__RUN == 0);
 gemmepi__append(text, "#define GEMMEPI_FMA %d\n", gemmepi__is_fma(problem));
 gemmepi__append_operands(text, problem);
}

static gemmepi_status gemmepi__get_sm80_kernel(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__sm80 *mma) {
 int dtype = problem->common;
 char prologue[1536], words[160];
 gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
 gemmepi__append_sm80_defines(&text, problem, mma);
 gemmepi__name_kernel(&mma->launch, "gemmepi_sm80_%s_%dx%d%s%s",
    dtype == GEMMEPI_F32 && !gemmepi__is_fma(problem)
    ? "TF32"
    : gemmepi__dtype((gemmepi_dtype)dtype)->name,
    mma->shape.tile_m, mma->shape.tile_n, mma->parts > 1 ? "_split" : "",
    gemmepi__name_of_epilogue(problem, dtype, words));
 return gemmepi__get_waiting_kernel(context, "gemm_sm80.cu", prologue, "gemmepi_mma", &mma->launch);
}

/* The shape, and what follows from it. problem: as the kernel has it, bare where k is in parts */
static void gemmepi__cut_up_sm80(const gemmepi__problem *problem, const gemmepi__sm80_cut *cut, int applied,
    gemmepi__sm80 *mma) {
 /* of 32 bits a row's four lanes write whole sectors, but for these */
 int wide = gemmepi__results_of(problem, 32) - gemmepi__moved_of(problem, 32);
 mma->shape = *cut->shape;
 mma->parts = (int)gemmepi__divide_up(problem->k, gemmepi__part_k(problem, cut->parts)); /* none empty */
 mma->applied = applied;
 mma->staged = gemmepi__results_of(problem, 16) | wide;
 mma->copied = mma->staged - gemmepi__moved_of(problem, 16);
}

/* What a block asks for: so much that no multiprocessor has more than its share. Those with room for more would take it, and others
 have less: 1.5 of the time on an H200, where the launch before is still on some of them, or three have room and two are a share. */
static unsigned gemmepi__sm80_asked(const gemmepi_context *context, const gemmepi__sm80 *mma) {
 unsigned each = (unsigned)gemmepi__divide_up(mma->launch.blocks, context->multiprocessors);
 unsigned needed = gemmepi__sm80_shared(&mma->shape);
 unsigned least = gemmepi__chip_of(context->arch)->most_shared / (each + 1) + 16;
 return needed < least ? least / 16 * 16 : needed;
}

static gemmepi_status gemmepi__lay_out_sm80(const gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__sm80 *mma) {
 const gemmepi__sm80_shape *shape = &mma->shape;
 gemmepi__sm80_params *params = &mma->params;
 int64_t rows, columns, tiles = gemmepi__sm80_tiles(problem, shape, &rows, &columns), square = 1, bands;
 int64_t area = (int64_t)context->multiprocessors * shape->blocks * shape->tile_m * shape->tile_n;
 int warp_rows = shape->tile_m / shape->warps_m;
 if (tiles <= 0 || tiles > INT_MAX / mma->parts)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
 while ((square + 1) * shape->tile_m * (square + 1) * shape->tile_m <= area)
  square++; /* what is under way at a time is about square */
 bands = (rows + square / 2) / square;
 params->tile_rows = (unsigned)rows;
 params->band = (unsigned)gemmepi__divide_up(rows, bands ? bands : 1);
 params->k = (int)problem->k;
 params->parts = (unsigned)mma->parts;
 params->part_k = (int)gemmepi__part_k(problem, mma->parts);
 params->a = gemmepi__kernel_matrix_of(&problem->views[GEMMEPI__A]);
 params->b = gemmepi__kernel_matrix_of(&problem->views[GEMMEPI__B]);
 params->epilogue.column_tiles = (unsigned)columns;
 params->epilogue.row_tiles = (unsigned)gemmepi__divide_up(problem->m, warp_rows);
 mma->launch.blocks = (unsigned)(tiles * mma->parts);
 mma->launch.threads_x = (unsigned)(32 * shape->warps_m * shape->warps_n);
 mma->launch.threads_y = 1;
 mma->launch.shared = gemmepi__sm80_asked(context, mma);
 mma->partial_bytes = gemmepi__line_bytes(problem, params->epilogue.row_tiles);
 return GEMMEPI_OK;
}

/* The sums of each part of k, one after another, in workspace, and what adds them up. */
static gemmepi_status gemmepi__build_parts(gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__view *part, int applied, gemmepi__sm80 *mma) {
 int64_t elements = gemmepi__offset(gemmepi__times(problem->batch, mma->parts), part->batch_stride, 0);
 gemmepi_status status;
 if (elements < 0)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the product has more than 2^56 elements");
 mma->product_bytes = gemmepi__bytes_for(elements, sizeof(float));
 status = gemmepi__build_pass(context, problem, part, mma->parts, applied, &mma->pass);
 mma->partial_bytes = mma->pass.partial_bytes;
 return status;
}

/* As a shape that takes it, and parts that are not too many. */
static gemmepi_status gemmepi__sm80_build(gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__candidate *candidate, void *built) {
 gemmepi__sm80 *mma = (gemmepi__sm80 *)built;
 gemmepi__sm80_cut cut;
 gemmepi__problem bare;
 const gemmepi__problem *own = problem; /* the kernel's */
 unsigned row_tiles;
 gemmepi_status status;
 memset(mma, 0, sizeof *mma);
 cut.shape = &gemmepi__sm80_shapes[candidate->shape];
 cut.parts = candidate->parts;
 if (cut.parts > 1) {
  gemmepi__view *d = &bare.views[GEMMEPI__D];
  bare = gemmepi__bare_problem(problem);
  d->batch_stride =
   (int64_t)gemmepi__round_up((size_t)d->batch_stride, 4); /* parts begin at multiples of 16 bytes */
  own = &bare;
 }
 gemmepi__cut_up_sm80(own, &cut, candidate->applied, mma);
 gemmepi__fill_epilogue(own, &mma->params.epilogue);
 status = gemmepi__lay_out_sm80(context, own, mma);
 row_tiles = mma->params.epilogue.row_tiles;
 if (!status)
  status = gemmepi__get_sm80_kernel(context, own, mma);
 if (!status && cut.parts > 1) {
  status = gemmepi__build_parts(context, problem, &own->views[GEMMEPI__D], candidate->applied, mma);
  row_tiles = mma->pass.params.epilogue.row_tiles;
 }
 if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
  status = gemmepi__build_sums(context, problem, row_tiles, &mma->sums);
 return status;
}

static void gemmepi__sm80_describe(const void *built, gemmepi__built_details *details) {
 const gemmepi__sm80 *mma = (const gemmepi__sm80 *)built;
 details->launch = &mma->launch;
 details->pass = mma->pass.launch.function ? &mma->pass.launch : NULL;
 details->sums = &mma->sums;
 details->tile_m = mma->shape.tile_m;
 details->tile_n = mma->shape.tile_n;
 details->workspace_size = gemmepi__round_up(mma->product_bytes, 256) +
    gemmepi__round_up(mma->partial_bytes, 256) + mma->sums.partial_bytes;
}

/* >>running */

/* The primary context is current. */
static gemmepi_status gemmepi__sm80_run(const gemmepi_context *context, const gemmepi__problem *problem,
    const void *built, const gemmepi__arguments *arguments,
    char *workspace, gemmepi_stream stream) {
 const gemmepi__sm80 *mma = (const gemmepi__sm80 *)built;
 gemmepi__sm80_params params = mma->params;
 char *partials = gemmepi__past(workspace, mma->product_bytes);
 gemmepi_status status = gemmepi__clear_amax(context, problem, arguments, stream);
 if (status)
  return status;
 gemmepi__point_epilogue(arguments, mma->applied, partials, &params.epilogue);
 params.a.data = arguments->pointers[GEMMEPI__A];
 params.b.data = arguments->pointers[GEMMEPI__B];
 if (mma->parts > 1)
  params.epilogue.d.data = workspace;
 status = gemmepi__launch_kernel(context, &mma->launch, &params, "the product", stream);
 if (!status && mma->parts > 1)
  status = gemmepi__run_pass(context, &mma->pass, arguments, workspace, partials, stream);
 if (status)
  return status;
 return gemmepi__run_sums(context, &mma->sums, arguments, partials,
    gemmepi__past(partials, mma->partial_bytes), stream);
}

/* >>in words */

static void gemmepi__sm80_explain(const gemmepi__problem *problem, const void *built, gemmepi__text *text) {
 const gemmepi__sm80 *sm80 = (const gemmepi__sm80 *)built;
 const gemmepi__sm80_shape *shape = &sm80->shape;
 (void)problem;
 gemmepi__append(text, "  %s: product%s, %u blocks of %u threads, tiles of %d x %d, %d stages",
    sm80->launch.name, sm80->parts > 1 ? "" : " and epilogue", sm80->launch.blocks,
    sm80->launch.threads_x, shape->tile_m, shape->tile_n, shape->stages);
 if (sm80->parts > 1)
  gemmepi__append(text, ", k in %d parts", sm80->parts);
 gemmepi__append(text, "\n");
 gemmepi__explain_pass(text, &sm80->pass.launch, "the sum of k's parts, ");
 gemmepi__explain_sums(text, &sm80->sums);
}

/* >>the engine */

static const char *gemmepi__sm80_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
 (void)context;
 (void)problem;
 return NULL;
}

static void gemmepi__sm80_choose(const gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__candidate *candidate) {
 gemmepi__sm80_cut cut = gemmepi__choose_sm80(context, problem, &candidate->microseconds);
 candidate->shape = (int)(cut.shape - gemmepi__sm80_shapes);
 candidate->parts = cut.parts;
}

static void gemmepi__sm80_tile(const gemmepi__candidate *candidate, int *tile_m, int *tile_n) {
 *tile_m = gemmepi__sm80_shapes[candidate->shape].tile_m;
 *tile_n = gemmepi__sm80_shapes[candidate->shape].tile_n;
}

static const gemmepi__engine gemmepi__sm80_engine = {"sm80",
    GEMMEPI__HAS_SM80,
    0.9,
    gemmepi__sm80_rule,
    gemmepi__sm80_choose,
    gemmepi__sm80_tile,
    GEMMEPI__HAS_SM80 ? gemmepi__sm80_build : NULL,
    gemmepi__sm80_describe,
    gemmepi__sm80_explain,
    GEMMEPI__HAS_SM80 ? gemmepi__sm80_run : NULL};
/* The kernel of the route fused for small products, gemm_small.cu: where rows or columns are few, or all is. Its warps read A and B
 from memory themselves, each a part of k. TF32 is multiplied as F32. */

#define GEMMEPI__SMALL_THREADS 256 /* gemm_small.cu, of a block */
#define GEMMEPI__SMALL_EDGE    16 /* of so many rows or columns it takes any product, */
#define GEMMEPI__SMALL_PAIRS   ((int64_t)1 << 22) /* of more those of so many multiplications in an item */

/* A way to cut the product up: its kernel is compiled for it. Columns are those of both halves. */
typedef struct gemmepi__small_shape {
 short tile_m, tile_n; /* of a block, and of each of its warps */
 short rows, columns; /* of a lane; lanes that are left divide k */
} gemmepi__small_shape;

/* Tiles of less than eight columns are for products of no more. */
static const gemmepi__small_shape gemmepi__small_shapes[] = {
 {16, 16, 4, 4}, /* first the one for everything */
 {1, 8, 1, 2},   {1, 32, 1, 8}, {2, 16, 2, 4}, {4, 16, 4, 4}, {8, 16, 4, 4},
 {8, 1, 2, 1},   {32, 1, 8, 1}, {16, 4, 4, 4}, {16, 8, 4, 4},
};

typedef struct gemmepi__small {
 gemmepi__small_shape shape;
 int applied; /* alpha is 1 and there is no C: compiled in */
 gemmepi__launch launch;
 gemmepi__plain_params params; /* all but pointers and scalars */
 size_t partial_bytes; /* BGRAD: of the kernel's sums of a tile's rows */
 gemmepi__sums sums;
} gemmepi__small;

/* >>what may go there */

static const char *gemmepi__small_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
 int64_t columns = gemmepi__half_columns(problem);
 (void)context;
 if (problem->m > GEMMEPI__SMALL_EDGE && columns > GEMMEPI__SMALL_EDGE &&
  (double)problem->m * (double)problem->n * (double)problem->k > (double)GEMMEPI__SMALL_PAIRS)
  return "it is for products of 16 rows or columns at most, or of at most 2^22 multiplications";
 return NULL;
}

static int gemmepi__small_shape_takes(const gemmepi__problem *problem, const gemmepi__small_shape *shape) {
 int halves = gemmepi__halves_in(problem), tile_n = shape->tile_n / halves;
 return shape->columns % halves == 0 &&
   (tile_n % GEMMEPI__RUN == 0 || gemmepi__half_columns(problem) <= tile_n);
}

/* With an operand of one element a line, these side by side, as one that lies along k. */
static gemmepi__problem gemmepi__small_problem(const gemmepi__problem *problem) {
 gemmepi__problem own = *problem;
 int operand;
 for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++) {
  gemmepi__view *view = &own.views[operand];
  int along_k = operand == GEMMEPI__B; /* transposed where lines lie along k */
  if (view->transposed == along_k || view->length != 1 || view->ld != 1)
   continue;
  view->transposed = along_k;
  view->length = view->ld = problem->k;
  view->lines = 1;
 }
 return own;
}

/* >>how long it takes */

/* Cycles: of a load from memory until it is there; of adding up and storing, beside the epilogue. Estimated, not measured. */
#define GEMMEPI__SMALL_LOADING   900
#define GEMMEPI__SMALL_FINISHING 700

/* Microseconds with a shape, roughly: a launch as gemm_sm80.cu's; a step of k takes a load's time or what a multiprocessor takes to
 copy, if that is more; and all no less than memory gives both operands. Estimated, not measured. */
static double gemmepi__small_microseconds(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__small_shape *shape) {
 const gemmepi__chip *chip = gemmepi__chip_of(context->arch);
 const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
 int64_t tiles = gemmepi__times(gemmepi__times(gemmepi__divide_up(problem->m, shape->tile_m),
    gemmepi__divide_up(problem->n, shape->tile_n)),
    problem->batch);
 double lanes = (double)shape->tile_m / shape->rows * shape->tile_n / shape->columns;
 double of_step = GEMMEPI__SMALL_THREADS / lanes * 128 / a->bits;
 double step = (shape->tile_m / gemmepi__copy_rate(gemmepi__copy_unit(problem, GEMMEPI__A)) +
    shape->tile_n / gemmepi__copy_rate(gemmepi__copy_unit(problem, GEMMEPI__B))) *
    of_step * a->bits / 8;
 double cycles, read = (double)(a->bytes + b->bytes) / chip->memory;
 cycles =
  ceil((double)problem->k / of_step) * (step > GEMMEPI__SMALL_LOADING ? step : GEMMEPI__SMALL_LOADING) +
  GEMMEPI__SMALL_FINISHING + GEMMEPI__RUN * gemmepi__epilogue_cycles(problem);
 cycles *= (double)gemmepi__divide_up(tiles, context->multiprocessors) / chip->megahertz;
 return 2900 / chip->megahertz + (cycles > read ? cycles : read) + gemmepi__sums_microseconds(problem);
}

static void gemmepi__small_choose(const gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__candidate *candidate) {
 gemmepi__problem own = gemmepi__small_problem(problem);
 int i;
 for (i = 0; i < (int)GEMMEPI__COUNT(gemmepi__small_shapes); i++) {
  double time = gemmepi__small_microseconds(context, &own, &gemmepi__small_shapes[i]);
  if (i && (time >= candidate->microseconds ||
    !gemmepi__small_shape_takes(problem, &gemmepi__small_shapes[i])))
   continue;
  candidate->shape = i;
  candidate->microseconds = time;
 }
}

/* >>building */

/* problem: as gemmepi__small_problem has it */
static void gemmepi__append_small_defines(gemmepi__text *text, const gemmepi__problem *problem,
    const gemmepi__small_shape *shape, int applied) {
 gemmepi__append_epilogue_defines(text, problem, gemmepi__epilogue_is_aligned(problem), 0, 0);
 gemmepi__append(text, "#define GEMMEPI_INPUT %s\n#define GEMMEPI_APPLIED %d\n",
    gemmepi__type_name(problem, GEMMEPI__A), applied);
 gemmepi__append(text, "#define GEMMEPI_TILE_M %d\n#define GEMMEPI_TILE_N %d\n", shape->tile_m,
    shape->tile_n);
 gemmepi__append(text, "#define GEMMEPI_ROWS %d\n#define GEMMEPI_COLUMNS %d\n", shape->rows,
    shape->columns);
 gemmepi__append_lines(text, problem);
}

static gemmepi_status gemmepi__small_build(gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__candidate *candidate, void *built) {
 gemmepi__problem own = gemmepi__small_problem(problem);
 gemmepi__small *small = (gemmepi__small *)built;
 const gemmepi__small_shape *shape = &gemmepi__small_shapes[candidate->shape];
 char prologue[1536], words[160];
 gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
 gemmepi_status status;
 memset(small, 0, sizeof *small);
 small->shape = *shape;
 small->applied = candidate->applied;
 status = gemmepi__lay_out_tiles(&own, shape->tile_m, shape->tile_n, GEMMEPI__SMALL_THREADS,
    &small->launch, &small->params);
 if (status)
  return status;
 small->partial_bytes = gemmepi__line_bytes(problem, small->params.epilogue.row_tiles);
 gemmepi__append_small_defines(&text, &own, shape, candidate->applied);
 gemmepi__name_kernel(&small->launch, "gemmepi_small_%s_%dx%d%s", gemmepi__type_name(problem, GEMMEPI__A),
    shape->tile_m, shape->tile_n,
    gemmepi__name_of_epilogue(problem, problem->common, words));
 status = gemmepi__get_waiting_kernel(context, "gemm_small.cu", prologue, "gemmepi_small", &small->launch);
 if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
  status = gemmepi__build_sums(context, problem, small->params.epilogue.row_tiles, &small->sums);
 return status;
}

static void gemmepi__small_describe(const void *built, gemmepi__built_details *details) {
 const gemmepi__small *small = (const gemmepi__small *)built;
 details->launch = &small->launch;
 details->pass = NULL;
 details->sums = &small->sums;
 details->tile_m = small->shape.tile_m;
 details->tile_n = small->shape.tile_n;
 details->workspace_size = gemmepi__round_up(small->partial_bytes, 256) + small->sums.partial_bytes;
}

/* >>running, and in words */

/* The primary context is current. */
static gemmepi_status gemmepi__small_run(const gemmepi_context *context, const gemmepi__problem *problem,
    const void *built, const gemmepi__arguments *arguments,
    char *workspace, gemmepi_stream stream) {
 const gemmepi__small *small = (const gemmepi__small *)built;
 gemmepi__plain_params params = small->params;
 gemmepi_status status = gemmepi__clear_amax(context, problem, arguments, stream);
 gemmepi__point_epilogue(arguments, small->applied, workspace, &params.epilogue);
 params.a.data = arguments->pointers[GEMMEPI__A];
 params.b.data = arguments->pointers[GEMMEPI__B];
 if (!status)
  status = gemmepi__launch_kernel(context, &small->launch, &params, "the product", stream);
 if (!status)
  status = gemmepi__run_sums(context, &small->sums, arguments, workspace,
    gemmepi__past(workspace, small->partial_bytes), stream);
 return status;
}

static void gemmepi__small_explain(const gemmepi__problem *problem, const void *built, gemmepi__text *text) {
 const gemmepi__small *small = (const gemmepi__small *)built;
 (void)problem;
 gemmepi__append(text,
    "  %s: product and epilogue, %u blocks of %u threads that divide k, tiles of %d x %d\n",
    small->launch.name, small->launch.blocks, small->launch.threads_x, small->shape.tile_m,
    small->shape.tile_n);
 gemmepi__explain_sums(text, &small->sums);
}

/* >>the engine */

static void gemmepi__small_tile(const gemmepi__candidate *candidate, int *tile_m, int *tile_n) {
 *tile_m = gemmepi__small_shapes[candidate->shape].tile_m;
 *tile_n = gemmepi__small_shapes[candidate->shape].tile_n;
}

/* GEMMEPI_NO_SM80 leaves out both kernels that are for 8.0 and later. */
static const gemmepi__engine gemmepi__small_engine = {"small",
    GEMMEPI__HAS_SM80,
    1,
    gemmepi__small_rule,
    gemmepi__small_choose,
    gemmepi__small_tile,
    GEMMEPI__HAS_SM80 ? gemmepi__small_build : NULL,
    gemmepi__small_describe,
    gemmepi__small_explain,
    GEMMEPI__HAS_SM80 ? gemmepi__small_run : NULL};

#define GEMMEPI__ENGINES(X) X(sm90) X(sm80) X(small)

#define GEMMEPI__BUILT_OF(name)  gemmepi__##name name;
#define GEMMEPI__ENGINE_OF(name) &gemmepi__##name##_engine,

/* What an engine has built. */
typedef union gemmepi__built {
 GEMMEPI__ENGINES(GEMMEPI__BUILT_OF)
} gemmepi__built;

static const gemmepi__engine *const gemmepi__engines[] = {GEMMEPI__ENGINES(GEMMEPI__ENGINE_OF)};

/* Adds a candidate for each engine, refused or not. like: how it is applied and what is copied, which takes copying. */
static void gemmepi__enumerate_engines(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__candidate *like, double copying,
    gemmepi__candidates *candidates) {
 int engine, count = (int)GEMMEPI__COUNT(gemmepi__engines);
 double least = GEMMEPI__NEVER;
 for (engine = 0; engine < count; engine++) {
  const gemmepi__engine *row = gemmepi__engines[engine];
  gemmepi__candidate *added = gemmepi__add_candidate(candidates, GEMMEPI_ROUTE_FUSED);
  double own;
  *added = *like;
  added->engine = engine;
  added->parts = 1;
  added->refusal = row->is_there ? row->rule(context, problem) : "left out of this program";
  if (added->refusal)
   continue;
  row->choose(context, problem, added);
  own = added->microseconds;
  added->microseconds = copying + own;
  added->rank = copying + (own < row->margin * least || own > least ? own : least);
  if (own < row->margin * least)
   least = own;
 }
}
/* The route lt: cuBLASLt runs product and epilogue in one kernel. Also the bare product of the route split. */

/* What one reduction over k may need; NVIDIA recommends 32 MiB for Hopper, and 4 MiB before. */
#define GEMMEPI__LT_WORKSPACE ((size_t)32 << 20)

/* From this k on the bound for 16-bit results, at least 1.13 (4 + k / 8) 2^-24 |v| = 4.5e-6 |v|, covers the error of
 cuBLASLt's approximate GELU: at most 3.9e-6 |v| (near v = -1.4; 1.2e-6 |v| below 0.5, 3e-7 below 0.25), measured on an
 H200 with cuBLASLt 13.1 over |v| from 2^-13 to 64. */
#define GEMMEPI__LT_GELU_MIN_K 512

/* What a route asks of cuBLASLt. */
typedef enum gemmepi__lt_use {
 GEMMEPI__LT_WHOLE, /* product and epilogue */
 GEMMEPI__LT_BARE, /* alpha A B + beta C */
 GEMMEPI__LT_BARE_ALPHA_1 /* A B alone: alpha will be 1 and beta 0 in each run */
} gemmepi__lt_use;

/* A pointer of the matmul descriptor that each run sets. */
typedef struct gemmepi__lt_pointer {
 int attribute;
 int operand; /* of ours, whose pointer it is */
} gemmepi__lt_pointer;

#define GEMMEPI__LT_MAX_POINTERS 9 /* bias or bias_grad, aux, five scales, two amax */

/* Everything a run hands to cublasLtMatmul but pointers and scalars. */
typedef struct gemmepi__lt_product {
 gemmepi__lt_matmul_desc desc;
 gemmepi__lt_layout a, b, c, d; /* ours, so cuBLASLt's A is b and its B is a */
 gemmepi__lt_algo algo;
 size_t workspace_size;
 int scalars; /* dtype of alpha and beta */
 int c_as_d; /* where C is not read, D may stand for it */
 int adds_in_place; /* see gemmepi__lt_adds_in_place */
 int pointer_count;
 gemmepi__lt_pointer pointers[GEMMEPI__LT_MAX_POINTERS];
} gemmepi__lt_product;

/* Whether the product runs on the fp8 tensor cores, whose bound is wider: see the manual. */
static int gemmepi__is_fp8_product(const gemmepi__problem *problem) {
 return gemmepi__is_fp8(problem->views[GEMMEPI__A].dtype) &&
   gemmepi__is_fp8(problem->views[GEMMEPI__B].dtype);
}

/* >>what may go there */

typedef struct gemmepi__lt_epilogue_row {
 uint64_t epilogue;
 int lt;
} gemmepi__lt_epilogue_row;

/* Row-major is folded by exchanging the operands, so that our op(B) is their A. */
static const gemmepi__lt_epilogue_row gemmepi__lt_epilogues[] = {
 {GEMMEPI_EPILOGUE_DEFAULT, GEMMEPI__CUBLASLT_EPILOGUE_DEFAULT},
 {GEMMEPI_EPILOGUE_RELU, GEMMEPI__CUBLASLT_EPILOGUE_RELU},
 {GEMMEPI_EPILOGUE_RELU_AUX, GEMMEPI__CUBLASLT_EPILOGUE_RELU_AUX},
 {GEMMEPI_EPILOGUE_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_BIAS},
 {GEMMEPI_EPILOGUE_RELU_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_RELU_BIAS},
 {GEMMEPI_EPILOGUE_RELU_AUX_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
 {GEMMEPI_EPILOGUE_DRELU, GEMMEPI__CUBLASLT_EPILOGUE_DRELU},
 {GEMMEPI_EPILOGUE_DRELU_BGRAD, GEMMEPI__CUBLASLT_EPILOGUE_DRELU_BGRAD},
 {GEMMEPI_EPILOGUE_GELU, GEMMEPI__CUBLASLT_EPILOGUE_GELU},
 {GEMMEPI_EPILOGUE_GELU_AUX, GEMMEPI__CUBLASLT_EPILOGUE_GELU_AUX},
 {GEMMEPI_EPILOGUE_GELU_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_GELU_BIAS},
 {GEMMEPI_EPILOGUE_GELU_AUX_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
 {GEMMEPI_EPILOGUE_DGELU, GEMMEPI__CUBLASLT_EPILOGUE_DGELU},
 {GEMMEPI_EPILOGUE_DGELU_BGRAD, GEMMEPI__CUBLASLT_EPILOGUE_DGELU_BGRAD},
 {GEMMEPI_EPILOGUE_BGRADB, GEMMEPI__CUBLASLT_EPILOGUE_BGRADA},
 {GEMMEPI_EPILOGUE_BGRADA, GEMMEPI__CUBLASLT_EPILOGUE_BGRADB},
};

/* cuBLASLt's number for an epilogue, 0 if it has none. */
static int gemmepi__lt_epilogue(uint64_t epilogue) {
 size_t i;
 if (gemmepi__activation(epilogue) == GEMMEPI_NONE)
  epilogue &= ~GEMMEPI_BACKWARD; /* the derivative is 1 */
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__lt_epilogues); i++)
  if (gemmepi__lt_epilogues[i].epilogue == epilogue)
   return gemmepi__lt_epilogues[i].lt;
 return 0;
}

/* Where cuBLASLt's result is looser than the contract: the sentence, or NULL. Measured, see the manual. */
static const char *gemmepi__lt_breach(const gemmepi__problem *problem) {
 int is_narrow = problem->views[GEMMEPI__D].bits <= 16;
 uint32_t activation = gemmepi__activation(problem->epilogue);
 if (activation == GEMMEPI_RELU && gemmepi__has(problem, GEMMEPI_AUX))
  return "its RELU mask has the bit for v >= 0, ours for v > 0";
 if (problem->flags & (GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX) &&
  (problem->views[GEMMEPI__A].dtype == GEMMEPI_E5M2 ||
   problem->views[GEMMEPI__B].dtype == GEMMEPI_E5M2))
  return "its amax is NaN where an infinity of E5M2 makes it infinite";
 if (activation == GEMMEPI_GELU_TANH && problem->accumulator == GEMMEPI_F64)
  return "its GELU is off by up to 3e-10 in F64";
 if (activation == GEMMEPI_GELU_TANH && !is_narrow && !gemmepi__is_fp8_product(problem))
  return "its GELU is off by up to 5.3e-6";
 if (activation == GEMMEPI_GELU_TANH && !gemmepi__is_fp8_product(problem) &&
  problem->k < GEMMEPI__LT_GELU_MIN_K)
  return "its GELU is off by up to 5.3e-6, which the bound for k below 512 does not cover";
 if (gemmepi__has(problem, GEMMEPI_BGRAD) && is_narrow)
  return "it sums bias_grad from values already rounded to D's type";
 return NULL;
}

/* From this many elements of D on a 16-bit DRELU costs cuBLASLt more than a pass of ours: on an H200 1.2 to 1.3 times a
 bare product and a pass at 4096 x 4096 x 4096 and 8192 x 3072 x 768 (m, n, k), as much below. */
#define GEMMEPI__LT_DRELU_MAX_SIZE ((int64_t)1 << 23)

/* Where cuBLASLt's epilogue is slower than the route split: the sentence, or NULL. */
static const char *gemmepi__lt_slower(const gemmepi__problem *problem) {
 if (gemmepi__activation(problem->epilogue) == GEMMEPI_RELU && gemmepi__has(problem, GEMMEPI_BACKWARD) &&
  problem->views[GEMMEPI__D].bits == 16 && problem->m > GEMMEPI__LT_DRELU_MAX_SIZE / problem->n)
  return "its DRELU is slower than a pass of ours from 2^23 elements on";
 return NULL;
}

/* What cuBLASLt takes of types and scales is for its heuristic to say, but for the cases below: there it would compute
 something else, or was not seen to compute the same. */
static const char *gemmepi__lt_type_rule(const gemmepi__problem *problem) {
 const gemmepi__view *views = problem->views, *aux = &views[GEMMEPI__AUX];
 int d = views[GEMMEPI__D].dtype, d_is_fp8 = gemmepi__is_fp8(d), is_fp8 = gemmepi__is_fp8_product(problem);
 if (views[GEMMEPI__A].dtype != views[GEMMEPI__B].dtype && !is_fp8)
  return "a and b differ in dtype";
 if (problem->common == GEMMEPI_I8)
  return d == GEMMEPI_I32 ? "with alpha or beta its I32 results are not modulo 2^32"
    : "it has no scales for I8";
 if (!is_fp8 && d != GEMMEPI_F32 && d != problem->common && !gemmepi__takes_scale(d))
  return "it was seen to write past a 16-bit d of F32 operands";
 if (gemmepi__takes_scale(d) && !is_fp8)
  return "it stores fp8 and I8 of such operands alone";
 if (views[GEMMEPI__C].dtype != d && !d_is_fp8)
  return "c and d differ in dtype";
 if (views[GEMMEPI__BIAS].dtype && views[GEMMEPI__BIAS].dtype != d && !is_fp8)
  return "bias and d differ in dtype";
 if (views[GEMMEPI__BIAS_GRAD].dtype && views[GEMMEPI__BIAS_GRAD].dtype != d)
  return "bias_grad and d differ in dtype";
 if (aux->dtype && aux->bits != 1 && aux->dtype != d && !d_is_fp8)
  return "aux and d differ in dtype";
 if (gemmepi__has(problem, GEMMEPI_BACKWARD) &&
  gemmepi__activation(problem->epilogue) == GEMMEPI_GELU_TANH)
  return "its GELU derivative is off by up to 1.6e-5, and wrong where aux is D";
 if (views[GEMMEPI__AMAX_D].dtype && !d_is_fp8)
  return "it writes amax of fp8 results alone";
 if (views[GEMMEPI__AMAX_AUX].dtype && !gemmepi__is_fp8(aux->dtype))
  return "it writes amax of an fp8 aux alone";
 return NULL;
}

static const char *gemmepi__lt_scale_rule(const gemmepi__problem *problem) {
 const gemmepi__view *views = problem->views;
 int operand, summed = gemmepi__has(problem, GEMMEPI_BGRAD_A) ? GEMMEPI__A : GEMMEPI__B;
 for (operand = GEMMEPI__A; operand <= GEMMEPI__RESIDUAL && problem->batch > 1; operand++)
  if (views[operand].scale > GEMMEPI_SCALE_TENSOR || views[GEMMEPI__SCALE_OF(operand)].batch_stride)
   return "a batch has scales that are more than one number";
 if (gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) && views[summed].scale)
  return "it sums an operand without its scale";
 if (gemmepi__has(problem, GEMMEPI_BACKWARD) && views[GEMMEPI__AUX].scale)
  return "it has no scale for an aux that is read";
 return NULL;
}

/* The rule that keeps a problem from cuBLASLt, or NULL. */
static const char *gemmepi__lt_rule(const gemmepi__problem *problem) {
 const gemmepi__view *views = problem->views;
 const gemmepi__view *aux = &views[GEMMEPI__AUX];
 const char *rule;
 if (problem->flags & GEMMEPI_DEVICE_SCALARS)
  return "alpha and beta lie on the device as doubles";
 if (problem->k == 0)
  return "k is 0";
 if (!gemmepi__lt_epilogue(problem->epilogue))
  return "cuBLASLt has no such epilogue";
 rule = gemmepi__lt_type_rule(problem);
 if (!rule)
  rule = gemmepi__lt_scale_rule(problem);
 if (rule)
  return rule;
 if (aux->dtype && aux->bits != 1 && (aux->ld % 8 || aux->batch_stride % 8))
  return "aux.ld or aux.batch_stride is no multiple of 8";
 if (views[GEMMEPI__BIAS_GRAD].dtype && problem->batch > 1 && views[GEMMEPI__BIAS_GRAD].batch_stride == 0)
  return "it does not sum bias_grad over the batch";
 if (gemmepi__lt_slower(problem))
  return gemmepi__lt_slower(problem);
 return problem->flags & GEMMEPI_RELAXED ? NULL : gemmepi__lt_breach(problem);
}

/* >>building */

static gemmepi_status gemmepi__open_lt(gemmepi_context *context) {
 gemmepi_status status = GEMMEPI_OK;
 int result;
 if (context->lt_handle)
  return GEMMEPI_OK;
 if (!context->has_cublaslt)
  status = gemmepi__load_cublaslt(&context->loader, &context->cublaslt);
 if (status)
  return status;
 context->has_cublaslt = 1;
 result = context->cublaslt.create(&context->lt_handle);
 if (result) {
  context->lt_handle = NULL;
  return gemmepi__cublaslt_failed(&context->cublaslt, result, "cublasLtCreate");
 }
 return GEMMEPI_OK;
}

static int gemmepi__lt_type(int dtype) {
 static const int types[] = {
  GEMMEPI__CUDA_R_32F,     GEMMEPI__CUDA_R_32F,  GEMMEPI__CUDA_R_64F,
  GEMMEPI__CUDA_R_16F,     GEMMEPI__CUDA_R_16BF, GEMMEPI__CUDA_R_8F_E4M3,
  GEMMEPI__CUDA_R_8F_E5M2, GEMMEPI__CUDA_R_8I,   GEMMEPI__CUDA_R_32I,
 }; /* by gemmepi_dtype */
 return types[dtype];
}

/* A view as cuBLASLt sees it: column-major, so a line of ours is a column. */
static int gemmepi__lt_layout_of(const gemmepi__cublaslt *lt, const gemmepi__view *view, int64_t batch,
    gemmepi__lt_layout *layout) {
 int32_t count = (int32_t)batch;
 int result = lt->layout_init(layout, sizeof *layout, gemmepi__lt_type(view->dtype),
    (uint64_t)view->length, (uint64_t)view->lines, view->ld);
 if (!result && batch > 1)
  result = lt->layout_set_attribute(layout, GEMMEPI__CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
    sizeof count);
 if (!result && batch > 1)
  result = lt->layout_set_attribute(layout, GEMMEPI__CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
    &view->batch_stride, sizeof view->batch_stride);
 return result;
}

static int gemmepi__lt_set(const gemmepi__cublaslt *lt, gemmepi__lt_product *product, int attribute,
    const void *value, size_t size) {
 return lt->matmul_desc_set_attribute(&product->desc, attribute, value, size);
}

/* Notes a pointer that runs set; here it is set to its alignment alone, which the heuristic reads. */
static int gemmepi__lt_add_pointer(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
    gemmepi__lt_product *product, int attribute, int operand) {
 void *aligned = (void *)(uintptr_t)problem->views[operand].alignment;
 gemmepi__lt_pointer *pointer = &product->pointers[product->pointer_count++];
 pointer->attribute = attribute;
 pointer->operand = operand;
 return gemmepi__lt_set(lt, product, attribute, &aligned, sizeof aligned);
}

static int gemmepi__lt_describe_vector(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
    int operand, gemmepi__lt_product *product) {
 const gemmepi__view *vector = &problem->views[operand];
 int32_t type = gemmepi__lt_type(vector->dtype);
 int result =
  gemmepi__lt_add_pointer(lt, problem, product, GEMMEPI__CUBLASLT_MATMUL_DESC_BIAS_POINTER, operand);
 /* D's type is the default, but beside fp8 operands BF16 is, also where D is F32 */
 if (!result && (vector->dtype != problem->views[GEMMEPI__D].dtype || gemmepi__is_fp8_product(problem)))
  result =
   gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
 if (!result && problem->batch > 1)
  result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE,
    &vector->batch_stride, sizeof vector->batch_stride);
 return result;
}

static int gemmepi__lt_describe_aux(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
    gemmepi__lt_product *product) {
 const gemmepi__view *aux = &problem->views[GEMMEPI__AUX];
 int32_t type = gemmepi__lt_type(aux->dtype);
 int result = gemmepi__lt_add_pointer(lt, problem, product,
    GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, GEMMEPI__AUX);
 if (!result && aux->bits != 1 && aux->dtype != problem->views[GEMMEPI__D].dtype)
  result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &type,
    sizeof type);
 if (!result)
  result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux->ld,
    sizeof aux->ld);
 if (!result && problem->batch > 1)
  result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
    &aux->batch_stride, sizeof aux->batch_stride);
 if (!result && problem->views[GEMMEPI__AMAX_AUX].dtype)
  result = gemmepi__lt_add_pointer(
   lt, problem, product, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, GEMMEPI__AMAX_AUX);
 return result;
}

static int gemmepi__lt_describe_epilogue(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
    gemmepi__lt_product *product) {
 int32_t epilogue = gemmepi__lt_epilogue(problem->epilogue);
 int vector = gemmepi__has(problem, GEMMEPI_BIAS) ? GEMMEPI__BIAS : GEMMEPI__BIAS_GRAD;
 int result =
  gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
 if (!result && gemmepi__has_operand(problem, vector))
  result = gemmepi__lt_describe_vector(lt, problem, vector, product);
 if (!result && gemmepi__has_operand(problem, GEMMEPI__AUX) &&
  gemmepi__activation(problem->epilogue) != GEMMEPI_NONE)
  result = gemmepi__lt_describe_aux(lt, problem, product);
 if (!result && gemmepi__has_operand(problem, GEMMEPI__AMAX_D))
  result = gemmepi__lt_add_pointer(lt, problem, product, GEMMEPI__CUBLASLT_MATMUL_DESC_AMAX_D_POINTER,
    GEMMEPI__AMAX_D);
 return result;
}

/* Our matrix, and the attributes of its scale; our A is cuBLASLt's B. */
typedef struct gemmepi__lt_scale_row {
 int operand, pointer, mode;
} gemmepi__lt_scale_row;

static const gemmepi__lt_scale_row gemmepi__lt_scales[] = {
 {GEMMEPI__A, GEMMEPI__CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, GEMMEPI__CUBLASLT_MATMUL_DESC_B_SCALE_MODE},
 {GEMMEPI__B, GEMMEPI__CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, GEMMEPI__CUBLASLT_MATMUL_DESC_A_SCALE_MODE},
 {GEMMEPI__C, GEMMEPI__CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, GEMMEPI__CUBLASLT_MATMUL_DESC_C_SCALE_MODE},
 {GEMMEPI__D, GEMMEPI__CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, GEMMEPI__CUBLASLT_MATMUL_DESC_D_SCALE_MODE},
 {GEMMEPI__AUX, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER,
  GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE},
};

/* A bare product takes the scales that change along k; the pass takes the others. */
static int gemmepi__lt_describe_scales(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
    gemmepi__lt_use use, gemmepi__lt_product *product) {
 static const int32_t modes[] = {0, GEMMEPI__CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
    GEMMEPI__CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
    GEMMEPI__CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
    GEMMEPI__CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F};
 size_t i;
 int result = 0;
 for (i = 0; i < GEMMEPI__COUNT(gemmepi__lt_scales) && !result; i++) {
  const gemmepi__lt_scale_row *row = &gemmepi__lt_scales[i];
  int mode = problem->views[row->operand].scale;
  int bare = use != GEMMEPI__LT_WHOLE;
  if (!mode ||
   (bare && (row->operand > GEMMEPI__B || !gemmepi__scale_varies_along_k(problem, row->operand))))
   continue;
  result = gemmepi__lt_add_pointer(lt, problem, product, row->pointer, GEMMEPI__SCALE_OF(row->operand));
  if (!result && mode != GEMMEPI_SCALE_TENSOR) /* a library without the attribute has that mode alone */
   result = gemmepi__lt_set(lt, product, row->mode, &modes[mode], sizeof modes[mode]);
 }
 return result;
}

static int gemmepi__lt_describe(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
    const gemmepi__view *c, const gemmepi__view *d,
    gemmepi__lt_product *product) {
 const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
 int sums = gemmepi__product_dtype(problem);
 int compute = sums == GEMMEPI_F64                        ? GEMMEPI__CUBLAS_COMPUTE_64F
    : sums == GEMMEPI_I32                      ? GEMMEPI__CUBLAS_COMPUTE_32I
    : problem->compute == GEMMEPI_COMPUTE_TF32 ? GEMMEPI__CUBLAS_COMPUTE_32F_FAST_TF32
    : GEMMEPI__CUBLAS_COMPUTE_32F;
 int32_t transpose_a = b->transposed ? GEMMEPI__CUBLAS_OP_T : GEMMEPI__CUBLAS_OP_N;
 int32_t transpose_b = a->transposed ? GEMMEPI__CUBLAS_OP_T : GEMMEPI__CUBLAS_OP_N;
 int result;
 int8_t fast = 1;
 product->scalars = sums;
 product->c_as_d = c->dtype == d->dtype;
 result = lt->matmul_desc_init(&product->desc, sizeof product->desc, compute, gemmepi__lt_type(sums));
 if (!result && (problem->flags & GEMMEPI_FAST_ACCUMULATION))
  result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
 if (!result)
  result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_TRANSA, &transpose_a,
    sizeof transpose_a);
 if (!result)
  result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_TRANSB, &transpose_b,
    sizeof transpose_b);
 if (!result)
  result = gemmepi__lt_layout_of(lt, b, problem->batch, &product->b);
 if (!result)
  result = gemmepi__lt_layout_of(lt, a, problem->batch, &product->a);
 if (!result)
  result = gemmepi__lt_layout_of(lt, c, problem->batch, &product->c);
 if (!result)
  result = gemmepi__lt_layout_of(lt, d, problem->batch, &product->d);
 return result;
}

static int gemmepi__lt_prefer(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
    const gemmepi__view *c, const gemmepi__view *d,
    gemmepi__lt_preference *preference) {
 static const int alignments[] = {GEMMEPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
    GEMMEPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
    GEMMEPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
    GEMMEPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
 size_t workspace = GEMMEPI__LT_WORKSPACE, i;
 /* the other schemes add up in D's type or in place, which rounds more than once */
 uint32_t schemes = GEMMEPI__CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, alignment;
 const gemmepi__view *views[4];
 int result = lt->preference_init(preference, sizeof *preference);
 views[0] = &problem->views[GEMMEPI__B];
 views[1] = &problem->views[GEMMEPI__A];
 views[2] = c;
 views[3] = d;
 if (!result)
  result = lt->preference_set_attribute(preference, GEMMEPI__CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
    &workspace, sizeof workspace);
 if (!result)
  result = lt->preference_set_attribute(preference, GEMMEPI__CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
    &schemes, sizeof schemes);
 for (i = 0; i < GEMMEPI__COUNT(alignments) && !result; i++) {
  alignment = (uint32_t)views[i]->alignment;
  result = lt->preference_set_attribute(preference, alignments[i], &alignment, sizeof alignment);
 }
 return result;
}

static int gemmepi__lt_config(const gemmepi__cublaslt *lt, const gemmepi__lt_algo *algo, int attribute) {
 int32_t value = 0;
 size_t written = 0;
 return lt->algo_config_get_attribute(algo, attribute, &value, sizeof value, &written) ? 0 : value;
}

/* The algorithm that was seen to keep its sums in F32 until bias and GELU are done (H200, cuBLASLt 13.1). Others, 24
 for one, round them to 16 bits before: off by a unit of the sum, however small the result is. */
#define GEMMEPI__LT_ROUNDS_ONCE 66

/* An algorithm for one row or column that leaves D as it is where alpha is 0 (the same library). */
#define GEMMEPI__LT_SKIPS_ALPHA_0 13

/* NULL if an algorithm keeps the contract for the problem, else what it breaks. */
static const char *gemmepi__lt_algo_fault(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
    gemmepi__lt_use use, const gemmepi__lt_algo *algo) {
 int id = gemmepi__lt_config(lt, algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_ID);
 int rounds_early =
  problem->views[GEMMEPI__D].bits <= 16 && !(problem->flags & GEMMEPI_RELAXED) &&
  use == GEMMEPI__LT_WHOLE &&
  (gemmepi__has(problem, GEMMEPI_BIAS) || gemmepi__activation(problem->epilogue) == GEMMEPI_GELU_TANH);
 if (id == GEMMEPI__LT_SKIPS_ALPHA_0 && use != GEMMEPI__LT_BARE_ALPHA_1)
  return "do not write D where alpha is 0";
 if (rounds_early && id != GEMMEPI__LT_ROUNDS_ONCE)
  return "may round to 16 bits before the epilogue";
 return NULL;
}

/* Whether D = alpha A B + D is left to the memory, which adds in D's type what was rounded to it before. So algorithm 66
 does (H200, cuBLASLt 13.1) where it knows C to be D and beta to be 1, with no epilogue and with BIAS. */
static int gemmepi__lt_adds_in_place(const gemmepi__problem *problem, gemmepi__lt_use use) {
 return problem->views[GEMMEPI__D].bits == 16 && !(problem->flags & GEMMEPI_RELAXED) &&
   use == GEMMEPI__LT_WHOLE && gemmepi__activation(problem->epilogue) == GEMMEPI_NONE;
}

#define GEMMEPI__LT_ANSWERS 8

/* Where k is short cuBLASLt's heuristic puts tiles of 128 x 256 first, which store their results while nothing is multiplied.
 On an H200 (cuBLASLt 13.1, BF16, products of 1000 to 16384 rows, 768 to 8192 columns and k 200 to 2048, all layouts) an
 answer with one of these tiles took 0.90 of the first answer's time in the mean and 1.03 at most where that has two waves
 or more (238 and 195 products; 0.87 and 1.00 where the results are F32); with fewer waves up to 1.06. F16 is taken to be
 like BF16. */
static const int gemmepi__lt_short_tiles[] = {20, 29}; /* 128 x 128, 128 x 160 */
#define GEMMEPI__LT_SHORT_K     2048
#define GEMMEPI__LT_SHORT_WAVES 2

/* The answer to take, of `count` good ones in the heuristic's order. */
static int gemmepi__lt_choose(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__lt_heuristic *good, int count) {
 const gemmepi__cublaslt *lt = &context->cublaslt;
 size_t t;
 int i;
 if (context->arch != 90 || gemmepi__dtype((gemmepi_dtype)problem->common)->size != 2 ||
  problem->k > GEMMEPI__LT_SHORT_K || good[0].waves < GEMMEPI__LT_SHORT_WAVES)
  return 0;
 for (t = 0; t < GEMMEPI__COUNT(gemmepi__lt_short_tiles); t++)
  for (i = 0; i < count; i++)
   if (gemmepi__lt_config(lt, &good[i].algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_TILE_ID) ==
    gemmepi__lt_short_tiles[t] &&
    gemmepi__lt_config(lt, &good[i].algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_SPLITK_NUM) <= 1)
    return i;
 return 0;
}

static gemmepi_status gemmepi__lt_ask(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__lt_use use, const gemmepi__view *c, const gemmepi__view *d,
    gemmepi__lt_product *product) {
 const gemmepi__cublaslt *lt = &context->cublaslt;
 gemmepi__lt_heuristic answers[GEMMEPI__LT_ANSWERS];
 gemmepi__lt_preference preference;
 const char *fault = NULL;
 int count = 0, good = 0, i, result;
 memset(product, 0, sizeof *product);
 if (problem->batch > INT_MAX)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "batch is %lld; cuBLASLt takes up to 2^31 - 1",
    (long long)problem->batch);
 result = gemmepi__lt_describe(lt, problem, c, d, product);
 if (!result)
  result = gemmepi__lt_describe_scales(lt, problem, use, product);
 if (!result && use == GEMMEPI__LT_WHOLE)
  result = gemmepi__lt_describe_epilogue(lt, problem, product);
 if (!result)
  result = gemmepi__lt_prefer(lt, problem, c, d, &preference);
 if (!result)
  result =
   lt->algo_get_heuristic(context->lt_handle, &product->desc, &product->b, &product->a, &product->c,
    &product->d, &preference, GEMMEPI__LT_ANSWERS, answers, &count);
 for (i = 0; i < count && !result; i++) {
  const char *found =
   answers[i].state ? NULL : gemmepi__lt_algo_fault(lt, problem, use, &answers[i].algo);
  if (!found && !answers[i].state)
   answers[good++] = answers[i];
  fault = found ? found : fault;
 }
 if (good) {
  const gemmepi__lt_heuristic *chosen = &answers[gemmepi__lt_choose(context, problem, answers, good)];
  product->algo = chosen->algo;
  product->workspace_size = chosen->workspace_size;
  product->adds_in_place = gemmepi__lt_adds_in_place(problem, use);
  return GEMMEPI_OK;
 }
 if (fault)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "cuBLASLt %d's algorithms for this shape %s", lt->version,
    fault);
 if (result && result != GEMMEPI__CUBLAS_STATUS_NOT_SUPPORTED &&
  result != GEMMEPI__CUBLAS_STATUS_INVALID_VALUE)
  return gemmepi__cublaslt_failed(lt, result, "asking cuBLASLt for an algorithm");
 return gemmepi__fail(GEMMEPI_UNSUPPORTED, "cuBLASLt %d has no algorithm for it (%s)", lt->version,
    lt->get_status_string(result ? result : GEMMEPI__CUBLAS_STATUS_NOT_SUPPORTED));
}

/* Asks cuBLASLt for an algorithm. c and d are the problem's, or those of a bare product into a buffer of ours.
 GEMMEPI_UNSUPPORTED with the sentence if cuBLASLt has none. Fast accumulation is a permission: block-scaled products do
 not have it. */
static gemmepi_status gemmepi__lt_build(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__lt_use use, const gemmepi__view *c, const gemmepi__view *d,
    gemmepi__lt_product *product) {
 gemmepi_status status = gemmepi__lt_ask(context, problem, use, c, d, product);
 gemmepi__problem slow = *problem;
 slow.flags &= ~GEMMEPI_FAST_ACCUMULATION;
 if (status == GEMMEPI_UNSUPPORTED && slow.flags != problem->flags)
  status = gemmepi__lt_ask(context, &slow, use, c, d, product);
 return status;
}

/* >>running */

/* What one run hands over beside the plan's product. */
typedef struct gemmepi__lt_call {
 double alpha, beta;
 const void *a, *b, *c;
 void *d, *workspace;
} gemmepi__lt_call;

typedef union gemmepi__lt_scalar {
 double f64;
 float f32;
 int32_t i32;
} gemmepi__lt_scalar;

static gemmepi__lt_scalar gemmepi__lt_scalar_of(int dtype, double value) {
 gemmepi__lt_scalar scalar;
 if (dtype == GEMMEPI_F64)
  scalar.f64 = value;
 else if (dtype == GEMMEPI_I32)
  scalar.i32 = (int32_t)value;
 else
  scalar.f32 = (float)value;
 return scalar;
}

/* Whether cuBLASLt refused to start, rather than failed while it ran. */
static int gemmepi__lt_refused(int result) {
 return result == GEMMEPI__CUBLAS_STATUS_INVALID_VALUE || result == GEMMEPI__CUBLAS_STATUS_ARCH_MISMATCH ||
   result == GEMMEPI__CUBLAS_STATUS_INTERNAL_ERROR || result == GEMMEPI__CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Whether D = alpha A B + D is to be kept from the memory. */
static int gemmepi__lt_is_in_place(const gemmepi__lt_product *product, const gemmepi__lt_call *call) {
 return product->adds_in_place && (float)call->beta == 1 && call->c == call->d;
}

/* Whether it cannot be kept, and another route is to run it: the sentence, or NULL. */
static const char *gemmepi__lt_rounds_early(const gemmepi_context *context,
    const gemmepi__lt_product *product,
    const gemmepi__lt_call *call) {
 if (!gemmepi__lt_is_in_place(product, call) || ((float)call->alpha == 1 && context->ones))
  return NULL;
 return context->ones ? "with such an alpha it rounds the product to d's type before it adds d"
    : "without scalars on the device it rounds the product to d's type before it adds d";
}

/* D = A B + D, which a product that adds in place makes right where it does not know that beta is 1: where beta lies on the
 device, and alpha too. */
static int gemmepi__lt_hide_scalars(const gemmepi_context *context, gemmepi__lt_product *run,
    const void **alpha, const void **beta) {
 int32_t mode = GEMMEPI__CUBLASLT_POINTER_MODE_DEVICE;
 *alpha = (const float *)(uintptr_t)context->ones;
 *beta = (const float *)(uintptr_t)context->ones + 1;
 return gemmepi__lt_set(&context->cublaslt, run, GEMMEPI__CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode,
    sizeof mode);
}

/* The primary context is current. UNSUPPORTED, and nothing runs, where cuBLASLt refuses what its heuristic had accepted. */
static gemmepi_status gemmepi__lt_run(const gemmepi_context *context, const gemmepi__lt_product *product,
    const gemmepi__arguments *arguments, const gemmepi__lt_call *call,
    gemmepi_stream stream) {
 const gemmepi__cublaslt *lt = &context->cublaslt;
 gemmepi__lt_product run = *product; /* the plan's own stays as it is: other threads use it */
 gemmepi__lt_scalar alpha = gemmepi__lt_scalar_of(run.scalars, call->alpha);
 gemmepi__lt_scalar beta = gemmepi__lt_scalar_of(run.scalars, call->beta);
 const void *c = call->c, *at_alpha = &alpha, *at_beta = &beta;
 int in_place = gemmepi__lt_is_in_place(&run, call), result = 0, i;
 for (i = 0; i < run.pointer_count && !result; i++)
  result = gemmepi__lt_set(lt, &run, run.pointers[i].attribute,
    &arguments->pointers[run.pointers[i].operand], sizeof(void *));
 if (!result && in_place)
  result = gemmepi__lt_hide_scalars(context, &run, &at_alpha, &at_beta);
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
 if (gemmepi__lt_refused(result) &&
  !(result == GEMMEPI__CUBLAS_STATUS_INTERNAL_ERROR && call->beta != 0 && call->c == call->d))
  return gemmepi__fail(GEMMEPI_UNSUPPORTED,
    "cublasLtMatmul refused what its heuristic had accepted: %s (%d)",
    lt->get_status_name(result), result);
 return result ? gemmepi__cublaslt_failed(lt, result, "cublasLtMatmul") : GEMMEPI_OK;
}

/* >>telling */

/* Rows x columns of cuBLASLt's tile, by CUBLASLT_ALGO_CONFIG_TILE_ID from 1 on. */
static const short gemmepi__lt_tiles[][2] = {
 {8, 8},    {8, 16},    {16, 8},    {8, 32},    {16, 16},   {32, 8},    {8, 64},   {16, 32},  {32, 16},
 {64, 8},   {32, 32},   {32, 64},   {64, 32},   {32, 128},  {64, 64},   {128, 32}, {64, 128}, {128, 64},
 {64, 256}, {128, 128}, {256, 64},  {64, 512},  {128, 256}, {256, 128}, {512, 64}, {64, 96},  {96, 64},
 {96, 128}, {128, 160}, {160, 128}, {192, 128}, {128, 192}, {128, 96},  {32, 256}, {256, 32},
};

/* The algorithm in words; its tile in rows and columns of our D, 0 where its number is not in the table. */
static void gemmepi__lt_describe_algo(const gemmepi__cublaslt *lt, const gemmepi__lt_product *product,
    char *text, size_t size, int *tile_m, int *tile_n) {
 int id = gemmepi__lt_config(lt, &product->algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_ID);
 int tile = gemmepi__lt_config(lt, &product->algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_TILE_ID);
 int split_k = gemmepi__lt_config(lt, &product->algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
 int known = tile >= 1 && tile <= (int)GEMMEPI__COUNT(gemmepi__lt_tiles);
 *tile_n = known ? gemmepi__lt_tiles[tile - 1][0] : 0;
 *tile_m = known ? gemmepi__lt_tiles[tile - 1][1] : 0;
 snprintf(text, size, "cuBLASLt %d algorithm %d, tile %d, split-k %d", lt->version, id, tile, split_k);
}
/* The route split: a cuBLASLt product, then what cuBLASLt's epilogue cannot do, in one pass of ours, and sums.

 The product takes cuBLASLt's whole epilogue where only sums of an operand are left to do. Else it is bare, in the type
 of its sums: into D itself where D has that type and the pass reads nothing that may be D, else into workspace. So the
 result is rounded once. Operands that cuBLASLt does not multiply as they are (fp8 in other layouts, mixed types) are
 first converted, without loss, to the smallest type that holds both. */

typedef struct gemmepi__split {
 int has_product; /* 0: k is 0 */
 int bare; /* the product leaves the epilogue to the pass */
 int to_workspace; /* the bare product goes to workspace, else to D */
 int product_takes_c; /* alpha and beta C are the product's, else the pass's */
 gemmepi__convert converts[2]; /* of A and B */
 gemmepi__lt_product product;
 gemmepi__pass pass;
 gemmepi__sums sums;
 size_t product_bytes;
} gemmepi__split;

/* >>building */

/* Where the bare product goes, and whether it takes alpha and beta C. alone: it must not. */
static gemmepi__view gemmepi__product_view(const gemmepi__problem *problem, int alone,
    gemmepi__split *split) {
 gemmepi__view view = problem->views[GEMMEPI__D];
 int sums = gemmepi__product_dtype(problem);
 int reads_aside = gemmepi__has(problem, GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL); /* what may be D */
 /* factors that the pass multiplies by come before beta C */
 int scaled = problem->views[GEMMEPI__A].scale || problem->views[GEMMEPI__B].scale;
 /* with alpha or beta cuBLASLt's I32 results are not modulo 2^32 */
 alone = alone || scaled || sums == GEMMEPI_I32 || (problem->flags & GEMMEPI_DEVICE_SCALARS);
 split->product_takes_c =
  problem->views[GEMMEPI__C].dtype == sums && sums == problem->accumulator && !alone && problem->k != 0;
 reads_aside = reads_aside || (!split->product_takes_c && problem->views[GEMMEPI__C].dtype == view.dtype);
 split->to_workspace = view.dtype != sums || reads_aside || gemmepi__has(problem, GEMMEPI_GATED);
 return split->to_workspace ? gemmepi__product_in_workspace(problem, sums) : view;
}

/* The problem without the sums of an operand. */
static gemmepi__problem gemmepi__without_sums(const gemmepi__problem *problem) {
 gemmepi__problem rest = *problem;
 if (gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B)) {
  rest.epilogue &= ~(GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD);
  memset(&rest.views[GEMMEPI__BIAS_GRAD], 0, sizeof rest.views[GEMMEPI__BIAS_GRAD]);
 }
 return rest;
}

/* What keeps a bare product from cuBLASLt whatever its heuristic says, or NULL. */
static const char *gemmepi__bare_rule(const gemmepi__problem *problem) {
 const gemmepi__view *views = problem->views;
 int varies = gemmepi__scale_varies_along_k(problem, GEMMEPI__A) +
    gemmepi__scale_varies_along_k(problem, GEMMEPI__B);
 if (views[GEMMEPI__A].dtype != views[GEMMEPI__B].dtype && !gemmepi__is_fp8_product(problem))
  return "a and b differ in dtype";
 if (varies && (varies < 2 || !gemmepi__is_fp8_product(problem)))
  return "it takes scales along k of both fp8 operands, or of none";
 if (varies && problem->batch > 1)
  return "a batch has scales that are more than one number";
 if (problem->common == GEMMEPI_I8 &&
  (problem->n % 4 || problem->k % 4)) /* so its manual; its heuristic takes some */
  return "n or k of a product of I8 is no multiple of 4";
 if (problem->common == GEMMEPI_I8 && problem->accumulator != GEMMEPI_I32 && problem->k > 131071)
  return "sums of more than 131071 products of I8 may pass 2^31";
 return NULL;
}

/* The product without its epilogue. Where cuBLASLt's algorithms are not to be trusted with alpha and beta, the pass takes
 both. */
static gemmepi_status gemmepi__build_bare(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__view *view, gemmepi__split *split) {
 const char *rule = gemmepi__bare_rule(problem);
 gemmepi_status status = GEMMEPI_OK;
 int alone;
 if (rule && split->has_product)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED, "%s", rule);
 for (alone = 0; alone < 2; alone++) {
  *view = gemmepi__product_view(problem, alone, split);
  if (!split->has_product)
   return GEMMEPI_OK;
  if (split->to_workspace)
   split->product_bytes = gemmepi__bytes_for(gemmepi__times(problem->batch, view->batch_stride),
    (size_t)(view->bits / 8));
  status = gemmepi__lt_build(
   context, problem, split->product_takes_c ? GEMMEPI__LT_BARE : GEMMEPI__LT_BARE_ALPHA_1,
   split->product_takes_c ? &problem->views[GEMMEPI__C] : view, view, &split->product);
  if (status != GEMMEPI_UNSUPPORTED || !split->product_takes_c)
   break;
 }
 return status;
}

/* The bare product of converted operands. UNSUPPORTED where a conversion has nothing to give. */
static gemmepi_status gemmepi__build_converted(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__view *view, gemmepi__split *split) {
 gemmepi__problem converted = *problem;
 gemmepi_status status = GEMMEPI_OK;
 int operand;
 if (problem->common == GEMMEPI_I8 || (problem->views[GEMMEPI__A].dtype == problem->common &&
    problem->views[GEMMEPI__B].dtype == problem->common))
  return GEMMEPI_UNSUPPORTED;
 if (gemmepi__scale_varies_along_k(problem, GEMMEPI__A) ||
  gemmepi__scale_varies_along_k(problem, GEMMEPI__B))
  return gemmepi__fail(GEMMEPI_UNSUPPORTED,
    "scales that change along k cannot be taken out of a converted product");
 for (operand = GEMMEPI__A; operand <= GEMMEPI__B && !status; operand++)
  if (problem->views[operand].dtype != problem->common)
   status = gemmepi__build_convert(context, problem, operand, &converted.views[operand],
    &split->converts[operand]);
 /* the pass still multiplies by the operands' scales */
 for (operand = GEMMEPI__A; operand <= GEMMEPI__B && !status; operand++)
  converted.views[operand].scale = problem->views[operand].scale;
 converted.flags &= ~GEMMEPI_FAST_ACCUMULATION;
 return status ? status : gemmepi__build_bare(context, &converted, view, split);
}

static gemmepi_status gemmepi__build_bare_or_converted(gemmepi_context *context,
    const gemmepi__problem *problem, gemmepi__view *view,
    gemmepi__split *split) {
 char reason[256];
 gemmepi_status status = gemmepi__build_bare(context, problem, view, split);
 if (status != GEMMEPI_UNSUPPORTED)
  return status;
 snprintf(reason, sizeof reason, "%.255s", gemmepi__error_text);
 split->product_bytes = 0;
 status = gemmepi__build_converted(context, problem, view, split);
 if (status != GEMMEPI_UNSUPPORTED)
  return status;
 return gemmepi__fail(GEMMEPI_UNSUPPORTED, "%s", reason);
}

/* cuBLASLt is open unless k is 0. bare: it has refused the whole epilogue. GEMMEPI_UNSUPPORTED with the sentence where the
 route cannot take the problem. */
static gemmepi_status gemmepi__split_build(gemmepi_context *context, const gemmepi__problem *problem,
    int bare, gemmepi__split *split) {
 gemmepi__problem rest = gemmepi__without_sums(problem);
 gemmepi__view view;
 gemmepi_status status = GEMMEPI_OK;
 memset(split, 0, sizeof *split);
 split->has_product = problem->k != 0;
 split->bare = bare || !gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) ||
    gemmepi__lt_rule(&rest) != NULL; /* without sums of an operand lt is cuBLASLt's epilogue */
 if (!split->bare) {
  status = gemmepi__lt_build(context, &rest, GEMMEPI__LT_WHOLE, &rest.views[GEMMEPI__C],
    &rest.views[GEMMEPI__D], &split->product);
  split->product_takes_c = 1;
  if (status == GEMMEPI_UNSUPPORTED)
   split->bare = 1;
 }
 if (split->bare) {
  status = gemmepi__build_bare_or_converted(context, problem, &view, split);
  if (!status)
   status = gemmepi__build_pass(context, problem, &view, 1, split->product_takes_c, &split->pass);
 }
 if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
  status = gemmepi__build_sums(context, problem, split->pass.params.epilogue.row_tiles, &split->sums);
 return status;
}

static int gemmepi__split_launches(const gemmepi__split *split, const gemmepi__problem *problem) {
 return (split->converts[0].launch.function != NULL) + (split->converts[1].launch.function != NULL) +
   split->has_product + (split->pass.launch.function != NULL) +
   (split->bare ? gemmepi__amax_count(problem) : 0) + (split->sums.first.function != NULL) +
   (split->sums.second.function != NULL);
}

/* >>running */

/* The parts of the workspace, each at a multiple of 256. */
typedef struct gemmepi__split_parts {
 char *operands[2], *product, *pass_partials, *sum_partials, *lt;
} gemmepi__split_parts;

static gemmepi__split_parts gemmepi__divide_workspace(const gemmepi__split *split, char *workspace) {
 gemmepi__split_parts parts;
 parts.operands[0] = workspace;
 parts.operands[1] = gemmepi__past(parts.operands[0], split->converts[0].bytes);
 parts.product = gemmepi__past(parts.operands[1], split->converts[1].bytes);
 parts.pass_partials = gemmepi__past(parts.product, split->product_bytes);
 parts.sum_partials = gemmepi__past(parts.pass_partials, split->pass.partial_bytes);
 parts.lt = gemmepi__past(parts.sum_partials, split->sums.partial_bytes);
 return parts;
}

static size_t gemmepi__split_workspace(const gemmepi__split *split) {
 return gemmepi__round_up(split->converts[0].bytes, 256) +
   gemmepi__round_up(split->converts[1].bytes, 256) + gemmepi__round_up(split->product_bytes, 256) +
   gemmepi__round_up(split->pass.partial_bytes, 256) +
   gemmepi__round_up(split->sums.partial_bytes, 256) + split->product.workspace_size;
}

static gemmepi_status gemmepi__run_product(const gemmepi_context *context, const gemmepi__split *split,
    const gemmepi__arguments *arguments,
    const gemmepi__split_parts *parts, void *product,
    gemmepi_stream stream) {
 void *operands[2];
 gemmepi__lt_call call;
 gemmepi_status status = GEMMEPI_OK;
 int i;
 for (i = 0; i < 2 && !status; i++) {
  operands[i] = arguments->pointers[i];
  if (!split->converts[i].launch.function)
   continue;
  status = gemmepi__run_convert(context, &split->converts[i], operands[i], parts->operands[i], stream);
  operands[i] = parts->operands[i];
 }
 if (status)
  return status;
 call.alpha = split->product_takes_c ? arguments->alpha : 1;
 call.beta = split->product_takes_c ? arguments->beta : 0;
 call.a = operands[0];
 call.b = operands[1];
 call.c = arguments->pointers[GEMMEPI__C];
 call.d = product;
 call.workspace = parts->lt;
 return gemmepi__lt_run(context, &split->product, arguments, &call, stream);
}

/* The primary context is current; workspace has gemmepi__split_workspace bytes. */
static gemmepi_status gemmepi__split_run(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__split *split, const gemmepi__arguments *arguments,
    char *workspace, gemmepi_stream stream) {
 gemmepi__split_parts parts = gemmepi__divide_workspace(split, workspace);
 void *product = split->to_workspace ? (void *)parts.product : arguments->pointers[GEMMEPI__D];
 gemmepi_status status = GEMMEPI_OK;
 if (split->has_product)
  status = gemmepi__run_product(context, split, arguments, &parts, product, stream);
 if (!status && split->bare) {
  status = gemmepi__clear_amax(context, problem, arguments, stream);
  if (!status)
   status =
    gemmepi__run_pass(context, &split->pass, arguments, product, parts.pass_partials, stream);
 }
 if (!status)
  status = gemmepi__run_sums(context, &split->sums, arguments, parts.pass_partials, parts.sum_partials,
    stream);
 return status;
}
/* The route plain: one kernel of ours for any types, layout, alignment and scales, with the epilogue in it, and sums. It
 takes whatever the other routes do not. A tile of the product has not both halves of GATED: there the kernel leaves the
 bare product in workspace, for the pass. */

#define GEMMEPI__PLAIN_TILE    64 /* gemm_plain.cu: rows and columns of a block's tile */
#define GEMMEPI__PLAIN_THREADS 128

typedef struct gemmepi__plain {
 gemmepi__launch launch;
 gemmepi__plain_params params; /* all but pointers and scalars */
 gemmepi__pass pass; /* of GATED */
 gemmepi__sums sums;
 size_t partial_bytes, product_bytes;
} gemmepi__plain;

/* After how many steps of k the sums are scaled and added up in the accumulator; 0: at the end. I8 sums of more than 2^16
 terms could pass 2^31. */
static int gemmepi__plain_chunk(const gemmepi__problem *problem) {
 if (gemmepi__scale_varies_along_k(problem, GEMMEPI__A) ||
  gemmepi__scale_varies_along_k(problem, GEMMEPI__B))
  return 128;
 return problem->common == GEMMEPI_I8 && problem->accumulator == GEMMEPI_F32 && problem->k > 65536 ? 65536
    : 0;
}

static void gemmepi__append_operand_defines(gemmepi__text *text, const gemmepi__problem *problem,
    int operand) {
 const gemmepi__view *view = &problem->views[operand];
 char letter = operand == GEMMEPI__A ? 'A' : 'B';
 gemmepi__append(text, "#define GEMMEPI_%c_TYPE %s\n", letter,
    gemmepi__dtype((gemmepi_dtype)view->dtype)->name);
 gemmepi__append(text, "#define GEMMEPI_%c_TRANSPOSED %d\n", letter, (int)view->transposed);
 gemmepi__append(text, "#define GEMMEPI_%c_ALIGNED %d\n", letter,
    gemmepi__runs_are_aligned(problem, view));
}

/* The kernel itself. */
static gemmepi_status gemmepi__build_plain_kernel(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__plain *plain) {
 char prologue[1536], words[160];
 gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
 gemmepi_status status = gemmepi__lay_out_tiles(problem, GEMMEPI__PLAIN_TILE, GEMMEPI__PLAIN_TILE,
    GEMMEPI__PLAIN_THREADS, &plain->launch, &plain->params);
 if (status)
  return status;
 plain->partial_bytes = gemmepi__line_bytes(problem, plain->params.epilogue.row_tiles);
 gemmepi__append_epilogue_defines(&text, problem, gemmepi__epilogue_is_aligned(problem),
    problem->views[GEMMEPI__A].scale, problem->views[GEMMEPI__B].scale);
 gemmepi__append_operand_defines(&text, problem, GEMMEPI__A);
 gemmepi__append_operand_defines(&text, problem, GEMMEPI__B);
 gemmepi__append(&text, "#define GEMMEPI_COMPUTE_TYPE %s\n",
    gemmepi__dtype((gemmepi_dtype)problem->common)->name);
 gemmepi__append(&text, "#define GEMMEPI_CHUNK %d\n", gemmepi__plain_chunk(problem));
 gemmepi__name_kernel(&plain->launch, "gemmepi_plain_%s_%s%s",
    gemmepi__dtype((gemmepi_dtype)problem->views[GEMMEPI__A].dtype)->name,
    gemmepi__dtype((gemmepi_dtype)problem->views[GEMMEPI__B].dtype)->name,
    gemmepi__name_of_epilogue(problem, problem->views[GEMMEPI__A].dtype, words));
 return gemmepi__get_kernel(context, "gemm_plain.cu", prologue, "gemmepi_plain", &plain->launch);
}

/* Product and pass. The kernel has multiplied all scales of A and B in. */
static gemmepi_status gemmepi__build_plain_halves(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__plain *plain) {
 gemmepi__problem bare = gemmepi__bare_problem(problem), rest = *problem;
 const gemmepi__view *product = &bare.views[GEMMEPI__D];
 gemmepi_status status = gemmepi__build_plain_kernel(context, &bare, plain);
 int64_t elements = gemmepi__offset(problem->batch, product->batch_stride, 0);
 if (!status && elements < 0)
  status = gemmepi__fail(GEMMEPI_UNSUPPORTED, "the product has more than 2^56 elements");
 if (status)
  return status;
 plain->product_bytes = gemmepi__bytes_for(elements, (size_t)(product->bits / 8));
 rest.views[GEMMEPI__A].scale = rest.views[GEMMEPI__B].scale = 0;
 status = gemmepi__build_pass(context, &rest, product, 1, 0, &plain->pass);
 plain->partial_bytes = plain->pass.partial_bytes;
 return status;
}

static gemmepi_status gemmepi__plain_build(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__plain *plain) {
 gemmepi_status status;
 memset(plain, 0, sizeof *plain);
 status = gemmepi__has(problem, GEMMEPI_GATED) ? gemmepi__build_plain_halves(context, problem, plain)
    : gemmepi__build_plain_kernel(context, problem, plain);
 if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
  status = gemmepi__build_sums(context, problem,
    plain->pass.launch.function ? plain->pass.params.epilogue.row_tiles
    : plain->params.epilogue.row_tiles,
    &plain->sums);
 return status;
}

static size_t gemmepi__plain_workspace(const gemmepi__plain *plain) {
 return gemmepi__round_up(plain->product_bytes, 256) + gemmepi__round_up(plain->partial_bytes, 256) +
   plain->sums.partial_bytes;
}

static int gemmepi__plain_launches(const gemmepi__plain *plain, const gemmepi__problem *problem) {
 return 1 + (plain->pass.launch.function != NULL) + gemmepi__amax_count(problem) +
   (plain->sums.first.function != NULL) + (plain->sums.second.function != NULL);
}

/* The primary context is current; workspace has gemmepi__plain_workspace bytes. */
static gemmepi_status gemmepi__plain_run(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__plain *plain, const gemmepi__arguments *arguments,
    char *workspace, gemmepi_stream stream) {
 gemmepi__plain_params params = plain->params;
 char *partials = gemmepi__past(workspace, plain->product_bytes);
 char *between = gemmepi__past(partials, plain->partial_bytes);
 int has_pass = plain->pass.launch.function != NULL;
 gemmepi_status status = gemmepi__clear_amax(context, problem, arguments, stream);
 gemmepi__point_epilogue(arguments, has_pass, partials, &params.epilogue);
 params.a.data = arguments->pointers[GEMMEPI__A];
 params.b.data = arguments->pointers[GEMMEPI__B];
 if (has_pass) { /* a bare product, into workspace */
  params.epilogue.d.data = workspace;
  params.epilogue.device_alpha = params.epilogue.device_beta = NULL;
 }
 if (!status)
  status = gemmepi__launch_kernel(context, &plain->launch, &params, "the product", stream);
 if (!status && has_pass)
  status = gemmepi__run_pass(context, &plain->pass, arguments, workspace, partials, stream);
 if (!status)
  status = gemmepi__run_sums(context, &plain->sums, arguments, partials, between, stream);
 return status;
}
/* The route fused: product and epilogue in one kernel of ours, by the engine and shape of the least estimate, and the operands that
 are copied for it first. */

typedef struct gemmepi__fused {
 const gemmepi__engine *engine;
 int applied; /* for runs alone whose alpha is 1 and which have no C */
 gemmepi__built built;
 gemmepi__convert packs[2]; /* of A and B */
} gemmepi__fused;

/* >>copies of operands */

static gemmepi__view gemmepi__packed_view(const gemmepi__problem *problem, int operand, int pack) {
 const gemmepi__view *view = &problem->views[operand];
 return pack == GEMMEPI__SIDE_BY_SIDE ? gemmepi__transposed_view(view, problem->batch)
    : gemmepi__converted_view(view, problem->batch, view->dtype);
}

/* Whether its lines lie along k. */
static int gemmepi__is_side_by_side(const gemmepi__problem *problem, int operand) {
 return (problem->views[operand].transposed != 0) == (operand == GEMMEPI__B);
}

/* How the operand is packed, if operands are: so that it is taken 16 bytes at a time or, side_by_side, lies as the kernel for Hopper
 has to have TF32. Items that overlap would be far larger. */
static int gemmepi__pack_of(const gemmepi__problem *problem, int operand, int side_by_side) {
 gemmepi__problem packed = *problem;
 int pack = side_by_side && !gemmepi__is_side_by_side(problem, operand) ? GEMMEPI__SIDE_BY_SIDE
    : gemmepi__copy_unit(problem, operand) < 16                 ? GEMMEPI__IN_UNITS
    : GEMMEPI__AS_IT_LIES;
 if (pack == GEMMEPI__AS_IT_LIES)
  return pack;
 packed.views[operand] = gemmepi__packed_view(problem, operand, pack);
 return gemmepi__copy_unit(&packed, operand) == 16 &&
    packed.views[operand].bytes / 16 <= problem->views[operand].bytes
    ? pack
    : GEMMEPI__AS_IT_LIES;
}

/* The problem as the kernel has it. */
static void gemmepi__pack_views(const gemmepi__problem *problem, const int packs[2],
    gemmepi__problem *packed) {
 int operand;
 *packed = *problem;
 for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
  if (packs[operand])
   packed->views[operand] = gemmepi__packed_view(problem, operand, packs[operand]);
}

/* A launch more, and 2.5 TB/s read and written: measured on an H200. */
static double gemmepi__pack_microseconds(const gemmepi__problem *packed, const int packs[2]) {
 double microseconds = 0;
 int operand;
 for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
  if (packs[operand])
   microseconds += 3.5 + 2 * (double)packed->views[operand].bytes / 2.5e6;
 return microseconds;
}

/* >>choosing */

/* By every engine, with the operands as they lie and copied in the ways that help. */
static void gemmepi__enumerate_fused(const gemmepi_context *context, const gemmepi__problem *problem,
    int applied, gemmepi__candidates *candidates) {
 int side_by_side, ways = gemmepi__chip_of(context->arch)->wgmma > 0 && gemmepi__is_tf32(problem) ? 2 : 1;
 gemmepi__candidate like;
 memset(&like, 0, sizeof like);
 like.route = GEMMEPI_ROUTE_FUSED;
 like.applied = applied;
 gemmepi__enumerate_engines(context, problem, &like, 0, candidates);
 for (side_by_side = 0; side_by_side < ways; side_by_side++) {
  gemmepi__problem packed;
  int a = gemmepi__pack_of(problem, GEMMEPI__A, side_by_side);
  int b = gemmepi__pack_of(problem, GEMMEPI__B, side_by_side);
  if (a == like.copies[0] && b == like.copies[1])
   continue;
  like.copies[0] = a;
  like.copies[1] = b;
  gemmepi__pack_views(problem, like.copies, &packed);
  gemmepi__enumerate_engines(context, &packed, &like, gemmepi__pack_microseconds(&packed, like.copies),
    candidates);
 }
}

/* The best of them; one of NEVER where no engine takes the problem, however its operands are copied. */
static gemmepi__candidate gemmepi__choose_fused(const gemmepi_context *context,
    const gemmepi__problem *problem, int applied) {
 gemmepi__candidates candidates;
 const gemmepi__candidate *least;
 gemmepi__candidate never;
 candidates.count = 0;
 gemmepi__enumerate_fused(context, problem, applied, &candidates);
 least = gemmepi__least(&candidates);
 memset(&never, 0, sizeof never);
 never.microseconds = GEMMEPI__NEVER;
 return least ? *least : never;
}

/* The rule that keeps a problem from the route, or NULL. */
static const char *gemmepi__fused_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
 const char *rule = gemmepi__engines_rule(context, problem);
 if (!rule && !GEMMEPI__HAS_SM80 && !GEMMEPI__HAS_SM90)
  rule = "its kernels were left out of this program (GEMMEPI_NO_SM80, GEMMEPI_NO_SM90)";
 if (!rule && !GEMMEPI__HAS_SM80 &&
  gemmepi__choose_fused(context, problem, 1).microseconds >= GEMMEPI__NEVER)
  rule = "its kernel for this problem was left out of this program (GEMMEPI_NO_SM80)";
 return rule;
}

/* >>building */

static gemmepi_status gemmepi__build_packs(gemmepi_context *context, const gemmepi__problem *problem,
    const int packs[2], gemmepi__convert *built) {
 gemmepi_status status = GEMMEPI_OK;
 int operand;
 for (operand = GEMMEPI__A; !status && operand <= GEMMEPI__B; operand++)
  if (packs[operand] == GEMMEPI__IN_UNITS)
   status = gemmepi__build_pack(context, problem, operand, &built[operand]);
  else if (packs[operand] == GEMMEPI__SIDE_BY_SIDE)
   status = gemmepi__build_transpose(context, problem, operand, &built[operand]);
 return status;
}

/* Builds the candidate as it is. */
static gemmepi_status gemmepi__fused_build(gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__candidate *candidate, gemmepi__fused *fused) {
 gemmepi__problem packed;
 gemmepi_status status;
 memset(fused, 0, sizeof *fused);
 fused->engine = gemmepi__engines[candidate->engine];
 fused->applied = candidate->applied;
 gemmepi__pack_views(problem, candidate->copies, &packed);
 status = gemmepi__build_packs(context, problem, candidate->copies, fused->packs);
 return status ? status : fused->engine->build(context, &packed, candidate, &fused->built);
}

static gemmepi__built_details gemmepi__describe_built(const gemmepi__fused *fused) {
 gemmepi__built_details details;
 fused->engine->describe(&fused->built, &details);
 return details;
}

static int gemmepi__fused_launches(const gemmepi__fused *fused, const gemmepi__problem *problem) {
 gemmepi__built_details built = gemmepi__describe_built(fused);
 return 1 + (built.pass != NULL) + gemmepi__amax_count(problem) +
   (fused->packs[0].launch.function != NULL) + (fused->packs[1].launch.function != NULL) +
   (built.sums->first.function != NULL) + (built.sums->second.function != NULL);
}

static size_t gemmepi__fused_workspace(const gemmepi__fused *fused) {
 return gemmepi__round_up(fused->packs[0].bytes, 256) + gemmepi__round_up(fused->packs[1].bytes, 256) +
   gemmepi__describe_built(fused).workspace_size;
}

/* >>running */

/* The primary context is current. */
static gemmepi_status gemmepi__fused_run(const gemmepi_context *context, const gemmepi__problem *problem,
    const gemmepi__fused *fused, const gemmepi__arguments *arguments,
    char *workspace, gemmepi_stream stream) {
 gemmepi__arguments packed = *arguments;
 gemmepi_status status = GEMMEPI_OK;
 int operand;
 for (operand = GEMMEPI__A; !status && operand <= GEMMEPI__B; operand++)
  if (fused->packs[operand].launch.function) {
   status = gemmepi__run_convert(context, &fused->packs[operand], arguments->pointers[operand],
    workspace, stream);
   packed.pointers[operand] = workspace;
   workspace = gemmepi__past(workspace, fused->packs[operand].bytes);
  }
 return status ? status : fused->engine->run(context, problem, &fused->built, &packed, workspace, stream);
}
/* What cuBLASLt would take for a product and for an epilogue of its own, by a small model. */

#define GEMMEPI__MANY_TILES 20 /* of 128 x 128, for each multiprocessor */

/* The bare product by cuBLASLt where all lines begin at multiples of 16 bytes. On Hopper it takes what ours does in 16 bits and 0.7 us,
 mostly 0.9 to 1.2 of it, large or small, but where tiles are many its first answer takes 1.03 to 1.09 of its best, and where they
 are fewer than multiprocessors it divides a long k among all of these (5 us). Its TF32 takes 2.5 us and 1.05 of the time of ours
 where both operands lie along k, 1.3 where one does and 1.6 where none does; its strict F32 0.75 of ours and 3 us. All measured on
 an H200. */
static double gemmepi__aligned_microseconds(const gemmepi_context *context, const gemmepi__problem *bare) {
 static const double by_transposes[] = {1.05, 1.3, 1.6};
 gemmepi__problem side_by_side = *bare;
 const gemmepi__sm90_shape *shape;
 double microseconds = 0, divided;
 int transposes = 0, operand;
 for (operand = GEMMEPI__A; gemmepi__is_tf32(bare) && operand <= GEMMEPI__B; operand++) {
  transposes += !gemmepi__is_side_by_side(bare, operand);
  side_by_side.views[operand].transposed = operand == GEMMEPI__B;
 }
 if (gemmepi__tma_rule(context, &side_by_side)) {
  gemmepi__choose_sm80(context, bare, &microseconds);
  return gemmepi__is_fma(bare) ? 0.75 * microseconds + 3 : microseconds;
 }
 shape = gemmepi__choose_sm90(context, &side_by_side, 1, &microseconds);
 if (gemmepi__is_tf32(bare))
  return microseconds * by_transposes[transposes] + 2.5;
 if ((double)bare->m * (double)bare->n * (double)bare->batch >
  128.0 * 128 * GEMMEPI__MANY_TILES * context->multiprocessors)
  return microseconds * 1.03;
 divided = microseconds * gemmepi__sm90_share(context, &side_by_side, shape) + 5;
 return divided < microseconds ? divided : microseconds + 0.7;
}

#define GEMMEPI__LT_CALL 7 /* microseconds of the host, on that of an H200; a launch of ours takes 3.5 */

/* Where they, or as many elements as op(B) has columns, begin or end otherwise: measured on an H200, 10 us and six times what it
 takes to multiply (four times where they do at multiples of 4). Strict F32 takes no longer. Products that follow one another on a
 stream take as long as the host does to call for them; those in a CUDA graph may take less. */
static double gemmepi__bare_microseconds(const gemmepi_context *context, const gemmepi__problem *problem) {
 gemmepi__problem bare;
 double least,
  pairs = (double)problem->m * (double)problem->n * (double)problem->k * (double)problem->batch;
 const gemmepi__chip *chip = gemmepi__chip_of(context->arch);
 double rate = gemmepi__sm80_rate(problem, chip), otherwise;
 int packs[2] = {GEMMEPI__IN_UNITS, GEMMEPI__IN_UNITS};
 int unit = gemmepi__unit_of(problem, &problem->views[GEMMEPI__A],
    problem->n * problem->views[GEMMEPI__A].bits / 8);
 if (unit > gemmepi__unit_of(problem, &problem->views[GEMMEPI__B], 0))
  unit = gemmepi__unit_of(problem, &problem->views[GEMMEPI__B], 0);
 gemmepi__pack_views(problem, packs, &bare);
 bare.epilogue = GEMMEPI_NONE;
 least = gemmepi__aligned_microseconds(context, &bare);
 if (least < GEMMEPI__LT_CALL)
  least = GEMMEPI__LT_CALL;
 if (unit == 16 || gemmepi__is_fma(problem))
  return least;
 if (chip->wgmma > 0)
  rate = problem->common == GEMMEPI_F32 ? chip->wgmma / 2 : chip->wgmma;
 otherwise = 10 + (unit > 2 ? 4 : 6) * pairs / (rate * context->multiprocessors * chip->megahertz);
 return otherwise > least ? otherwise : least;
}

/* What cuBLASLt's own epilogues cost beside the bare product, measured on an H200 with cuBLASLt 13.1, in microseconds, and picoseconds
 for an element of D: the first row whose flags and activation the problem has. */
static const struct {
 gemmepi_epilogue flags;
 double once, relu, others;
} gemmepi__lt_costs[] = {{GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 7, 5.9, 7.5},
    {GEMMEPI_BACKWARD, 0, 6, 1.5},
    {GEMMEPI_AUX, 0, 0.8, 1.25},
    {GEMMEPI_BIAS, 0, 0.37, 0.64},
    {GEMMEPI_NONE, 0, 0, 0.64}};

static double gemmepi__lt_epilogue_microseconds(const gemmepi__problem *problem) {
 double elements = (double)problem->m * (double)problem->n * (double)problem->batch;
 size_t i = 0;
 while ((problem->epilogue & gemmepi__lt_costs[i].flags) != gemmepi__lt_costs[i].flags)
  i++;
 return gemmepi__lt_costs[i].once + elements * 1e-6 *
    (gemmepi__activation_costs(problem->epilogue)
    ? gemmepi__lt_costs[i].others
    : gemmepi__lt_costs[i].relu);
}
/* Plans of products: a route chosen once for a problem, and built. */

/* The candidates that a product's plan is chosen from. cuBLASLt is not asked: to load it takes longer than to build a plan. */

/* Does not compile where the list is too short for all engines. */
typedef char
 gemmepi__candidates_fit[3 + 3 * GEMMEPI__COUNT(gemmepi__engines) <= GEMMEPI__MOST_CANDIDATES ? 1 : -1];

static int gemmepi__is_left_out(const gemmepi_context *context, gemmepi_route route) {
 return context->routes && !(context->routes >> route & 1);
}

/* A candidate of the route, refused where config.routes or the rule says so. */
static gemmepi__candidate *gemmepi__add_route(const gemmepi_context *context, gemmepi_route route,
    const char *rule, gemmepi__candidates *candidates) {
 gemmepi__candidate *added = gemmepi__add_candidate(candidates, route);
 added->engine = GEMMEPI__ANY_ENGINE;
 added->refusal = gemmepi__is_left_out(context, route) ? "config.routes leaves it out" : rule;
 return added;
}

/* cuBLASLt with its own epilogue goes before FUSED where less than a hundredth is to be gained, for it has nothing to compile, and
 always before SPLIT. */
static void gemmepi__enumerate_cublaslt(const gemmepi_context *context, const gemmepi__problem *problem,
    int is_known, gemmepi__candidates *candidates) {
 gemmepi__candidate *lt =
  gemmepi__add_route(context, GEMMEPI_ROUTE_LT, gemmepi__lt_rule(problem), candidates);
 gemmepi__candidate *split = gemmepi__add_route(context, GEMMEPI_ROUTE_SPLIT, NULL, candidates);
 double bare = is_known ? gemmepi__bare_microseconds(context, problem) : 0;
 if (is_known && !lt->refusal)
  lt->microseconds =
   bare + gemmepi__lt_epilogue_microseconds(problem) + gemmepi__operand_sum_microseconds(problem);
 if (is_known && !split->refusal)
  split->microseconds = bare + gemmepi__pass_microseconds(problem, 1);
 lt->rank = 0.99 * lt->microseconds;
 split->rank = split->microseconds < lt->rank ? lt->rank : split->microseconds;
}

/* All ways to run the problem, and why others cannot. applied: of FUSED, for runs alone whose alpha is 1 and which have no C. */
static void gemmepi__enumerate(const gemmepi_context *context, const gemmepi__problem *problem, int applied,
    gemmepi__candidates *candidates) {
 const char *rule = gemmepi__fused_rule(context, problem);
 candidates->count = 0;
 gemmepi__enumerate_cublaslt(context, problem, !gemmepi__engines_rule(context, problem), candidates);
 if (rule || gemmepi__is_left_out(context, GEMMEPI_ROUTE_FUSED))
  gemmepi__add_route(context, GEMMEPI_ROUTE_FUSED, rule, candidates);
 else
  gemmepi__enumerate_fused(context, problem, applied, candidates);
 gemmepi__add_route(context, GEMMEPI_ROUTE_PLAIN, NULL, candidates)->rank = GEMMEPI__NEVER;
}

#define GEMMEPI__REASON_SIZE 512
#define GEMMEPI__IS_APPLIED  "alpha 1 and no C are compiled in"

typedef struct gemmepi__matmul_plan gemmepi__matmul_plan;
struct gemmepi__matmul_plan {
 gemmepi_plan base;
 gemmepi__problem problem;
 gemmepi_route route;
 size_t workspace_size;
 gemmepi__lt_product lt; /* of the route lt */
 gemmepi__split split; /* of the route split; of empty its sums alone */
 gemmepi__plain plain; /* of the route plain */
 gemmepi__fused fused; /* of the route fused */
 gemmepi__candidates candidates; /* what it was chosen from */
 char reasons[GEMMEPI__COUNT(gemmepi__route_names)][GEMMEPI__REASON_SIZE]; /* why a route failed, or "" */
 /* The plan that runs in place of this one once cuBLASLt has refused it: a field of its own plan, reached by a pointer
  because users hold plans as const. */
 gemmepi__atomic_pointer replacement;
 gemmepi__atomic_pointer *replacement_place;
 /* Likewise the plan for those runs alone that this one's kernel cannot do: cuBLASLt would round D = alpha A B + D twice,
  or alpha 1 and no C are compiled in. */
 gemmepi__atomic_pointer scaled;
 gemmepi__atomic_pointer *scaled_place;
};

/* >>building a candidate as it is */

static gemmepi_status gemmepi__build_lt(gemmepi__matmul_plan *plan) {
 gemmepi_status status = gemmepi__open_lt(plan->base.context);
 if (status)
  return status;
 status = gemmepi__lt_build(plan->base.context, &plan->problem, GEMMEPI__LT_WHOLE,
    &plan->problem.views[GEMMEPI__C], &plan->problem.views[GEMMEPI__D], &plan->lt);
 plan->workspace_size = plan->lt.workspace_size;
 return status;
}

static gemmepi_status gemmepi__build_split(gemmepi__matmul_plan *plan, const gemmepi__candidate *candidate) {
 gemmepi_status status = plan->problem.k ? gemmepi__open_lt(plan->base.context) : GEMMEPI_OK;
 if (status)
  return status;
 status = gemmepi__split_build(plan->base.context, &plan->problem, candidate->bare, &plan->split);
 plan->workspace_size = gemmepi__split_workspace(&plan->split);
 return status;
}

/* Counts what runs with alpha or C need, too, whose kernel is compiled in the first of them. */
static gemmepi_status gemmepi__count_scaled(gemmepi__matmul_plan *plan) {
 gemmepi_context *context = plan->base.context;
 gemmepi__candidate candidate = gemmepi__choose_fused(context, &plan->problem, 0);
 gemmepi__fused scaled;
 gemmepi_status status;
 size_t size;
 context->only_measures = 1;
 status = gemmepi__fused_build(context, &plan->problem, &candidate, &scaled);
 context->only_measures = 0;
 size = status ? 0 : gemmepi__fused_workspace(&scaled);
 if (size > plan->workspace_size)
  plan->workspace_size = size;
 return status == GEMMEPI_UNSUPPORTED ? GEMMEPI_OK : status; /* then such runs are, too */
}

static gemmepi_status gemmepi__build_fused(gemmepi__matmul_plan *plan, const gemmepi__candidate *candidate) {
 gemmepi_status status = gemmepi__fused_build(plan->base.context, &plan->problem, candidate, &plan->fused);
 plan->workspace_size = gemmepi__fused_workspace(&plan->fused);
 return !status && candidate->applied ? gemmepi__count_scaled(plan) : status;
}

static gemmepi_status gemmepi__build_plain(gemmepi__matmul_plan *plan) {
 gemmepi_status status = gemmepi__plain_build(plan->base.context, &plan->problem, &plan->plain);
 plan->workspace_size = gemmepi__plain_workspace(&plan->plain);
 return status;
}

static gemmepi_status gemmepi__build_candidate(gemmepi__matmul_plan *plan,
    const gemmepi__candidate *candidate) {
 plan->route = candidate->route;
 switch (candidate->route) {
 case GEMMEPI_ROUTE_FUSED:
  return gemmepi__build_fused(plan, candidate);
 case GEMMEPI_ROUTE_LT:
  return gemmepi__build_lt(plan);
 case GEMMEPI_ROUTE_SPLIT:
  return gemmepi__build_split(plan, candidate);
 default:
  return gemmepi__build_plain(plan);
 }
}

/* >>choosing */

/* Keeps the calling thread's error text as why the route cannot run the problem. */
static void gemmepi__keep_reason(gemmepi__matmul_plan *plan, gemmepi_route route) {
 snprintf(plan->reasons[route], GEMMEPI__REASON_SIZE, "%.500s", gemmepi__error_text);
}

/* In place of a plan of FUSED that is not for this run: FUSED for any alpha goes first. */
static void gemmepi__prefer_fused(gemmepi__candidates *candidates) {
 int i;
 for (i = 0; i < candidates->count; i++)
  if (candidates->list[i].route != GEMMEPI_ROUTE_FUSED)
   candidates->list[i].rank = GEMMEPI__NEVER;
}

/* In place of a plan that cuBLASLt refused when it was run: with an epilogue of its own, which the route lt has but for sums of
 operands, the bare product is left. */
static void gemmepi__do_without(const gemmepi__matmul_plan *refused, gemmepi__candidates *candidates) {
 static const char refusal[] = "cuBLASLt refused it when it was run";
 int i;
 gemmepi__refuse_route(candidates, GEMMEPI_ROUTE_LT, refusal);
 if (refused->route == GEMMEPI_ROUTE_SPLIT && refused->split.bare)
  gemmepi__refuse_route(candidates, GEMMEPI_ROUTE_SPLIT, refusal);
 for (i = 0; i < candidates->count; i++)
  candidates->list[i].bare = candidates->list[i].route == GEMMEPI_ROUTE_SPLIT;
}

/* Whether one is left whose time is known: PLAIN's is not. */
static int gemmepi__has_another(const gemmepi__candidates *candidates) {
 const gemmepi__candidate *least = gemmepi__least(candidates);
 return least && least->microseconds > 0;
}

static gemmepi_status gemmepi__fail_all(const gemmepi__matmul_plan *plan) {
 const char *reasons[GEMMEPI__COUNT(gemmepi__route_names)] = {0};
 int i;
 for (i = 0; i < plan->candidates.count; i++)
  reasons[plan->candidates.list[i].route] = plan->candidates.list[i].refusal;
 return gemmepi__fail(GEMMEPI_UNSUPPORTED,
    "no route runs this problem. fused: %s. lt: %s. split: %s. plain: %s",
    reasons[GEMMEPI_ROUTE_FUSED], reasons[GEMMEPI_ROUTE_LT],
    reasons[GEMMEPI_ROUTE_SPLIT], reasons[GEMMEPI_ROUTE_PLAIN]);
}

/* Builds the best candidate that can be built. A library that is not there ends planning, unless a candidate is left that may do
 without it. instead_of: the plan, if any, that cannot do a run, or cannot any more. */
static gemmepi_status gemmepi__choose(gemmepi__matmul_plan *plan, const gemmepi__matmul_plan *instead_of) {
 const gemmepi__candidate *best;
 int applied = !instead_of && !(plan->problem.flags & (GEMMEPI_DEVICE_SCALARS | GEMMEPI_ACCUMULATE));
 gemmepi__enumerate(plan->base.context, &plan->problem, applied, &plan->candidates);
 if (instead_of && instead_of->route == GEMMEPI_ROUTE_FUSED)
  gemmepi__prefer_fused(&plan->candidates);
 else if (instead_of)
  gemmepi__do_without(instead_of, &plan->candidates);
 while ((best = gemmepi__least(&plan->candidates)) != NULL) {
  gemmepi_status status = gemmepi__build_candidate(plan, best);
  if (status != GEMMEPI_UNSUPPORTED && status != GEMMEPI_LIBRARY_NOT_FOUND)
   return status;
  gemmepi__keep_reason(plan, best->route);
  gemmepi__refuse_route(&plan->candidates, best->route, plan->reasons[best->route]);
  if (status == GEMMEPI_LIBRARY_NOT_FOUND && !gemmepi__has_another(&plan->candidates))
   return status;
 }
 return gemmepi__fail_all(plan);
}

/* D has no element, so of the product and its epilogue nothing is left but the sums of bias_grad. */
static gemmepi_status gemmepi__build_empty(gemmepi__matmul_plan *plan) {
 gemmepi_status status = gemmepi__build_sums(plan->base.context, &plan->problem, 0, &plan->split.sums);
 plan->workspace_size = gemmepi__split_workspace(&plan->split);
 return status;
}

/* The context's device: the primary context current, one build at a time. */
static gemmepi_status gemmepi__choose_on_device(gemmepi__matmul_plan *plan,
    const gemmepi__matmul_plan *instead_of) {
 gemmepi_context *context = plan->base.context;
 gemmepi__entry entry;
 gemmepi_status status = gemmepi__enter_relaxed(context, &entry);
 if (status)
  return status;
 gemmepi__lock(&context->build_lock);
 status =
  gemmepi__is_empty(&plan->problem) ? gemmepi__build_empty(plan) : gemmepi__choose(plan, instead_of);
 gemmepi__unlock(&context->build_lock);
 gemmepi__leave_relaxed(context, &entry);
 return status;
}

static void gemmepi__destroy_matmul(gemmepi_plan *destroyed) {
 gemmepi__matmul_plan *plan = (gemmepi__matmul_plan *)destroyed;
 gemmepi_plan *replacement = (gemmepi_plan *)gemmepi__load_pointer(&plan->replacement);
 gemmepi_plan *scaled = (gemmepi_plan *)gemmepi__load_pointer(&plan->scaled);
 if (replacement)
  gemmepi__release_plan(replacement);
 if (scaled)
  gemmepi__release_plan(scaled);
 gemmepi__delete(&plan->base.context->allocator, plan);
}

static gemmepi__matmul_plan *gemmepi__new_plan(gemmepi_context *context, const gemmepi__problem *problem) {
 gemmepi__matmul_plan *plan = (gemmepi__matmul_plan *)gemmepi__new(&context->allocator, sizeof *plan);
 if (!plan)
  return NULL;
 plan->base = gemmepi__plan_base(context, GEMMEPI_PLAN_MATMUL, gemmepi__destroy_matmul);
 plan->problem = *problem;
 plan->replacement_place = &plan->replacement;
 plan->scaled_place = &plan->scaled;
 return plan;
}

static gemmepi_status gemmepi__build_plan(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__matmul_plan **result) {
 gemmepi__matmul_plan *plan = gemmepi__new_plan(context, problem);
 gemmepi_status status = GEMMEPI_OK;
 if (!plan)
  return GEMMEPI_OUT_OF_MEMORY;
 if (gemmepi__is_empty(problem)) {
  int only_sums = !gemmepi__writes_nothing(problem);
  plan->route = GEMMEPI_ROUTE_EMPTY;
  gemmepi__say(&context->log, GEMMEPI_LOG_INFO,
    "a product of m %lld, n %lld, batch %lld is empty: runs write %s",
    (long long)gemmepi__callers_m(problem), (long long)gemmepi__callers_n(problem),
    (long long)problem->batch, only_sums ? "bias_grad alone" : "nothing");
  if (only_sums && !context->is_host)
   status = gemmepi__choose_on_device(plan, NULL);
 } else if (context->is_host) {
  plan->route = GEMMEPI_ROUTE_HOST;
 } else {
  status = gemmepi__choose_on_device(plan, NULL);
 }
 if (status)
  gemmepi__release_plan(&plan->base);
 else
  *result = plan;
 return status;
}

GEMMEPI_API gemmepi_status gemmepi_plan_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
    gemmepi_plan **result) {
 gemmepi__problem problem;
 gemmepi__matmul_plan *plan = NULL;
 gemmepi_status status;
 if (result)
  *result = NULL; /* also after a failure */
 if (!context || !result)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 status = gemmepi__normalise(desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem);
 if (!status)
  status = gemmepi__build_plan(context, &problem, &plan);
 if (!status)
  *result = &plan->base;
 return status;
}
/* Runs of products' plans: whatever the route, and what stands in for a plan whose own cannot do a run; and the call that plans by
 itself. */

#ifndef GEMMEPI_NO_HOST
#endif

/* Whether the kernel of the route fused can do this run. */
static int gemmepi__suits_fused(const gemmepi__matmul_plan *plan, const gemmepi__arguments *arguments) {
 return !plan->fused.applied || (arguments->alpha == 1 && !arguments->uses_c && !arguments->device_alpha);
}

static gemmepi_status gemmepi__launch_route(const gemmepi__matmul_plan *plan,
    const gemmepi__arguments *arguments, void *workspace,
    gemmepi_stream stream) {
 void *const *pointers = arguments->pointers;
 gemmepi__lt_call call;
 if (plan->route == GEMMEPI_ROUTE_SPLIT || plan->route == GEMMEPI_ROUTE_EMPTY)
  return gemmepi__split_run(plan->base.context, &plan->problem, &plan->split, arguments,
    (char *)workspace, stream);
 if (plan->route == GEMMEPI_ROUTE_PLAIN)
  return gemmepi__plain_run(plan->base.context, &plan->problem, &plan->plain, arguments,
    (char *)workspace, stream);
 if (plan->route == GEMMEPI_ROUTE_FUSED)
  return gemmepi__fused_run(plan->base.context, &plan->problem, &plan->fused, arguments,
    (char *)workspace, stream);
 call.alpha = arguments->alpha;
 call.beta = arguments->beta;
 call.a = pointers[GEMMEPI__A];
 call.b = pointers[GEMMEPI__B];
 call.c = pointers[GEMMEPI__C];
 call.d = pointers[GEMMEPI__D];
 call.workspace = workspace;
 return gemmepi__lt_run(plan->base.context, &plan->lt, arguments, &call, stream);
}

static gemmepi_status gemmepi__launch_in_block(const gemmepi__matmul_plan *plan,
    const gemmepi__arguments *arguments, gemmepi_stream stream) {
 gemmepi__block *block = gemmepi__take_block(plan->base.context, gemmepi__key_of_stream(stream),
    plan->workspace_size, "gemmepi_plan_prepare");
 gemmepi_status status;
 if (!block)
  return GEMMEPI_BUFFER_TOO_SMALL;
 status = gemmepi__launch_route(plan, arguments, (void *)(uintptr_t)block->address, stream);
 gemmepi__give_block(block);
 return status;
}

static gemmepi_status gemmepi__launch_plan(const gemmepi__matmul_plan *plan, const gemmepi_matmul_args *args,
    const gemmepi__arguments *arguments, gemmepi_stream stream) {
 gemmepi_status status;
 if (plan->workspace_size == 0)
  return gemmepi__launch_route(plan, arguments, NULL, stream);
 if (!args->workspace)
  return gemmepi__launch_in_block(plan, arguments, stream);
 status = gemmepi__check_given_workspace(args->workspace, args->workspace_size, plan->workspace_size);
 if (!status)
  status = gemmepi__check_workspace(&plan->problem, arguments, args->workspace, plan->workspace_size);
 return status ? status : gemmepi__launch_route(plan, arguments, args->workspace, stream);
}

/* The plan that stands for this one now. */
static const gemmepi__matmul_plan *gemmepi__current_plan(const gemmepi__matmul_plan *plan) {
 const gemmepi__matmul_plan *next;
 while ((next = (const gemmepi__matmul_plan *)gemmepi__load_pointer(plan->replacement_place)) != NULL)
  plan = next;
 return plan;
}

/* What runs of the plan need as it stands now, also those that are not for its own kernel. */
static size_t gemmepi__workspace_now(const gemmepi__matmul_plan *plan) {
 const gemmepi__matmul_plan *current = gemmepi__current_plan(plan);
 const gemmepi__matmul_plan *scaled =
  (const gemmepi__matmul_plan *)gemmepi__load_pointer(current->scaled_place);
 size_t size = current->workspace_size, other;
 other = scaled ? gemmepi__current_plan(scaled)->workspace_size : 0;
 return size > other ? size : other;
}

/* Builds a plan by the next route into a place of this one, if no other thread has done so: `runs` in the log. Why cuBLASLt
 cannot do it stands in gemmepi_last_error. */
static gemmepi_status gemmepi__plan_next(const gemmepi__matmul_plan *plan, gemmepi__atomic_pointer *place,
    const char *runs) {
 gemmepi__matmul_plan *next = gemmepi__new_plan(plan->base.context, &plan->problem);
 gemmepi_status status;
 if (!next)
  return GEMMEPI_OUT_OF_MEMORY;
 memcpy(next->reasons, plan->reasons, sizeof next->reasons);
 if (plan->route != GEMMEPI_ROUTE_FUSED)
  gemmepi__keep_reason(next, plan->route);
 status = gemmepi__choose_on_device(next, plan);
 gemmepi__lock(&plan->base.context->lock);
 if (!status && !gemmepi__load_pointer(place)) {
  gemmepi__publish_pointer(place, next);
  next = NULL;
 }
 gemmepi__unlock(&plan->base.context->lock);
 if (next)
  gemmepi__release_plan(&next->base);
 else if (plan->route != GEMMEPI_ROUTE_FUSED)
  gemmepi__say(&plan->base.context->log, GEMMEPI_LOG_WARNING,
    "a product of m %lld, n %lld, k %lld takes another route %s: %s",
    (long long)gemmepi__callers_m(&plan->problem),
    (long long)gemmepi__callers_n(&plan->problem), (long long)plan->problem.k, runs,
    ((const gemmepi__matmul_plan *)gemmepi__load_pointer(place))->reasons[plan->route]);
 return status;
}

/* A plan that stands for another may need more than what was counted for that: where the caller gave or reserved less, it takes
 the context's workspace. */
static gemmepi_status gemmepi__launch_current(const gemmepi__matmul_plan *plan, size_t counted,
    const gemmepi_matmul_args *args,
    const gemmepi__arguments *arguments, gemmepi_stream stream) {
 gemmepi_status status;
 if (plan->workspace_size <= counted || (args->workspace && args->workspace_size >= plan->workspace_size))
  return gemmepi__launch_plan(plan, args, arguments, stream);
 status = gemmepi__reserve(plan->base.context, stream, plan->workspace_size);
 return status ? status : gemmepi__launch_in_block(plan, arguments, stream);
}

/* Why the plan's kernel is not for this run, or NULL. */
static const char *gemmepi__not_for_run(const gemmepi__matmul_plan *plan,
    const gemmepi__arguments *arguments) {
 gemmepi__lt_call call;
 if (plan->route == GEMMEPI_ROUTE_FUSED)
  return gemmepi__suits_fused(plan, arguments) ? NULL : GEMMEPI__IS_APPLIED;
 if (plan->route != GEMMEPI_ROUTE_LT && (plan->route != GEMMEPI_ROUTE_SPLIT || plan->split.bare))
  return NULL;
 call.alpha = arguments->alpha;
 call.beta = arguments->beta;
 call.c = arguments->pointers[GEMMEPI__C];
 call.d = arguments->pointers[GEMMEPI__D];
 return gemmepi__lt_rounds_early(
  plan->base.context, plan->route == GEMMEPI_ROUTE_LT ? &plan->lt : &plan->split.product, &call);
}

/* The plan for runs that are not for this one. */
static gemmepi_status gemmepi__scaled_plan(const gemmepi__matmul_plan *plan, const char *why,
    const gemmepi__matmul_plan **scaled) {
 gemmepi_status status = GEMMEPI_OK;
 if (!gemmepi__load_pointer(plan->scaled_place)) {
  (void)gemmepi__fail(GEMMEPI_UNSUPPORTED, "%s", why);
  status = gemmepi__plan_next(plan, plan->scaled_place, "in such runs");
 }
 if (!status)
  *scaled =
   gemmepi__current_plan((const gemmepi__matmul_plan *)gemmepi__load_pointer(plan->scaled_place));
 return status;
}

/* Builds beforehand what runs with alpha or C take where the plan's kernel is not for them. */
static gemmepi_status gemmepi__build_for_scalars(const gemmepi__matmul_plan *plan) {
 const gemmepi__matmul_plan *scaled;
 if (plan->route != GEMMEPI_ROUTE_FUSED || !plan->fused.applied)
  return GEMMEPI_OK;
 return gemmepi__scaled_plan(plan, GEMMEPI__IS_APPLIED, &scaled);
}

/* cuBLASLt may refuse when run what its heuristic accepted. Nothing has run then: the next route takes over for good. */
static gemmepi_status gemmepi__run_on_device(const gemmepi__matmul_plan *plan,
    const gemmepi_matmul_args *args,
    const gemmepi__arguments *arguments, gemmepi_stream stream) {
 const gemmepi__matmul_plan *current = gemmepi__current_plan(plan);
 const char *why = gemmepi__not_for_run(current, arguments);
 size_t counted = /* what the caller knows of for certain */
  current->workspace_size < plan->workspace_size ? current->workspace_size : plan->workspace_size;
 gemmepi_status status = why ? gemmepi__scaled_plan(current, why, &current) : GEMMEPI_OK;
 if (status)
  return status;
 status = gemmepi__launch_current(current, counted, args, arguments, stream);
 while (status == GEMMEPI_UNSUPPORTED && current->route != GEMMEPI_ROUTE_PLAIN) {
  status = gemmepi__plan_next(current, current->replacement_place, "from now on");
  if (status)
   break;
  current = gemmepi__current_plan(current);
  status = gemmepi__launch_current(current, counted, args, arguments, stream);
 }
 return status;
}

#ifndef GEMMEPI_NO_HOST
static gemmepi_status gemmepi__run_on_host(const gemmepi__matmul_plan *plan, gemmepi__arguments *arguments) {
 if (arguments->device_alpha)
  memcpy(&arguments->alpha, arguments->device_alpha, sizeof(double));
 if (arguments->device_beta)
  memcpy(&arguments->beta, arguments->device_beta, sizeof(double));
 if (plan->problem.accumulator == GEMMEPI_I32) {
  arguments->alpha = rint(arguments->alpha);
  arguments->beta = rint(arguments->beta);
 }

 gemmepi__host_product(&plan->problem, arguments, NULL);
 return GEMMEPI_OK;
}
#endif

static gemmepi_status gemmepi__check_reach(const gemmepi__problem *problem, const gemmepi_context *context,
    const gemmepi_matmul_args *args,
    const gemmepi__arguments *arguments) {
 gemmepi_status status = gemmepi__check_reachable(context, "workspace", args->workspace);
 int i;
 for (i = 0; i < problem->count && !status; i++)
  status = gemmepi__check_reachable(context, gemmepi__argument_name(problem, problem->list[i]),
    arguments->pointers[problem->list[i]]);
 for (i = 0; i < 2 && !status; i++)
  status =
   gemmepi__check_reachable(context, gemmepi__scalar_names[i], gemmepi__device_scalar(arguments, i));
 return status;
}

/* one_shot: each pointer is asked about at the driver, which takes a microsecond. */
static gemmepi_status gemmepi__run_matmul(const gemmepi__matmul_plan *plan, const gemmepi_matmul_args *args,
    int one_shot, gemmepi_stream stream) {
 gemmepi__arguments arguments;
 gemmepi__entry entry;
 gemmepi_status status;
 status = gemmepi__check_run(plan->base.context, stream, args->workspace, args->workspace_size);
 if (status || gemmepi__writes_nothing(&plan->problem))
  return status;
 status = gemmepi__take_arguments(&plan->problem, args, &arguments);
 if (status)
  return status;
#ifndef GEMMEPI_NO_HOST
 if (plan->base.context->is_host)
  return gemmepi__run_on_host(plan, &arguments);
#endif
 status = gemmepi__enter(plan->base.context, &entry);
 if (status)
  return status;
 if (one_shot || plan->base.context->check_pointers)
  status = gemmepi__check_reach(&plan->problem, plan->base.context, args, &arguments);
 if (!status)
  status = gemmepi__run_on_device(plan, args, &arguments, stream);
 gemmepi__leave(plan->base.context, &entry);
 return status;
}

GEMMEPI_API gemmepi_status gemmepi_run_matmul(const gemmepi_plan *plan, const gemmepi_matmul_args *args,
    gemmepi_stream stream) {
 gemmepi_status status = gemmepi__check_plan(plan, args, GEMMEPI_PLAN_MATMUL);
 return status ? status : gemmepi__run_matmul((const gemmepi__matmul_plan *)plan, args, 0, stream);
}

static gemmepi_status gemmepi__prepare_matmul(const gemmepi__matmul_plan *plan, gemmepi_stream stream) {
 return gemmepi__reserve(plan->base.context, stream, gemmepi__workspace_now(plan));
}

/* >>one-shot calls: plans kept by problem */

/* The problem's bytes without the views that it does not have: the fewer, the sooner a plan is found. */
typedef struct gemmepi__plan_key {
 size_t size;
 unsigned char bytes[sizeof(gemmepi__problem)];
} gemmepi__plan_key;

static void gemmepi__make_plan_key(const gemmepi__problem *problem, gemmepi__plan_key *key) {
 int operand;
 key->size = offsetof(gemmepi__problem, views);
 memcpy(key->bytes, problem, key->size);
 for (operand = 0; operand < GEMMEPI__OPERANDS; operand++)
  if (gemmepi__has_operand(problem, operand)) {
   memcpy(key->bytes + key->size, &problem->views[operand], sizeof(gemmepi__view));
   key->size += sizeof(gemmepi__view);
  }
}

/* A plan for the problem with a reference for the caller to release. */
static gemmepi_status gemmepi__get_plan(gemmepi_context *context, const gemmepi__problem *problem,
    gemmepi__matmul_plan **result) {
 gemmepi__plan_key key;
 gemmepi_plan *kept;
 gemmepi__matmul_plan *plan;
 gemmepi_status status;
 gemmepi__make_plan_key(problem, &key);
 kept = gemmepi__find_kept(context, key.bytes, key.size);
 if (!kept) {
  status = gemmepi__build_plan(context, problem, &plan);
  if (status)
   return status;
  kept = gemmepi__keep(context, key.bytes, key.size, &plan->base);
 }
 *result = (gemmepi__matmul_plan *)kept;
 return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
    const gemmepi_matmul_args *args, gemmepi_stream stream) {
 gemmepi__problem problem;
 gemmepi__matmul_plan *plan;
 gemmepi_status status;
 if (!context || !args)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "args" : "context");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 status = gemmepi__normalise(desc, gemmepi__alignment_of(args), &problem);
 if (status)
  return status;
 status = gemmepi__get_plan(context, &problem, &plan);
 if (status)
  return status;
 if (!args->workspace)
  status = gemmepi__prepare_matmul(plan, stream);
 if (!status)
  status = gemmepi__run_matmul(plan, args, 1, stream);
 gemmepi__release_plan(&plan->base);
 return status;
}
/* What a plan is, as a struct and in words. */

static void gemmepi__describe_kernel(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
 const gemmepi__split *split = &plan->split;
 if (plan->route == GEMMEPI_ROUTE_LT)
  gemmepi__lt_describe_algo(&plan->base.context->cublaslt, &plan->lt, details->kernel,
    sizeof details->kernel, &details->tile_m, &details->tile_n);
 else if (plan->route == GEMMEPI_ROUTE_SPLIT && split->has_product)
  gemmepi__lt_describe_algo(&plan->base.context->cublaslt, &split->product, details->kernel,
    sizeof details->kernel, &details->tile_m, &details->tile_n);
 else if (plan->route == GEMMEPI_ROUTE_SPLIT)
  memcpy(details->kernel, split->pass.launch.name, sizeof details->kernel);
 else if (plan->route == GEMMEPI_ROUTE_EMPTY && split->sums.first.function)
  memcpy(details->kernel, split->sums.first.name, sizeof details->kernel);
 else if (plan->route == GEMMEPI_ROUTE_PLAIN) {
  memcpy(details->kernel, plan->plain.launch.name, sizeof details->kernel);
  details->tile_m = details->tile_n = GEMMEPI__PLAIN_TILE;
 } else if (plan->route == GEMMEPI_ROUTE_FUSED) {
  gemmepi__built_details built = gemmepi__describe_built(&plan->fused);
  memcpy(details->kernel, built.launch->name, sizeof details->kernel);
  details->tile_m = built.tile_m;
  details->tile_n = built.tile_n;
 } else if (plan->route == GEMMEPI_ROUTE_HOST)
  snprintf(details->kernel, sizeof details->kernel, "gemmepi__host_product");
#ifndef GEMMEPI_NO_HOST
 if (plan->route == GEMMEPI_ROUTE_HOST)
  details->tile_m = details->tile_n = GEMMEPI__HOST_TILE;
#endif
}

static void gemmepi__matmul_info(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
 plan = gemmepi__current_plan(plan);
 memset(details, 0, sizeof *details);
 details->kind = GEMMEPI_PLAN_MATMUL;
 details->route = plan->route;
 details->route_name = gemmepi__route_names[plan->route];
 gemmepi__describe_kernel(plan, details);
 if (plan->problem.exchanged) {
  int tile_m = details->tile_m;
  details->tile_m = details->tile_n;
  details->tile_n = tile_m;
 }
 details->launches = plan->route == GEMMEPI_ROUTE_LT ? 1 : 0;
 if (plan->route == GEMMEPI_ROUTE_SPLIT || plan->route == GEMMEPI_ROUTE_EMPTY)
  details->launches = gemmepi__split_launches(&plan->split, &plan->problem);
 if (plan->route == GEMMEPI_ROUTE_PLAIN)
  details->launches = gemmepi__plain_launches(&plan->plain, &plan->problem);
 if (plan->route == GEMMEPI_ROUTE_FUSED)
  details->launches = gemmepi__fused_launches(&plan->fused, &plan->problem);
 details->workspace_size = gemmepi__workspace_now(plan);
 details->compute = (gemmepi_compute)plan->problem.compute;
 details->accumulator =
  plan->base.context->is_host ? GEMMEPI_F64 : (gemmepi_dtype)plan->problem.accumulator;
 details->deterministic = 1; /* our sums have a fixed order, and cuBLASLt is kept from reducing in place */
 details->bit_stable = 1;
}

static const char *const gemmepi__scale_names[] = {"", "one scale", "a scale for each line of the sum",
    "a scale for each 128 of k",
    "a scale for each 128 x 128 block"};

static void gemmepi__explain_view(gemmepi__text *text, const gemmepi__problem *problem, int operand) {
 const gemmepi__view *view = &problem->views[operand], *d = &problem->views[GEMMEPI__D];
 if (!view->dtype || (operand == GEMMEPI__C && view->ld == d->ld &&
    view->batch_stride == d->batch_stride && view->dtype == d->dtype && !view->scale))
  return;
 gemmepi__append(text, "  %-9s %s%s, %lld x %lld stored%s, ld %lld, batch stride %lld%s%s\n",
    gemmepi__argument_name(problem, operand),
    gemmepi__dtype((gemmepi_dtype)view->dtype)->name, view->bits == 1 ? " (bit mask)" : "",
    (long long)view->lines, (long long)view->length, view->transposed ? " transposed" : "",
    (long long)view->ld, (long long)view->batch_stride, view->scale ? ", " : "",
    gemmepi__scale_names[view->scale]);
}

static void gemmepi__explain_problem(gemmepi__text *text, const gemmepi__problem *problem) {
 int operand;
 gemmepi__append(text, "product of m %lld, n %lld, k %lld, batch %lld, epilogue ",
    (long long)gemmepi__callers_m(problem), (long long)gemmepi__callers_n(problem),
    (long long)problem->k, (long long)problem->batch);
 gemmepi__append_epilogue(text, gemmepi__callers_epilogue(problem->epilogue, problem->exchanged));
 gemmepi__append(
  text, "%s%s%s, pointers aligned to %d bytes%s\n", problem->flags & GEMMEPI_RELAXED ? ", relaxed" : "",
  problem->flags & GEMMEPI_FAST_ACCUMULATION ? ", fast accumulation" : "",
  problem->flags & GEMMEPI_DEVICE_SCALARS ? ", scalars on the device" : "", (int)problem->alignment,
  problem->exchanged ? ", column-major (run as the transposed row-major product)" : "");
 for (operand = 0; operand < GEMMEPI__SCALE_A; operand++)
  gemmepi__explain_view(text, problem, operand);
}

static void gemmepi__explain_split(gemmepi__text *text, const gemmepi__matmul_plan *plan,
    const char *kernel) {
 const gemmepi__split *split = &plan->split;
 const gemmepi__launch *pass = &split->pass.launch;
 int operand;
 for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
  if (split->converts[operand].launch.function)
   gemmepi__append(text, "  %s: %s to %s in workspace\n", split->converts[operand].launch.name,
    gemmepi__argument_name(&plan->problem, operand),
    gemmepi__dtype((gemmepi_dtype)plan->problem.common)->name);
 if (split->has_product)
  gemmepi__append(text, "  %s%s%s\n", kernel, split->bare ? ", bare" : ", with its epilogue",
    split->to_workspace ? ", into workspace in the type of its sums" : "");
 gemmepi__explain_pass(text, pass, "");
 gemmepi__explain_sums(text, &split->sums);
}

static void gemmepi__explain_plain(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
 const gemmepi__launch *launch = &plan->plain.launch;
 const gemmepi__launch *pass = &plan->plain.pass.launch;
 gemmepi__append(text, "  %s: product%s, %u blocks of %u threads\n", launch->name,
    pass->function ? ", into workspace" : " and epilogue", launch->blocks, launch->threads_x);
 gemmepi__explain_pass(text, pass, "");
 gemmepi__explain_sums(text, &plan->plain.sums);
}

/* Why a route was not taken: what it said when it was tried, a rule, or that it is slower. */
static const char *gemmepi__why_not(const gemmepi__matmul_plan *plan, gemmepi_route route) {
 const gemmepi__candidate *best = gemmepi__least_of_route(&plan->candidates, route);
 if (plan->reasons[route][0])
  return plan->reasons[route];
 if (best->refusal)
  return best->refusal;
 if (route == GEMMEPI_ROUTE_PLAIN)
  return plan->route == GEMMEPI_ROUTE_SPLIT && !plan->split.has_product ? "there is no product"
    : "slower than the others";
 return route == GEMMEPI_ROUTE_SPLIT ? "it takes a pass more" : "its estimate is not less";
}

static void gemmepi__explain_fused(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
 const gemmepi__fused *fused = &plan->fused;
 int operand;
 for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
  if (fused->packs[operand].launch.function)
   gemmepi__append(text, "  %s: %s to workspace, lines of whole 16 bytes\n",
    fused->packs[operand].launch.name,
    gemmepi__argument_name(&plan->problem, operand));
 fused->engine->explain(&plan->problem, &fused->built, text);
 if (fused->applied)
  gemmepi__append(text, "  runs with alpha or C have a kernel of their own\n");
}

static void gemmepi__explain_candidate(gemmepi__text *text, const gemmepi__problem *problem,
    const gemmepi__candidate *candidate) {
 gemmepi__append(text, "    %s", gemmepi__route_names[candidate->route]);
 if (candidate->engine != GEMMEPI__ANY_ENGINE)
  gemmepi__append(text, " by gemmepi_%s", gemmepi__engines[candidate->engine]->name);
 if (candidate->copies[0] || candidate->copies[1])
  gemmepi__append(text, " with %s%s%s copied",
    candidate->copies[0] ? gemmepi__argument_name(problem, GEMMEPI__A) : "",
    candidate->copies[0] && candidate->copies[1] ? " and " : "",
    candidate->copies[1] ? gemmepi__argument_name(problem, GEMMEPI__B) : "");
 if (candidate->refusal) {
  gemmepi__append(text, ": %s\n", candidate->refusal);
  return;
 }
 if (candidate->engine != GEMMEPI__ANY_ENGINE) {
  int tile_m, tile_n;
  gemmepi__engines[candidate->engine]->tile(candidate, &tile_m, &tile_n);
  gemmepi__append(text, ", tile %d x %d", problem->exchanged ? tile_n : tile_m,
    problem->exchanged ? tile_m : tile_n);
 }
 if (candidate->microseconds > 0 && candidate->rank > candidate->microseconds)
  gemmepi__append(text, ": %.1f us, counted as %.1f\n", candidate->microseconds, candidate->rank);
 else if (candidate->microseconds > 0)
  gemmepi__append(text, ": %.1f us\n", candidate->microseconds);
 else
  gemmepi__append(text, ": where nothing else can\n");
}

/* What the plan was chosen from, where estimates are known. */
static void gemmepi__explain_candidates(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
 const gemmepi__candidates *candidates = &plan->candidates;
 const gemmepi__chip *chip = gemmepi__chip_of(plan->base.context->arch);
 int i, is_known = 0;
 for (i = 0; i < candidates->count; i++)
  is_known |= candidates->list[i].microseconds > 0;
 if (!is_known)
  return;
 gemmepi__append(text, "  chosen from, by estimates for compute capability %d.%d (%s)%s:\n",
    chip->arch / 10, chip->arch % 10, chip->source,
    chip->arch == plan->base.context->arch ? "" : ", the nearest that is known");
 for (i = 0; i < candidates->count; i++)
  gemmepi__explain_candidate(text, &plan->problem, &candidates->list[i]);
}

static void gemmepi__explain_others(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
 static const gemmepi_route routes[] = {GEMMEPI_ROUTE_FUSED, GEMMEPI_ROUTE_LT, GEMMEPI_ROUTE_SPLIT,
    GEMMEPI_ROUTE_PLAIN};
 size_t i;
 for (i = 0; i < GEMMEPI__COUNT(routes); i++)
  if (plan->route != routes[i])
   gemmepi__append(text, "  not %s: %s\n", gemmepi__route_names[routes[i]],
    gemmepi__why_not(plan, routes[i]));
 gemmepi__append(text, "  not host: the context runs on a GPU\n");
 gemmepi__explain_candidates(text, plan);
}

static void gemmepi__explain_routes(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
 gemmepi_plan_details details;
 gemmepi__matmul_info(plan, &details);
 gemmepi__append(text, "route %s, workspace %llu bytes\n", details.route_name,
    (gemmepi__ull)details.workspace_size);
 switch (plan->route) {
 case GEMMEPI_ROUTE_EMPTY:
  gemmepi__append(text, "  m or n is 0: %s\n",
    gemmepi__writes_nothing(&plan->problem) ? "nothing runs, nothing is written"
    : "only the sums of bias_grad are written");
  return;
 case GEMMEPI_ROUTE_HOST:
  gemmepi__append(text, "  plain C, accumulated in F64\n"
    "  not fused, not lt, not split, not plain: the context runs on the host\n");
  return;
 case GEMMEPI_ROUTE_LT:
  gemmepi__append(text, "  %s\n", details.kernel);
  break;
 case GEMMEPI_ROUTE_FUSED:
  gemmepi__explain_fused(text, plan);
  break;
 case GEMMEPI_ROUTE_PLAIN:
  gemmepi__explain_plain(text, plan);
  break;
 default:
  gemmepi__explain_split(text, plan, details.kernel);
  break;
 }
 gemmepi__explain_others(text, plan);
}

static void gemmepi__explain_matmul(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
 plan = gemmepi__current_plan(plan);
 gemmepi__explain_problem(text, &plan->problem);
 gemmepi__explain_routes(text, plan);
}
#ifndef GEMMEPI_NO_LINEAR
/* A layer as its plan sees it: row-major, defaults filled in, every rule checked.

 A column-major layer is the row-major one with A and B exchanged, so it is folded first, and what a sentence says of a
 field is put back into the caller's words. The rules of matrices and vectors are those of the products that the layer is
 made of: each is normalised once to check them, and to take the views over. */

/* The tensors of a layer, and the scales that go with the first five. */
enum {
 GEMMEPI__L_A,
 GEMMEPI__L_B,
 GEMMEPI__L_Y,
 GEMMEPI__L_PREACT,
 GEMMEPI__L_DY,
 GEMMEPI__L_BIAS,
 GEMMEPI__L_DA,
 GEMMEPI__L_DB,
 GEMMEPI__L_DBIAS,
 GEMMEPI__L_SCALE_A,
 GEMMEPI__L_SCALE_B,
 GEMMEPI__L_SCALE_Y,
 GEMMEPI__L_SCALE_PREACT,
 GEMMEPI__L_SCALE_DY,
 GEMMEPI__L_COUNT
};

#define GEMMEPI__L_SCALE_OF(tensor) (GEMMEPI__L_SCALE_A + (tensor)) /* of A to DY */

static const char *const gemmepi__layer_names[GEMMEPI__L_COUNT] = {
 "a",  "b",     "y",       "preact",  "dy",      "bias",         "da",
 "db", "dbias", "scale_a", "scale_b", "scale_y", "scale_preact", "scale_dy"};

#define GEMMEPI__LINEAR_OUTPUTS (GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS)

/* Zeroed before it is filled, so that its bytes tell layers apart. */
typedef struct gemmepi__layer_task {
 int64_t
  tag; /* -2: a forward, -3: a backward; products begin with 0 or more, element-wise tasks with -1 */
 int64_t m, n, k, batch;
 double parameter;
 uint64_t epilogue; /* activation, GATED, GATE_FIRST */
 uint64_t flags;
 int32_t compute; /* as given */
 int32_t g_dtype;
 int32_t alignment;
 int32_t exchanged; /* column-major: a here is the caller's b */
 int32_t shares_b; /* in a batch B is the same for all items: dB and dbias are sums over them */
 int32_t sums_da; /* A is, and so is dA */
 int32_t sums_dbias;
 uint32_t used; /* bit t: this direction has tensor t */
 uint32_t written;
 gemmepi__view views[GEMMEPI__L_COUNT];
} gemmepi__layer_task;

static int gemmepi__is_backward(const gemmepi__layer_task *task) {
 return task->tag == -3;
}

static int gemmepi__layer_has(const gemmepi__layer_task *task, int tensor) {
 return (int)(task->used >> tensor & 1);
}

/* Whether G is dY itself up to its type: there is no activation. */
static int gemmepi__is_affine(uint64_t epilogue) {
 return gemmepi__activation(epilogue) == GEMMEPI_NONE && !(epilogue & GEMMEPI_GATED);
}

/* >>sentences in the caller's words */

typedef struct gemmepi__renaming {
 const char *from, *to;
} gemmepi__renaming;

static int gemmepi__is_word(char c) {
 return (c >= 'a' && c <= 'z') || c == '_';
}

/* Exchanges whole words "desc.x" in this thread's sentence, all at once. */
static void gemmepi__rename_error(const gemmepi__renaming *names, size_t count) {
 char renamed[GEMMEPI__ERROR_TEXT_SIZE];
 gemmepi__text text = gemmepi__text_in(renamed, sizeof renamed);
 const char *at = gemmepi__error_text;
 while (*at) {
  size_t i = 0, length = 1;
  for (; i < count; i++) {
   length = strlen(names[i].from);
   if (strncmp(at, names[i].from, length) == 0 && !gemmepi__is_word(at[length]))
    break;
  }
  if (i < count) {
   gemmepi__append(&text, "%s", names[i].to);
   at += length;
  } else {
   gemmepi__append(&text, "%c", *at++);
  }
 }
 (void)gemmepi__fail(GEMMEPI_OK, "%s", renamed);
}

/* What a product of the layer calls its matrices, in the layer's words. */
static gemmepi_status gemmepi__in_layers_words(gemmepi_status status, int exchanged, const char *a,
    const char *b, const char *d, const char *aux) {
 static const char *const folded[][2] = {{"desc.a", "desc.b"},   {"desc.b", "desc.a"},
    {"desc.da", "desc.db"}, {"desc.db", "desc.da"},
    {"desc.m", "desc.n"},   {"desc.n", "desc.m"}};
 gemmepi__renaming names[] = {{"desc.a", NULL},
    {"desc.b", NULL},
    {"desc.d", NULL},
    {"desc.aux", NULL},
    {"desc.bias_grad", "desc.dbias"},
    {"desc.epilogue", "desc.activation"},
    {"desc.m", "desc.m"},
    {"desc.n", "desc.n"}};
 size_t i, j;
 if (!status)
  return status;
 names[0].to = a;
 names[1].to = b;
 names[2].to = d;
 names[3].to = aux;
 for (i = 0; exchanged && i < GEMMEPI__COUNT(names); i++)
  for (j = 0; j < GEMMEPI__COUNT(folded); j++)
   if (strcmp(names[i].to, folded[j][0]) == 0) {
    names[i].to = folded[j][1];
    break;
   }
 gemmepi__rename_error(names, GEMMEPI__COUNT(names));
 return status;
}

/* The caller's name of a tensor. */
static const char *gemmepi__layer_name(const gemmepi__layer_task *task, int tensor) {
 static const int8_t pairs[][2] = {{GEMMEPI__L_A, GEMMEPI__L_B},
    {GEMMEPI__L_DA, GEMMEPI__L_DB},
    {GEMMEPI__L_SCALE_A, GEMMEPI__L_SCALE_B}};
 size_t i;
 for (i = 0; task->exchanged && i < GEMMEPI__COUNT(pairs); i++)
  if (tensor == pairs[i][0] || tensor == pairs[i][1])
   return gemmepi__layer_names[pairs[i][0] + pairs[i][1] - tensor];
 return gemmepi__layer_names[tensor];
}

/* >>what a desc says by itself */

static uint64_t gemmepi__exchange_bits(uint64_t flags, uint64_t first, uint64_t second) {
 uint64_t rest = flags & ~(first | second);
 return rest | (flags & first ? second : 0) | (flags & second ? first : 0);
}

/* The row-major layer of a column-major one. */
static gemmepi_linear_desc gemmepi__fold_layer(const gemmepi_linear_desc *desc) {
 gemmepi_linear_desc folded = *desc;
 if (!folded.batch)
  folded.batch = 1;
 if (!folded.a.dtype)
  folded.a.dtype = GEMMEPI_F32;
 if (!folded.b.dtype)
  folded.b.dtype = folded.a.dtype;
 if (!folded.y.dtype)
  folded.y.dtype = gemmepi__is_fp8((int)folded.a.dtype) ? GEMMEPI_BF16 : folded.a.dtype;
 if (!folded.da.dtype)
  folded.da.dtype = gemmepi__is_fp8((int)folded.a.dtype) ? GEMMEPI_BF16 : folded.a.dtype;
 if (!folded.db.dtype)
  folded.db.dtype = gemmepi__is_fp8((int)folded.b.dtype) ? GEMMEPI_BF16 : folded.b.dtype;
 if (desc->order == GEMMEPI_COLUMN_MAJOR) {
  gemmepi_matrix a = folded.a, da = folded.da;
  folded.a = folded.b;
  folded.b = a;
  folded.da = folded.db;
  folded.db = da;
  folded.m = desc->n;
  folded.n = desc->m;
  folded.flags = gemmepi__exchange_bits(folded.flags, GEMMEPI_LINEAR_DA, GEMMEPI_LINEAR_DB);
  folded.flags = gemmepi__exchange_bits(folded.flags, GEMMEPI_ACCUMULATE_DA, GEMMEPI_ACCUMULATE_DB);
  folded.order = GEMMEPI_ROW_MAJOR;
 }
 return folded;
}

static gemmepi_status gemmepi__check_layer_flags(const gemmepi_linear_desc *desc, int backward) {
 static const struct {
  uint64_t accumulate, output;
  const char *name;
 } pairs[] = {{GEMMEPI_ACCUMULATE_DA, GEMMEPI_LINEAR_DA, "DA"},
    {GEMMEPI_ACCUMULATE_DB, GEMMEPI_LINEAR_DB, "DB"},
    {GEMMEPI_ACCUMULATE_DBIAS, GEMMEPI_LINEAR_DBIAS, "DBIAS"}};
 uint64_t keeps = desc->flags & (GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_RECOMPUTE);
 int affine = gemmepi__is_affine(desc->activation);
 size_t i;
 gemmepi_status status = gemmepi__check_flags_of(GEMMEPI__OF_LAYER, desc->flags, 0);
 if (status)
  return status;
 if (gemmepi__has_two(keeps))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.flags has both LINEAR_SAVED and LINEAR_RECOMPUTE; P is either read from "
    "preact or computed anew");
 if (affine && keeps)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.flags has LINEAR_%s, but the activation is NONE: its gradient needs no P",
    keeps == GEMMEPI_LINEAR_SAVED ? "SAVED" : "RECOMPUTE");
 if (!backward)
  return GEMMEPI_OK;
 if (!(desc->flags & GEMMEPI__LINEAR_OUTPUTS))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.flags asks for no output; at least one of LINEAR_DA, LINEAR_DB and LINEAR_DBIAS");
 for (i = 0; i < GEMMEPI__COUNT(pairs); i++)
  if (desc->flags & pairs[i].accumulate && !(desc->flags & pairs[i].output))
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.flags has ACCUMULATE_%s without LINEAR_%s",
    pairs[i].name, pairs[i].name);
 if (!affine && !keeps)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.flags has neither LINEAR_SAVED nor LINEAR_RECOMPUTE; the gradient of this "
    "activation needs P");
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_layer_scalars(const gemmepi_linear_desc *desc) {
 gemmepi_status status = gemmepi__check_activation("activation", desc->activation);
 if (!status)
  status =
   gemmepi__check_flags_of(GEMMEPI__OF_LAYERS_ACTIVATION, desc->activation, GEMMEPI_ACTIVATION_MASK);
 if (!status && (unsigned)desc->order > GEMMEPI_COLUMN_MAJOR)
  status = gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.order is %d, which is no gemmepi_order%s",
    (int)desc->order, GEMMEPI__UNINITIALISED);
 if (status)
  return status;
 if (desc->batch < 0 || desc->batch > GEMMEPI__MAX_ELEMENTS)
  return gemmepi__check_size("batch", desc->batch);
 return GEMMEPI_OK;
}

/* >>products of the layer, as descs */

/* A matrix between the steps, dense. */
static gemmepi_matrix gemmepi__dense_matrix(gemmepi_dtype dtype, int64_t lines, int64_t length) {
 gemmepi_matrix matrix;
 memset(&matrix, 0, sizeof matrix);
 matrix.dtype = dtype;
 matrix.ld = length;
 matrix.batch_stride = length != 0 && lines > GEMMEPI__MAX_ELEMENTS / length ? 0 : lines * length;
 return matrix;
}

static gemmepi_matmul_desc gemmepi__product_of_layer(const gemmepi_linear_desc *layer) {
 gemmepi_matmul_desc desc;
 memset(&desc, 0, sizeof desc);
 desc.m = layer->m;
 desc.n = layer->n;
 desc.k = layer->k;
 desc.batch = layer->batch;
 desc.compute = layer->compute;
 desc.epilogue = layer->activation;
 desc.flags = layer->flags & (GEMMEPI_RELAXED | GEMMEPI_FAST_ACCUMULATION);
 desc.has_parameter = layer->has_parameter;
 desc.activation_parameter = layer->activation_parameter;
 desc.a = layer->a;
 desc.b = layer->b;
 desc.bias = layer->bias;
 if (layer->flags & GEMMEPI_LINEAR_BIAS)
  desc.epilogue |= GEMMEPI_BIAS;
 desc.alignment = layer->alignment;
 return desc;
}

/* TF32 where it fits; other types follow from the operands. */
static gemmepi_compute gemmepi__gradient_compute(gemmepi_compute wanted, int a, int b) {
 return wanted == GEMMEPI_COMPUTE_TF32 && gemmepi__common_dtype(a, b) == GEMMEPI_F32
    ? GEMMEPI_COMPUTE_TF32
    : GEMMEPI_COMPUTE_DEFAULT;
}

/* >>taking a desc */

static void gemmepi__take_layer_view(gemmepi__layer_task *task, int tensor, const gemmepi__problem *problem,
    int operand) {
 task->views[tensor] = problem->views[operand];
 if (tensor <= GEMMEPI__L_DY)
  task->views[GEMMEPI__L_SCALE_OF(tensor)] = problem->views[GEMMEPI__SCALE_OF(operand)];
}

/* A, B, bias, and Y or, for backward, the P that forward left. */
static gemmepi_status gemmepi__take_forward(const gemmepi_linear_desc *layer, int backward, size_t alignment,
    gemmepi__layer_task *task) {
 gemmepi_matmul_desc desc = gemmepi__product_of_layer(layer);
 gemmepi__problem problem;
 gemmepi_status status;
 desc.d = layer->y;
 desc.aux = layer->preact;
 if (!desc.aux.dtype && !gemmepi__aux_is_mask(desc.epilogue | GEMMEPI_AUX))
  desc.aux.dtype = layer->y.dtype;
 if (layer->flags & GEMMEPI_LINEAR_SAVED)
  desc.epilogue |= GEMMEPI_AUX;
 if (backward) { /* Y is not looked at */
  int64_t columns = gemmepi__result_columns(layer->activation, layer->n);
  desc.d =
   gemmepi__dense_matrix(layer->y.dtype, layer->m > 0 ? layer->m : 0, columns > 0 ? columns : 0);
 }
 status = gemmepi__normalise(&desc, alignment, &problem);
 if (status)
  return gemmepi__in_layers_words(status, task->exchanged, "desc.a", "desc.b", "desc.y", "desc.preact");
 gemmepi__take_layer_view(task, GEMMEPI__L_A, &problem, GEMMEPI__A);
 gemmepi__take_layer_view(task, GEMMEPI__L_B, &problem, GEMMEPI__B);
 gemmepi__take_layer_view(task, GEMMEPI__L_BIAS, &problem, GEMMEPI__BIAS);
 if (!backward)
  gemmepi__take_layer_view(task, GEMMEPI__L_Y, &problem, GEMMEPI__D);
 if (layer->flags & GEMMEPI_LINEAR_SAVED)
  gemmepi__take_layer_view(task, GEMMEPI__L_PREACT, &problem, GEMMEPI__AUX);
 task->parameter = problem.parameter;
 task->alignment = problem.alignment;
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__take_g_dtype(const gemmepi_linear_desc *layer, gemmepi__layer_task *task) {
 int a = (int)layer->a.dtype, b = (int)layer->b.dtype, common = gemmepi__common_dtype(a, b);
 uint32_t accepted = a == GEMMEPI_F64 ? 1u << GEMMEPI_F64 : GEMMEPI__VECTOR_TYPES;
 task->g_dtype = layer->g_dtype                             ? (int32_t)layer->g_dtype
    : gemmepi__is_fp8(a) && gemmepi__is_fp8(b) ? (int32_t)GEMMEPI_BF16
    : (int32_t)common;
 if (a == GEMMEPI_I8 || b == GEMMEPI_I8)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED,
    "desc.%s.dtype is I8; gradients go to operands of F64, F32, F16, BF16, E4M3 and "
    "E5M2",
    (a == GEMMEPI_I8) != (task->exchanged != 0) ? "a" : "b");
 if ((unsigned)task->g_dtype > GEMMEPI_I32 || !(accepted >> task->g_dtype & 1))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.g_dtype is %d (%s); accepted %s here%s",
    (int)layer->g_dtype,
    gemmepi__dtype_is_known(layer->g_dtype) ? gemmepi__dtype(layer->g_dtype)->name
    : "no gemmepi_dtype",
    a == GEMMEPI_F64 ? "is F64" : "are F32, F16 and BF16",
    gemmepi__dtype_is_known(layer->g_dtype) ? "" : GEMMEPI__UNINITIALISED);
 return GEMMEPI_OK;
}

/* dY and dbias. */
static gemmepi_status gemmepi__take_upstream(const gemmepi_linear_desc *layer, size_t alignment,
    gemmepi__layer_task *task) {
 gemmepi_matmul_desc desc = gemmepi__product_of_layer(layer);
 gemmepi__problem problem;
 gemmepi_status status;
 desc.epilogue |= GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM;
 desc.aux = layer->dy;
 if (!desc.aux.dtype)
  desc.aux.dtype = layer->y.dtype;
 desc.d = gemmepi__dense_matrix((gemmepi_dtype)task->g_dtype, layer->m, layer->n);
 if (layer->flags & GEMMEPI_LINEAR_DBIAS) {
  desc.epilogue |= GEMMEPI_BGRAD;
  desc.bias_grad = layer->dbias;
  if (!desc.bias_grad.dtype && layer->flags & GEMMEPI_LINEAR_BIAS)
   desc.bias_grad.dtype = (gemmepi_dtype)task->views[GEMMEPI__L_BIAS].dtype;
  if (!desc.bias_grad.dtype)
   desc.bias_grad.dtype = gemmepi__default_dtype(GEMMEPI__BIAS, layer->y.dtype);
 }
 status = gemmepi__normalise(&desc, alignment, &problem);
 if (status)
  return gemmepi__in_layers_words(status, task->exchanged, "desc.a", "desc.b", "desc.g", "desc.dy");
 gemmepi__take_layer_view(task, GEMMEPI__L_DY, &problem, GEMMEPI__AUX);
 gemmepi__take_layer_view(task, GEMMEPI__L_DBIAS, &problem, GEMMEPI__BIAS_GRAD);
 return GEMMEPI_OK;
}

/* dA or dB as the result of a product, of which only its own rules are new. batch: the number of its items. */
static gemmepi_status gemmepi__take_gradient(const gemmepi_linear_desc *layer, int tensor, int64_t batch,
    size_t alignment, gemmepi__layer_task *task) {
 int is_da = tensor == GEMMEPI__L_DA;
 const gemmepi_matrix *matrix = is_da ? &layer->da : &layer->db, *of = is_da ? &layer->a : &layer->b;
 int64_t rows = is_da ? layer->m : layer->k, columns = is_da ? layer->k : layer->n;
 gemmepi_matmul_desc desc;
 gemmepi__problem problem;
 gemmepi_status status;
 if (matrix->transposed && matrix->transposed != of->transposed)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.%s.transposed is %d; a gradient lies as its operand is stored, so leave it 0%s",
   gemmepi__layer_name(task, tensor), matrix->transposed,
   matrix->transposed == 1 ? "" : GEMMEPI__UNINITIALISED);
 if (matrix->scale.mode != GEMMEPI_SCALE_NONE)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.scale.mode is %d; a gradient takes no scale",
    gemmepi__layer_name(task, tensor), (int)matrix->scale.mode);
 if (matrix->dtype != GEMMEPI_F64 &&
  !(gemmepi__dtype_is_known(matrix->dtype) && GEMMEPI__VECTOR_TYPES >> matrix->dtype & 1))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.%s.dtype is %d (%s); accepted for gradients are F32, F16 and BF16 (F64 in F64)%s",
   gemmepi__layer_name(task, tensor), (int)matrix->dtype,
   gemmepi__dtype_is_known(matrix->dtype) ? gemmepi__dtype(matrix->dtype)->name : "no gemmepi_dtype",
   gemmepi__dtype_is_known(matrix->dtype) ? "" : GEMMEPI__UNINITIALISED);
 memset(&desc, 0, sizeof desc);
 desc.m = of->transposed ? columns : rows;
 desc.n = of->transposed ? rows : columns;
 desc.batch = batch;
 desc.a.dtype = desc.b.dtype = layer->a.dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
 desc.d = *matrix;
 desc.d.transposed = 0;
 desc.alignment = layer->alignment;
 status = gemmepi__normalise(&desc, alignment, &problem);
 if (status)
  return gemmepi__in_layers_words(status, task->exchanged, "desc.a", "desc.b",
    is_da ? "desc.da" : "desc.db", "desc.aux");
 gemmepi__take_layer_view(task, tensor, &problem, GEMMEPI__D);
 task->views[tensor].transposed = of->transposed;
 return GEMMEPI_OK;
}

/* One batch form for all: see gemmepi_linear_desc. The fields are those of the folded layer. */
static gemmepi_status gemmepi__check_batch_form(const gemmepi_linear_desc *layer,
    const gemmepi__layer_task *task, int backward) {
 int exchanged = task->exchanged;
 const char *b = exchanged ? "a" : "b", *db = exchanged ? "da" : "db", *da = exchanged ? "db" : "da";
 int shared = task->shares_b;
 int has_bias = (layer->flags & GEMMEPI_LINEAR_BIAS) != 0;
 if (layer->batch == 1)
  return GEMMEPI_OK;
 if (shared && has_bias && layer->bias.batch_stride)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.bias.batch_stride is %lld, but %s is shared by the batch (its stride is 0): "
   "then bias is too",
   (long long)layer->bias.batch_stride, b);
 if (shared && layer->b.scale.batch_stride)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.%s.scale.batch_stride is %lld, but %s is shared by the batch (its stride is "
   "0): then its scale is too",
   b, (long long)layer->b.scale.batch_stride, b);
 if (!backward)
  return GEMMEPI_OK;
 if (task->sums_da && layer->a.scale.batch_stride)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.%s.scale.batch_stride is %lld, but %s is the sum over the batch (its stride "
   "is 0): then the scale is shared too",
   exchanged ? "b" : "a", (long long)layer->a.scale.batch_stride, da);
 if (layer->flags & GEMMEPI_LINEAR_DB && shared != (layer->db.batch_stride == 0))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "desc.%s.batch_stride is %lld and desc.%s.batch_stride %lld; either both are 0 "
    "(shared by the batch, its gradient a sum over it), or neither is",
    db, (long long)layer->db.batch_stride, b, (long long)layer->b.batch_stride);
 if (layer->flags & GEMMEPI_LINEAR_DBIAS && shared && layer->dbias.batch_stride)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.dbias.batch_stride is %lld, but %s is shared by the batch (its stride is 0): "
   "then dbias is the sum over it, with stride 0",
   (long long)layer->dbias.batch_stride, b);
 if (layer->flags & GEMMEPI_LINEAR_DBIAS && has_bias &&
  (layer->dbias.batch_stride == 0) != (layer->bias.batch_stride == 0))
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.dbias.batch_stride is %lld and desc.bias.batch_stride %lld; either both are "
   "0, or neither is",
   (long long)layer->dbias.batch_stride, (long long)layer->bias.batch_stride);
 if (task->sums_da && shared)
  return gemmepi__fail(GEMMEPI_UNSUPPORTED,
    "desc.%s.batch_stride is 0 where a and b are both the same for all items; the "
    "gradient is that of the sum of dy over the batch: add dy up, and leave batch 1",
    da);
 return GEMMEPI_OK;
}

static void gemmepi__use_layer(gemmepi__layer_task *task, int tensor) {
 task->used |= 1u << tensor;
 if (tensor <= GEMMEPI__L_DY && task->views[tensor].scale)
  task->used |= 1u << GEMMEPI__L_SCALE_OF(tensor);
}

static void gemmepi__write_layer(gemmepi__layer_task *task, int tensor) {
 gemmepi__use_layer(task, tensor);
 task->written |= 1u << tensor;
}

/* Which tensors this direction reads and writes. */
static void gemmepi__use_tensors(gemmepi__layer_task *task, int backward) {
 uint64_t flags = task->flags;
 int recomputes = (flags & GEMMEPI_LINEAR_RECOMPUTE) != 0;
 if (!backward || recomputes || flags & GEMMEPI_LINEAR_DB)
  gemmepi__use_layer(task, GEMMEPI__L_A);
 if (!backward || recomputes || flags & GEMMEPI_LINEAR_DA)
  gemmepi__use_layer(task, GEMMEPI__L_B);
 if (flags & GEMMEPI_LINEAR_BIAS && (!backward || recomputes))
  gemmepi__use_layer(task, GEMMEPI__L_BIAS);
 if (flags & GEMMEPI_LINEAR_SAVED && backward)
  gemmepi__use_layer(task, GEMMEPI__L_PREACT);
 if (flags & GEMMEPI_LINEAR_SAVED && !backward)
  gemmepi__write_layer(task, GEMMEPI__L_PREACT);
 if (!backward) {
  gemmepi__write_layer(task, GEMMEPI__L_Y);
  return;
 }
 gemmepi__use_layer(task, GEMMEPI__L_DY);
 if (flags & GEMMEPI_LINEAR_DA)
  gemmepi__write_layer(task, GEMMEPI__L_DA);
 if (flags & GEMMEPI_LINEAR_DB)
  gemmepi__write_layer(task, GEMMEPI__L_DB);
 if (flags & GEMMEPI_LINEAR_DBIAS)
  gemmepi__write_layer(task, GEMMEPI__L_DBIAS);
}

static gemmepi_status gemmepi__take_gradients(const gemmepi_linear_desc *layer, size_t alignment,
    gemmepi__layer_task *task) {
 gemmepi_status status = gemmepi__take_g_dtype(layer, task);
 if (!status)
  status = gemmepi__take_upstream(layer, alignment, task);
 if (!status && layer->flags & GEMMEPI_LINEAR_DA)
  status =
   gemmepi__take_gradient(layer, GEMMEPI__L_DA, task->sums_da ? 1 : layer->batch, alignment, task);
 if (!status && layer->flags & GEMMEPI_LINEAR_DB)
  status =
   gemmepi__take_gradient(layer, GEMMEPI__L_DB, task->shares_b ? 1 : layer->batch, alignment, task);
 return status;
}

/* desc -> task, or the sentence that says what is wrong with it. */
static gemmepi_status gemmepi__take_layer(const gemmepi_linear_desc *desc, int backward, size_t alignment,
    gemmepi__layer_task *task) {
 gemmepi_linear_desc layer;
 gemmepi_status status;
 memset(task, 0, sizeof *task);
 if (!desc)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc is NULL");
 status = gemmepi__check_layer_scalars(desc);
 if (!status)
  status = gemmepi__check_layer_flags(desc, backward);
 if (status)
  return status;
 layer = gemmepi__fold_layer(desc);
 task->tag = backward ? -3 : -2;
 task->exchanged = desc->order == GEMMEPI_COLUMN_MAJOR;
 task->m = layer.m;
 task->n = layer.n;
 task->k = layer.k;
 task->batch = layer.batch;
 task->shares_b = layer.batch != 1 && layer.b.batch_stride == 0;
 task->sums_da = backward && layer.batch != 1 && layer.flags & GEMMEPI_LINEAR_DA &&
    layer.a.batch_stride == 0 && layer.da.batch_stride == 0;
 task->sums_dbias = layer.batch != 1 && layer.dbias.batch_stride == 0;
 task->epilogue = layer.activation;
 task->compute = (int32_t)layer.compute;
 task->flags = backward ? layer.flags
    : layer.flags & (GEMMEPI_RELAXED | GEMMEPI_FAST_ACCUMULATION |
    GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED);
 status = gemmepi__take_forward(&layer, backward, alignment, task);
 if (!status)
  status = gemmepi__check_batch_form(&layer, task, backward);
 if (!status && backward)
  status = gemmepi__take_gradients(&layer, alignment, task);
 if (!status)
  gemmepi__use_tensors(task, backward);
 return status;
}

/* >>the pointers of a run */

static void gemmepi__take_layer_pointers(const gemmepi__layer_task *task, const gemmepi_linear_args *args,
    void *pointers[GEMMEPI__L_COUNT]) {
 int swap = task->exchanged;
 const void *inputs[GEMMEPI__L_COUNT];
 inputs[GEMMEPI__L_A] = swap ? args->b : args->a;
 inputs[GEMMEPI__L_B] = swap ? args->a : args->b;
 inputs[GEMMEPI__L_Y] = args->y;
 inputs[GEMMEPI__L_PREACT] = args->preact;
 inputs[GEMMEPI__L_DY] = args->dy;
 inputs[GEMMEPI__L_BIAS] = args->bias;
 inputs[GEMMEPI__L_DA] = swap ? args->db : args->da;
 inputs[GEMMEPI__L_DB] = swap ? args->da : args->db;
 inputs[GEMMEPI__L_DBIAS] = args->dbias;
 inputs[GEMMEPI__L_SCALE_A] = swap ? args->scale_b : args->scale_a;
 inputs[GEMMEPI__L_SCALE_B] = swap ? args->scale_a : args->scale_b;
 inputs[GEMMEPI__L_SCALE_Y] = args->scale_y;
 inputs[GEMMEPI__L_SCALE_PREACT] = args->scale_preact;
 inputs[GEMMEPI__L_SCALE_DY] = args->scale_dy;
 memcpy(pointers, inputs, sizeof inputs);
}

/* What a direction does not need may be there all the same, for the other; but not what the layer has not. */
static gemmepi_status gemmepi__check_layer_presence(const gemmepi__layer_task *task,
    void *const pointers[GEMMEPI__L_COUNT]) {
 int t;
 for (t = 0; t < GEMMEPI__L_COUNT; t++) {
  const gemmepi__view *view = &task->views[t];
  const char *name = gemmepi__layer_name(task, t);
  int used = gemmepi__layer_has(task, t);
  if (used && !pointers[t] && view->bytes)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is NULL; this %s needs it", name,
    gemmepi__is_backward(task) ? "backward" : "forward");
  if (t == GEMMEPI__L_BIAS && pointers[t] && !(task->flags & GEMMEPI_LINEAR_BIAS))
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.bias is given (%p), but desc.flags has no LINEAR_BIAS", pointers[t]);
  if (!used && pointers[t] && gemmepi__is_backward(task) && t >= GEMMEPI__L_DA && t <= GEMMEPI__L_DBIAS)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.%s is given (%p), but desc.flags does not ask for it", name,
    pointers[t]);
  if (t >= GEMMEPI__L_SCALE_A && !used && pointers[t] &&
   gemmepi__layer_has(task, t - GEMMEPI__L_SCALE_A))
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.%s is given (%p), but desc.%s.scale.mode is NONE", name, pointers[t],
    gemmepi__layer_name(task, t - GEMMEPI__L_SCALE_A));
 }
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_layer_alignment(const gemmepi__layer_task *task,
    void *const pointers[GEMMEPI__L_COUNT]) {
 int t;
 for (t = 0; t < GEMMEPI__L_COUNT; t++)
  if (gemmepi__layer_has(task, t) && (uintptr_t)pointers[t] & (uintptr_t)(task->views[t].alignment - 1))
   return gemmepi__fail(GEMMEPI_MISALIGNED, "args.%s is %p; it must be a multiple of %d bytes",
    gemmepi__layer_name(task, t), pointers[t], (int)task->views[t].alignment);
 return GEMMEPI_OK;
}

/* Outputs overlap nothing. */
static gemmepi_status gemmepi__check_layer_overlap(const gemmepi__layer_task *task,
    void *const pointers[GEMMEPI__L_COUNT]) {
 int t, other, shares;
 for (t = 0; t < GEMMEPI__L_COUNT; t++)
  for (other = 0; other < GEMMEPI__L_COUNT && task->written >> t & 1; other++) {
   uintptr_t p = (uintptr_t)pointers[t], q = (uintptr_t)pointers[other];
   uintptr_t p_bytes = (uintptr_t)task->views[t].bytes,
    q_bytes = (uintptr_t)task->views[other].bytes;
   if (!gemmepi__layer_has(task, other) || other == t || (task->written >> other & 1 && other < t) ||
    !p_bytes || !q_bytes || p + p_bytes <= q || q + q_bytes <= p)
    continue;
   shares =
    gemmepi__views_share(&task->views[t], &task->views[other], task->batch, (int64_t)(q - p));
   if (shares)
    return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.%s (%p, %lld bytes) overlaps args.%s (%p, %lld bytes)%s",
    gemmepi__layer_name(task, t), pointers[t], (long long)p_bytes,
    gemmepi__layer_name(task, other), pointers[other], (long long)q_bytes,
    gemmepi__if_undecided(shares));
  }
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_layer_workspace(const gemmepi__layer_task *task,
    const gemmepi_linear_args *args,
    void *const pointers[GEMMEPI__L_COUNT]) {
 uintptr_t begin = (uintptr_t)args->workspace, end = begin + args->workspace_size;
 int t;
 if (end < begin)
  end = ~(uintptr_t)0;
 for (t = 0; t < GEMMEPI__L_COUNT; t++) {
  uintptr_t other = (uintptr_t)pointers[t];
  if (gemmepi__layer_has(task, t) && other && other < end &&
   begin < other + (uintptr_t)task->views[t].bytes)
   return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "args.workspace (%p, %llu bytes) overlaps args.%s (%p)", args->workspace,
    (gemmepi__ull)args->workspace_size, gemmepi__layer_name(task, t),
    pointers[t]);
 }
 return GEMMEPI_OK;
}
/* Layers: prepared once, run any number of times, and the calls that do both.

 A layer is a short list of steps, each with a plan or a kernel of its own, between the caller's tensors and temporaries in
 workspace. Forward is one product. Backward is

  copies   of A or B, where products want their items one after another, or without scales that change along the sum
  G        a pass over dY and P, or the product that computes P anew; none where dY is G
  dA, dB   products
  dbias    left by what makes G, or by dB's product, or a sum by itself */

/* Where a pointer of a step comes from: a tensor of the layer, or a temporary. */
enum {
 GEMMEPI__G = GEMMEPI__L_COUNT,
 GEMMEPI__COPY_A,
 GEMMEPI__COPY_B,
 GEMMEPI__SCALES_A,
 GEMMEPI__SCALES_B,
 GEMMEPI__SOURCES,
 GEMMEPI__NO_SOURCE = -1
};

#define GEMMEPI__TEMPORARIES (GEMMEPI__SOURCES - GEMMEPI__G)

typedef enum gemmepi__step_kind {
 GEMMEPI__STEP_PRODUCT,
 GEMMEPI__STEP_PASS, /* an epilogue over a finished product: dY */
 GEMMEPI__STEP_SUM, /* dbias from G alone */
 GEMMEPI__STEP_COPY
} gemmepi__step_kind;

typedef struct gemmepi__step {
 gemmepi__step_kind kind;
 const char *what; /* it makes, in words */
 gemmepi__matmul_plan *product; /* of PRODUCT */
 gemmepi__elementwise_plan *copy; /* of COPY */
 gemmepi__problem problem; /* of PASS and SUM */
 gemmepi__view given; /* PASS: dY as a product */
 gemmepi__pass pass;
 gemmepi__sums sums;
 int8_t sources
  [GEMMEPI__OPERANDS]; /* of the problem's operands; of a copy A, D and SCALE_A are what it takes */
 int8_t given_source;
 int accumulates; /* beta is 1 and C is D */
 size_t workspace_size; /* of what is no product */
} gemmepi__step;

#define GEMMEPI__MAX_STEPS 8 /* copies of A and B and their scales, G, dA, dB, dbias */

typedef struct gemmepi__linear_plan {
 gemmepi_plan base;
 gemmepi__layer_task task;
 gemmepi__step steps[GEMMEPI__MAX_STEPS];
 int step_count;
 size_t temporary_bytes[GEMMEPI__TEMPORARIES];
 size_t built_size; /* the workspace as it was built: more once a product takes another route */
} gemmepi__linear_plan;

/* >>building: matrices */

/* A view of the layer as a desc takes it. */
static gemmepi_matrix gemmepi__layer_matrix(const gemmepi__layer_task *task, int tensor) {
 const gemmepi__view *view = &task->views[tensor];
 gemmepi_matrix matrix;
 memset(&matrix, 0, sizeof matrix);
 if (view->bits != 1) /* RELU's mask takes no dtype */
  matrix.dtype = (gemmepi_dtype)view->dtype;
 matrix.transposed = view->transposed;
 matrix.ld = view->ld;
 matrix.batch_stride = view->batch_stride;
 if (tensor <= GEMMEPI__L_DY && view->scale) {
  matrix.scale.mode = (gemmepi_scale_mode)view->scale;
  matrix.scale.batch_stride = task->views[GEMMEPI__L_SCALE_OF(tensor)].batch_stride;
 }
 return matrix;
}

static gemmepi_vector gemmepi__layer_vector(const gemmepi__layer_task *task, int tensor) {
 gemmepi_vector vector;
 memset(&vector, 0, sizeof vector);
 vector.dtype = (gemmepi_dtype)task->views[tensor].dtype;
 vector.batch_stride = task->views[tensor].batch_stride;
 return vector;
}

/* What backward makes its products from: matrices, and where they lie. */
typedef struct gemmepi__factors {
 gemmepi_matrix a, b, g;
 int a_source, b_source, g_source;
} gemmepi__factors;

/* A line's length rounded up so that each begins at a multiple of 16 bytes. */
static int64_t gemmepi__padded(int64_t length) {
 return gemmepi__divide_up(length, GEMMEPI__RUN) * GEMMEPI__RUN;
}

/* Whether the items of a matrix, `rows` x `columns` as op() has it, follow one another like one of batch * rows rows. */
static int gemmepi__stacks_rows(const gemmepi_matrix *matrix, int64_t batch, int64_t rows) {
 if (matrix->transposed) /* every stored line goes on into the next item */
  return matrix->batch_stride == rows && matrix->ld >= gemmepi__offset(batch, rows, 0);
 return matrix->batch_stride == gemmepi__offset(rows, matrix->ld, 0);
}

/* The same of batch * columns columns. */
static int gemmepi__stacks_columns(const gemmepi_matrix *matrix, int64_t batch, int64_t columns) {
 gemmepi_matrix turned = *matrix;
 turned.transposed = !turned.transposed;
 return gemmepi__stacks_rows(&turned, batch, columns);
}

/* G as it lies in workspace: items follow one another row by row, or, where dA is a sum over them, column by column. */
static gemmepi_matrix gemmepi__g_matrix(const gemmepi__layer_task *task) {
 int side_by_side = task->sums_da && task->m != 0;
 int64_t ld = gemmepi__padded(side_by_side ? gemmepi__times(task->batch, task->n) : task->n);
 gemmepi_matrix g = gemmepi__dense_matrix((gemmepi_dtype)task->g_dtype, task->m, ld);
 if (side_by_side)
  g.batch_stride = task->n;
 if (task->batch <= 1)
  g.batch_stride = 0;
 return g;
}

/* Whether dY may stand for G: nothing is to be multiplied or rounded, and its items lie as the products want them. */
static int gemmepi__dy_is_g(const gemmepi__layer_task *task) {
 gemmepi_matrix dy = gemmepi__layer_matrix(task, GEMMEPI__L_DY);
 uint64_t flags = task->flags;
 if (!gemmepi__is_affine(task->epilogue) || (int32_t)dy.dtype != task->g_dtype ||
  task->views[GEMMEPI__L_DY].scale)
  return 0;
 if (task->batch <= 1)
  return 1;
 return !(task->shares_b && flags & (GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS) &&
    !gemmepi__stacks_rows(&dy, task->batch, task->m)) &&
   !(task->sums_da && flags & GEMMEPI_LINEAR_DA &&
    !gemmepi__stacks_columns(&dy, task->batch, task->n));
}

/* >>building: steps */

static gemmepi__step *gemmepi__new_step(gemmepi__linear_plan *layer, gemmepi__step_kind kind,
    const char *what) {
 gemmepi__step *step = &layer->steps[layer->step_count++];
 step->kind = kind;
 step->what = what;
 memset(step->sources, GEMMEPI__NO_SOURCE, sizeof step->sources);
 step->given_source = GEMMEPI__NO_SOURCE;
 return step;
}

/* Whether nobody wants G itself. */
static int gemmepi__wants_only_sums(const gemmepi__layer_task *task) {
 return !(task->flags & (GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB));
}

static void gemmepi__mark_g(const gemmepi__layer_task *task, gemmepi__problem *problem) {
 problem->flags |= gemmepi__wants_only_sums(task) ? GEMMEPI__ONLY_SUMS : 0;
}

/* The problem of a desc that the layer made. Temporaries begin at multiples of 256. */
static gemmepi_status gemmepi__normalise_step(const gemmepi__linear_plan *layer, gemmepi__step *step,
    const gemmepi_matmul_desc *desc, gemmepi__problem *problem) {
 gemmepi_status status = gemmepi__normalise(desc, (size_t)layer->task.alignment, problem);
 int operand;
 for (operand = 0; operand < GEMMEPI__OPERANDS && !status; operand++)
  if (step->sources[operand] >= GEMMEPI__G && problem->views[operand].dtype)
   problem->views[operand].alignment = 256;
 return status;
}

static gemmepi_status gemmepi__build_product_step(gemmepi__linear_plan *layer, gemmepi__step *step,
    const gemmepi_matmul_desc *desc) {
 gemmepi__problem problem;
 gemmepi_status status = gemmepi__normalise_step(layer, step, desc, &problem);
 if (!status && step->sources[GEMMEPI__D] == GEMMEPI__G)
  gemmepi__mark_g(&layer->task, &problem);
 if (!status)
  status = gemmepi__build_plan(layer->base.context, &problem, &step->product);
 return status;
}

static size_t gemmepi__pass_step_workspace(const gemmepi__step *step) {
 return gemmepi__round_up(step->pass.partial_bytes, 256) + step->sums.partial_bytes;
}

/* The kernels of a step that is no plan. */
static gemmepi_status gemmepi__build_kernels(gemmepi__linear_plan *layer, gemmepi__step *step) {
 gemmepi_context *context = layer->base.context;
 gemmepi__entry entry;
 gemmepi_status status;
 if (context->is_host || gemmepi__is_empty(&step->problem))
  return GEMMEPI_OK;
 status = gemmepi__enter_relaxed(context, &entry);
 if (status)
  return status;
 gemmepi__lock(&context->build_lock);
 if (step->kind == GEMMEPI__STEP_PASS)
  status = gemmepi__build_pass(context, &step->problem, &step->given, 1, 1, &step->pass);
 if (!status && gemmepi__has(&step->problem, GEMMEPI__ANY_BGRAD))
  status =
   gemmepi__build_sums(context, &step->problem, step->pass.params.epilogue.row_tiles, &step->sums);
 gemmepi__unlock(&context->build_lock);
 gemmepi__leave_relaxed(context, &entry);
 step->workspace_size = gemmepi__pass_step_workspace(step);
 return status;
}

static uint64_t gemmepi__dbias_epilogue(const gemmepi__layer_task *task, uint64_t sums) {
 uint64_t accumulates = task->flags & GEMMEPI_ACCUMULATE_DBIAS ? GEMMEPI_ACCUMULATE_BIAS_GRAD : 0;
 return task->flags & GEMMEPI_LINEAR_DBIAS ? sums | accumulates : 0;
}

static void gemmepi__give_parameter(const gemmepi__layer_task *task, gemmepi_matmul_desc *desc) {
 desc->has_parameter = gemmepi__default_parameter(task->epilogue) != 0;
 desc->activation_parameter = desc->has_parameter ? task->parameter : 0;
}

static gemmepi_matmul_desc gemmepi__step_desc(const gemmepi__layer_task *task, int64_t m, int64_t n,
    int64_t k, int64_t batch) {
 gemmepi_matmul_desc desc;
 memset(&desc, 0, sizeof desc);
 desc.m = m;
 desc.n = n;
 desc.k = k;
 desc.batch = batch;
 desc.flags = task->flags & (GEMMEPI_RELAXED | GEMMEPI_FAST_ACCUMULATION);
 desc.alignment = (size_t)task->alignment;
 return desc;
}

/* G = dY act'(P) of a P that was saved, and dbias on the way. */
static gemmepi_status gemmepi__add_pass(gemmepi__linear_plan *layer, const gemmepi_matrix *g) {
 const gemmepi__layer_task *task = &layer->task;
 const gemmepi__view *dy = &task->views[GEMMEPI__L_DY];
 gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_PASS, "G");
 gemmepi_matmul_desc desc = gemmepi__step_desc(task, task->m, dy->length, 1, task->batch);
 gemmepi_status status;
 desc.flags = 0;
 desc.epilogue = task->epilogue | gemmepi__dbias_epilogue(task, GEMMEPI_BGRAD);
 if (!gemmepi__is_affine(task->epilogue)) {
  desc.epilogue |= GEMMEPI_BACKWARD;
  desc.aux = gemmepi__layer_matrix(task, GEMMEPI__L_PREACT);
  step->sources[GEMMEPI__AUX] = GEMMEPI__L_PREACT;
  step->sources[GEMMEPI__SCALE_AUX] = GEMMEPI__L_SCALE_PREACT;
 }
 gemmepi__give_parameter(task, &desc);
 desc.a.dtype = dy->dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
 desc.d = *g;
 step->sources[GEMMEPI__D] = GEMMEPI__G;
 if (task->flags & GEMMEPI_LINEAR_DBIAS) {
  desc.bias_grad = gemmepi__layer_vector(task, GEMMEPI__L_DBIAS);
  step->sources[GEMMEPI__BIAS_GRAD] = GEMMEPI__L_DBIAS;
 }
 step->given = *dy;
 step->given_source = GEMMEPI__L_DY;
 status = gemmepi__normalise_step(layer, step, &desc, &step->problem);
 gemmepi__mark_g(task, &step->problem);
 if (dy->scale) { /* the pass multiplies by it as by that of an operand */
  step->problem.views[GEMMEPI__A].scale = dy->scale;
  step->problem.views[GEMMEPI__SCALE_A] = task->views[GEMMEPI__L_SCALE_DY];
  step->sources[GEMMEPI__SCALE_A] = GEMMEPI__L_SCALE_DY;
 }
 return status ? status : gemmepi__build_kernels(layer, step);
}

/* G = dY act'(A B + bias), and dbias on the way. */
static gemmepi_status gemmepi__add_recomputation(gemmepi__linear_plan *layer, const gemmepi_matrix *g) {
 const gemmepi__layer_task *task = &layer->task;
 gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_PRODUCT, "G");
 gemmepi_matmul_desc desc = gemmepi__step_desc(task, task->m, task->n, task->k, task->batch);
 desc.compute = (gemmepi_compute)task->compute;
 desc.epilogue =
  task->epilogue | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | gemmepi__dbias_epilogue(task, GEMMEPI_BGRAD);
 gemmepi__give_parameter(task, &desc);
 desc.a = gemmepi__layer_matrix(task, GEMMEPI__L_A);
 desc.b = gemmepi__layer_matrix(task, GEMMEPI__L_B);
 desc.aux = gemmepi__layer_matrix(task, GEMMEPI__L_DY);
 desc.d = *g;
 step->sources[GEMMEPI__A] = GEMMEPI__L_A;
 step->sources[GEMMEPI__B] = GEMMEPI__L_B;
 step->sources[GEMMEPI__AUX] = GEMMEPI__L_DY;
 step->sources[GEMMEPI__D] = GEMMEPI__G;
 step->sources[GEMMEPI__SCALE_A] = GEMMEPI__L_SCALE_A;
 step->sources[GEMMEPI__SCALE_B] = GEMMEPI__L_SCALE_B;
 step->sources[GEMMEPI__SCALE_AUX] = GEMMEPI__L_SCALE_DY;
 if (task->flags & GEMMEPI_LINEAR_BIAS) {
  desc.epilogue |= GEMMEPI_BIAS;
  desc.bias = gemmepi__layer_vector(task, GEMMEPI__L_BIAS);
  step->sources[GEMMEPI__BIAS] = GEMMEPI__L_BIAS;
 }
 if (task->flags & GEMMEPI_LINEAR_DBIAS) {
  desc.bias_grad = gemmepi__layer_vector(task, GEMMEPI__L_DBIAS);
  step->sources[GEMMEPI__BIAS_GRAD] = GEMMEPI__L_DBIAS;
 }
 return gemmepi__build_product_step(layer, step, &desc);
}

/* A tensor of three axes, the items of a batch first, as a copy takes it. */
typedef struct gemmepi__three_axes {
 int64_t shape[3], stride[3];
 gemmepi_tensor tensor;
} gemmepi__three_axes;

static void gemmepi__fill_three_axes(gemmepi__three_axes *axes, gemmepi_dtype dtype, int64_t items,
    int64_t rows, int64_t columns, int64_t item, int64_t row,
    int64_t column) {
 memset(axes, 0, sizeof *axes);
 axes->shape[0] = items;
 axes->shape[1] = rows;
 axes->shape[2] = columns;
 axes->stride[0] = item;
 axes->stride[1] = row;
 axes->stride[2] = column;
 axes->tensor.dtype = dtype;
 axes->tensor.rank = 3;
 axes->tensor.shape = axes->shape;
 axes->tensor.stride = axes->stride;
}

/* A cast of the layer's tensor `from` into the temporary `to`, of `elements`: below 0 if they are too many. */
static gemmepi_status gemmepi__build_copy(gemmepi__linear_plan *layer, gemmepi__step *step,
    gemmepi_elementwise_desc *desc, int from, int to,
    int64_t elements) {
 gemmepi__task task;
 gemmepi_status status;
 if (elements < 0)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "desc.%s is copied item by item for its product, and has more than 2^56 elements",
   gemmepi__layer_name(&layer->task, from));
 desc->operation = GEMMEPI_OP_CAST;
 status = gemmepi__take_task(desc, (size_t)layer->task.alignment, &task);
 if (!status)
  status = gemmepi__build_elementwise(layer->base.context, &task, &step->copy);
 if (status)
  return status;
 step->workspace_size = step->copy->workspace_size;
 step->sources[GEMMEPI__A] = (int8_t)from;
 step->sources[GEMMEPI__D] = (int8_t)to;
 layer->temporary_bytes[to - GEMMEPI__G] =
  gemmepi__bytes_for(elements, gemmepi_dtype_size(desc->y->dtype));
 return GEMMEPI_OK;
}

/* The scales of A or B one item after another, as a cast reads them; those that are one number for an item are written out
 for each of its `outer` rows (columns of B). *source is where they are then. */
static gemmepi_status gemmepi__add_scales(gemmepi__linear_plan *layer, int tensor, int64_t outer,
    int *source) {
 const gemmepi__view *view = &layer->task.views[GEMMEPI__L_SCALE_OF(tensor)];
 int mode = layer->task.views[tensor].scale, repeats = mode == GEMMEPI_SCALE_TENSOR;
 int64_t length = repeats ? outer : view->length;
 int64_t ld =
  mode == GEMMEPI_SCALE_BLOCK_128 ? (length + 3) / 4 * 4 : length; /* one line lost its padding */
 int64_t items = layer->task.batch, item = gemmepi__times(view->lines, ld);
 int to = tensor == GEMMEPI__L_A ? GEMMEPI__SCALES_A : GEMMEPI__SCALES_B;
 gemmepi__three_axes given, dense;
 gemmepi_elementwise_desc desc;
 gemmepi__step *step;
 *source = GEMMEPI__L_SCALE_OF(tensor);
 if (items <= 1 || (!repeats && view->batch_stride == item) || (repeats && view->batch_stride == 0))
  return GEMMEPI_OK;
 *source = to;
 step = gemmepi__new_step(layer, GEMMEPI__STEP_COPY, tensor == GEMMEPI__L_A ? "A's scales" : "B's scales");
 gemmepi__fill_three_axes(&given, GEMMEPI_F32, items, view->lines, length, view->batch_stride, view->ld,
    !repeats);
 gemmepi__fill_three_axes(&dense, GEMMEPI_F32, items, view->lines, length, item, ld, 1);
 memset(&desc, 0, sizeof desc);
 desc.a = &given.tensor;
 desc.y = &dense.tensor;
 desc.alignment = 4; /* a scale's own */
 return gemmepi__build_copy(layer, step, &desc, GEMMEPI__L_SCALE_OF(tensor), to,
    gemmepi__offset(items, item, 0));
}

/* op(A) or op(B), item by item, as a dense matrix in workspace, whose items are stacked along the sum of the product that it is
 for: A by rows, B by columns (so it is stored transposed). Scales are multiplied in, in F32. */
static gemmepi_status gemmepi__add_copy(gemmepi__linear_plan *layer, int tensor, gemmepi_matrix *matrix,
    int *source) {
 const gemmepi__layer_task *task = &layer->task;
 const gemmepi__view *view = &task->views[tensor];
 int is_a = tensor == GEMMEPI__L_A, to = is_a ? GEMMEPI__COPY_A : GEMMEPI__COPY_B, scales = 0;
 int rows_are_lines = view->transposed == !is_a; /* A's rows and B's columns are what is stacked */
 int64_t outer = is_a ? task->m : task->n, ld = gemmepi__padded(task->k), items = task->batch;
 gemmepi_dtype wide = view->scale ? GEMMEPI_F32 : GEMMEPI_BF16;
 gemmepi_dtype dtype = gemmepi__is_fp8(view->dtype) ? wide : (gemmepi_dtype)view->dtype;
 gemmepi__three_axes given, dense;
 gemmepi_elementwise_desc desc;
 gemmepi__step *step;
 gemmepi_status status = view->scale ? gemmepi__add_scales(layer, tensor, outer, &scales) : GEMMEPI_OK;
 if (status)
  return status;
 step = gemmepi__new_step(layer, GEMMEPI__STEP_COPY, is_a ? "a copy of A" : "a copy of B");
 *matrix = gemmepi__dense_matrix(dtype, outer, ld);
 matrix->transposed = !is_a;
 *source = to;
 gemmepi__fill_three_axes(&given, (gemmepi_dtype)view->dtype, items, outer, task->k, view->batch_stride,
    rows_are_lines ? view->ld : 1, rows_are_lines ? 1 : view->ld);
 gemmepi__fill_three_axes(&dense, dtype, items, outer, task->k, matrix->batch_stride, ld, 1);
 memset(&desc, 0, sizeof desc);
 desc.a = &given.tensor;
 desc.y = &dense.tensor;
 desc.alignment = (size_t)task->alignment;
 if (view->scale) {
  desc.flags = GEMMEPI_CAST_SCALE;
  desc.scale_mode = (gemmepi_scale_mode)view->scale;
  if (view->scale == GEMMEPI_SCALE_TENSOR && scales != GEMMEPI__L_SCALE_OF(tensor))
   desc.scale_mode = GEMMEPI_SCALE_OUTER;
  step->sources[GEMMEPI__SCALE_A] = (int8_t)scales;
 }
 return gemmepi__build_copy(layer, step, &desc, tensor, to,
    gemmepi__offset(gemmepi__offset(outer, ld, 0), items, 0));
}

/* Whether the product for a gradient takes the operand as it lies. stacks: the items of the batch lie so that the product
 sums over them, or it does not have to. */
static int gemmepi__takes_factor(const gemmepi__layer_task *task, int tensor, int sums_items, int stacks) {
 const gemmepi__view *view = &task->views[tensor];
 int varies = view->scale > GEMMEPI_SCALE_TENSOR ||
    (view->scale && sums_items && task->views[GEMMEPI__L_SCALE_OF(tensor)].batch_stride);
 return !varies && (!sums_items || stacks);
}

static gemmepi_status gemmepi__take_factors(gemmepi__linear_plan *layer, gemmepi__factors *factors) {
 const gemmepi__layer_task *task = &layer->task;
 gemmepi_status status = GEMMEPI_OK;
 int empty = task->m == 0 || task->n == 0 || task->k == 0;
 int sums_a = task->shares_b && task->batch > 1, sums_b = task->sums_da && task->batch > 1;
 factors->a = gemmepi__layer_matrix(task, GEMMEPI__L_A);
 factors->b = gemmepi__layer_matrix(task, GEMMEPI__L_B);
 factors->a_source = GEMMEPI__L_A;
 factors->b_source = GEMMEPI__L_B;
 if (empty) { /* nothing is read: how items would follow one another, and their scales, are all the same */
  factors->a.ld = factors->a.batch_stride = 0;
  factors->b.ld = factors->b.batch_stride = 0;
  memset(&factors->a.scale, 0, sizeof factors->a.scale);
  memset(&factors->b.scale, 0, sizeof factors->b.scale);
 }
 if (task->flags & GEMMEPI_LINEAR_DB && !empty &&
  !gemmepi__takes_factor(task, GEMMEPI__L_A, sums_a,
    gemmepi__stacks_rows(&factors->a, task->batch, task->m)))
  status = gemmepi__add_copy(layer, GEMMEPI__L_A, &factors->a, &factors->a_source);
 if (!status && task->flags & GEMMEPI_LINEAR_DA && !empty &&
  !gemmepi__takes_factor(task, GEMMEPI__L_B, sums_b,
    gemmepi__stacks_columns(&factors->b, task->batch, task->n)))
  status = gemmepi__add_copy(layer, GEMMEPI__L_B, &factors->b, &factors->b_source);
 return status;
}

static gemmepi_status gemmepi__take_g(gemmepi__linear_plan *layer, gemmepi__factors *factors) {
 const gemmepi__layer_task *task = &layer->task;
 int64_t elements;
 factors->g = gemmepi__g_matrix(task);
 factors->g_source = GEMMEPI__G;
 if (task->m == 0 || task->n == 0)
  return GEMMEPI_OK; /* it has no element, and no step makes it */
 if (gemmepi__dy_is_g(task)) {
  factors->g = gemmepi__layer_matrix(task, GEMMEPI__L_DY);
  factors->g_source = GEMMEPI__L_DY;
  return GEMMEPI_OK;
 }
 elements = gemmepi__offset(task->m, factors->g.ld, 0);
 elements = elements < 0 || task->sums_da ? elements : gemmepi__offset(task->batch, elements, 0);
 if (elements < 0)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "G has more than 2^56 elements");
 if (!gemmepi__wants_only_sums(task))
  layer->temporary_bytes[0] =
   gemmepi__bytes_for(elements, gemmepi_dtype_size((gemmepi_dtype)task->g_dtype));
 return task->flags & GEMMEPI_LINEAR_RECOMPUTE ? gemmepi__add_recomputation(layer, &factors->g)
    : gemmepi__add_pass(layer, &factors->g);
}

/* What dA's and dB's products have in common: D, which they overwrite or add to. */
static gemmepi__step *gemmepi__new_gradient(gemmepi__linear_plan *layer, int tensor,
    gemmepi_matmul_desc *desc) {
 const gemmepi__layer_task *task = &layer->task;
 int is_da = tensor == GEMMEPI__L_DA;
 gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_PRODUCT, is_da ? "dA" : "dB");
 desc->d = gemmepi__layer_matrix(task, tensor);
 desc->d.transposed = 0;
 desc->flags = 0;
 step->sources[GEMMEPI__D] = (int8_t)tensor;
 step->accumulates = (task->flags & (is_da ? GEMMEPI_ACCUMULATE_DA : GEMMEPI_ACCUMULATE_DB)) != 0;
 if (step->accumulates) {
  desc->flags = GEMMEPI_ACCUMULATE;
  step->sources[GEMMEPI__C] = (int8_t)tensor;
 }
 return step;
}

/* D = L R as it stands, or the transposed product, D^T = R^T L^T, where D is stored transposed. */
static void gemmepi__turn_product(gemmepi_matmul_desc *desc, gemmepi__step *step) {
 gemmepi_matrix left = desc->a;
 int64_t m = desc->m;
 int8_t source = step->sources[GEMMEPI__A], scale = step->sources[GEMMEPI__SCALE_A];
 desc->a = desc->b;
 desc->b = left;
 desc->a.transposed = !desc->a.transposed;
 desc->b.transposed = !desc->b.transposed;
 desc->m = desc->n;
 desc->n = m;
 step->sources[GEMMEPI__A] = step->sources[GEMMEPI__B];
 step->sources[GEMMEPI__B] = source;
 step->sources[GEMMEPI__SCALE_A] = step->sources[GEMMEPI__SCALE_B];
 step->sources[GEMMEPI__SCALE_B] = scale;
 desc->epilogue = gemmepi__callers_epilogue(desc->epilogue, 1);
}

/* dA = G op(B)^T: one product of all items where they are stacked, or where dA sums over them. */
static gemmepi_status gemmepi__add_da(gemmepi__linear_plan *layer, const gemmepi__factors *factors) {
 const gemmepi__layer_task *task = &layer->task;
 gemmepi_matrix da = gemmepi__layer_matrix(task, GEMMEPI__L_DA);
 int sums = task->sums_da, stacks;
 gemmepi_matmul_desc desc = gemmepi__step_desc(task, task->m, task->k, task->n, sums ? 1 : task->batch);
 gemmepi__step *step = gemmepi__new_gradient(layer, GEMMEPI__L_DA, &desc);
 desc.a = factors->g;
 desc.b = factors->b;
 desc.b.transposed = !desc.b.transposed;
 stacks = !sums && task->shares_b && task->batch > 1 &&
    gemmepi__stacks_rows(&desc.a, task->batch, task->m) &&
    gemmepi__stacks_rows(&da, task->batch, task->m);
 if (sums)
  desc.k = gemmepi__times(task->batch, task->n);
 if (stacks) {
  desc.m = gemmepi__times(task->batch, task->m);
  desc.batch = 1;
 }
 desc.compute =
  gemmepi__gradient_compute((gemmepi_compute)task->compute, (int)desc.a.dtype, (int)desc.b.dtype);
 step->sources[GEMMEPI__A] = (int8_t)factors->g_source;
 step->sources[GEMMEPI__B] = (int8_t)factors->b_source;
 step->sources[GEMMEPI__SCALE_B] = GEMMEPI__L_SCALE_B;
 if (da.transposed)
  gemmepi__turn_product(&desc, step);
 return gemmepi__build_product_step(layer, step, &desc);
}

/* dB = op(A)^T G, and dbias where nothing else leaves it. */
static void gemmepi__fill_db(const gemmepi__layer_task *task, const gemmepi__factors *factors, int sums_dbias,
    gemmepi_matmul_desc *desc, gemmepi__step *step) {
 desc->a = factors->a;
 desc->a.transposed = !desc->a.transposed;
 desc->b = factors->g;
 desc->compute =
  gemmepi__gradient_compute((gemmepi_compute)task->compute, (int)desc->a.dtype, (int)desc->b.dtype);
 step->sources[GEMMEPI__A] = (int8_t)factors->a_source;
 step->sources[GEMMEPI__B] = (int8_t)factors->g_source;
 step->sources[GEMMEPI__SCALE_A] = GEMMEPI__L_SCALE_A;
 if (sums_dbias) {
  desc->epilogue = gemmepi__dbias_epilogue(task, GEMMEPI_BGRAD_B);
  desc->bias_grad = gemmepi__layer_vector(task, GEMMEPI__L_DBIAS);
  step->sources[GEMMEPI__BIAS_GRAD] = GEMMEPI__L_DBIAS;
 }
}

/* The product that dB is, of `rows` rows of op(A)^T. */
static gemmepi_matmul_desc gemmepi__db_desc(const gemmepi__layer_task *task, int64_t rows) {
 return gemmepi__step_desc(task, rows, task->n,
    task->shares_b ? gemmepi__times(task->batch, task->m) : task->m,
    task->shares_b ? 1 : task->batch);
}

/* gemm_sm90.cu sums G on the way. By cuBLASLt dbias costs 23, 9 and 121 us at m 8192 and (n, k) = (3072, 768), (768, 3072),
 (14336, 4096) in BF16 on an H200, and an element-wise sum of G 25, 13 and 92. */
static gemmepi_status gemmepi__add_db(gemmepi__linear_plan *layer, const gemmepi__factors *factors,
    int sums_dbias) {
 gemmepi_matmul_desc desc = gemmepi__db_desc(&layer->task, layer->task.k);
 gemmepi__step *step = gemmepi__new_gradient(layer, GEMMEPI__L_DB, &desc);
 gemmepi__fill_db(&layer->task, factors, sums_dbias, &desc, step);
 if (layer->task.views[GEMMEPI__L_DB].transposed)
  gemmepi__turn_product(&desc, step);
 return gemmepi__build_product_step(layer, step, &desc);
}

/* dbias as the sums of G's columns alone: those of a product that is not made. */
static gemmepi_status gemmepi__add_dbias(gemmepi__linear_plan *layer, const gemmepi__factors *factors) {
 gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_SUM, "dbias");
 gemmepi__factors sums = *factors;
 gemmepi_matmul_desc desc = gemmepi__db_desc(&layer->task, 1);
 gemmepi_status status;
 memset(&sums.a, 0, sizeof sums.a);
 sums.a.dtype = sums.g.dtype;
 desc.flags = 0;
 gemmepi__fill_db(&layer->task, &sums, 1, &desc, step);
 desc.d = gemmepi__dense_matrix(sums.g.dtype, 1, desc.n);
 status = gemmepi__normalise_step(layer, step, &desc, &step->problem);
 return status ? status : gemmepi__build_kernels(layer, step);
}

/* A gradient without an element has no step: the axes that its product would sum over may be longer than any product's. Where it
 has one, batch * m * n is a number of elements. */
static gemmepi_status gemmepi__build_backward(gemmepi__linear_plan *layer) {
 const gemmepi__layer_task *task = &layer->task;
 gemmepi__factors factors;
 gemmepi_status status = gemmepi__take_factors(layer, &factors);
 int has_da = task->flags & GEMMEPI_LINEAR_DA && task->m != 0 && task->k != 0;
 int has_db = task->flags & GEMMEPI_LINEAR_DB && task->n != 0 && task->k != 0;
 int before = layer->step_count, sums_dbias;
 if (!status)
  status = gemmepi__take_g(layer, &factors);
 /* dY itself, or no element at all, leaves no sums */
 sums_dbias = task->flags & GEMMEPI_LINEAR_DBIAS && layer->step_count == before;
 if (!status && has_da)
  status = gemmepi__add_da(layer, &factors);
 if (!status && has_db)
  status = gemmepi__add_db(layer, &factors, sums_dbias);
 if (!status && sums_dbias && !has_db && task->n != 0)
  status = gemmepi__add_dbias(layer, &factors);
 return status;
}

static gemmepi_status gemmepi__build_forward(gemmepi__linear_plan *layer) {
 const gemmepi__layer_task *task = &layer->task;
 gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_PRODUCT, "Y");
 gemmepi_matmul_desc desc = gemmepi__step_desc(task, task->m, task->n, task->k, task->batch);
 desc.compute = (gemmepi_compute)task->compute;
 desc.epilogue = task->epilogue;
 gemmepi__give_parameter(task, &desc);
 desc.a = gemmepi__layer_matrix(task, GEMMEPI__L_A);
 desc.b = gemmepi__layer_matrix(task, GEMMEPI__L_B);
 desc.d = gemmepi__layer_matrix(task, GEMMEPI__L_Y);
 step->sources[GEMMEPI__A] = GEMMEPI__L_A;
 step->sources[GEMMEPI__B] = GEMMEPI__L_B;
 step->sources[GEMMEPI__D] = GEMMEPI__L_Y;
 step->sources[GEMMEPI__SCALE_A] = GEMMEPI__L_SCALE_A;
 step->sources[GEMMEPI__SCALE_B] = GEMMEPI__L_SCALE_B;
 step->sources[GEMMEPI__SCALE_D] = GEMMEPI__L_SCALE_Y;
 if (task->flags & GEMMEPI_LINEAR_BIAS) {
  desc.epilogue |= GEMMEPI_BIAS;
  desc.bias = gemmepi__layer_vector(task, GEMMEPI__L_BIAS);
  step->sources[GEMMEPI__BIAS] = GEMMEPI__L_BIAS;
 }
 if (task->flags & GEMMEPI_LINEAR_SAVED) {
  desc.epilogue |= GEMMEPI_AUX;
  desc.aux = gemmepi__layer_matrix(task, GEMMEPI__L_PREACT);
  step->sources[GEMMEPI__AUX] = GEMMEPI__L_PREACT;
  step->sources[GEMMEPI__SCALE_AUX] = GEMMEPI__L_SCALE_PREACT;
 }
 return gemmepi__build_product_step(layer, step, &desc);
}

static void gemmepi__destroy_layer(gemmepi_plan *destroyed) {
 gemmepi__linear_plan *layer = (gemmepi__linear_plan *)destroyed;
 int i;
 for (i = 0; i < layer->step_count; i++) {
  if (layer->steps[i].product)
   gemmepi__release_plan(&layer->steps[i].product->base);
  if (layer->steps[i].copy)
   gemmepi__release_plan(&layer->steps[i].copy->base);
 }
 gemmepi__delete(&layer->base.context->allocator, layer);
}

static size_t gemmepi__all_temporaries(const gemmepi__linear_plan *layer) {
 size_t size = 0;
 int i;
 for (i = 0; i < GEMMEPI__TEMPORARIES; i++)
  size += gemmepi__round_up(layer->temporary_bytes[i], 256);
 return size;
}

/* Temporaries one after another, then what the largest step needs now. On the host 0: there temporaries are allocated for each
 run. */
static size_t gemmepi__layer_workspace(const gemmepi__linear_plan *layer) {
 size_t most = 0;
 int i;
 if (layer->base.context->is_host)
  return 0;
 for (i = 0; i < layer->step_count; i++) {
  const gemmepi__step *step = &layer->steps[i];
  size_t size = step->product ? gemmepi__workspace_now(step->product) : step->workspace_size;
  most = size > most ? size : most;
 }
 return gemmepi__all_temporaries(layer) + most;
}

static gemmepi_status gemmepi__build_layer(gemmepi_context *context, const gemmepi__layer_task *task,
    gemmepi__linear_plan **result) {
 gemmepi__linear_plan *layer = (gemmepi__linear_plan *)gemmepi__new(&context->allocator, sizeof *layer);
 gemmepi_status status;
 if (!layer)
  return GEMMEPI_OUT_OF_MEMORY;
 layer->base = gemmepi__plan_base(
  context, gemmepi__is_backward(task) ? GEMMEPI_PLAN_LINEAR_BACKWARD : GEMMEPI_PLAN_LINEAR,
  gemmepi__destroy_layer);
 layer->task = *task;
 status = gemmepi__is_backward(task) ? gemmepi__build_backward(layer) : gemmepi__build_forward(layer);
 if (status) {
  gemmepi__release_plan(&layer->base);
  return status;
 }
 layer->built_size = gemmepi__layer_workspace(layer);
 *result = layer;
 return GEMMEPI_OK;
}

static gemmepi_status gemmepi__plan_layer(gemmepi_context *context, const gemmepi_linear_desc *desc,
    int backward, gemmepi_plan **result) {
 gemmepi__layer_task task;
 gemmepi__linear_plan *layer = NULL;
 gemmepi_status status;
 if (result)
  *result = NULL; /* also after a failure */
 if (!context || !result)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 status = gemmepi__take_layer(desc, backward, GEMMEPI__DEFAULT_ALIGNMENT, &task);
 if (!status)
  status = gemmepi__build_layer(context, &task, &layer);
 if (!status)
  *result = &layer->base;
 return status;
}

GEMMEPI_API gemmepi_status gemmepi_plan_linear(gemmepi_context *context, const gemmepi_linear_desc *desc,
    gemmepi_plan **plan) {
 return gemmepi__plan_layer(context, desc, 0, plan);
}

GEMMEPI_API gemmepi_status gemmepi_plan_linear_backward(gemmepi_context *context,
    const gemmepi_linear_desc *desc,
    gemmepi_plan **plan) {
 return gemmepi__plan_layer(context, desc, 1, plan);
}

/* >>running */

/* A run's pointers by source, and what its steps may use. */
typedef struct gemmepi__layer_run {
 void *sources[GEMMEPI__SOURCES];
 char *workspace;
 size_t workspace_size;
} gemmepi__layer_run;

static void gemmepi__point_layer(const gemmepi__linear_plan *layer, void *workspace, size_t size,
    gemmepi__layer_run *run) {
 int i;
 run->workspace = (char *)workspace;
 run->workspace_size = size;
 for (i = 0; i < GEMMEPI__TEMPORARIES; i++) {
  size_t bytes = gemmepi__round_up(layer->temporary_bytes[i], 256);
  run->sources[GEMMEPI__G + i] = bytes ? run->workspace : NULL;
  if (bytes) {
   run->workspace += bytes;
   run->workspace_size -= bytes;
  }
 }
}

/* No checks: those of the layer cover them. */
static void gemmepi__point_step(const gemmepi__step *step, const gemmepi__problem *problem,
    const gemmepi__layer_run *run, gemmepi__arguments *arguments) {
 int operand;
 memset(arguments, 0, sizeof *arguments);
 for (operand = 0; operand < GEMMEPI__OPERANDS; operand++)
  if (step->sources[operand] != GEMMEPI__NO_SOURCE && problem->views[operand].dtype)
   arguments->pointers[operand] = run->sources[step->sources[operand]];
 arguments->alpha = 1;
 arguments->beta = step->accumulates;
 arguments->uses_c = step->accumulates;
 if (!step->accumulates)
  arguments->pointers[GEMMEPI__C] = NULL;
}

static void gemmepi__point_copy(const gemmepi__step *step, const gemmepi__layer_run *run,
    gemmepi_elementwise_args *args, void *pointers[GEMMEPI__TENSORS]) {
 int scale = step->sources[GEMMEPI__SCALE_A];
 memset(args, 0, sizeof *args);
 args->a = run->sources[step->sources[GEMMEPI__A]];
 args->y = run->sources[step->sources[GEMMEPI__D]];
 args->scale = scale == GEMMEPI__NO_SOURCE ? NULL : (const float *)run->sources[scale];
 args->workspace = run->workspace;
 args->workspace_size = run->workspace_size;
 gemmepi__take_pointers_of(args, pointers);
}

static gemmepi_status gemmepi__run_product_step(const gemmepi__linear_plan *layer, const gemmepi__step *step,
    const gemmepi__layer_run *run, gemmepi_stream stream) {
 gemmepi_matmul_args args;
 gemmepi__arguments arguments;
 if (gemmepi__writes_nothing(&step->product->problem))
  return GEMMEPI_OK;
 gemmepi__point_step(step, &step->product->problem, run, &arguments);
#ifndef GEMMEPI_NO_HOST
 if (layer->base.context->is_host)
  return gemmepi__run_on_host(step->product, &arguments);
#endif
 (void)layer;
 memset(&args, 0, sizeof args);
 args.workspace = run->workspace;
 args.workspace_size = run->workspace_size;
 return gemmepi__run_on_device(step->product, &args, &arguments, stream);
}

static gemmepi_status gemmepi__run_kernel_step(const gemmepi__linear_plan *layer, const gemmepi__step *step,
    const gemmepi__layer_run *run, gemmepi_stream stream) {
 gemmepi_status status = GEMMEPI_OK;
 gemmepi__arguments arguments;
 char *between = gemmepi__past(run->workspace, step->pass.partial_bytes);
 gemmepi__point_step(step, &step->problem, run, &arguments);
#ifndef GEMMEPI_NO_HOST
 if (layer->base.context->is_host && step->kind == GEMMEPI__STEP_PASS) {
  gemmepi__host_given given;
  given.view = &step->given;
  given.data = run->sources[step->given_source];
  gemmepi__host_product(&step->problem, &arguments, &given);
  return GEMMEPI_OK;
 }
 if (layer->base.context->is_host) {
  gemmepi__host_sum_operand(&step->problem, &arguments);
  return GEMMEPI_OK;
 }
#endif
 if (step->kind == GEMMEPI__STEP_PASS)
  status = gemmepi__run_pass(layer->base.context, &step->pass, &arguments,
    run->sources[step->given_source], run->workspace, stream);
 if (!status)
  status =
   gemmepi__run_sums(layer->base.context, &step->sums, &arguments, run->workspace, between, stream);
 return status;
}

static gemmepi_status gemmepi__run_copy_step(const gemmepi__linear_plan *layer, const gemmepi__step *step,
    const gemmepi__layer_run *run, gemmepi_stream stream) {
 gemmepi_elementwise_args args;
 void *pointers[GEMMEPI__TENSORS];
 gemmepi__point_copy(step, run, &args, pointers);
#ifndef GEMMEPI_NO_HOST
 if (layer->base.context->is_host) {
  gemmepi__host_elementwise(&step->copy->task, pointers, 0, args.scale, NULL, NULL);
  return GEMMEPI_OK;
 }
#endif
 (void)layer;
 return gemmepi__launch_elementwise(step->copy, &args, pointers, stream);
}

/* The primary context is current, but on the host. */
static gemmepi_status gemmepi__run_steps(const gemmepi__linear_plan *layer, const gemmepi__layer_run *run,
    gemmepi_stream stream) {
 gemmepi_status status = GEMMEPI_OK;
 int i;
 for (i = 0; i < layer->step_count && !status; i++) {
  const gemmepi__step *step = &layer->steps[i];
  status = step->kind == GEMMEPI__STEP_PRODUCT ? gemmepi__run_product_step(layer, step, run, stream)
    : step->kind == GEMMEPI__STEP_COPY  ? gemmepi__run_copy_step(layer, step, run, stream)
    : gemmepi__run_kernel_step(layer, step, run, stream);
 }
 return status;
}

/* The temporaries of a host's run are memory for its time. */
static gemmepi_status gemmepi__run_layer_on_host(const gemmepi__linear_plan *layer, gemmepi__layer_run *run) {
 size_t size = gemmepi__all_temporaries(layer);
 void *memory = size ? gemmepi__new(&layer->base.context->allocator, size) : NULL;
 gemmepi_status status;
 if (size && !memory)
  return GEMMEPI_OUT_OF_MEMORY;
 gemmepi__point_layer(layer, memory, size, run);
 status = gemmepi__run_steps(layer, run, NULL);
 if (memory)
  gemmepi__delete(&layer->base.context->allocator, memory);
 return status;
}

/* The context's own workspace for layers is a block beside that for products, because a product that cuBLASLt refuses may
 reserve that in the middle of a layer. */
static gemmepi__stream_key gemmepi__layer_key(gemmepi_stream stream) {
 gemmepi__stream_key key = gemmepi__key_of_stream(stream);
 key.thread = ~key.thread; /* no thread has that number */
 return key;
}

static gemmepi_status gemmepi__run_layer_in_block(const gemmepi__linear_plan *layer, size_t needed,
    gemmepi__layer_run *run, gemmepi_stream stream) {
 gemmepi__block *block =
  gemmepi__take_block(layer->base.context, gemmepi__layer_key(stream), needed, "gemmepi_plan_prepare");
 gemmepi_status status;
 if (!block)
  return GEMMEPI_BUFFER_TOO_SMALL;
 gemmepi__point_layer(layer, (void *)(uintptr_t)block->address, block->size, run);
 status = gemmepi__run_steps(layer, run, stream);
 gemmepi__give_block(block);
 return status;
}

/* Workspace is had before the first step is launched. A layer whose product has taken a route that needs more may do so without
 the caller knowing: then it takes the context's, as products do. */
static gemmepi_status gemmepi__run_layer_on_device(const gemmepi__linear_plan *layer,
    const gemmepi_linear_args *args, gemmepi__layer_run *run,
    gemmepi_stream stream) {
 size_t needed = gemmepi__layer_workspace(layer), given = args->workspace ? args->workspace_size : 0;
 gemmepi_status status;
 if (needed > layer->built_size && given < needed) {
  status = gemmepi__reserve_for(layer->base.context, stream, gemmepi__layer_key(stream), needed);
  return status ? status : gemmepi__run_layer_in_block(layer, needed, run, stream);
 }
 if (needed && !args->workspace)
  return gemmepi__run_layer_in_block(layer, needed, run, stream);
 if (needed || given) {
  status = gemmepi__check_given_workspace(args->workspace, given, needed);
  if (!status)
   status = gemmepi__check_layer_workspace(&layer->task, args, run->sources);
  if (status)
   return status;
 }
 gemmepi__point_layer(layer, args->workspace, given, run);
 return gemmepi__run_steps(layer, run, stream);
}

static gemmepi_status gemmepi__check_layer_reach(const gemmepi__linear_plan *layer,
    const gemmepi_linear_args *args, void *const *pointers) {
 const gemmepi_context *context = layer->base.context;
 gemmepi_status status = gemmepi__check_reachable(context, "workspace", args->workspace);
 int t;
 for (t = 0; t < GEMMEPI__L_COUNT && !status; t++)
  if (gemmepi__layer_has(&layer->task, t))
   status = gemmepi__check_reachable(context, gemmepi__layer_name(&layer->task, t), pointers[t]);
 return status;
}

/* one_shot: as gemmepi__run_matmul's. */
static gemmepi_status gemmepi__run_layer(const gemmepi__linear_plan *layer, const gemmepi_linear_args *args,
    int one_shot, gemmepi_stream stream) {
 gemmepi__layer_run run;
 gemmepi__entry entry;
 gemmepi_status status;
 status = gemmepi__check_run(layer->base.context, stream, args->workspace, args->workspace_size);
 if (status)
  return status;
 gemmepi__take_layer_pointers(&layer->task, args, run.sources);
 status = gemmepi__check_layer_presence(&layer->task, run.sources);
 if (!status)
  status = gemmepi__check_layer_alignment(&layer->task, run.sources);
 if (!status)
  status = gemmepi__check_layer_overlap(&layer->task, run.sources);
 if (!status && args->workspace && layer->base.context->is_host)
  status = gemmepi__check_layer_workspace(&layer->task, args, run.sources);
 if (status || layer->base.context->is_host)
  return status ? status : gemmepi__run_layer_on_host(layer, &run);
 status = gemmepi__enter(layer->base.context, &entry);
 if (status)
  return status;
 if (one_shot || layer->base.context->check_pointers)
  status = gemmepi__check_layer_reach(layer, args, run.sources);
 if (!status)
  status = gemmepi__run_layer_on_device(layer, args, &run, stream);
 gemmepi__leave(layer->base.context, &entry);
 return status;
}

GEMMEPI_API gemmepi_status gemmepi_run_linear(const gemmepi_plan *plan, const gemmepi_linear_args *args,
    gemmepi_stream stream) {
 gemmepi_status status = gemmepi__check_plan(plan, args, GEMMEPI_PLAN_LINEAR);
 return status ? status : gemmepi__run_layer((const gemmepi__linear_plan *)plan, args, 0, stream);
}

GEMMEPI_API gemmepi_status gemmepi_run_linear_backward(const gemmepi_plan *plan,
    const gemmepi_linear_args *args,
    gemmepi_stream stream) {
 gemmepi_status status = gemmepi__check_plan(plan, args, GEMMEPI_PLAN_LINEAR_BACKWARD);
 return status ? status : gemmepi__run_layer((const gemmepi__linear_plan *)plan, args, 0, stream);
}

static gemmepi_status gemmepi__prepare_layer(const gemmepi__linear_plan *layer, gemmepi_stream stream) {
 return gemmepi__reserve_for(layer->base.context, stream, gemmepi__layer_key(stream),
    gemmepi__layer_workspace(layer));
}

/* >>calls that plan by themselves */

/* The alignment class of the pointers, as gemmepi__alignment_of for products. Scales have their own rules. */
static size_t gemmepi__alignment_of_layer(const gemmepi_linear_args *args, int backward) {
 uintptr_t bits = (uintptr_t)args->a | (uintptr_t)args->b | (uintptr_t)args->bias |
    (uintptr_t)args->preact | GEMMEPI__DEFAULT_ALIGNMENT;
 bits |= backward
    ? (uintptr_t)args->dy | (uintptr_t)args->da | (uintptr_t)args->db | (uintptr_t)args->dbias
    : (uintptr_t)args->y;
 return (size_t)(bits & (~bits + 1));
}

static gemmepi_status gemmepi__call_layer(gemmepi_context *context, const gemmepi_linear_desc *desc,
    const gemmepi_linear_args *args, int backward,
    gemmepi_stream stream) {
 gemmepi__layer_task task;
 gemmepi__linear_plan *layer;
 gemmepi_plan *kept;
 gemmepi_status status;
 if (!context || !args)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "args" : "context");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 status = gemmepi__take_layer(desc, backward, gemmepi__alignment_of_layer(args, backward), &task);
 if (status)
  return status;
 kept = gemmepi__find_kept(context, &task, sizeof task);
 if (!kept) {
  status = gemmepi__build_layer(context, &task, &layer);
  if (status)
   return status;
  kept = gemmepi__keep(context, &task, sizeof task, &layer->base);
 }
 layer = (gemmepi__linear_plan *)kept;
 if (!args->workspace)
  status = gemmepi__prepare_layer(layer, stream);
 if (!status)
  status = gemmepi__run_layer(layer, args, 1, stream);
 gemmepi__release_plan(kept);
 return status;
}

GEMMEPI_API gemmepi_status gemmepi_linear(gemmepi_context *context, const gemmepi_linear_desc *desc,
    const gemmepi_linear_args *args, gemmepi_stream stream) {
 return gemmepi__call_layer(context, desc, args, 0, stream);
}

GEMMEPI_API gemmepi_status gemmepi_linear_backward(gemmepi_context *context, const gemmepi_linear_desc *desc,
    const gemmepi_linear_args *args, gemmepi_stream stream) {
 return gemmepi__call_layer(context, desc, args, 1, stream);
}
/* What a layer's plan is, as a struct and in words. */

static int gemmepi__step_launches(const gemmepi__step *step) {
 gemmepi_plan_details details;
 switch (step->kind) {
 case GEMMEPI__STEP_PRODUCT:
  gemmepi__matmul_info(step->product, &details);
  return details.launches;
 case GEMMEPI__STEP_COPY:
  return gemmepi__elementwise_launches(step->copy);
 default:
  return (step->pass.launch.function != NULL) + (step->sums.first.function != NULL) +
    (step->sums.second.function != NULL);
 }
}

static int gemmepi__layer_is_empty(const gemmepi__linear_plan *layer) {
 int i, empty = 1;
 for (i = 0; i < layer->step_count; i++)
  empty = empty && layer->steps[i].kind == GEMMEPI__STEP_PRODUCT &&
    layer->steps[i].product->route == GEMMEPI_ROUTE_EMPTY;
 return empty;
}

/* What makes G; where dY is G, what makes the first gradient. */
static void gemmepi__describe_first(const gemmepi__linear_plan *layer, gemmepi_plan_details *details) {
 gemmepi_plan_details product;
 int i = 0;
 while (i + 1 < layer->step_count && layer->steps[i].kind == GEMMEPI__STEP_COPY)
  i++;
 if (i >= layer->step_count)
  return;
 if (layer->steps[i].kind == GEMMEPI__STEP_PRODUCT) {
  gemmepi__matmul_info(layer->steps[i].product, &product);
  memcpy(details->kernel, product.kernel, sizeof details->kernel);
  details->tile_m = layer->task.exchanged ? product.tile_n : product.tile_m;
  details->tile_n = layer->task.exchanged ? product.tile_m : product.tile_n;
  return;
 }
 snprintf(details->kernel, sizeof details->kernel, "%s",
    layer->base.context->is_host                 ? "gemmepi__host_product"
    : layer->steps[i].kind == GEMMEPI__STEP_PASS ? layer->steps[i].pass.launch.name
    : layer->steps[i].sums.first.name);
}

static void gemmepi__layer_info(const gemmepi__linear_plan *layer, gemmepi_plan_details *details) {
 int i, is_f64;
 if (!gemmepi__is_backward(&layer->task)) {
  gemmepi__matmul_info(layer->steps[0].product, details);
  details->kind = GEMMEPI_PLAN_LINEAR;
  details->workspace_size = gemmepi__layer_workspace(layer);
  return;
 }
 memset(details, 0, sizeof *details);
 details->kind = GEMMEPI_PLAN_LINEAR_BACKWARD;
 is_f64 = layer->task.views[GEMMEPI__L_DY].dtype == GEMMEPI_F64;
 details->route = gemmepi__layer_is_empty(layer) ? GEMMEPI_ROUTE_EMPTY
    : layer->base.context->is_host ? GEMMEPI_ROUTE_HOST
    : GEMMEPI_ROUTE_LINEAR;
 details->route_name = gemmepi__route_names[details->route];
 if (details->route != GEMMEPI_ROUTE_EMPTY)
  gemmepi__describe_first(layer, details);
 for (i = 0; i < layer->step_count && !layer->base.context->is_host; i++)
  details->launches += gemmepi__step_launches(&layer->steps[i]);
 details->workspace_size = gemmepi__layer_workspace(layer);
 details->compute = is_f64                                        ? GEMMEPI_COMPUTE_F64
    : layer->task.compute == GEMMEPI_COMPUTE_TF32 ? GEMMEPI_COMPUTE_TF32
    : GEMMEPI_COMPUTE_F32;
 details->accumulator = is_f64 || layer->base.context->is_host ? GEMMEPI_F64 : GEMMEPI_F32;
 details->deterministic = details->bit_stable = 1;
}

static void gemmepi__explain_step(gemmepi__text *text, const gemmepi__linear_plan *layer,
    const gemmepi__step *step) {
 gemmepi__append(text, "%s: ", step->what);
 if (step->kind == GEMMEPI__STEP_PRODUCT)
  gemmepi__explain_matmul(text, step->product);
 else if (step->kind == GEMMEPI__STEP_COPY)
  gemmepi__explain_elementwise(text, step->copy);
 else if (layer->base.context->is_host)
  gemmepi__append(text, "plain C, accumulated in F64\n");
 else
  gemmepi__append(text, "%s%d launches, sums of dbias in a fixed order\n",
    step->kind == GEMMEPI__STEP_PASS ? "one pass over dY and P, of " : "",
    gemmepi__step_launches(step));
}

static void gemmepi__explain_layer(gemmepi__text *text, const gemmepi__linear_plan *layer) {
 const gemmepi__layer_task *task = &layer->task;
 int i;
 gemmepi__append(
  text, "%s of a layer of m %lld, n %lld, k %lld, batch %lld, activation ",
  gemmepi__is_backward(task) ? "backward" : "forward", (long long)(task->exchanged ? task->n : task->m),
  (long long)(task->exchanged ? task->m : task->n), (long long)task->k, (long long)task->batch);
 gemmepi__append_epilogue(text, task->epilogue);
 gemmepi__append(text, ": %d step%s, workspace %llu bytes\n", layer->step_count,
    layer->step_count == 1 ? "" : "s", (gemmepi__ull)gemmepi__layer_workspace(layer));
 if (task->exchanged)
  gemmepi__append(text, "column-major: in the steps A and B are exchanged, row-major\n");
 for (i = 0; i < layer->step_count; i++)
  gemmepi__explain_step(text, layer, &layer->steps[i]);
}
#endif
/* What plans have in common for their users: one handle, whatever it is that it runs. */

#ifndef GEMMEPI_NO_LINEAR
#endif

GEMMEPI_API void gemmepi_plan_destroy(gemmepi_plan *plan) {
 if (plan && !gemmepi__is_of_parent(plan->context))
  gemmepi__release_plan(plan);
}

GEMMEPI_API gemmepi_status gemmepi_plan_prepare(const gemmepi_plan *plan, gemmepi_stream stream) {
 if (!plan)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "plan is NULL");
 if (gemmepi__came_by_fork(plan->context))
  return GEMMEPI_INVALID_ARGUMENT;
#ifndef GEMMEPI_NO_ELEMENTWISE
 if (plan->kind == GEMMEPI_PLAN_ELEMENTWISE)
  return gemmepi__prepare_elementwise((const gemmepi__elementwise_plan *)plan, stream);
#endif
#ifndef GEMMEPI_NO_LINEAR
 if (plan->kind != GEMMEPI_PLAN_MATMUL)
  return gemmepi__prepare_layer((const gemmepi__linear_plan *)plan, stream);
#endif
 return gemmepi__prepare_matmul((const gemmepi__matmul_plan *)plan, stream);
}

GEMMEPI_API gemmepi_status gemmepi_plan_info(const gemmepi_plan *plan, gemmepi_plan_details *details) {
 if (details)
  memset(details, 0, sizeof *details);
 if (!plan || !details)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", plan ? "details" : "plan");
 if (gemmepi__came_by_fork(plan->context))
  return GEMMEPI_INVALID_ARGUMENT;
 if (plan->kind == GEMMEPI_PLAN_MATMUL)
  gemmepi__matmul_info((const gemmepi__matmul_plan *)plan, details);
#ifndef GEMMEPI_NO_ELEMENTWISE
 else if (plan->kind == GEMMEPI_PLAN_ELEMENTWISE)
  gemmepi__elementwise_info((const gemmepi__elementwise_plan *)plan, details);
#endif
#ifndef GEMMEPI_NO_LINEAR
 else
  gemmepi__layer_info((const gemmepi__linear_plan *)plan, details);
#endif
 return GEMMEPI_OK;
}

GEMMEPI_API size_t gemmepi_plan_explain(const gemmepi_plan *plan, char *text, size_t size) {
 gemmepi__text out = gemmepi__text_in(text, size);
 if (!plan || gemmepi__is_of_parent(plan->context))
  return 0;
 if (plan->kind == GEMMEPI_PLAN_MATMUL)
  gemmepi__explain_matmul(&out, (const gemmepi__matmul_plan *)plan);
#ifndef GEMMEPI_NO_ELEMENTWISE
 else if (plan->kind == GEMMEPI_PLAN_ELEMENTWISE)
  gemmepi__explain_elementwise(&out, (const gemmepi__elementwise_plan *)plan);
#endif
#ifndef GEMMEPI_NO_LINEAR
 else
  gemmepi__explain_layer(&out, (const gemmepi__linear_plan *)plan);
#endif
 return out.length;
}
/* Kernels compiled before they are needed: problems are planned on several threads, and the plans thrown away. */

/* What the threads share. The lock guards what stands behind it, and calls of progress. */
typedef struct gemmepi__precompilation {
 gemmepi_context *context;
 const gemmepi_any_desc *problems;
 size_t count;
 gemmepi_progress_function progress;
 void *user;
 gemmepi__mutex lock;
 size_t next, done;
 size_t failed; /* the first in the list that failed, if status is not OK */
 gemmepi_status status;
 char sentence[GEMMEPI__ERROR_TEXT_SIZE];
} gemmepi__precompilation;

/* One of each kind, but for those that were left out of the program. */
static gemmepi_status gemmepi__plan_any(gemmepi_context *context, const gemmepi_any_desc *problem,
    gemmepi_plan **plan) {
 if (problem->matmul)
  return gemmepi_plan_matmul(context, problem->matmul, plan);
#ifndef GEMMEPI_NO_ELEMENTWISE
 if (problem->elementwise)
  return gemmepi_plan_elementwise(context, problem->elementwise, plan);
#endif
#ifndef GEMMEPI_NO_LINEAR
 if (problem->linear)
  return gemmepi_plan_linear(context, problem->linear, plan);
 if (problem->linear_backward)
  return gemmepi_plan_linear_backward(context, problem->linear_backward, plan);
#endif
 return gemmepi__fail(GEMMEPI_UNSUPPORTED, "%s were left out of this program (%s)",
    problem->elementwise ? "element-wise operations" : "layers",
    problem->elementwise ? "GEMMEPI_NO_ELEMENTWISE" : "GEMMEPI_NO_LINEAR");
}

static gemmepi_status gemmepi__plan_and_drop(gemmepi_context *context, const gemmepi_any_desc *problem) {
 gemmepi_plan *plan = NULL;
 gemmepi_status status;
 int given = (problem->matmul != NULL) + (problem->elementwise != NULL) + (problem->linear != NULL) +
    (problem->linear_backward != NULL);
 if (given != 1)
  return gemmepi__fail(
   GEMMEPI_INVALID_ARGUMENT,
   "%d of matmul, elementwise, linear and linear_backward are given; exactly one is", given);
 status = gemmepi__plan_any(context, problem, &plan);
 if (!status && problem->matmul)
  status = gemmepi__build_for_scalars((const gemmepi__matmul_plan *)plan);
 gemmepi_plan_destroy(plan);
 return status;
}

/* Takes problems until none is left. */
static void gemmepi__precompile_some(gemmepi__precompilation *all) {
 gemmepi__lock(&all->lock);
 while (all->next < all->count) {
  size_t mine = all->next++;
  gemmepi_status status;
  gemmepi__unlock(&all->lock);
  status = gemmepi__plan_and_drop(all->context, &all->problems[mine]);
  gemmepi__lock(&all->lock);
  if (status && (!all->status || mine < all->failed)) {
   all->status = status;
   all->failed = mine;
   snprintf(all->sentence, sizeof all->sentence, "%s", gemmepi__error_text);
  }
  all->done++;
  if (all->progress)
   all->progress(all->user, all->done, all->count);
 }
 gemmepi__unlock(&all->lock);
}

GEMMEPI__THREAD_BODY(gemmepi__precompile_body) {
 gemmepi__precompile_some((gemmepi__precompilation *)user);
 return 0;
}

#define GEMMEPI__MOST_THREADS 256

GEMMEPI_API gemmepi_status gemmepi_precompile(gemmepi_context *context, const gemmepi_any_desc *problems,
    size_t count, int threads, gemmepi_progress_function progress,
    void *user) {
 gemmepi__precompilation all;
 gemmepi__thread others[GEMMEPI__MOST_THREADS];
 int started = 0, i;
 if (!context || (!problems && count))
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "problems" : "context");
 if (gemmepi__came_by_fork(context))
  return GEMMEPI_INVALID_ARGUMENT;
 if (threads < 0)
  return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
    "threads is %d; accepted are 0, for as many as there are cores, and more",
    threads);
 memset(&all, 0, sizeof all);
 all.context = context;
 all.problems = problems;
 all.count = count;
 all.progress = progress;
 all.user = user;
 if (!gemmepi__mutex_init(&all.lock))
  return gemmepi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no mutex");
 threads = threads ? threads : gemmepi__core_count();
 if (threads > GEMMEPI__MOST_THREADS)
  threads = GEMMEPI__MOST_THREADS;
 if ((size_t)threads > count)
  threads = (int)count;
 /* where the system gives fewer threads, these do it all */
 while (started < threads - 1 && gemmepi__thread_start(&others[started], gemmepi__precompile_body, &all))
  started++;
 gemmepi__precompile_some(&all);
 for (i = 0; i < started; i++)
  gemmepi__thread_join(others[i]);
 gemmepi__mutex_destroy(&all.lock);
 if (all.status)
  return gemmepi__fail(all.status, "problems[%llu]: %s", (gemmepi__ull)all.failed, all.sentence);
 return GEMMEPI_OK;
}

#endif

/*
MIT License

Copyright (c) 2026 the gemmepi authors

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
*/
