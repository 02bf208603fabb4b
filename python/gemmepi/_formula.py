"""gemmepi.formula: a product with a formula, and its gradients by gemmepi_derive."""
import ctypes
from typing import List, Optional

import torch
from torch import Tensor

from . import api
from ._problem import WITHOUT_D, Operand, Problem, flat, structs
from ._tensors import DTYPES, TORCH_DTYPES, Plan, alignment_of, code_of_dtype, compute_of, is_plain, kept, matrix, placeholder, refuse_second_derivative, run

OF_A, OF_B = 1, 2  # which factors' gradients are wanted


def problem_of(text, a, b, tensors, names, outputs, dtypes, wanted):
    key = (text, a.shape, a.dtype, a.device, b.shape, b.dtype, b.device, tuple((tensor.shape, tensor.dtype, tensor.device) for tensor in tensors),
           names, outputs, tuple(dtypes), wanted)
    return kept(key, Problem, text, a, b, tensors, names, outputs, dtypes, wanted)


class Values:
    """The operands of a run: tensors, each flat, and numbers, with what args.operands has of them."""

    def __init__(self, tensors, numbers):
        """Pairs of Operand and value."""
        self.operands = [operand for operand, _ in tensors + numbers]
        self.tensors = [tensor for _, tensor in tensors]
        self.doubles = (ctypes.c_double * max(len(numbers), 1))(*[number for _, number in numbers])
        addresses = [tensor.data_ptr() for tensor in self.tensors]
        addresses += [ctypes.addressof(self.doubles) + 8 * i for i in range(len(numbers))]
        self.pointers = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)

    def layouts(self):
        return tuple((tensor.shape, tensor.stride(), tensor.dtype) for tensor in self.tensors)

    def addresses(self):
        return [tensor.data_ptr() for tensor in self.tensors]


# >>the library's calls

def in_rows(operand, tensor):
    """As products take it: dense, but that a matrix may have a leading dimension."""
    if operand.kind != api.FULL:
        return tensor.contiguous()
    found, transposed, _ = matrix(tensor)
    return tensor.contiguous() if transposed else found


def of_product(operand, tensor):
    ld = matrix(tensor)[2] if operand.kind == api.FULL else 0
    return operand.struct(ld=ld, batch_stride=tensor.stride(0) if tensor.dim() == 3 else 0)


def multiply(a, b, d, d_dtype, flags, formula=None, values=None):
    """D = a b of flat tensors, or what becomes of it by a formula, which may have no D. D is dense."""
    a, transposed_a, lda = matrix(a)
    b, transposed_b, ldb = matrix(b)
    values = values or Values([], [])
    addresses = [a.data_ptr(), b.data_ptr(), 0 if d is None else d.data_ptr()]
    alignment, compute = alignment_of(addresses + values.addresses()), compute_of(a)

    def plan():
        batch = max([tensor.shape[0] for tensor in (a, b) if tensor.dim() == 3], default=1)
        operands = [of_product(*pair) for pair in zip(values.operands, values.tensors)]
        operands += [operand.struct() for operand in values.operands[len(values.tensors):]]
        desc = api.matmul_desc(m=a.shape[-2], n=b.shape[-1], k=a.shape[-1], batch=batch, compute=compute, flags=flags, alignment=alignment,
                               formula=formula, operands=structs(operands) if operands else None, operand_count=len(operands))
        for factor, tensor, transposed, ld in ((desc.a, a, transposed_a, lda), (desc.b, b, transposed_b, ldb)):
            factor.dtype, factor.transposed, factor.ld = DTYPES[tensor.dtype], transposed, ld
            factor.batch_stride = tensor.stride(0) if tensor.dim() == 3 else 0
        desc.d.dtype, desc.d.batch_stride = d_dtype, desc.m * d.shape[-1] if batch > 1 and d is not None else 0
        return Plan(api.plan_matmul, a.device, desc)

    key = ("product", a.shape, a.stride(), a.dtype, a.device, b.shape, b.stride(), b.dtype, d_dtype, flags, formula, alignment, compute,
           values.layouts(), tuple((operand.name, operand.kind, operand.width, operand.output) for operand in values.operands))
    args = api.matmul_args(a=addresses[0], b=addresses[1], d=addresses[2], operands=values.pointers if values.operands else None)
    run(api.run_matmul, kept(key, plan), args, a.device)


