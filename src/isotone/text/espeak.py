"""Speech and pronunciations from espeak-ng, with the times of every phone."""

from __future__ import annotations

import bisect
import difflib
import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.text.espeak_library import (
    SAMPLE_RATE,
    EspeakError,
    EspeakNotInstalled,
    Library,
    Sound,
    UnknownVoice,
)

__all__ = [
    "PAUSE", "SAMPLE_RATE", "Engine", "EspeakError", "EspeakNotInstalled", "Phone", "Speech", "UnknownVoice",
    "UnmappedPhone", "phonemize", "synthesise", "timit_speech", "to_timit",
]  # fmt: skip

#: How a pause inside a sentence is labelled.
PAUSE = "_"

# Mnemonics that begin with a closure: silence before their burst belongs to them.
_STOPS = frozenset({"p", "b", "t", "t2", "t#", "d", "d#", "k", "g", "tS", "dZ", "?"})

# First characters of vowels; "@L" is a syllabic l.
_VOWELS = "aeiouAEIOUV03@"

# espeak-ng plays some sounds inside the event of a neighbour; these are the shares of the neighbour's event.
# The beginning of a vowel is the last part of the sonorant or voiced stop before it (measured: where the
# spectrum changes most, for stops 10 to 20 ms after the burst). A dark l is the end of the vowel before it:
# its own event has next to no length. An r begins in the vowel before it, earlier where that vowel has
# spectra of its own before r.
_OPENING = {
    "m": 0.38, "n": 0.38, "N": 0.31, "l": 0.30, "r": 0.22, "r-": 0.22, "w": 0.20, "j": 0.18,
    "b": 0.25, "d": 0.12, "g": 0.15, "t#": 0.36,
}  # fmt: skip
_DARK_L = 0.40
_BEFORE_R = {"O:": 0.45, "O2": 0.45, "0": 0.45, "A:": 0.45, "3": 0.0, "3:": 0.0}
_BEFORE_R_ELSE = 0.27

# espeak-ng's en-us mnemonics and the TIMIT phones they stand for.
_TIMIT: dict[str, str] = {
    PAUSE: "pau",
    "p": "p", "b": "b", "t": "t", "t2": "t", "d": "d", "d#": "d", "t#": "dx", "k": "k", "g": "g", "?": "q",
    "tS": "ch", "dZ": "jh", "f": "f", "v": "v", "T": "th", "D": "dh", "s": "s", "z": "z", "S": "sh",
    "Z": "zh", "h": "hh", "x": "hh", "C": "hh", "m": "m", "n": "n", "n^": "n", "N": "ng", "l": "l", "l#": "l",
    "r": "r", "r-": "r", "w": "w", "w#": "w", "j": "y", "@L": "el", "l-": "el", "n-": "en", "m-": "em",
    "i:": "iy", "i": "iy", "I": "ih", "I2": "ix", "I#": "ix", "eI": "ey", "e": "eh", "E": "eh", "a": "ae",
    "aa": "ae", "A:": "aa", "0": "aa", "O:": "ao", "O": "ao", "O2": "ao", "V": "ah", "U": "uh", "u:": "uw",
    "u": "uw", "aU": "aw", "aI": "ay", "OI": "oy", "oU": "ow", "3:": "er", "3": "axr",
    "@": "ax", "@-": "ax", "@2": "ax", "@5": "ax", "@#": "ax", "a#": "ax",
}  # fmt: skip

# Vowels that espeak-ng says as one unit and TIMIT writes as two phones, with the share of the first. The
# second begins where the third formant (the second formant, for a schwa) has gone half of its way in the
# spectra that espeak-ng plays for the vowel (phsource/vwl_en_us/aar, oor, er, ir, ur, ai3, ai@, aU@;
# vdiph2/ii@).
_TWO_PHONES: dict[str, tuple[str, str, float]] = {
    "A@": ("aa", "r", 0.59), "O@": ("ao", "r", 0.52), "o@": ("ao", "r", 0.52), "e@": ("eh", "r", 0.60),
    "i@3": ("ih", "r", 0.55), "U@": ("uh", "r", 0.68), "aU@": ("aw", "axr", 0.73), "aI3": ("ay", "axr", 0.62),
    "aI@": ("ay", "ax", 0.80), "i@": ("iy", "ax", 0.68), "A~": ("aa", "n", 0.60), "O~": ("ao", "n", 0.60),
}  # fmt: skip


class UnmappedPhone(ValueError):
    """An espeak-ng mnemonic has no counterpart in the TIMIT phone set."""


class Phone(NamedTuple):
    """A phone from ``start`` to ``end`` (samples, exclusive), in the word of that number; -1 in a pause."""

    label: str
    start: int
    end: int
    word: int


