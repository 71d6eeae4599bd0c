"""Pronunciation dictionaries as files of text: CMUdict's format and the Montreal Forced Aligner's."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from isotone.files import atomic_write
from isotone.text.folding import bare
from isotone.text.normalize import TextError
from isotone.text.phones import Closures, PhoneSet, to_phone_set
from isotone.text.pronouncer import Pronouncer, Pronunciation, ranked

#: Least weight of a pronunciation, relative to one without a probability: probabilities in files may be 0.
_LEAST = 1e-4


class Dictionary(Pronouncer):
    """A pronunciation dictionary in the format of CMUdict or the Montreal Forced Aligner.

    A line is a word, optional probabilities, and phones; ``;;;`` begins a comment line, and a ``#`` between spaces a
    comment. A word may have several lines, as ``WORD(2)`` or repeated. The first number of a line is the probability of
    the pronunciation; further ones are about the silences around it and are not used. Pronunciations without a number
    are equally likely. Case does not matter. A word with accents that is not in the dictionary is looked up without
    them.

    Args:
        path: The file, UTF-8.
        phones: TIMIT phone set to convert ARPAbet to (``AH0`` becomes ``ah``); None keeps the phones.
        closures: With a phone set: see :func:`isotone.text.phones.to_phone_set`.

    Raises:
        FileNotFoundError: no such file.
        TextError: a line of another form, which the message names; or no words.
    """

    def __init__(
        self, path: str | Path, phones: PhoneSet | None = None, closures: Closures = "merge"
    ) -> None:
        words = read_dictionary(Path(path))
        self.phone_set = None if phones is None else (phones, closures)
        self._words = {
            word: ranked((_fit(p, phones, closures, f"{path}: {word!r}"), weight) for p, weight in found)
            for word, found in words.items()
        }

    def __len__(self) -> int:
        return len(self._words)

    def phones(self) -> set[str]:
        """Return the set of phones of all words."""
        return {phone for found in self._words.values() for one in found for phone in one.phones}

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """Return the likeliest phones of every word; None for a word that is not in the dictionary."""
        return [list(found[0].phones) if found else None for found in self.alternatives(words)]

    def alternatives(self, words: Sequence[str]) -> list[list[Pronunciation]]:
        """See :meth:`Pronouncer.alternatives`."""
        return [list(self._words.get(w.lower()) or self._words.get(bare(w)) or ()) for w in words]

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the dictionary as ``pronunciations.dict``."""
        with atomic_write(folder / "pronunciations.dict") as file:
            file.writelines(_line(w, one, len(found)) for w, found in self._words.items() for one in found)
        return {"kind": "dictionary", "file": "pronunciations.dict"}


def _line(word: str, spoken: Pronunciation, among: int) -> str:
    likely = f"\t{max(math.exp(spoken.log_prob), _LEAST):.6f}" if among > 1 else ""
    return f"{word}{likely}\t{' '.join(spoken.phones)}\n"


def _fit(phones: Sequence[str], to: PhoneSet | None, closures: Closures, entry: str) -> Sequence[str]:
    if to is None:
        return phones
    try:
        return to_phone_set(phones, to, closures)
    except ValueError as error:
        raise TextError(f"{entry}: {error}") from None


def read_dictionary(path: Path) -> dict[str, list[tuple[tuple[str, ...], float]]]:
    """Read the pronunciations of every word, in lower case, with their weights; see :class:`Dictionary`.

    Raises:
        FileNotFoundError: no such file.
        TextError: a line of another form, which the message names; or no words.
    """
    if not path.is_file():
        raise FileNotFoundError(f"No pronunciation dictionary {path}.")
    words: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    for number, line in _lines(path):
        word, *fields = re.split(r"\s#\s", line, maxsplit=1)[0].split()
        weights = []
        while fields and re.fullmatch(r"\d*\.\d+(?:e-?\d+)?", fields[0]):
            weights.append(float(fields.pop(0)))
        if not fields:
            raise TextError(f"{path}, line {number}: expected a word and its phones; got {line[:80]!r}.")
        word = re.sub(r"(?<=.)\(\d+\)$", "", word).replace("\u2019", "'")
        word = unicodedata.normalize("NFKC", word).lower()
        words.setdefault(word, []).append((tuple(fields), max([*weights, 1.0][0], _LEAST)))
    if not words:
        raise TextError(f"{path}: the dictionary has no words.")
    return words


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    """Iterate over the lines that are neither empty nor comments, with their numbers."""
    for number, data in enumerate(path.read_bytes().splitlines(), 1):
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise TextError(
                f"{path}, line {number}: not UTF-8 ({error.reason}); save the file as UTF-8."
            ) from None
        if line.strip() and not line.startswith(";;;"):
            yield number, line