def over_tensors(formula, values, device):
    """A formula without v, all of whose outputs are operands."""
    alignment = alignment_of(values.addresses())

    def plan():
        operands = [operand.struct() for operand in values.operands]
        for operand, tensor in zip(operands, values.tensors):
            axes = ctypes.c_int64 * tensor.dim()
            operand.tensor = ctypes.pointer(api.tensor(dtype=DTYPES[tensor.dtype], rank=tensor.dim(), shape=axes(*tensor.shape),
                                                       stride=axes(*tensor.stride())))
        desc = api.elementwise_desc(formula=formula, operands=structs(operands), operand_count=len(operands), formula_result=WITHOUT_D,
                                    alignment=alignment)
        return Plan(api.plan_elementwise, device, desc)

    key = ("elementwise", formula, device, alignment, values.layouts(),
           tuple((operand.name, operand.kind, operand.width, operand.output) for operand in values.operands))
    run(api.run_elementwise, kept(key, plan), api.elementwise_args(operands=values.pointers), device)


# >>forward and backward

def zeros(tensor, shape, dtype):
    """On the tensor's device, without memory for each."""
    return tensor.new_zeros((), dtype=dtype).expand(shape)


def forward(a, b, tensors, text, names, numbers, outputs, dtypes, wanted, factors, flags):
    """The outputs, and v where the gradient reads it, else None."""
    problem = problem_of(text, a, b, tensors, names, outputs, dtypes, wanted)
    made, v = problem.results(a)
    written = [(operand, flat(tensor, problem.lead, operand.name)) for operand, tensor in zip(problem.outputs, made)]
    d = [tensor for operand, tensor in written if operand.name == "d"]
    operands = [(operand, in_rows(operand, flat(tensor, problem.lead, operand.name))) for operand, tensor in zip(problem.inputs, tensors)]
    operands += [pair for pair in written if pair[0].name != "d"]
    if v is not None:
        operands.append((Operand(problem.saved_name(), api.FULL, dtype=problem.kept_dtype(), output=1), flat(v, problem.lead, "v")))
    values = Values(operands, list(zip(problem.inputs[len(tensors):], numbers)))
    formula = (problem.text if v is None else problem.text_that_keeps_v()).encode()
    multiply(flat(a, problem.lead, "a"), flat(b, problem.lead, "b"), d[0] if d else None, problem.d_dtype, flags, formula, values)
    return made, v


def result_of(problem, operand, given):
    """Where the elementwise gradient of an input is written, and whether items are added up behind it. given: the input, flat."""
    has_rows, has_columns = operand.kind in (api.FULL, api.PER_ROW), operand.kind in (api.FULL, api.PER_COLUMN)
    rows, columns = problem.m if has_rows else 1, operand.columns(problem.n) if has_columns else 1
    has_items = problem.batch > 1 and (has_rows or given.dim() == 3)
    added = has_items and given.dim() < 3
    dtype = torch.float32 if added and given.dtype in (torch.float16, torch.bfloat16) else given.dtype
    return given.new_empty(((problem.batch,) if has_items else ()) + (rows, columns), dtype=dtype), added


def derived(problem, upstreams, tensors, saved, numbers):
    """What the gradient's formula gives, by name: d_v, and d_NAME of inputs."""
    inputs = dict(zip([operand.name for operand in problem.inputs], [flat(tensor, problem.lead, "") for tensor in tensors]))
    shape = ((problem.batch,) if problem.batch > 1 else ()) + (problem.m, problem.n)
    known, found, sums = {"v": flat(saved[0], problem.lead, "v") if problem.keeps_v() else None, **inputs}, {}, []
    known.update((name, flat(tensor, problem.lead, name)) for name, tensor in zip(problem.saved_outputs(), saved[1:]))
    for operand, upstream in zip(problem.outputs, upstreams):
        given = zeros(saved[0], problem.shape(operand), TORCH_DTYPES[operand.dtype]) if upstream is None else upstream
        known["dy" if operand.name == "d" else "dy_" + operand.name] = flat(given, problem.lead, operand.name)
    pairs, values = [], []
    by_name = dict(zip([operand.name for operand in problem.inputs[len(tensors):]], numbers))
    for operand in problem.gradient_operands:
        if operand.kind == api.NUMBER:
            values.append((operand, by_name[operand.name]))
        elif operand.output:
            like = zeros(saved[0], shape, TORCH_DTYPES[problem.kept_dtype()]) if operand.name == "d_v" else inputs[operand.name[2:]]
            found[operand.name], is_sum = result_of(problem, operand, like)
            sums += [operand.name] if is_sum else []
            pairs.append((operand, found[operand.name]))
        else:
            pairs.append((operand, known[operand.name]))
    if all(operand.kind != api.FULL for operand, _ in pairs):  # one that is not read has its part in the shape
        pairs.append((Operand("shape_", api.FULL), zeros(saved[0], shape, TORCH_DTYPES[problem.kept_dtype()])))
    over_tensors(problem.gradient, Values(pairs, values), saved[0].device)
    found.update((name, found[name].sum(0)) for name in sums)
    return found


