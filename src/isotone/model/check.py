"""Thresholds of doubt: the agreement of a text with its audio below which the text is doubtful."""

from __future__ import annotations

from dataclasses import dataclass

#: Name of the statistic (:func:`isotone.pipeline.doubt.agreement`) in the configurations of models.
STATISTIC = "agreement"


@dataclass(frozen=True)
class Check:
    """A threshold of the agreement, with its error rates where it was measured.

    Attributes:
        threshold: Files with a lower agreement are doubtful.
        split: Split that it was measured on.
        files: Number of recordings.
        right_flagged: Share of the correct transcripts below the threshold, 0 to 1.
        wrong_flagged: Share of the wrong transcripts below it, 0 to 1.
        statistic: Name of the statistic; thresholds of other statistics are ignored.
    """

    threshold: float
    split: str
    files: int
    right_flagged: float
    wrong_flagged: float
    statistic: str = STATISTIC


#: Threshold of models without a measured one: trained elsewhere, or by an early version.
DEFAULT = Check(0.12, "", 0, 0.0, 0.0)


def usable(check: Check | None) -> Check:
    """Return the check, or the default if there is none or it is of another statistic."""
    return check if check is not None and check.statistic == STATISTIC else DEFAULT
