"""Numbers in languages other than English, by num2words where it is installed (``pip install "isotone[numbers]"``)."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Sequence

from isotone.text.languages import iso_code

# whole numbers alone: neighbours (3,50; 1.000; 21.; 10:30; 5€; 2-3) have several readings
_WHOLE = re.compile(
    r"(?<![\w.,:/+\-\u2212\u2013%$£€¥§°])(?:0|[1-9]\d{0,8})(?![\w%$£€¥§°]|[.,:/\u2013-]\S)", re.ASCII
)
_UNITS = frozenset("%$£€¥§°‰")


def spell_numbers(pieces: Sequence[str], language: str) -> list[str]:
    """Spell the whole numbers of a text in words, if num2words is installed and has the language.

    Other numbers keep their digits: those with decimals, signs or units, possible ordinals (followed by a point), and
    numbers of four digits that are read differently as years.

    Args:
        pieces: Parts of the text between spaces, in order.
        language: ISO code of the language.
    """
    spell = _speller(iso_code(language))
    if spell is None:
        return list(pieces)
    out = []
    for i, piece in enumerate(pieces):
        following = pieces[i + 1] if i + 1 < len(pieces) else ""
        unit = bool(_UNITS & {*following}) and not any(c.isalnum() for c in following)
        point = i + 1 < len(pieces) and re.search(r"\d\.\W*$", piece)
        out.append(piece if unit or point else _WHOLE.sub(lambda m: f" {spell(m[0]) or m[0]} ", piece))
    return out


@functools.cache
def _speller(language: str) -> Callable[[str], str] | None:
    """Return a function that spells a whole number, or returns "" if it has several readings."""
    try:
        import num2words
    except ImportError:
        return None
    converter = num2words.CONVERTER_CLASSES.get({"nb": "no"}.get(language, language))
    if converter is None:
        return None

    @functools.lru_cache(10_000)
    def spell(digits: str) -> str:
        number = int(digits)
        try:
            words = str(converter.to_cardinal(number))
            if 1000 <= number < 2100 and str(converter.to_year(number)) != words:
                return ""
        except Exception:  # each language of num2words is its own code, with its own errors
            return ""
        plain = all(c in " '-" or unicodedata.category(c)[0] in "LM" for c in words)
        return words if plain and words.strip() else ""

    return spell
