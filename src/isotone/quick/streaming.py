"""Alignment of a recording while it is made, in a few calls: ``isotone.StreamingAligner``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soxr
from numpy.typing import ArrayLike, NDArray

from isotone.audio.arrays import from_array
from isotone.audio.mixing import Mixer
from isotone.batch.options import Part
from isotone.pipeline.live.stream import Spoken, Stream, Timing
from isotone.quick.calls import kept, options_of

#: Rates that are taken, in Hz: 16 is a mistake for 16,000.
LEAST_RATE, MOST_RATE = 1_000, 1_000_000

__all__ = ["Spoken", "StreamingAligner", "Timing"]


class StreamingAligner:
    """A text and a stream of samples: words come as they end.

    A word is given when 0.2 s of audio follow its end: with steps of 0.1 s that is a quarter of a second after it, in
    the median. It may be corrected within 2.7 s after that, where better times are found; what was given before then
    comes again with ``corrects``. Later it never changes. A word that was given before it was said is taken back: it
    comes again without times, and once more when it is said. What is given does not depend on the lengths of the pieces
    that are fed. Memory does not grow with the recording.

    The reader may pause anywhere, leave words out, and say what is not in the text. Words that were left out are given
    without times, when a second of what follows them was heard. Between them and in other speech no word has times.

    Args:
        text: The text, as written. Its words are numbered from 0.
        model: Name of a model pack, model or run folder, or hub id. Default: the pack of the language. Its aligner
            takes graphs, as ``segmental`` and ``ctc`` do.
        rate: Hz of the samples. Default: the model's own.
        language, dictionaries, rules, keep_markup, device, aligner, closures: As of :func:`isotone.align`.
        timing: Delays.

    Attributes:
        notes: Sentences on parts of the text that are not aligned as written.

    Raises:
        LookupError, OSError, TextError: As :func:`isotone.align`.
        ValueError: an aligner that takes no graphs, a text or model without words, or a rate out of range.

    Example:
        >>> aligner = isotone.StreamingAligner("She washed the dog.")  # doctest: +SKIP
        >>> for samples in microphone:  # doctest: +SKIP
        ...     for word in aligner.feed(samples):
        ...         print(word.text, word.start, word.end)
    """

    def __init__(
        self,
        text: str,
        model: str | Path | None = None,
        *,
        rate: float | None = None,
        language: str | None = None,
        dictionaries: Sequence[str | Path] = (),
        rules: Sequence[str | Path] = (),
        keep_markup: bool = False,
        device: str = "cpu",
        aligner: Part | None = None,
        closures: bool = False,
        timing: Timing = Timing(),  # noqa: B008 - frozen
    ) -> None:
        pipeline = kept.pipeline(
            options_of(
                model,
                language,
                dictionaries,
                keep_markup,
                rules,
                device=device,
                engine="torch",
                aligner=aligner,
                closures=closures,
            )
        )
        own = pipeline.model.encoder.sample_rate
        rate = own if rate is None else rate
        if not LEAST_RATE <= rate <= MOST_RATE:
            raise ValueError(
                f"A sample rate is between {LEAST_RATE:,} and {MOST_RATE:,} samples per second; got {rate!r}."
            )
        transcript = pipeline.encode(text)
        self.notes = transcript.notes
        self._rate = rate
        self._stream = Stream(pipeline, transcript, timing)
        self._resampler = (
            None if rate == own else soxr.ResampleStream(rate, own, 1, dtype="float32", quality="HQ")
        )
        self._mix = Mixer("The stream")
        self._over = False

    @property
    def done(self) -> bool:
        """True when all words are final: what follows is not listened to."""
        return self._stream.done

    def feed(self, samples: ArrayLike) -> list[Spoken]:
        """Take the next samples, and return the words that have ended, with corrections of earlier ones.

        Args:
            samples: ``(N,)``, or ``(N, C)`` with channels, which are averaged; floats in [-1, 1], or whole numbers.
                None at all is allowed.

        Raises:
            AudioError: another shape or kind of number, or samples that are not finite.
            ValueError: the stream is over.
        """
        if self._over:
            raise ValueError("The stream is over: finish() was called. A new recording needs a new aligner.")
        return self._stream.feed(self._resampled(np.asarray(samples), last=False))

    def finish(self) -> list[Spoken]:
        """Take the stream to be over; return all other words, and the last corrections. Again: nothing."""
        if self._over:
            return []
        self._over = True
        rest = self._stream.feed(self._resampled(np.zeros(0, np.float32), last=True))
        return [*rest, *self._stream.finish()]

    def _resampled(self, samples: NDArray, last: bool) -> NDArray[np.float32]:
        mono = np.zeros(0, np.float32)
        if samples.size:
            # a piece may have fewer samples than channels
            channels = samples.T if samples.ndim == 2 else [samples]
            mono = self._mix(np.stack([from_array(one, self._rate, self._rate) for one in channels], 1))
        if self._resampler is None:
            return mono
        return self._resampler.resample_chunk(mono, last=last)
