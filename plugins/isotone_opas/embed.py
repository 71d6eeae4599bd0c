"""Sequences of windows to sequences of unit vectors (the paper's EMBED)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isotone.interfaces import Encoder
from isotone.registries import encoders
from isotone.registry import Registry
from isotone.types import length_mask, mask_rows

embeds: Registry[Embed] = Registry("embed", "isotone.opas.embeds")


class Embed(nn.Module, ABC):
    """Windows to unit vectors.

    Windows are first scaled to a root mean square of 1, so that loudness does not matter. A window that is silent (all
    zeros), or whose vector is zero, gets a zero row: its distance from every unit vector is 1, wherever the window is.

    Attributes:
        size: d, the size of the vectors.
    """

    size: int

    def forward(self, windows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Embed.

        Args:
            windows: ``(B, n, samples)`` windows of audio, or features of any kind.
            lengths: ``(B,)`` int64, windows; nothing beyond them is read. Default: all.

        Returns:
            ``(B, n, d)``: rows of norm 1, or 0 for silent windows and beyond the lengths.

        Raises:
            ValueError: not three dimensions, windows of another size than the model's, or values that are not finite.
        """
        if windows.ndim != 3:
            raise ValueError(f"Expected windows of shape (B, n, samples); got {tuple(windows.shape)}.")
        windows = mask_rows(windows, lengths)
        bad = (~torch.isfinite(windows)).flatten(1).any(1).nonzero()
        if len(bad):
            raise ValueError(
                f"Sequence {int(bad[0])} of the batch holds NaN or infinity; expected finite windows."
            )
        level = windows.square().mean(-1, keepdim=True).sqrt()
        audible = level > 0
        vectors = self.vectors(windows / torch.where(audible, level, 1.0), lengths)
        return mask_rows(nn.functional.normalize(vectors, dim=-1) * audible, lengths)

    @abstractmethod
    def vectors(self, windows: Tensor, lengths: Tensor | None) -> Tensor:
        """Return vectors ``(B, n, d)`` of any norm, of windows at a level of 1."""

    def save_parts(self, folder: Path) -> dict[str, Any]:
        """Write the parts that no configuration holds; return options to replace those the embed was built with."""
        return {}


@embeds.register("transformer")
class TransformerEmbed(Embed):
    """A transformer over the windows with fixed sinusoidal positions, and a linear layer (appendix H.2).

    With ``residual`` its output is added to an orthogonal projection of the windows, and starts at zero. Before
    training, inner products are then about those of the windows; a random transformer would not keep them.

    Args:
        input_size: Samples (or features) of a window.
        size: d.
        width: Width of the transformer; a linear layer brings windows to it. Default: ``input_size``, as in the paper.
        layers, heads, feed_forward: Of the transformer.
        dropout: In it, in training.
        residual: True to add a projection of the windows (not in the paper).
    """

    def __init__(
        self,
        *,
        input_size: int,
        size: int = 128,
        width: int | None = None,
        layers: int = 2,
        heads: int = 4,
        feed_forward: int = 512,
        dropout: float = 0.1,
        residual: bool = False,
    ) -> None:
        super().__init__()
        inner = width or input_size
        if inner % heads:
            raise ValueError(
                f"TransformerEmbed expects a width that its {heads} heads divide; got {inner}. Set width."
            )
        self.size, self.input_size = size, input_size
        self.project = nn.Identity() if width is None else nn.Linear(input_size, width)
        layer = nn.TransformerEncoderLayer(inner, heads, feed_forward, dropout, batch_first=True)
        self.transformer = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(inner, size)
        self.skip: nn.Linear | None = None
        if residual:
            self.skip = nn.Linear(input_size, size, bias=False)
            nn.init.orthogonal_(self.skip.weight)
            nn.init.zeros_(self.out.weight)
            nn.init.zeros_(self.out.bias)

    def vectors(self, windows: Tensor, lengths: Tensor | None) -> Tensor:
        """See :meth:`Embed.vectors`."""
        _check_input(windows, self.input_size)
        values = self.project(windows)
        values = values + _sinusoids(values.shape[1], values.shape[2]).to(values)
        padding = None if lengths is None else ~length_mask(lengths.clamp(min=1), windows.shape[1])
        values = self.out(self.transformer(values, src_key_padding_mask=padding))
        return values if self.skip is None else values + self.skip(windows)


