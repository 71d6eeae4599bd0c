"""Interfaces of all plugins: subclass one, register it by an entry point, check it by :mod:`isotone.testing`."""

from isotone.interfaces.alignment import Aligner, Decoder, Relaxation, Warper
from isotone.interfaces.files import Corpus, Format
from isotone.interfaces.search import Index, Searcher, SequenceIndex
from isotone.interfaces.training import Encoder, Head, Loss, Scheduled, Statistics

__all__ = [
    "Aligner", "Corpus", "Decoder", "Encoder", "Format", "Head", "Index", "Loss", "Relaxation", "Scheduled",
    "Searcher", "SequenceIndex", "Statistics", "Warper",
]  # fmt: skip
