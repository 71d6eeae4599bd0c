"""Ids of an index's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Ids:
    """Ids of numbered rows, in both directions. The first rows whose ids are their numbers take no memory.

    Attributes:
        own: Number of these first rows.
    """

    def __init__(self) -> None:
        self.own = 0
        self._gone: set[int] = set()  # of the first rows
        self._row: dict[str, int] = {}
        self._id: dict[int, str] = {}

    def __len__(self) -> int:
        return self.own - len(self._gone) + len(self._row)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and (id in self._row or self._own(id) is not None)

    def add(self, ids: Sequence[str], first: int) -> None:
        """Give rows from ``first`` on their ids, which are new."""
        row = first
        for id in ids:
            if row == self.own and id == str(row) and not self._row:
                self.own += 1
            else:
                self._row[id], self._id[row] = row, id
            row += 1

    def pop(self, id: str) -> int:
        """Take an id out; return its row."""
        if id in self._row:
            row = self._row.pop(id)
            del self._id[row]
            return row
        row = self.row(id)
        self._gone.add(row)
        return row

    def row(self, id: str) -> int:
        """Return the row of an id; KeyError where it is not there."""
        row = self._row.get(id, self._own(id))
        if row is None:
            raise KeyError(id)
        return row

    def of(self, row: int) -> str:
        """Return the id of a row."""
        return str(row) if row < self.own else self._id[row]

    def state(self) -> dict[str, Any]:
        """Return what :meth:`restored` makes these ids of, for JSON."""
        return {
            "own": self.own,
            "own_gone": sorted(self._gone),
            "ids": list(self._row),
            "rows": list(self._row.values()),
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Ids:
        """Make ids of :meth:`state`."""
        ids = cls()
        ids.own, ids._gone = state.get("own", 0), set(state.get("own_gone", ()))
        ids._row = dict(zip(state["ids"], state["rows"], strict=True))
        ids._id = {row: id for id, row in ids._row.items()}
        return ids

    def _own(self, id: str) -> int | None:
        """Return the row of an id that is its number; None for any other."""
        if not (id.isascii() and id.isdecimal() and len(id) <= len(str(self.own))):
            return None
        row = int(id)
        return row if row < self.own and row not in self._gone and str(row) == id else None
