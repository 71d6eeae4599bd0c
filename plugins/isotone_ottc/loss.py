"""The OTTC loss and its choices of label weights."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from isotone.interfaces import Loss
from isotone.kernels.coupling import frame_weights
from isotone.types import Emissions, Targets
from isotone_ottc.durations import DurationNetwork
from isotone_ottc.functional import ottc_loss
from isotone_ottc.label_weights import Durations, LabelWeights, Network, Own, Path, Uniform, aligned_frames
from isotone_ottc.states import check_states
from isotone_ottc.weights import uniform_weights

Beta = Literal["uniform", "durations", "path", "aligned", "self", "network"]


class OTTCLoss(Loss):
    r"""Optimal Temporal Transport Classification: cross-entropy along one learned alignment.

    Args:
        beta: The label weights. ``"uniform"``: 1 / m, as in the paper. ``"durations"``: from ``targets.durations``.
            ``"path"``: the labels of ``targets.paths``, blanks included, each weighted by its frames (the paper's
            oracle). ``"aligned"``: the frames of each token in ``targets.paths``, uniform without a path.
            ``"self"``: uniform at first, then the frames of each label in the emissions' own best alignment without
            blanks; it has no gradient. ``"network"``: predicted from the labels by a small network, which is a part of
            the loss, not of the model. It is trained with the rest, through the coupling.
        self_after: Share of training after which ``"self"`` leaves uniform weights.
        smoothing: Frames given to every label beyond its own, for ``"durations"``, ``"aligned"`` and ``"self"``. Under
            the first two, blanks inserted between repeats have no others.
        prior: Power of the label priors that the emissions are divided by before the loss aligns them itself (the
            head must track them).
        network_labels: Largest vocabulary of the network of ``"network"``.
        entropy: :math:`\lambda`: ``"network"`` adds :math:`\lambda (1 - progress) (\log m - H(\beta))` nats, which
            keeps its weights near uniform early in training. With a small one, labels that are easy to recognise get
            all the weight, and alignments fail.
        regress: Train the network not through the coupling, but on the weights of ``"self"``, from ``self_after`` on.
            Their Kullback-Leibler divergence is added to the loss.
        path_after: Share of training from which the loss is cross-entropy along the emissions' own best alignment.
            Every frame has the same weight, without transport and OT weights. Default: never.
        states: Number of ordered states per label, as in the head (:mod:`isotone_ottc.states`). A label's weight is
            divided evenly among its states, except with ``"self"``, which aligns the states.

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
        self.smoothing = smoothing
        self.prior = prior
        self.path_after = path_after
        self.states = states
        self.network = DurationNetwork(network_labels) if beta == "network" else None
        self.label_weights: LabelWeights
        if self.network is not None:
            self.label_weights = Network(self.network, states, entropy, regress, self_after, smoothing, prior)
        else:
            self.label_weights = {
                "uniform": Uniform(),
                "durations": Durations(smoothing),
                "aligned": Durations(smoothing, aligned_frames),
                "path": Path(),
                "self": Own(self_after),
            }[beta]

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        """Compute the loss of each utterance ``(B,)``, nats.

        It is 0 without labels, or with fewer frames than labels that are not optional.

        Raises:
            ValueError: the targets lack the durations or paths that ``beta`` needs, or the vocabulary is too large for
                the network.
        """
        frames = emissions.lengths
        along_path = self.path_after is not None and self.progress >= self.path_after
        labels = self.label_weights.labels(targets, emissions.blank)
        required = labels.required  # of labels: a token needs one frame, not one per state
        beta, extra = None, None
        if not along_path:
            beta, extra = self.label_weights(labels, emissions, targets, self.progress)
        labels, beta = labels.spelt(self.states, emissions.logits.shape[-1], beta)
        if beta is None:
            # along the path every frame weighs the same: nothing is added to the labels' own frames
            smoothing = 0.0 if along_path else self.smoothing / self.states
            beta = labels.own_weights(emissions.without_prior(self.prior), smoothing)
        if along_path or emissions.weight_logits is None:
            alpha = uniform_weights(frames, emissions.logits.shape[1])
        else:
            alpha = frame_weights(emissions.weight_logits, frames)
        value = ottc_loss(emissions.logits, alpha, labels.labels, beta, frames, labels.lengths, required)
        if extra is None:
            return value
        return value + torch.where((required > 0) & (required <= frames), extra, 0.0)
