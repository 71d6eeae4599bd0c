"""Subtitles whose times are off: how far their cues are from their words when they have been aligned.

``python -m benchmarks.subtitles LIBRISPEECH [--limit 6]``

The recordings are those of :mod:`benchmarks.sections`. Cues of up to seven words are written where the same model puts
the words in the single sentences. Then their times are made worse, and the subtitles are aligned. If ffsubsync is
installed (``pip install ffsubsync``, which asks for ffmpeg) it is asked as well. It moves and stretches all cues alike,
without listening to their text. With ``--foreign`` every seventh cue has the text of another recording's instead, or
four of five have, and the table counts the cues that are told as not said.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import soundfile

from benchmarks.aligners.worse import made_worse
from benchmarks.sections import RATE, Sentence, parser_of, readings
from isotone.alignment import Segment
from isotone.evaluation import markdown_table
from isotone.format.subtitles import clock
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.given import align_text
from isotone.pipeline.unsaid import unlikely
from isotone.transcripts import Passage
from isotone.transcripts.subtitles import srt

#: Words of a cue, at most.
WORDS = 7

#: Seconds of a cue before its first word and after its last one.
BEFORE_S, AFTER_S = 0.1, 0.3

COLUMNS = ("times of the cues", "tool", "cues", "median s", "within .1 s %", ".5 s %", "1 s %", "lost %")

FOREIGN = ("condition", "text of others", "cues of others", "own cues", "others told %", "own told %")

#: Which cues have the text of others, by their number.
OTHERS: dict[str, Callable[[int], bool]] = {
    "every seventh": lambda i: i % 7 == 3,
    "four of five": lambda i: i % 5 != 0,
}


class Cue(NamedTuple):
    """A cue with its time in seconds."""

    start: float
    end: float
    text: str


#: How the times are made worse: what a time becomes in a recording of some seconds.
CASES: dict[str, Callable[[float, float], float]] = {
    "right": lambda t, seconds: t,
    "2 s late": lambda t, seconds: t + 2,
    "4 s late": lambda t, seconds: t + 4,
    "30 s late": lambda t, seconds: t + 30,
    "4 s early": lambda t, seconds: t - 4,
    "25 frames per second for 23.976": lambda t, seconds: t * 25 / 23.976,
    "15 s more in the middle": lambda t, seconds: t if t < seconds / 2 else t + 15,
}


def cues_of(sentences: Sequence[Sentence]) -> Iterator[Cue]:
    """Write the subtitles of sentences that are read one after the other."""
    begin = 0.0
    for one in sentences:
        words = one.text.split()
        if len(words) == len(one.times):  # no word is said as several
            for i in range(0, len(words), WORDS):
                times = one.times[i : i + WORDS]
                start, end = times[0][0] - BEFORE_S, times[-1][1] + AFTER_S
                yield Cue(begin + max(0.0, start), begin + end, " ".join(words[i : i + WORDS]))
        begin += one.seconds


def heard_in(pipeline: Pipeline, samples: np.ndarray, cues: Sequence[Cue]) -> dict[int, list[Segment]]:
    """Align subtitles, and return the words of every cue by its number, from 0 on."""
    passages = [Passage(cue.text, cue.start, cue.end, where=f"cue {i}") for i, cue in enumerate(cues, 1)]
    words: dict[int, list[Segment]] = {}
    for word in align_text(pipeline, "", samples, passages, 1.0)[0].alignment.tier("words"):
        if word.origin is not None and word.origin.passage is not None:
            words.setdefault(word.origin.passage, []).append(word)
    return words


def aligned(pipeline: Pipeline, samples: np.ndarray, cues: Sequence[Cue]) -> list[float | None]:
    """Return the start of every cue's first word by isotone, less what a cue begins before it."""
    words = heard_in(pipeline, samples, cues)
    return [words[i][0].start - BEFORE_S if i in words else None for i in range(len(cues))]


