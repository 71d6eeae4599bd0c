"""LLVM instructions on single numbers: memory that does not overlap, and counting ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _element(target: Any, builder: Any, array_type: Any, array: Any, index: Any) -> tuple[Any, Any]:
    """Pointer to an element, and the alias scope of everything that :func:`write` writes.

    The scope holds for one run through a function. Inlined into a loop it would span all its turns, and promise too
    much: hence noinline.
    """
    builder.function.attributes.add("noinline")
    module = builder.module
    domain = module.add_metadata([ir.MetaDataString(module, "isotone")])
    scope = module.add_metadata([ir.MetaDataString(module, "written"), domain])
    pointer = builder.gep(target.make_array(array_type)(target, builder, array).data, [index])
    return pointer, module.add_metadata([scope])


@intrinsic
def read(context: Any, array: Any, index: Any) -> tuple[Any, Callable[..., Any]]:
    """``array[index]`` of a contiguous vector, for an index of 0 or more.

    LLVM may assume that no :func:`write` of the same call of the function touches this element. Only then does it make
    vector code of a loop that reads and writes.
    """

    def emit(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, scope = _element(target, builder, signature.args[0], *arguments)
        value = builder.load(pointer)
        value.set_metadata("noalias", scope)
        return value

    return array.dtype(array, types.int64), emit


@intrinsic
def write(context: Any, array: Any, index: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """``array[index] = value`` of a contiguous vector, for an index of 0 or more.

    LLVM may assume that no other :func:`read` or :func:`write` of the same call of the function touches this element.
    """

    def emit(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type, _, value_type = signature.args
        pointer, scope = _element(target, builder, array_type, *arguments[:2])
        store = builder.store(target.cast(builder, arguments[2], value_type, array_type.dtype), pointer)
        store.set_metadata("alias.scope", scope)
        store.set_metadata("noalias", scope)
        return target.get_dummy_value()

    return types.void(array, types.int64, value), emit


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Number of ones in a word of 64 bits: the processor's own instruction, where it has one."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), emit
