"""Compiled loops as torch operations: in autograd, and in the graphs of torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Function = Callable[..., Any]


class Operation:
    """A function of CPU tensors that works on numpy arrays: in a graph a custom operator, otherwise a plain call.

    An operator checks its tensors at each call. That takes a tenth of a millisecond, as long as a small loop.

    Args:
        name: Of the operator, after ``isotone::``.
        call: From tensors to new tensors; its annotations are the operator's.
        fake: The same for tensors without values: it makes results of the right shape and type.
    """

    def __init__(self, name: str, call: Function, fake: Function) -> None:
        self.call = call
        self.operator = torch.library.custom_op(f"isotone::{name}", call, mutates_args=(), device_types="cpu")
        self.operator.register_fake(fake)

    def __call__(self, *inputs: Any) -> Any:
        return (self.operator if _in_graph(inputs) else self.call)(*inputs)


def differentiable(operation: Operation, keep: Function, backward: Function) -> Function:
    """Give an operation a gradient that can be taken once.

    Args:
        operation: The operation.
        keep: ``(ctx, inputs, output)``, saves what the gradient needs.
        backward: ``(ctx, *grads)`` to the gradients of all inputs, by operations that graphs can hold.
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
    """Return whether the call is traced, with tensors that have no values."""
    return torch.compiler.is_compiling() or type(inputs[0]) not in (Tensor, torch.nn.Parameter)
