/* Every public function with its contract. Unless a function says otherwise:
   - it returns GEMMEPI_OK, or another status with a sentence in gemmepi_last_error(). It has then changed nothing, except that what
     it would have filled in (a handle, a pointer, a struct of details) is NULL or zero;
   - any number of threads may call it at once, but a handle is destroyed once, when no other call uses it. A context or a plan that was
     destroyed is refused as long as its memory is not used again;
   - pointers in structs are borrowed for the time of the call. */
#ifndef GEMMEPI_API_FUNCTIONS_H
#define GEMMEPI_API_FUNCTIONS_H

#include "ahead.h"
#include "details.h"
#include "formulas.h"

/* GEMMEPI_API decorates every public function (an export attribute, a calling convention). GEMMEPI_STATIC makes
   the functions static instead: every file that calls them then defines GEMMEPI_IMPLEMENTATION, too. */
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

#if defined(GEMMEPI_NO_LINEAR) && !defined(GEMMEPI_NO_NETWORK)
#define GEMMEPI_NO_NETWORK /* networks are made of layers */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* >>context */

/* The structs that programs and the library share. gemmepi_create passes their sizes in this order. */
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
    X(gemmepi_network_layer)    \
    X(gemmepi_network_desc)     \
    X(gemmepi_network_args)     \
    X(gemmepi_tensor)           \
    X(gemmepi_elementwise_desc) \
    X(gemmepi_elementwise_args) \
    X(gemmepi_derive_desc)      \
    X(gemmepi_pack_desc)        \
    X(gemmepi_any_desc)         \
    X(gemmepi_tune_options)     \
    X(gemmepi_plan_details)

/* gemmepi_create for callers from other languages. version is the GEMMEPI_VERSION of the caller's header, sizes has
   the `count` sizes of GEMMEPI_STRUCT_LIST there (count 0: none are compared). A library of another major or minor version, or
   with a struct of another size, refuses (INVALID_ARGUMENT), because it would misread the caller's structs. */
GEMMEPI_API gemmepi_status gemmepi_create_for(int version, const size_t *sizes, size_t count,
                                              const gemmepi_config *config, gemmepi_context **context);

/* Opens a device. config may be NULL: all defaults. On success *context is the caller's, to be given to gemmepi_destroy. Inline,
   so that the library learns which header the program was compiled with.
   On a GPU it uses the device's primary context, as the CUDA runtime and PyTorch do, and leaves the calling thread's current
   CUDA context as it is. It loads the CUDA driver and nothing else. Texts of config are copied; its functions and what their
   user pointers point to are used until gemmepi_destroy.
   The child of a fork() creates a context of its own: there the parent's context and what was made with it are refused with
   INVALID_ARGUMENT, and destroying them does nothing. On a GPU CUDA allows that only if the parent has not used CUDA.
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

/* Waits for the device and frees everything that the context holds: kernels, workspace, the plans of one-shot calls. Destroy and
   free first what is the caller's: plans, memory of gemmepi_alloc, streams of gemmepi_stream_create.
   Do not call it while a stream of the device is being captured: CUDA cannot wait for the device then. NULL is accepted. */
GEMMEPI_API void gemmepi_destroy(gemmepi_context *context);

/* Tells what the context is and has done so far. Errors: INVALID_ARGUMENT. */
GEMMEPI_API gemmepi_status gemmepi_context_info(gemmepi_context *context, gemmepi_context_details *details);

/* Returns the sentence about the last call on this thread that failed: the argument, its value and what is accepted.
   Read it right after that call: later calls may overwrite it, even if they succeed. Never NULL. With GEMMEPI_STATIC
   each file has a sentence of its own, about that file's calls. */
GEMMEPI_API const char *gemmepi_last_error(void);

/* Returns the GEMMEPI_VERSION of the implementation that is linked. gemmepi_create compares it with the header's. */
GEMMEPI_API int gemmepi_version(void);

/* Returns "GEMMEPI_OK" and so on, "unknown status" for other values; never freed. */
GEMMEPI_API const char *gemmepi_status_name(gemmepi_status status);

/* >>memory and streams: alike on a GPU and on the host, so that a whole program needs no CUDA toolkit

   Memory and streams from elsewhere (cudaMalloc, PyTorch) may be used as well. All functions here may be called
   while other streams are being captured.
   Errors: INVALID_ARGUMENT, OUT_OF_MEMORY and CUDA_ERROR, which may come from an earlier launch. */

