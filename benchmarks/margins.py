"""Margins of boundaries against hand labels: are nine of ten true boundaries within them, and how long are they?

``python -m benchmarks.margins FOLDER [--model english] [--condition all]``

A folder holds what ``benchmarks.aligners`` reads. Boundaries are both ends of every word or phone. ``within 20 ms`` has
the probability that the model gives, in the mean, and the share that is; AUC says how well that probability tells the
boundaries within 20 ms from others. The last table has the boundaries in five parts by their probability.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.aligners.errors import phone_pairs, word_pairs
from benchmarks.aligners.recordings import Labelled, labelled
from benchmarks.aligners.worse import add_condition, made_worse
from isotone.alignment import SILENCE, AlignmentError, Segment
from isotone.evaluation.roc import roc

if TYPE_CHECKING:
    from isotone.pipeline import Pipeline

_PARTS = 5


class Known(NamedTuple):
    """A boundary whose true place is known.

    Attributes:
        error: Seconds, the true place less the boundary's.
        before, after, near: Of its :class:`isotone.alignment.Margin`.
    """

    error: float
    before: float
    after: float
    near: float


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.margins",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="english")
    add_condition(parser)
    arguments = parser.parse_args()
    recordings = list(labelled(arguments.folder))
    if not recordings:
        raise SystemExit(f"error: no labelled recordings in {arguments.folder}.")
    pipeline = aligner(arguments.model)
    found = {
        name: boundaries(pipeline, recordings, heard)
        for name, heard in made_worse([r.samples for r in recordings], arguments.condition)
    }
    first = next(iter(found))
    for tier in ("words", "phones") if recordings[0].phones else ("words",):
        print(f"\n**{tier}**\n\n{HEADER}")
        print("\n".join(row(name, own[tier]) for name, own in found.items()))
        print("\n".join([f"\n**{tier}, in five parts**\n", *parts(first, found[first][tier])]))


def aligner(model: str) -> Pipeline:
    """Load a model that says how sure its boundaries are."""
    from isotone.model import Model
    from isotone.pipeline import Pipeline

    # every word gets times, as in the tables of aligners
    return Pipeline(Model.load(model), check=False, presence=False, margins=True)


def boundaries(
    pipeline: Pipeline, recordings: Sequence[Labelled], heard: Sequence[NDArray[np.float32]]
) -> dict[str, list[Known]]:
    """Align recordings, and list the boundaries of words and of phones whose true places are known."""
    found: dict[str, list[Known]] = {"words": [], "phones": []}
    for recording, samples in zip(recordings, heard):
        try:
            alignment = pipeline.align(recording.name, samples, pipeline.encode(recording.text)).alignment
        except AlignmentError:
            continue
        words = [s for s in alignment.tier("words") if s.label not in SILENCE]
        pairs = {
            "words": word_pairs(words, recording.words),
            "phones": phone_pairs(alignment.tier("phones").segments, recording.phones),
        }
        for tier, own in pairs.items():
            found[tier] += [known for ours, true in own.values() for known in _known(ours, true)]
    return found


def _known(own: Segment, true: Segment) -> Iterator[Known]:
    for margin, error in ((own.start_margin, true.start - own.start), (own.end_margin, true.end - own.end)):
        if margin is not None:
            # labels are multiples of milliseconds: 20.000000000000018 ms are within 20
            yield Known(round(error, 9), margin.before, margin.after, margin.near)


_COLUMNS = (
    "condition", "boundaries", "within their margins, %", "length, median ms", "mean ms", "within 20 ms: said, %",
    "is, %", "AUC, %",
)  # fmt: skip
HEADER = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"


def row(name: str, found: Sequence[Known]) -> str:
    """Format a row of the table."""
    error, before, after, near = np.array(found).T
    held = (error >= -before) & (error <= after)
    lengths = 1000 * (before + after)
    close = np.abs(error) <= 0.02
    numbers = (
        f"{len(found):,}", f"{100 * held.mean():.1f}", f"{np.median(lengths):.0f}", f"{lengths.mean():.0f}",
        f"{100 * near.mean():.1f}", f"{100 * close.mean():.1f}", f"{100 * roc(near[close], near[~close]).auc:.1f}",
    )  # fmt: skip
    return f"| {name} | {' | '.join(numbers)} |"


def parts(name: str, found: Sequence[Known]) -> Iterator[str]:
    """Iterate over the lines of a table of the boundaries in parts of equal size, the least sure ones first."""
    yield f"| {name}: within 20 ms, said, % | is, % | within their margins, % | length, median ms |\n|---|---|---|---|"
    rows = np.array(sorted(found, key=lambda known: known.near))
    for own in np.array_split(rows, _PARTS):
        error, before, after, near = own.T
        held = 100 * np.mean((error >= -before) & (error <= after))
        close, length = 100 * np.mean(np.abs(error) <= 0.02), 1000 * np.median(before + after)
        yield f"| {100 * near.mean():.1f} | {close:.1f} | {held:.1f} | {length:.0f} |"


if __name__ == "__main__":
    main()
