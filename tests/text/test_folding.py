"""Letters are folded into a smaller alphabet; other characters are not."""

# ruff: noqa: RUF001
from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.text.folding import bare, fold

LATIN = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("character", "known", "form"),
    [
        ("é", LATIN, "e"), ("É", LATIN, "e"), ("é", LATIN.upper(), "E"), ("ế", LATIN, "e"), ("ế", LATIN + "ê", "e"),
        ("ß", LATIN, "ss"), ("ẞ", LATIN.upper(), "SS"), ("œ", LATIN, "oe"), ("Ø", LATIN, "o"), ("ﬁ", LATIN, "fi"),
        ("é", ["e", "\u0301"], "e\u0301"), ("Z", LATIN, "z"), ("z", LATIN.upper(), "Z"), ("ё", "абвгде", "е"),
        ("\u0301", LATIN, ""), ("ά", "αβ", "α"), ("ß", "s", "ss"),
        ("Ω", LATIN, None), ("你", LATIN, None), ("é", "abc", None), ("ß", "abc", None), ("4", LATIN, None),
        ("\u0e38", LATIN, None), ("\u093f", LATIN, None),  # vowel signs of Thai and Hindi are not accents
    ],
)  # fmt: skip
def test_letters(character: str, known: str | list[str], form: str | None) -> None:
    assert fold(character, known) == form


def test_words() -> None:
    assert [bare(w) for w in ("Café", "naïve", "Œuvre", "straße", "plain")] == [
        "cafe", "naive", "oeuvre", "strasse", "plain",
    ]  # fmt: skip


@given(character=st.characters())
def test_what_comes_out_is_of_the_alphabet(character: str) -> None:
    form = fold(character, LATIN)
    assert form is None or {*form} <= {*LATIN}
    if form == "":
        assert unicodedata.category(character)[0] == "M"
