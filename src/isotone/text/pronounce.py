"""Words to phones: pronunciation dictionaries, espeak-ng, and chains of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from isotone.text.dictionary import Dictionary
from isotone.text.english import EnglishLexicon
from isotone.text.ipa import EspeakIPA
from isotone.text.languages import iso_code
from isotone.text.letters import LetterToSound
from isotone.text.phones import Closures, PhoneSet, to_phone_set
from isotone.text.pronouncer import Pronouncer, Pronunciation

__all__ = [
    "Chain",
    "Dictionary",
    "EnglishLexicon",
    "Espeak",
    "LetterToSound",
    "Pronouncer",
    "load_pronouncer",
]

#: Scripts that espeak-ng reads in English text; it spells or names the letters of other scripts.
_SCRIPTS = ("LATIN", "GREEK", "MICRO")


class Espeak(Pronouncer):
    """English pronunciations from espeak-ng, which pronounces every word of letters.

    Args:
        voice: An espeak-ng voice of American English.
        phones: TIMIT phone set.
        closures: See :func:`to_phone_set`.
    """

    def __init__(self, voice: str = "en-us", phones: PhoneSet = 39, closures: Closures = "merge") -> None:
        self.voice = voice
        self.phones = phones
        self.closures = closures
        self.phone_set = (phones, closures)

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """Return the phones of every word; None for words without sound, in other scripts, or with digits.

        Raises:
            ImportError: espeak-ng is not installed.
        """
        from isotone.text.espeak import phonemize

        found: list[list[str] | None] = [None] * len(words)
        # espeak-ng would read a Chinese word as "Chinese letter", and digits in English; digits of English texts are
        # spelled out before they get here
        known = [i for i, word in enumerate(words) if all(map(_is_read, word))]
        for i, phones in zip(known, phonemize([words[i] for i in known], voice=self.voice)):
            found[i] = to_phone_set(phones, self.phones, self.closures) or None
        return found

    def use_language(self, language: str) -> None:
        """See :meth:`Pronouncer.use_language`; only English is possible."""
        if iso_code(language) != "en":
            raise ValueError(f"its words are pronounced in TIMIT's phones of English; got {language!r}.")

    def save(self, folder: Path) -> dict[str, Any]:
        """Return the configuration; there are no files to write."""
        return {"kind": "espeak", "voice": self.voice, "phones": self.phones, "closures": self.closures}


def _is_read(character: str) -> bool:
    letter = unicodedata.category(character) in ("Lu", "Ll", "Lt", "Lo", "Nd", "Nl", "No")
    return not letter or unicodedata.name(character, "").startswith(_SCRIPTS)


class Chain(Pronouncer):
    """Several pronouncers: each one pronounces the words that those before it do not know.

    Raises:
        ValueError: there are none.
    """

    def __init__(self, *pronouncers: Pronouncer) -> None:
        if not pronouncers:
            raise ValueError("A chain takes one or more pronouncers; got none.")
        self.pronouncers = pronouncers
        self.phone_set = next((p.phone_set for p in pronouncers if p.phone_set), None)

    @property
    def of_language(self) -> bool:
        """See :attr:`Pronouncer.of_language`: one of them does so."""
        return any(p.of_language for p in self.pronouncers)

    def listed(self, words: Sequence[str]) -> list[bool]:
        """See :meth:`Pronouncer.listed`: by any of them."""
        return [any(found) for found in zip(*(p.listed(words) for p in self.pronouncers))]

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """Return the phones of every word; None for a word that no pronouncer knows."""
        found: list[list[str] | None] = [None] * len(words)
        for pronouncer, places in self._asked(words, found):
            for i, phones in zip(places, pronouncer.lookup([words[i] for i in places])):
                found[i] = phones
        return found

    def alternatives(self, words: Sequence[str]) -> list[list[Pronunciation]]:
        """Return the pronunciations of every word: those of the first pronouncer that knows it."""
        found: list[list[Pronunciation]] = [[] for _ in words]
        for pronouncer, places in self._asked(words, found):
            for i, some in zip(places, pronouncer.alternatives([words[i] for i in places])):
                found[i] = some
        return found

    def guessed(self, words: Sequence[str]) -> list[str]:
        """See :meth:`Pronouncer.guessed`."""
        found: list[list[str] | None] = [None] * len(words)
        guesses: set[str] = set()
        for pronouncer, places in self._asked(words, found):
            some = [words[i] for i in places]
            guesses.update(pronouncer.guessed(some))
            for i, phones in zip(places, pronouncer.lookup(some)):
                found[i] = phones
        return [word for word in words if word in guesses]

    def _asked(
        self, words: Sequence[str], found: Sequence[Sequence[object] | None]
    ) -> Iterator[tuple[Pronouncer, list[int]]]:
        """Iterate over the pronouncers, with the places of the words that those before did not know."""
        for pronouncer in self.pronouncers:
            if missing := [i for i, some in enumerate(found) if not some]:
                yield pronouncer, missing

    def use_language(self, language: str) -> None:
        """See :meth:`Pronouncer.use_language`."""
        for pronouncer in self.pronouncers:
            pronouncer.use_language(language)

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the files of all pronouncers.

        Raises:
            ValueError: two of them are dictionaries; a folder holds one.
        """
        if sum(isinstance(p, Dictionary) for p in self.pronouncers) > 1:
            raise ValueError("A chain of two dictionaries cannot be saved: write them into one file.")
        return {"kind": "chain", "pronouncers": [p.save(folder) for p in self.pronouncers]}


def load_pronouncer(config: Mapping[str, Any], folder: Path) -> Pronouncer:
    """Load the pronouncer that :meth:`Pronouncer.save` wrote.

    Args:
        config: The configuration that it returned.
        folder: The folder that it wrote into.

    Raises:
        ValueError: no such kind.
    """
    options = dict(config)
    kind = options.pop("kind", None)
    if kind == "dictionary":
        return Dictionary(folder / options["file"])
    if kind == "espeak":
        return Espeak(**options)
    if kind == "ipa":
        return EspeakIPA(**options)
    if kind == "english":
        return EnglishLexicon(folder / options.pop("file"), **options)
    if kind == "letters":
        return LetterToSound(folder / options.pop("file"), **options)
    if kind == "chain":
        return Chain(*(load_pronouncer(c, folder) for c in options["pronouncers"]))
    raise ValueError(
        f"A saved pronouncer is of kind dictionary, english, letters, espeak, ipa or chain; got {kind!r}."
    )
