"""Scores of queries and corpus items, on tensors: all of them with all, or pairs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from isotone.kernels.native.lanes import LANES
from isotone.kernels.threads import each_run
from isotone_opas.kernels._scores import score_blocks
from isotone_opas.kernels._selection import select_blocks
from isotone_opas.kernels.items import Items, masked
from isotone_opas.kernels.options import PenaltyNetwork, Sinkhorn

# Work per multiplication in sixteen lanes, in the half nanoseconds of each_run.
_CELLS = 0.06


def score_all(
    queries: Tensor,
    items: Items,
    penalties: Tensor | PenaltyNetwork,
    options: Sinkhorn,
    query_lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Score how well an ordered selection of each item fits each query.

    The plan P is ``iterations`` of Sinkhorn's normalisation on ``exp(Z / tau)`` with n - m rows of ones below,
    :math:`Z_{ij} = 2 x_i \cdot c_j + 1 - \|c_j\|^2 + (\lambda_i - \lambda_{i+1}) a_j`, or
    :math:`-\sum [x_i - c_j]_+` where the reward is the hinge.

    Args:
        queries: ``(Q, m, d)`` float32.
        items: The C items, n >= m.
        penalties: lambda: ``(Q, m, C)``, or a network that gives them. The first row's are 0, as are those beyond
            the lengths.
        options: Temperature, positions and the rest.
        query_lengths: ``(Q,)`` int64. Default: all.

    Returns:
        :math:`s_F = -\|X_q - P X_c\|_F^2` and :math:`s_\lambda = -\langle\lambda, b - A P a\rangle`, ``(Q, C)``
        float32. A pair of a query that is longer than the item scores NaN.

    Numerics: single precision on ``exp(Z / tau)`` where Z / tau ranges over at most 40 within every row, whose largest
    is at most 40 from 0. Beyond, the scaling is split into potentials and factors (stabilised scaling), and Z / tau is
    held as a sum of two numbers: the error left is that of the similarities, 1e-7 / tau.
    """
    similarity, rows, norms = _against_all(queries, items, query_lengths)
    if isinstance(penalties, Tensor):
        penalties = torch.nn.functional.pad(penalties.float(), (0, rows.shape[1] - items.count))
    halves = similarity
    if options.reward == "hinge":
        vectors = items.vectors.flatten(0, 2)
        halves = _half_hinges(masked(queries, query_lengths)[0].flatten(0, 1), vectors).view_as(similarity)
    fit, order = _run(similarity, halves, items, rows, penalties, options)
    return (fit - norms[:, None])[:, : items.count], order[:, : items.count]