@dataclass(frozen=True)
class Speech:
    """What an engine said.

    Attributes:
        samples: ``(n,)`` int16 at :data:`SAMPLE_RATE`, with some silence at both ends.
        words: The words of the text, split at white space, as they were written.
        phones: From the first sound to the end of the last, without gaps.
    """

    samples: NDArray[np.int16]
    words: tuple[str, ...]
    phones: tuple[Phone, ...]

    def pronunciations(self) -> list[list[str]]:
        """The phones of every word; none for a word that is not said, like a lone dash."""
        rows: list[list[str]] = [[] for _ in self.words]
        for phone in self.phones:
            if phone.word >= 0:
                rows[phone.word].append(phone.label)
        return rows


class Engine:
    """A speaker with a private copy of espeak-ng.

    Its samples follow from its seed and all it was asked before, and nothing else. Calls from several threads
    wait for each other.

    Args:
        seed: For the breath noise of some voices.

    Raises:
        EspeakNotInstalled: ``espeakng-loader`` is absent.
        EspeakError: the library does not start.
    """

    def __init__(self, seed: int = 0) -> None:
        self._library = Library(seed)

    def say(
        self, text: str, *, voice: str = "en-us", rate: int = 175, pitch: int = 50, pitch_range: int = 50
    ) -> Speech:
        """Say a text, and when every phone of it is heard.

        A phone begins at the sample where the synthesiser began to play it, with these exceptions. Stops and
        affricates begin with their closure, also where that is silence; other short silences between words
        belong to the phone before them. Where espeak-ng plays a sound inside the event of its neighbour (a
        dark l and the beginning of an r in the vowel before them, the beginning of a vowel in the sonorant or
        voiced stop before it) the boundary is moved into the neighbour by a fixed share of its length.

        Args:
            text: Plain text; its control characters, if any, must be white space.
            voice: Name of a language, with a variant after ``+`` where wanted: ``"en-us+f1"``.
            rate: Words a minute, 80 to 450.
            pitch: Base pitch, 0 to 99.
            pitch_range: Liveliness of the pitch, 0 to 99.

        Returns:
            The speech; its phones are espeak-ng's mnemonics without stress marks, pauses :data:`PAUSE`.

        Raises:
            UnknownVoice: no such voice or variant; the message names near ones.
            ValueError: control characters, or a setting out of its range.
            EspeakError: espeak-ng reports a failure.
        """
        samples, sounds = self._library.say(text, voice, rate, pitch, pitch_range)
        words, numbers = self._words(text, sounds, voice)
        return Speech(samples, words, _phones(samples, sounds, numbers))

    def _words(self, text: str, sounds: Sequence[Sound], voice: str) -> tuple[tuple[str, ...], list[int]]:
        """The words of a text, and for every sound the number of its word, -1 in pauses."""
        found = list(re.finditer(r"\S+", text))
        words = tuple(m.group() for m in found)
        starts = [m.start() for m in found]
        first = [max(0, bisect.bisect_right(starts, s.position - 1) - 1) for s in sounds]
        numbers = [-1] * len(first)
        spoken = [i for i, s in enumerate(sounds) if not s.label.startswith(PAUSE)]
        known = sorted({first[i] for i in spoken})
        # espeak-ng says some pairs ("of the") as one word: the next event is then a word further on
        for word, after in zip(known, [*known[1:], len(words)]):
            group = [i for i in spoken if first[i] == word]
            sizes = [len(group)]
            if after > word + 1:
                alone = [self._library.pronounce(w, voice) for w in words[word:after]]
                sizes = _cut([sounds[i].label for i in group], alone)
            for offset, size in enumerate(sizes):
                for i in group[:size]:
                    numbers[i] = word + offset
                group = group[size:]
        return words, numbers


def _cut(phones: list[str], alone: list[list[str]]) -> list[int]:
    """How many of the phones of a group of words belong to each, by likeness to the words said alone."""
    spoken = [i for i, word in enumerate(alone) if word]  # a dash between words has no sound
    sizes = [0] * len(alone)
    best: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {(0, 0): (0.0, ())}
    for k, i in enumerate(spoken, 1):
        for end in range(len(phones) + 1):
            options = [
                (
                    best[k - 1, start][0] + _likeness(phones[start:end], alone[i]),
                    (*best[k - 1, start][1], end),
                )
                for start in range(end + 1)
                if (k - 1, start) in best
            ]
            if options:
                best[k, end] = max(options)
    ends = best[len(spoken), len(phones)][1] if spoken else ()
    for i, start, end in zip(spoken, (0, *ends), ends):
        sizes[i] = end - start
    return sizes


def _likeness(phones: list[str], alone: list[str]) -> float:
    blocks = difflib.SequenceMatcher(None, phones, alone, autojunk=False).get_matching_blocks()
    missing = 1.0 if not phones else 0.0
    return sum(b.size for b in blocks) - 0.4 * abs(len(phones) - len(alone)) - missing


