"""Text to words, each with its position in the source and its spoken form."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from isotone.text import number_words, numbers
from isotone.text.languages import iso_code

Case = Literal["lower", "upper", "keep"]

_CHUNK = re.compile(r"\S+")
# Marks that end a word without a space; a single hyphen does not ("well-known" is one word).
_BREAK = re.compile(r"(?<=\w)(?:--+|\.\.\.+|[\u2012-\u2015\u2026])(?=\w)")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u2018\u02bc\uff07`\u00b4\u2032", "'"))


class TextError(ValueError):
    """A text cannot be turned into labels; the message names the part and the remedy."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text.

    Attributes:
        text: The word as written, with its punctuation: ``source[start:end]``.
        normal: The word as spoken: letters, inner apostrophes, and single spaces where one written word is spoken as
            several ("42", "well-known"). Never empty.
        start, end: Position in the source, in characters.
    """

    text: str
    normal: str
    start: int
    end: int


def split_words(text: str, *, case: Case = "lower", language: str = "en") -> tuple[Word, ...]:
    """Split a text into words at its spaces and at dashes between words.

    Punctuation on its own belongs to the word before it, or else to the first word. So the words cover every character
    of the source that is not a space, unless there are no words.

    Args:
        text: Any text.
        case: Case of :attr:`Word.normal`; ``"keep"`` leaves it.
        language: ISO code. In English digits, money, ``%`` and ``&`` are written out. In other languages whole numbers
            are (:func:`isotone.text.number_words.spell_numbers`), other digits stay, and the signs are dropped.

    Returns:
        The words in order; their spans do not overlap. Empty if nothing can be spoken.

    Raises:
        ValueError: no such case.

    Example:
        >>> [(w.text, w.normal) for w in split_words("“Well – it’s 5%!”")]
        [('“Well –', 'well'), ('it’s', "it's"), ('5%!”', 'five percent')]
    """
    spans = [(a, b) for chunk in _CHUNK.finditer(text) for a, b in _pieces(text, chunk.start(), chunk.end())]
    spoken = _spoken([text[a:b] for a, b in spans], language)
    words: list[tuple[int, int, str]] = []
    waiting: int | None = None  # start of punctuation before the first word
    for (start, end), plain in zip(spans, spoken):
        normal = _letters(plain)
        if normal:
            words.append((start if waiting is None else waiting, end, _cased(normal, case)))
            waiting = None
        elif words:
            words[-1] = (words[-1][0], end, words[-1][2])
        elif waiting is None:
            waiting = start
    return tuple(Word(text[a:b], normal, a, b) for a, b, normal in words)


def normalize(text: str, *, case: Case = "lower", language: str = "en") -> str:
    """Return a text as spoken: the normal forms of its words, separated by single spaces.

    Args:
        text: Any text.
        case: See :func:`split_words`.
        language: See :func:`split_words`.
    """
    return " ".join(w.normal for w in split_words(text, case=case, language=language))


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Split a chunk without spaces at its dashes; a dash belongs to the part before it."""
    cuts = [m.end() for m in _BREAK.finditer(text, start, end)]
    return list(zip([start, *cuts], [*cuts, end]))


def _spoken(pieces: list[str], language: str) -> list[str]:
    """Resolve the compatibility characters of pieces and write their numbers out."""
    plain = [_compatible(p) for p in pieces]
    if iso_code(language) != "en":
        return number_words.spell_numbers(plain, language)
    out: list[str] = []
    owed: str | None = None  # currency to be named after the magnitude: "$3 million" ends in dollars
    for i, piece in enumerate(plain):
        following = _letters(plain[i + 1]).lower() if i + 1 < len(plain) else ""
        amount = numbers.currency(piece) if following in numbers.MAGNITUDES else None
        words = numbers.spell(piece, before_magnitude=amount is not None)
        out.append(words if owed is None else f"{words} {owed}")
        owed = amount
    return out


def _compatible(text: str) -> str:
    """Apply NFKC and unify apostrophes; a fraction is separated from digits before it (5½ is not 51/2)."""
    text = text.translate(_APOSTROPHES)
    if not text.isascii():
        text = "".join(f" {c}" if unicodedata.decomposition(c).startswith("<fraction>") else c for c in text)
    return unicodedata.normalize("NFKC", text)


def _letters(text: str) -> str:
    """Keep letters, marks, digits and apostrophes between them; the rest separates words or is dropped."""
    if not text.isalpha():
        text = "".join(c if c == "'" or unicodedata.category(c)[0] in "LMN" else _gap(c) for c in text)
    parts = (p.strip("'") for p in text.split())
    return " ".join(p for p in parts if any(c.isalnum() for c in p))


def _gap(character: str) -> str:
    """Return the replacement of an unspoken character: a space, or nothing for invisible ones (soft hyphen)."""
    invisible = unicodedata.category(character)[0] == "C" and not character.isspace()
    return "" if invisible else " "


def _cased(text: str, case: Case) -> str:
    if case == "keep":
        return text
    if case == "lower":
        return text.lower()
    if case == "upper":
        return text.upper()
    raise ValueError(f"The case of words is 'lower', 'upper' or 'keep'; got {case!r}.")
