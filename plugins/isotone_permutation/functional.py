"""The maths of the relaxations: Sinkhorn's iterations, Gumbel noise, single steps and the exact assignment."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from isotone.kernels.threads import each_task
from isotone.types import check_integers, length_mask

# Log-score of a forbidden pair: its exponential is 0 beside any other.
_FLOOR = -1e30
# Iterations between two checks of Sinkhorn's convergence.
_CHECK_EVERY = 5
# Work of an exact assignment per cell of the matrix and row, in the half nanoseconds of each_task.
_ASSIGNMENT_CELLS = 4


def check_lengths(
    reward: Tensor, row_lengths: Tensor | None, column_lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Check a batch ``(B, m, n)`` and return the lengths of its problems; m and n where none are given.

    Raises:
        ValueError: not a batch of matrices, lengths that do not fit it, or fewer columns than rows.
    """
    if reward.ndim != 3 or not reward.dtype.is_floating_point:
        raise ValueError(
            f"A relaxation expects floating rewards (B, m, n); got {tuple(reward.shape)}, {reward.dtype}. "
            "For a single problem use reward[None]."
        )
    lengths = []
    for name, given, size in zip(("row", "column"), (row_lengths, column_lengths), reward.shape[1:]):
        if given is None:
            given = torch.full((len(reward),), size, device=reward.device)
        check_integers(given)
        if given.shape != (len(reward),):
            raise ValueError(f"Expected {name} lengths of shape ({len(reward)},); got {tuple(given.shape)}.")
        outside = ((given < 0) | (given > size)).nonzero()
        if len(outside):
            row = int(outside[0])
            raise ValueError(f"Row {row}: expected a {name} length from 0 to {size}; got {int(given[row])}.")
        lengths.append(given.to(device=reward.device, dtype=torch.int64))
    rows, columns = lengths
    crowded = (rows > columns).nonzero()
    if len(crowded):
        row = int(crowded[0])
        raise ValueError(
            f"Row {row}: a relaxation expects at least as many columns as rows; "
            f"got {int(rows[row])} rows and {int(columns[row])} columns."
        )
    return rows, columns


def sinkhorn(
    reward: Tensor,
    row_lengths: Tensor,
    column_lengths: Tensor,
    *,
    temperature: float,
    iterations: int,
    tolerance: float,
) -> Tensor:
    r"""Sinkhorn's iterations in the log domain: rows and columns of :math:`\exp(Z / \tau)` divided by their sums.

    With m < n this is the n x n problem whose n - m further rows have reward 0. These rows are and stay equal, so one
    row that counts n - m times replaces them: O(m n) per iteration instead of O(n^2). Each iteration normalises
    columns, then rows. Rows sum to 1 whenever it stops; columns sum to 1 only in the limit.

    Args:
        reward: ``(B, m, n)`` Z; -inf forbids a pair.
        row_lengths, column_lengths: ``(B,)`` as :func:`check_lengths` gives them.
        temperature: tau > 0, in units of the reward.
        iterations: Most iterations.
        tolerance: On the CPU it stops, for the whole batch, when no column's sum differs from 1 by more than this; with
            0 it never stops. On other devices a check would have to wait for the device: all iterations run.

    Returns:
        ``(B, m, n)`` in the reward's dtype (float32 inside for half precision), 0 beyond the lengths.
    """
    batch, m, n = reward.shape
    if not reward.numel():
        return torch.zeros_like(reward)
    in_rows = length_mask(row_lengths, m)[:, :, None]
    in_columns = length_mask(column_lengths, n)[:, None]
    wide = reward.to(torch.promote_types(reward.dtype, torch.float32))
    allowed = in_rows & in_columns & (wide > -torch.inf)
    # rewards less the row's best before the division, and scores normalised on the way: scores near the best are near
    # 0 and rounded accordingly, however large reward / temperature is
    best = wide.detach().masked_fill(~allowed, -torch.inf).amax(2, keepdim=True)
    best = best.masked_fill(best == -torch.inf, 0.0)
    # a finite floor: the derivative of a log-sum-exp of nothing but -inf is NaN
    scores = ((wide.masked_fill(~allowed, 0.0) - best) / temperature).masked_fill(~allowed, _FLOOR)
    copies = torch.log((column_lengths - row_lengths)[:, None, None].to(scores.dtype))
    rows, slack = best / temperature, scores.new_zeros(batch, 1, n).masked_fill(~in_columns, _FLOOR)
    for done in range(iterations):
        sums = torch.logaddexp(torch.logsumexp(scores + rows, 1, keepdim=True), slack + copies)
        sums = sums.masked_fill(~in_columns, 0.0)
        check = tolerance > 0 and done % _CHECK_EVERY == 1 and scores.device.type == "cpu"
        if check and bool((torch.expm1(sums).abs() <= tolerance).all()):
            break
        scores = scores + (rows - sums)
        rows = -torch.logsumexp(scores, 2, keepdim=True).masked_fill(~in_rows, 0.0)
        slack = slack - sums
        slack = slack - torch.logsumexp(slack, 2, keepdim=True)
    return torch.softmax(scores, 2).masked_fill(~allowed, 0.0).to(reward.dtype)


