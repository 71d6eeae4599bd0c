"""Pauses beside words: counts in speech, and what a pause costs an aligner there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from isotone.alignment import Segment
from isotone.files import atomic_write
from isotone.text.pronouncer import Pauses

#: Table of counts, beside this module.
PAUSES = Path(__file__).with_name("pauses.txt")
#: Least occurrences of a word in the table.
LEAST = 20

# Seconds of a pause: closures of stops are shorter.
_PAUSE_S = 0.1
# Places with the mean share of pauses that are added to those of every word.
_ADDED = 5
# Frames of sound are no independent evidence, so what is known of words weighs more. From 1 to 2 results are alike.
_WEIGHT = 1.5

_HEADER = """\
# Pauses of {pause_s} s or more beside words, counted by recipes/english/pauses.py: word, how often another word
# follows it, with a pause how often; how often another word is before it, with a pause how often.
# Of all words: {places} {pauses}
"""


class PauseCounts:
    """Counts of words, and of the pauses after and before them."""

    def __init__(self) -> None:
        self._places: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self._pauses: tuple[Counter[str], Counter[str]] = Counter(), Counter()

    @property
    def places(self) -> int:
        """Places between words."""
        return self._places[0].total()

    @property
    def pauses(self) -> int:
        """Those of them with a pause."""
        return self._pauses[0].total()

    def add(self, words: Sequence[Segment]) -> None:
        """Count the places between the words of a recording."""
        for before, after in pairwise(words):
            for side, word in enumerate((before, after)):
                self._places[side][word.label.lower()] += 1
                self._pauses[side][word.label.lower()] += after.start - before.end >= _PAUSE_S

    def rows(self) -> Iterator[tuple[str, int, int, int, int]]:
        """Iterate over the frequent words in order: places after and pauses there, places before and pauses there."""
        for word in sorted(set(self._places[0]) | set(self._places[1])):
            own = (self._places[0], self._pauses[0], self._places[1], self._pauses[1])
            after, paused_after, before, paused_before = (counter[word] for counter in own)
            if max(after, before) >= LEAST:
                yield word, after, paused_after, before, paused_before


def write_pauses(path: Path, counts: PauseCounts) -> None:
    """Write the table."""
    header = _HEADER.format(pause_s=_PAUSE_S, places=counts.places, pauses=counts.pauses)
    with atomic_write(path, "w") as file:
        file.write(header + "".join("\t".join(map(str, row)) + "\n" for row in counts.rows()))


def read_pauses(path: Path = PAUSES) -> dict[str, list[float]]:
    """Read the table: what speech and pauses cost after every word and before it, in nats (:class:`Pauses`).

    The cost is what they are less likely beside this word than beside all words. The smaller of both is 0.

    Raises:
        ValueError: a line of another form, or no line of all words.
    """
    table: dict[str, list[float]] = {}
    share = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("# Of all words:"):
            places, pauses = map(int, line.rsplit(":", 1)[1].split())
            share = pauses / places
        if line.startswith("#") or not line.strip():
            continue
        word, *numbers = line.split("\t")
        if share is None or len(numbers) != 4 or word in table:
            raise ValueError(f"{path}, line {number}: a new word and four counts; got {line!r}.")
        after, before = (_costs(int(p), int(n), share) for n, p in zip(numbers[::2], numbers[1::2]))
        table[word] = [round(cost, 3) for cost in Pauses(*after, *before)]
    return table


def _costs(pauses: int, places: int, share: float) -> tuple[float, float]:
    """Compute the costs in nats of speech and of a pause."""
    own = (pauses + _ADDED * share) / (places + _ADDED)
    speech, pause = (-_WEIGHT * math.log(p / q) for p, q in ((1 - own, 1 - share), (own, share)))
    least = min(speech, pause)
    return speech - least, pause - least
