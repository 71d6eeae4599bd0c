"""Mel filters, and the spectra that they are used on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.kernels.spectra import band_powers


def mel_filters(bands: int, sample_rate: int, fft: int, lowest_hz: float = 20.0) -> NDArray[np.float64]:
    """Compute Kaldi's mel filters ``(fft // 2 + 1, bands)``: triangles on its mel scale, up to half the sample rate."""

    def mel(hertz: ArrayLike) -> NDArray[np.float64]:
        return 1127.0 * np.log(1.0 + np.asarray(hertz, np.float64) / 700.0)

    edges = np.linspace(float(mel(lowest_hz)), float(mel(sample_rate // 2)), bands + 2)
    bins = mel(sample_rate / fft * np.arange(fft // 2 + 1))
    slopes, widths = edges - bins[:, None], np.diff(edges)
    return np.maximum(0.0, np.minimum(-slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:]))


def mel_powers(
    samples: NDArray[np.float32], hop: int, window: NDArray[np.float64], filters: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute the powers ``(T, bands)`` of all whole frames of samples, one per hop.

    Args:
        samples: ``(N,)``, not fewer than a frame's.
        hop: Samples from a frame to the next.
        window: ``(n,)``.
        filters: ``(n // 2 + 1, bands)``.
    """
    if len(window) & (len(window) - 1) == 0:
        return band_powers(samples, hop, window, filters)
    frames = np.lib.stride_tricks.sliding_window_view(samples, len(window))[::hop]
    return np.asarray(np.square(np.abs(np.fft.rfft(frames * window))) @ filters)
