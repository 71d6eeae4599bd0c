"""Elements of sequences: the samples of a window of audio, its log-mel energies, or values that are no audio."""

from __future__ import annotations

from typing import Any, Literal

import torch
import torchaudio
from torch import Tensor, nn

# Below the mean energy of a window by this factor, a band's energy counts as none (-60 dB).
_FLOOR = 1e-6


class Elements(nn.Module):
    """Transform of windows of samples to elements of sequences.

    Args:
        kind: ``"raw"``, the samples themselves, as in the paper; ``"mel"``, log-mel energies in ``frames`` parts of the
            window, normalised by the mean and deviation of every band over the training audio; or ``"values"``, numbers
            that are no audio (images ...), as they are.
        samples: Samples of a window; for ``"values"`` the numbers of an element.
        sample_rate: Hz; 0 for ``"values"``.
        bands, frames: Of ``"mel"``.

    Attributes:
        size: Number of values in an element.
        options: Arguments that make such elements again.

    Raises:
        ValueError: another kind.
    """

    def __init__(
        self,
        kind: Literal["raw", "mel", "values"],
        *,
        samples: int,
        sample_rate: int = 0,
        bands: int = 40,
        frames: int = 10,
    ) -> None:
        super().__init__()
        if kind not in ("raw", "mel", "values"):
            raise ValueError(f"Expected elements 'raw', 'mel' or 'values'; got {kind!r}.")
        if samples < 1 or (kind != "values") != (sample_rate > 0):
            raise ValueError(
                f"Elements {kind!r} expect samples of at least 1 and a sample rate above 0, which 'values' have not; "
                f"got {samples} and {sample_rate}."
            )
        self.kind, self.samples, self.sample_rate, self.frames = kind, samples, sample_rate, frames
        self.size = bands * frames if kind == "mel" else samples
        self.options: dict[str, Any] = {
            "kind": kind, "samples": samples, "sample_rate": sample_rate, "bands": bands, "frames": frames,
        }  # fmt: skip
        self.mean: Tensor
        self.deviation: Tensor
        self.register_buffer("mean", torch.zeros(bands, 1))
        self.register_buffer("deviation", torch.ones(bands, 1))
        if kind == "mel":
            size = min(samples, 1 << round(0.064 * sample_rate - 1).bit_length())
            self.spectrum = torchaudio.transforms.MelSpectrogram(
                sample_rate, n_fft=size, hop_length=size // 2, n_mels=bands, f_min=40.0
            )

    def fit(self, windows: Tensor) -> None:
        """Measure the bands' mean and deviation on windows ``(N, samples)``; no effect for other kinds."""
        if self.kind == "mel":
            energies = self._energies(windows)
            self.mean.copy_(energies.mean((0, 2))[:, None])
            self.deviation.copy_(energies.std((0, 2))[:, None].clamp(min=1e-3))

    def forward(self, windows: Tensor) -> Tensor:
        """Transform ``(.., samples)`` to ``(.., size)``; windows of zeros stay zeros."""
        if self.kind != "mel":
            return windows
        flat = windows.reshape(-1, self.samples)
        values = (self._energies(flat) - self.mean) / self.deviation
        values = values.flatten(1) * (flat != 0).any(1, keepdim=True)
        return values.view(*windows.shape[:-1], self.size)

    def _energies(self, windows: Tensor) -> Tensor:
        """Transform ``(N, samples)`` to log energies ``(N, bands, frames)``, relative to the window's mean energy."""
        energies = nn.functional.adaptive_avg_pool1d(self.spectrum(windows), self.frames)
        level = energies.mean((1, 2), keepdim=True)
        return (energies / torch.where(level > 0, level, 1.0) + _FLOOR).log()
