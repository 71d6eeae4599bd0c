"""Texts that can be said in several ways, for aligners that choose: all ways as a graph, and the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from isotone.pipeline.texts import TextToAlign, targets_of
from isotone.tensors import torch
from isotone.text.transcript import STAR_NUMBER
from isotone.text.word_graph import Part, WordGraph, straight
from isotone.types import Coupling, Targets, TokenGraph, length_mask
from isotone.types.graph import Ways


class Lattice(NamedTuple):
    """A text with the tokens of all its readings.

    Attributes:
        text: Tokens in topological order.
        ways: The arcs into each token, and into the end.
        parts: What each token is, with its ways within its word.
        shortest: Seconds that each token has to last.
    """

    text: TextToAlign
    ways: list[Ways]
    parts: list[Part]
    shortest: list[float]

    @property
    def pauses(self) -> list[bool]:
        """Marks of the silences between the first word and the last one."""
        transcript, owners = self.text.transcript, self.text.transcript.token_words
        silence = transcript.pause[0].label if transcript.pause else None
        spoken = [i for i, owner in enumerate(owners) if owner is not None] or [0]
        inside = range(spoken[0], spoken[-1])
        return [
            i in inside and owner is None and token == silence
            for i, (token, owner) in enumerate(zip(transcript.tokens, owners))
        ]


#: Costs beside speech, beside a pause, and beside a star, which may be either; None where there is no way.
_Costs = dict[str, float | None]


class _Exit(NamedTuple):
    """A token that a path may be at, its kind, and the costs of going on to others."""

    token: int
    kind: str
    costs: _Costs


def lattices_of(texts: Sequence[TextToAlign]) -> tuple[list[TextToAlign], Targets]:
    """Unfold texts, and pad them into a batch of targets with a graph.

    Returns:
        The texts, with the tokens of all readings, and their targets. Where no word has a graph both are as they would
        be without lattices.
    """
    if not any(any(text.transcript.graphs) for text in texts):
        return list(texts), targets_of(texts)
    found = [unfold(text) for text in texts]
    graph = TokenGraph.from_lists(
        [lattice.ways for lattice in found],
        [list(zip(lattice.shortest, (part.longest_s for part in lattice.parts))) for lattice in found],
        [[part.half for part in lattice.parts] for lattice in found],
        [lattice.pauses for lattice in found],
    )
    unfolded = [lattice.text for lattice in found]
    return unfolded, replace(targets_of(unfolded), graph=graph)


def unfold(text: TextToAlign) -> Lattice:
    """Put the graphs of a text's words in place of their tokens, and connect them.

    A way leads past every optional token. Words follow each other as speech, or through a pause, a token of no word.
    Beside a star both is possible. Before the first and after the last token is a pause.
    """
    transcript, optional = text
    rows = list(zip(transcript.tokens, transcript.token_words, optional))
    pause = transcript.pause[0].label if transcript.pause else None
    unfolding = _Unfolding()
    for owner, group in groupby(enumerate(rows), lambda row: -1 - row[0] if row[1][1] is None else row[1][1]):
        own = [row for _, row in group]
        if graph := transcript.graphs[owner] if 0 <= owner < len(transcript.graphs) else None:
            unfolding.add(graph, owner, False)
        else:
            for label, word, skip in own:
                pauses = skip and word is None and label == pause
                unfolding.add(transcript.pause if pauses else straight([label]), word, skip)
    parts, ways = unfolding.parts, [*unfolding.ways, unfolding.end()]
    unfolded = replace(
        transcript,
        tokens=tuple(part.label for part in parts),
        token_words=tuple(unfolding.owners),
        graphs=(),
        stops=tuple(part.stop for part in parts),
        readings=tuple(part.reading for part in parts),
    )
    return Lattice(TextToAlign(unfolded, unfolding.optional), ways, parts, unfolding.shortest)


class _Unfolding:
    """The tokens and arcs of a text, from its beginning to its end."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.owners: list[int | None] = []
        self.optional: list[bool] = []
        self.ways: list[Ways] = []
        self.shortest: list[float] = []
        self.exits = [_Exit(-1, "pause", _costs(0.0, 0.0))]

    def add(self, graph: WordGraph, owner: int | None, optional: bool) -> None:
        """Add a word, or a token."""
        start, kind = len(self.parts), _kind(graph[0].label, owner)
        leaving = self._leaving(kind)
        for part in graph:
            inside = [(start + i, cost) for i, cost in part.before]
            self.ways.append([*self._ways_to(part, leaving), *inside])
            self.shortest.append(part.shortest_s or 0.0)
        exits = [
            _Exit(start + i, kind, _costs(part.to_speech, part.to_pause))
            for i, part in enumerate(graph)
            if not (part.to_speech is None and part.to_pause is None)
        ]
        self.exits = [*self.exits, *exits] if optional else exits
        self.parts += graph
        pauses = [part.shortest_s is not None for part in graph]
        self.owners += [None if pause else owner for pause in pauses]
        self.optional += [optional or pause for pause in pauses]

    def end(self) -> Ways:
        """The arcs into the end."""
        last = Part(0, from_speech=0.0, from_pause=0.0)
        return [way for way in self._ways_to(last, self._leaving("pause")) if way[0] >= 0]

    def _leaving(self, kind: str) -> list[tuple[_Exit, float]]:
        """List the exits from which a way leads to a token of some kind, with the cost of leaving them."""
        return [(exit, cost) for exit in self.exits if (cost := exit.costs[kind]) is not None]

    def _ways_to(self, part: Part, leaving: Sequence[tuple[_Exit, float]]) -> Ways:
        """List the ways from exits to a part that a word may begin with."""
        if part.from_speech is None and part.from_pause is None:
            return []
        ways: Ways = []
        entering = _costs(part.from_speech, part.from_pause)
        for (token, kind, _), left in leaving:
            if (cost := entering[kind]) is None:
                continue
            if kind == "pause" and token > 0:  # between words
                cost += part.pause_cost
                self.shortest[token] = max(self.shortest[token], part.pause_s)
            ways.append((token, left + cost))
        return ways


