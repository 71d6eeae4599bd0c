"""Verdicts on texts: what is left out, where stars go, and what is said about it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isotone.alignment import Absent, Alignment, AlignmentError, Segment, Tier
from isotone.model.check import Presence
from isotone.pipeline.attempt import Attempt
from isotone.pipeline.presence import Evidence
from isotone.pipeline.result import Result
from isotone.pipeline.stars import STAR, STAR_NUMBER
from isotone.pipeline.texts import TextToAlign
from isotone.pipeline.verdict import judge, settled, with_stars_beside, without_absent
from isotone.text.normalize import Word
from isotone.text.tokenizer import Transcript
from isotone.types import Grid

PAUSE = 9
LABELS = ["one", "two", "three"]
# probabilities are logistic in the only feature
PRESENCE = Presence(("ctc",), (0.0, 1.0), (0.0, 1.0), 0.1, 0.9, 0.3, "dev", 100, 0.0, 1.0)


def text_of(words: int = 3, edges: bool = False) -> TextToAlign:
    """Words 0, 1 ... of one token each, of their number, with pauses around."""
    rows: list[tuple[int, int | None, bool]] = [(PAUSE, None, True)]
    for i in range(words):
        rows += [(i, i, False), (PAUSE, None, True)]
    if edges:
        rows = [(STAR_NUMBER, None, True), *rows, (STAR_NUMBER, None, True)]
    tokens, owners, optional = zip(*rows)
    spelt = tuple(Word(label, label, i, i + 1) for i, label in enumerate(LABELS[:words]))
    return TextToAlign(Transcript(spelt, tokens, owners), list(optional))


def evidence_of(said: list[float], gaps: list[float] | None = None) -> Evidence:
    gaps = gaps or [-9.0] * (len(said) + 1)
    return Evidence([*range(len(said))], np.array([said]).T, np.array([gaps]).T, [*range(len(said) + 1)])


def result_of(words: list[int], frames: int = 100) -> Result:
    labels = [LABELS[w] if w < len(LABELS) else STAR for w in words]
    segments = tuple(Segment(label, i * 0.5, i * 0.5 + 0.4) for i, label in enumerate(labels))
    alignment = Alignment("a", 2.0, (Tier("words", segments), Tier("phones", ())), -1.0)
    return Result(alignment, "one two three", frames, (), Grid(0.02), -1.0, words=tuple(words))


def attempt(evidence: Evidence | None, words: list[int] | None = None, frames: int = 100) -> Attempt:
    return Attempt(result_of([0, 1, 2] if words is None else words, frames), {}, text_of(), 3.0, evidence)


def never(text: TextToAlign) -> Attempt:
    raise AssertionError("aligned again")


def owners(text: TextToAlign) -> list[int | None]:
    return [w for t, w in zip(text.transcript.tokens, text.transcript.token_words) if t != PAUSE]


def test_a_right_text_is_aligned_once_and_its_words_have_their_probability():
    found = settled(PRESENCE, attempt(evidence_of([2.0, 0.0, 5.0])), never, LABELS).result
    assert found.alignment.verdict == "right"
    assert [s.presence for s in found.alignment.tier("words")] == pytest.approx(
        [0.8808, 0.5, 0.9933], abs=1e-4
    )
    assert found.alignment.absent == ()
    assert found.warnings == ()


def test_without_evidence_nothing_is_said():
    first = attempt(None)
    assert settled(PRESENCE, first, never, LABELS) is first


def test_a_word_that_is_still_not_there_beside_stars_is_left_out():
    texts: list[TextToAlign] = []

    def again(text: TextToAlign) -> Attempt:
        texts.append(text)
        if len(texts) == 1:
            return attempt(evidence_of([5.0, -5.0, 5.0]))
        return attempt(Evidence([0, 2], np.array([[5.0], [5.0]]), np.full((3, 1), -9.0), [0, 1, 2]), [0, 2])

    found = settled(PRESENCE, attempt(evidence_of([5.0, -4.0, -3.0])), again, LABELS).result.alignment
    # stars beside both suspicious words, then one in the place of the word that is not there
    assert owners(texts[0]) == [0, 3, 1, 4, 2, 5]
    assert owners(texts[1]) == [0, 3, 2]
    assert found.verdict == "partly"
    assert found.absent == (Absent("two", 1, pytest.approx(0.00669, abs=1e-4)),)
    assert found.tier("words").labels == ["one", "three"]


def test_a_word_that_was_only_displaced_keeps_its_first_times():
    first = attempt(evidence_of([5.0, -4.0, 5.0]))
    found = settled(PRESENCE, first, lambda text: attempt(evidence_of([5.0, 3.0, 5.0])), LABELS)
    assert found.result.alignment.verdict == "right"
    assert found.result.alignment.tier("words").segments[1].presence == pytest.approx(0.9526, abs=1e-4)
    assert found.result.words == first.result.words


def test_a_wrong_text_is_told_and_keeps_its_words():
    found = settled(PRESENCE, attempt(evidence_of([-4.0, -4.0, 1.0])), never, LABELS).result
    assert found.alignment.verdict == "wrong"
    assert len(found.alignment.tier("words")) == 3
    assert "the text is wrong" in found.warnings[0]


def test_a_recording_without_speech_is_told():
    found = settled(PRESENCE, attempt(evidence_of([5.0] * 3), frames=2), never, LABELS).result
    assert found.alignment.verdict == "no speech"
    assert "no speech" in found.warnings[0]


def test_other_speech_is_a_star_with_its_times_and_a_short_one_is_not_shown():
    last = attempt(evidence_of([5.0] * 3), [0, 3, 1, 2])
    found = settled(PRESENCE, attempt(evidence_of([5.0] * 3, [-9, 9, -9, -9])), lambda text: replace(
        last, evidence=evidence_of([5.0] * 3, [-9, 9, -9, -9])), LABELS).result  # fmt: skip
    assert found.alignment.verdict == "partly"
    assert found.alignment.tier("words").labels == ["one", STAR, "two", "three"]
    assert "0.50 to 0.90 s" in found.warnings[0]
    short = tuple(
        replace(s, end=s.start + 0.05) if s.label == STAR else s for s in last.result.alignment.tiers[0]
    )
    tiers = (Tier("words", short), last.result.alignment.tiers[1])
    shorter = replace(last.result, alignment=replace(last.result.alignment, tiers=tiers))
    again = replace(last, result=shorter, evidence=evidence_of([5.0] * 3, [-9, 9, -9, -9]))
    quiet = settled(
        PRESENCE, attempt(evidence_of([5.0] * 3, [-9, 9, -9, -9])), lambda text: again, LABELS
    ).result
    assert quiet.alignment.tier("words").labels == LABELS
    assert quiet.alignment.verdict == "right"


def test_a_text_that_is_too_long_with_stars_keeps_its_alignment():
    def again(text: TextToAlign) -> Attempt:
        raise AlignmentError("too long")

    found = settled(PRESENCE, attempt(evidence_of([5.0, -5.0, 5.0])), again, LABELS).result
    assert len(found.alignment.tier("words")) == 3
    assert found.alignment.absent == ()


def test_of_the_pauses_around_a_word_that_is_left_out_one_is_left():
    judged = judge(PRESENCE, evidence_of([5.0, -5.0, 5.0]))
    left = without_absent(text_of(), judged, everywhere=True)
    assert left.transcript.tokens == (PAUSE, 0, PAUSE, 2, PAUSE)
    assert left.transcript.words == text_of().transcript.words


def test_edges_that_have_stars_get_no_others():
    judged = judge(PRESENCE, evidence_of([-5.0, 5.0, 5.0], [9.0, -9.0, -9.0, 9.0]))
    with_edges = with_stars_beside(text_of(edges=True), judged)
    assert owners(with_edges) == [None, 0, 3, 1, 2, None]
    assert owners(with_stars_beside(text_of(), judged)) == [3, 0, 4, 1, 2, 5]
