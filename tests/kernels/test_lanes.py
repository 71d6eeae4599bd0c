"""Vectors of sixteen numbers in compiled loops, against numpy."""

from __future__ import annotations

import numpy as np
from numba import njit

from isotone.kernels.native import lanes


@njit
def _exponentials(values: np.ndarray, out: np.ndarray) -> None:
    for place in range(0, len(values), lanes.LANES):
        lanes.store(out, place, lanes.exponential(lanes.load(values, place)))


def test_exponential_in_lanes() -> None:
    values = np.linspace(-86, 86, 16_000).astype(np.float32)
    out = np.empty_like(values)
    _exponentials(values, out)
    np.testing.assert_allclose(out, np.exp(values.astype(np.float64)), rtol=3e-7)
    low = np.full(16, -1000, np.float32)
    _exponentials(low, out[:16])
    assert (out[:16] <= 1.7e-38).all()


@njit
def _steps(values: np.ndarray, out: np.ndarray) -> None:
    for row, place in enumerate(range(0, len(values), lanes.LANES)):
        x = lanes.load(values, place)
        lanes.store(out[0], place, lanes.reciprocal(x))
        lanes.store(out[1], place, lanes.rough_logarithm(x))
        lanes.store(out[2], place, lanes.nearest(x))
        lanes.store(out[3], place, lanes.at_least(x, lanes.splat(np.float32(2.0))))
        lanes.store(out[4], place, lanes.repeat(values, place + 3))
        negative = lanes.subtract(lanes.splat(np.float32(0.0)), lanes.multiply(x, x))
        lanes.store(out[5], place, lanes.fused(x, x, negative))
        out[6, row] = lanes.largest(x)


def test_steps_in_lanes() -> None:
    values = np.exp(np.random.default_rng(0).uniform(-60, 60, 16_000)).astype(np.float32)
    values[::7] = np.random.default_rng(1).uniform(0.5, 4, len(values[::7]))
    out = np.zeros((7, len(values)), np.float32)
    _steps(values, out)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(out[0], 1 / exact, rtol=3e-7)
    np.testing.assert_allclose(out[1], np.log(exact), rtol=0, atol=0.06)
    np.testing.assert_array_equal(out[2], np.rint(values))
    np.testing.assert_array_equal(out[3], np.where(values < 2, 0, values))
    np.testing.assert_array_equal(out[4], np.repeat(values[3::16], 16))
    with np.errstate(over="ignore"):
        lost = (exact * exact - (values * values).astype(np.float64)).astype(np.float32)
    middle = (exact > 1e-10) & (exact < 1e10)
    np.testing.assert_array_equal(out[5][middle], lost[middle])
    np.testing.assert_array_equal(out[6, : len(values) // 16], values.reshape(-1, 16).max(1))


@njit
def _wide(values: np.ndarray, out: np.ndarray) -> None:
    for place in range(0, len(values), lanes.LANES):
        x, third = lanes.load(values, place), lanes.splat(values[0] / 3)
        lanes.store(out, place, lanes.subtract(lanes.multiply(lanes.add(x, third), x), third))


def test_lanes_of_float64_have_its_digits() -> None:
    values = np.random.default_rng(0).normal(size=160)
    out = np.empty_like(values)
    _wide(values, out)
    np.testing.assert_allclose(out, (values + values[0] / 3) * values - values[0] / 3, rtol=0, atol=1e-14)
