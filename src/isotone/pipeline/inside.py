"""Speech inside a recording that its text lacks in the middle, as the guide finds it.

A text without its middle costs its other part the way to its place. So it may fit better at one end of its recording,
with all the rest in an edge (:mod:`isotone.pipeline.edges`), than over the whole. Stars between all words tell: with
them both parts are where they are said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from isotone.pipeline.edges import EDGE_COST, with_edges
from isotone.pipeline.placing import Placer
from isotone.pipeline.stars import STAR_NUMBER, starred, with_extra_speech
from isotone.pipeline.texts import TextToAlign
from isotone.text.tokenizer import Transcript
from isotone.types import Coupling, Emissions

#: Least gain in nats of stars between words, beside those at the ends, with which edges are not believed. In 12
#: chapters of LibriSpeech, four sentences of each, it was 68 to 299 where the text lacked the middle two, and 4 to 48
#: where the text lacked the first or the last ones, or both.
LEAST_GAIN = 60.0

#: Seconds of speech from which a star between words is kept.
LEAST_S = 1.0


class Inside(NamedTuple):
    """Speech that a text may lack.

    Attributes:
        gain: Nats that stars between words gain, beside those at the ends.
        places: Where the stars are, as :func:`isotone.pipeline.stars.with_extra_speech` takes them.
    """

    gain: float
    places: frozenset[int]


def inside(placer: Placer, emissions: Mapping[str, Emissions], text: TextToAlign) -> Inside:
    """Look for speech that one utterance's text lacks, by the guide; without a guide nothing is found.

    Args:
        placer: The placer of the text.
        emissions: Emissions of the utterance by head.
        text: The text, without stars.
    """
    if placer.guide_aligner is None:
        return Inside(0.0, frozenset())
    heard = emissions[placer.guide]

    def aligned(text: TextToAlign) -> tuple[Transcript, Coupling]:
        unfolded, targets = placer.targets([text])
        coupling = align(*starred(heard, targets.to(heard.logits.device), EDGE_COST))
        return unfolded[0].transcript, coupling

    align = placer.guide_aligner
    transcript, coupling = aligned(with_extra_speech(text))
    edged = aligned(with_edges(text))[1]
    if coupling.score is None or edged.score is None:
        return Inside(0.0, frozenset())
    return Inside(float(coupling.score[0] - edged.score[0]), _places(transcript, coupling, heard))


def _places(transcript: Transcript, coupling: Coupling, heard: Emissions) -> frozenset[int]:
    """Return the places of the stars of :data:`LEAST_S`: numbers of the words with tokens before them."""
    frames = int(heard.lengths[0])
    # a frame without a token of its own belongs to the token before it
    tokens = np.maximum.accumulate(coupling.path(frames).tokens[0].cpu().numpy())
    counts = np.bincount(tokens[tokens >= 0], minlength=len(transcript.tokens)).tolist()
    places, before = set(), set[int]()
    for token, owner, count in zip(transcript.tokens, transcript.token_words, counts):
        if token == STAR_NUMBER:
            if count * heard.grid.hop_s >= LEAST_S:
                places.add(len(before))
        elif owner is not None:
            before.add(owner)
    return frozenset(places)
