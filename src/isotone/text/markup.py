"""Markup in transcripts: parts that are written but not spoken.

Only known markup counts. Outside of subtitles any other bracket may be speech, and is read as text.

- Events: brackets (``[]``, ``()``, ``{}``, ``<>``, ``**``) whose words all name an audible event or its manner:
  ``[laughs]``, ``(coughs softly)``, ``[music playing]``, ``*sighs*``, ``<noise>``, ``[Musik]``. Musical notes (♪).
- Speech that the writer could not understand: ``[inaudible]``, ``[crosstalk 00:04:10]``, ``<unk>``, ``xxx``.
- Tags of HTML and of subtitles: ``<b>``, ``</i>``, ``<v Name>``, ``<00:01.000>``, ``{\\an8}``.
- In subtitles all brackets that describe a sound or a speaker (:func:`described`): ``[door slams]``.
- Times at the start of a line (``[00:12]``, ``00:01:23.450``) or in square brackets anywhere; ``>>`` at the start of a
  line; speakers there: ``SPEAKER 1:``, ``Interviewer:``, and names in upper case if the text has lower case, too:
  ``JOHN SMITH:``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SOUNDS = """
applause applauds applauding beep beeps beeping breath breathes breathing breaths cheering chuckle chuckles chuckling
clap claps clapping cough coughing coughs cries crying exhale exhales exhaling gasp gasping gasps giggle giggles
giggling groan groaning groans hum humming hums inhale inhales inhaling instrumental knocking laugh laughing laughs
laughter moan moaning moans mumbles mumbling music noise noises pause pauses sigh sighing sighs sil silence singing
sings smack sneeze sneezes sneezing sniff sniffles sniffling sniffs snore snores snoring sob sobbing sobs spn throat
tsk weeping whistles whistling yawn yawning yawns
applaus gelächter hustet lachen lacht musik räuspert seufzt stille applaudissements musique rire rires aplausos música
risas ríe risos applausi musica risate gelach muziek
"""
_MANNER = """
a and audience background breathy briefly clearing clears continues crowd deep deeply dramatic ends fades heavily heavy
her his in intro light lightly lip long loud loudly nervous nervously of off on outro playing plays short slow soft
softly speaker starts stops sudden suddenly the theme upbeat vocal with sich
"""
_NOT_UNDERSTOOD = """
crosstalk inaudible incomprehensible indecipherable indiscernible indistinct unclear unintelligible unk xxx
"""
_SPEECH = "audio chatter conversation phrase speech talking word words"

_STAMP = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,3})?"
_SURE_STAMP = r"(?:\d{1,2}:\d\d:\d\d(?:[.,]\d{1,3})?|\d{1,2}:\d\d[.,]\d{2,3})(?!\w)"
_BRACKETED = re.compile(
    r"\[{1,2}[^\[\]\n]{1,60}\]{1,2}|\({1,2}[^()\n]{1,60}\){1,2}|\{[^{}\n]{1,60}\}|<[^<>\n]{1,60}>"
    r"|(?<!\S)\*(?=[^\s*])[^*\n]{1,60}(?<=[^\s*])\*(?!\w)"
)
_TAG = re.compile(
    rf"</?(?:b|i|u|s|em|strong|font|span|c|v|lang|ruby|rt)(?:[.\s][^<>\n]*)?>|<{_STAMP}>|\{{\\[^{{}}\n]*\}}",
    re.IGNORECASE,
)
_BREAK = re.compile(r"</?(?:br|p|div)(?:\s[^<>\n]*)?/?>|[♩♪♫♬]+", re.IGNORECASE)
_ANYWHERE = re.compile(rf"\[{_STAMP}\]")
_TIMES = re.compile(
    rf"(?:[\[(]{_STAMP}[\])]|{_SURE_STAMP})(?:\s*(?:-->|[-\u2013])\s*(?:[\[(]{_STAMP}[\])]|{_SURE_STAMP}))?"
)
_ARROWS = re.compile(r">{2,3}|(?:&gt;){2,3}")
_NUMBERED = re.compile(
    rf"(?:speaker|spk|interviewer|interviewee|participant)[ _]?\w{{0,3}}(?:\s*[\[(]?{_STAMP}[\])]?)?\s*:(?=\s|$)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"([^\W\d_][\w.'\u2019-]*(?:[ ][\w.'\u2019-]+){0,2})\s*:(?=\s|$)")
_DASHES = re.compile(r"[ \t\u00a0\u2010-\u2015-]+")
_LINE = re.compile(r"^", re.MULTILINE)
_DESCRIPTION = re.compile(r"(?:\[[^\[\]]{1,120}\]|\([^()]{1,120}\)):?")
_BESIDE, _ALONE = (
    re.compile(r"(?:^|[\n:])[\s>\u266a\u266b#\u2013\u2014-]*$"),
    re.compile(r"[ .!\u266a\u266b#]*(?:\n|$)"),
)
# as ELAN's and CHAT's transcribers write; XXX may be a number
_UNHEARD = re.compile(r"(?<!\S)xxx(?=[.,;:?!]*(?:\s|$))")
_LETTERS = re.compile(r"[^\W\d_]+")

_EVENTS, _UNCLEAR = frozenset(_SOUNDS.split()), frozenset(_NOT_UNDERSTOOD.split())
_EVENT_WORDS, _UNCLEAR_WORDS = _EVENTS | {*_MANNER.split()}, _UNCLEAR | {*_SPEECH.split()}

#: Words in upper case before a colon that are spoken, not names of speakers.
_SPOKEN = frozenset({"NOTE", "WARNING", "CAUTION", "PS", "NB", "FYI", "OK", "OKAY", "REMEMBER"})


@dataclass(frozen=True)
class Cleaned:
    """A text without its markup.

    Attributes:
        text: The text that is left, with a space in place of an event between words.
        positions: For every character of ``text`` its position in the source.
        left_out: The markup, in order, each once.
    """

    text: str
    positions: tuple[int, ...]
    left_out: tuple[str, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the source of a non-empty part of the text."""
        return self.positions[start], self.positions[end - 1] + 1


