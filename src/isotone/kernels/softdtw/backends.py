"""The implementations of soft-DTW, by device."""

from __future__ import annotations

from types import ModuleType

import torch

from isotone.kernels.softdtw import cpu


def backend_of(device: torch.device) -> ModuleType | None:
    """Return the module that computes on a device; None for tensor operations."""
    if device.type == "cpu":
        return cpu
    if device.type == "cuda":
        try:
            from isotone.kernels.softdtw import cuda
        except ImportError:  # a build of torch without triton
            return None
        return cuda
    return None
