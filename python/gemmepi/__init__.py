"""gemmepi: matrix products with their epilogue in one pass, on NVIDIA GPUs and on the host.

gemmepi.linear, gemmepi.network, gemmepi.formula and gemmepi.pack are for PyTorch, which is imported when one of them is first used. gemmepi.api is
the C interface by ctypes, without PyTorch. docs/python.md of the repository has examples.
"""
from . import api
from .api import Error
from .context import HOST, Context

__all__ = ["Context", "Error", "HOST", "api", "formula", "linear", "network", "pack"]
__version__ = "%d.%d.%d" % (api.VERSION_MAJOR, api.VERSION_MINOR, api.VERSION_PATCH)


def __getattr__(name):
    if name in ("linear", "network", "formula", "pack"):
        try:
            from . import torch
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ImportError("gemmepi.%s needs PyTorch, which is not installed: pip install torch" % name) from None
        return globals().setdefault(name, getattr(torch, name))
    raise AttributeError("module gemmepi has no attribute %r" % name)
