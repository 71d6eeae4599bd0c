"""Words to phones: pronunciation dictionaries, espeak-ng, and chains of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotone.files import atomic_write
from isotone.text.folding import bare
from isotone.text.ipa import EspeakIPA
from isotone.text.languages import iso_code
from isotone.text.normalize import TextError
from isotone.text.phones import CLOSURE_OF, RELEASES, Closures, PhoneSet, fold
from isotone.text.pronouncer import Pronouncer

#: Scripts that espeak-ng reads in English text; it spells or names the letters of other scripts.
_SCRIPTS = ("LATIN", "GREEK", "MICRO")


class Dictionary(Pronouncer):
    """A pronunciation dictionary in the format of CMUdict or the Montreal Forced Aligner.

    A line is a word, optional probabilities, and phones; ``;;;`` begins a comment line, and a ``#`` between spaces a
    comment. Of several pronunciations, ``WORD(2)`` included, the first counts. Case does not matter. A word with
    accents that is not in the dictionary is looked up without them.

    Args:
        path: The file, UTF-8.
        phones: TIMIT phone set to convert ARPAbet to (``AH0`` becomes ``ah``); None keeps the phones.
        closures: With a phone set: see :func:`to_phone_set`.

    Raises:
        FileNotFoundError: no such file.
        TextError: a line of another form, which the message names; or no words.
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
        """Return the set of phones of all words."""
        return {phone for phones in self._words.values() for phone in phones}

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """Return the phones of every word; None for a word that is not in the dictionary."""
        found = (self._words.get(word.lower()) or self._words.get(bare(word)) for word in words)
        return [None if phones is None else list(phones) for phones in found]

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the dictionary as ``pronunciations.dict``."""
        with atomic_write(folder / "pronunciations.dict") as file:
            file.writelines(f"{word}\t{' '.join(phones)}\n" for word, phones in self._words.items())
        return {"kind": "dictionary", "file": "pronunciations.dict"}


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

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """Return the phones of every word; None for a word that no pronouncer knows."""
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
    if kind == "chain":
        return Chain(*(load_pronouncer(c, folder) for c in options["pronouncers"]))
    raise ValueError(f"A saved pronouncer is of kind dictionary, espeak, ipa or chain; got {kind!r}.")


def to_phone_set(phones: Sequence[str], to: PhoneSet = 39, closures: Closures = "merge") -> list[str]:
    """Convert the phones of a pronunciation to a TIMIT phone set.

    Args:
        phones: TIMIT's 61 or ARPAbet, with or without stress digits, in either case.
        to: Size of the phone set.
        closures: ``"merge"`` for models whose stops include their closures; ``"sil"`` puts a closure before every stop
            and affricate without one, as in TIMIT's own labels.

    Raises:
        ValueError: a phone that is neither of TIMIT nor of ARPAbet.
    """
    plain = [re.sub(r"(?<=[a-z])[012]$", "", phone.lower()) for phone in phones]
    if closures == "sil":
        pairs = zip(["", *plain], plain)
        plain = [
            x
            for before, phone in pairs
            for x in (
                [phone] if before in RELEASES or phone not in CLOSURE_OF else [CLOSURE_OF[phone], phone]
            )
        ]
    return fold(plain, to, closures=closures)


def _fit(phones: list[str], to: PhoneSet | None, closures: Closures, entry: str) -> list[str]:
    if to is None:
        return phones
    try:
        return to_phone_set(phones, to, closures)
    except ValueError as error:
        raise TextError(f"{entry}: {error}") from None


def read_dictionary(path: Path) -> dict[str, list[str]]:
    """Read the first pronunciation of every word, in lower case, from a file; see :class:`Dictionary`."""
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
