"""gemmepi.formula against PyTorch: values, gradients by differences (in float64), batches, outputs of every kind, refusals. On the host."""
import sys

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional as F

import gemmepi
from facts import fact, raises, run
from gemmepi import formula

torch.manual_seed(11)


def draw(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_()


A, B = draw(3, 5), draw(5, 4)
V = (A @ B).detach()


def close(one, other):
    assert one.shape == other.shape and torch.allclose(one.double(), other.double()), (one, other)


@fact
def a_formula_is_what_pytorch_computes_of_the_product():
    bias, up = draw(4), draw(3, 4)
    close(formula("d = silu(v + bias) * up", A, B, bias=bias, up=up), F.silu(V + bias) * up)
    close(formula("d = sin(scale * v)", A, B, scale=30), torch.sin(30 * V))
    close(formula("d = left(v) * silu(right(v))", A, B), V[:, :2] * F.silu(V[:, 2:]))
    close(formula("d = part(v, 0, 4) * silu(part(v, 3, 4))", A, B), V[:, :1] * F.silu(V[:, 3:]))
    close(formula("d = pair(v, -v)", A, B), torch.cat([V, -V], 1))
    close(formula("d = parts(v, 2 * v, up)", A, B, up=up), torch.cat([V, 2 * V, up], 1))
    close(formula("d = column > row ? -1 : v", A, B), torch.where(torch.arange(4) > torch.arange(3)[:, None], -1.0, V))


@fact
def outputs_of_every_kind_have_the_shapes_of_operands():
    text = ("d = v; r = row_sum(v); c = column_sum(v * v); t = all_sum(v); at = row_argmax(v); down = column_argmax(v); twice = pair(v, v); "
            "low = row_min(v); least = column_min(v)")
    with torch.no_grad():
        d, r, c, t, at, down, twice, low, least = formula(text, A, B, outputs="d, r, c, t, at, down, twice, low, least")
    close(d, V), close(r, V.sum(1, True)), close(c, (V * V).sum(0)), close(t, V.sum()), close(twice, torch.cat([V, V], 1))
    close(low, V.amin(1, True)), close(least, V.amin(0))
    close(at, V.argmax(1, True)), close(down, V.argmax(0))
    assert at.dtype == torch.int32 and r.dtype == torch.float64
    batch = torch.randn(2, 3, 5, dtype=torch.float64)
    r, c, t, down = formula("r = row_sum(v); c = column_max(v); t = all_sum(v); down = column_argmax(v)", batch, B.detach(), outputs=["r", "c", "t", "down"])
    v = batch @ B
    close(r, v.sum(2, True)), close(c, v.amax((0, 1))), close(t, v.sum()), close(down, v.argmax(1, True))
    again = formula("d = v * r", batch, B.detach(), r=r)  # an output is an operand
    close(again, v * r)


@fact
def gradients_are_those_of_differences():
    bias, up, wide = draw(4), draw(3, 4), draw(8)
    label = torch.tensor([[1], [0], [3]])
    for text, outputs, operands in (
            ("d = silu(v + bias) * up", "d", {"bias": bias, "up": up}),
            ("d = silu(v + bias) * up; ss = row_sum(d * d)", "d, ss", {"bias": bias, "up": up}),
            ("x = v + bias; d = x; ss = row_sum(x * x); // kept", "d, ss", {"bias": bias}),
            ("d = v + bias", "d", {"bias": bias}),
            ("d = left(v) * silu(right(v)) * s + left(up)", "d", {"up": up, "s": 1.5}),
            ("d = part(v, 0, 4) * silu(part(v, 3, 4)) * s + part(up, 1, 4)", "d", {"up": up, "s": 1.5}),
            ("d = pair(v, v * v) * w", "d", {"w": wide}),
            ("d = parts(v * v, up, v) * w", "d", {"up": up, "w": draw(12)}),
            ("d = v * d_x + dy_x; d_sum = row_sum(d * dx)", "d, d_sum", {"d_x": bias, "dy_x": up, "dx": draw(3, 1)}),
            ("dy_y = silu(v) * dy", "dy_y", {"dy": bias}),
            ("d = v * rstd * gain", "d", {"rstd": draw(3, 1), "gain": bias}),
            ("d = v * sigmoid(beta * v)", "d", {"beta": draw()}),
            ("lse = row_logsumexp(v); hit = row_sum(column == label ? v : 0)", "lse, hit", {"label": label}),
            ("c = column_sum(v * v); t = all_sum(v * w)", "c, t", {"w": draw(1, 4)})):
        names = [name for name, value in operands.items() if torch.is_tensor(value) and value.requires_grad]

        def call(a, b, *tensors):
            return formula(text, a, b, outputs=outputs, **{**operands, **dict(zip(names, tensors))})

        assert gradcheck(call, (A, B, *[operands[name] for name in names])), text


@fact
def gradients_in_batches_are_those_of_differences():
    for a, b in ((draw(2, 3, 5), draw(2, 5, 4)), (draw(2, 3, 5), draw(5, 4)), (draw(3, 5), draw(2, 5, 4)), (draw(2, 1, 3, 5), draw(5, 4))):
        for shape in ((4,), (1, 4), (2, 1, 4), (1, 1), (3, 1), (2, 3, 1), (2, 3, 4), (3, 4), (), (2, 1, 1)):
            if len(shape) == 3 and a.dim() == 4:
                shape = (2, 1, *shape[1:])
            assert gradcheck(lambda a, b, z: formula("d = silu(v * z) + z", a, b, z=z), (a, b, draw(*shape))), shape


@fact
def gradients_of_gradients_are_those_of_differences():
    bias, up, beta, gain, label = draw(4), draw(3, 4), draw(), draw(3, 1), torch.tensor([[1], [0], [3]])
    for text, outputs, operands in (
            ("d = silu(v + bias) * up", "d", {"bias": bias, "up": up}),
            ("d = tanh(v * beta); ss = row_sum(d * d * gain)", "d, ss", {"beta": beta, "gain": gain}),
            ("d = s * v + bias", "d", {"bias": bias, "s": 1.5}),
            ("d = left(v) * silu(right(v)) * s", "d", {"s": 1.5}),
            ("d = parts(v * v, up, v) * w", "d", {"up": up, "w": draw(12)}),
            ("d = v * sigmoid(beta * v)", "d", {"beta": beta}),
            ("lse = row_logsumexp(v + bias); hit = row_sum(column == label ? v : 0)", "lse, hit", {"label": label, "bias": bias}),
            ("c = column_sum(v * v * up); t = all_sum(v * w * v)", "c, t", {"w": draw(1, 4), "up": up}),
            ("v_ = v * gain; d = sin(30 * v_)", "d", {"gain": gain}),
            ("kept_v = v * bias; d = exp(kept_v) // two of them", "d", {"bias": bias})):
        names = [name for name, value in operands.items() if torch.is_tensor(value) and value.requires_grad]

        def call(a, b, *tensors):
            return formula(text, a, b, outputs=outputs, **{**operands, **dict(zip(names, tensors))})

        inputs = [operands[name] for name in names]
        assert gradgradcheck(call, (A, B, *inputs)), text
        assert gradgradcheck(lambda a, *tensors: call(a, B.detach(), *tensors), (A, *inputs)), text
        assert gradgradcheck(lambda b: call(A.detach(), b, *[tensor.detach() for tensor in inputs]), (B,)), text


@fact
def gradients_of_gradients_in_batches_are_those_of_differences():
    for a, b in ((draw(2, 3, 2), draw(2, 2, 4)), (draw(2, 3, 2), draw(2, 4)), (draw(3, 2), draw(2, 2, 4)), (draw(2, 1, 3, 2), draw(2, 4))):
        for shape in ((4,), (2, 1, 4), (2, 3, 1), (2, 3, 4), (3, 4), (), (2, 1, 1)):
            if len(shape) == 3 and a.dim() == 4:
                shape = (2, 1, *shape[1:])
            assert gradgradcheck(lambda a, b, z: formula("d = silu(v * z) + z", a, b, z=z), (a, b, draw(*shape))), shape
    for m, n, k in ((1, 1, 1), (1, 4, 3), (4, 1, 3), (3, 4, 0)):
        inputs = draw(m, k), draw(k, n), draw(n)
        assert gradgradcheck(lambda a, b, z: formula("d = tanh(v + z) * v; s = row_sum(d)", a, b, z=z, outputs="d, s"), inputs), (m, n, k)


@fact
def a_penalty_of_the_gradient_has_the_gradient_of_pytorch():
    for dtype, bound in (torch.float64, 1e-12), (torch.float32, 1e-4), (torch.bfloat16, 5e-2):
        inputs = [draw(2, 9, 5, dtype=dtype), draw(5, 7, dtype=dtype), draw(2, 1, 7, dtype=dtype)]
        exact = [tensor.detach().double().requires_grad_() for tensor in inputs]

        def penalty(function, a, b, bias):
            y = function(a, b, bias)
            da, = torch.autograd.grad((y.double() * y.double()).sum(), a, create_graph=True)
            return torch.autograd.grad((da.double() ** 2).sum() + y.double().sum(), (a, b, bias))

        ours = penalty(lambda a, b, bias: formula("d = tanh(v + bias)", a, b, bias=bias), *inputs)
        theirs = penalty(lambda a, b, bias: torch.tanh(a @ b + bias), *exact)
        for one, other, tensor in zip(ours, theirs, inputs):
            assert one.dtype == dtype and one.shape == tensor.shape
            assert (one.double() - other).abs().max() <= bound * other.abs().max(), (dtype, (one.double() - other).abs().max() / other.abs().max())


@fact
def where_a_derivative_is_0_so_is_the_next():
    y = formula("d = floor(3 * v)", A, B)
    da, = torch.autograd.grad(y.sum(), A, create_graph=True)
    assert da.shape == A.shape and not da.any()
    seed, dy = torch.tensor(42), torch.randn(3, 4, dtype=torch.float64)
    y = formula("d = uniform(seed, 0) >= p ? v * v / (1 - p) : 0", A, B, seed=seed, p=0.5)
    mask = (y != 0) / 0.5
    ours, theirs = ([torch.autograd.grad((torch.autograd.grad(one, A, dy, create_graph=True)[0] ** 2).sum(), (A, B))] for one in (y, (A @ B) ** 2 * mask))
    close(ours[0][0], theirs[0][0]), close(ours[0][1], theirs[0][1])


@fact
def a_third_derivative_is_that_of_pytorch():
    x, b, bias = draw(6, 1), draw(1, 3), draw(3)

    def third(function):
        y = function(x, b, bias)
        for _ in range(3):
            y, = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.autograd.grad(y.sum(), (x, b, bias))

    for one, other in zip(third(lambda x, b, bias: formula("d = sin(v + bias) * v", x, b, bias=bias)),
                          third(lambda x, b, bias: torch.sin(x @ b + bias) * (x @ b))):
        close(one, other)


@fact
def operands_of_some_leading_axes_are_broadcast_and_their_gradients_added_up():
    a, b = draw(2, 3, 2, 3), draw(3, 4)
    for shape in ((1, 3, 1, 4), (2, 1, 2, 1), (3, 2, 4), (3, 1, 1), (2, 1, 1, 1), (1, 3, 2, 4)):
        z = draw(*shape)
        close(formula("d = tanh(v * z) + z", a, b, z=z), torch.tanh(a @ b * z) + z)
        assert gradcheck(lambda a, b, z: formula("d = tanh(v * z) + z", a, b, z=z), (a, b, z)), shape


@fact
def dropout_has_the_same_mask_in_both_directions():
    seed = torch.tensor(42)
    for a in A, draw(2, 3, 5):
        y = formula("d = uniform(seed, 0) >= p ? v / (1 - p) : 0", a, B, seed=seed, p=0.5)
        dy = torch.randn_like(y)
        da, = torch.autograd.grad(y, a, dy)
        close(da, (dy * (y != 0) / 0.5) @ B.t())


@fact
def stochastic_rounding_is_to_a_neighbour_and_has_the_gradient_of_what_it_rounds():
    a, b = draw(9, 5, dtype=torch.float32), draw(5, 8, dtype=torch.float32)
    exact = a @ b
    y = [formula("d = stochastic(v * v, seed)", a, b, seed=torch.tensor(seed), dtypes={"d": torch.bfloat16}) for seed in range(64)]
    assert all(((one.double() - exact ** 2).abs() < exact ** 2 / 128).all() for one in y)
    mean = torch.stack(y).double().mean(0)
    assert ((mean - exact ** 2).abs() < exact ** 2 / 512).all() and not torch.equal(y[0], y[1])
    dy = torch.randn(9, 8).bfloat16()
    for one, other in zip(torch.autograd.grad(y[0], (a, b), dy), torch.autograd.grad(exact ** 2, (a, b), dy.float())):
        assert (one - other).abs().max() < 1e-5


@fact
def names_that_begin_with_d_are_operands_names():
    names = "d_x", "dy_x", "dx", "dy1", "d_", "dy_", "dy", "d_v"  # the last two, where there is no gradient
    with torch.no_grad():
        for name in names:
            close(formula("d = v * %s" % name, A, B, **{name: V}), V * V)
        close(formula("d = v * d_row + dy_row", A, B, d_row=V[:, :1], dy_row=2), V * V[:, :1] + 2)


@fact
def cross_entropy_needs_no_logits():
    a, b, label = draw(9, 5, dtype=torch.float32), draw(5, 13, dtype=torch.float32), torch.randint(13, (9, 1))
    lse, hit = formula("lse = row_logsumexp(v); hit = row_sum(column == label ? v : 0)", a, b, label=label, outputs="lse, hit")
    loss = (lse - hit).mean()
    da, db = torch.autograd.grad(loss, (a, b))
    expected = F.cross_entropy(a @ b, label[:, 0])
    close(loss, expected)
    for one, other in zip((da, db), torch.autograd.grad(expected, (a, b))):
        assert (one - other).abs().max() < 1e-6


@fact
def sixteen_bits_agree_within_their_roundings():
    for dtype, bound in ((torch.float32, 1e-6), (torch.bfloat16, 2e-2), (torch.float16, 3e-3)):
        inputs = [draw(2, 33, 17, dtype=dtype), draw(17, 21, dtype=dtype), draw(21, dtype=dtype)]
        exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
        y, expected = formula("d = gelu_erf(v + bias)", *inputs[:2], bias=inputs[2]), F.gelu(exact[0] @ exact[1] + exact[2])
        dy = torch.randn_like(y)
        ours, theirs = torch.autograd.grad(y, inputs, dy), torch.autograd.grad(expected, exact, dy.double())
        for one, other, tensor in zip([y, *ours], [expected, *theirs], [y, *inputs]):
            assert one.dtype == dtype and one.shape == tensor.shape
            assert (one.double() - other).abs().max() <= bound * other.abs().max()


@fact
def outputs_have_the_types_that_are_asked_for():
    a, b = draw(3, 16, dtype=torch.bfloat16).detach(), draw(16, 32, dtype=torch.bfloat16).detach()
    d, small = formula("d = gelu_erf(v); small = d", a, b, outputs="d, small", dtypes={"d": torch.float32, "small": torch.float8_e4m3fn})
    assert d.dtype == torch.float32 and small.dtype == torch.float8_e4m3fn
    assert torch.equal(small.float(), d.to(torch.float8_e4m3fn).float())
    x, y = torch.randint(-9, 9, (3, 16), dtype=torch.int8), torch.randint(-9, 9, (16, 5), dtype=torch.int8)
    assert torch.equal(formula("d = max(v, 0)", x, y, dtypes={"d": torch.int32}), (x.int() @ y.int()).clamp(min=0))
    assert formula("d = v", a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)).dtype == torch.bfloat16


