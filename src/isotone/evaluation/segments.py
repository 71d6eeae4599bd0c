"""A table of the reference segments and their predictions, which boundary and overlap measures come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from isotone.evaluation.formulas import idr, percent, ratio
from isotone.evaluation.matching import pair_by_edits
from isotone.evaluation.tracks import SILENT, TICKS_PER_MS, Bools, Floats, Ints, Track, ticks

#: Name of the class of labels without a class, and of the silent side of a boundary.
OTHER, SILENCE_CLASS = "other", "silence"


@dataclass(frozen=True)
class SegmentTable:
    """The reference segments of a corpus, each with the predicted segment that is paired with it.

    Attributes:
        utterance: ``(N,)`` number of the utterance.
        label, left, right: ``(N,)`` codes of the segment and of its touching neighbours, -1 for silence.
        counted: ``(N,)`` bool, true where boundaries and overlap count: paired and, if labels are strict, with
            an equal label.
        start_error, end_error: ``(N,)`` ticks, predicted minus reference; 0 where not counted.
        overlap, union, duration: ``(N,)`` ticks; overlap and union are 0 where not counted.
    """

    utterance: Ints
    label: Ints
    left: Ints
    right: Ints
    counted: Bools
    start_error: Ints
    end_error: Ints
    overlap: Ints
    union: Ints
    duration: Ints

    @classmethod
    def join(cls, tables: Sequence[SegmentTable]) -> SegmentTable:
        """Join tables, one after the other; at least one."""
        return cls(*[np.concatenate([getattr(t, f.name) for t in tables]) for f in fields(cls)])

    def within(self, threshold_s: float) -> tuple[Bools, Bools]:
        """Mark the counted segments that start, and those that end, within a threshold of the reference."""
        limit = ticks(threshold_s)
        return (
            self.counted & (np.abs(self.start_error) <= limit),
            self.counted & (np.abs(self.end_error) <= limit),
        )


def compare_segments(hyp: Track, ref: Track, utterance: int = 0, strict: bool = True) -> SegmentTable:
    """Pair an utterance's segments by minimum edit distance and measure the pairs.

    Args:
        hyp, ref: Predicted and reference segments.
        utterance: Its number in the corpus.
        strict: True where pairs with different labels (substitutions) are not counted.
    """
    pairs = pair_by_edits(hyp, ref)
    counted = pairs >= 0
    if strict:
        counted[counted] = hyp.labels[pairs[counted]] == ref.labels[counted]
    at = pairs[counted]
    start_error, end_error = np.zeros_like(ref.labels), np.zeros_like(ref.labels)
    overlap, union = np.zeros_like(ref.labels), np.zeros_like(ref.labels)
    duration = ref.ends - ref.starts
    start_error[counted] = hyp.starts[at] - ref.starts[counted]
    end_error[counted] = hyp.ends[at] - ref.ends[counted]
    shared = np.minimum(hyp.ends[at], ref.ends[counted]) - np.maximum(hyp.starts[at], ref.starts[counted])
    overlap[counted] = np.maximum(0, shared)
    union[counted] = hyp.ends[at] - hyp.starts[at] + duration[counted] - overlap[counted]
    left, right = ref.context()
    number = np.full_like(ref.labels, utterance)
    return SegmentTable(
        number, ref.labels, left, right, counted, start_error, end_error, overlap, union, duration
    )


def segment_sums(table: SegmentTable, utterances: int, thresholds_s: Sequence[float]) -> dict[str, Floats]:
    """Sum the columns of the table that measures need, by utterance.

    Args:
        table: The segments.
        utterances: U, the number of utterances.
        thresholds_s: Boundary errors to count up to, in seconds.

    Returns:
        Columns ``(U,)``; times are in milliseconds.
    """

    def add(values: Ints | Bools | Floats, unit: float = 1.0) -> Floats:
        return np.bincount(table.utterance, values, minlength=utterances) / unit

    # ratios need a denominator: segments without duration, or pairs without extent, have none
    timed, spread = table.duration > 0, table.union > 0
    sums = {
        "counted": add(table.counted),
        "overlap": add(table.overlap, TICKS_PER_MS),
        "duration": add(table.duration, TICKS_PER_MS),
        "timed": add(timed),
        "overlap_ratio": add(np.where(timed, table.overlap / np.maximum(1, table.duration), 0.0)),
        "spread": add(spread),
        "iou": add(np.where(spread, table.overlap / np.maximum(1, table.union), 0.0)),
    }
    for end, error in (("start", table.start_error), ("end", table.end_error)):
        sums[f"{end}_error"] = add(np.abs(error), TICKS_PER_MS)
        sums[f"{end}_bias"] = add(error, TICKS_PER_MS)
    for threshold_s in thresholds_s:
        starts, ends = table.within(threshold_s)
        sums[f"start_within_{threshold_s * 1000:g}ms"] = add(starts)
        sums[f"end_within_{threshold_s * 1000:g}ms"] = add(ends)
    return sums


def class_names(codes: Mapping[str, int], classes: Mapping[str, str]) -> list[str]:
    """Return the class of every label code; :data:`OTHER` for labels without a class.

    Args:
        codes: Label codes.
        classes: The class of each label.
    """
    return [classes.get(label, OTHER) for label in codes]  # codes number labels in the order they came


def class_rows(table: SegmentTable, names: Sequence[str]) -> list[dict[str, Any]]:
    """Compute boundary errors and overlap of every class of reference segments.

    Args:
        table: The segments.
        names: The class of every label code.

    Returns:
        One row per class: ``class``, ``segments``, ``matched`` (% that are counted), ``start_bias_ms``,
        ``end_bias_ms``, ``start_error_ms``, ``end_error_ms`` (means over counted segments),
        ``within_20ms`` (% of their boundaries) and ``idr`` (%); ``None`` where undefined.
    """
    labels = np.array([*names, ""], dtype=object)[table.label]
    starts, ends = table.within(0.02)
    rows = []
    for name in sorted({str(n) for n in labels}):
        here = labels == name
        hit = here & table.counted
        row = {"class": name, "segments": int(here.sum()), "matched": defined(percent(hit.sum(), here.sum()))}
        for kind, errors in (("bias", lambda x: x), ("error", np.abs)):
            for end, column in (("start", table.start_error), ("end", table.end_error)):
                row[f"{end}_{kind}_ms"] = defined(ratio(errors(column[hit]).sum() / TICKS_PER_MS, hit.sum()))
        row["within_20ms"] = defined(percent(starts[hit].sum() + ends[hit].sum(), 2 * hit.sum()))
        row["idr"] = defined(idr(table.overlap[here].sum(), table.duration[here].sum()))
        rows.append(row)
    return rows


def transition_rows(table: SegmentTable, names: Sequence[str]) -> list[dict[str, Any]]:
    """Compute mean signed and absolute error of boundaries, by the classes on their left and right.

    Every reference boundary counts once: a segment's start; and its end, where silence follows.

    Args:
        table: The segments.
        names: The class of every label code.

    Returns:
        One row per type, the most frequent first: ``left``, ``right``, ``boundaries``, ``bias_ms``, ``error_ms``.
    """
    # a boundary between two segments is the start of the later one, so ends count only before silence
    last = table.counted & (table.right == SILENT)
    left = np.concatenate([table.left[table.counted], table.label[last]])
    right = np.concatenate([table.label[table.counted], np.full(last.sum(), SILENT)])
    errors = np.concatenate([table.start_error[table.counted], table.end_error[last]]) / TICKS_PER_MS
    of = [*names, SILENCE_CLASS]  # SILENT, -1, is the last
    groups: dict[tuple[str, str], list[float]] = {}
    for a, b, error in zip(left.tolist(), right.tolist(), errors.tolist()):
        groups.setdefault((of[a], of[b]), []).append(error)
    rows = [
        {
            "left": a,
            "right": b,
            "boundaries": len(values),
            "bias_ms": float(np.mean(values)),
            "error_ms": float(np.mean(np.abs(values))),
        }
        for (a, b), values in groups.items()
    ]
    return sorted(rows, key=lambda row: (-row["boundaries"], row["left"], row["right"]))


def defined(value: Floats | float) -> float | None:
    """Return a number, or ``None`` for NaN: undefined."""
    return None if np.isnan(value) else float(value)
