r"""QARe: quadratic assignment regularisation of contrastive losses.

With the costs S between two views and S_A, S_B within them, the loss of the quadratic assignment problem has the
bound (the paper's equation 7)

.. math:: L_{QAP} \le L(S, Y_{gt}) - \langle\lambda_A, \lambda_B\rangle_-

and, with similarities in place of distances, :math:`L_{QAP} \le L + \langle\lambda_A, \lambda_B\rangle_+` (equation
17). The second term depends on each view as a whole; it is added to a loss of pairs, divided by N^2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isotone_contrastive.functional import METRICS, Metric, check_views, costs, widened
from isotone_contrastive.losses import ContrastiveLoss, contrastive_losses
from isotone_contrastive.spectral import eigenvalue_product


def qare_term(a: Tensor, b: Tensor, metric: Metric, top: int | None = None) -> Tensor:
    r"""Compute the set term of two views.

    Euclidean: :math:`-\frac{1}{N^2} \sum_k \lambda_k^\downarrow(S_A) \lambda_k^\uparrow(S_B)` of distances. Cosine:
    :math:`\frac{1}{N^2} \sum_k \lambda_k^\downarrow(1 + S_A) \lambda_k^\downarrow(1 + S_B)` of cosines. Both grow
    where the distances within the two views differ.

    Args:
        a: ``(N, D)`` one view of N items.
        b: ``(N, D)`` the other.
        metric: ``"euclidean"`` or ``"cosine"``.
        top: Eigenvalues used of each, largest in magnitude first, see
            :func:`isotone_contrastive.spectral.eigenvalue_product`. Default: all.

    Returns:
        Scalar, float32 at least. O(N^3); all of the cosine form in O(N D^2) where N > D, for the N x N matrix
        1 + S = Z Z^T, Z = [1, a / |a|], has the eigenvalues of the small Z^T Z and zeros.

    Raises:
        ValueError: not two views, or ``top`` below 1.
    """
    check_views(a, b)
    size = len(a)
    if metric == "euclidean":
        within = (costs(x, x, metric) for x in (a, b))
        return -eigenvalue_product(*within, alike=False, top=top) / size**2
    return eigenvalue_product(*(_shifted_cosines(x) for x in (a, b)), alike=True, top=top) / size**2


def _shifted_cosines(x: Tensor) -> Tensor:
    """Compute 1 + cosines ``(N, N)`` of rows ``(N, D)``, or a smaller matrix with the same nonzero eigenvalues."""
    with torch.autocast(x.device.type, enabled=False):
        z = F.normalize(widened(x), dim=1)
        z = torch.cat([z.new_ones(len(z), 1), z], 1)
        return z.mT @ z if z.shape[1] < len(z) else z @ z.mT


class QARe(nn.Module):
    """A contrastive loss with quadratic assignment regularisation: alpha * pairwise + beta * set term.

    It is called like the loss: ``(a, b)``, both ``(N, D)`` -> scalar.

    Args:
        pairwise: The loss of pairs.
        beta: Weight of the set term, at least 0.
        alpha: Weight of the pairwise loss. (The paper: 1 in self-supervision, 1 - beta in matching.)
        top: Eigenvalues used of each view. Default: all.
        metric: Of the set term. Default: the loss's own.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        pairwise: ContrastiveLoss,
        *,
        beta: float = 1.0,
        alpha: float = 1.0,
        top: int | None = None,
        metric: Metric | None = None,
    ) -> None:
        super().__init__()
        metric = pairwise.metric if metric is None else metric
        if not (beta >= 0 and alpha >= 0) or metric not in METRICS or (top is not None and top < 1):
            raise ValueError(
                f"QARe expects alpha, beta >= 0, top >= 1 and metric {' or '.join(METRICS)}; got alpha {alpha}, beta "
                f"{beta}, top {top}, metric {metric!r}."
            )
        self.pairwise = pairwise
        self.alpha = alpha
        self.beta = beta
        self.top = top
        self.metric: Metric = metric

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Compute the weighted sum; the set term is skipped where beta is 0."""
        loss = self.alpha * self.pairwise(a, b)
        if not self.beta:
            return loss
        return loss + self.beta * qare_term(a, b, self.metric, self.top)


def build_loss(
    pairwise: str | Mapping[str, Any], qare: Mapping[str, Any] | None = None
) -> ContrastiveLoss | QARe:
    """Build a loss of pairs from its name, or ``name`` and options, with QARe around it where its options are given."""
    loss = contrastive_losses.create(pairwise)
    return loss if qare is None else QARe(loss, **qare)
