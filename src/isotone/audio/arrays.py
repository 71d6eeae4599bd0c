"""Audio in memory: arrays of any shape, kind of number and rate, as mono float32 at the requested rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import soxr
from numpy.typing import ArrayLike, NDArray

from isotone.audio.mixing import Mixer
from isotone.audio.source import AudioError, unusable


def from_array(audio: ArrayLike, rate: float, sample_rate: float = 16_000) -> NDArray[np.float32]:
    """Turn samples in memory into mono at one sample rate, as :func:`isotone.audio.load` gives them.

    Args:
        audio: ``(N,)`` samples, or ``(N, C)`` or ``(C, N)`` with channels; the shorter axis holds the channels. Floats
            have full scale at [-1, 1], whole numbers at the limits of their type. Tensors on the CPU are taken as well.
        rate: Hz of ``audio``.
        sample_rate: Hz to resample to (soxr, high quality).

    Returns:
        ``(M,)`` float32; channels are averaged, see :mod:`isotone.audio.mixing`.

    Raises:
        AudioError: another shape or kind of number, no samples, samples that are not finite, or a rate that is not
            positive.
    """
    if not (np.isfinite(rate) and rate > 0):
        raise AudioError(f"A sample rate is a positive number of samples per second; got {rate!r}.")
    samples = _mono(_scaled(np.asarray(audio)))
    if not len(samples):
        raise AudioError("The audio has no samples.")
    broken = unusable(samples)
    if len(broken):
        raise AudioError(
            f"{len(broken)} samples are not finite numbers of up to 1e15, the first at {broken[0] / rate:.4f} s. Find "
            "what made them (a division by zero?)."
        )
    if rate != sample_rate:
        samples = soxr.resample(samples, rate, sample_rate, quality="HQ")
    if not len(samples):
        raise AudioError(f"The audio is too short for a sample at {sample_rate} Hz.")
    return np.ascontiguousarray(samples, np.float32)


def _scaled(audio: NDArray[Any]) -> NDArray[np.floating]:
    """Scale whole numbers to [-1, 1]; unsigned ones have their zero in the middle, as in WAV files of 8 bits."""
    kind = audio.dtype.kind
    if kind == "f":
        return audio
    if kind not in "iu":
        raise AudioError(f"Audio is an array of numbers; got {audio.dtype} of shape {audio.shape}.")
    limits = np.iinfo(audio.dtype)
    middle = (float(limits.max) + float(limits.min) + 1) / 2
    return (audio.astype(np.float64) - middle) / (float(limits.max) - middle + 1)


def _mono(audio: NDArray[np.floating]) -> NDArray[np.floating]:
    if audio.ndim == 1 or (audio.ndim == 2 and not audio.size):
        return audio.ravel()
    if audio.ndim != 2 or (audio.shape[0] == audio.shape[1] > 1):
        raise AudioError(
            f"Audio has the shape (N,), (N, C) or (C, N), with fewer channels than samples; got {audio.shape}."
        )
    block = audio if audio.shape[1] < audio.shape[0] else audio.T
    return Mixer("The audio")(block.astype(np.float64))
