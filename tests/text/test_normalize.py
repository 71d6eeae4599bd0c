"""Words keep their positions in the source; spoken forms have letters only; numbers are spelled out."""

# ruff: noqa: RUF001
from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isotone.text.normalize import normalize, split_words
from isotone.text.numbers import cardinal, digits, fraction, ordinal

# both plausible and arbitrary text
SIGNS = list(" \t\n'’‘-–—….,:;!?\"«»()[]%&$£€#@/*+=½²ﬁé€0123456789abcABCßıİ\u200b\u00ad")
lively = st.text(st.one_of(st.characters(), st.sampled_from(SIGNS)), max_size=60)

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
UNITS = {word: i for i, word in enumerate(SMALL.split())}
UNITS |= {word: 10 * i for i, word in enumerate(TENS.split(), 2)}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}


def value(words: str) -> int:
    """Return the value of an English number in words, as an independent inverse of spelling."""
    total = part = 0
    for word in words.split():
        if word == "hundred":
            part *= 100
        elif word in SCALES:
            total, part = total + part * SCALES[word], 0
        else:
            part += UNITS[word]
    return total + part


@settings(max_examples=300, deadline=None)
@given(text=lively, case=st.sampled_from(["lower", "upper", "keep"]), language=st.sampled_from(["en", "de"]))
@example(text="5½", case="lower", language="en")
@example(text="\ud800 a\ud800b", case="lower", language="en")
@example(text="¨´", case="keep", language="en")
@example(text="$" * 5 + "1" * 40 + "%:00", case="keep", language="en")
def test_any_text(text: str, case: str, language: str) -> None:
    words = split_words(text, case=case, language=language)
    place = 0
    for word in words:
        assert place <= word.start < word.end <= len(text)
        assert text[word.start : word.end] == word.text
        assert not text[place : word.start].strip()
        assert word.text == word.text.strip()
        place = word.end
        assert word.normal
        assert word.normal == " ".join(word.normal.split())
        # letters, marks, numbers and inner apostrophes
        assert all(c in " '" or unicodedata.category(c)[0] in "LMN" for c in word.normal)
        assert not any(p.startswith("'") or p.endswith("'") for p in word.normal.split())
    if words:
        assert not text[place:].strip()
    else:
        assert not any(c.isascii() and c.isalnum() for c in text)
    if language == "en":
        assert not any(c.isascii() and c.isdigit() for w in words for c in w.normal)
    assert normalize(text, case=case, language=language) == " ".join(w.normal for w in words)


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.sampled_from("abc dé'"), max_size=40))
def test_normalizing_again_changes_nothing(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once


@settings(max_examples=100, deadline=None)
@given(text=lively)
def test_case(text: str) -> None:
    kept = normalize(text, case="keep")
    assert normalize(text, case="lower") == kept.lower()
    assert normalize(text, case="upper") == kept.upper()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, world!", [("Hello,", "hello"), ("world!", "world")]),
        (
            "It’s the dogs’ ‘bone’.",
            [("It’s", "it's"), ("the", "the"), ("dogs’", "dogs"), ("‘bone’.", "bone")],
        ),
        ("O'Brien's rock'n'roll", [("O'Brien's", "o'brien's"), ("rock'n'roll", "rock'n'roll")]),
        ("well-known", [("well-known", "well known")]),
        ("yes—no... maybe", [("yes—", "yes"), ("no...", "no"), ("maybe", "maybe")]),
        ("wait...what", [("wait...", "wait"), ("what", "what")]),
        ("« Bonjour » !", [("« Bonjour » !", "bonjour")]),
        ("and / or", [("and /", "and"), ("or", "or")]),
        ("and/or", [("and/or", "and or")]),
        ("so\u00adft ﬁne Ⅷ", [("so\u00adft", "soft"), ("ﬁne", "fine"), ("Ⅷ", "eight")]),
        ("🙂 hi 🙂", [("🙂 hi 🙂", "hi")]),
        ("Straße café", [("Straße", "straße"), ("café", "café")]),
        ("cafe\u0301", [("cafe\u0301", "café")]),
        ("...", []),
        ("", []),
    ],
)
def test_words(text: str, words: list[tuple[str, str]]) -> None:
    assert [(w.text, w.normal) for w in split_words(text)] == words


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("42", "forty two"),
        ("1984", "nineteen eighty four"),
        ("1,234,567", "one million two hundred thirty four thousand five hundred sixty seven"),
        ("007", "zero zero seven"),
        ("3.14", "three point one four"),
        ("0.5 .5", "zero point five point five"),
        ("It was 5.", "it was five"),
        ("1st 2nd 3rd 22nd 30th 112TH", "first second third twenty second thirtieth one hundred twelfth"),
        ("the 1980s, '90s", "the nineteen eighties nineties"),
        ("$5 $1 $1.00", "five dollars one dollar one dollar"),
        ("$5.50 £2.01", "five dollars and fifty cents two pounds and one penny"),
        ("£0.20, $.50; €3.5", "twenty pence fifty cents three point five euros"),
        ("$3.5 million.", "three point five million dollars"),
        ("50% 2.5% 50 %", "fifty percent two point five percent fifty percent"),
        ("-5 5-6", "minus five five to six"),
        ("R&D & more", "r and d and more"),
        ("10:30 9:05 8:00", "ten thirty nine oh five eight o'clock"),
        ("mp3 B2B", "mp three b two b"),
        ("5½ ¾ 2⅓", "five and a half three quarters two and a third"),
        ("v1.2.3", "v one point two point three"),
        ("0", "zero"),
        ("paid in $ or €", "paid in dollars or euros"),
        ("1000000000000000", "one" + " zero" * 15),
    ],
)  # fmt: skip
def test_english_numbers(text: str, spoken: str) -> None:
    assert normalize(text) == spoken


