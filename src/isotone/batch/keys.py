"""Keys of results: digests of all that a result depends on. Equal keys mean equal results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import isotone
from isotone.model.onnx_model import OnnxModel

if TYPE_CHECKING:
    from isotone.model import Model


def model_key(model: Model | OnnxModel) -> str:
    """Return the key of a model, which is the same for a model and its form for onnxruntime."""
    if isinstance(model, OnnxModel):
        return model.key
    from isotone.model.key import key_of

    return key_of(model)


def result_key(model: str, inputs: Mapping[str, str], options: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of a model's key, the inputs' digests by role, the options, and isotone's version."""
    whole = {"model": model, "inputs": inputs, "options": options, "version": isotone.__version__}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()
