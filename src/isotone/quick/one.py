"""Alignment of one recording by a pipeline that is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from isotone.model.check import usable
from isotone.pipeline.doubt import doubtful
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.given import align_text
from isotone.pipeline.passages import SLACK_S
from isotone.pipeline.plausible import silence
from isotone.pipeline.result import Result
from isotone.quick import given
from isotone.quick.aligned import Aligned


def align_one(
    pipeline: ForcedPipeline,
    model: str,
    audio: Any,
    text: given.Text,
    rate: float | None = None,
    slack_s: float = SLACK_S,
    channels: str = "auto",
    tiers: Sequence[str] = (),
) -> Aligned:
    """Align one recording.

    Args:
        pipeline: The model and its use.
        model: Name of the model.
        audio, text, rate, slack_s, channels, tiers: As of :func:`isotone.align`, with its errors.
    """
    sample_rate = pipeline.model.encoder.sample_rate
    recording = given.recording(audio, rate, sample_rate)
    noted: list[str] = []
    seconds = len(recording.samples) / sample_rate
    passages = given.passages(text, recording, seconds, noted.append, tiers)
    result, transcript = align_text(
        pipeline, recording.id, recording.samples, passages, slack_s, recording.path, channels
    )
    notes = transcript.notes if isinstance(result, Result) else ()
    doubt = doubtful(result.agreement, usable(pipeline.model.check))
    said = [*silence(recording.samples), *noted, *notes, *result.warnings, *((doubt,) if doubt else ())]
    alignment = replace(result.alignment, audio=recording.path)
    return Aligned(
        alignment, result.text, model, tuple(said), result.agreement, recording.samples, sample_rate
    )
