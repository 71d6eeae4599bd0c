"""Forced alignment of recordings whose text is in another order, repeated, or said in part.

``python -m benchmarks.sections LIBRISPEECH [--sentences 40] [--limit 6]``

The sentences of a chapter become one recording. Its text is changed: a sentence is removed or added, two groups of
sentences change places. Or the recording is: a sentence is read twice, or another reader speaks between two sentences.
The words' places in the single sentences, by the same model, are the reference.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isotone import audio
from isotone.alignment import Alignment
from isotone.corpus.librispeech import LibriSpeechCorpus
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.given import align_text
from isotone.pipeline.stars import STAR
from isotone.transcripts import Passage

RATE = 16_000
CASES = ("right", "removed from the text", "added to the text", "swapped", "read twice", "another reader")
COLUMNS = (
    "text", "recordings", "called right %", "partly %", "wrong %", "other speech found %", "precision %",
    "words left out %", "precision %", "right words lost %", "within 20 ms %", "250 ms %",
)  # fmt: skip


@dataclass(frozen=True)
class Sentence:
    """A sentence with the times of its words."""

    samples: NDArray[np.float32]
    text: str
    times: tuple[tuple[float, float], ...]

    @property
    def seconds(self) -> float:
        """Its duration."""
        return len(self.samples) / RATE


@dataclass(frozen=True)
class Case:
    """A recording, its text, and what is right.

    Attributes:
        read: The sentences in order of time.
        text: The sentences of the text.
        strange: Numbers of the sentences in ``read`` that the text does not have, or has once too few.
    """

    read: Sequence[Sentence]
    text: Sequence[Sentence]
    strange: frozenset[int] = frozenset()


def cases(sentences: Sequence[Sentence], other: Sentence) -> Iterator[Case]:
    """Make the cases of :data:`CASES` of the sentences of a chapter and one of another."""
    own, half, quarter = list(sentences), len(sentences) // 2, len(sentences) // 4
    yield Case(own, own)
    yield Case(own, own[:half] + own[half + 1 :], frozenset({half}))
    yield Case(own, [*own[:half], other, *own[half:]])
    first, second = own[quarter : quarter + 2], own[quarter + 2 : quarter + 4]
    yield Case(own, [*own[:quarter], *second, *first, *own[quarter + 4 :]])
    yield Case([*own[: half + 1], own[half], *own[half + 1 :]], own, frozenset({half + 1}))
    yield Case([*own[:half], other, *own[half:]], own, frozenset({half}))


@dataclass
class Counts:
    """Sums over the recordings of a case: seconds of other speech, words left out, errors of times."""

    verdicts: list[str]
    other: list[tuple[float, float, float]]
    left_out: list[tuple[int, int, int]]
    lost: list[tuple[int, int]]
    errors: list[float]


def main() -> None:
    """Run the measurement."""
    arguments = parser_of("sections", __doc__, 40).parse_args()
    pipeline = Pipeline(Model.load(arguments.model))
    read = readings(pipeline, arguments)
    found = {name: Counts([], [], [], [], []) for name in CASES}
    for number, sentences in enumerate(read):
        other = read[number - 1][0]
        for name, case in zip(CASES, cases(sentences, other)):
            count(found[name], case, align(pipeline, case))
    minutes = sum(one.seconds for sentences in read for one in sentences) / 60 / len(read)
    print(f"{len(read)} recordings of {minutes:.1f} minutes in the mean\n")
    report(found)


def parser_of(name: str, about: str | None, sentences: int) -> argparse.ArgumentParser:
    """Make the parser of a benchmark on chapters: of its name, its description, and the sentences by default."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=about,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="a part of LibriSpeech in its own layout")
    parser.add_argument("--sentences", type=int, default=sentences, help="most sentences of a recording")
    parser.add_argument("--limit", type=int, default=6, help="recordings")
    parser.add_argument("--model", default="english", help="model of isotone")
    return parser


