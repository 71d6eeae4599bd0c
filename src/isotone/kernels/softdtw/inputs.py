"""Checks and layout of the inputs of soft-DTW's public functions."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from isotone.kernels.softdtw.plan import Plan, dense
from isotone.types import check_integers


def prepare(
    cost: Tensor, gamma: float, source_lengths: Tensor | None, target_lengths: Tensor | None, band: int | None
) -> tuple[Tensor, Plan]:
    """Return costs with the shorter axis first, without gaps in memory, and the order of their cells.

    Raises:
        ValueError: as :func:`isotone.kernels.softdtw.soft_dtw`.
    """
    if cost.ndim != 3 or not cost.is_floating_point() or (len(cost) and 0 in cost.shape):
        raise ValueError(
            f"Expected floating costs (B, n, m) with n, m >= 1; got {tuple(cost.shape)}, {cost.dtype}. "
            "For one pair use cost[None]."
        )
    check_options(gamma, band)
    n = lengths_of(source_lengths, len(cost), cost.shape[1])
    m = lengths_of(target_lengths, len(cost), cost.shape[2])
    cost = cost.to(torch.promote_types(cost.dtype, torch.float32))
    if by_columns(cost):
        cost, n, m = cost.mT, m, n
    return dense(cost), Plan.of((len(cost), *cost.shape[1:]), n, m, -1 if band is None else int(band))


def check_options(gamma: float, band: int | None) -> None:
    """Raise ValueError for a gamma or a band outside its range."""
    if not (math.isfinite(gamma) and gamma >= 0):
        raise ValueError(f"Expected gamma >= 0, in the unit of the costs; got {gamma}.")
    if band is not None and (band < 0 or band != int(band)):
        raise ValueError(f"Expected a band of 0 or more positions, or None; got {band}.")


def of_one_type(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Convert both to the wider of their types, float32 at least."""
    wide = torch.promote_types(torch.promote_types(x.dtype, y.dtype), torch.float32)
    return x.to(wide), y.to(wide)


def by_columns(cost: Tensor) -> bool:
    """Return whether lanes run along the second axis, the shorter one."""
    return cost.shape[1] > cost.shape[2]


def lengths_of(lengths: Tensor | None, batch: int, size: int) -> np.ndarray:
    """Return the lengths as an array, ``size`` where none are given; ValueError for those outside 1 to ``size``."""
    if lengths is None:
        return np.full(batch, size)
    check_integers(lengths)
    values = lengths.detach().cpu().numpy().astype(np.int64)
    if values.shape != (batch,) or ((values < 1) | (values > size)).any():
        raise ValueError(f"Expected {batch} lengths from 1 to {size}; got {values.tolist()}.")
    return values
