"""The maths of consistency: how far two distributions are apart, each held fixed to teach the other."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def mutual_divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    r"""Half the sum of both Kullback-Leibler divergences, without gradient in the distribution that is the target:

    .. math:: \tfrac12 \left( D(\mathrm{sg}(q) \,\|\, p) + D(\mathrm{sg}(p) \,\|\, q) \right)

    Its value is symmetric in p and q, at least 0, and 0 where they are equal; its gradient in the logits of p is
    (p - q) / 2, bounded wherever they are.

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
