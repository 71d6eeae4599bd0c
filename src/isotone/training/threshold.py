"""The threshold of doubtful transcripts, measured on a split with correct and wrong transcripts."""

from __future__ import annotations

import logging

import numpy as np

from isotone.alignment import AlignmentError
from isotone.model import Model
from isotone.model.check import Check
from isotone.pipeline import Pipeline
from isotone.pipeline.doubt import strangers
from isotone.text.normalize import normalize
from isotone.training.data import Utterances, evenly

log = logging.getLogger(__name__)

#: Most utterances to align, spread over the split: enough to see a rate of one in a hundred.
MOST = 200

#: Fewest agreements of each kind: with fewer a threshold would be chance.
LEAST = 20

#: Share of the wrong transcripts of the split to flag. On speech unlike the training data, correct and wrong
#: transcripts both agree less. There this threshold flagged 99 to 100 % of the wrong ones (benchmarks/README.md). A
#: threshold for 99 % of the split would flag two to five times as many correct ones.
FLAGGED = 0.95


def measure(model: Model, data: Utterances, split: str, flagged: float = FLAGGED) -> Check | None:
    """Measure the threshold that most wrong transcripts lie below, and the share of correct ones it flags.

    Every utterance is aligned with its own transcript and with that of another utterance.

    Args:
        model: In evaluation mode.
        data: Utterances with transcripts.
        split: Name of the split, for the result.
        flagged: Share of the wrong transcripts to flag, 0 to 1.

    Returns:
        The check; None with fewer than 20 recordings whose texts are long enough.
    """
    chosen = evenly(len(data), MOST)
    try:
        others = strangers({i: normalize(data.row(i)["text"]) for i in chosen})
    except ValueError:
        return None
    pipeline = Pipeline(model, device=next(model.parameters()).device, presence=False)
    right: list[float] = []
    wrong: list[float] = []
    for example in data.readable(chosen):
        other = data.tokenizer.encode_row(data.row(others[example.row]))
        for transcript, found in ((example.transcript, right), (other, wrong)):
            try:
                agreement = pipeline.align(example.id, example.audio, transcript).agreement
            except (
                AlignmentError
            ):  # a text too long for the audio needs no threshold: it is an error by itself
                continue
            if agreement is not None:
                found.append(agreement)
    if min(len(right), len(wrong)) < LEAST:
        log.info("Nothing says when a transcript is doubtful: %d utterances can be used.", len(right))
        return None
    threshold = float(np.quantile(wrong, flagged, method="higher"))
    return Check(
        threshold=threshold,
        split=split,
        files=len(right),
        right_flagged=float(np.mean(np.array(right) < threshold)),
        wrong_flagged=float(np.mean(np.array(wrong) < threshold)),
    )
