"""Checkpoints: all state that the next step depends on, written whole or not at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

STATE = "state.json"


def save(accelerator: Any, folder: Path, state: dict[str, int], keep: int) -> Path:
    """Write ``folder/step-NNNNNN`` and remove older checkpoints beyond ``keep``.

    Weights are safetensors; optimiser, schedule and random states are in accelerate's format. All processes must call
    this.

    Args:
        accelerator: Holds the state to save.
        folder: The run's checkpoint folder.
        state: ``step``, ``epoch`` and ``batch``: the position in the data.
        keep: Number of checkpoints kept; 0: all.

    Raises:
        OSError: it cannot be written; checkpoints that were there are whole.
    """
    target = folder / f"step-{state['step']:06d}"
    temporary = folder / f".{target.name}.tmp"
    if accelerator.is_main_process:
        for left in folder.glob(".step-*.tmp"):  # left by a killed run or a full disk
            shutil.rmtree(left, ignore_errors=True)
        temporary.mkdir(parents=True)
    accelerator.wait_for_everyone()
    try:
        accelerator.save_state(str(temporary), safe_serialization=True)
    except (OSError, SafetensorError, RuntimeError) as error:  # torch has a RuntimeError for a full disk
        raise OSError(_not_written(folder, state["step"], error)) from error
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        # the state file comes last: a folder without it is no checkpoint, see find
        (temporary / STATE).write_text(json.dumps(state) + "\n")
        shutil.rmtree(target, ignore_errors=True)
        temporary.rename(target)
        for old in find(folder)[:-keep]:  # keep=0 keeps all: [:-0] is empty
            shutil.rmtree(old)
    accelerator.wait_for_everyone()
    return target


def _not_written(folder: Path, step: int, error: Exception) -> str:
    """Say that a checkpoint could not be written, with the free space of its disk."""
    free = shutil.disk_usage(folder).free / 1e6
    why = " ".join(str(error).split())
    return (
        f"The checkpoint of step {step} could not be written to {folder}, where {free:.0f} MB are free: {why}. Make "
        "room (train.keep=1 keeps one checkpoint); the same command goes on from the last whole one."
    )


def find(folder: Path) -> list[Path]:
    """List the complete checkpoints, oldest first."""
    found = (p for p in folder.glob("step-*") if (p / STATE).is_file())
    return sorted(found, key=lambda p: int(p.name.removeprefix("step-")))


def load(accelerator: Any, folder: Path) -> dict[str, int] | None:
    """Restore the newest checkpoint and return its state; None if there is none."""
    found = find(folder)
    if not found:
        return None
    accelerator.load_state(str(found[-1]))
    return json.loads((found[-1] / STATE).read_text())


def truncate_metrics(path: Path, step: int) -> None:
    """Drop the metrics recorded after ``step``, the checkpoint that training resumes from."""
    if not path.is_file():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (json.JSONDecodeError, KeyError):
            continue
    temporary = path.with_suffix(".tmp")
    temporary.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    temporary.replace(path)
