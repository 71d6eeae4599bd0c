"""Thresholds of doubt: which agreement of a text with its audio is too low, as a model's training measured it."""

from __future__ import annotations

from dataclasses import dataclass

#: Name of the statistic (:func:`isotone.pipeline.doubt.agreement`) in the configurations of models.
STATISTIC = "agreement"


@dataclass(frozen=True)
class Check:
    """A threshold of the agreement, with its error rates where it was measured.

    Attributes:
        threshold: Files whose agreement is lower are doubtful.
        split: Split it was measured on.
        files: Number of recordings.
        right_flagged: Share of the right transcripts below the threshold, 0 to 1.
        wrong_flagged: Share of the wrong ones below it.
        statistic: Statistic it is a threshold of; values of another cannot be compared.
    """

    threshold: float
    split: str
    files: int
    right_flagged: float
    wrong_flagged: float
    statistic: str = STATISTIC


#: Threshold of models that were trained elsewhere, or before models had one.
DEFAULT = Check(0.12, "", 0, 0.0, 0.0)


def usable(check: Check | None) -> Check:
    """The check itself; the default where there is none, or one of another statistic."""
    return check if check is not None and check.statistic == STATISTIC else DEFAULT
