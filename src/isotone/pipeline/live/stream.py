"""A stream and its text: which words have ended, where, and which are final."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import Segment
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.live.ahead import Words
from isotone.pipeline.live.look import Heard, Looker
from isotone.pipeline.live.recent import SEEN_S, Recent
from isotone.text.transcript import Transcript
from isotone.types import Emissions

#: Seconds of active audio below which a recording that ended has no words.
_LEAST_ACTIVE_S = 0.1

#: Seconds by which a time has to move before a word is given again.
LEAST_MOVE_S = 0.01


@dataclass(frozen=True)
class Timing:
    """Delays of a stream, in seconds.

    Attributes:
        step_s: Audio between two looks at the stream.
        lag_s: Audio after a word's end before it is given.
        settle_s: Audio after a word was given in which it may be corrected. It becomes final in the next wide look.
        wide_s: Audio between wide looks, which see as much of the stream as an alignment of the whole recording.
        sure_s: Audio after words that were left out before they are given up.
        first_s: Active audio before the first look, for the normalisation of the input.
        open_s: Audio that is aligned again in every look, at most.

    Raises:
        ValueError: a time below 0, or more open than is encoded.
    """

    step_s: float = 0.1
    lag_s: float = 0.2
    settle_s: float = 2.0
    wide_s: float = 0.5
    sure_s: float = 1.0
    first_s: float = 1.0
    open_s: float = 4.5

    def __post_init__(self) -> None:
        if not (all(getattr(self, f.name) >= 0 for f in fields(self)) and self.open_s < SEEN_S):
            raise ValueError(f"Expected seconds of 0 or more, and open_s below {SEEN_S:g}; got {self}.")


@dataclass(frozen=True)
class Spoken:
    """A word of the text, as it is given.

    Attributes:
        number: Its number among the words of the text, from 0.
        text: The word as written.
        start_char, end_char: Its place in the text, in characters from 0; ``end_char`` is one past the last.
        segment: Its times in the stream, and score; None for a word that was not heard.
        units: Its phones, or the model's other tokens.
        corrects: It was given before, and this takes its place.
    """

    number: int
    text: str
    start_char: int
    end_char: int
    segment: Segment | None
    units: tuple[Segment, ...] = ()
    corrects: bool = False

    @property
    def start(self) -> float | None:
        """Start in seconds of the stream; None for a word that was not heard."""
        return None if self.segment is None else self.segment.start

    @property
    def end(self) -> float | None:
        """End in seconds of the stream; None for a word that was not heard."""
        return None if self.segment is None else self.segment.end


class Stream:
    """One recording and its text, aligned as the samples come.

    Words before :attr:`settled` are final. The open part of the stream begins with the last of them, or later where
    nothing was heard for long.

    Args:
        pipeline: The model and its use.
        transcript: The text, by ``pipeline.encode``.
        timing: Delays.

    Attributes:
        settled: Number of words that are final.

    Raises:
        ValueError: the aligner takes no graphs, the text has no words, or the model's frames do not fit together.
    """

    def __init__(self, pipeline: ForcedPipeline, transcript: Transcript, timing: Timing) -> None:
        if not (pipeline.placer.takes_graph and pipeline.aligner.skips_optional):
            raise ValueError("A stream needs an aligner that takes graphs, such as segmental or ctc.")
        if not transcript.words:
            raise ValueError("A stream needs a text with words, and a model that reads words.")
        self.timing, self.words = timing, Words(pipeline, transcript)
        self.recent = Recent(pipeline.emitter, pipeline.placer.heads)
        self.look = Looker(self.words)
        self.settled = 0
        # words that are not final, and when they were given
        self._given: dict[int, tuple[Spoken, float]] = {}
        # those of them that were taken back, with the times they had
        self._taken: dict[int, Segment | None] = {}
        self._end_s = 0.0  # of the last final word
        self._start = 0  # unit at which the open part begins
        self._begun = False  # it begins with the last final word
        self._ready = False
        self._wide_at = 0  # sample
        self._waiting = np.zeros(0, np.float32)
        hop = self.recent.hop
        self._step = max(1, round(timing.step_s * self.recent.rate / hop)) * hop

    @property
    def done(self) -> bool:
        """True when all words are final: what follows is not listened to."""
        return self.settled == len(self.words)

    def feed(self, samples: NDArray[np.float32]) -> list[Spoken]:
        """Take samples ``(N,)`` at the model's rate; return words that have ended, and corrections."""
        self._waiting = np.concatenate([self._waiting, samples])
        found: list[Spoken] = []
        while len(self._waiting) >= self._step:
            now, self._waiting = self._waiting[: self._step], self._waiting[self._step :]
            if not self.done:
                self.recent.add(now)
                found += self._looked(ends=False)
        return found

    def finish(self) -> list[Spoken]:
        """Take the stream to be over; return all other words, and the last corrections."""
        if self.done:
            return []
        self.recent.add(self._waiting)
        found = self._looked(ends=True)
        rest = range(self.settled + len(self._given), len(self.words))
        self.settled = len(self.words)
        self._given.clear()
        return [*found, *(self._spoken(n, None) for n in rest)]

    def _looked(self, ends: bool) -> list[Spoken]:
        """Look at the stream, and decide."""
        least_s = min(self.timing.first_s, _LEAST_ACTIVE_S) if ends else self.timing.first_s
        self._ready = self._ready or self.recent.active_s() >= least_s
        self._drop()
        wide = ends or self.recent.heard >= self._wide_at
        if self.done or not self._ready or not (emissions := self._emissions(wide)):
            return []
        if wide:
            self._wide_at = self.recent.heard + round(self.timing.wide_s * self.recent.rate)
        hop_s = self.recent.hop / self.recent.rate
        samples, first = self.recent.samples_from(self._start), self.settled - self._begun
        heard = self.look(
            emissions, samples, self._start * hop_s, first,
            begun=self._begun, ends=ends, keen=ends or self.recent.speaks(), decides=wide,
        )  # fmt: skip
        now_s = self.recent.heard / self.recent.rate
        places = self._ended(heard, now_s, ends)
        # where the reader strays, words may have been given that were not said yet
        unsaid = self._given.keys() - {one.number for one in heard} if self.look.strays else set()
        found = self._give(places, unsaid, now_s)
        if wide or not self.timing.settle_s:
            self._settle(now_s)
        return found

    def _drop(self) -> None:
        """Forget the beginning of an open part that has become too long.

        Words in it become final as they were given: without their audio they could only be put elsewhere.
        """
        longest = round(self.timing.open_s * self.recent.rate) // self.recent.hop
        oldest = max(self.recent.oldest, self.recent.heard // self.recent.hop - longest)
        if self._start >= oldest:
            return
        starts = {number: word.start for number, (word, _) in self._given.items() if word.start is not None}
        forgotten = [number for number, start in starts.items() if self._unit(start) < oldest]
        while self.settled <= max(forgotten, default=-1) and self.settled not in self._taken:
            self._finalize()
        if self._start < oldest:
            self._start, self._begun = max(oldest, self._unit(self._end_s)), False

    def _emissions(self, wide: bool) -> Mapping[str, Emissions]:
        """Return emissions of the open part, by a wide look or not; none where it is too short."""
        if (self.recent.heard // self.recent.hop - self._start) < 3:
            return {}
        found = self.recent.emissions(self._start, wide)
        return found if all(int(e.lengths[0]) > 1 for e in found.values()) else {}

    def _ended(self, heard: list[Heard], now_s: float, ends: bool) -> dict[int, Heard]:
        """Choose the words that have ended, by their numbers."""
        places: dict[int, Heard] = {}
        expected = self.settled
        for one in heard:
            if one.number < self.settled:
                continue
            if not ends and not (one.closed and now_s - one.word.end >= self.timing.lag_s):
                break
            if not ends and one.number > expected and now_s - one.word.start < self.timing.sure_s:
                break
            places[one.number] = one
            expected = one.number + 1
        return places

    def _give(self, places: Mapping[int, Heard], unsaid: Set[int], now_s: float) -> list[Spoken]:
        """Give words for the first time, and those again that have moved.

        Words that were not said yet are taken back, and those whose time earlier words have taken. One that comes again
        where it was is corrected no longer than if it had stayed.
        """
        found = []
        before_s, top = self._end_s, max([-1, *places])
        for number in range(self.settled, max([top, *self._given]) + 1):
            old, when = self._given.get(number, (None, now_s))
            if old is None or number <= top:
                new = self._spoken(number, places.get(number), before_s)
                if number in self._taken and not _meet(self._taken.pop(number), new.segment):
                    when = now_s
            elif number in unsaid or old.end is None or old.end < before_s:
                new = self._spoken(number, None)
                self._taken.setdefault(number, old.segment)
            else:
                new = _after(old, before_s)
            if old is not None and not _moved(old, new) and (old.start is None or old.start >= before_s):
                new = old
            if old is None or new is not old:
                new = replace(new, corrects=old is not None)
                found.append(new)
            self._given[number] = new, when
            before_s = before_s if new.end is None else max(before_s, new.end)
        return found

    def _settle(self, now_s: float) -> None:
        """Make words final that were given long ago, up to the first that was taken back."""
        while self.settled in self._given and self.settled not in self._taken:
            if now_s - self._given[self.settled][1] < self.timing.settle_s:
                break
            self._finalize()

    def _finalize(self) -> None:
        """Make the next word final, and move the beginning of the open part to it."""
        word, _ = self._given.pop(self.settled)
        self.settled += 1
        self._end_s = max(self._end_s, word.end or 0.0)
        begin_s, self._begun = (self._end_s, False) if word.start is None else (word.start, True)
        self._start = max(self._start, self._unit(begin_s))

    def _unit(self, seconds: float) -> int:
        """Return the unit at a time of the stream."""
        return int(seconds * self.recent.rate) // self.recent.hop

    def _spoken(self, number: int, heard: Heard | None, before_s: float = 0.0) -> Spoken:
        """Make a word; it begins where the one before it ends, at the earliest."""
        word = self.words.transcript.words[number]
        own = (number, word.text, word.start, word.end)
        if heard is None:
            return Spoken(*own, None)
        start = max(heard.word.start, before_s)
        return Spoken(*own, replace(heard.word, start=start, end=max(start, heard.word.end)), heard.units)


def _after(word: Spoken, before_s: float) -> Spoken:
    """Return a word as it was given; it begins where the one before it ends, at the earliest."""
    if word.segment is None or word.segment.start >= before_s:
        return word
    return replace(word, segment=replace(word.segment, start=before_s))


def _meet(a: Segment | None, b: Segment | None) -> bool:
    """Tell if two times of a word overlap."""
    return a is not None and b is not None and min(a.end, b.end) > max(a.start, b.start)


def _moved(old: Spoken, new: Spoken) -> bool:
    """Tell if a word has other times than before."""
    if old.segment is None or new.segment is None:
        return old.segment is not new.segment
    a, b = old.segment, new.segment
    return max(abs(a.start - b.start), abs(a.end - b.end)) > LEAST_MOVE_S
