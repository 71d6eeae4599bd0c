"""Subtitles without what they describe in brackets, which nobody says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isotone.passage import LYRICS, Passage
from isotone.text.given import listed
from isotone.text.markup import described


def without_descriptions(passages: Sequence[Passage]) -> tuple[list[Passage], list[str]]:
    """Put spaces in place of descriptions of sounds and speakers in subtitles; return those as well.

    All other characters keep their places. Round brackets of lyrics are sung, and stay.
    """
    out, left_out = [], []
    for passage in passages:
        text = passage.text
        sung = passage.cue is not None and passage.cue.sheet.suffix == LYRICS
        for first, last in described(text) if passage.cue else ():
            if sung and text[first] == "(":
                continue
            left_out.append(" ".join(text[first:last].split()))
            text = text[:first] + " " * (last - first) + text[last:]
        out.append(replace(passage, text=text))
    return out, left_out


def descriptions_note(left_out: Sequence[str]) -> str:
    """Make a sentence for people on descriptions that were left out."""
    return f"left out as descriptions in brackets (--keep-markup reads them): {listed(left_out)}"
