#!/usr/bin/env python3
"""Element-wise operations of gemmepi against PyTorch in float64, on the GPU that PyTorch uses.

    python3 tests/gpu/pytorch_elementwise.py [--count 500] [--seed 1] [--only INDEX|TEXT] [--host] [--verbose]

Random problems of every operation, dtype, rank and layout, made here, run in PyTorch's primary context, on its memory and
its streams. The reference is PyTorch in float64 on the operands as stored: torch.nn.functional's activations, autograd for
their derivatives, torch.lerp and its autograd. Bounds are those of the manual, for element-wise operations, with u the unit roundoff of
F32 (F64 where there is F64): what is stored is what some number rounds to that is within

    f(x (1 + d)) (1 + e), |d| <= 2u, |e| <= 4u     or     4u of the largest term that is added

of the reference, where results of 16 bits may have 2^-12 more in e for functions that have an exponential, and may lack
what is below 2^-126. Selections, copies, casts, and lerp at 0 and 1 are exact. Sums may be off by what their terms may,
and by 8 * 2^-24 of the sum of the terms' magnitudes where 16-bit values are added, by 2^-45 of it where not. Added are:
- The smallest subnormal of what is computed, times the factors that come after.
- The reference's own rounding: REFERENCE of what goes into it, 2u more of d, and what it loses below 2^-1000. F64 only.
- Where a finite intermediate leaves the range of F32 (or of F64), or comes near its end in a derivative of several factors,
  anything may come out. So it may where infinity meets a factor that rounding decides to be 0 or to have this sign.

The manual's text goes before PyTorch where they differ, and this file computes by itself
- derivatives at kinks and at NaN: RELU selects dy or 0, 0 at NaN, and so does HARDSIGMOID; HARDSWISH's is 0 at -3 and 1 at 3;
  LEAKY_RELU's at NaN is p; all others are NaN at NaN, and all but RELU's, SQUARED_RELU's and HARDSIGMOID's multiply, so that an
  infinite dy times 0 is NaN;
- where PyTorch's own formulas cancel or overflow: the GELUs below -1, HARDSWISH from 3 on, and derivatives: GELU_ERF's
  below -1, GELU_TANH's and TANH's beyond -1 and 1, those of SIGMOID, SILU, QUICK_GELU and MISH from 1 on;
- SQUARED_RELU and QUICK_GELU, which PyTorch does not have, and rounding to 16 and 8 bits (torch rounds doubles twice).

Every output is NaN before; all memory but the outputs' own elements must be as it was after.

--host runs the host device on CPU tensors, to try this file without a GPU. Problem INDEX is the same for any --count.
--only TEXT leaves out all problems but those whose operation, activation or dtype has it, as "gated_backward silu bfloat16".
"""
import collections
import ctypes
import math
import random
import sys

NAME = "random_elementwise_problems_agree_with_pytorch"
sys.dont_write_bytecode = True

try:
    import torch
    import torch.nn.functional as F
    from torch import float8_e4m3fn, float8_e5m2
except ImportError as missing:
    print("skip %s: %s\n0 passed, 0 failed, 1 skipped" % (NAME, str(missing).splitlines()[0]))
    sys.exit(0)

import pytorch
from pytorch import (ACCUMULATE, ACTIVATIONS, BF16, CODES, DTYPE_NUMBERS, E4M3, E5M2, ELU, F16, F32, F64, FP8,
                     GATE_FIRST, GELU_ERF, GELU_TANH, HARDSIGMOID, HARDSWISH, INTEGERS, LEAKY_RELU, MISH, NONE, QUICK_GELU, RELU,
                     SCALE_MODES, SIGMOID, SILU, SOFTPLUS, SQUARED_RELU, TANH, api, explained, name_of, off_by, plan_info, plan_of,
                     round_up, workspace_for)

# >>the C interface

OPERATIONS = ["", "ACTIVATION", "ACTIVATION_BACKWARD", "GATED", "GATED_BACKWARD", "LERP", "LERP_BACKWARD", "BIAS_GRAD",
              "CAST"]
(_, ACTIVATION, ACTIVATION_BACKWARD, GATED, GATED_BACKWARD, LERP, LERP_BACKWARD, BIAS_GRAD,
 CAST) = range(len(OPERATIONS))
SCALE, Y_SCALE, AMAX, K_IS_ROWS = (0x100000000 << i for i in range(4))
OPERATION_FLAGS = {"ACCUMULATE": ACCUMULATE, "SCALE": SCALE, "Y_SCALE": Y_SCALE, "AMAX": AMAX, "K_IS_ROWS": K_IS_ROWS}
SCALE_NONE, TENSOR, OUTER, VECTOR_128, BLOCK_128 = range(5)
INPUTS, OUTPUTS, NUMBERS = ["a", "b", "w", "dy"], ["y", "da", "db", "dw"], ["scale", "y_scale", "amax"]

# >>rounding

# significant bits, exponent of the smallest subnormal, largest finite value
FORMATS = {F64: (53, -1074, None), F32: (24, -149, torch.finfo(F32).max), F16: (11, -24, 65504),
           BF16: (8, -133, torch.finfo(BF16).max), E4M3: (4, -9, 448), E5M2: (3, -16, 57344)}
LEAST_EXPONENT = -1074
powers = {}  # of 2, by device


def power(exponent):
    device = exponent.device
    if device not in powers:
        powers[device] = torch.tensor([2.0 ** e for e in range(LEAST_EXPONENT, 1024)], dtype=F64, device=device)
    return powers[device][exponent.long() - LEAST_EXPONENT]


def round_to(dtype, x):
    """As the library stores doubles: once, to nearest even; E4M3 and E5M2 saturate. In double."""
    if dtype == F64:
        return x
    if dtype == F32:
        return x.to(F32).double()
    digits, lowest, most = FORMATS[dtype]
    finite = torch.where(x.isfinite(), x, 0)
    unit = power((torch.frexp(finite).exponent - digits).clamp(min=lowest))
    y = (finite / unit).round() * unit
    if dtype in FP8:
        return torch.where(x.isfinite(), y.clamp(-most, most), x.clamp(-most, most))
    return torch.where(x.isnan() | (y.abs() <= most) & x.isfinite(), torch.where(x.isnan(), x, y), math.inf * x.sign())


def check_rounding():
    """Of what F32 holds torch rounds to 16 bits once, and to 8 bits within their ranges."""
    generator = torch.Generator().manual_seed(1)
    bits = torch.randint(-2 ** 31, 2 ** 31, (1 << 16,), generator=generator).to(torch.int32)
    x = torch.cat([bits.view(F32), torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 65519, 65520])]).double()
    x = torch.cat([x, torch.randn(1 << 14, generator=generator).double(), 2.0 ** torch.arange(-30, 17).double()])
    x = x.to(F32).double()
    for dtype in (F16, BF16, E4M3, E5M2):
        inside = x[x.abs() <= FORMATS[dtype][2]] if dtype in FP8 else x
        theirs, ours = inside.to(F32).to(dtype).double(), round_to(dtype, inside)
        assert bool(((theirs == ours) | theirs.isnan() & ours.isnan()).all()), dtype
    x = torch.tensor([1 + 2.0 ** -11 + 2.0 ** -40, math.inf, -1e300], dtype=F64)  # twice rounded, the first is 1
    assert round_to(F16, x).tolist() == [1 + 2.0 ** -10, math.inf, -math.inf]
    assert round_to(E4M3, x).tolist() == [1, 448, -448]


