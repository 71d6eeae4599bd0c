"""Whether an alignment has collapsed."""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.types import Coupling, length_mask


def frameless_share(coupling: Coupling) -> Tensor:
    """The share of the targets that get no source position: that carry the most of no position's mass.

    An alignment that gives every label a frame has 0. Where soft-DTW collapses, most labels are passed over within
    frames that belong to others.

    Args:
        coupling: Of frames to labels: of :class:`~isotone_softdtw.align.DTWAligner`, or any aligner.

    Returns:
        ``(B,)`` float, from 0 to 1; 0 for rows without targets.
    """
    size = max(1, int(coupling.target_lengths.max()) if len(coupling.mass) else 1)
    hard = coupling.hard()
    held = hard.mass.new_zeros(len(hard.mass), size).scatter_add(1, hard.target, hard.mass) > 0
    valid = length_mask(coupling.target_lengths, size)
    missing = (valid & ~held).sum(1)
    return torch.where(coupling.target_lengths > 0, missing / coupling.target_lengths.clamp(min=1), 0.0)
