"""Variants of English pronunciations that depend on neighbouring phones: flaps, and stops that are not released."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from isotone.text.packed import Symbols
from isotone.text.phones import PHONE_CLASSES

#: Probability of a flap for a stop between a vowel (or r) and an unstressed vowel: estimates by the author.
FLAP = {"t": 0.65, "d": 0.35}
#: Probability that a final t or d is left out after another consonant, likewise.
DROPPED = 0.12
#: Places in one word whose variants are combined; later ones are as in the dictionary.
PLACES = 4


def variants(symbols: Symbols) -> list[tuple[Symbols, float]]:
    """Return the variants of a pronunciation in phones, with probabilities that add up to 1.

    Args:
        symbols: TIMIT's phones without closures; a vowel with ``0`` at its end is unstressed, as is ``ax``.
    """
    places = list(itertools.islice(_places(symbols), PLACES))
    found = []
    for choices in itertools.product((False, True), repeat=len(places)):
        weight, changed = 1.0, [symbol.removesuffix("0") for symbol in symbols]
        for (place, other, likely), chosen in zip(places, choices):
            weight *= likely if chosen else 1 - likely
            if chosen:
                changed[place] = other
        found.append((tuple(symbol for symbol in changed if symbol), weight))
    return found


def _places(symbols: Symbols) -> Iterator[tuple[int, str, float]]:
    """Iterate over (index, other phone or nothing, its probability)."""
    for i, stop in enumerate(symbols):
        if stop not in FLAP or not i:
            continue
        before, after = symbols[i - 1].removesuffix("0"), symbols[i + 1 : i + 3]
        sonorous = PHONE_CLASSES.get(before) == "vowel" or before == "r"
        if not after:
            if not sonorous and i > 1:
                yield i, "", DROPPED
        # the t of "button" is no flap
        elif sonorous and _unstressed(after[0]) and after != ("ax", "n"):
            yield i, "dx", FLAP[stop]


def _unstressed(symbol: str) -> bool:
    return symbol == "ax" or symbol.endswith("0")
