"""What a recording begins and ends with that is not its text: music, applause, noise, somebody else.

An aligner gives every frame to the text or to silence; such frames are neither, and the text would be drawn over them.
A star (:mod:`isotone.pipeline.stars`) at either end takes them, where the recording asks for it: the alignment with
the star has to be better by :data:`LEAST_GAIN`, so that recordings of their text alone are aligned as if there were
no such thing. Other speech is taken by a star too. The score stays that of the text on the whole recording: with
stars, a wrong text would be placed where it fits best, and could less well be told from a right one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from isotone.alignment import Alignment
from isotone.pipeline.stars import STAR_NUMBER
from isotone.pipeline.windows import Windows
from isotone.text.tokenizer import Transcript

#: Cost of a star at an end of a recording in nats a frame, see :data:`isotone.pipeline.stars.STAR_COST`. With 20 s of
#: music, applause or voices around sentences, costs of 0 to 0.5 found as many words, 1 and 2 fewer, and 3 hardly any.
EDGE_COST = 0.5

#: Nats by which an alignment with stars at both ends is better than without, where there is something: by a head that
#: hears a whole recording and has blanks; and by one that gives all its frames to labels, and may make little of a
#: voice that it does not know. Of recordings of their text alone (141 of LJSpeech, the 80 of the TIMIT sample, 128
#: synthetic; models that heard synthetic speech alone) the stars gained 34 nats at most by CTC. Of 56 of the real ones
#: they gained 98 by the head of 35 ms, and 218 by OTTC without CTC; with 20 s of something else, hundreds or more.
LEAST_GAIN = 40.0
LOCAL_GAIN = 300.0

#: Nats that one of two stars is worth at least, or the other alone will do. Few: without a star that is needed, a text
#: may be squeezed to that end of the recording, and fit nearly as well.
END_GAIN = 10.0

#: Where less of a recording than this is not its text, it is heard once.
MUCH = 0.2

#: How a recording is heard again of which much is not its text: what a loud edge does to the normalisation of all, it
#: cannot do to that of a short window inside the text. The times are those of the hearing that the text fits better.
CLOSE = Windows(window_s=2.0, context_s=1.5, alone=True)

#: A transcript as it is aligned, and which of its tokens may be skipped.
Asked = tuple[Transcript, list[bool]]


def with_edges(asked: Asked, left: bool = True, right: bool = True) -> Asked:
    """The transcript with a star of no word at its ends; silences and delimiters beside it may be skipped.

    Args:
        asked: Tokens and their words, and which tokens may be skipped.
        left, right: The ends that have a star, which may be skipped as well.
    """
    transcript, optional = asked
    spoken = [i for i, word in enumerate(transcript.token_words) if word is not None]
    first, last = (spoken[0], spoken[-1]) if spoken else (0, len(optional) - 1)
    skipped = [o or (left and i < first) or (right and i > last) for i, o in enumerate(optional)]
    extended = replace(
        transcript,
        tokens=(STAR_NUMBER,) * left + transcript.tokens + (STAR_NUMBER,) * right,
        token_words=(None,) * left + transcript.token_words + (None,) * right,
    )
    return extended, [True] * left + skipped + [True] * right


def choose_edges(asked: Asked, score: Callable[[Asked], float], gain: float = LEAST_GAIN) -> Asked:
    """The transcript with stars at those ends of the recording that need one.


    Args:
        asked: See :func:`with_edges`. One that has stars already is given back: it says itself what is not its text.
        score: The log-probability in nats of the best alignment; of what is asked without stars too by emissions that
            have a star, see :func:`isotone.pipeline.stars.with_star`.
        gain: Nats that both stars together have to gain, see :data:`LEAST_GAIN`; of two, each :data:`END_GAIN`.
    """
    if STAR_NUMBER in asked[0].tokens:
        return asked
    both = with_edges(asked)
    best = score(both)
    if best - score(asked) < gain:
        return asked
    sides = [with_edges(asked, right=False), with_edges(asked, left=False)]
    scores = [score(side) for side in sides]
    better = 0 if scores[0] >= scores[1] else 1
    return sides[better] if best - scores[better] < END_GAIN else both


def edge_share(alignment: Alignment) -> float:
    """The share of a recording before its first word and after its last (or first and last token), 0 to 1."""
    return sum(_edges(alignment)) / alignment.duration


def edges_left_out(alignment: Alignment) -> str:
    """A sentence on how much of a recording is before and after its text."""
    before, after = _edges(alignment)
    return f"{before:.1f} s before the text and {after:.1f} s after it hold something else, and were left out"


def _edges(alignment: Alignment) -> tuple[float, float]:
    segments = alignment.tiers[0].segments
    if not segments:
        return alignment.duration, 0.0
    return segments[0].start, alignment.duration - segments[-1].end
