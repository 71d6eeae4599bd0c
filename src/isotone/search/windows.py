"""Audio to windows, and windows to the overlapping rows of them that are corpus items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def cut_windows(samples: NDArray[np.float32], window: int, hop: int) -> NDArray[np.float32]:
    """Windows ``(W, window)`` that begin every ``hop`` samples, at least one.

    The last is filled up with zeros where half a hop or more of the audio is left for it; less is left out.
    """
    count = max(0, (len(samples) - window + hop // 2) // hop) + 1
    padded = np.pad(samples, (0, max(0, (count - 1) * hop + window - len(samples))))
    return np.lib.stride_tricks.sliding_window_view(padded, window)[: (count - 1) * hop + 1 : hop]


def item_spans(windows: int, size: int) -> list[tuple[int, int]]:
    """First window and number of windows of each item: up to ``size`` of them, every half ``size``.

    Whatever follows each other within half an item is whole in one of them.
    """
    step = max(1, size // 2)
    starts = range(0, max(1, windows - size + step), step)
    return [(start, min(size, windows - start)) for start in starts]


def spread(count: int, most: int) -> NDArray[np.int64]:
    """Numbers of ``most`` of ``count`` windows, the first and the last among them, evenly apart; all of fewer."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))
