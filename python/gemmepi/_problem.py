"""What a formula is for tensors of some shapes: the kinds of its operands, its outputs and its gradient, all told by the library."""
import ctypes
import itertools
import math
import re

import torch

from . import api
from ._call import WITHOUT_D, structs
from ._layout import elements, flat
from ._tensors import TORCH_DTYPES, code_of_dtype, require_device

REDUCTION = r"\b%s\s*=\s*(row|column|all)_(sum|mean|max|min|logsumexp|argmax)\s*\("
KINDS = {"row": api.PER_ROW, "column": api.PER_COLUMN, "all": api.SCALAR}
PLAIN = (0, 0, 0)  # of a tensor: a type that PyTorch has, and no blocks
WIDTHS = (api.WIDTH_N, api.WIDTH_HALF, api.WIDTH_DOUBLE)


class Operand:
    is_saved = is_argmax = is_constant = False  # of reductions: a gradient reads it, it has no derivative

    def __init__(self, name, kind, width=api.WIDTH_N, dtype=api.DTYPE_DEFAULT, output=0, blocks=(0, 0), period=0):
        self.period = period
        self.name, self.kind, self.width, self.dtype, self.output, self.blocks = name, kind, width, dtype, output, tuple(blocks)

    def struct(self, **fields):
        return api.operand(name=self.name.encode(), kind=self.kind, width=self.width, dtype=self.dtype, output=self.output,
                           block_rows=self.blocks[0], block_columns=self.blocks[1], column_period=self.period, **fields)

    def columns(self, n, parts):
        columns = n // parts if self.width == api.WIDTH_HALF else parts * n if self.width == api.WIDTH_DOUBLE else n
        return through(columns, self.blocks[1]) if self.kind == api.BLOCKED else columns

    def without_blocks(self):
        """An operand whose gradient there is: of blocks without sums that a formula says it is that of each element, to be added up."""
        has_sums = self.kind != api.BLOCKED or self.blocks[0] == 1 and self.blocks[1] % 8 == 0
        return self if has_sums else Operand(self.name, api.FULL, self.width, self.dtype)


def through(extent, block):
    """Rounded up."""
    return (extent + block - 1) // block


def arguments_of(code, at):
    """What a call in the text has between its parentheses, the first of which ends at `at`."""
    depth, found = 1, [at]
    while depth and at < len(code):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(code[at], 0)
        at += 1
        if depth == 0 or depth == 1 and code[at - 1] == ",":
            found.append(at)
    return [code[first:last - 1].strip() for first, last in zip(found, found[1:])]


def whole(text, otherwise):
    return int(text) if text.isdigit() else otherwise  # the library refuses what is no number


def parts_of(code):
    """Into how many parts the text divides columns: 2 are halves."""
    for call in re.finditer(r"\b(parts?)\s*\(", code):
        found = arguments_of(code, call.end())
        return len(found) if call[1] == "parts" else whole(found[-1] if found else "", 2)
    return 2


