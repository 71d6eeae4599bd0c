"""Alignment of a transcript as it is given: as one text, or by passages, on all channels together or on several."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from isotone.alignment import SILENCE, AlignmentError
from isotone.model.check import usable
from isotone.pipeline.channels import Channels, channels_of
from isotone.pipeline.doubt import doubtful
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.moved import SUSPICIOUS, moved
from isotone.pipeline.passage_times import timed
from isotone.pipeline.passages import Passages, align_passages
from isotone.pipeline.result import Result
from isotone.pipeline.sections import align_sections
from isotone.pipeline.verdict import LONGEST_S, PARTLY, WRONG
from isotone.text.normalize import TextError
from isotone.text.tokenizer import Transcript
from isotone.transcripts import Passage

#: Seconds of a recording from which on a suspicious text is looked for part by part. With 4 instead of 10 s, in 26
#: sentences of LJSpeech with swapped halves 263 of 425 words are within .1 s of their places instead of 88. With half
#: of another text inserted 22 are elsewhere instead of 47. In sentences of 3 s nothing is gained.
DIVIDED_S = 4.0

#: Words per second that nobody speaks.
TOO_FAST = 8.0


def align_text(
    pipeline: ForcedPipeline,
    id: str,
    samples: np.ndarray,
    passages: Sequence[Passage],
    slack_s: float,
    path: Path | None = None,
    way: str = "auto",
) -> tuple[Result | Passages, Transcript]:
    """Align the passages of a transcript: those with times by these, others as one text.

    Args:
        pipeline: The model and its use.
        id: Utterance id.
        samples: ``(N,)`` the recording, the mean of its channels.
        passages: The passages.
        slack_s: Seconds by which a passage's time may be wrong.
        path: The recording's file, for its channels. Default: it has one.
        way: One of :data:`isotone.pipeline.channels.WAYS`, for passages with times.

    Returns:
        The result, and the whole text in labels. Its notes are among the warnings of passages with times, and not among
        those of a text.
    """
    transcript = pipeline.encode("\n".join(p.text for p in passages))
    if not has_times(passages):
        return _whole(pipeline, id, samples, transcript), transcript
    rate = pipeline.model.encoder.sample_rate
    in_time = timed(passages, len(samples) / rate)
    speakers = list(dict.fromkeys(p.speaker for p in passages))  # in order of the source, not of time
    found = None if path is None else channels_of(path, in_time, speakers, rate, way)
    if found is None:
        return _in_time(pipeline, id, samples, passages, in_time, slack_s), transcript
    parts, notes = _by_channel(pipeline, id, in_time, slack_s, found)
    return _joined(parts, "\n".join(p.text for p in passages), notes), transcript


def _in_time(
    pipeline: ForcedPipeline,
    id: str,
    samples: np.ndarray,
    passages: Sequence[Passage],
    in_time: Sequence[Passage],
    slack_s: float,
) -> Passages:
    """Align passages by their times, or by other times where these are off (:mod:`isotone.pipeline.moved`)."""
    first = align_passages(pipeline, id, samples, passages, slack_s)
    doubted = doubtful(first.agreement, usable(pipeline.model.check))
    if first.agreement is None or not (doubted or first.outside >= SUSPICIOUS):
        return first
    try:
        whole = _whole(pipeline, id, samples, pipeline.encode("\n".join(p.text for p in in_time)))
        better = moved(in_time, whole.alignment.tiers[0].segments, slack_s) if whole.words else None
        again = align_passages(pipeline, id, samples, better.passages, slack_s) if better else None
    except (AlignmentError, TextError):
        return first
    if better is None or again is None or (again.agreement or 0.0) <= first.agreement:
        return first
    return replace(again, text=first.text, warnings=(better.note, *again.warnings))


def align_texts(
    pipeline: ForcedPipeline,
    ids: Sequence[str],
    samples: Sequence[np.ndarray],
    passages: Sequence[Sequence[Passage]],
) -> list[tuple[Result, Transcript] | None]:
    """Align passages without times with several recordings at once: all of it takes less time than one by one.

    Args:
        pipeline: The model and its use.
        ids: Utterance ids.
        samples: The recordings, ``(N,)`` each.
        passages: The passages of every recording, without times.

    Returns:
        What :func:`align_text` gives of every recording; None where it has to be asked, for it gives the error.
    """
    texts = [_encoded(pipeline, own) for own in passages]
    firsts: list[Result | None] = [None] * len(ids)
    at_once = [
        i for i, text in enumerate(texts) if text and pipeline.emitter.seconds(samples[i]) <= LONGEST_S
    ]
    with suppress(AlignmentError):
        rows = [(ids[i], samples[i], texts[i]) for i in at_once]
        for i, found in zip(at_once, pipeline.align_batch(*zip(*rows)) if rows else []):
            firsts[i] = found
    return [
        (_checked(pipeline, id, own, text, first), text) if text and first else None
        for id, own, text, first in zip(ids, samples, texts, firsts)
    ]


def _encoded(pipeline: ForcedPipeline, passages: Sequence[Passage]) -> Transcript | None:
    with suppress(TextError):
        return pipeline.encode("\n".join(p.text for p in passages))
    return None


def has_times(passages: Sequence[Passage]) -> bool:
    """Tell if any of the passages says when it is spoken."""
    return any(p.start is not None or p.end is not None for p in passages)


def suspicious(result: Result) -> bool:
    """Tell if the text of a whole recording may be in it in another order, repeated, or in part.

    So it is where the text is not right, and in long recordings, of which single words are not judged.
    """
    long = result.alignment.duration > LONGEST_S
    return long or result.alignment.verdict in (PARTLY, WRONG)


def _whole(pipeline: ForcedPipeline, id: str, samples: np.ndarray, transcript: Transcript) -> Result:
    """Align a text with a whole recording, or section by section where that is long or not what the text says."""
    divides = _divides(pipeline, samples, transcript)
    if divides and pipeline.emitter.seconds(samples) > LONGEST_S:
        found = align_sections(pipeline, id, samples, transcript)
        return found or pipeline.align(id, samples, transcript)
    try:
        first = pipeline.align(id, samples, transcript)
    except AlignmentError as error:  # of a long text perhaps a part is said
        judges = _judges(pipeline, transcript)
        found = align_sections(pipeline, id, samples, transcript) if judges else None
        if found is None:
            raise _explained(error, id, transcript, pipeline.emitter.seconds(samples)) from error
        return found
    return _checked(pipeline, id, samples, transcript, first)


def _checked(
    pipeline: ForcedPipeline, id: str, samples: np.ndarray, transcript: Transcript, first: Result
) -> Result:
    """Return the alignment with a whole recording, or another one where its text is suspicious."""
    if suspicious(first) and _divides(pipeline, samples, transcript):
        return align_sections(pipeline, id, samples, transcript, deviating=True) or first
    return first


def _divides(pipeline: ForcedPipeline, samples: np.ndarray, transcript: Transcript) -> bool:
    """Tell if a recording is long enough for sections, and its words can be judged."""
    return _judges(pipeline, transcript) and pipeline.emitter.seconds(samples) >= DIVIDED_S


def _judges(pipeline: ForcedPipeline, transcript: Transcript) -> bool:
    return pipeline.presence is not None and bool(transcript.words and transcript.source)


def _explained(error: AlignmentError, id: str, transcript: Transcript, seconds: float) -> AlignmentError:
    """Say of a text that does not fit its recording that nobody speaks so fast, where that is the reason."""
    words = len(transcript.words)
    if error.row is None or words <= TOO_FAST * seconds:
        return error
    return AlignmentError(
        f"the text is too long for the audio: it has {words} words and the recording {seconds:.1f} s, more than anyone "
        "speaks. If the recording is an excerpt of a longer text, use isotone align --book TEXT; else give the text of "
        "this recording alone.",
        id=id,
    )


def _by_channel(
    pipeline: ForcedPipeline, id: str, passages: Sequence[Passage], slack_s: float, channels: Channels
) -> tuple[list[Passages], list[str]]:
    """Align the passages of every channel with its samples, one channel after the other; return them with notes."""
    parts: list[Passages] = []
    failed: list[str] = []
    for channel in sorted(set(channels.of.values())):
        own = [p for p in passages if channels.of[p.speaker] == channel]
        samples = channels.load(channel, pipeline.model.encoder.sample_rate)
        try:
            parts.append(align_passages(pipeline, id, samples, own, slack_s, named=True))
        except (AlignmentError, TextError) as error:
            reason = error.reason if isinstance(error, AlignmentError) else str(error)
            failed.append(f"not aligned: all of channel {channel + 1}: {reason}")
    if not parts:
        raise AlignmentError(failed[0], id=id)
    return parts, [*channels.notes, *failed]


def _joined(parts: Sequence[Passages], text: str, notes: Sequence[str]) -> Passages:
    """Join alignments of the channels of a recording to one, with tiers in their order."""
    tiers = tuple(tier for part in parts for tier in part.alignment.tiers)
    weights = [sum(s.label not in SILENCE for t in p.alignment.tiers for s in t) for p in parts]
    score = _mean([(part.score, weight) for part, weight in zip(parts, weights)])
    agreed = [(part.agreement, weight) for part, weight in zip(parts, weights) if part.agreement is not None]
    verdict = next((p.alignment.verdict for p in parts if p.alignment.verdict), "")
    whole = replace(parts[0].alignment, tiers=tiers, score=score, verdict=verdict)
    warnings = tuple(dict.fromkeys([*notes, *(note for part in parts for note in part.warnings)]))
    return Passages(whole, text, score, _mean(agreed) if agreed else None, warnings)


def _mean(weighted: Sequence[tuple[float, int]]) -> float:
    values, weights = zip(*weighted)
    return float(np.average(values, weights=np.maximum(weights, 1)))
