"""gemmepi.linear, gemmepi.network and gemmepi.formula on a GPU: values and gradients, PyTorch's streams, CUDA graphs, torch.compile, and what a call
takes of the host. Skipped where PyTorch has no GPU."""
import sys
import time

import torch
from torch.nn import functional as F

import gemmepi
from facts import fact, run
from gemmepi import api

BOUNDS = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3, torch.float64: 1e-12}


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, device="cuda").to(dtype).requires_grad_()


def near(one, other, bound):
    other = other.to(one.device)
    assert one.shape == other.shape
    assert (one.double() - other).abs().max() <= bound * other.abs().max(), (one.double() - other).abs().max() / other.abs().max()


def agree(ours, theirs, inputs, bound):
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    y, expected = ours(*inputs), theirs(*exact)
    dy = torch.randn_like(y)
    near(y, expected, bound)
    for one, other in zip(torch.autograd.grad(y, inputs, dy), torch.autograd.grad(expected, exact, dy.double())):
        near(one, other, bound)


def layer(x, weight, bias):
    return gemmepi.linear(x, weight, bias, "silu")


def layer_of_pytorch(x, weight, bias):
    return F.silu(F.linear(x, weight, bias))


def gate(a, b, bias):
    return gemmepi.formula("p = v + bias; d = left(p) * silu(right(p))", a, b, bias=bias)


def gate_of_pytorch(a, b, bias):
    value, gate = (a @ b + bias).chunk(2, -1)
    return value * F.silu(gate)


@fact
def values_and_gradients_are_pytorchs():
    torch.backends.cuda.matmul.allow_tf32 = False
    for dtype, bound in BOUNDS.items():
        for m, n, k in ((256, 384, 128), (33, 22, 17), (1, 64, 64)):
            agree(layer, layer_of_pytorch, [draw(m, k, dtype=dtype), draw(n, k, dtype=dtype), draw(n, dtype=dtype)], bound)
            agree(gate, gate_of_pytorch, [draw(2, m, k, dtype=dtype), draw(k, n, dtype=dtype), draw(n, dtype=dtype)], bound)


