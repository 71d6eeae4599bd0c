"""Alignment of a transcript with its passages: what subtitles describe in brackets is not aligned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.given import align_text, has_times
from isotone.pipeline.passages import Passages
from isotone.pipeline.result import Result
from isotone.text.given import listed
from isotone.text.markup import described
from isotone.text.tokenizer import Transcript
from isotone.transcripts import Passage, numbered


def align_transcript(
    pipeline: ForcedPipeline,
    id: str,
    samples: np.ndarray,
    passages: Sequence[Passage],
    slack_s: float,
    path: Path | None = None,
    way: str = "auto",
) -> tuple[Result | Passages, Transcript]:
    """Align the passages of a transcript, which the alignment has then as they are.

    Args:
        pipeline, id, samples, passages, slack_s, path, way: As of :func:`isotone.pipeline.given.align_text`.

    Returns:
        The result, and the whole text in labels. A note on what was left out is among the warnings.
    """
    keeps = pipeline.text.keep_markup or not has_times(passages)
    spoken, left_out = (list(passages), []) if keeps else without_descriptions(passages)
    result, transcript = align_text(pipeline, id, samples, spoken, slack_s, path, way)
    alignment = replace(result.alignment, passages=numbered(passages))
    if left_out:
        text = "\n".join(p.text for p in passages)
        note = f"left out as descriptions in brackets (--keep-markup reads them): {listed(left_out)}"
        return replace(result, alignment=alignment, text=text, warnings=(note, *result.warnings)), transcript
    return replace(result, alignment=alignment), transcript


def without_descriptions(passages: Sequence[Passage]) -> tuple[list[Passage], list[str]]:
    """Put spaces in place of descriptions of sounds and speakers in subtitles; return those as well.

    All other characters keep their places.
    """
    out, left_out = [], []
    for passage in passages:
        text = passage.text
        for first, last in described(text) if passage.cue else ():
            left_out.append(" ".join(text[first:last].split()))
            text = text[:first] + " " * (last - first) + text[last:]
        out.append(replace(passage, text=text))
    return out, left_out
