"""Shapes and strides, without the tensors: how those of a product with a batch are [rows, columns] or [batch, rows, columns]."""
import math

from ._tensors import DTYPES, PACKED


def dense(shape):
    return tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))


def flat(shape, stride, lead, name):
    """Two or, where items of a batch differ, three extents, and their strides: None where a copy alone can be so. lead: the product's axes
    before the last two, which the tensor's are broadcast to."""
    missing = (0,) * (2 - len(shape))
    shape, stride = tuple(1 for _ in missing) + tuple(shape), missing + tuple(stride)
    if all(extent == 1 for extent in shape[:-2]):
        return shape[-2:], stride[-2:]
    given = list(zip(shape[:-2], stride[:-2]))[-len(lead):] if lead else []
    given = [(1, 0)] * (len(lead) - len(given)) + given
    if len(shape) - 2 > len(lead) or any(extent not in (1, wanted) for (extent, _), wanted in zip(given, lead)):
        raise ValueError("%s has the shape %s, whose leading axes do not go with %s" % (name, list(shape), list(lead)))
    axes = [(wanted, step if extent == wanted else 0) for (extent, step), wanted in zip(given, lead) if wanted != 1]
    is_one = all(axes[i][1] == axes[i + 1][1] * axes[i + 1][0] for i in range(len(axes) - 1))
    return (math.prod(lead), *shape[-2:]), (axes[-1][1], *stride[-2:]) if is_one else None


def is_rows(shape, stride):
    """Whether the last two axes are a row-major matrix."""
    return stride[-1] == 1 and stride[-2] >= shape[-1] or shape[-2] <= 1 and (stride[-1] == 1 or shape[-1] <= 1)


def across(axes):
    """Shape or strides with the last two axes exchanged."""
    return (*axes[:-2], axes[-1], axes[-2])


def is_columns(shape, stride):
    return is_rows(across(shape), across(stride))


def leading_dimension(shape, stride):
    """Of a matrix in rows."""
    return stride[-2] if shape[-2] > 1 else shape[-1]


def is_along_rows(tensor, in_columns=False):
    """Whether the pairs of a type of 4 bits are along rows, which is the dense axis. in_columns: so where both are."""
    return tensor.dim() > 1 and (is_columns(tensor.shape, tensor.stride()) if in_columns else not is_rows(tensor.shape, tensor.stride()))


def elements(tensor, code, in_columns=False):
    """Shape and strides in elements: of a type of 4 bits a byte has two."""
    shape, stride = tuple(tensor.shape), tensor.stride()
    if code not in PACKED or not shape:
        return shape, stride
    at = len(shape) - (2 if is_along_rows(tensor, in_columns) else 1)
    return (tuple([extent * 2 if i == at else extent for i, extent in enumerate(shape)]),
            tuple([step if i == at else step * 2 for i, step in enumerate(stride)]))


def anything(shape, stride):
    return True


def is_factor(shape, stride):
    return is_rows(shape, stride) or is_columns(shape, stride)


def is_line(shape, stride):
    """Whether the elements of each item are side by side."""
    return all(extent <= 1 or step == 1 for extent, step in zip(shape[-2:], stride[-2:]))


class Given:
    """A tensor that calls are given, read where it is or, if what reads it does not accept its strides, in a copy. code: of its type, 0 for what
    PyTorch says."""

    def __init__(self, tensor, lead, name, accepts, code=0):
        self.dtype, self.code = tensor.dtype, code or DTYPES[tensor.dtype]
        self.shape, self.stride = flat(*elements(tensor, self.code, accepts is is_columns), lead, name)
        self.is_copied = self.stride is None or not accepts(self.shape, self.stride)
        self.lead = lead if len(self.shape) == 3 else None
        by_rows = self.code in PACKED and is_along_rows(tensor, accepts is is_columns)
        self.in_columns = accepts is is_columns or accepts is is_factor and by_rows
        if self.code in PACKED and self.is_copied and by_rows != self.in_columns:
            raise ValueError("%s has two elements a byte along %s, and is read along %s: pack it along that axis"
                             % (name, *(("rows", "columns") if by_rows else ("columns", "rows"))))
        if self.is_copied:
            self.stride = dense(self.shape) if not self.in_columns else across(dense(across(self.shape)))

    def __call__(self, tensor):
        if not self.is_copied:
            return tensor
        tensor = tensor.expand(*self.lead, *tensor.shape[-2:]) if self.lead else tensor
        return (tensor.mT if self.in_columns else tensor).contiguous()


class Made:
    """A dense tensor that a call makes; shape has two or three extents."""

    def __init__(self, shape, dtype):
        self.shape, self.stride, self.dtype, self.code = tuple(shape), dense(shape), dtype, DTYPES[dtype]


class Repeated(Made):
    """One number for all."""

    def __init__(self, shape, dtype):
        super().__init__(shape, dtype)
        self.stride = (0,) * len(self.shape)
