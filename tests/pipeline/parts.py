"""Parts of pipelines for tests: small models, given emissions, and an aligner that records its targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from isotone.alignment import Alignment
from isotone.interfaces import Aligner
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.pipeline import Pipeline
from isotone.pipeline.emitter import Emitter
from isotone.pipeline.result import Result
from isotone.pipeline.stars import STAR, STAR_NUMBER
from isotone.pipeline.windows import Windows
from isotone.text.pronounce import Pronouncer
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer, Transcript
from isotone.types import Coupling, Emissions, Grid, Targets
from tests.tiny_models import ENCODER, LETTERS, PHONES


@dataclass(frozen=True)
class GivenEmissions(Emitter):
    """An emitter of given emissions, whatever the audio; a second pass may have others."""

    first: dict[str, Emissions] = field(default_factory=dict)
    second: dict[str, Emissions] = field(default_factory=dict)
    seen: list[Windows] = field(default_factory=list)

    def __call__(
        self,
        ids: Sequence[str],
        audio: Sequence[np.ndarray],
        heads: set[str],
        on_window: Callable[[float], None] = lambda share: None,
    ) -> dict[str, Emissions]:
        return self.first

    def in_windows(self, audio: np.ndarray, heads: set[str], windows: Windows) -> dict[str, Emissions]:
        self.seen.append(windows)
        return self.second or super().in_windows(audio, heads, windows)


def give(pipeline: Pipeline, emissions: Emissions, second: Emissions | None = None) -> list[Windows]:
    """Give a pipeline these emissions for any audio; return the list of the windows of its second passes."""
    emitter = pipeline.emitter
    first, again = {"ctc": emissions}, {} if second is None else {"ctc": second}
    pipeline.emitter = GivenEmissions(emitter.model, emitter.windows, None, first, again)
    return pipeline.emitter.seen


class Spy(Aligner):
    """An aligner that records its targets."""

    def __init__(self, inner: Aligner) -> None:
        self.inner = inner
        self.skips_optional = inner.skips_optional
        self.seen: list[Targets] = []

    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        self.seen.append(targets)
        return self.inner(emissions, targets)


def watch(pipeline: Pipeline) -> Spy:
    """Replace a pipeline's aligner by a spy."""
    spy = Spy(pipeline.aligner)
    pipeline.placer = replace(pipeline.placer, aligner=spy)
    placer = pipeline.placer if pipeline.recogniser.placer else None
    pipeline.recogniser = replace(pipeline.recogniser, placer=placer)
    return spy


HEADS = {
    "ctc": {"name": "ctc"},
    "ottc": {"name": "ottc", "reads": "features", "layers": 1, "width": 8},
}

HOP_S = 0.02
CHARACTERS = ["<pad>", "<unk>", "|", *LETTERS]


def model_of_characters(times: str = "ottc", aligner: str = "segmental") -> Model:
    torch.manual_seed(0)
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, times, {"name": aligner})
    model = Model(SpeechEncoder(ENCODER), HEADS, CharacterTokenizer(CHARACTERS), reading)
    with torch.no_grad():
        model.heads["ctc"].lm_head.weight.mul_(20)  # so that it says many labels
    return model


def model_of_phones(silence: str | None = "sil") -> Model:
    torch.manual_seed(0)
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, "", {"name": "segmental"})
    return Model(
        SpeechEncoder(ENCODER), {"ctc": {"name": "ctc"}}, PhoneTokenizer(PHONES, None, silence), reading
    )


def noise(seconds: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.1, round(seconds * 16_000)).astype(np.float32)


def check_times(alignment: Alignment, seconds: float) -> None:
    """Check that times are in order, inside the audio and not empty, and scores in their ranges."""
    assert alignment.duration == seconds
    for tier in alignment.tiers:
        times = [t for s in tier for t in (s.start, s.end)]
        assert times == sorted(times)
        assert all(0 <= t <= seconds for t in times)
        assert all(s.end > s.start for s in tier)
        assert all(s.score is not None and s.score <= 0 for s in tier)
        assert all(s.confidence is not None and 0 <= s.confidence <= 1 for s in tier)


def starts(result: Result) -> list[float]:
    return [s.start for s in result.alignment.tier("characters")]


class Spelt(Pronouncer):
    """Words of the letters a, i, s and t."""

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        return [[{"a": "aa", "i": "iy"}.get(c, c) for c in w] if {*w} <= {*"aist"} else None for w in words]

    def save(self, folder: Path) -> dict[str, str]:
        return {}


SPELT = PhoneTokenizer(PHONES, Spelt(), "sil")


def shown(transcript: Transcript, labels: Sequence[str]) -> str:
    return " ".join(STAR if t == STAR_NUMBER else labels[t] for t in transcript.tokens)


def phone_model() -> Model:
    torch.manual_seed(0)
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, "", {"name": "ctc"})
    return Model(SpeechEncoder(ENCODER), {"ctc": {"name": "ctc"}}, SPELT, reading)


def emissions_of(path: str, sure: float = 8.0) -> Emissions:
    """Make emissions whose best labels are ``path``, one letter per frame: ``.`` is silence, ``_`` the blank."""
    names = {"_": "<pad>", ".": "sil", "a": "aa", "i": "iy"}
    labels = torch.tensor([[PHONES.index(names.get(c, c)) for c in path]])
    logits = sure * torch.nn.functional.one_hot(labels, len(PHONES)).float()
    return Emissions(logits, torch.tensor([len(path)]), Grid(HOP_S))
