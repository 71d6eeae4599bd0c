"""Queries and corpora from recordings (appendix J): sequences of windows, masked and noisy copies, sorted choices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from isotone_opas.elements import Elements
from torch import Tensor

from isotone.audio import is_audio, load
from ordered_search import images, synthesis
from ordered_search.settings import Data

Audio = synthesis.Audio
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


def recordings(data: Data) -> list[tuple[str, Audio]]:
    """Load or synthesise all recordings of the configuration's ``data``: names and samples.

    Raises:
        ValueError: an unknown source or kind, or no folder given.
        FileNotFoundError: no such folder, or no audio in it.
    """
    makers = {"speech": synthesis.speech, "music": synthesis.music}
    if data.source not in ("synthetic", "folder") or data.kind not in makers:
        raise ValueError(
            "Expected data.source 'synthetic' or 'folder' and data.kind 'speech' or 'music'; got "
            f"{data.source!r} and {data.kind!r}."
        )
    if data.source == "synthetic":
        return list(makers[data.kind](data.recordings, data.recording_s, data.sample_rate, data.seed))
    found = audio_files(data)
    read = ((path.relative_to(data.root).as_posix(), load(path, data.sample_rate)) for path in found)
    return joined(read, round(data.join_s * data.sample_rate))


def audio_files(data: Data) -> list[Path]:
    """List the audio files of the folder that the configuration's ``data`` names, in order.

    Raises:
        ValueError: no folder given.
        FileNotFoundError: no such folder, or no audio in it.
    """
    if data.root is None:
        raise ValueError("A folder of audio has to be given: data.root=FOLDER.")
    root = Path(data.root)
    found = sorted(p for p in root.rglob("*") if is_audio(p))
    if not found:
        raise FileNotFoundError(f"{root}: no audio files there. Give a folder of recordings as data.root.")
    return found


def joined(files: Iterable[tuple[str, Audio]], samples: int) -> list[tuple[str, Audio]]:
    """Join consecutive files until a recording has so many samples; 0 leaves files as they are."""
    out: list[tuple[str, Audio]] = []
    names: list[str] = []
    parts: list[Audio] = []
    for name, audio in files:
        names.append(name)
        parts.append(audio)
        if sum(map(len, parts)) >= samples:
            out.append(("+".join(names), np.concatenate(parts)))
            names, parts = [], []
    if parts:
        out.append(("+".join(names), np.concatenate(parts)))
    return out


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
    each. White noise is then added to all of them, ``snr_db`` below the sequence's power.
    """
    items = windows.flatten().repeat(copies, 1)
    longest = max(1, round(data.mask_s * data.sample_rate))
    for copy in items[1:]:
        for _ in range(data.masks):
            first = int(rng.integers(0, max(1, len(copy) - longest)))
            copy[first : first + int(rng.integers(1, longest + 1))] = 0
    if data.snr_db is not None:
        level = windows.square().mean().sqrt() * 10 ** (-data.snr_db / 20)
        items += level * torch.from_numpy(rng.standard_normal(items.shape, np.float32))
    return items.view(copies, *windows.shape)


def search_set(
    sequences: Sequences, elements: Elements, copies: int, data: Data, rng: np.random.Generator
) -> SearchSet:
    """Make queries and corpus from sequences: copies of each, and ``queries`` sorted choices of its windows."""
    n = sequences.windows.shape[1]
    corpus, queries, chosen = [], [], []
    for windows, length in zip(sequences.windows, sequences.lengths.tolist()):
        items = damaged(windows[:length], copies, data, rng)
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


def build_elements(data: Data) -> Elements:
    """Build elements for the configuration's ``data``, not fitted yet."""
    window = round(data.window_s * data.sample_rate)
    return Elements(
        data.elements, samples=window, sample_rate=data.sample_rate, bands=data.bands, frames=data.frames
    )
