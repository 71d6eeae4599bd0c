"""Peakiness against counting frame by frame in fractions, and by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import Alignment, Segment, Tier
from isotone.evaluation import QuietFrames, score
from isotone.evaluation.peakiness import silent_frames


def reference(id: str, duration: float, *segments: tuple[str, float, float]) -> Alignment:
    return Alignment(id, duration, (Tier("phones", tuple(Segment(*s) for s in segments)),))


def measured(
    references: list[Alignment], quiet: dict[str, QuietFrames], **options: object
) -> dict[str, float]:
    pairs = [(r, r) for r in references]
    found = score(pairs, quiet_frames=quiet, resamples=0, **options)  # type: ignore[arg-type]
    return {name: found[name].value for name in ("peaky", "peaky_paper", "peaky_raw")}  # type: ignore[misc]


def test_silent_frames_are_those_whose_centre_no_label_covers() -> None:
    ref = reference("u", 0.1, ("h#", 0.0, 0.02), ("a", 0.02, 0.045), ("b", 0.045, 0.07))
    ten = QuietFrames(np.zeros(10, bool))
    # centres 5, 15, ..., 95 ms; "a" and "b" cover 20 to 70 ms, the rest is "h#" or a gap
    assert silent_frames(ref, ten).tolist() == [True, True] + [False] * 5 + [True] * 3
    # hop 20 ms, offset 10 ms: centres 20, 40, 60, 80: a start belongs to its segment, an end does not
    four = QuietFrames(np.zeros(4, bool), 0.02, 0.01)
    assert silent_frames(ref, four).tolist() == [False, False, False, True]
    # h# is no silence now; a, with centres 25 and 35, is silent
    assert (
        silent_frames(ref, ten, silence={"a"}).tolist() == [False] * 2 + [True] * 2 + [False] * 3 + [True] * 3
    )


def test_the_definitions_by_hand() -> None:
    refs = [reference("u", 0.1, ("h#", 0.0, 0.04), ("a", 0.04, 0.1)), reference("v", 0.2, ("a", 0.0, 0.2))]
    # 8 of 10 frames are quiet, 4 of them silent; 2 of 20 are quiet, and all spoken
    quiet = {"u": QuietFrames(np.arange(10) < 8), "v": QuietFrames(np.arange(20) < 2)}
    found = measured(refs, quiet)
    assert found["peaky"] == pytest.approx(100 * (4 + 2) / (6 + 20))
    assert found["peaky_paper"] == pytest.approx(100 * (0.8 - 0.4 + 0.1) / 2)
    assert found["peaky_raw"] == pytest.approx(100 * (0.8 + 0.1) / 2)
    report = score([(r, r) for r in refs], quiet_frames={"v": quiet["v"]}, resamples=0)
    assert (report["peaky"].value, report["peaky"].count, report["peaky_raw"].count) == (10.0, 20, 1)
    assert "peaky" not in score([(r, r) for r in refs], resamples=0).metrics
    # renamed to silence, a leaves no speech: the share is undefined, not 0
    assert measured(refs, quiet, relabel={"a": "sil"})["peaky"] is None


def test_a_label_for_silence_changes_nothing() -> None:
    """A model that names every sound has 0, whether it says silence where there is silence, or some sound."""
    ref = reference("u", 0.1, ("sil", 0.0, 0.04), ("a", 0.04, 0.1))
    silent = np.arange(10) < 4
    assert measured([ref], {"u": QuietFrames(silent)}) == {"peaky": 0, "peaky_paper": 0, "peaky_raw": 40}
    never = measured([ref], {"u": QuietFrames(np.zeros(10, bool))})
    assert never == {"peaky": 0, "peaky_paper": pytest.approx(-40), "peaky_raw": 0}
    # peaks in speech and sounds in silence cancel out by the paper's formula, and not by ours
    swapped = measured([ref], {"u": QuietFrames(np.arange(10) >= 6)})
    assert swapped["peaky"] == pytest.approx(100 * 4 / 6)
    assert swapped["peaky_paper"] == pytest.approx(0)


GRID = st.one_of(st.none(), st.tuples(st.integers(1, 40), st.integers(-20, 30)))


@st.composite
def utterances(draw: st.DrawFn) -> tuple[list[tuple[str, int, int]], int, list[bool], tuple[int, int] | None]:
    """Segments and duration in ms, frames, and hop and offset of the frames in ms."""
    edges = sorted(draw(st.sets(st.integers(0, 300), max_size=8)))
    labels = draw(st.lists(st.sampled_from(["a", "b", "sil", None]), min_size=8, max_size=8))
    segments = [(x, s, e) for x, s, e in zip(labels, edges, edges[1:]) if x]
    quiet = draw(st.lists(st.booleans(), min_size=1, max_size=30))
    return segments, (edges[-1] if edges else 0) + 20, quiet, draw(GRID)


@settings(max_examples=200, deadline=None)
@given(st.lists(utterances(), min_size=1, max_size=4))
def test_against_counting_in_fractions(found: list) -> None:
    spoken = hits = 0
    paper, raw = [], []
    refs, given_frames = [], {}
    for u, (segments, duration, quiet, grid) in enumerate(found):
        name = f"u{u}"
        refs.append(reference(name, duration / 1000, *((x, s / 1000, e / 1000) for x, s, e in segments)))
        hop, offset = (Fraction(duration, len(quiet)), Fraction(0)) if grid is None else map(Fraction, grid)
        times = (None, 0.0) if grid is None else (grid[0] / 1000, grid[1] / 1000)
        given_frames[name] = QuietFrames(np.array(quiet), *times)
        silent = 0
        for i, is_quiet in enumerate(quiet):
            centre = offset + (i + Fraction(1, 2)) * hop
            centre = Fraction(round(centre * 10_000), 10_000)  # evaluation's unit: 0.1 us
            speech = any(x != "sil" and s <= centre < e for x, s, e in segments)
            spoken += speech
            hits += speech and is_quiet
            silent += not speech
        raw.append(Fraction(sum(quiet), len(quiet)))
        paper.append(Fraction(sum(quiet) - silent, len(quiet)))
    values = measured(refs, given_frames)
    assert values["peaky"] == (pytest.approx(float(100 * Fraction(hits, spoken))) if spoken else None)
    assert values["peaky_paper"] == pytest.approx(float(100 * sum(paper) / len(paper)), abs=1e-9)
    assert values["peaky_raw"] == pytest.approx(float(100 * sum(raw) / len(raw)), abs=1e-9)


@given(st.lists(st.booleans(), min_size=1))
def test_spans_and_back(row: list[bool]) -> None:
    frames = QuietFrames(np.array(row))
    again = QuietFrames.from_spans(len(row), frames.spans())
    assert again.quiet.tolist() == row


@pytest.mark.parametrize("spans", [[(0, 4)], [(-1, 2)], [(2, 2)], [(1, 2), (0, 1)], [(0, 2), (1, 3)]])
def test_impossible_spans(spans: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="Spans of quiet frames expect 0 <= first < end <= 3"):
        QuietFrames.from_spans(3, spans)


def test_impossible_frames() -> None:
    with pytest.raises(ValueError, match="one or more frames"):
        QuietFrames(np.zeros(0, bool))
    with pytest.raises(ValueError, match="hop_s above 0"):
        QuietFrames(np.zeros(1, bool), 0.0)
