"""Exponentials, and powers of two by their bits: arithmetic that LLVM makes vector code of."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

# Added and subtracted again, it rounds a number below 2^51 to a whole one.
_ROUND = 1.5 * 2.0**52
# Added to a whole number, it leaves the number plus the exponents' bias in the low bits; and back.
_TO_BITS = 2.0**52 + 1023
_FROM_BITS = np.int64(0x4330000000000000)
_TWICE_BIAS = np.int64(2046)
# 2^f = exp(f log 2): the Taylor series, whose remainder is below 1e-17 for |f| <= 1/2.
_SERIES = tuple(math.log(2) ** k / math.factorial(k) for k in range(14))

# exp(x) = 2^k exp(r) with k = round(x / ln 2): adding 1.5 * 2^23 rounds, and leaves k in the low bits.
_PER_LN2 = np.float32(1.4426950408889634)
_ROUND32 = np.float32(12582912.0)
_LN2_HIGH = np.float32(0.693359375)  # ln 2 in two parts: k times the first is exact
_LN2_LOW = np.float32(-2.12194440e-4)
# below it results would be subnormal: they are 0
_UNDERFLOW = np.float32(-87.3)
# minimax polynomial of (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2 (Moshier's Cephes, expf)
_C5, _C4, _C3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_C2, _C1, _C0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_ONE32, _ZERO32, _BIAS32 = np.float32(1.0), np.float32(0.0), np.int32(127)


@njit(nogil=True)
def nearest(x: float) -> float:
    """Round to the nearest whole number, for |x| < 2^51."""
    return (x + _ROUND) - _ROUND


@njit(nogil=True)
def whole_power(k: float) -> float:
    """Raise 2 to a whole k up to 1023; 0 below -1022."""
    k = k if k > -1023.0 else -1023.0
    return np.int64(np.float64(k + _TO_BITS).view(np.int64) << 52).view(np.float64)


@njit(nogil=True, fastmath={"contract"})
def fractional_power(f: float) -> float:
    """Raise 2 to f, -1/2 <= f <= 1/2, to about a unit in the last place."""
    p = _SERIES[13] * f + _SERIES[12]
    p = p * f + _SERIES[11]
    p = p * f + _SERIES[10]
    p = p * f + _SERIES[9]
    p = p * f + _SERIES[8]
    p = p * f + _SERIES[7]
    p = p * f + _SERIES[6]
    p = p * f + _SERIES[5]
    p = p * f + _SERIES[4]
    p = p * f + _SERIES[3]
    p = p * f + _SERIES[2]
    p = p * f + _SERIES[1]
    return p * f + _SERIES[0]


@njit(nogil=True)
def split(x: float) -> tuple[float, float]:
    """Split a normal positive number into mantissa, in [1, 2), and whole exponent; the mantissa of NaN is NaN."""
    exponent = np.int64(np.float64(x).view(np.int64) >> 52)
    mantissa = x * np.int64((_TWICE_BIAS - exponent) << 52).view(np.float64)
    return mantissa, np.int64(exponent | _FROM_BITS).view(np.float64) - _TO_BITS


@njit(nogil=True, fastmath={"contract"})
def exp32(x: np.float32) -> np.float32:
    """Find exp(x) for x <= 88, with a relative error of 1e-7; 0 below -87.3, NaN for NaN.

    Loops over it become vector code. (math.exp is a call for each value, four times as slow as all else in them.)
    """
    shifted = np.float32(x * _PER_LN2 + _ROUND32)
    k = shifted - _ROUND32
    r = x - k * _LN2_HIGH
    r = r - k * _LN2_LOW
    p = ((((_C5 * r + _C4) * r + _C3) * r + _C2) * r + _C1) * r + _C0
    p = p * (r * r) + r + _ONE32
    bits = np.int32((np.int32(shifted.view(np.int32)) + _BIAS32) << 23)
    value = p * bits.view(np.float32)
    return _ZERO32 if x < _UNDERFLOW else value
