"""English readings of expressions with digits: numbers and what belongs to them, times, dates, scores, sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from isotone.text import amounts, clock
from isotone.text.numbers import cardinal, digits, whole
from isotone.text.ways import combined, distinct, spaced

#: Punctuation around a written form.
EDGES = "\"'`.,;:!?()[]{}<>\u00ab\u00bb\u201c\u201d\u201e\u2039\u203a\u2026\u00a1\u00bf*_|\u2013\u2014\u2012-"
#: Names of signs beside or without a number.
SIGNS = {
    "%": ("percent",), "&": ("and", "ampersand"), "$": ("dollars", "dollar"), "£": ("pounds", "pound"),
    "€": ("euros", "euro"), "¥": ("yen",), "\u00a2": ("cents",), "\u00b0": ("degrees", "degree"), "@": ("at",),
    "\u00b1": ("plus or minus",), "\u00d7": ("times", "by"), "\u00f7": ("divided by",), "\u00a7": ("section",),
    "\u2030": ("per mille",),
}  # fmt: skip
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)|\d+"
_SUFFIX = r"[ap]\.m\b\.?|%|\u2030|\u00b0[CF]?|(?:(?:k?m|ft)2|m3)(?!\w)|[^\W\d_]{1,4}(?:/[hs])?(?!\w)|\u00a2"
#: A number with its sign, currency, ending or unit, or an expression of several numbers.
EXPRESSION = re.compile(
    rf"(?<![\w-])(?P<iso>\d{{4}}-\d\d?-\d\d?)(?![\w-])"
    rf"|(?<![\w/.])(?P<date>\d{{1,2}}(?:/\d{{1,2}}/(?:\d{{4}}|\d\d)|(?P<mark>[.-])\d{{1,2}}(?P=mark)\d{{4}}))(?![\w/])"
    rf"|(?<![\w.])(?P<phone>(?:\+?\d{{1,2}}[-.])?(?:\(?\d{{3}}\)?[-.])?\d{{3}}[-.]\d{{4}})(?![\w])"
    rf"|(?P<version>(?<![\d.])\d+(?:\.\d+){{2,}})"
    rf"|(?P<time>(?<!\d)\d{{1,2}}:[0-5]\d(?::[0-5]\d)?)(?!\d)"
    rf"|(?P<score>(?<!\d)\d{{1,3}}:\d{{1,3}})(?!\d)"
    rf"|(?P<slash>(?<![\d/])\d{{1,4}}/\d{{1,4}})(?![\d/])"
    rf"|(?P<size>(?<!\w)\d+[x\u00d7]\d+)(?!\w)"
    rf"|(?P<height>(?<!\w)\d'\d{{1,2}})(?!\d)"
    rf"|(?P<sign>(?<![\w.)])[-\u2212])?(?P<money>[$£€¥₹₩₽])?"
    rf"(?:(?:(?<!\d\.)(?P<whole>{_NUMBER})|(?<![\w.]))\.(?P<decimals>\d+)(?!\.?\d)"
    rf"|(?P<ordinal>{_NUMBER})(?:st|nd|rd|th)(?![^\W\d_])"
    rf"|(?P<plural>{_NUMBER})'?s(?![^\W\d_])"
    rf"|(?P<cardinal>{_NUMBER}))(?P<suffix>{_SUFFIX})?",
    re.IGNORECASE | re.ASCII,
)


class Around(NamedTuple):
    """The words beside a written form, as written, empty at the ends; and True for a text without small letters."""

    before: str = ""
    after: str = ""
    shouted: bool = False


def expression(match: re.Match[str], around: Around) -> list[str]:
    """List the readings of a number with what belongs to it."""
    if reader := _READERS.get(match.lastgroup or ""):
        return reader(match[0])
    if match["slash"]:
        return _slash(match[0], around)
    if match["money"]:
        found = _money(match, around)
    else:
        found = _number(match)
    if match["sign"]:
        found = [f"{sign} {words}" for sign in ("minus", "negative") for words in found]
    return distinct(found)


def _number(match: re.Match[str]) -> list[str]:
    if match["decimals"]:
        found = amounts.decimal(match["whole"] or "", match["decimals"])
    elif match["ordinal"]:
        found = amounts.ranks(match["ordinal"])
    elif match["plural"]:
        found = amounts.decades(match["plural"])
        if len(match["plural"]) < 4:
            found += combined([whole(match["plural"])[:2], (" seconds", " s")])
    else:
        found = whole(match["cardinal"], single=not match["suffix"])
    if match.string[: match.start()][-1:].isalpha() and match["suffix"]:
        letters = re.sub(r"\d", lambda digit: f" {digits(digit[0])}", match["suffix"])  # A5m2 is no area
        return [f"{words} {letters}" for words in found]
    return _with_suffix(found, match["suffix"], match["cardinal"] == "1")


def _with_suffix(found: list[str], suffix: str | None, one: bool = False) -> list[str]:
    """Add the readings of letters or a sign that follow a number without a space."""
    if not suffix:
        return found
    key = suffix.replace(".", "").lower()
    letters = " ".join(suffix) if len(suffix) < 3 else suffix
    if key in ("am", "pm"):
        ways = [" ".join(key)]
    elif suffix in SIGNS:
        ways = list(SIGNS[suffix])
    else:
        magnitude = amounts.LETTERS.get(key)
        plain = [] if suffix[-1].isdigit() else [letters, suffix]
        ways = distinct([*amounts.unit(suffix, one), magnitude or "", *plain])
    return combined([found[:6], spaced(ways)])


def _money(match: re.Match[str], around: Around) -> list[str]:
    before = match["whole"] or match["cardinal"] or match["ordinal"] or match["plural"] or ""
    after, suffix = match["decimals"] or "", match["suffix"] or ""
    if around.after.strip(EDGES).lower() in amounts.MAGNITUDES:
        return amounts.decimal(before, after) if after else whole(before)
    magnitude = amounts.LETTERS.get(suffix.lower(), "")
    found = amounts.money(match["money"], before, after, magnitude)
    return found if magnitude or not suffix else _with_suffix(found, suffix)


def _slash(text: str, around: Around) -> list[str]:
    top, bottom = text.split("/")
    if not int(bottom):
        return [f"{whole(top)[0]} slash {whole(bottom)[0]}"]
    counted = around.before[-1:].isdigit()
    parts = amounts.ratio(top, bottom, counted)
    days = [*clock.month_day(int(top), int(bottom))[:4], *clock.month_day(int(bottom), int(top))[1:2]]
    return distinct([*parts[:6], *days, *parts[6:]])


def _phone(text: str) -> list[str]:
    groups = re.findall(r"\d+", text)
    named = [" ".join(digits(group, zero) for group in groups) for zero in ("zero", "oh")]
    paired = " ".join([*(digits(g, "oh") for g in groups[:-1]), whole(groups[-1])[0]])
    return distinct([*named, paired])


def _version(text: str) -> list[str]:
    parts = text.split(".")
    return [f" {link} ".join(whole(part)[0] for part in parts) for link in ("point", "dot", "")]


def _pairs(mark: str, links: Sequence[str]) -> Callable[[str], list[str]]:
    """Make a reader of two numbers with a mark between them."""

    def read(text: str) -> list[str]:
        first, second = re.split(mark, text)
        return combined([whole(first)[:3], spaced(links), whole(second)[:3]])

    return read


def _height(text: str) -> list[str]:
    feet, inches = (cardinal(int(part)) for part in text.split("'"))
    inch = "inch" if inches == "one" else "inches"
    return [
        f"{feet} foot {inches}",
        f"{feet} feet {inches} {inch}",
        f"{feet} {inches}",
        f"{feet} foot {inches} {inch}",
    ]


def _date(text: str) -> list[str]:
    first, second, last = re.findall(r"\d+", text)
    return clock.date(first, second, last, text[len(first)])


_READERS: dict[str, Callable[[str], list[str]]] = {
    "iso": lambda text: (
        clock.iso_date(*text.split("-")) or [" ".join(whole(part)[0] for part in text.split("-"))]
    ),
    "date": _date,
    "phone": _phone,
    "version": _version,
    "time": lambda text: clock.time(*text.split(":")),
    "score": _pairs(":", ("to", "")),
    "size": _pairs("[x\u00d7X]", ("by", "times", "x")),
    "height": _height,
}
