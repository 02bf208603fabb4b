"""gemmepi.linear against PyTorch: values, gradients by differences (in float64) and by autograd, layouts, refusals. On the host."""
import os
import sys
import threading

import torch
from torch.nn import functional as F

import gemmepi
from facts import fact, raises, run
from gemmepi import _tensors as tensors
from gemmepi import api

torch.manual_seed(7)
ACTIVATIONS = {
    "none": lambda v: v, "relu": F.relu, "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"), "gelu_erf": F.gelu, "silu": F.silu,
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "leaky_relu": F.leaky_relu, "elu": F.elu, "squared_relu": lambda v: F.relu(v) ** 2,
    "quick_gelu": lambda v: v * torch.sigmoid(1.702 * v), "softplus": F.softplus, "hardswish": F.hardswish, "mish": F.mish,
    "hardsigmoid": lambda v: (v + 3).clamp(0, 6) / 6}  # PyTorch's own has 1 / 6 in float32


def draw(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_()


def gradients(function, *inputs):
    y = function(*inputs)
    return [y, *torch.autograd.grad(y, inputs, torch.ones_like(y) * 0.5 + y.detach())]


def agree(ours, theirs, *inputs, bound=1e-12, label=""):
    for one, other in zip(gradients(ours, *inputs), gradients(theirs, *[tensor.detach().double().requires_grad_() for tensor in inputs])):
        assert one.shape == other.shape
        most = bound * max([1e-30, *other.abs().flatten().tolist()])
        assert ((one.double() - other).abs() <= most).all(), "%s, off by %g, %g is accepted" % (label, (one.double() - other).abs().max(), most)


@fact
def values_and_gradients_of_every_activation_are_pytorchs():
    x, weight, bias = draw(5, 7), draw(9, 7), draw(9)
    for name, function in ACTIVATIONS.items():
        for again in (False, True):
            agree(lambda x, w, b: gemmepi.linear(x, w, b, name, recompute=again), lambda x, w, b: function(F.linear(x, w, b)), x, weight, bias,
                  label=name)


@fact
def gradients_are_those_of_differences():
    for shape, n in (((5, 7), 6), ((2, 1, 3), 4), ((1,), 2)):
        x, weight, bias = draw(*shape), draw(n, shape[-1]), draw(n)
        for options in ({}, {"activation": "silu"}, {"activation": "gelu_erf", "recompute": True}, {"activation": "tanh", "gated": True},
                        {"gated": True, "activation": "sigmoid", "gate_first": True}, {"activation": "elu", "parameter": 0.7}):
            assert torch.autograd.gradcheck(lambda *all: gemmepi.linear(*all, **options), (x, weight, bias))
            assert torch.autograd.gradcheck(lambda x, w: gemmepi.linear(x, w, **options), (x, weight))


@fact
def gates_are_the_halves_of_the_columns():
    x, weight, bias = draw(5, 7), draw(6, 7), draw(6)

    def theirs(x, w, b, is_first):
        value, gate = F.linear(x, w, b).chunk(2, -1)
        return gate * F.silu(value) if is_first else value * F.silu(gate)

    for first in (False, True):
        agree(lambda x, w, b: gemmepi.linear(x, w, b, "silu", gated=True, gate_first=first), lambda x, w, b: theirs(x, w, b, first), x, weight, bias)


@fact
def sixteen_bits_and_float32_agree_within_their_roundings():
    for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 3e-3)):
        for name in ("none", "relu", "silu"):
            inputs = [draw(33, 17, dtype=dtype), draw(21, 17, dtype=dtype), draw(21, dtype=dtype)]
            agree(lambda x, w, b: gemmepi.linear(x, w, b, name), lambda x, w, b: ACTIVATIONS[name](F.linear(x, w, b)), *inputs, bound=bound)
            assert gemmepi.linear(*inputs, name).dtype == dtype


@fact
def tensors_of_any_strides_are_accepted():
    base, wide = draw(6, 20), draw(30, 12)
    views = [base[:, ::2], base[:, 3:13], base.t()[:10, :].t(), base[::2, :10].expand(2, 3, 10), wide.view(6, 5, 12).transpose(0, 1)[..., :10],
             wide[:, :10].reshape(5, 6, 10)]
    weights = [draw(8, 10), draw(10, 8).t(), draw(8, 20)[:, ::2], draw(8, 13)[:, 2:12], draw(1, 10).expand(8, 10)]
    for x in views:
        for weight in weights:
            x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
            agree(lambda x, w: gemmepi.linear(x, w, None, "silu"), lambda x, w: F.silu(F.linear(x, w)), x, weight)
            y = gemmepi.linear(x, weight, draw(16)[::2].detach())
            y.backward(torch.ones((), dtype=y.dtype).expand(y.shape))


