"""A corpus of two utterances worked out by hand, and laws for any corpus."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import SILENCE, Alignment, Segment, Tier, tier_from_spans
from isotone.evaluation import QuietFrames, Report, score
from tests.paths import DATA

Pair = tuple[Alignment, Alignment]
Spans = list[tuple[str, float, float]]


def alignment(id: str, duration: float, spans: Spans, tier: str = "phones") -> Alignment:
    return Alignment(id, duration, (Tier(tier, tuple(Segment(*s) for s in spans)),))


# One: "a b a c" recognised as "a b x": x stands for the second a (70 ms of overlap; for c it would be 0), c
# is deleted. Two: "a b" recognised as "a e b": e is inserted.
REF = [
    alignment(
        "one", 0.6,
        [("h#", 0, 0.1), ("a", 0.1, 0.2), ("b", 0.2, 0.3), ("a", 0.3, 0.4), ("c", 0.4, 0.45),
         ("h#", 0.45, 0.6)],
    ),
    alignment("two", 0.2, [("a", 0, 0.1), ("b", 0.1, 0.2)]),
]  # fmt: skip
HYP = [
    alignment("one", 0.6, [("a", 0.11, 0.19), ("b", 0.205, 0.31), ("x", 0.31, 0.38)]),
    alignment("two", 0.2, [("a", 0, 0.08), ("e", 0.08, 0.13), ("b", 0.13, 0.2)]),
]
PAIRS = list(zip(HYP, REF))
HALF = QuietFrames(np.array([True, False]))

# Starts. Strict at 20 ms: a (10 ms), b (5 ms); a (0), b is 30 ms late: 3 of 6 predicted, 3 of 6 reference.
#   At 50 ms b counts too. Boundaries only at 20 ms: also x (10 ms), and e for b (20 ms): 5.
# Overlap in ms, strict: 80 + 95 + 0 + 0 of 350; 80 + 70 of 200. Boundaries only: 70 more, of x.
#   Ratios 0.8, 0.95, 0, 0, 0.8, 0.7. IoU of the four matched: 80/100, 95/110, 80/100, 70/100.
# Errors of the four matched segments in ms: starts 10, 5, 0, 30; ends -10, 10, -20, 0.
#   All absolute: 0 0 5 10 10 10 20 30; the 90th percentile lies at rank 0.9 * 7 = 6.3.
# Boundaries as points: ref 100 200 300 400 450, 0 100 200; hyp 110 190 205 310 380, 0 80 130 200.
#   Strict hits at 20 ms: 110 (starts a), 190 (ends a), 310 (ends b); 0, 80 (ends a), 200: 6 of 9, 6 of 8.
#   Boundaries only: 380 for 400 too: 7. OS = 1/8. Strict HR = 3/4: r1 = 0.279508, r2 = -0.265165.
STRICT = {
    "start_f1@20ms": 50.0, "start_precision@20ms": 50.0, "start_recall@20ms": 50.0,
    "start_f1@10ms": 50.0, "start_f1@25ms": 50.0, "start_f1@50ms": 100 * 4 / 6, "start_f1@200ms": 100 * 4 / 6,
    "idr": 100 * 325 / 550, "idr_mean": 100 * 3.25 / 6, "iou": 100 * (0.8 + 95 / 110 + 0.8 + 0.7) / 4,
    "per": 50.0,  # one substitution, one deletion, one insertion in 6
    "matched": 100 * 4 / 6,
    "error_mean": 10.625, "error_median": 10.0, "error_p90": 23.0, "bias": 3.125,
    "start_error_mean": 11.25, "start_error_median": 7.5, "start_error_p90": 24.0, "start_bias": 11.25,
    "end_error_mean": 10.0, "end_error_median": 10.0, "end_error_p90": 17.0, "end_bias": -5.0,
    "within_10ms": 75.0, "within_20ms": 87.5, "within_25ms": 87.5, "within_50ms": 100.0,
    "start_within_10ms": 75.0, "end_within_10ms": 75.0, "end_within_20ms": 100.0,
    "boundary_precision@20ms": 100 * 6 / 9, "boundary_recall@20ms": 75.0, "boundary_f1@20ms": 100 * 12 / 17,
    "over_segmentation": 12.5, "r_value@20ms": 72.7663,
}  # fmt: skip
BOUNDARIES_ONLY = {
    "start_f1@20ms": 100 * 5 / 6, "idr": 100 * 395 / 550, "matched": 100 * 5 / 6, "per": 50.0,
    # x for a: start +10, end -20
    "error_mean": (85 + 30) / 10, "bias": (25 - 10) / 10,
    "boundary_recall@20ms": 87.5, "r_value@20ms": 82.3223,
}  # fmt: skip


@pytest.mark.parametrize("strict, expected", [(True, STRICT), (False, BOUNDARIES_ONLY)])
def test_hand_worked_corpus(strict: bool, expected: dict[str, float]) -> None:
    report = score(PAIRS, strict=strict, resamples=0)
    assert {name: report[name].value for name in expected} == pytest.approx(expected, abs=1e-4)
    assert (report["per"].count, report["idr"].count) == (6, 6)
    assert (report.edits["per"].substitutions, report.edits["per"].deletions) == (1, 1)
    assert (report.edits["per"].insertions, report.edits["per"].length) == (1, 6)


def test_reports_by_class_and_by_type_of_boundary() -> None:
    classes = {"a": "vowel", "e": "vowel", "b": "stop"}
    report = score(PAIRS, classes=classes, resamples=0)
    rows = {row["class"]: row for row in report.classes}
    assert list(rows) == ["other", "stop", "vowel"]
    # vowels: a, a (substituted), a. Starts 10, 0; ends -10, -20; overlap 160 of 300 ms
    vowel = {
        "class": "vowel", "segments": 3, "matched": 100 * 2 / 3, "start_bias_ms": 5.0, "end_bias_ms": -15.0,
        "start_error_ms": 5.0, "end_error_ms": 15.0, "within_20ms": 100.0, "idr": 100 * 160 / 300,
    }  # fmt: skip
    assert rows["vowel"] == pytest.approx(vowel)
    # c was deleted: there is nothing to measure
    assert rows["other"]["segments"] == 1
    assert rows["other"]["start_error_ms"] is None
    assert rows["other"]["idr"] == 0
    # starts after silence 10 and 0, of b after a 5 and 30, the end of the last b 0
    assert list(report.transitions) == [
        {"left": "silence", "right": "vowel", "boundaries": 2, "bias_ms": 5.0, "error_ms": 5.0},
        {"left": "vowel", "right": "stop", "boundaries": 2, "bias_ms": 17.5, "error_ms": 17.5},
        {"left": "stop", "right": "silence", "boundaries": 1, "bias_ms": 0.0, "error_ms": 0.0},
    ]
    assert score(PAIRS, resamples=0).classes == ()


def test_words_have_word_and_character_error_rates() -> None:
    ref = alignment("u", 1.0, [("the", 0.0, 0.2), ("cat", 0.2, 0.6), ("sat", 0.6, 1.0)], "words")
    hyp = alignment("u", 1.0, [("the", 0.15, 0.2), ("bat", 0.2, 0.6), ("sat", 0.85, 1.0)], "words")
    report = score([(hyp, ref)], tier="words", resamples=0)
    assert report.collar_s == 0.2
    assert report["wer"].value == pytest.approx(100 / 3)
    assert report["cer"].value == pytest.approx(100 / 11)  # "the cat sat"
    assert report["start_f1@200ms"].value == pytest.approx(100 / 3)  # sat is 250 ms late, bat is no cat
    assert report["start_f1@10ms"].value == 0.0


def test_undefined_is_said_not_invented() -> None:
    nothing = alignment("u", 1.0, [("sil", 0, 1)])
    report = score([(nothing, nothing)], resamples=0)
    for name in ("start_f1@20ms", "idr", "per", "error_mean", "error_median", "bias", "r_value@20ms", "iou"):
        assert report[name].value is None, name
    assert json.loads(report.to_json())["edits"]["per"]["rate"] is None
    # all deleted: detection is 0, boundaries are not measured
    report = score([(nothing, REF[1])], resamples=0)
    assert (report["start_f1@20ms"].value, report["idr"].value, report["per"].value) == (0, 0, 100)
    assert report["error_mean"].value is None
    # insertions against an empty reference still count, where there is another utterance to divide by
    report = score([(replace(HYP[1], id="u"), nothing), PAIRS[1]], resamples=0)
    assert report["per"].value == 100 * (3 + 1) / 2


def test_a_threshold_is_inclusive_whatever_floats_say() -> None:
    # 0.13 - 0.12 > 0.01 in floating point
    ref, hyp = alignment("u", 1, [("a", 0.12, 0.5)]), alignment("u", 1, [("a", 0.13, 0.5)])
    report = score([(hyp, ref)], resamples=0)
    assert report["start_within_10ms"].value == 100
    assert report["start_f1@10ms"].value == 100


def test_zero_long_segments_are_timed_but_have_no_ratio() -> None:
    ref = alignment("u", 1, [("a", 0.1, 0.1), ("b", 0.2, 0.3)])
    report = score([(ref, ref)], resamples=0)
    assert report["idr_mean"].count == 1
    assert report["iou"].value == 100
    assert report["idr"].value == 100
    assert report["start_f1@10ms"].count == 2


def test_collars_are_explicit() -> None:
    report = score(PAIRS, collar_s=0.03, resamples=0)
    assert report["start_f1@30ms"].value == pytest.approx(100 * 4 / 6)
    assert {f"start_f1@{c}ms" for c in (10, 20, 25, 30, 50, 100, 200)} <= set(report.metrics)
    assert "start_f1" not in report.metrics
    with pytest.raises(KeyError, match="Did you mean 'start_f1@"):
        report["start_f1"]
    characters = [alignment("u", 1, [("a", 0, 1)], "characters")]
    with pytest.raises(ValueError, match=r"give collar_s, in seconds, for 'characters'"):
        score([(characters[0], characters[0])], tier="characters")
    assert (
        score([(characters[0], characters[0])], tier="characters", collar_s=0.1)["label_error_rate"].value
        == 0
    )
    with pytest.raises(ValueError, match=r"0 or more; got -1"):
        score(PAIRS, collar_s=-1)


def test_input_errors() -> None:
    with pytest.raises(ValueError, match="at least one pair"):
        score([])
    with pytest.raises(ValueError, match="got twice: one"):
        score([PAIRS[0], PAIRS[0]])
    with pytest.raises(KeyError, match="no tier 'words'"):
        score(PAIRS, tier="words")


def test_relabelling_folds_both_sides() -> None:
    assert score(PAIRS, relabel={"x": "a"}, resamples=0)["per"].value == pytest.approx(100 * 2 / 6)
    # c and x fold to silence: "a b a" recognised as "a b"
    folded = score(PAIRS[:1], relabel={"x": "sil", "c": "sil"}, resamples=0)
    assert folded["per"].value == pytest.approx(100 / 3)
    assert score(PAIRS[:1], silence=(), resamples=0)["per"].value == pytest.approx(100 * 4 / 6)


def test_json_and_rows_hold_the_same_values() -> None:
    report = score(PAIRS, resamples=50, quiet_frames={"one": HALF, "two": HALF})
    out = json.loads(report.to_json())
    assert [r["metric"] for r in out["metrics"]] == list(report.metrics)
    assert out["metrics"] == report.rows()
    assert out["per_utterance"]["id"] == ["one", "two"]
    assert out["per_utterance"]["ref"] == [4, 2]
    assert "per_utterance" not in json.loads(report.to_json(per_utterance=False))


# Laws


@st.composite
def corpora(draw: st.DrawFn) -> list[Pair]:
    """A few utterances with times on a grid of 5 ms: predictions resemble their references."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    pairs = []
    for u in range(draw(st.integers(1, 3))):
        edges = sorted(rng.sample(range(200), 2 * rng.randint(0, 5)))
        spans = [(rng.choice("abc"), s, e) for s, e in zip(edges[::2], edges[1::2])]
        moved = [
            (rng.choice([label, label, "b", ""]), s + rng.randint(-6, 6), e + rng.randint(-6, 6))
            for label, s, e in spans
            if rng.random() < 0.9
        ]
        both = [
            Alignment(
                str(u),
                2.0,
                (tier_from_spans("phones", [(x, s / 200, e / 200, None) for x, s, e in rows], 2.0),),
            )
            for rows in (moved, spans)
        ]
        pairs.append((both[0], both[1]))
    return pairs


