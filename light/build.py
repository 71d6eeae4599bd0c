"""Build of isotone-light, from isotone's own source: ``python -m light.build OUT [--model FOLDER]``.

Writes a wheel to OUT. Its modules are those that alignment needs, found by their imports, with the names that they have
in :mod:`isotone_light`. Its model is the English pack, or the one of --model, with its form for onnxruntime.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

from light.closure import BARE, PACKAGES, ROOT, closure, imports, renamed

LIGHT = Path(__file__).resolve().parent
ENGLISH = ROOT / "plugins" / "isotone_english" / "model"

#: Kinds of plugins that alignment looks up by name, and those of them that are taken along.
KINDS = {"isotone.aligners": ("ctc", "segmental"), "isotone.formats": None}


def plugins() -> dict[str, dict[str, str]]:
    """Return the entry points that are taken along, by group: class by name."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        groups = tomllib.load(file)["project"]["entry-points"]
    return {
        group: {name: value for name, value in groups[group].items() if names is None or name in names}
        for group, names in KINDS.items()
    }


def modules() -> dict[str, Path]:
    """Find the modules of isotone that isotone-light needs."""
    own = [path.read_text(encoding="utf-8") for path in sorted((LIGHT / "isotone_light").glob("*.py"))]
    roots = {name for text in own for name in everywhere(text)}
    return closure(
        [*roots, *(value.split(":")[0] for group in plugins().values() for value in group.values())]
    )


def everywhere(text: str) -> Iterable[str]:
    """Iterate over what a source imports anywhere, in its functions too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(ast.unparse(node))


def stage(folder: Path, model: Path | None) -> None:
    """Write the source of the distribution to a folder, with a model or without."""
    target = folder / "isotone_light"
    shutil.copytree(LIGHT / "isotone_light", target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in target.glob("*.py"):
        path.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")
    for name, source in modules().items():
        first, *rest = name.split(".")
        path = folder.joinpath(*PACKAGES[first][1].split("."), *rest)
        path = path / "__init__.py" if source.name == "__init__.py" else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        if name in BARE:
            text = f'"""{(ast.get_docstring(ast.parse(text)) or name).splitlines()[0]}"""\n'
        path.write_text(renamed(text), encoding="utf-8")
    if model is not None:
        shutil.copytree(model, target / "english")
    for file in (
        LIGHT / "README.md",
        ROOT / "LICENSE",
        ROOT / "plugins" / "isotone_english" / "LICENSE.cmudict",
    ):
        shutil.copy(file, folder)
    project = [(LIGHT / "pyproject.toml").read_text(encoding="utf-8")]
    for group, found in entry_points().items():
        project += [f'[project.entry-points."{group}"]', *(f'{n} = "{v}"' for n, v in found.items()), ""]
    (folder / "pyproject.toml").write_text("\n".join(project), encoding="utf-8")


def entry_points() -> dict[str, dict[str, str]]:
    """Return the entry points of the distribution, by group."""
    return {
        _moved(group): {name: _moved(value) for name, value in found.items()}
        for group, found in plugins().items()
    }


def _moved(name: str) -> str:
    """Return the name of a module or a group in the distribution."""
    return re.sub(r"^\w+", lambda m: PACKAGES[m[0]][1], name)


def main() -> None:
    """Build the wheel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder of the wheel")
    parser.add_argument("--model", type=Path, default=ENGLISH, help="a model with its form for onnxruntime")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        stage(Path(name, "source"), options.model)
        options.out.mkdir(parents=True, exist_ok=True)
        command = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(options.out.resolve())]
        subprocess.run(
            [sys.executable, *command, str(Path(name, "source"))], check=True, stdout=subprocess.DEVNULL
        )
    print(f"Wheel: {sorted(options.out.glob('isotone_light-*.whl'))[-1]}")


if __name__ == "__main__":
    main()
