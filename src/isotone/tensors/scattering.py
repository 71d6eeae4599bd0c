"""Scattering of values into an array, as torch's functions of that name do it."""

from __future__ import annotations

from typing import Any

import numpy as np


def scattered(
    array: Any, dim: int, index: Any, source: Any, operation: np.ufunc | None = None, include: bool = True
) -> Any:
    """Write values into an array at ``index`` along a dimension, and return the array.

    Args:
        array: The array, which is changed.
        dim: The dimension.
        index: Places along it, in the shape of the values.
        source: The values, or one number.
        operation: Joins values at one place, and what was there before. Default: the last value counts.
        include: False leaves out what was there before.
    """
    plain, places = np.asarray(array), np.asarray(index)
    at: list[Any] = list(np.indices(places.shape, sparse=True))
    at[dim % plain.ndim] = places
    if np.ndim(source):
        source = np.asarray(source)[tuple(slice(n) for n in places.shape)]
    where = tuple(at)
    if operation is None:
        plain[where] = source
        return array
    if not include:
        info = np.finfo(plain.dtype) if plain.dtype.kind == "f" else np.iinfo(plain.dtype)
        plain[where] = info.max if operation is np.minimum else info.min
    operation.at(plain, where, source)
    return array
