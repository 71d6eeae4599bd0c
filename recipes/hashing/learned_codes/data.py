"""Items of retrieval and their affinities: spoken words, speakers, tunes, numbers and images."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from isotone_contrastive.embedder import Body
from torch import Tensor

from isotone.corpus.digit_recordings import HELD_OUT, SAMPLE_RATE, find_recordings, read_words
from isotone.corpus.notes import add_note, pitch_hz, timbre
from isotone.corpus.synth import sentences
from isotone.corpus.voices import record, speakers
from isotone.text.espeak import Engine

_MAJOR = (0, 2, 4, 5, 7, 9, 11)
#: Affinities of the nearest shares of all pairs, as in the paper's experiment on LabelMe.
NEAREST = ((0.05, 1), (0.01, 2), (0.002, 5), (0.001, 10))


@dataclass
class Items:
    """Items of one part.

    Attributes:
        samples: Audio ``(N,)`` or images ``(8, 8)``, float32.
        traits: ``(N, C)`` float: traits that an item has, or a vector.
    """

    samples: list[np.ndarray]
    traits: Tensor


@dataclass
class Task:
    """A retrieval task: ``train`` is part of what ``database`` has; ``queries`` are never trained on.

    Attributes:
        train, database, queries: Items.
        thresholds: Distances of traits by affinity, descending; None where affinity is the number of shared traits.
    """

    train: Items
    database: Items
    queries: Items
    thresholds: Sequence[tuple[float, int]] | None = None

    def affinity(self, a: Tensor, b: Tensor) -> Tensor:
        """Return affinities ``(N, M)`` int64 of items with traits ``(N, C)`` and ``(M, C)``."""
        if self.thresholds is None:
            return (a @ b.T).round().long()
        distance = torch.cdist(a.double(), b.double())
        affinity = torch.zeros(distance.shape, dtype=torch.long)
        for threshold, value in self.thresholds:
            affinity[distance <= threshold] = value
        return affinity


def _one_hot(*columns: Sequence[int]) -> Tensor:
    """Return traits ``(N, C)`` of which an item has one per column of classes."""
    parts = [torch.nn.functional.one_hot(torch.tensor(column)) for column in columns]
    return torch.cat(parts, 1).float()


def _divide(samples: list[np.ndarray], traits: Tensor, part: Sequence[str], **options: object) -> Task:
    """Divide items by the part of each: ``train``, ``database`` or ``query``."""

    def some(*names: str) -> Items:
        rows = [i for i, name in enumerate(part) if name in names]
        return Items([samples[i] for i in rows], traits[rows])

    return Task(some("train"), some("train", "database"), some("query"), **options)  # type: ignore[arg-type]


def spoken(*, by: str = "word", words: int = 40, voices: int = 24, seed: int = 0) -> Task:
    """Synthesise words by espeak-ng voices, every word by every voice.

    Retrieval ``by`` word has queries by a quarter of the voices, and by speaker queries of a quarter of the words; half
    of the rest is trained on.

    Raises:
        ValueError: neither word nor speaker.
        EspeakNotInstalled: espeak-ng is absent.
    """
    if by not in ("word", "speaker"):
        raise ValueError(f"Expected retrieval by word or speaker; got {by!r}.")
    rng = np.random.default_rng([seed, 31])
    found = {word.strip(".,;:!?\"'").lower() for line in sentences() for word in line.split()}
    known = sorted(word for word in found if len(word) > 3 and word.isalpha())
    chosen = [known[i] for i in rng.permutation(len(known))[:words]]
    people = speakers(voices, 1, seed)[0]
    engine = Engine(seed)
    samples, first, rows = [], [], list(itertools.product(range(words), range(voices)))
    for word, voice in rows:
        utterance = record(engine, people[voice], 1, chosen[word], rng)
        samples.append((utterance.samples / 32768).astype(np.float32))
        first.append(utterance.phones[1].label)
    of_word, of_voice = (list(column) for column in zip(*rows))
    if by == "word":
        sounds = sorted({*first})
        # a word's first phone as its first speaker says it: classes of words, whatever the voice
        of_sound = [sounds.index(first[word * voices]) for word in of_word]
        return _divide(samples, _one_hot(of_sound, of_word), _parts(of_voice, voices, rng))
    women = [int(person.name[0] == "F") for person in people]
    traits = _one_hot([women[voice] for voice in of_voice], of_voice)
    return _divide(samples, traits, _parts(of_word, words, rng))


def _parts(classes: Sequence[int], count: int, rng: np.random.Generator) -> list[str]:
    """Give a quarter of the classes to queries, half of the others to training."""
    order = rng.permutation(count)
    queries = {*order[: count // 4].tolist()}
    trained = {*order[count // 4 : count // 4 + (count - count // 4) // 2].tolist()}
    return ["query" if c in queries else "train" if c in trained else "database" for c in classes]


def tunes(*, families: int = 10, variants: int = 4, takes: int = 24, seed: int = 0) -> Task:
    """Synthesise melodies; those of a family share their first half. Takes differ in timbre, key, tempo and noise."""
    rng = np.random.default_rng([seed, 32])
    melodies = []
    for _ in range(families):
        first = rng.integers(0, 8, 4)
        melodies += [[*first, *rng.integers(0, 8, 4)] for _ in range(variants)]
    samples, rows = [], list(itertools.product(range(len(melodies)), range(takes)))
    for melody, _ in rows:
        samples.append(_play(melodies[melody], rng))
    of_melody, of_take = (list(column) for column in zip(*rows))
    traits = _one_hot([melody // variants for melody in of_melody], of_melody)
    return _divide(samples, traits, _parts(of_take, takes, rng))


def _play(degrees: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    beat_s, tonic, voice = rng.uniform(0.16, 0.24), int(rng.integers(57, 64)), timbre(rng)
    out = np.zeros(round(SAMPLE_RATE * beat_s * (len(degrees) + 1)))
    for number, degree in enumerate(degrees):
        add_note(out, voice, pitch_hz(tonic, _MAJOR, int(degree)), number * beat_s, beat_s, 0.5, SAMPLE_RATE)
    noise = rng.standard_normal(len(out)) * 10 ** (-rng.uniform(10, 30) / 20) * out.std()
    return (out + noise).astype(np.float32)


def numbers(*, root: str | Path, length: int = 3, items: int = 1200, seed: int = 0) -> Task:
    """Join recordings of the Free Spoken Digit Dataset to numbers by one speaker each.

    A number has the digits it contains as traits. Queries are numbers of their own, made of held-out recordings.

    Raises:
        FileNotFoundError: there are no recordings.
    """
    words, _ = read_words(find_recordings(Path(root))[0], 40.0)
    people = sorted({recording.speaker for recording in words})
    rng = np.random.default_rng([seed, 33])
    kept: dict[tuple[bool, str, int], list[np.ndarray]] = {}
    for recording, said in words.items():
        held = recording.index in HELD_OUT["test"]
        kept.setdefault((held, recording.speaker, recording.digit), []).append(said)
    drawn = rng.permutation(10**length)
    samples, traits, part = [], torch.zeros(items, 10), []
    for item in range(items):
        query = item < items // 5
        # one of the first fifth of all numbers where it is a query, else of the others
        fifth = 10**length // 5
        number = int(drawn[rng.integers(fifth)] if query else drawn[rng.integers(fifth, 10**length)])
        person = people[int(rng.integers(len(people)))]
        digits = [int(figure) for figure in f"{number:0{length}d}"]
        choices = [kept[query, person, digit] for digit in digits]
        samples.append(np.concatenate([choice[int(rng.integers(len(choice)))] for choice in choices]))
        traits[item, digits] = 1.0
        part.append("query" if query else "train" if item % 2 else "database")
    return _divide(samples, traits, part)


def images(*, queries: int = 300, train: int = 750, seed: int = 0) -> Task:
    """Load scikit-learn's digits, 1,797 images of 8 x 8; the trait is the digit.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    pixels, classes = _digits()
    return _divide([*pixels], _one_hot(classes.tolist()), _image_parts(len(pixels), queries, train, seed))