def _kind(label: int, owner: int | None) -> str:
    if label == STAR_NUMBER:
        return "star"
    return "pause" if owner is None else "speech"


def _costs(speech: float | None, pause: float | None) -> _Costs:
    least = pause if speech is None else speech if pause is None else min(speech, pause)
    return {"speech": speech, "pause": pause, "star": least}


def chosen(
    texts: Sequence[TextToAlign], targets: Targets, coupling: Coupling
) -> tuple[list[TextToAlign], Targets, Coupling]:
    """Restrict texts, targets and coupling to the readings that an aligner chose: the tokens with frames.

    A hesitation belongs to its pause. Where the targets have no graph nothing changes. The guide, durations and paths
    of targets are not kept.
    """
    if targets.graph is None:
        return list(texts), targets, coupling
    size = targets.labels.shape[1]
    mass = coupling.mass.new_zeros(len(coupling.mass), size).scatter_add(1, coupling.target, coupling.mass)
    placed = (mass > 0) & length_mask(targets.lengths, size)
    kept = torch.tensor([_one_pause(text, row) for text, row in zip(texts, placed.tolist())]).to(
        placed.device
    )
    new = torch.cumsum(kept, 1) - 1
    readings = [_reading(text, row) for text, row in zip(texts, kept.tolist())]
    coupling = replace(
        coupling, target=new.clamp(min=0).gather(1, coupling.target), target_lengths=kept.sum(1)
    )
    return readings, targets_of(readings), coupling


def _one_pause(text: TextToAlign, placed: list[bool]) -> list[bool]:
    """Keep the first placed token of every pause, which may hold a hesitation, and those of the words."""
    within, out = False, []
    for token, owner, has_frames in zip(text.transcript.tokens, text.transcript.token_words, placed):
        pause = owner is None and token != STAR_NUMBER
        out.append(has_frames and not (pause and within))
        within = pause if has_frames else within
    return out + [False] * (len(placed) - len(out))


def _reading(text: TextToAlign, kept: Sequence[bool]) -> TextToAlign:
    transcript, optional = text

    def take(values: Sequence) -> tuple:
        return tuple(value for value, keep in zip(values, kept) if keep)

    owners, numbers = take(transcript.token_words), take(transcript.readings)
    words = list(transcript.words)
    for owner, number in dict(zip(owners, numbers)).items():
        if owner is not None and words[owner].others:
            words[owner] = replace(words[owner], normal=words[owner].readings[number], others=())
    reading = replace(
        transcript,
        words=tuple(words),
        tokens=take(transcript.tokens),
        token_words=owners,
        stops=take(transcript.stops),
        readings=(),
    )
    return TextToAlign(reading, list(take(optional)))
