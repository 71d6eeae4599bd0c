"""Phones of synthetic speech: their times, from the events of espeak-ng."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.text.espeak_library import SAMPLE_RATE, Sound
from isotone.text.espeak_timit import PAUSE, TWO_PHONES, to_timit

# Mnemonics that begin with a closure: the silence before their burst is part of them.
_STOPS = frozenset({"p", "b", "t", "t2", "t#", "d", "d#", "k", "g", "tS", "dZ", "?"})

# First characters of vowels; "@L" is a syllabic l.
_VOWELS = "aeiouAEIOUV03@"

# espeak-ng plays some sounds inside the event of a neighbour; these are their shares of the neighbour's event.
# A vowel begins in the last part of the sonorant or voiced stop before it (measured: where the spectrum changes most;
# for stops, 10 to 20 ms after the burst). A dark l is the end of the vowel before it: its own event has nearly no
# length. An r begins in the vowel before it, and earlier in vowels that have other spectra before r.
_OPENING = {
    "m": 0.38, "n": 0.38, "N": 0.31, "l": 0.30, "r": 0.22, "r-": 0.22, "w": 0.20, "j": 0.18,
    "b": 0.25, "d": 0.12, "g": 0.15, "t#": 0.36,
}  # fmt: skip
_DARK_L = 0.40
_BEFORE_R = {"O:": 0.45, "O2": 0.45, "0": 0.45, "A:": 0.45, "3": 0.0, "3:": 0.0}
_BEFORE_R_ELSE = 0.27


class Phone(NamedTuple):
    """A phone from ``start`` to ``end`` (samples, exclusive), and the number of its word; -1 in a pause."""

    label: str
    start: int
    end: int
    word: int


@dataclass(frozen=True)
class Speech:
    """Synthetic speech with its phones.

    Attributes:
        samples: ``(n,)`` int16 at :data:`SAMPLE_RATE`, with some silence at both ends.
        words: The words of the text, split at white space, as written.
        phones: From the first sound to the end of the last, without gaps.
    """

    samples: NDArray[np.int16]
    words: tuple[str, ...]
    phones: tuple[Phone, ...]

    def pronunciations(self) -> list[list[str]]:
        """Return the phones of every word; none for a word without sound, such as a lone dash."""
        rows: list[list[str]] = [[] for _ in self.words]
        for phone in self.phones:
            if phone.word >= 0:
                rows[phone.word].append(phone.label)
        return rows


def phones_of(samples: NDArray[np.int16], sounds: Sequence[Sound], words: Sequence[int]) -> tuple[Phone, ...]:
    """Return the phones of espeak-ng's events; :meth:`isotone.text.espeak.Engine.say` defines their times."""
    labels: list[str] = []
    starts: list[int] = []
    numbers: list[int] = []
    for sound, word in zip(sounds, words):
        label = PAUSE if sound.label.startswith(PAUSE) else sound.label
        # ";" is a glide, part of the vowel before it; leading and repeated pauses are dropped
        if label == ";" or (label == PAUSE and (not labels or labels[-1] == PAUSE)):
            continue
        closed = label in _STOPS and labels and labels[-1] != PAUSE
        starts.append(_silence_before(samples, sound.sample) if closed else sound.sample)
        labels.append(label)
        numbers.append(word)
    starts.append(len(samples))
    # All lengths are taken before any boundary moves: a share is of the length in espeak-ng's events.
    lengths = [end - start for start, end in itertools.pairwise(starts)]
    for i in range(1, len(labels)):
        starts[i] -= round(_early(labels, numbers, i) * lengths[i - 1])
    if labels and labels[-1] == PAUSE:
        labels.pop()
    return tuple(map(Phone, labels, starts, starts[1:], numbers))


def _early(labels: Sequence[str], words: Sequence[int], i: int) -> float:
    """Return the share of the event before event i that sounds like event i."""
    before, label = labels[i - 1], labels[i]
    if before in _OPENING and _is_vowel(label):
        return _OPENING[before]
    if label not in ("l", "r") or words[i - 1] != words[i] or not _is_vowel(before):
        return 0.0
    if label == "r":
        return 0.0 if before in TWO_PHONES else _BEFORE_R.get(before, _BEFORE_R_ELSE)
    clear = i + 1 < len(labels) and words[i + 1] == words[i] and _is_vowel(labels[i + 1])
    return 0.0 if clear else _DARK_L


def _is_vowel(label: str) -> bool:
    return label[0] in _VOWELS and label != "@L"


def _silence_before(samples: NDArray[np.int16], burst: int) -> int:
    """Return the sample at which the silence before a burst begins, at most 0.2 s back; the burst if there is none."""
    first = max(0, burst - SAMPLE_RATE // 5)
    loud = np.flatnonzero(np.abs(samples[first:burst].astype(np.int32)) > 1)
    return first + int(loud[-1]) + 1 if len(loud) else first


def timit_speech(speech: Speech) -> Speech:
    """Return the same speech with TIMIT's phones (see :func:`isotone.text.espeak_timit.to_timit`).

    Two rules follow TIMIT. An r between a rhotic vowel and the next vowel is part of the ``er``, ``axr`` or ``r``
    before it (*hurry*, *starry*, *better off*). A reduced rhotic vowel before an r of its word is ``ax`` (*around*).

    Raises:
        UnmappedPhone: the speech is not of the en-us voice.
    """
    phones: list[Phone] = []
    following = [*(q if p.word == q.word else None for p, q in itertools.pairwise(speech.phones)), None]
    for phone, after in zip(speech.phones, following):
        parts = to_timit(phone.label)
        if after and after.label == "r":
            if phone.label == "3":
                parts = (("ax", 1.0),)
            elif phone.label == "i@":  # hero
                parts = ("ih", parts[0][1]), ("r", parts[1][1])
        middle = phone.start + round(parts[0][1] * (phone.end - phone.start))
        for (label, _), start, end in zip(parts, (phone.start, middle), (middle, phone.end)):
            last = phones[-1] if phones else None
            if label == "r" and last and last.word == phone.word and last.label in ("er", "axr", "r"):
                phones[-1] = last._replace(end=end)
            else:
                phones.append(Phone(label, start, end, phone.word))
    return replace(speech, phones=tuple(phones))
