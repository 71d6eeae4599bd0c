"""Best paths on CUDA: CTC's lattice and that without blanks, one programme per row.

It is the recursion of :mod:`isotone.kernels.viterbi._ctc`, with the same sums in the same order: paths and scores are
those of the CPU, bit for bit. A programme goes through all frames of a block of cells, whose scores stay in registers;
neighbours are exchanged through shared memory. Where rows have more cells, the blocks follow each other in launches of
their own: each hands its last token's score in every frame on to the next.

Decisions take half a byte per frame and cell. Another launch goes back through them.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from isotone.kernels._lattice import PADDING
from isotone.kernels.viterbi._trellis import GROUP, forward_kernel, trace_kernel
from isotone.types import check_integers

#: Types of scores that are read as they are.
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
#: Bytes that the decisions of some rows may take together. A row that needs more is not for this module.
TRELLIS_BYTES = 4 << 30
# Most cells of a block.
_BLOCK = 1024
# Cells per warp, of which there are up to 16.
_CELLS = 64


def best_paths(
    log_probs: Tensor, labels: Any, frame_lengths: Any, label_lengths: Any, blank: int | None
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return paths, scores and touched bands (there are none) of a batch.

    None where the input is wrong, a row has no path, or is too large.
    The only wait for the device is for the answer to whether all rows have paths.
    """
    given = [torch.as_tensor(x, device=log_probs.device) for x in (labels, frame_lengths, label_lengths)]
    check_integers(*given[1:])
    y, n, m = (x.to(torch.int64).contiguous() for x in given)
    if not _fit(log_probs, y, n, m, blank):
        return None
    per_row = -(-log_probs.shape[1] // GROUP.value) * _width(y) * 2
    if per_row > TRELLIS_BYTES:
        return None
    rows = max(1, TRELLIS_BYTES // max(1, per_row))
    parts = [
        _paths(log_probs[b : b + rows], y[b : b + rows], n[b : b + rows], m[b : b + rows], blank)
        for b in range(0, len(log_probs), rows)
    ]
    paths, scores = (torch.cat(x) if len(parts) > 1 else x[0] for x in zip(*parts))
    if not torch.isfinite(scores).all():
        return None
    touched = torch.zeros_like(scores, dtype=torch.bool)
    return paths, scores.to(torch.promote_types(log_probs.dtype, torch.float32)), touched


def _fit(log_probs: Tensor, labels: Tensor, frames: Tensor, tokens: Tensor, blank: int | None) -> bool:
    """Return whether the shapes fit together; values are checked by the kernels."""
    if log_probs.ndim != 3 or labels.ndim != 2 or log_probs.dtype not in TYPES:
        return False
    sizes = {(len(log_probs),), (len(labels),), frames.shape, tokens.shape}
    return len(sizes) == 1 and len(labels) > 0 and (blank is None or 0 <= blank < log_probs.shape[2])


def _width(labels: Tensor) -> int:
    """Return the words per group of frames: one per cell, in whole lines of memory."""
    return triton.cdiv(labels.shape[1] + 1, 64) * 64


def _paths(
    log_probs: Tensor,
    labels: Tensor,
    frames: Tensor,
    tokens: Tensor,
    blank: int | None,
    block: int = _BLOCK,
) -> tuple[Tensor, Tensor]:
    """Return paths ``(B, T)`` and scores ``(B,)`` float64: NaN for wrong rows, -inf for those without a path."""
    (batch, most, vocab), device = log_probs.shape, log_probs.device
    width, cells = _width(labels), labels.shape[1] + 1
    block = min(block, max(16, triton.next_power_of_2(cells)))
    handed = torch.full((2, batch, most + 1), -torch.inf, dtype=torch.float64, device=device)
    if blank is None:
        handed[0, :, 0] = 0.0
    trellis = torch.empty(batch, -(-most // GROUP.value), width, dtype=torch.int16, device=device)
    scores = torch.empty(batch, dtype=torch.float64, device=device)
    rests, wrong = torch.zeros(2, batch, dtype=torch.int32, device=device)
    paths = torch.full((batch, most), PADDING, device=device)
    with torch.cuda.device_of(log_probs):
        for i, first in enumerate(range(0, cells, block)):
            forward_kernel[(batch,)](
                log_probs, labels, frames, tokens, handed[i % 2], handed[1 - i % 2], trellis, scores, rests, wrong,
                *log_probs.stride(), most, labels.shape[1], vocab, -1 if blank is None else blank, first, width,
                BLANKS=blank is not None, BLOCK=block, num_warps=max(1, min(16, block // _CELLS)), num_stages=1,
            )  # fmt: skip
        trace_kernel[(batch,)](frames, tokens, trellis, scores, rests, wrong, paths, most, width, num_warps=1)
    return paths, scores
