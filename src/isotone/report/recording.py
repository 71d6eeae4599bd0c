"""The recording of a viewer: its sound in chunks, its outline and its levels, as texts that a page can hold."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray
from scipy.signal import get_window

from isotone.report.spectrum import checked

Samples = NDArray[np.floating]

#: Seconds of a chunk of sound: long enough to be played without haste, short enough to be decoded at once.
CHUNK_S = 20.0
#: Longest recording, in seconds, whose sound is kept as it is (FLAC); longer ones lose what is hardly heard (Vorbis).
EXACT_S = 600.0
#: Points of the outline per second, and columns of levels per second with their rows, up to ``MAX_HZ``.
PEAKS, LEVELS, ROWS = 100, 10, 48
MAX_HZ = 8000.0
#: Decibels below the loudest level that are shown.
RANGE_DB = 60.0
#: Standard deviation of the Gaussian window of spectrograms in seconds: wide bands, as Praat shows speech.
SIGMA_S = 0.0025


def packed(samples: Samples, sample_rate: int) -> dict[str, Any]:
    """Pack what a viewer draws of a recording, before any sound is decoded.

    Args:
        samples: ``(N,)`` mono, in [-1, 1].
        sample_rate: Samples per second.

    Returns:
        Plain values for the viewer's script.
    """
    checked(samples, sample_rate)
    levels, loudest = _levels(samples, sample_rate)
    return {
        "duration": len(samples) / sample_rate, "rate": int(sample_rate), "chunk": CHUNK_S,
        "peak": float(np.abs(samples).max()) or 1.0, "peaks": _text(_outline(samples, sample_rate)),
        "peaksPerSecond": PEAKS, "levels": _text(levels), "levelsPerSecond": LEVELS, "levelRows": ROWS,
        "loudest": loudest, "range": RANGE_DB, "maxHz": min(MAX_HZ, sample_rate / 2), "sigma": SIGMA_S,
    }  # fmt: skip


def chunks(samples: Samples, sample_rate: int) -> Iterator[str]:
    """Encode a recording chunk by chunk, in base64; samples outside of [-1, 1] are clipped.

    Every chunk is a whole file: FLAC, or Ogg Vorbis where the recording is longer than :data:`EXACT_S`. Both keep the
    number of samples, so that chunks join without a gap.
    """
    exact = len(samples) <= EXACT_S * sample_rate
    kind = {"format": "FLAC", "subtype": "PCM_16"} if exact else {"format": "OGG", "subtype": "VORBIS"}
    size = round(CHUNK_S * sample_rate)
    for first in range(0, len(samples), size):
        buffer = io.BytesIO()
        part = np.clip(samples[first : first + size], -1.0, 1.0)
        soundfile.write(buffer, part, int(sample_rate), **kind)
        yield base64.b64encode(buffer.getvalue()).decode("ascii")


def _outline(samples: Samples, sample_rate: int) -> NDArray[np.int8]:
    """Return the lowest and highest sample of every hundredth of a second, as shares of the greatest: ``(2 C,)``."""
    first = np.arange(-(-len(samples) * PEAKS // sample_rate)) * sample_rate // PEAKS
    pairs = np.stack([np.minimum.reduceat(samples, first), np.maximum.reduceat(samples, first)], 1)
    peak = float(np.abs(samples).max()) or 1.0
    return np.round(127 * pairs / peak).astype(np.int8).ravel()


def _levels(samples: Samples, sample_rate: int) -> tuple[NDArray[np.uint8], float]:
    """Compute a spectrogram for wide views, in steps of ``RANGE_DB / 255`` decibels.

    Returns:
        Levels ``(C * ROWS,)``, column by column and the lowest frequency first, and the loudest power in decibels.
    """
    sigma = max(1.0, SIGMA_S * sample_rate)
    size = int(6 * sigma) | 1
    transform = 1 << max(9, (size - 1).bit_length())
    bins = int(min(MAX_HZ, sample_rate / 2) / sample_rate * transform)
    edges = np.arange(ROWS) * bins // ROWS
    window = get_window(("gaussian", sigma), size, fftbins=False).astype(np.float32)
    per_column = max(1, sample_rate // (LEVELS * 5))  # five spectra per column
    columns = max(1, len(samples) * LEVELS // sample_rate)
    padded = np.concatenate([samples, np.zeros(per_column * 5 + size, samples.dtype)]).astype(np.float32)
    padded[1:] -= 0.97 * padded[:-1].copy()
    powers = np.empty((columns, ROWS), np.float32)
    for first in range(0, columns, 600):  # a minute at a time: an hour of spectra would fill the memory
        own = np.arange(first, min(first + 600, columns))
        starts = (own[:, None] * sample_rate // LEVELS + np.arange(5) * per_column).ravel()
        frames = np.lib.stride_tricks.sliding_window_view(padded, size)[starts] * window
        power = np.square(np.abs(np.fft.rfft(frames, transform)[:, :bins]))
        rows = np.add.reduceat(power, edges, 1) / np.diff([*edges, bins])
        powers[own] = rows.reshape(len(own), 5, ROWS).mean(1)
    decibels = 10 * np.log10(np.maximum(powers, 1e-12))
    loudest = float(decibels.max())
    shares = np.clip(1 + (decibels - loudest) / RANGE_DB, 0, 1) if powers.any() else np.zeros_like(powers)
    return np.round(255 * shares).astype(np.uint8).ravel(), loudest


def _text(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode("ascii")
