"""The library of tensors that alignment computes with: torch, or numpy under torch's names.

Modules that alignment needs import ``torch`` from here. It is the library itself, imported at its first use; within
:func:`without_torch` it is :mod:`isotone.tensors.arrays`, and nothing imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from threading import Lock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

__all__ = ["Tensor", "never_torch", "no_grad", "torch", "without_torch"]

P = ParamSpec("P")
R = TypeVar("R")

_inside: ContextVar[bool] = ContextVar("inside", default=False)
_lock = Lock()
# Open contexts of all threads. torch.compile traces a number, and no context variable.
_open = 0
_never = False


@contextmanager
def without_torch() -> Iterator[None]:
    """Compute with numpy inside, in this thread."""
    global _open
    with _lock:
        _open += 1
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
        with _lock:
            _open -= 1


def never_torch() -> None:
    """Compute with numpy from now on, in all threads."""
    global _never
    _never = True


def chosen() -> Any:
    """Return the library that is chosen here and now."""
    if _never or (_open and _inside.get()):
        return _arrays()
    import torch

    return torch


@cache
def _arrays() -> Any:
    # a statement would look for the module every time: names are asked for hundreds of times per recording
    from isotone.tensors import arrays

    return arrays


def no_grad(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that computes no gradients; unlike torch's own, before torch is imported."""

    @wraps(function)
    def inside(*args: P.args, **options: P.kwargs) -> R:
        with torch.no_grad():
            return function(*args, **options)

    return inside


class _Library:
    """The names of torch, in the chosen library."""

    def __getattr__(self, name: str) -> Any:
        return getattr(chosen(), name)


if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = _Library()
    Tensor = Any  # in annotations; for isinstance take torch.Tensor
