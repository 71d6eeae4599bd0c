"""Every law of warpers can fail."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from isotone.interfaces import Warper
from isotone.kernels.warping import dtw_spans
from isotone.testing import check_warper
from isotone.types import Warp, Window


class Broken(Warper):
    """Dynamic time warping with one fault."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def __call__(self, x: Tensor, y: Tensor, window: Window | None = None, *, part: bool = False) -> Warp:
        match self.fault:
            case "changed":
                x += 1.0
            case "part":
                part = False
            case "window":
                window = None
            case "finite":
                x, y = x.nan_to_num(), y.nan_to_num()
            case "size":
                x = x[:, : y.shape[1]]
            case "length":
                window = None if window is not None and len(window.low) == 59 else window
        spans, cost = dtw_spans(x, y, window, part=part)
        places = spans.double().mean(1)
        match self.fault:
            case "float":
                places = places.float()
            case "order":
                places = places.flip(0)
            case "outside":
                places = places * 2
            case "late":
                places = (places + 8).clamp(max=len(y) - 1)
            case "nan":
                places = places / 0 * 0
            case "score":
                return Warp(places, torch.tensor(cost))  # type: ignore[arg-type]
        return Warp(places, -cost)


def test_the_whole_one_keeps_them() -> None:
    check_warper(Broken())


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("changed", "not changed"),
        ("part", "part"),
        ("window", "window"),
        ("finite", "not finite"),
        ("size", "two sizes"),
        ("length", "another length"),
        ("float", "float64"),
        ("order", "never decrease"),
        ("outside", "within the other"),
        ("late", "lies on itself"),
        ("nan", "finite"),
        ("score", "score"),
    ],
)
def test_a_fault_is_found(fault: str, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_warper(Broken(fault))


def test_what_is_no_warper_is_refused() -> None:
    with pytest.raises(AssertionError, match="subclass"):
        check_warper(lambda x, y: None)  # type: ignore[arg-type]
