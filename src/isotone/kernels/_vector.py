"""What lets LLVM make vector code of loops over float64: memory that does not overlap, powers of two by their bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Added and taken away, it rounds a number below 2^51 to a whole one.
_ROUND = 1.5 * 2.0**52
# Added to a whole number, it puts the number plus the exponents' bias into the low bits; and back.
_TO_BITS = 2.0**52 + 1023
_FROM_BITS = np.int64(0x4330000000000000)
_TWICE_BIAS = np.int64(2046)
# 2^f = exp(f log 2): the Taylor series, whose rest is below 1e-17 for |f| <= 1/2.
_SERIES = tuple(math.log(2) ** k / math.factorial(k) for k in range(14))


def _reach(target: Any, builder: Any, array_type: Any, array: Any, index: Any) -> tuple[Any, Any]:
    """Where an element lies; and the alias scope of all that :func:`write` writes.

    The scope holds for one run through a function. Inlined into a loop it would reach over all turns: hence noinline.
    """
    builder.function.attributes.add("noinline")
    module = builder.module
    domain = module.add_metadata([ir.MetaDataString(module, "isotone")])
    scope = module.add_metadata([ir.MetaDataString(module, "written"), domain])
    place = builder.gep(target.make_array(array_type)(target, builder, array).data, [index])
    return place, module.add_metadata([scope])


@intrinsic
def read(context: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """``array[index]`` of a contiguous vector, for an index of 0 or more.

    LLVM may assume that no :func:`write` of the same call of the function touches what is read.
    """

    def emit(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, scope = _reach(target, builder, signature.args[0], *arguments)
        value = builder.load(place)
        value.set_metadata("noalias", scope)
        return value

    return array.dtype(array, types.int64), emit


@intrinsic
def write(context: Any, array: Any, index: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """``array[index] = value`` of a contiguous vector, for an index of 0 or more.

    LLVM may assume that no other :func:`read` or :func:`write` of the same call of the function touches the place.
    """

    def emit(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type, _, value_type = signature.args
        place, scope = _reach(target, builder, array_type, *arguments[:2])
        store = builder.store(target.cast(builder, arguments[2], value_type, array_type.dtype), place)
        store.set_metadata("alias.scope", scope)
        store.set_metadata("noalias", scope)
        return target.get_dummy_value()

    return types.void(array, types.int64, value), emit


@njit(nogil=True)
def nearest(x: float) -> float:
    """The nearest whole number, for |x| < 2^51."""
    return (x + _ROUND) - _ROUND


@njit(nogil=True)
def whole_power(k: float) -> float:
    """2^k for a whole k up to 1023; 0 below -1022."""
    k = k if k > -1023.0 else -1023.0
    return np.int64(np.float64(k + _TO_BITS).view(np.int64) << 52).view(np.float64)


@njit(nogil=True, fastmath={"contract"})
def fractional_power(f: float) -> float:
    """2^f for -1/2 <= f <= 1/2, to a unit in the last place or so."""
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
    """Mantissa in [1, 2) and whole exponent of a normal positive number; the mantissa of NaN is NaN."""
    exponent = np.int64(np.float64(x).view(np.int64) >> 52)
    mantissa = x * np.int64((_TWICE_BIAS - exponent) << 52).view(np.float64)
    return mantissa, np.int64(exponent | _FROM_BITS).view(np.float64) - _TO_BITS
