"""The text that two heads agree on: hypotheses of one, weighed by how well the other can place them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner
from isotone.scores import rows_of
from isotone.types import Emissions, Targets

#: Frames times labels of the copies of an utterance that are aligned at once: 64 MB of float32.
_AT_ONCE = 2**24


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
