"""The files of experiments: in their recipe's folder, or beside it in one that several recipes share."""

from __future__ import annotations

import sys
from pathlib import Path

from isotone.registry import nearest

#: Name of the folder of experiments that the recipes of speech beside it share.
MODELS = "models"


def shared_folder(folder: Path, name: str = MODELS) -> Path:
    """The folder of shared experiments beside a recipe's folder, which may be the current one."""
    return (folder if folder.name not in ("", "..") else folder.resolve()).parent / name


def experiments(folder: Path, shared: str | None = MODELS) -> list[str]:
    """Names of a recipe's experiments and presets.

    Args:
        folder: The recipe's.
        shared: Folder beside it whose experiments count too. None: there is none.
    """
    folders = [folder] if shared is None else [folder, shared_folder(folder, shared)]
    return sorted({path.stem for f in folders if f.is_dir() for path in f.glob("*.yaml")} - {"base"})


def alternatives(path: Path, shared: str | None = MODELS) -> str:
    """Name the existing experiments of a missing one's folder, or the recipes below its nearest existing parent."""
    folder = path if path.is_dir() else path.parent
    if folder.is_dir() and (known := experiments(folder, shared)):
        meant = "" if folder == path else nearest(path.stem, known)
        return f"{meant} There is: {', '.join(known)}."
    root = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    found = {file.parent for levels in ("*", "*/*") for file in root.glob(f"{levels}/base.yaml")}
    known = sorted(recipe.relative_to(root).as_posix() for recipe in found)
    meant = nearest(folder.relative_to(root).as_posix(), known)
    return f"{meant} Recipes in {root.absolute()}: {', '.join(known) or 'none'}."


def experiment_arguments(usage: str) -> tuple[str, list[str]]:
    """Return the experiment and the ``key=value`` overrides that a recipe's ``run.py`` was called with.

    Args:
        usage: Printed for ``--help``.

    Raises:
        SystemExit: help was requested (code 0), or there is no experiment (the usage, and code 1).
    """
    name, *overrides = sys.argv[1:] or [""]
    if name in ("-h", "--help"):
        print(usage)
        raise SystemExit(0)
    if not name or name.startswith("-"):
        raise SystemExit(usage)
    return name, overrides
