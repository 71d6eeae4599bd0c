"""Couplings: what every aligner returns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from isotone.tensors import Tensor, torch
from isotone.types.batch import Batch, length_mask
from isotone.types.targets import NO_TOKEN, PAST_END, FramePath


@dataclass(frozen=True)
class Coupling(Batch):
    """A sparse, monotone, possibly soft matching of n source positions to m target positions, for a batch.

    Entry k of row b says that source position ``source[b, k]`` carries ``mass[b, k]`` to target position
    ``target[b, k]``. Entries are sorted (source and target never decrease); padding has mass 0 and repeats the
    last entry's positions. A hard alignment has mass 1 per entry; an optimal-transport plan sums to 1.

    Attributes:
        source, target: ``(B, K)`` int64.
        mass: ``(B, K)`` floating, non-negative.
        source_lengths, target_lengths: ``(B,)`` int64, the n and m of each row.
        score: ``(B,)`` what the aligner maximised (a path's log-probability), where it has such a value.
    """

    source: Tensor
    target: Tensor
    mass: Tensor
    source_lengths: Tensor
    target_lengths: Tensor
    score: Tensor | None = None

    def dense(self) -> Tensor:
        """The matching as a matrix ``(B, n_max, m_max)``: for small sizes, tests and figures."""
        n, m = int(self.source_lengths.max()), int(self.target_lengths.max())
        flat = self.mass.new_zeros(len(self.mass), n * m)
        index = self.source.clamp(max=n - 1) * m + self.target.clamp(max=m - 1)
        return flat.scatter_add(1, index, self.mass).view(-1, n, m)

    def hard(self) -> Coupling:
        """One entry a source position: the target that gets most of its mass (the first on ties), with mass 1.

        Positions whose mass is zero are left out. Spans of a hard coupling never overlap.
        """
        size = max(1, int(self.source_lengths.max()))
        best = self.mass.new_zeros(len(self.mass), size).scatter_reduce(1, self.source, self.mass, "amax")
        wins = (self.mass > 0) & (self.mass >= best.gather(1, self.source))
        # the first winner of every source position
        order = torch.arange(self.mass.shape[1], device=self.mass.device).expand_as(self.source)
        first = order.new_full((len(self.mass), size), self.mass.shape[1])
        first = first.scatter_reduce(1, self.source, torch.where(wins, order, self.mass.shape[1]), "amin")
        keep = wins & (first.gather(1, self.source) == order)
        kept = self.select(keep)
        return replace(kept, mass=(kept.mass > 0).to(self.mass.dtype))

    def path(self, frames: int) -> FramePath:
        """The token that has most of each frame, where the sources are frames.

        A token that has most of no frame gets the frame that it has most in: subframe boundaries can leave a token of
        one frame with less than half of it. Of several such tokens in one frame the last gets it.

        Args:
            frames: T, at least the longest of the source lengths.
        """
        hard = self.hard()
        tokens = torch.full((len(hard.source), frames + 1), NO_TOKEN, device=self.mass.device)
        tokens.scatter_(1, torch.where(hard.mass > 0, hard.source, frames), hard.target)
        size = max(1, int(self.target_lengths.max()))
        most = self.mass.new_zeros(len(tokens), size)
        kept = most.scatter_reduce(1, hard.target, hard.mass, "amax") > 0
        most = most.scatter_reduce(1, self.target, self.mass, "amax")
        rescued = (self.mass > 0) & (self.mass >= most.gather(1, self.target))
        rescued &= ~kept.gather(1, self.target)
        # of several that are rescued to one frame the last has it, on every device
        place = torch.where(rescued, self.source, frames)
        tokens.scatter_reduce_(1, place, self.target, "amax", include_self=False)
        past = ~length_mask(self.source_lengths, frames)
        return FramePath(tokens[:, :frames].masked_fill(past, PAST_END), self.score)

    def select(self, keep: Tensor) -> Coupling:
        """The entries that ``keep (B, K)`` marks, in their order."""
        count = keep.sum(1)
        size = max(1, int(count.max()) if len(count) else 1)
        order = torch.argsort(~keep, dim=1, stable=True)[:, :size]
        valid = length_mask(count, size)
        last = (count - 1).clamp(min=0)[:, None]

        def take(x: Tensor) -> Tensor:
            x = x.gather(1, order)
            return torch.where(valid, x, x.gather(1, last))

        mass = torch.where(valid, self.mass.gather(1, order), 0)
        return replace(self, source=take(self.source), target=take(self.target), mass=mass)

    def frameless_share(self, optional: Tensor | None = None) -> Tensor:
        """The share of the targets that get nothing; of a coupling made :meth:`hard`, that have most of no position.

        An alignment that gives every label a frame has 0. Where a model has collapsed, most labels are passed over
        within frames that belong to others.

        Args:
            optional: ``(B, m)`` bool, targets that may be left out and do not count.

        Returns:
            ``(B,)`` float, from 0 to 1; 0 for rows without targets.
        """
        size = max(1, int(self.target_lengths.max()) if len(self.mass) else 1)
        held = self.mass.new_zeros(len(self.mass), size).scatter_add(1, self.target, self.mass) > 0
        counted = length_mask(self.target_lengths, size)
        if optional is not None:
            counted &= ~optional[:, :size]
        return (counted & ~held).sum(1) / counted.sum(1).clamp(min=1)

    def spans(self) -> Tensor:
        """First frame and one past the last frame of every target: ``(B, m_max, 2)`` float, in frames.

        Within a source position that is shared by several targets (soft couplings), the position is divided in the
        ratio of their masses, so spans are fractional, ordered, and do not overlap. A target that gets nothing
        has an empty span at the place where its neighbours meet.
        """
        m = max(1, int(self.target_lengths.max()))
        mass = self.mass.double()
        total = mass.new_zeros(len(mass), max(1, int(self.source_lengths.max()))).scatter_add(
            1, self.source, mass
        )
        share = mass / total.gather(1, self.source).clamp(min=torch.finfo(torch.float64).tiny)
        before = torch.cumsum(share, 1) - share
        base = torch.full_like(total, torch.inf).scatter_reduce(1, self.source, before, "amin")
        within = (before - base.gather(1, self.source)).clamp(0, 1)
        start = self.source + within
        end = torch.minimum(start + share, self.source + 1.0)
        used = mass > 0
        first = torch.full((len(mass), m), torch.inf, dtype=torch.float64, device=mass.device)
        first = first.scatter_reduce(1, self.target, torch.where(used, start, torch.inf), "amin")
        last = torch.full_like(first, -torch.inf)
        last = last.scatter_reduce(1, self.target, torch.where(used, end, -torch.inf), "amax")
        # empty targets: where the one before them ends
        floor = torch.cummax(torch.where(torch.isfinite(last), last, 0.0), 1).values
        first = torch.where(torch.isfinite(first), first, floor)
        last = torch.where(torch.isfinite(last), last, floor)
        return torch.stack([first, torch.maximum(first, last)], -1)