# >>tensors

GUARD = 256  # elements around each tensor that nobody may touch; a multiple of 256 bytes, so offsets decide alignment
POISON = {1: 0x7f, 2: 0x7fff, 4: 0x7fffffff, 8: 0x7fffffffffffffff}  # NaN in every type


class Strided:
    """A tensor of any strides in a buffer of NaN. The buffer has integers: torch neither flips nor indexes all types."""

    def __init__(self, dtype, shape, strides, shift):
        self.dtype, self.shape, self.strides, self.shift = dtype, tuple(shape), tuple(strides), shift
        self.size = dtype.itemsize
        reach = [(extent - 1) * abs(stride) for extent, stride in zip(shape, strides)]
        below = sum(r for r, stride in zip(reach, strides) if stride < 0 and r > 0)
        self.lowest = GUARD + shift
        self.first = self.lowest + below
        self.elements = self.lowest + (sum(reach) + 1 if 0 not in shape else 0) + GUARD
        self.said_dense = False  # strides NULL
        self.base = 0            # element at which data points

    def allocate(self, device):
        self.buffer = torch.full((self.elements,), POISON[self.size], dtype=INTEGERS[self.size], device=device)
        return self

    def flips(self):
        return [d for d, stride in enumerate(self.strides) if stride < 0]

    def view(self, buffer, once=False):
        """The elements, but those of negative strides backwards; once: without those that repeat."""
        shape = [1 if once and not stride and extent else extent for extent, stride in zip(self.shape, self.strides)]
        return torch.as_strided(buffer, shape, [abs(stride) for stride in self.strides], self.lowest)

    def put(self, x):
        """what rounds to them; infinities of E5M2 remain"""
        rounded = round_to(self.dtype, x)
        if self.dtype == E5M2:
            rounded = torch.where(x.isinf(), x, rounded)
        bits = rounded.to(self.dtype).view(INTEGERS[self.size])
        self.view(self.buffer, True).copy_(bits.flip(self.flips()))

    def once_shape(self):
        return tuple(self.view(self.buffer, True).shape)

    def read(self, buffer):
        return self.view(buffer).flip(self.flips()).contiguous().view(self.dtype).double()

    def save(self):
        self.before = self.buffer.clone()

    def changed(self, written):
        """how many elements are not as they were; written: a mask of those that may be (True: all of the tensor)"""
        same = self.buffer == self.before
        if written is True:
            self.view(same, True).fill_(True)
        elif written is not None:
            self.view(same).logical_or_(written)
        return int((~same).sum())

    def pointer(self):
        return self.buffer.data_ptr() + self.base * self.size

    def desc(self, rng):
        """as the library sees it; the arrays live as long as this does"""
        rank = len(self.shape)
        self.arrays = [(ctypes.c_int64 * rank)(*numbers) for numbers in (self.shape, self.strides)]
        said = api.tensor(data=self.pointer(), dtype=DTYPE_NUMBERS[self.dtype], rank=rank,
                          offset=(self.first - self.base) * self.size)
        if self.dtype == F32 and rng.random() < 0.3:
            said.dtype = 0
        if rank:
            said.shape = self.arrays[0]
            said.stride = None if self.said_dense else self.arrays[1]
        if self.base <= self.lowest and rng.random() < 0.5:
            said.bytes = (self.elements - GUARD - self.base) * self.size
        return said

    def __str__(self):
        return "%s %s strides %s at %d (data at %d)" % (name_of(self.dtype), list(self.shape), list(self.strides),
                                                         self.first - GUARD, self.base - GUARD)


# >>families: problems that share their kernels, mostly. Compiling one takes longer than running it.

GROUP = 6
FLOATS = [F32, BF16, F16, F64]
LAYOUTS = ["dense", "dense", "dense", "turned", "gaps", "rows of 16", "stepped", "flipped", "any"]
BROADCASTS = ["full", "full", "ones", "short", "zero strides"]

Family = collections.namedtuple("Family", "operation activation dtype y_dtype split mode flags layouts together misaligned "
                                          "broadcasts inputs outputs")


