"""Words to phones: pronunciation dictionaries, espeak-ng, and one after the other."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotone.files import atomic_write
from isotone.text.folding import bare
from isotone.text.languages import iso_code, language_code
from isotone.text.normalize import TextError
from isotone.text.phones import RELEASES, Closures, PhoneSet, fold
from isotone.text.transcript import not_pronounced

#: Letters that English text has: those of other scripts espeak-ng spells, or names without reading them.
_SCRIPTS = ("LATIN", "GREEK", "MICRO")
_CLOSURES = {release: closure for closure, releases in RELEASES.items() for release in releases}


class Pronouncer(ABC):
    """Words to phones.

    Attributes:
        phone_set: The TIMIT phone set that its phones are brought to, and what becomes of closures (see
            :func:`to_phone_set`); None where they are as they were given.
    """

    phone_set: tuple[PhoneSet, Closures] | None = None

    @abstractmethod
    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """The phones of every word; None for a word it does not know."""

    @abstractmethod
    def save(self, folder: Path) -> dict[str, Any]:
        """Write what :func:`load_pronouncer` needs into a folder, and return the configuration to give it."""

    def use_language(self, language: str) -> None:
        """Have words pronounced in a language, by its ISO 639 code; ValueError where that cannot be.

        What is pronounced in one way only, as by a dictionary, is taken to be right.
        """
        language_code(language)

    def __call__(self, words: Sequence[str]) -> list[list[str]]:
        """The phones of every word.

        Raises:
            TextError: words without pronunciation; the message names them.
        """
        found = self.lookup(words)
        if unknown := [word for word, phones in zip(words, found) if not phones]:
            raise TextError(not_pronounced(unknown))
        return [phones for phones in found if phones]


class Dictionary(Pronouncer):
    """A pronunciation dictionary in the manner of CMUdict or the Montreal Forced Aligner.

    A line is a word, perhaps probabilities, and phones; ``;;;`` begins a comment line, and a ``#`` between
    spaces a comment. Of several pronunciations, also those written ``WORD(2)``, the first counts. Words are
    found in either case, and one with accents that is not there without them.

    Args:
        path: The file, UTF-8.
        phones: A TIMIT phone set to bring ARPAbet to (``AH0`` becomes ``ah``); None leaves them as they are.
        closures: With a phone set: see :func:`to_phone_set`.

    Raises:
        FileNotFoundError: no such file.
        TextError: a line that is not of this form, named; or no words.
    """

    def __init__(
        self, path: str | Path, phones: PhoneSet | None = None, closures: Closures = "merge"
    ) -> None:
        words = read_dictionary(Path(path))
        self.phone_set = None if phones is None else (phones, closures)
        self._words = {w: _fit(p, phones, closures, f"{path}: {w!r}") for w, p in words.items()}

    def __len__(self) -> int:
        return len(self._words)

    def phones(self) -> set[str]:
        """The phones of all its words."""
        return {phone for phones in self._words.values() for phone in phones}

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """The phones of every word; None for a word that is not in the dictionary."""
        found = (self._words.get(word.lower()) or self._words.get(bare(word)) for word in words)
        return [None if phones is None else list(phones) for phones in found]

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the dictionary as ``pronunciations.dict``."""
        with atomic_write(folder / "pronunciations.dict") as file:
            file.writelines(f"{word}\t{' '.join(phones)}\n" for word, phones in self._words.items())
        return {"kind": "dictionary", "file": "pronunciations.dict"}


