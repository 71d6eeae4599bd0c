"""Doubt about a transcript: the text against its own tokens in another order.

Scores in nats mean other things in other recordings: of right transcripts they are lower on speech that a model was not
trained on than those of wrong ones are on its own. A text of the same tokens in another order is wrong in every
recording, and meets the same voice, noise and model. So the text is compared with such texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.kernels.viterbi import ctc_path
from isotone.pipeline.scores import rows_of
from isotone.pipeline.stars import STAR_NUMBER, numbered, with_star
from isotone.text.tokenizer import Transcript
from isotone.types import Coupling, Emissions, Grid, Targets

if TYPE_CHECKING:
    from isotone.model import Model

Key = TypeVar("Key")

#: The statistic's name, in the configurations of models.
STATISTIC = "agreement"

#: Other orders that a text is compared with. Twice as many tell right from wrong no better.
SHUFFLES = 8

#: Power of the labels' priors that a head's emissions are divided by, where it tracks them.
PRIOR = 0.5

#: Texts of fewer tokens have too few orders to tell a right one by.
LEAST_TOKENS = 5

#: Seconds of a stretch of a long recording, each compared by itself, and how many of them at most, evenly spread:
#: time grows with the square of a stretch, and an hour is as clear as its parts.
STRETCH_S, STRETCHES = 20.0, 24


@dataclass(frozen=True)
class Check:
    """A threshold of the agreement, and what it did where it was measured.

    Attributes:
        threshold: Files whose agreement is lower are doubtful.
        split: What it was measured on.
        files: How many recordings there were.
        right_flagged: Share of the right transcripts below the threshold, 0 to 1.
        wrong_flagged: Share of the wrong ones below it.
        statistic: What was measured; another version's is not to be compared with.
    """

    threshold: float
    split: str
    files: int
    right_flagged: float
    wrong_flagged: float
    statistic: str = STATISTIC


#: The threshold of models that were not trained here, or before there was one.
DEFAULT = Check(0.12, "", 0, 0.0, 0.0)


def check_of(model: Model) -> Check:
    """The model's own check; the default where it has none, or one of another statistic."""
    own = model.check
    return own if own is not None and own.statistic == STATISTIC else DEFAULT


def doubtful(agreement: float | None, check: Check) -> str:
    """What is to be said of a text that is likely not what is said; empty where there is no doubt, or no telling.

    Args:
        agreement: Of the result, see :class:`isotone.pipeline.result.Result`.
        check: The model's, by :func:`check_of`.
    """
    if agreement is None or agreement >= check.threshold:
        return ""
    low = f"its agreement with the audio is {agreement:.3f}, below {check.threshold:.3f}"
    return f"{low}: the transcript is likely not what is said"


def agreements(
    heard: Sequence[Emissions],
    timing: Grid,
    asked: Sequence[tuple[Transcript, Sequence[bool]]],
    coupling: Coupling,
) -> list[float | None]:
    """The agreement of every text of a batch with its audio, see :func:`agreement`.

    Args:
        heard: Emissions of the heads that have a say, all of the same utterances.
        timing: The frames that the coupling is of.
        asked: Texts as they were aligned, and which of their tokens may be skipped.
        coupling: Frames to tokens, which says where long recordings are cut.
    """
    starts = coupling.spans()[:, :, 0].tolist()
    return [
        agreement(
            [rows_of(e, [i]) for e in heard],
            transcript,
            optional,
            [timing.seconds(start) for start in starts[i][: len(optional)]],
        )
        for i, (transcript, optional) in enumerate(asked)
    ]


def agreement(
    heard: Sequence[Emissions],
    transcript: Transcript,
    optional: Sequence[bool],
    starts: Sequence[float],
) -> float | None:
    r"""The share of the way from chance to certainty that a text comes, 1 at best and about 0 where it is wrong.

    With s(y) the log-probability of the best CTC path of the tokens y, :math:`\pi_k` random orders of those that belong
    to words (silences, delimiters and stars keep their places), and :math:`s^*` the sum of the best label's in every
    frame,

    .. math:: agreement = \frac{s(y) - \frac1K \sum_k s(\pi_k y)}{s^* - \frac1K \sum_k s(\pi_k y)}

    as Cohen's kappa corrects for chance, with the numerators and the denominators of several heads, and of the
    stretches of a long recording, added up. The orders are the same at every call.

    Args:
        heard: Emissions of the heads that have a say, of one utterance.
        transcript: The text as it was aligned.
        optional: Which of its tokens may be skipped.
        starts: When every token begins, seconds, in order.

    Returns:
        None where there are too few tokens to tell.
    """
    wordless = not transcript.words  # phones that were given as they are
    owners = zip(transcript.tokens, transcript.token_words)
    own = [t != STAR_NUMBER and (wordless or w is not None) for t, w in owners]
    if sum(own) < LEAST_TOKENS:
        return None
    labels = Targets.from_lists([list(transcript.tokens)])
    seconds = max(e.grid.seconds(int(e.lengths[0])) for e in heard)
    gained = possible = 0.0
    for emissions in heard:
        log_probs, numbers = _with_stars(emissions, labels)
        for first, last, tokens in _stretches(starts, seconds):
            part = slice(*(max(0, round(emissions.grid.frames(s))) for s in (first, last)))
            found = _compared(
                log_probs[part],
                numbers[tokens],
                np.array(own)[tokens],
                np.array(optional)[tokens],
                emissions.blank,
            )
            gained, possible = gained + found[0], possible + found[1]
    return gained / possible if possible > 0 else None


