"""Channels of a recording, and the speakers who are heard on them: by their levels, or by their order.

A dialogue can have a microphone for each speaker, and a channel for each microphone. A speaker's own channel is the one
that is louder while this speaker talks, compared with while the others talk. So the gain of a channel does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isotone import audio as sound
from isotone.transcripts import Passage

#: Ways to use the channels of a recording: each speaker's own where the levels are clear, by the order of the
#: speakers, or their mean.
WAYS = ("auto", "order", "mix")

#: dB by which a speaker's own channel is louder than all others, at least.
CLEAR_DB = 6.0

# Frames in which levels are measured, per second; the least number of them in which a speaker talks alone; and the
# power of digital silence.
_RATE, _LEAST, _SILENCE = 100, 50, 1e-10


@dataclass(frozen=True)
class Channels:
    """The channels of speakers.

    Attributes:
        path: The recording.
        of: Number of the channel of every speaker, from 0 on; None is the speaker of passages without one.
        notes: Sentences on the assignment, for people.
    """

    path: Path
    of: Mapping[str | None, int]
    notes: tuple[str, ...] = ()

    def load(self, channel: int, sample_rate: int) -> np.ndarray:
        """Read the samples ``(N,)`` of a channel."""
        return sound.load(self.path, sample_rate, channel=channel)


def channels_of(path: Path, passages: Sequence[Passage], sample_rate: int, way: str) -> Channels | None:
    """Find the channel of every speaker of a recording.

    Args:
        path: The recording.
        passages: Its passages, with times. The order of speakers is that of the passages' numbers.
        sample_rate: Hz at which it is read: one channel after the other, so that memory holds one of them.
        way: One of :data:`WAYS`.

    Returns:
        None where the mean of the channels is to be used: there is one channel or one speaker, or the levels do not
        tell who is where.

    Raises:
        AudioError: the recording cannot be read.
        ValueError: another way.
    """
    if way not in WAYS:
        raise ValueError(f"The channels are used in one of the ways {', '.join(WAYS)}; got {way!r}.")
    speakers = list(dict.fromkeys(p.speaker for p in sorted(passages, key=lambda p: p.number or 0)))
    if way == "mix" or len(speakers) < 2 or (count := sound.channels_of(path)) < 2:
        return None
    shares = _levels(path, passages, speakers, count, sample_rate)
    heard, clear = shares.argmax(axis=1), _clear(shares)
    if way == "auto":
        if not clear.all() or len(set(heard.tolist())) < count:
            return None
        of = dict(zip(speakers, heard.tolist()))
        return Channels(path, of, (f"each speaker is on a channel: {_named(of)}, by their levels",))
    of = {speaker: i * count // max(count, len(speakers)) for i, speaker in enumerate(speakers)}
    notes = [f"each speaker is on a channel: {_named(of)}, by their order"]
    if wrong := {s: int(c) for s, c, sure in zip(speakers, heard, clear) if sure and of[s] != c}:
        notes.append(f"the levels say otherwise: {_named(wrong)} (--channels auto)")
    return Channels(path, of, tuple(notes))


def _levels(
    path: Path, passages: Sequence[Passage], speakers: Sequence[str | None], count: int, sample_rate: int
) -> np.ndarray:
    """Measure the level of every channel while each speaker talks, dB over its mean: ``(speakers, channels)``.

    Rows of speakers who are not heard at all are NaN.
    """
    step = sample_rate // _RATE
    columns, alone = [], np.zeros((0, 0), bool)
    for channel in range(count):
        samples = sound.load(path, sample_rate, channel=channel)
        frames = samples[: len(samples) // step * step].reshape(-1, step)
        power = np.einsum("ij,ij->i", frames, frames) / step
        if not channel:
            alone = _alone(passages, speakers, len(power))
        heard = [power[row].mean(dtype=np.float64) if row.any() else np.nan for row in alone]
        columns.append(10 * np.log10(np.array(heard) + _SILENCE))
    levels = np.stack(columns, axis=1)
    return levels - levels.mean(axis=0)


def _alone(passages: Sequence[Passage], speakers: Sequence[str | None], frames: int) -> np.ndarray:
    """Mark the frames in which each speaker talks, ``(speakers, frames)``: alone, where that is often enough."""
    talking = np.zeros((len(speakers), frames), bool)
    for passage in passages:
        if passage.start is not None and passage.end is not None:
            first, last = round(passage.start * _RATE), round(passage.end * _RATE)
            talking[speakers.index(passage.speaker), first:last] = True
    alone = talking & (talking.sum(axis=0) == 1)
    return np.where(alone.sum(axis=1, keepdims=True) >= _LEAST, alone, talking)


def _clear(shares: np.ndarray) -> np.ndarray:
    """Tell for every speaker if one channel is louder than all others by :data:`CLEAR_DB`."""
    *_, second, first = np.sort(shares, axis=1).T
    return first - second >= CLEAR_DB


def _named(of: Mapping[str | None, int]) -> str:
    return ", ".join(f"{speaker or 'unknown'} {channel + 1}" for speaker, channel in of.items())
