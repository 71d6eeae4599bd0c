"""The blank frames of a result."""

from __future__ import annotations

import torch

from isotone.pipeline import Pipeline
from isotone.pipeline.result import blank_frames
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer
from isotone.types import Emissions, Grid
from tests.pipeline.parts import CHARACTERS, noise
from tests.tiny_models import PHONES


def test_blank_frames() -> None:
    best = torch.tensor([[0, 1, 2, 2, 0, 0], [2, 0, 1, 0, 0, 0]])
    logits = torch.nn.functional.one_hot(best, 4).float()
    emissions = Emissions(logits, torch.tensor([5, 3]), Grid(0.02), blank=0)
    assert blank_frames(emissions).tolist() == [2, 1]
    assert blank_frames(emissions, 2).tolist() == [4, 2]
    assert blank_frames(Emissions(logits, torch.tensor([5, 3]), Grid(0.02), blank=1)).tolist() == [1, 1]
    assert CharacterTokenizer(CHARACTERS).delimiter_number == 2
    assert CharacterTokenizer(["<pad>", "a"]).delimiter_number is None
    assert PhoneTokenizer(PHONES).delimiter_number is None


def test_blank_and_delimiter_frames_of_a_result(characters: Pipeline) -> None:
    samples = noise(1.5)
    with torch.inference_mode():
        logits = characters.model(torch.from_numpy(samples)[None], torch.tensor([24_000]))[
            characters.times
        ].logits
    best = logits[0].argmax(-1)
    result = characters.transcribe("u", samples)
    assert result.blank_frames == int(((best == 0) | (best == 2)).sum())
    assert result.frames == len(best)
