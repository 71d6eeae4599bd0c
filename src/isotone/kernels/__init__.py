"""Dynamic programmes over lattices, paths and costs: the arithmetic under the aligners and losses.

Loops are compiled by numba and release the GIL. Submodules are imported by name, so that importing this package
compiles nothing and needs no torch.
"""
