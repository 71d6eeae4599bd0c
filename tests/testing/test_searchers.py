"""Every law of searchers can fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from isotone.search.searcher import LogMelSearcher
from isotone.testing import check_searcher


class Broken(LogMelSearcher):
    """The searcher without training, with one fault."""

    fault = ""
    calls = 0

    def vectors(self, windows: Tensor, lengths: Tensor | None = None) -> Tensor:
        self.calls += 1
        out = super().vectors(windows, lengths)
        match self.fault:
            case "norms":
                return 2 * out
            case "size":
                return out[..., 1:]
            case "random":
                return torch.nn.functional.normalize(out + 0.1 * self.calls, dim=-1)
            case "padding":
                return torch.nn.functional.normalize(out + windows.abs().amax((1, 2))[:, None, None], dim=-1)
            case "batch":
                return torch.nn.functional.normalize(out + 0.1 * len(windows), dim=-1)
            case "neighbours":
                return torch.nn.functional.normalize(out + out.shape[1] * (out.shape[1] == 1), dim=-1)
            case "silence":
                return torch.where(windows.any(2, keepdim=True), out, 0.1)
        return out

    def score(self, query: Tensor, items: Tensor, lengths: Tensor) -> Tensor:
        out = super().score(query, items, lengths)
        match self.fault:
            case "one score":
                return out.mean()
            case "lower is better":
                return -out
            case "items of a batch":
                return out + len(out)
            case "order":
                return out + torch.arange(len(out)) * (len(out) > 1) * 1e-4
            case "one window" if len(query) == 1:
                return out / 0
        return out


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("norms", "norm 1, or 0 for silence"),
        ("silence", "norm 1, or 0 for silence"),
        ("size", "vectors are"),
        ("random", "the same windows give the same vectors"),
        ("padding", "past an item are never read"),
        ("batch", "the same alone as in a batch"),
        ("neighbours", "does not depend on the other windows"),
        ("one score", "one score per item"),
        ("lower is better", "scores highest"),
        ("items of a batch", "scores the same alone"),
        ("order", "scores the same alone|order of the items"),
        ("one window", "a query of one window"),
    ],
)
def test_a_searcher_that_breaks_a_law_is_caught(fault: str, law: str) -> None:
    searcher = Broken()
    searcher.fault = fault
    with pytest.raises(AssertionError, match=law):
        check_searcher(searcher)


@pytest.mark.parametrize(
    ("attributes", "law"),
    [
        ({"fingerprint": ""}, "a fingerprint is not empty"),
        ({"hop_s": 2.0}, "leave nothing out"),
        ({"query_windows": 65}, "at most an item's windows"),
        ({"sample_rate": 0}, "sample rate is above 0"),
    ],
)
def test_a_searcher_with_wrong_attributes_is_caught(attributes: dict[str, Any], law: str) -> None:
    searcher = Broken()
    for name, value in attributes.items():
        setattr(searcher, name, value)
    with pytest.raises(AssertionError, match=law):
        check_searcher(searcher)


@pytest.mark.parametrize("fault", ["takes any folder", "loses its source", "another fingerprint"])
def test_a_searcher_that_loads_wrongly_is_caught(fault: str, tmp_path: Path) -> None:
    class Loads(LogMelSearcher):
        source = "" if fault == "takes any folder" else str(tmp_path)

        @classmethod
        def load(cls, folder: Path, *, sample_rate: int) -> Any:
            if folder == tmp_path and fault == "another fingerprint":
                found = cls()
                found.fingerprint = "log-mel-0"
                return found
            return cls() if fault == "takes any folder" else None

    laws = {
        "takes any folder": "loads as None",
        "loses its source": "loads from its source",
        "another fingerprint": "the same fingerprint",
    }
    with pytest.raises(AssertionError, match=laws[fault]):
        check_searcher(Loads())
