"""Laws of aligners, and of the couplings that aligners and decoders return."""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner
from isotone.testing.batches import alone, poisoned, rows, sample_batch
from isotone.testing.laws import close, raises, require
from isotone.types import Coupling, Emissions, Targets, length_mask


def check_aligner(aligner: Aligner) -> None:
    """Check an aligner: an ordered coupling within the lengths that reaches every token, and its errors."""
    emissions, targets = sample_batch()
    before = copy.deepcopy((emissions.logits, targets.labels))
    coupling = aligner(emissions, targets)
    unchanged = torch.equal(before[0], emissions.logits) and torch.equal(before[1], targets.labels)
    require(unchanged, "the inputs are not changed")
    check_coupling(coupling, emissions.lengths, targets.lengths)
    reached = coupling.dense().sum(1) > 0
    require(torch.equal(reached, length_mask(targets.lengths, 4)), "every token gets mass, and padding none")
    close(aligner(poisoned(emissions), poisoned(targets)).dense(), coupling.dense(), "padding is never read")
    for row in range(5):
        single = aligner(alone(emissions, row), alone(targets, row))
        n, m = int(emissions.lengths[row]), int(targets.lengths[row])
        close(single.dense()[0], coupling.dense()[row, :n, :m], "a row gives the same alone as in a batch")
    order = torch.tensor([3, 0, 4, 2, 1])
    shuffled = aligner(rows(emissions, order), rows(targets, order))
    close(shuffled.dense(), coupling.dense()[order], "the order of a batch does not matter")
    short = replace(emissions, lengths=torch.tensor([12, 2, 7, 4, 10]))
    _check_error(aligner, short, targets, "3 tokens in 2 frames")
    broken = replace(emissions, logits=emissions.logits.clone())
    broken.logits[1, 3] = torch.nan
    _check_error(aligner, broken, targets, "NaN in a valid frame")


def check_coupling(coupling: Coupling, source_lengths: Tensor, target_lengths: Tensor) -> None:
    """Check a coupling: ordered, within the lengths, masses finite and not negative."""
    c = coupling
    require(c.source.shape == c.target.shape == c.mass.shape, "source, target and mass have one shape")
    require(c.source.dtype == c.target.dtype == torch.int64, "source and target are int64")
    require(torch.equal(c.source_lengths, source_lengths), "source lengths are those of the emissions")
    require(torch.equal(c.target_lengths, target_lengths), "target lengths are those of the targets")
    require(bool((torch.isfinite(c.mass) & (c.mass >= 0)).all()), "masses are finite and not negative")
    ordered = (c.source.diff(dim=1) >= 0).all() & (c.target.diff(dim=1) >= 0).all()
    require(bool(ordered), "source and target never decrease")
    limits = ((c.source, source_lengths), (c.target, target_lengths))
    inside = [(position >= 0) & (position < size.clamp(min=1)[:, None]) for position, size in limits]
    require(bool(torch.stack(inside).all()), "positions lie within the lengths")
    spans = c.hard().spans()
    require(bool((spans.diff(dim=-1) >= 0).all()), "spans end after they start")


def _check_error(aligner: Aligner, emissions: Emissions, targets: Targets, case: str) -> None:
    error = raises(AlignmentError, lambda: aligner(emissions, targets), case)
    require("row 1" in str(error).lower(), f"the AlignmentError of {case} names row 1; got {str(error)!r}")
