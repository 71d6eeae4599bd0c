"""Comparison of predicted with reference alignments: all measures in one pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from isotone.alignment import SILENCE, Alignment
from isotone.evaluation.error_rates import EditCounts, count_character_edits, count_edits
from isotone.evaluation.matching import count_boundary_hits, count_start_matches
from isotone.evaluation.measures import CURVE_S, THRESHOLDS_S, at, collar_of, measures
from isotone.evaluation.peakiness import QUIET_SUMS, QuietFrames, count_quiet, silent_frames
from isotone.evaluation.report import Report, estimate
from isotone.evaluation.sample import Errors, Sample
from isotone.evaluation.segments import (
    SegmentTable,
    class_names,
    class_rows,
    compare_segments,
    segment_sums,
    transition_rows,
)
from isotone.evaluation.tracks import TICKS_PER_MS, Floats, Relabel, Track, encode, ticks


def score(
    pairs: Iterable[tuple[Alignment, Alignment]],
    tier: str = "phones",
    collar_s: float | None = None,
    strict: bool = True,
    quiet_frames: Mapping[str, QuietFrames] | None = None,
    seed: int = 0,
    *,
    silence: Collection[str] = SILENCE,
    relabel: Relabel | None = None,
    classes: Mapping[str, str] | None = None,
    tolerance_s: float = 0.02,
    resamples: int = 1000,
) -> Report:
    """Compare predicted alignments with reference ones.

    :mod:`isotone.evaluation.formulas` defines the measures. In short, over segments that are not silence:

    - ``start_f1@<collar>`` with precision, recall and the curve over collars: starts of equal labels, matched
      one to one in order;
    - ``idr``, ``idr_mean``, ``iou``, ``error_*`` (mean, median, 90th percentile of the absolute boundary
      error), ``bias`` (mean signed error, early is negative), ``within_*ms``: over segments paired by minimum
      edit distance, both boundaries, with ``start_`` and ``end_`` the one;
    - ``boundary_*``, ``over_segmentation``, ``r_value``: boundaries as points, two touching segments sharing
      one;
    - ``per``, or ``wer`` and ``cer`` for words: whatever ``strict`` is;
    - ``peaky``, and by the OTTC paper's formulas ``peaky_paper`` (less the reference's silence) and ``peaky_raw``,
      where quiet frames are given.

    Args:
        pairs: (predicted, reference) alignments; ids are the references'.
        tier: Name of the tier to compare.
        collar_s: Collar of the start-boundary F1 in seconds; by default 0.02 for phones and 0.2 for words.
        strict: True where labels have to agree: a substitution then has no boundaries and no overlap.
            Otherwise only boundaries are compared.
        quiet_frames: By reference id, the frames whose most likely label is blank, word delimiter or silence.
        seed: Of the bootstrap.
        silence: Labels that are left out on both sides, after relabelling.
        relabel: Labels to rename on both sides (61 phones to 39, say).
        classes: The class of each label, for the reports by class and by type of boundary.
        tolerance_s: Tolerance of the boundary detection measures, in seconds.
        resamples: Of the bootstrap over utterances; 0 for no confidence intervals.

    Raises:
        ValueError: no pairs, two references of one id, no default collar for the tier.
        KeyError: an alignment without the tier.
    """
    pairs = list(pairs)
    ids = _check_ids(pairs)
    collar_s = collar_of(tier, collar_s)
    codes: dict[str, int] = {}
    tracks = [
        (encode(h.tier(tier), codes, silence, relabel), encode(r.tier(tier), codes, silence, relabel))
        for h, r in pairs
    ]
    table = SegmentTable.join([compare_segments(h, r, u, strict) for u, (h, r) in enumerate(tracks)])
    sums = _counts(tracks, collar_s, tolerance_s, strict)
    sums |= segment_sums(table, len(pairs), THRESHOLDS_S)
    edits, edit_sums = _edits(tracks, list(codes), tier)
    sums |= edit_sums
    if quiet_frames is not None:
        sums |= _quiet([r for _, r in pairs], quiet_frames, tier, silence, relabel)
    sample = Sample(sums, _errors(table))
    listed = measures(collar_s, tolerance_s, tuple(edits), quiet_frames is not None)
    names = class_names(codes, classes or {})
    return Report(
        tier=tier,
        strict=strict,
        collar_s=collar_s,
        tolerance_s=tolerance_s,
        ids=ids,
        metrics=estimate(sample, listed, resamples, seed),
        edits=edits,
        classes=() if classes is None else tuple(class_rows(table, names)),
        transitions=() if classes is None else tuple(transition_rows(table, names)),
        seed=seed,
        resamples=resamples,
        sample=sample,
    )


def _check_ids(pairs: list[tuple[Alignment, Alignment]]) -> tuple[str, ...]:
    if not pairs:
        raise ValueError(
            "score expects at least one pair of alignments; got none. Do the ids of both sides match?"
        )
    ids = tuple(r.id for _, r in pairs)
    if len(set(ids)) < len(ids):
        twice = sorted({i for i in ids if ids.count(i) > 1})
        raise ValueError(f"score expects every utterance once; got twice: {', '.join(twice[:5])}.")
    return ids


def _counts(
    tracks: list[tuple[Track, Track]], collar_s: float, tolerance_s: float, strict: bool
) -> dict[str, Floats]:
    """Count segments and boundaries, and those that match, by utterance."""
    collars_s = [*CURVE_S, *([] if collar_s in CURVE_S else [collar_s])]
    collars = np.array([ticks(c) for c in collars_s], dtype=np.int64)
    names = [at("start_tp", c) for c in collars_s]
    rows = []
    for hyp, ref in tracks:
        a, b = hyp.boundaries(), ref.boundaries()
        hits = count_boundary_hits(a, b, ticks(tolerance_s), strict)
        rows.append(
            [*count_start_matches(hyp, ref, collars, strict), len(hyp), len(ref), len(a), len(b), hits]
        )
    columns = np.array(rows, dtype=float).T
    return dict(zip([*names, "hyp", "ref", "hyp_boundaries", "ref_boundaries", "boundary_hits"], columns))


def _edits(
    tracks: list[tuple[Track, Track]], labels: list[str], tier: str
) -> tuple[dict[str, EditCounts], dict[str, Floats]]:
    """Count edits over the corpus, and by utterance."""
    hyp, ref = [h.labels.tolist() for h, _ in tracks], [r.labels.tolist() for _, r in tracks]
    name = {"phones": "per", "words": "wer"}.get(tier, "label_error_rate")
    counted = {name: count_edits(hyp, ref)}
    if tier == "words":
        text = [[" ".join(labels[c] for c in codes) for codes in side] for side in (hyp, ref)]
        counted["cer"] = count_character_edits(*text)
    totals = {name: EditCounts(*map(int, table.sum(0))) for name, table in counted.items()}
    columns = ("substitutions", "deletions", "insertions", "length")
    sums = {
        f"{n}_{c}": table[:, k].astype(float) for n, table in counted.items() for k, c in enumerate(columns)
    }
    return totals, sums


def _quiet(
    references: list[Alignment],
    quiet_frames: Mapping[str, QuietFrames],
    tier: str,
    silence: Collection[str],
    relabel: Relabel | None,
) -> dict[str, Floats]:
    """Count quiet and silent frames by utterance; utterances without quiet frames given are left out."""
    out = np.zeros((len(QUIET_SUMS), len(references)))
    for u, reference in enumerate(references):
        if (frames := quiet_frames.get(reference.id)) is not None:
            silent = silent_frames(reference, frames, tier, silence, relabel)
            out[:, u] = count_quiet(frames, silent)
    return dict(zip(QUIET_SUMS, out))


def _errors(table: SegmentTable) -> dict[str, Errors]:
    """Return absolute errors in ms of the counted boundaries: starts, ends, and both."""
    utterance = table.utterance[table.counted]
    start = np.abs(table.start_error[table.counted]) / TICKS_PER_MS
    end = np.abs(table.end_error[table.counted]) / TICKS_PER_MS
    return {
        "start": Errors.sort(start, utterance),
        "end": Errors.sort(end, utterance),
        "both": Errors.sort(np.concatenate([start, end]), np.concatenate([utterance, utterance])),
    }
