"""Deviations of texts: when there are too many, and what is said about them."""

from __future__ import annotations

import pytest

from isotone.alignment import Absent, Segment
from isotone.pipeline.deviations import Deviations
from isotone.pipeline.stars import STAR

WORDS = [
    Segment("one", 0.0, 0.5),
    Segment("two", 0.6, 1.0),
    Segment(STAR, 1.0, 1.5),
    Segment("four", 1.5, 2.0),
]


@pytest.mark.parametrize(
    ("places", "unlikely", "stars", "deviating"),
    [
        ([], 0, [], False),
        ([1, 5, 9], 0, [], False),
        ([1, 2, 8, 9], 0, [0.9] * 5, False),
        ([1, 2, 8, 9], 1, [0.9] * 5, True),
        ([], 9, [], False),
        ([], 10, [], True),
        ([], 0, [1.0], True),
        ([1, 2, 3, 4, 5], 0, [0.1] * 5, True),
    ],
)
def test_of_a_thousand_words_few_may_deviate_one_by_one(
    places: list[int], unlikely: int, stars: list[float], deviating: bool
) -> None:
    missing = [Absent("a", after, 0.0, None) for after in places]
    extra = [Segment(STAR, 2.0, 2.0 + seconds) for seconds in stars]
    assert Deviations(missing, [WORDS[0]] * unlikely, extra, 1).of(1000) is deviating
    assert Deviations(missing, [WORDS[0]] * unlikely, extra, 2).of(1000)


@pytest.mark.parametrize(
    ("places", "unlikely", "run"),
    [
        ([], {0, 1, 2, 3}, 0),  # none of them is sure
        ([1, 3], set(), 1),
        ([1, 1, 3], set(), 2),
        ([4, 4, 4], set(), 3),
        ([2], {1}, 2),
        ([2], {2}, 2),
        ([0], {1}, 1),
        ([1, 2], {0, 1, 2, 3}, 6),
    ],
)
def test_a_row_of_missing_and_unlikely_words_counts_where_one_is_missing(
    places: list[int], unlikely: set[int], run: int
) -> None:
    missing = [Absent("a", after, 0.0, None) for after in places]
    assert Deviations.among(WORDS, (0, 1, 2, 3), 4, missing, unlikely).run == run


def test_a_star_divides_no_row() -> None:
    missing = [Absent("a", after, 0.0, None) for after in (2, 3)]
    assert Deviations.among(WORDS, (0, 1, 4, 3), 4, missing, {1}).run == 3


def test_one_word_of_a_hundred_deviates_and_none_of_more() -> None:
    one = Deviations([], [WORDS[0]], [], 0)
    assert one.of(100)
    assert not one.of(101)
    assert not Deviations([], [], [], 0).of(1)


def test_they_are_found_by_the_numbers_of_the_words_and_told() -> None:
    found = Deviations.among(WORDS, (0, 1, 4, 3), 4, [Absent("three", 2, 0.1)], {1})
    assert found == ([Absent("three", 2, 0.1)], [WORDS[1]], [WORDS[2]], 2)
    assert list(found.notes(WORDS)) == [
        "1 word was not said and has no times: 'three' after 1.00 s",
        "1 word may not have been said: 'two' at 0.60 s",
        "speech that is not in the text, marked *: 1.00 to 1.50 s",
    ]
    two = Deviations([], WORDS[:2], [], 0)
    assert list(two.notes(WORDS)) == ["2 words may not have been said: 'one' at 0.00 s, 'two' at 0.60 s"]
    assert list(Deviations([], [], [], 0).notes(WORDS)) == []
