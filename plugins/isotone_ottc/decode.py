"""Decoding of OTTC emissions."""

from __future__ import annotations

import torch

from isotone.interfaces import Decoder
from isotone.kernels.paths import coupling_from_paths
from isotone.kernels.viterbi import segmental_decode
from isotone.types import Coupling, Emissions, Targets, length_mask
from isotone_ottc.sequences import collapse_frames
from isotone_ottc.states import check_states, merge_states


class GreedyOTTC(Decoder):
    """The most likely label of every frame with enough OT weight; repeats are merged and blanks removed.

    Args:
        min_alpha: Frames with an OT weight below ``min_alpha / n`` are left out before repeats are merged.
        states: Number of ordered states per label, as in the head; the scores of a label's states are added up.

    Raises:
        ValueError: ``min_alpha`` outside [0, 1), or ``states`` below 1.
    """

    def __init__(self, *, min_alpha: float = 0.0, states: int = 1) -> None:
        check_states("GreedyOTTC", states)
        if not 0 <= min_alpha < 1:
            raise ValueError(f"GreedyOTTC expects min_alpha in [0, 1), in units of 1 / n; got {min_alpha}.")
        self.min_alpha = min_alpha
        self.states = states

    @torch.no_grad()
    def __call__(self, emissions: Emissions) -> tuple[Targets, Coupling]:
        """Decode.

        Args:
            emissions: Logits ``(B, T, V)``; emissions without OT weights have uniform ones.

        Returns:
            The tokens, and a coupling of frames and tokens with mass 1 per frame. ``score`` is the log-probability in
            nats of the labels of the remaining frames.
        """
        emissions = merge_states(emissions, self.states)
        best, frame_labels = emissions.log_probs().max(-1)
        kept = length_mask(emissions.lengths, best.shape[1])
        if self.min_alpha > 0:
            kept &= emissions.weights() * emissions.lengths[:, None] >= self.min_alpha
        labels, counts, paths = collapse_frames(frame_labels, kept, emissions.blank)
        scores = torch.where(kept, best, 0.0).sum(1)
        return Targets(labels, counts), coupling_from_paths(paths, emissions.lengths, counts, scores)


class SegmentalDecoder(Decoder):
    """The best label sequence with a cost per change of label: greedy decoding without flicker.

    Args:
        change_penalty: Nats per change of label, at least 0; 0 is greedy decoding.
        min_frames: Fewest frames per segment.
        states: Number of ordered states per label, as in the head; the scores of a label's states are added up.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(self, *, change_penalty: float = 2.0, min_frames: int = 1, states: int = 1) -> None:
        check_states("SegmentalDecoder", states)
        if not change_penalty >= 0 or min_frames < 1:
            raise ValueError(
                "SegmentalDecoder expects change_penalty >= 0 and min_frames >= 1; "
                f"got {change_penalty} and {min_frames}."
            )
        self.change_penalty = change_penalty
        self.min_frames = min_frames
        self.states = states

    @torch.no_grad()
    def __call__(self, emissions: Emissions) -> tuple[Targets, Coupling]:
        """Decode.

        Args:
            emissions: Logits ``(B, T, V)``, on any device.

        Returns:
            The tokens, without blanks, and a coupling of frames and tokens with mass 1 per frame.

        Raises:
            AlignmentError: a row is not finite; the message names it.
        """
        emissions = merge_states(emissions, self.states)
        rows, paths = segmental_decode(
            emissions.log_probs(), emissions.lengths, self.change_penalty, emissions.blank, self.min_frames
        )
        targets = Targets.from_lists(rows).to(paths.device)
        return targets, coupling_from_paths(paths, emissions.lengths, targets.lengths)