def _phones(samples: NDArray[np.int16], sounds: Sequence[Sound], words: Sequence[int]) -> tuple[Phone, ...]:
    """Phones from phoneme events; :meth:`Engine.say` tells what their times mean."""
    labels: list[str] = []
    starts: list[int] = []
    numbers: list[int] = []
    for sound, word in zip(sounds, words):
        label = PAUSE if sound.label.startswith(PAUSE) else sound.label
        # ";" is the glide that ends the vowel before it
        if label == ";" or (label == PAUSE and (not labels or labels[-1] == PAUSE)):
            continue
        closed = label in _STOPS and labels and labels[-1] != PAUSE
        starts.append(_silence_before(samples, sound.sample) if closed else sound.sample)
        labels.append(label)
        numbers.append(word)
    starts.append(len(samples))
    lengths = [end - start for start, end in itertools.pairwise(starts)]
    for i in range(1, len(labels)):
        starts[i] -= round(_early(labels, numbers, i) * lengths[i - 1])
    if labels and labels[-1] == PAUSE:
        labels.pop()
    return tuple(map(Phone, labels, starts, starts[1:], numbers))


def _early(labels: Sequence[str], words: Sequence[int], i: int) -> float:
    """The share of the sound before sound i that is heard as sound i."""
    before, label = labels[i - 1], labels[i]
    if before in _OPENING and _is_vowel(label):
        return _OPENING[before]
    if label not in ("l", "r") or words[i - 1] != words[i] or not _is_vowel(before):
        return 0.0
    if label == "r":
        return 0.0 if before in _TWO_PHONES else _BEFORE_R.get(before, _BEFORE_R_ELSE)
    clear = i + 1 < len(labels) and words[i + 1] == words[i] and _is_vowel(labels[i + 1])
    return 0.0 if clear else _DARK_L


def _is_vowel(label: str) -> bool:
    return label[0] in _VOWELS and label != "@L"


def _silence_before(samples: NDArray[np.int16], burst: int) -> int:
    """Where the silence before a burst begins (0.2 s back at most); at the burst where there is none."""
    first = max(0, burst - SAMPLE_RATE // 5)
    loud = np.flatnonzero(np.abs(samples[first:burst].astype(np.int32)) > 1)
    return first + int(loud[-1]) + 1 if len(loud) else first


def to_timit(mnemonic: str) -> tuple[tuple[str, float], ...]:
    """The TIMIT phones (of the 61) of a mnemonic of espeak-ng's en-us, with their shares of its time.

    Closures are not written apart: ``t`` stands for TIMIT's ``tcl t``. The vowels that espeak-ng says as one
    unit (``A@``, as in *car*) are two phones, cut at a fixed share of their length: where the third formant
    has gone half of its way in the spectra that espeak-ng plays.

    Raises:
        UnmappedPhone: the mnemonic is not one of the en-us voice.
    """
    mnemonic = mnemonic.partition("/")[0]  # l/2, r/ ...: allophones
    if mnemonic not in _TIMIT and mnemonic.endswith(":"):  # made longer by the dictionary
        mnemonic = mnemonic[:-1]
    if mnemonic in _TWO_PHONES:
        first, second, share = _TWO_PHONES[mnemonic]
        return (first, share), (second, 1.0 - share)
    if mnemonic not in _TIMIT:
        raise UnmappedPhone(
            f"espeak-ng's phoneme {mnemonic!r} is none of the voice en-us and has no TIMIT phone."
        )
    return ((_TIMIT[mnemonic], 1.0),)


def timit_speech(speech: Speech) -> Speech:
    """The same speech with the phones that TIMIT writes (see :func:`to_timit`).

    As in TIMIT, an r between a rhotic vowel and the next vowel is part of the ``er``, ``axr`` or ``r`` before
    it (*hurry*, *starry*, *better off*), and a reduced rhotic vowel before an r of its word is ``ax``
    (*around*).

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


@functools.cache
def _engine() -> Engine:
    return Engine()


def synthesise(
    text: str, *, voice: str = "en-us", rate: int = 175, pitch: int = 50, pitch_range: int = 50
) -> Speech:
    """Say a text with the process's own engine: arguments, times and errors are those of :meth:`Engine.say`.

    The phones of a text do not change from call to call; its samples do, by a few milliseconds here and
    there. For samples that can be reproduced use an :class:`Engine` of your own.
    """
    return _engine().say(text, voice=voice, rate=rate, pitch=pitch, pitch_range=pitch_range)


def phonemize(words: Sequence[str], voice: str = "en-us") -> list[list[str]]:
    """The TIMIT phones (of the 61) of every word, as it is said among its neighbours.

    They are what :func:`synthesise` would play: *the* before a vowel is ``dh ix``, *at* in *at all* has a
    flap.

    Args:
        words: Words in order, with punctuation or without.
        voice: espeak-ng's name of a voice, en-us or a variant of it.

    Returns:
        One list a word; an empty one where nothing is said (a lone dash).

    Raises:
        ValueError: a word is empty or has white space in it.
        UnknownVoice: no such voice.
        UnmappedPhone: the voice has phones that TIMIT has not.
    """
    for word in words:
        if word.split() != [word]:
            raise ValueError(f"phonemize expects words without white space; got {word!r}.")
    return timit_speech(synthesise(" ".join(words), voice=voice)).pronunciations()
