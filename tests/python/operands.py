"""gemmepi.formula with factors that texts make, operands of blocks and types of 4 bits, and gemmepi.pack, against PyTorch. On the host."""
import sys

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional as F

import gemmepi
from facts import fact, raises, run
from gemmepi import api, formula

torch.manual_seed(17)
CODES = {api.I4: [*range(8), *range(-8, 0)], api.U4: [*range(16)], api.E2M1: [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]}


def draw(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_()


def drawn(code, *shape):
    """Bytes of two elements each along the last axis, and their numbers by a table."""
    stored = torch.randint(256, (*shape[:-1], shape[-1] // 2), dtype=torch.uint8)
    table = torch.tensor(CODES[code], dtype=torch.float64)
    return stored, torch.stack((table[(stored & 15).long()], table[(stored >> 4).long()]), -1).flatten(-2)


def spread(blocks, rows, columns, shape):
    """An element of blocks for each of shape."""
    return blocks.repeat_interleave(rows, -2)[..., :shape[-2], :].repeat_interleave(columns, -1)[..., :shape[-1]]


def close(one, other, bound=1e-9):
    assert one.shape == other.shape, (one.shape, other.shape)
    assert (one.double() - other.double()).abs().max() <= bound * (1 + other.double().abs().max()), (one, other)


@fact
def weights_of_awq_and_gptq_are_one_call():
    x, n, k = draw(5, 256, dtype=torch.float32).detach(), 6, 256
    bias, blocks = draw(n, dtype=torch.float32).detach(), {"scale": (128, 1), "zero": (128, 1)}
    for lead in (), (3,):
        stored, numbers = drawn(api.U4, *lead, k, n)  # as AWQ has them: k rows
        scale, zero = torch.rand(*lead, 2, n).half(), torch.randint(16, (*lead, 2, n), dtype=torch.int8)
        weight = (numbers - spread(zero.double(), 128, 1, (k, n))) * spread(scale.double(), 128, 1, (k, n))
        expected = F.silu(x.double() @ weight + bias)
        close(formula("d = silu(v + bias)", x, stored, bias=bias, b_formula="(b - zero) * scale", zero=zero, scale=scale, blocks=blocks,
                      dtypes={"b": api.U4}), expected, 1e-5)
        turned, numbers = drawn(api.U4, *lead, n, k)  # as GPTQ and nn.Linear: n rows, here with zeros of 4 bits
        weight = numbers.mT
        zeros, zero = drawn(api.U4, *lead, n, 2)
        weight = (weight - spread(zero.mT, 128, 1, (k, n))) * spread(scale.double(), 128, 1, (k, n))
        for of in scale, scale.mT.contiguous().mT:
            close(formula("d = v", x, turned.mT, b_formula="(b - zero) * scale", zero=zeros.mT, scale=of, blocks=blocks,
                          dtypes={"b": api.U4, "zero": api.U4, "d": torch.float32}), x.double() @ weight, 1e-5)


@fact
def every_type_of_4_bits_and_scales_of_powers_of_two_have_their_numbers():
    x, powers = draw(3, 64, dtype=torch.float32).detach(), torch.randint(120, 135, (2, 10), dtype=torch.uint8)
    scale = spread(torch.exp2(powers.double() - 127), 32, 1, (64, 10))
    for code in CODES:
        stored, numbers = drawn(code, 64, 10)
        y = formula("d = v", x, stored, b_formula="b * s", s=powers, blocks={"s": (32, 1)}, dtypes={"b": code, "s": api.E8M0})
        close(y, x.double() @ (numbers * scale), 1e-5)
        turned, numbers = drawn(code, 10, 64)
        y = formula("d = v", x, turned.t(), b_formula="b * s", s=powers, blocks={"s": (32, 1)}, dtypes={"b": code, "s": api.E8M0})
        close(y, x.double() @ (numbers.t() * scale), 1e-5)
        full, numbers = drawn(code, 3, 10)  # of a formula of what becomes of the product
        ones = torch.ones(64, 10)
        y = formula("d = v * w + s", x, ones, w=full, s=powers[:1], blocks={"s": (3, 1)}, dtypes={"w": code, "s": api.E8M0})
        close(y, x.double().sum(1, True) * numbers + torch.exp2(powers[:1].double() - 127), 1e-5)
    for name, code in ("float8_e8m0fnu", api.E8M0), ("float4_e2m1fn_x2", api.E2M1):
        if hasattr(torch, name):  # they say by themselves what they hold
            stored = drawn(api.E2M1, 64, 10)[0]
            known = {"b": api.E2M1, "s": api.E8M0}
            y = formula("d = v", x, stored, b_formula="b * s", s=powers, blocks={"s": (32, 1)}, dtypes=known)
            b, s = (value.view(getattr(torch, name)) if of == code else value for value, of in ((stored, api.E2M1), (powers, api.E8M0)))
            del known["b" if code == api.E2M1 else "s"]
            assert torch.equal(formula("d = v", x, b, b_formula="b * s", s=s, blocks={"s": (32, 1)}, dtypes=known), y)


CASES = (  # texts of a and b, and operands by their shapes, in a product of m 3, n 4, k 6
    ("(a - mean) * rstd * gain + shift", None, {"rstd": (3, 1), "mean": (3, 1), "gain": (6,), "shift": (6,)}),
    (None, "b * scale", {"scale": (4,)}),
    (None, "b * scale * all", {"scale": (2, 4), "all": ()}),
    (None, "t = b * scale; tanh(t) * t; // of blocks", {"scale": (2, 2)}),
    ("silu(a) * all", "b * all + tanh(w * b)", {"all": (), "w": (6, 4)}),
    ("a / depth * p", "column > row ? b : b * q", {"p": (6,), "q": (6, 1)}),
)
BLOCKS = {(2, 4): (3, 1), (2, 2): (4, 3)}


def of_pytorch(text, value, operands):
    """The same texts in Python's words."""
    if text is None:
        return value
    shape = value.shape
    names = {name: spread(of, *BLOCKS[tuple(of.shape[-2:])], shape) if tuple(of.shape[-2:]) in BLOCKS else of for name, of in operands.items()}
    names.update(a=value, b=value, silu=F.silu, tanh=torch.tanh, depth=6)
    if ">" in text:
        return torch.where(torch.arange(4) > torch.arange(6)[:, None], value, value * names["q"])
    for statement in text.split("//")[0].strip(" ;").split(";"):
        name, _, right = statement.rpartition(" = ")
        names[name.strip() or "found"] = eval(right.strip(), {}, names)
    return names["found"]


@fact
def gradients_through_texts_are_those_of_pytorch_and_of_differences():
    for a_text, b_text, shapes in CASES:
        for lead_a, lead_b, lead in ((), (), ()), ((2,), (2,), ()), ((2,), (), (2,)), ((), (2, 1), ()):
            if lead and any(len(shape) < 2 for shape in shapes.values()):
                continue
            a, b = draw(*lead_a, 3, 6), draw(*lead_b, 6, 4)
            operands = {name: draw(*lead, *shape) for name, shape in shapes.items()}
            bias, blocks = draw(4), {name: BLOCKS[shape] for name, shape in shapes.items() if shape in BLOCKS}

            def call(a, b, bias, *others):
                return formula("d = tanh(v + bias); s = row_sum(v)", a, b, bias=bias, a_formula=a_text, b_formula=b_text, outputs="d, s", blocks=blocks,
                               **dict(zip(shapes, others)))

            def expected(a, b, bias, *others):
                v = of_pytorch(a_text, a, dict(zip(shapes, others))) @ of_pytorch(b_text, b, dict(zip(shapes, others)))
                return torch.tanh(v + bias), v.sum(-1, True)

            inputs = (a, b, bias, *operands.values())
            ups = [torch.randn_like(of) for of in expected(*inputs)]
            for one, other in zip([*call(*inputs), *torch.autograd.grad(call(*inputs), inputs, ups)],
                                  [*expected(*inputs), *torch.autograd.grad(expected(*inputs), inputs, ups)]):
                close(one, other)
            if not lead_a and not lead_b:
                assert gradcheck(call, inputs) and gradgradcheck(call, inputs), (a_text, b_text)
                assert gradcheck(lambda bias, *others: call(a.detach(), b.detach(), bias, *others), inputs[2:]), (a_text, b_text)


@fact
def gates_and_code_books_are_made_on_the_way():
    p, b, gain = draw(5, 12), draw(6, 4), draw(6)
    call = lambda p, b, gain: formula("d = v", p, b, a_formula="silu(left(a)) * right(a) * gain", gain=gain)  # noqa: E731
    close(call(p, b, gain), (F.silu(p[:, :6]) * p[:, 6:] * gain) @ b)
    assert gradcheck(call, (p, b, gain))
    close(call(p.t().contiguous().t(), b, gain), call(p, b, gain))  # left is of columns
    book, (stored, numbers), scale = torch.randn(16), drawn(api.U4, 64, 6), torch.rand(2, 6)
    x = draw(3, 64, dtype=torch.float32)
    weight = book[numbers.long()] * spread(scale, 32, 1, (64, 6))
    y = formula("d = v", x, stored, b_formula="book[b] * scale", book=book, scale=scale, blocks={"scale": (32, 1)}, dtypes={"b": api.U4})  # NF4
    close(y, x @ weight, 1e-5)
    dy = torch.randn_like(y)
    close(torch.autograd.grad(y, x, dy)[0], dy @ weight.t(), 1e-5)


@fact
def frozen_weights_of_4_bits_pass_gradients_on_and_their_scales_learn():
    x, low = draw(2, 5, 64, dtype=torch.float32), draw(64, 6, dtype=torch.float32)
    for turned in False, True:
        stored, numbers = drawn(api.U4, *((6, 64) if turned else (64, 6)))
        scale, zero, bias = (torch.rand(2, 6) + 0.1).requires_grad_(), torch.randint(16, (2, 6), dtype=torch.int8), draw(6, dtype=torch.float32)
        numbers, b = (numbers.t(), stored.t()) if turned else (numbers, stored)

        def call(x, scale, bias, low):
            return formula("d = silu(v + bias) * v + up", x, b, bias=bias, up=x @ low, b_formula="(b - zero) * scale", zero=zero, scale=scale,
                           blocks={"scale": (32, 1), "zero": (32, 1)}, dtypes={"b": api.U4})

        def expected(x, scale, bias, low):
            v = x @ ((numbers - spread(zero, 32, 1, (64, 6))).float() * spread(scale, 32, 1, (64, 6)))
            return F.silu(v + bias) * v + x @ low

        for wanted in (x, scale, bias, low), (scale,), (x,), (bias, low):
            inputs = [of if any(of is one for one in wanted) else of.detach() for of in (x, scale, bias, low)]
            dy = torch.randn(2, 5, 6)
            for one, other in zip(torch.autograd.grad(call(*inputs), wanted, dy), torch.autograd.grad(expected(*inputs), wanted, dy)):
                close(one, other, 1e-4)


@fact
def scales_of_blocks_of_what_becomes_of_a_product_have_gradients_and_sums_of_groups_are_outputs():
    a, b = draw(5, 3), draw(3, 24)
    v = (a @ b).detach()
    for rows, columns in (1, 8), (1, 5), (2, 1), (4, 7), (5, 24):
        shape = -(-5 // rows), -(-24 // columns)
        for lead in (), (2,):
            x, scale = draw(*lead, 5, 3), draw(*shape)
            call = lambda x, b, s: formula("d = sin(v * s)", x, b, s=s, blocks={"s": (rows, columns)})  # noqa: E731
            close(call(x, b, scale), torch.sin(x @ b * spread(scale, rows, columns, (5, 24))))
            assert gradcheck(call, (x, b, scale)) and gradgradcheck(call, (x, b, scale)), (rows, columns)
    d, ss, top = formula("d = v; ss = row_sum(v * v, 8); top = row_max(abs(v), 8)", a, b, outputs="d, ss, top")
    close(ss, (v * v).view(5, 3, 8).sum(-1)), close(top, v.abs().view(5, 3, 8).amax(-1))
    close(formula("d = v * rsqrt(ss)", a, b, ss=ss, blocks={"ss": (1, 8)}), v * spread(ss, 1, 8, (5, 24)).rsqrt())
    assert gradcheck(lambda a, b: formula("d = v; ss = row_sum(v * v, 8)", a, b, outputs="d, ss"), (a, b))


@fact
def where_pytorch_traces_what_texts_make_is_inside_one_operator():
    stored, numbers = drawn(api.U4, 6, 64)
    scale, rstd = torch.rand(2, 6).requires_grad_(), draw(5, 1, dtype=torch.float32)

    def call(x, rstd, scale):
        return formula("d = relu(v)", x, stored.t(), a_formula="a * rstd", b_formula="b * scale", rstd=rstd, scale=scale, blocks={"scale": (32, 1)},
                       dtypes={"b": api.U4})

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    for m in 5, 3:
        x, rstd = draw(m, 64, dtype=torch.float32), draw(m, 1, dtype=torch.float32)
        with torch.no_grad():
            assert torch.equal(compiled(x, rstd, scale), call(x, rstd, scale))
        for one, other in zip(*[torch.autograd.grad(of(x, rstd, scale).sum(), (x, rstd, scale)) for of in (compiled, call)]):
            close(one, other, 1e-6)


@fact
def packed_numbers_are_near_and_pack_says_what_it_found():
    weight = torch.randn(2, 6, 64)
    for code, scale, zero, share in ((api.U4, torch.float16, torch.int8, 1.1), (api.I4, torch.float32, None, 0.55), (api.E2M1, api.E8M0, None, 1.1),
                                     (api.I8, torch.bfloat16, torch.float32, 1.1), (api.E4M3, torch.float32, None, 17)):
        packed, found, *of_zero = gemmepi.pack(weight, code, (1, 32), scale=scale, zero=zero)
        assert packed.shape == (2, 6, 64 if code in (api.I8, api.E4M3) else 32) and found.shape == (2, 6, 2) and bool(of_zero) == (zero is not None)
        names, types = {"scale": found, **dict(zip(["zero"], of_zero))}, {"scale": scale} if scale == api.E8M0 else {}
        text = "(b - zero) * scale" if of_zero else "b * scale"
        eye = torch.eye(64)
        back = formula("d = v", eye, packed.mT, b_formula=text, blocks={name: (32, 1) for name in names}, **{name: of.mT for name, of in names.items()},
                       dtypes={**types, **({"b": code} if packed.dtype is torch.uint8 else {})}).mT
        step = torch.exp2(found.double() - 127) if scale == api.E8M0 else found.double()
        assert ((back - weight).abs() <= share * spread(step, 1, 32, (6, 64))).all(), code
        again, *_ = gemmepi.pack(weight, code, (1, 32), scale=found, zero=of_zero[0] if of_zero else None)
        assert torch.equal(again.view(torch.uint8), packed.view(torch.uint8))
    whole = torch.arange(-8, 8).float().view(1, 16)
    packed, _ = gemmepi.pack(whole, api.I4, (1, 16), scale=torch.ones(1, 1))
    assert packed.tolist() == [[(i & 15) | (i + 1 & 15) << 4 for i in range(-8, 8, 2)]]


@fact
def what_is_refused_is_told_in_words():
    x, stored, scale = torch.randn(3, 64), drawn(api.U4, 64, 6)[0], torch.rand(2, 6)
    raises(TypeError, "b is torch.uint8; accepted are", formula, "d = v", x, stored, b_formula="b * 2")
    raises(ValueError, "b is of a type that only formulas read: give b_formula", formula, "d = v", x, stored, dtypes={"b": api.U4})
    raises(TypeError, "dtypes['b'] is", formula, "d = v", x, stored.float(), b_formula="b * 2", dtypes={"b": api.U4})
    raises(ValueError, "scale has 2 rows and 6 columns; blocks of 16 x 1 of 64 rows and 6 columns are 4 x 6", formula, "d = v", x, stored,
           b_formula="b * scale", scale=scale, blocks={"scale": (16, 1)}, dtypes={"b": api.U4})
    raises(ValueError, "blocks has 'p', which is no tensor among the operands", formula, "d = v", x, stored, blocks={"p": (16, 1)})
    raises(ValueError, "blocks['s'] is (0, 1)", formula, "d = v * s", x, x.t(), s=scale, blocks={"s": (0, 1)})
    raises(ValueError, "b is an operand, and b_formula has b", formula, "d = v * b", x, x.t(), b_formula="b * 2", b=scale)
    raises(gemmepi.Error, "desc.b.formula, column 5: x is not known here", formula, "d = v", x, x.t(), b_formula="b * x")
    raises(gemmepi.Error, "list it twice, under two names", formula, "d = v", x[:, :3], x.t()[:3], a_formula="a * s", b_formula="b * s", s=torch.rand(3, 1))
    raises(ValueError, "pack it along", formula, "d = v * w", torch.randn(4, 64), torch.randn(64, 2), w=torch.zeros(2, 2, dtype=torch.uint8).t(), dtypes={"w": api.U4})
    raises(gemmepi.Error, "desc.dtype is F32", gemmepi.pack, x, torch.float32, (1, 8))
    raises(ValueError, "scale has the shape [3, 1], and there are [3, 8] blocks", gemmepi.pack, x, api.I4, (1, 8), scale=torch.ones(3, 1))
    raises(ValueError, "give both or none", gemmepi.pack, x, api.U4, (1, 64), scale=torch.ones(3, 1), zero=torch.int8)


if __name__ == "__main__":
    run(sys.modules[__name__])
