"""Modules that some module needs, by the imports in their source, and their names in another package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Packages that are taken along: where their source is, and their name in the distribution.
PACKAGES = {
    "isotone": (ROOT / "src" / "isotone", "isotone_light.core"),
    "isotone_ctc": (ROOT / "plugins" / "isotone_ctc", "isotone_light.ctc"),
    "isotone_ottc": (ROOT / "plugins" / "isotone_ottc", "isotone_light.ottc"),
}

#: Packages of which only modules are taken along: their own names need more.
BARE = frozenset({"isotone", "isotone.batch", "isotone.quick"})

#: Modules that a module of ours imports when they are first used.
LAZY = {
    "isotone.interfaces": (
        "isotone.interfaces.alignment",
        "isotone.interfaces.files",
        "isotone.interfaces.packs",
    ),
    "isotone.tensors": ("isotone.tensors.arrays",),
    "isotone.text.ipa": ("isotone.text.espeak_library",),
    "isotone.text.pronounce": ("isotone.text.espeak",),
}

# Other packages that what is taken along may import at once; those that it imports in functions may be missing.
ALLOWED = frozenset({"filelock", "llvmlite", "numba", "numpy", "praatio", "safetensors", "soundfile", "soxr"})

_OURS = re.compile(r"^(\s*(?:from|import) )(isotone(?:_ctc|_ottc)?)(?=[. ])", re.M)


def source_of(name: str) -> Path | None:
    """Return the file of a module of :data:`PACKAGES`; None if there is none of that name."""
    first, *rest = name.split(".")
    if first not in PACKAGES:
        return None
    path = PACKAGES[first][0].joinpath(*rest)
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


def imports(text: str) -> Iterator[str]:
    """Iterate over what a source imports when it is imported itself: modules, or names in them."""
    yield from _imports(ast.parse(text).body)


def _imports(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imports(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef):
            for part in ("body", "orelse", "handlers", "finalbody"):
                for inner in getattr(node, part, []):
                    yield from _imports(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def closure(roots: Iterable[str]) -> dict[str, Path]:
    """Find all modules of ours that some modules need, with the packages above them: files by name.

    Raises:
        ImportError: one of them imports a package that is not in :data:`ALLOWED`.
    """
    found: dict[str, Path] = {}
    left = list(roots)
    while left:
        name = left.pop()
        first, *rest = name.split(".")
        if first not in PACKAGES:
            continue
        for depth in range(len(rest) + 1):
            module = ".".join((first, *rest[:depth]))
            file = source_of(module)
            if file is None or module in found:
                continue
            found[module] = file
            left += LAZY.get(module, ())
            if module not in BARE:
                left += (wanted := list(imports(file.read_text(encoding="utf-8"))))
                _check(module, wanted)
    return dict(sorted(found.items()))


def _check(module: str, wanted: Iterable[str]) -> None:
    import sys

    for name in wanted:
        first = name.split(".")[0]
        if first not in PACKAGES and first not in ALLOWED and first not in sys.stdlib_module_names:
            raise ImportError(f"{module} imports {name}, which isotone-light does not have.")


def renamed(text: str) -> str:
    """Return a source for the distribution: its imports name the modules there."""
    text = _OURS.sub(lambda m: m[1] + PACKAGES[m[2]][1], text)
    # groups of entry points, and the classes that plugins are subclasses of
    return re.sub(r'"isotone\.(?=\w+"|interfaces:)(?!json")', '"isotone_light.core.', text)
