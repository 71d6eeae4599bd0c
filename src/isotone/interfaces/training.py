"""Interfaces of what is trained: encoders, heads and losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Self

from torch import Tensor, nn

from isotone.types import Emissions, Encoded, Frames, Targets

#: Mean and variance by which an encoder normalises its input.
Statistics = tuple[Tensor, Tensor]


class Scheduled(nn.Module):
    """A module that can change as training goes on.

    Attributes:
        progress: Share of the training steps done, 0 to 1. The trainer sets it before every step; outside
            training it is 1.
    """

    progress: float = 1.0


class Encoder(nn.Module, ABC):
    """Audio to frames.

    Attributes:
        name: The name it is registered under, by which a saved model finds its class.
        sample_rate: Hz that :meth:`forward` expects.
    """

    name: ClassVar[str]
    sample_rate: int

    @abstractmethod
    def forward(
        self, audio: Tensor, lengths: Tensor, hidden: bool = True, statistics: Statistics | None = None
    ) -> Encoded:
        """Encode.

        Args:
            audio: ``(B, N)`` float32 samples in [-1, 1]; padding is never read.
            lengths: ``(B,)`` int64, samples.
            hidden: Compute the hidden states. Without them an encoder leaves its layers out.
            statistics: Of the audio around this part of its recording, by :meth:`statistics`. Default: every row is
                normalised by itself. Encoders without statistics are given none.
        """

    def statistics(self, audio: Tensor) -> Statistics | None:
        """Statistics to normalise a part of a recording by, from samples ``(N,)`` around it; None: by itself."""
        return None

    @abstractmethod
    def size(self, source: str | int) -> int:
        """Number of features D that :meth:`isotone.types.Encoded.read` gives for a source."""

    @abstractmethod
    def frames(self, samples: int) -> int:
        """Number of frames of the last layer that a number of samples gives."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the files that :meth:`load` needs into a folder; the model saves the weights."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """Make an encoder of the saved shape, with any weights; the model loads those."""


class Head(Scheduled, ABC):
    """Frames to emissions. Its constructor takes ``input_size``, ``vocab_size`` and ``blank``, then options.

    Attributes:
        reads: Its input: ``"features"``, ``"last"`` or a layer number.
    """

    reads: str | int = "last"

    @abstractmethod
    def forward(self, frames: Frames) -> Emissions:
        """Score the labels of every frame."""


class Loss(Scheduled, ABC):
    """Emissions and targets to one value per utterance.

    Attributes:
        views: Number of views of every utterance that the loss compares, each under masks and dropout of its own.
            Each batch is repeated ``max(loss.views)`` times: emissions and targets have ``views * B`` rows, and row
            v * B + b is utterance b in view v. A loss of one view gives a value per row; their mean counts.
    """

    views: int = 1

    @abstractmethod
    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """The loss of each utterance, ``(B,)``. An utterance that cannot be aligned gives 0 and no gradient."""

    def split_views(self, values: Tensor) -> tuple[Tensor, ...]:
        """Split ``(views * B, ...)`` into one ``(B, ...)`` per view.

        Raises:
            ValueError: the number of rows is no multiple of the views.
        """
        if len(values) % self.views:
            raise ValueError(
                f"{type(self).__name__} expects {self.views} views of every utterance, one after the other along the "
                f"batch; got {len(values)} rows."
            )
        return values.unflatten(0, (self.views, len(values) // self.views)).unbind()
