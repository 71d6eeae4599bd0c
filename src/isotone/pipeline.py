"""Audio and a model to an Alignment: forced alignment of a given text, and recognition with times."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from isotone.alignment import Alignment, AlignmentError, tier_from_spans
from isotone.corpus import SILENCE
from isotone.interfaces import Aligner, Decoder
from isotone.model import Model
from isotone.registries import aligners, decoders
from isotone.registry import nearest
from isotone.text.tokenizer import Tokenizer, Transcript, Word
from isotone.types import Coupling, Emissions, Targets

log = logging.getLogger(__name__)

Batch = TypeVar("Batch", Emissions, Targets)


@dataclass(frozen=True)
class Result:
    """What came of one utterance.

    Attributes:
        alignment: Tiers of words (where the text has words) and of the model's tokens.
        text: The recognised text, or the given one.
        frames: Frames of the head the times were read from.
        blank_frames: Of these, the frames whose most likely label is the blank or the word delimiter.
        score: Mean log-probability a frame, over the frames that carry a token; 0 where none does.
    """

    alignment: Alignment
    text: str
    frames: int
    blank_frames: int
    score: float


class Pipeline:
    """A model with its decoder and aligner.

    Args:
        model: What hears.
        aligner: Name or specification of an aligner, in place of the model's own.
        times: Head the times are read from, in place of the model's own. With either of the two, recognised
            text is aligned too, where the model alone would take the decoder's times.
        device: Where the model runs.

    Raises:
        LookupError: no such aligner, decoder or head.
    """

    def __init__(
        self,
        model: Model,
        *,
        aligner: str | dict | None = None,
        times: str | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.model = model.to(device).eval()
        self.device = torch.device(device)
        reading = model.reading
        self.decoder: Decoder = decoders.create(reading.decoder)
        self.times = times or reading.times or reading.text
        self.realigns = bool(times or aligner or reading.times)
        if self.times not in model.heads:
            near = nearest(self.times, list(model.heads))
            raise LookupError(
                f"The model has no head {self.times!r}.{near} It has: {', '.join(model.heads)}."
            )
        self.aligner: Aligner = aligners.create(aligner or reading.aligner)

    def align(self, id: str, audio: np.ndarray, transcript: Transcript) -> Result:
        """Forced alignment of a known text.

        Args:
            id: Utterance id.
            audio: ``(N,)`` float32 samples at the model's sample rate.
            transcript: The text, tokenised by the model's tokenizer.

        Raises:
            AlignmentError: the text needs more frames than the audio has; nothing of the audio can be framed.
        """
        return self.align_batch([id], [audio], [transcript])[0]

    def align_batch(
        self, ids: Sequence[str], audio: Sequence[np.ndarray], transcripts: Sequence[Transcript]
    ) -> list[Result]:
        """Forced alignment of several utterances at once; see :meth:`align`."""
        emissions = self._emit(ids, audio, {self.times})[self.times]
        with_silence = [self._with_silence(t) for t in transcripts]
        targets = Targets.from_lists([list(t.tokens) for t, _ in with_silence])
        optional = torch.zeros_like(targets.labels, dtype=torch.bool)
        for row, (_, flags) in zip(optional, with_silence):
            row[: len(flags)] = torch.tensor(flags, dtype=torch.bool)
        coupling = self._run_aligner(ids, emissions, replace(targets, optional=optional))
        return self._results(
            ids,
            audio,
            emissions,
            targets,
            coupling,
            [t for t, _ in with_silence],
            [spoken(t) for t in transcripts],
        )

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
        emissions = self._emit(ids, audio, {self.model.reading.text, self.times})
        reading = self.model.reading
        timing = emissions[reading.text]
        targets, coupling = self.decoder(timing)
        if self.realigns and bool((targets.lengths > 0).any()):
            try:
                coupling = self._realign(ids, emissions[self.times], targets)
                timing = emissions[self.times]
            except AlignmentError as error:
                if len(ids) > 1:
                    return [self.transcribe(name, samples) for name, samples in zip(ids, audio)]
                log.warning("%s The times are the decoder's own.", error)
        tokenizer = self.model.tokenizer
        transcripts = [recognised(tokenizer, tokens) for tokens in targets.tolist()]
        texts = [tokenizer.decode(tokens) for tokens in targets.tolist()]
        return self._results(ids, audio, timing, targets, coupling, transcripts, texts)

    def _realign(self, ids: Sequence[str], emissions: Emissions, targets: Targets) -> Coupling:
        """Times of the decoded tokens from the timing head; rows without tokens stay empty."""
        lengths = targets.lengths
        # an empty hypothesis has nothing to align: give the aligner some token and drop what it says of it
        labels = targets.labels.clone()
        labels[lengths == 0, :1] = 1 if emissions.blank == 0 else 0
        safe = replace(targets, labels=labels, lengths=lengths.clamp(min=1))
        coupling = self._run_aligner(ids, emissions, safe)
        keep = (lengths > 0)[:, None].to(coupling.mass.device)
        return replace(coupling, mass=coupling.mass * keep, target_lengths=lengths)

    def _run_aligner(self, ids: Sequence[str], emissions: Emissions, targets: Targets) -> Coupling:
        try:
            return self.aligner(emissions, targets)
        except AlignmentError as error:
            if len(ids) == 1:
                raise AlignmentError(f"{ids[0]}: {error}") from error
            for i, name in enumerate(ids):  # one at a time, to say which it is
                self._run_aligner([name], _row(emissions, i), _row(targets, i))
            raise

    def _emit(self, ids: Sequence[str], audio: Sequence[np.ndarray], heads: set[str]) -> dict[str, Emissions]:
        for name, samples in zip(ids, audio):
            if self.model.encoder.frames(len(samples)) < 1:
                seconds = len(samples) / self.model.encoder.sample_rate
                raise AlignmentError(f"{name}: {seconds:.3f} s of audio is too short for a single frame.")
        lengths = torch.tensor([len(a) for a in audio])
        batch = torch.zeros(len(audio), int(lengths.max()))
        for row, samples in zip(batch, audio):
            row[: len(samples)] = torch.from_numpy(samples)
        with torch.inference_mode():
            out = self.model(batch.to(self.device), lengths.to(self.device), heads)
        return {name: e.to("cpu") for name, e in out.items()}

    def _with_silence(self, transcript: Transcript) -> tuple[Transcript, list[bool]]:
        """The transcript with a silence that may be skipped between words, and which tokens may be skipped.

        Silences inside words (closures of stops) stay as they are, and where one begins or ends a word none is put
        beside it. Phones without words are taken as they are given.
        """
        label = getattr(self.model.tokenizer, "silence", None)
        if label is None or not transcript.words or not getattr(self.aligner, "skips_optional", False):
            return transcript, [False] * len(transcript.tokens)
        silence = self.model.tokenizer.labels.index(label)
        pause = (silence, None, True)
        rows: list[tuple[int, int | None, bool]] = []
        before: int | None = -1
        for token, owner in [*zip(transcript.tokens, transcript.token_words), (silence, None)]:
            begins = token != silence and owner != before
            if (begins or (token == silence and owner is None)) and not (rows and rows[-1][0] == silence):
                rows.append(pause)
            if token != silence or owner is not None:
                if token == silence and rows and rows[-1] == pause:
                    rows.pop()
                rows.append((token, owner, False))
            before = owner
        with_silence = replace(
            transcript, tokens=tuple(t for t, _, _ in rows), token_words=tuple(o for _, o, _ in rows)
        )
        return with_silence, [optional for _, _, optional in rows]

    def _results(
        self,
        ids: Sequence[str],
        audio: Sequence[np.ndarray],
        timing: Emissions,
        targets: Targets,
        coupling: Coupling,
        transcripts: Sequence[Transcript],
        texts: Sequence[str],
    ) -> list[Result]:
        spans = coupling.spans()
        scores = token_scores(timing, targets, coupling)
        mass = _token_mass(targets, coupling).to(scores.dtype)
        means = (scores * mass).sum(1) / mass.sum(1).clamp(min=1e-12)
        blanks = blank_frames(timing, delimiter_number(self.model.tokenizer))
        out = []
        for i, name in enumerate(ids):
            duration = len(audio[i]) / self.model.encoder.sample_rate
            rows = [
                (timing.grid.seconds(s), timing.grid.seconds(e))
                for s, e in spans[i, : len(transcripts[i].tokens)].tolist()
            ]
            alignment = self._tiers(name, duration, transcripts[i], rows, scores[i].tolist())
            frames = int(timing.lengths[i])
            out.append(Result(alignment, texts[i], frames, int(blanks[i]), float(means[i])))
        return out

    def _tiers(
        self,
        id: str,
        duration: float,
        transcript: Transcript,
        times: list[tuple[float, float]],
        scores: list[float],
    ) -> Alignment:
        tokenizer = self.model.tokenizer
        # silences, and what writes nothing: delimiters between words, labels like <unk>
        hidden = {t for t in transcript.tokens if tokenizer.labels[t] in SILENCE or not tokenizer.decode([t])}
        tokens = [
            (tokenizer.labels[token], s, e, score)
            for token, (s, e), score in zip(transcript.tokens, times, scores)
            if token not in hidden and e > s
        ]
        tiers = [tier_from_spans(tokenizer.unit, tokens, duration)]
        if transcript.words or tokenizer.unit != "phones":
            tiers.insert(0, tier_from_spans("words", _word_spans(transcript, times, scores), duration))
        return Alignment(id, duration, tuple(tiers))


def _word_spans(
    transcript: Transcript, times: list[tuple[float, float]], scores: list[float]
) -> list[tuple[str, float, float, float | None]]:
    rows: list[tuple[str, float, float, float | None]] = []
    for i, word in enumerate(transcript.words):
        own = [
            j for j, owner in enumerate(transcript.token_words) if owner == i and times[j][1] > times[j][0]
        ]
        if own:
            score = float(np.mean([scores[j] for j in own]))
            rows.append((word.text, times[own[0]][0], times[own[-1]][1], score))
    return rows


def recognised(tokenizer: Tokenizer, tokens: Sequence[int]) -> Transcript:
    """Recognised tokens as a transcript whose source is the words with spaces between them."""
    words: list[Word] = []
    owners: list[int | None] = [None] * len(tokens)
    place = 0
    for number, (label, first, last) in enumerate(tokenizer.words(tokens)):
        words.append(Word(label, label, place, place + len(label)))
        owners[first:last] = [number] * (last - first)
        place += len(label) + 1
    return Transcript(tuple(words), tuple(tokens), tuple(owners))


def spoken(transcript: Transcript) -> str:
    """The words of a transcript as they were given."""
    return " ".join(word.text for word in transcript.words)


def delimiter_number(tokenizer: Tokenizer) -> int | None:
    """Label number of the word delimiter, where the vocabulary has one."""
    label = getattr(tokenizer, "delimiter", None)
    return tokenizer.labels.index(label) if label in tokenizer.labels else None


def token_scores(emissions: Emissions, targets: Targets, coupling: Coupling) -> Tensor:
    """Mean log-probability a frame of every token over its frames: ``(B, U)``, <= 0; 0 where it has none."""
    logits = emissions.logits.float()
    normalizer = torch.logsumexp(logits, -1)
    batch = torch.arange(len(logits))[:, None]
    labels = targets.labels.gather(1, coupling.target.clamp(max=targets.labels.shape[1] - 1))
    log_probs = logits[batch, coupling.source, labels] - normalizer.gather(1, coupling.source)
    zeros = log_probs.new_zeros(targets.labels.shape)
    mass = coupling.mass.to(log_probs.dtype)
    total = _token_mass(targets, coupling).to(log_probs.dtype)
    return zeros.scatter_add(1, coupling.target, mass * log_probs) / total.clamp(min=1e-12)


def _token_mass(targets: Targets, coupling: Coupling) -> Tensor:
    """Mass that every token gets: ``(B, U)``; of hard couplings, its frames."""
    return coupling.mass.new_zeros(targets.labels.shape).scatter_add(1, coupling.target, coupling.mass)


def _row(batch: Batch, i: int) -> Batch:
    """One utterance of a batch, as a batch."""
    values = ((f.name, getattr(batch, f.name)) for f in fields(batch))
    tensors: dict[str, Any] = {name: v[i : i + 1] for name, v in values if isinstance(v, Tensor)}
    return replace(batch, **tensors)


def blank_frames(emissions: Emissions, delimiter: int | None = None) -> Tensor:
    """Frames whose most likely label is the blank or the word delimiter: ``(B,)`` int64."""
    best = emissions.logits.argmax(-1)
    blank = best == emissions.blank
    if delimiter is not None:
        blank |= best == delimiter
    frames = torch.arange(best.shape[1]) < emissions.lengths[:, None]
    return (blank & frames).sum(1)
