"""Queries and corpora from recordings or images (appendix J): sequences, masked and noisy copies, sorted choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from isotone_opas.elements import Elements
from torch import Tensor

from ordered_search import images
from ordered_search.settings import Data
from ordered_search.sources import recordings
from ordered_search.synthesis import Audio

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Sequences:
    """Sequences of one split.

    Attributes:
        windows: ``(S, n, samples)``.
        lengths: ``(S,)`` int64, windows.
        recording: ``(S,)`` int64, numbers of recordings.
        start: ``(S,)`` int64, first sample in the recording.
    """

    windows: Tensor
    lengths: Tensor
    recording: Tensor
    start: Tensor


@dataclass(frozen=True)
class SearchSet:
    """Queries and a corpus.

    Attributes:
        queries: ``(Q, m, size)`` elements.
        chosen: ``(Q, m)`` int64, the windows of its sequence that a query is made of, increasing.
        corpus: ``(C, n, size)`` elements.
        lengths: ``(C,)`` int64.
        relevant: ``(Q, C)`` bool.
        counted: ``(Q, C)`` bool; false for other items that overlap the query's sequence in time.
        query_recording, item_recording: ``(Q,)``, ``(C,)`` int64, numbers of recordings.
    """

    queries: Tensor
    chosen: Tensor
    corpus: Tensor
    lengths: Tensor
    relevant: Tensor
    counted: Tensor
    query_recording: Tensor
    item_recording: Tensor

    def of(self, queries: Tensor) -> SearchSet:
        """Return the same corpus with only the queries of these numbers."""
        names = ("queries", "chosen", "relevant", "counted", "query_recording")
        return replace(self, **{name: getattr(self, name)[queries] for name in names})


def split(sizes: Sequence[int], shares: Sequence[float], seed: int) -> list[list[int]]:
    """Divide recordings into splits at random, by size, at least one each.

    Args:
        sizes: Of the recordings, in any unit; those of 0 are left out.
        shares: Of train, dev and test, which sum to 1.
        seed: Of the order.

    Raises:
        ValueError: fewer recordings than splits.
    """
    order = [i for i in np.random.default_rng([seed, 2]).permutation(len(sizes)).tolist() if sizes[i]]
    if len(order) < len(shares):
        raise ValueError(
            f"Expected {len(shares)} recordings or more that are long enough for a sequence; got {len(order)}. "
            "Set data.join_s to join short files, or give more audio."
        )
    total = sum(sizes)
    parts: list[list[int]] = [[] for _ in shares]
    for number, i in enumerate(order):
        left = [share - sum(sizes[j] for j in part) / total for share, part in zip(shares, parts)]
        empty = [k for k, part in enumerate(parts) if not part]
        choice = empty if len(order) - number <= len(empty) else range(len(parts))
        parts[max(choice, key=lambda k: left[k])].append(i)
    return [sorted(part) for part in parts]


def cut(
    recordings: Sequence[tuple[int, Audio]], data: Data, phases: int, rng: np.random.Generator
) -> Sequences:
    """Cut recordings into consecutive sequences of n windows.

    Args:
        recordings: Numbers and samples.
        data: ``windows``, ``window_s``, ``sample_rate``, ``elements`` (m) and ``variable`` are read.
        phases: Number of evenly spaced offsets at which cutting begins: 1 cuts audio once.
        rng: Of lengths, m + 1 to n, where ``variable``.

    Raises:
        ValueError: no recording has n windows.
    """
    window = round(data.window_s * data.sample_rate)
    size = window * data.windows
    cuts, number, start = [], [], []
    for index, audio in recordings:
        for phase in range(phases):
            for first in range(phase * size // phases, len(audio) - size + 1, size):
                cuts.append(torch.from_numpy(audio[first : first + size]).view(data.windows, window))
                number.append(index)
                start.append(first)
    if not cuts:
        raise ValueError(f"No recording has the {data.windows} windows of {data.window_s} s of a sequence.")
    lengths = torch.full((len(cuts),), data.windows)
    if data.variable:
        lengths = torch.from_numpy(rng.integers(data.query + 1, data.windows + 1, len(cuts)))
    windows = torch.stack(cuts) * (torch.arange(data.windows) < lengths[:, None])[..., None]
    return Sequences(windows, lengths, torch.tensor(number), torch.tensor(start))


def damaged(windows: Tensor, copies: int, data: Data, rng: np.random.Generator) -> Tensor:
    """Make the corpus's copies ``(copies, n, samples)`` of a sequence ``(n, samples)``.

    The first is the sequence itself; in the others samples are set to zero at ``masks`` places, up to ``mask_s``
    each. All get noise, see :func:`noisy`.
    """
    items = windows.flatten().repeat(copies, 1)
    longest = max(1, round(data.mask_s * data.sample_rate))
    for copy in items[1:]:
        for _ in range(data.masks):
            first = int(rng.integers(0, max(1, len(copy) - longest)))
            copy[first : first + int(rng.integers(1, longest + 1))] = 0
    return noisy(items.view(copies, *windows.shape), windows, data, rng)


def noisy(items: Tensor, windows: Tensor, data: Data, rng: np.random.Generator) -> Tensor:
    """Add white noise to items, ``snr_db`` below the power of the windows; none where that is None."""
    if data.snr_db is None:
        return items
    level = windows.square().mean().sqrt() * 10 ** (-data.snr_db / 20)
    return items + level * torch.from_numpy(rng.standard_normal(items.shape, np.float32))


def search_set(
    sequences: Sequences,
    elements: Elements,
    copies: int,
    data: Data,
    rng: np.random.Generator,
    copied: Callable[[Tensor, int], Tensor] | None = None,
) -> SearchSet:
    """Make queries and corpus from sequences: copies of each, and ``queries`` sorted choices of its windows.

    Args:
        sequences: The sequences.
        elements: Transform of windows.
        copies: Items of a sequence.
        data: The configuration's ``data``.
        rng: Of noise and choices.
        copied: Maker of a sequence's items, of its windows and number. Default: :func:`damaged`.
    """
    n = sequences.windows.shape[1]
    corpus, queries, chosen = [], [], []
    for number, (windows, length) in enumerate(zip(sequences.windows, sequences.lengths.tolist())):
        own = windows[:length]
        items = damaged(own, copies, data, rng) if copied is None else copied(own, number)
        corpus.append(elements(torch.nn.functional.pad(items, (0, 0, 0, n - length))))
        for _ in range(data.queries):
            pick = torch.from_numpy(np.sort(rng.choice(length, data.query, replace=False)))
            chosen.append(pick)
            queries.append(elements(windows[pick]))
    owner = torch.arange(len(sequences.windows))
    of_item, of_query = owner.repeat_interleave(copies), owner.repeat_interleave(data.queries)
    relevant = of_query[:, None] == of_item
    size = n * sequences.windows.shape[2]
    near = (sequences.start[:, None] - sequences.start).abs() < size
    overlap = near & (sequences.recording[:, None] == sequences.recording)
    counted = relevant | ~overlap[of_query][:, of_item]
    return SearchSet(
        torch.stack(queries), torch.stack(chosen), torch.cat(corpus),
        sequences.lengths.repeat_interleave(copies), relevant, counted,
        sequences.recording[of_query], sequences.recording[of_item],
    )  # fmt: skip


def prepare(data: Data, fitted: Elements | None = None) -> tuple[Elements, dict[str, SearchSet]]:
    """Prepare elements, and the sets of all splits, which share no recording.

    Args:
        data: The configuration's ``data``.
        fitted: Elements of another run, for a model that was trained with them.
    """
    if data.source == "digits":
        return _prepare_images(data)
    audio = recordings(data)
    window = round(data.window_s * data.sample_rate)
    sizes = [len(samples) // (window * data.windows) for _, samples in audio]
    parts = split(sizes, [data.shares[name] for name in SPLITS], data.seed)
    cuts = {
        name: cut([(i, audio[i][1]) for i in part], data, data.phases if name == "train" else 1,
                  np.random.default_rng([data.seed, 3, number]))
        for number, (name, part) in enumerate(zip(SPLITS, parts))
    }  # fmt: skip
    elements = fitted or build_elements(data)
    if fitted is None:
        elements.fit(cuts["train"].windows.flatten(0, 1))
    sets = {}
    for number, name in enumerate(SPLITS):
        copies = data.train_copies if name == "train" else data.copies
        rng = np.random.default_rng([data.seed, 4, number])
        sets[name] = search_set(cuts[name], elements, copies, data, rng)
    return elements, sets


def _prepare_images(data: Data) -> tuple[Elements, dict[str, SearchSet]]:
    """Prepare sequences of turned images; splits share no image. Items of one digit count as of one recording."""
    pictures, shown = images.digits()
    order = np.random.default_rng([data.seed, 2]).permutation(len(pictures))
    ends = np.cumsum([data.shares[name] for name in SPLITS]) * len(order)
    elements, sets = build_elements(data), {}
    for number, (name, chosen) in enumerate(zip(SPLITS, np.split(order, ends.round().astype(int)[:-1]))):
        rng = np.random.default_rng([data.seed, 4, number])
        copies = data.train_copies if name == "train" else data.copies
        turned = [images.turned(pictures[i], copies, data.windows, rng) for i in chosen]

        def copied(own: Tensor, which: int, turned: list[Tensor] = turned, rng: Any = rng) -> Tensor:
            return noisy(turned[which], own, data, rng)

        count = len(chosen)
        sequences = Sequences(
            torch.stack([items[0] for items in turned]), torch.full((count,), data.windows), shown[chosen],
            torch.arange(count) * data.windows * images.SIZE,
        )  # fmt: skip
        sets[name] = search_set(sequences, elements, copies, data, rng, copied)
    return elements, sets


def build_elements(data: Data) -> Elements:
    """Build elements for the configuration's ``data``, not fitted yet."""
    if data.elements == "values":
        return Elements("values", samples=images.SIZE)
    window = round(data.window_s * data.sample_rate)
    return Elements(
        data.elements, samples=window, sample_rate=data.sample_rate, bands=data.bands, frames=data.frames
    )
