"""Matching of the ids of utterances on two sides."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from isotone.format import file_name


def match_ids(hyp: Iterable[str], ref: Iterable[str]) -> list[tuple[str, str]]:
    """Pair the ids of two sides that mean the same utterance: see :func:`isotone.evaluation.files.evaluate_paths`.

    Returns:
        Pairs of ids, sorted.

    Raises:
        ValueError: two ids of a side differ only in case.
    """
    a, b = _by_key(hyp), _by_key(ref)
    matches = [(a.pop(k), b.pop(k)) for k in sorted(a.keys() & b.keys())]
    for id_a, id_b in _match_endings(a.values(), b.values()):
        matches.append((id_a, id_b))
        del a[key(id_a)], b[key(id_b)]
    matches += [(id_a, id_b) for id_b, id_a in _match_endings(b.values(), a.values())]
    return sorted(matches)


def _match_endings(short: Iterable[str], long: Iterable[str]) -> list[tuple[str, str]]:
    """Pair ids of which one ends like the other, where each has only one such partner."""
    found = _partners(short, long)
    claims = Counter(id for _, partners in found for id in partners)
    return [(id, partners[0]) for id, partners in found if len(partners) == 1 and claims[partners[0]] == 1]


def ambiguous(hyp: Iterable[str], ref: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Find the ids of either side that fit several ids of the other side, with those."""
    a, b = list(hyp), list(ref)
    return [(id, partners) for id, partners in (*_partners(a, b), *_partners(b, a)) if len(partners) > 1]


def _partners(short: Iterable[str], long: Iterable[str]) -> list[tuple[str, list[str]]]:
    endings: dict[tuple[str, ...], list[str]] = {}
    for id in long:
        parts = _parts(id)
        for k in range(len(parts)):
            endings.setdefault(parts[k:], []).append(id)
    return [(id, endings.get(_parts(id), [])) for id in short]


def _by_key(ids: Iterable[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    for id in ids:
        if out.setdefault(key(id), id) != id:
            raise ValueError(f"Two alignments on one side have one id: {out[key(id)]!r} and {id!r}.")
    return out


def key(id: str) -> str:
    """Return the name of an id as files have it, in lower case."""
    return file_name(id).casefold()


def _parts(id: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[/_\-]+", id.casefold()) if part)
