"""Emissions of utterances: short ones as a padded batch, a long one window by window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isotone.alignment import AlignmentError
from isotone.pipeline.activity import without_silence
from isotone.pipeline.windows import Windows, emit
from isotone.registry import nearest
from isotone.tensors import torch
from isotone.types import Emissions

if TYPE_CHECKING:
    from isotone.interfaces import Statistics
    from isotone.model import Model


# Less silence than this share of a recording stays in its statistics.
_SILENT_SHARE = 0.05


class Mixture(NamedTuple):
    """A head whose scores are mixed into those of another (:meth:`isotone.types.Emissions.mixed`).

    Attributes:
        head: The head that gets them.
        beside: The head that they come from.
        share: Their weight, 0 to 1.
    """

    head: str
    beside: str
    share: float


def mixture_of(model: Model, times: str) -> Mixture | None:
    """Return what is mixed into the timing head, if it is the model's own."""
    decoding = model.decoding
    mixes = decoding.beside and times == decoding.times
    return Mixture(times, decoding.beside, decoding.share) if mixes else None


def timing_head(model: Model, given: str | None) -> str:
    """Return the name of the given timing head, or of the model's own."""
    name = given or model.decoding.times or model.decoding.text
    if name not in model.heads:
        near = nearest(name, list(model.heads))
        raise LookupError(f"The model has no head {name!r}.{near} It has: {', '.join(model.heads)}.")
    return name


@dataclass(frozen=True)
class Emitter:
    """A model that makes emissions of audio.

    Attributes:
        model: The model, on its device.
        windows: Windows into which long audio is cut.
        mixture: Heads that are mixed. Default: none.
    """

    model: Model
    windows: Windows
    mixture: Mixture | None = None

    def cuts(self, audio: Sequence[np.ndarray]) -> bool:
        """Tell if any of the audio is so long that it is encoded in windows, and so by itself."""
        return any(self.windows.cut(self.seconds(samples)) for samples in audio)

    def alone(self, audio: Sequence[np.ndarray]) -> bool:
        """Tell if any of the audio has to be encoded by itself: it is long, or in part silent."""
        return self.cuts(audio) or any(self._sounding(samples) is not None for samples in audio)

    def seconds(self, samples: np.ndarray) -> float:
        """Return the duration of samples ``(N,)`` in seconds."""
        return len(samples) / self.model.encoder.sample_rate

    def hops(self, heads: set[str]) -> dict[str, int]:
        """Find the samples between the frames of heads, by a second of silence."""
        rate = self.model.encoder.sample_rate
        found = self.part(np.zeros(rate, np.float32), heads, None)
        return {name: e.hop_samples(rate) for name, e in found.items()}

    def in_windows(self, audio: np.ndarray, heads: set[str], windows: Windows) -> dict[str, Emissions]:
        """Compute emissions of one utterance ``(N,)`` by other windows, whatever its length."""
        return self._mixed(emit(self.model, audio, self._needed(heads), windows), heads)

    def __call__(
        self,
        ids: Sequence[str],
        audio: Sequence[np.ndarray],
        heads: set[str],
        on_window: Callable[[float], None] = lambda share: None,
    ) -> dict[str, Emissions]:
        """Compute emissions by head, on the device of the model. Audio that has to be :meth:`alone` is so.

        Silence has no part in the normalisation: it is far below all that a model has learnt from.

        Args:
            ids: Utterance ids, for errors.
            audio: ``(N,)`` float32 samples at the model's sample rate, per utterance.
            heads: Names of the heads.
            on_window: Called after every window with the share of the audio that is encoded.

        Raises:
            AlignmentError: an utterance is too short for a frame.
        """
        for name, samples in zip(ids, audio):
            if self.model.encoder.frames(len(samples)) < 1:
                seconds = self.seconds(samples)
                raise AlignmentError(f"{name}: {seconds:.3f} s of audio is too short for a single frame.")
        if self.cuts(audio):
            found = emit(self.model, audio[0], self._needed(heads), self.windows, on_window)
            return self._mixed(found, heads)
        audio = [samples[:] for samples in audio]  # those on disk are read
        if len(audio) == 1 and (rest := self._sounding(audio[0])) is not None:
            device = next(self.model.parameters()).device
            statistics = self.model.encoder.statistics(torch.from_numpy(rest).to(device))
            return self.part(audio[0], heads, statistics)
        lengths = torch.tensor([len(a) for a in audio])
        batch = torch.zeros(len(audio), int(lengths.max()))
        for row, samples in zip(batch, audio):
            row[: len(samples)] = torch.from_numpy(samples)
        device = next(self.model.parameters()).device
        with torch.inference_mode():
            out = self.model(batch.to(device), lengths.to(device), self._needed(heads))
        return self._mixed(out, heads)

    def part(
        self, samples: np.ndarray, heads: set[str], statistics: Statistics | None
    ) -> dict[str, Emissions]:
        """Compute emissions by head of a part of a recording ``(N,)``, normalised by statistics around it."""
        device = next(self.model.parameters()).device
        batch, lengths = torch.from_numpy(samples)[None].to(device), torch.tensor([len(samples)]).to(device)
        with torch.inference_mode():
            return self._mixed(self.model(batch, lengths, self._needed(heads), statistics), heads)

    def _sounding(self, samples: np.ndarray) -> np.ndarray | None:
        """Return samples without their silence; None where there is hardly any."""
        rest = without_silence(samples, self.model.encoder.sample_rate)
        return rest if len(rest) < (1 - _SILENT_SHARE) * len(samples) else None

    def _needed(self, heads: set[str]) -> set[str]:
        """Return the heads that have to be computed for some."""
        return heads | {self.mixture.beside} if self.mixture and self.mixture.head in heads else heads

    def _mixed(self, emissions: dict[str, Emissions], heads: set[str]) -> dict[str, Emissions]:
        """Mix what is to be mixed; return the emissions of the given heads."""
        if self.mixture is None or self.mixture.head not in heads:
            return emissions
        head, beside, share = self.mixture
        mixed = {**emissions, head: emissions[head].mixed(emissions[beside], share)}
        return {name: mixed[name] for name in heads}
