"""An encoder of small grey images, for experiments of the papers that have images."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isotone.training.augment import Samples
from isotone_contrastive.embedder import Body


class ImageConv(Body):
    """Three convolutions over an image; their last positions are the frames, row by row.

    Args:
        width: Channels of the last convolution; the ones before have a half and a quarter.
        side: Pixels of an image's side, a multiple of 4.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(self, *, width: int = 64, side: int = 8) -> None:
        super().__init__()
        if width < 4 or side < 4 or side % 4:
            raise ValueError(
                f"ImageConv expects width >= 4 and a side that is a multiple of 4; got {width}, {side}."
            )
        self.size, self.sample_rate, self.side = width, None, side
        widths = (1, width // 4, width // 2, width)
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.GroupNorm(1, b) for b in widths[1:])

    def inputs(self, recordings: Sequence[Samples]) -> list[Tensor]:
        """See :class:`Body`: images ``(side * side,)``, row by row, or ``(side, side)``.

        Raises:
            ValueError: images of another size.
        """
        for number, image in enumerate(recordings):
            if image.size != self.side**2:
                raise ValueError(
                    f"Image {number}: expected {self.side} x {self.side} pixels; got {image.shape}."
                )
        return [torch.from_numpy(image.reshape(self.side, self.side)) for image in recordings]

    def forward(self, values: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """See :class:`Body`; all images have one size, so that there is no padding."""
        values = values[:, None]
        for number, (convolution, norm) in enumerate(zip(self.convolutions, self.norms)):
            values = F.gelu(norm(convolution(values)))
            if number:
                values = F.avg_pool2d(values, 2)
        frames = values.flatten(2).mT
        return frames, torch.full_like(lengths, frames.shape[1])
