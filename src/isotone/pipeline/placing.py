"""Placement of texts in emissions: an aligner with stars, a guide, and errors that name the utterance."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner
from isotone.pipeline.edges import EDGE_COST, LEAST_GAIN, LOCAL_GAIN, choose_edges
from isotone.pipeline.lattices import lattices_of
from isotone.pipeline.rows import alignable
from isotone.pipeline.stars import starred, with_star
from isotone.pipeline.texts import TextToAlign, targets_of
from isotone.registry import BrokenPlugin
from isotone.tensors import torch
from isotone.types import NO_TOKEN, PAST_END, Coupling, Emissions, FramePath, Targets, length_mask

log = logging.getLogger(__name__)


#: Least duration in seconds of a phone of a given text, in whole frames, before boundaries are moved between frames.
#: Measured with TIMIT's hand labels (64 sentences; the joint model of the README, trained only on synthetic speech):
#: with it 68.4 % of the starts are within 20 ms, without it 65.4; within 50 ms 88.6 and 85.3. With it no phone is
#: shorter than 20 ms, without it 17 % are.
PHONE_S = 0.04

#: A guide is questioned: texts are aligned with this share of its weight first. What is then farther than FAR_S seconds
#: from its place in the guide has no guide: CTC takes a hesitation or a breath for a word as surely as it finds words.
#: A guide of half the weight everywhere loses as much in clean speech as it gains there.
LEANING, FAR_S = 0.5, 0.25


@dataclass(frozen=True)
class Placer:
    """An aligner for texts, with an optional guide.

    Attributes:
        times: Name of the head whose emissions are aligned.
        aligner: Their aligner.
        guide: Name of the head that gives the guide. Empty: none.
        guide_aligner: Aligner of the guide, where there is one.
    """

    times: str
    aligner: Aligner
    guide: str = ""
    guide_aligner: Aligner | None = None

    @property
    def heads(self) -> set[str]:
        """Names of the heads whose emissions are needed."""
        return {self.times, self.guide} - {""}

    @property
    def takes_graph(self) -> bool:
        """True where texts are aligned with all their readings: if every aligner takes graphs."""
        return self.aligner.takes_graph and (self.guide_aligner is None or self.guide_aligner.takes_graph)

    def where_aligned(
        self, emissions: Mapping[str, Emissions], texts: Sequence[TextToAlign]
    ) -> dict[str, Emissions]:
        """Move emissions to the CPU, unless every aligner of the texts runs on their device."""
        both = [a for a in (self.aligner, self.guide_aligner) if a is not None]
        graphs = self.takes_graph and any(any(text.transcript.graphs) for text in texts)
        if all(aligner.takes_device for aligner in both) and not graphs:
            return dict(emissions)
        return {head: e.to("cpu") for head, e in emissions.items()}

    def targets(self, texts: Sequence[TextToAlign]) -> tuple[list[TextToAlign], Targets]:
        """Return texts with the tokens that are aligned, those of all readings or of the likeliest, and targets."""
        return lattices_of(texts) if self.takes_graph else (list(texts), targets_of(texts))

    def __call__(
        self, ids: Sequence[str], emissions: Mapping[str, Emissions], targets: Targets, star_cost: float
    ) -> tuple[Targets, Coupling]:
        """Align texts.

        Args:
            ids: Utterance ids, for errors.
            emissions: Emissions by head, with those of the guide if there is one, from :meth:`where_aligned`.
            targets: ``(B, U)`` tokens, on any device; stars are -1.
            star_cost: See :func:`isotone.pipeline.stars.with_star`.

        Returns:
            The targets with their guide, and the coupling of the timing head's frames to them, on the device of the
            emissions.

        Raises:
            AlignmentError: a text cannot be aligned; the message names the utterance.
            BrokenPlugin: the aligner gives no coupling.
        """
        targets = targets.to(emissions[self.times].logits.device)
        targets = self.guided(ids, emissions, targets, star_cost)
        try:
            if targets.guide is not None:
                targets = self._questioned(emissions[self.times], targets, star_cost)
            coupling = self.aligner(*starred(emissions[self.times], targets, star_cost))
        except AlignmentError as error:
            if error.row is None:
                raise
            raise AlignmentError(error.reason, row=error.row, id=ids[error.row]) from error
        if not isinstance(coupling, Coupling):
            found = f"{type(self.aligner).__name__} gave a {type(coupling).__name__}"
            raise BrokenPlugin(f"The aligner is broken: {found}; expected isotone.types.Coupling.")
        return targets, coupling

    def patient(self, emissions: Mapping[str, Emissions]) -> Placer:
        """Copy the placer with phones of at least :data:`PHONE_S`, if the aligner supports a least duration."""
        frames = math.floor(PHONE_S / emissions[self.times].grid.hop_s + 1e-6)
        return replace(self, aligner=self.aligner.holding(frames))

    def with_edges(
        self,
        emissions: Mapping[str, Emissions],
        text: TextToAlign,
        reached: Mapping[str, float] | None = None,
    ) -> TextToAlign:
        """Put stars at those ends of one utterance's text where either head finds something else.

        The guide recognises music, the timing head noise in which the guide finds only blanks; see
        :data:`isotone.pipeline.edges.LEAST_GAIN`.

        Args:
            emissions: Emissions of the utterance by head.
            text: The text.
            reached: Scores in nats that alignments of this text have reached, by head.
        """
        local = LOCAL_GAIN if self.aligner.takes_guide else LEAST_GAIN
        guide = [] if self.guide_aligner is None else [(self.guide_aligner, self.guide, LEAST_GAIN)]
        made: dict[tuple[int, ...], Targets] = {}  # both aligners ask for the same edges

        def targets(edged: TextToAlign) -> Targets:
            tokens = edged.transcript.tokens
            if tokens not in made:
                made[tokens] = self.targets([edged])[1]
            return made[tokens]

        for aligner, head, gain in (*guide, (self.aligner, self.times, local)):
            starry = with_star(emissions[head], EDGE_COST)
            score = partial(_score, aligner, starry, targets)
            bounds = _bounds(aligner, emissions[head], starry, (reached or {}).get(head))
            edged = choose_edges(text, score, gain, *bounds)
            if edged != text:
                return edged
        return text

    def guided(
        self, ids: Sequence[str], emissions: Mapping[str, Emissions], targets: Targets, star_cost: float
    ) -> Targets:
        """Add the guide to targets, on the timing head's frames; texts that the guide cannot align get none."""
        if self.guide_aligner is None:
            return targets
        guide, timing, align = emissions[self.guide], emissions[self.times], self.guide_aligner

        def path(rows: list[int]) -> FramePath:
            coupling = align(*starred(guide.rows(rows), targets.rows(rows), star_cost))
            return coupling.path(guide.logits.shape[1])

        tokens = torch.full_like(guide.logits[:, :, 0], NO_TOKEN, dtype=torch.long)
        scores = torch.full_like(guide.logits[:, 0, 0], -math.inf)
        rows, found, errors = alignable(path, len(ids))
        if found is not None:
            tokens[rows] = found.tokens
            if found.score is not None:
                scores[rows] = found.score.to(scores)
        for row, error in errors.items():
            log.debug("%s: %s It has no guide.", ids[row], error.reason)
        return replace(targets, guide=on_grid(FramePath(tokens, scores), guide, timing))

    def _questioned(self, emissions: Emissions, targets: Targets, star_cost: float) -> Targets:
        """Leave out of the guide what is far from its place where the guide has less weight."""
        assert targets.guide is not None
        path, size = targets.guide.tokens, targets.labels.shape[1]
        spans = self.aligner.leaning(LEANING)(*starred(emissions, targets, star_cost)).spans()
        start, end = spans[..., 0], spans[..., 1]
        frames = torch.arange(path.shape[1], device=path.device).double()
        own = path.clamp(min=0)
        # of a token that the guide has in several frames the nearest counts
        away = torch.maximum(start.gather(1, own) - frames - 1, frames - end.gather(1, own))
        away = torch.where(path >= 0, away, math.inf)
        nearest = torch.full((len(path), size), math.inf, dtype=away.dtype, device=away.device)
        nearest.scatter_reduce_(1, own, away, "amin")
        placed = (end > start).gather(1, own) & (path >= 0)
        far = placed & (nearest.gather(1, own) > FAR_S / emissions.grid.hop_s)
        return replace(targets, guide=replace(targets.guide, tokens=torch.where(far, NO_TOKEN, path)))


