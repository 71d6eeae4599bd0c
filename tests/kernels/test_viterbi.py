"""Best paths against enumeration of all paths, a plain dynamic programme and torchaudio."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isotone.alignment import AlignmentError
from isotone.kernels.viterbi import ctc_path, monotone_path
from tests.kernels.viterbi_parts import (
    CASES,
    EXACT,
    FLOAT32,
    frame_labels,
    lengths,
    merge,
    monotone_paths,
    path_score,
    random_log_probs,
    seeds,
)


@CASES
@given(seeds, st.integers(1, 5), st.integers(0, 3), st.integers(0, 2))
def test_ctc_path_is_the_best_of_all_paths(seed: int, frames: int, tokens: int, blank: int) -> None:
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 1, frames, 3)
    labels = rng.choice([v for v in range(3) if v != blank], size=(1, tokens))
    scores = [
        path_score(log_probs[0], chosen)
        for chosen in itertools.product(range(3), repeat=frames)
        if [v for v in merge(chosen) if v != blank] == labels[0].tolist()
    ]
    if not scores:
        with pytest.raises(AlignmentError, match="Row 0"):
            ctc_path(log_probs, labels, lengths(frames), lengths(tokens), blank)
        return
    paths, score = ctc_path(log_probs, labels, lengths(frames), lengths(tokens), blank)
    chosen = frame_labels(paths[0], labels[0], blank)
    assert score[0] == pytest.approx(max(scores), abs=EXACT)
    assert path_score(log_probs[0], chosen) == pytest.approx(score[0], abs=EXACT)
    assert [v for v in merge(chosen) if v != blank] == labels[0].tolist()
    # the numbers in the path are those of the tokens in turn
    assert merge(tuple(u for u in paths[0] if u >= 0)) == list(range(tokens))


@CASES
@given(seeds, st.integers(1, 7), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_monotone_path_is_the_best_of_all_paths(
    seed: int, frames: int, tokens: int, least: int, some_optional: bool
) -> None:
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 1, frames, 3)
    labels = rng.integers(0, 3, (1, tokens))
    optional = rng.random((1, tokens)) < (0.6 if some_optional else 0.0)
    allowed = monotone_paths(frames, tokens, optional[0], least)
    arguments = (log_probs, labels, lengths(frames), lengths(tokens), optional, least)
    if not allowed:
        with pytest.raises(AlignmentError, match="Row 0"):
            monotone_path(*arguments)
        return
    paths, score = monotone_path(*arguments)
    best = max(path_score(log_probs[0], frame_labels(np.array(a), labels[0], -1)) for a in allowed)
    assert tuple(paths[0].tolist()) in allowed
    assert score[0] == pytest.approx(best, abs=EXACT)
    assert path_score(log_probs[0], frame_labels(paths[0], labels[0], -1)) == pytest.approx(best, abs=EXACT)


def plain_monotone_score(log_probs: np.ndarray, labels: np.ndarray, optional: np.ndarray) -> float:
    """Best score without blanks, cell by cell, every predecessor tried."""
    frames, tokens = len(log_probs), len(labels)
    table = np.full((frames, tokens), -np.inf)
    for t, u in itertools.product(range(frames), range(tokens)):
        before = [0.0] if t == 0 and optional[:u].all() else []
        if t > 0:
            before = [table[t - 1, v] for v in range(u + 1) if optional[v + 1 : u].all()]
        table[t, u] = max(before, default=-np.inf) + log_probs[t, labels[u]]
    return float(max(table[-1, u] for u in range(tokens) if optional[u + 1 :].all()))


@pytest.mark.parametrize("frames", [25, 26, 40, 90])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_monotone_path_equals_a_plain_dynamic_programme(frames: int, share: float) -> None:
    rng = np.random.default_rng(frames)
    log_probs = random_log_probs(rng, 1, frames, 6)
    labels = rng.integers(0, 6, (1, 25))
    optional = rng.random((1, 25)) < share
    paths, score = monotone_path(log_probs, labels, lengths(frames), lengths(25), optional)
    assert score[0] == pytest.approx(plain_monotone_score(log_probs[0], labels[0], optional[0]), abs=EXACT)
    assert path_score(log_probs[0], frame_labels(paths[0], labels[0], -1)) == pytest.approx(
        score[0], abs=EXACT
    )
    assert set(np.flatnonzero(~optional[0])) <= set(paths[0].tolist())
    assert (np.diff(paths[0]) >= 0).all()


def test_ctc_path_scores_equal_torchaudio() -> None:
    functional = pytest.importorskip("torchaudio.functional")
    rng = np.random.default_rng(1)
    for case in range(1000):
        tokens = int(rng.integers(1, 30))
        labels = rng.integers(1, 6, (1, tokens))
        least = tokens + int((labels[0, 1:] == labels[0, :-1]).sum())
        # as tight as can be, every other time
        frames = least + (0 if case % 2 else int(rng.integers(0, 100)))
        log_probs = torch.from_numpy(random_log_probs(rng, 1, frames, 6)).float()
        _, score = ctc_path(
            log_probs, torch.from_numpy(labels), torch.tensor([frames]), torch.tensor([tokens]), 0
        )
        _, theirs = functional.forced_align(log_probs, torch.from_numpy(labels), blank=0)
        assert float(score) == pytest.approx(float(theirs.sum()), rel=FLOAT32)


def test_forbidden_labels_are_avoided() -> None:
    log_probs = np.log(np.full((1, 5, 3), 1 / 3))
    log_probs[0, [0, 1, 4], 1] = -np.inf
    paths, _ = ctc_path(log_probs, np.array([[1, 2]]), lengths(5), lengths(2), 0)
    assert [t for t in range(5) if paths[0, t] == 0] in ([2], [3], [2, 3])
    log_probs[0, :, 1] = -np.inf
    with pytest.raises(AlignmentError, match="Row 0: every path has probability 0"):
        ctc_path(log_probs, np.array([[1, 2]]), lengths(5), lengths(2), 0)
    with pytest.raises(AlignmentError, match="probability 0"):
        monotone_path(log_probs, np.array([[1, 2]]), lengths(5), lengths(2))


def test_the_path_stays_on_ties() -> None:
    level = np.zeros((1, 4, 3))
    np.testing.assert_array_equal(
        monotone_path(level, np.array([[1, 2]]), lengths(4), lengths(2))[0], [[0, 1, 1, 1]]
    )
