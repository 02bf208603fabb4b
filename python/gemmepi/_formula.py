"""gemmepi.formula: a product with a formula, and its gradients by gemmepi_derive."""
import math
import re
from typing import List, Optional

import torch
from torch import Tensor

from . import api
from ._call import OverTensors, Product
from ._layout import Given, Made, Repeated, anything, flat, is_factor, is_line, is_rows
from ._made import Factors
from ._problem import PLAIN, NoGradient, Operand, Problem, of_each, upstream_name
from ._tensors import BYTES, DTYPES, TORCH_DTYPES, as_bytes, autocast, code_of_dtype, compute_of, is_plain, kept, placeholder

OF_A, OF_B = 1, 2  # which factors' gradients are wanted


def layout(tensor):
    return None if tensor is None else (tensor.shape, tensor.stride(), tensor.dtype, tensor.device)


def problem_of(text, a, b, tensors, names, outputs, dtypes, wanted, stored):
    key = ("problem", text, names, outputs, tuple(dtypes), wanted, tuple(stored), *[(tensor.shape, tensor.dtype, tensor.device) for tensor in (a, b, *tensors)])
    return kept(key, Problem, text, a, b, tensors, names, outputs, dtypes, wanted, stored)


# >>forward

class Forward:
    """A problem's product, of tensors with some strides. made: what Factors.layouts returns of a lead, for factors that texts make; a and b are as if they
    were stored."""

    def __init__(self, text, a, b, tensors, names, outputs, dtypes, wanted, flags, stored, texts=(None, None), made=None):
        self.problem = problem = problem_of(text, a, b, tensors, names, outputs, dtypes, wanted, stored)
        plain = [Given(tensor, problem.lead, name, is_factor) for name, tensor in (("a", a), ("b", b))], [], []
        self.factors, others, numbers = made(problem.lead) if made else plain
        self.inputs = [Given(tensor, problem.lead, operand.name, is_rows if operand.kind in (api.FULL, api.BLOCKED) else is_line, of_each(stored, i)[0])
                       for i, (operand, tensor) in enumerate(zip(problem.inputs, tensors))]
        operands, self.d_at = list(zip(problem.inputs, self.inputs)), None
        d = None
        for i, (operand, (shape, dtype)) in enumerate(zip(problem.outputs, problem.made)):
            made = Made(flat(shape, (0,) * len(shape), problem.lead, operand.name)[0], dtype)
            if operand.name == "d":
                d, self.d_at = made, i
            else:
                operands.append((operand, made))
        formula = problem.text
        if problem.kept_shape is not None:
            formula, shape = problem.text_that_keeps_v(), flat(problem.kept_shape, (0,) * len(problem.kept_shape), problem.lead, "v")[0]
            operands.append((problem.kept, Made(shape, TORCH_DTYPES[problem.kept_dtype])))
        self.others = [layout for _, layout in others]
        operands += others + [(operand, None) for operand in problem.inputs[len(tensors):]] + numbers
        self.product = Product(a.device, *self.factors, d, problem.d_dtype, flags, compute_of(a), formula.encode(), operands, texts, problem)

    def run(self, a, b, tensors, numbers, others=()):
        made, v = self.problem.make_results(a)
        a, b = self.factors[0](a), self.factors[1](b)
        read = [given(tensor) for given, tensor in zip(self.inputs, tensors)]
        addresses = [tensor.data_ptr() for tensor in read] + [tensor.data_ptr() for i, tensor in enumerate(made) if i != self.d_at]
        if v is not None:
            addresses.append(v.data_ptr())
        others = [given(tensor) for given, tensor in zip(self.others, others)]
        addresses += [tensor.data_ptr() for tensor in others]
        self.product.run(a.data_ptr(), b.data_ptr(), None if self.d_at is None else made[self.d_at].data_ptr(), addresses, numbers)
        return made, v


def forward(a, b, tensors, text, names, numbers, outputs, dtypes, wanted, factors, flags, stored, a_text, b_text):
    """The outputs, v where the gradient reads it, else None, the problem, and the factors where texts make them."""
    key = ("forward", text, names, outputs, tuple(dtypes), wanted, flags, tuple(stored), compute_of(a),
           *[(tensor.shape, tensor.stride(), tensor.dtype, tensor.device) for tensor in (a, b, *tensors)])
    if a_text or b_text:
        return forward_of_made(key, a, b, tensors, text, names, numbers, outputs, dtypes, wanted, factors, flags, stored, a_text, b_text)
    found = kept(key, Forward, text, a, b, tensors, names, outputs, dtypes, wanted, flags, stored)
    return (*found.run(a, b, tensors, numbers), found.problem, None)


