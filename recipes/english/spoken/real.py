"""Real speech, with the labels that a model gives its transcripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import AlignmentError, Segment
from isotone.audio import load
from isotone.corpus.layouts import TimitLayout
from isotone.corpus.voices import SAMPLE_RATE, Mark, Utterance
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.text.normalize import TextError
from isotone.text.phones import SILENT
from spoken.sharing import share

# Utterances whose text agrees less with the sound than this are left out; chance is near 0.
_LEAST_AGREEMENT = 0.3
_LONGEST_S = 20.0

#: Speakers of LibriSpeech's dev-clean that are never trained on: they measure the threshold of doubt.
HELD_OUT = ("2412", "2803", "2902")


class Recording(NamedTuple):
    """A recording with its transcript."""

    speaker: str
    path: Path
    text: str


def recordings(root: Path) -> Iterator[Recording]:
    """Iterate over LibriSpeech's chapters, an LJSpeech folder or recordings with .txt files below a root."""
    for chapter in sorted(root.rglob("*.trans.txt")):
        for line in chapter.read_text("utf-8").splitlines():
            id, _, text = line.partition(" ")
            path = next(p for p in chapter.parent.glob(f"{id}.*") if p.suffix in (".flac", ".mp3", ".wav"))
            yield Recording(id.partition("-")[0], path, text.lower())
    for table in sorted(root.rglob("metadata.csv")):
        for line in table.read_text("utf-8").splitlines():
            id, *texts = line.split("|")
            found = sorted(table.parent.rglob(f"{id}.*"))
            if found:
                yield Recording(table.parent.name, found[0], texts[-1])
    for path in sorted(root.rglob("*.wav")):
        if path.with_suffix(".txt").is_file() and not path.with_suffix(".phn").is_file():
            yield Recording(path.parent.name, path, path.with_suffix(".txt").read_text("utf-8").strip())


class Labelled(NamedTuple):
    """A recording with a model's labels, or why it is left out.

    Attributes:
        outcome: ``kept``, ``long``, ``doubtful`` or ``failed``.
        samples: ``(N,)`` int16; empty if left out.
        phones: In samples.
    """

    outcome: str
    samples: NDArray[np.int16]
    phones: tuple[Mark, ...]


# The model of this process: a process that labels recordings loads it once.
_pipelines: list[Pipeline] = []


def _load(model: Path) -> None:
    _pipelines[:] = [Pipeline(Model.load(model), closures=True, presence=False)]


def _label(source: Recording) -> Labelled:
    """Label a recording by the model of this process."""

    def left_out(outcome: str) -> Labelled:
        return Labelled(outcome, np.zeros(0, np.int16), ())

    samples = load(source.path, SAMPLE_RATE)
    if len(samples) > _LONGEST_S * SAMPLE_RATE:
        return left_out("long")
    pipeline = _pipelines[0]
    try:
        result = pipeline.align(source.path.stem, samples, pipeline.encode(source.text))
    except (AlignmentError, TextError):
        return left_out("failed")
    if result.agreement is not None and result.agreement < _LEAST_AGREEMENT:
        return left_out("doubtful")
    marks = marks_of(result.alignment.tier("phones").segments, len(samples))
    scale = 32767 * min(1.0, 0.9 / max(1e-9, float(np.abs(samples).max())))
    return Labelled("kept", np.round(samples * scale).astype(np.int16), marks)


def write_labelled(root: Path, model: Path, sources: list[Recording], workers: int = 1) -> dict[str, int]:
    """Add recordings to a corpus in TIMIT's files, with the phones that a model aligns.

    Args:
        root: The corpus.
        model: The model; its tokens are TIMIT's phones of the set of 48.
        sources: What to add, as training data.
        workers: Processes that align.

    Returns:
        Counts of recordings that were ``kept``, and left out by reason.
    """
    counts = dict.fromkeys(("kept", "long", "doubtful", "failed"), 0)
    layout = TimitLayout(root, sorted({f"R{r.speaker}" for r in sources}), [])
    labelled = share(_label, sources, workers, "labelling", _load, (model,))
    for number, (source, label) in enumerate(zip(sources, labelled)):
        counts[label.outcome] += 1
        if label.outcome == "kept":
            layout.add(Utterance(f"R{source.speaker}", number, source.text, label.samples, label.phones, ()))
    return counts


def marks_of(phones: tuple[Segment, ...], size: int) -> tuple[Mark, ...]:
    """Return phones in samples, with silence between them; neighbouring silences become one."""
    marks: list[Mark] = []

    def add(label: str, start: int, end: int) -> None:
        if end <= start:
            return
        if label in SILENT and marks and marks[-1].label == "h#":
            marks[-1] = marks[-1]._replace(end=end)
        else:
            marks.append(Mark("h#" if label in SILENT else label, start, end))

    now = 0
    for phone in phones:
        start, end = (min(size, round(t * SAMPLE_RATE)) for t in (phone.start, phone.end))
        add("h#", now, start)
        add(phone.label, max(now, start), end)
        now = max(now, end)
    add("h#", now, size)
    return tuple(marks)
