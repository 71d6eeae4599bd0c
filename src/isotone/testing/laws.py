"""Assertions that name the law they check."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor

#: Relative and absolute tolerance between two float32 computations of one value.
FLOAT32 = (2e-4, 2e-5)
#: Relative and absolute tolerance between a half-precision input and the same numbers in float32.
HALF = (0.02, 0.02)


def require(holds: bool, law: str) -> None:
    """Raise AssertionError with the law unless it holds."""
    if not holds:
        raise AssertionError(f"Expected: {law}.")


def close(got: Tensor, expected: Tensor, law: str, tolerance: tuple[float, float] = FLOAT32) -> None:
    """Raise AssertionError with the law unless two tensors are equal within a tolerance."""
    torch.testing.assert_close(
        got,
        expected,
        rtol=tolerance[0],
        atol=tolerance[1],
        msg=lambda message: f"Expected: {law}.\n{message}",
    )


def raises(
    error: type[Exception] | tuple[type[Exception], ...], call: Callable[[], object], case: str
) -> Exception:
    """Call a function that has to raise an error of a kind, and return that error.

    Raises:
        AssertionError: the call returns, or raises an error of another kind.
    """
    kinds = error if isinstance(error, tuple) else (error,)
    named = " or ".join(kind.__name__ for kind in kinds)
    article = "an" if named[0] in "AEIOU" else "a"
    try:
        call()
    except kinds as found:
        return found
    except Exception as found:
        raise AssertionError(f"Expected {article} {named} for {case}; got {found!r}.") from found
    raise AssertionError(f"Expected {article} {named} for {case}; there was none.")


def check_names(without: Collection[str], known: Collection[str]) -> None:
    """Refuse names of laws that do not exist.

    Raises:
        ValueError: an unknown name; the message lists the laws that can be left out.
    """
    if unknown := sorted(set(without) - set(known)):
        raise ValueError(f"Laws that can be left out are {', '.join(sorted(known))}; got {unknown}.")
