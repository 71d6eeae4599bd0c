"""Doubt about a transcript: the text against its own tokens in another order.

Scores in nats cannot be compared between recordings: on speech unlike the training data, correct transcripts score
lower than wrong ones on speech like it. A text of the same tokens in another order is wrong in every recording, and is
scored with the same voice, noise and model. So the text is compared with such texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import AlignmentError
from isotone.kernels.viterbi import ctc_score
from isotone.model.check import Check
from isotone.pipeline.rows import each_row
from isotone.pipeline.stars import STAR_NUMBER, starred
from isotone.pipeline.texts import TextToAlign
from isotone.tensors import Tensor, torch
from isotone.types import Coupling, Emissions, Grid, Targets

Key = TypeVar("Key")

#: Number of other orders that a text is compared with. Twice as many separate correct from wrong texts no better.
SHUFFLES = 8

#: Power of the label priors that emissions are divided by, if the head tracks them.
PRIOR = 0.5

#: Fewest tokens of a text to compare: shorter ones have too few orders.
LEAST_TOKENS = 5

#: Length in seconds of the stretches of a long recording that are compared, and their largest number, spread evenly.
#: Computing time grows with the square of a stretch's length, and 24 stretches are as informative as an hour.
STRETCH_S, STRETCHES = 20.0, 24


def doubtful(agreement: float | None, check: Check) -> str:
    """Make a sentence on a doubtful text; empty where it is not doubtful, or the agreement is unknown.

    Args:
        agreement: Agreement of the result, see :class:`isotone.pipeline.result.Result`.
        check: The model's threshold, from :func:`isotone.model.check.usable`.
    """
    if agreement is None or agreement >= check.threshold:
        return ""
    low = f"its agreement with the audio is {agreement:.3f}, below {check.threshold:.3f}"
    return f"{low}: the transcript is likely not what is said"


def agreements(
    emissions: Sequence[Emissions], timing: Grid, texts: Sequence[TextToAlign], coupling: Coupling
) -> list[float | None]:
    """Compute the agreement of every text of a batch with its audio, see :func:`agreement`.

    Arguments as of :func:`isotone.pipeline.rows.each_row`, with emissions of the heads to compare by.
    """
    rows = each_row(emissions, timing, texts, coupling)
    return [agreement(heads, text, [start for start, _ in times]) for heads, text, times in rows]


def agreement(emissions: Sequence[Emissions], text: TextToAlign, starts: Sequence[float]) -> float | None:
    r"""Compute the agreement of a text with its audio, from chance (0) to certainty (1); wrong texts are near 0.

    Let s(y) be the log-probability of the best CTC path of the tokens y. Let :math:`\pi_k` be random orders of the
    tokens that belong to words; silences, delimiters and stars keep their positions. Let :math:`s^*` be the
    log-probability of the best label, summed over the frames. Then

    .. math:: agreement = \frac{s(y) - \frac1K \sum_k s(\pi_k y)}{s^* - \frac1K \sum_k s(\pi_k y)}

    which corrects for chance as Cohen's kappa does. Numerators and denominators of several heads, and of the stretches
    of a long recording, are added up. The orders are the same in every call.

    Args:
        emissions: Emissions of the heads to compare by, of one utterance.
        text: The text as it was aligned.
        starts: Start of every token, seconds, in order.

    Returns:
        The agreement; None with too few tokens.
    """
    transcript, optional = text
    wordless = not transcript.words  # the text was given as phones
    owners = zip(transcript.tokens, transcript.token_words)
    own = [t != STAR_NUMBER and (wordless or w is not None) for t, w in owners]
    if sum(own) < LEAST_TOKENS:
        return None
    labels = Targets.from_lists([list(transcript.tokens)])
    seconds = max(e.grid.seconds(int(e.lengths[0])) for e in emissions)
    gained = possible = 0.0
    for head in emissions:
        log_probs, numbers = _with_stars(head, labels)
        for first, last, tokens in _stretches(starts, seconds):
            part = slice(*(max(0, round(head.grid.frames(s))) for s in (first, last)))
            found = _compared(
                log_probs[part],
                numbers[tokens],
                np.array(own)[tokens],
                np.array(optional)[tokens],
                head.blank,
            )
            gained, possible = gained + found[0], possible + found[1]
    return gained / possible if possible > 0 else None


def strangers(words: Mapping[Key, str], seed: int = 0) -> dict[Key, Key]:
    """Assign every recording another one with other words: the next such in a shuffled circle.

    Args:
        words: Words of the recordings, without case and punctuation.
        seed: Seed of the shuffle.

    Raises:
        ValueError: there are fewer than two different texts.
    """
    if len(set(words.values())) < 2:
        raise ValueError(
            "Checking scores needs files with different transcripts, to exchange them; "
            f"got {len(words)} files with {len(set(words.values()))} transcript(s)."
        )
    keys = list(words)
    circle = [keys[i] for i in np.random.default_rng(seed).permutation(len(keys))]
    found = {}
    for position, key in enumerate(circle):
        others = (circle[(position + step) % len(circle)] for step in range(1, len(circle)))
        found[key] = next(other for other in others if words[other] != words[key])
    return found


def _with_stars(emissions: Emissions, targets: Targets) -> tuple[Tensor, NDArray[np.int64]]:
    """Return log-probabilities ``(T, V)`` of the only utterance and label numbers ``(U,)``, stars included."""
    if emissions.log_prior is not None:
        emissions = emissions.without_prior(PRIOR)
    frames = int(emissions.lengths[0])
    total = torch.logsumexp(emissions.logits[0, :frames].float(), -1, keepdim=True)
    # cost 0: the text and its other orders have the same stars
    emissions, targets = starred(emissions, targets, 0.0)
    return emissions.logits[0, :frames].float() - total, targets.labels[0].numpy()


def _stretches(starts: Sequence[float], seconds: float) -> list[tuple[float, float, slice]]:
    """Choose the stretches to compare, with start, end and tokens: the whole, or parts that begin with a token."""
    count = max(1, round(seconds / STRETCH_S))
    if count == 1:
        return [(0.0, seconds, slice(0, len(starts)))]
    # of very long recordings STRETCHES ones, spread evenly
    chosen = sorted({count * i // STRETCHES for i in range(STRETCHES)} if count > STRETCHES else range(count))
    # each border moves to the next token's start, so that no token is cut
    borders = np.searchsorted(starts, np.arange(1, count) * seconds / count)
    edges = [0, *borders.tolist(), len(starts)]
    times = [0.0, *(float([*starts, seconds][b]) for b in borders), seconds]
    return [(times[i], times[i + 1], slice(edges[i], edges[i + 1])) for i in chosen]


def _compared(
    log_probs: Tensor,
    labels: NDArray[np.int64],
    own: NDArray[np.bool_],
    optional: NDArray[np.bool_],
    blank: int,
) -> tuple[float, float]:
    """Return the gain over chance in nats of a text, and of a perfect one; both 0 where there is no chance level."""
    positions, frames = np.flatnonzero(own), len(log_probs)
    rng = np.random.default_rng(0)
    rows = np.repeat(labels[None], 1 + SHUFFLES, 0)
    for row in rows[1:]:
        row[positions] = labels[rng.permutation(positions)]
    # CTC needs one frame per token, and one between equal neighbours: drop orders with too few frames
    needed = rows[:, ~optional]
    rows = rows[needed.shape[1] + (needed[:, 1:] == needed[:, :-1]).sum(1) <= frames]
    if len(positions) < LEAST_TOKENS or len(rows) < 2 or (rows[0] != labels).any():
        return 0.0, 0.0
    # only the columns of labels that occur: with large vocabularies most do not
    columns, codes = np.unique(np.append(rows, blank), return_inverse=True)
    size, here = len(rows), log_probs.device
    try:
        scores = ctc_score(
            log_probs[:, torch.from_numpy(columns)].expand(size, -1, -1),
            torch.from_numpy(codes[:-1].reshape(rows.shape)).to(here),
            torch.full((size,), frames, device=here),
            torch.full((size,), rows.shape[1], device=here),
            int(codes[-1]),
            torch.from_numpy(optional).to(here).expand(size, -1) if optional.any() else None,
        ).double()
    except AlignmentError:  # no path has a probability above 0
        return 0.0, 0.0
    chance = float(scores[1:].mean())
    return float(scores[0]) - chance, float(log_probs.amax(-1).double().sum()) - chance
