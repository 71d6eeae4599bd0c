"""Folding of characters into a smaller alphabet: accents are removed, ligatures become letters."""

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
    """Replace a character that an alphabet does not have by characters that it has.

    The replacement is the first of these forms whose characters are all in the alphabet: the canonical decomposition,
    the other case, the letter without its accents, the letters of a ligature.

    Args:
        character: A character that is not in the alphabet.
        known: The alphabet.

    Returns:
        The characters, an empty string for a combining mark alone; None if no form fits.

    Example:
        >>> fold("é", "abcde"), fold("É", "abcde"), fold("ß", "rst"), fold("Ω", "abc")
        ('e', 'e', 'ss', None)
    """
    if unicodedata.name(character, "").startswith("COMBINING "):
        return ""
    return next((form for form in _forms(character) if all(c in known for c in form)), None)


def bare(word: str) -> str:
    """Return a word in lower case without accents, with ligatures as letters.

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
