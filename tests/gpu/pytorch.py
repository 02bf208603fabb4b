#!/usr/bin/env python3
"""Products of gemmepi against PyTorch in float64, on the GPU that PyTorch uses.

    python3 tests/gpu/pytorch.py [--count 1000] [--seed 1] [--only INDEX] [--host]

Random problems, made here and nowhere else, run in PyTorch's primary context, on its memory and its streams. The
reference is torch.matmul in float64 on the operands as stored, torch.nn.functional's activations, and autograd for
their derivatives. Bounds are those of numerics.md, "How right":

    |out - ref| <= u |ref| + L E + 4 u_acc T + smallest subnormal,    E = (4 + k/8) u_acc S   (TF32: 2^-9 S more)

and, as there under "Exact", problems of small integers come out bit-equal. Three things are added:
- BACKWARD: where the two terms of act' = act(x)/x + rest cancel, T has their magnitudes; and act' may be taken at
  x (1 + 2 u_acc) ("Element-wise"), which counts in its tails.
- The reference's own rounding: REFERENCE (|v| + E) in activations (times 1 + aux^2 for BACKWARD), and
  REFERENCE sum |v| in sums. It counts for F64 and in far tails only.
- RELAXED: cuBLASLt's approximate tanh, LOOSE absolute, and one early rounding of 16-bit results.

Every output is NaN before (a mask: random bytes); all memory but the outputs' own elements must be as it was after.

--host runs the host device on CPU tensors, to try this file without a GPU. Problem INDEX is the same for any --count.
"""
import argparse
import collections
import ctypes
import os
import random
import subprocess
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

# >>the C interface

NONE, RELU, GELU_TANH, GELU_ERF, SILU, SIGMOID, TANH = range(7)
ACTIVATIONS = ["NONE", "RELU", "GELU_TANH", "GELU_ERF", "SILU", "SIGMOID", "TANH"]
BIAS, AUX, BACKWARD, RESIDUAL, BGRAD, BGRAD_A, BGRAD_B, ACCUMULATE = (0x100 << i for i in range(8))
FLAGS = ["BIAS", "AUX", "BACKWARD", "RESIDUAL", "BGRAD", "BGRAD_A", "BGRAD_B", "BGRAD_ACCUMULATE"]
ANY_BGRAD = BGRAD | BGRAD_A | BGRAD_B
RELAXED, DEVICE_SCALARS = 1, 2
F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
DTYPE_NUMBERS = {None: 0, F32: 1, F64: 2, F16: 3, BF16: 4}
COMPUTE_DEFAULT, COMPUTE_F32, COMPUTE_TF32, COMPUTE_F64 = range(4)

c_int, c_size, c_pointer = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p


