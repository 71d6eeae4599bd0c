"""SpecAugment of input features: masks over time and over bands, drawn for each utterance of a batch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from isotone.registry import nearest


class SpecAugment(nn.Module):
    """Random masks over spans of time and of bands, in training only.

    Masked bands are 0, the mean of normalised features. Masked frames are one fixed vector of unit variance, as
    wav2vec2's are one learned vector. In a frame of zeros, layer normalisation would only amplify noise: a new
    ``wav2vec2-bert-tiny`` does not leave its first plateau then.

    The masks are lhotse's (and icefall's) SpecAugment without warping. Time masks cover at most a share of an
    utterance: there are ``min(time_masks, ceil(share * T / width))`` of them. The length of each is drawn from 0 to an
    equal part of that share, and at most the width. All choices come from torch's generator of the features' device.
    The masks of an utterance do not depend on its padding.

    Args:
        hop_s: Seconds from one frame to the next.
        bands: Number of bands of a frame; in stacked frames the same bands of each are masked.
        time_masks: Most masks over time.
        time_width_s: Longest mask over time, seconds.
        time_share: Largest share of an utterance under masks over time, 0 to 1. CR-CTC has 2.5 times the usual masks:
            ``time_masks=25, time_share=0.375``.
        frequency_masks: Number of masks over bands.
        frequency_width: Most bands of such a mask; all of them if there are fewer.

    Raises:
        ValueError: an option outside its range.

    References: Park et al., Interspeech 2019, arXiv:1904.08779; Yao et al. 2024, arXiv:2410.05101.
    """

    def __init__(
        self,
        hop_s: float,
        bands: int,
        *,
        time_masks: int = 10,
        time_width_s: float = 1.0,
        time_share: float = 0.15,
        frequency_masks: int = 2,
        frequency_width: int = 27,
    ) -> None:
        super().__init__()
        if time_masks < 0 or not time_width_s >= hop_s or not 0 <= time_share <= 1:
            raise ValueError(
                f"SpecAugment expects time_masks >= 0, time_width_s of at least a frame ({hop_s:g} s) and time_share "
                f"from 0 to 1; got {time_masks}, {time_width_s} and {time_share}."
            )
        if frequency_masks < 0 or frequency_width < 0:
            raise ValueError(
                f"SpecAugment expects frequency_masks >= 0 and frequency_width >= 0; got {frequency_masks} and "
                f"{frequency_width}."
            )
        self.bands = bands
        mark = torch.randn(bands, generator=torch.Generator().manual_seed(0))
        self.register_buffer("mark", mark, persistent=False)
        self.time_masks = time_masks
        self.time_width = round(time_width_s / hop_s)
        self.time_share = time_share
        self.frequency_masks = frequency_masks
        self.frequency_width = min(frequency_width, bands)

    def forward(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Mask features ``(B, T, stack * bands)`` of ``lengths (B,)`` frames; do nothing outside of training."""
        if not self.training:
            return values
        most = self.time_share * lengths
        count = (most / self.time_width).ceil().clamp(max=self.time_masks)
        width = (most / count.clamp(min=1)).floor().clamp(max=self.time_width)
        times = draw_spans(lengths, width, count, self.time_masks, values.shape[1])
        every = torch.ones_like(lengths)
        bands = draw_spans(
            every * self.bands, every * self.frequency_width, every * self.frequency_masks, self.frequency_masks,
            self.bands,
        )  # fmt: skip
        stack = values.shape[2] // self.bands
        mark = self.get_buffer("mark").to(values.dtype).repeat(stack)
        return torch.where(times[:, :, None], mark, values.masked_fill(bands.repeat(1, stack)[:, None], 0.0))


def draw_spans(lengths: Tensor, width: Tensor, count: Tensor, most: int, size: int) -> Tensor:
    """Draw random spans; return the positions that they cover.

    Args:
        lengths: ``(B,)`` number of positions of each row; spans lie within them.
        width: ``(B,)`` largest width of a span; widths from 0 to this are equally likely.
        count: ``(B,)`` number of spans of each row.
        most: Most spans of any row. This number is drawn for every row, so that rows do not depend on each other.
        size: Positions of the longest row.

    Returns:
        ``(B, size)`` bool, True inside a span.
    """
    widths, starts = torch.rand(2, len(lengths), most, device=lengths.device)
    widths = (widths * (width[:, None] + 1)).long()
    widths = widths.where(torch.arange(most, device=lengths.device) < count[:, None], 0)
    starts = (starts * (lengths[:, None] - widths + 1)).long()
    position = torch.arange(size, device=lengths.device)
    return ((position >= starts[..., None]) & (position < (starts + widths)[..., None])).any(1)


def build_spec_augment(options: Mapping[str, Any], hop_s: float, bands: int) -> SpecAugment:
    """Build :class:`SpecAugment` from its keyword options in a configuration.

    Raises:
        ValueError: an unknown option, or one outside its range.
    """
    known = [p.name for p in inspect.signature(SpecAugment).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise ValueError(f"spec_augment has no option {name!r}.{nearest(name, known)}")
    return SpecAugment(hop_s, bands, **options)
