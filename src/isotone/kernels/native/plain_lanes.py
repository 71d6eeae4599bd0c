"""Sixteen numbers as a tuple: plain counterparts of :mod:`isotone.kernels.native.llvm_lanes`.

Every number is written out, so that numba keeps the tuple in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

#: Numbers in one vector.
LANES = 16

_ONE, _ZERO, _HALF = np.float32(1.0), np.float32(0.0), np.float32(0.5)
# As in llvm_lanes.
_T6, _T5, _T4, _T3 = np.float32(1 / 720), np.float32(1 / 120), np.float32(1 / 24), np.float32(1 / 6)
_PER_LN2, _LN2_HIGH, _LN2_LOW = (
    np.float32(1.4426950408889634),
    np.float32(0.693359375),
    np.float32(-2.12194440e-4),
)
_EXP_LOWEST, _EXPONENT_BIAS = np.float32(-87.0), np.int32(127)
_PER_BIT, _BIAS = np.float32(0.6931471805599453 / 2**23), np.float32(127.0 * 2**23)


def _of_one(step: Callable[..., Any]) -> Callable[..., Any]:
    """Make a step on one number one on sixteen."""
    number = njit(nogil=True, error_model="numpy")(step)

    @njit(nogil=True)
    def lanes(a: Any) -> Any:
        return (
            number(a[0]), number(a[1]), number(a[2]), number(a[3]),
            number(a[4]), number(a[5]), number(a[6]), number(a[7]),
            number(a[8]), number(a[9]), number(a[10]), number(a[11]),
            number(a[12]), number(a[13]), number(a[14]), number(a[15]),
        )  # fmt: skip

    return lanes


def _of_two(step: Callable[..., Any]) -> Callable[..., Any]:
    """Make a step on two numbers one on twice sixteen."""
    number = njit(nogil=True, error_model="numpy")(step)

    @njit(nogil=True)
    def lanes(a: Any, b: Any) -> Any:
        return (
            number(a[0], b[0]), number(a[1], b[1]), number(a[2], b[2]), number(a[3], b[3]),
            number(a[4], b[4]), number(a[5], b[5]), number(a[6], b[6]), number(a[7], b[7]),
            number(a[8], b[8]), number(a[9], b[9]), number(a[10], b[10]), number(a[11], b[11]),
            number(a[12], b[12]), number(a[13], b[13]), number(a[14], b[14]), number(a[15], b[15]),
        )  # fmt: skip

    return lanes


@njit(nogil=True)
def _all(x: np.float32) -> Any:
    return (x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x)


@njit(nogil=True)
def load(array: np.ndarray, start: int) -> Any:
    """The numbers ``array[start : start + 16]`` of a contiguous vector."""
    x = array[start : start + LANES]
    return (
        x[0], x[1], x[2], x[3],
        x[4], x[5], x[6], x[7],
        x[8], x[9], x[10], x[11],
        x[12], x[13], x[14], x[15],
    )  # fmt: skip


@njit(nogil=True)
def store(array: np.ndarray, start: int, lanes: Any) -> None:
    """Set ``array[start : start + 16]``."""
    x = array[start : start + LANES]
    x[0], x[1], x[2], x[3] = lanes[0], lanes[1], lanes[2], lanes[3]
    x[4], x[5], x[6], x[7] = lanes[4], lanes[5], lanes[6], lanes[7]
    x[8], x[9], x[10], x[11] = lanes[8], lanes[9], lanes[10], lanes[11]
    x[12], x[13], x[14], x[15] = lanes[12], lanes[13], lanes[14], lanes[15]


@njit(nogil=True)
def splat(value: Any) -> Any:
    """The same number in every lane."""
    return _all(value)


@njit(nogil=True)
def repeat(array: np.ndarray, index: int) -> Any:
    """The number ``array[index]`` in every lane."""
    return _all(array[index])


def _exponential(x: np.float32) -> np.float32:
    x = max(x, _EXP_LOWEST)
    power = np.floor(x * _PER_LN2 + _HALF)
    rest = x - power * _LN2_HIGH - power * _LN2_LOW
    out = ((((_T6 * rest + _T5) * rest + _T4) * rest + _T3) * rest + _HALF) * rest + _ONE
    out = out * rest + _ONE
    # the exponent's bits begin at the 23rd
    return out * np.int32((np.int32(power) + _EXPONENT_BIAS) << 23).view(np.float32)


def _rough_logarithm(x: np.float32) -> np.float32:
    return (np.float32(np.float32(x).view(np.int32)) - _BIAS) * _PER_BIT


add = _of_two(lambda a, b: a + b)
subtract = _of_two(lambda a, b: a - b)
multiply = _of_two(lambda a, b: a * b)
divide = _of_two(lambda a, b: a / b)
larger = _of_two(lambda a, b: a if a > b else b)
smaller = _of_two(lambda a, b: a if a < b else b)
at_least = _of_two(lambda x, least: _ZERO if x < least else x)
exponential = _of_one(_exponential)
rough_logarithm = _of_one(_rough_logarithm)
reciprocal = _of_one(lambda x: _ONE / x)
nearest = _of_one(lambda x: np.float32(np.rint(x)))


@njit(nogil=True)
def _fused(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    # a product of two float32 numbers is exact in float64
    return np.float32(np.float64(a) * np.float64(b) + np.float64(c))


@njit(nogil=True)
def fused(a: Any, b: Any, c: Any) -> Any:
    """``a b + c``, the product without rounding."""
    return (
        _fused(a[0], b[0], c[0]), _fused(a[1], b[1], c[1]), _fused(a[2], b[2], c[2]), _fused(a[3], b[3], c[3]),
        _fused(a[4], b[4], c[4]), _fused(a[5], b[5], c[5]), _fused(a[6], b[6], c[6]), _fused(a[7], b[7], c[7]),
        _fused(a[8], b[8], c[8]), _fused(a[9], b[9], c[9]), _fused(a[10], b[10], c[10]), _fused(a[11], b[11], c[11]),
        _fused(a[12], b[12], c[12]), _fused(a[13], b[13], c[13]), _fused(a[14], b[14], c[14]), _fused(a[15], b[15],
        c[15]),
    )  # fmt: skip


@njit(nogil=True)
def largest(x: Any) -> np.float32:
    """The largest of the sixteen numbers, as one number."""
    out = x[0]
    for i in range(1, LANES):
        out = max(out, x[i])
    return out
