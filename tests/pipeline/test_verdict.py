"""Verdicts on texts: what is left out, where stars go, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from isotone.alignment import Alignment, AlignmentError, Segment, Tier
from isotone.model.check import Check, Presence
from isotone.pipeline.presence import Evidence
from isotone.pipeline.result import Result
from isotone.pipeline.stars import STAR, STAR_NUMBER
from isotone.pipeline.texts import TextToAlign
from isotone.pipeline.verdict import SURE, judge, settled, without
from isotone.text.normalize import Word
from isotone.text.tokenizer import Transcript
from isotone.types import Grid

PAUSE = 9
LABELS = ["one", "two", "three", "four"]
# probabilities are logistic in the only feature
PRESENCE = Presence(("ctc",), (0.0, 1.0), (0.0, 1.0), 0.1, 0.9, "dev", 100, 0.0, 1.0)
CHECK = Check(0.2, "dev", 10, 0.0, 0.9)


def labels_of(words: int) -> list[str]:
    """Labels of so many words; numbers from there on are stars."""
    return [*LABELS, *map(str, range(len(LABELS), words))]


def text_of(words: int = 3, edges: bool = False) -> TextToAlign:
    """Words 0, 1 ... of one token each, of their number, with pauses around."""
    rows: list[tuple[int, int | None, bool]] = [(PAUSE, None, True)]
    for i in range(words):
        rows += [(i, i, False), (PAUSE, None, True)]
    if edges:
        rows = [(STAR_NUMBER, None, True), *rows, (STAR_NUMBER, None, True)]
    tokens, owners, optional = zip(*rows)
    spelt = tuple(Word(label, label, i, i + 1) for i, label in enumerate(labels_of(words)[:words]))
    return TextToAlign(Transcript(spelt, tokens, owners), list(optional))


def result_of(
    said: dict[int, float], gaps: Sequence[float] = (), segments: Sequence[int] = (), frames: int = 100
) -> Result:
    """An alignment of words, by number, with evidence in logits; segments of stars have numbers after the words."""
    numbers = list(segments or said)
    known = labels_of(max(said) + 1)
    labels = [known[w] if w < len(known) else STAR for w in numbers]
    spans = tuple(Segment(label, i * 0.5, i * 0.5 + 0.4) for i, label in enumerate(labels))
    alignment = Alignment("a", max(3.0, 0.5 * len(spans)), (Tier("words", spans), Tier("phones", ())), -1.0)
    places = [*range(len(said) + 1)]
    evidence = Evidence(
        list(said), np.array([[*said.values()]]).T, np.array([gaps or [-9.0] * len(places)]).T, places
    )
    return Result(
        alignment, "one two three", frames, (), Grid(0.02), -1.0, agreement=0.9, words=tuple(numbers),
        evidence=evidence,
    )  # fmt: skip


def never(text: TextToAlign) -> Result:
    raise AssertionError("aligned again")


def test_without_evidence_a_text_is_judged_as_a_whole() -> None:
    plain = replace(result_of({0: 9.0}), evidence=None)
    assert settled(CHECK, PRESENCE, text_of(), plain, never) == plain
    assert (
        settled(CHECK, PRESENCE, text_of(), replace(plain, agreement=0.1), never).alignment.verdict == "wrong"
    )


class Script:
    """Alignments in the order in which they are asked for."""

    def __init__(self, *found: Result) -> None:
        self.found, self.seen = list(found), list[list[int | None]]()

    def __call__(self, text: TextToAlign) -> Result:
        rows = zip(text.transcript.tokens, text.transcript.token_words)
        self.seen.append([word for token, word in rows if token != PAUSE])
        return self.found.pop(0)


def settle(first: Result, again: Callable[[TextToAlign], Result] = never, words: int = 3) -> Result:
    return settled(CHECK, PRESENCE, text_of(words), first, again)


def test_a_right_text_is_aligned_once_and_its_words_have_their_probability():
    found = settle(result_of({0: 2.0, 1: 0.0, 2: 5.0}))
    assert found.alignment.verdict == "right"
    assert [s.presence for s in found.alignment.tier("words")] == pytest.approx(
        [0.8808, 0.5, 0.9933], abs=1e-4
    )
    assert found.alignment.absent == ()
    assert found.warnings == ()


def test_without_evidence_nothing_is_said():
    first = replace(result_of({0: 1.0}), evidence=None)
    assert settle(first) is first


def test_a_word_that_is_still_not_there_beside_stars_is_left_out():
    again = Script(
        result_of({0: 5.0, 1: -5.0, 2: 5.0}),
        result_of({0: 5.0, 2: 5.0}),
        result_of({0: 5.0, 2: 5.0}),
    )
    found = settle(result_of({0: 5.0, 1: -4.0, 2: -3.0}), again)
    # stars beside both suspicious words; then in the place of the word that is not there; then none
    assert again.seen == [[0, 3, 1, 4, 2, 5], [0, 3, 2], [0, 2]]
    assert found.alignment.verdict == "partly"
    (absent,) = found.alignment.absent
    assert (absent.label, absent.after) == ("two", 1)
    assert absent.presence == pytest.approx(0.00669, abs=1e-4)
    assert found.alignment.tier("words").labels == ["one", "three"]
    assert found.warnings == ("1 word was not said and has no times: 'two' after 0.40 s",)


@pytest.mark.parametrize(("words", "verdict"), [(100, "partly"), (101, "right")])
def test_a_long_text_that_lacks_a_word_is_right_and_the_word_has_no_times(words: int, verdict: str):
    said = dict.fromkeys(range(words), 5.0)
    rest = {number: 5.0 for number in said if number != 1}
    again = Script(result_of(said | {1: -5.0}), result_of(rest, frames=200), result_of(rest, frames=200))
    found = settle(result_of(said | {1: -4.0}, frames=200), again, words)
    assert found.alignment.verdict == verdict
    assert [word.label for word in found.alignment.absent] == ["two"]
    assert "two" not in found.alignment.tier("words").labels
    assert found.warnings == ("1 word was not said and has no times: 'two' after 0.40 s",)


def test_ends_of_a_run_wait_for_another_round_unless_they_are_the_least_likely():
    again = Script(
        result_of({0: -3.0, 1: -5.0, 2: -4.0, 3: 5.0}),
        result_of({0: 5.0, 2: 5.0, 3: 5.0}),
        result_of({0: 5.0, 2: 5.0, 3: 5.0}),
    )
    found = settle(result_of({0: -3.0, 1: -5.0, 2: -4.0, 3: 5.0}), again, words=4)
    assert [word.label for word in found.alignment.absent] == ["two"]


def test_stars_of_a_later_round_are_where_the_rest_of_the_text_needs_them():
    again = Script(
        result_of({0: 5.0, 1: -5.0, 2: -4.0, 3: 5.0}, [-9.0, -9.0, -9.0, -9.0, 9.0]),
        result_of({0: 5.0, 2: 5.0, 3: 5.0}),
        result_of({0: 5.0, 2: 5.0, 3: 5.0}),
    )
    settle(result_of({0: 5.0, 1: -5.0, 2: -4.0, 3: 5.0}), again, words=4)
    # beside the third word, which waits, in the place of the second, and after the last
    assert again.seen[1:] == [[0, 4, 2, 5, 3, 6], [0, 2, 3]]


def test_a_word_that_was_only_displaced_keeps_its_first_times():
    first = result_of({0: 5.0, 1: -4.0, 2: 5.0})
    found = settle(first, Script(result_of({0: 5.0, 1: 3.0, 2: 5.0})))
    assert found.alignment.tier("words").labels == LABELS[:3]
    assert found.alignment.verdict == "right"
    assert found.words == first.words


def test_a_doubtful_text_is_wrong_and_keeps_its_words():
    first = replace(result_of({0: -5.0, 1: -5.0, 2: 5.0}), agreement=0.1)
    found = settle(first)
    assert found.alignment.verdict == "wrong"
    assert len(found.alignment.tier("words")) == 3


def test_a_text_of_which_no_word_was_said_is_wrong_and_keeps_its_words():
    nothing = {0: -5.0, 1: -5.0, 2: -5.0}
    found = settle(result_of(nothing), Script(result_of(nothing)))
    assert found.alignment.verdict == "wrong"
    assert len(found.alignment.tier("words")) == 3
    assert "none of the words" in found.warnings[0]


def test_a_recording_without_speech_is_told():
    found = settle(result_of({0: 5.0, 1: 5.0, 2: 5.0}, frames=2))
    assert found.alignment.verdict == "no speech"
    assert "no speech" in found.warnings[0]


@pytest.mark.parametrize(("seconds", "shown"), [(0.4, True), (0.05, False)])
def test_other_speech_is_a_star_with_its_times_and_a_short_one_is_not_shown(seconds: float, shown: bool):
    words = {0: 5.0, 1: 5.0, 2: 5.0}
    gaps = [-9.0, 9.0, -9.0, -9.0]
    starred = result_of(words, gaps, [0, 4, 1, 2])
    segments = tuple(
        replace(s, end=s.start + seconds) if s.label == STAR else s for s in starred.alignment.tiers[0]
    )
    tiers = (Tier("words", segments), starred.alignment.tiers[1])
    starred = replace(starred, alignment=replace(starred.alignment, tiers=tiers))
    found = settle(result_of(words, gaps), Script(starred, starred))
    assert (STAR in found.alignment.tier("words").labels) == shown
    assert found.alignment.verdict == ("partly" if shown else "right")
    assert (found.warnings == ("speech that is not in the text, marked *: 0.50 to 0.90 s",)) == shown


def test_a_text_that_is_too_long_with_stars_keeps_its_alignment():
    def again(text: TextToAlign) -> Result:
        raise AlignmentError("too long")

    found = settle(result_of({0: 5.0, 1: -5.0, 2: 5.0}), again)
    assert len(found.alignment.tier("words")) == 3
    assert found.alignment.absent == ()


def test_of_the_pauses_around_a_word_that_is_left_out_one_is_left():
    left = without(text_of(), {1})
    assert left.transcript.tokens == (PAUSE, 0, PAUSE, 2, PAUSE)
    assert left.transcript.words == text_of().transcript.words


def test_edges_that_have_stars_get_no_others():
    again = Script(result_of({0: 5.0, 1: 5.0, 2: 5.0}))
    first = result_of({0: -5.0, 1: 5.0, 2: 5.0}, [9.0, -9.0, -9.0, 9.0])
    settled(CHECK, PRESENCE, text_of(edges=True), first, again)
    assert again.seen[0] == [None, 0, 3, 1, 2, None]


def test_a_word_that_may_not_have_been_said_keeps_its_times_and_is_told():
    again = Script(result_of({0: 5.0, 1: -1.0, 2: 5.0}))
    even = replace(PRESENCE, least=0.5)
    found = settled(CHECK, even, text_of(), result_of({0: 5.0, 1: -4.0, 2: 5.0}), again)
    assert again.seen == [[0, 3, 1, 4, 2]]
    assert found.alignment.tier("words").labels == ["one", "two", "three"]
    assert [s.presence for s in found.alignment.tier("words")][1] == pytest.approx(0.2689, abs=1e-4)
    assert found.alignment.absent == ()
    assert found.unlikely == {1}
    assert found.alignment.verdict == "partly"
    assert found.warnings == ("1 word may not have been said: 'two' at 0.50 s",)


@pytest.mark.parametrize(("odds", "unlikely", "absent"), [(0.0, 0, 0), (-SURE, 1, 0), (-SURE - 0.01, 1, 1)])
def test_a_word_is_left_out_where_it_is_sure_enough(odds: float, unlikely: int, absent: int):
    even = replace(PRESENCE, least=0.5)
    judged = judge(even, result_of({0: 5.0, 1: odds, 2: 5.0}).evidence)  # type: ignore[arg-type]
    assert (len(judged.unlikely), len(judged.absent)) == (unlikely, absent)


def test_the_threshold_of_gaps_rises_where_the_typical_word_fits_badly():
    following = replace(PRESENCE, rise=(3.0, -1.0))
    for said, least in ((5.0, np.log(9)), (0.0, 3.0), (-2.0, 5.0)):
        for gap, extra in ((least - 0.01, set()), (least + 0.01, {1})):
            evidence = result_of({0: said, 1: said, 2: said}, [-9.0, gap, -9.0, -9.0]).evidence
            assert judge(following, evidence).extra == extra  # type: ignore[arg-type]


def test_a_word_is_absent_where_it_fits_much_worse_than_the_others():
    noisy = {0: -3.0, 1: -3.0, 2: -5.0}
    steady = replace(PRESENCE, slope=1.0)
    judged = judge(steady, result_of(noisy).evidence)  # type: ignore[arg-type]
    assert not judged.absent
    judged = judge(steady, result_of({**noisy, 2: -6.0}).evidence)  # type: ignore[arg-type]
    assert judged.absent == {2}
    judged = judge(PRESENCE, result_of(noisy).evidence)  # type: ignore[arg-type]
    assert judged.absent == {0, 1, 2}
