"""Configuration: base.yaml, an experiment's difference, presets, and what the command line says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from isotone.registry import nearest

HERE = Path(__file__).parents[1]
EXPERIMENTS = sorted(path.stem for path in HERE.glob("*.yaml") if path.stem != "base")
PRESETS = sorted(path.stem for path in (HERE / "presets").glob("*.yaml"))
# Any keys may be here.
_FREE = ("evaluate.baselines", "hashing.training", "hashing.options", "pretrain.contrast")
# Parts that are plugins: another name brings its own options.
_PARTS = ("model.embed", "model.penalty", "model.relaxation", "pretrain.contrast.pairwise")


def load(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """An experiment's configuration; ``data=PRESET`` and ``size=PRESET`` change what it starts from.

    Raises:
        ValueError: no such experiment, preset or key, or an override that is not ``key=value``.
    """
    if name not in EXPERIMENTS:
        raise ValueError(
            f"No experiment {name!r}.{nearest(name, EXPERIMENTS)} There is: {', '.join(EXPERIMENTS)}."
        )
    experiment = OmegaConf.load(HERE / f"{name}.yaml")
    presets, plain = [], []
    for item in overrides:
        key, separator, value = item.partition("=")
        if not separator:
            raise ValueError(f"An override is key=value; got {item!r}.")
        if key not in ("data", "size"):
            plain.append(item)
        elif value not in PRESETS:
            raise ValueError(f"No preset {value!r}.{nearest(value, PRESETS)} There is: {', '.join(PRESETS)}.")
        else:
            presets.append(OmegaConf.load(HERE / "presets" / f"{value}.yaml"))
    config: Any = OmegaConf.load(HERE / "base.yaml")
    try:
        for layer in (*presets, experiment, OmegaConf.from_dotlist(plain)):
            config = _merge(config, layer)
    except OmegaConfBaseException as error:
        raise ValueError(f"{name}: {' '.join(str(error).split())}") from None
    needed = sorted(OmegaConf.missing_keys(experiment))
    if missing := [key for key in needed if OmegaConf.select(config, key) is None]:
        raise ValueError(f"{name}: no value for {', '.join(missing)}. Give it as {missing[0]}=VALUE.")
    if config.output is None:
        config.output = f"runs/music_speech/{config.data.kind}/{name}"
    return config


def _merge(config: Any, change: Any) -> DictConfig:
    """Merge; keys that are not there are errors, but for the options of parts, which a new name replaces whole."""
    OmegaConf.set_struct(config, True)
    for free in _FREE:
        OmegaConf.set_struct(OmegaConf.select(config, free), False)
    for part in _PARTS:
        old, new = OmegaConf.select(config, part), OmegaConf.select(change, part)
        if new is not None and new.get("name", old.name) != old.name:
            OmegaConf.update(config, part, {}, merge=False)
        OmegaConf.set_struct(OmegaConf.select(config, part), False)
    merged = OmegaConf.merge(config, change)
    if not isinstance(merged, DictConfig):
        raise ValueError("Expected a file of names and values.")
    return merged


def plain(config: Any) -> dict[str, Any]:
    """A part of a configuration as a plain dictionary."""
    values = OmegaConf.to_container(config, resolve=True)
    if not isinstance(values, dict):
        raise ValueError(f"Expected names and values; got {values}.")
    return {str(key): value for key, value in values.items()}
