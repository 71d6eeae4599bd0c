"""Emissions of long audio: encoded in windows that overlap, joined on one grid of frames.

Memory is bounded by the window, except for the emissions (7 MB per hour and ten labels), and for the samples where they
are in memory (230 MB per hour at 16 kHz).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isotone.audio import Samples
from isotone.pipeline.activity import Activity, without_silence
from isotone.tensors import torch
from isotone.types import Emissions

if TYPE_CHECKING:
    from isotone.model import Model

# Least seconds of active audio for the statistics of a window.
_NORMALISED_S = 10.0


@dataclass(frozen=True)
class Windows:
    """Windows into which long audio is cut.

    A window keeps the frames of ``window_s`` seconds and is encoded with ``context_s`` seconds more on both sides,
    whose frames are dropped. Windows begin on the frame grid of the whole recording. So heads and encoders that see no
    further than the context give the same as one pass, except for the normalisation (of log-mel bands or samples).
    Statistics come from active audio (:mod:`isotone.pipeline.activity`) in the window and its context; under 10 s,
    nearby active audio is added. So long silence, other voices and other microphones elsewhere have no influence.
    Attention sees one window. Encoders whose front end has group normalisation (wav2vec2-base) normalise every window
    by itself.

    Attributes:
        window_s: Seconds of frames that a window keeps. Audio of up to twice this length is encoded at once, as
            utterances are in training. 0: all audio is.
        context_s: Seconds on each side whose frames are dropped.
        alone: Normalise each window over itself and its context, without activity detection.

    Raises:
        ValueError: a time that is negative or not finite.
    """

    window_s: float = 15.0
    context_s: float = 2.0
    alone: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.window_s < np.inf and 0 <= self.context_s < np.inf):
            raise ValueError(
                "Windows expect seconds of 0 or more, such as 15 with a context of 2; "
                f"got {self.window_s} and {self.context_s}."
            )

    def cut(self, seconds: float) -> bool:
        """Tell if audio of this length is encoded in more than one window."""
        return 0 < 2 * self.window_s < seconds


def emit(
    model: Model,
    audio: Samples,
    heads: set[str],
    windows: Windows,
    progress: Callable[[float], None] = lambda share: None,
) -> dict[str, Emissions]:
    """Compute emissions of one long utterance, window by window.

    Args:
        model: The model, on its device.
        audio: ``(N,)`` float32 at the model's sample rate, in memory or on disk.
        heads: Names of the heads.
        windows: Windows into which the audio is cut.
        progress: Called after every window with the share of the audio that is encoded, 0 to 1.

    Returns:
        Emissions ``(1, T, V)`` of every head, on the model's device, with the frames and the grid of a single pass.

    Raises:
        ValueError: the context is shorter than the receptive field of a frame, or frames are no whole number of
            samples.
    """
    activity = None if windows.alone else Activity(audio, model.encoder.sample_rate)
    parts: dict[str, list[Emissions]] = {name: [] for name in heads}
    with torch.inference_mode():
        for done, out in _each_window(model, audio, heads, windows, activity):
            for name, emissions in out.items():
                parts[name].append(emissions)
            progress(done)
    return {name: Emissions.cat(parts.pop(name)) for name in list(parts)}


def _each_window(
    model: Model, samples: Samples, heads: set[str], windows: Windows, activity: Activity | None
) -> Iterator[tuple[float, dict[str, Emissions]]]:
    """Encode window by window; yield the share of the samples up to its end, and the frames that it keeps."""
    rate, total = model.encoder.sample_rate, len(samples)
    device = next(model.parameters()).device
    window, context = round(windows.window_s * rate), round(windows.context_s * rate)
    start = stop = first = hop = 0
    while stop < total:
        end = min(total, start + window + context)
        own = samples[first:end]
        if activity is None:
            active = without_silence(own, rate)
        else:
            active = np.concatenate([samples[near] for near in activity.near(first, end, _NORMALISED_S)])
        part = torch.from_numpy(own).to(device)
        statistics = model.encoder.statistics(torch.from_numpy(active).to(device))
        out = model(part[None], torch.tensor([len(part)], device=part.device), heads, statistics)
        hops = {name: emissions.hop_samples(rate) for name, emissions in out.items()}
        hop = max(hops.values())
        if any(hop % h for h in hops.values()) or window < hop:
            raise ValueError(
                f"Windows of {windows.window_s} s cannot be joined: expected them to be longer than a frame, and "
                f"the frames of one head to divide those of another; their hops are {hops} samples."
            )
        # a last piece within the context of this window belongs to it: alone it may be too short for a frame
        stop = total if end == total else start + window // hop * hop
        yield (
            stop / total,
            {
                name: _kept(e, (start - first) // hops[name], (stop - first) // hops[name], stop == total)
                for name, e in out.items()
            },
        )
        start = stop
        # the context, rounded up to whole frames, so that the next window lies on the frame grid
        first = max(0, start - -(-context // hop) * hop)


def _kept(emissions: Emissions, first: int, last: int, to_end: bool) -> Emissions:
    frames = int(emissions.lengths[0])
    if not to_end and frames < last:
        raise ValueError(
            "Windows expect a context longer than what a frame sees; the last frames of a window are not there. "
            "Give them more context."
        )
    return emissions.frames([(0, slice(first, frames if to_end else last))])
