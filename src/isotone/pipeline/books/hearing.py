"""Speech as scores of labels, without a text: a row for every sound that a model seems to hear."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.audio import Samples
from isotone.pipeline.books.book import heard_labels
from isotone.pipeline.forced import ForcedPipeline
from isotone.tensors import torch
from isotone.types import Emissions

#: Scores are whole numbers: so many are one nat.
PER_NAT = 16

#: Least probability of a sound in a frame, of all labels together.
_LEAST = 0.15

#: Weight of the model's opinion; the rest is that any label was said, as often as in the book.
_TRUST = 0.8

# Seconds that are heard at once, and seconds on both sides of them that are dropped.
_PART_S, _BESIDE_S = 240.0, 4.0


class Heard(NamedTuple):
    """The sounds of a recording.

    Attributes:
        scores: ``(n, V)`` int16, log-likelihood ratio of every label against the frequency of labels, in sixteenths of
            a nat; 0 for labels that are not heard.
        times: ``(n,)`` float64, their beginnings in seconds.
    """

    scores: NDArray[np.int16]
    times: NDArray[np.float64]


def hear(pipeline: ForcedPipeline, id: str, samples: Samples, frequencies: NDArray[np.float64]) -> Heard:
    """Hear a recording of any length, part by part.

    Args:
        pipeline: The model; the head is that which recognises text.
        id: Utterance id, for errors.
        samples: ``(N,)`` at the model's sample rate.
        frequencies: ``(V,)`` probabilities of the labels in the book.

    Raises:
        AlignmentError: the recording is too short for a frame.
    """
    head = pipeline.model.decoding.text
    heard = heard_labels(pipeline.tokenizer)
    rate = pipeline.model.encoder.sample_rate
    rows, times = [], []
    for part, kept in _parts(len(samples) / rate):
        first = round(part[0] * rate)
        with pipeline.model.tensors():
            emissions = pipeline.emitter([id], [samples[first : round(part[1] * rate)]], {head})[head]
            probabilities = _probabilities(emissions.to("cpu"), len(heard))
        frames = _sounds(probabilities, heard)
        hop, offset = emissions.grid.hop_s, emissions.grid.seconds(0)
        seconds = first / rate + offset + frames * hop
        inside = (seconds >= kept[0]) & (seconds < kept[1])
        rows.append(_scores(probabilities[frames[inside]] * heard, frequencies * heard))
        times.append(seconds[inside])
        pipeline.on_window(kept[1] * rate / len(samples) / 2)
    return Heard(np.concatenate(rows), np.concatenate(times))


def _parts(seconds: float) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Divide a recording: yield what is heard, and what of it is kept, in seconds."""
    count = max(1, round(seconds / _PART_S))
    for number in range(count):
        start, end = seconds * number / count, seconds * (number + 1) / count
        last = number + 1 == count
        yield (
            (max(0.0, start - _BESIDE_S), seconds if last else min(seconds, end + _BESIDE_S)),
            (start if number else -np.inf, np.inf if last else end),
        )


def _probabilities(emissions: Emissions, labels: int) -> NDArray[np.float32]:
    """Return the probabilities of the labels in every frame ``(T, V)``; states of a label are added up."""
    found = torch.softmax(emissions.logits[0, : int(emissions.lengths[0])].float(), -1).numpy()
    return found if found.shape[1] == labels else found.reshape(len(found), -1, labels).sum(1)


def _sounds(probabilities: NDArray[np.float32], heard: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Find the frames in which a label begins to be the likeliest one of those that are heard."""
    own = probabilities * heard
    likeliest = np.where(own.sum(1) > _LEAST, own.argmax(1), -1)
    return np.flatnonzero((np.diff(likeliest, prepend=-2) != 0) & (likeliest >= 0))


def _scores(own: NDArray[np.float32], frequencies: NDArray[np.float64]) -> NDArray[np.int16]:
    known = frequencies > 0
    share = own / np.maximum(own.sum(1, keepdims=True), 1e-9)
    ratio = np.where(known, share / np.where(known, frequencies, 1.0), 1.0)
    return np.round(PER_NAT * np.log(_TRUST * ratio + (1 - _TRUST))).astype(np.int16)
