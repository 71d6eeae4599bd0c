"""The two matchings against enumeration of all candidates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import Segment, Tier
from isotone.evaluation.matching import count_boundary_hits, count_start_matches, pair_by_edits
from isotone.evaluation.tracks import SILENT, TICKS_PER_MS, Boundaries, Track, encode


def track(*segments: tuple[int, int, int]) -> Track:
    """Make a track from (label code, start, end) in ticks."""
    table = np.array(segments, dtype=np.int64).reshape(-1, 3)
    return Track(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())


@st.composite
def tracks(draw: st.DrawFn, most: int = 5) -> Track:
    """Draw small tracks whose times often collide."""
    n = draw(st.integers(0, most))
    times = sorted(draw(st.lists(st.integers(0, 12), min_size=2 * n, max_size=2 * n)))
    labels = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    return track(*zip(labels, times[::2], times[1::2]))


def matchings(n: int, m: int) -> list[list[tuple[int, int]]]:
    """Enumerate the one-to-one matchings in order of two rows."""
    return [
        list(zip(a, b))
        for size in range(min(n, m) + 1)
        for a in itertools.combinations(range(n), size)
        for b in itertools.combinations(range(m), size)
    ]


def overlap(a: Track, i: int, b: Track, j: int) -> int:
    return int(min(a.ends[i], b.ends[j]) - max(a.starts[i], b.starts[j]))


@settings(max_examples=150, deadline=None)
@given(tracks(), tracks(), st.booleans())
def test_start_matches_equal_the_best_of_all_matchings(hyp: Track, ref: Track, strict: bool) -> None:
    collars = np.array([0, 1, 3, 12])
    found = count_start_matches(hyp, ref, collars, strict)
    for collar, count in zip(collars, found):
        best = max(
            len(pairs)
            for pairs in matchings(len(hyp), len(ref))
            if all(
                abs(hyp.starts[i] - ref.starts[j]) <= collar
                and (not strict or hyp.labels[i] == ref.labels[j])
                for i, j in pairs
            )
        )
        assert count == best
    assert (np.diff(found) >= 0).all()  # a wider collar never loses a match


@settings(max_examples=150, deadline=None)
@given(tracks(), tracks())
def test_pairing_has_the_fewest_edits_then_the_largest_overlap_then_the_smallest_gaps(
    hyp: Track, ref: Track
) -> None:
    def cost(pairs: list[tuple[int, int]]) -> tuple[int, int, int]:
        wrong = sum(hyp.labels[i] != ref.labels[j] for i, j in pairs)
        shared = [overlap(hyp, i, ref, j) for i, j in pairs]
        edits = int(wrong) + len(hyp) + len(ref) - 2 * len(pairs)
        return edits, -sum(max(0, s) for s in shared), sum(max(0, -s) for s in shared)

    found = pair_by_edits(hyp, ref)
    chosen = [(int(i), j) for j, i in enumerate(found) if i >= 0]
    assert cost(chosen) == min(map(cost, matchings(len(hyp), len(ref))))
    assert [i for i, _ in chosen] == sorted({i for i, _ in chosen})


@settings(max_examples=150, deadline=None)
@given(tracks(4), tracks(4))
def test_of_pairings_alike_the_one_is_taken_whose_pairs_come_last(hyp: Track, ref: Track) -> None:
    """From the end: a pair before a deletion, a deletion before an insertion."""
    PAIR, DELETION, INSERTION = 0, 1, 2

    def edits(i: int, j: int) -> list[tuple[tuple[int, int, int], list[int]]]:
        """Cost (edits, minus the overlap, gaps) and steps from the end, of every way to edit i into j segments."""
        ways = [((0, 0, 0), [])] if i == j == 0 else []
        if i > 0 and j > 0:
            shared = overlap(hyp, i - 1, ref, j - 1)
            wrong = int(hyp.labels[i - 1] != ref.labels[j - 1])
            own = wrong, -max(0, shared), max(0, -shared)
            ways += [(add(cost, own), [PAIR, *steps]) for cost, steps in edits(i - 1, j - 1)]
        if j > 0:
            ways += [(add(cost, (1, 0, 0)), [DELETION, *steps]) for cost, steps in edits(i, j - 1)]
        if i > 0:
            ways += [(add(cost, (1, 0, 0)), [INSERTION, *steps]) for cost, steps in edits(i - 1, j)]
        return ways

    def add(a: tuple[int, int, int], b: tuple[int, int, int]) -> tuple[int, int, int]:
        return a[0] + b[0], a[1] + b[1], a[2] + b[2]

    i, expected = len(hyp), []
    for step in min(edits(len(hyp), len(ref)))[1]:
        i -= step != DELETION
        expected += [i if step == PAIR else -1] if step != INSERTION else []
    assert pair_by_edits(hyp, ref).tolist() == expected[::-1]


def test_of_two_segments_as_near_the_later_is_paired() -> None:
    hyp, ref = track((0, 10, 20)), track((0, 0, 10), (0, 20, 30))
    assert pair_by_edits(hyp, ref).tolist() == [-1, 0]
    assert pair_by_edits(ref, hyp).tolist() == [1]


def test_pairing_follows_the_path_far_from_the_diagonal() -> None:
    # six labels, then 20; the same 20, then six others: 6 deletions and 6 insertions are cheaper than 26
    # substitutions, though each label is 6 places and 600 ms off
    ref = track(*[(k, 100 * k, 100 * k + 100) for k in range(26)])
    hyp = track(*[(k + 6, 100 * k, 100 * k + 100) for k in range(26)])
    assert pair_by_edits(hyp, ref).tolist() == [-1] * 6 + list(range(20))


def test_pairing_without_a_common_label_follows_the_overlap() -> None:
    hyp = track(*[(0, 10 * i, 10 * i + 10) for i in range(30)])
    ref = track(*[(1, 10 * i + 100, 10 * i + 110) for i in range(10)])
    assert pair_by_edits(hyp, ref).tolist() == list(range(10, 20))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("more", [4, 6, 9])
def test_all_that_one_side_has_more_may_come_first_or_last(share: float, more: int) -> None:
    """Many pairings leave out as many segments; times say which of them is right."""
    long, begin = track(*[(0, 10 * i, 10 * i + 10) for i in range(3 + more)]), int(share * more)
    short = track(*[(0, 10 * i, 10 * i + 10) for i in range(begin, begin + 3)])
    assert pair_by_edits(long, short).tolist() == list(range(begin, begin + 3))
    expected = [-1] * begin + [0, 1, 2] + [-1] * (more - begin)
    assert pair_by_edits(short, long).tolist() == expected


@pytest.mark.parametrize("strict, hits", [(True, 1), (False, 2)])
def test_boundaries_hit_on_a_shared_side(strict: bool, hits: int) -> None:
    # 10: "0 ends" against "0 ends, 1 starts": a side in common. 20: silence on the same side is no such
    # thing.
    hyp = Boundaries(np.array([10, 20]), np.array([0, 2]), np.array([SILENT, SILENT]))
    ref = Boundaries(np.array([11, 21]), np.array([0, 3]), np.array([1, SILENT]))
    assert count_boundary_hits(hyp, ref, 1, strict) == hits
    assert count_boundary_hits(hyp, ref, 0, strict) == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 15), max_size=6), st.lists(st.integers(0, 15), max_size=6), st.integers(0, 3))
def test_unlabelled_boundary_hits_equal_the_best_of_all_matchings(
    a: list[int], b: list[int], tolerance: int
) -> None:
    def points(times: list[int]) -> Boundaries:
        silent = np.full(len(times), SILENT)
        return Boundaries(np.array(sorted(times), dtype=np.int64), silent, silent)

    hyp, ref = points(a), points(b)
    best = max(
        len(pairs)
        for pairs in matchings(len(a), len(b))
        if all(abs(hyp.times[i] - ref.times[j]) <= tolerance for i, j in pairs)
    )
    assert count_boundary_hits(hyp, ref, tolerance, strict=False) == best


def test_touching_segments_share_a_boundary() -> None:
    ms = TICKS_PER_MS
    # 0 touches 1 exactly, 1 and 2 are a rounding apart, 3 comes after a pause
    t = track((0, 0, 10 * ms), (1, 10 * ms, 20 * ms), (2, 21 * ms, 30 * ms), (3, 50 * ms, 60 * ms))
    points = t.boundaries()
    assert (points.times / ms).tolist() == [0, 10, 21, 30, 50, 60]
    assert points.left.tolist() == [SILENT, 0, 1, 2, SILENT, 3]
    assert points.right.tolist() == [0, 1, 2, SILENT, 3, SILENT]


def test_encoding_renames_then_leaves_silence_out_and_rounds_times() -> None:
    codes = {"a": 0}
    tier = Tier("phones", (Segment("tcl", 0, 0.1), Segment("x", 0.1, 0.13), Segment("a", 0.13, 0.2)))
    t = encode(tier, codes, {"sil"}, {"tcl": "sil"})
    assert codes == {"a": 0, "x": 1}
    assert t.labels.tolist() == [1, 0]
    assert t.starts.tolist() == [1_000_000, 1_300_000]  # 0.1 us, exactly
    assert t.ends.tolist() == [1_300_000, 2_000_000]
