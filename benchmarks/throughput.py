"""Forced alignment of batches of recordings, from samples in memory to tiers of words: the whole pipeline.

Encoders of Wav2Vec2's sizes have random weights, which cost what trained ones do; the pack ``english`` is as shipped.
Recordings are noise, so that detection of edges, which costs what the recording is worth, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.harness import Bench, Peer, Size
from benchmarks.training import letters_of
from benchmarks.training_large import wav2vec2
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.pipeline import Pipeline
from isotone.pipeline.result import Result
from isotone.text.tokenizer import Transcript

_RATE = 16_000
_WORDS = ["she", "had", "your", "dark", "suit", "in", "greasy", "wash", "water", "all", "year"]
_WORDS_A_SECOND = 2.5


class Work(NamedTuple):
    """A model on a device, recordings of one length, and their texts."""

    model: Model
    audio: list[np.ndarray]
    texts: list[Transcript]
    device: str = "cpu"

    def on(self, device: str) -> Work:
        return self._replace(model=self.model.to(device), device=device)

    @property
    def pipeline(self) -> Pipeline:
        return Pipeline(self.model, device=self.device, edges=False)


def of_letters(dims: Mapping[str, int]) -> Work:
    """Make an encoder of so many layers and features with a CTC head of letters."""
    torch.manual_seed(0)
    tokenizer = letters_of(29)
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, "ctc", {"name": "ctc"})
    model = Model(SpeechEncoder(wav2vec2(dims)), {"ctc": {"name": "ctc"}}, tokenizer, reading)
    return _work(model.eval(), dims)


def of_english(dims: Mapping[str, int]) -> Work:
    return _work(Model.load("english"), dims)


def _work(model: Model, dims: Mapping[str, int]) -> Work:
    rng = np.random.default_rng(0)
    pipeline = Pipeline(model)
    audio = [rng.normal(0, 0.1, dims["seconds"] * _RATE).astype(np.float32) for _ in range(dims["B"])]
    count = max(1, round(dims["seconds"] * _WORDS_A_SECOND))
    texts = [pipeline.encode(" ".join(rng.choice(_WORDS, count))) for _ in audio]
    return Work(model, audio, texts)


def _ids(work: Work) -> list[str]:
    return [str(i) for i in range(len(work.audio))]


def ours(work: Work) -> list[Result]:
    return work.pipeline.align_batch(_ids(work), work.audio, work.texts)


def ours_in_half(work: Work) -> list[Result]:
    """Align with the encoder under autocast to bfloat16, as it may have been trained."""
    with torch.autocast(work.device, torch.bfloat16):
        return ours(work)


def encoder_alone(work: Work) -> dict[str, torch.Tensor]:
    """Compute the emissions and nothing more."""
    emitted = work.pipeline.emitter(_ids(work), work.audio, {work.model.decoding.times or "ctc"})
    return {name: emissions.logits for name, emissions in emitted.items()}


def torchaudio_align(work: Work) -> list[list[tuple[int, int]]]:
    """Run the same encoder, then torchaudio's ``forced_align`` row by row, as its tutorial does; first frames."""
    from torchaudio.functional import forced_align

    emissions = work.pipeline.emitter(_ids(work), work.audio, {"ctc"})["ctc"]
    log_probs, spans = emissions.log_probs(), []
    for row, (frames, text) in enumerate(zip(emissions.lengths.tolist(), work.texts)):
        labels = torch.tensor([text.tokens], device=log_probs.device, dtype=torch.int32)
        path, _ = forced_align(log_probs[row : row + 1, :frames], labels, blank=emissions.blank)
        found = path[0].tolist()
        spans.append([(t, label) for t, label in enumerate(found) if label and label != found[max(0, t - 1)]])
    return spans


def check(work: Work, found: Sequence[Result]) -> None:
    """Check that every word has its place, in order and within the recording."""
    for result, text in zip(found, work.texts, strict=True):
        tier = result.alignment.tier("words")
        words = [segment for segment in tier if segment.label != "*"]
        assert [w.label for w in words] == [w.text for w in text.words], "words are left out"
        starts = [w.start for w in words]
        assert starts == sorted(starts)
        assert words[-1].end <= result.alignment.duration + 1e-6


def hours(dims: Mapping[str, int]) -> float:
    return dims["B"] * dims["seconds"] / 3600


def _size(b: int, seconds: int, layers: int, width: int, **options: bool) -> Size:
    return Size({"B": b, "seconds": seconds, "layers": layers, "width": width}, **options)


def _plain(b: int, seconds: int, **options: bool) -> Size:
    return Size({"B": b, "seconds": seconds}, **options)


_BOTH = ("cpu", "cuda")
_SAME_IN_HALF = Peer("ours in bfloat16", ours_in_half, yardstick=True, devices=_BOTH)
_ENCODER = Peer("the encoder alone", encoder_alone, yardstick=True, devices=_BOTH)
BENCHES = [
    Bench(
        name="throughput",
        about="alignment by Wav2Vec2 with a CTC head, from samples to words",
        inputs=of_letters,
        ours=ours,
        check=check,
        peers=[
            Peer("encoder, torchaudio's forced_align", torchaudio_align, yardstick=True, devices=_BOTH),
            _ENCODER,
            _SAME_IN_HALF,
        ],
        sizes=[],
        gpu_sizes=[_size(2, 1, 1, 128, quick=True), _size(32, 15, 12, 768), _size(32, 15, 24, 1024)],
        axis="seconds",
        hours=hours,
    ),
    Bench(
        name="throughput-english",
        about="alignment by the pack english, from samples to words and phones",
        inputs=of_english,
        ours=ours,
        check=check,
        peers=[_ENCODER],
        sizes=[],
        gpu_sizes=[_plain(2, 2, quick=True), _plain(32, 15)],
        axis="seconds",
        hours=hours,
    ),
]