@embeds.register("lrl")
class LRLEmbed(Embed):
    """Linear, ReLU, linear on each window separately (appendix L.11).

    Args:
        input_size: Samples (or features) of a window.
        size: d.
        hidden: Width between the two.
    """

    def __init__(self, *, input_size: int, size: int = 128, hidden: int = 512) -> None:
        super().__init__()
        self.size, self.input_size = size, input_size
        self.layers = nn.Sequential(nn.Linear(input_size, hidden), nn.ReLU(), nn.Linear(hidden, size))

    def vectors(self, windows: Tensor, lengths: Tensor | None) -> Tensor:
        """See :meth:`Embed.vectors`."""
        _check_input(windows, self.input_size)
        return self.layers(windows)


@embeds.register("conv1d")
class ConvolutionalEmbed(Embed):
    """Three convolutions over the samples of each window separately, then :class:`LRLEmbed`'s layers (appendix L.11).

    Each convolution (1 to 4, 8, 16 channels) is followed by batch normalisation, ReLU and a maximum; all is pooled to
    1024 numbers.

    Args:
        size: d.
        kernel: Samples of a kernel, odd.
        pool: Samples per maximum; windows shorter than its cube end at one sample per channel.
        hidden: Width between the linear layers.
    """

    def __init__(self, *, size: int = 128, kernel: int = 9, pool: int = 4, hidden: int = 512) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError(f"ConvolutionalEmbed expects an odd kernel; got {kernel}.")
        self.size, self.pool = size, pool
        self.convolutions = nn.ModuleList(
            nn.Sequential(nn.Conv1d(i, o, kernel, padding=kernel // 2), nn.BatchNorm1d(o), nn.ReLU())
            for i, o in ((1, 4), (4, 8), (8, 16))
        )
        self.layers = nn.Sequential(nn.Linear(1024, hidden), nn.ReLU(), nn.Linear(hidden, size))

    def vectors(self, windows: Tensor, lengths: Tensor | None) -> Tensor:
        """See :meth:`Embed.vectors`."""
        values = windows.flatten(0, 1)[:, None]
        if lengths is not None:
            # padding must not enter the batch statistics
            inside = length_mask(lengths, windows.shape[1]).flatten()
            values = values[inside]
        for convolution in self.convolutions:
            values = convolution(values)
            values = nn.functional.max_pool1d(values, min(self.pool, values.shape[2]))
        values = self.layers(nn.functional.adaptive_avg_pool1d(values, 64).flatten(1))
        if lengths is not None:
            values = values.new_zeros(len(inside), self.size).masked_scatter(inside[:, None], values)
        return values.view(*windows.shape[:2], self.size)


@embeds.register("encoder")
class EncoderEmbed(Embed):
    """The mean over the frames of any isotone encoder on each window separately, and a linear layer.

    Args:
        encoder: Its configuration (name and options) or an encoder.
        reads: ``"features"``, ``"last"`` or a layer number.
        size: d.
        frozen: True where the encoder is not trained.
    """

    def __init__(
        self,
        *,
        encoder: Mapping[str, Any] | str | Encoder,
        reads: str | int = "last",
        size: int = 128,
        frozen: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = encoder if isinstance(encoder, Encoder) else encoders.create(encoder)
        self.size, self.reads = size, reads
        self.out = nn.Linear(self.encoder.size(reads), size)
        self.encoder.requires_grad_(not frozen)

    def vectors(self, windows: Tensor, lengths: Tensor | None) -> Tensor:
        """See :meth:`Embed.vectors`."""
        flat = windows.flatten(0, 1)
        samples = torch.full((len(flat),), flat.shape[1], device=flat.device)
        frames = self.encoder(flat, samples, self.reads != "features").read(self.reads)
        total = mask_rows(frames.values, frames.lengths).sum(1)
        means = total / frames.lengths.clamp(min=1)[:, None]
        return self.out(means).view(*windows.shape[:2], self.size)

    def save_parts(self, folder: Path) -> dict[str, Any]:
        """See :meth:`Embed.save_parts`."""
        self.encoder.save(folder / "encoder")
        return {"encoder": {"name": "transformers", "source": "encoder", "pretrained": False}}


def _check_input(windows: Tensor, size: int) -> None:
    if windows.shape[2] != size:
        raise ValueError(f"This model embeds windows of {size} samples; got {windows.shape[2]}.")


def _sinusoids(size: int, width: int) -> Tensor:
    """Return the transformer's fixed positions ``(size, width)`` (Vaswani et al. 2017)."""
    position = torch.arange(size, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * (-math.log(10_000.0) / width))
    out = torch.zeros(size, width)
    out[:, 0::2] = torch.sin(position * rate)
    out[:, 1::2] = torch.cos(position * rate)[:, : width // 2]
    return out
