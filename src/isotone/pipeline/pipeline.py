"""Audio and a model to alignments: forced alignment of a given text, and recognition with times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isotone.interfaces import Decoder
from isotone.model import Model
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.recognition import Recogniser
from isotone.pipeline.result import Result
from isotone.registries import aligners, decoders


class Pipeline(ForcedPipeline):
    """A model with its decoder and aligner.

    Args:
        model: The model.
        decoder: Name or specification of a decoder, in place of the model's own. One that gives a single hypothesis,
            such as ``ctc-greedy``, is not rescored.
        aligner, times: As in :class:`isotone.pipeline.forced.ForcedPipeline`. With either of the two, recognised text
            is aligned too, where the model alone would take the decoder's times.
        options: The other options of that class.

    Raises:
        LookupError, TextError, FileNotFoundError: as there; or there is no such decoder.
        ValueError: as there; or a model rescores hypotheses, and its own decoder gives only one.
    """

    def __init__(
        self,
        model: Model,
        *,
        aligner: str | dict | None = None,
        decoder: str | dict | None = None,
        times: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, aligner=aligner, times=times, **options)
        decoding = model.decoding
        self.decoder = _decoder(model, decoder)
        rescorer = aligners.create(decoding.aligner) if decoding.rescore and self.decoder.ranks else None
        realigns = bool(times or aligner or decoding.times)
        self.recogniser = Recogniser(
            model, self.decoder, rescorer, self.placer if realigns else None, self.star_cost
        )

    def transcribe(self, id: str, audio: np.ndarray) -> Result:
        """Recognise the text, and the times of its tokens. Arguments as in :meth:`align`.

        Where the aligner cannot align the recognised text, which may need more frames than there are, the times are
        the decoder's own, and a warning is logged.

        Raises:
            AlignmentError: the audio is too short for a frame.
        """
        return self.transcribe_batch([id], [audio])[0]

    def transcribe_batch(self, ids: Sequence[str], audio: Sequence[np.ndarray]) -> list[Result]:
        """Recognise several utterances at once; see :meth:`transcribe`."""
        if len(ids) > 1 and self.emitter.alone(audio):
            return [self.transcribe(*one) for one in zip(ids, audio)]
        emissions = self.emitter(ids, audio, self.recogniser.heads, self.on_window)
        seconds = [self.emitter.seconds(samples) for samples in audio]
        return self.recogniser(ids, seconds, emissions, self.movers_of(audio))


def _decoder(model: Model, given: str | dict | None) -> Decoder:
    """Build the given decoder, or the model's own."""
    decoder: Decoder = decoders.create(given or model.decoding.decoder)
    decoder.use_tokenizer(model.tokenizer)
    if model.decoding.rescore and not decoder.ranks and given is None:
        raise ValueError(
            f"reading.rescore chooses among hypotheses, and {type(decoder).__name__} gives one: take "
            "ctc-beam, or reading.rescore=0."
        )
    return decoder
