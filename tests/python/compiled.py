"""gemmepi.linear and gemmepi.formula where PyTorch traces: torch.compile, export, checkpoints, modules that are saved and loaded. On the host."""
import io
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import gemmepi
from facts import fact, raises, run
from gemmepi import api

torch.manual_seed(13)


class Block(nn.Module):
    def __init__(self, width=6, inner=8):
        super().__init__()
        self.up, self.down, self.gain = nn.Linear(width, inner), nn.Linear(inner, width), nn.Parameter(torch.ones(width))

    def forward(self, x):
        h = gemmepi.linear(x, self.up.weight, self.up.bias, "silu")
        return gemmepi.formula("d = residual + gain * (v + bias)", h, self.down.weight.t(), bias=self.down.bias, gain=self.gain, residual=x)


def reference(block, x):
    return x + block.gain * block.down(F.silu(block.up(x)))


def gradients(block, function, x):
    y = function(x)
    return [y, *torch.autograd.grad((y * y).sum(), [x, *block.parameters()])]


def agree(block, function, x):
    for one, other in zip(gradients(block, function, x), gradients(block, lambda x: reference(block, x), x)):
        assert one.shape == other.shape and torch.allclose(one, other, rtol=1e-5, atol=1e-5), (one, other)


@fact
def a_compiled_module_is_one_graph_with_the_gradients_of_pytorch():
    block = Block()
    for dynamic in (False, True):
        torch._dynamo.reset()
        compiled = torch.compile(block, fullgraph=True, backend="aot_eager", dynamic=dynamic)
        for m in (5, 3, 1):
            agree(block, compiled, torch.randn(m, 6, requires_grad=True))
        with torch.no_grad():
            x = torch.randn(4, 6)
            assert torch.allclose(compiled(x), reference(block, x), atol=1e-5)


@fact
def the_operators_hold_what_pytorch_checks_of_custom_ones():
    x, weight, bias = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 5), (4, 5), (4,)))
    linear, formula = torch.ops.gemmepi.linear.default, torch.ops.gemmepi.formula.default
    transposed = torch.randn(5, 4, dtype=torch.float64).t().requires_grad_()
    torch.library.opcheck(linear, (x, weight, bias, api.SILU, None, api.LINEAR_SAVED))
    torch.library.opcheck(linear, (x, torch.randn(128, 5, dtype=torch.float64), None, api.RELU, None, api.LINEAR_SAVED))  # a mask without gaps
    torch.library.opcheck(linear, (x, transposed, bias, api.SILU | api.GATED, None, api.LINEAR_RECOMPUTE))
    torch.library.opcheck(formula, (x, weight.detach().t().requires_grad_(), [bias], "d = silu(v + bias); ss = row_sum(d)", "bias", [], "d,ss", [0, 0],
                                    "v,bias", 3, 0, [], "", ""))
    torch.library.opcheck(formula, (x, weight.detach().t(), [], "lse = row_logsumexp(v * s)", "s", [2.0], "lse", [0], "v", 1, 0, [], "", ""))


@fact
def by_the_dispatcher_gradients_are_those_of_differences():
    x, weight, bias = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 5), (4, 5), (4,)))
    assert torch.autograd.gradcheck(lambda *all: torch.ops.gemmepi.linear(*all, api.TANH, None, api.LINEAR_SAVED)[0], (x, weight, bias))
    rest = ("d = tanh(v + s * bias)", "bias,s", [0.5], "d", [0], "v,bias", 3, 0, [], "", "")
    for check in torch.autograd.gradcheck, torch.autograd.gradgradcheck:
        assert check(lambda a, b, bias: torch.ops.gemmepi.formula(a, b.t(), [bias], *rest)[0], (x, weight, bias))
    rest = ("d = tanh(v + bias); s = row_sum(v)", "bias", [], "d,s", [0, 0], "v,bias", 3, 0, [], "", "")
    dx, dbias = torch.autograd.grad(torch.ops.gemmepi.formula(x, weight.t(), [bias], *rest)[1].sum(), (x, bias))
    assert torch.allclose(dx, weight.sum(0).expand(3, 5)) and not dbias.any()


@fact
def a_compiled_statistic_without_a_derivative_is_detached_or_refused_in_words():
    x, weight = torch.randn(5, 6, requires_grad=True), torch.randn(6, 4, requires_grad=True)

    def values(detach):
        torch._dynamo.reset()
        d, top = torch.compile(lambda x: detach(*gemmepi.formula("d = silu(v); top = row_max(v)", x, weight, outputs="d, top")),
                               fullgraph=True, backend="aot_eager")(x)
        return d, top, torch.autograd.grad(d.sum(), x)[0]

    d, top, dx = values(lambda d, top: (d, top.detach()))
    expected = F.silu(x @ weight)
    for one, other in ((d, expected), (top, (x @ weight).amax(1, True)), (dx, torch.autograd.grad(expected.sum(), x)[0])):
        assert torch.allclose(one, other, atol=1e-5)
    raises(gemmepi.Error, "row_max, which top is assigned, has no derivative", values, lambda d, top: (d, top))


@fact
def an_exported_module_is_saved_and_loaded():
    block, x = Block().requires_grad_(False), torch.randn(5, 6)
    file = io.BytesIO()
    torch.export.save(torch.export.export(block, (x,)), file)
    file.seek(0)
    assert torch.allclose(torch.export.load(file).module()(x), reference(block, x), atol=1e-5)


@fact
def a_module_that_is_saved_and_loaded_computes_the_same():
    block, other, x, file = Block(), Block(), torch.randn(5, 6), io.BytesIO()
    torch.save(block.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    assert torch.equal(block(x), other(x))


@fact
def autocast_casts_what_products_read():
    block, x = Block(), torch.randn(5, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = block(x)
        compiled = torch.compile(block, fullgraph=True, backend="aot_eager")(x)
        assert gemmepi.linear(x.double(), block.up.weight.double()).dtype == torch.float64
    assert y.dtype == torch.bfloat16 and torch.equal(y, compiled)
    assert (y - reference(block, x)).abs().max() < 0.05
    y.sum().backward()
    assert all(parameter.grad.dtype == torch.float32 for parameter in block.parameters())


@fact
def transforms_of_torch_func_are_refused():
    x, weight = torch.randn(3, 5), torch.randn(4, 5)
    for function in (lambda w: gemmepi.linear(x, w).sum(), lambda w: gemmepi.formula("d = silu(v)", x, w.t()).sum()):
        raises(RuntimeError, "functorch transforms", torch.func.grad(function), weight)


@fact
def checkpoints_compute_forward_once_more():
    block = Block()
    agree(block, lambda x: checkpoint(block, x, use_reentrant=False), torch.randn(5, 6, requires_grad=True))


@fact
def a_step_of_training_makes_the_loss_less():
    block, x, y = Block(), torch.randn(64, 6), torch.randn(64, 6)
    optimizer, losses = torch.optim.SGD(block.parameters(), lr=0.1), []
    for _ in range(20):
        loss = F.mse_loss(block(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


if __name__ == "__main__":
    run(sys.modules[__name__])
