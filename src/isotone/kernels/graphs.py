"""Graphs of tokens with fillers between them, for paths with blanks or silences; and their guides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from isotone.kernels.viterbi.graph import Arcs
from isotone.types import FramePath, Targets, TokenGraph
from isotone.types.graph import Ways

#: Rules for fillers: one between equal neighbours, and none elsewhere; one everywhere; and one everywhere that equal
#: neighbours cannot do without, as in CTC. A path may leave out any other.
Fillers = Literal["repeats", "all", "ctc"]


class Filled(NamedTuple):
    """A graph of labels: tokens and fillers.

    Attributes:
        labels: ``(B, m)`` int64.
        lengths: ``(B,)`` int64.
        graph: Graph of the labels; fillers may last any time.
        origin: ``(B, m)`` int64, each label's token, -1 for fillers and padding.
    """

    labels: Tensor
    lengths: Tensor
    graph: TokenGraph
    origin: Tensor

    @property
    def arcs(self) -> Arcs[Tensor]:
        """The arcs, as the kernels take them."""
        return Arcs(self.graph.first, self.graph.before, self.graph.costs)

    def tokens(self, paths: Tensor) -> Tensor:
        """Turn paths of labels ``(B, T)`` into paths of tokens, -1 where a frame has a filler."""
        return torch.where(paths >= 0, self.origin.gather(1, paths.clamp(min=0)), paths)

    def least(self, frames: int, hop_s: float) -> Tensor:
        """Least frames of each label ``(B, m)``, at ``hop_s`` seconds per frame.

        They are ``frames``, and half of that, rounded up, for halves of phones; more for labels that last longer.
        """
        own = torch.where(self.graph.halves, (frames + 1) // 2, frames)
        return own.maximum((self.graph.shortest / hop_s - 1e-6).ceil().long())

    def most(self, hop_s: float) -> Tensor:
        """Most frames of each label ``(B, m)``, at ``hop_s`` seconds per frame: at least 1, or 0 for any number."""
        frames = (self.graph.longest / hop_s + 1e-6).long().clamp(min=1)
        return torch.where(self.graph.longest > 0, frames, 0)


def with_fillers(targets: Targets, filler: int, rule: Fillers) -> Filled:
    """Put fillers into the graph of targets.

    Args:
        targets: Tokens with a graph.
        filler: Label number of the fillers.
        rule: Where they are.

    Returns:
        The graph with fillers. A row without tokens gets one filler, or with ``"repeats"`` nothing.
    """
    graph = targets.graph
    assert graph is not None
    rows, origins, labels = [], [], targets.tolist()
    for b, row in enumerate(labels):
        ways = graph.ways(b, len(row)) if row else [[(-1, 0.0)]]
        ways, origin = _fill(row, ways, rule)
        rows.append(ways if origin else [])
        origins.append(origin)
    limits = [list(zip(*both)) for both in zip(graph.shortest.tolist(), graph.longest.tolist())]
    halves = graph.halves.tolist()
    spelt = [[row[u] if u >= 0 else filler for u in origin] for row, origin in zip(labels, origins)]
    padded = Targets.from_lists(spelt).to(targets.labels.device)
    filled = TokenGraph.from_lists(
        rows,
        [[own[u] if u >= 0 else (0.0, 0.0) for u in origin] for own, origin in zip(limits, origins)],
        [[u >= 0 and own[u] for u in origin] for own, origin in zip(halves, origins)],
    )
    token = torch.full_like(padded.labels, -1)
    for b, origin in enumerate(origins):
        token[b, : len(origin)] = torch.tensor(origin, dtype=torch.long)
    return Filled(padded.labels, padded.lengths, filled.to(targets.labels.device), token)


def _fill(labels: Sequence[int], ways: Sequence[Ways], rule: Fillers) -> tuple[list[Ways], list[int]]:
    """Return the arcs of a row with fillers, and the origin of each of its labels."""
    count = len(labels)
    repeated = {p for u in range(count) for p, _ in ways[u] if p >= 0 and labels[p] == labels[u]}
    out: list[Ways] = []
    origin: list[int] = []
    # of tokens and the start: their new number, and that of the filler behind them
    own: dict[int, int] = {-1: -1}
    filler: dict[int, int] = {}
    for u in range(-1, count + 1):
        if u >= 0:
            came: Ways = []
            for p, cost in ways[u]:
                equal = p >= 0 and u < count and labels[p] == labels[u]
                if not (equal and rule == "ctc") and not (p < 0 and u == count):
                    came.append((own[p], cost))
                if p in filler and (equal or rule != "repeats"):
                    came.append((filler[p], cost))
            out.append(came)
        if u == count:
            return out, origin
        if u >= 0:
            own[u] = len(origin)
            origin.append(u)
        if rule != "repeats" or u in repeated:
            filler[u] = len(origin)
            out.append([(own[u], 0.0)])
            origin.append(-1)
    raise AssertionError  # the loop returns at the end's arcs


def near_frames(guide: FramePath, filled: Filled) -> Tensor:
    """Find the frames that each label may have so that every token stays between its neighbours in the guide.

    A label may begin at the first frame of the last token in the guide from which a way leads to it. It may end at the
    last frame of the first one that a way leads to. In a line of tokens these are the ranges of
    :func:`isotone.kernels.guide.near_labels`. Tokens that run in parallel to some of the guide's are free between the
    neighbours of all of these.

    Args:
        guide: The other head's alignment, along a path of the graph.
        filled: The labels.

    Returns:
        ``(B, m, 2)`` int64, first and last frame.
    """
    frames = guide.tokens.shape[1]
    out = torch.zeros(*filled.labels.shape, 2, dtype=torch.long)
    out[..., 1] = frames
    for b, (count, path) in enumerate(zip(filled.lengths.tolist(), guide.tokens.tolist())):
        first, last = dict[int, int](), dict[int, int]()
        for t, token in enumerate(path):
            first.setdefault(token, t)
            last[token] = t
        tokens = [
            token if token in first and token >= 0 else None for token in filled.origin[b, :count].tolist()
        ]
        ways = filled.graph.ways(b, count)
        begin, end = [0] * count, [frames] * (count + 1)
        for u in range(count):
            begin[u] = max([0, *(_known(first, tokens[p], begin[p]) for p, _ in ways[u] if p >= 0)])
        for u, token in reversed([*enumerate(tokens), (count, None)]):
            for p, _ in ways[u] if count else ():
                if p >= 0:
                    end[p] = min(end[p], _known(last, token, end[u]))
        if count:
            out[b, :count] = torch.tensor(list(zip(begin, end)))
    return out.to(filled.labels.device)


def _known(frames: Mapping[int, int], token: int | None, otherwise: int) -> int:
    return otherwise if token is None else frames[token]
