"""Laws of model packs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isotone.interfaces import ModelPack
from isotone.model import Model
from isotone.model.fetch import model_folder
from isotone.pipeline import Pipeline
from isotone.registries import packs
from isotone.testing.laws import require
from isotone.text.languages import iso_code

# The stated size may differ from the folder's by this share, or by this many MB where that is more.
_SIZE_SHARE, _SIZE_MB = 0.05, 0.1


def check_pack(pack: ModelPack, *, text: str = "yes and no") -> None:
    """Check a model pack: its attributes, its size, and that its model loads and aligns noise.

    Args:
        pack: The pack.
        text: A few words that the model can read.
    """
    for name in ("name", "title", "licence", "trained_on"):
        value = getattr(pack, name, None)
        require(isinstance(value, str) and bool(value.strip()), f"{name} is a text; got {value!r}")
    if pack.name in packs.names():
        known = packs.get(pack.name)
        require(known is type(pack), f"the entry point {pack.name!r} names this class; it names {known}")
    languages = getattr(pack, "languages", None)
    require(isinstance(languages, tuple) and bool(languages), f"languages are a tuple; got {languages!r}")
    wrong = [language for language in pack.languages if not iso_code(language)]
    require(not wrong, f"languages are ISO 639 codes; got {wrong}")
    folder = pack.folder()
    _check_size(pack, folder)
    require(model_folder(folder) == folder, f"{folder} is a model folder, not a run folder")
    for language in pack.languages:
        _check_alignment(Model.load(folder, language), text)


def _check_size(pack: ModelPack, folder: Path) -> None:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    off = abs(size - pack.size_mb)
    require(
        off <= max(_SIZE_MB, _SIZE_SHARE * size),
        f"size_mb is the size of the folder, {size:.2f}; got {pack.size_mb}",
    )


def _check_alignment(model: Model, text: str) -> None:
    """Align two seconds of noise with a text."""
    pipeline = Pipeline(model)
    samples = np.random.default_rng(0).normal(0, 0.1, 2 * model.encoder.sample_rate).astype(np.float32)
    alignment = pipeline.align("noise", samples, pipeline.encode(text)).alignment
    words = alignment.tier("words").labels
    require(
        words == text.split(), f"the words of an alignment are those of its text, {text.split()}; got {words}"
    )
    ends = [tier.segments[-1].end for tier in alignment.tiers if tier.segments]
    require(
        all(0 < end <= 2 + 1e-6 for end in ends), f"segments lie inside of the audio, 2 s; they end at {ends}"
    )
