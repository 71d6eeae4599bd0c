"""Alignment of two sequences of vectors of any length."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.interfaces import Warper
from isotone.kernels.warping import dtw_spans
from isotone.registries import warpers
from isotone.types import Warp, Window

# Pairs of positions that the coarse path compares.
_COARSE_CELLS = 2**29

# Positions on either side of a coarse path that are looked at: 2 s of frames of 10 ms.
_RADIUS = 200

# Largest numbers of sequences whose squared distances single precision holds, and those that double precision does.
_SINGLE, _DOUBLE = (1e-12, 1e12), (1e-140, 1e140)

# Types of arrays that are kept: all other numbers become double precision.
_KEPT = tuple(np.dtype(name) for name in ("float16", "float32", "float64"))


def align_sequences(
    x: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    warper: str | Mapping[str, Any] | Warper = "soft-dtw",
    *,
    part: bool = False,
    window: Window | None = None,
    radius: int = _RADIUS,
) -> Warp:
    """Find the place in y of every position of x.

    Sequences with more pairs of positions than the warper compares at once are averaged over blocks, warped exactly
    by DTW, and then by the warper in a window around that path. The memory is bounded; the time grows with n + m as
    long as the averaged sequences are short enough.

    Args:
        x, y: ``(n, d)`` and ``(m, d)`` real numbers, each with a vector at least, compared by squared distances.
        warper: Name of a plugin, a mapping of its name and options, or a warper.
        part: Leave the ends of y free: x is a part of it. Otherwise the first positions match, and the last.
        window: The positions of y that those of x may be warped to. Default: all, or around a coarse path.
        radius: Positions on either side of the coarse path.

    Returns:
        Places ``(n,)`` float64 and a score.

    Raises:
        AlignmentError: vectors that are not finite, or whose squares are not; or no path.
        LookupError: no such warper.
        ValueError: shapes or options that do not fit.
    """
    x, y = (_vectors(z, name) for z, name in ((x, "x"), (y, "y")))
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"Expected vectors of one size; got {x.shape[1]} and {y.shape[1]} numbers.")
    x, y = _comparable(x, y)
    made = warper if isinstance(warper, Warper) else warpers.create(warper)
    if window is None and len(x) * len(y) > made.most_cells:
        window = _window(x, y, part, radius)
    return made(x, y, window, part=part)


def _vectors(values: ArrayLike | Tensor, name: str) -> Tensor:
    out = values.detach().cpu() if isinstance(values, Tensor) else np.asarray(values)
    kind = str(out.dtype).removeprefix("torch.")
    real = not out.is_complex() if isinstance(out, Tensor) else out.dtype.kind in "fiub"
    if out.ndim != 2 or not math.prod(out.shape) or not real:
        column = f" One number per position is {name}[:, None]." if out.ndim == 1 else ""
        raise ValueError(
            f"Expected {name} as (positions, numbers), real and with a vector at least; got {tuple(out.shape)} "
            f"{kind}.{column}"
        )
    if isinstance(out, Tensor):
        return out if out.dtype.is_floating_point else out.double()
    own = out.dtype.newbyteorder("=")
    # torch takes arrays in the machine's order of bytes, which can be written
    return torch.from_numpy(np.require(out, own if own in _KEPT else np.float64, ["C", "W"]))


def _comparable(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Turn sequences into double precision where single precision does not hold their squared distances."""
    largest = max(float(z.abs().max()) for z in (x, y))
    if not 0 < largest < math.inf or _SINGLE[0] <= largest <= _SINGLE[1]:
        return x, y  # the warper says which vectors are not finite
    if not _DOUBLE[0] <= largest <= _DOUBLE[1]:
        raise AlignmentError(
            f"the largest number of both sequences is {largest:.3g}, whose square a computer does not hold: multiply "
            "both sequences by one number."
        )
    return x.double(), y.double()


def _window(x: Tensor, y: Tensor, part: bool, radius: int) -> Window:
    """Window of a radius around the path of both sequences averaged over blocks."""
    block = 1
    while -(-len(x) // block) * -(-len(y) // block) > _COARSE_CELLS:
        block *= 2
    spans, _ = dtw_spans(_averaged(x, block), _averaged(y, block), part=part)
    coarse = torch.arange(len(x)) // block
    low = (spans[:, 0] * block - radius).clamp(min=0)[coarse]
    high = ((spans[:, 1] + 1) * block + radius).clamp(max=len(y))[coarse]
    return Window(low, high)


def _averaged(x: Tensor, block: int) -> Tensor:
    """Means of ``(n, d)`` over blocks: ``(ceil(n / block), d)``."""
    if block == 1:
        return x
    number = torch.arange(len(x)) // block
    sums = x.new_zeros(int(number[-1]) + 1, x.shape[1]).index_add_(0, number, x)
    return sums / torch.bincount(number)[:, None]
