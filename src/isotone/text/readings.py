"""Readings of English written forms: numbers, money, times, dates, abbreviations, addresses and signs, in words.

A written form such as ``1984`` or ``Dr.`` can be read in several ways. All of them are listed, the likeliest first; an
aligner chooses by the audio.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from isotone.text import amounts, clock, web
from isotone.text.abbreviations import ABBREVIATIONS, abbreviated, calendar, initials, month, numeral
from isotone.text.expressions import EXPRESSION, Around, expression
from isotone.text.numbers import whole
from isotone.text.signs import EDGES, alone, signs
from isotone.text.ways import MOST_READINGS, combined, distinct, spaced

#: Words with nothing in them to read in another way.
_PLAIN = re.compile(r"(?!.*[A-Z]{2})[^\W\d_]+(?:['-][^\W\d_]+)*")
#: What makes a plain word one of :func:`_unusual` ones.
_UNUSUAL = re.compile(
    r"(?<![\w.])\.[^\W\d_]|'n'|[\u0370-\u03ff]|^\W*(?:[ivx]{2,6}|[IVX])\b|^[A-F][-\u2212]|^[A-Z][a-z]+\.?[-\u2013/][A-Z]"
    r"|\u2013$"
)
_DASHES = "\u2013\u2014-"
_NUMBER_AFTER = re.compile(r"[$£€¥]?\d")
_MONEY = "$£€¥₹₩₽"
# thousands apart by a space: 10 000
_FIRST_GROUP, _GROUP = re.compile(r"[1-9]\d?\d?"), re.compile(r"\d{3}")
# two amounts with the sign before the first alone: $5-10
_AMOUNTS = re.compile(rf"([{_MONEY}])(\d[\d,.]*)-(?=\d)")
_DOLLARS = re.compile(r"(US|CA?|AU?|NZ|HK|S)(?=\$[\d.])")
_OF_DOLLARS = {
    "U": "u s",
    "C": "canadian",
    "A": "australian",
    "N": "new zealand",
    "H": "hong kong",
    "S": "singapore",
}
_DAYS = re.compile(r"([A-Z][a-z]+)\.?[-\u2013/]([A-Z][a-z]+)")
# an abbreviation that touches its number or its word: No.5, St.Louis, v2.0
_TOUCHING = re.compile(r"([^\W\d_]{2,6}|[pP])\.(\d.*|(?<![pP]\.)[A-Z].*)|([vV])\.?(\d.*)")


def readings(piece: str, around: Around = Around()) -> list[str]:  # noqa: B008 - a tuple
    """List the readings of a written form, the likeliest first, at most :data:`isotone.text.ways.MOST_READINGS`.

    Args:
        piece: A part of a text between spaces, compatibility-normalised (NFKC), with its punctuation, and ``^`` before
            digits that are raised.
        around: What is beside it.

    Returns:
        One reading or more. They hold words, and the punctuation that is between them.
    """
    core = piece.strip(EDGES)
    if units := _after_number(core, around):
        return units
    if not core:
        return alone(piece, around.before, around.after) or [piece]
    if _PLAIN.fullmatch(core) and core.lower() not in ABBREVIATIONS:
        if _UNUSUAL.search(piece) and (found := _unusual(piece, core, around)):
            return found[:MOST_READINGS]
        return [f"{piece} {owed}"] if (owed := _owed(core, around)) else [piece]
    point = piece[piece.index(core) + len(core) :].startswith(".")
    listed = (
        (len(core) == 1 and numeral(core, around.before))
        or _days(piece, core, around)
        or abbreviated(core, point, around.before, around.after)
        or numeral(core, around.before)
        or initials(core, around.shouted)
        or web.address(core)
        or web.tag(core)
        or _day(core, around)
        or alone(core, around.before, around.after)
        or _touching(core, piece[piece.index(core) + len(core) :], around)
        or _amounts(piece, around)
    )
    return (listed or _scanned(piece, around))[:MOST_READINGS]


def _unusual(piece: str, core: str, around: Around) -> list[str]:
    """List the readings of a word without digits or signs in it that is more than itself; none for other words."""
    if found := numeral(core, around.before):
        return found
    if "'n'" in core:
        return [core, *(core.replace("'n'", f" {link} ") for link in ("n", "and"))]
    if len(core) == 1 and piece[1:2] in ("-", "\u2212"):
        return [f"{core} minus", core]
    return _days(piece, core, around) or _scanned(piece, around)


def _days(piece: str, core: str, around: Around) -> list[str]:
    """List the readings of a day of the week or a month in a range, or beside a number: Mon-Fri, Jan–Mar, Dec 25."""
    if match := _DAYS.fullmatch(core):
        first, last = calendar(match[1]), calendar(match[2])
        return combined([first, (" to ", " ", " through "), last]) if first and last else []
    if not (named := calendar(core)):
        return []
    if piece[-1] == "\u2013" and calendar(around.after.strip(EDGES)):
        return [*(f"{name} to" for name in named), *named]
    beside = around.before[-1:] == "\u2013" or any(
        side.strip(EDGES)[:1].isdigit() for side in (around.before, around.after)
    )
    return named if beside else []


def _touching(core: str, end: str, around: Around) -> list[str]:
    """List the readings of an abbreviation and what follows it without a space; none for other words."""
    if not (match := _TOUCHING.fullmatch(core)):
        return []
    if match[3]:
        return combined([("v ", "version "), readings(match[4] + end)])
    found = abbreviated(match[1], True, around.before, match[2])
    return combined([spaced(found), readings(match[2] + end, Around("", around.after))]) if found else []


def _amounts(piece: str, around: Around) -> list[str]:
    """List the readings of amounts of money whose currency is written before, and said after: $5-10, US$5."""
    if match := _AMOUNTS.search(piece):
        last = f"{match[2]}-{match[1]}"
        return _both(piece[: match.start()] + last + piece[match.end() :], piece, around)
    if match := _DOLLARS.search(piece):
        name = _OF_DOLLARS[match[1][0]]
        plain = _scanned(piece[: match.start()] + piece[match.end() :], around)
        return [
            *(way.replace("dollar", f"{name} dollar") for way in plain[:4]),
            *plain[:6],
            *_scanned(piece, around)[:4],
        ]
    if piece[0] in _MONEY and piece[-1] in _DASHES and around.after[:1].isdigit():
        return _both(piece[1:], piece, around)
    if around.before[:1] in (*_MONEY,) and around.before[-1] in _DASHES and piece[:1].isdigit():
        return _both(around.before[0] + piece, piece, around._replace(before=""))
    return []


def _both(likely: str, piece: str, around: Around) -> list[str]:
    return distinct([*_scanned(likely, around)[:12], *_scanned(piece, around)])


def _owed(core: str, around: Around) -> str:
    """Return the currency of an amount before a magnitude, which is said after it: "$3 million"."""
    if not amounts.magnitude(core):
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
    if not number[-1:].isdigit() or not core or core in ("A", "a", "I", "p", "c", "x"):
        return amounts.unit(core) if number in ("sq", "cu") else []
    if core in ("sq", "cu"):
        return ["square" if core == "sq" else "cubic"]
    found = amounts.unit(core, one=number == "1")
    if core in amounts.LETTERS and (not found or _owed(core, around)):
        found = [f"{amounts.LETTERS[core]} {_owed(core, around)}".strip(), *found]
    if _GROUP.fullmatch(core) and _FIRST_GROUP.fullmatch(around.before):
        rest = whole(str(int(core)))[:3] if int(core) else [""]
        thousand = [f"thousand {words}".strip() for words in rest]
        return distinct([*whole(core)[:4], *thousand] if int(core) else [*thousand, *whole(core)])
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


def _scanned(piece: str, around: Around) -> list[str]:
    """List the readings of a written form with numbers or signs in it; letters stay as they are."""
    parts: list[Sequence[str]] = []
    now = 0
    for match in EXPRESSION.finditer(piece):
        parts += [*signs(piece, now, match.start(), around.shouted), spaced(expression(match, around))]
        now = match.end()
    parts += signs(piece, now, len(piece), around.shouted)
    if piece[-1:] in _DASHES and _NUMBER_AFTER.match(around.after) and any(c.isdigit() for c in piece):
        parts.append((" to", "", " through") if piece[-1:] == "\u2013" else ("", " to"))
    return combined(parts)
