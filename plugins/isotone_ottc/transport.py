"""Forced alignment by transport of the OT weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch

from isotone.interfaces import Aligner
from isotone.kernels.coupling import couple
from isotone.types import Coupling, Emissions, Targets
from isotone_ottc.functional import ottc_loss
from isotone_ottc.sequences import insert_blanks
from isotone_ottc.states import check_states, merge_states
from isotone_ottc.weights import check_rows, own_weights, spread_optional, token_weights, uniform_weights


class Transport(Aligner):
    """The coupling of OT weights with label weights: the soft alignment that OTTC is trained with.

    Args:
        beta: The label weights: ``"uniform"``, ``"durations"`` (from ``targets.durations``) or ``"self"``
            (the frames of each label in the emissions' own best alignment without blanks). Use the one of the
            training.
        smoothing: Frames given to every label beyond its own, for ``"durations"`` and ``"self"``.
        min_alpha: Frames with an OT weight below ``min_alpha / n`` carry nothing.
        states: Number of ordered states per label, as in the head; the scores of a label's states are added up.

    Raises:
        ValueError: an option outside its range.
    """

    takes_device = True

    def __init__(
        self,
        *,
        beta: Literal["uniform", "durations", "self"] = "uniform",
        smoothing: float = 0.5,
        min_alpha: float = 0.0,
        states: int = 1,
    ) -> None:
        check_states("Transport", states)
        if beta not in ("uniform", "durations", "self"):
            raise ValueError(f"Transport expects beta 'uniform', 'durations' or 'self'; got {beta!r}.")
        if not (smoothing > 0 and 0 <= min_alpha < 1):
            raise ValueError(
                f"Transport expects smoothing > 0 and min_alpha in [0, 1); got {smoothing} and {min_alpha}."
            )
        self.beta = beta
        self.smoothing = smoothing
        self.min_alpha = min_alpha
        self.states = states

    @torch.no_grad()
    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        """Align.

        Args:
            emissions: Logits ``(B, T, V)``; emissions without OT weights have uniform ones.
            targets: Labels ``(B, U)`` without blanks.

        Returns:
            A soft coupling of frames and tokens. The mass of blanks inserted between repeats and of frames below
            ``min_alpha`` is set to 0, so that a row sums to at most 1. ``score`` is minus the OTTC loss, nats per
            unit of mass.

        Raises:
            AlignmentError: a row has fewer frames than tokens and blanks between repeats, or is not finite.
        """
        emissions = merge_states(emissions, self.states)
        frames = emissions.lengths
        labels, lengths, origin = insert_blanks(targets.labels, targets.lengths, emissions.blank)
        check_rows(emissions, lengths)
        if self.beta == "durations":
            beta = token_weights(targets.durations, origin, lengths, frames, self.smoothing)
        elif self.beta == "self":
            optional = spread_optional(targets.optional, origin, inserted=False)
            beta = own_weights(emissions, labels, lengths, self.smoothing, optional, optional)
        else:
            beta = uniform_weights(lengths, labels.shape[1])
        alpha = emissions.weights()
        coupling = couple(alpha, beta, frames, lengths)
        kept = origin.gather(1, coupling.target) >= 0
        if alpha.shape[1]:
            light = alpha * frames[:, None] < self.min_alpha
            kept &= ~light.gather(1, coupling.source)
        # an inserted blank has origin -1: cummax gives its entries, of mass 0, to the token before it
        token = torch.cummax(origin, 1).values.gather(1, coupling.target).clamp(min=0)
        return replace(
            coupling,
            target=token,
            mass=torch.where(kept, coupling.mass, 0.0),
            target_lengths=targets.lengths,
            score=-ottc_loss(emissions.logits, alpha, labels, beta, frames, lengths),
        )
