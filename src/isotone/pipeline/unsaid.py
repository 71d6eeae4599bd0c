"""Words of passages that were likely not said, such as those of a cue of another version of a film.

They get times all the same, for the time of a passage says where it is. So they are told, and not left out. Single
words of a passage that nobody says may well be heard in something else: it is told by all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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

#: Mean log-odds from which a passage was said, however clear the others are: a fast one beside slow ones. Cues of other
#: recordings have less but where most cues are such.
SAID = 1.9

#: Fewest words of a passage, and fewest such passages of a recording, that are compared.
LEAST_WORDS, LEAST_PASSAGES = 3, 3

_NAMED = 20

# Probabilities closer to 0 or 1 tell no more.
_LEAST = 1e-6


def with_presence(presence: Presence | None, result: Result) -> tuple[Result, dict[int, bool]]:
    """Give the words of an alignment their presence.

    Args:
        presence: How words are judged; None: they are not.
        result: The alignment, with its evidence.

    Returns:
        The alignment, and the places of those of its words that may not have been said, with True where it is sure.
    """
    if presence is None or result.evidence is None:
        return result, {}
    judged = judge(presence, result.evidence)
    tier, *others = result.alignment.tiers
    segments = tuple(replace(s, presence=judged.words.get(n)) for s, n in zip(tier, result.words))
    alignment = replace(result.alignment, tiers=(replace(tier, segments=segments), *others))
    places = [(i, number) for i, number in enumerate(result.words) if number in judged.unlikely]
    return replace(result, alignment=alignment), {i: number in judged.absent for i, number in places}


def runs(
    words: Sequence[Segment], unlikely: Mapping[int, bool], owners: Sequence[int | None]
) -> Iterator[tuple[int, list[Segment]]]:
    """Iterate over the words in a row that were likely not said: so many that a text is wrong by them.

    Args:
        words: Words in order.
        unlikely: From :func:`with_presence`. Of a row one at least is sure.
        owners: The number of every word's passage.

    Yields:
        The number of the passage, and the words.
    """
    for (owner, missing), group in groupby(range(len(words)), lambda i: (owners[i], i in unlikely)):
        places = list(group)
        if missing and owner is not None and len(places) >= LEAST_RUN and any(unlikely[i] for i in places):
            yield owner, [words[i] for i in places]


def unlikely(words: Mapping[int, Sequence[Segment]]) -> frozenset[int]:
    """Find the passages that were likely not said.

    Args:
        words: The words of every passage, with their presence where it is known.

    Returns:
        Numbers of the passages whose mean log-odds are below :data:`SAID`, and below :data:`SHARE` of what a tenth of
        the passages exceeds.
    """
    odds = {n: [_log_odds(w.presence) for w in own if w.presence is not None] for n, own in words.items()}
    means = {n: fmean(own) for n, own in odds.items() if len(own) >= LEAST_WORDS}
    if len(means) < LEAST_PASSAGES:
        return frozenset()
    least = min(SAID, SHARE * float(np.percentile(list(means.values()), 90)))
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
