"""Interfaces of all plugins: subclass one, register it by an entry point, check it by :mod:`isotone.testing`.

Names are imported at their first use: formats and model packs need no torch.
"""

from typing import TYPE_CHECKING

from isotone.late import late

if TYPE_CHECKING:
    from isotone.interfaces.alignment import Aligner, Decoder, Relaxation, Warper
    from isotone.interfaces.files import Corpus, Format
    from isotone.interfaces.packs import ModelPack
    from isotone.interfaces.search import Index, Searcher, SequenceIndex
    from isotone.interfaces.training import Encoder, Head, Loss, Scheduled, Statistics

__all__ = [
    "Aligner", "Corpus", "Decoder", "Encoder", "Format", "Head", "Index", "Loss", "ModelPack", "Relaxation",
    "Scheduled", "Searcher", "SequenceIndex", "Statistics", "Warper",
]  # fmt: skip

__getattr__ = late(
    __name__,
    {
        "alignment": ("Aligner", "Decoder", "Relaxation", "Warper"),
        "files": ("Corpus", "Format"),
        "packs": ("ModelPack",),
        "search": ("Index", "Searcher", "SequenceIndex"),
        "training": ("Encoder", "Head", "Loss", "Scheduled", "Statistics"),
    },
)
