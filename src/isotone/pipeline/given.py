"""Alignment of a transcript as it is given: as one text, or by passages, on all channels together or on several.

What subtitles describe in brackets is not aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from isotone.alignment import AlignmentError
from isotone.pipeline.by_times import Recording, align_by_times
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.passages import Passages
from isotone.pipeline.result import Result
from isotone.pipeline.verdict import LONGEST_S
from isotone.pipeline.whole import align_whole, checked
from isotone.text.normalize import TextError
from isotone.text.tokenizer import Transcript
from isotone.transcripts import Passage, numbered
from isotone.transcripts.descriptions import descriptions_note, without_descriptions

Aligned = TypeVar("Aligned", Result, Passages)


def align_text(
    pipeline: ForcedPipeline,
    id: str,
    samples: np.ndarray,
    passages: Sequence[Passage],
    slack_s: float,
    path: Path | None = None,
    way: str = "auto",
) -> tuple[Result | Passages, Transcript]:
    """Align the passages of a transcript, which the alignment has then: those with times by these, others as one text.

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
        those of a text. So is one on descriptions that were left out.
    """
    if not has_times(passages):
        transcript = pipeline.encode(_text(passages))
        return _with(passages, align_whole(pipeline, id, samples, transcript)), transcript
    keeps = pipeline.text.keep_markup
    spoken, left_out = (list(passages), []) if keeps else without_descriptions(passages)
    transcript = pipeline.encode(_text(spoken))
    found = align_by_times(Recording(pipeline, id, samples, slack_s, path, way), spoken)
    notes = [descriptions_note(left_out)] if left_out else []
    found = replace(found, text=_text(passages), warnings=(*notes, *found.warnings))
    return _with(passages, found), transcript


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
        (_with(given, checked(pipeline, id, own, text, first)), text) if text and first else None
        for id, own, given, text, first in zip(ids, samples, passages, texts, firsts)
    ]


def _encoded(pipeline: ForcedPipeline, passages: Sequence[Passage]) -> Transcript | None:
    with suppress(TextError):
        return pipeline.encode(_text(passages))
    return None


def _text(passages: Sequence[Passage]) -> str:
    return "\n".join(passage.text for passage in passages)


def _with(passages: Sequence[Passage], found: Aligned) -> Aligned:
    """Give an alignment the passages of its transcript."""
    return replace(found, alignment=replace(found.alignment, passages=numbered(passages)))


def has_times(passages: Sequence[Passage]) -> bool:
    """Tell if any of the passages says when it is spoken."""
    return any(p.start is not None or p.end is not None for p in passages)
