"""The choice between native and plain kernels, and the decorator that compiles either kind."""

from __future__ import annotations

import os
from typing import Any

from numba import __version__ as numba_version
from numba import config, njit

from isotone.kernels.numba_cache import plain_folder

#: Environment variable that asks for plain kernels.
VARIABLE = "ISOTONE_PLAIN_KERNELS"
#: numba versions that the native code has been tested with: from the first, up to but not with the last.
TESTED = ((0, 61), (0, 69))


def prefers_plain(setting: str, version: str) -> bool:
    """Return whether kernels have to be plain.

    Args:
        setting: Value of :data:`VARIABLE`; empty, ``0``, ``no`` and ``false`` ask for nothing.
        version: Of numba.
    """
    if setting.strip().lower() not in ("", "0", "no", "false"):
        return True
    major, minor = version.split(".")[:2]
    return not TESTED[0] <= (int(major), int(minor)) < TESTED[1]


def _has_internals() -> bool:
    """Return whether numba and llvmlite have what the native code is written with."""
    try:
        from llvmlite import ir  # noqa: F401
        from numba.core import cgutils  # noqa: F401
        from numba.core.caching import FunctionCache  # noqa: F401
        from numba.core.runtime import rtsys  # noqa: F401
        from numba.extending import intrinsic, models, register_model  # noqa: F401
    except ImportError:
        return False
    return True


#: True where this process runs plain kernels.
PLAIN = prefers_plain(os.environ.get(VARIABLE, ""), numba_version) or not _has_internals()

if not PLAIN:
    from isotone.kernels.native.kept import keep


def compiled(function: Any = None, /, **options: Any) -> Any:
    """Compile a loop: numba's ``njit`` without Python's lock, kept on disk.

    Every compiled loop that uses :mod:`isotone.kernels.native`, itself or through others, needs this decorator. numba
    recognises what it kept by the source alone, and both kinds of kernels have the same source. So plain kernels are
    kept in a folder of their own.

    Args:
        function: The loop.
        options: Further options of ``njit``, such as ``fastmath``.
    """
    if function is None:
        return lambda later: compiled(later, **options)
    if not PLAIN:
        return keep(njit(nogil=True, **options)(function))
    # numba chooses a function's folder when it is decorated: other packages keep theirs
    before, config.CACHE_DIR = config.CACHE_DIR, str(plain_folder())
    try:
        return njit(nogil=True, cache=True, **options)(function)
    finally:
        config.CACHE_DIR = before
