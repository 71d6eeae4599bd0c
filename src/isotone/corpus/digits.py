"""Sequences of spoken digits: real speech with exact word times (Free Spoken Digit Dataset)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from isotone.alignment import Alignment, Segment, Tier
from isotone.corpus.digit_recordings import (
    HELD_OUT,
    SAMPLE_RATE,
    WORDS,
    Recording,
    Samples,
    find_recordings,
    join_words,
    read_words,
)
from isotone.corpus.folder import SPLITS, FolderCorpus
from isotone.corpus.rows import Part
from isotone.files import alone, atomic_folder

# Increased whenever the same options make other sequences.
_REVISION = 1

_MANIFEST = "manifest.json"


class DigitsCorpus(FolderCorpus):
    """Sequences of digits by one speaker each, joined from the Free Spoken Digit Dataset's recordings.

    Each recording is a single word. Room tone at its ends is cut, so the word times of a sequence are exact. A sequence
    consists of recordings of one speaker in random order, with pauses before, between and after them and low noise
    (:func:`join_words`). A recording may be in several sequences of its split, and in no other split. As in the data
    set, its numbers 0 to 4 are test; here 5 to 9 are dev, and the others are train.

    The sequences are written once, as recordings with TextGrids for :class:`isotone.corpus.folder.FolderCorpus`, into a
    folder with a ``manifest.json`` of the options. Each set of options has its own folder; if the data set changes, the
    sequences are made again.

    Args:
        root: The data set's folder, which contains ``recordings``.
        cache: Folder for the sequences.
        length: Fewest and most words of a sequence.
        train, dev, test: Numbers of sequences.
        pause_s: Longest pause, in seconds; pauses are uniform from 0.
        adjoining: Share of the words that follow the word before without a pause.
        trim_db: Threshold for cutting the ends of recordings, in dB below their level.
        snr_db: Level of a sequence's quietest word over its noise.
        seed: Seed of all random choices.

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
        """Return the folders of the data set and of the sequences."""
        return [self.recordings, self.root]

    def parts(self, split: str) -> Iterator[tuple[str, Callable[[], Part]]]:
        """Iterate over the sequences of a split, which are made if necessary, and the unusable recordings.

        Raises:
            FileNotFoundError: no recordings at the root.
            ValueError: no such split, or no recordings for it.
        """
        skipped = self._make()
        yield from super().parts(split)
        for name in SPLITS if split == "all" else (split,):
            yield name, partial(Part, skipped=[(id, reason) for id, reason in skipped[name]])

    def _make(self) -> dict[str, list[tuple[str, str]]]:
        """Write the sequences unless they exist; return (name, reason) of recordings left out, by split."""
        found, odd = find_recordings(self.recordings)
        files = [(r.path.name, r.path.stat()) for r in found]
        state = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in files]
        made = {"revision": _REVISION, "options": self._options, "recordings": _digest([state, odd])}
        with alone(self.root):  # of runs that begin together one makes them; the others wait and find them
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
        """Write the sequences of a split; return (name, reason) of unusable recordings."""
        words, skipped = read_words(recordings, self._options["trim_db"])
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
            while len(deck) < count:  # a new shuffled deck, so that all recordings are used equally often
                deck += [own[i] for i in rng.permutation(len(own))]
            chosen, decks[speaker] = deck[:count], deck[count:]
            samples, spans = join_words(
                [words[r] for r in chosen], self._pauses(count, rng), self._options["snr_db"], rng
            )
            _save(folder / split / speaker, f"{number:05d}", samples, [r.digit for r in chosen], spans)
        return skipped

    def _pauses(self, words: int, rng: np.random.Generator) -> list[int]:
        """Draw the pauses before, between and after a number of words, in samples."""
        longest = round(self._options["pause_s"] * SAMPLE_RATE)
        pauses = rng.integers(0, longest + 1, words + 1)
        inner = rng.random(words + 1) < self._options["adjoining"]
        inner[[0, -1]] = False
        return np.where(inner, 0, pauses).tolist()


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder of sequences; empty if there is none, or it cannot be read."""
    try:
        found: dict[str, Any] = json.loads((folder / _MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found


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
