"""Subtitles: SubRip and WebVTT."""

from __future__ import annotations

import inspect
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal, get_args

from isotone.alignment import Alignment
from isotone.format.cues import Cue, Layout, Part, make_cues
from isotone.format.given import Given, given_cues, has_cues, notes, sheet_of, was_subtitles
from isotone.format.sheets import rewritten
from isotone.format.unsaid import long_runs
from isotone.interfaces import Format
from isotone.registry import OptionError, nearest

#: The cues of subtitles: those of the transcript where it was subtitles; those of any transcript with times; new ones.
Cues = Literal["auto", "given", "new"]

# Options of the layout that are of given cues as well.
_OF_ALL = ("reading_speed", "min_s")

_BLANK = re.compile(r"\n(?:[^\S\n]*\n)+")
# Markup of SubRip; classes of WebVTT's; markup that WebVTT has as well.
_SUBRIP = re.compile(r"</?(?:[bius]|font(?:\s[^<>]*)?)>|\{[^{}]*\}", re.IGNORECASE)
_CLASSES = re.compile(r"(<[biu])\.[^<>]*(>)", re.IGNORECASE)
_SHARED = re.compile(r"</?(?:[biu]|c|lang|ruby|rt|v)(?:[.\s][^<>]*)?>", re.IGNORECASE)


