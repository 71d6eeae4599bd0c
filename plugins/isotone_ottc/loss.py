"""The OTTC loss and its choices of label weights."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from isotone.interfaces import Loss
from isotone.kernels.coupling import frame_weights
from isotone.types import Emissions, Targets
from isotone_ottc.durations import DurationNetwork, divergence
from isotone_ottc.functional import insert_blanks, labels_from_paths, ottc_loss
from isotone_ottc.states import check_states, label_count, merge_states, spell_states
from isotone_ottc.weights import (
    own_weights,
    path_frames,
    required_count,
    spread_optional,
    spread_weights,
    token_weights,
    uniform_weights,
)

Beta = Literal["uniform", "durations", "path", "aligned", "self", "network"]


class OTTCLoss(Loss):
    r"""Optimal Temporal Transport Classification: cross-entropy along one learned alignment.

    Args:
        beta: The label weights. ``"uniform"``: 1 / m, as in the paper. ``"durations"``: from
            ``targets.durations``. ``"path"``: the labels, blanks included, that ``targets.paths`` spells,
            each weighted by its frames (the paper's oracle). ``"aligned"``: the frames that each token has in
            ``targets.paths``, uniform where there is no path yet. ``"self"``: uniform at first, then the
            frames that each label has in the emissions' own best alignment without blanks; no gradient
            goes through it. ``"network"``: a small network's guess from the labels, trained with the rest, the
            gradient reaching it through the coupling; it is a part of the loss, not of the model.
        self_after: Share of training after which ``"self"`` leaves uniform weights.
        smoothing: Frames given to every label beyond its own, for ``"durations"``, ``"aligned"`` and ``"self"``;
            all that the blanks inserted between repeats have under the first two.
        prior: Power of the labels' priors that the emissions are divided by before the loss aligns them itself
            (the head must track them).
        network_labels: Largest vocabulary that the network of ``"network"`` is for.
        entropy: :math:`\lambda`: ``"network"`` costs :math:`\lambda (1 - progress) (\log m - H(\beta))` nats, which
            keeps its weights near uniform early. With little of it the weight goes to the labels that are easy to
            recognise, and alignments are lost.
        regress: Do not train the network through the coupling: from ``self_after`` on it learns the weights that
            ``"self"`` would have, by their Kullback-Leibler divergence, which is added to the loss.
        path_after: Share of training from which frames are classified along the emissions' own best alignment,
            every frame with the same weight: no transport, and no OT weights, any more. Default: never.
        states: Ordered states of every label, as the head has them (:mod:`isotone_ottc.states`). A label's weight is
            divided evenly among its states, but for ``"self"``, which aligns the states.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        *,
        beta: Beta = "uniform",
        self_after: float = 0.3,
        smoothing: float = 0.5,
        prior: float = 0.0,
        network_labels: int = 256,
        entropy: float = 10.0,
        regress: bool = False,
        path_after: float | None = None,
        states: int = 1,
    ) -> None:
        super().__init__()
        if beta not in get_args(Beta):
            raise ValueError(f"OTTCLoss expects beta among {get_args(Beta)}; got {beta!r}.")
        if not smoothing > 0:
            raise ValueError(
                f"OTTCLoss expects smoothing above 0 frames (no label may weigh nothing); got {smoothing}."
            )
        if not (0 <= self_after <= 1 and (path_after is None or 0 <= path_after <= 1)):
            raise ValueError(
                "OTTCLoss expects self_after and path_after from 0 to 1, shares of training; "
                f"got {self_after} and {path_after}."
            )
        if not prior >= 0:
            raise ValueError(f"OTTCLoss expects prior >= 0, a power; got {prior}.")
        if network_labels < 1 or not entropy >= 0:
            raise ValueError(
                f"OTTCLoss expects network_labels >= 1 and entropy >= 0; got {network_labels} and {entropy}."
            )
        check_states("OTTCLoss", states)
        self.beta = beta
        self.self_after = self_after
        self.smoothing = smoothing
        self.prior = prior
        self.entropy = entropy
        self.regress = regress
        self.path_after = path_after
        self.states = states
        self.network = DurationNetwork(network_labels) if beta == "network" else None

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """The loss of each utterance ``(B,)``, nats; 0 where frames are fewer than labels, optional ones aside, or no
        labels.

        Raises:
            ValueError: the targets lack the durations or paths that ``beta`` asks for; the labels are too many for
                the network.
        """
        frames = emissions.lengths
        along_path = self.path_after is not None and self.progress >= self.path_after
        labels, lengths, origin, given = self._labels(emissions, targets)
        optional = spread_optional(targets.optional, origin, inserted=False) if given is None else None
        required, pauses = required_count(lengths, optional, labels.shape[1]), optional
        beta, extra = given, None
        if along_path or (self.beta == "self" and self.progress >= self.self_after):
            beta = None
        elif self.network is not None:
            beta, extra = self._guessed(self.network, emissions, labels, lengths, optional)
        elif given is None:
            beta = self._known(targets, origin, lengths, frames)
        if self.states > 1:
            size = label_count(emissions.logits.shape[-1], self.states)
            spelt = spell_states(labels, lengths, origin < 0, self.states, size)
            labels, lengths = spelt.labels, spelt.lengths
            beta = None if beta is None else spread_weights(beta, spelt.origin)
            pauses = None if optional is None else optional.gather(1, spelt.origin.clamp(min=0))
            optional = ~spelt.core if pauses is None else ~spelt.core | pauses
        if beta is None:
            smoothing = 0.0 if along_path else self.smoothing / self.states
            heard = emissions.without_prior(self.prior)
            beta = own_weights(heard, labels, lengths, smoothing, optional, pauses)
        if along_path or emissions.weight_logits is None:
            alpha = uniform_weights(frames, emissions.logits.shape[1])
        else:
            alpha = frame_weights(emissions.weight_logits, frames)
        value = ottc_loss(emissions.logits, alpha, labels, beta, frames, lengths, required)
        if extra is None:
            return value
        return value + torch.where((required > 0) & (required <= frames), extra, 0.0)

    def _labels(self, emissions: Emissions, targets: Targets) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Labels, lengths, the token each was (-1: a blank), and weights where the labels come with them."""
        if self.beta != "path":
            return *insert_blanks(targets.labels, targets.lengths, emissions.blank), None
        paths = _paths_of(targets, self.beta)
        labels, lengths, frames = labels_from_paths(paths, targets.labels, emissions.blank)
        carried = (labels != emissions.blank).long()
        return labels, lengths, torch.where(carried > 0, carried.cumsum(1) - 1, -1), frames

    def _known(self, targets: Targets, origin: Tensor, lengths: Tensor, frames: Tensor) -> Tensor:
        """Weights that need no emissions."""
        if self.beta == "durations":
            return token_weights(targets.durations, origin, lengths, frames, self.smoothing)
        if self.beta == "aligned":
            counted = path_frames(_paths_of(targets, self.beta), targets.labels.shape[1])
            return token_weights(counted, origin, lengths, frames, self.smoothing)
        return uniform_weights(lengths, origin.shape[1])

    def _guessed(
        self,
        network: DurationNetwork,
        emissions: Emissions,
        labels: Tensor,
        lengths: Tensor,
        optional: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """The network's weights, and what is added to the loss ``(B,)`` to train or to hold them."""
        if emissions.logits.shape[-1] > self.states * network.labels:
            raise ValueError(
                f"OTTCLoss(beta='network') expects at most {network.labels} labels; got "
                f"{emissions.logits.shape[-1] // self.states}. Raise network_labels."
            )
        beta = network(labels, lengths)
        uniform = uniform_weights(lengths, labels.shape[1])
        if not self.regress:
            # log m - H(beta)
            return beta, self.entropy * (1 - self.progress) * divergence(beta, uniform)
        if self.progress < self.self_after:
            return uniform, None
        whole = merge_states(emissions, self.states).without_prior(self.prior)
        own = own_weights(whole, labels, lengths, self.smoothing, optional, optional)
        return beta.detach(), divergence(own, beta)


def _paths_of(targets: Targets, beta: str) -> Tensor:
    if targets.paths is None:
        raise ValueError(
            f"OTTCLoss(beta={beta!r}) expects targets.paths, fixed alignments; got None. Give training a teacher, or "
            "shares of it at which to realign."
        )
    return targets.paths
