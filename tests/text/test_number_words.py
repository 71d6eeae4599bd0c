"""Numbers are spelled in the language of the text or not at all."""

from __future__ import annotations

import importlib.util

import pytest

from isotone.text.normalize import normalize

needs_num2words = pytest.mark.skipif(
    importlib.util.find_spec("num2words") is None, reason="needs the optional package num2words"
)


@pytest.mark.parametrize("language", ["en", "eng", "en-GB", "EN"])
def test_english_by_any_of_its_codes(language: str) -> None:
    assert normalize("21 & 5%", language=language) == "twenty one and five percent"


@pytest.mark.parametrize("language", ["", "xx", "enm"])
def test_digits_stay_where_the_language_is_not_known(language: str) -> None:
    """Not even a language whose code begins like that of English is read as English."""
    assert normalize("21 Straßen & 3,50 €", language=language) == "21 straßen 3 50"


def test_digits_stay_without_num2words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "num2words", None)
    # Finnish is in no other test: a language is looked up once per process
    assert normalize("21 taloa", language="fi") == "21 taloa"


@needs_num2words
@pytest.mark.parametrize(
    ("text", "language", "spoken"),
    [
        ("21 Straßen, (12) und 42.", "deu", "einundzwanzig straßen zwölf und zweiundvierzig"),
        ("21 rues en 1984", "fr-CA", "vingt et un rues en mille neuf cent quatre vingt quatre"),
        ("5 dní", "ces", "pět dní"),
        # numbers with several readings keep their digits: decimals, units, ordinals, years, parts of words
        ("3,50 € 5 % 5€ 1.000 am 21. Mai 1984 2-3 10:30 B52 21-jährige", "de",
         "3 50 5 5 1 000 am 21 mai 1984 2 3 10 30 b52 21 jährige"),
        ("21", "xx", "21"),
        ("007 1000000000000", "de", "007 1000000000000"),
    ],
)  # fmt: skip
def test_whole_numbers_of_other_languages(text: str, language: str, spoken: str) -> None:
    assert normalize(text, language=language) == spoken