/* Allocates bytes of device memory, at a multiple of 256 and not cleared, to be given to gemmepi_free. Zero bytes give NULL. */
GEMMEPI_API gemmepi_status gemmepi_alloc(gemmepi_context *context, size_t bytes, void **pointer);
/* Allocates as gemmepi_alloc and copies bytes of host memory there, on the default stream. */
GEMMEPI_API gemmepi_status gemmepi_alloc_from(gemmepi_context *context, const void *host, size_t bytes,
                                              void **pointer);
/* Frees memory once the device has finished with it, for which it waits. NULL is accepted. A pointer that is not from gemmepi_alloc of
   this context is refused, on a GPU by CUDA. */
GEMMEPI_API gemmepi_status gemmepi_free(gemmepi_context *context, void *pointer);
/* Copies bytes of host memory to the device, in the order of the stream; host may be reused on return. This function and the next
   two wait, so the stream must not be being captured. */
GEMMEPI_API gemmepi_status gemmepi_upload(gemmepi_context *context, void *device, const void *host,
                                          size_t bytes, gemmepi_stream stream);
/* Copies bytes of device memory to the host, in the order of the stream; host is filled on return. */
GEMMEPI_API gemmepi_status gemmepi_download(gemmepi_context *context, void *host, const void *device,
                                            size_t bytes, gemmepi_stream stream);
/* Waits for everything on the stream and reports what went wrong there. */
GEMMEPI_API gemmepi_status gemmepi_synchronize(gemmepi_context *context, gemmepi_stream stream);
/* Creates a stream that does not wait for the default one, to be given to gemmepi_stream_destroy. On the host it is a token without
   effect. */
GEMMEPI_API gemmepi_status gemmepi_stream_create(gemmepi_context *context, gemmepi_stream *stream);
/* Waits for the stream, then destroys it. NULL is accepted. On the host every call refuses a stream that was destroyed or never
   created. */
GEMMEPI_API gemmepi_status gemmepi_stream_destroy(gemmepi_context *context, gemmepi_stream stream);

/* >>problems in one call

   Each runs desc on args in the order of stream. The first call for a problem builds a plan (milliseconds) and may compile a
   kernel (half a second, once on a machine: config.cache_path); later calls find the plan. The call reserves workspace, except
   while the stream is being captured. On a GPU a pointer to host memory that the device cannot reach is refused.
   Errors: those of planning, gemmepi_plan_prepare and running below. */

/* D = epilogue(alpha op(A) op(B) + beta C): gemmepi_matmul_desc has shapes and types, gemmepi_epilogue the formula.

   Accuracy: everything up to the store is computed in the accumulator's type and rounded once. With u the unit roundoff of the
   stored type, u_acc that of the accumulator (2^-24, or 2^-53 for F64), S = sum_k |alpha A B| + |beta C| + |bias| and
   E = (4 + k / 8) u_acc S (plus 2^-9 S with TF32),

       |out - exact| <= u |exact| + L E + 4 u_acc T + the smallest subnormal of the stored type

   L is the largest |act'| nearby (1.13 for GELU, 1.1 for SILU, QUICK_GELU and MISH, 1.5 for HARDSWISH, 2.2 v + 1 for SQUARED_RELU,
   |p| for LEAKY_RELU and ELU where that is above 1, 1 for the others, |act'(aux)| for BACKWARD), T the sum of the magnitudes
   combined after the product; act' of BACKWARD may be computed at aux (1 + 2 u_acc). With GATED |act(gate)| E_value +
   |value| L E_gate replaces L E, with UPSTREAM |aux| times the change of act' between v - E and v + E.
   Products of two fp8 operands have 2^-10 S more in E for each 32 of k, of 128 at most (of all with FAST_ACCUMULATION). Products of
   I8 are exact, an I32 result modulo 2^32. Results of 16 bits or fewer use shorter forms of activations, off by up to 2^-17.3 of
   their largest term for |v| < 5 and 2^-16.5 for |v| < 10; forward GELU_ERF by up to 2^-21 of |v|, from k = 768 on by 2^-18.2.
   Kernels add up to 128 terms of a bias_grad in the accumulator's type, the rest in F64: a term or partial sum out of its range is
   infinite, and infinities of both signs make bias_grad NaN. docs/numerics.md says how the bounds were measured.
   A run repeated on the same GPU gives the same bits; with GEMMEPI_BATCH_INVARIANT a row has them at any m. Where
   cuBLASLt's own epilogue is looser than the bound, another route runs, unless GEMMEPI_RELAXED is set. Activations and their
   derivatives are listed at GEMMEPI_NONE. */
