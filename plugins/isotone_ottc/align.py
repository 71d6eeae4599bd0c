"""Forced alignment by Viterbi without blanks."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace

from isotone.interfaces import Aligner
from isotone.kernels.graphs import near_frames, with_fillers
from isotone.kernels.guide import near_labels
from isotone.kernels.paths import coupling_from_paths, subframe_coupling
from isotone.kernels.viterbi import fewest_frames, graph_path
from isotone.tensors import Tensor, no_grad, torch
from isotone.types import Coupling, Emissions, Targets
from isotone_ottc.sequences import insert_blanks, insert_silence, share_repeats
from isotone_ottc.states import check_states, label_count, spell_states
from isotone_ottc.weights import check_rows, paths_where, required_count, spread_optional


class SegmentalViterbi(Aligner):
    """The best alignment without CTC's blanks: every token has the frames from its start to that of the next.

    Args:
        silence: Label that may stand before, between and after the tokens, where it scores better; it may be the
            blank. Default: none. Then tokens share all frames, except for a blank between equal neighbours.
        min_frames: Fewest frames per token; with ``states``, per state that the token visits.
        subframe: Place boundaries between frames too, see :func:`isotone.kernels.paths.subframe_coupling`.
        prior: Power of the label priors that the emissions are divided by (the head must track them).
        states: Number of ordered states per label, as in the head (:mod:`isotone_ottc.states`). Tokens with fewer
            frames than states leave states out. Equal neighbours are separated by their states.
        guide_cost: Nats per frame of a token outside of the frames that ``targets.guide`` allows it, if there is a
            guide (:func:`isotone.kernels.guide.near_labels`). 0: guides are ignored.

    Raises:
        ValueError: an option outside its range.
    """

    skips_optional = True
    takes_device = True
    takes_arrays = True

    def __init__(
        self,
        *,
        silence: int | None = None,
        min_frames: int = 1,
        subframe: bool = False,
        prior: float = 0.0,
        states: int = 1,
        guide_cost: float = 2.0,
    ) -> None:
        check_states("SegmentalViterbi", states)
        if min_frames < 1 or not prior >= 0 or not 0 <= guide_cost < math.inf:
            raise ValueError(
                "SegmentalViterbi expects min_frames >= 1, prior >= 0 and a finite guide_cost >= 0; "
                f"got {min_frames}, {prior} and {guide_cost}."
            )
        self.silence = silence
        self.min_frames = self.held_frames = min_frames
        self.subframe = subframe
        self.prior = prior
        self.states = states
        self.guide_cost = guide_cost
        self.takes_guide = guide_cost > 0
        self.takes_graph = states == 1

    def holding(self, frames: int) -> SegmentalViterbi:
        """Copy the aligner with tokens of at least ``frames`` frames, in rows that are long enough for it.

        With ``states`` above 1 the copy aligns as this one: states already give tokens a length.
        """
        held = copy(self)
        held.held_frames = max(self.min_frames, frames if self.states == 1 else 1)
        return held

    def leaning(self, share: float) -> SegmentalViterbi:
        """Copy the aligner with another cost of frames that the guide does not allow."""
        leant = copy(self)
        leant.guide_cost = share * self.guide_cost
        return leant

    def frame_scores(self, emissions: Emissions) -> Tensor:
        """See :meth:`isotone.interfaces.Aligner.frame_scores`."""
        return emissions.without_prior(self.prior).log_probs()

    @no_grad
    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        """Align.

        Args:
            emissions: Logits ``(B, T, V)``, on any device.
            targets: Labels ``(B, U)`` without blanks.

        Returns:
            A coupling of frames and tokens, mass 1 per frame. ``score`` is the path's log-probability in nats,
            silence included, minus the guide's cost. A row without tokens has an empty coupling.

        Raises:
            AlignmentError: a row has fewer frames than its tokens need, or is not finite; the message names it.
            ValueError: there is no label of the silence's number.
        """
        labels, blank = targets.labels, emissions.blank
        emissions = emissions.without_prior(self.prior)
        if self.silence is not None and not 0 <= self.silence < emissions.logits.shape[2]:
            raise ValueError(
                f"SegmentalViterbi expects silence from 0 to {emissions.logits.shape[2] - 1}; "
                f"got {self.silence}."
            )
        if targets.graph is not None and self.takes_graph:
            return self._along_graph(emissions, targets)
        if self.silence is None:
            labels, lengths, origin = insert_blanks(labels, targets.lengths, blank)
        else:
            labels, lengths, origin = insert_silence(labels, targets.lengths, blank, self.silence)
        optional = spread_optional(targets.optional, origin, inserted=True)
        assert optional is not None  # inserted labels may be left out
        if self.states > 1:
            size = label_count(emissions.logits.shape[2], self.states)
            spelt = spell_states(labels, lengths, origin < 0, self.states, size)
            # from state to label to token: origin of a state is that of its label
            labels, lengths, position = spelt.labels, spelt.lengths, spelt.origin.clamp(min=0)
            optional = ~spelt.core | optional.gather(1, position)
            origin = torch.where(spelt.origin >= 0, origin.gather(1, position), -1)
        required = required_count(lengths, optional, labels.shape[1])
        check_rows(emissions, required * self.min_frames)
        near = None
        if targets.guide is not None and self.takes_guide:
            near = near_labels(targets.guide, targets.labels.shape[1], origin)
        # two searches: rows too short for held_frames per token have min_frames
        spoken = targets.lengths > 0
        long = spoken & (required * self.held_frames <= emissions.lengths)
        rows = emissions.log_probs(), labels, emissions.lengths, lengths, optional
        paths, scores = paths_where(spoken & ~long, *rows, self.min_frames, near, self.guide_cost)
        if bool(long.any()):
            held, held_scores = paths_where(long, *rows, self.held_frames, near, self.guide_cost)
            paths, scores = torch.where(long[:, None], held, paths), torch.where(long, held_scores, scores)
        # inserted blanks and silences carry no token
        tokens = torch.where(paths >= 0, origin.gather(1, paths.clamp(min=0)), paths)
        if self.states == 1:
            return self._couple(
                share_repeats(tokens, targets.labels), targets.labels, emissions, targets, scores
            )
        # boundaries are placed between states; summing over a token's states removes those inside it
        coupling = self._couple(torch.where(tokens < 0, tokens, paths), labels, emissions, targets, scores)
        return replace(coupling, target=origin.gather(1, coupling.target).clamp(min=0))

    def _along_graph(self, emissions: Emissions, targets: Targets) -> Coupling:
        """Align along the best path through the graph of the targets."""
        if self.silence is None:
            filled = with_fillers(targets, emissions.blank, "repeats")
        else:
            filled = with_fillers(targets, self.silence, "all")
        hop_s = emissions.grid.hop_s
        fewest, held = filled.least(self.min_frames, hop_s), filled.least(self.held_frames, hop_s)
        check_rows(emissions, fewest_frames(filled.arcs, filled.lengths, fewest))
        long = fewest_frames(filled.arcs, filled.lengths, held) <= emissions.lengths
        least, most = torch.where(long[:, None], held, fewest), filled.most(hop_s)
        near = None
        if targets.guide is not None and self.takes_guide:
            near = near_frames(targets.guide, filled)
        paths, scores = graph_path(
            emissions.log_probs(), filled.labels, torch.where(filled.lengths > 0, emissions.lengths, 0),
            filled.lengths, filled.arcs, least, torch.where(most > 0, most.maximum(least), 0), near,
            self.guide_cost,
        )  # fmt: skip
        paths = share_repeats(filled.tokens(paths), targets.labels)
        return self._couple(paths, targets.labels, emissions, targets, scores)

    def _couple(
        self, paths: Tensor, labels: Tensor, emissions: Emissions, targets: Targets, scores: Tensor
    ) -> Coupling:
        """Couple frames along paths through ``labels``, which are label or state numbers."""
        sizes = emissions.lengths, targets.lengths
        if self.subframe:
            return subframe_coupling(paths, emissions.logits, labels, *sizes, scores)
        return coupling_from_paths(paths, *sizes, scores)
