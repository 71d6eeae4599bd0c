"""Audio files: read as mono float32, by libsndfile or a decoder, at any rate."""

from isotone.audio.reading import (
    AUDIO_SUFFIXES,
    DECODED_SUFFIXES,
    AudioInfo,
    info,
    is_audio,
    load,
    without_copies,
)
from isotone.audio.source import AudioError

__all__ = [
    "AUDIO_SUFFIXES", "DECODED_SUFFIXES", "AudioError", "AudioInfo", "info", "is_audio", "load",
    "without_copies",
]  # fmt: skip
