#!/usr/bin/env python3
"""Formulas drawn at random, run as epilogues of products, against an interpreter of the language.

    python3 tests/products/formula_drawn.py [--count 40] [--first 0] [--seed 1] [--host] [--gradients 40] [--verbose]

It needs no package. A formula is made of the grammar of docs/formulas.md, with operands of every kind and type, outputs and reductions.
The interpreter, formula_oracle.py, reads its text and computes each element in double, with a bound of what may be off: the bound of the product
(docs/numerics.md), moved through each step, and each step's rounding. An element that is not within its bound is a failure, and so is
a refusal, as all that is drawn is meant to be accepted.

Gradients: the text that gemmepi_derive writes is read by the same interpreter and held to central differences of the formula.

A formula's index and the seed make it. On the first GPU, or on the host with --host, with GEMMEPI_TEST_DEVICE=host and where there is none.
"""
import argparse
import bisect
import ctypes
import math
import os
import random
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from formula_oracle import ACTIVATIONS, REDUCTION, Arithmetic, Evaluation, parse, reduce  # noqa: E402
from package import api, gemmepi  # noqa: E402

# >>the C interface

F32, F64, F16, BF16, E4M3, E5M2, I8, I32, I64 = range(1, 10)
NUMBER, SCALAR, PER_ROW, PER_COLUMN, FULL, BLOCKED = range(1, 7)
KIND_NAMES = ["", "number", "scalar", "per row", "per column", "full", "blocked"]
DTYPE_NAMES = ["", "F32", "F64", "F16", "BF16", "E4M3", "E5M2", "I8", "I32", "I64"]
ROW_MAJOR, COLUMN_MAJOR = 0, 1


class Library:
    """gemmepi, and memory that it takes: of the host, or of the first GPU, through the driver."""

    def __init__(self, on_host):
        self.driver = None if on_host else self.open_driver()
        self.on_host = self.driver is None
        self.context = gemmepi.Context(gemmepi.HOST if self.on_host else 0)

    @staticmethod
    def open_driver():
        """CUDA's, with the primary context of its first device current, or None"""
        context, device = ctypes.c_void_p(), ctypes.c_int()
        try:
            driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            return None
        if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0) or \
                driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) or driver.cuCtxSetCurrent(context):
            return None
        return driver


class Arena:
    """Buffers of one run: theirs on the host, and where the library sees them."""

    def __init__(self, library):
        self.library, self.buffers = library, []

    def put(self, data):
        host = ctypes.create_string_buffer(bytes(data), max(len(data), 1))
        place = ctypes.c_void_p(ctypes.addressof(host))
        if not self.library.on_host:
            if self.library.driver.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(len(host))):
                raise RuntimeError("out of device memory")
            api.upload(self.library.context, place, host, len(host), None)
        self.buffers.append((host, place))
        return len(self.buffers) - 1

    def place(self, number):
        return self.buffers[number][1].value

    def get(self, number):
        host, place = self.buffers[number]
        if not self.library.on_host:
            api.download(self.library.context, host, place, len(host), None)
        return host.raw

    def free(self):
        if not self.library.on_host:
            for _, place in self.buffers:
                self.library.driver.cuMemFree_v2(place)


# >>types

SIZES = {F32: 4, F64: 8, F16: 2, BF16: 2, E4M3: 1, E5M2: 1, I8: 1, I32: 4, I64: 8}
CODES = {F32: "f", F64: "d", F16: "e", I8: "b", I32: "i", I64: "q"}
UNITS = {F32: 2.0 ** -24, F64: 2.0 ** -53, F16: 2.0 ** -11, BF16: 2.0 ** -8, E4M3: 2.0 ** -4, E5M2: 2.0 ** -3}
SMALLEST = {F32: 2.0 ** -149, F64: 5e-324, F16: 2.0 ** -24, BF16: 2.0 ** -133, E4M3: 2.0 ** -9, E5M2: 2.0 ** -16}
SPACING = {F16: lambda size: 2.0 ** (max(math.frexp(size)[1] - 1, -14) - 10), BF16: lambda size: 2.0 ** (max(math.frexp(size)[1] - 1, -126) - 7)}
LARGEST = {F32: 3.4028234663852886e38, F64: sys.float_info.max, F16: 65504.0, BF16: 3.3895313892515355e38, E4M3: 448.0, E5M2: 57344.0}


def fp8_values(bits, bias, finite_only):
    """of all 256 codes: with `bits` of mantissa; E4M3 has NaN at its largest magnitude alone"""
    values = []
    for code in range(256):
        exponent, mantissa = (code & 127) >> bits, code & ((1 << bits) - 1)
        size = (mantissa + (1 << bits if exponent else 0)) * 2.0 ** (max(exponent, 1) - bias - bits)
        if finite_only and code & 127 == 127:
            size = math.nan
        if not finite_only and exponent == 31:
            size = math.nan if mantissa else math.inf
        values.append(-size if code & 128 else size)
    return values


