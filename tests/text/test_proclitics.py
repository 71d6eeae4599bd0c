"""Proclitics: their vowels are short, unless the sound says clearly that they are drawn out."""

from __future__ import annotations

import pytest
import torch

from isotone import aligners
from isotone.pipeline.lattices import chosen, lattices_of
from isotone.pipeline.texts import with_pauses
from isotone.text.closures import ClosureRules
from isotone.text.proclitics import DRAWN_OUT_COST, LEAST_TO_PAUSE, LONGEST_S, beside_pauses
from isotone.text.pronouncer import Pauses, Pronunciation
from isotone.text.tokenizer import PhoneTokenizer
from isotone.text.word_graph import paid, straight
from isotone.types import Emissions, Grid
from tests.text.test_closures import LABELS, Said

PROCLITIC, FREE = Pauses(to_pause=LEAST_TO_PAUSE), Pauses(to_pause=LEAST_TO_PAUSE / 2)
HOP_S = 0.02


class Paused(Said):
    """*A*, a proclitic or not, and *mm*."""

    def __init__(self, pauses: Pauses) -> None:
        super().__init__(a=[("ae", 0.0)], mm=[("m", 0.0)])
        self.pauses = pauses

    def alternatives(self, words: list[str]) -> list[list[Pronunciation]]:
        found = zip(words, super().alternatives(words))
        return [
            [one._replace(pauses=self.pauses) if word == "a" else one for one in said] for word, said in found
        ]


def test_a_vowel_beside_every_vowel_of_a_proclitic() -> None:
    graph = straight([LABELS.index(x) for x in ("s", "iy", "s", "ae")])
    assert beside_pauses(graph, FREE, LABELS) == paid(graph, *FREE)
    found = beside_pauses(graph, PROCLITIC, LABELS)
    assert [LABELS[part.label] for part in found] == ["s", "iy", "iy", "s", "ae", "ae"]
    assert [part.longest_s for part in found] == [0, LONGEST_S, 0, 0, LONGEST_S, 0]
    drawn = DRAWN_OUT_COST
    assert [part.before for part in found] == [
        (), ((0, 0.0),), ((0, drawn),), ((1, 0.0), (2, 0.0)), ((3, 0.0),), ((3, drawn),),
    ]  # fmt: skip
    assert [part.to_pause for part in found] == [None] * 4 + [PROCLITIC.to_pause] * 2
    first = beside_pauses(straight([LABELS.index("ae")]), PROCLITIC, LABELS)
    assert [(part.from_speech, part.from_pause) for part in first] == [(0.0, 0.0), (drawn, drawn)]


@pytest.mark.parametrize(
    ("pauses", "margin", "lasts"),
    [(PROCLITIC, 0.3, LONGEST_S), (PROCLITIC, 3.0, 0.6), (FREE, 0.3, 0.6)],
    ids=["a hesitation", "drawn out", "no proclitic"],
)
def test_a_hesitation_before_a_word_is_not_its_vowel(pauses: Pauses, margin: float, lasts: float) -> None:
    tokenizer = PhoneTokenizer(LABELS, Paused(pauses), "sil", closures=ClosureRules())
    text = with_pauses(tokenizer, tokenizer.encode("mm a mm"), segmental := aligners.build("segmental"))
    logits = torch.full((1, 40, len(LABELS)), -20.0)
    logits[0, :5, LABELS.index("m")] = logits[0, 35:, LABELS.index("m")] = 0.0
    logits[0, 5:35, LABELS.index("sil")] = 0.0
    logits[0, 5:35, LABELS.index("ae")] = margin
    unfolded, targets = lattices_of([text])
    coupling = segmental(Emissions(logits, torch.tensor([40]), Grid(HOP_S)), targets)
    (said,), _, coupling = chosen(unfolded, targets, coupling)
    (a,) = (u for u, label in enumerate(said.transcript.tokens) if LABELS[label] == "ae")
    start, end = coupling.spans()[0, a].tolist()
    assert (end - start) * HOP_S == pytest.approx(lasts, abs=HOP_S)
