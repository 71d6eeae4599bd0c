"""Search of a clip in an index: candidates, ranked again by the model, and their times in the recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.interfaces import Searcher
from isotone.search.searcher import best_selection
from isotone.search.store import SearchIndex
from isotone.search.windows import cut_windows, spread, without_silent_ends

#: Items that the model ranks again.
CANDIDATES = 500


@dataclass(frozen=True)
class Match:
    """A part of a recording that is similar to the clip.

    Attributes:
        rank: 1 is the best.
        score: Score of the model; higher is better.
        file, id: File and id of the recording.
        start_s, end_s: Start of the first window of the best ordered selection, and end of the last one, in seconds.
        windows: Start and end of the windows that match the query's windows.
        duration: Duration of the recording, seconds.
        item: Number of the index's item that contains the match.
    """

    rank: int
    score: float
    file: str
    id: str
    start_s: float
    end_s: float
    windows: tuple[tuple[float, float], ...]
    duration: float
    item: int


def query_vectors(searcher: Searcher, samples: NDArray[np.float32]) -> Tensor:
    """Return the vectors ``(m, d)`` of a clip: its consecutive windows, evenly thinned out if the model takes fewer.

    Silence before the first sound and after the last is not looked for: recordings need not have it.

    Args:
        searcher: The model.
        samples: ``(N,)`` at the sample rate of the model.

    Raises:
        ValueError: the clip is silent, is longer than a corpus item, or has samples that are not finite.
    """
    if not len(samples) or not np.isfinite(samples).all():
        raise ValueError("The clip has no samples, or some that are not finite numbers.")
    seconds = len(samples) / searcher.sample_rate
    longest = searcher.window_s + (searcher.item_windows - 1) * searcher.hop_s
    window = round(searcher.window_s * searcher.sample_rate)
    windows = without_silent_ends(cut_windows(samples, window, window))
    if len(windows) * searcher.window_s > longest + 1e-6:
        raise ValueError(
            f"The clip lasts {seconds:.1f} s; this index finds up to {longest:g} s. Cut out the part to look for."
        )
    chosen = windows[spread(len(windows), searcher.query_windows)]
    with torch.inference_mode():
        vectors = searcher.vectors(torch.from_numpy(chosen.copy())[None])[0]
    if not torch.isfinite(vectors).all():
        raise ValueError("The model gave vectors that are not finite; its weights are damaged.")
    if not vectors.any():
        raise ValueError("The clip is silent (or constant) throughout: there is nothing to look for.")
    return vectors


@torch.inference_mode()
def rank(
    index: SearchIndex, searcher: Searcher, query: Tensor, candidates: int = CANDIDATES
) -> tuple[NDArray[np.int64], Tensor]:
    """Run both stages; return item numbers, best first, and the scores of the model.

    Args:
        index: The index.
        searcher: The model that made it.
        query: ``(m, d)``.
        candidates: Number of items from the first stage that the model scores.
    """
    items = index.candidates.find(query, candidates)
    if not len(items):
        return items, torch.zeros(0)
    scores = searcher.score(query, *index.take(items))
    order = torch.argsort(scores, descending=True, stable=True)
    return items[order.numpy()], scores[order]


def search(
    index: SearchIndex, searcher: Searcher, query: Tensor, *, top: int = 10, candidates: int = CANDIDATES
) -> list[Match]:
    """Find the parts of recordings most similar to a query, best first, without overlaps.

    There is always a most similar part; :func:`isotone.search.threshold.bar` gives the least score of a match.

    Args:
        index: The index.
        searcher: The model that made it.
        query: ``(m, d)`` from :func:`query_vectors`.
        top: Number of matches.
        candidates: Number of items that the model ranks again.

    Raises:
        ValueError: no recording is long enough for the query, or ``top`` or ``candidates`` is below 1. Where the first
            stage finds nothing, the list is empty.
        IndexMismatch: the model is not the one that made the index.
    """
    index.check_model(searcher)
    if top < 1 or candidates < 1:
        raise ValueError(f"A search expects top and candidates of 1 or more; got {top} and {candidates}.")
    items, scores = rank(index, searcher, query, max(candidates, top))
    if not len(items) and int(index.lengths.max()) < len(query):
        longest = max(r.duration for r in index.recordings)
        raise ValueError(
            f"The clip has {len(query)} windows of {searcher.window_s:g} s, more than any recording of the index "
            f"has (the longest lasts {longest:.1f} s). Cut out a shorter part to look for."
        )
    matches: list[Match] = []
    # most parts of a recording are in two items, so twice as many items are looked at
    for first in range(0, len(items), 2 * top):
        some = items[first : first + 2 * top]
        paths, _ = best_selection(query, *index.take(some))
        for item, score, path in zip(some.tolist(), scores[first:].tolist(), paths.tolist()):
            match = _match(index, searcher, item, score, path, len(matches) + 1)
            if not any(overlap(match, other) for other in matches):
                matches.append(match)
            if len(matches) == top:
                return matches
    return matches


def _match(
    index: SearchIndex, searcher: Searcher, item: int, score: float, path: Sequence[int], rank: int
) -> Match:
    number, first, _ = index.items[item].tolist()
    recording = index.recordings[number]
    starts = [min((first + j) * searcher.hop_s, recording.duration) for j in path]
    windows = tuple((start, min(start + searcher.window_s, recording.duration)) for start in starts)
    return Match(
        rank, score, recording.file, recording.id, windows[0][0], windows[-1][1], windows,
        recording.duration, item,
    )  # fmt: skip


def overlap(a: Match, b: Match) -> bool:
    """Return whether two matches overlap in one recording."""
    return a.file == b.file and a.start_s < b.end_s and b.start_s < a.end_s
