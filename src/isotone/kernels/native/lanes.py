"""Sixteen float32 numbers that compiled loops handle as one: one step does sixteen independent problems at once."""

from __future__ import annotations

from isotone.kernels.native.mode import PLAIN

if PLAIN:
    from isotone.kernels.native.plain_lanes import (
        LANES,
        add,
        at_least,
        divide,
        exponential,
        fused,
        larger,
        largest,
        load,
        multiply,
        nearest,
        reciprocal,
        repeat,
        rough_logarithm,
        smaller,
        splat,
        store,
        subtract,
    )
else:
    from isotone.kernels.native.llvm_lanes import (
        LANES,
        add,
        at_least,
        divide,
        exponential,
        fused,
        larger,
        largest,
        load,
        multiply,
        nearest,
        reciprocal,
        repeat,
        rough_logarithm,
        smaller,
        splat,
        store,
        subtract,
    )

__all__ = [
    "LANES",
    "add",
    "at_least",
    "divide",
    "exponential",
    "fused",
    "larger",
    "largest",
    "load",
    "multiply",
    "nearest",
    "reciprocal",
    "repeat",
    "rough_logarithm",
    "smaller",
    "splat",
    "store",
    "subtract",
]
