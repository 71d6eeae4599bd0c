"""Arguments of one call: a recording as a file or an array, and a text as a string or a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone import audio as sound
from isotone.batch.inputs import read_passages, readable
from isotone.transcripts import Passage, documents


class Recording(NamedTuple):
    """Samples with their name.

    Attributes:
        id: Name of the recording: that of its file, or ``audio``.
        samples: ``(N,)`` float32 at the requested rate.
        path: Its file; None for an array.
    """

    id: str
    samples: NDArray[np.float32]
    path: Path | None


def recording(audio: Any, rate: float | None, sample_rate: int) -> Recording:
    """Read a recording at a sample rate.

    Args:
        audio: A path; an array, see :func:`isotone.audio.from_array`; or a pair of an array and its rate, in either
            order.
        rate: Hz of an array without a rate.
        sample_rate: Hz of the samples returned.

    Raises:
        TypeError: an array without a rate, a file or a pair with another one, or something else altogether.
        AudioError: the recording cannot be read.
    """
    if isinstance(audio, (str, Path)):
        if rate is not None:
            raise TypeError("rate= is that of an array: a file knows its own.")
        path = Path(audio)
        return Recording(readable(path.stem), sound.load(path, sample_rate), path)
    if isinstance(audio, tuple):
        if rate is not None:
            raise TypeError("The rate is given twice: in the pair, and as rate=.")
        audio, rate = _pair(audio)
    if rate is None:
        raise TypeError(
            "An array of samples needs its sample rate: align(samples, text, rate=44_100). For a recording on disk, "
            "give its path."
        )
    return Recording("audio", sound.from_array(audio, rate, sample_rate), None)


def _pair(pair: tuple[Any, ...]) -> tuple[Any, float]:
    """Return samples and rate of a pair; libraries write it in both orders."""
    numbers = [np.ndim(part) == 0 and not isinstance(part, str) for part in pair]
    if len(pair) != 2 or sum(numbers) != 1:
        raise TypeError("A recording as a pair is an array of samples and its rate: (samples, 44_100).")
    samples, rate = pair if numbers[1] else pair[::-1]
    return samples, float(rate)


#: A text, the file of a transcript, or the result of a recogniser in memory.
Text = str | Path | Mapping[str, Any] | list[Mapping[str, Any]]


def chosen_tiers(tiers: str | Sequence[str]) -> tuple[str, ...]:
    """Return the tiers that are asked for; a name alone is one of them."""
    return (tiers,) if isinstance(tiers, str) else tuple(tiers)


def passages(
    text: Text,
    recording: Recording,
    seconds: float,
    note: Callable[[str], None] = lambda warning: None,
    tiers: Sequence[str] = (),
) -> list[Passage]:
    """Return the passages of a text as it is given, of a transcript file, or of a recogniser's result.

    Args:
        text: The text; the path of a transcript; or what Whisper, WhisperX or a pipeline of transformers returned. Only
            a ``Path`` is a file; a name in a string is a text, with a warning.
        recording: The recording.
        seconds: Its duration.
        note: Is told of an encoding that was guessed, and of tiers that are left out.
        tiers: See :func:`isotone.transcripts.open_source`.

    Raises:
        TypeError: something else.
        OSError, ValueError: the transcript cannot be read.
    """
    if isinstance(text, Path):
        return read_passages(text, seconds, recording.path or Path(recording.id), note=note, tiers=tiers)
    if isinstance(text, Mapping) or (isinstance(text, list) and all(isinstance(r, Mapping) for r in text)):
        return list(documents.of(text, tiers, note))
    if not isinstance(text, str):
        raise TypeError(
            "A text is a string, a pathlib.Path of a transcript, or the result of a recogniser; got "
            f"{type(text).__name__}."
        )
    if tiers:
        raise ValueError(
            f"A text in a string has no tiers {list(tiers)}; a transcript's file is a pathlib.Path."
        )
    # a longer text is no name: asking for such a file is an error
    if 0 < len(text.encode(errors="replace")) < 256 and Path(text).is_file():
        warnings.warn(
            f"The text {text!r} is aligned as it stands, and is the name of a file: its content is Path({text!r}).",
            stacklevel=3,
        )
    return [Passage(text)]
