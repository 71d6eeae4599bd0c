"""Spread of frames on both sides of cuts, against its definition."""

from __future__ import annotations

import numpy as np

from isotone.kernels.changes import squares_of_means


def test_squares_of_means_of_both_sides() -> None:
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(30, 5))
    sums = np.cumsum(np.pad(frames, ((1, 0), (0, 0))), 0)
    low, high = np.array([0, 4]), np.array([12, 30])
    cut = np.array([[0, 5, 12], [4, 17, 30]])
    found = squares_of_means(sums, low, cut, high)
    for i, own in enumerate(cut):
        for k, middle in enumerate(own):
            sides = [frames[low[i] : middle], frames[middle : high[i]]]
            right = sum(len(side) * np.square(side.mean(0)).sum() for side in sides if len(side))
            np.testing.assert_allclose(found[i, k], right, rtol=1e-12)
