"""Speech and pronunciations from espeak-ng, with the times of every phone."""

from __future__ import annotations

import bisect
import difflib
import functools
import re
from collections.abc import Sequence

from isotone.text.espeak_library import (
    SAMPLE_RATE,
    EspeakError,
    EspeakNotInstalled,
    Library,
    Sound,
    UnknownVoice,
)
from isotone.text.espeak_phones import Phone, Speech, phones_of, timit_speech
from isotone.text.espeak_timit import PAUSE, UnmappedPhone, to_timit

__all__ = [
    "PAUSE", "SAMPLE_RATE", "Engine", "EspeakError", "EspeakNotInstalled", "Phone", "Speech", "UnknownVoice",
    "UnmappedPhone", "phonemize", "synthesise", "timit_speech", "to_timit",
]  # fmt: skip


class Engine:
    """A speaker with a private copy of espeak-ng.

    Its samples depend on its seed and its earlier calls, and on nothing else. Calls from several threads wait for each
    other.

    Args:
        seed: Seed of the breath noise of some voices.

    Raises:
        EspeakNotInstalled: ``espeakng-loader`` is not installed.
        EspeakError: the library does not start.
    """

    def __init__(self, seed: int = 0) -> None:
        self._library = Library(seed)

    def say(
        self, text: str, *, voice: str = "en-us", rate: int = 175, pitch: int = 50, pitch_range: int = 50
    ) -> Speech:
        """Synthesise a text, with the times of its phones.

        A phone begins at the sample at which the synthesiser begins to play it, with two exceptions:

        - Stops and affricates begin with their closure, even if it is silent. Other short silences between words belong
          to the phone before them.
        - Some sounds begin inside the event of their neighbour: a dark l and an r in the vowel before them, a vowel in
          the sonorant or voiced stop before it. Their boundary moves into the neighbour by a fixed share of its length.

        Args:
            text: Plain text; control characters other than white space are errors.
            voice: Name of a language, optionally with a variant after ``+``: ``"en-us+f1"``.
            rate: Words per minute, 80 to 450.
            pitch: Base pitch, 0 to 99.
            pitch_range: Variation of the pitch, 0 to 99.

        Returns:
            The speech. Its phones are espeak-ng's mnemonics without stress marks; pauses are :data:`PAUSE`.

        Raises:
            UnknownVoice: no such voice or variant; the message names similar ones.
            ValueError: control characters, or a setting out of its range.
            EspeakError: espeak-ng reports a failure.
        """
        samples, sounds = self._library.say(text, voice, rate, pitch, pitch_range)
        words, numbers = self._words(text, sounds, voice)
        return Speech(samples, words, phones_of(samples, sounds, numbers))

    def _words(self, text: str, sounds: Sequence[Sound], voice: str) -> tuple[tuple[str, ...], list[int]]:
        """Return the words of a text, and for every event the number of its word, -1 in pauses."""
        found = list(re.finditer(r"\S+", text))
        words = tuple(m.group() for m in found)
        starts = [m.start() for m in found]
        first = [max(0, bisect.bisect_right(starts, s.position - 1) - 1) for s in sounds]
        numbers = [-1] * len(first)
        spoken = [i for i, s in enumerate(sounds) if not s.label.startswith(PAUSE)]
        known = sorted({first[i] for i in spoken})
        # espeak-ng merges some pairs ("of the") into one word, so the next event skips a word; the phones of such a
        # group are divided among its words.
        for word, after in zip(known, [*known[1:], len(words)]):
            group = [i for i in spoken if first[i] == word]
            sizes = [len(group)]
            if after > word + 1:
                alone = [self._library.pronounce(w, voice) for w in words[word:after]]
                sizes = divide_phones([sounds[i].label for i in group], alone)
            for offset, size in enumerate(sizes):
                for i in group[:size]:
                    numbers[i] = word + offset
                group = group[size:]
        return words, numbers


def divide_phones(phones: list[str], alone: list[list[str]]) -> list[int]:
    """Divide the phones of a group of words: the counts that make each part most like its word spoken alone.

    Dynamic programming over (words so far, phones so far).
    """
    spoken = [i for i, word in enumerate(alone) if word]  # a dash between words has no phones
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


@functools.cache
def _engine() -> Engine:
    return Engine()


def synthesise(
    text: str, *, voice: str = "en-us", rate: int = 175, pitch: int = 50, pitch_range: int = 50
) -> Speech:
    """Synthesise a text with the engine of this process; arguments, times and errors are as in :meth:`Engine.say`.

    The phones of a text are the same in every call; their samples differ by a few milliseconds. For reproducible
    samples use an :class:`Engine` of your own.
    """
    return _engine().say(text, voice=voice, rate=rate, pitch=pitch, pitch_range=pitch_range)


def phonemize(words: Sequence[str], voice: str = "en-us") -> list[list[str]]:
    """Return the TIMIT phones (of the 61) of every word, as pronounced among its neighbours.

    They are the phones that :func:`synthesise` plays: *the* before a vowel is ``dh ix``, *at* in *at all* has a flap.

    Args:
        words: Words in order, with punctuation or without.
        voice: espeak-ng's name of a voice, en-us or a variant of it.

    Returns:
        One list per word, empty for a word without sound (a lone dash).

    Raises:
        ValueError: a word is empty or has white space in it.
        UnknownVoice: no such voice.
        UnmappedPhone: the voice has phones that TIMIT does not have.
    """
    for word in words:
        if word.split() != [word]:
            raise ValueError(f"phonemize expects words without white space; got {word!r}.")
    return timit_speech(synthesise(" ".join(words), voice=voice)).pronunciations()