def struct(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": [(f, t) for t, names in fields for f in names.split()]})


Allocator = struct("gemmepi_allocator", (c_pointer, "alloc free user"))
Config = struct("gemmepi_config", (c_int, "device"), (c_pointer, "log log_user"), (Allocator, "allocator"),
                (ctypes.c_char_p, "library_path"), (c_pointer, "resolve_symbol resolve_user"),
                (ctypes.c_char_p, "cache_path"), (c_size, "cache_size"))
Matrix = struct("gemmepi_matrix", (c_int, "dtype transposed"), (ctypes.c_int64, "ld batch_stride"))
Vector = struct("gemmepi_vector", (c_int, "dtype"), (ctypes.c_int64, "batch_stride"))
Desc = struct("gemmepi_matmul_desc", (ctypes.c_int64, "m n k batch"), (c_int, "order compute"),
              (ctypes.c_uint32, "epilogue flags"), (Matrix, "a b c d aux residual"), (Vector, "bias bias_grad"),
              (c_size, "alignment"))
Args = struct("gemmepi_matmul_args", (c_pointer, "a b c d bias aux bias_grad residual alpha beta workspace"),
              (c_size, "workspace_size"))
PlanDetails = struct("gemmepi_plan_details", (c_int, "route"), (ctypes.c_char_p, "route_name"),
                     (ctypes.c_char * 96, "kernel"), (c_int, "tile_m tile_n launches"), (c_size, "workspace_size"),
                     (c_int, "compute accumulator deterministic bit_stable"), (ctypes.c_double, "microseconds"))
ContextDetails = struct("gemmepi_context_details", (c_int, "is_host device"), (ctypes.c_char * 128, "name"),
                        (c_int, "compute_capability multiprocessors driver_version nvrtc_version cublaslt_version"),
                        (ctypes.c_int64, "kernels_compiled kernels_from_disk"), (ctypes.c_char * 512, "cache_path"))
STRUCTS = [Allocator, Config, Matrix, Vector, Desc, Args, PlanDetails, ContextDetails]


def check_structs(folder):
    """Compares the mirrors above with what the C compiler makes of gemmepi.h."""
    ours, prints = [], []
    for mirror in STRUCTS:
        ours.append("%s %d" % (mirror.__name__, ctypes.sizeof(mirror)))
        prints.append('printf("%s %%d\\n", (int)sizeof(%s));' % ((mirror.__name__,) * 2))
        for field, _ in mirror._fields_:
            place = getattr(mirror, field)
            ours.append("%s.%s %d %d" % (mirror.__name__, field, place.offset, place.size))
            prints.append('printf("%s.%s %%d %%d\\n", (int)offsetof(%s, %s), (int)sizeof(((%s *)0)->%s));'
                          % ((mirror.__name__, field) * 3))
    source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
    with open(source, "w") as file:
        file.write('#include <stdio.h>\n#include "gemmepi.h"\nint main(void) {\n%s\nreturn 0;\n}\n' % "\n".join(prints))
    subprocess.run(["cc", "-I", ROOT, "-o", program, source], check=True)
    theirs = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    for mine, real in zip(ours, theirs):
        if mine != real:
            sys.exit("the mirror of a struct is wrong: here %s, in C %s" % (mine, real))
    assert len(ours) == len(theirs)


def load_library(folder):
    source, path = os.path.join(folder, "gemmepi.c"), os.path.join(folder, "libgemmepi.so")
    with open(source, "w") as file:
        file.write('#include "gemmepi.h"\n')
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-DGEMMEPI_IMPLEMENTATION", "-I", ROOT, "-x", "c", source,
                    "-o", path, "-lm", "-ldl", "-lpthread"], check=True)
    library = ctypes.CDLL(path)
    pointers = ctypes.POINTER(c_pointer)
    for name, result, arguments in [
            ("create", c_int, [ctypes.POINTER(Config), pointers]),
            ("destroy", None, [c_pointer]),
            ("context_info", c_int, [c_pointer, ctypes.POINTER(ContextDetails)]),
            ("last_error", ctypes.c_char_p, []),
            ("status_name", ctypes.c_char_p, [c_int]),
            ("matmul", c_int, [c_pointer, ctypes.POINTER(Desc), ctypes.POINTER(Args), c_pointer]),
            ("plan_matmul", c_int, [c_pointer, ctypes.POINTER(Desc), pointers]),
            ("prepare", c_int, [c_pointer, c_pointer]),
            ("plan_run", c_int, [c_pointer, ctypes.POINTER(Args), c_pointer]),
            ("plan_destroy", None, [c_pointer]),
            ("plan_info", c_int, [c_pointer, ctypes.POINTER(PlanDetails)]),
            ("explain", c_size, [c_pointer, c_pointer, c_size])]:
        function = getattr(library, "gemmepi_" + name)
        function.restype, function.argtypes = result, arguments
    return library


class Refused(Exception):
    """A call of the library that failed, in its own words."""


class Gemmepi:
    def __init__(self, folder, device):
        self.library = load_library(folder)
        self.context = c_pointer()
        config = Config(device=device, cache_path=os.path.join(folder, "cache").encode())
        self.call("create", config, ctypes.byref(self.context))

    def call(self, name, *arguments):
        status = getattr(self.library, "gemmepi_" + name)(*arguments)
        if status:
            raise Refused("%s: %s: %s" % (name, self.library.gemmepi_status_name(status).decode(),
                                          self.library.gemmepi_last_error().decode()))

    def info(self):
        details = ContextDetails()
        self.call("context_info", self.context, details)
        return details

    def plan(self, desc):
        plan = c_pointer()
        self.call("plan_matmul", self.context, desc, ctypes.byref(plan))
        return plan

    def plan_info(self, plan):
        details = PlanDetails()
        self.call("plan_info", plan, details)
        return details

    def explain(self, plan):
        text = ctypes.create_string_buffer(self.library.gemmepi_explain(plan, None, 0) + 1)
        self.library.gemmepi_explain(plan, text, len(text))
        return text.value.decode()