def clean(text: str, *, keep: bool = False) -> Cleaned:
    """Remove the markup from a text.

    Args:
        text: Any text.
        keep: Remove nothing.
    """
    kept: list[str] = []
    positions: list[int] = []
    left_out: list[str] = []
    now = 0
    for start, end, space in [] if keep else _markup(text):
        if start < now:  # inside another one
            continue
        kept += text[now:start]
        positions += range(now, start)
        left_out.append(" ".join(text[start:end].split()))
        if space:
            kept.append(" ")
            positions.append(start)
        now = end
    kept += text[now:]
    positions += range(now, len(text))
    return Cleaned("".join(kept), tuple(positions), tuple(dict.fromkeys(left_out)))


def unclear(text: str) -> Iterator[tuple[int, int]]:
    """Iterate over the spans of brackets for speech that was not understood, such as ``[inaudible]``."""
    for match in _BRACKETED.finditer(text):
        words = _words(match[0])
        if words & _UNCLEAR and words <= _UNCLEAR_WORDS:
            yield match.span()


def unheard(text: str) -> Iterator[tuple[int, int]]:
    """Iterate over the spans of ``xxx``, a word for speech that was not understood."""
    return (match.span() for match in _UNHEARD.finditer(text))


def is_tag(markup: str) -> bool:
    """Tell if markup is a tag, of which nothing is to be said: ``<i>``, ``{\\an8}``."""
    return _TAG.fullmatch(markup) is not None


def described(text: str) -> Iterator[tuple[int, int]]:
    """Iterate over the spans of brackets in a cue of subtitles that describe a sound or a speaker.

    So do square brackets (``[door slams]``), round ones on lines of their own, and those in upper case before speech or
    with several words (``(WOMAN SCREAMS)``). Known markup is not among them.
    """
    plain = _TAG.sub(lambda tag: " " * len(tag[0]), text)
    lower = any(c.islower() for c in plain)
    for match in _DESCRIPTION.finditer(plain):
        letters = "".join(_LETTERS.findall(match[0]))
        if not letters or _is_event(match[0]) or next(unclear(match[0]), None):
            continue
        loud = lower and letters.isupper() and len(letters) > 2
        before = _BESIDE.search(plain[: match.start()]) is not None
        alone = before and _ALONE.match(plain, match.end()) is not None
        if match[0][0] == "[" or alone or (loud and (before or " " in match[0])):
            yield match.span()


def bracketed(text: str) -> list[str]:
    """Return the distinct parts of a text in square brackets or braces."""
    found = (m[0] for m in _BRACKETED.finditer(text) if m[0][0] in "[{" and _words(m[0]))
    return list(dict.fromkeys(found))


def _markup(text: str) -> list[tuple[int, int, bool]]:
    """Return the markup in order: (start, end, True where it separates words)."""
    found = [(*m.span(), False) for m in _TAG.finditer(text)]
    found += [(*m.span(), True) for m in _BREAK.finditer(text)]
    found += [(*m.span(), True) for m in _ANYWHERE.finditer(text)]
    found += [(*m.span(), True) for m in _BRACKETED.finditer(text) if _is_event(m[0])]
    names = any(c.islower() for c in text)
    for line in _LINE.finditer(text):
        found += [(start, end, True) for start, end in _line_starts(text, line.start(), names)]
    return sorted(found)


def _line_starts(text: str, position: int, names: bool) -> Iterator[tuple[int, int]]:
    """Iterate over the times, arrows and speakers at the beginning of a line, also after tags and dashes."""
    while True:
        while space := _TAG.match(text, position) or _DASHES.match(text, position):
            position = space.end()
        match = (
            _TIMES.match(text, position) or _ARROWS.match(text, position) or _speaker(text, position, names)
        )
        if match is None:
            return
        yield match.span()
        position = match.end()


def _speaker(text: str, position: int, names: bool) -> re.Match[str] | None:
    if match := _NUMBERED.match(text, position):
        return match
    match = _NAMED.match(text, position) if names else None
    if match and match[1].isupper() and sum(map(str.isalpha, match[1])) > 1 and match[1] not in _SPOKEN:
        return match
    return None


def _is_event(bracket: str) -> bool:
    words = _words(bracket)
    return bool(words & _EVENTS) and words <= _EVENT_WORDS


def _words(bracket: str) -> set[str]:
    return set(_LETTERS.findall(re.sub(_STAMP, "", bracket).lower()))
