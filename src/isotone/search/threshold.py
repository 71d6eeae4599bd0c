"""Threshold of scores between clips in an index and clips outside it, measured on the index itself.

Clips are drawn from the index and searched for everywhere except in their own recording, as if they were not in the
index. A score counts relative to the clip's level, the median of its scores at items drawn from the index: in noise or
through a telephone, a clip is less similar to everything, so score and level fall together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.interfaces import Searcher
from isotone.search.store import SearchIndex, Threshold

#: Share of clips outside an index that may find a match: the rate of false alarms.
RATE = 0.01

# Lengths of drawn clips, in windows; margins are interpolated between them.
_WINDOWS = (1, 2, 3, 4, 6, 8, 12, 16)
# Clips of each length: 1 % exceed the third largest margin of 299.
_CLIPS = 299
# Items whose median score is a clip's level, and items that the model scores for a drawn clip.
_COHORT, _CANDIDATES = 64, 50
# A recording is a copy if its score is this share of the way from the level to the clip's own score: for clips of at
# least _LONG windows, and for shorter ones.
_LONG, _COPY, _COPY_SHORT = 4, 0.75, 0.97
# Quartiles of Gumbel's distribution, whose quantiles are location - scale * log(-log(p)).
_QUARTERS = tuple(-math.log(-math.log(p)) for p in (0.25, 0.5, 0.75))


@dataclass(frozen=True)
class Bar:
    """Least score of a match, for one clip.

    Attributes:
        score: The score.
        rate: Largest share of clips outside the index that reach theirs; see :meth:`Threshold.rate_of`. None where the
            measured score is above that of a copy, which always matches.
    """

    score: float
    rate: float | None


class Cohort:
    """Items drawn from an index, for comparison with clips."""

    def __init__(self, index: SearchIndex, searcher: Searcher, *, seed: int = 0) -> None:
        self.index, self.searcher = index, searcher
        self.items = np.sort(np.random.default_rng(seed).permutation(len(index))[:_COHORT])
        self.vectors, self.lengths = index.take(self.items)
        self.long: dict[int, tuple[NDArray[np.bool_], Tensor, Tensor]] = {}

    def level(self, query: Tensor, apart: NDArray[np.bool_]) -> float | None:
        """Return the median of a clip's scores at the cohort's items.

        Args:
            query: ``(m, d)``.
            apart: ``(I,)``: False for items of the index that are left out.

        Returns:
            The median; None if no item that is long enough is left.
        """
        if len(query) not in self.long:
            fit = self.lengths >= len(query)
            self.long[len(query)] = fit.numpy(), self.vectors[fit], self.lengths[fit]
        fits, vectors, lengths = self.long[len(query)]
        counted = apart[self.items[fits]]
        if not counted.any():
            return None
        return float(np.median(self.searcher.score(query, vectors, lengths).numpy()[counted]))


@torch.inference_mode()
def bar(index: SearchIndex, searcher: Searcher, query: Tensor, best: int) -> Bar | None:
    """Return the least score of a match, for a clip.

    Args:
        index: The index.
        searcher: The model that made it.
        query: ``(m, d)``.
        best: Item of the best match; neither it nor items that overlap it count for the clip's level.

    Returns:
        The least score; None if the index has no threshold, or no other items as long as the clip.
    """
    if index.threshold is None or not index.threshold.windows:
        return None
    level = Cohort(index, searcher).level(query, ~_overlapping(index, best))
    if level is None:
        return None
    measured = level + index.threshold.margin(len(query))
    # an index of recordings that are alike, such as excerpts of each other, may ask for more than a copy has
    copy = level + _COPY_SHORT * (_own_score(index, searcher, query) - level)
    if level < copy < measured:
        return Bar(copy, None)
    return Bar(measured, index.threshold.rate_of(len(query)))


def _own_score(index: SearchIndex, searcher: Searcher, query: Tensor) -> float:
    """Return the score of a clip ``(m, d)`` at an item that holds the clip alone."""
    item = query.new_zeros(1, index.vectors.shape[1], query.shape[1])
    item[0, : len(query)] = query
    return float(searcher.score(query, item, torch.tensor([len(query)]))[0])


@torch.inference_mode()
def measure(
    index: SearchIndex, searcher: Searcher, *, rate: float = RATE, seed: int = 0
) -> Iterator[tuple[float, Threshold]]:
    """Measure the threshold of an index.

    For each length (m windows without overlap), clips are drawn from the index. The margin of a clip is its best score
    elsewhere minus its level. The threshold is the ``ceil((n + 1) (1 - rate))``-th smallest of n margins: another clip
    of the same kind exceeds it with a probability of at most ``rate`` (the conformal quantile). If n is below
    ``1 / rate - 1``, it is the largest margin, and the rate is ``1 / (n + 1)``.

    "Elsewhere" means other recordings; in an index of one recording, items that do not overlap the clip's. Copies of
    the clip's recording are left out. A few undetected copies do no harm: the threshold is at most that of Gumbel's
    distribution (the distribution of maxima) with the quartiles of the margins.

    Args:
        index: The index.
        searcher: The model that made it.
        rate: Rate of false alarms, per clip.
        seed: Seed of the random draws.

    Yields:
        The share done, 0 to 1, and the threshold so far, which has no lengths if the index is too small.
    """
    clips = _Clips(index, searcher, seed)
    found = Threshold(rate)
    lengths = [m for m in _WINDOWS if m <= searcher.query_windows]
    for number, windows in enumerate(lengths):
        margins: list[float] = []
        for done, (item, start) in enumerate(clips.draw(windows)):
            margin = clips.margin(item, start, windows)
            margins += [] if margin is None else [margin]
            if done % 16 == 0:
                yield (number + done / _CLIPS) / len(lengths), found
        if margins:
            found = found.extended(windows, upper_margin(margins, rate), len(margins))
    yield 1.0, found


def upper_margin(margins: list[float], rate: float) -> float:
    """Return the margin that a share ``rate`` of further clips exceeds; see :func:`measure`."""
    count = len(margins)
    measured = sorted(margins)[min(count, math.ceil((count + 1) * (1 - rate))) - 1]
    low, middle, high = np.quantile(margins, (0.25, 0.5, 0.75))
    scale = (high - low) / (_QUARTERS[2] - _QUARTERS[0])
    if scale == 0:
        return measured
    expected = middle + scale * (-math.log(-math.log(1 - max(rate, 1 / (count + 1)))) - _QUARTERS[1])
    return float(min(measured, expected))


class _Clips:
    """Clips drawn from an index, and their margins in it."""

    def __init__(self, index: SearchIndex, searcher: Searcher, seed: int) -> None:
        self.index, self.searcher = index, searcher
        self.step = max(1, round(searcher.window_s / searcher.hop_s))
        self.rng = np.random.default_rng(seed)
        self.cohort = Cohort(index, searcher, seed=seed)
        self.elsewhere: dict[int, NDArray[np.bool_]] = {}

    def draw(self, windows: int) -> Iterator[tuple[int, int]]:
        """Draw (item, first window) of clips in random order: on a grid of whole windows, each once."""
        used: set[tuple[int, int]] = set()
        order = self.rng.permutation(len(self.index)).tolist()
        while order and len(used) < _CLIPS:
            left = []
            for item in order:
                recording, first, count = self.index.items[item].tolist()
                last = count - (windows - 1) * self.step
                starts = [s for s in range(-first % self.step, last, self.step)
                          if (recording, first + s) not in used]  # fmt: skip
                if not starts or len(used) == _CLIPS:
                    continue
                start = starts[int(self.rng.integers(len(starts)))]
                used.add((recording, first + start))
                left.append(item)
                yield item, start
            order = left

    def margin(self, item: int, start: int, windows: int) -> float | None:
        """Return the best score elsewhere minus the level; None for silence, or if there is nothing elsewhere."""
        query = self._vectors(item, start, windows)
        if not query.any():
            return None
        if item not in self.elsewhere:
            self.elsewhere[item] = self._elsewhere(item)
        apart = self.elsewhere[item]
        items, scores = self._best(query, apart)
        if not len(items):
            return None
        best = int(scores.argmax())
        level = self.cohort.level(query, apart & ~_overlapping(self.index, int(items[best])))
        return None if level is None else float(scores[best]) - level

    def _vectors(self, item: int, start: int, windows: int) -> Tensor:
        rows = self.index.vectors[item][start : start + (windows - 1) * self.step + 1 : self.step]
        return torch.from_numpy(np.array(rows)).float()

    def _best(self, query: Tensor, apart: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Tensor]:
        items = self.index.candidates.find(query, _CANDIDATES, apart)
        return items, self.searcher.score(query, *self.index.take(items)) if len(items) else torch.zeros(0)

    def _elsewhere(self, item: int) -> NDArray[np.bool_]:
        """Mark the items ``(I,)`` that do not contain clips of an item, nor copies of its recording."""
        recordings = self.index.items[:, 0]
        if len(self.index.recordings) == 1:
            return ~_overlapping(self.index, item)
        apart: NDArray[np.bool_] = recordings != recordings[item]
        count = min(-(-int(self.index.lengths[item]) // self.step), self.searcher.query_windows)
        query = self._vectors(item, 0, count)
        itself = float(self.searcher.score(query, *self.index.take(np.array([item])))[0])
        level = self.cohort.level(query, apart)
        items, scores = self._best(query, apart)
        if level is None or not len(items):
            return apart
        like = level + (_COPY if count >= _LONG else _COPY_SHORT) * (itself - level)
        copies = recordings[items[scores.numpy() >= like]]
        return apart & ~np.isin(recordings, copies)


def _overlapping(index: SearchIndex, item: int) -> NDArray[np.bool_]:
    """Mark the items ``(I,)`` that share windows with an item."""
    recording, first, count = index.items[item]
    recordings, firsts, counts = index.items.T
    return (recordings == recording) & (firsts < first + count) & (first < firsts + counts)
