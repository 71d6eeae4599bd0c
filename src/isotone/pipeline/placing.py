"""An aligner on what a model hears: with stars, with a guide, and with errors that name the utterance."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner
from isotone.pipeline import stars
from isotone.pipeline.edges import EDGE_COST, LEAST_GAIN, LOCAL_GAIN, Asked, choose_edges
from isotone.pipeline.scores import rows_of
from isotone.types import Coupling, Emissions, Targets, length_mask, marks

log = logging.getLogger(__name__)


#: Seconds that a phone of a given text lasts at least, in whole frames, before boundaries are moved between frames. By
#: TIMIT's hand labels (64 sentences; the joint model of the README, which heard synthetic speech alone) 68.4 % of the
#: starts are within 20 ms with it and 65.4 without, 88.6 and 85.3 within 50 ms, and no phone is shorter than 20 ms,
#: where 17 % were.
PHONE_S = 0.04


@dataclass(frozen=True)
class Placer:
    """Where an aligner places texts.

    Attributes:
        times: Head the times are read from.
        aligner: What places its tokens.
        guide: Head that says where, about, each token is. Empty: none.
        guide_aligner: What places tokens by that head, where there is one.
    """

    times: str
    aligner: Aligner
    guide: str = ""
    guide_aligner: Aligner | None = None

    def __call__(
        self, ids: Sequence[str], heard: Mapping[str, Emissions], targets: Targets, star_cost: float
    ) -> tuple[Targets, Coupling]:
        """The targets with their guide, and the coupling of the timing head's frames to them.

        Args:
            ids: Utterance ids, for errors.
            heard: Emissions by head, the guide's among them where there is one.
            targets: ``(B, U)`` tokens; stars are -1.
            star_cost: See :func:`isotone.pipeline.stars.with_star`.

        Raises:
            AlignmentError: a text cannot be placed; the message names the utterance.
        """
        targets = self.guided(ids, heard, targets, star_cost)
        return targets, run_aligner(self.aligner, ids, heard[self.times], targets, star_cost)

    def patient(self, heard: Mapping[str, Emissions]) -> Placer:
        """The same, but that phones last :data:`PHONE_S` where the aligner can see to that."""
        if not hasattr(self.aligner, "holding"):
            return self
        frames = math.floor(PHONE_S / heard[self.times].grid.hop_s + 1e-6)
        return replace(self, aligner=self.aligner.holding(frames))

    def with_edges(self, heard: Mapping[str, Emissions], asked: Asked) -> Asked:
        """The text of one utterance with stars at those ends that need one, by what either head hears.

        The guide hears music, and the timing head the noise in which the guide hears nothing; see
        :data:`isotone.pipeline.edges.LEAST_GAIN`.
        """
        if self.guide_aligner is not None:
            edged = choose_edges(
                asked, partial(self._score, self.guide_aligner, heard[self.guide]), LEAST_GAIN
            )
            if edged != asked:
                return edged
        gain = LOCAL_GAIN if hasattr(self.aligner, "takes_guide") else LEAST_GAIN
        return choose_edges(asked, partial(self._score, self.aligner, heard[self.times]), gain)

    @staticmethod
    def _score(aligner: Aligner, emissions: Emissions, asked: Asked) -> float:
        """Nats of the best alignment, by emissions that have a star whether the text has or not.

        So texts with stars and without can be compared: a star is one label more that shares the probability.
        Alignments of aligners that do not score them are all as good, 0.
        """
        score = _starred(aligner, emissions, targets_of([asked]), EDGE_COST).score
        return 0.0 if score is None else float(score[0])

    def guided(
        self, ids: Sequence[str], heard: Mapping[str, Emissions], targets: Targets, star_cost: float
    ) -> Targets:
        """The targets with what the guide hears, on the frames of the timing head; a text it cannot place is let be."""
        if self.guide_aligner is None:
            return targets
        emissions, timing = heard[self.guide], heard[self.times]
        tokens = torch.full_like(emissions.logits[:, :, 0], -1, dtype=torch.long)
        for i, name in enumerate(ids):
            one = slice(i, i + 1)
            row, wanted = rows_of(emissions, one), rows_of(targets, one)
            try:
                placed = run_aligner(self.guide_aligner, [name], row, wanted, star_cost).hard()
            except AlignmentError as error:
                log.debug("%s It has no guide.", error)
                continue
            kept = placed.mass[0] > 0
            tokens[i, placed.source[0, kept]] = placed.target[0, kept]
        return replace(targets, guide=on_grid(tokens, emissions, timing))


def run_aligner(
    aligner: Aligner, ids: Sequence[str], emissions: Emissions, targets: Targets, star_cost: float
) -> Coupling:
    """The aligner's coupling; arguments and errors as in :class:`Placer`."""
    try:
        if bool((targets.labels == stars.STAR_NUMBER).any()):
            return _starred(aligner, emissions, targets, star_cost)
        return aligner(emissions, targets)
    except AlignmentError as error:
        if len(ids) == 1:
            raise AlignmentError(f"{ids[0]}: {str(error).removeprefix('Row 0: ')}") from error
        for i, name in enumerate(ids):  # one at a time, to say which it is
            one = slice(i, i + 1)
            run_aligner(aligner, [name], rows_of(emissions, one), rows_of(targets, one), star_cost)
        raise


def _starred(aligner: Aligner, emissions: Emissions, targets: Targets, star_cost: float) -> Coupling:
    wanted = stars.numbered(targets, emissions.logits.shape[2])
    return aligner(stars.with_star(emissions, star_cost), wanted)


def on_grid(tokens: Tensor, heard: Emissions, timing: Emissions) -> Tensor:
    """Tokens of one head's frames on those of another, which overlap them most: ``(B, T)``, -2 past the end."""
    times = timing.grid.offset_s + (torch.arange(timing.logits.shape[1]) + 0.5) * timing.grid.hop_s
    frames = ((times - heard.grid.offset_s) / heard.grid.hop_s).floor().long().expand(len(tokens), -1)
    moved = tokens.gather(1, frames.clamp(min=0).minimum(heard.lengths[:, None] - 1).clamp(min=0))
    return torch.where(length_mask(timing.lengths, moved.shape[1]), moved, -2)


def targets_of(asked: Sequence[Asked]) -> Targets:
    """Transcripts, and which of their tokens may be skipped, as a batch."""
    targets = Targets.from_lists([list(t.tokens) for t, _ in asked])
    return replace(targets, optional=marks([flags for _, flags in asked], targets.labels))
