"""Steps on sixteen float32 numbers that only the loops of :mod:`isotone_opas.kernels` need; the others are _lanes'."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from isotone_opas.kernels._lanes import _FUSE, _VECTOR, _WHOLE, LANES, Lanes, _constant

# What a number's bits, read as a whole number, are worth in natural logarithms, and those of 1.
_PER_BIT, _BIAS = 0.6931471805599453 / 2**23, 127.0 * 2**23


@intrinsic
def reciprocal(typing_context: Any, x: Any) -> Any:
    """``1 / x`` to 2e-7 of its value, for x that is not 0: an estimate and a step of Newton's, where there is one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # a division takes as long as thirty products, and nothing else can be divided meanwhile
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
def whole(typing_context: Any, x: Any) -> Any:
    """The whole number that is nearest."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        name = f"llvm.rint.v{LANES}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return Lanes(Lanes), generate


@intrinsic
def rough_logarithm(typing_context: Any, x: Any) -> Any:
    """The logarithm to within 0.06, for x above 0: the bits of a number are all but linear in it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.sitofp(builder.bitcast(arguments[0], _WHOLE), _VECTOR)
        return builder.fmul(builder.fsub(bits, _constant(_BIAS)), _constant(_PER_BIT))

    return Lanes(Lanes), generate


@intrinsic
def largest(typing_context: Any, x: Any) -> Any:
    """The largest of the sixteen numbers, as one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.FloatType(), [_VECTOR])
        name = f"llvm.vector.reduce.fmax.v{LANES}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return types.float32(Lanes), generate


@intrinsic
def repeat(typing_context: Any, array: Any, place: Any) -> Any:
    """The number ``array[place]`` in every lane; unlike an index, the place is not looked at for being negative."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        value = builder.load(builder.gep(data, [arguments[1]]))
        none = ir.Constant(_VECTOR, ir.Undefined)
        one = builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, none, ir.Constant(_WHOLE, [0] * LANES))

    return Lanes(array, types.intp), generate
