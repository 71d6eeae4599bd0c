"""Exact ordered assignments: sequences of positions that keep order and have the best sum.

Both problems are dynamic programmes whose steps are running extrema. On the CPU they are compiled, and rows run on
``torch.get_num_threads()`` threads. On other devices they take m steps of tensor operations over n. Both sum in float64
and give the same indices: ties go to the smallest index, from the last one back.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.kernels._assignment import assignment_row, minimum_row
from isotone.kernels.threads import each_task
from isotone.types import check_integers, length_mask

#: An index past the end of a row.
PADDING = -1

# Work per cell, in the half nanoseconds of each_task.
_CELLS = 4


def ordered_minimum(
    costs: Tensor,
    weights: Tensor | None = None,
    source_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The non-decreasing :math:`i_1 \le .. \le i_m` that minimise :math:`\sum_j w_j C_{i_j, j}`.

    The cheapest transport to weights w when the sources' weights are free: the minimum over alpha in the
    Sequence Optimal Transport Distance. Sources may be left out, and may serve several targets.

    Args:
        costs: ``(B, n, m)`` floating; inf forbids a pair.
        weights: ``(B, m)`` non-negative; a target of weight 0 costs nothing even where it is forbidden.
            Default: ones.
        source_lengths, target_lengths: ``(B,)`` int64, valid sizes; nothing beyond them is read. Default:
            all. A row without targets has value 0; a row without sources but with targets is an error.

    Returns:
        Indices ``(B, m)`` int64, -1 past a row's targets, and the values ``(B,)`` float64, inf where
        every choice is forbidden. On the device of ``costs``; without gradients.

    Raises:
        ValueError: wrong shapes or lengths, or NaN.

    Numerics: sums in float64; O(nm) time, and memory of one byte per cell.
    """
    if costs.ndim != 3 or (weights is not None and weights.shape != costs.shape[::2]):
        shape = None if weights is None else tuple(weights.shape)
        raise ValueError(
            "ordered_minimum expects costs (B, n, m) and weights (B, m); got "
            f"{tuple(costs.shape)} and {shape}. For a single pair use costs[None]."
        )
    scores = _scores(costs)
    rows, n, m = scores.shape
    if weights is None:
        weights = torch.ones(rows, m, dtype=torch.float64, device=costs.device)
    labels = _lengths(target_lengths, rows, m, costs)
    positions = _lengths(source_lengths, rows, n, costs)
    _check(
        (positions == 0) & (labels > 0), "ordered_minimum expects a source for the targets", labels, positions
    )
    weights = weights.detach().double()
    if scores.device.type == "cpu":
        path, value = _outputs(rows, m)
        arrays = [x.contiguous().numpy() for x in (scores, weights, positions, labels)]
        each_task(minimum_row, rows, _CELLS * scores.numel(), *arrays, path.numpy(), value.numpy())
    else:
        path, value = minimum_by_tensors(scores, weights, positions, labels)
    _refuse_nan(value, "ordered_minimum expects costs without NaN")
    return path, value


