"""The maths of consistency: the divergence of two distributions, each in turn the fixed target of the other."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def mutual_divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    r"""Compute half the sum of both Kullback-Leibler divergences, without gradient in the target of each:

    .. math:: \tfrac12 \left( D(\mathrm{sg}(q) \,\|\, p) + D(\mathrm{sg}(p) \,\|\, q) \right)

    The value is symmetric in p and q, at least 0, and 0 where they are equal. The gradient in the logits of p is
    (p - q) / 2, which is bounded.

    Args:
        log_p: ``(..., V)`` finite log-probabilities.
        log_q: ``(..., V)``.

    Returns:
        ``(...)`` nats.

    References: Yao et al. 2024, arXiv:2410.05101, equation 4.
    """
    first, second = (
        F.kl_div(moved, target.detach(), reduction="none", log_target=True).sum(-1)
        for moved, target in ((log_p, log_q), (log_q, log_p))
    )
    return 0.5 * (first + second)
