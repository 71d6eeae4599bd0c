"""Presence of words: evidence that each word of a text was said, and that nothing else was said between them.

Every word is judged in a stretch of the recording, that of the words around it. Best CTC paths of the stretch are
compared: with the word, without it, with a star (:mod:`isotone.pipeline.stars`) in its place, and with one beside it.
A few such differences make the probabilities, by logistic regressions that are fitted when a model is packed
(:mod:`isotone.training.presence`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import AlignmentError
from isotone.kernels.viterbi import ctc_score
from isotone.model.check import Presence
from isotone.pipeline.doubt import PRIOR
from isotone.pipeline.rows import each_row
from isotone.pipeline.stars import STAR_NUMBER, best_and_speech
from isotone.pipeline.texts import TextToAlign
from isotone.tensors import torch
from isotone.types import Coupling, Emissions, Grid

Array = NDArray[np.float64]

#: Words on either side that belong to the stretch of a word.
CONTEXT = 2

#: Seconds before the first and after the last word of a text that belong to its stretch.
MARGIN_S = 1.5

#: Costs in nats per frame of the stars: beside a word that is judged, in place of one, and of one that takes other
#: speech. On LibriSpeech, costs of 0.1 to 1 of the last one find missing words equally well.
BESIDE_COST, INSTEAD_COST, EXTRA_COST = 2.0, 0.0, 0.3

# Labels of these stars in a stretch; the model's own labels are not negative.
_BESIDE, _INSTEAD, _EXTRA = -2, -3, -4

# Frames on either side of a stretch: peaks of CTC may lie outside of the times by another head.
_SLACK = 2

# Words that are compared in one call, which bounds its memory.
_AT_ONCE = 16

# Differences in nats beyond this tell no more.
_MOST = 40.0

_Label = tuple[int, bool]  # with True where it may be skipped


class Evidence(NamedTuple):
    """Evidence on the words of a text.

    Attributes:
        words: Numbers of the words, in order; stars are left out.
        said: ``(n, F)`` features of the words.
        gaps: ``(n + 1, G)`` features of the gaps before every word, and after the last.
        places: For every gap the number of words with tokens before it, stars included.
    """

    words: list[int]
    said: Array
    gaps: Array
    places: list[int]


class _Word(NamedTuple):
    """A word as it was aligned: its number, labels, the pause after it, and its times in seconds."""

    number: int
    labels: list[_Label]
    pause: list[_Label]
    start: float
    end: float


def log_odds(weights: Sequence[float], features: Array) -> Array:
    """Compute log-odds ``(n,)`` of features ``(n, F)`` by F + 1 weights, of which the first is a constant."""
    return np.asarray(weights[0] + features @ np.array(weights[1:]))


def probabilities(weights: Sequence[float], features: Array) -> Array:
    """Compute probabilities ``(n,)``, see :func:`log_odds`."""
    return np.asarray(1 / (1 + np.exp(-log_odds(weights, features))))


def least_odds(presence: Presence, odds: Array) -> float:
    """Compute the log-odds below which words of one text may not have been said; at most 0, even odds.

    Args:
        presence: How words are judged.
        odds: ``(n,)`` log-odds of all words of the text.
    """
    if presence.least <= 0 or not len(odds):
        return -math.inf
    return min(0.0, math.log(presence.least / (1 - presence.least)) + presence.slope * float(np.median(odds)))


def most_odds(presence: Presence, odds: Array) -> float:
    """Compute the log-odds above which gaps of one text hold speech that is not in it.

    Args:
        presence: How gaps are judged.
        odds: ``(n,)`` log-odds of all words of the text.
    """
    if presence.most >= 1:
        return math.inf
    most = math.log(presence.most / (1 - presence.most))
    if not presence.rise or not len(odds):
        return most
    constant, slope = presence.rise
    return max(most, constant + slope * float(np.median(odds)))


def evidence(
    emissions: Sequence[Emissions], text: TextToAlign, times: Sequence[tuple[float, float]]
) -> Evidence | None:
    """Collect the evidence on every word of one utterance.

    Args:
        emissions: Emissions of the heads to judge by, each of one row.
        text: The text as it was aligned: one reading.
        times: Start and end of every token, seconds.

    Returns:
        The evidence; None without words, and where a head has no path.
    """
    words = _words(text, times)
    if not words:
        return None
    said, gaps = [np.log([[len(word.labels)] for word in words])], []
    for head in emissions:
        log_probs = _with_stars(head)
        parts = [range(i, min(i + _AT_ONCE, len(words))) for i in range(0, len(words), _AT_ONCE)]
        try:
            scores = np.concatenate([_scores(head, log_probs, words, part) for part in parts])
        except AlignmentError:  # scores that are not finite
            return None
        for_word, for_gap = _compared(scores)
        said.append(for_word)
        gaps.append(for_gap)
    spoken = [k for k, word in enumerate(words) if word.labels[0][0] != STAR_NUMBER]
    kept = [*spoken, len(words)]
    return Evidence([words[k].number for k in spoken], np.hstack(said)[spoken], np.hstack(gaps)[kept], kept)


def evidences(
    emissions: Sequence[Emissions], timing: Grid, texts: Sequence[TextToAlign], coupling: Coupling
) -> list[Evidence | None]:
    """Collect the evidence on the words of every text of a batch, see :func:`evidence`.

    Arguments as of :func:`isotone.pipeline.rows.each_row`, with emissions of the heads to judge by.
    """
    return [evidence(*row) for row in each_row(emissions, timing, texts, coupling)]


def _words(text: TextToAlign, times: Sequence[tuple[float, float]]) -> list[_Word]:
    """List the words that have tokens, without stars that are not in the text that was given."""
    words: list[_Word] = []
    transcript, optional = text
    for token, owner, skips, (start, end) in zip(transcript.tokens, transcript.token_words, optional, times):
        if owner is None:
            if words and token != STAR_NUMBER and skips:
                words[-1].pause[:] = [(token, True)]
        elif words and words[-1].number == owner:
            words[-1] = words[-1]._replace(labels=[*words[-1].labels, (token, skips)], end=end)
        elif token != STAR_NUMBER or transcript.words[owner].end:
            words.append(_Word(owner, [(token, skips)], [], start, end))
    return words


def _rows(words: Sequence[_Word], k: int, pause: Sequence[_Label]) -> list[list[_Label]]:
    """Make the label sequences that are compared for word k, in the order that :func:`_compared` reads."""
    low, high = max(0, k - CONTEXT), min(len(words), k + CONTEXT + 1)
    before = [*pause, *(x for word in words[low:k] for x in (*word.labels, *word.pause))]
    after = [x for word in words[k + 1 : high] for x in (*word.labels, *word.pause)]
    own = [*words[k].labels, *words[k].pause]
    # a star has a pause on its other side as well
    star, extra = [(_BESIDE, True), *pause], [(_EXTRA, True), *pause]
    return [
        [*before, *own, *after],
        [*before, (_INSTEAD, False), *pause, *after],
        [*before, *star, *own, *star, *after],
        [*before, *star, *after],
        [*before, *extra, *own, *after],
        [*before, *own, *extra, *after],
    ]


def _compared(scores: Array) -> tuple[Array, Array]:
    """Make one head's features of words and gaps of the scores ``(n, rows)`` of :func:`_rows`."""
    scores = np.nan_to_num(scores, neginf=-1e3)
    plain, instead, beside, without, extra_before, extra_after = scores.T
    before, after = extra_before - plain, extra_after - plain
    # a gap lies in the stretches of the words on both sides
    gaps = np.minimum(np.append(before, after[-1]), np.append(before[0], after))
    words = np.clip(np.stack([plain - instead, beside - without], 1), -_MOST, _MOST)
    return np.hstack([words, np.arcsinh(words)]), np.arcsinh(np.clip(gaps, -_MOST, _MOST))[:, None]


