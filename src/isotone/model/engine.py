"""The engine that runs a model: onnxruntime, which starts in a fraction of torch's time, or torch.

This is the one place where the engine is chosen. Both give the same alignments, to less than a nanosecond.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotone.model.decoding import ModelError
from isotone.model.fetch import model_folder
from isotone.model.onnx_form import check_current, description_of, has_form
from isotone.registries import aligners

if TYPE_CHECKING:
    from isotone.model.model import Model
    from isotone.model.onnx_model import OnnxModel

#: The engines. ``auto`` is onnxruntime where it can do the work, else torch.
ENGINES = ("auto", "onnx", "torch")


@dataclass(frozen=True)
class Engine:
    """A chosen engine.

    Attributes:
        name: ``onnx`` or ``torch``.
        reason: The reason why it is not onnxruntime; empty where it is.
    """

    name: str
    reason: str = ""

    def load(self, source: str | Path, language: str = "") -> Model | OnnxModel:
        """Load a model; raises as :meth:`isotone.model.Model.load`."""
        if self.name == "onnx":
            from isotone.model.onnx_model import OnnxModel

            return OnnxModel(model_folder(source), language)
        from isotone.model import Model

        return Model.load(source, language)


def engine_for(
    source: str | Path,
    wanted: str = "auto",
    *,
    device: str = "cpu",
    aligner: str | Mapping[str, Any] | None = None,
) -> Engine:
    """Choose the engine that aligns with a model.

    Args:
        source: Folder of the model, name of a pack, or hub id.
        wanted: One of :data:`ENGINES`.
        device: Device of the model.
        aligner: Aligner in place of the model's own.

    Raises:
        ValueError: there is no such engine, or ``onnx`` is wanted and cannot do the work; the message says why.
        LookupError: there is no such aligner.
    """
    if wanted not in ENGINES:
        raise ValueError(f"An engine is {', '.join(ENGINES[:-1])} or {ENGINES[-1]}; got {wanted!r}.")
    if wanted == "torch":
        return Engine("torch", "torch is asked for")
    reason = _obstacle(model_folder(source), device, aligner)
    if reason and wanted == "onnx":
        raise ValueError(f"The engine onnx cannot align with {source}: {reason}.")
    return Engine("torch", reason) if reason else Engine("onnx")


def _obstacle(folder: Path, device: str, aligner: str | Mapping[str, Any] | None) -> str:
    """Return the reason why onnxruntime cannot do the work; empty where it can."""
    if device != "cpu":
        return f"the device is {device}, and onnxruntime has the CPU here"
    if not has_form(folder):
        return f"the model has no form for it (isotone export MODEL --onnx {folder} makes one)"
    try:
        description = description_of(folder)
        check_current(folder, description)
    except ModelError as error:
        return str(error).rstrip(".")
    if importlib.util.find_spec("onnxruntime") is None:
        return "onnxruntime is not installed"
    reading = description["reading"]
    for part in filter(None, (aligner or reading["aligner"], reading["guide_aligner"])):
        if not aligners.create(part).takes_arrays:
            return f"the aligner {part if isinstance(part, str) else part['name']} needs torch"
    return ""
