"""The OTTC loss and its choices of label weights."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from isotone.interfaces import Loss
from isotone.kernels.coupling import frame_weights
from isotone.types import Emissions, Targets
from isotone_ottc.functional import insert_blanks, labels_from_paths, ottc_loss
from isotone_ottc.weights import own_weights, spread_optional, token_weights, uniform_weights


class OTTCLoss(Loss):
    """Optimal Temporal Transport Classification: cross-entropy along one learned alignment.

    Args:
        beta: The label weights. ``"uniform"``: 1 / m, as in the paper. ``"durations"``: from
            ``targets.durations``. ``"path"``: the labels, blanks included, that ``targets.paths`` spells,
            each weighted by its frames (the paper's oracle). ``"self"``: uniform at first, then the
            frames that each label has in the emissions' own best alignment without blanks; no gradient
            goes through it.
        self_after: Share of training after which ``"self"`` leaves uniform weights.
        smoothing: Frames given to every label beyond its own, for ``"durations"`` and ``"self"``; all
            that the blanks inserted between repeats have under ``"durations"``.
        prior: Power of the labels' priors that ``"self"`` divides the emissions by before it aligns them
            (the head must track them).

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        *,
        beta: Literal["uniform", "durations", "path", "self"] = "uniform",
        self_after: float = 0.3,
        smoothing: float = 0.5,
        prior: float = 0.0,
    ) -> None:
        super().__init__()
        if beta not in ("uniform", "durations", "path", "self"):
            raise ValueError(f"OTTCLoss expects beta 'uniform', 'durations', 'path' or 'self'; got {beta!r}.")
        if not smoothing > 0:
            raise ValueError(
                f"OTTCLoss expects smoothing above 0 frames (no label may weigh nothing); got {smoothing}."
            )
        if not 0 <= self_after <= 1:
            raise ValueError(
                f"OTTCLoss expects self_after from 0 to 1, a share of training; got {self_after}."
            )
        if not prior >= 0:
            raise ValueError(f"OTTCLoss expects prior >= 0, a power; got {prior}.")
        self.beta = beta
        self.self_after = self_after
        self.smoothing = smoothing
        self.prior = prior

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """The loss of each utterance ``(B,)``, nats; 0 where frames are fewer than labels, or no labels.

        Raises:
            ValueError: the targets lack the durations or paths that ``beta`` asks for.
        """
        frames = emissions.lengths
        if self.beta == "path":
            if targets.paths is None:
                raise ValueError(
                    "OTTCLoss(beta='path') expects targets.paths, a teacher's alignment; got None."
                )
            labels, lengths, beta = labels_from_paths(targets.paths, targets.labels, emissions.blank)
        else:
            labels, lengths, origin = insert_blanks(targets.labels, targets.lengths, emissions.blank)
            if self.beta == "durations":
                beta = token_weights(targets.durations, origin, lengths, frames, self.smoothing)
            elif self.beta == "self" and self.progress >= self.self_after:
                optional = spread_optional(targets.optional, origin, inserted=False)
                scaled = emissions.without_prior(self.prior)
                beta = own_weights(scaled, labels, lengths, self.smoothing, optional)
            else:
                beta = uniform_weights(lengths, labels.shape[1])
        if emissions.weight_logits is None:
            alpha = emissions.weights()
        else:
            alpha = frame_weights(emissions.weight_logits, frames)
        return ottc_loss(emissions.logits, alpha, labels, beta, frames, lengths)
