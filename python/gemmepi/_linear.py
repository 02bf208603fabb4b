"""gemmepi.linear: a layer with its gradients, by gemmepi_linear and gemmepi_linear_backward."""
import math
from typing import Optional, Tuple

import torch
from torch import Tensor

from . import api
from ._tensors import (DTYPES, LINEAR, LINEAR_BACKWARD, Plans, autocast, compute_of, is_plain, kept, matrix, placeholder, refuse_second_derivative,
                       require_device)

ACTIVATIONS = {name: getattr(api, name.upper()) for name in (
    "none", "relu", "gelu_tanh", "gelu_erf", "silu", "sigmoid", "tanh", "leaky_relu", "elu", "squared_relu", "quick_gelu", "softplus", "hardswish",
    "mish", "hardsigmoid")}
ACCEPTED = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def check(x, weight, bias, code):
    tensors = {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
    require_device(x.device, tensors)
    if x.dtype not in ACCEPTED or any(tensor.dtype != x.dtype for tensor in tensors.values()):
        raise TypeError("x is of %s, %s; accepted are float32, float64, float16 and bfloat16, one for all"
                        % (x.dtype, ", ".join("%s of %s" % (name, tensor.dtype) for name, tensor in tensors.items())))
    if x.dim() < 1 or weight.dim() != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError("x has the shape %s and weight %s; accepted are [.., k] and [n, k]" % (list(x.shape), list(weight.shape)))
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise ValueError("bias has the shape %s; accepted is [%s]" % (list(bias.shape), weight.shape[0]))
    if code & api.GATED and weight.shape[0] % 2:
        raise ValueError("weight has %s rows; with gated they are two halves, an even number" % weight.shape[0])


class Layer:
    """What tensors of some shapes and strides are as a layer. x and weight may be placeholders where nothing reads them."""

    def __init__(self, x, weight, bias, code, parameter):
        check(x, weight, bias, code)
        self.code, self.parameter, self.dtype, self.device = code, parameter, x.dtype, x.device
        self.m, (self.n, self.k) = math.prod(x.shape[:-1]), weight.shape
        self.y_shape = (*x.shape[:-1], self.n // 2 if code & api.GATED else self.n)
        self.has_mask = code == api.RELU
        laid_out, self.is_k_by_n, self.ldb = matrix(weight)
        self.copies_weight = laid_out is not weight
        try:
            rows = x.view(self.m, self.k)
            laid_out, transposed, self.lda = matrix(rows)
            self.copies_x = transposed or laid_out is not rows
        except RuntimeError:  # its leading axes are no one axis
            self.copies_x = True
        if self.copies_x:
            self.lda = self.k
        self.compute, self.plans = compute_of(x), {}

    def results(self, x, flags):
        """Y, and of P what is kept: P, RELU's bit mask or nothing."""
        y = x.new_empty(self.y_shape)
        if not flags & api.LINEAR_SAVED:
            return y, None
        if self.has_mask:
            return y, x.new_empty(self.m, (self.n + 127) // 128 * 16, dtype=torch.uint8)
        return y, x.new_empty(self.m, self.n)

    def gradients(self, dy, x_shape, flags):
        """dx, dweight, laid out as weight is, and dbias; None what is not wanted."""
        dx = dy.new_empty(x_shape) if flags & api.LINEAR_DA else None
        dweight = dy.new_empty((self.k, self.n) if self.is_k_by_n else (self.n, self.k)) if flags & api.LINEAR_DB else None
        dbias = dy.new_empty(self.n) if flags & api.LINEAR_DBIAS else None
        return dx, dweight, dbias

    def desc(self, flags, alignment):
        desc = api.linear_desc(m=self.m, n=self.n, k=self.k, compute=self.compute, activation=self.code, flags=flags, alignment=alignment,
                               has_parameter=self.parameter is not None, activation_parameter=self.parameter or 0)
        desc.a.dtype, desc.a.ld = DTYPES[self.dtype], self.lda
        desc.b.transposed = desc.db.transposed = 1 - self.is_k_by_n
        desc.b.ld = self.ldb
        return desc

    def run(self, kind, flags, *addresses):
        """addresses: of a, b, bias, y, preact, dy, da, db and dbias, as the args have them; the last may be missing."""
        plans = self.plans.get((kind, flags))
        if plans is None:
            plans = self.plans[kind, flags] = Plans(kind, self.device, lambda alignment: self.desc(flags, alignment))
        plans.run(addresses, kind.words(*addresses))


def layer_of(x, weight, bias, code, parameter):
    key = (x.shape, x.stride(), x.dtype, x.device, weight.shape, weight.stride(), weight.dtype, weight.device,
           None if bias is None else (bias.shape, bias.dtype, bias.device), code, parameter, compute_of(x))
    return kept(key, Layer, x, weight, bias, code, parameter)


def forward(x, weight, bias, code, parameter, flags):
    layer = layer_of(x, weight, bias, code, parameter)
    y, preact = layer.results(x, flags)
    a = x.reshape(layer.m, layer.k).contiguous() if layer.copies_x else x
    b = weight.contiguous() if layer.copies_weight else weight
    if bias is not None:
        bias, flags = bias.contiguous(), flags | api.LINEAR_BIAS
    layer.run(LINEAR, flags, a.data_ptr(), b.data_ptr(), address(bias), y.data_ptr(), address(preact))
    return y, preact


def address(tensor):
    return None if tensor is None else tensor.data_ptr()


def backward(dy, x, weight, bias, preact, code, parameter, flags):
    """flags: LINEAR_DA and so on say what is wanted. bias is needed with RECOMPUTE, preact with SAVED."""
    layer = layer_of(x, weight, bias, code, parameter)
    found = layer.gradients(dy, x.shape, flags)
    dy, a, b = dy.contiguous(), None, None
    if flags & (api.LINEAR_DB | api.LINEAR_RECOMPUTE):
        a = x.reshape(layer.m, layer.k).contiguous() if layer.copies_x else x
    if flags & (api.LINEAR_DA | api.LINEAR_RECOMPUTE):
        b = weight.contiguous() if layer.copies_weight else weight
    if bias is not None:
        bias, flags = bias.contiguous(), flags | api.LINEAR_BIAS
    layer.run(LINEAR_BACKWARD, flags, address(a), address(b), address(bias), None, address(preact), dy.data_ptr(), *map(address, found))
    return found[0], found[1].t() if found[1] is not None and layer.is_k_by_n else found[1], found[2]


# >>under PyTorch's dispatcher, whose operators have no optional results

@torch.library.custom_op("gemmepi::linear", mutates_args=())
def linear_op(x: Tensor, weight: Tensor, bias: Optional[Tensor], code: int, parameter: Optional[float], flags: int) -> Tuple[Tensor, Tensor]:
    y, preact = forward(x, weight, bias, code, parameter, flags)
    return y, x.new_empty(0) if preact is None else preact


@linear_op.register_fake
def _(x, weight, bias, code, parameter, flags):
    y, preact = Layer(x, weight, bias, code, parameter).results(x, flags)
    return y, x.new_empty(0) if preact is None else preact


@torch.library.custom_op("gemmepi::linear_backward", mutates_args=())
def backward_op(dy: Tensor, x: Tensor, weight: Tensor, bias: Optional[Tensor], preact: Optional[Tensor], code: int, parameter: Optional[float],
                flags: int) -> Tuple[Tensor, Tensor, Tensor]:
    return tuple(dy.new_empty(0) if gradient is None else gradient for gradient in backward(dy, x, weight, bias, preact, code, parameter, flags))


@backward_op.register_fake
def _(dy, x, weight, bias, preact, code, parameter, flags):
    layer = Layer(x, weight, bias, code, parameter)
    dx, dweight, dbias = layer.gradients(dy, x.shape, flags)
    dweight = dweight.t() if dweight is not None and layer.is_k_by_n else dweight
    return tuple(dy.new_empty(0) if gradient is None else gradient for gradient in (dx, dweight, dbias))


# >>gradients

def keep(ctx, inputs, output):
    x, weight, bias, ctx.code, ctx.parameter, ctx.flags = inputs
    again = ctx.flags & api.LINEAR_RECOMPUTE
    ctx.save_for_backward(x if ctx.needs_input_grad[1] or again else placeholder(x), weight if ctx.needs_input_grad[0] or again else placeholder(weight),
                          bias if again else None, output[1])


def gradients(call, ctx, dy):
    if dy is None:
        return (None,) * 6
    wanted, flags = ctx.needs_input_grad[:3], ctx.flags
    for flag, is_wanted in zip((api.LINEAR_DA, api.LINEAR_DB, api.LINEAR_DBIAS), wanted):
        flags |= flag if is_wanted else 0
    found = call(dy, *ctx.saved_tensors, ctx.code, ctx.parameter, flags)
    return (*[gradient if is_wanted else None for gradient, is_wanted in zip(found, wanted)], None, None, None)


def keep_op(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(output[1])
    keep(ctx, inputs, output)


class Direct(torch.autograd.Function):
    """The same without the dispatcher, which takes longer than the call."""

    @staticmethod
    def forward(ctx, *inputs):
        output = forward(*inputs)
        keep(ctx, inputs, output)
        return output[0]

    @staticmethod
    def backward(ctx, dy):
        refuse_second_derivative("linear")
        return gradients(backward, ctx, dy)


linear_op.register_autograd(lambda ctx, dy, _: gradients(backward_op, ctx, dy), setup_context=keep_op)


def linear(x, weight, bias=None, activation="none", *, gated=False, gate_first=False, parameter=None, recompute=False, flags=0):
    """act(x weight^T + bias), as torch.nn.functional.linear with an activation behind it: x [.., k], weight [n, k], bias [n], the result [.., n].

    activation   none, relu, gelu_tanh, gelu_erf, silu, sigmoid, tanh, leaky_relu, elu, squared_relu, quick_gelu, softplus, hardswish, mish or
                 hardsigmoid; parameter is that of leaky_relu and elu
    gated        value act(gate) of the halves of n, [.., n / 2]: the value is the first, with gate_first the second
    recompute    backward computes the pre-activation once more, instead of keeping it
    flags        of gemmepi_linear_desc: gemmepi.api.BATCH_INVARIANT and so on
    """
    if activation not in ACTIVATIONS:
        raise ValueError("activation is %r; accepted are %s" % (activation, ", ".join(ACTIVATIONS)))
    x, weight, bias = autocast(x, weight, bias)
    code = ACTIVATIONS[activation] | (api.GATED if gated else 0) | (api.GATE_FIRST if gate_first else 0)
    needs = torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad or bias is not None and bias.requires_grad)
    if needs and code != api.NONE:
        flags |= api.LINEAR_RECOMPUTE if recompute else api.LINEAR_SAVED
    if not is_plain((x, weight, bias)):
        return linear_op(x, weight, bias, code, parameter, flags)[0]
    if needs:
        return Direct.apply(x, weight, bias, code, parameter, flags)
    return forward(x, weight, bias, code, parameter, flags)[0]
