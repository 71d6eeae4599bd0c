"""Scores of ordered-subsequence selection (OPAS), on the CPU: similarity, reward, Sinkhorn and both scores in one go.

Similarities are one matrix product a block of queries and items; the rest is compiled, sixteen items at a time, tasks
on ``torch.get_num_threads()`` threads. Of a pair nothing larger than its ``(m, n)`` plan exists, and that in cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.kernels.threads import each_run
from isotone.types import mask_rows
from isotone_opas.kernels._exact import select_blocks
from isotone_opas.kernels._lanes import LANES
from isotone_opas.kernels._pairs import score_blocks

# Work of a multiplication in sixteen lanes, in the half nanoseconds of each_run.
_CELLS = 0.06


@dataclass(frozen=True)
class PenaltyNetwork:
    """A small network from similarities ``(m, n)`` to penalties ``(m,)``, its parameters laid out for compiled loops.

    Convolutions along every row, each followed by a maximum over pairs where it is pooled and by ReLU; the mean over
    the rows; one more convolution with ``rows`` outputs; averages over ``bins`` bins and ReLU; Linear, ReLU, Linear
    and sigmoid on the bins of every output.

    Attributes:
        layers: ``(L, 4)`` int64: (outputs, inputs, taps, pooled) of each convolution, and in the last row (hidden,
            bins, 0, 0). The first has ``stagger + 1`` inputs: the row and those below it.
        weights: float32, in the order of the layers: weights, biases.
        columns: Similarities are continued with zeros to so many columns.
    """

    layers: NDArray[np.int64]
    weights: NDArray[np.float32]
    columns: int

    @property
    def rows(self) -> int:
        """Most rows that it gives penalties for."""
        return int(self.layers[-2, 0])

    def work(self, m: int) -> int:
        """Multiplications of its convolutions for a pair, about."""
        out, width = 0, self.columns
        for outputs, inputs, taps, pooled in self.layers[:-1].tolist():
            width -= taps - 1
            out += outputs * inputs * taps * width * m
            width //= 1 + pooled
        return out


@dataclass(frozen=True)
class Sinkhorn:
    """What is done with the similarities of a pair.

    Attributes:
        positions: ``(n,)`` float32, the a of the order's constraint: increasing.
        tau: Temperature, > 0.
        iterations: Normalisations of columns, then rows, at least 1.
        margin: b, the least increase of the expected position from one row to the next.
        hinge: Whether an increase beyond the margin earns nothing.

    Raises:
        ValueError: an option outside its range.
    """

    positions: Tensor
    tau: float = 1.0
    iterations: int = 20
    margin: float = 1.0
    hinge: bool = False

    def __post_init__(self) -> None:
        if not (self.tau > 0 and self.iterations >= 1 and np.isfinite(self.margin)):
            raise ValueError(
                "Sinkhorn expects tau > 0, iterations >= 1 and a finite margin; "
                f"got {self.tau}, {self.iterations} and {self.margin}."
            )


@dataclass(frozen=True)
class Items:
    """Corpus items laid out for scoring: B blocks of sixteen, one a lane.

    Attributes:
        vectors: ``(B, n, 16, d)`` float32, zero beyond the lengths.
        squares: ``(B, n, 16)``, the squared norm of every vector.
        products: ``(B, n, n, 16)``: inner products of an item's own vectors; ``(0, n, n, 16)`` where they are not
            worth it.
        lengths: ``(16 B,)`` float32.
        count: C, the number of items.
    """

    vectors: Tensor
    squares: Tensor
    products: Tensor
    lengths: Tensor
    count: int

    @classmethod
    def prepare(cls, corpus: Tensor, lengths: Tensor | None = None, rows: int = 1 << 20) -> Items:
        """Lay items out.

        Args:
            corpus: ``(C, n, d)`` embeddings.
            lengths: ``(C,)`` int64; what is beyond them is not read. Default: all.
            rows: About how many elements they will be scored with, of all queries: for few, inner products are not
                made.
        """
        clean, lengths = _masked(corpus, lengths)
        count, n, d = clean.shape
        blocks = -(-count // LANES)
        padded = blocks * LANES - count
        vectors = clean.new_empty(blocks, n, LANES, d)
        by_item, whole = vectors.transpose(1, 2), count // LANES
        by_item[:whole] = clean[: whole * LANES].view(-1, LANES, n, d)
        if padded:
            by_item[whole, :-padded] = clean[whole * LANES :]
            by_item[whole, -padded:] = 0
        squares = torch.linalg.vector_norm(vectors, dim=-1).square_()
        # n d products of plan and vectors a row; or n n of plan and inner products, which took n n d once
        shared = rows * (d - n) > n * d
        own = clean @ clean.mT if shared else clean.new_empty(0, n, n)
        products = _lanes_last(torch.nn.functional.pad(own, (0, 0, 0, 0, 0, padded)) if shared else own)
        return cls(vectors, squares, products, torch.nn.functional.pad(lengths.float(), (0, padded)), count)


def _lanes_last(values: Tensor) -> Tensor:
    """``(16 B, r, n)`` to ``(B, r, n, 16)``."""
    return values.reshape(-1, LANES, *values.shape[1:]).permute(0, 2, 3, 1).contiguous()


def score_all(
    queries: Tensor,
    items: Items,
    penalties: Tensor | PenaltyNetwork,
    options: Sinkhorn,
    query_lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""How well an ordered selection of each item fits each query.

    The plan P is ``iterations`` of Sinkhorn's normalisation on ``exp(Z / tau)`` with n - m rows of ones below,
    :math:`Z_{ij} = 2 x_i \cdot c_j + 1 - \|c_j\|^2 + (\lambda_i - \lambda_{i+1}) a_j`.

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
    held as a sum of two numbers, so that what is left are the similarities' own 1e-7 / tau.
    """
    similarity, rows, norms = _against_all(queries, items, query_lengths)
    if isinstance(penalties, Tensor):
        penalties = torch.nn.functional.pad(penalties.float(), (0, rows.shape[1] - items.count))
    fit, order = _run(similarity, items, rows, penalties, options)
    return (fit - norms[:, None])[:, : items.count], order[:, : items.count]