GEMMEPI_API gemmepi_status gemmepi_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                          const gemmepi_matmul_args *args, gemmepi_stream stream);

/* Products of groups whose sizes the device knows: gemmepi_grouped_desc has shapes and formula. It has the bounds of gemmepi_matmul, and
   every run with the same ends gives the same bits. */
GEMMEPI_API gemmepi_status gemmepi_grouped(gemmepi_context *context, const gemmepi_grouped_desc *desc,
                                           const gemmepi_grouped_args *args, gemmepi_stream stream);

#ifndef GEMMEPI_NO_LINEAR
/* Computes a layer's Y, and with SAVED P (else preact is NULL): one product with desc's activation. Flags of gradients have no effect.
   Formulas, shapes and batches: gemmepi_linear_desc. */
GEMMEPI_API gemmepi_status gemmepi_linear(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                          const gemmepi_linear_args *args, gemmepi_stream stream);

/* Computes those of a layer's dA, dB and dbias that desc asks for; y is ignored. A pass over dY and P (or a product, with
   RECOMPUTE), then a product for each of dA and dB. G and other intermediate results are in workspace. */
GEMMEPI_API gemmepi_status gemmepi_linear_backward(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                                   const gemmepi_linear_args *args, gemmepi_stream stream);
#endif

#ifndef GEMMEPI_NO_NETWORK
/* Computes a network's y, and with SAVED what its backward needs. Flags of gradients have no effect. gemmepi_network_desc has the formulas. */
GEMMEPI_API gemmepi_status gemmepi_network(gemmepi_context *context, const gemmepi_network_desc *desc,
                                           const gemmepi_network_args *args, gemmepi_stream stream);

/* Computes those of a network's dx, dw and dbias that desc asks for, and the gradients d_NAME of operands; y is ignored. */
GEMMEPI_API gemmepi_status gemmepi_network_backward(gemmepi_context *context, const gemmepi_network_desc *desc,
                                                    const gemmepi_network_args *args, gemmepi_stream stream);
#endif

#ifndef GEMMEPI_NO_ELEMENTWISE
/* Runs an element-wise operation: gemmepi_operation has the formulas, or desc has one of its own. args may be NULL unless there are
   NUMBERs. Where args has a NULL pointer, the tensor's own data in desc is used. */
GEMMEPI_API gemmepi_status gemmepi_elementwise(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
                                               const gemmepi_elementwise_args *args, gemmepi_stream stream);
#endif

/* >>plans

   Prepare once a problem that runs often: plan, reserve, run any number of times, destroy. A plan is immutable;
   threads and streams may share it. */

/* Validates desc, chooses the route and compiles what it needs. *plan is the caller's, to be given to gemmepi_plan_destroy
   before gemmepi_destroy. It may be called while streams are being captured.
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
#ifndef GEMMEPI_NO_NETWORK
GEMMEPI_API gemmepi_status gemmepi_plan_network(gemmepi_context *context, const gemmepi_network_desc *desc,
                                                gemmepi_plan **plan);
GEMMEPI_API gemmepi_status gemmepi_plan_network_backward(gemmepi_context *context, const gemmepi_network_desc *desc,
                                                         gemmepi_plan **plan);
#endif

/* Run a plan on args in the order of stream: a few launches (gemmepi_plan_info), and, with the exceptions below, no allocation,
   no compilation and no lock. A plan of another kind is refused. A CUDA graph may capture a run and keeps the workspace of the
   capture: graphs captured on one stream must not run at the same time as each other or as runs on that stream.
   Calls on different streams need different workspaces, which the context's own are. Threads that run plans on one stream with
   the context's workspace wait for each other during the launches.
   If cuBLASLt refuses what its heuristic had accepted, nothing has run yet: the plan then uses the next route from then on. This
   run builds that route, and reserves workspace for it if args.workspace is too small, and the log says so. A backward may
   have launched what comes before that product: captured without workspace for the next route it ends with BUFFER_TOO_SMALL;
   prepare again and begin the capture again.
   A plan of the route fused has a kernel for alpha 1 and no c, and with ACCUMULATE one for that. Its first run with other
   scalars compiles another (gemmepi_precompile does that ahead; with GEMMEPI_DEVICE_SCALARS one kernel runs all). The plan's
   workspace is enough for it. For 16-bit D = alpha A B + D with alpha other than 1 the first run may build a second plan: run
   once, and call gemmepi_plan_prepare again, before a capture.
   On the host a run with a formula allocates some 130 KB and 32 bytes for each operation by config.allocator, however large the
   problem is; each run has its own, because threads may run a plan at once (OUT_OF_MEMORY).
   Errors: INVALID_ARGUMENT, MISALIGNED, BUFFER_TOO_SMALL (args.workspace_size, or no workspace given and none
   reserved by gemmepi_plan_prepare): nothing was launched; CUDA_ERROR, CUBLAS_ERROR; and those of planning in a run that builds
   another route or kernel. */
