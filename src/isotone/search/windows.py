"""Windows of audio, and the overlapping rows of windows that are corpus items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Windows whose root mean square is below this (-80 dB of full scale) are silent.
SILENT = 1e-4


def cut_windows(samples: NDArray[np.float32], window: int, hop: int) -> NDArray[np.float32]:
    """Cut audio into windows ``(W, window)`` that begin every ``hop`` samples; there is at least one.

    The last window is padded with zeros if at least half a hop of audio is left for it; a shorter rest is left out.
    """
    count = max(0, (len(samples) - window + hop // 2) // hop) + 1
    padded = np.pad(samples, (0, max(0, (count - 1) * hop + window - len(samples))))
    return np.lib.stride_tricks.sliding_window_view(padded, window)[: (count - 1) * hop + 1 : hop]


def without_silent_ends(windows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Leave out the silent windows ``(W, window)`` before the first sound and after the last; all stay in silence."""
    heard = np.flatnonzero(np.sqrt(np.square(windows).mean(1)) >= SILENT)
    return windows[heard[0] : heard[-1] + 1] if len(heard) else windows


def item_spans(windows: int, size: int) -> list[tuple[int, int]]:
    """Return first window and number of windows of each item: up to ``size`` windows, every half ``size``.

    So any sequence of up to half an item is complete in at least one item.
    """
    step = max(1, size // 2)
    starts = range(0, max(1, windows - size + step), step)
    return [(start, min(size, windows - start)) for start in starts]


def spread(count: int, most: int) -> NDArray[np.int64]:
    """Return the numbers of ``most`` evenly spaced windows of ``count``, with the first and the last; all if fewer."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))
