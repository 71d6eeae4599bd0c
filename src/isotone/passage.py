"""Passages: parts of a transcript, with their place in its file where that is one of subtitles."""

from __future__ import annotations

from dataclasses import dataclass, field

#: The byte order mark, with which some programs begin a file.
MARK = "\ufeff"

#: The suffix of lyrics, whose round brackets are sung by others.
LYRICS = ".lrc"


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A file of subtitles.

    Attributes:
        suffix: Its kind: ``.srt``, ``.vtt``, ``.sbv``, ``.ass``, ``.ttml`` or :data:`LYRICS`.
        text: Its text, with its line breaks, and with a byte order mark if it has one.
    """

    suffix: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Cued:
    """The cue that a passage is, or is a part of.

    Attributes:
        sheet: The file.
        number: Number of the cue in it, from 0 on.
        times: Where the file has its start and its end, each from a character to one past the last; None where the
            cue has to be looked for by its number.
        text: Where a file of ASS has its text, likewise; None for other files.
    """

    sheet: Sheet
    number: int
    times: tuple[tuple[int, int], tuple[int, int]] | None = None
    text: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a transcript.

    Attributes:
        text: The text as written.
        start, end: Rough times in seconds; None where the source has none.
        speaker: Who says it; None where the source does not say.
        where: Its place in the source, for people: ``cue 12``, ``line 3``.
        recordings: Names that the source has for the recording; empty where it has none.
        number: Number among the passages of the recording, from 0 on; None before they are put in order of time.
        place: Its first character in a longer text, from 0, which the positions of words are then in; None where the
            passages are the text.
        note: A sentence on a time that cannot be right, and on what is taken instead; empty without.
        cue: The cue of subtitles that it is of; None for other transcripts. Comparisons ignore it.
    """

    text: str
    start: float | None = None
    end: float | None = None
    speaker: str | None = None
    where: str = ""
    recordings: tuple[str, ...] = ()
    number: int | None = None
    place: int | None = None
    note: str = ""
    cue: Cued | None = field(default=None, compare=False, repr=False)
