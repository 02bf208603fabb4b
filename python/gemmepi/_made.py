"""Factors that texts make of what is stored: which tensors a text reads, how wide what it makes is, and the same by itself, for gradients."""
import re

import torch

from . import api
from ._layout import Given, elements, is_along_rows, is_columns, is_factor, is_line, is_rows
from ._problem import Operand, Problem, of_each, operand_of, parts_of, without_comments
from ._tensors import DTYPES, PACKED, TORCH_DTYPES, code_of_dtype

PARTS = re.compile(r"\b(left|right|pair|even|odd|interleave|parts?)\s*\(")
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6)


def reads(code, name):
    return re.search(r"\b%s\b" % re.escape(name), code) is not None


def multiplied(own, others, is_made):
    """The type of a factor as it is multiplied, as gemmepi_matrix has it."""
    if not is_made or own in (torch.float16, torch.bfloat16):
        return own
    return others if others in FLOATS else torch.bfloat16


def unpacked(tensor, code, in_columns=False):
    """Numbers of 4 bits, each by itself."""
    if code not in PACKED:
        return tensor
    at = tensor.dim() - (2 if is_along_rows(tensor, in_columns) else 1)
    found = torch.stack((tensor & 15, tensor >> 4), at + 1).flatten(at, at + 1)
    if code == api.E2M1:
        return torch.tensor(E2M1, dtype=torch.bfloat16, device=tensor.device)[found.int()]
    return found.to(torch.int8) if code == api.U4 else (found ^ 8).to(torch.int8) - 8


def assigning(text, name):
    """The text, whose last statement has no name, with one: comments have become blanks."""
    code = without_comments(text).rstrip().rstrip(";")
    at = code.rfind(";") + 1
    return "%s %s = %s" % (code[:at], name, code[at:])


def empties(shape, dtype, device):
    """Factors without terms of a product of that shape."""
    return [torch.empty(of, dtype=dtype, device=device) for of in ((*shape[:-1], 0), (0, shape[-1]))]


class Factor:
    """One of both. stored: a tensor; code: of its type, 0 for what PyTorch says; tensors and numbers: those that its text reads, by name, each
    tensor with its code and blocks; dtype: that is multiplied; lead: the product's leading axes."""

    def __init__(self, name, text, stored, code, tensors, numbers, dtype, lead):
        self.name, self.text, self.code, self.dtype, self.numbers = name, text, code, dtype, numbers
        self.shape = elements(stored, code)[0]
        if text is not None and len(self.shape) == 2:  # one for all items, unless what is read of it is not
            shapes = [tuple(tensor.shape[:-2]) for _, tensor, _ in tensors] + [lead if reads(without_comments(text), "item") else ()]
            self.shape = (*max(shapes, key=len), *self.shape)
        self.device, self.tensors = stored.device, [operand for operand, *_ in tensors]
        self.types = {operand: said or None for operand, _, (said, _) in tensors}
        self.blocks = {operand: blocks for operand, _, (_, blocks) in tensors if blocks[0]}
        self.has_parts, self.parts = text is not None and PARTS.search(without_comments(text)) is not None, parts_of(without_comments(text or ""))
        self.output = "made_"
        while reads(text or "", self.output):
            self.output += "_"
        if self.has_parts:
            self.shape = self.wide(stored, tensors)
        self.like = torch.empty((), dtype=dtype, device=stored.device).expand(self.shape)  # what is made, without its memory

    def wide(self, stored, tensors):
        """The shape of what is made, as the library says it: its columns are parts of those that are stored."""
        if self.code in PACKED and is_along_rows(stored):
            raise ValueError("%s_formula divides columns, and %s has two elements a byte along rows: pack it along columns" % (self.name, self.name))
        names = [self.name, *self.tensors, *self.numbers]
        known = [(code, *blocks) for _, _, (code, blocks) in tensors]
        left, right = empties(self.shape, self.dtype, stored.device)
        problem = Problem(assigning(self.text, self.output), left, right, [stored, *[tensor for _, tensor, _ in tensors]], ",".join(names), self.output, [0],
                          "", [number for of in [(self.code, 0, 0), *known] for number in of])
        return problem.made[0][0]

    def given(self, tensor, lead):
        if self.text is None:
            return Given(tensor, lead, self.name, is_factor)
        return Given(tensor, lead, self.name, is_rows if self.has_parts else is_factor, self.code)

    def operands(self, tensors, lead, is_transposed):
        """Pairs of operand and layout, of the tensors that its text reads. What has rows and columns is stored as the factor is."""
        found = []
        for name, tensor in zip(self.tensors, tensors):
            blocks, code = self.blocks.get(name, (0, 0)), self.types[name] or 0
            operand = operand_of(name, tensor, lead, *self.shape[-2:], self.parts, code, blocks, without_comments(self.text), is_transposed)
            is_matrix = operand.kind in (api.FULL, api.BLOCKED)
            found.append((operand, Given(tensor, lead, name, (is_columns if is_transposed else is_rows) if is_matrix else is_line, code)))
        return found

    def alone(self, stored, tensors, numbers, wanted, k):
        """What makes the factor as a formula of a product without terms: its factors, its tensors, and the rest of a call. wanted: names."""
        names, left, right = [self.name, *self.tensors, *numbers], *empties(self.shape, self.dtype, self.device)
        text = re.sub(r"\bdepth\b", str(k), assigning(self.text, self.output))
        known = [(self.code, 0, 0)] + [(self.types[name] or 0, *self.blocks.get(name, (0, 0))) for name in self.tensors]
        in_columns = not self.has_parts and not is_rows(stored.shape, stored.stride()) and is_columns(stored.shape, stored.stride())
        tensors = [unpacked(tensor, code, in_columns) for tensor, (code, *_) in zip([stored, *tensors], known)]
        known = [(0 if code in PACKED else code, *blocks) for code, *blocks in known]
        return left, right, tensors, (text, ",".join(names), list(numbers.values()), self.output, [DTYPES[self.dtype]],
                                      ",".join(name for name in names if name in wanted), 0, 0, [number for of in known for number in of], "", "")


