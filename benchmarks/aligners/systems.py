"""The aligners: isotone's models, and those that install without a download of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.aligners.recordings import RATE
from isotone.alignment import SILENCE, AlignmentError, Segment
from isotone.text.given import STAR


class Times(NamedTuple):
    """Words and phones as an aligner placed them."""

    words: tuple[Segment, ...]
    phones: tuple[Segment, ...]


System = Callable[[NDArray[np.float32], str], Times]


def isotone_system(model: str, *, refined: bool = True, judged: bool = False, **options: Any) -> System:
    """Load a model of isotone.

    Args:
        model: Its folder or its name.
        refined: False: boundaries stay where the aligner placed them (:mod:`isotone.audio.boundaries`).
        judged: True: as by default, words that were not said get no times. It raises AlignmentError where there are
            any. False: every word gets times, as from the others.
        options: Those of :class:`isotone.pipeline.Pipeline`.
    """
    from isotone.model import Model
    from isotone.pipeline import Pipeline

    pipeline = Pipeline(Model.load(model), check=judged, presence=judged, **options)
    if not refined:
        pipeline.refine = 0.0

    def align(samples: NDArray[np.float32], text: str) -> Times:
        found = pipeline.align("", samples, pipeline.encode(text)).alignment
        if found.absent:
            raise AlignmentError(f"{len(found.absent)} words have no times")
        words, phones = (found.tier(name).segments for name in ("words", "phones"))
        return Times(tuple(w for w in words if w.label not in (*SILENCE, STAR)), tuple(phones))

    return align


class PocketSphinx:
    """pocketsphinx with its own model of American English: words first, then phones within them."""

    def __init__(self) -> None:
        import pocketsphinx

        from isotone.text.pronounce import Espeak

        self._decoder = pocketsphinx.Decoder(samprate=RATE, bestpath=False, loglevel="FATAL")
        self._espeak = Espeak(phones=48)

    def __call__(self, samples: NDArray[np.float32], text: str) -> Times:
        """Align a text.

        Raises:
            RuntimeError: pocketsphinx finds no alignment.
        """
        words = text.lower().split()
        for word in words:
            if self._decoder.lookup_word(word) is None:
                self._decoder.add_word(word, " ".join(map(arpabet, self._espeak([word])[0])), True)
        sound = (np.clip(samples, -1, 1) * 32767).astype(np.int16).tobytes()
        self._decoder.set_align_text(" ".join(words))
        self._hear(sound)
        self._decoder.set_alignment()
        self._hear(sound)
        alignment = self._decoder.get_alignment()
        if alignment is None:
            raise RuntimeError("pocketsphinx found no alignment.")
        found, phones = [], []
        for word in alignment:
            if word.name in ("<s>", "</s>", "<sil>", "[NOISE]", "[SPEECH]"):
                continue
            found.append(_segment(word))
            phones += [_segment(phone) for phone in word]
        return Times(tuple(found), tuple(phones))

    def _hear(self, sound: bytes) -> None:
        self._decoder.start_utt()
        self._decoder.process_raw(sound, full_utt=True)
        self._decoder.end_utt()


def _segment(entry: Any) -> Segment:
    return Segment(
        entry.name.lower().partition("(")[0], entry.start / 100, (entry.start + entry.duration) / 100
    )


def arpabet(phone: str) -> str:
    """Return the name that pocketsphinx has for a phone of TIMIT."""
    return {"ax": "AH", "ix": "IH", "el": "L", "en": "N", "dx": "T"}.get(phone, phone.upper())
