"""Forced alignment of sentences that are joined with pauses and hesitations.

``python -m benchmarks.pauses LIBRISPEECH [--speakers 2412 2803 2902] [--limit N] [--seeds 0 1 2]``

Up to five sentences of a reader become one recording. Between them are pauses of 1 to 10 s, made of the reader's own
pauses with their room and breaths, as far as nothing in them is voiced. Every second pause holds a hesitation, which
the text lacks: a vowel of the reader's, .3 to .6 s long. The words' places in the single sentences, by the same model,
are the reference. A word is grossly wrong where one of its ends is more than 250 ms away. Every seed joins the same
sentences with other pauses: one alone gives a share that chance changes by a fifth.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isotone import audio
from isotone.alignment import SILENCE, Segment
from isotone.corpus.librispeech import LibriSpeechCorpus
from isotone.model import Model
from isotone.pipeline import Pipeline

RATE = 16_000
COLLARS_MS = (20, 50, 100, 250)
SENTENCES = 5
PAUSE_S = (1.0, 10.0)
HESITATION_S = (0.3, 0.6)
_VOWELS = frozenset({"ah", "ax", "eh", "er", "aa"})
_LEAST_PAUSE_S, _EDGE_S, _LEAST_VOWEL_S = 0.4, 0.1, 0.08
_GRAIN_S, _FADE_S = 0.04, 0.05
_VOICED, _VOICED_DB, _PITCH_HZ = 0.6, -30.0, (70, 400)

Samples = NDArray[np.float32]


@dataclass(frozen=True)
class Sentence:
    """A sentence with the words and phones that the model finds in it."""

    speaker: str
    samples: Samples
    text: str
    words: tuple[Segment, ...]
    phones: tuple[Segment, ...]


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pauses", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a part of LibriSpeech in its own layout")
    parser.add_argument(
        "--speakers", nargs="+", default=["2412", "2803", "2902"], help="numbers of the readers"
    )
    parser.add_argument("--limit", type=int, default=0, help="sentences per reader; 0: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="seeds of the pauses")
    parser.add_argument("--model", default="english", help="model of isotone")
    arguments = parser.parse_args()
    pipeline = Pipeline(Model.load(arguments.model))
    readers = [
        list(read(arguments.folder, speaker, pipeline, arguments.limit)) for speaker in arguments.speakers
    ]
    errors: list[float] = []
    lost = recordings = 0
    for seed in arguments.seeds:
        for samples, text, reference in recorded(readers, np.random.default_rng(seed)):
            found = pipeline.align("", samples, pipeline.encode(text))
            seen = {found.words[i]: w for i, w in enumerate(found.alignment.tier("words"))}
            lost += sum(number not in seen for number in range(len(reference)))
            pairs = [(seen[i], word) for i, word in enumerate(reference) if i in seen]
            errors += [1000 * abs(e) for f, r in pairs for e in (f.start - r.start, f.end - r.end)]
            recordings += 1
    report(np.array(errors), lost, recordings)


def recorded(
    readers: Sequence[Sequence[Sentence]], rng: np.random.Generator
) -> Iterator[tuple[Samples, str, list[Segment]]]:
    """Iterate over the recordings of all readers, each with its text and its words."""
    for sentences in readers:
        rest = pauses(sentences)
        vowels = [s.samples[_at(p.start) : _at(p.end)] for s in sentences for p in s.phones if _long_vowel(p)]
        for first in range(0, len(sentences), SENTENCES):
            some = sentences[first : first + SENTENCES]
            samples, words = joined(some, rest, vowels, rng)
            yield samples, " ".join(s.text for s in some), words


def report(errors: NDArray[np.float64], lost: int, recordings: int) -> None:
    """Print the table."""
    words = len(errors) // 2 + lost
    gross = np.mean(errors.reshape(-1, 2).max(1) > COLLARS_MS[-1])
    print(
        f"| recordings | words | without times % | {' | '.join(f'{c} ms %' for c in COLLARS_MS)} | gross % |"
    )
    print(f"|{'---|' * (len(COLLARS_MS) + 4)}")
    within = " | ".join(f"{100 * np.mean(errors <= c):.1f}" for c in COLLARS_MS)
    print(f"| {recordings} | {words} | {100 * lost / words:.2f} | {within} | {100 * gross:.2f} |")


def read(folder: Path, speaker: str, pipeline: Pipeline, limit: int) -> Iterator[Sentence]:
    """Align the single sentences of a reader; those whose text is doubtful are left out."""
    corpus = LibriSpeechCorpus(folder, test_speakers=[speaker])
    rows = list(corpus.load("test"))
    for row in rows[:limit] if limit else rows:
        samples = audio.load(Path(row["audio"]), RATE)
        found = pipeline.align(row["id"], samples, pipeline.encode(row["text"]), judged=False)
        words, phones = (
            tuple(s for s in found.alignment.tier(t) if s.label not in SILENCE) for t in ("words", "phones")
        )
        yield Sentence(speaker, samples, row["text"], words, phones)


def pauses(sentences: Sequence[Sentence]) -> list[Samples]:
    """Cut a reader's pauses: what lies between words, without the edges of the words, if nothing in it is voiced."""
    loud = float(np.sqrt(np.mean(np.concatenate([s.samples for s in sentences]) ** 2))) * 10 ** (
        _VOICED_DB / 20
    )
    out = []
    for sentence in sentences:
        for before, after in zip(sentence.words, sentence.words[1:]):
            if after.start - before.end >= _LEAST_PAUSE_S:
                pause = sentence.samples[_at(before.end + _EDGE_S) : _at(after.start - _EDGE_S)]
                out += [] if voiced(pause, loud) else [pause]
    return out