@fact
def gradients_that_are_not_wanted_are_none():
    x, weight, bias = draw(5, 7), draw(9, 7), draw(9)
    for wanted in range(1, 8):
        for options in ({}, {"activation": "relu"}, {"activation": "silu", "recompute": True}):
            inputs = [tensor.detach().requires_grad_(bool(wanted >> i & 1)) for i, tensor in enumerate((x, weight, bias))]
            gemmepi.linear(*inputs, **options).sum().backward()
            act = ACTIVATIONS[options.get("activation", "none")]
            expected = [tensor.detach().clone().requires_grad_() for tensor in (x, weight, bias)]
            act(F.linear(*expected)).sum().backward()
            for tensor, other in zip(inputs, expected):
                assert (tensor.grad is None) != tensor.requires_grad
                assert tensor.grad is None or torch.allclose(tensor.grad, other.grad)


@fact
def what_backward_does_not_read_is_not_kept():
    x, weight = draw(64, 64), draw(64, 64).detach()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.untyped_storage().nbytes()) or tensor, lambda tensor: tensor):
        gemmepi.linear(x, weight)
    assert sum(kept) < 8 * 64 * 64 + 64, kept  # the weight alone


@fact
def empty_tensors_are_products_too():
    for m, n, k in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
        for name in ("none", "relu", "silu"):
            agree(lambda x, w, b: gemmepi.linear(x, w, b, name), lambda x, w, b: ACTIVATIONS[name](F.linear(x, w, b)), draw(m, k), draw(n, k), draw(n))


@fact
def without_gradients_nothing_is_recorded():
    x, weight = draw(3, 4), draw(5, 4)
    with torch.no_grad():
        assert gemmepi.linear(x, weight, None, "silu").grad_fn is None
    with torch.inference_mode():
        assert gemmepi.linear(x, weight, None, "silu").is_inference()


@fact
def a_second_derivative_is_refused():
    x = draw(3, 4)
    y = gemmepi.linear(x, draw(5, 4), None, "silu")
    raises(RuntimeError, "gemmepi.linear has no second derivative", torch.autograd.grad, y.sum(), x, create_graph=True)


@fact
def what_does_not_go_together_is_refused_in_words():
    x, weight = draw(3, 4), draw(5, 4)
    raises(ValueError, "x has the shape [3, 4] and weight [5, 3]", gemmepi.linear, x, draw(5, 3))
    raises(ValueError, "bias has the shape [4]; accepted is [5]", gemmepi.linear, x, weight, draw(4))
    raises(TypeError, "x is of torch.float64, weight of torch.float32", gemmepi.linear, x, weight.float())
    raises(TypeError, "torch.int32", gemmepi.linear, torch.ones(3, 4, dtype=torch.int32), torch.ones(5, 4, dtype=torch.int32))
    raises(ValueError, "activation is 'gelu'; accepted are none, relu", gemmepi.linear, x, weight, None, "gelu")
    raises(ValueError, "weight has 5 rows; with gated", gemmepi.linear, x, weight, None, "silu", gated=True)
    raises(gemmepi.Error, "desc.activation_parameter", gemmepi.linear, x, weight, None, "silu", parameter=0.5)
    raises(ValueError, "weight is on meta and the first tensor on cpu", gemmepi.linear, x, weight.to("meta"))


@fact
def threads_and_children_of_a_fork_may_call_it():
    x, weight = draw(5, 7).detach(), draw(9, 7).detach()
    expected, wrong = F.silu(F.linear(x, weight)), []

    def work():
        for _ in range(50):
            if not torch.allclose(gemmepi.linear(x, weight, None, "silu"), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            work()
            ended = len(wrong)
        finally:
            os._exit(ended)
    assert os.waitpid(child, 0)[1] == 0


@fact
def a_row_has_the_same_bits_in_every_batch_where_it_is_asked_for():
    x, weight = draw(33, 17, dtype=torch.float32).detach(), draw(9, 17, dtype=torch.float32).detach()
    whole = gemmepi.linear(x, weight, None, "silu", flags=api.BATCH_INVARIANT)
    assert torch.equal(whole[5:6], gemmepi.linear(x[5:6], weight, None, "silu", flags=api.BATCH_INVARIANT))


@fact
def more_problems_than_are_kept_run():
    before, tensors.KEPT = tensors.KEPT, 4
    try:
        for m in range(1, 12):
            x, weight = draw(m, 3), draw(2, 3)
            agree(lambda x, w: gemmepi.linear(x, w, None, "tanh"), lambda x, w: torch.tanh(F.linear(x, w)), x, weight)
        assert len(tensors._kept) <= 4
    finally:
        tensors.KEPT = before


if __name__ == "__main__":
    run(sys.modules[__name__])
