"""The folder of a run: whether it is free for a run, or holds the same one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from yaml import YAMLError  # type: ignore[import-untyped]

from isotone.files import atomic_write, check_folder
from isotone.training import checkpoint
from isotone.training.config import Recipe, RecipeError
from isotone.training.loader import differences, to_yaml

CONFIG = "config.yaml"

#: What a run replaces in its folder; to ``logs`` it adds, and the rest is left alone.
NAMES = (
    CONFIG, "corpus.json", "manifests", "tokenizer", "metrics.jsonl", "checkpoints", "snapshots", "model",
    "skipped.jsonl", "teacher_paths.npz", "alignments", "forced", "reference", "predictions.jsonl", "result.json",
    "tests",
)  # fmt: skip


def check_free(folder: Path, recipe: Recipe) -> None:
    """Check that a run can write to a folder, before anything is written.

    Args:
        folder: Run folder; it need not exist.
        recipe: Configuration of the run.

    Raises:
        FileExistsError: the folder is a file, or holds files that no run wrote and that a run would replace.
        OSError: the folder cannot be written.
        RecipeError: it holds a run with other settings.
    """
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: a run needs a folder. Choose another one with output=...")
    check_folder(folder)
    config = folder / CONFIG
    if not _is_recipe(config):
        taken = [name for name in NAMES if (folder / name).exists()]
        if taken:
            some = ", ".join(taken[:3]) + (" ..." if taken[3:] else "")
            raise FileExistsError(
                f"{folder} is no run's folder and holds {some}, which a run would replace. "
                "Choose another folder with output=..., or move them away."
            )
        return
    # a run without checkpoints may be overwritten
    if checkpoint.find(folder / "checkpoints") and (changed := differences(config, recipe)):
        more = f"; and {len(changed) - 5} more" if len(changed) > 5 else ""
        raise RecipeError(
            f"{folder} holds a run with other settings: {'; '.join(changed[:5])}{more}. "
            "Choose another folder with output=..., or remove this one."
        )


def claim(folder: Path, recipe: Recipe) -> None:
    """Write the resolved configuration, by which a folder is a run's."""
    with atomic_write(folder / CONFIG) as file:
        file.write(to_yaml(recipe))


def _is_recipe(path: Path) -> bool:
    """Tell if a file is the configuration that a run wrote."""
    try:
        found: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    except (OSError, ValueError, YAMLError):
        return False
    return isinstance(found, Mapping) and {"data", "encoder", "heads", "objective", "train"} <= found.keys()
