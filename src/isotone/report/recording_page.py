"""The page of one recording: its alignment to look at, to listen to and to correct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import Alignment, Segment, Tier
from isotone.files import safe_name
from isotone.report.doubts import DOUBTFUL, confidence, doubtful_segments
from isotone.report.html import page
from isotone.report.sections import Section, Text
from isotone.report.spreads import labelled
from isotone.report.viewer import Viewer

#: The suffix of the files of such pages.
SUFFIX = ".page.html"
#: Doubtful words that the index of pages names for each recording.
NAMED = 3
#: Seconds by which an alignment may be longer or shorter than its recording.
SLACK_S = 0.5


def recording_page(
    id: str,
    audio: NDArray[np.floating],
    sample_rate: int,
    alignments: Mapping[str, Alignment],
    *,
    notes: Sequence[str] = (),
    facts: Mapping[str, object] | None = None,
) -> str:
    """Make the page of a recording, in one file with its sound.

    Args:
        id: Name of the recording, with ``/`` between folders.
        audio: ``(N,)`` mono samples in [-1, 1].
        sample_rate: Samples per second.
        alignments: Alignment by system; the first can be corrected, and its doubtful places are listed.
        notes: Warnings, shown first.
        facts: Short facts: file, score.

    Raises:
        ValueError: audio that cannot be shown.
    """
    seconds = len(audio) / sample_rate
    cut = {name: _within(alignment, seconds) for name, alignment in alignments.items()}
    name = id.rsplit("/", 1)[-1]
    viewer = Viewer(audio, sample_rate, cut, None, save_as=safe_name(name) + ".TextGrid")
    said = [Text("Warning: " + note.replace("`", "'")) for note in (*notes, *_odd(alignments, seconds))]
    sections: list[Section] = [*said, viewer]
    return page(id, sections, facts=facts, wide=True)


def doubts(alignment: Alignment) -> dict[str, Any]:
    """Return what the index tells of an alignment, as plain values.

    Returns:
        ``words``, their number; ``confidence``, their mean confidence, None where it is not known; ``doubtful``, the
        number of those that are doubtful; ``worst``, label, seconds and reason of the least sure ones.
    """
    first = next((tier for tier in alignment.tiers if len(tier)), None)
    segments = labelled(first) if first else []
    known = [c for s in segments if (c := confidence(s)) is not None]
    return {
        "words": len(segments),
        "confidence": sum(known) / len(known) if known else None,
        "doubtful": sum(c < DOUBTFUL for c in known),
        "worst": [[d.label, d.time, d.reason] for d in doubtful_segments(segments)[:NAMED]],
    }


def _within(alignment: Alignment, seconds: float) -> Alignment:
    """Cut an alignment to its recording, which may be shorter by what resampling or a codec changed."""
    tiers = []
    for tier in alignment.tiers:
        kept: list[Segment] = [
            replace(s, end=min(s.end, seconds)) for s in tier if s.start < seconds or s.end <= seconds
        ]
        tiers.append(Tier(tier.name, tuple(kept)))
    return replace(alignment, duration=seconds, tiers=tuple(tiers))


def _odd(alignments: Mapping[str, Alignment], seconds: float) -> list[str]:
    """Return warnings on alignments of another length than the recording."""
    return [
        f"{name} lasts {alignment.duration:.2f} s and the recording {seconds:.2f} s: is it of this recording?"
        for name, alignment in alignments.items()
        if abs(alignment.duration - seconds) > SLACK_S
    ]