@fact
def tensors_of_any_strides_are_accepted():
    a, b = draw(8, 5), draw(12, 10)
    for x in (a[::2], a[:4].t().contiguous().t(), a[:4, :].expand(3, 4, 5), a.view(2, 4, 5).transpose(0, 1)[:, :, :5]):
        for y in (b[::2, ::2].t()[:, :6], b[:5], b[:5, ::2], b[:5, 2:9]):
            up = torch.randn(y.shape[1], x.shape[-2], dtype=torch.float64).t()
            x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
            d = formula("d = v * up", x, y, up=up)
            close(d, x @ y * up)
            dy = torch.ones((), dtype=d.dtype).expand(d.shape)
            for one, other in zip(torch.autograd.grad(d, (x, y), dy), torch.autograd.grad(x @ y * up, (x, y), dy)):
                close(one, other)


@fact
def single_rows_and_columns_and_no_rows_are_products_too():
    for m, n, k in ((1, 1, 1), (1, 4, 3), (4, 1, 3), (2, 2, 1), (3, 4, 0)):
        a, b, bias = draw(m, k), draw(k, n), draw(n)
        assert gradcheck(lambda a, b, bias: formula("d = tanh(v + bias); s = row_sum(d)", a, b, bias=bias, outputs="d, s"), (a, b, bias)), (m, n, k)
    assert formula("d = tanh(v)", draw(0, 3), draw(3, 4)).shape == (0, 4)


