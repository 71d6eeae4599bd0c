"""Text to words, each with its place in the source and the form in which it is spoken."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from isotone.text import number_words, numbers
from isotone.text.languages import iso_code

Case = Literal["lower", "upper", "keep"]

_CHUNK = re.compile(r"\S+")
# Marks that end a word although no space follows; a single hyphen does not ("well-known" is one word).
_BREAK = re.compile(r"(?<=\w)(?:--+|\.\.\.+|[\u2012-\u2015\u2026])(?=\w)")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u2018\u02bc\uff07`\u00b4\u2032", "'"))


class TextError(ValueError):
    """A text cannot be turned into labels; the message says which part and what to do."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text.

    Attributes:
        text: The word as written, with its punctuation: ``source[start:end]``.
        normal: The word as spoken: letters, inner apostrophes and, where a word is written together but
            spoken apart ("42", "well-known"), single spaces. Never empty.
        start, end: Characters from the start of the source.
    """

    text: str
    normal: str
    start: int
    end: int


def split_words(text: str, *, case: Case = "lower", language: str = "en") -> tuple[Word, ...]:
    """Split a text at its spaces (and at dashes between words) into words.

    Punctuation that stands alone belongs to the word before it, or to the first word, so that the words hold
    every character of the source that is not a space, unless there is no word at all.

    Args:
        text: Any text.
        case: Case of :attr:`Word.normal`; ``"keep"`` leaves it.
        language: ISO code. Digits, money, ``%`` and ``&`` of English are written out; of other languages whole numbers,
            see :func:`isotone.text.number_words.spell_numbers`, other digits stay and the signs are dropped.

    Returns:
        The words in order; their places do not overlap. Empty where nothing can be spoken.

    Raises:
        ValueError: no such case.

    Example:
        >>> [(w.text, w.normal) for w in split_words("“Well – it’s 5%!”")]
        [('“Well –', 'well'), ('it’s', "it's"), ('5%!”', 'five percent')]
    """
    spans = [(a, b) for chunk in _CHUNK.finditer(text) for a, b in _pieces(text, chunk.start(), chunk.end())]
    spoken = _spoken([text[a:b] for a, b in spans], language)
    words: list[tuple[int, int, str]] = []
    waiting: int | None = None  # where punctuation before the first word begins
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
    """A text as spoken: the normal forms of its words, one space apart.

    Args:
        text: Any text.
        case: See :func:`split_words`.
        language: See :func:`split_words`.
    """
    return " ".join(w.normal for w in split_words(text, case=case, language=language))


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Parts of a stretch without spaces; a dash belongs to the part before it."""
    cuts = [m.end() for m in _BREAK.finditer(text, start, end)]
    return list(zip([start, *cuts], [*cuts, end]))


def _spoken(pieces: list[str], language: str) -> list[str]:
    """Pieces with compatibility characters resolved and numbers written out."""
    plain = [_compatible(p) for p in pieces]
    if iso_code(language) != "en":
        return number_words.spell_numbers(plain, language)
    out: list[str] = []
    owed: str | None = None  # a currency to be named after the magnitude that follows its amount
    for i, piece in enumerate(plain):
        following = _letters(plain[i + 1]).lower() if i + 1 < len(plain) else ""
        amount = numbers.currency(piece) if following in numbers.MAGNITUDES else None
        said = numbers.spell(piece, before_magnitude=amount is not None)
        out.append(said if owed is None else f"{said} {owed}")
        owed = amount
    return out


def _compatible(text: str) -> str:
    """NFKC and one apostrophe; a fraction keeps apart from digits before it (5½ is not 51/2)."""
    text = text.translate(_APOSTROPHES)
    if not text.isascii():
        text = "".join(f" {c}" if unicodedata.decomposition(c).startswith("<fraction>") else c for c in text)
    return unicodedata.normalize("NFKC", text)


def _letters(text: str) -> str:
    """Letters, marks, digits and apostrophes between them; everything else separates or is dropped."""
    if not text.isalpha():
        text = "".join(c if c == "'" or unicodedata.category(c)[0] in "LMN" else _gap(c) for c in text)
    parts = (p.strip("'") for p in text.split())
    return " ".join(p for p in parts if any(c.isalnum() for c in p))


def _gap(character: str) -> str:
    """What stands for a character that is not spoken: nothing for invisible ones, such as the soft hyphen."""
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
