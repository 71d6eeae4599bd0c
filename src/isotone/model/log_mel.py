"""Log-mel energies by numpy, with 64 bits: the front end of models that onnxruntime runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from isotone.audio.mel import mel_filters

#: Samples of a window and between two of them, and points of the spectrum.
WINDOW, HOP, FFT = 400, 160, 512

#: Least energy, Kaldi's.
FLOOR = 1.192092955078125e-07

# Frames of which energies are computed at once: what they need stays in the processor's cache.
_BLOCK = 64


class LogMelEnergies:
    """Kaldi's log-mel filter bank, as :class:`isotone.model.frontend.LogMel` has it.

    Args:
        sample_rate: Hz.
        bands: Mel bands.
    """

    def __init__(self, sample_rate: int, bands: int) -> None:
        # the numbers that torch keeps have 32 bits
        filters = mel_filters(bands, sample_rate, FFT).astype(np.float32)
        self._filters = np.repeat(filters.astype(np.float64), 2, 0)  # for real and imaginary parts in turn
        self._window = (np.hanning(WINDOW) ** 0.85).astype(np.float32).astype(np.float64)  # Povey's

    def __call__(self, audio: NDArray[np.float32]) -> NDArray[np.float64]:
        """Compute energies ``(T, bands)`` of samples ``(N,)``, one frame per hop; none of less than a window."""
        parts = list(self.blocks(audio))
        return np.concatenate(parts) if parts else np.empty((0, self._filters.shape[1]))

    def blocks(self, audio: NDArray[np.float32]) -> Iterator[NDArray[np.float64]]:
        """Iterate over the energies of samples ``(N,)``, some frames after the other."""
        count = max(0, 1 + (len(audio) - WINDOW) // HOP)
        for start in range(0, count, _BLOCK):
            end = min(start + _BLOCK, count)
            yield self._energies(audio[start * HOP : (end - 1) * HOP + WINDOW].astype(np.float64) * 2**15)

    def _energies(self, samples: NDArray[np.float64]) -> NDArray[np.float64]:
        windows = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP]
        emphasised = np.lib.stride_tricks.sliding_window_view(samples[1:] - 0.97 * samples[:-1], WINDOW - 1)[
            ::HOP
        ]
        # a frame less its mean, with pre-emphasis
        rest = (1 - 0.97) * windows.mean(-1, keepdims=True)
        frames = np.zeros((len(windows), FFT))
        np.subtract(emphasised, rest, out=frames[:, 1:WINDOW])
        frames[:, 0] = (1 - 0.97) * windows[:, 0] - rest[:, 0]
        frames[:, :WINDOW] *= self._window
        parts = np.fft.rfft(frames).view(np.float64)
        return np.log(np.maximum(np.square(parts, out=parts) @ self._filters, FLOOR))
