"""Sentences from synthesisers: flite's four voices, and those of espeak-ng."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from isotone.corpus.voices import SAMPLE_RATE, Mark, Speaker, record
from isotone.text.espeak import Engine
from isotone.text.phones import SILENT

#: Voices of flite: three statistical voices of real speakers, and one of diphones.
FLITE = ("slt", "rms", "awb", "kal16")


@dataclass(frozen=True)
class Spoken:
    """A sentence as a synthesiser spoke it.

    Attributes:
        samples: ``(n,)`` float64 at :data:`isotone.corpus.voices.SAMPLE_RATE`, from the first phone to the last.
        phones: Phones of TIMIT's 61 without closures; ``pau`` for pauses within.
    """

    samples: NDArray[np.float64]
    phones: tuple[Mark, ...]


def by_flite(text: str, voice: str, size: float, stretch: float, pitch_hz: float) -> Spoken:
    """Speak a text by flite.

    Args:
        text: Plain text.
        voice: One of :data:`FLITE`.
        size: Length of the vocal tract relative to the voice's own: formants and pitch are divided by it.
        stretch: Factor of all durations.
        pitch_hz: Mean pitch, for voices that obey it.

    Raises:
        ImportError: flite is not installed.
        ValueError: flite says nothing for this text.
    """
    if shutil.which("flite") is None:
        raise ImportError("There is no command 'flite': install it, as in 'apt-get install flite'.")
    with tempfile.TemporaryDirectory() as folder:
        wave = Path(folder, "speech.wav")
        # the resampling below stretches by the size as well
        settings = {"duration_stretch": stretch / size, "int_f0_target_mean": pitch_hz * size}
        options = [part for name, value in settings.items() for part in ("--setf", f"{name}={value:.4f}")]
        command = ["flite", "-voice", voice, *options, "-psdur", "-t", text, "-o", str(wave)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        samples, rate = soundfile.read(wave)
    samples = soxr.resample(samples, rate / size, SAMPLE_RATE)
    marks, start = [], 0
    for label, seconds in re.findall(r"(\S+):([\d.]+)", said):
        end = min(round(float(seconds) * size * SAMPLE_RATE), len(samples))
        marks.append(Mark(label, start, end))
        start = end
    return _without_ends(samples, marks, text)


def by_espeak(engine: Engine, text: str, speaker: Speaker) -> Spoken:
    """Speak a text by espeak-ng, without microphone and noise."""
    said = record(engine, speaker, 0, text, np.random.default_rng(0), channel=False)
    return _without_ends(said.samples / 32768, list(said.phones), text)


def _without_ends(samples: NDArray[np.float64], marks: list[Mark], text: str) -> Spoken:
    spoken = [i for i, mark in enumerate(marks) if mark.label not in SILENT and mark.end > mark.start]
    if not spoken:
        raise ValueError(f"The synthesiser says nothing for {text!r}.")
    kept = [mark for mark in marks[spoken[0] : spoken[-1] + 1] if mark.end > mark.start]
    first, last = kept[0].start, kept[-1].end
    return Spoken(samples[first:last], tuple(Mark(m.label, m.start - first, m.end - first) for m in kept))
