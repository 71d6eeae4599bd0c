"""Attempts: alignments of a given text, with what they were made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isotone.pipeline.presence import Evidence
from isotone.pipeline.result import Result
from isotone.pipeline.texts import TextToAlign
from isotone.types import Emissions


@dataclass(frozen=True)
class Attempt:
    """An alignment of a given text.

    Attributes:
        result: The alignment.
        emissions: Emissions by head, of one row.
        text: The text, before it is unfolded into its readings.
        star_cost: See :func:`isotone.pipeline.stars.with_star`.
        evidence: Evidence on its words; None where there is none.
    """

    result: Result
    emissions: Mapping[str, Emissions]
    text: TextToAlign
    star_cost: float
    evidence: Evidence | None
