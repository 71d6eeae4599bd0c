"""What a plugin implements. Modules hold parameters or a schedule; the rest is plain callables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, runtime_checkable

from torch import Tensor, nn

from isotone.alignment import Alignment
from isotone.types import Coupling, Emissions, Encoded, Frames, Targets

if TYPE_CHECKING:
    from datasets import Dataset

#: Mean and variance that an encoder normalises its input by.
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
            hidden: Whether hidden states are wanted. Without them an encoder leaves its layers out.
            statistics: What :meth:`statistics` says of what lies around the audio in its recording; by default every
                row is normalised by itself. An encoder that has none is not given any.
        """

    def statistics(self, audio: Tensor) -> Statistics | None:
        """What a part of a recording is normalised by, from the samples ``(N,)`` around it; None: by itself."""
        return None

    @abstractmethod
    def size(self, source: str | int) -> int:
        """Number of features D of what :meth:`Encoded.read` gives for a source."""

    @abstractmethod
    def frames(self, samples: int) -> int:
        """Number of frames (of the last layer) that so many samples give."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what :meth:`load` needs into a folder; the weights are saved by the model around it."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """An encoder of the same shape as the one saved, with any weights: the model around it has them."""


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
    """Emissions and targets to one value an utterance.

    Attributes:
        views: How often it wants to see every utterance, each time under masks and dropout of its own. The training
            repeats its batches as often as the greediest of its losses asks for: emissions and targets then have
            ``views * B`` rows, row v * B + b of utterance b in view v. A loss of one view needs no knowledge of that:
            it gives a value a row, and their mean over the views counts.
    """

    views: int = 1

    @abstractmethod
    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """The loss of each utterance, ``(B,)``. An utterance that cannot be aligned gives 0 and no gradient."""

    def split_views(self, values: Tensor) -> tuple[Tensor, ...]:
        """``(views * B, ...)`` as one ``(B, ...)`` a view.

        Raises:
            ValueError: so many rows are not that many views.
        """
        if len(values) % self.views:
            raise ValueError(
                f"{type(self).__name__} expects {self.views} views of every utterance, one after the other along the "
                f"batch; got {len(values)} rows."
            )
        return values.unflatten(0, (self.views, len(values) // self.views)).unbind()


@runtime_checkable
class Aligner(Protocol):
    """Forced alignment: which frames carry which token of a known sequence.

    An aligner that can leave tokens out has an attribute ``skips_optional = True``: it is then given silences between
    words that are marked in ``Targets.optional``; others are not. One that can be guided has ``takes_guide = True``: it
    is then given ``Targets.guide``, where the model has a head for that. One that knows how long tokens last at least
    has a method ``holding(frames)``, which gives such an aligner; phones of given texts are aligned by it.
    """

    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        """Align; raises AlignmentError, naming the row, where a sequence needs more frames than there are."""
        ...


@runtime_checkable
class Decoder(Protocol):
    """Recognition: the tokens, and which frames carry them.

    A decoder that has a method ``use_tokenizer(tokenizer)`` is told by it, before it decodes, what the labels are. One
    that has ``nbest(emissions, count)``, for every row a list of (labels, nats) with the best first, can be rescored by
    another head (:mod:`isotone.pipeline.rescoring`).
    """

    def __call__(self, emissions: Emissions) -> tuple[Targets, Coupling]:
        """Decode."""
        ...


@runtime_checkable
class Relaxation(Protocol):
    """Reward matrix to a soft permutation or selection: m rows choose among n >= m columns."""

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        """``(B, m, n)`` rewards, higher is better, to ``(B, m, n)`` soft assignments, 0 beyond the lengths ``(B,)``.

        Differentiable in the rewards, unless the relaxation is a hard assignment.
        """
        ...


class Index(ABC):
    """A searchable collection of vectors, each under an id: the first of two stages, whose candidates are re-ranked.

    Its constructor takes ``size`` (D), then keyword-only options, ``fingerprint`` among them.

    Attributes:
        name: The name it is registered under.
        fingerprint: What made the vectors (a model's id or hash); vectors of another model mean nothing here.
    """

    name: ClassVar[str]
    fingerprint: str

    @abstractmethod
    def __len__(self) -> int:
        """Number of items."""

    @abstractmethod
    def __contains__(self, id: object) -> bool:
        """Whether there is an item of that id: what an interrupted run need not add again."""

    def fit(self, corpus: Tensor, queries: Tensor | None = None, positives: Tensor | None = None) -> None:
        """Learn from vectors what the index has to know before anything is added. Many have nothing to learn.

        Args:
            corpus: ``(N, D)``.
            queries: ``(Q, D)``. Default: the corpus.
            positives: ``(P, 2)`` int64: numbers of a query and of an item that it should find.
        """
        return

    @abstractmethod
    def add(self, ids: Sequence[str], vectors: Tensor) -> None:
        """Add items ``(N, D)``, or none of them where one cannot be.

        Raises:
            ValueError: an id that is there already or twice, or vectors that do not fit.
        """

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> None:
        """Take items out, or none of them where an id is not there (KeyError)."""

    @abstractmethod
    def search(self, queries: Tensor, top: int) -> tuple[list[list[str]], Tensor]:
        """The best items of every query ``(Q, D)``.

        Returns:
            Their ids, best first, at most ``top`` a query; and scores ``(Q, top)`` float32, higher is better,
            -inf past a query's items.
        """

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write a folder, whole or not at all; its ``index.json`` says under ``name`` which class reads it."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, *, fingerprint: str | None = None, memory_map: bool = False) -> Self:
        """Read a folder.

        Args:
            folder: Of :meth:`save`.
            fingerprint: What the vectors to search with come from. Default: not checked.
            memory_map: Leave the data on disk, and only search.

        Raises:
            FileNotFoundError: there is no index.
            ValueError: it is damaged, or of another class, version or fingerprint; the message says which.
        """


class Searcher(ABC):
    """Windows of audio to vectors, and vectors of a query and of corpus items to scores.

    A corpus item is a row of up to :attr:`item_windows` windows, each :attr:`hop_s` after the last; the windows of a
    query follow each other without overlap.

    Attributes:
        name: The name it is registered under.
        sample_rate: Hz of the audio it takes.
        window_s, hop_s: Length of a window, and from one to the next within an item, in seconds.
        item_windows: n, the most windows of a corpus item.
        query_windows: m, the most windows of a query.
        size: d, numbers of a vector.
        contextual: Whether a window's vector depends on the other windows of its item.
        fingerprint: Of everything that vectors depend on; those of another mean nothing here.
        source: Where the model was loaded from; empty where there is none.
    """

    name: ClassVar[str]
    sample_rate: int
    window_s: float
    hop_s: float
    item_windows: int
    query_windows: int
    size: int
    contextual: bool
    fingerprint: str
    source: str = ""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, *, sample_rate: int) -> Self | None:
        """The model that is saved in a folder; None where the folder holds another kind of model."""

    @abstractmethod
    def vectors(self, windows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """``(B, n, samples)`` windows with lengths ``(B,)`` to ``(B, n, d)``: rows of norm 1, or 0 for silence."""

    @abstractmethod
    def score(self, query: Tensor, items: Tensor, lengths: Tensor) -> Tensor:
        """How well items ``(C, n, d)`` fit a query ``(m, d)``: ``(C,)``, higher is better; lengths ``(C,)`` >= m."""


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
    "Searcher",
]  # fmt: skip
