"""A word that can be said in several ways: its readings and their pronunciations side by side, as lines of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

#: A pronunciation in label numbers, and its cost in nats.
Said = tuple[tuple[int, ...], float]

#: Cost in nats of each reading beyond the likeliest one before it, and of the least likely.
READING_COST, MOST_COST = 0.5, 3.0
#: Parts that a word of several readings may end with: the kernel takes up to 253 arcs into a token.
MOST_EXITS = 100


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
        shortest_s: Least seconds of a pause between spoken words of the word; None for other parts.
        reading: Number of the reading of the word that it belongs to.
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
    shortest_s: float | None = None
    reading: int = 0


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


def hesitating(silence: int, vowels: Sequence[int], hums: Sequence[int], cost: float) -> WordGraph:
    """A pause in which the speaker may hesitate: silence; then perhaps *uh*, *um* or *mm*, and silence again.

    Args:
        silence: Label number of the silence.
        vowels: Label numbers of the vowels of hesitations; without any there are none.
        hums: Label numbers of the sounds after vowels, or in place of them.
        cost: Nats of a hesitation.
    """
    if not vowels:
        return straight([silence])
    first, end = straight([silence])[0], len(vowels) + 1
    said = [Part(vowel, ((0, cost),)) for vowel in vowels]
    said += [Part(hum, ((0, cost), *((i, 0.0) for i in range(1, end)))) for hum in hums]
    again = Part(silence, tuple((i, 0.0) for i in range(1, len(said) + 1)), to_speech=0.0, to_pause=0.0)
    return (first, *said, again)


def side_by_side(said: Sequence[Said], spread: Callable[[Sequence[int]], WordGraph] = straight) -> WordGraph:
    """Put pronunciations side by side.

    Args:
        said: Different pronunciations, each with its cost, which a word pays where it begins.
        spread: Makes a graph of a pronunciation.
    """
    parts: list[Part] = []
    for labels, cost in said:
        parts += _moved(spread(labels), len(parts), cost)
    return tuple(parts)


def paid(
    graph: WordGraph, to_speech: float, to_pause: float, from_speech: float, from_pause: float
) -> WordGraph:
    """Add costs in nats to the ways out of a graph and into it."""
    return tuple(
        replace(
            part,
            to_speech=_sum(part.to_speech, to_speech),
            to_pause=_sum(part.to_pause, to_pause),
            from_speech=_sum(part.from_speech, from_speech),
            from_pause=_sum(part.from_pause, from_pause),
        )
        for part in graph
    )


def dearer(part: Part, cost: float) -> Part:
    """Add a cost in nats to all ways into a part."""
    return replace(
        part,
        before=tuple((i, own + cost) for i, own in part.before),
        from_speech=_sum(part.from_speech, cost),
        from_pause=_sum(part.from_pause, cost),
    )


def of_readings(graphs: Sequence[tuple[int, WordGraph]]) -> WordGraph:
    """Put the graphs of a word's readings side by side, as far as they have room.

    Args:
        graphs: For every reading its number and its graph, the likeliest first; each later one costs
            :data:`READING_COST` more, up to :data:`MOST_COST`.
    """
    parts: list[Part] = []
    exits = 0
    for rank, (number, graph) in enumerate(graphs):
        exits += len(_exits(graph))
        if rank and exits > MOST_EXITS:
            break
        moved = _moved(graph, len(parts), min(rank * READING_COST, MOST_COST))
        parts += (part if part.reading == number else replace(part, reading=number) for part in moved)
    return tuple(parts)


def in_line(graphs: Sequence[WordGraph], pause: int | None) -> WordGraph:
    """Put the graphs of the parts of a word one behind the other.

    Args:
        graphs: One or more graphs.
        pause: Label of the pause that may be between two of them; None: there is none.
    """
    parts: list[Part] = list(graphs[0])
    exits = _exits(parts)
    for graph in graphs[1:]:
        exits = _follow(parts, exits, graph, pause)
    return tuple(parts)


def _follow(parts: list[Part], exits: list[int], graph: WordGraph, pause: int | None) -> list[int]:
    """Put a graph behind parts whose exits are given; return its own exits."""
    leaving = [(i, parts[i].to_speech, parts[i].to_pause) for i in exits]
    for i in exits:
        parts[i] = replace(parts[i], to_speech=None, to_pause=None)
    to_pause = tuple((i, cost) for i, _, cost in leaving if cost is not None)
    paused = len(parts) if pause is not None and to_pause else None
    if paused is not None:
        longest = max((part.pause_s for part in graph if part.from_pause is not None), default=0.0)
        parts.append(Part(pause, to_pause, shortest_s=longest))  # type: ignore[arg-type]
    start = len(parts)
    for part in _moved(graph, start, 0.0):
        ways = list(part.before)
        if part.from_speech is not None:
            ways += [(i, part.from_speech + cost) for i, cost, _ in leaving if cost is not None]
        if part.from_pause is not None and paused is not None:
            ways.append((paused, part.from_pause + part.pause_cost))
        parts.append(
            replace(
                part,
                before=tuple(sorted(ways)),
                from_speech=None,
                from_pause=None,
                pause_s=0.0,
                pause_cost=0.0,
            )
        )
    return [start + i for i in _exits(graph)]


def _exits(graph: Sequence[Part]) -> list[int]:
    """List the numbers of the parts that a graph may end with."""
    return [i for i, part in enumerate(graph) if not (part.to_speech is None and part.to_pause is None)]


def _moved(graph: WordGraph, start: int, cost: float) -> list[Part]:
    """Number the parts of a graph from ``start`` on, and add a cost to the ways into it."""
    if not (start or cost):
        return list(graph)
    return [
        replace(
            part,
            before=tuple((start + i, c) for i, c in part.before),
            from_speech=_sum(part.from_speech, cost),
            from_pause=_sum(part.from_pause, cost),
        )
        for part in graph
    ]


def _sum(cost: float | None, more: float) -> float | None:
    return None if cost is None else cost + more
