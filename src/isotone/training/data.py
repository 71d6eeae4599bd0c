"""Turn corpus rows into examples and batches: tokenised targets, and audio loaded on demand."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from isotone import audio
from isotone.text.tokenizer import TextError, Tokenizer, Transcript
from isotone.training.augment import Chain
from isotone.types import PAST_END, FramePath, Targets, marks

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Batch:
    """Utterances side by side.

    Attributes:
        audio: ``(B, N)`` float32 samples.
        lengths: ``(B,)`` int64, samples.
        targets: Labels, with durations (seconds) and the teacher's paths if there are any.
        ids: Utterance ids.
        rows: Indices of the utterances in their split.
    """

    audio: Tensor
    lengths: Tensor
    targets: Targets
    ids: list[str]
    rows: list[int]


@dataclass(frozen=True)
class Example:
    """One utterance, ready for a batch."""

    row: int
    id: str
    audio: np.ndarray
    transcript: Transcript
    durations: list[float] | None


class Utterances(Dataset[Example]):
    """A split of a corpus whose items are read, tokenised and loaded one at a time.

    ``datasets`` leaves the rows on disk; beside them an utterance takes 16 bytes of memory.

    Args:
        rows: A ``datasets.Dataset`` with the columns of :mod:`isotone.corpus`, or a list of such rows.
        tokenizer: Makes the targets.
        sample_rate: Hz the model expects.
        max_seconds: Longer utterances are left out; 0: no limit.
        frames: Number of frames for a number of samples; utterances without a frame are left out. Default: not checked.

    Attributes:
        kept: ``(N,)`` int64, indices of the usable rows.
        skipped: ``(id, reason)`` of the others, and of those whose audio turned out to be damaged when it was read.
        seconds: ``(N,)`` float64, duration of each kept utterance.
        paths: Utterance index to ``(T,)`` int16, a fixed alignment, see :mod:`isotone.training.teacher`; empty: none.
    """

    def __init__(
        self,
        rows: Any,
        tokenizer: Tokenizer,
        sample_rate: int,
        max_seconds: float = 0.0,
        frames: Callable[[int], int] | None = None,
    ) -> None:
        self.rows = rows
        self.tokenizer = tokenizer
        self.sample_rate = sample_rate
        self.skipped: list[tuple[str, str]] = []
        self.paths: dict[int, np.ndarray] = {}
        check = _Check(tokenizer, sample_rate, max_seconds, frames)
        keep = np.ones(len(rows), bool)
        seconds = np.zeros(len(rows))
        for number, row in enumerate(_rows(rows, check.columns)):
            seconds[number] = row["end"] - row["start"]
            if reason := check(row):
                self.skipped.append((row["id"], reason))
                keep[number] = False
        self.kept = np.flatnonzero(keep)
        self.seconds = seconds[keep]

    def __len__(self) -> int:
        return len(self.kept)

    def row(self, index: int) -> dict[str, Any]:
        """Return the corpus row of an utterance."""
        return self.rows[int(self.kept[index])]

    def __getitem__(self, index: int) -> Example:
        row = self.row(index)
        samples = audio.load(row["audio"], self.sample_rate, row["start"], row["end"])
        transcript = self.tokenizer.encode_row(row)
        return Example(
            index, row["id"], samples, transcript, token_durations(row, transcript, self.tokenizer)
        )

    def readable(self, indices: Iterable[int]) -> Iterator[Example]:
        """Read utterances; those whose audio is damaged are left out, with a warning."""
        for index in indices:
            try:
                yield self[index]
            except audio.AudioError as error:
                self.leave_out(index, error)

    def leave_out(self, index: int, error: audio.AudioError) -> None:
        """Note that an utterance cannot be read; the first time with a warning."""
        found = (self.row(index)["id"], str(error))
        if found not in self.skipped:
            self.skipped.append(found)
            log.warning("%s is left out: %s", *found)

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Pad examples into a batch."""
        lengths = torch.tensor([len(e.audio) for e in examples])
        samples = torch.zeros(len(examples), int(lengths.max()))
        for row, e in zip(samples, examples):
            row[: len(e.audio)] = torch.from_numpy(e.audio)
        targets = Targets.from_lists([list(e.transcript.tokens) for e in examples])
        durations = paths = None
        if all(e.durations is not None for e in examples):
            durations = torch.zeros(targets.labels.shape)
            for row, e in zip(durations, examples):
                row[: len(e.durations or ())] = torch.tensor(e.durations)
        if self.paths:
            # the teacher has a path for every utterance; where it could not align, all frames are -2
            known = [torch.from_numpy(self.paths[e.row]).long() for e in examples]
            paths = FramePath(pad_sequence(known, batch_first=True, padding_value=PAST_END))
        optional = None
        if self.tokenizer.pauses:
            optional = marks((self.tokenizer.optional(e.transcript) for e in examples), targets.labels)
        targets = Targets(targets.labels, targets.lengths, durations, paths, optional)
        return Batch(samples, lengths, targets, [e.id for e in examples], [e.row for e in examples])


