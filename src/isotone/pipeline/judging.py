"""Judgement of a text in its recording: what of the recording is the text's, and what of the text was said.

Edges (:mod:`isotone.pipeline.edges`) are believed unless stars between the words as well say where the text is. A text
that lacks a part, or is in another order, may fit best at one end of its recording, with the rest in an edge. Words
that have no place there tell, and what such stars gain (:mod:`isotone.pipeline.inside`). With these stars the text has
another chance before it is called wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from isotone.alignment import AlignmentError
from isotone.model.check import Check, Presence, usable
from isotone.pipeline import verdict
from isotone.pipeline.deviations import LEAST_RUN
from isotone.pipeline.doubt import doubtful
from isotone.pipeline.emitted import Emitted
from isotone.pipeline.inside import LEAST_GAIN, Inside
from isotone.pipeline.result import Result
from isotone.pipeline.stars import with_extra_speech
from isotone.pipeline.texts import TextToAlign

#: Least agreement of a text with stars inside, as a multiple of the threshold of doubtful texts: a wrong text gains by
#: stars as well. Of 442 wrong texts of LJSpeech and TIMIT the best had .91 of it. Right texts without their middle, of
#: 12 chapters of LibriSpeech, had 1.69 or more.
STARRED = 1.2


class Align(Protocol):
    """Alignment of one recording's text, with its evidence, and with its agreement if checked."""

    def __call__(self, given: Emitted, checked: bool = True) -> list[Result]:
        """Return the results of a batch of one."""


def judged(
    check: Check | None,
    presence: Presence,
    given: Emitted,
    whole: Result,
    edged: Result | None,
    look: Callable[[], Inside],
    align: Align,
) -> Result:
    """Judge a text.

    Args:
        check: The threshold of doubtful texts.
        presence: How words are judged.
        given: One recording and its text.
        whole: The alignment of the text with the whole recording.
        edged: The alignment with edges; None where the text covers its recording.
        look: Looks for speech inside that the text lacks.
        align: Aligns another version of the text.

    Returns:
        One of the alignments or another one, see :func:`isotone.pipeline.verdict.settled`.
    """
    first = _first(check, presence, given, whole, edged, look, align)

    def again(text: TextToAlign) -> Result:
        cost = min(given.star_cost, verdict.STAR_COST)
        found = align(given._replace(texts=[text], star_cost=cost), checked=False)[0]
        return replace(found.with_score_of(first), agreement=first.agreement)

    return verdict.settled(check, presence, given.texts[0], first, again)


def _first(
    check: Check | None,
    presence: Presence,
    given: Emitted,
    whole: Result,
    edged: Result | None,
    look: Callable[[], Inside],
    align: Align,
) -> Result:
    """Return the alignment that is judged: with the whole recording, with edges, or with speech that is missing."""
    if edged is None and not doubtful(whole.agreement, usable(check)):
        return whole
    if edged is not None and edged.evidence is None:
        return edged
    found = look()
    if edged is not None and found.gain < LEAST_GAIN and not _some_unsaid(presence, edged):
        return replace(edged, evidence=None)
    if not found.places:
        return whole
    text = with_extra_speech(given.texts[0], found.places)
    try:
        starred = align(given._replace(texts=[text], star_cost=verdict.STAR_COST))[0]
    except AlignmentError:  # with stars the text may be too long for its recording
        return whole
    believed = starred.agreement is not None and starred.agreement >= STARRED * usable(check).threshold
    return starred.with_score_of(whole) if believed else whole


def _some_unsaid(presence: Presence, result: Result) -> bool:
    """Tell if so many words of an alignment were not said that its text is not all there."""
    if result.evidence is None:
        return False
    return len(verdict.judge(presence, result.evidence).unlikely) >= LEAST_RUN
