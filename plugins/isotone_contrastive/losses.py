"""Contrastive losses of two views, as modules, by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from isotone.registry import Registry
from isotone_contrastive.functional import (
    METRICS,
    PAIRS,
    Metric,
    Pairs,
    assignment_loss,
    candidates,
    hinge_loss,
    info_nce_loss,
    is_positive,
    logistic_loss,
    sparse_loss,
)

#: Contrastive losses by name; other distributions add theirs by entry points.
contrastive_losses: Registry[ContrastiveLoss] = Registry("contrastive loss", "isotone.contrastive_losses")


class ContrastiveLoss(nn.Module, ABC):
    """A loss of two views of the same items: ``loss(a, b)``, both ``(N, D)``, row i of both of item i -> scalar.

    Args:
        metric: ``"euclidean"`` (distances) or ``"cosine"`` (of vectors of any length).
        pairs: Pairs that compete, see :func:`isotone_contrastive.functional.candidates`.

    Raises:
        ValueError: no such metric or pairs.
    """

    def __init__(self, metric: Metric, pairs: Pairs) -> None:
        super().__init__()
        if metric not in METRICS or pairs not in PAIRS:
            raise ValueError(
                f"{type(self).__name__} expects metric {' or '.join(METRICS)} and pairs {', '.join(PAIRS)}; "
                f"got {metric!r} and {pairs!r}."
            )
        self.metric: Metric = metric
        self.pairs: Pairs = pairs

    @abstractmethod
    def of_rows(self, rows: Tensor, positive: Tensor) -> Tensor:
        """Compute the loss of each row ``(R,)`` of costs ``(R, C)`` whose positive column is ``positive (R,)``."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Average the loss over the rows.

        Raises:
            ValueError: not two views of the same two or more items.
        """
        return self.of_rows(*candidates(a, b, self.metric, self.pairs)).mean()


@contrastive_losses.register("assignment")
class LinearAssignment(ContrastiveLoss):
    """Structured linear assignment loss, its assignment exact or with independent rows.

    Args:
        mining: ``"one-to-one"``: the optimal assignment (Hungarian, on the CPU). ``"batch-hard"``: every row takes
            its cheapest column; with a margin, the margin triplet loss.
        margin: By which positives have to be cheaper, in the unit of the costs.
        metric: ``"euclidean"`` or ``"cosine"``.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        *,
        mining: Literal["one-to-one", "batch-hard"] = "one-to-one",
        margin: float = 0.5,
        metric: Metric = "euclidean",
    ) -> None:
        super().__init__(metric, "rows")
        if mining not in ("one-to-one", "batch-hard") or not margin >= 0:
            raise ValueError(
                f"LinearAssignment expects mining 'one-to-one' or 'batch-hard' and margin >= 0; got {mining!r} "
                f"and {margin}."
            )
        self.mining = mining
        self.margin = margin

    def of_rows(self, rows: Tensor, positive: Tensor) -> Tensor:
        """See :class:`ContrastiveLoss`."""
        if self.mining == "one-to-one":
            return assignment_loss(rows, self.margin)
        raised = rows + self.margin * is_positive(rows, positive).to(rows.dtype)
        return raised.gather(1, positive[:, None])[:, 0] - raised.amin(1)


