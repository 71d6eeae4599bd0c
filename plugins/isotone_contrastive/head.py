"""A projection of the frames, for losses that compare views."""

from __future__ import annotations

from torch import nn

from isotone.interfaces import Head
from isotone.types import Emissions, Frames, mask_rows


class ProjectionHead(Head):
    """Vectors of the frames in place of label scores, for the ``contrastive`` loss.

    No text or times can be read from it.

    Args:
        input_size: Features D of the frames.
        vocab_size: Labels V of the model.
        blank: Passed on.
        reads: The layer it reads: ``"features"``, ``"last"`` or a layer number.
        size: Dimensions of the vectors. Default: ``vocab_size``.
        hidden: Width of a hidden layer; 0 makes it linear.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        input_size: int,
        vocab_size: int,
        blank: int = 0,
        *,
        reads: str | int = "last",
        size: int | None = None,
        hidden: int = 0,
    ) -> None:
        super().__init__()
        size = vocab_size if size is None else size
        if size < 1 or hidden < 0:
            raise ValueError(f"ProjectionHead expects size >= 1 and hidden >= 0; got {size} and {hidden}.")
        self.reads = reads
        self.blank = blank
        self.projection = projection(input_size, size, hidden)

    def forward(self, frames: Frames) -> Emissions:
        """Project ``values (B, T, D)`` to logits ``(B, T, size)``; lengths and grid are those of the frames."""
        values = mask_rows(frames.values, frames.lengths)
        return Emissions(self.projection(values), frames.lengths, frames.grid, self.blank)


def projection(input_size: int, size: int, hidden: int) -> nn.Module:
    """Build a linear layer; or, where ``hidden`` is a width, two around layer normalisation and GELU."""
    if not hidden:
        return nn.Linear(input_size, size)
    return nn.Sequential(
        nn.Linear(input_size, hidden), nn.LayerNorm(hidden), nn.GELU(), nn.Linear(hidden, size)
    )