def values(report: Report) -> dict[str, float | None]:
    return {name: metric.value for name, metric in report.metrics.items()}


def remade(pairs: list[Pair], change: dict[str, str] | None = None, shift: float = 0.0) -> list[Pair]:
    """Return the same corpus with labels renamed and all times later."""
    return [
        tuple(  # type: ignore[misc]
            Alignment(
                a.id,
                a.duration + shift,
                (
                    Tier(
                        "phones",
                        tuple(
                            Segment((change or {}).get(s.label, s.label), s.start + shift, s.end + shift)
                            for s in a.tier("phones")
                        ),
                    ),
                ),
            )
            for a in pair
        )
        for pair in pairs
    ]


@settings(max_examples=40, deadline=None)
@given(corpora(), st.booleans())
def test_renaming_labels_changes_nothing(pairs: list[Pair], strict: bool) -> None:
    names = {"a": "two words", "b": "a", "c": "\N{LATIN LETTER GLOTTAL STOP}\N{COMBINING TILDE BELOW}"}
    a, b = score(pairs, strict=strict, resamples=0), score(remade(pairs, names), strict=strict, resamples=0)
    assert values(a) == values(b)


@settings(max_examples=40, deadline=None)
@given(corpora(), st.booleans(), st.sampled_from([0.005, 0.1, 1 / 3, 1000.7]))
def test_shifting_both_sides_changes_nothing(pairs: list[Pair], strict: bool, shift: float) -> None:
    a, b = (
        score(pairs, strict=strict, resamples=0),
        score(remade(pairs, shift=shift), strict=strict, resamples=0),
    )
    for name, value in values(a).items():
        moved = b[name].value
        assert (moved is None) == (value is None), name
        assert value is None or moved == pytest.approx(value, rel=1e-9), name


