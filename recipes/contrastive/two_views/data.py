"""Data of instance matching and linear probing: spoken words and numbers in two views."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from isotone import audio
from isotone.corpus.synth import sentences
from isotone.corpus.voices import SAMPLE_RATE, Speaker, record, speakers
from isotone.text.espeak import Engine
from isotone.training.augment import Samples

# Seconds of silence kept around a synthetic word, and between the digits of a number.
_MARGIN_S = 0.03
_GAP_S = 0.05

_DIGIT_FILE = re.compile(r"(\d)_(\w+)_(\d+)\.wav")
# Recordings of a speaker and digit that are for testing, as the corpus has it.
_TEST_TAKES = 5


@dataclass
class Recordings:
    """Recordings of some items (a word, a number), in views.

    Attributes:
        samples: Of each recording, float32.
        item: Number of the word or number that is spoken.
        view: 0 or 1, the group of voices that speaks it.
        labels: Classes by kind, such as ``speaker``; one number per recording.
    """

    samples: list[Samples] = field(default_factory=list)
    item: list[int] = field(default_factory=list)
    view: list[int] = field(default_factory=list)
    labels: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, samples: Samples, item: int, view: int, **labels: int) -> None:
        """Add one recording."""
        self.samples.append(samples)
        self.item.append(item)
        self.view.append(view)
        for name, label in labels.items():
            self.labels[name].append(label)

    def of(self, item: int, view: int) -> list[int]:
        """Return the numbers of the recordings of an item in a view."""
        return [i for i, pair in enumerate(zip(self.item, self.view)) if pair == (item, view)]


Splits = dict[str, Recordings]


def divide(items: int, shares: Sequence[float], rng: np.random.Generator) -> dict[str, list[int]]:
    """Divide items at random into train, dev and test.

    Args:
        items: Number of items, which are counted from 0.
        shares: Of train, dev and test, which sum to 1.
        rng: Of the order.

    Raises:
        ValueError: not three shares above 0 that sum to 1, or too few items for two in each split.
    """
    cuts = np.round(np.cumsum([0, *shares]) * items).astype(int)
    if len(shares) != 3 or abs(sum(shares) - 1) > 1e-9 or min(np.diff(cuts)) < 2:
        raise ValueError(
            "Expected three shares that sum to 1 and give train, dev and test two items each; got "
            f"{list(shares)} of {items} items."
        )
    order = rng.permutation(items).tolist()
    return {split: order[cuts[i] : cuts[i + 1]] for i, split in enumerate(("train", "dev", "test"))}


def synthetic_words(
    *,
    words: int = 800,
    shares: Sequence[float] = (0.7, 0.15, 0.15),
    takes: int = 2,
    voices: int = 10,
    channel: bool = True,
    seed: int = 0,
) -> Splits:
    """Synthesise English words by espeak-ng voices: view 0 by women, view 1 by men; each split has its own words.

    Labels: ``speaker``, and ``phone``, the first of the word.

    Args:
        words: Number of words.
        shares: Shares of the words in train, dev and test.
        takes: Recordings of a word in each view, each by a voice drawn anew.
        voices: Speakers of each view.
        channel: Through microphones and with noise, see :func:`isotone.corpus.voices.record`.
        seed: Of everything random.

    Raises:
        ValueError: more words than there are, or too few for a split.
        EspeakNotInstalled: espeak-ng is absent.
    """
    rng = np.random.default_rng([seed, 7])
    found = {word.strip(".,;:!?\"'").lower() for line in sentences() for word in line.split()}
    known = sorted(word for word in found if len(word) > 3 and word.isalpha())
    if words > len(known):
        raise ValueError(f"There are {len(known)} words; got {words}.")
    chosen = [known[i] for i in rng.permutation(len(known))[:words]]
    # a voice of espeak-ng serves several speakers, who differ in pitch, rate and size
    people, _ = speakers(4 * voices, 1, seed)
    groups = [[p for p in people if p.name[0] == sex][:voices] for sex in "FM"]
    everybody = list(itertools.chain(*groups))
    phones: dict[str, int] = {}
    engine = Engine(seed)
    splits: Splits = {}
    for split, items in divide(words, shares, rng).items():
        splits[split] = Recordings()
        for item, view, _ in itertools.product(items, (0, 1), range(takes)):
            speaker = groups[view][int(rng.integers(len(groups[view])))]
            samples, phone = _synthesise(engine, speaker, chosen[item], rng, channel)
            splits[split].add(
                samples, item, view, speaker=everybody.index(speaker),
                phone=phones.setdefault(phone, len(phones)),
            )  # fmt: skip
    return splits


def _synthesise(
    engine: Engine, speaker: Speaker, word: str, rng: np.random.Generator, channel: bool
) -> tuple[Samples, str]:
    """Synthesise a word with little silence around it; also return its first phone."""
    utterance = record(engine, speaker, 1, word, rng, channel=channel)
    margin = round(_MARGIN_S * SAMPLE_RATE)
    first, last = utterance.phones[1], utterance.phones[-2]
    part = utterance.samples[max(0, first.start - margin) : last.end + margin]
    return (part / 32768).astype(np.float32), first.label


def digits(*, root: str | Path) -> Splits:
    """Read the Free Spoken Digit Dataset; the first five recordings of each speaker and digit are the test split.

    Every recording is an item of its own, of view 0. Labels: ``digit`` and ``speaker``.

    Args:
        root: Folder that contains ``recordings``.

    Raises:
        FileNotFoundError: there are no recordings.
    """
    splits: Splits = {"train": Recordings(), "test": Recordings()}
    for (digit, speaker, take), samples in _read_digits(Path(root)).items():
        part = splits["test" if take < _TEST_TAKES else "train"]
        part.add(samples, len(part.samples), 0, digit=digit, speaker=speaker)
    return splits


def numbers(
    *,
    root: str | Path,
    length: int = 3,
    items: int = 800,
    shares: Sequence[float] = (0.7, 0.15, 0.15),
    takes: int = 2,
    seed: int = 0,
) -> Splits:
    """Join recordings of the Free Spoken Digit Dataset to numbers of several digits.

    The first half of the speakers, in order of their names, speak view 0, the others view 1. Each split has its own
    numbers, and test its own recordings.

    Args:
        root: Folder that contains ``recordings``.
        length: Digits of a number.
        items: Number of numbers, drawn from all.
        shares: Shares of the numbers in train, dev and test.
        takes: Recordings of a number in each view, each by a speaker drawn anew.
        seed: Of everything random.

    Raises:
        FileNotFoundError: there are no recordings.
        ValueError: more items than numbers, or too few for a split.
    """
    if items > 10**length:
        raise ValueError(f"There are {10**length} numbers of {length} digits; got {items} items.")
    known = _read_digits(Path(root))
    people = 1 + max(speaker for _, speaker, _ in known)
    groups = range(people // 2), range(people // 2, people)
    by_key: dict[tuple[bool, int, int], list[Samples]] = defaultdict(list)
    for (digit, speaker, take), samples in known.items():
        by_key[take < _TEST_TAKES, digit, speaker].append(samples)
    rng = np.random.default_rng([seed, 8])
    chosen = rng.permutation(10**length)[:items].tolist()
    gap = np.zeros(round(_GAP_S * SAMPLE_RATE), np.float32)
    splits: Splits = {}
    for split, part in divide(items, shares, rng).items():
        splits[split] = Recordings()
        for item, view, _ in itertools.product(part, (0, 1), range(takes)):
            speaker = int(rng.choice(groups[view]))
            pieces: list[Samples] = []
            for figure in f"{chosen[item]:0{length}d}":
                choice = by_key[split == "test", int(figure), speaker]
                pieces += [choice[int(rng.integers(len(choice)))], gap]
            splits[split].add(np.concatenate(pieces[:-1]), item, view, speaker=speaker)
    return splits


def _read_digits(root: Path) -> dict[tuple[int, int, int], Samples]:
    """Read recordings at 16 kHz by digit, speaker (in order of their names) and take."""
    files = [(path, found) for path in sorted((root / "recordings").glob("*.wav"))
             if (found := _DIGIT_FILE.fullmatch(path.name))]  # fmt: skip
    if not files:
        raise FileNotFoundError(
            f"No recordings like {root / 'recordings' / '7_jackson_32.wav'}. Get the Free Spoken Digit Dataset "
            "(github.com/Jakobovski/free-spoken-digit-dataset) and give its folder as data.root."
        )
    people = sorted({found[2] for _, found in files})
    return {
        (int(found[1]), people.index(found[2]), int(found[3])): audio.load(path, SAMPLE_RATE)
        for path, found in files
    }


#: Data sets by the name that a configuration gives.
SOURCES: dict[str, Callable[..., Splits]] = {
    "words": synthetic_words, "digits": digits, "numbers": numbers,
}  # fmt: skip


class Pool:
    """Inputs of recordings by item and view, from which batches of two views are drawn.

    Args:
        inputs: ``(T, F)`` of every recording.
        first: For every item, the numbers of its recordings in the first view.
        second: In the second. Where an item has the same numbers in both, two different ones are drawn.

    Raises:
        ValueError: an item that cannot give two views.
    """

    def __init__(self, inputs: Sequence, first: Sequence[list[int]], second: Sequence[list[int]]) -> None:
        for item, (a, b) in enumerate(zip(first, second, strict=True)):
            if not a or not b or len({*a, *b}) < 2:
                raise ValueError(f"Item {item}: expected recordings for two views; got {a} and {b}.")
        self.inputs = inputs
        self.first = first
        self.second = second

    def __len__(self) -> int:
        return len(self.first)

    def draw(self, items: Sequence[int], rng: np.random.Generator) -> tuple[list, list]:
        """Draw one recording of each item in either view."""
        a, b = [], []
        for item in items:
            one, other = self.first[item], self.second[item]
            i = int(rng.choice(one))
            a.append(self.inputs[i])
            b.append(self.inputs[int(rng.choice([j for j in other if j != i]))])
        return a, b
