"""Other scores of queries and corpus items to compare OPAS with, behind one protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from isotone.kernels.softdtw import dtw, expected_alignment, soft_dtw, subsequence_dtw
from isotone.registry import Registry
from isotone.types import length_mask, mask_rows
from isotone_opas import embed as _embed

# Costs that are held at a time.
_BLOCK = 1 << 22


class Scorer(Protocol):
    """A score of how well corpus items fit queries, from embeddings (or any vectors): higher is better."""

    def __call__(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
    ) -> Tensor:
        """Score ``(Q, m, d)`` against ``(C, n, d)`` with lengths: ``(Q, C)``."""
        ...


scorers: Registry[Scorer] = Registry("scorer", "isotone.opas.scorers")


@scorers.register("max-sim")
class MaxSim:
    """ColBERT's late interaction: the sum over query elements of the largest inner product. Differentiable."""

    def __call__(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
    ) -> Tensor:
        """See :class:`Scorer`."""
        queries = mask_rows(queries, query_lengths)
        (count, m, d), (items, n, _) = queries.shape, corpus.shape
        scores = []
        step = max(1, _BLOCK // max(1, count * m * n))
        for first in range(0, items, step):
            block = mask_rows(
                corpus[first : first + step],
                None if corpus_lengths is None else corpus_lengths[first : first + step],
            )
            similar = (queries.reshape(-1, d) @ block.reshape(-1, d).mT).view(count, m, len(block), n)
            if corpus_lengths is not None:
                inside = length_mask(corpus_lengths[first : first + step], n)
                similar = similar.masked_fill(~inside, -torch.inf)
            best = similar.amax(-1)
            scores.append(mask_rows(best, query_lengths).sum(1))
        return torch.cat(scores, 1)


class _Warping:
    """Minus a warping cost of squared Euclidean distances, block by block."""

    #: True to subtract half of each sequence's cost with itself.
    divergence = False

    def cost(self, costs: Tensor, m: Tensor, n: Tensor) -> Tensor:
        """Return the costs ``(B,)`` of warping for ``(B, m, n)`` with lengths ``(B,)``."""
        raise NotImplementedError

    def __call__(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
    ) -> Tensor:
        """See :class:`Scorer`."""
        m = _lengths(queries, query_lengths)
        n = _lengths(corpus, corpus_lengths)
        queries, corpus = mask_rows(queries, query_lengths), mask_rows(corpus, corpus_lengths)
        count, size = queries.shape[:2]
        out = queries.new_empty(count, len(corpus))
        step = max(1, _BLOCK // max(1, count * size * corpus.shape[1]))
        for first in range(0, len(corpus), step):
            items, lengths = corpus[first : first + step], n[first : first + step]
            costs = _squared_distances(queries.flatten(0, 1)[None], items.flatten(0, 1)[None])
            costs = costs.view(count, size, len(items), -1).transpose(1, 2).flatten(0, 1).contiguous()
            values = self.cost(costs, m.repeat_interleave(len(items)), lengths.repeat(count))
            out[:, first : first + step] = values.view(count, -1)
        if self.divergence:
            own = [self.cost(_squared_distances(x, x), k, k) for x, k in ((queries, m), (corpus, n))]
            return (own[0][:, None] + own[1]) / 2 - out
        return -out


@scorers.register("dtw")
class DTW(_Warping):
    """Minus the cost of dynamic time warping."""

    def cost(self, costs: Tensor, m: Tensor, n: Tensor) -> Tensor:
        """Return the cost of the best alignment."""
        return -_known(dtw(costs, m, n).score)


@scorers.register("subsequence-dtw")
class SubsequenceDTW(_Warping):
    """Minus the cost of warping the query onto the best contiguous part of the item."""

    def cost(self, costs: Tensor, m: Tensor, n: Tensor) -> Tensor:
        """Return the cost for the best part."""
        return -_known(subsequence_dtw(costs, m, n).coupling.score)


@scorers.register("soft-dtw")
class SoftDTW(_Warping):
    """Minus soft-DTW (Cuturi & Blondel 2017), or its divergence, which is smallest for equal sequences.

    Args:
        gamma: Width of the soft minimum, in squared distance.
        divergence: True to subtract half of each sequence's soft-DTW with itself (Blondel et al. 2021).
    """

    def __init__(self, *, gamma: float = 1.0, divergence: bool = False) -> None:
        self.gamma = gamma
        self.divergence = divergence

    def cost(self, costs: Tensor, m: Tensor, n: Tensor) -> Tensor:
        """Return the soft minimum."""
        return soft_dtw(costs, self.gamma, m, n)


@scorers.register("sharp")
class Sharp(_Warping):
    """Minus the sharp divergence: the cost of the mean alignment, less half of each sequence's own.

    Args:
        gamma: Width of the soft minimum, in squared distance.
    """

    divergence = True

    def __init__(self, *, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def cost(self, costs: Tensor, m: Tensor, n: Tensor) -> Tensor:
        """Return the cost of the mean alignment."""
        return (expected_alignment(costs, self.gamma, m, n) * costs).sum((1, 2))


class _ByPair:
    """A score that a package computes pair by pair."""

    def pair(self, query: np.ndarray, item: np.ndarray) -> float:
        """Score ``(m, d)`` against ``(n, d)``."""
        raise NotImplementedError

    def __call__(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
    ) -> Tensor:
        """See :class:`Scorer`."""
        both = ((queries, _lengths(queries, query_lengths)), (corpus, _lengths(corpus, corpus_lengths)))
        cut = [[x[:k] for x, k in zip(v.detach().cpu().double().numpy(), n.tolist())] for v, n in both]
        return torch.tensor([[self.pair(q, c) for c in cut[1]] for q in cut[0]], dtype=queries.dtype)


@scorers.register("fastdtw")
class FastDTW(_ByPair):
    """Minus the cost of FastDTW (Salvador & Chan 2007), from the package ``fastdtw``.

    Args:
        radius: Cells searched beside the path of the coarser level.
    """

    def __init__(self, *, radius: int = 1) -> None:
        self.radius = radius
        self._fastdtw: Callable[..., Any] = _needed("fastdtw").fastdtw

    def pair(self, query: np.ndarray, item: np.ndarray) -> float:
        """See :class:`Scorer`."""
        return -float(self._fastdtw(query, item, radius=self.radius, dist=2)[0])


@scorers.register("mass")
class MASS(_ByPair):
    """Minus the smallest distance of the query to a contiguous part of the item, by MASS from the package ``stumpy``.

    Vectors are laid end to end, and the query is compared with every part that begins where a vector does.

    Args:
        normalize: True to z-normalise parts.
    """

    def __init__(self, *, normalize: bool = False) -> None:
        self.normalize = normalize
        self._mass: Callable[..., Any] = _needed("stumpy").mass

    def pair(self, query: np.ndarray, item: np.ndarray) -> float:
        """See :class:`Scorer`."""
        distances = self._mass(query.ravel(), item.ravel(), normalize=self.normalize)
        return -float(np.min(distances[:: query.shape[1]]))


class ColBERT(nn.Module):
    """Vectors for :class:`MaxSim`: an embedding, with a learned first window that marks queries and corpus items.

    Trained with :func:`isotone_opas.functional.margin_loss` at a margin of 1 (appendix H.6).

    Args:
        embed: A name of ``isotone_opas.embed.embeds`` with options, or a module.
        input_size: Samples (or features) of a window.
    """

    def __init__(self, embed: str | Mapping[str, Any] | _embed.Embed, *, input_size: int) -> None:
        super().__init__()
        self.embed = embed if isinstance(embed, nn.Module) else _embed.embeds.create(embed)
        self.marks = nn.Parameter(torch.randn(2, 1, 1, input_size))

    def forward(self, windows: Tensor, lengths: Tensor | None = None, *, query: bool) -> Tensor:
        """Embed ``(B, L, samples)`` as ``(B, L + 1, d)``; lengths grow by 1."""
        mark = self.marks[0 if query else 1].expand(len(windows), -1, -1)
        return self.embed(torch.cat([mark, windows], 1), None if lengths is None else lengths + 1)


def _squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """``(B, m, n)``."""
    squares = x.square().sum(-1)[..., None] + y.square().sum(-1)[:, None]
    return (squares - 2 * x @ y.mT).clamp(min=0)


def _lengths(values: Tensor, lengths: Tensor | None) -> Tensor:
    return torch.full((len(values),), values.shape[1], device=values.device) if lengths is None else lengths


def _known(score: Tensor | None) -> Tensor:
    if score is None:
        raise RuntimeError("The aligner gave no score.")
    return score


def _needed(package: str) -> Any:
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"This score needs the package {package}: pip install {package} ({error})."
        ) from error
