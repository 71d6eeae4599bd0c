"""Alignment of passages by their times or, where these are off, by others: on all channels together or on several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from isotone.alignment import SILENCE, AlignmentError
from isotone.model.check import usable
from isotone.pipeline.channels import Channels, channels_of
from isotone.pipeline.doubt import doubtful
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.means import mean_of, mean_of_known
from isotone.pipeline.moved import SUSPICIOUS, Moved, moved
from isotone.pipeline.passage_times import timed
from isotone.pipeline.passages import Passages, align_passages
from isotone.pipeline.whole import align_whole
from isotone.text.normalize import TextError
from isotone.transcripts import Passage


@dataclass(frozen=True)
class Recording:
    """A recording and the way its passages are aligned; see :func:`isotone.pipeline.given.align_text`."""

    pipeline: ForcedPipeline
    id: str
    samples: np.ndarray
    slack_s: float
    path: Path | None
    way: str


def align_by_times(recording: Recording, passages: Sequence[Passage]) -> Passages:
    """Align passages some of which have times, or by other times where these are off (:mod:`isotone.pipeline.moved`).

    Args:
        recording: The recording.
        passages: The passages, in order of the source.

    Returns:
        The alignment. Its text may be that of one channel: the caller has the whole one.

    Raises:
        TextError: there is nothing to align in any of the passages.
        AlignmentError: none of the passages can be aligned, with their times or with others.
    """
    passages = timed(passages, recording.pipeline.emitter.seconds(recording.samples))
    check = usable(recording.pipeline.model.check)
    try:
        first = _align(recording, passages)
    except AlignmentError:
        found = _by_other(recording, passages)
        if found is None or found.agreement is None or doubtful(found.agreement, check):
            raise
        return found
    if first.agreement is None or not (doubtful(first.agreement, check) or first.outside >= SUSPICIOUS):
        return first
    found = _by_other(recording, passages)
    return first if found is None or (found.agreement or 0.0) <= first.agreement else found


def _by_other(recording: Recording, passages: Sequence[Passage]) -> Passages | None:
    """Align passages by the times at which their words are heard, if these explain the words better."""
    try:
        better = _moved(recording, passages)
        found = _align(recording, better.passages) if better else None
    except (AlignmentError, TextError):
        return None
    return replace(found, warnings=(better.note, *found.warnings)) if better and found else None


def _moved(recording: Recording, passages: Sequence[Passage]) -> Moved | None:
    pipeline = recording.pipeline
    transcript = pipeline.encode("\n".join(p.text for p in passages))
    whole = align_whole(pipeline, recording.id, recording.samples, transcript)
    return moved(passages, whole.alignment.tiers[0].segments, recording.slack_s) if whole.words else None


def _align(recording: Recording, passages: Sequence[Passage]) -> Passages:
    """Align passages by their times: on their speakers' channels where these are known."""
    r, rate = recording, recording.pipeline.model.encoder.sample_rate
    channels = None if r.path is None else channels_of(r.path, passages, rate, r.way)
    if channels is None:
        return align_passages(r.pipeline, r.id, r.samples, passages, r.slack_s)
    return _joined(*_by_channel(r, passages, channels))


def _by_channel(
    recording: Recording, passages: Sequence[Passage], channels: Channels
) -> tuple[list[Passages], list[str]]:
    """Align the passages of every channel with its samples, one channel after the other; return them with notes."""
    pipeline, id = recording.pipeline, recording.id
    parts: list[Passages] = []
    failed: list[str] = []
    for channel in sorted(set(channels.of.values())):
        own = [p for p in passages if channels.of[p.speaker] == channel]
        samples = channels.load(channel, pipeline.model.encoder.sample_rate)
        try:
            parts.append(align_passages(pipeline, id, samples, own, recording.slack_s, named=True))
        except (AlignmentError, TextError) as error:
            reason = error.reason if isinstance(error, AlignmentError) else str(error)
            failed.append(f"not aligned: all of channel {channel + 1}: {reason}")
    if not parts:
        raise AlignmentError(failed[0], id=id)
    return parts, [*channels.notes, *failed]


def _joined(parts: Sequence[Passages], notes: Sequence[str]) -> Passages:
    """Join alignments of the channels of a recording to one, with tiers in their order."""
    tiers = tuple(tier for part in parts for tier in part.alignment.tiers)
    weights = [sum(s.label not in SILENCE for t in p.alignment.tiers for s in t) for p in parts]
    score = mean_of([(part.score, weight) for part, weight in zip(parts, weights)])
    verdict = next((p.alignment.verdict for p in parts if p.alignment.verdict), "")
    return replace(
        parts[0],
        alignment=replace(parts[0].alignment, tiers=tiers, score=score, verdict=verdict),
        score=score,
        agreement=mean_of_known((part.agreement, weight) for part, weight in zip(parts, weights)),
        warnings=tuple(dict.fromkeys([*notes, *(note for part in parts for note in part.warnings)])),
        outside=mean_of([(part.outside, weight) for part, weight in zip(parts, weights)]),
    )
