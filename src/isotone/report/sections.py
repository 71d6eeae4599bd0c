"""The parts of a report page: headings, text, tables, headline numbers, figures, listings and sound."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from isotone.report.markup import data_uri, fill, wav_uri
from isotone.report.style import render


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval, ``low <= value <= high``."""

    value: float
    low: float
    high: float


_DASH = "\u2013"

#: Content of a cell of a table.
Cell: TypeAlias = str | int | float | Estimate | None


@runtime_checkable
class Section(Protocol):
    """A part of the page."""

    @property
    def css(self) -> str:
        """Style the page needs once for all sections of this kind; empty for most."""
        ...

    @property
    def script(self) -> str:
        """Script the page needs once for all sections of this kind; empty for most."""
        ...

    def markup(self, key: str) -> str:
        """Return its HTML; ``key`` is unique in the page, for ids."""
        ...


class Block:
    """A section that needs neither style nor script of its own."""

    css = ""
    script = ""


@dataclass(frozen=True)
class Heading(Block):
    """A heading; those of level 2 make the page's table of contents."""

    title: str
    level: Literal[2, 3] = 2

    def markup(self, key: str) -> str:
        """Return its HTML."""
        return fill("heading", key=key, title=self.title, level=self.level)


@dataclass(frozen=True)
class Text(Block):
    """Plain paragraphs, separated by empty lines; `` `code` `` between backticks."""

    text: str

    def markup(self, key: str) -> str:
        """Return its HTML."""
        paragraphs = [p.strip() for p in re.split(r"\n\s*\n", self.text) if p.strip()]
        # re.split returns the group's matches, the code, at odd indices
        pieces = [[(text, i % 2) for i, text in enumerate(re.split("`([^`]+)`", p))] for p in paragraphs]
        return fill("text", paragraphs=pieces)


@dataclass(frozen=True)
class Table(Block):
    """A table of results; its first column names the rows.

    Attributes:
        columns: Headings, with units.
        rows: Cells; None and NaN are shown as a dash and are never best.
        caption: Shown above it.
        best: For the columns in which one direction is better, ``"min"`` or ``"max"``; every best cell is
            bold.
        digits: Decimals of floating-point numbers: one number for all columns, or by column (default 2).

    Raises:
        ValueError: a row of another length, or ``best`` or ``digits`` for a column that does not exist.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    best: Mapping[str, Literal["min", "max"]] = field(default_factory=dict)
    digits: int | Mapping[str, int] = 2

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"A table of {len(self.columns)} columns got a row of {len(row)} cells: {list(row)}."
                )
        named = [*self.best, *(self.digits if isinstance(self.digits, Mapping) else ())]
        for name in named:
            if name not in self.columns:
                raise ValueError(f"The table has no column {name!r}; it has {list(self.columns)}.")

    def markup(self, key: str) -> str:
        """Return its HTML."""
        columns = list(zip(*self.rows)) if self.rows else [()] * len(self.columns)
        numeric = [_is_numeric(column) for column in columns]
        winners = [_best(column, self.best.get(name)) for name, column in zip(self.columns, columns)]
        rows = [
            [self._cell(j, cell, numeric[j], i in winners[j]) for j, cell in enumerate(row)]
            for i, row in enumerate(self.rows)
        ]
        head = [{"name": name, "numeric": n} for name, n in zip(self.columns, numeric)]
        caption = self.caption + (" Bold: the best of its column." if any(winners) else "")
        return fill("table", key=key, columns=head, rows=rows, caption=caption.strip())

    def _cell(self, column: int, cell: Cell, numeric: bool, best: bool) -> dict[str, Any]:
        """Prepare a cell for the template."""
        name = self.columns[column]
        digits = self.digits if isinstance(self.digits, int) else self.digits.get(name, 2)
        text, interval = cell, ""
        if isinstance(cell, Estimate):
            text = _number(cell.value, digits)
            interval = f"[{_number(cell.low, digits)}, {_number(cell.high, digits)}]"
        elif cell is None:
            text = _DASH
        elif not isinstance(cell, str):
            text = _number(cell, digits)
        kind = " ".join(["number"] * numeric + ["best"] * best)
        return {"text": text, "interval": interval, "kind": kind, "best": best}


def _number(value: float, digits: int) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}".replace("-", "\u2212")
    return _DASH if math.isnan(value) else f"{value:,.{digits}f}".replace("-", "\u2212")


def _value(cell: Cell) -> float | None:
    """Return the number that a cell holds, or None."""
    number = cell.value if isinstance(cell, Estimate) else cell
    if number is None or isinstance(number, (str, bool, np.bool_)):
        return None
    return None if math.isnan(number) else float(number)


def _is_numeric(column: Sequence[Cell]) -> bool:
    return any(_value(c) is not None for c in column) and not any(isinstance(c, str) for c in column)


def _best(column: Sequence[Cell], direction: str | None) -> set[int]:
    """Return the rows with the best value; none where no direction is better, or there is only one value."""
    values = {i: v for i, c in enumerate(column) if (v := _value(c)) is not None}
    if direction is None or len(values) < 2:
        return set()
    if direction not in ("min", "max"):
        raise ValueError(f"The better direction of a column is 'min' or 'max'; got {direction!r}.")
    top = min(values.values()) if direction == "min" else max(values.values())
    return {i for i, v in values.items() if v == top}


@dataclass(frozen=True)
class Tiles(Block):
    """Headline numbers: (name, value with its unit, note) each."""

    items: Sequence[tuple[str, str, str]]

    def markup(self, key: str) -> str:
        """Return its HTML."""
        return fill("tiles", items=self.items)


@dataclass(frozen=True)
class Image(Block):
    """A figure inside the page.

    Attributes:
        figure: The figure.
        alt: Its content in words, for those who cannot see it.
        caption: Shown under it.
        kind: ``"svg"`` is sharp at any size; ``"png"`` is smaller for figures of very many marks.
    """

    figure: Figure
    alt: str
    caption: str = ""
    kind: Literal["svg", "png"] = "svg"

    def markup(self, key: str) -> str:
        """Return its HTML."""
        source = data_uri(
            "image/svg+xml" if self.kind == "svg" else "image/png", render(self.figure, self.kind)
        )
        width, height = (round(96 * float(inches)) for inches in self.figure.get_size_inches())
        return fill("image", source=source, alt=self.alt, width=width, height=height, caption=self.caption)


@dataclass(frozen=True)
class Code(Block):
    """A listing: a configuration, a command, a traceback."""

    text: str
    caption: str = ""

    def markup(self, key: str) -> str:
        """Return its HTML."""
        return fill("code", text=self.text, caption=self.caption)


@dataclass(frozen=True)
class Audio(Block):
    """A player with the sound inside the page.

    Attributes:
        samples: ``(N,)`` mono, in [-1, 1].
        sample_rate: Samples per second.
        caption: Shown under it, and read out as its name.
    """

    samples: NDArray[np.floating]
    sample_rate: int
    caption: str = ""

    def markup(self, key: str) -> str:
        """Return its HTML."""
        return fill("audio", source=wav_uri(self.samples, self.sample_rate), caption=self.caption)
