"""Machine code beneath numba and torch, and plain code that gives the same results.

Everything that rests on the internals of others is in this folder: instructions written for LLVM by hand, and a
function of torch's OpenMP library called through ctypes. All of it has a plain counterpart: ordinary numba code, and
Python's threads.

Plain kernels run

- where the environment variable ``ISOTONE_PLAIN_KERNELS`` is set (``ISOTONE_PLAIN_KERNELS=1``),
- with a numba that the native code has not been tested with (see :data:`isotone.kernels.native.mode.TESTED`), or whose
  internals are elsewhere,
- as to threads only, with a torch whose libraries have no ``GOMP_parallel``.

Results agree to rounding. Plain kernels are slower: a few times where a loop has vectors of sixteen numbers, hardly
elsewhere. Both kinds are kept on disk in folders of their own, by the decorator :func:`compiled`.

Submodules: ``mode`` (the choice), ``kept`` (loading of compiled code), ``lanes`` (vectors of sixteen numbers),
``openmp`` (threads); ``llvm_*`` and ``plain_*`` hold the two kinds.
"""

from __future__ import annotations

from isotone.kernels.native.mode import PLAIN, VARIABLE, compiled

if PLAIN:
    from isotone.kernels.native.plain_scalars import ordered_sums, popcount, read, write
else:
    from isotone.kernels.native.llvm_scalars import popcount, read, write
    from isotone.kernels.native.llvm_selection import ordered_sums

__all__ = ["PLAIN", "VARIABLE", "compiled", "ordered_sums", "popcount", "read", "write"]
