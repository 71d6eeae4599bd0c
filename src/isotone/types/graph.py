"""Graphs of tokens: which token may follow which, where a text can be said in several ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from isotone.tensors import Tensor, torch
from isotone.types.batch import Batch, marks

#: The arcs into one token, and the arcs of a row: those into each token, then those into the end. An arc is the token
#: that it comes from, -1 for the start, and its cost in nats.
Ways = list[tuple[int, float]]
RowOfWays = Sequence[Ways]


@dataclass(frozen=True)
class TokenGraph(Batch):
    """The ways through the tokens of a batch, which are in topological order.

    An alignment follows one path from the start to the end; the tokens beside it have no frames.

    Attributes:
        first: ``(B, U + 2)`` int64. The arcs into token u are number ``first[u]`` to ``first[u + 1] - 1``, those into
            the end of a row of n tokens ``first[n]`` to ``first[n + 1] - 1``.
        before: ``(B, A)`` int64, the token that each arc comes from, ascending per token; -1 is the start.
        costs: ``(B, A)`` float64, nats, 0 or more.
        shortest, longest: ``(B, U)`` float64, seconds that a token has to last, if it is on the path, and may last; 0
            for no limit.
        halves: ``(B, U)`` bool, tokens that are half of a phone, such as the release of a stop. A least duration of
            phones is halved for them.
        pauses: ``(B, U)`` bool, silences between words, which may be anywhere: a guide holds words, not pauses.
    """

    first: Tensor
    before: Tensor
    costs: Tensor
    shortest: Tensor
    longest: Tensor
    halves: Tensor
    pauses: Tensor

    @classmethod
    def from_lists(
        cls,
        rows: Sequence[RowOfWays],
        lasting: Sequence[Sequence[tuple[float, float]]],
        halves: Sequence[Sequence[bool]],
        pauses: Sequence[Sequence[bool]] = (),
    ) -> TokenGraph:
        """Pack rows of arcs, which are sorted; ``lasting`` has the shortest and longest seconds of every token."""
        size = max([1, *map(len, lasting)])
        first = torch.zeros(len(rows), size + 2, dtype=torch.long)
        most = max([1, *(sum(map(len, ways)) for ways in rows)])
        before = torch.zeros(len(rows), most, dtype=torch.long)
        costs = torch.zeros(len(rows), most, dtype=torch.float64)
        limits = torch.zeros(len(rows), size, 2, dtype=torch.float64)
        for b, ways in enumerate(rows):
            flat = [way for some in ways for way in sorted(some)]
            ends = torch.tensor([len(some) for some in ways]).cumsum(0)
            first[b, 1 : len(ways) + 1] = ends
            before[b, : len(flat)] = torch.tensor([p for p, _ in flat], dtype=torch.long)
            costs[b, : len(flat)] = torch.tensor([c for _, c in flat], dtype=torch.float64)
            limits[b, : len(lasting[b])] = torch.tensor(lasting[b], dtype=torch.float64).reshape(-1, 2)
        shortest, longest = limits[..., 0], limits[..., 1]
        return cls(first, before, costs, shortest, longest, *(marks(m, shortest) for m in (halves, pauses)))

    def ways(self, row: int, length: int) -> list[Ways]:
        """The arcs into each of a row's tokens and into its end."""
        ends = self.first[row, : length + 2].tolist()
        flat = list(zip(self.before[row].tolist(), self.costs[row].tolist()))
        return [flat[a:b] for a, b in pairwise(ends)]


def line(optional: Sequence[bool]) -> list[Ways]:
    """The arcs of tokens in a line, of which some are optional; at least one is required."""
    rows: list[Ways] = []
    for u in range(len(optional) + 1):
        p = u - 1
        while p >= 0 and optional[p]:
            p -= 1
        rows.append([(q, 0.0) for q in range(max(p, -1 if u < len(optional) else 0), u)])
    return rows
