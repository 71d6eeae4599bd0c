"""Edges: parts of a recording before and after its text, such as music, applause, noise or other voices.

An aligner gives every frame to the text or to silence, so the text would be stretched over such parts. A star
(:mod:`isotone.pipeline.stars`) at either end takes their frames. It is added only where it improves the alignment by
:data:`LEAST_GAIN`; recordings without edges are aligned as if stars did not exist. The score stays that of the text on
the whole recording: with stars, a wrong text moves to where it fits best, and its score is closer to a correct one's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from isotone.alignment import Alignment
from isotone.pipeline.stars import STAR_NUMBER
from isotone.pipeline.texts import TextToAlign
from isotone.pipeline.windows import Windows

#: Cost of a star at an end of a recording in nats per frame, see :data:`isotone.pipeline.stars.STAR_COST`. With 20 s of
#: music, applause or voices around sentences, costs of 0 to 0.5 found as many words, 1 and 2 fewer, and 3 hardly any.
EDGE_COST = 0.5

#: Least gain in nats of stars at both ends. LEAST_GAIN is for heads that see the whole recording and have blanks.
#: LOCAL_GAIN is for heads that give all frames to labels, and may score unknown voices low. Measured with models
#: trained only on synthetic speech. In recordings without edges (141 of LJSpeech, the 80 of the TIMIT sample, 128
#: synthetic) stars gained at most 34 nats by CTC. In 56 of the real ones they gained 98 by the head of 35 ms, and 218
#: by OTTC without CTC. With edges of 20 s they gain hundreds of nats or more.
LEAST_GAIN = 40.0
LOCAL_GAIN = 300.0

#: Least gain in nats of each of two stars; otherwise only the other one is added. It is small because a text that lacks
#: one of two stars moves to that end of the recording, and fits nearly as well.
END_GAIN = 10.0

#: Share of edges in a recording above which it is encoded a second time, in short windows.
SECOND_PASS_SHARE = 0.2

#: Windows of that second pass: loud edges distort the normalisation of a whole recording, but not that of short windows
#: inside the text. The pass with the better score gives the times.
SECOND_PASS = Windows(window_s=2.0, context_s=1.5, alone=True)


def with_edges(text: TextToAlign, left: bool = True, right: bool = True) -> TextToAlign:
    """Put a star that belongs to no word at the ends of a text; silences and delimiters beside it may be skipped.

    Args:
        text: The text.
        left, right: The ends that get a star, which may be skipped as well.
    """
    transcript, optional = text
    spoken = [i for i, word in enumerate(transcript.token_words) if word is not None]
    first, last = (spoken[0], spoken[-1]) if spoken else (0, len(optional) - 1)
    skipped = [o or (left and i < first) or (right and i > last) for i, o in enumerate(optional)]
    extended = replace(
        transcript,
        tokens=(STAR_NUMBER,) * left + transcript.tokens + (STAR_NUMBER,) * right,
        token_words=(None,) * left + transcript.token_words + (None,) * right,
    )
    return TextToAlign(extended, [True] * left + skipped + [True] * right)


def choose_edges(
    text: TextToAlign,
    score: Callable[[TextToAlign], float],
    gain: float = LEAST_GAIN,
    least: float = -math.inf,
    most: float = math.inf,
) -> TextToAlign:
    """Put stars at those ends of a text whose recording needs one.

    Args:
        text: The text. One with stars is returned as it is: it marks other speech itself.
        score: Log-probability in nats of a text's best alignment. Texts with and without stars are compared, so the
            emissions need a star for both, see :func:`isotone.pipeline.stars.with_star`.
        gain: Least gain in nats of both stars together, see :data:`LEAST_GAIN`; each of two gains :data:`END_GAIN`.
        least, most: A score that the text itself reaches, and one that no text exceeds, where they are known: mostly
            they say without a search that no star gains enough.
    """
    if STAR_NUMBER in text.transcript.tokens or most - least < gain:
        return text
    both = with_edges(text)
    best = score(both)
    if best - least < gain or best - score(text) < gain:
        return text
    sides = [with_edges(text, right=False), with_edges(text, left=False)]
    scores = [score(side) for side in sides]
    better = 0 if scores[0] >= scores[1] else 1
    return sides[better] if best - scores[better] < END_GAIN else both


def edge_share(alignment: Alignment) -> float:
    """Compute the share of a recording before its first and after its last word (or token), 0 to 1."""
    return sum(_edges(alignment)) / alignment.duration


def edges_left_out(alignment: Alignment) -> str:
    """Make a sentence on the seconds before and after the text of a recording."""
    before, after = _edges(alignment)
    return f"{before:.1f} s before the text and {after:.1f} s after it hold something else, and were left out"


def _edges(alignment: Alignment) -> tuple[float, float]:
    segments = alignment.tiers[0].segments
    if not segments:
        return alignment.duration, 0.0
    return segments[0].start, alignment.duration - segments[-1].end
