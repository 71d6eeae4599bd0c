"""Sixteen numbers that compiled loops handle as one: vector types for numba, in LLVM instructions.

Numbers are float32. Of float64 there are what transforms need: loading, storing, sums, differences and products.

numba gives LLVM no way to know that two arrays do not overlap, so LLVM guards every short inner loop. Loops over values
of this type need no guards: one step works on sixteen independent problems at once, whatever their size.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

#: Numbers in one vector.
LANES = 16

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_INTEGERS = ir.VectorType(ir.IntType(32), LANES)
# lets a product and a sum become one instruction, where there is one
_FUSE = ("contract",)
# exp(x) for |x| <= ln(2) / 2, to a few units in the last digit: the Taylor series, highest power first
_EXP_TERMS = (1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0)
# ln 2 in two parts: a small whole number times the first is exact
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_EXP_LOWEST = -87.0
# The bits of a number, read as an integer, are nearly linear in its logarithm: the worth of one bit, and the bits of 1.
_PER_BIT, _BIAS = 0.6931471805599453 / 2**23, 127.0 * 2**23


class _LanesType(types.Type):
    def __init__(self, number: Any, vector: ir.VectorType) -> None:
        super().__init__(name=f"{number.name}Lanes")
        self.number, self.vector = number, vector


Lanes = _LanesType(types.float32, _VECTOR)
_WIDE = _LanesType(types.float64, ir.VectorType(ir.DoubleType(), LANES))


def _lanes_of(number: Any) -> _LanesType:
    return _WIDE if number == types.float64 else Lanes


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


def _constant(value: float) -> ir.Constant:
    return ir.Constant(_VECTOR, [value] * LANES)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, start: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    kind = ir.PointerType(_lanes_of(array_type.dtype).vector)
    return builder.bitcast(builder.gep(data, [start]), kind)


@intrinsic
def load(typing_context: Any, array: Any, start: Any) -> Any:
    """The numbers ``array[start : start + 16]`` of a contiguous vector."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return _lanes_of(array.dtype)(array, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, start: Any, lanes: Any) -> Any:
    """Set ``array[start : start + 16]`` of a contiguous vector."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@intrinsic
def splat(typing_context: Any, value: Any) -> Any:
    """The same number in every lane: of float64 where it is of that type."""
    kind = _lanes_of(value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        none = ir.Constant(kind.vector, ir.Undefined)
        one = builder.insert_element(none, arguments[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, none, ir.Constant(_INTEGERS, [0] * LANES))

    return kind(kind.number), generate


@intrinsic
def add(typing_context: Any, a: Any, b: Any) -> Any:
    """The sum."""
    return a(a, a), lambda _, builder, __, args: builder.fadd(*args, flags=_FUSE)


@intrinsic
def subtract(typing_context: Any, a: Any, b: Any) -> Any:
    """The difference."""
    return a(a, a), lambda _, builder, __, args: builder.fsub(*args, flags=_FUSE)


@intrinsic
def multiply(typing_context: Any, a: Any, b: Any) -> Any:
    """The product."""
    return a(a, a), lambda _, builder, __, args: builder.fmul(*args, flags=_FUSE)


@intrinsic
def divide(typing_context: Any, a: Any, b: Any) -> Any:
    """The quotient."""
    return Lanes(Lanes, Lanes), lambda _, builder, __, args: builder.fdiv(*args)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@intrinsic
def larger(typing_context: Any, a: Any, b: Any) -> Any:
    """The larger number of each lane."""
    return Lanes(Lanes, Lanes), lambda _, builder, __, args: _larger(builder, *args)


@intrinsic
def smaller(typing_context: Any, a: Any, b: Any) -> Any:
    """The smaller number of each lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = arguments
        return builder.select(builder.fcmp_ordered("<", a, b), a, b)

    return Lanes(Lanes, Lanes), generate


@intrinsic
def exponential(typing_context: Any, x: Any) -> Any:
    """``exp(x)`` for x up to 88, with a relative error of 2e-7; below -87 it is that of -87."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x = _larger(builder, arguments[0], _constant(_EXP_LOWEST))
        floor = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.floor.v{LANES}f32"
        )
        scaled = builder.fmul(x, _constant(1.4426950408889634))
        power = builder.call(floor, [builder.fadd(scaled, _constant(0.5))])
        rest = builder.fsub(x, builder.fmul(power, _constant(_LN2_HIGH)), flags=_FUSE)
        rest = builder.fsub(rest, builder.fmul(power, _constant(_LN2_LOW)), flags=_FUSE)
        out = _constant(_EXP_TERMS[0])
        for term in _EXP_TERMS[1:]:
            out = builder.fadd(builder.fmul(out, rest, flags=_FUSE), _constant(term), flags=_FUSE)
        exponent = builder.add(builder.fptosi(power, _INTEGERS), ir.Constant(_INTEGERS, [127] * LANES))
        # the exponent's bits begin at the 23rd
        scale = builder.bitcast(builder.shl(exponent, ir.Constant(_INTEGERS, [23] * LANES)), _VECTOR)
        return builder.fmul(out, scale)

    return Lanes(Lanes), generate


@intrinsic
def reciprocal(typing_context: Any, x: Any) -> Any:
    """``1 / x`` with a relative error of 2e-7, for x other than 0.

    Processors that estimate reciprocals do so, and take a step of Newton's method.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # a division takes as long as thirty products, and the next has to wait for it
        return builder.fdiv(_constant(1.0), arguments[0], flags=("arcp", "ninf", *_FUSE))

    return Lanes(Lanes), generate


@intrinsic
def fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """``a b + c``, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        name = f"llvm.fma.v{LANES}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return Lanes(Lanes, Lanes, Lanes), generate


@intrinsic
def at_least(typing_context: Any, x: Any, least: Any) -> Any:
    """0 in the lanes where x is below ``least``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *arguments), _constant(0.0), arguments[0])

    return Lanes(Lanes, Lanes), generate


@intrinsic
def nearest(typing_context: Any, x: Any) -> Any:
    """The nearest whole number; the even one of two that are as near."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        name = f"llvm.rint.v{LANES}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return Lanes(Lanes), generate


@intrinsic
def rough_logarithm(typing_context: Any, x: Any) -> Any:
    """The natural logarithm to within 0.06, for x above 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.sitofp(builder.bitcast(arguments[0], _INTEGERS), _VECTOR)
        return builder.fmul(builder.fsub(bits, _constant(_BIAS)), _constant(_PER_BIT))

    return Lanes(Lanes), generate


@intrinsic
def largest(typing_context: Any, x: Any) -> Any:
    """The largest of the sixteen numbers, as one number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.FloatType(), [_VECTOR])
        name = f"llvm.vector.reduce.fmax.v{LANES}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return types.float32(Lanes), generate


@intrinsic
def repeat(typing_context: Any, array: Any, index: Any) -> Any:
    """The number ``array[index]`` in every lane, for an index of 0 or more."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        value = builder.load(builder.gep(data, [arguments[1]]))
        none = ir.Constant(_VECTOR, ir.Undefined)
        one = builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, none, ir.Constant(_INTEGERS, [0] * LANES))

    return Lanes(array, types.intp), generate
