"""Embedding of recordings: the vectors of their corpus items."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.interfaces import Searcher
from isotone.search.windows import cut_windows, item_spans

# Batch sizes: windows, or whole items for contextual models.
_WINDOWS, _ITEMS = 256, 16


@torch.inference_mode()
def embed_items(searcher: Searcher, samples: NDArray[np.float32]) -> tuple[Tensor, list[tuple[int, int]]]:
    """Return the items of a recording: vectors ``(I, n, d)``, zero beyond each item's length, and their spans.

    Raises:
        ValueError: the model returned vectors that are not finite.
    """
    rate = searcher.sample_rate
    windows = cut_windows(samples, round(searcher.window_s * rate), round(searcher.hop_s * rate))
    n = searcher.item_windows
    spans = item_spans(len(windows), n)
    out = torch.zeros(len(spans), n, searcher.size)
    if searcher.contextual:
        for first in range(0, len(spans), _ITEMS):
            block = spans[first : first + _ITEMS]
            lengths = torch.tensor([length for _, length in block])
            padded = np.zeros((len(block), int(lengths.max()), windows.shape[1]), np.float32)
            for row, (start, length) in enumerate(block):
                padded[row, :length] = windows[start : start + length]
            vectors = searcher.vectors(torch.from_numpy(padded), lengths)
            out[first : first + len(block), : vectors.shape[1]] = vectors
    else:
        parts = [
            searcher.vectors(torch.from_numpy(windows[first : first + _WINDOWS].copy())[None])[0]
            for first in range(0, len(windows), _WINDOWS)
        ]
        each = torch.cat(parts)
        for row, (start, length) in enumerate(spans):
            out[row, :length] = each[start : start + length]
    if not torch.isfinite(out).all():
        raise ValueError("the model gave vectors that are not finite; its weights are damaged.")
    return out, spans
