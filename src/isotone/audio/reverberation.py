"""Reverberation: found by how slowly a recording falls silent, and lowered.

A room adds to every sound the tails of the sounds before. Their power at a time is estimated by that of a moment ago,
less the decay since then (Lebart, Boucher and Denbigh 2001), and subtracted in every band. That is done only where no
sound ends faster than a room's tail: other recordings stay as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Decibels per second below which the fastest falls of the level are those of a room. On the sample of TIMIT they are
#: 331 to 1,180, with half a second of reverberation as strong as the direct sound 153 to 276. Noise hides falls: at
#: 10 dB they are 239 to 566, at 5 dB one in twelve is below 250.
SLOWEST_DB_S = 250.0
#: Seconds to -60 dB of the tails that are lowered.
DECAY_S = 0.5
#: Seconds after a sound from which on its tail is lowered.
DELAY_S = 0.03
#: Recordings of more seconds stay as they are, which bounds the memory.
LONGEST_S = 600.0

_LEVEL_S, _FALL_S = 0.01, 0.04
_MEAN = 3  # frames of levels
_SILENT = 1e-7  # of the loudest frame's power
_NOISE, _LEAST_NOISE = 0.05, 0.2  # its quantile of powers, and the least share of it that counts
_LEAST_RANGE = 10.0  # from the noise to the loudest frame; steady noise has less
_LOUD_DB = 25.0
_FASTEST = 0.02  # share of the loud frames
_FRAME_S, _PARTS = 0.032, 4
_SMOOTHING = (0.5, 0.25, 0.125, 0.125)  # of powers over frames
_LEAST_GAIN = 0.1

Samples = NDArray[np.float32]


def fall(samples: Samples, sample_rate: int) -> float:
    """Measure how fast the level falls at its fastest, in decibels per second; infinite without sounds that fall.

    The power of steady noise is left out, so that a sound that ends in it falls far.
    """
    size, steps = round(_LEVEL_S * sample_rate), round(_FALL_S / _LEVEL_S)
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    power = np.einsum("ts,ts->t", frames, frames, dtype=np.float64)
    power = power[power > _SILENT * power.max(initial=0.0)]
    if len(power) < 2 * steps:
        return np.inf
    power = np.convolve(power, np.full(_MEAN, 1 / _MEAN), "valid")
    noise = float(np.quantile(power, _NOISE))
    if power.max() < _LEAST_RANGE * noise:
        return np.inf
    level = 10 * np.log10(np.maximum(power - noise, _LEAST_NOISE * noise))
    loud = level[:-steps] > level.max() - _LOUD_DB
    falls = (level[:-steps] - level[steps:])[loud] / _FALL_S
    return float(np.quantile(falls, 1 - _FASTEST))


def dried(samples: Samples, sample_rate: int) -> Samples:
    """Lower the reverberation of a recording ``(N,)``, where it has any; others are returned as they are."""
    seconds = len(samples) / sample_rate
    if seconds > LONGEST_S or fall(samples, sample_rate) > SLOWEST_DB_S:
        return samples
    hop = round(_FRAME_S * sample_rate) // _PARTS
    size = _PARTS * hop
    padded = np.pad(samples, (size, 2 * size))
    window = np.sqrt(np.hanning(size + 1)[:-1]).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop]
    spectra = np.fft.rfft(frames * window)
    spectra *= _gains(np.square(np.abs(spectra)), hop / sample_rate)
    parts = (np.fft.irfft(spectra, size) * window).reshape(len(spectra), _PARTS, hop)
    out = np.zeros((len(spectra) + _PARTS - 1, hop))
    for part in range(_PARTS):
        out[part : part + len(parts)] += parts[:, part]
    # the squared windows of neighbouring frames sum to half their number
    return (out.reshape(-1)[size : size + len(samples)] / (_PARTS / 2)).astype(np.float32)


def _gains(powers: NDArray[np.floating], hop_s: float) -> NDArray[np.floating]:
    """Compute the gain of every band of every frame from their powers ``(T, F)``."""
    smooth = np.zeros_like(powers)
    for before, weight in enumerate(_SMOOTHING):
        smooth[before:] += weight * powers[: len(powers) - before]
    delay = max(1, round(DELAY_S / hop_s))
    tail = np.zeros_like(smooth)
    tail[delay:] = 10 ** (-6 * delay * hop_s / DECAY_S) * smooth[:-delay]
    left = np.maximum(smooth - tail, _LEAST_GAIN**2 * smooth)
    return np.sqrt(np.divide(left, smooth, out=np.ones_like(left), where=smooth > 0))