def readings(pipeline: Pipeline, arguments: argparse.Namespace) -> list[list[Sentence]]:
    """Align the sentences of the chapters that are asked for, each by itself."""
    return [
        [sentence(pipeline, row) for row in rows[: arguments.sentences]]
        for rows in chapters(arguments.folder)[: arguments.limit]
    ]


def chapters(folder: Path) -> list[list[dict]]:
    """List the sentences of every chapter, the longest chapters first and one of each reader."""
    rows = sorted(LibriSpeechCorpus(folder).load("dev-clean"), key=lambda row: row["id"])
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row["id"].rsplit("-", 1)[0])]
    groups.sort(key=lambda group: -len(group))
    readers = dict.fromkeys(group[0]["id"].split("-")[0] for group in groups)
    return [next(g for g in groups if g[0]["id"].startswith(f"{reader}-")) for reader in readers]


def sentence(pipeline: Pipeline, row: dict) -> Sentence:
    """Align a sentence by itself."""
    samples = audio.load(Path(row["audio"]), RATE)
    text = row["text"].lower()
    found = pipeline.align(row["id"], samples, pipeline.encode(text), judged=False)
    return Sentence(samples, text, tuple((w.start, w.end) for w in found.alignment.tier("words")))


def align(pipeline: Pipeline, case: Case) -> Alignment:
    """Align the recording of a case with its text."""
    samples = np.concatenate([one.samples for one in case.read])
    passages = [Passage("\n".join(one.text for one in case.text))]
    return align_text(pipeline, "", samples, passages, 1.0)[0].alignment


def count(counts: Counts, case: Case, found: Alignment) -> None:
    """Add what was found in a recording."""
    counts.verdicts.append(found.verdict)
    begins = np.cumsum([0.0, *(one.seconds for one in case.read)])
    spans = [(begins[k] + one.times[0][0], begins[k] + one.times[-1][1]) for k, one in enumerate(case.read)]
    stars = [s for s in found.tiers[0] if s.label == STAR]
    true = [spans[k] for k in case.strange]
    shared = sum(max(0.0, min(s.end, b) - max(s.start, a)) for s in stars for a, b in true)
    counts.other.append((shared, sum(b - a for a, b in true), sum(s.duration for s in stars)))
    read = {id(one): begins[k] for k, one in enumerate(case.read) if k not in case.strange}
    reference: dict[int, tuple[float, float] | None] = {}
    position = 0
    for one in case.text:
        for word, (start, end) in zip(one.text.split(), one.times):
            begin = read.get(id(one))
            reference[position] = None if begin is None else (begin + start, begin + end)
            position += len(word) + 1
    absent = [word.origin.start for word in found.absent if word.origin]
    wrong = {place for place, times in reference.items() if times is None}
    counts.left_out.append((len(wrong & set(absent)), len(wrong), len(absent)))
    counts.lost.append((len(set(absent) - wrong), len(reference) - len(wrong)))
    for segment in found.tiers[0]:
        times = reference.get(segment.origin.start) if segment.origin else None
        if times:
            counts.errors += [abs(segment.start - times[0]), abs(segment.end - times[1])]


def report(found: dict[str, Counts]) -> None:
    """Print the table."""
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for name, one in found.items():
        verdicts = [100 * one.verdicts.count(v) / len(one.verdicts) for v in ("right", "partly", "wrong")]
        errors = np.array(one.errors)
        within = [100 * float(np.mean(errors <= collar)) for collar in (0.02, 0.25)]
        row = [*verdicts, *_rates(*np.sum(one.other, 0)), *_rates(*np.sum(one.left_out, 0))]
        lost, words = np.sum(one.lost, 0)
        cells = [*row, 100 * lost / words, *within]
        shown = " | ".join("" if cell is None else f"{cell:.1f}" for cell in cells)
        print(f"| {name} | {len(one.verdicts)} | {shown} |")


def _rates(right: float, true: float, found: float) -> tuple[float | None, float | None]:
    """Return recall and precision in percent, where there is something to find."""
    if not true:
        return None, None
    return 100 * right / true, 100 * right / found if found else 0.0


if __name__ == "__main__":
    main()
