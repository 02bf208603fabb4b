"""What a formula is for tensors of some shapes: the kinds of its operands, its outputs and its gradient, all told by the library."""
import ctypes
import itertools
import math
import re

import torch

from . import api
from ._call import WITHOUT_D, structs
from ._layout import flat
from ._tensors import TORCH_DTYPES, code_of_dtype, require_device

REDUCTION = r"\b%s\s*=\s*(row|column|all)_(sum|mean|max|min|logsumexp|argmax)\s*\("
KINDS = {"row": api.PER_ROW, "column": api.PER_COLUMN, "all": api.SCALAR}
WIDTHS = (api.WIDTH_N, api.WIDTH_HALF, api.WIDTH_DOUBLE)


class Operand:
    is_saved = is_argmax = is_constant = False  # of reductions: a gradient reads it, it has no derivative

    def __init__(self, name, kind, width=api.WIDTH_N, dtype=api.DTYPE_DEFAULT, output=0):
        self.name, self.kind, self.width, self.dtype, self.output = name, kind, width, dtype, output

    def struct(self, **fields):
        return api.operand(name=self.name.encode(), kind=self.kind, width=self.width, dtype=self.dtype, output=self.output, **fields)

    def columns(self, n, parts):
        return n // parts if self.width == api.WIDTH_HALF else parts * n if self.width == api.WIDTH_DOUBLE else n


def parts_of(code):
    """Into how many parts the text divides columns: 2 are halves."""
    for call in re.finditer(r"\b(parts?)\s*\(", code):
        depth, commas, at, last = 1, 0, call.end(), call.end()
        while depth and at < len(code):
            depth += {"(": 1, ")": -1}.get(code[at], 0)
            if depth == 1 and code[at] == ",":
                commas, last = commas + 1, at + 1
            at += 1
        count = str(commas + 1) if call[1] == "parts" else code[last:at - 1].strip()
        return int(count) if count.isdigit() else 2  # the library refuses what is no number
    return 2


def kind_of(tensor, lead, m, n, parts, name):
    """Kind and width of an operand."""
    rows, columns = flat(tensor.shape, (0,) * tensor.dim(), lead, name)[0][-2:]
    width = api.WIDTH_N if columns in (n, 1) else api.WIDTH_HALF if parts * columns == n else api.WIDTH_DOUBLE if columns == parts * n else None
    if width is None or rows not in (m, 1):
        raise ValueError("%s has %s rows and %s columns, and the product %s and %s: accepted are numbers, [], [n], [m, 1] and [m, n], also with n / %d "
                         "or %d n columns" % (name, rows, columns, m, n, parts, parts))
    if columns == 1:
        return (api.SCALAR if rows == 1 else api.PER_ROW), api.WIDTH_N
    return (api.PER_COLUMN if rows == 1 else api.FULL), width


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda comment: re.sub(r"[^\n]", " ", comment[0]), text, flags=re.DOTALL)


class NoGradient(api.Error):
    pass


class Gradient:
    """A problem's gradient as a formula over tensors, by gemmepi_derive. upstreams: results; saved: what it may read besides."""

    def __init__(self, problem, upstreams, saved, wanted):
        keeps_v = problem.kept is not None and problem.kept.name in upstreams
        operands = problem.inputs + [operand for operand in problem.outputs if operand.name != "d"] + ([problem.kept] if keeps_v else [])
        desc = api.derive_desc(formula=(problem.text_that_keeps_v() if keeps_v else problem.text).encode(),
                               operands=structs([operand.struct() for operand in operands]), operand_count=len(operands),
                               wrt=", ".join(wanted).encode(), saved=", ".join(saved).encode(), upstream=", ".join(upstreams).encode())
        buffer, found = ctypes.create_string_buffer(1 << 16), structs([api.operand() for _ in range(2 * len(operands) + 4)])
        if not api.derive(desc, buffer, len(buffer)):
            raise NoGradient(api.INVALID_ARGUMENT, api.last_error().decode())
        count = api.derive_operands(desc, found, len(found))
        self.text = buffer.value.decode()
        self.operands = [Operand(item.name.decode(), item.kind, item.width, output=item.output) for item in found[:count]]
        self.reads = {operand.name for operand in self.operands if not operand.output}
        self.made = ["d_" + name for name in wanted]

    def is_zero(self, name):
        """Whether no upstream comes to it: it is 0, or a sum of that."""
        return re.search(r"\b%s = (\w+\()?0\)?\s*(;|$)" % name, without_comments(self.text)) is not None

    def end(self):
        """What is appended to the names of inputs, so that they are none of the text's, nor of those that its own gradient gives."""
        end, names = "_", {*re.findall(r"\w+", self.text), *map(upstream_name, self.made)}
        while any(name + end in names for name in self.reads):
            end += "_"
        return end


