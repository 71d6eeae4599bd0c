"""Letter to sound: English pronunciations of words that no dictionary has, from their letters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isotone.files import atomic_write
from isotone.text.english import EnglishPronouncer, read
from isotone.text.folding import bare
from isotone.text.letter_network import LetterNetwork, parse
from isotone.text.packed import Symbols
from isotone.text.phones import Closures, PhoneSet
from isotone.text.variants import variants

_FILE = "english_letters.safetensors"
#: Longest word: none of English is longer, and the time is quadratic in it.
_LONGEST = 64
#: Hypotheses that the search keeps, pronunciations that it gives, and their least probability relative to the best.
_BEAM, _MOST, _LEAST = 6, 3, 0.1


class LetterToSound(EnglishPronouncer):
    """A letter-to-sound model of English; it knows every word of Latin letters.

    Args:
        path: The file of the network; ``recipes/english/pronounce.py`` makes one.
        phones: TIMIT phone set.
        closures: See :func:`isotone.text.phones.to_phone_set`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is another file, or damaged.
    """

    def __init__(self, path: str | Path, phones: PhoneSet = 48, closures: Closures = "merge") -> None:
        super().__init__(phones, closures)
        self._content, self.network = read(path, "letter-to-sound model", parse)

    def guessed(self, words: Sequence[str]) -> list[str]:
        """See :meth:`Pronouncer.guessed`: all words that it pronounces."""
        return [word for word in words if self._pronounced(word)]

    def symbols(self, word: str) -> list[tuple[Symbols, float]]:
        """Return the likeliest phones of a word, with log-probabilities; none for other scripts, and for digits."""
        parts = re.split(r"[-_./\s]+", bare(word).replace("\u2019", "'"))
        spoken = [part for part in (part.strip("'") for part in parts) if part]
        if not spoken or not all(re.fullmatch(rf"[a-z']{{1,{_LONGEST}}}", part) for part in spoken):
            return []
        first, *others = (best(self.network, part) for part in spoken)
        rest = tuple(symbol for found in others for symbol in found[0][0])
        return [(phones + rest, score) for phones, score in first if phones + rest]

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the network as ``english_letters.safetensors``."""
        with atomic_write(Path(folder) / _FILE, "wb") as file:
            file.write(self._content)
        return {"kind": "letters", "file": _FILE, "phones": self.phones, "closures": self.closures}

    def _weighted(self, word: str) -> Iterator[tuple[Symbols, float]]:
        return (
            (phones, math.exp(score) * weight)
            for symbols, score in self.symbols(word)
            for phones, weight in variants(symbols)
        )


def best(network: LetterNetwork, word: str) -> list[tuple[Symbols, float]]:
    """Return the likeliest phones of a word, at most three, with log-probabilities in nats, by beam search.

    Readings with the same phones apart from stress are one, with the stress of the likeliest.
    """
    readings: list[tuple[int, ...]] = [()]
    scores = np.zeros(1)
    for place in range(len(word)):
        longer = scores[:, None] + network.log_probs(word, readings, slice(place, place + 1))[:, 0]
        chosen = np.argsort(-longer, axis=None)[:_BEAM]
        scores = longer.flat[chosen]
        readings = [(*readings[old], int(new)) for old, new in zip(*np.unravel_index(chosen, longer.shape))]
    found: dict[Symbols, tuple[Symbols, float]] = {}
    for reading, score in zip(readings, scores):
        symbols = tuple(symbol for output in reading for symbol in network.outputs[output])
        plain = tuple(symbol.removesuffix("0") for symbol in symbols)
        first, before = found.get(plain, (symbols, -math.inf))
        found[plain] = first, float(np.logaddexp(before, score))
    found.pop((), None)  # a word has a sound
    ordered = sorted(found.values(), key=lambda item: -item[1])[:_MOST]
    return [one for one in ordered if one[1] > ordered[0][1] + math.log(_LEAST)]
