"""A word that can be said in several ways: its pronunciations side by side, each of them a line of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

#: A pronunciation in label numbers, and its cost in nats.
Said = tuple[tuple[int, ...], float]


@dataclass(frozen=True, slots=True)
class Part:
    """A token of a word, and the ways to it and from it.

    Costs are in nats; None means that there is no such way.

    Attributes:
        label: Label number.
        before: Parts of the word that may come before it, each with a cost; by their numbers, which are lower.
        from_speech, from_pause: Cost of a word that begins with it, after other speech, or after a pause or the start.
        to_speech, to_pause: Cost of a word that ends with it, before other speech, or before a pause or the end.
        stop: Label number of the stop that it is the closure of; None for anything else.
        longest_s: Seconds that it may last; 0 for any time.
        pause_s, pause_cost: Least seconds and additional nats of a pause between words, if the second one begins with
            this part; 0 for any time.
        half: True for the closure or release of a stop, which are one phone together.
    """

    label: int
    before: tuple[tuple[int, float], ...] = ()
    from_speech: float | None = None
    from_pause: float | None = None
    to_speech: float | None = None
    to_pause: float | None = None
    stop: int | None = None
    longest_s: float = 0.0
    pause_s: float = 0.0
    pause_cost: float = 0.0
    half: bool = False


WordGraph = tuple[Part, ...]


def straight(labels: Sequence[int]) -> WordGraph:
    """One pronunciation: its labels in a line."""
    last = len(labels) - 1
    return tuple(
        Part(
            label,
            () if i == 0 else ((i - 1, 0.0),),
            *((0.0, 0.0) if i == 0 else (None, None)),
            *((0.0, 0.0) if i == last else (None, None)),
        )
        for i, label in enumerate(labels)
    )


def side_by_side(said: Sequence[Said], spread: Callable[[Sequence[int]], WordGraph] = straight) -> WordGraph:
    """Put pronunciations side by side.

    Args:
        said: Different pronunciations, each with its cost, which a word pays where it begins.
        spread: Makes a graph of a pronunciation.
    """
    parts: list[Part] = []
    for labels, cost in said:
        start = len(parts)
        for part in spread(labels):
            parts.append(
                replace(
                    part,
                    before=tuple((start + i, c) for i, c in part.before),
                    from_speech=_sum(part.from_speech, cost),
                    from_pause=_sum(part.from_pause, cost),
                )
            )
    return tuple(parts)


def _sum(cost: float | None, more: float) -> float | None:
    return None if cost is None else cost + more