FP8 = {E4M3: fp8_values(3, 7, True), E5M2: fp8_values(2, 15, False)}
FP8_SORTED = {dtype: sorted((value, code) for code, value in enumerate(values) if math.isfinite(value) and code != 128)
              for dtype, values in FP8.items()}


def encode(dtype, x):
    """the bytes of a number near x that the type has"""
    if dtype == BF16:
        word = struct.unpack("<I", struct.pack("<f", x))[0]
        return struct.pack("<H", (word + 0x7fff + (word >> 16 & 1)) >> 16)
    if dtype in FP8:
        ordered = FP8_SORTED[dtype]
        at = min(bisect.bisect(ordered, (x, 0)), len(ordered) - 1)
        return bytes([min(ordered[max(at - 1, 0):at + 1], key=lambda pair: abs(pair[0] - x))[1]])
    return struct.pack("<" + CODES[dtype], int(x) if dtype in (I8, I32, I64) else x)


def decode(dtype, data, at):
    """the number at element `at`"""
    data = data[at * SIZES[dtype]:(at + 1) * SIZES[dtype]]
    if dtype == BF16:
        return struct.unpack("<f", b"\0\0" + data)[0]
    return FP8[dtype][data[0]] if dtype in FP8 else struct.unpack("<" + CODES[dtype], data)[0]


# >>drawing

NUMBERS = ["0.5", "2", "1.5", "3", "0.25", "1e-2", "0.1"]
SAFE = ["exp(min({}, 3))", "exp2(clamp({}, -4, 4))", "expm1(min({}, 2))", "log(abs({}) + 0.5)", "log2(abs({}) + 0.25)", "log1p(abs({}))",
        "sqrt(abs({}) + 0.1)", "rsqrt(abs({}) + 0.25)", "pow(abs({}) + 0.1, 1.5)", "sin({})", "cos(2 * {})", "erf({})", "tanh({})"]
ROUGH = ["abs({})", "sign({})", "floor({})", "round(4 * {})", "max({}, 0.1)", "min({}, 1)", "clamp({}, -1, 2)", "log({})", "sqrt({})", "exp({})",
         "mod({}, 2)", "isnan({})", "-{}"]


