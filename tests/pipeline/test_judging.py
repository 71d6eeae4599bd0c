"""The alignment that a text is judged by: with the whole recording, with edges, or with stars inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from isotone.alignment import Alignment, AlignmentError
from isotone.model.check import Check, Presence
from isotone.pipeline import judging, verdict
from isotone.pipeline.emitted import Emitted
from isotone.pipeline.inside import LEAST_GAIN, Inside
from isotone.pipeline.presence import Evidence
from isotone.pipeline.result import Result
from isotone.pipeline.stars import STAR_NUMBER
from isotone.pipeline.texts import TextToAlign
from isotone.text.normalize import Word
from isotone.text.transcript import Transcript
from isotone.types import Grid

CHECK = Check(0.3, "dev", 1, 0.0, 1.0)
PRESENCE = Presence(("ctc",), (0.0, 1.0), (0.0, 1.0), 0.5, 0.5, "dev", 1, 0.0, 1.0)
WORDS = tuple(Word(w, w, 2 * i, 2 * i + 1) for i, w in enumerate("abc"))
TEXT = TextToAlign(Transcript(words=WORDS, tokens=(1, 2, 3), token_words=(0, 1, 2)), [False] * 3)
GIVEN = Emitted(["x"], [], {}, {}, [TEXT], ["a b c"], 3.0, True)
MANY = Inside(LEAST_GAIN, frozenset({1}))
FEW = Inside(LEAST_GAIN - 1, frozenset({1}))


def aligned(agreement: float, *odds: float) -> Result:
    """An alignment of three words with these log-odds of having been said."""
    evidence = (
        Evidence([0, 1, 2], np.array(odds)[:, None], np.full((4, 1), -9.0), [0, 1, 2, 3]) if odds else None
    )
    alignment = Alignment("x", 9.0, (), -1.0)
    grid = Grid(0.02, 0.0)
    return Result(alignment, "a b c", 450, (), grid, -agreement, agreement=agreement, evidence=evidence)


SAID, UNSAID = (9.0, 9.0, 9.0), (9.0, -9.0, -9.0)
WHOLE, DOUBTED = aligned(0.5, *SAID), aligned(0.1, *SAID)
EDGED, MOVED, BLIND = aligned(0.6, *SAID), aligned(0.6, *UNSAID), aligned(0.6)


@pytest.mark.parametrize(
    ("whole", "edged", "inside", "starred", "expected"),
    [
        (WHOLE, None, None, None, "whole"),
        (WHOLE, EDGED, FEW, None, "edged"),
        (WHOLE, BLIND, None, None, "blind"),
        (WHOLE, EDGED, MANY, 0.7, "starred"),
        (WHOLE, MOVED, FEW, 0.7, "starred"),
        (DOUBTED, None, FEW, 0.7, "starred"),
        (DOUBTED, None, FEW, 0.3 * judging.STARRED - 0.01, "whole"),
        (DOUBTED, EDGED, Inside(LEAST_GAIN, frozenset()), None, "whole"),
        (WHOLE, EDGED, MANY, None, "whole"),  # with stars the text is too long
    ],
)
def test_a_text_is_judged_by(
    whole: Result,
    edged: Result | None,
    inside: Inside | None,
    starred: float | None,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Emitted] = []

    def look() -> Inside:
        assert inside is not None, "nothing had to be looked for"
        return inside

    def align(given: Emitted, checked: bool = True) -> list[Result]:
        asked.append(given)
        if starred is None:
            raise AlignmentError("too long", row=0)
        return [aligned(starred, *SAID)]

    def settled(*args: Any) -> Result:
        return args[3]

    monkeypatch.setattr(verdict, "settled", settled)
    found = judging.judged(CHECK, PRESENCE, GIVEN, whole, edged, look, align)
    choices: dict[str, Callable[[], Result]] = {
        "whole": lambda: whole,
        "edged": lambda: replace(EDGED, evidence=None),
        "blind": lambda: BLIND,
        "starred": lambda: aligned(starred or 0.0, *SAID).with_score_of(whole),
    }
    best = choices[expected]()
    assert (found.agreement, found.score, found.evidence is None) == (
        best.agreement,
        best.score,
        best.evidence is None,
    )
    for given in asked:
        assert given.texts[0].transcript.tokens == (1, STAR_NUMBER, 2, 3)
        assert given.star_cost == verdict.STAR_COST
