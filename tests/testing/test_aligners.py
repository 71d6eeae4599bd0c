"""Every law of aligners and decoders can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from isotone import aligners, decoders
from isotone.interfaces import Aligner
from isotone.kernels.paths import coupling_from_paths
from isotone.testing import check_aligner, check_decoder
from isotone.types import Coupling, Emissions, Targets


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (lambda c: replace(c, target=c.target.flip(1)), "never decrease"),
        (lambda c: replace(c, source=c.source + 1), "within the lengths"),
        (lambda c: replace(c, mass=-c.mass), "not negative"),
        (lambda c: replace(c, mass=c.mass * (c.target > 0)), "every token gets mass"),
        (lambda c: replace(c, target_lengths=c.target_lengths + 1), "target lengths"),
    ],
)
def test_an_aligner_that_breaks_a_law_is_caught(change: Callable[[Coupling], Coupling], law: str) -> None:
    good = aligners.build("ctc")
    with pytest.raises(AssertionError, match=law):
        check_aligner(lambda emissions, targets: change(good(emissions, targets)))


def test_an_aligner_without_errors_is_caught() -> None:
    def even(emissions: Emissions, targets: Targets) -> Coupling:
        frame = torch.arange(emissions.logits.shape[1])
        paths = frame * targets.lengths[:, None] // emissions.lengths[:, None]
        paths = torch.where(frame < emissions.lengths[:, None], paths, -2)
        return coupling_from_paths(paths, emissions.lengths, targets.lengths)

    aligner: Aligner = even
    with pytest.raises(AssertionError, match="Expected an AlignmentError for 3 tokens in 2 frames"):
        check_aligner(aligner)


def test_a_decoder_that_keeps_blanks_is_caught() -> None:
    good = decoders.build("ctc-greedy")

    def broken(emissions: Emissions) -> tuple[Targets, Coupling]:
        tokens, coupling = good(emissions)
        return replace(tokens, labels=torch.full_like(tokens.labels, emissions.blank)), coupling

    with pytest.raises(AssertionError, match="labels, not blanks"):
        check_decoder(broken)
