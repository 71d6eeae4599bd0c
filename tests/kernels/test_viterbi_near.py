"""Paths whose frames cost something where their tokens are far from given ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.kernels.viterbi import monotone_path
from tests.kernels.viterbi_parts import (
    CASES,
    EXACT,
    FLOAT32,
    frame_labels,
    lengths,
    monotone_paths,
    path_score,
    random_log_probs,
    seeds,
)


def far(path: np.ndarray | tuple[int, ...], near: np.ndarray) -> int:
    """Frames whose token is not near."""
    return sum(not first <= u <= last for u, (first, last) in zip(path, near.tolist()))


@CASES
@given(
    seeds,
    st.integers(1, 7),
    st.integers(1, 4),
    st.integers(1, 2),
    st.booleans(),
    st.sampled_from([0.0, 0.7, 30.0]),
)
def test_frames_with_far_tokens_cost(
    seed: int, frames: int, tokens: int, least: int, some_optional: bool, cost: float
) -> None:
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 1, frames, 3)
    labels = rng.integers(0, 3, (1, tokens))
    optional = rng.random((1, tokens)) < (0.6 if some_optional else 0.0)
    near = np.sort(rng.integers(-1, tokens + 2, (1, frames, 2)), -1)
    allowed = monotone_paths(frames, tokens, optional[0], least)
    if not allowed:
        return
    paths, score = monotone_path(
        log_probs, labels, lengths(frames), lengths(tokens), optional, least, near=near, far_cost=cost
    )

    def value(path: tuple[int, ...]) -> float:
        return path_score(log_probs[0], frame_labels(np.array(path), labels[0], -1)) - cost * far(
            path, near[0]
        )

    found = tuple(paths[0].tolist())
    assert found in allowed
    assert value(found) == pytest.approx(max(map(value, allowed)), abs=EXACT)
    assert score[0] == pytest.approx(value(found), abs=EXACT)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_far_tokens_where_the_trellis_is_not_kept(share: float) -> None:
    """Several blocks and tiles, ragged rows: as if the cost were in the scores of labels that are all different."""
    rng = np.random.default_rng(3)
    frames, tokens = lengths(700, 300), lengths(600, 90)
    log_probs = random_log_probs(rng, 2, 700, 600).astype(np.float32)
    labels = np.stack([np.arange(600)] * 2)
    optional = rng.random((2, 600)) < share
    near = np.sort(rng.integers(0, 600, (2, 700, 2)), 1)
    near[:, :, 1] += 20
    outside = (np.arange(600) < near[:, :, :1]) | (np.arange(600) > near[:, :, 1:])
    expected, score = monotone_path(log_probs - 2 * outside, labels, frames, tokens, optional)
    paths, found = monotone_path(log_probs, labels, frames, tokens, optional, near=near, far_cost=2.0)
    assert (paths == expected).all()
    np.testing.assert_allclose(found, score, rtol=FLOAT32)
    free = monotone_path(log_probs, labels, frames, tokens, optional)
    for same in ({"near": near, "far_cost": 0.0}, {"near": near * 0 + [-5, 999], "far_cost": 9.0}):
        assert (monotone_path(log_probs, labels, frames, tokens, optional, **same)[0] == free[0]).all()
    assert (free[0] != paths).any()


@pytest.mark.parametrize(
    ("shape", "cost"), [((1, 3, 2), 1.0), ((1, 4), 1.0), ((1, 4, 2), -1.0), ((1, 4, 2), np.inf)]
)
def test_near_tokens_are_checked(shape: tuple[int, ...], cost: float) -> None:
    log_probs, labels = np.zeros((1, 4, 3)), np.array([[1, 2]])
    with pytest.raises(ValueError, match=r"near of shape \(1, 4, 2\) and a finite far_cost"):
        monotone_path(log_probs, labels, lengths(4), lengths(2), near=np.zeros(shape), far_cost=cost)
