#!/usr/bin/env python3
"""gemmepi under PyTorch: y = act(x W^T + b) with its gradients, as an autograd function on PyTorch's tensors and stream.

The header is built into a shared library and called by ctypes; tensors are handed over by their addresses. Two layers, one
after the other, are held against PyTorch's own gradients in float64. Runs on the GPU if PyTorch has one, else on the host.

    python3 torch_ctypes.py        takes PyTorch and a C compiler
"""
import ctypes
import os
import re
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError as missing:
    print("PyTorch is not installed (%s); pip install torch" % missing)
    sys.exit(77)

HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gemmepi.h")

# >>the C interface; constants are read from the header, structs are as there

with open(HEADER, encoding="utf-8") as text:
    CONSTANTS = {name: int(value, 16) for name, value in re.findall(r"#define GEMMEPI_(\w+) +(0x[0-9a-f]+)ull", text.read())}
ACTIVATIONS = {"none": CONSTANTS["NONE"], "gelu": CONSTANTS["GELU_ERF"], "silu": CONSTANTS["SILU"]}
LINEAR_BIAS, LINEAR_SAVED = CONSTANTS["LINEAR_BIAS"], CONSTANTS["LINEAR_SAVED"]
GRADIENTS = [CONSTANTS["LINEAR_DA"], CONSTANTS["LINEAR_DB"], CONSTANTS["LINEAR_DBIAS"]]
DTYPES = {torch.float32: 1, torch.float64: 2, torch.float16: 3, torch.bfloat16: 4}
DEVICE_HOST = -1
INT, INT64, UINT64, DOUBLE, SIZE, POINTER = (ctypes.c_int, ctypes.c_int64, ctypes.c_uint64, ctypes.c_double,
                                             ctypes.c_size_t, ctypes.c_void_p)


def struct(*fields):
    members = [(name, kind) for kind, names in fields for name in names.split()]
    return type("struct", (ctypes.Structure,), {"_fields_": members})


Config = struct((INT, "device"), (POINTER, "log log_user alloc free user library_path"), (INT, "library_path_only"),
                (POINTER, "resolve_symbol resolve_user cache_path"), (SIZE, "cache_size"), (POINTER, "dump_path"),
                (INT, "routes check_pointers multiprocessors"))
Scale = struct((INT, "mode"), (INT64, "batch_stride"))
Matrix = struct((INT, "dtype transposed"), (INT64, "ld batch_stride"), (Scale, "scale"))
Vector = struct((INT, "dtype"), (INT64, "batch_stride"))
LinearDesc = struct((INT64, "m n k batch"), (INT, "order compute"), (UINT64, "activation flags"), (INT, "has_parameter"),
                    (DOUBLE, "activation_parameter"), (Matrix, "a b y preact dy da db"), (Vector, "bias dbias"),
                    (INT, "amax_history g_dtype"), (SIZE, "alignment"), (POINTER, "formula operands"), (INT, "operand_count"),
                    (POINTER, "formula_value formula_result"))
LinearArgs = struct((POINTER, "a b bias y preact dy da db dbias scale_a scale_b scale_y scale_preact scale_dy found_scale_y amax_history workspace"),
                    (SIZE, "workspace_size"), (POINTER, "operands operand_scales"))


def build(folder):
    path = os.path.join(folder, "libgemmepi.so")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-DGEMMEPI_IMPLEMENTATION", "-x", "c", HEADER,
                    "-o", path, "-lm", "-ldl", "-lpthread"], check=True)
    library = ctypes.CDLL(path)
    library.gemmepi_last_error.restype = ctypes.c_char_p
    library.gemmepi_create_for.argtypes = [ctypes.c_int, POINTER, ctypes.c_size_t, ctypes.POINTER(Config), ctypes.POINTER(POINTER)]
    for function in library.gemmepi_linear, library.gemmepi_linear_backward:
        function.argtypes = [POINTER, ctypes.POINTER(LinearDesc), ctypes.POINTER(LinearArgs), POINTER]
    return library


def check(status):
    if status != 0:
        raise RuntimeError(GEMMEPI.gemmepi_last_error().decode())