def strangers(spoken: Mapping[Key, str], seed: int = 0) -> dict[Key, Key]:
    """For every recording another one whose words differ: the next such in a shuffled circle.

    Args:
        spoken: Words of the recordings, without case and punctuation.
        seed: Of the shuffle.

    Raises:
        ValueError: there are fewer than two different texts.
    """
    if len(set(spoken.values())) < 2:
        raise ValueError(
            "Checking scores needs files with different transcripts, to exchange them; "
            f"got {len(spoken)} files with {len(set(spoken.values()))} transcript(s)."
        )
    keys = list(spoken)
    circle = [keys[i] for i in np.random.default_rng(seed).permutation(len(keys))]
    found = {}
    for place, key in enumerate(circle):
        others = (circle[(place + step) % len(circle)] for step in range(1, len(circle)))
        found[key] = next(other for other in others if spoken[other] != spoken[key])
    return found


def _with_stars(emissions: Emissions, targets: Targets) -> tuple[Tensor, NDArray[np.int64]]:
    """Log-probabilities ``(T, V)`` of the only utterance, and label numbers ``(U,)``, with those of stars."""
    if emissions.log_prior is not None:
        emissions = emissions.without_prior(PRIOR)
    frames, size = int(emissions.lengths[0]), emissions.logits.shape[2]
    total = torch.logsumexp(emissions.logits[0, :frames].float(), -1, keepdim=True)
    if bool((targets.labels == STAR_NUMBER).any()):
        # at no cost: what a star stands for is no fault of the text, and its other orders have it too
        emissions, targets = with_star(emissions, 0.0), numbered(targets, size)
    return emissions.logits[0, :frames].float() - total, targets.labels[0].numpy()


def _stretches(starts: Sequence[float], seconds: float) -> list[tuple[float, float, slice]]:
    """Start, end and tokens of what is compared: the whole, or some parts of it that begin with a token each."""
    count = max(1, round(seconds / STRETCH_S))
    if count == 1:
        return [(0.0, seconds, slice(0, len(starts)))]
    wanted = sorted({count * i // STRETCHES for i in range(STRETCHES)} if count > STRETCHES else range(count))
    borders = np.searchsorted(starts, np.arange(1, count) * seconds / count)
    edges = [0, *borders.tolist(), len(starts)]
    times = [0.0, *(float([*starts, seconds][b]) for b in borders), seconds]
    return [(times[i], times[i + 1], slice(edges[i], edges[i + 1])) for i in wanted]


def _compared(
    log_probs: Tensor,
    labels: NDArray[np.int64],
    own: NDArray[np.bool_],
    optional: NDArray[np.bool_],
    blank: int,
) -> tuple[float, float]:
    """Nats by which a text is better than chance, and by which a perfect one would be; 0 where it cannot be said."""
    places, frames = np.flatnonzero(own), len(log_probs)
    rng = np.random.default_rng(0)
    rows = np.repeat(labels[None], 1 + SHUFFLES, 0)
    for row in rows[1:]:
        row[places] = labels[rng.permutation(places)]
    needed = rows[:, ~optional]  # by CTC: a frame each, and one between equal neighbours
    rows = rows[needed.shape[1] + (needed[:, 1:] == needed[:, :-1]).sum(1) <= frames]
    if len(places) < LEAST_TOKENS or len(rows) < 2 or (rows[0] != labels).any():
        return 0.0, 0.0
    columns, codes = np.unique(np.append(rows, blank), return_inverse=True)
    size = len(rows)
    try:
        scores = ctc_path(
            log_probs[:, torch.from_numpy(columns)].expand(size, -1, -1),
            torch.from_numpy(codes[:-1].reshape(rows.shape)),
            torch.full((size,), frames),
            torch.full((size,), rows.shape[1]),
            int(codes[-1]),
            torch.from_numpy(optional).expand(size, -1),
        )[1].double()
    except AlignmentError:  # no path has a probability above 0
        return 0.0, 0.0
    chance = float(scores[1:].mean())
    return float(scores[0]) - chance, float(log_probs.amax(-1).double().sum()) - chance