def kind_of(shape, lead, m, n, parts, name, blocks=(0, 0)):
    """Kind and width of an operand of that shape, whose blocks have so many rows and columns."""
    rows, columns = flat(shape, (0,) * len(shape), lead, name)[0][-2:]
    if blocks != (0, 0):
        for width, wide in ((api.WIDTH_N, n), (api.WIDTH_HALF, n // parts), (api.WIDTH_DOUBLE, n * parts)):
            if (rows, columns) == (through(m, blocks[0]), through(wide, blocks[1])):
                return api.BLOCKED, width
        raise ValueError("%s has %s rows and %s columns; blocks of %d x %d of %s rows and %s columns are %s x %s"
                         % (name, rows, columns, *blocks, m, n, through(m, blocks[0]), through(n, blocks[1])))
    width = api.WIDTH_N if columns in (n, 1) else api.WIDTH_HALF if parts * columns == n else api.WIDTH_DOUBLE if columns == parts * n else None
    if width is None or rows not in (m, 1):
        raise ValueError("%s has %s rows and %s columns, and the product %s and %s: accepted are numbers, [], [n], [m, 1] and [m, n], also with n / %d "
                         "or %d n columns, and of groups of these what blocks says" % (name, rows, columns, m, n, parts, parts))
    if columns == 1:
        return (api.SCALAR if rows == 1 else api.PER_ROW), api.WIDTH_N
    return (api.PER_COLUMN if rows == 1 else api.FULL), width


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda comment: re.sub(r"[^\n]", " ", comment[0]), text, flags=re.DOTALL)


def of_each(stored, i):
    """The code of the i-th tensor, and its blocks."""
    code, rows, columns = stored[3 * i:3 * i + 3] or PLAIN
    return code, (rows, columns)


def operand_of(name, tensor, lead, m, n, parts, code, blocks, of_text, in_columns=False):
    """An input. A table, of which the text reads elements by numbers, may have any length."""
    length = tensor.shape[-1] if tensor.dim() == 1 else 0
    if length not in (0, 1, n) and re.search(r"\b%s\s*\[" % re.escape(name), of_text):
        return Operand(name, api.PER_COLUMN, dtype=code or code_of_dtype(tensor.dtype, name), period=length)
    kind = kind_of(elements(tensor, code, in_columns)[0], lead, m, n, parts, name, blocks)
    return Operand(name, *kind, code or code_of_dtype(tensor.dtype, name), blocks=blocks)


class NoGradient(api.Error):
    pass


class Gradient:
    """A problem's gradient as a formula over tensors, by gemmepi_derive. upstreams: results; saved: what it may read besides."""

    def __init__(self, problem, upstreams, saved, wanted):
        keeps_v = problem.kept is not None and problem.kept.name in upstreams
        inputs = [operand.without_blocks() if operand.name in wanted else operand for operand in problem.inputs]
        operands = inputs + [operand for operand in problem.outputs if operand.name != "d"] + ([problem.kept] if keeps_v else [])
        desc = api.derive_desc(formula=(problem.text_that_keeps_v() if keeps_v else problem.text).encode(),
                               operands=structs([operand.struct() for operand in operands]), operand_count=len(operands),
                               wrt=", ".join(wanted).encode(), saved=", ".join(saved).encode(), upstream=", ".join(upstreams).encode())
        buffer, found = ctypes.create_string_buffer(1 << 16), structs([api.operand() for _ in range(2 * len(operands) + 4)])
        if not api.derive(desc, buffer, len(buffer)):
            raise NoGradient(api.INVALID_ARGUMENT, api.last_error().decode())
        count = api.derive_operands(desc, found, len(found))
        self.text = buffer.value.decode()
        self.operands = [self.operand(item, problem) for item in found[:count]]
        self.reads = {operand.name for operand in self.operands if not operand.output}
        self.made = ["d_" + name for name in wanted]

    @staticmethod
    def operand(item, problem):
        """One of the gradient's, of which inputs have their blocks again."""
        name = item.name.decode()
        given = [operand for operand in problem.inputs if operand.name == name and operand.kind == api.BLOCKED and not item.output]
        return given[0] if given else Operand(name, item.kind, item.width, output=item.output, blocks=(item.block_rows, item.block_columns))

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
    others; wanted are names with gradients, the value v among them or not. stored: of each tensor a code, 0 for what PyTorch says, and its blocks'
    rows and columns, 0 of others; empty: none has either."""

    def __init__(self, text, a, b, tensors, names, outputs, dtypes, wanted, stored=()):
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
        self.inputs = [operand_of(name, tensor, self.lead, self.m, self.n, self.parts, *of_each(stored, i), self.code)
                       for i, (name, tensor) in enumerate(zip(names, tensors))]
        self.inputs += [Operand(name, api.NUMBER) for name in names[len(tensors):]]
        self.outputs = self.find_outputs(outputs)
        self.made = [(self.shape(operand), TORCH_DTYPES[operand.dtype]) for operand in self.outputs]
        self.find_gradient()

    def output(self, name):
        found = re.search(REDUCTION % re.escape(name), self.code)
        if not found:
            return Operand(name, api.FULL, dtype=self.dtypes.get(name) or self.d_dtype, output=1)
        default, arguments = api.I32 if found[2] == "argmax" else api.F64 if self.a_dtype == api.F64 else api.F32, arguments_of(self.code, found.end())
        blocks = (1, whole(arguments[1], 1)) if found[1] == "row" and len(arguments) > 1 else (0, 0)
        operand = Operand(name, api.BLOCKED if blocks[0] else KINDS[found[1]], dtype=self.dtypes.get(name) or default, output=1, blocks=blocks)
        operand.is_saved, operand.is_argmax, operand.is_constant = found[2] == "logsumexp", found[2] == "argmax", found[2] in ("max", "min", "argmax")
        return operand

    def find_outputs(self, names):
        """With the first widths that the library accepts; if none are, its sentence about those of n columns is raised."""
        outputs, first = [self.output(name) for name in names], None
        wide = [operand for operand in outputs if operand.kind in (api.FULL, api.PER_COLUMN, api.BLOCKED)]
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
        if operand.kind in (api.FULL, api.BLOCKED):  # whose rows are of one
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