def voiced(samples: Samples, loud: float) -> bool:
    """Return whether any 40 ms above a level repeat themselves at a pitch of 70 to 400 Hz."""
    size, (low, high) = round(_GRAIN_S * RATE), _PITCH_HZ
    for start in range(0, len(samples) - size, size // 4):
        frame = samples[start : start + size] - samples[start : start + size].mean()
        alike = np.correlate(frame, frame, "full")[size - 1 :] * size / np.arange(size, 0, -1)
        if alike[0] > size * loud**2 and alike[RATE // high : RATE // low].max() > _VOICED * alike[0]:
            return True
    return False


def joined(
    sentences: Sequence[Sentence],
    rest: Sequence[Samples],
    vowels: Sequence[Samples],
    rng: np.random.Generator,
) -> tuple[Samples, list[Segment]]:
    """Join sentences of one reader with pauses; return the recording and its words with their times."""
    parts: list[Samples] = []
    words: list[Segment] = []
    now = 0
    for number, sentence in enumerate(sentences):
        for part in (*_between(rest, vowels, number, rng), sentence.samples):
            if part is sentence.samples:
                words += [Segment(w.label, w.start + now / RATE, w.end + now / RATE) for w in sentence.words]
            parts.append(part)
            now += len(part)
    return np.concatenate(parts), words


def _between(
    rest: Sequence[Samples], vowels: Sequence[Samples], number: int, rng: np.random.Generator
) -> Iterator[Samples]:
    if not number:
        return
    yield _quiet(rest, rng.uniform(*PAUSE_S), rng)
    if number % 2 and vowels:
        yield lengthened(vowels[rng.integers(len(vowels))], round(rng.uniform(*HESITATION_S) * RATE), rng)
        yield _quiet(rest, rng.uniform(*HESITATION_S), rng)


def _quiet(rest: Sequence[Samples], seconds: float, rng: np.random.Generator) -> Samples:
    """Join a reader's pauses, in random order, to a longer one, each faded into the next."""
    size, fade = round(seconds * RATE), round(_FADE_S * RATE)
    rise = np.sin(np.linspace(0, np.pi / 2, fade, dtype=np.float32))
    out = np.zeros(0, np.float32)
    while len(out) < size:
        part = rest[rng.integers(len(rest))].copy()
        if len(out):
            part[:fade] = rise * part[:fade] + rise[::-1] * out[-fade:]
        out = np.concatenate([out[: max(0, len(out) - fade)], part])
    return out[:size]


def lengthened(vowel: Samples, size: int, rng: np.random.Generator) -> Samples:
    """Lengthen a vowel: grains of 40 ms, each where it continues the sound so far best (WSOLA)."""
    grain = round(_GRAIN_S * RATE)
    half, window = grain // 2, np.hanning(grain + 1)[:-1].astype(np.float32)
    out = np.zeros(size + grain, np.float32)
    place = 0
    for start in range(0, size, half):
        out[start : start + grain] += window * vowel[place : place + grain]
        wanted = vowel[place + half : place + half + half]
        room = len(vowel) - grain
        around = np.unique(np.clip(rng.integers(0, max(1, room), 64), 0, room))
        fits = [float(wanted @ vowel[p : p + len(wanted)]) for p in around]
        place = int(around[int(np.argmax(fits))])
    return out[:size]


def _long_vowel(phone: Segment) -> bool:
    return phone.label in _VOWELS and phone.end - phone.start >= _LEAST_VOWEL_S


def _at(seconds: float) -> int:
    return max(0, round(seconds * RATE))


if __name__ == "__main__":
    main()
