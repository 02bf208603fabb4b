"""gemmepi.network against PyTorch: values, gradients by differences and by autograd, what is wanted of them, layouts, refusals. On the host."""
import sys

import torch
from torch.nn import functional as F

import gemmepi
from facts import fact, raises, run

torch.manual_seed(23)
WIDTHS = (5, 8, 7, 3)


def draw(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_()


def drawn(dtype=torch.float64):
    """Weights and biases."""
    return [draw(n, k, dtype=dtype) for k, n in zip(WIDTHS, WIDTHS[1:])], [draw(n, dtype=dtype) for n in WIDTHS[1:]]


def theirs(x, weights, biases, functions):
    for weight, bias, function in zip(weights, biases or [None] * len(weights), functions):
        x = function(F.linear(x, weight, bias))
    return x


def agree(x, weights, biases, functions, bound=1e-12, **options):
    inputs = [x, *weights, *(biases or ())]
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    count = 1 + len(weights)
    y, expected = gemmepi.network(x, weights, biases, **options), theirs(exact[0], exact[1:count], exact[count:], functions)
    dy = torch.randn_like(expected).to(y.dtype)
    found = [y, *torch.autograd.grad(y, inputs, dy)]
    for one, other in zip(found, [expected, *torch.autograd.grad(expected, exact, dy.double())]):
        assert one.shape == other.shape and one.dtype == x.dtype
        assert ((one.double() - other).abs() <= bound * max([1e-30, *other.abs().flatten().tolist()])).all(), (one, other)


def same(v):
    return v


@fact
def values_and_gradients_are_pytorchs():
    weights, biases = drawn()
    for x in draw(6, 5), draw(2, 3, 5), draw(5), draw(0, 5):
        agree(x, weights, biases, [F.relu, F.relu, same])
        agree(x, weights, None, [F.silu, F.silu, torch.tanh], activation="silu", last="tanh")
    agree(draw(6, 5), weights[:1], biases[:1], [same])


@fact
def activations_are_names_and_texts_one_for_each_layer():
    weights, biases = drawn()
    agree(draw(6, 5), weights, biases, [lambda v: torch.sin(3 * v), F.mish, lambda v: torch.exp(-v * v)],
          activation=["d = sin(3 * v)", "mish"], last="d = exp(-v * v)")


@fact
def gradients_are_those_of_differences():
    weights, biases = drawn()
    for options in {"activation": "gelu_erf"}, {"activation": "d = atan(v) * v", "last": "sigmoid"}:
        assert torch.autograd.gradcheck(lambda x, *others: gemmepi.network(x, others[:3], others[3:], **options), (draw(4, 5), *weights, *biases))


@fact
def sixteen_bits_and_float32_agree_within_their_roundings():
    for dtype, bound in ((torch.float32, 1e-5), (torch.float16, 5e-3), (torch.bfloat16, 4e-2)):
        weights, biases = drawn(dtype)
        agree(draw(33, 5, dtype=dtype), weights, biases, [F.silu, F.silu, same], bound, activation="silu")


@fact
def tensors_of_any_strides_are_accepted():
    weights, biases = drawn()
    weights = [weight.detach().t().contiguous().t().requires_grad_() for weight in weights]
    biases[0] = draw(9)[1:].detach().requires_grad_()  # begins at 8 of 16 bytes
    for x in draw(6, 9)[:, 1:6], draw(5, 6).t(), draw(1, 5).expand(4, 5):
        agree(x.detach().requires_grad_(), weights, biases, [F.relu, F.relu, same])


@fact
def gradients_that_are_not_wanted_are_none():
    weights, biases = drawn()
    for wanted in range(1, 8):
        x, *others = [tensor.detach().requires_grad_(bool(wanted >> i & 1)) for i, tensor in enumerate((draw(4, 5), weights[0], biases[2]))]
        of_weights, of_biases = [others[0], *[weight.detach() for weight in weights[1:]]], [*[bias.detach() for bias in biases[:2]], others[1]]
        gemmepi.network(x, of_weights, of_biases, "tanh").sum().backward()
        exact = [tensor.detach().clone().requires_grad_() for tensor in (x, *others)]
        theirs(exact[0], [exact[1], *of_weights[1:]], [*of_biases[:2], exact[2]], [torch.tanh, torch.tanh, same]).sum().backward()
        for tensor, other in zip((x, *others), exact):
            assert (tensor.grad is None) != tensor.requires_grad
            assert tensor.grad is None or torch.allclose(tensor.grad, other.grad)


@fact
def what_is_between_layers_is_not_kept():
    weights, biases = drawn()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.shape) or tensor, lambda tensor: tensor):
        gemmepi.network(draw(64, 5), weights, biases)
    assert kept == [tensor.shape for tensor in (draw(64, 5), *weights, *biases)], kept
    with torch.no_grad():
        assert gemmepi.network(draw(4, 5), weights, biases).grad_fn is None


@fact
def the_operator_holds_what_pytorch_checks_of_custom_ones():
    weights, biases = drawn()
    operator, activations = torch.ops.gemmepi.network.default, "silu\x1ed = sin(v)\x1enone"
    torch.library.opcheck(operator, (draw(4, 5), weights, biases, activations, 0))
    torch.library.opcheck(operator, (draw(4, 5), [weight.detach() for weight in weights], [], activations, 0))
    compiled = torch.compile(lambda x: gemmepi.network(x, weights, biases, "tanh"), fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in 4, 3:
        x = draw(rows, 5)
        for one, other in zip(*[torch.autograd.grad(y.sum(), (x, *weights, *biases))
                                for y in (compiled(x), theirs(x, weights, biases, [torch.tanh, torch.tanh, same]))]):
            assert torch.allclose(one, other)


@fact
def autocast_casts_what_it_reads():
    weights, biases = drawn(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert gemmepi.network(draw(4, 5, dtype=torch.float32), weights, biases).dtype == torch.bfloat16


@fact
def what_does_not_go_together_is_refused_in_words():
    (weights, biases), x = drawn(), draw(4, 5)
    raises(ValueError, "weights[1] has the shape [7, 8]; accepted is [n, 5]", gemmepi.network, x, [draw(5, 5), weights[1]])
    raises(ValueError, "biases[2] has the shape [4]; accepted is [3]", gemmepi.network, x, weights, [*biases[:2], draw(4)])
    raises(ValueError, "there are 3 weights and 2 biases; accepted are", gemmepi.network, x, weights, biases[:2])
    raises(ValueError, "there are 0 weights", gemmepi.network, x, [])
    raises(ValueError, "activation has 1 elements and weights 3", gemmepi.network, x, weights, biases, ["relu"])
    raises(ValueError, "activation is 'gelu'; accepted are none, relu", gemmepi.network, x, weights, biases, "gelu")
    raises(TypeError, "weights[0] is of torch.float32 and x of torch.float64", gemmepi.network, x, [weights[0].float()])
    raises(ValueError, "biases[0] is on meta", gemmepi.network, x, weights, [biases[0].to("meta"), *biases[1:]])
    raises(gemmepi.Error, "desc.layer_count is 17; accepted are 1 to 16", gemmepi.network, x, [draw(5, 5)] * 17)
    raises(gemmepi.Error, "beta", gemmepi.network, x, weights, biases, "d = v * beta")
    y = gemmepi.network(x, weights, biases)
    raises(RuntimeError, "gemmepi.network has no second derivative", torch.autograd.grad, y.sum(), x, create_graph=True)


if __name__ == "__main__":
    run(sys.modules[__name__])