# >>tensors

GUARD = 256  # elements around each tensor that nobody may touch; a multiple of 256 bytes, so offsets decide alignment
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Tensor:
    """`lines` runs of `length` elements, `ld` apart, in a buffer of NaN; by_rows: lines are rows of what it means."""

    def __init__(self, dtype, lines, length, ld, stride, offset, batch, by_rows):
        self.dtype, self.lines, self.length, self.ld, self.stride = dtype, lines, length, ld, stride
        self.start, self.batch, self.by_rows = GUARD + offset, batch, by_rows
        self.before = None

    def allocate(self, device, generator):
        extent = (self.batch - 1) * self.stride + (self.lines - 1) * self.ld + self.length
        shape = (self.start + max(extent, 0) + GUARD,)
        if self.dtype == torch.uint8:
            self.buffer = torch.randint(0, 256, shape, dtype=self.dtype, device=device, generator=generator)
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
FORMS = [(activation, backward) for backward in (0, BACKWARD) for activation in range(7)]
GROUP = 8  # problems in a row of one family, which share kernels: compiling one takes longer than running it

Family = collections.namedtuple("Family", "dtype compute activation flags side")


def random_flags(rng, activation, backward):
    flags = backward
    flags |= BIAS if rng.random() < (0.2 if backward else 0.5) else 0
    flags |= AUX if not backward and rng.random() < (0.8 if activation == RELU else 0.4) else 0
    flags |= RESIDUAL if rng.random() < 0.25 else 0
    may_sum = backward or activation == NONE
    draw = rng.random()
    flags |= BGRAD if may_sum and draw < 0.5 else BGRAD_A if draw > 0.9 else BGRAD_B if draw > 0.8 else 0
    if flags & ANY_BGRAD and rng.random() < 0.35:
        flags |= ACCUMULATE
    return as_cublaslt(flags) if activation <= GELU_TANH and rng.random() < 0.5 else flags


def as_cublaslt(flags):
    """what cuBLASLt has an epilogue for"""
    flags &= ~(RESIDUAL | ACCUMULATE | (BIAS if flags & BACKWARD else 0))
    return flags if not flags & (BGRAD_A | BGRAD_B) else flags & (BGRAD_A | BGRAD_B | BACKWARD)


def random_side_dtypes(rng, dtype):
    """Of c, d, aux, residual, bias and bias_grad: all the operands', D in F32, or any."""
    names = ["c", "d", "aux", "residual", "bias", "bias_grad"]
    style = rng.choice(["same", "same", "wide", "any"])
    if dtype in (F64, F32) or style == "same":
        return dict.fromkeys(names, dtype)
    if style == "wide":
        return dict.fromkeys(names, F32)
    return {name: rng.choice([dtype, F32]) for name in names}


