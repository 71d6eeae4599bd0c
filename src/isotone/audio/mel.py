"""Mel filters, and the spectra that they are used on."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Frames whose spectra are computed at once: they stay in the processor's cache.
_BLOCK = 128


def mel_filters(bands: int, sample_rate: int, fft: int, lowest_hz: float = 20.0) -> NDArray[np.float64]:
    """Compute Kaldi's mel filters ``(fft // 2 + 1, bands)``: triangles on its mel scale, up to half the sample rate."""

    def mel(hertz: ArrayLike) -> NDArray[np.float64]:
        return 1127.0 * np.log(1.0 + np.asarray(hertz, np.float64) / 700.0)

    edges = np.linspace(float(mel(lowest_hz)), float(mel(sample_rate // 2)), bands + 2)
    bins = mel(sample_rate / fft * np.arange(fft // 2 + 1))
    slopes, widths = edges - bins[:, None], np.diff(edges)
    return np.maximum(0.0, np.minimum(-slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:]))


def mel_powers(
    views: NDArray[np.float32], window: NDArray[np.float32], filters: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Compute the powers ``(n, bands)`` of frames ``(n, N)`` by a window ``(N,)`` and filters ``(N // 2 + 1, bands)``.

    Torch computes the spectra where it is imported already: it takes a third of numpy's time.
    """
    torch = sys.modules.get("torch")
    both = np.repeat(filters, 2, 0)  # for real and imaginary parts in turn
    out = np.empty((len(views), filters.shape[1]), np.float32)
    for start in range(0, len(views), _BLOCK):
        frames = views[start : start + _BLOCK] * window
        spectra = torch.fft.rfft(torch.from_numpy(frames)).numpy() if torch else np.fft.rfft(frames)
        parts = spectra.view(spectra.real.dtype)
        out[start : start + _BLOCK] = np.square(parts, out=parts) @ both
    return out
