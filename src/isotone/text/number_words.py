"""Numbers in languages other than English, by num2words where it is installed (``pip install "isotone[numbers]"``)."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Sequence

from isotone.text.languages import iso_code

# whole numbers alone: what is beside them (3,50; 1.000; 21.; 10:30; 5€; 2-3) is read in ways that differ
_WHOLE = re.compile(
    r"(?<![\w.,:/+\-\u2212\u2013%$£€¥§°])(?:0|[1-9]\d{0,8})(?![\w%$£€¥§°]|[.,:/\u2013-]\S)", re.ASCII
)
_UNITS = frozenset("%$£€¥§°‰")


def spell_numbers(pieces: Sequence[str], language: str) -> list[str]:
    """Pieces of a text with their whole numbers in words, where num2words knows the language and is installed.

    Other numbers keep their digits: with decimals, signs or units, what may be ordinals (a point follows), and those
    of four digits that are read otherwise as years.

    Args:
        pieces: What stands between spaces, in order.
        language: Its ISO code.
    """
    say = _speaker(iso_code(language))
    if say is None:
        return list(pieces)
    out = []
    for i, piece in enumerate(pieces):
        following = pieces[i + 1] if i + 1 < len(pieces) else ""
        unit = bool(_UNITS & {*following}) and not any(c.isalnum() for c in following)
        point = i + 1 < len(pieces) and re.search(r"\d\.\W*$", piece)
        out.append(piece if unit or point else _WHOLE.sub(lambda m: f" {say(m[0]) or m[0]} ", piece))
    return out


@functools.cache
def _speaker(language: str) -> Callable[[str], str] | None:
    """What spells the digits of a whole number, or gives nothing where it is read in several ways."""
    try:
        import num2words
    except ImportError:
        return None
    converter = num2words.CONVERTER_CLASSES.get({"nb": "no"}.get(language, language))
    if converter is None:
        return None

    @functools.lru_cache(10_000)
    def say(digits: str) -> str:
        number = int(digits)
        try:
            said = str(converter.to_cardinal(number))
            if 1000 <= number < 2100 and str(converter.to_year(number)) != said:
                return ""
        except Exception:  # its languages are many people's work: they raise whatever there is
            return ""
        spoken = all(c in " '-" or unicodedata.category(c)[0] in "LM" for c in said)
        return said if spoken and said.strip() else ""

    return say
