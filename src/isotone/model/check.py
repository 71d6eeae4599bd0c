"""Thresholds of doubt: of the agreement of a text with its audio, of the presence of its words, and margins."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

#: Name of the statistic (:func:`isotone.pipeline.doubt.agreement`) in the configurations of models.
STATISTIC = "agreement"


@dataclass(frozen=True)
class Presence:
    """Probabilities that a word was said, and that more was said than is written: two logistic regressions.

    Attributes:
        heads: Names of the heads whose evidence counts, in order.
        said: Weights of the evidence of a word (:mod:`isotone.pipeline.presence`), after a constant.
        extra: Weights of the evidence of a gap between two words, after a constant.
        least: Words with a lower probability may not have been said, in a text whose typical word has a probability of
            one half.
        most: Gaps with a higher probability hold speech that is not in the text.
        split: Split that all this was fitted to.
        words: Number of its words.
        right_flagged: Share of the words of correct transcripts below the threshold, 0 to 1.
        wrong_flagged: Share of the words that were never said which are below it, 0 to 1.
        slope: By how much the log-odds of ``least`` grow with those of the typical word, the median of the text's.
            In noise all words fit badly, and only one that fits much worse than the others is not there. 0: one
            threshold for all texts.
        rise: Of the gaps: a constant, and a slope over the same median, of log-odds that they exceed as well. In noise
            all gaps look as if something was missing there. Empty: ``most`` for all texts.
    """

    heads: tuple[str, ...]
    said: tuple[float, ...]
    extra: tuple[float, ...]
    least: float
    most: float
    split: str
    words: int
    right_flagged: float
    wrong_flagged: float
    slope: float = 0.0
    rise: tuple[float, ...] = ()


@dataclass(frozen=True)
class Margins:
    """Distances of boundaries from their true places: a scale per boundary, and the errors in that scale.

    Attributes:
        weights: Of the features of a boundary (:mod:`isotone.pipeline.margins`), after a constant: they sum to the
            logarithm of its scale in seconds.
        errors: Errors, true place less the boundary's, as multiples of the scale: their quantiles at
            :data:`isotone.pipeline.margins.LEVELS`.
        split: Recordings that all this was fitted to.
        boundaries: Number of their boundaries.
    """

    weights: tuple[float, ...]
    errors: tuple[float, ...]
    split: str
    boundaries: int


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
        presence: How single words are judged; None where that was not measured.
        margins: How sure boundaries are; None where that was not measured.
    """

    threshold: float
    split: str
    files: int
    right_flagged: float
    wrong_flagged: float
    statistic: str = STATISTIC
    presence: Presence | None = None
    margins: Margins | None = None

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Check:
        """Make a check of the values that ``dataclasses.asdict`` and JSON give; TypeError where they do not fit."""
        presence = fields.get("presence")
        if presence is not None:
            lists = {
                name: tuple(presence[name]) for name in ("heads", "said", "extra", "rise") if name in presence
            }
            presence = Presence(**{**presence, **lists})
        margins = fields.get("margins")
        if margins is not None:
            margins = Margins(**{**margins, **{name: tuple(margins[name]) for name in ("weights", "errors")}})
        return cls(**{**fields, "presence": presence, "margins": margins})


#: Threshold of models without a measured one: trained elsewhere, or by an early version.
DEFAULT = Check(0.12, "", 0, 0.0, 0.0)


def usable(check: Check | None) -> Check:
    """Return the check, or the default if there is none or it is of another statistic."""
    return check if check is not None and check.statistic == STATISTIC else DEFAULT


def known_presence(check: Check | None, heads: Collection[str]) -> Presence | None:
    """Return how single words are judged; None where the model does not know, or needs other heads for it."""
    presence = check.presence if check is not None else None
    return presence if presence is not None and set(presence.heads) <= set(heads) else None


def known_margins(check: Check | None, own: bool = True) -> Margins:
    """Return how sure boundaries are.

    Args:
        check: The model's.
        own: True where its own aligner places its own timing head's boundaries.

    Raises:
        ValueError: the model does not know it, or it is about others.
    """
    if check is None or check.margins is None:
        raise ValueError(
            "The model does not know how sure its boundaries are: margins need one that was fitted to known times, "
            "such as english."
        )
    if not own:
        raise ValueError(
            "Margins are those of the model's own aligner and timing head: leave out --aligner and --times."
        )
    return check.margins
