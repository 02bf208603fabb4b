"""gemmepi for PyTorch: linear, network, formula and pack, on tensors and streams as they are. Importing it registers torch.ops.gemmepi."""
import torch

if not hasattr(torch.library, "custom_op"):
    raise ImportError("gemmepi.torch needs PyTorch 2.4 or later; this is %s" % torch.__version__)

from ._formula import formula  # noqa: E402
from ._linear import linear  # noqa: E402
from ._network import network  # noqa: E402
from ._pack import pack  # noqa: E402

__all__ = ["formula", "linear", "network", "pack"]
