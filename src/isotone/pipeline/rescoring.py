"""The text that two heads agree on: hypotheses of one, weighed by how well the other can place them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner
from isotone.pipeline.scores import rows_of
from isotone.types import Emissions, Targets

#: Seconds of audio whose text is chosen as one, at most. The hypotheses of a long recording differ in a few places
#: only: of recordings of a minute (synthetic speech, one voice each; CTC 6.1 % errors, 5.9 by its beam) 5.9 % was wrong
#: when chosen whole, 5.8 in stretches of 30 s, 5.5 of 10 s, 5.4 of 2 to 5 s; as 21 recordings each, 5.4.
STRETCH_S = 8.0

#: Frames times labels of the copies of an utterance that are aligned at once: 64 MB of float32.
_AT_ONCE = 2**24


def rescored(
    text: Emissions,
    timing: Emissions,
    nbest: Callable[[Emissions], Sequence[Sequence[tuple[Sequence[int], float]]]],
    place: Callable[[Emissions, Sequence[Sequence[int]]], np.ndarray],
    weight: float,
) -> list[list[int]]:
    """The labels of every utterance that both heads agree on; those of long ones stretch by stretch.

    Args:
        text: Emissions of the head that proposes.
        timing: Those of the head that has a say, of the same utterances.
        nbest: Hypotheses of every row of emissions, see :func:`choose`.
        place: The scores of label sequences through emissions of one row, see :func:`choose`.
        weight: See :func:`choose`.
    """
    rows = range(len(text.lengths))
    parts = [(i, part) for i in rows for part in stretches(rows_of(text, [i]), STRETCH_S)]
    out: list[list[int]] = [[] for _ in rows]
    for (i, part), hypotheses in zip(parts, nbest(_cut(text, parts))):
        ends = [round(timing.grid.frames(text.grid.seconds(frame))) for frame in (part.start, part.stop)]
        first = max(0, ends[0]) if part.start else 0
        last = ends[1] if part.stop < text.lengths[i] else int(timing.lengths[i])
        heard = _cut(timing, [(i, slice(first, last))])
        out[i] += choose(hypotheses, partial(place, heard), weight)
    return out


def stretches(emissions: Emissions, seconds: float) -> list[slice]:
    """The frames of one utterance in stretches of at most so many seconds, each cut within its longest pause.

    A pause is a run of frames whose most likely label is the blank. It is looked for in the last half of what could be
    the stretch; where there is none, the stretch ends at its longest.
    """
    total, most = int(emissions.lengths[0]), max(2, round(seconds / emissions.grid.hop_s))
    silent = (emissions.logits[0, :total].argmax(-1) == emissions.blank).numpy()
    out, start = [], 0
    while total - start > most:
        low = start + most // 2
        edges = np.flatnonzero(np.diff(np.concatenate([[False], silent[low : start + most], [False]])))
        begins, ends = low + edges[::2], low + edges[1::2]
        longest = int((ends - begins).argmax()) if len(begins) else None
        stop = start + most if longest is None else int(begins[longest] + ends[longest]) // 2
        out.append(slice(start, stop))
        start = stop
    return [*out, slice(start, total)]


def _cut(emissions: Emissions, parts: Sequence[tuple[int, slice]]) -> Emissions:
    """Some frames of some rows, as rows."""
    weights = emissions.weight_logits
    return replace(
        emissions,
        logits=pad_sequence([emissions.logits[i, part] for i, part in parts], batch_first=True),
        lengths=torch.tensor([part.stop - part.start for _, part in parts]),
        weight_logits=None if weights is None else pad_sequence([weights[i, p] for i, p in parts], True),
    )


def choose(
    hypotheses: Sequence[tuple[Sequence[int], float]],
    place: Callable[[Sequence[Sequence[int]]], np.ndarray],
    weight: float,
) -> tuple[int, ...]:
    r"""The hypothesis with the most nats of both heads.

    That is :math:`\arg\max_y \; \log p(y) + w \, s(y)`, where s(y) is the log-probability of the best path of y through
    the emissions of the other head. Where nothing was heard, or no hypothesis can be placed, it is the first.

    Args:
        hypotheses: Labels and log-probability in nats, the best first; at least one.
        place: The scores s in nats of label sequences, none of which is empty; -inf where one cannot be placed.
        weight: w, above 0.
    """
    first = tuple(hypotheses[0][0])
    spoken = [(labels, score) for labels, score in hypotheses if len(labels)]
    if not first or len(spoken) == 1:
        return first
    totals = np.array([score for _, score in spoken]) + weight * place([labels for labels, _ in spoken])
    return tuple(spoken[int(totals.argmax())][0]) if np.isfinite(totals).any() else first


def path_scores(aligner: Aligner, emissions: Emissions, targets: Targets) -> np.ndarray:
    """Log-probabilities, in nats, of the best paths of several label sequences through one utterance.

    Args:
        aligner: One whose couplings have a ``score``.
        emissions: Of one utterance.
        targets: ``(N, U)`` label sequences.

    Returns:
        ``(N,)`` float64; -inf where a sequence needs more frames than there are.

    Raises:
        ValueError: an aligner that does not score its paths.
    """
    count, (frames, labels) = len(targets.lengths), emissions.logits.shape[1:]
    size = max(1, _AT_ONCE // max(1, frames * labels))
    parts = [slice(i, min(i + size, count)) for i in range(0, count, size)]
    return np.concatenate([_scores(aligner, emissions, rows_of(targets, part)) for part in parts])


def _scores(aligner: Aligner, emissions: Emissions, targets: Targets) -> np.ndarray:
    count = len(targets.lengths)
    try:
        score = aligner(rows_of(emissions, [0] * count), targets).score
    except AlignmentError:
        if count == 1:
            return np.array([-np.inf])
        return np.concatenate(
            [_scores(aligner, emissions, rows_of(targets, slice(i, i + 1))) for i in range(count)]
        )
    if score is None:
        raise ValueError(
            f"reading.rescore needs an aligner that scores its paths, such as segmental; {type(aligner).__name__} "
            "does not."
        )
    return score.double().numpy()
