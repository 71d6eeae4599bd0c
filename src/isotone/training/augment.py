"""Augmentation of recordings: the same words through other noise, level, speed and channel.

Every augmentation is a callable ``(samples, rng) -> samples``: ``(N,)`` floating in, ``(M,)`` float32 out. All random
choices come from the numpy generator: one seed gives the same choices in any worker process. A configuration has a list
of augmentations, applied in order::

    - {name: speed, factor: [0.9, 1.1]}
    - {name: band, probability: 0.5}
    - {name: noise, snr_db: [10, 30]}
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import soxr
from numpy.typing import NDArray
from scipy.signal import butter, lfilter, sosfilt

from isotone.audio.codecs import CODECS, coded
from isotone.registry import Registry

Samples = NDArray[np.float32]

#: Augmentations by name; other distributions add theirs under the entry-point group.
augmentations: Registry[Augmentation] = Registry("augmentation", "isotone.augmentations")


class Augmentation(ABC):
    """A random change of a recording.

    Args:
        probability: Share of the calls that change anything, 0 to 1.

    Raises:
        ValueError: a probability outside of that.
    """

    #: True where a recording keeps its length, so that times in it stay valid.
    keeps_length = True

    def __init__(self, probability: float) -> None:
        if not 0 <= probability <= 1:
            raise ValueError(f"{type(self).__name__} expects a probability from 0 to 1; got {probability}.")
        self.probability = probability

    @abstractmethod
    def change(self, samples: Samples, rng: np.random.Generator) -> NDArray[Any]:
        """Return changed samples: ``(N,)``, at least one, to ``(M,)``; the input is not modified."""

    def __call__(self, samples: NDArray[Any], rng: np.random.Generator) -> Samples:
        """Change the samples, or (by chance, or where there are none) copy them.

        Raises:
            ValueError: not one channel of samples.
        """
        samples = np.array(samples, np.float32)
        if samples.ndim != 1:
            raise ValueError(f"An augmentation expects mono samples (N,); got {samples.shape}.")
        if not len(samples) or rng.random() >= self.probability:
            return samples
        return self.change(samples, rng).astype(np.float32, copy=False)


@augmentations.register("gain")
class Gain(Augmentation):
    """A random gain: the recording gets louder or quieter.

    Args:
        gain_db: Range to draw from, uniformly, in dB.
        probability: Share of the recordings that are changed.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(self, *, gain_db: Sequence[float] = (-10.0, 5.0), probability: float = 1.0) -> None:
        super().__init__(probability)
        self.gain_db = _range(self, "gain_db", gain_db)

    def change(self, samples: Samples, rng: np.random.Generator) -> NDArray[Any]:
        """See :class:`Augmentation`."""
        return samples * 10 ** (rng.uniform(*self.gain_db) / 20)


@augmentations.register("noise")
class Noise(Augmentation):
    """Coloured Gaussian noise at a ratio to the mean power of the recording.

    Args:
        snr_db: Range of the ratio, in dB.
        colour: Range of the pole of the filter of the noise, in [0, 1): 0 is white noise, higher values are darker.
        probability: Share of the recordings that are changed.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        *,
        snr_db: Sequence[float] = (10.0, 30.0),
        colour: Sequence[float] = (0.0, 0.95),
        probability: float = 1.0,
    ) -> None:
        super().__init__(probability)
        self.snr_db = _range(self, "snr_db", snr_db)
        self.colour = _range(self, "colour", colour)
        if not 0 <= self.colour[0] <= self.colour[1] < 1:
            raise ValueError(f"Noise expects colours in [0, 1), poles of a filter; got {self.colour}.")

    def change(self, samples: Samples, rng: np.random.Generator) -> NDArray[Any]:
        """See :class:`Augmentation`; silence stays silent."""
        noise = lfilter([1.0], [1.0, -rng.uniform(*self.colour)], rng.standard_normal(len(samples)))
        power = np.mean(np.square(samples, dtype=np.float64)) / np.mean(np.square(noise))
        return samples + noise * np.sqrt(power * 10 ** (-rng.uniform(*self.snr_db) / 10))


@augmentations.register("speed")
class Speed(Augmentation):
    """A change of speed by resampling: faster and higher in pitch, or slower and lower.

    Args:
        factor: Range to draw from, above 0; the recording lasts 1 / factor times as long.
        probability: Share of the recordings that are changed.

    Raises:
        ValueError: an option outside its range.
    """

    keeps_length = False

    def __init__(self, *, factor: Sequence[float] = (0.9, 1.1), probability: float = 1.0) -> None:
        super().__init__(probability)
        self.factor = _range(self, "factor", factor, above=0.0)

    def change(self, samples: Samples, rng: np.random.Generator) -> NDArray[Any]:
        """See :class:`Augmentation`."""
        changed = soxr.resample(samples, rng.uniform(*self.factor), 1.0, quality="MQ")
        return changed if len(changed) else samples


@augmentations.register("band")
class Band(Augmentation):
    """A band-pass, as of another microphone or a telephone: a second-order Butterworth filter at each side.

    Args:
        low_hz: Range of the lower corner.
        high_hz: Range of the upper corner; from half the sample rate upwards there is none.
        sample_rate: Hz of the recordings.
        probability: Share of the recordings that are changed.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        *,
        low_hz: Sequence[float] = (20.0, 400.0),
        high_hz: Sequence[float] = (2500.0, 8000.0),
        sample_rate: int = 16_000,
        probability: float = 1.0,
    ) -> None:
        super().__init__(probability)
        self.low_hz = _range(self, "low_hz", low_hz, above=0.0)
        self.high_hz = _range(self, "high_hz", high_hz, above=0.0)
        if not self.low_hz[1] < min(self.high_hz[0], sample_rate / 2):
            raise ValueError(
                f"Band expects lower corners below the upper ones and half of {sample_rate} Hz; got "
                f"{self.low_hz} and {self.high_hz}."
            )
        self.sample_rate = sample_rate

    def change(self, samples: Samples, rng: np.random.Generator) -> NDArray[Any]:
        """See :class:`Augmentation`."""
        low, high = rng.uniform(*self.low_hz), rng.uniform(*self.high_hz)
        samples = sosfilt(butter(2, low, "highpass", fs=self.sample_rate, output="sos"), samples)
        if high >= 0.499 * self.sample_rate:
            return samples
        return np.asarray(sosfilt(butter(2, high, "lowpass", fs=self.sample_rate, output="sos"), samples))


