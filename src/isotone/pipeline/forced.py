"""Audio, a model and a given text to alignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isotone.interfaces import Aligner
from isotone.pipeline import stars
from isotone.pipeline.doubt import agreements
from isotone.pipeline.edges import EDGE_COST, SECOND_PASS, SECOND_PASS_SHARE, edge_share, edges_left_out
from isotone.pipeline.emitter import Emitter, Mixture
from isotone.pipeline.lattices import chosen
from isotone.pipeline.placing import Placer
from isotone.pipeline.result import Result, results
from isotone.pipeline.texts import TextToAlign, with_pauses
from isotone.pipeline.windows import Windows
from isotone.registries import aligners
from isotone.registry import nearest
from isotone.text.options import TextOptions, adapted
from isotone.text.tokenizer import Transcript
from isotone.types import Emissions

if TYPE_CHECKING:
    import torch

    from isotone.model import Model


class ForcedPipeline:
    """A model with its aligner.

    Args:
        model: The model.
        aligner: Name or specification of an aligner, in place of the model's own for the timing head.
        times: Head whose emissions give the times, in place of the model's own.
        device: Device of the model.
        windows: Windows into which long audio is cut, so that memory does not grow with its length.
        extra_speech: Allow speech that is not in the given text, before, after and between words. It is found as
            stars, labelled ``*`` in the tier of words. The aligner must be able to skip tokens.
        star_cost: Nats per frame by which a star scores less than the best label: with a higher cost, less is taken for
            speech that is not in the text.
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

    Raises:
        LookupError: there is no such aligner or head.
        TextError, FileNotFoundError: a dictionary does not fit the model, or is missing.
        ValueError: extra speech with an aligner that cannot skip tokens; or a star cost below 0.
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
        star_cost: float = stars.STAR_COST,
        guided: bool = True,
        edges: bool = True,
        text: TextOptions = TextOptions(),  # noqa: B008 - frozen
        on_window: Callable[[float], None] = lambda share: None,
        check: bool = True,
        closures: bool = False,
    ) -> None:
        if not star_cost >= 0:
            raise ValueError(f"Pipeline expects a star_cost of 0 nats per frame or more; got {star_cost}.")
        decoding = model.decoding
        self.text = text
        self.tokenizer = adapted(model.tokenizer, text)
        self.model = model.to(device).eval()
        self.times = _timing_head(model, times)
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
        self.emitter = Emitter(self.model, windows, _mixture(model, self.times) if guided else None)
        self.on_window = on_window
        self.star_cost = star_cost
        self.extra_speech = extra_speech
        # an aligner that the caller names is used as it is
        self.holds_phones = aligner is None and model.tokenizer.unit == "phones"
        self.finds_edges = edges and not extra_speech and self.aligner.skips_optional
        self.check, self.closures = check, closures

    def encode(self, text: str) -> Transcript:
        """Encode a text for :meth:`align`: the tokenizer's labels, and stars (:mod:`isotone.pipeline.stars`).

        Raises:
            TextError: nothing in the text can be aligned.
        """
        return stars.encode(self.tokenizer, text, keep_markup=self.text.keep_markup)

    def align(
        self, id: str, audio: np.ndarray, transcript: Transcript, *, star_cost: float | None = None
    ) -> Result:
        """Align a given text.

        Args:
            id: Utterance id.
            audio: ``(N,)`` float32 samples at the model's sample rate.
            transcript: The text, by :meth:`encode` or by the model's tokenizer.
            star_cost: In place of the pipeline's own.

        Raises:
            AlignmentError: the text needs more frames than the audio has, or the audio is too short for a frame.
        """
        return self.align_batch([id], [audio], [transcript], star_cost=star_cost)[0]

    def align_batch(
        self,
        ids: Sequence[str],
        audio: Sequence[np.ndarray],
        transcripts: Sequence[Transcript],
        *,
        star_cost: float | None = None,
    ) -> list[Result]:
        """Align several utterances at once; see :meth:`align`."""
        if len(ids) > 1 and self.emitter.cuts(audio):
            return [self.align(*one, star_cost=star_cost) for one in zip(ids, audio, transcripts)]
        texts = [self._with_pauses(t) for t in transcripts]
        emissions = self.emitter(ids, audio, self.placer.heads, self.on_window)
        emissions = self.placer.where_aligned(emissions, texts)
        strings = [" ".join(word.text for word in t.words) for t in transcripts]
        cost = self.star_cost if star_cost is None else star_cost
        out = self._given(ids, audio, emissions, texts, strings, cost)
        for i, name in enumerate(ids if self.finds_edges else ()):
            row = {head: e.rows([i]) for head, e in emissions.items()}
            out[i] = self._within_edges(out[i], name, audio[i], row, texts[i]) or out[i]
        return out

    def watch(self, on_window: Callable[[float], None]) -> None:
        """Report the share of long audio that is encoded to another function from now on."""
        self.on_window = on_window

    def _given(
        self,
        ids: Sequence[str],
        audio: Sequence[np.ndarray],
        emissions: Mapping[str, Emissions],
        texts: Sequence[TextToAlign],
        strings: Sequence[str],
        star_cost: float,
    ) -> list[Result]:
        """Align given texts, and make their results."""
        placer = self.placer_of(emissions)
        unfolded, targets = placer.targets(texts)
        texts, targets, coupling = chosen(unfolded, *placer(ids, emissions, targets, star_cost))
        timing = emissions[self.times]
        found = results(
            ids, [self.emitter.seconds(samples) for samples in audio], strings,
            [text.transcript for text in texts], self.model.tokenizer, timing, targets, coupling, star_cost,
            self.closures,
        )  # fmt: skip
        if not self.check:
            return found
        agreed = agreements(list(emissions.values()), timing.grid, texts, coupling)
        return [replace(result, agreement=a) for result, a in zip(found, agreed)]

    def placer_of(self, emissions: Mapping[str, Emissions]) -> Placer:
        """Return the placer of given texts."""
        return self.placer.patient(emissions) if self.holds_phones else self.placer

    def _within_edges(
        self,
        whole: Result,
        name: str,
        audio: np.ndarray,
        emissions: Mapping[str, Emissions],
        text: TextToAlign,
    ) -> Result | None:
        """Align with edges (:mod:`isotone.pipeline.edges`); None where the text covers its recording."""

        def attempt(emissions: Mapping[str, Emissions]) -> Result | None:
            edged = self.placer_of(emissions).with_edges(emissions, text)
            if edged == text:
                return None
            return self._given([name], [audio], emissions, [edged], [whole.text], EDGE_COST)[0]

        found = attempt(emissions)
        if found is None:
            return None
        if edge_share(found.alignment) >= SECOND_PASS_SHARE:
            again = self.emitter.in_windows(audio, set(emissions), SECOND_PASS)
            second = attempt(self.placer.where_aligned(again, [text]))
            found = second if second is not None and second.score > found.score else found
        # the score is that of the text on the whole recording: with edges, a wrong text moves to where it fits best
        alignment = replace(found.alignment, score=whole.score)
        warnings = (edges_left_out(alignment), *found.warnings)
        return replace(found, alignment=alignment, score=whole.score, warnings=warnings)

    def _with_pauses(self, transcript: Transcript) -> TextToAlign:
        """Put optional silences between words, and stars where extra speech is allowed."""
        text = with_pauses(self.model.tokenizer, transcript, self.aligner)
        return stars.with_extra_speech(text) if self.extra_speech else text


def _mixture(model: Model, times: str) -> Mixture | None:
    """Return what is mixed into the timing head, if it is the model's own."""
    decoding = model.decoding
    mixes = decoding.beside and times == decoding.times
    return Mixture(times, decoding.beside, decoding.share) if mixes else None


def _timing_head(model: Model, given: str | None) -> str:
    """Return the name of the given timing head, or of the model's own."""
    name = given or model.decoding.times or model.decoding.text
    if name not in model.heads:
        near = nearest(name, list(model.heads))
        raise LookupError(f"The model has no head {name!r}.{near} It has: {', '.join(model.heads)}.")
    return name