GEMMEPI_API gemmepi_status gemmepi_run_matmul(const gemmepi_plan *plan, const gemmepi_matmul_args *args,
                                              gemmepi_stream stream);
/* On the host a run that gathers rows along k allocates by config.allocator. */
GEMMEPI_API gemmepi_status gemmepi_run_grouped(const gemmepi_plan *plan, const gemmepi_grouped_args *args,
                                               gemmepi_stream stream);
#ifndef GEMMEPI_NO_ELEMENTWISE
GEMMEPI_API gemmepi_status gemmepi_run_elementwise(const gemmepi_plan *plan, const gemmepi_elementwise_args *args,
                                                   gemmepi_stream stream);
#endif
#ifndef GEMMEPI_NO_LINEAR
/* A run may use all of args.workspace_size, so no tensor may overlap it. On the host a backward allocates G by config.allocator
   (OUT_OF_MEMORY). */
GEMMEPI_API gemmepi_status gemmepi_run_linear(const gemmepi_plan *plan, const gemmepi_linear_args *args,
                                              gemmepi_stream stream);
GEMMEPI_API gemmepi_status gemmepi_run_linear_backward(const gemmepi_plan *plan, const gemmepi_linear_args *args,
                                                       gemmepi_stream stream);
#endif
#ifndef GEMMEPI_NO_NETWORK
/* As those of layers: on the host what is between layers is allocated by config.allocator (OUT_OF_MEMORY). */
GEMMEPI_API gemmepi_status gemmepi_run_network(const gemmepi_plan *plan, const gemmepi_network_args *args,
                                               gemmepi_stream stream);
GEMMEPI_API gemmepi_status gemmepi_run_network_backward(const gemmepi_plan *plan, const gemmepi_network_args *args,
                                                        gemmepi_stream stream);
#endif

/* Reserves the workspace that runs of this plan on this stream need, until gemmepi_destroy. Call it once for each stream that
   the plan will run on without args.workspace. Plans on one stream share it. If it is too small, a block of at least twice
   the size is added and the old ones stay, because graphs may have captured them: together less than four times what the
   largest plan needs. If there is no memory for that, the block is as large as this plan needs. It allocates device memory, so
   do not call it while the stream is being captured (BUFFER_TOO_SMALL then, unless there is enough). A stream is known by its
   handle: a stream that is destroyed while runs on it are under way must not be followed by another with the same handle before they
   end. Each thread has a per-thread default stream, with GEMMEPI_STATIC each thread and file: reserve on the thread that runs. On
   the host, and for plans that need no workspace, it does nothing.
   Errors: INVALID_ARGUMENT, BUFFER_TOO_SMALL, OUT_OF_MEMORY, CUDA_ERROR. */
GEMMEPI_API gemmepi_status gemmepi_plan_prepare(const gemmepi_plan *plan, gemmepi_stream stream);

/* Frees a plan. NULL is accepted. Runs that were launched go on, and graphs that captured runs of the plan stay valid until
   gemmepi_destroy. */
GEMMEPI_API void gemmepi_plan_destroy(gemmepi_plan *plan);

/* Tells the plan's route and its properties. For a layer's backward: all launches together, and the kernel that makes G. For
   element-wise operations tile_m and tile_n are the extents of a tile. Errors: INVALID_ARGUMENT. */
GEMMEPI_API gemmepi_status gemmepi_plan_info(const gemmepi_plan *plan, gemmepi_plan_details *details);