def _scores(
    head: Emissions, log_probs: NDArray[np.float32], words: Sequence[_Word], chosen: Sequence[int]
) -> Array:
    """Score the rows of some words ``(words, rows)`` in nats; those that are too long for their stretch: -inf."""
    rows, stretches = [], []
    pause = next((word.pause for word in words if word.pause), [])
    for k in chosen:
        made = _rows(words, k, pause)
        rows += made
        stretches += [_stretch(head, words, k)] * len(made)
    out = np.full(len(rows), -np.inf)
    fits = [i for i, row in enumerate(rows) if _fits(row, stretches[i].stop - stretches[i].start)]
    if fits:
        out[fits] = _best(log_probs, [rows[i] for i in fits], [stretches[i] for i in fits], head.blank)
    return out.reshape(len(chosen), -1)


def _stretch(head: Emissions, words: Sequence[_Word], k: int) -> slice:
    """Return the frames of the words around word k."""
    first, last = max(0, k - CONTEXT), min(len(words) - 1, k + CONTEXT)
    start = words[first].start - (MARGIN_S if first == 0 else 0.0)
    end = words[last].end + (MARGIN_S if last == len(words) - 1 else 0.0)
    frames = int(head.lengths[0])
    low = min(frames - 1, max(0, round(head.grid.frames(start)) - _SLACK))
    return slice(low, max(low + 1, min(frames, round(head.grid.frames(end)) + _SLACK)))


