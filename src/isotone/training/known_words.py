"""Presence of words after a model has changed: what it found before, it still finds.

A model that learns from recordings becomes sure of some words and unsure of others. The probabilities that words were
said were fitted to the model before (:mod:`isotone.training.presence`), and right texts could lose words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from scipy.special import expit, logit

from isotone.model.check import Presence
from isotone.pipeline.presence import Evidence, log_odds, most_odds
from isotone.pipeline.verdict import judge
from isotone.training.presence import FALSE_ALARMS, LOST

_MARGIN = 1e-6  # in log-odds: a word at the threshold is there


def loosened(presence: Presence, texts: Iterable[tuple[Evidence, Evidence]]) -> Presence:
    """Move the thresholds so that a changed model keeps the words, and the gaps without words, of the one before.

    The threshold of words falls and those of gaps rise, as far as necessary: below and beyond them are as large shares
    as in the fit. Of less than some hundred words and gaps that is none.

    Args:
        presence: How the model before judges words.
        texts: Evidence on every text, by the model before and by the changed one.
    """
    words, gaps = [np.zeros(0)], [np.zeros(0)]
    for before, after in texts:
        judged, odds = judge(presence, before), log_odds(presence.said, after.said)
        if not len(odds):
            continue
        said = [number not in judged.unlikely for number in after.words]
        empty = [place not in judged.extra for place in after.places]
        words.append((odds - presence.slope * np.median(odds))[said])
        gaps.append((log_odds(presence.extra, after.gaps) - most_odds(presence, odds))[empty])
    least, most, rise = presence.least, presence.most, presence.rise
    if least > 0 and (kept := np.concatenate(words)).size:
        lowest = float(np.quantile(kept, LOST, method="lower"))
        least = min(least, float(expit(lowest - _MARGIN)))
    if most < 1 and (beyond := np.concatenate(gaps)).size:
        highest = float(np.quantile(beyond, 1 - FALSE_ALARMS, method="higher")) + _MARGIN
        if highest > 0:
            most, rise = float(expit(logit(most) + highest)), tuple(a + highest for a in rise[:1]) + rise[1:]
    return replace(presence, least=least, most=most, rise=rise)
