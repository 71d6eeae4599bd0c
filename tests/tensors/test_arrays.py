"""The stand-in for torch against torch, function by function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from isotone.tensors import arrays

Module = Any


@pytest.fixture(scope="module")
def own() -> Module:
    """The stand-in."""
    return arrays


def values(m: Module, dtype: type = np.float32, shape: tuple[int, ...] = (3, 4, 5), seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    array = rng.normal(0, 2, shape) if np.dtype(dtype).kind == "f" else rng.integers(0, shape[-1], shape)
    return m.from_numpy(array.astype(dtype))


def index(m: Module, shape: tuple[int, ...] = (3, 2, 5), most: int = 4) -> Any:
    return m.from_numpy(np.random.default_rng(1).integers(0, most, shape))


def mask(m: Module, shape: tuple[int, ...] = (3, 4, 5)) -> Any:
    return m.from_numpy(np.random.default_rng(2).random(shape) < 0.4)


def doubles(m: Module) -> Any:
    return values(m, np.float64)


def ints(m: Module) -> Any:
    return values(m, np.int64)


def row(m: Module, size: int) -> Any:
    return values(m, shape=(size,))


def order(m: Module) -> Any:
    return m.argsort(values(m), dim=1, stable=True)


CASES: dict[str, Callable[[Module], Any]] = {
    # rules for types
    "int times float": lambda m: ints(m) * 0.5,
    "int by int": lambda m: ints(m) / (ints(m) + 1),
    "float and double": lambda m: values(m) + doubles(m),
    "double and number": lambda m: doubles(m) * 2.0,
    "bool and float": lambda m: values(m) * ~mask(m),
    "bool sums": lambda m: mask(m).sum(1),
    "in place": lambda m: (lambda x: x.__iand__(mask(m)))(~mask(m).flip(1)),
    "comparison": lambda m: (values(m) > 0) | (ints(m) == 2),
    "where of numbers": lambda m: m.where(mask(m), 1, -1),
    "where of floats": lambda m: m.where(mask(m), 1.5, 0.5),
    "where of both": lambda m: m.where(mask(m), values(m), 0.0),
    "where of ints": lambda m: m.where(mask(m), ints(m), -1),
    "where of doubles": lambda m: m.where(mask(m), doubles(m), m.inf),
    "where of bools": lambda m: m.where(mask(m), True, ~mask(m)),
    "where broadcast": lambda m: m.where(mask(m, (3, 1, 1)), values(m), 0.0),
    "tensor of floats": lambda m: m.tensor([1.0, 2.5]),
    "tensor of ints": lambda m: m.tensor([[1, 2], [3, 4]]),
    "tensor of bools": lambda m: m.tensor([True, False], dtype=m.bool),
    "tensor with type": lambda m: m.tensor([1, 2], dtype=m.float64),
    "empty tensor": lambda m: m.tensor([], dtype=m.long),
    "zeros": lambda m: m.zeros(2, 3),
    "zeros by shape": lambda m: m.zeros((2, 3), dtype=m.long),
    "full int": lambda m: m.full((2, 3), 7),
    "full float": lambda m: m.full((2,), m.nan),
    "full double": lambda m: m.full((2,), m.nan, dtype=m.float64),
    "likes": lambda m: m.cat([m.zeros_like(ints(m)), m.ones_like(ints(m)), m.full_like(ints(m), -1)]),
    "like of type": lambda m: m.ones_like(ints(m), dtype=m.float32),
    "arange": lambda m: m.arange(7),
    "new zeros": lambda m: doubles(m).new_zeros(2, 3),
    "new zeros of type": lambda m: doubles(m).new_zeros((2, 3), dtype=m.long),
    "new full": lambda m: ints(m).new_full((2, 3), 9),
    # shapes
    "view": lambda m: values(m).view(3, 4, 5, 1, 1),
    "flatten": lambda m: values(m).flatten(1),
    "unflatten": lambda m: values(m).unflatten(-1, (5, 1)),
    "expand": lambda m: values(m, shape=(4, 1)).expand(3, -1, 5),
    "expand as": lambda m: m.arange(5).expand_as(values(m)),
    "flip": lambda m: values(m).flip(1),
    "diff": lambda m: ints(m).diff(),
    "diff of bools": lambda m: mask(m, (9,)).diff(),
    "nonzero": lambda m: mask(m, (4, 5)).nonzero(),
    "cat": lambda m: m.cat([values(m), values(m, seed=5)], 1),
    "stack": lambda m: m.stack([values(m), values(m, seed=5)], -1),
    "pad sequence": lambda m: pad(m)([values(m, shape=(n, 2)) for n in (3, 1, 4)], True),
    "rows": lambda m: values(m)[[2, 0]],
    "range": lambda m: values(m)[1:, None, ..., :2],
    "chosen": lambda m: values(m)[mask(m)],
    "pairs": lambda m: values(m)[m.arange(3)[:, None], index(m, (3, 2), 4), index(m, (3, 2), 5)],
    # reductions and functions
    "sum": lambda m: values(m).sum(1),
    "sum of all": lambda m: doubles(m).sum(),
    "mean": lambda m: values(m).mean(),
    "amax": lambda m: values(m).amax(-1),
    "largest": lambda m: ints(m).max(),
    "argmax": lambda m: values(m).argmax(-1),
    "any": lambda m: mask(m).any(1),
    "all": lambda m: mask(m).all(),
    "clamp": lambda m: values(m).clamp(-0.5, 0.5),
    "clamp below": lambda m: ints(m).clamp(min=2),
    "clamp above": lambda m: ints(m).clamp(max=2),
    "masked fill": lambda m: values(m).masked_fill(mask(m), -m.inf),
    "masked fill of rows": lambda m: ints(m).masked_fill(mask(m, (3, 1, 1)), -2),
    "no nan": lambda m: m.where(mask(m), values(m), m.nan).nan_to_num(0.0),
    "exp": lambda m: values(m).exp(),
    "floor": lambda m: values(m).floor().long(),
    "ceil": lambda m: doubles(m).ceil().long(),
    "minimum": lambda m: ints(m).minimum(ints(m).flip(0)),
    "maximum": lambda m: m.maximum(values(m), values(m).flip(0)),
    "smaller": lambda m: m.minimum(doubles(m), doubles(m).flip(0)),
    "cummax": lambda m: m.cummax(ints(m), 1).values,
    "cummin": lambda m: values(m).cummin(1).values,
    "cumsum of bools": lambda m: m.cumsum(mask(m), 1),
    "cumsum": lambda m: m.cumsum(doubles(m), 1),
    "argsort": lambda m: m.argsort(~mask(m), dim=1, stable=True),
    "isin": lambda m: m.isin(ints(m), m.tensor([1, 3])),
    "isnan": lambda m: m.isnan(m.where(mask(m), values(m), m.nan)),
    "isfinite": lambda m: m.isfinite(m.where(mask(m), values(m), -m.inf)),
    "logsumexp": lambda m: m.logsumexp(values(m) * 30, -1),
    "logsumexp kept": lambda m: m.logsumexp(values(m), 1, keepdim=True),
    "logsumexp of -inf": lambda m: m.logsumexp(m.full((2, 3), -m.inf), -1),
    "log softmax": lambda m: m.log_softmax(values(m), dim=-1),
    "log softmax with -inf": lambda m: m.log_softmax(values(m).masked_fill(mask(m), -m.inf), dim=1),
    "softmax": lambda m: m.softmax(values(m), -1, dtype=m.float64),
    "sigmoid": lambda m: m.sigmoid(values(m) * 60),
    # gathering and scattering
    "gather": lambda m: values(m).gather(1, index(m)),
    "gather last": lambda m: values(m).gather(2, index(m, (3, 4, 1), 5)),
    "gather of fewer": lambda m: values(m).gather(1, index(m, (2, 3, 4))),
    "scatter": lambda m: values(m).scatter_(1, order(m), values(m, seed=9)),
    "scatter of a number": lambda m: ints(m).scatter_(1, index(m), 7),
    "scatter add": lambda m: values(m).scatter_add(1, index(m), values(m, seed=3)),
    "scatter add in place": lambda m: doubles(m).scatter_add_(1, index(m), doubles(m)),
    "scatter amin": lambda m: values(m).scatter_reduce(1, index(m), values(m, seed=3), "amin"),
    "scatter amax": lambda m: ints(m).scatter_reduce(1, index(m), ints(m), "amax", include_self=False),
    "scatter amin alone": lambda m: values(m).scatter_reduce(
        1, index(m), values(m, seed=3), "amin", include_self=False
    ),
    "scatter in one dimension": lambda m: row(m, 6).scatter_reduce_(0, index(m, (9,), 6), row(m, 9), "amin"),
}  # fmt: skip


def pad(m: Module) -> Any:
    return m.nn.utils.rnn.pad_sequence if m is torch else m.pad_sequence


@pytest.mark.parametrize("name", CASES)
def test_it_does_what_torch_does(own: Module, name: str) -> None:
    found, expected = CASES[name](own), CASES[name](torch)
    assert str(np.asarray(found).dtype) == str(expected.dtype).removeprefix("torch.")
    assert np.shape(found) == tuple(expected.shape)
    np.testing.assert_allclose(np.asarray(found), expected.numpy(), rtol=2e-6, atol=1e-7, equal_nan=True)
    if np.ndim(found):
        assert isinstance(found, own.Tensor)


def test_arrays_share_their_memory(own: Module) -> None:
    array = np.zeros((2, 3), np.float32)
    tensor = own.from_numpy(array)
    tensor[0, 1] = 5
    for row in tensor:
        row[:1] += 1
    assert array.tolist() == [[1, 5, 0], [1, 0, 0]]
    assert type(tensor.numpy()) is np.ndarray
    assert tensor.to(own.device) is tensor
    assert tensor.to(own.zeros(1, dtype=own.float64)).dtype == np.float64


def test_there_are_no_gradients(own: Module) -> None:
    @own.no_grad()
    def one() -> int:
        return 1

    with own.inference_mode():
        assert one() == 1
    assert not own.compiler.is_compiling()
