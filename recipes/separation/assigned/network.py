"""A masking network over spectrograms, its costs, and the measure of a separation."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_WINDOW, _HOP = 256, 128
_BINS = _WINDOW // 2 + 1
# Power of the magnitudes that are compared: soft sounds count too.
_POWER = 0.5
_TINY = 1e-7


def spectrum(samples: Tensor) -> Tensor:
    """Transform ``(..., N)`` to complex spectra ``(..., F, T)``."""
    flat = samples.reshape(-1, samples.shape[-1])
    window = torch.hann_window(_WINDOW, device=samples.device)
    found = torch.stft(flat, _WINDOW, _HOP, window=window, return_complex=True)
    return found.reshape(*samples.shape[:-1], *found.shape[-2:])


def waveform(spectra: Tensor, size: int) -> Tensor:
    """Transform complex spectra ``(..., F, T)`` back to ``(..., N)`` samples."""
    flat = spectra.reshape(-1, *spectra.shape[-2:])
    window = torch.hann_window(_WINDOW, device=spectra.device)
    return torch.istft(flat, _WINDOW, _HOP, window=window, length=size).reshape(*spectra.shape[:-2], size)


class Separator(nn.Module):
    """Dilated convolutions over log-magnitudes that give a mask per output.

    Args:
        voices: K outputs.
        channels: Of each layer.
        layers: With dilations 1, 2, 4, 8, 1 ...
    """

    def __init__(self, voices: int, *, channels: int = 64, layers: int = 8) -> None:
        super().__init__()
        self.voices = voices
        self.first = nn.Conv1d(_BINS, channels, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(channels, channels, 3, padding=2 ** (i % 4), dilation=2 ** (i % 4))
            for i in range(layers)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(1, channels) for _ in range(layers))
        self.last = nn.Conv1d(channels, voices * _BINS, 1)

    def forward(self, spectra: Tensor) -> Tensor:
        """Mask complex spectra ``(B, F, T)``; return masks ``(B, K, F, T)`` that sum to 1 over the outputs."""
        level = torch.log(spectra.abs() + 1e-4)
        x = self.first((level - level.mean((1, 2), keepdim=True)) / 2)
        for layer, norm in zip(self.layers, self.norms):
            x = x + F.gelu(norm(layer(x)))
        return self.last(x).unflatten(1, (self.voices, _BINS)).softmax(1)


def costs(masks: Tensor, spectra: Tensor, sources: Tensor) -> Tensor:
    """Compute every output's squared error as every source, relative to the mixture's energy.

    Args:
        masks: ``(B, K, F, T)``.
        spectra: ``(B, F, T)`` of the mixtures.
        sources: ``(B, K, F, T)`` complex.

    Returns:
        ``(B, K, K)``, outputs by sources.
    """
    found = (masks * spectra.abs()[:, None] + _TINY) ** _POWER  # the root has no derivative at 0
    true = sources.abs() ** _POWER
    scale = (spectra.abs() ** (2 * _POWER)).mean((1, 2))[:, None, None]
    return (found[:, :, None] - true[:, None]).square().mean((3, 4)) / scale


def si_sdr(found: Tensor, true: Tensor) -> Tensor:
    """Compute the scale-invariant signal-to-distortion ratio in dB of signals ``(..., N)`` (Le Roux et al. 2019)."""
    found, true = (x - x.mean(-1, keepdim=True) for x in (found, true))
    part = (found * true).sum(-1, keepdim=True) / true.square().sum(-1, keepdim=True).clamp(min=1e-12) * true
    rest = (found - part).square().sum(-1).clamp(min=1e-12)
    return 10 * torch.log10(part.square().sum(-1).clamp(min=1e-12) / rest)