def synced(recording: Path, cues: Sequence[Cue], folder: Path) -> list[float | None]:
    """Return the start of every cue by ffsubsync."""
    given, out = folder / "given.srt", folder / "synced.srt"
    times = [(clock(round(1000 * c.start), ","), clock(round(1000 * c.end), ",")) for c in cues]
    rows = [f"{i}\n{start} --> {end}\n{c.text}\n" for i, (c, (start, end)) in enumerate(zip(cues, times), 1)]
    given.write_text("\n".join(rows), encoding="utf-8")
    subprocess.run(
        ["ffsubsync", str(recording), "-i", str(given), "-o", str(out)], check=True, capture_output=True
    )
    found = [(p.text, p.start) for p in srt(out.read_text(encoding="utf-8"))]
    starts: list[float | None] = []
    for cue in cues:  # it leaves cues out, and keeps their order
        place = next((i for i, (text, _) in enumerate(found) if text == cue.text), None)
        starts.append(None if place is None else found[place][1])
        found = found if place is None else found[place + 1 :]
    return starts


def foreign(pipeline: Pipeline, read: Sequence[Sequence[Sentence]]) -> Iterator[list[str]]:
    """Make the rows of the table of cues with the text of another recording's."""
    samples = [np.concatenate([one.samples for one in sentences]) for sentences in read]
    cues = [[cue for cue in cues_of(sentences) if cue.text.count(" ") > 1] for sentences in read]
    for condition, heard in made_worse(samples, "all", RATE):
        for name, others in OTHERS.items():
            counts = np.zeros((2, 2), int)
            for number, own in enumerate(cues):
                other = cues[number - 1]
                given = [
                    cue._replace(text=other[i % len(other)].text) if others(i) else cue
                    for i, cue in enumerate(own)
                ]
                found = unlikely(heard_in(pipeline, heard[number], given))
                for i in range(len(given)):
                    counts[int(others(i)), int(i in found)] += 1
            (right, wrongly), (missed, rightly) = counts
            shares = (100 * rightly / (missed + rightly), 100 * wrongly / (right + wrongly))
            numbers = str(missed + rightly), str(right + wrongly)
            yield [condition, name, *numbers, *(f"{share:.1f}" for share in shares)]


def row(case: str, tool: str, errors: Sequence[float | None]) -> list[str]:
    """Make a row of the table of the errors of cues in seconds; None for cues without a time."""
    found = np.array([error for error in errors if error is not None])
    shares = [100 * (found <= limit).sum() / len(errors) for limit in (0.1, 0.5, 1.0)]
    lost = 100 * (1 - len(found) / len(errors))
    numbers = [f"{share:.1f}" for share in (*shares, lost)]
    return [case, tool, str(len(errors)), f"{np.median(found):.2f}" if len(found) else "", *numbers]


def main() -> None:
    """Print the table."""
    parser = parser_of("subtitles", __doc__, 20)
    parser.add_argument("--foreign", action="store_true", help="cues of other recordings, in all conditions")
    given = parser.parse_args()
    pipeline = Pipeline(Model.load(given.model))
    read = readings(pipeline, given)
    if given.foreign:
        print(markdown_table(FOREIGN, list(foreign(pipeline, read))), end="")
    else:
        print(markdown_table(COLUMNS, list(shifted(pipeline, read))), end="")


def shifted(pipeline: Pipeline, read: Sequence[Sequence[Sentence]]) -> Iterator[list[str]]:
    """Make the rows of the table of times that are off."""
    tools = ["isotone", *(["ffsubsync"] if shutil.which("ffsubsync") else [])]
    errors: dict[tuple[str, str], list[float | None]] = {(c, tool): [] for c in CASES for tool in tools}
    for sentences in read:
        samples = np.concatenate([one.samples for one in sentences])
        right = list(cues_of(sentences))
        with TemporaryDirectory() as folder:
            recording = Path(folder) / "recording.wav"
            soundfile.write(recording, samples, RATE)
            for case, worse in CASES.items():
                seconds = len(samples) / RATE
                cues = [
                    Cue(max(0.0, worse(c.start, seconds)), max(0.0, worse(c.end, seconds)), c.text)
                    for c in right
                ]
                for tool in tools:
                    found = (
                        aligned(pipeline, samples, cues)
                        if tool == "isotone"
                        else synced(recording, cues, Path(folder))
                    )
                    errors[case, tool] += [
                        None if start is None else abs(start - cue.start) for start, cue in zip(found, right)
                    ]
    return (row(case, tool, own) for (case, tool), own in errors.items())


if __name__ == "__main__":
    main()
