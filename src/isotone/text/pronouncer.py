"""The interface of pronouncers: words to phones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from isotone.text.languages import language_code
from isotone.text.normalize import TextError
from isotone.text.phones import Closures, PhoneSet
from isotone.text.transcript import not_pronounced


class Pauses(NamedTuple):
    """Costs in nats, 0 or more, of what is beside a pronunciation.

    Attributes:
        to_speech, to_pause: Costs of other speech after it, and of a pause.
        from_speech, from_pause: The same before it.
    """

    to_speech: float = 0.0
    to_pause: float = 0.0
    from_speech: float = 0.0
    from_pause: float = 0.0


class Pronunciation(NamedTuple):
    """One way of saying a word.

    Attributes:
        phones: Its phones.
        log_prob: Log-probability in nats among the pronunciations of the word; 0 for the only one.
        pauses: Costs of pauses beside it; None where they are as likely as speech.
    """

    phones: tuple[str, ...]
    log_prob: float = 0.0
    pauses: Pauses | None = None


def ranked(weighted: Iterable[tuple[Iterable[str], float]], most: int | None = None) -> list[Pronunciation]:
    """Rank weighted pronunciations of a word; equal ones become one, and the probabilities of those kept add up to 1.

    Args:
        weighted: Phones and a positive weight. Of equally likely pronunciations the earlier one is first.
        most: Number of pronunciations to keep; None keeps all.

    Example:
        >>> [p.phones for p in ranked([("ab", 1.0), ("ac", 2.0), ("ab", 3.0)])]
        [('a', 'b'), ('a', 'c')]
    """
    weights: dict[tuple[str, ...], float] = {}
    for phones, weight in weighted:
        key = tuple(phones)
        weights[key] = weights.get(key, 0.0) + weight
    kept = sorted(weights.items(), key=lambda item: -item[1])[:most]
    total = sum(weight for _, weight in kept)
    # a single pronunciation has exactly 0
    return [Pronunciation(p, math.log(w / total) if len(kept) > 1 else 0.0) for p, w in kept]


class Pronouncer(ABC):
    """Words to phones.

    Attributes:
        phone_set: The TIMIT phone set of its phones, and the treatment of closures (see
            :func:`isotone.text.pronounce.to_phone_set`); None for phones as they were given.
    """

    phone_set: tuple[PhoneSet, Closures] | None = None

    @property
    def of_language(self) -> bool:
        """True where it lists nearly all words of texts in its language: those it does not list are strange there."""
        return False

    def listed(self, words: Sequence[str]) -> list[bool]:
        """Tell for every word if it is in a list of words; words that are made of others or read by letter are not."""
        return [False] * len(words)

    @abstractmethod
    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """Return the phones of every word; None for an unknown word."""

    def alternatives(self, words: Sequence[str]) -> list[list[Pronunciation]]:
        """Return the pronunciations of every word, the likeliest first; none for an unknown word.

        The first one is what :meth:`lookup` returns.
        """
        return [[Pronunciation(tuple(phones))] if phones else [] for phones in self.lookup(words)]

    def guessed(self, words: Sequence[str]) -> list[str]:
        """Return those of the words whose pronunciation is a guess from their letters, in order."""
        return []

    @abstractmethod
    def save(self, folder: Path) -> dict[str, Any]:
        """Write the files that loading needs into a folder, and return the configuration for it.

        See :func:`isotone.text.pronounce.load_pronouncer`.
        """

    def use_language(self, language: str) -> None:
        """Pronounce words in a language, given by its ISO 639 code; ValueError if that is impossible.

        A pronouncer with fixed pronunciations, such as a dictionary, accepts every language.
        """
        language_code(language)

    def __call__(self, words: Sequence[str]) -> list[list[str]]:
        """Return the phones of every word.

        Raises:
            TextError: words without a pronunciation; the message names them.
        """
        found = self.lookup(words)
        if unknown := [word for word, phones in zip(words, found) if not phones]:
            raise TextError(not_pronounced(unknown))
        return [phones for phones in found if phones]
