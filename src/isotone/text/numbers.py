"""English words of numbers, and the ways in which a string of digits is read."""

from __future__ import annotations

from isotone.text.ways import distinct

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
_PLURALS = {"penny": "pence", "yen": "yen", "won": "won", "foot": "feet", "inch": "inches"}
#: Longest number that has a value; longer ones are strings of digits.
LONGEST = 15


def cardinal(number: int, joined: bool = False) -> str:
    """Spell a whole number; from a thousand trillion on, digit by digit.

    Args:
        number: Any whole number.
        joined: Put ``and`` before the tens and ones, as British English does.

    Example:
        >>> cardinal(1984, joined=True)
        'one thousand nine hundred and eighty four'
    """
    if number < 0:
        return f"minus {cardinal(-number, joined)}"
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f" {_ONES[number % 10]}" if number % 10 else "")
    if number >= 1000 * _SCALES[0][0]:
        return digits(str(number))
    size, name = next((scale for scale in _SCALES if number >= scale[0]), (100, "hundred"))
    rest = number % size
    link = " and " if joined and 0 < rest < 100 else " "
    return f"{cardinal(number // size, joined)} {name}" + (f"{link}{cardinal(rest, joined)}" if rest else "")


def ordinal(number: int) -> str:
    """Spell a rank: 21 is ``twenty first``."""
    return ranked(cardinal(number))


def ranked(words: str) -> str:
    """Turn the words of a number into those of its rank."""
    *head, last = words.split()
    if last in _ORDINALS:
        last = _ORDINALS[last]
    else:
        last = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return " ".join([*head, last])


def fraction(top: int, bottom: int) -> str:
    """Spell a fraction: 3 and 4 are ``three quarters``."""
    name = {2: "half", 4: "quarter"}.get(bottom) or ordinal(bottom)
    if top != 1:
        name = "halves" if bottom == 2 else plural(name)
    return f"{cardinal(top)} {name}"


def digits(text: str, zero: str = "zero") -> str:
    """Spell digits one by one: ``007`` is ``zero zero seven``."""
    return " ".join(_ONES[int(d)] if d != "0" else zero for d in text)


def plural(word: str) -> str:
    """Return the plural of the last of some words."""
    head, _, last = word.rpartition(" ")
    if last in _PLURALS:
        last = _PLURALS[last]
    elif last.endswith("y"):
        last = last[:-1] + "ies"
    else:
        last += "es" if last.endswith(("x", "s")) else "s"
    return f"{head} {last}".strip()


def whole(text: str, single: bool = True) -> list[str]:
    """List the readings of a whole number in digits, the likeliest first.

    Four digits are a year first where they can be one. A leading zero means single digits.

    Args:
        text: ASCII digits, with commas between thousands or without.
        single: List the reading digit by digit as well, where there is another.

    Example:
        >>> whole("1905")[:3]
        ['nineteen oh five', 'one thousand nine hundred five', 'one thousand nine hundred and five']
    """
    plain = text.replace(",", "")
    if len(plain) > LONGEST or (len(plain) > 1 and plain[0] == "0"):
        return distinct([digits(plain), digits(plain, "oh"), *_doubled(plain), *_hours(plain)])
    number = int(plain)
    if not number:
        return ["zero", "oh", "nought", "nil"]
    one_by_one = [digits(plain, "oh"), digits(plain)] if single else []
    if "," in text:
        return distinct([*_cardinals(number), *_hundreds(number)])
    if len(plain) == 4:
        return distinct([*_four(number), *one_by_one])
    if len(plain) == 3:
        return distinct([*_cardinals(number), _pair(number), *one_by_one])
    return distinct([*_cardinals(number), *one_by_one])


def year(text: str) -> list[str]:
    """List the readings of a year: of four digits as :func:`whole`, of two as a number or ``oh five``."""
    if len(text) != 2:
        return whole(text)
    return [f"oh {_ONES[int(text)]}", *whole(text)] if text[0] == "0" and text != "00" else whole(text)


def _cardinals(number: int) -> list[str]:
    found = [cardinal(number), cardinal(number, joined=True)]
    if found[0].startswith(("one hundred", "one thousand", "one million")):
        found += ["a" + words.removeprefix("one") for words in found]
    return found


def _four(number: int) -> list[str]:
    """List the readings of 1000 to 9999: as a year, and as a number."""
    paired, counted = [_pair(number)], _cardinals(number)
    is_year = 1100 <= number < 2000 or 2010 <= number < 2100
    if number % 1000 < 10 and number % 1000:
        paired, is_year = [_pair(number)], False
    elif number % 1000 == 0:
        paired = []
    ordered = [*paired, *counted] if is_year else [*counted, *paired]
    return [*ordered, *_hundreds(number)]


def _pair(number: int) -> str:
    """Read 905 or 1984 as two numbers: ``nine oh five``, ``nineteen eighty four``."""
    first, last = divmod(number, 100)
    if not last:
        return f"{cardinal(first)} hundred"
    return f"{cardinal(first)} oh {_ONES[last]}" if last < 10 else f"{cardinal(first)} {cardinal(last)}"


def _hundreds(number: int) -> list[str]:
    """Read 1500 as ``fifteen hundred``; nothing for what is not read so."""
    first, last = divmod(number, 100)
    if not 10 < first < 100 or first % 10 == 0:
        return []
    head = f"{cardinal(first)} hundred"
    return [f"{head} {cardinal(last)}", f"{head} and {cardinal(last)}"] if last else [head]


def _hours(text: str) -> list[str]:
    """Read 0900 as ``oh nine hundred``, as soldiers say a time."""
    is_time = len(text) == 4 and text[0] == "0" != text[1]
    return [f"{zero} {_pair(int(text))}" for zero in ("oh", "zero")] if is_time else []


def _doubled(text: str) -> list[str]:
    """Read 007 as ``double oh seven``."""
    rest = text.removeprefix("00")
    return [f"double oh {digits(rest, 'oh')}"] if rest != text and rest and len(text) < 6 else []
