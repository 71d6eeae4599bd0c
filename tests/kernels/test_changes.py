"""Spread of frames on both sides of cuts, against its definition."""

from __future__ import annotations

import numpy as np

from isotone.kernels.changes import spreads


def test_spreads_are_squared_distances_from_the_means_of_both_sides() -> None:
    frames = np.random.default_rng(0).normal(3, 1, size=(30, 5))
    low, high = np.array([0, 4]), np.array([12, 30])
    cut = np.array([[0, 5, 12], [4, 17, 30]])
    found = spreads(frames, low, cut, high)
    for i, own in enumerate(cut):
        for k, middle in enumerate(own):
            sides = [frames[low[i] : middle], frames[middle : high[i]]]
            right = sum(np.square(side - side.mean(0)).sum() for side in sides if len(side))
            np.testing.assert_allclose(found[i, k], right, rtol=1e-9, atol=1e-9)
