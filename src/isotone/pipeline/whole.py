"""Alignment of a text with a whole recording, or section by section where that is long or not what the text says."""

from __future__ import annotations

import numpy as np

from isotone.alignment import AlignmentError
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.result import Result
from isotone.pipeline.sections import align_sections
from isotone.pipeline.verdict import LONGEST_S, PARTLY, WRONG
from isotone.text.tokenizer import Transcript

#: Seconds of a recording from which on a suspicious text is looked for part by part. With 4 instead of 10 s, in 26
#: sentences of LJSpeech with swapped halves 263 of 425 words are within .1 s of their places instead of 88. With half
#: of another text inserted 22 are elsewhere instead of 47. In sentences of 3 s nothing is gained.
DIVIDED_S = 4.0

#: Words per second that nobody speaks.
TOO_FAST = 8.0


def suspicious(result: Result) -> bool:
    """Tell if the text of a whole recording may be in it in another order, repeated, or in part.

    So it is where the text is not right, and in long recordings, of which single words are not judged.
    """
    long = result.alignment.duration > LONGEST_S
    return long or result.alignment.verdict in (PARTLY, WRONG)


def align_whole(pipeline: ForcedPipeline, id: str, samples: np.ndarray, transcript: Transcript) -> Result:
    """Align a text with a whole recording, or section by section where that is long or not what the text says."""
    divides = _divides(pipeline, samples, transcript)
    if divides and pipeline.emitter.seconds(samples) > LONGEST_S:
        found = align_sections(pipeline, id, samples, transcript)
        return found or pipeline.align(id, samples, transcript)
    try:
        first = pipeline.align(id, samples, transcript)
    except AlignmentError as error:  # of a long text perhaps a part is said
        judges = _judges(pipeline, transcript)
        found = align_sections(pipeline, id, samples, transcript) if judges else None
        if found is None:
            raise _explained(error, id, transcript, pipeline.emitter.seconds(samples)) from error
        return found
    return checked(pipeline, id, samples, transcript, first)


def checked(
    pipeline: ForcedPipeline, id: str, samples: np.ndarray, transcript: Transcript, first: Result
) -> Result:
    """Return the alignment with a whole recording, or another one where its text is suspicious."""
    if suspicious(first) and _divides(pipeline, samples, transcript):
        return align_sections(pipeline, id, samples, transcript, deviating=True) or first
    return first


def _divides(pipeline: ForcedPipeline, samples: np.ndarray, transcript: Transcript) -> bool:
    """Tell if a recording is long enough for sections, and its words can be judged."""
    return _judges(pipeline, transcript) and pipeline.emitter.seconds(samples) >= DIVIDED_S


def _judges(pipeline: ForcedPipeline, transcript: Transcript) -> bool:
    return pipeline.presence is not None and bool(transcript.words and transcript.source)


def _explained(error: AlignmentError, id: str, transcript: Transcript, seconds: float) -> AlignmentError:
    """Say of a text that does not fit its recording that nobody speaks so fast, where that is the reason."""
    words = len(transcript.words)
    if error.row is None or words <= TOO_FAST * seconds:
        return error
    return AlignmentError(
        f"the text is too long for the audio: it has {words} words and the recording {seconds:.1f} s, more than anyone "
        "speaks. If the recording is an excerpt of a longer text, use isotone align --book TEXT; else give the text of "
        "this recording alone.",
        id=id,
    )
