"""Vectors to binary codes: hyperplanes, relaxed by a tanh while they are trained."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from isotone.interfaces import Scheduled


class HashHead(Scheduled):
    r"""Hyperplanes whose sides are bits, :math:`\phi_i(x) = \mathrm{sgn}(w_i^T x + b_i)`.

    While it is trained, :math:`\tanh(\alpha f)` replaces the sign (TALR, Eq. 10). :math:`\alpha` grows in equal ratios
    from ``first_scale`` to ``scale`` as training progresses (continuation; TALR, appendix D). With
    ``first_scale=None`` it is always ``scale``.

    Args:
        input_size: D.
        bits: b.
        scale: alpha at the end of training.
        first_scale: alpha at its beginning.
        bias: True where hyperplanes may leave the origin.
        seed: Of the hyperplanes' directions: unit vectors, uniform on the sphere.

    Raises:
        ValueError: no bits, or a scale that is not above 0.
    """

    def __init__(
        self,
        input_size: int,
        *,
        bits: int,
        scale: float = 40.0,
        first_scale: float | None = 1.0,
        bias: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if input_size < 1 or bits < 1:
            raise ValueError(
                f"HashHead expects at least one feature and one bit; got {input_size} and {bits}."
            )
        if not scale > 0 or (first_scale is not None and not first_scale > 0):
            raise ValueError(f"HashHead expects scales above 0; got {scale} and {first_scale}.")
        weight = torch.randn(bits, input_size, generator=torch.Generator().manual_seed(seed))
        self.weight = torch.nn.Parameter(weight / weight.norm(dim=1, keepdim=True))
        self.bias = torch.nn.Parameter(torch.zeros(bits)) if bias else None
        self.scale = scale
        self.first_scale = scale if first_scale is None else first_scale

    @property
    def bits(self) -> int:
        """Number of bits b."""
        return len(self.weight)

    @property
    def alpha(self) -> float:
        """Scale of the tanh at the present progress."""
        return float(self.first_scale ** (1 - self.progress) * self.scale**self.progress)

    def project(self, vectors: Tensor) -> Tensor:
        """Project ``(N, D)`` to ``(N, b)``, whose signs are the bits."""
        return torch.nn.functional.linear(vectors, self.weight, self.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return relaxed codes ``(N, b)``, in [-1, 1]."""
        return torch.tanh(self.alpha * self.project(vectors))

    @torch.no_grad()
    def codes(self, vectors: Tensor) -> np.ndarray:
        """Return bits ``(N, b)`` bool; 1 on the positive side of a hyperplane."""
        return (self.project(vectors.to(self.weight)) > 0).cpu().numpy()
