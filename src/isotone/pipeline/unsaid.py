"""Words of passages that were likely not said, such as those of a cue of another version of a film.

They get times all the same, for the time of a passage says where it is. So they are told, and not left out. Single
words of a passage that nobody says may well be heard in something else: it is told by all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import fmean

import numpy as np

from isotone.alignment import Segment
from isotone.model.check import Presence
from isotone.pipeline.deviations import LEAST_RUN, listed, named_by
from isotone.pipeline.result import Result
from isotone.pipeline.verdict import judge

#: Share of the mean log-odds of a recording's best tenth of passages below which a passage was likely not said.
#: Compared with the typical passage instead, two thirds were missed where four of five cues were another recording's.
SHARE = 0.3

#: Fewest words of a passage, and fewest such passages of a recording, that are compared.
LEAST_WORDS, LEAST_PASSAGES = 3, 3

_NAMED = 20

# Probabilities closer to 0 or 1 tell no more.
_LEAST = 1e-6


def with_presence(presence: Presence | None, result: Result) -> tuple[Result, frozenset[int]]:
    """Give the words of an alignment their presence.

    Args:
        presence: How words are judged; None: they are not.
        result: The alignment, with its evidence.

    Returns:
        The alignment, and the places of those of its words that were likely not said.
    """
    if presence is None or result.evidence is None:
        return result, frozenset()
    judged = judge(presence, result.evidence)
    tier, *others = result.alignment.tiers
    segments = tuple(replace(s, presence=judged.words.get(n)) for s, n in zip(tier, result.words))
    alignment = replace(result.alignment, tiers=(replace(tier, segments=segments), *others))
    absent = frozenset(i for i, number in enumerate(result.words) if number in judged.unlikely)
    return replace(result, alignment=alignment), absent


def runs(
    words: Sequence[Segment], absent: Collection[int], owners: Sequence[int | None]
) -> Iterator[tuple[int, list[Segment]]]:
    """Iterate over the words in a row that were likely not said: so many that a text is wrong by them.

    Args:
        words: Words in order.
        absent: Places of those that were likely not said.
        owners: The number of every word's passage.

    Yields:
        The number of the passage, and the words.
    """
    for (owner, missing), group in groupby(range(len(words)), lambda i: (owners[i], i in absent)):
        found = [words[i] for i in group]
        if missing and owner is not None and len(found) >= LEAST_RUN:
            yield owner, found


def unlikely(words: Mapping[int, Sequence[Segment]]) -> frozenset[int]:
    """Find the passages that were likely not said.

    Args:
        words: The words of every passage, with their presence where it is known.

    Returns:
        Numbers of the passages whose mean log-odds are below :data:`SHARE` of what a tenth of the passages exceeds.
    """
    odds = {n: [_log_odds(w.presence) for w in own if w.presence is not None] for n, own in words.items()}
    means = {n: fmean(own) for n, own in odds.items() if len(own) >= LEAST_WORDS}
    if len(means) < LEAST_PASSAGES:
        return frozenset()
    least = SHARE * float(np.percentile(list(means.values()), 90))
    return frozenset(n for n, mean in means.items() if mean < least)


def _log_odds(probability: float) -> float:
    p = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(p / (1 - p))


def told(found: Sequence[tuple[str, Sequence[Segment]]]) -> str:
    """Make a sentence on words that were likely not said, of passages that are named by their places."""
    named = [
        f"{named_by([w.label for w in words])} at {words[0].start:.1f} s ({where})" for where, words in found
    ]
    return f"words that were likely not said, and have times all the same: {listed(named, _NAMED)}"