def score_pairs(
    queries: Tensor,
    corpus: Tensor,
    penalties: Tensor | PenaltyNetwork,
    options: Sinkhorn,
    query_lengths: Tensor | None = None,
    corpus_lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Score pairs as :func:`score_all`: ``(B, m, d)`` and ``(B, n, d)``, penalties ``(B, m)``, to ``(B,)``."""
    items = Items.prepare(corpus, corpus_lengths)
    similarity, rows, norms = _against_own(queries, items, query_lengths)
    if isinstance(penalties, Tensor):
        penalties = torch.nn.functional.pad(penalties.float().mT, (0, rows.shape[1] - items.count))[None]
    halves = similarity
    if options.reward == "hinge":
        clean = _padded(masked(queries, query_lengths)[0], items)
        halves = _half_hinges(clean, items.vectors.transpose(1, 2)).permute(2, 0, 3, 1)[None].contiguous()
    fit, order = _run(similarity, halves, items, rows, penalties, options)
    return fit[0, : items.count] - norms, order[0, : items.count]


def fit_all(queries: Tensor, items: Items, query_lengths: Tensor | None = None) -> Tensor:
    r"""Score how well the best ordered selection of each item fits each query: the exact limit of :func:`score_all`.

    Args:
        queries, items, query_lengths: As for :func:`score_all`.

    Returns:
        :math:`s_F = -\min_{j_1 < .. < j_m} \sum_i \|x_i - c_{j_i}\|^2`, ``(Q, C)`` float32, O(m n) per pair beside
        the similarities. A pair of a query that is longer than the item scores NaN.
    """
    similarity, rows, norms = _against_all(queries, items, query_lengths)
    return (_select(similarity, items, rows) - norms[:, None])[:, : items.count]


def fit_pairs(
    queries: Tensor,
    corpus: Tensor,
    query_lengths: Tensor | None = None,
    corpus_lengths: Tensor | None = None,
) -> Tensor:
    """Score pairs as :func:`fit_all`: ``(B, m, d)`` and ``(B, n, d)`` to ``(B,)``."""
    items = Items.prepare(corpus, corpus_lengths, rows=0)
    similarity, rows, norms = _against_own(queries, items, query_lengths)
    return _select(similarity, items, rows)[0, : items.count] - norms


def _against_all(queries: Tensor, items: Items, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return similarities ``(Q, m, B, n, 16)``, lengths ``(Q, 16 B)`` and squared norms ``(Q,)`` for all items."""
    clean, lengths = masked(queries, lengths)
    blocks, n, _, d = items.vectors.shape
    groups, m = clean.shape[:2]
    lanes = blocks * LANES
    similarity = clean.reshape(groups * m, d) @ items.vectors.view(n * lanes, d).mT
    rows = lengths.float()[:, None].expand(groups, lanes).contiguous()
    return similarity.view(groups, m, blocks, n, LANES), rows, clean.square().sum((1, 2))


def _against_own(queries: Tensor, items: Items, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same of each query with its own item: ``(1, m, B, n, 16)``, ``(1, 16 B)`` and ``(B,)``."""
    clean, lengths = masked(queries, lengths)
    norms = clean.square().sum((1, 2))
    # (B, 16, m, d) times (B, 16, d, n)
    similarity = _padded(clean, items) @ items.vectors.permute(0, 2, 3, 1)
    similarity = similarity.permute(2, 0, 3, 1).contiguous()
    padded = len(items.lengths) - items.count
    return similarity[None], torch.nn.functional.pad(lengths.float(), (0, padded))[None], norms


def _padded(queries: Tensor, items: Items) -> Tensor:
    """Lay queries of their own items out as ``(B, 16, m, d)``."""
    padded = torch.nn.functional.pad(queries, (0, 0, 0, 0, 0, len(items.lengths) - items.count))
    return padded.view(-1, LANES, *queries.shape[1:])


def _half_hinges(queries: Tensor, corpus: Tensor) -> Tensor:
    """Return halves of the rewards :math:`-\\sum [x_i - c_j]_+` of vectors ``(.., m, d)`` and ``(.., n, d)``."""
    apart = torch.cdist(queries, corpus, p=1.0)  # both positive parts; their difference is that of the sums
    return -0.25 * (apart + queries.sum(-1)[..., None] - corpus.sum(-1)[..., None, :])


def _select(similarity: Tensor, items: Items, rows: Tensor) -> Tensor:
    """Return exact fits ``(G, 16 B)`` for similarities ``(G, m, B, n, 16)``, without the queries' norms."""
    groups, _, blocks, _, _ = similarity.shape
    fit = torch.empty(groups, blocks * LANES)
    arrays = [x.detach().numpy() for x in (similarity, items.squares, rows, items.lengths, fit)]
    each_run(select_blocks, blocks, similarity.numel() // 2, *arrays)
    return fit.masked_fill_((rows > items.lengths) | (items.lengths == 0), torch.nan)


def _run(
    similarity: Tensor,
    halves: Tensor,
    items: Items,
    rows: Tensor,
    penalties: Tensor | PenaltyNetwork,
    options: Sinkhorn,
) -> tuple[Tensor, Tensor]:
    """Return both scores ``(G, 16 B)`` for similarities ``(G, m, B, n, 16)``; s_F without the queries' norms."""
    groups, m, blocks, n, _ = similarity.shape
    lanes = blocks * LANES
    positions = np.ascontiguousarray(options.positions[:n].detach().cpu().numpy(), np.float32)
    if len(positions) < n:
        raise ValueError(f"Expected positions for {n} corpus elements; got {len(positions)}.")
    if isinstance(penalties, PenaltyNetwork):
        network = penalties
        if m > network.rows or n > network.columns:
            raise ValueError(
                f"The penalty network takes queries of {network.rows} elements and corpus items of "
                f"{network.columns} at most; got {m} and {n}."
            )
        lambdas = np.zeros((groups, m, lanes), np.float32)
    else:
        network = PenaltyNetwork(np.zeros((0, 4), np.int64), np.zeros(0, np.float32), 0)
        lambdas = penalties.detach().contiguous().numpy()
    fit, order = (np.empty((groups, lanes), np.float32) for _ in range(2))
    lengths = [rows.numpy(), items.lengths.numpy()]
    squares, pushes = items.squares, positions
    if options.reward == "hinge":  # neither the items' norms nor the penalties are in it
        squares, pushes = torch.ones_like(squares), np.zeros_like(positions)
    cells = similarity.numel() * (2 * options.iterations + n + 60) + groups * lanes * network.work(m)
    each_run(
        score_blocks, blocks, int(_CELLS * cells),
        *(x.detach().numpy() for x in (similarity, halves, squares)), pushes,
        *(x.detach().numpy() for x in (items.products, items.vectors)),
        *lengths, positions, lambdas, network.layers, network.weights, network.columns,
        options.tau, options.iterations, options.margin, options.hinge, fit, order,
    )  # fmt: skip
    fits = (lengths[0] <= lengths[1]) & (lengths[1] > 0)
    fit[~fits] = order[~fits] = np.nan
    return torch.from_numpy(fit), torch.from_numpy(order)