def test_digits_stay_in_other_languages() -> None:
    assert normalize("42 % von 3.5", language="de") == "42 von 3 5"
    assert normalize("٣", language="en") == "٣"


@settings(max_examples=300, deadline=None)
@given(number=st.one_of(st.integers(0, 10**15 - 1), st.integers(0, 3000)))
def test_cardinals_mean_their_number(number: int) -> None:
    assert value(cardinal(number)) == number
    (word,) = split_words(str(number))
    assert cardinal(number) in word.readings
    assert word.normal == cardinal(number) or 1100 <= number < 2100
    assert normalize(f"{number:,}") == cardinal(number)


@settings(max_examples=100, deadline=None)
@given(number=st.integers(1, 10**9))
def test_ordinals_end_like_their_digits(number: int) -> None:
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number // 10 % 10 != 1 else 0, "th")
    assert ordinal(number).endswith(suffix)
    assert normalize(f"{number}{suffix}") == ordinal(number)
    assert ordinal(number).split()[:-1] == cardinal(number).split()[:-1]


def test_joined_cardinals() -> None:
    """British English has ``and`` before tens and ones."""
    for number in (5, 100, 105, 1005, 1105, 1_000_005, 2_105_042):
        joined = cardinal(number, joined=True)
        assert joined.replace(" and", "") == cardinal(number)
        assert joined.count(" and ") == {5: 0, 100: 0, 2_105_042: 2}.get(number, 1)


def test_number_pieces() -> None:
    assert [ordinal(n) for n in (5, 8, 9, 12, 20, 21)] == [
        "fifth", "eighth", "ninth", "twelfth", "twentieth", "twenty first",
    ]  # fmt: skip
    assert [fraction(a, b) for a, b in ((1, 2), (3, 2), (1, 4), (2, 3))] == [
        "one half", "three halves", "one quarter", "two thirds",
    ]  # fmt: skip
    assert cardinal(-7) == "minus seven"
    assert digits("10") == "one zero"


def test_unknown_case() -> None:
    with pytest.raises(ValueError, match="'lower', 'upper' or 'keep'; got 'title'"):
        split_words("a", case="title")
