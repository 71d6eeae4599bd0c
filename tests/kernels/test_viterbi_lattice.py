"""Optional tokens and stars in both lattices, few stored rows, and bands, against enumeration of all paths."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import AlignmentError
from isotone.kernels.viterbi import banded_path, check_ctc, ctc_path, ctc_score, monotone_path, search
from isotone.pipeline.stars import star_scores

CASES = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)
EXACT = 1e-9
BLANK_LABEL = 0


def random_log_probs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    x = rng.normal(size=shape) * 2
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def with_star(log_probs: np.ndarray, cost: float) -> np.ndarray:
    """Scores with a star as one label more, the last."""
    star = star_scores(torch.from_numpy(log_probs), BLANK_LABEL, cost).numpy()
    return np.concatenate([log_probs, star[..., None]], -1)


def frame_score(row: np.ndarray, label: int, star_cost: float) -> float:
    if label == len(row):
        return float(row.max() - star_cost * (1 - np.exp(row[BLANK_LABEL])))
    return float(row[label])


def path_score(
    log_probs: np.ndarray, path: Sequence[int], labels: np.ndarray, star_cost: float = 0.0
) -> float:
    """Of scores without the column of a star."""
    chosen = [BLANK_LABEL if u < 0 else int(labels[u]) for u in path]
    return sum(frame_score(log_probs[t], label, star_cost) for t, label in enumerate(chosen))


def is_path(path: tuple[int, ...], labels: np.ndarray, optional: np.ndarray) -> bool:
    """Return whether CTC allows the path: tokens in order, all required ones, blanks between equal labels."""
    visited = [u for u in path if u >= 0]
    if visited != sorted(visited) or not set(np.flatnonzero(~optional)) <= set(visited):
        return False
    if any(a == -1 and u in path[:t] for t, a in enumerate(path) for u in path[t + 1 :] if u >= 0):
        return False  # a token's frames are consecutive
    return all(a == b or a < 0 or b < 0 or labels[a] != labels[b] for a, b in itertools.pairwise(path))


def ctc_paths(frames: int, labels: np.ndarray, optional: np.ndarray) -> list[tuple[int, ...]]:
    paths = itertools.product(range(-1, len(labels)), repeat=frames)
    return [path for path in paths if is_path(path, labels, optional)]


@pytest.mark.parametrize("some_optional", [False, True])
def test_scores_without_paths_are_those_of_the_paths(some_optional: bool) -> None:
    rng = np.random.default_rng(0)
    frames, tokens = np.array([0, 40, 300, 700]), np.array([0, 9, 60, 250])
    log_probs = random_log_probs(rng, 4, 700, 6)
    labels, optional = rng.integers(1, 6, (4, 250)), rng.random((4, 250)) < 0.3
    given = log_probs, labels, frames, tokens, BLANK_LABEL, optional if some_optional else None
    np.testing.assert_array_equal(ctc_score(*given), ctc_path(*given)[1])
    with pytest.raises(AlignmentError, match="Row 0"):
        ctc_score(log_probs[:1], labels[:1, :9], np.array([5]), np.array([9]), BLANK_LABEL)


@CASES
@given(seeds, st.integers(1, 5), st.integers(1, 4), st.sampled_from([0.0, 0.5, 3.0]))
def test_ctc_with_optional_tokens_and_stars_is_the_best_of_all_paths(
    seed: int, frames: int, tokens: int, star_cost: float
) -> None:
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 1, frames, 3)
    labels, optional = rng.integers(1, 4, (1, tokens)), rng.random((1, tokens)) < 0.5
    allowed = ctc_paths(frames, labels[0], optional[0])
    starred, n, m = with_star(log_probs, star_cost), np.array([frames]), np.array([tokens])
    if not allowed:
        with pytest.raises(AlignmentError, match="Row 0"):
            ctc_path(starred, labels, n, m, BLANK_LABEL, optional)
        return
    paths, scores = ctc_path(starred, labels, n, m, BLANK_LABEL, optional)
    found = tuple(paths[0].tolist())
    best = max(path_score(log_probs[0], path, labels[0], star_cost) for path in allowed)
    assert found in allowed
    assert scores[0] == pytest.approx(best, abs=EXACT)
    assert path_score(log_probs[0], found, labels[0], star_cost) == pytest.approx(best, abs=EXACT)


@CASES
@given(seeds, st.integers(1, 6), st.integers(1, 4), st.integers(1, 2))
def test_monotone_paths_with_stars_are_the_best_of_all(
    seed: int, frames: int, tokens: int, least: int
) -> None:
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 1, frames, 3)
    labels, optional = rng.integers(0, 4, (1, tokens)), rng.random((1, tokens)) < 0.5
    required = set(np.flatnonzero(~optional[0]).tolist())
    allowed = [
        a
        for a in itertools.combinations_with_replacement(range(tokens), frames)
        if required <= set(a) and min(a.count(u) for u in a) >= least
    ]
    arguments = (with_star(log_probs, 0.3), labels, np.array([frames]), np.array([tokens]), optional, least)
    if not allowed:
        with pytest.raises(AlignmentError, match="Row 0"):
            monotone_path(*arguments)
        return
    paths, scores = monotone_path(*arguments)
    best = max(path_score(log_probs[0], a, labels[0], 0.3) for a in allowed)
    assert tuple(paths[0].tolist()) in allowed
    assert scores[0] == pytest.approx(best, abs=EXACT)


def batch(seed: int, share_optional: float = 0.0) -> tuple[np.ndarray, ...]:
    """Rows of all kinds, from as tight as can be to loose, with repeats."""
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 6, 150, 6)
    labels = rng.integers(1, 6, (6, 40))
    m = np.array([40, 1, 17, 40, 25, 3])
    n = np.array([150, 1, 90, 80, 60, 150])
    return log_probs, labels, n, m, rng.random(labels.shape) < share_optional


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(("least", "stored"), [(1, 0), (1, 10**9), (7, 0), (10**6, 0)])
def test_how_many_rows_are_stored_does_not_matter(
    share: float, least: int, stored: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_probs, labels, n, m, optional = batch(0, share)
    level = np.round(log_probs)  # many ties
    runs = [
        lambda: ctc_path(log_probs, labels, n, m, 0, optional),
        lambda: ctc_path(level, labels, n, m, 0, optional),
        lambda: monotone_path(log_probs, labels, n, m, optional),
        lambda: monotone_path(level, labels, n, m, optional),
        lambda: monotone_path(log_probs[[0, 2]], labels[[0, 2]], n[[0, 2]], m[[0, 2]], optional[[0, 2]], 3),
    ]
    expected = [run() for run in runs]
    monkeypatch.setattr(search, "LEAST_BLOCK", least)
    monkeypatch.setattr(search, "STORED_BYTES", stored)
    for run, (paths, scores) in zip(runs, expected):
        again, again_scores = run()
        np.testing.assert_array_equal(again, paths)
        np.testing.assert_array_equal(again_scores, scores)


@pytest.mark.parametrize("place", [0, 13, 29])
@pytest.mark.parametrize("least", [1, 5, 64])
def test_one_optional_token_is_the_better_of_with_and_without(
    place: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LEAST_BLOCK", least)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        frames = int(rng.integers(45, 120))
        log_probs, labels = random_log_probs(rng, 1, frames, 5), rng.integers(1, 5, (1, 30))
        without = np.delete(labels, place, 1)
        n, m = np.array([frames]), np.array([30])
        optional = np.arange(30)[None] == place
        best = max(
            ctc_path(log_probs, labels, n, m, 0)[1][0], ctc_path(log_probs, without, n, m - 1, 0)[1][0]
        )
        paths, scores = ctc_path(log_probs, labels, n, m, 0, optional)
        assert scores[0] == pytest.approx(best, abs=EXACT)
        assert path_score(log_probs[0], paths[0], labels[0]) == pytest.approx(best, abs=EXACT)
        best = max(
            monotone_path(log_probs, labels, n, m)[1][0], monotone_path(log_probs, without, n, m - 1)[1][0]
        )
        paths, scores = monotone_path(log_probs, labels, n, m, optional)
        assert scores[0] == pytest.approx(best, abs=EXACT)
        assert path_score(log_probs[0], paths[0], labels[0]) == pytest.approx(best, abs=EXACT)


def plain_ctc(
    log_probs: np.ndarray, labels: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[float, list[int]]:
    """The textbook's trellis of 2 U + 1 states, cell by cell, of the states of tokens low to high of every frame."""
    states = [BLANK_LABEL] + [v for label in labels for v in (int(label), BLANK_LABEL)]
    frames, size = len(log_probs), len(states)
    table = np.full((frames + 1, size), -np.inf)
    came = np.zeros((frames, size), int)
    for t, s in itertools.product(range(frames), range(size)):
        if not low[t] <= s // 2 <= high[t]:
            continue
        if t == 0:
            best = 0.0 if s < 2 else -np.inf
        else:
            jump = s > 1 and states[s] != BLANK_LABEL and states[s] != states[s - 2]
            before = [s] + [s - 1] * (s > 0) + [s - 2] * jump
            came[t, s] = max(before, key=lambda r: table[t - 1, r])
            best = table[t - 1, came[t, s]]
        table[t, s] = best + log_probs[t, states[s]]
    s = max(range(max(0, size - 2), size), key=lambda r: table[frames - 1, r])
    score, path = float(table[frames - 1, s]), []
    for t in range(frames - 1, -1, -1):
        path.append(s // 2 if s % 2 else -1)
        s = came[t, s]
    return score, path[::-1]


def test_long_rows_equal_the_textbook() -> None:
    log_probs, labels, n, m, _ = batch(1)
    paths, scores = ctc_path(log_probs, labels, n, m, 0)
    for b in range(len(n)):
        everywhere = np.zeros(n[b], int), np.full(n[b], m[b])
        score, path = plain_ctc(log_probs[b, : n[b]], labels[b, : m[b]], *everywhere)
        assert scores[b] == pytest.approx(score, abs=EXACT)
        assert paths[b, : n[b]].tolist() == path


@pytest.mark.parametrize("band", [3, 8])
def test_a_band_is_the_textbook_in_a_band(band: int) -> None:
    touched = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        log_probs, labels = random_log_probs(rng, 1, 90, 6), rng.integers(1, 6, (1, 30))
        n, m = np.array([90]), np.array([30])
        found = banded_path(log_probs, labels, n, m, band, BLANK_LABEL)
        centre = np.arange(90) * 30 / 89
        low, high = np.floor(centre).astype(int) - band, np.ceil(centre).astype(int) + band
        score, path = plain_ctc(log_probs[0], labels[0], low, high)
        assert found.scores[0] == pytest.approx(score, abs=EXACT)
        assert found.paths[0].tolist() == path
        if not found.touched[0] and found.scores[0] < ctc_path(log_probs, labels, n, m, 0)[1][0] - EXACT:
            pytest.fail("a better path elsewhere, and no word of it")
        touched.append(bool(found.touched[0]))
    assert any(touched) == (band == 3)


@CASES
@given(seeds, st.booleans(), st.booleans())
def test_a_wide_band_changes_nothing(seed: int, with_blank: bool, some_optional: bool) -> None:
    log_probs, labels, n, m, optional = batch(seed, 0.4 if some_optional else 0.0)
    blank = BLANK_LABEL if with_blank else None
    wide = banded_path(log_probs, labels, n, m, 200, blank, optional)
    if with_blank:
        paths, scores = ctc_path(log_probs, labels, n, m, 0, optional)
    else:
        paths, scores = monotone_path(log_probs, labels, n, m, optional)
    np.testing.assert_array_equal(wide.paths, paths)
    np.testing.assert_array_equal(wide.scores, scores)
    assert not wide.touched.any()
    assert (banded_path(log_probs, labels, n, m, 12, blank, optional).scores <= scores + EXACT).all()


def test_a_path_far_from_the_line_touches_the_band() -> None:
    labels = np.arange(1, 41)[None]
    log_probs = np.full((1, 400, 41), -10.0)
    log_probs[0, :, 0] = -0.01
    log_probs[0, np.arange(300, 380, 2), np.arange(1, 41)] = 0.0  # all tokens are at the end
    n, m = torch.tensor([400]), torch.tensor([40])
    arguments = (torch.from_numpy(log_probs), torch.from_numpy(labels), n, m)
    paths, scores = ctc_path(*arguments, 0)
    near, far = banded_path(*arguments, 10, 0), banded_path(*arguments, 35, 0)
    assert near.touched.tolist() == [True]
    assert near.scores[0] < scores[0] - 10
    assert far.touched.tolist() == [False]
    torch.testing.assert_close(far.paths, paths, rtol=0, atol=0)


def spikes(tokens: Sequence[int], vocab: int) -> np.ndarray:
    """Log-probabilities of a peaky model for these tokens, each in the second of three frames."""
    probs = np.full((1, 3 * len(tokens) + 10, vocab), 0.01 / (vocab - 1))
    probs[0, :, BLANK_LABEL] = 0.99
    for i, label in enumerate(tokens):
        probs[0, 3 * i + 1] = 0.03 / (vocab - 1)
        probs[0, 3 * i + 1, label] = 0.97
    return np.log(probs)


@pytest.mark.parametrize(("words", "left_out"), [(4, {2}), (12, {0, 3, 4, 5, 11}), (1500, None)])
def test_stars_take_what_the_transcript_leaves_out_and_nothing_else(
    words: int, left_out: set[int] | None
) -> None:
    """Optional stars around all words of three tokens; the longest recording is cut into blocks by the kernel."""
    rng = np.random.default_rng(0)
    spoken = 1 + np.unique(rng.integers(0, 30, (2 * words, 3)), axis=0)  # no word twice
    spoken = rng.permutation(spoken)[:words]
    star = 31
    labels, frames, gaps = [star], [], [[]]  # tokens, their frames, and frames that each star has to take
    for word, tokens in enumerate(spoken.tolist()):
        frames_of = [3 * (3 * word + k) + 1 for k in range(3)]
        if (rng.random() < 0.3) if left_out is None else (word in left_out):
            gaps[-1] += frames_of
            continue
        labels += [*tokens, star]
        frames += frames_of
        gaps.append([])
    targets = np.array([labels])
    log_probs = with_star(spikes(spoken.flatten().tolist(), star), 3.0)
    arguments = log_probs, targets, np.array([log_probs.shape[1]]), np.array([len(labels)])
    paths, scores = ctc_path(*arguments, BLANK_LABEL, targets == star)
    runs: dict[int, list[int]] = {}
    for t, u in enumerate(paths[0].tolist()):
        runs.setdefault(u, []).append(t)
    tokens = [u for u, label in enumerate(labels) if label != star]
    assert [runs[u] for u in tokens] == [[t] for t in frames]
    expected = [list(range(gap[0], gap[-1] + 1)) if gap else [] for gap in gaps]
    assert [runs.get(u, []) for u, label in enumerate(labels) if label == star] == expected
    banded = banded_path(*arguments, 20 + len(labels) // 20, BLANK_LABEL, targets == star)
    assert not banded.touched.any()
    np.testing.assert_array_equal(banded.paths, paths)
    np.testing.assert_array_equal(banded.scores, scores)


def test_labels_and_optional_tokens_are_checked() -> None:
    log_probs, labels = np.zeros((1, 3, 3)), np.array([[1, 2, 1, 1]])
    n, m = np.array([3]), np.array([4])
    with pytest.raises(AlignmentError, match=r"4 tokens \(1 repeats\) need at least 5 frames, got 3"):
        ctc_path(log_probs, labels, n, m, 0)
    # 1 and 1 meet when the 2 between them is left out
    with pytest.raises(AlignmentError, match=r"3 tokens \(2 repeats\) need at least 5 frames, got 3"):
        ctc_path(log_probs, labels, n, m, 0, np.array([[False, True, False, False]]))
    paths, _ = ctc_path(log_probs, labels, n, m, 0, np.array([[False, True, False, True]]))
    assert paths[0].tolist() in ([0, -1, 2], [0, 1, 2])
    with pytest.raises(ValueError, match="token 0 has label -1; expected labels from 0 to 2"):
        check_ctc(np.array([[-1]]), n, np.array([1]), 3, 0)
    with pytest.raises(ValueError, match="band of at least 1 token"):
        banded_path(log_probs, labels, n, np.array([1]), 0, 0)
    with pytest.raises(ValueError, match="min_frames only without a blank"):
        banded_path(log_probs, labels, n, np.array([1]), 1, 0, None, 2)
    with pytest.raises(AlignmentError, match="Row 0: its log-probabilities hold NaN"):
        ctc_path(np.where(np.arange(3) == 2, np.nan, log_probs), np.array([[2, 1]]), n, np.array([2]), 0)
    forbidden = np.zeros((1, 60, 3))
    forbidden[0, :50, 1] = -np.inf
    with pytest.raises(AlignmentError, match="within 2 tokens of the straight line; widen the band"):
        banded_path(forbidden, np.tile([[1, 2]], 4), np.array([60]), np.array([8]), 2, 0)
