"""One look at the end of a stream: the alignment of its open part with the next words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import Segment
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.lattices import chosen
from isotone.pipeline.live.ahead import Ahead, Part, Words
from isotone.pipeline.passage_words import within
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
        strays: True where the reader was heard to stray from the text in the last look.
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
    ) -> list[Heard]:
        """Align.

        Args:
            emissions: Emissions of the open part by head, on the CPU.
            samples: ``(N,)`` of the open part, at the model's rate.
            start_s: Time of its beginning in the stream.
            first: Number of the first word that may be in it.
            begun, ends, keen: See :class:`isotone.pipeline.live.ahead.Part`.

        Returns:
            The words in it, in order, without those that are left out.
        """
        pipeline = self.words.pipeline
        starred = {head: with_star(e, STRAY_COST) for head, e in emissions.items()}
        placer = pipeline.placer_of(emissions)
        last = min(len(self.words), first + (_AHEAD_ASTRAY if self.strays else _AHEAD))
        parts = [self._ahead(Part(first, last, begun, ends, strays)) for strays in (False, True)]
        both = [_placed(placer, starred, part) for part in parts]
        plain, stray = (_reached(*placed) for placed in both)
        least = (STRAY_GAIN, STRAY_GUIDE_GAIN)
        self.strays = all(b > a + gain for a, b, gain in zip(plain, stray, least))
        part, placed = parts[self.strays], both[self.strays]
        if keen and not self.strays:
            part = self._ahead(Part(first, last, begun, ends, False, True))
            placed = _placed(placer, starred, part)
        return _heard(pipeline, emissions[pipeline.times], samples, part, *placed, start_s)

    def _ahead(self, part: Part) -> Ahead:
        """Return the graph of a part, the last one if it is the same."""
        kind = part.strays, part.keen
        kept = self._kept.get(kind)
        if kept is None or kept[0] != part:
            kept = self._kept[kind] = part, self.words.ahead(part)
        return kept[1]


def _placed(placer: Placer, starred: Mapping[str, Emissions], part: Ahead) -> tuple[Targets, Coupling]:
    """Align a part with emissions that have a star, whether it has stars or not: so that scores can be compared."""
    size = next(iter(starred.values())).logits.shape[2] - 1
    return placer([""], starred, part.targets.numbered(size), 0.0)


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
            own = tuple(_later(unit, start_s) for unit in units if within(unit, word))
            found.append(Heard(part.first + number, _later(word, start_s), own, closed))
    return found


def _later(segment: Segment, seconds: float) -> Segment:
    return replace(segment, start=segment.start + seconds, end=segment.end + seconds)
