"""CMUdict as the lexicon writes it: TIMIT's phones in lower case, with ``0`` on unstressed vowels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from isotone.text.dictionary import read_dictionary
from isotone.text.phones import PHONES_48

Symbols = tuple[str, ...]

#: Table of reduced pronunciations, beside this module.
REDUCTIONS = Path(__file__).with_name("reductions.txt")


def read_cmudict(path: Path) -> dict[str, list[Symbols]]:
    """Read all pronunciations of every word.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is no dictionary of ARPAbet with stress digits.
    """
    found = {
        word: list(dict.fromkeys(symbols(one.phones) for one in some))
        for word, some in read_dictionary(path).items()
    }
    if all(s.removesuffix("0") == s for some in found.values() for one in some for s in one):
        raise ValueError(f"{path}: no phone has a stress digit (AH0); take CMUdict with its stresses.")
    return found


def symbols(phones: Sequence[str]) -> Symbols:
    """Return the symbols of ARPAbet phones: ``AH0`` is ``ax``, ``IY0`` is ``iy0``, ``IY1`` and ``IY2`` are ``iy``."""
    plain = ("ax" if phone == "AH0" else re.sub(r"[12]$", "", phone).lower() for phone in phones)
    found = tuple(plain)
    if strange := {s for s in found if s.removesuffix("0") not in PHONES_48}:
        raise ValueError(f"CMUdict has no phones {sorted(strange)}; expected ARPAbet, such as {phones}.")
    return found


def read_reductions(path: Path = REDUCTIONS) -> dict[str, dict[str, float]]:
    """Read the table of reduced pronunciations: for every word its phones and their weights.

    Raises:
        ValueError: a line of another form, or with another phone.
    """
    table: dict[str, dict[str, float]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, rest = line.split(maxsplit=1)
        found = [part.rsplit(maxsplit=1) for part in rest.split("|")]
        if word in table or not all(set(phones.split()) <= set(PHONES_48) for phones, _ in found):
            raise ValueError(f"{path}, line {number}: a new word, and phones of {PHONES_48}; got {line!r}.")
        table[word] = {" ".join(phones.split()): float(weight) for phones, weight in found}
    return table
