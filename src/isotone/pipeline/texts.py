"""Texts to align: transcripts with optional tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from isotone.interfaces import Aligner
from isotone.text.tokenizer import Tokenizer, Transcript
from isotone.types import Targets, marks


class TextToAlign(NamedTuple):
    """A transcript with optional tokens.

    Attributes:
        transcript: Tokens and their words.
        optional: Per token, True where the aligner may skip it: pauses, and stars at the ends.
    """

    transcript: Transcript
    optional: list[bool]


def targets_of(texts: Sequence[TextToAlign]) -> Targets:
    """Pad texts into a batch of targets; without optional tokens they are marked as none, not all as required."""
    targets = Targets.from_lists([list(text.transcript.tokens) for text in texts])
    if not any(any(text.optional) for text in texts):
        return targets
    return replace(targets, optional=marks([text.optional for text in texts], targets.labels))


def with_pauses(
    tokenizer: Tokenizer, transcript: Transcript, aligner: Aligner, pauses: bool = True
) -> TextToAlign:
    """Put optional silences between the words of a transcript, if the aligner can skip them.

    Args:
        tokenizer: Tokenizer of the transcript.
        transcript: Tokens and their words.
        aligner: Aligner of the text.
        pauses: False: put no silences in.
    """
    if pauses and aligner.skips_optional:
        return TextToAlign(*tokenizer.with_pauses(transcript))
    return TextToAlign(transcript, [False] * len(transcript.tokens))
