"""What a plugin implements. Modules hold parameters or a schedule; the rest is plain callables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from torch import Tensor, nn

from isotone.alignment import Alignment
from isotone.types import Coupling, Emissions, Encoded, Frames, Targets

if TYPE_CHECKING:
    from datasets import Dataset


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
        sample_rate: Hz that :meth:`forward` expects.
    """

    sample_rate: int

    @abstractmethod
    def forward(self, audio: Tensor, lengths: Tensor, hidden: bool = True) -> Encoded:
        """Encode.

        Args:
            audio: ``(B, N)`` float32 samples in [-1, 1]; padding is never read.
            lengths: ``(B,)`` int64, samples.
            hidden: Whether hidden states are wanted. Without them an encoder leaves its layers out.
        """

    @abstractmethod
    def size(self, source: str | int) -> int:
        """Number of features D of what :meth:`Encoded.read` gives for a source."""

    @abstractmethod
    def frames(self, samples: int) -> int:
        """Number of frames (of the last layer) that so many samples give."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write configuration and weights (safetensors) so that ``from_pretrained``-style loading finds them."""


class Head(Scheduled, ABC):
    """Frames to emissions. Its constructor takes ``input_size``, ``vocab_size`` and ``blank``, then options.

    Attributes:
        reads: What it reads: ``"features"``, ``"last"`` or a layer number.
    """

    reads: str | int = "last"

    @abstractmethod
    def forward(self, frames: Frames) -> Emissions:
        """Score the labels of every frame."""


class Loss(Scheduled, ABC):
    """Emissions and targets to one value an utterance."""

    @abstractmethod
    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """The loss of each utterance, ``(B,)``. An utterance that cannot be aligned gives 0 and no gradient."""


@runtime_checkable
class Aligner(Protocol):
    """Forced alignment: which frames carry which token of a known sequence.

    An aligner that can leave tokens out has an attribute ``skips_optional = True``: it is then given silences between
    words that are marked in ``Targets.optional``; others are not.
    """

    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        """Align; raises AlignmentError, naming the row, where a sequence needs more frames than there are."""
        ...


@runtime_checkable
class Decoder(Protocol):
    """Recognition: the tokens, and which frames carry them."""

    def __call__(self, emissions: Emissions) -> tuple[Targets, Coupling]:
        """Decode."""
        ...


@runtime_checkable
class Relaxation(Protocol):
    """Reward matrix to a soft permutation or selection."""

    def __call__(self, reward: Tensor) -> Tensor:
        """``(B, m, n)`` rewards to ``(B, m, n)`` soft assignments."""
        ...


class Index(ABC):
    """A searchable collection of embedded sequences."""

    @abstractmethod
    def add(self, ids: list[str], vectors: Tensor) -> None:
        """Add items: ``vectors (N, D)``."""

    @abstractmethod
    def search(self, queries: Tensor, top: int) -> tuple[Tensor, Tensor]:
        """Scores and item numbers ``(Q, top)``, best first."""


class Corpus(ABC):
    """A collection of recordings with transcripts, and times where it has them."""

    @abstractmethod
    def load(self, split: str) -> Dataset:
        """One split, with the columns of :data:`isotone.corpus.COLUMNS`.

        Raises:
            FileNotFoundError: the corpus is not where it should be; the message says what was looked for.
            ValueError: no such split.
        """


class Format(ABC):
    """A file format for alignments.

    Attributes:
        suffix: File name ending with its dot.
    """

    suffix: str

    @abstractmethod
    def dumps(self, alignment: Alignment) -> str:
        """The file's text."""

    def loads(self, text: str, id: str) -> Alignment:
        """Read a file's text.

        Raises:
            ValueError: the text is not of this format; the message says where.
            NotImplementedError: the format is write-only.
        """
        raise NotImplementedError(f"{type(self).__name__} writes only.")


__all__ = [
    "Aligner", "Corpus", "Decoder", "Encoder", "Format", "Head", "Index", "Loss", "Relaxation", "Scheduled",
]  # fmt: skip