def of_factors(problem, dv, a, b, factors, flags):
    """The gradients of a and b; None that are not wanted."""
    flat_a, flat_b, da, db = flat(a, problem.lead, "a"), flat(b, problem.lead, "b"), None, None
    if factors & OF_A:
        da = dv.new_empty((*dv.shape[:-1], problem.k), dtype=a.dtype)
        multiply(dv, flat_b.transpose(-1, -2), da, DTYPES[a.dtype], flags)
        da = (da.sum(0) if flat_a.dim() < da.dim() else da).reshape(a.shape)
    if factors & OF_B:
        if flat_b.dim() < dv.dim():  # shared by items: one product over all rows
            flat_a, dv = flat_a.reshape(-1, problem.k), dv.reshape(-1, problem.n)
        db = dv.new_empty((*dv.shape[:-2], problem.k, problem.n), dtype=b.dtype)
        multiply(flat_a.transpose(-1, -2), dv, db, DTYPES[b.dtype], flags)
        db = db.reshape(b.shape)
    return da, db


def backward(upstreams, a, b, tensors, saved, text, names, numbers, outputs, dtypes, wanted, factors, flags):
    """The gradients of a, b and each tensor; None that are not wanted. saved: v, and outputs that the gradient reads."""
    problem = problem_of(text, a, b, tensors, names, outputs, dtypes, wanted)
    found = derived(problem, upstreams, tensors, saved, numbers)
    da, db = of_factors(problem, found["d_v"], a, b, factors, flags) if factors else (None, None)
    of_tensors = [found["d_" + name].to(tensor.dtype).reshape(tensor.shape) if "d_" + name in found else None
                  for name, tensor in zip(names.split(","), tensors)]
    return [da, db, *of_tensors]


# >>under PyTorch's dispatcher, whose operators have no optional results

def without_none(like, tensors):
    return [like.new_empty(0) if tensor is None else tensor for tensor in tensors]


@torch.library.custom_op("gemmepi::formula", mutates_args=())
def formula_op(a: Tensor, b: Tensor, tensors: List[Tensor], text: str, names: str, numbers: List[float], outputs: str,
               dtypes: List[int], wanted: str, factors: int, flags: int) -> List[Tensor]:
    made, v = forward(a, b, tensors, text, names, numbers, outputs, dtypes, wanted, factors, flags)
    return without_none(a, [*made, v])


@formula_op.register_fake
def _(a, b, tensors, text, names, numbers, outputs, dtypes, wanted, factors, flags):
    made, v = Problem(text, a, b, tensors, names, outputs, dtypes, wanted).results(a)
    return without_none(a, [*made, v])


@torch.library.custom_op("gemmepi::formula_backward", mutates_args=())
def backward_op(upstreams: List[Optional[Tensor]], a: Tensor, b: Tensor, tensors: List[Tensor], saved: List[Tensor], text: str, names: str,
                numbers: List[float], outputs: str, dtypes: List[int], wanted: str, factors: int, flags: int) -> List[Tensor]:
    return without_none(a, backward(upstreams, a, b, tensors, saved, text, names, numbers, outputs, dtypes, wanted, factors, flags))


@backward_op.register_fake
def _(upstreams, a, b, tensors, saved, text, names, numbers, outputs, dtypes, wanted, factors, flags):
    made = [a.new_empty(factor.shape, dtype=factor.dtype) if factors & bit else None for factor, bit in ((a, OF_A), (b, OF_B))]
    made += [tensor.new_empty(tensor.shape) if name in wanted.split(",") else None
             for name, tensor in zip(names.split(","), tensors)]
    return without_none(a, made)


# >>gradients

def keep(ctx, problem_of, inputs, made, v):
    a, b, tensors, *ctx.rest = inputs
    text, names, _, outputs, dtypes, wanted, factors, _ = ctx.rest
    problem = problem_of(text, a, b, tensors, names, outputs, dtypes, wanted)
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*[tensor for tensor in made if not tensor.is_floating_point()], *([] if v is None else [v]))
    ctx.count, ctx.output_count = len(tensors), len(made)
    saved = [tensor for operand, tensor in zip(problem.outputs, made) if operand.name in problem.saved_outputs()]
    ctx.save_for_backward(a if factors & OF_B else placeholder(a), b if factors & OF_A else placeholder(b),
                          *[tensor if name in problem.reads else placeholder(tensor) for name, tensor in zip(names.split(","), tensors)],
                          v if problem.keeps_v() else placeholder(a), *saved)


