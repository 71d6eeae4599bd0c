"""Rescoring: hypotheses of one head, weighed by another head's alignment scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from isotone.interfaces import Aligner
from isotone.pipeline.rows import alignable
from isotone.types import Emissions, Targets

#: Most seconds of audio whose text is chosen at once. The hypotheses of a long recording differ only in a few words.
#: Errors in recordings of one minute (synthetic speech, one voice each; CTC 6.1 %, its beam 5.9): 5.9 % chosen whole,
#: 5.8 in stretches of 30 s, 5.5 of 10 s, 5.4 of 2 to 5 s; cut into 21 recordings each, 5.4.
STRETCH_S = 8.0

#: Most frames times labels, over the copies of an utterance, that are aligned at once: 64 MB of float32.
_AT_ONCE = 2**24


def rescored(
    text: Emissions,
    timing: Emissions,
    nbest: Callable[[Emissions], Sequence[Sequence[tuple[Sequence[int], float]]]],
    score: Callable[[Emissions, Sequence[Sequence[int]]], np.ndarray],
    weight: float,
) -> list[list[int]]:
    """Choose the labels of every utterance by both heads; long utterances stretch by stretch.

    Args:
        text: Emissions of the head that gives the hypotheses.
        timing: Emissions of the head that rescores, of the same utterances.
        nbest: Hypotheses of every row of emissions, see :func:`choose`.
        score: Scores of label sequences through emissions of one row, see :func:`choose`.
        weight: See :func:`choose`.
    """
    rows = range(len(text.lengths))
    parts = [(i, part) for i in rows for part in stretches(text.rows([i]), STRETCH_S)]
    out: list[list[int]] = [[] for _ in rows]
    for (i, part), hypotheses in zip(parts, nbest(text.frames(parts))):
        ends = [round(timing.grid.frames(text.grid.seconds(frame))) for frame in (part.start, part.stop)]
        # the first and the last stretch have all frames of the timing head there, whose grid may begin elsewhere
        first = max(0, ends[0]) if part.start else 0
        last = ends[1] if part.stop < text.lengths[i] else int(timing.lengths[i])
        stretch = timing.frames([(i, slice(first, last))])
        out[i] += choose(hypotheses, partial(score, stretch), weight)
    return out


def stretches(emissions: Emissions, seconds: float) -> list[slice]:
    """Cut the frames of one utterance into stretches of at most ``seconds``, in the middle of long pauses.

    A pause is a run of frames whose most likely label is the blank. A stretch ends in the longest pause of its second
    half; without a pause it has the full length.
    """
    total, most = int(emissions.lengths[0]), max(2, round(seconds / emissions.grid.hop_s))
    silent = (emissions.logits[0, :total].argmax(-1) == emissions.blank).cpu().numpy()
    out, start = [], 0
    while total - start > most:
        low = start + most // 2
        # padded with False on both sides, every pause has a begin and an end
        edges = np.flatnonzero(np.diff(np.concatenate([[False], silent[low : start + most], [False]])))
        begins, ends = low + edges[::2], low + edges[1::2]
        longest = int((ends - begins).argmax()) if len(begins) else None
        stop = start + most if longest is None else int(begins[longest] + ends[longest]) // 2
        out.append(slice(start, stop))
        start = stop
    return [*out, slice(start, total)]


def choose(
    hypotheses: Sequence[tuple[Sequence[int], float]],
    score: Callable[[Sequence[Sequence[int]]], np.ndarray],
    weight: float,
) -> tuple[int, ...]:
    r"""Choose the hypothesis with the highest score of both heads.

    That is :math:`\arg\max_y \; \log p(y) + w \, s(y)`, where s(y) is the log-probability of the best path of y through
    the emissions of the other head. The first hypothesis is chosen if it is empty, or if none can be aligned.

    Args:
        hypotheses: Labels and log-probability in nats, the best first; at least one.
        score: Function from label sequences, none of them empty, to their scores s in nats; -inf where one cannot be
            aligned.
        weight: w, above 0.
    """
    first = tuple(hypotheses[0][0])
    spoken = [(labels, nats) for labels, nats in hypotheses if len(labels)]
    if not first or len(spoken) == 1:
        return first
    totals = np.array([nats for _, nats in spoken]) + weight * score([labels for labels, _ in spoken])
    return tuple(spoken[int(totals.argmax())][0]) if np.isfinite(totals).any() else first


def path_scores(aligner: Aligner, emissions: Emissions, targets: Targets) -> np.ndarray:
    """Score label sequences by the log-probability, in nats, of their best paths through one utterance.

    Args:
        aligner: An aligner whose couplings have a ``score``.
        emissions: Emissions of one utterance.
        targets: ``(N, U)`` label sequences, on the device of the emissions.

    Returns:
        ``(N,)`` float64; -inf where a sequence needs more frames than there are.

    Raises:
        ValueError: the aligner does not score its paths.
    """
    count, (frames, labels) = len(targets.lengths), emissions.logits.shape[1:]
    size = max(1, _AT_ONCE // max(1, frames * labels))
    parts = [slice(i, min(i + size, count)) for i in range(0, count, size)]
    return np.concatenate([_scores(aligner, emissions, targets.rows(part)) for part in parts])


def _scores(aligner: Aligner, emissions: Emissions, targets: Targets) -> np.ndarray:
    out = np.full(len(targets.lengths), -np.inf)
    rows, coupling, _ = alignable(
        lambda rows: aligner(emissions.rows([0] * len(rows)), targets.rows(rows)), len(out)
    )
    if coupling is None:
        return out
    if coupling.score is None:
        raise ValueError(
            f"reading.rescore needs an aligner that scores its paths, such as segmental; {type(aligner).__name__} "
            "does not."
        )
    out[rows] = coupling.score.double().cpu().numpy()
    return out