/* Explains a plan in words: the problem, its route, why not each other route, and the candidates with their estimates, if known; for a
   layer's backward the steps in order. Writes at most size bytes with the final zero (text may be NULL if
   size is 0), and returns the length of the whole text without it, 0 for a NULL plan. */
GEMMEPI_API size_t gemmepi_plan_explain(const gemmepi_plan *plan, char *text, size_t size);

/* Tells what the epilogue of desc reads and writes, with sizes; needs no context. It validates desc as gemmepi_plan_matmul
   does. Errors: INVALID_ARGUMENT. */
GEMMEPI_API gemmepi_status gemmepi_epilogue_info(const gemmepi_matmul_desc *desc,
                                                 gemmepi_epilogue_needs *needs);

#ifndef GEMMEPI_NO_ELEMENTWISE

/* >>short calls for element-wise operations, as gemmepi_elementwise

   The tensors' structs, shapes and strides are borrowed for the call. Empty tensors succeed.
   Errors: INVALID_ARGUMENT (shapes, strides, dtypes or lengths that do not fit together, overlap, NULL), MISALIGNED (data
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
   and ELU have their default parameter here; gemmepi_elementwise accepts any. */
GEMMEPI_API gemmepi_status gemmepi_gated(gemmepi_context *context, gemmepi_epilogue activation, int split_dim,
                                         const gemmepi_tensor *a, const gemmepi_tensor *b,
                                         const gemmepi_tensor *y, gemmepi_stream stream);
/* y = a + w (b - a), exactly a for w = 0 and b for w = 1 where b - a is finite. w NULL: weight is used for all elements; else weight
   is 0. */
GEMMEPI_API gemmepi_status gemmepi_lerp(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *b, const gemmepi_tensor *w, double weight,
                                        const gemmepi_tensor *y, gemmepi_stream stream);
/* y[i] = the sum of a over all axes except `axis` (negative: from the end), where the index is i. For a matrix, axis 1 or
   -1 gives the sums of columns, 0 the sums of rows. y has rank 1. accumulate is 0, or 1 to add to y. */
GEMMEPI_API gemmepi_status gemmepi_bias_grad(gemmepi_context *context, const gemmepi_tensor *a, int axis,
                                             int accumulate, const gemmepi_tensor *y, gemmepi_stream stream);

/* y = a in y's type, saturated to E4M3 and E5M2. Scales and amax: gemmepi_elementwise with GEMMEPI_OP_CAST. */
GEMMEPI_API gemmepi_status gemmepi_cast(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *y, gemmepi_stream stream);

#endif

#ifndef GEMMEPI_NO_FORMULA

/* >>formulas */

/* Writes the gradient of a formula as a formula: from dy, the upstream of d (of other outputs NAME: dy_NAME), to d_NAME for each name in
   desc->wrt. The text may be read and changed, and parses again; with the operands that gemmepi_derive_operands lists it may be derived again.
   Where value is "a" or "b" and the text ends with an expression it is that of desc.a.formula or desc.b.formula, and dy the gradient of what is
   multiplied: with value "a" the text is the formula of the product G op(B)^T, whose value is dy, with value "b" of op(A)^T G.
   There is no value where desc->value is NULL and an operand is called v, and no d where an operand is called d.
   Writes at most size bytes with the final zero (text may be NULL if size is 0) and returns the length of the whole text without it, as
   snprintf does; 0: an error, and gemmepi_last_error() has the sentence.

   The gradient reads what desc->saved names and computes the rest again from that; if it cannot, it is refused. It may always read operands
   of the kind NUMBER. Gradients of operands PER_ROW are sums over rows' columns, PER_COLUMN over columns, SCALAR and NUMBER over
   all; gradients of FULL operands and of the value are full. row_logsumexp and column_logsumexp are read from their saved result.
   Nothing comes in from outputs that desc->upstream does not name: a copy, or a statistic.
   Refused: row_max, row_min, row_argmax and their kin with an upstream where wrt depends on them, inputs with periods, and
   whole numbers, and what is in 4 bits or E8M0, in wrt. floor, round, comparisons and uniform have the derivative 0, which a comment in the text says.
   rounded has 1; where the text contains it, it means the d that the text is run with.
   Equal inputs of min and max share the gradient, if not desc->ties_to_first, clamp (and min(max(x, 0), 6), of numbers) passes it at
   its bounds, and that of abs at 0 is 0. The branch that c ? a : b does not select, and a half that is not read, have the gradient 0, even where
   they are NaN. A gradient that one formula cannot say is refused: sums over columns of what does not change along them, in a
   formula with halves, and counts of columns (column, columns, uniform, sums) where the gradient would not show that there are 2 n.
   Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
GEMMEPI_API size_t gemmepi_derive(const gemmepi_derive_desc *desc, char *text, size_t size);

/* Lists the operands of that text: what it reads, with the upstreams and the value, in the order of desc, then the gradients.
   Fills in up to count of them (operands may be NULL if count is 0) and returns how many there are; 0: an error as above. Inputs of the
   formula are as desc has them. Results that the gradient reads have become inputs, reductions with dtype 0 in F32: for a
   formula that will run in F64 set F64 in desc. New operands have the kind and width of what they belong to, dtype 0 (gradients of
   FULL inputs without a tensor: the input's), no tensor, and strides of 0.
   Widths count from the n of the derived formula. Where the gradient is the epilogue of the product that makes dy, dy is that product's n, and
   is left out like the value otherwise. With the text of an operand widths count from what is multiplied, as in the product's desc. The names of new operands belong to the library and are valid until this thread's next call; those that
   desc has in that call stay valid. */