def family_of(seed, index):
    """5 kinds and 14 forms have no common divisor: 70 families have met each kind with each form."""
    number = index // GROUP
    rng = random.Random("family %d %d" % (seed, number))
    dtype, compute = KINDS[number % len(KINDS)]
    activation, backward = FORMS[number % len(FORMS)]
    return Family(dtype, compute, activation, random_flags(rng, activation, backward), random_side_dtypes(rng, dtype))


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
        self.tidy = rng.random() < 0.4  # sizes and strides as fast kernels like them
        self.unit = rng.choice(["element", "16 bytes", "256 bytes"])
        self.column_major = rng.random() < 0.4
        self.draw_sizes()
        self.draw_scalars()
        self.flags = (RELAXED if rng.random() < 0.15 else 0) | (DEVICE_SCALARS if rng.random() < 0.1 else 0)
        self.fill = rng.choice(["normal", "normal", "positive", "cancelling", "integers"])
        self.by_plan, self.side_stream, self.own_workspace, self.repeats = (rng.random() < x
                                                                             for x in (0.5, 0.3, 0.3, 0.15))
        self.desc = Desc(m=self.m, n=self.n, k=self.k, batch=self.batch, order=int(self.column_major),
                         epilogue=self.family.activation | self.family.flags, flags=self.flags)
        self.desc.compute = COMPUTE_TF32 if self.tf32 else rng.choice([COMPUTE_DEFAULT, self.family.compute])
        self.tensors, self.in_place = {}, []
        self.draw_tensors()
        self.fill_tensors()

    tf32 = property(lambda self: self.family.compute == COMPUTE_TF32)

    def has(self, flag):
        return bool(self.family.flags & flag)

    # shapes and numbers

    def draw_sizes(self):
        rng, host = self.rng, self.device.type == "cpu"
        top = 96 if host else 1500
        self.m, self.n = random_size(rng, top), random_size(rng, top)
        draw = rng.random()
        self.k = (0 if draw < 0.015 else rng.randint(1, 16) if draw < 0.1 else
                  rng.randint(1, 200 if host else 4096) if draw < 0.3 else random_size(rng, min(300, top)))
        if self.tidy:
            self.m, self.n, self.k = (round_up(x, 8) for x in (self.m, self.n, self.k))
        self.batch = rng.choice([1, 1, 1, 2, 3, 4])

    def draw_scalars(self):
        rng = self.rng
        self.alpha = rng.choice([1, 1, rng.uniform(-2, 2), -0.5, 0 if rng.random() < 0.2 else 2])
        self.beta = rng.choice([0, 0, 1, rng.uniform(-2, 2)])

    def values(self, scale=1.0):
        """of a shape: numbers as self.fill has them"""
        def make(shape):
            if self.fill == "integers":
                return torch.randint(-3, 4, shape, device=self.device, generator=self.generator).double()
            x = torch.randn(shape, dtype=F64, device=self.device, generator=self.generator) * scale
            return x.abs() if self.fill == "positive" else x
        return make

    # layouts

    def offset(self, dtype):
        size = dtype.itemsize
        step = {"element": size, "16 bytes": 16, "256 bytes": 256}[self.unit]
        return self.rng.randint(0, 15 if step < 16 else 3) * step // size

    def draw_layout(self, lines, length, mask, output):
        """ld, batch stride and what of both the desc says"""
        rng = self.rng
        unit = 128 if mask else 8 if self.tidy else 1
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

    def draw_matrix(self, name, dtype, rows, columns, output=False):
        transposed = name in "ab" and self.rng.random() < 0.5
        by_rows = self.column_major == transposed
        lines, length = (rows, columns) if by_rows else (columns, rows)
        mask = name == "aux" and self.family.activation == RELU
        ld, stride, ld_said = self.draw_layout(lines, length, mask, output)
        place = (self.offset(torch.uint8 if mask else dtype), self.batch, by_rows)
        tensor = Mask(lines, length, ld, stride, *place) if mask else Tensor(dtype, lines, length, ld, stride, *place)
        is_default = mask or dtype == (self.family.side["d"] if name not in "abd" else self.family.dtype)
        said = 0 if mask or (is_default and self.rng.random() < 0.5) else DTYPE_NUMBERS[dtype]
        if name == "a" and dtype != F32 or name == "c":
            said = DTYPE_NUMBERS[dtype]  # no default there, or one that has the layout too
        setattr(self.desc, name, Matrix(said, int(transposed), ld_said, stride))
        self.tensors[name] = tensor.allocate(self.device, self.generator)

    def draw_vector(self, name, along_rows, output=False):
        dtype, length = self.family.side[name], self.m if along_rows else self.n
        item = round_up(length, 8 if self.tidy else 1) + 8 * self.rng.randint(0, 1)
        stride = 0 if self.rng.random() < 0.5 else item
        said = 0 if dtype == self.family.side["d"] and self.rng.random() < 0.5 else DTYPE_NUMBERS[dtype]
        setattr(self.desc, name, Vector(said, stride))
        tensor = Tensor(dtype, 1, length, length, stride, self.offset(dtype), self.batch, not along_rows)
        self.tensors[name] = tensor.allocate(self.device, self.generator)

    def draw_beside_d(self, name):
        """c, residual, or what BACKWARD reads: D itself, or a matrix of its own"""
        d, dtype = self.tensors["d"], self.family.side[name]
        may_be_d = dtype == d.dtype and not (name == "aux" and self.family.activation == RELU)
        if may_be_d and self.rng.random() < 0.2:
            self.tensors[name] = d
            self.in_place.append(name)
            setattr(self.desc, name, Matrix(DTYPE_NUMBERS[dtype], 0, d.ld, d.stride))
        elif name == "c" and dtype == d.dtype and self.rng.random() < 0.4:  # all of c by default: as D lies
            tensor = Tensor(dtype, d.lines, d.length, d.ld, d.stride, self.offset(dtype), self.batch, d.by_rows)
            self.tensors[name] = tensor.allocate(self.device, self.generator)
        else:
            self.draw_matrix(name, dtype, self.m, self.n)

    def draw_tensors(self):
        family, sides = self.family, self.family.side
        self.draw_matrix("a", family.dtype, self.m, self.k)
        self.draw_matrix("b", family.dtype, self.k, self.n)
        self.draw_matrix("d", sides["d"], self.m, self.n, output=True)
        # C where it is not read: NULL, or there and all NaN. With scalars on the device it is needed.
        self.beta_given = self.beta != 0 or self.rng.random() < 0.5
        on_device = bool(self.flags & DEVICE_SCALARS) and self.beta_given
        if self.beta != 0:
            self.draw_beside_d("c")
        elif on_device or self.rng.random() < 0.5:
            self.draw_matrix("c", sides["c"], self.m, self.n)
        else:
            self.desc.c = Matrix(DTYPE_NUMBERS[sides["c"]])
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

    def put(self, name, make):
        view = self.tensors[name].items(self.tensors[name].buffer)
        view.copy_(make(tuple(view.shape)))

    def fill_operands(self):
        self.put("a", self.values())
        self.put("b", self.values(self.rng.choice([0.3, 1, 3]) / max(1, self.k) ** 0.5))
        a, b = (self.tensors[name].items(self.tensors[name].buffer) for name in "ab")
        half = self.k // 2
        if self.fill == "cancelling" and half:
            a[:, :, half:2 * half] = a[:, :, :half].clone()
            b[:, half:2 * half, :] = -b[:, :half, :].clone()
        if self.fill == "integers" and self.family.dtype == F32 and not self.tf32 and self.k <= 900:
            # 12 significant bits in one operand, which TF32 would round, against -1, 0 and 1
            wide, narrow = (a, b) if self.rng.random() < 0.5 else (b, a)
            narrow.clamp_(-1, 1)
            wide.copy_(torch.randint(2048, 4096, tuple(wide.shape), device=self.device, generator=self.generator)
                       .float() * wide.sign())

    def fill_tensors(self):
        if self.fill == "integers":
            self.alpha = self.rng.choice([1, 1, -1, 2])
            self.beta = self.beta and self.rng.choice([1, -1])
        self.fill_operands()
        for name in ["c"] * (self.beta != 0) + ["bias", "residual"]:
            if name in self.tensors:
                self.put(name, self.values())
        if self.has(ACCUMULATE):
            self.put("bias_grad", self.values(4))
        if self.has(BACKWARD) and self.family.activation != RELU and "aux" not in self.in_place:
            self.put("aux", self.values(self.rng.choice([1, 3])))
        elif "aux" in self.in_place:
            self.put("d", self.values(self.rng.choice([1, 3])))
        for tensor in self.distinct():
            tensor.save()

    def distinct(self):
        return list({id(tensor): tensor for tensor in self.tensors.values()}.values())

    # for the library

    def args(self):
        args = Args()
        for name, tensor in self.tensors.items():
            setattr(args, name, tensor.pointer())
        kind = self.device if self.flags & DEVICE_SCALARS else "cpu"
        self.scalars = torch.tensor([self.alpha, self.beta], dtype=F64, device=kind)
        if self.alpha != 1 or self.rng.random() < 0.5:
            args.alpha = self.scalars.data_ptr()
        if self.beta_given:
            args.beta = self.scalars.data_ptr() + 8
        return args

    def promise_alignment(self):
        """What all pointers are multiples of, said in the desc or left to its default where that holds."""
        bits = 256
        for tensor in self.tensors.values():
            bits |= tensor.pointer()
        self.alignment = bits & -bits
        if not self.by_plan:
            self.desc.alignment = self.rng.choice([0, self.alignment])
        elif self.alignment < 16:
            self.desc.alignment = self.alignment
        else:
            self.desc.alignment = self.rng.choice([0, 16, self.alignment])

    def __str__(self):
        family = self.family
        epilogue = "|".join([ACTIVATIONS[family.activation]] +
                            [name for i, name in enumerate(FLAGS) if self.has(0x100 << i)])
        layouts = []
        for name, t in self.tensors.items():
            said = getattr(self.desc, name)
            layouts.append("%s %s%s ld %d stride %d at %d%s" % (
                name, str(t.dtype)[6:], " transposed" if getattr(said, "transposed", 0) else "", t.ld, t.stride,
                t.start - GUARD, " (is d)" if name in self.in_place else ""))
        return ("#%d %s%s %s m %d n %d k %d batch %d %s-major alpha %r beta %r%s%s%s, %s, alignment %d, %s%s%s; %s" % (
            self.index, str(family.dtype)[6:], " tf32" if self.tf32 else "", epilogue, self.m, self.n, self.k,
            self.batch, "column" if self.column_major else "row", self.alpha, self.beta,
            "" if self.beta_given else " (NULL)", " RELAXED" if self.flags & RELAXED else "",
            " DEVICE_SCALARS" if self.flags & DEVICE_SCALARS else "", self.fill, self.desc.alignment,
            "plan" if self.by_plan else "one-shot", ", own workspace" if self.own_workspace else "",
            ", side stream" if self.side_stream else "", "; ".join(layouts)))