def gradients(call, ctx, upstreams):
    """Of a, b and the tensors; None that are not wanted."""
    upstreams = list(upstreams[:ctx.output_count])
    if all(upstream is None for upstream in upstreams):
        return [None] * (2 + ctx.count)
    a, b, *others = ctx.saved_tensors
    found = call(upstreams, a, b, others[:ctx.count], others[ctx.count:], *ctx.rest)
    names, wanted, factors = ctx.rest[1].split(","), ctx.rest[5].split(","), ctx.rest[6]
    needed = [factors & OF_A, factors & OF_B, *[name in wanted for name in names[:ctx.count]]]
    return [gradient if is_needed else None for gradient, is_needed in zip(found, needed)]


def keep_op(ctx, inputs, output):
    keep(ctx, Problem, inputs, output[:-1], output[-1])  # of extents that may be symbols


def backward_of_op(ctx, upstreams):
    da, db, *of_tensors = gradients(backward_op, ctx, upstreams)
    # in the structure of the inputs, in which PyTorch takes an empty list for one of tensors
    return (da, db, of_tensors, *[[] if value == [] else None for value in ctx.rest])


formula_op.register_autograd(backward_of_op, setup_context=keep_op)


class Direct(torch.autograd.Function):
    """The same without the dispatcher, which takes longer than the call."""

    @staticmethod
    def forward(ctx, rest, a, b, *tensors):
        made, v = forward(a, b, tensors, *rest)
        keep(ctx, problem_of, (a, b, tensors, *rest), made, v)
        return tuple(made)

    @staticmethod
    def backward(ctx, *upstreams):
        refuse_second_derivative("formula")
        return (None, *gradients(backward, ctx, upstreams))


def wanted_of(a, b, named):
    """v and the names whose gradients PyTorch will ask for, separated by commas, and which factors'."""
    if not torch.is_grad_enabled():
        return "", 0
    factors = (OF_A if a.requires_grad else 0) | (OF_B if b.requires_grad else 0)
    return ",".join((["v"] if factors else []) + [name for name, tensor in named if tensor.requires_grad]), factors


def number_of(name, value):
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError("%s is %r; accepted are tensors and numbers" % (name, value))
    return float(value)


def formula(text, a, b, /, *, outputs="d", dtypes=None, flags=0, **operands):
    """What becomes of the product v = a b by a formula: gemmepi.formula("d = silu(v + bias)", a, b, bias=bias).

    a, b       [.., m, k] and [.., k, n], as torch.matmul has them; one of them may have no leading axes
    operands   what the text reads beside v: numbers, and tensors that are broadcast to [.., m, n]: [], [n], [m, 1], [m, n], with n / 2 or 2 n
               columns as the formula has them
    outputs    names that the text assigns and that are returned, "d, ss" or ["d", "ss"]: a tensor, or a tuple of them. Sums and the like
               have the shapes [.., m, 1] (row_), [n] (column_) and [] (all_)
    dtypes     of outputs: {"d": torch.float32}. Else a's, bfloat16 for fp8, and of reductions float32 (float64 of float64), int32 of argmax
    flags      of gemmepi_matmul_desc: gemmepi.api.BATCH_INVARIANT and so on
    """
    outputs = [name.strip() for name in outputs.split(",")] if isinstance(outputs, str) else list(outputs)
    named = [(name, value) for name, value in operands.items() if isinstance(value, Tensor)]
    numbers = [(name, number_of(name, value)) for name, value in operands.items() if not isinstance(value, Tensor)]
    for name in dtypes or ():
        if name not in outputs:
            raise ValueError("dtypes has %r, and %r is none of outputs: %s" % (name, name, ", ".join(outputs)))
    tensors, names = [tensor for _, tensor in named], [name for name, _ in named + numbers]
    codes = [code_of_dtype(dtypes[name], "dtypes[%r]" % name) if dtypes and name in dtypes else 0 for name in outputs]
    wanted, factors = wanted_of(a, b, named)
    rest = (text, ",".join(names), [number for _, number in numbers], ",".join(outputs), codes, wanted, factors, flags)
    if not is_plain([a, b, *tensors]):
        made = formula_op(a, b, tensors, *rest)[:-1]
    elif wanted:
        made = Direct.apply(rest, a, b, *tensors)
    else:
        made = forward(a, b, tensors, *rest)[0]
    return made[0] if len(outputs) == 1 else tuple(made)
