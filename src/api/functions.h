/* Every public function with its contract. Unless one says otherwise:
   - it returns GEMMEPI_OK, or a status with a sentence in gemmepi_last_error(), and then has changed nothing, but what it
     would have filled in (a handle, a pointer, a struct of details) is NULL or zero;
   - it may be called from any number of threads at once, but a handle is ended (_destroy) once, when no other call uses it;
   - pointers in structs are borrowed for the time of the call. */
#ifndef GEMMEPI_API_FUNCTIONS_H
#define GEMMEPI_API_FUNCTIONS_H

#include "ahead.h"
#include "details.h"
#include "formulas.h"

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

/* The structs that programs and the library share, of which gemmepi_create says the sizes, in this order. */
#define GEMMEPI_STRUCT_LIST(X)  \
    X(gemmepi_config)           \
    X(gemmepi_allocator)        \
    X(gemmepi_context_details)  \
    X(gemmepi_matrix)           \
    X(gemmepi_vector)           \
    X(gemmepi_scale)            \
    X(gemmepi_operand)          \
    X(gemmepi_matmul_desc)      \
    X(gemmepi_matmul_args)      \
    X(gemmepi_epilogue_needs)   \
    X(gemmepi_grouped_desc)     \
    X(gemmepi_grouped_args)     \
    X(gemmepi_linear_desc)      \
    X(gemmepi_linear_args)      \
    X(gemmepi_tensor)           \
    X(gemmepi_elementwise_desc) \
    X(gemmepi_elementwise_args) \
    X(gemmepi_derive_desc)      \
    X(gemmepi_any_desc)         \
    X(gemmepi_tune_options)     \
    X(gemmepi_plan_details)

/* gemmepi_create for callers from other languages: version is the GEMMEPI_VERSION of the header that the caller knows, sizes has
   the `count` sizes of GEMMEPI_STRUCT_LIST there (count 0: none are compared). A library of another major or minor version, or
   with a struct of another size, would misread structs, and refuses (INVALID_ARGUMENT). */
GEMMEPI_API gemmepi_status gemmepi_create_for(int version, const size_t *sizes, size_t count,
                                              const gemmepi_config *config, gemmepi_context **context);

/* Opens a device. config may be NULL: all defaults. On success *context is the caller's, to be given to
   gemmepi_destroy. It is inline, so that the library learns which header the program was compiled with. On a GPU the device's primary context is used, which the CUDA runtime and PyTorch use too; the
   calling thread's current CUDA context is left as it is. Loads the CUDA driver, nothing else. Texts of config are copied;
   its functions and what their user pointers point to are used until gemmepi_destroy.
   The child of a fork() makes a context of its own: there the parent's, and what was made with it, are refused with
   INVALID_ARGUMENT, and destroying them does nothing. On a GPU CUDA takes that only where the parent has not used CUDA.
   Errors: INVALID_ARGUMENT, NO_DEVICE, LIBRARY_NOT_FOUND (a device was asked for and there is no driver), CUDA_ERROR,
   OUT_OF_MEMORY. */
#ifdef GEMMEPI_STATIC
GEMMEPI_API gemmepi_status gemmepi_create(const gemmepi_config *config, gemmepi_context **context);
#else
static inline gemmepi_status gemmepi_create(const gemmepi_config *config, gemmepi_context **context) {
#define GEMMEPI_SIZE_OF(type) sizeof(type),
    const size_t sizes[] = {GEMMEPI_STRUCT_LIST(GEMMEPI_SIZE_OF)};
#undef GEMMEPI_SIZE_OF
    return gemmepi_create_for(GEMMEPI_VERSION, sizes, sizeof sizes / sizeof sizes[0], config, context);
}
#endif

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

/* The GEMMEPI_VERSION of the implementation that is linked. gemmepi_create compares it with the header's. */
GEMMEPI_API int gemmepi_version(void);

/* "GEMMEPI_OK" and so on, "unknown status" for other values; never freed. */
GEMMEPI_API const char *gemmepi_status_name(gemmepi_status status);

