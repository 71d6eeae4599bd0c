"""The kernels for CUDA, which are imported where they are needed and can be had."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

import torch


def on_cuda(module: str, device: torch.device) -> ModuleType | None:
    """Import a module of Triton kernels for a device; None where that is no CUDA device, or torch has no Triton."""
    if device.type != "cuda" or importlib.util.find_spec("triton") is None:
        return None
    return importlib.import_module(module)
