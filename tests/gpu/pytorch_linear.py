#!/usr/bin/env python3
"""Layers of gemmepi, forward and backward, against PyTorch in float64, on the GPU that PyTorch uses.

    python3 tests/gpu/pytorch_linear.py [--count 300] [--seed 1] [--only INDEX|TEXT] [--host] [--verbose]

Random layers, made here, run in PyTorch's primary context, on its memory and its streams: first forward, then backward on
what forward has saved. The reference is PyTorch's autograd in float64 on the operands as stored, times their scales: G from
the stored P (SAVED; RELU's mask selects) or from op(A) op(B) + bias (RECOMPUTE), dA, dB and dbias from G, summed over the
batch where an operand is shared and its gradient is one for all. Bounds are those of the manual, for layers:

    Y, P          as a product's D and aux (pytorch.py), GATED: |act(gate)| E_value + |value| L E_gate in place of L E
    G             u_g |G| + e: G is stored between the passes in g_dtype, but for one that is dY itself; in 16 bits
                  2^-12 |G| more for the shorter activations
                  e = 4 u_acc T + |dY| times how far act' and act go within E of P (RECOMPUTE), or at P (1 + 2 u_acc)
    dA, dB        u |dA| + (4 + K/8) u_acc |G| |B| + (e + u_g |G|) |B|, K products are summed, TF32: 2^-9 |G| |B| more
    dbias         u |dbias| + (4 + K/8) u_acc sum |G| + sum e, without u_g: it sums values that are not rounded

and layers of small integers with NONE and RELU come out bit-equal. What pytorch.py adds is added here too: the reference's
own rounding, RELAXED, fp8 operands on tensor cores, saturating results.

Every output is NaN before (a mask: random bits), unless it is accumulated into; all memory but the outputs' own elements
must be as it was after. P's scale multiplies where it is stored and where it is read, so it is inverted between.

I8 operands must be refused backward. Forms of a batch may be refused as UNSUPPORTED; they are counted and named at the end.

--host runs the host device on CPU tensors, to try this file without a GPU. Problem INDEX is the same for any --count.
--only TEXT leaves out all problems but those whose family has these words, as "silu gated recompute bfloat16".
"""
import collections
import random
import re
import sys

NAME = "random_layers_agree_with_pytorch"
sys.dont_write_bytecode = True

try:
    import torch
    from torch import float8_e4m3fn, float8_e5m2
except ImportError as missing:
    print("skip %s: %s\n0 passed, 0 failed, 1 skipped" % (NAME, str(missing).splitlines()[0]))
    sys.exit(0)

import pytorch
from pytorch import (ACTIVATIONS, BF16, BLOCK_128, CODES, COMPUTE_DEFAULT, COMPUTE_F32, COMPUTE_F64, COMPUTE_TF32,
                     DTYPE_NUMBERS, E4M3, ELU, EXACT_LIMIT_FP8, F16, F32, F64, FAST_ACCUMULATION, FP8, GATE_FIRST,
                     GATED, GELU_TANH, GUARD, I8, LEAKY_RELU, LOOSE, LOWEST, Mask, NARROW, NONE, OUTER,
                     REFERENCE, RELAXED, RELU, SCALE_MODES, SCALE_NONE, SHORTER, TENSOR, VECTOR_128, Expected,
                     Tensor, activate, api, bound_of, derivatives, exact_limit,
                     explained, name_of, off_by, plan_info, plan_of, random_size, round_to, round_up, roundoff, share_of_cores, share_of_products, slope,
                     workspace_for)

# >>the C interface

FLAGS = ["BIAS", "SAVED", "RECOMPUTE", "DA", "DB", "DBIAS", "ACCUMULATE_DA", "ACCUMULATE_DB", "ACCUMULATE_DBIAS"]
(BIAS, SAVED, RECOMPUTE, DA, DB, DBIAS, ACCUMULATE_DA, ACCUMULATE_DB,
 ACCUMULATE_DBIAS) = (0x10000000000 << i for i in range(len(FLAGS)))
GRADIENTS = {"da": (DA, ACCUMULATE_DA), "db": (DB, ACCUMULATE_DB), "dbias": (DBIAS, ACCUMULATE_DBIAS)}
EXCHANGED = {"a": "b", "b": "a", "da": "db", "db": "da"}  # what column-major calls them


# >>families: what problems share that would be compiled anew

