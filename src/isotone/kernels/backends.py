"""The kernels for CUDA, which are imported where they are needed and can be had."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

import torch

# Found once: torch.compile cannot trace the search.
_TRITON = importlib.util.find_spec("triton") is not None


def has_kernels(device: torch.device) -> bool:
    """Return whether there are compiled loops or Triton kernels for a device, rather than tensor operations only."""
    return device.type == "cpu" or (device.type == "cuda" and _TRITON)


def on_cuda(module: str, device: torch.device) -> ModuleType | None:
    """Import a module of Triton kernels for a device; None where that is no CUDA device, or torch has no Triton."""
    return importlib.import_module(module) if device.type == "cuda" and has_kernels(device) else None
