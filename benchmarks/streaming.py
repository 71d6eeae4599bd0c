"""Streaming alignment against alignment of the whole recording.

``python -m benchmarks.streaming FOLDER... [--join 60] [--most 10]`` feeds recordings piece by piece, aligns them whole,
and prints a table in Markdown. With ``--join`` the recordings of a folder are joined to recordings of that many seconds
or more. ``--hours 1`` makes one recording of that length, and prints time and memory.

Latency is in the time of the audio: what was fed when a word was given, less the end of the word in the whole's
alignment. Folders are of the kinds that ``benchmarks.doubt`` reads.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.doubt import transcripts
from isotone import audio
from isotone.evaluation.tables import markdown_table
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.live.stream import Spoken, Stream, Timing

_RATE, _PIECE_S, _NEAR_S = 16_000, 0.05, 0.02


@dataclass
class Found:
    """Measurements of a folder.

    Attributes:
        recordings, words: How many.
        seconds, spent_s: Of audio, and of the processor while it was fed.
        first, last: Errors of start and end in seconds against the whole, as first given and in the end.
        latency_s: From a word's end to when it was given.
        corrected, unheard: Numbers of words.
    """

    recordings: int = 0
    words: int = 0
    seconds: float = 0.0
    spent_s: float = 0.0
    first: list[tuple[float, float]] = field(default_factory=list)
    last: list[tuple[float, float]] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)
    corrected: int = 0
    unheard: int = 0

    def add(self, pipeline: Pipeline, samples: NDArray[np.float32], text: str) -> None:
        """Feed a recording, and compare."""
        transcript = pipeline.encode(text)
        whole = pipeline.align("", samples, transcript)
        expected = dict(zip(whole.words, whole.alignment.tier("words")))
        begin = time.process_time()
        given = [*fed(Stream(pipeline, transcript, Timing()), samples)]
        self.spent_s += time.process_time() - begin
        self.recordings, self.words = self.recordings + 1, self.words + len(transcript.words)
        self.seconds += len(samples) / _RATE
        last = {word.number: word for word, _ in given}
        for word, now_s in given:
            if word.corrects:
                continue
            reference = expected[word.number]
            if word.segment is not None:
                self.latency_s.append(now_s - reference.end)
            self.first.append(_errors(word, reference.start, reference.end))
            self.last.append(_errors(last[word.number], reference.start, reference.end))
            self.corrected += last[word.number].corrects
            self.unheard += last[word.number].segment is None

    def row(self) -> list[str]:
        """Cells of the table."""
        near = [
            f"{100 * (np.abs(np.array(errors))[:, side] <= _NEAR_S).mean():.1f}"
            for errors in (self.first, self.last)
            for side in (0, 1)
        ]
        median, most = (f"{1000 * np.percentile(self.latency_s, share):.0f}" for share in (50, 90))
        return [
            str(self.recordings), f"{self.seconds / 60:.1f}", str(self.words), *near,
            f"{100 * self.corrected / self.words:.1f}", str(self.unheard), median, most,
            f"{self.spent_s / self.seconds:.2f}",
        ]  # fmt: skip


def _errors(word: Spoken, start: float, end: float) -> tuple[float, float]:
    """Return the errors of both ends in seconds; infinite where the word was not heard."""
    if word.segment is None:
        return np.inf, np.inf
    return word.segment.start - start, word.segment.end - end


def fed(stream: Stream, samples: NDArray[np.float32]) -> Iterator[tuple[Spoken, float]]:
    """Feed a recording; yield what is given, with the seconds that were fed."""
    size = round(_PIECE_S * _RATE)
    for start in range(0, len(samples), size):
        end = min(len(samples), start + size)
        for word in stream.feed(samples[start:end]):
            yield word, end / _RATE
    for word in stream.finish():
        yield word, len(samples) / _RATE


def joined(folder: Path, least_s: float) -> Iterator[tuple[NDArray[np.float32], str]]:
    """Iterate over a folder's recordings and texts; those below one folder are joined to ``least_s`` or more."""
    parts: list[NDArray[np.float32]] = []
    texts: list[str] = []
    place: Path | None = None
    for path, text in transcripts(folder):
        if parts and (place != path.parent or sum(map(len, parts)) >= least_s * _RATE):
            yield np.concatenate(parts), " ".join(texts)
            parts, texts = [], []
        place = path.parent
        parts.append(audio.load(path, _RATE))
        texts.append(text)
    if parts:
        yield np.concatenate(parts), " ".join(texts)


def long(pipeline: Pipeline, folder: Path, hours: float) -> None:
    """Feed one long recording made of a folder's, and print time and memory."""
    parts, texts, size = [], [], 0
    while size < hours * 3600 * _RATE:
        for samples, text in joined(folder, 0.0):
            parts.append(np.round(samples * 32767).astype(np.int16))
            texts.append(text)
            size += len(samples)
    whole = np.concatenate(parts)[: round(hours * 3600 * _RATE)]
    stream = Stream(pipeline, pipeline.encode(" ".join(texts)), Timing())
    begin, heard, step = time.process_time(), 0, _RATE
    for start in range(0, len(whole), step):
        given = stream.feed(whole[start : start + step].astype(np.float32) / 32767)
        heard += sum(word.segment is not None and not word.corrects for word in given)
        if start // step in (60, len(whole) // step - 1):
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            spent = (time.process_time() - begin) / (start / _RATE + 1)
            print(
                f"{start // step + 1} s: {heard} words heard, {spent:.2f} s per s, at most {memory:.0f} MiB",
                flush=True,
            )


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.streaming",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--join", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--most", type=int, help="recordings per folder (default: all)")
    parser.add_argument("--hours", type=float)
    parser.add_argument("--model", default="english")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pipeline = Pipeline(Model.load(options.model), presence=False)
    if options.hours:
        long(pipeline, options.folders[0], options.hours)
        return
    head = ["", "recordings", "min", "words", "first start %", "end %", "final start %", "end %", "corrected %",
            "not heard", "latency ms", "90 % ms", "s per s"]  # fmt: skip
    rows = []
    for folder in options.folders:
        found, made = Found(), joined(folder, options.join)
        for samples, text in islice(made, options.most):
            found.add(pipeline, samples, text)
        rows.append([folder.name, *found.row()])
    print(markdown_table(head, rows, numbers_right=True), end="")


if __name__ == "__main__":
    main()