def forward_of_made(key, a, b, tensors, text, names, numbers, *rest):
    """The same where texts make a or b."""
    made = kept((*key, "factors", *rest[-2:]), Factors, text, a, b, tensors, names, *rest[-3:])
    text, names, of_text, outputs, dtypes, wanted, factors, flags, stored, *_ = made.inner(text, names, numbers, *rest)
    own, (others, more) = made.tensors_of(made.own, tensors), made.others_of(tensors, numbers)
    found = kept((*key, made, wanted), Forward, text, *made.likes, own, names, outputs, dtypes, wanted, flags, stored, made.texts,
                 lambda lead: made.layouts(a, b, tensors, lead))
    return (*found.run(a, b, own, of_text + more, others), found.problem, made)


# >>backward

class Backward:
    """The gradient's formula over tensors with some strides, which gives d_v and those of the operands, and two products with d_v.

    upstreams are None where nothing depends on an output. saved: v, and outputs that the gradient reads. Tensors that nothing reads are
    placeholders."""

    def __init__(self, problem, upstreams, a, b, tensors, saved, factors, flags):
        gradient = problem.gradient(upstreams)
        self.problem, self.factors = problem, factors if "d_v" in gradient.made else 0
        self.dtype = TORCH_DTYPES[problem.kept_dtype]
        self.shape = ((problem.batch,) if problem.batch > 1 else ()) + (problem.m, problem.n)
        inputs = dict(zip([operand.name for operand in problem.inputs], tensors))
        known = {"v": (saved[0], "saved", 0)}
        known.update((name, (tensor, "input", i)) for i, (name, tensor) in enumerate(inputs.items()))
        known.update((name, (tensor, "saved", 1 + i)) for i, (name, tensor) in enumerate(zip(problem.saved_outputs, saved[1:])))
        known.update((upstream_name(operand.name), (tensor, "upstream", i))
                     for i, (operand, tensor) in enumerate(zip(problem.results, upstreams)) if tensor is not None)
        self.reads, self.makes, operands, numbers = [], [], [], []
        for operand in gradient.operands:
            if operand.kind == api.NUMBER:
                numbers.append(operand)
            elif operand.output:
                made = self.made(operand, inputs.get(operand.name[2:]))
                self.makes.append((operand.name, made))
                operands.append((operand, made))
            else:
                operands.append((operand, self.read(operand, *known[operand.name])))
        if all(operand.kind != api.FULL for operand, _ in operands):  # one that is not read has its part in the shape
            operands.append((Operand("shape_", api.FULL), Repeated(self.shape, self.dtype)))
            self.reads.append(("shape", 0, None))
        self.numbers_at = [[operand.name for operand in problem.inputs[len(tensors):]].index(operand.name) for operand in numbers]
        # what is read comes first, then what is made, then numbers
        operands.sort(key=lambda pair: pair[0].output)
        self.over_tensors = OverTensors(a.device, gradient.text.encode(), operands + [(operand, None) for operand in numbers])
        self.make_products(a, b, flags)

    def read(self, operand, tensor, source, i):
        """Notes where a call has an operand, and returns its layout."""
        found = Given(tensor, self.problem.lead, operand.name, anything, operand.dtype if operand.dtype in BYTES.values() else 0)
        self.reads.append((source, i, found))
        return found

    def made(self, operand, given):
        """An output of the gradient's formula; of an input that items share one for each item, in float32 or wider, unless the formula adds them
        up. given: the input, None for v."""
        if given is None:
            return Made(self.shape, self.dtype)
        problem, shape = self.problem, flat(given.shape, (0,) * given.dim(), self.problem.lead, operand.name)[0]
        if operand.kind == api.FULL:  # of a BLOCKED one's gradient each element is there, to be added up
            shape = (*shape[:-2], problem.m, operand.columns(problem.n, problem.parts))
        if problem.batch > 1 and operand.kind in (api.FULL, api.PER_ROW, api.BLOCKED) and len(shape) == 2:
            shape = (problem.batch, *shape)
        is_sum = math.prod(shape) != given.numel()
        return Made(shape, wide(given.dtype) if is_sum else given.dtype)

    def make_products(self, a, b, flags):
        """da = d_v b^T for each item, db = a^T d_v for each item, or over all rows where the items share b."""
        problem, dv = self.problem, Made(self.shape, self.dtype)
        if self.factors & OF_A:
            self.b = Given(b, problem.lead, "b", is_factor)
            self.da = Made((*self.shape[:-1], problem.k), a.dtype)
            self.adds_a = len(self.shape) == 3 and len(flat(a.shape, a.stride(), problem.lead, "a")[0]) == 2
            self.product_a = Product(a.device, dv, transposed(self.b), self.da, DTYPES[a.dtype], flags, compute_of(a))
        if self.factors & OF_B:
            self.a = Given(a, problem.lead, "a", is_factor)
            is_shared = len(self.shape) == 3 and len(flat(b.shape, b.stride(), problem.lead, "b")[0]) == 2
            if is_shared:
                self.a = Given(a, problem.lead, "a", lambda shape, stride: is_rows(shape, stride) and (len(shape) == 2 or stride[0] == shape[1] * stride[1]))
                dv, left = Made((problem.batch * problem.m, problem.n), self.dtype), Made((problem.batch * problem.m, problem.k), a.dtype)
                left.stride = (self.a.stride[-2], self.a.stride[-1])
            else:
                left = self.a
            self.db = Made(((problem.batch,) if len(self.shape) == 3 and not is_shared else ()) + (problem.k, problem.n), b.dtype)
            self.product_b = Product(a.device, transposed(left), dv, self.db, DTYPES[b.dtype], flags, compute_of(a))

    def run(self, upstreams, a, b, tensors, saved, numbers):
        found = {name: a.new_empty(made.shape, dtype=made.dtype) for name, made in self.makes}
        sources = {"upstream": upstreams, "input": tensors, "saved": saved}
        read = [a.new_zeros((), dtype=self.dtype) if source == "shape" else given(sources[source][i]) for source, i, given in self.reads]
        self.over_tensors.run([tensor.data_ptr() for tensor in [*read, *found.values()]], [numbers[i] for i in self.numbers_at])
        da = db = None
        if self.factors & OF_A:
            da, right = a.new_empty(self.da.shape, dtype=self.da.dtype), self.b(b)
            self.product_a.run(found["d_v"].data_ptr(), right.data_ptr(), da.data_ptr())
            da = (da.sum(0) if self.adds_a else da).view(a.shape)
        if self.factors & OF_B:
            db, left = b.new_empty(self.db.shape, dtype=self.db.dtype), self.a(a)
            self.product_b.run(left.data_ptr(), found["d_v"].data_ptr(), db.data_ptr())
            db = db.view(b.shape)
        return [da, db, *of_tensors(found, self.problem.inputs, tensors, self.problem.lead)]