GEMMEPI_API int gemmepi_derive_operands(const gemmepi_derive_desc *desc, gemmepi_operand *operands, int count);

/* Stores numbers in fewer bits, by scales that are given or found: gemmepi_pack_desc has the formula. On the host, in double.
       pack.rows = n, pack.columns = k, pack.source = weights, pack.packed = w, pack.dtype = GEMMEPI_U4;
       pack.block_rows = 1, pack.block_columns = 128, pack.scale = scales, pack.zero = zeros, pack.find = 1;
   Outputs overlap nothing. Errors: INVALID_ARGUMENT, MISALIGNED. */
GEMMEPI_API gemmepi_status gemmepi_pack(const gemmepi_pack_desc *desc);

#endif

/* >>work ahead */

/* Compiles what the problems need on several threads, so that later plans and calls for them compile nothing. Kernels stay
   in the context, and on disk (config.cache_path), so that once on a machine is enough. threads: 0 for one per core; more
   than 256 count as 256, and the caller's is one of them. progress may be NULL. Problems are planned as by the
   gemmepi_plan_ functions. The call may run at the same time as any other calls and while streams are
   being captured. Calls with pointers at multiples of less than 16 bytes may need other kernels (say so in desc.alignment),
   and so may runs in which c is d, see gemmepi_run_matmul. A problem that fails does not stop the others; the status and the sentence are
   those of the first that failed. A count of 0 does nothing.
   Errors: INVALID_ARGUMENT and those of planning. */
GEMMEPI_API gemmepi_status gemmepi_precompile(gemmepi_context *context, const gemmepi_any_desc *problems,
                                              size_t count, int threads, gemmepi_progress_function progress,
                                              void *user);

/* >>tuning */

/* Times the ways to run each problem on this GPU: what plans choose untuned, the best of each route and of each of our kernels by estimate,
   then up to 32 tiles and divisions of k in all, those whose estimate is near the least, and the first 16 algorithms that cuBLASLt offers.
   A formula is timed inside kernels and as a pass behind products, a grouped product with groups of one size. A layer has its
   products timed, and element-wise operations have one way.
   Later plans and one-shot calls use the fastest; existing plans stay as they are. The way that is chosen untuned is timed twice, by turns with
   the others, and stays unless another is faster by more than these two timings differ, and by 1 percent. So tuning makes nothing slower
   than the noise; the log warns where that is more than 3 percent. With options->again the older answer has its place, and stays
   where tuning fails, too.
   Whole operations are timed, on random data in memory of its own that is larger than the cache. Ways that are far slower are left early;
   ways that disagree with the results of the route plain are left out, with a warning in the log. details.ways_left counts what was not
   timed for want of time or memory. The answer stays in the context and goes to the cache folder (config.cache_path), where other
   processes with the same config.routes find it. A problem with an answer is not timed again, in whatever mode or time that was found, unless
   options->again is set. config.tune does all this when a problem is first planned.
   options may be NULL, and so may progress, which is called for each problem that is done.
   A plan with an answer of this process has details.bit_stable 0: another process may find another way as fast, with other bits. A plan
   with an answer that was loaded or found in the cache folder has 1. Answers are for runs with alpha 1; BATCH_INVARIANT and RELAXED are
   respected.
   Do not call it while a stream of the same thread is being captured: it waits for the GPU. Threads that tune wait for each other; others may
   run and plan meanwhile, which disturbs the timing. On the host it does nothing.
   Errors: INVALID_ARGUMENT, those of planning, OUT_OF_MEMORY, CUDA_ERROR. A problem that fails does not stop the others; the status and the
   sentence are those of the first that failed. */
