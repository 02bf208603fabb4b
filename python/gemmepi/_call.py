"""Calls of the library for tensors of some layouts, each with its plans, which differ by what pointers are multiples of."""
import ctypes

from . import api
from ._layout import across, is_rows, leading_dimension
from ._tensors import ELEMENTWISE, MATMUL, Plans

WITHOUT_D = b"result_"  # the name of a D that no formula has


def structs(operands):
    return (api.operand * max(len(operands), 1))(*operands)


class Pointers:
    """The array for args.operands: addresses, and then those of numbers."""

    def __init__(self, count):
        self.array = ctypes.c_void_p * max(count, 1)

    def __call__(self, addresses, numbers):
        if not numbers:
            return self.array(*addresses)
        values = (ctypes.c_double * len(numbers))(*numbers)
        base = ctypes.addressof(values)
        made = self.array(*addresses, *range(base, base + 8 * len(numbers), 8))
        made.numbers = values
        return made


class Product:
    """D = a b, or what becomes of it by a formula. a, b and d are layouts, d None where the formula has none; operands are pairs of Operand and
    layout, and behind them numbers, whose layout is None. texts: those that make a and b, whose layouts are of what is stored, and problem then
    has the extents."""

    def __init__(self, device, a, b, d, d_code, flags, compute, formula=None, operands=(), texts=(None, None), problem=None):
        self.a, self.b, self.d, self.d_code, self.flags, self.compute = a, b, d, d_code, flags, compute
        self.formula, self.operands, self.texts = formula, operands, texts
        self.batch = problem.batch if problem else max([layout.shape[0] for layout in (a, b) if len(layout.shape) == 3], default=1)
        self.extents = (problem.m, problem.n, problem.k) if problem else (a.shape[-2], b.shape[-1], a.shape[-1])
        self.pointers, self.plans = Pointers(len(operands)), Plans(MATMUL, device, self.desc)

    def desc(self, alignment):
        operands, (m, n, k) = [self.operand(*pair) for pair in self.operands], self.extents
        desc = api.matmul_desc(m=m, n=n, k=k, batch=self.batch, compute=self.compute, flags=self.flags, alignment=alignment, formula=self.formula,
                               operands=structs(operands) if operands else None, operand_count=len(operands))
        for factor, layout, text in ((desc.a, self.a, self.texts[0]), (desc.b, self.b, self.texts[1])):
            factor.transposed = 0 if is_rows(layout.shape, layout.stride) else 1
            factor.dtype, factor.ld, factor.formula = layout.code, self.ld(layout, factor.transposed), text
            factor.batch_stride = layout.stride[0] if len(layout.shape) == 3 else 0
        desc.d.dtype, desc.d.batch_stride = self.d_code, self.d.stride[0] if self.batch > 1 and self.d else 0
        return desc

    @staticmethod
    def ld(layout, is_transposed):
        return leading_dimension(*((across(layout.shape), across(layout.stride)) if is_transposed else (layout.shape, layout.stride)))

    @staticmethod
    def operand(operand, layout):
        if layout is None:
            return operand.struct()
        return operand.struct(ld=Product.ld(layout, getattr(layout, "in_columns", False)) if operand.kind in (api.FULL, api.BLOCKED) else 0,
                              batch_stride=layout.stride[0] if len(layout.shape) == 3 else 0)

    def run(self, a, b, d, operands=(), numbers=()):
        """a, b, d and operands: addresses."""
        words = MATMUL.words(a, b, None, d)
        if self.operands:
            pointers = self.pointers(operands, numbers)
            words[MATMUL.operands] = ctypes.addressof(pointers)
        self.plans.run((a, b, d, *operands), words)


class OverTensors:
    """A formula without v, all of whose outputs are operands. operands as above."""

    def __init__(self, device, formula, operands):
        self.formula, self.operands = formula, operands
        self.pointers, self.plans = Pointers(len(operands)), Plans(ELEMENTWISE, device, self.desc)

    def desc(self, alignment):
        operands = [operand.struct() for operand, _ in self.operands]
        for operand, (_, layout) in zip(operands, self.operands):
            if layout is not None:
                axes = ctypes.c_int64 * len(layout.shape)
                operand.tensor = ctypes.pointer(api.tensor(dtype=layout.code, rank=len(layout.shape), shape=axes(*layout.shape),
                                                           stride=axes(*layout.stride)))
        return api.elementwise_desc(formula=self.formula, operands=structs(operands), operand_count=len(operands), formula_result=WITHOUT_D,
                                    alignment=alignment)

    def run(self, operands, numbers):
        words, pointers = ELEMENTWISE.words(), self.pointers(operands, numbers)
        words[ELEMENTWISE.operands] = ctypes.addressof(pointers)
        self.plans.run(operands, words)