@augmentations.register("codec")
class Codec(Augmentation):
    """A lossy codec at a low rate, drawn from a list.

    Args:
        codecs: Of :data:`isotone.audio.codecs.CODECS`.
        level: Range of the compression, 0 to 1 (lowest rate).
        sample_rate: Hz of the recordings.
        probability: Share of the recordings that are changed.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        *,
        codecs: Sequence[str] = tuple(CODECS),
        level: Sequence[float] = (0.9, 0.99),
        sample_rate: int = 16_000,
        probability: float = 1.0,
    ) -> None:
        super().__init__(probability)
        self.level = _shares(self, "level", level)
        if not codecs or set(codecs) - set(CODECS):
            raise ValueError(f"Codec expects codecs of {', '.join(CODECS)}; got {list(codecs)}.")
        self.codecs = list(codecs)
        self.sample_rate = sample_rate

    def change(self, samples: Samples, rng: np.random.Generator) -> NDArray[Any]:
        """See :class:`Augmentation`."""
        codec = self.codecs[rng.integers(len(self.codecs))]
        return coded(samples, self.sample_rate, codec, rng.uniform(*self.level))


@augmentations.register("mask")
class Mask(Augmentation):
    """Stretches of silence.

    Args:
        spans: Number of stretches.
        share: Range of each stretch's share of the recording, 0 to 1.
        probability: Share of the recordings that are changed.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self, *, spans: int = 1, share: Sequence[float] = (0.0, 0.2), probability: float = 1.0
    ) -> None:
        super().__init__(probability)
        self.share = _shares(self, "share", share)
        if spans < 1:
            raise ValueError(f"Mask expects spans >= 1; got {spans}.")
        self.spans = spans

    def change(self, samples: Samples, rng: np.random.Generator) -> NDArray[Any]:
        """See :class:`Augmentation`."""
        samples = samples.copy()
        for _ in range(self.spans):
            size = round(rng.uniform(*self.share) * len(samples))
            start = int(rng.integers(0, len(samples) - size + 1))
            samples[start : start + size] = 0
        return samples


class Chain:
    """A chain of augmentations, applied in order.

    Args:
        parts: Augmentations in order; each an augmentation, its name, or a mapping (``name`` and options).
    """

    def __init__(self, parts: Iterable[Augmentation | str | Mapping[str, Any]]) -> None:
        self.parts = [
            part if isinstance(part, Augmentation) else augmentations.create(part) for part in parts
        ]

    @property
    def keeps_length(self) -> bool:
        """True where every augmentation keeps the length of a recording."""
        return all(part.keeps_length for part in self.parts)

    def __call__(self, samples: NDArray[Any], rng: np.random.Generator) -> Samples:
        """Apply all augmentations to the samples ``(N,)``; an empty chain copies them."""
        changed = np.array(samples, np.float32)
        for part in self.parts:
            changed = part(changed, rng)
        return changed

    def views(self, samples: NDArray[Any], rng: np.random.Generator, count: int = 2) -> list[Samples]:
        """Make ``count`` independent views of one recording, for contrastive learning."""
        return [self(samples, rng) for _ in range(count)]


def _range(
    part: Augmentation, name: str, bounds: Sequence[float], above: float = -np.inf
) -> tuple[float, float]:
    if len(bounds) != 2 or not above < bounds[0] <= bounds[1] < np.inf:
        limit = "" if above == -np.inf else f", above {above:g}"
        raise ValueError(
            f"{type(part).__name__} expects {name} as [lowest, highest]{limit}; got {list(bounds)}."
        )
    return float(bounds[0]), float(bounds[1])


def _shares(part: Augmentation, name: str, bounds: Sequence[float]) -> tuple[float, float]:
    found = _range(part, name, bounds)
    if found[0] < 0 or found[1] > 1:
        raise ValueError(f"{type(part).__name__} expects {name} from 0 to 1; got {list(bounds)}.")
    return found
