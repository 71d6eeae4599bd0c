"""Texts of ASS: what is shown of them, and the times of their syllables (``\\k``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from isotone.format.cues import Cue

# Shapes that are drawn, commands in braces, and breaks and spaces that are escaped; all else is shown as it is.
_PARTS = re.compile(
    r"(?P<drawn>\{[^{}]*\\p[1-9][^{}]*\}.*?(?=\{[^{}]*\\p0|$))|(?P<command>\{[^{}]*\})|\\(?P<escaped>[Nnh])|(?P<plain>.)",
    re.DOTALL,
)
_ESCAPED = {"N": "\n", "n": "\n", "h": " "}
_SYLLABLE = re.compile(r"(\\(?:kf|ko|k|K))(\d+)")


def shown(text: str) -> str:
    """Return what is shown of a text of ASS, without white space around it."""
    return "".join(character for character, _ in _shown(text)).strip()


def retimed(text: str, cue: Cue) -> str:
    """Write a text of ASS with other times of its syllables.

    A syllable begins where its first word does, or within a word by its share of the characters, and lasts until the
    next one begins.

    Args:
        text: The text.
        cue: What is shown of it, with its new times.

    Returns:
        The text; as it was where none of its words has a time.
    """
    marks = list(_SYLLABLE.finditer(text))
    if not cue.words or not marks or shown(text) != cue.text:
        return text
    characters = _shown(text)
    before = next((i for i, (character, _) in enumerate(characters) if character.strip()), 0)
    starts = [sum(place < mark.start() for _, place in characters) - before for mark in marks]
    begins = [round((time - cue.start) / 10) for time in _times(starts, cue)]
    begins.append(max(begins[-1], round((cue.words[-1][1] - cue.start) / 10)))
    out, now = [], 0
    for mark, first, last in zip(marks, begins, begins[1:]):
        out += [text[now : mark.start()], f"{mark[1]}{last - first}"]
        now = mark.end()
    lead = f"{{\\k{begins[0]}}}" if begins[0] else ""
    return lead + "".join([*out, text[now:]])


def _shown(text: str) -> list[tuple[str, int]]:
    """List the characters that are shown of a text, with their places in it."""
    found = ((_ESCAPED.get(m["escaped"] or "", m["plain"]), m.start()) for m in _PARTS.finditer(text))
    return [(character, place) for character, place in found if character is not None]


def _times(places: Sequence[int], cue: Cue) -> Iterator[int]:
    """Iterate over the times of places in a cue, in milliseconds; between words it is that of the next one.

    A syllable of white space is a pause: it begins where the word before ends.
    """
    now, latest = 0, cue.start
    spans = []
    for part in cue.parts:
        if part.start is not None and part.end is not None:
            spans.append((now, now + len(part.text), part.start, part.end))
        now += len(part.text)
    for place, following in zip(places, [*places[1:], len(cue.text)]):
        first, last, start, end = next((span for span in spans if place < span[1]), spans[-1])
        time = round(start + min(1.0, max(0.0, (place - first) / (last - first))) * (end - start))
        if not cue.text[place:following].strip():
            time = min(time, max((span[3] for span in spans if span[1] <= place), default=cue.start))
        latest = max(latest, time)
        yield latest