class Factors:
    """Both, and what else a call reads. names: of tensors, then of numbers; stored: as of a Problem, a and b first; a_text and b_text: "" where there is none."""

    def __init__(self, text, a, b, tensors, names, stored, a_text, b_text):
        names, texts = names.split(",") if names else [], [a_text or None, b_text or None]
        codes = [without_comments(text)] + [without_comments(of or "") for of in texts]
        known = [(name, tensor, of_each(stored, 2 + i)) for i, (name, tensor) in enumerate(zip(names, tensors))]
        count, types = len(tensors), [TORCH_DTYPES.get(of_each(stored, i)[0] or code_of_dtype(tensor.dtype, "ab"[i])) for i, tensor in enumerate((a, b))]
        lead = tuple(a.shape[:-2]) or tuple(b.shape[:-2])
        for name, of in zip("ab", texts):
            if of is not None and name in names:
                raise ValueError("%s is an operand, and %s_formula has %s as the name of what is stored: choose another" % (name, name, name))
        self.reads = [[i for i in range(len(names)) if reads(code, names[i])] for code in codes[1:]]
        self.own = [i for i in range(len(names)) if reads(codes[0], names[i]) or not any(i in of for of in self.reads)]
        self.others = sorted({i for of in self.reads for i in of if i not in self.own})
        self.count, self.names, self.texts = count, names, tuple([of.encode() if of is not None else None for of in texts])
        self.of = [Factor(name, of, tensor, of_each(stored, i)[0], [known[j] for j in self.reads[i] if j < count],
                          [names[j] for j in self.reads[i] if j >= count], multiplied(types[i], types[not i], of is not None), lead)
                   for i, (name, of, tensor) in enumerate(zip("ab", texts, (a, b)))]
        self.likes = [factor.like for factor in self.of]

    def tensors_of(self, which, tensors):
        return [tensors[i] for i in which if i < self.count]

    def numbers_of(self, which, numbers):
        return {self.names[i]: numbers[i - self.count] for i in which if i >= self.count}

    def others_of(self, tensors, numbers):
        """What texts alone read."""
        return self.tensors_of(self.others, tensors), list(self.numbers_of(self.others, numbers).values())

    def layouts(self, a, b, tensors, lead):
        """Of a and b, and pairs of operand and layout of all that only texts read: tensors, and numbers."""
        factors, found = [factor.given(tensor, lead) for factor, tensor in zip(self.of, (a, b))], {}
        for factor, layout, which in zip(self.of, factors, self.reads):
            for pair in factor.operands(self.tensors_of(which, tensors), lead, not is_rows(layout.shape, layout.stride)):
                found.setdefault(pair[0].name, pair)
        others = [found[self.names[i]] for i in self.others if i < self.count]
        return factors, others, [(Operand(self.names[i], api.NUMBER), None) for i in self.others if i >= self.count]

    def alone(self, i, stored, tensors, numbers, wanted):
        return self.of[i].alone(stored, self.tensors_of(self.reads[i], tensors), self.numbers_of(self.reads[i], numbers), wanted, self.of[0].shape[-1])

    def inner(self, text, names, numbers, outputs, dtypes, wanted, factors, flags, stored, *_):
        """The rest of the call that is left, with what is made as its factors."""
        names, of_text, wanted = self.names, self.numbers_of(self.own, numbers), wanted.split(",")
        for i, which in enumerate(self.reads):
            factors |= 1 << i if any(names[j] in wanted for j in which) else 0
        left = [names[i] for i in self.own if i < self.count]
        known = [number for i in self.own if i < self.count for number in stored[3 * i + 6:3 * i + 9]]
        return (text, ",".join([*left, *of_text]), list(of_text.values()), outputs, dtypes,
                ",".join((["v"] if factors else []) + [name for name in left if name in wanted]), factors, flags, known, "", "")

    def is_read(self, factors):
        """Of each factor, whether a gradient reads it: that of the other one, or of what its text reads."""
        return [bool(factors & 1 << (not i) or of.text is not None and factors & 1 << i) for i, of in enumerate(self.of)]
