"""Sections: what was read where, against recordings that are put together of numbered words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.pipeline.books.book import Book
from isotone.pipeline.books.hearing import PER_NAT, Heard
from isotone.pipeline.sections.aligning import LEAST_ABSENT, _Plan
from isotone.pipeline.sections.cutting import LONG_S, Section, quietest, sections
from isotone.pipeline.sections.planning import Take, gap_of, moved, takes

WORDS, LABELS, RATE = 240, 4, 1000
#: Seconds between the sounds of a word, and between the last of a part and the first of the next.
SOUND_S, PAUSE_S = 0.1, 0.6


def book() -> Book:
    words = [f"w{number}" for number in range(WORDS)]
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    spans = np.stack([ends - [len(word) for word in words], ends], 1)
    labels = np.arange(WORDS * LABELS, dtype=np.int16)  # every label is another one
    owners = np.repeat(np.arange(WORDS, dtype=np.int32), LABELS)
    return Book(" ".join(words), labels, owners, spans, np.array([0, WORDS]))


class Reading:
    """A recording of parts, each words ``(first, last)`` of the book, or a number of sounds of other speech."""

    def __init__(self, parts: Sequence[tuple[int, int] | int]) -> None:
        times, said, now = [], [], 0.5
        self.pairs: list[np.ndarray] = []
        for part in parts:
            own = [-1] * part if isinstance(part, int) else list(range(part[0] * LABELS, part[1] * LABELS))
            rows = np.arange(len(times), len(times) + len(own))
            times += [now + SOUND_S * k for k in range(len(own))]
            said += own
            now = times[-1] + PAUSE_S
            if not isinstance(part, int):
                self.pairs.append(np.stack([rows, own], 1))
        scores = np.full((len(times), WORDS * LABELS), -PER_NAT, np.int16)
        scores[np.arange(len(said)), said] = 2 * PER_NAT
        self.heard = Heard(scores, np.array(times))
        self.seconds = now
        # quiet in the pauses, loud elsewhere
        self.samples = np.zeros(round(now * RATE), np.float32)
        for time in times:
            self.samples[round(time * RATE) : round((time + SOUND_S) * RATE)] = 1.0

    def takes(self) -> list[Take]:
        return takes(book(), self.heard, self.pairs)

    def sections(self) -> list[Section]:
        return sections(book(), self.heard, self.takes(), self.samples, RATE)


def shown(found: Sequence[Take]) -> list[tuple[int, int, bool]]:
    return [(take.first, take.last, take.again) for take in found]


def test_a_text_that_is_read_as_it_stands_is_one_run() -> None:
    assert shown(Reading([(0, 100), (100, WORDS)]).takes()) == [(0, WORDS, False)]


def test_swapped_paragraphs_are_in_order_of_time_and_the_shorter_one_has_moved() -> None:
    found = Reading([(0, 50), (80, 100), (50, 80), (100, WORDS)]).takes()
    assert shown(found) == [(0, 50, False), (80, 100, False), (50, 80, False), (100, WORDS, False)]
    assert shown(moved(found)) == [(80, 100, False)]


def test_a_second_take_is_again_and_does_not_move_what_follows() -> None:
    found = Reading([(0, 60), (40, 60), (60, WORDS)]).takes()
    assert shown(found) == [(0, 60, False), (40, 60, True), (60, WORDS, False)]
    assert moved(found) == []


def test_words_without_room_belong_to_no_run_and_others_to_a_neighbour() -> None:
    assert shown(Reading([(0, 60), (90, WORDS)]).takes()) == [(0, 60, False), (90, WORDS, False)]
    # sounds that nothing matches, about as many as the words between have labels
    assert shown(Reading([(0, 60), 110, (90, WORDS)]).takes()) == [(0, WORDS, False)]


def test_other_speech_divides_where_the_text_goes_on() -> None:
    reading = Reading([(0, 60), 40, (60, WORDS)])
    found = reading.takes()
    assert shown(found) == [(0, 60, False), (60, WORDS, False)]
    times = reading.heard.times
    assert gap_of(book(), times, *found).other == pytest.approx((times[240], times[279]))
    assert shown(Reading([(0, 60), 10, (60, WORDS)]).takes()) == [(0, WORDS, False)]  # too short to be speech


def test_an_excerpt_loses_what_it_shares_by_chance_with_the_right_one() -> None:
    reading = Reading([(0, 60), 16, (60, WORDS)])
    # the second excerpt begins in the other speech, with words that fit badly and are matched well before
    strange = np.stack([np.arange(240, 256), np.arange(56 * LABELS, 60 * LABELS)], 1)
    reading.pairs[1] = np.concatenate([strange, reading.pairs[1]])
    assert shown(reading.takes()) == [(0, WORDS, False)]


def test_a_run_is_cut_in_its_longest_pauses() -> None:
    bounds = [*range(0, WORDS, 15), WORDS]
    found = Reading(list(pairwise(bounds))).sections()
    assert len(found) > 1
    assert {s.first for s in found} <= set(bounds)
    assert max(s.end - s.start for s in found) <= LONG_S + PAUSE_S


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_was_read_is_found(data: st.DataObject) -> None:
    bounds = sorted(data.draw(st.sets(st.integers(1, WORDS // 12 - 1), max_size=6)))
    bounds = [0, *(12 * b for b in bounds), WORDS]
    blocks = list(pairwise(bounds))
    order = data.draw(st.permutations(blocks))
    kept = order[: data.draw(st.integers(1, len(order)))]
    parts: list[tuple[int, int] | int] = []
    for block in kept:
        parts += [block] + ([data.draw(st.integers(40, 80))] if data.draw(st.booleans()) else [])
    reading = Reading(parts)
    found = reading.sections()
    # sections follow each other from the beginning to the end
    assert found[0].start == 0
    assert found[-1].end == pytest.approx(reading.seconds, abs=1e-3)
    assert all(a.end == b.start and a.start < a.end for a, b in pairwise(found))
    # every word that was read is in one section, at the time at which it was read
    held = [(s, word) for s in found for word in range(s.first, s.last)]
    assert len(held) == len({word for _, word in held})
    times = reading.heard.times
    sounds = {label: times[row] for pairs in reading.pairs for row, label in pairs}
    for word in (word for first, last in kept for word in range(first, last)):
        section = next(s for s, other in held if other == word)
        assert section.start <= sounds[word * LABELS] < section.end


@pytest.mark.parametrize("hop", [20, 32])
def test_sections_begin_at_whole_hops(hop: int) -> None:
    reading = Reading(list(pairwise([*range(0, WORDS, 15), WORDS])))
    found = sections(book(), reading.heard, reading.takes(), reading.samples, RATE, hop)
    assert len(found) > 1
    assert all(round(s.start * RATE) % hop == 0 for s in found)
    assert all(abs(s.start - o.start) <= hop / 2 / RATE for s, o in zip(found, reading.sections()))


def test_the_quietest_time_lies_between_two_sounds() -> None:
    samples = np.ones(1000, np.float32)
    samples[430:520] = 0.01
    assert 0.43 <= quietest(samples, 1000, 0.2, 0.8) <= 0.52
    assert quietest(samples, 1000, 0.2, 0.22) == pytest.approx(0.21)


@pytest.mark.parametrize(
    ("parts", "deviates"),
    [
        ([(0, WORDS)], False),
        ([(LEAST_ABSENT - 1, WORDS)], False),  # too few to tell from short words that were said
        ([(LEAST_ABSENT, WORDS)], True),
        ([(0, WORDS - LEAST_ABSENT)], True),
        ([(100, WORDS), (0, 100)], True),
    ],
)
def test_single_words_that_were_not_said_make_no_other_text(
    parts: list[tuple[int, int]], deviates: bool
) -> None:
    reading = Reading(parts)
    assert _Plan(book(), reading.heard, reading.takes(), reading.sections()).deviates is deviates