@fact
def what_the_gradient_does_not_read_is_not_kept():
    a, b, residual = draw(32, 48).detach(), draw(48, 64), draw(32, 64)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.untyped_storage().nbytes()) or tensor, lambda tensor: tensor):
        formula("d = 2 * v + residual", a, b, residual=residual)
    assert sum(kept) < 8 * 32 * 48 + 64, kept  # a alone


@fact
def the_upstream_of_an_output_that_is_not_used_is_zero():
    bias = draw(4)
    d, ss = formula("d = v + bias; ss = row_sum(d * d)", A, B, bias=bias, outputs="d, ss")
    close(torch.autograd.grad(ss.sum(), bias)[0], (2 * (V + bias)).sum(0))


@fact
def outputs_without_an_upstream_are_not_in_the_gradient():
    z = torch.tensor([0.0, 1, 2, 3], dtype=torch.float64, requires_grad=True)
    d, root = formula("d = v * z; root = row_sum(sqrt(z) * v)", A, B, z=z, outputs="d, root")  # 0 times the derivative of root at 0 is NaN
    dy = torch.randn_like(d)
    close(torch.autograd.grad(d, z, dy)[0], (V * dy).sum(0))
    d, copy = formula("d = silu(v); copy = sin(v)", A, B, outputs="d, copy")
    dy, once = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    expected = A @ B
    for outputs, of_pytorch, upstreams in (((d,), (F.silu(expected),), (dy,)), ((copy,), (torch.sin(expected),), (once,)),
                                           ((d, copy), (F.silu(expected), torch.sin(expected)), (dy, once))):
        for one, other in zip(torch.autograd.grad(outputs, (A, B), upstreams, retain_graph=True),
                              torch.autograd.grad(of_pytorch, (A, B), upstreams, retain_graph=True)):
            close(one, other)


