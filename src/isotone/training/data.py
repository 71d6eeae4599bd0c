"""Corpus rows to batches: tokenised targets, audio loaded when it is needed, batches of similar length."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from isotone import audio
from isotone.text.tokenizer import TextError, Tokenizer, Transcript
from isotone.types import Targets


@dataclass(frozen=True)
class Batch:
    """Utterances side by side.

    Attributes:
        audio: ``(B, N)`` float32 samples.
        lengths: ``(B,)`` int64, samples.
        targets: Labels, with durations (seconds) and teacher's paths where there are any.
        ids: Utterance ids.
        rows: Numbers of the utterances in their split.
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
    """A split of a corpus whose items are loaded one at a time.

    Args:
        rows: A ``datasets.Dataset`` with the columns of :mod:`isotone.corpus`.
        tokenizer: Makes the targets.
        sample_rate: Hz the model expects.
        max_seconds: Longer utterances are left out; 0: none.
        frames: How many frames so many samples give; utterances that give none are left out. Default: not asked.

    Attributes:
        kept: Row numbers that can be used.
        skipped: ``(id, reason)`` of those that cannot.
        seconds: Duration of each kept utterance.
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
        self.transcripts: list[Transcript] = []
        self.kept: list[int] = []
        self.seconds: list[float] = []
        self.skipped: list[tuple[str, str]] = []
        self.paths: dict[int, np.ndarray] = {}
        for number, row in enumerate(rows):
            seconds = row["end"] - row["start"]
            try:
                transcript = tokenizer.encode_row(row)
            except TextError as error:
                self.skipped.append((row["id"], str(error)))
                continue
            if max_seconds and seconds > max_seconds:
                self.skipped.append((row["id"], f"{seconds:.1f} s is longer than max_seconds={max_seconds}"))
                continue
            if frames is not None and frames(int(seconds * sample_rate)) < 1:
                self.skipped.append((row["id"], f"{seconds:.3f} s of audio is too short for a single frame"))
                continue
            self.kept.append(number)
            self.seconds.append(seconds)
            self.transcripts.append(transcript)

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> Example:
        row = self.rows[self.kept[index]]
        samples = audio.load(row["audio"], self.sample_rate, row["start"], row["end"])
        transcript = self.transcripts[index]
        return Example(
            index, row["id"], samples, transcript, token_durations(row, transcript, self.tokenizer)
        )

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
            # the teacher has a path for every utterance, of -2 alone where it could not align
            known = [torch.from_numpy(self.paths[e.row]).long() for e in examples]
            paths = torch.nn.utils.rnn.pad_sequence(known, batch_first=True, padding_value=-2)
        targets = Targets(targets.labels, targets.lengths, durations, paths)
        return Batch(samples, lengths, targets, [e.id for e in examples], [e.row for e in examples])


def token_durations(row: Any, transcript: Transcript, tokenizer: Tokenizer) -> list[float] | None:
    """Seconds each token lasts in the corpus's own times, where its tier of that unit gives one segment a token."""
    tier = row.get(tokenizer.unit)
    if not tier or len(tier["label"]) != len(transcript.tokens):
        return None
    return [end - start for start, end in zip(tier["start"], tier["end"])]


class LengthBatches(Sampler[list[int]]):
    """Batches of utterances of similar length, in an order that depends on the seed and the epoch alone.

    Utterances are shuffled, cut into pools of ``pool`` batches, sorted by length inside each pool and batched; the
    batches are shuffled again.

    Args:
        seconds: Duration of every utterance.
        batch_size: Utterances a batch.
        batch_seconds: Most seconds in a batch, padding counted; 0: no limit.
        seed: Of the order.
        pool: Batches in a pool.
        min_size: Batches of fewer utterances are left out: each of so many processes takes a part of a batch.

    Attributes:
        epoch: Passes over the data that are done.
        start: Batches of this epoch that are done; iteration leaves them out.
    """

    def __init__(
        self,
        seconds: Sequence[float],
        batch_size: int,
        batch_seconds: float = 0.0,
        seed: int = 0,
        pool: int = 16,
        min_size: int = 1,
    ) -> None:
        self.seconds = seconds
        self.batch_size = batch_size
        self.batch_seconds = batch_seconds
        self.seed = seed
        self.pool = pool
        self.min_size = min_size
        self.epoch = 0
        self.start = 0

    def batches(self) -> list[list[int]]:
        """All batches of the current epoch."""
        shuffle = random.Random(f"{self.seed}/{self.epoch}")
        order = list(range(len(self.seconds)))
        shuffle.shuffle(order)
        size = self.pool * self.batch_size
        out: list[list[int]] = []
        for i in range(0, len(order), size):
            pool = sorted(order[i : i + size], key=lambda j: self.seconds[j])
            out.extend(self._cut(pool))
        shuffle.shuffle(out)
        return [batch for batch in out if len(batch) >= self.min_size]

    def _cut(self, pool: list[int]) -> Iterator[list[int]]:
        batch: list[int] = []
        for j in pool:  # ascending, so j is the longest so far
            too_long = self.batch_seconds and (len(batch) + 1) * self.seconds[j] > self.batch_seconds
            if batch and (len(batch) == self.batch_size or too_long):
                yield batch
                batch = []
            batch.append(j)
        if batch:
            yield batch

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches()[self.start :])

    def __len__(self) -> int:
        return len(self.batches()) - self.start
