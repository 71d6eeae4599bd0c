"""Batches of utterances of similar length, which the processes of a training share."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
from torch.utils.data import Sampler


class LengthBatches(Sampler[list[int]]):
    """Batches of utterances of similar length, in an order that depends only on the seed and the epoch.

    Utterances are shuffled, cut into pools of ``pool`` batches, sorted by length inside each pool and batched; the
    batches are shuffled again. Every utterance is in one batch, unless there are fewer than ``min_size``.

    A process's share of a batch is every ``min_size``-th utterance. Shares of several utterances have at most their
    part of ``batch_seconds``, but in one batch an epoch where the number of utterances makes that impossible.

    Args:
        seconds: Duration of every utterance.
        batch_size: Most utterances per batch.
        batch_seconds: Most seconds per batch, with padding; 0: no limit.
        seed: Determines the order.
        pool: Batches in a pool.
        min_size: Fewest utterances per batch, whatever the limits: the number of processes, which share every batch.

    Attributes:
        epoch: Number of finished passes over the data.
        start: Number of finished batches of this epoch; iteration skips them.
    """

    def __init__(
        self,
        seconds: Sequence[float] | np.ndarray,
        batch_size: int,
        batch_seconds: float = 0.0,
        seed: int = 0,
        pool: int = 16,
        min_size: int = 1,
    ) -> None:
        self.seconds: list[float] = np.asarray(seconds, float).tolist()  # read often, one at a time
        self.batch_size = batch_size
        self.batch_seconds = batch_seconds
        self.seed = seed
        self.pool = pool
        self.min_size = min_size
        self.epoch = 0
        self.start = 0

    def batches(self) -> list[list[int]]:
        """Return all batches of the current epoch."""
        shuffle = random.Random(f"{self.seed}/{self.epoch}")
        order = list(range(len(self.seconds)))
        shuffle.shuffle(order)
        out: list[list[int]] = []
        pools = self._pools(order)
        rest = len(order) % self.min_size
        if rest and len(pools[-1]) >= self.min_size and self._too_long(pools[-1][: rest + self.min_size]):
            # a batch whose shares cannot be equal is of the shortest utterances of all
            by_length = sorted(order, key=lambda j: self.seconds[j])
            shortest, others = by_length[: rest + self.min_size], set(by_length[rest + self.min_size :])
            out.append(shortest)
            pools = self._pools([j for j in order if j in others])
        out += [batch for pool in pools for batch in self._cut(pool)]
        shuffle.shuffle(out)
        return out

    def _pools(self, order: list[int]) -> list[list[int]]:
        """Cut into pools, each sorted by length."""
        size = self.pool * self.batch_size
        # the last pool takes a rest that is too small for a batch
        ends = [*range(size, len(order) - self.min_size + 1, size), len(order)]
        return [sorted(order[i:k], key=lambda j: self.seconds[j]) for i, k in zip([0, *ends], ends)]

    def _cut(self, pool: list[int]) -> list[list[int]]:
        """Cut a pool into batches whose shares are equal; those of the first, of the shortest, may differ by one."""
        rest = len(pool) % self.min_size
        starts = [0]
        for start in range(rest, len(pool) - self.min_size + 1, self.min_size):
            batch = pool[starts[-1] : start + self.min_size]
            if start > rest and (len(batch) > self.batch_size or self._too_long(batch)):
                starts.append(start)
        ends = [*starts[1:], len(pool)] if len(pool) >= self.min_size else []
        return [pool[start:end] for start, end in zip(starts, ends)]

    def _too_long(self, batch: list[int]) -> bool:
        """Tell if a process's share of a batch, whose last utterance is the longest, has too many seconds."""
        most = -(-len(batch) // self.min_size)
        longest = self.seconds[batch[-1]]
        return bool(self.batch_seconds) and most * longest > self.batch_seconds / self.min_size

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches()[self.start :])

    def __len__(self) -> int:
        return len(self.batches()) - self.start