def family_of(seed, number):
    """An operation with all that decides which kernels it takes, but for shapes."""
    rng = random.Random("element family %d %d" % (seed, number))
    operation = [ACTIVATION, GATED_BACKWARD, LERP, CAST, ACTIVATION_BACKWARD, GATED, LERP_BACKWARD, BIAS_GRAD,
                 CAST][number % 9]
    activation = NONE  # 9 families for each activation, of any seed, have met each activation with each operation that has one
    if operation <= GATED_BACKWARD:
        activation = (number // 9 + 3 * operation + 5 * seed) % len(ACTIVATIONS)
    dtype, split, mode, flags, inputs, outputs = rng.choice(FLOATS), False, SCALE_NONE, 0, ["a"], ["y"]
    y_dtype = dtype
    if operation == ACTIVATION_BACKWARD:
        inputs, outputs = ["a", "dy"], ["da"]
    elif operation in (GATED, GATED_BACKWARD):
        split = rng.random() < 0.5
        inputs += [] if split else ["b"]
        if operation == GATED_BACKWARD:
            inputs, outputs = inputs + ["dy"], ["da"] if split else rng.choice([["da", "db"]] * 3 + [["da"], ["db"]])
    elif operation == LERP:
        inputs = ["a", "b"] + ["w"] * rng.randint(0, 1)
    elif operation == LERP_BACKWARD:
        outputs = rng.choice([["da"], ["db"], ["da", "db"], ["da", "db", "dw"], ["da", "db", "dw"], ["dw"], ["da", "dw"]])
        inputs = ["a", "b", "w", "dy"] if "dw" in outputs else ["w"] * rng.randint(0, 1) + ["dy"]
    elif operation == BIAS_GRAD:
        flags = ACCUMULATE * rng.randint(0, 1)
    elif operation == CAST:
        dtype, y_dtype, mode, flags = random_cast(rng)
    style = rng.random()
    names = inputs + outputs
    layouts = dict.fromkeys(names, "dense" if style < 0.35 else rng.choice(LAYOUTS[3:]))
    if style > 0.6:
        layouts = {name: rng.choice(LAYOUTS) for name in names}
    repeat = rng.random() < 0.5
    broadcasts = {name: rng.choice(BROADCASTS) if repeat else "full" for name in names}
    if operation == BIAS_GRAD or operation == CAST:
        broadcasts["a"] = rng.choice(["full", "full", "zero strides"])
        if operation == CAST and not mode:
            broadcasts["a"] = rng.choice(BROADCASTS)
    return Family(operation, activation, dtype, y_dtype, split, mode, flags, layouts, rng.random() < 0.6,
                  rng.random() < 0.3, broadcasts, inputs, outputs)


def random_cast(rng):
    dtype, flags, mode = rng.choice([F32, BF16, F16, F64, E4M3, E5M2]), 0, SCALE_NONE
    y_dtype = rng.choice([F32, BF16, F16, F64, E4M3, E5M2])
    if rng.random() < 0.35:
        return dtype, y_dtype, mode, flags
    if rng.random() < 0.6:
        y_dtype = rng.choice(FP8)
    flags = rng.choice([0, SCALE, SCALE, Y_SCALE, Y_SCALE] if y_dtype in FP8 else [0, SCALE])
    flags |= AMAX if rng.random() < 0.4 or not flags else 0
    mode = rng.choice([SCALE_NONE, TENSOR, OUTER, VECTOR_128, VECTOR_128, BLOCK_128, BLOCK_128])
    return dtype, y_dtype, mode, flags | (K_IS_ROWS if mode >= OUTER and rng.random() < 0.4 else 0)


def title_of(family):
    words = [OPERATIONS[family.operation]]
    if family.operation <= GATED_BACKWARD:
        words.append(ACTIVATIONS[family.activation])
    words.append(name_of(family.dtype))
    if family.operation == CAST:
        words += ["to", name_of(family.y_dtype), SCALE_MODES[family.mode] if family.mode else ""]
    return " ".join(word for word in words if word)


# >>problems

EXTENTS = [1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 8, 9, 16, 31, 32, 63, 64, 65, 127, 128, 129, 255, 256, 257, 384, 1000, 1024, 4096]


def random_shape(rng, rank, top):
    shape = [rng.choice(EXTENTS) for _ in range(rank)]
    while math.prod(shape) > top:
        largest = shape.index(max(shape))
        shape[largest] = rng.choice([extent for extent in EXTENTS if extent < shape[largest]])
    if rank and rng.random() < 0.02:
        shape[rng.randrange(rank)] = 0
    return shape


def is_16_bits(dtype):
    return dtype in (F16, BF16)


class Problem:
    def __init__(self, seed, index, device):
        self.rng = rng = random.Random("element problem %d %d" % (seed, index))
        self.index, self.device, self.family = index, device, family_of(seed, index // GROUP)
        self.generator = torch.Generator(device).manual_seed(rng.getrandbits(60))
        family = self.family
        self.operation, self.activation, self.flags = family.operation, family.activation, family.flags
        self.by_plan, self.side_stream, self.own_workspace, self.repeats = (rng.random() < x for x in (0.5, 0.3, 0.3, 0.4))
        self.by_struct, self.pointers_in_args = rng.random() < 0.5, rng.random() < 0.5  # of a one-shot call
        given = rng.choice([None, None, 0, 0.3, -0.2, 1.7]) if self.activation in (LEAKY_RELU, ELU) else None
        self.parameter = {LEAKY_RELU: 0.01, ELU: 1}.get(self.activation, 0) if given is None else given
        self.given = given
        self.weight = rng.choice([0, 1, 0.5, 0.25, -0.3, 0.499, 1.7, rng.uniform(-1, 2)])
        if "w" in family.inputs or self.operation not in (LERP, LERP_BACKWARD):
            self.weight = 0
        self.axis, self.gate_first = 0, False
        self.tensors, self.in_place = {}, {}
        self.draw_shape()
        self.draw_tensors()
        self.fill()

    has = lambda self, flag: bool(self.flags & flag)
    wide = property(lambda self: any(t.dtype == F64 for n, t in self.tensors.items() if n in INPUTS + OUTPUTS))
    u = property(lambda self: 2.0 ** -53 if self.wide else 2.0 ** -24)
    smallest = property(lambda self: 2.0 ** -1074 if self.wide else 2.0 ** -149)
    most = property(lambda self: torch.finfo(F64 if self.wide else F32).max)

    # shapes

    def draw_shape(self):
        rng, family, host = self.rng, self.family, self.device.type == "cpu"
        draw = rng.random()
        rank = rng.randint(7, 8) if draw < 0.04 else rng.choice([0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6])
        least = 2 if self.has(K_IS_ROWS) else 1 if family.split or self.operation == BIAS_GRAD else 0
        top = rng.choice([100, 5000, 40000, 40000, 200000] if not host else [100, 5000, 20000, 40000])
        if rng.random() < 0.04:
            top = 400000 if host else 6000000
        self.shape = random_shape(rng, max(rank, least), top)
        if family.mode >= OUTER and rng.random() < 0.7:  # several groups along k
            for axis in range(max(0, len(self.shape) - 2), len(self.shape)):
                self.shape[axis] = rng.choice([1, 7, 100, 128, 129, 256, 300, 513])
            while len(self.shape) > 2 and math.prod(self.shape) > 4 * top:
                self.shape.pop(0)
        if self.has(AMAX | Y_SCALE):  # of nothing amax is not written
            self.shape = [max(extent, 1) for extent in self.shape]
        if family.split or self.operation == BIAS_GRAD:
            self.axis = rng.randrange(len(self.shape))
            self.said_axis = self.axis - len(self.shape) * rng.randint(0, 1)
            self.gate_first = family.split and rng.random() < 0.4

    def doubled(self):
        return [2 * n if d == self.axis else n for d, n in enumerate(self.shape)]

    def repeated_shape(self, shape, name):
        """what is broadcast to `shape`, or summed over what it lacks"""
        how, rng = self.family.broadcasts[name], self.rng
        fixed = self.axis if self.family.split else None  # there all axes are given
        if how == "ones" or how == "short" and fixed is not None:
            return [1 if d != fixed and rng.random() < 0.5 else n for d, n in enumerate(shape)]
        return shape[rng.randint(0, len(shape)):] if how == "short" else list(shape)

    def shape_of(self, name):
        if self.operation == BIAS_GRAD and name == "y":
            return [self.shape[self.axis]]
        if name in ("y", "dy") or self.operation == BIAS_GRAD or self.has(SCALE | Y_SCALE | AMAX):
            return list(self.shape)
        split = self.family.split and name in ("a", "da")
        if name in OUTPUTS and self.rng.random() < 0.6:  # the gradient has the shape of what it is the gradient of
            of = self.tensors.get(name[1:])
            if of is not None and self.family.broadcasts[name[1:]] != "zero strides":
                return list(of.shape)
        return self.repeated_shape(self.doubled() if split else self.shape, name)

    def summed_axes(self, name, shape):
        """of the operation's shape (a split one's doubled): over which an output of this shape is a sum"""
        if self.operation == BIAS_GRAD:
            return [d for d in range(len(self.shape)) if d != self.axis]
        full = self.full_shape(name)
        missing = len(full) - len(shape)
        return [d for d, n in enumerate(full) if n != 1 and (d < missing or shape[d - missing] == 1)]

    def full_shape(self, name):
        return self.doubled() if self.family.split and name in ("a", "da") else self.shape

    # layouts

    def draw_strides(self, shape, layout, output, zeros):
        rng = self.order_rng() if self.family.together else self.rng
        order = list(range(len(shape)))  # from the outermost on
        if layout in ("turned", "any"):
            if rng.random() < 0.5:
                order[-2:] = reversed(order[-2:])
            else:
                rng.shuffle(order)
        negative = [layout in ("flipped", "any") and rng.random() < 0.5 for _ in shape]
        strides, step = [0] * len(shape), rng.choice([2, 3]) if layout == "stepped" else 1
        step = rng.choice([1, 1, 1, 2, 3]) if layout == "any" else step
        for place, axis in enumerate(reversed(order)):
            if not output and axis in zeros:
                continue
            strides[axis] = -step if negative[axis] else step
            step *= max(shape[axis], 1)
            if layout in ("gaps", "any"):
                step += rng.choice([0, 0, 1, 3, 8]) * (1 if place < 2 else 0)
            if layout == "rows of 16" and place == 0:
                step = round_up(step + rng.choice([0, 16]), 16)
        for axis, extent in enumerate(shape):
            if extent == 1 and layout != "dense" and rng.random() < 0.3:
                strides[axis] = rng.choice([0, 7, -3])
        return strides

    def order_rng(self):
        """draws the same for all tensors of the problem"""
        if not hasattr(self, "order_seed"):
            self.order_seed = self.rng.getrandbits(40)
        return random.Random(self.order_seed)

    def draw_tensor(self, name):
        rng, family = self.rng, self.family
        shape, dtype = self.shape_of(name), family.y_dtype if name in OUTPUTS else family.dtype
        layout = family.layouts[name]
        is_sum = name in OUTPUTS and (self.operation == BIAS_GRAD or self.summed_axes(name, shape))
        if is_sum and is_16_bits(dtype) and rng.random() < 0.5:
            dtype = F32
        zeros = []
        if name in INPUTS and name != "dy" and family.broadcasts[name] == "zero strides":
            zeros = [d for d in range(len(shape)) if rng.random() < 0.5]
        strides = self.draw_strides(shape, layout, name in OUTPUTS, zeros)
        tensor = Strided(dtype, shape, strides, rng.randint(0, 15) if family.misaligned else 0)
        tensor.said_dense = layout == "dense" and not zeros and rng.random() < 0.5
        tensor.base = rng.choice([0, tensor.first, GUARD])
        if family.misaligned and rng.random() < 0.3:
            tensor.base = rng.randint(0, tensor.first)
        return tensor

    def take_in_place(self, name, tensor):
        """an input that may be this output, or None"""
        if self.family.mode >= OUTER or self.has(Y_SCALE) or self.rng.random() > 0.25:
            return None
        if self.operation == BIAS_GRAD or self.summed_axes(name, tensor.shape):
            return None
        free = [n for n in self.family.inputs if self.tensors[n].dtype == tensor.dtype and
                self.tensors[n].shape == tensor.shape and n not in self.in_place.values() and
                all(s or extent == 1 for s, extent in zip(self.tensors[n].strides, tensor.shape))]
        return self.rng.choice(free) if free else None

    def draw_tensors(self):
        family = self.family
        for name in family.inputs:
            self.tensors[name] = self.draw_tensor(name).allocate(self.device)
        for name in family.outputs:
            tensor = self.draw_tensor(name)
            same = self.take_in_place(name, tensor)
            if same:
                self.in_place[name] = same
                self.tensors[name] = self.tensors[same]
            else:
                self.tensors[name] = tensor.allocate(self.device)
        if family.operation == CAST:
            self.draw_numbers()

    def draw_numbers(self):
        """Scales and amax: where the number of each element is among `self.count`."""
        mode, shape = self.family.mode or TENSOR, [1] * (2 - len(self.shape)) + list(self.shape)
        if not self.has(SCALE | Y_SCALE | AMAX):
            return
        k_axis, row_axis = (-2, -1) if self.has(K_IS_ROWS) else (-1, -2)
        rows, k, items = shape[row_axis], shape[k_axis], math.prod(shape[:-2])
        steps, line = -(-k // 128), round_up(-(-k // 128), 4)
        each = {TENSOR: 0, OUTER: rows, VECTOR_128: steps * rows, BLOCK_128: -(-rows // 128) * line}[mode]
        self.count = items * each if mode != TENSOR else 1
        item = torch.arange(items, device=self.device).reshape(*shape[:-2], 1, 1)
        row = torch.arange(rows, device=self.device).reshape((rows, 1) if row_axis == -2 else (1, rows))
        at = torch.arange(k, device=self.device).reshape((k, 1) if k_axis == -2 else (1, k))
        place = {TENSOR: 0 * row + 0 * at, OUTER: row + 0 * at, VECTOR_128: at // 128 * rows + row,
                 BLOCK_128: row // 128 * line + at // 128}[mode]
        self.places = (item * each + place).expand(shape).reshape(self.shape)
        for name, flag in zip(NUMBERS, (SCALE, Y_SCALE, AMAX)):
            if self.has(flag):
                dtype = F64 if name == "amax" and self.family.dtype == F64 else F32
                self.tensors[name] = Strided(dtype, [self.count], [1], self.rng.randint(0, 5)).allocate(self.device)
                self.tensors[name].base = self.tensors[name].first

    # what is in the tensors

    def specials(self, dtype):
        info = torch.finfo(dtype)
        return [math.nan, math.inf, -math.inf, 0.0, -0.0, 80, -80, 3, -3, -1.5, 0.5, 20, -20, 40, -40, info.tiny, -info.tiny,
                2.0 ** FORMATS[dtype][1], info.max, -info.max, info.max ** 0.5, 2.0 ** -30, -600, -700, -720, -745]

    def values(self, name, shape, special):
        tensor, rng = self.tensors[name], self.rng
        x = torch.randn(shape, dtype=F64, device=self.device, generator=self.generator) * self.grain
        if name == "w":
            x = 2 * torch.rand(shape, dtype=F64, device=self.device, generator=self.generator) - 0.5
            x = torch.where(x > 1.3, 1.0, torch.where(x < -0.3, 0.0, x)) if rng.random() < 0.5 else x
        if self.operation == CAST and self.ties and x.numel():  # halfway between two of y, or next to that
            y, sides = round_to(self.family.y_dtype, x), torch.rand(shape, dtype=F64, device=self.device,
                                                                    generator=self.generator)
            unit = power((torch.frexp(y).exponent - FORMATS[self.family.y_dtype][0]).clamp(min=LEAST_EXPONENT))
            x = (y + unit / 2) * (1 + ((3 * sides).floor() - 1) * (2.0 ** -40 if tensor.dtype == F64 else 2.0 ** -23))
        if special and x.numel():
            count = rng.choice([1, 3, 30, 60, x.numel() // 40 + 1])
            at = torch.randint(0, x.numel(), (count,), device=self.device, generator=self.generator)
            some = self.specials(tensor.dtype)
            rng.shuffle(some)
            some = torch.tensor(some * -(-count // len(some)), dtype=F64, device=self.device)[:count]
            x.reshape(-1)[at] = some
        return x

    def fill(self):
        rng = self.rng
        self.grain = rng.choice([1, 1, 0.1, 4, 15])
        self.special, self.ties = rng.random() < 0.5, rng.random() < 0.4
        for name in self.family.inputs:
            self.tensors[name].put(self.values(name, self.tensors[name].once_shape(), self.special and rng.random() < 0.7))
        if self.has(ACCUMULATE):
            y = self.tensors["y"]
            y.put(4 * self.values("y", y.once_shape(), False))
        if "scale" in self.tensors:
            scale = self.tensors["scale"]
            x = 2.0 ** (8 * torch.rand((self.count,), dtype=F64, device=self.device, generator=self.generator) - 2)
            used = torch.zeros(self.count, dtype=torch.bool, device=self.device)
            used[self.places.reshape(-1)] = True
            scale.put(torch.where(used, x * rng.choice([1, 1, 1, -1]), math.nan))
        for tensor in self.distinct():
            tensor.save()

    def distinct(self):
        return list({id(tensor): tensor for tensor in self.tensors.values()}.values())

    def double(self, name):
        return self.tensors[name].read(self.tensors[name].before)

    def operand(self, name):
        """an input as it was, broadcast"""
        return self.double(name).expand(tuple(self.full_shape(name)))

    def value_and_gate(self):
        if not self.family.split:
            return self.operand("a"), self.operand("b")
        both = self.operand("a")
        first, second = both.split(self.shape[self.axis], self.axis) if both.numel() else (both.narrow(
            self.axis, 0, self.shape[self.axis]),) * 2
        return (second, first) if self.gate_first else (first, second)

    # for the library

    def describe(self):
        """desc, and args, which a plan runs with"""
        self.said = {name: tensor.desc(self.rng) for name, tensor in self.tensors.items() if name not in NUMBERS}
        self.desc = api.elementwise_desc(operation=self.operation,
                                         activation=CODES[self.activation] | GATE_FIRST * self.gate_first,
                                         has_parameter=self.given is not None, activation_parameter=self.given or 0,
                                         scale_mode=self.family.mode, flags=self.flags)
        if self.family.split or self.operation == BIAS_GRAD:
            self.desc.axis = self.said_axis
        self.args = api.elementwise_args(weight=self.weight)
        bits = 16
        for name, tensor in self.tensors.items():
            if name in NUMBERS:
                setattr(self.args, name, tensor.pointer())
            else:
                setattr(self.desc, name, ctypes.pointer(self.said[name]))
                setattr(self.args, name, tensor.pointer())
                bits |= tensor.pointer()
        aligned = bits & -bits
        self.desc.alignment = aligned if aligned < 16 or not self.by_plan else self.rng.choice([0, 16])

    def has_but_a_struct(self):
        """whether no short call can say it"""
        return (self.operation in (GATED_BACKWARD, LERP_BACKWARD) or self.operation == GATED and self.given is not None
                or self.operation == CAST and bool(self.flags or self.family.mode))

    def call_by_struct(self, context, stream):
        """with the pointers of args, or with those of the tensors; no args at all where they say nothing else"""
        args = self.args
        if not self.pointers_in_args:
            args = api.elementwise_args(weight=self.weight)
            numbers = [name for name in NUMBERS if name in self.tensors]
            for name in numbers:
                setattr(args, name, self.tensors[name].pointer())
            if not numbers and not self.weight:
                args = None
        api.elementwise(context, self.desc, args, stream)

    def call(self, context, stream):
        """the one-shot call"""
        if self.by_struct or self.has_but_a_struct():
            self.call_by_struct(context, stream)
            return
        t, desc = self.said.get, self.desc
        parameter = math.nan if self.given is None else self.given
        call, arguments = {
            ACTIVATION: lambda: (api.activation, [desc.activation, parameter, t("a"), t("y")]),
            ACTIVATION_BACKWARD: lambda: (api.activation_backward, [desc.activation, parameter, t("a"), t("dy"), t("da")]),
            GATED: lambda: (api.gated, [desc.activation, desc.axis, t("a"), t("b"), t("y")]),
            LERP: lambda: (api.lerp, [t("a"), t("b"), t("w"), self.weight, t("y")]),
            BIAS_GRAD: lambda: (api.bias_grad, [t("a"), desc.axis, int(self.has(ACCUMULATE)), t("y")]),
            CAST: lambda: (api.cast, [t("a"), t("y")])}[self.operation]()
        call(context, *arguments, stream)

    def __str__(self):
        words = ["#%d %s" % (self.index, title_of(self.family))]
        words += [name for name, flag in OPERATION_FLAGS.items() if self.flags & flag]
        words.append("over %s" % list(self.shape))
        if self.given is not None:
            words.append("p %r" % self.given)
        if self.operation in (LERP, LERP_BACKWARD) and "w" not in self.tensors:
            words.append("weight %r" % self.weight)
        if self.family.split or self.operation == BIAS_GRAD:
            words.append("axis %d%s" % (self.said_axis, " GATE_FIRST" if self.gate_first else ""))
        words.append("grain %g%s, %s%s%s" % (self.grain, " with special values" if self.special else "",
                                             "plan" if self.by_plan else "struct" if self.by_struct else "one-shot",
                                             ", own workspace" if self.own_workspace and self.by_plan else "",
                                             ", side stream" if self.side_stream else ""))
        return "%s; %s" % (" ".join(words), "; ".join(
            "%s is %s" % (name, self.in_place[name]) if name in self.in_place else "%s %s" % (name, tensor)
            for name, tensor in self.tensors.items()))


# >>the reference: activations

REFERENCE = 2.0 ** -50  # what torch's float64 may be off by, relative to what goes in
LOST = 2.0 ** -1000     # and below this it may have nothing
SHORTER = 2.0 ** -12    # what functions with an exponential may be off by in results of 16 bits,
SUBNORMAL = 2.0 ** -126 # and below this they may be 0
EXACT = (NONE, RELU)
RATIONAL = (NONE, RELU, LEAKY_RELU, SQUARED_RELU, HARDSWISH)  # no exponential

C = math.sqrt(2 / math.pi)


FORMS_OF = {
    LEAKY_RELU: lambda x, p: F.leaky_relu(x, p),
    ELU: lambda x, p: F.elu(x, p),
    SOFTPLUS: lambda x, p: F.softplus(x, 1, 700),
    HARDSWISH: lambda x, p: x * (x + 3).clamp(0, 6) / 6,
    MISH: lambda x, p: F.mish(x)}


def by_torch(activation, p, x):
    return FORMS_OF[activation](x, p) if activation in FORMS_OF else pytorch.activate(activation, p, x)


def gelu_argument(x):
    return 2 * C * x * (1 + 0.044715 * x * x)


def normal_cdf(x):
    return 0.5 * torch.erfc(x * -math.sqrt(0.5))


def activate(activation, p, x):
    y = by_torch(activation, p, x)
    if activation == GELU_TANH:
        return torch.where(x < -1, x * torch.sigmoid(gelu_argument(x)), y)
    if activation == GELU_ERF:
        return torch.where(x < -1, x * normal_cdf(x), y)
    if activation == HARDSWISH:
        return torch.where(x <= -3, 0 * x, torch.where(x >= 3, x, y))
    return y


def own_derivative(activation, x):
    """where PyTorch's is not taken: which, and what instead"""
    if activation == GELU_TANH:
        within = torch.where(x.isinf(), x, x.clamp(-64, 64))  # beyond, a factor is 0 or 1 and nothing must overflow
        w = gelu_argument(x)
        inner = 1 + 2 * within * torch.sigmoid(-w) * C * (1 + 0.134145 * within * within)
        return x.abs() > 1, torch.sigmoid(w) * inner
    if activation == GELU_ERF:
        return x < -1, normal_cdf(x) + x * torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    if activation == SILU or activation == QUICK_GELU:
        z = x if activation == SILU else torch.where(x.isinf(), x, 1.702 * x.clamp(-1e300, 1e300))
        return x > 1, torch.sigmoid(z) * (1 + z * torch.sigmoid(-z))
    if activation == MISH:
        near = x.clamp(max=40)  # from there on it is 1
        n = torch.exp(near) * (torch.exp(near) + 2)
        rest = near * torch.sigmoid(near) * 4 * (n + 1) / (n + 2) ** 2
        return x > 1, n / (n + 2) + torch.where(x.isinf(), math.nan, rest)
    if activation == TANH:
        return x.abs() > 1, 4 * torch.sigmoid(2 * x) * torch.sigmoid(-2 * x)
    if activation == SIGMOID:
        return x > 1, torch.sigmoid(x) * torch.sigmoid(-x)
    if activation == HARDSWISH:
        return x.abs() >= 3, (x > 0).double()
    return None, None


def differentiate(activation, p, x):
    if activation == NONE:
        return torch.ones_like(x)
    with torch.enable_grad():
        at = x.detach().clone().requires_grad_(True)
        y = by_torch(activation, p, at)
        first = torch.autograd.grad(y, at, torch.ones_like(y))[0]
    where, own = own_derivative(activation, x)
    if where is not None:
        first = torch.where(where, own, first)
    if activation == LEAKY_RELU or activation == HARDSIGMOID or activation not in pytorch.FORMS_OF:
        return first  # at NaN to the letter p, 0, and what PyTorch's own function says
    return torch.where(x.isnan(), x, first)


def check_derivatives():
    """The own forms and PyTorch's, where both are good."""
    x = torch.linspace(-4, 4, 1601, dtype=F64)
    for activation in range(NONE, len(ACTIVATIONS)):
        mine, theirs = activate(activation, 0.3, x), by_torch(activation, 0.3, x)
        assert bool(((mine - theirs).abs() <= 1e-14).all()), ACTIVATIONS[activation]
        with torch.enable_grad():
            at = x.clone().requires_grad_(True)
            theirs = torch.autograd.grad(by_torch(activation, 0.3, at).sum(), at)[0]
        where, own = own_derivative(activation, x)
        if where is not None and activation != HARDSWISH:
            assert bool(((own - theirs).abs() <= 1e-13).all()), ACTIVATIONS[activation]
        mine, step = differentiate(activation, 0.3, x), 2.0 ** -18
        slope = (activate(activation, 0.3, x + step) - activate(activation, 0.3, x - step)) / (2 * step)
        far = ((x.abs() - 3).abs() > 0.01) & (x.abs() > 0.01)  # from kinks
        assert activation == NONE or bool(((mine - slope).abs() <= 1e-8)[far].all()), ACTIVATIONS[activation]


# >>the reference: terms. free: anything may come out; exact: bound is 0; copied: the sign of a zero counts too

Term = collections.namedtuple("Term", "value bound free copied", defaults=(False,))


def nothing(x):
    return torch.zeros_like(x, dtype=torch.bool)


def left_range(p, *intermediates):
    """where a finite intermediate leaves the range of what is computed, or comes near its end"""
    return torch.stack([x.isfinite() & (x.abs() > p.most / 4) for x in torch.broadcast_tensors(*intermediates)]).any(0)


def overflown(p, result, *inputs):
    """where F64 itself has overflown"""
    finite = result.isinf()
    for x in inputs:
        finite = finite & x.isfinite()
    return finite


def is_short(p):
    return p.activation not in RATIONAL and is_16_bits(p.family.dtype)


def slack(p):
    return 4 * p.u + (SHORTER if is_short(p) else 0) + (max(REFERENCE, off_by(p.activation)) if p.wide else 0)


def slope_of(p, x, derivative):
    """act(x) or act'(x), and what it may be off"""
    def at(x):
        return (differentiate if derivative else activate)(p.activation, p.parameter, x)
    value = at(x)
    if p.activation in EXACT:
        return value, torch.zeros_like(value)
    magnitude, bound = value.abs(), torch.zeros_like(value)
    if derivative and p.activation in (GELU_TANH, GELU_ERF, SILU, QUICK_GELU, MISH, HARDSWISH):
        mean = torch.where(x == 0, value, activate(p.activation, p.parameter, x) / x)
        magnitude = mean.abs() + (value - mean).abs()
        if p.activation == HARDSWISH:
            magnitude = torch.where(x.abs() < 3, x.abs() / 3 + 0.5, value)
    if p.activation != HARDSWISH:  # whose derivative jumps
        for side in (-4, 4) if p.wide else (-2, 2):  # the reference's rounding is of the same size there
            bound = torch.maximum(bound, (at(x * (1 + side * p.u)) - value).abs().nan_to_num(0, 0))
    bound = bound + slack(p) * magnitude + 2 * (SUBNORMAL if is_short(p) else p.smallest)
    if p.wide:
        bound = bound + x.abs().nan_to_num(0).clamp(max=1000) * p.smallest + LOST * (p.activation not in RATIONAL)
    return value, torch.where(value.isfinite(), bound, 0)


def times(p, factor, x, value, bound):
    """factor times act(x) or act'(x)"""
    product = factor * value
    if p.activation == LEAKY_RELU:  # a gate gives what fits, whatever two of its three factors make
        product = torch.where(value.isinf() & x.isfinite(), factor * p.parameter * x, product)
    few = LOST if p.wide else 2.0 ** -120
    vague = factor.isinf() & x.isfinite() & (x != 0) & (
        (value.abs() < few) & (p.activation not in RATIONAL) | (value.abs() <= bound) & (bound > 0))
    size = factor.abs() * bound + 2 * p.u * product.abs() + 2 * p.smallest
    free = vague | overflown(p, product, factor, value) | left_range(p, value)
    return Term(product, torch.where(product.isfinite(), size, 0), free)


def backward_term(p, dy, x, dy_is_exact=True):
    if p.activation in EXACT:
        value = dy.clone() if p.activation == NONE else torch.where(x > 0, dy, 0)
        bound = torch.zeros_like(value) if dy_is_exact else 2 * p.u * value.abs() + p.smallest
        return Term(value, torch.where(value.isfinite(), bound, 0), nothing(value))
    slope, bound = slope_of(p, x, True)
    term = times(p, dy, x, slope, bound)
    if p.activation not in RATIONAL:  # several factors, of which some are above 1
        term = term._replace(free=term.free | dy.isfinite() & (dy.abs() > p.most / 16))
    if not dy_is_exact:
        term = term._replace(bound=torch.where(term.value.isfinite(), term.bound + p.smallest * slope.abs() +
                                               2 * p.u * term.value.abs(), 0))
    if p.activation in (SQUARED_RELU, HARDSIGMOID):
        selected = x <= 0 if p.activation == SQUARED_RELU else ~((x > -3) & (x < 3))
        term = Term(torch.where(selected, 0, term.value), torch.where(selected, 0, term.bound), term.free & ~selected)
    return term


def activation_terms(p):
    x = p.operand("a")
    value, bound = slope_of(p, x, False)
    free = overflown(p, value, x) if p.activation != NONE else nothing(x)
    return {"y": Term(value, bound, free, p.activation == NONE)}


def gated_terms(p):
    value, gate = p.value_and_gate()
    slope, bound = slope_of(p, gate, False)
    term = times(p, value, gate, slope, bound)
    if p.family.split and p.activation == SIGMOID and not p.gate_first and value.numel():
        term = term._replace(value=F.glu(p.operand("a"), p.axis))
    return {"y": term}


def gated_backward_terms(p):
    value, gate = p.value_and_gate()
    dy = p.operand("dy")
    both = dy * value
    first = times(p, dy, gate, *slope_of(p, gate, False))
    second = backward_term(p, both, gate, False)
    vague = left_range(p, both) | overflown(p, both, dy, value)
    if p.activation in (RELU, SQUARED_RELU):
        vague = vague & ~(gate <= 0)
    second = second._replace(free=second.free | vague)
    if not p.family.split:
        return {"da": first, "db": second}
    halves = (second, first) if p.gate_first else (first, second)
    return {"da": Term(*(torch.cat([half[i] for half in halves], p.axis) for i in range(3)))}


def weight_of(p):
    return p.operand("w") if "w" in p.tensors else torch.full(tuple(p.shape), p.weight, dtype=F64, device=p.device)


def lerp_terms(p):
    a, b, w = p.operand("a"), p.operand("b"), weight_of(p)
    value = torch.lerp(a, b, w)
    near, difference = w.abs() < 0.5, b - a
    largest = torch.where(near, torch.maximum(a.abs(), (w * difference).abs()),
                          torch.maximum(b.abs(), (difference * (1 - w)).abs()))
    bound = (4 * p.u + (REFERENCE if p.wide else 0)) * largest + 2 * p.smallest
    exact = difference.isfinite() & ((w == 0) | (w == 1))
    free = left_range(p, difference, w * difference, (1 - w) * difference) | overflown(p, difference, a, b)
    return {"y": Term(torch.where(exact, torch.where(w == 0, a, b), value),
                      torch.where(exact | ~value.isfinite(), 0, bound), free)}


def lerp_backward_terms(p):
    """by autograd, as if nothing were broadcast"""
    dy, w = p.operand("dy"), weight_of(p)
    a, b = (p.operand(name) if name in p.tensors else torch.zeros_like(dy) for name in "ab")
    with torch.enable_grad():
        leaves = [x.detach().clone().requires_grad_(True) for x in (a, b, w)]
        gradients = torch.autograd.grad(torch.lerp(*leaves), leaves, dy)
    terms = {}
    for name, value in zip(("da", "db", "dw"), gradients):
        bound = (4 * p.u + (REFERENCE if p.wide else 0)) * value.abs() + (2 + (dy.abs() if name != "dw" else 0)) * p.smallest
        free = overflown(p, value, dy, w)
        if name == "dw":
            free = left_range(p, b - a) | overflown(p, value, dy, a, b)
        terms[name] = Term(value, torch.where(value.isfinite(), bound, 0), free)
    return terms


# >>the reference: sums, and what is stored

Expected = collections.namedtuple("Expected", "value bound free copied written", defaults=(False, True))


def summed(p, name, term):
    tensor = p.tensors[name]
    axes = p.summed_axes(name, tensor.shape)
    accumulates = p.has(ACCUMULATE)
    if p.operation != BIAS_GRAD and not axes:
        return Expected(*(x.reshape(tensor.shape) for x in term[:3]), term.copied)

    def add(x):
        return (x.sum(axes) if axes else x).reshape(tensor.shape)
    size, value, bound = add(term.value.abs()), add(term.value), add(term.bound)
    free = add((term.free | left_range(p, term.value)).int()) > 0 if axes else (term.free).reshape(tensor.shape)
    if accumulates:
        old = p.double(name)
        size, value = size + old.abs(), value + old
    share = 8 * 2.0 ** -24 if is_16_bits(p.family.dtype) else 2.0 ** -45
    bound = bound + share * size + (2 * p.u * value.abs() if p.wide else 0)
    free = free | size.isfinite() & (size > p.most / 4) if p.wide or is_16_bits(p.family.dtype) else free
    if p.wide:
        free = free | size.isinf() & add(term.value.isinf().int()).eq(0) & ~value.isnan()
    return Expected(value, torch.where(value.isfinite(), bound, 0), free)


def cast_expected(p):
    """y, y_scale and amax"""
    a, expected, factor, divisor = p.operand("a"), {}, None, None
    if p.has(AMAX | Y_SCALE):
        places = p.places.reshape(-1)
        amax, count = torch.zeros(p.count, dtype=F64, device=p.device), torch.zeros(p.count, dtype=F64, device=p.device)
        amax.scatter_reduce_(0, places, a.reshape(-1).abs().nan_to_num(0, math.inf, -math.inf), "amax")
        count.scatter_add_(0, places, a.reshape(-1).isnan().double())
        amax = torch.where(count > 0, math.nan, amax)
        zero, written = torch.zeros_like(amax), torch.zeros(p.count, dtype=torch.bool, device=p.device)
        written[places] = True
    if p.has(AMAX):
        expected["amax"] = Expected(amax, zero, nothing(zero), False, written)
    if p.has(Y_SCALE):
        # the manual: 1 where amax is 0 or not finite; a scale is never subnormal, nor infinite
        limits = torch.finfo(F32)
        scale = (amax / FORMATS[p.family.y_dtype][2]).clamp(limits.tiny, limits.max)
        scale = round_to(F32, torch.where((amax > 0) & amax.isfinite(), scale, 1.0))
        expected["y_scale"] = Expected(scale, 2.0 ** -24 * scale, nothing(zero), False, written)
        divisor = p.tensors["y_scale"].read(p.tensors["y_scale"].buffer)[p.places]
    if p.has(SCALE):
        factor = p.double("scale")[p.places]
    value = a * factor if factor is not None else a / divisor if divisor is not None else a
    bound, free = torch.zeros_like(value), nothing(value)
    if factor is not None or divisor is not None:
        bound = torch.where(value.isfinite(), 4 * p.u * value.abs() + 2 * p.smallest, 0)
        free = overflown(p, value, a)
    expected["y"] = Expected(value, bound, free, factor is None and divisor is None)
    return expected


def reference(p):
    if p.operation == CAST:
        return cast_expected(p)
    if p.operation == BIAS_GRAD:
        a = p.operand("a")
        terms = {"y": Term(a, torch.zeros_like(a), nothing(a))}
    else:
        terms = {ACTIVATION: activation_terms, GATED: gated_terms, GATED_BACKWARD: gated_backward_terms, LERP: lerp_terms,
                 LERP_BACKWARD: lerp_backward_terms,
                 ACTIVATION_BACKWARD: lambda p: {"da": backward_term(p, p.operand("dy"), p.operand("a"))}}[p.operation](p)
    return {name: summed(p, name, terms[name]) for name in p.family.outputs}


# >>verdicts

worst = collections.defaultdict(float)  # error / bound by operation and stored type


def compare(name, p, expected):
    """None, or what is wrong"""
    tensor, value, bound = p.tensors[name], expected.value, expected.bound
    got = tensor.read(tensor.buffer)
    low, high = round_to(tensor.dtype, value - bound), round_to(tensor.dtype, value + bound)
    right = (got >= low) & (got <= high) | got.isnan() & value.isnan()
    if expected.copied:
        right &= (got != 0) | (value == 0).logical_not() | (got.signbit() == value.signbit())
    right |= expected.free
    if expected.written is not True:
        right |= ~expected.written
    digits, lowest, _ = FORMATS[tensor.dtype]
    error = (got - value).abs()
    ratio = (error / (bound + 2.0 ** -digits * value.abs() + 2.0 ** max(lowest - 1, -1074))).nan_to_num(0, 0, 0)
    ratio = torch.where(expected.free | ~got.isfinite() | (got.abs() >= (FORMATS[tensor.dtype][2] or math.inf)), 0, ratio)
    if expected.written is not True:
        ratio = torch.where(expected.written, ratio, 0)
    key = "%s %s" % (OPERATIONS[p.operation].lower(), name_of(tensor.dtype)) if name in OUTPUTS else name
    worst[key] = max(worst[key], float(ratio.max()) if ratio.numel() else 0)
    count = int((~right).sum())
    if count == 0:
        return None
    at = int(torch.where(right, -1.0, torch.where(got.isnan() | value.isnan(), 1e9, ratio)).argmax())
    where = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), right.shape)) if right.dim() else ()
    return "%s: %d of %d wrong, at worst %s: %.9g, not %.9g +- %.3g%s" % (
        name, count, right.numel(), where, float(got[where]), float(value[where]), float(bound[where]),
        inputs_at(p, name, where))


def inputs_at(p, name, where):
    """what the element is made of, where that is one number of each input"""
    if name not in OUTPUTS or p.family.split or p.operation == BIAS_GRAD or p.summed_axes(name, p.tensors[name].shape):
        return ""
    missing = (0,) * (len(p.shape) - len(where))
    return " (%s)" % ", ".join("%s %.9g" % (n, float(p.operand(n)[missing + where])) for n in p.family.inputs)


def outputs_of(p):
    return p.family.outputs + [name for name in NUMBERS[1:] if name in p.tensors]


def complaints(p, expected):
    found = [compare(name, p, expected[name]) for name in outputs_of(p)]
    written = {id(p.tensors[name]): expected[name].written for name in outputs_of(p)}
    for tensor in p.distinct():
        changed = tensor.changed(written.get(id(tensor)))
        if changed:
            name = next(name for name, t in p.tensors.items() if t is tensor)
            found.append("%s: %d elements changed that should not" % (name, changed))
    return [text for text in found if text]


# >>running

def run_once(context, p, plan, stream):
    if not p.by_plan:
        p.call(context, stream)
        return
    if not p.args.workspace:
        api.plan_prepare(plan, stream)
    api.run_elementwise(plan, p.args, stream)


def run_twice(context, p, plan, stream):
    """what differs"""
    run_once(context, p, plan, stream)
    first = {name: p.tensors[name].buffer.clone() for name in outputs_of(p)}
    for name in outputs_of(p):
        p.tensors[name].buffer.copy_(p.tensors[name].before)
    run_once(context, p, plan, stream)
    different = [name for name in outputs_of(p) if not torch.equal(p.tensors[name].buffer, first[name])]
    return ["%s: a second run gave other bits" % ", ".join(different)] if different else []


def solve(context, p, stream):
    """what is wrong, the route, and what explain says of it"""
    p.describe()
    plan = plan_of(api.plan_elementwise, context, p.desc)
    try:
        info = plan_info(plan)
        keeper = workspace_for(p.args, info.workspace_size, p.device) if p.own_workspace and p.by_plan else None
        found = []
        if p.repeats:
            found = run_twice(context, p, plan, stream)
        else:
            run_once(context, p, plan, stream)
        with torch.no_grad():
            found += complaints(p, reference(p))
        del keeper
        return found, info.route_name.decode(), explained(plan)
    finally:
        api.plan_destroy(plan)


def try_problem(context, options, index, device, tally, side):
    """False where the device can no longer be used"""
    name, route, explanation = "seed %d #%d" % (options.seed, index), "not known", ""
    try:
        p = Problem(options.seed, index, device)
        name = "seed %d %s" % (options.seed, p)
        if p.side_stream and side:
            side.wait_stream(torch.cuda.current_stream())  # p was filled there
            with torch.cuda.stream(side):
                found, route, explanation = solve(context, p, side.cuda_stream)
            torch.cuda.current_stream().wait_stream(side)
        else:
            stream = torch.cuda.current_stream().cuda_stream if device.type == "cuda" else None
            found, route, explanation = solve(context, p, stream)
        tally.routes[route] += 1
        tally.notes[OPERATIONS[p.operation]] += 1
    except RuntimeError as error:
        found = [str(error).splitlines()[0]]
    if options.verbose:
        print("%s; route %s" % (name, route), flush=True)
    if found:
        tally.fail("%s; route %s: %s" % (name, route, "; ".join(found)), explanation)
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
    text = options.only.lower().split()
    titles = [title_of(family_of(options.seed, number)).lower().split() for number in range(20 * options.count)]
    numbers = [number for number, title in enumerate(titles)
               if all(any(word in w for w in title) for word in text)]
    return [number * GROUP + i for number in numbers for i in range(GROUP)][:options.count]


def report(tally):
    print("operations: %s" % ", ".join("%s %d" % row for row in sorted(tally.notes.items())))


if __name__ == "__main__":
    sys.exit(pytorch.run_random(NAME, __doc__, 500, "the index of one problem, or words that its operation, activation or dtype have",
                                indices_of, try_problem, [check_rounding, check_derivatives], worst, report))
