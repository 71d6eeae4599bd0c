"""Elements and sets on disk, so that experiments on the same data share them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import torch
from isotone_opas.elements import Elements
from safetensors.torch import load_file, save

from isotone.files import atomic_write
from ordered_search.sets import SPLITS, SearchSet, build_elements, prepare
from ordered_search.settings import Data
from ordered_search.sources import audio_files

# Raise this number when the same configuration gives other data.
_FORMAT = 2
_HALVES = ("queries", "corpus")


def load_or_prepare(
    data: Data, folder: Path | None, fitted: Elements | None = None
) -> tuple[Elements, dict[str, SearchSet]]:
    """Load what :func:`ordered_search.sets.prepare` made of the same data before, or prepare it.

    Args:
        data: The configuration's ``data``.
        folder: Folder of the files, with elements in half precision; None to keep none.
        fitted: Elements of another run; nothing is kept with them.
    """
    if folder is None or fitted is not None:
        return prepare(data, fitted)
    path = folder / f"{data.kind}-{_digest(data)}.safetensors"
    if not path.is_file():
        elements, sets = prepare(data)
        state = {f"elements.{k}": v for k, v in elements.state_dict().items()}
        for name, part in sets.items():
            values = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
            values |= {key: values[key].half() for key in _HALVES}
            state |= {f"{name}.{key}": value.contiguous() for key, value in values.items()}
        with atomic_write(path, "wb") as file:
            file.write(save(state))
    return _read(load_file(path), data)


def _read(state: dict[str, torch.Tensor], data: Data) -> tuple[Elements, dict[str, SearchSet]]:
    def part(name: str) -> dict[str, torch.Tensor]:
        found = {k.removeprefix(f"{name}."): v for k, v in state.items() if k.startswith(f"{name}.")}
        return {k: v.float() if v.dtype == torch.float16 else v for k, v in found.items()}

    elements = build_elements(data)
    elements.load_state_dict(part("elements"))
    return elements, {name: SearchSet(**part(name)) for name in SPLITS}


def _digest(data: Data) -> str:
    """Hash the configuration, and names, sizes and times of the audio files that it reads."""
    files = []
    if data.source == "folder":
        files = [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in audio_files(data)]
    text = json.dumps([_FORMAT, dataclasses.asdict(data), files], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