def wide(dtype):
    """Of what is added up."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def of_tensors(found, operands, tensors, lead):
    """Their gradients, of what is found by name, over the items that share a tensor. operands has more at its end."""
    made = [found.get("d_" + operand.name) for operand, _ in zip(operands, tensors)]
    return [None if gradient is None else added_up(gradient, tensor, lead, operand.blocks) for gradient, tensor, operand in zip(made, tensors, operands)]


def of_blocks(gradient, blocks, rows, columns):
    """Sums of so many rows and columns of blocks."""
    short = rows * blocks[0] - gradient.shape[-2], columns * blocks[1] - gradient.shape[-1]
    if any(short):
        gradient = torch.nn.functional.pad(gradient, (0, short[1], 0, short[0]))
    return gradient.view(*gradient.shape[:-2], rows, blocks[0], columns, blocks[1]).sum((-3, -1))


def added_up(gradient, tensor, lead, blocks):
    if blocks[0] and gradient.shape[-2:] != tensor.shape[-2:]:
        gradient = of_blocks(gradient, blocks, *tensor.shape[-2:])
    if gradient.numel() != tensor.numel():
        gradient = gradient.view(*lead, *gradient.shape[-2:]).sum_to_size(tensor.shape)
    return gradient.view(tensor.shape).to(tensor.dtype)


def transposed(layout):
    found = Made((*layout.shape[:-2], layout.shape[-1], layout.shape[-2]), layout.dtype)
    found.stride = (*layout.stride[:-2], layout.stride[-1], layout.stride[-2])
    return found


def backward(upstreams, a, b, tensors, saved, text, names, numbers, outputs, dtypes, wanted, factors, flags, stored, a_text, b_text):
    """The gradients of a, b and the tensors; None of what is not wanted or nothing comes to."""
    problem = problem_of(text, a, b, tensors, names, outputs, dtypes, wanted, stored)
    if problem.gradient(upstreams) is None:
        return [None] * (2 + len(tensors))
    key = ("backward", problem, tuple([layout(tensor) for tensor in (*upstreams, a, b, *tensors, *saved)]), factors, flags, compute_of(a))
    return kept(key, Backward, problem, upstreams, a, b, tensors, saved, factors, flags).run(upstreams, a, b, tensors, saved, numbers)


# >>under PyTorch's dispatcher, whose operators have no optional results

def without_none(like, tensors):
    return [like.new_empty(0) if tensor is None else tensor for tensor in tensors]


@torch.library.custom_op("gemmepi::formula", mutates_args=())
def formula_op(a: Tensor, b: Tensor, tensors: List[Tensor], text: str, names: str, numbers: List[float], outputs: str,
               dtypes: List[int], wanted: str, factors: int, flags: int, stored: List[int], a_text: str,
               b_text: str) -> List[Tensor]:
    made, v, *_ = forward(a, b, tensors, text, names, numbers, outputs, dtypes, wanted, factors, flags, stored, a_text, b_text)
    return without_none(a, [*made, v])


def traced(a, b, tensors, text, names, numbers, outputs, dtypes, wanted, factors, flags, stored, a_text, b_text):
    """The problem, and the factors that texts make; not kept ones: extents may be symbols."""
    if not (a_text or b_text):
        return Problem(text, a, b, tensors, names, outputs, dtypes, wanted, stored), None
    made = Factors(text, a, b, tensors, names, stored, a_text, b_text)
    text, names, _, outputs, dtypes, wanted, _, _, stored, *_ = made.inner(text, names, numbers, outputs, dtypes, wanted, factors, flags, stored)
    return Problem(text, *made.likes, made.tensors_of(made.own, tensors), names, outputs, dtypes, wanted, stored), made


@formula_op.register_fake
def _(a, b, tensors, *rest):
    made, v = traced(a, b, tensors, *rest)[0].make_results(a)
    return without_none(a, [*made, v])


@torch.library.custom_op("gemmepi::formula_backward", mutates_args=())
def backward_op(upstreams: List[Optional[Tensor]], a: Tensor, b: Tensor, tensors: List[Tensor], saved: List[Optional[Tensor]], text: str, names: str,
                numbers: List[float], outputs: str, dtypes: List[int], wanted: str, factors: int, flags: int, stored: List[int],
                a_text: str, b_text: str) -> List[Tensor]:
    found = backward(upstreams, a, b, tensors, saved, text, names, numbers, outputs, dtypes, wanted, factors, flags, stored, a_text, b_text)
    names = names.split(",")
    needed = [factors & OF_A, factors & OF_B, *[name in wanted.split(",") for name in names[:len(tensors)]]]
    return without_none(a, [torch.zeros_like(tensor) if gradient is None and is_needed else gradient
                            for gradient, is_needed, tensor in zip(found, needed, [a, b, *tensors])])


@backward_op.register_fake
def _(upstreams, a, b, tensors, saved, text, names, numbers, outputs, dtypes, wanted, factors, flags, stored, a_text, b_text):
    made = [a.new_empty(factor.shape, dtype=factor.dtype) if factors & bit else None for factor, bit in ((a, OF_A), (b, OF_B))]
    made += [tensor.new_empty(tensor.shape) if name in wanted.split(",") else None
             for name, tensor in zip(names.split(","), tensors)]
    return without_none(a, made)


# >>gradients

def keep(ctx, problem, factors_made, a, b, tensors, rest, made, v):
    ctx.set_materialize_grads(False)
    whole = [tensor for tensor in made if not tensor.is_floating_point()]
    if whole:
        ctx.mark_non_differentiable(*whole)
    ctx.problem, ctx.rest, ctx.count, ctx.made = problem, rest, len(tensors), factors_made
    names, factors, reads = rest[1].split(","), rest[6], problem.reads
    is_read = [factors & OF_B, factors & OF_A]
    if factors_made:
        is_read = factors_made.is_read(factors_made.inner(*rest)[6])
        reads = {*reads, *[names[i] for which, is_one in zip(factors_made.reads, is_read) if is_one for i in which]}
    saved = [tensor for operand, tensor in zip(problem.outputs, made) if operand.name in problem.saved_outputs]
    ctx.save_for_backward(*[factor if is_one else placeholder(factor) for factor, is_one in zip((a, b), is_read)],
                          *[tensor if name in reads else placeholder(tensor) for name, tensor in zip(names, tensors)],
                          None if problem.kept_shape is None else v, *saved)


def gradients(call, ctx, upstreams):
    """Of a, b and the tensors; None that are not wanted."""
    upstreams = list(upstreams[:len(ctx.problem.results)])
    if all(upstream is None for upstream in upstreams):
        return [None] * (2 + ctx.count)
    if ctx.made:
        return through_texts(call, ctx, upstreams)
    if torch.is_grad_enabled():
        return recorded(ctx, upstreams)
    a, b, *others = ctx.saved_tensors
    found = call(upstreams, a, b, others[:ctx.count], others[ctx.count:], *ctx.rest)
    names, wanted, factors = ctx.rest[1].split(","), ctx.rest[5].split(","), ctx.rest[6]
    needed = [factors & OF_A, factors & OF_B, *[name in wanted for name in names[:ctx.count]]]
    return [gradient if is_needed else None for gradient, is_needed in zip(found, needed)]


class Saved:
    """What gradients() reads of a call."""
    made = None

    def __init__(self, problem, rest, a, b, tensors, saved):
        self.problem, self.rest, self.count, self.saved_tensors = problem, rest, len(tensors), (a, b, *tensors, *saved)


def through_texts(call, ctx, upstreams):
    """What texts make is made again; its gradient goes on through the gradients of the texts."""
    made, rest, (a, b, *others) = ctx.made, ctx.rest, ctx.saved_tensors
    tensors, saved, numbers, wanted = others[:ctx.count], others[ctx.count:], rest[2], rest[5].split(",")
    wanted_of = wanted + [name for name, bit in (("a", OF_A), ("b", OF_B)) if rest[6] & bit]
    inner = made.inner(*rest)
    alone = [made.alone(i, stored, tensors, numbers, wanted_of) if of.text is not None and is_read else None
             for i, (stored, of, is_read) in enumerate(zip((a, b), made.of, made.is_read(inner[6])))]
    factors = [called(*of)[0] if of else stored if like.text is None else like.like for of, stored, like in zip(alone, (a, b), made.of)]
    found = gradients(call, Saved(ctx.problem, inner, *factors, made.tensors_of(made.own, tensors), saved), upstreams)
    results = [None] * (2 + len(tensors))
    for i, gradient in zip([i for i in made.own if i < made.count], found[2:]):
        results[2 + i] = gradient
    for i, (gradient, of) in enumerate(zip(found, alone)):
        if of is None:
            results[i] = gradient if made.of[i].text is None else None
        elif gradient is not None and of[3][5]:
            left, right, inputs, of_text = of
            text, names, _, outputs, dtypes, wanted, _, _, stored, *_ = of_text
            problem = (problem_of if call is backward else Problem)(text, left, right, inputs, names, outputs, dtypes, wanted, stored)
            _, _, results[i], *more = gradients(call, Saved(problem, of_text, left, right, inputs, [None]), [gradient])
            for j, one in zip([j for j in made.reads[i] if j < made.count], more):
                results[2 + j] = one if results[2 + j] is None else results[2 + j] if one is None else results[2 + j] + one
    return results


def recorded(ctx, upstreams):
    """The same by formulas that PyTorch records, so that these have gradients in turn."""
    a, b, *others = ctx.saved_tensors
    tensors, factors, flags = others[:ctx.count], *ctx.rest[6:8]  # no texts are left
    found = recorded_formula(ctx, upstreams, a, b, tensors, others[ctx.count:])
    da = db = None
    if factors & OF_A and "d_v" in found:
        da = formula("d = v", found["d_v"], b.mT, dtypes={"d": a.dtype}, flags=flags).sum_to_size(a.shape)
    if factors & OF_B and "d_v" in found:
        left, right = (a.flatten(0, -2), found["d_v"].flatten(0, -2)) if b.dim() == 2 else (a, found["d_v"])
        db = formula("d = v", left.mT, right, dtypes={"d": b.dtype}, flags=flags)
    return [da, db, *of_tensors(found, ctx.problem.inputs, tensors, ctx.problem.lead)]


def recorded_formula(ctx, upstreams, a, b, tensors, saved):
    """The gradient's text as the formula of a product without terms, whose inputs, v among them, are operands. Returns the outputs by name."""
    text, names, numbers, outputs, dtypes, wanted, _, _, stored, *_ = ctx.rest
    names, lead, m = names.split(","), ctx.problem.lead, ctx.problem.m
    if m == 1 and ctx.problem.batch > 1:
        raise ValueError("gemmepi.formula has no second derivative of a batch of products with one row: give it the items as rows of one product")

    def by_rows(name, tensor):  # such a formula's sums over columns are over the whole batch: one row for each item becomes all rows
        is_line = tensor.dim() > 2 and tensor.shape[-2] == 1 and name in wanted.split(",")
        return tensor.expand(*tensor.shape[:-2], m, tensor.shape[-1]) if is_line else tensor

    tensors = [by_rows(name, tensor) for name, tensor in zip(names, tensors)]
    problem = problem_of(text, a, b, tensors, ",".join(names), outputs, dtypes, wanted, stored)
    gradient = problem.gradient(upstreams)
    if gradient is None:
        return {}
    known = {"v": saved[0], **dict(zip(names, [*tensors, *numbers])), **dict(zip(problem.saved_outputs, saved[1:]))}
    known.update(zip([upstream_name(operand.name) for operand in problem.results], upstreams))
    end, dtypes = gradient.end(), {name: wide(known[name[2:]].dtype) for name in gradient.made if name != "d_v"}
    dtypes.update((operand.name + end, operand.dtype) for operand in problem.inputs if operand.name in gradient.reads and operand.dtype in BYTES.values())
    blocks = {operand.name + end: operand.blocks for operand in gradient.operands if operand.kind == api.BLOCKED and not operand.output}
    renamed = re.sub(r"\w+", lambda word: word[0] + end if word[0] in gradient.reads else word[0], gradient.text)
    try:
        found = formula(renamed, a.new_empty(*lead, m, 0), b.new_empty(0, problem.n), outputs=gradient.made, dtypes=dtypes, blocks=blocks,
                        **{name + end: known[name] for name in gradient.reads})
    except NoGradient as error:
        raise NoGradient(error.status, "the gradient of the formula has no gradient in turn: %s" % error) from None
    return dict(zip(gradient.made, found if len(gradient.made) > 1 else [found]))


