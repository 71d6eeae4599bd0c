"""Readers of the same sentence: hand labels of one carried to another, on TIMIT's SA1 and SA2.

Every reader is the reference of every other. Words are compared by both of their ends, phones by their starts, where
the sequences of both readers' labels agree (longest common blocks).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.match.systems import System
from isotone import audio as sound
from isotone.alignment import Alignment, Tier
from isotone.corpus.timit import read_labels
from isotone.warping import TimeMap, refined

RATE = 16_000
SILENT = {"h#", "pau", "epi"}

Reading = tuple[NDArray[np.float32], Tier, Tier]


def readings(root: Path) -> Iterator[list[Reading]]:
    """Samples, words and phones of all readers, sentence by sentence."""
    for sentence in ("sa1", "sa2"):
        files = sorted(root.rglob(f"{sentence}.wav"))
        if not files:
            raise FileNotFoundError(
                f"No {sentence}.wav below {root}: give the folder of TIMIT or its sample."
            )
        found = []
        for file in files:
            samples = sound.load(file, RATE)
            tiers = [
                read_labels(file.with_suffix(suffix), name, len(samples) / RATE)
                for suffix, name in ((".wrd", "words"), (".phn", "phones"))
            ]
            found.append((samples, *tiers))
        yield found


class Pair(NamedTuple):
    """Two readers of a sentence, and the map of the first to the second."""

    found: TimeMap
    reference: Reading
    other: Reading


def pairs(system: System, sentences: list[list[Reading]]) -> list[Pair]:
    """Match all readers of a sentence with each other."""
    return [Pair(system(a[0], b[0]), a, b) for readers in sentences for a, b in permutations(readers, 2)]


def errors(matched: list[Pair], refine: float) -> dict[str, list[float]]:
    """Errors in seconds of the boundaries of words and phones, over all pairs of readers.

    Args:
        matched: What :func:`pairs` found.
        refine: Weight of :func:`isotone.warping.refined`; 0 for the map alone.
    """
    out: dict[str, list[float]] = defaultdict(list)
    for found, (a, words_a, phones_a), (b, words_b, phones_b) in matched:
        if refine:
            labels = Alignment("", len(a) / RATE, (words_a, phones_a))
            found = refined(found, labels, b, RATE, refine)
        for s, t in zip(words_a, words_b, strict=True):
            out["words"] += [found(s.start) - t.start, found(s.end) - t.end]
        matcher = SequenceMatcher(None, phones_a.labels, phones_b.labels, autojunk=False)
        for i, j, size in matcher.get_matching_blocks():
            blocks = zip(phones_a.segments[i : i + size], phones_b.segments[j : j + size])
            out["phones"] += [found(s.start) - t.start for s, t in blocks if s.label not in SILENT]
    return out