@fact
def what_texts_make_of_weights_of_4_bits_is_pytorchs():
    for m, n, k in ((1, 256, 512), (33, 64, 256), (300, 384, 1024)):
        stored, scale = torch.randint(256, (n, k // 2), dtype=torch.uint8, device="cuda"), torch.rand(n, k // 128, device="cuda").half().requires_grad_()
        numbers = torch.stack((stored & 15, stored >> 4), -1).view(n, k).t().double() - 8
        agree(lambda x, bias, s: gemmepi.formula("d = silu(v + bias)", x, stored.t(), bias=bias, b_formula="(b - 8) * s", s=s.t(), blocks={"s": (128, 1)},
                                                 dtypes={"b": api.U4}),
              lambda x, bias, s: F.silu(x @ (numbers * s.t().repeat_interleave(128, 0)) + bias), [draw(m, k), draw(n), scale], 2e-2)
        gain, fixed = draw(k), draw(m, 1).detach()
        agree(lambda a, b, gain: gemmepi.formula("d = v", a, b, a_formula="a * rstd * gain", rstd=fixed, gain=gain),
              lambda a, b, gain: (a * fixed.double() * gain) @ b, [draw(m, k), draw(k, n), gain], 2e-2)
        rows = max(m, 32)  # of one row rstd's gradient is one sum, which may be near zero by itself
        agree(lambda a, b, rstd, gain: gemmepi.formula("d = v", a, b, a_formula="a * rstd * gain", rstd=rstd, gain=gain),
              lambda a, b, rstd, gain: (a * rstd * gain) @ b, [draw(rows, k), draw(k, n), draw(rows, 1), gain], 2e-2)


@fact
def networks_are_pytorchs_in_the_kernel_and_by_layers():
    torch.backends.cuda.matmul.allow_tf32 = False
    for dtype, bound in BOUNDS.items():
        for rows, widths in ((1000, (64, 64, 64, 16)), (33, (5, 40, 3)), (300, (64, 200, 64))):
            inputs = [draw(rows, widths[0], dtype=dtype), *[draw(n, k, dtype=dtype) for k, n in zip(widths, widths[1:])],
                      *[draw(n, dtype=dtype) for n in widths[1:]]]
            for tensor in inputs[1:]:
                tensor.data /= 8
            count = len(widths)

            def of_pytorch(x, *others):
                for i in range(count - 1):
                    v = F.linear(x, others[i], others[count - 1 + i])
                    x = F.silu(v) if i < count - 2 else v
                return x

            agree(lambda x, *others: gemmepi.network(x, others[:count - 1], others[count - 1:], "silu"), of_pytorch, inputs, 3 * bound)


@fact
def gradients_of_gradients_are_pytorchs():
    torch.backends.cuda.matmul.allow_tf32 = False
    for dtype, bound in (torch.float32, 1e-4), (torch.bfloat16, 5e-2), (torch.float64, 1e-11):
        inputs = [draw(2, 33, 17, dtype=dtype), draw(17, 24, dtype=dtype), draw(2, 1, 24, dtype=dtype)]
        exact = [tensor.detach().double().requires_grad_() for tensor in inputs]

        def penalty(function, a, b, bias):
            da, = torch.autograd.grad((function(a, b, bias) ** 2).sum(), a, create_graph=True)
            return torch.autograd.grad((da.double() ** 2).sum(), (a, b, bias))

        for one, other in zip(penalty(lambda a, b, bias: gemmepi.formula("d = tanh(v + bias)", a, b, bias=bias), *inputs),
                              penalty(lambda a, b, bias: torch.tanh(a @ b + bias), *exact)):
            near(one, other, bound)


@fact
def calls_are_in_the_order_of_the_current_stream():
    weight, bias, side = draw(512, 256).detach(), draw(512).detach(), torch.cuda.Stream()
    layer(torch.zeros(64, 256, dtype=torch.bfloat16, device="cuda"), weight, bias)
    with torch.cuda.stream(side):
        x = torch.zeros(64, 256, dtype=torch.bfloat16, device="cuda")
        torch.cuda._sleep(100_000_000)
        x.fill_(1)
        y = layer(x, weight, bias)
        x.zero_()
    side.synchronize()
    near(y, layer_of_pytorch(torch.ones_like(x).double(), weight.double(), bias.double()), 2e-2)


@fact
def a_graph_holds_forward_and_backward():
    for function, expected, inputs in ((layer, layer_of_pytorch, [draw(128, 256), draw(512, 256), draw(512)]),
                                       (gate, gate_of_pytorch, [draw(128, 256), draw(256, 512), draw(512)])):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                y = function(*inputs)
                torch.autograd.grad(y, inputs, torch.ones_like(y))
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = function(*inputs)
            found = torch.autograd.grad(y, inputs, torch.ones_like(y))
        for _ in range(3):
            with torch.no_grad():
                inputs[0].copy_(torch.randn_like(inputs[0]))
            graph.replay()
            exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
            right = expected(*exact)
            near(y, right, 2e-2)
            for one, other in zip(found, torch.autograd.grad(right, exact, torch.ones_like(right))):
                near(one, other, 2e-2)


@fact
def graphs_on_two_streams_may_run_at_once():
    graphs = []
    for i in range(2):
        inputs = [draw(256, 512).detach(), draw(1024, 512).detach(), draw(1024).detach()]
        gate(inputs[0], inputs[1].t(), inputs[2])  # plans, which nothing may do while a stream is captured
        torch.cuda.synchronize()
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.graph(graph, stream=stream):
            y = gate(inputs[0], inputs[1].t(), inputs[2])
        graphs.append((graph, stream, inputs, y))
    for _ in range(20):
        for graph, stream, _, _ in graphs:
            with torch.cuda.stream(stream):
                graph.replay()
    torch.cuda.synchronize()
    for _, _, inputs, y in graphs:
        near(y, gate_of_pytorch(inputs[0].double(), inputs[1].t().double(), inputs[2].double()), 2e-2)


@fact
def a_compiled_function_is_one_graph():
    inputs = [draw(128, 256), draw(512, 256), draw(512)]
    agree(torch.compile(layer, fullgraph=True), layer_of_pytorch, inputs, 2e-2)
    reduced = torch.compile(layer, fullgraph=True, mode="reduce-overhead")
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        agree(reduced, layer_of_pytorch, inputs, 2e-2)


@fact
def another_device_has_a_context_of_its_own():
    last = torch.cuda.device_count() - 1
    inputs = [tensor.detach().to("cuda:%d" % last).requires_grad_() for tensor in (draw(64, 128), draw(256, 128), draw(256))]
    agree(layer, layer_of_pytorch, inputs, 2e-2)


@fact
def tf32_is_what_pytorch_is_told():
    a, b = draw(256, 256, dtype=torch.float32).detach(), draw(256, 256, dtype=torch.float32).detach()
    exact, found = a.double() @ b.double(), {}
    for allowed in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = allowed
        found[allowed] = (gemmepi.formula("d = v", a, b).double() - exact).abs().max() / exact.abs().max()
    torch.backends.cuda.matmul.allow_tf32 = False
    assert found[False] < 1e-6 < found[True] < 1e-2, found


@fact
def what_the_device_finds_wrong_is_raised():
    a = draw(64, 64).detach()
    try:
        gemmepi.formula("d = v + x", a, a, x=torch.ones(64, dtype=torch.bfloat16))
    except ValueError as error:
        assert "x is on cpu" in str(error)
    else:
        raise AssertionError("an operand on the host is accepted")


def microseconds(function, count=400):
    """Of the host, of the best of ten runs."""
    best = float("inf")
    for _ in range(10):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, (time.perf_counter() - started) / count * 1e6)
    torch.cuda.synchronize()
    return best


def print_times():
    """What a call takes of the host: small problems, which the GPU ends sooner than the host launches them."""
    x, weight, bias = draw(16, 64), draw(64, 64), draw(64)
    a, b = x.detach(), weight.detach().t()
    with torch.no_grad():
        ours, theirs = microseconds(lambda: layer(x, weight, bias)), microseconds(lambda: F.linear(x, weight, bias))
        formula = microseconds(lambda: gemmepi.formula("d = silu(v + bias)", a, b, bias=bias))
        operator = microseconds(lambda: torch.ops.gemmepi.linear(x, weight, bias, api.SILU, None, 0))
    print("  us of the host a call: linear %.1f, formula %.1f, linear by the dispatcher %.1f; F.linear %.1f" % (ours, formula, operator, theirs))
    ours, theirs = microseconds(lambda: layer(x, weight, bias)), microseconds(lambda: F.linear(x, weight, bias))
    print("  us of the host a call with gradients recorded: linear %.1f, F.linear %.1f" % (ours, theirs))


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("skip the Python package on a GPU: PyTorch has none here\n0 passed, 0 failed, 1 skipped")
        sys.exit(0)
    torch.manual_seed(17)
    print_times()
    run(sys.modules[__name__])
