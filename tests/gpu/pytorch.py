#!/usr/bin/env python3
"""Products of gemmepi against PyTorch in float64, on the GPU that PyTorch uses.

    python3 tests/gpu/pytorch.py [--count 1000] [--seed 1] [--only INDEX|new] [--host]

Random problems, made here and nowhere else, run in PyTorch's primary context, on its memory and its streams. The
reference is torch.matmul in float64 on the operands as stored, times their scales, torch.nn.functional's activations,
and autograd for their derivatives. Bounds are those of the manual, for products:

    |out - ref| <= u |ref| + L E + 4 u_acc T + smallest subnormal
    E = (4 + k/8) u_acc S   (TF32: 2^-9 S more; both operands fp8: 2^-10 S more for each 32 of k, of 128 at most unless fast)

and, as there under "Exact", problems of small integers come out bit-equal. These are added:
- BACKWARD: where the two terms of act' = act(x)/x + rest cancel, T has their magnitudes; and act' may be taken at
  x (1 + 2 u_acc) ("Element-wise"), which counts in its tails.
- The reference's own rounding: REFERENCE (|v| + E) in activations (times 1 + aux^2 for BACKWARD), and
  REFERENCE sum |v| in sums, those of I8 products among them. It counts for F64 and in far tails only.
- RELAXED: cuBLASLt's approximate tanh, LOOSE absolute, and one early rounding of 16-bit results.
- Two I8 operands multiply exactly, so S has the sum for its terms, and k of E counts 32 at most; where scales differ
  along k, blocks of 128 of the sum, and their number besides.
- A result of E4M3, E5M2 or I8 must be what a number within |scale| (L E + 4 u_acc T) + u_acc |ref| of the reference
  rounds to, saturated (2^-12 T more for the shorter activations). This file rounds by itself: torch's casts need not
  saturate.
- amax lies between the largest |v| less and the largest |v| plus its bound.
- I32 results are exact modulo 2^32, always.

Every output is NaN before (a mask and integers: random); all memory but the outputs' own elements must be as it was
after. Numbers between the scales are NaN.

--host runs the host device on CPU tensors, to try this file without a GPU. Problem INDEX is the same for any --count.
--only new leaves the problems out that have one type of 16 bits or more for both operands, and neither 8 bits nor a
scale anywhere else: a third of all.
"""
import argparse
import collections
import itertools
import math
import os
import random
import re
import sys
import tempfile
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as missing:
    print("skip random_problems_agree_with_pytorch: %s\n0 passed, 0 failed, 1 skipped" % missing)
    sys.exit(0)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))

from package import api, explained, gemmepi, plan_info, plan_of  # noqa: E402

# >>the C interface

def activations():
    """pairs of name and code, which alone of the header's constants have two digits"""
    with open(os.path.join(ROOT, "gemmepi.h"), encoding="utf-8") as header:
        found = re.findall(r"^#define GEMMEPI_(\w+) +0x([0-9a-f]{2})ull /\*", header.read(), re.MULTILINE)
    return [name for name, _ in found], [int(code, 16) for _, code in found]


ACTIVATIONS, CODES = activations()
globals().update((name, index) for index, name in enumerate(ACTIVATIONS))  # NONE, RELU and so on
FLAGS = ["BIAS", "AUX", "BACKWARD", "RESIDUAL", "BGRAD", "BGRAD_A", "BGRAD_B", "ACCUMULATE_BIAS_GRAD", "GATED",
         "GATE_FIRST"]
(BIAS, AUX, BACKWARD, RESIDUAL, BGRAD, BGRAD_A, BGRAD_B, ACCUMULATE_BIAS_GRAD, GATED,
 GATE_FIRST) = (0x400 << i for i in range(len(FLAGS)))
ANY_BGRAD = BGRAD | BGRAD_A | BGRAD_B
PROBLEM_FLAGS = ["RELAXED", "DEVICE_SCALARS", "FAST_ACCUMULATION", "AMAX_D", "AMAX_AUX", "ACCUMULATE"]
(RELAXED, DEVICE_SCALARS, FAST_ACCUMULATION, AMAX_D, AMAX_AUX,
 ACCUMULATE) = (0x1000000 << i for i in range(len(PROBLEM_FLAGS)))
F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
try:
    E4M3, E5M2, I8, I32 = torch.float8_e4m3fn, torch.float8_e5m2, torch.int8, torch.int32
except AttributeError as missing:
    print("skip random_problems_agree_with_pytorch: %s\n0 passed, 0 failed, 1 skipped" % missing)
    sys.exit(0)
DTYPE_NUMBERS = {F32: 1, F64: 2, F16: 3, BF16: 4, E4M3: 5, E5M2: 6, I8: 7, I32: 8}
FP8 = (E4M3, E5M2)
NARROW = (E4M3, E5M2, I8)  # these saturate, and may have scales
COMPUTE_DEFAULT, COMPUTE_F32, COMPUTE_TF32, COMPUTE_F64, COMPUTE_I32 = range(5)
SCALE_NONE, TENSOR, OUTER, VECTOR_128, BLOCK_128 = range(5)
SCALE_MODES = ["NONE", "TENSOR", "OUTER", "VECTOR_128", "BLOCK_128"]
MATRICES = ["a", "b", "c", "d", "aux", "residual"]  # what may have a scale

# >>rounding

# significant bits, exponent of the smallest subnormal, largest finite value: what torch's casts cannot be asked for
FORMATS = {E4M3: (4, -9, 448), E5M2: (3, -16, 57344)}


def round_to(dtype, x):
    """As the library stores doubles: to nearest even; E4M3, E5M2 and I8 saturate. In double."""
    if dtype == I8:
        return x.round().clamp(-128, 127).nan_to_num(0)
    if dtype == I32 or dtype == F64:
        return x
    if dtype not in FORMATS:
        return x.to(dtype).double()
    digits, lowest, most = FORMATS[dtype]
    x = x.clamp(-2 * most, 2 * most)
    exponent = (torch.frexp(x).exponent - digits).clamp(min=lowest).long()
    unit = torch.tensor([2.0 ** e for e in range(lowest, 17)], dtype=F64, device=x.device)[exponent - lowest]
    return ((x / unit).round() * unit).clamp(-most, most)


def check_rounding():
    """Within their ranges torch casts to fp8 alike: all values, the ties between them, and what is beside those."""
    for dtype in FP8:
        values = torch.arange(256, dtype=torch.uint8).view(dtype).double()
        values = values[values.isfinite()].unique()
        ties = (values[1:] + values[:-1]) / 2
        x = torch.cat([values, ties, ties * (1 + 2.0 ** -20), ties * (1 - 2.0 ** -20), torch.tensor([1e-9, -0.0])])
        assert bool((round_to(dtype, x) == x.to(dtype).double()).all()), dtype
        x = torch.tensor([1e30, float("inf"), float("-inf")], dtype=F64)
        assert round_to(dtype, x).tolist() == [FORMATS[dtype][2] * s for s in (1, 1, -1)]
    x = torch.tensor([0.5, 1.5, -2.5, 127.5, 1e9, -128.6, float("nan"), float("-inf")], dtype=F64)
    assert round_to(I8, x).tolist() == [0, 2, -2, 127, 127, -128, 0, -128]


# >>tensors