KINDS = [(BF16, COMPUTE_F32), (F32, COMPUTE_F32), (F16, COMPUTE_F32), "fp8", (F32, COMPUTE_TF32), "mixed",
         (BF16, COMPUTE_F32), (F64, COMPUTE_F64), "i8"]
GATES = [0, GATED, 0, GATED | GATE_FIRST]
GROUP = 4
WIDE = [F32, F16, BF16]

Family = collections.namedtuple("Family", "a b compute activation gate flags side modes g")


def random_flags(rng, activation, gate):
    flags = BIAS if rng.random() < 0.6 else 0
    if activation != NONE or gate:
        flags |= rng.choice([SAVED, RECOMPUTE])
    wanted = rng.randint(1, 7) if rng.random() < 0.5 else 7
    for i, (flag, accumulate) in enumerate(GRADIENTS.values()):
        if wanted >> i & 1:
            flags |= flag | (accumulate if rng.random() < 0.35 else 0)
    return flags


def default_bias(y):
    return BF16 if y in FP8 else F32 if y == I8 else y


def default_g(a, b):
    if a == b or (a in FP8 and b in FP8):
        return BF16 if a in FP8 else a
    return b if a in FP8 else a if b in FP8 else F32


def random_side(rng, a, b):
    """dtypes of y, preact, dy, da, db, bias and dbias, and of G: the operands', gradients in F32, or any"""
    style = rng.choice(["same", "same", "wide", "any"])
    if a == F64:
        return dict.fromkeys(["y", "preact", "dy", "da", "db", "bias", "dbias"], F64), F64
    new = a in NARROW or b in NARROW
    y = rng.choice(WIDE + [BF16, E4M3, I8]) if new else a if rng.random() < 0.7 else rng.choice(WIDE)
    side = {"y": y, "preact": y, "dy": BF16 if y == I8 else y, "bias": default_bias(y), "dbias": default_bias(y),
            "da": BF16 if a in NARROW else a, "db": BF16 if b in NARROW else b}
    g = default_g(a, b) if I8 not in (a, b) else BF16
    if style == "wide":
        side.update(da=F32, db=F32, dbias=F32)
        g = rng.choice([g, F32])
    elif style == "any":
        side.update((name, rng.choice(WIDE)) for name in ("da", "db", "dbias", "bias"))
        side.update(preact=rng.choice(WIDE + list(NARROW)), dy=rng.choice(WIDE + list(FP8)))
        g = rng.choice(WIDE)
    return side, g


def random_modes(rng, dtypes, flags, mask):
    modes = {name: int(dtypes[name] in NARROW and rng.random() < 0.6) for name in ("y", "preact", "dy")}
    if mask or not flags & SAVED:
        modes["preact"] = SCALE_NONE
    both = rng.choice([TENSOR, TENSOR, OUTER, VECTOR_128, BLOCK_128]) if rng.random() < 0.5 else None
    for name in "ab":
        modes[name] = SCALE_NONE
        if dtypes[name] in NARROW:
            modes[name] = rng.randint(SCALE_NONE, BLOCK_128) if both is None else both
    return modes


def random_operands(rng, kind):
    if kind == "fp8":
        return (*rng.choice(pytorch.FP8_PAIRS), COMPUTE_F32)
    if kind == "i8":
        return rng.choice([(I8, I8), (BF16, I8), (I8, F32)]) + (COMPUTE_F32,)
    if kind == "mixed":
        a, b = rng.sample([F32, F16, BF16, *FP8], 2)
        wide = F32 in (a, b) or F16 in (a, b) and BF16 in (a, b)
        return a, b, COMPUTE_TF32 if wide and rng.random() < 0.3 else COMPUTE_F32
    return kind[0], kind[0], kind[1]


def family_of(seed, number):
    """9 kinds and 16 draws of an activation, the first of them twice: 144 families have met each pair."""
    rng = random.Random("layers %d %d" % (seed, number))
    activation = number % 16 % len(ACTIVATIONS)
    gate = rng.choice(GATES)
    a, b, compute = random_operands(rng, KINDS[number % len(KINDS)])
    flags = random_flags(rng, activation, gate)
    side, g = random_side(rng, a, b)
    modes = random_modes(rng, dict(side, a=a, b=b), flags, activation == RELU and not gate)
    return Family(a, b, compute, activation, gate, flags, side, modes, g)


