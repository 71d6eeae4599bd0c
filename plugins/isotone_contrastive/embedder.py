"""Embedding of recordings: an encoder of frames, pooling over time, and the projection that losses compare."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isotone.interfaces import Encoder
from isotone.model.frontend import LogMel
from isotone.registries import encoders
from isotone.training.augment import Samples
from isotone.types import Frames, length_mask
from isotone_contrastive.head import projection

# Recordings whose inputs are computed at once.
_BLOCK = 64


def pad(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Pad sequences ``(T, ...)`` to a batch ``(B, T, ...)`` with zeros; also return their lengths ``(B,)`` int64."""
    return nn.utils.rnn.pad_sequence(list(rows), batch_first=True), torch.tensor([len(row) for row in rows])


class Body(nn.Module, ABC):
    """Encoder of recordings in two parts: inputs without parameters, computed once, and a trained network over them.

    Attributes:
        size: Features D of a frame.
        sample_rate: Hz; None where the recordings are no audio.
    """

    size: int
    sample_rate: int | None

    @abstractmethod
    def inputs(self, recordings: Sequence[Samples]) -> list[Tensor]:
        """Compute the input of :meth:`forward` for each recording: ``(T, F)`` float32."""

    @abstractmethod
    def forward(self, values: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Encode padded inputs ``(B, T, F)`` with lengths to frames ``(B, T', D)`` with lengths."""


class LogMelConv(Body):
    """A small convolutional net over log-mel frames of 20 ms; it trains on one CPU core in seconds.

    Args:
        width: Channels.
        layers: Convolutions of kernel 3, each of which halves the frames.
        bands: Mel bands.
        sample_rate: Hz.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self, *, width: int = 64, layers: int = 3, bands: int = 40, sample_rate: int = 16_000
    ) -> None:
        super().__init__()
        if min(width, layers, bands) < 1:
            raise ValueError(
                f"LogMelConv expects width, layers, bands >= 1; got {width}, {layers} and {bands}."
            )
        self.size = width
        self.sample_rate = sample_rate
        self.front_end = LogMel(sample_rate, bands)
        sizes = [bands * self.front_end.stack, *[width] * layers]
        self.convolutions = nn.ModuleList(nn.Conv1d(a, b, 3, stride=2, padding=1) for a, b in pairwise(sizes))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    @torch.no_grad()
    def inputs(self, recordings: Sequence[Samples]) -> list[Tensor]:
        """See :class:`Body`: log-mel frames, normalised per recording; at least one."""
        rows: list[Tensor] = []
        for block in _blocks(recordings):
            values, lengths = self.front_end(*pad([torch.from_numpy(samples) for samples in block]))
            rows += [row[: max(1, int(n))].clone() for row, n in zip(values, lengths)]
        return rows

    def forward(self, values: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """See :class:`Body`; padding is never read."""
        for convolution, norm in zip(self.convolutions, self.norms):
            values = convolution(values.mT).mT
            lengths = (lengths - 1) // 2 + 1
            values = F.gelu(norm(values)) * length_mask(lengths, values.shape[1])[..., None]
        return values, lengths


class WaveBody(Body):
    """An encoder of isotone that reads samples.

    Args:
        encoder: Any.
        reads: The layer that is pooled: ``"last"``, a layer, or ``"features"``.
    """

    def __init__(self, encoder: Encoder, reads: str | int = "last") -> None:
        super().__init__()
        self.encoder = encoder
        self.reads = reads
        self.size = encoder.size(reads)
        self.sample_rate = encoder.sample_rate

    def inputs(self, recordings: Sequence[Samples]) -> list[Tensor]:
        """See :class:`Body`: the samples."""
        return [torch.from_numpy(samples)[:, None] for samples in recordings]

    def forward(self, values: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """See :class:`Body`."""
        frames: Frames = self.encoder(values[..., 0], lengths).read(self.reads)
        return frames.values, frames.lengths


class Embedder(nn.Module):
    """Network that maps recordings to unit vectors.

    Args:
        body: Encoder of frames.
        size: Dimensions of the projection that losses see.
        parts: Equal parts of time that are averaged separately, so that the order of sounds counts.
        hidden: Width of the projection's hidden layer; 0 makes it linear.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(self, body: Body, *, size: int = 64, hidden: int = 0, parts: int = 3) -> None:
        super().__init__()
        if size < 1 or hidden < 0 or parts < 1:
            raise ValueError(
                f"Embedder expects size, parts >= 1 and hidden >= 0; got {size}, {parts} and {hidden}."
            )
        self.body = body
        self.parts = parts
        self.projection = projection((parts + 1) * body.size, size, hidden)

    def features(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Pool frames: maximum, and mean of each part, ``(B, (1 + parts) D)``; 0 where there is no frame."""
        frames, count = self.body(values, lengths)
        index = torch.arange(frames.shape[1], device=frames.device)
        inside = index < count[:, None]
        most = frames.masked_fill(~inside[..., None], -torch.inf).amax(1)
        part = index * self.parts // count.clamp(min=1)[:, None]
        shares = (F.one_hot(part.clamp(max=self.parts - 1), self.parts) * inside[..., None]).to(frames.dtype)
        means = shares.mT @ frames / shares.sum(1).clamp(min=1)[..., None]
        return torch.cat([most.masked_fill(count[:, None] == 0, 0.0), means.flatten(1)], 1)

    def forward(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Embed padded inputs of the body ``(B, T, F)`` with lengths ``(B,)`` as unit vectors ``(B, size)``."""
        return F.normalize(self.projection(self.features(values, lengths)), dim=1)

    @torch.no_grad()
    def embed(self, inputs: Sequence[Tensor], *, features: bool = False) -> Tensor:
        """Embed inputs of the body without gradient, in evaluation mode: ``(N, size)``, or their :meth:`features`."""
        was = self.training
        self.eval()
        try:
            run = self.features if features else self.forward
            return torch.cat([run(*pad(block)) for block in _blocks(inputs)])
        finally:
            self.train(was)


def build_embedder(spec: Mapping[str, Any], *, size: int, hidden: int, parts: int) -> Embedder:
    """Build from configuration.

    Args:
        spec: ``name`` and options: ``conv`` is :class:`LogMelConv`, ``images`` is
            :class:`isotone_contrastive.images.ImageConv`, other names are encoders of isotone.
        size, hidden, parts: As in :class:`Embedder`.
    """
    from isotone_contrastive.images import ImageConv

    options = {str(key): value for key, value in spec.items()}
    own: dict[str, type[Body]] = {"conv": LogMelConv, "images": ImageConv}
    if (name := options.get("name")) in own:
        options.pop("name")
        return Embedder(own[name](**options), size=size, hidden=hidden, parts=parts)
    reads = options.pop("reads", "last")
    return Embedder(WaveBody(encoders.create(options), reads), size=size, hidden=hidden, parts=parts)


def save_encoder(embedder: Embedder, folder: Path) -> None:
    """Write the trained part: an encoder that a recipe loads by ``encoder.source=FOLDER``, or the weights of a net."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    encoder = getattr(embedder.body, "encoder", None)
    if encoder is None:
        save_file(embedder.body.state_dict(), folder / "model.safetensors")
        return
    encoder.save(folder)
    encoder.model.save_pretrained(folder)


def _blocks(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(rows), _BLOCK):
        yield rows[start : start + _BLOCK]
