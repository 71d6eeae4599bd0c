"""Recordings with known times of words and phones."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import SILENCE, Segment
from isotone.audio import load
from isotone.format.tier_names import find_tier
from isotone.registries import formats

#: Hz of all recordings.
RATE = 16_000


@dataclass(frozen=True)
class Labelled:
    """A recording with its labels.

    Attributes:
        name: Name of the recording.
        samples: ``(N,)`` float32 at :data:`RATE`.
        text: Its text, which aligners are given.
        words: Words with their times; none where only the text is known.
        phones: Phones of TIMIT's set of 61, where they are known.
    """

    name: str
    samples: NDArray[np.float32]
    text: str
    words: tuple[Segment, ...]
    phones: tuple[Segment, ...] = ()


def add_cut(parser: argparse._ActionsContainer) -> None:
    """Add the option ``--cut``, which gives seconds."""
    parser.add_argument(
        "--cut",
        type=_seconds,
        metavar="MS",
        help="cut recordings MS milliseconds before their first and after their last word",
    )


def _seconds(milliseconds: str) -> float:
    with suppress(ValueError):
        seconds = float(milliseconds) / 1000
        if 0 <= seconds < float("inf"):
            return seconds
    raise argparse.ArgumentTypeError(f"milliseconds of 0 or more; got {milliseconds}.")


def labelled(folder: Path, cut_s: float | None = None) -> Iterator[Labelled]:
    """Iterate over the labelled recordings below a folder: TIMIT's files, or TextGrids beside recordings.

    Args:
        folder: The folder.
        cut_s: Seconds that stay before the first and after the last word (:func:`cut`); None: recordings as they are.
    """
    for found in _labelled(folder):
        yield found if cut_s is None or not found.words else cut(found, cut_s)


def _labelled(folder: Path) -> Iterator[Labelled]:
    for path in sorted(folder.rglob("*.wav")):
        if path.with_suffix(".wrd").is_file():
            words, phones = (_timit(path.with_suffix(suffix)) for suffix in (".wrd", ".phn"))
            text = " ".join(word.label for word in words)
            yield Labelled(f"{path.parent.name}/{path.stem}", load(path, RATE), text, words, phones)
        elif path.with_suffix(".TextGrid").is_file():
            grid = formats.build("textgrid").loads(
                path.with_suffix(".TextGrid").read_text("utf-8"), path.stem
            )
            tier = find_tier(grid, "words")
            words = tuple(s for s in tier.segments if s.label not in SILENCE) if tier is not None else ()
            yield Labelled(path.stem, load(path, RATE), " ".join(w.label for w in words), words)


def cut(recording: Labelled, around_s: float) -> Labelled:
    """Cut a recording that long before its first and after its last word, as clips of single sentences are."""
    first = max(0, round((recording.words[0].start - around_s) * RATE))
    last = round((recording.words[-1].end + around_s) * RATE)
    samples = recording.samples[first:last]
    start_s, end_s = first / RATE, first / RATE + len(samples) / RATE

    def kept(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        return tuple(
            replace(s, start=max(s.start, start_s) - start_s, end=min(s.end, end_s) - start_s)
            for s in segments
            if s.start < end_s and s.end > start_s
        )

    return replace(recording, samples=samples, words=kept(recording.words), phones=kept(recording.phones))


def _timit(path: Path) -> tuple[Segment, ...]:
    # as labelled: words of TIMIT may overlap, and the reader of corpora cuts them
    rows = [line.split() for line in path.read_text("utf-8").splitlines()]
    return tuple(Segment(label, int(start) / RATE, int(end) / RATE) for start, end, label in rows)
