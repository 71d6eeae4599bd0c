"""Text to words, each with its position in the source and its spoken form."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from isotone.text import number_words
from isotone.text.languages import iso_code
from isotone.text.readings import Around, readings
from isotone.text.rules import Rules
from isotone.text.ways import distinct

Case = Literal["lower", "upper", "keep"]

_CHUNK = re.compile(r"\S+")
# Marks that end a word without a space; a single hyphen does not ("well-known" is one word).
_BREAK = re.compile(r"(?<=\w)(?:--+|\.\.\.+|[\u2012-\u2015\u2026])(?=\w)")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u2018\u02bc\uff07`\u00b4\u2032", "'"))
# signs that NFKC would turn into letters of the word beside them
_NAMED = {0x2122: " ", 0x2120: " ", 0x2116: " number ", 0x2033: '"'}
_RAISED = re.compile("[\u00b9\u00b2\u00b3\u2070\u2074-\u2079\u207b]+")


class TextError(ValueError):
    """A text cannot be turned into labels; the message names the part and the remedy."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text.

    Attributes:
        text: The word as written, with its punctuation: ``source[start:end]``.
        normal: The word as spoken: letters, inner apostrophes, and single spaces where one written word is spoken as
            several ("42", "well-known"). Never empty. It is the likeliest reading.
        start, end: Position in the source, in characters.
        others: Other readings, in the form of ``normal``, the likelier ones first.
    """

    text: str
    normal: str
    start: int
    end: int
    others: tuple[str, ...] = ()

    @property
    def readings(self) -> tuple[str, ...]:
        """All readings, the likeliest first."""
        return (self.normal, *self.others)


def split_words(
    text: str, *, case: Case = "lower", language: str = "en", rules: Rules | None = None
) -> tuple[Word, ...]:
    """Split a text into words at its spaces and at dashes between words.

    Punctuation on its own belongs to the word before it. To the word after it belong opening marks, what begins a line
    (the dash of a dialogue), and what comes before the first word. So the words cover every character of the source
    that is not a space, unless there are no words.

    Args:
        text: Any text.
        case: Case of :attr:`Word.normal`; ``"keep"`` leaves it.
        language: ISO code. In English numbers, signs, abbreviations and addresses have the readings of
            :mod:`isotone.text.readings`. In other languages whole numbers are written out
            (:func:`isotone.text.number_words.spell_numbers`), other digits stay, and signs are dropped.
        rules: Readings of a user's own, which come before those of the language.

    Returns:
        The words in order; their spans do not overlap. Empty if nothing can be spoken.

    Raises:
        ValueError: no such case.

    Example:
        >>> [(w.text, w.normal) for w in split_words("“Well – it’s 5%!”")]
        [('“Well –', 'well'), ('it’s', "it's"), ('5%!”', 'five percent')]
    """
    spans = [(a, b) for chunk in _CHUNK.finditer(text) for a, b in _pieces(text, chunk.start(), chunk.end())]
    spoken = _spoken([text[a:b] for a, b in spans], language, rules)
    words: list[tuple[int, int, list[str]]] = []
    waiting: int | None = None  # start of punctuation that belongs to the next word
    for (start, end), ways in zip(spans, spoken):
        said = distinct([_cased(_letters(way), case) for way in ways])
        if said:
            words.append((start if waiting is None else waiting, end, said))
            waiting = None
        elif waiting is None and (not words or _leads(text, words[-1][1], start, end)):
            waiting = start
        elif waiting is None:
            words[-1] = (words[-1][0], end, words[-1][2])
    if waiting is not None and words:
        words[-1] = (words[-1][0], spans[-1][1], words[-1][2])
    return tuple(Word(text[a:b], said[0], a, b, tuple(said[1:])) for a, b, said in words)


def _leads(text: str, before: int, start: int, end: int) -> bool:
    """Return whether punctuation belongs to what is after it, given the end of the word before it."""
    opens = all(unicodedata.category(c) in ("Ps", "Pi") for c in text[start:end])
    after = re.compile(r"\s*").match(text, end)
    return opens or ("\n" in text[before:start] and after is not None and "\n" not in after[0])


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


def _spoken(pieces: list[str], language: str, rules: Rules | None) -> list[list[str]]:
    """List the readings of every piece: those of the rules, else those of the language."""
    english = iso_code(language) == "en"
    plain = [_compatible(_RAISED.sub(r"^\g<0>", p) if english and not p.isascii() else p) for p in pieces]
    if english:
        shouted = not any(c.islower() for p in plain for c in p)
        beside = zip(["", *plain[:-1]], [*plain[1:], ""])
        ways = [readings(p, Around(*two, shouted)) for p, two in zip(plain, beside)]
    else:
        ways = [[words] for words in number_words.spell_numbers(plain, language)]
    return ways if rules is None else [rules.readings(p) or way for p, way in zip(pieces, ways)]


def _compatible(text: str) -> str:
    """Apply NFKC and unify apostrophes; a fraction is separated from digits before it (5½ is not 51/2)."""
    text = text.translate(_APOSTROPHES).translate(_NAMED)
    if not text.isascii():
        text = "".join(f" {c}" if unicodedata.decomposition(c).startswith("<fraction>") else c for c in text)
    return unicodedata.normalize("NFKC", text)


def _letters(text: str) -> str:
    """Keep letters, marks, digits and apostrophes between them; the rest separates words or is dropped."""
    if text.isascii():
        text = text.translate(_ASCII)
    elif not text.isalpha():
        text = "".join(map(_spoken_as, text))
    parts = (p.strip("'") for p in text.split())
    return " ".join(p for p in parts if p.isalnum() or any(c.isalnum() for c in p))


def _spoken_as(character: str) -> str:
    """Return a character that is spoken; for others a space, or nothing for invisible ones (soft hyphen)."""
    kind = unicodedata.category(character)[0]
    if kind in "LMN" or character == "'":
        return character
    return "" if kind == "C" and not character.isspace() else " "


_ASCII = {code: _spoken_as(chr(code)) for code in range(128)}


def _cased(text: str, case: Case) -> str:
    if case == "keep":
        return text
    if case == "lower":
        return text.lower()
    if case == "upper":
        return text.upper()
    raise ValueError(f"The case of words is 'lower', 'upper' or 'keep'; got {case!r}.")
