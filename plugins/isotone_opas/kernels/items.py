"""Corpus items laid out for scoring, sixteen side by side."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isotone.kernels.native.lanes import LANES
from isotone.types import check_integers, mask_rows


@dataclass(frozen=True)
class Items:
    """Corpus items laid out for scoring: B blocks of sixteen, one per lane.

    Attributes:
        vectors: ``(B, n, 16, d)`` float32, zero beyond the lengths.
        squares: ``(B, n, 16)``, squared norms of the vectors.
        products: ``(B, n, n, 16)``, inner products of each item's own vectors; ``(0, n, n, 16)`` where they do not pay.
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
            lengths: ``(C,)`` int64; nothing beyond is read. Default: all.
            rows: About how many query elements they will be scored with: for few, inner products are not computed.
        """
        clean, lengths = masked(corpus, lengths)
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
        # a row takes n d products of plan and vectors, or n n of plan and inner products, which take n n d once
        shared = rows * (d - n) > n * d
        own = clean @ clean.mT if shared else clean.new_empty(0, n, n)
        products = _lanes_last(torch.nn.functional.pad(own, (0, 0, 0, 0, 0, padded)) if shared else own)
        return cls(vectors, squares, products, torch.nn.functional.pad(lengths.float(), (0, padded)), count)


def _lanes_last(values: Tensor) -> Tensor:
    """Turn ``(16 B, r, n)`` into ``(B, r, n, 16)``."""
    return values.reshape(-1, LANES, *values.shape[1:]).permute(0, 2, 3, 1).contiguous()


def masked(vectors: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the vectors as float32 with zeros beyond the lengths, and the lengths."""
    vectors = vectors.detach().float()
    size = vectors.shape[1]
    if lengths is None:
        return vectors, torch.full((len(vectors),), size)
    check_integers(lengths)
    if int(lengths.min()) == size:
        return vectors, lengths
    return mask_rows(vectors, lengths), lengths
