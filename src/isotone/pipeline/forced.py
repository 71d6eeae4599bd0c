"""Audio, a model and a given text to alignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.audio.boundaries import Mover, movers
from isotone.audio.reverberation import dried
from isotone.interfaces import Aligner
from isotone.model.check import known_margins, known_presence
from isotone.pipeline import judging, stars, verdict
from isotone.pipeline.doubt import agreements
from isotone.pipeline.edges import EDGE_COST, SECOND_PASS, SECOND_PASS_SHARE, edge_share, edges_left_out
from isotone.pipeline.emitted import Emitted
from isotone.pipeline.emitter import Emitter, mixture_of, timing_head
from isotone.pipeline.hush import hushed
from isotone.pipeline.inside import Inside, inside
from isotone.pipeline.language import in_language
from isotone.pipeline.lattices import chosen
from isotone.pipeline.margins import with_margins
from isotone.pipeline.placing import Placer
from isotone.pipeline.presence import evidences
from isotone.pipeline.result import Result, results
from isotone.pipeline.texts import TextToAlign, with_pauses
from isotone.pipeline.windows import Windows
from isotone.registries import aligners
from isotone.text.options import TextOptions, adapted
from isotone.text.tokenizer import Transcript
from isotone.types import Emissions

if TYPE_CHECKING:
    import torch

    from isotone.model import Model


class ForcedPipeline:
    """A model with its aligner.

    Args:
        model: The model; or :class:`isotone.model.onnx_model.OnnxModel`, which has what is asked of it here.
        aligner: Name or specification of an aligner, in place of the model's own for the timing head.
        times: Head whose emissions give the times, in place of the model's own.
        device: Device of the model.
        windows: Windows into which long audio is cut, so that memory does not grow with its length.
        extra_speech: Allow speech that is not in the given text, before, after and between words. It is found as
            stars, labelled ``*`` in the tier of words. The aligner must be able to skip tokens.
        star_cost: Nats per frame by which a star scores less than the best label: with a higher cost, less is taken for
            speech that is not in the text. Default: :data:`isotone.pipeline.stars.STAR_COST` with extra speech, else
            :data:`isotone.pipeline.stars.OWN_COST`.
        guided: Use the guide, if the model has one and the aligner takes it, and the head beside the timing head. Times
            are better where text or recording are difficult; forced alignment then needs the whole encoder, which the
            timing head alone may not.
        edges: Allow other sounds before and after a given text, see :mod:`isotone.pipeline.edges`.
        text: Options of given texts.
        on_window: Called while long audio is encoded, with the share of it that is done.
        check: Compare given texts with chance, see :mod:`isotone.pipeline.doubt`; times and scores do not change.
        closures: Show the closures of stops as segments of their own, as TIMIT's labels do (``tcl`` and ``t``), for
            models that choose how stops are said (:class:`isotone.text.closures.ClosureRules`). Otherwise a stop is
            one segment, with the closure that it has.
        presence: Leave out words of given texts that were not said, and mark other speech, where the model knows when
            (:mod:`isotone.pipeline.verdict`). Otherwise every word gets times.
        margins: Say how sure the boundaries of given texts are (:mod:`isotone.pipeline.margins`).

    Raises:
        LookupError: there is no such aligner or head.
        TextError, FileNotFoundError: a dictionary does not fit the model, or is missing.
        ValueError: extra speech with an aligner that cannot skip tokens; a star cost below 0; or margins that the model
            does not know, or that are not those of the given aligner or head.
    """

    def __init__(
        self,
        model: Model,
        *,
        aligner: str | dict | None = None,
        times: str | None = None,
        device: torch.device | str = "cpu",
        windows: Windows = Windows(),  # noqa: B008 - frozen
        extra_speech: bool = False,
        star_cost: float | None = None,
        guided: bool = True,
        edges: bool = True,
        text: TextOptions = TextOptions(),  # noqa: B008 - frozen
        on_window: Callable[[float], None] = lambda share: None,
        check: bool = True,
        closures: bool = False,
        presence: bool = True,
        margins: bool = False,
    ) -> None:
        decoding = model.decoding
        self.text = text
        self.tokenizer = adapted(model.tokenizer, text)
        self.model = model.to(device).eval()
        self.times = timing_head(model, times)
        self.aligner: Aligner = aligners.create(aligner or model.aligner_of(self.times))
        if extra_speech and not self.aligner.skips_optional:
            raise ValueError(
                f"Extra speech needs an aligner that can leave tokens out; {type(self.aligner).__name__} "
                "cannot. Choose another, such as segmental, or write * in the text where there is such speech."
            )
        self.guide = decoding.guide if guided and self.aligner.takes_guide else ""
        if self.guide == self.times:
            self.guide = ""
        guide_aligner = aligners.create(decoding.guide_aligner) if self.guide else None
        self.placer = Placer(self.times, self.aligner, self.guide, guide_aligner)
        self.emitter = Emitter(self.model, windows, mixture_of(model, self.times) if guided else None)
        self.on_window = on_window
        self.star_cost = stars.cost_of(star_cost, extra_speech)
        self.extra_speech = extra_speech
        # an aligner that the caller names is used as it is
        self.holds_phones = aligner is None and model.tokenizer.unit == "phones"
        self.finds_edges = edges and not extra_speech and self.aligner.skips_optional
        self.check, self.closures = check, closures
        self.refine = decoding.refine if aligner is None else 0.0
        judges = presence and not extra_speech and self.aligner.skips_optional
        self.presence = known_presence(model.check, self.placer.heads) if judges else None
        own = aligner is None and self.times == timing_head(model, None)
        self.margins = known_margins(model.check, own) if margins else None

    def encode(self, text: str) -> Transcript:
        """Encode a text for :meth:`align`: the tokenizer's labels, and stars (:mod:`isotone.pipeline.stars`).

        Raises:
            TextError: nothing in the text can be aligned.
        """
        return stars.encode(self.tokenizer, text, keep_markup=self.text.keep_markup)

    def align(
        self,
        id: str,
        audio: np.ndarray,
        transcript: Transcript,
        *,
        star_cost: float | None = None,
        judged: bool = True,
        leaves_out: bool = True,
    ) -> Result:
        """Align a given text.

        Args:
            id: Utterance id.
            audio: ``(N,)`` float32 samples at the model's sample rate.
            transcript: The text, by :meth:`encode` or by the model's tokenizer.
            star_cost: In place of the pipeline's own.
            judged: False: every word gets times, whatever the pipeline's ``presence``. So it is above
                :data:`isotone.pipeline.verdict.LONGEST_S`, but for :mod:`isotone.pipeline.sections`.
            leaves_out: False: every word gets times, and the evidence on them is in the result.

        Raises:
            AlignmentError: the text needs more frames than the audio has, or the audio is too short for a frame.
        """
        options: dict[str, Any] = {"star_cost": star_cost, "judged": judged, "leaves_out": leaves_out}
        return self.align_batch([id], [audio], [transcript], **options)[0]

    def align_batch(
        self,
        ids: Sequence[str],
        audio: Sequence[np.ndarray],
        transcripts: Sequence[Transcript],
        *,
        star_cost: float | None = None,
        judged: bool = True,
        leaves_out: bool = True,
    ) -> list[Result]:
        """Align several utterances at once; see :meth:`align`."""
        with self.model.tensors():
            if len(ids) > 1 and self.emitter.alone(audio):
                options: dict[str, Any] = {"star_cost": star_cost, "judged": judged, "leaves_out": leaves_out}
                return self._apart(ids, audio, transcripts, **options)
            texts = [self._with_pauses(t) for t in transcripts]
            audio = [dried(samples, self.model.encoder.sample_rate) for samples in audio]
            emissions = self.emitter(ids, audio, self.placer.heads, self.on_window)
            emissions = self.placer.where_aligned(emissions, texts)
            strings = [" ".join(word.text for word in t.words) for t in transcripts]
            cost = self.star_cost if star_cost is None else star_cost
            longest = max(self.emitter.seconds(samples) for samples in audio)
            judged = judged and self.presence is not None and longest <= verdict.LONGEST_S
            heard = hushed(emissions, audio, self.model)
            given = Emitted(ids, audio, emissions, heard, texts, strings, cost, judged)
            out = self._aligned(given)
            for i, found in enumerate(out):
                own = given.row(i)
                edged = self._within_edges(own, found) if self.finds_edges else None
                said = self._judged(own, found, edged) if judged and leaves_out else edged or found
                told = in_language(said, transcripts[i], self.model.check)
                out[i] = with_margins(told, self.margins) if self.margins else told
            return out

    def _apart(
        self,
        ids: Sequence[str],
        audio: Sequence[np.ndarray],
        transcripts: Sequence[Transcript],
        **options: Any,
    ) -> list[Result]:
        """Align utterances some of which have to be encoded by themselves: these one by one, the others at once."""
        rows = list(zip(ids, audio, transcripts))
        alone = [self.emitter.alone([samples]) for samples in audio]
        rest = [row for row, apart in zip(rows, alone) if not apart]
        together = iter(self.align_batch(*zip(*rest), **options) if rest else [])
        return [self.align(*row, **options) if apart else next(together) for row, apart in zip(rows, alone)]

    def watch(self, on_window: Callable[[float], None]) -> None:
        """Report the share of long audio that is encoded to another function from now on."""
        self.on_window = on_window

    def _aligned(self, given: Emitted, checked: bool = True) -> list[Result]:
        """Align given texts, and make their results; with evidence if judged, with their agreement if checked."""
        ids, audio, emissions, heard, texts, strings, star_cost, judged = given
        placer = self.placer_of(emissions)
        unfolded, targets = placer.targets(texts)
        targets, coupling = placer(ids, heard, targets, star_cost)
        reached = {self.times: coupling.score, self.guide: getattr(targets.guide, "score", None)}
        scores = {head: score.tolist() for head, score in reached.items() if score is not None}
        readings, targets, coupling = chosen(unfolded, targets, coupling)
        timing = emissions[self.times]
        found = results(
            ids, [self.emitter.seconds(samples) for samples in audio], strings,
            [text.transcript for text in readings], self.model.tokenizer, timing, targets, coupling, star_cost,
            self.closures, self.movers_of(audio),
        )  # fmt: skip
        found = [replace(r, reached={h: s[i] for h, s in scores.items()}) for i, r in enumerate(found)]
        if self.check and checked:
            agreed = agreements(list(emissions.values()), timing.grid, readings, coupling)
            found = [replace(result, agreement=a) for result, a in zip(found, agreed)]
        if self.presence is not None and judged:
            heads = [emissions[head] for head in self.presence.heads]
            seen = evidences(heads, timing.grid, readings, coupling)
            found = [replace(result, evidence=e) for result, e in zip(found, seen)]
        return found

    def movers_of(self, audio: Sequence[np.ndarray]) -> list[Mover]:
        """List what moves the boundaries of every recording (:mod:`isotone.audio.boundaries`), if anything does."""
        return movers(audio, self.model.encoder.sample_rate, self.refine) if self.refine else []

    def placer_of(self, emissions: Mapping[str, Emissions]) -> Placer:
        """Return the placer of given texts."""
        return self.placer.patient(emissions) if self.holds_phones else self.placer

    def _within_edges(self, given: Emitted, whole: Result) -> Result | None:
        """Align with edges (:mod:`isotone.pipeline.edges`); None where the text covers its recording."""

        def attempt(given: Emitted, reached: Mapping[str, float]) -> Result | None:
            edged = self.placer_of(given.emissions).with_edges(given.heard, given.texts[0], reached)
            if edged == given.texts[0]:
                return None
            return self._aligned(given._replace(texts=[edged], star_cost=EDGE_COST))[0]

        found = attempt(given, whole.reached)
        if found is None:
            return None
        if edge_share(found.alignment) >= SECOND_PASS_SHARE:
            again = self.emitter.in_windows(given.audio[0], set(given.emissions), SECOND_PASS)
            again = self.placer.where_aligned(again, given.texts)
            heard = hushed(again, given.audio, self.model)
            second = attempt(given._replace(emissions=again, heard=heard), {})
            found = second if second is not None and second.score > found.score else found
        # the score is that of the text on the whole recording: with edges, a wrong text moves to where it fits best
        warnings = (edges_left_out(found.alignment), *found.warnings)
        return replace(found.with_score_of(whole), warnings=warnings)

    def _judged(self, given: Emitted, whole: Result, edged: Result | None) -> Result:
        """Judge a text where the model knows how (:mod:`isotone.pipeline.judging`)."""
        if self.presence is None:
            return edged or whole

        def look() -> Inside:
            return inside(self.placer_of(given.emissions), given.heard, given.texts[0])

        return judging.judged(self.model.check, self.presence, given, whole, edged, look, self._aligned)

    def _with_pauses(self, transcript: Transcript) -> TextToAlign:
        """Put optional silences between words, and stars where extra speech is allowed."""
        text = with_pauses(self.model.tokenizer, transcript, self.aligner)
        return stars.with_extra_speech(text) if self.extra_speech else text