class Subtitles(Format):
    """Base of the formats of subtitles.

    Where the transcript was subtitles, the same cues are written, with the times of their words. If it was a file of
    the same format, all else in it stays as it was.

    Args:
        tier: The tier to write; with several speakers, the tier of each.
        cues: ``"auto"``: the cues that were given, if they were subtitles and no option of the layout is set, else new
            ones. ``"given"``: those of any transcript with times. ``"new"``: always new ones.
        layout: Options of :class:`isotone.format.cues.Layout`, such as ``level="word"`` or ``max_chars=37``. All but
            ``reading_speed`` and ``min_s`` are of new cues.

    Raises:
        ValueError: an option out of range, or options that exclude each other.
        OptionError: an unknown option.

    Attributes:
        keeps_file: True where a given file of the same format stays as it was but for its times.
    """

    keeps_file = True

    def __init__(self, *, tier: str = "words", cues: Cues = "auto", **layout: Any) -> None:
        known = [field.name for field in fields(Layout)]
        if unknown := [name for name in layout if name not in known]:
            known = [*_own_options(type(self)), *known]
            raise OptionError(
                f"The format {self.suffix.removeprefix('.')!r} has no option {unknown[0]!r}."
                f"{nearest(unknown[0], known)} It takes: {', '.join(known)}."
            )
        if cues not in get_args(Cues):
            raise ValueError(f"The cues of subtitles are 'auto', 'given' or 'new'; got {cues!r}.")
        new = [name for name in layout if name not in _OF_ALL]
        if new and cues == "given":
            raise ValueError(f"The option {new[0]} is of new cues: leave it out, or take cues: new.")
        self.tier = tier
        self.layout = Layout(**layout)
        self._cues: Cues = "new" if new else cues

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
            ValueError: given cues are asked for, and the transcript had none.
        """
        given = self._given(alignment)
        if given is None:
            return self.written(make_cues(alignment, self.tier, self.layout))
        sheet = sheet_of(alignment)
        same = sheet is not None and sheet.suffix == self.suffix and self.keeps_file
        text = rewritten(sheet, given, self.clock) if sheet and same else None
        # a file of its own has its own order, and another one that of time, as players expect it
        return self.written(sorted((one.cue for one in given), key=_start)) if text is None else text

    def notes(self, alignment: Alignment) -> Sequence[str]:
        """See :meth:`isotone.interfaces.Format.notes`: cues without timed words, and words that are not shown."""
        given = self._given(alignment)
        if given is not None:
            return tuple(notes(given))
        runs = (
            long_runs(alignment, self.layout.room)
            if self.layout.unsaid and self.layout.level == "line"
            else []
        )
        first = [f"'{run[0].label} ... {run[-1].label}'" for run in runs]
        return (
            [f"not in the subtitles, for it was not said and fits into no cue: {', '.join(first)}"]
            if runs
            else ()
        )

    @abstractmethod
    def written(self, cues: Sequence[Cue]) -> str:
        """Return the text of a file with these cues."""

    @abstractmethod
    def clock(self, milliseconds: int) -> str:
        """Write a time as the format has it."""

    def _given(self, alignment: Alignment) -> list[Given] | None:
        """Return the cues of the transcript; None where cues are made anew."""
        if self._cues == "new" or (self._cues == "auto" and not was_subtitles(alignment)):
            return None
        if has_cues(alignment, self.tier):
            return given_cues(alignment, self.tier, self.layout)
        if self._cues == "given":
            raise ValueError(
                f"{alignment.id}: no cues were given, for the transcript has no passages with times and words: leave "
                "out cues: given, or give subtitles."
            )
        return None


def _own_options(kind: type) -> list[str]:
    """Return the options of a format by name that its constructors name."""
    signatures = (inspect.signature(vars(cls)["__init__"]) for cls in kind.__mro__ if "__init__" in vars(cls))
    named = (p.name for s in signatures for p in s.parameters.values() if p.kind is p.KEYWORD_ONLY)
    return list(dict.fromkeys(named))


class SRTFormat(Subtitles):
    """SubRip subtitles. Write-only; options as of :class:`Subtitles`.

    The resolution is 1 ms; a word without duration is shown for 1 ms, with a warning. Silence has no cue. White space
    within a word becomes one space; ``-->``, which SubRip cannot escape, becomes an arrow.
    """

    suffix = ".srt"

    def written(self, cues: Sequence[Cue]) -> str:
        """Return the text of a file with these cues."""
        return "\n".join(
            f"{i}\n{self.clock(cue.start)} --> {self.clock(cue.end)}\n{self._text(cue)}\n"
            for i, cue in enumerate(cues, 1)
        )

    def clock(self, milliseconds: int) -> str:
        """Write a time as ``01:02:03,450``."""
        return clock(milliseconds, ",")

    def _text(self, cue: Cue) -> str:
        text = "".join(_srt(part.text) if part.tag else part.text for part in cue.parts)
        return in_lines(text).replace("-->", "→")


class VTTFormat(Subtitles):
    """WebVTT subtitles. Write-only; options as of :class:`Subtitles`.

    The resolution is 1 ms; a word without duration is shown for 1 ms, with a warning. Silence has no cue. White space
    within a word becomes one space; ``&``, ``<`` and ``>`` are escaped; a NUL becomes U+FFFD. With several speakers,
    every cue has its voice.

    Args:
        inline: Put the time before every word of a cue except the first, as karaoke players need it.
        options: See :class:`Subtitles`.
    """

    suffix = ".vtt"

    def __init__(self, *, inline: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.inline = inline
        self.keeps_file = not inline

    def written(self, cues: Sequence[Cue]) -> str:
        """Return the text of a file with these cues."""
        return "\n".join(["WEBVTT\n", *map(self._cue, cues)])

    def clock(self, milliseconds: int) -> str:
        """Write a time as ``01:02:03.450``."""
        return clock(milliseconds, ".")

    def _cue(self, cue: Cue) -> str:
        voice = f"<v {_escape(cue.speaker)}>" if cue.speaker else ""
        out = [f"{self.clock(cue.start)} --> {self.clock(cue.end)}\n{voice}"]
        first = True
        for part in cue.parts:
            if part.start is not None:
                out.append("" if first or not self.inline else f"<{self.clock(part.start)}>")
                first = False
            out.append(_vtt(part))
        return in_lines("".join(out)) + "\n"


def without_classes(tag: str) -> str:
    """Return a tag without the classes that WebVTT has: ``<i>`` of ``<i.loud>``."""
    return _CLASSES.sub(r"\1\2", tag)


def _srt(tag: str) -> str:
    """Return markup in SubRip; that which WebVTT alone has is left out."""
    plain = without_classes(tag)
    return plain if _SUBRIP.fullmatch(plain) else ""


def _vtt(part: Part) -> str:
    """Return a part of a cue in WebVTT; other markup than it knows is left out."""
    if part.tag:
        return part.text if _SHARED.fullmatch(part.text) else ""
    return _escape(part.text)


def _start(cue: Cue) -> int:
    return cue.start


def in_lines(text: str) -> str:
    """Return the text of a cue without blank lines, which would end it."""
    return _BLANK.sub("\n", text)


def clock(milliseconds: int, point: str) -> str:
    """Write a time as ``01:02:03.450``, with this decimal point."""
    seconds, ms = divmod(milliseconds, 1000)
    minutes, s = divmod(seconds, 60)
    hours, m = divmod(minutes, 60)
    return f"{hours:02d}:{m:02d}:{s:02d}{point}{ms:03d}"


def _escape(text: str) -> str:
    text = text.replace("\0", "\ufffd")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
