"""The modules that isotone-light takes from isotone, and what becomes of their imports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from light import build
from light.closure import BARE, closure, imports, renamed
from tests.light.conftest import ABSENT, Run


def test_imports_are_those_at_once() -> None:
    text = """
import os, isotone.alignment
from typing import TYPE_CHECKING
try:
    from isotone import files
except ImportError:
    import numpy
if TYPE_CHECKING:
    import torch
else:
    import soxr
def later():
    import scipy
"""
    expected = ["os", "isotone.alignment", "typing.TYPE_CHECKING", "isotone.files", "numpy", "soxr"]
    assert list(imports(text)) == expected


def test_the_closure_has_all_that_it_imports() -> None:
    found = build.modules()
    assert {
        "isotone",
        "isotone.pipeline.forced",
        "isotone_ottc.align",
        "isotone.kernels.viterbi._graph",
    } <= set(found)
    assert "isotone.model.model" not in found
    assert closure(found) == found


def test_other_packages_are_refused() -> None:
    with pytest.raises(ImportError, match="which isotone-light does not have"):
        closure(["isotone.model.pretrained", "isotone.report.tiers"])


def test_imports_are_renamed() -> None:
    text = "from isotone.types import Grid\nfrom isotone import files\nfrom isotone_ottc.states import S\n"
    text += 'from isotonecodec import x\nname = "isotone.json", "isotone.aligners", "isotone.interfaces:Aligner"\n'
    assert renamed(text) == (
        "from isotone_light.core.types import Grid\n"
        "from isotone_light.core import files\nfrom isotone_light.ottc.states import S\nfrom isotonecodec import x\n"
        'name = "isotone.json", "isotone_light.core.aligners", "isotone_light.core.interfaces:Aligner"\n'
    )


def test_the_stand_in_has_what_is_used() -> None:
    """Every function of torch in the modules that are taken along is there."""
    tree = ast.parse((build.ROOT / "src" / "isotone" / "tensors" / "arrays.py").read_text())
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            defined |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
    missing = set()
    for name, path in build.modules().items():
        text = path.read_text()
        # others may look at the real one, if it is there
        takes = name not in BARE and re.search(r"^from isotone\.tensors import .*\btorch\b", text, re.M)
        for node in ast.walk(ast.parse(text)) if takes else ():
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "torch"
            ):
                missing |= {(name, node.attr)} - {(name, one) for one in defined}
    assert missing == set()


def test_it_imports_without_torch(bare: Path, without_torch: Run) -> None:
    code = "import sys, isotone_light.calls, isotone_light.cli; print(*[m for m in sys.modules if sys.modules[m]])"
    loaded = {name.split(".")[0] for name in without_torch(bare, "-c", code).stdout.split()}
    assert not loaded & set(ABSENT)
    assert {"numba", "isotone_light"} <= loaded


def test_all_its_modules_import_without_torch(bare: Path, without_torch: Run) -> None:
    names = [
        ".".join(path.relative_to(bare).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((bare / "isotone_light" / "core").rglob("*.py"))
        if "lanes" not in path.name
    ]
    without_torch(bare, "-c", f"import importlib\nfor name in {names!r}: importlib.import_module(name)")


def test_help_is_quick_to_import(bare: Path, without_torch: Run) -> None:
    code = "import sys, isotone_light.cli as c; c.parser().format_help(); print('numba' in sys.modules)"
    assert without_torch(bare, "-c", code).stdout.split() == ["False"]
