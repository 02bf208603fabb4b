/* gemmepi - matrix products with bias, activation or gradient in one pass, in one C header (version 0.15.0, MIT licence)

   The licence is at the end of this file. README.md and docs/ of the repository say more.

   DO THIS: copy this file into your project. In one file, C99 or C++11 or later, write

       #define GEMMEPI_IMPLEMENTATION
       #include "gemmepi.h"

   and include it plainly in all others. The build needs nothing of CUDA: the driver, NVRTC and cuBLASLt are found when the
   program runs. Without a GPU the same calls run on the host, in plain C and slowly. The implementation's names begin with gpi__.

   LINK:  Linux -lm -ldl -lpthread (with glibc 2.34 and later -lm is enough)      Windows, macOS: nothing (macOS: host only)

   OPTIONS, defined before the implementation; STATIC and API before every inclusion
       GEMMEPI_STATIC     every function is static: libraries that each hold this file do not clash
       GEMMEPI_API        decorates every public function, for instance with an export attribute
       GEMMEPI_NODISCARD  marks gemmepi_status; define it empty to turn off the warning of an ignored status
       GEMMEPI_NO_HOST    leaves the host's arithmetic out: gemmepi_create then fails without a GPU
       GEMMEPI_NO_NETWORK, _NO_LINEAR, _NO_ELEMENTWISE, _NO_FORMULA  leave out networks; with them layers; with both element-wise operations; formulas
       GEMMEPI_NO_FP8, GEMMEPI_NO_SM80, GEMMEPI_NO_SM90  leave out fp8, kernels of the route fused for Turing and later, for Hopper

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
   - tune by itself: without gemmepi_tune a model fitted on Hopper chooses the routes, and not always the fastest
   - use several GPUs in one context (docs/several-gpus.md: one each), convolve, or multiply sparse matrices
   - fuse the epilogue of F64, I8 and, except on Hopper, fp8 operands beyond what cuBLASLt fuses: there it is one pass more
   - order anything across streams, or order a destroyed stream's runs before those of a new stream with the same handle
   - run on a driver older than 525, or with NVRTC and cuBLASLt older than CUDA 12

   STEP BY STEP

   1. Create a context: one device, for any number of threads. A gemmepi_config names another device, a log, an allocator, and
      the folders of libraries and compiled kernels. details.fallback_reason says why the context uses the host.
          check(gemmepi_create(NULL, &gpu)); // the thread's current CUDA device, else the first, else the host
          check(gemmepi_context_info(gpu, &details));
   2. Allocate by gemmepi_alloc, or use any memory that the device can reach (cudaMalloc, PyTorch).
          check(gemmepi_alloc(gpu, sizeof input, &x));
          check(gemmepi_upload(gpu, x, input, sizeof input, stream)); // a CUstream or cudaStream_t; NULL is the default stream
   3. Multiply: a desc has shapes and types, args the pointers. A field left 0 has its default: row-major, dense, one item.
          desc.m = tokens, desc.n = inner, desc.k = width; // D [m, n] = A [m, k] B [k, n]
          desc.a.dtype = GEMMEPI_BF16;                     // the other tensors follow
          desc.b.transposed = 1;                           // w is stored [n, k], as nn.Linear stores it
          args.a = x, args.b = w, args.d = y;
          check(gemmepi_matmul(gpu, &desc, &args, stream));
   4. An epilogue is one activation or-ed with flags (gemmepi_epilogue says their order), or text, desc.formula (docs/formulas.md).
          desc.epilogue = GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX; // y = silu(p), p = x w^T + bias
          args.bias = bias, args.aux = p; // with desc.flags = GEMMEPI_BATCH_INVARIANT a row of y has the same bits whatever m is
   5. Plan once what runs often. A run of a plan costs its launches.
          check(gemmepi_plan_matmul(gpu, &desc, &plan));
          check(gemmepi_plan_prepare(plan, stream)); // workspace for runs on this stream
          check(gemmepi_run_matmul(plan, &args, stream)); // pointers at multiples of 16 bytes, unless desc.alignment says less
          gemmepi_plan_explain(plan, text, sizeof text); // the route, and why not another
          gemmepi_plan_destroy(plan);
   6. A layer y = act(x w^T + bias) with its gradients: one desc and one args for both directions. dw is stored as w is.
          layer.m = tokens, layer.n = inner, layer.k = width, layer.a.dtype = GEMMEPI_BF16, layer.b.transposed = 1;
          layer.activation = GEMMEPI_SILU;
          layer.flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB |
                        GEMMEPI_ACCUMULATE_DB | GEMMEPI_LINEAR_DBIAS;
          tensors.a = x, tensors.b = w, tensors.bias = bias, tensors.y = y, tensors.preact = p;
          tensors.dy = dy, tensors.da = dx, tensors.db = dw, tensors.dbias = dbias; // dw is added to
          check(gemmepi_linear(gpu, &layer, &tensors, stream));
          check(gemmepi_linear_backward(gpu, &layer, &tensors, stream));
   7. Element-wise operations accept tensors of any strides, as of DLPack and NumPy; gemmepi_elementwise also runs formulas.
          values.data = y, values.dtype = GEMMEPI_BF16, values.rank = 2, values.shape = shape; // no strides: dense
          check(gemmepi_activation(gpu, GEMMEPI_TANH, NAN, &values, &values, stream)); // in place; NAN: no parameter
   8. Every call that can fail returns a gemmepi_status. gemmepi_last_error() says which field is wrong, its value and
      what is accepted. A refused call has changed nothing. Errors of the GPU that come later are reported by
          check(gemmepi_synchronize(gpu, stream));
   9. Threads share contexts and plans. Runs need no lock except for the context's workspace. CUDA graphs may capture them:
      prepare and run once before. docs/threads-and-graphs.md has the rules of streams and workspace.
  10. Ship: a problem's first use compiles kernels, half a second each, and keeps them in a folder. gemmepi_precompile does that for a
      list of problems, gemmepi_tune finds the fastest kernels by timing. A bundle of kernels replaces NVRTC; it is code, so load
      trusted ones only: docs/shipping.md.
          problem.matmul = &desc;
          check(gemmepi_precompile(gpu, &problem, 1, 0, NULL, NULL)); // or gemmepi_tune(gpu, &problem, 1, NULL, NULL, NULL)
          if (!details.is_host) check(gemmepi_bundle_save(gpu, "kernels.gemmepi")); // the user's program: gemmepi_bundle_load

   FUNCTIONS, each with its contract at its declaration below; docs/api.md is the same
       gemmepi_create _destroy _context_info _last_error _status_name _version              contexts and errors
       gemmepi_alloc _alloc_from _free _upload _download _synchronize _stream_create _stream_destroy   memory, streams
       gemmepi_matmul _grouped _linear _linear_backward _elementwise                        a problem in one call
       gemmepi_plan_matmul ... _plan_elementwise, gemmepi_run_matmul ... _run_elementwise   the same, planned once
       gemmepi_plan_prepare _info _explain _destroy, gemmepi_epilogue_info, gemmepi_dtype_size   of plans, and sizes
       gemmepi_activation _activation_backward _gated _lerp _bias_grad _cast, _derive _derive_operands _pack   element-wise, in short; formulas
       gemmepi_precompile _tune _answers_save _load _bundle_save _load _write _read         ahead of time */
