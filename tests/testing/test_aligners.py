"""Every law of aligners and decoders can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from isotone import aligners, decoders
from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner
from isotone.kernels.paths import coupling_from_paths
from isotone.testing import check_aligner, check_decoder
from isotone.types import Coupling, Emissions, Targets


class Made(Aligner):
    """An aligner made of a function."""

    def __init__(self, align: Callable[[Emissions, Targets], Coupling], **capabilities: bool) -> None:
        self.align = align
        vars(self).update(capabilities)

    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        return self.align(emissions, targets)


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (lambda c: None, "is an isotone.types.Coupling; got a NoneType"),
        (lambda c: replace(c, target=c.target.flip(1)), "never decrease"),
        (lambda c: replace(c, source=c.source + 1), "within the lengths"),
        (lambda c: replace(c, mass=-c.mass), "not negative"),
        (lambda c: replace(c, mass=c.mass * (c.target > 0)), "every token gets mass"),
        (lambda c: replace(c, target_lengths=c.target_lengths + 1), "target lengths"),
        (lambda c: replace(c, source_lengths=c.source_lengths + 1), "source lengths"),
        (lambda c: replace(c, mass=c.mass[:, :-1]), "have one shape"),
        (lambda c: replace(c, target=c.target.int()), "are int64"),
        (lambda c: replace(c, mass=c.mass / 0), "masses are finite"),
    ],
)
def test_an_aligner_that_breaks_a_law_is_caught(change: Callable[[Coupling], Coupling], law: str) -> None:
    good = aligners.build("ctc")
    with pytest.raises(AssertionError, match=law):
        check_aligner(Made(lambda emissions, targets: change(good(emissions, targets))))


def test_an_aligner_without_errors_is_caught() -> None:
    def even(emissions: Emissions, targets: Targets) -> Coupling:
        frame = torch.arange(emissions.logits.shape[1])
        paths = frame * targets.lengths[:, None] // emissions.lengths[:, None]
        paths = torch.where(frame < emissions.lengths[:, None], paths, -2)
        return coupling_from_paths(paths, emissions.lengths, targets.lengths)

    with pytest.raises(AssertionError, match="Expected an AlignmentError for 3 tokens in 2 frames"):
        check_aligner(Made(even))
    with pytest.raises(AssertionError, match="is a subclass of isotone"):
        check_aligner(even)  # type: ignore[arg-type]


def test_a_capability_that_is_declared_and_not_there_is_caught() -> None:
    good = aligners.build("ctc")

    def keeps_all(emissions: Emissions, targets: Targets) -> Coupling:
        return good(emissions, replace(targets, optional=None))

    def reads_guide(emissions: Emissions, targets: Targets) -> Coupling:
        found = good(emissions, targets)
        return found if targets.guide is None else replace(found, mass=2 * found.mass)

    check_aligner(Made(good, skips_optional=True))
    with pytest.raises(AssertionError, match="an optional token that no frame fits is left out"):
        check_aligner(Made(keeps_all, skips_optional=True))
    for takes, law in ((True, "a guide that agrees changes nothing"), (False, "a guide that is not taken")):
        with pytest.raises(AssertionError, match=law):
            check_aligner(Made(reads_guide, takes_guide=takes))
    with pytest.raises(AssertionError, match="tokens follow their guide"):
        check_aligner(Made(good, takes_guide=True))


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("inputs", "the inputs are not changed"),
        ("padding", "padding is never read"),
        ("alone", "the same alone as in a batch"),
        ("order", "the order of a batch does not matter"),
        ("row", "names row 1"),
        ("kind", "got KeyError"),
        ("NaN", "an AlignmentError for NaN in a valid frame"),
    ],
)
def test_an_aligner_that_depends_on_its_batch_or_has_other_errors_is_caught(fault: str, law: str) -> None:
    good = aligners.build("ctc")

    def broken(emissions: Emissions, targets: Targets) -> Coupling:
        if fault == "inputs":
            emissions.logits.add_(1)
        if fault == "NaN":
            emissions = replace(emissions, logits=emissions.logits.nan_to_num())
        try:
            found = good(emissions, targets)
        except AlignmentError:
            if fault in ("row", "kind"):
                raise AlignmentError("too short") if fault == "row" else KeyError("too short") from None
            raise
        wrong = {
            "padding": bool(emissions.logits.isnan().any()),
            "alone": len(found.mass) == 1,
            "order": len(found.mass) == 5 and int(emissions.lengths[0]) == 4,
        }
        return replace(found, mass=found.mass * (2 if wrong.get(fault) else 1))

    with pytest.raises(AssertionError, match=law):
        check_aligner(Made(broken))


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("blanks", "labels, not blanks"),
        ("rows", "one sequence per row"),
        ("lengths", "every token has at least one frame"),
        ("padding", "padding is never read"),
        ("alone", "the same alone as in a batch"),
        ("labels", "certain emissions are decoded"),
        ("frames", "the middle of a token's frames"),
        ("no tokens", "rows without tokens are still rows"),
    ],
)
def test_a_decoder_that_breaks_a_law_is_caught(fault: str, law: str) -> None:
    good = decoders.build("ctc-greedy")

    def broken(emissions: Emissions) -> tuple[Targets, Coupling]:
        tokens, coupling = good(emissions)
        rows, certain = len(tokens.lengths), emissions.logits.shape[1] == 19
        match fault:
            case "blanks":
                return replace(tokens, labels=torch.full_like(tokens.labels, emissions.blank)), coupling
            case "rows":
                return Targets(tokens.labels[1:], tokens.lengths[1:]), coupling
            case "lengths":
                return replace(tokens, lengths=tokens.lengths + 12), coupling
            case "padding" if emissions.logits.isnan().any():
                return replace(tokens, labels=tokens.labels + 1), coupling
            case "alone" if rows == 1:
                return replace(tokens, labels=tokens.labels + 1), coupling
            case "labels" if certain:
                return replace(tokens, labels=tokens.labels.clamp(max=2)), coupling
            case "frames":
                return tokens, replace(coupling, source=(coupling.source - 2).clamp(min=0))
            case "no tokens" if not tokens.lengths.any():
                return Targets(tokens.labels[1:], tokens.lengths[1:]), coupling
        return tokens, coupling

    with pytest.raises(AssertionError, match=law):
        check_decoder(broken)


def test_an_aligner_that_takes_the_worse_way_is_caught() -> None:
    good = aligners.build("ctc")

    def align(emissions: Emissions, targets: Targets, cost: float) -> Coupling:
        graph = targets.graph
        return good(
            emissions,
            targets if graph is None else replace(targets, graph=replace(graph, costs=graph.costs * cost)),
        )

    check_aligner(Made(lambda e, t: align(e, t, 1.0), skips_optional=True, takes_graph=True))
    with pytest.raises(AssertionError, match="the better way is taken"):
        check_aligner(Made(lambda e, t: align(e, t, 100.0), skips_optional=True, takes_graph=True))


def test_an_aligner_that_takes_all_ways_is_caught() -> None:
    good = aligners.build("ctc")
    blind = Made(lambda e, t: good(e, replace(t, graph=None)), skips_optional=True, takes_graph=True)
    with pytest.raises(AssertionError, match="are those of one way"):
        check_aligner(blind)


def test_an_aligner_that_leaves_tokens_of_one_way_out_is_caught() -> None:
    good = aligners.build("ctc")

    def align(emissions: Emissions, targets: Targets) -> Coupling:
        found = good(emissions, targets)
        return found if targets.graph is None else replace(found, mass=found.mass * (found.target > 0))

    with pytest.raises(AssertionError, match="a graph with one way changes nothing"):
        check_aligner(Made(align, skips_optional=True, takes_graph=True))
