"""English readings of signs, alone, between numbers and between words; letters stay as they are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from isotone.text.ways import spaced

#: Punctuation around a written form.
EDGES = "\"'`.,;:!?()[]{}<>\u00ab\u00bb\u201c\u201d\u201e\u2039\u203a\u2026\u00a1\u00bf*_|\u2013\u2014\u2012-"
#: Names of signs beside or without a number.
SIGNS = {
    "%": ("percent",), "&": ("and", "ampersand"), "$": ("dollars", "dollar"), "£": ("pounds", "pound"),
    "€": ("euros", "euro"), "¥": ("yen",), "\u00a2": ("cents",), "\u00b0": ("degrees", "degree"), "@": ("at",),
    "\u00b1": ("plus or minus",), "\u00d7": ("times", "by"), "\u00f7": ("divided by",), "\u00a7": ("section",),
    "\u2030": ("per mille",), "\u2264": ("less than or equal to", "at most"),
    "\u2265": ("greater than or equal to", "at least"),
    "\u2260": ("is not equal to", "does not equal", "not equal to"), "\u221e": ("infinity",),
    "\u221a": ("the square root of", "square root of", "root"),
}  # fmt: skip
#: The same of signs that mean something else elsewhere.
BETWEEN = {
    "-": ("to", "", "dash", "minus", "through"), "/": ("", "or", "slash", "and", "per"), ".": ("", "dot", "point"),
    "+": ("plus", "and"), "=": ("equals", "is"), "<": ("less than", "is less than", "under"),
    ">": ("greater than", "is greater than", "more than", "over"), "*": ("times", "star", ""),
    "~": ("about", "approximately", "around", ""), "\u2248": ("approximately", "about", "is approximately"),
    "\u2212": ("minus",),
}  # fmt: skip
_HASH = ("number", "hashtag", "pound", "")
_AFTER_NUMBER = r"(?:(?<=\d)|(?<=\d[A-Za-z%])|(?<=\d[A-Za-z]{2}))"
_SIGN = re.compile(
    r"[%&@\u00a2\u00b0\u00b1\u00d7\u00f7\u00a7\u2030\u2248\u2260\u2264\u2265\u221a\u221e]"
    r"|(?<!\w)[$£€¥](?!\w)|(?<=[\w)%])\++(?!\w)|(?<=\w)\+(?=\w)|(?<!\S)\+(?=[\d.$£€])"
    rf"|(?<=\w)[=*](?=\w)|(?<!\w)#(?=\d)|(?<=\b[A-G])#|{_AFTER_NUMBER}[-\u2013/](?=[$£€]?\d)"
    r"|(?<=[\w)])/(?=[^\W\d_])|(?<=[^\W\d_])\.(?=[^\W\d_]{2})|(?<![\w.])\.(?=[^\W\d_])|(?<=\de)[-\u2212](?=\d)"
    r"|(?<![^\s(])[<>](?=[\d.])|(?<=\w)[<>](?=[\d.])|~(?=[$£€]?\d)"
)
# a Greek letter alone: words of them are Greek
_GREEK = re.compile(r"(?<![^\W\d_])[\u0391-\u03a9\u03b1-\u03c9](?![^\W\d_])")
_CAPITALS = re.compile(r"(?<![A-Z\d_])[A-Z]{2,5}\b")


def signs(text: str, start: int, end: int, shouted: bool) -> list[Sequence[str]]:
    """List the parts of a stretch without numbers: letters as they are, and the readings of signs."""
    parts: list[Sequence[str]] = []
    # not finditer(text, start, end): what follows the end counts
    while (match := _SIGN.search(text, start)) and match.end() <= end:
        parts += [_lettered(text[start : match.start()], shouted), spaced(_ways(text, match))]
        start = match.end()
    return [*parts, _lettered(text[start:end], shouted)]


def alone(core: str, before: str, after: str) -> list[str]:
    """List the readings of a sign that stands alone between numbers or single letters; none elsewhere."""
    if core not in BETWEEN or core in "-/.*~" or not (before and after):
        return []
    beside = (before.strip(EDGES), after.strip(EDGES))
    return list(BETWEEN[core]) if any(len(b) == 1 or b[:1].isdigit() for b in beside) else []


def _ways(text: str, match: re.Match[str]) -> Sequence[str]:
    """List the readings of a sign at its place."""
    sign, before, after = match[0], text[: match.start()], text[match.end() :]
    if sign == "#":
        return _HASH if after[:1].isdigit() else ("sharp", "hashtag", "")
    if sign == "." and not before[-1:].isalpha():
        return ("dot", "point", "")
    if sign == "/" and after[:1].isalpha() and any(c.isdigit() for c in before):
        return ("per", "a", "an", "", "slash", "or")
    if sign in "-\u2212" and before[-1:] == "e":
        return ("minus", "negative")
    if sign == "+" and not before:
        return ("plus", "")
    if set(sign) == {"+"} and not after[:1].isalnum():
        return (
            " ".join("plus" for _ in sign),
            *["and"][: len(sign) == 1],
            *["or more"][: before[-1:] in "0123456789)%"],
        )
    return SIGNS.get(sign) or BETWEEN["-" if sign == "\u2013" else sign]


def _lettered(text: str, shouted: bool) -> Sequence[str]:
    """List the readings of a stretch without signs: as it is, and letter by letter where it is in capitals."""
    if not text.isascii():
        text = _GREEK.sub(lambda match: f" {_greek(match[0])} ", text)
    capitals = _CAPITALS.sub(lambda match: " " + " ".join(match[0]), text)
    return (text,) if shouted or capitals == text else (text, capitals)


def _greek(letter: str) -> str:
    return unicodedata.name(letter).split()[-1].lower().replace("lamda", "lambda")
