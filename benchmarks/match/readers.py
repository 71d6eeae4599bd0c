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

import numpy as np
from numpy.typing import NDArray

from benchmarks.match.systems import System
from isotone import audio as sound
from isotone.alignment import Tier
from isotone.corpus.timit import read_labels

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
            samples = sound.load(file, 16_000)
            tiers = [
                read_labels(file.with_suffix(suffix), name, len(samples) / 16_000)
                for suffix, name in ((".wrd", "words"), (".phn", "phones"))
            ]
            found.append((samples, *tiers))
        yield found


def errors(system: System, sentences: list[list[Reading]]) -> dict[str, list[float]]:
    """Errors in seconds of the boundaries of words and phones, over all pairs of readers."""
    out: dict[str, list[float]] = defaultdict(list)
    for readers in sentences:
        for (a, words_a, phones_a), (b, words_b, phones_b) in permutations(readers, 2):
            found = system(a, b)
            for s, t in zip(words_a, words_b, strict=True):
                out["words"] += [found(s.start) - t.start, found(s.end) - t.end]
            matcher = SequenceMatcher(None, phones_a.labels, phones_b.labels, autojunk=False)
            for i, j, size in matcher.get_matching_blocks():
                pairs = zip(phones_a.segments[i : i + size], phones_b.segments[j : j + size])
                out["phones"] += [found(s.start) - t.start for s, t in pairs if s.label not in SILENT]
    return out
