"""What corpora of files share: they are read part by part, and what cannot be read is left out and said."""

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

# Rows that are held as Python objects at once.
_ROWS_AT_ONCE = 1000

# Reading is many small files: threads wait for a disk together. So many parts are under way at once.
_THREADS = 8
_PARTS_AT_ONCE = 64

# Utterances left out that are logged one by one; the others are counted.
_LOGGED = 20


class CorpusError(ValueError):
    """A corpus file is not what it should be; the message names the file, the line and the reason."""


@dataclass
class Part:
    """What was read of a corpus at once: an utterance, a chapter, the channel of a speaker.

    Attributes:
        rows: Rows with the columns of :data:`isotone.corpus.COLUMNS`.
        skipped: (id, reason) of what was left out.
        counts: How often the corpus's rules for texts did what, by name.
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
    """The row of an utterance that is a whole recording of so many seconds; tiers are empty where unknown."""
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
    """A corpus that is read part by part; a part that cannot be read harms no other.

    A class of this kind says in :meth:`parts` which parts a split has and how each is read. What reading raises
    (ValueError, OSError) is the reason why the part is left out.

    Args:
        root: The corpus's folder.

    Attributes:
        title: The corpus's name, for messages.
        root: The corpus's folder.
        skipped: (id, reason) of what the last :meth:`load` left out.
        counts: What the rules for texts did in the last :meth:`load`: words, words left out or changed ...
    """

    title: ClassVar[str] = ""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.skipped: list[tuple[str, str]] = []
        self.counts: Counter[str] = Counter()

    @abstractmethod
    def parts(self, split: str) -> Iterable[tuple[str, Callable[[], Part]]]:
        """The parts of a split in order: a name for messages, and what reads it; raises as :meth:`load` does."""

    def sources(self, split: str) -> Sequence[Path]:
        """Files and folders that a split is read from: a manifest of it holds until one of them changes."""
        return [self.root]

    def load(self, split: str) -> Dataset:
        """One split, in the order of :meth:`parts`.

        What is damaged is left out, listed in :attr:`skipped` and logged.

        Raises:
            FileNotFoundError: the corpus is not where it should be; the message says what was looked for.
            ValueError: no such split, or nothing left to load.
        """
        self.skipped, self.counts = [], Counter()
        rows = to_dataset(self._read(self.parts(split)))
        if len(self.skipped) > _LOGGED:
            log.warning("%s: %d more are left out.", self._where, len(self.skipped) - _LOGGED)
        if not len(rows):
            reason = f" {len(self.skipped)} were left out: {self.skipped[0][1]}" if self.skipped else ""
            raise ValueError(f"{self._where}: the split {split!r} has no utterances.{reason}")
        if self.counts:
            said = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in self.counts.items())
            log.info("%s, split %s: %d utterances; %s.", self._where, split, len(rows), said)
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
    """Rows with the columns of :data:`isotone.corpus.COLUMNS` as a ``datasets.Dataset``.

    Only some rows at a time are Python objects; the rest are packed (0.5 kB for one of LibriSpeech).
    """
    import pyarrow as pa
    from datasets import Dataset
    from datasets.fingerprint import generate_random_fingerprint

    schema = features().arrow_schema
    batches, rest = [], iter(rows)
    while some := list(islice(rest, _ROWS_AT_ONCE)):
        batches.append(pa.RecordBatch.from_pylist(some, schema=schema))
    # a fingerprint from the contents would pickle them all
    return Dataset(pa.Table.from_batches(batches, schema), fingerprint=generate_random_fingerprint())


def _attempts(parts: Iterable[tuple[str, Callable[[], Part]]]) -> Iterator[Part]:
    """The parts in their order, some read at once."""
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
