"""Detection of words that were not said, and of speech that is not in the text.

``python -m benchmarks.presence MODEL FOLDER...`` prints the tables. Folders are those of :mod:`benchmarks.doubt`. With
``--condition all`` recordings are also made worse (:mod:`isotone.training.conditions`); ``--texts right`` takes some
kinds of texts only.

Every recording is aligned with its own transcript and with corrupted ones:

added, replaced, removed
    one word, at random; the first two are words of other recordings
tenth
    a tenth of the words, each of the three at the same rate
omitted, middle
    a part removed; all between the first and the last part, and of halves half of the words
excerpt
    only what lies between them
inserted
    a part of another recording
swapped
    two parts in the other order
moved
    the last part first
repeated
    its own, and the recording begins again at a part
wrong
    another recording's

Parts are the halves of a recording; with ``--join N``, N recordings that were joined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks.aligners.worse import add_condition, made_worse
from benchmarks.doubt import arguments, spread, transcripts
from isotone import audio as sound
from isotone.alignment import AlignmentError, Segment
from isotone.evaluation import markdown_table, roc
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.presence import probabilities
from isotone.pipeline.result import Result
from isotone.pipeline.whole import align_whole
from isotone.text.normalize import TextError
from isotone.text.tokenizer import Transcript
from isotone.training.presence import Corrupted, corrupted, watching

#: Kinds of texts, as the table says them.
KINDS = {
    "right": "right",
    "added": "a word added",
    "replaced": "a word replaced",
    "removed": "a word removed",
    "tenth": "a tenth of the words",
    "omitted": "a part removed",
    "middle": "the middle removed",
    "excerpt": "only the middle",
    "inserted": "a part of another inserted",
    "swapped": "parts swapped",
    "moved": "the last part first",
    "repeated": "the beginning said twice",
    "wrong": "another recording's",
}

HEAD = (
    "recordings", "condition", "text", "files", "AUC of words %", "told %", "left out %", "precision %",
    "right words told %", "lost %", "AUC of gaps %", "called right %", "partly %", "wrong %",
    "within 20 ms, 1 word away %", "2 words %", "3 or more %",
)  # fmt: skip

#: Distances from the nearest corruption, in words, at which times are compared; the last one is this or more.
DISTANCES = (1, 2, 3)


@dataclass
class Found:
    """Findings for one kind of corruption, over all recordings.

    Attributes:
        said, strange: Presence of the words that were said, and that were not.
        judged: For every word, if it was said, if it was left out, and if it was that or named as unlikely.
        gaps, missing: Probabilities of other speech in gaps without and with missing words.
        shifts: Seconds from the times with the true transcript, of both ends of words that are left, by the distance
            from the nearest corruption in words.
        verdicts: Verdict of every text.
    """

    said: list[float] = field(default_factory=list)
    strange: list[float] = field(default_factory=list)
    judged: list[tuple[bool, bool, bool]] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    missing: list[float] = field(default_factory=list)
    shifts: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    verdicts: list[str] = field(default_factory=list)


class Recording(NamedTuple):
    """A recording, or several that were joined, with the words of its parts."""

    name: str
    paths: list[Path]
    parts: list[list[str]]

    @property
    def words(self) -> list[str]:
        """All words."""
        return [word for part in self.parts for word in part]


def texts(
    recording: Recording, other: Recording, pool: Sequence[str], rng: np.random.Generator
) -> dict[str, Corrupted]:
    """Make the texts of one recording, by kind."""
    words, middle = recording.words, len(recording.parts) // 2
    stranger, place = str(rng.choice(pool)), int(rng.integers(len(words)))
    start = sum(map(len, recording.parts[:middle]))
    end, before = start + len(recording.parts[middle]), start - len(recording.parts[middle - 1])
    swapped = words[:before] + words[start:end] + words[before:start] + words[end:]
    low, high = len(recording.parts[0]), len(words) - len(recording.parts[-1])
    if low == high:  # halves
        low, high = len(words) // 4, -(-3 * len(words) // 4)
    return {
        "right": _with(words, 0, 0, []),
        "added": _with(words, place, place, [stranger]),
        "replaced": _with(words, place, place + 1, [stranger]),
        "removed": _with(words, place, place + 1, []),
        "tenth": corrupted(words, pool, rng, 1 / 30),
        "omitted": _with(words, start, end, []),
        "middle": _with(words, low, high, []),
        "excerpt": Corrupted(words[low:high], list(range(low, high)), frozenset({0, high - low})),
        "inserted": _with(words, start, start, other.parts[0]),
        # which of the two is there is for the aligner to say: no word has a truth
        "swapped": Corrupted(swapped, [], frozenset()),
        "moved": Corrupted(words[high:] + words[:high], [], frozenset()),
        "repeated": Corrupted(words, [], frozenset()),
        "wrong": _with(words, 0, len(words), other.words),
    }


def _with(words: list[str], start: int, end: int, new: list[str]) -> Corrupted:
    """Put words in place of others."""
    sources: list[int | None] = [*range(start), *[None] * len(new), *range(end, len(words))]
    missing = frozenset({start} if end > start and not new else ())
    return Corrupted([*words[:start], *new, *words[end:]], sources, missing)


def recordings(folder: Path, limit: int, join: int) -> list[Recording]:
    """List the recordings of a folder; those of one word are left out."""
    found = [(path, text.split()) for path, text in transcripts(folder)]
    found = [(path, words) for path, words in found if len(words) > 1]
    if join == 1:
        made = [
            Recording(path.stem, [path], [words[: -(-len(words) // 2)], words[-(-len(words) // 2) :]])
            for path, words in found
        ]
    else:
        made = []
        for i in range(0, len(found) - join + 1, join):
            paths, parts = zip(*found[i : i + join])
            made.append(Recording(paths[0].stem, list(paths), list(parts)))
    return list(spread(made, limit))


def loaded(found: Sequence[Recording], rate: int) -> list[np.ndarray]:
    """Load the samples ``(N,)`` of recordings, joined where there are several."""
    return [np.concatenate([sound.load(path, rate) for path in one.paths]) for one in found]


def measure(
    pipeline: Pipeline,
    name: str,
    found: Sequence[Recording],
    heard: Sequence[np.ndarray],
    kinds: Collection[str] = KINDS,
) -> dict[str, Found]:
    """Align recordings ``(N,)``, as they are heard, with their texts of some kinds."""
    rate = pipeline.model.encoder.sample_rate
    pool = [word for recording in found for word in recording.words]
    rng = np.random.default_rng(0)
    out: dict[str, Found] = defaultdict(Found)
    for i, one in enumerate(track(found, name, transient=True, console=Console(stderr=True))):
        order = (found[(i + len(found) // 2 + step) % len(found)] for step in range(len(found)))
        other = next(two for two in order if two.words != one.words)
        clean: dict[int, Segment] = {}
        for kind, text in texts(one, other, pool, rng).items():
            if kind not in kinds:
                continue
            samples = heard[i]
            if kind == "repeated":
                first = clean.get(sum(map(len, one.parts[: len(one.parts) // 2])))
                samples = np.concatenate([samples[: round(first.start * rate) if first else 0], samples])
            try:
                transcript = pipeline.encode(" ".join(text.words))
                if len(transcript.words) != len(text.words):
                    continue  # words that are counted in another way
                result = align_whole(pipeline, one.name, samples, transcript)
            except (AlignmentError, TextError):  # too long for the audio, which is an error of its own
                continue
            if kind == "right":
                clean = dict(zip(result.words, result.alignment.tier("words")))
            out[kind].verdicts.append(result.alignment.verdict)
            if text.source:
                _words(out[kind], result, text, clean)
            if kind in ("removed", "tenth", "omitted", "middle"):
                _gaps(out[kind], pipeline, samples, transcript, text)
    return out


def _gaps(
    out: Found, pipeline: Pipeline, samples: np.ndarray, transcript: Transcript, text: Corrupted
) -> None:
    """Add the gaps of one text, by its first alignment."""
    presence = pipeline.presence
    assert presence is not None
    watching(pipeline, presence)
    evidence = pipeline.align("", samples, transcript).evidence
    pipeline.presence = presence
    for place, p in enumerate(probabilities(presence.extra, evidence.gaps).tolist() if evidence else ()):
        (out.missing if place in text.missing else out.gaps).append(p)


def _words(out: Found, result: Result, text: Corrupted, clean: dict[int, Segment]) -> None:
    """Add the words of one text."""
    left = dict(zip(result.words, result.alignment.tier("words")))
    absent = iter(result.alignment.absent)
    strange = [place - 0.5 for place in text.missing]
    strange += [number for number, source in enumerate(text.source) if source is None]
    for number, source in enumerate(text.source):
        word = left.get(number) or next(absent)
        lost = number not in left
        out.judged.append((source is not None, lost, lost or number in result.unlikely))
        (out.strange if source is None else out.said).append(float(word.presence or 0.0))
        if source in clean and number in left and strange:
            a, b = clean[source], left[number]
            far = min(DISTANCES[-1], int(np.ceil(min(abs(number - s) for s in strange))))
            out.shifts[far] += [abs(a.start - b.start), abs(a.end - b.end)]


def rows(name: str, condition: str, found: dict[str, Found]) -> Iterator[tuple[str, ...]]:
    """Compute the rows of the table for one folder and condition."""
    clean = found["right"]
    for kind in (k for k in KINDS if k in found):
        own = found[kind]
        yield (
            name,
            condition,
            KINDS[kind],
            str(len(own.verdicts)),
            _auc(own.said or clean.said, own.strange),
            _percent([told for true, _, told in own.judged if not true]),
            _percent([lost for true, lost, _ in own.judged if not true]),
            _percent([not true for true, lost, _ in own.judged if lost]) if own.strange else "",
            *(_percent([row[which] for row in own.judged if row[0]]) for which in (2, 1)),
            _auc([-p for p in own.gaps], [-p for p in own.missing]),
            *(_percent([v in kinds for v in own.verdicts]) for kinds in (("right",), ("partly",))),
            _percent([v in ("wrong", "no speech") for v in own.verdicts]),
            *(_percent([shift <= 0.02 for shift in own.shifts[far]]) for far in DISTANCES),
        )


def _auc(right: Sequence[float], wrong: Sequence[float]) -> str:
    return f"{100 * roc(right, wrong).auc:.1f}" if right and wrong else ""


def _percent(flags: Sequence[bool]) -> str:
    return f"{100 * np.mean(flags):.1f}" if flags else ""


def main() -> None:
    """Print the table."""
    parser = arguments("presence", __doc__ or "", 60)
    parser.add_argument("--join", type=int, default=1, help="recordings of a folder to join into one")
    add_condition(parser)
    parser.add_argument("--texts", nargs="+", default=list(KINDS), choices=KINDS, help="default: all")
    given = parser.parse_args()
    pipeline = Pipeline(Model.load(given.model))
    if pipeline.presence is None:
        raise SystemExit("error: the model does not know which words were said.")
    rate = pipeline.model.encoder.sample_rate
    table: list[tuple[str, ...]] = []
    for folder in given.folders:
        found = recordings(folder, given.limit, given.join)
        samples = loaded(found, rate)
        for name, heard in made_worse(samples, given.condition, rate):
            table += rows(folder.name, name, measure(pipeline, folder.name, found, heard, given.texts))
    shown = [i for i in range(len(HEAD)) if any(row[i] for row in table)]
    print(markdown_table([HEAD[i] for i in shown], [[row[i] for i in shown] for row in table]), end="")


if __name__ == "__main__":
    main()
