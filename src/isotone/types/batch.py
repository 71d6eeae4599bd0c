"""Batches: tensors with a row per utterance and their lengths, and what every kind of batch can do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

from isotone.tensors import Tensor, torch


def check_integers(*lengths: Any) -> None:
    """Raise ValueError for lengths of another type than integers: some readers round their fractions up, others down.

    Args:
        lengths: Arrays or tensors ``(B,)``; None is skipped. Without rows the type is not looked at.
    """
    for given in lengths:
        if given is not None and not _counts(given.dtype) and 0 not in given.shape:
            raise ValueError(
                f"Expected lengths as integers, such as int64; got {given.dtype}. Round and convert them first."
            )


def _counts(dtype: Any) -> bool:
    kind = getattr(dtype, "kind", None)  # of numpy; torch has no kinds
    if kind is not None:
        return kind in "iu"
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """Mask of the valid positions: ``(B, size)`` bool, true where position < length.

    Raises:
        ValueError: lengths that are no integers.
    """
    check_integers(lengths)
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def marks(rows: Iterable[Sequence[bool]], labels: Tensor) -> Tensor:
    """Pad marks of tokens to the shape of their labels ``(B, U)``: bool, false in the padding."""
    out = torch.zeros_like(labels, dtype=torch.bool)
    for row, flags in zip(out, rows):
        row[: len(flags)] = torch.tensor(flags, dtype=torch.bool)
    return out


def mask_rows(values: Tensor, lengths: Tensor | None) -> Tensor:
    """Set ``(B, L, ...)`` to zero beyond the lengths ``(B,)``, NaN included; None changes nothing."""
    if lengths is None:
        return values
    mask = length_mask(lengths, values.shape[1])
    return values.masked_fill(~mask.view(*mask.shape, *[1] * (values.ndim - 2)), 0.0)


def widened(values: Tensor) -> Tensor:
    """Half precision as float32; wider types unchanged."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def row_index(rows: Sequence[int]) -> slice | list[int]:
    """Return an index of rows: a slice, which copies nothing, if they follow each other, else a list."""
    if rows and rows[0] >= 0 and list(rows) == list(range(rows[0], rows[0] + len(rows))):
        return slice(rows[0], rows[0] + len(rows))
    return list(rows)


class Batch:
    """Base of the dataclasses whose tensors have a row per utterance."""

    #: Fields that all rows share.
    shared: ClassVar[frozenset[str]] = frozenset()

    def to(self, device: torch.device | str) -> Self:
        """Move every tensor to a device."""
        return self._changed(lambda name, value: value.to(device))

    def rows(self, rows: slice | Sequence[int] | Tensor) -> Self:
        """Select rows, in the order given and as often as given; their padding stays."""
        index = rows if isinstance(rows, slice | torch.Tensor) else row_index(rows)
        return self._changed(lambda name, value: value if name in self.shared else value[index])

    def _changed(self, change: Any) -> Self:
        """Apply ``change(name, value)`` to every tensor, those of batches inside this one included."""
        found = ((f.name, getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        changed = {
            name: value._changed(change) if isinstance(value, Batch) else change(name, value)
            for name, value in found
            if isinstance(value, torch.Tensor | Batch)
        }
        return replace(self, **changed)  # type: ignore[type-var]
