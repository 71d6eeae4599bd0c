"""Keys of models: digests of all that the results of a model depend on."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch

from isotone.model.model import Model

_BYTES = torch.uint8


def key_of(model: Model) -> str:
    """Compute the SHA-256 of a model's configuration, thresholds, tokenizer and weights, whatever folder it is from."""
    digest = hashlib.sha256()
    about = {"heads": model.head_specs, "reading": asdict(model.decoding), "encoder": model.encoder.name}
    if model.check:
        about["check"] = asdict(model.check)
    digest.update(json.dumps(about, sort_keys=True, default=str).encode())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.encoder.save(folder / "encoder")
        model.tokenizer.save(folder / "tokenizer")
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            digest.update(path.relative_to(folder).as_posix().encode())
            digest.update(path.read_bytes())
    for name, value in sorted(model.state_dict().items()):
        tensor = value.detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(memoryview(tensor.flatten().view(_BYTES).numpy()) if tensor.numel() else b"")
    return digest.hexdigest()
