"""Pictures of audio: a spectrogram in decibels, and the outline of the wave."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import ShortTimeFFT
from scipy.signal.windows import gaussian

Array = NDArray[np.float64]


def mono(audio: NDArray[np.floating], sample_rate: int) -> Array:
    """Check audio for drawing, see :func:`checked`, and return it as float64."""
    samples = np.asarray(audio, dtype=np.float64)
    checked(samples, sample_rate)
    return samples


def checked(samples: NDArray[np.floating], sample_rate: int) -> None:
    """Check audio for drawing: ``(N,)`` finite samples.

    Raises:
        ValueError: another shape, no samples, samples that are not finite, or a sample rate that is not
            positive.
    """
    if samples.ndim != 1 or not len(samples):
        raise ValueError(
            f"A figure expects mono audio of shape (N,), N > 0; got {samples.shape}. Mix it down first."
        )
    if sample_rate <= 0:
        raise ValueError(f"A sample rate is a positive number of samples a second; got {sample_rate}.")
    if not np.isfinite(samples).all():
        raise ValueError(
            "A figure expects finite audio; got NaN or infinite samples. Load it with isotone.audio.load."
        )


def spectrogram(
    audio: Array, sample_rate: int, *, columns: int = 2000, max_hz: float = 8000.0, range_db: float = 60.0
) -> tuple[Array, Array, Array]:
    """Compute a wide-band log spectrogram: Gaussian windows (standard deviation 2.5 ms), pre-emphasised.

    Args:
        audio: ``(N,)`` samples.
        sample_rate: Samples per second.
        columns: About the greatest number of columns; the hop is 2 ms, or longer where that would give more.
        max_hz: Highest frequency shown (at most half the sample rate).
        range_db: Levels lower than the loudest one by more than this are shown as this low.

    Returns:
        Levels ``(F, C)`` in decibels below the loudest, from ``-range_db`` to 0, lowest frequency first; the
        centre of each column ``(C,)`` in seconds; the frequencies ``(F,)`` in Hz.
    """
    emphasised = np.append(audio[:1], audio[1:] - 0.97 * audio[:-1])
    sigma = max(1.0, 0.0025 * sample_rate)
    size = int(6 * sigma) | 1
    hop = max(1, round(0.002 * sample_rate), -(-len(audio) // columns))
    # a transform of at least 2**9 points gives enough rows that no steps are visible
    transform = ShortTimeFFT(
        gaussian(size, sigma), hop, sample_rate, mfft=1 << max(9, (size - 1).bit_length())
    )
    power = transform.spectrogram(np.pad(emphasised, (0, max(0, size - len(emphasised)))))
    frequencies = transform.f
    keep = frequencies <= max_hz
    times = transform.t(max(len(emphasised), size))
    inside = (times >= 0) & (times <= len(audio) / sample_rate)
    level = power[keep][:, inside]
    loudest = level.max(initial=0.0)
    if loudest <= 0:
        return np.full(level.shape, -range_db), times[inside], frequencies[keep]
    decibels = 10 * np.log10(np.maximum(level / loudest, 10 ** (-range_db / 10)))
    return decibels, times[inside], frequencies[keep]


def outline(audio: Array, columns: int) -> tuple[Array, Array, Array]:
    """Compute the wave's outline: lowest and highest sample of each column.

    Args:
        audio: ``(N,)`` samples.
        columns: Greatest number of columns; the last may hold fewer samples.

    Returns:
        Sample number at the middle of each column, lowest and highest values, each ``(C,)``.
    """
    size = -(-len(audio) // columns)
    first = np.arange(0, len(audio), size)
    last = np.minimum(first + size, len(audio))
    return (first + last - 1) / 2, np.minimum.reduceat(audio, first), np.maximum.reduceat(audio, first)
