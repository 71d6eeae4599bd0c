"""Pronunciation dictionaries as files of text: CMUdict's format and the Montreal Forced Aligner's."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from isotone.files import atomic_write
from isotone.text.folding import bare
from isotone.text.normalize import TextError
from isotone.text.phones import Closures, PhoneSet, to_phone_set
from isotone.text.pronouncer import Pauses, Pronouncer, Pronunciation, ranked

#: Least weight of a pronunciation, relative to one without a probability: probabilities in files may be 0.
_LEAST = 1e-4

# Phones of other aligners for speech that is not understood, and for other noise: such words have no pronunciation.
_NOISES = frozenset({"spn", "nsn"})


class Dictionary(Pronouncer):
    """A pronunciation dictionary in the format of CMUdict or the Montreal Forced Aligner.

    A line is a word, optional probabilities, and phones; ``;;;`` or ``# `` begins a comment line, and a ``#`` between
    spaces a comment. A word may have several lines, as ``WORD(2)`` or repeated. The first number of a line is the
    probability of the pronunciation. Three more are the Montreal Forced Aligner's: the probability of a silence after
    it, and the factors by which a silence before it, and speech before it, are likelier than elsewhere. Pronunciations
    without a number are equally likely. Words of the one phone ``spn``, as ``<unk>``, are left out. Case does not
    matter. A word with accents that is not in the dictionary is looked up without them.

    Args:
        path: The file, UTF-8.
        phones: TIMIT phone set to convert ARPAbet (``AH0`` becomes ``ah``) and English IPA to; None keeps the phones.
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
        self._words: dict[str, list[Pronunciation]] = {}
        for word, found in words.items():
            fitted = [tuple(_fit(e.phones, phones, closures, f"{path}: {word!r}")) for e in found]
            pauses = dict(zip(reversed(fitted), reversed(_pauses(found))))  # of equal ones the first
            weighted = ((own, e.weight) for own, e in zip(fitted, found))
            self._words[word] = [one._replace(pauses=pauses[one.phones]) for one in ranked(weighted)]

    def __len__(self) -> int:
        return len(self._words)

    def phones(self) -> set[str]:
        """Return the set of phones of all words."""
        return {phone for found in self._words.values() for one in found for phone in one.phones}

    def listed(self, words: Sequence[str]) -> list[bool]:
        """See :meth:`Pronouncer.listed`."""
        return [word.lower() in self._words for word in words]

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


class Entry(NamedTuple):
    """A line of a dictionary.

    Attributes:
        phones: The phones.
        weight: Their probability, above 0; 1 where the line has none.
        silence: Probability of a silence after it; None where the line has none.
        factors: Factors of the probabilities of silence, and of speech, before it.
    """

    phones: tuple[str, ...]
    weight: float = 1.0
    silence: float | None = None
    factors: tuple[float, float] = (1.0, 1.0)


def _pauses(entries: Sequence[Entry]) -> list[Pauses | None]:
    """Turn the silences of a word's lines into costs, of which the least before it is 0."""
    if all(entry.silence is None for entry in entries):
        return [None] * len(entries)
    costs = [[-math.log(max(factor, _LEAST)) for factor in entry.factors] for entry in entries]
    least = min(cost for two in costs for cost in two)
    found: list[Pauses | None] = []
    for entry, (pause, speech) in zip(entries, costs):
        silent = 0.5 if entry.silence is None else min(max(entry.silence, _LEAST), 1 - _LEAST)
        found.append(Pauses(-math.log(1 - silent), -math.log(silent), speech - least, pause - least))
    return found


def _line(word: str, spoken: Pronunciation, among: int) -> str:
    numbers = [max(math.exp(spoken.log_prob), _LEAST)] if among > 1 or spoken.pauses else []
    if spoken.pauses is not None:
        _, to_pause, from_speech, from_pause = spoken.pauses
        numbers += [math.exp(-cost) for cost in (to_pause, from_pause, from_speech)]
    likely = "".join(f"\t{number:.6f}" for number in numbers)
    return f"{word}{likely}\t{' '.join(spoken.phones)}\n"


def _fit(phones: Sequence[str], to: PhoneSet | None, closures: Closures, entry: str) -> Sequence[str]:
    if to is None:
        return phones
    try:
        return to_phone_set(phones, to, closures)
    except ValueError as error:
        raise TextError(f"{entry}: {error}") from None


def read_dictionary(path: Path) -> dict[str, list[Entry]]:
    """Read the pronunciations of every word, in lower case; see :class:`Dictionary`.

    Raises:
        FileNotFoundError: no such file.
        TextError: a line of another form, which the message names; or no words.
    """
    if not path.is_file():
        raise FileNotFoundError(f"No pronunciation dictionary {path}.")
    words: dict[str, list[Entry]] = {}
    for number, line in _lines(path):
        word, entry = _entry(line, f"{path}, line {number}")
        if len(entry.phones) > 1 or entry.phones[0].lower() not in _NOISES:
            words.setdefault(word, []).append(entry)
    if not words:
        raise TextError(f"{path}: the dictionary has no words.")
    return words


def _entry(line: str, where: str) -> tuple[str, Entry]:
    """Read the word of a line, in lower case, and the rest."""
    word, *fields = re.split(r"\s#\s", line, maxsplit=1)[0].split()
    numbers = []
    while fields and re.fullmatch(r"\d*\.\d+(?:e-?\d+)?", fields[0]):
        numbers.append(float(fields.pop(0)))
    if not fields:
        raise TextError(f"{where}: expected a word and its phones; got {line[:80]!r}.")
    word = re.sub(r"(?<=.)\(\d+\)$", "", word).replace("\u2019", "'")
    word = unicodedata.normalize("NFKC", word).lower()
    if len(numbers) not in (0, 1, 4):
        raise TextError(
            f"{where}: expected no number, a probability, or the Montreal Forced Aligner's four; "
            f"got {len(numbers)}: {line[:80]!r}."
        )
    if numbers and not max(numbers[:2]) <= 1:
        raise TextError(f"{where}: probabilities are at most 1; got {line[:80]!r}.")
    weight = max([*numbers, 1.0][0], _LEAST)
    silences = (numbers[1], (numbers[2], numbers[3])) if len(numbers) == 4 else ()
    return word, Entry(tuple(fields), weight, *silences)


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    """Iterate over the lines that are neither empty nor comments, with their numbers."""
    for number, data in enumerate(path.read_bytes().splitlines(), 1):
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise TextError(
                f"{path}, line {number}: not UTF-8 ({error.reason}); save the file as UTF-8."
            ) from None
        if line.strip() and not line.startswith((";;;", "# ")):
            yield number, line
