"""Interfaces of search: indexes of vectors, and searchers that make and compare them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import ClassVar, Self

from torch import Tensor


class Index(ABC):
    """A searchable collection of vectors, each under an id: the first of two stages, whose candidates are re-ranked.

    Its constructor takes ``size`` (D), then keyword-only options, ``fingerprint`` among them.

    Attributes:
        name: The name it is registered under.
        fingerprint: Identifies the model that made the vectors (its id or hash); vectors of another cannot be searched.
    """

    name: ClassVar[str]
    fingerprint: str

    @abstractmethod
    def __len__(self) -> int:
        """Number of items."""

    @abstractmethod
    def __contains__(self, id: object) -> bool:
        """True where the index has an item of that id, so that an interrupted run adds nothing twice."""

    def fit(self, corpus: Tensor, queries: Tensor | None = None, positives: Tensor | None = None) -> None:
        """Train the index on vectors before anything is added. Many indexes need no training.

        Args:
            corpus: ``(N, D)``.
            queries: ``(Q, D)``. Default: the corpus.
            positives: ``(P, 2)`` int64, pairs of a query's number and of an item's that it should find.
        """
        return

    @abstractmethod
    def add(self, ids: Sequence[str], vectors: Tensor) -> None:
        """Add items ``(N, D)``; none is added where one is refused.

        Raises:
            ValueError: an id is in the index already or given twice, or the vectors have another shape.
        """

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> None:
        """Remove items; none is removed where an id is unknown (KeyError)."""

    @abstractmethod
    def search(self, queries: Tensor, top: int) -> tuple[list[list[str]], Tensor]:
        """Find the best items of every query ``(Q, D)``.

        Returns:
            Their ids, best first, at most ``top`` per query; and scores ``(Q, k)`` float32, higher is better, -inf past
            a query's items. k is ``top``, or less where the index has fewer items.
        """

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write a folder, whole or not at all; ``name`` in its ``index.json`` is the class that reads it."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, *, fingerprint: str | None = None, memory_map: bool = False) -> Self:
        """Read a folder.

        Args:
            folder: Of :meth:`save`.
            fingerprint: Of the model whose vectors will be searched with. Default: not checked.
            memory_map: Leave the data on disk, and only search.

        Raises:
            FileNotFoundError: there is no index.
            ValueError: it is damaged, or has another class, version or fingerprint; the message says which.
        """


class SequenceIndex(Index):
    """An index whose items may be sequences of vectors, searched by a sequence in order.

    A vector that :meth:`add` adds is a sequence of one.
    """

    @abstractmethod
    def add_sequences(self, ids: Sequence[str], vectors: Tensor, lengths: Tensor) -> None:
        """Add sequences ``(N, n, D)`` of lengths ``(N,)`` int64; none is added where one is refused.

        Raises:
            ValueError: as :meth:`add`, or lengths that do not fit.
        """

    @abstractmethod
    def search_sequences(
        self, query: Tensor, top: int, without: Collection[str] = ()
    ) -> tuple[list[str], Tensor]:
        """Find the best items for a query ``(m, D)``, each at least as long as the query.

        Args:
            query: Vectors in order; so are those of an item that they are compared with.
            top: Most items.
            without: Ids of items to leave out.

        Returns:
            Ids, best first, at most ``top``; and their scores float32, higher is better.
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
        size: d, components of a vector.
        contextual: True where a window's vector depends on the other windows of its item.
        fingerprint: Identifies everything that vectors depend on; vectors of another cannot be compared.
        source: Folder or name the model was loaded from; empty where there is none.
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
        """Load the model of a folder; None where the folder holds another kind of model.

        Args:
            folder: Of the model.
            sample_rate: Hz of the audio that it takes, if the model does not say.
        """

    @abstractmethod
    def vectors(self, windows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """``(B, n, samples)`` windows with lengths ``(B,)`` to ``(B, n, d)``: rows of norm 1, or 0 for silence."""

    @abstractmethod
    def score(self, query: Tensor, items: Tensor, lengths: Tensor) -> Tensor:
        """Score items ``(C, n, d)`` of lengths ``(C,)`` >= m against a query ``(m, d)``: ``(C,)``, higher is better."""
