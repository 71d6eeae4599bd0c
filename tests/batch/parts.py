"""A command without a model, whose results show their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from isotone.alignment import Alignment, Segment, Tier
from isotone.batch import Target
from isotone.batch.inputs import find_transcript
from isotone.batch.keys import result_key
from isotone.batch.outcome import Outcome
from isotone.batch.runs import run
from isotone.batch.work import Done, Inputs, Job, Own, Work
from isotone.batch.writers import writers_for
from tests.tiny_models import lines_of, names_in


class Echo(Work):
    """Writes the transcript as one word, as long as the audio.

    Attributes:
        model: Stands for the model in keys.
        done: The recordings.
    """

    command = "align"
    sample_rate = 16_000

    def __init__(self) -> None:
        self.model = "model"
        self.done: list[str] = []

    def open(self, formats: Sequence[str]) -> Echo:
        self.writers = writers_for(formats, ("words",))
        self.suffixes = {name: writer.suffix for name, writer in self.writers.items()}
        return self

    def inputs(self, recording: Path, own: Own) -> Inputs:
        return Inputs({"text": find_transcript(recording, None, own).path})

    def key(self, digests: Mapping[str, str]) -> str:
        return result_key(self.model, digests, {})

    def run(self, job: Job, samples: np.ndarray) -> Done:
        self.done.append(job.id)
        text = job.inputs.files["text"].read_text()
        if text == "bad":
            raise ValueError("a bad text")
        seconds = len(samples) / 16_000
        alignment = Alignment(
            job.id, seconds, (Tier("words", (Segment(text, 0.0, seconds),)),), -1.0, job.path
        )
        contents = {name: self.writers[name].dumps(alignment).encode() for name in job.formats}
        return Done(contents, score=-1.0, text=text)


def echo(
    audio: Path | list[Path], out: Path, *, key: str = "model", work: Echo | None = None, **target: Any
) -> Outcome:
    """Run the command; ``key`` is the model's."""
    paths = audio if isinstance(audio, list) else [audio]
    to = Target(out, **target)
    work = work or Echo()
    work.model = key
    return run(paths, to, lambda: work.open(to.formats))


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
