"""Compiled loop of the first stage: best ordered selection of every item's codes, from a table of the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

#: Query windows per vector of the loop; the fewest that suffice are the fastest.
LANES = (8, 16)
#: A number below every possible sum.
LOWEST = -30_000

_NUMBER, _INDEX = ir.IntType(16), ir.IntType(64)


def _step(builder: Any, codes: Any, values: Any, position: Any, best: Any) -> Any:
    """Emit ``best[i] = max(best[i], best[i - 1] + row[i])`` for the table row of the code at a position."""
    lanes = best.type.count
    none = ir.Constant(best.type, [0] * lanes)
    # of the two concatenated vectors, lane 0 takes a zero and lane i takes best[i - 1]
    order = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [lanes, *range(lanes - 1)])
    code = builder.zext(builder.load(builder.gep(codes, [position])), _INDEX)
    row = builder.load(builder.gep(values, [code]), align=2)
    taken = builder.add(builder.shuffle_vector(best, none, order), row)
    return builder.select(builder.icmp_signed(">", taken, best), taken, best)


def _ordered_sums(lanes: int, items: int) -> Callable[..., Any]:
    """Return the innermost loop, for tables of ``lanes`` numbers per code and ``items`` items in parallel.

    It is in LLVM's own instructions because numba has no shift of a vector, without which a step takes thirty times as
    long. Every step depends on the one before it; several items hide that latency.
    """
    vector = ir.VectorType(_NUMBER, lanes)

    @intrinsic
    def ordered_sums(
        context: Any, codes: Any, item: Any, n: Any, length: Any, table: Any, lane: Any, out: Any
    ) -> tuple[Any, Callable[..., Any]]:
        """Find the best sums of table rows at increasing positions of the codes of items ``item ..``.

        Lane i holds the best sum of query windows 0 .. i. A step moves the sums up one lane and adds the code's row:
        ``best[i] = max(best[i], best[i - 1] + row[i])``. Every item has ``length >= 1`` codes.
        """

        def emit(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _, number, width, count, _, last, _ = arguments
            positions, values, results = (
                target.make_array(signature.args[i])(target, builder, arguments[i]).data for i in (0, 4, 6)
            )
            values = builder.bitcast(values, vector.as_pointer())
            numbers = [builder.add(number, ir.Constant(_INDEX, i)) for i in range(items)]
            starts = [builder.mul(x, width) for x in numbers]
            before = builder.block
            loop, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
            builder.branch(loop)
            builder.position_at_end(loop)
            done, best = builder.phi(_INDEX), [builder.phi(vector) for _ in range(items)]
            done.add_incoming(ir.Constant(_INDEX, 0), before)
            larger = [
                _step(builder, positions, values, builder.add(x, done), y) for x, y in zip(starts, best)
            ]
            following = builder.add(done, ir.Constant(_INDEX, 1))
            done.add_incoming(following, loop)
            for old, new in zip(best, larger):
                old.add_incoming(ir.Constant(vector, [LOWEST] * lanes), before)
                old.add_incoming(new, loop)
            builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
            builder.position_at_end(after)
            for x, sum_of in zip(numbers, larger):
                value = builder.extract_element(sum_of, builder.trunc(last, ir.IntType(32)))
                builder.store(value, builder.gep(results, [x]))
            return target.get_dummy_value()

        return types.void(codes, types.int64, types.int64, types.int64, table, types.int64, out), emit

    return ordered_sums


_TOGETHER = 4
_one_of_8, _one_of_16 = (_ordered_sums(lanes, 1) for lanes in LANES)
_four_of_8, _four_of_16 = (_ordered_sums(lanes, _TOGETHER) for lanes in LANES)


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
    """Compute the best sums of items ``block * size ..`` of codes ``(I, n)``, with a table ``(K, 8)`` or ``(K, 16)``.

    Items that are shorter than the query get LOWEST.
    """
    n, few = codes.shape[1], table.shape[1] == 8
    flat, rows, last = codes.reshape(codes.size), table.reshape(table.size), np.int64(query_windows - 1)
    item, end = block * size, min((block + 1) * size, len(codes))
    while item < end:
        length = np.int64(lengths[item])
        alike = item + _TOGETHER <= end
        for other in range(item + 1, item + _TOGETHER if alike else 0):
            alike = alike and np.int64(lengths[other]) == length
        if length < query_windows:
            out[item] = LOWEST
            item += 1
        elif alike:
            if few:
                _four_of_8(flat, np.int64(item), n, length, rows, last, out)
            else:
                _four_of_16(flat, np.int64(item), n, length, rows, last, out)
            item += _TOGETHER
        else:
            if few:
                _one_of_8(flat, np.int64(item), n, length, rows, last, out)
            else:
                _one_of_16(flat, np.int64(item), n, length, rows, last, out)
            item += 1
