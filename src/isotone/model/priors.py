"""Label priors: the running mean of a head's posteriors, updated in training."""

from __future__ import annotations

import torch
from torch import Tensor, distributed

# The running mean has a half-life of 34 batches. Priors in use are at least _LEAST.
_MEMORY = 0.98
_LEAST = 1e-5


def initial_prior(vocab_size: int) -> Tensor:
    """Return the prior before training: ``(V,)``, uniform."""
    return torch.full((vocab_size,), 1 / vocab_size)


def running_prior(prior: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
    """Update the running mean of the label posteriors with a batch, over all processes.

    Args:
        prior: ``(V,)`` the mean so far.
        logits: ``(B, T, V)`` of the batch; they get no gradient.
        mask: ``(B, T)`` bool, valid frames. A batch without valid frames is not counted.

    Returns:
        ``(V,)``; sums to 1.
    """
    posteriors = logits.detach().float().softmax(-1) * mask[..., None]
    sums = torch.cat([posteriors.sum((0, 1)), mask.sum()[None]])
    if distributed.is_available() and distributed.is_initialized():
        distributed.all_reduce(sums)
    mean = sums[:-1] / sums[-1].clamp(min=1)
    return torch.where(sums[-1] > 0, _MEMORY * prior + (1 - _MEMORY) * mean, prior)


def log_prior(prior: Tensor) -> Tensor:
    """Compute the logarithm of a prior ``(V,)`` for :class:`~isotone.types.Emissions`, bounded below."""
    return prior.clamp(min=_LEAST).log()
