"""The C library espeak-ng through ctypes: sounds, samples and the names of voices.

The library comes from the ``espeakng-loader`` wheel (``pip install "isotone[synth]"``) and is loaded at its first use.
Its C code keeps its state in static variables: it is not re-entrant, and its samples depend on earlier calls. Every
:class:`Library` therefore opens a copy of the file, seeds it, and holds a lock during each call: equal calls on two new
libraries give equal samples.
"""

from __future__ import annotations

import ctypes
import difflib
import functools
import itertools
import re
import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Samples per second of all speech from espeak-ng.
SAMPLE_RATE = 22050

# speak_lib.h
_AUDIO_SYNCHRONOUS = 2
_PHONEME_EVENTS, _DONT_EXIT = 0x0001, 0x8000
_CHARS_UTF8 = 1
_RATE, _PITCH, _RANGE = 1, 3, 4
_END, _WORD, _PHONEME = 0, 1, 7
_SEPARATED = ord("_") << 8  # TextToPhonemes: "_" between phonemes
_IPA = 0x02  # TextToPhonemes: the International Phonetic Alphabet

_STRESS_MARKS = "',%="


class EspeakNotInstalled(ImportError):
    """The optional wheel with the espeak-ng library is not installed."""


class EspeakError(RuntimeError):
    """espeak-ng reported a failure."""


class UnknownVoice(ValueError):
    """espeak-ng has no such voice or variant."""


class Sound(NamedTuple):
    """A phoneme event.

    Attributes:
        label: Mnemonic without its stress mark.
        sample: The sample at which the synthesiser began to play it, at :data:`SAMPLE_RATE`.
        position: Number of the character, from 1, at which its word begins in the text.
    """

    label: str
    sample: int
    position: int


class _EventId(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),  # milliseconds
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _EventId),
    )


_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


class Library:
    """A private copy of espeak-ng, whose samples depend on its seed and its earlier calls, and on nothing else.

    Args:
        seed: Seed of the breath noise of some voices.

    Raises:
        EspeakNotInstalled: ``espeakng-loader`` is not installed.
        EspeakError: the library does not start.
    """

    def __init__(self, seed: int = 0) -> None:
        self._lock = threading.Lock()
        self._chunks: list[NDArray[np.int16]] = []
        self._sounds: list[Sound] = []
        self._position = 1
        self._voice = ""
        self._library = _open_copy()
        self._callback = _Callback(
            self._receive
        )  # a reference: it must live as long as the library may call it
        data = str(_loader().get_data_path())
        rate = self._library.espeak_Initialize(
            _AUDIO_SYNCHRONOUS, 0, data.encode(), _PHONEME_EVENTS | _DONT_EXIT
        )
        if rate != SAMPLE_RATE:
            raise EspeakError(f"espeak-ng with data in {data}: expected {SAMPLE_RATE} Hz, got {rate}.")
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(seed + 1))
        self._library.espeak_SetSynthCallback(self._callback)

    def say(
        self, text: str, voice: str, rate: int, pitch: int, pitch_range: int
    ) -> tuple[NDArray[np.int16], list[Sound]]:
        """Synthesise a text; return its samples and phoneme events.

        Args:
            text: Plain text; control characters other than white space are errors.
            voice: Name of a language, optionally with a variant after ``+``: ``"en-us+f1"``.
            rate: Words per minute, 80 to 450.
            pitch, pitch_range: Base pitch and its variation, 0 to 99.

        Raises:
            UnknownVoice: no such voice or variant; the message names similar ones.
            ValueError: control characters, or a setting out of its range.
            EspeakError: espeak-ng reports a failure.
        """
        _check(text, rate=(rate, 80, 450), pitch=(pitch, 0, 99), pitch_range=(pitch_range, 0, 99))
        with self._lock:
            self._select(voice)
            for parameter, value in ((_RATE, rate), (_PITCH, pitch), (_RANGE, pitch_range)):
                self._library.espeak_SetParameter(parameter, value, 0)
            self._chunks, self._sounds, self._position = [], [], 1
            data = text.encode()
            status = self._library.espeak_Synth(
                data, ctypes.c_size_t(len(data) + 1), 0, 0, 0, _CHARS_UTF8, None, None
            )
            if status:
                raise EspeakError(f"espeak-ng could not say {text!r}: status {status}.")
            samples = np.concatenate(self._chunks) if self._chunks else np.zeros(0, np.int16)
            return samples, self._sounds

    def pronounce(self, word: str, voice: str) -> list[str]:
        """Return the mnemonics of a single word without stress marks, without synthesis."""
        labels = (
            p.lstrip(_STRESS_MARKS) for p in re.split(r"[_ ]+", self._phonemes(word, voice, _SEPARATED))
        )
        return [label for label in labels if label]

    def ipa(self, text: str, voice: str) -> list[list[str]]:
        """Return the phones of a text in the International Phonetic Alphabet, with stress marks, without synthesis.

        Args:
            text: Plain text; control characters other than white space are errors.
            voice: As in :meth:`say`.

        Returns:
            One list per group that espeak-ng treats as one word; some pairs of words ("of the") are one group.

        Raises:
            UnknownVoice: no such voice; the message names similar ones.
            ValueError: control characters.
        """
        _check(text)
        # "(en)" marks a word that is read in another language
        phones = re.sub(r"\([a-z-]+\)", "", self._phonemes(text, voice, _SEPARATED | _IPA))
        groups = ([p for phone in group.split("_") if (p := phone.strip("'-"))] for group in phones.split())
        return [group for group in groups if group]

    def _phonemes(self, text: str, voice: str, mode: int) -> str:
        with self._lock:
            self._select(voice)
            convert = self._library.espeak_TextToPhonemes
            convert.restype = ctypes.c_char_p
            convert.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
            rest = ctypes.c_char_p(text.encode())
            clauses = []
            while rest.value:
                clauses.append(convert(ctypes.byref(rest), _CHARS_UTF8, mode).decode())
        return " ".join(clauses)

    def _select(self, voice: str) -> None:
        if voice == self._voice:  # a change queues commands that only synthesis takes out again
            return
        language, plus, variant = voice.partition("+")
        check_language(language)
        if plus and variant not in variants():  # espeak-ng itself would silently use none
            raise UnknownVoice(_unknown(variant, variants(), "voice variant"))
        # of a language's names espeak-ng knows the first, and the name of its file
        names = (voice, f"{_files()[language.lower()]}{plus}{variant}")
        if all(self._library.espeak_SetVoiceByName(name.encode()) for name in names):
            raise EspeakError(f"espeak-ng could not load the voice {voice!r}.")
        self._voice = voice

    def _receive(self, wave: Any, count: int, events: Any) -> int:
        if wave and count:
            self._chunks.append(np.ctypeslib.as_array(wave, (count,)).copy())
        for i in itertools.count():
            event = events[i]
            if event.type == _END:
                break
            if event.type == _WORD:
                self._position = event.text_position
            elif event.type == _PHONEME:
                label = event.id.string.decode().lstrip(_STRESS_MARKS)
                self._sounds.append(Sound(label, event.sample, self._position))
        return 0