/* >>memory and streams: alike on a GPU and on the host, so that a whole program needs no CUDA toolkit

   Memory and streams from elsewhere (cudaMalloc, PyTorch) may be used instead, or beside these. All functions here may be called
   while other streams are being captured.
   Errors: INVALID_ARGUMENT, OUT_OF_MEMORY and CUDA_ERROR, which may come from an earlier launch. */

/* bytes of device memory, a multiple of 256 in address and not cleared, to be given to gemmepi_free. Zero bytes give NULL. */
GEMMEPI_API gemmepi_status gemmepi_alloc(gemmepi_context *context, size_t bytes, void **pointer);
/* gemmepi_alloc, then gemmepi_upload of bytes of host memory on the default stream. */
GEMMEPI_API gemmepi_status gemmepi_alloc_from(gemmepi_context *context, const void *host, size_t bytes,
                                              void **pointer);
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
   A run repeated on the same GPU gives the same bits; with GEMMEPI_BATCH_INVARIANT a row has them whatever m is. Where
   cuBLASLt's own epilogue is looser than this, another route is taken, unless GEMMEPI_RELAXED is set. Activations and their
   derivatives stand at GEMMEPI_NONE. */
GEMMEPI_API gemmepi_status gemmepi_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                          const gemmepi_matmul_args *args, gemmepi_stream stream);

/* Products of groups whose sizes the device knows: gemmepi_grouped_desc has shapes and formula. As right as gemmepi_matmul, and
   the same bits in every run of the same ends. */
GEMMEPI_API gemmepi_status gemmepi_grouped(gemmepi_context *context, const gemmepi_grouped_desc *desc,
                                           const gemmepi_grouped_args *args, gemmepi_stream stream);

#ifndef GEMMEPI_NO_LINEAR
/* A layer's Y, and with SAVED P (without it preact is NULL): one product with desc's activation. What desc says of gradients is
   not looked at. Formulas, shapes and batches stand at gemmepi_linear_desc. */
GEMMEPI_API gemmepi_status gemmepi_linear(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                          const gemmepi_linear_args *args, gemmepi_stream stream);

/* A layer's dA, dB and dbias, those that desc asks for; y is not looked at. A pass over dY and P (or a product, with
   RECOMPUTE), then a product for each of dA and dB. G and what else lies between them is in workspace. */
GEMMEPI_API gemmepi_status gemmepi_linear_backward(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                                   const gemmepi_linear_args *args, gemmepi_stream stream);
#endif

