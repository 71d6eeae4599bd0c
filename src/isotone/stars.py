"""Stars: words of a transcript that stand for speech which is not written down.

A star matches any frames. In a frame it scores as the best label does, less a cost, so that the text keeps the frames
that it fits. To an aligner a star is one label more in the emissions, so every aligner can have them; to the kernels
(:mod:`isotone.kernels.viterbi`) one column more, see :func:`star_scores`.
"""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import Tensor

from isotone.text.normalize import TextError, Word, split_words
from isotone.text.tokenizer import Tokenizer, Transcript
from isotone.types import Emissions, Targets

#: How a star is written in tiers of words, and in texts (there ``<star>`` is one too).
STAR = "*"

#: Label number of a star in a transcript; no vocabulary has it.
STAR_NUMBER = -1

#: Cost c of a star in nats a frame: its log-probability is that of the frame's best label less c (1 - p(blank)), so
#: that the spikes of a peaky model cost what the frames of another do. On synthetic speech of voices not trained on,
#: with a quarter of the words left out of the text, optional stars of cost 0.5, 1, 2, 3, 4 and 6 found 97, 96, 93, 90,
#: 80 and 66 % of them (joint model; CTC 87, 86, 86, 85, 85 and 78), in seconds; of speech with its whole text they took
#: 9.4, 5.4, 2.6, 0.9, 0.4 and 0.1 % (CTC 3.7, 2.8, 1.7, 0.8, 0.5 and 0.2).
STAR_COST = 3.0

_IN_TEXT = re.compile(r"(?<!\S)(?:\*|<star>)(?!\S)")


def encode(tokenizer: Tokenizer, text: str) -> Transcript:
    """The labels of a text in which ``*`` or ``<star>``, as words of their own, are stars.

    Stars beside each other are one. Silences and delimiters that a tokenizer puts at the ends of a text are left out
    beside a star.

    Raises:
        TextError: nothing in the text but stars can be aligned.
    """
    stars = list(_IN_TEXT.finditer(text))
    if not stars:
        return tokenizer.encode(text)
    words: list[Word] = []
    tokens: list[tuple[int, int | None]] = []
    unknown: list[str] = []
    starts, ends = [0, *(s.end() for s in stars)], [*(s.start() for s in stars), len(text)]
    for i, (start, end) in enumerate(zip(starts, ends)):
        if i and not (tokens and tokens[-1][0] == STAR_NUMBER):
            tokens.append((STAR_NUMBER, len(words)))
            words.append(Word(STAR, STAR, stars[i - 1].start(), stars[i - 1].end()))
        if not split_words(text[start:end]):
            continue
        part = tokenizer.encode(text[start:end])
        rows = [(t, None if w is None else w + len(words)) for t, w in zip(part.tokens, part.token_words)]
        tokens += _trimmed(rows, i > 0, i < len(stars)) if part.words else rows
        words += [replace(w, start=w.start + start, end=w.end + start) for w in part.words]
        unknown += part.unknown
    if all(token == STAR_NUMBER for token, _ in tokens):
        raise TextError("The text has nothing to align: there are stars in it, and no words.")
    return Transcript(
        tuple(words), tuple(t for t, _ in tokens), tuple(w for _, w in tokens), tuple(dict.fromkeys(unknown))
    )


def _trimmed(rows: list[tuple[int, int | None]], left: bool, right: bool) -> list[tuple[int, int | None]]:
    """Tokens without those of no word at the ends beside a star."""
    own = [i for i, (_, word) in enumerate(rows) if word is not None]
    return rows[own[0] if left else 0 : own[-1] + 1 if right else len(rows)]


def with_extra_speech(transcript: Transcript, optional: list[bool]) -> tuple[Transcript, list[bool]]:
    """The transcript with a star that may be skipped before, between and after its words.

    Args:
        transcript: Tokens and their words.
        optional: Which tokens may be skipped. A star goes beside such a pause, and has it on its other side as well.

    Returns:
        The transcript, its words followed by those of the new stars; and which tokens may be skipped.
    """
    words = list(transcript.words)
    rows: list[tuple[int, int | None, bool]] = []
    tokens = [*zip(transcript.tokens, transcript.token_words, optional), None]
    spoken: int | None = None  # the word before, a star too
    for row in tokens:
        begins = row is None or (row[1] is not None and row[1] != spoken)
        beside_star = spoken is not None and words[spoken].text == STAR
        beside_star |= row is not None and row[0] == STAR_NUMBER
        if begins and not beside_star:
            pause = [rows[-1]] if rows and rows[-1][2] else []
            rows += [(STAR_NUMBER, len(words), True), *pause]
            words.append(Word(STAR, STAR, 0, 0))
        if row is not None:
            rows.append(row)
            spoken = spoken if row[1] is None else row[1]
    extended = replace(
        transcript,
        words=tuple(words),
        tokens=tuple(t for t, _, _ in rows),
        token_words=tuple(w for _, w, _ in rows),
    )
    return extended, [skips for _, _, skips in rows]


def star_scores(logits: Tensor, blank: int, cost: float = STAR_COST) -> Tensor:
    """The score of a star in every frame, to be put beside the labels' as one column more.

    ``torch.cat([log_probs, star_scores(log_probs, blank)[..., None]], -1)`` is what aligns targets in which label V is
    a star. As with any label, CTC has a blank between two stars in a row.

    Args:
        logits: ``(B, T, V)`` floating, log-probabilities or unnormalised.
        blank: Label number of the blank, whose probability a star does not pay for.
        cost: Nats a frame, 0 or more; see :data:`STAR_COST`.

    Returns:
        ``(B, T)`` in the unit of the logits: the best label's less ``cost (1 - p(blank))``.
    """
    wide = torch.promote_types(logits.dtype, torch.float32)
    speech = 1 - torch.softmax(logits, -1, dtype=wide)[..., blank]
    return logits.amax(-1) - cost * speech.to(logits.dtype)


def with_star(emissions: Emissions, cost: float) -> Emissions:
    """Emissions with a star as one label more, the last: see :func:`star_scores`."""
    prior = emissions.log_prior
    if prior is not None:  # what a label has on average
        prior = torch.cat([prior, (prior.exp() * prior).sum()[None] / prior.exp().sum()])
    star = star_scores(emissions.logits, emissions.blank, cost)
    return replace(emissions, logits=torch.cat([emissions.logits, star[..., None]], -1), log_prior=prior)


def numbered(targets: Targets, star: int) -> Targets:
    """The targets with a label number for their stars."""
    labels: Tensor = targets.labels
    return replace(targets, labels=torch.where(labels == STAR_NUMBER, star, labels))
