"""Checks of embeddings and their lengths."""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.types import check_integers, mask_rows


def all_lengths(values: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the lengths ``(B,)`` of ``(B, n, ..)``; n for all where none are given."""
    return torch.full((len(values),), values.shape[1], device=values.device) if lengths is None else lengths


def check_embeddings(
    queries: Tensor,
    corpus: Tensor,
    query_lengths: Tensor | None,
    corpus_lengths: Tensor | None,
    *,
    paired: bool,
) -> None:
    """Check embeddings and lengths of queries and corpus items.

    Args:
        queries, corpus: ``(B, m, d)`` and ``(C, n, d)``.
        query_lengths, corpus_lengths: Their lengths, or None.
        paired: True where item b belongs to query b, false where all are compared with all.

    Raises:
        ValueError: shapes or lengths that do not fit, values that are not finite, or a query longer than an item that
            it is compared with; the message names the first.
    """
    if queries.ndim != 3 or corpus.ndim != 3 or queries.shape[2] != corpus.shape[2]:
        raise ValueError(
            "Expected query and corpus embeddings (B, m, d) and (B, n, d) of one d; got "
            f"{tuple(queries.shape)} and {tuple(corpus.shape)}. For a single pair use query[None] and item[None]."
        )
    if paired and len(queries) != len(corpus):
        raise ValueError(f"Expected as many corpus items as queries; got {len(corpus)} and {len(queries)}.")
    _check_side("query", queries, query_lengths)
    _check_side("corpus item", corpus, corpus_lengths)
    m, n = all_lengths(queries, query_lengths), all_lengths(corpus, corpus_lengths)
    too_long = (m > n) if paired else (m > n.min() if len(n) else m > m)
    if too_long.any():
        row = int(too_long.nonzero()[0])
        least = int(n[row]) if paired else int(n.min())
        raise ValueError(
            f"The query {row} has {int(m[row])} elements, its corpus item {least}: a query selects from an item that "
            "is at least as long. Shorten the query, or leave such items out."
        )


def _check_side(name: str, values: Tensor, lengths: Tensor | None) -> None:
    if lengths is not None:
        check_integers(lengths)
        if lengths.shape != (len(values),):
            raise ValueError(f"Expected {len(values)} {name} lengths; got shape {tuple(lengths.shape)}.")
        wrong = ((lengths < 1) | (lengths > values.shape[1])).nonzero()
        if len(wrong):
            row = int(wrong[0])
            raise ValueError(
                f"The {name} {row}: expected a length from 1 to {values.shape[1]}; got {int(lengths[row])}."
            )
    bad = (~torch.isfinite(mask_rows(values.sum(-1), lengths))).any(1).nonzero()
    if len(bad):
        raise ValueError(f"The {name} {int(bad[0])} holds NaN or infinity; expected finite embeddings.")
