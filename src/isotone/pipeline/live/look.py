"""One look at the end of a stream: the alignment of its open part with the next words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import Segment
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.hush import hushed
from isotone.pipeline.lattices import chosen
from isotone.pipeline.live.ahead import Ahead, Part, Words
from isotone.pipeline.passage_words import later, within
from isotone.pipeline.placing import Placer
from isotone.pipeline.result import Result, results
from isotone.pipeline.stars import with_star
from isotone.types import Coupling, Emissions, Targets

#: Cost in nats per frame of other speech (:data:`isotone.pipeline.stars.STAR_COST`). It is low, so that words of the
#: text are not put into other speech; :data:`STRAY_GAIN` keeps it out of speech that follows the text.
STRAY_COST = 1.5

#: Least gains in nats of leaving words out, or of other speech, before it is believed: of the timing head, and of its
#: guide where there is one. Both have to gain as much.
STRAY_GAIN, STRAY_GUIDE_GAIN = 60.0, 30.0

#: The targets of a part, with their guide, and the frames of its tokens.
Aligned = tuple[Targets, Coupling]

#: Words that are looked at, and where the reader strays.
_AHEAD, _AHEAD_ASTRAY = 20, 40


@dataclass(frozen=True)
class Heard:
    """A word in the open part.

    Attributes:
        number: Its number in the text.
        word: Times in the stream.
        units: Its phones, or other tokens.
        closed: Something follows it in the open part: the next word, a pause, other speech.
    """

    number: int
    word: Segment
    units: tuple[Segment, ...]
    closed: bool


class Looker:
    """Alignment of open parts with the next words of a text.

    Args:
        words: The text.

    Attributes:
        strays: True where the reader was heard to stray from the text in the last look that decided.
    """

    def __init__(self, words: Words) -> None:
        self.words = words
        self.strays = False
        self._kept: dict[tuple[bool, bool], tuple[Part, Ahead]] = {}

    def __call__(
        self,
        emissions: Mapping[str, Emissions],
        samples: NDArray[np.float32],
        start_s: float,
        first: int,
        *,
        begun: bool,
        ends: bool,
        keen: bool,
        decides: bool,
    ) -> list[Heard]:
        """Align.

        Args:
            emissions: Emissions of the open part by head, on the CPU.
            samples: ``(N,)`` of the open part, at the model's rate.
            start_s: Time of its beginning in the stream.
            first: Number of the first word that may be in it.
            begun, ends, keen: See :class:`isotone.pipeline.live.ahead.Part`.
            decides: Decide anew if the reader strays.

        Returns:
            The words in it, in order, without those that are left out.
        """
        pipeline = self.words.pipeline
        emissions = hushed(emissions, [samples], pipeline.model)
        starred = {head: with_star(e, STRAY_COST) for head, e in emissions.items()}
        placer = pipeline.placer_of(emissions)
        last = min(len(self.words), first + (_AHEAD_ASTRAY if self.strays else _AHEAD))
        aligned = partial(self._aligned, placer, starred)
        kept_to = Part(first, last, begun, ends, False, keen)
        if decides:
            self.strays = _strays(aligned, kept_to)
        # unread tokens cost nothing to a reader who strays
        part = replace(kept_to, strays=True, keen=False) if self.strays else kept_to
        return _heard(
            pipeline, emissions[pipeline.times], samples, self._ahead(part), *aligned(part), start_s
        )

    def _aligned(self, placer: Placer, starred: Mapping[str, Emissions], part: Part) -> Aligned:
        """Align a part with emissions that have a star, though it may have none, so that scores can be compared.

        The cost of unread tokens chooses the alignment, but it is not in the scores.
        """
        size = next(iter(starred.values())).logits.shape[2] - 1
        found = placer([""], starred, self._ahead(part).targets.numbered(size), 0.0)
        return _without_unread(*found) if part.keen else found

    def _ahead(self, part: Part) -> Ahead:
        """Return the graph of a part, the last one if it is the same."""
        kind = part.strays, part.keen
        kept = self._kept.get(kind)
        if kept is None or kept[0] != part:
            kept = self._kept[kind] = part, self.words.ahead(part)
        return kept[1]


def _without_unread(targets: Targets, coupling: Coupling) -> Aligned:
    """Take the cost of the tokens after the end of an alignment out of its scores."""
    graph, guide = targets.graph, targets.guide
    if graph is None or coupling.score is None:
        return targets, coupling
    ways = graph.ways(0, int(targets.lengths[0]))
    cost = dict(ways[-1])[int(coupling.target[coupling.mass > 0].max())]
    if guide is not None and guide.score is not None:
        targets = replace(targets, guide=replace(guide, score=guide.score + cost))
    return targets, replace(coupling, score=coupling.score + cost)


def _strays(aligned: Callable[[Part], Aligned], kept_to: Part) -> bool:
    """Decide if the reader strays from the text.

    It is believed if leaving words out, or other speech, fits the audio better by enough, both where unread tokens cost
    nothing and where they cost something, if they do. Where they cost nothing, a text that fits badly stays behind, and
    then a star gains much. The cost itself is not compared: words that are left out lead to the end of the text, where
    nothing is unread, so it would speak for straying wherever much of the text is to come.

    Args:
        aligned: Alignment of a part.
        kept_to: The part for a reader who keeps to the text.
    """
    for keen in sorted({False, kept_to.keen}):
        part = replace(kept_to, keen=keen)
        plain, stray = (_reached(*aligned(one)) for one in (part, replace(part, strays=True)))
        if not all(b > a + gain for a, b, gain in zip(plain, stray, (STRAY_GAIN, STRAY_GUIDE_GAIN))):
            return False
    return True


def _reached(targets: Targets, coupling: Coupling) -> list[float]:
    """List the scores in nats of an alignment by the timing head, and by its guide if there is one."""
    scores = [coupling.score, getattr(targets.guide, "score", None)]
    return [float(score[0]) for score in scores if score is not None]


def _heard(
    pipeline: ForcedPipeline,
    timing: Emissions,
    samples: NDArray[np.float32],
    part: Ahead,
    targets: Targets,
    coupling: Coupling,
    start_s: float,
) -> list[Heard]:
    """List the words of the text that an alignment has."""
    texts, targets, coupling = chosen([part.text], targets, coupling)
    seconds = timing.grid.seconds(int(timing.lengths[0]))
    result = results(
        [""], [seconds], [""], [texts[0].transcript], pipeline.model.tokenizer, timing, targets, coupling,
        pipeline.star_cost, pipeline.closures, pipeline.movers_of([samples]),
    )[0]  # fmt: skip
    return [*_words(result, part, start_s)]


def _words(result: Result, part: Ahead, start_s: float) -> list[Heard]:
    words, units = (tier.segments for tier in result.alignment.tiers)
    found = []
    for place, (number, word) in enumerate(zip(result.words, words)):
        if number < part.count:
            closed = place + 1 < len(words) or word.end < result.alignment.duration - 1e-6
            own = tuple(later(unit, start_s) for unit in units if within(unit, word))
            found.append(Heard(part.first + number, later(word, start_s), own, closed))
    return found
