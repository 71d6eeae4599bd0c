"""Closures of stops as parts of a word's graph: limited in time, and absent after a pause."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from isotone.text.phones import CLOSURE_OF, PHONE_CLASSES, RELEASES, SILENT
from isotone.text.word_graph import Part, WordGraph, straight

#: Labels of closures: those of TIMIT's 61 phones and of the set of 48. In the set of 39 it is the silence.
CLOSURES = frozenset({*RELEASES, "cl", "vcl"})

#: Stops that speakers tap between vowels, without a closure; and what a tap is in a dictionary.
_TAPPED, _FLAP = frozenset({"t", "d"}), "dx"

#: Fricatives that are hardly louder than silence, and the seconds that they last: a shorter silence between words is
#: the fricative after it.
_WEAK, WEAK_S = frozenset({"f", "th"}), 0.1


@dataclass(frozen=True)
class ClosureRules:
    """Rules of stops and affricates: they are closure and release, or one of the two.

    After a pause, and where a recording begins, it is the release alone: its closure cannot be told from the silence.

    Attributes:
        longest_s: Seconds that a closure may last.
        pause_s, paused: Least seconds, and cost in nats, of a pause between words before a stop without closure: a
            shorter or doubtful silence is the closure. Before f or th the cost is the same, and the least time
            :data:`WEAK_S`.
        released: Cost in nats of a stop with release before a pause or at the end: a short silence there is rather the
            closure of a stop without release, or of the next stop.
        unreleased: Cost in nats of a stop without release, before a pause or at the end; and of a flap, which has no
            vowel after it there.
        joined: Cost in nats of a stop without release before other speech: at the end of a word, or before a closure.
        tapped: Cost in nats of a t or d between vowels that has no closure.

    Raises:
        ValueError: a time that is not above 0, or a cost that is below 0.
    """

    longest_s: float = 0.15
    pause_s: float = 0.15
    paused: float = 4.0
    released: float = 3.0
    unreleased: float = 8.0
    joined: float = 1.0
    tapped: float = 5.0

    def __post_init__(self) -> None:
        costs = self.pause_s, self.paused, self.released, self.unreleased, self.joined, self.tapped
        if not 0 < self.longest_s < math.inf or not all(0 <= cost < math.inf for cost in costs):
            raise ValueError(
                "Closures last at most longest_s > 0 seconds, and pause_s and all costs are 0 or more; "
                f"got {self}."
            )

    def spread(self, labels: Sequence[int], names: Sequence[str]) -> WordGraph:
        """Make the graph of a pronunciation in which every stop has a closure.

        Args:
            labels: Label numbers of the pronunciation.
            names: The label of every number of the vocabulary.
        """
        said = [names[label] for label in labels]
        parts = list(straight(labels))
        closed = [i for i in range(len(said)) if is_closure(said, i)]
        for i in closed:
            parts[i] = replace(
                parts[i], stop=labels[i + 1], longest_s=self.longest_s, half=True, from_pause=None
            )
            release = replace(parts[i + 1], half=True)
            if i == 0:
                release = replace(release, from_pause=0.0, pause_s=self.pause_s, pause_cost=self.paused)
            parts[i + 1] = release
            if PHONE_CLASSES[said[i + 1]] == "stop":
                self._unreleased(parts, i, i + 2 in closed)
            if said[i + 1] in _TAPPED and _is_vowel(said, i + 2) and (i == 0 or _is_vowel(said, i - 1)):
                self._tapped(parts, i)
        if said and said[0] in _WEAK:
            parts[0] = replace(parts[0], pause_s=WEAK_S, pause_cost=self.paused)
        if said[-1:] == [_FLAP]:
            parts[-1] = replace(parts[-1], to_pause=self.unreleased)
        return tuple(parts)

    def _unreleased(self, parts: list[Part], closure: int, closes_again: bool) -> None:
        """Let a word end, or another closure begin, after a stop's closure."""
        after = closure + 2
        if after == len(parts):
            parts[closure] = replace(parts[closure], to_speech=self.joined, to_pause=self.unreleased)
            parts[closure + 1] = replace(parts[closure + 1], to_pause=self.released)
        elif closes_again:
            ways = (*parts[after].before, (closure, self.joined))
            parts[after] = replace(parts[after], before=tuple(sorted(ways)))

    def _tapped(self, parts: list[Part], closure: int) -> None:
        """Let a release come without its closure."""
        release = parts[closure + 1]
        if closure == 0:
            parts[1] = replace(release, from_speech=self.tapped)
        else:
            ways = ((closure - 1, self.tapped), *release.before)
            parts[closure + 1] = replace(release, before=ways)


def is_closure(said: Sequence[str], i: int) -> bool:
    """Return whether a phone of a pronunciation is the closure of the stop or affricate after it."""
    return (said[i] in CLOSURES or said[i] in SILENT) and i + 1 < len(said) and said[i + 1] in CLOSURE_OF


def _is_vowel(said: Sequence[str], i: int) -> bool:
    return i < len(said) and PHONE_CLASSES.get(said[i]) == "vowel"
