"""The shape of the house: rooms import downwards, plugins stand apart, files and functions stay small."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from docs import architecture
from tests.paths import ROOT

#: Modules beside the rooms.
MODULES = {
    "__init__",
    "__main__",
    "alignment",
    "files",
    "installed",
    "late",
    "passage",
    "progress",
    "registries",
}
PLUGINS = sorted(path for path in (ROOT / "plugins").iterdir() if (path / "__init__.py").is_file())


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def test_rooms_import_downwards() -> None:
    assert architecture.circles(architecture.rooms()) == []


def test_the_core_imports_no_plugin() -> None:
    found = {
        (path.name, name)
        for path in sources("src")
        for name in architecture.imported(path)
        if re.match(r"isotone_\w+", name)
    }
    assert found == set()


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_plugins_do_not_import_each_other(plugin: Path) -> None:
    names = {name.split(".")[0] for path in plugin.rglob("*.py") for name in architecture.imported(path)}
    assert {name for name in names if name.startswith("isotone_")} <= {plugin.name}


def test_no_module_lies_beside_the_rooms() -> None:
    assert {path.stem for path in (ROOT / "src" / "isotone").glob("*.py")} == MODULES


def test_files_are_small() -> None:
    lines = {
        path: path.read_text().count("\n")
        for path in sources("src", "plugins", "recipes", "benchmarks", "light")
    }
    assert {str(path.relative_to(ROOT)): n for path, n in lines.items() if n > 300} == {}
    lines = {path: path.read_text().count("\n") for path in sources("tests")}
    assert {str(path.relative_to(ROOT)): n for path, n in lines.items() if n > 400} == {}


def test_functions_are_small() -> None:
    """At most 50 lines, docstrings aside."""
    found = {}
    for path in sources("src", "plugins", "recipes", "benchmarks", "light"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                first = node.body[0]
                docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0  # type: ignore[operator]
                size = node.end_lineno - node.lineno + 1 - docstring  # type: ignore[operator]
                if size > 50:
                    found[f"{path.relative_to(ROOT)}:{node.name}"] = size
    assert found == {}


def test_docstrings_begin_with_what_the_thing_is() -> None:
    """A verb or a noun phrase, never a question word."""
    found = []
    for path in sources("src", "plugins", "light"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                if re.match(r"(What|Whether|How|Where|When|Which|Who|Why)\b", text):
                    found.append(f"{path.relative_to(ROOT)}: {text.splitlines()[0]}")
    assert found == []


def test_the_drawing_is_of_the_code(tmp_path: Path) -> None:
    """``python docs/architecture.py`` draws what is committed."""
    pytest.importorskip("matplotlib")
    architecture.draw(tmp_path / "now.svg")
    drawn = (ROOT / "docs" / "architecture.svg").read_text()

    def labels(svg: str) -> list[str]:
        return sorted(re.findall(r"<!-- (\w+) -->", svg))

    assert labels((tmp_path / "now.svg").read_text()) == labels(drawn)


def test_the_walks_are_of_the_code() -> None:
    """Every ``file.py:name`` and ``file.py`` of ARCHITECTURE.md is there."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    found = re.findall(r"`([\w/]+\.py)(?::([\w.]+))?`", text)
    assert len(found) > 20
    for file, name in found:
        paths = [
            p
            for p in (ROOT / file, ROOT / "src/isotone" / file, ROOT / "plugins/isotone_ottc" / file)
            if p.is_file()
        ]
        assert paths, file
        for part in name.split(".") if name else ():
            assert re.search(rf"(def|class) {part}\b", paths[0].read_text()), f"{file}:{name}"


def test_a_circle_is_seen() -> None:
    assert architecture.circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    with pytest.raises(ValueError, match="in circles: a, b"):
        architecture.levels({"a": {"b"}, "b": {"a"}})
    assert architecture.reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {
        "a": {"b"}, "b": {"c"}, "c": set(),
    }  # fmt: skip


def test_lattice_kernels_import_without_torch() -> None:
    """Those that take arrays as well as tensors; isotone-light has no torch."""
    code = """
        import sys
        sys.modules["torch"] = None
        import numpy as np
        import isotone.kernels.beam, isotone.kernels.posteriors, isotone.kernels.viterbi as viterbi
        rng = np.random.default_rng(0)
        lengths = np.array([5000]), np.array([300])
        paths, _ = viterbi.monotone_path(rng.normal(size=(1, 5000, 9)), rng.integers(9, size=(1, 300)), *lengths)
        assert type(paths) is np.ndarray and paths[0, -1] == 299
    """
    # enough cells for several threads
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, env=environment)
