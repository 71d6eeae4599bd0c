"""Graphs of tokens with fillers between them, for paths with blanks or silences; and their guides."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from isotone.kernels._graphs import ALL, CTC, REPEATS, fill_row, near_row
from isotone.kernels._inputs import like, to_numpy
from isotone.kernels.viterbi.graph import Arcs
from isotone.tensors import Tensor, torch
from isotone.types import FramePath, Targets, TokenGraph

#: Rules for fillers: one between equal neighbours, and none elsewhere; one everywhere; and one everywhere that equal
#: neighbours cannot do without, as in CTC. A path may leave out any other.
Fillers = Literal["repeats", "all", "ctc"]
_RULES = {"repeats": REPEATS, "all": ALL, "ctc": CTC}

# The arcs of a row without tokens: from the start to the end.
_NO_TOKENS = np.array([0, 1]), np.array([-1]), np.zeros(1)


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
    labels, lengths = to_numpy(targets.labels), to_numpy(targets.lengths).tolist()
    first, before, costs = (to_numpy(x) for x in (graph.first, graph.before, graph.costs))
    rows, tokens = labels.shape
    origin = np.full((rows, 2 * tokens + 1), -1)
    filled_first = np.zeros((rows, 2 * tokens + 3), np.int64)
    filled_before = np.zeros((rows, 2 * before.shape[1] + tokens + 2), np.int64)
    filled_costs = np.zeros(filled_before.shape)
    sizes = np.zeros(rows, np.int64)
    for b, n in enumerate(lengths):
        arcs = (first[b, : n + 2], before[b], costs[b]) if n else _NO_TOKENS
        out = origin[b], filled_first[b], filled_before[b], filled_costs[b]
        sizes[b] = fill_row(labels[b, :n], *arcs, _RULES[rule], *out)
    size, most = max(1, int(sizes.max(initial=0))), max(1, int(filled_first.max(initial=0)))
    origin = origin[:, :size]
    kept, there = origin.clip(min=0), origin >= 0
    numbers = np.where(there, np.take_along_axis(labels, kept, 1), filler)

    def of_token(values: Tensor) -> np.ndarray:
        own = to_numpy(values)
        return np.where(there, np.take_along_axis(own, kept, 1), np.zeros((), own.dtype))

    given = (
        np.where(np.arange(size) < sizes[:, None], numbers, 0), sizes, origin,
        filled_first[:, : size + 2], filled_before[:, :most], filled_costs[:, :most],
        *map(of_token, (graph.shortest, graph.longest, graph.halves, graph.pauses)),
    )  # fmt: skip
    labelled, counted, token, *parts = (like(targets.labels, np.ascontiguousarray(x)) for x in given)
    return Filled(labelled, counted, TokenGraph(*parts), token)


def near_frames(guide: FramePath, filled: Filled) -> Tensor:
    """Find the frames that each label may have so that every token stays between its neighbours in the guide.

    A label may begin at the first frame of the last token in the guide from which a way leads to it. It may end at the
    last frame of the first one that a way leads to. In a line of tokens these are the ranges of
    :func:`isotone.kernels.guide.near_labels`. Tokens that run in parallel to some of the guide's are free between the
    neighbours of all of these. Pauses between words may have any frame. Otherwise a word that the guide puts on the
    wrong side of a long pause would stay there: moving the pause would cost more than any word.

    Args:
        guide: The other head's alignment, along a path of the graph.
        filled: The labels.

    Returns:
        ``(B, m, 2)`` int64, first and last frame.
    """
    origin, lengths = to_numpy(filled.origin), to_numpy(filled.lengths).tolist()
    first, before = to_numpy(filled.graph.first), to_numpy(filled.graph.before)
    paths = to_numpy(guide.tokens)
    tokens = 1 + int(max(origin.max(initial=0), paths.max(initial=0)))
    out = np.zeros((*origin.shape, 2), np.int64)
    out[..., 1] = paths.shape[1]
    for b, count in enumerate(lengths):
        if count:
            near_row(origin[b, :count], first[b], before[b], paths[b], tokens, out[b, :count])
    out[to_numpy(filled.graph.pauses)] = 0, paths.shape[1]
    return like(filled.labels, out)
