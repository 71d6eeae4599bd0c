"""The penalty network and the Sinkhorn options that pairs are scored with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class PenaltyNetwork:
    """A small network from similarities ``(m, n)`` to penalties ``(m,)``, its parameters laid out for compiled loops.

    Convolutions along every row, each followed by a maximum over pairs where it is pooled and by ReLU; the mean over
    the rows; one more convolution with ``rows`` outputs; averages over ``bins`` bins and ReLU; Linear, ReLU, Linear
    and sigmoid on the bins of every output.

    Attributes:
        layers: ``(L, 4)`` int64: (outputs, inputs, taps, pooled) of each convolution, and in the last row (hidden,
            bins, 0, 0). The first has ``stagger + 1`` inputs: the row and those below it.
        weights: float32, in the order of the layers: weights, biases.
        columns: Similarities are padded with zeros to so many columns.
    """

    layers: NDArray[np.int64]
    weights: NDArray[np.float32]
    columns: int

    @property
    def rows(self) -> int:
        """Largest number of rows that it gives penalties for."""
        return int(self.layers[-2, 0])

    def work(self, m: int) -> int:
        """Return about how many multiplications its convolutions take for a pair."""
        out, width = 0, self.columns
        for outputs, inputs, taps, pooled in self.layers[:-1].tolist():
            width -= taps - 1
            out += outputs * inputs * taps * width * m
            width //= 1 + pooled
        return out


@dataclass(frozen=True)
class Sinkhorn:
    """Options of Sinkhorn's normalisation and the scores of a plan.

    Attributes:
        positions: ``(n,)`` float32, the a of the order's constraint: increasing.
        tau: Temperature, > 0.
        iterations: Normalisations of columns, then rows, at least 1.
        margin: b, the least increase of the expected position from one row to the next.
        hinge: True where an increase beyond the margin earns nothing.
        reward: ``"theorem1"``, or ``"hinge"``, see :func:`isotone_opas.functional.hinge_reward`.

    Raises:
        ValueError: an option outside its range.
    """

    positions: Tensor
    tau: float = 1.0
    iterations: int = 20
    margin: float = 1.0
    hinge: bool = False
    reward: Literal["theorem1", "hinge"] = "theorem1"

    def __post_init__(self) -> None:
        if not (self.tau > 0 and self.iterations >= 1 and np.isfinite(self.margin)):
            raise ValueError(
                "Sinkhorn expects tau > 0, iterations >= 1 and a finite margin; "
                f"got {self.tau}, {self.iterations} and {self.margin}."
            )
