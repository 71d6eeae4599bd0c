"""English words that a lexicon lacks, from words that it has: endings, contractions, compounds, letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from isotone.text.packed import Symbols

#: Returns the pronunciations of a word that is known, the likeliest first.
Known = Callable[[str], list[Symbols]]

_SIBILANTS = {"s", "z", "sh", "zh", "ch", "jh"}
_VOICELESS = {"p", "t", "k", "f", "th"}
_VOWELS = re.compile(r"[aeiouy]")
#: Endings with fixed phones, which ``0`` marks as unstressed.
_ENDINGS = {
    "'ll": "ax l", "'ve": "ax v", "'re": "er0", "'m": "m", "n't": "ax n t", "in'": "ih0 n", "'em": "ax m",
    "ing": "ih0 ng", "ings": "ih0 ng z", "ness": "n ax s", "less": "l ax s", "ly": "l iy0", "er": "er0",
    "ers": "er0 z", "ingly": "ih0 ng l iy0", "like": "l ay k", "ship": "sh ih0 p",
}  # fmt: skip
#: Endings before which a silent e is dropped and a consonant doubled.
_CHANGING = {"ing", "ings", "in'", "er", "ers", "ed", "ingly"}
#: Shortest stem of an ending of letters, and shortest part of a compound.
_STEM, _PART = 3, 4


def formed(word: str, known: Known) -> list[Symbols]:
    """Return the pronunciations of a word in lower case, made from known words; none if it has no such parts.

    In this order: parts between hyphens and the like, endings (``-s``, ``'s``, ``-ed``, ``-ing``, ``n't`` ...),
    two known words written as one, and the letters of a word without vowels.
    """
    parts = [part for part in re.split(r"[-_./\s]+", word) if part]
    if len(parts) != 1:
        return _joined(parts, known)
    for way in (_with_s, _inflected, _compound, _lettered):
        if found := way(parts[0], known):
            return found
    return []


def lettered(word: str, known: Known) -> list[Symbols]:
    """Return a word's letters one by one, as abbreviations are read; nothing if it has other characters."""
    names = [(known(f"{letter}.") or known(letter)) if letter.isalpha() else [] for letter in word]
    return [tuple(symbol for name in names for symbol in name[0])] if names and all(names) else []


def _lettered(word: str, known: Known) -> list[Symbols]:
    plain = word.removesuffix("'s")
    if _VOWELS.search(plain) or not 1 <= len(plain) <= 6:
        return []
    found = lettered(plain, known)
    return [_plural(one) for one in found] if plain != word else found


def _joined(parts: list[str], known: Known) -> list[Symbols]:
    found = [known(part) or formed(part, known) for part in parts]
    return [tuple(s for some in found for s in some[0])] if found and all(found) else []


def _with_s(word: str, known: Known) -> list[Symbols]:
    """Return the pronunciations of a plural or a possessive."""
    for ending in ("'s", "s'", "s", "'"):
        stem = word.removesuffix(ending)
        if stem == word or (len(stem) < _STEM and ending != "'s") or (ending == "s" and stem.endswith("s")):
            continue
        if found := known(stem) or known(re.sub(r"ie$", "y", stem)):
            return [one if ending == "'" else _plural(one) for one in found]
        found = known(stem.removesuffix("e"))
        if found and found[0][-1] in _SIBILANTS:
            return [_plural(one) for one in found]
    return []


def _inflected(word: str, known: Known) -> list[Symbols]:
    if len(word) > _STEM + 1 and word.endswith("ed") and (found := _first(word, "ed", known)):
        return [_past(one) for one in found]
    for ending in sorted(_ENDINGS, key=len, reverse=True):
        stem = word.removesuffix(ending)
        long = stem != word and len(stem) >= (_STEM if ending.isalpha() else 1)
        if long and (found := _first(word, ending, known)):
            phones = tuple(_ENDINGS[ending].split())
            # "really" has one l
            return [one + phones[one[-1:] == phones[:1] == ("l",) :] for one in found]
    if word.endswith("'d") and (found := known(word[:-2])):
        return [_past(one) for one in found]
    return []


def _first(word: str, ending: str, known: Known) -> list[Symbols]:
    """Return the pronunciations of the first known word that a word may be without its ending."""
    return next(filter(None, map(known, _stems(word, ending))), [])


def _stems(word: str, ending: str) -> Iterator[str]:
    """Iterate over what a word may be without its ending: hop(e), hop(p), hurr(y)."""
    stem = word.removesuffix(ending)
    if ending in _CHANGING:
        yield stem + "e"
        if len(stem) > _STEM and stem[-1] == stem[-2]:
            yield stem[:-1]
    if stem.endswith("i"):
        yield stem[:-1] + "y"
    yield stem


def _plural(symbols: Symbols) -> Symbols:
    last = symbols[-1]
    if last in _SIBILANTS:
        return (*symbols, "ih0", "z")
    return (*symbols, "s" if last in _VOICELESS else "z")


def _past(symbols: Symbols) -> Symbols:
    last = symbols[-1]
    if last in ("t", "d"):
        return (*symbols, "ih0", "d")
    return (*symbols, "t" if last in _VOICELESS | {"s", "sh", "ch"} else "d")


def _compound(word: str, known: Known) -> list[Symbols]:
    """Return the pronunciation of two known words written as one; the longest second word counts."""
    for cut in range(_PART, len(word) - _PART + 1):
        if (first := known(word[:cut])) and (second := known(word[cut:])):
            return [first[0] + second[0]]
    return []
