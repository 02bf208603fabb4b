"""gemmepi.pack: tensors in few bits."""
import ctypes
import math

import torch

from . import api
from ._problem import through
from ._tensors import BYTES, DTYPES, PACKED, TORCH_DTYPES


def code_of(dtype):
    return BYTES.get(dtype) or DTYPES.get(dtype, dtype)


def of_code(code):
    """What PyTorch has the numbers of a code as, bytes where it has none."""
    return TORCH_DTYPES.get(code, torch.uint8)


def scales(said, name, shape):
    """A tensor of the host for scales or zeros, whether they are given, and their code."""
    if not isinstance(said, torch.Tensor):
        return torch.empty(shape, dtype=of_code(code_of(said))), False, code_of(said)
    if tuple(said.shape) != tuple(shape):
        raise ValueError("%s has the shape %s, and there are %s blocks" % (name, list(said.shape), list(shape)))
    code = api.E8M0 if said.dtype is torch.uint8 else code_of(said.dtype)
    return (said.view(torch.uint8) if code == api.E8M0 else said).detach().cpu().contiguous(), True, code


def pack(numbers, dtype, blocks, *, scale=torch.float32, zero=None, divisor=1.0):
    """Stores numbers in few bits, as gemmepi_pack does: packed, scale = gemmepi.pack(weight, gemmepi.api.I4, (1, 128)).

    numbers    [.., rows, columns], on any device; it is copied to the host and the results back
    dtype      api.I4, U4, E2M1 or E8M0, which become torch.uint8, or I8, E4M3, E5M2, F16 or BF16, as torch.int8 and so on. Of 4 bits packed has half as
               many columns, of which a byte has two, and columns are even
    blocks     rows and columns that share a scale
    scale      the type of scales that are found (float32, float16, bfloat16, float8_e4m3fn or api.E8M0), or those that there are
    zero       the same of zeros, which I4, U4 and I8 may have: packed = round(numbers / scale + zero); found where scales are. None: 0
    divisor    a second scale, of all

    Returns packed and scale, and with zero that too: scale and zero have an element for each block. gemmepi.formula has the numbers back by
    b_formula="(b - zero) * scale".
    """
    code, source = code_of(dtype), numbers.detach().cpu().contiguous()
    if source.dim() < 2 or len(blocks) != 2 or min(blocks) < 1:
        raise ValueError("numbers has the shape %s, and blocks is %r; accepted are [.., rows, columns] and two numbers, 1 or more" % (list(source.shape), blocks))
    lead, (rows, columns) = source.shape[:-2], source.shape[-2:]
    shape = (*lead, through(rows, blocks[0]), through(columns, blocks[1]))
    packed = torch.empty((*lead, rows, columns // 2 if code in PACKED else columns), dtype=of_code(code))
    scale, is_given, of_scale = scales(scale, "scale", shape)
    zero, zero_is_given, of_zero = (None, is_given, 0) if zero is None else scales(zero, "zero", shape)
    if is_given != zero_is_given:
        raise ValueError("%s is given and %s is to be found: give both or none" % (("scale", "zero") if is_given else ("zero", "scale")))
    count = math.prod(lead)

    def at(tensor, i):
        return ctypes.c_void_p(tensor.data_ptr() + i * (tensor.numel() // max(count, 1)) * tensor.element_size())

    for i in range(count):
        desc = api.pack_desc(rows=rows, columns=columns, source=at(source, i), source_dtype=code_of(source.dtype), packed=at(packed, i), dtype=code,
                             block_rows=blocks[0], block_columns=blocks[1], scale=at(scale, i), scale_dtype=of_scale, divisor=divisor,
                             find=0 if is_given else 1)
        if zero is not None:
            desc.zero, desc.zero_dtype = at(zero, i), of_zero
        api.pack(desc)
    return tuple([tensor.to(numbers.device) for tensor in (packed, scale, zero) if tensor is not None])
