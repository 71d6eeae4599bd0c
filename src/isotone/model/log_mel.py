"""Log-mel energies with 64 bits, without torch: the front end of models that onnxruntime runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from isotone.audio.mel import mel_filters
from isotone.kernels.spectra import band_powers

#: Samples of a window and between two of them, and points of the spectrum.
WINDOW, HOP, FFT = 400, 160, 512

#: Least energy, Kaldi's.
FLOOR = 1.192092955078125e-07

# Kaldi's pre-emphasis, and its scale of 16-bit samples.
_EMPHASIS, _SCALE = 0.97, 2.0**15

# Frames of which energies are computed at once, a minute's.
_BLOCK = 6000


class LogMelEnergies:
    """Kaldi's log-mel filter bank, as :class:`isotone.model.frontend.LogMel` has it.

    Args:
        sample_rate: Hz.
        bands: Mel bands.
    """

    def __init__(self, sample_rate: int, bands: int) -> None:
        # the numbers that torch keeps have 32 bits
        filters = mel_filters(bands, sample_rate, FFT).astype(np.float32).astype(np.float64)
        self._filters = filters * _SCALE**2
        self._window = (np.hanning(WINDOW) ** 0.85).astype(np.float32).astype(np.float64)  # Povey's

    def __call__(self, audio: NDArray[np.float32]) -> NDArray[np.float64]:
        """Compute energies ``(T, bands)`` of samples ``(N,)``, one frame per hop; none of less than a window."""
        parts = list(self.blocks(audio)) or [np.empty((0, self._filters.shape[1]))]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def blocks(self, audio: NDArray[np.float32]) -> Iterator[NDArray[np.float64]]:
        """Iterate over the energies of samples ``(N,)``, some frames after the other."""
        count = max(0, 1 + (len(audio) - WINDOW) // HOP)
        for start in range(0, count, _BLOCK):
            end = min(start + _BLOCK, count)
            part = audio[start * HOP : (end - 1) * HOP + WINDOW]
            powers = band_powers(part, HOP, self._window, self._filters, _EMPHASIS, centred=True)
            yield np.log(np.maximum(powers, FLOOR, out=powers), out=powers)
