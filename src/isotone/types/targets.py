"""Label sequences, and the token of every frame where that is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from isotone.tensors import Tensor, torch
from isotone.types.batch import Batch, length_mask
from isotone.types.graph import TokenGraph

#: Codes of :class:`FramePath` in place of a token's number.
NO_TOKEN, PAST_END = -1, -2


@dataclass(frozen=True)
class FramePath(Batch):
    """The token of every frame: an alignment in which no frame has two tokens.

    Attributes:
        tokens: ``(B, T)`` int64, number of the frame's token in its row's sequence; -1 (:data:`NO_TOKEN`) where the
            frame has none (a blank, a pause), -2 (:data:`PAST_END`) past the end of the row. Rows that could not be
            aligned are -2 throughout.
        score: ``(B,)`` the score of the coupling that it is of, where that has one.
    """

    tokens: Tensor
    score: Tensor | None = None

    @property
    def carried(self) -> Tensor:
        """``(B, T)`` bool, frames that have a token."""
        return self.tokens >= 0

    @property
    def valid(self) -> Tensor:
        """``(B, T)`` bool, frames of the row, with a token or without."""
        return self.tokens > PAST_END


@dataclass(frozen=True)
class Targets(Batch):
    """A batch of label sequences.

    Attributes:
        labels: ``(B, U)`` int64; padding is never read. Stars (:mod:`isotone.pipeline.stars`) are -1.
        lengths: ``(B,)`` int64.
        durations: ``(B, U)`` float, seconds (or any unit: only ratios matter) each token lasts, where known.
        paths: Token of every frame, a fixed alignment from a teacher, where there is one.
        optional: ``(B, U)`` bool, tokens that may be skipped (silence between words), where there are any. Aligners
            without such a choice require every token.
        guide: Token that another head hears in every frame, never decreasing, where there is one. Aligners that take
            a guide (:class:`isotone.interfaces.Aligner`) keep tokens near the frames where they were heard.
        graph: Which token may follow which, where the text can be said in several ways. Its arcs then say which tokens
            may be skipped. Aligners that take no graphs are given none.
    """

    labels: Tensor
    lengths: Tensor
    durations: Tensor | None = None
    paths: FramePath | None = None
    optional: Tensor | None = None
    guide: FramePath | None = None
    graph: TokenGraph | None = None

    def required(self) -> Targets:
        """The label sequences without the tokens that may be skipped, and nothing else."""
        if self.optional is None:
            return Targets(self.labels, self.lengths)
        keep = length_mask(self.lengths, self.labels.shape[1]) & ~self.optional
        order = torch.argsort(~keep, dim=1, stable=True)
        return Targets(self.labels.gather(1, order), keep.sum(1))

    def numbered(self, star: int) -> Targets:
        """Give the stars a label number."""
        return replace(self, labels=torch.where(self.labels < 0, star, self.labels))

    def tolist(self) -> list[list[int]]:
        """The label sequences without their padding."""
        return [row[:n] for row, n in zip(self.labels.tolist(), self.lengths.tolist())]

    @classmethod
    def from_lists(cls, rows: list[list[int]], **kwargs: Any) -> Targets:
        """Pad lists of label numbers into a batch."""
        lengths = torch.tensor([len(r) for r in rows], dtype=torch.long)
        labels = torch.zeros(len(rows), max([1, *map(len, rows)]), dtype=torch.long)
        for i, row in enumerate(rows):
            labels[i, : len(row)] = torch.tensor(row, dtype=torch.long)
        return cls(labels, lengths, **kwargs)
