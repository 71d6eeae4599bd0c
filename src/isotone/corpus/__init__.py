"""Corpora: recordings with transcripts and, where there are any, reference times.

Every corpus loads as a ``datasets.Dataset`` with the columns below; audio stays on disk until it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isotone.alignment import Alignment, Tier, tier_from_spans

#: Columns of every corpus. ``audio`` is a path; the utterance lasts from ``start`` to ``end`` (seconds) in that file.
#: ``words`` and ``phones`` hold ``label``, ``start`` and ``end`` (seconds from the utterance's start), or nothing.
COLUMNS = ("id", "audio", "start", "end", "text", "words", "phones", "speaker")


def segments_column() -> dict[str, Any]:
    """Return the ``datasets`` feature of a tier: parallel lists of labels, starts and ends."""
    from datasets import List, Value

    return {"label": List(Value("string")), "start": List(Value("float64")), "end": List(Value("float64"))}


def features() -> Any:
    """Return the ``datasets.Features`` of every corpus."""
    from datasets import Features, Value

    text = Value("string")
    number = Value("float64")
    return Features(
        id=text, audio=text, start=number, end=number, text=text,
        words=segments_column(), phones=segments_column(), speaker=text,
    )  # fmt: skip


def tier_column(tier: Tier) -> dict[str, list[Any]]:
    """Return a tier as a column value."""
    return {
        "label": tier.labels,
        "start": [s.start for s in tier],
        "end": [s.end for s in tier],
    }


def reference(row: Mapping[str, Any]) -> Alignment:
    """Return the reference alignment of a corpus row: its tiers ``words`` and ``phones``, if known."""
    duration = row["end"] - row["start"]
    tiers = [
        tier_from_spans(
            name,
            [(a, s, e, None) for a, s, e in zip(row[name]["label"], row[name]["start"], row[name]["end"])],
            duration,
        )
        for name in ("words", "phones")
        if row[name]["label"]
    ]
    return Alignment(row["id"], duration, tuple(tiers))
