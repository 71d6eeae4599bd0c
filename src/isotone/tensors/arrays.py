"""Arrays of numpy with the names and rules of torch's tensors: what alignment needs of them.

The rules are torch's: numbers without a type are of 32 bits, and Python's numbers do not widen arrays. Every function
is tested against torch's.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from contextlib import ContextDecorator
from types import SimpleNamespace
from typing import Any

import numpy as np

from isotone.tensors.scattering import scattered

float32, float64, long, bool = np.float32, np.float64, np.int64, np.bool_
inf, nan = np.inf, np.nan
finfo, promote_types = np.finfo, np.promote_types
isnan, isfinite, maximum, minimum = np.isnan, np.isfinite, np.maximum, np.minimum
# Numbers of types are compared in a fraction of the time of types.
_WIDE = np.dtype(np.float64).num
#: The only device.
device = SimpleNamespace(type="cpu")
compiler = SimpleNamespace(is_compiling=lambda: False)


class Tensor(np.ndarray):
    """An array with torch's methods, beside those of numpy that torch has too."""

    device: Any = device

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if out is not None:
            options["out"] = tuple(np.asarray(one) for one in out)
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        return out[0] if out is not None else _typed(result, inputs)

    def view(self, *shape: Any) -> Any:
        return self.reshape(shape) if shape and isinstance(shape[0], int) else super().view(*shape)

    def detach(self) -> Tensor:
        return self

    cpu = detach

    def numpy(self) -> np.ndarray:
        return np.asarray(self)

    def to(self, kind: Any) -> Tensor:
        if isinstance(kind, Tensor):
            kind = kind.dtype
        return self if isinstance(kind, (str, SimpleNamespace)) else self.astype(kind, copy=False)

    def float(self) -> Tensor:
        return self.astype(np.float32, copy=False)

    def double(self) -> Tensor:
        return self.astype(np.float64, copy=False)

    def long(self) -> Tensor:
        return self.astype(np.int64, copy=False)

    def clone(self) -> Tensor:
        return self.copy()

    def is_floating_point(self) -> builtins.bool:
        return self.dtype.kind == "f"

    def element_size(self) -> int:
        return self.itemsize

    def new_zeros(self, *size: Any, dtype: Any = None) -> Tensor:
        return zeros(*size, dtype=dtype or self.dtype)

    def new_full(self, size: Sequence[int], value: Any) -> Tensor:
        return full(size, value, dtype=self.dtype)

    def flatten(self, start: int = 0) -> Tensor:
        return self.reshape(*self.shape[:start], -1)

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Tensor:
        dim %= self.ndim
        return self.reshape(*self.shape[:dim], *sizes, *self.shape[dim + 1 :])

    def expand(self, *sizes: int) -> Tensor:
        own = (1,) * (len(sizes) - self.ndim) + self.shape
        return _tensor(np.broadcast_to(self, [o if s < 0 else s for s, o in zip(sizes, own)]))

    def expand_as(self, other: Tensor) -> Tensor:
        return self.expand(*other.shape)

    def flip(self, dim: int) -> Tensor:
        return _tensor(np.flip(np.asarray(self), dim))

    def diff(self) -> Tensor:
        # torch's booleans differ where one of them is true, and numpy's too
        return _tensor(np.diff(np.asarray(self)))

    def nonzero(self) -> Tensor:
        return _tensor(np.argwhere(np.asarray(self)))

    def amax(self, dim: int) -> Tensor:
        return self.max(dim)

    def mean(self, *axis: Any) -> Tensor:
        return _tensor(np.asarray(self).mean(*axis))

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        return _typed(np.clip(np.asarray(self), min, max), (self,))

    def masked_fill(self, mask: Any, value: Any) -> Tensor:
        return where(mask, value, self).to(self.dtype)

    def nan_to_num(self, value: Any) -> Tensor:
        return _tensor(np.nan_to_num(np.asarray(self), nan=value))

    def exp(self) -> Tensor:
        return np.exp(self)

    def floor(self) -> Tensor:
        return np.floor(self)

    def ceil(self) -> Tensor:
        return np.ceil(self)

    def minimum(self, other: Any) -> Tensor:
        return np.minimum(self, other)

    def maximum(self, other: Any) -> Tensor:
        return np.maximum(self, other)

    def cummax(self, dim: int) -> SimpleNamespace:
        return SimpleNamespace(values=np.maximum.accumulate(self, dim))

    def cummin(self, dim: int) -> SimpleNamespace:
        return SimpleNamespace(values=np.minimum.accumulate(self, dim))

    def gather(self, dim: int, index: Any) -> Tensor:
        dim %= self.ndim
        # torch lets the index be smaller than the array along the other dimensions
        parts = tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(index.shape))
        return _tensor(np.take_along_axis(np.asarray(self)[parts], np.asarray(index), dim))

    def scatter_(self, dim: int, index: Any, source: Any) -> Tensor:
        return scattered(self, dim, index, source)

    def scatter_add_(self, dim: int, index: Any, source: Any) -> Tensor:
        return scattered(self, dim, index, source, np.add)

    def scatter_reduce_(
        self, dim: int, index: Any, source: Any, reduce: str, *, include_self: builtins.bool = True
    ) -> Tensor:
        operation = {"amin": np.minimum, "amax": np.maximum}[reduce]
        return scattered(self, dim, index, source, operation, include_self)

    def scatter_add(self, *arguments: Any) -> Tensor:
        return self.copy().scatter_add_(*arguments)

    def scatter_reduce(self, *arguments: Any, **options: Any) -> Tensor:
        return self.copy().scatter_reduce_(*arguments, **options)