#ifndef GEMMEPI_NO_ELEMENTWISE
/* An element-wise operation: gemmepi_operation has the formulas, or desc one of its own. args may be NULL (but where there are NUMBERs),
   and a tensor whose pointer is NULL there is taken from desc's own data. */
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
/* Also UNSUPPORTED: what gemmepi_grouped_desc leaves out. */
GEMMEPI_API gemmepi_status gemmepi_plan_grouped(gemmepi_context *context, const gemmepi_grouped_desc *desc,
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
   On the host a run with a formula takes some 130 KB of the allocator's, and 32 bytes for each operation, however large the problem is;
   they are the run's own, for threads may run a plan at once (OUT_OF_MEMORY).
   Errors: INVALID_ARGUMENT, MISALIGNED, BUFFER_TOO_SMALL (args.workspace_size, or no workspace given and none
   reserved by gemmepi_plan_prepare): nothing was launched; CUDA_ERROR, CUBLAS_ERROR; and those of planning in a run that builds
   another route or kernel. */
GEMMEPI_API gemmepi_status gemmepi_run_matmul(const gemmepi_plan *plan, const gemmepi_matmul_args *args,
                                              gemmepi_stream stream);
/* On the host a run takes some memory of the allocator's where rows are gathered along k. */
GEMMEPI_API gemmepi_status gemmepi_run_grouped(const gemmepi_plan *plan, const gemmepi_grouped_args *args,
                                               gemmepi_stream stream);
#ifndef GEMMEPI_NO_ELEMENTWISE
GEMMEPI_API gemmepi_status gemmepi_run_elementwise(const gemmepi_plan *plan, const gemmepi_elementwise_args *args,
                                                   gemmepi_stream stream);
#endif
#ifndef GEMMEPI_NO_LINEAR
/* All of args.workspace_size may be used, so no tensor may lie in it. On the host a backward takes memory of the allocator's for G, as
   large as that, and is OUT_OF_MEMORY where there is none. */
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

/* In words: the problem, the route taken, why each other route was not, and, where estimates are known, all that it was chosen from with
   theirs; of a layer's backward the steps in their order. Writes at most size bytes with the final zero (text may be NULL if
   size is 0), returns the length of the whole text without it, 0 for a NULL plan. */
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

#ifndef GEMMEPI_NO_FORMULA

/* >>formulas */

/* The gradient of a formula, as a formula: from dy, the upstream of d (of other outputs NAME: dy_NAME), to d_NAME for each name in
   desc->wrt. It may be read and changed, and parses again.
   Writes at most size bytes with the final zero (text may be NULL if size is 0) and returns the length of the whole text without it, as
   snprintf does; 0: an error, and gemmepi_last_error() has the sentence.

   What desc->saved names is read, all else is computed anew from it; refused, where that cannot be. Operands of the kind NUMBER may
   always be read. Gradients of operands PER_ROW are sums over rows' columns, PER_COLUMN over columns, SCALAR and NUMBER over
   all; those of FULL ones and of the value are full. row_logsumexp and column_logsumexp are read from their saved result.
   row_max, row_argmax and their kin have no derivative and are refused where wrt has a part in them, and so are d_silu and its
   kin, inputs with periods, and whole numbers in wrt. floor, round, comparisons and uniform have the derivative 0, which a
   comment in the text says; rounded has 1, and where the text has it, it is what the d that the text is run with stands for.
   Inputs of min and max that are equal share the gradient, clamp passes it at its bounds,
   and that of abs at 0 is 0. What c ? a : b does not take, and a half that is not read, have the gradient 0, also where they
   are NaN. What one formula cannot say is refused: sums over columns of what does not change along them, in a formula with
   halves, and counts of columns (column, columns, uniform, sums) where the gradient alone would not show that there are 2 n.
   Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
GEMMEPI_API size_t gemmepi_derive(const gemmepi_derive_desc *desc, char *text, size_t size);

/* The operands of that text: what it reads, the upstreams and the value among them, in the order of desc, and then the gradients.
   Fills in up to count of them (operands may be NULL if count is 0) and returns how many there are; 0: an error as above. Inputs of the
   formula are as desc has them. Results that are read have become inputs, those of reductions with dtype 0 in F32: for a
   formula that will run in F64 let desc give them F64. What is new has the kind and width of what it belongs to, dtype 0 but
   for gradients of FULL inputs without a tensor, which have the input's, no tensor, and strides that are 0.
   Widths count from the n of the formula that was derived: where the gradient is the epilogue of the product that makes dy, dy
   is that product's n, and is left out like the value otherwise. The names of what is new belong to the library and hold until
   this thread's next call. */
GEMMEPI_API int gemmepi_derive_operands(const gemmepi_derive_desc *desc, gemmepi_operand *operands, int count);

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

/* >>tuning */

/* Finds out by timing which way to run each problem is fastest on this GPU: kernels, tiles and divisions of k of ours, of those whose
   estimate is near the least up to 32, and the first 16 algorithms that cuBLASLt offers. Plans that are made from then on, and one-shot
   calls, take what was fastest; plans that there are stay as they are. Whole operations are timed by turns, on random data and memory
   of its own that is larger than the cache; what takes far longer is left early, and what does not agree with the results of the route
   plain is left out and told at level WARNING. A problem's answer stays in the context and goes to the cache folder (config.cache_path),
   where other processes with the same config.routes find it: a problem that has an answer is not timed again, in whatever mode or time
   that was found, unless options->again says so. Of a layer its products are timed; element-wise operations have one way,
   and so have grouped products, and products whose formula is inside a kernel. Where a pass runs the formula the product that makes v is
   timed; a formula that says an epilogue is timed as that.
   options may be NULL, and so may progress, which is told of each problem that is done.
   A plan by an answer of this process has details.bit_stable 0: another process may find another way as fast, with other bits. One by an
   answer that was loaded or found in the cache folder has 1. Answers are for runs with alpha 1; BATCH_INVARIANT and RELAXED are
   respected.
   Not to be called while a stream of the same thread is being captured: it waits for the GPU. Threads that tune take turns; others may
   run and plan meanwhile, which lengthens what is timed. On the host there is nothing to choose, and nothing is done.
   Errors: INVALID_ARGUMENT, those of planning, OUT_OF_MEMORY, CUDA_ERROR. One problem that fails keeps no other from being
   tuned: the first is returned, and the sentence names it. */
GEMMEPI_API gemmepi_status gemmepi_tune(gemmepi_context *context, const gemmepi_any_desc *problems, size_t count,
                                        const gemmepi_tune_options *options,
                                        gemmepi_progress_function progress, void *user);

/* Write what the context knows by tuning to a text file, a line for each problem, and read such a file. Every answer that is read is
   checked again when a plan is made for its problem, and one with an algorithm of another version of cuBLASLt is not taken. A file that
   is damaged, or of another GPU, driver, config.routes or version of gemmepi, changes nothing, which is told at level WARNING. Any thread
   may call them.
   Errors: INVALID_ARGUMENT, FILE_ERROR, OUT_OF_MEMORY. */
GEMMEPI_API gemmepi_status gemmepi_answers_save(gemmepi_context *context, const char *path);
GEMMEPI_API gemmepi_status gemmepi_answers_load(gemmepi_context *context, const char *path);

/* >>bundles: the machine code of kernels in one file or block of memory, for programs that take no NVRTC along

   A bundle has every kernel that the context has used, whether that was compiled, found on disk or in a bundle, and all others of
   the bundles that it was given, those for other GPUs, too; each once. So bundles are merged by loading one and saving on the next
   machine. The same kernels give the same bytes.
   A kernel in a bundle is known by its source text and the compute capability of the GPU that it was made on, whatever NVRTC
   compiled it. Where a bundle has it, it is neither sought on disk nor compiled, and NVRTC is not looked for.
   A bundle is code: it runs on the GPU and can reach all of the process's memory there. Load those alone that you made, or got from
   somebody you trust. What is damaged, cut short or no bundle is refused, and so is a bundle of another GEMMEPI_VERSION or one of
   more than 1 GiB. On the host bundles are checked and kept for a save. None of these calls waits for the device or calls CUDA: they
   may be made while other threads run and while streams are being captured. docs/shipping.md says how to make a bundle. */

/* Writes a bundle to a file, in place of the one that may be there; that stays as it is where anything fails. What is there and is
   no file is refused, a link to one replaced. Other users may read the file, unless the umask says otherwise.
   Errors: INVALID_ARGUMENT, UNSUPPORTED (a context on the host that has no bundle), FILE_ERROR, OUT_OF_MEMORY. */
GEMMEPI_API gemmepi_status gemmepi_bundle_save(gemmepi_context *context, const char *path);
/* Gives the context the kernels of a file. All of it is read and checked; the driver is given a kernel when that is first needed.
   Where the context has a kernel already, that stays. Nothing can be taken back before gemmepi_destroy.
   Errors: INVALID_ARGUMENT, FILE_ERROR, OUT_OF_MEMORY. */
GEMMEPI_API gemmepi_status gemmepi_bundle_load(gemmepi_context *context, const char *path);

/* As gemmepi_bundle_save, into capacity bytes of memory. *size becomes what a bundle takes now; a NULL buffer asks for that alone.
   Another thread's work may add to it before the next call.
   Errors: INVALID_ARGUMENT, UNSUPPORTED, BUFFER_TOO_SMALL (buffer is left alone, and *size is what it takes), OUT_OF_MEMORY. */
GEMMEPI_API gemmepi_status gemmepi_bundle_write(gemmepi_context *context, void *buffer, size_t capacity,
                                                size_t *size);
/* As gemmepi_bundle_load, from memory that may be const and linked into the program, of any alignment. It is borrowed: it stays as
   it is until gemmepi_destroy. Errors: those of gemmepi_bundle_load. */
GEMMEPI_API gemmepi_status gemmepi_bundle_read(gemmepi_context *context, const void *data, size_t size);

/* >>small things */

/* Bytes of one element; 0 for DEFAULT and unknown values. */
GEMMEPI_API size_t gemmepi_dtype_size(gemmepi_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
