"""Readings of English written forms: numbers, money, times, dates, abbreviations, addresses and signs, in words.

A written form such as ``1984`` or ``Dr.`` can be read in several ways. All of them are listed, the likeliest first; an
aligner chooses by the audio.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from isotone.text import amounts, clock, web
from isotone.text.abbreviations import ABBREVIATIONS, abbreviated, initials, month, numeral
from isotone.text.numbers import cardinal, digits, distinct, fraction, whole

#: Readings of a written form, at most.
MOST_READINGS = 16


class Around(NamedTuple):
    """The words beside a written form, as written, empty at the ends; and True for a text without small letters."""

    before: str = ""
    after: str = ""
    shouted: bool = False


_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)|\d+"
_SUFFIX = r"[ap]\.m\b\.?|%|\u2030|\u00b0[CF]?|(?:[kc]?m|ft)[23](?!\w)|[^\W\d_]{1,4}(?:/[hs])?(?!\w)|\u00a2"
_EXPRESSION = re.compile(
    rf"(?<![\w-])(?P<iso>\d{{4}}-\d\d?-\d\d?)(?![\w-])"
    rf"|(?<![\w/.])(?P<date>\d{{1,2}}(?:/\d{{1,2}}/(?:\d{{4}}|\d\d)|\d{{1,2}}(?P<mark>[.-])\d{{1,2}}(?P=mark)\d{{4}}))(?![\w/])"
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
#: Words with nothing in them to read in another way.
_PLAIN = re.compile(r"(?!.*[A-Z]{2})[^\W\d_]+(?:['-][^\W\d_]+)*")
_FRACTION = re.compile(r"(\d\s*)?(?<!\d)(\d+)\u2044(\d+)", re.ASCII)
_EDGES = (
    "\"'`.,;:!?()[]{}<>\u00ab\u00bb\u201c\u201d\u201e\u2039\u203a\u2026\u00a1\u00bf*_|\u2013\u2014\u2012-"
)
_SIGNS = {
    "%": ("percent",), "&": ("and", "ampersand"), "$": ("dollars", "dollar"), "£": ("pounds", "pound"), "€": ("euros", "euro"),
    "¥": ("yen",), "\u00a2": ("cents",), "\u00b0": ("degrees", "degree"), "@": ("at",), "\u00b1": ("plus or minus",),
    "\u00d7": ("times", "by"), "\u00f7": ("divided by",), "\u00a7": ("section",), "\u2030": ("per mille",),
}  # fmt: skip
_SIGN = re.compile(
    r"[%&@\u00a2\u00b0\u00b1\u00d7\u00f7\u00a7\u2030]|(?<!\w)[$£€¥](?!\w)|(?<=[\w)])\++(?!\w)|(?<=\w)\+(?=\w)"
    r"|(?<=\w)=(?=\w)|(?<!\w)#(?=\d)|(?<=\d)[-/](?=[$£€]?\d)|(?<=[^\W\d_])/(?=[^\W\d_])|(?<=[^\W\d_])\.(?=[^\W\d_]{2})"
)
_BETWEEN = {
    "-": ("to", "", "dash", "minus", "through"), "/": ("", "or", "slash", "and", "per"), ".": ("", "dot", "point"),
    "+": ("plus", "and"), "=": ("equals", "is"), "#": ("number", "hashtag", "pound", ""),
}  # fmt: skip


def readings(piece: str, around: Around = Around()) -> list[str]:  # noqa: B008 - a tuple
    """List the readings of a written form, the likeliest first, at most :data:`MOST_READINGS`.

    Args:
        piece: A part of a text between spaces, compatibility-normalised (NFKC), with its punctuation.
        around: What is beside it.

    Returns:
        One reading or more. They hold words, and the punctuation that is between them.
    """
    core = piece.strip(_EDGES)
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


def combined(parts: Iterable[Sequence[str]]) -> list[str]:
    """List the combinations of the readings of neighbouring parts: those with the likeliest parts first."""
    found = [("", 0)]
    for part in parts:
        longer = [(before + now, rank + i) for before, rank in found for i, now in enumerate(part)]
        found = sorted(longer, key=lambda one: one[1])[: 2 * MOST_READINGS]
    return distinct([words for words, _ in found])


def _owed(core: str, around: Around) -> str:
    """Return the currency of an amount before a magnitude, which is said after it: "$3 million"."""
    if core.lower() not in amounts.MAGNITUDES:
        return ""
    match = _EXPRESSION.search(around.before)
    return (
        amounts.MONEY[match["money"]][0] + "s" * (match["money"] in "$£€₹₽")
        if match and match["money"]
        else ""
    )


def _after_number(core: str, around: Around) -> list[str]:
    """List the readings of a unit that stands apart from its number."""
    number = around.before.strip(_EDGES)
    if not number[-1:].isdigit() or not core or core in ("A", "a", "I"):
        return []
    found = amounts.unit(core, one=number == "1")
    return [core.lower(), *found] if core == "in" else found


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
    beside = (around.before.strip(_EDGES), around.after.strip(_EDGES))
    return list(_BETWEEN[core]) if any(len(b) == 1 or b[:1].isdigit() for b in beside) else []


def _scanned(piece: str, around: Around) -> list[str]:
    """List the readings of a written form with numbers or signs in it; letters stay as they are."""
    text = _FRACTION.sub(
        lambda m: f"{m[1] or ''}{' and' if m[1] else ''} {fraction(int(m[2]), int(m[3]))} ", piece
    )
    parts: list[Sequence[str]] = []
    now = 0
    for match in _EXPRESSION.finditer(text):
        parts += [*_signs(text, now, match.start()), _spaced(_expression(match, around))]
        now = match.end()
    parts += _signs(text, now, len(text))
    if text[-1:] in "\u2013\u2014-" and text[-2:-1].isdigit() and around.after[:1].isdigit():
        parts.append(("", " to"))
    return combined(parts)


def _signs(text: str, start: int, end: int) -> list[Sequence[str]]:
    """List the parts of a stretch without numbers: letters as they are, and the readings of signs."""
    parts: list[Sequence[str]] = []
    # not finditer(text, start, end): what follows the end counts
    while (match := _SIGN.search(text, start)) and match.end() <= end:
        sign = match[0]
        ways = _SIGNS.get(sign) or _BETWEEN.get(sign) or (" ".join("plus" for _ in sign),)
        parts += [_lettered(text[start : match.start()]), _spaced(ways)]
        start = match.end()
    return [*parts, _lettered(text[start:end])]


def _lettered(text: str) -> Sequence[str]:
    """List the readings of a stretch without signs: as it is, and letter by letter where it is in capitals."""
    capitals = re.sub(r"\b[A-Z]{2,5}\b", lambda match: " ".join(match[0]), text)
    return (text,) if capitals == text else (text, capitals)


def _spaced(ways: Iterable[str]) -> list[str]:
    return [f" {way} " for way in ways]


def _expression(match: re.Match[str], around: Around) -> list[str]:
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
        found += (
            combined([whole(match["plural"])[:2], (" seconds", " s")]) if len(match["plural"]) < 4 else []
        )
    else:
        found = whole(match["cardinal"], single=not match["suffix"])
    if match.string[: match.start()][-1:].isalpha() and match["suffix"]:
        return [f"{words} {match['suffix']}" for words in found]
    return _with_suffix(found, match["suffix"], match["cardinal"] == "1")


def _with_suffix(found: list[str], suffix: str | None, one: bool = False) -> list[str]:
    """Add the readings of letters or a sign that follow a number without a space."""
    if not suffix:
        return found
    key = suffix.replace(".", "").lower()
    letters = " ".join(suffix) if len(suffix) < 3 else suffix
    if key in ("am", "pm"):
        ways = [" ".join(key)]
    elif suffix in _SIGNS:
        ways = list(_SIGNS[suffix])
    else:
        magnitude = amounts.LETTERS.get(key)
        ways = distinct([*amounts.unit(suffix, one), magnitude or "", letters, suffix])
    return combined([found[:6], _spaced(ways)])


def _money(match: re.Match[str], around: Around) -> list[str]:
    before = match["whole"] or match["cardinal"] or match["ordinal"] or match["plural"] or ""
    after, suffix = match["decimals"] or "", match["suffix"] or ""
    if around.after.strip(_EDGES).lower() in amounts.MAGNITUDES:
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
        return combined([whole(first)[:3], _spaced(links), whole(second)[:3]])

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
