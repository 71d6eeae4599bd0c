"""A command without a model, whose results show their inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import soundfile

from isotone.alignment import Alignment, Segment, Tier
from isotone.batch import Options, Target
from isotone.batch import runs as module
from isotone.batch.inputs import find_transcript
from isotone.batch.outcome import Outcome
from isotone.batch.work import Work
from isotone.pipeline.result import Result
from isotone.types import Grid
from tests.tiny_models import lines_of, names_in


@dataclass(frozen=True)
class Stub(Options):
    """Options whose pipeline has no model."""

    model: str = "stub"

    def pipeline(self) -> Any:
        tokenizer = SimpleNamespace(tiers=lambda given: ("words",))
        model = SimpleNamespace(encoder=SimpleNamespace(sample_rate=16_000))
        return SimpleNamespace(model=model, tokenizer=tokenizer)


@dataclass
class Echo(Work):
    """Writes the transcript as one word, as long as the audio; ``done`` lists the recordings."""

    done: list[str] = field(default_factory=list)
    command = "align"
    given_text = True

    def inputs(self, recording: Path) -> Mapping[str, Path]:
        return {"text": find_transcript(recording, None).path}

    def run(self, pipeline: Any, path: Path, id: str, samples: np.ndarray) -> tuple[Result, list[str]]:
        self.done.append(id)
        text = self.inputs(path)["text"].read_text()
        if text == "bad":
            raise ValueError("a bad text")
        seconds = len(samples) / 16_000
        tier = Tier("words", (Segment(text, 0.0, seconds),))
        return Result(Alignment(id, seconds, (tier,)), text, 1, (), Grid(0.02), -1.0), []


def echo(
    audio: Path | list[Path], out: Path, *, key: str = "model", work: Work | None = None, **target: Any
) -> Outcome:
    """Run the command; ``key`` is the model's."""
    before, module.model_key = module.model_key, lambda model: key
    try:
        paths = audio if isinstance(audio, list) else [audio]
        return module.run(paths, Stub(), Target(out, **target), work or Echo())
    finally:
        module.model_key = before


def say(path: Path, text: str | None, samples: int = 400, value: float = 0.1) -> Path:
    """Write a recording with its transcript."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.full(samples, value), 16_000)
    if text is not None:
        path.with_suffix(".txt").write_text(text)
    return path


def tree(folder: Path) -> dict[str, bytes]:
    """Read the files below a folder, by path, except ledgers."""
    paths = (p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".isotone"))
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths}


def only_error(out: Path) -> str:
    """Return the error of the only bad file in ``errors.jsonl``; check that no alignment was written."""
    (row,) = lines_of(out / "errors.jsonl")
    assert names_in(out) == ["errors.jsonl"]
    return row["error"]
