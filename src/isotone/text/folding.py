"""Letters as a smaller alphabet has them: without accents, ligatures as letters."""

# ruff: noqa: RUF001
from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterator

#: Letters that Unicode does not decompose, in lower case.
_PLAIN = {
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ð": "d", "đ": "d", "þ": "th", "ł": "l", "ħ": "h", "ŧ": "t", "ı": "i",
    "ŋ": "ng",
}  # fmt: skip


def fold(character: str, known: Container[str]) -> str | None:
    """Characters of an alphabet that stand for one which it does not have.

    The first of these of which the alphabet has every character: its canonical decomposition, the other case, the
    letter without its accents, the letters of a ligature. A combining mark alone is left out.

    Args:
        character: One that the alphabet lacks.
        known: The alphabet.

    Returns:
        The characters, an empty string for a combining mark; None where there are none.

    Example:
        >>> fold("é", "abcde"), fold("É", "abcde"), fold("ß", "rst"), fold("Ω", "abc")
        ('e', 'e', 'ss', None)
    """
    if unicodedata.name(character, "").startswith("COMBINING "):
        return ""
    return next((form for form in _forms(character) if all(c in known for c in form)), None)


def bare(word: str) -> str:
    """A word without accents, its ligatures as letters; in lower case.

    Example:
        >>> bare("Œuvre"), bare("naïve")
        ('oeuvre', 'naive')
    """
    return "".join(_PLAIN.get(c, c) for c in _without_marks(word.lower()))


def _forms(character: str) -> Iterator[str]:
    yield unicodedata.normalize("NFD", character)
    for form in (character, _without_marks(character), bare(character)):
        if form:
            yield from (form, form.lower(), form.upper())


def _without_marks(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
