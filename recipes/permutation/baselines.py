"""The paper's baselines of synchronisation: penalties on softmax and on rotations, and the Birkhoff polytope."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from isotone_permutation.orthogonal import skew, skew_exp
from isotone_permutation.relax import Hungarian, SingleStepExp, Sinkhorn
from method import Method
from torch import Tensor

# Least entry of a doubly stochastic matrix, whose metric divides by the entries.
_LEAST = 1e-8


class Penalised(Method):
    """A method with a penalty of some weight."""

    def __init__(
        self,
        shape: tuple[int, int],
        generator: torch.Generator,
        allowed: Tensor | None = None,
        *,
        start: float = 1.0,
        weight: float = 1.0,
    ) -> None:
        super().__init__(shape, generator, allowed, start=start)
        self.weight = weight


class Reg(Penalised):
    r"""Softmax of every row with the penalty :math:`\sum_j (\sum_i P_{ij} - 1)^2` on the columns.

    Args:
        weight: Of the penalty.
    """

    def draw(self, samples: int) -> Tensor:
        return SingleStepExp()(self._scores())

    def penalty(self) -> Tensor:
        """Return the penalty, per matrix and row."""
        soft = self.draw(1)
        return self.weight * (soft.sum(1) - 1).square().mean()

    def permutation(self) -> Tensor:
        return self._rounded()


class OrthReg(Penalised):
    r"""Rotations with the penalty :math:`\frac{2}{3} tr(P^T (P - P \circ P))` (Zavlanos & Pappas 2008).

    Among orthogonal matrices it is least at permutations. Rotations reach even permutations only, as in the paper.

    Args:
        weight: Of the penalty.
    """

    def draw(self, samples: int) -> Tensor:
        return skew_exp(skew(self.values)).to(self.values.dtype)

    def penalty(self) -> Tensor:
        """Return the penalty, per matrix and row."""
        soft = self.draw(1)
        return self.weight * 2 / 3 * (soft * (soft - soft.square())).sum((1, 2)).mean() / soft.shape[1]

    def permutation(self) -> Tensor:
        return Hungarian()(self.draw(1).detach())


class Birkhoff(Method):
    """Doubly stochastic matrices themselves, moved on their manifold (RiemanBirk; Douik & Hassibi 2019)."""

    def __init__(
        self,
        shape: tuple[int, int],
        generator: torch.Generator,
        allowed: Tensor | None = None,
        *,
        start: float = 1.0,
    ) -> None:
        super().__init__(shape, generator, allowed, start=start)
        self.values = balanced(self._scores().detach()).requires_grad_()

    def draw(self, samples: int) -> Tensor:
        return self.values

    def permutation(self) -> Tensor:
        return Hungarian()(self.values.detach())

    def optimiser(self, name: str, lr: float) -> torch.optim.Optimizer:
        """Build Riemannian Adam, or gradient descent."""
        return BirkhoffOptimiser([self.values], lr=lr, adam=name == "adam")


def balanced(scores: Tensor) -> Tensor:
    """Return the doubly stochastic matrices of ``exp(scores)``, by Sinkhorn's iterations."""
    soft = Sinkhorn(temperature=1.0, iterations=100)(scores).clamp(min=_LEAST)
    return soft / soft.sum(2, keepdim=True)


def tangent(point: Tensor, direction: Tensor) -> Tensor:
    r"""Project directions on the tangent space at doubly stochastic matrices X, in the Fisher metric.

    .. math:: \Pi_X(Z) = Z - (\alpha 1^T + 1 \beta^T) \circ X,\quad (I - X X^T) \alpha = (Z - X Z^T) 1,\quad
        \beta = Z^T 1 - X^T \alpha

    Args:
        point: ``(B, n, n)`` X.
        direction: ``(B, n, n)`` Z.

    Returns:
        ``(B, n, n)``, whose rows and columns sum to 0.
    """
    x, z = point.double(), direction.double()
    eye = torch.eye(x.shape[1], dtype=x.dtype)
    rows, columns = z.sum(2, keepdim=True), z.sum(1)[:, :, None]
    alpha = torch.linalg.pinv(eye - x @ x.mT, hermitian=True) @ (rows - x @ columns)
    beta = columns - x.mT @ alpha
    return (z - (alpha + beta.mT) * x).to(direction.dtype)


class BirkhoffOptimiser(torch.optim.Optimizer):
    """Riemannian gradient descent and Riemannian Adam (Becigneul & Ganea 2019) on doubly stochastic matrices.

    Args:
        parameters: ``(B, n, n)`` each.
        lr: Step size.
        adam: With moments: the first of the tangent vector, the second of its squared length, one per matrix.
        betas: Of the moments.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        *,
        lr: float,
        adam: bool,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        super().__init__(parameters, {"lr": lr, "adam": adam, "betas": betas})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every parameter along the manifold."""
        for group in self.param_groups:
            for point in group["params"]:
                gradient = tangent(point, point.grad * point)
                if group["adam"]:
                    gradient = self._adam(point, gradient, *group["betas"])
                # the retraction X o exp(xi / X), balanced; a bounded exponent keeps it finite
                move = (-group["lr"] * gradient / point).clamp(-30, 30)
                point.copy_(balanced(point.log() + move))
                if group["adam"]:
                    self.state[point]["first"] = tangent(point, self.state[point]["first"])

    def _adam(self, point: Tensor, gradient: Tensor, one: float, two: float) -> Tensor:
        state = self.state[point]
        if not state:
            state.update(count=0, first=torch.zeros_like(point), second=torch.zeros(len(point), 1, 1))
        state["count"] += 1
        length = (gradient.square() / point).sum((1, 2), keepdim=True)
        state["first"] = one * state["first"] + (1 - one) * gradient
        state["second"] = two * state["second"] + (1 - two) * length
        first = state["first"] / (1 - one ** state["count"])
        second = state["second"] / (1 - two ** state["count"])
        return first / (second.sqrt() + 1e-12)
