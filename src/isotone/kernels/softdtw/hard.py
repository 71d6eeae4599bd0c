"""Dynamic time warping: the best alignment, of whole sequences or of a part of one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.kernels.softdtw import backends, cpu
from isotone.kernels.softdtw.inputs import by_columns, lengths_of, prepare
from isotone.kernels.softdtw.soft import values_and_visits
from isotone.types import Coupling, length_mask


class SubsequenceMatch(NamedTuple):
    """The part of a longer sequence that a query matches.

    Attributes:
        coupling: Query positions to sequence positions, hard; its score is minus the cost.
        spans: ``(B, 2)`` int64, the first matched position of the sequence, and one past the last.
    """

    coupling: Coupling
    spans: Tensor


@torch.no_grad()
def dtw(
    cost: Tensor,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    *,
    band: int | None = None,
) -> Coupling:
    """The best alignment: dynamic time warping.

    Args:
        cost, source_lengths, target_lengths, band: As in :func:`soft_dtw`.

    Returns:
        A hard coupling, mass 1 for each pair of the path; ``score`` is minus the path's cost. On ties the diagonal step
        goes first.

    Raises:
        AlignmentError: a row holds NaN, or every path in it is forbidden; the message names it.
        ValueError: as in :func:`soft_dtw`.
    """
    laned, plan = prepare(cost.detach(), 0.0, source_lengths, target_lengths, band)
    backend = backends.backend_of(cost.device)
    if backend is cpu:
        values, up, left = backend.forward(laned, plan, 0.0, True)
        _check_values(values)
        source, target, count = backend.best_paths(up, left, plan)
    else:
        values, visits = values_and_visits(laned, plan, 0.0)
        _check_values(values)
        source, target, count = _visited(visits > 0)
    n, m = (torch.from_numpy(x).to(cost.device) for x in (plan.n, plan.m))
    if by_columns(cost):
        source, target, n, m = target, source, m, n
    mass = length_mask(count, source.shape[1]).to(laned.dtype)
    return Coupling(source, target, mass, n, m, -values.to(laned.dtype))


@torch.no_grad()
def subsequence_dtw(
    cost: Tensor, query_lengths: Tensor | None = None, sequence_lengths: Tensor | None = None
) -> SubsequenceMatch:
    """The part of a sequence that warps best onto a query: the query's ends are fixed, the sequence's free.

    Args:
        cost: ``(B, n, m)`` floating, of query positions (n) against sequence positions (m).
        query_lengths, sequence_lengths: ``(B,)`` int64. Default: all.

    Returns:
        Path and span of the minimum over all parts of the sequence of the cost of :func:`dtw`.

    Raises:
        AlignmentError, ValueError: as in :func:`dtw`.
    """
    cost = cost.detach()
    if cost.ndim != 3:
        raise ValueError(f"Expected costs (B, n, m); got {tuple(cost.shape)}. For one pair use cost[None].")
    n = torch.from_numpy(lengths_of(query_lengths, len(cost), cost.shape[1])).to(cost.device)
    # a row of zeros before the query and one after: paths enter and leave anywhere at no cost
    row = torch.arange(cost.shape[1] + 2, device=cost.device)[:, None]
    framed = torch.nn.functional.pad(cost, (0, 0, 1, 1))
    framed = torch.where((row == 0) | (row > n[:, None, None]), 0.0, framed)
    path = dtw(framed, n + 2, sequence_lengths)
    inside = (path.mass > 0) & (path.source > 0) & (path.source <= n[:, None])
    match = path.select(inside)
    coupling = Coupling(match.source - 1, match.target, match.mass, n, path.target_lengths, path.score)
    return SubsequenceMatch(coupling, torch.stack([match.target[:, 0], match.target[:, -1] + 1], 1))


def _check_values(values: Tensor) -> None:
    finite = torch.isfinite(values)
    if not finite.all():
        row = int((~finite).nonzero()[0])
        reason = "its costs hold NaN" if torch.isnan(values[row]) else "every path in it is forbidden"
        raise AlignmentError(f"{reason}.", row=row)


def _visited(cells: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows and columns ``(B, K)`` of the cells that ``cells (B, n, m)`` marks, one path per row, and their
    number.

    Padding repeats a row's last cell.
    """
    _, row, column = cells.nonzero().unbind(1)
    count = cells.flatten(1).sum(1)
    begin = torch.cumsum(count, 0) - count
    size = max(1, int(count.max()) if len(count) else 1)
    step = torch.arange(size, device=cells.device)
    index = begin[:, None] + torch.minimum(step, count[:, None] - 1)
    return row[index], column[index], count
