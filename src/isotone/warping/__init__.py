"""Alignment of any two sequences, and of recordings with each other.

:func:`align_sequences` warps two arrays of features; :class:`Matcher` two recordings, which gives a
:class:`TimeMap`. ``isotone match`` is built on it.
"""

from isotone.warping.carrying import refined
from isotone.warping.features import SIGNALS, Features, open_features
from isotone.warping.matcher import Match, Matcher
from isotone.warping.sequences import align_sequences
from isotone.warping.time_map import TimeMap

__all__ = [
    "SIGNALS",
    "Features",
    "Match",
    "Matcher",
    "TimeMap",
    "align_sequences",
    "open_features",
    "refined",
]
