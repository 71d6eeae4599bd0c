"""English readings of expressions with digits: numbers and what belongs to them, times, dates, scores, sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from isotone.text import amounts, clock
from isotone.text.numbers import cardinal, digits, ordinal, whole
from isotone.text.signs import EDGES, SIGNS
from isotone.text.ways import combined, distinct, spaced

_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)|\d+"
_SUFFIX = (
    r"[ap]\.m\b\.?|%|\u2030|\u00b0[CF]?|(?:(?:k?m|ft)\^?2|m\^?3)(?!\w)|[^\W\d_]{1,4}(?:/[hs])?(?!\w)|\u00a2"
    r"|(?<!\d{3})[\"'](?!\w)"
)
#: A number with its sign, currency, ending or unit, or an expression of several numbers.
EXPRESSION = re.compile(
    rf"(?<![\w-])(?P<iso>\d{{4}}-\d\d?-\d\d?)(?![\w-])"
    rf"|(?<![\w/.])(?P<date>\d{{1,2}}(?:/\d{{1,2}}/(?:\d{{4}}|\d\d)|(?P<mark>[.-])\d{{1,2}}(?P=mark)\d{{4}}))(?![\w/])"
    rf"|(?<![\w.])(?P<phone>(?:\+?\d{{1,2}}[-.])?(?:\(?\d{{3}}\)?[-.])?\d{{3}}[-.]\d{{4}})(?![\w])"
    rf"|(?<![\w-])(?P<code>\d+(?:-\d+){{2,}})(?![\w-])"
    rf"|(?<!\w)(?P<parts>\d+(?:(?:ft|lbs?|hrs?|h)\d\d?(?:in|mins?|m|oz)?|m(?:in)?\d\d?s(?:ecs?)?))(?!\w)"
    rf"|(?P<version>(?<![\d.])\d+(?:\.\d+){{2,}})"
    rf"|(?P<time>(?<!\d)\d{{1,2}}(?::[0-5]\d(?::[0-5]\d)?(?!\d|,\d{{3}})(?:[ap]\.?m\b\.?)?|\.[0-5]\d[ap]\.?m\b\.?))"
    rf"|(?P<score>(?<!\d)\d{{1,3}}:(?:{_NUMBER}))(?!\d)"
    rf"|(?P<slash>(?<![\d/])\d{{1,4}}/\d{{1,4}}(?:(?:th|rd|nd)s?\b)?)(?![\d/])"
    rf"|(?P<vulgar>(?:\d+\s+)?\d+\u2044\d+)|(?P<power>\^[-\u2212]?\d+)"
    rf"|(?P<size>(?<!\w)\d+[x\u00d7]\d+)(?!\w)"
    rf"|(?P<height>(?<!\w)\d'\d{{1,2}})(?!\d)"
    rf"|(?P<sign>(?<![\w.)%])[-\u2212])?(?P<money>[$£€¥₹₩₽])?"
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
    if match["power"]:
        return _power(match)
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
    elif suffix in _MARKS:
        ways = list(_MARKS[suffix])  # or the end of a quotation
    else:
        magnitude = amounts.LETTERS.get(key)
        plain = [] if suffix[-1].isdigit() else [letters, suffix]
        units = [*amounts.unit(suffix, one), magnitude or ""]
        ways = distinct([*plain, *units] if suffix in amounts.LIKELY_LETTERS else [*units, *plain])
    return combined([found[:6], [f" {way} " if way else "" for way in ways]])


def _money(match: re.Match[str], around: Around) -> list[str]:
    before = match["whole"] or match["cardinal"] or match["ordinal"] or match["plural"] or ""
    after, suffix = match["decimals"] or "", match["suffix"] or ""
    if amounts.magnitude(around.after.strip(EDGES)):
        return amounts.decimal(before, after) if after else whole(before)
    magnitude = amounts.LETTERS.get(suffix.lower(), "")
    found = amounts.money(match["money"], before, after, magnitude)
    return found if magnitude or not suffix else _with_suffix(found, suffix)


def _slash(text: str, around: Around) -> list[str]:
    top, bottom = re.findall(r"\d+", text)
    if not text[-1].isdigit():  # 2/3rds
        return amounts.parts(int(top), int(bottom)) or amounts.ratio(top, bottom)
    if not int(bottom):
        return [f"{whole(top)[0]} slash {whole(bottom)[0]}"]
    counted = around.before[-1:].isdigit()
    parts = amounts.ratio(top, bottom, counted)
    days = [*clock.month_day(int(top), int(bottom))[:4], *clock.month_day(int(bottom), int(top))[1:2]]
    return distinct([*parts[:6], *days, *parts[6:]])


def _phone(text: str) -> list[str]:
    groups = re.findall(r"\d+", text)
    named = [" ".join(digits(group, zero) for group in groups) for zero in ("zero", "oh")]
    named.append(" ".join(whole(g)[0] if g.endswith("00") else digits(g, "oh") for g in groups))
    paired = " ".join([*(digits(g, "oh") for g in groups[:-1]), whole(groups[-1])[0]])
    return distinct([*named, paired])


def _version(text: str) -> list[str]:
    parts = text.split(".")
    named = [f" {link} ".join(whole(part)[0] for part in parts) for link in ("point", "dot", "")]
    single = [" dot ".join(digits(part, zero) for part in parts) for zero in ("zero", "oh")]
    return distinct([*named, *single]) if any(len(part) > 1 for part in parts) else named


def _code(text: str) -> list[str]:
    """Read groups of digits with hyphens, as of a book's number."""
    groups = text.split("-")
    found = [
        f" {link} ".join(digits(g, zero) for g in groups) for link in ("", "dash") for zero in ("zero", "oh")
    ]
    numbers = [f" {link} ".join(whole(g)[0] for g in groups) for link in ("", "dash", "to")]
    return distinct(" ".join(words.split()) for words in (*found, *numbers))