class inference_mode(ContextDecorator):
    """Nothing: there are no gradients."""

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: Any) -> None:
        return


no_grad = inference_mode


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, Tensor) else value


def _tensor(value: Any) -> Tensor:
    return np.asarray(value).view(Tensor)


def _typed(result: Any, inputs: Sequence[Any]) -> Tensor:
    """Return a result as torch would type it: 64 bits only where an input has them."""
    array = np.asarray(result)
    if array.dtype.num == _WIDE:
        wide = any(isinstance(x, np.ndarray) and x.dtype.num == _WIDE for x in inputs)
        array = array if wide else array.astype(np.float32)
    return array.view(Tensor)


def from_numpy(array: np.ndarray) -> Tensor:
    return array.view(Tensor)


def tensor(values: Any, dtype: Any = None, device: Any = None) -> Tensor:
    return _typed(np.array(values, dtype), (np.zeros(0, dtype),) if dtype else ())


def zeros(*size: Any, dtype: Any = None, device: Any = None) -> Tensor:
    return _tensor(np.zeros(size if size and isinstance(size[0], int) else size[0], dtype or np.float32))


def full(size: Sequence[int], value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    if dtype is None:
        dtype = np.float32 if isinstance(value, float) else np.asarray(value).dtype
    return _tensor(np.full(tuple(size), value, dtype))


def arange(count: int, device: Any = None) -> Tensor:
    return _tensor(np.arange(count))


def zeros_like(like: Tensor, dtype: Any = None) -> Tensor:
    return zeros(like.shape, dtype=dtype or like.dtype)


def ones_like(like: Tensor, dtype: Any = None) -> Tensor:
    return full(like.shape, 1, dtype=dtype or like.dtype)


def full_like(like: Tensor, value: Any, dtype: Any = None) -> Tensor:
    return full(like.shape, value, dtype=dtype or like.dtype)


def where(condition: Any, one: Any, other: Any) -> Tensor:
    return _typed(np.where(*map(_plain, (condition, one, other))), (one, other))


def cat(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    return _tensor(np.concatenate([np.asarray(part) for part in parts], dim))


def stack(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    return _tensor(np.stack([np.asarray(part) for part in parts], dim))


def pad_sequence(parts: Sequence[Tensor], batch_first: builtins.bool) -> Tensor:
    size = max(len(part) for part in parts)
    out = zeros(len(parts), size, *parts[0].shape[1:], dtype=parts[0].dtype)
    for row, part in zip(out, parts):
        row[: len(part)] = part
    return out if batch_first else out.swapaxes(0, 1)


def cumsum(values: Tensor, dim: int) -> Tensor:
    return _tensor(np.cumsum(np.asarray(values), dim))


def cummax(values: Tensor, dim: int) -> SimpleNamespace:
    return values.cummax(dim)


def argsort(values: Tensor, dim: int, stable: builtins.bool) -> Tensor:
    return _tensor(np.argsort(np.asarray(values), dim, kind="stable"))


def isin(values: Tensor, among: Tensor) -> Tensor:
    return _tensor(np.isin(np.asarray(values), np.asarray(among)))


def logsumexp(values: Tensor, dim: int, keepdim: builtins.bool = False) -> Tensor:
    plain = np.asarray(values)
    top = plain.max(dim, keepdims=True, initial=-np.inf)
    top = np.where(np.isinf(top), 0, top).astype(plain.dtype)
    with np.errstate(divide="ignore"):
        out = np.log(np.exp(plain - top).sum(dim, keepdims=True)) + top
    return _tensor(out if keepdim else out.squeeze(dim))


def log_softmax(values: Tensor, dim: int) -> Tensor:
    return values - logsumexp(values, dim, keepdim=True)


def softmax(values: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return np.exp(log_softmax(values.to(dtype or values.dtype), dim))


def sigmoid(values: Tensor) -> Tensor:
    plain = np.asarray(values)
    small = np.exp(-np.abs(plain))  # never overflows
    return _tensor(np.where(plain >= 0, 1 / (1 + small), small / (1 + small)).astype(plain.dtype))


nn = SimpleNamespace(utils=SimpleNamespace(rnn=SimpleNamespace(pad_sequence=pad_sequence)))
