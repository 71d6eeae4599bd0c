"""English readings of amounts: decimals, money, percentages, fractions and units."""

from __future__ import annotations

from isotone.text.numbers import LONGEST, cardinal, digits, fraction, ordinal, plural, ranked, whole
from isotone.text.ways import combined, distinct

#: Names of currencies by their signs: the unit and its hundredth.
MONEY = {
    "$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent"), "¥": ("yen", ""),
    "₹": ("rupee", "paisa"), "₩": ("won", ""), "₽": ("ruble", "kopeck"),
}  # fmt: skip

#: Words between an amount and its currency: "$3 million" is read "three million dollars".
MAGNITUDES = frozenset({"hundred", "thousand", "million", "billion", "trillion"})

#: The same as letters after an amount.
LETTERS = {
    "k": "thousand", "m": "million", "mn": "million", "mm": "million", "b": "billion", "bn": "billion", "t": "trillion",
    "tn": "trillion",
}  # fmt: skip

#: Letters that are more often said as letters, or as the sign of a currency's hundredth, than as a unit.
LIKELY_LETTERS = frozenset("ABCFGbcptx")

_METRIC = {
    "k": "kilo", "c": "centi", "m": "milli", "d": "deci", "n": "nano", "μ": "micro", "u": "micro", "M": "mega",
    "G": "giga", "T": "tera",
}  # fmt: skip
_BASES = {
    "m": ("meter", "kcmnμ"), "g": ("gram", "kmμ"), "l": ("liter", "mcd"), "L": ("liter", "mcd"),
    "s": ("second", "mnμu"), "W": ("watt", "kMGT"), "V": ("volt", "km"), "A": ("amp", "m"), "Hz": ("hertz", "kMG"),
    "B": ("byte", "kMGT"), "Pa": ("pascal", "k"), "J": ("joule", "kM"), "Wh": ("watt hour", "kMGT"),
}  # fmt: skip
_OTHER = {
    "ft": "foot", "in": "inch", "yd": "yard", "mi": "mile", "lb": "pound", "lbs": "pound", "oz": "ounce",
    "gal": "gallon", "pt": "pint", "qt": "quart", "h": "hour", "hr": "hour", "hrs": "hour", "min": "minute",
    "mins": "minute", "sec": "second", "secs": "second", "mph": "mile per hour", "kph": "kilometer per hour",
    "km/h": "kilometer per hour", "m/s": "meter per second", "mb": "megabyte", "gb": "gigabyte", "KB": "kilobyte",
    "kb": "kilobyte", "bps": "bit per second", "Mbps": "megabit per second", "Gbps": "gigabit per second",
    "ha": "hectare", "°": "degree", "°C": "degree celsius", "°F": "degree fahrenheit", "px": "pixel",
    "cal": "calorie", "kcal": "kilocalorie", "ct": "cent", "¢": "cent", "m²": "square meter",
    "km²": "square kilometer", "m2": "square meter", "km2": "square kilometer", "ft2": "square foot",
    "m³": "cubic meter", "m3": "cubic meter", "dB": "decibel", "yr": "year", "yrs": "year",
    "wk": "week", "wks": "week", "mo": "month", "mos": "month", "mpg": "mile per gallon", "fps": "frame per second",
    "bpm": "beat per minute", "ppm": "part per million", "psi": "pound per square inch", "kbps": "kilobit per second",
    "C": "degree celsius", "F": "degree fahrenheit", "c": "cent", "p": "penny", "x": "time", "USD": "dollar",
    "EUR": "euro", "GBP": "pound", "rpm": "revolution per minute", "dpi": "dot per inch",
}  # fmt: skip


def _units() -> dict[str, str]:
    found = {base: name for base, (name, _) in _BASES.items()}
    for base, (name, prefixes) in _BASES.items():
        found |= {prefix + base: _METRIC[prefix] + name for prefix in prefixes}
    return found | _OTHER


#: Names of units by their abbreviations, in the singular.
UNITS = _units()


def magnitude(text: str) -> str:
    """Return the word of :data:`MAGNITUDES` that a word after an amount of money is or stands for; empty for others."""
    lower = text.lower()
    return lower if lower in MAGNITUDES else LETTERS.get(lower, "")


def unit(text: str, one: bool = False) -> list[str]:
    """List the readings of a unit after a number: its plural and its singular; none for an unknown one.

    Args:
        text: The abbreviation.
        one: The number is 1: the singular comes first.
    """
    text = text.replace("^", "")
    name = UNITS.get(text) or (UNITS.get(text.lower()) if len(text) > 1 else None)
    if name is None:
        return []
    head, _, rest = name.partition(" per ")
    of_degrees = head.startswith("degree ")
    several = [f"degrees {head[7:]}"] if of_degrees else [head if head.endswith("hertz") else plural(head)]
    several = [f"{words} per {rest}" if rest else words for words in several]
    if of_degrees:
        several += [head[7:], "degrees"]
    if rest == "hour":
        several.append(f"{plural(head)} an hour")
    if text == "m":
        several += ["minutes", "minute"]
    letters = [" ".join(text)] if text.isalpha() and len(text) < 5 else []
    return distinct([name, *several, *letters] if one else [*several, name, *letters])