def score_pairs(
    queries: Tensor,
    corpus: Tensor,
    penalties: Tensor | PenaltyNetwork,
    options: Sinkhorn,
    query_lengths: Tensor | None = None,
    corpus_lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The same as :func:`score_all` for pairs: ``(B, m, d)`` and ``(B, n, d)``, penalties ``(B, m)``, to ``(B,)``."""
    items = Items.prepare(corpus, corpus_lengths)
    similarity, rows, norms = _against_own(queries, items, query_lengths)
    if isinstance(penalties, Tensor):
        penalties = torch.nn.functional.pad(penalties.float().mT, (0, rows.shape[1] - items.count))[None]
    fit, order = _run(similarity, items, rows, penalties, options)
    return fit[0, : items.count] - norms, order[0, : items.count]


def fit_all(queries: Tensor, items: Items, query_lengths: Tensor | None = None) -> Tensor:
    r"""How well the best ordered selection of each item fits each query: the exact limit of :func:`score_all`.

    Args:
        queries, items, query_lengths: As for :func:`score_all`.

    Returns:
        :math:`s_F = -\min_{j_1 < .. < j_m} \sum_i \|x_i - c_{j_i}\|^2`, ``(Q, C)`` float32, O(m n) a pair beside
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
    """The same as :func:`fit_all` for pairs: ``(B, m, d)`` and ``(B, n, d)`` to ``(B,)``."""
    items = Items.prepare(corpus, corpus_lengths, rows=0)
    similarity, rows, norms = _against_own(queries, items, query_lengths)
    return _select(similarity, items, rows)[0, : items.count] - norms


def _against_all(queries: Tensor, items: Items, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Similarities ``(Q, m, B, n, 16)``, lengths ``(Q, 16 B)`` and squared norms ``(Q,)`` of queries with all items."""
    clean, lengths = _masked(queries, lengths)
    blocks, n, _, d = items.vectors.shape
    groups, m = clean.shape[:2]
    lanes = blocks * LANES
    similarity = clean.reshape(groups * m, d) @ items.vectors.view(n * lanes, d).mT
    rows = lengths.float()[:, None].expand(groups, lanes).contiguous()
    return similarity.view(groups, m, blocks, n, LANES), rows, clean.square().sum((1, 2))


def _against_own(queries: Tensor, items: Items, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The same of each query with its own item: ``(1, m, B, n, 16)``, ``(1, 16 B)`` and ``(B,)``."""
    clean, lengths = _masked(queries, lengths)
    norms = clean.square().sum((1, 2))
    padded = len(items.lengths) - items.count
    clean = torch.nn.functional.pad(clean, (0, 0, 0, 0, 0, padded))
    # (B, 16, m, d) times (B, 16, d, n)
    similarity = clean.view(-1, LANES, *clean.shape[1:]) @ items.vectors.permute(0, 2, 3, 1)
    similarity = similarity.permute(2, 0, 3, 1).contiguous()
    return similarity[None], torch.nn.functional.pad(lengths.float(), (0, padded))[None], norms


def _select(similarity: Tensor, items: Items, rows: Tensor) -> Tensor:
    """Exact fits ``(G, 16 B)`` of similarities ``(G, m, B, n, 16)``, without the queries' norms."""
    groups, _, blocks, _, _ = similarity.shape
    fit = torch.empty(groups, blocks * LANES)
    arrays = [x.detach().numpy() for x in (similarity, items.squares, rows, items.lengths, fit)]
    each_run(select_blocks, blocks, similarity.numel() // 2, *arrays)
    return fit.masked_fill_((rows > items.lengths) | (items.lengths == 0), torch.nan)


def _run(
    similarity: Tensor, items: Items, rows: Tensor, penalties: Tensor | PenaltyNetwork, options: Sinkhorn
) -> tuple[Tensor, Tensor]:
    """Scores ``(G, 16 B)`` of similarities ``(G, m, B, n, 16)``; those of s_F without the queries' norms."""
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
    cells = similarity.numel() * (2 * options.iterations + n + 60) + groups * lanes * network.work(m)
    each_run(
        score_blocks, blocks, int(_CELLS * cells),
        *(x.detach().numpy() for x in (similarity, items.squares, items.products, items.vectors)),
        *lengths, positions, lambdas, network.layers, network.weights, network.columns,
        options.tau, options.iterations, options.margin, options.hinge, fit, order,
    )  # fmt: skip
    fits = (lengths[0] <= lengths[1]) & (lengths[1] > 0)
    fit[~fits] = order[~fits] = np.nan
    return torch.from_numpy(fit), torch.from_numpy(order)


def _masked(vectors: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """float32 with zeros beyond the lengths, and the lengths."""
    vectors = vectors.detach().float()
    size = vectors.shape[1]
    if lengths is None:
        return vectors, torch.full((len(vectors),), size)
    if int(lengths.min()) == size:
        return vectors, lengths
    return mask_rows(vectors, lengths), lengths
