"""Greedy CTC decoding."""

from __future__ import annotations

from isotone.interfaces import Decoder
from isotone.kernels.paths import BlankRule, EdgeRule, check_blank_rules, coupling_from_paths, fill_blanks
from isotone.types import Coupling, Emissions, Targets, length_mask
from isotone_ctc.functional import collapse


class GreedyCTC(Decoder):
    """The most likely label of every frame; repeats are merged and blanks removed.

    Args:
        blanks: Rule for blank frames between tokens: ``"leave"``, ``"previous"`` or ``"split"``; see
            :func:`isotone.kernels.paths.fill_blanks`.
        edges: Rule for blanks before the first and after the last token, unless blanks are left: ``"fill"`` gives them
            to that token, ``"leave"`` keeps them blank.
    """

    def __init__(self, *, blanks: BlankRule = "leave", edges: EdgeRule = "fill") -> None:
        check_blank_rules(blanks, edges)
        self.blanks: BlankRule = blanks
        self.edges: EdgeRule = edges

    def __call__(self, emissions: Emissions) -> tuple[Targets, Coupling]:
        """Decode.

        Args:
            emissions: Logits ``(B, T, V)``.

        Returns:
            The tokens, and a coupling of frames and tokens with mass 1 per frame. ``score`` is the log-probability in
            nats of the path of most likely labels.
        """
        best, frame_labels = emissions.log_probs().detach().max(-1)
        labels, counts, paths = collapse(frame_labels, emissions.lengths, emissions.blank)
        valid = length_mask(emissions.lengths, best.shape[1])
        scores = best.masked_fill(~valid, 0.0).sum(1)
        paths = fill_blanks(paths, self.blanks, self.edges)
        return Targets(labels, counts), coupling_from_paths(paths, emissions.lengths, counts, scores)