def _fits(row: Sequence[_Label], frames: int) -> bool:
    """Tell if a row has a path: a frame per label, and one between equal neighbours."""
    if 2 * len(row) <= frames:
        return True
    required = [label for label, skips in row if not skips]
    return len(required) + sum(a == b for a, b in pairwise(required)) <= frames


def _with_stars(head: Emissions) -> NDArray[np.float32]:
    """Return log-probabilities ``(T, V + 3)`` of the only row, with the columns of the stars."""
    if head.log_prior is not None:
        head = head.without_prior(PRIOR)
    log_probs = head.log_probs()[:1, : int(head.lengths[0])]
    best, speech = best_and_speech(log_probs, head.blank)
    stars = [(best - cost * speech)[..., None] for cost in (BESIDE_COST, INSTEAD_COST, EXTRA_COST)]
    return torch.cat([log_probs, *stars], -1)[0].cpu().numpy()


def _best(
    log_probs: NDArray[np.float32],
    rows: Sequence[Sequence[_Label]],
    stretches: Sequence[slice],
    blank: int,
) -> Array:
    """Score the best CTC paths of rows of labels in their stretches: ``(rows,)`` nats."""
    lengths = np.array([len(row) for row in rows])
    frames = np.array([part.stop - part.start for part in stretches])
    there = np.arange(lengths.max()) < lengths[:, None]
    labels, optional = np.full(there.shape, blank), np.zeros(there.shape, bool)
    flat = chain.from_iterable(chain.from_iterable(rows))
    given = np.fromiter(flat, np.int64, 2 * int(lengths.sum())).reshape(-1, 2)
    size = log_probs.shape[1] - 3
    # the model's labels, and from the end on the stars, in the order of their columns
    columns_of = np.append(np.arange(size), [size + 2, size + 1, size, size])
    labels[there], optional[there] = columns_of[given[:, 0]], given[:, 1]
    # only the columns of labels that occur: with large vocabularies most do not
    columns, codes = np.unique(np.append(labels, blank), return_inverse=True)
    found = log_probs[:, columns]
    scores = np.empty((len(rows), frames.max(), len(columns)), np.float32)
    for row, part in zip(scores, stretches):  # what lies behind a row's frames is not read
        row[: part.stop - part.start] = found[part]
    codes, own_blank = codes[:-1].reshape(labels.shape), int(codes[-1])
    return np.asarray(ctc_score(scores, codes, frames, lengths, own_blank, optional), float)