# >>the reference

REFERENCE = 2.0 ** -51  # what torch's float64 activations and sums may be off by, relative to what goes in
LOOSE = 2e-5            # RELAXED: cublaslt.md has 5e-6 forward and 1.5e-5 for the derivative
EXACT_LIMIT = 2.0 ** 22
LOWEST = {F64: 5e-324, F32: 2.0 ** -149, F16: 2.0 ** -24, BF16: 2.0 ** -133}

Expected = collections.namedtuple("Expected", "value bound exact")


def activate(activation, x):
    return [lambda x: x, torch.relu, lambda x: F.gelu(x, approximate="tanh"), lambda x: F.gelu(x, approximate="none"),
            F.silu, torch.sigmoid, torch.tanh][activation](x)


def derivatives(activation, at):
    """act'(x), the magnitudes of its terms act(x)/x and the rest, and |x act''(x)|, by autograd"""
    if activation == NONE:
        one = torch.ones_like(at)
        return one, one, torch.zeros_like(at)
    x = at.clone().requires_grad_(True)
    y = activate(activation, x)
    first, = torch.autograd.grad(y.sum(), x, create_graph=True)
    second, = torch.autograd.grad(first.sum(), x)
    first, y = first.detach(), y.detach()
    if activation in (SIGMOID, TANH):
        magnitude = first.abs()
    else:
        mean = torch.where(at == 0, first, y / at)
        magnitude = mean.abs() + (first - mean).abs()
    return first, magnitude, (at * second).abs()


