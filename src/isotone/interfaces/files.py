"""Interfaces of what is read and written: corpora and formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from isotone.alignment import Alignment

if TYPE_CHECKING:
    from datasets import Dataset


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

    def encoded(self, alignment: Alignment) -> bytes:
        """The file's text in UTF-8."""
        return self.dumps(alignment).encode()

    def notes(self, alignment: Alignment) -> Sequence[str]:
        """Sentences for people on what the file does not show as it was given; most formats have none."""
        return ()

    def loads(self, text: str, id: str) -> Alignment:
        """Read a file's text.

        Raises:
            ValueError: the text is not of this format; the message says where.
            NotImplementedError: the format is write-only.
        """
        raise NotImplementedError(f"{type(self).__name__} writes only.")
