"""Alignment of passages with rough times: stretch by stretch, joined into the tiers of every speaker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from isotone.alignment import Alignment, AlignmentError, Segment, Tier
from isotone.model.check import usable
from isotone.pipeline.doubt import doubtful
from isotone.pipeline.edges import EDGE_COST
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.language import ANOTHER_LANGUAGE, Signs, another_language
from isotone.pipeline.means import mean_of, mean_of_known
from isotone.pipeline.passage_notes import named, notes_of
from isotone.pipeline.passage_times import end_of, start_of, timed
from isotone.pipeline.passage_words import (
    Found,
    in_passages,
    joined,
    later,
    owners_of,
    share_out,
    sizes,
    tiers_of,
    with_stars,
)
from isotone.pipeline.plausible import long_words
from isotone.pipeline.stretches import Span, Stretch, stretches
from isotone.pipeline.unsaid import runs, unlikely, with_presence
from isotone.pipeline.verdict import PARTLY, WRONG
from isotone.text.given import OnlyStars
from isotone.text.normalize import TextError
from isotone.transcripts import Passage

log = logging.getLogger(__name__)

#: Seconds by which a word may be outside of the time of its passage before that is reported.
SLACK_S = 1.0

#: Seconds by which words are outside of the times of their passages where these are looked for with other speech around
#: them, and by which they are nearer then.
AWAY_S, NEARER_S = 0.3, 0.2

#: Nats per second of words by which a passage may score less within its time than outside, and is there all the same.
NEARLY = 1.0


@dataclass(frozen=True)
class Passages:
    """The alignment of the passages of a recording.

    Attributes:
        alignment: Tiers of words and of the model's tokens; with several speakers two of each, ``A - words``.
        text: The passages' texts, a line each.
        score, agreement: Means over the stretches, weighted by their words; see
            :class:`isotone.pipeline.result.Result`.
        warnings: Sentences on passages that could not be aligned, on words outside of the time of their passage, and on
            words that are too long.
        outside: Share of the words that are outside of the time of their passage by more than the slack.
    """

    alignment: Alignment
    text: str
    score: float
    agreement: float | None
    warnings: tuple[str, ...]
    outside: float = 0.0


def align_passages(
    pipeline: ForcedPipeline,
    id: str,
    audio: np.ndarray,
    passages: Sequence[Passage],
    slack_s: float = SLACK_S,
    named: bool = False,
) -> Passages:
    """Align passages with rough times.

    Args:
        pipeline: The model and its use.
        id: Utterance id.
        audio: ``(N,)`` float32 samples at the model's sample rate.
        passages: The passages. Those without times are somewhere between their neighbours.
        slack_s: Seconds by which a passage's time may be wrong.
        named: Name the tiers by their speakers also where there is only one.

    Raises:
        TextError: there is nothing to align in any of the passages.
        AlignmentError: none of the passages can be aligned.
        ValueError: a slack below 0.
    """
    if not 0 <= slack_s < np.inf:
        raise ValueError(f"A slack is 0 s or more; got {slack_s}.")
    return _Run(pipeline, id, audio, passages, slack_s, named).result()


class _Run:
    """One call of :func:`align_passages`.

    Attributes:
        speakers_named: True where a single speaker's tiers are named too.
        passages: Those that are aligned, in order of time.
        found: Segments of those that could be aligned, by their number.
        failed: Those that could not, with the reason.
        unknown: Numbers of those that have nothing but unknown speech, away from words.
        fits: Number of words, score and agreement by the passages that were aligned.
    """

    def __init__(
        self,
        pipeline: ForcedPipeline,
        id: str,
        audio: np.ndarray,
        passages: Sequence[Passage],
        slack_s: float,
        named: bool,
    ) -> None:
        self.pipeline, self.id, self.audio, self.slack_s = pipeline, id, audio, slack_s
        self.speakers_named = named
        self.seconds = pipeline.emitter.seconds(audio)
        self.text = "\n".join(p.text for p in passages)
        whole = pipeline.encode(self.text)
        self.with_words, self.signs = bool(whole.words), Signs.of(whole)
        self.notes = list(whole.notes)
        del whole
        self.passages = self._sifted(timed(passages, self.seconds))
        self.found: dict[int, Found] = {}
        self.failed: list[tuple[Passage, str]] = []
        self.unknown: list[int] = []
        self.fits: dict[frozenset[int], tuple[int, float, float | None]] = {}

    def result(self) -> Passages:
        """Align the stretches, and join their results."""
        parts = list(self._stretches())
        for number, stretch in enumerate(parts, 1):
            self._align(stretch)
            self.pipeline.on_window(number / len(parts))
        if not self.found:
            reason = self.failed[0][1] if self.failed else "no passage is within the recording."
            raise AlignmentError(reason, id=self.id)
        self.found |= with_stars(self.found, dict(enumerate(self.passages)), self.unknown)
        score = mean_of((fit, words) for words, fit, _ in self.fits.values())
        agreement = mean_of_known((agreement, words) for words, _, agreement in self.fits.values())
        note = another_language(self.signs, agreement, self.pipeline.model.check)
        self.notes += [note] if note else []
        unsaid = self._unsaid()
        wrong = not note and doubtful(agreement, usable(self.pipeline.model.check))
        verdict = ANOTHER_LANGUAGE if note else WRONG if wrong else PARTLY if unsaid else ""
        alignment = Alignment(self.id, self.seconds, self._tiers(), score, verdict=verdict)
        off = list(self._off())
        share = len(off) / max(1, sum(len(found.words) for found in self.found.values()))
        notes = [*self.notes, *notes_of(self.failed, unsaid, off, self.slack_s)]
        pieces = self.pipeline.tokenizer.unit == "pieces"
        notes += long_words([span for found in self.found.values() for span in sizes(found, pieces)])
        return Passages(alignment, self.text, score, agreement, tuple(notes), share)

    def _sifted(self, passages: Sequence[Passage]) -> list[Passage]:
        """Leave out passages that say nothing or are after the recording's end, and note them."""
        silent = [p for p in passages if not self._speaks(p)]
        late = [p for p in passages if p not in silent and start_of(p) - self.slack_s >= self.seconds]
        if silent:
            self.notes.append(f"left out, for there is nothing to align in it: {named(silent)}")
        if late:
            self.notes.append(f"left out, after the recording's end: {named(late)}")
        return [p for p in passages if p not in silent and p not in late]

    def _speaks(self, passage: Passage) -> bool:
        try:
            return bool(self.pipeline.encode(passage.text).tokens)
        except OnlyStars:
            return True
        except TextError:
            return False

    def _stretches(self) -> Iterator[Stretch]:
        spans = [Span(start_of(p), end_of(p), p.speaker) for p in self.passages]
        if self.with_words:
            return stretches(spans, self.seconds, self.slack_s)
        # without words it is not known which passage a token of a joined text belongs to
        return (self._alone(number) for number in range(len(spans)))

    def _alone(self, number: int) -> Stretch:
        start, end = (
            start_of(self.passages[number]) - self.slack_s,
            end_of(self.passages[number]) + self.slack_s,
        )
        return Stretch((number,), frozenset({number}), max(0.0, start), min(self.seconds, end))

    def _align(self, stretch: Stretch) -> None:
        """Align a stretch; where that fails, each of its passages by itself."""
        try:
            self._keep(stretch)
        except (AlignmentError, TextError) as error:
            reason = error.reason if isinstance(error, AlignmentError) else str(error)
            if len(stretch.passages) == 1:
                (number,) = stretch.passages
                if isinstance(error, OnlyStars):
                    self.unknown.append(number)
                else:
                    self.failed.append((self.passages[number], reason))
                return
            log.debug("%s: %.1f to %.1f s: %s", self.id, stretch.start, stretch.end, reason)
            for number in sorted(stretch.own):
                self._align(self._alone(number))

    def _keep(self, stretch: Stretch) -> None:
        """Align a stretch, and keep the segments of its own passages."""
        around = stretch.apart or stretch.around
        text, bounds = joined([(n, self.passages[n].text) for n in stretch.passages], around)
        transcript = self.pipeline.encode(text)
        rate = self.pipeline.model.encoder.sample_rate
        audio = self.audio[round(stretch.start * rate) : round(stretch.end * rate)]
        # other speech is not there by mistake: its stars cost as little as edges
        cost = EDGE_COST if around else None
        result = self.pipeline.align(
            self.id, audio, transcript, star_cost=cost, judged=not stretch.apart, leaves_out=False
        )
        result, doubted = with_presence(self.pipeline.presence, result)
        *words, units = ([later(s, stretch.start) for s in tier] for tier in result.alignment.tiers)
        own = {number: Found() for number in stretch.own}
        if not words:
            own[stretch.passages[0]].units = units
        else:
            owners = owners_of(result.words, transcript, bounds)
            texts = {n: self.passages[n] for n in stretch.passages}
            placed = in_passages(words[0], owners, texts, bounds)
            share_out(own, owners, placed, units)
            for owner, some in runs(placed, doubted, owners):
                if owner in own:
                    own[owner].unsaid.append(some)
        self.found |= own
        count = sum(len(f.words or f.units) for f in own.values())
        self.fits[stretch.own] = count, result.score, result.agreement
        if stretch.apart and len(stretch.passages) > 1:
            for number in sorted(stretch.own):
                if self._outside(number):
                    self._again(number)
        if not around and words:
            self._around(stretch)

    def _around(self, stretch: Stretch) -> None:
        """Align a stretch with other speech around its passages where their words leave their times without it.

        Not all that is said near a passage has to be written down. The words that are nearer to their times are kept.
        """
        away = self._away(stretch.own)
        if away >= AWAY_S:
            self._try(replace(stretch, around=True), lambda: self._away(stretch.own) <= away - NEARER_S)

    def _try(self, stretch: Stretch, better: Callable[[], bool]) -> None:
        """Align a stretch again, and keep what was there before unless the new result is better."""
        before, fits = dict(self.found), dict(self.fits)
        with suppress(AlignmentError, TextError):
            self._keep(stretch)
        if not better():
            self.found, self.fits = before, fits

    def _away(self, numbers: Collection[int]) -> float:
        """Return by how many seconds words are outside of the times of their passages, at most."""
        return max((off for number in numbers for _, off in self._outside(number, 0.0)), default=0.0)

    def _again(self, number: int) -> None:
        """Align a passage within its time, where its words may be those of a speaker who says the same."""
        least = self.found[number].fit - NEARLY
        alone = replace(self._alone(number), apart=True)
        self._try(alone, lambda: self.found[number].fit >= least)

    def _tiers(self) -> tuple[Tier, ...]:
        speakers = {number: self.passages[number].speaker for number in sorted(self.found)}
        names = ("words",) * self.with_words + (self.pipeline.tokenizer.unit,)
        return tiers_of(self.found, speakers, names, self.seconds, self.speakers_named)

    def _unsaid(self) -> list[tuple[str, list[Segment]]]:
        """List words that were likely not said, with the places of their passages."""
        whole = unlikely({number: own.words for number, own in self.found.items()})
        return [
            (self.passages[number].where, some)
            for number, own in sorted(self.found.items())
            for some in ([own.words] if number in whole else own.unsaid)
        ]

    def _off(self) -> Iterator[str]:
        """Name the words outside of the time of their passage by more than the slack."""
        for number, passage in enumerate(self.passages):
            for word, off in self._outside(number):
                yield f"{word.label!r} at {word.start:.1f} s by {off:.1f} s ({passage.where})"

    def _outside(self, number: int, slack_s: float | None = None) -> list[tuple[Segment, float]]:
        """List the words of a passage that are outside of its time by more than the slack, with their seconds."""
        slack_s = self.slack_s if slack_s is None else slack_s
        start, end = start_of(self.passages[number]), end_of(self.passages[number])
        words = self.found[number].words if number in self.found else []
        offs = ((word, max(start - word.start, word.end - end)) for word in words)
        return [(word, off) for word, off in offs if off > slack_s + 1e-6]
