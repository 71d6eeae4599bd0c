"""The README's plugins, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from isotone.registries import ALL
from isotone.testing import check_aligner, check_loss, check_pack
from tests.paths import ROOT
from tests.tiny_models import save_character_model


def example(name: str) -> Any:
    """The class of that name that a code block of the README defines."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    (block,) = (b for b in blocks if f"class {name}(" in b)
    names: dict[str, Any] = {}
    before = {registry: set(registry.names()) for registry in ALL}
    exec(block, names)
    for registry, known in before.items():  # other tests run over all names
        for new in set(registry.names()) - known:
            registry.unregister(new)
    return names[name]


def test_the_loss_is_one() -> None:
    check_loss(example("FocalCTC")())


@pytest.mark.filterwarnings("error")
def test_the_aligner_is_one() -> None:
    check_aligner(example("Even")())


def test_the_pack_is_one(tmp_path: Path) -> None:
    pack = example("German")
    model = save_character_model(tmp_path / "model")
    pack.folder = lambda self: model
    pack.size_mb = sum(path.stat().st_size for path in model.rglob("*") if path.is_file()) / 1e6
    check_pack(pack(), text="guten Tag")
