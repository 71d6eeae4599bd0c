"""Front ends: audio samples to what the first layer of an encoder reads, batched, on the device of the model."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isotone.types import Grid, length_mask


class Waveform(nn.Module):
    """Samples, normalised to zero mean and unit variance an utterance where the encoder was trained so.

    Args:
        sample_rate: Hz.
        normalize: Whether to normalise.
    """

    def __init__(self, sample_rate: int, normalize: bool) -> None:
        super().__init__()
        self.sample_rate = sample_rate
        self.normalize = normalize

    def forward(self, audio: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """``(B, N)`` samples to ``(B, N)`` samples, padded with zeros, and their lengths."""
        mask = length_mask(lengths, audio.shape[1])
        audio = audio.masked_fill(~mask, 0.0)
        if self.normalize:
            count = lengths[:, None].clamp(min=1)
            mean = audio.sum(1, keepdim=True) / count
            variance = ((audio - mean).square() * mask).sum(1, keepdim=True) / count
            audio = ((audio - mean) * torch.rsqrt(variance + 1e-7)).masked_fill(~mask, 0.0)
        return audio, lengths


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
        from transformers.audio_utils import mel_filter_bank, window_function

        self.sample_rate = sample_rate
        self.stack = stack
        self.window_size, self.hop, self.fft = 400, 160, 512
        filters = mel_filter_bank(
            num_frequency_bins=self.fft // 2 + 1, num_mel_filters=bands, min_frequency=20,
            max_frequency=sample_rate // 2, sampling_rate=sample_rate, norm=None, mel_scale="kaldi",
            triangularize_in_mel_space=True,
        )  # fmt: skip
        window = window_function(self.window_size, "povey", periodic=False)
        self.register_buffer("filters", torch.from_numpy(np.asarray(filters)).float(), persistent=False)
        self.register_buffer("window", torch.from_numpy(np.asarray(window)).float(), persistent=False)

    @property
    def grid(self) -> Grid:
        """A stacked frame covers the middle of its windows, one hop long."""
        hop = self.hop * self.stack
        centre = (self.window_size + hop - self.hop) / 2
        return Grid(hop / self.sample_rate, (centre - hop / 2) / self.sample_rate)

    def frames(self, samples: Tensor) -> Tensor:
        """Number of stacked frames in so many samples."""
        return (1 + (samples - self.window_size).div(self.hop, rounding_mode="floor")).clamp(
            min=0
        ) // self.stack

    def forward(self, audio: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """``(B, N)`` samples to ``(B, T, stack * bands)`` features and their lengths."""
        with torch.autocast(audio.device.type, enabled=False):  # half precision loses quiet bands
            return self._features(audio.float(), lengths)

    def _features(self, audio: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        filters, window = self.get_buffer("filters"), self.get_buffer("window")
        audio = audio.masked_fill(~length_mask(lengths, audio.shape[1]), 0.0) * 2**15
        audio = F.pad(audio, (0, max(0, self.window_size + (self.stack - 1) * self.hop - audio.shape[1])))
        frames = audio.unfold(1, self.window_size, self.hop)
        frames = frames - frames.mean(-1, keepdim=True)
        first = frames[..., :1] * (1 - 0.97)
        frames = torch.cat([first, frames[..., 1:] - 0.97 * frames[..., :-1]], -1) * window
        power = torch.fft.rfft(frames, self.fft).abs().square()
        mel = (power @ filters).clamp(min=1.192092955078125e-07).log()
        # statistics over the valid 10 ms frames, an odd last one included, as the reference has them
        valid = (1 + (lengths - self.window_size).div(self.hop, rounding_mode="floor")).clamp(min=0)
        mask = length_mask(valid, mel.shape[1])[..., None]
        count = valid[:, None, None]
        mean = (mel * mask).sum(1, keepdim=True) / count.clamp(min=1)
        variance = ((mel - mean).square() * mask).sum(1, keepdim=True) / (count - 1).clamp(min=1)
        mel = ((mel - mean) * torch.rsqrt(variance + 1e-7)).masked_fill(~mask, 0.0)
        size = mel.shape[1] // self.stack * self.stack
        stacked = mel[:, :size].reshape(len(mel), size // self.stack, -1)
        out = self.frames(lengths)
        return stacked.masked_fill(~length_mask(out, stacked.shape[1])[..., None], 0.0), out
