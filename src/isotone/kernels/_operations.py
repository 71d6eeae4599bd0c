"""Compiled loops and Triton kernels as torch operations: in autograd, and in the graphs of torch.compile."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Function = Callable[..., Any]


class Operation:
    """A function of tensors, by compiled loops on the CPU and by Triton kernels on CUDA.

    In a graph it is a custom operator, otherwise a plain call: an operator checks its tensors at each call. That takes
    a tenth of a millisecond, as long as a small loop.

    Args:
        name: Of the operator, after ``isotone::``.
        loops: From CPU tensors to new tensors; its annotations are the operator's.
        fake: The same for tensors without values: it makes results of the right shape and type.
        kernels: ``module:function``, the same for CUDA tensors; imported at the first call.
    """

    def __init__(self, name: str, loops: Function, fake: Function, kernels: str) -> None:
        self.name, self._loops, self._place = name, loops, kernels
        self.operator = torch.library.custom_op(
            f"isotone::{name}", loops, mutates_args=(), device_types="cpu"
        )
        self.operator.register_kernel("cuda")(self._on_cuda)
        self.operator.register_fake(fake)

    @cached_property
    def _kernels(self) -> Function:
        module, name = self._place.split(":")
        return getattr(importlib.import_module(module), name)

    def _on_cuda(self, *inputs: Any) -> Any:
        place = inputs[0].device.index
        if place == torch.cuda.current_device():  # entering a device takes longer than to ask
            return self._kernels(*inputs)
        with torch.cuda.device(place):
            return self._kernels(*inputs)

    def call(self, *inputs: Any) -> Any:
        """Compute at once."""
        return (self._on_cuda if inputs[0].is_cuda else self._loops)(*inputs)

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

    # not as setup_context, for which torch inspects the signature at each call
    def forward(ctx: Any, *inputs: Any) -> Any:
        output = operation.call(*inputs)
        keep(ctx, inputs, output)
        return output

    methods = {"forward": forward, "backward": once_differentiable(backward)}
    plain: Any = type(
        operation.name,
        (torch.autograd.Function,),
        {name: staticmethod(method) for name, method in methods.items()},
    )

    def call(*inputs: Any) -> Any:
        return operation.operator(*inputs) if _in_graph(inputs) else plain.apply(*inputs)

    return call


def _in_graph(inputs: tuple[Any, ...]) -> bool:
    """Return whether the call is traced, with tensors that have no values."""
    return torch.compiler.is_compiling() or type(inputs[0]) not in (Tensor, torch.nn.Parameter)
