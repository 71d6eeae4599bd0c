"""Loading of what numba has compiled and kept, without its compiler.

numba gets ready to compile before it loads anything: it imports all that it can compile, and scipy's linear algebra.
That takes longer than the loading of all kernels, and they need none of it.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys


class KeptCode(FunctionCache):
    """The kept code of one function. Where there is none for some types, numba gets ready by itself."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the code for a signature; None if none is kept."""
        rtsys.initialize(target_context)  # of numba's memory, which arrays are allocated by
        _import_without_scipy()
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
        return None


def keep(dispatcher: Any) -> Any:
    """Make a compiled function keep its code on disk, and return it."""
    dispatcher._cache = KeptCode(dispatcher.py_func)
    return dispatcher


@cache
def _import_without_scipy() -> None:
    """Import the module that kept code refers to, which would import scipy to see that it is there."""
    if "numba.np.arraymath" in sys.modules:
        return
    linalg: Any = import_module("numba.np.linalg")

    def absent() -> None:
        raise ImportError

    before, linalg.ensure_blas = linalg.ensure_blas, absent
    try:
        arraymath: Any = import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = before
    # for what others compile later
    arraymath.ensure_blas = before
    arraymath._HAVE_BLAS = find_spec("scipy") is not None
