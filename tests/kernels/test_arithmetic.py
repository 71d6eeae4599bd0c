"""Arithmetic of vector loops, against numpy."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from isotone.kernels.arithmetic import fractional_power, nearest, split, whole_power
from isotone.kernels.native import read, write


@njit
def _powers(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(x)):
        power = nearest(x[i])
        out[i] = fractional_power(x[i] - power) * whole_power(power)


@njit
def _splits(x: np.ndarray, mantissas: np.ndarray, exponents: np.ndarray) -> None:
    for i in range(len(x)):
        mantissas[i], exponents[i] = split(x[i])


@njit
def _shifted_sums(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(x) - 1):
        write(out, i, read(x, i + 1) + read(y, i))


def test_powers_of_two_are_exact_to_the_last_place() -> None:
    x = np.concatenate(
        [np.linspace(-1021, 1022, 100_001), np.arange(-1022.0, 1023), np.linspace(-2, 2, 10_001)]
    )
    out = np.empty_like(x)
    _powers(x, out)
    assert np.max(np.abs(out / np.exp2(x) - 1)) < 4 * np.finfo(float).eps
    whole = np.arange(-1022.0, 1023)
    out = np.empty_like(whole)
    _powers(whole, out)
    assert np.array_equal(out, np.exp2(whole))


def test_powers_of_what_is_out_of_range() -> None:
    x = np.array([-1023.0, -5000.0, -(2.0**50), math.nan])
    out = np.empty_like(x)
    _powers(x, out)
    assert np.array_equal(out, [0.0, 0.0, 0.0, math.nan], equal_nan=True)


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-300, 1e300))
def test_mantissa_and_exponent_are_those_of_frexp(value: float) -> None:
    mantissas, exponents = np.empty(2), np.empty(2)
    _splits(np.array([value, math.nan]), mantissas, exponents)
    expected = math.frexp(value)
    assert (mantissas[0], exponents[0]) == (2 * expected[0], expected[1] - 1)
    assert math.isnan(mantissas[1])


def test_reading_and_writing_converts_types() -> None:
    x, y = np.arange(40.0), np.arange(40, dtype=np.float32)
    out = np.zeros(40, np.float32)
    _shifted_sums(x, y, out)
    assert np.array_equal(out[:-1], (x[1:] + y[:-1]).astype(np.float32))