@fact
def nothing_is_filled_with_zeros_for_an_output_without_an_upstream():
    a, b = draw(64, 32, dtype=torch.float32), draw(32, 256, dtype=torch.float32)
    d, copy = formula("d = gelu_erf(v); copy = d", a, b, outputs="d, copy", dtypes={"copy": torch.bfloat16})
    dy = torch.randn_like(d)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.autograd.grad(d, (a, b), dy)
    assert not [event.name for event in profile.events() if "zero" in event.name]


@fact
def statistics_without_a_derivative_do_not_keep_a_formula_from_training():
    for text in ("d = silu(v + bias); top = row_max(v)", "d = silu(v + bias); top = column_min(v + bias)", "d = silu(v + bias); top = row_argmax(v)"):
        for a in A, draw(2, 3, 5):
            bias = draw(4)
            d, top = formula(text, a, B, bias=bias, outputs="d, top")
            dy = torch.randn_like(d)
            for one, other in zip(torch.autograd.grad(d, (a, B, bias), dy), torch.autograd.grad(F.silu(a @ B + bias), (a, B, bias), dy)):
                close(one, other)
    d, top = formula("d = v; top = row_max(v)", A, B, outputs="d, top")
    raises(gemmepi.Error, "row_max, which top is assigned, has no derivative", torch.autograd.grad, d.sum() + top.sum(), A)


