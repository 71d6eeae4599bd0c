"""Stars: words of a transcript that stand for unwritten speech, or for words without labels.

A star matches any frames. Its score in a frame is that of the best label minus a cost, so that the text keeps the
frames that it fits. For aligners a star is an additional label of the emissions, so every aligner supports stars. For
the kernels (:mod:`isotone.kernels.viterbi`) it is an additional column, see :func:`star_scores`.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import pairwise

from isotone.pipeline.texts import TextToAlign
from isotone.tensors import Tensor, torch
from isotone.text.given import STAR, encode
from isotone.text.normalize import Word
from isotone.text.transcript import STAR_NUMBER, Transcript
from isotone.types import Emissions, Targets

__all__ = [
    "OWN_COST", "STAR", "STAR_COST", "STAR_NUMBER", "best_and_speech", "cost_of", "encode", "shared_out",
    "star_scores", "starred", "with_extra_speech", "with_star",
]  # fmt: skip

#: Cost c of a star in nats per frame: its log-probability is that of the frame's best label minus c (1 - p(blank)), so
#: that the peaks of a peaky model cost as much as the frames of another. Measured on synthetic speech of voices not in
#: the training data. With a quarter of the words left out of the text, optional stars of cost 0.5, 1, 2, 3, 4 and 6
#: found 97, 96, 93, 90, 80 and 66 % of their seconds (joint model; CTC 87, 86, 86, 85, 85 and 78). With the whole text
#: they took 9.4, 5.4, 2.6, 0.9, 0.4 and 0.1 % of the speech (CTC 3.7, 2.8, 1.7, 0.8, 0.5 and 0.2).
STAR_COST = 3.0

#: The same of stars that a text has itself: ``*``, and words that the model cannot spell or pronounce. They compete
#: with the pauses beside them more than with words. In a trial with one word unknown in each of 79 sentences of TIMIT's
#: sample its boundaries are off by 45 ms in the mean, with 3.0 by 72. Less than half of it is left in 17 sentences,
#: with 3.0 in 32. The other words are off by 19.6 ms, and 22.6. Below 1.4 unknown words at the ends take the silence
#: there. A star where nothing is said costs the words of its sentence 0.1 ms.
OWN_COST = 1.5


def cost_of(given: float | None, extra_speech: bool) -> float:
    """Return the cost of stars that is given, or by default that of extra speech or of a text's own stars.

    Raises:
        ValueError: a cost below 0, or none that is a number.
    """
    cost = (STAR_COST if extra_speech else OWN_COST) if given is None else given
    if not cost >= 0:
        raise ValueError(f"Pipeline expects a star_cost of 0 nats per frame or more; got {cost}.")
    return cost


def with_extra_speech(text: TextToAlign, gaps: Container[int] | None = None) -> TextToAlign:
    """Put a star that may be skipped before, between and after the words.

    A star goes beside an optional pause, and has such a pause on its other side as well. The new stars' words follow
    those of the text.

    Args:
        text: The text.
        gaps: Where to put stars: numbers of the words with tokens that come before. Default: everywhere.
    """
    transcript, optional = text
    words = list(transcript.words)
    rows: list[tuple[int, int | None, bool]] = []
    tokens = [*zip(transcript.tokens, transcript.token_words, optional), None]
    spoken: int | None = None  # the previous word, which may be a star
    before = 0  # the last token of that word
    gap = -1
    for row in tokens:
        begins = row is None or (row[1] is not None and row[1] != spoken)
        beside_star = STAR_NUMBER in (before, row and row[0])
        gap += begins
        if begins and not beside_star and (gaps is None or gap in gaps):
            pause = [rows[-1]] if rows and rows[-1][2] else []
            rows += [(STAR_NUMBER, len(words), True), *pause]
            words.append(Word(STAR, STAR, 0, 0))
        if row is not None:
            rows.append(row)
            spoken, before = (spoken, before) if row[1] is None else (row[1], row[0])
    extended = replace(
        transcript,
        words=tuple(words),
        tokens=tuple(t for t, _, _ in rows),
        token_words=tuple(w for _, w, _ in rows),
    )
    return TextToAlign(extended, [skips for _, _, skips in rows])


def shared_out(transcript: Transcript, times: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Divide the time of consecutive stars in proportion to the lengths of their words.

    The border between two stars is arbitrary, since both match any frames.

    Args:
        transcript: The tokens.
        times: Start and end of every token, in any unit; equal for a token without frames.
    """
    out = list(times)
    runs: list[list[int]] = [[]]
    for i, (token, owner, (start, end)) in enumerate(zip(transcript.tokens, transcript.token_words, times)):
        if token == STAR_NUMBER:
            runs[-1].append(i)
        elif end > start or owner is not None:  # not a skipped pause
            runs.append([])
    for run in runs:
        owners = (transcript.token_words[i] for i in run)
        sizes = [len(transcript.words[owner].text) for owner in owners if owner is not None]
        if len(run) < 2:
            continue
        first, last = min(times[i][0] for i in run), max(times[i][1] for i in run)
        edges = [first + (last - first) * sum(sizes[:n]) / sum(sizes) for n in range(len(sizes) + 1)]
        for i, span in zip(run, pairwise(edges)):
            out[i] = span
    return out


def star_scores(logits: Tensor, blank: int, cost: float = STAR_COST) -> Tensor:
    """Compute the score of a star in every frame, an additional column beside those of the labels.

    ``torch.cat([log_probs, star_scores(log_probs, blank)[..., None]], -1)`` has the scores for targets in which label V
    is a star. As with any label, CTC has a blank between two stars in a row.

    Args:
        logits: ``(B, T, V)`` floating, log-probabilities or unnormalised.
        blank: Label number of the blank, whose probability reduces the cost.
        cost: Nats per frame, 0 or more; see :data:`STAR_COST`.

    Returns:
        ``(B, T)`` in the unit of the logits: the best label's score minus ``cost (1 - p(blank))``.
    """
    best, speech = best_and_speech(logits, blank)
    return best - cost * speech


def best_and_speech(logits: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """Compute what scores of stars are made of, whatever their cost: ``(B, T)`` each.

    Args:
        logits, blank: See :func:`star_scores`.

    Returns:
        The best label's score, and the probability of all labels but the blank.
    """
    wide = torch.promote_types(logits.dtype, torch.float32)
    speech = 1 - torch.softmax(logits, -1, dtype=wide)[..., blank]
    return logits.amax(-1), speech.to(logits.dtype)


def with_star(emissions: Emissions, cost: float) -> Emissions:
    """Append a star to the labels of emissions, as the last one: see :func:`star_scores`."""
    prior = emissions.log_prior
    if prior is not None:  # the star's log prior: the mean over labels, weighted by their priors
        prior = torch.cat([prior, (prior.exp() * prior).sum()[None] / prior.exp().sum()])
    star = star_scores(emissions.logits, emissions.blank, cost)
    return replace(emissions, logits=torch.cat([emissions.logits, star[..., None]], -1), log_prior=prior)


def starred(emissions: Emissions, targets: Targets, cost: float) -> tuple[Emissions, Targets]:
    """Give the stars of the targets the label after the last, and the emissions its scores.

    Without stars both are returned as they are.
    """
    if not bool((targets.labels == STAR_NUMBER).any()):
        return emissions, targets
    return with_star(emissions, cost), targets.numbered(emissions.logits.shape[2])