def _power(match: re.Match[str]) -> list[str]:
    """Read an exponent; after a word it is the number of a note, which is not said."""
    negative, number = match[0][1] in "-\u2212", match[0].lstrip("^-\u2212")
    before, words = match.string[: match.start()], whole(number)
    if re.search(r"[A-Za-z]{2}[.,;:!?)\"']*$", before) or (number in "01" and before):
        return (
            ["", *spaced([*(_POWERS.get(number) or []), words[0]])] if before.isascii() else spaced(words[:1])
        )
    if negative or len(number) > 3:
        words = [f"minus {way}" for way in words] if negative else words
        return spaced(f"{link} {way}" for link in ("to the", "to the power of") for way in words[:2])
    if not re.search(r"(?:\d|(?<![^\W\d_])[^\W\d_])$", before):
        return spaced(words[:1])
    named = [f"to the {ordinal(int(number))}", f"to the {words[0]}", f"to the power of {words[0]}"]
    return [*spaced([*(_POWERS.get(number) or []), *named, f"{named[0]} power", words[0]]), ""]


def _clock(text: str) -> list[str]:
    """Read a time of the day, with or without a.m. or p.m."""
    found = clock.time(*re.findall(r"\d+", text))
    half = " ".join(re.findall("[apm]", text.lower()))
    return [f"{words} {half}".strip() for words in found if not half or "o'clock" not in words]


def _parts(text: str) -> list[str]:
    """Read amounts in two units, the second of which may be left out: 6ft2, 1h30."""
    first, unit, second, rest = re.findall(r"(\d+)([a-z]+)(\d+)([a-z]*)", text.lower())[0]
    smaller = rest or {"f": "in", "l": "oz", "h": "min"}[unit[0]]
    larger = amounts.unit(unit, first == "1") if unit != "m" else amounts.unit("min", first == "1")
    less = amounts.unit("min" if smaller == "m" else smaller, second == "1")[:2]
    tails = [less[0], "", less[1]] if rest else ["", *less]
    if unit == "ft":
        larger = ["foot", "feet"]
    found = combined(
        [whole(first)[:2], spaced(larger[:2]), whole(second)[:1], [f" {tail}" for tail in tails]]
    )
    if (unit, second, rest) == ("ft", "2", ""):
        found += combined([whole(first)[:2], spaced(amounts.unit("ft2")[:1])])
    return found


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


_POWERS = {"2": ["squared"], "3": ["cubed"]}
#: Feet and inches.
_MARKS = {"'": ("", "feet", "foot"), '"': ("", "inches", "inch")}
_READERS: dict[str, Callable[[str], list[str]]] = {
    "iso": lambda text: (
        clock.iso_date(*text.split("-")) or [" ".join(whole(part)[0] for part in text.split("-"))]
    ),
    "date": _date,
    "phone": _phone,
    "code": _code,
    "parts": _parts,
    "vulgar": lambda text: amounts.vulgar(*re.findall(r"\d+", text)),
    "version": _version,
    "time": _clock,
    "score": _pairs(":", ("to", "")),
    "size": _pairs("[x\u00d7X]", ("by", "times", "x")),
    "height": _height,
}
