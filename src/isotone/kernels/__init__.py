"""Dynamic programmes over lattices, paths and costs: the arithmetic under the aligners and losses.

Loops are compiled by numba and release Python's lock. Submodules are imported by name, so that importing this package
compiles nothing and needs no torch. A public module ``x`` checks its arguments; its compiled loops are in ``_x``. Code
that rests on the internals of numba and torch is in ``native``, with a plain fallback (``ISOTONE_PLAIN_KERNELS=1``).
"""
