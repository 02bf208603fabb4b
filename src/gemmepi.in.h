/* gemmepi.h is made from this file by src/embed.py, which inlines the quoted includes. */
#ifndef GEMMEPI_H
#define GEMMEPI_H

#include "api/manual.h"
#include "api/types.h"

#include "api/products.h"

#include "api/grouped.h"

#include "api/elementwise.h"

#include "api/layers.h"

#include "api/formulas.h"

#include "api/networks.h"

#include "api/ahead.h"

#include "api/details.h"
#include "api/functions.h"

#endif

#if defined(GEMMEPI_IMPLEMENTATION) && !defined(GEMMEPI_IMPLEMENTATION_INCLUDED)
#define GEMMEPI_IMPLEMENTATION_INCLUDED

/* Each room uses only what stands before it. */
#include "base/platform.h"
#include "base/status.h"
#include "base/fault.h"
#include "base/regions.h"
#include "base/environment.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/file_types.h"
#include "base/file_windows.h"
#include "base/file_posix.h"
#include "base/file.h"
#include "base/dynamic_library.h"

#include "numbers/dtype.h"
#include "numbers/activation.h"
#include "numbers/convert.h"

#include "formula/operations.h"
#include "formula/number.h"
#include "formula/graph.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "formula/simplify.h"
#include "formula/operands.h"
#include "formula/hints.h"
#include "formula/parser.h"
#include "formula/nodes.h"
#include "formula/expression.h"
#include "formula/parse.h"
#include "formula/print.h"
#if !defined GEMMEPI_NO_FORMULA || !defined GEMMEPI_NO_LINEAR
#include "formula/derivation.h"
#include "formula/sweep.h"
#include "formula/gradient.h"
#include "formula/derive.h"
#include "formula/derived_operands.h"
#endif
GPI__OPTIMIZE_LITTLE_END
#include "formula/formula.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "formula/placed.h"
#include "formula/key.h"
#include "formula/emit.h"
GPI__OPTIMIZE_LITTLE_END
#include "formula/evaluate.h"

#include "problem/flags.h"
#include "problem/epilogue.h"
#include "problem/view.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "problem/formula.h"
GPI__OPTIMIZE_LITTLE_END
#include "problem/problem.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "problem/scales.h"
#include "problem/matrices.h"
#include "problem/pack.h"
#include "problem/rules.h"
#include "problem/made.h"
#include "problem/normalise.h"
#include "problem/epilogue_graph.h"
GPI__OPTIMIZE_LITTLE_END
#include "problem/overlap.h"
#include "problem/product_regions.h"
#include "problem/arguments.h"
#include "problem/formula_arguments.h"
#include "problem/convert_arguments.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "problem/grouped.h"
#ifndef GEMMEPI_NO_ELEMENTWISE
#include "problem/task.h"
#include "problem/tensor.h"
#include "problem/elementwise.h"
GPI__OPTIMIZE_LITTLE_END
#include "problem/nest.h"
#include "problem/operation_graph.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "problem/elementwise_formula.h"
#endif

#include "cuda/driver.h"
#include "cuda/nvrtc.h"
#include "cuda/cublaslt.h"
#include "cuda/libraries.h"
#include "cuda/folders.h"
#include "cuda/load.h"

#include "device/disk_cache.h"
#include "device/context.h"
#include "device/faults.h"
#include "device/handles.h"
#include "device/memory.h"
#include "device/pointers.h"
GPI__OPTIMIZE_LITTLE_END
#include "device/workspace.h"
#include "device/run.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "device/source.h"
#include "device/code.h"
#include "device/bundle.h"
#include "device/compile.h"
#include "device/dump.h"
#include "device/kernel.h"
GPI__OPTIMIZE_LITTLE_END
#include "device/launch.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "device/kept.h"
#include "device/destroy.h"
#include "device/create.h"
GPI__OPTIMIZE_LITTLE_END

#include "shell/text_key.h"
#include "shell/shell.h"

#ifndef GEMMEPI_NO_HOST
#include "host/product.h"
#include "host/grouped.h"
#include "host/found_scale.h"
#include "host/formula.h"
#ifndef GEMMEPI_NO_ELEMENTWISE
#include "host/elementwise.h"
#endif
#endif

