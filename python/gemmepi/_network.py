"""gemmepi.network: a small network with its gradients, by gemmepi_network and gemmepi_network_backward."""
import ctypes
import math
from typing import List

import torch
from torch import Tensor

from . import api
from ._linear import ACCEPTED, ACTIVATIONS, address
from ._tensors import DTYPES, NETWORK, NETWORK_BACKWARD, Plans, autocast, compute_of, is_plain, kept, refuse_second_derivative, require_device

BETWEEN = "\x1e"  # activations, of which operators have no lists; it is in no text


def check(x, weights, biases):
    tensors = {"%s[%d]" % (name, i): tensor for name, them in (("weights", weights), ("biases", biases)) for i, tensor in enumerate(them)}
    require_device(x.device, tensors)
    for name, tensor in {"x": x, **tensors}.items():
        if tensor.dtype not in ACCEPTED or tensor.dtype != x.dtype:
            raise TypeError("%s is of %s and x of %s; accepted are float32, float64, float16 and bfloat16, one for all"
                            % (name, tensor.dtype, x.dtype))
    if x.dim() < 1:
        raise ValueError("x has no axes; accepted is [.., k]")
    columns = x.shape[-1]
    for i, weight in enumerate(weights):
        if weight.dim() != 2 or weight.shape[1] != columns:
            raise ValueError("weights[%d] has the shape %s; accepted is [n, %s]" % (i, list(weight.shape), columns))
        columns = weight.shape[0]
        if biases and tuple(biases[i].shape) != (columns,):
            raise ValueError("biases[%d] has the shape %s; accepted is [%s]" % (i, list(biases[i].shape), columns))


class Network:
    """What tensors of some shapes are as a network: dense ones, which begin at multiples of 16 bytes. Activations are names or texts."""

    def __init__(self, x, weights, biases, activations, flags):
        check(x, weights, biases)
        self.rows, self.input, self.widths = math.prod(x.shape[:-1]), x.shape[-1], [weight.shape[0] for weight in weights]
        self.activations, self.dtype, self.device, self.compute = activations, x.dtype, x.device, compute_of(x)
        self.flags, self.plans = flags | api.NETWORK_TRANSPOSED | (api.NETWORK_BIAS if biases else 0), {}

    def desc(self, flags):
        layers = (api.network_layer * len(self.widths))()
        for layer, width, activation in zip(layers, self.widths, self.activations.split(BETWEEN)):
            layer.width = width
            if activation in ACTIVATIONS:
                layer.activation = ACTIVATIONS[activation]
            else:
                layer.formula = activation.encode()
        return api.network_desc(rows=self.rows, input=self.input, layers=layers, layer_count=len(layers), dtype=DTYPES[self.dtype],
                                flags=self.flags | flags, compute=self.compute)

    def run(self, kind, flags, x, weights, biases, y=None, dy=None, dx=None, dweights=(), dbiases=()):
        plans = self.plans.get((kind, flags))
        if plans is None:
            plans = self.plans[kind, flags] = Plans(kind, self.device, lambda alignment: self.desc(flags))
        arrays = [(ctypes.c_void_p * len(tensors))(*map(address, tensors)) if tensors else None for tensors in (weights, biases, dweights, dbiases)]
        w, b, dw, db = [None if array is None else ctypes.addressof(array) for array in arrays]
        plans.run((), kind.words(address(x), w, b, address(y), address(dy), address(dx), dw, db))


def network_of(x, weights, biases, activations, flags):
    key = (Network, x.shape, x.dtype, x.device, tuple([(tensor.shape, tensor.dtype, tensor.device) for tensor in (*weights, *biases)]), len(weights),
           activations, flags, compute_of(x))
    return kept(key, Network, x, weights, biases, activations, flags)


def laid_out(tensor):
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


def forward(x, weights, biases, activations, flags):
    network = network_of(x, weights, biases, activations, flags)
    y = x.new_empty((*x.shape[:-1], network.widths[-1]))
    network.run(NETWORK, 0, laid_out(x), [*map(laid_out, weights)], [*map(laid_out, biases)], y)
    return y


def gradients_of(x, weights, biases, wanted):
    """Memory for dx, and for those of weights and biases: all of them, or none. wanted: NETWORK_DX and NETWORK_DW."""
    dx = x.new_empty(x.shape) if wanted & api.NETWORK_DX else None
    return dx, [tensor.new_empty(tensor.shape) for tensor in (*weights, *biases) if wanted & api.NETWORK_DW]


def backward(dy, x, weights, biases, activations, flags, wanted):
    network, (dx, others) = network_of(x, weights, biases, activations, flags), gradients_of(x, weights, biases, wanted)
    network.run(NETWORK_BACKWARD, wanted, laid_out(x), [*map(laid_out, weights)], [*map(laid_out, biases)], None, laid_out(dy), dx,
                others[:len(weights)], others[len(weights):])
    return dx, others


