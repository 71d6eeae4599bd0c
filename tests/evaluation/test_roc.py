"""The ROC against counting by hand and scikit-learn."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.evaluation import roc

SCORES = st.lists(st.one_of(st.integers(-4, 4).map(float), st.just(-math.inf)), min_size=1, max_size=12)


def rates(right: list[float], wrong: list[float], threshold: float) -> tuple[float, float]:
    """Return the shares of right cases refused and of wrong cases accepted."""
    return sum(r < threshold for r in right) / len(right), sum(w >= threshold for w in wrong) / len(wrong)


@settings(max_examples=150, deadline=None)
@given(SCORES, SCORES)
def test_every_number_by_counting(right: list[float], wrong: list[float]) -> None:
    found = roc(right, wrong)
    pairs = [(r > w) + 0.5 * (r == w) for r in right for w in wrong]
    assert found.auc == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
    assert (found.right, found.wrong) == (len(right), len(wrong))
    points = [rates(right, wrong, t) for t in (*sorted({*right, *wrong}), math.inf)]
    assert max(rates(right, wrong, found.threshold)) <= min(max(p) for p in points) + 1e-12
    # the equal error rate lies on the line between two neighbouring thresholds, where both shares are one
    lines = list(itertools.pairwise(points))
    assert any(
        min(a[0], b[0]) - 1e-9 <= found.equal_error_rate <= max(a[0], b[0]) + 1e-9
        and min(a[1], b[1]) - 1e-9 <= found.equal_error_rate <= max(a[1], b[1]) + 1e-9
        for a, b in lines
    )
    swapped = roc(
        [-x for x in wrong if math.isfinite(x)] or [0.0], [-x for x in right if math.isfinite(x)] or [0.0]
    )
    if all(map(math.isfinite, right + wrong)):
        assert swapped.auc == pytest.approx(found.auc)
        assert swapped.equal_error_rate == pytest.approx(found.equal_error_rate)


def test_examples() -> None:
    assert roc([3, 4], [1, 2]).auc == 1.0
    assert roc([3, 4], [1, 2]).equal_error_rate == 0.0
    assert roc([3, 4], [1, 2]).threshold == 2.5
    assert roc([1, 2], [3, 4]).auc == 0.0
    assert roc([1, 2], [3, 4]).equal_error_rate == 1.0
    assert roc([0], [0]).auc == 0.5
    assert roc([0], [0]).equal_error_rate == 0.5
    assert roc([1, 3], [0, 2]).auc == 0.75
    assert roc([1, 3], [0, 2]).equal_error_rate == 0.5
    assert roc([-1.0], [-math.inf]).threshold == -1.0


def test_scikit_learn_agrees() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    rng = np.random.default_rng(0)
    for _ in range(20):
        right = np.round(rng.normal(0.5, 1, rng.integers(1, 60)), 1)
        wrong = np.round(rng.normal(0, 1, rng.integers(1, 60)), 1)
        truth = [1] * len(right) + [0] * len(wrong)
        expected = metrics.roc_auc_score(truth, [*right, *wrong])
        assert roc(right, wrong).auc == pytest.approx(expected, abs=1e-12)
        accepted, kept, _ = metrics.roc_curve(truth, [*right, *wrong], drop_intermediate=False)
        grid = np.linspace(0, 1, 20_001)
        crossing = grid[np.argmin(np.abs(grid - (1 - np.interp(grid, accepted, kept))))]
        if not (np.diff(accepted) == 0).any():  # where the curve rises straight up, a grid sees neither end
            assert roc(right, wrong).equal_error_rate == pytest.approx(crossing, abs=1e-3)


@pytest.mark.parametrize(
    ("right", "wrong"), [([], [1.0]), ([1.0], []), ([math.nan], [1.0]), ([1.0], [2.0, math.nan])]
)
def test_what_has_no_roc(right: list[float], wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="roc expects scores"):
        roc(right, wrong)
