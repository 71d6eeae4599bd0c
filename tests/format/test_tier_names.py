"""Tiers are found by their names in other tools."""

from __future__ import annotations

import pytest

from isotone.alignment import Alignment, AlignmentError, Segment, Tier
from isotone.format.tier_names import find_tier, parse_name, standard_name


def alignment(**tiers: list[tuple[str, float, float]]) -> Alignment:
    return Alignment("u", 9.0, tuple(Tier(name, [Segment(*s) for s in rows]) for name, rows in tiers.items()))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("words", ("words", "")), (" Word", ("words", "")), ("WRD", ("words", "")), ("ORT-MAU", ("words", "")),
        ("Phoneme", ("phones", "")), ("MAU", ("phones", "")), ("PhonAlign", ("phones", "")),
        ("Mary Ann - words", ("words", "mary ann")), ("A - B - Phone", ("phones", "a - b")),
        ("Mary/word", ("words", "mary")), ("wd@A", ("words", "a")),
        ("Syllables", ("syllable", "")), ("A - syllable", ("syllable", "a")), ("KAN-MAU", ("kan-mau", "")),
        ("utterances", ("utterance", "")), ("crosswords", ("crossword", "")), ("", ("", "")),
    ],
)  # fmt: skip
def test_names_are_parsed(name: str, expected: tuple[str, str]) -> None:
    assert parse_name(name) == expected


def test_standard_names_are_words_and_phones_and_others_stay() -> None:
    assert [standard_name(n) for n in ("Bob - Word", "MAU", "Syllables")] == ["words", "phones", "Syllables"]


def test_a_tier_of_that_very_name_comes_first() -> None:
    both = alignment(Word=[("one", 0, 1)], words=[("two", 0, 1)])
    assert find_tier(both, "words") == Tier("words", (Segment("two", 0, 1),))
    assert find_tier(both, "Word") == Tier("words", (Segment("one", 0, 1),))
    with pytest.raises(AlignmentError, match="'Word' and 'words' all stand for 'wrd'"):
        find_tier(both, "wrd")
    assert find_tier(both, "phones") is None


def test_speakers_who_take_turns_become_one_tier() -> None:
    turns = alignment(
        **{
            "A - words": [("one", 0, 1), ("sil", 1, 2.5), ("three", 2.5, 3)],
            "A - phones": [("w", 0, 1)],
            "B - words": [("sp", 0, 1), ("two", 1, 2)],
        }
    )
    merged = Tier("words", (Segment("one", 0, 1), Segment("two", 1, 2), Segment("three", 2.5, 3)))
    assert find_tier(turns, "words") == merged
    assert find_tier(turns, "b - word") == Tier("words", (Segment("sp", 0, 1), Segment("two", 1, 2)))
    assert find_tier(turns, "phones") == Tier("phones", (Segment("w", 0, 1),))
    assert find_tier(turns, "C - words") is None


def test_speakers_who_overlap_are_an_error_that_says_when() -> None:
    both = alignment(**{"A - words": [("one", 0, 1)], "B - words": [("two", 0.9, 2)]})
    with pytest.raises(
        AlignmentError, match=r"'A - words' and 'B - words' overlap \('one' ends at 1 s, 'two'"
    ):
        find_tier(both, "words")
    close = alignment(**{"A - words": [("one", 0, 1 + 1e-8)], "B - words": [("two", 1, 2)]})
    assert find_tier(close, "words") is not None, "rounding is no overlap"


def test_a_tier_that_names_no_speaker_is_anybodys() -> None:
    plain = alignment(Words=[("one", 0, 1)])
    assert find_tier(plain, "A - words") == Tier("words", (Segment("one", 0, 1),))
