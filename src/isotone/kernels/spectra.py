"""Powers of sound in bands of frequencies, frame by frame."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from isotone.kernels._spectra import FRAMES, fill_powers
from isotone.kernels.threads import each_run

# Half nanoseconds that a point of a frame's spectrum takes.
_PER_POINT = 4

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def band_powers(
    samples: NDArray[np.float32],
    hop: int,
    window: Array,
    filters: Array,
    emphasis: float = 0.0,
    centred: bool = False,
) -> Array:
    """Compute the powers of frames in bands: squared magnitudes of their spectra, by filters.

    Frame f has the samples from f hop on, times the window, and zeros up to the number of points. The spectra have 64
    bits.

    Args:
        samples: ``(N,)``.
        hop: Samples from a frame to the next.
        window: ``(n,)``, at most N.
        filters: ``(points // 2 + 1, bands)``; the number of points is a power of 2, and n or more.
        emphasis: Share of the sample before that is subtracted from every sample; from a frame's first one its own.
        centred: Subtract a frame's mean from it first.

    Returns:
        ``(T, bands)``; T is the number of whole frames.

    Raises:
        ValueError: shapes that do not fit together, or points that are no power of 2.
    """
    size = 2 * (len(filters) - 1)
    frames = 1 + (len(samples) - len(window)) // hop
    if size < max(2, len(window)) or size & (size - 1) or frames < 1:
        raise ValueError(
            f"band_powers expects a window of at most {len(samples)} samples, and filters for as many points or more, "
            f"a power of 2; got a window of {len(window)} and filters for {size} points."
        )
    weights = np.ascontiguousarray(filters.T) / 4  # the loop gives powers times 4
    out = np.empty((frames, len(weights)))
    each_run(
        fill_powers, -(-frames // FRAMES), frames * size * _PER_POINT, np.ascontiguousarray(samples, np.float32),
        hop, window, emphasis, centred, *_tables(size), weights, _bounds(weights), out,
    )  # fmt: skip
    return out


@lru_cache(maxsize=8)
def _tables(size: int) -> tuple[Array, Indices]:
    """Make the turns of the transform, cosines and sines, and the place where each frequency ends."""
    angles = -2 * np.pi / size * np.arange(size)
    places = np.zeros(1, np.int64)
    while len(places) < size:
        places = np.append(2 * places, 2 * places + 1)
    return np.stack([np.cos(angles), np.sin(angles)]), places


def _bounds(weights: Array) -> Indices:
    """Find the first frequency and one past the last of every band ``(bands, 2)``; one frequency at least."""
    some = weights != 0
    low = some.argmax(1)
    high = weights.shape[1] - some[:, ::-1].argmax(1)
    return np.stack([low, np.where(some.any(1), high, 1)], 1)
