"""The index of a corpus's pages: every recording, those to look at first on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from isotone.report.html import page
from isotone.report.markup import fill, read


@dataclass(frozen=True)
class Listed:
    """A recording of the index.

    Attributes:
        name: Its name.
        file: Its page, relative to the index; empty without one.
        seconds: Its duration.
        words: Number of its words.
        confidence: Their mean confidence; None where it is not known.
        doubtful: Number of those that are doubtful.
        worst: Label, seconds and reason of the least sure words.
        doubt: The reason to doubt its text; empty if there is none.
        notes: Other warnings.
        error: The reason why it has no page; empty if it has one.
    """

    name: str
    file: str = ""
    seconds: float = 0.0
    words: int = 0
    confidence: float | None = None
    doubtful: int = 0
    worst: Sequence[tuple[str, float, str]] = ()
    doubt: str = ""
    notes: Sequence[str] = ()
    error: str = ""

    @property
    def link(self) -> str:
        """Address of its page: a name may hold any characters."""
        return quote(self.file)

    @property
    def worth(self) -> tuple[bool, bool, float]:
        """Order of the index."""
        return not self.error, not self.doubt, 1.0 if self.confidence is None else self.confidence


@dataclass(frozen=True)
class _Index:
    """The table of recordings, with a field that filters it by name."""

    rows: Sequence[Listed]

    css = read("index.css")
    script = read("index.js")

    def markup(self, key: str) -> str:
        """Return its HTML."""
        return fill("index", key=key, rows=self.rows)


def index_page(rows: Sequence[Listed]) -> str:
    """Make the index: recordings without a page, then those with a doubtful text, then by the mean confidence.

    Args:
        rows: The recordings, in order of their names, which stays where nothing else decides.
    """
    order = sorted(rows, key=lambda row: row.worth)
    done = [row for row in rows if not row.error]
    facts = {"recordings": len(done), "minutes": f"{sum(row.seconds for row in done) / 60:.1f}"}
    if failed := len(rows) - len(done):
        facts["failed"] = failed
    return page("Alignments", [_Index(order)], facts=facts, wide=True)