def roundoff(dtype):
    return torch.finfo(dtype).eps / 2


def bound_of(dtype, value, spread):
    return roundoff(dtype) * value.abs() + spread + LOWEST[dtype]


def share_of_products(p):
    """E / S"""
    return (4 + p.k / 8) * roundoff(F64 if p.family.dtype == F64 else F32)


def before_activation(p):
    """v, E and whether v is exact"""
    a, b = p.tensors["a"].double(), p.tensors["b"].double()
    v, size = p.alpha * torch.matmul(a, b), abs(p.alpha) * torch.matmul(a.abs(), b.abs())
    for factor, name in [(p.beta, "c"), (1 if p.has(BIAS) else 0, "bias")]:
        if factor:
            term = factor * p.tensors[name].double()
            v, size = v + term, size + term.abs()
    exact = p.fill == "integers" and float(size.max()) < EXACT_LIMIT
    error = (share_of_products(p) + (2.0 ** -9 if p.tf32 else 0)) * size
    d = p.tensors["d"].dtype
    if p.flags & RELAXED and d in (F16, BF16):  # one rounding before bias, activation and derivative
        early = abs(p.alpha) * torch.matmul(a, b).abs()
        if p.beta:
            early = early + (p.beta * p.tensors["c"].double()).abs()
        error, exact = error + roundoff(d) * early, False
    return v, error, exact


