"""Streaming alignment against alignment of the whole recording.

``python -m benchmarks.streaming FOLDER... [--join 60] [--most 10]`` feeds recordings piece by piece, aligns them whole,
and prints a table in Markdown. With ``--join`` the recordings of a folder are joined to recordings of that many seconds
or more. With ``--hours 1`` they are joined to one recording of that length, which is fed in one run as fast as it goes;
the table has its state every ten minutes, with the memory of the process, which has the recording as well.

Latency is in the time of the audio: what was fed when a word was given, less the end of the word in the whole's
alignment. Folders are of the kinds that ``benchmarks.doubt`` reads.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import psutil
import torch
from numpy.typing import NDArray

from benchmarks.doubt import transcripts
from isotone import audio
from isotone.evaluation.tables import markdown_table
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.given import align_text
from isotone.pipeline.live.stream import Spoken, Stream, Timing
from isotone.pipeline.passages import SLACK_S
from isotone.pipeline.result import Result
from isotone.transcripts import Passage

_RATE, _PIECE_S, _NEAR_S = 16_000, 0.05, 0.02

#: ``(N,)`` of 16 bits, so that an hour takes little memory.
Samples = NDArray[np.int16]


@dataclass
class Followed:
    """A word from when it was given.

    Attributes:
        whole: Its start and end in seconds, in the whole recording's alignment.
        first, last: Those that were given, at first and at last; None while it counts as not heard.
        first_s, last_s: Audio that was fed when they were given.
        moved_s: Largest change of an end after it was first given.
    """

    whole: tuple[float, float]
    first: tuple[float, float] | None
    first_s: float
    last: tuple[float, float] | None = None
    last_s: float = 0.0
    moved_s: float = 0.0

    def take(self, word: Spoken, now_s: float) -> None:
        """Take what is given now."""
        self.last, self.last_s = _times(word), now_s
        if self.first is not None and self.last is not None:
            self.moved_s = max(self.moved_s, *(abs(a - b) for a, b in zip(self.first, self.last)))


@dataclass
class Found:
    """Measurements of a folder.

    Attributes:
        recordings: How many.
        seconds, spent_s: Of audio, and of the processor while it was fed.
        words: All that were given.
    """

    recordings: int = 0
    seconds: float = 0.0
    spent_s: float = 0.0
    words: list[Followed] = field(default_factory=list)

    def add(
        self,
        stream: Stream,
        samples: Samples,
        whole: Mapping[int, tuple[float, float]],
        every_s: float = np.inf,
    ) -> Iterator[float]:
        """Feed a recording, and compare; yield the seconds that were fed, every so many."""
        words: dict[int, Followed] = {}
        self.recordings, before_s, mark_s = self.recordings + 1, self.seconds, every_s
        begin = time.process_time()
        for given, now_s in fed(stream, samples):
            for word in given:
                if word.number not in whole:  # left out of the whole recording's alignment
                    continue
                if word.number not in words:
                    words[word.number] = Followed(whole[word.number], _times(word), now_s)
                    self.words.append(words[word.number])
                words[word.number].take(word, now_s)
            if now_s >= mark_s:
                self.spent_s, self.seconds = self.spent_s + time.process_time() - begin, before_s + now_s
                yield now_s
                begin, mark_s = time.process_time(), mark_s + every_s
        self.spent_s += time.process_time() - begin
        self.seconds = before_s + _seconds(samples)

    def row(self) -> list[str]:
        """Cells of the table."""
        near = [
            f"{100 * np.mean([_off(times, w.whole, side) <= _NEAR_S for w, times in given]):.1f}"
            for given in ([(w, w.first) for w in self.words], [(w, w.last) for w in self.words])
            for side in (0, 1)
        ]
        late = [1000 * (w.first_s - w.whole[1]) for w in self.words if w.first is not None]
        corrected = [w for w in self.words if w.last_s > w.first_s]
        return [
            str(self.recordings), f"{self.seconds / 60:.1f}", str(len(self.words)), *near,
            f"{100 * len(corrected) / len(self.words):.1f}",
            f"{1000 * max((w.moved_s for w in corrected), default=0):.0f}",
            f"{max((w.last_s - w.first_s for w in corrected), default=0):.1f}",
            str(sum(w.last is None for w in self.words)),
            *(f"{np.percentile(late, share):.0f}" if late else "" for share in (50, 90)),
            f"{self.spent_s / self.seconds:.2f}",
        ]  # fmt: skip


def _times(word: Spoken) -> tuple[float, float] | None:
    return None if word.segment is None else (word.segment.start, word.segment.end)


def _off(times: tuple[float, float] | None, whole: tuple[float, float], side: int) -> float:
    """Return the error of an end in seconds; infinite where the word was not heard."""
    return np.inf if times is None else abs(times[side] - whole[side])


def _seconds(samples: Samples) -> float:
    return len(samples) / _RATE


def fed(stream: Stream, samples: Samples) -> Iterator[tuple[list[Spoken], float]]:
    """Feed a recording; yield what is given for every piece, with the seconds that were fed."""
    size = round(_PIECE_S * _RATE)
    for start in range(0, len(samples), size):
        piece = samples[start : start + size]
        yield stream.feed(_floats(piece)), (start + len(piece)) / _RATE
    yield stream.finish(), _seconds(samples)


def _floats(samples: Samples) -> NDArray[np.float32]:
    return np.divide(samples, 32768, dtype=np.float32)


def aligned_by(model: str, samples: Samples, text: str) -> dict[int, tuple[float, float]]:
    """Load a model, on one thread, and align a long recording as ``isotone align`` does, without words not said."""
    torch.set_num_threads(1)
    pipeline = Pipeline(Model.load(model))
    whole, transcript = align_text(pipeline, "", _floats(samples), [Passage(text)], SLACK_S)
    assert isinstance(whole, Result)
    words = zip(whole.words, whole.alignment.tier("words"))
    return {n: (word.start, word.end) for n, word in words if n < len(transcript.words)}


def aligned(pipeline: Pipeline, samples: Samples, text: str) -> dict[int, tuple[float, float]]:
    """Align a whole recording, and return starts and ends in seconds by the words' numbers."""
    whole = pipeline.align("", _floats(samples), pipeline.encode(text))
    return {n: (word.start, word.end) for n, word in zip(whole.words, whole.alignment.tier("words"))}


