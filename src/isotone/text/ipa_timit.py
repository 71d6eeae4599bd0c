"""English phones in the International Phonetic Alphabet, as the Montreal Forced Aligner's dictionaries write them."""
# ruff: noqa: RUF001 - phonetic letters are meant

from __future__ import annotations

import re

_SYLLABIC = "\u0329"
# stress, length, ties, and secondary articulation
_MARKS = re.compile("[ˈˌːˑʰʲʷˠ\u0361\u035c\u032a\u0325\u031a\u032f]")

_SOUNDS = {
    "g": "g", "ɡ": "g", "c": "k", "ɟ": "g", "ʔ": "t", "ɾ": "dx", "ɾ\u0303": "n", "tʃ": "ch", "ʧ": "ch", "dʒ": "jh",
    "ʤ": "jh", "θ": "th", "ð": "dh", "ʃ": "sh", "ʒ": "zh", "h": "hh", "ç": "hh", "ŋ": "ng", "ɲ": "n", "ɱ": "m",
    "ɹ": "r", "ɫ": "l", "ʎ": "l", "j": "y", "ʍ": "w",
    "i": "iy", "ɪ": "ih", "ɨ": "ix", "e": "ey", "ej": "ey", "eɪ": "ey", "ɛ": "eh", "æ": "ae", "a": "ae", "aj": "ay",
    "aɪ": "ay", "aw": "aw", "aʊ": "aw", "ɑ": "aa", "ɒ": "aa", "ɔ": "ao", "o": "ow", "ow": "ow", "oʊ": "ow", "əw": "ow",
    "əʊ": "ow", "ɔj": "oy", "ɔɪ": "oy", "ʊ": "uh", "u": "uw", "ʉ": "uw", "ʌ": "ah", "ɐ": "ah", "ə": "ax", "ɚ": "er",
    "ɝ": "er", "ɜ": "er",
}  # fmt: skip
_SYLLABLES = {"l": "el", "ɫ": "el", "n": "en", "m": "em", "ɹ": "er", "r": "er"}


def to_arpabet(phone: str) -> str:
    """Return TIMIT's label of an English phone; one that is not in the International Phonetic Alphabet stays."""
    plain = _MARKS.sub("", phone.replace("c\u0327", "ç"))
    if plain.endswith(_SYLLABIC):
        plain = plain.removesuffix(_SYLLABIC)
        return _SYLLABLES.get(plain, _SOUNDS.get(plain, plain))
    return _SOUNDS.get(plain, plain)