def after_activation(p, v, error):
    """the result before the residual, L E, T"""
    activation, u = p.family.activation, roundoff(F64 if p.family.dtype == F64 else F32)
    loose = LOOSE if p.flags & RELAXED and activation == GELU_TANH else 0
    own = REFERENCE * (v.abs() + error) if activation > RELU else torch.zeros_like(v)
    if not p.has(BACKWARD):
        slope = {GELU_TANH: 1.13, GELU_ERF: 1.13, SILU: 1.1}.get(activation, 1)
        result = activate(activation, v)
        return result, slope * error + own + loose, result.abs()
    if activation == RELU:
        mask = p.tensors["aux"].flags(p.tensors["aux"].before)
        zero = torch.zeros_like(v)
        result = torch.where(mask, v, zero)
        return result, torch.where(mask, error, zero), result.abs()
    x = p.tensors["aux"].double()
    first, magnitude, bend = derivatives(activation, x)
    spread = first.abs() * error + v.abs() * (2 * u * bend + loose) + own * (1 + x * x)
    return v * first, spread, v.abs() * magnitude


def summed(p, x):
    """over what one element of bias_grad sums: [1 or batch, 1, n] or [1 or batch, m, 1]"""
    grad = p.tensors["bias_grad"]
    dimension = (2 if p.has(BGRAD_A) else 1 if p.has(BGRAD_B) else 2 if p.column_major else 1)
    x = x.sum(dimension, keepdim=True)
    return x.sum(0, keepdim=True) if grad.stride == 0 else x


def expected_sum(p, full, spread, terms, exact):
    grad, u = p.tensors["bias_grad"], roundoff(F64 if p.family.dtype == F64 else F32)
    value, size = summed(p, full), summed(p, full.abs())
    terms, spread = summed(p, terms) if terms is not None else value.abs(), summed(p, spread)
    if p.has(ACCUMULATE):
        old = grad.items(grad.before).double()
        value, terms, size = value + old, terms + old.abs(), size + old.abs()
    exact = exact and float(size.max() if size.numel() else 0) < EXACT_LIMIT
    return Expected(value, bound_of(grad.dtype, value, spread + 4 * u * terms + REFERENCE * size), exact)


def reference(p):
    v, error, exact = before_activation(p)
    d, u = p.tensors["d"].dtype, roundoff(F64 if p.family.dtype == F64 else F32)
    expected = {}
    if p.has(AUX) and p.family.activation == RELU:
        expected["aux"] = Expected(v, torch.zeros_like(error) if exact else error, exact)
    elif p.has(AUX):
        expected["aux"] = Expected(v, bound_of(p.tensors["aux"].dtype, v, error), exact)
    result, spread, terms = after_activation(p, v, error)
    if p.has(RESIDUAL):
        residual = p.tensors["residual"].double()
        result, terms = result + residual, terms + residual.abs()
    exact = exact and p.family.activation <= RELU and float(terms.max()) < EXACT_LIMIT
    expected["d"] = Expected(result, bound_of(d, result, spread + 4 * u * terms), exact)
    if p.has(BGRAD):
        rounded = d in (F16, BF16) and p.flags & RELAXED  # cuBLASLt sums such values as it stores them
        kept = not rounded or bool((result.to(d).double() == result).all())
        expected["bias_grad"] = expected_sum(p, result, spread + (roundoff(d) * result.abs() if rounded else 0), terms,
                                             exact and kept)
    elif p.has(ANY_BGRAD):
        operand = p.tensors["a" if p.has(BGRAD_A) else "b"].double()
        expected["bias_grad"] = expected_sum(p, operand, share_of_products(p) * operand.abs(), None,
                                             p.fill == "integers")
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
            bad = got != expected.value.to(tensor.dtype).double()
            ratio = torch.where(bad, error, 0)
        else:
            bad = ~(error <= expected.bound) & ~overflowed(got, tensor.dtype, expected)
            ratio = error / expected.bound
            key = "%s %s%s" % (name, str(p.family.dtype)[6:], " tf32" if p.tf32 else "")
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


def run_once(gemmepi, p, plan, args, stream):
    if not p.by_plan:
        gemmepi.call("matmul", gemmepi.context, p.desc, args, stream)
        return
    if not args.workspace:
        gemmepi.call("prepare", plan, stream)
    gemmepi.call("plan_run", plan, args, stream)


def run_twice(gemmepi, p, plan, args, stream):
    """None, or which output differs"""
    run_once(gemmepi, p, plan, args, stream)
    first = {name: p.tensors[name].buffer.clone() for name in p.outputs}
    for name in p.outputs:
        p.tensors[name].buffer.copy_(p.tensors[name].before)
    run_once(gemmepi, p, plan, args, stream)
    different = [name for name in p.outputs if not bool(p.tensors[name].same_bits(first[name]).all())]
    return "%s: a second run gave other bits" % ", ".join(different) if different else None


