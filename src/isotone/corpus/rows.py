"""Base of corpora of files: they are read part by part; unreadable parts are skipped and reported."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from isotone.alignment import Tier
from isotone.corpus import features, tier_column
from isotone.interfaces import Corpus

if TYPE_CHECKING:
    from datasets import Dataset

log = logging.getLogger(__name__)

# Rows that are Python objects at the same time.
_ROWS_AT_ONCE = 1000

# Corpora are many small files: threads overlap their waits for the disk. Parts in progress are limited.
_THREADS = 8
_PARTS_AT_ONCE = 64

# Skipped utterances that are logged one by one; the rest is counted.
_LOGGED = 20


class CorpusError(ValueError):
    """A corpus file is malformed; the message names the file, the line and the reason."""


@dataclass
class Part:
    """A unit of reading a corpus: an utterance, a chapter, the channel of a speaker.

    Attributes:
        rows: Rows with the columns of :data:`isotone.corpus.COLUMNS`.
        skipped: (id, reason) of utterances that were left out.
        counts: How often each of the corpus's rules for texts applied, by name.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def recording_row(
    id: str,
    audio: Path,
    seconds: float,
    text: str,
    speaker: str,
    words: Tier = Tier("words", ()),  # noqa: B008 - frozen
    phones: Tier = Tier("phones", ()),  # noqa: B008
) -> dict[str, Any]:
    """Return the row of an utterance that is a whole recording; unknown tiers are empty."""
    return {
        "id": id,
        "audio": str(audio.absolute()),
        "start": 0.0,
        "end": seconds,
        "text": text,
        "words": tier_column(words),
        "phones": tier_column(phones),
        "speaker": speaker,
    }


class RowCorpus(Corpus):
    """A corpus that is read part by part; an unreadable part does not affect the others.

    A subclass lists the parts of a split in :meth:`parts`, each with a function that reads it. A ValueError or OSError
    from that function is the reason for which the part is left out.

    Args:
        root: The corpus's folder.

    Attributes:
        title: The corpus's name, for messages.
        root: The corpus's folder.
        skipped: (id, reason) of utterances that the last :meth:`load` left out.
        counts: Counts of the rules for texts in the last :meth:`load`: words, words left out or changed ...
    """

    title: ClassVar[str] = ""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.skipped: list[tuple[str, str]] = []
        self.counts: Counter[str] = Counter()

    @abstractmethod
    def parts(self, split: str) -> Iterable[tuple[str, Callable[[], Part]]]:
        """Iterate over the parts of a split: a name for messages and the function that reads it."""

    def sources(self, split: str) -> Sequence[Path]:
        """Return the files and folders of a split, whose changes make its manifest out of date."""
        return [self.root]

    def load(self, split: str) -> Dataset:
        """Load a split, in the order of :meth:`parts`.

        Damaged utterances are left out, listed in :attr:`skipped`, and logged.

        Raises:
            FileNotFoundError: the corpus was not found; the message names the files that were looked for.
            ValueError: no such split, or nothing left to load.
        """
        self.skipped, self.counts = [], Counter()
        rows = to_dataset(self._read(self.parts(split)))
        if len(self.skipped) > _LOGGED:
            log.warning("%s: %d more are left out.", self._where, len(self.skipped) - _LOGGED)
        if not len(rows):
            reason = f" {len(self.skipped)} were left out: {self.skipped[0][1]}" if self.skipped else ""
            more = (
                ""
                if reason or split == "train"
                else " Add recordings, or do without: splits.dev= or splits.test="
            )
            raise ValueError(f"{self._where}: the split {split!r} has no utterances.{reason}{more}")
        if self.counts:
            counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in self.counts.items())
            log.info("%s, split %s: %d utterances; %s.", self._where, split, len(rows), counts)
        return rows

    @property
    def _where(self) -> str:
        return f"{self.title} at {self.root}" if self.title else str(self.root)

    def _read(self, parts: Iterable[tuple[str, Callable[[], Part]]]) -> Iterator[dict[str, Any]]:
        for part in _attempts(parts):
            for id, reason in part.skipped:
                self.skipped.append((id, reason))
                if len(self.skipped) <= _LOGGED:
                    log.warning("%s: %s is left out: %s", self._where, id, reason)
            self.counts.update(part.counts)
            yield from part.rows


def to_dataset(rows: Iterable[Mapping[str, Any]]) -> Dataset:
    """Pack rows with the columns of :data:`isotone.corpus.COLUMNS` into a ``datasets.Dataset``.

    Few rows are Python objects at the same time; the rest is packed (0.5 kB per utterance of LibriSpeech).
    """
    import pyarrow as pa
    from datasets import Dataset
    from datasets.fingerprint import generate_random_fingerprint

    schema = features().arrow_schema
    batches, rest = [], iter(rows)
    while some := list(islice(rest, _ROWS_AT_ONCE)):
        batches.append(pa.RecordBatch.from_pylist(some, schema=schema))
    # random: a fingerprint of the contents would pickle all rows
    return Dataset(pa.Table.from_batches(batches, schema), fingerprint=generate_random_fingerprint())


def _attempts(parts: Iterable[tuple[str, Callable[[], Part]]]) -> Iterator[Part]:
    """Read parts in parallel, and return them in their order."""
    rest = iter(parts)
    with ThreadPoolExecutor(_THREADS) as pool:
        while some := list(islice(rest, _PARTS_AT_ONCE)):
            yield from pool.map(_attempt, some)


def _attempt(part_of: tuple[str, Callable[[], Part]]) -> Part:
    name, read = part_of
    try:
        name.encode()
        part = read()
        for row in part.rows:
            row["id"].encode()
            row["audio"].encode()
    except UnicodeEncodeError:
        return Part(skipped=[(ascii(name), "its name is not Unicode; rename it.")])
    except (ValueError, OSError) as error:
        return Part(skipped=[(name, str(error))])
    return part
