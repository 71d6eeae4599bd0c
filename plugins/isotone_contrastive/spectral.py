r"""Sums of products of sorted eigenvalues: bounds on the trace form of the quadratic assignment problem.

For symmetric A, B and any permutation Y (Finke, Burkard & Rendl 1987)

.. math:: \langle\lambda_A, \lambda_B\rangle_- \le \mathrm{tr}(A Y B Y^T) \le \langle\lambda_A, \lambda_B\rangle_+

with the eigenvalues sorted against each other (minus) or alike (plus). The sum is
:math:`\sum_k \lambda_k c_k` with c the other matrix's eigenvalues in the order of the match, so its gradient in A is
:math:`\sum_k c_k v_k v_k^T`: finite where eigenvalues repeat, unlike that of eigenvectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from torch import Tensor
from torch.autograd.function import once_differentiable

# Lanczos is faster where few of many eigenvalues are needed.
_LANCZOS_SHARE = 0.25
_LANCZOS_SIZE = 64
# Errors of N computed eigenvalues, in units of the largest one's, are below this times the root of N.
_ROUNDING = 4


class _EigenvalueProduct(torch.autograd.Function):
    """Matched product of two symmetric matrices (N, N) and (M, M); where M < N, the spectrum is filled with zeros."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, alike: bool, top: int | None) -> Tensor:
        needed = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        # one eigenvalue of distances is far larger than the others, which single precision would lose
        (of_a, vectors_a), (of_b, vectors_b) = (_spectrum(x.double(), top, needed) for x in (a, b))
        match_a, match_b = matched(of_a, of_b, alike, max(len(a), len(b)))
        factors = (level(match, of, len(x)) for match, of, x in ((match_a, of_a, a), (match_b, of_b, b)))
        ctx.save_for_backward(*(x.to(a.dtype) for x in (vectors_a, vectors_b, *factors)))
        return (of_a * match_a).sum().to(a.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        vectors_a, vectors_b, match_a, match_b = ctx.saved_tensors
        grads = []
        with torch.autocast(gradient.device.type, enabled=False):
            for vectors, match, needed in zip(
                (vectors_a, vectors_b), (match_a, match_b), ctx.needs_input_grad
            ):
                grads.append(gradient * ((vectors * match) @ vectors.mT) if needed else None)
        return grads[0], grads[1], None, None


def eigenvalue_product(a: Tensor, b: Tensor, *, alike: bool, top: int | None = None) -> Tensor:
    """Compute the largest (``alike``) or smallest sum of products of the eigenvalues of two symmetric matrices.

    Args:
        a: ``(N, N)`` symmetric, floating; only its symmetric part has a meaning.
        b: ``(M, M)`` likewise. Where M and N differ, the smaller spectrum is filled with zeros.
        alike: Sort both the same way, for the largest sum; otherwise against each other, for the smallest.
        top: Use so many eigenvalues of each, the largest in magnitude, and zeros for the others: those of the best
            approximations of that rank. Default: all.

    Returns:
        Scalar. The gradient is a subgradient where eigenvalues repeat, the one that does not depend on the choice
        of their eigenvectors. First order only. O(N^3); with few of many, by Lanczos iteration, O(top N^2). Eigenvalues
        are float64 inside, whatever the matrices are.

    Raises:
        ValueError: not square matrices of finite numbers, or ``top`` below 1.
    """
    for x in (a, b):
        if x.ndim != 2 or x.shape[0] != x.shape[1] or not len(x):
            raise ValueError(
                f"eigenvalue_product expects square matrices; got {tuple(a.shape)}, {tuple(b.shape)}."
            )
        if not torch.isfinite(x).all():
            raise ValueError("eigenvalue_product expects finite matrices; look for NaN in the embeddings.")
    if top is not None and top < 1:
        raise ValueError(f"eigenvalue_product expects top >= 1 eigenvalues, or None for all; got {top}.")
    product: Tensor = _EigenvalueProduct.apply(a, b, alike, top)
    return product


def _spectrum(matrix: Tensor, top: int | None, vectors: bool) -> tuple[Tensor, Tensor]:
    """Compute eigenvalues, rising, and on request eigenvectors in columns."""
    size = len(matrix)
    if top is not None and top < size:
        if matrix.device.type == "cpu" and size >= _LANCZOS_SIZE and top <= _LANCZOS_SHARE * size:
            found = _lanczos(matrix, top)
            if found is not None:
                return found
        values, basis = torch.linalg.eigh(matrix)
        kept = values.abs().topk(top).indices.sort().values
        return values[kept], basis[:, kept]
    if not vectors:
        return torch.linalg.eigvalsh(matrix), matrix.new_zeros(size, 0)
    values, basis = torch.linalg.eigh(matrix)
    return values, basis


def _lanczos(matrix: Tensor, top: int) -> tuple[Tensor, Tensor] | None:
    """Compute the eigenvalues of largest magnitude by ARPACK; None where it does not converge."""
    start = np.random.default_rng(0).standard_normal(len(matrix))  # a fixed start makes results repeatable
    numbers = matrix.detach().numpy()
    try:
        values, basis = eigsh(numbers, k=top, which="LM", v0=start.astype(numbers.dtype))
    except ArpackNoConvergence:
        return None
    order = np.argsort(values)
    return torch.from_numpy(values[order]), torch.from_numpy(np.ascontiguousarray(basis[:, order]))


def matched(a: Tensor, b: Tensor, alike: bool, size: int) -> tuple[Tensor, Tensor]:
    """Return the factor of every eigenvalue, when both spectra are filled with zeros to ``size``.

    Args:
        a: ``(k,)`` rising.
        b: ``(l,)`` rising.
        alike: Largest with largest, otherwise largest with smallest.
        size: At least k and l.

    Returns:
        ``(k,)`` for the values of a, and ``(l,)`` for those of b.
    """
    padded, orders = [], []
    for values in (a, b):
        filled = torch.cat([values, values.new_zeros(size - len(values))])
        order = filled.argsort(stable=True)
        padded.append(filled[order])
        orders.append(order)
    if not alike:
        padded[1], orders[1] = padded[1].flip(0), orders[1].flip(0)
    of_a, of_b = torch.empty_like(padded[0]), torch.empty_like(padded[1])
    of_a[orders[0]], of_b[orders[1]] = padded[1], padded[0]
    return of_a[: len(a)], of_b[: len(b)]


def level(factors: Tensor, values: Tensor, size: int) -> Tensor:
    """Average the factors over equal values ``(k,)``, rising, so that no eigenvector of a repeated one is preferred.

    Values are equal within rounding. A run of close values is cut where it gets wider than that: among many
    eigenvalues all neighbours can be close although the first and the last are not.
    """
    if len(values) < 2:
        return factors
    tolerance = _ROUNDING * size**0.5 * torch.finfo(values.dtype).eps * values.abs().max()
    if not tolerance > 0:
        return factors.mean().expand_as(factors)
    starts = torch.cat([values.new_ones(1, dtype=torch.bool), values.diff() > tolerance])
    first = torch.where(starts, values, values[0]).cummax(0).values
    part = ((values - first) / tolerance).floor()
    starts[1:] |= part.diff() != 0
    group = starts.long().cumsum(0) - 1
    sums = torch.zeros_like(factors).index_add(0, group, factors)
    counts = torch.zeros_like(factors).index_add(0, group, torch.ones_like(factors))
    return (sums / counts.clamp(min=1))[group]