def solve(gemmepi, p, stream):
    """what is wrong, the route, and what explain says of it"""
    p.promise_alignment()
    args = p.args()
    described = Desc.from_buffer_copy(p.desc)
    if not p.by_plan and not p.desc.alignment:
        described.alignment = min(p.alignment, 16)  # what a one-shot call takes it for
    plan = gemmepi.plan(described)
    try:
        info = gemmepi.plan_info(plan)
        keeper = workspace_for(args, info.workspace_size, p.device) if p.own_workspace else None
        found = []
        if p.repeats and info.deterministic:
            found.append(run_twice(gemmepi, p, plan, args, stream))
        else:
            run_once(gemmepi, p, plan, args, stream)
        found = [text for text in found if text] + complaints(p, reference(p))
        del keeper
        return found, info.route_name.decode(), gemmepi.explain(plan)
    finally:
        gemmepi.library.gemmepi_plan_destroy(plan)


class Tally:
    def __init__(self, count):
        self.count, self.passed, self.failed, self.routes = count, 0, 0, collections.Counter()
        self.start = time.monotonic()

    def fail(self, what, explanation=""):
        self.failed += 1
        print("FAILED %s" % what)
        if self.failed <= 3 and explanation:
            print("    " + explanation.strip().replace("\n", "\n    "))
        sys.stdout.flush()

    def progress(self, gemmepi):
        done = self.passed + self.failed
        if done % max(1, self.count // 10) == 0:
            print("%d of %d: %d passed, %d failed, %d kernels compiled, %.0f s" % (
                done, self.count, self.passed, self.failed, gemmepi.info().kernels_compiled,
                time.monotonic() - self.start), flush=True)


def try_problem(gemmepi, seed, index, device, tally, side):
    """False where the device can no longer be used"""
    name, explanation = "#%d" % index, ""
    try:
        p = Problem(seed, index, device)
        name = str(p)
        if p.side_stream and side:
            side.wait_stream(torch.cuda.current_stream())  # p was filled there
            with torch.cuda.stream(side):
                found, route, explanation = solve(gemmepi, p, side.cuda_stream)
            torch.cuda.current_stream().wait_stream(side)
        else:
            stream = torch.cuda.current_stream().cuda_stream if device.type == "cuda" else None
            found, route, explanation = solve(gemmepi, p, stream)
        tally.routes[route] += 1
    except (Refused, RuntimeError) as error:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the index of one problem")
    parser.add_argument("--host", action="store_true", help="GEMMEPI_DEVICE_HOST and CPU tensors")
    options = parser.parse_args()
    if not options.host and not torch.cuda.is_available():
        print("skip random_problems_agree_with_pytorch: no GPU that PyTorch can use\n0 passed, 0 failed, 1 skipped")
        return 0
    device = torch.device("cpu" if options.host else "cuda:0")
    torch.zeros(1, device=device)  # the primary context is there before the library takes it
    side = None if options.host else torch.cuda.Stream()
    indices = range(options.count) if options.only is None else [options.only]
    tally = Tally(len(indices))
    with tempfile.TemporaryDirectory() as folder:
        check_structs(folder)
        gemmepi = Gemmepi(folder, -1 if options.host else 1)  # GEMMEPI_DEVICE_HOST, GEMMEPI_DEVICE(0)
        for index in indices:
            if not try_problem(gemmepi, options.seed, index, device, tally, side):
                break
            tally.progress(gemmepi)
        else:
            info = gemmepi.info()
            print("%s, NVRTC %d, cuBLASLt %d, %d kernels compiled" % (
                info.name.decode(), info.nvrtc_version, info.cublaslt_version, info.kernels_compiled))
            gemmepi.library.gemmepi_destroy(gemmepi.context)
    print("routes: %s" % ", ".join("%s %d" % row for row in sorted(tally.routes.items())))
    print("largest error / bound: %s" % ", ".join("%s %.2f" % row for row in sorted(worst.items())))
    print("torch %s, seed %d, %.0f s" % (torch.__version__, options.seed, time.monotonic() - tally.start))
    right = tally.passed == tally.count
    print("%s random_problems_agree_with_pytorch (%d of %d)" % ("ok  " if right else "FAIL", tally.passed, tally.count))
    print("%d passed, %d failed, 0 skipped" % (right, not right))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