class Espeak(Pronouncer):
    """English pronunciations from espeak-ng, which has one for every word of letters.

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
        """The phones of every word; None for what espeak-ng says nothing for, other scripts, and digits.

        Raises:
            ImportError: espeak-ng is not installed.
        """
        from isotone.text.espeak import phonemize

        found: list[list[str] | None] = [None] * len(words)
        # of a Chinese word it would say "Chinese letter", and numbers in English; English ones are spelled by now
        known = [i for i, word in enumerate(words) if all(map(_is_read, word))]
        for i, phones in zip(known, phonemize([words[i] for i in known], voice=self.voice)):
            found[i] = to_phone_set(phones, self.phones, self.closures) or None
        return found

    def use_language(self, language: str) -> None:
        """See :meth:`Pronouncer.use_language`: this one is of English."""
        if iso_code(language) != "en":
            raise ValueError(f"its words are pronounced in TIMIT's phones of English; got {language!r}.")

    def save(self, folder: Path) -> dict[str, Any]:
        """Writes nothing: the configuration is all."""
        return {"kind": "espeak", "voice": self.voice, "phones": self.phones, "closures": self.closures}


def _is_read(character: str) -> bool:
    letter = unicodedata.category(character) in ("Lu", "Ll", "Lt", "Lo", "Nd", "Nl", "No")
    return not letter or unicodedata.name(character, "").startswith(_SCRIPTS)


class Chain(Pronouncer):
    """Several pronouncers: each is asked for the words that those before it do not know.

    Raises:
        ValueError: there are none.
    """

    def __init__(self, *pronouncers: Pronouncer) -> None:
        if not pronouncers:
            raise ValueError("A chain takes one or more pronouncers; got none.")
        self.pronouncers = pronouncers
        self.phone_set = next((p.phone_set for p in pronouncers if p.phone_set), None)

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """The phones of every word; None for a word that none of the pronouncers knows."""
        found: list[list[str] | None] = [None] * len(words)
        for pronouncer in self.pronouncers:
            missing = [i for i, phones in enumerate(found) if not phones]
            if not missing:
                break
            for i, phones in zip(missing, pronouncer.lookup([words[i] for i in missing])):
                found[i] = phones
        return found

    def use_language(self, language: str) -> None:
        """See :meth:`Pronouncer.use_language`."""
        for pronouncer in self.pronouncers:
            pronouncer.use_language(language)

    def save(self, folder: Path) -> dict[str, Any]:
        """Write what the pronouncers need.

        Raises:
            ValueError: two of them are dictionaries, which a folder has one of.
        """
        if sum(isinstance(p, Dictionary) for p in self.pronouncers) > 1:
            raise ValueError("A chain of two dictionaries cannot be saved: write them into one file.")
        return {"kind": "chain", "pronouncers": [p.save(folder) for p in self.pronouncers]}


def load_pronouncer(config: Mapping[str, Any], folder: Path) -> Pronouncer:
    """The pronouncer that :meth:`Pronouncer.save` described.

    Args:
        config: What it returned.
        folder: The folder that it wrote to.

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
        from isotone.text.ipa import EspeakIPA  # a pronouncer too

        return EspeakIPA(**options)
    if kind == "chain":
        return Chain(*(load_pronouncer(c, folder) for c in options["pronouncers"]))
    raise ValueError(f"A saved pronouncer is of kind dictionary, espeak, ipa or chain; got {kind!r}.")


def to_phone_set(phones: Sequence[str], to: PhoneSet = 39, closures: Closures = "merge") -> list[str]:
    """Bring the phones of a pronunciation to a TIMIT phone set.

    Args:
        phones: TIMIT's 61 or ARPAbet, with or without stress digits, in either case.
        to: Phone set.
        closures: ``"merge"`` for models whose stops include their closures; ``"sil"`` puts a closure before
            every stop and affricate that has none, as TIMIT's own labels have it.

    Raises:
        ValueError: a phone that is neither.
    """
    plain = [re.sub(r"(?<=[a-z])[012]$", "", phone.lower()) for phone in phones]
    if closures == "sil":
        pairs = zip(["", *plain], plain)
        plain = [
            x
            for before, phone in pairs
            for x in ([phone] if before in RELEASES or phone not in _CLOSURES else [_CLOSURES[phone], phone])
        ]
    return fold(plain, to, closures=closures)


def _fit(phones: list[str], to: PhoneSet | None, closures: Closures, place: str) -> list[str]:
    if to is None:
        return phones
    try:
        return to_phone_set(phones, to, closures)
    except ValueError as error:
        raise TextError(f"{place}: {error}") from None


def read_dictionary(path: Path) -> dict[str, list[str]]:
    """First pronunciation of every word of a dictionary's file, in lower case; see :class:`Dictionary`."""
    if not path.is_file():
        raise FileNotFoundError(f"No pronunciation dictionary {path}.")
    words: dict[str, list[str]] = {}
    for number, data in enumerate(path.read_bytes().splitlines(), 1):
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise TextError(
                f"{path}, line {number}: not UTF-8 ({error.reason}); save the file as UTF-8."
            ) from None
        if line.startswith(";;;") or not line.strip():
            continue
        word, *fields = re.split(r"\s#\s", line, maxsplit=1)[0].split()
        while fields and re.fullmatch(r"\d*\.\d+(?:e-?\d+)?", fields[0]):
            del fields[0]
        if not fields:
            raise TextError(f"{path}, line {number}: expected a word and its phones; got {line[:80]!r}.")
        word = unicodedata.normalize(
            "NFKC", re.sub(r"(?<=.)\(\d+\)$", "", word).replace("\u2019", "'")
        ).lower()
        words.setdefault(word, fields)
    if not words:
        raise TextError(f"{path}: the dictionary has no words.")
    return words
