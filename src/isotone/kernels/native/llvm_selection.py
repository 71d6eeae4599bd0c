"""The innermost loop of ordered selection among codes, in LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_NUMBER, _INDEX = ir.IntType(16), ir.IntType(64)


def ordered_sums(lanes: int, items: int, lowest: int) -> Callable[..., Any]:
    """Make the loop for tables of ``lanes`` numbers per code and ``items`` items side by side.

    The loop is ``(codes, item, n, length, table, lane, out)``. It fills ``out[item ..]`` with the best sums of table
    rows at increasing positions of the items' codes; each item has ``n`` codes, of which ``length >= 1`` are valid.

    Lane i holds the best sum of query windows 0 .. i. A step moves the sums up a lane and adds the code's row:
    ``best[i] = max(best[i], best[i - 1] + row[i])``.

    numba has no shift of a vector, and without one a step takes thirty times as long. Each step waits for the one
    before it: several items at a time keep the processor busy meanwhile.

    Args:
        lanes: Numbers in a row of the table.
        items: Items that one call scores.
        lowest: A number below every possible sum.
    """
    vector, none = ir.VectorType(_NUMBER, lanes), ir.Constant(ir.VectorType(_NUMBER, lanes), [0] * lanes)
    # lane 0 takes the first number of `none`, every other lane its lower neighbour
    order = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [lanes, *range(lanes - 1)])

    def step(builder: Any, codes: Any, rows: Any, index: Any, best: Any) -> Any:
        code = builder.zext(builder.load(builder.gep(codes, [index])), _INDEX)
        row = builder.load(builder.gep(rows, [code]), align=2)
        taken = builder.add(builder.shuffle_vector(best, none, order), row)
        return builder.select(builder.icmp_signed(">", taken, best), taken, best)

    def emit(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, number, width, count, rows, last, sums = arguments
        codes, table, results = (
            target.make_array(signature.args[i])(target, builder, x).data
            for i, x in ((0, array), (4, rows), (6, sums))
        )
        table = builder.bitcast(table, vector.as_pointer())
        numbers = [builder.add(number, ir.Constant(_INDEX, i)) for i in range(items)]
        starts = [builder.mul(x, width) for x in numbers]
        before = builder.block
        loop, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.branch(loop)
        builder.position_at_end(loop)
        done, best = builder.phi(_INDEX), [builder.phi(vector) for _ in range(items)]
        done.add_incoming(ir.Constant(_INDEX, 0), before)
        larger = [step(builder, codes, table, builder.add(x, done), y) for x, y in zip(starts, best)]
        following = builder.add(done, ir.Constant(_INDEX, 1))
        done.add_incoming(following, loop)
        for old, new in zip(best, larger):
            old.add_incoming(ir.Constant(vector, [lowest] * lanes), before)
            old.add_incoming(new, loop)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
        builder.position_at_end(after)
        for x, sum_of in zip(numbers, larger):
            value = builder.extract_element(sum_of, builder.trunc(last, ir.IntType(32)))
            builder.store(value, builder.gep(results, [x]))
        return target.get_dummy_value()

    @intrinsic
    def loop(
        context: Any, codes: Any, item: Any, n: Any, length: Any, table: Any, lane: Any, out: Any
    ) -> tuple[Any, Callable[..., Any]]:
        return types.void(codes, types.int64, types.int64, types.int64, table, types.int64, out), emit

    return loop
