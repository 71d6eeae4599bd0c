"""Digits, money and signs written out as English words: one reading each, the most common one."""

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

#: Words between an amount and its currency: "$3 million" is read "three million dollars".
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
    """Spell a whole number; from a thousand trillion on, digit by digit.

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
    """Spell a rank: 21 is ``twenty first``."""
    *head, last = cardinal(number).split()
    if last in _ORDINALS:
        last = _ORDINALS[last]
    else:
        last = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return " ".join([*head, last])


def fraction(top: int, bottom: int) -> str:
    """Spell a fraction: 3 and 4 are ``three quarters``."""
    name = {2: "half", 4: "quarter"}.get(bottom) or ordinal(bottom)
    if top != 1:
        name = "halves" if bottom == 2 else _plural(name)
    return f"{cardinal(top)} {name}"


def digits(text: str) -> str:
    """Spell digits one by one: ``007`` is ``zero zero seven``."""
    return " ".join(_ONES[int(d)] for d in text)


def spell(text: str, before_magnitude: bool = False) -> str:
    """Replace digits, currency and the signs % and & by words; the rest of the text stays.

    Whole numbers, years included, are cardinals. With a leading zero or more than 15 digits they are read by digit.

    Args:
        text: Any text, compatibility-normalised (NFKC).
        before_magnitude: A word of :data:`MAGNITUDES` follows; the caller names the currency after it.
    """
    text = _FRACTION.sub(
        lambda m: f"{m[1] or ''}{' and' if m[1] else ''} {fraction(int(m[2]), int(m[3]))} ", text
    )
    text = _PATTERN.sub(lambda match: f" {_words(match, before_magnitude)} ", text)
    return re.sub(r"[%&]|(?<!\w)[$£€](?!\w)", lambda sign: f" {_SIGNS[sign[0]]} ", text)


def currency(text: str) -> str | None:
    """Return the plural name of the currency of an amount such as ``$3.5``; None if it has none."""
    match = _PATTERN.search(text)
    return _plural(_MONEY[match["money"]][0]) if match and match["money"] else None


def _words(match: re.Match[str], before_magnitude: bool) -> str:
    money = match["money"]
    if match["hour"]:
        words = _time(match["hour"], match["minute"])
    elif money and not before_magnitude:
        return ("minus " if match["sign"] else "") + _amount(match)
    elif match["decimals"]:
        words = f"{_whole(match['whole'] or '0')} point {digits(match['decimals'])}"
        if not match["whole"]:
            words = words.removeprefix("zero ")
    elif match["ordinal"]:
        words = ordinal(int(match["ordinal"].replace(",", "")))
    elif match["plural"]:
        *head, last = _whole(match["plural"]).split()
        words = " ".join([*head, _plural(last)])
    else:
        words = _whole(match["cardinal"])
    return ("minus " if match["sign"] else "") + words + (" percent" if match["percent"] else "")


def _whole(text: str) -> str:
    plain = text.replace(",", "")
    return digits(plain) if len(plain) > 15 or (len(plain) > 1 and plain[0] == "0") else cardinal(int(plain))


def _time(hour: str, minute: str) -> str:
    if minute == "00":
        return f"{cardinal(int(hour))} o'clock"
    past = f"oh {_ONES[int(minute)]}" if minute[0] == "0" else cardinal(int(minute))
    return f"{cardinal(int(hour))} {past}"


def _amount(match: re.Match[str]) -> str:
    """Spell an amount: two decimals are cents or pence; other decimals are read as decimals."""
    unit, coin = _MONEY[match["money"]]
    whole = match["whole"] or match["cardinal"] or match["ordinal"] or match["plural"] or "0"
    decimals = match["decimals"] or ""
    if decimals and (len(decimals) != 2 or not coin):
        return f"{_whole(whole)} point {digits(decimals)} {_plural(unit)}"
    parts = [(_whole(whole), unit)] if not decimals or _whole(whole) != "zero" else []
    if decimals and int(decimals):
        parts.append((cardinal(int(decimals)), coin))
    named = [f"{words} {name if words == 'one' else _plural(name)}" for words, name in parts]
    return " and ".join(named) or f"zero {_plural(unit)}"


def _plural(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("x", "s")) else "s")