with tempfile.TemporaryDirectory() as scratch:
    GEMMEPI = build(scratch)
CONTEXT = POINTER()
ON_GPU = torch.cuda.is_available()
check(GEMMEPI.gemmepi_create_for(GEMMEPI.gemmepi_version(), None, 0, Config(device=torch.cuda.current_device() + 1 if ON_GPU else DEVICE_HOST), CONTEXT))


def stream():
    return torch.cuda.current_stream().cuda_stream if ON_GPU else None


# >>the layer

class Linear(torch.autograd.Function):
    """x [m, k], weight [n, k] as torch.nn.Linear has it, bias [n]."""

    @staticmethod
    def forward(ctx, x, weight, bias, activation):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        (m, k), n = x.shape, weight.shape[0]
        desc = LinearDesc(m=m, n=n, k=k, activation=ACTIVATIONS[activation], flags=LINEAR_BIAS)
        desc.a.dtype = DTYPES[x.dtype]  # all others follow it
        desc.b.transposed = 1
        y, preact = x.new_empty(m, n), None
        if activation != "none":
            desc.flags |= LINEAR_SAVED
            preact = x.new_empty(m, n)
        args = LinearArgs(a=x.data_ptr(), b=weight.data_ptr(), bias=bias.data_ptr(), y=y.data_ptr(),
                          preact=None if preact is None else preact.data_ptr())
        check(GEMMEPI.gemmepi_linear(CONTEXT, desc, args, stream()))
        ctx.desc = desc
        ctx.save_for_backward(x, weight, preact)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, preact = ctx.saved_tensors
        dy, desc = dy.contiguous(), LinearDesc.from_buffer_copy(ctx.desc)
        args = LinearArgs(a=x.data_ptr(), b=weight.data_ptr(), dy=dy.data_ptr(),
                          preact=None if preact is None else preact.data_ptr())
        gradients = [torch.empty_like(x), torch.empty_like(weight), x.new_empty(desc.n)]
        for i, name in enumerate(("da", "db", "dbias")):
            if ctx.needs_input_grad[i]:
                desc.flags |= GRADIENTS[i]
                setattr(args, name, gradients[i].data_ptr())
            else:
                gradients[i] = None
        check(GEMMEPI.gemmepi_linear_backward(CONTEXT, desc, args, stream()))
        return (*gradients, None)


# >>the check

def largest_difference(dtype, activation):
    """Of a two-layer network's output and gradients from PyTorch's in float64, each relative to the largest number there."""
    device = "cuda" if ON_GPU else "cpu"
    act = {"none": lambda v: v, "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu}[activation]
    ours = [(torch.randn(shape, device=device) * scale).to(dtype).requires_grad_()
            for shape, scale in (((96, 64), 1), ((128, 64), 1 / 8), ((128,), 1), ((48, 128), 1 / 11), ((48,), 1))]
    x, w1, b1, w2, b2 = ours
    y = Linear.apply(Linear.apply(x, w1, b1, activation), w2, b2, "none")
    upstream = torch.randn_like(y)
    y.backward(upstream)

    theirs = [tensor.detach().double().requires_grad_() for tensor in ours]
    x, w1, b1, w2, b2 = theirs
    expected = torch.nn.functional.linear(act(torch.nn.functional.linear(x, w1, b1)), w2, b2)
    expected.backward(upstream.double())
    pairs = [(y, expected)] + [(one.grad, other.grad) for one, other in zip(ours, theirs)]
    return max(((one - other).abs().max() / other.abs().max()).item() for one, other in pairs)


def main():
    torch.manual_seed(1)
    print("on", torch.cuda.get_device_name() if ON_GPU else "the host: PyTorch has no GPU here")
    wrong = 0
    for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 3e-3), (torch.float64, 1e-13)):
        for activation in ACTIVATIONS:
            difference = largest_difference(dtype, activation)
            wrong += not difference < bound
            print("%-15s %-5s differs from autograd in float64 by %.1e of the largest%s"
                  % (dtype, activation, difference, "" if difference < bound else ": too much"))
    GEMMEPI.gemmepi_destroy(CONTEXT)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
