"""Features by which recordings are compared, all on one grid of 10 ms."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, cast

import numpy as np
import soxr
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isotone.alignment import AlignmentError
from isotone.interfaces import Encoder, Statistics
from isotone.model import Model
from isotone.model.device import check_device
from isotone.model.encoder import SpeechEncoder
from isotone.model.fetch import CONFIG, check_source, model_folder
from isotone.model.frontend import LogMel
from isotone.pipeline.emitter import Emitter
from isotone.pipeline.windows import Windows
from isotone.types import Emissions, Grid
from isotone.warping.mismatch import at_places

#: Kinds of features, for help and errors.
SIGNALS = {
    "log-mel": "log energies of 40 mel bands and their slopes; no model",
    "phones": "posteriors of the model's timing head; phones:HEAD of another one",
    "layer": "hidden states of the model's encoder: layer:0 before the first layer, layer:3 after the third ...",
}

_BANDS = 40
# Energies further below the loudest are raised to this floor: nats of power, 69 dB.
_RANGE = 16.0
# Added to the deviation of every band, so that bands with nothing but noise do not count as much as others: nats.
_LEAST_DEVIATION = 1.0
# Frames count as active above this share of the way from the quietest to the loudest (5th and 95th percentile).
_ACTIVE = 0.35
# Weight of the slopes beside the energies, and of posteriors and hidden states beside both: measured on readers of the
# same sentence (benchmarks/match).
_SLOPES, _POSTERIORS, _HIDDEN = 4.0, 12.0, 9.0
# Posteriors are flattened by this temperature: sure mistakes weigh less.
_TEMPERATURE = 2.0
# Frames of which the quantiles of the level are taken, at most.
_SAMPLE = 1_000_000

Extractor = Callable[[NDArray[np.float32]], tuple[Tensor, Grid]]


@dataclass(frozen=True)
class Features:
    """Samples to vectors on one grid.

    Attributes:
        name: As given to :func:`open_features`.
        extractors: Parts of the vectors.
        model: Digest of the model, or an empty string.
    """

    name: str
    extractors: tuple[Extractor, ...]
    model: str = ""

    sample_rate: ClassVar[int] = 16_000
    grid: ClassVar[Grid] = Grid(0.01, 0.0075)

    def __call__(self, samples: NDArray[np.float32]) -> Tensor:
        """Compute vectors ``(T, d)`` float32 of mono samples ``(N,)`` at 16 kHz.

        Raises:
            AlignmentError: too little audio for a frame.
        """
        count = (len(samples) - 400) // 160 + 1
        found = [extract(samples) for extract in self.extractors] if count > 0 else []
        if count < 1 or any(not len(values) for values, _ in found):
            seconds = len(samples) / self.sample_rate
            raise AlignmentError(f"{seconds:.3f} s of audio is too short for a single frame.")
        return torch.cat([_on_grid(values, grid, self.grid, count) for values, grid in found], 1)


def open_features(name: str = "log-mel", model: str | None = None, device: str = "cpu") -> Features:
    """Open features by name: log-mel, phones, phones:HEAD, layer:N, or several joined by ``+``.

    Args:
        name: The features.
        model: Model or run folder, or a hub id. Layers also come from encoders without a CTC head.
        device: Device of the model.

    Raises:
        ValueError: no such features, features of a model without one, or a device that cannot be used.
        OSError: there is no such model.
    """
    kinds = [(kind, detail) for kind, _, detail in (part.partition(":") for part in name.split("+"))]
    for kind, detail in kinds:
        if (
            kind not in SIGNALS
            or (kind == "log-mel" and detail)
            or (kind == "layer" and not detail.isdecimal())
        ):
            raise ValueError(
                f"No features {name!r}: there are log-mel, phones, phones:HEAD, layer:N (a number), and several "
                "of them joined by +."
            )
    of_model = [kind for kind, _ in kinds if kind != "log-mel"]
    if not of_model:
        return Features(name, (log_mel,) * len(kinds))
    if model is None:
        raise ValueError(f"The features {of_model[0]!r} are those of a model: give one (--model).")
    check_device(device)
    source = Model.load(model) if "phones" in of_model else _encoder(model)
    runner = _Runner(source, device)
    made = {"log-mel": lambda detail: log_mel, "phones": runner.phones, "layer": runner.layer}
    return Features(name, tuple(made[kind](detail) for kind, detail in kinds), runner.digest())


@cache
def _mel() -> LogMel:
    return LogMel(Features.sample_rate, bands=_BANDS, stack=1)


def log_mel(samples: NDArray[np.float32]) -> tuple[Tensor, Grid]:
    """Compute log-mel energies and their slopes ``(T, 80)`` of samples at 16 kHz, normalised over active frames."""
    mel = _mel().energies(torch.from_numpy(samples))
    if not len(mel):
        return mel, Features.grid
    mel = mel.maximum(mel.max() - _RANGE)
    level = mel.mean(1)
    low, high = torch.quantile(level[:: 1 + len(level) // _SAMPLE], torch.tensor([0.05, 0.95]))
    active = mel[level >= low + _ACTIVE * (high - low)]
    deviation = (active.var(0, correction=0) + _LEAST_DEVIATION**2).sqrt()
    mel = (mel - active.mean(0)) / deviation
    padded = torch.cat([mel[:1], mel[:1], mel, mel[-1:], mel[-1:]])
    slopes = (2 * (padded[4:] - padded[:-4]) + padded[3:-1] - padded[1:-3]) / 10
    return torch.cat([mel, _SLOPES * slopes], 1), Features.grid


class _Runner:
    """A model whose emissions or hidden states are features.

    Args:
        source: The model, or an encoder alone.
        device: Its device.
    """

    def __init__(self, source: Model | Encoder, device: str) -> None:
        self.source = source.to(device).eval()
        self.encoder = source.encoder if isinstance(source, Model) else source

    def digest(self) -> str:
        """Return a digest of the weights."""
        digest = hashlib.sha256()
        for name, value in sorted(self.source.state_dict().items()):
            digest.update(name.encode() + value.detach().cpu().float().numpy().tobytes())
        return digest.hexdigest()

    def phones(self, head: str) -> Extractor:
        """Return the extractor of a head's posteriors: the roots of them, so that distances are Hellinger's."""
        model = self.source
        assert isinstance(model, Model)
        head = head or model.decoding.times or model.decoding.text
        if head not in model.heads:
            raise ValueError(f"The model has no head {head!r}; it has {', '.join(model.heads)}.")

        def extract(samples: NDArray[np.float32]) -> tuple[Tensor, Grid]:
            emissions = self._run(model, samples, head)
            roots = torch.softmax(emissions.logits[0].float() / _TEMPERATURE, -1).sqrt()
            return _POSTERIORS * roots, emissions.grid

        return extract

    def layer(self, number: str) -> Extractor:
        """Return the extractor of the hidden states of a layer, normalised over the recording."""
        states = _States(self.encoder, int(number))

        def extract(samples: NDArray[np.float32]) -> tuple[Tensor, Grid]:
            emissions = self._run(states, samples, "states")
            values = emissions.logits[0].float()
            values = (values - values.mean(0)) / (values.std(0, correction=0) + 1e-5)
            return values * (_HIDDEN / math.sqrt(values.shape[1])), emissions.grid

        return extract

    def _run(self, model: nn.Module, samples: NDArray[np.float32], head: str) -> Emissions:
        rate = self.encoder.sample_rate
        if rate != Features.sample_rate:
            samples = soxr.resample(samples, Features.sample_rate, rate)
        return Emitter(cast(Model, model), Windows())(["the recording"], [samples], {head})[head].to("cpu")


class _States(nn.Module):
    """An encoder in the place of a model; its one head gives the hidden states of a layer."""

    def __init__(self, encoder: Encoder, layer: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.layer = layer

    def forward(
        self, audio: Tensor, lengths: Tensor, only: set[str], statistics: Statistics | None = None
    ) -> dict[str, Emissions]:
        options = {} if statistics is None else {"statistics": statistics}
        hidden = self.encoder(audio, lengths, True, **options).hidden
        if self.layer >= len(hidden):
            raise ValueError(f"The encoder has the layers 0 to {len(hidden) - 1}; got layer:{self.layer}.")
        frames = hidden[self.layer]
        return {"states": Emissions(frames.values, frames.lengths, frames.grid)}


def _encoder(source: str) -> Encoder:
    """Load the encoder of a model, or an encoder of transformers without a CTC head."""
    check_source(source)
    folder = model_folder(source)
    if (folder / CONFIG).is_file():
        return Model.load(source).encoder
    return SpeechEncoder(source)


def _on_grid(values: Tensor, grid: Grid, target: Grid, count: int) -> Tensor:
    """Interpolate frames ``(T, d)`` between their middles, to ``count`` frames of another grid."""
    values = values.cpu()
    if grid == target and len(values) == count:
        return values
    middles = target.offset_s + (torch.arange(count, dtype=torch.float64) + 0.5) * target.hop_s
    return at_places(values, ((middles - grid.offset_s) / grid.hop_s - 0.5).clamp(0, len(values) - 1))
