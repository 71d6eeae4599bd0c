"""Sequences of spoken digits: real speech with exact word times (Free Spoken Digit Dataset)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from isotone.alignment import Alignment, Segment, Tier
from isotone.audio import load
from isotone.corpus.folder import SPLITS, FolderCorpus
from isotone.corpus.rows import Part
from isotone.files import alone, atomic_folder

#: Hz of the recordings, and of the sequences.
SAMPLE_RATE = 8000

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

#: Numbers of the recordings of dev and test, as the data set has them for test; all others train.
HELD_OUT = {"test": range(5), "dev": range(5, 10)}

# Raised when the same options come to make other sequences.
_REVISION = 1

_FRAME = SAMPLE_RATE // 100
_MANIFEST = "manifest.json"

Samples = NDArray[np.float32]


@dataclass(frozen=True)
class Recording:
    """One digit by one speaker: ``{digit}_{speaker}_{index}.wav``."""

    path: Path
    digit: int
    speaker: str
    index: int

    @property
    def split(self) -> str:
        """Where it belongs, by its number alone."""
        return next((name for name, indices in HELD_OUT.items() if self.index in indices), "train")


def find_recordings(folder: Path) -> tuple[list[Recording], list[tuple[str, str]]]:
    """The recordings of the data set, by speaker, digit and number, and (name, reason) of other files.

    Args:
        folder: The data set's folder, or its ``recordings``.

    Raises:
        FileNotFoundError: no recordings there.
    """
    place = folder / "recordings" if (folder / "recordings").is_dir() else folder
    found, odd = [], []
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        match = re.fullmatch(r"(\d)_([^_]+)_(\d+)\.wav", path.name)
        if match:
            found.append(Recording(path, int(match[1]), match[2], int(match[3])))
        elif path.suffix.lower() == ".wav":
            odd.append((path.name, "its name is not DIGIT_SPEAKER_NUMBER.wav, such as 7_jackson_32.wav."))
    if not found:
        raise FileNotFoundError(
            f"No spoken digits in {place}: looked for DIGIT_SPEAKER_NUMBER.wav, such as 7_jackson_32.wav. Give the "
            "folder of the Free Spoken Digit Dataset (github.com/Jakobovski/free-spoken-digit-dataset)."
        )
    return sorted(found, key=lambda r: (r.speaker, r.digit, r.index)), odd


def join_words(
    words: Sequence[Samples], pauses: Sequence[int], snr_db: float, rng: np.random.Generator
) -> tuple[Samples, list[tuple[int, int]]]:
    """Words with pauses around them, under one noise.

    Args:
        words: Samples ``(N_w,)`` of each word.
        pauses: Samples before the first word, between words and after the last: one more than words.
        snr_db: Level of the quietest word over the noise, which is white.
        rng: Of the noise.

    Returns:
        The samples ``(N,)``, and the first sample of every word with the one after its last.

    Raises:
        ValueError: other than one pause more than words.
    """
    if len(pauses) != len(words) + 1:
        raise ValueError(f"{len(words)} words have {len(words) + 1} pauses around them; got {len(pauses)}.")
    level = min(_rms(word) for word in words) * 10 ** (-snr_db / 20)
    starts = np.cumsum(pauses[:-1]) + np.cumsum([0, *(len(word) for word in words[:-1])])
    spans = [(int(start), int(start) + len(word)) for start, word in zip(starts, words)]
    samples = rng.normal(0.0, level, spans[-1][1] + pauses[-1]).astype(np.float32)
    for (start, end), word in zip(spans, words):
        samples[start:end] += word
    return samples, spans


def cut_ends(word: Samples, below_db: float) -> Samples:
    """A word from the first 10 ms to the last that are at most so far below its level.

    Args:
        word: Samples ``(N,)``.
        below_db: What is quieter at the ends is cut: dB below the word's root mean square.

    Returns:
        Samples ``(N',)``; nothing of a word that is digital silence.
    """
    if not word.any():
        return word[:0]
    edges = np.arange(0, len(word), _FRAME)
    power = np.add.reduceat(word.astype(np.float64) ** 2, edges) / np.diff([*edges, len(word)])
    (loud,) = np.nonzero(power >= (_rms(word) * 10 ** (-below_db / 20)) ** 2)
    return word[edges[loud[0]] : edges[loud[-1]] + _FRAME]


def _rms(samples: Samples) -> float:
    return float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))


class DigitsCorpus(FolderCorpus):
    """Sequences of digits by one speaker each, joined from the Free Spoken Digit Dataset's recordings.

    The recordings are of single words, and room tone at their ends is cut (:func:`cut_ends`), so a sequence's word
    times are exact. Its words are one speaker's recordings in random order with pauses between them, before the first
    and after the last, under low noise (:func:`join_words`); a recording may be in several sequences of its split, and
    in no other split. As the data set has it, its numbers 0 to 4 are the test split; here 5 to 9 are dev, and the
    others train.

    The sequences are written once, as recordings with TextGrids that :class:`isotone.corpus.folder.FolderCorpus` reads,
    into a folder that has a ``manifest.json`` of the options. Other options, and another state of the data set, have
    folders of their own.

    Args:
        root: The data set's folder, with ``recordings`` in it.
        cache: Folder for the sequences.
        length: Fewest and most words of a sequence.
        train, dev, test: Sequences of the splits.
        pause_s: Longest pause, in seconds; they are uniform from 0.
        adjoining: Share of the words that follow the word before without a pause.
        trim_db: What is so far below a recording's level is cut at its ends.
        snr_db: Level of a sequence's quietest word over its noise.
        seed: Decides on everything random.

    Raises:
        ValueError: an option outside its range.
    """

    title = "Spoken digits"

    def __init__(
        self,
        root: str | Path,
        *,
        cache: str | Path = "~/.cache/isotone/digits",
        length: Sequence[int] = (3, 7),
        train: int = 1000,
        dev: int = 50,
        test: int = 150,
        pause_s: float = 0.5,
        adjoining: float = 0.15,
        trim_db: float = 20.0,
        snr_db: float = 40.0,
        seed: int = 0,
    ) -> None:
        if len(length) != 2 or not 1 <= length[0] <= length[1]:
            raise ValueError(f"length is the fewest and the most words, at least 1; got {list(length)}.")
        if min(train, dev, test) < 1 or not pause_s >= 0 or not 0 <= adjoining <= 1 or not trim_db >= 0:
            raise ValueError(
                "Spoken digits expect a sequence or more of every split, pause_s and trim_db of 0 or more, and "
                f"adjoining from 0 to 1; got {train}, {dev} and {test} sequences, {pause_s}, {trim_db}, {adjoining}."
            )
        self.recordings = Path(root).expanduser()
        self._options: dict[str, Any] = {
            "length": list(length), "sequences": {"train": train, "dev": dev, "test": test}, "pause_s": pause_s,
            "adjoining": adjoining, "trim_db": trim_db, "snr_db": snr_db, "seed": seed,
        }  # fmt: skip
        key = _digest([_REVISION, str(self.recordings.absolute()), self._options])
        super().__init__(Path(cache).expanduser() / key)

    def sources(self, split: str) -> Sequence[Path]:
        """The data set, and the sequences made of it."""
        return [self.recordings, self.root]

    def parts(self, split: str) -> Iterator[tuple[str, Callable[[], Part]]]:
        """The sequences of a split, which are made if need be, and what of the data set could not be used.

        Raises:
            FileNotFoundError: no recordings at the root.
            ValueError: no such split, or none of the recordings are for it.
        """
        skipped = self._make()
        yield from super().parts(split)
        for name in SPLITS if split == "all" else (split,):
            yield name, partial(Part, skipped=[(id, reason) for id, reason in skipped[name]])

    def _make(self) -> dict[str, list[tuple[str, str]]]:
        """Write the sequences, or find them there; (name, reason) of what was left out, by split."""
        found, odd = find_recordings(self.recordings)
        files = [(r.path.name, r.path.stat()) for r in found]
        state = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in files]
        made = {"revision": _REVISION, "options": self._options, "recordings": _digest([state, odd])}
        with alone(self.root):  # of runs that begin together one makes them, the others find them
            there = _read_manifest(self.root)
            if {k: there.get(k) for k in made} == made:
                skipped: dict[str, list[tuple[str, str]]] = there["skipped"]
                return skipped
            skipped = {"train": odd}
            with atomic_folder(self.root) as folder:
                for split in SPLITS:
                    chosen = [r for r in found if r.split == split]
                    skipped.setdefault(split, []).extend(self._write(folder, split, chosen))
                text = json.dumps({**made, "skipped": skipped}, indent=1) + "\n"
                (folder / _MANIFEST).write_text(text, "utf-8")
        return skipped

    def _write(self, folder: Path, split: str, recordings: Sequence[Recording]) -> list[tuple[str, str]]:
        """Write the sequences of a split; (name, reason) of the recordings that cannot be used."""
        words, skipped = _read(recordings, self._options["trim_db"])
        if not words:
            raise ValueError(
                f"{self.recordings} has no recordings for the split {split!r}, which takes those with the numbers "
                f"{_numbers(split)}."
            )
        speakers = sorted({r.speaker for r in words})
        rng = np.random.default_rng([self._options["seed"], SPLITS.index(split)])
        decks: dict[str, list[Recording]] = {speaker: [] for speaker in speakers}
        for number in range(self._options["sequences"][split]):
            speaker = speakers[number % len(speakers)]
            own = [r for r in words if r.speaker == speaker]
            deck = decks[speaker]
            count = int(rng.integers(self._options["length"][0], self._options["length"][1] + 1))
            while len(deck) < count:  # so that every recording is heard about as often
                deck += [own[i] for i in rng.permutation(len(own))]
            chosen, decks[speaker] = deck[:count], deck[count:]
            samples, spans = join_words(
                [words[r] for r in chosen], self._pauses(count, rng), self._options["snr_db"], rng
            )
            _save(folder / split / speaker, f"{number:05d}", samples, [r.digit for r in chosen], spans)
        return skipped

    def _pauses(self, words: int, rng: np.random.Generator) -> list[int]:
        """Samples before, between and after so many words."""
        longest = round(self._options["pause_s"] * SAMPLE_RATE)
        pauses = rng.integers(0, longest + 1, words + 1)
        inner = rng.random(words + 1) < self._options["adjoining"]
        inner[[0, -1]] = False
        return np.where(inner, 0, pauses).tolist()


def _read_manifest(folder: Path) -> dict[str, Any]:
    """What the sequences of a folder were made of; nothing where there are none, or it cannot be read."""
    try:
        found: dict[str, Any] = json.loads((folder / _MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def _read(
    recordings: Sequence[Recording], trim_db: float
) -> tuple[dict[Recording, Samples], list[tuple[str, str]]]:
    words, skipped = {}, []
    for recording in recordings:
        try:
            samples = cut_ends(load(recording.path, SAMPLE_RATE), trim_db)
        except ValueError as error:
            skipped.append((recording.path.name, str(error)))
            continue
        if len(samples):
            words[recording] = samples
        else:
            skipped.append((recording.path.name, "it is silent."))
    return words, skipped


def _save(
    folder: Path, name: str, samples: Samples, digits: Sequence[int], spans: Sequence[tuple[int, int]]
) -> None:
    from isotone import format as files

    folder.mkdir(parents=True, exist_ok=True)
    soundfile.write(folder / f"{name}.wav", np.clip(samples, -1, 1), SAMPLE_RATE, subtype="PCM_16")
    segments = [Segment(WORDS[d], a / SAMPLE_RATE, b / SAMPLE_RATE) for d, (a, b) in zip(digits, spans)]
    alignment = Alignment(name, len(samples) / SAMPLE_RATE, (Tier("words", tuple(segments)),))
    files.write(alignment, folder, "textgrid")


def _numbers(split: str) -> str:
    if split in HELD_OUT:
        return f"{HELD_OUT[split][0]} to {HELD_OUT[split][-1]}"
    return f"from {max(r[-1] for r in HELD_OUT.values()) + 1} on"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]