GEMMEPI_API gemmepi_status gemmepi_tune(gemmepi_context *context, const gemmepi_any_desc *problems, size_t count,
                                        const gemmepi_tune_options *options,
                                        gemmepi_progress_function progress, void *user);

/* Write the context's tuning answers to a text file, a line for each problem, and read such a file. A plan checks an answer again before
   it uses it, and ignores one with an algorithm of another version of cuBLASLt. A file
   of another GPU, driver, config.routes or version of gemmepi changes nothing, and the log warns.
   Errors: INVALID_ARGUMENT, FILE_ERROR (also of a file that is damaged or no such file), OUT_OF_MEMORY. */
GEMMEPI_API gemmepi_status gemmepi_answers_save(gemmepi_context *context, const char *path);
GEMMEPI_API gemmepi_status gemmepi_answers_load(gemmepi_context *context, const char *path);

/* >>bundles: the machine code of kernels in one file or block of memory, for programs that ship without NVRTC

   A bundle has every kernel that the context has used, whether it was compiled, found on disk or in a bundle, and all other kernels of
   the bundles that were loaded, even for other GPUs; each once. So load a bundle and save on the next machine to merge. The same kernels
   give the same bytes.
   A kernel in a bundle is known by its source text and the compute capability of the GPU that it was made on, whatever NVRTC
   compiled it. A kernel of a bundle is neither searched on disk nor compiled, and NVRTC is not looked for.
   A bundle is code: it runs on the GPU and can reach all of the process's memory there. Load only bundles that you made, or got from
   somebody you trust. A file that is damaged, cut short or no bundle is refused, and so is a bundle of another GEMMEPI_VERSION or one
   of more than 1 GiB. On the host bundles are checked and kept for a save. None of these calls waits for the device or calls CUDA: call
   them at any time, even while streams are being captured. docs/shipping.md says how to make a bundle. */

/* Writes a bundle to a file and replaces an older file or link, which stays as it is if anything fails. Anything else
   at the path is refused. Other users may read the file, unless the umask says otherwise.
   Errors: INVALID_ARGUMENT, UNSUPPORTED (a context on the host that has no bundle), FILE_ERROR, OUT_OF_MEMORY. */
GEMMEPI_API gemmepi_status gemmepi_bundle_save(gemmepi_context *context, const char *path);
/* Adds the kernels of a file to the context. It reads and checks the whole file; the driver loads a kernel when it is first needed.
   Kernels that the context has already stay. Nothing can be removed before gemmepi_destroy.
   Errors: INVALID_ARGUMENT, FILE_ERROR, OUT_OF_MEMORY. */
GEMMEPI_API gemmepi_status gemmepi_bundle_load(gemmepi_context *context, const char *path);

/* Writes a bundle into capacity bytes of memory. *size becomes the size of the bundle; a NULL buffer asks for that only.
   Another thread's work may add to it before the next call.
   Errors: INVALID_ARGUMENT, UNSUPPORTED, BUFFER_TOO_SMALL (buffer is unchanged, and *size is the size needed), OUT_OF_MEMORY. */
GEMMEPI_API gemmepi_status gemmepi_bundle_write(gemmepi_context *context, void *buffer, size_t capacity,
                                                size_t *size);
/* Adds the kernels of a bundle in memory, which may be const, part of the program, and of any alignment. It is borrowed: leave it
   unchanged until gemmepi_destroy. Errors: those of gemmepi_bundle_load. */
GEMMEPI_API gemmepi_status gemmepi_bundle_read(gemmepi_context *context, const void *data, size_t size);

/* >>small things */

/* Returns the bytes of one element, 1 for those of 4 bits, of which a byte has two; 0 for DEFAULT and unknown values. */
GEMMEPI_API size_t gemmepi_dtype_size(gemmepi_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