def gumbel_noise(shape: torch.Size, generator: torch.Generator, like: Tensor) -> Tensor:
    """Draw standard Gumbel noise, ``-log(-log U)``, on the CPU: the same numbers on every device."""
    uniform = torch.rand(shape, generator=generator, dtype=torch.float64)
    tiny = torch.finfo(torch.float64).tiny
    return -torch.log(-torch.log(uniform.clamp(min=tiny))).to(device=like.device, dtype=like.dtype)


def row_softmax(reward: Tensor, row_lengths: Tensor, column_lengths: Tensor, temperature: float) -> Tensor:
    r"""Each row's :math:`\exp(Z_{ij} / \tau)` divided by their sum (OPAS, equation 25).

    Arguments and result as in :func:`sinkhorn`; columns are not normalised.
    """
    inside = _inside(reward, row_lengths, column_lengths)
    wide = reward.to(torch.promote_types(reward.dtype, torch.float32))
    allowed = inside & (wide > -torch.inf)
    scores = (wide.masked_fill(~allowed, 0.0) / temperature).masked_fill(~allowed, _FLOOR)
    return torch.softmax(scores, 2).masked_fill(~allowed, 0.0).to(reward.dtype)


def row_share(reward: Tensor, row_lengths: Tensor, column_lengths: Tensor) -> Tensor:
    r"""Each row's :math:`Z_{ij}` divided by their sum (OPAS, equation 26).

    It is meant for rewards that are not negative. A row whose sum is not above 0, or as small as rounding errors,
    becomes even, without gradient: the quotient would change sign there.
    """
    inside = _inside(reward, row_lengths, column_lengths)
    wide = reward.to(torch.promote_types(reward.dtype, torch.float32)).masked_fill(~inside, 0.0)
    total = wide.sum(2, keepdim=True)
    scale = wide.abs().sum(2, keepdim=True)
    useful = total > 16 * torch.finfo(wide.dtype).eps * scale
    even = inside / inside.sum(2, keepdim=True).clamp(min=1).to(wide.dtype)
    return torch.where(useful, wide / torch.where(useful, total, 1.0), even).to(reward.dtype)


def assignment(reward: Tensor, row_lengths: Tensor, column_lengths: Tensor) -> Tensor:
    """Find the column of each row in the best assignment of rows to different columns (linear sum assignment).

    Args:
        reward: ``(B, m, n)``; -inf forbids a pair. Solved on the CPU, rows of the batch on
            ``torch.get_num_threads()`` threads.
        row_lengths, column_lengths: ``(B,)`` as :func:`check_lengths` gives them.

    Returns:
        ``(B, m)`` int64, -1 beyond the rows, on the device of the reward.

    Raises:
        ValueError: every assignment of a batch row is forbidden, or its rewards are NaN or +inf.
    """
    scores = reward.detach().to("cpu", torch.float64).numpy()
    sizes = row_lengths.tolist(), column_lengths.tolist()
    found = np.full(scores.shape[:2], -1, np.int64)
    cells = _ASSIGNMENT_CELLS * sum(m * m * n for m, n in zip(*sizes))
    each_task(_assign, len(scores), cells, scores, *sizes, found)
    return torch.from_numpy(found).to(reward.device)


def _assign(task: int, scores: np.ndarray, rows: list[int], columns: list[int], found: np.ndarray) -> None:
    of_task = scores[task, : rows[task], : columns[task]]
    try:
        # it releases Python's lock
        found[task, : rows[task]] = linear_sum_assignment(of_task, maximize=True)[1]
    except ValueError as error:
        raise ValueError(
            f"Row {task}: expected finite rewards, or -inf that leave an assignment possible; {error}."
        ) from error


def one_hot(columns: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Make matrices ``(B, m, size)`` with a 1 in the given column of each row; rows of column -1 stay 0."""
    matrix = torch.zeros(*columns.shape, size + 1, dtype=dtype, device=columns.device)
    # one column more takes the rows without a column
    index = torch.where(columns >= 0, columns, size)[:, :, None]
    return matrix.scatter_(2, index, 1.0)[:, :, :size]


def _inside(reward: Tensor, row_lengths: Tensor, column_lengths: Tensor) -> Tensor:
    _, m, n = reward.shape
    return length_mask(row_lengths, m)[:, :, None] & length_mask(column_lengths, n)[:, None]
