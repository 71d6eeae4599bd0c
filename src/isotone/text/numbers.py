"""Digits, money and signs written out as English words: one reading of each, the plainest."""

from __future__ import annotations

import re

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = (
    (1_000_000_000_000, "trillion"),
    (1_000_000_000, "billion"),
    (1_000_000, "million"),
    (1000, "thousand"),
)
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_MONEY = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent"), "¥": ("yen", "")}
_PLURALS = {"penny": "pence", "yen": "yen"}

#: Words that come between an amount and its currency: "$3 million" is said "three million dollars".
MAGNITUDES = frozenset({"hundred", "thousand", "million", "billion", "trillion"})

_NUMBER = r"\d{1,3}(?:,\d{3})+|\d+"
_PATTERN = re.compile(
    rf"(?P<sign>(?<![\w.])[-\u2212])?"
    rf"(?P<money>[$£€¥])?"
    rf"(?:(?P<hour>(?<!\d)\d{{1,2}}):(?P<minute>[0-5]\d)(?!\d)"
    rf"|(?:(?<!\d\.)(?P<whole>{_NUMBER})|(?<![\w.]))\.(?P<decimals>\d+)(?!\.?\d)"
    rf"|(?P<ordinal>{_NUMBER})(?:st|nd|rd|th)(?![^\W\d_])"
    rf"|(?P<plural>{_NUMBER})'?s(?![^\W\d_])"
    rf"|(?P<cardinal>{_NUMBER}))"
    rf"(?P<percent>%)?",
    re.IGNORECASE | re.ASCII,
)
_FRACTION = re.compile(r"(\d\s*)?(?<!\d)(\d+)\u2044(\d+)", re.ASCII)
_SIGNS = {"%": "percent", "&": "and", "$": "dollars", "£": "pounds", "€": "euros"}


def cardinal(number: int) -> str:
    """A whole number in words; from a thousand trillion on, digit by digit.

    Example:
        >>> cardinal(1984)
        'one thousand nine hundred eighty four'
    """
    if number < 0:
        return f"minus {cardinal(-number)}"
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f" {_ONES[number % 10]}" if number % 10 else "")
    if number < 1000:
        return f"{_ONES[number // 100]} hundred" + (f" {cardinal(number % 100)}" if number % 100 else "")
    if number >= 1000 * _SCALES[0][0]:
        return digits(str(number))
    size, name = next(scale for scale in _SCALES if number >= scale[0])
    rest = number % size
    return f"{cardinal(number // size)} {name}" + (f" {cardinal(rest)}" if rest else "")


def ordinal(number: int) -> str:
    """A rank in words: 21 is ``twenty first``."""
    *head, last = cardinal(number).split()
    if last in _ORDINALS:
        last = _ORDINALS[last]
    else:
        last = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return " ".join([*head, last])


def fraction(top: int, bottom: int) -> str:
    """A fraction in words: 3 and 4 are ``three quarters``."""
    name = {2: "half", 4: "quarter"}.get(bottom) or ordinal(bottom)
    if top != 1:
        name = "halves" if bottom == 2 else _plural(name)
    return f"{cardinal(top)} {name}"


def digits(text: str) -> str:
    """Digits one by one: ``007`` is ``zero zero seven``."""
    return " ".join(_ONES[int(d)] for d in text)


def spell(text: str, before_magnitude: bool = False) -> str:
    """Replace digits, currency and the signs % and & by words; what is not of these stays as it is.

    Whole numbers are cardinals, years too; a leading zero or more than 15 digits are read digit by digit.

    Args:
        text: Any text, compatibility-normalised (NFKC).
        before_magnitude: A word of :data:`MAGNITUDES` follows, which takes over the name of the currency.
    """
    text = _FRACTION.sub(
        lambda m: f"{m[1] or ''}{' and' if m[1] else ''} {fraction(int(m[2]), int(m[3]))} ", text
    )
    text = _PATTERN.sub(lambda match: f" {_say(match, before_magnitude)} ", text)
    return re.sub(r"[%&]|(?<!\w)[$£€](?!\w)", lambda sign: f" {_SIGNS[sign[0]]} ", text)


def currency(text: str) -> str | None:
    """Name, in the plural, of the currency of an amount such as ``$3.5``; None where there is none."""
    match = _PATTERN.search(text)
    return _plural(_MONEY[match["money"]][0]) if match and match["money"] else None


def _say(match: re.Match[str], before_magnitude: bool) -> str:
    money = match["money"]
    if match["hour"]:
        said = _time(match["hour"], match["minute"])
    elif money and not before_magnitude:
        return ("minus " if match["sign"] else "") + _amount(match)
    elif match["decimals"]:
        said = f"{_whole(match['whole'] or '0')} point {digits(match['decimals'])}"
        if not match["whole"]:
            said = said.removeprefix("zero ")
    elif match["ordinal"]:
        said = ordinal(int(match["ordinal"].replace(",", "")))
    elif match["plural"]:
        *head, last = _whole(match["plural"]).split()
        said = " ".join([*head, _plural(last)])
    else:
        said = _whole(match["cardinal"])
    return ("minus " if match["sign"] else "") + said + (" percent" if match["percent"] else "")


def _whole(text: str) -> str:
    plain = text.replace(",", "")
    return digits(plain) if len(plain) > 15 or (len(plain) > 1 and plain[0] == "0") else cardinal(int(plain))


def _time(hour: str, minute: str) -> str:
    if minute == "00":
        return f"{cardinal(int(hour))} o'clock"
    past = f"oh {_ONES[int(minute)]}" if minute[0] == "0" else cardinal(int(minute))
    return f"{cardinal(int(hour))} {past}"


def _amount(match: re.Match[str]) -> str:
    """Money: two decimals are the small coin, any other number of decimals is read out."""
    unit, coin = _MONEY[match["money"]]
    whole = match["whole"] or match["cardinal"] or match["ordinal"] or match["plural"] or "0"
    decimals = match["decimals"] or ""
    if decimals and (len(decimals) != 2 or not coin):
        return f"{_whole(whole)} point {digits(decimals)} {_plural(unit)}"
    parts = [(_whole(whole), unit)] if not decimals or _whole(whole) != "zero" else []
    if decimals and int(decimals):
        parts.append((cardinal(int(decimals)), coin))
    named = [f"{said} {name if said == 'one' else _plural(name)}" for said, name in parts]
    return " and ".join(named) or f"zero {_plural(unit)}"


def _plural(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("x", "s")) else "s")