def upstream_name(name):
    """Of an output, in its gradient."""
    return "dy" if name == "d" else "dy_" + name


class Problem:
    """a [.., m, k], b [.., k, n]. Lists of names are separated by commas: tensors are the operands of the first names, and numbers those of the
    others; wanted are names with gradients, the value v among them or not."""

    def __init__(self, text, a, b, tensors, names, outputs, dtypes, wanted):
        names, outputs = names.split(",") if names else [], outputs.split(",")
        require_device(a.device, {"b": b, **dict(zip(names, tensors))})
        if a.dim() < 2 or b.dim() < 2 or a.shape[-1] != b.shape[-2]:
            raise ValueError("a has the shape %s and b %s; accepted are [.., m, k] and [.., k, n]" % (list(a.shape), list(b.shape)))
        self.lead = tuple(a.shape[:-2]) or tuple(b.shape[:-2])
        for name, factor in (("a", a), ("b", b)):
            if tuple(factor.shape[:-2]) not in ((), self.lead):
                raise ValueError("%s has the leading axes %s; accepted are %s, or none" % (name, list(factor.shape[:-2]), list(self.lead)))
        if 0 in self.lead:
            raise ValueError("the product has the leading axes %s and so no items; accepted is at least one" % list(self.lead))
        self.m, self.k, self.n, self.batch = a.shape[-2], a.shape[-1], int(b.shape[-1]), math.prod(self.lead)
        self.text, self.a_dtype, self.b_dtype, self.wanted = text, code_of_dtype(a.dtype, "a"), code_of_dtype(b.dtype, "b"), wanted
        self.code, self.dtypes = without_comments(text), dict(zip(outputs, dtypes))
        self.parts = parts_of(self.code)
        self.d_dtype = self.dtypes.get("d") or (api.BF16 if self.a_dtype in (api.E4M3, api.E5M2) else self.a_dtype)
        self.inputs = [Operand(name, *kind_of(tensor, self.lead, self.m, self.n, self.parts, name), code_of_dtype(tensor.dtype, name))
                       for name, tensor in zip(names, tensors)]
        self.inputs += [Operand(name, api.NUMBER) for name in names[len(tensors):]]
        self.outputs = self.find_outputs(outputs)
        self.made = [(self.shape(operand), TORCH_DTYPES[operand.dtype]) for operand in self.outputs]
        self.find_gradient()

    def output(self, name):
        found = re.search(REDUCTION % re.escape(name), self.code)
        if not found:
            return Operand(name, api.FULL, dtype=self.dtypes.get(name) or self.d_dtype, output=1)
        default = api.I32 if found[2] == "argmax" else api.F64 if self.a_dtype == api.F64 else api.F32
        operand = Operand(name, KINDS[found[1]], dtype=self.dtypes.get(name) or default, output=1)
        operand.is_saved, operand.is_argmax, operand.is_constant = found[2] == "logsumexp", found[2] == "argmax", found[2] in ("max", "min", "argmax")
        return operand

    def find_outputs(self, names):
        """With the first widths that the library accepts; if none are, its sentence about those of n columns is raised."""
        outputs, first = [self.output(name) for name in names], None
        wide = [operand for operand in outputs if operand.kind in (api.FULL, api.PER_COLUMN)]
        for widths in itertools.product(WIDTHS, repeat=len(wide)):
            for operand, width in zip(wide, widths):
                operand.width = width
            try:
                self.check(outputs)
                return outputs
            except api.Error as error:
                first = first or error
        raise first

    def check(self, outputs):
        operands = [operand.struct() for operand in self.inputs + outputs]
        desc = api.matmul_desc(m=1, n=self.n, k=1, formula=self.text.encode(), operands=structs(operands), operand_count=len(operands),
                               formula_result=WITHOUT_D)
        desc.a.dtype, desc.b.dtype, desc.d.dtype = self.a_dtype, self.b_dtype, self.d_dtype
        api.epilogue_info(desc, api.epilogue_needs())

    def shape(self, operand):
        """An output's: as an operand of that kind is given."""
        columns = operand.columns(self.n, self.parts)
        if operand.kind == api.FULL:
            return (*self.lead, self.m, columns)
        if operand.kind == api.PER_ROW:
            return (*self.lead, self.m, 1)
        if operand.is_argmax and self.lead:  # of each item
            return (*self.lead, 1, columns)
        return (columns,) if operand.kind == api.PER_COLUMN else ()

    def find_gradient(self):
        """The gradient where all outputs that have a derivative have an upstream, and the names that it reads: whatever else is asked for in
        backward reads no others."""
        self.gradients, self.reads, self.kept = {}, set(), None
        self.kept_dtype = self.a_dtype if self.a_dtype in (api.F32, api.F64, api.F16, api.BF16) else api.BF16  # of v and its gradient
        upstreams = [operand.name for operand in self.outputs if not operand.is_constant and TORCH_DTYPES[operand.dtype].is_floating_point]
        if self.wanted and upstreams:
            saved = ["v"] + [operand.name for operand in self.inputs] + [operand.name for operand in self.outputs if operand.is_saved]
            self.gradients[tuple(upstreams)] = gradient = Gradient(self, upstreams, saved, self.wanted.split(","))
            self.reads = gradient.reads
        self.saved_outputs = [operand.name for operand in self.outputs if operand.name in self.reads]
        self.kept_shape = (*self.lead, self.m, self.n) if "v" in self.reads else None
        self.kept = Operand(self.saved_name(), api.FULL, dtype=self.kept_dtype, output=1)  # v as an output that the gradient reads
        self.results = self.outputs + ([self.kept] if self.kept_shape is not None else [])

    def gradient(self, upstreams):
        """The gradient where nothing comes in from the results whose upstream is None, of what something comes to; None if that is nothing."""
        upstreams = tuple([operand.name for operand, tensor in zip(self.results, upstreams) if tensor is not None])
        if upstreams not in self.gradients:
            names = ["v"] + [operand.name for operand in self.inputs] + self.saved_outputs
            saved, wanted = [name for name in names if name in self.reads], self.wanted.split(",")
            found = Gradient(self, upstreams, saved, wanted)
            left = [name for name in wanted if not found.is_zero("d_" + name)]
            self.gradients[upstreams] = found if left == wanted else Gradient(self, upstreams, saved, left) if left else None
        return self.gradients[upstreams]

    def saved_name(self):
        """What the formula calls the v that it keeps for the gradient."""
        name = "kept_v"
        while re.search(r"\b%s\b" % name, self.code):
            name += "_"
        return name

    def text_that_keeps_v(self):
        separator = "\n" if re.search(r";\s*$", self.code) else "\n; "
        return self.text + separator + self.saved_name() + " = v"

    def make_results(self, a):
        """The outputs and, where the gradient reads it, v; without values yet."""
        kept = None if self.kept_shape is None else a.new_empty(self.kept_shape, dtype=TORCH_DTYPES[self.kept_dtype])
        return [a.new_empty(shape, dtype=dtype) for shape, dtype in self.made], kept
