"""The OTTC head: label scores and the OT weights of the frames."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from isotone.interfaces import Head
from isotone.model.priors import initial_prior, log_prior, running_prior
from isotone.types import Emissions, Frames, length_mask
from isotone_ottc.states import check_states


class OTTCHead(Head):
    """Label scores, and the OT weight alpha of every frame: one learned alignment.

    The paper's head has no front. Logits are dropout and a linear layer; OT weights are dropout, a linear layer, GELU
    and a linear layer, both on the encoder's last hidden states. With ``layers`` the head has a front with a small
    receptive field, for exact times: a linear layer, GELU and ``layers`` convolutions.

    Args:
        input_size: D of the frames.
        vocab_size: V, blank included.
        blank: Label number of the blank.
        reads: ``"features"``, ``"last"`` or a layer number.
        dropout: Before each of the two outputs, and after the front's linear layer.
        hidden: Width between the two layers of the OT weights. Default: the width of their input.
        alpha: ``"learned"``, or ``"uniform"`` for the same weight on every frame (no OT weights).
        detach_after: Share of training from which the OT weights are frozen (the paper: 30 of 40 epochs, 0.75): no
            gradient reaches their layers, or the encoder through them. Default: never.
        layers: Convolutions of the front; 0: no front.
        width: Channels of the front.
        kernel: Frames seen by each convolution, odd.
        track_prior: Keep a running mean of the label posteriors in training; self-estimated label weights and the
            aligner can divide by it (``prior``).
        dilation: Factor between the dilations of one convolution and the next.
        states: Number of ordered states per label (a phone's onset, middle and end). Then there are ``states * V``
            logits, see :mod:`isotone_ottc.states`; the loss, aligner and decoder need the same ``states``.

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
        dropout: float = 0.1,
        hidden: int | None = None,
        alpha: Literal["learned", "uniform"] = "learned",
        detach_after: float | None = None,
        layers: int = 0,
        width: int = 256,
        kernel: int = 3,
        dilation: int = 1,
        track_prior: bool = False,
        states: int = 1,
    ) -> None:
        super().__init__()
        if alpha not in ("learned", "uniform"):
            raise ValueError(f"OTTCHead expects alpha 'learned' or 'uniform'; got {alpha!r}.")
        if not 0 <= blank < vocab_size:
            raise ValueError(f"OTTCHead expects a blank from 0 to {vocab_size - 1}; got {blank}.")
        if layers < 0 or kernel < 1 or kernel % 2 == 0 or dilation < 1:
            raise ValueError(
                "OTTCHead expects layers >= 0, an odd kernel and dilation >= 1; "
                f"got {layers}, {kernel} and {dilation}."
            )
        check_states("OTTCHead", states)
        self.blank = blank
        self.reads = reads
        self.detach_after = detach_after
        self.front = _Front(input_size, width, layers, kernel, dilation, dropout) if layers else None
        size = width if layers else input_size
        self.labels = nn.Sequential(nn.Dropout(dropout), nn.Linear(size, states * vocab_size))
        self.prior: Tensor | None
        self.register_buffer("prior", initial_prior(states * vocab_size) if track_prior else None)
        self.weights: nn.Sequential | None = None
        if alpha == "learned":
            last = nn.Linear(hidden or size, 1)
            # alpha starts uniform
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
            self.weights = nn.Sequential(
                nn.Dropout(dropout), nn.Linear(size, hidden or size), nn.GELU(), last
            )

    def forward(self, frames: Frames) -> Emissions:
        """Compute logits ``(B, T, states * V)`` and weight logits ``(B, T)``; padding is never read."""
        mask = length_mask(frames.lengths, frames.values.shape[1])
        values = frames.values.masked_fill(~mask[..., None], 0.0)
        if self.front is not None:
            values = self.front(values, mask)
        weight_logits = None
        if self.weights is not None:
            weight_logits = self.weights(values).squeeze(-1)
            if self.training and self.detach_after is not None and self.progress >= self.detach_after:
                weight_logits = weight_logits.detach()
        logits = self.labels(values)
        if self.prior is not None and self.training:
            self.prior = running_prior(self.prior, logits, mask)
        prior = None if self.prior is None else log_prior(self.prior)
        return Emissions(logits, frames.lengths, frames.grid, self.blank, weight_logits, prior)


class _Front(nn.Module):
    """A linear layer, GELU, and convolutions over time with residual connections."""

    def __init__(
        self, input_size: int, width: int, layers: int, kernel: int, dilation: int, dropout: float
    ) -> None:
        super().__init__()
        self.project = nn.Sequential(nn.Linear(input_size, width), nn.GELU(), nn.Dropout(dropout))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, width, kernel, padding=dilation**i * (kernel // 2), dilation=dilation**i)
            for i in range(layers)
        )

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        x = self.project(values)
        for norm, convolution in zip(self.norms, self.convolutions):
            assert isinstance(convolution, nn.Conv1d)
            if convolution.kernel_size[0] == 1:
                # a linear layer: frames stay rows, and padding meets no other frame
                found = nn.functional.linear(norm(x), convolution.weight[..., 0], convolution.bias)
            else:
                found = convolution(norm(x).masked_fill(~mask[..., None], 0.0).mT).mT
            x = x + nn.functional.gelu(found)
        return x
