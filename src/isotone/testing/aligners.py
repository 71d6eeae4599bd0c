"""Laws of aligners, and of the couplings that aligners and decoders return."""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner
from isotone.testing.batches import alone, poisoned, sample_batch
from isotone.testing.laws import close, raises, require
from isotone.types import (
    NO_TOKEN,
    PAST_END,
    Coupling,
    Emissions,
    FramePath,
    Targets,
    TokenGraph,
    length_mask,
)
from isotone.types.graph import line


def check_aligner(aligner: Aligner) -> None:
    """Check an aligner: ordered couplings that reach every token, its errors, and the capabilities it declares."""
    require(isinstance(aligner, Aligner), "an aligner is a subclass of isotone.interfaces.Aligner")
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
    shuffled = aligner(emissions.rows(order), targets.rows(order))
    close(shuffled.dense(), coupling.dense()[order], "the order of a batch does not matter")
    short = replace(emissions, lengths=torch.tensor([12, 2, 7, 4, 10]))
    _check_error(aligner, short, targets, "3 tokens in 2 frames")
    broken = replace(emissions, logits=emissions.logits.clone())
    broken.logits[1, 3] = torch.nan
    _check_error(aligner, broken, targets, "NaN in a valid frame")
    _check_optional(aligner)
    _check_guide(aligner)
    if aligner.takes_graph:
        _check_one_way(aligner)
        _check_two_ways(aligner)
    require(isinstance(aligner.holding(2), Aligner), "holding gives an aligner")
    require(isinstance(aligner.leaning(0.5), Aligner), "leaning gives an aligner")
    best = aligner.frame_scores(emissions)
    if best is not None:
        require(coupling.score is not None, "an aligner with frame scores gives scores")
        assert coupling.score is not None
        valid = length_mask(emissions.lengths, best.shape[1])
        most = best.amax(-1).masked_fill(~valid, 0.0).sum(1)
        require(
            bool((coupling.score <= most + 1e-3).all()), "no score exceeds the sum of the best frame scores"
        )


def check_coupling(coupling: Coupling, source_lengths: Tensor, target_lengths: Tensor) -> None:
    """Check a coupling: ordered, within the lengths, masses finite and not negative."""
    what = type(coupling).__name__
    require(isinstance(coupling, Coupling), f"the matching is an isotone.types.Coupling; got a {what}")
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
    row = getattr(error, "row", None)
    require(
        row == 1, f"the AlignmentError of {case} names row 1, as its attribute `row`; got {row} ({error})"
    )


def _check_optional(aligner: Aligner) -> None:
    """An aligner that skips optional tokens leaves out one that no frame fits, and keeps the others."""
    if not aligner.skips_optional:
        return
    emissions, targets = sample_batch()
    wrong = int(targets.labels[0, 1])
    logits = emissions.logits.clone()
    logits[0, :, wrong] = -50.0
    optional = torch.zeros_like(targets.labels, dtype=torch.bool)
    optional[0, 1] = True
    labels = targets.labels.clone()
    labels[0] = torch.tensor([1 + wrong % 5, wrong, 1 + wrong % 5, 1 + (wrong + 1) % 5])
    coupling = aligner(replace(emissions, logits=logits), replace(targets, labels=labels, optional=optional))
    held = coupling.dense()[0].sum(0) > 0
    require(held.tolist() == [True, False, True, True], "an optional token that no frame fits is left out")


def _check_one_way(aligner: Aligner) -> None:
    """A graph with one way through all tokens changes nothing."""
    emissions, targets = sample_batch()
    counts = targets.lengths.tolist()
    graph = TokenGraph.from_lists(
        [line([False] * n) for n in counts], [[(0.0, 0.0)] * n for n in counts], [[False] * n for n in counts]
    )
    found = aligner(emissions, replace(targets, graph=graph))
    check_coupling(found, emissions.lengths, targets.lengths)
    law = "a graph with one way changes nothing"
    close(found.dense(), aligner(emissions, targets).dense(), law)


def _check_two_ways(aligner: Aligner) -> None:
    """Of two ways through a graph an aligner takes the better one, with its costs, and aligns as if it were alone."""
    readings, cost = ([0, 1, 2, 4], [0, 3, 4]), 0.5
    ways = [[(-1, 0.0)], [(0, 0.0)], [(1, 0.0)], [(0, cost)], [(2, 0.0), (3, 0.0)], [(4, 0.0)]]
    graph = TokenGraph.from_lists([ways], [[(0.0, 0.0)] * 5], [[False] * 5])
    whole = Targets.from_lists([[1, 2, 3, 4, 5]], graph=graph)
    for seed in range(4):
        emissions = alone(sample_batch(seed=seed)[0], 0)
        found = aligner(emissions, whole)
        taken = found.dense()[0].sum(0) > 0
        reading = next((own for own in readings if own == taken.nonzero()[:, 0].tolist()), None)
        require(reading is not None, f"the tokens with mass are those of one way; got {taken.tolist()}")
        single = [aligner(emissions, Targets.from_lists([[1 + u for u in own]])) for own in readings]
        chosen = single[readings.index(reading)]
        close(found.dense()[:, :, reading], chosen.dense(), "a way is aligned as if it were alone")
        if found.score is not None:
            best = max(float(c.score) - paid for c, paid in zip(single, (0.0, cost)) if c.score is not None)
            close(found.score, found.score.new_tensor([best]), "the better way is taken")


def _check_guide(aligner: Aligner) -> None:
    """A guide that agrees with the alignment changes nothing; nor does any guide where none is taken."""
    emissions, targets = sample_batch()
    coupling = aligner(emissions, targets)
    guided = replace(targets, guide=coupling.path(emissions.logits.shape[1]))
    law = (
        "a guide that agrees changes nothing"
        if aligner.takes_guide
        else "a guide that is not taken changes nothing"
    )
    close(aligner(emissions, guided).dense(), coupling.dense(), law)
    if aligner.takes_guide:
        _check_follows(aligner, emissions)
    else:
        late = torch.where(guided.guide.valid, (guided.guide.tokens > 0).long() - 1, PAST_END)  # type: ignore[union-attr]
        other = aligner(emissions, replace(targets, guide=FramePath(late)))
        close(other.dense(), coupling.dense(), law)


def _check_follows(aligner: Aligner, emissions: Emissions) -> None:
    """Tokens that a guide hears later lie later, where all labels score the same."""
    flat = replace(emissions, logits=torch.zeros_like(emissions.logits)).rows([0])
    targets = Targets.from_lists([[1, 2, 3, 4]])
    frame = torch.arange(flat.logits.shape[1])
    means = []
    for first in (0, len(frame) - 7):
        path = torch.full((1, len(frame)), NO_TOKEN)
        path[0, first : first + 7 : 2] = torch.arange(4)
        mass = aligner(flat, replace(targets, guide=FramePath(path))).dense()[0]
        means.append(
            (frame.to(mass.dtype) @ mass / mass.sum(0))[1:3]
        )  # the outer tokens may have all frames beyond theirs
    require(bool((means[0] < means[1]).all()), "where all labels score the same, tokens follow their guide")