@settings(max_examples=40, deadline=None)
@given(corpora(), st.booleans())
def test_values_stay_in_range_and_order(pairs: list[Pair], strict: bool) -> None:
    report = score(pairs, strict=strict, resamples=0)
    for metric in report.metrics.values():
        if (
            metric.unit == "%"
            and metric.name not in ("over_segmentation", "per")
            and "r_value" not in metric.name
        ):
            assert metric.value is None or -1e-9 <= metric.value <= 100 + 1e-9, metric
    curve = [report[f"start_f1@{c}ms"].value for c in (10, 20, 25, 50, 100, 200)]
    assert curve == sorted(curve, key=lambda v: -1 if v is None else v)
    within = [report[f"within_{c}ms"].value for c in (10, 20, 25, 50, 100)]
    assert within == sorted(within, key=lambda v: -1 if v is None else v)
    if strict:  # every pair counted strictly counts loosely: never less overlap or fewer matches
        loose = score(pairs, strict=False, resamples=0)
        for name in ("start_f1@20ms", "idr", "matched", "boundary_recall@20ms"):
            assert (report[name].value or 0) <= (loose[name].value or 0) + 1e-9


@settings(max_examples=40, deadline=None)
@given(corpora())
def test_a_perfect_prediction_is_perfect(pairs: list[Pair]) -> None:
    report = score([(r, r) for _, r in pairs], resamples=0)
    for metric in report.metrics.values():
        if metric.value is not None:
            best = {"higher": 100.0, "lower": 0.0, "zero": 0.0}[metric.better]
            assert metric.value == pytest.approx(best), metric


