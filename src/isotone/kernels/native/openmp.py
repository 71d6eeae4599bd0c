"""OpenMP's threads as torch has them, called through ctypes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from isotone.kernels.native.mode import PLAIN

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _find_parallel() -> Callable[[Callable[[Any], None], int], None] | None:
    """A function that runs a body on a number of torch's threads; None where torch has no such function."""
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        try:  # a library's functions include those of the libraries it is linked with
            call = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name)).GOMP_parallel
        except (OSError, AttributeError):
            continue
        call.argtypes, call.restype = [_BODY, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
        return lambda body, threads: call(_BODY(body), None, threads, 0)
    return None


def _after_fork() -> None:
    """Forget the function: a fork's child has the memory of OpenMP's threads without them, and would wait for them."""
    global parallel
    parallel = None


#: ``parallel(body, threads)`` calls ``body(None)`` once on each of so many threads; None where that cannot be had.
parallel = None if PLAIN else _find_parallel()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