class Drawn:
    """A product, its formula and its operands. smooth: as gradients want it"""

    def __init__(self, seed, index, smooth):
        self.random = r = random.Random(seed * 1000003 + index + (1 << 40) * smooth)
        self.smooth, self.halves, self.statements, self.operands, self.outputs = smooth, None, [], [], []
        self.parts = 2
        self.types(r)
        self.extents(r)
        self.make()
        while any(self.is_unread(*pair) for pair in self.statements):
            self.statements = [pair for pair in self.statements if not self.is_unread(*pair)]
        self.text = "; ".join("%s = %s" % pair for pair in self.statements)

    def types(self, r):
        self.a_dtype = self.b_dtype = F64 if self.smooth else r.choice([BF16] * 5 + [F16] * 3 + [F32, F32, F64, E4M3, E5M2, I8])
        if self.a_dtype in FP8:
            self.b_dtype = E5M2 if self.a_dtype == E4M3 else E4M3
        self.accumulator = F64 if self.a_dtype == F64 else F32
        self.d_dtype = {F64: F64, F32: F32, I8: F32}.get(self.a_dtype) or r.choice([self.a_dtype] * 3 + [F32, F32, E4M3]
                                                                              if self.a_dtype not in FP8 else [BF16, F32, E4M3])
        self.order = COLUMN_MAJOR if r.random() < 0.2 and not self.smooth else ROW_MAJOR

    def extents(self, r):
        self.batch = r.choice([1] * 6 + [2, 3]) if not self.smooth else 1
        if self.smooth:
            self.m, self.n, self.k = r.randint(1, 4), r.choice([2, 4, 6, 8]), 1
        else:
            self.m = r.choice([1, 2, 7, 16, 33, 40, 64, 96])
            self.n = r.choice([8, 16, 32, 64, 64, 128, 128, 136, 192, 14, 37, 100, 48, 99])
            self.k = r.choice([1, 8, 16, 24, 64, 72, 128, 200])
        if self.order == COLUMN_MAJOR:
            self.m, self.n = self.n, self.m
        self.transposed = [r.random() < 0.5, r.random() < 0.5]

    def is_unread(self, name, _):
        """whether it is a name of the formula's own that no statement has, which is refused"""
        of_others = {"d"} | {o["name"] for o in self.operands}
        return name not in of_others and not any(name in re.findall(r"[A-Za-z_]\w*", text) for _, text in self.statements)

    def is_read(self, name):
        """whether an output depends on it"""
        needed = {o["name"] for o in self.operands if o["output"]} | {"d"}
        for target, text in reversed(self.statements):
            if target in needed:
                needed |= set(re.findall(r"[A-Za-z_]\w*", text))
        return name in needed

    def operand(self, kind, dtype=0, half=False, output=False, stem=None):
        name = "%s%d" % (stem or "xsrcfb"[kind - 1], len(self.operands))
        self.operands.append({"name": name, "kind": kind, "dtype": dtype, "half": half, "output": output, "accumulate": False})
        return name

    def input(self, half):
        r = self.random
        kind = r.choice([NUMBER, SCALAR, PER_ROW, PER_COLUMN, PER_COLUMN, FULL, FULL, BLOCKED])
        if kind == BLOCKED and self.smooth and (self.n // self.parts if half else self.n) % 8:
            kind = FULL  # a gradient is summed over groups of 8
        dtype = F64 if self.accumulator == F64 else r.choice([F32, F16, BF16, BF16, BF16, E4M3, I8, I32])
        name = self.operand(kind, 0 if kind == NUMBER else dtype, half and kind >= PER_COLUMN)
        if kind == BLOCKED:
            self.operands[-1]["blocks"] = (1, 8) if self.smooth else (r.choice([1, 1, 2, 3, 128]), r.choice([1, 2, 5, 8, 16, 32, 32, 128]))
        return name

    def leaf(self, half):
        r = self.random
        if r.random() < 0.5:
            return r.choice(self.values)
        if r.random() < 0.25:
            return r.choice(NUMBERS)
        if not self.halves and not self.smooth and r.random() < 0.15:
            return r.choice(["row", "column", "rows", "columns", "(column - row)", "item", "depth"])
        if not self.halves and not self.smooth and r.random() < 0.1:
            return self.element()
        known = [o["name"] for o in self.operands if not o["output"] and o["dtype"] != I64]
        if known and (r.random() < 0.5 or len(known) > 4):
            return r.choice(known)
        return self.input(half)

    def element(self):
        """of an operand that is read by index"""
        r = self.random
        kind = r.choice([PER_ROW, PER_COLUMN, PER_COLUMN] + [FULL] * (self.order == ROW_MAJOR))
        table = self.operand(kind, F64 if self.accumulator == F64 else r.choice([F32, F16, BF16, E4M3, I8]))
        index = r.choice(["row", "column", "3", "item"]) if r.random() < 0.5 else self.operand(r.choice([PER_ROW, PER_COLUMN, FULL]), r.choice([I32, I64]))
        return "%s[%s]" % (table, index)

    def expression(self, depth, half):
        r = self.random
        if depth <= 0:
            return self.leaf(half)
        inner = lambda: self.expression(depth - 1 - (r.random() < 0.3), half)
        kind = r.random()
        if kind < 0.4:
            return "(%s %s %s)" % (inner(), r.choice(["+", "-", "*", "*"]), inner())
        if kind < 0.47:
            return "%s / (abs(%s) + 0.5)" % (inner(), inner()) if r.random() < 0.7 else "(%s / 0.9)" % inner()
        if kind < 0.68:
            name = r.choice(sorted(ACTIVATIONS)) if not self.smooth else r.choice(["silu", "gelu_erf", "gelu_tanh", "mish", "softplus", "tanh", "sigmoid"])
            parameter = ", 0.2" if name in ("elu", "leaky_relu") and r.random() < 0.5 else ""
            return "%s%s(%s%s)" % ("d_" if r.random() < 0.25 and not self.smooth else "", name, inner(), parameter)
        if kind < 0.9 or self.smooth:
            return (r.choice(SAFE[6:]) if self.smooth else r.choice(SAFE + ROUGH)).format(inner())
        comparison = "%s %s %s" % (inner(), r.choice(["<", "<=", ">", ">=", "==", "!="]), inner())
        if r.random() < 0.3:
            comparison = "(%s) %s (%s > 0)" % (comparison, r.choice(["&&", "||"]), inner())
        return "(%s ? %s : %s)" % (comparison, inner(), inner())

    def make(self):
        r, along = self.random, self.m if self.order == COLUMN_MAJOR else self.n
        self.values, width = ["v"], "n"
        if along % 2 == 0 and self.order == ROW_MAJOR and r.random() < 0.25:
            pair = r.choice([("left(v)", "right(v)", "pair(%s, %s)"), ("even(v)", "odd(v)", "interleave(%s, %s)")])
            if self.n % 64 == 0 and r.random() < 0.4:
                pair = ("left(v, 64)", "right(v, 64)", "pair(%s, %s, 64)")
            self.halves, self.values = pair, list(pair[:2])
        elif along % 3 == 0 and self.order == ROW_MAJOR and r.random() < 0.4:
            self.halves, self.parts = ("part(v, 0, 3)", "part(v, 2, 3)", "parts(%s, part(v, 1, 3), %s)"), 3
            self.values = list(self.halves[:2])
        half = self.halves is not None
        if not half and not self.smooth and r.random() < 0.12:
            seed = self.operand(SCALAR, I64, stem="seed")
            self.statements.append(("kept", "uniform(%s, 1) >= 0.25" % seed))
            self.values.append("(kept ? v : 0)")
        for number in range(r.choice([0, 0, 1, 2])):
            self.statements.append(("t%d" % number, self.expression(2, half)))
            self.values.append("t%d" % number)
        result = r.choice(self.values) if r.random() < 0.05 else self.expression(3, half)
        result = "%s + 0 * %s" % (result, self.values[0])  # as wide as that, whatever was drawn
        chance = not half and not self.smooth and self.d_dtype not in FP8 and self.d_dtype != I8 and r.random() < 0.1
        if half and r.random() < 0.5:
            result, width = self.halves[2] % (result, self.expression(2, half)), "n"
        elif half:
            width = "half"
        self.d_width = width
        self.has_d = r.random() < 0.9
        name = "d" if self.has_d else "z"
        if chance and self.has_d:
            result = "stochastic(%s, %s, 9)" % (result, self.operand(SCALAR, I64, stem="seed"))
        self.statements.append((name, result))
        if r.random() < (0.4 if self.has_d else 1):
            self.add_reduction(name)
        if r.random() < 0.25 and not self.smooth:
            output = self.operand(FULL, r.choice([F32, BF16, F16]) if self.accumulator == F32 else F64, width == "half", True, "o")
            self.statements.append((output, "%s * 2 + 1" % name))

    def group(self):
        """of columns that lie side by side, which are reduced apart; 0: there is none"""
        r, along = self.random, self.m if self.order == COLUMN_MAJOR else self.n
        each = along // self.parts if self.halves else along
        fits = [w for w in (8, 16, 24, 64) if each and each % w == 0 and not (self.halves and "even" in self.halves[0])]
        return r.choice(fits) if fits and r.random() < 0.4 else 0

    def add_reduction(self, name):
        r, group = self.random, self.group()
        if group:
            axis = "column" if self.order == COLUMN_MAJOR else "row"
            what = r.choice(["sum", "max", "min"]) if not self.smooth else "sum"
            output = self.operand(BLOCKED, self.accumulator, self.d_width == "half", True, "q")
            self.operands[-1]["reduces"] = (axis, what)
            self.operands[-1]["blocks"] = (group, 1) if axis == "column" else (1, group)
            self.statements.append((output, "%s_%s(%s, %d)" % (axis, what, r.choice([name, "%s * %s" % (name, name)]), group)))
            return
        axis = r.choice(["row", "row", "row", "column", "all"])
        what = r.choice(["sum", "sum", "max", "min", "logsumexp"] + (["argmax"] if axis == "row" else [])) if not self.smooth else "sum"
        if axis == "all" and what in ("min", "logsumexp"):
            what = "sum"
        dtype = I32 if what == "argmax" else self.accumulator
        output = self.operand({"row": PER_ROW, "column": PER_COLUMN, "all": SCALAR}[axis], dtype, axis == "column" and self.d_width == "half", True, "q")
        self.operands[-1]["reduces"] = (axis, what)
        self.statements.append((output, "%s_%s(%s)" % (axis, what, r.choice([name, "%s * %s" % (name, name)]))))

    def __str__(self):
        operands = ", ".join("%s%s %s %s%s" % ("-> " if o["output"] else "", o["name"], KIND_NAMES[o["kind"]], DTYPE_NAMES[o["dtype"]],
                                               " half" if o["half"] else "") for o in self.operands)
        return "%d x %d x %d batch %d %s x %s -> %s%s%s: %s   [%s]" % (
            self.m, self.n, self.k, self.batch, DTYPE_NAMES[self.a_dtype], DTYPE_NAMES[self.b_dtype], DTYPE_NAMES[self.d_dtype],
            " column-major" if self.order else "", "".join(" T"[t] for t in self.transposed), self.text, operands)


# >>a problem's memory

class Stored:
    """Elements of [batch, rows, columns] in lines that are longer than they need be; what lies between is as it was put there."""

    def __init__(self, r, dtype, batch, rows, columns, by_columns, output, small):
        self.dtype, self.rows, self.columns, self.by_columns = dtype, rows, columns, by_columns
        lines, length = (columns, rows) if by_columns else (rows, columns)
        unit = 16 // SIZES[dtype]
        self.ld = (length + unit - 1) // unit * unit + r.choice([0, 0, unit]) if r.random() < 0.7 else length + r.choice([0, 1, 3])
        self.stride = lines * self.ld + r.choice([0, unit])
        count = self.stride * batch
        if output:
            self.data = bytearray(b"\xff" * (count * SIZES[dtype]))
        else:
            draw = (lambda: r.randint(-3, 3)) if dtype in (I8, I32, I64) else (lambda: r.gauss(0, small))
            self.data = bytearray(b"".join(encode(dtype, draw()) for _ in range(count)))

    def at(self, item, i, j):
        return item * self.stride + (j * self.ld + i if self.by_columns else i * self.ld + j)

    def value(self, item, i, j):
        return float(decode(self.dtype, self.data, self.at(item, i, j)))


SHAPES = {SCALAR: (False, False), PER_ROW: (True, False), PER_COLUMN: (False, True), FULL: (True, True), BLOCKED: (True, True)}


def blocks_of(o):
    """rows and columns of an element"""
    return o.get("blocks", (1, 1))


class Problem:
    def __init__(self, drawn, library):
        self.drawn, r = drawn, drawn.random
        d, self.kept = drawn, []
        small = 0.6 / math.sqrt(max(d.k, 1)) ** 0.5
        self.a = Stored(r, d.a_dtype, d.batch, d.m, d.k, d.transposed[0] != (d.order == COLUMN_MAJOR), False, small)
        self.b = Stored(r, d.b_dtype, d.batch, d.k, d.n, d.transposed[1] != (d.order == COLUMN_MAJOR), False, small)
        self.d = Stored(r, d.d_dtype, d.batch, d.m, self.width(d.d_width == "half"), d.order == COLUMN_MAJOR, True, 1) if d.has_d else None
        self.alpha = r.choice([1.0, 1.0, 0.5])
        self.tensors = [None if o["kind"] == NUMBER else self.stored(r, o) for o in d.operands]
        self.numbers = [r.choice([0.5, -1.25, 2.0]) if o["kind"] == NUMBER else None for o in d.operands]
        self.library = library

    def width(self, half):
        return self.drawn.n // self.drawn.parts if half else self.drawn.n

    def stored(self, r, o):
        (rows, columns), (of_rows, of_columns) = SHAPES[o["kind"]], blocks_of(o)
        rows, columns = self.drawn.m if rows else 1, self.width(o["half"]) if columns else 1
        return Stored(r, o["dtype"], self.drawn.batch, -(-rows // of_rows), -(-columns // of_columns),
                      self.drawn.order == COLUMN_MAJOR and o["kind"] >= FULL or o["kind"] == PER_ROW, o["output"], 0.8)

    def matrix(self, view, stored, transposed):
        view.dtype, view.ld, view.batch_stride, view.transposed = stored.dtype, stored.ld, stored.stride, transposed

    def desc(self):
        d, desc = self.drawn, api.matmul_desc()
        desc.m, desc.n, desc.k, desc.batch, desc.order = d.m, d.n, d.k, d.batch, d.order
        self.matrix(desc.a, self.a, d.transposed[0])
        self.matrix(desc.b, self.b, d.transposed[1])
        if self.d:
            self.matrix(desc.d, self.d, 0)
        else:
            desc.d.dtype = d.d_dtype
        self.operands = (api.operand * max(len(d.operands), 1))()
        for o, one, stored in zip(d.operands, self.operands, self.tensors):
            fill_operand(one, o)
            if stored:
                one.ld, one.batch_stride = stored.ld if o["kind"] >= FULL else 0, stored.stride
        desc.formula, desc.operands, desc.operand_count = d.text.encode(), self.operands, len(d.operands)
        return desc

    def run(self):
        """The outputs' memory after it, in place of what was there."""
        arena, args, desc = Arena(self.library), api.matmul_args(), self.desc()
        try:
            stored = [self.a, self.b, self.d] + self.tensors
            places = [arena.put(each.data) if each else None for each in stored]
            args.a, args.b, args.d = (None if place is None else arena.place(place) for place in places[:3])
            alpha = ctypes.c_double(self.alpha)
            numbers = [ctypes.c_double(x or 0) for x in self.numbers]
            pointers = (ctypes.c_void_p * max(len(self.tensors), 1))()
            for i, place in enumerate(places[3:]):
                if self.drawn.is_read(self.drawn.operands[i]["name"]):
                    pointers[i] = ctypes.addressof(numbers[i]) if place is None else arena.place(place)
            args.alpha, args.operands = ctypes.addressof(alpha), pointers
            api.matmul(self.library.context, desc, args, None)
            for each, place in zip(stored, places):
                if each:
                    after = arena.get(place)[:len(each.data)]
                    each.before, each.data = each.data, bytearray(after)
        finally:
            arena.free()

    # >>what it should be

    def product(self, item):
        """the field of v"""
        d, unit = self.drawn, UNITS[self.drawn.accumulator]
        rows = [[self.a.value(item, i, l) for l in range(d.k)] for i in range(d.m)]
        columns = [[self.b.value(item, l, j) for l in range(d.k)] for j in range(d.n)]
        share = (4 + d.k / 8) * unit + (d.k + 2) * 2.0 ** -53
        if d.a_dtype in FP8:
            share += 2.0 ** -10 * math.ceil(min(d.k, 128) / 32)
        field = []
        for row in rows:
            size = [abs(x) for x in row]
            field.append([(self.alpha * math.fsum(x * y for x, y in zip(row, column)),
                           abs(self.alpha) * share * sum(x * abs(y) for x, y in zip(size, column))) for column in columns])
        return d.n, field

    def operand_field(self, o, stored, number, item):
        rows = self.drawn.m
        if not stored:
            return 0, [[(number, 0.0)]] * rows
        (is_row, is_column), (of_rows, of_columns) = SHAPES[o["kind"]], blocks_of(o)
        width = self.width(o["half"]) if is_column else 0
        return width, [[(stored.value(item, i // of_rows if is_row else 0, j // of_columns), 0.0) for j in range(width or 1)] for i in range(rows)]

    def evaluation(self, item):
        d = self.drawn
        short = d.has_d and SIZES[d.d_dtype] <= 2 or any(o["output"] and SIZES[o["dtype"]] <= 2 for o in d.operands)
        indices = {"item": item, "rows": d.m, "columns": d.n, "depth": d.k}
        fields = {name: (0, [[(float(x), 0.0)]] * d.m) for name, x in indices.items()}
        fields["row"] = 0, [[(float(i), 0.0)] for i in range(d.m)]
        fields["column"] = d.n, [[(float(j), 0.0) for j in range(d.n)]] * d.m
        fields["v"] = self.product(item)
        for o, stored, number in zip(d.operands, self.tensors, self.numbers):
            if not o["output"]:
                fields[o["name"]] = self.operand_field(o, stored, number, item)
        return Evaluation(Arithmetic(UNITS[d.accumulator], short), fields, d.m, indices)

    def compare(self):
        """What is wrong, or None; and the largest error over its bound."""
        worst = 0.0
        by_name = {o["name"]: (o, stored) for o, stored in zip(self.drawn.operands, self.tensors)}
        for item in range(self.drawn.batch):
            evaluation = self.evaluation(item)
            for name, tree in parse(self.drawn.text):
                o, stored = by_name.get(name, (None, self.d if name == "d" else None))
                if o and "reduces" in o:
                    wrong, error = self.compare_reduction(evaluation, item, o, stored, tree)
                else:
                    by_chance = tree[0] == "stochastic"
                    evaluation.fields[name] = field = evaluation.tree(tree[1][0] if by_chance else tree)
                    if by_chance:
                        field = evaluation.by_chance(field, tree[1][1:], SPACING.get(stored.dtype))
                    wrong, error = self.compare_field(item, name, stored, field) if stored else (None, 0.0)
                worst = max(worst, error)
                if wrong:
                    return wrong, worst
        return self.compare_rest(), worst

    def compare_rest(self):
        """that inputs and what lies between outputs' elements are as before"""
        for stored, output in [(self.a, False), (self.b, False), (self.d, True)] + [(t, o["output"]) for t, o in zip(self.tensors, self.drawn.operands)]:
            if not stored:
                continue
            size = SIZES[stored.dtype]
            own = set()
            if output:
                own = {stored.at(item, i, j) for item in range(self.drawn.batch) for i in range(stored.rows) for j in range(stored.columns)}
            for at in range(len(stored.data) // size):
                if at not in own and stored.data[at * size:(at + 1) * size] != stored.before[at * size:(at + 1) * size]:
                    return "element %d of the memory of a tensor in %s changed, and is none of its results" % (at, DTYPE_NAMES[stored.dtype])
        return None

    def compare_field(self, item, name, stored, field):
        worst = 0.0
        for i in range(stored.rows):
            for j in range(stored.columns):
                wrong, error = off(stored.dtype, stored.value(item, i, j), field[1][i][j if field[0] else 0])
                worst = max(worst, error)
                if wrong:
                    return "%s[%d, %d, %d]: %s" % (name, item, i, j, wrong), worst
        return None, worst

    def compare_reduction(self, evaluation, item, o, stored, tree):
        axis, what = o["reduces"]
        field, worst = evaluation.tree(tree[1][0]), 0.0
        for at, values in enumerate(evaluation.lists(axis, field, field[0] or self.width(self.drawn.d_width == "half"))):
            for of, group in enumerate(groups_of(tree, values)):
                expected = reduce(evaluation.a, what, group)
                place = (at, of) if axis == "row" else (of, at if axis == "column" else 0)
                found = stored.value(item, *place)
                if what == "argmax":
                    wrong, error = (None, 0.0) if expected is None or int(found) in expected else ("%d, not of %s" % (found, expected[:4]), 2.0)
                else:
                    wrong, error = off(stored.dtype, found, expected)
                worst = max(worst, error)
                if wrong:
                    return "%s[%d, %d, %d]: %s" % (o["name"], item, *place, wrong), worst
        return None, worst


def groups_of(tree, values):
    """what a reduction of all, or of w at a time, goes over"""
    w = int(tree[1][1]) if len(tree[1]) > 1 else len(values) or 1
    return [values[at:at + w] for at in range(0, max(len(values), 1), w)]


judged = {True: 0, False: 0}  # numbers that had a bound, and those that may be anything


def off(dtype, found, expected):
    """What is wrong with a number that was stored, or None; and its error over the bound."""
    value, bound = expected
    judged[not math.isinf(bound)] += 1
    if math.isinf(bound):
        return None, 0.0
    if math.isnan(value):
        return (None if math.isnan(found) else "%r, not a NaN" % found), 0.0
    largest = LARGEST[dtype]
    if dtype in FP8:
        value = min(max(value, -largest), largest)
    elif abs(value) + bound >= largest * 0.999:
        return None, 0.0
    allowed = bound + UNITS[dtype] * (abs(value) + bound) + SMALLEST[dtype]
    error = abs(found - value)
    if not error <= allowed:
        return "%r, not %r +- %.3g" % (found, value, allowed), math.inf if math.isnan(error) else error / allowed
    return None, error / allowed


# >>gradients

def fill_operand(one, o):
    if o["kind"] == BLOCKED:
        one.block_rows, one.block_columns = o["blocks"]
    one.name, one.kind, one.width, one.dtype, one.output = o["name"].encode(), o["kind"], int(o["half"]), o["dtype"], int(o["output"])


class Gradient:
    """The loss sum(dy d) + the sum of dy_NAME NAME, of numbers that are drawn, and its gradient by v and all inputs."""

    def __init__(self, drawn):
        self.drawn, r = drawn, drawn.random
        self.shapes = {"v": (drawn.m, drawn.n, FULL)}
        for o in drawn.operands:
            if not o["output"] and o["kind"] != NUMBER:
                rows, columns = SHAPES[o["kind"]]
                width = (drawn.n // drawn.parts if o["half"] else drawn.n) if columns else 1
                self.shapes[o["name"]] = (drawn.m if rows else 1, width // blocks_of(o)[1], o["kind"])
        self.blocks = {o["name"]: blocks_of(o)[1] for o in drawn.operands}
        self.inputs = {name: [[r.gauss(0, 0.8) for _ in range(columns)] for _ in range(rows)]
                       for name, (rows, columns, _) in self.shapes.items()}
        self.numbers = {o["name"]: 0.75 for o in drawn.operands if o["kind"] == NUMBER}
        self.upstream = {}

    def field(self, rows, kind, columns=1):
        """of numbers that are stored by rows and columns, or blocks of columns"""
        rows = [[x for x in row for _ in range(columns)] for row in rows]
        full = rows if len(rows) > 1 else rows * self.drawn.m
        return (0 if kind in (SCALAR, PER_ROW) else len(rows[0])), [[(x, 0.0) for x in row] for row in full]

    def run(self, text, more):
        """all that is assigned, as lists of rows"""
        d = self.drawn
        indices = {"item": 0, "rows": d.m, "columns": d.n, "depth": d.k}
        fields = {name: self.field(rows, self.shapes[name][2], self.blocks.get(name, 1)) for name, rows in self.inputs.items()}
        fields.update({name: (0, [[(x, 0.0)]] * d.m) for name, x in list(self.numbers.items()) + list(indices.items())})
        fields.update(more)
        evaluation, results = Evaluation(Arithmetic(0.0, False), fields, d.m, indices), {}
        for name, tree in parse(text):
            found = REDUCTION.match(tree[0]) if isinstance(tree, tuple) else None
            if not found:
                evaluation.fields[name] = field = evaluation.tree(tree)
                results[name] = [[x for x, _ in row] for row in field[1]], field[0]
                continue
            axis, what = found.groups()
            field = evaluation.tree(tree[1][0])
            lists = evaluation.lists(axis, field, field[0] or d.n)
            if len(tree[1]) > 1:
                rows = [[reduce(evaluation.a, what, group)[0] for group in groups_of(tree, each)] for each in lists]
                results[name] = rows, len(rows[0])
                continue
            values = [reduce(evaluation.a, what, each)[0] for each in lists]
            results[name] = ([[x] for x in values] if axis == "row" else [values]), (0 if axis == "row" else len(values))
        return results

    def outputs(self):
        names = ["d"] if self.drawn.has_d else []
        return names + [o["name"] for o in self.drawn.operands if o["output"]]

    def loss(self):
        results = self.run(self.drawn.text, {})
        total = []
        for name in self.outputs():
            rows, _ = results[name]
            if name not in self.upstream:
                self.upstream[name] = [[self.drawn.random.gauss(0, 1) for _ in row] for row in rows]
            total += [x * y for row, of_row in zip(rows, self.upstream[name]) for x, y in zip(row, of_row)]
        return math.fsum(total)

    def slope(self, name, i, j):
        """by central differences of two steps: their best guess, and how far they are apart"""
        at, found = self.inputs[name][i], []
        before = at[j]
        for step in (2e-3, 1e-3):
            at[j] = before + step
            above = self.loss()
            at[j] = before - step
            found.append((above - self.loss()) / (2 * step))
            at[j] = before
        return found[1] + (found[1] - found[0]) / 3, abs(found[1] - found[0])

    def text(self):
        d = self.drawn
        operands = (api.operand * max(len(d.operands), 1))()
        for o, one in zip(d.operands, operands):
            fill_operand(one, o)
        desc = api.derive_desc(formula=d.text.encode(), operands=operands, operand_count=len(d.operands), wrt=", ".join(self.inputs).encode())
        text = ctypes.create_string_buffer(1 << 16)
        if not api.derive(desc, text, len(text)):
            raise RuntimeError(api.last_error().decode())
        return text.value.decode()

    def compare(self):
        """What is wrong, or None; how many elements were compared, and how many not as differences do not settle"""
        self.loss()
        text, compared, unsettled, more = self.text(), 0, 0, {}
        for name, rows in self.upstream.items():
            o = next((o for o in self.drawn.operands if o["name"] == name), None)
            kind = o["kind"] if o else FULL
            more["dy" if name == "d" else "dy_" + name] = self.field(rows, kind, blocks_of(o)[1] if o else 1)
        results = self.run(text, more)
        for name, (rows, columns, kind) in self.shapes.items():
            gradient, width = results["d_" + name]
            for i in range(rows):
                for j in range(columns):
                    slope, apart = self.slope(name, i, j)
                    found = gradient[i][j if width else 0]
                    if not apart < 1e-3 * (1 + abs(slope)):
                        unsettled += 1
                        continue
                    compared += 1
                    if not abs(found - slope) <= 1e-6 * (1 + abs(slope)) + 2 * apart:
                        return "d_%s[%d, %d]: %r, by differences %r; the text is %s" % (name, i, j, found, slope, text), compared, unsettled
        return None, compared, unsettled


# >>the program

def part_of(count):
    """TEST_PART=I/N: of so many every N-th, from I on"""
    part, parts = os.environ.get("TEST_PART", "0/1").split("/")
    return range(int(part), count, int(parts))


def try_all(what, options, count, attempt):
    """Of formulas so many: attempt(index) gives what is wrong, or None, and what was tried."""
    failures, tried = 0, 0
    for index in part_of(count):
        index, tried = index + options.first, tried + 1
        wrong, drawn = attempt(index)
        failures += bool(wrong)
        if wrong or options.verbose:
            print("%s %s #%d of seed %d: %s%s" % ("     wrong:" if wrong else "    ", what, index, options.seed, drawn,
                                                  "\n     " + wrong if wrong else ""), flush=True)
    if failures or options.verbose:
        print("     %s: %d right, %d wrong" % (what, tried - failures, failures))
    return failures


def try_product(library, options, index):
    drawn = Drawn(options.seed, index, False)
    try:
        problem = Problem(drawn, library)
        problem.run()
        return problem.compare()[0], drawn
    except RuntimeError as refusal:
        return "refused: %s" % refusal, drawn


def try_gradient(options, index, tally):
    drawn = Drawn(options.seed, index, True)
    try:
        wrong, compared, unsettled = Gradient(drawn).compare()
    except RuntimeError as refusal:  # of a sum over columns of what does not change along them, beside halves, or of lost thirds
        told = any(words in str(refusal) for words in ("cannot be said in one formula", "the gradient does not divide columns"))
        return None if told else "refused: %s" % refusal, drawn
    tally[0], tally[1] = tally[0] + compared, tally[1] + unsettled
    return wrong, drawn


def verdict(name, good):
    print("%s %s" % ("ok  " if good else "FAIL", name))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in [("count", 40), ("first", 0), ("seed", 1), ("gradients", 40)]:
        parser.add_argument("--" + name, type=int, default=default)
    for name in ["host", "verbose"]:
        parser.add_argument("--" + name, action="store_true")
    options, tally = parser.parse_args(), [0, 0]
    library = Library(options.host or os.environ.get("GEMMEPI_TEST_DEVICE") == "host")
    print("on %s:" % ("the host" if library.on_host else "a GPU"))
    wrong = try_all("formulas", options, options.count, lambda index: try_product(library, options, index))
    good = [verdict("formulas_drawn_at_random_are_within_the_bounds_of_an_interpreter", not wrong and judged[True] >= 4 * judged[False])]
    wrong = try_all("gradients", options, options.gradients, lambda index: try_gradient(options, index, tally))
    good.append(verdict("their_gradients_are_slopes_of_the_loss", not wrong and tally[0] >= 10 * tally[1]))
    print("%d passed, %d failed, 0 skipped" % (sum(good), len(good) - sum(good)))
    if options.verbose:
        print("numbers with a bound, and without:", judged[True], judged[False])
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
