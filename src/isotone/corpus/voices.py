"""Synthetic speakers: varied espeak-ng voices, recorded by different microphones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import soxr
from numpy.typing import NDArray
from scipy.signal import lfilter

from isotone.text.espeak import SAMPLE_RATE as ESPEAK_RATE
from isotone.text.espeak import Engine, timit_speech

#: Samples per second of the corpus.
SAMPLE_RATE = 16000

#: espeak-ng variants that sound like plain speech and differ from each other. Variants with echo, which blurs the
#: times, and of the Klatt synthesiser, which shifts sounds, are not included.
VARIANTS = {
    "F": ("f1", "Andrea", "anika", "Annie", "aunty", "belinda", "grandma", "linda", "shelby", "steph"),
    "M": (
        "m1", "m3", "m4", "m5", "m7", "m8", "Alex", "Andy", "antonio", "boris", "Denis", "ed", "Gene", "grandpa",
        "gustave", "iven2", "Jacky", "kaukovalta", "Lee", "marcelo", "max", "Michael", "Mike", "Mr serious",
        "norbert", "Nguyen", "paul", "quincy", "rob", "travis",
    ),
}  # fmt: skip

# Share of women among the speakers, close to TIMIT's.
_WOMEN = 0.28


class Mark(NamedTuple):
    """A label from ``start`` to ``end``: sample numbers at :data:`SAMPLE_RATE`."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Speaker:
    """A synthetic speaker and the microphone.

    Attributes:
        name: As in TIMIT: sex, three letters, a digit.
        variant: espeak-ng's voice variant.
        rate: Words per minute.
        pitch, pitch_range: 0 to 99, in espeak-ng's scales.
        size: Length of the vocal tract relative to the variant's: formants and pitch are divided by it, durations
            are multiplied.
        tilt_db: Gain of the microphone at 4 kHz, relative to low frequencies.
        peak_hz, peak_db: Resonance of the microphone.
        noise_db: Signal-to-noise ratio.
    """

    name: str
    variant: str
    rate: int
    pitch: int
    pitch_range: int
    size: float
    tilt_db: float
    peak_hz: float
    peak_db: float
    noise_db: float


@dataclass(frozen=True)
class Utterance:
    """A sentence spoken by one speaker.

    Attributes:
        speaker: Name of the speaker.
        number: Number of the sentence, unique per speaker.
        text: The text as written.
        samples: ``(n,)`` int16 at :data:`SAMPLE_RATE`.
        phones: TIMIT's 61 without closures, from the first sample to the last; ``h#`` at both ends.
        words: Lower case, without punctuation; gaps are pauses.
    """

    speaker: str
    number: int
    text: str
    samples: NDArray[np.int16]
    phones: tuple[Mark, ...]
    words: tuple[Mark, ...]


def speakers(train: int, test: int, seed: int) -> tuple[list[Speaker], list[Speaker]]:
    """Draw speakers for training and for testing, which share no variant of espeak-ng.

    With more speakers than variants, several speakers of one side share a variant and differ in pitch, rate and size.
    """
    rng = np.random.default_rng([seed, 1])
    pools: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for sex, variants in VARIANTS.items():
        order = [variants[i] for i in rng.permutation(len(variants))]
        cut = min(len(order) - 1, max(1, round(len(order) * train / (train + test))))
        pools[0][sex], pools[1][sex] = order[:cut], order[cut:]
    names = iter(f"X{chr(65 + i // 26 % 26)}{chr(65 + i % 26)}{i // 676}" for i in range(6760))
    sides = []
    for pool, count in zip(pools, (train, test)):
        women = round(count * _WOMEN)
        turns = [("F", i) for i in range(women)] + [("M", i) for i in range(count - women)]
        sides.append([_speaker(s + next(names), pool[s][i % len(pool[s])], rng) for s, i in turns])
    return sides[0], sides[1]


def _speaker(name: str, variant: str, rng: np.random.Generator) -> Speaker:
    def draw(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), 3)

    return Speaker(
        name=name,
        variant=variant,
        rate=int(rng.integers(135, 196)),
        pitch=int(rng.integers(30, 71)),
        pitch_range=int(rng.integers(30, 71)),
        size=draw(0.93, 1.07),
        tilt_db=draw(-6, 6),
        peak_hz=round(300 * 12 ** draw(0, 1), 1),
        peak_db=draw(-4, 4),
        noise_db=draw(20, 45),
    )


