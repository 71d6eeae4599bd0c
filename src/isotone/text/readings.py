"""Readings of English written forms: numbers, money, times, dates, abbreviations, addresses and signs, in words.

A written form such as ``1984`` or ``Dr.`` can be read in several ways. All of them are listed, the likeliest first; an
aligner chooses by the audio.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from isotone.text import amounts, clock, web
from isotone.text.abbreviations import ABBREVIATIONS, abbreviated, initials, month, numeral
from isotone.text.expressions import EDGES, EXPRESSION, SIGNS, Around, expression
from isotone.text.numbers import fraction, whole
from isotone.text.ways import MOST_READINGS, combined, distinct, spaced

#: Words with nothing in them to read in another way.
_PLAIN = re.compile(r"(?!.*[A-Z]{2})[^\W\d_]+(?:['-][^\W\d_]+)*")
_FRACTION = re.compile(r"(\d\s*)?(?<!\d)(\d+)\u2044(\d+)", re.ASCII)
_SIGN = re.compile(
    r"[%&@\u00a2\u00b0\u00b1\u00d7\u00f7\u00a7\u2030]|(?<!\w)[$£€¥](?!\w)|(?<=[\w)])\++(?!\w)|(?<=\w)\+(?=\w)"
    r"|(?<=\w)=(?=\w)|(?<!\w)#(?=\d)|(?<=\d)[-/](?=[$£€]?\d)|(?<=[^\W\d_])/(?=[^\W\d_])|(?<=[^\W\d_])\.(?=[^\W\d_]{2})"
)
_BETWEEN = {
    "-": ("to", "", "dash", "minus", "through"), "/": ("", "or", "slash", "and", "per"), ".": ("", "dot", "point"),
    "+": ("plus", "and"), "=": ("equals", "is"), "#": ("number", "hashtag", "pound", ""),
}  # fmt: skip


def readings(piece: str, around: Around = Around()) -> list[str]:  # noqa: B008 - a tuple
    """List the readings of a written form, the likeliest first, at most :data:`isotone.text.ways.MOST_READINGS`.

    Args:
        piece: A part of a text between spaces, compatibility-normalised (NFKC), with its punctuation.
        around: What is beside it.

    Returns:
        One reading or more. They hold words, and the punctuation that is between them.
    """
    core = piece.strip(EDGES)
    if units := _after_number(core, around):
        return units
    if not core or (_PLAIN.fullmatch(core) and core.lower() not in ABBREVIATIONS):
        return [f"{piece} {_owed(core, around)}"] if _owed(core, around) else [piece]
    point = piece[piece.index(core) + len(core) :].startswith(".")
    listed = (
        abbreviated(core, point, around.before, around.after)
        or numeral(core)
        or initials(core, around.shouted)
        or web.address(core)
        or web.tag(core)
        or _day(core, around)
        or _lone_sign(core, around)
    )
    return (listed or _scanned(piece, around))[:MOST_READINGS]


def _owed(core: str, around: Around) -> str:
    """Return the currency of an amount before a magnitude, which is said after it: "$3 million"."""
    if core.lower() not in amounts.MAGNITUDES:
        return ""
    match = EXPRESSION.search(around.before)
    return (
        amounts.MONEY[match["money"]][0] + "s" * (match["money"] in "$£€₹₽")
        if match and match["money"]
        else ""
    )


def _after_number(core: str, around: Around) -> list[str]:
    """List the readings of a unit that stands apart from its number."""
    number = around.before.strip(EDGES)
    if not number[-1:].isdigit() or not core or core in ("A", "a", "I"):
        return []
    found = amounts.unit(core, one=number == "1")
    if core == "in":
        return [core.lower(), *found]
    name = found and len(core) > 1 and core.istitle()
    return [*found, core.lower()] if name else found  # "in 2008 Gal said", "at 7 Pa left"


def _day(core: str, around: Around) -> list[str]:
    """List the readings of a day beside the name of its month."""
    if not (core.isascii() and core.isdigit() and len(core) < 3 and 1 <= int(core) <= 31):
        return []
    if month(around.before):
        return distinct([*clock.days(core), *whole(core)])
    if month(around.after):
        days = clock.days(core)
        return distinct([f"{days[2]} of", f"{days[0]} of", *days])
    return []


def _lone_sign(core: str, around: Around) -> list[str]:
    """List the readings of ``+`` and ``=`` alone, which are spoken between numbers or single letters."""
    if core not in ("+", "=") or not (around.before and around.after):
        return []
    beside = (around.before.strip(EDGES), around.after.strip(EDGES))
    return list(_BETWEEN[core]) if any(len(b) == 1 or b[:1].isdigit() for b in beside) else []


def _scanned(piece: str, around: Around) -> list[str]:
    """List the readings of a written form with numbers or signs in it; letters stay as they are."""
    text = _FRACTION.sub(
        lambda m: f"{m[1] or ''}{' and' if m[1] else ''} {fraction(int(m[2]), int(m[3]))} ", piece
    )
    parts: list[Sequence[str]] = []
    now = 0
    for match in EXPRESSION.finditer(text):
        parts += [*_signs(text, now, match.start(), around.shouted), spaced(expression(match, around))]
        now = match.end()
    parts += _signs(text, now, len(text), around.shouted)
    if text[-1:] in "\u2013\u2014-" and text[-2:-1].isdigit() and around.after[:1].isdigit():
        parts.append(("", " to"))
    return combined(parts)


def _signs(text: str, start: int, end: int, shouted: bool) -> list[Sequence[str]]:
    """List the parts of a stretch without numbers: letters as they are, and the readings of signs."""
    parts: list[Sequence[str]] = []
    # not finditer(text, start, end): what follows the end counts
    while (match := _SIGN.search(text, start)) and match.end() <= end:
        sign = match[0]
        ways = SIGNS.get(sign) or _BETWEEN.get(sign) or (" ".join("plus" for _ in sign),)
        parts += [_lettered(text[start : match.start()], shouted), spaced(ways)]
        start = match.end()
    return [*parts, _lettered(text[start:end], shouted)]


def _lettered(text: str, shouted: bool) -> Sequence[str]:
    """List the readings of a stretch without signs: as it is, and letter by letter where it is in capitals."""
    capitals = re.sub(r"\b[A-Z]{2,5}\b", lambda match: " ".join(match[0]), text)
    return (text,) if shouted or capitals == text else (text, capitals)