def title_of(family):
    names = [name_of(family.a)] if family.a == family.b else [name_of(family.a), "x", name_of(family.b)]
    names += ["tf32"] * (family.compute == COMPUTE_TF32) + [ACTIVATIONS[family.activation]]
    names += ["GATED"] * bool(family.gate) + ["GATE_FIRST"] * bool(family.gate & GATE_FIRST)
    return " ".join(names + [name for i, name in enumerate(FLAGS) if family.flags & BIAS << i])


# >>problems, in row-major terms: P is [batch, m, n]. Column-major is the same memory with a and b exchanged.

class Problem(pytorch.Problem):
    def __init__(self, seed, index, device):
        self.rng = rng = random.Random("layer %d %d" % (seed, index))
        self.index, self.device, self.family = index, device, family_of(seed, index // GROUP)
        self.generator = torch.Generator(device).manual_seed(rng.getrandbits(60))
        family = self.family
        self.native = self.both(*FP8) and rng.random() < 0.5
        self.step = 16 if self.native else 8 if rng.random() < 0.4 else 1
        self.unit = rng.choice(["16 bytes", "256 bytes"] if self.native else ["element", "16 bytes", "256 bytes"])
        self.column_major = rng.random() < 0.4
        self.flags = RELAXED if rng.random() < 0.15 else 0
        self.flags |= FAST_ACCUMULATION if self.both(*FP8) and rng.random() < 0.3 else 0
        self.draw_sizes()
        self.draw_form()
        self.fill = rng.choice(["normal", "normal", "positive", "cancelling"] +
                               ["integers"] * 3 * (family.activation <= RELU))
        self.by_plan, self.side_stream, self.own_workspace, self.repeats = (rng.random() < x
                                                                             for x in (0.5, 0.3, 0.3, 0.2))
        given = rng.choice([None, None, 0, 0.3, -0.2, 1.7]) if family.activation in (LEAKY_RELU, ELU) else None
        self.parameter = {LEAKY_RELU: 0.01, ELU: 1}.get(family.activation, 0) if given is None else given
        self.tensors, self.matrices = {}, {}
        self.draw_tensors()
        self.describe(given)
        self.fill_tensors()

    whole = False
    gated = property(lambda self: bool(self.family.gate))
    mask = property(lambda self: self.family.activation == RELU and not self.gated)
    plain = property(lambda self: self.family.activation == NONE and not self.gated)  # G is dY

    # shapes and layouts

    def draw_sizes(self):
        rng, host = self.rng, self.device.type == "cpu"
        top = 1000 if not host else 160 if self.along_k else 80
        self.m, self.n, self.k = (random_size(rng, top) for _ in range(3))
        draw = rng.random()
        if self.along_k and draw < 0.4:
            self.k = rng.randint(1, 600)
        elif draw > 0.9:
            self.m = rng.randint(1, 300 if host else 5000)
        self.m, self.n, self.k = (round_up(x, self.step) for x in (self.m, self.n, self.k))
        if self.gated:
            self.n = round_up(self.n, 2 * self.step)
        self.batch = rng.choice([1, 1, 1, 2, 3, 4])

    def draw_form(self):
        """Which tensors have items: those of `shared` are one for all."""
        rng, self.shared = self.rng, set()
        if rng.random() < 0.5:
            self.shared |= {"b", "bias", "db", "dbias"}
        elif rng.random() < 0.5:
            self.shared |= {"bias", "dbias"}
        if rng.random() < 0.25:
            self.shared.add("a")
            if "b" not in self.shared and rng.random() < 0.5:
                self.shared.add("da")
        if rng.random() < 0.15:
            self.shared.add("dy")

    def layout(self, name, lines, length, mask):
        """ld, batch stride and what of both the desc says"""
        rng, unit = self.rng, 128 if mask else self.step
        ld = default = round_up(length, 128) if mask else max(length, 1)
        if rng.random() < 0.6:
            ld = round_up(length, unit) + unit * rng.randint(0, 2 if unit > 1 else 9)
        if name in self.shared:
            stride = 0
        elif self.batch > 1 and not mask and rng.random() < 0.1:  # item after item within a line
            stride = max(ld, 1)
            ld *= self.batch
        else:
            stride = max(unit, round_up((lines - 1) * ld + length, unit) + unit * rng.choice([0, 0, 1, 5]))
        return max(ld, 1), stride, 0 if ld == default and rng.random() < 0.7 else max(ld, 1)

    def scale(self, name):
        """One for all, where the gradient is."""
        said = super().scale(name)
        if "d" + name in self.shared and said.mode:
            said.batch_stride = self.tensors["scale_" + name].stride = 0
        return said

    def draw_tensor(self, name, dtype, rows, columns):
        rng, is_gradient = self.rng, name in ("da", "db")
        transposed = name in ("a", "b") and rng.random() < 0.5
        if is_gradient:  # it lies as its operand is stored
            transposed = bool(self.matrices[name[1:]].transposed)
        if self.native and name in ("a", "b") and rng.random() < 0.8:  # lines along k
            transposed = name == "b"
        lines, length = (columns, rows) if transposed else (rows, columns)
        mask = name == "preact" and self.mask
        ld, stride, ld_said = self.layout(name, lines, length, mask)
        place = (self.offset(torch.uint8 if mask else dtype), self.batch, not transposed)
        tensor = Mask(lines, length, ld, stride, *place) if mask else Tensor(dtype, lines, length, ld, stride, *place)
        self.tensors[name] = tensor.allocate(self.device, self.generator)
        said = transposed and not (is_gradient and rng.random() < 0.5)  # there it may be left 0
        self.matrices[name] = api.matrix(0 if mask else DTYPE_NUMBERS[dtype], int(said), ld_said, stride,
                                         self.scale(name) if name in self.family.modes else api.scale())

    def draw_vector(self, name):
        dtype, rng = self.family.side[name], self.rng
        stride = 0 if name in self.shared else round_up(self.n, self.step) + 8 * rng.randint(0, 1)
        self.matrices[name] = api.vector(DTYPE_NUMBERS[dtype], stride)
        if self.has(BIAS if name == "bias" else DBIAS):
            tensor = Tensor(dtype, 1, self.n, self.n, stride, self.offset(dtype), self.batch, True)
            self.tensors[name] = tensor.allocate(self.device, self.generator)

    def draw_tensors(self):
        family, side, columns = self.family, self.family.side, self.n // 2 if self.gated else self.n
        self.draw_tensor("a", family.a, self.m, self.k)
        self.draw_tensor("b", family.b, self.k, self.n)
        self.draw_tensor("y", side["y"], self.m, columns)
        if self.has(SAVED):
            self.draw_tensor("preact", side["preact"], self.m, self.n)
        self.draw_tensor("dy", side["dy"], self.m, columns)
        if self.has(DA):
            self.draw_tensor("da", side["da"], self.m, self.k)
        if self.has(DB):
            self.draw_tensor("db", side["db"], self.k, self.n)
        self.draw_vector("bias")
        self.draw_vector("dbias")
        self.forward_outputs = ["y"] + ["preact"] * self.has(SAVED)
        self.backward_outputs = [name for name, flags in GRADIENTS.items() if self.has(flags[0])]

    # for the library

    def theirs(self, name):
        """what the desc and the args call it"""
        return EXCHANGED.get(name, name) if self.column_major else name

    def describe(self, parameter):
        family, rng = self.family, self.rng
        m, n = (self.n, self.m) if self.column_major else (self.m, self.n)
        flags = family.flags
        if self.column_major:
            for one, other in [(DA, DB), (ACCUMULATE_DA, ACCUMULATE_DB)]:
                flags = flags & ~(one | other) | (other if flags & one else 0) | (one if flags & other else 0)
        self.desc = api.linear_desc(m=m, n=n, k=self.k, batch=rng.choice([0, 1]) if self.batch == 1 else self.batch,
                                    order=int(self.column_major), activation=CODES[family.activation] | family.gate,
                                    flags=flags | self.flags, has_parameter=parameter is not None,
                                    activation_parameter=parameter or 0, g_dtype=DTYPE_NUMBERS[family.g])
        self.desc.compute = COMPUTE_TF32 if self.tf32 else rng.choice([COMPUTE_DEFAULT, family.compute])
        if family.a == family.b == I8:
            self.desc.compute = COMPUTE_F32
        for name, matrix in self.matrices.items():
            setattr(self.desc, self.theirs(name), matrix)
        self.leave_defaults()

    def leave_defaults(self):
        """Dtypes that need not be said are not, half of them. In the order of what they depend on, from the end."""
        dtypes = dict(self.family.side, a=self.family.a, b=self.family.b)
        dtypes = {self.theirs(name): dtype for name, dtype in dtypes.items()}
        a, b, y = dtypes["a"], dtypes["b"], dtypes["y"]
        defaults = {"a": F32, "b": a, "y": BF16 if a in FP8 else a, "preact": y, "dy": y, "bias": default_bias(y),
                    "da": BF16 if a in FP8 else a, "db": BF16 if b in FP8 else b,
                    "dbias": dtypes["bias"] if self.has(BIAS) else default_bias(y)}
        for name, default in defaults.items():
            if dtypes[name] == default and self.rng.random() < 0.5:
                getattr(self.desc, name).dtype = 0
        if I8 not in (a, b) and self.family.g == default_g(a, b) and self.rng.random() < 0.5:
            self.desc.g_dtype = 0

    def args(self, names):
        args = api.linear_args()
        for name in names:
            if name in self.tensors:
                setattr(args, self.theirs(name), self.tensors[name].pointer())
            if "scale_" + name in self.tensors:
                setattr(args, "scale_" + self.theirs(name), self.tensors["scale_" + name].pointer())
        return args

    def forward_args(self):
        everything = ["a", "b", "bias", "y", "preact", "dy"] + self.backward_outputs
        self.own_args = self.rng.random() < 0.5
        return self.args(["a", "b", "bias"] + self.forward_outputs if self.own_args else everything)

    def backward_args(self):
        if not self.own_args:
            return self.args(["a", "b", "bias", "y", "preact", "dy"] + self.backward_outputs)
        again = self.has(RECOMPUTE)
        names = ["dy"] + ["preact"] * self.has(SAVED) + ["bias"] * again + self.backward_outputs
        return self.args(names + ["b"] * (again or self.has(DA)) + ["a"] * (again or self.has(DB)))

    def __str__(self):
        family = self.family
        flags = " RELAXED" * bool(self.flags & RELAXED) + " FAST_ACCUMULATION" * self.fast
        return "#%d %s m %d n %d k %d batch %d %s-major g %s%s, %s, alignment %d, %s%s%s; %s" % (
            self.index, title_of(family), self.m, self.n, self.k, self.batch,
            "column" if self.column_major else "row", name_of(family.g), flags, self.fill, self.desc.alignment,
            "plan" if self.by_plan else "one-shot", ", own workspace" if self.own_workspace else "",
            ", side stream" if self.side_stream else "", "; ".join(self.layout_of(name) for name in self.tensors))

    def layout_of(self, name):
        tensor = self.tensors[name]
        kind = SCALE_MODES[self.family.modes[name[6:]]] if name.startswith("scale_") else name_of(tensor.dtype)
        return "%s %s%s ld %d stride %d at %d" % (
            name, kind, "" if tensor.by_rows else " transposed", tensor.ld, tensor.stride, tensor.start - GUARD)

    # what is in the tensors

    def fill_tensors(self):
        self.alpha = 1
        self.fill_operands()
        self.alpha = 1  # there is none here: what fill_operands leaves to it stays in P
        self.put_scaled("dy", 1)
        if self.has(BIAS):
            self.put("bias", self.values(tuple(self.items("bias").shape)))
        for name in self.backward_outputs:
            if self.has(GRADIENTS[name][1]):
                self.put(name, 4 * self.values(tuple(self.items(name).shape)))
        for name in self.forward_outputs:
            self.put_scale(name, self.rng.choice([1, 8, 32]))
        self.save()

    def widen(self, values):
        if not self.gated:  # there P may be stored in F16
            super().widen(values)

    def invert_scale(self):
        """of preact, between forward and backward"""
        if "scale_preact" in self.tensors:
            self.put("scale_preact", 1 / self.items("scale_preact").double())

    def save(self):
        for tensor in self.tensors.values():
            tensor.save()

    def halves(self, x):
        """value and gate"""
        first, second = x.split(self.n // 2, 2)
        return (second, first) if self.family.gate & GATE_FIRST else (first, second)

    def joined(self, value, gate):
        return torch.cat([gate, value] if self.family.gate & GATE_FIRST else [value, gate], 2)


# >>the reference

def preactivation(p):
    """P, E, what goes in early and may be rounded there if RELAXED, and whether P is exact"""
    a, b = p.read("a"), p.read("b")
    v, size = torch.matmul(a, b), torch.matmul(a.abs(), b.abs())
    early = v.abs()
    exact = p.fill == "integers" and not (p.both(*FP8) and float(size.max()) >= EXACT_LIMIT_FP8)
    if p.has(BIAS):
        bias = p.tensors["bias"].double()
        v, size = v + bias, size + bias.abs()
    error = (share_of_products(p) + share_of_cores(p)) * size + REFERENCE * size * p.both(I8)
    return v, error, early, exact and float(size.max()) < exact_limit(p)


def apply(p, x):
    """act, or the gate, of P"""
    activation, parameter = p.family.activation, p.parameter
    if not p.gated:
        return activate(activation, parameter, x)
    value, gate = p.halves(x)
    return value * activate(activation, parameter, gate)


def stored(p, name, value, error, terms, exact):
    dtype, spread = p.tensors[name].dtype, error + 4 * p.roundoff * terms
    if dtype not in NARROW:
        return Expected(value, bound_of(dtype, value, spread), exact)
    shorter = SHORTER * terms if p.family.activation > RELU and name == "y" else 0
    value = value * p.factors(name)
    return Expected(value, (spread + shorter) * abs(p.factors(name)) + p.roundoff * value.abs(), exact)


def forward(p):
    v, error, early, exact = preactivation(p)
    activation, parameter, zero = p.family.activation, p.parameter, torch.zeros_like(v)
    if p.flags & RELAXED and p.family.side["y"] in (F16, BF16):
        error, exact = error + roundoff(p.family.side["y"]) * early, False
    expected = {}
    if p.has(SAVED) and p.mask:
        expected["preact"] = Expected(v, zero if exact else error, exact)
    elif p.has(SAVED):
        expected["preact"] = stored(p, "preact", v, error, zero, exact)
    loose = LOOSE if p.flags & RELAXED and activation == GELU_TANH else 0
    own = off_by(activation) * (v.abs() + error) if activation > RELU else zero
    steep = slope(activation, parameter, v)
    result = apply(p, v)
    if p.gated:
        (value, gate), (value_error, gate_error), (_, own) = p.halves(v), p.halves(error), p.halves(own)
        if torch.is_tensor(steep):
            steep = p.halves(steep)[1]
        act = activate(activation, parameter, gate).abs()
        act_error = steep * gate_error + own + loose + 4 * p.roundoff * act
        spread = act * value_error + (value.abs() + value_error) * act_error
    else:
        spread = steep * error + own + loose
    exact = exact and activation <= RELU and float(result.abs().max()) < exact_limit(p)
    expected["y"] = stored(p, "y", result, spread, result.abs(), exact)
    return expected


def moved(function, x, error):
    """how far a function goes where x is off by so much, from eight places"""
    if not float(error.max()):
        return error
    at, most = function(x), torch.zeros_like(x)
    for part in (0.25, 0.5, 0.75, 1, -0.25, -0.5, -0.75, -1):
        most = torch.maximum(most, (function(x + part * error) - at).abs())
    return 1.5 * most


def first_derivative(p, x):
    return derivatives(p.family.activation, p.parameter, x)[0]


def slope_error(p, x, error):
    """by how much act'(x) may be off: where x is, and of itself"""
    first, magnitude, bend = derivatives(p.family.activation, p.parameter, x)
    own = off_by(p.family.activation) * (x.abs() + 1) * (1 + x * x) if p.family.activation > RELU else 0
    return first, (4 * magnitude + 2 * bend) * p.roundoff + own + moved(lambda at: first_derivative(p, at), x, error)


def upstream_of_product(p, dy, v, error):
    """G by autograd, and by how much it may be off before it is rounded"""
    leaf = v.clone().requires_grad_(True)
    with torch.enable_grad():
        g, = torch.autograd.grad(apply(p, leaf), leaf, dy)
    size = dy.abs()
    if p.family.activation <= RELU and not p.gated:
        return g, size * moved(lambda at: first_derivative(p, at), v, error)
    if not p.gated:
        return g, size * slope_error(p, v, error)[1] + 4 * p.roundoff * g.abs()
    (value, gate), (value_error, gate_error) = p.halves(v), p.halves(error)
    activation, parameter = p.family.activation, p.parameter
    act = activate(activation, parameter, gate)
    first, first_error = slope_error(p, gate, gate_error)
    act_error = 4 * p.roundoff * act.abs() + moved(lambda at: activate(activation, parameter, at), gate, gate_error)
    if activation > NONE:
        act_error = act_error + 2 * p.roundoff * (gate * first).abs() + off_by(activation) * gate.abs()
    of_gate = (value.abs() + value_error) * first_error + value_error * first.abs()
    return g, p.joined(size * act_error, size * of_gate) + 4 * p.roundoff * g.abs()


def upstream(p):
    """G, its error before it is rounded, and whether it is exact before"""
    dy = p.read("dy")
    zero = torch.zeros_like(dy)
    if p.plain:
        return dy, zero, p.fill == "integers"
    if p.has(SAVED) and p.mask:
        return torch.where(p.tensors["preact"].flags(p.tensors["preact"].before), dy, zero), zero, p.fill == "integers"
    if p.has(SAVED):
        v, exact = p.read("preact"), False
        error = torch.zeros_like(v)
    else:
        v, error, early, exact = preactivation(p)
        if p.flags & RELAXED and p.family.g in (F16, BF16):
            error, exact = error + roundoff(p.family.g) * early, False
        error = torch.zeros_like(v) if exact else error
    g, error = upstream_of_product(p, dy, v, error)
    return g, error, exact and p.mask


def rounding_of(p, g, error):
    """by how much it may be off after"""
    if p.plain and p.tensors["dy"].dtype == p.family.g and not p.family.modes["dy"]:
        return torch.zeros_like(g)
    known = (round_to(p.family.g, g) - g).abs()
    shorter = SHORTER if p.family.activation > RELU and p.family.g in (F16, BF16) else 0
    return torch.where(error == 0, known, (roundoff(p.family.g) + shorter) * (g.abs() + error) + LOWEST[p.family.g])


def gradients_of(p, g, size, error):
    """Those of a, b and bias by autograd, by their names; and in the same sums the magnitudes, and the errors of G."""
    def summed(upstream, absolute):
        leaves = [p.read("a"), p.read("b"), torch.zeros(p.batch, 1, p.n, dtype=F64, device=p.device)]
        leaves = [(x.abs() if absolute else x).requires_grad_(True) for x in leaves]
        with torch.enable_grad():
            found = torch.autograd.grad(torch.matmul(leaves[0], leaves[1]) + leaves[2], leaves, upstream)
        return {name: x.sum(0, keepdim=True) if name in p.shared else x for name, x in zip(GRADIENTS, found)}
    return summed(g, False), summed(size, True), summed(error, True)


def backward(p):
    g, error, exact = upstream(p)
    rounding = rounding_of(p, g, error)
    exact = exact and not float(rounding.max())
    kept = torch.zeros_like(rounding) if not p.flags & RELAXED else rounding
    value, size, spread = gradients_of(p, g, g.abs(), error + rounding)
    unrounded = gradients_of(p, g, g.abs(), error + kept)[2]["dbias"]
    length = {"da": p.n, "db": p.m, "dbias": p.m}
    expected = {}
    for name in p.backward_outputs:
        tensor, of = p.tensors[name], value[name]
        terms = length[name] * (p.batch if name in p.shared else 1)
        magnitude, off = size[name], unrounded if name == "dbias" else spread[name]
        if p.has(GRADIENTS[name][1]):
            old = tensor.items(tensor.before).double()
            of, magnitude = of + old, magnitude + old.abs()
        share = (4 + terms / 8) * p.roundoff + REFERENCE
        share += 2.0 ** -9 if p.tf32 and name != "dbias" else 0
        whole = exact and float(magnitude.max()) < exact_limit(p)
        expected[name] = Expected(of, bound_of(tensor.dtype, of, off + share * magnitude), whole)
    return expected


# >>running

def complaints(p, outputs, expected):
    found = [pytorch.compare(name, p, p.tensors[name], expected[name]) for name in outputs]
    for name, tensor in p.tensors.items():
        changed = tensor.changed(name in outputs)
        if changed:
            found.append("%s: %d elements changed that should not" % (name, changed))
    return [text for text in found if text]


# what makes a plan, runs it, and does both
FORWARD = api.plan_linear, api.run_linear, api.linear
BACKWARD = api.plan_linear_backward, api.run_linear_backward, api.linear_backward


def run_once(context, p, direction, plan, args, stream):
    _, run_plan, call = direction
    if not p.by_plan:
        call(context, p.desc, args, stream)
        return
    if not args.workspace:
        api.plan_prepare(plan, stream)
    run_plan(plan, args, stream)


def run_twice(context, p, direction, plan, args, outputs, stream):
    """what differs"""
    run_once(context, p, direction, plan, args, stream)
    first = {name: p.tensors[name].buffer.clone() for name in outputs}
    for name in outputs:
        p.tensors[name].buffer.copy_(p.tensors[name].before)
    run_once(context, p, direction, plan, args, stream)
    different = [name for name in outputs if not bool(p.tensors[name].same_bits(first[name]).all())]
    return ["%s: a second run gave other bits" % ", ".join(different)] if different else []


def solve(context, p, direction, args, outputs, reference, stream):
    """what is wrong, the route, and what explain says of it"""
    described = api.linear_desc.from_buffer_copy(p.desc)
    if not p.by_plan and not p.desc.alignment:
        described.alignment = min(p.alignment, 16)  # what a one-shot call takes it for
    plan = plan_of(direction[0], context, described)
    try:
        info = plan_info(plan)
        keeper = workspace_for(args, info.workspace_size, p.device) if p.own_workspace and p.by_plan else None
        found = []
        if p.repeats and info.deterministic:
            found = run_twice(context, p, direction, plan, args, outputs, stream)
        else:
            run_once(context, p, direction, plan, args, stream)
        found += complaints(p, outputs, reference(p))
        del keeper
        return found, info.route_name.decode(), explained(plan)
    finally:
        api.plan_destroy(plan)


def solve_both(context, p, stream, tally):
    """what is wrong, and what explain says of that direction"""
    p.promise_alignment()
    found, route, explanation = solve(context, p, FORWARD, p.forward_args(), p.forward_outputs, forward, stream)
    tally.routes["forward " + route] += 1
    if found:
        return ["forward: " + text for text in found], explanation
    p.invert_scale()
    p.save()
    try:
        found, route, explanation = solve(context, p, BACKWARD, p.backward_args(), p.backward_outputs, backward, stream)
    except api.Error as refusal:
        if refusal.status != api.UNSUPPORTED or p.batch == 1 and I8 not in (p.family.a, p.family.b):
            raise
        tally.notes[re.sub(r"\b[0-9]+\b", "N", str(refusal))] += 1
        return [], ""
    tally.routes["backward " + route] += 1
    if I8 in (p.family.a, p.family.b):
        found.append("I8 operands were not refused")
    return ["backward: " + text for text in found], explanation


def try_problem(context, options, index, device, tally, side):
    """False where the device can no longer be used"""
    name, explanation = "seed %d #%d" % (options.seed, index), ""
    try:
        p = Problem(options.seed, index, device)
        name = "seed %d %s" % (options.seed, p)
        if options.verbose:
            print(name, flush=True)
        if p.side_stream and side:
            side.wait_stream(torch.cuda.current_stream())  # p was filled there
            with torch.cuda.stream(side):
                found, explanation = solve_both(context, p, side.cuda_stream, tally)
            torch.cuda.current_stream().wait_stream(side)
        else:
            stream = torch.cuda.current_stream().cuda_stream if device.type == "cuda" else None
            found, explanation = solve_both(context, p, stream, tally)
        name = "seed %d %s" % (options.seed, p)  # with its alignment
    except RuntimeError as error:
        found = [str(error).splitlines()[0]]
    if found:
        tally.fail("%s: %s" % (name, "; ".join(found)), explanation)
    else:
        tally.passed += 1
    try:
        if found and device.type == "cuda":
            torch.cuda.synchronize()
    except RuntimeError as error:
        print("the device is lost: %s" % str(error).splitlines()[0])
        return False
    return True


def indices_of(options):
    if options.only is None:
        return range(options.first, options.first + options.count)
    if options.only.isdigit():
        return [int(options.only)]
    words = options.only.lower().split()
    numbers = [number for number in range(20 * options.count)
               if set(words) <= set(title_of(family_of(options.seed, number)).lower().split())]
    return [number * GROUP + i for number in numbers for i in range(GROUP)][:options.count]


def report(tally):
    for sentence, count in sorted(tally.notes.items()):
        print("refused as UNSUPPORTED, %d times: %s" % (count, sentence))


if __name__ == "__main__":
    sys.exit(pytorch.run_random(NAME, __doc__, 300, "the index of one problem, or words of its family, as 'silu gated recompute'",
                                indices_of, try_problem, [pytorch.check_rounding], pytorch.worst, report))