def decimal(before: str, after: str) -> list[str]:
    """List the readings of a decimal number, ``before.after``; ``before`` may be empty."""
    tails = [digits(after), digits(after, "oh")]
    paired = cardinal(int(after)) if 1 < len(after) < 4 and after[0] != "0" else ""
    tails += [paired] if paired else []
    if not before:
        return distinct([f"point {tail}" for tail in tails])
    heads = whole(before, single=before == "0")[:3]
    found = [f"{head} point {tail}" for tail in tails for head in heads]
    if before == "0":
        found += [f"point {tail}" for tail in tails]
        found += [f"nought point {tails[0]}", *({"5": ["half", "a half"]}.get(after) or [])]
    if after == "5" and before != "0":
        found.append(f"{heads[0]} and a half")
    if paired and len(before) < 3 and before != "0":
        found.append(f"{heads[0]} {paired}")  # a version, or a time of the day
    return distinct(found)


def parts(top: int, bottom: int, counted: bool = False) -> list[str]:
    """List the names of a fraction: three quarters, three fourths; none for those that have no name.

    Args:
        top, bottom: The numbers above and below the line.
        counted: A whole number is before it: "and a half".
    """
    if not (1 < bottom <= 100 and top <= 100):
        return []
    part = "half" if bottom == 2 else ordinal(bottom)
    several = "halves" if bottom == 2 else plural(part)
    named = distinct([fraction(top, bottom), f"{cardinal(top)} {part if top == 1 else several}"])
    if top == 1:
        short = [f"a{words.removeprefix('one')}" for words in named]
        named = (
            [*short, *named, *["half"][: bottom == 2]]
            if counted
            else [*named, *short, *["half"][: bottom == 2]]
        )
    return [*(f"and {words}" for words in named), *named] if counted else named


def vulgar(*numbers: str) -> list[str]:
    """List the readings of a fraction that is one character, with the digits of a whole number before it or none."""
    *count, top, bottom = numbers
    named = parts(int(top), int(bottom), bool(count)) or ratio(top, bottom, bool(count))
    return combined([[f"{words} " for words in whole(count[0])[:2]], named]) if count else named


def ratio(top: str, bottom: str, counted: bool = False) -> list[str]:
    """List the readings of a fraction such as ``3/4``; dates are :func:`isotone.text.clock.month_day`'s.

    Args:
        top, bottom: The digits.
        counted: A whole number is before it: "5 1/2".
    """
    first, second, named = whole(top)[0], whole(bottom)[0], parts(int(top), int(bottom), counted)
    plain = [f"{first} {second}", *(f"{first} {link} {second}" for link in ("over", "slash", "out of", "by"))]
    likely = counted or int(top) < int(bottom) <= 16
    return distinct([*named, *plain] if likely else [*plain, *named])


def money(sign: str, before: str, after: str, magnitude: str = "") -> list[str]:
    """List the readings of an amount of money.

    Two decimals are cents or pence; other decimals are read as decimals.

    Args:
        sign: A key of :data:`MONEY`.
        before, after: Digits before and after the point; each may be empty.
        magnitude: A word of :data:`MAGNITUDES` between number and currency.
    """
    name, coin = MONEY[sign]
    amounts = whole(before or "0", single=False)[:4]
    if magnitude:
        numbers = decimal(before, after) if after else amounts
        return distinct([f"{n} {magnitude} {end}" for end in (plural(name), name, "") for n in numbers[:3]])
    if after and (len(after) != 2 or not coin):
        return distinct([f"{n} {end}" for end in (plural(name), name) for n in decimal(before, after)[:3]])
    one = before == "1"
    units = [f"{n} {name if one else plural(name)}" for n in amounts]
    if one:
        units.append(f"a {name}")
    if not after or not int(after):
        slang = {"$": "bucks", "£": "quid"}.get(sign)
        short = [f"{amounts[0]} {name}", *(f"{n} {slang}" for n in amounts[:3] if slang)]
        return distinct([*units, *short])
    cents = cardinal(int(after))
    coins = f"{cents} {coin if int(after) == 1 else plural(coin)}"
    if not before.strip("0,"):
        point = [f"{n} {plural(name)}" for n in decimal(before or "0", after)[:2]]
        return distinct([coins, f"{units[0]} and {coins}", cents, *point])
    tail = f"oh {cents}" if int(after) < 10 else cents
    found = [f"{units[0]} and {coins}", f"{units[0]} {coins}", f"{units[0]} {tail}", f"{amounts[0]} {tail}"]
    found += [f"{units[0]} and {cents}", f"{amounts[0]} {name} {tail}"]
    found += [f"{n} {plural(name)}" for n in decimal(before, after)[:2]]
    found += [f"{unit} and {coins}" for unit in units[1:]]
    return distinct(found)


def ranks(text: str) -> list[str]:
    """List the readings of ``21st`` and the like, given the digits."""
    plain = text.replace(",", "")
    if len(plain) > 1 and plain[0] == "0":
        plain = plain.lstrip("0") or "0"
    if len(plain) > LONGEST:
        return [ranked(words) for words in whole(plain)]
    return distinct(
        [ranked(words) for words in [cardinal(int(plain)), *whole(plain, single=False)[:3]]]
        + [f"the {ordinal(int(plain))}"]
    )


def decades(text: str) -> list[str]:
    """List the readings of ``1980s`` and ``90s``, given the digits."""
    found = [plural(words) for words in whole(text, single=False)[:6]]
    if len(text) == 2:
        found.append(f"nineteen {found[0]}")
    return distinct(found)