# Real annotation

TIMIT = DATA / "timit_sample"


def timit() -> list[Alignment]:
    """The sample's hand labels, read without the toolkit's readers."""
    found = []
    for phn in sorted(TIMIT.glob("*/*.phn")):
        tiers = []
        for name, suffix in (("words", ".wrd"), ("phones", ".phn")):
            rows = [line.split() for line in phn.with_suffix(suffix).read_text().splitlines()]
            spans = [(label, int(s) / 16000, int(e) / 16000, None) for s, e, label in rows]
            tiers.append(tier_from_spans(name, spans, spans[-1][2]))
        duration = max(t.segments[-1].end for t in tiers)
        found.append(Alignment(f"{phn.parent.name}/{phn.stem}", duration, tuple(tiers)))
    return found


@pytest.mark.skipif(
    not TIMIT.is_dir(), reason="no TIMIT sample: ISOTONE_TEST_DATA does not hold a folder timit_sample"
)
def test_hand_labels_moved_by_a_known_error() -> None:
    references = timit()
    spoken = [s for r in references for s in r.tier("phones") if s.label not in SILENCE]
    late = []
    for r in references:
        moved = tuple(Segment(s.label, s.start + 0.015, s.end + 0.015) for s in r.tier("phones"))
        late.append(Alignment(r.id, r.duration + 0.015, (Tier("phones", moved),)))
    report = score(zip(late, references), resamples=200)
    assert report["idr"].count == len(spoken)
    assert report["per"].value == 0
    for name in ("error_mean", "error_median", "error_p90", "bias"):
        assert report[name].value == pytest.approx(15)
    assert (report["within_10ms"].value, report["within_20ms"].value) == (0, 100)
    assert report["start_f1@20ms"].value == 100
    # what 15 ms leave of each phone, added up from the labels
    left = sum(max(0.0, s.duration - 0.015) for s in spoken)
    assert report["idr"].value == pytest.approx(100 * left / sum(s.duration for s in spoken))
    low, value, high = report["idr"].low, report["idr"].value, report["idr"].high
    assert low is not None
    assert value is not None
    assert high is not None
    assert low < value < high


