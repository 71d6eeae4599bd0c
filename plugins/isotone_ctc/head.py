"""The CTC head."""

from __future__ import annotations

from torch import Tensor, nn

from isotone.interfaces import Head
from isotone.model.priors import initial_prior, log_prior, running_prior
from isotone.types import Emissions, Frames, length_mask


class CTCHead(Head):
    """Dropout and a linear layer, with the state of ``lm_head`` in transformers' ``Wav2Vec2ForCTC``.

    Args:
        input_size: D of the frames.
        vocab_size: V, blank included.
        blank: Label number of the blank.
        reads: ``"features"``, ``"last"`` or a layer number.
        dropout: Share of the features dropped in training.
        track_prior: Keep a running mean of the label posteriors in training; the loss can divide by it (``prior``). It
            is one more entry of the state.
    """

    def __init__(
        self,
        input_size: int,
        vocab_size: int,
        blank: int = 0,
        *,
        reads: str | int = "last",
        dropout: float = 0.1,
        track_prior: bool = False,
    ) -> None:
        super().__init__()
        if not 0 <= blank < vocab_size:
            raise ValueError(f"CTCHead expects a blank from 0 to {vocab_size - 1}; got {blank}.")
        self.reads = reads
        self.blank = blank
        self.dropout = nn.Dropout(dropout)
        self.lm_head = nn.Linear(input_size, vocab_size)
        self.prior: Tensor | None
        self.register_buffer("prior", initial_prior(vocab_size) if track_prior else None)

    def forward(self, frames: Frames) -> Emissions:
        """Score the labels of every frame.

        Args:
            frames: ``values (B, T, D)``.

        Returns:
            Logits ``(B, T, V)``; lengths and grid are those of the frames.
        """
        mask = length_mask(frames.lengths, frames.values.shape[1])
        values = frames.values.masked_fill(~mask[..., None], 0.0)
        logits = self.lm_head(self.dropout(values))
        if self.prior is not None and self.training:
            self.prior = running_prior(self.prior, logits, mask)
        prior = None if self.prior is None else log_prior(self.prior)
        return Emissions(logits, frames.lengths, frames.grid, self.blank, log_prior=prior)