def record(
    engine: Engine,
    speaker: Speaker,
    number: int,
    text: str,
    rng: np.random.Generator,
    *,
    channel: bool = True,
) -> Utterance:
    """Synthesise a sentence by one speaker, with 0.05 to 0.3 s of silence at both ends.

    Positions are scaled exactly from espeak-ng's 22050 Hz (:meth:`isotone.text.espeak.Engine.say` defines them);
    resampling has linear phase and no delay.

    Args:
        engine: The synthesiser; samples depend on its state and on ``rng``.
        speaker: The speaker.
        number: Number of the sentence.
        text: Plain text.
        rng: Random numbers for silence, gain and noise.
        channel: Simulate a microphone, noise and a random level; otherwise the speech is clean, with a peak of -6 dB.
    """
    speech = timit_speech(
        engine.say(
            text,
            voice=f"en-us+{speaker.variant}",
            rate=speaker.rate,
            pitch=speaker.pitch,
            pitch_range=speaker.pitch_range,
        )
    )
    first, last = speech.phones[0].start, speech.phones[-1].end
    rate = ESPEAK_RATE / speaker.size
    head, tail = (int(n) for n in rng.integers(SAMPLE_RATE // 20, SAMPLE_RATE * 3 // 10, 2))

    def at(position: int) -> int:
        return head + round((position - first) * SAMPLE_RATE / rate)

    sound = soxr.resample(speech.samples[first:last].astype(np.float32), rate, SAMPLE_RATE)[: at(last) - head]
    samples = np.zeros(at(last) + tail)
    samples[head : head + len(sound)] = sound
    level_db = -6.0
    if channel:
        samples = noisy(microphone(samples, speaker), speaker.noise_db, float(rng.uniform(0.5, 0.98)), rng)
        level_db = float(rng.uniform(-15, -3))
    samples *= 32767 * 10 ** (level_db / 20) / np.abs(samples).max()

    phones = [Mark(p.label, at(p.start), at(p.end)) for p in speech.phones]
    words = []
    for i, word in enumerate(speech.words):
        inside = [mark for mark, phone in zip(phones, speech.phones) if phone.word == i]
        if inside:
            words.append(Mark(word.strip('.,;:!?"').lower(), inside[0].start, inside[-1].end))
    silence = Mark("h#", 0, head), Mark("h#", at(last), len(samples))
    marks = (silence[0], *phones, silence[1])
    return Utterance(speaker.name, number, text, np.round(samples).astype(np.int16), marks, tuple(words))


def microphone(samples: NDArray[np.float64], speaker: Speaker) -> NDArray[np.float64]:
    """Filter speech by a spectral tilt and one broad resonance: minimum phase, with at most 0.5 ms of delay."""
    zero = 0.1 * abs(speaker.tilt_db)
    tilt = [1.0, -zero], [1.0, -zero / 2]
    numerator, denominator = tilt if speaker.tilt_db > 0 else tilt[::-1]
    samples = lfilter(numerator, denominator, samples)
    # the peaking equaliser of R. Bristow-Johnson's cookbook, Q = 0.7
    gain = 10 ** (speaker.peak_db / 40)
    angle = 2 * np.pi * speaker.peak_hz / SAMPLE_RATE
    alpha, middle = np.sin(angle) / 1.4, -2 * np.cos(angle)
    return np.asarray(
        lfilter(
            [1 + alpha * gain, middle, 1 - alpha * gain],
            [1 + alpha / gain, middle, 1 - alpha / gain],
            samples,
        )
    )


def noisy(
    samples: NDArray[np.float64], ratio_db: float, colour: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Add noise ``ratio_db`` below the mean power of the speech; ``colour``, 0 to 1, is its pole: more is lower."""
    noise = lfilter([1.0], [1.0, -colour], rng.standard_normal(len(samples)))
    speech = samples[np.abs(samples) > 1e-3 * np.abs(samples).max()]
    return samples + noise * np.sqrt(np.mean(speech**2) / np.mean(noise**2)) * 10 ** (-ratio_db / 20)
