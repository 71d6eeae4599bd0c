"""Audio and a model to an Alignment: forced alignment of a given text, and recognition with times."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner, Decoder
from isotone.model import Model
from isotone.pipeline import stars
from isotone.pipeline.doubt import agreements
from isotone.pipeline.edges import CLOSE, EDGE_COST, MUCH, Asked, edge_share, edges_left_out
from isotone.pipeline.placing import Placer, targets_of
from isotone.pipeline.rescoring import path_scores, rescored
from isotone.pipeline.result import Result, results
from isotone.pipeline.scores import rows_of
from isotone.pipeline.windows import Windows, emit
from isotone.registries import aligners, decoders
from isotone.registry import nearest
from isotone.text.options import TextOptions, adapted
from isotone.text.tokenizer import Transcript
from isotone.types import Coupling, Emissions, Targets

log = logging.getLogger(__name__)


class Pipeline:
    """A model with its decoder and aligner.

    Args:
        model: What hears.
        aligner: Name or specification of an aligner, in place of the model's own for the head of the times.
        decoder: Name or specification of a decoder, in place of the model's own. One that gives a single hypothesis,
            such as ``ctc-greedy``, is not rescored.
        times: Head the times are read from, in place of the model's own. With either of the two, recognised
            text is aligned too, where the model alone would take the decoder's times.
        device: Where the model runs.
        windows: How long audio is cut, so that memory does not grow with its length.
        extra_speech: Whether there may be speech that is not in the given text, before, after and between words.
            It is found as stars, labelled ``*`` in the tier of words. The aligner must be able to leave tokens out.
        guided: Whether the guide is asked, where the model has one and the aligner takes it. Times are better where
            text or recording are hard; forced alignment then needs the whole encoder, which the timing head may not.
        edges: Whether a recording may begin and end with something that is not its text, see
            :mod:`isotone.pipeline.edges`.
        star_cost: Nats a frame by which a star, such as one for extra speech, scores less than the best label: the
            higher, the less is taken for speech that is not in the text.
        text: How given texts are read.
        on_window: Called while long audio is encoded, with the share of it that is done.
        check: Whether given texts are compared with chance, see :mod:`isotone.pipeline.doubt`; no time or score
            depends on it.

    Raises:
        LookupError: no such aligner, decoder or head.
        TextError, FileNotFoundError: a dictionary that does not fit the model, or is not there.
        ValueError: extra speech, with an aligner that cannot leave tokens out; a star's cost below 0; or a model whose
            text is rescored, with a decoder of its own that gives one hypothesis.
    """

    def __init__(
        self,
        model: Model,
        *,
        aligner: str | dict | None = None,
        decoder: str | dict | None = None,
        times: str | None = None,
        device: torch.device | str = "cpu",
        windows: Windows = Windows(),  # noqa: B008 - frozen
        extra_speech: bool = False,
        star_cost: float = stars.STAR_COST,
        guided: bool = True,
        edges: bool = True,
        text: TextOptions = TextOptions(),  # noqa: B008 - frozen
        on_window: Callable[[float], None] = lambda share: None,
        check: bool = True,
    ) -> None:
        self.text = text
        self.tokenizer = adapted(model.tokenizer, text)
        self.model = model.to(device).eval()
        self.device = torch.device(device)
        reading = model.reading
        self.decoder: Decoder = decoders.create(decoder or reading.decoder)
        if hasattr(self.decoder, "use_tokenizer"):
            self.decoder.use_tokenizer(model.tokenizer)
        self.rescorer: Aligner | None = None
        if reading.rescore and hasattr(self.decoder, "nbest"):
            self.rescorer = aligners.create(reading.aligner)
        elif reading.rescore and decoder is None:
            raise ValueError(
                f"reading.rescore chooses among hypotheses, and {type(self.decoder).__name__} gives one: take "
                "ctc-beam, or reading.rescore=0."
            )
        self.times = times or reading.times or reading.text
        self.realigns = bool(times or aligner or reading.times)
        if self.times not in model.heads:
            near = nearest(self.times, list(model.heads))
            raise LookupError(
                f"The model has no head {self.times!r}.{near} It has: {', '.join(model.heads)}."
            )
        self.aligner: Aligner = aligners.create(aligner or model.aligner_of(self.times))
        self.guide = ""
        if guided and reading.guide != self.times and getattr(self.aligner, "takes_guide", False):
            self.guide = reading.guide
        self.guide_aligner = aligners.create(reading.guide_aligner) if self.guide else None
        if extra_speech and not getattr(self.aligner, "skips_optional", False):
            raise ValueError(
                f"Extra speech needs an aligner that can leave tokens out; {type(self.aligner).__name__} "
                "cannot. Choose another, such as segmental, or write * in the text where there is such speech."
            )
        if not star_cost >= 0:
            raise ValueError(f"Pipeline expects a star_cost of 0 nats a frame or more; got {star_cost}.")
        self.star_cost = star_cost
        self.windows = windows
        self.extra_speech = extra_speech
        self.holds_phones = aligner is None and model.tokenizer.unit == "phones"
        self.finds_edges = edges and not extra_speech and getattr(self.aligner, "skips_optional", False)
        self.on_window = on_window
        self.check = check

    @property
    def place(self) -> Placer:
        """What places texts: the aligner, and the guide where there is one."""
        return Placer(self.times, self.aligner, self.guide, self.guide_aligner)

    def encode(self, text: str) -> Transcript:
        """A text as :meth:`align` takes it: the tokenizer's labels, and stars (:mod:`isotone.pipeline.stars`).

        Raises:
            TextError: nothing in the text can be aligned.
        """
        return stars.encode(self.tokenizer, text, keep_markup=self.text.keep_markup)

    def align(self, id: str, audio: np.ndarray, transcript: Transcript) -> Result:
        """Forced alignment of a known text.

        Args:
            id: Utterance id.
            audio: ``(N,)`` float32 samples at the model's sample rate.
            transcript: The text, by :meth:`encode` or by the model's tokenizer.

        Raises:
            AlignmentError: the text needs more frames than the audio has; nothing of the audio can be framed.
        """
        return self.align_batch([id], [audio], [transcript])[0]

    def align_batch(
        self, ids: Sequence[str], audio: Sequence[np.ndarray], transcripts: Sequence[Transcript]
    ) -> list[Result]:
        """Forced alignment of several utterances at once; see :meth:`align`."""
        if len(ids) > 1 and self._cuts(audio):
            return [self.align(*one) for one in zip(ids, audio, transcripts)]
        heard = self._emit(ids, audio, {self.times, self.guide} - {""})
        asked = [self._with_pauses(t) for t in transcripts]
        texts = [" ".join(word.text for word in t.words) for t in transcripts]
        out = self._given(ids, audio, heard, asked, texts, self.star_cost)
        for i, name in enumerate(ids if self.finds_edges else ()):
            row = {head: rows_of(e, slice(i, i + 1)) for head, e in heard.items()}
            out[i] = self._within_edges(out[i], name, audio[i], row, asked[i]) or out[i]
        return out

    def _given(
        self,
        ids: Sequence[str],
        audio: Sequence[np.ndarray],
        heard: Mapping[str, Emissions],
        asked: Sequence[Asked],
        texts: Sequence[str],
        star_cost: float,
    ) -> list[Result]:
        """The results of given texts."""
        targets, coupling = self._placer(heard)(ids, heard, targets_of(asked), star_cost)
        transcripts, timing = [t for t, _ in asked], heard[self.times]
        found = self._results(ids, audio, timing, targets, coupling, transcripts, texts, star_cost)
        if not self.check:
            return found
        agreed = agreements(list(heard.values()), timing.grid, asked, coupling)
        return [replace(result, agreement=a) for result, a in zip(found, agreed)]

    def _placer(self, heard: Mapping[str, Emissions]) -> Placer:
        """What places given texts; an aligner that was asked for is taken as it is."""
        return self.place.patient(heard) if self.holds_phones else self.place

    def _within_edges(
        self, whole: Result, name: str, audio: np.ndarray, heard: Mapping[str, Emissions], asked: Asked
    ) -> Result | None:
        """The result with edges (:mod:`isotone.pipeline.edges`); None where the text is all of its recording."""

        def place(heard: Mapping[str, Emissions]) -> Result | None:
            edged = self._placer(heard).with_edges(heard, asked)
            if edged == asked:
                return None
            return self._given([name], [audio], heard, [edged], [whole.text], EDGE_COST)[0]

        found = place(heard)
        if found is None:
            return None
        if edge_share(found.alignment) >= MUCH:
            second = place(emit(self.model, audio, set(heard), CLOSE))
            found = second if second is not None and second.score > found.score else found
        # a wrong text can be squeezed to where it fits: the score is that of text and recording as they were given
        alignment = replace(found.alignment, score=whole.score)
        said = (edges_left_out(alignment), *found.warnings)
        return replace(found, alignment=alignment, score=whole.score, warnings=said)

    def transcribe(self, id: str, audio: np.ndarray) -> Result:
        """Recognition: the text, and when each token was said. Arguments as :meth:`align`.

        Where the aligner cannot place the recognised text (it may ask for more frames than there are), the times are
        the decoder's own, and a warning is logged.

        Raises:
            AlignmentError: nothing of the audio can be framed.
        """
        return self.transcribe_batch([id], [audio])[0]

    def transcribe_batch(self, ids: Sequence[str], audio: Sequence[np.ndarray]) -> list[Result]:
        """Recognition of several utterances at once; see :meth:`transcribe`."""
        if len(ids) > 1 and self._cuts(audio):
            return [self.transcribe(*one) for one in zip(ids, audio)]
        reading = self.model.reading
        heads = {reading.text, self.times, self.guide, reading.times if self.rescorer else ""}
        emissions = self._emit(ids, audio, heads - {""})
        timing = emissions[reading.text]
        if self.rescorer:
            targets, coupling = self._rescored(emissions, self.rescorer), None
        else:
            targets, coupling = self.decoder(timing)
        transcripts, texts = self._read(targets)
        if self.realigns and bool((targets.lengths > 0).any()):
            asked = [self._recognised(t, self.aligner) for t in transcripts]
            try:
                again = targets_of(asked)
                coupling = self._realign(ids, emissions, again)
                targets, transcripts, timing = again, [t for t, _ in asked], emissions[self.times]
            except AlignmentError as error:
                if len(ids) > 1:
                    return [self.transcribe(name, samples) for name, samples in zip(ids, audio)]
                log.warning("%s The times are the decoder's own.", error)
        if coupling is None:  # of what was chosen there are no times; of the decoder's own there are
            targets, coupling = self.decoder(timing)
            transcripts, texts = self._read(targets)
        return self._results(ids, audio, timing, targets, coupling, transcripts, texts, self.star_cost)

    def _rescored(self, emissions: Mapping[str, Emissions], rescorer: Aligner) -> Targets:
        """The text that both heads agree on, see :mod:`isotone.pipeline.rescoring`. The aligner of another call has no say."""
        reading, tokenizer = self.model.reading, self.model.tokenizer

        def nbest(heard: Emissions) -> list[list[tuple[list[int], float]]]:
            return self.decoder.nbest(heard, reading.hypotheses)  # type: ignore[attr-defined]

        def place(timing: Emissions, rows: Sequence[Sequence[int]]) -> np.ndarray:
            asked = [self._recognised(tokenizer.recognised(row), rescorer) for row in rows]
            return path_scores(rescorer, timing, targets_of(asked))

        text, timing = emissions[reading.text], emissions[reading.times]
        return Targets.from_lists(rescored(text, timing, nbest, place, reading.rescore))

    def _read(self, targets: Targets) -> tuple[list[Transcript], list[str]]:
        """Recognised labels as transcripts and as text."""
        tokenizer = self.model.tokenizer
        rows = targets.tolist()
        return [tokenizer.recognised(row) for row in rows], [tokenizer.decode(row) for row in rows]

    def _realign(self, ids: Sequence[str], emissions: Mapping[str, Emissions], targets: Targets) -> Coupling:
        """Times of the decoded tokens from the timing head; rows without tokens stay empty."""
        lengths = targets.lengths
        # an empty hypothesis has nothing to align: give the aligner some token and drop what it says of it
        labels = targets.labels.clone()
        labels[lengths == 0, :1] = 1 if emissions[self.times].blank == 0 else 0
        safe = replace(targets, labels=labels, lengths=lengths.clamp(min=1))
        coupling = self.place(ids, emissions, safe, self.star_cost)[1]
        keep = (lengths > 0)[:, None].to(coupling.mass.device)
        return replace(coupling, mass=coupling.mass * keep, target_lengths=lengths)

    def _cuts(self, audio: Sequence[np.ndarray]) -> bool:
        """Whether any of the audio is so long that it is encoded in windows."""
        return any(self.windows.cut(len(a) / self.model.encoder.sample_rate) for a in audio)

    def _emit(self, ids: Sequence[str], audio: Sequence[np.ndarray], heads: set[str]) -> dict[str, Emissions]:
        for name, samples in zip(ids, audio):
            if self.model.encoder.frames(len(samples)) < 1:
                seconds = len(samples) / self.model.encoder.sample_rate
                raise AlignmentError(f"{name}: {seconds:.3f} s of audio is too short for a single frame.")
        if self._cuts(audio):
            return emit(self.model, audio[0], heads, self.windows, self.on_window)
        lengths = torch.tensor([len(a) for a in audio])
        batch = torch.zeros(len(audio), int(lengths.max()))
        for row, samples in zip(batch, audio):
            row[: len(samples)] = torch.from_numpy(samples)
        with torch.inference_mode():
            out = self.model(batch.to(self.device), lengths.to(self.device), heads)
        return {name: e.to("cpu") for name, e in out.items()}

    def _with_pauses(self, transcript: Transcript) -> tuple[Transcript, list[bool]]:
        """A given text with what may lie between words, and which tokens may be skipped."""
        transcript, optional = self._beside_words(transcript, self.aligner)
        return stars.with_extra_speech(transcript, optional) if self.extra_speech else (transcript, optional)

    def _recognised(self, transcript: Transcript, aligner: Aligner) -> tuple[Transcript, list[bool]]:
        """A recognised text with the silences that the model has learned between words."""
        return self._beside_words(transcript, aligner, self.model.tokenizer.pauses)

    def _beside_words(
        self, transcript: Transcript, aligner: Aligner, wanted: bool = True
    ) -> tuple[Transcript, list[bool]]:
        """The transcript with silences where they are wanted and may be skipped, and which tokens may be skipped."""
        if wanted and getattr(aligner, "skips_optional", False):
            return self.model.tokenizer.with_pauses(transcript)
        return transcript, [False] * len(transcript.tokens)

    def _results(
        self,
        ids: Sequence[str],
        audio: Sequence[np.ndarray],
        timing: Emissions,
        targets: Targets,
        coupling: Coupling,
        transcripts: Sequence[Transcript],
        texts: Sequence[str],
        star_cost: float,
    ) -> list[Result]:
        seconds = [len(samples) / self.model.encoder.sample_rate for samples in audio]
        tokenizer = self.model.tokenizer
        return results(ids, seconds, texts, transcripts, tokenizer, timing, targets, coupling, star_cost)
