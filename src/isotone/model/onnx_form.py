"""Models as onnxruntime runs them: their files, and their description.

A form is a graph and a description. It is a folder of its own with a tokenizer, which ``isotone export --onnx`` writes,
or lies beside the weights of a model, which the graph then takes from there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isotone.files import digest_of
from isotone.model.decoding import ModelError

#: Names of the graph, and of the description of a form in its own folder and of one beside weights.
GRAPH, CONFIG, BESIDE = "model.onnx", "isotone.json", "onnx.json"

#: The format in the description.
FORMAT = "onnx 2"

#: Files of a model that its form is made of: all but what may lie beside them.
_OTHERS = frozenset({GRAPH, BESIDE, "README.md"})


def description_of(folder: Path) -> Mapping[str, Any]:
    """Read the description of a form.

    Raises:
        FileNotFoundError: there is no such folder.
        ModelError: the folder holds no form, or its description is damaged, or of another version.
    """
    if not folder.exists():
        raise FileNotFoundError(
            f"There is no folder {folder}: expected one that isotone export --onnx wrote."
        )
    path = folder / (BESIDE if (folder / BESIDE).is_file() else CONFIG)
    make = f"This command makes one: isotone export MODEL --onnx {folder.name or 'FOLDER'}."
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{folder} holds no model: it has no {CONFIG}. {make}") from error
    except ValueError as error:
        raise ModelError(f"{path} is damaged: {error}. {make}") from error
    found = config.get("format") if isinstance(config, dict) else None
    if found != FORMAT:
        raise ModelError(f"{folder} has the format {found!r}, and not {FORMAT!r}. {make}")
    return config


def has_form(folder: Path) -> bool:
    """Tell if a folder looks like a form, or like a model with one beside its weights."""
    return (folder / GRAPH).is_file()


def check_current(folder: Path, description: Mapping[str, Any]) -> None:
    """Check that a form beside weights was made of the files that are there.

    Raises:
        ModelError: they have changed since.
    """
    if "made_of" in description and description["made_of"] != digest_of_model(folder):
        raise ModelError(
            f"{folder} has changed since its form for onnxruntime was made. Make it again: "
            f"isotone export {folder} --onnx {folder}."
        )


def digest_of_model(folder: Path) -> str:
    """Compute the SHA-256 of the files of a model, but for its form and its card."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name not in _OTHERS:
            digest.update(f"{name} {digest_of(path)}\n".encode())
    return digest.hexdigest()