def ordered_assignment(
    rewards: Tensor, query_lengths: Tensor | None = None, position_lengths: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""The increasing :math:`i_1 < .. < i_m` that maximise :math:`\sum_j R_{j, i_j}`.

    Assigns m queries to m of n positions, in order: the hard, right-monotone optimum that OPAS relaxes.

    Args:
        rewards: ``(B, m, n)`` floating; -inf forbids a pair.
        query_lengths, position_lengths: ``(B,)`` int64, valid sizes m and n of each row, m <= n; nothing
            beyond them is read. Default: all.

    Returns:
        Indices ``(B, m)`` int64, -1 past a row's queries, and the values ``(B,)`` float64, -inf where every
        choice is forbidden. On the device of ``rewards``; without gradients.

    Raises:
        ValueError: a row has more queries than positions; wrong shapes or lengths, or NaN.

    Numerics: sums in float64; O(m (n - m + 1)) steps, with memory of one byte each.

    References: "Learning Right Monotone Permutation Matrices for Neural Subsequence Search" (its objective,
    solved over permutation matrices instead of doubly stochastic ones).
    """
    if rewards.ndim != 3:
        raise ValueError(
            f"ordered_assignment expects rewards (B, m, n); got {tuple(rewards.shape)}. "
            "For a single problem use rewards[None]."
        )
    scores = _scores(rewards)
    rows, m, n = scores.shape
    queries = _lengths(query_lengths, rows, m, rewards)
    positions = _lengths(position_lengths, rows, n, rewards)
    _check(
        queries > positions,
        "ordered_assignment expects at most as many queries as positions",
        queries,
        positions,
    )
    if scores.device.type == "cpu":
        path, value = _outputs(rows, m)
        arrays = [x.contiguous().numpy() for x in (scores, queries, positions)]
        each_task(assignment_row, rows, _CELLS * scores.numel(), *arrays, path.numpy(), value.numpy())
    else:
        path, value = assignment_by_tensors(scores, queries, positions)
    _refuse_nan(value, "ordered_assignment expects rewards without NaN")
    return path, value


def _scores(scores: Tensor) -> Tensor:
    """Convert to float32 or float64, without gradient."""
    return scores.detach().to(torch.float32 if scores.dtype.itemsize <= 4 else torch.float64)


def _lengths(lengths: Tensor | None, rows: int, size: int, like: Tensor) -> Tensor:
    if lengths is None:
        return torch.full((rows,), size, device=like.device)
    check_integers(lengths)
    if lengths.shape != (rows,):
        raise ValueError(f"Expected lengths of shape ({rows},), one per row; got {tuple(lengths.shape)}.")
    outside = ((lengths < 0) | (lengths > size)).nonzero()
    if len(outside):
        row = int(outside[0])
        raise ValueError(f"Row {row}: expected a length from 0 to {size}; got {int(lengths[row])}.")
    return lengths.to(device=like.device, dtype=torch.int64)


def _check(wrong: Tensor, expected: str, needed: Tensor, available: Tensor) -> None:
    """Raise ValueError for the first row that is wrong."""
    rows = wrong.nonzero()
    if len(rows):
        row = int(rows[0])
        raise ValueError(f"Row {row}: {expected}; got {int(needed[row])} and {int(available[row])}.")


def _refuse_nan(values: Tensor, expected: str) -> None:
    rows = torch.isnan(values).nonzero()
    if len(rows):
        raise ValueError(f"Row {int(rows[0])}: {expected}.")


def _outputs(rows: int, m: int) -> tuple[Tensor, Tensor]:
    return torch.full((rows, m), PADDING), torch.zeros(rows, dtype=torch.float64)


def minimum_by_tensors(
    costs: Tensor, weights: Tensor, positions: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor]:
    """Solve :func:`ordered_minimum` by tensor operations, on any device."""
    rows, n, m = costs.shape
    inside = length_mask(positions, n)
    weights = torch.where(length_mask(labels, m), weights, 0.0)
    best = costs.new_zeros(rows, n, dtype=torch.float64)
    better = torch.zeros_like(costs.mT, dtype=torch.bool)
    for j in range(m):
        weighted = torch.where(weights[:, j, None] != 0, costs[:, :, j] * weights[:, j, None], 0.0)
        total = best + torch.where(inside, weighted, torch.inf)
        best = torch.cummin(total, 1).values
        better[:, j] = _falls(total, best)
    return _trace(better, positions, labels), _last(best, positions)


def assignment_by_tensors(rewards: Tensor, queries: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Solve :func:`ordered_assignment` by tensor operations, on any device.

    Query j counts positions from j on, and costs are minus rewards: this makes it a running minimum as well.
    """
    rows, m, n = rewards.shape
    spare = torch.arange(n, device=rewards.device)
    width = (positions - queries + 1).clamp(max=n)
    best = rewards.new_zeros(rows, n, dtype=torch.float64)
    better = torch.zeros_like(rewards, dtype=torch.bool)
    for j in range(m):
        shifted = rewards[:, j].gather(1, (spare + j).clamp(max=n - 1).expand(rows, n))
        step = torch.where((spare < width[:, None]) & (j < queries[:, None]), -shifted.double(), torch.inf)
        total = best + torch.where(j < queries[:, None], step, 0.0)
        best = torch.cummin(total, 1).values
        better[:, j] = _falls(total, best)
    path = _trace(better, width, queries)
    path = torch.where(path >= 0, path + torch.arange(m, device=path.device), path)
    return path, -_last(best, width) + 0.0


def _falls(total: Tensor, best: Tensor) -> Tensor:
    """Mark the indices where a running minimum falls, and the first one."""
    before = torch.nn.functional.pad(best, (1, -1), value=torch.inf)
    falls = total < before
    falls[:, :1] = True
    return falls


def _last(best: Tensor, sizes: Tensor) -> Tensor:
    """Return the running minimum at the end of every row; 0 for empty rows."""
    if best.shape[1] == 0:
        return best.new_zeros(len(best))
    return best.gather(1, (sizes - 1).clamp(min=0)[:, None])[:, 0]


def _trace(better: Tensor, sizes: Tensor, lengths: Tensor) -> Tensor:
    """Trace back from the last target: each takes the last index, up to its successor's, where the minimum fell."""
    rows, m, n = better.shape
    path = torch.full((rows, m), PADDING, device=better.device)
    if n == 0:
        return path
    index = torch.arange(n, device=better.device)
    end = (sizes - 1)[:, None]
    for j in range(m - 1, -1, -1):
        found = torch.where(better[:, j] & (index <= end), index, PADDING).amax(1, keepdim=True)
        end = torch.where(j < lengths[:, None], found, end)
        path[:, j] = torch.where(j < lengths, found[:, 0], PADDING)
    return path
