"""Synthetic speech with exact phone times: espeak-ng voices written as a TIMIT-layout corpus."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray
from scipy.signal import lfilter

from isotone import __version__
from isotone.files import atomic_folder
from isotone.interfaces import Corpus
from isotone.text.espeak import SAMPLE_RATE, Engine, Mark, timit_phones

if TYPE_CHECKING:
    from datasets import Dataset

RATE = 16000

#: Variants of espeak-ng that sound like plain speech, by sex.
VARIANTS = {
    "M": (
        "m1", "m3", "m4", "m5", "m6", "m7", "m8", "Alex", "Andy", "boris", "ed", "Gene", "iven", "Jacky",
        "john", "max", "Michael", "Mike", "norbert", "paul", "pedro", "quincy", "rob", "robert", "travis", "zac",
        "Mr serious", "grandpa", "Denis", "ian",
    ),
    "F": ("f1", "Andrea", "Annie", "anika", "aunty", "belinda", "shelby", "steph", "steph2", "steph3", "grandma"),
}  # fmt: skip


class CorpusExists(FileExistsError):
    """The folder holds a corpus made with other options."""


@dataclass(frozen=True)
class Speaker:
    """How one synthetic speaker talks.

    Attributes:
        name: As TIMIT writes them: sex, three letters, a digit.
        variant: espeak-ng voice variant.
        rate: Words a minute.
        pitch, range: 0 to 99, espeak's scales.
        size: Length of the vocal tract relative to the variant's: formants and pitch are divided by it.
        tilt_db: Gain at 4 kHz relative to low frequencies of the speaker's microphone.
        noise_db: Signal-to-noise ratio.
    """

    name: str
    variant: str
    rate: int
    pitch: int
    range: int
    size: float
    tilt_db: float
    noise_db: float


@dataclass(frozen=True)
class Utterance:
    """A sentence as one speaker said it; marks are sample numbers at 16 kHz."""

    speaker: str
    id: str
    text: str
    samples: NDArray[np.int16]
    phones: tuple[Mark, ...]
    words: tuple[Mark, ...]


def sentences() -> list[str]:
    """The sentences that come with the package."""
    text = resources.files("isotone.corpus").joinpath("data/sentences_en.txt").read_text("utf-8")
    return text.split("\n")[:-1]


def speakers(count: int, seed: int) -> list[Speaker]:
    """Different speakers, women and men by turns as far as there are variants."""
    rng = np.random.default_rng([seed, 1])
    order = {sex: list(rng.permutation(len(v))) for sex, v in VARIANTS.items()}
    chosen: list[Speaker] = []
    for i in range(count):
        sex = "F" if i % 3 == 2 else "M"
        variants = VARIANTS[sex]
        variant = variants[order[sex][(i // 3 if sex == "F" else i - (i + 1) // 3) % len(variants)]]
        chosen.append(
            Speaker(
                name=f"{sex}X{chr(65 + i // 26 % 26)}{chr(65 + i % 26)}{i // 676}",
                variant=variant,
                rate=int(rng.integers(135, 200)),
                pitch=int(rng.integers(30, 70)),
                range=int(rng.integers(30, 70)),
                size=float(np.round(rng.uniform(0.93, 1.07), 4)),
                tilt_db=float(np.round(rng.uniform(-6, 6), 2)),
                noise_db=float(np.round(rng.uniform(20, 45), 2)),
            )
        )
    return chosen


def record(
    engine: Engine, speaker: Speaker, text: str, id: str, rng: np.random.Generator, *, channel: bool = True
) -> Utterance:
    """One sentence by one speaker."""
    speech = engine.say(
        text, voice=f"en-us+{speaker.variant}", rate=speaker.rate, pitch=speaker.pitch, range=speaker.range
    )
    marks, numbers = timit_phones(speech)
    first, last = marks[0].start, marks[-1].end
    source = SAMPLE_RATE / speaker.size
    head, tail = (int(n) for n in rng.integers(RATE // 20, RATE * 3 // 10, 2))

    def at(position: int) -> int:
        return head + round((position - first) * RATE / source)

    sound = soxr.resample(speech.samples[first:last].astype(np.float32) / 32768, source, RATE, quality="HQ")
    samples = np.zeros(at(last) + tail, np.float32)
    sound = sound[: at(last) - head]
    samples[head : head + len(sound)] = sound
    if channel:
        samples = _channel(samples, speaker, rng)
    peak = np.abs(samples).max()
    samples *= 10 ** (rng.uniform(-12, -3) / 20) / peak
    inside = [Mark(label, at(start), at(end)) for label, start, end in marks]
    phones = (Mark("h#", 0, head), *inside, Mark("h#", at(last), len(samples)))
    words = tuple(
        Mark(word.strip('.,;:!?"').lower(), inside[n[0]].start, inside[n[-1]].end)
        for word, n in zip(text.split(), numbers)
        if n
    )
    return Utterance(speaker.name, id, text, np.round(samples * 32767).astype(np.int16), phones, words)


def _channel(samples: NDArray[np.float32], speaker: Speaker, rng: np.random.Generator) -> NDArray[np.float32]:
    """A microphone's spectral tilt (one zero, one pole, minimum phase: under 0.1 ms of delay) and coloured noise."""
    zero = 0.6 * speaker.tilt_db / 6
    pole = 0.3 * speaker.tilt_db / 6
    out = lfilter([1.0, -zero], [1.0, -pole], samples)
    noise = rng.standard_normal(len(samples))
    noise = lfilter([1.0], [1.0, -float(rng.uniform(0.5, 0.98))], noise)
    speech_power = np.mean(out[np.abs(out) > 0] ** 2)
    noise *= np.sqrt(speech_power / np.mean(noise**2)) * 10 ** (-speaker.noise_db / 20)
    return np.asarray(out + noise, np.float32)


