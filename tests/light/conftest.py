"""isotone-light as it is built: its source in a folder, with the English pack as ONNX where a test aligns."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from light import build

Run = Callable[..., subprocess.CompletedProcess]

#: Modules that isotone-light must do without.
ABSENT = ("torch", "torchaudio", "transformers", "scipy", "matplotlib", "datasets", "isotone")


def _staged(folder: Path, model: Path | None) -> Path:
    """Write the distribution's source, with the metadata of an installed one."""
    build.stage(folder, model)
    about = folder / "isotone_light-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: isotone-light\nVersion: 0.1.0\n")
    rows = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in found.items())
        for group, found in build.entry_points().items()
    ]
    (about / "entry_points.txt").write_text("\n".join(rows))
    return folder


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution without a model."""
    return _staged(tmp_path_factory.mktemp("bare"), None)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution with the English pack."""
    return _staged(tmp_path_factory.mktemp("built"), build.ENGLISH)


@pytest.fixture(scope="session")
def light(built: Path) -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of isotone-light in this process, beside isotone."""
    sys.path.insert(0, str(built))
    importlib.invalidate_caches()
    yield lambda name: importlib.import_module(f"isotone_light.{name}")
    sys.path.remove(str(built))


@pytest.fixture(scope="session")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run Python in a process of its own that cannot import torch, transformers or isotone."""
    folder = tmp_path_factory.mktemp("blocked")
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({ABSENT!r}))\n")

    def run(tree: Path, *arguments: str | Path, code: int | None = 0) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=500,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder, tree)))},
        )  # fmt: skip
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done

    return run
