"""OPAS models as folders: a configuration and weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from isotone.files import atomic_folder
from isotone_opas.embed import Embed

CONFIG, WEIGHTS = "opas.json", "model.safetensors"
_FORMAT = 1


class OPASError(ValueError):
    """A folder is no OPAS model, or its parts do not fit together; the message says which."""


def save_model(model: nn.Module, embed: Embed, config: dict[str, Any], folder: Path | str) -> None:
    """Write a model's configuration and weights, whole or not at all.

    Raises:
        OPASError: a part was given as an object, so it has no configuration to write.
    """
    if missing := [name for name in ("embed", "penalty", "relaxation") if config[name] is None]:
        raise OPASError(
            f"The model's {missing[0]} was given as an object; to save a model, give a name or a mapping."
        )
    with atomic_folder(folder) as target:
        config = {**config, "embed": {**config["embed"], **embed.save_parts(target)}}
        text = json.dumps({"format": _FORMAT, **config}, indent=2, ensure_ascii=False)
        (target / CONFIG).write_text(text + "\n", encoding="utf-8")
        state = {k: v.detach().cpu().contiguous().clone() for k, v in model.state_dict().items()}
        save_file(state, target / WEIGHTS, metadata={"format": "pt"})


def read_config(folder: Path) -> dict[str, Any]:
    """Read the configuration that :func:`save_model` wrote.

    Raises:
        OPASError: there is none that can be read.
    """
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OPASError(f"{folder} holds no OPAS model that can be read: {error}") from error
    if not isinstance(config, dict) or config.pop("format", None) != _FORMAT:
        raise OPASError(f"{folder / CONFIG}: expected format {_FORMAT}.")
    if "encoder" in config["embed"]:
        config["embed"]["encoder"]["source"] = str(folder / "encoder")
    return config


def read_weights(model: nn.Module, folder: Path) -> None:
    """Read the weights that :func:`save_model` wrote into a model of the same configuration.

    Raises:
        OPASError: they are missing or do not fit.
    """
    try:
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise OPASError(f"{folder / WEIGHTS} is missing, damaged or of another model: {error}") from error
