"""Stretches of a recording that have no counterpart in another."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Random pairs of frames whose mean distance is 1, the unit of mismatches.
_PAIRS = 4096
# Slower places than this count no more: those of a pause that is longer in one recording.
_SLOWEST = 8.0


def at_places(values: Tensor, places: Tensor) -> Tensor:
    """Interpolate vectors ``(m, d)`` at places ``(n,)`` from 0 to m - 1: ``(n, d)``."""
    left = places.floor().long().clamp(max=max(0, len(values) - 2))
    share = (places - left)[:, None].to(values.dtype)
    return torch.lerp(values[left], values[(left + 1).clamp(max=len(values) - 1)], share)


def mismatches(x: Tensor, places: Tensor, y: Tensor) -> NDArray[np.float64]:
    """The mismatch ``(n,)`` of every vector of x with its place in y.

    It is their squared distance as a share of the mean one of vectors taken at random: 0 for equal ones, about 1 for
    any two.

    Args:
        x: ``(n, d)``.
        places: ``(n,)`` float64, as of a :class:`isotone.types.Warp`.
        y: ``(m, d)``.
    """
    distances = (x - at_places(y, places)).double().square().sum(1)
    draw = torch.Generator().manual_seed(0)
    i, j = (torch.randint(len(z), (_PAIRS,), generator=draw) for z in (x, y))
    chance = float((x[i] - y[j]).double().square().sum(1).mean()) or 1.0
    return (distances / chance).numpy()


def places_back(places: Tensor, m: int) -> tuple[int, Tensor]:
    """Places in x of the positions of y that lie between the first and the last place: the first of them, places."""
    known = places.numpy()
    columns = np.arange(max(0, int(known[0])), min(m, int(np.ceil(known[-1])) + 1))
    return int(columns[0]), torch.from_numpy(np.interp(columns, known, np.arange(len(known), dtype=float)))


def stretches(
    mismatch: NDArray[np.float64], places: Tensor, frames: int, least: float
) -> list[tuple[int, int]]:
    """Stretches that have no counterpart: first frame, and one past the last.

    What is missing in the other recording is squeezed into a moment of it, or it is matched with something unlike. So
    the mean mismatch of so many frames is multiplied by the root of how many times slower the places advance there
    than the frames; a stretch has at least ``least``.
    """
    n = len(mismatch)
    if n < frames:
        return []
    sums = np.concatenate([[0.0], np.cumsum(mismatch)])
    advance = (places[frames - 1 :] - places[: n - frames + 1]).numpy() / (frames - 1)
    slowness = np.clip(1 / np.maximum(advance, 1e-3), 1, _SLOWEST)
    high = (sums[frames:] - sums[:-frames]) / frames * np.sqrt(slowness) >= least
    edges = np.flatnonzero(np.diff(np.concatenate([[False], high, [False]]).astype(int)))
    margin = frames // 4
    out: list[tuple[int, int]] = []
    for start, stop in edges.reshape(-1, 2).tolist():
        found = start + margin, stop - 1 + frames - margin
        if out and found[0] <= out[-1][1]:
            found = out.pop()[0], found[1]
        out.append(found)
    return out
