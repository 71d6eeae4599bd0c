"""The README's plugins, run as they stand there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from isotone.testing import check_aligner, check_loss
from tests.paths import ROOT


def example(name: str) -> Any:
    """The class of that name that a code block of the README defines."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    (block,) = (b for b in blocks if f"class {name}(" in b)
    names: dict[str, Any] = {}
    exec(block, names)
    return names[name]


def test_the_loss_is_one() -> None:
    check_loss(example("FocalCTC")())


@pytest.mark.filterwarnings("error")
def test_the_aligner_is_one() -> None:
    check_aligner(example("Even")())