def keep_op(ctx, inputs, output):
    a, b, tensors, *rest = inputs
    problem, made = traced(a, b, tensors, *rest)
    keep(ctx, problem, made, a, b, tensors, rest, output[:-1], output[-1])
    without = [] if problem.kept_shape is not None else [output[-1]]
    ctx.mark_non_differentiable(*[tensor for tensor in output[:-1] if not tensor.is_floating_point()], *without)


def backward_of_op(ctx, upstreams):
    da, db, *of_tensors = gradients(backward_op, ctx, upstreams)
    # in the structure of the inputs, in which PyTorch takes an empty list for one of tensors
    return (da, db, of_tensors, *[[] if value == [] else None for value in ctx.rest])


formula_op.register_autograd(backward_of_op, setup_context=keep_op)


class Direct(torch.autograd.Function):
    """The same without the dispatcher, which takes longer than the call."""

    @staticmethod
    def forward(ctx, rest, a, b, *tensors):
        made, v, problem, factors = forward(a, b, tensors, *rest)
        keep(ctx, problem, factors, a, b, tensors, rest, made, v)
        return tuple(made) if v is None else (*made, v)

    @staticmethod
    def backward(ctx, *upstreams):
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


def called(a, b, tensors, rest):
    """The outputs."""
    wanted, count = rest[5], rest[3].count(",") + 1
    if not is_plain([a, b, *tensors]):
        return formula_op(a, b, tensors, *rest)[:-1]
    if wanted and torch.is_grad_enabled():
        return Direct.apply(rest, a, b, *tensors)[:count]
    return forward(a, b, tensors, *rest)[0]


