"""English pronunciations from a packed lexicon, with reduced and other variants."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from isotone.files import atomic_write
from isotone.text.folding import bare
from isotone.text.languages import iso_code
from isotone.text.packed import Symbols, unpack
from isotone.text.phones import Closures, PhoneSet, to_phone_set
from isotone.text.pronouncer import Pauses, Pronouncer, Pronunciation, ranked
from isotone.text.variants import variants
from isotone.text.word_forms import formed, lettered

Parsed = TypeVar("Parsed")

#: Pronunciations of one word, at most.
MOST = 6
#: Least probability of a pronunciation, relative to the likeliest of its word.
LEAST = 0.02
#: Words whose pronunciations are remembered.
_REMEMBERED = 20_000
_FILE = "english_words.xz"
_APOSTROPHES = str.maketrans("\u2019\u2018", "''")


class EnglishPronouncer(Pronouncer):
    """Pronouncer of English in TIMIT's phones, whose subclasses give phones with unstressed vowels marked by ``0``.

    Args:
        phones: TIMIT phone set.
        closures: See :func:`isotone.text.phones.to_phone_set`.
    """

    def __init__(self, phones: PhoneSet = 48, closures: Closures = "merge") -> None:
        self.phones = phones
        self.closures = closures
        self.phone_set = (phones, closures)
        self._remembered: dict[str, list[Pronunciation]] = {}

    def use_language(self, language: str) -> None:
        """See :meth:`Pronouncer.use_language`; only English is possible."""
        if iso_code(language) != "en":
            raise ValueError(f"its words are English; got {language!r}.")

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """Return the likeliest phones of every word; None for an unknown word."""
        return [list(found[0].phones) if found else None for found in self.alternatives(words)]

    def alternatives(self, words: Sequence[str]) -> list[list[Pronunciation]]:
        """See :meth:`Pronouncer.alternatives`; at most six for each word."""
        return [list(self._pronounced(word)) for word in words]

    @abstractmethod
    def _weighted(self, word: str) -> Iterable[tuple[Symbols, float]]:
        """Return the pronunciations of a word with their weights; none for an unknown word."""

    def _pronounced(self, word: str) -> list[Pronunciation]:
        """Return the pronunciations of a word, which are remembered: texts have few different words."""
        if word not in self._remembered:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[word] = self._found(word)
        return self._remembered[word]

    def _found(self, word: str) -> list[Pronunciation]:
        return self._ranked(self._weighted(word))

    def _ranked(self, weighted: Iterable[tuple[Symbols, float]]) -> list[Pronunciation]:
        """Return the likeliest pronunciations in the phone set."""
        found = ranked(weighted, MOST)
        return ranked(
            (to_phone_set(one.phones, self.phones, self.closures), weight)
            for one in found
            if (weight := math.exp(one.log_prob)) >= LEAST * math.exp(found[0].log_prob)
        )


def read(path: str | Path, what: str, parse: Callable[[bytes], Parsed]) -> tuple[bytes, Parsed]:
    """Read and parse a file of pronunciations.

    Raises:
        FileNotFoundError: no such file; the message says ``what`` is missing.
        ValueError: it is another file, or damaged.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"No {what} {path}.")
    content = Path(path).read_bytes()
    try:
        return content, parse(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}.") from None


class EnglishLexicon(EnglishPronouncer):
    """A packed lexicon of English, and forms of its words that it does not list.

    Words that are not in it are made from those that are, see :func:`isotone.text.word_forms.formed`. A word of two
    to five capitals that is unknown is read by letter.

    The pronunciations of a word in the lexicon have weights of 1, 1/2, 1/4 ... in its order, unless its header has a
    table of ``reductions`` with the word. Each of the others has its variants, see
    :func:`isotone.text.variants.variants`. A table of ``pauses`` in the header has the costs of pauses beside words:
    few readers pause after *the*, many before *but*.

    Args:
        path: The file; ``recipes/english/pronounce.py`` makes one.
        phones: TIMIT phone set.
        closures: See :func:`isotone.text.phones.to_phone_set`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is another file, or damaged.
    """

    def __init__(self, path: str | Path, phones: PhoneSet = 48, closures: Closures = "merge") -> None:
        super().__init__(phones, closures)
        self._content, self.words = read(path, "lexicon", unpack)
        self._reductions: dict[str, dict[str, float]] = self.words.header.get("reductions", {})
        self._pauses = {word: Pauses(*costs) for word, costs in self.words.header.get("pauses", {}).items()}

    def __len__(self) -> int:
        return len(self.words)

    @property
    def of_language(self) -> bool:
        """See :attr:`Pronouncer.of_language`."""
        return True

    def listed(self, words: Sequence[str]) -> list[bool]:
        """See :meth:`Pronouncer.listed`; accents count."""
        return [bool(self.words.get(_listed_as(word))) for word in words]

    def symbols(self, word: str) -> list[Symbols]:
        """Return the pronunciations of a word as the lexicon writes them; none for an unknown word."""
        lower = _listed_as(word)
        plain = bare(lower).strip("'")
        found = self.words.get(lower) or self.words.get(bare(lower)) or self.words.get(plain)
        if not found and re.fullmatch(r"[A-Z]{2,5}", word):
            return lettered(plain, self.words.get)
        return found or (formed(bare(lower), self.words.get) if plain else [])

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the lexicon as ``english_words.xz``."""
        with atomic_write(Path(folder) / _FILE, "wb") as file:
            file.write(self._content)
        return {"kind": "english", "file": _FILE, "phones": self.phones, "closures": self.closures}

    def _found(self, word: str) -> list[Pronunciation]:
        found, pauses = super()._found(word), self._pauses.get(_listed_as(word))
        return found if pauses is None else [one._replace(pauses=pauses) for one in found]

    def _weighted(self, word: str) -> list[tuple[Symbols, float]]:
        if table := self._reductions.get(_listed_as(word)):
            return [(tuple(phones.split()), weight) for phones, weight in table.items()]
        return [
            (phones, weight / 2**rank)
            for rank, symbols in enumerate(self.symbols(word))
            for phones, weight in variants(symbols)
        ]


def _listed_as(word: str) -> str:
    """Write a word as the lexicon's tables do: in lower case, with straight apostrophes."""
    return word.lower().translate(_APOSTROPHES)