@pytest.mark.skipif(
    not TIMIT.is_dir(), reason="no TIMIT sample: ISOTONE_TEST_DATA does not hold a folder timit_sample"
)
def test_hand_labels_reduced_to_spikes() -> None:
    """Predictions of 20 ms in the middle of each word, as CTC makes them: all words right, little IDR."""
    references = timit()
    spikes, frames = [], {}
    for r in references:
        rows = [
            (s.label, (s.start + s.end) / 2 - 0.01, (s.start + s.end) / 2 + 0.01, None)
            for s in r.tier("words")
        ]
        spikes.append(Alignment(r.id, r.duration, (tier_from_spans("words", rows, r.duration),)))
        starts = [round(r.duration / 0.02 * start / r.duration) for _, start, _, _ in rows]
        quiet = ~np.isin(np.arange(round(r.duration / 0.02)), starts)
        frames[r.id] = QuietFrames(quiet)
    report = score(zip(spikes, references), tier="words", quiet_frames=frames, resamples=0)
    words = [s for r in references for s in r.tier("words")]
    assert report["wer"].value == 0
    assert report["matched"].value == 100
    assert report["idr"].value == pytest.approx(
        100 * 0.02 * len(words) / sum(s.duration for s in words), rel=1e-3
    )
    raw, net = report["peaky_raw"].value, report["peaky_paper"].value
    assert raw is not None
    assert net is not None
    silent = [1 - sum(s.duration for s in r.tier("words")) / r.duration for r in references]
    assert raw - net == pytest.approx(100 * sum(silent) / len(silent), abs=0.5)  # counted in frames
    # one frame of 20 ms per word is not quiet, and all of these are speech
    assert report["peaky"].value == pytest.approx(
        100 * (1 - 0.02 * len(words) / sum(s.duration for s in words)), abs=0.2
    )
