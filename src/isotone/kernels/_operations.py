"""Compiled loops as operations of torch: in autograd, and in the graphs of torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Function = Callable[..., Any]


class Operation:
    """A function of CPU tensors by way of numpy: in a graph a custom operator, by itself a plain call.

    An operator checks its tensors on the way: a tenth of a millisecond, for what takes no longer.

    Args:
        name: Of the operator, after ``isotone::``.
        call: From tensors to new tensors; its annotations are the operator's.
        fake: The same from tensors without values.
    """

    def __init__(self, name: str, call: Function, fake: Function) -> None:
        self.call = call
        self.operator = torch.library.custom_op(f"isotone::{name}", call, mutates_args=(), device_types="cpu")
        self.operator.register_fake(fake)

    def __call__(self, *inputs: Any) -> Any:
        return (self.operator if _in_graph(inputs) else self.call)(*inputs)


def differentiable(operation: Operation, keep: Function, backward: Function) -> Function:
    """The operation with a gradient, once.

    Args:
        operation: What is to be differentiated.
        keep: ``(ctx, inputs, output)``, saves what the gradient needs.
        backward: ``(ctx, *grads)`` to the gradients of all inputs, through operations that know graphs.
    """
    operation.operator.register_autograd(backward, setup_context=keep)
    plain: Any = type(
        operation.call.__name__,
        (torch.autograd.Function,),
        {
            "forward": staticmethod(operation.call),
            "setup_context": staticmethod(keep),
            "backward": staticmethod(once_differentiable(backward)),
        },
    )

    def call(*inputs: Any) -> Any:
        return operation.operator(*inputs) if _in_graph(inputs) else plain.apply(*inputs)

    return call


def _in_graph(inputs: tuple[Any, ...]) -> bool:
    """Whether this is being traced, with tensors that have no values."""
    return torch.compiler.is_compiling() or type(inputs[0]) not in (Tensor, torch.nn.Parameter)
