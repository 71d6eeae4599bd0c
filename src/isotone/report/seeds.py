"""Runs that differ in their seed alone are one system."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from isotone.training.loader import flatten

#: What makes no other system of a run.
INCIDENTAL = ("seed", "output", "card")


def settings(folder: Path) -> dict[str, Any]:
    """A run's configuration.

    Raises:
        FileNotFoundError: it has none.
        ValueError: it is none.
    """
    path = folder / "config.yaml"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is no run: {path} is not there.")
    config = OmegaConf.to_container(OmegaConf.load(path))
    if not isinstance(config, dict):
        raise ValueError(f"{path} is not a run's configuration.")
    return {str(k): v for k, v in config.items()}


def group_seeds(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Run folders by system: those whose configurations differ in seed and output folder alone.

    So do runs whose start (``init``) or teacher differs in the seed that ends its name: ``runs/ctc-0`` for seed 0,
    ``runs/ctc-1`` for seed 1. Systems are called by their first run's folder, without its seed's number where there are
    several.
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
    """What a table shows of a system's runs: the mean, and the standard deviation over several."""
    known = [v for v in values if v is not None]
    if len(known) < len(values) or not known:
        return "-"
    deviation = f" ± {np.std(known, ddof=1):.{digits}f}" if len(known) > 1 else ""
    return f"{np.mean(known):.{digits}f}{deviation}"


def mean_and_deviation(
    pairs: Sequence[tuple[float, float]],
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of a pair of numbers a run, the means, and the standard deviations (0 of one run)."""
    table = np.array(pairs, dtype=float)
    deviations = table.std(0, ddof=1) if len(table) > 1 else np.zeros(2)
    (x, y), (across, up) = table.mean(0).tolist(), deviations.tolist()
    return (x, y), (across, up)


def difference(config: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    """What an experiment changes in another's configuration: ``heads.ottc.alpha=uniform``."""
    # where another run lies is no difference: that there is one is
    config, base = (
        {**c, **{k: Path(c[k]).name for k in ("teacher", "init") if c.get(k)}} for c in (config, base)
    )
    mine, theirs = (_leaves({k: v for k, v in c.items() if k not in INCIDENTAL}) for c in (config, base))
    changed = [f"{k}={v}" for k, v in mine.items() if k not in theirs or theirs[k] != v]
    return ", ".join([*changed, *(f"no {k}" for k in theirs if k not in mine)])


def _leaves(config: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys and values; a setting without options is none."""
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
