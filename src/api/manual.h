/* gemmepi - matrix products whose epilogue costs nothing extra, in one C header (version 0.12.1, MIT licence)

   Copy this file into your project. In one C or C++ file write

       #define GEMMEPI_IMPLEMENTATION
       #include "gemmepi.h"

   and include it plainly everywhere else. Nothing of CUDA is needed to build: the CUDA driver, NVRTC and cuBLASLt are
   found when the program runs, and without a GPU the same calls run in plain C on the host. On Linux link with
   -lm -ldl -lpthread (empty libraries on glibc 2.34 and later, but for -lm).

   A whole program, D = gelu(A B + bias):

       #define GEMMEPI_IMPLEMENTATION
       #include "gemmepi.h"
       #include <stdio.h>

       int main(void) {
           float a[2 * 3] = {1, 2, -1, 3, -2, 4}, b[3 * 2] = {.5f, -.3f, .1f, .7f, -.2f, .4f}, bias[2] = {-.1f, .2f}, d[4];
           gemmepi_matmul_desc desc = {0};
           gemmepi_matmul_args args = {0};
           gemmepi_context *gpu;
           void *memory; // A, B, bias and D, at multiples of 64 bytes
           if (gemmepi_create(NULL, &gpu) != GEMMEPI_OK || gemmepi_alloc(gpu, 256, &memory) != GEMMEPI_OK)
               return puts(gemmepi_last_error()), 1;
           args.a = memory, args.b = (char *)memory + 64, args.bias = (char *)memory + 128, args.d = (char *)memory + 192;
           gemmepi_upload(gpu, memory, a, sizeof a, NULL);
           gemmepi_upload(gpu, (char *)memory + 64, b, sizeof b, NULL);
           gemmepi_upload(gpu, (char *)memory + 128, bias, sizeof bias, NULL);
           desc.m = 2, desc.n = 2, desc.k = 3, desc.batch = 1;
           desc.epilogue = GEMMEPI_GELU_TANH | GEMMEPI_BIAS;
           if (gemmepi_matmul(gpu, &desc, &args, NULL) != GEMMEPI_OK ||
               gemmepi_download(gpu, d, args.d, sizeof d, NULL) != GEMMEPI_OK)
               return puts(gemmepi_last_error()), 1;
           printf("%g %g\n%g %g\n", d[0], d[1], d[2], d[3]); // 0.630432 0.734228 / 0.262161 -0.154286
           gemmepi_free(gpu, memory);
           gemmepi_destroy(gpu);
       }

   WHAT IT DOES

   One call computes alpha op(A) op(B) + beta C, adds a bias, applies an activation (or a gate: value act(gate) of the two
   halves of its columns) or multiplies by its derivative, saves what the backward pass needs, adds a residual and sums bias
   gradients: see gemmepi_epilogue and gemmepi_matmul_desc below. A layer of a network is two calls, gemmepi_linear and
   gemmepi_linear_backward. Types F64, F32 (strict or TF32), F16, BF16, fp8 (E4M3 and E5M2) and I8 with scales, in any
   mixture, and I8 with exact I32 results; row- and column-major, transposes, any leading dimension, batches with strides,
   any alignment down to the element's.

   gemmepi_matmul finds or makes a plan by itself. A program that runs the same problem often makes the plan once
   (gemmepi_plan_matmul), reserves its workspace (gemmepi_prepare) and runs it (gemmepi_plan_run) at the price of the
   launches alone. gemmepi_explain says in words which route a plan takes and why not another:

       fused  a kernel of ours with the epilogue inside, from compute capability 8.0 on: operands of BF16, F16 or F32 (strict or
              TF32), any epilogue, results of any type. Sums of bias_grad take one or two launches more; on Hopper those of
              an operand of 16 bits, as a rule, none: they are made as its tiles pass (one where a batch shares them)
       lt     cuBLASLt runs product and epilogue in one kernel, where its result keeps the promises below
       split  a cuBLASLt product into the type of its sums, then one pass of ours, compiled for exactly this epilogue;
              sums of bias_grad take one or two launches more. Operands that cuBLASLt does not multiply as they are (fp8 in
              other layouts or sizes, mixed types) are converted first, without loss: to the smallest type that holds both
       plain  a kernel of ours for whatever those above do not take: no fast one, but any types, layouts and scales
       host   plain C

   Of fused, lt and split the one of the least estimate is taken that can run the problem; gemmepi_explain shows the
   estimates, and config.routes leaves routes out. Estimates are measured on an H200; on other chips they are guesses. They are
   of runs that follow one another on a stream, of which none takes less than its calls take the host, and cuBLASLt's calls
   take longest: in a CUDA graph another route may be faster for small products.

   Of the two kernels of fused, gemmepi_fused (Hopper, compute capability 9.0) loads with TMA, which takes a and b at multiples
   of 16 bytes: their pointers, leading dimensions and batch strides, and the second half of a gated b (where b is not
   transposed). Of F32 it takes TF32, where the elements along k lie side by side (row-major: a as it is, b transposed).
   gemmepi_mma (8.0 and later, and on Hopper strict F32 and what TMA does not take) reads them at any alignment, fastest at such
   multiples; where tiles are few it divides k among blocks, whose sums a pass adds up and finishes. An operand that lies
   otherwise is copied to workspace first (gemmepi_pack, gemmepi_convert, gemmepi_transpose) where that takes less time. d, aux
   and residual may lie anywhere; gemmepi_fused moves those fastest that are of d's width, 16 or 32 bits, and lie so too, where n
   (of gates n / 2) is a multiple of 8, in 32 bits of 4. Kernels are compiled for alpha 1 and no c: runs with others have one of
   their own, compiled in the first of them, or ahead (gemmepi_precompile, and plans of layers that accumulate); with
   GEMMEPI_DEVICE_SCALARS one kernel is for all. On Hopper and later their launches may begin before the one ahead of them in
   the stream has ended, and wait themselves.

   A plan asks the loaded cuBLASLt what it takes, there is no table of versions. Where cuBLASLt refuses a run all the same,
   the next route takes over for good, and the log says so.

   SCALES: numbers in F32 on the device by which the elements of E4M3, E5M2 and I8 matrices are multiplied when read (or
   before they are stored: d, aux). v = scale_a scale_b sum A B. A mode for each matrix, zero for none; c, d, aux and
   residual take TENSOR alone. For op(A) of m x k (op(B): exchange m and n, rows and columns), as cuBLASLt 13 has them:

       TENSOR       one number       s[0]
       OUTER        m numbers        s[row]
                                                 row 0  1  2 ...  m-1
       VECTOR_128   ceil(k / 128) lines of m:    s[k / 128 * m + row]         k 0..127     | s s s ... s |
                                                                              k 128..255   | s s s ... s |
                                                 k 0..127  128..255  ...  (lines are a multiple of 4 long)
       BLOCK_128    ceil(m / 128) lines:         s[row / 128 * L + k / 128]   rows 0..127  | s s s . |
                    L = ceil(k / 128) up to a    numbers past ceil(k / 128)   rows 128..   | s s s . |
                    multiple of 4                are not read

   OUTER is a scale for each row of A and each column of B; VECTOR_128 is what 1 x 128 groups along k are called
   elsewhere, BLOCK_128 128 x 128 tiles. The two operands may have different modes. Scales may be the batch's or each
   item's (scale.batch_stride). BGRAD_A and BGRAD_B sum the scaled operand. To know which scale the next result needs, ask
   for amax (AMAX_D, AMAX_AUX): the largest |v| before scale_d.

   WHAT IT PROMISES

   - Right: everything up to the store is computed in the accumulator's type and rounded once. With u the unit roundoff
     of the stored type, u_acc that of the accumulator (2^-24, or 2^-53 for F64), S = sum_k |alpha A B| + |beta C| + |bias|
     and E = (4 + k / 8) u_acc S (plus 2^-9 S with TF32),
         |out - exact| <= u |exact| + L E + 4 u_acc T + the smallest subnormal of the stored type,
     L the largest |act'| nearby (1.13 for GELU, 1.1 for SILU, QUICK_GELU and MISH, 1.5 for HARDSWISH, 2.2 v + 1
     for SQUARED_RELU, |p| for LEAKY_RELU and ELU where that is above 1, 1 for the others, |act'(aux)| for BACKWARD) and T the sum
     of the magnitudes combined after the product; act' of BACKWARD may be taken at aux (1 + 2 u_acc). With GATED
     |act(gate)| E_value + |value| L E_gate stands for L E, with UPSTREAM |aux| times what act' changes by within v +- E. Products of two fp8
     operands have t S more in E, because the tensor cores of Hopper cut the 32 products of an instruction, and the sum they
     are added to, below 2^-13 of the largest of them: t = 2^-10 for each 32 of k, of 128 at most (of all with
     FAST_ACCUMULATION), measured on operands of one sign. Random normal ones stay within t = 2^-12 (fast: 2^-11), and
     where a few terms are far larger than the rest up to 2^-8 for each 32 can be lost. Products of I8 are exact; an I32
     result is exact modulo 2^32. Where results have 16 bits or fewer, activations and derivatives take shorter forms, off by
     up to 2^-17.3 of their largest term for |v| < 5 and 2^-16.5 for |v| < 10, instead of 2^-22; but forward GELU_ERF's is off by
     up to 2^-21 of |v|, from k = 768 on by 2^-18.2, so that few bits of its tail are right. A bias_grad over 64 rows or more
     sums values of these forms, too; over rows that differ their errors nearly cancel (their mean is some 2^-24).
     Kernels add up to 128 of its terms in the accumulator's type, the rest in F64: a term or such a sum that leaves the
     type's range is infinite, and where both signs do, bias_grad is NaN, even if the exact sum is a number. On the host F64
     holds them all.
   - Never silent: what it cannot do it refuses in words, and nothing is touched. It never prints, exits or aborts.
   - Deterministic: a run repeated on the same GPU gives the same bits.
   - Where cuBLASLt's own epilogue is looser than that (its GELU is approximate, its RELU mask has the bit for v >= 0, its
     16-bit bias gradients sum rounded values, some of its 16-bit algorithms round before they add the bias) the problem
     takes another route, unless GEMMEPI_RELAXED is set. So do runs of D = alpha A B + D in 16 bits with an alpha other than
     1, where cuBLASLt rounds the product before it adds D.

   ACTIVATIONS AND DERIVATIVES (s is the logistic function, Phi and phi the normal distribution's, c = sqrt(2 / pi))

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

   The formulas are meant to the letter also at infinities: where one says inf * 0 (SILU, the GELUs, MISH
   and HARDSWISH at -inf, the derivatives of all these but HARDSWISH at either infinity) the result is NaN, as in PyTorch.

   RELU's mask (AUX or BACKWARD with RELU): bit n % 8 of byte (m * ld + n) / 8 is set where v > 0, as cuBLASLt packs it;
   ld and batch stride count bits and are multiples of 128; bits past n are left as they are. In column-major order m and
   n exchange.

   LAYERS: one desc and one args for both directions of Y = act(A B + bias), here a SwiGLU layer of [tokens, width] into
   [tokens, inner] (n counts values and gates):

       gemmepi_linear_desc layer = {0};
       gemmepi_linear_args args = {0};
       layer.m = tokens, layer.n = 2 * inner, layer.k = width, layer.batch = 1, layer.a.dtype = GEMMEPI_BF16;
       layer.activation = GEMMEPI_SILU | GEMMEPI_GATED;
       layer.flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB |
                     GEMMEPI_ACCUMULATE_DB | GEMMEPI_LINEAR_DBIAS;
       args.a = x, args.b = w, args.bias = bias, args.y = y, args.preact = p;  // forward: y, and p for backward
       args.dy = dy, args.da = dx, args.db = dw, args.dbias = dbias;           // backward: dw is added to
       status = gemmepi_linear(gpu, &layer, &args, stream);
       status = gemmepi_linear_backward(gpu, &layer, &args, stream);

   Backward is G = dY act'(P), in one pass that leaves the sums for dbias too, and a product for each of dA and dB; G lies in
   workspace, in F32 or 16 bits (g_dtype). With RECOMPUTE in place of SAVED P is not kept: the product is made anew and G is
   its epilogue. In a batch that shares B, dB is one product over all items; an A whose items are not stored one after another
   is copied for it. Fp8 operands whose scales change along a gradient's sum (OUTER, VECTOR_128 and BLOCK_128 may) are first
   written out in F32: right, but slow. The bound is that of products above, with the terms of G as stored: u |g| more in each
   where g_dtype is coarser than the accumulator; dbias is summed from values that are not rounded. In a recomputed G the error
   E of P stands times |dy| and the largest |act''| nearby.

   ELEMENT-WISE OPERATIONS: gemmepi_activation, gemmepi_gated, gemmepi_lerp, their gradients (_backward), gemmepi_bias_grad
   and gemmepi_cast work on gemmepi_tensor views of rank 0 to 8 with any strides (DLPack's), in F32, F16, BF16 and F64:

       int64_t in[2] = {tokens, 2 * n}, out[2] = {tokens, n};          // SwiGLU of the two halves of each row
       gemmepi_tensor x = {0}, y = {0};
       x.data = product, x.dtype = GEMMEPI_BF16, x.rank = 2, x.shape = in;
       y.data = result, y.dtype = GEMMEPI_BF16, y.rank = 2, y.shape = out;
       status = gemmepi_gated(gpu, GEMMEPI_SILU | GEMMEPI_GATE_FIRST, -1, &x, NULL, &y, stream);

   Tensors that are dense in the same order are run through in one line (contiguous); all others in tiles (strided), for which
   axes are sorted and merged first, transposes go through shared memory, and 16 bytes are moved at a time wherever a tensor
   is dense and aligned along one axis. Sums (bias_grad, gradients of what was broadcast) take one launch or two. In each,
   values are computed in F32 (F64) and rounded once: with f the function, u the unit roundoff of the stored type and some
   |d| <= 2 u, |e| <= 4 u, the result is f(x (1 + d)) (1 + e), or within 4 u of the largest term that is added, and within
   the smallest subnormal; a product with dy or with a gate's value is one rounding more. Casts and selections are exact to a
   rounding, but that scales are multiplied in before it, and y_scale by way of its reciprocal. Results of 16 bits take shorter
   forms of the functions (2^-12), and those below 2^-126 may be 0. Gates multiply an activation that has been rounded to F32
   (F64): where it is subnormal, so is its precision. A strided output costs more than it writes: memory reads the 32 bytes of
   which only a part is written.

   CAST_Y_SCALE makes operands for fp8 products: the scale of each row, 128-vector or block is found and written in the layout
   drawn above, and goes to args.scale_a or scale_b as it is. Vectors and blocks take one pass, whole tensors and rows two.

   WHAT IT DOES NOT DO (yet)

   - kernels of ours with the epilogue inside take operands of BF16, F16 and F32: of other types gates, most activations and
     gradients are a pass behind cuBLASLt's product
   - no tuning: cuBLASLt's first answer that keeps the promises is taken, on Hopper with 16-bit operands and k up to 2048 one
     with smaller tiles, if there is one
   - no convolutions, no sparse matrices, no several GPUs at once (use one context for each)
   - workspace of the route split is as large as the result in the type of its sums, rows rounded up to eight, and the
     operands that it converts, BGRAD's partial sums, and what cuBLASLt asks for
     besides (32 MiB at most); that of fused is the operands that it packs, the sums of k's parts and partial sums of
     bias_grad
   - a GPU needs the NVIDIA driver 525 or later, cuBLASLt 12 or later, and, for the routes fused, split and plain
     and for element-wise operations, NVRTC 12 or later

   OPTIONS, defined before the implementation (and, GEMMEPI_STATIC and GEMMEPI_API, before every inclusion)

       GEMMEPI_STATIC    every function is static: two libraries that both vendor this file do not clash
       GEMMEPI_API       decorates every public function
       GEMMEPI_NO_HOST   leaves the host's arithmetic out; without a GPU gemmepi_create then fails

   WHERE LIBRARIES ARE SOUGHT: in config.library_path; by plain name, as the system's loader does; in CUDA_PATH, CUDA_HOME,
   CONDA_PREFIX and the toolkit's usual folders; in the folders of pip's wheels (nvidia-cublas, nvidia-cuda-nvrtc) of the
   active Python (VIRTUAL_ENV, CONDA_PREFIX, the first python3 on PATH, the user's own).
   CUDA 13 before 12, never newer than the driver. gemmepi_create loads the driver alone, the others load on first use.

   On Windows the implementation includes <windows.h> (lean, without min and max), whose macros (near, far) then hold in
   that one file.

   FIRST USE: a kernel is compiled when a problem first needs it, about half a second, and found on disk ever after.
   gemmepi_precompile compiles those of a list of problems on all cores, at a program's start or when it is installed.

   THREADS: a context and a plan may be used by any number of threads at once, also on one stream. gemmepi_last_error is
   each thread's own.
   Nothing is ordered across streams but what the caller orders. */
