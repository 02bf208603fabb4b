"""PyTorch's tensors as gemmepi has them: types, layouts, a context for each device, and plans that are kept."""
import ctypes
import glob
import os
import sys
import threading

import torch

from . import api
from .context import HOST, Context

DTYPES = {torch.float32: api.F32, torch.float64: api.F64, torch.float16: api.F16, torch.bfloat16: api.BF16, torch.float8_e4m3fn: api.E4M3,
          torch.float8_e5m2: api.E5M2, torch.int8: api.I8, torch.int32: api.I32, torch.int64: api.I64}
TORCH_DTYPES = {code: dtype for dtype, code in DTYPES.items()}
# that operands are only read in, and are bytes to PyTorch; it has some of the names
BYTES = {getattr(torch, name): code for name, code in (("uint4", api.U4), ("int4", api.I4), ("float4_e2m1fn_x2", api.E2M1),
                                                       ("float8_e8m0fnu", api.E8M0)) if hasattr(torch, name)}
PACKED = (api.I4, api.U4, api.E2M1)  # two elements a byte
PLAIN = (torch.Tensor, torch.nn.Parameter, type(None))
CAST = (torch.float32, torch.float16, torch.bfloat16)
KEPT = 1024  # problems whose plans are kept, some kilobytes each

_contexts, _kept, _lock = {}, {}, threading.Lock()
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_names_precision = hasattr(torch.backends.cuda.matmul, "fp32_precision")  # from 2.9 on
_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)


def _after_fork():
    """The child of a fork makes contexts of its own."""
    global _lock
    _contexts.clear(), _kept.clear()
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def is_plain(tensors):
    """Whether they are tensors with memory and nothing watches what is done with them, so that the library can be called at once."""
    if torch.compiler.is_compiling() or _modes() or _transforms():
        return False
    for tensor in tensors:
        if type(tensor) not in PLAIN:
            return False
    return True


def autocast(*tensors):
    """The tensors as autocast has those of a product, where it is on: in its type, unless they are float64 or no floating-point ones."""
    device = "cuda" if tensors[0].is_cuda else "cpu"
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple([tensor.to(dtype) if tensor is not None and tensor.dtype in CAST else tensor for tensor in tensors])


def code_of_dtype(dtype, name):
    code = DTYPES.get(dtype)
    if code is None:
        raise TypeError("%s is %s; accepted are %s%s" % (name, dtype, ", ".join(str(accepted)[6:] for accepted in DTYPES),
                                                         ", and uint8 where dtypes[%r] says what it holds" % name if dtype is torch.uint8 else ""))
    return code


def as_bytes(tensor, name, said):
    """The tensor and its code, 0 for what its type tells: of a type that is only read as bytes. said: a code, a type, or None."""
    code = BYTES.get(tensor.dtype, 0) if said is None else BYTES.get(said, said)
    if not code:
        return tensor, 0
    if code not in (*PACKED, api.E8M0) or tensor.dtype not in (torch.uint8, *[dtype for dtype in BYTES if BYTES[dtype] == code]):
        raise TypeError("dtypes[%r] is %s, and the tensor %s; accepted are api.I4, U4, E2M1 and E8M0, of torch.uint8" % (name, said, tensor.dtype))
    return tensor if tensor.dtype is torch.uint8 else tensor.view(torch.uint8), code


def require_device(device, tensors):
    """tensors: by their names."""
    for name, tensor in tensors.items():
        if tensor.device != device:
            raise ValueError("%s is on %s and the first tensor on %s: all must be on one device" % (name, tensor.device, device))