GUARD = 256  # elements around each tensor that nobody may touch; a multiple of 256 bytes, so offsets decide alignment
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Tensor:
    """`lines` runs of `length` elements, `ld` apart, in a buffer of NaN (integers: random ones); by_rows: lines are
    rows of what it means."""

    def __init__(self, dtype, lines, length, ld, stride, offset, batch, by_rows):
        self.dtype, self.lines, self.length, self.ld, self.stride = dtype, lines, length, ld, stride
        self.start, self.batch, self.by_rows = GUARD + offset, batch, by_rows
        self.before = None

    def allocate(self, device, generator):
        extent = (self.batch - 1) * self.stride + (self.lines - 1) * self.ld + self.length
        shape = (self.start + max(extent, 0) + GUARD,)
        if not self.dtype.is_floating_point:
            limits = torch.iinfo(self.dtype)
            self.buffer = torch.randint(limits.min, limits.max + 1, shape, dtype=self.dtype, device=device,
                                        generator=generator)
        elif self.dtype in FP8:
            self.buffer = torch.full(shape, 0x7f, dtype=torch.uint8, device=device).view(self.dtype)
        else:
            self.buffer = torch.full(shape, float("nan"), dtype=self.dtype, device=device)
        return self

    def lined(self, buffer, batch):
        return torch.as_strided(buffer, (batch, self.lines, self.length), (self.stride, self.ld, 1), self.start)

    def turned(self, lined):
        return lined if self.by_rows else lined.transpose(1, 2)

    def items(self, buffer):
        """[batch, rows, columns] as stored: one item where all share it"""
        return self.turned(self.lined(buffer, 1 if self.stride == 0 else self.batch))

    def double(self):
        """[batch, rows, columns] as it was before the run"""
        return self.turned(self.lined(self.before, self.batch)).double()

    def pointer(self):
        return self.buffer.data_ptr() + self.start * self.buffer.element_size()

    def save(self):
        self.before = self.buffer.clone()

    def same_bits(self, buffer):
        kind = INTEGERS[self.buffer.element_size()]
        return self.buffer.view(kind) == buffer.view(kind)

    def changed(self, written):
        """how many elements are not as they were, those of an output aside"""
        same = self.same_bits(self.before)
        if written:
            self.lined(same, 1 if self.stride == 0 else self.batch).fill_(True)
        return int((~same).sum())


