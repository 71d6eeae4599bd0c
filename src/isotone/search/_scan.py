"""Compiled loop of the first stage: the best ordered selection of every item's codes, from a table of the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

#: Query windows that one vector of the loop holds.
LANES = 16
#: Below every sum that there can be.
LOWEST = -30_000

_NUMBER, _PLACE = ir.IntType(16), ir.IntType(64)
_VECTOR = ir.VectorType(_NUMBER, LANES)


@intrinsic
def _ordered_sum(
    context: Any, codes: Any, first: Any, length: Any, table: Any, lane: Any
) -> tuple[Any, Callable[..., Any]]:
    """Best sum of table rows at increasing places of ``codes[first : first + length]``, ``length >= 1``.

    Lane i holds the best sum of query windows 0 .. i. A step moves the sums up a lane and adds the code's row:
    ``best[i] = max(best[i], best[i - 1] + row[i])``. numba has no such shift, and without one a step costs thirty times
    as much: hence LLVM's own instructions.
    """

    def emit(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, start, count, rows, last = arguments
        places = target.make_array(signature.args[0])(target, builder, array).data
        values = target.make_array(signature.args[3])(target, builder, rows).data
        values = builder.bitcast(values, _VECTOR.as_pointer())
        before = builder.block
        loop, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.branch(loop)
        builder.position_at_end(loop)
        step, best = builder.phi(_PLACE), builder.phi(_VECTOR)
        step.add_incoming(ir.Constant(_PLACE, 0), before)
        best.add_incoming(ir.Constant(_VECTOR, [LOWEST] * LANES), before)
        code = builder.zext(builder.load(builder.gep(places, [builder.add(start, step)])), _PLACE)
        row = builder.load(builder.gep(values, [code]), align=2)
        order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [LANES, *range(LANES - 1)])
        shifted = builder.shuffle_vector(best, ir.Constant(_VECTOR, [0] * LANES), order)
        taken = builder.add(shifted, row)
        larger = builder.select(builder.icmp_signed(">", taken, best), taken, best)
        following = builder.add(step, ir.Constant(_PLACE, 1))
        step.add_incoming(following, loop)
        best.add_incoming(larger, loop)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
        builder.position_at_end(after)
        return builder.extract_element(larger, builder.trunc(last, ir.IntType(32)))

    return types.int16(codes, types.int64, types.int64, table, types.int64), emit


@njit(nogil=True, cache=True)
def scan_block(
    block: int,
    size: int,
    codes: NDArray[np.uint16],
    lengths: NDArray[np.uint16],
    table: NDArray[np.int16],
    query_windows: int,
    out: NDArray[np.int16],
) -> None:
    """Best sums of the items ``block * size ..`` of codes ``(I, n)``; items shorter than the query get LOWEST."""
    n = codes.shape[1]
    flat = codes.reshape(codes.size)
    rows = table.reshape(table.size)
    for item in range(block * size, min((block + 1) * size, len(codes))):
        length = np.int64(lengths[item])
        if length < query_windows:
            out[item] = LOWEST
        else:
            out[item] = _ordered_sum(flat, np.int64(item) * n, length, rows, np.int64(query_windows - 1))
