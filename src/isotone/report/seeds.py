"""Grouping of runs that differ only in their seed into one system."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from isotone.training.loader import flatten

#: Settings in which the runs of one system may differ.
INCIDENTAL = ("seed", "output", "card")


def settings(folder: Path) -> dict[str, Any]:
    """Read a run's configuration.

    Raises:
        FileNotFoundError: there is no configuration.
        ValueError: the file holds no configuration.
    """
    path = folder / "config.yaml"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is no run: {path} is not there.")
    config = OmegaConf.to_container(OmegaConf.load(path))
    if not isinstance(config, dict):
        raise ValueError(f"{path} is not a run's configuration.")
    return {str(k): v for k, v in config.items()}


def group_seeds(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Group run folders by system: runs whose configurations differ only in seed and output folder.

    The start (``init``) and the teacher may differ too, in the seed that ends their names: ``runs/ctc-0`` for seed 0,
    ``runs/ctc-1`` for seed 1. A system has the name of its first run's folder, without the number of the seed where
    there are several runs.
    """
    groups: dict[str, list[Path]] = {}
    for folder in dict.fromkeys(folders):
        key = _without_seed(settings(folder))
        groups.setdefault(json.dumps(key, sort_keys=True), []).append(folder)
    names = [_system_name(members) for members in groups.values()]
    if len(set(names)) < len(names):  # runs/a/ctc and runs/b/ctc
        names = [f"{members[0].resolve().parent.name}_{n}" for members, n in zip(groups.values(), names)]
    return {_unused(n, names[:i]): members for i, (n, members) in enumerate(zip(names, groups.values()))}


def spread(values: Sequence[float | None], digits: int = 1) -> str:
    """Write the cell of a table: the mean over a system's runs, and the standard deviation where there are several."""
    known = [v for v in values if v is not None]
    if len(known) < len(values) or not known:
        return "-"
    deviation = f" ± {np.std(known, ddof=1):.{digits}f}" if len(known) > 1 else ""
    return f"{np.mean(known):.{digits}f}{deviation}"


def mean_and_deviation(
    pairs: Sequence[tuple[float, float]],
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the means and the standard deviations (0 for one run) of pairs of numbers, one pair per run."""
    table = np.array(pairs, dtype=float)
    deviations = table.std(0, ddof=1) if len(table) > 1 else np.zeros(2)
    (x, y), (across, up) = table.mean(0).tolist(), deviations.tolist()
    return (x, y), (across, up)


def difference(config: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    """List an experiment's changes to another's configuration, as in ``heads.ottc.alpha=uniform``."""
    # having a teacher or a start is a difference; the folder that it lies in is none
    config, base = (
        {**c, **{k: Path(c[k]).name for k in ("teacher", "init") if c.get(k)}} for c in (config, base)
    )
    mine, theirs = (_leaves({k: v for k, v in c.items() if k not in INCIDENTAL}) for c in (config, base))
    changed = [f"{k}={v}" for k, v in mine.items() if k not in theirs or theirs[k] != v]
    return ", ".join([*changed, *(f"no {k}" for k in theirs if k not in mine)])


def _leaves(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys and values, without empty settings."""
    return {key: value for key, value in flatten(config) if value != {}}


def _without_seed(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in config.items() if k not in INCIDENTAL}
    for key in ("init", "teacher"):
        if isinstance(kept.get(key), str):
            kept[key] = re.sub(rf"[-_.]{config.get('seed')}/?$", "", kept[key])
    return kept


def _system_name(folders: Sequence[Path]) -> str:
    first = folders[0].resolve().name
    return re.sub(r"[-_.]*(seed)?[-_.]*\d+$", "", first) or first if len(folders) > 1 else first


def _unused(name: str, taken: Sequence[str]) -> str:
    return f"{name}_{taken.count(name) + 1}" if name in taken else name