def libraries():
    """Where pip put the CUDA libraries that PyTorch came with, or nothing."""
    found = glob.glob(os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia", "*", "lib"))
    return os.pathsep.join(sorted(found)).encode() or None


def context_of(device):
    index = HOST if device.type == "cpu" else device.index
    found = _contexts.get(index)
    if found is None:
        if device.type not in ("cpu", "cuda"):
            raise ValueError("the tensors are on %s; accepted are cpu and cuda" % device)
        with _lock:
            if index not in _contexts:
                _contexts[index] = Context(index, library_path=libraries())
            found = _contexts[index]
    return found


def compute_of(tensor):
    """Products of float32 are exact, unless PyTorch is told that they need not be on the GPU."""
    if not tensor.is_cuda or tensor.dtype is not torch.float32:
        return api.COMPUTE_DEFAULT
    matmul = torch.backends.cuda.matmul
    return api.COMPUTE_TF32 if (matmul.fp32_precision == "tf32" if _names_precision else matmul.allow_tf32) else api.COMPUTE_DEFAULT


class Kind:
    """Plans of a kind, and their runs. What a run is handed is made as an array of words, each a field of the args: sooner than the struct."""

    def __init__(self, name, args):
        self.make = getattr(api, "plan_" + name)
        self.run = api.unchecked("run_" + name, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self.words = ctypes.c_void_p * (ctypes.sizeof(args) // 8)
        self.workspace, self.operands = args.workspace.offset // 8, args.operands.offset // 8


MATMUL, ELEMENTWISE = Kind("matmul", api.matmul_args), Kind("elementwise", api.elementwise_args)
LINEAR, LINEAR_BACKWARD = Kind("linear", api.linear_args), Kind("linear_backward", api.linear_args)
NETWORK, NETWORK_BACKWARD = Kind("network", api.network_args), Kind("network_backward", api.network_args)


class Plan:
    def __init__(self, kind, device, desc):
        self._as_parameter_ = ctypes.c_void_p()
        self.context = context_of(device)  # outlives the plan
        kind.make(self.context, desc, ctypes.byref(self._as_parameter_))
        details = api.plan_details()
        api.plan_info(self, details)
        self.kind, self.device = kind, device if device.type == "cuda" else None
        self.workspace_size = details.workspace_size if self.device else 0

    def run(self, words):
        """Runs in the order of PyTorch's current stream. Workspace is PyTorch's, so that a CUDA graph keeps it."""
        kind = self.kind
        if self.workspace_size:
            workspace = torch.empty(self.workspace_size, dtype=torch.uint8, device=self.device)
            words[kind.workspace], words[kind.workspace + 1] = workspace.data_ptr(), self.workspace_size
        status = kind.run(self._as_parameter_, words, _stream(self.device) if self.device else None)
        if status:
            api.fail(status)

    def __del__(self):
        if self._as_parameter_ and not sys.is_finalizing():
            api.plan_destroy(self)


class Plans:
    """Those of one desc, which differ by what all addresses are multiples of, up to 16. desc: makes it for an alignment."""

    def __init__(self, kind, device, desc):
        self.kind, self.device, self.desc, self.made = kind, device, desc, {}

    def run(self, addresses, words):
        bits = 16
        for address in addresses:
            bits |= address or 0
        plan = self.made.get(bits & -bits)
        if plan is None:
            plan = self.made[bits & -bits] = Plan(self.kind, self.device, self.desc(bits & -bits))
        plan.run(words)


def kept(key, make, *arguments):
    """What make(*arguments) returns, made once for a key that can be compared."""
    found = _kept.get(key)
    if found is None:
        found = make(*arguments)
        with _lock:
            while len(_kept) >= KEPT:
                _kept.pop(next(iter(_kept)))
            _kept[key] = found
    return found


def _stream(device):
    return _raw_stream(device.index) if _raw_stream else torch.cuda.current_stream(device).cuda_stream


def matrix(tensor):
    """The tensor, its last two axes laid out as a row-major matrix or the transpose of one (else a copy), whether it is transposed, and its
    leading dimension."""
    rows, columns = tensor.shape[-2:]
    down, across = tensor.stride()[-2:]
    if across == 1 and down >= columns or rows <= 1 and across == 1:
        return tensor, 0, down if rows > 1 else columns
    if down == 1 and across >= rows or columns <= 1 and down == 1:
        return tensor, 1, across if columns > 1 else rows
    return tensor.contiguous(), 0, columns


def refuse_second_derivative(name):
    if torch.is_grad_enabled():
        raise RuntimeError("gemmepi.%s has no second derivative: call backward or autograd.grad without create_graph" % name)


def placeholder(tensor):
    """Its shape and type without its memory, which nothing will read."""
    return tensor.new_empty(()).expand(tensor.shape)
