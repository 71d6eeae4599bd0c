"""The end of a stream: its last seconds of samples, and emissions of its last frames."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from isotone.interfaces import Statistics
from isotone.pipeline.activity import Activity
from isotone.pipeline.emitter import Emitter
from isotone.types import Emissions

#: Seconds of samples that are kept, for the statistics by which the input is normalised.
HEARD_S = 19.0
#: Seconds that are encoded in each step. Frames see what lies in them, as in a window of long audio.
SEEN_S = 6.0
#: Seconds that are encoded in a wide look, as many as of long audio (:class:`isotone.pipeline.windows.Windows`).
WIDE_S = 17.0
#: Statistics are renewed when the audio has grown by this share, and by a second at most.
_RENEWED = 0.1
#: Seconds of changing level below which the kept samples give no new statistics.
_LEAST_SPOKEN_S = 1.0
#: Seconds at the end of the stream whose level tells if somebody speaks, and of them that have to change.
_LATELY_S, _LEAST_CHANGING_S = 1.0, 0.3


class Recent:
    """The end of a stream.

    Positions are *units*: the longest hop of the model's heads, which every head's frames divide. Unit u of a head with
    that hop is frame u of the whole recording.

    Args:
        emitter: The model, with heads that are mixed.
        heads: Names of the heads.

    Raises:
        ValueError: frames are no whole number of samples, or those of one head do not divide those of another.
    """

    def __init__(self, emitter: Emitter, heads: set[str]) -> None:
        self.emitter, self.heads = emitter, heads
        self.rate = emitter.model.encoder.sample_rate
        self.hops = emitter.hops(heads)
        self.hop = max(self.hops.values())
        if any(self.hop % hop for hop in self.hops.values()):
            raise ValueError(
                f"Streams need heads whose frames divide each other; their hops are {self.hops} samples."
            )
        self.samples = np.zeros(0, np.float32)
        self.first = 0  # sample number of the first one that is kept
        self._statistics: Statistics | None = None
        self._renew_at = 0

    @property
    def heard(self) -> int:
        """Number of samples that the stream had so far."""
        return self.first + len(self.samples)

    def add(self, samples: NDArray[np.float32]) -> None:
        """Add samples ``(N,)`` to the end, and forget those that are too old."""
        kept = np.concatenate([self.samples, samples])
        old = max(0, len(kept) - round(HEARD_S * self.rate)) // self.hop * self.hop
        self.samples, self.first = kept[old:], self.first + old

    def emissions(self, first: int, wide: bool = False) -> Mapping[str, Emissions]:
        """Compute emissions by head, on the CPU: from those of unit ``first`` to the end of the stream.

        What is older than :data:`SEEN_S` is not there: see :attr:`oldest`. A wide look renews the statistics, and sees
        :data:`WIDE_S`.
        """
        start = self._since(WIDE_S) if wide else self.oldest
        if wide:
            self._renew_at = 0
        found = self.emitter.part(self.samples_from(start), self.heads, self._normalisation())
        return {
            name: e.frames(
                [(0, slice((first - start) * (self.hop // self.hops[name]), int(e.lengths[0])))]
            ).to("cpu")
            for name, e in found.items()
        }

    def samples_from(self, first: int) -> NDArray[np.float32]:
        """Return the samples from unit ``first`` to the end of the stream, of those that are kept."""
        return self.samples[first * self.hop - self.first :]

    @property
    def oldest(self) -> int:
        """The first unit that is still encoded."""
        return self._since(SEEN_S)

    def _since(self, seconds: float) -> int:
        """Return the first unit of the last seconds."""
        return max(0, -(-(self.heard - round(seconds * self.rate)) // self.hop))

    def active_s(self) -> float:
        """Seconds of the kept samples whose level changes, as that of speech does."""
        return Activity(self.samples, self.rate).changing_s

    def speaks(self) -> bool:
        """Tell if the level changes at the end of the stream, as that of speech does."""
        lately = self.samples[-round(_LATELY_S * self.rate) :]
        return Activity(lately, self.rate).changing_s >= _LEAST_CHANGING_S

    def _normalisation(self) -> Statistics | None:
        if self._statistics is not None and self.heard < self._renew_at:
            return self._statistics
        activity = Activity(self.samples, self.rate)
        # in a long silence those of the last speech stay, or noise would be made as loud as speech
        if self._statistics is None or activity.changing_s >= _LEAST_SPOKEN_S:
            near = activity.near(0, len(self.samples), 0.0)
            active = np.concatenate([self.samples[part] for part in near])
            device = next(self.emitter.model.parameters()).device
            self._statistics = self.emitter.model.encoder.statistics(torch.from_numpy(active).to(device))
        self._renew_at = self.heard + min(self.rate, round(_RENEWED * self.heard))
        return self._statistics
