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
from isotone.text.tokenizer import Transcript
from isotone.transcripts import Passage, numbered
from isotone.transcripts.descriptions import descriptions_note, without_descriptions


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
        text, note = "\n".join(p.text for p in passages), descriptions_note(left_out)
        return replace(result, alignment=alignment, text=text, warnings=(note, *result.warnings)), transcript
    return replace(result, alignment=alignment), transcript
