"""Sequences of images (appendix J.2): one image at growing angles, from scikit-learn's handwritten digits."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

#: Pixels of an image, which are its element.
SIZE = 64
# Degrees that a sequence covers.
_TURN = 270.0


def digits() -> tuple[Tensor, Tensor]:
    """Load the 1,797 images ``(N, 8, 8)``, values from 0 to 1, and the digits that they show ``(N,)`` int64.

    Raises:
        ImportError: scikit-learn, which carries them, is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            f"The images of digits come with scikit-learn ({error}): pip install isotone[recipes]"
        ) from error
    found = load_digits()
    return torch.from_numpy(found.images).float() / 16, torch.from_numpy(found.target).long()


def turned(image: Tensor, sequences: int, frames: int, rng: np.random.Generator) -> Tensor:
    """Turn an image ``(H, W)`` from 0 to 270 degrees, each step by a random angle: ``(sequences, frames, H * W)``."""
    steps = (np.arange(frames) + rng.random((sequences, frames))) * (_TURN / frames)
    angle = torch.from_numpy(steps.flatten() * (math.pi / 180)).float()
    zero = torch.zeros_like(angle)
    turns = torch.stack(
        [torch.stack([angle.cos(), -angle.sin(), zero], 1), torch.stack([angle.sin(), angle.cos(), zero], 1)],
        1,
    )
    many = image.expand(len(angle), 1, *image.shape)
    grid = torch.nn.functional.affine_grid(turns, list(many.shape), align_corners=False)
    out = torch.nn.functional.grid_sample(many, grid, align_corners=False)
    return out.view(sequences, frames, -1)
