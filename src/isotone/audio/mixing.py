"""Channels mixed to one: their mean, in which channels of opposite signs do not cancel each other."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)

#: Share of the channels' power that is left in their mean, at least: less means that they cancel each other. Unrelated
#: channels keep a half, and those of one microphone all.
LEAST = 0.1

# Samples that are heard before signs are judged, and those after which a sample counts half.
_FIRST, _HALF = 1000, 500_000


class Mixer:
    """Mix of channels, block by block.

    A balanced cable in a stereo input gives the same sound twice, with opposite signs, and a mean of nothing. There
    the channels whose sign is not the first one's are turned, and a warning is logged once.

    Args:
        name: The recording, for the warning.
        channel: Number of the one channel to take. Default: all.
    """

    def __init__(self, name: object, channel: int | None = None) -> None:
        self._name, self._channel = name, channel
        self._heard, self._left, self._power = 0, 0.0, 0.0
        self._turned = False

    def __call__(self, block: NDArray[Any]) -> NDArray[Any]:
        """Mix the next samples ``(n, C)`` of all channels to ``(n,)``."""
        if self._channel is not None or block.shape[1] == 1:
            return np.ascontiguousarray(block[:, self._channel or 0])
        mean = block.mean(axis=1, dtype=block.dtype)
        return self._uncancelled(block) if self._cancel(block, mean) else mean

    def _cancel(self, block: NDArray[Any], mean: NDArray[Any]) -> bool:
        """Tell if the channels cancel each other, in this block and what was before it."""
        kept = 0.5 ** (len(block) / _HALF)
        flat = block.ravel()
        self._heard += len(block)
        self._left = kept * self._left + float(mean @ mean)
        self._power = kept * self._power + float(flat @ flat) / block.shape[1]
        return self._heard >= _FIRST and self._left < LEAST * self._power

    def _uncancelled(self, block: NDArray[Any]) -> NDArray[Any]:
        """Return the mean of the channels, each with the sign of the first."""
        if not self._turned:
            self._turned = True
            log.warning(
                "%s: its channels have opposite signs, as of a wrongly wired cable. They were turned, since a mix of "
                "them as they are is silent.",
                self._name,
            )
        signs = np.where(block.T @ block[:, 0] < 0, -1, 1).astype(block.dtype)
        return block @ signs / len(signs)