class Mask(Tensor):
    """RELU's: one bit an element, ld and stride multiples of 128 bits. In memory, and in Tensor, bytes."""

    def __init__(self, lines, bits, ld, stride, offset, batch, by_rows):
        super().__init__(torch.uint8, lines, (bits + 7) // 8, ld // 8, stride // 8, offset, batch, by_rows)
        self.bits = bits

    def unpacked(self, buffer):
        bytes_ = self.lined(buffer, self.batch).int()
        bits = bytes_.unsqueeze(-1) >> torch.arange(8, dtype=torch.int32, device=buffer.device) & 1
        return bits.reshape(self.batch, self.lines, -1).bool()

    def flags(self, buffer):
        return self.turned(self.unpacked(buffer)[..., :self.bits])

    def changed(self, written):
        padding = (self.unpacked(self.buffer) != self.unpacked(self.before))[..., self.bits:]
        return super().changed(written) + int(padding.sum())


# >>problems

KINDS = [(F32, COMPUTE_F32), (BF16, COMPUTE_F32), (F64, COMPUTE_F64), (F16, COMPUTE_F32), (F32, COMPUTE_TF32)]
NEW_KINDS = ["fp8", "i8", "mixed", "fp8", "i32"]  # operands; i32: I8 with a result in I32
FP8_PAIRS = [(E4M3, E4M3), (E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3), (E5M2, E5M2)]
FORMS = [(activation, backward) for backward in (0, BACKWARD) for activation in range(len(ACTIVATIONS))]
# Of 24 problems in a row 8 are of one family of KINDS and 16 of four of NEW_KINDS. A family shares its kernels:
# compiling one takes longer than running it.
CYCLE, OLD, GROUP = 24, 8, 4

Family = collections.namedtuple("Family", "a b compute activation flags side modes amax")


def random_flags(rng, activation, backward):
    flags = backward
    flags |= BIAS if rng.random() < (0.2 if backward else 0.5) else 0
    flags |= AUX if not backward and rng.random() < (0.8 if activation == RELU else 0.4) else 0
    flags |= RESIDUAL if rng.random() < 0.25 else 0
    may_sum = backward or activation == NONE
    draw = rng.random()
    flags |= BGRAD if may_sum and draw < 0.5 else BGRAD_A if draw > 0.9 else BGRAD_B if draw > 0.8 else 0
    if flags & ANY_BGRAD and rng.random() < 0.35:
        flags |= ACCUMULATE_BIAS_GRAD
    return as_cublaslt(flags) if activation <= GELU_TANH and rng.random() < 0.5 else flags


def as_cublaslt(flags):
    """what cuBLASLt has an epilogue for"""
    flags &= ~(RESIDUAL | ACCUMULATE_BIAS_GRAD | (BIAS if flags & BACKWARD else 0))
    return flags if not flags & (BGRAD_A | BGRAD_B) else flags & (BGRAD_A | BGRAD_B | BACKWARD)


SIDES = ["c", "d", "aux", "residual", "bias", "bias_grad"]


def random_side_dtypes(rng, dtype):
    """Of c, d, aux, residual, bias and bias_grad: all the operands', D in F32, or any."""
    style = rng.choice(["same", "same", "wide", "any"])
    if dtype in (F64, F32) or style == "same":
        return dict.fromkeys(SIDES, dtype)
    if style == "wide":
        return dict.fromkeys(SIDES, F32)
    return {name: rng.choice([dtype, F32]) for name in SIDES}


def default_dtype(name, d):
    """what the desc's 0 stands for beside a result in d"""
    if d in FP8:
        return d if name in ("d", "aux") else BF16
    return F32 if d == I8 and name in ("bias", "bias_grad") else d


def random_new_side_dtypes(rng):
    """The same beside operands of NEW_KINDS: the defaults for a random D, mostly, or any that are accepted."""
    d = rng.choice([BF16, BF16, F16, F32, E4M3, E4M3, E5M2, I8, I8])
    side = {name: default_dtype(name, d) for name in SIDES}
    if rng.random() < 0.4:
        names = SIDES if rng.random() < 0.5 else [rng.choice(SIDES)]
        side.update((name, rng.choice([F32, F16, BF16] if name.startswith("bias") else [F32, F16, BF16, *NARROW]))
                    for name in names if name != "d")
    return side


def random_modes(rng, dtypes, flags, activation):
    """of the scales of the matrices that may have one"""
    modes = {name: int(dtypes[name] in NARROW and rng.random() < 0.6) for name in MATRICES}
    if flags & (AUX | BACKWARD) == 0 or activation == RELU:
        modes["aux"] = SCALE_NONE
    if not flags & RESIDUAL:
        modes["residual"] = SCALE_NONE
    both = rng.choice([TENSOR, TENSOR, OUTER, VECTOR_128, BLOCK_128]) if rng.random() < 0.4 else None
    for name in "ab":
        if dtypes[name] in NARROW:
            modes[name] = rng.randint(SCALE_NONE, BLOCK_128) if both is None else both
    return modes


def random_amax(rng, flags, activation, share):
    amax = AMAX_D if rng.random() < share else 0
    return amax | (AMAX_AUX if flags & AUX and activation != RELU and rng.random() < 2 * share else 0)


def old_family(rng, number):
    """5 kinds and 14 forms have no common divisor: 70 families have met each kind with each form."""
    dtype, compute = KINDS[number % len(KINDS)]
    activation, backward = FORMS[number % len(FORMS)]
    flags = random_flags(rng, activation, backward)
    side = random_side_dtypes(rng, dtype)
    return Family(dtype, dtype, compute, activation, flags, side, dict.fromkeys(MATRICES, SCALE_NONE),
                  random_amax(rng, flags, activation, 0.1))


def random_mixture(rng):
    """two types, and how they are multiplied"""
    a, b = rng.sample([F32, F16, BF16, *NARROW], 2)
    wide = F32 in (a, b) or F16 in (a, b) and BF16 in (a, b)
    return a, b, COMPUTE_TF32 if wide and rng.random() < 0.3 else COMPUTE_F32


def new_family(rng, number):
    kind = NEW_KINDS[number % len(NEW_KINDS)]
    activation, backward = FORMS[number % len(FORMS)]
    flags = random_flags(rng, activation, backward)
    if kind == "i32":
        activation = rng.choice([NONE, RELU])
        flags = random_flags(rng, activation, 0) & ~BGRAD
        flags &= ~(0 if flags & ANY_BGRAD else ACCUMULATE_BIAS_GRAD)
        return Family(I8, I8, COMPUTE_I32, activation, flags, dict.fromkeys(SIDES, I32),
                      dict.fromkeys(MATRICES, SCALE_NONE), 0)
    if kind == "mixed":
        a, b, compute = random_mixture(rng)
    else:
        a, b = (I8, I8) if kind == "i8" else rng.choice(FP8_PAIRS)
        compute = rng.choice([COMPUTE_F32, COMPUTE_I32]) if kind == "i8" else COMPUTE_F32
    side = random_new_side_dtypes(rng)
    modes = random_modes(rng, dict(side, a=a, b=b), flags, activation)
    return Family(a, b, compute, activation, flags, side, modes, random_amax(rng, flags, activation, 0.3))


def is_new(index):
    return index % CYCLE >= OLD


def family_of(seed, index):
    cycle, place = divmod(index, CYCLE)
    number = cycle * ((CYCLE - OLD) // GROUP) + (place - OLD) // GROUP if is_new(index) else cycle
    rng = random.Random("family %d %d %d" % (seed, is_new(index), number))
    return new_family(rng, number) if is_new(index) else old_family(rng, number)


def name_of(dtype):
    return {E4M3: "e4m3", E5M2: "e5m2"}.get(dtype, str(dtype)[6:])


def round_up(x, unit):
    return -(-x // unit) * unit


def random_size(rng, top):
    draw = rng.random()
    if draw < 0.15:
        return rng.randint(1, 9)
    if draw < 0.6:
        return rng.randint(1, min(300, top))
    if draw < 0.85:
        return 8 * rng.randint(1, min(38, top // 8))
    return rng.randint(1, top) if draw < 0.93 else round_up(rng.randint(1, top), 16)


class Problem:
    def __init__(self, seed, index, device):
        self.rng = rng = random.Random("problem %d %d" % (seed, index))
        self.index, self.device, self.family = index, device, family_of(seed, index)
        self.generator = torch.Generator(device).manual_seed(rng.getrandbits(60))
        family = self.family
        # sizes, strides and transposes as cuBLASLt's own kernels for 8 bits want them, or as other fast ones like them
        self.native = family.a in NARROW and family.b in NARROW and rng.random() < 0.5
        self.step = 16 if self.native else 8 if rng.random() < 0.4 else 1
        self.unit = rng.choice(["16 bytes", "256 bytes"] if self.native else ["element", "16 bytes", "256 bytes"])
        self.column_major = rng.random() < 0.4
        self.draw_sizes()
        self.draw_scalars()
        self.flags = (RELAXED if rng.random() < 0.15 else 0) | (DEVICE_SCALARS if rng.random() < 0.1 else 0)
        self.flags |= family.amax | (FAST_ACCUMULATION if self.both(*FP8) and rng.random() < 0.3 else 0)
        self.fill = rng.choice(["normal", "normal", "positive", "cancelling", "integers"])
        if (family.a in NARROW or family.b in NARROW) and rng.random() < 0.15:
            self.fill = "codes"
        self.by_plan, self.side_stream, self.own_workspace, self.repeats = (rng.random() < x
                                                                             for x in (0.5, 0.3, 0.3, 0.15))
        given = rng.choice([None, None, 0, 0.3, -0.2, 1.7]) if family.activation in (LEAKY_RELU, ELU) else None
        self.parameter = {LEAKY_RELU: 0.01, ELU: 1}.get(family.activation, 0) if given is None else given
        self.desc = api.matmul_desc(m=self.m, n=self.n, k=self.k, batch=rng.choice([0, 1]) if self.batch == 1 else self.batch,
                                    order=int(self.column_major), has_parameter=given is not None, activation_parameter=given or 0,
                                    epilogue=CODES[family.activation] | family.flags)
        self.desc.compute = COMPUTE_TF32 if self.tf32 else rng.choice([COMPUTE_DEFAULT, family.compute])
        self.tensors, self.in_place = {}, []
        self.draw_tensors()
        self.desc.flags = self.flags
        self.fill_tensors()

    tf32 = property(lambda self: self.family.compute == COMPUTE_TF32)
    whole = property(lambda self: self.family.side["d"] == I32)
    fast = property(lambda self: bool(self.flags & FAST_ACCUMULATION))
    along_k = property(lambda self: max(self.family.modes["a"], self.family.modes["b"]) >= VECTOR_128)
    roundoff = property(lambda self: roundoff(F64 if self.family.a == F64 else F32))  # of the accumulator

    def has(self, flag):
        return bool(self.family.flags & flag)

    def both(self, *dtypes):
        return self.family.a in dtypes and self.family.b in dtypes

    def operands(self):
        """in words"""
        a, b = name_of(self.family.a), name_of(self.family.b)
        more = " tf32" if self.tf32 else " fast" if self.fast else " to i32" if self.whole else ""
        return (a if a == b else "%s x %s" % (a, b)) + more

    # shapes and numbers

    def draw_sizes(self):
        rng, host = self.rng, self.device.type == "cpu"
        top = 1500 if not host else 192 if self.along_k else 96
        self.m, self.n = random_size(rng, top), random_size(rng, top)
        draw = rng.random()
        self.k = (0 if draw < 0.015 else rng.randint(1, 16) if draw < 0.1 else
                  rng.randint(1, 200 if host else 4096) if draw < 0.3 else random_size(rng, min(300, top)))
        if self.along_k and self.k and rng.random() < 0.6:
            self.k = rng.randint(1, 700)
        if self.family.a in NARROW and rng.random() < (0.05 if host else 0.2):
            self.k = rng.randint(1, 2048)
        self.m, self.n, self.k = (round_up(x, self.step) for x in (self.m, self.n, self.k))
        self.batch = rng.choice([1, 1, 1, 2, 3, 4])

    def draw_scalars(self):
        rng = self.rng
        if self.whole:
            some = [rng.randint(-1000, 1000), rng.randint(-2 ** 31, 2 ** 31 - 1)]
            self.alpha, self.beta = rng.choice([1, 1, -1] + some), rng.choice([0, 0, 1] + some)
            return
        self.alpha = rng.choice([1, 1, rng.uniform(-2, 2), -0.5, 0 if rng.random() < 0.2 else 2])
        self.beta = rng.choice([0, 0, 1, rng.uniform(-2, 2)])

    def integers(self, shape, low, high):
        return torch.randint(low, high + 1, shape, device=self.device, generator=self.generator).double()

    def values(self, shape):
        """numbers as self.fill has them, of magnitude 1 but for integers"""
        if self.fill == "integers":
            return self.integers(shape, -3, 3)
        x = torch.randn(shape, dtype=F64, device=self.device, generator=self.generator)
        return x.abs() if self.fill == "positive" else x

    # layouts

    def offset(self, dtype):
        size = dtype.itemsize
        step = {"element": size, "16 bytes": 16, "256 bytes": 256}[self.unit]
        return self.rng.randint(0, 15 if step < 16 else 3) * step // size

    def draw_layout(self, lines, length, mask, output):
        """ld, batch stride and what of both the desc says"""
        rng = self.rng
        unit = 128 if mask else self.step
        ld = default = round_up(length, 128) if mask else max(length, 1)
        if rng.random() < 0.6:
            ld = round_up(length, unit) + unit * rng.randint(0, 2 if unit > 1 else 9)
        item = round_up((lines - 1) * ld + length, unit)
        if self.batch > 1 and not output and rng.random() < 0.25:
            stride = 0
        elif self.batch > 1 and not mask and rng.random() < 0.1:  # item after item within a line
            stride = ld
            ld *= self.batch
        else:
            stride = max(0, item + unit * rng.randint(0, 5)) if self.batch > 1 or rng.random() < 0.5 else 0
        return max(ld, 1), stride, 0 if ld == default and rng.random() < 0.7 else max(ld, 1)

    def default_of_matrix(self, name):
        """what the desc's 0 stands for"""
        if name == "d" and self.family.a in FP8 and not self.family.modes["d"] and not self.flags & AMAX_D:
            return BF16
        return self.family.a if name in "abd" else default_dtype(name, self.family.side["d"])

    def draw_matrix(self, name, dtype, rows, columns, output=False):
        transposed = name in "ab" and self.rng.random() < 0.5
        if self.native and name in "ab" and self.rng.random() < 0.8:  # lines along k
            transposed = (name == "a") == self.column_major
        by_rows = self.column_major == transposed
        lines, length = (rows, columns) if by_rows else (columns, rows)
        mask = name == "aux" and self.family.activation == RELU
        ld, stride, ld_said = self.draw_layout(lines, length, mask, output)
        place = (self.offset(torch.uint8 if mask else dtype), self.batch, by_rows)
        tensor = Mask(lines, length, ld, stride, *place) if mask else Tensor(dtype, lines, length, ld, stride, *place)
        is_default = mask or dtype == self.default_of_matrix(name)
        said = 0 if mask or (is_default and self.rng.random() < 0.5) else DTYPE_NUMBERS[dtype]
        if name == "a" and dtype != F32 or name == "c":
            said = DTYPE_NUMBERS[dtype]  # no default there, or one that has the layout too
        setattr(self.desc, name, api.matrix(said, int(transposed), ld_said, stride, self.scale(name)))
        self.tensors[name] = tensor.allocate(self.device, self.generator)

    def scale(self, name):
        """What the desc says, and the numbers, with nothing in them yet."""
        mode, rng = self.family.modes[name], self.rng
        if mode == SCALE_NONE:
            return api.scale()
        outer, steps = self.n if name == "b" else self.m, -(-self.k // 128)
        lines, length, ld = {TENSOR: (1, 1, 1), OUTER: (1, outer, outer), VECTOR_128: (steps, outer, outer),
                             BLOCK_128: (-(-outer // 128), steps, round_up(steps, 4))}[mode]
        stride = rng.choice([0, round_up(max(1, lines) * ld, 4) + rng.choice([0, 0, 4, 7])])
        offset = rng.randint(0, 3) * (1 if mode == TENSOR else 4)
        tensor = Tensor(F32, lines, length, ld, stride, offset, self.batch, True)
        self.tensors["scale_" + name] = tensor.allocate(self.device, self.generator)
        return api.scale(mode, stride)

    def draw_vector(self, name, along_rows, output=False):
        dtype, length = self.family.side[name], self.m if along_rows else self.n
        item = round_up(length, self.step) + 8 * self.rng.randint(0, 1)
        stride = 0 if self.rng.random() < 0.5 else item
        is_default = dtype == default_dtype(name, self.family.side["d"])
        said = 0 if is_default and self.rng.random() < 0.5 else DTYPE_NUMBERS[dtype]
        setattr(self.desc, name, api.vector(said, stride))
        tensor = Tensor(dtype, 1, length, length, stride, self.offset(dtype), self.batch, not along_rows)
        self.tensors[name] = tensor.allocate(self.device, self.generator)

    def draw_beside_d(self, name):
        """c, residual, or what BACKWARD reads: D itself, or a matrix of its own"""
        d, dtype = self.tensors["d"], self.family.side[name]
        may_be_d = dtype == d.dtype and not (name == "aux" and self.family.activation == RELU)
        if may_be_d and self.rng.random() < 0.2:
            self.tensors[name] = d
            self.in_place.append(name)
            setattr(self.desc, name, api.matrix(DTYPE_NUMBERS[dtype], 0, d.ld, d.stride, self.scale(name)))
        elif (name == "c" and dtype == default_dtype(name, d.dtype) and not self.family.modes["c"]
              and self.rng.random() < 0.4):  # all of c by default: as D lies
            tensor = Tensor(dtype, d.lines, d.length, d.ld, d.stride, self.offset(dtype), self.batch, d.by_rows)
            self.tensors[name] = tensor.allocate(self.device, self.generator)
        else:
            self.draw_matrix(name, dtype, self.m, self.n)

    def may_accumulate(self):
        family = self.family
        return (family.activation == NONE and not self.has(BACKWARD | AUX | BGRAD) and not family.modes["c"]
                and not family.modes["d"])

    def accumulate(self):
        """D is C, with beta 1, and nobody says so but the flag"""
        self.flags |= ACCUMULATE
        self.beta, self.beta_given = 1, False
        self.tensors["c"] = self.tensors["d"]
        self.in_place.append("c")

    def draw_tensors(self):
        family, sides = self.family, self.family.side
        self.draw_matrix("a", family.a, self.m, self.k)
        self.draw_matrix("b", family.b, self.k, self.n)
        self.draw_matrix("d", sides["d"], self.m, self.n, output=True)
        # C where it is not read: NULL, or there and all NaN. With scalars on the device it is needed.
        self.beta_given = self.beta != 0 or self.rng.random() < 0.5
        on_device = bool(self.flags & DEVICE_SCALARS) and self.beta_given
        if self.may_accumulate() and self.rng.random() < 0.5:
            self.accumulate()
        elif self.beta != 0:
            self.draw_beside_d("c")
        elif on_device or self.beta_given and self.rng.random() < 0.5:
            self.draw_matrix("c", sides["c"], self.m, self.n)
        else:
            self.desc.c = api.matrix(DTYPE_NUMBERS[sides["c"]], scale=self.scale("c"))
            if self.rng.random() < 0.5:
                self.tensors.pop("scale_c", None)
        if self.has(BACKWARD):
            self.draw_beside_d("aux")
        if self.has(AUX):
            self.draw_matrix("aux", sides["aux"], self.m, self.n, output=True)
        if self.has(RESIDUAL):
            self.draw_beside_d("residual")
        if self.has(BIAS):
            self.draw_vector("bias", self.column_major)
        if self.has(ANY_BGRAD):
            self.draw_vector("bias_grad", self.has(BGRAD_A) or self.has(BGRAD) and self.column_major, output=True)
        self.outputs = ["d"] + ["aux"] * self.has(AUX) + ["bias_grad"] * self.has(ANY_BGRAD)
        for name, flag in [("amax_d", AMAX_D), ("amax_aux", AMAX_AUX)]:
            if self.flags & flag:
                tensor = Tensor(F64 if family.a == F64 else F32, 1, 1, 1, 0, self.rng.randint(0, 3), 1, True)
                self.tensors[name] = tensor.allocate(self.device, self.generator)
                self.outputs.append(name)

    # what is in the tensors. An element is `grain` times a number of magnitude 1; where there is a scale, that takes
    # it to `level`.

    def items(self, name):
        return self.tensors[name].items(self.tensors[name].buffer)

    def put(self, name, x):
        self.items(name).copy_(round_to(self.tensors[name].dtype, x))

    def grain(self, dtype, level, scaled):
        rng = self.rng
        if self.fill == "integers":
            return 1
        if dtype == I8:
            return 40 if scaled else rng.choice([3, 40])
        return rng.choice([1, 8]) if scaled else level

    def put_scale(self, name, level):
        if "scale_" + name not in self.tensors:
            return
        shape = tuple(self.items("scale_" + name).shape)
        if self.fill == "integers":
            self.put("scale_" + name, 2.0 ** self.integers(shape, -1, 1))
            return
        uniform = torch.rand(shape, dtype=F64, device=self.device, generator=self.generator)
        self.put("scale_" + name, level * 2 ** (3 * uniform - 1.5) * self.rng.choice([1] * 9 + [-1]))

    def put_scaled(self, name, level):
        """of what is read: elements that are, times their scales, of this magnitude"""
        dtype = self.tensors[name].dtype
        grain = self.grain(dtype, level, self.family.modes[name])
        self.put(name, grain * self.values(tuple(self.items(name).shape)))
        self.put_scale(name, level / grain)

    def put_codes(self, name):
        """Any element that is a number. Returns their magnitude."""
        dtype, items = self.tensors[name].dtype, self.items(name)
        codes = self.integers(tuple(items.shape), 0, 255).to(torch.uint8)
        if dtype == I8:
            items.copy_(codes.view(I8))
            return 74
        codes = torch.where(codes % 128 > (0x7e if dtype == E4M3 else 0x7b), codes - 4, codes)
        items.copy_(codes.view(dtype))
        return 100 if dtype == E4M3 else 10000

    def fill_operands(self):
        """a and b. Magnitudes that no scale takes back are left to alpha, mostly."""
        dtypes, left = dict(a=self.family.a, b=self.family.b), 1.0
        level = dict(a=1, b=self.rng.choice([0.3, 1, 3]) / max(1, self.k) ** 0.5)
        values = {name: self.values(tuple(self.items(name).shape)) for name in "ab"}
        half = self.k // 2
        if self.fill == "cancelling" and half:
            values["a"][:, :, half:2 * half] = values["a"][:, :, :half].clone()
            values["b"][:, half:2 * half, :] = -values["b"][:, :half, :].clone()
        elif self.fill == "integers":
            self.widen(values)
        for name in "ab":
            scaled = self.family.modes[name]
            if self.fill == "codes" and dtypes[name] in NARROW:
                grain = self.put_codes(name)
            else:
                grain = self.grain(dtypes[name], level[name], scaled)
                self.put(name, grain * values[name])
            self.put_scale(name, level[name] / grain)
            left *= 1 if scaled else level[name] / grain
        if self.fill != "integers" and not self.whole and self.rng.random() < 0.8:
            self.alpha *= left

    def widen(self, values):
        """Small integers to larger ones, where sums remain exact."""
        family = self.family
        if self.both(I8) and self.k <= 800:
            for name in "ab":
                values[name] = self.integers(tuple(values[name].shape), -100, 100)
        elif F32 in (family.a, family.b) and not self.tf32 and self.k <= 900:
            # 12 significant bits in one operand, which TF32 would round, against -1, 0 and 1
            wide = self.rng.choice([name for name in "ab" if getattr(family, name) == F32])
            narrow = "b" if wide == "a" else "a"
            values[narrow] = values[narrow].clamp(-1, 1)
            values[wide] = self.integers(tuple(values[wide].shape), 2048, 4095) * values[wide].sign()

    def fill_whole(self):
        """I32: any, or small ones"""
        for name in ["c"] * (self.beta != 0) + ["bias", "residual"] + ["bias_grad"] * self.has(ACCUMULATE_BIAS_GRAD):
            if name in self.tensors:
                top = self.rng.choice([1000, 2 ** 31 - 1])
                self.put(name, self.integers(tuple(self.items(name).shape), -top - 1, top))

    def fill_results(self):
        """The scales of what is stored: results that fill the type, or leave it at either end."""
        for name in ["d"] + ["aux"] * self.has(AUX):
            most = 100 if self.family.side[name] == I8 else 64
            self.put_scale(name, self.rng.choice([1, 8, most / 2, most / 2, 4096]))

    def fill_tensors(self):
        if self.fill == "integers" and not self.whole:
            self.alpha = self.rng.choice([1, 1, -1, 2])
            if self.beta and not self.flags & ACCUMULATE:
                self.beta = self.rng.choice([1, -1])
        self.fill_operands()
        if self.whole:
            self.fill_whole()
        else:
            self.fill_beside()
            self.fill_results()
        for tensor in self.distinct():
            tensor.save()

    def fill_beside(self):
        for name in ["c"] * (self.beta != 0) + ["residual"]:
            if name in self.tensors:
                self.put_scaled(name, 1)
        if self.has(BIAS):
            self.put("bias", self.values(tuple(self.items("bias").shape)))
        if self.has(ACCUMULATE_BIAS_GRAD):
            self.put("bias_grad", 4 * self.values(tuple(self.items("bias_grad").shape)))
        if self.has(BACKWARD) and self.family.activation != RELU:
            self.put_scaled("aux", self.rng.choice([1, 3]))

    def distinct(self):
        return list({id(tensor): tensor for tensor in self.tensors.values()}.values())

    # for the library

    def args(self):
        args = api.matmul_args()
        for name, tensor in self.tensors.items():
            if name != "c" or not self.flags & ACCUMULATE:
                setattr(args, name, tensor.pointer())
        kind = self.device if self.flags & DEVICE_SCALARS else "cpu"
        given = [self.alpha, self.beta]
        if self.whole and self.flags & DEVICE_SCALARS:  # the nearest whole numbers are taken there
            given = [x + self.rng.uniform(-0.4, 0.4) for x in given]
        self.scalars = torch.tensor(given, dtype=F64, device=kind)
        if self.alpha != 1 or self.rng.random() < 0.5:
            args.alpha = self.scalars.data_ptr()
        if self.beta_given:
            args.beta = self.scalars.data_ptr() + 8
        return args

    def promise_alignment(self):
        """What all pointers but scales and amax are multiples of, said in the desc or left to its default where that
        holds."""
        bits = 256
        for name, tensor in self.tensors.items():
            bits |= 0 if name.startswith(("scale_", "amax_")) else tensor.pointer()
        self.alignment = bits & -bits
        if not self.by_plan:
            self.desc.alignment = self.rng.choice([0, self.alignment])
        elif self.alignment < 16:
            self.desc.alignment = self.alignment
        else:
            self.desc.alignment = self.rng.choice([0, 16, self.alignment])

    def layout_of(self, name):
        """in words"""
        tensor, said, words = self.tensors[name], getattr(self.desc, name, None), [name]
        if name.startswith("scale_"):
            words.append(SCALE_MODES[self.family.modes[name[6:]]])
        else:
            words.append(name_of(tensor.dtype))
        words.append("transposed" if getattr(said, "transposed", 0) else "")
        words.append("ld %d stride %d at %d" % (tensor.ld, tensor.stride, tensor.start - GUARD))
        words.append("(is d)" if name in self.in_place else "")
        return " ".join(word for word in words if word)

    def __str__(self):
        epilogue = "|".join([ACTIVATIONS[self.family.activation]] +
                            [name for i, name in enumerate(FLAGS) if self.has(BIAS << i)])
        flags = "".join(" " + name for i, name in enumerate(PROBLEM_FLAGS) if self.flags & RELAXED << i)
        return ("#%d %s %s m %d n %d k %d batch %d %s-major alpha %r beta %r%s%s, %s, alignment %d, %s%s%s; %s" % (
            self.index, self.operands(), epilogue, self.m, self.n, self.k, self.batch,
            "column" if self.column_major else "row", self.alpha, self.beta,
            "" if self.beta_given else " (NULL)", flags, self.fill, self.desc.alignment,
            "plan" if self.by_plan else "one-shot",
            ", own workspace" if self.own_workspace else "", ", side stream" if self.side_stream else "",
            "; ".join(self.layout_of(name) for name in self.tensors)))

    # what the tensors stand for

    def factors(self, name):
        """The scales of a matrix: of shape [batch, rows, columns] of op(), or what broadcasts to it; or 1."""
        mode = self.family.modes[name]
        if mode == SCALE_NONE:
            return 1
        x = self.tensors["scale_" + name].double()
        if mode == VECTOR_128 or mode == OUTER:
            x = x.transpose(1, 2)
        if mode == BLOCK_128:
            x = x.repeat_interleave(128, 1)[:, :self.n if name == "b" else self.m]
        if mode >= VECTOR_128:
            x = x.repeat_interleave(128, 2)[:, :, :self.k]
        return x.transpose(1, 2) if name == "b" else x

    def read(self, name):
        """[batch, rows, columns] as it was before the run, times its scales"""
        return self.tensors[name].double() * self.factors(name)


# >>the reference

REFERENCE = 2.0 ** -51  # what torch's float64 activations and sums may be off by, relative to what goes in
LOOSE = 2e-5            # RELAXED, forward: 5e-6 was seen
EXACT_LIMIT = 2.0 ** 22
EXACT_LIMIT_FP8 = 2.0 ** 12
SHORTER = 2.0 ** -12    # what activations of results of 8 bits may be off by
LOWEST = {F64: 5e-324, F32: 2.0 ** -149, F16: 2.0 ** -24, BF16: 2.0 ** -133}

Expected = collections.namedtuple("Expected", "value bound exact")


def softplus(x):
    return torch.logaddexp(x, torch.zeros_like(x))  # F.softplus is x from 20 on


def hardsigmoid(x):  # F.hardsigmoid has no second derivative; NaN stays NaN
    outside = torch.where(x >= 3, torch.ones_like(x), torch.where(x <= -3, torch.zeros_like(x), x.detach()))
    return torch.where((x > -3) & (x < 3), (x + 3) / 6, outside)


FORMS_OF = {
    NONE: lambda x, p: x,
    RELU: lambda x, p: torch.relu(x),
    GELU_TANH: lambda x, p: F.gelu(x, approximate="tanh"),
    GELU_ERF: lambda x, p: F.gelu(x, approximate="none"),
    SILU: lambda x, p: F.silu(x),
    SIGMOID: lambda x, p: torch.sigmoid(x),
    TANH: lambda x, p: torch.tanh(x),
    LEAKY_RELU: lambda x, p: torch.where(x > 0, x, p * x),
    ELU: lambda x, p: torch.where(x > 0, x, p * torch.expm1(torch.where(x > 0, torch.zeros_like(x), x))),
    SQUARED_RELU: lambda x, p: torch.relu(x) * torch.relu(x),
    QUICK_GELU: lambda x, p: x * torch.sigmoid(1.702 * x),
    SOFTPLUS: lambda x, p: softplus(x),
    HARDSWISH: lambda x, p: torch.where(x <= -3, 0 * x, torch.where(x >= 3, x, x * (x + 3) / 6)),
    MISH: lambda x, p: x * torch.tanh(softplus(x)),
    HARDSIGMOID: lambda x, p: hardsigmoid(x)}


def activate(activation, parameter, x):
    form = FORMS_OF.get(activation)
    return form(x, parameter) if form else getattr(F, ACTIVATIONS[activation].lower())(x)


def off_by(activation):
    """what `activate` may be off by; a function of PyTorch's may hold constants of F32"""
    return REFERENCE if activation in FORMS_OF else 2.0 ** -24


def slope(activation, parameter, v):
    """the largest |act'| near v"""
    if activation == SQUARED_RELU:
        return 2.2 * v.clamp(min=0) + 1
    return {GELU_TANH: 1.13, GELU_ERF: 1.13, SILU: 1.1, QUICK_GELU: 1.1, MISH: 1.1, HARDSWISH: 1.5,
            LEAKY_RELU: max(1, abs(parameter)), ELU: max(1, abs(parameter))}.get(activation, 1)


def derivatives(activation, parameter, at):
    """act'(x), the magnitudes of its terms act(x)/x and the rest, and |x act''(x)|, by autograd"""
    if activation == NONE:
        one = torch.ones_like(at)
        return one, one, torch.zeros_like(at)
    x = at.clone().requires_grad_(True)
    y = activate(activation, parameter, x)
    first, = torch.autograd.grad(y.sum(), x, create_graph=True)
    second = torch.autograd.grad(first.sum(), x)[0] if first.requires_grad else torch.zeros_like(x)
    first, y = first.detach(), y.detach()
    if activation in (SIGMOID, TANH, LEAKY_RELU, ELU, SQUARED_RELU, SOFTPLUS):
        magnitude = first.abs()
    else:
        mean = torch.where(at == 0, first, y / at)
        magnitude = mean.abs() + (first - mean).abs()
    return first, magnitude, (at * second).abs()


def roundoff(dtype):
    return torch.finfo(dtype).eps / 2


def bound_of(dtype, value, spread):
    return roundoff(dtype) * value.abs() + spread + LOWEST[dtype]


def stored(p, name, value, error, terms, exact):
    """What rounding `value`, which is off by `error` and some u of `terms`, may give."""
    dtype, spread = p.tensors[name].dtype, error + 4 * p.roundoff * terms
    if dtype not in NARROW:
        return Expected(value, bound_of(dtype, value, spread), exact)
    value = value * p.factors(name)
    shorter = SHORTER * terms if p.family.activation > RELU and name == "d" else 0
    return Expected(value, (spread + shorter) * abs(p.factors(name)) + p.roundoff * value.abs(), exact)


def largest(p, name, value, spread, exact):
    size = value.abs()
    most = size.max().reshape(1, 1, 1)
    either = torch.maximum((size + spread).max() - most, most - (size - spread).max())
    return Expected(most, bound_of(p.tensors[name].dtype, most, either), exact)


def exact_limit(p):
    """Scales make halves, and twice as large numbers: eighths at the end."""
    return EXACT_LIMIT / (8 if any(p.family.modes.values()) else 1)


def share_of_products(p):
    """E / S but for what tensor cores add"""
    k = min(p.k, 32 + (p.k / 128 if p.along_k else 0)) if p.both(I8) else p.k
    return (4 + k / 8) * p.roundoff


def share_of_cores(p):
    if p.tf32:
        return 2.0 ** -9
    return math.ceil((p.k if p.fast else min(p.k, 128)) / 32) * 2.0 ** -10 if p.both(*FP8) else 0


def product(p):
    """op(A) op(B), its share of S, and by what this very sum may be off"""
    a, b = p.read("a"), p.read("b")
    magnitude = torch.matmul(a.abs(), b.abs())
    if not p.both(I8):
        return torch.matmul(a, b), magnitude, 0
    step = 128 if p.along_k else max(p.k, 1)
    parts = [torch.matmul(a[:, :, i:i + step], b[:, i:i + step]) for i in range(0, max(p.k, 1), step)]
    return sum(parts), sum(part.abs() for part in parts), REFERENCE * magnitude


def before_activation(p):
    """v, E and whether v is exact"""
    bare, magnitude, own = product(p)
    v, size = p.alpha * bare, abs(p.alpha) * magnitude
    early = v.abs()
    if p.beta:
        c = p.beta * p.read("c")
        v, size, early = v + c, size + c.abs(), early + c.abs()
    if p.has(BIAS):
        bias = p.tensors["bias"].double()
        v, size = v + bias, size + bias.abs()
    exact = p.fill == "integers" and float(size.max()) < exact_limit(p)
    if exact and p.both(*FP8):
        unscaled = torch.matmul(p.tensors["a"].double().abs(), p.tensors["b"].double().abs())
        exact = float(unscaled.max()) < EXACT_LIMIT_FP8
    error = (share_of_products(p) + share_of_cores(p)) * size + abs(p.alpha) * own
    d = p.tensors["d"].dtype
    if p.flags & RELAXED and d in (F16, BF16):  # one rounding before bias, activation and derivative
        error, exact = error + roundoff(d) * early, False
    return v, error, exact


def after_activation(p, v, error):
    """the result before the residual, L E, T"""
    activation = p.family.activation
    loose = LOOSE if p.flags & RELAXED and activation == GELU_TANH else 0
    own = off_by(activation) * (v.abs() + error) if activation > RELU else torch.zeros_like(v)
    if not p.has(BACKWARD):
        result = activate(activation, p.parameter, v)
        return result, slope(activation, p.parameter, v) * error + own + loose, result.abs()
    if activation == RELU:
        mask = p.tensors["aux"].flags(p.tensors["aux"].before)
        zero = torch.zeros_like(v)
        result = torch.where(mask, v, zero)
        return result, torch.where(mask, error, zero), result.abs()
    x = p.read("aux")
    first, magnitude, bend = derivatives(activation, p.parameter, x)
    spread = first.abs() * error + v.abs() * 2 * p.roundoff * bend + own * (1 + x * x)
    return v * first, spread, v.abs() * magnitude


def summed(p, x):
    """over what one element of bias_grad sums: [1 or batch, 1, n] or [1 or batch, m, 1]"""
    grad = p.tensors["bias_grad"]
    dimension = (2 if p.has(BGRAD_A) else 1 if p.has(BGRAD_B) else 2 if p.column_major else 1)
    x = x.sum(dimension, keepdim=True)
    return x.sum(0, keepdim=True) if grad.stride == 0 else x


def expected_sum(p, full, spread, terms, exact):
    grad = p.tensors["bias_grad"]
    value, size = summed(p, full), summed(p, full.abs())
    terms, spread = summed(p, terms) if terms is not None else value.abs(), summed(p, spread)
    if p.has(ACCUMULATE_BIAS_GRAD):
        old = grad.items(grad.before).double()
        value, terms, size = value + old, terms + old.abs(), size + old.abs()
    exact = exact and float(size.max() if size.numel() else 0) < exact_limit(p)
    spread = spread + 4 * p.roundoff * terms + REFERENCE * size
    return Expected(value, bound_of(grad.dtype, value, spread), exact)


def reference(p):
    if p.whole:
        return whole_reference(p)
    v, error, exact = before_activation(p)
    d, zero = p.tensors["d"].dtype, torch.zeros_like(v)
    expected = {}
    if p.has(AUX) and p.family.activation == RELU:
        expected["aux"] = Expected(v, zero if exact else error, exact)
    elif p.has(AUX):
        expected["aux"] = stored(p, "aux", v, error, zero, exact)
    if p.flags & AMAX_AUX:
        expected["amax_aux"] = largest(p, "amax_aux", v, error, exact)
    result, spread, terms = after_activation(p, v, error)
    if p.has(RESIDUAL):
        residual = p.read("residual")
        result, terms = result + residual, terms + residual.abs()
    exact = exact and p.family.activation <= RELU and float(terms.max()) < exact_limit(p)
    expected["d"] = stored(p, "d", result, spread, terms, exact)
    if p.flags & AMAX_D:
        expected["amax_d"] = largest(p, "amax_d", result, spread + 4 * p.roundoff * terms, exact)
    if p.has(BGRAD):
        rounded = d in (F16, BF16) and p.flags & RELAXED  # cuBLASLt sums such values as it stores them
        kept = not rounded or bool((result.to(d).double() == result).all())
        expected["bias_grad"] = expected_sum(p, result, spread + (roundoff(d) * result.abs() if rounded else 0), terms,
                                             exact and kept)
    elif p.has(ANY_BGRAD):
        operand = p.read("a" if p.has(BGRAD_A) else "b")
        expected["bias_grad"] = expected_sum(p, operand, (4 + p.k / 8) * p.roundoff * operand.abs(), None,
                                             p.fill == "integers")
    return expected


def wrap(x):
    """the I32 that int64 numbers are modulo 2^32"""
    return (x + 2 ** 31 & 0xffffffff) - 2 ** 31


def whole_reference(p):
    """Modulo 2^32. Doubles hold the sums of products, int64 the products of two I32."""
    def long(name):
        return p.tensors[name].double().long()

    def certain(x):
        return Expected(wrap(x).double(), torch.zeros_like(x, dtype=F64), True)

    v = wrap(p.alpha * wrap(product(p)[0].long()))
    if p.beta:
        v = wrap(v + wrap(p.beta * long("c")))
    if p.has(BIAS):
        v = wrap(v + long("bias"))
    expected = {"aux": certain(v)} if p.has(AUX) else {}
    result = v.clamp(min=0) if p.family.activation == RELU else v
    expected["d"] = certain(result + (long("residual") if p.has(RESIDUAL) else 0))
    if p.has(ANY_BGRAD):
        grad = p.tensors["bias_grad"]
        old = grad.items(grad.before).long() if p.has(ACCUMULATE_BIAS_GRAD) else 0
        expected["bias_grad"] = certain(summed(p, long("a" if p.has(BGRAD_A) else "b")) + old)
    return expected


# >>verdicts

worst = collections.defaultdict(float)  # error / bound by what was compared


def overflowed(got, dtype, expected):
    limits = torch.finfo(dtype)
    reaches = expected.value.abs() + expected.bound >= limits.max * (1 + limits.eps / 4)
    return got.isinf() & (got.sign() == expected.value.sign()) & reaches


def compare(name, p, tensor, expected):
    """None, or what is wrong"""
    if isinstance(tensor, Mask):
        got = tensor.flags(tensor.buffer)
        free = expected.value.abs() <= expected.bound
        if not p.flags & RELAXED:
            free &= expected.bound > 0
        bad = (got != (expected.value > 0)) & ~free
        ratio = torch.where(bad, 1.0, 0.0)
    else:
        got = tensor.items(tensor.buffer).double()
        error = (got - expected.value).abs()
        if expected.exact:
            bad = got != round_to(tensor.dtype, expected.value)
            ratio = torch.where(bad, error, 0)
        elif tensor.dtype in NARROW:
            bad = ~((got >= round_to(tensor.dtype, expected.value - expected.bound)) &
                    (got <= round_to(tensor.dtype, expected.value + expected.bound)))
            ratio = torch.where(bad, error, 0)
        else:
            bad = ~(error <= expected.bound) & ~overflowed(got, tensor.dtype, expected)
            ratio = error / expected.bound
            key = "%s %s" % (name, "mixed" if p.family.a != p.family.b and not p.both(*FP8) else p.operands())
            worst[key] = max(worst[key], float(ratio.nan_to_num(0, 0, 0).max()))
    count = int(bad.sum())
    if count == 0:
        return None
    at = int(torch.where(bad, ratio.nan_to_num(float("inf"), float("inf")), -1.0).argmax())
    where = (at // (bad.shape[1] * bad.shape[2]), at // bad.shape[2] % bad.shape[1], at % bad.shape[2])
    return "%s: %d of %d wrong, at worst %s: %.9g, not %.9g +- %.3g%s" % (
        name, count, bad.numel(), where, float(got[where]), float(expected.value[where]),
        0 if expected.exact else float(expected.bound[where]), " (exact)" if expected.exact else "")


def complaints(p, expected):
    found = [compare(name, p, p.tensors[name], expected[name]) for name in p.outputs]
    outputs = [id(p.tensors[name]) for name in p.outputs]
    for tensor in p.distinct():
        changed = tensor.changed(id(tensor) in outputs)
        if changed:
            name = next(name for name, t in p.tensors.items() if t is tensor)
            found.append("%s: %d elements changed that should not" % (name, changed))
    return [text for text in found if text]


# >>running

def workspace_for(args, size, device):
    keeper = torch.empty(size + 512, dtype=torch.uint8, device=device)
    args.workspace, args.workspace_size = round_up(keeper.data_ptr(), 256), size
    return keeper


def run_once(context, p, plan, args, stream):
    if not p.by_plan:
        api.matmul(context, p.desc, args, stream)
        return
    if not args.workspace:
        api.plan_prepare(plan, stream)
    api.run_matmul(plan, args, stream)


def run_twice(context, p, plan, args, stream):
    """None, or which output differs"""
    run_once(context, p, plan, args, stream)
    first = {name: p.tensors[name].buffer.clone() for name in p.outputs}
    for name in p.outputs:
        p.tensors[name].buffer.copy_(p.tensors[name].before)
    run_once(context, p, plan, args, stream)
    different = [name for name in p.outputs if not bool(p.tensors[name].same_bits(first[name]).all())]
    return "%s: a second run gave other bits" % ", ".join(different) if different else None


def solve(context, p, stream):
    """what is wrong, the route, and what explain says of it"""
    p.promise_alignment()
    args = p.args()
    described = api.matmul_desc.from_buffer_copy(p.desc)
    if not p.by_plan and not p.desc.alignment:
        described.alignment = min(p.alignment, 16)  # what a one-shot call takes it for
    plan = plan_of(api.plan_matmul, context, described)
    try:
        info = plan_info(plan)
        keeper = workspace_for(args, info.workspace_size, p.device) if p.own_workspace else None
        found = []
        if p.repeats and info.deterministic:
            found.append(run_twice(context, p, plan, args, stream))
        else:
            run_once(context, p, plan, args, stream)
        found = [text for text in found if text] + complaints(p, reference(p))
        del keeper
        return found, info.route_name.decode(), explained(plan)
    finally:
        api.plan_destroy(plan)


class Tally:
    def __init__(self, count):
        self.count, self.passed, self.failed, self.routes = count, 0, 0, collections.Counter()
        self.notes = collections.Counter()
        self.start = time.monotonic()

    def fail(self, what, explanation=""):
        self.failed += 1
        print("FAILED %s" % what)
        if self.failed <= 3 and explanation:
            print("    " + explanation.strip().replace("\n", "\n    "))
        sys.stdout.flush()

    def progress(self, context):
        done = self.passed + self.failed
        if done % max(1, self.count // 10) == 0:
            print("%d of %d: %d passed, %d failed, %d kernels compiled, %.0f s" % (
                done, self.count, self.passed, self.failed, context.details().kernels_compiled,
                time.monotonic() - self.start), flush=True)


def try_problem(context, options, index, device, tally, side):
    """False where the device can no longer be used"""
    name, explanation = "#%d" % index, ""
    try:
        p = Problem(options.seed, index, device)
        name = str(p)
        if options.verbose:
            print(name, flush=True)
        if p.side_stream and side:
            side.wait_stream(torch.cuda.current_stream())  # p was filled there
            with torch.cuda.stream(side):
                found, route, explanation = solve(context, p, side.cuda_stream)
            torch.cuda.current_stream().wait_stream(side)
        else:
            stream = torch.cuda.current_stream().cuda_stream if device.type == "cuda" else None
            found, route, explanation = solve(context, p, stream)
        tally.routes[route] += 1
    except RuntimeError as error:
        found = [str(error).splitlines()[0]]
    if found:
        tally.fail("%s; route %s: %s" % (name, explanation and route, "; ".join(found)), explanation)
    else:
        tally.passed += 1
    try:
        if found and device.type == "cuda":
            torch.cuda.synchronize()
    except RuntimeError as error:
        print("the device is lost: %s" % str(error).splitlines()[0])
        return False
    return True


def run_random(name, description, count, only, indices_of, try_problem, checks, worst, report=None):
    """The program of this file and of those beside it: tries random problems and prints what came of them. Returns its status.

    name: of the test; only: help for --only; indices_of: of the problems, by the options; checks: of this test
    itself, before; worst: error / bound by what was compared; report: prints more of a tally"""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--first", type=int, default=0, help="the index of the first; divides a long run among processes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help=only)
    parser.add_argument("--host", action="store_true", help="GEMMEPI_DEVICE_HOST and CPU tensors")
    parser.add_argument("--verbose", action="store_true", help="print every problem")
    options = parser.parse_args()
    if not options.host and not torch.cuda.is_available():
        print("skip %s: no GPU that PyTorch can use\n0 passed, 0 failed, 1 skipped" % name)
        return 0
    device = torch.device("cpu" if options.host else "cuda:0")
    torch.zeros(1, device=device)  # the primary context is there before the library takes it
    side = None if options.host else torch.cuda.Stream()
    indices = indices_of(options)
    tally = Tally(len(indices))
    with tempfile.TemporaryDirectory() as folder:
        for check in checks:
            check()
        context = gemmepi.Context(gemmepi.HOST if options.host else 0, cache_path=os.path.join(folder, "cache").encode())
        for index in indices:
            if not try_problem(context, options, index, device, tally, side):
                break
            tally.progress(context)
        else:
            info = context.details()
            print("%s, NVRTC %d, cuBLASLt %d, %d kernels compiled" % (
                info.name.decode(), info.nvrtc_version, info.cublaslt_version, info.kernels_compiled))
            context.close()
    print("routes: %s" % ", ".join("%s %d" % row for row in sorted(tally.routes.items())))
    if report:
        report(tally)
    print("largest error / bound: %s" % ", ".join("%s %.2f" % row for row in sorted(worst.items())))
    print("torch %s, seed %d, from #%d, %.0f s" % (torch.__version__, options.seed, options.first, time.monotonic() - tally.start))
    right = tally.passed == tally.count
    print("%s %s (%d of %d)" % ("ok  " if right else "FAIL", name, tally.passed, tally.count))
    print("%d passed, %d failed, 0 skipped" % (right, not right))
    return 0 if right else 1


def indices_of(options):
    if options.only is None:
        return range(options.first, options.first + options.count)
    if options.only != "new":
        return [int(options.only)]
    return list(itertools.islice(filter(is_new, itertools.count(options.first)), options.count))


if __name__ == "__main__":
    sys.exit(run_random("random_problems_agree_with_pytorch", __doc__, 1000,
                        "the index of one problem, or new: those with new types or scales", indices_of, try_problem,
                        [check_rounding], worst))