@fact
def what_is_refused_is_told_in_words():
    raises(gemmepi.Error, "desc.formula, column 5: vq is not known here", formula, "d = vq", A, B)
    raises(gemmepi.Error, "row_max, which t is assigned, has no derivative", torch.autograd.grad, formula("t = row_max(v)", A, B, outputs="t").sum(), A)
    raises(gemmepi.Error, "column 13: row_sum is assigned to outputs only; ss is none", formula, "d = v; ss = row_sum(v)", A, B)
    raises(ValueError, "x has 1 rows and 7 columns, and the product 3 and 4", formula, "d = v + x", A, B, x=draw(7))
    raises(ValueError, "a has the shape [3, 5] and b [3, 5]", formula, "d = v", A, A)
    raises(ValueError, "b has the leading axes [3]; accepted are [2], or none", formula, "d = v", draw(2, 3, 5), draw(3, 5, 4))
    raises(ValueError, "leading axes do not go with", formula, "d = v + x", draw(2, 3, 5), B, x=draw(7, 3, 4))
    raises(TypeError, "dtypes['d'] is torch.bool; accepted are float32", formula, "d = v", A, B, dtypes={"d": torch.bool})
    raises(ValueError, "'e' is none of outputs", formula, "d = v", A, B, dtypes={"e": torch.float32})
    raises(TypeError, "x is torch.bool", formula, "d = v + x", A, B, x=torch.ones(4, dtype=torch.bool))
    raises(TypeError, "x is 'text'", formula, "d = v + x", A, B, x="text")
    raises(ValueError, "x is on meta", formula, "d = v + x", A, B, x=draw(4).to("meta"))
    for name in "v", "d", "row", "silu":
        raises(gemmepi.Error, "operands", formula, "d = v + %s" % name, A, B, **{name: draw(4)})
    for name in "dy", "d_v":
        raises(gemmepi.Error, "desc.formula reads %s, a name that its gradient gives; choose another" % name, formula, "d = v * %s" % name, A, B, **{name: V})
    raises(ValueError, "no items", formula, "d = v", draw(0, 3, 5), B)
    long = "x" * 57
    y = formula("d = tanh(v * %s)" % long, A, B, **{long: draw(4)})
    raises(gemmepi.Error, "the gradient of the formula has no gradient in turn: %s_ has 58 characters" % long, torch.autograd.grad, y.sum(), A,
           create_graph=True)
    y = formula("d = tanh(v)", draw(2, 1, 5), B)
    raises(ValueError, "gemmepi.formula has no second derivative of a batch of products with one row", torch.autograd.grad, y.sum(), B, create_graph=True)


if __name__ == "__main__":
    run(sys.modules[__name__])