def stored_of(texts, a, b, named, dtypes, blocks):
    """a, b and the tensors, bytes where PyTorch has no numbers of their types, and the list that says what these are; without texts of the tensors
    alone, and empty if all of these are plain."""
    said, found = dtypes or {}, []
    if not said and not blocks and not any(texts) and all(tensor.dtype not in BYTES for _, tensor in named):
        return [a, b, *[tensor for _, tensor in named]], []
    for name, tensor in [("a", a), ("b", b), *named]:
        of_blocks = tuple((blocks or {}).get(name, (0, 0)))
        if len(of_blocks) != 2 or any(type(extent) is not int or extent < (name in (blocks or ())) for extent in of_blocks):
            raise ValueError("blocks[%r] is %r; accepted are two numbers, the rows and columns of a block, 1 or more" % (name, of_blocks))
        found.append((*as_bytes(tensor, name, said.get(name)), *of_blocks))
    for name in blocks or ():
        if name not in [name for name, _ in named]:
            raise ValueError("blocks has %r, which is no tensor among the operands" % name)
    for name, text, (_, code, *_) in zip("ab", texts, found):
        if code and not text:
            raise ValueError("%s is of a type that only formulas read: give %s_formula" % (name, name))
    known = found if any(texts) else found[2:]
    return [tensor for tensor, *_ in found], [number for _, *of in known for number in of] if any(any(of) for _, *of in known) or any(texts) else []


