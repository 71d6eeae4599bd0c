"""Hush: frames that are far quieter than the speech around them, where speech scores less than silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isotone.pipeline.activity import RATE, quiet
from isotone.tensors import torch
from isotone.types import Emissions

if TYPE_CHECKING:
    from isotone.model import Model

#: Nats per frame by which every label but silence and blank scores less where it is quiet. A model that has heard few
#: rooms takes the noise of another one, or a breath, for weak sounds, and puts words there.
HUSH_COST = 5.0


def hushed(
    emissions: Mapping[str, Emissions], audio: Sequence[np.ndarray], model: Model
) -> dict[str, Emissions]:
    """Lower the scores of speech where recordings are quiet (:func:`isotone.pipeline.activity.quiet`).

    Args:
        emissions: Emissions of a batch by head.
        audio: ``(N,)`` float32 samples of every recording.
        model: The model that made them. If its labels have no silence nothing changes.
    """
    silence = model.tokenizer.silence_number
    if silence is None:
        return dict(emissions)
    found = [quiet(samples, model.encoder.sample_rate) for samples in audio]
    if not any(frames.any() for frames in found):
        return dict(emissions)
    return {
        head: _hushed(own, found, silence, len(model.tokenizer.labels)) for head, own in emissions.items()
    }


def _hushed(emissions: Emissions, found: Sequence[np.ndarray], silence: int, labels: int) -> Emissions:
    """Lower the scores of one head, in the frames that are quiet in every row."""
    _, frames, size = emissions.logits.shape
    grid = emissions.grid
    # of a head with states, label v has the scores v, V + v, 2 V + v ...
    spoken = np.isin(np.arange(size) % labels, [silence, emissions.blank], invert=True)
    near = np.floor((grid.offset_s + (np.arange(frames) + 0.5) * grid.hop_s) * RATE).astype(int)
    costs = np.stack([own[near.clip(0, len(own) - 1)] for own in found])[..., None] * spoken
    lower = torch.from_numpy(np.float32(HUSH_COST) * costs.astype(np.float32))
    return replace(emissions, logits=emissions.logits - lower.to(emissions.logits.device))
