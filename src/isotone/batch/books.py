"""The work of ``align --book``: recordings that are found in one long text, and a report on its chapters."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from isotone.alignment import AlignmentError
from isotone.audio import Samples
from isotone.batch.ledger import Entry
from isotone.batch.options import Options, Target
from isotone.batch.pairs import is_transcript
from isotone.batch.speech import Aligning
from isotone.batch.systems import Further
from isotone.batch.work import Done, Inputs, Job, Own, Report
from isotone.files import digest_of
from isotone.pipeline.books import Book, Finding, find
from isotone.pipeline.books.chapters import chapters
from isotone.pipeline.books.coverage import Reading, covered, summary
from isotone.pipeline.passages import Passages, align_passages
from isotone.pipeline.result import Result
from isotone.text.tokenizer import Transcript
from isotone.transcripts import TranscriptError, open_source

#: The report of an output folder.
BOOK = "book.json"

_READING = "book"


def check_book(
    book: Path, audio: Sequence[Path], others: Sequence[Path | None], tiers: Sequence[str] = ()
) -> None:
    """Check that a book is the only text, before a model is loaded.

    Raises:
        ValueError: there are other transcripts, it is empty or no plain text, or tiers are asked for.
        FileNotFoundError: there is no such file.
    """
    texts = [path for path in others if path is not None] + [path for path in audio if is_transcript(path)]
    if texts:
        raise ValueError(
            f"--book {book} is the text of all recordings: give no transcript such as {texts[0]}."
        )
    if not book.is_file():
        raise FileNotFoundError(f"No book {book}: --book names a file with the text of the whole book.")
    _text(book, tiers)


def _text(book: Path, tiers: Sequence[str] = ()) -> tuple[str, str]:
    """Read a book: its text, and a warning or nothing."""
    source = open_source(book, tiers)
    if not source.plain:
        raise TranscriptError(f"{book} is no plain text: save the words of the book as a .txt file in UTF-8.")
    if not source.passages[0].text.strip():
        raise TranscriptError(f"{book} is empty: expected the text of the whole book.")
    return source.passages[0].text, source.warning


def _give_back() -> None:
    """Give free memory back to the system: glibc keeps what is between live objects, 80 MiB of short recordings."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None:
        trim(0)


class AligningBook(Aligning):
    """Forced alignment of recordings with the parts of a book that they hold.

    Args:
        options, target, min_score, check, further: See :func:`isotone.batch.align_files`.
        book: A file with the text of the whole book.
    """

    reports = (BOOK,)

    def __init__(
        self,
        options: Options,
        target: Target,
        book: Path,
        min_score: float | None = None,
        check: bool = True,
        further: Further = Further((), ()),  # noqa: B008 - nothing is added to it
    ) -> None:
        super().__init__(options, target, min_score=min_score, check=check, further=further)
        self.at_once = 1
        self.path = book
        self._options = {**self._options, "book": True}

    @cached_property
    def book(self) -> Book:
        """The book, pronounced when the first recording needs it."""
        return Book.of(_text(self.path)[0], self.pipeline)

    def inputs(self, recording: Path, own: Own) -> Inputs:
        """Return the book, and the alignments that stand beside in the page."""
        return Inputs({"text": self.path, **self.further.inputs(recording)})

    def run(self, job: Job, samples: Samples) -> Done:
        """Find and align a recording."""
        self._found: Finding | None = None
        done = super().run(job, samples)
        assert self._found is not None
        reading = Reading.of(self._found, self.book)
        return replace(done, analysis={**(done.analysis or {}), _READING: [digest_of(self.path), *reading]})

    def aligned(self, job: Job, samples: Any) -> tuple[Result | Passages, Transcript, Sequence[str]]:
        """Return the alignment of a recording, its part of the book in labels, and warnings."""
        self._found = found = find(self.pipeline, self.book, job.id, samples)
        if not found.parts:
            raise AlignmentError(
                f"none of its speech is in {self.path.name}: it is no recording of this book."
            )
        result = align_passages(self.pipeline, job.id, samples, found.passages, self.slack_s)
        _give_back()
        warning = _text(self.path)[1]
        return result, self.pipeline.encode(result.text), (warning,) if warning else ()

    def report(self, entries: Sequence[Entry]) -> Report:
        """Report on the chapters of the book, and on what each recording holds."""
        text, digest = _text(self.path)[0], digest_of(self.path)
        readings = {
            entry.id: Reading(*entry.analysis[_READING][1:])
            for entry in entries
            if not entry.error and entry.analysis and entry.analysis.get(_READING, [""])[0] == digest
        }
        rows = covered(text, chapters(text), readings)
        failed = {entry.id: entry.error for entry in entries if entry.error}
        content = {
            "format": "isotone-book",
            "version": 1,
            "book": str(self.path),
            "chapters": [row._asdict() for row in rows],
            "recordings": [{"id": id, **reading.shown(rows)} for id, reading in readings.items()],
            "failed": [{"id": id, "error": error} for id, error in failed.items()],
        }
        shown = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        return Report({BOOK: shown.encode()}, tuple(summary(rows, readings)))