class Augmented(Dataset[Example]):
    """Utterances with random changes to their recordings, determined by the seed, the epoch and the row.

    Args:
        data: The utterances. With a teacher's paths, ``change`` must keep the length of a recording.
        change: Augmentations; durations of labels are scaled with the length of the recording.
        seed, epoch: Determine the random choices, so that resumed training makes the same ones.
    """

    def __init__(self, data: Utterances, change: Chain, seed: int, epoch: int) -> None:
        self.data, self.change, self.key = data, change, (seed, epoch)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Example:
        example = self.data[index]
        rng = np.random.default_rng([*self.key, index])
        samples = self.change(example.audio, rng)
        durations = example.durations
        if durations is not None:
            longer = len(samples) / max(1, len(example.audio))
            durations = [longer * seconds for seconds in durations]
        return replace(example, audio=samples, durations=durations)


class Replaced(Dataset[Example]):
    """Utterances of a training split in which the next one stands in for one whose audio is damaged.

    Headers are all that is read before training, so damage is found late. Batches keep their size: processes stay in
    step, and a resumed run has the same ones.

    Args:
        data: The utterances.
        source: What is read: ``data`` itself, or with random changes.
    """

    def __init__(self, data: Utterances, source: Utterances | Augmented) -> None:
        self.data, self.source = data, source

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Example:
        following = [(index + step) % len(self.data) for step in range(len(self.data))]
        for other in following:
            try:
                return self.source[other]
            except audio.AudioError as error:
                self.data.leave_out(other, error)
        raise audio.AudioError(f"No recording of the split can be read: {self.data.skipped[-1][1]}")


def _rows(rows: Any, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Iterate over rows; of a ``datasets.Dataset`` only these columns are read, 1,000 rows at a time."""
    if not hasattr(rows, "select_columns"):
        yield from rows
        return
    for some in rows.select_columns(columns).iter(batch_size=1000):
        for values in zip(*(some[name] for name in columns)):
            yield dict(zip(columns, values))


class _Check:
    """A check that an utterance can be trained on; it tokenises the text only where its first word does not decide."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        sample_rate: int,
        max_seconds: float,
        frames: Callable[[int], int] | None,
    ) -> None:
        self.tokenizer, self.sample_rate = tokenizer, sample_rate
        self.max_seconds, self.frames = max_seconds, frames
        self.enough = math.inf  # fewest samples known to give a frame: more samples give one too
        self.labelled: dict[str, bool] = {}  # word -> True where it has labels
        tiers = ["phones", "words"] if tokenizer.unit == "phones" else []
        self.columns = ["id", "start", "end", "text", *tiers]

    def __call__(self, row: dict[str, Any]) -> str:
        """Return the reason why an utterance cannot be used; empty if it can."""
        seconds = row["end"] - row["start"]
        if self.max_seconds and seconds > self.max_seconds:
            return f"{seconds:.1f} s is longer than max_seconds={self.max_seconds}"
        samples = int(seconds * self.sample_rate)
        if self.frames is not None and samples < self.enough:
            if self.frames(samples) < 1:
                return f"{seconds:.3f} s of audio is too short for a single frame"
            self.enough = samples
        try:
            if not self._has_labels(row):
                self.tokenizer.encode_row(row)
        except TextError as error:
            return str(error)
        return ""

    def _has_labels(self, row: dict[str, Any]) -> bool:
        """Tell if the first word of a text has labels, and so the text; few words begin many texts, so this caches."""
        # rows may bring phones, and a later word may have no pronunciation
        if self.tokenizer.unit == "phones":
            return False
        first = next(iter(row["text"].split(maxsplit=1)), "")
        if first not in self.labelled:
            try:
                self.labelled[first] = bool(self.tokenizer.encode(first).tokens)
            except TextError:
                self.labelled[first] = False
        return self.labelled[first]


def token_durations(row: Any, transcript: Transcript, tokenizer: Tokenizer) -> list[float] | None:
    """Return each token's duration in seconds from the corpus's tier; None unless it has one segment per token."""
    tier = row.get(tokenizer.unit)
    if not tier or len(tier["label"]) != len(transcript.tokens):
        return None
    return [end - start for start, end in zip(tier["start"], tier["end"])]


def evenly(size: int, most: int) -> list[int]:
    """Return ``most`` numbers below ``size``, evenly spaced from 0 on; all of them if there are no more."""
    count = min(most, size)
    return [i * size // count for i in range(count)]
