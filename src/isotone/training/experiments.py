"""The files of experiments: in their recipe's folder, or beside it in one that all recipes share."""

from __future__ import annotations

import sys
from pathlib import Path

from isotone.registry import nearest

#: The folder of experiments that all recipes beside it share.
MODELS = "models"


def shared(folder: Path) -> Path:
    """The folder of experiments beside a recipe's, which may be the current one."""
    return (folder if folder.name not in ("", "..") else folder.resolve()).parent / MODELS


def experiments(folder: Path) -> list[str]:
    """Names of a recipe's experiments and presets, those that all recipes share among them."""
    files = (p for place in (folder, shared(folder)) if place.is_dir() for p in place.glob("*.yaml"))
    return sorted({p.stem for p in files} - {"base"})


def near(path: Path) -> str:
    """Name what there is in place of an experiment: others of its folder, or recipes below the nearest one there is."""
    folder = path if path.is_dir() else path.parent
    if folder.is_dir() and (known := experiments(folder)):
        meant = "" if folder == path else nearest(path.stem, known)
        return f"{meant} There is: {', '.join(known)}."
    place = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    found = {file.parent for levels in ("*", "*/*") for file in place.glob(f"{levels}/base.yaml")}
    known = sorted(recipe.relative_to(place).as_posix() for recipe in found)
    meant = nearest(folder.relative_to(place).as_posix(), known)
    return f"{meant} Recipes in {place.absolute()}: {', '.join(known) or 'none'}."


def experiment_arguments(usage: str) -> tuple[str, list[str]]:
    """The experiment and the ``key=value`` overrides that a recipe's ``run.py`` was called with.

    Args:
        usage: What is printed for ``--help``.

    Raises:
        SystemExit: help was asked for (code 0), or there is no experiment (the usage, and code 1).
    """
    name, *overrides = sys.argv[1:] or [""]
    if name in ("-h", "--help"):
        print(usage)
        raise SystemExit(0)
    if not name or name.startswith("-"):
        raise SystemExit(usage)
    return name, overrides