@contrastive_losses.register("triplet")
class MarginTriplet(ContrastiveLoss):
    """Margin triplet loss against the hardest negative of each row.

    Args:
        margin: In the unit of the costs, at least 0.
        metric: ``"euclidean"`` or ``"cosine"``.
        pairs: ``"rows"``, ``"symmetric"`` or ``"all"``.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(self, *, margin: float = 0.5, metric: Metric = "euclidean", pairs: Pairs = "rows") -> None:
        super().__init__(metric, pairs)
        if not margin >= 0:
            raise ValueError(f"MarginTriplet expects margin >= 0; got {margin}.")
        self.margin = margin

    def of_rows(self, rows: Tensor, positive: Tensor) -> Tensor:
        """See :class:`ContrastiveLoss`."""
        return hinge_loss(rows, positive, self.margin)


@contrastive_losses.register("info-nce")
class InfoNCE(ContrastiveLoss):
    """InfoNCE; with ``metric="cosine", pairs="all"`` it is SimCLR's NT-Xent.

    Args:
        temperature: Above 0.
        metric: ``"euclidean"`` or ``"cosine"``.
        pairs: ``"rows"``, ``"symmetric"`` (as in CLIP) or ``"all"``.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self, *, temperature: float = 0.05, metric: Metric = "cosine", pairs: Pairs = "rows"
    ) -> None:
        super().__init__(metric, pairs)
        self.temperature = _positive(self, temperature)

    def of_rows(self, rows: Tensor, positive: Tensor) -> Tensor:
        """See :class:`ContrastiveLoss`."""
        return info_nce_loss(rows, positive, self.temperature)


@contrastive_losses.register("nt-xent")
class NTXent(InfoNCE):
    """SimCLR's loss: InfoNCE of every view among the 2N - 1 others.

    Args:
        temperature: Above 0.
        metric: ``"euclidean"`` or ``"cosine"``.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(self, *, temperature: float = 0.05, metric: Metric = "cosine") -> None:
        super().__init__(temperature=temperature, metric=metric, pairs="all")


@contrastive_losses.register("nt-logistic")
class NTLogistic(ContrastiveLoss):
    """Every pair by itself: positive or not, by logistic regression.

    Args:
        temperature: Above 0.
        threshold: Cost at which a pair is as likely a positive as not. Default: 0 for cosines (SimCLR's form), 1
            for distances, which are never below 0.
        metric: ``"euclidean"`` or ``"cosine"``.
        pairs: ``"rows"``, ``"symmetric"`` or ``"all"``.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        *,
        temperature: float = 0.05,
        threshold: float | None = None,
        metric: Metric = "cosine",
        pairs: Pairs = "rows",
    ) -> None:
        super().__init__(metric, pairs)
        self.temperature = _positive(self, temperature)
        self.threshold = float(metric == "euclidean") if threshold is None else threshold

    def of_rows(self, rows: Tensor, positive: Tensor) -> Tensor:
        """See :class:`ContrastiveLoss`."""
        return logistic_loss(rows, positive, self.temperature, self.threshold)


@contrastive_losses.register("sparse-clr")
class SparseCLR(ContrastiveLoss):
    """InfoNCE's sparse sibling: only negatives near the best candidate have a gradient.

    Args:
        temperature: Above 0; the paper's is 1, lower is sparser.
        metric: ``"euclidean"`` or ``"cosine"``.
        pairs: ``"rows"``, ``"symmetric"`` or ``"all"``.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self, *, temperature: float = 1.0, metric: Metric = "euclidean", pairs: Pairs = "rows"
    ) -> None:
        super().__init__(metric, pairs)
        self.temperature = _positive(self, temperature)

    def of_rows(self, rows: Tensor, positive: Tensor) -> Tensor:
        """See :class:`ContrastiveLoss`."""
        return sparse_loss(rows, positive, self.temperature)


def zero_gradient_share(loss: ContrastiveLoss, a: Tensor, b: Tensor) -> float:
    """Compute the share of a batch's negative pairs, 0 to 1, whose cost has no gradient at all.

    Args:
        loss: A loss of this module; for a regularised one, its pairwise part.
        a: ``(N, D)`` one view.
        b: ``(N, D)`` the other.
    """
    with torch.enable_grad():
        rows, positive = candidates(a.detach().double(), b.detach().double(), loss.metric, loss.pairs)
        rows.requires_grad_()
        (gradient,) = torch.autograd.grad(loss.of_rows(rows, positive).sum(), rows)
    negatives = gradient[~is_positive(rows, positive)]
    return float((negatives == 0).double().mean())


def _positive(loss: nn.Module, temperature: float) -> float:
    if not temperature > 0:
        raise ValueError(f"{type(loss).__name__} expects a temperature above 0; got {temperature}.")
    return temperature
