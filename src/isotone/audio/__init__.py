"""Audio as mono float32 at any rate: files by libsndfile or a decoder, and arrays."""

from isotone.audio.arrays import from_array
from isotone.audio.reading import (
    AUDIO_SUFFIXES,
    DECODED_SUFFIXES,
    AudioInfo,
    channels_of,
    info,
    is_audio,
    load,
    store,
    without_copies,
)
from isotone.audio.source import AudioError
from isotone.audio.stored import Samples, Stored, blocks

__all__ = [
    "AUDIO_SUFFIXES", "DECODED_SUFFIXES", "AudioError", "AudioInfo", "Samples", "Stored", "blocks", "channels_of",
    "from_array", "info", "is_audio", "load", "store", "without_copies",
]  # fmt: skip