def formula(text, a, b, /, *, outputs="d", dtypes=None, a_formula=None, b_formula=None, blocks=None, flags=0, **operands):
    """What becomes of the product v = a b by a formula: gemmepi.formula("d = silu(v + bias)", a, b, bias=bias).

    a, b       [.., m, k] and [.., k, n], as torch.matmul has them; one of them may have no leading axes
    operands   what the text reads beside v: numbers, and tensors that are broadcast to [.., m, n]: [], [n], [m, 1], [m, n], with n / 2 or 2 n
               columns as the formula has them, or those of its parts
    outputs    names that the text assigns and that are returned, "d, ss" or ["d", "ss"]: a tensor, or a tuple of them. Sums and the like
               have the shapes [.., m, 1] (row_), [n] (column_) and [] (all_)
    dtypes     of outputs: {"d": torch.float32}. Else a's, bfloat16 for fp8, and of reductions float32 (float64 of float64), int32 of argmax
               Of torch.uint8 tensors, what their bytes hold: {"b": gemmepi.api.U4}, or I4, E2M1 or E8M0. Of 4 bits a byte has two elements along the
               last axis (of a transposed matrix the one before), which counts bytes
    a_formula, b_formula   texts that make what is multiplied of a or b: b_formula="(b - zero) * scale". They read operands that are broadcast
               to a or b instead
    blocks     of operands that have an element for each block: {"scale": (128, 1)}, of 128 rows and one column. Outputs of row_sum(x, 128) are so
    flags      of gemmepi_matmul_desc: gemmepi.api.BATCH_INVARIANT and so on
    """
    a, b = autocast(a, b)
    outputs = [name.strip() for name in outputs.split(",")] if isinstance(outputs, str) else list(outputs)
    named = [(name, value) for name, value in operands.items() if isinstance(value, Tensor)]
    numbers = [(name, number_of(name, value)) for name, value in operands.items() if not isinstance(value, Tensor)]
    for name in dtypes or ():
        if name not in (*outputs, "a", "b", *[name for name, _ in named]):
            raise ValueError("dtypes has %r, and %r is none of outputs: %s" % (name, name, ", ".join(outputs)))
    texts, names = (a_formula or "", b_formula or ""), [name for name, _ in named + numbers]
    (a, b, *tensors), stored = stored_of(texts, a, b, named, dtypes, blocks)
    codes = [code_of_dtype(dtypes[name], "dtypes[%r]" % name) if dtypes and name in dtypes else 0 for name in outputs]
    wanted, factors = wanted_of(a, b, named)
    rest = (text, ",".join(names), [number for _, number in numbers], ",".join(outputs), codes, wanted, factors, flags, stored, *texts)
    made = called(a, b, tensors, rest)
    return made[0] if len(outputs) == 1 else tuple(made)
