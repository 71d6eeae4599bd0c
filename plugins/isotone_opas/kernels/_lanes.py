"""Sixteen float32 numbers that compiled loops handle as one: a vector type for numba.

numba gives LLVM no way to know that two arrays do not overlap, so that it guards every short inner loop. Loops over
values of this type need no guards: one step does sixteen independent problems at once, whatever their size.
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
_WHOLE = ir.VectorType(ir.IntType(32), LANES)
# lets a product and a sum become one instruction, where there is one
_FUSE = ("contract",)
# exp(x) for |x| <= ln(2) / 2, to a few units in the last place
_EXP_TERMS = (1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_EXP_LOWEST = -87.0


class _LanesType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Float32Lanes")


Lanes = _LanesType()


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _constant(value: float) -> ir.Constant:
    return ir.Constant(_VECTOR, [value] * LANES)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), ir.PointerType(_VECTOR))


@intrinsic
def load(typing_context: Any, array: Any, place: Any) -> Any:
    """The numbers ``array[place : place + 16]`` of a contiguous float32 vector."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=4)

    return Lanes(array, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, place: Any, lanes: Any) -> Any:
    """Set ``array[place : place + 16]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], pointer, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, Lanes), generate


@intrinsic
def splat(typing_context: Any, value: Any) -> Any:
    """The same number in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = builder.insert_element(
            ir.Constant(_VECTOR, ir.Undefined), arguments[0], ir.Constant(ir.IntType(32), 0)
        )
        return builder.shuffle_vector(
            one, ir.Constant(_VECTOR, ir.Undefined), ir.Constant(_WHOLE, [0] * LANES)
        )

    return Lanes(types.float32), generate


@intrinsic
def add(typing_context: Any, a: Any, b: Any) -> Any:
    """The sum."""
    return Lanes(Lanes, Lanes), lambda _, builder, __, args: builder.fadd(*args, flags=_FUSE)


@intrinsic
def subtract(typing_context: Any, a: Any, b: Any) -> Any:
    """The difference."""
    return Lanes(Lanes, Lanes), lambda _, builder, __, args: builder.fsub(*args, flags=_FUSE)


@intrinsic
def multiply(typing_context: Any, a: Any, b: Any) -> Any:
    """The product."""
    return Lanes(Lanes, Lanes), lambda _, builder, __, args: builder.fmul(*args, flags=_FUSE)


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
    """``exp(x)`` for x up to 88, to 2e-7 of its value; below -87 that of -87."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x = _larger(builder, arguments[0], _constant(_EXP_LOWEST))
        floor = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.floor.v{LANES}f32"
        )
        scaled = builder.fmul(x, _constant(1.4426950408889634))
        whole = builder.call(floor, [builder.fadd(scaled, _constant(0.5))])
        rest = builder.fsub(x, builder.fmul(whole, _constant(_LN2_HIGH)), flags=_FUSE)
        rest = builder.fsub(rest, builder.fmul(whole, _constant(_LN2_LOW)), flags=_FUSE)
        out = _constant(_EXP_TERMS[0])
        for term in _EXP_TERMS[1:]:
            out = builder.fadd(builder.fmul(out, rest, flags=_FUSE), _constant(term), flags=_FUSE)
        exponent = builder.add(builder.fptosi(whole, _WHOLE), ir.Constant(_WHOLE, [127] * LANES))
        power = builder.bitcast(builder.shl(exponent, ir.Constant(_WHOLE, [23] * LANES)), _VECTOR)
        return builder.fmul(out, power)

    return Lanes(Lanes), generate
