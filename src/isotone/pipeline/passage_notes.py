"""Sentences for people on passages that could not be aligned, that nobody says, or that are not at their times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isotone.alignment import Segment
from isotone.pipeline.deviations import listed
from isotone.pipeline.unsaid import told
from isotone.transcripts import Passage

_NAMED = 3


def notes_of(
    failed: Sequence[tuple[Passage, str]],
    unsaid: Sequence[tuple[str, Sequence[Segment]]],
    off: Sequence[str],
    slack_s: float,
) -> Iterator[str]:
    """Iterate over the sentences.

    Args:
        failed: Passages that could not be aligned, with the reason.
        unsaid: Words that were likely not said, with the place of their passage.
        off: Words outside of the time of their passage by more than the slack, as they are shown.
        slack_s: Seconds of the slack.
    """
    for passage, reason in failed[:_NAMED]:
        yield f"not aligned: {named([passage])}: {reason}"
    if len(failed) > _NAMED:
        yield f"{len(failed) - _NAMED} more passages could not be aligned"
    if unsaid:
        yield told(unsaid)
    if off:
        shown = listed(off, _NAMED)
        yield f"words outside of the time of their passage by more than {slack_s:g} s (--slack): {shown}"


def named(passages: Sequence[Passage]) -> str:
    """Name passages by their places, of many the first."""
    return listed([p.where or repr(p.text[:30]) for p in passages], _NAMED)
