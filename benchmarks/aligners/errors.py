"""Errors of boundaries against hand labels, with intervals by resampling of recordings."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import Segment
from isotone.text.phones import fold_segments

#: Collars of the tables, in milliseconds.
COLLARS_MS = (10, 20, 25, 50, 100, 250)
_RESAMPLINGS = 1000


def word_errors(found: Sequence[Segment], reference: Sequence[Segment]) -> list[float] | None:
    """Return the errors of both ends of every word in milliseconds; None where the words are not the same number."""
    if len(found) != len(reference):
        return None
    return [e for f, r in zip(found, reference) for e in _ends(f, r)]


def phone_errors(found: Sequence[Segment], reference: Sequence[Segment]) -> list[float]:
    """Return the errors of both ends of the phones that both sequences have, in milliseconds.

    Both are folded to the 39 phones, stops with their closures, without silence.
    """
    ours, theirs = (fold_segments(s, 39, closures="merge", silence="drop") for s in (found, reference))
    matcher = difflib.SequenceMatcher(
        None, [s.label for s in ours], [s.label for s in theirs], autojunk=False
    )
    pairs = [
        (ours[a + k], theirs[b + k]) for a, b, size in matcher.get_matching_blocks() for k in range(size)
    ]
    return [e for f, r in pairs for e in _ends(f, r)]


def without_offset(errors: Sequence[Sequence[float]], resolution_ms: float) -> list[list[float]]:
    """Return the errors without their median, at the resolution of the labels.

    Labels of another aligner are multiples of its frames, and all lie as far from where people would put them as its
    frames are from what they hear. An aligner that shares both looks better than one that shares neither.
    """
    offset = float(np.median(np.concatenate([np.asarray(e) for e in errors])))
    return [[resolution_ms * round((e - offset) / resolution_ms) for e in own] for own in errors]


def _ends(found: Segment, reference: Segment) -> tuple[float, float]:
    """Return the errors of start and end in milliseconds.

    Their last digits are noise: labels are multiples of milliseconds, and 20.000000000000018 is within 20.
    """
    return round(1000 * (found.start - reference.start), 6), round(1000 * (found.end - reference.end), 6)


def row(name: str, errors: Sequence[Sequence[float]], missed: int) -> str:
    """Format a row of the table from the errors of every recording."""
    if not errors or not any(errors):
        return f"| {name} | - | - | {' | '.join('-' for _ in COLLARS_MS)} | {missed} |"
    sizes = np.abs(np.concatenate([np.asarray(e) for e in errors]))
    low, high = _interval([np.abs(np.asarray(e)) for e in errors if len(e)])
    within = " | ".join(f"{100 * np.mean(sizes <= collar):.1f}" for collar in COLLARS_MS)
    return f"| {name} | {sizes.mean():.1f} ({low:.1f} to {high:.1f}) | {np.median(sizes):.1f} | {within} | {missed} |"


def header(title: str) -> str:
    """Return the head of the table."""
    collars = " | ".join(f"{collar} ms" for collar in COLLARS_MS)
    rule = "|".join("---" for _ in range(len(COLLARS_MS) + 4))
    return (
        f"\n**{title}**\n\n| aligner | mean error ms (95 %) | median ms | {collars} | not aligned |\n|{rule}|"
    )


def _interval(errors: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Return the bootstrap interval of the mean error; whole recordings are drawn."""
    rng = np.random.default_rng(0)
    sums, counts = np.array([e.sum() for e in errors]), np.array([len(e) for e in errors])
    draws = rng.integers(len(errors), size=(_RESAMPLINGS, len(errors)))
    means = sums[draws].sum(1) / counts[draws].sum(1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
