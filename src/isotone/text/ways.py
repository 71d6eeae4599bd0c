"""Lists of the ways in which something is read, the likeliest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Readings of a written form, at most.
MOST_READINGS = 16


def distinct(ways: Iterable[str]) -> list[str]:
    """Return the ways in order, each once and without empty ones."""
    return list(dict.fromkeys(way for way in ways if way))


def spaced(ways: Iterable[str]) -> list[str]:
    """Return the ways with a space on both sides."""
    return [f" {way} " for way in ways]


def combined(parts: Iterable[Sequence[str]]) -> list[str]:
    """List the combinations of the ways of neighbouring parts: those of the likeliest parts first.

    Example:
        >>> combined([["nine", "ten"], [" five", " oh five"]])
        ['nine five', 'nine oh five', 'ten five', 'ten oh five']
    """
    found = [("", 0)]
    for part in parts:
        longer = [(before + now, rank + i) for before, rank in found for i, now in enumerate(part)]
        found = sorted(longer, key=lambda one: one[1])[: 2 * MOST_READINGS]
    return distinct(words for words, _ in found)
