"""Laws of corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotone import audio
from isotone.corpus import COLUMNS, reference
from isotone.interfaces import Corpus
from isotone.testing.laws import raises, require

#: Seconds by which a time may lie past the end: labels are written with few decimals.
_TOLERANCE_S = 1e-3


def check_corpus(corpus: Corpus, splits: Sequence[str]) -> None:
    """Check a corpus: columns, ids, audio files, times within the audio, and unknown splits.

    Args:
        corpus: The corpus, with data: a miniature is enough.
        splits: Splits that do not overlap, such as train and test; each has rows.
    """
    ids: set[str] = set()
    for split in splits:
        rows = corpus.load(split)
        require(tuple(rows.column_names) == COLUMNS, f"columns are {COLUMNS}; got {tuple(rows.column_names)}")
        require(len(rows) > 0, f"the split {split!r} has rows")
        require(list(corpus.load(split)) == list(rows), "a split is the same when it is loaded again")
        for row in rows:
            require(bool(row["id"]) and row["id"] not in ids, f"ids are unique; got {row['id']!r} again")
            ids.add(row["id"])
            _check_row(row)
    error = raises(ValueError, lambda: corpus.load("no such split"), "an unknown split")
    require("no such split" in str(error), f"the error of an unknown split names it; got {str(error)!r}")


def _check_row(row: Mapping[str, Any]) -> None:
    name = row["id"]
    path = Path(row["audio"])
    require(path.is_file(), f"the audio of {name!r} is a file; got {path}")
    seconds = audio.info(path).seconds
    inside = 0 <= row["start"] < row["end"] <= seconds + _TOLERANCE_S
    require(
        inside,
        f"{name!r} lies within its {seconds:.3f} s of audio; got {row['start']} to {row['end']}",
    )
    require(isinstance(row["text"], str), f"the text of {name!r} is a string")
    require(isinstance(row["speaker"], str), f"the speaker of {name!r} is a string, empty where unknown")
    for tier in ("words", "phones"):
        _check_tier(name, tier, row[tier], row["end"] - row["start"])
    reference(row)


def _check_tier(name: str, tier: str, column: Mapping[str, list[Any]], duration: float) -> None:
    labels, starts, ends = (column[key] for key in ("label", "start", "end"))
    require(len(labels) == len(starts) == len(ends), f"{tier} of {name!r} have a start and an end each")
    now = 0.0
    for label, start, end in zip(labels, starts, ends):
        where = f"{label!r} from {start} to {end} s of {name!r}"
        require(now - _TOLERANCE_S <= start <= end, f"{tier} come in order and do not overlap; got {where}")
        require(end <= duration + _TOLERANCE_S, f"{tier} lie within {duration:.3f} s; got {where}")
        now = end
