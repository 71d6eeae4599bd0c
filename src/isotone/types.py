"""The tensors that pass between the parts: frames, emissions, targets and couplings.

One alphabet everywhere: B batch, T frames, U target tokens, V vocabulary, D features, K coupling entries.
Borders between parts carry lengths, never masks. Times stay frame numbers until :meth:`Grid.seconds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """Mask of the valid positions: ``(B, size)`` bool, true where position < length."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def marks(rows: Iterable[Sequence[bool]], labels: Tensor) -> Tensor:
    """Pad marks of tokens to the shape of their labels ``(B, U)``: bool, false in the padding."""
    out = torch.zeros_like(labels, dtype=torch.bool)
    for row, flags in zip(out, rows):
        row[: len(flags)] = torch.tensor(flags, dtype=torch.bool)
    return out


def mask_rows(values: Tensor, lengths: Tensor | None) -> Tensor:
    """``(B, L, ...)`` with zeros beyond the lengths ``(B,)``, whatever was there; all of it where they are None."""
    if lengths is None:
        return values
    mask = length_mask(lengths, values.shape[1])
    return values.masked_fill(~mask.view(*mask.shape, *[1] * (values.ndim - 2)), 0.0)


def _wide(values: Tensor) -> Tensor:
    """Half precision as float32."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


class _Movable:
    """Moves every tensor field of a dataclass between devices."""

    def to(self, device: torch.device | str) -> Self:
        moved = {f.name: v.to(device) for f in fields(self) if isinstance(v := getattr(self, f.name), Tensor)}  # type: ignore[arg-type]
        return replace(self, **moved)  # type: ignore[type-var]


@dataclass(frozen=True)
class Grid:
    """Where frames lie in time: frame t covers ``[offset_s + t * hop_s, offset_s + (t + 1) * hop_s)`` seconds."""

    hop_s: float
    offset_s: float = 0.0

    def seconds(self, frame: float) -> float:
        """Time in seconds of the left edge of a frame (frame may be fractional; never below zero)."""
        return max(0.0, self.offset_s + frame * self.hop_s)

    def frames(self, seconds: float) -> float:
        """Fractional frame number whose left edge lies at a time; the inverse of :meth:`seconds`."""
        return (seconds - self.offset_s) / self.hop_s


@dataclass(frozen=True)
class Frames(_Movable):
    """A batch of feature sequences. ``values (B, T, D)``, ``lengths (B,)`` int64, frames."""

    values: Tensor
    lengths: Tensor
    grid: Grid


@dataclass(frozen=True)
class Encoded:
    """What an encoder makes of a batch of audio: its input features and every layer it was asked for.

    Attributes:
        features: The encoder's input features (log-mel frames, or the output of the convolutional front end).
        hidden: Hidden states, one :class:`Frames` a layer; ``hidden[0]`` enters the first layer and ``hidden[-1]``
            is the last.
    """

    features: Frames
    hidden: tuple[Frames, ...]

    def read(self, source: str | int) -> Frames:
        """The frames a head asks for: ``"features"``, ``"last"`` or a layer number.

        Raises:
            ValueError: no such source; the message lists what there is.
        """
        if source == "features":
            return self.features
        if source == "last":
            return self.hidden[-1]
        try:
            return self.hidden[int(source)]
        except (ValueError, IndexError):
            raise ValueError(
                f"A head reads 'features', 'last' or a layer from 0 to {len(self.hidden) - 1}; got {source!r}."
            ) from None


@dataclass(frozen=True)
class Emissions(_Movable):
    """What a head says of every frame.

    Attributes:
        logits: ``(B, T, V)`` unnormalised scores of the labels.
        lengths: ``(B,)`` int64, valid frames.
        grid: Where the frames lie in time.
        blank: Label number of the blank.
        weight_logits: ``(B, T)`` unnormalised logarithms of the OT weights alpha, where the head has them.
        log_prior: ``(V,)`` logarithm of how often the head says each label, where it keeps count.
    """

    logits: Tensor
    lengths: Tensor
    grid: Grid
    blank: int = 0
    weight_logits: Tensor | None = None
    log_prior: Tensor | None = None

    def without_prior(self, weight: float) -> Emissions:
        """These emissions with the label posteriors divided by their priors to the power ``weight``.

        Posteriors favour frequent labels at every boundary; divided by the prior they are scaled likelihoods,
        ``p(x|v) ~ p(v|x) / p(v)`` (Bourlard & Morgan 1994), which do not. A weight of 0 changes nothing.

        Raises:
            ValueError: the head that made them keeps no prior.
        """
        if weight == 0:
            return self
        if self.log_prior is None:
            raise ValueError(
                f"Expected emissions of a head that keeps its labels' priors, to divide by their power {weight}; "
                "got one without. Train the head with track_prior: true, or set prior to 0."
            )
        return replace(self, logits=_wide(self.logits) - weight * self.log_prior)

    def log_probs(self) -> Tensor:
        """Log-probabilities ``(B, T, V)``, float32 at least."""
        return torch.log_softmax(_wide(self.logits), dim=-1)

    def weights(self) -> Tensor:
        """OT weights alpha ``(B, T)``: softmax over the valid frames, 0 elsewhere; uniform where there are none."""
        mask = length_mask(self.lengths, self.logits.shape[1])
        logits = self.logits.new_zeros(mask.shape) if self.weight_logits is None else self.weight_logits
        return torch.softmax(_wide(logits).masked_fill(~mask, -torch.inf), dim=-1)


@dataclass(frozen=True)
class Targets(_Movable):
    """A batch of label sequences.

    Attributes:
        labels: ``(B, U)`` int64; padding is never read.
        lengths: ``(B,)`` int64.
        durations: ``(B, U)`` float, seconds (or any unit: only ratios matter) each token lasts, where known.
        paths: ``(B, T)`` int64, for every frame the number of the token it carries or -1 for blank: a fixed
            alignment from a teacher, where there is one. Padded with -2.
        optional: ``(B, U)`` bool, tokens that may be skipped (silence between words), where there are any. Aligners
            without such a choice require every token.
        guide: ``(B, T)`` int64, for every frame the number of the token that another head hears there or -1 for none,
            padded with -2, never decreasing. Aligners that know how (:class:`isotone.interfaces.Aligner`) keep
            tokens near the frames where they were heard.
    """

    labels: Tensor
    lengths: Tensor
    durations: Tensor | None = None
    paths: Tensor | None = None
    optional: Tensor | None = None
    guide: Tensor | None = None

    def required(self) -> Targets:
        """The label sequences without the tokens that may be skipped; durations, paths and guides are not kept."""
        if self.optional is None:
            return Targets(self.labels, self.lengths)
        keep = length_mask(self.lengths, self.labels.shape[1]) & ~self.optional
        order = torch.argsort(~keep, dim=1, stable=True)
        return Targets(self.labels.gather(1, order), keep.sum(1))

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


@dataclass(frozen=True)
class Coupling(_Movable):
    """A sparse, monotone, possibly soft matching of n source positions to m target positions, for a batch.

    Entry k of row b says that source position ``source[b, k]`` carries ``mass[b, k]`` to target position
    ``target[b, k]``. Entries are sorted (source and target never decrease); padding has mass 0 and repeats the
    last entry's positions. A hard alignment has mass 1 an entry; an optimal-transport plan sums to 1.

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