def _score(
    aligner: Aligner, starry: Emissions, targets: Callable[[TextToAlign], Targets], text: TextToAlign
) -> float:
    """Compute the log-probability in nats of one text's best alignment; 0 where the aligner gives none.

    Emissions have a star even for texts without stars, so that both can be compared: a star takes a share of the
    probability.
    """
    numbered = targets(text).numbered(starry.logits.shape[2] - 1).to(starry.logits.device)
    score = aligner(starry, numbered).score
    return 0.0 if score is None else float(score[0])


def _bounds(
    aligner: Aligner, plain: Emissions, starry: Emissions, reached: float | None
) -> tuple[float, float]:
    """Return a score that one text reaches in emissions with a star, and one that none exceeds, where they are known.

    Args:
        aligner: Aligner of the text.
        plain, starry: Emissions of the utterance without the star's column, and with it.
        reached: A score of the text without the star, where one is known.
    """
    before, after = aligner.frame_scores(plain), aligner.frame_scores(starry)
    if before is None or after is None or reached is None:
        return -math.inf, math.inf
    frames = int(plain.lengths[0])
    # of the star, in every label's score
    share = (after[0, :frames, 0] - before[0, :frames, 0]).double().sum()
    return reached + float(share), float(after[0, :frames].amax(-1).double().sum())


def on_grid(path: FramePath, emissions: Emissions, timing: Emissions) -> FramePath:
    """Move a path from one head's frames to those of another that overlap them most."""
    moved = path.tokens.gather(1, emissions.frames_at(timing.grid, timing.logits.shape[1]))
    return replace(path, tokens=torch.where(length_mask(timing.lengths, moved.shape[1]), moved, PAST_END))
