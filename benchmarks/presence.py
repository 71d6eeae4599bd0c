"""Detection of words that were not said, and of speech that is not in the text.

``python -m benchmarks.presence MODEL FOLDER...`` prints the tables. Folders are those of :mod:`benchmarks.doubt`.

Every recording is aligned with its own transcript and with corrupted ones:

added, replaced, removed
    one word, at random, of which the first two are words of other recordings
tenth
    a tenth of the words, each of the three at the same rate
half
    the second half of the words removed
wrong
    another recording's transcript
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.doubt import transcripts
from isotone import audio as sound
from isotone.alignment import AlignmentError, Segment
from isotone.evaluation import roc
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.presence import probabilities
from isotone.pipeline.result import Result
from isotone.training.presence import Corrupted, corrupted

KINDS = ("right", "added", "replaced", "removed", "tenth", "half", "wrong")


class Text(NamedTuple):
    """A corrupted text, and for every word its number in the true one, None for words that were not said."""

    corrupted: Corrupted
    source: list[int | None]


@dataclass
class Found:
    """Findings for one kind of corruption, over all recordings.

    Attributes:
        said, strange: Presence of the words that were said, and that were not.
        dropped: For every word, if it was said and if it was left out.
        gaps, missing: Probabilities of other speech in gaps without and with missing words.
        shifts: Seconds from the times with the true transcript, of both ends of words that are left.
        shares: Mean presence of every text.
        verdicts: Verdict of every text.
    """

    said: list[float] = field(default_factory=list)
    strange: list[float] = field(default_factory=list)
    dropped: list[tuple[bool, bool]] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    missing: list[float] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)


def texts(
    words: list[str], other: list[str], pool: Sequence[str], rng: np.random.Generator
) -> dict[str, Text]:
    """Make the texts of one recording, by kind."""
    count, place, stranger = len(words), int(rng.integers(len(words))), str(rng.choice(pool))
    numbers: list[int | None] = [*range(count)]
    true = [True] * count
    out = {"right": Text(Corrupted(words, true, frozenset()), numbers)}
    added = [*words[:place], stranger, *words[place:]]
    sources = [*numbers[:place], None, *numbers[place:]]
    out["added"] = Text(Corrupted(added, [n is not None for n in sources], frozenset()), sources)
    replaced = [stranger if i == place else word for i, word in enumerate(words)]
    sources = [None if i == place else i for i in range(count)]
    out["replaced"] = Text(Corrupted(replaced, [n is not None for n in sources], frozenset()), sources)
    if count > 1:
        removed = [word for i, word in enumerate(words) if i != place]
        left = [i for i in numbers if i != place]
        out["removed"] = Text(Corrupted(removed, true[1:], frozenset({place})), left)
        half = -(-count // 2)
        out["half"] = Text(Corrupted(words[:half], true[:half], frozenset({half})), numbers[:half])
    tenth = corrupted(words, pool, rng, 1 / 30, 1 / 30, 1 / 30)
    if any(tenth.said):
        out["tenth"] = Text(tenth, [])
    out["wrong"] = Text(Corrupted(other, [False] * len(other), frozenset()), [None] * len(other))
    return out


def measure(pipeline: Pipeline, folder: Path, limit: int) -> dict[str, Found]:
    """Align the recordings of a folder with all texts."""
    presence = pipeline.presence
    if presence is None:
        raise SystemExit("The model does not know which words were said.")
    found = [(path, text.split()) for path, text in transcripts(folder)]
    found = found[:: -(-len(found) // limit)] if limit else found
    pool = [word for _, words in found for word in words]
    rng = np.random.default_rng(0)
    out: dict[str, Found] = defaultdict(Found)
    for i, (path, words) in enumerate(
        track(found, folder.name, transient=True, console=Console(stderr=True))
    ):
        samples = sound.load(path, pipeline.model.encoder.sample_rate)
        other = found[(i + len(found) // 2) % len(found)][1]
        clean: dict[int, Segment] = {}
        for kind, text in texts(words, other, pool, rng).items():
            try:
                transcript = pipeline.encode(" ".join(text.corrupted.words))
                result = pipeline.align(path.stem, samples, transcript)
                evidence = pipeline.evidence(path.stem, samples, transcript)
            except AlignmentError:  # too long for the audio, which is an error of its own
                continue
            if evidence is None or len(evidence.words) != len(text.corrupted.words):
                continue  # words that are counted in another way
            _words(out[kind], result, text.corrupted.said)
            for place, p in zip(evidence.places, probabilities(presence.extra, evidence.gaps)):
                (out[kind].missing if place in text.corrupted.missing else out[kind].gaps).append(float(p))
            out[kind].shares.append(float(probabilities(presence.said, evidence.said).mean()))
            segments = dict(zip(result.words, result.alignment.tier("words")))
            clean = clean or segments
            for number, source in enumerate(text.source):
                if source in clean and number in segments:
                    a, b = clean[source], segments[number]
                    out[kind].shifts += [abs(a.start - b.start), abs(a.end - b.end)]
    return out


def _words(out: Found, result: Result, said: Sequence[bool]) -> None:
    out.verdicts.append(result.alignment.verdict)
    left = dict(zip(result.words, result.alignment.tier("words")))
    absent = iter(result.alignment.absent)
    for number, true in enumerate(said):
        word = left.get(number) or next(absent)
        out.dropped.append((true, number not in left))
        (out.said if true else out.strange).append(float(word.presence or 0.0))


def rows(name: str, found: dict[str, Found]) -> Iterator[tuple[str, ...]]:
    """Compute the rows of the table."""
    clean = found["right"]
    for kind in (k for k in KINDS if k in found):
        own = found[kind]
        out = [drop for true, drop in own.dropped if not true]
        lost = [drop for true, drop in own.dropped if true]
        right = np.array(own.shifts)
        yield (
            name,
            kind,
            str(len(own.verdicts)),
            _auc(own.said or clean.said, own.strange),
            _percent(out),
            _percent(lost),
            _auc([-p for p in own.gaps], [-p for p in own.missing]),
            _auc(clean.shares, own.shares) if kind == "wrong" else "",
            _percent([v == "right" for v in own.verdicts]),
            _percent([v in ("wrong", "no speech") for v in own.verdicts]),
            _percent((right <= 0.02).tolist()),
            _percent((right <= 0.05).tolist()),
        )


def _auc(right: Sequence[float], wrong: Sequence[float]) -> str:
    return f"{100 * roc(right, wrong).auc:.1f}" if len(right) and len(wrong) else ""


def _percent(flags: Sequence[bool]) -> str:
    return f"{100 * np.mean(flags):.1f}" if len(flags) else ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.presence", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("model", help="model or run folder, pack, or a hub id")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--limit", type=int, default=60, help="recordings of a folder, spread over it; 0: all"
    )
    given = parser.parse_args()
    table = Table(
        "folder", "text", "files", "AUC words", "absent: found %", "said: lost %", "AUC gaps", "AUC files",
        "called right %", "called wrong %", "20 ms %", "50 ms %", title=given.model,
    )  # fmt: skip
    pipeline = Pipeline(Model.load(given.model), check=False)
    for folder in given.folders:
        for row in rows(folder.name, measure(pipeline, folder, given.limit)):
            table.add_row(*row)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
