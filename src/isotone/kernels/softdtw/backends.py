"""The implementations of soft-DTW, by device."""

from __future__ import annotations

from types import ModuleType

import torch

from isotone.kernels.backends import on_cuda
from isotone.kernels.softdtw import cpu


def backend_of(device: torch.device) -> ModuleType | None:
    """Return the module that computes on a device; None for tensor operations."""
    return cpu if device.type == "cpu" else on_cuda("isotone.kernels.softdtw.cuda", device)