def distances(*, queries: int = 300, train: int = 750, seed: int = 0) -> Task:
    """Load the same images with affinities by Euclidean distance of pixels, thresholds from the training part."""
    pixels, _ = _digits()
    traits = torch.from_numpy(pixels.reshape(len(pixels), -1))
    part = _image_parts(len(pixels), queries, train, seed)
    trained = traits[[name == "train" for name in part]].double()
    apart = torch.pdist(trained)
    thresholds = [(float(torch.quantile(apart, share)), value) for share, value in NEAREST]
    return _divide([*pixels], traits, part, thresholds=thresholds)


def _digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    found = load_digits()
    return (found.images / 16).astype(np.float32), found.target


def _image_parts(count: int, queries: int, train: int, seed: int) -> list[str]:
    part = np.array(["query"] * queries + ["train"] * train + ["database"] * (count - queries - train))
    return part[np.argsort(np.random.default_rng([seed, 34]).permutation(count))].tolist()


#: Tasks by the name that a configuration gives.
SOURCES: dict[str, Callable[..., Task]] = {
    "spoken": spoken, "tunes": tunes, "numbers": numbers, "images": images, "distances": distances,
}  # fmt: skip


def inputs(items: Items, body: Body | None) -> list[Tensor]:
    """Compute the network's inputs, or flat pixels without a network."""
    if body is not None:
        return body.inputs(items.samples)
    return [torch.from_numpy(sample.reshape(1, -1)) for sample in items.samples]


def statistics(rows: Sequence[Tensor]) -> Tensor:
    """Compute fixed features ``(N, 2 F)`` of inputs ``(T, F)``: means and deviations; a single row is taken itself."""
    return torch.stack([
        row[0] if len(row) == 1 else torch.cat([row.mean(0), row.std(0)]) for row in rows
    ])  # fmt: skip
