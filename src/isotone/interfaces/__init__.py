"""Interfaces of all plugins: subclass one, register it by an entry point, check it by :mod:`isotone.testing`.

Names are imported at their first use: formats and model packs need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.interfaces.alignment import Aligner, Decoder, Relaxation, Warper
    from isotone.interfaces.files import Corpus, Format
    from isotone.interfaces.packs import ModelPack
    from isotone.interfaces.search import Index, Searcher, SequenceIndex
    from isotone.interfaces.training import Encoder, Head, Loss, Scheduled, Statistics

_MODULES = {
    "alignment": ("Aligner", "Decoder", "Relaxation", "Warper"),
    "files": ("Corpus", "Format"),
    "packs": ("ModelPack",),
    "search": ("Index", "Searcher", "SequenceIndex"),
    "training": ("Encoder", "Head", "Loss", "Scheduled", "Statistics"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Aligner", "Corpus", "Decoder", "Encoder", "Format", "Head", "Index", "Loss", "ModelPack", "Relaxation",
    "Scheduled", "Searcher", "SequenceIndex", "Statistics", "Warper",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