def _write_timit(root: Path, split: str, utterance: Utterance) -> None:
    """``<SPLIT>/DR1/<SPEAKER>/<ID>`` .WAV .PHN .WRD .TXT; marks are sample numbers at 16 kHz."""
    folder = root / split.upper() / "DR1" / utterance.speaker
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / utterance.id
    soundfile.write(stem.with_suffix(".WAV"), utterance.samples, RATE, subtype="PCM_16", format="WAV")
    for suffix, marks in ((".PHN", utterance.phones), (".WRD", utterance.words)):
        stem.with_suffix(suffix).write_text("".join(f"{m.start} {m.end} {m.label}\n" for m in marks), "utf-8")
    stem.with_suffix(".TXT").write_text(f"0 {len(utterance.samples)} {utterance.text}\n", "utf-8")


LAYOUTS: dict[str, Callable[[Path, str, Utterance], None]] = {"timit": _write_timit}


def generate(
    folder: Path | str,
    *,
    layout: str = "timit",
    hours: float = 1.0,
    test_hours: float = 0.2,
    train_speakers: int = 24,
    test_speakers: int = 12,
    seed: int = 0,
    channel: bool = True,
    overwrite: bool = False,
) -> Path:
    """Write a corpus of synthetic speech.

    Args:
        folder: Root of the corpus.
        layout: Layout of files; ``"timit"``.
        hours: Hours of audio in TRAIN.
        test_hours: Hours of audio in TEST (development and test speakers together).
        train_speakers, test_speakers: No speaker and no sentence is in both.
        seed: Everything follows from it.
        channel: Microphone and noise.
        overwrite: Replace a corpus that was made with other options.

    Raises:
        CorpusExists: there is a corpus made with other options, or something else, and ``overwrite`` is false.
    """
    root = Path(folder)
    options = {
        "layout": layout, "hours": hours, "test_hours": test_hours, "train_speakers": train_speakers,
        "test_speakers": test_speakers, "seed": seed, "channel": channel,
    }  # fmt: skip
    manifest = root / "manifest.json"
    if root.exists() and not overwrite:
        found = json.loads(manifest.read_text("utf-8"))["options"] if manifest.exists() else None
        if found == options:
            return root
        raise CorpusExists(f"{root} holds a corpus made with {found}, not {options}: set overwrite or another folder.")
    people = speakers(train_speakers + test_speakers, seed)
    # every third speaker is a woman: take the test speakers from the end, so that both sides have women and men
    text = np.random.default_rng([seed, 2]).permutation(np.array(list(enumerate(sentences(), 1)), dtype=object))
    cut = max(1, round(len(text) * 0.2))
    counts: dict[str, Any] = {}
    with atomic_folder(root) as temporary:
        for number, (split, who, lines, wanted) in enumerate(
            (
                ("train", people[:train_speakers], text[cut:], hours),
                ("test", people[train_speakers:], text[:cut], test_hours),
            )
        ):
            engine = Engine(seed)
            rng = np.random.default_rng([seed, 3, number])
            seconds, utterances = 0.0, 0
            for speaker, (line, sentence), turn in _turns(who, lines, rng):
                if seconds >= wanted * 3600:
                    break
                utterance = record(engine, speaker, str(sentence), f"SX{line + turn * 1000}", rng, channel=channel)
                LAYOUTS[layout](temporary, split, utterance)
                seconds += len(utterance.samples) / RATE
                utterances += 1
            counts[split] = {"utterances": utterances, "seconds": round(seconds, 3), "speakers": [asdict(s) for s in who]}
        (temporary / "manifest.json").write_text(
            json.dumps({"isotone": __version__, "options": options, "splits": counts}, indent=1), "utf-8"
        )
    return root


def _turns(
    who: Sequence[Speaker], lines: NDArray[np.object_], rng: np.random.Generator
) -> Iterator[tuple[Speaker, Any, int]]:
    """Speakers by turns, each going through all sentences in an order of his own, again and again."""
    turn = 0
    while True:
        orders = [rng.permutation(len(lines)) for _ in who]
        for i in range(len(lines)):
            for speaker, order in zip(who, orders):
                yield speaker, lines[order[i]], turn
        turn += 1


class SynthCorpus(Corpus):
    """Synthetic speech with exact phone and word times, generated when it is absent."""

    def __init__(
        self,
        root: str = "~/.cache/isotone/synth",
        *,
        hours: float = 1.0,
        test_hours: float = 0.2,
        train_speakers: int = 24,
        test_speakers: int = 12,
        seed: int = 0,
        channel: bool = True,
        phones: int = 39,
    ) -> None:
        self.options: dict[str, Any] = {
            "hours": hours, "test_hours": test_hours, "train_speakers": train_speakers,
            "test_speakers": test_speakers, "seed": seed, "channel": channel,
        }  # fmt: skip
        key = hashlib.sha256(json.dumps([__version__, self.options], sort_keys=True).encode()).hexdigest()[:12]
        self.root = Path(root).expanduser() / key
        self.phones = phones

    def load(self, split: str) -> Dataset:
        """One split: train, dev or test."""
        from isotone.corpus.timit import TimitCorpus

        return TimitCorpus(str(generate(self.root, **self.options)), phones=self.phones).load(split)