@functools.cache
def variants() -> tuple[str, ...]:
    """Return the names of the voice variants, which follow a ``+``."""
    return tuple(sorted(p.name for p in (Path(_loader().get_data_path()) / "voices" / "!v").iterdir()))


@functools.cache
def languages() -> tuple[str, ...]:
    """Return the names of the languages, in lower case."""
    return tuple(sorted(_files()))


def check_language(name: str) -> None:
    """Check that espeak-ng has a language.

    Raises:
        UnknownVoice: it does not; the message names similar ones.
    """
    if name.lower() not in languages():
        raise UnknownVoice(_unknown(name, languages(), "voice"))


@functools.cache
def _files() -> dict[str, str]:
    """Return the name of the file that describes each language."""
    found: dict[str, str] = {}
    for path in sorted((Path(_loader().get_data_path()) / "lang").rglob("*")):
        if path.is_file():
            for name in re.findall(r"^language\s+(\S+)", path.read_text("utf-8"), re.MULTILINE):
                found.setdefault(name.lower(), path.name)
    return found


def _check(text: str, **settings: tuple[int, int, int]) -> None:
    # espeak-ng reads some control characters as commands
    if found := [c for c in text if ord(c) < 32 and not c.isspace()]:
        raise ValueError(f"espeak-ng expects text without control characters; got {found[0]!r} in {text!r}.")
    for name, (value, low, high) in settings.items():
        if not low <= value <= high:
            raise ValueError(f"espeak-ng expects {name} from {low} to {high}; got {value}.")


def _unknown(name: str, known: Sequence[str], kind: str) -> str:
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.4) or known[:5]
    return f"espeak-ng has no {kind} {name!r}. Near it are {', '.join(near)}, of {len(known)}."


def _open_copy() -> ctypes.CDLL:
    """Open a copy of the library, with static variables of its own."""
    source = Path(_loader().get_library_path())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return ctypes.CDLL(str(shutil.copy(source, Path(folder) / source.name)))


def _loader() -> Any:
    try:
        import espeakng_loader
    except ImportError as error:
        raise EspeakNotInstalled(
            'Synthetic speech, and words in phones, need espeak-ng: pip install "isotone[synth]".'
        ) from error
    return espeakng_loader
