"""Phones read as words: against an enumeration of all parses, and through the tokenizer."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.text.lexicon import Lexicon
from isotone.text.pronounce import Dictionary
from isotone.text.tokenizer import PhoneTokenizer, build_tokenizer, load

DIGITS = {
    "zero": "z ih r ow", "one": "w ah n", "two": "t uw", "three": "th r iy", "six": "s ih k s", "eight": "ey t",
}  # fmt: skip
LEXICON = Lexicon({word: said.split() for word, said in DIGITS.items()}, "sil")


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the Levenshtein distance in which a silence never replaces another phone."""

    def cost(x: str, y: str) -> int:
        return 0 if x == y else 2 if y == "sil" else 1

    @functools.cache
    def rest(i: int, j: int) -> int:
        if i == len(a) or j == len(b):
            return len(a) - i + len(b) - j
        return min(rest(i + 1, j) + 1, rest(i, j + 1) + 1, rest(i + 1, j + 1) + cost(a[i], b[j]))

    return rest(0, 0)


def parse(phones: str) -> list[tuple[str, int, int]]:
    return LEXICON.parse(phones.split())


def between(phones: Sequence[str]) -> int:
    return sum(phone != "sil" for phone in phones)


def cheapest(lexicon: Lexicon, phones: tuple[str, ...]) -> int:
    """Return the lowest cost over all parses."""

    @functools.cache
    def rest(i: int) -> int:
        if i == len(phones):
            return 0
        options = [between(phones[i : i + 1]) + rest(i + 1)]
        for said in lexicon.pronunciations.values():
            options += [distance(said, phones[i:j]) + rest(j) for j in range(i + 1, len(phones) + 1)]
        return min(options)

    return rest(0)


@given(
    st.dictionaries(
        st.sampled_from("UVWXYZ"), st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1
    ),
    st.lists(st.sampled_from(["a", "b", "c", "d", "sil"]), max_size=9),
)
@settings(deadline=None, max_examples=150)
def test_no_parse_needs_fewer_changes(words: dict[str, list[str]], phones: list[str]) -> None:
    lexicon = Lexicon(words, "sil")
    cost, place = 0, 0
    for word, first, end in lexicon.parse(phones):
        assert place <= first < end <= len(phones)
        cost += between(phones[place:first]) + distance(words[word], phones[first:end])
        place = end
    assert cost + between(phones[place:]) == cheapest(lexicon, tuple(phones))


@given(st.lists(st.sampled_from(sorted(DIGITS)), max_size=6), st.lists(st.booleans(), min_size=7, max_size=7))
@settings(deadline=None, max_examples=50)
def test_what_is_said_as_it_should_be_is_read(words: list[str], pauses: list[bool]) -> None:
    phones, expected = [], []
    for word, pause in zip(words, pauses):
        phones += ["sil"] * pause
        expected.append((word, len(phones), len(phones) + len(DIGITS[word].split())))
        phones += DIGITS[word].split()
    assert LEXICON.parse(phones) == expected


def test_what_is_not_said_quite_so() -> None:
    assert parse("sil z ih ow w ah n sil uw sil") == [
        ("zero", 1, 4), ("one", 4, 7), ("two", 8, 9),
    ]  # fmt: skip
    assert parse("s ih sil k s") == [("six", 0, 5)]  # the closure of a stop
    assert parse("sil sil") == []
    assert parse("") == []
    assert parse("never heard") == [("two", 0, 2)]  # nothing is nearer
    for wrong in ({}, {"a": []}):
        with pytest.raises(ValueError, match="A lexicon has words"):
            Lexicon(wrong)


@pytest.fixture
def dictionary(tmp_path: Path) -> Dictionary:
    (tmp_path / "words.dict").write_text("".join(f"{word} {said}\n" for word, said in DIGITS.items()))
    return Dictionary(tmp_path / "words.dict")


def rows(*texts: str) -> list[dict]:
    none = {"label": [], "start": [], "end": []}
    return [{"id": str(i), "text": text, "phones": none, "words": none} for i, text in enumerate(texts)]


def test_a_tokenizer_of_texts_alone(dictionary: Dictionary, tmp_path: Path) -> None:
    built = build_tokenizer(
        "phones",
        rows("Two six", "six, one!"),
        pronouncer=dictionary,
        silence="sil",
        pauses=True,
        lexicon=True,
    )
    assert built.labels == ["<pad>", "ah", "ih", "k", "n", "s", "sil", "t", "uw", "w"]
    built.save(tmp_path / "saved")
    for tokenizer in (built, load(tmp_path / "saved")):
        assert tokenizer.has_words
        said = tokenizer.encode_row(rows("one, two")[0])
        assert " ".join(tokenizer.labels[i] for i in said.tokens) == "sil w ah n sil t uw sil"
        assert said.token_words == (None, 0, 0, 0, None, 1, 1, None)
        assert tokenizer.words(said.tokens) == [("one", 1, 4), ("two", 5, 7)]
        assert tokenizer.decode(said.tokens) == "one two"
        assert [tokenizer.writes(i) for i in range(3)] == [False, True, True]


def test_the_closure_that_begins_a_word_is_in_the_pause(tmp_path: Path) -> None:
    (tmp_path / "words.dict").write_text("two sil t uw\neight ey sil t\n")
    tokenizer = build_tokenizer(
        "phones", rows("two eight"), pronouncer=Dictionary(tmp_path / "words.dict"), silence="sil", pauses=True,
        lexicon=True,
    )  # fmt: skip
    said = tokenizer.encode("two eight two")
    assert " ".join(tokenizer.labels[i] for i in said.tokens) == "sil t uw sil ey sil t sil t uw sil"
    assert said.token_words == (None, 0, 0, None, 1, 1, 1, None, 2, 2, None)
    assert tokenizer.words(said.tokens) == [("two", 1, 3), ("eight", 4, 7), ("two", 8, 10)]


def test_without_pauses_and_lexicon_phones_are_the_text(dictionary: Dictionary, tmp_path: Path) -> None:
    built = build_tokenizer("phones", iter(rows("two six")), pronouncer=dictionary, silence="sil")
    built.save(tmp_path / "saved")
    for tokenizer in (built, load(tmp_path / "saved")):
        assert not tokenizer.has_words
        said = tokenizer.encode("two six").tokens
        assert tokenizer.decode(said) == "sil t uw s ih k s sil"
        assert tokenizer.words(said) == []


def test_what_a_tokenizer_of_phones_needs(dictionary: Dictionary) -> None:
    for options in ({}, {"lexicon": True}):
        with pytest.raises(ValueError, match="got no pronouncer"):
            build_tokenizer("phones", rows("two"), **options)
    with pytest.raises(ValueError, match="Pauses between words are silences"):
        build_tokenizer("phones", rows("two"), pronouncer=dictionary, pauses=True)
    with pytest.raises(ValueError, match="'seven'"):
        build_tokenizer("phones", rows("seven"), pronouncer=dictionary)
    with pytest.raises(ValueError, match="Pauses between words are silences"):
        PhoneTokenizer(["<pad>", "a"], pauses=True)
