"""Readings of a user's own: a table of written forms and the words that they are read as."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from isotone.text.encodings import decode_text

_EDGES = "\"'`.,;:!?()[]{}<>\u00ab\u00bb\u201c\u201d\u201e\u2018\u2019\u2026\u00a1\u00bf"


class RulesError(ValueError):
    """A table of readings cannot be read; the message names the file and the line."""


class Rules:
    """Readings by written form.

    A line of a table is a written form, and one or more readings after tabs, the likeliest first. Lines that begin with
    ``#`` followed by a space are comments. A written form has no spaces; one in small letters counts for any case.
    Punctuation around it in a text does not matter.

    Args:
        paths: The tables. Of several with one written form the first counts.

    Raises:
        FileNotFoundError: no such file.
        RulesError: a line of another form.

    Example:
        A file with the line ``SQL<tab>sequel<tab>s q l``.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._ways: dict[str, list[str]] = {}
        for path in paths:
            for written, ways in _read(Path(path)).items():
                self._ways.setdefault(written, ways)

    def __len__(self) -> int:
        return len(self._ways)

    def readings(self, piece: str) -> list[str]:
        """List the readings of a part of a text between spaces; none where no rule fits."""
        for form in dict.fromkeys((piece, piece.rstrip(_EDGES), piece.lstrip(_EDGES), piece.strip(_EDGES))):
            key = unicodedata.normalize("NFC", form)
            found = self._ways.get(key) or self._ways.get(key.lower())
            if found:
                return found
        # a form that ends with a point, before other punctuation: "(approx.),"
        core = unicodedata.normalize("NFC", piece.strip(_EDGES))
        return (
            self._ways.get(f"{core}.") or self._ways.get(f"{core}.".lower()) or []
            if f"{core}." in piece
            else []
        )


def _read(path: Path) -> dict[str, list[str]]:
    if not path.is_file():
        raise FileNotFoundError(f"No table of readings {path}.")
    text, _ = decode_text(path.read_bytes(), str(path))
    found: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("# ") or line.strip() == "#":
            continue
        written, *ways = (" ".join(field.split()) for field in line.split("\t"))
        ways = [way for way in ways if way]
        where = f"{path}, line {number}"
        if not written or not ways:
            raise RulesError(
                f"{where}: expected a written form, a tab and its reading (others after more tabs); got {line[:80]!r}."
            )
        if " " in written:
            raise RulesError(
                f"{where}: a written form has no spaces; got {written!r}. Write a line for each word."
            )
        if bad := next(
            (
                way
                for way in ways
                if any(not (c.isalpha() or c in " '-\u2019" or unicodedata.combining(c)) for c in way)
            ),
            "",
        ):
            raise RulesError(f"{where}: a reading has words in letters alone; got {bad!r}.")
        key = unicodedata.normalize("NFC", written)
        if key in found:
            raise RulesError(f"{where}: {written!r} is there twice; put all of its readings in one line.")
        found[key] = ways
    return found