def joined(folder: Path, least_s: float, across: bool = False) -> Iterator[tuple[Samples, str]]:
    """Iterate over a folder's recordings and texts, joined to ``least_s`` or more: those below one folder, or all."""
    parts: list[Samples] = []
    texts: list[str] = []
    place: Path | None = None
    for path, text in transcripts(folder):
        if parts and ((place != path.parent and not across) or sum(map(_seconds, parts)) >= least_s):
            yield np.concatenate(parts), " ".join(texts)
            parts, texts = [], []
        place = path.parent
        parts.append(np.round(audio.load(path, _RATE) * 32767).astype(np.int16))
        texts.append(text)
    if parts:
        yield np.concatenate(parts), " ".join(texts)


def long(model: str, folder: Path, hours: float, every_s: float) -> list[list[str]]:
    """Feed one long recording made of a folder's; return rows of its state every so many seconds, and in the end."""
    samples, text = next(joined(folder, 3600 * hours, across=True))
    # in a process of its own, so that the memory of this one is the stream's
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        whole = pool.submit(aligned_by, model, samples, text).result()
    pipeline = Pipeline(Model.load(model), presence=False)
    found, rows = Found(), list[list[str]]()

    def note() -> None:
        memory = psutil.Process().memory_info().rss / 2**20
        rows.append([folder.name, *found.row(), f"{memory:.0f}"])
        print(*rows[-1], file=sys.stderr, flush=True)

    for _ in found.add(Stream(pipeline, pipeline.encode(text), Timing()), samples, whole, every_s):
        note()
    note()
    return rows


def short(model: str, folders: Sequence[Path], join_s: float, most: int | None) -> list[list[str]]:
    """Feed the recordings of folders; return a row for each."""
    pipeline = Pipeline(Model.load(model), presence=False)
    rows = []
    for folder in folders:
        found = Found()
        for samples, text in islice(joined(folder, join_s), most):
            whole = aligned(pipeline, samples, text)
            list(found.add(Stream(pipeline, pipeline.encode(text), Timing()), samples, whole))
        rows.append([folder.name, *found.row()])
    return rows


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
    parser.add_argument("--every", type=float, default=600.0, metavar="SECONDS", help="rows with --hours")
    options = parser.parse_args()
    torch.set_num_threads(1)
    head = ["", "recordings", "min", "words", "first start %", "end %", "final start %", "end %", "corrected %",
            "moved ms", "after s", "not heard", "latency ms", "90 % ms", "s per s"]  # fmt: skip
    if options.hours:
        head.append("MiB")
        rows = long(options.model, options.folders[0], options.hours, options.every)
    else:
        rows = short(options.model, options.folders, options.join, options.most)
    print(markdown_table(head, rows, numbers_right=True), end="")


if __name__ == "__main__":
    main()
