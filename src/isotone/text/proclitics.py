"""Proclitics, words that lean on the next one, as *the* and *of*: readers hardly ever pause after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isotone.text.phones import PHONE_CLASSES
from isotone.text.pronouncer import Pauses
from isotone.text.word_graph import Part, WordGraph, dearer, paid

#: Least cost in nats of a pause after a proclitic.
LEAST_TO_PAUSE = 1.0
#: Seconds that a vowel of a proclitic lasts at most, and the cost in nats of one that is drawn out. At less cost the
#: frames of a hesitation, each of which counts, would still become the vowel.
LONGEST_S, DRAWN_OUT_COST = 0.25, 20.0


def beside_pauses(graph: WordGraph, pauses: Pauses, names: Sequence[str]) -> WordGraph:
    """Give a pronunciation the costs of pauses beside it, and a limit to the vowels of a proclitic.

    Args:
        graph: Graph of the pronunciation.
        pauses: Costs of what is beside it.
        names: The label of every number of the vocabulary.
    """
    proclitic = pauses.to_pause >= LEAST_TO_PAUSE
    return paid(_limited(graph, names) if proclitic else graph, *pauses)


def _limited(graph: WordGraph, names: Sequence[str]) -> WordGraph:
    """Put beside every vowel one that may last longer, and limit the vowel."""
    parts: list[Part] = []
    numbers: list[list[int]] = []
    for part in graph:
        ways = tuple((number, cost) for i, cost in part.before for number in numbers[i])
        own = replace(part, before=ways)
        vowel = PHONE_CLASSES.get(names[part.label]) == "vowel"
        also = [replace(own, longest_s=LONGEST_S), dearer(own, DRAWN_OUT_COST)] if vowel else [own]
        numbers.append(list(range(len(parts), len(parts) + len(also))))
        parts += also
    return tuple(parts)
