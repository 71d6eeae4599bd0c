"""When a transcript is doubtful: measured on a split, with right transcripts and wrong ones."""

from __future__ import annotations

import logging

import numpy as np

from isotone.alignment import AlignmentError
from isotone.model import Model
from isotone.model.check import Check
from isotone.pipeline import Pipeline
from isotone.pipeline.doubt import strangers
from isotone.text.normalize import normalize
from isotone.training.data import Utterances

log = logging.getLogger(__name__)

#: Utterances that are aligned, spread over the split: a rate of one in a hundred can be seen.
MOST = 200

#: With fewer a threshold would be an accident.
LEAST = 20

#: Share of the wrong transcripts of the split that are to be flagged. Of speech that a model was not trained on both
#: kinds agree less: there this threshold flagged 99 to 100 % of the wrong (benchmarks/README.md), and one for 99 % of
#: the split would flag twice to five times as many of the right.
WANTED = 0.95


def measure(model: Model, data: Utterances, split: str) -> Check | None:
    """The threshold below which 95 % of wrong transcripts lie, and what it does to right ones.

    Every utterance is aligned with its own transcript and with another's.

    Args:
        model: In evaluation mode.
        data: Utterances with transcripts.
        split: Their name.

    Returns:
        None where there are fewer than 20 recordings whose texts are long enough.
    """
    count = min(MOST, len(data))
    chosen = [i * len(data) // count for i in range(count)]
    try:
        others = strangers({i: normalize(data.row(i)["text"]) for i in chosen})
    except ValueError:
        return None
    pipeline = Pipeline(model, device=next(model.parameters()).device)
    right: list[float] = []
    wrong: list[float] = []
    for i in chosen:
        example = data[i]
        other = data.tokenizer.encode_row(data.row(others[i]))
        for transcript, found in ((example.transcript, right), (other, wrong)):
            try:
                agreement = pipeline.align(example.id, example.audio, transcript).agreement
            except AlignmentError:  # too long for the audio: an error of its own
                continue
            if agreement is not None:
                found.append(agreement)
    if min(len(right), len(wrong)) < LEAST:
        log.info("Nothing says when a transcript is doubtful: %d utterances can be used.", len(right))
        return None
    threshold = float(np.quantile(wrong, WANTED, method="higher"))
    return Check(
        threshold=threshold,
        split=split,
        files=len(right),
        right_flagged=float(np.mean(np.array(right) < threshold)),
        wrong_flagged=float(np.mean(np.array(wrong) < threshold)),
    )
