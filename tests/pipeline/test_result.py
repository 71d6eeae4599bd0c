"""The quiet frames of a result."""

from __future__ import annotations

import torch

from isotone.pipeline import Pipeline
from isotone.pipeline.result import quiet_frames
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer
from isotone.types import Emissions, Grid
from tests.pipeline.parts import CHARACTERS, noise
from tests.tiny_models import PHONES


def test_quiet_frames() -> None:
    best = torch.tensor([[0, 1, 2, 2, 0, 0], [2, 0, 1, 0, 0, 0]])
    logits = torch.nn.functional.one_hot(best, 4).float()
    emissions = Emissions(logits, torch.tensor([5, 3]), Grid(0.02), blank=0)
    plain, delimited = (
        CharacterTokenizer(["<pad>", "a", "b", "c"]),
        CharacterTokenizer(["<pad>", "a", "|", "c"]),
    )
    assert quiet_frames(emissions, plain).tolist() == (best == 0).tolist()
    assert quiet_frames(emissions, delimited).tolist() == ((best == 0) | (best == 2)).tolist()
    silence = PhoneTokenizer(["<pad>", "aa", "sil", "t"], silence="sil")
    assert quiet_frames(emissions, silence).tolist() == ((best == 0) | (best == 2)).tolist()
    other = Emissions(logits, torch.tensor([5, 3]), Grid(0.02), blank=1)
    assert quiet_frames(other, plain).tolist() == (best == 1).tolist()
    # of two states of silence and aa, the second have the numbers 6 and 5
    states = torch.nn.functional.one_hot(torch.tensor([[6, 5, 2, 0, 7]]), 8).float()
    found = quiet_frames(Emissions(states, torch.tensor([5]), Grid(0.02), blank=0), silence)
    assert found.tolist() == [[True, False, True, True, False]]
    assert CharacterTokenizer(CHARACTERS).delimiter_number == 2
    assert PhoneTokenizer(PHONES).delimiter_number is None


def test_quiet_frames_of_a_result(characters: Pipeline) -> None:
    samples = noise(1.5)
    with torch.inference_mode():
        emissions = characters.model(torch.from_numpy(samples)[None], torch.tensor([24_000]))[
            characters.times
        ]
    best = emissions.logits[0].argmax(-1)
    result = characters.transcribe("u", samples)
    listed = torch.zeros(len(best), dtype=torch.bool)
    for first, end in result.quiet:
        listed[first:end] = True
    assert torch.equal(listed, (best == 0) | (best == 2))
    assert all(a[1] < b[0] for a, b in zip(result.quiet, result.quiet[1:]))
    assert (result.frames, result.grid) == (len(best), emissions.grid)
