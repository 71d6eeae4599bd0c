"""How often a head says each label: a running mean of its posteriors, kept by the head while it is trained."""

from __future__ import annotations

import torch
from torch import Tensor, distributed

# The mean forgets with a half-life of 34 batches; no label is rarer than this.
_MEMORY = 0.98
_LEAST = 1e-5


def initial_prior(vocab_size: int) -> Tensor:
    """The prior before anything was said: ``(V,)``, uniform."""
    return torch.full((vocab_size,), 1 / vocab_size)


def running_prior(prior: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
    """The running mean of the label posteriors, one batch on: that of all processes which train together.

    Args:
        prior: ``(V,)`` the mean so far.
        logits: ``(B, T, V)`` of the batch; no gradient is kept.
        mask: ``(B, T)`` bool, valid frames. A batch without any is not counted.

    Returns:
        ``(V,)``, sums to 1.
    """
    posteriors = logits.detach().float().softmax(-1) * mask[..., None]
    sums = torch.cat([posteriors.sum((0, 1)), mask.sum()[None]])
    if distributed.is_available() and distributed.is_initialized():
        distributed.all_reduce(sums)
    mean = sums[:-1] / sums[-1].clamp(min=1)
    return torch.where(sums[-1] > 0, _MEMORY * prior + (1 - _MEMORY) * mean, prior)


def log_prior(prior: Tensor) -> Tensor:
    """Logarithm of a prior ``(V,)``, as :class:`~isotone.types.Emissions` carry it: of rare labels bounded below."""
    return prior.clamp(min=_LEAST).log()
