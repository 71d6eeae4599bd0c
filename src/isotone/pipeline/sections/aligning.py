"""Alignment of a recording section by section, where its text may be in another order, repeated, or said in part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from isotone.alignment import AlignmentError
from isotone.audio import Samples
from isotone.pipeline.books.book import Book
from isotone.pipeline.books.finding import excerpts_of
from isotone.pipeline.books.hearing import Heard
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.result import Result
from isotone.pipeline.sections.cutting import Section, sections
from isotone.pipeline.sections.joining import Part, join
from isotone.pipeline.sections.planning import Take, moved, takes
from isotone.text.normalize import TextError
from isotone.text.tokenizer import Transcript

#: Least share of the words of the text, or of the sounds of the recording, that excerpts have to hold. Below, the text
#: is not divided.
LEAST_SHARE = 0.25

#: Words in a row that were not said, from which on a text deviates. Fewer are judged better one by one, and excerpts do
#: not reach a short word beside them.
LEAST_ABSENT = 4


@dataclass(frozen=True)
class _Plan:
    """The parts of a text that a recording holds, in order of time, and its sections."""

    book: Book
    heard: Heard
    takes: list[Take]
    sections: list[Section]

    @property
    def absent(self) -> list[tuple[int, int]]:
        """Words that no section holds: the first, and one past the last."""
        held = sorted((s.first, s.last) for s in self.sections if not s.again and s.first < s.last)
        edges = [(0, 0), *held, (len(self.book.words), len(self.book.words))]
        return [(a[1], b[0]) for a, b in pairwise(edges) if a[1] < b[0]]

    @property
    def deviates(self) -> bool:
        """True where the text was not read as it stands, from its first word to its last, but for single words."""
        return len(self.takes) > 1 or any(last - first >= LEAST_ABSENT for first, last in self.absent)


def align_sections(
    pipeline: ForcedPipeline, id: str, samples: Samples, transcript: Transcript, deviating: bool = False
) -> Result | None:
    """Align a text with a recording of any length, section by section.

    Args:
        pipeline: The model, which can judge single words.
        id: Utterance id.
        samples: ``(N,)`` at the model's sample rate.
        transcript: The text in labels, with its source.
        deviating: Align only a text that is read in another order, again, or in part.

    Returns:
        The result, in which words that were not said have no times and other speech is a star. None where the text does
        not deviate though it should, where little of it is heard, and where it cannot be divided.
    """
    plan = _plan(pipeline, id, samples, transcript)
    if plan is None or (deviating and not plan.deviates):
        return None
    parts: list[Part] = []
    for number, section in enumerate(plan.sections, 1):
        part = _aligned(pipeline, id, samples, plan, section)
        if part is None:
            return None
        parts.append(part)
        pipeline.on_window((1 + number / len(plan.sections)) / 2)
    seconds = len(samples) / pipeline.model.encoder.sample_rate
    return join(id, seconds, transcript, parts, plan.absent, _order(plan, transcript))


def _plan(pipeline: ForcedPipeline, id: str, samples: Samples, transcript: Transcript) -> _Plan | None:
    try:
        book = Book.of(transcript.source, pipeline)
        heard, found = excerpts_of(pipeline, book, id, samples)
    except (AlignmentError, TextError):
        return None
    parts = takes(book, heard, found)
    words = sum(take.last - take.first for take in parts if not take.again)
    sounds = sum(int(((heard.times >= take.start) & (heard.times <= take.end)).sum()) for take in parts)
    held = words >= LEAST_SHARE * len(book.words) or sounds >= LEAST_SHARE * len(heard.times)
    if not (parts and held) or len(book.words) != len(transcript.words):
        return None
    rate = pipeline.model.encoder.sample_rate
    with pipeline.model.tensors():
        hop = max(pipeline.emitter.hops(pipeline.placer.heads).values())
    return _Plan(book, heard, parts, sections(book, heard, parts, samples, rate, hop))


def _aligned(
    pipeline: ForcedPipeline, id: str, samples: Samples, plan: _Plan, section: Section
) -> Part | None:
    """Align the words of a section; None where they are others by themselves than in the whole text."""
    inside = plan.heard.times[(plan.heard.times >= section.start) & (plan.heard.times < section.end)]
    spoken = (float(inside[0]), float(inside[-1])) if len(inside) else (section.start, section.end)
    words = plan.book.words
    if section.again or section.first == section.last:
        return Part(section, spoken)
    begin = int(words[section.first, 0])
    end = int(words[section.last, 0]) if section.last < len(words) else len(plan.book.text)
    rate = pipeline.model.encoder.sample_rate
    own = np.asarray(samples[round(section.start * rate) : round(section.end * rate)])
    try:
        part = pipeline.encode(plan.book.text[begin:end])
        if len(part.words) != section.last - section.first:
            return None
        return Part(section, spoken, pipeline.align(id, own, part), begin)
    except TextError:
        return None
    except AlignmentError:  # the words need more frames than there are: they were not said
        return Part(section, spoken)


def _order(plan: _Plan, transcript: Transcript) -> Sequence[tuple[list[str], Take]]:
    """List what is read again or in another place, with its words."""
    out = moved(plan.takes)
    strange = [take for take in plan.takes if take.again or any(take is other for other in out)]
    return [([w.text for w in transcript.words[take.first : take.last]], take) for take in strange]
