"""The choices of label weights that the OTTC loss has, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from isotone.types import Emissions, FramePath, Targets
from isotone_ottc.durations import DurationNetwork, divergence
from isotone_ottc.sequences import insert_blanks, labels_from_paths
from isotone_ottc.states import label_count, merge_states, spell_states
from isotone_ottc.weights import (
    own_weights,
    path_frames,
    required_count,
    spread_optional,
    spread_weights,
    token_weights,
    uniform_weights,
)


@dataclass(frozen=True)
class Labels:
    """Label sequences with blanks between repeats.

    Attributes:
        labels: ``(B, m)`` int64.
        lengths: ``(B,)`` int64.
        origin: ``(B, m)`` int64, each label's token index, -1 for blanks.
        optional: ``(B, m)`` bool, labels that an alignment may leave out. None: none.
        pauses: ``(B, m)`` bool, optional labels with no weight where the alignment leaves them out. None: none.
        weights: ``(B, m)`` frames of each label, if they come from a path (``beta: path``).
    """

    labels: Tensor
    lengths: Tensor
    origin: Tensor
    optional: Tensor | None = None
    pauses: Tensor | None = None
    weights: Tensor | None = None

    @property
    def required(self) -> Tensor:
        """Number of labels that an alignment must have, ``(B,)``."""
        return required_count(self.lengths, self.optional, self.labels.shape[1])

    def spelt(self, states: int, scores: int, beta: Tensor | None) -> tuple[Labels, Tensor | None]:
        """Replace every label by its states, and divide its weight evenly among them.

        Args:
            states: S.
            scores: Scores per frame, S V.
            beta: ``(B, m)`` label weights; None: not known yet.
        """
        if states == 1:
            return self, beta
        size = label_count(scores, states)
        spelt = spell_states(self.labels, self.lengths, self.origin < 0, states, size)
        pauses = None if self.optional is None else self.optional.gather(1, spelt.origin.clamp(min=0))
        optional = ~spelt.core if pauses is None else ~spelt.core | pauses
        labels = replace(self, labels=spelt.labels, lengths=spelt.lengths, optional=optional, pauses=pauses)
        return labels, None if beta is None else spread_weights(beta, spelt.origin)

    def own_weights(self, emissions: Emissions, smoothing: float) -> Tensor:
        """Compute weights ``(B, m)`` by :func:`isotone_ottc.weights.own_weights`."""
        return own_weights(emissions, self.labels, self.lengths, smoothing, self.optional, self.pauses)


class LabelWeights(ABC):
    """One choice of label weights."""

    def labels(self, targets: Targets, blank: int) -> Labels:
        """Return the label sequences of targets."""
        labels, lengths, origin = insert_blanks(targets.labels, targets.lengths, blank)
        optional = spread_optional(targets.optional, origin, inserted=False)
        return Labels(labels, lengths, origin, optional, optional)

    @abstractmethod
    def __call__(
        self, labels: Labels, emissions: Emissions, targets: Targets, progress: float
    ) -> tuple[Tensor | None, Tensor | None]:
        """Weigh labels.

        Returns:
            Weights ``(B, m)``, None where the loss must use the emissions' own alignment; and a term to add to the
            loss ``(B,)``, nats, or None.
        """


class Uniform(LabelWeights):
    """The same weight for each of m labels: 1 / m."""

    def __call__(
        self, labels: Labels, emissions: Emissions, targets: Targets, progress: float
    ) -> tuple[Tensor | None, Tensor | None]:
        """Weigh labels."""
        return uniform_weights(labels.lengths, labels.labels.shape[1]), None


@dataclass(frozen=True)
class Durations(LabelWeights):
    """The durations of the targets.

    Attributes:
        smoothing: Frames given to every label beyond its own.
        frames: Durations ``(B, U)`` of the tokens of targets.
    """

    smoothing: float
    frames: Callable[[Targets], Tensor | None] = lambda targets: targets.durations

    def __call__(
        self, labels: Labels, emissions: Emissions, targets: Targets, progress: float
    ) -> tuple[Tensor | None, Tensor | None]:
        """Weigh labels."""
        frames = self.frames(targets)
        return token_weights(frames, labels.origin, labels.lengths, emissions.lengths, self.smoothing), None


def aligned_frames(targets: Targets) -> Tensor:
    """Count the frames of every token in the targets' fixed paths: ``(B, U)``."""
    return path_frames(paths_of(targets, "aligned").tokens, targets.labels.shape[1])


class Path(LabelWeights):
    """The labels of fixed paths, blanks included, weighted by their frames (the paper's oracle)."""

    def labels(self, targets: Targets, blank: int) -> Labels:
        """Return the label sequences of the paths, with their weights."""
        tokens = paths_of(targets, "path").tokens
        labels, lengths, frames = labels_from_paths(tokens, targets.labels, blank)
        carried = (labels != blank).long()
        origin = torch.where(carried > 0, carried.cumsum(1) - 1, -1)
        return Labels(labels, lengths, origin, weights=frames)

    def __call__(
        self, labels: Labels, emissions: Emissions, targets: Targets, progress: float
    ) -> tuple[Tensor | None, Tensor | None]:
        """Weigh labels."""
        return labels.weights, None


@dataclass(frozen=True)
class Own(Uniform):
    """Uniform at first; then the emissions' own alignment.

    Attributes:
        after: Share of training after which the alignment is used.
    """

    after: float

    def __call__(
        self, labels: Labels, emissions: Emissions, targets: Targets, progress: float
    ) -> tuple[Tensor | None, Tensor | None]:
        """Weigh labels."""
        if progress >= self.after:
            return None, None
        return super().__call__(labels, emissions, targets, progress)


@dataclass(frozen=True)
class Network(LabelWeights):
    """Weights that a small network predicts from the labels.

    Attributes:
        network: The network, a part of the loss.
        states: States per label in the emissions.
        entropy, regress, after, smoothing, prior: As in :class:`isotone_ottc.loss.OTTCLoss`.
    """

    network: DurationNetwork
    states: int
    entropy: float
    regress: bool
    after: float
    smoothing: float
    prior: float

    def __call__(
        self, labels: Labels, emissions: Emissions, targets: Targets, progress: float
    ) -> tuple[Tensor | None, Tensor | None]:
        """Weigh labels; the added term trains the network (``regress``), or keeps its weights near uniform.

        Raises:
            ValueError: the vocabulary is larger than the network's.
        """
        if emissions.logits.shape[-1] > self.states * self.network.labels:
            raise ValueError(
                f"OTTCLoss(beta='network') expects at most {self.network.labels} labels; got "
                f"{emissions.logits.shape[-1] // self.states}. Raise network_labels."
            )
        beta = self.network(labels.labels, labels.lengths)
        uniform = uniform_weights(labels.lengths, labels.labels.shape[1])
        if not self.regress:
            # log m - H(beta)
            return beta, self.entropy * (1 - progress) * divergence(beta, uniform)
        if progress < self.after:
            return uniform, None
        # detached: the network learns by the divergence alone
        merged = merge_states(emissions, self.states).without_prior(self.prior)
        return beta.detach(), divergence(labels.own_weights(merged, self.smoothing), beta)


def paths_of(targets: Targets, beta: str) -> FramePath:
    """Return the fixed paths of targets.

    Raises:
        ValueError: the targets have no paths.
    """
    if targets.paths is None:
        raise ValueError(
            f"OTTCLoss(beta={beta!r}) expects targets.paths, fixed alignments; got None. Give training a teacher, or "
            "shares of it at which to realign."
        )
    return targets.paths