#include "kernels/params.h"

GPI__OPTIMIZE_LITTLE_BEGIN

#include "elementwise/formula_shape.h"
#include "elementwise/formula_prologue.h"
#include "elementwise/formula_pass.h"
GPI__OPTIMIZE_LITTLE_END
#include "elementwise/formula_launch.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "elementwise/scaled_rows.h"
#ifndef GEMMEPI_NO_ELEMENTWISE
#include "elementwise/regions.h"
#include "elementwise/formula_axes.h"
GPI__OPTIMIZE_LITTLE_END
#include "elementwise/formula_regions.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "elementwise/formula.h"
#include "elementwise/loop.h"
#include "elementwise/sum.h"
#include "elementwise/scaled.h"
#include "elementwise/plan.h"
GPI__OPTIMIZE_LITTLE_END
#include "elementwise/pointers.h"
#include "elementwise/run.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "elementwise/explain.h"
GPI__OPTIMIZE_LITTLE_END
#include "elementwise/calls.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#endif

#include "product/parts/inside_rules.h"
#include "product/parts/inside.h"
#include "product/parts/sums.h"
#include "product/parts/pass.h"
#include "product/parts/product_kernel.h"
#include "product/parts/composed.h"
#include "product/parts/found_scale.h"
#include "product/parts/operand_copy.h"
#include "product/candidate.h"
#include "product/matmul_plan.h"
#include "product/engines/engines.h"
#include "product/routes/lt_rule.h"
#include "product/routes/lt_describe.h"
#include "product/routes/lt_known.h"
#include "product/routes/lt_checked.h"
#include "product/routes/lt_product.h"
#include "product/routes/lt.h"
#include "product/routes/split.h"
#include "product/routes/plain.h"
#include "product/routes/fused.h"
#include "product/estimate.h"
#include "product/routes/routes.h"
#include "product/choose.h"
#include "product/answers.h"
#include "product/formulas.h"
#include "product/around.h"
#include "product/plan.h"
GPI__OPTIMIZE_LITTLE_END
#include "product/run_around.h"
#include "product/run.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "product/explain.h"
#include "product/tuning/ways.h"
#include "product/tuning/trial.h"
#include "product/tuning/tune.h"
#include "product/tuning/check.h"
GPI__OPTIMIZE_LITTLE_END
#include "product/calls.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "grouped/plan.h"
GPI__OPTIMIZE_LITTLE_END
#include "grouped/run.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "grouped/explain.h"
#include "grouped/tuning.h"
GPI__OPTIMIZE_LITTLE_END
#include "grouped/calls.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#ifndef GEMMEPI_NO_LINEAR
#include "linear/layer.h"
#include "linear/desc.h"
#include "linear/matrices.h"
#include "linear/tensors.h"
#include "linear/before.h"
#include "linear/operands.h"
#include "linear/formula.h"
#include "linear/before_formula.h"
#include "linear/added.h"
#include "linear/operand_formula.h"
#include "linear/convert.h"
#include "linear/step.h"
#include "linear/factors.h"
#include "linear/backward.h"
#include "linear/plan.h"
#include "linear/blocks.h"
GPI__OPTIMIZE_LITTLE_END
#include "linear/pointers.h"
#include "linear/run.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "linear/explain.h"
GPI__OPTIMIZE_LITTLE_END
#include "linear/calls.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#endif
#ifndef GEMMEPI_NO_NETWORK
#include "network/task.h"
#include "network/layers.h"
#include "network/kernel.h"
#include "network/convert.h"
#include "network/plan.h"
GPI__OPTIMIZE_LITTLE_END
#include "network/pointers.h"
#include "network/kernel_run.h"
#include "network/run.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#include "network/explain.h"
GPI__OPTIMIZE_LITTLE_END
#include "network/calls.h"
GPI__OPTIMIZE_LITTLE_BEGIN
#endif
#include "plans/plans.h"
#include "ahead/precompile.h"
#include "ahead/tune.h"
#include "ahead/answer_file.h"
#include "ahead/bundle.h"
GPI__OPTIMIZE_LITTLE_END

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
