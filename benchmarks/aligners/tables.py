"""Tables of the errors of aligners on labelled recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.aligners.errors import (
    Errors,
    Figures,
    figures,
    framed,
    header,
    in_common,
    phone_errors,
    row,
    word_errors,
)
from benchmarks.aligners.recordings import Labelled
from benchmarks.aligners.systems import System, Times
from isotone.alignment import AlignmentError
from isotone.evaluation.tables import markdown_table

#: By aligner its figures, and the number of recordings that it did not align.
Row = Mapping[str, tuple[Figures | None, int]]


def report(
    condition: str,
    systems: Mapping[str, System],
    recordings: Sequence[Labelled],
    heard: Sequence[np.ndarray],
    frame_ms: float | None,
) -> dict[str, Row]:
    """Measure aligners, and print the tables of one condition.

    Args:
        condition: Its name, for the titles.
        systems: The aligners by name.
        recordings: The labels, and what the aligners are told.
        heard: Samples of every recording, as the aligners hear them.
        frame_ms: Also print tables with every boundary at the start of its frame, of so many milliseconds.

    Returns:
        By tier the figures of all aligners.
    """
    rows: dict[str, Row] = {}
    times = {name: _aligned(system, recordings, heard) for name, system in systems.items()}
    missed = {name: len(recordings) - len(own) for name, own in times.items()}
    for tier in ("words", "phones") if recordings[0].phones else ("words",):
        found = {name: _errors(tier, own, recordings) for name, own in times.items()}
        title = f"{tier}, {condition}"
        rows[tier] = _table(title, found, missed)
        shared = in_common(found)
        if shared != found:
            _table(f"{title}, what all have", shared, missed)
        if frame_ms is not None:
            level = {name: _errors(tier, own, recordings, frame_ms) for name, own in times.items()}
            _table(f"{title}, in frames of {frame_ms:g} ms", level, missed)
    return rows


def beside(title: str, rows: Mapping[str, Row]) -> str:
    """Return a table with a row per condition: mean and median error in ms, and percent within the first five collars.

    Args:
        title: Of the first column.
        rows: By condition the figures of all aligners.
    """
    names = list(next(iter(rows.values())))
    cells = [
        [condition, *(cell for name in names for cell in _cells(*row[name]))]
        for condition, row in rows.items()
    ]
    return markdown_table([title, *(head for name in names for head in (name, "within"))], cells)


def _cells(found: Figures | None, missed: int) -> tuple[str, str]:
    failed = f", {missed} failed" if missed else ""
    if found is None:
        return f"-{failed}", "-"
    within = " ".join(f"{percent:.1f}" for percent in found.within[:5])
    return f"{found.mean_shown} / {found.median:.1f}{failed}", within


def _aligned(system: System, recordings: Sequence[Labelled], heard: Sequence[np.ndarray]) -> dict[int, Times]:
    """Return the times of the recordings that an aligner can align, with as many words as there are."""
    found: dict[int, Times] = {}
    for i, (recording, samples) in enumerate(zip(recordings, heard)):
        try:
            times = system(samples, recording.text)
        except (AlignmentError, RuntimeError):
            continue
        if len(times.words) == len(recording.words):
            found[i] = times
    return found


def _errors(
    tier: str, times: Mapping[int, Times], recordings: Sequence[Labelled], frame_ms: float | None = None
) -> dict[int, Errors]:
    """Return the errors of words or phones by recording, perhaps with boundaries at the starts of their frames."""
    of = word_errors if tier == "words" else phone_errors
    found = {}
    for i, own in times.items():
        segments = getattr(own, tier)
        found[i] = of(framed(segments, frame_ms) if frame_ms else segments, getattr(recordings[i], tier))
    return found


def _table(title: str, errors: Mapping[str, Mapping[int, Errors]], missed: Mapping[str, int]) -> Row:
    """Print a table with a row per aligner, and return its figures."""
    rows = {name: (figures(own), missed[name]) for name, own in errors.items()}
    print("\n".join([header(title), *(row(name, *own) for name, own in rows.items())]), flush=True)
    return rows
