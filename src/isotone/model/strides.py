"""Frames of strided convolutions: number, receptive field and grid, from an encoder's configuration."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isotone.types import Grid


def conv_frames(config: Any, samples: Tensor) -> Tensor:
    """Compute the wave front end's number of frames for numbers of samples."""
    for kernel, stride in zip(config.conv_kernel, config.conv_stride):
        samples = (samples - kernel).div(stride, rounding_mode="floor") + 1
    return samples.clamp(min=0)


def conv_field(config: Any) -> tuple[int, int]:
    """Compute the receptive field of the wave front end's frames, and their hop, in samples."""
    field, hop = 1, 1
    for kernel, stride in zip(config.conv_kernel, config.conv_stride):
        field += (kernel - 1) * hop
        hop *= stride
    return field, hop


def has_adapter(config: Any) -> bool:
    """Tell if the encoder has an adapter: strided convolutions after the last layer."""
    return bool(getattr(config, "add_adapter", False))


def adapter_frames(config: Any, frames: Tensor) -> Tensor:
    """Compute the adapter's number of valid frames for numbers of frames of the last layer; 0 for 0."""
    kernel = config.adapter_kernel_size if config.model_type == "wav2vec2-bert" else 1
    left = frames
    for _ in range(config.num_adapter_layers):
        left = (left + 2 * (kernel // 2) - kernel).div(config.adapter_stride, rounding_mode="floor") + 1
    return torch.where(frames > 0, left.clamp(min=0), 0)


def adapter_grid(config: Any, grid: Grid) -> Grid:
    """Compute the grid of the adapter's frames; each lies in the middle of its receptive field."""
    stride, kernel = config.adapter_stride, config.adapter_kernel_size
    padding = stride // 2 if config.model_type == "wav2vec2-bert" else 1
    hop, middle = grid.hop_s, grid.offset_s + grid.hop_s / 2
    for _ in range(config.num_adapter_layers):
        middle += ((kernel - 1) / 2 - padding) * hop
        hop *= stride
    return Grid(hop, middle - hop / 2)
