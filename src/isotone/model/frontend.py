"""Front ends: audio samples to the input of an encoder's first layer, batched, on the device of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isotone.audio.mel import mel_filters
from isotone.interfaces import Statistics
from isotone.types import Grid, length_mask, mask_rows, widened

# Samples per block in measuring a whole recording: limits the memory.
_BLOCK = 1 << 20


class Waveform(nn.Module):
    """Samples, optionally normalised to zero mean and unit variance per utterance.

    Args:
        sample_rate: Hz.
        normalize: Normalise, as in the training of the encoder.
    """

    def __init__(self, sample_rate: int, normalize: bool) -> None:
        super().__init__()
        self.sample_rate = sample_rate
        self.normalize = normalize

    def forward(
        self, audio: Tensor, lengths: Tensor, statistics: Statistics | None = None
    ) -> tuple[Tensor, Tensor]:
        """Normalise samples ``(B, N)`` and set the padding to zero; return them with their lengths."""
        mask = length_mask(lengths, audio.shape[1])
        audio = audio.masked_fill(~mask, 0.0)
        if self.normalize:
            count = lengths[:, None].clamp(min=1)
            mean = audio.sum(1, keepdim=True) / count
            variance = ((audio - mean).square() * mask).sum(1, keepdim=True) / count
            mean, variance = _given_or_own(statistics, (mean, variance))
            audio = ((audio - mean) * torch.rsqrt(variance + 1e-7)).masked_fill(~mask, 0.0)
        return audio, lengths

    def statistics(self, audio: Tensor) -> Statistics | None:
        """Compute mean and variance of the samples ``(N,)`` of a whole recording; None without normalisation."""
        return _moments(audio.split(_BLOCK), unbiased=False) if self.normalize else None


class LogMel(nn.Module):
    """Kaldi's log-mel filter bank, normalised to zero mean and unit variance per band and utterance, then stacked.

    The numbers are those of transformers' ``SeamlessM4TFeatureExtractor`` (25 ms windows every 10 ms, pre-emphasis,
    Povey window), computed for a padded batch at once; padding is never read.

    Args:
        sample_rate: Hz.
        bands: Mel bands.
        stack: Consecutive 10 ms frames joined into one.
    """

    def __init__(self, sample_rate: int = 16_000, bands: int = 80, stack: int = 2) -> None:
        super().__init__()
        self.sample_rate = sample_rate
        self.stack = stack
        self.window_size, self.hop, self.fft = 400, 160, 512
        filters = mel_filters(bands, sample_rate, self.fft)
        window = np.hanning(self.window_size) ** 0.85  # Povey's
        self.register_buffer("filters", torch.from_numpy(filters).float(), persistent=False)
        self.register_buffer("window", torch.from_numpy(window).float(), persistent=False)

    @property
    def grid(self) -> Grid:
        """Grid of the frames: a stacked frame covers one hop in the middle of its windows."""
        hop = self.hop * self.stack
        centre = (self.window_size + hop - self.hop) / 2
        return Grid(hop / self.sample_rate, (centre - hop / 2) / self.sample_rate)

    def frames(self, samples: Tensor) -> Tensor:
        """Return the number of stacked frames for numbers of samples."""
        return (1 + (samples - self.window_size).div(self.hop, rounding_mode="floor")).clamp(
            min=0
        ) // self.stack

    def forward(
        self, audio: Tensor, lengths: Tensor, statistics: Statistics | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute features ``(B, T, stack * bands)`` and their lengths from samples ``(B, N)``."""
        with torch.autocast(audio.device.type, enabled=False):  # half precision loses quiet bands
            return self._features(widened(audio), lengths, statistics)

    def statistics(self, audio: Tensor) -> Statistics | None:
        """Compute mean and variance ``(bands,)`` of a recording's ``(N,)`` log-mel frames; None without a frame."""
        with torch.autocast(audio.device.type, enabled=False):
            return _moments(self._blocks(audio), unbiased=True) if len(audio) >= self.window_size else None

    def energies(self, audio: Tensor) -> Tensor:
        """Compute plain log-mel energies ``(T, bands)`` of a recording ``(N,)`` of any length, one frame per 10 ms."""
        blocks = list(self._blocks(audio))
        return torch.cat(blocks) if blocks else audio.new_zeros(0, self.get_buffer("filters").shape[1])

    def _blocks(self, audio: Tensor) -> Iterator[Tensor]:
        """Iterate over the log-mel frames of a recording in blocks ``(T', bands)``."""
        step = _BLOCK // self.hop * self.hop
        for start in range(0, len(audio) - self.window_size + 1, step):
            # windows overlap: a block has samples beyond the start of the next one
            part = audio[start : start + step - self.hop + self.window_size]
            yield self.log_mel(part[None].float())[0]

    def log_mel(self, audio: Tensor) -> Tensor:
        """Compute log-mel energies ``(B, T, bands)`` of samples ``(B, N)``, one frame per 10 ms."""
        filters, window = self.get_buffer("filters"), self.get_buffer("window")
        # Kaldi's scale of 16-bit samples; then mean removal, pre-emphasis and the window
        frames = (audio.to(window) * 2**15).unfold(1, self.window_size, self.hop)
        frames = frames - frames.mean(-1, keepdim=True)
        first = frames[..., :1] * (1 - 0.97)
        frames = torch.cat([first, frames[..., 1:] - 0.97 * frames[..., :-1]], -1) * window
        spectrum = torch.fft.rfft(frames, self.fft)
        power = spectrum.real.square() + spectrum.imag.square()
        return (power @ filters).clamp(min=1.192092955078125e-07).log()

    def _features(
        self, audio: Tensor, lengths: Tensor, statistics: Statistics | None
    ) -> tuple[Tensor, Tensor]:
        audio = mask_rows(audio, lengths)
        audio = F.pad(audio, (0, max(0, self.window_size + (self.stack - 1) * self.hop - audio.shape[1])))
        stacked, out = self.stacked(self.log_mel(audio), lengths, statistics)
        return stacked.to(audio), out

    def stacked(self, mel: Tensor, lengths: Tensor, statistics: Statistics | None) -> tuple[Tensor, Tensor]:
        """Normalise and stack energies ``(B, T, bands)``; ``lengths (B,)`` are samples. Return features and frames."""
        # statistics over all valid 10 ms frames, with those too few for a stack at the end, as in transformers
        valid = (1 + (lengths - self.window_size).div(self.hop, rounding_mode="floor")).clamp(min=0)
        mask = length_mask(valid, mel.shape[1])[..., None]
        count = valid[:, None, None]
        mean = (mel * mask).sum(1, keepdim=True) / count.clamp(min=1)
        variance = ((mel - mean).square() * mask).sum(1, keepdim=True) / (count - 1).clamp(min=1)
        mean, variance = _given_or_own(statistics, (mean, variance))
        mel = ((mel - mean) * torch.rsqrt(variance + 1e-7)).masked_fill(~mask, 0.0)
        size = mel.shape[1] // self.stack * self.stack
        stacked = mel[:, :size].reshape(mel.shape[0], size // self.stack, -1)
        out = self.frames(lengths)
        return mask_rows(stacked, out), out


def _given_or_own(given: Statistics | None, own: Statistics) -> Statistics:
    """Return given statistics, or those of the audio itself where none, or NaN, are given."""
    # an exported graph has one form for both, so that its inputs decide by their values
    if given is None:
        return own
    mean, variance = (torch.where(torch.isnan(x), y, x.to(y)) for x, y in zip(given, own))
    return mean, variance


def _moments(blocks: Iterable[Tensor], *, unbiased: bool) -> Statistics:
    """Compute mean and variance over the first axis of blocks, in float64 (Chan, Golub & LeVeque 1983)."""
    count = 0
    mean = square = torch.zeros((), dtype=torch.float64)
    for block in blocks:
        values = block.double()
        own = values.mean(0)
        mean, square = mean.to(own), square.to(own)
        total = count + len(values)
        square = (
            square + (values - own).square().sum(0) + (own - mean).square() * (count * len(values) / total)
        )
        mean = mean + (own - mean) * (len(values) / total)
        count = total
    return mean, square / max(1, count - unbiased)
