"""Laws of decoders."""

from __future__ import annotations

import torch

from isotone.interfaces import Decoder
from isotone.testing.aligners import check_coupling
from isotone.testing.batches import alone, poisoned, sample_batch
from isotone.testing.laws import close, require
from isotone.types import Emissions, Grid, Targets


def check_decoder(decoder: Decoder) -> None:
    """Check a decoder: tokens and coupling within the lengths, and the right tokens where probabilities are near 1."""
    emissions, _ = sample_batch()
    tokens, coupling = decoder(emissions)
    _check_tokens(tokens, emissions)
    check_coupling(coupling, emissions.lengths, tokens.lengths)
    again, same = decoder(poisoned(emissions))
    require(again.tolist() == tokens.tolist(), "padding is never read")
    close(same.dense(), coupling.dense(), "padding is never read")
    for row, expected in enumerate(tokens.tolist()):
        single, _ = decoder(alone(emissions, row))
        got = single.tolist()[0]
        require(got == expected, f"a row gives the same alone as in a batch: {got}, not {expected}")
    _check_certain(decoder)


def _check_tokens(tokens: Targets, emissions: Emissions) -> None:
    vocab_size = emissions.logits.shape[2]
    require(len(tokens.lengths) == len(emissions.lengths), "one sequence per row")
    require(bool((tokens.lengths <= emissions.lengths).all()), "every token has at least one frame")
    labels = [label for row in tokens.tolist() for label in row]
    require(
        all(0 <= x < vocab_size and x != emissions.blank for x in labels), "tokens are labels, not blanks"
    )


def _check_certain(decoder: Decoder) -> None:
    """Decode emissions whose best label has a probability near 1 in every frame, and rows of blanks alone."""
    path = torch.tensor([[0, 3, 3, 3, 3, 0, 0, 0, 3, 3, 3, 3, 1, 1, 1, 1, 0, 0, 0], [2] * 5 + [0] * 14])
    logits = 50.0 * torch.nn.functional.one_hot(path, 4)
    tokens, coupling = decoder(Emissions(logits, torch.tensor([19, 5]), Grid(0.02)))
    got = tokens.tolist()
    require(got == [[3, 3, 1], [2]], f"certain emissions are decoded: [[3, 3, 1], [2]], not {got}")
    assigned = coupling.hard().dense()[0] > 0
    middles = assigned[2, 0] & assigned[10, 1] & assigned[14, 2]
    require(bool(middles), "the middle of a token's frames is that token's")
    blank = -logits[:, :4].abs() * torch.tensor([0.0, 1, 1, 1])
    empty, _ = decoder(Emissions(blank, torch.tensor([4, 4]), Grid(0.02)))
    require(len(empty.tolist()) == 2, "rows without tokens are still rows")
