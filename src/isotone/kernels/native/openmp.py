"""OpenMP's threads as torch has them, called through ctypes."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from isotone.kernels.native.mode import PLAIN

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

# A fork's child has the memory of OpenMP's threads without them, and would wait for them.
_forked = False


def parallel() -> Callable[[Callable[[Any], None], int], None] | None:
    """Return a function that runs a body on a number of torch's threads.

    ``run(body, threads)`` calls ``body(None)`` once on each of so many threads. None where these cannot be had: torch
    is not imported or has no such function, the process is forked, or kernels are plain.
    """
    torch = sys.modules.get("torch")
    return None if PLAIN or _forked or torch is None else _find(Path(torch.__file__ or "").parent / "lib")


@cache
def _find(libraries: Path) -> Callable[[Callable[[Any], None], int], None] | None:
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        try:  # a library's functions include those of the libraries it is linked with
            call = ctypes.CDLL(str(libraries / name)).GOMP_parallel
        except (OSError, AttributeError):
            continue
        call.argtypes, call.restype = [_BODY, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
        return lambda body, threads: call(_BODY(body), None, threads, 0)
    return None


def _after_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