# >>under PyTorch's dispatcher, whose operators have no optional results

@torch.library.custom_op("gemmepi::network", mutates_args=())
def network_op(x: Tensor, weights: List[Tensor], biases: List[Tensor], activations: str, flags: int) -> Tensor:
    return forward(x, weights, biases, activations, flags)


@network_op.register_fake
def _(x, weights, biases, activations, flags):
    check(x, weights, biases)
    return x.new_empty((*x.shape[:-1], weights[-1].shape[0]))


@torch.library.custom_op("gemmepi::network_backward", mutates_args=())
def backward_op(dy: Tensor, x: Tensor, weights: List[Tensor], biases: List[Tensor], activations: str, flags: int,
                wanted: int) -> List[Tensor]:
    dx, others = backward(dy, x, weights, biases, activations, flags, wanted)
    return [x.new_empty(0) if dx is None else dx, *others]


@backward_op.register_fake
def _(dy, x, weights, biases, activations, flags, wanted):
    dx, others = gradients_of(x, weights, biases, wanted)
    return [x.new_empty(0) if dx is None else dx, *others]


# >>gradients

def keep(ctx, x, weights, biases, activations, flags):
    ctx.count, ctx.rest = len(weights), (activations, flags)
    ctx.save_for_backward(x, *weights, *biases)


def gradients(call, ctx, dy, wants_x, wants_others):
    """dx or None, and a list as long as weights and biases together."""
    x, *others = ctx.saved_tensors
    wanted = (api.NETWORK_DX if wants_x else 0) | (api.NETWORK_DW if any(wants_others) else 0)
    dx, found = call(dy, x, others[:ctx.count], others[ctx.count:], *ctx.rest, wanted)
    found = found or [None] * len(others)
    return dx if wants_x else None, [gradient if is_wanted else None for gradient, is_wanted in zip(found, wants_others)]


def keep_op(ctx, inputs, output):
    keep(ctx, *inputs)


def by_operator(*arguments):
    dx, *others = backward_op(*arguments)
    return dx, others


def backward_of_op(ctx, dy):
    wants_x, wants_weights, wants_biases, *_ = ctx.needs_input_grad
    wants = [*(wants_weights or [False] * ctx.count), *(wants_biases or ())]
    dx, found = gradients(by_operator, ctx, dy, wants_x, wants)
    return dx, found[:ctx.count], found[ctx.count:], None, None


network_op.register_autograd(backward_of_op, setup_context=keep_op)


class Direct(torch.autograd.Function):
    """The same without the dispatcher, which takes longer than the call."""

    @staticmethod
    def forward(ctx, count, activations, flags, x, *tensors):
        weights, biases = tensors[:count], tensors[count:]
        keep(ctx, x, weights, biases, activations, flags)
        return forward(x, weights, biases, activations, flags)

    @staticmethod
    def backward(ctx, dy):
        refuse_second_derivative("network")
        _, _, _, wants_x, *wants = ctx.needs_input_grad
        dx, found = gradients(backward, ctx, dy, wants_x, wants)
        return (None, None, None, dx, *found)


def network(x, weights, biases=None, activation="relu", last="none", *, flags=0):
    """Layers one after another, as torch.nn.Linear has each, with activations between them: x [.., k], weights [n1, k], [n2, n1] and so on, up to
    16, biases [n1], [n2], the result [.., n of the last].

    activation   of the layers before the last: one of linear's, or the text of a formula of v, "d = sin(30 * v)"; a list has one for each
    last         of the last layer
    flags        of gemmepi_network_desc: gemmepi.api.BATCH_INVARIANT and so on

    For backward x, weights and biases are kept, and what is between layers is made again. Texts with operands are gemmepi.formula's.
    """
    weights, biases = list(weights), list(biases) if biases is not None else []
    if not weights or biases and len(biases) != len(weights):
        raise ValueError("there are %d weights and %d biases; accepted are 1 to 16 weights, and as many biases or none" % (len(weights), len(biases)))
    activations = [activation] * (len(weights) - 1) if isinstance(activation, str) else list(activation)
    activations.append(last)
    if len(activations) != len(weights):
        raise ValueError("activation has %d elements and weights %d; accepted is one less" % (len(activations) - 1, len(weights)))
    for name in activations:
        if name not in ACTIVATIONS and "=" not in name:
            raise ValueError("activation is %r; accepted are %s, and the text of a formula" % (name, ", ".join(ACTIVATIONS)))
    activations = BETWEEN.join(activations)
    x, *tensors = autocast(x, *weights, *biases)
    weights, biases = tensors[:len(weights)], tensors[len(weights):]
    if not is_plain((x, *tensors)):
        return network_op(x, weights, biases, activations, flags)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (x, *tensors)):
        return Direct.apply(len(weights), activations, flags, x, *tensors)
    return forward(x, weights, biases, activations, flags)
